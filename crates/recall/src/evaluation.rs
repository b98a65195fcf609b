//! Measures of retrieval quality: ranks and reciprocal rank of answers, and the error rates of a
//! gate.
//!
//! Pure arithmetic. A measure over an empty set is `None`, not 0.

use anamnesis_note::id::NoteId;

/// The ranks of the relevant notes in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelevantRanks {
    /// Ranks from 0, ascending.
    ranks: Vec<usize>,
}

impl RelevantRanks {
    /// Locates the relevant notes in `found`, which is sorted best first.
    pub fn new(found: &[NoteId], right: &[NoteId]) -> Self {
        let ranks = found.iter().enumerate();
        let hits = ranks.filter(|(_, id)| right.contains(id));
        Self {
            ranks: hits.map(|(rank, _)| rank).collect(),
        }
    }

    /// Returns the rank of the first relevant note, from 0.
    pub fn first(&self) -> Option<usize> {
        self.ranks.first().copied()
    }

    /// Returns whether a relevant note is among the first `depth`.
    pub fn is_within(&self, depth: usize) -> bool {
        self.ranks.first().is_some_and(|rank| *rank < depth)
    }

    /// Returns the ranks of the relevant notes, from 0, ascending.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// Returns the reciprocal rank of the first relevant note, or 0 if it is not among the first
    /// `depth`.
    pub fn reciprocal_rank(&self, depth: usize) -> f64 {
        let first = self.ranks.first().filter(|rank| **rank < depth);
        first.map_or(0.0, |rank| 1.0 / number(rank + 1))
    }
}

/// What a gate did with an answerable question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateResult {
    /// Whether a relevant note would have been injected without the gate.
    pub is_reachable: bool,
    /// How many notes were injected.
    pub given: usize,
    /// Whether a relevant note was among them.
    pub is_right: bool,
}

/// A point of a gate's curve.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GatePoint {
    /// The false positive rate: the share of unanswerable questions for which something was
    /// injected.
    pub false_share: Option<f64>,
    /// The true positive rate: the share of reachable questions for which a relevant note was
    /// injected.
    pub kept: Option<f64>,
    /// The mean number of injected notes where there were any.
    pub notes: Option<f64>,
}

impl GatePoint {
    /// Computes a point from the number of notes injected per unanswerable question, and from the
    /// answerable questions.
    pub fn from_questions(
        unanswerable: impl IntoIterator<Item = usize>,
        answerable: &[GateResult],
    ) -> Self {
        let reachable = answerable.iter().filter(|gated| gated.is_reachable);
        let given = answerable.iter().map(|gated| gated.given);
        Self {
            false_share: share(unanswerable.into_iter().map(|given| given > 0)),
            kept: share(reachable.map(|gated| gated.is_right)),
            notes: mean(given.filter(|given| *given > 0).map(number)),
        }
    }
}

/// Returns the mean, or `None` if there are no values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values = values.into_iter();
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| {
        (sum + value, count + 1)
    });
    (count > 0).then(|| sum / number(count))
}

/// Returns the share of `true`, or `None` if there are no values.
pub fn share(answers: impl IntoIterator<Item = bool>) -> Option<f64> {
    let answers = answers.into_iter();
    mean(answers.map(|is_so| if is_so { 1.0 } else { 0.0 }))
}

#[expect(clippy::cast_precision_loss, reason = "counts of questions and notes")]
fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_beyond_the_depth_do_not_count() {
        let found: Vec<NoteId> = (0..9).map(|n| NoteId::made_of(&n.to_string())).collect();
        let ninth = RelevantRanks::new(&found, &found[8..]);
        assert!(ninth.is_within(9) && !ninth.is_within(8));
        assert!(ninth.reciprocal_rank(8) < f64::EPSILON);
    }

    #[test]
    fn a_gate_point_has_both_error_rates_and_the_size() {
        let gated = |is_reachable, given, is_right| GateResult {
            is_reachable,
            given,
            is_right,
        };
        let answered = [
            gated(true, 1, true),
            gated(true, 0, false),
            gated(false, 2, false),
        ];
        let point = GatePoint::from_questions([0, 0, 3, 0], &answered);
        assert_eq!(point.false_share, Some(0.25));
        assert_eq!(point.kept, Some(0.5));
        assert_eq!(point.notes, Some(1.5));
        assert_eq!(GatePoint::from_questions([], &[]), GatePoint::default());
    }
}
