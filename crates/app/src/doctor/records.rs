//! Checks whether sessions are recorded, and whether the journal is healthy.

use std::{path::Path, time::Duration};

use anamnesis_note::id::NoteId;
use anamnesis_store::{
    journal::{self, DAMAGED_DAYS, Examination, Journal, Session},
    spool::Spool,
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};

use super::{CheckResult, Depth, Examined, REPAIR, store::DISK_HINT};
use crate::{
    capture,
    context::Context,
    event_filter,
    format::{ago, count, counted, size, time},
    journal_repair::rows_saved,
};

/// Time limit for the damage check.
const CHECK_LIMIT: Duration = Duration::from_secs(1);

/// How many of the latest sessions have their transcripts checked.
const LOOKED_AT: usize = 10;

/// Reports the last recording, and sessions whose tools ran without tool events.
pub(super) fn recording(it: &Examined<'_>) -> CheckResult {
    let context = it.context;
    if context.environment.is_off {
        return CheckResult::look("off: ANAMNESIS_OFF is set").hint("unset ANAMNESIS_OFF");
    }
    let journal = it.journal();
    let sessions = journal.and_then(|journal| journal.sessions(None, LOOKED_AT).ok());
    let (Some(journal), Some([session, ..])) = (journal, sessions.as_deref()) else {
        return CheckResult::unknown("no session recorded yet");
    };
    let ago_of = |session: &Session| ago(time(session.seen_at), context.environment.now);
    let id = NoteId::of_session(&session.id);
    let noted = match (context.notes.find(id), session.is_completed()) {
        (Some(path), _) if context.notes.is_forgotten(path) => "note forgotten".to_owned(),
        (Some(_), _) => format!("note #{}", id.short()),
        (None, false) => "not ended yet".to_owned(),
        (None, true) => "nothing to note".to_owned(),
    };
    let last = format!(
        "last session {}: {}, {}, {noted}",
        ago_of(session),
        counted(session.prompts, "prompt"),
        counted(session.tool_events, "tool event")
    );
    let silent = sessions
        .iter()
        .flatten()
        .find_map(|session| Some((session, tools_of_silent(context, journal, session)?)));
    let Some((session, tools)) = silent else {
        return CheckResult::well(last);
    };
    let (tools, ago) = (count(tools, "tool"), ago_of(session));
    CheckResult::broken(format!("{tools} ran in a session {ago}, none was recorded"))
        .lines([last])
        .hint("claude --debug   (shows why hooks do not run)")
}

/// Counts the tools that ran, according to the transcript, in a session without tool events.
fn tools_of_silent(context: &Context, journal: &Journal, session: &Session) -> Option<usize> {
    if session.prompts == 0 || session.tool_events > 0 {
        return None;
    }
    // Events of a private prompt are not recorded, but a hook has seen them.
    let prompts = journal.prompts(&session.id).ok()?;
    let was_paused = journal.resumed_at(&session.project).ok()?;
    if prompts.iter().any(|prompt| prompt.suppressed > 0)
        || was_paused.is_some_and(|at| at > session.started_at)
    {
        return None;
    }
    let path = session.transcript.as_deref().map(Path::new);
    // Anything before the first event is from before the install.
    let span = time(session.started_at)..DateTime::<Utc>::MAX_UTC;
    let transcript = capture::read(context, path, None, span).ok()??;
    let is_recorded = |tool: &String| !event_filter::is_skipped_name(context, tool);
    (transcript.tools_run > 0 && transcript.tools.iter().any(is_recorded))
        .then_some(transcript.tools_run)
}

/// Reports all faults of the journal, or that there are none.
pub(super) fn records(it: &Examined<'_>) -> Vec<CheckResult> {
    let context = it.context;
    let mut found = Vec::new();
    let mut look = |line: String, hint: &str| found.push(CheckResult::look(line).hint(hint));
    let spool = Spool::new(&context.home);
    let pending = spool.len();
    if pending > 0 {
        let records = count(pending, "record");
        look(
            format!("{records} pending in spool/"),
            "anamnesis internal maintain",
        );
    }
    let unreadable = spool.unreadable().len();
    if unreadable > 0 {
        let records = count(unreadable, "record");
        let quarantine = context.shown(&context.home.quarantine());
        look(
            format!("{records} could not be read, moved to quarantine/"),
            &format!("rm {quarantine}/spool-*   (each is one event)"),
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
    let mut repairs = repaired(context, journal).into_iter();
    found.extend(
        repairs
            .next()
            .map(|first| CheckResult::well(first).lines(repairs)),
    );
    found
}

/// Checks the journal for damage within [`CHECK_LIMIT`]; `None` if it is sound.
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
        Ok(Examination::Sound) | Err(_) => None,
        Ok(Examination::Damaged(reason)) => Some(
            CheckResult::broken("journal.db is damaged")
                .lines([one_line(&reason)])
                .hint(REPAIR),
        ),
        Ok(Examination::Unfinished) => {
            let limit = CHECK_LIMIT.as_secs();
            let line = format!("journal.db: no damage in the first {limit} s of the check");
            Some(
                CheckResult::unknown(line).hint("anamnesis internal maintain   (checks all of it)"),
            )
        }
    }
}

/// The damaged files in `quarantine/`, oldest first.
fn repaired(context: &Context, journal: &Journal) -> Vec<String> {
    let last = journal.last_repair().ok().flatten();
    let mut lines = Vec::new();
    for name in journal::kept_files(&context.home) {
        let repair = last.as_ref().filter(|repair| repair.kept == name);
        let saved = repair.map_or_else(String::new, |repair| format!(": {}", rows_saved(repair)));
        lines.push(format!(
            "journal.db was damaged on {}{saved}",
            day_of(&name)
        ));
        lines.push(format!(
            "it is kept for {DAMAGED_DAYS} days as quarantine/{}",
            one_line(&name)
        ));
    }
    lines
}

/// Formats the date in the name of a quarantined database.
fn day_of(name: &str) -> String {
    let day = name.get("journal-".len().."journal-".len() + 8);
    match day.map(|day| (day.get(..4), day.get(4..6), day.get(6..))) {
        Some((Some(year), Some(month), Some(day))) => format!("{year}-{month}-{day}"),
        _ => "an unknown day".to_owned(),
    }
}
