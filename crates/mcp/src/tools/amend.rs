//! `memory_amend`: changes a note's title, text or fields.

use anamnesis_note::{
    agent_policy::MAX_CONFIDENCE,
    draft::NoteChange,
    note::{Kind, Severity, Status},
};
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    memory::{Memory, ToolError},
    tool::{Effect, Line, Tool, Word},
    write::{Writing, Written, present},
};

pub(super) fn tool() -> Tool {
    Tool::writing(
        "memory_amend",
        "Change a note",
        "Change fields of a note by an agent or a session, or pin it; omitted fields are kept. A change \
         of a note by the person or for all projects becomes a proposal that needs the person's approval.",
        Effect::Replaces,
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    id: String,
    title: Option<String>,
    /// Replaces the text
    body: Option<String>,
    /// Appended to the text
    addition: Option<String>,
    kind: Option<Word<Kind>>,
    /// Replaces all tags
    tags: Option<Vec<String>>,
    /// Replaces all search terms and questions
    asked: Option<Vec<String>>,
    /// 0 to 0.9
    confidence: Option<f64>,
    severity: Option<Word<Severity>>,
    instead: Option<String>,
    when: Option<Vec<Line>>,
    status: Option<Word<Status>>,
    /// Show it first at session start
    pinned: Option<bool>,
}

fn run(memory: &Memory, asked: Parameters) -> Result<Written, ToolError> {
    if let Some(confidence) = asked.confidence
        && !(0.0..=MAX_CONFIDENCE).contains(&confidence)
    {
        let message = format!("invalid confidence {confidence}");
        let hint = format!("expected 0 to {MAX_CONFIDENCE}; only a person can set more");
        return Err(ToolError::new("bad_argument", message, hint));
    }
    let change = NoteChange {
        title: asked.title,
        body: asked.body,
        addition: asked.addition,
        kind: asked.kind.map(|Word(word)| word),
        tags: asked.tags,
        asked: asked.asked,
        confidence: asked.confidence,
        when: asked
            .when
            .map(|when| when.into_iter().map(|Line(line)| line).collect()),
        instead: asked.instead,
        severity: asked.severity.map(|Word(word)| word),
        status: asked.status.map(|Word(word)| word),
        pinned: asked.pinned,
    }
    .fit()?;
    let writing = Writing::begin(memory)?;
    let index = writing.index()?;
    let entry = present(&index, &asked.id)?;
    let kind = change.kind.unwrap_or(entry.kind);
    if change.status.is_some() && kind != Kind::Task {
        return Err(ToolError::no_task(entry.id()));
    }
    let now = writing.now();
    let (written, _) = writing.change(index, &entry, false, |note| change.apply(note, now))?;
    Ok(written)
}
