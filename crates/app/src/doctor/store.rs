//! Checks of the store's folder and of the journal's file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anamnesis_note::id::NoteId;
use anamnesis_store::{fs::file, journal};
use anamnesis_text::clean::one_line;
use chrono::Utc;

use super::CheckResult;
use crate::context::Context;

/// The beginning of a line about a store that cannot be written.
pub(super) const NOT_RECORDED: &str = "nothing is recorded: ";

/// Creates the store's folders and writes a file there.
pub(super) fn writable(context: &Context) -> CheckResult {
    let root = context.shown(context.home.root());
    if let Err(error) = context.home.create() {
        return CheckResult::broken(error.to_string()).hint(error.hint());
    }
    let name = format!("probe-{}", NoteId::generate(Utc::now()));
    let probe = context.home.derived().join(name);
    if let Err(error) = file::write_atomic(&probe, &[0; 4096]) {
        let line = format!("{NOT_RECORDED}{root} cannot be written: {error}");
        return CheckResult::broken(line).hint("free some space, or make it writable for you");
    }
    let _ = fs::remove_file(&probe);
    if let Some(repository) = enclosing_repository(context.home.root()) {
        let repository = context.shown(&repository);
        return CheckResult::look(format!("{root} is in the git repository {repository}"))
            .hint("move it out, or your notes may be committed there: set ANAMNESIS_HOME");
    }
    let named = context.home.as_named(context.home.root());
    let target = if named == context.home.root() {
        String::new()
    } else {
        format!(" (at {})", context.home.root().display())
    };
    CheckResult::well(format!("{root}{target}, writable"))
}

/// The hint for an error of the disk. No repair helps.
pub(super) const DISK_HINT: &str =
    "the disk reports an error: check it, and copy the store to another one";

/// A store whose `journal.db` cannot be opened: hooks record nothing there.
pub(super) fn unusable_journal(error: &journal::Error) -> CheckResult {
    let finding = CheckResult::broken(one_line(&error.to_string()));
    match error {
        // This error already contains its hint.
        journal::Error::Newer(_) => finding,
        error if error.is_damage() => finding.hint("anamnesis doctor --fix"),
        error if error.is_busy() => finding.hint("try again in a moment"),
        error if error.is_disk_failure() => finding.hint(DISK_HINT),
        _ => finding.hint("move away what is in its place, or make it writable for you"),
    }
}

/// Returns the git checkout that contains the store. The store's own `memory/.git` is below it and
/// does not count.
pub fn enclosing_repository(root: &Path) -> Option<PathBuf> {
    let mut folders = root.ancestors();
    let repository = folders.find(|folder| folder.join(".git").exists())?;
    Some(repository.to_path_buf())
}
