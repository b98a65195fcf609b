//! `list`: lists the notes of a project, newest first.

use anamnesis_app::{
    context::Context,
    history,
    ops::note::{ListedNotes, Note},
};
use anamnesis_note::note::{GLOBAL, Kind, NoteType, Scope};
use anamnesis_store::{index::Filter, project::Project};

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
    /// Only notes of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = str::parse::<NoteType>)]
    note_type: Option<NoteType>,
    /// Only notes of this kind
    #[arg(long, value_parser = Kind::from_word)]
    kind: Option<Kind>,
    /// Only notes that sync (`portable`) or do not (`machine-local`)
    #[arg(long, value_parser = str::parse::<Scope>)]
    scope: Option<Scope>,
    /// Also list forgotten notes
    #[arg(long)]
    forgotten: bool,
    #[command(flatten)]
    length: ListLength,
    /// Print JSON, without bodies
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let project = match (&args.project, args.global, args.everywhere) {
        (Some(key), _, _) => Some(context.project(Some(key))),
        (None, true, _) => Some(Project::named(GLOBAL)),
        (None, false, true) => None,
        (None, false, false) => Some(context.project(None)),
    };
    let filter = Filter {
        projects: project.as_ref().map(Project::all_keys).unwrap_or_default(),
        note_type: args.note_type,
        kind: args.kind,
        scope: args.scope,
        with_superseded: true,
        with_forgotten: args.forgotten,
        ..Filter::default()
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
        let place = project.map_or_else(String::new, |project| format!(" of {}", project.key));
        return ui.answer(&format!("0 notes{place}\n→ anamnesis list --everywhere\n"));
    }
    let now = context.environment.now;
    let mut text = String::new();
    let line = match project {
        Some(_) => ui::note_line,
        None => ui::line_with_project,
    };
    for entry in &entries {
        text.push_str(&line(entry, &Context::short(&index, entry.id()), now));
        text.push('\n');
    }
    text.push_str(&ui::shown_of(entries.len(), total, " · --all"));
    ui.page(&text, "")
}
