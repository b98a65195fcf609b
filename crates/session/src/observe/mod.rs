//! Derives typed observations from tool events, by rule, without a model.
//!
//! - A *bugfix*: a command failed, files were edited, and the same command passed.
//! - A *change*: tests passed after edits.
//! - A *feature*: a file was created.
//! - A *discovery*: a command passed where one with the same purpose had failed, with no edits
//!   between.
//!
//! Invariants: exactly one event completes an observation, and no later event changes it. So a
//! growing list of events gives the same observations and then more. All texts are short, and the
//! work is linear in the number of events.

mod checks;
mod failed_tests;
mod signature;
mod statement;
mod verdict;

use serde::{Deserialize, Serialize};

pub use self::checks::{Checks, checks, failed_check};
pub use self::signature::signature;
pub(crate) use self::statement::says_it_is_expected;
pub use self::statement::{names_check, says_it_passes, says_something_passes};

use self::{
    signature::informative_line,
    verdict::{CommandResult, output, run_of},
};
use crate::{
    event::{FileAction, Outcome, ToolEvent},
    note_parts::part_of,
    prose::shorten,
    words,
};
use anamnesis_text::hash::text_hash;
use anamnesis_text::shell::command::Command;
use anamnesis_text::truncate::line;

/// For how many events a failure, or an edit without a test, is remembered.
const HORIZON: usize = 100;

/// The maximum length of a title, in characters.
const MAX_TITLE: usize = 120;

/// The maximum length of any other line, in characters.
const MAX_LINE: usize = 200;

/// The maximum length of a command in a title, in characters.
const MAX_COMMAND: usize = 50;

/// The maximum number of errors and of files in an observation.
const MAX_NAMED: usize = 8;

/// The maximum number of event ids in an observation.
const MAX_EVENTS: usize = 40;

/// The maximum lengths of an error and of a remedy in a line of a session note, in characters.
const MAX_ERROR: usize = 70;
const MAX_REMEDY: usize = 120;

/// The separator between a failure and its remedy.
pub(crate) const ARROW: &str = " → ";

/// The heading in a session note for what failed and was fixed.
pub const FIXED: &str = "Failed and fixed";

words! {
    /// The kind of an observation.
    Kind {
        /// Something that failed passes again.
        Bugfix = "bugfix",
        /// Something new was created.
        Feature = "feature",
        /// Something was changed, and tests pass.
        Change = "change",
        /// One command works where another does not.
        Discovery = "discovery",
    }
}

/// An observation in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// The kind.
    pub kind: Kind,
    /// One line of at most 120 characters.
    pub title: String,
    /// One line that says more; may be empty.
    pub subtitle: String,
    /// A sentence or two; may be empty.
    pub narrative: String,
    /// Facts, one line each.
    pub facts: Vec<String>,
    /// Search keywords.
    pub concepts: Vec<String>,
    /// The files that were read in between.
    pub files_read: Vec<String>,
    /// The files that were edited or created.
    pub files_modified: Vec<String>,
    /// The ids of the tool events it is based on. The last one completed it.
    pub events: Vec<String>,
    /// The signature of the error that it resolves: see [`signature()`].
    pub error_signature: Option<String>,
}

impl Observation {
    /// Returns the SHA-256, in hex, that identifies the observation.
    ///
    /// It depends only on the completing event, because an event completes at most one observation: a
    /// failure is over where the command passes or fails in another way.
    /// Neither the number of earlier events nor the wording of a later release changes it.
    pub fn hash(&self) -> String {
        let completed_by = self.events.last().map_or(&self.title, |id| id);
        text_hash(&format!("observation:{completed_by}"))
    }
}

/// The result of [`observations`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// The observations, in the order of completion.
    pub observations: Vec<Observation>,
    /// How many events at the start can be left out next time, because they can no longer matter.
    pub settled: usize,
}

/// The maximum number of recent events that can matter.
pub const WINDOW: usize = 2 * HORIZON;

