//! Plans upkeep of notes by rule, without a model.
//!
//! [`plan`] is a pure function and changes nothing. Its `actions` may be applied as they are.
//! Similar notes are for a person to check.
//!
//! Invariants: a note's text is never changed and no note is removed. A redundant note is listed
//! under `supersedes` and can still be read by its id. Only portable notes in use are planned for,
//! because only their history can be undone. After a plan is applied, the next plan has no actions.

mod alike;
mod duplicates;
mod links;

pub mod chores;
pub mod parts;

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Kind, Note, Scope, State, parse_timestamp},
    synced_lines::Aliases,
};
use chrono::{DateTime, Utc};

use self::alike::Texts;

/// The notes and facts that a plan is made from.
#[derive(Debug, Default)]
pub struct NoteSet {
    /// The readable notes, each with the scope of its tree.
    pub notes: Vec<Note>,
    /// Superseded notes.
    pub replaced: BTreeSet<NoteId>,
    /// Ids of files that cannot be read or edited. They exist, but are not changed.
    pub fixed: BTreeSet<NoteId>,
    /// Which project keys belong to the same project.
    pub aliases: Aliases,
    /// The project's keys. Notes for all projects are included, too. If empty, all projects.
    pub projects: Vec<String>,
}

/// A planned change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A note supersedes others whose content it contains.
    Replace {
        /// The remaining note.
        keeper: NoteId,
        /// The superseded notes.
        replaced: Vec<NoteId>,
        /// Whether the texts are equal except for white space.
        is_exact: bool,
    },
    /// Useless lines of `links` are removed from a note.
    Unlink {
        /// The note.
        note: NoteId,
        /// The lines as written, with the reason in words that follow the line.
        lines: Vec<(String, &'static str)>,
    },
    /// A long note is split into several, which supersede it.
    Split {
        /// The note.
        note: NoteId,
        /// Its parts, in order.
        parts: Vec<NoteId>,
    },
}

/// Two notes, the preferred one first.
pub type Pair = (NoteId, NoteId);

/// Planned changes, and notes for a person to check.
#[derive(Debug, Default)]
pub struct Plan {
    /// The changes, in the order in which they have to be applied.
    pub actions: Vec<Action>,
    /// Notes with similar texts that each have something of their own.
    pub alike: Vec<Pair>,
    /// Existing notes in their new form.
    pub changed: Vec<Note>,
    /// Notes to create.
    pub made: Vec<Note>,
}

/// Plans upkeep.
pub fn plan(note_set: &NoteSet) -> Plan {
    let mut state = PlanState::new(note_set);
    // Repeats, because one change may enable another: a part of a split note may exist elsewhere.
    // Each round leaves fewer notes, fewer links or shorter notes, so the loop ends.
    loop {
        let before = state.actions.len();
        links::tidy(&mut state);
        duplicates::exact(&mut state);
        duplicates::near(&mut state);
        parts::split_long(&mut state);
        if state.actions.len() == before {
            break;
        }
    }
    let alike = duplicates::alike(&state);
    state.finish(alike)
}

/// The notes as the plan so far leaves them.
struct PlanState<'a> {
    note_set: &'a NoteSet,
    notes: BTreeMap<NoteId, Note>,
    replaced: BTreeSet<NoteId>,
    texts: Texts,
    touched: BTreeSet<NoteId>,
    made: BTreeSet<NoteId>,
    actions: Vec<Action>,
}

impl<'a> PlanState<'a> {
    fn new(note_set: &'a NoteSet) -> Self {
        let notes = note_set.notes.iter();
        Self {
            note_set,
            notes: notes.map(|note| (note.id, note.clone())).collect(),
            replaced: note_set.replaced.clone(),
            texts: Texts::default(),
            touched: BTreeSet::new(),
            made: BTreeSet::new(),
            actions: Vec::new(),
        }
    }

    /// Returns the notes that may be changed, in order of precedence.
    fn in_use(&self) -> Vec<&Note> {
        let mut notes: Vec<&Note> = self
            .notes
            .values()
            .filter(|note| self.is_in_use(note))
            .collect();
        notes.sort_by_key(|note| precedence(note));
        notes
    }

    fn is_in_use(&self, note: &Note) -> bool {
        let projects = &self.note_set.projects;
        note.state == State::Active
            && note.scope == Scope::Portable
            && !self.replaced.contains(&note.id)
            && !self.note_set.fixed.contains(&note.id)
            && (projects.is_empty() || note.is_global() || projects.contains(&note.project))
    }

    /// Returns whether one of two notes applies wherever the other does.
    fn are_neighbours(&self, one: &Note, other: &Note) -> bool {
        one.is_global() || other.is_global() || self.project(one) == self.project(other)
    }

    /// Returns whether a note applies wherever another one does.
    fn reaches(&self, keeper: &Note, note: &Note) -> bool {
        keeper.is_global() || !note.is_global() && self.project(keeper) == self.project(note)
    }

    fn project<'n>(&'n self, note: &'n Note) -> &'n str {
        self.note_set.aliases.current(&note.project)
    }

    /// Returns whether no file has this id.
    fn is_free(&self, id: NoteId) -> bool {
        !self.notes.contains_key(&id) && !self.note_set.fixed.contains(&id)
    }

    /// Returns whether the target of a link exists.
    fn leads_somewhere(&self, id: NoteId) -> bool {
        let is_gone = |note: &Note| note.state == State::Forgotten;
        !self.is_free(id) && !self.notes.get(&id).is_some_and(is_gone)
    }

    fn change(&mut self, id: NoteId, change: impl FnOnce(&mut Note)) {
        if let Some(note) = self.notes.get_mut(&id) {
            change(note);
            if !self.made.contains(&id) {
                self.touched.insert(id);
            }
        }
    }

    fn make(&mut self, note: Note) {
        self.made.insert(note.id);
        self.notes.insert(note.id, note);
    }

    fn finish(mut self, alike: Vec<Pair>) -> Plan {
        let mut take = |ids: &BTreeSet<NoteId>| -> Vec<Note> {
            let notes = ids.iter().filter_map(|id| self.notes.remove(id));
            notes.collect()
        };
        Plan {
            changed: take(&self.touched),
            made: take(&self.made),
            actions: self.actions,
            alike,
        }
    }
}

/// Sort key for the note to keep: notes for all projects, then the oldest, then by id.
pub(crate) fn precedence(note: &Note) -> (bool, bool, Option<DateTime<Utc>>, NoteId) {
    let made = parse_timestamp(&note.created_at);
    (note.project != GLOBAL, made.is_none(), made, note.id)
}

/// Returns whether notes of a kind state something durable, and not an event or a task.
fn is_durable(kind: Kind) -> bool {
    !matches!(kind, Kind::Experience | Kind::Task)
}

/// Collapses white space.
pub(crate) fn normalised(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
