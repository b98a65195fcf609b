//! Formats numbers, times, paths and lines for people.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use anamnesis_note::note::parse_timestamp;
use anamnesis_text::truncate;
use chrono::{DateTime, SecondsFormat, Utc};

/// The width of text in columns where no terminal says its own.
pub const WIDTH: usize = 80;

/// The narrowest and the widest text, in columns.
const NARROWEST: usize = 40;
const WIDEST: usize = 160;

static COLUMNS: AtomicUsize = AtomicUsize::new(WIDTH);

/// Returns the width of text in columns.
pub fn width() -> usize {
    COLUMNS.load(Ordering::Relaxed)
}

/// Fits all text to a terminal with this many columns.
pub fn set_width(columns: usize) {
    COLUMNS.store(columns.clamp(NARROWEST, WIDEST), Ordering::Relaxed);
}

/// A text with less room than this in its line gets a line of its own.
pub const MIN_ROOM: usize = 30;

/// How many lines a list shows by default.
pub const LIST_LENGTH: usize = 20;

/// Formats a count: `1 note`, `1,204 notes`.
pub fn count(amount: usize, thing: &str) -> String {
    let ending = match amount {
        1 => "",
        _ if thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {thing}{ending}", number(amount))
}

/// Formats a number of rows. A negative one counts as none.
pub fn counted(amount: i64, thing: &str) -> String {
    count(usize::try_from(amount).unwrap_or(0), thing)
}

/// Formats a share, rounded to whole percent; empty if the whole is 0.
pub fn share(part: usize, whole: usize) -> String {
    let percent = (200 * part + whole).checked_div(2 * whole);
    percent.map_or_else(String::new, |percent| format!(" ({percent} %)"))
}

/// Formats a number with thousands separators.
pub fn number(amount: usize) -> String {
    let digits = amount.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a number of bytes.
pub fn size(bytes: u64) -> String {
    let rounded = |unit: u64| number(usize::try_from(bytes / unit).unwrap_or(usize::MAX));
    match bytes {
        ..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", rounded(1_000)),
        _ => format!("{} MB", rounded(1_000_000)),
    }
}

/// Formats a number of microseconds as milliseconds.
pub fn milliseconds(microseconds: i64) -> String {
    match microseconds {
        ..10_000 => format!("{}.{} ms", microseconds / 1000, microseconds % 1000 / 100),
        _ => format!("{} ms", microseconds / 1000),
    }
}

/// Formats the time since `time`, as in lists: `now`, `5 min`, `3 h`, `41 d`.
pub fn age(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (now - time).num_seconds();
    match seconds {
        ..60 => "now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats the time since `time` for a sentence: `just now`, `5 min ago`, `yesterday`.
pub fn ago(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match age(time, now).as_str() {
        "now" => "just now".to_owned(),
        "1 d" => "yesterday".to_owned(),
        age => format!("{age} ago"),
    }
}

/// Formats the age of a note's timestamp.
pub fn age_of(text: &str, now: DateTime<Utc>) -> String {
    parse_timestamp(text).map_or_else(|| "age unknown".to_owned(), |time| age(time, now))
}

/// Formats a day, from milliseconds since 1970.
pub fn date(milliseconds: i64) -> String {
    DateTime::from_timestamp_millis(milliseconds)
        .map_or_else(String::new, |time| time.date_naive().to_string())
}

/// Converts milliseconds since 1970.
pub fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

/// Formats a time for JSON output, from milliseconds since 1970.
pub fn iso(milliseconds: i64) -> String {
    time(milliseconds).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Wraps a text at [`width`] and indents each line. Every line ends with a line break.
pub fn wrapped(text: &str, indent: usize) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for line in text.lines() {
        wrap(line, [indent; 2], &mut out);
    }
    out
}

/// Wraps the lines that are longer than [`width`], and indents what follows below them. A line with
/// something to copy, such as a hint, stays whole.
pub fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for line in text.split_inclusive('\n') {
        let rest = line.trim_start_matches(' ');
        let is_to_copy = rest.starts_with(['→', '|']) || rest.starts_with("Undo: ");
        if is_to_copy || line.trim_end().chars().nth(width()).is_none() {
            out.push_str(line);
        } else {
            let indent = line.len() - rest.len();
            wrap(rest, [indent, indent + 2], &mut out);
        }
    }
    out
}

/// Adds a line, wrapped at [`width`], with the indent of its first line and of the others.
fn wrap(line: &str, indents: [usize; 2], out: &mut String) {
    let (mut rest, mut indent) = (line.trim_end(), indents[0]);
    loop {
        let head = truncate::first_characters(rest, width().saturating_sub(indent).max(1));
        let is_all = head.len() == rest.len();
        // Breaks at a space if there is one, or else anywhere.
        let end = match head.rfind(' ') {
            Some(blank) if !is_all && !head[..blank].trim().is_empty() => blank,
            _ => head.len(),
        };
        let (head, tail) = rest.split_at(end);
        if !head.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(head.trim_end());
        }
        out.push('\n');
        rest = tail.trim_start_matches(' ');
        indent = indents[1];
        if rest.is_empty() {
            break;
        }
    }
}

/// Formats a path with `~` for the user's home.
pub fn home_path(path: &Path, user_home: Option<&Path>) -> String {
    match user_home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) if cfg!(windows) => format!("~/{}", rest.display()).replace('\\', "/"),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// Cuts a text to a number of characters and marks the cut.
pub fn shorten(text: &str, length: usize) -> String {
    if text.is_empty() {
        return "(no title)".to_owned();
    }
    truncate::cut(text, length).into_owned()
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    if word.contains([
        ' ', '\'', '"', '$', '`', '\\', ';', '&', '|', '(', ')', '<', '>', '*', '?',
    ]) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1204), "1,204");
        assert_eq!(number(1_234_567), "1,234,567");
        let shares = [share(9, 38), share(1, 1), share(0, 0)];
        assert_eq!(shares, [" (24 %)", " (100 %)", ""]);
        assert_eq!(count(5, "search"), "5 searches");
        assert_eq!(
            (count(1, "note"), count(0, "note")),
            ("1 note".to_owned(), "0 notes".to_owned())
        );
    }

    #[test]
    fn sizes_are_for_people() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1 kB"),
            (999_999, "999 kB"),
            (38_000_000, "38 MB"),
            (2_000_000_000, "2,000 MB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn times_are_for_people() {
        let now = DateTime::from_timestamp(1_767_323_045, 0).unwrap();
        for (seconds, text) in [
            (-50, "just now"),
            (0, "just now"),
            (59, "just now"),
            (60, "1 min ago"),
            (7200, "2 h ago"),
            (90_000, "yesterday"),
            (200_000, "2 d ago"),
        ] {
            assert_eq!(ago(now - chrono::TimeDelta::seconds(seconds), now), text);
        }
        assert_eq!(age_of("nonsense", now), "age unknown");
        assert_eq!(age_of("2026-01-01T03:04:05Z", now), "1 d");
    }

    #[test]
    fn paths_below_home_are_short() {
        let home = Path::new("/home/dev");
        assert_eq!(
            home_path(Path::new("/home/dev/.anamnesis"), Some(home)),
            "~/.anamnesis"
        );
        assert_eq!(home_path(home, Some(home)), "~");
        assert_eq!(home_path(Path::new("/srv/x"), Some(home)), "/srv/x");
    }

    #[test]
    fn long_lines_are_wrapped_between_words() {
        let long = "word ".repeat(40);
        for line in wrapped(&long, 4).lines() {
            assert!(line.starts_with("    word") && line.ends_with("word"));
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert_eq!(wrapped(&long, 4).split_whitespace().count(), 40);
        // A text of multi-byte letters without a space.
        let solid = wrapped(&"ä".repeat(200), 2);
        let lengths: Vec<usize> = solid.lines().map(|line| line.chars().count()).collect();
        assert_eq!(lengths, [80, 80, 46]);
        assert_eq!(wrapped("a\n\n  b\n", 2), "  a\n\n    b\n");
        assert_eq!(wrapped("", 2), "");
    }

    #[test]
    fn long_lines_are_folded_below_their_indent() {
        let long = "word ".repeat(20);
        let text = folded(&format!("short\n  {long}\n  → {long}\nno end"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines.len(), lines[4]), ("short", 5, "no end"));
        assert!(lines[1].starts_with("  word") && lines[1].chars().count() <= WIDTH);
        assert!(lines[2].starts_with("    word"), "{text}");
        assert_eq!(lines[3], format!("  → {long}"));
    }

    #[test]
    fn long_titles_are_shortened() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abc defg", 5), "abc…");
        assert_eq!(shorten("", 5), "(no title)");
    }
}
