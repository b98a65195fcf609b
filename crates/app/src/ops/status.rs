//! Returns counts of notes and links, the state of sync and the use of injected notes, for a model.

use std::{collections::BTreeMap, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stats::UsageCounts;
use crate::{Error, context::Context, doctor, sync};

const DEFAULT_DAYS: u32 = 30;

const MAX_DAYS: u32 = 36_500;

/// The parameters of the tool.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusRequest {
    /// Number of days that the counts of use in `given` cover
    #[serde(default = "default_days")]
    days: u32,
}

fn default_days() -> u32 {
    DEFAULT_DAYS
}

type Counts = BTreeMap<String, usize>;

/// The state of the memory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MemoryStatus {
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
    sync: RepositoryStatus,
    given: UsageCounts,
}

/// State of sync
#[derive(Debug, Serialize, JsonSchema)]
struct RepositoryStatus {
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

impl RepositoryStatus {
    fn load(context: &Context) -> Self {
        let status = sync::SyncStatus::load(context, context.journal().as_ref());
        Self {
            detail: status.text(context.environment.now),
            initialized: status.state.initialized,
            remote: status.remote,
            head: status.state.head,
            dirty: status.state.dirty,
        }
    }
}

/// Returns the state of the memory.
pub fn status(context: &Context, request: StatusRequest) -> Result<MemoryStatus, Error> {
    let days = request.days.clamp(1, MAX_DAYS);
    let index = context.index_to_read()?;
    let (counts, links) = (index.counts()?, index.link_counts()?);
    let shown = |path: &Path| context.home.as_named(path).display().to_string();
    Ok(MemoryStatus {
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
        sync: RepositoryStatus::load(context),
        given: UsageCounts::load(context, days)?,
    })
}
