//! `normalise`: updates notes to the current format.

use anamnesis_app::{batch::Batch, context::Context};
use anamnesis_distill::upkeep::chores::normal;
use anamnesis_note::note::{Note, Scope};
use anamnesis_text::clean::one_line;

use super::upkeep::shelf::Loaded;
use crate::{
    commands::bulk::Apply,
    ui::{Outcome, Ui},
};

/// Update notes to the current format
///
/// Puts each key on its own line, in the order of docs/reference/notes.md; updates the project key;
/// makes tags lower case and unique. Comments, keys of other programs and every byte of the texts
/// stay.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    apply: Apply,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    args.apply.check(context)?;
    let loaded = Loaded::of(context, &context.index()?)?;
    let mut batch = Batch::new(context, "normalise");
    let mut text = String::new();
    let mut count = 0;
    for stored in loaded.all() {
        // A machine-local note has no history from which it could be restored.
        if stored.path.scope != Scope::Portable || !stored.whole {
            continue;
        }
        let before = stored.file.note();
        let after = Note {
            scope: Scope::Portable,
            ..normal(before, &loaded.shelf.aliases)
        };
        let id = before.id;
        match stored.file.normalised(&after) {
            Ok(new) if stored.file.is_text(&new) => {}
            Ok(new) => {
                let what = what_changes(before, &after);
                let title = one_line(&before.title);
                text.push_str(&format!("normalise: {id} {what} '{title}'\n"));
                count += 1;
                batch.overwrite(stored, new)?;
            }
            Err(error) => ui.note(&format!("normalise: {id}: {error}\n")),
        }
    }
    ui.print(&text);
    args.apply.finish(batch, (count, "note(s)", "changed"), ui)
}

/// Describes what changes in a note.
fn what_changes(before: &Note, after: &Note) -> String {
    let mut what = Vec::new();
    if before.project != after.project {
        let (old, new) = (one_line(&before.project), one_line(&after.project));
        what.push(format!("project {old} -> {new}"));
    }
    if before.tags != after.tags {
        what.push("tags".to_owned());
    }
    if before.scope != after.scope {
        what.push("scope".to_owned());
    }
    if what.is_empty() {
        what.push("form".to_owned());
    }
    what.join(", ")
}
