//! One pass over a text: finds anchors, runs their scanners, collects findings.
//!
//! The formats are data in `rules.rs`.

use std::ops::Range;

use super::tokens::{self, Finder, Rule};
use super::view::View;
use crate::word_list::split_first;

/// Replaces each masked part.
pub const MASK: &str = "[REDACTED]";

/// A masked part of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The name of the rule that found it.
    pub rule: &'static str,
    /// Its first byte in the input.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

impl Finding {
    /// Returns the same finding in the text that a view shows.
    pub(super) fn in_source(self, view: &View<'_>) -> Self {
        let Range { start, end } = view.range(self.start..self.end);
        Self { start, end, ..self }
    }
}

/// The state of a pass over a text.
#[derive(Default)]
pub(super) struct Scan<'t> {
    /// The text; always valid UTF-8.
    pub(super) text: &'t [u8],
    /// The end of the last finding; text before it is not read again.
    pub(super) done: usize,
    /// The end of the last classified name, so that a name with two anchors is read once.
    pub(super) named: usize,
    /// The end of the last searched JSON web key.
    pub(super) keyed: usize,
    /// The last command word seen, and its position.
    pub(super) command: Option<(&'static str, usize)>,
    /// The mark at the position that is scanned.
    pub(super) mark: &'static str,
    findings: Vec<Finding>,
    rule: &'static str,
}

impl<'t> Scan<'t> {
    /// Returns the bytes of a range, or none if it is outside the text.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'t [u8] {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Records a finding. An empty span, or one that overlaps an earlier finding, is ignored.
    pub(super) fn found(&mut self, start: usize, end: usize) {
        let start = widen(self.text, start, false);
        let end = widen(self.text, end.min(self.text.len()), true);
        if start < self.done || start >= end {
            return;
        }
        self.done = end;
        self.findings.push(Finding {
            rule: self.rule,
            start,
            end,
        });
    }
}

/// Returns the byte at a position, or 0 outside the text.
pub(super) fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// Returns whether a text continues with a literal at a position.
pub(super) fn starts(text: &[u8], at: usize, literal: &[u8]) -> bool {
    text.get(at..).is_some_and(|rest| rest.starts_with(literal))
}

/// Returns the first position of a needle at or after a position.
pub(super) fn find(text: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    let mut windows = text.get(from..)?.windows(needle.len());
    Some(from + windows.position(|part| part == needle)?)
}

/// Moves a position outward to the nearest character boundary.
fn widen(text: &[u8], mut at: usize, forward: bool) -> usize {
    while (0x80..0xC0).contains(&byte(text, at)) {
        at = if forward { at + 1 } else { at - 1 };
    }
    at
}

/// Scans a text once and returns the spans to mask.
pub(super) fn scan(text: &str, index: &Index) -> Vec<Finding> {
    let text = text.as_bytes();
    let mut scan = Scan {
        text,
        ..Scan::default()
    };
    let mut at = 0;
    while let Some(next) = index.next(text, at) {
        at = next;
        for anchor in index.anchors(byte(text, at), byte(text, at + 1)) {
            if !anchor.is_at(text, at) {
                continue;
            }
            (scan.rule, scan.mark) = (anchor.rule.name, anchor.mark);
            match &anchor.rule.finder {
                Finder::Token(parts, last) => {
                    tokens::find(&mut scan, at, anchor.rule, parts, *last);
                }
                Finder::Scanner(find) | Finder::AnyCase(find) => find(&mut scan, at),
            }
            if scan.done > at {
                break;
            }
        }
        at = scan.done.max(at + 1);
    }
    scan.findings
}

/// A mark and its rule.
#[derive(Clone, Copy)]
pub(super) struct Anchor {
    mark: &'static str,
    rule: &'static Rule,
}

impl Anchor {
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let mark = self.mark.as_bytes();
        let there = text.get(at..at + mark.len());
        there.is_some_and(|there| match self.rule.finder {
            Finder::AnyCase(_) => is_same_word(there, mark),
            _ => there == mark,
        })
    }

    const fn slot(&self) -> usize {
        let mark = self.mark.as_bytes();
        slot(mark[0], mark[1])
    }

    /// Returns the marks of all rules by their slots, and within a slot in the order of the rules.
    pub(super) const fn sorted<const N: usize>(rules: &'static [Rule]) -> [Self; N] {
        let (mark, rule) = ("", &rules[0]);
        let mut sorted = [Self { mark, rule }; N];
        let mut count = 0;
        let mut at = 0;
        while at < rules.len() {
            let mut rest = Some(rules[at].marks);
            while let Some(marks) = rest {
                let mark;
                (mark, rest) = split_first(marks, b'|');
                let rule = &rules[at];
                let anchor = Self { mark, rule };
                // Insert it after those of its slot.
                let mut place = count;
                while place > 0 && sorted[place - 1].slot() > anchor.slot() {
                    sorted[place] = sorted[place - 1];
                    place -= 1;
                }
                sorted[place] = anchor;
                count += 1;
            }
            at += 1;
        }
        assert!(count == N, "N is the number of marks");
        sorted
    }
}

/// The marks of all rules, in slots by their first two bytes. It is made when the program is built,
/// because every hook needs it.
///
/// Decision 0002 compares it with an Aho-Corasick automaton.
pub(super) struct Index {
    anchors: &'static [Anchor],
    /// The range of anchors in each slot.
    slots: [(u16, u16); SLOTS],
}

/// The number of slots.
const SLOTS: usize = 32 * 32;

/// Combines the low five bits of two bytes, which are equal for both cases of a letter.
const fn slot(first: u8, second: u8) -> usize {
    (first as usize & 31) << 5 | second as usize & 31
}

/// Returns whether two words are the same, ignoring the case of ASCII letters. Most pairs differ in
/// length or the first byte, which the standard library's comparison finds later.
#[inline]
pub(super) fn is_same_word(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one.first().map(u8::to_ascii_lowercase) == other.first().map(u8::to_ascii_lowercase)
        && one.eq_ignore_ascii_case(other)
}

impl Index {
    /// Returns the index of sorted anchors.
    pub(super) const fn new(anchors: &'static [Anchor]) -> Self {
        let mut slots = [(0, 0); SLOTS];
        let mut position: u16 = 0;
        while (position as usize) < anchors.len() {
            let range = &mut slots[anchors[position as usize].slot()];
            if range.1 == 0 {
                range.0 = position;
            }
            position += 1;
            range.1 = position;
        }
        Self { anchors, slots }
    }

    /// Returns the first position at or after another where a mark may be.
    fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let mut pairs = text.get(at..)?.windows(2);
        let found =
            pairs.position(|pair| matches!(pair, [one, two] if self.range(*one, *two).1 > 0));
        found.map(|found| at + found)
    }

    fn anchors(&self, first: u8, second: u8) -> &[Anchor] {
        let (start, end) = self.range(first, second);
        let anchors = self.anchors.get(usize::from(start)..usize::from(end));
        anchors.unwrap_or_default()
    }

    fn range(&self, first: u8, second: u8) -> (u16, u16) {
        let range = self.slots.get(slot(first, second));
        range.copied().unwrap_or_default()
    }
}
