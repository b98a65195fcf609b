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
        "Sync the memory",
        "Commit what changed, and bring the notes of the person's machines together over their git \
         remote. It also happens automatically; worth it when the person asks.",
        Effect::Reaches,
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    /// Changes nothing
    #[serde(default)]
    #[expect(dead_code, reason = "callers of the Python version's tool name it")]
    force: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Synced {
    /// The remote has everything that is here
    pushed: bool,
    /// Commits that came from there
    pulled: usize,
    conflicted: bool,
    head: Option<String>,
    /// How many notes there are
    indexed: usize,
    detail: String,
    /// Texts that clashed; both are kept
    conflicts: usize,
    /// What was found in the remote and not taken
    problems: Vec<String>,
    /// What the person has to decide: `anamnesis sync` says more
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
