//! How a new note gets into a store, whoever writes it: its place among an agent's, its file, what the
//! records know of it, the index.

use std::time::Duration;

use anamnesis_note::{agent_policy, note::Note};
use chrono::{DateTime, Utc};

use crate::{
    fs::{home::Home, log},
    index::Index,
    journal::{self, Journal},
    notes::{self, Notes, Stored},
};

/// A note could not be written. Nothing of it is on the disk.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its file could not be written.
    #[error(transparent)]
    Notes(#[from] notes::Error),
    /// The records could not say whether there is a place for it.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// Agents have written as many notes in this session as they may.
    #[error("agents have written {0} notes in this session; no more are taken")]
    Full(usize),
}

/// Writes new notes.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The store.
    pub home: &'a Home,
    /// Its notes.
    pub notes: &'a Notes,
    /// This machine's records. Without them nothing is counted.
    pub journal: Option<&'a Journal>,
    /// What an agent's notes are counted to; without it the session that they say they are of, or else
    /// the day.
    pub counted_to: Option<&'a str>,
    /// When.
    pub now: DateTime<Utc>,
    /// How long the index is waited for.
    pub index_patience: Duration,
}

impl Writer<'_> {
    /// Writes a new note and takes it up in the records and the index.
    ///
    /// # Errors
    /// When there is no place for it, or it cannot be written.
    pub fn save(&self, note: &Note) -> Result<Stored, Error> {
        let counted = self.journal.filter(|_| note.is_by_agent());
        if let Some(journal) = counted {
            self.take_place(journal, note)?;
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
        take_up(self.home, &stored, self.index_patience, self.now);
        Ok(stored)
    }

    fn take_place(&self, journal: &Journal, note: &Note) -> Result<(), Error> {
        let session = match self.counted_to.or(note.session.as_deref()) {
            Some(session) => session.to_owned(),
            None => self.now.date_naive().to_string(),
        };
        if journal.take_place(&session, note.id, agent_policy::MAX_NOTES, self.now)? {
            return Ok(());
        }
        Err(Error::Full(agent_policy::MAX_NOTES))
    }
}

/// Takes a note that was just written up in the index, if that is free within `patience`. If it is not,
/// the next refresh does: the note is on the disk.
pub fn take_up(home: &Home, stored: &Stored, patience: Duration, now: DateTime<Utc>) {
    let recorded = Index::open_if_usable(home, patience).and_then(|mut index| index.record(stored));
    if let Err(error) = recorded {
        let text = format!("{} is not in the index yet: {error}", stored.path);
        log::append(home, now, &text);
    }
}
