//! Replaces a damaged journal by a new file with every row that can be read.
//!
//! A repair holds the journal lock, and the damaged file's SQLite write lock if SQLite can take it. A write
//! of another process is therefore either read here or refused, see [`super::connect`]. If SQLite cannot
//! take the write lock, no other process can write either.
//!
//! The new file is complete before the damaged file moves to `quarantine/`, and the damaged file moves
//! before its write-ahead log. A process that finds no `journal.db` first [completes] an interrupted repair.
//!
//! [completes]: finish

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, NaiveDateTime, Utc};
use rusqlite::{Connection, ErrorCode, config::DbConfig};
use serde::{Deserialize, Serialize};

use super::{
    Error, Journal,
    damage::{self, Examination},
    known, salvage,
    schema::{self, VERSION},
};
use crate::{
    fs::{
        file::{self, private_options, sync_file, sync_folder},
        home::{self, Home},
        lock::{self, Subject},
    },
    sqlite,
};

/// The key in `meta` of the last repair's result.
const REPAIRED: &str = "repaired";

/// The format of the time in the name of a damaged file.
const TIME: &str = "%Y%m%dT%H%M%SZ";

/// The endings of the files that SQLite keeps beside a database. A store whose file system has no shared
/// memory has a rollback journal.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Those of them that hold pages.
const LOGS: [&str; 2] = ["-wal", "-journal"];

/// The length of the SQLite header, and the offsets of its fields.
const HEADER_LENGTH: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const CHANGE_COUNT: usize = 24;
const PAGE_COUNT: usize = 28;
const LARGEST_ROOT: usize = 52;
const USER_VERSION: usize = 60;
const IS_INCREMENTAL: usize = 64;
const VALID_FOR: usize = 92;

/// SQLite's default page size, in bytes.
const PAGE: u64 = 4096;

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// The time of the repair, milliseconds since 1970.
    pub at: i64,
    /// The first damage that was found.
    pub reason: String,
    /// The name of the damaged file in `quarantine/`.
    pub kept: String,
    /// The number of rows that were saved.
    pub rows: usize,
    /// The tables that lost rows.
    pub incomplete: Vec<String>,
}

/// Checks the journal, and repairs it if it is damaged. The next call completes or repeats a repair that
/// was killed; a second process waits for the lock and then finds a sound file.
///
/// # Errors
/// When a newer version wrote the file, another process holds it for longer than `patience`, or the new
/// file cannot be written. The damaged file is then still in its place.
pub fn repair(
    home: &Home,
    patience: Duration,
    now: DateTime<Utc>,
) -> Result<Option<Repair>, Error> {
    let _lock = lock::acquire(home, Subject::Journal, patience)?.ok_or(Error::Locked)?;
    finish(home)?;
    let repaired = match damage::examine(home, None) {
        Ok(Examination::Damaged(reason)) => replace(home, patience, now, reason).map(Some),
        Ok(Examination::Sound | Examination::Unfinished) => Ok(None),
        Err(error) => Err(error),
    };
    match &repaired {
        // A newer version repairs its own file.
        Ok(_) | Err(Error::Newer(_)) => damage::clear_request(home),
        Err(error) => {
            // The caller needs the first error.
            let _ = finish(home);
            if !error.is_busy() {
                damage::delay_repair(home, now);
            }
        }
    }
    repaired
}

/// Completes a repair that was killed, and deletes its temporary files. Call it under the journal lock.
pub(super) fn finish(home: &Home) -> io::Result<()> {
    let (journal, new) = (home.journal(), new_file(home));
    // A writer that opened the file while it was moved may have left an empty one.
    let is_missing = fs::metadata(&journal).map_or(true, |file| file.is_file() && file.len() == 0);
    if is_missing && header_version(&new) == Some(VERSION) {
        match kept_files(home).pop() {
            Some(kept) => move_beside(&journal, &home.quarantine().join(kept))?,
            None => remove_beside(&journal)?,
        }
        file::rename(&new, &journal)?;
    }
    remove(&new)?;
    remove(&copy_of_damaged(home))
}

