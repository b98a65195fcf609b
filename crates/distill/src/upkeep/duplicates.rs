//! Finds redundant notes.
//!
//! A note is superseded only by one that applies wherever it does, has the same kind and effect,
//! and contains all its words. It is never superseded if one of the two has a negation, number or
//! name that the other lacks. In doubt notes differ: a spare note costs a line, a wrong merge loses
//! knowledge.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    id::NoteId,
    link::{Link, Relation},
    note::{Kind, Note, Source},
};

use super::{Action, Pair, PlanState, is_durable, normalised};

/// The minimum similarity of notes that may say the same.
const SAME: f64 = 0.8;

/// Merges notes whose texts are equal except for white space.
pub(super) fn exact(state: &mut PlanState<'_>) {
    let mut groups: BTreeMap<(Kind, String), Vec<NoteId>> = BTreeMap::new();
    for note in state.in_use() {
        let text = match normalised(&note.body) {
            text if text.is_empty() => normalised(&note.title),
            text => text,
        };
        if !text.is_empty() && is_settled(note) {
            groups.entry((note.kind(), text)).or_default().push(note.id);
        }
    }
    groups.retain(|_, group| group.len() > 1);
    let members: BTreeSet<NoteId> = groups.values().flatten().copied().collect();
    add_texts(state, &members);
    for group in groups.values() {
        replace(state, group, true, |state, keeper, note| {
            state.reaches(keeper, note)
                && do_the_same(keeper, note)
                && have_one_title(state, keeper, note)
        });
    }
}

/// Merges notes whose texts are equal except for order, or contained in another's.
pub(super) fn near(state: &mut PlanState<'_>) {
    let pairs = pairs(state, SAME).into_iter();
    let likes: BTreeSet<Pair> = pairs
        .flat_map(|(one, other)| [(one, other), (other, one)])
        .collect();
    let all: BTreeSet<NoteId> = likes.iter().map(|(one, _)| *one).collect();
    let notes: Vec<NoteId> = state.in_use().iter().map(|note| note.id).collect();
    let notes: Vec<NoteId> = notes.into_iter().filter(|id| all.contains(id)).collect();
    replace(state, &notes, false, |state, keeper, note| {
        likes.contains(&(keeper.id, note.id))
            && is_settled(keeper)
            && is_settled(note)
            && state.reaches(keeper, note)
            && do_the_same(keeper, note)
            && says_all(state, keeper, note)
    });
}

/// Returns the pairs of similar notes that each have something of their own.
pub(super) fn alike(state: &PlanState<'_>) -> Vec<Pair> {
    let mut pairs = pairs_known(state, SAME);
    pairs.retain(|(one, other)| {
        let notes = [one, other].map(|id| state.notes.get(id));
        let [Some(one), Some(other)] = notes else {
            return false;
        };
        !differ(state, one, other) && do_the_same(one, other)
    });
    pairs
}

