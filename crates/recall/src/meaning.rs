//! Notes whose vector is similar to that of a query or prompt, for paraphrases and other languages.
//!
//! A cosine alone says little: with this model, even unrelated texts have 0.8. It counts by how many
//! standard deviations it exceeds what is expected of the best of as many unrelated notes: among ten
//! thousand, one is four deviations above the mean by chance, among thirty hardly two.

use std::collections::HashMap;

use anamnesis_embedding::Comparison;
use anamnesis_store::index::{Error, Index};

use crate::rank::{Candidate, Mask, Meaning, Ranked, selected};

/// The mean cosine of a query and a note, and its standard deviation, measured on the realistic set.
/// They stand for [`PRIOR_NOTES`] notes, because a small store has no distribution of its own.
const PRIOR_MEAN: f32 = 0.79;
const PRIOR_DEVIATION: f32 = 0.019;
const PRIOR_NOTES: f32 = 20.0;

/// How many notes a prompt may find by meaning without a matching word.
const MAX_BY_MEANING: usize = 10;

/// The cosines of a query and the notes of a mask.
struct Similarities {
    cosines: HashMap<u32, f32>,
    /// The numbers of the most similar notes, best first.
    best: Vec<u32>,
    mean: f32,
    deviation: f32,
}

impl Similarities {
    /// Compares the query's vector with those of the mask's notes.
    fn new(index: &Index, vector: &[f32], mask: &Mask) -> Result<Self, Error> {
        let selected = selected(index, mask)?;
        let vector = Comparison::new(vector);
        let mut cosines = HashMap::new();
        index.each_embedding(|number, other| {
            if selected.contains(&number) {
                cosines.insert(number, vector.best_cosine(other));
            }
        })?;
        let (mean, deviation) = distribution(&cosines);
        let mut best: Vec<u32> = cosines.keys().copied().collect();
        best.sort_unstable_by(|one, other| {
            let cosine = |number| cosines.get(number).copied().unwrap_or_default();
            cosine(other).total_cmp(&cosine(one)).then(one.cmp(other))
        });
        best.truncate(MAX_BY_MEANING);
        Ok(Self {
            cosines,
            best,
            mean,
            deviation,
        })
    }

    /// Returns the meaning of the note with this number, if it has a vector.
    fn meaning(&self, number: u32) -> Option<Meaning> {
        let similarity = *self.cosines.get(&number)?;
        let rank = self.best.iter().position(|best| *best == number);
        Some(Meaning {
            similarity,
            rank: rank.unwrap_or(usize::MAX),
            deviation: (similarity - self.mean) / self.deviation
                - expected_highest(self.cosines.len()),
        })
    }
}

/// Adds to candidates what their meaning says, and the notes that only the meaning finds. Sorts them by
/// the evidence of both, after those that the query names.
pub(crate) fn add_meaning(
    index: &Index,
    ranked: &mut Ranked,
    vector: &[f32],
    mask: &Mask,
) -> Result<(), Error> {
    let similarities = Similarities::new(index, vector, mask)?;
    for found in &mut ranked.candidates {
        found.meaning = similarities.meaning(found.number);
    }
    for &number in &similarities.best {
        let is_known = ranked.candidates.iter().any(|found| found.number == number);
        let meaning = similarities.meaning(number).filter(|_| !is_known);
        let Some(meaning) = meaning.filter(|meaning| meaning.gain() > 0.0) else {
            continue;
        };
        let Some((id, _)) = index.heading(number)? else {
            continue;
        };
        let Some(entry) = index.get(id)? else {
            continue;
        };
        let Some(origin) = mask.origin(&entry.project) else {
            continue;
        };
        ranked.candidates.push(Candidate {
            id,
            number,
            title: entry.title,
            updated: 0,
            origin,
            score: 0.0,
            coverage: 0.0,
            fit: 0.0,
            matched: Vec::new(),
            is_telling: false,
            has_telling_word: false,
            is_named: false,
            segment: 0,
            is_superseded: entry.superseded,
            meaning: Some(meaning),
        });
    }
    for found in &mut ranked.candidates {
        found.score = found.evidence().max(0.0);
    }
    // The sort is stable: equal evidence keeps the order of the words.
    ranked.candidates.sort_by(|one, two| {
        (two.is_named.cmp(&one.is_named)).then(two.place().total_cmp(&one.place()))
    });
    Ok(())
}

