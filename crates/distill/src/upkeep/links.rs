//! Finds useless lines of `links`.
//!
//! An unreadable line is not one of them: somebody meant something by it, and `doctor` reports it.

use std::collections::BTreeMap;

use anamnesis_note::{
    id::NoteId,
    link::{Link, Relation},
    note::Note,
};

use super::{Action, PlanState};

/// Why a line of `links` is useless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UselessLink {
    /// The target does not exist or is forgotten.
    Nowhere,
    /// The target is the note itself.
    Itself,
    /// Another line has the same link.
    Twice,
}

impl UselessLink {
    /// Returns the reason, to follow the line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nowhere => "leads nowhere",
            Self::Itself => "leads to the note itself",
            Self::Twice => "is there twice",
        }
    }
}

/// Plans to remove the useless lines.
pub(super) fn tidy(state: &mut PlanState<'_>) {
    let found: Vec<(NoteId, Vec<(usize, UselessLink)>)> = state
        .in_use()
        .into_iter()
        .map(|note| (note.id, idle(state, note)))
        .filter(|(_, idle)| !idle.is_empty())
        .collect();
    for (id, idle) in found {
        let mut lines = Vec::new();
        state.change(id, |note| {
            let mut place = 0;
            note.links.retain(|line| {
                let found = idle.iter().find(|(idle, _)| *idle == place);
                lines.extend(found.map(|(_, reason)| (line.clone(), *reason)));
                place += 1;
                found.is_none()
            });
        });
        state.actions.push(Action::Unlink { note: id, lines });
    }
}

/// Returns the indexes of the useless lines.
fn idle(state: &PlanState<'_>, note: &Note) -> Vec<(usize, UselessLink)> {
    let mut said: BTreeMap<(Relation, NoteId), (usize, Option<f64>)> = BTreeMap::new();
    let mut idle = Vec::new();
    for (place, line) in note.links.iter().enumerate() {
        let Ok(link) = line.parse::<Link>() else {
            continue;
        };
        if link.target == note.id {
            idle.push((place, UselessLink::Itself));
        } else if !state.leads_somewhere(link.target) {
            idle.push((place, UselessLink::Nowhere));
        } else {
            // The link with the higher weight counts.
            let known = said
                .entry((link.relation, link.target))
                .or_insert((place, link.weight));
            if known.0 != place {
                let lesser = if link.weight > known.1 {
                    std::mem::replace(known, (place, link.weight)).0
                } else {
                    place
                };
                idle.push((lesser, UselessLink::Twice));
            }
        }
    }
    idle.sort_unstable_by_key(|(place, _)| *place);
    idle
}
