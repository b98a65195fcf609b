//! Files of an older version become files of this one, with all their rows.

use std::{fs, path::Path, thread, time::Duration};

use proptest::prelude::*;
use rusqlite::types::Value;

use super::{
    super::{
        Journal,
        tests::{fresh, now, session_of, take},
    },
    *,
};
use crate::{fs::home::Home, settings::config::Retention};

const TIMEOUT: Duration = Duration::from_secs(20);

/// The tables of this version when it was last changed. A change of `schema.sql` is a new version, and the
/// script of the version before stays here.
const LANDED: &str = include_str!("../../../tests/fixtures/journal/13.sql");

/// Makes a file of an older version out of one of this version: without tables, columns and indexes of each
/// kind.
const REMOVED: &str = "
    DROP TABLE block; DROP TABLE shown_note; DROP INDEX session_due;
    ALTER TABLE session DROP COLUMN asked_at; ALTER TABLE session DROP COLUMN asked_reason;
    ALTER TABLE session DROP COLUMN title; ALTER TABLE shown DROP COLUMN evidence;";

/// The number of such a version.
const OLDER: i64 = VERSION - 1;

/// Makes the journal of this version or an older one.
fn of_version(home: &Home, version: i64) -> Connection {
    let connection = sqlite::open_write(&home.journal(), TIMEOUT).unwrap();
    let removed = if version < VERSION { REMOVED } else { "" };
    connection
        .execute_batch(&format!(
            "PRAGMA foreign_keys = OFF; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;
             BEGIN; {LANDED} {removed} PRAGMA user_version = {version}; COMMIT;"
        ))
        .unwrap();
    connection
}

