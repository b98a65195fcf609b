//! Reads `journal.db` and `spool/` from outside, with SQL of its own.
//!
//! A connection is opened for each check and closed after it, so that the next hook finds the
//! write-ahead log as a killed process left it.

use std::{collections::BTreeMap, time::Duration};

use anamnesis_store::fs::home::Home;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use crate::Result;

/// How long a check waits for another process's transaction.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Queries for the rows of an event, without values that differ in each run: times, numbers, keys.
const TOLD: [&str; 4] = [
    "SELECT 'prompt|' || id || '|' || kind || '|' || privacy || '|' || coalesce(text, '-')
     FROM prompt WHERE session = ?",
    "SELECT 'tool|' || id || '|' || tool || '|' || coalesce(input, '-') || '|' || coalesce(response, '-')
       || '|' || outcome || '|' || coalesce(error, '-') || '|' || coalesce(duration_ms, '-')
       || '|' || coalesce(agent_id, '-') || '|' || coalesce(agent_type, '-') || '|' || is_from_batch
       || coalesce((SELECT group_concat('|' || action || ' ' || path, '') FROM file_use
                    WHERE event = tool_event.number), '')
     FROM tool_event WHERE session = ?",
    "SELECT 'turn|' || prompt_id || '|' || agent_id || '|' || agent_type || '|' || speaker || '|' || coalesce(text, '-')
     FROM turn_end WHERE session = ?",
    "SELECT 'task|' || id || '|' || kind || '|' || prompt FROM delegation WHERE session = ?",
];

/// An open `journal.db`.
pub(super) struct Records {
    connection: Connection,
}

impl Records {
    /// Opens the journal. Returns `None` if it has no tables.
    pub(super) fn open(home: &Home) -> Result<Option<Self>> {
        let path = home.journal();
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(TIMEOUT)?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        Ok((version > 0).then_some(Self { connection }))
    }

    /// Returns the number of hooks that stored their event.
    pub(super) fn hook_runs(home: &Home) -> Result<i64> {
        match Self::open(home)? {
            Some(records) => Ok(records.number("SELECT coalesce(sum(today), 0) FROM hook")?),
            None => Ok(0),
        }
    }

    /// Returns the number that a query selects.
    pub(super) fn number(&self, query: &str) -> rusqlite::Result<i64> {
        self.connection.query_row(query, [], |row| row.get(0))
    }

    /// Returns the texts that a query selects for a session.
    pub(super) fn texts(&self, query: &str, session: &str) -> rusqlite::Result<Vec<String>> {
        self.connection
            .prepare(query)?
            .query_map([session], |row| row.get(0))?
            .collect()
    }

    /// Returns a session's state and end reason, or `None` for an unknown session.
    pub(super) fn end_of(
        &self,
        session: &str,
    ) -> rusqlite::Result<Option<(String, Option<String>)>> {
        self.connection
            .query_row(
                "SELECT state, end_reason FROM session WHERE id = ?",
                [session],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
    }

    /// Returns whether the journal records that the session's note is up to date.
    pub(super) fn is_noted(&self, session: &str) -> rusqlite::Result<bool> {
        let noted = self.connection.query_row(
            "SELECT noted = change AND NOT EXISTS (SELECT 1 FROM job WHERE state <> 'done' AND session = session.id)
             FROM session WHERE id = ?",
            [session],
            |row| row.get(0),
        );
        Ok(noted.optional()?.unwrap_or(false))
    }

    /// Returns the rows of a session's events, by mark.
    pub(super) fn events_of(&self, session: &str) -> Result<BTreeMap<String, Vec<String>>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for query in TOLD {
            for told in self.texts(query, session)? {
                let mark = mark_in(&told).ok_or_else(|| format!("no event left {told}"))?;
                found.entry(mark).or_default().push(told);
            }
        }
        Ok(found)
    }

    /// Returns a description of damage to the file, if any.
    pub(super) fn damage(&self) -> Result<Option<String>> {
        let said: String = self
            .connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        if said != "ok" {
            return Ok(Some(said));
        }
        let orphans = self.number("SELECT count(*) FROM pragma_foreign_key_check")?;
        Ok((orphans > 0).then(|| format!("{orphans} rows belong to nothing")))
    }

    /// Returns counters of a session that differ from the rows that they count, if any.
    pub(super) fn halves(&self, session: &str) -> Result<Option<String>> {
        let broken: Option<String> = self
            .connection
            .query_row(
                "SELECT prompts || ' prompts, ' || tool_events || ' tool events' FROM session WHERE id = ?1
                 AND (prompts <> (SELECT count(*) FROM prompt WHERE session = ?1)
                   OR prompts <> (SELECT coalesce(max(number), 0) FROM prompt WHERE session = ?1)
                   OR tool_events <> (SELECT count(*) FROM tool_event WHERE session = ?1))",
                params![session],
                |row| row.get(0),
            )
            .optional()?;
        Ok(broken.map(|counted| format!("the session {session} says {counted}, and has others")))
    }
}

/// Returns the mark of the event that a row belongs to.
fn mark_in(told: &str) -> Option<String> {
    let start = told.find("mark-")?;
    told.get(start..start + "mark-000".len()).map(str::to_owned)
}
