//! Stores records. The result does not depend on their order or on duplicates.

use std::borrow::Cow;

use anamnesis_session::{
    event::{
        Host, Outcome, Privacy, RecordedEvent, SessionEvent, Speaker, Surroundings, ToolEvent,
    },
    observe,
    prompt::SafePrompt,
    transcript::scheduled,
    turn,
};
use anamnesis_text::hash::text_hash;
use rusqlite::{Row, params};
use serde_json::{Value, json};

use super::{Error, Journal, Queries, SINCE};
use crate::spool::Waiting;

/// The number of tool events of a session that are stored in full.
const MAX_WHOLE_EVENTS: i64 = 5_000;

/// The time within which two equal prompts without an id are the same, milliseconds.
const SAME_PROMPT: i64 = 10_000;

/// The age at which the note of an open session is written again, milliseconds.
const MAX_NOTE_AGE: i64 = 15 * 60 * 1000;

/// The end reason of a lost session.
pub const LOST: &str = "lost";

/// A session's row before the record.
#[derive(Default)]
struct Before {
    is_completed: bool,
    was_lost: bool,
    tool_events: i64,
}

impl Before {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let is_completed = row.get::<_, String>(0)? == "completed";
        let reason: Option<String> = row.get(1)?;
        Ok(Self {
            is_completed,
            was_lost: is_completed && reason.as_deref() == Some(LOST),
            tool_events: row.get(2)?,
        })
    }
}

/// The prompt of an event.
pub(super) struct Owner {
    pub(super) number: i64,
    pub(super) is_private: bool,
    is_own_command: bool,
}

/// Returns the part of a tool call that a summary names: the pattern of a search, or a command that
/// passed.
fn subject_of(event: &ToolEvent) -> Option<String> {
    if event.outcome != Outcome::Ok {
        return None;
    }
    event.search().or_else(|| observe::passed_command(event))
}

impl Journal {
    /// Stores an event and returns whether a note is queued; a duplicate changes nothing. Call it in
    /// [`Journal::in_transaction`].
    pub fn take(&self, record: &SessionEvent) -> Result<bool, Error> {
        if let RecordedEvent::Hidden { begins } = record.what {
            return self.hide_turn(record, begins).map(|()| false);
        }
        let before = self.take_session(record)?;
        self.take_echoes(record)?;
        let session = &record.session;
        let settled = self.settled(record)?;
        let what = settled.as_ref().unwrap_or(&record.what);
        match what {
            RecordedEvent::Started { source, model } => {
                self.take_start(record, source, model.as_deref())?;
            }
            RecordedEvent::Prompted(prompt) => {
                let mut prompt = Cow::Borrowed(prompt);
                if prompt.is_held() {
                    // A repair may have lost private tokens: the prompt stays without text then.
                    let is_complete = !self.may_lack_private_tokens(session, record.at)?;
                    let tokens = is_complete.then(|| self.echoes(session)).transpose()?;
                    prompt.to_mut().settle(tokens.as_ref());
                }
                // Two processes may store the same prompt from the spool.
                if self.take_prompt(record, &prompt)? {
                    self.reopen(session)?;
                }
            }
            RecordedEvent::Delegated { id, kind, prompt } => {
                let owner = self.owner(session, record.prompt_id.as_deref())?;
                if owner.is_none_or(|owner| !owner.is_private) {
                    self.add_delegation(record, id, kind, prompt)?;
                }
            }
            RecordedEvent::Used(events) => {
                let owner = self.owner(session, record.prompt_id.as_deref())?;
                let mut stored = before.tool_events;
                for event in events {
                    stored +=
                        i64::from(self.take_tool_event(record, owner.as_ref(), event, stored)?);
                }
            }
            RecordedEvent::Spoke { speaker, text } => {
                self.take_turn_end(record, *speaker, text.as_deref())?;
                if *speaker == Speaker::Main {
                    self.settle(session, record.at)?;
                }
            }
            RecordedEvent::Ended { reason } => {
                self.run(
                    "UPDATE session SET change = change + (state <> 'completed'),
                           state = 'completed', ended_at = ?, end_reason = ? WHERE id = ?",
                    params![record.at, reason, session],
                )?;
                self.settle(session, record.at)?;
            }
            RecordedEvent::Compacting => {
                // What was before the first record is only in the transcript, and needs a note, too.
                let sql = "UPDATE session SET change = 1 WHERE id = ? AND change = 0";
                self.run(sql, [session])?;
                self.settle(session, record.at)?;
            }
            RecordedEvent::Hidden { .. } | RecordedEvent::Seen => {}
        }
        let is_action = matches!(what, RecordedEvent::Used(_) | RecordedEvent::Spoke { .. });
        if before.was_lost && is_action {
            // The session was not lost after all.
            self.reopen(session)?;
        } else if before.is_completed && is_action {
            // Events after the end still belong to the session.
            self.settle(session, record.at)?;
        }
        let has_job = match &record.what {
            RecordedEvent::Ended { .. } | RecordedEvent::Compacting => {
                self.queue_note(session, record.at)?
            }
            // The hook of the last answer may be slower than that of the end.
            RecordedEvent::Spoke {
                speaker: Speaker::Main,
                ..
            } => {
                (before.is_completed || self.is_note_old(session, record.at)?)
                    && self.queue_note(session, record.at)?
            }
            _ => false,
        };
        Ok(has_job)
    }

