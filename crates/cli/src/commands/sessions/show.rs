//! `sessions show`: prints the stored rows of a session, and counts what is missing.

use std::collections::BTreeSet;

use anamnesis_app::{
    Error,
    context::{Context, TIMEOUT},
    format::width,
    session::{
        self,
        export::{self, RemovedCounts},
        note_label, short, state,
    },
};
use anamnesis_note::id::NoteId;
use anamnesis_session::event::{Privacy, Speaker};
use anamnesis_store::{
    index::Index,
    journal::{Contents, Journal, StoredEvent, StoredPrompt, StoredTurnEnd},
};
use anamnesis_text::clean::{clean, one_line};
use serde_json::to_value;

use crate::ui::{self, Outcome, Ui};

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
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let id = session::find(&journal, &args.id)?.id;
    let Some(contents) = journal.contents(&id)? else {
        return Err(Error::failed("the session was forgotten meanwhile"));
    };
    let index = context.index()?;
    if args.json {
        return ui.json(&export::session_json(context, &index, contents)?);
    }
    let page = Page {
        context,
        index: &index,
        contents: &contents,
        is_full: args.full,
        has_forgotten: journal.has_forgotten_prompt(&id)?,
        text: String::new(),
    };
    ui.page(&page.written(&journal)?, "")
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
    fn written(mut self, journal: &Journal) -> Result<String, Error> {
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
        self.text.push_str(&ui::shorten(&flat(text), width()));
        self.text.push('\n');
    }

    /// Adds a wrapped text.
    fn words(&mut self, text: &str, indent: usize) {
        let text = self.context.printable(text);
        self.text.push_str(&ui::wrapped(text.trim_end(), indent));
    }

    fn head(&mut self) -> Result<(), Error> {
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
        self.line(&format!(
            "removed: {}",
            removed_text(&RemovedCounts::new(contents))
        ));
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
            let events = ui::counted(prompt.suppressed, "event");
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
                self.line(&format!("    {}", self.context.printable(first)));
            }
        }
        if self.is_full {
            for (name, value) in [
                ("given", to_value(&event.input)),
                ("gave", to_value(&event.response)),
            ] {
                let value = value.unwrap_or_default();
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
        self.heading("tasks of subagents", self.contents.delegations.len());
        for task in &self.contents.delegations {
            self.line(&format!("  {}  {}", clock(task.at), one_line(&task.kind)));
            self.words(&task.prompt, 4);
        }
    }

    fn observations(&mut self) {
        self.heading("observed", self.contents.observations.len());
        for observation in &self.contents.observations {
            self.line(&format!(
                "  {}  {}",
                observation.kind.as_str(),
                self.context.printable(&observation.title)
            ));
            if !observation.subtitle.is_empty() {
                self.line(&format!(
                    "    {}",
                    self.context.printable(&observation.subtitle)
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
                    self.line(&format!("  {name:<10} {}", self.context.printable(line)));
                }
            }
        }
    }

    fn given(&mut self) {
        self.heading("injected", self.contents.shown.len());
        for shown in &self.contents.shown {
            let note = shown.note.parse().map_or_else(
                |_| one_line(&shown.note),
                |id: NoteId| Context::short(self.index, id),
            );
            self.line(&format!(
                "  {}  {:<7} {note}  {}  {}",
                clock(shown.at),
                shown.lane,
                shown.level,
                shown.reason
            ));
        }
    }

    fn jobs(&mut self) {
        self.heading("jobs", self.contents.jobs.len());
        for job in &self.contents.jobs {
            let tries = match job.tries {
                0 => String::new(),
                tries => format!(", failed {}", ui::counted(tries, "time")),
            };
            let error = job.error.as_deref().map_or_else(String::new, |error| {
                format!(": {}", self.context.printable(error))
            });
            self.line(&format!(
                "  {}  {} {}{tries}{error}",
                clock(job.at),
                job.kind,
                job.state
            ));
        }
    }

    /// Adds the heading of a section, if it has rows.
    fn heading(&mut self, text: &str, rows: usize) {
        if rows > 0 {
            self.line_after_gap(text);
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

/// Names what is missing.
fn removed_text(removed: &RemovedCounts) -> String {
    let mut parts = Vec::new();
    if removed.private_prompts > 0 {
        parts.push(format!(
            "{} with {} under it",
            ui::count(removed.private_prompts, "private or forgotten prompt"),
            ui::counted(removed.events_under_them, "event")
        ));
    }
    if removed.secrets > 0 {
        parts.push(ui::count(removed.secrets, "secret"));
    }
    if removed.private_words > 0 {
        parts.push(ui::count(removed.private_words, "repeated private word"));
    }
    if removed.tool_events_by_age > 0 {
        parts.push(format!(
            "{} by age",
            ui::counted(removed.tool_events_by_age, "tool event")
        ));
    }
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Formats a date and time.
fn moment(milliseconds: i64) -> String {
    let time = ui::time(milliseconds);
    time.format("%Y-%m-%d %H:%M").to_string()
}

/// Formats a time of day.
fn clock(milliseconds: i64) -> String {
    ui::time(milliseconds).format("%H:%M:%S").to_string()
}

/// Formats a duration.
fn took(milliseconds: i64) -> String {
    match milliseconds {
        ..1000 => format!("{milliseconds} ms"),
        _ => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
    }
}
