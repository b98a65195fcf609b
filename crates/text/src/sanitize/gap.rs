//! Gaps: where the middle or the start of a text is left out.

use std::borrow::Cow;

use super::{head, tail};

/// The guard beside a gap, in bytes: masked together with the kept text, then dropped.
pub(super) const GUARD: usize = 8 * 1024;

/// Encloses the number of dropped characters in a text. Cleaned text does not contain it.
pub(super) const GAP: char = '\0';

/// A text split at its gap.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitText<'a> {
    /// The text before the gap; all of it if there is no gap.
    pub(super) head: &'a str,
    /// The number of characters that the gap replaces.
    pub(super) left_out: usize,
    /// The text after the gap; all of it if there is no gap.
    pub(super) tail: &'a str,
    pub(super) is_whole: bool,
}

impl<'a> SplitText<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let gap = text
            .split_once(GAP)
            .and_then(|(head, rest)| Some((head, rest.split_once(GAP)?)));
        match gap {
            Some((head, (count, tail))) => SplitText {
                head,
                left_out: count.parse().unwrap_or(0),
                tail,
                is_whole: false,
            },
            None => SplitText {
                head: text,
                left_out: 0,
                tail: text,
                is_whole: true,
            },
        }
    }

    /// Returns the number of kept characters.
    pub(super) fn characters(&self) -> usize {
        let tail = if self.is_whole { "" } else { self.tail };
        self.head.chars().count() + tail.chars().count()
    }
}

pub(super) fn with_gap(head: &str, left_out: usize, tail: &str) -> String {
    format!("{head}{GAP}{left_out}{GAP}{tail}")
}

/// Drops the middle of a text that is much longer than the kept ends, which are given in bytes.
pub(super) fn without_middle(text: &str, first: usize, last: usize) -> Cow<'_, str> {
    if text.len() <= first + last + 2 * GUARD {
        return Cow::Borrowed(text);
    }
    let head = head(text, first + GUARD);
    let rest = &text[head.len()..];
    let tail = checked_tail(rest, last);
    let left_out = rest[..rest.len() - tail.len()].chars().count();
    Cow::Owned(with_gap(head, left_out, tail))
}

/// Drops the start of a text of which only the end is kept.
pub(super) fn without_start(text: &str, last: usize) -> String {
    let tail = checked_tail(text, last.saturating_sub(GUARD));
    let left_out = text[..text.len() - tail.len()].chars().count();
    with_gap("", left_out, tail)
}

/// Returns the end of a text with its guard; empty if the guard may begin inside a key.
fn checked_tail(text: &str, last: usize) -> &str {
    let tail = tail(text, last + GUARD);
    if is_base64(head(tail, GUARD)) {
        ""
    } else {
        tail
    }
}

/// Returns whether a text consists of long base64 runs, like the inside of a key.
pub(super) fn is_base64(text: &str) -> bool {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let bytes = text.as_bytes();
    let inside = bytes.iter().filter(|byte| is_inside(byte)).count();
    let runs = bytes.chunk_by(|a, b| is_inside(a) == is_inside(b)).count() / 2 + 1;
    let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
    inside * 4 > bytes.len() * 3
        && inside / runs >= 24
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

/// Returns the mark that says how many characters are left out.
pub(super) fn omission_mark(count: usize) -> String {
    let digits = count.to_string();
    let mut number = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            number.push(',');
        }
        number.push(digit);
    }
    format!("[… {number} characters left out …]")
}
