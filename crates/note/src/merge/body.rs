//! The three-way merge of a note's text by line.

use std::{collections::HashMap, ops::Range};

use super::diff::{BLANK, Hunk, Placing, hunks};

/// Merges two versions of a text; `None` if they changed the same lines differently.
///
/// Changes of different lines are combined, even of adjacent ones. Two insertions at one place are
/// both kept, ordered by their bytes, or once if they are equal. If one side already contains the
/// other's change, it is kept unchanged.
pub(super) fn join(base: &str, a: &str, b: &str) -> Option<String> {
    if a == b || b == base {
        return Some(a.to_owned());
    }
    if a == base {
        return Some(b.to_owned());
    }
    let mut lines = Lines::new();
    let (base, a, b) = (lines.numbers(base), lines.numbers(a), lines.numbers(b));
    let both = |one: &[usize], other: &[usize]| Some(lines.both(one, other));
    let orders = [(&a, &b), (&b, &a)];
    // If one side only inserted lines and the other side has all of them, the other side is the
    // result. This is checked first, because `absorbs` may be true in both orders.
    let absorbing = orders
        .into_iter()
        .find(|(whole, part)| is_subsequence(&base, part) && is_subsequence(part, whole))
        .or_else(|| {
            let absorbs =
                |(whole, part): &(&Vec<usize>, &Vec<usize>)| absorbs(&base, whole, part, both);
            orders.into_iter().find(absorbs)
        });
    let joined = match absorbing {
        Some((whole, _)) => whole.clone(),
        None => weaves(&base, &a, &b, both).next()?,
    };
    // The text after the final blank lines may have been removed.
    Some(lines.text(&joined).trim_end().to_owned())
}

/// Returns whether `edited` adds lines to `base`.
pub(super) fn adds_lines(base: &str, edited: &str) -> bool {
    let mut lines = Lines::new();
    let (base, edited) = (lines.numbers(base), lines.numbers(edited));
    hunks(&base, &edited, Placing::Last)
        .iter()
        .any(|hunk| !hunk.new.is_empty())
}

/// Returns whether `outer` contains the lines of `inner` consecutively.
pub(super) fn contains_run(outer: &str, inner: &str) -> bool {
    inner.is_empty() || contains_lines(outer, inner)
}

/// Like [`contains_run`], but an empty `inner` is one blank line.
fn contains_lines(outer: &str, inner: &str) -> bool {
    format!("\n{outer}\n").contains(&format!("\n{inner}\n"))
}

/// Returns whether `whole` already has the change from `base` to `part`: undoing the change and
/// making it again gives `whole`.
fn absorbs(
    base: &[usize],
    whole: &[usize],
    part: &[usize],
    both: impl Fn(&[usize], &[usize]) -> Option<Vec<usize>> + Copy,
) -> bool {
    let mut gone = vec![false; base.len()];
    for hunk in hunks(base, whole, Placing::Last) {
        gone[hunk.old].fill(true);
    }
    let highest = whole.iter().chain(part).max().copied().unwrap_or(BLANK);
    let mut there = vec![false; highest + 1];
    for line in whole {
        there[*line] = true;
    }
    let may_be_contained = |mut hunk: Hunk| {
        hunk.old.all(|place| gone[place]) && part[hunk.new].iter().all(|line| there[*line])
    };
    // Reverting must be unambiguous: where `whole` replaced removed lines by its own, these may
    // be the same lines, rewritten.
    hunks(base, part, Placing::Last)
        .into_iter()
        .all(may_be_contained)
        && weaves(part, whole, base, |_, _| None).any(|without| {
            let again = weaves(base, &without, part, both).next();
            again.is_some_and(|again| again == whole)
        })
}

/// Returns whether `text` has all of `lines` in their order, possibly with others between them.
fn is_subsequence(lines: &[usize], text: &[usize]) -> bool {
    let mut rest = text.iter();
    lines.iter().all(|line| rest.any(|other| other == line))
}

/// Lines interned as numbers, for fast comparison.
struct Lines<'a> {
    texts: Vec<&'a str>,
    numbers: HashMap<&'a str, usize>,
}

impl<'a> Lines<'a> {
    fn new() -> Self {
        Self {
            texts: vec![""],
            numbers: HashMap::from([("", BLANK)]),
        }
    }

