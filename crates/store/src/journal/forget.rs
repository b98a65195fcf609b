//! Forgets a prompt and everything that happened after it in its turn.

use std::collections::HashSet;

use anamnesis_session::{
    event::{Privacy, SessionEvent},
    observe::Observation,
};
use rusqlite::{named_params, params};

use super::{Error, Journal};
use crate::sqlite::{Queries, read_row};

/// Counts of the records that were forgotten with a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForgottenPrompt {
    /// Tool events.
    pub tool_events: usize,
    /// Turn ends.
    pub turn_ends: usize,
}

/// The tool events of a prompt.
const PROMPT_EVENTS: &str = "session = :session AND (prompt = :number OR prompt_id = :id)";

/// The turn ends of a prompt, and every summary by the client since then: it may contain the prompt.
const PROMPT_TURN_ENDS: &str =
    "session = :session AND (prompt_id = :id OR (prompt_id = '' AND at >= :from AND at < :to)
   OR (speaker = 'compact' AND at >= :from))";

/// A prompt that is stored with its text.
struct ForgettablePrompt {
    id: Option<String>,
    at: i64,
    /// The time of the next prompt.
    until: i64,
}

impl Journal {
    /// Forgets a prompt with its tool events, turn ends and subagents' tasks, and makes the summary
    /// again from the rest. Returns none if the prompt is not stored.
    ///
    /// The row of the prompt stays, as that of a private prompt: events of it that arrive later are not
    /// stored, and the numbers of other prompts do not change.
    pub fn forget_prompt(
        &self,
        session: &str,
        number: i64,
        now: i64,
    ) -> Result<Option<ForgottenPrompt>, Error> {
        self.in_transaction(|journal| journal.forget_prompt_within(session, number, now))
    }

    /// Does the same inside a transaction of the caller.
    fn forget_prompt_within(
        &self,
        session: &str,
        number: i64,
        now: i64,
    ) -> Result<Option<ForgottenPrompt>, Error> {
        let Some(prompt) = self.forgettable_prompt(session, number)? else {
            return Ok(None);
        };
        let forgotten = self.delete_prompt_records(session, number, &prompt)?;
        self.reset_event_positions(session)?;
        self.make_prompt_private(session, number, forgotten.tool_events)?;
        self.set_meta(&key_of(session), &now.to_string())?;
        self.settle(session, now)?;
        // An existing note must lose the forgotten text even if this process ends here.
        let is_noted = self
            .session(session)?
            .is_some_and(|session| session.noted > 0);
        if is_noted {
            self.queue_note(session, now)?;
        }
        Ok(Some(forgotten))
    }

    /// Forgets the turn of a known session, and keeps what follows in it out of the records: it entered an
    /// excluded folder. A prompt that is not stored gets a row without text.
    ///
    /// `begins` is set for the prompt of the turn itself.
    pub(super) fn hide_turn(&self, record: &SessionEvent, begins: bool) -> Result<(), Error> {
        let (session, now) = (&record.session, record.at);
        let prompt_id = record.prompt_id.as_deref();
        if self.session(session)?.is_none() {
            return Ok(());
        }
        let owner = self.owner(session, prompt_id)?.filter(|_| !begins);
        match owner {
            Some(owner) if owner.is_private => Ok(()),
            Some(owner) => self
                .forget_prompt_within(session, owner.number, now)
                .map(|_| ()),
            None => self.run(
                "INSERT OR IGNORE INTO prompt (session, id, number, kind, privacy, many_tags, at)
                 SELECT ?1, ?2, coalesce(max(number), 0) + 1, 'person', ?3, 0, ?4
                 FROM prompt WHERE session = ?1",
                params![session, prompt_id, Privacy::Full.as_str(), now],
            ),
        }
    }

