//! `forget`, its undo, and forgetting a session, which cannot be undone.

mod session;

use anamnesis_app::{Error, context::Context, forget};

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
    /// Restore the notes, byte for byte
    #[arg(long, conflicts_with = "session")]
    undo: bool,
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

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if let Some(session) = &args.session {
        return ui.saying(args.json, |ui| {
            session::run(session, args.prompt, args.yes, context, ui)
        });
    }
    if args.undo {
        let [id] = &args.ids[..] else {
            return Err(Error::usage("one note is restored at a time"));
        };
        let restored = forget::restore(context, id)?;
        return ui.done(args.json, &restored, &restored.said);
    }
    let forgotten = forget::forget(context, &args.ids)?;
    ui.done(args.json, &forgotten, &forgotten.said)
}
