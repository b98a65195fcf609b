//! A patience diff: lines that are unique in both texts are matched first, the stretches between
//! them by the longest common subsequence.
//!
//! We do not use a crate, because all machines must agree on the alignment: a new version of a
//! crate might merge the same notes into different files. Lines are numbers here; equal numbers are
//! equal lines.

use std::{collections::HashMap, ops::Range};

/// The longest text that is aligned, in lines. In a longer one only the common start and end match.
pub(super) const MAX_LINES: usize = 20_000;

/// The largest table of the longest common subsequence, in cells. It also bounds the total: a text
/// of n lines fills at most 256 n cells.
const MAX_CELLS: usize = 256 * 256;

/// The number of the blank line. It separates all paragraphs, so it is a weak match: it is never an
/// anchor, and counts less than other lines.
pub(super) const BLANK: usize = 0;

/// The most recursive searches for unique lines in a stretch.
const MAX_DEPTH: usize = 8;

/// A replacement of lines. There is a matching line between two hunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The removed lines; empty for an insertion.
    pub(super) old: Range<usize>,
    /// The added lines; empty for a deletion.
    pub(super) new: Range<usize>,
}

/// The placement of a hunk that has several possible positions, such as a paragraph with the blank
/// line before or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placing {
    /// As far down as possible.
    Last,
    /// As far up as possible.
    First,
}

/// Returns the hunks that turn `old` into `new`, in order.
pub(super) fn hunks(old: &[usize], new: &[usize], placing: Placing) -> Vec<Hunk> {
    let mut aligner = Aligner {
        old,
        new,
        matches: Vec::new(),
    };
    aligner.align(0..old.len(), 0..new.len(), MAX_DEPTH);
    let mut hunks = Vec::new();
    let (mut from_old, mut from_new) = (0, 0);
    for (in_old, in_new) in aligner.matches.into_iter().chain([(old.len(), new.len())]) {
        if from_old < in_old || from_new < in_new {
            hunks.push(Hunk {
                old: from_old..in_old,
                new: from_new..in_new,
            });
        }
        (from_old, from_new) = (in_old + 1, in_new + 1);
    }
    slide(&mut hunks, old, new, placing);
    hunks
}

struct Aligner<'a> {
    old: &'a [usize],
    new: &'a [usize],
    /// Pairs of equal lines, both ascending.
    matches: Vec<(usize, usize)>,
}

impl Aligner<'_> {
    fn align(&mut self, mut old: Range<usize>, mut new: Range<usize>, depth: usize) {
        while !old.is_empty() && !new.is_empty() && self.old[old.start] == self.new[new.start] {
            self.matches.push((old.start, new.start));
            old.start += 1;
            new.start += 1;
        }
        let ends = (old.end, new.end);
        while !old.is_empty() && !new.is_empty() && self.old[old.end - 1] == self.new[new.end - 1] {
            old.end -= 1;
            new.end -= 1;
        }
        let (after_old, after_new) = (old.end..ends.0, new.end..ends.1);
        if !old.is_empty() && !new.is_empty() {
            self.align_middle(old, new, depth);
        }
        self.matches.extend(after_old.zip(after_new));
    }

    fn align_middle(&mut self, old: Range<usize>, new: Range<usize>, depth: usize) {
        if self.old.len().max(self.new.len()) > MAX_LINES {
            return;
        }
        let anchors = match depth {
            0 => Vec::new(),
            _ => longest_ascending(&self.unique_lines(&old, &new)),
        };
        if !anchors.is_empty() {
            let (mut from_old, mut from_new) = (old.start, new.start);
            for (in_old, in_new) in anchors {
                self.align(from_old..in_old, from_new..in_new, depth - 1);
                self.matches.push((in_old, in_new));
                (from_old, from_new) = (in_old + 1, in_new + 1);
            }
            self.align(from_old..old.end, from_new..new.end, depth - 1);
        } else if old.len().saturating_mul(new.len()) <= MAX_CELLS {
            self.align_by_table(old, new);
        }
    }

    /// Returns the positions of the lines that are unique in both ranges, in old order.
    fn unique_lines(&self, old: &Range<usize>, new: &Range<usize>) -> Vec<(usize, usize)> {
        #[derive(Default)]
        struct Seen {
            in_old: usize,
            in_new: usize,
            new_place: usize,
        }
        let mut seen: HashMap<usize, Seen> = HashMap::new();
        for line in self.old[old.clone()].iter().filter(|line| **line != BLANK) {
            seen.entry(*line).or_default().in_old += 1;
        }
        for place in new.clone() {
            if let Some(seen) = seen.get_mut(&self.new[place]) {
                seen.in_new += 1;
                seen.new_place = place;
            }
        }
        let once = |place: usize| {
            let seen = seen.get(&self.old[place])?;
            (seen.in_old == 1 && seen.in_new == 1).then_some((place, seen.new_place))
        };
        old.clone().filter_map(once).collect()
    }

    /// Matches a common subsequence of the greatest weight.
    fn align_by_table(&mut self, old: Range<usize>, new: Range<usize>) {
        let width = new.len() + 1;
        // The greatest weight from each pair of positions on. It fits, because the shorter
        // range has at most 256 lines.
        let mut best = vec![0_u16; (old.len() + 1) * width];
        let cell = |row: usize, column: usize| row * width + column;
        for row in (0..old.len()).rev() {
            let worth = if self.old[old.start + row] == BLANK {
                1
            } else {
                4
            };
            for column in (0..new.len()).rev() {
                best[cell(row, column)] =
                    if self.old[old.start + row] == self.new[new.start + column] {
                        best[cell(row + 1, column + 1)] + worth
                    } else {
                        best[cell(row + 1, column)].max(best[cell(row, column + 1)])
                    };
            }
        }
        let (mut row, mut column) = (0, 0);
        while row < old.len() && column < new.len() {
            let (in_old, in_new) = (old.start + row, new.start + column);
            if self.old[in_old] == self.new[in_new] {
                self.matches.push((in_old, in_new));
                row += 1;
                column += 1;
            } else if best[cell(row + 1, column)] >= best[cell(row, column + 1)] {
                row += 1;
            } else {
                column += 1;
            }
        }
    }
}

