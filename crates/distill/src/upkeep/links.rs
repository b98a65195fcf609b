//! Lines of `links` that say nothing.
//!
//! A line that cannot be read is not one of them: somebody meant something by it, and `doctor` names it.

use std::collections::BTreeMap;

use anamnesis_note::{
    id::NoteId,
    link::{Link, Relation},
    note::Note,
};

use super::{Action, Desk};

/// Why a line of `links` says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// There is no such note, or it is forgotten.
    Nowhere,
    /// It is the note itself.
    Itself,
    /// Another line says the same.
    Twice,
}

impl Idle {
    /// The reason in words, fit to follow the line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nowhere => "leads nowhere",
            Self::Itself => "leads to the note itself",
            Self::Twice => "is there twice",
        }
    }
}

/// Takes them out.
pub(super) fn tidy(desk: &mut Desk<'_>) {
    let found: Vec<(NoteId, Vec<(usize, Idle)>)> = desk
        .in_use()
        .into_iter()
        .map(|note| (note.id, idle(desk, note)))
        .filter(|(_, idle)| !idle.is_empty())
        .collect();
    for (id, idle) in found {
        let mut lines = Vec::new();
        desk.change(id, |note| {
            let mut place = 0;
            note.links.retain(|line| {
                let found = idle.iter().find(|(idle, _)| *idle == place);
                lines.extend(found.map(|(_, reason)| (line.clone(), *reason)));
                place += 1;
                found.is_none()
            });
        });
        desk.actions.push(Action::Unlink { note: id, lines });
    }
}

/// The places of the lines that say nothing.
fn idle(desk: &Desk<'_>, note: &Note) -> Vec<(usize, Idle)> {
    let mut said: BTreeMap<(Relation, NoteId), (usize, Option<f64>)> = BTreeMap::new();
    let mut idle = Vec::new();
    for (place, line) in note.links.iter().enumerate() {
        let Ok(link) = line.parse::<Link>() else {
            continue;
        };
        if link.target == note.id {
            idle.push((place, Idle::Itself));
        } else if !desk.leads_somewhere(link.target) {
            idle.push((place, Idle::Nowhere));
        } else {
            // The one that is worth more counts, as everywhere.
            let known = said
                .entry((link.relation, link.target))
                .or_insert((place, link.weight));
            if known.0 != place {
                let lesser = if link.weight > known.1 {
                    std::mem::replace(known, (place, link.weight)).0
                } else {
                    place
                };
                idle.push((lesser, Idle::Twice));
            }
        }
    }
    idle.sort_unstable_by_key(|(place, _)| *place);
    idle
}