    /// Stores the records of the spool, in order, and returns whether a note is queued. Call it in
    /// [`Journal::in_transaction`]; delete the files after the commit.
    ///
    /// A record that violates a constraint counts as unreadable, so that it does not block the
    /// records after it.
    pub fn take_waiting(&self, waiting: &mut [Waiting]) -> Result<bool, Error> {
        let mut has_job = false;
        for waiting in waiting {
            let Some(record) = &waiting.record else {
                continue;
            };
            self.connection.execute_batch("SAVEPOINT waiting")?;
            match self.take(record) {
                Ok(has_one) => has_job |= has_one,
                Err(error) if error.is_refusal() => {
                    self.connection.execute_batch("ROLLBACK TO waiting")?;
                    waiting.record = None;
                }
                Err(error) => return Err(error),
            }
            self.connection.execute_batch("RELEASE waiting")?;
        }
        Ok(has_job)
    }

    /// Updates the times of a session that has a row, for a record that says nothing else of it.
    fn take_known(&self, record: &SessionEvent) -> Result<Option<Before>, Error> {
        let transcript = &record.surroundings.transcript;
        let bare = Surroundings {
            transcript: transcript.clone(),
            host: record.surroundings.host,
            ..Surroundings::default()
        };
        if record.private || record.surroundings != bare {
            return Ok(None);
        }
        self.one(
            "UPDATE session SET started_at = min(started_at, ?2), seen_at = max(seen_at, ?2),
                   transcript = coalesce(?3, transcript)
                 WHERE id = ?1 RETURNING state, end_reason, tool_events",
            params![record.session, record.at, transcript],
            Before::read,
        )
    }

