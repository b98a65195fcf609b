//! Whether a command passed, as its exit status or else its output says.

use anamnesis_text::{shell::command::Command, truncate::last_characters};

use super::statement::{is_difference, is_refused, is_stopped};
use crate::event::{Outcome, ToolEvent};

/// How many characters from the end of a tool's output are searched for a test result.
const MAX_OUTPUT: usize = 4_000;

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandResult {
    Passed,
    Failed,
    /// It ended, and its result is unknown.
    Unknown,
    /// It was interrupted, or still runs.
    Unfinished,
}

/// Returns an event's command and its result.
pub(super) fn run_of(event: &ToolEvent) -> Option<(Command<'_>, CommandResult)> {
    if event.tool != "Bash" && event.tool != "PowerShell" {
        return None;
    }
    let command = Command::parse(event.input.as_ref()?.command.as_deref()?)?;
    let error = event.error.as_deref().unwrap_or_default();
    let verdict = match event.outcome {
        Outcome::Interrupted => CommandResult::Unfinished,
        Outcome::Failed if is_refused(error) => CommandResult::Unfinished,
        Outcome::Failed if is_stopped(error) && command.is_server() => CommandResult::Unfinished,
        Outcome::Failed if is_difference(error, &command) => CommandResult::Unknown,
        // The status of `check | grep x` is that of grep.
        Outcome::Failed if command.hides_exit_status => result(error),
        Outcome::Failed => CommandResult::Failed,
        Outcome::Ok => verdict(event, &command),
    };
    Some((command, verdict))
}

/// Returns the result of a command that the client reports as run.
fn verdict(event: &ToolEvent, command: &Command<'_>) -> CommandResult {
    let is_started = event
        .input
        .as_ref()
        .is_some_and(|input| input.run_in_background);
    let response = event.response.as_ref();
    if is_started || response.is_some_and(|end| end.interrupted || end.run_in_background) {
        return CommandResult::Unfinished;
    }
    let exit_code = response.and_then(|end| end.exit_code);
    if exit_code.is_some_and(|code| code != 0) {
        return CommandResult::Failed;
    }
    let output = output(event);
    if let Some(code) = output.strip_prefix("Exit code ")
        && !code.starts_with('0')
    {
        CommandResult::Failed
    } else if command.hides_exit_status {
        result(output)
    } else {
        CommandResult::Passed
    }
}

/// Returns the end of a tool's output.
pub(super) fn output(event: &ToolEvent) -> &str {
    let output = event.response.as_ref().map_or("", |end| &end.tail);
    last_characters(output, MAX_OUTPUT).trim()
}

/// Derives the result from a command's output, for commands whose exit status does not show it.
fn result(output: &str) -> CommandResult {
    const FAILS: [&str; 16] = [
        "--- FAIL",
        "BUILD FAIL",
        "ELIFECYCLE",
        "FAIL ",
        "FAIL\t",
        "FAILED",
        "No such file or directory",
        "Segmentation fault",
        "Traceback (most recent call last)",
        "command not found",
        "error TS",
        "error: ",
        "error[E",
        "fatal: ",
        "npm ERR!",
        "panicked at",
    ];
    const PASSES: [&str; 7] = [
        "BUILD SUCCESS",
        "Finished ",
        "OK (",
        "PASS",
        "ok  \t",
        "tests passed",
        "test result: ok",
    ];
    let failed = count(output, &["errors", "fail", "failed", "failing", "failures"]);
    let passed = count(output, &["pass", "passed", "passing"]);
    let passed = passed.unwrap_or(0);
    // Tests that pass may print errors. Their own count says that none failed.
    if failed == Some(0) && passed > 0 {
        CommandResult::Passed
    } else if failed > Some(0) || FAILS.iter().any(|mark| output.contains(mark)) {
        CommandResult::Failed
    } else if passed > 0 || PASSES.iter().any(|mark| output.contains(mark)) {
        CommandResult::Passed
    } else {
        CommandResult::Unknown
    }
}

/// Returns the highest number beside one of the words, as in `3 failed` or `Failures: 3`; `None` without
/// a number.
pub(super) fn count(output: &str, names: &[&str]) -> Option<u64> {
    let words =
        output.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '='));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let number = |position: usize| words.get(position)?.trim_matches(['.', ':']).parse().ok();
    let mut greatest = None;
    for (position, word) in words.iter().enumerate() {
        let name = word.trim_end_matches([':', '.', '!']).to_lowercase();
        if names.contains(&name.as_str()) {
            let before = || position.checked_sub(1).and_then(number);
            let after = || number(position + 1);
            let beside = if word.ends_with(':') {
                after().or_else(before)
            } else {
                before().or_else(after)
            };
            greatest = greatest.max(beside);
        }
    }
    greatest
}
