//! `undo`: reverts a change.

use std::{collections::BTreeMap, process::ExitCode};

use anamnesis_app::{
    context::Context,
    failure::Failure,
    format::{ago, shorten},
    sync::{self, short_batch},
};
use anamnesis_note::{id::NoteId, note::NoteFile};
use anamnesis_store::journal::Journal;
use anamnesis_sync::{
    Act,
    history::{Event, Fate},
};
use anamnesis_text::clean::one_line;
use serde_json::json;

use super::diff;
use crate::{
    commands::history_view::{self, Past},
    ui::{self, LIST_LENGTH, Outcome, Ui},
};

/// How many changes are listed.
const LISTED: usize = 10;

/// Undo a change; without an argument, list the last ten
///
/// Restores notes byte for byte if they did not change since. In notes that did change, only this
/// change is reverted. An undo is a change that can be undone, too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The change's id as `log` shows it: four or more characters of its start or end
    batch: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let Some(typed) = &args.batch else {
        return list(args, &Past::open(context)?, ui);
    };
    // Commit pending edits of hooks and editors first, so that they are not part of the undo.
    let journal = context.journal();
    if let Err(failure) = sync::commit_all(context, journal.as_ref()) {
        context.log(&format!("undo: {}", failure.text().trim_end()));
    }
    let past = Past::open(context)?;
    let event = find(&past, typed)?;
    let titles: BTreeMap<NoteId, String> = event
        .notes
        .keys()
        .map(|id| (*id, past.title_of(*id)))
        .collect();
    let act = Act {
        verb: "undo",
        actor: context.actor(),
    };
    let lock = context.notes.lock()?;
    let undone = past.repository.undo(&lock, &context.notes, &event, act)?;
    drop(lock);
    keep_records(context, journal.as_ref(), &undone.notes)?;
    let past = Past::open(context)?;
    let batch = undone.committed.map(|committed| committed.batch);
    if args.json {
        let notes = undone.notes.iter().map(|(id, fate)| {
            let (word, why) = told(*fate);
            json!({ "id": id.to_string(), "did": word, "why": why })
        });
        let notes: Vec<_> = notes.collect();
        ui.json(&json!({
            "undone": past.json(&event),
            "notes": notes,
            "batch": batch.map(|batch| batch.to_string()),
        }));
    } else {
        let mut text = format!(
            "undid {}: {} by {}, {}\n",
            event.batch.map_or_else(String::new, short_batch),
            shorten(&history_view::shown_verb(&event), 20),
            history_view::shown_actor(&event),
            ago(event.at, context.environment.now),
        );
        if batch.is_none() {
            text = text.replacen("undid", "did not undo", 1);
        }
        for (id, fate) in undone.notes.iter().take(LIST_LENGTH) {
            text.push_str(&line(&past, *id, *fate, &titles));
        }
        if undone.notes.len() > LIST_LENGTH {
            text.push_str(&format!(
                "{LIST_LENGTH} of {} shown · all: --json\n",
                ui::number(undone.notes.len())
            ));
        }
        if let Some(batch) = batch {
            text.push_str(&format!("Undo: anamnesis undo {}\n", short_batch(batch)));
        }
        ui.print(&text);
    }
    if batch.is_none() {
        let changed = undone
            .notes
            .values()
            .any(|fate| !matches!(fate, Fate::Left(_)));
        if !changed {
            return Err(Failure::failed("nothing was undone"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the last changes and how to undo each.
fn list(args: &Args, past: &Past<'_>, ui: &Ui) -> Outcome {
    let actor = past.context.environment.is_agent.then_some("agent");
    let batches = past.repository.batches(actor, LISTED)?;
    if args.json {
        let batches: Vec<_> = batches.iter().map(|event| past.json(event)).collect();
        ui.json(&json!({ "batches": batches }));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for event in &batches {
        text.push_str(&past.line(event));
        text.push('\n');
    }
    match batches.first().and_then(|newest| newest.batch) {
        Some(newest) => text.push_str(&format!(
            "→ anamnesis undo {}   (the newest; any other by its six characters)\n",
            short_batch(newest)
        )),
        None => text.push_str("0 batches: there is nothing to undo\n"),
    }
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

/// Finds the change, and checks that the caller may undo it.
fn find(past: &Past<'_>, typed: &str) -> Result<Event, Failure> {
    let mut found = past.repository.find(typed)?;
    if found.len() > 1 {
        let lines: Vec<_> = found.iter().map(|event| past.line(event)).collect();
        return Err(diff::ambiguous(typed, &lines));
    }
    let event = found.pop().ok_or_else(|| diff::nothing(typed))?;
    if event.batch.is_none() {
        return Err(Failure::failed(
            "this commit is no batch: machines were joined, or another program made it",
        )
        .hint("anamnesis undo   (lists what can be undone)"));
    }
    if past.context.environment.is_agent && event.actor.as_deref() != Some("agent") {
        return Err(Failure::failed(
            "an agent takes back its own batches only; this one is undone by a person",
        ));
    }
    Ok(event)
}

/// Updates this machine's journal: restored notes, removed notes, and notes that a person wrote.
fn keep_records(
    context: &Context,
    journal: Option<&Journal>,
    notes: &BTreeMap<NoteId, Fate>,
) -> Result<(), Failure> {
    let now = context.environment.now;
    for (id, fate) in notes {
        match fate {
            Fate::Remembered => {
                context.notes.drop_trashed(*id)?;
                if let Some(journal) = journal {
                    journal.remembered(*id)?;
                }
            }
            Fate::Forgotten => {
                let text = context.notes.trashed(*id);
                let file = text.and_then(|bytes| NoteFile::parse(&bytes, *id).ok());
                if let (Some(journal), Some(file)) = (journal, file) {
                    journal.forgot(*id, &file.note().body, now)?;
                }
            }
            Fate::Merged if !context.environment.is_agent => {
                if let (Some(journal), Some(path)) = (journal, context.notes.find(*id)) {
                    journal.written_here(*id, &context.notes.bytes(path)?, now)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// What happened to a note, in one word, and why.
fn told(fate: Fate) -> (&'static str, Option<&'static str>) {
    match fate {
        Fate::Restored | Fate::Remembered => ("restored", None),
        Fate::Forgotten => ("forgotten", None),
        Fate::Merged => ("merged", Some("what came later stays")),
        Fate::Removed => ("removed", None),
        Fate::Local => ("kept here", Some("on this machine only")),
        Fate::Left(why) => ("left", Some(why)),
    }
}

fn line(past: &Past<'_>, id: NoteId, fate: Fate, titles: &BTreeMap<NoteId, String>) -> String {
    let (word, why) = told(fate);
    let why = why.map_or_else(String::new, |why| format!("  ({why})"));
    let head = format!("  {word:<9} #{} ", past.short(id));
    let mut title = past.title_of(id);
    if title.is_empty() && !past.is_withheld(id) {
        title = titles.get(&id).cloned().unwrap_or_default();
    }
    let room = ui::WIDTH.saturating_sub(head.chars().count() + why.chars().count() + 2);
    let title = if title.is_empty() {
        String::new()
    } else {
        format!("\"{}\"", shorten(&one_line(&title), room.max(12)))
    };
    format!("{}{why}\n", format!("{head}{title}").trim_end())
}
