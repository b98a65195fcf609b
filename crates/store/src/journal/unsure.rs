//! Sessions whose lost rows may have marked something as private.
//!
//! After a repair that lost such rows, every session is unsure until the journal takes a start of it.

use rusqlite::params;

use super::{Error, Journal};

/// The key in `meta` of the time from which sessions are unsure, milliseconds since 1970.
const UNSURE: &str = "unsure";

/// The prefix of the keys in `meta` of sessions that are not unsure any more.
const SURE: &str = "sure";

/// How long a session from before the repair may be continued, milliseconds.
const TERM: i64 = 30 * 24 * 60 * 60 * 1000;

impl Journal {
    /// Returns whether lost rows may have marked something in a session as private.
    pub fn is_unsure(&self, session: &str) -> Result<bool, Error> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM meta WHERE key = ?1)
                   AND NOT EXISTS (SELECT 1 FROM meta WHERE key = ?2)",
            )?
            .query_row([UNSURE, &sure(session)], |row| row.get(0))?)
    }

    /// Makes every session unsure.
    pub(super) fn mark_all_unsure(&self, now: i64) -> Result<(), Error> {
        self.forget_sure(None)?;
        self.set_meta(UNSURE, &now.to_string())
    }

    /// Marks a session as sure from its start or resumption on. A resumed session may have had something
    /// private before.
    pub(super) fn mark_sure(&self, session: &str, is_new: bool) -> Result<(), Error> {
        if !self.is_unsure(session)? {
            return Ok(());
        }
        if !is_new {
            self.connection
                .execute("UPDATE session SET is_private = 1 WHERE id = ?", [session])?;
        }
        self.connection
            .execute("INSERT INTO meta VALUES (?, '1')", [&sure(session)])?;
        Ok(())
    }

    /// Removes the mark of one session, or of all.
    pub(super) fn forget_sure(&self, session: Option<&str>) -> Result<(), Error> {
        let name = sure(session.unwrap_or_default());
        self.connection.execute(
            "DELETE FROM meta WHERE key = ?1 OR (?2 AND substr(key, 1, length(?1)) = ?1)",
            params![name, session.is_none()],
        )?;
        Ok(())
    }

    /// Removes all marks once no session from before the repair can be continued.
    pub(super) fn expire_unsure(&self, now: i64) -> Result<(), Error> {
        if self.time(UNSURE)?.is_some_and(|since| since < now - TERM) {
            self.in_transaction(|journal| {
                journal.forget_sure(None)?;
                journal.remove_meta(UNSURE)
            })?;
        }
        Ok(())
    }
}

fn sure(session: &str) -> String {
    format!("{SURE} {session}")
}
