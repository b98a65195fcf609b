//! Writes a new note: the limit for agents, the file, the journal and the index.

use std::time::Duration;

use anamnesis_note::{agent_policy, id::NoteId, note::Note};
use chrono::{DateTime, Utc};

use crate::{
    fs::{home::Home, log},
    index::{self, Index},
    journal::{self, Journal},
    notes::{self, Notes, Stored},
};

/// A note cannot be written. Nothing of it is on disk.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be written.
    #[error(transparent)]
    Notes(#[from] notes::Error),
    /// The journal cannot tell whether the limit is reached.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// Agents have reached the limit of notes in this session.
    #[error("agents have written or forgotten {0} notes in this session; no more are taken")]
    Full(usize),
}

/// Writes new notes.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The store.
    pub home: &'a Home,
    /// Its notes.
    pub notes: &'a Notes,
    /// This machine's journal. Without it nothing is counted.
    pub journal: Option<&'a Journal>,
    /// The session that an agent's notes count to. Without it, the one named in the note, or else the
    /// day.
    pub counted_to: Option<&'a str>,
    /// The current time.
    pub now: DateTime<Utc>,
    /// The timeout for the index lock.
    pub index_timeout: Duration,
}

impl Writer<'_> {
    /// Writes a new note and adds it to the journal and the index.
    pub fn save(&self, note: &Note) -> Result<Stored, Error> {
        let counted = self.journal.filter(|_| note.is_by_agent());
        if let Some(journal) = counted {
            let session = self.counted_to.or(note.session.as_deref());
            take_place(journal, session, note.id, self.now)?;
        }
        let created = self
            .notes
            .lock()
            .and_then(|lock| self.notes.create(&lock, note));
        if let (Err(_), Some(journal)) = (&created, counted) {
            journal.give_place_back(note.id)?;
        }
        let stored = created?;
        if let Some(journal) = self.journal.filter(|_| !note.is_by_agent()) {
            let known = journal
                .remembered(note.id)
                .and_then(|()| journal.written_here(note.id, note.render().as_bytes(), self.now));
            if let Err(error) = known {
                log::append(self.home, self.now, &error.to_string());
            }
        }
        take_up(self.home, &stored, self.index_timeout, self.now);
        Ok(stored)
    }
}

/// Counts a note that an agent writes or forgets, in its session or else on this day.
pub fn take_place(
    journal: &Journal,
    session: Option<&str>,
    note: NoteId,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let day = now.date_naive().to_string();
    let session = session.unwrap_or(&day);
    if journal.take_place(session, note, agent_policy::MAX_NOTES, now)? {
        return Ok(());
    }
    Err(Error::Full(agent_policy::MAX_NOTES))
}

/// Adds a new note to the index if it is free within `timeout`. Otherwise the next refresh does,
/// because the note is on disk.
pub fn take_up(home: &Home, stored: &Stored, timeout: Duration, now: DateTime<Utc>) {
    let recorded = Index::open_if_usable(home, timeout).and_then(|mut index| index.record(stored));
    // Without an index, the next command builds one with this note.
    if let Err(error) = recorded
        && !matches!(error, index::Error::Missing)
    {
        let text = format!("{} is not in the index yet: {error}", stored.path);
        log::append(home, now, &text);
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::NoteType;

    use super::*;
    use crate::notes::Notes;

    #[test]
    fn a_note_that_is_written_before_the_index_leaves_no_line_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let notes = Notes::new(home.clone(), Duration::ZERO);
        let lock = notes.lock().unwrap();
        let now = Utc::now();
        let note = Note::new(NoteId::generate(now), NoteType::Semantic, now);
        let stored = notes.create(&lock, &note).unwrap();
        let log = || std::fs::read_to_string(home.log()).unwrap_or_default();
        take_up(&home, &stored, Duration::ZERO, now);
        assert_eq!(log(), "");
        std::fs::write(home.index(), "damaged").unwrap();
        take_up(&home, &stored, Duration::ZERO, now);
        assert!(log().contains("is not in the index yet"), "{}", log());
    }
}
