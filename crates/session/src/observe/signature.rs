//! Finds the most informative line of an error, and a stable signature of it.
//!
//! The informative line is the one that a person would quote. Its signature leaves out what varies
//! between days and machines: numbers, folders, hashes, times and quoted texts. Names stay, even in
//! quotes, because a missing `serde` and a missing `tokio` are different errors.
//!
//! Invariants: both are one line, and the work is linear.

use anamnesis_text::truncate::{first_characters, line};

use crate::phrases::is_in;

/// How many characters of a line are read.
const MAX_LOOK: usize = 400;

/// How many lines are read.
const MAX_LINES: usize = 1_000;

/// The maximum length of an informative line, in characters.
pub(super) const MAX_ERROR_LINE: usize = 200;

/// The maximum length of a signature, in characters.
const MAX_SIGNATURE: usize = 160;

/// The maximum length of a quoted name that is kept.
const MAX_QUOTED: usize = 48;

/// Parts of lines that say that something failed but not what, in lower case.
const GENERIC: [&str; 22] = [
    " failed,",
    " failing",
    " passed",
    "a complete log of this run",
    "aborting due to",
    "build failed",
    "command failed with",
    "could not compile",
    "elifecycle",
    "exit code",
    "exit status",
    "exited with",
    "failed to run custom build command",
    "failures=",
    "for more information",
    "lifecycle script",
    "make: ***",
    "process completed",
    "run with `rust_backtrace",
    "short test summary",
    "test failed, to rerun",
    "test result:",
];

/// Beginnings of lines that explain another line, in lower case.
const EXPLANATIONS: [&str; 12] = [
    "+", "-->", "=", ">", "at ", "file \"", "help:", "hint:", "info", "note:", "warning", "|",
];

/// Beginnings of lines of source code, which linters and compilers show below an error.
const CODE_STARTS: [&str; 25] = [
    "#include",
    "//",
    "/*",
    "@",
    "await ",
    "class ",
    "const ",
    "def ",
    "else",
    "export ",
    "expect(",
    "fn ",
    "for ",
    "func ",
    "function ",
    "if ",
    "let ",
    "print",
    "private ",
    "public ",
    "raise ",
    "return ",
    "throw ",
    "try",
    "var ",
];

/// Prefixes that tools put before every line of an error.
const PREFIXES: [&str; 6] = ["npm ERR! ", "npm error ", "E   ", "● ", "× ", "✖ "];

/// Beginnings of lines whose remainder describes the error, in lower case.
const ANNOUNCEMENTS: [&str; 9] = [
    "[error] ",
    "e: ",
    "error ",
    "error: ",
    "error(",
    "failed: ",
    "fatal: ",
    "fatal error",
    "panic: ",
];

/// Infixes before a description of the error, in lower case.
const INNER_ANNOUNCEMENTS: [&str; 4] = [": error:", ": error ", ": fatal error:", "panicked at '"];

/// Words that describe an error, in lower case.
const ERROR_WORDS: [&str; 45] = [
    "abort",
    "already exists",
    "already in use",
    "assert",
    "can not",
    "can't",
    "cannot",
    "conflict",
    "could not",
    "couldn't",
    "denied",
    "does not",
    "doesn't",
    "duplicate",
    "err_",
    "exceeded",
    "expected",
    "fail",
    "forbidden",
    "illegal",
    "incompatible",
    "invalid",
    "is not",
    "killed",
    "mismatch",
    "missing",
    "must be",
    "no matching",
    "no module",
    "no such",
    "not found",
    "not installed",
    "out of memory",
    "overflow",
    "panicked",
    "permission",
    "refused",
    "segmentation fault",
    "timed out",
    "timeout",
    "unable",
    "undefined",
    "unexpected",
    "unknown",
    "unrecogni",
];

/// Words without meaning of their own, in lower case.
const EMPTY_WORDS: &str = "\
    assert|assertion|assertionerror|code|err|error|errors|exception|exit|expect|expected|fail|failed|failure|\
    failures|false|fatal|null|received|status";

/// Returns a stable one-line signature of an error, or `None` if no line describes it.
///
/// The same error has the same signature on other days, in other folders and on other machines.
pub fn signature(error: &str) -> Option<String> {
    let line_of_error = informative_line(error)?;
    let signature = line(&normalised(&line_of_error), MAX_SIGNATURE);
    has_meaningful_word(&signature).then_some(signature)
}

