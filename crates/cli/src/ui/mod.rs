//! Formats ids, kinds, ages, numbers and marks, and prints them.
//!
//! Data goes to stdout, everything else to stderr. A closed pipe is a normal end.

mod progress;
mod terminal;

use std::{
    cell::RefCell,
    collections::HashSet,
    io::{self, BufRead, IsTerminal, Read, Write},
    process::ExitCode,
};

use anamnesis_app::{Error, context::Context, environment::Environment, error::NEEDS_ATTENTION};
use anamnesis_distill::model::Model;
use anamnesis_note::{merge::CONFLICT_TAG, note::Source, project_key};
use anamnesis_recall::render::{inert_lines, inert_value};
use anamnesis_store::index::{Entry, Index};
use anamnesis_text::{
    clean::{clean, one_line},
    terms::terms,
};
use chrono::{DateTime, Utc};
use serde::Serialize;

use self::terminal::Terminal;
pub(crate) use self::{progress::Progress, terminal::Colour};
pub(crate) use anamnesis_app::found::snippet;

pub(crate) use anamnesis_app::format::{
    LIST_LENGTH, WIDTH, age_of, ago, count, counted, folded, iso, number, set_width, shorten, size,
    time, width, wrapped,
};

/// The longest project that a line of a list shows.
const MAX_PROJECT_LENGTH: usize = 28;

/// The result of a command.
pub(crate) type Outcome = Result<ExitCode, Error>;

/// Prints for a terminal, or keeps the text for a session's answer.
#[derive(Debug)]
pub(crate) struct Ui {
    /// Whether an agent reads the output.
    is_for_agent: bool,
    terminal: Terminal,
    /// All output, if it is kept instead of printed.
    kept: Option<RefCell<String>>,
    /// Why output could not be written.
    unwritten: RefCell<Option<io::Error>>,
}

impl Ui {
    /// Prints for the terminal or pipe of this process.
    pub(crate) fn new(environment: &Environment, colour: Colour) -> Self {
        Self {
            is_for_agent: environment.is_agent,
            terminal: Terminal::new(colour, environment),
            kept: None,
            unwritten: RefCell::default(),
        }
    }

    /// Prints nothing and keeps all output.
    pub(crate) fn keeping() -> Self {
        Self {
            is_for_agent: false,
            terminal: Terminal::default(),
            kept: Some(RefCell::default()),
            unwritten: RefCell::default(),
        }
    }

    /// The output that was kept.
    pub(crate) fn into_text(self) -> String {
        self.kept.map(RefCell::into_inner).unwrap_or_default()
    }

