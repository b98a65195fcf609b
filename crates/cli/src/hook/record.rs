//! Records the event in the journal or the spool, and writes the note at the end of a session.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anamnesis_app::{capture, client, error::Kind, spawn::UNREADABLE};
use anamnesis_session::{
    event::{Host, Privacy, RecordedEvent, SessionEvent, Surroundings},
    hook::{HookEvent, Payload},
    intake::Intake,
    prompt::SafePrompt,
    session_note::SessionDigest,
};
use anamnesis_store::{
    journal::{self, Audience, Journal},
    project, session_note,
    settings::config::Headless,
    spool::{Spool, Waiting},
};
use anamnesis_text::{clean::one_line, private_tokens::Key, redact::redact, sanitize::Sanitized};
use chrono::DateTime;
use ulid::Ulid;

use super::{Handled, Hook, journal_timeout};

/// How many records of the spool a hook moves to the journal, besides its own.
const MAX_DRAINED: usize = 50;

/// How many records of the spool a hook reads to find out what is private. Reading one takes
/// microseconds.
pub(super) const MAX_READ: usize = 500;

/// How long a hook waits for the journal before its record is in the spool.
pub(super) const FIRST_TIMEOUT: Duration = Duration::from_millis(100);

/// How many bytes at the end of a transcript are read for the last answer.
const TRANSCRIPT_END: u64 = 256 * 1024;

impl Hook {
    /// Stores the record in one transaction, or in the spool if the journal cannot be used. Tells
    /// whether it is in the journal.
    pub(super) fn record(
        &self,
        record: &SessionEvent,
        mut waiting: Vec<Waiting>,
        handled: &mut Handled,
        started: Instant,
    ) -> bool {
        let spool = Spool::new(&self.context.home);
        let is_start = matches!(record.what, RecordedEvent::Started { .. });
        waiting.truncate(MAX_DRAINED);
        let (stored, kept) = match &self.journal {
            Ok(journal) => {
                let timeout = journal_timeout(&self.context);
                let mut next_timeout = timeout.min(FIRST_TIMEOUT);
                let store = || {
                    journal.set_timeout(next_timeout)?;
                    next_timeout = timeout.saturating_sub(FIRST_TIMEOUT);
                    let has_job = journal.in_transaction(|journal| {
                        let mut has_job = journal.take_waiting(&mut waiting)?;
                        has_job |= journal.take(record)?;
                        self.keep_run(journal, handled, started)?;
                        Ok(has_job)
                    })?;
                    journal.set_timeout(timeout)?;
                    Ok(has_job)
                };
                let (stored, kept) =
                    spool.keep_unless_stored(record, journal::Error::is_busy, store);
                (stored.map_err(|error| error.to_string()), kept)
            }
            Err(error) => (Err(error.to_string()), spool.keep(record).map(drop)),
        };
        if let Err(error) = kept {
            handled.errors.push(format!("spool: {error}"));
        }
        match stored {
            Ok(has_job) => {
                handled.start_work |= has_job || (is_start && self.has_unfinished_sessions());
                for waiting in &waiting {
                    match spool.put_away(waiting) {
                        Ok(true) => handled.errors.push(UNREADABLE.to_owned()),
                        Ok(false) => {}
                        Err(error) => handled.errors.push(format!("spool: {error}")),
                    }
                }
                true
            }
            Err(error) => {
                handled.errors.push(error);
                // The deferred process repairs a damaged file.
                handled.start_work = true;
                false
            }
        }
    }

    /// Returns whether there are sessions without an end, or notes still to be written.
    pub(super) fn has_unfinished_sessions(&self) -> bool {
        let now = self.context.environment.now.timestamp_millis();
        self.journal.as_ref().is_ok_and(|journal| {
            journal.has_jobs(now).unwrap_or(false)
                || journal
                    .has_lost_sessions(now, client::is_running)
                    .unwrap_or(false)
        })
    }