    fn numbers(&mut self, text: &'a str) -> Vec<usize> {
        if text.is_empty() {
            return Vec::new();
        }
        let number = |line| {
            *self.numbers.entry(line).or_insert_with(|| {
                self.texts.push(line);
                self.texts.len() - 1
            })
        };
        text.split('\n').map(number).collect()
    }

    fn text(&self, lines: &[usize]) -> String {
        let mut out = String::new();
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            out.push_str(self.texts[*line]);
        }
        out
    }

    /// Joins two insertions at one place.
    fn both(&self, one: &[usize], other: &[usize]) -> Vec<usize> {
        let (text, other_text) = (self.text(one), self.text(other));
        if contains_lines(&text, &other_text) {
            one.to_vec()
        } else if contains_lines(&other_text, &text) {
            other.to_vec()
        } else if text < other_text {
            [one, other].concat()
        } else {
            [other, one].concat()
        }
    }
}

/// Returns the results of [`weave`] for both placings.
///
/// A paragraph is inserted with the blank line before it or after it. The texts do not show which,
/// and it may decide whether two changes overlap.
fn weaves(
    base: &[usize],
    a: &[usize],
    b: &[usize],
    both: impl Fn(&[usize], &[usize]) -> Option<Vec<usize>> + Copy,
) -> impl Iterator<Item = Vec<usize>> {
    [Placing::Last, Placing::First]
        .into_iter()
        .filter_map(move |placing| weave(base, a, b, placing, both))
}

/// Merges two versions line by line; `None` if changes of both sides overlap and differ. `both`
/// joins two insertions at one place.
fn weave(
    base: &[usize],
    a: &[usize],
    b: &[usize],
    placing: Placing,
    both: impl Fn(&[usize], &[usize]) -> Option<Vec<usize>>,
) -> Option<Vec<usize>> {
    let (of_a, of_b) = (hunks(base, a, placing), hunks(base, b, placing));
    let (mut rest_a, mut rest_b) = (of_a.as_slice(), of_b.as_slice());
    let mut out = Vec::with_capacity(a.len().max(b.len()));
    let mut done = 0;
    while let Some(mut place) = first_place(rest_a, rest_b) {
        let (mut taken_a, mut taken_b) = (0, 0);
        loop {
            if let Some(hunk) = rest_a.get(taken_a).filter(|hunk| meet(&place, &hunk.old)) {
                place = place.start.min(hunk.old.start)..place.end.max(hunk.old.end);
                taken_a += 1;
            } else if let Some(hunk) = rest_b.get(taken_b).filter(|hunk| meet(&place, &hunk.old)) {
                place = place.start.min(hunk.old.start)..place.end.max(hunk.old.end);
                taken_b += 1;
            } else {
                break;
            }
        }
        let (hunks_a, hunks_b);
        (hunks_a, rest_a) = rest_a.split_at(taken_a);
        (hunks_b, rest_b) = rest_b.split_at(taken_b);
        out.extend(&base[done..place.start]);
        match (
            replacement(a, hunks_a, &place),
            replacement(b, hunks_b, &place),
        ) {
            (Some(one), Some(other)) if one == other => out.extend(one),
            (Some(one), Some(other)) if place.is_empty() => out.extend(both(one, other)?),
            (Some(_), Some(_)) => return None,
            (Some(one), None) | (None, Some(one)) => out.extend(one),
            (None, None) => {}
        }
        done = place.end;
    }
    out.extend(&base[done..]);
    Some(out)
}

/// Returns the old lines of the next change of either side; at one place, insertions come first.
fn first_place(a: &[Hunk], b: &[Hunk]) -> Option<Range<usize>> {
    [a.first(), b.first()]
        .into_iter()
        .flatten()
        .map(|hunk| hunk.old.clone())
        .min_by_key(|old| (old.start, old.end))
}

/// Returns whether two changes overlap, insert at one place, or one inserts inside the other.
fn meet(one: &Range<usize>, other: &Range<usize>) -> bool {
    let strictly_inside = |at: usize, range: &Range<usize>| range.start < at && at < range.end;
    match (one.is_empty(), other.is_empty()) {
        (true, true) => one.start == other.start,
        (true, false) => strictly_inside(one.start, other),
        (false, true) => strictly_inside(other.start, one),
        (false, false) => one.start < other.end && other.start < one.end,
    }
}

