//! The derived index: SQLite with FTS5 over the notes. Delete it and nothing is lost.
//!
//! - One writer at a time, under the index lock; readers open the file read-only and never wait.
//! - A file that is missing, corrupt, foreign or of another version is built anew beside the old one
//!   and swapped in under that lock. The old write-ahead log goes first, since SQLite would take it
//!   for the new file's own.
//! - Nothing that is shown depends on the order in which notes were indexed: ties are broken by id,
//!   so an index that was kept in step and one that was built anew give the same answers.

mod cited;
mod entry;
mod links;
mod postings;
mod query;
mod rebuild;
mod reference;
mod refresh;
mod schema;
mod supersession;
mod tasks;
mod triggers;
mod usage;

use std::{io, path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode};

pub use self::{
    entry::Entry,
    links::{LinkCounts, Nowhere, Unresolved},
    postings::{BLOCK_LENGTH, Block, Document, Documents, Postings},
    query::{Counts, Filter, Recent, Weights},
    reference::Unresolvable,
    refresh::Refreshed,
    triggers::Worded,
    usage::ByMonth,
};
use self::{
    postings::Changes,
    query::{bound, count},
    refresh::{inert, insert, settle},
    schema::{Part, check, create},
};
use crate::{
    fs::{
        home::Home,
        lock::{self, Lock, Subject},
    },
    notes::{Notes, Stored},
    sqlite,
};

/// The largest index in memory, in pages of 4 KiB.
const MAX_PAGES_IN_MEMORY: u32 = 128 * 1024;

/// The index cannot be used as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none.
    #[error("no index yet")]
    Missing,
    /// It is not one of ours, or of another version.
    #[error("the index is {0}")]
    Foreign(String),
    /// SQLite refused.
    #[error("index: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file system refused.
    #[error("index: {0}")]
    Io(#[from] io::Error),
    /// Somebody else writes it for longer than this caller can wait.
    #[error("the index is being written by another anamnesis process")]
    Locked,
}

impl Error {
    /// Tells whether somebody else was at it for longer than this caller can wait, by our lock or by
    /// SQLite's own.
    fn is_busy(&self) -> bool {
        match self {
            Self::Locked => true,
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            ),
            Self::Missing | Self::Foreign(_) | Self::Io(_) => false,
        }
    }

    /// Tells whether the file itself is damaged: it has to be built anew.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
            ),
            Self::Missing | Self::Foreign(_) => true,
            Self::Io(_) | Self::Locked => false,
        }
    }
}

/// An open index.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    // Held by writers; dropped last.
    lock: Option<Lock>,
}

impl Index {
    /// Opens the index for reading. Nothing is built and nothing is written.
    ///
    /// # Errors
    /// When there is none, or it is not one that this version can read.
    pub fn open(home: &Home) -> Result<Self, Error> {
        let path = home.index();
        if !path.exists() {
            return Err(Error::Missing);
        }
        let connection = sqlite::open_read(&path, Duration::from_millis(100))?;
        // One look at the index: its questions see the same notes, and the file is locked once, not
        // at each of them.
        connection.execute_batch("BEGIN")?;
        check(&connection)?;
        Ok(Self {
            connection,
            lock: None,
        })
    }

    /// An index in memory of notes that need not lie on the disk, such as those of another time. It is
    /// gone when it is dropped, whatever happens to the process.
    ///
    /// # Errors
    /// When SQLite refuses, or it would be larger than 512 MiB.
    pub fn of(notes: impl IntoIterator<Item = Stored>) -> Result<Self, Error> {
        let connection = sqlite::open_in_memory()?;
        connection.execute_batch(&format!(
            "PRAGMA temp_store = MEMORY; PRAGMA max_page_count = {MAX_PAGES_IN_MEMORY};"
        ))?;
        create(&connection)?;
        let transaction = connection.unchecked_transaction()?;
        let mut changes = Changes::default();
        for stored in notes {
            insert(&transaction, &stored, &mut changes)?;
        }
        settle(&transaction, changes)?;
        transaction.commit()?;
        Ok(Self {
            connection,
            lock: None,
        })
    }

    /// Opens the index for writing; one that cannot be used is built anew from the notes.
    ///
    /// # Errors
    /// [`Error::Locked`] when somebody else writes for longer than `patience`.
    pub fn open_to_write(home: &Home, notes: &Notes, patience: Duration) -> Result<Self, Error> {
        let lock = lock::acquire(home, Subject::Index, patience)?.ok_or(Error::Locked)?;
        match Self::open_existing(&home.index(), patience) {
            Ok(connection) => Ok(Self {
                connection,
                lock: Some(lock),
            }),
            Err(_) => Self::build(home, notes, lock, patience),
        }
    }

    /// Opens the index for writing and brings it in step with the notes.
    ///
    /// Where most files are others than the index knows (a copied store, a restored backup), it is
    /// built anew: wiping each old text from a full-text index takes twenty times as long.
    ///
    /// # Errors
    /// As [`Index::open_to_write`] and [`Index::refresh`].
    pub fn in_step(home: &Home, notes: &Notes, patience: Duration) -> Result<Self, Error> {
        let mut index = Self::open_to_write(home, notes, patience)?;
        let refreshed = match index.is_far_behind(notes) {
            Ok(true) => None,
            Ok(false) => Some(index.refresh(notes).map(drop)),
            Err(error) => Some(Err(error)),
        };
        match refreshed.map(|done| done.and_then(|()| index.take_up_usage(home).map(drop))) {
            Some(Ok(())) => Ok(index),
            Some(Err(error)) if !error.is_damage() => Err(error),
            _ => index.build_again(home, notes, patience),
        }
    }

    /// The index for a caller in a hurry: in step with the notes, or as it is while another process
    /// writes it.
    ///
    /// # Errors
    /// As [`Index::in_step`], but [`Error::Locked`] only where there is none to be read, either.
    pub fn in_step_or_as_is(home: &Home, notes: &Notes, patience: Duration) -> Result<Self, Error> {
        match Self::in_step(home, notes, patience) {
            Err(error) if error.is_busy() => Self::open(home).map_err(|_| Error::Locked),
            opened => opened,
        }
    }

    /// Opens the index for writing without building one.
    ///
    /// # Errors
    /// When there is none that can be used, or somebody else writes for longer than `patience`.
    pub fn open_if_usable(home: &Home, patience: Duration) -> Result<Self, Error> {
        let lock = lock::acquire(home, Subject::Index, patience)?.ok_or(Error::Locked)?;
        let connection = Self::open_existing(&home.index(), patience)?;
        Ok(Self {
            connection,
            lock: Some(lock),
        })
    }

    fn open_existing(path: &Path, patience: Duration) -> Result<Connection, Error> {
        if !path.exists() {
            return Err(Error::Missing);
        }
        let connection = sqlite::open_write(path, patience)?;
        check(&connection)?;
        connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;")?;
        Ok(connection)
    }

    /// Folds the write-ahead log into the file, so that what was deleted is in no byte of it.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn checkpoint(&self) -> Result<(), Error> {
        Ok(sqlite::checkpoint(&self.connection)?)
    }

    /// Runs SQLite's own check of the file, and reads every list of notes; `Ok` when nothing is found.
    ///
    /// # Errors
    /// What it found.
    pub fn integrity(&self) -> Result<(), Error> {
        let answer: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if answer == "ok" {
            self.read_postings()
        } else {
            Err(Error::Foreign(format!("damaged: {answer}")))
        }
    }
}

#[cfg(test)]
mod tests;
