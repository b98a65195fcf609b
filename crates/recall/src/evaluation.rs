//! Measures of retrieval quality: ranks and reciprocal rank of answers.
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
        first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64)
    }
}

/// Returns the mean, or `None` if there are no values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values = values.into_iter();
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| {
        (sum + value, count + 1)
    });
    (count > 0).then(|| sum / count as f64)
}

/// Returns the share of `true`, or `None` if there are no values.
pub fn share(answers: impl IntoIterator<Item = bool>) -> Option<f64> {
    let answers = answers.into_iter();
    mean(answers.map(|is_so| if is_so { 1.0 } else { 0.0 }))
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
}
