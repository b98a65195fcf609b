//! Rebuilds the index beside the old one and swaps it in.

use std::{fs, io, path::Path, time::Duration};

use rusqlite::{
    Connection,
    backup::{Backup, StepResult},
};
use ulid::Ulid;

use super::{
    Error, Index,
    schema::{self, VERSION},
};
use crate::{
    fs::{
        file::{self, sync_file, with_suffix},
        home::{Home, ensure_folder},
        lock::{self, Lock, Subject},
    },
    notes::Notes,
    sqlite,
};

/// How long the index of another version is kept, for sessions of that version.
const OTHERS_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The page cache of a rebuild. With SQLite's 2 MiB, pages are written and read several times.
const BUILD_CACHE_KIB: usize = 64 * 1024;

impl Index {
    /// Rebuilds the index from the notes, with nothing of an earlier file. Open readers keep the old
    /// one.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process writes for longer than `timeout`.
    pub fn rebuild(home: &Home, notes: &Notes, timeout: Duration) -> Result<Self, Error> {
        let lock = lock::acquire(home, Subject::Index, timeout)?.ok_or(Error::Locked)?;
        remove_others(home, Duration::ZERO)?;
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
        let fresh = with_suffix(&path, ".new");
        // A killed rebuild may have left one, with purged texts.
        remove_database(home, &fresh)?;
        fill(begin(&fresh, timeout)?, home, notes)?;
        sync_file(&fresh)?;
        swap(home, &path, &fresh, timeout)?;
        let connection = Self::open_existing(&path, timeout)?;
        Ok(Self::new(connection, Some(lock)))
    }

    /// Removes the leftovers of a killed rebuild. The index was opened for writing, so this process
    /// holds the lock and no rebuild runs.
    pub fn sweep(&self, home: &Home) -> Result<(), Error> {
        for leftover in [".new", ".old"] {
            remove_database(home, &with_suffix(&home.index(), leftover))?;
        }
        Ok(remove_others(home, OTHERS_AGE)?)
    }
}

/// Removes the indexes of other versions that nobody has written for this time.
pub fn remove_others(home: &Home, age: Duration) -> io::Result<()> {
    for entry in fs::read_dir(home.derived())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_other = name.starts_with("index") && name.ends_with(".db") && path != home.index();
        let is_recent = |path: &Path| file::age(path).is_some_and(|it| it < age);
        let log = path.with_extension("db-wal");
        if is_other && !is_recent(&path) && !is_recent(&log) {
            for leftover in [".new", ".old"] {
                remove_database(home, &with_suffix(&path, leftover))?;
            }
            remove_database(home, &path)?;
        }
    }
    Ok(())
}

/// Puts the new file in the place of the old one.
fn swap(home: &Home, path: &Path, fresh: &Path, timeout: Duration) -> Result<(), Error> {
    let old = with_suffix(path, ".old");
    remove_folder(home, path)?;
    remove_folder(home, &old)?;
    match fs::rename(path, &old) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Windows does not rename a file that SQLite holds open.
        Err(_) if cfg!(windows) => {
            overwrite(path, fresh, timeout)?;
            return Ok(remove_database(home, fresh)?);
        }
        renamed => renamed?,
    }
    remove_side_files(home, path)?;
    fs::rename(fresh, path)?;
    remove_side_files(home, fresh)?;
    Ok(remove_database(home, &old)?)
}

/// Copies the new file's pages over those of an index that others read, in one transaction. Readers
/// keep the old pages until they end theirs.
fn overwrite(path: &Path, fresh: &Path, timeout: Duration) -> Result<(), Error> {
    let source = sqlite::open_read(fresh, timeout)?;
    let mut target = sqlite::open_existing(path, timeout)?;
    let copied = Backup::new(&source, &mut target)?.step(-1)?;
    if copied != StepResult::Done {
        return Err(Error::Locked);
    }
    Ok(sqlite::checkpoint(&target)?)
}

/// Creates the file of a rebuild.
fn begin(fresh: &Path, timeout: Duration) -> Result<Connection, Error> {
    let connection = sqlite::open_write(fresh, timeout)?;
    let transaction = connection.unchecked_transaction()?;
    schema::create_tables(&transaction)?;
    transaction.commit()?;
    Ok(connection)
}

/// Adds all notes to a file that is being built, and finishes it.
fn fill(connection: Connection, home: &Home, notes: &Notes) -> Result<(), Error> {
    let mut index = Index::new(connection, None);
    // No other process opens this file.
    index.connection.execute_batch(&format!(
        "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;
         PRAGMA cache_size = -{BUILD_CACHE_KIB};"
    ))?;
    index.refresh(notes)?;
    let transaction = index.connection.unchecked_transaction()?;
    // SQL indexes are faster to build at once.
    schema::create_sql_indexes(&transaction)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    index.refresh_usage(home)?;
    index
        .connection
        .execute_batch("PRAGMA journal_mode = WAL;")?;
    index.checkpoint()
}

fn remove_database(home: &Home, path: &Path) -> io::Result<()> {
    remove_file(home, path)?;
    remove_side_files(home, path)
}

