//! Reads candidate values: literals in quotation marks and bare values on a line.
//!
//! Knows how text is decorated (escapes, diffs, line numbers, wrappers), not what a secret is.

use super::names::is_one_of;
use super::scan::{byte, starts};
use super::tokens::{Alphabet, BLANK};
use super::values::JUDGED;

pub(super) const NAME: Alphabet = Alphabet::WORD.with(b"-.");

/// A quotation mark with any number of escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    /// The mark: `"`, `'` or a backtick.
    pub(super) mark: u8,
    /// The number of backslashes before it.
    slashes: usize,
}

impl Quote {
    /// Reads a quotation mark at a position.
    pub(super) fn at(text: &[u8], at: usize) -> Option<Self> {
        let slashes = Alphabet::new(b"\\").run_within(text, at, 16) - at;
        let mark = byte(text, at + slashes);
        matches!(mark, b'"' | b'\'' | b'`').then_some(Self { mark, slashes })
    }

    /// Returns its length in bytes.
    pub(super) fn length(self) -> usize {
        self.slashes + 1
    }

    /// Returns where the literal that begins after this mark ends, and where its closing mark ends;
    /// `None` if it does not end on its line.
    pub(super) fn close(self, text: &[u8], start: usize) -> Option<(usize, usize)> {
        let mut slashes = 0;
        for (at, byte) in text.iter().enumerate().skip(start) {
            match *byte {
                b'\\' => slashes += 1,
                b'\n' => return None,
                byte if byte == self.mark => {
                    // Fewer slashes end the enclosing literal, as many end this one, and more are a
                    // mark inside it.
                    let level = 2 * (self.slashes + 1);
                    if slashes < self.slashes || slashes % level == self.slashes {
                        return Some((at - slashes.min(self.slashes), at + 1));
                    }
                    slashes = 0;
                }
                _ => slashes = 0,
            }
        }
        None
    }
}

/// The terminator of a bare value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminator {
    /// White space, or a separator in code or text.
    Blank,
    /// White space only: a line of an environment file.
    Line,
    /// A separator of query parameters.
    Query,
    /// The closing mark of the enclosing literal.
    Quote(u8),
    /// The same as [`Terminator::Blank`], or a letter of another script, in a sentence without blanks.
    Script,
}

/// Returns where the bare value at a position ends.
pub(super) fn bare_end(text: &[u8], start: usize, ends: Terminator) -> usize {
    let stops = match ends {
        Terminator::Blank | Terminator::Script => Alphabet::new(b"\"'`<>,;)}]"),
        Terminator::Line => Alphabet::new(b"\""),
        Terminator::Query => Alphabet::new(b"\"'`<>&#;,)}]"),
        Terminator::Quote(_) => Alphabet::new(b"\n"),
    };
    let mut at = start;
    loop {
        let here = byte(text, at);
        let over = at >= text.len()
            || here.is_ascii_whitespace()
            || stops.has(here)
            || ends == Terminator::Quote(here)
            || ends == Terminator::Script && !here.is_ascii()
            || (matches!(here, b'&' | b';' | b',') && begins_field(text, at));
        if over {
            return at;
        }
        if here == b'\\' {
            let slashes = Alphabet::new(b"\\").run(text, at);
            if matches!(byte(text, slashes), b'"' | b'\'' | b'\n' | b' ' | 0) {
                return at;
            }
            at = slashes;
        }
        at += 1;
    }
}

/// Returns the bare value at a position; of a long one, the part that is judged.
pub(super) fn bare_value(text: &[u8], at: usize) -> &[u8] {
    let near = text.get(..at + JUDGED).unwrap_or(text);
    near.get(at..bare_end(near, at, Terminator::Blank))
        .unwrap_or_default()
}

/// Returns whether a separator at a position starts the next field or command.
fn begins_field(text: &[u8], at: usize) -> bool {
    let spaced = NAME.union(BLANK);
    let name = if byte(text, at) == b';' { spaced } else { NAME }.run_within(text, at + 1, 63);
    byte(text, at + 1) == byte(text, at)
        || (name > at + 1 && byte(text, name) == b'=')
                // HTML entities such as `&amp;` and `&#x3C;`.
        || (byte(text, at) == b'&' && (byte(text, at + 1) == b'#' || (name > at + 1 && byte(text, name) == b';')))
}

/// Returns whether the bare value at a position is the last on its line.
pub(super) fn is_last_on_line(text: &[u8], at: usize) -> bool {
    let end = at + bare_value(text, at).len();
    let rest = Alphabet::new(b" \t\r").run(text, end);
    let comment = byte(text, rest) == b'#' && rest > end;
    end > at
        && (rest >= text.len()
            || comment
            || matches!(byte(text, rest), b'\n' | b'"' | b'\'' | b'\\'))
}

/// Returns the start of a value on the next line, if the line ends at a position.
pub(super) fn broken(text: &[u8], at: usize) -> Option<usize> {
    let at = Alphabet::new(b"\r").run(text, at);
    (byte(text, at) == b'\n').then(|| line_start(text, at + 1))
}

/// Skips indentation and the markers of diffs, quotations and numbered lines.
fn line_start(text: &[u8], line: usize) -> usize {
    let fill = Alphabet::new(b" \t+>|");
    let at = fill.run(text, line);
    let digits = Alphabet::DIGIT.run(text, at);
    let is_numbered = digits > at && byte(text, digits) == b'\t';
    if is_numbered {
        fill.run(text, digits)
    } else {
        at
    }
}

/// Prefixes of a literal.
#[rustfmt::skip]
const LITERAL_PREFIXES: &[&str] = &[
    "b", "r", "f", "u", "l", "rb", "br", "u8", "@", "$", "r#", "@$", "$@",
];

/// Functions that only wrap a literal.
#[rustfmt::skip]
const WRAPPERS: &[&str] = &[
    "Some", "from", "new", "SecretStr", "SecretString", "Secret", "String", "str", "Just", "Ok",
    "of", "bytes", "quote",
];

/// Skips the prefix of a literal, or a call that only wraps it.
pub(super) fn wrapped(text: &[u8], at: usize) -> usize {
    let end = Alphabet::WORD.with(b":.@$#").run_within(text, at, 48);
    let word = text.get(at..end).unwrap_or_default();
    if starts(text, at, b"[]byte(") {
        return at + 7;
    }
    let short = word.len() <= 3 && is_one_of(word, LITERAL_PREFIXES);
    if short && Quote::at(text, end).is_some() {
        return end;
    }
    if byte(text, end) == b'(' {
        let last = word
            .rsplit(|byte| matches!(byte, b':' | b'.'))
            .next()
            .unwrap_or_default();
        if is_one_of(last, WRAPPERS) && Quote::at(text, end + 1).is_some() {
            return end + 1;
        }
    }
    if starts(text, at, b"new ") {
        wrapped(text, at + 4)
    } else {
        at
    }
}

/// Returns the start of the literal after a type annotation: `: &'static str = "x"`.
pub(super) fn typed(text: &[u8], at: usize) -> Option<usize> {
    let kind = Alphabet::WORD.with(b" &'<>[]?|.,:");
    let end = kind.run_within(text, at, 64);
    let assigned = byte(text, end) == b'='
        && byte(text, end + 1) != b'='
        && byte(text, end.wrapping_sub(1)) == b' ';
    let value = wrapped(text, BLANK.run(text, end + 1));
    (assigned && end > at && Quote::at(text, value).is_some()).then_some(value)
}
