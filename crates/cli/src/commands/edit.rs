//! `edit`: changes a note in the user's editor, or its title or text from the command line.

use std::process::ExitCode;

use anamnesis_app::{context::Context, failure::Failure, sync};
use anamnesis_note::{
    draft::{InvalidDraft, NoteChange},
    id::NoteId,
    note::{NoteFile, State, timestamp},
};
use anamnesis_store::{
    index::{Entry, Index},
    notes::{NotePath, Stored},
};
use anamnesis_text::{clean::one_line, privacy, redact::redact};

use super::write;
use crate::{
    input::read_text,
    ui::{Outcome, Ui},
};

/// Change a note in your editor
///
/// Opens the whole file, front matter first. Parts that you do not change stay byte for byte.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The note's id: six or more characters of its start or end
    id: String,
    /// Set this title instead of opening an editor
    #[arg(long)]
    title: Option<String>,
    /// Read the new text from stdin instead of opening an editor
    #[arg(long)]
    stdin: bool,
    /// Also open a file that cannot be parsed as a note, and save it unchecked
    #[arg(long, conflicts_with_all = ["title", "stdin"])]
    raw: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let index = context.index()?;
    let path = match Context::resolve(&index, &args.id) {
        Ok(entry) => {
            let is_proposed = context.environment.is_agent
                && write::is_out_of_reach(context, &entry)
                && (args.title.is_some() || args.stdin);
            if !is_proposed {
                refuse_agent(context, &entry, "change")?;
            }
            if entry.state == State::Forgotten {
                return Err(Failure::failed(format!(
                    "#{} is forgotten",
                    Context::short(&index, entry.id())
                ))
                .hint(format!("anamnesis restore {}", entry.id())));
            }
            if is_proposed {
                return propose(args, context, ui, index, entry.path);
            }
            entry.path
        }
        // A file that cannot be parsed is not in the index, but its name contains the id.
        Err(failure) => unreadable(args, context).ok_or(failure)?,
    };
    drop(index);
    let stored = if args.raw {
        if context.environment.is_agent {
            return Err(Failure::failed("a file is edited raw by a person only"));
        }
        raw(context, path)?
    } else if args.title.is_some() || args.stdin {
        from_command_line(args, context, path)?
    } else {
        in_editor(context, path)?
    };
    let index = context
        .index()
        .inspect_err(|failure| ui.note(&failure.text()))
        .ok();
    let short = index.map_or_else(|| path.id.short(), |index| Context::short(&index, path.id));
    let Some(stored) = stored else {
        ui.print(&format!("#{short} is as it was\n"));
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(journal) = context.journal().filter(|_| !context.environment.is_agent) {
        journal.written_here(
            path.id,
            &context.notes.bytes(stored.path)?,
            context.environment.now,
        )?;
    }
    let undo = sync::commit(context, "edit", [path.id])
        .map(|batch| format!("Undo: anamnesis undo {}\n", sync::short_batch(batch)));
    ui.print(&format!(
        "changed #{short} \"{}\"\n{}",
        one_line(&stored.file.note().title),
        undo.unwrap_or_default()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Refuses an agent that wants to change a person's note or one that applies to all projects.
pub(super) fn refuse_agent(context: &Context, entry: &Entry, act: &str) -> Result<(), Failure> {
    if !context.environment.is_agent || !write::is_out_of_reach(context, entry) {
        return Ok(());
    }
    let why = if write::is_a_persons(entry) {
        "a person wrote it, or it applies to all projects"
    } else {
        "it is in use, and the person approves every change"
    };
    Err(
        Failure::failed(format!("only a person can {act} this note: {why}"))
            .hint("write a note of your own that supersedes it; it waits for approval"),
    )
}

/// Proposes the change of an agent to a note that it may not change itself.
fn propose(args: &Args, context: &Context, ui: &Ui, index: Index, path: NotePath) -> Outcome {
    let before = context.notes.read(path)?.note();
    let mut changed = before.clone();
    change_of(args)?.apply(&mut changed, context.environment.now);
    if changed == before {
        return Err(Failure::failed(format!(
            "#{} is like that already",
            Context::short(&index, path.id)
        )));
    }
    write::propose(context, ui, index, changed, "edit")
}

/// The change that the command line asks for.
fn change_of(args: &Args) -> Result<NoteChange, Failure> {
    let change = NoteChange {
        title: args.title.clone(),
        body: args.stdin.then(read_text).transpose()?,
        ..NoteChange::default()
    };
    change.fit().map_err(|unfit| match unfit {
        InvalidDraft::NoTitle => Failure::usage("--title is empty"),
        unfit => unfit.into(),
    })
}

fn unreadable(args: &Args, context: &Context) -> Option<NotePath> {
    let id: NoteId = args
        .id
        .trim_start_matches('#')
        .to_ascii_uppercase()
        .parse()
        .ok()?;
    args.raw.then(|| context.notes.find(id)).flatten()
}

fn raw(context: &Context, path: NotePath) -> Result<Option<Stored>, Failure> {
    let before = context.notes.bytes(path)?;
    let text = write::edited(context, &String::from_utf8_lossy(&before))?;
    let text = redact(&text).text.into_owned();
    if text.as_bytes() == before {
        return Ok(None);
    }
    let lock = context.notes.lock()?;
    Ok(Some(context.notes.overwrite(
        &lock,
        path,
        text.as_bytes(),
    )?))
}

fn from_command_line(
    args: &Args,
    context: &Context,
    path: NotePath,
) -> Result<Option<Stored>, Failure> {
    let change = change_of(args)?;
    let before = context.notes.read(path)?.stamp;
    let lock = context.notes.lock()?;
    let now = context.environment.now;
    let stored = (context.notes).update(&lock, path, |note| change.apply(note, now))?;
    Ok((stored.stamp != before).then_some(stored))
}

/// Opens a note's file in the person's editor; returns `None` if the file did not change.
pub(super) fn in_editor(context: &Context, path: NotePath) -> Result<Option<Stored>, Failure> {
    let before = context.notes.bytes(path)?;
    let old = context.notes.read(path)?.file;
    let text = write::edited(context, &String::from_utf8_lossy(&before))?;
    let text = redact(&text).text.into_owned();
    let file = NoteFile::parse(text.as_bytes(), path.id).map_err(|error| {
        Failure::failed(format!("{path} was not changed: {error}"))
            .hint("edit it again; --raw writes it unchecked")
    })?;
    let mut note = file.note().clone();
    note.body = privacy::strip(&note.body).text.into_owned();
    let changed = note.title != old.note().title || note.body != old.note().body;
    if changed && note.updated_at == old.note().updated_at {
        note.updated_at = timestamp(context.environment.now);
    }
    let text = file.rewrite(&note).unwrap_or(text);
    if text.as_bytes() == before {
        return Ok(None);
    }
    let lock = context.notes.lock()?;
    if context.notes.bytes(path)? != before {
        return Err(Failure::failed(format!(
            "{path} was changed by somebody else meanwhile; nothing was written"
        ))
        .hint("edit it again"));
    }
    Ok(Some(context.notes.overwrite(
        &lock,
        path,
        text.as_bytes(),
    )?))
}