    fn forgettable_prompt(
        &self,
        session: &str,
        number: i64,
    ) -> Result<Option<ForgettablePrompt>, Error> {
        self.one(
            "SELECT id, at, coalesce((SELECT min(later.at) FROM prompt AS later
                     WHERE later.session = ?1 AND later.number > ?2), ?3) AS until
             FROM prompt WHERE session = ?1 AND number = ?2 AND privacy <> ?4",
            params![session, number, i64::MAX, Privacy::Full.as_str()],
            |row| read_row!(row, ForgettablePrompt: id, at, until),
        )
    }

    /// Deletes the tool events, turn ends, tasks, observations and usage of a prompt. The ids of the
    /// events and turn ends are kept as suppressed.
    fn delete_prompt_records(
        &self,
        session: &str,
        number: i64,
        prompt: &ForgettablePrompt,
    ) -> Result<ForgottenPrompt, Error> {
        let connection = &self.connection;
        let of_prompt = named_params! {":session": session, ":number": number, ":id": prompt.id};
        let in_time = named_params! {":session": session, ":number": number, ":id": prompt.id,
        ":from": prompt.at, ":to": prompt.until};
        let of_turn = named_params! {":session": session, ":id": prompt.id,
        ":from": prompt.at, ":to": prompt.until};
        let events: HashSet<String> = connection.column(
            &format!("SELECT id FROM tool_event WHERE {PROMPT_EVENTS}"),
            of_prompt,
        )?;
        connection.execute(
            &format!(
                "INSERT OR IGNORE INTO suppressed
                   SELECT session, :number, id FROM tool_event WHERE {PROMPT_EVENTS}
                   UNION ALL
                   SELECT session, :number, 'turn ' || agent_id FROM turn_end WHERE {PROMPT_TURN_ENDS}"
            ),
            in_time,
        )?;
        connection.execute(
            &format!(
                "DELETE FROM delegation WHERE session = :session AND ((at >= :from AND at < :to)
                   OR id IN (SELECT id FROM tool_event WHERE {PROMPT_EVENTS}))"
            ),
            in_time,
        )?;
        // A suggestion quotes the prompt.
        connection.execute(
            "DELETE FROM block WHERE session = ? AND at >= ? AND at < ?",
            params![session, prompt.at, prompt.until],
        )?;
        let turn_ends = connection.execute(
            &format!("DELETE FROM turn_end WHERE {PROMPT_TURN_ENDS}"),
            of_turn,
        )?;
        let tool_events = connection.execute(
            &format!("DELETE FROM tool_event WHERE {PROMPT_EVENTS}"),
            of_prompt,
        )?;
        self.forget_observations(session, &events)?;
        connection.execute(
            "DELETE FROM use WHERE session = ? AND turn = ?",
            params![session, number],
        )?;
        Ok(ForgottenPrompt {
            tool_events,
            turn_ends,
        })
    }

    /// Lowers stored positions to the last event that is left: SQLite assigns the numbers of deleted
    /// rows again, and a new event must not pass for an old one.
    fn reset_event_positions(&self, session: &str) -> Result<(), Error> {
        let last = self.last_event(session)?;
        for statement in [
            "UPDATE session SET observed = min(observed, ?2) WHERE id = ?1",
            "UPDATE turn_end SET after_event = min(after_event, ?2) WHERE session = ?1",
        ] {
            self.run(statement, params![session, last])?;
        }
        Ok(())
    }

    /// Turns the row of a prompt into that of a private one, and drops the summaries of its session.
    fn make_prompt_private(
        &self,
        session: &str,
        number: i64,
        tool_events: usize,
    ) -> Result<(), Error> {
        self.run("DELETE FROM summary WHERE session = ?", [session])?;
        self.run("UPDATE prompt SET privacy = ?3, text = NULL, many_tags = 0 WHERE session = ?1 AND number = ?2", params![session, number, Privacy::Full.as_str()])?;
        self.count_suppressed(session, number)?;
        // A later summary by the client may contain the forgotten prompt. It is not stored in a session
        // that is marked as private.
        self.run(concat!("UPDATE session SET tool_events = max(0, tool_events - ?2), change = change + 1, is_private = 1,
               first_prompt = (SELECT text FROM prompt WHERE prompt.session = session.id AND ", is_request!(), "
                                 AND text IS NOT NULL ORDER BY number LIMIT 1)
             WHERE id = ?1"), params![session, i64::try_from(tool_events).unwrap_or(i64::MAX)])
    }

    /// Returns whether a prompt of the session was forgotten. Its transcript still has that prompt
    /// and must not be read as a whole.
    pub fn has_forgotten_prompt(&self, session: &str) -> Result<bool, Error> {
        Ok(self.meta(&key_of(session))?.is_some())
    }

    /// Returns the number of the last tool event of a session; 0 if there is none.
    pub(super) fn last_event(&self, session: &str) -> Result<i64, Error> {
        self.value(
            "SELECT coalesce(max(number), 0) FROM tool_event WHERE session = ?",
            [session],
        )
    }

    /// Deletes the observations that name forgotten tool events.
    fn forget_observations(&self, session: &str, events: &HashSet<String>) -> Result<(), Error> {
        let sql = "SELECT hash, body FROM observation WHERE session = ?";
        let rows: Vec<(String, String)> = self.tuples(sql, [session])?;
        for (hash, body) in rows {
            // An invalid observation may name any event, so it is deleted.
            let is_of_them = serde_json::from_str::<Observation>(&body).map_or(true, |body| {
                body.events.iter().any(|id| events.contains(id))
            });
            if is_of_them {
                self.run(
                    "DELETE FROM observation WHERE session = ? AND hash = ?",
                    [session, &hash],
                )?;
            }
        }
        Ok(())
    }
}

/// Returns the `meta` key of the time when a prompt of a session was last forgotten.
pub(super) fn key_of(session: &str) -> String {
    format!("forgotten prompt {session}")
}
