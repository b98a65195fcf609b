//! What answers are worth: how early the right notes come, and what a gate lets through.
//!
//! Sums only. Who asks, of which notes and by which engine, decides what the figures mean. Of nothing
//! measured there is no figure, rather than a nought.

use anamnesis_note::id::NoteId;

/// Where in an answer the right notes stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// From 0 on, in order.
    at: Vec<usize>,
    /// How many notes are right.
    right: usize,
}

impl Places {
    /// The places of the right notes among the found ones, which come best first.
    pub fn of(found: &[NoteId], right: &[NoteId]) -> Self {
        let places = found.iter().enumerate();
        let hits = places.filter(|(_, id)| right.contains(id));
        Self {
            at: hits.map(|(place, _)| place).collect(),
            right: right.len(),
        }
    }

    /// The place of the first right note, from 0 on.
    pub fn first(&self) -> Option<usize> {
        self.at.first().copied()
    }

    /// Tells whether a right note is among the first `depth`.
    pub fn is_within(&self, depth: usize) -> bool {
        self.at.first().is_some_and(|place| *place < depth)
    }

    /// The share of the right notes that are among the first `depth`.
    pub fn recall(&self, depth: usize) -> f64 {
        let found = self.at.iter().filter(|place| **place < depth).count();
        number(found) / number(self.right.max(1))
    }

    /// One divided by the place of the first right note, counted from 1; 0 if it is not among the first
    /// `depth`.
    pub fn reciprocal_rank(&self, depth: usize) -> f64 {
        let first = self.at.first().filter(|place| **place < depth);
        first.map_or(0.0, |place| 1.0 / number(place + 1))
    }

    /// How early all right notes come, as a share of what the best order would give: nDCG.
    pub fn gain(&self, depth: usize) -> f64 {
        let gain = |place: usize| 1.0 / number(place + 2).log2();
        let best: f64 = (0..self.right.min(depth)).map(gain).sum();
        let gained: f64 = self
            .at
            .iter()
            .filter(|place| **place < depth)
            .map(|place| gain(*place))
            .fold(0.0, |sum, gain| sum + gain);
        if best > 0.0 { gained / best } else { 0.0 }
    }
}

/// What became at a gate of a question that notes answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gated {
    /// Whether a right note would have come without a gate.
    pub is_reachable: bool,
    /// How many notes came.
    pub given: usize,
    /// Whether a right one was among them.
    pub is_right: bool,
}

/// A point of a gate's curve.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    /// The share of the questions that nothing answers and that were given something.
    pub false_share: Option<f64>,
    /// The share of the right notes within reach that came.
    pub kept: Option<f64>,
    /// How many notes came where any did.
    pub notes: Option<f64>,
}

impl Point {
    /// Of questions that nothing answers, told by how many notes they were given, and of others.
    pub fn of(unanswerable: impl IntoIterator<Item = usize>, answerable: &[Gated]) -> Self {
        let reachable = answerable.iter().filter(|gated| gated.is_reachable);
        let given = answerable.iter().map(|gated| gated.given);
        Self {
            false_share: share(unanswerable.into_iter().map(|given| given > 0)),
            kept: share(reachable.map(|gated| gated.is_right)),
            notes: mean(given.filter(|given| *given > 0).map(number)),
        }
    }
}

/// The mean; none of nothing.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values = values.into_iter();
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| {
        (sum + value, count + 1)
    });
    (count > 0).then(|| sum / number(count))
}

/// How many of these are so; none of nothing.
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
    fn measures_are_those_of_the_trade() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(NoteId::made_of);
        let check = |found: &[NoteId], right: &[NoteId], expected: &str| {
            let places = Places::of(found, right);
            let mut measured = [1, 3, 5, 10].map(|depth| places.recall(depth)).to_vec();
            measured.extend([places.reciprocal_rank(8), places.gain(10)]);
            let measured: Vec<_> = measured.iter().map(|value| format!("{value:.3}")).collect();
            assert_eq!(measured.join(" "), expected);
        };
        check(&[a, b], &[a], "1.000 1.000 1.000 1.000 1.000 1.000");
        check(&[b, a], &[a], "0.000 1.000 1.000 1.000 0.500 0.631");
        check(
            &[a, b, c, d],
            &[a, d],
            "0.500 0.500 1.000 1.000 1.000 0.877",
        );
        check(&[], &[a], "0.000 0.000 0.000 0.000 0.000 0.000");
        check(&[a], &[], "0.000 0.000 0.000 0.000 0.000 0.000");
    }

    #[test]
    fn what_comes_too_late_does_not_count() {
        let found: Vec<NoteId> = (0..9).map(|n| NoteId::made_of(&n.to_string())).collect();
        let ninth = Places::of(&found, &found[8..]);
        assert!(ninth.is_within(9) && !ninth.is_within(8));
        assert!(ninth.reciprocal_rank(8) < f64::EPSILON);
    }

    #[test]
    fn a_gate_is_told_by_what_it_lets_through_and_what_it_keeps() {
        let gated = |is_reachable, given, is_right| Gated {
            is_reachable,
            given,
            is_right,
        };
        let answered = [
            gated(true, 1, true),
            gated(true, 0, false),
            gated(false, 2, false),
        ];
        let point = Point::of([0, 0, 3, 0], &answered);
        assert_eq!(point.false_share, Some(0.25));
        assert_eq!(point.kept, Some(0.5));
        assert_eq!(point.notes, Some(1.5));
        assert_eq!(Point::of([], &[]), Point::default());
    }
}
