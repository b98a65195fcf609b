//! Replaces a damaged journal by a new file, with the rows of each table up to the first that cannot be read.
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
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, NaiveDateTime, Utc};
use rusqlite::{
    Connection, OpenFlags,
    config::DbConfig,
    params_from_iter,
    types::{ToSqlOutput, ValueRef},
};
use serde::{Deserialize, Serialize};

use super::{
    Error, Journal, damage, known,
    schema::{self, VERSION},
};
use crate::{
    fs::{
        file::{self, sync_file, sync_folder, with_suffix},
        home::{self, Home},
        lock::{self, Subject},
    },
    sqlite::{self, Queries},
};

/// The key in `meta` of the last repair's result.
const REPAIRED: &str = "repaired";

/// The key in `meta` of the time of a repair, milliseconds since 1970: lost rows may have marked something
/// in an earlier session as private.
const UNSURE: &str = "unsure";

/// The tables that a session's note is written from.
const DIGESTED: [&str; 4] = ["session", "prompt", "tool_event", "turn_end"];

/// How long a session from before the repair may be continued, milliseconds.
const UNSURE_TERM: i64 = 30 * 24 * 60 * 60 * 1000;

/// The format of the time in the name of a damaged file.
const TIME: &str = "%Y%m%dT%H%M%SZ";

/// The beginning of the SQLite header, and the offset of the schema version in it.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const USER_VERSION: usize = 60;

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
/// When a newer version wrote the file, another process holds it for longer than `timeout`, or the new
/// file cannot be written. The damaged file is then still in its place.
pub fn repair(home: &Home, timeout: Duration, now: DateTime<Utc>) -> Result<Option<Repair>, Error> {
    let _lock = lock::acquire(home, Subject::Journal, timeout)?.ok_or(Error::Locked)?;
    finish(home)?;
    let damage = damage::examine(home, None);
    let repaired = damage.and_then(|it| it.map(|it| replace(home, timeout, now, it)).transpose());
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
            None => sqlite::remove_beside(&journal)?,
        }
        file::rename(&new, &journal)?;
    }
    sqlite::remove(&new)
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
        self.json(REPAIRED)
    }

    /// Returns whether lost rows may have marked something in a session as private: it began before a
    /// repair, and no start of it was taken since.
    pub fn is_unsure(&self, session: &str) -> Result<bool, Error> {
        // Hooks read other values of `meta`, so this needs no statement of its own.
        if self.meta(UNSURE)?.is_none() {
            return Ok(false);
        }
        // A compacted session continues its last prompt, which may be private.
        let sql = "SELECT 1 FROM session WHERE id = ? AND source <> 'compact'";
        Ok(!self.exists(sql, [session])?)
    }

    /// Returns whether a repair may have lost private tokens that a text of a time repeats.
    pub(super) fn may_lack_private_tokens(&self, session: &str, at: i64) -> Result<bool, Error> {
        let is_earlier = self.time(UNSURE)?.is_some_and(|repaired| at <= repaired);
        Ok(is_earlier || self.is_unsure(session)?)
    }

    /// Ends the doubt once no session from before the repair can be continued.
    pub(super) fn expire_unsure(&self, now: i64) -> Result<(), Error> {
        match self.time(UNSURE)? {
            Some(since) if since < now - UNSURE_TERM => self.remove_meta(UNSURE),
            _ => Ok(()),
        }
    }

    /// Treats all sessions as private, whatever was lost, and counts as processed only the tool events that
    /// are left: numbers beyond the last row are assigned again.
    fn settle_after_loss(&self, incomplete: &[String], now: i64) -> Result<(), Error> {
        self.connection.execute_batch(
            "UPDATE session SET source = NULL, is_private = 1, is_pruned = 1,
               observed = min(observed, coalesce((SELECT max(number) FROM tool_event), 0));
             UPDATE hook SET is_failing = 0;",
        )?;
        self.retry(now)?;
        self.set_meta(UNSURE, &now.to_string())?;
        let is_incomplete =
            |names: &[&str]| incomplete.iter().any(|it| names.contains(&it.as_str()));
        if is_incomplete(&DIGESTED) {
            // A note of before is not replaced by one of the rows that are left.
            self.run("DELETE FROM session_body", [])?;
        }
        if is_incomplete(&["meta"]) {
            // Recording may have been off, or a prompt forgotten: no earlier transcript is read.
            self.resumed(None, now)?;
            self.set_if_missing(super::SINCE, "0")?;
            self.set_if_missing(known::BEGUN, "1")?;
        }
        Ok(())
    }

    pub(super) fn set_if_missing(&self, key: &str, value: &str) -> Result<(), Error> {
        self.run("INSERT OR IGNORE INTO meta VALUES (?, ?)", [key, value])
    }
}

