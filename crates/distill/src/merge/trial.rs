//! Whether what was found before is found after a merge: tried on a copy of the notes, in memory.

use std::collections::BTreeMap;

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteFile},
};
use anamnesis_recall::{
    evaluation::{RelevantRanks, share},
    search,
};
use anamnesis_store::{
    index::{Error, Filter, Index},
    notes::{NotePath, Stored},
};
use chrono::DateTime;

use super::Merged;

/// A question, and the notes that answer it.
#[derive(Debug, Clone)]
pub struct Case {
    /// What is asked.
    pub query: String,
    /// The notes; one that stands for one of them is as good.
    pub right: Vec<NoteId>,
}

/// A copy of the notes, with what was accepted so far.
pub struct Trial<'a> {
    index: Index,
    stored: BTreeMap<NoteId, Stored>,
    cases: &'a [Case],
    depth: usize,
    baseline: f64,
}

impl<'a> Trial<'a> {
    /// Copies notes and asks all questions once; a right note among the first `depth` answers one.
    ///
    /// # Errors
    /// When the copy cannot be made or asked.
    pub fn new(notes: Vec<Stored>, cases: &'a [Case], depth: usize) -> Result<Self, Error> {
        let mut trial = Self {
            index: Index::of(notes.iter().cloned())?,
            stored: notes.into_iter().map(|note| (note.path.id, note)).collect(),
            cases,
            depth,
            baseline: 0.0,
        };
        trial.baseline = trial.recall()?;
        Ok(trial)
    }

    /// The share of the questions that were answered before anything was merged.
    pub fn baseline(&self) -> f64 {
        self.baseline
    }

    /// Tries a merge on top of those that were accepted: the share of the questions that are answered
    /// then. If it is below the baseline, the merge is taken out again.
    ///
    /// # Errors
    /// When the copy cannot be changed or asked.
    pub fn accept(&mut self, merged: &Merged) -> Result<f64, Error> {
        let (Merged::Changed(note) | Merged::Made(note)) = merged else {
            return Ok(self.baseline);
        };
        let Some(stored) = self.stored_as(note) else {
            return Ok(self.baseline);
        };
        self.index.record(&stored)?;
        let recall = self.recall()?;
        if recall >= self.baseline {
            self.stored.insert(note.id, stored);
            return Ok(recall);
        }
        if let Some(before) = self.stored.get(&note.id) {
            self.index.record(before)?;
        } else {
            // A tombstone hides nothing and is not found.
            let mut gone = Note::clone(note);
            gone.forget(DateTime::UNIX_EPOCH);
            if let Some(gone) = self.stored_as(&gone) {
                self.index.record(&gone)?;
            }
        }
        Ok(recall)
    }

    /// A note as if it lay on the disk.
    fn stored_as(&self, note: &Note) -> Option<Stored> {
        let file = NoteFile::parse(note.render().as_bytes(), note.id).ok()?;
        let any = self
            .stored
            .get(&note.id)
            .or_else(|| self.stored.values().next())?;
        Some(Stored {
            path: NotePath::of(note),
            file,
            whole: true,
            ..any.clone()
        })
    }

    fn recall(&self) -> Result<f64, Error> {
        let mut answered = Vec::with_capacity(self.cases.len());
        for case in self.cases {
            let mut right = case.right.clone();
            for id in &case.right {
                right.extend(self.index.successors(*id)?);
            }
            let hits = search::search(&self.index, &case.query, &Filter::default(), self.depth)?;
            let found: Vec<NoteId> = hits.iter().map(|hit| hit.entry.id()).collect();
            answered.push(RelevantRanks::new(&found, &right).is_within(self.depth));
        }
        Ok(share(answered).unwrap_or_default())
    }
}
