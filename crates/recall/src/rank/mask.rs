//! Which notes a query searches.

use anamnesis_note::note::{GLOBAL, State, Visibility};
use anamnesis_store::index::{Document, Entry, Filter};

/// A note's project, relative to the asking project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The asking project.
    Own,
    /// For all projects.
    Global,
    /// Of another project.
    Other,
}

/// Selects the notes to search. Tombstones have no words, so they never match.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    /// The keys of the asking project.
    pub own: Vec<String>,
    /// Whether to include notes for all projects.
    pub with_global: bool,
    /// Whether to include notes of other projects.
    pub with_others: bool,
    /// Whether to include only notes that may be injected automatically. A superseded note may, if
    /// the filter includes it, because its successors are injected instead.
    pub only_surfacing: bool,
    /// Further conditions. If it names projects, a note has to be in one of them as well.
    pub filter: Filter,
}

impl Mask {
    /// Selects the notes of a person's filter.
    pub fn from_filter(filter: &Filter) -> Self {
        let all = filter.projects.is_empty();
        Self {
            own: filter.projects.clone(),
            with_global: all,
            with_others: all,
            only_surfacing: false,
            filter: Filter {
                projects: Vec::new(),
                ..filter.clone()
            },
        }
    }

    /// Returns the origin of a project's notes, or `None` if they are not searched.
    pub(crate) fn origin(&self, key: &str) -> Option<Origin> {
        let (origin, is_in) = if self.own.iter().any(|own| own == key) {
            (Origin::Own, true)
        } else if key == GLOBAL {
            (Origin::Global, self.with_global)
        } else {
            (Origin::Other, self.with_others)
        };
        let filtered = &self.filter.projects;
        (is_in && (filtered.is_empty() || filtered.iter().any(|named| named == key)))
            .then_some(origin)
    }

    /// Returns whether an index entry is searched.
    pub(crate) fn takes(&self, entry: &Entry) -> bool {
        let filter = &self.filter;
        self.origin(&entry.project).is_some()
            && entry.state != State::Forgotten
            && (filter.with_superseded || !entry.superseded)
            && filter.note_type.is_none_or(|t| t == entry.note_type)
            && filter.kind.is_none_or(|kind| kind == entry.kind)
            && filter.scope.is_none_or(|scope| scope == entry.path.scope)
            // Ranking ignores the rest: a search for pages, and two fields that are hardly used.
            && filter.tag.as_ref().is_none_or(|tag| entry.tags.contains(tag))
            && filter.state.is_none_or(|state| state == entry.state)
            && filter.machine.as_ref().is_none_or(|name| *name == entry.machine_id)
            && (filter.session.as_ref()).is_none_or(|id| entry.session.as_ref() == Some(id))
            && filter.user_id.as_ref().is_none_or(|id| *id == entry.user_id)
            && (filter.workspace_id.as_ref()).is_none_or(|id| *id == entry.workspace_id)
    }

    pub(super) fn admits(&self, document: &Document) -> bool {
        let filter = &self.filter;
        document.state() != State::Forgotten
            && (filter.with_superseded || !document.is_superseded())
            && (!self.only_surfacing || may_surface(document))
            && filter.note_type.is_none_or(|t| t == document.note_type())
            && filter.kind.is_none_or(|kind| kind == document.kind())
            && filter.scope.is_none_or(|scope| scope == document.scope())
    }
}

/// Returns whether a note may be injected automatically, itself or its successors.
fn may_surface(document: &Document) -> bool {
    let visibility = Visibility {
        is_superseded: false,
        ..document.visibility()
    };
    visibility.may_surface()
}
