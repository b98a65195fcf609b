//! `memory_status`: returns counts of notes and links, the state of sync and the use of injected
//! notes.

use std::{collections::BTreeMap, path::Path};

use anamnesis_app::{context::Context, sync};
use anamnesis_recall::{reason::WithholdingReason, render::inert_line};
use anamnesis_store::journal::Report;
use chrono::TimeDelta;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{Memory, ToolError},
    tool::Tool,
};

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
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    /// Number of days that `given` covers
    #[serde(default = "default_days")]
    days: u32,
}

fn default_days() -> u32 {
    DEFAULT_DAYS
}

type Counts = BTreeMap<String, usize>;

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Status {
    root: String,
    db_path: String,
    version: &'static str,
    /// This session's project key
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
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
    given: Given,
}

/// State of sync
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
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

/// Use of injected notes on this machine
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Given {
    days: u32,
    prompts: usize,
    /// Searches for notes to inject
    looked_for: usize,
    /// Searches without a match
    silent: usize,
    /// Notes injected
    notes: usize,
    /// Sessions that got a note, summed over the notes
    shown: usize,
    /// Of these, sessions that used the note
    used: usize,
    /// Notes withheld because the session had them
    repeats: usize,
}

impl Given {
    fn from_report(report: &Report, days: u32) -> Self {
        let notes = report.notes.values();
        let (shown, used) = notes.fold((0, 0), |sum, note| {
            (sum.0 + note.sessions, sum.1 + note.used)
        });
        Self {
            days,
            prompts: report.prompts,
            looked_for: report.asked,
            silent: report.silent,
            notes: report.given,
            shown,
            used,
            repeats: report
                .held
                .get(WithholdingReason::GivenBefore.as_str())
                .copied()
                .unwrap_or(0),
        }
    }
}

fn run(memory: &Memory, asked: Parameters) -> Result<Status, ToolError> {
    let Parameters { days } = asked;
    let days = days.clamp(1, MAX_DAYS);
    let index = memory.index()?;
    let (counts, links) = (index.counts()?, index.link_counts()?);
    let since = memory.now() - TimeDelta::days(days.into());
    let given = match memory.records()? {
        Some(records) => {
            Given::from_report(&records.usage_report(since.timestamp_millis(), &[])?, days)
        }
        None => Given {
            days,
            ..Given::default()
        },
    };
    let shown = |path: &Path| memory.home().as_named(path).display().to_string();
    Ok(Status {
        root: shown(memory.home().root()),
        db_path: shown(&memory.home().index()),
        version: env!("CARGO_PKG_VERSION"),
        project: memory
            .project
            .as_ref()
            .map(|project| inert_line(&project.key)),
        total: counts.total,
        by_type: counts.by_type,
        by_project: inert(counts.by_project),
        by_scope: counts.by_scope,
        by_workspace: inert(counts.by_workspace),
        by_state: counts.by_state,
        by_machine: inert(counts.by_machine),
        unreadable: index.problems()?.len(),
        links: BTreeMap::from([
            ("declared".to_owned(), links.declared),
            ("mentions".to_owned(), links.mentions),
            ("session".to_owned(), links.session),
        ]),
        broken_links: index.unresolved_links()?.len(),
        sync: SyncOutput::load(&memory.at_present()),
        given,
    })
}

/// Makes keys that come from files safe to return.
fn inert(counts: Counts) -> Counts {
    let counts = counts.into_iter();
    counts
        .map(|(key, count)| (inert_line(&key), count))
        .collect()
}
