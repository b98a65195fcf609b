//! Writes a session's note and takes it up in the index, for hooks, the deferred process and commands.

use std::{io::BufReader, ops::Range, path::Path, time::Duration};

use anamnesis_session::{
    session_note::SessionDigest,
    summary,
    transcript::{self, Transcript, TranscriptPart},
};
use anamnesis_store::{
    fs::file,
    journal::{self, Job, Journal, LOST, NOTE, Session},
    session_note::{self, Outcome, Request},
};
use chrono::{DateTime, Utc};

use crate::{context::Context, learn};

/// How long the index is waited for: a session may be waiting for this.
const INDEX_PATIENCE: Duration = Duration::from_millis(20);

/// How much of the end of a transcript is read for the last answer, in bytes.
const TRANSCRIPT_END: u64 = 4 * 1024 * 1024;

/// Writes or updates the note of a session.
pub fn write(
    context: &Context,
    journal: Option<&Journal>,
    account: &SessionDigest,
    request: &Request<'_>,
) -> Result<Outcome, anamnesis_store::notes::Error> {
    let outcome = session_note::capture(&context.notes, journal, account, request)?;
    if let Outcome::Written(stored) = &outcome {
        context.take_up(stored, INDEX_PATIENCE);
    }
    Ok(outcome)
}

/// Writes or updates the note of a session that the journal knows, and says so in the journal. Tells
/// what was wrong with the transcript, if it was needed and could not be read.
///
/// `source` is what set it off; without one it is how the session ended, if it has.
pub fn write_known(
    context: &Context,
    journal: &Journal,
    id: &str,
    source: Option<&str>,
) -> Result<Option<String>, String> {
    let written = write_session(context, journal, id, source)?;
    Ok(written.and_then(|(_, warning)| warning))
}

/// As [`write_known`], with what became of the note; none for a session that is unknown or excluded.
pub fn write_session(
    context: &Context,
    journal: &Journal,
    id: &str,
    source: Option<&str>,
) -> Result<Option<(Outcome, Option<String>)>, String> {
    let now = context.environment.now.timestamp_millis();
    let read = || Ok((journal.session(id)?, journal.session_digest(id)?));
    let (Some(session), Some(mut account)) =
        read().map_err(|error: journal::Error| error.to_string())?
    else {
        return Ok(None);
    };
    let job = Job {
        kind: NOTE.to_owned(),
        session: id.to_owned(),
        up_to: session.change,
        tries: 0,
    };
    let settle = || {
        journal.in_transaction(|journal| {
            journal.noted(id, session.change, now)?;
            journal.done(&job, now)
        })
    };
    let exclusions = context.exclusions();
    let folder = session.folder.as_deref().map(Path::new);
    if folder.is_some_and(|folder| exclusions.excludes(folder)) {
        // Excluded since; the session was still recorded.
        settle().map_err(|error| error.to_string())?;
        return Ok(None);
    }
    let completed = complete(context, journal, &session, &mut account);
    let machine_id = context.machine_id();
    let request = Request {
        session: Some(id),
        project: &session.project,
        machine_id: &machine_id,
        source: source.or_else(|| source_of(&session)),
        now: context.environment.now,
    };
    let mut outcome =
        write(context, Some(journal), &account, &request).map_err(|error| error.to_string())?;
    // A client may be gone before the hook of its end has come: the end that was heard of counts.
    let heard = journal.session(id).map_err(|error| error.to_string())?;
    let heard = heard.as_ref().and_then(source_of);
    if source.is_none() && heard.is_some() && heard != request.source {
        let request = Request {
            source: heard,
            ..request
        };
        outcome =
            write(context, Some(journal), &account, &request).map_err(|error| error.to_string())?;
    }
    settle().map_err(|error| error.to_string())?;
    if let Err(error) = learn::count(context, journal, id, learn::PATIENCE) {
        // It waits in the records.
        context.log(&format!("what session {id} used waits: {error}"));
    }
    Ok(Some((outcome, completed.err())))
}

/// The tag that tells how a session ended.
fn source_of(session: &Session) -> Option<&'static str> {
    match session.end_reason.as_deref() {
        _ if !session.is_completed() => None,
        Some(LOST) => Some(LOST),
        _ => Some("session-end"),
    }
}

