//! A text in which stretches are replaced, and where each byte came from.
//!
//! The rules read the normalised view of a text: what escapes stand for, without terminal sequences,
//! invisible characters and continued lines. Only the backslashes before a quotation mark stay,
//! because they tell which literal it closes. Masking replaces stretches in the same way.

use std::borrow::Cow;
use std::ops::Range;

use super::scan::MASK;
use crate::clean::{control_length, is_invisible};

/// Codes of HTML, URLs, Chinese text and numbered lines, each with the text that it represents.
#[rustfmt::skip]
const CODES: &[(&str, &str)] = &[
    ("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&apos;", "'"), ("&amp;", "&"),
    ("&lt;", "<"), ("&gt;", ">"), ("%20", " "), ("%22", "\""), ("%27", "'"), ("%3A", ":"),
    ("%3D", "="), ("：", ":"), ("→", "\t"),
];

/// A text with replaced stretches.
pub(super) struct View<'t> {
    pub(super) text: Cow<'t, str>,
    source: &'t str,
    pieces: Vec<Piece>,
}

/// A stretch of a view: a copy of the source, or what replaces a part of it.
#[derive(Clone, Copy)]
struct Piece {
    /// Its first byte in the view.
    at: usize,
    /// Its first byte in the source.
    source: usize,
    is_copy: bool,
}

impl<'t> View<'t> {
    fn new(source: &'t str) -> Self {
        let piece = Piece {
            at: 0,
            source: 0,
            is_copy: true,
        };
        Self {
            text: Cow::Borrowed(""),
            source,
            pieces: vec![piece],
        }
    }

    /// Returns the text with each range replaced by another text.
    pub(super) fn replaced(
        source: &'t str,
        ranges: impl Iterator<Item = Range<usize>>,
        with: &str,
    ) -> Self {
        let mut view = Self::new(source);
        for range in ranges {
            view.replace(range, with);
        }
        view.finish()
    }

    /// Returns the text as it is meant.
    pub(super) fn normalised(source: &'t str) -> Self {
        let mut view = Self::new(source);
        let mut meaning = String::new();
        let mut at = 0;
        while let Some(next) = next_code(source.as_bytes(), at) {
            meaning.clear();
            let rest = source.get(next..).unwrap_or_default();
            let (length, is_code) = code(rest, &mut meaning);
            at = next + length;
            if is_code {
                view.replace(next..at, &meaning);
            }
        }
        view.finish()
    }

    /// Copies the source up to a range, then adds what replaces the range.
    fn replace(&mut self, range: Range<usize>, with: &str) {
        self.copy(range.start);
        for (text, source, is_copy) in [(with, range.start, false), ("", range.end, true)] {
            let at = self.text.len();
            self.pieces.push(Piece {
                at,
                source,
                is_copy,
            });
            self.text.to_mut().push_str(text);
        }
    }

    fn copy(&mut self, end: usize) {
        let piece = self.pieces.last().map_or(0, |piece| piece.source);
        let part = self.source.get(piece..end).unwrap_or_default();
        self.text.to_mut().push_str(part);
    }

    fn finish(mut self) -> Self {
        if self.pieces.len() == 1 {
            self.text = Cow::Borrowed(self.source);
        } else {
            self.copy(self.source.len());
        }
        self
    }

    /// Returns the range of the source that a range of the view stands for.
    pub(super) fn range(&self, range: Range<usize>) -> Range<usize> {
        let piece = |at: usize| {
            let next = self.pieces.partition_point(|piece| piece.at <= at);
            let piece = next.checked_sub(1).and_then(|last| self.pieces.get(last));
            (piece.copied(), self.pieces.get(next))
        };
        let start = match piece(range.start).0 {
            Some(piece) if piece.is_copy => piece.source + range.start - piece.at,
            piece => piece.map_or(0, |piece| piece.source),
        };
        // The end is exclusive, so the last covered byte is translated.
        let last = range.end.saturating_sub(1);
        let end = match piece(last) {
            (Some(piece), _) if piece.is_copy => piece.source + last - piece.at + 1,
            (_, next) => next.map_or(self.source.len(), |next| next.source),
        };
        start..end
    }
}

/// Returns the first position at or after another where a code may begin.
fn next_code(text: &[u8], mut at: usize) -> Option<usize> {
    // Written so that the compiler compares all bytes of a block at once.
    let is_code = |byte: &u8| {
        let is = |code: u8| *byte == code;
        is(b'\\') | is(b'&') | is(b'%') | is(0x1B) | is(0xC2) | is(0xE2) | is(0xEF)
    };
    let blocks = text.get(at..)?.as_chunks::<16>().0.iter();
    let is_plain = |block: &&[u8; 16]| !block.iter().fold(false, |any, byte| any | is_code(byte));
    at += 16 * blocks.take_while(is_plain).count();
    Some(at + text.get(at..)?.iter().position(is_code)?)
}

/// Reads a possible code at the start of a text and adds what it stands for. Returns its length, and
/// whether it is one.
fn code(text: &str, meaning: &mut String) -> (usize, bool) {
    match text.as_bytes() {
        [b'\\', ..] => escape(text, meaning),
        [0x1B, ..] => (1 + control_sequence(&text[1..]), true),
        _ => {
            if let Some((code, plain)) = CODES.iter().find(|(code, _)| text.starts_with(code)) {
                meaning.push_str(plain);
                return (code.len(), true);
            }
            let letter = text.chars().next().unwrap_or_default();
            (letter.len_utf8(), is_invisible(letter))
        }
    }
}

/// Returns the length of the rest of a control sequence after the escape character; 0 if there is none.
/// The brackets of a mask begin none.
fn control_sequence(text: &str) -> usize {
    text.strip_prefix('[')
        .filter(|_| !text.starts_with(MASK))
        .map_or(0, |body| 1 + control_length(body))
}

/// Reads backslashes and what follows them.
fn escape(text: &str, meaning: &mut String) -> (usize, bool) {
    let count = text.bytes().take_while(|byte| *byte == b'\\').count();
    let (slashes, rest) = text.split_at(count);
    let (plain, length) = match rest.as_bytes() {
        // A continued line of a shell, as it is and in JSON.
        [b'\n', ..] if count % 2 == 1 => ("", 1),
        [b'\r', b'\n', ..] if count % 2 == 1 => ("", 2),
        [b'n', ..] if count == 3 => ("", 1),
        [b'n', ..] => ("\n", 1),
        [b'r', ..] => ("\r", 1),
        [b't', ..] => ("\t", 1),
        [b'/', ..] => ("/", 1),
        [kind @ (b'u' | b'x'), ..] => {
            let end = if *kind == b'u' { 5 } else { 3 };
            let number = rest.get(1..end);
            let number = number.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            // Half of a pair stands for a letter as well.
            let letter = number.map(|number| char::from_u32(number).unwrap_or('\u{10000}'));
            let Some(letter) = letter else {
                return (count, false);
            };
            if matches!(letter, '"' | '\'') {
                meaning.push_str(slashes);
            }
            if letter == '\u{1b}' {
                return (count + end + control_sequence(&rest[end..]), true);
            }
            if !is_invisible(letter) {
                meaning.push(letter);
            }
            ("", end)
        }
        _ => return (count, false),
    };
    meaning.push_str(plain);
    (count + length, true)
}
