//! Lets old records go, in short slices, so that no hook waits for it.
//!
//! What a session's note is made from may go once the note or a summary exists and the session has
//! ended. The session's own row, its summary and its observations stay until they are forgotten.

use std::time::{Duration, Instant};

use rusqlite::params;

use super::{Error, Journal, job};
use crate::config::Retention;

/// How long one transaction may take, about.
const SLICE: Duration = Duration::from_millis(40);

/// How many rows one statement deletes. Some milliseconds' worth.
const ROWS: i64 = 100;

/// How many pages are given back at a time.
const PAGES: i64 = 256;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Nothing younger than this goes for want of room, milliseconds.
const YOUNG: i64 = DAY;

/// What was let go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows that were deleted.
    pub rows: usize,
    /// Bytes that the file gave back.
    pub bytes: u64,
    /// Whether the file is over its ceiling with nothing left that may go.
    pub is_full: bool,
}

/// Tells which sessions' raw records may go.
macro_rules! finished {
    () => {
        "session IN (SELECT id FROM session WHERE state = 'completed'
           AND (noted_at IS NOT NULL OR EXISTS (SELECT 1 FROM summary WHERE summary.session = session.id)))"
    };
}

impl Journal {
    /// Deletes what is past its term, and what is over the ceiling; gives the room back.
    ///
    /// # Errors
    /// When SQLite refuses; what was deleted until then is gone.
    pub fn prune(&self, retention: &Retention, now: i64) -> Result<Pruned, Error> {
        // Zero days: for ever.
        let before = |days: u32| match i64::from(days) {
            0 => i64::MIN,
            days => now.saturating_sub(days * DAY),
        };
        let events = before(retention.events_days);
        let rules = [
            (
                concat!(
                    "DELETE FROM turn_end WHERE number IN
                       (SELECT number FROM turn_end WHERE at < ?1 AND ", finished!(), " LIMIT ?2)"
                ),
                events,
            ),
            (
                concat!(
                    "DELETE FROM delegation WHERE rowid IN
                       (SELECT rowid FROM delegation WHERE at < ?1 AND ", finished!(), " LIMIT ?2)"
                ),
                events,
            ),
            (
                "DELETE FROM shown WHERE rowid IN (SELECT rowid FROM shown WHERE at < ?1 LIMIT ?2)",
                events,
            ),
            (
                concat!(
                    "DELETE FROM prompt WHERE row IN
                       (SELECT row FROM prompt WHERE at < ?1 AND ", finished!(), " LIMIT ?2)"
                ),
                before(retention.prompts_days),
            ),
            (
                "DELETE FROM job WHERE rowid IN
                   (SELECT rowid FROM job WHERE at < ?1 AND state = 'done' LIMIT ?2)",
                before(retention.jobs_done_days),
            ),
            (
                "DELETE FROM job WHERE rowid IN
                   (SELECT rowid FROM job WHERE at < ?1 AND state = 'failed' LIMIT ?2)",
                before(retention.jobs_failed_days),
            ),
            (
                // Somebody opened a session and left: nothing was said.
                "DELETE FROM session WHERE rowid IN
                   (SELECT rowid FROM session WHERE seen_at < ?1 AND prompts = 0 AND tool_events = 0 LIMIT ?2)",
                now - DAY,
            ),
        ];
        let mut pruned = Pruned::default();
        loop {
            let deleted = self.delete_oldest_events(events)?;
            pruned.rows += deleted;
            if deleted == 0 {
                break;
            }
        }
        for (statement, before) in rules {
            loop {
                let deleted = self.slice(|journal| {
                    let mut statement = journal.connection.prepare_cached(statement)?;
                    Ok(statement.execute(params![before, ROWS])?)
                })?;
                pruned.rows += deleted;
                if deleted == 0 {
                    break;
                }
            }
        }
        if retention.ceiling_mib > 0 {
            let ceiling = u64::from(retention.ceiling_mib) * 1024 * 1024;
            while self.used_bytes()? > ceiling && !pruned.is_full {
                let deleted = self.delete_oldest_events(now - YOUNG)?;
                pruned.rows += deleted;
                pruned.is_full = deleted == 0;
            }
        }
        pruned.bytes = self.give_back()?;
        Ok(pruned)
    }

    /// Deletes some of the oldest tool events of finished sessions; tells how many.
    ///
    /// A note that is made anew must not lose what these told, so the session is marked.
    fn delete_oldest_events(&self, before: i64) -> Result<usize, Error> {
        macro_rules! oldest {
            ($column:literal) => {
                concat!(
                    "(SELECT ",
                    $column,
                    " FROM (SELECT number, session, at FROM tool_event ORDER BY number LIMIT 5000)
                       WHERE at < ?1 AND ",
                    finished!(),
                    " LIMIT ?2)"
                )
            };
        }
        self.slice(|journal| {
            let connection = &journal.connection;
            connection
                .prepare_cached(concat!(
                    "UPDATE session SET is_pruned = 1 WHERE id IN ",
                    oldest!("session")
                ))?
                .execute(params![before, ROWS])?;
            Ok(connection
                .prepare_cached(concat!(
                    "DELETE FROM tool_event WHERE number IN ",
                    oldest!("number")
                ))?
                .execute(params![before, ROWS])?)
        })
    }

    /// Repeats a statement within one transaction until it finds nothing or its time is up.
    fn slice(&self, mut delete: impl FnMut(&Self) -> Result<usize, Error>) -> Result<usize, Error> {
        let started = Instant::now();
        self.together(|journal| {
            let mut rows = 0;
            loop {
                let deleted = delete(journal)?;
                rows += deleted;
                if deleted == 0 || started.elapsed() >= SLICE {
                    return Ok(rows);
                }
            }
        })
    }

    /// The bytes that rows take up, free pages left out.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn used_bytes(&self) -> Result<u64, Error> {
        let pages = self.pragma("page_count")? - self.pragma("freelist_count")?;
        Ok(u64::try_from(pages * self.pragma("page_size")?).unwrap_or(0))
    }

    /// Makes the file shorter by its free pages; tells by how many bytes.
    fn give_back(&self) -> Result<u64, Error> {
        if self.pragma("auto_vacuum")? == 0 {
            // A file of the first version; once.
            self.connection
                .execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM;")?;
        }
        let free = self.pragma("freelist_count")?;
        let mut left = free;
        while left > 0 {
            self.connection
                .execute_batch(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
            let now = self.pragma("freelist_count")?;
            if now >= left {
                break;
            }
            left = now;
        }
        Ok(u64::try_from((free - left) * self.pragma("page_size")?).unwrap_or(0))
    }

    fn pragma(&self, name: &str) -> Result<i64, Error> {
        Ok(self
            .connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?)
    }

    /// Queues the notes of sessions that changed after their end; tells how many.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn queue_due_notes(&self, now: i64) -> Result<usize, Error> {
        let due: Vec<String> = self
            .connection
            .prepare("SELECT id FROM session WHERE state = 'completed' AND noted < change")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for session in &due {
            self.queue_note(session, now)?;
        }
        Ok(due.len())
    }

    /// Queues the note of a session as it is now; tells whether it waits to be written.
    pub(super) fn queue_note(&self, session: &str, now: i64) -> Result<bool, Error> {
        let state: Option<(i64, i64)> = self
            .connection
            .prepare_cached("SELECT change, noted FROM session WHERE id = ?")?
            .query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?
            .next()
            .transpose()?;
        match state {
            Some((change, noted)) if noted < change => self.queue(job::NOTE, session, change, now),
            _ => Ok(false),
        }
    }
}
