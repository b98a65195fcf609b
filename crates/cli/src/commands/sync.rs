//! `sync`: commits, fetches, joins and pushes.

use std::process::ExitCode;

use anamnesis_app::{
    Error, claude_memory,
    context::Context,
    sync::{self, PATIENCE, held_text},
};
use anamnesis_sync::{Answer, Synced};
use anamnesis_text::clean::one_line;
use serde_json::json;

use crate::ui::{Outcome, Ui};

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
        (true, _) => Answer::Accept,
        (_, true) => Answer::Restore,
        _ => Answer::None,
    };
    if answer != Answer::None && context.environment.is_agent {
        return Err(Error::failed(
            "what sync held back is decided by a person only",
        ));
    }
    let journal = context.journal();
    if let Some(journal) = &journal {
        claude_memory::follow(context, journal);
    }
    let synced = sync::run(context, journal.as_ref(), answer, PATIENCE)?;
    if args.json {
        ui.json(&json!({
            "pushed": synced.pushed,
            "pulled": synced.pulled,
            "conflicted": synced.conflicts > 0,
            "conflicts": synced.conflicts,
            "head": synced.head,
            "detail": synced.detail,
            "changed": synced.changed.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "problems": synced.problems.iter()
                .map(|problem| json!({ "path": problem.path, "reason": problem.reason }))
                .collect::<Vec<_>>(),
            "held": synced.held.as_ref().map(held_text),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    ui.print(&format!("sync: {}\n", line(&synced)));
    for problem in &synced.problems {
        ui.note(&format!(
            "{}: {}\n",
            problem.path,
            one_line(&problem.reason)
        ));
    }
    if let Some(held) = &synced.held {
        ui.note(&format!(
            "sync waits: {}\n→ if that is meant: anamnesis sync --accept; to bring them back: anamnesis sync --restore\n",
            held_text(held)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The result of a sync, in the form of the Python version.
fn line(synced: &Synced) -> String {
    format!(
        "{} conflicted={} head={} ({})",
        outcome(synced),
        word(synced.conflicts > 0),
        synced.head.as_deref().unwrap_or("None"),
        synced.detail,
    )
}

/// Like [`line()`], but shorter, for commands that also sync.
pub(crate) fn outcome(synced: &Synced) -> String {
    format!("pushed={} pulled={}", word(synced.pushed), synced.pulled)
}

/// A boolean as the Python version prints it.
fn word(is: bool) -> &'static str {
    if is { "True" } else { "False" }
}
