//! Finds where a name is: on a line of settings, in a query, in code or in a sentence.

use super::names::is_one_of;
use super::scan::byte;
use super::tokens::{Alphabet, BLANK};

/// The most bytes of a line beside a name that are read.
const LINE: usize = 160;

/// Words before the name of a variable that is set.
#[rustfmt::skip]
const DECLARATIONS: &[&str] = &[
    "export", "set", "setx", "declare", "-x", "env", "arg", "-e", "--env", "local", "readonly",
    "sudo",
];

/// The position of a name in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamePosition {
    /// First on its line, perhaps after `export` or similar.
    Line,
    /// In the query of a URL or in a form.
    Query,
    /// In a list of fields, such as a connection string.
    Field,
    /// After hyphens.
    Flag,
    /// First in a literal with this quotation mark.
    Quoted(u8),
    /// Anywhere else.
    Text,
}

impl NamePosition {
    /// Returns the position of the name that begins at a byte.
    pub(super) fn find(text: &[u8], start: usize) -> Self {
        match byte(text, start.wrapping_sub(1)) {
            b'?' | b'&' => return Self::Query,
            b';' => return Self::Field,
            // At the start of a line, a hyphen is a removed line of a diff.
            b'-' if !matches!(byte(text, start.wrapping_sub(2)), 0 | b'\n') => return Self::Flag,
            mark @ (b'"' | b'\'' | b'`') => return Self::Quoted(mark),
            b'{' => return Self::Text,
            _ => {}
        }
        let before = text
            .get(start.saturating_sub(48)..start)
            .unwrap_or_default();
        let line = before.iter().rposition(|byte| *byte == b'\n');
        let line = match line {
            Some(end) => before.get(end + 1..).unwrap_or_default(),
            None if before.len() == start => before,
            None => return Self::Text,
        };
        let line = line.strip_prefix(&b"//"[..]).unwrap_or(line);
        let leads = |word: &[u8]| {
            word.iter()
                .all(|byte| !byte.is_ascii_alphanumeric() && *byte != b'(' && *byte != b'=')
                || word.iter().all(u8::is_ascii_digit)
                || is_line_of_settings(word)
                || word.starts_with(b"$env:")
                || is_one_of(word, DECLARATIONS)
        };
        if line
            .split(|byte| BLANK.has(*byte))
            .filter(|word| !word.is_empty())
            .all(leads)
        {
            Self::Line
        } else {
            Self::Text
        }
    }
}

/// Endings of files that hold settings, not code.
#[rustfmt::skip]
const SETTINGS_FILES: &[&str] = &[
    "yml", "yaml", "env", "properties", "ini", "cfg", "conf", "cnf", "toml",
];

/// Returns whether a word is `path:line:` of a settings file, which `grep -n` puts before a line.
fn is_line_of_settings(word: &[u8]) -> bool {
    let mut parts = word.rsplit(|byte| *byte == b':');
    let rest = parts.next();
    let line = parts.next().unwrap_or_default();
    let path = parts.next().unwrap_or_default();
    let ending = path.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    rest == Some(b"")
        && !line.is_empty()
        && line.iter().all(u8::is_ascii_digit)
        && is_one_of(ending, SETTINGS_FILES)
}

/// Returns whether the lines beside a name are code: an open list before it, or the end of one after
/// it.
pub(super) fn is_code(text: &[u8], start: usize) -> bool {
    let (before, after) = neighbors(text, start);
    let opens =
        matches!(before.last(), Some(b'{' | b'(' | b',' | b';')) && !before.starts_with(b"#");
    opens || matches!(after.first(), Some(b'}' | b')')) || before.starts_with(b"class ")
}

/// Returns whether a name is in a settings file: after the header of a section, or beside a line
/// that sets a number, a path or a host.
pub(super) fn is_settings(text: &[u8], start: usize) -> bool {
    let (before, after) = neighbors(text, start);
    let sets = |line: &[u8]| {
        let separator = line.iter().position(|byte| *byte == b'=');
        let value = separator
            .and_then(|at| line.get(at + 1..))
            .unwrap_or_default();
        let value = value.trim_ascii();
        value.starts_with(b"/")
            || value == b"localhost"
            || !value.is_empty() && value.iter().all(u8::is_ascii_digit)
    };
    let section = || {
        let near = text
            .get(start.saturating_sub(512)..start)
            .unwrap_or_default();
        let mut lines = near.split(|byte| *byte == b'\n');
        lines.any(|line| line.starts_with(b"[") && line.trim_ascii_end().ends_with(b"]"))
    };
    sets(before) || sets(after) || section()
}

/// Returns the lines before and after the line at a position, without blanks around them.
fn neighbors(text: &[u8], at: usize) -> (&[u8], &[u8]) {
    let breaks = Alphabet::new(b"\n");
    let line_start = |at: usize| {
        let near = text.get(at.saturating_sub(LINE)..at).unwrap_or_default();
        at - near.iter().rev().take_while(|byte| **byte != b'\n').count()
    };
    let this = line_start(at);
    let before = this
        .checked_sub(1)
        .and_then(|end| text.get(line_start(end)..end));
    let next = breaks.until(text, at, LINE) + 1;
    let after = text.get(next..breaks.until(text, next, LINE));
    (
        before.unwrap_or_default().trim_ascii(),
        after.unwrap_or_default().trim_ascii(),
    )
}
