//! What can be put in order among notes by rule, without a model: a plan, and nothing done.
//!
//! [`plan`] is a pure function of notes. What it names under `actions` may be done as it stands; what
//! contradicts or is merely alike is for a person to look at.
//!
//! Invariants: the text of a note is never changed and no note is removed; what another one says as well
//! is named under `supersedes` there, and can be read by its id as before. Nothing is planned but for
//! notes in use that travel, since only their history can take it back. Of the notes as a plan leaves
//! them, the next plan has no actions.

mod alike;
mod duplicates;
mod links;

pub mod chores;
pub mod parts;
pub mod recurring;
pub mod suggestions;

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Kind, Note, Scope, State, parse_timestamp},
    usage_log::Aliases,
};
use chrono::{DateTime, Utc};

use self::alike::Texts;
pub use self::links::Idle;

/// What a plan is made of.
#[derive(Debug, Default)]
pub struct Shelf {
    /// The notes that can be read, each with the scope of its tree.
    pub notes: Vec<Note>,
    /// Those that others replace.
    pub replaced: BTreeSet<NoteId>,
    /// Ids of files that cannot be read, or cannot be changed key by key. They are there, and left alone.
    pub fixed: BTreeSet<NoteId>,
    /// Which keys are one project.
    pub aliases: Aliases,
    /// The keys of the project to look at, besides notes for all projects; all projects if it is empty.
    pub projects: Vec<String>,
    /// Proposals that could be made: see [`recurring`].
    pub proposals: Vec<Note>,
}

/// Something that may be done as it is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A note says all that others say, and stands for them from now on.
    Replace {
        /// The note that stays in use.
        keeper: NoteId,
        /// Those that it replaces.
        replaced: Vec<NoteId>,
        /// Whether their texts are the same to the letter, white space aside.
        is_exact: bool,
    },
    /// Lines of `links` that say nothing are taken out of a note.
    Unlink {
        /// The note.
        note: NoteId,
        /// The lines, as written, each with what is wrong with it.
        lines: Vec<(String, Idle)>,
    },
    /// A long note becomes several, which replace it.
    Split {
        /// The note.
        note: NoteId,
        /// Its parts, in order.
        parts: Vec<NoteId>,
    },
    /// A new note waits for a person.
    Propose {
        /// The new note.
        note: NoteId,
    },
}

impl Action {
    /// The notes whose files it changes or makes.
    pub fn writes(&self) -> Vec<NoteId> {
        match self {
            Self::Replace { keeper: note, .. }
            | Self::Unlink { note, .. }
            | Self::Propose { note } => vec![*note],
            Self::Split { parts, .. } => parts.clone(),
        }
    }
}

/// Two notes, the one that would be kept first.
pub type Pair = (NoteId, NoteId);

/// What can be done, and what a person should look at.
#[derive(Debug, Default)]
pub struct Plan {
    /// What may be done, in the order in which it has to be.
    pub actions: Vec<Action>,
    /// Notes of which only one can be right.
    pub contradictions: Vec<Pair>,
    /// Notes that say much the same, and something of their own each.
    pub alike: Vec<Pair>,
    /// Notes that are there, as they are to be.
    pub changed: Vec<Note>,
    /// Notes that are to be made.
    pub made: Vec<Note>,
}

/// Says what can be put in order.
pub fn plan(shelf: &Shelf) -> Plan {
    let mut desk = Desk::of(shelf);
    // One thing may make room for another: a part of a long note may be known elsewhere. Each round
    // leaves fewer notes, fewer links or shorter notes, so there is a last one.
    loop {
        let before = desk.actions.len();
        links::tidy(&mut desk);
        duplicates::exact(&mut desk);
        duplicates::near(&mut desk);
        parts::split_long(&mut desk);
        if desk.actions.len() == before {
            break;
        }
    }
    for note in &shelf.proposals {
        if desk.is_free(note.id) {
            desk.actions.push(Action::Propose { note: note.id });
            desk.make(note.clone());
        }
    }
    let (contradictions, alike) = duplicates::to_look_at(&desk);
    desk.finish(contradictions, alike)
}

/// The notes as they would be after what is planned so far.
struct Desk<'a> {
    shelf: &'a Shelf,
    notes: BTreeMap<NoteId, Note>,
    replaced: BTreeSet<NoteId>,
    texts: Texts,
    touched: BTreeSet<NoteId>,
    made: BTreeSet<NoteId>,
    actions: Vec<Action>,
}

impl<'a> Desk<'a> {
    fn of(shelf: &'a Shelf) -> Self {
        let notes = shelf.notes.iter();
        Self {
            shelf,
            notes: notes.map(|note| (note.id, note.clone())).collect(),
            replaced: shelf.replaced.clone(),
            texts: Texts::default(),
            touched: BTreeSet::new(),
            made: BTreeSet::new(),
            actions: Vec::new(),
        }
    }

    /// The notes that something may be done to, the one that would be kept first.
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
        let projects = &self.shelf.projects;
        note.state == State::Active
            && note.scope == Scope::Portable
            && !self.replaced.contains(&note.id)
            && !self.shelf.fixed.contains(&note.id)
            && (projects.is_empty() || note.is_global() || projects.contains(&note.project))
    }

    /// Tells whether notes of one apply where the other one does.
    fn are_neighbours(&self, one: &Note, other: &Note) -> bool {
        one.is_global() || other.is_global() || self.project(one) == self.project(other)
    }

    /// Tells whether a note applies wherever another one does.
    fn reaches(&self, keeper: &Note, note: &Note) -> bool {
        keeper.is_global() || !note.is_global() && self.project(keeper) == self.project(note)
    }

    fn project<'n>(&'n self, note: &'n Note) -> &'n str {
        self.shelf.aliases.current(&note.project)
    }

    /// Tells whether no file has this id.
    fn is_free(&self, id: NoteId) -> bool {
        !self.notes.contains_key(&id) && !self.shelf.fixed.contains(&id)
    }

    /// Tells whether a link to this note leads somewhere.
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

    fn finish(mut self, contradictions: Vec<Pair>, alike: Vec<Pair>) -> Plan {
        let mut take = |ids: &BTreeSet<NoteId>| -> Vec<Note> {
            let notes = ids.iter().filter_map(|id| self.notes.remove(id));
            notes.collect()
        };
        Plan {
            changed: take(&self.touched),
            made: take(&self.made),
            actions: self.actions,
            contradictions,
            alike,
        }
    }
}

/// Which of several notes is kept: one for all projects, then the oldest, then by id.
pub(crate) fn precedence(note: &Note) -> (bool, bool, Option<DateTime<Utc>>, NoteId) {
    let made = parse_timestamp(&note.created_at);
    (note.project != GLOBAL, made.is_none(), made, note.id)
}

/// Tells whether a note says what holds: neither what happened once nor what is to be done.
fn is_durable(kind: Kind) -> bool {
    !matches!(kind, Kind::Experience | Kind::Task)
}

/// A text without regard to its white space.
pub(crate) fn normalised(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
