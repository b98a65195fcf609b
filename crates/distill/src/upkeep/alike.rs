//! Finds pairs of notes with a high weighted Jaccard similarity.
//!
//! Prefix filtering avoids comparing all pairs: of each note only the rarest words are looked up.
//! The words left out are too few to reach the minimum similarity alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_recall::novelty::{ComparedText, smoothed_idf};
use anamnesis_text::{
    similarity::weighted_jaccard,
    statement::{Sentence, Statement},
};

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
        let (sets, weights) = self.ranked(notes);
        let weigh = |rank: &usize| weights.get(*rank).copied().unwrap_or_default();
        // For each word, the earlier notes that have it in their prefix.
        let mut having: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut pairs = Vec::new();
        for (place, set) in sets.iter().enumerate() {
            let prefix = prefix(set, least, weigh);
            let candidates: BTreeSet<usize> = prefix
                .iter()
                .filter_map(|rank| having.get(rank))
                .flatten()
                .copied()
                .collect();
            for earlier in candidates {
                let (Some(one), Some(other), Some(theirs)) =
                    (notes.get(earlier), notes.get(place), sets.get(earlier))
                else {
                    continue;
                };
                if may_pair(one, other) && weighted_jaccard(theirs, set, weigh) >= least {
                    pairs.push((one.id, other.id));
                }
            }
            for rank in prefix {
                having.entry(rank).or_default().push(place);
            }
        }
        pairs
    }

    /// Returns the words of each note as ranks, the rarest word first, and the weights of the ranks.
    fn ranked(&self, notes: &[&Note]) -> (Vec<BTreeSet<usize>>, Vec<f64>) {
        let terms_of = |note: &Note| self.get(note.id).map(|text| &text.terms);
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for term in notes.iter().filter_map(|note| terms_of(note)).flatten() {
            *counts.entry(term).or_default() += 1;
        }
        let mut ranked: Vec<(u32, &str)> = counts.into_iter().map(|(term, n)| (n, term)).collect();
        ranked.sort_unstable();
        let weights = ranked
            .iter()
            .map(|(count, _)| smoothed_idf(notes.len(), *count));
        let weights = weights.collect();
        let ranks = ranked
            .iter()
            .enumerate()
            .map(|(rank, (_, term))| (*term, rank));
        let ranks: HashMap<&str, usize> = ranks.collect();
        let set = |note: &&Note| {
            let terms = terms_of(note).into_iter().flatten();
            terms
                .filter_map(|term| ranks.get(term.as_str()).copied())
                .collect()
        };
        (notes.iter().map(set).collect(), weights)
    }
}

/// Returns the rarest words of a note. Any note with at least this similarity has one of them.
fn prefix(set: &BTreeSet<usize>, least: f64, weigh: impl Fn(&usize) -> f64) -> Vec<usize> {
    // A small margin, because floating point sums are not exact.
    let mut left = set.iter().map(&weigh).sum::<f64>() * (1.0 - least) + 1e-6;
    let mut prefix = Vec::new();
    for rank in set {
        prefix.push(*rank);
        left -= weigh(rank);
        if left < 0.0 {
            break;
        }
    }
    prefix
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
            let (sets, weights) = texts.ranked(&notes);
            let mut expected = 0;
            for (place, set) in sets.iter().enumerate() {
                let likeness = |other| weighted_jaccard(other, set, |rank: &usize| weights[*rank]);
                expected += sets.iter().take(place).filter(|it| likeness(*it) >= least).count();
            }
            prop_assert_eq!(found.len(), expected);
        }
    }
}
