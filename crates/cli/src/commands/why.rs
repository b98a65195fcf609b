//! `why`: shows which notes a session received or not, with the reasons recorded at that time.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anamnesis_app::{
    Error,
    context::Context,
    dry_run::{Trial, Tried},
    environment::Environment,
    format::width,
    recall::Lane,
    why::{self, ExactTexts, InjectionMoment, LAST, ReceivedNotes},
};
use anamnesis_note::id::NoteId;
use anamnesis_recall::{render::Reason, standing};
use anamnesis_store::{
    index::Index,
    journal::{
        COMMIT, Evidence, FILE, Given, INHERITED, POINTER, Run, SUGGESTION, WITHOUT_MEANING,
    },
};
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Ui};

/// Show which notes were injected into a session, and why
///
/// Without a session: the last one. All lines were recorded at the time of the injection.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session's id: six or more characters of its start, or `last`
    session: Option<String>,
    /// Only notes that contain this text, and other places that contain it
    #[arg(long)]
    text: Option<String>,
    /// Show what this prompt would inject now, and why; with a session, into that one
    #[arg(long = "try", value_name = "TEXT", conflicts_with = "text")]
    trial: Option<String>,
    /// Include notes that were held back
    #[arg(long, conflicts_with = "text")]
    all: bool,
    /// Print what the model saw, byte for byte
    #[arg(long, conflicts_with_all = ["text", "trial", "all"])]
    exact: bool,
    /// Print what the model saw last until the end of that day (2026-01-31), or until that time
    /// (2026-01-31T09:30Z, "3 d ago")
    #[arg(long, value_name = "DATE", conflicts_with_all = ["text", "trial", "all"])]
    at: Option<String>,
    /// Print JSON, with all details
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    if let Some(text) = &args.trial {
        // `open` would create the folders of the store.
        return try_out(text, args, &Context::new(environment, Duration::ZERO)?, ui);
    }
    let context = &Context::open(environment)?;
    if args.exact || args.at.is_some() {
        return exact(args, context, ui);
    }
    let typed = args.session.as_deref().unwrap_or(LAST);
    let Some(received) = why::load(context, typed)? else {
        let nothing = BTreeMap::from([("session", None::<&str>)]);
        let text = "no notes were injected yet\n→ anamnesis status\n";
        return ui.shown(args.json, nothing, text);
    };
    let page = Page { context, received };
    if args.json {
        return ui.json(page.received.report());
    }
    match &args.text {
        Some(text) => ui.answer(&page.saying(text)),
        None => ui.page(&page.whole(args.all), ""),
    }
}

