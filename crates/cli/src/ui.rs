//! How things look: ids, kinds, ages, numbers, marks, and where they are printed.
//!
//! Data goes to stdout, all else to stderr. A closed pipe is a normal end. Everything can be read
//! without colour, so there is none.

use std::{
    io::{self, BufRead, IsTerminal, Read, Write},
    path::Path,
};

use anamnesis_note::note::{Note, Source, parse_timestamp};
use anamnesis_store::index::Entry;
use anamnesis_text::clean::one_line;
use chrono::{DateTime, SecondsFormat, Utc};

/// The columns that a line of text fits into.
pub(crate) const WIDTH: usize = 80;

/// How many lines a list shows unless it is asked for all.
pub(crate) const LIST_LENGTH: usize = 20;

/// Where a command prints.
#[derive(Debug)]
pub(crate) struct Ui {
    is_utf8: bool,
}

impl Ui {
    /// Prints for a terminal that takes UTF-8, or not.
    pub(crate) fn new(is_utf8: bool) -> Self {
        Self { is_utf8 }
    }

    /// Prints data.
    pub(crate) fn print(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(self.encode(text).as_bytes());
        let _ = stdout.flush();
    }

    /// Prints data that is somebody else's text: no sign of it is replaced.
    #[expect(
        clippy::unused_self,
        reason = "all printing goes through the one value"
    )]
    pub(crate) fn raw(&self, text: &str) {
        let _ = io::stdout().lock().write_all(text.as_bytes());
    }

    /// Prints one JSON value.
    #[expect(
        clippy::unused_self,
        reason = "all printing goes through the one value"
    )]
    pub(crate) fn json(&self, value: &serde_json::Value) {
        // JSON is UTF-8 whatever the terminal takes.
        let _ = writeln!(io::stdout().lock(), "{value:#}");
    }

    /// Prints what is no data.
    pub(crate) fn note(&self, text: &str) {
        let _ = io::stderr().lock().write_all(self.encode(text).as_bytes());
    }

    /// Asks the person at the terminal; anything but a clear yes is a no.
    pub(crate) fn asks(&self, question: &str) -> bool {
        self.note(&format!("{question} [y/N] "));
        answer().is_some_and(|answer| is_yes(&answer))
    }

    /// Asks the person at the terminal, for whom Enter is a yes; what is neither is a no.
    pub(crate) fn asks_with_yes(&self, question: &str) -> bool {
        self.note(&format!("{question} [Y/n] "));
        answer().is_some_and(|answer| answer.is_empty() || is_yes(&answer))
    }

    /// Asks the person at the terminal for one of the words that the question names; nothing when the
    /// terminal is closed.
    pub(crate) fn chooses(&self, question: &str) -> Option<String> {
        self.note(question);
        answer()
    }

    /// Puts words in the place of the signs that a terminal may not have.
    fn encode(&self, text: &str) -> String {
        if self.is_utf8 {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '✓' => out.push_str("ok"),
                '✗' => out.push_str("FAIL"),
                '→' => out.push_str("->"),
                '·' => out.push('-'),
                '…' => out.push_str("..."),
                _ if character.is_ascii() => out.push(character),
                _ => out.push('?'),
            }
        }
        // The sign of a warning is a letter everywhere; as the first of a line it is a word here.
        out.lines()
            .map(|line| {
                line.strip_prefix("! ")
                    .map_or_else(|| line.to_owned(), |rest| format!("warn {rest}"))
                    + "\n"
            })
            .collect()
    }
}

/// As long as this is kept, Ctrl-C in the terminal is a sign like any other: for a few writes that are
/// whole or not at all.
pub(crate) struct WithoutInterrupts {
    #[cfg(unix)]
    before: Option<(std::fs::File, rustix::termios::Termios)>,
}

