//! Which notes say much the same: for people who look around, never for ranking.
//!
//! Words have found such notes already, so a link between them tells a ranking nothing that it does not
//! know. Two notes are linked if each is among the other's nearest, so that a note of many words is not
//! everybody's neighbour. Worked out for the notes that are looked at, and kept nowhere.

use std::{cell::RefCell, collections::HashMap};

use anamnesis_note::{
    id::NoteId,
    link::{Edge, Relation},
    note::Note,
};
use anamnesis_store::{
    index::{Error, Filter, Index},
    notes::Notes,
};

use crate::{
    note_set::likeness,
    rank::{Mask, Query, rank},
};

/// How many of the nearest notes count.
const NEAREST: usize = 8;

/// Notes that have less in common only share some words.
const MIN_LIKENESS: f64 = 0.2;

/// Similar notes, looked for once each.
pub struct Similar<'a> {
    index: &'a Index,
    notes: &'a Notes,
    nearest: RefCell<HashMap<NoteId, Vec<NoteId>>>,
}

impl<'a> Similar<'a> {
    /// Looks for notes of this store.
    pub fn new(index: &'a Index, notes: &'a Notes) -> Self {
        Self {
            index,
            notes,
            nearest: RefCell::default(),
        }
    }

    /// The links of these notes to notes that say much the same, in use and not replaced; each is worth
    /// what the two have in common.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn links(&self, ids: &[NoteId]) -> Result<Vec<Edge>, Error> {
        let mut edges = Vec::new();
        for from in ids {
            let Some(note) = self.note(*from)? else {
                continue;
            };
            for to in self.nearest(*from)? {
                let Some(other) = self.note(to)? else {
                    continue;
                };
                if !self.nearest(to)?.contains(from) {
                    continue;
                }
                let likeness = likeness(self.index, &note, &other)?;
                if likeness >= MIN_LIKENESS {
                    edges.push(Edge {
                        from: (*from).min(to),
                        to: (*from).max(to),
                        relation: Relation::Similar,
                        weight: Some(likeness),
                    });
                }
            }
        }
        Ok(edges)
    }

    /// The notes that have as much in common with one as this, those with most first. Unlike
    /// [`links`](Self::links) it does not matter whether theirs is among the nearest of them, which would
    /// take a search for each.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn like(&self, id: NoteId, least: f64) -> Result<Vec<NoteId>, Error> {
        let Some(note) = self.note(id)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for other in self.nearest(id)? {
            if let Some(note_there) = self.note(other)? {
                let likeness = likeness(self.index, &note, &note_there)?;
                if likeness >= least {
                    found.push((likeness, other));
                }
            }
        }
        found.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.cmp(other)));
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    /// The notes that the words of one find first.
    fn nearest(&self, id: NoteId) -> Result<Vec<NoteId>, Error> {
        if let Some(known) = self.nearest.borrow().get(&id) {
            return Ok(known.clone());
        }
        let mut nearest = Vec::new();
        if let Some(note) = self.note(id)? {
            let query = Query::of(&format!("{}\n{}", note.title, note.body));
            let mask = Mask::of_filter(&Filter::default());
            let ranked = rank(self.index, &query, &mask, NEAREST + 1)?;
            let found = ranked.candidates.into_iter().map(|found| found.id);
            nearest.extend(found.filter(|found| *found != id).take(NEAREST));
        }
        self.nearest.borrow_mut().insert(id, nearest.clone());
        Ok(nearest)
    }

    fn note(&self, id: NoteId) -> Result<Option<Note>, Error> {
        let entry = self.index.get(id)?.filter(|entry| !entry.superseded);
        let stored = entry.and_then(|entry| self.notes.read(entry.path).ok());
        Ok(stored.map(|stored| stored.note()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_start::tests::Fixture;

    #[test]
    fn notes_that_say_much_the_same_are_linked_from_both_ends() {
        let fixture = Fixture::new();
        let add = |title: &str| fixture.add(title, |_| {}).path.id;
        let one = add("the login tests hang without the stub server");
        let other = add("without the stub server the login tests hang for ever");
        let far = add("photos are cut to squares");
        let replaced = add("the login tests hang without a stub server");
        fixture.add("newer", |note| note.supersedes = vec![replaced.to_string()]);
        let index = fixture.refreshed();
        let similar = Similar::new(&index, &fixture.notes);
        let links = similar.links(&[one]).unwrap();
        let found: Vec<NoteId> = links.iter().map(|edge| edge.other(one)).collect();
        assert_eq!(found, [other]);
        assert_eq!(similar.links(&[other]).unwrap(), links);
        let weight = links[0].weight_from(one);
        assert!(weight > 0.5 && weight <= 1.0, "{weight}");
        let same = |a: f64, b: f64| (a - b).abs() < f64::EPSILON;
        assert!(same(links[0].weight_from(other), weight));
        assert!(same(links[0].weight_from(far), 0.0));
        assert_eq!(
            similar.links(&[replaced, NoteId::made_of("gone")]).unwrap(),
            []
        );
    }

    #[test]
    fn a_note_that_everybody_is_like_is_like_few() {
        let fixture = Fixture::new();
        let hub = fixture.add("hub", |note| {
            note.body = (0..30).map(|n| format!("topic{n} word{n} ")).collect();
        });
        for number in 0..30 {
            fixture.add(&format!("topic{number} word{number}"), |_| {});
        }
        let index = fixture.refreshed();
        let similar = Similar::new(&index, &fixture.notes);
        assert!(similar.links(&[hub.path.id]).unwrap().len() <= NEAREST);
    }
}
