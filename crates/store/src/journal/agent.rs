//! Limits the number of notes that agents write or forget in a session, across all processes.

use anamnesis_note::id::NoteId;
use chrono::{DateTime, Utc};
use rusqlite::params;

use super::{Error, Journal};
use crate::sqlite::{Queries, bound};

impl Journal {
    /// Reserves one of the `limit` notes that agents may write or forget in a session. Returns false if
    /// none is left. A note counts once, even if it is written and forgotten.
    pub fn take_place(
        &self,
        session: &str,
        note: NoteId,
        limit: usize,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        // A single statement, so that only one of two processes gets the last place.
        let taken = self.change(
            "INSERT OR IGNORE INTO agent_note SELECT ?1, ?2, ?3
             WHERE (SELECT count(*) FROM agent_note WHERE session = ?1) < ?4",
            params![
                session,
                note.to_string(),
                now.timestamp_millis(),
                bound(limit)
            ],
        )?;
        let has_place = "SELECT 1 FROM agent_note WHERE session = ? AND note = ?";
        Ok(taken > 0 || self.exists(has_place, params![session, note.to_string()])?)
    }

    /// Releases the reservation of a note that could not be written.
    pub fn give_place_back(&self, note: NoteId) -> Result<(), Error> {
        self.run("DELETE FROM agent_note WHERE note = ?", [note.to_string()])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fs::home::Home;

    #[test]
    fn a_session_has_so_many_places_in_all_processes() {
        // MCP-06, INJ-18
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let now = DateTime::from_timestamp(1_767_323_045, 0).unwrap();
        Journal::open(&home, Duration::from_secs(5)).unwrap();
        let write = |thread: usize| {
            let journal = Journal::open(&home, Duration::from_secs(5)).unwrap();
            let take = |number: &usize| {
                let note = NoteId::made_of(&format!("{thread} {number}"));
                journal.take_place("s", note, 10, now).unwrap()
            };
            (0..5).filter(take).count()
        };
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || write(n))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(taken, 10);
        let journal = Journal::open(&home, Duration::from_secs(5)).unwrap();
        let one = NoteId::made_of("one");
        assert!(!journal.take_place("s", one, 10, now).unwrap());
        assert!(journal.take_place("other", one, 1, now).unwrap());
        // Forgetting it takes no other place.
        assert!(journal.take_place("other", one, 1, now).unwrap());
        assert!(
            !journal
                .take_place("other", NoteId::made_of("two"), 1, now)
                .unwrap()
        );
        journal.give_place_back(one).unwrap();
        assert!(journal.take_place("other", one, 1, now).unwrap());
        journal.forget_session("other").unwrap();
        assert!(journal.take_place("other", one, 1, now).unwrap());
    }
}
