//! `memory_status`: returns counts of notes and links, the state of sync and the use of injected
//! notes.

use std::{collections::BTreeMap, path::Path};

use anamnesis_app::{Error, context::Context, doctor, ops::stats::UsageCounts, sync};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::Tool;

const DEFAULT_DAYS: u32 = 30;

const MAX_DAYS: u32 = 36_500;

pub(super) fn tool() -> Tool {
    Tool::reading(
        "memory_status",
        "Show status",
        "Return counts of notes and links, the state of sync, and how sessions used injected notes.",
        run,
    )
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Number of days that the counts of use in `given` cover
    #[serde(default = "default_days")]
    days: u32,
}

fn default_days() -> u32 {
    DEFAULT_DAYS
}

type Counts = BTreeMap<String, usize>;

#[derive(Debug, Serialize, JsonSchema)]
struct Status {
    root: String,
    db_path: String,
    version: &'static str,
    /// This session's project key
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// Why nothing is recorded now
    #[serde(skip_serializing_if = "Option::is_none")]
    not_recorded: Option<String>,
    total: usize,
    by_type: Counts,
    by_project: Counts,
    by_scope: Counts,
    by_workspace: Counts,
    by_state: Counts,
    by_machine: Counts,
    /// Files that are not valid notes; `anamnesis doctor` lists them
    unreadable: usize,
    /// Links by origin
    links: Counts,
    /// Links without a target note
    broken_links: usize,
    sync: SyncOutput,
    given: UsageCounts,
}

/// State of sync
#[derive(Debug, Serialize, JsonSchema)]
struct SyncOutput {
    /// The notes have a git repository
    initialized: bool,
    /// URL without a password
    remote: Option<String>,
    /// Latest commit
    head: Option<String>,
    /// There are uncommitted notes
    dirty: bool,
    /// The state as a sentence
    detail: String,
}

impl SyncOutput {
    fn load(context: &Context) -> Self {
        let standing = sync::SyncStatus::load(context, context.journal().as_ref());
        Self {
            detail: standing.text(context.environment.now),
            initialized: standing.state.initialized,
            remote: standing.remote,
            head: standing.state.head,
            dirty: standing.state.dirty,
        }
    }
}

fn run(context: &Context, asked: Parameters) -> Result<Status, Error> {
    let days = asked.days.clamp(1, MAX_DAYS);
    let index = context.index_to_read()?;
    let (counts, links) = (index.counts()?, index.link_counts()?);
    let shown = |path: &Path| context.home.as_named(path).display().to_string();
    Ok(Status {
        root: shown(context.home.root()),
        db_path: shown(&context.home.index()),
        version: env!("CARGO_PKG_VERSION"),
        project: context.own_project().ok().map(|project| project.key),
        not_recorded: doctor::unwritable(context),
        total: counts.total,
        by_type: counts.by_type,
        by_project: counts.by_project,
        by_scope: counts.by_scope,
        by_workspace: counts.by_workspace,
        by_state: counts.by_state,
        by_machine: counts.by_machine,
        unreadable: index.problems()?.len(),
        links: BTreeMap::from([
            ("declared".to_owned(), links.declared),
            ("mentions".to_owned(), links.mentions),
            ("session".to_owned(), links.session),
        ]),
        broken_links: index.unresolved_links()?.len(),
        sync: SyncOutput::load(context),
        given: UsageCounts::load(context, days)?,
    })
}