/// Lets the first notes of a list supersede later ones where allowed.
pub(super) fn replace(
    state: &mut PlanState<'_>,
    group: &[NoteId],
    is_exact: bool,
    may_replace: impl Fn(&PlanState<'_>, &Note, &Note) -> bool,
) {
    let mut gone: BTreeSet<NoteId> = BTreeSet::new();
    for keeper_id in group {
        let Some(keeper) = state
            .notes
            .get(keeper_id)
            .filter(|_| !gone.contains(keeper_id))
        else {
            continue;
        };
        let others = group
            .iter()
            .filter(|id| *id != keeper_id && !gone.contains(id));
        let replaced: Vec<NoteId> = others
            .filter_map(|id| state.notes.get(id))
            .filter(|note| may_replace(state, keeper, note))
            .map(|note| note.id)
            .collect();
        if replaced.is_empty() {
            continue;
        }
        gone.extend(replaced.iter().copied());
        unite(state, *keeper_id, &replaced);
        state.actions.push(Action::Replace {
            keeper: *keeper_id,
            replaced,
            is_exact,
        });
    }
}

/// Merges the metadata of notes into the keeper, which supersedes them.
fn unite(state: &mut PlanState<'_>, keeper: NoteId, replaced: &[NoteId]) {
    let others: Vec<Note> = replaced
        .iter()
        .filter_map(|id| state.notes.get(id).cloned())
        .collect();
    state.change(keeper, |note| {
        for other in &others {
            Link {
                relation: Relation::Supersedes,
                target: other.id,
                weight: None,
            }
            .declare(note);
            note.add_tags(other.tags.iter().map(String::as_str));
            note.pinned |= other.pinned;
            for line in &other.links {
                match line.parse::<Link>() {
                    // The keeper's own link has priority.
                    Ok(link) if says(note, &link) => {}
                    Ok(link) => link.declare(note),
                    Err(_) if !note.links.contains(line) => note.links.push(line.clone()),
                    Err(_) => {}
                }
            }
        }
        // Drop links between the merged notes.
        let own = note.id;
        let is_one = |id: NoteId| id == own || replaced.contains(&id);
        let leads_out = |line: &String| !line.parse::<Link>().is_ok_and(|link| is_one(link.target));
        note.links.retain(leads_out);
    });
    state.replaced.extend(replaced);
}

/// Returns whether a note has the same link, whatever its weight.
fn says(note: &Note, link: &Link) -> bool {
    let known = note
        .links
        .iter()
        .filter_map(|line| line.parse::<Link>().ok());
    let mut same = known.filter(|known| known.relation == link.relation);
    same.any(|known| known.target == link.target)
}

/// Returns whether a text only changes when somebody edits it.
///
/// The notes of continued sessions and copies of Claude's memory are rewritten automatically. If
/// hidden, they would change unseen; as keepers, they could lose what they replaced.
fn is_settled(note: &Note) -> bool {
    note.kind() != Kind::Experience && note.source != Source::Import
}

/// Returns whether notes have the same kind and the same effect beside their text.
fn do_the_same(one: &Note, other: &Note) -> bool {
    let beside = |note: &Note| {
        (
            note.kind(),
            note.when.clone(),
            note.instead.clone(),
            note.severity,
            note.enforce,
            note.status(),
        )
    };
    beside(one) == beside(other)
}

/// Returns whether the titles of two notes with equal text add nothing: "port of staging" and "port
/// of production" may both be 8080.
fn have_one_title(state: &PlanState<'_>, one: &Note, other: &Note) -> bool {
    if normalised(&one.title) == normalised(&other.title) {
        return true;
    }
    let (Some(mine), Some(theirs)) = (state.texts.get(one.id), state.texts.get(other.id)) else {
        return false;
    };
    mine.title.is_subset(&theirs.terms)
        && theirs.title.is_subset(&mine.terms)
        && !differ(state, one, other)
}

/// Returns whether the keeper contains all that a note says, without another value.
fn says_all(state: &PlanState<'_>, keeper: &Note, note: &Note) -> bool {
    let (Some(all), Some(text)) = (state.texts.get(keeper.id), state.texts.get(note.id)) else {
        return false;
    };
    text.terms.is_subset(&all.terms) && !differ(state, keeper, note)
}

/// Returns whether one of two notes has a value that the other lacks.
fn differ(state: &PlanState<'_>, one: &Note, other: &Note) -> bool {
    let (Some(mine), Some(theirs)) = (state.texts.get(one.id), state.texts.get(other.id)) else {
        return true;
    };
    // Case and punctuation are significant only in code.
    mine.said.differs(&theirs.said)
        || theirs.said.differs(&mine.said)
        || mine.ticked != theirs.ticked
}

/// Returns the pairs of durable notes in use with at least this similarity.
fn pairs(state: &mut PlanState<'_>, least: f64) -> Vec<Pair> {
    let durable = state.in_use().into_iter();
    let durable = durable
        .filter(|note| is_durable(note.kind()))
        .map(|note| note.id);
    let durable: BTreeSet<NoteId> = durable.collect();
    add_texts(state, &durable);
    pairs_known(state, least)
}

fn pairs_known(state: &PlanState<'_>, least: f64) -> Vec<Pair> {
    let mut notes = state.in_use();
    notes.retain(|note| is_durable(note.kind()));
    state
        .texts
        .pairs(&notes, least, |one, other| state.are_neighbours(one, other))
}

/// Parses the notes' texts before they are compared.
fn add_texts(state: &mut PlanState<'_>, ids: &BTreeSet<NoteId>) {
    let notes = ids.iter().filter_map(|id| state.notes.get(id));
    state.texts.add_texts(notes);
}