/// Returns the most informative line of an error, unchanged, or `None` if no line describes it.
pub(super) fn informative_line(error: &str) -> Option<String> {
    let mut best = (0, None);
    let mut is_announced = false;
    for raw in error.lines().take(MAX_LINES) {
        let text = first_characters(raw.trim(), MAX_LOOK);
        let (text, weight) = informativeness(text, is_announced);
        if weight > best.0 {
            best = (weight, Some(text));
        }
        if !text.is_empty() {
            is_announced = announces_error(text);
        }
    }
    best.1.map(|text| line(text, MAX_ERROR_LINE))
}

/// Returns whether a line announces an error, which is in the next line.
fn announces_error(text: &str) -> bool {
    let is_panic = text.contains("panicked at") && text.ends_with(':');
    is_panic || text.starts_with("--- FAIL") || text.contains("What went wrong")
}

/// Returns the text of a line without prefixes, and how informative it is, from 0 to 6.
/// `is_announced` says that the line above announces an error.
fn informativeness(line: &str, is_announced: bool) -> (&str, usize) {
    let prefix = PREFIXES.iter().find(|prefix| line.starts_with(**prefix));
    let is_assertion = prefix == Some(&"E   ");
    let text = line.get(prefix.map_or(0, |prefix| prefix.len())..);
    let text = text.unwrap_or_default().trim();
    let lower = text.to_lowercase();
    let starts = |list: &[&str]| list.iter().any(|start| lower.starts_with(start));
    let holds = |list: &[&str]| list.iter().any(|part| lower.contains(part));
    let weight = if starts(&EXPLANATIONS) || holds(&GENERIC) || is_source_code(text) {
        0
    } else if is_assertion {
        6
    } else if !has_meaningful_word(&lower) {
        0
    } else if lower.starts_with("error[") || lower.contains("error ts") || names_exception(text) {
        6
    } else if is_announced || starts(&ANNOUNCEMENTS) || holds(&INNER_ANNOUNCEMENTS) {
        5
    } else if has_position(text) {
        4
    } else if holds(&ERROR_WORDS) {
        3
    } else if has_speaker(text) {
        2
    } else {
        0
    };
    (text, weight)
}

/// Returns whether a line is source code: of a code frame (`12 | let a = b;`), or by its shape.
fn is_source_code(text: &str) -> bool {
    let text = text.trim_start_matches(['>', ' ', '│', '|']);
    let is_numbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_framed =
        is_numbered.len() < text.len() && is_numbered.trim_start().starts_with(['|', '│', '┃']);
    let is_call = || {
        let called = text.split_once('(').map_or("", |(called, _)| called);
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':');
        !called.is_empty() && called.chars().all(is_path) && text.ends_with(')')
    };
    is_framed
        || text.ends_with(['{', '}', ';', '(', '['])
        || text.contains(" := ")
        || CODE_STARTS.iter().any(|start| text.starts_with(start))
        || is_call()
}

/// Returns whether a line begins with a place in a file: `src/a.go:12:5: …`, `a.ts(3,1): …`.
fn has_position(text: &str) -> bool {
    let (place, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    let after_name = |mark| place.split_once(mark).map_or("", |(_, after)| after);
    let starts_with_digit = |after: &str| after.starts_with(|c: char| c.is_ascii_digit());
    !rest.is_empty()
        && place.contains('.')
        && (starts_with_digit(after_name(':')) || starts_with_digit(after_name('(')))
}

/// Returns whether a lower-case text has a meaningful word.
fn has_meaningful_word(lower: &str) -> bool {
    lower
        .split(|c: char| !c.is_alphabetic())
        .any(|word| word.chars().count() > 2 && !is_in(EMPTY_WORDS, word))
}

/// Returns whether a line starts with an exception's name: `TypeError: …`.
fn names_exception(text: &str) -> bool {
    const NAMES: [&str; 2] = ["Error", "Exception"];
    let mut words = text.split_whitespace().take(6);
    let first = words.next().unwrap_or_default();
    let is_name = |word: &str| NAMES.iter().any(|name| word.ends_with(name));
    let is_long = first.len() > "Exception".len();
    (is_long && is_name(first))
        || std::iter::once(first)
            .chain(words)
            .any(|word| word.strip_suffix(':').is_some_and(is_name))
}

/// Returns whether a line starts with a program's name: `mkdir: …`.
fn has_speaker(text: &str) -> bool {
    text.split_once(": ").is_some_and(|(speaker, _)| {
        !speaker.is_empty()
            && speaker
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    })
}

/// Removes what varies between days and machines, and converts to lower case.
fn normalised(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, quoted, after)) = next_quoted(rest) {
        push_words(&mut result, before);
        let is_name = quoted.chars().count() <= MAX_QUOTED && !quoted.contains(' ');
        result.push('\'');
        if is_name {
            push_word(&mut result, quoted);
        } else {
            result.push('*');
        }
        result.push('\'');
        rest = after;
    }
    push_words(&mut result, rest);
    result.to_lowercase()
}

