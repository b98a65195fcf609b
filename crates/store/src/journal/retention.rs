//! Deletes old records in short transactions, so that no hook waits.
//!
//! The records of a session may be deleted once it has ended and has a note or a summary. Its row,
//! summary and observations stay until they are forgotten.

use std::time::{Duration, Instant};

use super::{Error, Journal, Queries, job};
use crate::settings::config::Retention;

/// The time after which a transaction begins no further statement. With the last statement and the
/// commit it stays under 50 ms, so that no hook waits longer.
const SLICE: Duration = Duration::from_millis(25);

/// The number of rows that one statement examines. This takes some milliseconds.
const ROWS: i64 = 100;

/// The number of transactions between two checkpoints. Fewer checkpoints let the log grow by all
/// deleted pages; each one waits for the disk.
const FOLDED_SLICES: usize = 16;

/// The number of pages that are returned to the file system at a time.
const PAGES: i64 = 64;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// The age below which nothing is deleted to save space, milliseconds.
const YOUNG: i64 = DAY;

/// The largest difference between two looks at the clock that is taken for the time that passed,
/// milliseconds.
const MAX_JUMP: u64 = 7 * DAY.unsigned_abs();

/// The key in `meta` of the time since which the clock has not jumped, and of the last look at it.
const CLOCK: &str = "clock";

/// The part of the ceiling that is freed if the file is too large. It leaves space for the next day.
const SPARE: u64 = 8;

/// The result of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows that were deleted.
    pub rows: usize,
    /// The number of bytes that the file shrank by.
    pub bytes: u64,
    /// Whether the file is over its ceiling and nothing more may be deleted.
    pub is_full: bool,
    /// The duration of the longest transaction.
    pub longest: Duration,
}

/// A table from which rows are deleted.
///
/// Rows are visited in the order of their keys, which is roughly by age. An index on the time would
/// cost every hook a page.
#[derive(Clone, Copy)]
struct Table {
    name: &'static str,
    key: &'static str,
    time: &'static str,
    /// The condition for old rows that may be deleted.
    may_go: &'static str,
    /// Whether a hundred young rows in a row mean that the rest is young.
    is_in_order: bool,
}

/// The row's session has ended and has a summary. The condition is checked row by row, because each
/// statement would rebuild a list of all such sessions.
const FINISHED: &str = "EXISTS (SELECT 1 FROM session AS it WHERE it.id = session
  AND it.state = 'completed' AND (it.noted_at IS NOT NULL
  OR EXISTS (SELECT 1 FROM summary WHERE summary.session = it.id)))";

const fn table(name: &'static str, key: &'static str, may_go: &'static str) -> Table {
    Table {
        name,
        key,
        time: "at",
        may_go,
        is_in_order: true,
    }
}

const EVENTS: Table = table("tool_event", "number", FINISHED);
const TURN_ENDS: Table = table("turn_end", "number", FINISHED);
const PROMPTS: Table = table("prompt", "row", FINISHED);

/// A table of which every old row may be deleted.
const fn expiring(name: &'static str) -> Table {
    table(name, "rowid", "TRUE")
}

const fn jobs(may_go: &'static str) -> Table {
    Table {
        is_in_order: false,
        ..table("job", "rowid", may_go)
    }
}

/// A session without prompts.
const EMPTY_SESSIONS: Table = Table {
    time: "seen_at",
    is_in_order: false,
    ..table("session", "rowid", "prompts = 0 AND tool_events = 0")
};

/// Days for which finished and failed background jobs are kept.
const JOBS_DONE_DAYS: u32 = 7;
const JOBS_FAILED_DAYS: u32 = 30;

/// Days for which unreadable records and a damaged `journal.db` are kept.
pub const DAMAGED_DAYS: u32 = 30;

