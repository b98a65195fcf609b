//! The tables of the index, and the check that a file has exactly these.

use std::collections::BTreeSet;

use anamnesis_note::note::Note;
use rusqlite::Connection;

use super::{
    Error, branches, check_runs, cited, corrections, embeddings, links, postings, supersession,
    tasks, triggers, usage,
};
use crate::sqlite::{self, Queries};

/// The schema version, which is part of the file's name.
pub(super) use crate::fs::home::INDEX_VERSION as VERSION;

const SCHEMA: &str = "
CREATE TABLE note (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  folder INTEGER NOT NULL,
  size INTEGER NOT NULL, modified INTEGER NOT NULL, inode INTEGER NOT NULL,
  scope TEXT NOT NULL, type TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
  title TEXT NOT NULL, project TEXT NOT NULL, machine_id TEXT NOT NULL,
  user_id TEXT NOT NULL, workspace_id TEXT NOT NULL,
  source TEXT NOT NULL, by_agent INTEGER NOT NULL, confidence REAL NOT NULL, session TEXT,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  tags TEXT NOT NULL, reflected INTEGER NOT NULL, pinned INTEGER NOT NULL, severity TEXT,
  superseded INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL, rating TEXT, verified TEXT,
  review_after TEXT,
  tail TEXT NOT NULL AS (substr(id, -6))
) STRICT;
CREATE INDEX note_tail ON note (tail);
CREATE INDEX note_folder ON note (folder);
CREATE INDEX note_recent ON note (project, type, updated_at DESC, confidence DESC, id DESC);
CREATE INDEX note_pinned ON note (project, type) WHERE pinned = 1;
CREATE INDEX note_session ON note (session) WHERE session IS NOT NULL;
CREATE INDEX note_superseded ON note (superseded) WHERE superseded = 1;
CREATE INDEX note_conflict ON note (number) WHERE instr(tags, '\"merge-conflict\"') > 0;
CREATE TABLE problem (
  path TEXT PRIMARY KEY, reason TEXT NOT NULL,
  size INTEGER NOT NULL, modified INTEGER NOT NULL, inode INTEGER NOT NULL
) STRICT;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE note_text (number INTEGER PRIMARY KEY, asked TEXT NOT NULL, body BLOB NOT NULL) STRICT;
";

/// Tables with a module of their own, which adds and removes the rows of a note.
pub(super) struct Tables {
    pub(super) schema: &'static str,
    pub(super) insert: fn(&Connection, i64, &Note) -> rusqlite::Result<()>,
    /// The statements that remove the rows of a note, each with its number as the parameter.
    pub(super) remove: &'static [&'static str],
}

pub(super) const PARTS: &[Tables] = &[
    postings::PART,
    supersession::PART,
    triggers::PART,
    links::PART,
    tasks::PART,
    usage::PART,
    cited::PART,
    embeddings::PART,
    corrections::PART,
    check_runs::PART,
    branches::PART,
];

/// Creates all tables and SQL indexes in an empty file.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    create_tables(connection)?;
    create_sql_indexes(connection)
}

/// Creates the tables in an empty file.
pub(super) fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    execute_where(connection, |statement| !statement.starts_with(SQL_INDEX))
}

/// Creates the SQL indexes on the tables.
pub(super) fn create_sql_indexes(connection: &Connection) -> rusqlite::Result<()> {
    execute_where(connection, |statement| statement.starts_with(SQL_INDEX))
}

const SQL_INDEX: &str = "CREATE INDEX";

/// Executes the selected statements of the schema. No value in it contains a semicolon.
fn execute_where(
    connection: &Connection,
    is_selected: impl Fn(&str) -> bool,
) -> rusqlite::Result<()> {
    for statement in statements().filter(|statement| is_selected(statement)) {
        connection.execute_batch(statement)?;
    }
    Ok(())
}

fn statements() -> impl Iterator<Item = &'static str> {
    let schemas = std::iter::once(SCHEMA).chain(PARTS.iter().map(|part| part.schema));
    schemas.flat_map(|schema| schema.split(';').map(str::trim))
}

/// Checks that the file has this version and exactly the expected objects.
pub(super) fn check(connection: &Connection) -> Result<(), Error> {
    let version = sqlite::version(connection)?;
    if version != VERSION {
        return Err(Error::Foreign(format!(
            "of version {version}, this program reads {VERSION}"
        )));
    }
    // SQLite makes the indexes without a statement.
    let names = statements().filter_map(|statement| statement.split_whitespace().nth(2));
    let mut missing: BTreeSet<&str> = names.collect();
    let mut is_ours = true;
    let sql = "SELECT name FROM sqlite_schema WHERE sql IS NOT NULL";
    connection.each(sql, [], |row| {
        let name = row.get_ref(0)?.as_str().unwrap_or_default();
        is_ours &= missing.remove(name);
        Ok(())
    })?;
    if is_ours && missing.is_empty() {
        Ok(())
    } else {
        Err(Error::Foreign("not of this program's making".to_owned()))
    }
}