/// Adds to the account of a session what only its transcript has.
///
/// That is all of it, where no event told anything and nothing of it was forgotten; the part from
/// before the install; and the answer of a turn that was broken off. What was said while recording was
/// switched off is not looked for.
fn complete(
    context: &Context,
    journal: &Journal,
    session: &Session,
    account: &mut SessionDigest,
) -> Result<(), String> {
    let path = session.transcript.as_deref().map(Path::new);
    let known = || {
        Ok((
            journal.extent(&session.id)?,
            journal.resumed_at(&session.project)?,
            journal.since()?,
            journal.unanswered_since(&session.id)?,
            journal.echoes(&session.id)?,
            journal.has_forgotten_prompt(&session.id)?,
            journal.is_unsure(&session.id)?,
        ))
    };
    let (extent, resumed, since, unanswered, echoes, has_forgotten, is_unsure) =
        known().map_err(|error: journal::Error| error.to_string())?;
    // It is unknown what was private in it, and the transcript may repeat that.
    if is_unsure && read(context, path, None, ALWAYS)?.is_some_and(|whole| whole.private) {
        return Ok(());
    }
    let time = |at: Option<i64>| at.and_then(DateTime::from_timestamp_millis);
    let start = time(resumed).unwrap_or(ALWAYS.start);
    if !extent.has_action && !has_forgotten {
        if let Some(transcript) = read(context, path, None, start..ALWAYS.end)? {
            *account = SessionDigest {
                fixed: std::mem::take(&mut account.fixed),
                ..SessionDigest::from(&transcript)
            };
        }
    } else if session.is_partial {
        let end = time(extent.first_at.into_iter().chain(since).min()).unwrap_or(ALWAYS.end);
        if let Some(earlier) = read(context, path, None, start..end)? {
            account.prepend(&SessionDigest::from(&earlier));
        }
    }
    // Only what came after the prompt: what came before it may have been private.
    if extent.has_action
        && let Some(since) = time(unanswered)
        && let Some(end) = read(context, path, Some(TRANSCRIPT_END), since..ALWAYS.end)?
        && let Some(outcome) = end.outcome
    {
        account.next_steps = summary::next_steps(&outcome);
        account.outcome = Some(outcome);
    }
    account.mask(&echoes);
    Ok(())
}

/// Reads what a session's transcript, or its end, has from a span of time; none when the client has
/// not written one yet.
pub fn read(
    context: &Context,
    path: Option<&Path>,
    end: Option<u64>,
    span: Range<DateTime<Utc>>,
) -> Result<Option<Transcript>, String> {
    let Some(path) = path else {
        return Ok(None);
    };
    let opened = open(context, path, end).map_err(|error| format!("transcript: {error}"))?;
    let Some(file) = opened else {
        return Ok(None);
    };
    let exclusions = context.exclusions();
    let part = TranscriptPart {
        span: Some(span),
        is_excluded: Some(&|folder| exclusions.excludes(Path::new(folder))),
    };
    let reader = BufReader::with_capacity(256 * 1024, file);
    let (transcript, error) = transcript::read_part(reader, part);
    if let Some(error) = error {
        context.log(&format!(
            "transcript: {error}; what came before it was taken"
        ));
    }
    Ok(Some(transcript))
}

/// All times.
pub const ALWAYS: Range<DateTime<Utc>> = DateTime::<Utc>::MIN_UTC..DateTime::<Utc>::MAX_UTC;

/// Opens a transcript; `None` when the client has not written one yet.
///
/// A path that lies elsewhere than in Claude Code's folder is somebody's attempt to have a file read
/// that is none of ours.
fn open(context: &Context, path: &Path, end: Option<u64>) -> Result<Option<std::fs::File>, String> {
    use std::io::{Seek, SeekFrom};

    if !path.exists() {
        return Ok(None);
    }
    let folder = context
        .environment
        .claude_folder
        .as_ref()
        .and_then(|folder| folder.canonicalize().ok());
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    if !folder.is_some_and(|folder| real.starts_with(folder)) {
        return Err("not in Claude Code's folder, so it was not read".to_owned());
    }
    let (mut file, metadata) = file::open_regular(&real).map_err(|error| error.to_string())?;
    if let Some(end) = end
        && metadata.len() > end
    {
        // The line that the position falls into is broken, and passed over like any other.
        file.seek(SeekFrom::Start(metadata.len() - end))
            .map_err(|error| error.to_string())?;
    }
    Ok(Some(file))
}
