//! Opens SQLite files: nothing in a file is trusted, waits are short, and a short-lived process never
//! pays for a checkpoint.

use std::{io, path::Path, time::Duration};

use anamnesis_note::id::NoteId;
use miniz_oxide::{deflate::compress_to_vec, inflate::decompress_to_vec_with_limit};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Params, Row, ToSql,
    config::DbConfig,
    ffi,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::fs::file::{self, private_options, with_suffix};

/// SQLite's messages for a missing table or column, and for an invalid schema format in the header. They
/// have no error code of their own. Statements here name only tables that the schema has.
const SCHEMA_ERRORS: [&str; 6] = [
    "unsupported file format",
    "no such table",
    "no such column",
    "has no column named",
    "values were supplied",
    "ON CONFLICT clause does not match",
];

/// The number of prepared statements that are kept. A session start runs forty different ones.
const STATEMENTS: usize = 64;

/// A connection is used by one thread, and the path of a file is not a symbolic link.
pub(crate) const FLAGS: OpenFlags =
    OpenFlags::SQLITE_OPEN_NO_MUTEX.union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// Opens an existing file read-only.
pub(crate) fn open_read(path: &Path, timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | FLAGS;
    configure(Connection::open_with_flags(path, flags)?, timeout)
}

/// Opens a file for writing; creates it with mode 0600 if it is missing.
///
/// SQLite creates its log files with the mode of the database.
pub(crate) fn open_write(path: &Path, timeout: Duration) -> rusqlite::Result<Connection> {
    if let Err(error) = private_options().create(true).open(path)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(rusqlite::Error::InvalidPath(
            format!("{}: {error}", path.display()).into(),
        ));
    }
    open_existing(path, timeout)
}

/// Opens an existing file for writing.
pub(crate) fn open_existing(path: &Path, timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | FLAGS;
    configure(Connection::open_with_flags(path, flags)?, timeout)
}

/// Opens a database in memory.
pub(crate) fn open_in_memory() -> rusqlite::Result<Connection> {
    configure(Connection::open_in_memory()?, Duration::ZERO)
}

