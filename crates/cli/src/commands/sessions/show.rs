//! `sessions show`: prints the stored rows of a session, and counts what is missing.

use std::{collections::BTreeSet, process::ExitCode};

use anamnesis_app::{context::Context, failure::Failure, format::WIDTH, session};
use anamnesis_note::id::NoteId;
use anamnesis_session::event::{Privacy, Speaker};
use anamnesis_store::{
    index::Index,
    journal::{Contents, Journal, StoredEvent, StoredPrompt, StoredTurnEnd},
};
use anamnesis_text::{
    clean::{clean, one_line},
    private_tokens, redact,
};
use chrono::DateTime;

use super::{Outcome, counted, export::session_json, note_label, open, short, state};
use crate::{
    commands::show::shown,
    ui::{self, Ui},
};

/// Show what is recorded of a session, row by row
///
/// Private and deleted parts are counted, never shown.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The session's id: six or more characters of its start
    id: String,
    /// Also print the input and output of tools
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Print JSON, with all details
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let journal = open(context)?;
    let id = session::find(&journal, &args.id)?.id;
    let Some(contents) = journal.contents(&id)? else {
        return Err(Failure::failed("the session was forgotten meanwhile"));
    };
    let index = context.index()?;
    if args.json {
        ui.json(&session_json(context, &index, contents)?);
        return Ok(ExitCode::SUCCESS);
    }
    let page = Page {
        context,
        index: &index,
        contents: &contents,
        is_full: args.full,
        has_forgotten: journal.has_forgotten_prompt(&id)?,
        text: String::new(),
    };
    ui.print(&page.written(&journal)?);
    Ok(ExitCode::SUCCESS)
}

/// Counts of what is no longer stored of a session.
#[derive(Debug, Default)]
pub(super) struct Removed {
    /// Prompts that were entirely private, or forgotten.
    pub(super) prompts: usize,
    /// Events of these prompts.
    pub(super) suppressed: i64,
    /// Masked credentials.
    pub(super) secrets: usize,
    /// Masked repetitions of private words.
    pub(super) private_words: usize,
    /// Tool events removed by retention.
    pub(super) by_age: i64,
}

impl Removed {
    /// Counts what is missing.
    pub(super) fn of(contents: &Contents) -> Self {
        let mut removed = Self {
            by_age: contents.session.tool_events
                - i64::try_from(contents.events.len()).unwrap_or(i64::MAX),
            ..Self::default()
        };
        removed.by_age = removed.by_age.max(0);
        for prompt in &contents.prompts {
            removed.prompts += usize::from(prompt.privacy == Privacy::Full);
            removed.suppressed += prompt.suppressed;
            removed.look_at(prompt.text.as_deref());
        }
        for stored in &contents.events {
            let event = &stored.event;
            removed.look_at(Some(&event.input.to_string()));
            removed.look_at(Some(&event.response.to_string()));
            removed.look_at(event.error.as_deref());
        }
        for end in &contents.turn_ends {
            removed.look_at(end.text.as_deref());
        }
        for task in &contents.delegations {
            removed.look_at(Some(&task.prompt));
        }
        removed
    }

    fn look_at(&mut self, text: Option<&str>) {
        let text = text.unwrap_or_default();
        self.secrets += text.matches(redact::MASK).count();
        self.private_words += text.matches(private_tokens::MASK).count();
    }