/// Keeps Ctrl-C away for a moment, where there is a terminal.
pub(crate) fn without_interrupts() -> WithoutInterrupts {
    #[cfg(unix)]
    {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let quiet = || {
            let terminal = std::fs::File::open("/dev/tty").ok()?;
            // A process in the background would be stopped for touching it, and Ctrl-C is not for it.
            let group = rustix::termios::tcgetpgrp(&terminal).ok()?;
            if group != rustix::process::getpgrp() {
                return None;
            }
            let before = tcgetattr(&terminal).ok()?;
            let mut modes = before.clone();
            modes.local_modes.remove(LocalModes::ISIG);
            tcsetattr(&terminal, OptionalActions::Now, &modes).ok()?;
            Some((terminal, before))
        };
        WithoutInterrupts { before: quiet() }
    }
    #[cfg(not(unix))]
    WithoutInterrupts {}
}

#[cfg(unix)]
impl Drop for WithoutInterrupts {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some((terminal, before)) = &self.before {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(terminal, OptionalActions::Now, before);
        }
    }
}

/// The line that is typed; nothing when the terminal is closed.
fn answer() -> Option<String> {
    let mut line = String::new();
    let length = io::stdin().lock().take(100).read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim().to_owned())
}

fn is_yes(answer: &str) -> bool {
    matches!(answer, "y" | "Y" | "yes")
}

/// Tells whether a person sits before stdin.
pub(crate) fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Tells whether a person sees stderr.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Puts a text in the place of the last line of a terminal that has not ended.
pub(crate) fn progress(text: &str) {
    let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
}

/// A line that says what is waited for, on a terminal only, and is gone afterwards.
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(text: &str) -> Self {
        let is_shown = stderr_is_terminal();
        if is_shown {
            progress(text);
        }
        Self { is_shown }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            progress("");
        }
    }
}

/// A number of things: `1 note`, `1,204 notes`.
pub(crate) fn count(amount: usize, thing: &str) -> String {
    format!(
        "{} {thing}{}",
        number(amount),
        if amount == 1 { "" } else { "s" }
    )
}