pub(crate) fn configure(connection: Connection, timeout: Duration) -> rusqlite::Result<Connection> {
    connection.busy_timeout(timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Otherwise SQLite prepares a statement again when its values are known, which took half of a
    // session start. No plan here is better for it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn code_of(error: &rusqlite::Error) -> Option<(&ffi::Error, &str)> {
    match error {
        rusqlite::Error::SqliteFailure(code, message) => {
            Some((code, message.as_deref().unwrap_or_default()))
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => Some((error, msg)),
        _ => None,
    }
}

/// Returns whether an error shows that the file is damaged. A value that cannot be converted does: only
/// valid ones are written.
pub(crate) fn shows_damage(error: &rusqlite::Error) -> bool {
    if let Some((code, message)) = code_of(error) {
        return matches!(
            code.code,
            ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt
        ) || SCHEMA_ERRORS.iter().any(|part| message.contains(part));
    }
    matches!(
        error,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

/// Reads the schema version of a file.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Reads a row as a struct: fields from the columns of their names, then fields with a value.
macro_rules! read_row {
    ($row:expr, $Type:ident: $($column:ident),+ $(; $($field:ident = $value:expr),+)?) => {
        Ok($Type {
            $($column: $row.get(stringify!($column))?,)+
            $($($field: $value,)+)?
        })
    };
}
pub(crate) use read_row;

/// A limit as SQLite takes it.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A tuple of the columns of a row.
pub(crate) trait FromColumns: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error> {}

impl<T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>> FromColumns for T {}

/// Short queries. Statements are prepared once for each connection.
pub(crate) trait Queries {
    type Error: From<rusqlite::Error>;

    fn connection(&self) -> &Connection;

    /// Returns all rows.
    fn rows<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C, Self::Error> {
        let mut statement = self.connection().prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<rusqlite::Result<C>>()?)
    }

    /// Calls `take` with each row.
    fn each(
        &self,
        sql: &str,
        params: impl Params,
        mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), Self::Error> {
        let mut statement = self.connection().prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    }

    /// Returns the first column of all rows.
    fn column<T: FromSql, C: FromIterator<T>>(
        &self,
        sql: &str,
        params: impl Params,
    ) -> Result<C, Self::Error> {
        self.rows(sql, params, |row| row.get(0))
    }

    /// Returns all rows, each with its columns as a tuple.
    fn tuples<T: FromColumns, C: FromIterator<T>>(
        &self,
        sql: &str,
        params: impl Params,
    ) -> Result<C, Self::Error> {
        self.rows(sql, params, |row| row.try_into())
    }

    /// Returns the notes that a query lists, by the ids in its first column.
    fn note_ids<C: FromIterator<NoteId>>(
        &self,
        sql: &str,
        params: impl Params,
    ) -> Result<C, Self::Error> {
        let ids: Vec<String> = self.column(sql, params)?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Returns the only row.
    fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Self::Error> {
        let mut statement = self.connection().prepare_cached(sql)?;
        Ok(statement.query_row(params, read)?)
    }

    /// Returns the columns of the only row.
    fn tuple<T: FromColumns>(&self, sql: &str, params: impl Params) -> Result<T, Self::Error> {
        self.row(sql, params, |row| row.try_into())
    }

    /// Returns the first column of the only row.
    fn value<T: FromSql>(&self, sql: &str, params: impl Params) -> Result<T, Self::Error> {
        self.row(sql, params, |row| row.get(0))
    }

    /// Returns the first row, if there is one.
    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Self::Error> {
        let mut statement = self.connection().prepare_cached(sql)?;
        Ok(statement.query_row(params, read).optional()?)
    }

    /// Returns the columns of the first row, if there is one.
    fn first_tuple<T: FromColumns>(
        &self,
        sql: &str,
        params: impl Params,
    ) -> Result<Option<T>, Self::Error> {
        self.one(sql, params, |row| row.try_into())
    }

    /// Returns the first column of the first row, if there is one.
    fn first<T: FromSql>(&self, sql: &str, params: impl Params) -> Result<Option<T>, Self::Error> {
        self.one(sql, params, |row| row.get(0))
    }

    /// Returns whether a query has a row.
    fn exists(&self, sql: &str, params: impl Params) -> Result<bool, Self::Error> {
        let mut statement = self.connection().prepare_cached(sql)?;
        Ok(statement.exists(params)?)
    }

    /// Runs a statement.
    fn run(&self, sql: &str, params: impl Params) -> Result<(), Self::Error> {
        self.change(sql, params).map(drop)
    }

    /// Runs a statement. Returns how many rows it changed.
    fn change(&self, sql: &str, params: impl Params) -> Result<usize, Self::Error> {
        let mut statement = self.connection().prepare_cached(sql)?;
        Ok(statement.execute(params)?)
    }

    /// Returns a value of the table `meta`, which the journal and the index have.
    fn meta(&self, key: &str) -> Result<Option<String>, Self::Error> {
        self.first("SELECT value FROM meta WHERE key = ?", [key])
    }

    /// Stores a value in the table `meta`.
    fn set_meta(&self, key: &str, value: &str) -> Result<(), Self::Error> {
        let sql = "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2";
        self.run(sql, [key, value])
    }
}

impl Queries for Connection {
    type Error = rusqlite::Error;

    fn connection(&self) -> &Connection {
        self
    }
}

/// A value that is stored as JSON, or a list as a parameter of `json_each`. What cannot be read, or is
/// not there, is the default.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(&self.0);
        let text = text.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(text.into())
    }
}

impl<T: DeserializeOwned + Default> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str_or_null()?.unwrap_or_default();
        Ok(Self(serde_json::from_str(text).unwrap_or_default()))
    }
}

/// A text that is stored compressed, in the DEFLATE format (RFC 1951).
pub(crate) struct Compressed<T>(pub(crate) T);

/// A higher level takes longer and saves less than one percent of a note.
const LEVEL: u8 = 1;

/// The length in bytes from which texts are compressed. For a shorter one, compression saves about a
/// quarter and makes reading ten times as slow; most texts that a prompt reads are shorter.
const MIN_COMPRESSED: usize = 512;

/// The longest text that is accepted, so that an invalid column causes no large allocation.
const MAX_TEXT: usize = 64 << 20;

impl ToSql for Compressed<&str> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let bytes = self.0.as_bytes();
        Ok(match bytes.len() {
            ..MIN_COMPRESSED => stored(bytes),
            _ => compress_to_vec(bytes, LEVEL),
        }
        .into())
    }
}

/// Returns bytes in the DEFLATE format without compression, RFC 1951 §3.2.4.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 5);
    let mut rest = bytes;
    loop {
        let (block, after) = rest.split_at(rest.len().min(usize::from(u16::MAX)));
        out.push(u8::from(after.is_empty()));
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
        if after.is_empty() {
            return out;
        }
        rest = after;
    }
}

