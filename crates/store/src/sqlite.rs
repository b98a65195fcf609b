//! How our SQLite files are opened: nothing in a file is trusted, nobody waits for long, and a
//! short-lived process never pays for a checkpoint.

use std::{io, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::file::private_options;

/// Opens an existing file for reading only.
pub(crate) fn open_read(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    configure(Connection::open_with_flags(path, flags)?, patience)
}

/// Opens a file for writing and makes it if it is missing, for the owner alone.
///
/// SQLite gives the files it puts beside the database the database's own mode.
pub(crate) fn open_write(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    if let Err(error) = private_options().create(true).open(path)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(rusqlite::Error::InvalidPath(
            format!("{}: {error}", path.display()).into(),
        ));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    configure(Connection::open_with_flags(path, flags)?, patience)
}

fn configure(connection: Connection, patience: Duration) -> rusqlite::Result<Connection> {
    connection.busy_timeout(patience)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Reads the schema version of a file.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Folds the write-ahead log into the file and empties it.
pub(crate) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}
