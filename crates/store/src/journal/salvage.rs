//! Copies every row that can be read from a damaged journal into a new one.
//!
//! No SQL of the damaged file is run: this program names the tables and columns, and values are bound as
//! parameters. Rows that violate a constraint of the new tables are left out.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    time::Duration,
};

use chrono::{DateTime, Utc};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, Row, Statement,
    config::DbConfig,
    params, params_from_iter,
    types::{Value, ValueRef},
};

use super::{damage::tables, take::LOST};

/// How many failed reads of one table are allowed before the rest of it is given up.
const MAX_FAILURES: usize = 20_000;

/// Most of a gap wider than this never had a row, so its beginning is searched first.
const WIDE: i64 = 1 << 20;

/// The rows that were saved of a table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Saved {
    pub(super) rows: usize,
    /// Whether no row was lost.
    pub(super) is_whole: bool,
}

/// The result of reading a range of rows in one direction.
struct RangeRead {
    /// The last row that was read.
    last: Option<i64>,
    /// Whether the end of the range was reached.
    is_whole: bool,
}

/// A table of the new file.
struct Table {
    name: String,
    /// The columns that the damaged file has, too.
    columns: Vec<String>,
    /// The columns of the key, in its order.
    key: Vec<String>,
    has_rowid: bool,
    /// Whether a column is an alias of the rowid.
    has_alias: bool,
}

/// Opens a damaged file so that SQLite reads as much of it as possible. It writes nothing.
///
/// With `writable_schema`, SQLite also reads a file that is shorter than its header says, and the other
/// tables of a schema with an invalid definition.
pub(super) fn open(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(patience)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch("PRAGMA writable_schema = ON; PRAGMA cell_size_check = ON")?;
    Ok(connection)
}

/// Returns whether the schema can be read.
pub(super) fn is_readable(source: &Connection) -> bool {
    source.prepare("SELECT 1 FROM meta").is_ok() || source.prepare("SELECT 1 FROM session").is_ok()
}

/// Returns whether `integrity_check` accepts a table.
pub(super) fn is_sound(source: &Connection, table: &str) -> bool {
    let answer = source.query_row(&format!("PRAGMA integrity_check(\"{table}\")"), [], |row| {
        row.get::<_, String>(0)
    });
    answer.is_ok_and(|answer| answer == "ok")
}

/// Copies what can be read of every table. Call it in a transaction of the new file, with foreign keys off.
pub(super) fn all(
    source: &Connection,
    target: &Connection,
    now: DateTime<Utc>,
) -> rusqlite::Result<BTreeMap<String, Saved>> {
    let mut all = BTreeMap::new();
    for name in tables(target)? {
        let saved = match Table::find(&name, source, target)? {
            Some(table) if table.has_rowid => table.save_by_rowid(source, target)?,
            Some(table) => table.save_by_key(source, target)?,
            None => Saved::default(),
        };
        all.insert(name, saved);
    }
    // Without the session's project and folder its note cannot be written.
    let jobs = delete_orphans(target, "job")?;
    restore_sessions(target, now)?;
    for (name, saved) in &mut all {
        let orphans = match name.as_str() {
            "job" => jobs,
            name => delete_orphans(target, name)?,
        };
        saved.rows = saved.rows.saturating_sub(orphans);
        saved.is_whole &= orphans == 0;
    }
    Ok(all)
}

/// Makes a row for each session whose own row was lost, so that its events are kept. It counts as lost
/// and noted: the next event opens it again, and until then no note is made of it.
fn restore_sessions(target: &Connection, now: DateTime<Utc>) -> rusqlite::Result<usize> {
    target.execute(
        "INSERT INTO session (id, project, state, end_reason, is_private, is_partial, is_pruned,
           started_at, seen_at, ended_at, prompts, tool_events, first_prompt)
         SELECT known.session, 'global', 'completed', ?1, 1, 1, 1,
           coalesce(min(known.at), ?2), coalesce(max(known.at), ?2), coalesce(max(known.at), ?2),
           coalesce((SELECT max(number) FROM prompt WHERE session = known.session), 0),
           (SELECT count(*) FROM tool_event WHERE session = known.session),
           (SELECT text FROM prompt WHERE session = known.session AND kind = 'person' ORDER BY number LIMIT 1)
         FROM (SELECT session, at FROM prompt UNION ALL SELECT session, at FROM tool_event
               UNION ALL SELECT session, at FROM turn_end
               UNION ALL SELECT session, NULL FROM private_token) AS known
         WHERE known.session NOT IN (SELECT id FROM session) GROUP BY known.session",
        params![LOST, now.timestamp_millis()],
    )
}

