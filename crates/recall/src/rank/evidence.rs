//! What the words and the meaning of a note together say for it.

use super::Candidate;

/// How much a standard deviation counts beside the words of a prompt, and how many of them count for
/// nothing. Calibrated on the tuned half of the realistic set.
const WEIGHT: f32 = 0.3;
const NEUTRAL_DEVIATION: f32 = 3.0;

/// How similar the meaning of a note is to that of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Meaning {
    /// The cosine of both vectors.
    pub similarity: f32,
    /// By how many standard deviations the cosine exceeds the mean over the searched notes.
    pub deviation: f32,
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
        self.exact.is_some() || can_be_judged && self.evidence() >= threshold
    }

    /// Returns what words and meaning together say for the note, on the scale of [`Self::fit`].
    pub(crate) fn evidence(&self) -> f32 {
        self.fit + self.meaning.map_or(0.0, Meaning::gain)
    }
}
