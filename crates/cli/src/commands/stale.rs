//! `stale`: lists notes that may be outdated, and why.

use anamnesis_app::{
    citation_check,
    context::Context,
    ops::note::{Note, StaleCause, StaleNote, StaleNotes},
};
use anamnesis_note::note::GLOBAL;
use anamnesis_recall::stale::{self, StaleReason};
use anamnesis_store::project::Project;

use crate::ui::{self, ListLength, Outcome, Ui};

/// List notes that may be outdated, and why
///
/// Reasons: a related task was finished, the review date has come, or a file or symbol that the note
/// names is gone. Nothing is changed. `verify` confirms that a note is still right, and so does
/// changing it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List the notes of this project [default: that of this folder]
    #[arg(long, value_name = "KEY", conflicts_with = "everywhere")]
    project: Option<String>,
    /// List the notes of every project
    #[arg(long)]
    everywhere: bool,
    #[command(flatten)]
    length: ListLength,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let projects = if args.everywhere {
        Vec::new()
    } else {
        let mut keys = Project::all_keys(&context.project(args.project.as_deref()));
        keys.push(GLOBAL.to_owned());
        keys
    };
    let index = context.index()?;
    if args.project.is_none() && !args.everywhere {
        citation_check::look_here(context);
    }
    let now = context.environment.now;
    let journal = context.journal();
    let found = stale::find(&index, journal.as_ref(), &projects, now)?;
    let text_of = |reason: &StaleReason| reason.text(|id| Context::short(&index, id));
    if args.json {
        let total = found.len();
        let notes = found.into_iter().map(|(entry, reasons)| StaleNote {
            note: Note::new(context, entry),
            reasons: reasons
                .iter()
                .map(|it| StaleCause::new(it, &index))
                .collect(),
        });
        let notes = notes.collect();
        return ui.json(StaleNotes { notes, total });
    }
    if found.is_empty() {
        return ui.answer("no note seems outdated\n");
    }
    let limit = args.length.limit();
    let mut text = String::new();
    for (entry, reasons) in found.iter().take(limit) {
        text.push_str(&ui::listed(&index, entry, now));
        for reason in reasons {
            text.push_str(&ui::wrapped(&text_of(reason), 2));
        }
    }
    text.push_str(&ui::shown_of(limit, found.len(), " · --all"));
    text.push_str("→ anamnesis verify ID   |   anamnesis edit ID   |   anamnesis forget ID\n");
    ui.page(&text, "")
}
