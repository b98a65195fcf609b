//! The notes of a store with their files, as upkeep needs them.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_distill::upkeep::NoteSet;
use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note},
};
use anamnesis_store::{
    index::{Filter, Index},
    notes::Stored,
    synced_lines::aliases,
};

use crate::{Error, context::Context};

/// The notes with their files.
pub struct Loaded {
    /// The notes that plans are made from.
    pub note_set: NoteSet,
    stored: BTreeMap<NoteId, Stored>,
}

impl Loaded {
    /// Reads every note.
    pub fn read(context: &Context, index: &Index) -> Result<Self, Error> {
        let mut note_set = NoteSet {
            aliases: aliases(&context.home),
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
                        note_set.fixed.insert(path.id);
                    }
                    note_set.notes.push(read.note());
                    stored.insert(path.id, read);
                }
                Err(_) => drop(note_set.fixed.insert(path.id)),
            }
        }
        let all = Filter {
            with_superseded: true,
            ..Filter::default()
        };
        let entries = index.list(&all, usize::MAX)?;
        let replaced = entries.iter().filter(|entry| entry.superseded);
        note_set.replaced = replaced.map(anamnesis_store::index::Entry::id).collect();
        Ok(Self { note_set, stored })
    }

    /// The current keys of the projects that have notes, without `global`.
    pub fn projects(&self) -> BTreeSet<String> {
        let notes = self.note_set.notes.iter();
        let keys = notes.map(|note| self.note_set.aliases.current(&note.project));
        keys.filter(|key| *key != GLOBAL)
            .map(str::to_owned)
            .collect()
    }

    /// Returns the note's file as it was read.
    pub fn stored(&self, id: NoteId) -> Option<&Stored> {
        self.stored.get(&id)
    }

    /// Every note with its file, by id.
    pub fn all(&self) -> impl Iterator<Item = &Stored> {
        self.stored.values()
    }
}

/// Returns whether a note can be changed key by key.
fn can_be_changed(stored: &Stored) -> bool {
    let note = stored.file.note();
    let mut other = Note {
        pinned: !note.pinned,
        ..note.clone()
    };
    other.supersedes.push(note.id.to_string());
    stored.whole && stored.file.rewrite(&other).is_ok()
}