/// Deletes the rows of a table that refer to a lost row.
fn delete_orphans(target: &Connection, table: &str) -> rusqlite::Result<usize> {
    let references: Vec<(String, String, String)> = target
        .prepare("SELECT \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?)")?
        .query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut deleted = 0;
    for (parent, from, to) in references {
        deleted += target.execute(
            &format!(
                "DELETE FROM \"{table}\" WHERE \"{from}\" NOT IN (SELECT \"{to}\" FROM \"{parent}\")"
            ),
            [],
        )?;
    }
    Ok(deleted)
}

impl Table {
    /// None if the damaged file has no such table.
    fn find(
        name: &str,
        source: &Connection,
        target: &Connection,
    ) -> rusqlite::Result<Option<Self>> {
        let is_table = "SELECT wr FROM pragma_table_list
            WHERE schema = 'main' AND type = 'table' AND name = ?";
        let is_there: rusqlite::Result<bool> = source.query_row(is_table, [name], |_| Ok(true));
        if is_there.is_err() {
            return Ok(None);
        }
        // `table_info` leaves out generated columns, which could hold any expression.
        let columns = |connection: &Connection| -> rusqlite::Result<Vec<(String, String, i64)>> {
            connection
                .prepare("SELECT name, type, pk FROM pragma_table_info(?)")?
                .query_map([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect()
        };
        let there = columns(source).unwrap_or_default();
        let made = columns(target)?;
        let is_without_rowid: bool = target.query_row(is_table, [name], |row| row.get(0))?;
        let mut key: Vec<&(String, String, i64)> = made.iter().filter(|(.., pk)| *pk > 0).collect();
        key.sort_by_key(|(.., pk)| *pk);
        let has_alias = !is_without_rowid && matches!(key[..], [(_, kind, _)] if kind == "INTEGER");
        let is_there = |column: &str| there.iter().any(|(name, ..)| name == column);
        Ok(Some(Self {
            name: name.to_owned(),
            columns: (made.iter())
                .filter(|(column, ..)| is_there(column))
                .map(|(column, ..)| quoted(column))
                .collect(),
            key: key.iter().map(|(column, ..)| quoted(column)).collect(),
            has_rowid: !is_without_rowid,
            has_alias,
        }))
    }

    /// Reads from both ends up to an error, then searches the halves of the gap between.
    fn save_by_rowid(&self, source: &Connection, target: &Connection) -> rusqlite::Result<Saved> {
        let mut copy = Copier::new(self, target)?;
        let mut ways = Vec::new();
        for order in ["ASC", "DESC"] {
            let columns = self.columns.join(", ");
            let sql = format!(
                "SELECT rowid, {columns} FROM \"{}\" NOT INDEXED WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid {order}",
                self.name
            );
            match source.prepare(&sql) {
                Ok(statement) => ways.push(statement),
                Err(_) => return Ok(Saved::default()),
            }
        }
        let [forwards, backwards] = &mut ways[..] else {
            return Ok(Saved::default());
        };
        let mut gaps = VecDeque::from([(0, i64::MAX)]);
        let mut failures = 0;
        while let Some((low, high)) = gaps.pop_front() {
            let first = copy.copy_range(forwards, low, high, false)?;
            if first.is_whole {
                continue;
            }
            failures += 1;
            if failures > MAX_FAILURES {
                break;
            }
            let low = first.last.map_or(low, |last| last.saturating_add(1));
            if low > high {
                continue;
            }
            let second = copy.copy_range(backwards, low, high, true)?;
            let high = second.last.map_or(high, |last| last.saturating_sub(1));
            if low < high && !second.is_whole {
                let width = high - low;
                let middle = low + if width > WIDE { width >> 10 } else { width / 2 };
                gaps.extend([(low, middle), (middle + 1, high)]);
            }
        }
        Ok(Saved {
            rows: copy.rows,
            is_whole: failures == 0 && copy.refused == 0,
        })
    }

    /// Reads from both ends up to an error.
    fn save_by_key(&self, source: &Connection, target: &Connection) -> rusqlite::Result<Saved> {
        let mut copy = Copier::new(self, target)?;
        let mut is_whole = false;
        for order in ["ASC", "DESC"] {
            let key: Vec<String> = (self.key.iter())
                .map(|column| format!("{column} {order}"))
                .collect();
            let sql = format!(
                "SELECT {} FROM \"{}\" NOT INDEXED ORDER BY {}",
                self.columns.join(", "),
                self.name,
                key.join(", ")
            );
            is_whole = match source.prepare(&sql) {
                Ok(mut statement) => copy.copy_until_error(&mut statement)?,
                Err(_) => false,
            };
            if is_whole {
                break;
            }
        }
        Ok(Saved {
            rows: copy.rows,
            is_whole: is_whole && copy.refused == 0,
        })
    }
}

/// Inserts the rows of one table into the new file.
struct Copier<'a> {
    insert: Statement<'a>,
    /// How many of the selected columns are not inserted.
    skipped: usize,
    width: usize,
    rows: usize,
    refused: usize,
}

impl<'a> Copier<'a> {
    fn new(table: &Table, target: &'a Connection) -> rusqlite::Result<Self> {
        let mut columns = table.columns.clone();
        let reads_rowid = usize::from(table.has_rowid);
        // Rows keep their rowid, and so their order.
        if table.has_rowid && !table.has_alias {
            columns.insert(0, "rowid".to_owned());
        }
        let insert = target.prepare(&format!(
            "INSERT OR IGNORE INTO \"{}\" ({}) VALUES ({})",
            table.name,
            columns.join(", "),
            vec!["?"; columns.len()].join(", ")
        ))?;
        Ok(Self {
            insert,
            skipped: reads_rowid + table.columns.len() - columns.len(),
            width: reads_rowid + table.columns.len(),
            rows: 0,
            refused: 0,
        })
    }