/// Returns a side's replacement of a range of the base; `None` if it changed nothing there.
fn replacement<'a>(side: &'a [usize], hunks: &[Hunk], place: &Range<usize>) -> Option<&'a [usize]> {
    let (first, last) = (hunks.first()?, hunks.last()?);
    let start = first.new.start - (first.old.start - place.start);
    let end = last.new.end + (place.end - last.old.end);
    Some(&side[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A character is a line; `_` is a blank line.
    fn joined(base: &str, a: &str, b: &str) -> Option<String> {
        let lines = |text: &str| {
            let lines = text.chars().map(|line| line.to_string().replace('_', ""));
            lines.collect::<Vec<_>>().join("\n")
        };
        let joined = join(&lines(base), &lines(a), &lines(b));
        let turned = join(&lines(base), &lines(b), &lines(a));
        assert_eq!(joined, turned, "{base} {a} {b}");
        let shown = |line: &str| if line.is_empty() { "_" } else { line }.to_owned();
        joined.map(|text| match text.as_str() {
            "" => String::new(),
            text => text.split('\n').map(shown).collect(),
        })
    }

    #[test]
    fn texts_are_joined_by_line() {
        for (base, a, b, expected) in [
            // One side changed, or both equally.
            ("abc", "abc", "axc", Some("axc")),
            ("abc", "axc", "axc", Some("axc")),
            ("abc", "", "", Some("")),
            // Adjacent changes.
            ("ab", "xb", "ay", Some("xy")),
            ("abc", "xbc", "ac", Some("xc")),
            ("abc", "ac", "axbc", Some("axc")),
            ("a_b", "x_b", "a_y", Some("x_y")),
            // Both insert.
            ("ab", "axb", "ayb", Some("axyb")),
            ("ab", "abx", "abx", Some("abx")),
            ("ab", "abxy", "abx", Some("abxy")),
            ("a", "a_x", "a_y", Some("a_x_y")),
            ("", "x", "y", Some("xy")),
            ("a_b", "a_x_b", "a_y_b", Some("a_x_y_b")),
            // An insertion next to lines that the other side changed or removed.
            ("ab", "aib", "xb", Some("xib")),
            ("a_b", "a_i_b", "a", Some("a_i")),
            ("a_b", "a_i_b", "b", Some("i_b")),
            // One side contains the other's change.
            ("ab", "xyb", "xb", Some("xyb")),
            ("abc", "xyc", "xbc", Some("xyc")),
            // Different changes of the same lines.
            ("abc", "axc", "ayc", None),
            ("abc", "axc", "ac", None),
            ("a_b_c", "a_x_c", "a_c", None),
            ("abcd", "aicd", "ad", None),
            ("abcd", "abicd", "axyd", None),
        ] {
            assert_eq!(joined(base, a, b).as_deref(), expected, "{base} {a} {b}");
        }
    }

    #[test]
    fn merging_a_side_again_inserts_nothing_twice() {
        let base = "p_123_e";
        for (a, b, expected) in [
            // Blank lines beside an insertion of the other side.
            ("p_123d_e_d", "p_123___e_g", "p_123d___e_d_g"),
            ("p_cb_123b_e", "p_c123__e", "p_cb_123b__e"),
            // A paragraph.
            ("_p_123b_ce", "p_b_123_c_e", "_p_b_123b_c_e"),
            // One side also removed a line.
            ("p_23d_e_d", "p_123___e_g", "p_23d___e_d_g"),
        ] {
            assert_eq!(joined(base, a, b).as_deref(), Some(expected), "{a} {b}");
            for side in [a, b] {
                let again = joined(base, expected, side);
                assert_eq!(again.as_deref(), Some(expected), "{a} {b}, again {side}");
            }
        }
    }

    #[test]
    fn an_inserted_blank_line_is_kept_beside_an_inserted_line() {
        assert_eq!(joined("ab", "a_b", "axb").as_deref(), Some("a_xb"));
        assert_eq!(joined("ab", "a_b", "ax_b").as_deref(), Some("ax_b"));
    }

    #[test]
    fn contains_run_compares_whole_lines() {
        for (outer, inner, expected) in [
            ("a\nb\nc", "b\nc", true),
            ("a\nb\nc", "a\nc", false),
            ("ab", "b", false),
            ("a", "", true),
            ("", "a", false),
        ] {
            assert_eq!(contains_run(outer, inner), expected, "{outer:?} {inner:?}");
        }
    }
}
