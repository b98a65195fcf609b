//! Checks the store, the hooks and the settings, and says how to fix what is wrong.
//!
//! A check that cannot be made is reported as unknown. Degraded is never reported as healthy.

mod claude;
mod notes;
mod records;
mod repair;
mod settings;
mod store;
mod sync;
#[cfg(test)]
mod tests;

use anamnesis_store::{
    index::Index,
    journal::{self, HookRuns, Journal},
};

use serde::Serialize;

pub use self::{claude::HOOK_PROGRAM, repair::repair, store::enclosing_repository};
use self::{
    claude::{beside, hooks, plugin, program},
    notes::{readable, triggers},
    records::{damage, recording, records},
    settings::{embedding_model, ignored_variables, privacy, projects},
    store::{NOT_RECORDED, unusable_journal, writable},
    sync::{named_model, replaced_repositories, synced},
};
use crate::{
    context::{Context, TIMEOUT},
    model,
};

/// The hooks that the plugin registers.
pub const EVENTS: [&str; 13] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "StopFailure",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
];

/// The name of the check that gives the program's checksum.
pub const PROGRAM: &str = "program";

/// The hint for a journal that cannot be used.
const REPAIR: &str = "anamnesis doctor --fix   (repairs a damaged journal.db)";

/// How many lines a finding names.
const NAMED: usize = 5;

/// The health of the checked part, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// No fault is known.
    Well,
    /// The check cannot be made.
    Unknown,
    /// A person should look at it.
    Look,
    /// It does not work.
    Broken,
}

/// The result of a check: what was found, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The state of what was checked.
    #[serde(rename = "level")]
    pub health: Health,
    /// The findings, in lines; the first one is the summary.
    pub lines: Vec<String>,
    /// How to fix it.
    pub hint: Option<String>,
}

impl CheckResult {
    fn new(health: Health, line: impl Into<String>) -> Self {
        Self {
            health,
            lines: vec![line.into()],
            hint: None,
        }
    }

    fn well(line: impl Into<String>) -> Self {
        Self::new(Health::Well, line)
    }

    fn unknown(line: impl Into<String>) -> Self {
        Self::new(Health::Unknown, line)
    }

    fn look(line: impl Into<String>) -> Self {
        Self::new(Health::Look, line)
    }

    fn broken(line: impl Into<String>) -> Self {
        Self::new(Health::Broken, line)
    }

    fn lines(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.lines.extend(lines);
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The first line.
    pub fn summary(&self) -> &str {
        self.lines.first().map_or("", String::as_str)
    }
}

/// A named result. Several checks may have the same name.
pub type NamedResult = (&'static str, CheckResult);

/// The results of all checks, for scripts.
#[derive(Serialize)]
pub struct DoctorReport<'a> {
    /// The results.
    pub checks: Vec<ReportedCheck<'a>>,
    /// The number of faults.
    pub broken: usize,
    /// The number of findings for a person.
    pub look: usize,
    /// The repairs.
    pub fixed: Vec<String>,
}

/// A result with its name.
#[derive(Serialize)]
pub struct ReportedCheck<'a> {
    /// The name.
    pub name: &'a str,
    /// The result.
    #[serde(flatten)]
    pub result: &'a CheckResult,
}

/// How much time the checks may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Checks that answer at once, whatever the size of the store.
    Quick,
    /// All checks, also of the bytes of the databases: up to two seconds.
    Thorough,
}

/// The objects that the checks examine.
struct Examined<'a> {
    context: &'a Context,
    depth: Depth,
    /// The state of the store's folder and of the journal's file.
    store: CheckResult,
    /// The journal; `None` if the store's folder cannot be used.
    journal: Option<Result<Journal, journal::Error>>,
    /// The updated index, and its state before the update.
    index: Option<(Result<Index, CheckResult>, CheckResult)>,
}

impl<'a> Examined<'a> {
    fn open(context: &'a Context, depth: Depth) -> Self {
        let mut it = Self {
            context,
            depth,
            store: writable(context),
            journal: None,
            index: None,
        };
        if it.store.health == Health::Broken {
            return it;
        }
        let journal = open_journal(context);
        if let Err(error) = &journal {
            it.store = unusable_journal(error);
        }
        it.journal = Some(journal);
        it.index = Some(notes::open_index(context, depth));
        it
    }

    fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()?.as_ref().ok()
    }

    fn index(&self) -> Option<&Index> {
        self.index.as_ref()?.0.as_ref().ok()
    }
}

