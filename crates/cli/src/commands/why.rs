//! `why`: shows which notes a session received or not, with the reasons recorded at that time.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anamnesis_app::{
    context::Context,
    dry_run::{Trial, Tried},
    environment::Environment,
    failure::Failure,
    format::WIDTH,
    recall::Lane,
    session,
    tool_hooks::OBSERVATION,
};
use anamnesis_note::id::NoteId;
use anamnesis_store::{
    index::{Entry, Index},
    journal::{Evidence, Given, Held, Journal, Run, Session},
};
use anamnesis_text::{clean::one_line, hash::text_hash};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::sessions;
use crate::ui::{self, Outcome, Ui};

/// How many bytes of an instructions file are searched.
const MAX_INSTRUCTIONS: u64 = 1024 * 1024;

/// The word that means the last session with injected notes.
const LAST: &str = "last";

/// How many places outside the store are named.
const MAX_PLACES: usize = 5;

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
    /// Print JSON, with all details
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    if let Some(text) = &args.trial {
        // `open` would create the folders of the store.
        return try_out(text, args, &Context::of(environment, Duration::ZERO)?, ui);
    }
    let context = &Context::open(environment)?;
    let journal = sessions::open(context)?;
    let typed = args.session.as_deref().unwrap_or(LAST);
    let Some(session) = session(&journal, typed)? else {
        ui.print("no session was given anything yet\n→ anamnesis status\n");
        return Ok(ExitCode::SUCCESS);
    };
    let page = Page {
        context,
        index: context.index()?,
        prompts: prompts(&journal, &session)?,
        given: journal.given(&session.id)?,
        runs: journal.recalls(&session.id)?,
        session,
    };
    if args.json {
        ui.json(&page.json());
    } else if let Some(text) = &args.text {
        ui.print(&page.saying(text, &journal)?);
    } else {
        ui.print(&page.whole(&journal, args.all)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what a prompt would inject.
fn try_out(text: &str, args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let last;
    let session = match args.session.as_deref() {
        Some(LAST) => {
            last = context
                .records()?
                .and_then(|journal| journal.last_recalling_session().transpose())
                .transpose()?;
            last.as_deref()
        }
        typed => typed,
    };
    let trial = Trial {
        text,
        lane: Lane::Prompt,
        project: None,
        session,
    };
    let done = trial.run(context)?;
    if args.json {
        ui.json(&done.json());
    } else {
        ui.print(&tried(&done, context, args.all)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats the result of a trial, note by note, optionally with the notes that were held back.
pub(super) fn tried(tried: &Tried, context: &Context, with_held: bool) -> Result<String, Failure> {
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
        let now = context.environment.now;
        let fits = |evidence: &Evidence| {
            format!(
                "{} · fits {:.2} of {:.2} needed · has {:.0} % of what is asked",
                matched(evidence),
                evidence.score,
                answer.run.floor,
                100.0 * evidence.coverage
            )
        };
        for shown in &answer.shown {
            text.push_str(&note_line(&index, &shown.note.to_string(), now));
            let evidence = shown.evidence.as_ref().map(fits).unwrap_or_default();
            text.push_str(&indented(&format!("{}{evidence}", shown.reason)));
        }
        let held = &answer.outcome.held;
        for held in held.iter().filter(|_| with_held) {
            text.push_str(&note_line(&index, &held.note, now));
            let evidence = fits(&held.evidence);
            text.push_str(&indented(&format!("held back: {}{evidence}", held.reason)));
        }
        if !with_held && !held.is_empty() {
            let count = ui::count(held.len(), "more note");
            text.push_str(&format!("  {count} held back · --all\n"));
        }
    }
    if let Some(reason) = tried.silence() {
        text.push_str(&format!("nothing comes: {reason}\n"));
    }
    if tried.is_behind {
        text.push_str("some notes are newer than the index\n→ anamnesis internal reindex\n");
    }
    Ok(text)
}

/// Finds the session; `None` if `last` is meant and no session has received notes.
fn session(journal: &Journal, typed: &str) -> Result<Option<Session>, Failure> {
    if typed != LAST {
        return session::find(journal, typed).map(Some);
    }
    match journal.last_recalling_session()? {
        Some(id) => Ok(journal.session(&id)?),
        None => Ok(None),
    }
}

/// The numbers and times of a session's prompts.
fn prompts(journal: &Journal, session: &Session) -> Result<Vec<(i64, i64)>, Failure> {
    let prompts = journal.prompts(&session.id)?;
    Ok(prompts
        .into_iter()
        .map(|prompt| (prompt.number, prompt.at))
        .collect())
}

struct Page<'a> {
    context: &'a Context,
    index: Index,
    session: Session,
    prompts: Vec<(i64, i64)>,
    given: Vec<Given>,
    runs: Vec<Run>,
}

/// All injections and held-back notes at one moment of one context.
struct Moment<'a> {
    at: i64,
    lane: &'a str,
    agent: &'a str,
    given: Vec<&'a Given>,
    run: Option<&'a Run>,
}

impl Page<'_> {
    /// The moments, in order.
    fn moments(&self) -> Vec<Moment<'_>> {
        let mut moments: Vec<Moment<'_>> = Vec::new();
        for given in &self.given {
            let same = moments.iter_mut().find(|moment| {
                (moment.at, moment.lane, moment.agent) == (given.at, &*given.lane, &*given.agent)
            });
            match same {
                Some(moment) => moment.given.push(given),
                None => moments.push(Moment {
                    at: given.at,
                    lane: &given.lane,
                    agent: &given.agent,
                    given: vec![given],
                    run: None,
                }),
            }
        }
        for run in &self.runs {
            let same = moments.iter_mut().find(|moment| {
                (moment.at, moment.lane, moment.agent) == (run.at, &*run.lane, &*run.agent)
            });
            match same {
                Some(moment) => moment.run = Some(run),
                None => moments.push(Moment {
                    at: run.at,
                    lane: &run.lane,
                    agent: &run.agent,
                    given: Vec::new(),
                    run: Some(run),
                }),
            }
        }
        moments.sort_by_key(|moment| moment.at);
        moments
    }

    fn whole(&self, journal: &Journal, with_held: bool) -> Result<String, Failure> {
        let now = self.context.environment.now;
        let mut text = format!(
            "session {} of {}, {}\n",
            sessions::short(journal, &self.session)?,
            ui::shorten(&one_line(&self.session.project), 40),
            ui::ago(ui::time(self.session.started_at), now)
        );
        let mut silent = 0;
        let mut first = None;
        for moment in self.moments() {
            let held = moment.run.map_or(&[][..], |run| &run.held);
            let shows_held = with_held && !held.is_empty();
            if moment.given.is_empty() && !shows_held {
                silent += 1;
                continue;
            }
            text.push_str(&format!("\n{}\n", self.occasion(&moment)));
            for given in &moment.given {
                first = first.or(given.note.parse().ok());
                text.push_str(&self.line(&given.note));
                text.push_str(&self.reason(given, moment.run));
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
        if silent > 0 {
            text.push_str(&format!(
                "\n{} with nothing that fits\n",
                ui::count(silent, "prompt or event")
            ));
        }
        if let Some(id) = first {
            let short = Context::short(&self.index, id);
            text.push_str(&format!(
                "→ anamnesis edit {short}   |   anamnesis forget {short}\n"
            ));
        }
        Ok(text)
    }

    /// The notes that contain a text, and other places that do.
    fn saying(&self, wanted: &str, journal: &Journal) -> Result<String, Failure> {
        let folded = wanted.to_lowercase();
        let mut text = String::new();
        let mut first = None;
        for moment in self.moments() {
            let mut lines = String::new();
            for given in &moment.given {
                let Some(entry) = self.entry(&given.note) else {
                    continue;
                };
                let note = self
                    .context
                    .notes
                    .read(entry.path)
                    .map(|stored| stored.note());
                let says = note.is_ok_and(|note| {
                    note.title.to_lowercase().contains(&folded)
                        || note.body.to_lowercase().contains(&folded)
                });
                if says {
                    first = first.or(Some(entry.id()));
                    lines.push_str(&self.line(&given.note));
                    lines.push_str(&self.reason(given, moment.run));
                }
            }
            if !lines.is_empty() {
                text.push_str(&format!("{}\n{lines}", self.occasion(&moment)));
            }
        }
        if text.is_empty() {
            text = format!(
                "nothing that session {} was given says that now\n",
                sessions::short(journal, &self.session)?
            );
        }
        let elsewhere = self.elsewhere(&folded);
        if !elsewhere.is_empty() {
            text.push_str("says so too, not from anamnesis:\n");
            for place in elsewhere {
                text.push_str(&format!("  {place}\n"));
            }
        }
        if let Some(id) = first {
            let short = Context::short(&self.index, id);
            text.push_str(&format!(
                "→ anamnesis edit {short}   |   anamnesis forget {short}\n"
            ));
        }
        Ok(text)
    }

    /// Lines of the person's instructions and of Claude Code's own memory that contain a text.
    fn elsewhere(&self, folded: &str) -> Vec<String> {
        let user_home = self.context.environment.user_home.as_deref();
        let mut files: Vec<PathBuf> = Vec::new();
        if let Some(folder) = self.session.folder.as_deref().map(Path::new) {
            for name in ["CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"] {
                files.push(folder.join(name));
            }
        }
        if let Some(home) = user_home {
            files.push(home.join(".claude/CLAUDE.md"));
        }
        // The client stores a project's memory next to its transcripts.
        let transcript = self.session.transcript.as_deref().map(Path::new);
        if let Some(folder) = transcript.and_then(Path::parent) {
            files.push(folder.join("memory/MEMORY.md"));
        }
        let mut places = Vec::new();
        for file in files {
            let Some(text) = beginning(&file) else {
                continue;
            };
            for (number, line) in (1..).zip(text.lines()) {
                if places.len() < MAX_PLACES && line.to_lowercase().contains(folded) {
                    let name = ui::home_path(&file, user_home);
                    places.push(one_line(&format!("{name}:{number}")));
                }
            }
        }
        places
    }

    fn occasion(&self, moment: &Moment<'_>) -> String {
        let prompt = self
            .prompts
            .iter()
            .rev()
            .find(|(_, at)| *at <= moment.at)
            .map(|(number, _)| *number);
        let what = match (moment.lane, prompt) {
            ("start", _) => "at its start".to_owned(),
            ("arrivals", Some(number)) => format!("arrived before prompt {number}"),
            ("prompt", Some(number)) => format!("prompt {number}"),
            ("agent", _) => "for a subagent".to_owned(),
            ("tool", Some(number)) => format!("before a tool, prompt {number}"),
            ("failure", Some(number)) => format!("after a failure, prompt {number}"),
            (lane, _) => one_line(lane),
        };
        let now = self.context.environment.now;
        format!("{what} · {}", ui::ago(ui::time(moment.at), now))
    }

    fn entry(&self, id: &str) -> Option<Entry> {
        entry(&self.index, id)
    }

    /// A line with a note's current title, or that it is gone.
    fn line(&self, id: &str) -> String {
        note_line(&self.index, id, self.context.environment.now)
    }

    fn reason(&self, given: &Given, run: Option<&Run>) -> String {
        let mut reason = one_line(&given.reason);
        if let Some(evidence) = &given.evidence {
            reason.push_str(&matched(evidence));
            let floor = run.map_or(0.0, |run| run.floor);
            reason.push_str(&format!(
                " · fits {:.2} of {floor:.2} needed",
                evidence.score
            ));
        }
        if given.level == "name" {
            reason.push_str(" · named only, for want of room");
        }
        if self.has_changed(given) {
            reason.push_str(" · changed since");
        }
        indented(&reason)
    }

    /// Tells whether the note changed since the injection. An observation only refers to its
    /// session, so it is not compared.
    fn has_changed(&self, given: &Given) -> bool {
        if given.level == OBSERVATION {
            return false;
        }
        self.entry(&given.note)
            .and_then(|entry| self.context.notes.read(entry.path).ok())
            .is_some_and(|stored| text_hash(&stored.note().body) != given.hash)
    }

    fn json(&self) -> Value {
        let moments: Vec<Value> = self
            .moments()
            .iter()
            .map(|moment| {
                let given: Vec<Value> = moment
                    .given
                    .iter()
                    .map(|given| {
                        json!({
                            "id": given.note,
                            "body_sha256": (given.level != OBSERVATION).then_some(&given.hash),
                            "level": given.level,
                            "reason": given.reason,
                            "evidence": given.evidence,
                            "title": self.entry(&given.note).map(|entry| entry.title),
                            "changed": self.has_changed(given),
                        })
                    })
                    .collect();
                json!({
                    "lane": moment.lane,
                    "agent": Some(moment.agent).filter(|agent| !agent.is_empty()),
                    "at": ui::iso(moment.at),
                    "given": given,
                    "terms": moment.run.map(|run| run.terms),
                    "searched": moment.run.map(|run| run.searched),
                    "floor": moment.run.map(|run| run.floor),
                    "reason": moment.run.map(|run| &run.reason).filter(|reason| !reason.is_empty()),
                    "held": moment.run.map_or(&[][..], |run: &Run| &run.held) as &[Held],
                })
            })
            .collect();
        json!({ "session": self.session.id, "project": self.session.project, "moments": moments })
    }
}

fn entry(index: &Index, id: &str) -> Option<Entry> {
    index.get(id.parse::<NoteId>().ok()?).ok().flatten()
}

/// A line with a note's current title, or that it is gone.
fn note_line(index: &Index, id: &str, now: DateTime<Utc>) -> String {
    match entry(index, id) {
        Some(entry) => {
            let short = Context::short(index, entry.id());
            // The indent adds two columns to the width. That affects only the end of a long title.
            format!("  {}\n", ui::note_line(&entry, &short, now))
        }
        None => format!("  #{}  no longer there\n", one_line(id)),
    }
}

/// The words that matched a note, and the link that led to it.
pub(super) fn matched(evidence: &Evidence) -> String {
    let mut text = String::new();
    if !evidence.matched.is_empty() {
        let words: Vec<String> = evidence.matched.iter().map(|word| one_line(word)).collect();
        text.push_str(&format!(" · matched {}", words.join(", ")));
    }
    if let Some((relation, from)) = &evidence.via {
        text.push_str(&format!(" · {} #{}", one_line(relation), one_line(from)));
    }
    text
}

pub(super) fn indented(text: &str) -> String {
    let mut out = String::new();
    for line in ui::wrapped(&ui::shorten(text, 3 * WIDTH), 10).lines() {
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The start of a regular file, up to the limit.
fn beginning(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_INSTRUCTIONS).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
