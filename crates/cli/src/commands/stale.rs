//! `stale`: the notes that are worth a look, and why.

use std::{collections::HashMap, process::ExitCode};

use anamnesis_core::{
    clean::one_line,
    id::NoteId,
    note::{GLOBAL, Kind, Note, State, parse_timestamp},
    receipt::NoteCounts,
};
use anamnesis_recall::{
    freshness::freshness,
    stale::{self, Facts, Reason},
    usefulness::Faded,
};
use anamnesis_store::{
    index::{ByMonth, Entry, Filter, Index},
    project::Project,
};
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::{Value, json};

use super::Outcome;
use crate::{cited, context::Context, failure::Failure, ui, ui::Ui};

/// What a task says of itself once there is nothing more to do.
const FINISHED: [&str; 2] = ["done", "archived"];

/// Relations by which a note belongs to a task, whichever of the two says so.
const BELONGS: [&str; 2] = ["about", "part-of"];

/// Show the notes that are worth a look, and why
///
/// A task that they belong to was finished, the day came on which they were to be looked at, what they
/// name is gone from the project, another note says otherwise, or they are old and were never used.
/// Nothing is changed: `verify` says that a note is still right, and so does changing it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The notes of this project instead
    #[arg(long, value_name = "KEY", conflicts_with = "everywhere")]
    project: Option<String>,
    /// The notes of every project
    #[arg(long)]
    everywhere: bool,
    /// All of them, not only the first twenty
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let projects = if args.everywhere {
        Vec::new()
    } else {
        let mut keys = Project::all_keys(&context.project(args.project.as_deref()));
        keys.push(GLOBAL.to_owned());
        keys
    };
    let index = context.index()?;
    let filter = Filter {
        projects,
        ..Filter::default()
    };
    if args.project.is_none() && !args.everywhere {
        cited::look_here(context);
    }
    let mut entries = index.list(&filter, usize::MAX)?;
    entries.retain(|entry| entry.state == State::Active);
    let found = find(context, &index, entries)?;
    if args.json {
        let notes: Vec<Value> = found
            .iter()
            .map(|(entry, reasons)| {
                let mut note = ui::note_json(entry, None);
                let reasons = reasons.iter();
                note["reasons"] = reasons
                    .map(|reason| json!({ "reason": reason.word(), "text": shown(reason, &index) }))
                    .collect();
                note
            })
            .collect();
        ui.json(&json!({ "notes": notes, "total": found.len() }));
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        ui.print("no note is worth a look\n");
        return Ok(ExitCode::SUCCESS);
    }
    let limit = if args.all {
        usize::MAX
    } else {
        ui::LIST_LENGTH
    };
    let mut text = String::new();
    for (entry, reasons) in found.iter().take(limit) {
        let short = Context::short(&index, entry.id());
        text.push_str(&ui::note_line(entry, &short, context.environment.now));
        text.push('\n');
        for reason in reasons {
            text.push_str(&ui::wrapped(&shown(reason, &index), 2));
        }
    }
    if found.len() > limit {
        let total = ui::number(found.len());
        text.push_str(&format!("{limit} of {total} shown · --all\n"));
    }
    text.push_str("→ anamnesis verify ID   |   anamnesis edit ID   |   anamnesis forget ID\n");
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

/// The reason for a person.
fn shown(reason: &Reason, index: &Index) -> String {
    match reason {
        Reason::TaskDone { task, at } => format!(
            "its task #{} was finished on {}",
            Context::short(index, *task),
            at.date_naive()
        ),
        Reason::ReviewDue(day) => format!("it was to be looked at from {day} on"),
        Reason::Gone(what) => one_line(what),
        Reason::Disputed(note) => {
            format!("#{} says otherwise", Context::short(index, *note))
        }
        Reason::Faded => "old, and never used".to_owned(),
    }
}

/// What the files say of notes and of each other.
#[derive(Default)]
struct Files {
    review_after: HashMap<NoteId, NaiveDate>,
    /// Finished tasks.
    finished: HashMap<NoteId, DateTime<Utc>>,
    /// Pairs of a note and one that it belongs to, or that belongs to it.
    belongs: Vec<(NoteId, NoteId)>,
    /// Pairs of notes of which only one can be right.
    disputes: Vec<(NoteId, NoteId)>,
}

