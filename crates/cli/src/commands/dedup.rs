//! `dedup`: merges exact duplicates.

use anamnesis_app::{batch::Batch, context::Context};
use anamnesis_distill::upkeep::chores;
use anamnesis_note::id::NoteId;
use anamnesis_text::clean::one_line;

use super::upkeep::shelf::Loaded;
use crate::{
    commands::bulk::Apply,
    ui::{Outcome, Ui},
};

/// Merge exact duplicates
///
/// Compares only the texts, not titles or projects; `upkeep` is more careful. The note for all
/// projects stays, else the oldest. It replaces the others: they are hidden, and can be read by
/// their ids.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    apply: Apply,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    args.apply.check(context)?;
    let loaded = Loaded::of(context, &context.index()?)?;
    let plan = chores::copies(&loaded.shelf);
    let mut batch = Batch::new(context, "dedup");
    for note in &plan.changed {
        if let Some(stored) = loaded.stored(note.id) {
            batch.change(stored, note)?;
        }
    }
    let line = |id: NoteId, keeper: NoteId| {
        let note = loaded.stored(id)?.file.note();
        let kept = loaded.stored(keeper)?.file.note();
        let (project, title) = (one_line(&note.project), one_line(&kept.title));
        Some(format!(
            "dedup: remove {id} [{project}] dup of {keeper} '{title}'\n"
        ))
    };
    let lines = chores::replaced(&plan).filter_map(|(id, keeper)| line(id, keeper));
    let lines: Vec<String> = lines.collect();
    ui.print(&lines.concat());
    let told = (lines.len(), "duplicate(s)", "replaced");
    args.apply.finish(batch, told, ui)
}
