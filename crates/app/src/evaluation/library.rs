//! The notes that questions are run against. A question that is a note's title runs against the
//! notes without that title, because a match by title alone would prove nothing.

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteFile},
};
use anamnesis_store::{
    index::{self, Index},
    notes::Stored,
};

use crate::{
    Error,
    context::Context,
    evaluation_set::{Case, TITLE},
};

pub(super) struct Library<'a> {
    context: &'a Context,
    /// The store's own index.
    index: &'a Index,
    /// A second index in memory, for questions that are titles.
    apart: Option<Index>,
}

impl<'a> Library<'a> {
    /// Prepares the notes for these questions.
    pub(super) fn new(
        context: &'a Context,
        index: &'a Index,
        cases: &[(usize, &Case)],
    ) -> Result<Self, Error> {
        let apart = if cases.iter().any(|(_, case)| case.source == TITLE) {
            let listed = context.notes.list().notes.into_iter();
            let stored = listed.filter_map(|(path, _)| context.notes.read(path).ok());
            Some(Index::in_memory(stored)?)
        } else {
            None
        };
        Ok(Self {
            context,
            index,
            apart,
        })
    }

    /// Runs a query on the index that suits the question.
    pub(super) fn ask<T>(
        &mut self,
        case: &Case,
        ask: impl FnOnce(&Index) -> Result<T, index::Error>,
    ) -> Result<T, Error> {
        let Some(apart) = self.apart.as_mut().filter(|_| case.source == TITLE) else {
            return Ok(ask(self.index)?);
        };
        let notes = case.notes().filter_map(|id| stored(self.context, id));
        let notes: Vec<Stored> = notes.collect();
        for note in &notes {
            if let Some(untitled) = untitled(note) {
                apart.record(&untitled)?;
            }
        }
        let answer = ask(apart)?;
        for note in &notes {
            apart.record(note)?;
        }
        Ok(answer)
    }

    /// The notes that answer a question: the named ones and those that have replaced them.
    pub(super) fn right(&self, case: &Case) -> Result<Vec<NoteId>, Error> {
        let mut right = Vec::new();
        for id in case.notes() {
            right.push(id);
            right.extend(self.index.successors(id)?);
        }
        right.sort_unstable();
        right.dedup();
        Ok(right)
    }
}

fn stored(context: &Context, id: NoteId) -> Option<Stored> {
    context.notes.read(context.notes.find(id)?).ok()
}

/// The note without its title; `None` if it is then no valid note.
fn untitled(stored: &Stored) -> Option<Stored> {
    let note = Note {
        title: String::new(),
        ..stored.note()
    };
    let file = NoteFile::parse(note.render().as_bytes(), note.id).ok()?;
    Some(Stored {
        file,
        ..stored.clone()
    })
}
