//! The rows of History, which take long to find and never change.

use std::{collections::HashMap, sync::Mutex};

use anamnesis_app::{
    Error,
    history::{self, Past},
};
use anamnesis_sync::history::NoteCommit;

use crate::guard::lock;

/// How many rows of History are kept, about half a kilobyte each.
const MAX_ROWS: usize = 5_000;

/// How many notes of a commit are kept.
const MAX_NOTES: usize = 20;

/// A commit as History lists it.
#[derive(Clone)]
pub(crate) struct HistoryRow {
    /// The commit, with its first notes: there may be a hundred thousand.
    pub(crate) event: NoteCommit,
    /// What it did.
    pub(crate) verb: String,
    /// How many notes it changed.
    pub(crate) counts: String,
    /// The title of its first note.
    pub(crate) title: String,
}

/// The rows that are kept while the viewer runs.
#[derive(Default)]
pub(crate) struct Kept {
    /// Commits by their id; `None` for those that changed no note.
    rows: Mutex<HashMap<String, Option<HistoryRow>>>,
}

impl Kept {
    /// Returns at least this many rows if there are so many, newest first, one for each session's note.
    pub(crate) fn rows(&self, past: &Past<'_>, wanted: usize) -> Result<Vec<HistoryRow>, Error> {
        let mut limit = wanted;
        loop {
            let commits = past.repository.commits(0, limit)?;
            let mut rows = self.rows_of(past, &commits)?;
            history::once_per_session(&mut rows, |row| &row.event);
            if rows.len() >= wanted || commits.len() < limit {
                return Ok(rows);
            }
            limit *= 2;
        }
    }

    /// Returns the rows of these commits. Folders are read for those that are not known.
    fn rows_of(&self, past: &Past<'_>, ids: &[String]) -> Result<Vec<HistoryRow>, Error> {
        let unknown: Vec<String> = {
            let mut rows = lock(&self.rows);
            if past.context.environment.is_agent {
                // The title of a note that was forgotten since is withheld from an agent.
                rows.clear();
            }
            let unknown = ids.iter().filter(|id| !rows.contains_key(*id));
            unknown.cloned().collect()
        };
        let described = past.repository.events_of(&unknown)?;
        let mut rows = lock(&self.rows);
        if rows.len() + unknown.len() > MAX_ROWS {
            rows.retain(|id, _| ids.contains(id));
        }
        rows.extend(unknown.into_iter().map(|id| (id, None)));
        for mut event in described {
            let row = HistoryRow {
                verb: history::shown_verb(&event),
                counts: history::counts(&event),
                title: past.title(&event),
                event: {
                    event.notes = event.notes.into_iter().take(MAX_NOTES).collect();
                    event
                },
            };
            rows.insert(row.event.commit.clone(), Some(row));
        }
        Ok(ids.iter().filter_map(|id| rows.get(id)?.clone()).collect())
    }
}
