//! The derived index: SQLite tables over the notes. It can be deleted and rebuilt without loss.
//!
//! - One writer at a time holds the index lock. Readers open the file read-only and never wait.
//! - A file that is missing, corrupt, foreign or of another version is rebuilt beside the old one and
//!   swapped in under the lock. The old write-ahead log is removed first, because SQLite would apply
//!   it to the new file.
//! - No output depends on the order of indexing, because ties are broken by id. An updated index and
//!   a rebuilt one give the same answers.

mod branches;
mod check_runs;
mod cited;
mod conditions;
mod corrections;
mod counts;
mod document;
mod embeddings;
mod entry;
mod links;
mod look;
mod postings;
mod query;
mod rebuild;
mod reference;
mod refresh;
mod schema;
mod supersession;
mod tasks;
mod texts;
mod triggers;
mod usage;

use std::{
    cmp::Reverse,
    io,
    path::Path,
    time::{Duration, Instant},
};

use anamnesis_note::note::GLOBAL;
use rusqlite::{Connection, ErrorCode};

pub use self::{
    branches::{BranchState, NotesBranch},
    check_runs::{MAX_OPEN_DAYS, OpenFailure},
    conditions::WordCondition,
    corrections::NoteCorrection,
    document::{Block, Document},
    embeddings::{EmbeddingCounts, PendingEmbedding},
    entry::Entry,
    links::{LinkCounts, UnresolvedLink, UnresolvedReason},
    look::ALWAYS_CHECKED,
    postings::{BLOCK_LENGTH, Documents, Postings},
    query::{Filter, NoteTotals, Recent},
    rebuild::remove_others,
    reference::Unresolvable,
    refresh::Refreshed,
    texts::Texts,
    triggers::WordMatch,
    usage::ByMonth,
};
use self::{
    postings::Changes,
    query::bound,
    refresh::{inert, insert, settle},
    schema::{Tables, check, create},
};
use crate::{
    fs::{
        home::Home,
        lock::{self, Lock, Subject},
    },
    notes::{Notes, Stored},
    sqlite::{self, Queries},
};

/// The maximum size of an index in memory, in pages of 4 KiB.
const MAX_PAGES_IN_MEMORY: u32 = 128 * 1024;

/// The most notes of an index that a hook builds for itself.
const MAX_NEWEST: usize = 100;

/// The index cannot be used as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file does not exist.
    #[error("no index yet")]
    Missing,
    /// The file is not an index of this version, or it is damaged.
    #[error("the index is {0}")]
    Foreign(String),
    /// SQLite refused.
    #[error("index: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file system refused.
    #[error("index: {0}")]
    Io(#[from] io::Error),
    /// Another process holds the lock for longer than the caller's timeout.
    #[error("the index is being written by another anamnesis process")]
    Locked,
}

impl Error {
    /// Returns whether another process held our lock or SQLite's for longer than the timeout.
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

    /// Returns whether the disk is full.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Self::Io(error) => error.kind() == io::ErrorKind::StorageFull,
            Self::Missing | Self::Foreign(_) | Self::Locked => false,
        }
    }

    /// Returns whether the store can only be read.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Io(error) => matches!(
                error.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ),
            Self::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::ReadOnly),
            Self::Missing | Self::Foreign(_) | Self::Locked => false,
        }
    }

    /// Returns whether the file must be rebuilt. Rows that contradict each other break a constraint or
    /// are missing, which no sound index does.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => {
                sqlite::shows_damage(error)
                    || *error == rusqlite::Error::QueryReturnedNoRows
                    || matches!(
                        error.sqlite_error_code(),
                        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch)
                    )
            }
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

impl Queries for Index {
    type Error = Error;

    fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Index {
    fn new(connection: Connection, lock: Option<Lock>) -> Self {
        Self { connection, lock }
    }

    /// Opens the index read-only. It neither builds nor writes anything.
    pub fn open(home: &Home) -> Result<Self, Error> {
        Self::of_ours(Self::begin(home)?)
    }

    /// Like [`Index::open`]; `None` if no note is a warning, as in most stores.
    pub fn open_with_warnings(home: &Home) -> Result<Option<Self>, Error> {
        let connection = Self::begin(home)?;
        if triggers::has_none(&connection)? {
            return Ok(None);
        }
        Self::of_ours(connection).map(Some)
    }

    fn begin(home: &Home) -> Result<Connection, Error> {
        let path = home.index();
        if !path.exists() {
            return Err(Error::Missing);
        }
        let connection = sqlite::open_read(&path, Duration::from_millis(100))?;
        // One read transaction: all queries see the same notes, and SQLite locks the file once.
        connection.execute_batch("BEGIN")?;
        Ok(connection)
    }

    fn of_ours(connection: Connection) -> Result<Self, Error> {
        check(&connection)?;
        Ok(Self::new(connection, None))
    }

    /// Builds an index in memory, of at most 512 MiB, from notes that need not be on disk, such as
    /// those of an earlier time.
    pub fn in_memory(notes: impl IntoIterator<Item = Stored>) -> Result<Self, Error> {
        let connection = sqlite::open_in_memory()?;
        connection.execute_batch(&format!(
            "PRAGMA temp_store = MEMORY; PRAGMA max_page_count = {MAX_PAGES_IN_MEMORY};"
        ))?;
        create(&connection)?;
        let transaction = connection.unchecked_transaction()?;
        let mut changes = Changes::default();
        for stored in notes {
            insert(&transaction, &(&stored).into(), &mut changes)?;
        }
        settle(&transaction, changes)?;
        transaction.commit()?;
        Ok(Self::new(connection, None))
    }

    /// Builds an index in memory of the newest notes of a project and of all projects, for a hook without
    /// a usable index. Files are read for about this time.
    ///
    /// # Errors
    /// [`Error::Missing`] if there are none.
    pub fn of_newest(notes: &Notes, projects: &[String], time: Duration) -> Result<Self, Error> {
        let started = Instant::now();
        let mut listed = notes.list().notes;
        listed.sort_by_key(|(path, stamp)| Reverse((stamp.modified, *path)));
        let read = listed
            .into_iter()
            .take_while(|_| started.elapsed() < time)
            .filter_map(|(path, _)| notes.read(path).ok())
            .filter(|stored| {
                let project = stored.note().project;
                project == GLOBAL || projects.contains(&project)
            });
        let newest: Vec<Stored> = read.take(MAX_NEWEST).collect();
        if newest.is_empty() {
            return Err(Error::Missing);
        }
        Self::in_memory(newest)
    }

    /// Opens the index for writing. An unusable file is rebuilt from the notes.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process writes for longer than `timeout`.
    pub fn open_to_write(home: &Home, notes: &Notes, timeout: Duration) -> Result<Self, Error> {
        let lock = lock::acquire(home, Subject::Index, timeout)?.ok_or(Error::Locked)?;
        match Self::open_existing(&home.index(), timeout) {
            Ok(connection) => Ok(Self::new(connection, Some(lock))),
            Err(_) => Self::build(home, notes, lock, timeout),
        }
    }

    /// Opens the index for writing and updates it from the notes.
    ///
    /// If most files differ from the index (a copied store, a restored backup), it is rebuilt, which
    /// is faster than removing each old note.
    pub fn in_step(home: &Home, notes: &Notes, timeout: Duration) -> Result<Self, Error> {
        Self::in_step_with(home, notes, ALWAYS_CHECKED, timeout)
    }

    /// Like [`Index::in_step`]. A store with more notes than `always` is checked only if a folder changed,
    /// and once a day.
    pub fn in_step_with(
        home: &Home,
        notes: &Notes,
        always: usize,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let mut index = Self::open_to_write(home, notes, timeout)?;
        let updated = match index.refresh_if_near(notes, always) {
            Ok(Some(_)) => index.refresh_usage(home).map(|_| true),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        match updated {
            Ok(true) => Ok(index),
            Err(error) if !error.is_damage() => Err(error),
            _ => index.build_again(home, notes, timeout),
        }
    }

    /// Opens the index for a caller with little time: up to date, or as it is while another process
    /// writes it.
    ///
    /// # Errors
    /// [`Error::Locked`] only if there is no readable index either.
    pub fn in_step_or_as_is(home: &Home, notes: &Notes, timeout: Duration) -> Result<Self, Error> {
        match Self::in_step(home, notes, timeout) {
            Err(error) if error.is_busy() => Self::open(home).map_err(|_| Error::Locked),
            opened => opened,
        }
    }

    /// Opens the index for writing without building one.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process writes for longer than `timeout`.
    pub fn open_if_usable(home: &Home, timeout: Duration) -> Result<Self, Error> {
        let lock = lock::acquire(home, Subject::Index, timeout)?.ok_or(Error::Locked)?;
        let connection = Self::open_existing(&home.index(), timeout)?;
        Ok(Self::new(connection, Some(lock)))
    }

    fn open_existing(path: &Path, timeout: Duration) -> Result<Connection, Error> {
        if !path.exists() {
            return Err(Error::Missing);
        }
        let connection = sqlite::open_write(path, timeout)?;
        check(&connection)?;
        connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;")?;
        Ok(connection)
    }

    /// Checkpoints the write-ahead log, so that no byte of deleted text is left in it.
    pub fn checkpoint(&self) -> Result<(), Error> {
        Ok(sqlite::checkpoint(&self.connection)?)
    }

    /// Runs SQLite's integrity check and reads every note and every postings list.
    pub fn integrity(&self) -> Result<(), Error> {
        let answer: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if answer == "ok" {
            let all = Filter {
                with_superseded: true,
                with_forgotten: true,
                ..Filter::default()
            };
            self.list(&all, usize::MAX)?;
            self.read_postings()
        } else {
            Err(Error::Foreign(format!("damaged: {answer}")))
        }
    }
}

#[cfg(test)]
mod tests;
