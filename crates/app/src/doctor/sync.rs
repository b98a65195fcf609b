//! Checks of sync and the configured model.

use std::path::PathBuf;

use anamnesis_sync::set_aside_repositories;
use anamnesis_text::clean::one_line;

use super::{CheckResult, Examined};
use crate::{auto_reflect, model, remote, summary, sync::SyncStatus};

/// Reports how notes are synced, if a remote is set.
pub(super) fn synced(it: &Examined<'_>) -> CheckResult {
    if let Some(finding) = remote_address(it) {
        return finding;
    }
    let standing = SyncStatus::load(it.context, it.journal());
    let text = standing.text(it.context.environment.now);
    if standing.needs_attention() {
        CheckResult::look(text).hint(standing.advice())
    } else {
        CheckResult::well(text)
    }
}

/// Reports an invalid remote, in the settings or from the plugin's options.
fn remote_address(it: &Examined<'_>) -> Option<CheckResult> {
    if let Some(problem) = remote::problem(it.context) {
        let finding = CheckResult::look("the remote that is set cannot be used:").lines([problem]);
        return Some(finding.hint("anamnesis config set remote URL, or: config unset remote"));
    }
    let problem = remote::refused(it.journal()?)?;
    let line = "the remote in the options of the plugin cannot be used:";
    let hint = "/plugin configure anamnesis@anamnesis   (in Claude Code)";
    Some(CheckResult::look(line).lines([problem]).hint(hint))
}

/// Reports damaged repositories that were set aside.
pub(super) fn replaced_repositories(it: &Examined<'_>) -> Vec<CheckResult> {
    let context = it.context;
    let folders = set_aside_repositories(&context.home).into_iter();
    let finding = |folder: PathBuf| {
        let place = one_line(&context.home.relative(&folder));
        let path = one_line(&context.shown(&folder));
        CheckResult::look(format!(
            "memory/.git was damaged and replaced; the old one is {place}"
        ))
        .hint(format!(
            "rm -rf {path}   (when no note and no history is missing)"
        ))
    };
    folders.map(finding).collect()
}

/// Reports the state of the configured model.
pub(super) fn named_model(it: &Examined<'_>) -> Option<CheckResult> {
    let model = match model::checked(it.context) {
        Ok(model) => model?,
        Err(error) => {
            let hint = error.next_step().unwrap_or_default();
            return Some(CheckResult::look(error.message()).hint(hint));
        }
    };
    let line = format!("{}, at {}", one_line(&model.label()), model.receiver());
    let journal = it.journal();
    let summaries = journal.and_then(|journal| summary::problem(it.context, journal));
    let reflection = journal.and_then(auto_reflect::problem);
    let reflection = reflection.map(|problem| format!("the last reflection: {problem}"));
    let problems: Vec<String> = summaries.into_iter().chain(reflection).collect();
    if problems.is_empty() {
        return Some(CheckResult::well(line));
    }
    let hint = "anamnesis config test; the budget: anamnesis config list";
    Some(CheckResult::look(line).lines(problems).hint(hint))
}