    fn write(&self, stream: &mut impl Write, text: &str) {
        if let Some(kept) = &self.kept {
            kept.borrow_mut().push_str(text);
        } else if let Err(error) = stream
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush())
        {
            // A reader that has seen enough is no error.
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.unwritten.replace(Some(error));
            }
        }
    }

    /// Returns an error if some of the output could not be written.
    pub(crate) fn check_written(&self) -> Result<(), Error> {
        let failure = Error::prefixed("cannot write the output");
        self.unwritten.take().map(failure).map_or(Ok(()), Err)
    }

    /// Prints data.
    pub(crate) fn print(&self, text: &str) {
        let text = self.terminal.fitted(self.encode(text));
        let text = self.terminal.data(text, &HashSet::new());
        self.write(&mut io::stdout().lock(), &text);
    }

    /// Prints data, with which a command ends.
    pub(crate) fn answer(&self, text: &str) -> Outcome {
        self.print(text);
        self.check_written().map(|()| ExitCode::SUCCESS)
    }

    /// Prints data that may be longer than the screen, in the person's pager, with which a command
    /// ends. The words of `query` are highlighted.
    pub(crate) fn page(&self, text: &str, query: &str) -> Outcome {
        self.page_unfolded(&self.terminal.fitted(text.to_owned()), query)
    }

    /// Prints data like [`Ui::page`], with the lines of a note as they are.
    pub(crate) fn page_unfolded(&self, text: &str, query: &str) -> Outcome {
        let found = terms(query).into_iter().collect();
        let text = self.terminal.data(self.encode(text), &found);
        if !self.terminal.page(&text) {
            self.write(&mut io::stdout().lock(), &text);
        }
        self.check_written().map(|()| ExitCode::SUCCESS)
    }

    /// Prints somebody else's text, without replacing characters.
    pub(crate) fn raw(&self, text: &str) {
        self.write(&mut io::stdout().lock(), text);
    }

    /// Prints a recorded text as it is, and ends the line. An agent gets it inert, like all others.
    pub(crate) fn exact(&self, text: &str) {
        let line = format!("{text}\n");
        if self.is_for_agent {
            self.print(&line);
        } else {
            self.raw(&clean(&line));
        }
    }

    /// Prints an outcome as JSON.
    pub(crate) fn json(&self, outcome: impl Serialize) -> Outcome {
        let mut value = serde_json::to_value(outcome).map_err(Error::caused_by)?;
        if self.is_for_agent {
            value = inert_value(value);
        }
        // JSON is UTF-8 whatever the terminal accepts.
        self.raw(&format!("{value:#}\n"));
        Ok(ExitCode::SUCCESS)
    }

    /// Prints what a command found: as text, or as JSON.
    pub(crate) fn shown(&self, is_json: bool, outcome: impl Serialize, text: &str) -> Outcome {
        if is_json {
            return self.json(outcome);
        }
        self.answer(text)
    }

    /// Prints what a command did: as text, or as JSON with the text as `said`.
    pub(crate) fn done(&self, is_json: bool, outcome: impl Serialize, text: &str) -> Outcome {
        if !is_json {
            return self.answer(&format!("{}\n", text.trim_end()));
        }
        let mut value = serde_json::to_value(outcome).map_err(Error::caused_by)?;
        value["said"] = text.trim_end().into();
        self.json(&value)
    }

    /// Runs a command that only prints sentences. As JSON, its lines are printed at the end.
    pub(crate) fn saying(&self, is_json: bool, run: impl FnOnce(&Self) -> Outcome) -> Outcome {
        if !is_json {
            return run(self);
        }
        let kept = Self::keeping();
        let code = run(&kept)?;
        let nothing = serde_json::Map::new();
        self.done(true, &nothing, &kept.into_text())?;
        Ok(code)
    }

    /// Prints to stderr what is not data.
    pub(crate) fn note(&self, text: &str) {
        let text = self.terminal.message(self.encode(text));
        self.write(&mut io::stderr().lock(), &text);
    }

    /// Asks the person at the terminal. Only a clear yes counts as yes.
    pub(crate) fn asks(&self, question: &str) -> bool {
        self.note(&format!("{question} [y/N] "));
        answer().is_some_and(|answer| is_yes(&answer))
    }

    /// Asks before something that cannot be undone. Without a terminal, `--yes` is required; `again`
    /// is the command with it. A failure begins with `prefix`, or is `nothing` if the answer is no.
    pub(crate) fn confirm(
        &self,
        question: &str,
        yes: bool,
        again: &str,
        [prefix, nothing]: [&str; 2],
    ) -> Result<(), Error> {
        if yes {
            return Ok(());
        }
        if !stdin_is_terminal() {
            let why = "cannot ask for confirmation (no terminal); pass --yes";
            return Err(Error::usage(format!("{prefix}{why}")).hint(again));
        }
        if self.asks(question) {
            return Ok(());
        }
        Err(Error::failed(nothing))
    }

    /// Asks the person at the terminal, with yes for Enter. Any unclear answer counts as no.
    pub(crate) fn asks_with_yes(&self, question: &str) -> bool {
        self.note(&format!("{question} [Y/n] "));
        answer().is_some_and(|answer| answer.is_empty() || is_yes(&answer))
    }

    /// Asks the person at the terminal for one of the words in the question; `None` if the terminal
    /// is closed.
    pub(crate) fn chooses(&self, question: &str) -> Option<String> {
        self.note(question);
        answer()
    }

    /// Removes what a terminal would act on, such as a sequence in the name of a folder.
    /// An agent gets what the tools of the server would give it.
    fn encode(&self, text: &str) -> String {
        if self.is_for_agent {
            inert_lines(text)
        } else {
            clean(text).into_owned()
        }
    }
}

/// The line that is typed; `None` if the terminal is closed.
fn answer() -> Option<String> {
    let mut line = String::new();
    let length = io::stdin().lock().take(100).read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim().to_owned())
}

fn is_yes(answer: &str) -> bool {
    matches!(answer, "y" | "Y" | "yes")
}

/// The options for the length of a list.
#[derive(Debug, clap::Args)]
pub(crate) struct ListLength {
    /// The maximum number of lines [default: 20]
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "all", value_parser = at_least_one)]
    limit: Option<usize>,
    /// List all
    #[arg(long)]
    all: bool,
}

impl ListLength {
    /// Returns the maximum number of lines.
    pub(crate) fn limit(&self) -> usize {
        self.limit_or(LIST_LENGTH)
    }

    /// Returns the maximum number of lines, with another default.
    pub(crate) fn limit_or(&self, default: usize) -> usize {
        if self.all {
            usize::MAX
        } else {
            self.limit.unwrap_or(default)
        }
    }
}