/// Deletes damaged files that were moved to `quarantine/` before this time. Returns how many.
pub fn drop_old_quarantine(home: &Home, before: DateTime<Utc>) -> usize {
    let is_old = |name: &String| {
        let time = name
            .strip_prefix("journal-")
            .and_then(|name| name.get(..16));
        let time = time.and_then(|time| NaiveDateTime::parse_from_str(time, TIME).ok());
        time.is_some_and(|time| time.and_utc() < before)
    };
    kept_files(home)
        .iter()
        .filter(|name| is_old(name))
        .filter(|name| remove_any(&home.quarantine().join(name)).is_ok())
        .count()
}

impl Journal {
    /// Returns the result of the last repair, if there was one.
    pub fn last_repair(&self) -> Result<Option<Repair>, Error> {
        let text = self.meta(REPAIRED)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Makes counts match the rows again. Where the lost rows may have said that something is private,
    /// unknown or switched off, it is assumed so.
    fn settle_after_loss(
        &self,
        is_known: impl Fn(&str) -> bool,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        // Row numbers beyond the last row are assigned again, see `forget_prompt`. The damage may be why
        // a hook or a job failed.
        self.connection.execute_batch(
            "UPDATE prompt SET privacy = 'full', text = NULL WHERE privacy NOT IN ('none', 'part', 'full');
             UPDATE session SET
               observed = min(observed, coalesce(
                 (SELECT max(number) FROM tool_event WHERE tool_event.session = session.id), 0));
             UPDATE turn_end SET
               after_event = min(after_event, coalesce(
                 (SELECT max(number) FROM tool_event WHERE tool_event.session = turn_end.session), 0));
             UPDATE hook SET is_failing = 0;",
        )?;
        let now = now.timestamp_millis();
        self.retry(now)?;
        if !["tool_event", "file_use", "turn_end", "prompt"]
            .into_iter()
            .all(&is_known)
        {
            self.connection
                .execute("UPDATE session SET is_pruned = 1", [])?;
        }
        if !["meta", "session", "prompt", "private_token"]
            .into_iter()
            .all(&is_known)
        {
            self.mark_all_unsure(now)?;
            self.connection.execute(
                "UPDATE session SET is_private = 1 WHERE state <> 'completed'",
                [],
            )?;
        }
        if !is_known("meta") {
            // Recording may have been off, or a prompt forgotten: no earlier transcript is read.
            self.resumed(None, now)?;
            self.set_if_missing(super::SINCE, "0")?;
            self.set_if_missing(known::BEGUN, "1")?;
        }
        Ok(())
    }

    fn set_if_missing(&self, key: &str, value: &str) -> Result<(), Error> {
        self.connection
            .execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", [key, value])?;
        Ok(())
    }
}

/// Replaces the damaged file by a new one with every row that can be read.
fn replace(
    home: &Home,
    patience: Duration,
    now: DateTime<Utc>,
    reason: String,
) -> Result<Repair, Error> {
    let (journal, new) = (home.journal(), new_file(home));
    // Hooks do not wait for the lock of a file that is being repaired.
    damage::request_repair(home);
    home::ensure_folder(&home.quarantine()).map_err(io::Error::other)?;
    try_quarantine(home)?;
    let mut damaged = DamagedFile::open(&journal)?;
    // Held until the new file is in place.
    let locked = lock_damaged(&journal, patience)?;
    if let Some(version) =
        version_of(&mut damaged, locked.as_ref()).filter(|version| *version > VERSION)
    {
        return Err(Error::Newer(version));
    }
    let target = make(&new)?;
    let source = readable_copy(home, &mut damaged, &new)?;
    let repair = fill(source.as_ref(), target, home, now, reason)?;
    drop(source);
    // A new file with damage would be repaired again and again.
    if let Examination::Damaged(reason) = damage::examine_file(&new, None)? {
        return Err(Error::Io(io::Error::other(format!(
            "the repaired file is damaged, too: {reason}"
        ))));
    }
    remove_beside(&new)?;
    sync_file(&new)?;
    if cfg!(not(unix)) {
        // Windows cannot rename an open file.
        drop((locked, damaged));
        swap(home, &repair.kept)?;
    } else {
        swap(home, &repair.kept)?;
        drop((locked, damaged));
    }
    remove(&copy_of_damaged(home))?;
    Ok(repair)
}

/// Takes the damaged file's write lock; none if SQLite cannot open the file.
fn lock_damaged(path: &Path, patience: Duration) -> Result<Option<Connection>, Error> {
    let Ok(connection) = salvage::open(path, patience) else {
        return Ok(None);
    };
    match connection.execute_batch("BEGIN IMMEDIATE") {
        Err(error)
            if matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            ) =>
        {
            Err(error.into())
        }
        _ => Ok(Some(connection)),
    }
}

