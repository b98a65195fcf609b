//! Checks of file modes, settings, variables and projects.

use std::path::Path;

use anamnesis_store::{project::Places, settings::TRUSTED_VARIABLES};
use anamnesis_text::clean::one_line;

use super::{CheckResult, Depth, Examined};
use crate::{
    context::Context,
    embedding::InstalledModel,
    format::number,
    pause::{self, Off},
};

/// Reports variables of this shell that sessions ignore, so that hooks and commands would disagree.
pub(super) fn ignored_variables(it: &Examined<'_>) -> Option<CheckResult> {
    let names = it.context.environment.ignored_in_sessions();
    if names.is_empty() {
        return None;
    }
    let listed = names.join(", ");
    let line = format!("hooks and the server ignore {listed}: a project could set it, too");
    let names = names.join(" ");
    Some(CheckResult::look(line).hint(format!("anamnesis config set {TRUSTED_VARIABLES} {names}")))
}

/// Reports who can read the store, and why nothing is recorded here.
pub(super) fn privacy(it: &Examined<'_>) -> CheckResult {
    let context = it.context;
    let mut finding = modes_and_settings(context, it.depth);
    // The variable is reported in another row.
    let off = pause::here(context).filter(|off| *off != Off::Variable);
    if let Some(off) = off {
        let reason = off.reason();
        finding
            .lines
            .push(format!("off: {reason}; nothing is recorded or injected"));
        finding.hint.get_or_insert_with(|| off.hint().to_owned());
    }
    finding
}

fn modes_and_settings(context: &Context, depth: Depth) -> CheckResult {
    let is_closed = depth == Depth::Quick && !context.home.is_open_to_others();
    let open = if is_closed {
        Vec::new()
    } else {
        context.home.open_to_others()
    };
    if let Some((first, mode)) = open.first() {
        let path = match context.home.relative(first) {
            path if path.is_empty() => "the store itself".to_owned(),
            path => path,
        };
        let more = match open.len() {
            1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        return CheckResult::look(format!("others can read {path} (mode {mode:o}){more}"))
            .hint("anamnesis doctor --fix");
    }
    match &context.config.problem {
        Some(problem) if context.config.is_unclear => {
            CheckResult::look(problem).hint(Off::Settings.hint())
        }
        Some(problem) => CheckResult::look(problem).hint("fix config.json, or remove it"),
        None => CheckResult::well("for you alone"),
    }
}

/// Reports whether notes are found by meaning, if an embedding model was added.
pub(super) fn embedding_model(it: &Examined<'_>) -> Option<CheckResult> {
    let model = InstalledModel::find(&it.context.home)?;
    // The check makes a vector, which takes longer than all quick checks.
    if it.depth == Depth::Thorough
        && let Err(error) = model.check()
    {
        let line = format!("words alone: {error}");
        return Some(CheckResult::broken(line).hint("anamnesis config model add FILE"));
    }
    let counts = it.index()?.count_embeddings().ok()?;
    let (done, total) = (number(counts.done), number(counts.total));
    Some(CheckResult::well(format!(
        "words and meaning; {done} of {total} notes have a vector"
    )))
}

/// Reports folders whose project is ambiguous.
pub(super) fn projects(it: &Examined<'_>) -> Option<CheckResult> {
    let doubts = Places::new(it.journal()).doubts().ok()?;
    let shown = |folder: &Path| one_line(&it.context.shown(folder));
    let shared = doubts.shared.iter().map(|(key, folders)| {
        let folders: Vec<_> = folders.iter().map(|folder| shown(folder)).collect();
        format!("{} share the notes of \"{key}\"", folders.join(" and "))
    });
    let untrusted = doubts.untrusted.iter().map(|(key, folder)| {
        let folder = shown(folder);
        format!("{folder} asks for the notes of {}", one_line(key))
    });
    let mut lines = shared.chain(untrusted);
    let finding = CheckResult::look(lines.next()?).lines(lines);
    Some(finding.hint(if doubts.shared.is_empty() {
        "anamnesis project trust FOLDER   (gives them to it)"
    } else {
        "name one apart: write another name into its .anamnesis/project"
    }))
}
