//! Reads the SQLite database of another program without changing a byte of it.
//!
//! The program may be running. Each mode of opening was chosen for what it leaves alone:
//!
//! - with a log and its index: read-only, in one transaction beside the writer;
//! - with a log alone, which a killed program left: read-only and without locks, with the index of
//!   the log in memory. SQLite would otherwise create a file beside it;
//! - without a log: as a file that does not change, which is checked at the end.

use std::{
    fmt, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, types::ValueRef};
use serde_json::{Map, Value};

use crate::{
    fs::file::{self, Stamp},
    sqlite::{self, Queries},
};

/// The longest text of a column, in bytes; a longer one makes its row unusable.
const MAX_TEXT: usize = 4 * 1024 * 1024;

/// The most rows of a query, and the longest time to read a database: a view may never end.
const MAX_ROWS: usize = if cfg!(test) { 1_000 } else { 1_000_000 };
const MAX_TIME: Duration = Duration::from_secs(60);

/// SQLite instructions between two looks at the time.
const INSTRUCTIONS: i32 = 100_000;

/// How long another program may keep its database locked.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The parameter for opening without locks. `nolock` would refuse a log.
const WITHOUT_LOCKS: &str = if cfg!(windows) {
    "&vfs=win32-none"
} else {
    "&vfs=unix-none"
};

/// The first bytes of every database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The database cannot be read, or not as a whole. Nothing is imported then.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    fn unreadable(path: &Path, error: &dyn fmt::Display) -> Self {
        Self(format!("cannot read {}: {error}", path.display()))
    }
}

/// A row as an object, or why one of its texts cannot be used.
pub type Row = Result<Value, &'static str>;

/// The database of another program.
#[derive(Debug)]
pub struct ForeignDatabase {
    connection: Connection,
    path: PathBuf,
    /// The stamp of a file that is read without locks.
    unlocked: Option<Stamp>,
}

impl ForeignDatabase {
    /// Returns whether a file begins like a database.
    pub fn is_one(path: &Path) -> bool {
        let head = file::read_head(path, MAGIC.len());
        head.is_ok_and(|(bytes, ..)| bytes == MAGIC)
    }

    /// Opens a database. A link and a file with several names are refused.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::unreadable(path, &error);
        let (mut open, metadata) = file::open_single(path).map_err(failed)?;
        let mut head = [0; 20];
        open.read_exact(&mut head).map_err(failed)?;
        // SQLite reads zeros behind the end of the last page. 1 stands for 65,536.
        let page = match u64::from(u16::from_be_bytes([head[16], head[17]])) {
            1 => 65_536,
            size => size.max(1),
        };
        if head.starts_with(MAGIC) && metadata.len() % page != 0 {
            return Err(failed(io::Error::other("the file is truncated")));
        }
        let beside = |ending: &str| {
            let metadata = fs::symlink_metadata(file::with_suffix(path, ending));
            metadata.is_ok_and(|metadata| metadata.len() > 0)
        };
        // The file format: 2 is a write-ahead log.
        let mode = match (head[18] == 2, beside("-wal"), beside("-shm")) {
            (false, ..) | (true, true, true) => "",
            (true, true, false) => WITHOUT_LOCKS,
            (true, false, _) => "&immutable=1",
        };
        let database = Self {
            connection: connect(path, mode).map_err(|error| Error::unreadable(path, &error))?,
            path: path.to_owned(),
            unlocked: (!mode.is_empty()).then(|| Stamp::from_metadata(&metadata)),
        };
        // The first read begins the transaction.
        database.columns("sqlite_schema")?;
        Ok(database)
    }

    /// Returns the version that the program set.
    pub fn version(&self) -> Result<i64, Error> {
        sqlite::version(&self.connection).map_err(|error| Error::unreadable(&self.path, &error))
    }

    /// Returns the columns of a table; none if it is missing.
    pub fn columns(&self, table: &str) -> Result<Vec<String>, Error> {
        let sql = "SELECT name FROM pragma_table_info(?)";
        let names = self.connection.column(sql, [table]);
        names.map_err(|error| Error::unreadable(&self.path, &error))
    }

    /// Returns the rows of a table in an order; none if it is missing.
    pub fn rows_of(&self, table: &str, order: &str) -> Result<Vec<Row>, Error> {
        if self.columns(table)?.is_empty() {
            return Ok(Vec::new());
        }
        self.rows(&format!("SELECT * FROM {table} {order}"))
    }

    /// Returns the rows of a query.
    pub fn rows(&self, sql: &str) -> Result<Vec<Row>, Error> {
        let query = || -> rusqlite::Result<Vec<Row>> {
            let mut statement = self.connection.prepare(sql)?;
            let names = statement.column_names().map(str::to_owned);
            let names: Vec<String> = names.collect();
            let rows = statement.query_map([], |row| row_of(row, &names))?;
            rows.take(MAX_ROWS + 1).collect()
        };
        let rows = query().map_err(|error| Error::unreadable(&self.path, &error))?;
        if rows.len() > MAX_ROWS {
            return Err(Error(format!(
                "the database {} has more than {MAX_ROWS} rows in one table; nothing was imported",
                self.path.display()
            )));
        }
        Ok(rows)
    }

    /// Checks that the file is unchanged, if it was read without locks.
    ///
    /// # Errors
    /// It was changed.
    pub fn check(&self) -> Result<(), Error> {
        let now = fs::symlink_metadata(&self.path).map(|metadata| Stamp::from_metadata(&metadata));
        match (&self.unlocked, now) {
            (Some(before), Ok(now)) if now == *before => Ok(()),
            (Some(_), _) => Err(Error(format!(
                "the database {} was changed while it was read; nothing was imported",
                self.path.display()
            ))),
            (None, _) => Ok(()),
        }
    }
}

