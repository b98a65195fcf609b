//! The job queue. A job is leased, then done, or tried again later.
//!
//! Jobs work from stored rows, so a killed process loses nothing: its lease expires.

use rusqlite::params;

use super::{Error, Journal, REFLECTION};
use crate::sqlite::{Queries, read_row};

/// The job kind for writing the note of a session.
pub const NOTE: &str = "note";

/// The duration of a lease, milliseconds.
const LEASE: i64 = 2 * 60 * 1000;

/// The delay after each failed try, milliseconds. After the last one, the job has failed.
const WAITS: [i64; 2] = [60 * 1000, 5 * 60 * 1000];

/// Whether a job is free at `?1`: its wait, which began at `at`, [is over](super::is_over).
const IS_FREE: &str = "state IN ('queued', 'leased') AND abs(?1 - at) >= free_at - at";

/// A queued job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The kind.
    pub kind: String,
    /// The session.
    pub session: String,
    /// The session's `change` that the job covers.
    pub up_to: i64,
    /// The number of earlier tries.
    pub tries: i64,
}

/// Counts of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// Queued or leased.
    pub waiting: i64,
    /// Failed after all tries.
    pub failed: i64,
    /// The error of the last failed job.
    pub last_error: Option<String>,
}

impl Journal {
    /// Queues a job. It replaces a queued job of the same kind and session. Returns whether one is
    /// queued now.
    pub fn queue(&self, kind: &str, session: &str, up_to: i64, now: i64) -> Result<bool, Error> {
        self.run("DELETE FROM job WHERE kind = ? AND session = ? AND up_to < ? AND state = 'queued' AND tries = 0", params![kind, session, up_to])?;
        self.run(
            "INSERT OR IGNORE INTO job (kind, session, up_to, state, free_at, at)
                 VALUES (?1, ?2, ?3, 'queued', ?4, ?4)",
            params![kind, session, up_to, now],
        )?;
        self.exists("SELECT 1 FROM job WHERE kind = ? AND session = ? AND up_to = ? AND state IN ('queued', 'leased')", params![kind, session, up_to])
    }

    /// Leases the free job that was queued first. Reflections come last, because they use the notes and
    /// summaries that the other jobs write.
    pub fn lease(&self, now: i64) -> Result<Option<Job>, Error> {
        self.one(&format!(
                "UPDATE job SET state = 'leased', free_at = ?1 + ?2, at = ?1
                 WHERE rowid = (SELECT rowid FROM job WHERE {IS_FREE} ORDER BY kind = ?3, free_at, rowid LIMIT 1)
                 RETURNING kind, session, up_to, tries"
            ), params![now, LEASE, REFLECTION], |row| {
            read_row!(row, Job: kind, session, up_to, tries)
        })
    }