/// Returns by how many standard deviations the highest of so many normally distributed values is
/// expected to exceed their mean.
///
/// Cramér, "Mathematical Methods of Statistics" (1946), 28.6.
fn expected_highest(count: usize) -> f32 {
    let logarithm = (count.max(3) as f32).ln();
    let most = (2.0 * logarithm).sqrt();
    most - (logarithm.ln() + (4.0 * std::f32::consts::PI).ln()) / (2.0 * most)
}

/// Returns mean and standard deviation of the cosines, those of the prior included.
fn distribution(found: &HashMap<u32, f32>) -> (f32, f32) {
    let cosines = || found.values().copied();
    let count = found.len() as f32 + PRIOR_NOTES;
    let mean = (cosines().sum::<f32>() + PRIOR_NOTES * PRIOR_MEAN) / count;
    let squares = cosines().map(|cosine| (cosine - mean) * (cosine - mean));
    let prior = PRIOR_NOTES * PRIOR_DEVIATION * PRIOR_DEVIATION;
    (mean, ((squares.sum::<f32>() + prior) / count).sqrt())
}

#[cfg(test)]
mod tests {
    use anamnesis_note::id::NoteId;

    use crate::{
        note_set::{
            self, Outcome,
            tests::{LIMITS, injected},
        },
        session_start::tests::Fixture,
    };

    /// A store of notes with a title each, whose vectors have these cosines with (1, 0), and of forty
    /// others.
    fn store(notes: &[(&str, f32)]) -> (Fixture, Vec<NoteId>) {
        let notes: Vec<_> = notes
            .iter()
            .map(|(title, cosine)| (*title, vec![*cosine]))
            .collect();
        store_of_parts(&notes)
    }

    /// Like [`store`], with a vector for each part of a note.
    fn store_of_parts(notes: &[(&str, Vec<f32>)]) -> (Fixture, Vec<NoteId>) {
        let fixture = Fixture::new();
        let ids = notes
            .iter()
            .map(|(title, _)| fixture.add(title, |_| {}).path.id)
            .collect();
        for number in 0..40 {
            fixture.add(&format!("memo {number}"), |_| {});
        }
        let mut index = fixture.refreshed();
        index.set_embedding_model(Some("tiny")).unwrap();
        let pending = index.pending_embeddings(99).unwrap().into_iter();
        let vector = |cosine: &f32| {
            let vector = [*cosine, f32::sqrt(1.0 - cosine * cosine)];
            anamnesis_embedding::compact(&vector)
        };
        let vectors: Vec<_> = pending
            .map(|note| {
                let known = notes.iter().find(|(title, _)| *title == note.texts.title);
                let cosines = known.map_or(&[0.79][..], |(_, cosines)| cosines);
                let vectors = cosines.iter().flat_map(vector).collect();
                (note, vectors)
            })
            .collect();
        index.add_embeddings(&vectors).unwrap();
        (fixture, ids)
    }

    fn prompted(fixture: &Fixture, prompt: &str, vector: Option<&[f32]>) -> Outcome {
        note_set::tests::prompted(fixture, prompt, LIMITS, vector)
    }

    #[test]
    fn a_prompt_finds_a_note_by_words_and_meaning_together() {
        let (fixture, ids) = store(&[
            (
                "The staging database is restored from the nightly dump",
                0.84,
            ),
            ("The red boat leaves at noon", 0.79),
            ("Invoices are rounded per line", 0.78),
        ]);
        let near = Some(&[1.0, 0.0][..]);
        let prompt = "how do we get yesterday's data back into staging";
        // One common word is too little, and so is the meaning alone.
        assert_eq!(injected(&prompted(&fixture, prompt, None)), []);
        let outcome = prompted(&fixture, prompt, near);
        assert_eq!(injected(&outcome), [ids[0]]);
        let evidence = &outcome.given[0].evidence;
        assert!(evidence.matched.iter().any(|word| word == "staging"));
        let similarity = evidence.similarity.unwrap();
        assert!((similarity - 0.84).abs() < 0.01, "{similarity}");
        let unrelated = "please paint the fence of the garden green";
        assert_eq!(injected(&prompted(&fixture, unrelated, near)), []);
    }

