//! Lets old records go, in short slices, so that no hook waits for it.
//!
//! What a session's note is made from may go once the note or a summary exists and the session has
//! ended. The session's own row, its summary and its observations stay until they are forgotten.

use std::time::{Duration, Instant};

use super::{Error, Journal, job};
use crate::settings::config::Retention;

/// After this no further statement is begun in a transaction: with the last one and the commit it
/// stays under 50 ms, so that no hook waits for longer.
const SLICE: Duration = Duration::from_millis(25);

/// How many rows one statement looks at. Some milliseconds' worth.
const ROWS: i64 = 100;

/// After how many transactions the log is folded into the file: it is not to grow by all that goes,
/// and each time is a wait for the disk.
const FOLDED_SLICES: usize = 16;

/// How many pages are given back at a time.
const PAGES: i64 = 64;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Nothing younger than this goes for want of room, milliseconds.
const YOUNG: i64 = DAY;

/// Of a file that needs room, this part of the ceiling is made free, so that there is room
/// for the next day, too.
const SPARE: u64 = 8;

/// What was let go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows that were deleted.
    pub rows: usize,
    /// Bytes that the file gave back.
    pub bytes: u64,
    /// Whether the file is over its ceiling with nothing left that may go.
    pub is_full: bool,
    /// How long the longest transaction kept others from writing.
    pub longest: Duration,
}

/// A table that things go from.
///
/// Rows are walked in the order of their keys, which is about that of their times: an index for the
/// times would cost every hook a page.
#[derive(Clone, Copy)]
struct Table {
    name: &'static str,
    key: &'static str,
    time: &'static str,
    /// Which old rows may go.
    may_go: &'static str,
    /// Whether a hundred young rows mean that the rest is young.
    is_in_order: bool,
}

/// The session of the row is over and summed up. Asked row by row: a list of all such sessions would
/// be made anew by each statement.
macro_rules! finished {
    ($table:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM session WHERE session.id = ",
            $table,
            ".session AND state = 'completed' AND (noted_at IS NOT NULL
               OR EXISTS (SELECT 1 FROM summary WHERE summary.session = session.id)))"
        )
    };
}

const EVENTS: Table = Table {
    name: "tool_event",
    key: "number",
    time: "at",
    may_go: finished!("tool_event"),
    is_in_order: true,
};

const TURN_ENDS: Table = Table {
    name: "turn_end",
    may_go: finished!("turn_end"),
    ..EVENTS
};

const PROMPTS: Table = Table {
    name: "prompt",
    key: "row",
    may_go: finished!("prompt"),
    ..EVENTS
};

const DELEGATIONS: Table = Table {
    name: "delegation",
    key: "rowid",
    may_go: finished!("delegation"),
    ..EVENTS
};

const SHOWN: Table = Table {
    name: "shown",
    key: "rowid",
    may_go: "TRUE",
    ..EVENTS
};

const RECALLS: Table = Table {
    name: "recall",
    ..SHOWN
};

const USES: Table = Table {
    name: "use",
    ..SHOWN
};

const AGENT_NOTES: Table = Table {
    name: "agent_note",
    ..SHOWN
};

const JOBS_DONE: Table = Table {
    name: "job",
    key: "rowid",
    may_go: "state = 'done'",
    is_in_order: false,
    ..EVENTS
};

const JOBS_FAILED: Table = Table {
    may_go: "state = 'failed'",
    ..JOBS_DONE
};

/// Somebody opened a session and left: nothing was said.
const EMPTY_SESSIONS: Table = Table {
    name: "session",
    key: "rowid",
    time: "seen_at",
    may_go: "prompts = 0 AND tool_events = 0",
    is_in_order: false,
};

