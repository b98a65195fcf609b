//! Fixes what needs no decision.

use std::{path::Path, time::Duration};

use anamnesis_note::{
    merge::without_conflict_markers,
    note::{Scope, Unreadable},
};
use anamnesis_store::{
    fs::lock::{self, Subject},
    index::Index,
    journal::{self, Repair},
    notes::{self, NotePath},
};

use crate::{
    Error,
    context::{Context, TIMEOUT},
    format::count,
    journal_repair, spawn, spool, sync,
};

/// Timeout for the deferred process. It repairs the journal itself.
const WORK_TIMEOUT: Duration = Duration::from_secs(2);

/// Fixes file modes, the index, damaged and pending records; returns what was fixed.
pub fn repair(context: &Context) -> Vec<String> {
    let mut fixed = Vec::new();
    for (path, mode) in context.home.open_to_others() {
        if close(&path) {
            let path = context.home.relative(&path);
            fixed.push(format!("{path} was open to others (mode {mode:o})"));
        }
    }
    match repair_journal(context) {
        Ok(repair) => fixed.extend(repair.map(|it| journal_repair::sentence(context, &it))),
        Err(error) => context.log(&format!("doctor: not repaired: {error}")),
    }
    let synced = sync::repair(context, Duration::from_secs(10));
    fixed.extend(synced.ok().flatten());
    if let Some(journal) = context.journal() {
        if let Ok(drained @ 1..) = spool::drain(context, &journal) {
            fixed.push(format!(
                "{} moved from spool/ to the journal",
                count(drained, "record")
            ));
        }
        let now = context.environment.now.timestamp_millis();
        if let Ok(jobs @ 1..) = journal.retry(now) {
            let jobs = count(jobs, "job");
            fixed.push(format!("{jobs} that had failed will be tried again"));
        }
        if journal.has_jobs(now).unwrap_or(false) {
            let _ = spawn::start_work(&context.environment, false);
        }
    }
    let is_sound = Index::open(&context.home).is_ok_and(|index| index.integrity().is_ok());
    let timeout = Duration::from_secs(60);
    if !is_sound && Index::rebuild(&context.home, &context.notes, timeout).is_ok() {
        fixed.push("the index was rebuilt".to_owned());
    }
    if let Ok(notes @ 1..) = indent_markers(context) {
        let notes = count(notes, "note");
        fixed.push(format!(
            "git's conflict markers in {notes} of this machine are indented; both texts stay"
        ));
    }
    fixed
}

/// Repairs the journal if it is damaged. The deferred process may have it open, and its commits would
/// fail.
fn repair_journal(context: &Context) -> Result<Option<Repair>, journal::Error> {
    let held = lock::acquire(&context.home, Subject::Work, WORK_TIMEOUT)?;
    let _held = held.ok_or(journal::Error::Locked)?;
    journal_repair::repair(context, TIMEOUT)
}

/// Makes notes in `local/` readable that have conflict markers, and returns how many. No merge
/// happens there, so a person typed or pasted the markers.
fn indent_markers(context: &Context) -> Result<usize, Error> {
    let mut indented = 0;
    // The open index holds its lock, which comes after that of the notes.
    let problems = context.index()?.problems()?;
    for problem in problems {
        let Ok(path) = problem.path.parse::<NotePath>() else {
            continue;
        };
        let is_marked = matches!(
            context.notes.read(path),
            Err(notes::Error::Unreadable {
                source: Unreadable::ConflictMarkers,
                ..
            })
        );
        if path.scope != Scope::MachineLocal || !is_marked {
            continue;
        }
        let lock = context.notes.lock()?;
        let bytes = context.notes.bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = without_conflict_markers(&text);
        context.notes.overwrite(&lock, path, text.as_bytes())?;
        indented += 1;
    }
    Ok(indented)
}

#[cfg(unix)]
fn close(path: &Path) -> bool {
    use std::{fs, os::unix::fs::PermissionsExt};
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).is_ok()
}

#[cfg(not(unix))]
fn close(_: &Path) -> bool {
    false
}
