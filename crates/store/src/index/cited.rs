//! The files that notes cite. Two notes that cite the same file are related.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    citation::{CitationKind, citations},
    id::NoteId,
    note::Note,
};
use rusqlite::{Connection, params};

use super::{Error, Index, Tables};
use crate::sqlite::{Json, Queries};

const SCHEMA: &str = "
CREATE TABLE cited (
  project TEXT NOT NULL, path TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (project, path, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX cited_number ON cited (number);
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert: |_, _, _| Ok(()),
    remove: &["DELETE FROM cited WHERE number = ?"],
};

/// Notes of a project that cite one of these paths, those of sessions last, one more than the limit.
const CITING: &str = "SELECT DISTINCT note.id, note.type = 'episodic' AS of_session FROM cited JOIN note USING (number)
  WHERE cited.project = ? AND cited.path IN (SELECT value FROM json_each(?)) ORDER BY of_session LIMIT ?";

/// Returns the paths that a note cites; absolute ones without the slash.
pub(super) fn paths(note: &Note) -> Vec<String> {
    let text = format!("{}\n\n{}", note.title, note.body);
    let citations = citations(&text, Some("/")).into_iter();
    citations
        .filter(|citation| citation.kind == CitationKind::Path)
        .map(|citation| citation.text)
        .collect()
}

/// Adds the paths that a note of a project cites.
pub(super) fn insert(
    connection: &Connection,
    number: i64,
    project: &str,
    paths: &[String],
) -> rusqlite::Result<()> {
    for path in paths {
        let sql = "INSERT INTO cited VALUES (?, ?, ?)";
        connection.run(sql, params![project, path, number])?;
    }
    Ok(())
}

impl Index {
    /// Returns the notes of a project that cite a file by one of these exact paths. Notes of sessions list
    /// each file that was changed, so they count only where no other note cites it. More than `limit` notes
    /// are none, because a file that everybody cites says nothing.
    pub fn notes_citing(
        &self,
        project: &str,
        paths: &[String],
        limit: usize,
    ) -> Result<Vec<NoteId>, Error> {
        let limit_or_more = super::bound(limit.saturating_add(1));
        let found: Vec<(String, bool)> =
            self.tuples(CITING, params![project, Json(paths), limit_or_more])?;
        let of_sessions = found.first().is_some_and(|(_, of_session)| *of_session);
        let notes = found
            .iter()
            .filter(|(_, of_session)| *of_session == of_sessions);
        let notes: BTreeSet<NoteId> = notes.flat_map(|(id, _)| id.parse()).collect();
        let is_few = notes.len() <= limit;
        Ok(notes.into_iter().filter(|_| is_few).collect())
    }

    /// Returns the paths that these notes cite, sorted. Notes without citations are left out.
    pub fn cited_by(&self, notes: &[NoteId]) -> Result<BTreeMap<NoteId, Vec<String>>, Error> {
        let mut cited: BTreeMap<NoteId, Vec<String>> = BTreeMap::new();
        let sql = "SELECT note.id, cited.path FROM note JOIN cited USING (number)
          WHERE note.id IN (SELECT value FROM json_each(?)) ORDER BY note.id, cited.path";
        for (id, path) in self.tuples::<(String, _), Vec<_>>(sql, [Json(notes)])? {
            if let Ok(id) = id.parse() {
                cited.entry(id).or_default().push(path);
            }
        }
        Ok(cited)
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::NoteType;
    use chrono::DateTime;

    use super::*;
    use crate::{fs::home::Home, notes::Notes};

    #[test]
    fn files_join_the_notes_of_a_project() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let timeout = std::time::Duration::from_secs(5);
        let notes = Notes::new(home.clone(), timeout);
        let add = |second: i64, project: &str, title: &str, body: &str| {
            let now = DateTime::from_timestamp(1_780_000_000 + second, 0).unwrap();
            let note_type = if title == "Session" {
                NoteType::Episodic
            } else {
                NoteType::Semantic
            };
            let mut note = Note::new(NoteId::generate(now), note_type, now);
            (note.title, note.body) = (title.to_owned(), body.to_owned());
            note.project = project.to_owned();
            let lock = notes.lock().unwrap();
            notes.create(&lock, &note).unwrap().path
        };
        let body = "See `src/a.rs:3`, src/a.rs and `open_it`.";
        let one = add(3, "shop", "One", body);
        let two = add(2, "shop", "Limits live in src/a.rs", "and src/b.rs");
        add(1, "till", "Three", body);
        // Sessions list what they changed, which hides no other note.
        let session = add(4, "shop", "Session", "**Files:** src/a.rs, src/c.rs");
        add(5, "shop", "Session", "**Files:** src/a.rs");
        let mut index = Index::in_step(&home, &notes, timeout).unwrap();
        let citing = |index: &Index, path: &str, limit| {
            let paths = [path, "no/such.rs"].map(str::to_owned);
            index.notes_citing("shop", &paths, limit).unwrap()
        };
        assert_eq!(citing(&index, "src/a.rs", 2), [two.id, one.id]);
        assert_eq!(citing(&index, "src/a.rs", 1), []);
        assert_eq!(citing(&index, "a.rs", 9), []);
        assert_eq!(citing(&index, "src/c.rs", 1), [session.id]);
        let cited = index.cited_by(&[one.id, two.id]).unwrap();
        assert_eq!(cited[&one.id], ["src/a.rs"]);
        assert_eq!(cited[&two.id], ["src/a.rs", "src/b.rs"]);
        let lock = notes.lock().unwrap();
        notes.remove(&lock, two).unwrap();
        index.refresh(&notes).unwrap();
        assert_eq!(citing(&index, "src/a.rs", 1), [one.id]);
        assert_eq!(index.cited_by(&[two.id]).unwrap(), BTreeMap::new());
    }

    #[test]
    fn a_file_is_found_without_walking_all() {
        let index = Index::in_memory([]).unwrap();
        let plan: Vec<String> = index
            .connection
            .prepare(&format!("EXPLAIN QUERY PLAN {CITING}"))
            .unwrap()
            .query_map(["", "", ""], |row| row.get("detail"))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let by_key = "SEARCH cited USING PRIMARY KEY (project=? AND path=?)";
        assert!(plan.iter().any(|step| step == by_key), "{plan:?}");
    }
}
