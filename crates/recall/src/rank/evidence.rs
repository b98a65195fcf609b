//! Combines the evidence of a note's words and of its meaning.

use super::Candidate;

/// How much a standard deviation counts beside the words of a query, and how far a note has to exceed
/// the best of as many unrelated ones for its meaning to count for it.
///
/// Chosen on four collections and the tuned half of the realistic set: decision 0078.
const WEIGHT: f32 = 0.25;
const NEUTRAL_DEVIATION: f32 = 0.33;

/// How much an unrelated meaning counts at most against a note: little for whether its words suffice,
/// because the vector of a long note is vague, and more for its place among others.
const MAX_LOSS: f32 = 0.1;
const MAX_LOSS_OF_PLACE: f32 = 0.5;

/// How similar the meaning of a note is to that of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Meaning {
    /// The highest cosine of the query's vector and one of the note's.
    pub similarity: f32,
    /// By how many standard deviations the cosine exceeds what is expected of the best of as many
    /// unrelated notes.
    pub deviation: f32,
    /// Its position among the notes by similarity, from 0; `usize::MAX` beyond the best ones.
    pub rank: usize,
}

impl Meaning {
    /// Returns what the meaning adds to the evidence of the words; negative for an unrelated note.
    pub(crate) fn gain(self) -> f32 {
        WEIGHT * (self.deviation - NEUTRAL_DEVIATION)
    }
}

impl Candidate {
    /// Returns whether the note matches well enough: it is named exactly, or its words, or words and
    /// meaning together, reach the threshold.
    pub fn passes(&self, threshold: f32) -> bool {
        let can_be_judged = self.is_telling || self.meaning.is_some();
        self.is_named || can_be_judged && self.evidence() >= threshold
    }

    /// Returns what words and meaning together say for the note, on the scale of [`Self::fit`].
    pub(crate) fn evidence(&self) -> f32 {
        self.fit + self.gain(MAX_LOSS)
    }

    /// Like [`Self::evidence`], to compare the note with others that match.
    pub(crate) fn place(&self) -> f32 {
        self.fit + self.gain(MAX_LOSS_OF_PLACE)
    }

    fn gain(&self, max_loss: f32) -> f32 {
        self.meaning
            .map_or(0.0, |meaning| meaning.gain().max(-max_loss))
    }
}