impl Journal {
    /// Deletes expired records and those over the ceiling, then shrinks the file.
    pub fn prune(&self, retention: &Retention, now: i64) -> Result<Pruned, Error> {
        // 0 days keeps records for ever.
        let before = |days: u32| (days > 0).then(|| now.saturating_sub(i64::from(days) * DAY));
        let events = before(retention.records_days);
        let mut upkeep = Upkeep::new(self);
        for (table, before) in [
            (EVENTS, events),
            (TURN_ENDS, events),
            (table("delegation", "rowid", FINISHED), events),
            (expiring("shown"), events),
            (expiring("recall"), events),
            (expiring("block"), events),
            (expiring("agent_note"), events),
            (PROMPTS, events),
            (jobs("state = 'done'"), before(JOBS_DONE_DAYS)),
            (jobs("state = 'failed'"), before(JOBS_FAILED_DAYS)),
            (EMPTY_SESSIONS, Some(now - DAY)),
        ] {
            if let Some(before) = before {
                upkeep.let_go(table, before, || Ok(false))?;
            }
        }
        self.expire_unsure(now)?;
        upkeep.make_room(retention, now)
    }

    /// Deletes the oldest records over the ceiling only, then shrinks the file.
    pub fn make_room(&self, retention: &Retention, now: i64) -> Result<Pruned, Error> {
        Upkeep::new(self).make_room(retention, now)
    }

    /// Records that a clock shows this time, and tells whether records may be deleted by their age. A
    /// clock that jumped by more than a week counts only a day later: it may be wrong.
    pub fn trust_clock(&self, now: i64) -> Result<bool, Error> {
        let seen = self.meta(CLOCK)?.unwrap_or_default();
        let mut times = seen.split(' ').filter_map(|time| time.parse::<i64>().ok());
        let since = match (times.next(), times.next()) {
            (Some(since), Some(last)) if now.abs_diff(last) <= MAX_JUMP => since,
            _ => now,
        };
        self.set_meta(CLOCK, &format!("{since} {now}"))?;
        Ok(now.saturating_sub(since) >= DAY)
    }

    /// Returns whether the rows nearly reach the ceiling. The records until the next run need space
    /// too.
    pub fn needs_room(&self, retention: &Retention) -> Result<bool, Error> {
        let ceiling = ceiling(retention);
        Ok(ceiling > 0 && self.used_bytes()? > ceiling - ceiling / (2 * SPARE))
    }

    /// Returns the size of the rows in bytes, without free pages.
    pub fn used_bytes(&self) -> Result<u64, Error> {
        let pages = self.pragma("page_count")? - self.pragma("freelist_count")?;
        Ok(u64::try_from(pages * self.pragma("page_size")?).unwrap_or(0))
    }

    fn pragma(&self, name: &str) -> Result<i64, Error> {
        self.value(&format!("PRAGMA {name}"), [])
    }

    /// Queues the notes of sessions that changed after their end. Returns how many.
    pub fn queue_due_notes(&self, now: i64) -> Result<usize, Error> {
        let due: Vec<String> = self.column(
            "SELECT id FROM session WHERE state = 'completed' AND noted < change",
            [],
        )?;
        for session in &due {
            self.queue_note(session, now)?;
        }
        Ok(due.len())
    }

    /// Queues the note of a session in its current state. Returns whether one is pending.
    pub(super) fn queue_note(&self, session: &str, now: i64) -> Result<bool, Error> {
        let sql = "SELECT change, noted FROM session WHERE id = ?";
        match self.first_tuple::<(i64, i64)>(sql, [session])? {
            Some((change, noted)) if noted < change => self.queue(job::NOTE, session, change, now),
            _ => Ok(false),
        }
    }
}

/// Returns the limit on the size of the rows, in bytes.
fn ceiling(retention: &Retention) -> u64 {
    u64::from(retention.ceiling_mib) * 1024 * 1024
}

/// One run of retention.
struct Upkeep<'a> {
    journal: &'a Journal,
    pruned: Pruned,
    /// The number of transactions.
    slices: usize,
}

