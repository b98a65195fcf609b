//! `backfill-provenance`: sets the provenance of old notes.

use anamnesis_app::{batch::Batch, context::Context};
use anamnesis_distill::upkeep::chores::source_by_tags;
use anamnesis_note::note::Note;
use anamnesis_text::clean::one_line;

use super::upkeep::shelf::Loaded;
use crate::{
    commands::bulk::Apply,
    ui::{Outcome, Ui},
};

/// Set the provenance of old notes from their tags
///
/// Early versions did not record who wrote a note, so all their notes count as yours. The tag
/// `import` marks imported notes, `session` marks session notes. A note that already states its
/// provenance keeps it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    apply: Apply,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    args.apply.check(context)?;
    let loaded = Loaded::of(context, &context.index()?)?;
    let mut batch = Batch::new(context, "backfill-provenance");
    let mut text = String::new();
    let mut count = 0;
    for stored in loaded.all() {
        let note = stored.note();
        let Some(source) = source_by_tags(&note) else {
            continue;
        };
        if loaded.shelf.fixed.contains(&note.id) {
            continue;
        }
        let (id, title) = (note.id, one_line(&note.title));
        let old = note.source;
        text.push_str(&format!(
            "backfill-provenance: {id} {old} -> {source} '{title}'\n"
        ));
        count += 1;
        batch.change(stored, &Note { source, ..note })?;
    }
    ui.print(&text);
    args.apply.finish(batch, (count, "note(s)", "changed"), ui)
}
