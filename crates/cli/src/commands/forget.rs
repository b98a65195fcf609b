//! `forget`, its undo `restore`, and forgetting a session, which cannot be undone.

mod session;

use std::process::ExitCode;

use anamnesis_app::{Error, context::Context, forget, remote, sync::short_batch};
use anamnesis_text::clean::one_line;
use serde_json::json;

use crate::ui::{Outcome, Ui};

/// Forget a note; its text goes to the trash
///
/// A tombstone replaces it, so that no import and no older copy brings it back. With `--session`:
/// permanently delete everything that is recorded of a session, and its note.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A note's id: six or more characters of its start or end; repeatable
    #[arg(required_unless_present = "session", conflicts_with = "session")]
    ids: Vec<String>,
    /// Permanently delete the session whose id starts with this
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Delete only this prompt of the session, with everything that happened under it
    #[arg(long, value_name = "N", requires = "session")]
    prompt: Option<i64>,
    /// Do not ask for confirmation
    #[arg(long, requires = "session")]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Restore a forgotten note, byte for byte
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// The note's id: six or more characters of its start or end
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if let Some(session) = &args.session {
        return ui.saying(args.json, |ui| {
            session::run(session, args.prompt, args.yes, context, ui)
        });
    }
    if context.environment.is_agent && args.ids.len() > 1 {
        return Err(Error::usage("an agent forgets one note at a time"));
    }
    let forgotten = forget::forget(context, &args.ids)?;
    let elsewhere = match remote::address(context) {
        Some(_) => "; elsewhere with the next sync",
        None => "",
    };
    let mut text = String::new();
    let mut all = Vec::new();
    for (entry, short) in &forgotten.notes {
        let title = one_line(&entry.title);
        text.push_str(&format!("forgot #{short} \"{title}\"{elsewhere}\n"));
        all.push(short.as_str());
    }
    let all = all.join(" ");
    text.push_str(&match forgotten.batch {
        Some(batch) => format!(
            "Undo: anamnesis undo {} · out of history too: anamnesis purge {all}\n",
            short_batch(batch)
        ),
        None => format!("Undo: anamnesis restore {all}\n"),
    });
    let ids = forgotten.notes.iter();
    let ids: Vec<String> = ids.map(|(entry, _)| entry.id().to_string()).collect();
    ui.done(args.json, json!({ "ids": ids }), &text);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn restore(args: &RestoreArgs, context: &Context, ui: &Ui) -> Outcome {
    let restored = forget::restore(context, &args.id)?;
    let note = restored.stored.file.note();
    let text = format!(
        "restored #{short} \"{}\"\nUndo: anamnesis forget {short}\n",
        one_line(&note.title),
        short = restored.short,
    );
    ui.done(args.json, json!({ "id": note.id.to_string() }), &text);
    Ok(ExitCode::SUCCESS)
}
