//! Checks whether sessions are recorded, and whether the journal is healthy.

use std::time::Duration;

use anamnesis_note::id::NoteId;
use anamnesis_store::{journal, spool::Spool};
use anamnesis_text::clean::one_line;

use super::{CheckResult, Depth, Examined, REPAIR, store::DISK_HINT};
use crate::format::{ago, count, counted, size, time};

/// Time limit for the damage check.
const CHECK_LIMIT: Duration = Duration::from_secs(1);

/// Reports the last recording.
pub(super) fn recording(it: &Examined<'_>) -> CheckResult {
    let context = it.context;
    if context.environment.is_off {
        return CheckResult::look("off: ANAMNESIS_OFF is set").hint("unset ANAMNESIS_OFF");
    }
    let journal = it.journal();
    let sessions = journal.and_then(|journal| journal.sessions(None, 1).ok());
    let Some([session]) = sessions.as_deref() else {
        return CheckResult::unknown("no session recorded yet");
    };
    let id = NoteId::of_session(&session.id);
    let noted = match (context.notes.find(id), session.is_completed()) {
        (Some(path), _) if context.notes.is_forgotten(path) => "note forgotten".to_owned(),
        (Some(_), _) => format!("note #{}", id.short()),
        (None, false) => "not ended yet".to_owned(),
        (None, true) => "nothing to note".to_owned(),
    };
    CheckResult::well(format!(
        "last session {}: {}, {}, {noted}",
        ago(time(session.seen_at), context.environment.now),
        counted(session.prompts, "prompt"),
        counted(session.tool_events, "tool event")
    ))
}

/// Reports all faults of the journal, or that there are none.
pub(super) fn records(it: &Examined<'_>) -> Vec<CheckResult> {
    let mut found = Vec::new();
    let mut look = |line: String, hint: &str| found.push(CheckResult::look(line).hint(hint));
    let pending = Spool::new(&it.context.home).len();
    if pending > 0 {
        let records = count(pending, "record");
        look(
            format!("{records} pending in spool/"),
            "anamnesis internal maintain",
        );
    }
    let Some(journal) = it.journal() else {
        return found;
    };
    if let Ok(mode) = journal.log_mode()
        && mode != "wal"
    {
        look(
            format!("journal.db has no write-ahead log (mode {mode}); hooks may wait"),
            "move the store to a local disk (ANAMNESIS_HOME)",
        );
    }
    if let Ok(jobs) = journal.jobs()
        && jobs.failed > 0
    {
        let notes = counted(jobs.failed, "session note");
        let reason = one_line(&jobs.last_error.unwrap_or_default());
        look(
            format!("{notes} could not be written: {reason}"),
            "anamnesis doctor --fix   (tries again)",
        );
    }
    let used = journal.used_bytes().unwrap_or(0);
    if found.is_empty() {
        found.push(CheckResult::well(format!("{}, none pending", size(used))));
    }
    found
}

/// Checks the journal for damage within [`CHECK_LIMIT`]; `None` if it finds none.
pub(super) fn damage(it: &Examined<'_>) -> Option<CheckResult> {
    if it.depth == Depth::Quick {
        return None;
    }
    match journal::examine(&it.context.home, Some(CHECK_LIMIT)) {
        Err(error) if error.is_disk_failure() => Some(
            CheckResult::broken("the disk cannot read journal.db")
                .lines([one_line(&error.to_string())])
                .hint(DISK_HINT),
        ),
        // Other errors are reported where the journal is opened.
        Ok(None) | Err(_) => None,
        Ok(Some(reason)) => Some(
            CheckResult::broken("journal.db is damaged")
                .lines([one_line(&reason)])
                .hint(REPAIR),
        ),
    }
}