/// Removes the log and shared-memory files of a database.
fn remove_side_files(home: &Home, path: &Path) -> io::Result<()> {
    for suffix in sqlite::BESIDE {
        remove_file(home, &with_suffix(path, suffix))?;
    }
    Ok(())
}

fn remove_file(home: &Home, path: &Path) -> io::Result<()> {
    remove_folder(home, path)?;
    file::remove(path)
}

/// Removes a folder in the place of a file. Its content is not ours, so it moves to `quarantine/`.
fn remove_folder(home: &Home, path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
        || fs::remove_dir(path).is_ok()
    {
        return Ok(());
    }
    ensure_folder(&home.quarantine()).map_err(io::Error::other)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    fs::rename(
        path,
        home.quarantine()
            .join(format!("{name}-{}", Ulid::generate())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{
        Filter,
        tests::{Fixture, TIMEOUT},
    };

    #[test]
    fn what_a_killed_rebuild_left_is_not_used() {
        let fixture = Fixture::new();
        fixture.add("one", |_| {});
        let (home, notes) = (&fixture.home, &fixture.notes);
        let fresh = with_suffix(&home.index(), ".new");
        let killed = begin(&fresh, TIMEOUT).unwrap();
        let purged = "INSERT INTO project (key) VALUES ('purged')";
        killed.execute_batch(purged).unwrap();
        drop(killed);
        let index = Index::rebuild(home, notes, TIMEOUT).unwrap();
        assert_eq!(index.note_count().unwrap(), 1);
        let documents = index.documents().unwrap();
        assert!(documents.projects().all(|(_, key)| key != "purged"));
    }

    #[test]
    fn an_index_that_cannot_be_renamed_is_overwritten_and_its_readers_keep_what_they_see() {
        let fixture = Fixture::new();
        for number in 0..100 {
            fixture.add(&format!("of the old index {number:03}"), |_| {});
        }
        fixture.refreshed().checkpoint().unwrap();
        let (home, notes) = (&fixture.home, &fixture.notes);
        let reader = Index::open(home).unwrap();
        let forgotten = reader.list(&Filter::default(), 99).unwrap();
        let has_text = || {
            let (bytes, text) = (
                fs::read(home.index()).unwrap(),
                forgotten[0].title.as_bytes(),
            );
            bytes.windows(text.len()).any(|part| part == text)
        };
        assert!(has_text());
        for entry in &forgotten {
            fs::remove_file(entry.path.absolute(home)).unwrap();
        }
        let fresh = with_suffix(&home.index(), ".new");
        fill(begin(&fresh, TIMEOUT).unwrap(), home, notes).unwrap();
        overwrite(&home.index(), &fresh, TIMEOUT).unwrap();
        remove_database(home, &fresh).unwrap();

        assert_eq!(reader.note_count().unwrap(), 100);
        let other = Index::open(home).unwrap();
        other.integrity().unwrap();
        assert_eq!(other.note_count().unwrap(), 1);
        drop((reader, other));
        // The next writer goes on with it, and the old pages are gone.
        let writer = fixture.writer();
        writer.checkpoint().unwrap();
        drop(writer);
        assert!(!has_text());
    }

    #[test]
    fn an_index_of_another_version_is_kept_for_a_week() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let notes = Notes::new(home.clone(), Duration::from_secs(5));
        let index = Index::in_step(&home, &notes, Duration::from_secs(5)).unwrap();
        let [new, old, kept] = ["index-1.db", "index.db", "index.lock"].map(|name| {
            let path = home.derived().join(name);
            fs::write(&path, "other").unwrap();
            path
        });
        let last_week = std::time::SystemTime::now() - OTHERS_AGE;
        fs::File::open(&old)
            .unwrap()
            .set_modified(last_week)
            .unwrap();
        index.sweep(&home).unwrap();
        assert!(new.exists() && !old.exists() && kept.exists());
        drop(index);
        // A rebuild after a purge leaves no earlier text.
        Index::rebuild(&home, &notes, Duration::from_secs(5)).unwrap();
        assert!(!new.exists() && kept.exists() && home.index().exists());
    }

    #[test]
    fn an_index_that_is_a_folder_is_rebuilt_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let notes = Notes::new(home.clone(), Duration::from_secs(5));
        // An earlier version left a folder as the old index.
        let index = home.index().display().to_string();
        for suffix in ["", ".old", ".new", "-wal"] {
            let name = format!("{index}{suffix}");
            fs::create_dir_all(&name).unwrap();
            fs::write(Path::new(&name).join("mine"), suffix).unwrap();
        }
        for _ in 0..2 {
            let index = Index::rebuild(&home, &notes, Duration::from_secs(5)).unwrap();
            index.sweep(&home).unwrap();
        }
        assert!(Index::open(&home).is_ok());
        let kept = fs::read_dir(home.quarantine()).unwrap();
        let kept =
            kept.map(|entry| fs::read_to_string(entry.unwrap().path().join("mine")).unwrap());
        let mut kept: Vec<String> = kept.collect();
        kept.sort();
        assert_eq!(kept, ["", "-wal", ".new", ".old"]);
    }
}