fn row_of(row: &rusqlite::Row<'_>, names: &[String]) -> rusqlite::Result<Row> {
    let mut values = Map::new();
    for (place, name) in names.iter().enumerate() {
        let value = match row.get_ref(place)? {
            ValueRef::Null | ValueRef::Blob(_) => continue,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(bytes) if bytes.len() > MAX_TEXT => {
                return Ok(Err("with a text over 4 MiB"));
            }
            ValueRef::Text(bytes) => match str::from_utf8(bytes) {
                Ok(text) => text.into(),
                Err(_) => return Ok(Err("not UTF-8")),
            },
        };
        values.insert(name.clone(), value);
    }
    Ok(Ok(Value::Object(values)))
}

fn connect(path: &Path, mode: &str) -> rusqlite::Result<Connection> {
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                address.push(char::from(*byte));
            }
            byte => address.push_str(&format!("%{byte:02x}")),
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("{address}?mode=ro{mode}"), flags)?;
    let mut connection = sqlite::configure(connection, TIMEOUT)?;
    if mode == WITHOUT_LOCKS {
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    }
    connection.execute_batch("BEGIN")?;
    let begun = Instant::now();
    connection.progress_handler(INSTRUCTIONS, Some(move || begun.elapsed() > MAX_TIME))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The files of a folder, without the index of a log, through which processes share locks.
    fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let files = entries.map(|entry| entry.path());
        files
            .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
            .collect()
    }

    fn titles(database: &ForeignDatabase) -> Vec<String> {
        let rows = database.rows_of("note", "ORDER BY title").unwrap();
        let title = |row: Row| row.map_or_else(str::to_owned, |row| row["title"].to_string());
        rows.into_iter().map(title).collect()
    }

    fn writer(path: &Path) -> Connection {
        let writer = Connection::open(path).unwrap();
        let make = "PRAGMA journal_mode = WAL; CREATE TABLE note (title TEXT);";
        writer.execute_batch(make).unwrap();
        writer
            .execute_batch("INSERT INTO note VALUES ('a')")
            .unwrap();
        writer
    }

    #[test]
    fn a_database_is_read_beside_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let name = if cfg!(windows) {
            "a b c#%.db"
        } else {
            "a b?c#%.db"
        };
        let path = folder.path().join(name);
        let writer = writer(&path);
        let database = ForeignDatabase::open(&path).unwrap();
        assert_eq!(titles(&database), ["\"a\""]);
        writer
            .execute_batch("INSERT INTO note VALUES ('b'); PRAGMA wal_checkpoint(PASSIVE)")
            .unwrap();
        assert_eq!(titles(&database), ["\"a\""], "one transaction");
        database.check().unwrap();
        let database = ForeignDatabase::open(&path).unwrap();
        assert_eq!(titles(&database), ["\"a\"", "\"b\""]);
    }

    #[test]
    fn no_byte_and_no_file_changes_without_a_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        drop(writer(&path));
        let before = bytes(folder.path());
        assert_eq!(before.len(), 1);
        let database = ForeignDatabase::open(&path).unwrap();
        assert_eq!(titles(&database), ["\"a\""]);
        drop(database);
        assert!(bytes(folder.path()) == before);
    }

    #[test]
    fn a_log_that_a_killed_program_left_is_read_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let writer = writer(&path);
        let other = tempfile::tempdir().unwrap();
        let copy = other.path().join("m.db");
        fs::copy(&path, &copy).unwrap();
        fs::copy(
            folder.path().join("m.db-wal"),
            other.path().join("m.db-wal"),
        )
        .unwrap();
        drop(writer);
        let before = bytes(other.path());
        assert_eq!(before.len(), 2);
        let database = ForeignDatabase::open(&copy).unwrap();
        assert_eq!(titles(&database), ["\"a\""]);
        database.check().unwrap();
        drop(database);
        assert!(bytes(other.path()) == before);
    }

    #[test]
    fn a_change_of_a_file_that_is_read_without_locks_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        drop(writer(&path));
        let database = ForeignDatabase::open(&path).unwrap();
        let another = Connection::open(&path).unwrap();
        another
            .execute_batch("INSERT INTO note VALUES ('b')")
            .unwrap();
        drop(another);
        let error = database.check().unwrap_err().to_string();
        assert!(error.contains("was changed"), "{error}");
    }

    #[test]
    fn links_truncated_files_and_other_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        drop(writer(&path));
        let text = folder.path().join("text.db");
        fs::write(&text, "not a database, but long enough").unwrap();
        let short = folder.path().join("short.db");
        fs::write(&short, &fs::read(&path).unwrap()[..5000]).unwrap();
        let empty = folder.path().join("empty.db");
        fs::write(&empty, "").unwrap();
        let missing = folder.path().join("missing.db");
        for path in [&text, &short, &empty, &missing] {
            let read = ForeignDatabase::open(path);
            let read = read.and_then(|database| database.rows("SELECT * FROM note"));
            assert!(read.is_err(), "{}", path.display());
        }
        assert!(ForeignDatabase::is_one(&path) && !ForeignDatabase::is_one(&text));
        #[cfg(unix)]
        {
            let link = folder.path().join("link.db");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            assert!(ForeignDatabase::open(&link).is_err());
        }
        fs::hard_link(&path, folder.path().join("second.db")).unwrap();
        assert!(ForeignDatabase::open(&path).is_err());
    }

    #[test]
    fn a_view_that_never_ends_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let writer = Connection::open(&path).unwrap();
        let endless = "CREATE VIEW note AS WITH RECURSIVE n (title) AS
          (SELECT 1 UNION ALL SELECT title FROM n) SELECT title FROM n";
        writer.execute_batch(endless).unwrap();
        drop(writer);
        let read = ForeignDatabase::open(&path).unwrap().rows_of("note", "");
        let error = read.unwrap_err().to_string();
        assert!(error.contains("more than"), "{error}");
    }

    #[test]
    fn a_text_that_is_not_utf_8_makes_only_its_row_unusable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let writer = writer(&path);
        writer
            .execute_batch("INSERT INTO note VALUES (CAST(x'ff' AS TEXT))")
            .unwrap();
        drop(writer);
        let database = ForeignDatabase::open(&path).unwrap();
        assert_eq!(titles(&database), ["\"a\"", "not UTF-8"]);
    }
}