/// The rows of the checks so far.
struct Rows(Vec<NamedResult>);

impl Rows {
    /// Adds the rows of a check: none, if it finds no fault and says nothing then.
    fn add(&mut self, name: &'static str, found: impl IntoIterator<Item = CheckResult>) {
        self.0.extend(found.into_iter().map(|row| (name, row)));
    }
}

/// Runs the checks, always in the same order. Most need a usable store.
pub fn examine(context: &Context, depth: Depth) -> Vec<NamedResult> {
    let it = &Examined::open(context, depth);
    let mut rows = Rows(Vec::new());
    rows.add("plugin", [plugin(it)]);
    rows.add(PROGRAM, program(it));
    rows.add("hooks", [hooks(it)]);
    let is_usable = it.journal.is_some();
    rows.add("recording", is_usable.then(|| recording(it)));
    rows.add("store", [it.store.clone()]);
    rows.add("variables", ignored_variables(it));
    if is_usable {
        rows.add("records", damage(it));
        rows.add("records", records(it));
        rows.add("notes", readable(it));
        rows.add("warnings", triggers(it));
        rows.add("unsaved", notes::unsaved(it));
        rows.add("index", notes::index(it));
        rows.add("privacy", [privacy(it)]);
        rows.add("projects", projects(it));
        rows.add("sync", [synced(it)]);
        rows.add("repository", replaced_repositories(it));
        rows.add("model", named_model(it));
        rows.add("meaning", embedding_model(it));
    }
    rows.add("others", [beside(it)]);
    rows.0
}

/// The summary for `status`.
#[derive(Debug, Serialize)]
pub struct HealthSummary {
    /// Whether no fault is known.
    #[serde(rename = "ok")]
    pub is_well: bool,
    /// The summary as text.
    pub text: String,
}

fn open_journal(context: &Context) -> Result<Journal, journal::Error> {
    let opened = Journal::open(&context.home, TIMEOUT);
    opened.inspect_err(|error| context.log(&error.to_string()))
}

/// Checks only the hooks, the journal and the index.
pub fn verdict(context: &Context, index: &Index) -> HealthSummary {
    let subject = Examined {
        context,
        depth: Depth::Quick,
        store: CheckResult::well(""),
        journal: Some(open_journal(context)),
        index: None,
    };
    let store = Some(writable(context)).filter(|found| found.health == Health::Broken);
    let mut findings: Vec<CheckResult> = store.into_iter().chain([hooks(&subject)]).collect();
    findings.extend(Some(plugin(&subject)).filter(|found| found.health == Health::Look));
    if context.environment.is_off {
        findings.push(recording(&subject));
    }
    findings.extend(records(&subject));
    let problems = index.problems().map_or(0, |problems| problems.len());
    if problems > 0 {
        let files = crate::format::count(problems, "file");
        findings.push(CheckResult::look(format!("{files} not taken as notes")));
    }
    findings.extend(context.config.problem.clone().map(CheckResult::look));
    findings.extend(
        model::checked(context)
            .err()
            .map(|error| CheckResult::look(error.message())),
    );
    let health = worst(&findings);
    let is_well = health == Health::Well;
    let first = findings.iter().find(|finding| finding.health == health);
    let summary = first.map_or("", CheckResult::summary);
    let text = if is_well {
        // A healthy store shows only the median, because the line is short.
        let hooks = summary.split(", worst").next().unwrap_or_default();
        format!("all well · hooks {hooks}")
    } else {
        summary.to_owned()
    };
    HealthSummary { is_well, text }
}

/// Returns why the store cannot be written, if so.
pub fn unwritable(context: &Context) -> Option<String> {
    if !context.home.root().exists() {
        return None;
    }
    let found = writable(context);
    let line = found.summary();
    let reason = line.strip_prefix(NOT_RECORDED).unwrap_or(line);
    (found.health == Health::Broken).then(|| reason.to_owned())
}

/// Returns the worst state among findings.
pub fn worst<'a>(findings: impl IntoIterator<Item = &'a CheckResult>) -> Health {
    let all = findings.into_iter().map(|finding| finding.health);
    all.max().unwrap_or(Health::Well)
}

/// Returns the times of the hooks; none if the journal cannot be read.
pub fn hook_runs(context: &Context) -> Vec<HookRuns> {
    let journal = context.journal();
    let runs = journal.and_then(|journal| journal.hook_runs(context.environment.now).ok());
    runs.unwrap_or_default()
}