/// Replaces the damaged file by a new one with the rows that can be read.
fn replace(
    home: &Home,
    timeout: Duration,
    now: DateTime<Utc>,
    reason: String,
) -> Result<Repair, Error> {
    // Hooks do not wait for the lock of a file that is being repaired.
    damage::request_repair(home);
    home::ensure_folder(&home.quarantine()).map_err(io::Error::other)?;
    // Before SQLite locks the file: closing any handle on it drops the process's POSIX locks.
    if let Some(newer) = header_version(&home.journal()).filter(|version| *version > VERSION) {
        return Err(Error::Newer(newer));
    }
    let source = lock_damaged(&home.journal(), timeout)?;
    let new = new_file(home);
    let repair = fill(source.as_ref(), make(&new)?, home, now, reason)?;
    sqlite::remove_beside(&new)?;
    sync_file(&new)?;
    // The lock is held until the new file is in place. Windows cannot rename an open file.
    let held = source.filter(|_| cfg!(unix));
    swap(home, &repair.kept)?;
    drop(held);
    Ok(repair)
}

/// Opens the damaged file and takes its write lock; none if SQLite cannot open the file. It writes nothing.
///
/// With `writable_schema`, SQLite also reads a file that is shorter than its header says, and the other
/// tables of a schema with an invalid definition.
fn lock_damaged(path: &Path, timeout: Duration) -> Result<Option<Connection>, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | sqlite::FLAGS;
    let Ok(connection) = Connection::open_with_flags(path, flags) else {
        return Ok(None);
    };
    connection.busy_timeout(timeout)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let begun = connection
        .execute_batch("PRAGMA writable_schema = ON; PRAGMA cell_size_check = ON; BEGIN IMMEDIATE");
    match begun.map_err(Error::from) {
        Err(error) if error.is_busy() => Err(error),
        _ => Ok(Some(connection)),
    }
}

/// Returns the schema version in the header of a file; none if the header is invalid.
fn header_version(path: &Path) -> Option<i64> {
    let (header, ..) = file::read_head(path, USER_VERSION + 4).ok()?;
    let version = header.get(USER_VERSION..)?.try_into().ok()?;
    (header.starts_with(MAGIC)).then(|| i32::from_be_bytes(version).into())
}

/// Creates the new file with its tables. Its version is set once it is complete.
fn make(new: &Path) -> Result<Connection, Error> {
    sqlite::remove(new)?;
    let connection = sqlite::open_write(new, Duration::ZERO)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.execute_batch(&format!(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;
         PRAGMA foreign_keys = ON; BEGIN; {} COMMIT;",
        schema::SCHEMA
    ))?;
    Ok(connection)
}

