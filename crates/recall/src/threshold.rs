//! Whether a note fits a question well enough to come unasked.

use crate::rank::Candidate;

/// How well a note has to fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Floor {
    /// As measured to let about one unrelated question in forty through.
    Usual,
    /// Lower: more comes, more of it beside the point.
    Wide,
    /// Any other, to see what it would let through.
    At(f32),
}

/// How much better a note has to fit that was given often and never used.
const BENCHED: f32 = 1.3;

/// By how much more a sentence of several has to fit: with each one more there is one more chance to
/// fit by accident.
const BY_SENTENCES: f32 = 0.15;

impl Floor {
    /// What a note has to reach where the best of so many sentences is looked for.
    #[expect(clippy::cast_precision_loss, reason = "a handful of sentences")]
    pub fn of(self, sentences: usize) -> f32 {
        let floor = match self {
            Self::Usual => 0.32,
            Self::Wide => 0.24,
            Self::At(floor) => floor,
        };
        floor * (1.0 + BY_SENTENCES * (sentences.max(1) as f32).ln())
    }
}

/// Why a candidate does not reach the floor; nothing where it does.
///
/// `is_benched` is a note that was given often and never used.
pub fn refusal(found: &Candidate, floor: f32, is_benched: bool) -> Option<&'static str> {
    if found.passes(floor) {
        return (is_benched && !found.passes(BENCHED * floor))
            .then_some("fits too little for a note that never helped");
    }
    Some(if found.is_telling {
        "fits too little"
    } else {
        "shares too few words"
    })
}