/// Splits a text at its first quotation into before, inside and after.
fn next_quoted(text: &str) -> Option<(&str, &str, &str)> {
    let mut last = ' ';
    for (open, mark) in text.char_indices() {
        let close = match mark {
            // The apostrophe in `don't` is no quote.
            '\'' | '"' | '`' if !last.is_alphanumeric() => mark,
            '‘' => '’',
            '“' => '”',
            '«' => '»',
            _ => {
                last = mark;
                continue;
            }
        };
        last = mark;
        let inner = text.get(open + mark.len_utf8()..)?;
        let end = inner.char_indices().find(|&(end, character)| {
            let after = inner.get(end + character.len_utf8()..);
            let follows_word = after.is_some_and(|after| after.starts_with(char::is_alphanumeric));
            character == close && !follows_word
        });
        if let Some((end, _)) = end {
            return Some((
                text.get(..open)?,
                inner.get(..end)?,
                inner.get(end + close.len_utf8()..)?,
            ));
        }
    }
    None
}

fn push_words(result: &mut String, text: &str) {
    for piece in text.split_inclusive(char::is_whitespace) {
        push_word(result, piece);
    }
}

/// Appends a word without its folder and its numbers.
fn push_word(result: &mut String, word: &str) {
    if word.contains("://") {
        result.push_str("<url> ");
        return;
    }
    let trimmed = word.trim_end_matches(['/', '\\']);
    let name = match trimmed.rfind(['/', '\\']) {
        Some(slash) => {
            // Keep an opening bracket: `(src/a.rs)` and `(a.rs)` are the same.
            let opening = word.len() - word.trim_start_matches(['(', '[', '{', '<']).len();
            result.push_str(word.get(..opening).unwrap_or_default());
            trimmed.get(slash + 1..).unwrap_or_default()
        }
        None => word,
    };
    let start = result.len();
    if is_uuid(name.trim_matches(|c: char| !c.is_ascii_alphanumeric())) {
        result.push_str("# ");
        return;
    }
    let mut run = String::new();
    for character in name.chars() {
        if character.is_alphanumeric() {
            run.push(character);
        } else {
            push_run(result, start, &run);
            run.clear();
            result.push(character);
        }
    }
    push_run(result, start, &run);
}

/// Appends a run of letters and digits; `start` is where its word begins.
fn push_run(result: &mut String, start: usize, run: &str) {
    let digits = run.chars().filter(char::is_ascii_digit).count();
    if digits == 0 || is_code(run) {
        result.push_str(run);
        return;
    }
    let mut changes = 0;
    let mut last = None;
    for character in run.chars() {
        let is_digit = character.is_ascii_digit();
        changes += usize::from(last.is_some_and(|last| last != is_digit));
        last = Some(is_digit);
    }
    let is_hash = run.len() >= 7 && run.chars().all(|c| c.is_ascii_hexdigit());
    let starts_with_digit = run.starts_with(|c: char| c.is_ascii_digit());
    let (before, after) = if is_hash || changes > 2 {
        ("", "")
    } else if starts_with_digit {
        let unit = run.trim_start_matches(|c: char| c.is_ascii_digit());
        ("", if changes > 1 { "" } else { unit })
    } else if changes == 1 && digits <= 3 {
        // `utf8`, `i32` and `sha256` are names.
        result.push_str(run);
        return;
    } else {
        let name = run.find(|c: char| c.is_ascii_digit()).unwrap_or_default();
        (run.get(..name).unwrap_or_default(), "")
    };
    result.push_str(before);
    // `12:5`, `1.2.3` and `2026-11-21` become one placeholder.
    let word = result.get(start..).unwrap_or_default();
    let parted = word.trim_end_matches(['.', ':', '-', ',', '/', '+']);
    if before.is_empty() && parted.ends_with('#') {
        let length = start + parted.len();
        result.truncate(length);
    } else {
        result.push('#');
    }
    result.push_str(after);
}

/// Returns whether a run is an error code: `E0308`, `TS2322`.
fn is_code(run: &str) -> bool {
    let letters = run.chars().take_while(char::is_ascii_uppercase).count();
    let digits = run.chars().skip(letters).collect::<String>();
    (1..=6).contains(&letters)
        && (2..=5).contains(&digits.len())
        && digits.chars().all(|c| c.is_ascii_digit())
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.char_indices().all(|(position, c)| match position {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests;