/// Prints the recorded texts; what each of them is goes to stderr.
fn exact(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let found = why::exact(context, args.session.as_deref(), args.at.as_deref())?;
    let (session, texts) = match &found {
        Some((session, texts)) => (Some(session), &texts[..]),
        None => (None, &[][..]),
    };
    if args.json {
        return ui.json(ExactTexts::new(session, texts));
    }
    if texts.is_empty() {
        ui.print("no injected text is kept for that\n→ anamnesis why\n");
    }
    for text in texts {
        ui.note(&format!(
            "{} of session {} · {} · {} · SHA-256 {}\n",
            one_line(&text.event),
            session.map_or("", |session| &session.id),
            ui::iso(text.at),
            ui::count(text.text.len(), "byte"),
            text.hash,
        ));
        ui.exact(&text.text);
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what a prompt would inject.
fn try_out(text: &str, args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let session = why::session_to_try(context, args.session.as_deref())?;
    let trial = Trial {
        text,
        lane: Lane::Prompt,
        project: None,
        session: session.as_deref(),
    };
    let done = trial.run(context)?;
    ui.shown(args.json, done.json(), &tried(&done, context, args.all)?)
}

/// Formats the result of a trial, note by note, optionally with the notes that were held back.
pub(super) fn tried(tried: &Tried, context: &Context, with_held: bool) -> Result<String, Error> {
    let mut text = format!(
        "a {} in {}, now\n",
        match tried.lane {
            Lane::Prompt => "prompt",
            Lane::Agent => "subagent's task",
        },
        ui::shorten(&one_line(&tried.project.key), 40),
    );
    if let Ok(answer) = &tried.outcome {
        let index = Index::open(&context.home)?;
        let fits = |evidence: &Evidence, level: &str| {
            format!(
                "{} · {} · has {:.0} % of what is asked",
                matched(evidence),
                why::score(evidence, answer.run.floor, level),
                100.0 * evidence.coverage
            )
        };
        for shown in &answer.shown {
            text.push_str(&note_line(context, &index, &shown.note.to_string()));
            let evidence = shown.evidence.as_ref();
            let evidence =
                evidence.map_or_else(String::new, |evidence| fits(evidence, shown.level));
            text.push_str(&indented(&format!("{}{evidence}", shown.reason)));
        }
        let held = &answer.outcome.held;
        for held in held.iter().filter(|_| with_held) {
            text.push_str(&note_line(context, &index, &held.note));
            let evidence = fits(&held.evidence, "");
            text.push_str(&indented(&format!("held back: {}{evidence}", held.reason)));
        }
        if !with_held && !held.is_empty() {
            let thing = if answer.shown.is_empty() {
                "note"
            } else {
                "more note"
            };
            let count = ui::count(held.len(), thing);
            text.push_str(&format!("  {count} held back · --all\n"));
        }
    }
    for found in &tried.commits {
        text.push_str(&format!("  {}\n", one_line(&found.line())));
        let words = found.matched.join(", ");
        text.push_str(&indented(&format!(
            "the project's history · matched {words}"
        )));
    }
    if let Some(reason) = tried.silence() {
        text.push_str(&format!("nothing is injected: {reason}\n"));
    }
    if tried.is_behind {
        text.push_str("some notes are newer than the index\n→ anamnesis internal reindex\n");
    }
    Ok(text)
}

struct Page<'a> {
    context: &'a Context,
    received: ReceivedNotes<'a>,
}

impl Page<'_> {
    fn whole(&self, with_held: bool) -> String {
        let session = &self.received.session;
        let mut text = format!(
            "session {} of {}, {}\n",
            self.received.short,
            ui::shorten(&one_line(&session.project), 40),
            ui::ago(ui::time(session.started_at), self.context.environment.now)
        );
        let title_length = text.len();
        let mut silent = 0;
        let mut first = None;
        let moments = self.received.moments();
        let of_commits = moments.iter().filter(|moment| moment.lane == COMMIT);
        let answered: Vec<_> = of_commits.map(|it| self.received.prompt_at(it)).collect();
        for moment in &moments {
            let held = moment.run.map_or(&[][..], |run| &run.held);
            let shows_held = with_held && !held.is_empty();
            if moment.given.is_empty() && !shows_held {
                silent += usize::from(!answered.contains(&self.received.prompt_at(moment)));
                continue;
            }
            text.push_str(&format!("\n{}\n", self.occasion(moment)));
            for given in &moment.given {
                if given.is_of_note() {
                    first = first.or(given.note.parse().ok());
                }
                text.push_str(&self.given(given, moment.run));
            }
            for held in held.iter().filter(|_| with_held) {
                text.push_str(&self.line(&held.note));
                let reason = format!("held back: {}{}", held.reason, matched(&held.evidence));
                text.push_str(&indented(&reason));
            }
            if !with_held && !held.is_empty() {
                let count = ui::count(held.len(), "more note");
                text.push_str(&format!("  {count} held back · anamnesis why --all\n"));
            }
        }
        if silent == 0 && text.len() == title_length {
            text.push_str("no notes were injected yet\n");
        }
        if silent > 0 {
            let what = ui::one_or_many(silent, "prompt or event", "prompts or events");
            text.push_str(&format!("\n{silent} {what} without a matching note\n"));
        }
        text + &self.next_step(first)
    }

    /// The notes that contain a text, and other places that do.
    fn saying(&self, wanted: &str) -> String {
        let folded = wanted.to_lowercase();
        let moments = self.received.saying(&folded);
        let mut text = String::new();
        for moment in &moments {
            text.push_str(&format!("{}\n", self.occasion(moment)));
            for given in &moment.given {
                text.push_str(&self.given(given, moment.run));
            }
        }
        if text.is_empty() {
            let short = &self.received.short;
            text = format!("no note that was injected into session {short} contains that now\n");
        }
        let elsewhere = self.received.elsewhere(&folded);
        if !elsewhere.is_empty() {
            text.push_str("also in the session, but not injected by anamnesis:\n");
        }
        for place in elsewhere {
            text.push_str(&format!("  {place}\n"));
        }
        let first = moments.first().and_then(|moment| moment.given.first());
        text + &self.next_step(first.and_then(|given| given.note.parse().ok()))
    }

    /// How to change or forget a note.
    fn next_step(&self, note: Option<NoteId>) -> String {
        note.map_or_else(String::new, |id| {
            let short = Context::short(&self.received.index, id);
            format!("→ anamnesis edit {short}   |   anamnesis forget {short}\n")
        })
    }

    fn occasion(&self, moment: &InjectionMoment<'_>) -> String {
        let prompt = self.received.prompt_at(moment);
        let what = match (moment.lane, prompt) {
            ("start", _) => "at its start".to_owned(),
            (INHERITED, _) => "in its history, before it was forked".to_owned(),
            ("arrivals", Some(number)) => format!("arrived before prompt {number}"),
            ("prompt", Some(number)) => format!("prompt {number}"),
            ("agent", _) => "for a subagent".to_owned(),
            (SUGGESTION, Some(number)) => format!("suggested to Claude at prompt {number}"),
            (lane, number) => {
                let place = match lane {
                    COMMIT => "from the project's history",
                    "tool" => "before a tool",
                    FILE => "at a file",
                    "failure" => "after a failure",
                    other => &one_line(other),
                };
                number.map_or_else(
                    || place.to_owned(),
                    |number| format!("{place}, prompt {number}"),
                )
            }
        };
        let ago = ui::ago(ui::time(moment.at), self.context.environment.now);
        if moment.run.is_some_and(Run::is_without_meaning) {
            return format!("{what} · {ago} · {WITHOUT_MEANING}");
        }
        format!("{what} · {ago}")
    }

    /// A line with a note's current title, or that it is gone.
    fn line(&self, id: &str) -> String {
        note_line(self.context, &self.received.index, id)
    }

    /// The lines about an injected note.
    fn given(&self, given: &Given, run: Option<&Run>) -> String {
        let mut reason = one_line(&given.reason);
        if given.level == SUGGESTION {
            return indented(&reason);
        }
        let words = given.evidence.as_ref().map(matched).unwrap_or_default();
        if given.level == COMMIT {
            let line = one_line(&self.received.commit(given));
            return format!("  {line}\n{}", indented(&(reason + &words)));
        }
        if let Some(evidence) = &given.evidence {
            reason.push_str(&words);
            // A file is found by its path, without a score.
            if given.lane != FILE {
                let floor = run.map_or(0.0, |run| run.floor);
                let score = why::score(evidence, floor, &given.level);
                reason.push_str(&format!(" · {score}"));
            }
        }
        if given.level == POINTER {
            reason.push_str(" · a pointer");
        }
        if given.level == "name" {
            let why = match &*given.reason {
                standing::REASON => "only that sentence",
                of if of == Reason::OpenTask.as_str() => "only its title",
                _ if given.lane == INHERITED => "without its text",
                _ => "named only, for want of room",
            };
            reason.push_str(&format!(" · {why}"));
        }
        if self.received.has_changed(given) {
            reason.push_str(" · changed since");
        }
        self.line(&given.note) + &indented(&reason)
    }
}

/// A line with a note's current title, or that it is gone.
fn note_line(context: &Context, index: &Index, id: &str) -> String {
    match why::entry(context, index, id) {
        Some(entry) => {
            let (short, now) = (Context::short(index, entry.id()), context.environment.now);
            let line = ui::note_line_within(ui::width() - 2, &entry, &short, now);
            format!("  {line}\n")
        }
        None => format!("  {}  no longer there\n", one_line(id)),
    }
}

/// The words that matched a note, and the link that led to it.
pub(super) fn matched(evidence: &Evidence) -> String {
    let mut text = String::new();
    if !evidence.matched.is_empty() {
        let words: Vec<String> = evidence.matched.iter().map(|word| one_line(word)).collect();
        text.push_str(&format!(" · matched {}", words.join(", ")));
    }
    if let Some(similarity) = evidence.similarity {
        text.push_str(&format!(" · similar meaning {similarity:.2}"));
    }
    if let Some((relation, from)) = &evidence.via {
        text.push_str(&format!(" · {} #{}", one_line(relation), one_line(from)));
    }
    text
}

pub(super) fn indented(text: &str) -> String {
    ui::wrapped(&ui::shorten(text, 3 * width()), 10)
}