/// The options for the project of commands that take every project by default.
#[derive(Debug, clap::Args)]
pub(crate) struct ProjectFilter {
    /// Only notes of this project [default: every project]
    #[arg(long, value_name = "KEY", conflicts_with = "everywhere")]
    project: Option<String>,
    /// Notes of every project, which is the default
    #[arg(long)]
    everywhere: bool,
}

impl ProjectFilter {
    /// Returns the key of the project, if only one is wanted.
    pub(crate) fn key(&self) -> Option<&str> {
        self.project.as_deref().filter(|_| !self.everywhere)
    }
}

/// Parses a maximum length of a list.
pub(crate) fn at_least_one(text: &str) -> Result<usize, &'static str> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or("expected an integer of 1 or more")
}

/// Returns whether stdin is a terminal.
pub(crate) fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// The commits that a search found, below the notes.
pub(crate) fn commits(lines: &[String]) -> String {
    let head = if lines.is_empty() { "" } else { "commits\n" };
    let lines = lines.iter().map(|line| format!("  {}\n", one_line(line)));
    format!("{head}{}", lines.collect::<String>())
}

/// Says how many entries of a list are shown, if that is not all, and what shows the rest.
pub(crate) fn shown_of(shown: usize, total: usize, rest: &str) -> String {
    if shown >= total {
        return String::new();
    }
    format!("{shown} of {} shown{rest}\n", number(total))
}

/// Returns the word for one thing, or that for any other number of things.
pub(crate) fn one_or_many<'a>(amount: usize, one: &'a str, many: &'a str) -> &'a str {
    if amount == 1 { one } else { many }
}

/// Says what a request to a model costs, and who receives it.
pub(crate) fn cost(tokens: usize, model: &Model) -> String {
    let receiver = one_line(&model.receiver());
    format!("about {} tokens to {receiver}\n", number(tokens))
}

/// Returns exit code 3 if something needs the person.
pub(crate) fn attention(is_needed: bool) -> ExitCode {
    ExitCode::from(if is_needed { NEEDS_ATTENTION } else { 0 })
}

/// Formats a note as a line of a list.
pub(crate) fn listed(index: &Index, entry: &Entry, now: DateTime<Utc>) -> String {
    note_line(entry, &Context::short(index, entry.id()), now) + "\n"
}

/// Formats a note on one line, in the common form.
pub(crate) fn note_line(entry: &Entry, short: &str, now: DateTime<Utc>) -> String {
    note_line_within(width(), entry, short, now)
}

/// The width below which a note's line has no kind, author and age.
const NARROW: usize = 60;

/// Formats a note on one line, with its project, of which the host is left out.
pub(crate) fn line_with_project(entry: &Entry, short: &str, now: DateTime<Utc>) -> String {
    let place = project_key::shown(&entry.project);
    let parts = place.split_once('/');
    let name = parts.filter(|(host, name)| host.contains('.') && name.contains('/'));
    let place = name.map_or(&*place, |(_, name)| name);
    let place = shorten(place, MAX_PROJECT_LENGTH);
    let tail = format!("{} · {place}", facts(entry, now));
    line_with(width(), entry, short, &tail)
}

/// Formats a note on one line of the given width.
pub(crate) fn note_line_within(
    width: usize,
    entry: &Entry,
    short: &str,
    now: DateTime<Utc>,
) -> String {
    line_with(width, entry, short, &facts(entry, now))
}

/// Formats a note on one line of the given width, with `tail` instead of its author and age.
pub(crate) fn line_with(width: usize, entry: &Entry, short: &str, tail: &str) -> String {
    let kind = entry.shown_kind();
    // `preference` is the longest kind. A narrow terminal has room for the title only.
    let is_narrow = width < NARROW;
    let (head, tail) = if is_narrow {
        (format!("{short}  "), "")
    } else {
        (format!("{short}  {kind:<10}  "), tail)
    };
    let room = width
        .saturating_sub(head.chars().count() + tail.chars().count() + 2)
        .max(16);
    let title = shorten(&one_line(&entry.title), room);
    format!("{head}{title:<room$}  {tail}")
        .trim_end()
        .to_owned()
}

/// A note's author, age and unusual states.
fn facts(entry: &Entry, now: DateTime<Utc>) -> String {
    let mut facts = age_of(entry.written_at(), now);
    if entry.source != Source::SessionEnd {
        facts = format!("{}, {facts}", entry.author());
    }
    if entry.state != anamnesis_note::note::State::Active {
        facts = format!("{facts}, {}", entry.state);
    }
    if entry.tags.iter().any(|tag| tag == CONFLICT_TAG) {
        facts.push_str(", conflict");
    }
    if entry.superseded {
        facts.push_str(", replaced");
    }
    if entry.pinned {
        facts.push_str(", pinned");
    }
    facts
}
