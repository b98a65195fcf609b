//! Finds notes with similar text, for people who browse. Ranking does not use it.
//!
//! Ranking finds such notes by their words already, so a link between them would add nothing. Two
//! notes are linked if each is among the other's nearest, so that a long note is not linked to
//! everything. Computed on demand, never stored.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use anamnesis_note::{
    id::NoteId,
    link::{Edge, Relation},
    merge::CONFLICT_TAG,
    note::Note,
};
use anamnesis_store::{
    index::{Error, Filter, Index},
    notes::Notes,
};
use anamnesis_text::{
    similarity::{jaccard, weighted_jaccard},
    terms::words,
};

use crate::rank::{Mask, Query, rank};

/// How many nearest notes are considered.
const NEAREST: usize = 8;

/// The minimum similarity of linked notes. Notes below it only share some words.
const MIN_SIMILARITY: f64 = 0.2;

/// Two notes with this similarity count as duplicates.
const DUPLICATE: f64 = 0.6;

/// Finds similar notes, with a cache of each note's nearest.
pub struct Similar<'a> {
    index: &'a Index,
    notes: &'a Notes,
    nearest: RefCell<HashMap<NoteId, Vec<NoteId>>>,
}

impl<'a> Similar<'a> {
    /// Creates a finder for this store.
    pub fn new(index: &'a Index, notes: &'a Notes) -> Self {
        Self {
            index,
            notes,
            nearest: RefCell::default(),
        }
    }

    /// Returns links from these notes to similar notes that are in use and not superseded. The
    /// weight of a link is the similarity.
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
                let similarity = similarity(self.index, &note, &other)?;
                if similarity >= MIN_SIMILARITY {
                    edges.push(Edge {
                        from: (*from).min(to),
                        to: (*from).max(to),
                        relation: Relation::Similar,
                        weight: Some(similarity),
                    });
                }
            }
        }
        Ok(edges)
    }

    /// Returns the notes whose similarity to one is at least `least`, most similar first.
    ///
    /// Unlike [`links`](Self::links), this does not require the relation to be mutual, which would
    /// take a search per note.
    pub fn like(&self, id: NoteId, least: f64) -> Result<Vec<NoteId>, Error> {
        let Some(note) = self.note(id)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for other in self.nearest(id)? {
            if let Some(note_there) = self.note(other)? {
                let similarity = similarity(self.index, &note, &note_there)?;
                if similarity >= least {
                    found.push((similarity, other));
                }
            }
        }
        found.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.cmp(other)));
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    /// Returns the best results of searching for a note's text.
    fn nearest(&self, id: NoteId) -> Result<Vec<NoteId>, Error> {
        if let Some(known) = self.nearest.borrow().get(&id) {
            return Ok(known.clone());
        }
        let mut nearest = Vec::new();
        if let Some(note) = self.note(id)? {
            let query = Query::parse(&format!("{}\n{}", note.title, note.body));
            let mask = Mask::from_filter(&Filter::default());
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

/// Returns whether two notes say the same. The two texts of a conflict do not, however similar they
/// are: only a person can tell which is right.
pub(crate) fn is_duplicate(index: &Index, one: &Note, other: &Note) -> Result<bool, Error> {
    let mut tags = one.tags.iter().chain(&other.tags);
    Ok(!tags.any(|tag| tag == CONFLICT_TAG) && similarity(index, one, other)? >= DUPLICATE)
}

/// Returns the idf-weighted Jaccard similarity of two notes' terms, from 0 to 1.
fn similarity(index: &Index, one: &Note, other: &Note) -> Result<f64, Error> {
    let [one, other] = [one, other].map(|note| {
        let mut terms = BTreeSet::new();
        for text in [&note.title, &note.body] {
            words(text, |word| {
                if !word.is_stop_word() {
                    terms.insert(word.term.to_owned());
                }
            });
        }
        terms
    });
    let plain = jaccard(&one, &other);
    // Weighting changes the result so little that most pairs need no lookups.
    if plain < DUPLICATE / 2.0 {
        return Ok(plain);
    }
    let weights = one.union(&other).map(|term| {
        let frequency = index.frequency(term)?.max(1);
        Ok((term, 1.0 / f64::from(frequency).sqrt()))
    });
    let weights: BTreeMap<&String, f64> = weights.collect::<Result<_, Error>>()?;
    let weigh = |term: &String| weights.get(term).copied().unwrap_or_default();
    Ok(weighted_jaccard(&one, &other, weigh))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_start::tests::Fixture;

    #[test]
    fn similar_notes_are_linked_in_both_directions() {
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
    fn a_note_similar_to_all_has_few_links() {
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
