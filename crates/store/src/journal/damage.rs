//! The rule for "damaged": which errors mean damage, and a check of the whole file.
//!
//! A file is damaged if SQLite says so ([`sqlite::shows_damage`]), or if the check finds an unexpected schema, an
//! inconsistency or invalid UTF-8 ([`find_damage`]). Locks, a full disk, a disk that cannot read and a
//! newer version are not damage.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use rusqlite::{Connection, ErrorCode, ffi, types::ValueRef};

use super::{
    Error,
    schema::{self, VERSION},
};
use crate::{
    fs::{
        file::{self, is_disk_failure, private_options},
        home::{Home, ensure_folder},
    },
    sqlite::{self, Queries},
};

/// Why a folder in place of the file is damage.
pub(super) const A_FOLDER: &str = "it is a folder";

/// How long a check waits for SQLite's locks.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long the deferred process waits after a failed repair, in milliseconds: each try reads and writes
/// the whole file.
const REPAIR_INTERVAL: i64 = 15 * 60 * 1000;

/// SQLite instructions between two looks at the time limit.
const INSTRUCTIONS: i32 = 10_000;

/// Whether an error in this process showed damage. It is set where errors are converted, because many
/// callers go on without an answer and drop the error.
static WAS_SEEN: AtomicBool = AtomicBool::new(false);

impl Error {
    /// Returns whether the file is damaged, so that neither waiting nor freeing space helps.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Sqlite(error) => sqlite::shows_damage(error),
            Self::Newer(_) | Self::Locked | Self::Replaced | Self::Io(_) => false,
        }
    }

    /// Returns whether the disk is full.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Self::Io(error) => error.kind() == io::ErrorKind::StorageFull,
            Self::Newer(_) | Self::Locked | Self::Replaced | Self::Damaged(_) => false,
        }
    }

    /// Returns whether the disk failed. A new file would not help, and the rows may be readable
    /// later.
    pub fn is_disk_failure(&self) -> bool {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure),
            Self::Io(error) => is_disk_failure(error),
            Self::Newer(_) | Self::Locked | Self::Replaced | Self::Damaged(_) => false,
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        if error.sqlite_extended_error_code() == Some(ffi::SQLITE_CONSTRAINT_COMMITHOOK) {
            return Self::Replaced;
        }
        seen(Self::Sqlite(error))
    }
}

pub(super) fn seen(error: Error) -> Error {
    if error.is_damage() {
        WAS_SEEN.store(true, Ordering::Relaxed);
    }
    error
}

/// Returns whether this process met damage since the last call.
pub fn damage_was_seen() -> bool {
    WAS_SEEN.swap(false, Ordering::Relaxed)
}

/// Requests a [repair](super::repair()), which checks the file first. Returns whether this is the first
/// request since the last check.
pub fn request_repair(home: &Home) -> bool {
    let mut file = private_options();
    ensure_folder(&home.derived()).is_ok() && file.create_new(true).open(request(home)).is_ok()
}

/// Returns whether a repair is requested and not done yet.
pub fn is_repair_requested(home: &Home) -> bool {
    request(home).exists()
}

/// Returns whether a repair failed a short time ago, so that the next one waits.
pub fn is_repair_delayed(home: &Home, now: DateTime<Utc>) -> bool {
    let failed: Option<i64> = file::read_text(&request(home), 32).trim().parse().ok();
    let now = now.timestamp_millis();
    failed.is_some_and(|failed| !super::is_over(failed, REPAIR_INTERVAL, now))
}

/// Records that a repair failed, so that the deferred process waits before it tries again.
pub(super) fn delay_repair(home: &Home, now: DateTime<Utc>) {
    request_repair(home);
    let _ = fs::write(request(home), now.timestamp_millis().to_string());
}

/// Clears the request for a repair, after the check and the repair.
pub(super) fn clear_request(home: &Home) {
    let _ = fs::remove_file(request(home));
    damage_was_seen();
}

fn request(home: &Home) -> PathBuf {
    home.derived().join("journal.suspect")
}

/// Returns the first damage of the journal that is found before the time limit. It changes nothing.
///
/// # Errors
/// When a newer version wrote the file, or it cannot be read for another reason than damage.
pub fn examine(home: &Home, limit: Option<Duration>) -> Result<Option<String>, Error> {
    let path = home.journal();
    if !path.exists() {
        return Ok(None);
    }
    let damage = match find_damage(&path, limit) {
        Err(Error::Sqlite(error))
            if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) =>
        {
            None
        }
        Err(Error::Sqlite(error)) if sqlite::shows_damage(&error) => Some(error.to_string()),
        damage => damage?,
    };
    // quick_check reports a page that the disk cannot read like a damaged one.
    if damage.is_some() {
        read_through(&path)?;
    }
    Ok(damage)
}

/// Reads a file to its end, to find out whether the disk can.
pub(super) fn read_through(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(mut file) if !path.is_dir() => io::copy(&mut file, &mut io::sink()).map(drop),
        Err(error) if is_disk_failure(&error) => Err(error),
        _ => Ok(()),
    }
}

fn find_damage(path: &Path, limit: Option<Duration>) -> Result<Option<String>, Error> {
    if path.is_dir() {
        return Ok(Some(A_FOLDER.to_owned()));
    }
    let mut connection = sqlite::open_read(path, TIMEOUT)?;
    let version = sqlite::version(&connection)?;
    if version > VERSION {
        return Err(Error::Newer(version));
    }
    if let Some(limit) = limit {
        let begun = Instant::now();
        let is_over = move || begun.elapsed() > limit;
        connection.progress_handler(INSTRUCTIONS, Some(is_over))?;
    }
    if let Some(reason) = schema::mismatch(&connection, version)? {
        return Ok(Some(reason));
    }
    let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if answer != "ok" {
        // The first line may be the database's name.
        return Ok(answer.lines().last().map(str::to_owned));
    }
    // quick_check looks at the types of values, not at the encoding of text.
    for table in tables(&connection)? {
        if has_invalid_text(&connection, &table)? {
            return Ok(Some(format!("table {table} has text that is not UTF-8")));
        }
    }
    Ok(None)
}

/// Returns the tables of a file in the order of their creation, so that a referenced table comes first.
pub(super) fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid";
    connection.column(sql, [])
}

fn has_invalid_text(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\" NOT INDEXED"))?;
    let width = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..width {
            if let ValueRef::Text(text) = row.get_ref(column)?
                && std::str::from_utf8(text).is_err()
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