    /// Makes the record of an event. The records in the spool come before it.
    pub(super) fn record_of(
        &self,
        payload: &Payload,
        safe: Option<Sanitized<SafePrompt>>,
        waiting: &[Waiting],
    ) -> SessionEvent {
        let environment = &self.context.environment;
        let known = self.session();
        let is_unsure = self.is_unsure(payload.prompt_id.as_deref(), waiting);
        let is_private = || {
            let journal = self.journal_to_read();
            let known =
                journal.map(|it| it.is_private(&self.session_id, payload.prompt_id.as_deref()));
            matches!(known, Some(Ok(true)))
        };
        // The row of a session that was restored after damage has no folder.
        let looks = self.is_start || known.is_none_or(|known| known.folder.is_none());
        let with_answer = self.with_last_answer(payload);
        let intake = Intake {
            private_tokens: &self.private_tokens,
            key: random_key(),
            folder: &self.folder,
            surroundings: Surroundings {
                project: looks.then(|| self.project().key.clone()),
                // A folder's name can contain a secret like any other text.
                folder: looks.then(|| kept(&self.folder.to_string_lossy())),
                transcript: payload.transcript_path.as_deref().map(kept),
                branch: looks
                    .then(|| project::branch_of(&self.folder).map(|branch| kept(&branch)))
                    .flatten(),
                // The intake makes it of the payload.
                title: None,
                client: looks
                    .then(|| client::process(environment.client_process.as_deref()))
                    .flatten(),
                host: self.host.other(),
            },
            at: environment.now.timestamp_millis(),
            is_unsure,
            // A prompt that waits behind more records than are taken at once may be private.
            may_hold: is_unsure && waiting.len() <= MAX_DRAINED && !is_private(),
        };
        let mut record = intake.record(with_answer.as_ref().unwrap_or(payload), safe);
        let is_tool = matches!(
            record.what,
            RecordedEvent::Used(_) | RecordedEvent::Delegated { .. }
        );
        let config = &self.context.config.recording;
        if is_tool && environment.is_headless && config.headless == Headless::Summary {
            record.what = RecordedEvent::Seen;
        }
        record
    }

    /// Returns the end of a turn with the answer that only the transcript has.
    fn with_last_answer(&self, payload: &Payload) -> Option<Payload> {
        if payload.event != HookEvent::Stop(None) {
            return None;
        }
        let journal = self.journal_to_read()?;
        let since = journal.unanswered_since(&self.session_id).ok()??;
        let since = DateTime::from_timestamp_millis(since)?;
        let path = payload.transcript_path.as_deref().map(Path::new);
        let span = since..capture::ALWAYS.end;
        let end = capture::read(&self.context, path, Some(TRANSCRIPT_END), span);
        Some(Payload {
            event: HookEvent::Stop(end.ok()??.outcome),
            ..payload.clone()
        })
    }

    /// Returns whether the event's prompt may be private, or the event may repeat private tokens.
    fn is_unsure(&self, prompt_id: Option<&str>, waiting: &[Waiting]) -> bool {
        !self.knows_private_tokens
            || self.journal_to_read().is_none_or(|journal| {
                journal
                    .is_private(&self.session_id, prompt_id)
                    .unwrap_or(true)
            })
            || self.is_private_in_spool(waiting, prompt_id)
    }

    /// Returns whether an event's prompt is in the spool and private. If the spool was not read
    /// completely, it may be.
    pub(super) fn is_private_in_spool(&self, waiting: &[Waiting], prompt_id: Option<&str>) -> bool {
        let records = waiting
            .iter()
            .rev()
            .filter_map(|waiting| waiting.record.as_ref());
        let mut prompts = records
            .filter(|record| record.session == self.session_id)
            .filter(|record| prompt_id.is_none_or(|id| record.prompt_id.as_deref() == Some(id)))
            .filter_map(|record| match &record.what {
                RecordedEvent::Prompted(prompt) => Some(prompt.privacy()),
                _ => None,
            });
        prompts.next() == Some(Privacy::Full) || waiting.len() >= MAX_READ
    }