impl Journal {
    /// Deletes what is past its term, and what is over the ceiling; gives the room back.
    ///
    /// # Errors
    /// When SQLite refuses; what was deleted until then is gone.
    pub fn prune(&self, retention: &Retention, now: i64) -> Result<Pruned, Error> {
        // Zero days: for ever.
        let before = |days: u32| (days > 0).then(|| now.saturating_sub(i64::from(days) * DAY));
        let events = before(retention.events_days);
        let mut upkeep = Upkeep::of(self);
        for (table, before) in [
            (EVENTS, events),
            (TURN_ENDS, events),
            (DELEGATIONS, events),
            (SHOWN, events),
            (RECALLS, events),
            (USES, events),
            (AGENT_NOTES, events),
            (PROMPTS, before(retention.prompts_days)),
            (JOBS_DONE, before(retention.jobs_done_days)),
            (JOBS_FAILED, before(retention.jobs_failed_days)),
            (EMPTY_SESSIONS, Some(now - DAY)),
        ] {
            if let Some(before) = before {
                upkeep.let_go(table, before, || Ok(false))?;
            }
        }
        if self.needs_room(retention)? {
            let ceiling = ceiling(retention);
            let goal = ceiling - ceiling / SPARE;
            for table in [EVENTS, TURN_ENDS, PROMPTS] {
                let is_enough = || Ok(self.used_bytes()? <= goal);
                upkeep.let_go(table, now - YOUNG, is_enough)?;
            }
            upkeep.pruned.is_full = self.used_bytes()? > ceiling;
        }
        upkeep.give_back()?;
        self.expire_unsure(now)?;
        Ok(upkeep.pruned)
    }

    /// Tells whether the rows take up nearly as much as they may: what comes until somebody looks
    /// again has to fit in, too.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn needs_room(&self, retention: &Retention) -> Result<bool, Error> {
        let ceiling = ceiling(retention);
        Ok(ceiling > 0 && self.used_bytes()? > ceiling - ceiling / (2 * SPARE))
    }

    /// The bytes that rows take up, free pages left out.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn used_bytes(&self) -> Result<u64, Error> {
        let pages = self.pragma("page_count")? - self.pragma("freelist_count")?;
        Ok(u64::try_from(pages * self.pragma("page_size")?).unwrap_or(0))
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

/// What the rows may take up, in bytes.
fn ceiling(retention: &Retention) -> u64 {
    u64::from(retention.ceiling_mib) * 1024 * 1024
}

/// One run of retention.
struct Upkeep<'a> {
    journal: &'a Journal,
    pruned: Pruned,
    /// How many transactions there were.
    slices: usize,
}

impl<'a> Upkeep<'a> {
    fn of(journal: &'a Journal) -> Self {
        Self {
            journal,
            pruned: Pruned::default(),
            slices: 0,
        }
    }

    /// Deletes what may go of the rows from before a time, the oldest first, until it is enough.
    fn let_go(
        &mut self,
        table: Table,
        before: i64,
        is_enough: impl Fn() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let Table {
            name,
            key,
            time,
            may_go,
            ..
        } = table;
        let some = format!(
            "SELECT max({key}), count(*) FILTER (WHERE {time} < ?2)
             FROM (SELECT {key}, {time} FROM {name} WHERE {key} > ?1 ORDER BY {key} LIMIT {ROWS})"
        );
        let old = format!("{key} > ?1 AND {key} <= ?2 AND {time} < ?3 AND {may_go}");
        // A note that is made anew must not lose what its events told.
        let mark = format!(
            "UPDATE session SET is_pruned = 1
             WHERE is_pruned = 0 AND id IN (SELECT session FROM {name} WHERE {old})"
        );
        let delete = format!("DELETE FROM {name} WHERE {old}");
        let is_raw = name == EVENTS.name;
        let mut last = i64::MIN;
        let mut is_through = false;
        while !is_through && !is_enough()? {
            self.pruned.rows += self.slice(|journal| {
                let mut rows = 0;
                let started = Instant::now();
                let mut some = journal.connection.prepare_cached(&some)?;
                let mut delete = journal.connection.prepare_cached(&delete)?;
                while !is_through && started.elapsed() < SLICE {
                    let (end, count): (Option<i64>, i64) =
                        some.query_row([last, before], |row| Ok((row.get(0)?, row.get(1)?)))?;
                    let Some(end) = end else {
                        is_through = true;
                        break;
                    };
                    if count > 0 {
                        if is_raw {
                            journal
                                .connection
                                .prepare_cached(&mark)?
                                .execute([last, end, before])?;
                        }
                        rows += delete.execute([last, end, before])?;
                    }
                    is_through = count == 0 && table.is_in_order;
                    last = end;
                }
                Ok(rows)
            })?;
        }
        Ok(())
    }

