//! Takes a part of a session back: a prompt, and all that happened under it.

use std::collections::HashSet;

use anamnesis_session::{event::Privacy, observe::Observation};
use rusqlite::{OptionalExtension, params};

use super::{Error, Journal};

/// What was forgotten with a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForgottenPrompt {
    /// Tool events.
    pub tool_events: usize,
    /// Turn ends.
    pub turn_ends: usize,
}

/// The tool events that belong to a prompt of this session, number and id.
const ITS_EVENTS: &str = "session = ?1 AND (prompt = ?2 OR prompt_id = ?3)";

/// The turn ends that belong to it, and what the client summed up since: that took it in.
const ITS_TURN_ENDS: &str =
    "session = ?1 AND (prompt_id = ?3 OR (prompt_id = '' AND at >= ?4 AND at < ?5)
   OR (speaker = 'compact' AND at >= ?4))";

impl Journal {
    /// Forgets a prompt with its tool events, turn ends and subagents' tasks, and makes the summary
    /// anew from what is left; none if nothing is kept of such a prompt.
    ///
    /// Its row stays, as that of a prompt that was private: an event of it that comes late is not
    /// stored, and no other prompt's number changes.
    ///
    /// # Errors
    /// When SQLite refuses; then nothing was forgotten.
    pub fn forget_prompt(
        &self,
        session: &str,
        number: i64,
        now: i64,
    ) -> Result<Option<ForgottenPrompt>, Error> {
        self.together(|journal| {
            let connection = &journal.connection;
            let prompt: Option<(Option<String>, i64, i64)> = connection
                .query_row(
                    "SELECT id, at, coalesce((SELECT min(later.at) FROM prompt AS later
                         WHERE later.session = ?1 AND later.number > ?2), ?3)
                     FROM prompt WHERE session = ?1 AND number = ?2 AND privacy <> ?4",
                    params![session, number, i64::MAX, Privacy::Full.as_str()],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .optional()?;
            let Some((id, from, to)) = prompt else {
                return Ok(None);
            };
            let events: HashSet<String> = connection
                .prepare(&format!("SELECT id FROM tool_event WHERE {ITS_EVENTS}"))?
                .query_map(params![session, number, id], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            connection.execute(
                &format!(
                    "INSERT OR IGNORE INTO suppressed
                       SELECT session, ?2, id FROM tool_event WHERE {ITS_EVENTS}
                       UNION ALL
                       SELECT session, ?2, 'turn ' || agent_id FROM turn_end WHERE {ITS_TURN_ENDS}"
                ),
                params![session, number, id, from, to],
            )?;
            connection.execute(
                "DELETE FROM delegation WHERE session = ?1 AND ((at >= ?4 AND at < ?5)
                   OR id IN (SELECT id FROM tool_event WHERE session = ?1 AND (prompt = ?2 OR prompt_id = ?3)))",
                params![session, number, id, from, to],
            )?;
            let turn_ends = connection.execute(
                &format!("DELETE FROM turn_end WHERE {ITS_TURN_ENDS}"),
                params![session, number, id, from, to],
            )?;
            let tool_events = connection.execute(
                &format!("DELETE FROM tool_event WHERE {ITS_EVENTS}"),
                params![session, number, id],
            )?;
            journal.forget_observations(session, &events)?;
            connection.execute(
                "DELETE FROM use WHERE session = ? AND turn = ?",
                params![session, number],
            )?;
            // The numbers of events that are gone are given again, and nothing may take the new ones
            // for the old.
            for statement in [
                "UPDATE session SET observed = min(observed, ?2) WHERE id = ?1",
                "UPDATE turn_end SET after_event = min(after_event, ?2) WHERE session = ?1",
            ] {
                connection.execute(statement, params![session, journal.last_event(session)?])?;
            }
            connection.execute("DELETE FROM summary WHERE session = ?", [session])?;
            connection.execute(
                "UPDATE prompt SET privacy = ?3, text = NULL, many_tags = 0 WHERE session = ?1 AND number = ?2",
                params![session, number, Privacy::Full.as_str()],
            )?;
            journal.count_suppressed(session, number)?;
            // What the client sums up from now on takes in what was forgotten, so it is not stored,
            // as in any session with something private.
            connection.execute(
                "UPDATE session SET tool_events = max(0, tool_events - ?2), change = change + 1, is_private = 1,
                   first_prompt = (SELECT text FROM prompt WHERE prompt.session = session.id AND kind = 'person'
                                     AND text IS NOT NULL ORDER BY number LIMIT 1)
                 WHERE id = ?1",
                params![session, i64::try_from(tool_events).unwrap_or(i64::MAX)],
            )?;
            journal.set_meta(&key_of(session), &now.to_string())?;
            journal.settle(session, now)?;
            // The note that is there must not keep what was forgotten, even if this process ends here.
            let is_noted = journal
                .session(session)?
                .is_some_and(|session| session.noted > 0);
            if is_noted {
                journal.queue_note(session, now)?;
            }
            Ok(Some(ForgottenPrompt {
                tool_events,
                turn_ends,
            }))
        })
    }

    /// Tells whether a prompt of the session was forgotten: its transcript still has it, and must not
    /// be read as a whole.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn has_forgotten_prompt(&self, session: &str) -> Result<bool, Error> {
        Ok(self.meta(&key_of(session))?.is_some())
    }

    /// The number of the last tool event of a session; 0 where there is none.
    fn last_event(&self, session: &str) -> Result<i64, Error> {
        Ok(self.connection.query_row(
            "SELECT coalesce(max(number), 0) FROM tool_event WHERE session = ?",
            [session],
            |row| row.get(0),
        )?)
    }

    /// Deletes what was observed in tool events that are forgotten.
    fn forget_observations(&self, session: &str, events: &HashSet<String>) -> Result<(), Error> {
        let rows: Vec<(String, String)> = self
            .connection
            .prepare("SELECT hash, body FROM observation WHERE session = ?")?
            .query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        for (hash, body) in rows {
            // One that cannot be read may come from anywhere.
            let is_of_them = serde_json::from_str::<Observation>(&body).map_or(true, |body| {
                body.events.iter().any(|id| events.contains(id))
            });
            if is_of_them {
                self.connection.execute(
                    "DELETE FROM observation WHERE session = ? AND hash = ?",
                    [session, &hash],
                )?;
            }
        }
        Ok(())
    }
}

/// Under this name stands when a prompt of a session was last forgotten.
pub(super) fn key_of(session: &str) -> String {
    format!("forgotten prompt {session}")
}