    #[test]
    fn a_note_in_other_words_is_found_only_if_its_meaning_is_far_above_all_others() {
        let near = Some(&[1.0, 0.0][..]);
        let prompt = "wie kommen die Daten von gestern zurück";
        for (cosine, is_found) in [(0.99, true), (0.83, false)] {
            let (fixture, ids) = store(&[
                (
                    "The staging database is restored from the nightly dump",
                    cosine,
                ),
                ("The red boat leaves at noon", 0.79),
            ]);
            let expected = if is_found { &ids[..1] } else { &[] };
            assert_eq!(
                injected(&prompted(&fixture, prompt, near)),
                expected,
                "{cosine}"
            );
        }
    }

    #[test]
    fn a_meaning_that_is_hardly_above_all_others_gives_a_pointer_once() {
        let near = Some(&[1.0, 0.0][..]);
        for (prompt, cosine, is_pointer) in [
            ("wie kommen die Daten von gestern zurück", 0.83, true),
            ("wie kommen die Daten von gestern zurück", 0.80, false),
            // Too few words, and words that are in every prompt.
            ("Daten zurück", 0.83, false),
            ("please fix and run the tests", 0.83, false),
        ] {
            let (fixture, ids) = store(&[
                (
                    "The staging database is restored from the nightly dump",
                    cosine,
                ),
                ("The red boat leaves at noon", 0.75),
            ]);
            let outcome = prompted(&fixture, prompt, near);
            assert_eq!(injected(&outcome), []);
            let pointers = outcome.pointers.iter();
            let pointers: Vec<NoteId> = pointers.map(|note| note.recalled.note.id).collect();
            let first = pointers.first() == ids.first();
            assert_eq!(first, is_pointer, "{prompt}, {cosine}: {pointers:?}");
            assert_eq!(outcome.silence.is_none(), !pointers.is_empty());
            let held = outcome.held.iter().map(|held| &held.note);
            assert!(
                pointers
                    .iter()
                    .all(|id| held.clone().all(|held| *held != id.to_string()))
            );
        }
    }

    #[test]
    fn an_unrelated_meaning_counts_against_words_that_hardly_suffice() {
        let (fixture, ids) = store(&[
            ("Delete the screenshots of the merge request", 0.70),
            ("The red boat leaves at noon", 0.79),
            ("Invoices are rounded per line", 0.79),
        ]);
        let far = Some(&[1.0, 0.0][..]);
        let weak = "delete all screenshots from the red folder";
        assert_eq!(injected(&prompted(&fixture, weak, None)), [ids[0]]);
        assert_eq!(injected(&prompted(&fixture, weak, far)), []);
        // Words that clearly suffice, and a named note, need no meaning.
        for strong in [
            "delete the screenshots of that merge request",
            "what about: delete the screenshots of the merge request",
        ] {
            assert_eq!(injected(&prompted(&fixture, strong, far)), [ids[0]]);
        }
    }

    #[test]
    fn the_most_similar_part_of_a_note_counts() {
        let (fixture, ids) = store_of_parts(&[("A long day", vec![0.79, 0.99])]);
        let prompt = "wie kommen die Daten von gestern zurück";
        let outcome = prompted(&fixture, prompt, Some(&[1.0, 0.0]));
        assert_eq!(injected(&outcome), ids);
    }

    #[test]
    fn the_highest_of_many_values_exceeds_their_mean_by_more() {
        // Means of the highest of n normal values: Harter, "Expected values of normal order
        // statistics" (1961), to the precision of the asymptotic formula.
        for (count, expected) in [(10, 1.54), (100, 2.51), (1000, 3.24), (10_000, 3.85)] {
            let found = super::expected_highest(count);
            assert!((found - expected).abs() < 0.2, "{count}: {found}");
        }
        assert!(super::expected_highest(0).is_finite());
    }
}
