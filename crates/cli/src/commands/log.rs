//! `log`: lists the changes of the synced notes.

use std::process::ExitCode;

use anamnesis_app::{context::Context, history::Past};
use serde_json::json;

use crate::ui::{ListLength, Outcome, ProjectFilter, Ui};

/// Show the changes to your notes, on all your machines
///
/// Newest first: time, machine, author, the change's id for `undo`, and the notes that were added
/// (+), changed (~) and removed (-), with the title of the first. Machine-local notes have no
/// history.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    length: ListLength,
    /// Only changes of this note
    #[arg(long, value_name = "ID", conflicts_with = "project")]
    note: Option<String>,
    #[command(flatten)]
    projects: ProjectFilter,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let past = Past::open(context)?;
    let note = args
        .note
        .as_ref()
        .map(|typed| past.resolve(typed))
        .transpose()?;
    let limit = args.length.limit();
    // One extra event shows whether there are more.
    let wanted = limit.saturating_add(1);
    let mut events = match args.projects.key() {
        Some(key) => past.repository.log_of(&past.notes_of(key)?, wanted)?,
        None => past.repository.log(note, wanted)?,
    };
    let has_more = events.len() > limit;
    events.truncate(limit);
    if args.json {
        let commits: Vec<_> = events.iter().map(|event| past.json(event)).collect();
        return ui.json(&json!({ "commits": commits, "more": has_more }));
    }
    let mut text: String = events.iter().map(|event| past.line(event) + "\n").collect();
    if events.is_empty() {
        text.push_str("0 commits: nothing was done to notes that travel\n");
    } else if has_more {
        text.push_str(&format!("the newest {} shown · --all\n", events.len()));
    } else {
        text.push_str("→ anamnesis diff CHANGE   |   anamnesis undo CHANGE\n");
    }
    ui.page(&text, "");
    Ok(ExitCode::SUCCESS)
}