    /// Marks a job as done.
    pub fn done(&self, job: &Job, now: i64) -> Result<(), Error> {
        self.run("UPDATE job SET state = 'done', error = NULL, at = ?4
                 WHERE kind = ?1 AND session = ?2 AND up_to <= ?3 AND state IN ('queued', 'leased')", params![job.kind, job.session, job.up_to, now])
    }

    /// Records a failed try: the job is queued again, or failed for good after the last try.
    pub fn failed(&self, job: &Job, reason: &str, now: i64) -> Result<(), Error> {
        let wait = usize::try_from(job.tries)
            .ok()
            .and_then(|tries| WAITS.get(tries));
        let (state, free_at) = match wait {
            Some(wait) => ("queued", now + wait),
            None => ("failed", now),
        };
        self.run(
            "UPDATE job SET state = ?4, tries = ?5, free_at = ?6, error = ?7, at = ?8
                 WHERE kind = ?1 AND session = ?2 AND up_to = ?3",
            params![
                job.kind,
                job.session,
                job.up_to,
                state,
                job.tries + 1,
                free_at,
                reason,
                now
            ],
        )
    }

    /// Queues the failed jobs again. Returns how many.
    pub fn retry(&self, now: i64) -> Result<usize, Error> {
        self.change("UPDATE job SET state = 'queued', tries = 0, free_at = ?1, at = ?1 WHERE state = 'failed'", [now])
    }

    /// Returns whether a job is free now.
    pub fn has_jobs(&self, now: i64) -> Result<bool, Error> {
        self.exists(&format!("SELECT 1 FROM job WHERE {IS_FREE} LIMIT 1"), [now])
    }

    /// Counts of jobs.
    pub fn jobs(&self) -> Result<Queue, Error> {
        self.row(
            "SELECT count(*) FILTER (WHERE state IN ('queued', 'leased')) AS waiting,
                count(*) FILTER (WHERE state = 'failed') AS failed,
               (SELECT error FROM job WHERE error IS NOT NULL ORDER BY at DESC LIMIT 1) AS last_error
             FROM job",
            [],
            |row| read_row!(row, Queue: waiting, failed, last_error),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::journal_with_session;

    #[test]
    fn a_job_is_there_once_and_the_newer_one_takes_its_place() {
        let (_folder, journal) = journal_with_session("s");
        assert!(journal.queue("note", "s", 3, 10).unwrap());
        assert!(journal.queue("note", "s", 3, 11).unwrap());
        assert!(journal.queue("note", "s", 5, 12).unwrap());
        assert_eq!(journal.jobs().unwrap().waiting, 1);
        let job = journal.lease(12).unwrap().unwrap();
        assert_eq!((job.up_to, job.tries), (5, 0));
        assert_eq!(journal.lease(12).unwrap(), None);
        journal.done(&job, 13).unwrap();
        assert!(!journal.queue("note", "s", 5, 14).unwrap());
        assert!(!journal.has_jobs(i64::MAX).unwrap());
    }

    #[test]
    fn a_reflection_waits_for_the_summary_of_the_latest_session() {
        let (_folder, journal) = journal_with_session("s");
        journal.queue("reflection", "s", 0, 10).unwrap();
        journal.queue("summary", "s", 0, 12).unwrap();
        journal.queue("note", "s", 1, 11).unwrap();
        let kinds = ["note", "summary", "reflection"];
        assert_eq!(
            kinds.map(|_| journal.lease(12).unwrap().unwrap().kind),
            kinds
        );
    }

    #[test]
    fn a_lease_that_has_run_out_is_free_again() {
        let (_folder, journal) = journal_with_session("s");
        journal.queue("note", "s", 1, 0).unwrap();
        let first = journal.lease(0).unwrap().unwrap();
        assert_eq!(journal.lease(119_999).unwrap(), None);
        assert_eq!(journal.lease(120_000).unwrap(), Some(first));
    }

    #[test]
    fn a_job_that_a_clock_ahead_queued_is_free() {
        let (_folder, journal) = journal_with_session("s");
        let ahead = 400 * 24 * 60 * 60 * 1000;
        journal.queue("note", "s", 1, ahead).unwrap();
        let job = journal.lease(ahead).unwrap().unwrap();
        journal.failed(&job, "no disk", ahead).unwrap();
        assert_eq!(journal.lease(ahead + 1).unwrap(), None);
        assert!(journal.has_jobs(0).unwrap());
        assert!(journal.lease(0).unwrap().is_some());
    }

    #[test]
    fn a_job_is_given_up_after_three_tries() {
        let (_folder, journal) = journal_with_session("s");
        journal.queue("note", "s", 1, 0).unwrap();
        let mut now = 0;
        for wait in [60_000, 300_000] {
            let job = journal.lease(now).unwrap().unwrap();
            journal.failed(&job, "no disk", now).unwrap();
            assert_eq!(journal.lease(now + wait - 1).unwrap(), None);
            now += wait;
        }
        let job = journal.lease(now).unwrap().unwrap();
        journal.failed(&job, "no disk", now).unwrap();
        assert_eq!(journal.lease(i64::MAX - 1_000_000).unwrap(), None);
        let queue = journal.jobs().unwrap();
        assert_eq!((queue.waiting, queue.failed), (0, 1));
        assert_eq!(queue.last_error.as_deref(), Some("no disk"));
        // A person can queue it again.
        assert_eq!(journal.retry(now).unwrap(), 1);
        assert!(journal.lease(now).unwrap().is_some());
    }
}
