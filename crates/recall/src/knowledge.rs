//! Reads what the index and this machine's journal know about notes beyond their text.

use std::collections::HashMap;

use anamnesis_note::{
    id::NoteId,
    link::{Edge, MAX_CITING, file_edges},
};
use anamnesis_store::{
    index::{ByMonth, Entry, Error, Index},
    journal::{Journal, NoteCounts},
};
use chrono::{DateTime, Utc};

use crate::{
    correction::remarks_on,
    freshness::freshness,
    stale::{is_news, looked_at, time},
    usefulness::{DecayedCounts, is_benched, last_used, usefulness},
};

/// A note's usage history, as ranking uses it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoteStanding {
    /// How often it helped when it was shown, from 0 to 1; ½ if nothing is known.
    pub usefulness: f64,
    /// How recently it was used, verified or changed, from 0 to 1.
    pub freshness: f64,
    /// Whether it was shown often and never used, and so needs a better match.
    pub is_benched: bool,
}

impl Default for NoteStanding {
    fn default() -> Self {
        Self {
            usefulness: 0.5,
            freshness: 1.0,
            is_benched: false,
        }
    }
}

impl NoteStanding {
    /// Computes a note's standing from its monthly usage counts.
    pub fn from_usage(entry: &Entry, months: &ByMonth<NoteCounts>, now: DateTime<Utc>) -> Self {
        let faded = DecayedCounts::new(months, now);
        let last = last_used(months).max(looked_at(entry, now));
        let since = last.unwrap_or(DateTime::UNIX_EPOCH);
        Self {
            usefulness: usefulness(&faded, entry.rating),
            freshness: freshness(entry.kind, entry.pinned, since, faded.sessions, now),
            is_benched: is_benched(months, entry),
        }
    }
}

/// The maximum number of cited files of a note that are looked up.
const MAX_PATHS: usize = 8;

/// Reads usage, staleness and derived links from the index and the journal.
pub struct StoreKnowledge<'a> {
    /// The index.
    pub index: &'a Index,
    /// This machine's journal, if there is one.
    pub journal: Option<&'a Journal>,
    /// The current time.
    pub now: DateTime<Utc>,
}

impl StoreKnowledge<'_> {
    /// Returns the standing of each note. A note without history is missing.
    // If the index cannot be read, notes are ranked without history: their text still matches.
    pub fn standings(&self, ids: &[NoteId]) -> HashMap<NoteId, NoteStanding> {
        let usage = self.index.usage_of(ids.iter().copied()).unwrap_or_default();
        let nothing = Vec::new();
        let now = self.now;
        ids.iter()
            .filter_map(|id| {
                let entry = self.index.get(*id).ok()??;
                let months = usage.get(id).unwrap_or(&nothing);
                Some((*id, NoteStanding::from_usage(&entry, months, now)))
            })
            .collect()
    }

    /// Returns those notes that cite something that no longer exists, with the remark about it.
    pub fn stale(&self, ids: &[NoteId]) -> HashMap<NoteId, String> {
        let stale = self.journal.and_then(|journal| journal.stale(ids).ok());
        let mut stale = stale.unwrap_or_default();
        stale.retain(|id, stale| {
            let entry = self.index.get(*id).ok().flatten();
            entry.is_some_and(|entry| is_news(time(stale.gone_at), looked_at(&entry, self.now)))
        });
        let stale = stale.into_iter();
        stale
            .map(|(id, stale)| (id, format!("stale: {}", stale.reason)))
            .collect()
    }

    /// Returns the remarks about a note that only a pointer leads to: what changed it since, and what it
    /// cites and is gone.
    pub fn remarks(&self, id: NoteId) -> Result<Vec<String>, Error> {
        let mut remarks = remarks_on(self.index, id, self.now, NoteId::short)?;
        remarks.extend(self.stale(&[id]).remove(&id));
        Ok(remarks)
    }

    /// Returns derived links of these notes: to notes that cite the same file.
    pub fn links(&self, ids: &[NoteId]) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (id, paths) in self.index.cited_by(ids).unwrap_or_default() {
            let Ok(Some(entry)) = self.index.get(id) else {
                continue;
            };
            for path in paths.iter().take(MAX_PATHS) {
                edges.extend(self.same_file_links(id, &entry.project, path));
            }
        }
        edges
    }

    /// Returns links to the other notes of its project that cite a file.
    fn same_file_links(&self, id: NoteId, project: &str, path: &String) -> Vec<Edge> {
        let citing = self
            .index
            .notes_citing(project, std::slice::from_ref(path), MAX_CITING);
        let mut edges = file_edges(&citing.unwrap_or_default());
        edges.retain(|edge| edge.from == id || edge.to == id);
        edges
    }
}