    /// Records the other results of this run, within the transaction of its record.
    pub(super) fn keep_run(
        &self,
        journal: &Journal,
        handled: &Handled,
        started: Instant,
    ) -> Result<(), journal::Error> {
        let now = self.context.environment.now;
        if handled.empties_context {
            journal.context_emptied(&self.session_id)?;
        }
        if let Some(run) = &handled.run {
            journal.recalled(&self.session_id, run)?;
        }
        if let Some(task) = &handled.taken {
            journal.delegation_taken(&self.session_id, task, &self.agent)?;
        }
        for (lane, shown) in &handled.given {
            let to = Audience {
                session: &self.session_id,
                agent: &self.agent,
                lane,
            };
            journal.was_shown(to, shown, now)?;
        }
        // Both are texts for the model. No answer has both.
        if let Some(text) = handled
            .answer
            .context
            .as_ref()
            .or(handled.answer.denial.as_ref())
        {
            journal.injected(&self.session_id, &self.agent, &self.event_name, text, now)?;
        }
        if let Some(used) = &handled.used {
            used.keep(journal, &self.session_id, now)?;
        }
        for (name, value) in &handled.meta {
            journal.set_meta(name, value)?;
        }
        for (name, value) in self.known.get().map_or(&[][..], |known| &known.rows) {
            journal.set_meta(name, value)?;
        }
        let error = handled.errors.first().map(|error| kept(error));
        journal.hook_ran(&self.event_name, started.elapsed(), error.as_deref(), now)
    }

    /// Writes or updates the session's note from the journal; without a journal, from the
    /// transcript.
    pub(super) fn write_note(
        &self,
        tag: &'static str,
        is_recorded: bool,
        transcript: Option<&Path>,
        handled: &mut Handled,
    ) {
        let written = match &self.journal {
            Ok(journal) if is_recorded => {
                let tag = Some(tag);
                match capture::write_session(&self.context, journal, &self.session_id, tag) {
                    // The note is queued: the background process writes it when the lock is free.
                    Err(error) if error.kind() == Kind::Busy => Ok(None),
                    written => written.map(|written| written.and_then(|(_, warning)| warning)),
                }
            }
            // The journal queues the note when it takes the record from the spool.
            Ok(_) => Ok(None),
            Err(_) => self.write_from_transcript(tag, transcript).map(|()| None),
        };
        // The note was written without the transcript, or not at all.
        match written.map_err(|error| error.to_string()) {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => {
                // The run is already recorded. `doctor` reports the error.
                if let Ok(journal) = &self.journal {
                    let _ = journal.run_failed(&self.event_name, &kept(&error));
                }
                handled.errors.push(error);
            }
        }
    }

    pub(super) fn write_from_transcript(
        &self,
        tag: &str,
        path: Option<&Path>,
    ) -> Result<(), anamnesis_app::Error> {
        let Some(transcript) = capture::read(&self.context, path, None, capture::ALWAYS)? else {
            return Ok(());
        };
        let machine_id = self.context.machine_id();
        let request = session_note::Request {
            session: Some(&self.session_id),
            project: &self.project().key,
            machine_id: &machine_id,
            source: Some(tag),
            change: None,
            host: self.host.other().map(Host::as_str),
            now: self.context.environment.now,
        };
        capture::write(
            &self.context,
            None,
            &SessionDigest::from(&transcript),
            &request,
        )
        .map(drop)
        .map_err(Into::into)
    }
}

/// A key for what this run marks as private.
pub(super) fn random_key() -> Key {
    // Each has ten random bytes.
    let [high, low] = [(); 2].map(|()| Ulid::generate().random());
    Key::new(((high << 64) ^ low).to_le_bytes())
}

/// Redacts a text for the journal.
pub(super) fn kept(text: &str) -> String {
    redact(&one_line(text)).text.into_owned()
}
