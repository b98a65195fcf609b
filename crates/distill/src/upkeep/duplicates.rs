//! Notes that say the same, and notes that say otherwise.
//!
//! A note is replaced only by one that applies wherever it did, is of its kind, does what it does, and
//! has every word of it; and never where one denies, counts or names something that the other does not.
//! In doubt notes differ: two notes where one would do cost a line, the other way round costs what was
//! known.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    id::NoteId,
    link::{Link, Relation},
    note::{Kind, Note, Source},
};
use anamnesis_text::contradiction::Difference;

use super::{
    Action, Desk, Pair,
    alike::{Alike, Text},
    is_durable, normalised,
};

/// Notes that are this like may say the same.
const SAME: f64 = 0.8;

/// Notes that are this like are about the same.
const ABOUT: f64 = 0.5;

/// Replaces notes whose text is the same but for white space.
pub(super) fn exact(desk: &mut Desk<'_>) {
    let mut groups: BTreeMap<(Kind, String), Vec<NoteId>> = BTreeMap::new();
    for note in desk.in_use() {
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
    take_up(desk, &members);
    for group in groups.values() {
        replace(desk, group, true, |desk, keeper, note| {
            desk.reaches(keeper, note)
                && do_the_same(keeper, note)
                && have_one_title(desk, keeper, note)
        });
    }
}

/// Replaces notes whose text is the same but for its order, or a part of another one.
pub(super) fn near(desk: &mut Desk<'_>) {
    let pairs = pairs(desk, SAME);
    let mut likes: BTreeSet<Pair> = BTreeSet::new();
    for pair in pairs {
        likes.extend([(pair.one, pair.other), (pair.other, pair.one)]);
    }
    let all: BTreeSet<NoteId> = likes.iter().map(|(one, _)| *one).collect();
    let notes: Vec<NoteId> = desk.in_use().iter().map(|note| note.id).collect();
    let notes: Vec<NoteId> = notes.into_iter().filter(|id| all.contains(id)).collect();
    replace(desk, &notes, false, |desk, keeper, note| {
        likes.contains(&(keeper.id, note.id))
            && is_settled(keeper)
            && is_settled(note)
            && desk.reaches(keeper, note)
            && do_the_same(keeper, note)
            && says_all(desk, keeper, note)
    });
}

/// The pairs of which only one can be right, and those that say much the same.
pub(super) fn to_look_at(desk: &Desk<'_>) -> (Vec<Pair>, Vec<Pair>) {
    let (mut contradictions, mut alike) = (Vec::new(), Vec::new());
    for pair in pairs_known(desk, ABOUT) {
        let (Some(one), Some(other)) = (desk.notes.get(&pair.one), desk.notes.get(&pair.other))
        else {
            continue;
        };
        let difference = difference(desk, one, other);
        if difference == Difference::Contradicts {
            let disputes = |one: &Note, other: &Note| {
                let link = Link {
                    relation: Relation::Contradicts,
                    target: other.id,
                    weight: None,
                };
                says(one, &link)
            };
            // Somebody knows already.
            if !disputes(one, other) && !disputes(other, one) {
                contradictions.push((one.id, other.id));
            }
        } else if pair.likeness >= SAME && difference == Difference::None && do_the_same(one, other)
        {
            alike.push((one.id, other.id));
        }
    }
    (contradictions, alike)
}

/// Has the first notes of a list, which are to be kept before the others, replace those that they may.
pub(super) fn replace(
    desk: &mut Desk<'_>,
    group: &[NoteId],
    is_exact: bool,
    may_replace: impl Fn(&Desk<'_>, &Note, &Note) -> bool,
) {
    let mut gone: BTreeSet<NoteId> = BTreeSet::new();
    for keeper_id in group {
        let Some(keeper) = desk
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
            .filter_map(|id| desk.notes.get(id))
            .filter(|note| may_replace(desk, keeper, note))
            .map(|note| note.id)
            .collect();
        if replaced.is_empty() {
            continue;
        }
        gone.extend(replaced.iter().copied());
        unite(desk, *keeper_id, &replaced);
        desk.actions.push(Action::Replace {
            keeper: *keeper_id,
            replaced,
            is_exact,
        });
    }
}

/// Gives a note what others have beside their text, and has it replace them.
fn unite(desk: &mut Desk<'_>, keeper: NoteId, replaced: &[NoteId]) {
    let others: Vec<Note> = replaced
        .iter()
        .filter_map(|id| desk.notes.get(id).cloned())
        .collect();
    desk.change(keeper, |note| {
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
                    // What the note says itself counts.
                    Ok(link) if says(note, &link) => {}
                    Ok(link) => link.declare(note),
                    Err(_) if !note.links.contains(line) => note.links.push(line.clone()),
                    Err(_) => {}
                }
            }
        }
        // What it said of those that are one with it now.
        let own = note.id;
        let is_one = |id: NoteId| id == own || replaced.contains(&id);
        let leads_out = |line: &String| !line.parse::<Link>().is_ok_and(|link| is_one(link.target));
        note.links.retain(leads_out);
    });
    desk.replaced.extend(replaced);
}