/// The columns of a table in order, each with its type.
fn columns(connection: &Connection, table: &str) -> Vec<(String, String)> {
    connection
        .prepare("SELECT name, type FROM pragma_table_info(?)")
        .unwrap()
        .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn tables(connection: &Connection) -> Vec<String> {
    damage::tables(connection).unwrap()
}

/// The rows of a table with their values in these columns.
fn rows(connection: &Connection, table: &str, columns: &[(String, String)]) -> Vec<Vec<Value>> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    connection
        .prepare(&format!("SELECT {names} FROM \"{table}\" ORDER BY {names}"))
        .unwrap()
        .query_map([], |row| {
            (0..columns.len()).map(|number| row.get(number)).collect()
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// Every table of a file with its columns and rows.
type Contents = Vec<(String, Vec<(String, String)>, Vec<Vec<Value>>)>;

fn contents(connection: &Connection) -> Contents {
    let tables = tables(connection).into_iter();
    let with_rows = tables.map(|table| {
        let columns = columns(connection, &table);
        let rows = rows(connection, &table, &columns);
        (table, columns, rows)
    });
    with_rows.collect()
}

/// Adds a row to every table. Values are unlike those of another row.
fn add_row(connection: &Connection, number: usize, text: &str) {
    for table in tables(connection) {
        let columns = columns(connection, &table);
        let values = columns.iter().map(|(name, kind)| match kind.as_str() {
            "INTEGER" => Value::Integer(i64::try_from(number).unwrap() + 1),
            "REAL" => Value::Real(0.5),
            "BLOB" => Value::Blob(format!("{number}{text}").into_bytes()),
            _ => Value::Text(format!("{number} {name} {text}")),
        });
        let places = vec!["?"; columns.len()].join(", ");
        connection
            .execute(
                &format!("INSERT INTO \"{table}\" VALUES ({places})"),
                rusqlite::params_from_iter(values),
            )
            .unwrap();
    }
}

/// Checks that a file has every row of an older one, in this version's schema.
fn assert_migrated(home: &Home, before: &Contents) {
    let journal = Journal::open(home, TIMEOUT).unwrap();
    let connection = &journal.connection;
    assert_eq!(sqlite::version(connection).unwrap(), VERSION);
    assert_eq!(mismatch(connection, VERSION).unwrap(), None);
    for (table, columns, expected) in before {
        assert_eq!(rows(connection, table, columns), *expected, "{table}");
    }
}

#[test]
fn the_schema_is_that_of_the_files_of_this_version() {
    let (_folder, home) = fresh();
    let landed = of_version(&home, VERSION);
    let schema = sqlite::open_in_memory().unwrap();
    schema.execute_batch(SCHEMA).unwrap();
    let parts = |connection: &Connection| -> BTreeSet<String> {
        let parts = Part::all(connection).unwrap().into_iter();
        parts
            .map(|part| format!("{} {} {}", part.table, part.name, part.shape))
            .collect()
    };
    assert_eq!(parts(&landed), parts(&schema));
    // Rows are inserted by position.
    assert_eq!(contents(&landed), contents(&schema));
}

proptest! {
    // Each case creates a database.
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_row_of_an_older_version_arrives_unchanged(
        texts in prop::collection::vec("\\PC{0,40}", 0..6),
    ) {
        let (_folder, home) = fresh();
        let old = of_version(&home, OLDER);
        for (number, text) in texts.iter().enumerate() {
            add_row(&old, number, text);
        }
        let before = contents(&old);
        drop(old);
        assert_migrated(&home, &before);
    }
}

#[test]
fn a_migrated_journal_takes_sessions() {
    let (_folder, home) = fresh();
    of_version(&home, OLDER)
        .execute_batch(
            "INSERT INTO session (id, project, started_at, seen_at) VALUES ('old', 'p', 1, 1)",
        )
        .unwrap();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    assert!(!journal.session("old").unwrap().unwrap().is_completed());
    take(&journal, &session_of("s"));
    assert!(journal.session("s").unwrap().unwrap().is_completed());
    let pruned = journal.prune(&Retention::default(), now().timestamp_millis());
    assert!(pruned.is_ok());
}

/// Copies a journal with its log, as a kill leaves it.
fn copy_as_killed(from: &Home, to: &Home) {
    for ending in ["", "-wal"] {
        let path = |home: &Home| format!("{}{ending}", home.journal().display());
        if Path::new(&path(from)).exists() {
            fs::copy(path(from), path(to)).unwrap();
        }
    }
}

#[test]
fn a_migration_that_is_killed_is_done_by_the_next_process() {
    let (_folder, home) = fresh();
    let old = of_version(&home, OLDER);
    for number in 0..40 {
        add_row(&old, number, &"x".repeat(500));
    }
    let before = contents(&old);
    drop(old);
    let connection = sqlite::open_write(&home.journal(), TIMEOUT).unwrap();
    // Every changed page is written to the log at once.
    connection
        .execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE")
        .unwrap();
    let statements = additions(&connection).unwrap();
    for statement in statements.split_inclusive(';') {
        connection.execute_batch(statement).unwrap();
        let (_folder, killed) = fresh();
        copy_as_killed(&home, &killed);
        assert_migrated(&killed, &before);
    }
    connection
        .pragma_update(None, "user_version", VERSION)
        .unwrap();
    let (_folder, killed) = fresh();
    copy_as_killed(&home, &killed);
    assert_migrated(&killed, &before);
    drop(connection);
    assert_migrated(&home, &before);
}

#[test]
fn two_processes_migrate_while_an_old_one_writes() {
    let (_folder, home) = fresh();
    let old = of_version(&home, OLDER);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                Journal::open(&home, TIMEOUT).unwrap();
            });
        }
        // The old process had the file open before.
        for number in 0..50 {
            old.execute(
                "INSERT INTO session (id, project, started_at, seen_at) VALUES (?, 'p', 1, 1)",
                [format!("old {number}")],
            )
            .unwrap();
            old.execute("INSERT INTO meta VALUES (?, 'old')", [number.to_string()])
                .unwrap();
        }
    });
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    assert_eq!(journal.count_sessions(Some("p")).unwrap(), 50);
    assert_eq!(mismatch(&journal.connection, VERSION).unwrap(), None);
    assert_eq!(journal.meta("49").unwrap().as_deref(), Some("old"));
}

#[test]
fn a_file_that_became_newer_before_the_lock_was_taken_is_left_alone() {
    // The version is read again under the write lock.
    let (_folder, home) = fresh();
    let mut connection = of_version(&home, OLDER);
    connection.pragma_update(None, "user_version", 99).unwrap();
    let error = migrate(&mut connection).unwrap_err();
    assert!(matches!(error, Error::Newer(99)), "{error}");
    assert_eq!(sqlite::version(&connection).unwrap(), 99);
}

#[test]
fn a_column_that_no_version_has_is_damage() {
    for (version, change) in [
        (VERSION, "ALTER TABLE shown DROP COLUMN evidence"),
        (VERSION, "DROP INDEX session_due"),
        (VERSION, "ALTER TABLE hook ADD COLUMN other TEXT"),
        (OLDER, "ALTER TABLE session RENAME COLUMN branch TO other"),
    ] {
        let (_folder, home) = fresh();
        let connection = of_version(&home, version);
        connection.execute_batch(change).unwrap();
        assert!(
            mismatch(&connection, version).unwrap().is_some(),
            "{change}"
        );
        connection
            .execute_batch("CREATE TABLE other (x TEXT)")
            .unwrap();
        assert!(
            mismatch(&connection, version).unwrap().is_some(),
            "{change}"
        );
    }
    let (_folder, home) = fresh();
    let connection = of_version(&home, VERSION);
    connection
        .execute_batch("CREATE TABLE other (x TEXT)")
        .unwrap();
    assert_eq!(mismatch(&connection, VERSION).unwrap(), None);
}