impl<'a> Upkeep<'a> {
    fn new(journal: &'a Journal) -> Self {
        Self {
            journal,
            pruned: Pruned::default(),
            slices: 0,
        }
    }

    /// Deletes the oldest records over the ceiling, then shrinks the file.
    fn make_room(mut self, retention: &Retention, now: i64) -> Result<Pruned, Error> {
        let journal = self.journal;
        if journal.needs_room(retention)? {
            let ceiling = ceiling(retention);
            let goal = ceiling - ceiling / SPARE;
            for table in [expiring("block"), EVENTS, TURN_ENDS, PROMPTS] {
                let is_enough = || Ok(journal.used_bytes()? <= goal);
                self.let_go(table, now - YOUNG, is_enough)?;
            }
            self.pruned.is_full = journal.used_bytes()? > ceiling;
        }
        self.give_back()?;
        Ok(self.pruned)
    }

    /// Deletes rows from before a time, oldest first, until enough is deleted.
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
        // A note that is written again must keep what its events said.
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
                            journal.run(&mark, [last, end, before])?;
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

    /// Runs a transaction and measures it.
    fn slice<T>(&mut self, writes: impl FnOnce(&Journal) -> Result<T, Error>) -> Result<T, Error> {
        let mut started = Instant::now();
        let value = self.journal.in_transaction(|journal| {
            // Measured after the wait for the write lock.
            started = Instant::now();
            writes(journal)
        })?;
        self.pruned.longest = self.pruned.longest.max(started.elapsed());
        self.slices += 1;
        if self.slices.is_multiple_of(FOLDED_SLICES) {
            // Checkpoints only as far as nobody has to wait.
            let fold = "PRAGMA wal_checkpoint(PASSIVE)";
            self.journal.connection.query_row(fold, [], |_| Ok(()))?;
        }
        Ok(value)
    }

    /// Returns free pages to the file system.
    fn give_back(&mut self) -> Result<(), Error> {
        if self.journal.pragma("auto_vacuum")? == 0 {
            // A file of the first version needs this once.
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
    use anamnesis_session::event::SessionEvent;

    use super::super::tests::{
        count, ended, event, journal_with_session, now, prompted, started, take, used,
    };
    use super::*;

    fn events_of(session: &str, count: usize) -> Vec<SessionEvent> {
        let event = |number| used(session, event(&format!("t{number}"), "Edit", "a"));
        (0..count).map(event).collect()
    }

    #[test]
    fn what_may_not_go_does_not_stand_in_the_way_of_what_may() {
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
    fn a_session_with_a_clock_of_the_year_2100_does_not_let_records_expire() {
        let (_folder, journal) = journal_with_session("s");
        let at = now().timestamp_millis();
        let wrong = at + 74 * 365 * DAY;
        let hour = DAY / 24;
        for (time, is_trusted) in [
            (at, false),
            (at + DAY, true),
            (wrong, false),
            (wrong + 23 * hour, false),
            // The clock is right again.
            (at + 2 * DAY, false),
            (at + 3 * DAY, true),
            // It was set back by an hour, and a week passed.
            (at + 4 * DAY, true),
            (at + 4 * DAY - hour, true),
            (at + 11 * DAY - hour, true),
            // The machine was off for a month.
            (at + 40 * DAY, false),
            (at + 41 * DAY, true),
        ] {
            assert_eq!(journal.trust_clock(time).unwrap(), is_trusted, "{time}");
        }
    }

    #[test]
    fn an_old_event_that_came_late_goes_with_those_around_it() {
        let (_folder, journal) = journal_with_session("s");
        let day = 24 * 60 * 60 * 1000;
        let at = now().timestamp_millis();
        for record in events_of("s", 150) {
            take(
                &journal,
                &[SessionEvent {
                    at: at + 31 * day,
                    ..record
                }],
            );
        }
        // The record was in the spool for a month.
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
        let (_folder, journal) = journal_with_session("s");
        let long = "word ".repeat(1_590);
        for number in 0..160 {
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
