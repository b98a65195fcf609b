//! Adds colours and a pager to the output on a terminal.
//!
//! Colours are added to the finished, cleaned text by its form: ids, marks and hints. So no text from
//! outside can add one, and no command carries styles.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    io::{self, IsTerminal, Write},
    process::{Command, Stdio},
};

use anamnesis_app::{environment::Environment, found};

use super::{folded, set_width};

/// When the output is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always, for a pipe into a pager.
    Always,
    /// Never.
    Never,
}

/// Texts of at most this many lines are printed without a pager.
const SCREEN: usize = 20;

const ID: &str = "33";
const HINT: &str = "2";
const GOOD: &str = "32";
const BAD: &str = "31";
const FOUND: &str = "1;31";

/// The capabilities of this process's terminal.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    colours_stdout: bool,
    colours_stderr: bool,
    /// Whether lines are folded: stdout is a terminal, which has a width.
    folds: bool,
    /// The pager's command line, if stdout is a person's terminal.
    pager: Option<OsString>,
}

impl Terminal {
    pub(crate) fn new(colour: Colour, environment: &Environment) -> Self {
        let colours = |is_terminal: bool| match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => is_terminal && !environment.is_plain,
        };
        let is_terminal = io::stdout().is_terminal();
        let may_page = is_terminal && io::stdin().is_terminal() && !environment.is_agent;
        if let Some(columns) = columns().filter(|_| is_terminal) {
            set_width(columns);
        }
        let pager = environment.pager.clone().unwrap_or_else(|| "less".into());
        Self {
            colours_stdout: colours(is_terminal),
            colours_stderr: colours(io::stderr().is_terminal()),
            folds: is_terminal,
            pager: may_page.then_some(pager),
        }
    }

    /// Returns a cleaned text for stdout that fits the terminal.
    pub(crate) fn fitted(&self, text: String) -> String {
        if self.folds { folded(&text) } else { text }
    }

    /// Returns a cleaned text for stdout, with the words that have one of these terms highlighted.
    pub(crate) fn data(&self, text: String, found: &HashSet<String>) -> String {
        if self.colours_stdout {
            paint(&text, found)
        } else {
            text
        }
    }

    /// Returns a cleaned text for stderr.
    pub(crate) fn message(&self, text: String) -> String {
        if self.colours_stderr {
            paint(&text, &HashSet::new())
        } else {
            text
        }
    }

    /// Shows a long text in the person's pager. Returns false if there is none, or the text is short.
    pub(crate) fn page(&self, text: &str) -> bool {
        let Some(pager) = &self.pager else {
            return false;
        };
        if text.lines().nth(SCREEN).is_none() {
            return false;
        }
        // As git does: the pager is a command line of the person's own environment. `less` leaves
        // at once if the text fits the screen.
        let mut command = shell(pager);
        let child = command.env("LESS", "FRX").stdin(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            return false;
        };
        if let Some(mut stdin) = child.stdin.take() {
            // A pager that is left early closes the pipe.
            let _ = stdin.write_all(text.as_bytes());
        }
        // A shell that finds no such program exits with 127, and has shown nothing.
        child.wait().is_ok_and(|status| status.code() != Some(127))
    }
}

/// Returns the width of the terminal of stdout.
#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}

#[cfg(unix)]
fn shell(line: &OsStr) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).stderr(Stdio::null());
    command
}

#[cfg(not(unix))]
fn shell(line: &OsStr) -> Command {
    Command::new(line)
}

/// Returns a word in a colour.
fn coloured(code: &str, text: &str) -> String {
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Colours ids, marks, hints and the words that were searched for.
fn paint(text: &str, found: &HashSet<String>) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            let (line, end) = match line.strip_suffix('\n') {
                Some(line) => (line, "\n"),
                None => (line, ""),
            };
            paint_line(line, found) + end
        })
        .collect()
}

fn paint_line(line: &str, found: &HashSet<String>) -> String {
    let rest = line.trim_start();
    let indent = &line[..line.len() - rest.len()];
    if rest.starts_with("→ ") || rest.starts_with("Undo: ") {
        return format!("{indent}{}", coloured(HINT, rest));
    }
    for (mark, code) in [
        ("✓ ", GOOD),
        ("✗ ", BAD),
        ("! ", ID),
        ("? ", HINT),
        ("error: ", BAD),
        ("anamnesis: ", BAD),
    ] {
        if let Some(rest) = rest.strip_prefix(mark) {
            let mark = coloured(code, mark.trim_end());
            return format!("{indent}{mark} {}", highlighted(rest, found));
        }
    }
    let length = rest.find(' ').unwrap_or(rest.len());
    let (first, tail) = rest.split_at(length);
    if is_id(first) && tail.starts_with("  ") {
        return format!(
            "{indent}{}{}",
            coloured(ID, first),
            highlighted(tail, found)
        );
    }
    highlighted(line, found)
}

/// Returns whether a word has the form of a note's short or full id.
fn is_id(word: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    (6..=26).contains(&word.len()) && word.bytes().all(is_letter)
}

/// Colours the words of a line that have one of these terms.
fn highlighted(line: &str, found: &HashSet<String>) -> String {
    if found.is_empty() {
        return line.to_owned();
    }
    let mut painted = String::with_capacity(line.len() + 32);
    let mut done = 0;
    for (start, end) in found::places(line, found) {
        if start >= done {
            painted.push_str(&line[done..start]);
            painted.push_str(&coloured(FOUND, &line[start..end]));
            done = end;
        }
    }
    painted + &line[done..]
}

#[cfg(test)]
mod tests {
    use anamnesis_text::terms::terms;

    use super::*;

    fn visible(text: &str) -> String {
        text.replace("\x1b[0m", ">").replace('\x1b', "<")
    }

    #[test]
    fn ids_marks_hints_and_found_words_are_coloured() {
        let found: HashSet<String> = terms("stub servers").into_iter().collect();
        for (line, expected) in [
            (
                "7Q4KZ9  how-to  Tests need the stub server\n",
                "<[33m7Q4KZ9>  how-to  Tests need the <[1;31mstub> <[1;31mserver>\n",
            ),
            ("→ anamnesis show ID", "<[2m→ anamnesis show ID>"),
            ("  ✗ hooks  the stub", "  <[31m✗> hooks  the <[1;31mstub>"),
            ("anamnesis: no note", "<[31manamnesis:> no note"),
            // A capital word in a sentence is not an id.
            ("README says so", "README says so"),
            ("", ""),
        ] {
            assert_eq!(visible(&paint(line, &found)), expected);
        }
    }
}