    /// Creates the session's row, or adds missing values.
    fn take_session(&self, record: &SessionEvent) -> Result<Before, Error> {
        if let Some(before) = self.take_known(record)? {
            return Ok(before);
        }
        let known = self.one(
            "SELECT state, end_reason, tool_events FROM session WHERE id = ?",
            [&record.session],
            Before::read,
        )?;
        let surroundings = &record.surroundings;
        let client = surroundings.client;
        // A session whose start was not recorded may be partial; see `take_start`.
        self.run("INSERT INTO session (id, project, folder, transcript, branch, client_process, client_started,
                   is_private, started_at, seen_at, is_partial, host, title)
                 VALUES (?1, coalesce(?2, 'global'), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, 1, ?10, ?11)
                 ON CONFLICT (id) DO UPDATE SET
                   project = CASE WHEN project = 'global' THEN coalesce(?2, project) ELSE project END,
                   folder = coalesce(folder, ?3), transcript = coalesce(?4, transcript),
                   branch = coalesce(branch, ?5),
                   change = change + (coalesce(?11, title) IS NOT title), title = coalesce(?11, title),
                   client_started = CASE WHEN ?6 IS NULL THEN client_started ELSE ?7 END,
                   client_process = coalesce(?6, client_process),
                   is_private = max(is_private, ?8),
                   started_at = min(started_at, ?9), seen_at = max(seen_at, ?9)", params![
                record.session,
                surroundings.project,
                surroundings.folder,
                surroundings.transcript,
                surroundings.branch,
                client.map(|client| client.id.to_string()),
                client.and_then(|client| client.started),
                record.private,
                record.at,
                surroundings.host.map(Host::as_str),
                surroundings.title,
            ])?;
        if known.is_none() {
            self.set_if_missing(SINCE, &record.at.to_string())?;
        }
        Ok(known.unwrap_or_default())
    }

    fn take_start(
        &self,
        record: &SessionEvent,
        source: &str,
        model: Option<&str>,
    ) -> Result<(), Error> {
        // A new session is recorded from its start. A resumed one may have a part from before the
        // installation.
        let is_new = matches!(source, "startup" | "clear" | "fork");
        self.run("UPDATE session SET source = coalesce(source, ?2), model = coalesce(model, ?3),
                   is_partial = CASE WHEN ?4 THEN 0 ELSE is_partial END,
                   state = CASE WHEN prompts = 0 AND tool_events = 0 AND state = 'active' THEN 'initialized'
                           ELSE state END
                 WHERE id = ?1", params![record.session, source, model, is_new])?;
        // A `startup` event after the session's end arrived late. Any other start reopens the
        // session.
        if !is_new {
            self.reopen(&record.session)?;
        }
        if matches!(source, "clear" | "resume" | "fork") {
            self.inherit_schedule(record)?;
        }
        Ok(())
    }

    fn reopen(&self, session: &str) -> Result<(), Error> {
        self.run(
            "UPDATE session SET state = 'active', ended_at = NULL, end_reason = NULL WHERE id = ?",
            [session],
        )
    }

    fn take_echoes(&self, record: &SessionEvent) -> Result<(), Error> {
        for echo in &record.echoes {
            let sql = "INSERT OR IGNORE INTO private_token VALUES (?, ?, ?)";
            let (key, hash) = (echo.key.to_bytes(), echo.hash.to_bytes());
            self.run(sql, params![record.session, key, hash])?;
        }
        Ok(())
    }

    /// Stores a prompt. Returns false if it is known already.
    fn take_prompt(&self, record: &SessionEvent, prompt: &SafePrompt) -> Result<bool, Error> {
        let (kind, text) = (prompt.kind(), prompt.text());
        let session = &record.session;
        let is_known = if let Some(id) = &record.prompt_id {
            self.exists(
                "SELECT 1 FROM prompt WHERE session = ? AND id = ?",
                params![session, id],
            )?
        } else {
            self.exists("SELECT 1 FROM prompt WHERE session = ? AND text IS ? AND kind = ? AND abs(at - ?) < ?", params![session, text, kind.as_str(), record.at, SAME_PROMPT])?
        };
        if is_known {
            return Ok(false);
        }
        // After damage the count may be lower than the last number.
        let number: i64 = self
            .value(
                "UPDATE session SET change = change + 1,
                   prompts = 1 + max(prompts, coalesce((SELECT max(number) FROM prompt WHERE session = ?1), 0)),
                   first_prompt = CASE WHEN ?2 THEN coalesce(first_prompt, ?3) ELSE first_prompt END
                 WHERE id = ?1 RETURNING prompts",
                params![session, kind.is_request(), text],
            )?;
        self.run(
            "INSERT INTO prompt (session, id, number, kind, privacy, text, many_tags, at)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                session,
                record.prompt_id,
                number,
                kind.as_str(),
                prompt.privacy().as_str(),
                text,
                prompt.many_tags(),
                record.at,
            ],
        )?;
        if let Some(id) = &record.prompt_id {
            if prompt.privacy() == Privacy::Full {
                self.suppress_all_of(session, id, number)?;
            } else {
                self.run("UPDATE tool_event SET prompt = ?3 WHERE session = ?1 AND prompt_id = ?2 AND prompt IS NULL", params![session, id, number])?;
            }
        }
        Ok(true)
    }

    /// Deletes what was stored of a prompt before it turned out to be private.
    fn suppress_all_of(&self, session: &str, id: &str, number: i64) -> Result<(), Error> {
        let collected = "INSERT OR IGNORE INTO suppressed
             SELECT session, ?3, id FROM tool_event WHERE session = ?1 AND prompt_id = ?2
             UNION ALL
             SELECT session, ?3, 'turn ' || agent_id FROM turn_end WHERE session = ?1 AND prompt_id = ?2";
        self.run(collected, params![session, id, number])?;
        for statement in [
            "DELETE FROM tool_event WHERE session = ? AND prompt_id = ?",
            "DELETE FROM turn_end WHERE session = ? AND prompt_id = ?",
        ] {
            self.run(statement, params![session, id])?;
        }
        self.count_suppressed(session, number)
    }

    fn suppress(&self, session: &str, number: i64, event: &str) -> Result<(), Error> {
        self.run(
            "INSERT OR IGNORE INTO suppressed VALUES (?, ?, ?)",
            params![session, number, event],
        )?;
        self.count_suppressed(session, number)
    }

    pub(super) fn count_suppressed(&self, session: &str, number: i64) -> Result<(), Error> {
        self.run(
            "UPDATE prompt SET suppressed =
                   (SELECT count(*) FROM suppressed WHERE session = ?1 AND prompt = ?2)
                 WHERE session = ?1 AND number = ?2",
            params![session, number],
        )
    }

    /// Returns the event with the texts that were kept until the private tokens are known. A repair may
    /// have lost some: they are left out then.
    fn settled(&self, record: &SessionEvent) -> Result<Option<RecordedEvent>, Error> {
        let (session, prompt_id) = (&record.session, record.prompt_id.as_deref());
        if record.unmasked.is_empty()
            || self.is_private(session, prompt_id)?
            || self.may_lack_private_tokens(session, record.at)?
        {
            return Ok(None);
        }
        Ok(record.settled(&self.echoes(session)?))
    }

    /// Returns whether events of this prompt are not stored, or may not be. A caller can then skip
    /// making the record.
    pub fn is_private(&self, session: &str, prompt_id: Option<&str>) -> Result<bool, Error> {
        let owner = self.owner(session, prompt_id)?;
        Ok(owner.is_some_and(|owner| owner.is_private) || self.is_unsure(session)?)
    }

    /// Returns the prompt of an event: the one it names, otherwise the newest one.
    pub(super) fn owner(
        &self,
        session: &str,
        prompt_id: Option<&str>,
    ) -> Result<Option<Owner>, Error> {
        let found: Option<(i64, String, Option<String>)> = if let Some(id) = prompt_id {
            let sql = "SELECT number, privacy, CASE kind WHEN 'command' THEN text END FROM prompt
                 WHERE session = ? AND id = ?";
            self.first_tuple(sql, [session, id])?
        } else {
            let sql = "SELECT number, privacy, CASE kind WHEN 'command' THEN text END FROM prompt
                 WHERE session = ? ORDER BY number DESC LIMIT 1";
            self.first_tuple(sql, [session])?
        };
        Ok(found.map(|(number, privacy, command)| Owner {
            number,
            // An unknown value may be damage, so it counts as private.
            is_private: Privacy::parse(&privacy).is_none_or(|it| it == Privacy::Full),
            is_own_command: command.is_some_and(|command| turn::is_own_command(&command)),
        }))
    }

    fn add_delegation(
        &self,
        record: &SessionEvent,
        id: &str,
        kind: &str,
        prompt: &str,
    ) -> Result<(), Error> {
        self.run("INSERT OR IGNORE INTO delegation (session, id, kind, prompt, at) VALUES (?, ?, ?, ?, ?)", params![record.session, id, kind, prompt, record.at])
    }

    /// Stores a tool event. Returns whether it is new.
    fn take_tool_event(
        &self,
        record: &SessionEvent,
        owner: Option<&Owner>,
        event: &ToolEvent,
        stored: i64,
    ) -> Result<bool, Error> {
        let session = &record.session;
        let private = owner.filter(|owner| owner.is_private);
        let scheduled = match private {
            Some(_) => scheduled::hash_in(event),
            None => scheduled::prompt_of(event),
        };
        if let Some(prompt) = scheduled {
            self.add_delegation(record, &event.id, &event.tool, prompt)?;
        }
        if let Some(owner) = private {
            self.suppress(session, owner.number, &event.id)?;
            return Ok(false);
        }
        let is_whole = stored < MAX_WHOLE_EVENTS;
        let text_of = |value: Option<Value>| value.filter(|_| is_whole).map(|it| it.to_string());
        let input = text_of(event.input.as_ref().map(|input| json!(input)));
        let response = text_of(event.response.as_ref().map(|response| json!(response)));
        let error = event.error.as_deref().filter(|_| is_whole);
        let agent = event.agent.as_ref();
        let is_new = self.change("INSERT INTO tool_event (session, id, prompt, prompt_id, tool, subject, input, response, outcome,
                   error, duration_ms, agent_id, agent_type, is_from_batch, many_tags, at)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                 ON CONFLICT (session, id) DO NOTHING", params![
                    session, event.id, owner.map(|owner| owner.number), record.prompt_id, event.tool,
                    subject_of(event), input, response, event.outcome.as_str(), error, event.duration_ms,
                    agent.map(|agent| agent.id.as_str()), agent.map(|agent| agent.kind.as_str()),
                    event.is_from_batch, event.many_tags, record.at,
                ])? > 0;
        // The tool's own event has more details than the batch event, in either order.
        let number = match (is_new, event.is_from_batch) {
            (true, _) => self.connection.last_insert_rowid(),
            (false, true) => return Ok(false),
            (false, false) => self.value("UPDATE tool_event SET input = ?, response = ?, outcome = ?, error = ?, duration_ms = ?,
                   subject = ?, is_from_batch = ?, many_tags = ? WHERE session = ? AND id = ? RETURNING number", params![
                    input, response, event.outcome.as_str(), error, event.duration_ms, subject_of(event),
                    event.is_from_batch, event.many_tags, session, event.id,
                ])?,
        };
        for file in &event.files {
            let sql = "INSERT OR REPLACE INTO file_use VALUES (?, ?, ?, ?)";
            let action = file.action.as_str();
            self.run(sql, params![number, session, file.path, action])?;
        }
        self.run(
            "UPDATE session SET tool_events = tool_events + ?2, change = change + 1 WHERE id = ?1",
            params![session, i64::from(is_new)],
        )?;
        Ok(is_new)
    }

    fn take_turn_end(
        &self,
        record: &SessionEvent,
        speaker: Speaker,
        text: Option<&str>,
    ) -> Result<(), Error> {
        let session = &record.session;
        let agent = record.agent.as_ref();
        let agent_id = agent.map_or("", |agent| agent.id.as_str());
        let owner = self.owner(session, record.prompt_id.as_deref())?;
        if let Some(owner) = owner.as_ref().filter(|owner| owner.is_private) {
            return self.suppress(session, owner.number, &format!("turn {agent_id}"));
        }
        let text = text.filter(|_| owner.is_none_or(|owner| !owner.is_own_command));
        if speaker == Speaker::Compact && self.has_private_region(session)? {
            // The client's summary may paraphrase private text.
            return Ok(());
        }
        let last_event = self.last_event(session)?;
        if text.is_none() {
            let sql = "SELECT coalesce(max(after_event), 0) FROM turn_end WHERE session = ?";
            if self.value::<i64>(sql, [session])? == last_event {
                return Ok(());
            }
        }
        let stored = self.change(
            "INSERT OR IGNORE INTO turn_end
                   (session, prompt_id, agent_id, agent_type, speaker, hash, text, after_event, at)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                session,
                record.prompt_id.as_deref().unwrap_or(""),
                agent_id,
                agent.map_or("", |agent| agent.kind.as_str()),
                speaker.as_str(),
                text_hash(text.unwrap_or("")),
                text,
                last_event,
                record.at,
            ],
        )?;
        if stored > 0 && speaker == Speaker::Main {
            let sql = "UPDATE session SET change = change + 1 WHERE id = ?";
            self.run(sql, [session])?;
        }
        Ok(())
    }

    fn has_private_region(&self, session: &str) -> Result<bool, Error> {
        let is_private = self.first("SELECT is_private FROM session WHERE id = ?", [session])?;
        Ok(is_private.unwrap_or(false))
    }

    /// Returns whether an open session has no note or an outdated one.
    fn is_note_old(&self, session: &str, now: i64) -> Result<bool, Error> {
        let is_old = self.first(
            "SELECT noted < change AND state <> 'completed'
                   AND (noted_at IS NULL OR abs(? - noted_at) > ?) FROM session WHERE id = ?",
            params![now, MAX_NOTE_AGE, session],
        )?;
        Ok(is_old.unwrap_or(false))
    }
}
