//! `edit`: changes a note in the user's editor, or its title or text from the command line.

use anamnesis_app::{
    Error,
    context::Context,
    edit::{self, ChangedNote, EditedFile},
    ops::amend::{self, AmendNote},
    sync::short_change,
};
use anamnesis_note::draft::{InvalidDraft, NoteChange};
use anamnesis_store::notes::{NotePath, Stored};
use anamnesis_text::clean::one_line;

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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if args.title.is_some() || args.stdin {
        let change = NoteChange {
            title: args.title.clone(),
            body: args.stdin.then(read_text).transpose()?,
            ..NoteChange::default()
        };
        let id = args.id.clone();
        let amended = amend::amend(context, AmendNote { id, change });
        let amended = amended.map_err(|error| match error.cause() {
            Some(InvalidDraft::NoTitle) => Error::usage("--title is empty"),
            _ => error,
        });
        return write::print(ui, &amended?, args.json);
    }
    let index = context.index()?;
    let path = edit::target(context, &index, &args.id, args.raw)?;
    drop(index);
    let stored = in_editor(context, path, args.raw)?;
    let index = context
        .index()
        .inspect_err(|failure| ui.note(&failure.text()))
        .ok();
    let short = index.map_or_else(|| path.id.short(), |index| Context::short(&index, path.id));
    let changed = ChangedNote {
        id: path.id.to_string(),
        changed: stored.is_some(),
    };
    let Some(stored) = stored else {
        return ui.done(args.json, &changed, &format!("#{short} is unchanged"));
    };
    let undo = edit::commit(context, &stored, "edit")
        .map(|batch| format!("Undo: anamnesis undo {}", short_change(batch)));
    let text = format!(
        "changed #{short} \"{}\"\n{}",
        one_line(&stored.file.note().title),
        undo.unwrap_or_default()
    );
    ui.done(args.json, &changed, &text)
}

/// Opens a note's file in the person's editor; returns `None` if the file did not change.
pub(super) fn in_editor(
    context: &Context,
    path: NotePath,
    is_raw: bool,
) -> Result<Option<Stored>, Error> {
    let editing = EditedFile::open(context, path, is_raw)?;
    let typed = write::edited(context, &editing.text())?;
    let saved = editing.save(context, &typed.text);
    typed.settle(context, saved)
}
