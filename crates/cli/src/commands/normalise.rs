//! `normalise`: notes as they would be written today.

use anamnesis_app::{batch::Batch, context::Context};
use anamnesis_distill::upkeep::chores::normal;
use anamnesis_note::note::{Note, Scope};
use anamnesis_text::clean::one_line;

use super::upkeep::shelf::Loaded;
use crate::{
    commands::bulk::Apply,
    ui::{Outcome, Ui},
};

/// Bring the keys, tags and projects of notes into today's form
///
/// Each key stands on a line of its own, in the order that docs/reference/notes.md gives; a project has
/// the key that it has now; a tag stands once, in small letters. Comments, keys of other programs and
/// every byte of the texts stay.
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
        // What does not travel has no history that could bring it back.
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

/// What a note will say otherwise; its form, if nothing.
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