/// Tells whether a note says the same of the same note, whatever it is worth there.
fn says(note: &Note, link: &Link) -> bool {
    let known = note
        .links
        .iter()
        .filter_map(|line| line.parse::<Link>().ok());
    let mut same = known.filter(|known| known.relation == link.relation);
    same.any(|known| known.target == link.target)
}

/// Tells whether a text stays as it is until somebody changes it. A session that goes on writes its note
/// anew, and a copy of another memory follows that: hidden, they would change unseen, and what they stand
/// for would be gone.
fn is_settled(note: &Note) -> bool {
    note.kind() != Kind::Experience && note.source != Source::Import
}

/// Tells whether notes are of one kind and do the same beside what they say.
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

/// Tells whether the titles of two notes with the same text say nothing of their own: "port of staging"
/// and "port of production" may both be 8080.
fn have_one_title(desk: &Desk<'_>, one: &Note, other: &Note) -> bool {
    if normalised(&one.title) == normalised(&other.title) {
        return true;
    }
    let (Some(mine), Some(theirs)) = (desk.texts.get(one.id), desk.texts.get(other.id)) else {
        return false;
    };
    mine.title.is_subset(&theirs.terms)
        && theirs.title.is_subset(&mine.terms)
        && difference(desk, one, other) == Difference::None
}

/// Tells whether all that a note says stands in another one, and nothing there goes against it.
fn says_all(desk: &Desk<'_>, keeper: &Note, note: &Note) -> bool {
    let (Some(all), Some(text)) = (desk.texts.get(keeper.id), desk.texts.get(note.id)) else {
        return false;
    };
    text.terms.is_subset(&all.terms) && difference(desk, keeper, note) == Difference::None
}

/// In what two notes differ, the more of both ways.
fn difference(desk: &Desk<'_>, one: &Note, other: &Note) -> Difference {
    let (Some(mine), Some(theirs)) = (desk.texts.get(one.id), desk.texts.get(other.id)) else {
        return Difference::Adds;
    };
    let both = |one: &Text, other: &Text| one.said.difference(&other.said);
    let difference = both(mine, theirs).max(both(theirs, mine));
    // Letter case and signs count in code, and in nothing else.
    if difference == Difference::None && mine.ticked != theirs.ticked {
        return Difference::Adds;
    }
    difference
}

/// The durable notes in use that are at least this like.
fn pairs(desk: &mut Desk<'_>, least: f64) -> Vec<Alike> {
    let durable = desk.in_use().into_iter();
    let durable = durable
        .filter(|note| is_durable(note.kind()))
        .map(|note| note.id);
    let durable: BTreeSet<NoteId> = durable.collect();
    take_up(desk, &durable);
    pairs_known(desk, least)
}

fn pairs_known(desk: &Desk<'_>, least: f64) -> Vec<Alike> {
    let mut notes = desk.in_use();
    notes.retain(|note| is_durable(note.kind()));
    desk.texts
        .pairs(&notes, least, |one, other| desk.are_neighbours(one, other))
}

/// Takes the texts of notes apart, before they are compared.
fn take_up(desk: &mut Desk<'_>, ids: &BTreeSet<NoteId>) {
    let notes = ids.iter().filter_map(|id| desk.notes.get(id));
    desk.texts.take_up(notes);
}