/// Returns a longest ascending subsequence by the second parts; the first parts are ascending
/// already.
fn longest_ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The last pair of the best subsequence of each length, and the predecessor of each pair.
    let mut last_of_length: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = last_of_length.partition_point(|&last| pairs[last].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| last_of_length[shorter]));
        match last_of_length.get_mut(length) {
            Some(last) => *last = index,
            None => last_of_length.push(index),
        }
    }
    let mut run: Vec<(usize, usize)> =
        std::iter::successors(last_of_length.last().copied(), |&index| before[index])
            .map(|index| pairs[index])
            .collect();
    run.reverse();
    run
}

/// Moves insertions and deletions as far as possible, so that a change has the same position
/// whatever surrounds it.
fn slide(hunks: &mut [Hunk], old: &[usize], new: &[usize], placing: Placing) {
    for index in 0..hunks.len() {
        let floor = index
            .checked_sub(1)
            .map_or(0, |previous| hunks[previous].old.end + 1);
        let ceiling = hunks
            .get(index + 1)
            .map_or(old.len(), |next| next.old.start - 1);
        let hunk = &mut hunks[index];
        let (text, run) = if hunk.old.is_empty() {
            (new, hunk.new.clone())
        } else if hunk.new.is_empty() {
            (old, hunk.old.clone())
        } else {
            continue;
        };
        let moved = |range: &Range<usize>, by: usize| match placing {
            Placing::Last => range.start + by..range.end + by,
            Placing::First => range.start - by..range.end - by,
        };
        let by = match placing {
            Placing::Last => (0..ceiling - hunk.old.end)
                .take_while(|step| text[run.start + step] == text[run.end + step])
                .count(),
            Placing::First => (1..=hunk.old.start - floor)
                .take_while(|step| text[run.start - step] == text[run.end - step])
                .count(),
        };
        hunk.old = moved(&hunk.old, by);
        hunk.new = moved(&hunk.new, by);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(old: &str, new: &str, placing: Placing) -> Vec<String> {
        let number = |line| {
            if line == b'_' {
                BLANK
            } else {
                usize::from(line)
            }
        };
        let numbers = |text: &str| text.bytes().map(number).collect::<Vec<_>>();
        hunks(&numbers(old), &numbers(new), placing)
            .into_iter()
            .map(|hunk| format!("{:?} {}", hunk.old, &new[hunk.new]))
            .collect()
    }

    /// A character is a line, `_` a blank line.
    #[test]
    fn changes_are_found() {
        for (old, new, last, first) in [
            ("", "", &[][..], &[][..]),
            ("abc", "abc", &[], &[]),
            ("", "ab", &["0..0 ab"], &["0..0 ab"]),
            ("abc", "axc", &["1..2 x"], &["1..2 x"]),
            ("abc", "ac", &["1..2 "], &["1..2 "]),
            ("a_b", "a_x_b", &["2..2 x_"], &["1..1 _x"]),
            ("a_b_c", "a_c", &["2..4 "], &["1..3 "]),
            ("aaa", "aaaa", &["3..3 a"], &["0..0 a"]),
            // Unique lines are anchors: `c` is not matched across the swap, and `_`
            // only if it fits.
            ("a_b_c", "a_x_y_c", &["2..3 x_y"], &["2..3 x_y"]),
            ("c_", "x_c", &["0..0 x_", "1..2 "], &["0..0 x_", "1..2 "]),
            ("abcd", "axcy", &["1..2 x", "3..4 y"], &["1..2 x", "3..4 y"]),
        ] {
            assert_eq!(shown(old, new, Placing::Last), last, "{old} {new}");
            assert_eq!(shown(old, new, Placing::First), first, "{old} {new}");
        }
    }

    #[test]
    fn only_the_ends_of_a_long_text_match() {
        let old: Vec<usize> = (1..=50_000).collect();
        let mut new = old.clone();
        new[100] = 1_000_000;
        new[49_000] = 1_000_001;
        let found = hunks(&old, &new, Placing::Last);
        assert_eq!(
            found,
            [Hunk {
                old: 100..49_001,
                new: 100..49_001
            }]
        );
    }

    proptest! {
        #[test]
        fn hunks_turn_one_text_into_the_other(
            old in prop::collection::vec(0..6_usize, 0..40),
            new in prop::collection::vec(0..6_usize, 0..40),
            up in any::<bool>(),
        ) {
            let placing = if up { Placing::First } else { Placing::Last };
            let mut out: Vec<usize> = Vec::new();
            let (mut in_old, mut in_new) = (0, 0);
            for (index, hunk) in hunks(&old, &new, placing).into_iter().enumerate() {
                prop_assert!(index == 0 || hunk.old.start > in_old, "hunks touch");
                out.extend(&old[in_old..hunk.old.start]);
                prop_assert_eq!(&old[in_old..hunk.old.start], &new[in_new..hunk.new.start]);
                out.extend(&new[hunk.new.clone()]);
                (in_old, in_new) = (hunk.old.end, hunk.new.end);
            }
            out.extend(&old[in_old..]);
            prop_assert_eq!(out, new);
        }
    }
}