/// A number with its thousands apart.
pub(crate) fn number(amount: usize) -> String {
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

/// A number of bytes, for people.
pub(crate) fn size(bytes: u64) -> String {
    let rounded = |unit: u64| number(usize::try_from(bytes / unit).unwrap_or(usize::MAX));
    match bytes {
        ..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", rounded(1_000)),
        _ => format!("{} MB", rounded(1_000_000)),
    }
}

/// How long ago something was, for people.
pub(crate) fn ago(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (now - time).num_seconds();
    match seconds {
        ..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..172_800 => "yesterday".to_owned(),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// How old something is, short.
pub(crate) fn age(text: &str, now: DateTime<Utc>) -> String {
    let Some(time) = parse_timestamp(text) else {
        return "age unknown".to_owned();
    };
    let seconds = (now - time).num_seconds();
    match seconds {
        ..60 => "now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A day, from milliseconds since 1970.
pub(crate) fn date(milliseconds: i64) -> String {
    DateTime::from_timestamp_millis(milliseconds)
        .map_or_else(String::new, |time| time.date_naive().to_string())
}

/// A time, from milliseconds since 1970.
pub(crate) fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

/// A time as scripts are given it, from milliseconds since 1970.
pub(crate) fn iso(milliseconds: i64) -> String {
    time(milliseconds).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A text in lines of at most [`WIDTH`] columns, each indented; every line ends.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let room = WIDTH.saturating_sub(indent).max(1);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for line in text.lines() {
        let mut rest = line.trim_end();
        loop {
            let end = rest
                .char_indices()
                .nth(room)
                .map_or(rest.len(), |(end, _)| end);
            let (head, _) = rest.split_at(end);
            // Between two words if there are two, else anywhere.
            let end = match head.rfind(' ') {
                Some(blank) if end < rest.len() && !head[..blank].trim().is_empty() => blank,
                _ => end,
            };
            let (head, tail) = rest.split_at(end);
            if !head.is_empty() {
                out.extend(std::iter::repeat_n(' ', indent));
                out.push_str(head.trim_end());
            }
            out.push('\n');
            rest = tail.trim_start_matches(' ');
            if rest.is_empty() {
                break;
            }
        }
    }
    out
}

/// A path with `~` for the user's home.
pub(crate) fn home_path(path: &Path, user_home: Option<&Path>) -> String {
    match user_home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// A note on one line, as it looks everywhere.
pub(crate) fn note_line(entry: &Entry, short: &str, now: DateTime<Utc>) -> String {
    note_line_within(WIDTH, entry, short, now)
}

/// A note on one line of so many columns.
pub(crate) fn note_line_within(
    width: usize,
    entry: &Entry,
    short: &str,
    now: DateTime<Utc>,
) -> String {
    line_of(width, entry, short, &facts(entry, now))
}

/// A note on one line that ends, with something else than its author and age behind the title.
pub(crate) fn line_with(entry: &Entry, short: &str, tail: &str) -> String {
    line_of(WIDTH, entry, short, tail) + "\n"
}

fn line_of(width: usize, entry: &Entry, short: &str, tail: &str) -> String {
    let kind = entry.shown_kind();
    let head = format!("#{short} {kind}  ");
    let room = width
        .saturating_sub(head.chars().count() + tail.chars().count() + 2)
        .max(16);
    format!("{head}{}  {tail}", shorten(&one_line(&entry.title), room))
}

/// Who wrote it, how old it is, and what is out of the ordinary.
fn facts(entry: &Entry, now: DateTime<Utc>) -> String {
    let written = if entry.updated_at.is_empty() {
        &entry.created_at
    } else {
        &entry.updated_at
    };
    let mut facts = age(written, now);
    if entry.source != Source::SessionEnd {
        facts = format!("{}, {facts}", entry.author());
    }
    if entry.state != anamnesis_note::note::State::Active {
        facts = format!("{facts}, {}", entry.state);
    }
    if entry.superseded {
        facts.push_str(", replaced");
    }
    if entry.pinned {
        facts.push_str(", pinned");
    }
    facts
}

/// Cuts a text to a number of characters and marks the cut.
pub(crate) fn shorten(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some(_) => {
            let kept: String = text.chars().take(length.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
        None if text.is_empty() => "(no title)".to_owned(),
        None => text.to_owned(),
    }
}

/// A note as scripts are given it: the Python version's keys, then ours.
pub(crate) fn note_json(entry: &Entry, note: Option<&Note>) -> serde_json::Value {
    let mut json = serde_json::json!({
        "id": entry.id().to_string(),
        "type": entry.note_type.as_str(),
        "title": entry.title,
        "project": entry.project,
        "machine_id": entry.machine_id,
        "scope": entry.path.scope.as_str(),
        "user_id": entry.user_id,
        "workspace_id": entry.workspace_id,
        "tags": entry.tags,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
    });
    if let Some(note) = note {
        json["body"] = note.body.clone().into();
    }
    json["kind"] = entry.kind.as_str().into();
    json["state"] = entry.state.as_str().into();
    json["author"] = entry.author().into();
    json["confidence"] = entry.confidence.into();
    json["pinned"] = entry.pinned.into();
    json["superseded"] = entry.superseded.into();
    json["path"] = entry.path.to_string().into();
    json
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
        assert_eq!(age("nonsense", now), "age unknown");
    }

    #[test]
    fn a_terminal_without_utf_8_gets_words() {
        let ui = Ui::new(false);
        assert_eq!(
            ui.encode("✓ a · b\n! c …\n✗ d → é\n"),
            "ok a - b\nwarn c ...\nFAIL d -> ?\n"
        );
        assert_eq!(Ui::new(true).encode("✓ é"), "✓ é");
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
        // Without a blank anywhere, and with letters of several bytes.
        let solid = wrapped(&"ä".repeat(200), 2);
        let lengths: Vec<usize> = solid.lines().map(|line| line.chars().count()).collect();
        assert_eq!(lengths, [80, 80, 46]);
        assert_eq!(wrapped("a\n\n  b\n", 2), "  a\n\n    b\n");
        assert_eq!(wrapped("", 2), "");
    }

    #[test]
    fn long_titles_are_shortened() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abc defg", 5), "abc…");
        assert_eq!(shorten("", 5), "(no title)");
    }
}
