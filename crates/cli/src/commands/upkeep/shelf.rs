//! Loads the notes of a store for commands that tidy them.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_distill::upkeep::NoteSet;
use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note, State},
};
use anamnesis_store::{
    index::{Filter, Index},
    notes::Stored,
    usage_log::Receipts,
};

use anamnesis_app::{context::Context, failure::Failure};

/// The notes with their files.
pub(crate) struct Loaded {
    pub(crate) shelf: NoteSet,
    stored: BTreeMap<NoteId, Stored>,
}

impl Loaded {
    /// Reads every note.
    pub(crate) fn of(context: &Context, index: &Index) -> Result<Self, Failure> {
        let mut shelf = NoteSet {
            aliases: Receipts::new(context.home.clone()).aliases(),
            ..NoteSet::default()
        };
        let mut stored = BTreeMap::new();
        for (path, _) in context.notes.list().notes {
            // If two files have the same id, only the one that `find` returns counts.
            if context.notes.find(path.id) != Some(path) {
                continue;
            }
            match context.notes.read(path) {
                Ok(read) => {
                    if !can_be_changed(&read) {
                        shelf.fixed.insert(path.id);
                    }
                    shelf.notes.push(read.note());
                    stored.insert(path.id, read);
                }
                Err(_) => drop(shelf.fixed.insert(path.id)),
            }
        }
        let all = Filter {
            with_superseded: true,
            ..Filter::default()
        };
        let entries = index.list(&all, usize::MAX)?;
        let replaced = entries.iter().filter(|entry| entry.superseded);
        shelf.replaced = replaced.map(anamnesis_store::index::Entry::id).collect();
        Ok(Self { shelf, stored })
    }

    /// The current keys of the projects that have notes, without `global`.
    pub(crate) fn projects(&self) -> BTreeSet<String> {
        let notes = self.shelf.notes.iter();
        let keys = notes.map(|note| self.shelf.aliases.current(&note.project));
        keys.filter(|key| *key != GLOBAL)
            .map(str::to_owned)
            .collect()
    }

    /// The note's file as it was read.
    pub(crate) fn stored(&self, id: NoteId) -> Option<&Stored> {
        self.stored.get(&id)
    }

    /// Every note with its file, by id.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Stored> {
        self.stored.values()
    }

    /// Tells whether a note is active and not superseded.
    pub(crate) fn is_in_use(&self, id: NoteId) -> bool {
        let is_active = |stored: &Stored| stored.file.note().state == State::Active;
        !self.shelf.replaced.contains(&id) && self.stored(id).is_some_and(is_active)
    }
}

/// Tells whether a note can be changed key by key.
fn can_be_changed(stored: &Stored) -> bool {
    let note = stored.file.note();
    let mut other = Note {
        pinned: !note.pinned,
        ..note.clone()
    };
    other.supersedes.push(note.id.to_string());
    stored.whole && stored.file.rewrite(&other).is_ok()
}