    fn told(&self) -> String {
        let mut parts = Vec::new();
        if self.prompts > 0 {
            parts.push(format!(
                "{} with {} under it",
                ui::count(self.prompts, "private or forgotten prompt"),
                counted(self.suppressed, "event")
            ));
        }
        if self.secrets > 0 {
            parts.push(ui::count(self.secrets, "secret"));
        }
        if self.private_words > 0 {
            parts.push(ui::count(self.private_words, "repeated private word"));
        }
        if self.by_age > 0 {
            parts.push(format!("{} by age", counted(self.by_age, "tool event")));
        }
        if parts.is_empty() {
            "nothing".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

/// A row below a prompt.
enum Row<'a> {
    Event(&'a StoredEvent),
    TurnEnd(&'a StoredTurnEnd),
}

impl Row<'_> {
    fn prompt(&self) -> Option<i64> {
        match self {
            Self::Event(stored) => stored.prompt,
            Self::TurnEnd(end) => end.prompt,
        }
    }

    /// Its sort key: a turn end comes after the last event before it.
    fn place(&self) -> (i64, bool) {
        match self {
            Self::Event(stored) => (stored.number, false),
            Self::TurnEnd(end) => (end.after_event, true),
        }
    }
}

/// The output for one session.
struct Page<'a> {
    context: &'a Context,
    index: &'a Index,
    contents: &'a Contents,
    is_full: bool,
    has_forgotten: bool,
    text: String,
}

impl Page<'_> {
    fn written(mut self, journal: &Journal) -> Result<String, Failure> {
        self.head()?;
        self.prompts();
        self.tasks();
        self.observations();
        self.summaries();
        self.given();
        self.jobs();
        let short = short(journal, &self.contents.session)?;
        self.text.push_str(&format!(
            "\n→ anamnesis sessions export {short}   |   anamnesis forget --session {short}\n"
        ));
        Ok(self.text)
    }

    /// Adds a line, cut to the width.
    fn line(&mut self, text: &str) {
        self.text.push_str(&ui::shorten(&flat(text), WIDTH));
        self.text.push('\n');
    }

    /// Adds a wrapped text.
    fn words(&mut self, text: &str, indent: usize) {
        let text = shown(self.context, text);
        self.text.push_str(&ui::wrapped(text.trim_end(), indent));
    }

    fn head(&mut self) -> Result<(), Failure> {
        let contents = self.contents;
        let session = &contents.session;
        self.text
            .push_str(&format!("session {}\n", one_line(&session.id)));
        let mut place = session.project.clone();
        for (name, value) in [("branch", &contents.branch), ("model", &contents.model)] {
            if let Some(value) = value {
                place.push_str(&format!(" · {name} {value}"));
            }
        }
        self.line(&place);
        let began = match &contents.source {
            Some(source) => format!("{} ({source})", moment(session.started_at)),
            None => moment(session.started_at),
        };
        let until = match session.ended_at {
            Some(at) => format!("{} {}", state(session), moment(at)),
            None => format!("open, last heard of {}", moment(session.seen_at)),
        };
        self.line(&format!("began {began} · {until} · UTC"));
        let mut note = note_label(session, self.index)?;
        if let Some(entry) = self.index.get(NoteId::of_session(&session.id))?
            && !entry.title.is_empty()
        {
            note.push_str(&format!("  {}", entry.title));
        }
        self.line(&note);
        let kept = [
            (contents.prompts.len(), "prompt"),
            (contents.events.len(), "tool event"),
            (contents.turn_ends.len(), "turn end"),
            (contents.observations.len(), "observation"),
        ];
        let kept = kept.map(|(amount, thing)| ui::count(amount, thing));
        self.line(&format!("kept: {}", kept.join(", ")));
        self.line(&format!("removed: {}", Removed::of(contents).told()));
        Ok(())
    }

    /// Adds the prompts, each followed by its events.
    fn prompts(&mut self) {
        let contents = self.contents;
        let events = contents.events.iter().map(Row::Event);
        let mut rows: Vec<Row<'_>> = events
            .chain(contents.turn_ends.iter().map(Row::TurnEnd))
            .collect();
        rows.sort_by_key(Row::place);
        let numbers: BTreeSet<Option<i64>> = contents
            .prompts
            .iter()
            .map(|prompt| Some(prompt.number))
            .chain(rows.iter().map(Row::prompt))
            .collect();
        for number in numbers {
            self.text.push('\n');
            let prompt = contents
                .prompts
                .iter()
                .find(|prompt| Some(prompt.number) == number);
            match (prompt, number) {
                (Some(prompt), _) => self.prompt(prompt),
                (None, Some(number)) => self.line(&format!("prompt {number} · gone by age")),
                (None, None) => self.line("of no known prompt"),
            }
            for row in rows.iter().filter(|row| row.prompt() == number) {
                match row {
                    Row::Event(stored) => self.event(stored),
                    Row::TurnEnd(end) => self.turn_end(end),
                }
            }
        }
    }

    fn prompt(&mut self, prompt: &StoredPrompt) {
        let head = format!("prompt {} · {}", prompt.number, clock(prompt.at));
        if prompt.privacy == Privacy::Full {
            let why = if self.has_forgotten {
                "private or forgotten"
            } else {
                "private"
            };
            let events = counted(prompt.suppressed, "event");
            self.line(&format!("{head} · {why}; {events} under it not kept"));
            return;
        }
        let mut facts = vec![head, prompt.kind.as_str().to_owned()];
        if prompt.privacy == Privacy::Part {
            facts.push("a part was private".to_owned());
        }
        if prompt.many_tags {
            facts.push("over 100 private regions".to_owned());
        }
        self.line(&facts.join(" · "));
        if let Some(text) = &prompt.text {
            self.words(text, 2);
        }
    }

    fn event(&mut self, stored: &StoredEvent) {
        let event = &stored.event;
        let mut facts = Vec::new();
        if let Some(duration) = event.duration_ms {
            facts.push(took(duration));
        }
        if let Some(agent) = &event.agent {
            facts.push(format!("by {}", agent.kind));
        }
        if event.is_from_batch {
            facts.push("from a batch".to_owned());
        }
        if event.many_tags {
            facts.push("over 100 private regions".to_owned());
        }
        self.line(&format!(
            "  {}  {:<11} {}  {}",
            clock(stored.at),
            event.outcome.as_str(),
            one_line(&event.tool),
            facts.join(", ")
        ));
        for file in &event.files {
            self.line(&format!("    {} {}", file.action.as_str(), file.path));
        }
        if let Some(error) = &event.error {
            if self.is_full {
                self.words(error, 4);
            } else {
                let first = error.trim().lines().next().unwrap_or_default();
                self.line(&format!("    {}", shown(self.context, first)));
            }
        }
        if self.is_full {
            for (name, value) in [("given", &event.input), ("gave", &event.response)] {
                if !value.is_null() {
                    self.line(&format!("    {name}"));
                    // JSON already escapes control characters.
                    self.words(&format!("{value:#}"), 6);
                }
            }
        }
    }

    fn turn_end(&mut self, end: &StoredTurnEnd) {
        let who = match (end.speaker, &end.agent) {
            (Speaker::Main, _) => "answer".to_owned(),
            (Speaker::Subagent, Some(agent)) => format!("answer of {}", agent.kind),
            (Speaker::Subagent, None) => "answer of a subagent".to_owned(),
            (Speaker::Compact, _) => "the client's summary".to_owned(),
        };
        let words = if end.text.is_some() { "" } else { ", no words" };
        self.line(&format!("  {}  {who}{words}", clock(end.at)));
        if let Some(text) = &end.text {
            self.words(text, 4);
        }
    }

    fn tasks(&mut self) {
        if !self.contents.delegations.is_empty() {
            self.line_after_gap("tasks of subagents");
        }
        for task in &self.contents.delegations {
            self.line(&format!("  {}  {}", clock(task.at), one_line(&task.kind)));
            self.words(&task.prompt, 4);
        }
    }

    fn observations(&mut self) {
        if !self.contents.observations.is_empty() {
            self.line_after_gap("observed");
        }
        for observation in &self.contents.observations {
            self.line(&format!(
                "  {}  {}",
                observation.kind.as_str(),
                shown(self.context, &observation.title)
            ));
            if !observation.subtitle.is_empty() {
                self.line(&format!(
                    "    {}",
                    shown(self.context, &observation.subtitle)
                ));
            }
        }
    }

    fn summaries(&mut self) {
        for stored in &self.contents.summaries {
            self.line_after_gap(&format!(
                "summary by {}, up to prompt {}",
                stored.maker, stored.up_to
            ));
            let summary = &stored.summary;
            let request = std::slice::from_ref(&summary.request);
            for (name, lines) in [
                ("asked", request),
                ("looked at", &summary.investigated),
                ("learned", &summary.learned),
                ("done", &summary.completed),
                ("next", &summary.next_steps),
            ] {
                for line in lines.iter().filter(|line| !line.is_empty()) {
                    self.line(&format!("  {name:<10} {}", shown(self.context, line)));
                }
            }
        }
    }

    fn given(&mut self) {
        if !self.contents.shown.is_empty() {
            self.line_after_gap("given to the model");
        }
        for shown in &self.contents.shown {
            let note = shown.note.parse().map_or_else(
                |_| one_line(&shown.note),
                |id: NoteId| Context::short(self.index, id),
            );
            self.line(&format!(
                "  {}  {:<7} #{note}  {}  {}",
                clock(shown.at),
                shown.lane,
                shown.level,
                shown.reason
            ));
        }
    }

    fn jobs(&mut self) {
        if !self.contents.jobs.is_empty() {
            self.line_after_gap("jobs");
        }
        for job in &self.contents.jobs {
            let tries = match job.tries {
                0 => String::new(),
                tries => format!(", failed {}", counted(tries, "time")),
            };
            let error = job.error.as_deref().map_or_else(String::new, |error| {
                format!(": {}", shown(self.context, error))
            });
            self.line(&format!(
                "  {}  {} {}{tries}{error}",
                clock(job.at),
                job.kind,
                job.state
            ));
        }
    }

    fn line_after_gap(&mut self, text: &str) {
        self.text.push('\n');
        self.line(text);
    }
}

/// Puts the text on one line. Blanks stay, because they form columns.
fn flat(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ").trim_end().to_owned()
}

/// Formats a date and time.
fn moment(milliseconds: i64) -> String {
    DateTime::from_timestamp_millis(milliseconds).map_or_else(String::new, |time| {
        time.format("%Y-%m-%d %H:%M").to_string()
    })
}

/// Formats a time of day.
fn clock(milliseconds: i64) -> String {
    DateTime::from_timestamp_millis(milliseconds)
        .map_or_else(String::new, |time| time.format("%H:%M:%S").to_string())
}

/// Formats a duration.
fn took(milliseconds: i64) -> String {
    match milliseconds {
        ..1000 => format!("{milliseconds} ms"),
        _ => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
    }
}
