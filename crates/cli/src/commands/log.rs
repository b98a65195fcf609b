//! `log`: lists the changes of the synced notes.

use anamnesis_app::{
    context::Context,
    history::{self, CommitList, Past},
    sync,
};

use super::diff;
use crate::ui::{ListLength, Outcome, ProjectFilter, Ui};

/// Show the changes to your notes, on all your machines
///
/// Newest first: time, machine, author, the change's id for `undo`, and the notes that were added
/// (+), changed (~) and removed (-), with the title of the first. Machine-local notes have no
/// history.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) length: ListLength,
    /// Only changes of this note
    #[arg(long, value_name = "ID", conflicts_with = "project")]
    note: Option<String>,
    /// Show what a change or a commit did, or the latest change of a note, line by line
    #[arg(long, value_name = "ID", conflicts_with_all = ["note", "project"])]
    diff: Option<String>,
    #[command(flatten)]
    projects: ProjectFilter,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if let Some(what) = &args.diff {
        return diff::show(what, args, context, ui);
    }
    sync::commit_pending(context);
    let limit = args.length.limit();
    // Those beyond the limit show whether there are more, and make up for what is told once.
    let wanted = limit.saturating_mul(2).saturating_add(1);
    // Before the first commit the list is empty. That is not an error, unless a note is named.
    let past = match &args.note {
        Some(_) => Some(Past::open(context)?),
        None => Past::open_if_any(context)?,
    };
    let mut events = match (&past, &args.note, args.projects.key()) {
        (None, ..) => Vec::new(),
        (Some(past), Some(typed), _) => past.repository.log(Some(past.resolve(typed)?), wanted)?,
        (Some(past), _, Some(key)) => past.repository.log_of(&past.notes_of(key)?, wanted)?,
        (Some(past), ..) => past.repository.log(None, wanted)?,
    };
    if args.note.is_none() {
        history::once_per_session(&mut events, |event| event);
    }
    let has_more = events.len() > limit;
    events.truncate(limit);
    if args.json {
        let past = past.as_ref();
        let commits = past.map(|past| events.iter().map(|event| past.json(event)).collect());
        return ui.json(CommitList {
            commits: commits.unwrap_or_default(),
            more: has_more,
        });
    }
    let lines = past
        .iter()
        .flat_map(|past| events.iter().map(|event| past.line(event) + "\n"));
    let mut text: String = lines.collect();
    if events.is_empty() {
        text.push_str("0 changes: no note in memory/ was written yet\n");
    } else if has_more {
        text.push_str(&format!("the newest {} shown · --all\n", events.len()));
    } else {
        text.push_str("→ anamnesis log --diff CHANGE   |   anamnesis undo CHANGE\n");
    }
    ui.page(&text, "")
}