    /// Copies the rows from `low` to `high` up to one that cannot be read or is out of order.
    fn copy_range(
        &mut self,
        statement: &mut Statement<'_>,
        low: i64,
        high: i64,
        is_backwards: bool,
    ) -> rusqlite::Result<RangeRead> {
        let mut read = RangeRead {
            last: None,
            is_whole: false,
        };
        let Ok(mut rows) = statement.query(params![low, high]) else {
            return Ok(read);
        };
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => {
                    read.is_whole = true;
                    return Ok(read);
                }
                Err(_) => return Ok(read),
            };
            let Ok(rowid) = row.get::<_, i64>(0) else {
                return Ok(read);
            };
            let is_in_order = (read.last).is_none_or(|last| (rowid < last) == is_backwards);
            if !is_in_order || read.last == Some(rowid) || !(low..=high).contains(&rowid) {
                return Ok(read);
            }
            if !self.put(row)? {
                self.refused += 1;
            }
            read.last = Some(rowid);
        }
    }

    /// Copies rows up to one that cannot be read or was copied before. Returns whether all were read.
    fn copy_until_error(&mut self, statement: &mut Statement<'_>) -> rusqlite::Result<bool> {
        let Ok(mut rows) = statement.query([]) else {
            return Ok(false);
        };
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    if !self.put(row)? {
                        return Ok(false);
                    }
                }
                Ok(None) => return Ok(true),
                Err(_) => return Ok(false),
            }
        }
    }

    /// Inserts a row unless it violates a constraint. Returns false if the row is there already.
    fn put(&mut self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let values = (self.skipped..self.width).map(|column| match row.get_ref(column)? {
            ValueRef::Text(text) if std::str::from_utf8(text).is_err() => Ok(None),
            value => Value::try_from(value).map(Some).or(Ok(None)),
        });
        let values: rusqlite::Result<Option<Vec<Value>>> = values.collect();
        let Ok(Some(values)) = values else {
            self.refused += 1;
            return Ok(true);
        };
        match self.insert.execute(params_from_iter(values)) {
            Ok(stored) => {
                self.rows += stored;
                Ok(stored > 0)
            }
            Err(error) if is_refusal(&error) => {
                self.refused += 1;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }
}

fn is_refusal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
    )
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}
