//! `memory_sync`: syncs the notes with the person's other machines now.

use anamnesis_app::sync::{self, HeldDecision, held_text};
use anamnesis_recall::render::inert_line;
use anamnesis_store::index::Filter;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{Memory, ToolError},
    tool::{Effect, Tool},
};

/// How many problems an answer lists.
const MAX_PROBLEMS: usize = 20;

pub(super) fn tool() -> Tool {
    Tool::writing(
        "memory_sync",
        "Sync notes",
        "Commit changed notes and sync them with the person's other machines through their git remote. \
         This also happens automatically; call it when the person asks.",
        Effect::Reaches,
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    /// Ignored
    #[serde(default)]
    #[expect(dead_code, reason = "callers of the old Python server pass it")]
    force: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Synced {
    /// The remote has all commits of this machine
    pushed: bool,
    /// Number of commits pulled
    pulled: usize,
    conflicted: bool,
    head: Option<String>,
    /// Number of notes
    indexed: usize,
    detail: String,
    /// Number of notes that two machines changed; both versions are kept
    conflicts: usize,
    /// Files of the remote that were not accepted, and why
    problems: Vec<String>,
    /// What the person has to decide with `anamnesis sync`
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
}

fn run(memory: &Memory, _: Parameters) -> Result<Synced, ToolError> {
    let context = memory.at_present();
    let journal = context.journal();
    let synced = sync::run(
        &context,
        journal.as_ref(),
        HeldDecision::None,
        sync::TIMEOUT,
    )?;
    let problems = synced.problems.iter().take(MAX_PROBLEMS);
    let problems = problems.map(|problem| format!("{}: {}", problem.path, problem.reason));
    Ok(Synced {
        pushed: synced.pushed,
        pulled: synced.pulled,
        conflicted: synced.conflicts > 0,
        head: synced.head,
        indexed: memory.index()?.count(&Filter::default())?,
        detail: inert_line(&synced.detail),
        conflicts: synced.conflicts,
        problems: problems.map(|problem| inert_line(&problem)).collect(),
        held: synced
            .held
            .as_ref()
            .map(|held| inert_line(&held_text(held))),
    })
}
