//! The citations of notes and whether the cited things still exist. [`crate::citation`] checks them;
//! ranking and display read them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{citation::CitationKind, id::NoteId};
use rusqlite::{Row, params, params_from_iter};

use super::{Error, Journal};
use crate::sqlite;

/// The number of notes in one query.
const ASKED_AT_ONCE: usize = 200;

/// Whether a cited thing exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It exists.
    Present,
    /// It existed and is gone.
    Gone,
    /// It was never seen.
    Unknown,
}

impl State {
    const ALL: [Self; 3] = [Self::Present, Self::Gone, Self::Unknown];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// The state of one citation of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CitationState {
    /// The kind of the cited thing.
    pub(crate) kind: CitationKind,
    /// The cited thing.
    pub(crate) text: String,
    /// Whether it exists.
    pub(crate) state: State,
    /// When it was last seen, milliseconds since 1970.
    pub(crate) seen_at: Option<i64>,
    /// When it disappeared, milliseconds since 1970.
    pub(crate) gone_at: Option<i64>,
    /// How it disappeared.
    pub(crate) reason: Option<String>,
    /// Where it was looked for, outside of a repository.
    pub(crate) place: String,
}

/// Why a note may be outdated: something that it cites is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// What disappeared last, and how: `middleware/limit.rs is gone since a1b2c3d`. One plain line.
    pub reason: String,
    /// When it disappeared, milliseconds since 1970. Whoever wrote or verified the note later knew.
    pub gone_at: i64,
    /// The number of cited things that are gone.
    pub gone: usize,
    /// The number of cited things that exist.
    pub present: usize,
}

impl Journal {
    /// Returns the notes that cite something that is gone. One index lookup each, so hooks can call
    /// it.
    pub fn stale(&self, notes: &[NoteId]) -> Result<BTreeMap<NoteId, Stale>, Error> {
        let mut stale = BTreeMap::new();
        for asked in notes.chunks(ASKED_AT_ONCE) {
            self.add_stale(asked, &mut stale)?;
        }
        Ok(stale)
    }

    /// Returns the notes that cite something that is gone, in order.
    pub fn citing_gone(&self) -> Result<Vec<NoteId>, Error> {
        let sql = "SELECT DISTINCT note FROM reference WHERE state = 'gone' ORDER BY note";
        Ok(sqlite::note_ids(&self.connection, sql, [])?)
    }

