//! Rebuilds the index beside the old one and swaps it in.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Error, Index,
    schema::{self, VERSION},
};
use crate::{
    fs::{
        home::Home,
        lock::{self, Lock, Subject},
    },
    notes::Notes,
    sqlite,
};

/// The page cache of a rebuild. With SQLite's 2 MiB, pages are written and read several times.
const BUILD_CACHE_KIB: usize = 64 * 1024;

impl Index {
    /// Rebuilds the index from the notes. Open readers keep the old file.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process writes for longer than `timeout`.
    pub fn rebuild(home: &Home, notes: &Notes, timeout: Duration) -> Result<Self, Error> {
        let lock = lock::acquire(home, Subject::Index, timeout)?.ok_or(Error::Locked)?;
        Self::build(home, notes, lock, timeout)
    }

    /// Rebuilds the index if [`Index::integrity`] fails.
    pub fn checked(self, home: &Home, notes: &Notes, timeout: Duration) -> Result<Self, Error> {
        match self.integrity() {
            Ok(()) => Ok(self),
            Err(_) => self.build_again(home, notes, timeout),
        }
    }

    /// Rebuilds the index under the lock that this one holds.
    pub(super) fn build_again(
        mut self,
        home: &Home,
        notes: &Notes,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let lock = self.lock.take().ok_or(Error::Locked)?;
        drop(self);
        Self::build(home, notes, lock, timeout)
    }

    pub(super) fn build(
        home: &Home,
        notes: &Notes,
        lock: Lock,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let path = home.index();
        let fresh = beside(&path, "new");
        remove_database(&fresh)?;
        {
            let mut index = Self {
                connection: sqlite::open_write(&fresh, timeout)?,
                lock: None,
            };
            // No other process opens this file, and an incomplete one is deleted.
            index.connection.execute_batch(&format!(
                "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;
                 PRAGMA cache_size = -{BUILD_CACHE_KIB};"
            ))?;
            schema::create_tables(&index.connection)?;
            index.refresh(notes)?;
            // SQL indexes are faster to build at once.
            schema::create_sql_indexes(&index.connection)?;
            index.take_up_usage(home)?;
            index.connection.execute_batch(&format!(
                "PRAGMA user_version = {VERSION}; PRAGMA journal_mode = WAL;"
            ))?;
            index.checkpoint()?;
        }
        fs::File::open(&fresh)?.sync_all()?;
        let old = beside(&path, "old");
        match fs::rename(&path, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        remove_side_files(&path)?;
        fs::rename(&fresh, &path)?;
        remove_side_files(&fresh)?;
        remove_database(&old)?;
        let connection = Self::open_existing(&path, timeout)?;
        Ok(Self {
            connection,
            lock: Some(lock),
        })
    }

    /// Removes the leftovers of a killed rebuild. The index was opened for writing, so this process
    /// holds the lock and no rebuild runs.
    pub fn sweep(&self, home: &Home) -> Result<(), Error> {
        for leftover in ["new", "old"] {
            remove_database(&beside(&home.index(), leftover))?;
        }
        Ok(())
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn remove_database(path: &Path) -> io::Result<()> {
    remove_file(path)?;
    remove_side_files(path)
}

/// Removes the log and shared-memory files of a database.
fn remove_side_files(path: &Path) -> io::Result<()> {
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        remove_file(Path::new(&name))?;
    }
    Ok(())
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
