//! Tells which checks of a session failed when they last ran, and which passed.

use anamnesis_text::{
    shell::command::{Command, check::is_mistyped},
    truncate::line,
};

use super::{
    MAX_COMMAND, MAX_LINE,
    failed_tests::with_failed_tests,
    signature::informative_line,
    statement::{ClosedFailures, closed_by},
    verdict::{CommandResult, count, output, run_of},
};
use crate::{event::ToolEvent, phrases::Words, prose::Prose, turn::Turn};

/// Phrases of errors that name what is missing outside of the project.
const SURROUNDINGS: &str = "\
    api key|access token|is not set|are not set|not set in|not logged in|log in|login required|unauthorized|\
    authentication|authenticate|permission denied|access denied|not installed|requires sudo|sudo access|\
    administrator|license|quota|rate limit";

/// The checks of a session (see [`Command::check`]) by their last run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// Those that failed, one line each: see [`failed_check`].
    pub failing: Vec<String>,
    /// Those that passed, as they are shown.
    pub passed: Vec<String>,
    /// The last command of another tool if it failed, and its error; or an earlier one that failed for
    /// want of something outside of the project, unless it passed since.
    pub failed_tool: Option<String>,
}

/// Returns the checks of a session in a project's folder, which is empty if unknown.
///
/// A check that failed is over if it passes, a wider selection of the same tests, or another command
/// with the same purpose, or if a prompt after it says so. Neither a check whose latest result is unknown nor a
/// mistyped command counts as failed. Checks of another project are left out.
pub fn checks(events: &[ToolEvent], turns: &[Turn], folder: &str) -> Checks {
    let mut runs = CheckRuns::default();
    for event in events {
        runs.take(event, folder);
        if !runs.has_failures() {
            continue;
        }
        let said = turns
            .iter()
            .filter(|turn| turn.after.as_deref() == Some(&event.id));
        let said = said.filter_map(|turn| turn.prompt.as_deref());
        for sentence in said.flat_map(|prompt| Prose::new(prompt).sentences) {
            runs.hear(&sentence);
        }
    }
    let failing = runs.failing.iter();
    let passed = runs.passed.into_iter();
    let tool = runs.failed_tools.pop();
    Checks {
        failing: failing
            .map(|(_, check, error)| failed_line(check, error))
            .collect(),
        passed: passed.map(|(_, check)| check).collect(),
        failed_tool: tool.map(|(command, error)| failed_line(&command.shown(MAX_COMMAND), &error)),
    }
}

/// The last runs of commands so far: as they are shown, with the error.
#[derive(Default)]
struct CheckRuns<'a> {
    failing: Vec<(Command<'a>, String, String)>,
    passed: Vec<(Command<'a>, String)>,
    failed_tools: Vec<(Command<'a>, String)>,
    /// Whether the last command that failed was not a check.
    is_tool_last: bool,
}

impl<'a> CheckRuns<'a> {
    fn take(&mut self, event: &'a ToolEvent, folder: &str) {
        let Some((command, verdict)) = run_of(event) else {
            return;
        };
        let printed = event.error.as_deref().unwrap_or_else(|| output(event));
        let error = informative_line(printed).unwrap_or_default();
        if verdict == CommandResult::Unfinished
            || verdict == CommandResult::Failed && is_mistyped(&error)
        {
            return;
        }
        let Some(mut command) = command.within(folder) else {
            return;
        };
        let shown = match verdict {
            CommandResult::Failed => command.failed_check(printed),
            _ => command.check(),
        };
        let Some(shown) = shown else {
            if command.is_other_tool() {
                let failed = verdict == CommandResult::Failed && !error.is_empty();
                self.failed_tools.retain(|(tool, error)| {
                    is_about_surroundings(error) && !tool.is_fixed_by(&command)
                });
                if failed {
                    self.failed_tools.push((command, error));
                    self.is_tool_last = true;
                }
            }
            return;
        };
        self.failing.retain(|(failed, _, _)| {
            let is_over = verdict == CommandResult::Passed && failed.has_workaround(&command);
            !is_over && !failed.is_closed_by(&command)
        });
        match verdict {
            CommandResult::Passed => {
                for (failed, _, error) in &mut self.failing {
                    let all = failed.subject();
                    let mut selected = command.subject().into_iter();
                    // The test that the error names may be over.
                    if command.is_closed_by(failed)
                        && selected.any(|word| !all.contains(&word) && error.contains(word))
                    {
                        error.clear();
                    }
                }
                for check in command.passed_checks() {
                    self.passed
                        .retain(|(narrow, _)| !narrow.is_closed_by(&check));
                    let shown = check.check().unwrap_or_default();
                    self.passed.push((check, shown));
                }
            }
            // A part of tests that fail: they are told.
            CommandResult::Failed
                if self
                    .failing
                    .iter()
                    .any(|(wide, ..)| command.is_closed_by(wide)) => {}
            CommandResult::Failed => {
                let failed = count(printed, &["fail", "failed", "failing", "failures"]);
                let error = with_failed_tests(error, printed, failed);
                self.failing
                    .retain(|(_, _, same)| error.is_empty() || *same != error);
                self.passed.retain(|(passed, _)| {
                    !passed.is_closed_by(&command) && !command.is_closed_by(passed)
                });
                self.failing.push((command, shown, error));
                self.is_tool_last = false;
            }
            CommandResult::Unknown | CommandResult::Unfinished => {}
        }
    }

    fn has_failures(&self) -> bool {
        !(self.failing.is_empty() && self.failed_tools.is_empty())
    }

    /// Removes the failures that a sentence of the person says are over.
    fn hear(&mut self, sentence: &str) {
        match closed_by(sentence) {
            Some(ClosedFailures::Tests) => self.failing.retain(|(failed, ..)| !failed.is_test()),
            Some(ClosedFailures::Checks) => self.failing.clear(),
            Some(ClosedFailures::Last) if self.is_tool_last => self.failed_tools.clear(),
            Some(ClosedFailures::Last) => {
                self.failing.truncate(self.failing.len().saturating_sub(1))
            }
            None => {}
        }
    }
}

/// Returns whether an error says that something outside of the project is missing, which no later
/// step of the session changes: a key, a permission, a login.
fn is_about_surroundings(error: &str) -> bool {
    Words::new(error).contain(SURROUNDINGS)
}

fn failed_line(command: &str, error: &str) -> String {
    match error {
        "" => format!("`{command}` fails"),
        error => line(&format!("`{command}`: {error}"), MAX_LINE),
    }
}

/// Splits a line about a failed command: the command, and what follows it.
pub fn failed_check(line: &str) -> Option<(&str, &str)> {
    let (command, rest) = line.strip_prefix('`')?.split_once('`')?;
    Some((command, rest.trim_start_matches(':').trim()))
}
