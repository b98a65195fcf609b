//! Finds pairs of notes with a high weighted Jaccard similarity.
//!
//! Prefix filtering avoids comparing all pairs: of each note only the rarest words are looked up.
//! The words left out are too few to reach the minimum similarity alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_recall::novelty::{ComparedText, smoothed_idf};
use anamnesis_text::statement::{Sentence, Statement};

use super::Pair;

/// The parsed texts of notes, kept because a note's text does not change.
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: BTreeMap<NoteId, Text>,
}

/// A note's parsed text.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) said: ComparedText,
    pub(super) terms: BTreeSet<String>,
    /// The words of the title.
    pub(super) title: BTreeSet<String>,
    /// Exact contents of backticks.
    pub(super) ticked: BTreeSet<String>,
}

impl Text {
    fn new(note: &Note) -> Self {
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

impl Texts {
    /// Parses the notes that are not known yet.
    pub(super) fn add_texts<'n>(&mut self, notes: impl IntoIterator<Item = &'n Note>) {
        for note in notes {
            self.texts.entry(note.id).or_insert_with(|| Text::new(note));
        }
    }

    pub(super) fn get(&self, id: NoteId) -> Option<&Text> {
        self.texts.get(&id)
    }

    /// Returns the pairs with at least this similarity, in the order of the notes. `may_pair`
    /// selects the pairs to compare.
    pub(super) fn pairs(
        &self,
        notes: &[&Note],
        least: f64,
        may_pair: impl Fn(&Note, &Note) -> bool,
    ) -> Vec<Pair> {
        let vectors = self.vectors(notes);
        // For each word, the earlier notes that have it in their prefix.
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
                if theirs.likeness(vector) >= least {
                    pairs.push((one.id, other.id));
                }
            }
            for (term, _) in prefix {
                having.entry(*term).or_default().push(place);
            }
        }
        pairs
    }

    /// Returns the words of each note, the rarest first.
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

/// The words of a note as ranks with weights.
struct Vector {
    terms: Vec<(usize, f64)>,
    mass: f64,
}

impl Vector {
    /// Returns the rarest words. Any note with at least this similarity has one of them.
    fn prefix(&self, least: f64) -> &[(usize, f64)] {
        // A small margin, because floating point sums are not exact.
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
        /// No pair above the minimum similarity is skipped.
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
                    // Single letters are dropped, so words are longer.
                    let words = words.iter().map(|word| format!("word{word} "));
                    note.body = words.collect();
                    note
                })
                .collect();
            let mut texts = Texts::default();
            texts.add_texts(&notes);
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
