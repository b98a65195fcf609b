//! Usage counts of notes, from the receipts of all machines.
//!
//! Counts are whole numbers by month and decay when they are read, so the answer for a time depends
//! only on the receipts and that time. The tables are refilled when a file of receipts changed, which
//! takes about ten milliseconds: a month's lines are compacted soon after its end.

use std::collections::{BTreeMap, HashMap};

use anamnesis_note::{
    id::NoteId,
    usage_log::{Counts, Fold, Month, NoteCounts},
};
use chrono::{DateTime, Utc};
use rusqlite::{Connection, params};

use super::{Error, Index, Part, refresh::next_generation};
use crate::{fs::home::Home, journal::Journal, sqlite, usage_log::Receipts};

const SCHEMA: &str = "
CREATE TABLE usage (
  note TEXT NOT NULL, month INTEGER NOT NULL, used INTEGER NOT NULL, hinted INTEGER NOT NULL,
  sessions INTEGER NOT NULL, shown INTEGER NOT NULL, unused INTEGER NOT NULL, good INTEGER NOT NULL,
  bad INTEGER NOT NULL, last INTEGER, verified INTEGER,
  PRIMARY KEY (note, month)
) STRICT, WITHOUT ROWID;
CREATE TABLE used_together (
  note TEXT NOT NULL, other TEXT NOT NULL, month INTEGER NOT NULL, sessions INTEGER NOT NULL,
  PRIMARY KEY (note, other, month)
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions_of_month (month INTEGER PRIMARY KEY, sessions INTEGER NOT NULL) STRICT;
";

pub(super) const PART: Part = Part {
    schema: SCHEMA,
    objects: &["sessions_of_month", "usage", "used_together"],
    // The tables do not depend on the note itself and may name notes that arrive later.
    insert: |_, _, _| Ok(()),
    remove: |_, _| Ok(()),
};

/// The `meta` key of the state of the receipts that filled the tables.
const STAMP: &str = "receipts";

/// The maximum number of notes used together with one. With more, each is worth nothing.
const MAX_TOGETHER: i64 = 4096;

/// Counts of one kind, by the middle of their month.
pub type ByMonth<T> = Vec<(DateTime<Utc>, T)>;

impl Index {
    /// Refills the tables if the receipts changed. Returns whether they did.
    pub fn take_up_usage(&mut self, home: &Home) -> Result<bool, Error> {
        let receipts = Receipts::new(home.clone());
        // Unreadable receipts count as unchanged.
        let Ok(journal) = Journal::open_to_read(home, std::time::Duration::from_millis(100)) else {
            return Ok(false);
        };
        let kept = |journal: &Journal| journal.kept_stamp();
        let Ok(kept) = journal.as_ref().map(kept).transpose() else {
            return Ok(false);
        };
        // Taken before reading, so that receipts that arrive meanwhile are read the next time.
        let stamp = format!("{} {}", receipts.stamp(), kept.unwrap_or_default());
        let known = sqlite::meta(&self.connection, STAMP)?;
        if known.as_ref() == Some(&stamp) {
            return Ok(false);
        }
        let (mut fold, _) = receipts.read_all();
        let kept = journal.and_then(|journal| journal.kept_receipts().ok());
        for kept in kept.into_iter().flatten() {
            fold.keep(kept);
        }
        let transaction = self.connection.unchecked_transaction()?;
        fill(&transaction, &fold)?;
        sqlite::set_meta(&transaction, STAMP, &stamp)?;
        transaction.commit()?;
        Ok(true)
    }

    /// Returns the usage of these notes; empty for notes without receipts.
    pub fn usage_of(
        &self,
        notes: impl IntoIterator<Item = NoteId>,
    ) -> Result<HashMap<NoteId, ByMonth<NoteCounts>>, Error> {
        let mut statement = self.connection.prepare_cached(
            "SELECT month, used, hinted, sessions, shown, unused, good, bad, last, verified
             FROM usage WHERE note = ? ORDER BY month",
        )?;
        let mut all = HashMap::new();
        for note in notes {
            let rows = statement.query_map([note.to_string()], |row| {
                let number = |column| -> rusqlite::Result<u64> {
                    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
                };
                let time = |column| -> rusqlite::Result<Option<DateTime<Utc>>> {
                    Ok(row.get::<_, Option<i64>>(column)?.map(time))
                };
                let counts = NoteCounts {
                    used: number("used")?,
                    hinted: number("hinted")?,
                    sessions: number("sessions")?,
                    shown: number("shown")?,
                    unused: number("unused")?,
                    good: number("good")?,
                    bad: number("bad")?,
                    last: time("last")?,
                    verified: time("verified")?,
                };
                Ok((self::time(row.get("month")?), counts))
            })?;
            let months: ByMonth<NoteCounts> = rows.collect::<Result<_, _>>()?;
            if !months.is_empty() {
                all.insert(note, months);
            }
        }
        Ok(all)
    }

    /// Returns how many notes were injected and how many of them used, each once per session, by the
    /// middle of their month. Other machines tell only of notes that were used.
    pub fn usage_by_month(&self) -> Result<ByMonth<(usize, usize)>, Error> {
        let mut statement = self.connection.prepare(
            "SELECT month, sum(max(shown, sessions)), sum(sessions) FROM usage GROUP BY month ORDER BY month",
        )?;
        let rows = statement.query_map([], |row| {
            let number = |column| -> rusqlite::Result<usize> {
                Ok(usize::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
            };
            Ok((self::time(row.get(0)?), (number(1)?, number(2)?)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the notes that receipts name, in order.
    pub fn notes_with_usage(&self) -> Result<Vec<NoteId>, Error> {
        let sql = "SELECT DISTINCT note FROM usage ORDER BY note";
        Ok(sqlite::note_ids(&self.connection, sql, [])?)
    }

    /// Returns the notes that were used together with one, each with the number of sessions.
    pub fn used_together(&self, note: NoteId) -> Result<BTreeMap<NoteId, ByMonth<u64>>, Error> {
        let mut statement = self.connection.prepare_cached(
            "SELECT other, month, sessions FROM used_together WHERE note = ? ORDER BY other, month LIMIT ?",
        )?;
        let mut rows = statement.query(params![note.to_string(), MAX_TOGETHER])?;
        let mut together: BTreeMap<NoteId, ByMonth<u64>> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let Ok(other) = row.get::<_, String>("other")?.parse() else {
                continue;
            };
            let sessions = u64::try_from(row.get::<_, i64>("sessions")?).unwrap_or(0);
            let month = time(row.get("month")?);
            together.entry(other).or_default().push((month, sessions));
        }
        Ok(together)
    }

    /// Returns the number of sessions on all machines.
    pub fn sessions_by_month(&self) -> Result<ByMonth<u64>, Error> {
        Ok(self
            .connection
            .prepare_cached("SELECT month, sessions FROM sessions_of_month ORDER BY month")?
            .query_map([], |row| {
                let sessions = u64::try_from(row.get::<_, i64>("sessions")?).unwrap_or(0);
                Ok((time(row.get("month")?), sessions))
            })?
            .collect::<Result<_, _>>()?)
    }
}

fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

fn fill(connection: &Connection, fold: &Fold) -> rusqlite::Result<()> {
    for table in ["usage", "used_together", "sessions_of_month"] {
        connection.execute(&format!("DELETE FROM {table}"), [])?;
    }
    for (month, counts) in fold.months() {
        fill_month(connection, month, &counts)?;
    }
    next_generation(connection)
}

fn fill_month(connection: &Connection, month: Month, counts: &Counts) -> rusqlite::Result<()> {
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let month = month.middle().timestamp_millis();
    let mut usage =
        connection.prepare_cached("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
    for (note, counts) in &counts.notes {
        usage.execute(params![
            note.to_string(),
            month,
            number(counts.used),
            number(counts.hinted),
            number(counts.sessions),
            number(counts.shown),
            number(counts.unused),
            number(counts.good),
            number(counts.bad),
            counts.last.map(|time| time.timestamp_millis()),
            counts.verified.map(|time| time.timestamp_millis()),
        ])?;
    }
    let mut together =
        connection.prepare_cached("INSERT INTO used_together VALUES (?, ?, ?, ?)")?;
    for ((one, other), counts) in &counts.pairs {
        for (note, other) in [(one, other), (other, one)] {
            let (note, other) = (note.to_string(), other.to_string());
            together.execute(params![note, other, month, number(counts.sessions)])?;
        }
    }
    let sessions = counts.sessions.values();
    let sessions = sessions.fold(0_u64, |sum, sessions| sum.saturating_add(*sessions));
    if sessions > 0 {
        connection
            .prepare_cached("INSERT INTO sessions_of_month VALUES (?, ?)")?
            .execute(params![month, number(sessions)])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, time::Duration};

    use anamnesis_note::{
        note::Scope,
        usage_log::{PortableId, Receipt, Usage, Weight},
    };
    use anamnesis_testkit::assert_linear;

    use super::*;
    use crate::notes::Notes;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    fn note(number: u64) -> NoteId {
        NoteId::of_session(&number.to_string())
    }

    struct Store {
        _folder: tempfile::TempDir,
        home: Home,
        notes: Notes,
        journal: Journal,
        receipts: Receipts,
    }

    impl Store {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::new(folder.path().join("store"));
            home.create().unwrap();
            Self {
                notes: Notes::new(home.clone(), PATIENCE),
                journal: Journal::open(&home, PATIENCE).unwrap(),
                receipts: Receipts::new(home.clone()),
                home,
                _folder: folder,
            }
        }

        fn tell(&self, session: &str, usage: &Usage) {
            let mark = self.receipts.session_mark(&self.journal, session).unwrap();
            let (told, _) = usage.part(Some(mark), None, now(), |_| Some(Scope::Portable));
            self.append(&told);
        }

        fn append(&self, receipt: &Receipt) {
            self.receipts
                .append(&self.journal, "laptop", receipt, PATIENCE)
                .unwrap();
        }

        fn index(&self) -> Index {
            Index::in_step(&self.home, &self.notes, PATIENCE).unwrap()
        }
    }

    type Answers = (
        Vec<(NoteId, ByMonth<NoteCounts>)>,
        Vec<BTreeMap<NoteId, ByMonth<u64>>>,
        ByMonth<u64>,
    );

    fn answers(index: &Index) -> Answers {
        let notes = index.notes_with_usage().unwrap();
        let mut usage = index.usage_of(notes.iter().copied()).unwrap();
        (
            notes
                .iter()
                .map(|note| (*note, usage.remove(note).unwrap()))
                .collect(),
            notes
                .iter()
                .map(|note| index.used_together(*note).unwrap())
                .collect(),
            index.sessions_by_month().unwrap(),
        )
    }

    fn used(notes: &[u64]) -> Usage {
        Usage {
            shown: notes.iter().map(|number| note(*number)).collect(),
            used: notes
                .iter()
                .map(|number| ((1, note(*number)), Weight::Explicit))
                .collect(),
            ..Usage::default()
        }
    }

    #[test]
    fn an_index_that_was_kept_in_step_and_one_built_anew_say_the_same() {
        let store = Store::new();
        assert_eq!(answers(&store.index()).0, []);
        store.tell("s1", &used(&[1, 2]));
        let (usage, together, sessions) = answers(&store.index());
        assert_eq!((usage.len(), sessions[0].1), (2, 1));
        assert_eq!(usage[0].1[0].1.used, 1);
        assert!(together[0].contains_key(&usage[1].0) && together[1].contains_key(&usage[0].0));
        store.tell("s2", &used(&[2, 3]));
        let (_, kept) = used(&[4]).part(None, None, now(), |_| None);
        let nothing = Receipt::new(now());
        store.journal.keep_receipts(None, &nothing, &kept).unwrap();
        let in_step = answers(&store.index());
        assert_eq!(in_step.0.len(), 4);
        let built = Index::rebuild(&store.home, &store.notes, PATIENCE).unwrap();
        assert_eq!(answers(&built), in_step);
    }

    #[test]
    fn nothing_is_written_where_nothing_changed() {
        let store = Store::new();
        store.tell("s", &used(&[1]));
        let mut index = store.index();
        assert!(!index.take_up_usage(&store.home).unwrap());
        store.append(&Receipt::new(now()));
        assert!(index.take_up_usage(&store.home).unwrap());
        drop(index);
        std::fs::remove_dir_all(store.home.receipts()).unwrap();
        assert_eq!(answers(&store.index()).0, []);
    }

    #[test]
    fn a_note_that_is_not_here_yet_has_its_counts_when_it_comes() {
        let store = Store::new();
        store.tell("s", &used(&[1]));
        let id = PortableId::new(note(1), Scope::Portable).unwrap().id();
        assert!(store.index().usage_of([id]).unwrap().contains_key(&id));
    }

    #[test]
    fn the_work_grows_with_the_number_of_receipts() {
        let with = |count| {
            let store = Store::new();
            let lines: String = (0..count)
                .flat_map(|number| {
                    let usage = used(&[number % 300, number % 299, number % 7]);
                    let (told, _) = usage.part(None, None, now(), |_| Some(Scope::Portable));
                    told.to_lines()
                })
                .collect();
            store.append(&Receipt::new(now()));
            let folder = store
                .receipts
                .own_folders(&store.journal)
                .unwrap()
                .remove(0);
            let file = store.home.receipts().join(folder).join("2026-03.jsonl");
            std::fs::write(file, lines).unwrap();
            let index = Index::open_to_write(&store.home, &store.notes, PATIENCE).unwrap();
            (store, RefCell::new(index))
        };
        let read = |(store, index): &(Store, RefCell<Index>)| {
            let mut index = index.borrow_mut();
            index
                .connection
                .execute("DELETE FROM meta WHERE key = ?", [STAMP])
                .unwrap();
            assert!(index.take_up_usage(&store.home).unwrap());
        };
        let (small, large) = (with(250), with(4000));
        assert_linear("receipts", || read(&small), || read(&large));
    }
}
