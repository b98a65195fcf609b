//! Removes a text from all records.
//!
//! Every column of every table is searched, except ids, which the client generates. Rows are changed
//! in place. Then the file is rewritten, because free space in SQLite's pages may keep the old bytes.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::purge_pattern::PurgePattern;
use anamnesis_text::{
    hash::hex,
    private_tokens::{self, Hash, Key},
};
use rusqlite::{params_from_iter, types::Value};
use ulid::Ulid;

use super::{Error, InjectedText, Journal, damage, injected};
use crate::sqlite::{self, Queries};

/// The `meta` key of the hashes of purged texts.
const PURGED: &str = "purged";

/// Id columns, which are not searched.
const IDS: [&str; 6] = ["session", "id", "prompt_id", "agent_id", "note", "hash"];

/// Counts of rows that contain a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions {
    /// The number of rows by table.
    pub rows: BTreeMap<String, usize>,
    /// The sessions of these rows.
    pub sessions: BTreeSet<String>,
}

impl Mentions {
    /// Returns the number of rows in all tables.
    pub fn count(&self) -> usize {
        self.rows.values().sum()
    }

    /// Returns the number of rows in one table.
    pub fn count_in(&self, table: &str) -> usize {
        self.rows.get(table).copied().unwrap_or(0)
    }
}

/// A table and its searchable columns.
struct Table {
    name: String,
    /// The key columns.
    key: Vec<String>,
    columns: Vec<String>,
    has_session: bool,
}

impl Journal {
    /// Counts the rows that contain a text. Nothing is changed.
    pub fn mentions(&self, needle: &PurgePattern) -> Result<Mentions, Error> {
        let mut mentions = Mentions::default();
        for table in self.tables()? {
            self.each_mention(&table, needle, &mut mentions, |_, _| Ok(()))?;
        }
        let masked = |_: &str, block: &InjectedText| Ok(needle.mask_text(&block.text));
        self.count_injected(&mut mentions, masked)?;
        Ok(mentions)
    }

    /// Masks a text in every row. Returns how many.
    ///
    /// # Errors
    /// Either nothing was masked, or every row was masked but the file still has old bytes: run it
    /// again.
    pub fn mask(&self, needle: &PurgePattern) -> Result<Mentions, Error> {
        let mentions = self.in_transaction(|journal| {
            let mut mentions = Mentions::default();
            for table in journal.tables()? {
                // A masked row may equal another one.
                let change = format!(
                    "UPDATE OR REPLACE \"{}\" SET \"{}\" = ? WHERE \"{}\" IS ?",
                    table.name,
                    table.columns.join("\" = ?, \""),
                    table.key.join("\" IS ? AND \"")
                );
                journal.each_mention(&table, needle, &mut mentions, |masked, key| {
                    let values = masked.iter().chain(key);
                    journal.run(&change, params_from_iter(values))
                })?;
            }
            let masked = |_: &str, block: &InjectedText| Ok(needle.mask_text(&block.text));
            journal.count_injected(&mut mentions, masked)?;
            journal.rewrite_injected(masked)?;
            Ok(mentions)
        })?;
        // Runs even if nothing was found, because an earlier run may have been killed here.
        self.connection
            .execute_batch("PRAGMA temp_store = MEMORY; VACUUM")?;
        sqlite::checkpoint(&self.connection)?;
        Ok(mentions)
    }

    /// Stores a keyed hash of the text, so that hooks recognise it from now on.
    pub fn purged(&self, needle: &PurgePattern) -> Result<(), Error> {
        let key = match self.purged_hashes()?.first() {
            Some((key, _)) => *key,
            None => Key::new(Ulid::generate().random().to_be_bytes()),
        };
        self.in_transaction(|journal| {
            let mut all = journal.purged_hashes()?;
            for hash in private_tokens::hashes_of(&key, needle.text()) {
                if !all.contains(&(key, hash)) {
                    all.push((key, hash));
                }
            }
            let all: Vec<String> = all
                .iter()
                .map(|(key, hash)| hex(&[&key.to_bytes()[..], &hash.to_bytes()].concat()))
                .collect();
            journal.set_meta(PURGED, &all.join(" "))
        })
    }

    /// Returns the hashes of purged texts.
    pub(super) fn purged_hashes(&self) -> Result<Vec<(Key, Hash)>, Error> {
        let kept = self.meta(PURGED)?.unwrap_or_default();
        let hashes = kept.split_whitespace().filter_map(|text| {
            let bytes = unhex(text)?;
            let (key, hash) = bytes.split_first_chunk()?;
            Some((Key::new(*key), Hash::from_bytes(hash)?))
        });
        Ok(hashes.collect())
    }

    /// Calls `change` with the masked columns and the key of each row that contains the text.
    fn each_mention(
        &self,
        table: &Table,
        needle: &PurgePattern,
        mentions: &mut Mentions,
        mut change: impl FnMut(&[Value], &[Value]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let width = table.columns.len();
        let names = [&table.columns[..], &table.key[..]].concat();
        let session = if table.has_session { "session" } else { "NULL" };
        let mut statement = self.connection.prepare(&format!(
            "SELECT \"{}\", {session} FROM \"{}\"",
            names.join("\", \""),
            table.name
        ))?;
        let mut found: Vec<(Vec<Value>, Option<String>)> = Vec::new();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<Value> = (0..names.len())
                .map(|number| row.get(number))
                .collect::<Result<_, _>>()?;
            if values
                .iter()
                .take(width)
                .any(|value| masked(value, needle).is_some())
            {
                found.push((values, row.get(names.len())?));
            }
        }
        for (values, session) in found {
            let (columns, key) = values.split_at(width);
            let columns: Vec<Value> = columns
                .iter()
                .map(|value| masked(value, needle).unwrap_or_else(|| value.clone()))
                .collect();
            change(&columns, key)?;
            *mentions.rows.entry(table.name.clone()).or_default() += 1;
            mentions.sessions.extend(session);
        }
        Ok(())
    }

