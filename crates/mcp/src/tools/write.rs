//! `memory_write`: creates a note.

use anamnesis_note::{
    draft::{Draft, safe_line},
    link::{Link, declarable},
    note::{GLOBAL, Kind, NoteType, Scope, Severity},
};
use anamnesis_store::index::{Entry, Index};
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    memory::{Memory, ToolError},
    tool::{Effect, Line, Tool, Word},
    write::{Writing, Written, present},
};

pub(super) fn tool() -> Tool {
    Tool::writing(
        "memory_write",
        "Write a note",
        "Keep one thing worth knowing in later sessions: self-contained, why included. It is marked as \
         the agent's. What is known already is refused; a note for all projects needs the person's approval. \
         Ten a session.",
        Effect::Adds,
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    /// Some sentences; what is marked as private and secrets are left out
    body: String,
    /// One line that says it all; the first line of the body without it
    title: Option<String>,
    /// fact, if the type does not say otherwise
    kind: Option<Word<Kind>>,
    r#type: Option<Word<NoteType>>,
    /// A project's key; "." is this session's, "global" all. Left out: this session's, else global
    project: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    /// 5 to 10 words or short questions that somebody may look for it with, other than its own words
    #[serde(default)]
    asked: Vec<String>,
    /// machine-local: never leaves this machine
    scope: Option<Word<Scope>>,
    user_id: Option<String>,
    workspace_id: Option<String>,
    severity: Option<Word<Severity>>,
    /// What to do instead of what a warning is about
    instead: Option<String>,
    /// Where a warning comes up: "cmd: git push --force", "path: *.sql", "tool: Write", "text: words"
    #[serde(default)]
    when: Vec<Line>,
    /// "RELATION ID" each
    #[serde(default)]
    links: Vec<String>,
    /// Ids of notes that it replaces
    #[serde(default)]
    supersedes: Vec<String>,
    /// Although a note says it already
    #[serde(default)]
    force: bool,
}

fn run(memory: &Memory, asked: Parameters) -> Result<Written, ToolError> {
    let writing = Writing::begin(memory)?;
    let index = writing.index()?;
    let replaced = asked.supersedes.iter().map(|id| present(&index, id));
    let replaced: Vec<_> = replaced.collect::<Result<_, _>>()?;
    let links = asked.links.iter().map(|line| link(&index, line));
    let draft = Draft {
        note_type: asked.r#type.map(|Word(word)| word),
        kind: asked.kind.map(|Word(word)| word),
        title: asked.title,
        scope: asked.scope.map_or(Scope::Portable, |Word(word)| word),
        user_id: asked.user_id,
        workspace_id: asked.workspace_id,
        tags: asked.tags,
        asked: asked.asked,
        when: asked
            .when
            .into_iter()
            .map(|Line(trigger)| trigger)
            .collect(),
        instead: asked.instead,
        severity: asked.severity.map(|Word(word)| word),
        links: links.collect::<Result<_, _>>()?,
        supersedes: replaced.iter().map(Entry::id).collect(),
        ..Draft::new(asked.body, project(memory, asked.project.as_deref())?)
    };
    writing.add(index, draft, &replaced, asked.force)
}

/// Returns the project key for a new note.
pub(super) fn project(memory: &Memory, named: Option<&str>) -> Result<String, ToolError> {
    match named {
        Some(".") => memory.own_project().map(|project| project.key.clone()),
        Some(key) => Ok(safe_line(key)),
        None => Ok((memory.project.as_ref())
            .map_or(GLOBAL, |own| &own.key)
            .to_owned()),
    }
}

/// Parses a link from the new note to an existing one.
fn link(index: &Index, line: &str) -> Result<Link, ToolError> {
    let bad =
        |message: String| ToolError::new("bad_argument", message, "a link is \"RELATION ID\"");
    let [relation, id] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(bad("a link has two words".to_owned()));
    };
    Ok(Link {
        relation: declarable(relation).map_err(|error| bad(error.to_string()))?,
        target: present(index, id)?.id(),
        weight: None,
    })
}