impl FromSql for Compressed<String> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bytes = decompress_to_vec_with_limit(value.as_blob()?, MAX_TEXT)
            .map_err(|error| FromSqlError::Other(error.to_string().into()))?;
        let text = String::from_utf8(bytes).map_err(|error| FromSqlError::Other(error.into()))?;
        Ok(Self(text))
    }
}

/// The endings of the files that SQLite keeps beside a database. A store whose file system has no shared
/// memory has a rollback journal.
pub(crate) const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Deletes a database and the files beside it, if they exist.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    file::remove(path)?;
    remove_beside(path)
}

/// Deletes the files beside a database, if they exist.
pub(crate) fn remove_beside(path: &Path) -> io::Result<()> {
    BESIDE
        .iter()
        .try_for_each(|ending| file::remove(&with_suffix(path, ending)))
}

/// The timeout for truncating the log while others read it. Nobody can write during that time.
const READERS_TIMEOUT: Duration = Duration::from_millis(50);

/// Checkpoints the write-ahead log, and truncates it unless another process reads it.
pub(crate) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    // In two steps: others can write during the first, which takes longer.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    let timeout: u32 = connection.query_row("PRAGMA busy_timeout", [], |row| row.get(0))?;
    connection.busy_timeout(READERS_TIMEOUT)?;
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(Duration::from_millis(timeout.into()))?;
    emptied
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// Longer than any test runs, so that a wait is noticed.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn emptying_the_log_keeps_nobody_from_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        let log = folder.path().join("records.db-wal");
        let deferred = open_write(&path, LONG).unwrap();
        deferred
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE record (number INTEGER);")
            .unwrap();
        let reader = open_read(&path, LONG).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        reader
            .query_row("SELECT count(*) FROM record", [], |_| Ok(()))
            .unwrap();
        let hook = open_write(&path, Duration::from_secs(10)).unwrap();
        hook.execute_batch("INSERT INTO record VALUES (1)").unwrap();
        thread::scope(|scope| {
            let checkpoint = scope.spawn(move || checkpoint(&deferred).unwrap());
            while !checkpoint.is_finished() {
                hook.execute_batch("INSERT INTO record VALUES (2)").unwrap();
            }
        });
        assert!(fs::metadata(&log).unwrap().len() > 0);
        reader.execute_batch("ROLLBACK").unwrap();
        let timeout = |connection: &Connection| -> u32 {
            connection
                .query_row("PRAGMA busy_timeout", [], |row| row.get(0))
                .unwrap()
        };
        checkpoint(&hook).unwrap();
        assert_eq!(fs::metadata(&log).unwrap().len(), 0);
        assert_eq!(timeout(&hook), 10_000);
    }

    fn read_text(value: Vec<u8>) -> rusqlite::Result<String> {
        let connection = Connection::open_in_memory().unwrap();
        connection.query_row("SELECT ?", [value], |row| {
            row.get::<_, Compressed<String>>(0).map(|text| text.0)
        })
    }

    fn compressed(text: &str) -> Vec<u8> {
        compress_to_vec(text.as_bytes(), LEVEL)
    }

    proptest::proptest! {
        #[test]
        fn a_compressed_text_is_read_as_it_was(text in ".{0,2000}") {
            let text = text.repeat(2);
            let connection = Connection::open_in_memory().unwrap();
            let read: Compressed<String> = connection
                .query_row("SELECT ?", [Compressed(text.as_str())], |row| row.get(0))
                .unwrap();
            proptest::prop_assert_eq!(read.0, text);
        }

        #[test]
        fn any_bytes_are_a_text_or_an_error(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            let _ = read_text(bytes);
        }
    }

    #[test]
    fn a_text_that_is_not_compressed_is_read_whole() {
        for length in [0, 1, 65_535, 65_536, 200_000] {
            let text = "a".repeat(length);
            assert!(
                read_text(stored(text.as_bytes())).unwrap() == text,
                "{length}"
            );
        }
    }

    #[test]
    fn a_text_that_is_cut_off_or_too_long_is_an_error() {
        let bytes = compressed(&"one note after another ".repeat(50));
        assert!(read_text(bytes[..bytes.len() - 5].to_vec()).is_err());
        assert!(read_text(compressed(&"a".repeat(MAX_TEXT + 1))).is_err());
    }
}
