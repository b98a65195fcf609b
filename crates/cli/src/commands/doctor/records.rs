//! Checks whether sessions are recorded, and whether the journal is healthy.

use std::{path::Path, time::Duration};

use anamnesis_app::{capture, context::Context, event_filter, journal_repair::rows_saved};
use anamnesis_note::id::NoteId;
use anamnesis_store::{
    journal::{self, Examination, Journal, Session},
    spool::Spool,
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};

use super::{Check, Level, REPAIR};
use crate::ui;

/// Time limit for the damage check.
const CHECK_LIMIT: Duration = Duration::from_secs(1);

/// How many of the latest sessions have their transcripts checked.
const LOOKED_AT: usize = 10;

/// Reports the last recording, and sessions whose tools ran without tool events.
pub(super) fn recording(context: &Context, journal: Option<&Journal>) -> Check {
    if context.environment.is_off {
        return Check::new("recording", Level::Look, "off: ANAMNESIS_OFF is set")
            .hint("unset ANAMNESIS_OFF");
    }
    let sessions = journal.and_then(|journal| journal.sessions(None, LOOKED_AT).ok());
    let (Some(journal), Some(session)) = (journal, sessions.as_deref().and_then(<[_]>::first))
    else {
        return Check::new("recording", Level::Unknown, "no session recorded yet");
    };
    let ago = ui::ago(ui::time(session.seen_at), context.environment.now);
    let id = NoteId::of_session(&session.id);
    let noted = match (context.notes.find(id), session.is_completed()) {
        (Some(path), _) if context.notes.is_forgotten(path) => "note forgotten".to_owned(),
        (Some(_), _) => format!("note #{}", id.short()),
        (None, false) => "not ended yet".to_owned(),
        (None, true) => "nothing to note".to_owned(),
    };
    let last = format!(
        "last session {ago}: {}, {}, {noted}",
        counted(session.prompts, "prompt"),
        counted(session.tool_events, "tool event")
    );
    let silent = sessions
        .iter()
        .flatten()
        .find_map(|session| Some((session, tools_of_silent(context, journal, session)?)));
    if let Some((session, tools)) = silent {
        let mut check = Check::new(
            "recording",
            Level::Broken,
            format!(
                "{} ran in a session {}, none was recorded",
                ui::count(tools, "tool"),
                ui::ago(ui::time(session.seen_at), context.environment.now)
            ),
        )
        .hint("claude --debug   (shows why hooks do not run)");
        check.lines.push(last);
        return check;
    }
    Check::new("recording", Level::Well, last)
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
    let span = ui::time(session.started_at)..DateTime::<Utc>::MAX_UTC;
    let transcript = capture::read(context, path, None, span).ok()??;
    let is_recorded = |tool: &String| !event_filter::is_skipped_name(context, tool);
    (transcript.tools_run > 0 && transcript.tools.iter().any(is_recorded))
        .then_some(transcript.tools_run)
}

/// Reports all faults of the journal, or that there are none.
pub(super) fn records(context: &Context, journal: Option<&Journal>) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut look = |line: String, hint: String| {
        checks.push(Check::new("records", Level::Look, line).hint(hint));
    };
    let spool = Spool::new(&context.home);
    let waiting = spool.len();
    if waiting > 0 {
        look(
            format!("{} in spool/ to be taken up", wait(waiting)),
            "anamnesis internal maintain".to_owned(),
        );
    }
    let quarantine = context.home.quarantine();
    let unreadable = spool.unreadable().len();
    if unreadable > 0 {
        look(
            format!(
                "{} could not be read, moved to quarantine/",
                ui::count(unreadable, "record")
            ),
            format!(
                "rm {}/spool-*   (each is one event)",
                context.shown(&quarantine)
            ),
        );
    }
    let Some(journal) = journal else {
        return checks;
    };
    if let Ok(mode) = journal.log_mode()
        && mode != "wal"
    {
        look(
            format!("journal.db has no write-ahead log (mode {mode}); hooks may wait"),
            "move the store to a local disk (ANAMNESIS_HOME)".to_owned(),
        );
    }
    if let Ok(jobs) = journal.jobs()
        && jobs.failed > 0
    {
        let reason = jobs.last_error.unwrap_or_default();
        look(
            format!(
                "{} could not be written: {}",
                counted(jobs.failed, "session note"),
                one_line(&reason)
            ),
            "anamnesis doctor --fix   (tries again)".to_owned(),
        );
    }
    let ceiling = u64::from(context.config.retention.ceiling_mib) << 20;
    let used = journal.used_bytes().unwrap_or(0);
    if ceiling > 0 && used > ceiling {
        look(
            format!(
                "{} of records, over the ceiling of {}",
                ui::size(used),
                ui::size(ceiling)
            ),
            "anamnesis internal maintain   (lets the oldest go)".to_owned(),
        );
    }
    if checks.is_empty() {
        let kept = format!("{}, none waits", ui::size(used));
        checks.push(Check::new("records", Level::Well, kept));
    }
    let mut lines = repaired(context, journal).into_iter();
    if let Some(first) = lines.next() {
        let mut check = Check::new("records", Level::Well, first);
        check.lines.extend(lines);
        checks.push(check);
    }
    checks
}

/// Checks the journal for damage within [`CHECK_LIMIT`]; `None` if it is sound.
pub(super) fn damage(context: &Context) -> Option<Check> {
    match journal::examine(&context.home, Some(CHECK_LIMIT)) {
        // Other errors are reported where the journal is opened.
        Ok(Examination::Sound) | Err(_) => None,
        Ok(Examination::Damaged(reason)) => Some(
            Check::new("records", Level::Broken, "journal.db is damaged")
                .line(one_line(&reason))
                .hint(REPAIR),
        ),
        Ok(Examination::Unfinished) => Some(
            Check::new(
                "records",
                Level::Unknown,
                format!(
                    "journal.db: no damage in the first {} s of the check",
                    CHECK_LIMIT.as_secs()
                ),
            )
            .hint("anamnesis internal maintain   (checks all of it)"),
        ),
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
        lines.push(match context.config.retention.spool_days {
            0 => format!("it is kept as quarantine/{}", one_line(&name)),
            days => format!(
                "it is kept for {days} days as quarantine/{}",
                one_line(&name)
            ),
        });
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

fn wait(amount: usize) -> String {
    let verb = if amount == 1 { "waits" } else { "wait" };
    format!("{} {verb}", ui::count(amount, "record"))
}

fn counted(amount: i64, thing: &str) -> String {
    ui::count(usize::try_from(amount).unwrap_or(0), thing)
}
