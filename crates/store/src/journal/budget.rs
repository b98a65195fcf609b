//! Limits background calls to a model.
//!
//! A call is counted and its session marked in one transaction before anything is sent. A process
//! that is killed in between wastes one call, but never pays twice.

use rusqlite::params;

use super::{Error, Journal, Queries};

/// The job kind for summarising a session with a model.
pub const SUMMARY: &str = "summary";

/// The job kind for reflecting on the project of a session.
pub const REFLECTION: &str = "reflection";

/// The `meta` key of the calls and tokens of the last day with a call: `2026-01-31 3 4100`.
const SPENT: &str = "spent";

/// The daily limits of background calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The number of calls.
    pub calls: u32,
    /// The number of tokens, including those of the answers.
    pub tokens: u32,
}

/// The answer to a request for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spending {
    /// The call is counted and may be made.
    Granted,
    /// The model was already asked about this session.
    Asked,
    /// Today's limit is reached.
    UsedUp,
}

impl Journal {
    /// Counts a call if today's limits allow it. Each session is counted only once.
    ///
    /// # Errors
    /// Nothing was counted, so nothing may be sent.
    pub fn spend(
        &self,
        session: Option<&str>,
        tokens: usize,
        budget: Budget,
        day: &str,
        now: i64,
    ) -> Result<Spending, Error> {
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        self.in_transaction(|journal| {
            let connection = &journal.connection;
            if let Some(session) = session
                && connection.execute(
                    "UPDATE session SET asked_at = ?2 WHERE id = ?1 AND asked_at IS NULL",
                    params![session, now],
                )? == 0
            {
                return Ok(Spending::Asked);
            }
            let (calls, so_far) = journal.spent_on(day)?;
            if calls >= i64::from(budget.calls)
                || so_far.saturating_add(tokens) > i64::from(budget.tokens)
            {
                connection.execute("UPDATE session SET asked_at = NULL WHERE id = ?", [session])?;
                return Ok(Spending::UsedUp);
            }
            let spent = format!("{day} {} {}", calls + 1, so_far.saturating_add(tokens));
            journal.set_meta(SPENT, &spent)?;
            Ok(Spending::Granted)
        })
    }

    /// Stores why the model's answer about a session was rejected.
    pub fn not_taken(&self, session: &str, reason: &str) -> Result<(), Error> {
        self.run(
            "UPDATE session SET asked_reason = ?2 WHERE id = ?1",
            [session, reason],
        )
    }

    /// Returns when the model was asked about a session, and why its answer was rejected, if it was.
    pub fn asked_about(&self, session: &str) -> Result<Option<(i64, Option<String>)>, Error> {
        let sql =
            "SELECT asked_at, asked_reason FROM session WHERE id = ? AND asked_at IS NOT NULL";
        self.first_tuple(sql, [session])
    }

    /// Returns the number of calls and tokens of a day.
    pub fn spent_on(&self, day: &str) -> Result<(i64, i64), Error> {
        let spent = self.meta(SPENT)?.unwrap_or_default();
        let rest = spent.strip_prefix(day).unwrap_or_default();
        let mut numbers = rest
            .split_whitespace()
            .map(|number| number.parse().unwrap_or(0));
        Ok((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
    }

    /// Returns why the model's last answer was rejected; none if it was accepted.
    pub fn last_not_taken(&self) -> Result<Option<String>, Error> {
        let reason: Option<Option<String>> = self.first("SELECT asked_reason FROM session WHERE asked_at IS NOT NULL ORDER BY asked_at DESC LIMIT 1", [])?;
        Ok(reason.flatten())
    }

    /// Queues a summary for each session that ended since `since`, has a note and nothing private.
    /// Returns how many.
    pub fn queue_summaries(&self, since: i64, now: i64) -> Result<usize, Error> {
        self.change("INSERT OR IGNORE INTO job (kind, session, up_to, state, free_at, at)
             SELECT ?1, id, 0, 'queued', ?3, ?3 FROM session
             WHERE state = 'completed' AND noted >= change AND noted_at IS NOT NULL AND ended_at >= ?2
               AND is_private = 0 AND asked_at IS NULL
               AND NOT EXISTS (SELECT 1 FROM prompt WHERE prompt.session = session.id AND privacy <> 'none')", params![SUMMARY, since, now])
    }

    /// Queues a reflection for each session that ended since `since` and has a note. Returns how
    /// many.
    pub fn queue_reflections(&self, since: i64, now: i64) -> Result<usize, Error> {
        self.change("INSERT OR IGNORE INTO job (kind, session, up_to, state, free_at, at)
             SELECT ?1, id, 0, 'queued', ?3, ?3 FROM session
             WHERE state = 'completed' AND noted >= change AND noted_at IS NOT NULL AND ended_at >= ?2", params![REFLECTION, since, now])
    }

    /// Postpones a job. This does not count as a try.
    pub fn put_off(&self, job: &super::Job, until: i64) -> Result<(), Error> {
        self.run("UPDATE job SET state = 'queued', free_at = ?4 WHERE kind = ?1 AND session = ?2 AND up_to = ?3", params![job.kind, job.session, job.up_to, until])
    }

    /// Returns how many summaries are postponed to another day.
    pub fn put_off_summaries(&self, now: i64) -> Result<usize, Error> {
        self.value(
            "SELECT count(*) FROM job WHERE kind = ? AND state = 'queued' AND free_at > ?",
            params![SUMMARY, now],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{journal_with_session, started, take};
    use super::*;

    const BUDGET: Budget = Budget {
        calls: 40,
        tokens: 400_000,
    };

    #[test]
    fn five_hundred_sessions_spend_no_more_than_a_day_has() {
        let (_folder, journal) = journal_with_session("s0");
        for number in 1..500 {
            take(&journal, &[started(&format!("s{number}"), "startup")]);
        }
        let spend = |tokens: usize, day: &str| {
            let all = (0..500).map(|number| {
                journal
                    .spend(Some(&format!("s{number}")), tokens, BUDGET, day, 1)
                    .unwrap()
            });
            all.filter(|spending| *spending == Spending::Granted)
                .count()
        };
        assert_eq!(spend(2_000, "2026-01-01"), 40);
        // No session is asked about twice, not even on another day.
        assert_eq!(
            journal
                .spend(Some("s0"), 1, BUDGET, "2026-01-02", 2)
                .unwrap(),
            Spending::Asked
        );
        // A call without a session counts too, and may be repeated.
        for _ in 0..2 {
            assert_eq!(
                journal.spend(None, 1, BUDGET, "2026-01-02", 2).unwrap(),
                Spending::Granted
            );
        }
        assert_eq!(spend(30_000, "2026-01-02"), 13);
        assert_eq!(spend(400_001, "2026-01-03"), 0);
        let none = Budget { calls: 0, ..BUDGET };
        assert_eq!(
            journal
                .spend(Some("s499"), 1, none, "2026-01-04", 2)
                .unwrap(),
            Spending::UsedUp
        );
        assert_eq!(
            journal
                .spend(Some("unknown"), 1, BUDGET, "2026-01-04", 2)
                .unwrap(),
            Spending::Asked
        );
    }
}
