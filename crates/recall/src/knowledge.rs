//! What the index and this machine's records know of notes, beside what the notes say themselves.

use std::collections::HashMap;

use anamnesis_note::{
    id::NoteId,
    link::{Edge, MAX_CITING, Relation, file_edges},
};
use anamnesis_store::{index::Index, journal::Journal};
use chrono::{DateTime, Utc};

use crate::{
    learned::learned_links,
    note_set::{Knowledge, Standing},
    stale::{is_news, looked_at, time},
};

/// More files of one note are not looked at.
const MAX_PATHS: usize = 8;

/// What index and records know of notes.
pub struct Known<'a> {
    /// The index.
    pub index: &'a Index,
    /// This machine's records, where there are some.
    pub journal: Option<&'a Journal>,
    /// Whether links follow from use.
    pub with_learned: bool,
    /// The time.
    pub now: DateTime<Utc>,
}

impl Knowledge for Known<'_> {
    // A fault here leaves a note as good as any other: what its words say still holds.
    fn standings(&self, ids: &[NoteId]) -> HashMap<NoteId, Standing> {
        let usage = self.index.usage_of(ids.iter().copied()).unwrap_or_default();
        let nothing = Vec::new();
        let now = self.now;
        ids.iter()
            .filter_map(|id| {
                let entry = self.index.get(*id).ok()??;
                let months = usage.get(id).unwrap_or(&nothing);
                Some((*id, Standing::of(&entry, months, now)))
            })
            .collect()
    }

    fn stale(&self, ids: &[NoteId]) -> HashMap<NoteId, String> {
        let stale = self.journal.and_then(|journal| journal.stale(ids).ok());
        let mut stale = stale.unwrap_or_default();
        let usage = self.index.usage_of(stale.keys().copied());
        let (usage, nothing) = (usage.unwrap_or_default(), Vec::new());
        stale.retain(|id, stale| {
            let entry = self.index.get(*id).ok().flatten();
            let months = usage.get(id).unwrap_or(&nothing);
            entry.is_some_and(|entry| is_news(time(stale.gone_at), looked_at(&entry, months)))
        });
        let stale = stale.into_iter();
        stale.map(|(id, stale)| (id, stale.reason)).collect()
    }

    fn links(&self, ids: &[NoteId]) -> Vec<Edge> {
        let mut edges = Vec::new();
        let now = self.now;
        if self.with_learned {
            for id in ids {
                let learned = learned_links(self.index, *id, now).unwrap_or_default();
                edges.extend(learned.into_iter().map(|(other, weight)| Edge {
                    from: *id,
                    to: other,
                    relation: Relation::Learned,
                    weight: Some(weight),
                }));
            }
        }
        for (id, paths) in self.index.cited_by(ids).unwrap_or_default() {
            let Ok(Some(entry)) = self.index.get(id) else {
                continue;
            };
            for path in paths.iter().take(MAX_PATHS) {
                edges.extend(self.of_file(id, &entry.project, path));
            }
        }
        edges
    }
}

impl Known<'_> {
    /// Links to the other notes of its project that cite a file.
    fn of_file(&self, id: NoteId, project: &str, path: &str) -> Vec<Edge> {
        let citing = self.index.notes_citing(project, path, MAX_CITING);
        let mut edges = file_edges(&citing.unwrap_or_default());
        edges.retain(|edge| edge.from == id || edge.to == id);
        edges
    }
}
