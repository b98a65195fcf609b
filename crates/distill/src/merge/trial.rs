//! Tries merges on an in-memory copy of the notes, and checks that questions still find their
//! answers.

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

use super::MergeOutcome;

/// A question and the notes that answer it.
#[derive(Debug, Clone)]
pub struct Case {
    /// The question.
    pub query: String,
    /// The notes. A note that supersedes one of them counts as well.
    pub right: Vec<NoteId>,
}

/// A copy of the notes with the merges accepted so far.
pub struct MergeTrial<'a> {
    index: Index,
    stored: BTreeMap<NoteId, Stored>,
    cases: &'a [Case],
    depth: usize,
    baseline: f64,
}

impl<'a> MergeTrial<'a> {
    /// Copies the notes and asks all questions. A question is answered if a relevant note is among
    /// the first `depth`.
    pub fn new(notes: Vec<Stored>, cases: &'a [Case], depth: usize) -> Result<Self, Error> {
        let mut trial = Self {
            index: Index::in_memory(notes.iter().cloned())?,
            stored: notes.into_iter().map(|note| (note.path.id, note)).collect(),
            cases,
            depth,
            baseline: 0.0,
        };
        trial.baseline = trial.recall()?;
        Ok(trial)
    }

    /// Returns the share of the questions answered before any merge.
    pub fn baseline(&self) -> f64 {
        self.baseline
    }

    /// Tries a merge on top of the accepted ones. Returns the share of the questions answered then.
    /// If it is below the baseline, the merge is reverted.
    pub fn accept(&mut self, merged: &MergeOutcome) -> Result<f64, Error> {
        let (MergeOutcome::Changed(note) | MergeOutcome::Made(note)) = merged else {
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
            // A tombstone hides nothing and is never found.
            let mut gone = Note::clone(note);
            gone.forget(DateTime::UNIX_EPOCH);
            if let Some(gone) = self.stored_as(&gone) {
                self.index.record(&gone)?;
            }
        }
        Ok(recall)
    }

    /// Returns a note as if it were read from disk.
    fn stored_as(&self, note: &Note) -> Option<Stored> {
        let file = NoteFile::parse(note.render().as_bytes(), note.id).ok()?;
        let any = self
            .stored
            .get(&note.id)
            .or_else(|| self.stored.values().next())?;
        Some(Stored {
            path: NotePath::from_note(note),
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
