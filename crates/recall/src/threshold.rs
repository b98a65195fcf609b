//! Decides whether a note matches a prompt well enough to be injected.

use crate::{rank::Candidate, reason::WithholdingReason};

/// The match threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Floor {
    /// Tuned to a false positive rate of about 1 in 40 unrelated questions.
    Usual,
    /// A lower threshold: more notes are injected, more of them irrelevant.
    Wide,
    /// Any other value, for evaluation.
    At(f32),
}

/// The factor on the threshold for a note that was shown often and never used.
const BENCHED: f32 = 1.3;

/// How much the threshold rises with the logarithm of the number of sentences: each sentence is
/// another chance of an accidental match.
const PER_SENTENCE: f32 = 0.15;

impl Floor {
    /// Returns the threshold for the best of this many sentences.
    #[expect(clippy::cast_precision_loss, reason = "a handful of sentences")]
    pub fn threshold(self, sentences: usize) -> f32 {
        let floor = match self {
            Self::Usual => 0.45,
            Self::Wide => 0.36,
            Self::At(floor) => floor,
        };
        floor * (1.0 + PER_SENTENCE * (sentences.max(1) as f32).ln())
    }
}

/// Returns why a candidate does not reach the threshold, or `None` if it does.
///
/// `is_benched` is set for a note that was shown often and never used.
pub fn refusal(found: &Candidate, floor: f32, is_benched: bool) -> Option<WithholdingReason> {
    if found.passes(floor) {
        return (is_benched && !found.passes(BENCHED * floor))
            .then_some(WithholdingReason::WeakMatchNeverUsed);
    }
    Some(if found.is_telling {
        WithholdingReason::WeakMatch
    } else {
        WithholdingReason::TooFewWords
    })
}