/// Derives observations from tool events in chronological order.
///
/// The next call may leave out the [`Observed::settled`] events. It gives the same observations for
/// the rest as if they were included.
///
/// A failure, an edit and a pass are only combined if one agent made them. The exception is a fix
/// of the same command: edits of all agents count, because they work on the same files.
pub fn observations(events: &[ToolEvent]) -> Observed {
    let mut scan = Scan {
        events,
        failures: Vec::new(),
        tests: Vec::new(),
        spans: Vec::new(),
        observations: Vec::new(),
    };
    for index in 0..events.len() {
        scan.take(index);
    }
    let settled = scan.settled();
    Observed {
        observations: scan.observations,
        settled,
    }
}

/// Returns the command of an event if it passed and is significant.
pub fn passed_command(event: &ToolEvent) -> Option<String> {
    let (command, verdict) = run_of(event)?;
    (verdict == CommandResult::Passed && command.is_significant()).then(|| command.shown(MAX_LINE))
}

/// Returns the line of a session note about a failure that was fixed: the command, its error, and what
/// fixed it or, if no answer tells that, which files changed before it passed. `None` if only documents did,
/// which the error does not name.
pub(crate) fn fix_line<'a>(
    fix: &Observation,
    statements: impl Iterator<Item = &'a String>,
) -> Option<String> {
    const DOCUMENTS: [&str; 4] = [".adoc", ".markdown", ".md", ".rst"];
    let command = failed_check(&fix.title).map_or("", |(command, _)| command);
    let error = match fix.subtitle.as_str() {
        "" => String::new(),
        error => format!(": {}", shorten(&error.replace(ARROW, " "), MAX_ERROR)),
    };
    let may_fix = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        !DOCUMENTS.iter().any(|end| name.ends_with(end)) || fix.subtitle.contains(name)
    };
    let files = fix.files_modified.iter().map(String::as_str);
    let files: Vec<&str> = files.filter(|path| may_fix(path)).collect();
    let remedy = match statement::remedy(fix, statements) {
        Some(remedy) => remedy.to_owned(),
        None if files.is_empty() => return None,
        None => format!("changed before it passed: {}", files.join(", ")),
    };
    let remedy = shorten(&remedy, MAX_REMEDY);
    Some(format!("`{command}`{error}{ARROW}{remedy}"))
}

/// Returns the files that were created and removed again.
pub fn removed_files(events: &[ToolEvent]) -> Vec<&str> {
    let mut created: Vec<&str> = Vec::new();
    let mut removed = Vec::new();
    for event in events.iter().filter(|event| event.outcome == Outcome::Ok) {
        let new = event
            .files
            .iter()
            .filter(|file| file.action == FileAction::Created);
        created.extend(new.map(|file| file.path.as_str()));
        let Some((command, _)) = run_of(event) else {
            continue;
        };
        // One of the two may be absolute.
        let paths = command.removed_paths();
        let is_removed = |file: &&str| {
            paths
                .iter()
                .any(|path| file.ends_with(path) || path.ends_with(*file))
        };
        let (gone, left) = created.into_iter().partition::<Vec<_>, _>(is_removed);
        removed.extend(gone);
        created = left;
    }
    removed
}

/// Returns the failure and the remedy of a line of a session note that tells how this command was fixed.
///
/// Notes have no error signatures, so the command is compared. The note may come from another
/// machine.
pub fn fix_in_note<'a>(body: &'a str, command: &str) -> Option<(&'a str, &'a str)> {
    let command = Command::parse(command).filter(Command::is_significant)?;
    let shown = command.shown(MAX_COMMAND);
    part_of(body, FIXED).find_map(|item| {
        let (failed, _) = failed_check(item)?;
        (failed == shown).then(|| split_fix(item))?
    })
}

/// Splits a line about a fixed failure: the command with its error, and what fixed it.
pub fn split_fix(line: &str) -> Option<(&str, &str)> {
    line.split_once(ARROW)
}

/// A command that failed and has not passed since.
struct FailedCommand<'a> {
    index: usize,
    command: Command<'a>,
    agent: Option<&'a str>,
    error: Option<String>,
    /// The most informative line of its error.
    error_line: Option<String>,
    /// Whether a workaround was observed.
    has_workaround: bool,
}

/// The state of scanning the events.
struct Scan<'a> {
    events: &'a [ToolEvent],
    /// In chronological order.
    failures: Vec<FailedCommand<'a>>,
    /// Per agent, the last passed test run, which accounts for all edits before it.
    tests: Vec<(Option<&'a str>, usize)>,
    /// Ranges of events that belong together, from first to last. The next call must not start
    /// inside one.
    spans: Vec<(usize, usize)>,
    observations: Vec<Observation>,
}