    fn tables(&self) -> Result<Vec<Table>, Error> {
        let mut tables = Vec::new();
        for name in damage::tables(&self.connection)? {
            let sql = "SELECT name, type, pk > 0 FROM pragma_table_info(?)";
            let columns: Vec<(String, String, bool)> = self.tuples(sql, [&name])?;
            let is_text = |kind: &str| kind == "TEXT" || kind == "BLOB";
            // Compressed texts are searched apart.
            let is_compressed = |kind: &str| name == injected::TABLE && kind == "BLOB";
            let texts = columns.iter().filter(|(column, kind, _)| {
                is_text(kind) && !is_compressed(kind) && !IDS.contains(&column.as_str())
            });
            let key = columns.iter().filter(|(.., is_key)| *is_key);
            let table = Table {
                key: key.map(|(column, ..)| column.clone()).collect(),
                columns: texts.map(|(column, ..)| column.clone()).collect(),
                has_session: columns.iter().any(|(column, ..)| column == "session"),
                name,
            };
            if !table.columns.is_empty() {
                tables.push(table);
            }
        }
        Ok(tables)
    }
}

/// Masks the text in a value; none if the value does not contain it.
fn masked(value: &Value, needle: &PurgePattern) -> Option<Value> {
    match value {
        Value::Text(text) => needle.mask_text(text).map(Value::Text),
        Value::Blob(bytes) => needle.mask(bytes).map(Value::Blob),
        _ => None,
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;
    use crate::fs::home::Home;

    const SECRET: &str = "s3cr et\"value";

    #[test]
    fn a_text_is_in_no_byte_of_the_records_afterwards() {
        // DEL-01
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        home.create().unwrap();
        let journal = Journal::open(&home, Duration::from_secs(5)).unwrap();
        let filler = "x".repeat(3_000);
        let json = serde_json::to_string(&format!("{filler}{SECRET}")).unwrap();
        journal
            .connection
            .execute_batch(
                "INSERT INTO session (id, project, started_at, seen_at) VALUES ('s', 'p', 1, 1), ('t', 'p', 1, 1)",
            )
            .unwrap();
        for number in 0..50 {
            let holds = number % 2 == 0;
            let (text, input) = if holds {
                (format!("a {SECRET} b {filler}"), json.clone())
            } else {
                ("harmless".to_owned(), "{}".to_owned())
            };
            journal
                .connection
                .execute(
                    "INSERT INTO prompt (session, number, kind, privacy, text, many_tags, at) VALUES ('s', ?1, 'person', 'none', ?2, 0, 1)",
                    rusqlite::params![number, text],
                )
                .unwrap();
            journal
                .connection
                .execute(
                    "INSERT INTO tool_event (session, id, tool, input, outcome, is_from_batch, many_tags, at) VALUES ('s', ?1, 'Bash', ?2, 'ok', 0, 0, 1)",
                    rusqlite::params![number.to_string(), input],
                )
                .unwrap();
            if holds {
                journal
                    .connection
                    .execute(
                        "INSERT INTO file_use VALUES (last_insert_rowid(), 's', ?1, 'read')",
                        [format!("/x/{SECRET}")],
                    )
                    .unwrap();
            }
        }
        journal.set_meta("other", SECRET).unwrap();
        let needle = PurgePattern::new(SECRET).unwrap();
        let before = journal.mentions(&needle).unwrap();
        assert_eq!(
            (
                before.count_in("prompt"),
                before.count_in("tool_event"),
                before.count_in("file_use")
            ),
            (25, 25, 25)
        );
        assert_eq!((before.count_in("meta"), before.count()), (1, 76));
        assert_eq!(before.sessions, BTreeSet::from(["s".to_owned()]));
        assert_eq!(journal.mask(&needle).unwrap(), before);
        assert_eq!(journal.mentions(&needle).unwrap(), Mentions::default());
        for name in ["journal.db", "journal.db-wal"] {
            let bytes = fs::read(folder.path().join(name)).unwrap_or_default();
            assert!(!needle.is_in(&bytes), "{name}");
            assert!(!bytes.windows(5).any(|part| part == b"s3cr "), "{name}");
        }
        let integrity: String = journal
            .connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(integrity, "ok");
    }

    #[test]
    fn what_was_purged_is_recognized_in_every_session() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        home.create().unwrap();
        let journal = Journal::open(&home, Duration::from_secs(5)).unwrap();
        assert!(journal.echoes("any").unwrap().is_empty());
        for text in ["hunter", "another-v4lue", "hunter"] {
            journal.purged(&PurgePattern::new(text).unwrap()).unwrap();
        }
        assert_eq!(journal.purged_hashes().unwrap().len(), 2);
        let echoes = journal.echoes("any").unwrap();
        assert_eq!(
            echoes.mask("pw=hunter, hunters another-v4lue."),
            "pw=[private], hunters [private]."
        );
        let kept = fs::read(folder.path().join("journal.db-wal")).unwrap();
        assert!(!PurgePattern::new("hunter").unwrap().is_in(&kept));
    }
}
