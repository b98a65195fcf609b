//! `forget`, its undo `restore`, and forgetting a session, which cannot be undone.

mod session;

use std::process::ExitCode;

use anamnesis_app::{context::Context, failure::Failure, forget::forget_notes, remote, sync};
use anamnesis_note::note::State;
use anamnesis_store::{index::Index, notes::NotePath};
use anamnesis_text::clean::one_line;

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
}

/// Restore a forgotten note, byte for byte
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// The note's id: six or more characters of its start or end
    id: String,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if let Some(session) = &args.session {
        return session::run(session, args.prompt, args.yes, context, ui);
    }
    if context.environment.is_agent && args.ids.len() > 1 {
        return Err(Failure::usage("an agent forgets one note at a time"));
    }
    let index = context.index()?;
    // All ids are resolved before the first note is changed.
    let mut entries = Vec::new();
    for typed in &args.ids {
        let entry = Context::resolve(&index, typed).map_err(|failure| {
            Failure::failed(format!(
                "0 forgotten: {}",
                failure.text().trim_start_matches("anamnesis: ").trim_end()
            ))
        })?;
        if entry.state == State::Forgotten {
            return Err(Failure::failed(format!(
                "0 forgotten: #{} is forgotten already",
                Context::short(&index, entry.id())
            ))
            .hint(format!("anamnesis restore {}", entry.id())));
        }
        entries.push(entry);
    }
    drop(index);
    let paths: Vec<NotePath> = entries.iter().map(|entry| entry.path).collect();
    forget_notes(context, &paths)?;
    let batch = sync::commit(context, "forget", paths.iter().map(|path| path.id));
    let index = context.index()?;
    let mut text = String::new();
    let elsewhere = if remote::address(context).is_some() {
        "; elsewhere with the next sync"
    } else {
        ""
    };
    for entry in &entries {
        let short = Context::short(&index, entry.id());
        text.push_str(&format!(
            "forgot #{short} \"{}\"{elsewhere}\n",
            one_line(&entry.title)
        ));
    }
    let all: Vec<String> = entries
        .iter()
        .map(|entry| Context::short(&index, entry.id()))
        .collect();
    let all = all.join(" ");
    match batch {
        Some(batch) => text.push_str(&format!(
            "Undo: anamnesis undo {} · out of history too: anamnesis purge {all}\n",
            sync::short_batch(batch)
        )),
        None => text.push_str(&format!("Undo: anamnesis restore {all}\n")),
    }
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn restore(args: &RestoreArgs, context: &Context, ui: &Ui) -> Outcome {
    if context.environment.is_agent {
        return Err(Failure::failed(
            "what was forgotten is brought back by a person only",
        ));
    }
    let index = context.index()?;
    let entry = Context::resolve(&index, &args.id)?;
    let short = Context::short(&index, entry.id());
    if entry.state != State::Forgotten {
        return Err(Failure::failed(format!("#{short} is not forgotten"))
            .hint(format!("anamnesis show {short}")));
    }
    if context.notes.trashed(entry.id()).is_none() {
        return Err(Failure::failed(format!(
            "the text of #{short} is no longer in the trash"
        )));
    }
    drop::<Index>(index);
    let lock = context.notes.lock()?;
    let stored = context.notes.restore(&lock, entry.path)?;
    drop(lock);
    sync::commit(context, "restore", [entry.id()]);
    if let Some(journal) = context.journal() {
        journal.remembered(entry.id())?;
    }
    context.index()?;
    ui.print(&format!(
        "restored #{short} \"{}\"\nUndo: anamnesis forget {short}\n",
        one_line(&stored.file.note().title)
    ));
    Ok(ExitCode::SUCCESS)
}