/// The damaged file, open for as long as SQLite holds its lock: closing any handle on a file drops all of
/// the process's POSIX locks on it.
struct DamagedFile(Option<File>);

impl DamagedFile {
    fn open(path: &Path) -> io::Result<Self> {
        let is_folder = path.is_dir();
        Ok(Self((!is_folder).then(|| File::open(path)).transpose()?))
    }

    fn header_version(&mut self) -> Option<i64> {
        let file = self.0.as_mut()?;
        file.rewind().ok()?;
        version_in_header(file)
    }

    /// Writes the content to another file. Returns false for a folder.
    fn copy_to(&mut self, path: &Path) -> io::Result<bool> {
        let Some(file) = &mut self.0 else {
            return Ok(false);
        };
        file.rewind()?;
        let mut copy = private_options().create_new(true).open(path)?;
        io::copy(file, &mut copy)?;
        Ok(true)
    }
}

/// Checks that a file can move to `quarantine/`, before much is read and written.
fn try_quarantine(home: &Home) -> Result<(), Error> {
    let (from, to) = (new_file(home), home.quarantine().join(".journal.db.tmp"));
    let moved = File::create(&from)
        .and_then(|_| fs::rename(&from, &to))
        .and_then(|()| fs::remove_file(&to));
    moved.map_err(|error| {
        let text = format!("cannot move it to {}: {error}", home.quarantine().display());
        Error::Io(io::Error::new(error.kind(), text))
    })
}

/// Returns the schema version of a file, if it can be read.
fn version_of(damaged: &mut DamagedFile, connection: Option<&Connection>) -> Option<i64> {
    let read = connection.and_then(|connection| sqlite::version(connection).ok());
    read.or_else(|| damaged.header_version())
}

/// Returns the schema version in the header of a file; none if the header is invalid.
fn header_version(path: &Path) -> Option<i64> {
    version_in_header(&mut File::open(path).ok()?)
}

fn version_in_header(file: &mut File) -> Option<i64> {
    let mut header = [0; HEADER_LENGTH];
    file.read_exact(&mut header).ok()?;
    let version = header
        .get(USER_VERSION..USER_VERSION + 4)?
        .try_into()
        .ok()?;
    (header.starts_with(MAGIC)).then(|| i32::from_be_bytes(version).into())
}

/// Creates the new file with its tables. Its version is set once it is complete.
fn make(new: &Path) -> Result<Connection, Error> {
    remove(new)?;
    let connection = sqlite::open_write(new, Duration::ZERO)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.execute_batch(&format!(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;
         PRAGMA foreign_keys = OFF; BEGIN; {} COMMIT;",
        schema::SCHEMA
    ))?;
    Ok(connection)
}

/// Copies the damaged file and gives the copy a valid header; none if no row can be read even so. The
/// header says that there are no pointer-map pages, which reading does not need.
fn readable_copy(
    home: &Home,
    damaged: &mut DamagedFile,
    new: &Path,
) -> io::Result<Option<Connection>> {
    let copy = copy_of_damaged(home);
    remove(&copy)?;
    if !damaged.copy_to(&copy)? {
        return Ok(None);
    }
    for ending in LOGS {
        if_there(fs::copy(beside(&home.journal(), ending), beside(&copy, ending)).map(drop))?;
    }
    // The log may hold a newer first page, so it is folded in before the header is replaced.
    if let Ok(connection) = salvage::open(&copy, Duration::ZERO) {
        let _ = sqlite::checkpoint(&connection);
    }
    let mut header = [0; HEADER_LENGTH];
    File::open(new)?.read_exact(&mut header)?;
    header.copy_within(CHANGE_COUNT..CHANGE_COUNT + 4, VALID_FOR);
    let pages = fs::metadata(&copy)?.len() / PAGE;
    let pages = u32::try_from(pages).unwrap_or(u32::MAX);
    header[PAGE_COUNT..PAGE_COUNT + 4].copy_from_slice(&pages.to_be_bytes());
    for field in [LARGEST_ROOT, IS_INCREMENTAL] {
        header[field..field + 4].fill(0);
    }
    let mut file = File::options().write(true).open(&copy)?;
    file.write_all(&header)?;
    let connection = salvage::open(&copy, Duration::ZERO).ok();
    Ok(connection.filter(salvage::is_readable))
}

