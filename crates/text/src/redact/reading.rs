//! Reads candidate values: literals in quotation marks and bare values on a line.
//!
//! Knows how text is decorated (escapes, diffs, line numbers, wrappers), not what a secret is.

use super::names::is_one_of;
use super::scan::{byte, find, starts};
use super::tokens::Alphabet;
use super::values::JUDGED;

const BLANK: Alphabet = Alphabet::new(b" \t");
const NAME: Alphabet = Alphabet::WORD.with(b"-.");

/// A quotation mark with any number of escapes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quote {
    /// The mark: `"`, `'` or a backtick.
    pub(super) mark: u8,
    /// The number of backslashes before it.
    pub(super) slashes: usize,
    /// Its length in bytes; more than `slashes + 1` for an encoded mark (`\u0022`, `&quot;`).
    pub(super) length: usize,
}

/// Encoded quotation marks.
const CODED: &[(&str, u8)] = &[
    ("u0022", b'"'),
    ("u0027", b'\''),
    ("&quot;", b'"'),
    ("&#34;", b'"'),
    ("&#39;", b'\''),
    ("&apos;", b'\''),
    ("x22", b'"'),
    ("x27", b'\''),
    ("%22", b'"'),
];

impl Quote {
    /// Reads a quotation mark at a position.
    pub(super) fn at(text: &[u8], at: usize) -> Option<Self> {
        let slashes = Alphabet::new(b"\\").run_within(text, at, 16) - at;
        let mark = byte(text, at + slashes);
        if matches!(mark, b'"' | b'\'' | b'`') {
            return Some(Self {
                mark,
                slashes,
                length: slashes + 1,
            });
        }
        let rest = text.get(at + slashes..)?;
        let (code, mark) = CODED.iter().find(|(code, _)| {
            let escape = matches!(byte(code.as_bytes(), 0), b'u' | b'x');
            rest.starts_with(code.as_bytes()) && escape == (slashes > 0)
        })?;
        Some(Self {
            mark: *mark,
            slashes,
            length: slashes + code.len(),
        })
    }

    /// Returns where the literal that this mark opens ends, and where its closing mark ends; `None`
    /// if it does not end on its line.
    pub(super) fn close(self, text: &[u8], open: usize) -> Option<(usize, usize)> {
        let start = open + self.length;
        if self.length > self.slashes + 1 {
            let code = text.get(open..start)?;
            let limit = text.len().min(start + 4096);
            let end = find(text.get(..limit)?, start, code)?;
            return Some((end, end + code.len()));
        }
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

/// What terminates a bare value.
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
}

/// Returns where the bare value at a position ends.
pub(super) fn bare_end(text: &[u8], start: usize, ends: Terminator) -> usize {
    let stops = match ends {
        Terminator::Blank => Alphabet::new(b"\"'`<>,;)}]"),
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
            || (matches!(here, b'&' | b';' | b',') && begins_field(text, at));
        if over {
            return at;
        }
        if here == b'\\' {
            let slashes = Alphabet::new(b"\\").run(text, at);
            match byte(text, slashes) {
                // An escaped line end: the value continues on the next line.
                b'\n' if Alphabet::ALNUM.has(byte(text, slashes + 1)) => {
                    at = slashes + 1;
                    continue;
                }
                b'n' | b'r' | b't' | b'"' | b'\'' | b'u' | b'\n' | b' ' | 0 => return at,
                _ => at = slashes,
            }
        }
        at += 1;
    }
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
    let near = text.get(..at + JUDGED).unwrap_or(text);
    let end = bare_end(near, at, Terminator::Blank);
    let rest = Alphabet::new(b" \t\r").run(text, end);
    let comment = byte(text, rest) == b'#' && rest > end;
    end > at
        && (rest >= text.len()
            || comment
            || byte(text, rest) == b'\n'
            || matches!(
                text.get(rest..rest + 2),
                Some(b"\\n" | b"\\r" | b"\\\"" | b"\\\\")
            )
            || matches!(byte(text, rest), b'"' | b'\''))
}

/// Returns the start of a continued line after a backslash at a line end, without indentation.
pub(super) fn continued(text: &[u8], at: usize) -> usize {
    Alphabet::new(b" \t\r\n+").run(text, at + 1)
}

/// Returns the start of a value on the next line, if the line ends at a position.
pub(super) fn broken(text: &[u8], at: usize) -> Option<usize> {
    let at = Alphabet::new(b"\r").run(text, at);
    let slashes = Alphabet::new(b"\\").run(text, at);
    let next = if byte(text, at) == b'\n' {
        at + 1
    } else if slashes > at && byte(text, slashes) == b'n' {
        slashes + 1
    } else {
        return None;
    };
    Some(line_start(text, next))
}

/// Skips indentation and the markers of diffs, quotations and numbered lines.
fn line_start(text: &[u8], line: usize) -> usize {
    let fill = Alphabet::new(b" \t+>|");
    let at = fill.run(text, line);
    let digits = Alphabet::DIGIT.run(text, at);
    if digits > at && starts(text, digits, "→".as_bytes()) {
        return fill.run(text, digits + 3);
    }
    at
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