/// An edit and the index of its event.
#[derive(Clone, Copy)]
struct Edit<'a> {
    index: usize,
    path: &'a str,
}

impl<'a> Scan<'a> {
    fn take(&mut self, index: usize) {
        let Some(event) = self.events.get(index) else {
            return;
        };
        self.forget_old_failures(index);
        if event.outcome == Outcome::Ok {
            self.observations.extend(new_file(event));
        }
        match run_of(event) {
            Some((command, CommandResult::Passed)) => self.take_pass(index, event, &command),
            Some((command, CommandResult::Failed)) if command.is_significant() => {
                let error = event.error.as_deref().unwrap_or_else(|| output(event));
                self.failures.push(FailedCommand {
                    index,
                    command,
                    agent: agent(event),
                    error_line: informative_line(error),
                    error: signature(error),
                    has_workaround: false,
                });
            }
            _ => {}
        }
    }

    fn forget_old_failures(&mut self, index: usize) {
        let spans = &mut self.spans;
        self.failures.retain(|failure| {
            let is_open = index <= failure.index + HORIZON;
            if !is_open {
                spans.push((failure.index, failure.index + HORIZON));
            }
            is_open
        });
    }

    fn take_pass(&mut self, index: usize, event: &'a ToolEvent, command: &Command<'a>) {
        let (fixed, failures) = std::mem::take(&mut self.failures)
            .into_iter()
            .partition::<Vec<_>, _>(|failure| failure.command.is_fixed_by(command));
        self.failures = failures;
        self.spans
            .extend(fixed.iter().map(|failure| (failure.index, index)));
        if fixed.is_empty() {
            let observation = self
                .workaround(index, event, command)
                .or_else(|| self.tested_change(index, event, command));
            self.observations.extend(observation);
            return;
        }
        if command.is_test() {
            self.remember_test(agent(event), index);
        }
        // Each error has the changes that followed it. It is over where the command fails with another.
        let is_same = |one: &FailedCommand<'_>, next: &FailedCommand<'_>| {
            let changes = self.edits(one.index + 1, next.index, |_| true);
            one.error == next.error || changes.is_empty()
        };
        let errors: Vec<&[FailedCommand<'a>]> = fixed.chunk_by(is_same).collect();
        let ends = errors.iter().skip(1).filter_map(|next| next.first());
        let ends = ends.map(|next| next.index).chain([index]);
        let found = errors.iter().zip(ends).filter_map(|(failures, end)| {
            let completing = self.events.get(end).unwrap_or(event);
            self.bugfix(end, completing, failures)
        });
        let found: Vec<Observation> = found.collect();
        self.observations.extend(found);
    }

    /// Observes a failed command that fails no more in this way after edits.
    fn bugfix(
        &self,
        index: usize,
        event: &ToolEvent,
        fixed: &[FailedCommand<'a>],
    ) -> Option<Observation> {
        let (first, last) = (fixed.first()?, fixed.last()?);
        // Without an edit it was not fixed: the command is flaky, or something outside changed.
        self.edits(last.index + 1, index, |_| true).first()?;
        let edits = self.edits(first.index + 1, index, |_| true);
        let files = paths(&edits);
        let command = first.command.shown(MAX_COMMAND);
        let mut error_line: Vec<&str> = Vec::new();
        for line in fixed
            .iter()
            .filter_map(|failure| failure.error_line.as_deref())
        {
            if !error_line.contains(&line) && error_line.len() < MAX_NAMED {
                error_line.push(line);
            }
        }
        let changed = listed(&files);
        let reason = error_line
            .first()
            .map_or(String::new(), |error_line| format!(": {error_line}"));
        let mut facts: Vec<String> = error_line
            .iter()
            .map(|&error_line| error_line.to_owned())
            .collect();
        facts.extend(changes(&files));
        Some(Observation {
            kind: Kind::Bugfix,
            title: line(
                &format!("`{command}` passes again after a change of {changed}"),
                MAX_TITLE,
            ),
            subtitle: error_line.first().copied().unwrap_or_default().to_owned(),
            narrative: line(
                &format!("`{command}` failed{reason}. It passed after a change of {changed}."),
                2 * MAX_LINE,
            ),
            facts,
            concepts: vec!["problem-solution".to_owned()],
            files_read: self.files_read(first.index, index, &files),
            files_modified: files,
            events: self.ids(fixed.iter().map(|failure| failure.index), &edits, event),
            error_signature: fixed.iter().find_map(|failure| failure.error.clone()),
        })
    }

    /// Observes a command that passes where another with the same purpose failed.
    fn workaround(
        &mut self,
        index: usize,
        event: &ToolEvent,
        command: &Command<'a>,
    ) -> Option<Observation> {
        let by = agent(event);
        let position = self.failures.iter().rposition(|failure| {
            failure.agent == by
                && !failure.has_workaround
                && failure.command.has_workaround(command)
                && self
                    .edits(failure.index + 1, index, |agent| agent == by)
                    .is_empty()
        })?;
        let failure = self.failures.get_mut(position)?;
        failure.has_workaround = true;
        let error_line = failure.error_line.clone();
        let reason = error_line
            .as_ref()
            .map_or(String::new(), |error_line| format!(": {error_line}"));
        let failed = failure.command.shown(MAX_COMMAND);
        let passed = command.shown(MAX_COMMAND);
        Some(Observation {
            kind: Kind::Discovery,
            title: line(
                &format!("`{passed}` works where `{failed}` failed{reason}"),
                MAX_TITLE,
            ),
            subtitle: error_line.clone().unwrap_or_default(),
            narrative: line(
                &format!("`{failed}` failed{reason}. Nothing was edited, and `{passed}` passed."),
                2 * MAX_LINE,
            ),
            facts: error_line.into_iter().collect(),
            concepts: vec!["gotcha".to_owned()],
            files_read: Vec::new(),
            files_modified: Vec::new(),
            events: vec![self.events.get(failure.index)?.id.clone(), event.id.clone()],
            error_signature: failure.error.clone(),
        })
    }

    /// Observes tests that pass after edits.
    fn tested_change(
        &mut self,
        index: usize,
        event: &'a ToolEvent,
        command: &Command<'a>,
    ) -> Option<Observation> {
        let by = agent(event);
        // While another test fails, the change is not complete.
        let fails = |failure: &FailedCommand| failure.agent == by && failure.command.is_test();
        if !command.is_test() || self.failures.iter().any(fails) {
            return None;
        }
        let since = self.last_test(by).map_or(0, |test| test + 1);
        let since = since.max(index.saturating_sub(HORIZON));
        let edits = self.edits(since, index, |agent| agent == by);
        self.remember_test(by, index);
        let first = edits.first()?.index;
        self.spans.push((first, index));
        let files = paths(&edits);
        let changed = listed(&files);
        let command = command.shown(MAX_COMMAND);
        Some(Observation {
            kind: Kind::Change,
            title: line(
                &format!("`{command}` passes after a change of {changed}"),
                MAX_TITLE,
            ),
            subtitle: String::new(),
            narrative: String::new(),
            facts: changes(&files),
            concepts: vec!["what-changed".to_owned()],
            files_read: self.files_read(first, index, &files),
            files_modified: files,
            events: self.ids(std::iter::empty(), &edits, event),
            error_signature: None,
        })
    }

    fn last_test(&self, by: Option<&str>) -> Option<usize> {
        let test = self.tests.iter().find(|(agent, _)| *agent == by);
        test.map(|(_, index)| *index)
    }

    fn remember_test(&mut self, by: Option<&'a str>, index: usize) {
        self.tests.retain(|(agent, _)| *agent != by);
        self.tests.push((by, index));
    }

    /// Returns the edits by some agents in a range of events.
    fn edits(&self, from: usize, to: usize, by: impl Fn(Option<&str>) -> bool) -> Vec<Edit<'a>> {
        let events = self.events.get(from..to).unwrap_or_default();
        (from..)
            .zip(events)
            .filter(|(_, event)| event.outcome == Outcome::Ok && by(agent(event)))
            .flat_map(|(index, event)| {
                let files = event.files.iter();
                files
                    .filter(|file| file.action != FileAction::Read)
                    .map(move |file| Edit {
                        index,
                        path: &file.path,
                    })
            })
            .collect()
    }

    /// Returns the files that were read but not edited in a range of events.
    fn files_read(&self, from: usize, to: usize, edited: &[String]) -> Vec<String> {
        let events = self.events.get(from..to).unwrap_or_default();
        let mut read: Vec<String> = Vec::new();
        for file in events.iter().flat_map(|event| &event.files) {
            let path = line(&file.path, MAX_LINE);
            let is_known = read.contains(&path) || edited.contains(&path);
            if file.action == FileAction::Read && !is_known && read.len() < MAX_NAMED {
                read.push(path);
            }
        }
        read
    }

    /// Returns the ids of failures and edits in chronological order, followed by the completing
    /// event's.
    fn ids(
        &self,
        failures: impl Iterator<Item = usize>,
        edits: &[Edit<'_>],
        last: &ToolEvent,
    ) -> Vec<String> {
        let mut indexes: Vec<usize> = failures
            .chain(edits.iter().map(|edit| edit.index))
            .collect();
        indexes.sort_unstable();
        indexes.dedup();
        let events = indexes.iter().filter_map(|&index| self.events.get(index));
        let before = events.take(MAX_EVENTS - 1);
        before.chain([last]).map(|event| event.id.clone()).collect()
    }

    /// Returns how many events at the start can no longer matter.
    fn settled(&mut self) -> usize {
        let end = self.events.len();
        let failures = self.failures.iter().map(|failure| failure.index);
        let mut open: Vec<usize> = failures.collect();
        for (index, event) in self.events.iter().enumerate() {
            let is_tested = self
                .last_test(agent(event))
                .is_some_and(|test| index < test);
            if !is_tested && !self.edits(index, index + 1, |_| true).is_empty() {
                open.push(index);
            }
        }
        self.spans
            .extend(open.into_iter().map(|index| (index, index + HORIZON)));
        // Starts with the last range: a cut inside a range moves to its start.
        self.spans.sort_unstable_by(|a, b| b.cmp(a));
        let cut = self.spans.iter().fold(end, |cut, &(first, last)| {
            if first < cut && cut <= last {
                first
            } else {
                cut
            }
        });
        cut.max(end.saturating_sub(WINDOW))
    }
}

/// Returns the id of the subagent that ran a tool, `None` for the main session.
fn agent(event: &ToolEvent) -> Option<&str> {
    event.agent.as_ref().map(|agent| agent.id.as_str())
}

/// Observes a file created in the project's folder.
fn new_file(event: &ToolEvent) -> Option<Observation> {
    let is_inside = |path: &str| {
        !path.starts_with(['/', '\\', '~']) && !path.starts_with("..") && !path.contains(':')
    };
    let made = event
        .files
        .iter()
        .find(|file| file.action == FileAction::Created && is_inside(&file.path))?;
    let path = line(&made.path, MAX_LINE);
    Some(Observation {
        kind: Kind::Feature,
        title: line(&format!("New file {}", short_path(&path, 100)), MAX_TITLE),
        subtitle: String::new(),
        narrative: String::new(),
        facts: vec![line(&format!("Made {path}"), MAX_LINE)],
        concepts: vec!["what-changed".to_owned()],
        files_read: Vec::new(),
        files_modified: vec![path],
        events: vec![event.id.clone()],
        error_signature: None,
    })
}

/// Returns the distinct paths of edits.
fn paths(edits: &[Edit<'_>]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for edit in edits {
        let path = line(edit.path, MAX_LINE);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Names the first file and the number of others.
fn listed(files: &[String]) -> String {
    let first = files.first().map_or("", String::as_str);
    let first = short_path(first, 36);
    match files.len() {
        0 | 1 => first,
        2 => format!("{first} and 1 more file"),
        count => format!("{first} and {} more files", count - 1),
    }
}

fn changes(files: &[String]) -> Vec<String> {
    let files = files.iter().take(MAX_NAMED);
    files
        .map(|file| line(&format!("Changed {file}"), MAX_LINE))
        .collect()
}

/// Returns a path, cut at the front to `count` characters.
fn short_path(path: &str, count: usize) -> String {
    match path.char_indices().rev().nth(count) {
        Some(_) => {
            let start = path.char_indices().rev().nth(count - 2);
            let end = path.get(start.map_or(0, |(start, _)| start)..);
            format!("…{}", end.unwrap_or_default())
        }
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
