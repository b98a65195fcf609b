//! `list`: lists the notes of a project, newest first.

use anamnesis_app::{
    context::Context,
    history,
    ops::{
        list::NoteFilter,
        note::{ListedNotes, Note},
    },
};
use anamnesis_note::note::GLOBAL;
use anamnesis_store::index::Filter;

use crate::ui::{self, ListLength, Outcome, Ui};

/// List the notes of this project
///
/// Newest first. Includes superseded notes, marked as such.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List the notes of this project [default: that of this folder]
    #[arg(long, value_name = "KEY", conflicts_with_all = ["global", "everywhere"])]
    project: Option<String>,
    /// List the notes that apply to all projects
    #[arg(long, conflicts_with = "everywhere")]
    global: bool,
    /// List the notes of every project
    #[arg(long)]
    everywhere: bool,
    #[command(flatten)]
    filter: NoteFilter,
    /// Also list forgotten notes
    #[arg(long)]
    forgotten: bool,
    #[command(flatten)]
    length: ListLength,
    /// Print JSON, without bodies
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(mut args: Args, context: &Context, ui: &Ui) -> Outcome {
    args.filter.project = match (args.project, args.global, args.everywhere) {
        (None, true, _) => Some(GLOBAL.to_owned()),
        (None, false, true) => None,
        (None, false, false) => Some(".".to_owned()),
        (key, ..) => key,
    };
    let filter = Filter {
        with_superseded: true,
        with_forgotten: args.forgotten,
        ..args.filter.of_index(context)?
    };
    let index = context.index()?;
    let total = index.count(&filter)?;
    let limit = if args.json {
        args.length.limit_or(usize::MAX)
    } else {
        args.length.limit()
    };
    let mut entries = index.list(&filter, limit)?;
    if args.forgotten {
        history::add_titles(context, &mut entries);
    }
    if args.json {
        let notes = entries.into_iter().map(|entry| Note::new(context, entry));
        let notes = notes.collect();
        return ui.json(ListedNotes { notes, total });
    }
    if entries.is_empty() {
        let place = filter.projects.first();
        let place = place.map_or_else(String::new, |key| format!(" of {key}"));
        return ui.answer(&format!("0 notes{place}\n→ anamnesis list --everywhere\n"));
    }
    let now = context.environment.now;
    let mut text = String::new();
    let line = if filter.projects.is_empty() {
        ui::line_with_project
    } else {
        ui::note_line
    };
    for entry in &entries {
        text.push_str(&line(entry, &Context::short(&index, entry.id()), now));
        text.push('\n');
    }
    text.push_str(&ui::shown_of(entries.len(), total, " · --all"));
    ui.page(&text, "")
}
