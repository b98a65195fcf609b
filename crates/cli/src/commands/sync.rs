//! `sync`: commits, fetches, joins and pushes.

use std::collections::BTreeSet;

use anamnesis_app::{
    Error,
    context::Context,
    ops::sync::SyncOutcome,
    sync::{self, held_text},
};
use anamnesis_note::{id::NoteId, note::State};
use anamnesis_store::journal::Journal;
use anamnesis_sync::{HeldDecision, Synced};
use anamnesis_text::clean::one_line;

use crate::ui::{self, LIST_LENGTH, Outcome, Ui};

/// Sync notes between your machines
///
/// Commits the notes that changed here, merges them field by field with those of the remote, and
/// pushes the result. Of two conflicting texts both are kept. A rewritten history and a mass
/// deletion are held back until you decide with an option below.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Accept what was held back
    #[arg(long)]
    accept: bool,
    /// Restore what was held back, here and on the remote
    #[arg(long, conflicts_with = "accept")]
    restore: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let answer = match (args.accept, args.restore) {
        (true, _) => HeldDecision::Accept,
        (_, true) => HeldDecision::Restore,
        _ => HeldDecision::None,
    };
    let synced = {
        let _progress = ui::Progress::new("syncing …");
        sync::run_now(context, answer)?
    };
    let needs_decision = ui::attention(synced.held.is_some());
    if args.json {
        ui.json(SyncOutcome::new(context, &synced)?)?;
        return Ok(needs_decision);
    }
    ui.print(&format!("{}\n", sentence(&synced)));
    if args.restore {
        ui.print(&restored(context, &synced)?);
    }
    if sync::remote(context)?.is_none() {
        ui.print("→ anamnesis init --remote URL   (joins your machines)\n");
    }
    ui.note(&remarks(&synced));
    Ok(needs_decision)
}

/// Returns the problems and decisions that a person should know.
pub(crate) fn remarks(synced: &Synced) -> String {
    let mut text = String::new();
    for problem in &synced.problems {
        let reason = one_line(&problem.reason);
        text.push_str(&format!("{}: {reason}\n", problem.path));
    }
    for note in &synced.returned {
        text.push_str(&format!("{}\n", sync::returned_text(*note)));
    }
    if let Some(held) = &synced.held {
        text.push_str(&format!(
            "the sync needs your decision: {}\n→ to accept it: anamnesis sync --accept; to restore the notes: anamnesis sync --restore\n",
            held_text(held)
        ));
    }
    text
}

/// Names the notes that came back.
fn restored(context: &Context, synced: &Synced) -> Result<String, Error> {
    let index = context.index()?;
    let ids = synced.changed.iter().map(|path| path.id);
    let ids: BTreeSet<NoteId> = ids.collect();
    let mut back = Vec::new();
    for id in ids {
        back.extend(
            index
                .get(id)?
                .filter(|entry| entry.state != State::Forgotten),
        );
    }
    let mut text = format!("brought back: {}\n", ui::count(back.len(), "note"));
    for entry in back.iter().take(LIST_LENGTH) {
        text.push_str(&ui::listed(&index, entry, context.environment.now));
    }
    Ok(text + &ui::shown_of(LIST_LENGTH, back.len(), ""))
}

/// The result of a sync.
pub(crate) fn sentence(synced: &Synced) -> String {
    let mut did = Vec::new();
    if synced.pulled > 0 {
        let changes = ui::count(synced.pulled, "change");
        did.push(format!("received {changes} from other machines"));
    }
    if synced.sent {
        did.push("sent this machine's changes".to_owned());
    }
    let mut text = match (did.join(", "), synced.pushed) {
        (did, _) if !did.is_empty() => format!("synced: {did}"),
        _ if synced.held.is_some() => synced.detail.clone(),
        (_, true) => "synced: nothing new".to_owned(),
        _ if synced.head.is_none() => "nothing to sync: there are no notes yet".to_owned(),
        _ => "committed on this machine; no remote is set".to_owned(),
    };
    if synced.conflicts > 0 && !text.contains("conflict") {
        let conflicts = ui::count(synced.conflicts, "conflict");
        text.push_str(&format!("; {conflicts} kept as notes of their own"));
    }
    text
}

/// Syncs after a command that changed notes, and prints the result. The notes are saved, so a failed
/// sync is not an error.
pub(super) fn sync_afterwards(context: &Context, journal: Option<&Journal>, ui: &Ui) {
    match sync::run(context, journal, HeldDecision::None, sync::TIMEOUT) {
        Ok(synced) => ui.print(&format!("{}\n", sentence(&synced))),
        Err(failure) => ui.note(&failure.text()),
    }
}

/// The result of a sync in the form of the Python version, for its commands.
pub(crate) fn outcome(synced: &Synced) -> String {
    let pushed = if synced.sent { "True" } else { "False" };
    format!("pushed={pushed} pulled={}", synced.pulled)
}
