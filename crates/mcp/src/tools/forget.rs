//! `memory_forget`: forgets one note, which can be restored.

use anamnesis_app::{forget::forget_notes, spawn};
use anamnesis_note::draft::safe_line;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{Memory, ToolError},
    note,
    tool::{Effect, Tool},
    write::{Writing, present},
};

/// How many characters of a reason are logged.
const MAX_REASON_LENGTH: usize = 200;

pub(super) fn tool() -> Tool {
    Tool::writing(
        "memory_forget",
        "Forget a note",
        "Move one note to the trash; the person can restore it for 30 days. Call it only if the person \
         asks for it, or if the note is by an agent and wrong.",
        Effect::Replaces,
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    id: String,
    /// Written to this machine's log
    reason: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Forgotten {
    /// Result, for the person
    said: String,
    id: String,
    state: &'static str,
    /// Links of other notes that are broken now
    links: usize,
}

fn run(memory: &Memory, asked: Parameters) -> Result<Forgotten, ToolError> {
    let Parameters { id, reason } = asked;
    let writing = Writing::begin(memory)?;
    let index = writing.index()?;
    let entry = present(&index, &id)?;
    let links = index.links_of(&[entry.id()])?;
    let links = links.iter().filter(|edge| edge.to == entry.id()).count();
    // This index holds the write lock until it is dropped.
    drop(index);
    let short = writing.short(entry.id());
    let context = &writing.context;
    forget_notes(context, &[entry.path], Some(&memory.counted_to))?;
    spawn::work_soon(context);
    let reason = reason.as_deref().map(safe_line).unwrap_or_default();
    let reason: String = reason.chars().take(MAX_REASON_LENGTH).collect();
    let id = entry.id();
    context.log(&format!("{id} was forgotten by a tool: {reason}"));
    Ok(Forgotten {
        said: format!(
            "forgot #{short} \"{}\" · The person can undo this: anamnesis restore {short}",
            note::title(&entry.title)
        ),
        id: id.to_string(),
        state: "forgotten",
        links,
    })
}