/// Copies every row that can be read, and sets the version of the new file.
fn fill(
    source: Option<&Connection>,
    target: Connection,
    home: &Home,
    now: DateTime<Utc>,
    reason: String,
) -> Result<Repair, Error> {
    let target = Journal { connection: target };
    let repair = target.in_transaction(|target| {
        let saved = match source {
            Some(source) => salvage::all(source, &target.connection, now)?,
            None => BTreeMap::new(),
        };
        let is_whole = |table: &str| saved.get(table).is_some_and(|saved| saved.is_whole);
        let is_known = |table: &str| {
            is_whole(table) && source.is_some_and(|source| salvage::is_sound(source, table))
        };
        target.settle_after_loss(is_known, now)?;
        let tables = damage::tables(&target.connection)?.into_iter();
        let repair = Repair {
            at: now.timestamp_millis(),
            reason,
            kept: free_name(home, now),
            rows: saved.values().map(|saved| saved.rows).sum(),
            incomplete: tables.filter(|table| !is_whole(table)).collect(),
        };
        let text = serde_json::to_string(&repair).unwrap_or_default();
        target.set_meta(REPAIRED, &text)?;
        Ok(repair)
    })?;
    let connection = target.connection;
    let _ = connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
    connection.pragma_update(None, "user_version", VERSION)?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(repair)
}

/// Moves the damaged file to `quarantine/`, and the new file into its place.
fn swap(home: &Home, kept: &str) -> io::Result<()> {
    let (journal, kept) = (home.journal(), home.quarantine().join(kept));
    file::rename(&journal, &kept)?;
    move_beside(&journal, &kept)?;
    file::rename(&new_file(home), &journal)?;
    sync_folder(&home.quarantine());
    sync_folder(home.root());
    Ok(())
}

/// Moves the log with its database; otherwise SQLite would apply it to the new file.
fn move_beside(from: &Path, to: &Path) -> io::Result<()> {
    for ending in BESIDE {
        if_there(file::rename(&beside(from, ending), &beside(to, ending)))?;
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    if_there(fs::remove_file(path))?;
    remove_beside(path)
}

/// Also deletes a folder that was found in place of the file.
fn remove_any(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        remove(path)
    }
}

fn remove_beside(path: &Path) -> io::Result<()> {
    for ending in BESIDE {
        if_there(fs::remove_file(beside(path, ending)))?;
    }
    Ok(())
}

fn if_there(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// Returns a free name in `quarantine/`.
fn free_name(home: &Home, now: DateTime<Utc>) -> String {
    let time = now.format(TIME);
    let names = (1..).map(|number| match number {
        1 => format!("journal-{time}.db"),
        number => format!("journal-{time}-{number}.db"),
    });
    let is_free = |name: &String| !home.quarantine().join(name).exists();
    names.into_iter().find(is_free).unwrap_or_default()
}

/// Returns the names of the damaged files in `quarantine/`, oldest first.
pub fn kept_files(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.quarantine()).into_iter().flatten();
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("journal-") && name.strip_suffix(".db").is_some())
        .collect();
    // Within one second, the file without a number is the first one.
    names.sort_by_key(|name| (name.chars().take(24).collect::<String>(), name.len()));
    names
}

/// Returns the temporary file that becomes the new journal.
fn new_file(home: &Home) -> PathBuf {
    home.root().join(".journal.db.tmp")
}

fn copy_of_damaged(home: &Home) -> PathBuf {
    home.root().join(".journal.db.copy.tmp")
}

#[cfg(test)]
mod tests;
