//! Describes what a sync did, for a command and a tool.

use anamnesis_note::id::NoteId;
use anamnesis_store::index::Filter;
use anamnesis_sync::{HeldDecision, Synced};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    context::Context,
    sync::{self, held_text},
};

/// How many problems an outcome lists.
const MAX_PROBLEMS: usize = 20;

/// The outcome of a sync.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SyncOutcome {
    /// The remote has all commits of this machine
    pushed: bool,
    /// This sync sent some of them
    sent: bool,
    /// Number of commits pulled
    pulled: usize,
    conflicted: bool,
    head: Option<String>,
    /// Number of notes
    indexed: usize,
    detail: String,
    /// Number of notes that two machines changed; both versions are kept
    conflicts: usize,
    /// Number of notes whose files were written or removed
    changed: usize,
    /// Files of the remote that were not accepted, and why
    problems: Vec<String>,
    /// Ids of notes in which a sync restored text that was purged on this machine
    #[serde(skip_serializing_if = "Vec::is_empty")]
    returned: Vec<NoteId>,
    /// What the person has to decide with `anamnesis sync`
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
}

impl SyncOutcome {
    /// Describes what a sync did.
    pub fn new(context: &Context, synced: &Synced) -> Result<Self, Error> {
        let problems = synced.problems.iter().take(MAX_PROBLEMS);
        let problems = problems.map(|it| format!("{}: {}", it.path, it.reason));
        Ok(Self {
            pushed: synced.pushed,
            sent: synced.sent,
            pulled: synced.pulled,
            conflicted: synced.conflicts > 0,
            head: synced.head.clone(),
            indexed: context.index_to_read()?.count(&Filter::default())?,
            detail: synced.detail.clone(),
            conflicts: synced.conflicts,
            changed: synced.changed.len(),
            problems: problems.collect(),
            returned: synced.returned.iter().copied().collect(),
            held: synced.held.as_ref().map(held_text),
        })
    }
}

/// The parameters of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyncRequest {
    /// Ignored
    #[serde(default)]
    #[expect(dead_code, reason = "callers of the old Python server pass it")]
    force: bool,
}

/// Syncs for a tool.
pub fn run(context: &Context, _: SyncRequest) -> Result<SyncOutcome, Error> {
    let journal = context.journal();
    let synced = sync::run(context, journal.as_ref(), HeldDecision::None, sync::TIMEOUT)?;
    SyncOutcome::new(context, &synced)
}
