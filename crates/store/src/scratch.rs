//! Tables of bytes for the length of one run, in a temporary SQLite file.
//!
//! SQLite keeps a few MiB of it in memory and the rest in a file that has no name, which the system
//! removes with the process.

use rusqlite::{Connection, OptionalExtension, params};

use crate::sqlite;

/// How much of the file is kept in memory, in KiB.
const CACHE_KIB: usize = 8 * 1024;

/// The temporary file cannot be used, because its disk is full, for example.
#[derive(Debug, thiserror::Error)]
#[error("temporary file: {0}")]
pub struct Error(#[from] rusqlite::Error);

/// Tables of byte strings, each sorted by its key.
#[derive(Debug)]
pub struct Scratch {
    connection: Connection,
}

impl Scratch {
    /// Creates empty tables with these names.
    pub fn new(tables: &[&str]) -> Result<Self, Error> {
        // An empty path is a temporary file.
        let connection = sqlite::open_temporary()?;
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{CACHE_KIB};
             BEGIN;"
        ))?;
        for table in tables {
            connection.execute_batch(&format!(
                "CREATE TABLE {table} (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID"
            ))?;
        }
        Ok(Self { connection })
    }

    /// Returns the value of a key.
    pub fn get(&self, table: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let sql = format!("SELECT value FROM {table} WHERE key = ?");
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row([key], |row| row.get(0)).optional()?)
    }

    /// Sets the value of a key.
    pub fn set(&self, table: &str, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let sql = format!("INSERT OR REPLACE INTO {table} VALUES (?, ?)");
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.execute(params![key, value])?;
        Ok(())
    }

    /// Sets the value of a new key; returns whether it is new.
    pub fn add(&self, table: &str, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let sql = format!("INSERT OR IGNORE INTO {table} VALUES (?, ?)");
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.execute(params![key, value])? > 0)
    }

    /// Removes a key; returns whether it was there.
    pub fn remove(&self, table: &str, key: &[u8]) -> Result<bool, Error> {
        let sql = format!("DELETE FROM {table} WHERE key = ?");
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.execute([key])? > 0)
    }

    /// Calls `take` with the keys that begin with `start`, sorted, and their values.
    pub fn each<E: From<Error>>(
        &self,
        table: &str,
        start: &[u8],
        mut take: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = format!("SELECT key, value FROM {table} WHERE key >= ? ORDER BY key");
        let mut statement = self.connection.prepare_cached(&sql).map_err(Error)?;
        let mut rows = statement.query([start]).map_err(Error)?;
        while let Some(row) = rows.next().map_err(Error)? {
            let bytes = |column| {
                row.get_ref(column)?
                    .as_blob()
                    .map_err(rusqlite::Error::from)
            };
            let key = bytes(0).map_err(Error)?;
            if !key.starts_with(start) {
                break;
            }
            take(key, bytes(1).map_err(Error)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_found_by_their_start() {
        let scratch = Scratch::new(&["one", "other"]).unwrap();
        for key in ["b2", "a", "b1", "c"] {
            scratch.set("one", key.as_bytes(), b"old").unwrap();
        }
        assert!(!scratch.add("one", b"a", b"new").unwrap());
        assert!(scratch.add("one", b"d", b"new").unwrap());
        scratch.set("one", b"b1", b"").unwrap();
        assert!(scratch.remove("one", b"c").unwrap());
        assert!(!scratch.remove("one", b"c").unwrap());
        assert_eq!(scratch.get("one", b"a").unwrap().unwrap(), b"old");
        assert_eq!(scratch.get("other", b"a").unwrap(), None);
        let found = |start: &[u8]| {
            let mut found = Vec::new();
            let take = |key: &[u8], value: &[u8]| {
                found.push(String::from_utf8_lossy(&[key, b"=", value].concat()).into_owned());
                Ok::<_, Error>(())
            };
            scratch.each("one", start, take).unwrap();
            found
        };
        assert_eq!(found(b""), ["a=old", "b1=", "b2=old", "d=new"]);
        assert_eq!(found(b"b"), ["b1=", "b2=old"]);
    }
}
