//! Records the notes that arrived by a command, a tool, sync or import, or existed at the first
//! check. Any other note for all projects or a group was added to the folder by hand.

use anamnesis_note::id::NoteId;

use super::{Error, Journal, Queries};
use crate::fs::{file, home::Home};

/// The `meta` key that is set once the existing notes are recorded.
pub(super) const BEGUN: &str = "known_notes";

/// Returns whether a folder of notes has a file that looks like a note.
pub(super) fn has_notes(home: &Home) -> bool {
    let mut entries = home
        .note_folders()
        .flat_map(|folder| file::entries(&folder));
    entries.any(|entry| entry.path().extension().is_some_and(|end| end == "md"))
}

impl Journal {
    /// Records that the origin of these notes is known.
    pub fn know(&self, notes: impl IntoIterator<Item = NoteId>) -> Result<(), Error> {
        self.in_transaction(|journal| journal.add_known(notes))
    }

    fn add_known(&self, notes: impl IntoIterator<Item = NoteId>) -> Result<(), Error> {
        for note in notes {
            let sql = "INSERT OR IGNORE INTO known_note VALUES (?)";
            self.run(sql, [note.to_string()])?;
        }
        Ok(())
    }

    /// Records all existing notes, once: when the journal of a store without notes is created, else
    /// at the first check.
    pub fn know_at_first<I>(&self, notes: impl FnOnce() -> I) -> Result<(), Error>
    where
        I: IntoIterator<Item = NoteId>,
    {
        if self.meta(BEGUN)?.is_some() {
            return Ok(());
        }
        let notes = notes();
        self.in_transaction(|journal| {
            journal.add_known(notes)?;
            journal.set_meta(BEGUN, "1")
        })
    }

    /// Returns whether the origin of a note is known. Returns true for every note before the first
    /// check.
    pub fn knows(&self, note: NoteId) -> Result<bool, Error> {
        if self.meta(BEGUN)?.is_none() {
            return Ok(true);
        }
        let sql = "SELECT EXISTS (SELECT 1 FROM known_note WHERE note = ?1)
             OR EXISTS (SELECT 1 FROM written_here WHERE note = ?1)";
        self.value(sql, [note.to_string()])
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use chrono::DateTime;

    use super::super::tests::journal_with_session;
    use super::*;

    #[test]
    fn what_was_there_at_first_is_known_and_what_comes_by_us() {
        let (_folder, journal) = journal_with_session("s");
        journal.remove_meta(BEGUN).unwrap();
        let [first, ours, written, foreign] =
            ["first", "ours", "written", "foreign"].map(NoteId::made_of);
        assert!(journal.knows(foreign).unwrap());
        journal.know_at_first(|| [first]).unwrap();
        journal.know_at_first(|| [foreign]).unwrap();
        journal.know([ours, ours]).unwrap();
        journal
            .written_here(written, b"text", DateTime::UNIX_EPOCH)
            .unwrap();
        let known = [first, ours, written, foreign].map(|note| journal.knows(note).unwrap());
        assert_eq!(known, [true, true, true, false]);
    }

    #[test]
    fn a_note_that_appears_in_an_empty_store_is_foreign() {
        for (file, is_known) in [(None, false), (Some("memory/semantic"), true)] {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::new(folder.path());
            home.create().unwrap();
            if let Some(place) = file {
                let place = folder.path().join(place);
                fs::create_dir_all(&place).unwrap();
                fs::write(place.join("01JZ0000000000000000AAAA01.md"), "---\n---\n").unwrap();
            }
            let journal = Journal::open(&home, Duration::ZERO).unwrap();
            let dropped = NoteId::made_of("dropped");
            assert_eq!(journal.knows(dropped).unwrap(), is_known, "{file:?}");
        }
    }
}