    fn add_stale(
        &self,
        notes: &[NoteId],
        stale: &mut BTreeMap<NoteId, Stale>,
    ) -> Result<(), Error> {
        let places = vec!["?"; notes.len()].join(", ");
        // The latest disappearance first; those of one commit by name.
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT note, reason, gone_at FROM reference WHERE note IN ({places})
               AND state <> 'unknown'
             ORDER BY note, gone_at DESC, kind, text"
        ))?;
        let mut rows = statement.query(params_from_iter(notes.iter().map(NoteId::to_string)))?;
        let mut present: BTreeMap<NoteId, usize> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let id: String = row.get(0)?;
            let Ok(id) = id.parse::<NoteId>() else {
                continue;
            };
            let (reason, gone_at): (Option<String>, Option<i64>) = (row.get(1)?, row.get(2)?);
            match reason.zip(gone_at) {
                None => *present.entry(id).or_default() += 1,
                Some((reason, gone_at)) => {
                    let found = stale.entry(id).or_insert(Stale {
                        reason,
                        gone_at,
                        gone: 0,
                        present: 0,
                    });
                    found.gone += 1;
                }
            }
        }
        for (id, count) in present {
            if let Some(stale) = stale.get_mut(&id) {
                stale.present = count;
            }
        }
        Ok(())
    }

    /// Returns when the notes of each project were last checked, milliseconds since 1970.
    pub(crate) fn reference_looks(
        &self,
        projects: &[String],
    ) -> Result<HashMap<NoteId, i64>, Error> {
        let places = vec!["?"; projects.len()].join(", ");
        let rows: Vec<(String, i64)> = self
            .connection
            .prepare(&format!(
                "SELECT note, at FROM reference_look WHERE project IN ({places})"
            ))?
            .query_map(params_from_iter(projects), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<Result<_, _>>()?;
        let looks = rows.into_iter();
        Ok(looks
            .filter_map(|(note, at)| Some((note.parse().ok()?, at)))
            .collect())
    }

    /// Returns the citations of a note.
    pub(crate) fn references_of(&self, note: NoteId) -> Result<Vec<CitationState>, Error> {
        let known = self
            .connection
            .prepare_cached(
                "SELECT kind, text, state, seen_at, gone_at, reason, place FROM reference WHERE note = ?",
            )?
            .query_map([note.to_string()], known_of)?
            .collect::<Result<Vec<_>, _>>()?;
        // An invalid row is left out, so it is checked again.
        Ok(known.into_iter().flatten().collect())
    }

    /// Replaces the citations of a note.
    pub(crate) fn keep_references(
        &self,
        note: NoteId,
        project: &str,
        references: &[CitationState],
        now: i64,
    ) -> Result<(), Error> {
        let note = note.to_string();
        self.connection
            .prepare_cached("DELETE FROM reference WHERE note = ?")?
            .execute([&note])?;
        for known in references {
            self.connection
                .prepare_cached("INSERT INTO reference VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?
                .execute(params![
                    note,
                    known.kind.as_str(),
                    known.text,
                    project,
                    known.state.as_str(),
                    known.seen_at,
                    known.gone_at,
                    known.reason,
                    known.place,
                ])?;
        }
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO reference_look VALUES (?, ?, ?)")?
            .execute(params![note, project, now])?;
        Ok(())
    }

    /// Deletes the citations of notes.
    pub(crate) fn drop_references(&self, notes: &BTreeSet<NoteId>) -> Result<(), Error> {
        for table in ["reference", "reference_look"] {
            let mut statement = self
                .connection
                .prepare(&format!("DELETE FROM {table} WHERE note = ?"))?;
            for note in notes {
                statement.execute([note.to_string()])?;
            }
        }
        Ok(())
    }
}

fn known_of(row: &Row<'_>) -> rusqlite::Result<Option<CitationState>> {
    let (kind, state): (String, String) = (row.get(0)?, row.get(2)?);
    let (Some(kind), Some(state)) = (CitationKind::from_word(&kind), State::from_word(&state))
    else {
        return Ok(None);
    };
    Ok(Some(CitationState {
        kind,
        text: row.get(1)?,
        state,
        seen_at: row.get(3)?,
        gone_at: row.get(4)?,
        reason: row.get(5)?,
        place: row.get(6)?,
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;

    use super::*;
    use crate::fs::home::Home;

    fn known(text: &str, state: State, gone_at: Option<i64>) -> CitationState {
        CitationState {
            kind: CitationKind::Path,
            text: text.to_owned(),
            state,
            seen_at: None,
            gone_at,
            reason: gone_at.map(|_| format!("{text} is gone")),
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
            known("a.rs", State::Gone, Some(10)),
            known("c.rs", State::Gone, Some(20)),
            known("b.rs", State::Gone, Some(20)),
            known("d.rs", State::Present, None),
            known("e.rs", State::Unknown, None),
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
            gone: 3,
            present: 1,
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
        let plan: String = journal
            .connection
            .query_row(
                "EXPLAIN QUERY PLAN SELECT note, reason, gone_at FROM reference
                 WHERE note IN (?, ?) AND state <> 'unknown' ORDER BY note, gone_at DESC, kind, text",
                ["", ""],
                |row| row.get("detail"),
            )
            .unwrap();
        assert_eq!(plan, "SEARCH reference USING PRIMARY KEY (note=?)");
    }
}
