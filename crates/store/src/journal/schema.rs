//! The tables of the journal, and the migration of a file of an older version.
//!
//! A migration adds what a file does not have.

use std::collections::BTreeSet;

use rusqlite::{Connection, TransactionBehavior};

use super::{Error, damage};
use crate::sqlite::{self, Queries};

/// The version of the schema. It grows with each change of `schema.sql`.
pub(super) const VERSION: i64 = 13;

/// The statements that create every table and index.
pub(super) const SCHEMA: &str = include_str!("schema.sql");

/// The parts of a schema: first its tables, then their columns in order, then their indexes.
const PARTS: &str = "
  WITH made AS (SELECT * FROM pragma_table_list
    WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%')
  SELECT 0 AS kind, 0 AS place, made.name, '' AS part, format('%d %d', made.wr, made.strict), sql || ';'
    FROM made JOIN sqlite_schema ON sqlite_schema.name = made.name
  UNION ALL
  SELECT 1, c.cid, made.name, c.name, format('%s %d %d', c.type, c.\"notnull\", c.pk),
      format('ALTER TABLE \"%w\" ADD COLUMN \"%w\" %s%s%s;', made.name, c.name, c.type,
        iif(c.\"notnull\", ' NOT NULL', ''), ' DEFAULT ' || c.dflt_value)
    FROM made, pragma_table_xinfo(made.name) AS c
  UNION ALL
  SELECT 2, 0, made.name, i.name, format('%d %d %s', i.\"unique\", i.partial,
        (SELECT group_concat(name) FROM pragma_index_info(i.name))),
      coalesce((SELECT sql || ';' FROM sqlite_schema WHERE sqlite_schema.name = i.name), '')
    FROM made, pragma_index_list(made.name) AS i
  ORDER BY kind, place";

/// A table, a column or an index.
struct Part {
    is_index: bool,
    table: String,
    /// The name of the column or index; empty for the table itself.
    name: String,
    /// Its type and options.
    shape: String,
    /// The statement that adds it.
    create: String,
}

impl Part {
    /// Returns the parts of a file.
    fn all(connection: &Connection) -> rusqlite::Result<Vec<Self>> {
        connection.rows(PARTS, [], |row| {
            Ok(Self {
                is_index: row.get::<_, i64>(0)? == 2,
                table: row.get(2)?,
                name: row.get(3)?,
                shape: row.get(4)?,
                create: row.get(5)?,
            })
        })
    }

    /// Returns the parts that `SCHEMA` creates.
    fn wanted() -> rusqlite::Result<Vec<Self>> {
        let connection = sqlite::open_in_memory()?;
        connection.execute_batch(SCHEMA)?;
        Self::all(&connection)
    }

    fn key(&self) -> (&str, &str, &str) {
        (&self.table, &self.name, &self.shape)
    }
}

/// Returns why the tables of a file do not match its version, if they do not. Unknown tables are
/// ignored. A file of an older version lacks something, and what it has is as in this version.
pub(super) fn mismatch(connection: &Connection, version: i64) -> rusqlite::Result<Option<String>> {
    let (wanted, actual) = (Part::wanted()?, Part::all(connection)?);
    let known: BTreeSet<&str> = wanted.iter().map(|part| part.table.as_str()).collect();
    let keys: BTreeSet<_> = wanted.iter().map(Part::key).collect();
    let unexpected = actual.iter().find(|part| {
        !part.is_index && known.contains(part.table.as_str()) && !keys.contains(&part.key())
    });
    let keys: BTreeSet<_> = actual.iter().map(Part::key).collect();
    let missing = wanted.iter().find(|part| !keys.contains(&part.key()));
    Ok(match (unexpected, missing) {
        (Some(part), _) => Some(part),
        (None, Some(part)) if version == VERSION => Some(part),
        (None, None) if version != VERSION => {
            return Ok(Some(format!(
                "its tables are of version {VERSION}, and its header says {version}"
            )));
        }
        _ => None,
    }
    .map(|part| format!("table {} has an unexpected schema", part.table)))
}

/// Brings a new file, or one of an older version, to this version, in one transaction: a killed
/// migration changed nothing.
///
/// # Errors
/// [`Error::Newer`] if another process has brought the file to a newer version meanwhile.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    // The write lock is taken first: the version may change until then.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match sqlite::version(&transaction)? {
        VERSION => return Ok(()),
        newer if newer > VERSION => return Err(Error::Newer(newer)),
        older => {
            if let Some(reason) = mismatch(&transaction, older)? {
                return Err(damage::seen(Error::Damaged(reason)));
            }
        }
    }
    transaction.execute_batch(&additions(&transaction)?)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}

/// Returns the statements that add what a file does not have.
fn additions(connection: &Connection) -> rusqlite::Result<String> {
    let actual = Part::all(connection)?;
    let has = |table: &str, name: &str| {
        actual
            .iter()
            .any(|part| part.table == table && part.name == name)
    };
    let wanted = Part::wanted()?;
    let added = wanted.iter().filter(|part| {
        // A new table has its columns already.
        let is_column = !part.is_index && !part.name.is_empty();
        !has(&part.table, &part.name) && (!is_column || has(&part.table, ""))
    });
    Ok(added.map(|part| part.create.as_str()).collect())
}

#[cfg(test)]
mod tests;
