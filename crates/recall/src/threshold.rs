//! Decides whether a note matches a prompt well enough to be injected, in full or as a pointer.

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

/// The share of the threshold that words and a meaning that agrees with them have to reach, and the match
/// of words that needs no such meaning. A meaning agrees if it exceeds the best of as many unrelated notes.
const AGREEING_SHARE: f32 = 0.9;
const CLEAR_FIT: f32 = 1.0;

/// A pointer leads to a note that is among so many most similar ones, at most so far below the best of as
/// many unrelated notes, for a prompt of so many telling words.
const POINTED: usize = 2;
const MIN_DEVIATION: f32 = -0.3;
const MIN_WORDS: usize = 3;

/// The share of the threshold that words alone have to reach for a pointer.
const POINTER_SHARE: f32 = 0.73;

/// How much the threshold rises with the logarithm of the number of sentences: each sentence is
/// another chance of an accidental match.
const PER_SENTENCE: f32 = 0.15;

impl Floor {
    /// Returns the threshold for the best of this many sentences.
    pub fn threshold(self, sentences: usize) -> f32 {
        let floor = match self {
            Self::Usual => 0.55,
            Self::Wide => 0.44,
            Self::At(floor) => floor,
        };
        floor * (1.0 + PER_SENTENCE * (sentences.max(1) as f32).ln())
    }
}

/// How much of a matching note is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Its text, for strong evidence.
    Full,
    /// A line that says how to read it, for moderate evidence: cheap if it is wrong.
    Pointer,
}

/// The criteria for how much of a candidate is injected.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// The threshold.
    pub floor: f32,
    /// How many words of the prompt tell something.
    pub words: usize,
}

impl Gate {
    /// Returns how much of a note is injected, or why nothing is. `is_benched` is set for a note that was
    /// shown often and never used.
    pub fn tier(self, found: &Candidate, is_benched: bool) -> Result<Tier, WithholdingReason> {
        let is_strong = match found.meaning {
            _ if found.is_named => true,
            Some(meaning) => {
                found.passes(AGREEING_SHARE * self.floor)
                    && (meaning.deviation > 0.0 || found.fit > CLEAR_FIT)
            }
            None => found.passes(self.floor),
        };
        if is_strong {
            return if is_benched && !found.passes(BENCHED * self.floor) {
                Err(WithholdingReason::WeakMatchNeverUsed)
            } else {
                Ok(Tier::Full)
            };
        }
        let is_moderate = match found.meaning {
            Some(meaning) => {
                self.words >= MIN_WORDS
                    && meaning.rank < POINTED
                    && meaning.deviation > MIN_DEVIATION
            }
            // A match of one telling word has to be as good as for the text of a note.
            None if found.is_telling => found.fit >= POINTER_SHARE * self.floor,
            None => found.has_telling_word && found.fit >= self.floor,
        };
        if is_moderate && !is_benched {
            Ok(Tier::Pointer)
        } else if found.is_telling {
            Err(WithholdingReason::WeakMatch)
        } else {
            Err(WithholdingReason::TooFewWords)
        }
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_note::id::NoteId;

    use super::*;
    use crate::rank::{Meaning, Origin};

    fn candidate(fit: f32, meaning: Option<(f32, usize)>) -> Candidate {
        Candidate {
            id: NoteId::of_session("s"),
            number: 0,
            title: String::new(),
            updated: 0,
            origin: Origin::Own,
            score: 1.0,
            coverage: 1.0,
            fit,
            matched: Vec::new(),
            is_telling: true,
            has_telling_word: true,
            is_named: false,
            segment: 0,
            is_superseded: false,
            meaning: meaning.map(|(deviation, rank)| Meaning {
                similarity: 0.8,
                deviation,
                rank,
            }),
        }
    }

    #[test]
    fn strong_evidence_is_shown_in_full_and_moderate_evidence_as_a_pointer() {
        let gate = Gate {
            floor: Floor::Usual.threshold(1),
            words: 4,
        };
        let few_words = Gate { words: 2, ..gate };
        let weak = Err(WithholdingReason::WeakMatch);
        for (gate, fit, meaning, expected) in [
            // Words alone.
            (gate, 0.56, None, Ok(Tier::Full)),
            (few_words, 0.42, None, Ok(Tier::Pointer)),
            (gate, 0.38, None, weak),
            // Words and meaning agree.
            (gate, 0.45, Some((0.6, 0)), Ok(Tier::Full)),
            // They do not, so the words have to be clear.
            (gate, 0.62, Some((-0.2, 1)), Ok(Tier::Pointer)),
            (gate, 0.62, Some((-0.2, 2)), weak),
            (gate, 1.2, Some((-3.0, 9)), Ok(Tier::Full)),
            // Meaning alone.
            (gate, 0.1, Some((-0.2, 0)), Ok(Tier::Pointer)),
            (few_words, 0.1, Some((-0.2, 0)), weak),
            (gate, 0.1, Some((-0.4, 0)), weak),
        ] {
            let found = candidate(fit, meaning);
            assert_eq!(gate.tier(&found, false), expected, "{fit} {meaning:?}");
        }
        // One telling word is worth a pointer where its match would do for the text.
        for (fit, expected) in [
            (0.6, Ok(Tier::Pointer)),
            (0.5, Err(WithholdingReason::TooFewWords)),
        ] {
            let found = Candidate {
                is_telling: false,
                ..candidate(fit, None)
            };
            assert_eq!(gate.tier(&found, false), expected, "{fit}");
        }
        let named = Candidate {
            is_named: true,
            ..candidate(0.0, None)
        };
        assert_eq!(gate.tier(&named, false), Ok(Tier::Full));
        let benched = gate.tier(&candidate(0.6, None), true);
        assert_eq!(benched, Err(WithholdingReason::WeakMatchNeverUsed));
        assert_eq!(gate.tier(&candidate(0.42, None), true), weak);
    }
}
