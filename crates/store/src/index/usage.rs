//! Usage counts of notes, from this machine's journal.
//!
//! Counts are per month and decay from the middle of their month. The table is refilled when the
//! journal's counts changed, which takes about ten milliseconds.

use std::collections::HashMap;

use anamnesis_note::id::NoteId;
use chrono::{DateTime, Utc};
use rusqlite::{Connection, params};

use super::{Error, Index, Tables};
use crate::{
    fs::home::Home,
    journal::{Journal, NoteCounts},
    sqlite::Queries,
};

const SCHEMA: &str = "
CREATE TABLE usage (
  note TEXT NOT NULL, month INTEGER NOT NULL, used INTEGER NOT NULL, hinted INTEGER NOT NULL,
  sessions INTEGER NOT NULL, shown INTEGER NOT NULL, unused INTEGER NOT NULL, last INTEGER,
  PRIMARY KEY (note, month)
) STRICT, WITHOUT ROWID;
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert: |_, _, _| Ok(()),
    remove: &[],
};

/// The `meta` key of the state of the counts that filled the table.
const STAMP: &str = "usage";

/// Counts of one kind, by the middle of their month.
pub type ByMonth<T> = Vec<(DateTime<Utc>, T)>;

impl Index {
    /// Refills the table if the journal's counts changed. Returns whether they did.
    pub fn refresh_usage(&mut self, home: &Home) -> Result<bool, Error> {
        // An unreadable journal counts as unchanged.
        let journal = Journal::open_to_read(home, std::time::Duration::from_millis(100));
        let Ok(Some(journal)) = journal else {
            return Ok(false);
        };
        let Ok(stamp) = journal.usage_stamp() else {
            return Ok(false);
        };
        let known = self.meta(STAMP)?;
        if known.as_ref() == Some(&stamp) {
            return Ok(false);
        }
        let Ok(counts) = journal.usage_counts() else {
            return Ok(false);
        };
        let transaction = self.connection.unchecked_transaction()?;
        fill(&transaction, &counts)?;
        transaction.set_meta(STAMP, &stamp)?;
        transaction.commit()?;
        Ok(true)
    }

    /// Returns the usage of these notes; empty for notes that no session was shown.
    pub fn usage_of(
        &self,
        notes: impl IntoIterator<Item = NoteId>,
    ) -> Result<HashMap<NoteId, ByMonth<NoteCounts>>, Error> {
        let sql = "SELECT month, used, hinted, sessions, shown, unused, last
             FROM usage WHERE note = ? ORDER BY month";
        let mut all = HashMap::new();
        for note in notes {
            let months: ByMonth<NoteCounts> = self.rows(sql, [note.to_string()], |row| {
                Ok((self::time(row.get("month")?), NoteCounts::read(row)?))
            })?;
            if !months.is_empty() {
                all.insert(note, months);
            }
        }
        Ok(all)
    }
}

fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

fn fill(connection: &Connection, counts: &[(String, i64, NoteCounts)]) -> rusqlite::Result<()> {
    connection.run("DELETE FROM usage", [])?;
    for (note, month, counts) in counts {
        let values = params![
            note,
            month,
            counts.used,
            counts.hinted,
            counts.sessions,
            counts.shown,
            counts.unused,
            counts.last,
        ];
        connection.run("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        journal::{Weight, tests::started},
        notes::Notes,
    };

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn counts_are_those_of_the_journal_after_an_update_and_a_rebuild() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let notes = Notes::new(home.clone(), TIMEOUT);
        let journal = Journal::open(&home, TIMEOUT).unwrap();
        let id = |number: u32| NoteId::of_session(&number.to_string());
        let now = DateTime::from_timestamp(1_772_618_400, 0).unwrap();
        let used = |session: &str, of: &[u32]| {
            journal.take(&started(session, "startup")).unwrap();
            let uses: Vec<_> = of.iter().map(|of| (id(*of), Weight::Explicit)).collect();
            journal.used(session, "", 1, &uses, now).unwrap();
        };
        let answers = |index: &Index| index.usage_of([id(1), id(2), id(3)]).unwrap();
        used("one", &[1, 2]);
        let mut index = Index::in_step(&home, &notes, TIMEOUT).unwrap();
        assert!(!index.refresh_usage(&home).unwrap());
        used("two", &[2, 3]);
        assert!(index.refresh_usage(&home).unwrap());
        let updated = answers(&index);
        assert_eq!((updated.len(), updated[&id(2)][0].1.used), (3, 2));
        drop(index);
        let rebuilt = Index::rebuild(&home, &notes, TIMEOUT).unwrap();
        assert_eq!(answers(&rebuilt), updated);
    }
}
