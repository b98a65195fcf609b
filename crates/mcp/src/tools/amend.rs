//! `memory_amend`: changes a note's title, text or fields.

use anamnesis_app::{
    Error,
    context::Context,
    ops::{
        task::no_task,
        written::{self, WrittenNote},
    },
};
use anamnesis_note::{
    agent_policy::MAX_CONFIDENCE,
    draft::NoteChange,
    note::{Kind, Note, Severity, Status},
    trigger::Trigger,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::{Effect, Tool};

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
struct Parameters {
    id: String,
    title: Option<String>,
    /// Replaces the text
    body: Option<String>,
    /// Appended to the text
    addition: Option<String>,
    kind: Option<Kind>,
    /// Replaces all tags
    tags: Option<Vec<String>>,
    /// Replaces all search terms and questions
    asked: Option<Vec<String>>,
    /// 0 to 0.9
    confidence: Option<f64>,
    severity: Option<Severity>,
    instead: Option<String>,
    when: Option<Vec<Trigger>>,
    status: Option<Status>,
    /// Show it first at session start
    pinned: Option<bool>,
}

fn run(context: &Context, asked: Parameters) -> Result<WrittenNote, Error> {
    if let Some(confidence) = asked.confidence
        && !(0.0..=MAX_CONFIDENCE).contains(&confidence)
    {
        let hint = format!("expected 0 to {MAX_CONFIDENCE}; only a person can set more");
        return Err(Error::usage(format!("invalid confidence {confidence}")).hint(hint));
    }
    let change = NoteChange {
        title: asked.title,
        body: asked.body,
        addition: asked.addition,
        kind: asked.kind,
        tags: asked.tags,
        asked: asked.asked,
        confidence: asked.confidence,
        when: asked.when,
        instead: asked.instead,
        severity: asked.severity,
        status: asked.status,
        pinned: asked.pinned,
    };
    let change = change.fit()?;
    let index = context.index()?;
    let entry = Context::present(&index, &asked.id)?;
    let kind = change.kind.unwrap_or(entry.kind);
    if change.status.is_some() && kind != Kind::Task {
        return Err(no_task(&Context::short(&index, entry.id())));
    }
    let now = context.environment.now;
    let apply = |note: &mut Note| change.apply(note, now);
    written::change(context, index, &entry, "edit", false, apply)
}