    /// Runs a transaction and takes its time.
    fn slice<T>(&mut self, writes: impl FnOnce(&Journal) -> Result<T, Error>) -> Result<T, Error> {
        let mut started = Instant::now();
        let value = self.journal.in_transaction(|journal| {
            // The wait for the others' transaction is over.
            started = Instant::now();
            writes(journal)
        })?;
        self.pruned.longest = self.pruned.longest.max(started.elapsed());
        self.slices += 1;
        if self.slices.is_multiple_of(FOLDED_SLICES) {
            // As far as that makes nobody wait.
            let fold = "PRAGMA wal_checkpoint(PASSIVE)";
            self.journal.connection.query_row(fold, [], |_| Ok(()))?;
        }
        Ok(value)
    }

    /// Makes the file shorter by its free pages.
    fn give_back(&mut self) -> Result<(), Error> {
        if self.journal.pragma("auto_vacuum")? == 0 {
            // A file of the first version; once.
            self.journal
                .connection
                .execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM;")?;
        }
        let free = self.journal.pragma("freelist_count")?;
        let mut left = free;
        while left > 0 {
            self.slice(|journal| {
                let step = format!("PRAGMA incremental_vacuum({PAGES})");
                Ok(journal.connection.execute_batch(&step)?)
            })?;
            let now = self.journal.pragma("freelist_count")?;
            if now >= left {
                break;
            }
            left = now;
        }
        self.pruned.bytes =
            u64::try_from((free - left) * self.journal.pragma("page_size")?).unwrap_or(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_session::event::Record;

    use super::super::tests::{
        count, ended, event, journal_with_session, now, prompted, started, take, used,
    };
    use super::*;

    fn events_of(session: &str, count: usize) -> Vec<Record> {
        let event = |number| used(session, event(&format!("t{number}"), "Edit", "a"));
        (0..count).map(event).collect()
    }

    #[test]
    fn what_may_not_go_does_not_stand_in_the_way_of_what_may() {
        // RT-1
        let (_folder, journal) = journal_with_session("open");
        take(&journal, &events_of("open", 250));
        take(&journal, &[started("over", "startup")]);
        take(&journal, &events_of("over", 250));
        take(&journal, &[ended("over", "other")]);
        let day = 24 * 60 * 60 * 1000;
        let at = now().timestamp_millis() + 40 * day;
        let pruned = journal.prune(&Retention::default(), at).unwrap();
        assert!(pruned.rows >= 250, "{pruned:?}");
        assert_eq!(count(&journal, "tool_event WHERE session = 'open'"), 250);
        assert_eq!(count(&journal, "tool_event WHERE session = 'over'"), 0);
        assert!(!journal.session("open").unwrap().unwrap().is_pruned);
        assert!(journal.session("over").unwrap().unwrap().is_pruned);
    }

    #[test]
    fn an_old_event_that_came_late_goes_with_those_around_it() {
        let (_folder, journal) = journal_with_session("s");
        let day = 24 * 60 * 60 * 1000;
        let at = now().timestamp_millis();
        for record in events_of("s", 150) {
            take(
                &journal,
                &[Record {
                    at: at + 31 * day,
                    ..record
                }],
            );
        }
        // It waited in the spool for a month.
        take(
            &journal,
            &[used("s", event("late", "Edit", "a")), ended("s", "other")],
        );
        let prune = |days| {
            journal
                .prune(&Retention::default(), at + days * day)
                .unwrap()
        };
        prune(32);
        assert_eq!(count(&journal, "tool_event"), 151);
        prune(62);
        assert_eq!(count(&journal, "tool_event"), 0);
    }

    #[test]
    fn prompts_and_answers_go_where_events_are_not_enough() {
        // RT-2
        let (_folder, journal) = journal_with_session("s");
        let long = "word ".repeat(20_000);
        for number in 0..12 {
            let mut record = prompted("s", &format!("{long}{number}"));
            record.prompt_id = Some(format!("p-{number}"));
            take(&journal, &[record]);
        }
        take(&journal, &[ended("s", "other")]);
        let day = 24 * 60 * 60 * 1000;
        let retention = Retention {
            ceiling_mib: 1,
            ..Retention::default()
        };
        let at = now().timestamp_millis();
        assert!(journal.prune(&retention, at + day).unwrap().is_full);
        let pruned = journal.prune(&retention, at + day + 1).unwrap();
        assert!(!pruned.is_full && pruned.bytes > 0, "{pruned:?}");
        assert!(journal.used_bytes().unwrap() <= 1024 * 1024);
    }
}
