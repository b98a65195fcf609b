//! Which notes have most of their words in common, each word as much as it is rare.
//!
//! All pairs above a likeness are found without looking at every pair: of each note only so many of its
//! rarest words are looked up that the others alone could not make it that like to any note.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_recall::novelty::{ComparedText, smoothed_idf};
use anamnesis_text::contradiction::{Sentence, Statement};

/// What notes say, taken apart once: the text of a note does not change.
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: BTreeMap<NoteId, Text>,
}

/// What a note says.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) said: ComparedText,
    pub(super) terms: BTreeSet<String>,
    /// The words of its title.
    pub(super) title: BTreeSet<String>,
    /// What stands in back-ticks, letter by letter.
    pub(super) ticked: BTreeSet<String>,
}

impl Text {
    fn of(note: &Note) -> Self {
        let said = ComparedText::new(note);
        let title = Statement::parse(&note.title);
        let title = title.sentences().iter().flat_map(Sentence::terms);
        let ticked = [&note.title, &note.body]
            .into_iter()
            .flat_map(|text| text.split('`').skip(1).step_by(2))
            .map(super::normalised)
            .filter(|code| !code.is_empty());
        Self {
            terms: said.terms().cloned().collect(),
            title: title.cloned().collect(),
            ticked: ticked.collect(),
            said,
        }
    }
}

/// Two notes and their likeness, from 0 to 1: Jaccard's index of their words, weighted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alike {
    pub(super) one: NoteId,
    pub(super) other: NoteId,
    pub(super) likeness: f64,
}

impl Texts {
    /// Takes up notes that are not known yet.
    pub(super) fn take_up<'n>(&mut self, notes: impl IntoIterator<Item = &'n Note>) {
        for note in notes {
            self.texts.entry(note.id).or_insert_with(|| Text::of(note));
        }
    }

    pub(super) fn get(&self, id: NoteId) -> Option<&Text> {
        self.texts.get(&id)
    }

    /// The pairs of these notes that are at least this like, in the order of the notes; `may_pair` tells
    /// which two are to be compared.
    pub(super) fn pairs(
        &self,
        notes: &[&Note],
        least: f64,
        may_pair: impl Fn(&Note, &Note) -> bool,
    ) -> Vec<Alike> {
        let vectors = self.vectors(notes);
        // For each word the notes before this one that look it up.
        let mut having: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut pairs = Vec::new();
        for (place, vector) in vectors.iter().enumerate() {
            let prefix = vector.prefix(least);
            let candidates: BTreeSet<usize> = prefix
                .iter()
                .filter_map(|(term, _)| having.get(term))
                .flatten()
                .copied()
                .collect();
            for earlier in candidates {
                let (Some(one), Some(other), Some(theirs)) =
                    (notes.get(earlier), notes.get(place), vectors.get(earlier))
                else {
                    continue;
                };
                if !may_pair(one, other) {
                    continue;
                }
                let likeness = theirs.likeness(vector);
                if likeness >= least {
                    pairs.push(Alike {
                        one: one.id,
                        other: other.id,
                        likeness,
                    });
                }
            }
            for (term, _) in prefix {
                having.entry(*term).or_default().push(place);
            }
        }
        pairs
    }

    /// The words of each note by rarity, the rarest first.
    fn vectors(&self, notes: &[&Note]) -> Vec<Vector> {
        let terms_of = |note: &Note| self.get(note.id).map(|text| &text.terms);
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for term in notes.iter().filter_map(|note| terms_of(note)).flatten() {
            *counts.entry(term).or_default() += 1;
        }
        let mut ranked: Vec<(u32, &str)> = counts.iter().map(|(term, n)| (*n, *term)).collect();
        ranked.sort_unstable();
        let ranks: HashMap<&str, (usize, f64)> = ranked
            .into_iter()
            .enumerate()
            .map(|(rank, (count, term))| (term, (rank, smoothed_idf(notes.len(), count))))
            .collect();
        let vector = |note: &&Note| {
            let terms = terms_of(note).into_iter().flatten();
            let mut terms: Vec<(usize, f64)> = terms
                .filter_map(|term| ranks.get(term.as_str()).copied())
                .collect();
            terms.sort_unstable_by_key(|(rank, _)| *rank);
            Vector {
                mass: terms.iter().map(|(_, weight)| weight).sum(),
                terms,
            }
        };
        notes.iter().map(vector).collect()
    }
}

/// The words of a note by their rank, with what each weighs.
struct Vector {
    terms: Vec<(usize, f64)>,
    mass: f64,
}

impl Vector {
    /// The rarest words: a note that is at least this like has one of them.
    fn prefix(&self, least: f64) -> &[(usize, f64)] {
        // A little more than is needed: sums of fractions are not exact.
        let enough = self.mass * (1.0 - least) + 1e-6;
        let mut sum = 0.0;
        let end = self.terms.iter().position(|(_, weight)| {
            sum += weight;
            sum > enough
        });
        let length = end.map_or(self.terms.len(), |end| end + 1);
        self.terms.get(..length).unwrap_or(&self.terms)
    }

    fn likeness(&self, other: &Self) -> f64 {
        let (mut mine, mut theirs) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        let mut common = 0.0;
        while let (Some((one, weight)), Some((two, _))) = (mine.peek(), theirs.peek()) {
            match one.cmp(two) {
                std::cmp::Ordering::Less => drop(mine.next()),
                std::cmp::Ordering::Greater => drop(theirs.next()),
                std::cmp::Ordering::Equal => {
                    common += weight;
                    mine.next();
                    theirs.next();
                }
            }
        }
        let all = self.mass + other.mass - common;
        if all > 0.0 { common / all } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::NoteType;
    use chrono::DateTime;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What is skipped would not have been like enough.
        #[test]
        fn no_pair_is_missed(
            bodies in prop::collection::vec(prop::collection::vec("[a-l]", 1..8), 2..14),
            least in 0.2..0.95_f64,
        ) {
            let notes: Vec<Note> = bodies
                .iter()
                .enumerate()
                .map(|(number, words)| {
                    let id = NoteId::made_of(&number.to_string());
                    let mut note = Note::new(id, NoteType::Semantic, DateTime::UNIX_EPOCH);
                    // A letter is no word that is kept.
                    let words = words.iter().map(|word| format!("word{word} "));
                    note.body = words.collect();
                    note
                })
                .collect();
            let mut texts = Texts::default();
            texts.take_up(&notes);
            let notes: Vec<&Note> = notes.iter().collect();
            let found = texts.pairs(&notes, least, |_, _| true);
            let vectors = texts.vectors(&notes);
            let mut expected = 0;
            for (place, vector) in vectors.iter().enumerate() {
                let earlier = vectors.iter().take(place);
                expected += earlier.filter(|other| other.likeness(vector) >= least).count();
            }
            prop_assert_eq!(found.len(), expected);
        }
    }
}