impl Files {
    fn of(context: &Context, entries: &[Entry]) -> Self {
        let mut files = Self::default();
        for entry in entries {
            // One that cannot be read is `doctor`'s to name.
            let Ok(stored) = context.notes.read(entry.path) else {
                continue;
            };
            let (id, text_of) = (entry.id(), |key| stored.file.text_of(key));
            let day = text_of("review_after").and_then(|day| day.trim().parse().ok());
            files.review_after.extend(day.map(|day| (id, day)));
            let status = text_of("status").unwrap_or_default();
            if entry.kind == Kind::Task && FINISHED.contains(&status.trim()) {
                files
                    .finished
                    .extend(changed(entry).map(|finished| (id, finished)));
            }
            files.take_links(stored.file.note());
        }
        files
    }

    fn take_links(&mut self, note: &Note) {
        for line in &note.links {
            let mut words = line.split_whitespace();
            let relation = words.next().unwrap_or_default();
            let Some(Ok(other)) = words.next().map(str::parse) else {
                continue;
            };
            if BELONGS.contains(&relation) {
                self.belongs.extend([(note.id, other), (other, note.id)]);
            } else if relation == "contradicts" {
                self.disputes.extend([(note.id, other), (other, note.id)]);
            }
        }
    }
}

fn changed(entry: &Entry) -> Option<DateTime<Utc>> {
    parse_timestamp(&entry.updated_at)
}

/// The notes that are worth a look, those with most reasons first, then the oldest, then by id.
fn find(
    context: &Context,
    index: &Index,
    entries: Vec<Entry>,
) -> Result<Vec<(Entry, Vec<Reason>)>, Failure> {
    let now = context.environment.now;
    let files = Files::of(context, &entries);
    let usage = index.usage_of(entries.iter().map(Entry::id))?;
    let nothing = ByMonth::new();
    let changed_at: HashMap<NoteId, DateTime<Utc>> = entries
        .iter()
        .filter_map(|entry| Some((entry.id(), changed(entry)?)))
        .collect();
    let mut facts: HashMap<NoteId, Facts> = entries
        .iter()
        .map(|entry| {
            let known = usage.get(&entry.id()).unwrap_or(&nothing);
            let mut facts = worth(entry, known, now);
            facts.review_after = files.review_after.get(&entry.id()).copied();
            (entry.id(), facts)
        })
        .collect();
    for (note, task) in &files.belongs {
        if let (Some(facts), Some(at)) = (facts.get_mut(note), files.finished.get(task)) {
            facts.tasks.push((*task, *at));
        }
    }
    for (note, other) in &files.disputes {
        if let (Some(facts), Some(at)) = (facts.get_mut(note), changed_at.get(other)) {
            facts.disputed_by.push((*other, *at));
        }
    }
    let ids: Vec<NoteId> = entries.iter().map(Entry::id).collect();
    let gone = context
        .journal()
        .and_then(|journal| journal.stale(&ids).ok());
    for (note, stale) in gone.unwrap_or_default() {
        if let Some(facts) = facts.get_mut(&note) {
            facts.gone = Some((stale.reason, ui::time(stale.gone_at)));
        }
    }
    let mut found: Vec<(Entry, Vec<Reason>)> = entries
        .into_iter()
        .filter_map(|entry| {
            let mut reasons = stale::reasons(facts.get(&entry.id())?, now);
            // Both notes may say the same of each other.
            reasons.dedup();
            (!reasons.is_empty()).then_some((entry, reasons))
        })
        .collect();
    found.sort_by(|(a, of_a), (b, of_b)| {
        let by_number = of_b.len().cmp(&of_a.len());
        let by_age = a.updated_at.cmp(&b.updated_at);
        by_number.then(by_age).then(a.id().cmp(&b.id()))
    });
    Ok(found)
}

/// What the index and the receipts say of a note.
fn worth(entry: &Entry, usage: &ByMonth<NoteCounts>, now: DateTime<Utc>) -> Facts {
    let counts = || usage.iter().map(|(_, counts)| counts);
    let last_used = counts().filter_map(|counts| counts.last).max();
    let looked_at = stale::looked_at(entry, usage);
    let sessions = Faded::of(usage, now).sessions;
    let never_fades = entry.pinned || entry.kind == Kind::Task;
    // A note without any time says nothing of its age.
    let since = looked_at.max(last_used).unwrap_or(now);
    Facts {
        looked_at,
        freshness: freshness(entry.kind, never_fades, since, sessions, now),
        was_used: counts().any(|counts| counts.sessions > 0),
        ..Facts::default()
    }
}
