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

/// The index of a useless line, and why it is useless.
type UselessLine = (usize, &'static str);

/// Plans to remove the useless lines.
pub(super) fn tidy(state: &mut PlanState<'_>) {
    let found: Vec<(NoteId, Vec<UselessLine>)> = state
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

/// Returns the useless lines.
fn idle(state: &PlanState<'_>, note: &Note) -> Vec<UselessLine> {
    let mut said: BTreeMap<(Relation, NoteId), (usize, Option<f64>)> = BTreeMap::new();
    let mut idle = Vec::new();
    for (place, line) in note.links.iter().enumerate() {
        let Ok(link) = line.parse::<Link>() else {
            continue;
        };
        if link.target == note.id {
            idle.push((place, "leads to the note itself"));
        } else if !state.leads_somewhere(link.target) {
            idle.push((place, "leads nowhere"));
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
                idle.push((lesser, "is there twice"));
            }
        }
    }
    idle.sort_unstable_by_key(|(place, _)| *place);
    idle
}