/// Copies the rows that can be read, and sets the version of the new file.
fn fill(
    source: Option<&Connection>,
    target: Connection,
    home: &Home,
    now: DateTime<Utc>,
    reason: String,
) -> Result<Repair, Error> {
    let target = Journal { connection: target };
    let repair = target.in_transaction(|target| {
        let (mut rows, mut incomplete) = (0, Vec::new());
        for table in damage::tables(&target.connection)? {
            let (copied, is_whole) = match source {
                Some(source) => copy(source, &target.connection, &table)?,
                None => (0, false),
            };
            rows += copied;
            incomplete.extend((!is_whole).then_some(table));
        }
        target.settle_after_loss(&incomplete, now.timestamp_millis())?;
        let repair = Repair {
            at: now.timestamp_millis(),
            reason,
            kept: free_name(home, now),
            rows,
            incomplete,
        };
        target.set_json(REPAIRED, &repair)?;
        Ok(repair)
    })?;
    let connection = target.connection;
    let _ = connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
    connection.pragma_update(None, "user_version", VERSION)?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(repair)
}

/// Copies the rows of a table, newest first, up to the first that cannot be read. A row that the new table
/// refuses is left out. Returns how many rows there are, and whether these are all.
///
/// No SQL of the damaged file is run: this program names the tables and columns, and binds the values.
fn copy(source: &Connection, target: &Connection, table: &str) -> Result<(usize, bool), Error> {
    let columns = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
        connection.column("SELECT name FROM pragma_table_info(?)", [table])
    };
    let there = columns(source).unwrap_or_default();
    let mut names = columns(target)?;
    names.retain(|name| there.contains(name));
    if names.is_empty() {
        return Ok((0, false));
    }
    let has_rowid = "SELECT NOT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?";
    let order = if target.query_row(has_rowid, [table], |row| row.get(0))? {
        // Rows keep their rowid, and so their order.
        names.insert(0, "rowid".to_owned());
        "ORDER BY rowid DESC"
    } else {
        ""
    };
    let (width, names) = (names.len(), names.join("\", \""));
    let select = format!("SELECT \"{names}\" FROM \"{table}\" NOT INDEXED {order}");
    let places = vec!["?"; width].join(", ");
    let insert = format!("INSERT OR IGNORE INTO \"{table}\" (\"{names}\") VALUES ({places})");
    let mut insert = target.prepare(&insert)?;
    let (mut copied, mut is_whole) = (0, true);
    let Ok(mut select) = source.prepare(&select) else {
        return Ok((copied, false));
    };
    let mut rows = select.query([])?;
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok((copied, is_whole)),
            Err(_) => return Ok((copied, false)),
        };
        let values: Vec<ValueRef<'_>> = (0..width)
            .map(|column| row.get_ref(column))
            .collect::<rusqlite::Result<_>>()?;
        let is_text = |value: &ValueRef<'_>| !matches!(value, ValueRef::Text(text) if str::from_utf8(text).is_err());
        let is_stored = values.iter().all(is_text)
            && match insert.execute(params_from_iter(
                values.into_iter().map(ToSqlOutput::Borrowed),
            )) {
                Ok(stored) => stored > 0,
                Err(error) => match Error::from(error) {
                    error if error.is_refusal() => false,
                    error => return Err(error),
                },
            };
        copied += usize::from(is_stored);
        is_whole &= is_stored;
    }
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
    for ending in sqlite::BESIDE {
        match file::rename(&with_suffix(from, ending), &with_suffix(to, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Also deletes a folder that was found in place of the file.
fn remove_any(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        sqlite::remove(path)
    }
}

/// Returns a free name in `quarantine/`.
fn free_name(home: &Home, now: DateTime<Utc>) -> String {
    let time = now.format(TIME);
    let others = (2..).map(|number| format!("journal-{time}-{number}.db"));
    let mut names = std::iter::once(format!("journal-{time}.db")).chain(others);
    let is_free = |name: &String| !home.quarantine().join(name).exists();
    names.find(is_free).unwrap_or_default()
}

/// Returns the names of the damaged files in `quarantine/`, oldest first.
pub fn kept_files(home: &Home) -> Vec<String> {
    let entries = file::entries(&home.quarantine());
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
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

#[cfg(test)]
mod tests;
