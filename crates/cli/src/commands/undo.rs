//! `undo`: reverts a change.

use std::collections::BTreeMap;

use anamnesis_app::{
    Error,
    context::Context,
    format::{ago, shorten},
    history::{self, Past},
    sync::{self, short_change},
    undo::{self, UndoOutcome, words_of},
};
use anamnesis_note::id::NoteId;
use anamnesis_sync::history::Fate;
use anamnesis_text::clean::one_line;

use crate::ui::{self, LIST_LENGTH, Outcome, Ui};

/// The message when no change can be undone.
const NOTHING: &str = "nothing to undo\n";

/// Undo a change; without an argument, list the last ten
///
/// Restores notes byte for byte if they did not change since. In notes that did change, only this
/// change is reverted. An undo is a change that can be undone, too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The change's id as `log` shows it: four or more characters of its start or end
    #[arg(value_name = "CHANGE")]
    batch: Option<String>,
    /// The maximum number of changes to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, conflicts_with = "batch", value_parser = ui::at_least_one)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let Some(typed) = &args.batch else {
        sync::commit_pending(context);
        return list(args, Past::open_if_any(context)?.as_ref(), ui);
    };
    let undone = undo::undo(context, typed)?;
    let shown = ui.shown(args.json, undone.report(), &text(&undone, context))?;
    if undone.has_effect() {
        Ok(shown)
    } else {
        Err(Error::failed("nothing was undone"))
    }
}

fn text(undone: &UndoOutcome<'_>, context: &Context) -> String {
    let event = &undone.event;
    let mut text = format!(
        "{} {}: {} by {}, {}\n",
        undone.batch.map_or("did not undo", |_| "undid"),
        event.batch.map_or_else(String::new, short_change),
        shorten(&history::shown_verb(event), 20),
        history::shown_actor(event),
        ago(event.at, context.environment.now),
    );
    for (id, fate) in undone.notes.iter().take(LIST_LENGTH) {
        text.push_str(&line(undone, *id, *fate));
    }
    let total = undone.notes.len();
    text.push_str(&ui::shown_of(LIST_LENGTH, total, " · all: --json"));
    if let Some(batch) = undone.batch {
        text.push_str(&format!("Undo: anamnesis undo {}\n", short_change(batch)));
    }
    text
}

/// Lists the last changes and how to undo each.
fn list(args: &Args, past: Option<&Past<'_>>, ui: &Ui) -> Outcome {
    // Before the first commit the list is empty. That is not an error.
    let Some(past) = past else {
        return ui.shown(
            args.json,
            BTreeMap::from([("changes", Vec::<String>::new())]),
            NOTHING,
        );
    };
    let actor = past.context.environment.is_agent.then_some("agent");
    // A session's note changes often, and is listed once.
    let mut batches = past
        .repository
        .batches(actor, args.limit.saturating_mul(4))?;
    history::once_per_session(&mut batches, |event| event);
    // What the person did is what the person takes back.
    batches.sort_by_key(|event| event.actor.as_deref() != Some("person"));
    batches.truncate(args.limit);
    if args.json {
        let batches: Vec<_> = batches.iter().map(|event| past.json(event)).collect();
        return ui.json(BTreeMap::from([("changes", batches)]));
    }
    let mut text = String::new();
    for event in &batches {
        text.push_str(&past.line(event));
        text.push('\n');
    }
    match batches.first().and_then(|newest| newest.batch) {
        Some(newest) => text.push_str(&format!(
            "→ anamnesis undo {}   (the newest; any other by its six characters)\n",
            short_change(newest)
        )),
        None => text.push_str(NOTHING),
    }
    ui.answer(&text)
}

fn line(undone: &UndoOutcome<'_>, id: NoteId, fate: Fate) -> String {
    let (word, why) = words_of(fate);
    let why = why.map_or_else(String::new, |why| format!("  ({why})"));
    let head = format!("  {word:<9} #{} ", undone.past.short(id));
    let title = undone.title_of(id);
    let room = ui::width().saturating_sub(head.chars().count() + why.chars().count() + 2);
    let title = if title.is_empty() {
        String::new()
    } else {
        format!("\"{}\"", shorten(&one_line(&title), room.max(12)))
    };
    format!("{}{why}\n", format!("{head}{title}").trim_end())
}
