//! The citations of notes and whether the cited things still exist. [`crate::citation`] checks them;
//! ranking and display read them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{citation::CitationKind, id::NoteId};
use rusqlite::{Row, params};

use super::{Error, Journal};
use crate::sqlite::{Json, Queries, read_row};

/// Notes that cite something that is gone. The latest disappearance first; those of one check by name.
const STALE: &str = "SELECT note, text || ' is gone', gone_at FROM seen_citation
  WHERE note IN (SELECT value FROM json_each(?)) AND gone_at IS NOT NULL
  ORDER BY note, gone_at DESC, kind, text";

/// A cited thing that a check saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenCitation {
    /// The kind of the cited thing.
    pub(crate) kind: CitationKind,
    /// The cited thing.
    pub(crate) text: String,
    /// When it was last seen, milliseconds since 1970.
    pub(crate) seen_at: i64,
    /// When it was first missing, milliseconds since 1970; none while it exists.
    pub(crate) gone_at: Option<i64>,
    /// The place that was searched, outside of a repository.
    pub(crate) place: String,
}

/// Why a note may be outdated: something that it cites is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// The citation that disappeared last: `middleware/limit.rs is gone`. One plain line.
    pub reason: String,
    /// When it was missed, milliseconds since 1970. Whoever wrote or verified the note later knew.
    pub gone_at: i64,
}

impl Journal {
    /// Returns the notes that cite something that is gone. One index lookup each, so hooks can call
    /// it.
    pub fn stale(&self, notes: &[NoteId]) -> Result<BTreeMap<NoteId, Stale>, Error> {
        let mut stale = BTreeMap::new();
        let rows: Vec<(String, String, i64)> = self.tuples(STALE, [Json(notes)])?;
        for (id, reason, gone_at) in rows {
            if let Ok(id) = id.parse() {
                stale.entry(id).or_insert(Stale { reason, gone_at });
            }
        }
        Ok(stale)
    }

    /// Returns the notes that cite something that is gone, in order.
    pub fn citing_gone(&self) -> Result<Vec<NoteId>, Error> {
        let sql = "SELECT DISTINCT note FROM seen_citation WHERE gone_at IS NOT NULL ORDER BY note";
        self.note_ids(sql, [])
    }

    /// Returns when the notes of each project were last checked, milliseconds since 1970.
    pub(crate) fn reference_looks(
        &self,
        projects: &[String],
    ) -> Result<HashMap<NoteId, i64>, Error> {
        let sql = "SELECT note, seen_at FROM seen_citation
          WHERE kind = '' AND project IN (SELECT value FROM json_each(?))";
        let rows: Vec<(String, i64)> = self.tuples(sql, [Json(projects)])?;
        let looks = rows.into_iter();
        Ok(looks
            .filter_map(|(note, at)| Some((note.parse().ok()?, at)))
            .collect())
    }

    /// Returns the citations of a note.
    pub(crate) fn references_of(&self, note: NoteId) -> Result<Vec<SeenCitation>, Error> {
        let known = self.connection.rows::<_, Vec<_>>(
            "SELECT kind, text, seen_at, gone_at, place FROM seen_citation WHERE note = ?",
            [note.to_string()],
            known_of,
        )?;
        // An invalid row is left out, so it is checked again.
        Ok(known.into_iter().flatten().collect())
    }

    /// Replaces the citations of a note.
    pub(crate) fn keep_references(
        &self,
        note: NoteId,
        project: &str,
        references: &[SeenCitation],
        now: i64,
    ) -> Result<(), Error> {
        let note = note.to_string();
        self.run("DELETE FROM seen_citation WHERE note = ?", [&note])?;
        for known in references {
            self.run(
                "INSERT INTO seen_citation VALUES (?, ?, ?, ?, ?, ?, ?)",
                params![
                    note,
                    known.kind.as_str(),
                    known.text,
                    project,
                    known.seen_at,
                    known.gone_at,
                    known.place,
                ],
            )?;
        }
        // A row without a kind says when the note was checked.
        self.run(
            "INSERT INTO seen_citation VALUES (?1, '', '', ?2, ?3, NULL, '')",
            params![note, project, now],
        )
    }

    /// Deletes the citations of notes.
    pub(crate) fn drop_references(&self, notes: &BTreeSet<NoteId>) -> Result<(), Error> {
        for note in notes {
            self.run(
                "DELETE FROM seen_citation WHERE note = ?",
                [note.to_string()],
            )?;
        }
        Ok(())
    }
}

fn known_of(row: &Row<'_>) -> rusqlite::Result<Option<SeenCitation>> {
    let Ok(kind) = row.get::<_, String>("kind")?.parse::<CitationKind>() else {
        return Ok(None);
    };
    read_row!(row, SeenCitation: text, seen_at, gone_at, place; kind = kind).map(Some)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;

    use super::*;
    use crate::fs::home::Home;

    fn known(text: &str, gone_at: Option<i64>) -> SeenCitation {
        SeenCitation {
            kind: CitationKind::Path,
            text: text.to_owned(),
            seen_at: 1,
            gone_at,
            place: String::new(),
        }
    }

    #[test]
    fn what_went_last_is_the_reason() {
        // INJ-11
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        home.create().unwrap();
        let journal = Journal::open(&home, Duration::from_secs(5)).unwrap();
        let ids: Vec<NoteId> = (0..3)
            .map(|n| NoteId::generate(DateTime::from_timestamp_millis(1_000 + n).unwrap()))
            .collect();
        let references = [
            known("a.rs", Some(10)),
            known("c.rs", Some(20)),
            known("b.rs", Some(20)),
            known("d.rs", None),
        ];
        journal
            .keep_references(ids[0], "shop", &references, 1)
            .unwrap();
        journal
            .keep_references(ids[1], "shop", &references[3..], 2)
            .unwrap();
        journal
            .keep_references(ids[2], "till", &references[..1], 3)
            .unwrap();
        let stale = journal.stale(&ids).unwrap();
        let first = Stale {
            reason: "b.rs is gone".to_owned(),
            gone_at: 20,
        };
        assert_eq!(stale.keys().collect::<Vec<_>>(), [&ids[0], &ids[2]]);
        assert_eq!(stale[&ids[0]], first);
        assert_eq!(journal.stale(&[]).unwrap(), BTreeMap::new());
        let shop = ["shop".to_owned()];
        assert_eq!(
            journal.stale(&ids[..2]).unwrap(),
            BTreeMap::from([(ids[0], first)])
        );
        assert_eq!(
            journal.reference_looks(&shop).unwrap(),
            HashMap::from([(ids[0], 1), (ids[1], 2)])
        );
        journal.drop_references(&BTreeSet::from([ids[0]])).unwrap();
        assert_eq!(journal.stale(&ids).unwrap().len(), 1);
        assert_eq!(journal.references_of(ids[1]).unwrap(), references[3..]);
    }

    #[test]
    fn a_hook_asks_by_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        home.create().unwrap();
        let journal = Journal::open(&home, Duration::from_secs(5)).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {STALE}");
        let plan = journal
            .connection
            .query_row(&sql, [""], |row| row.get("detail"));
        let plan: String = plan.unwrap();
        assert_eq!(plan, "SEARCH seen_citation USING PRIMARY KEY (note=?)");
    }
}
