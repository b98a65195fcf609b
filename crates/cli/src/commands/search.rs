//! `search`: notes by words.

use std::process::ExitCode;

use anamnesis_core::note::{Kind, NoteType, Scope};
use anamnesis_recall::search::{self, MAX_HITS};
use anamnesis_store::{index::Filter, project::Project};
use serde_json::json;

use super::{Outcome, read_text, show};
use crate::{context::Context, failure::Failure, ui, ui::Ui};

/// Find notes by words
///
/// Any of the words may stand in a note; the best come first. Notes that were replaced or forgotten
/// are left out, notes that wait for approval or are muted are shown with their state.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The words
    #[arg(required_unless_present = "stdin")]
    words: Vec<String>,
    /// Read the words from stdin
    #[arg(long, conflicts_with = "words")]
    stdin: bool,
    /// How many notes at most
    #[arg(short, long, alias = "limit", default_value_t = 8)]
    k: usize,
    /// Only notes of this project (`global` for all projects)
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Only notes of this project's folder
    #[arg(long, conflicts_with = "project")]
    here: bool,
    /// Only notes of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = crate::commands::write::note_type)]
    note_type: Option<NoteType>,
    /// Only notes of this kind
    #[arg(long, value_parser = crate::commands::write::kind)]
    kind: Option<Kind>,
    /// Only notes that travel (`portable`) or do not (`machine-local`)
    #[arg(long, value_parser = crate::commands::write::scope)]
    scope: Option<Scope>,
    /// Print JSON, with bodies
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let query = if args.stdin {
        read_text()?
    } else {
        args.words.join(" ")
    };
    if query.trim().is_empty() {
        return Err(Failure::usage("there are no words to search for"));
    }
    let project = if args.here {
        Some(context.project(None))
    } else {
        args.project
            .as_deref()
            .map(|key| context.project(Some(key)))
    };
    let filter = Filter {
        projects: project.as_ref().map(Project::all_keys).unwrap_or_default(),
        note_type: args.note_type,
        kind: args.kind,
        scope: args.scope,
        ..Filter::default()
    };
    let index = context.index()?;
    let hits = search::search(&index, &query, &filter, args.k)?;
    if args.json {
        let notes: Vec<serde_json::Value> = hits
            .iter()
            .map(|hit| {
                let stored = context.notes.read(hit.entry.path).ok();
                let note = stored.map(|stored| {
                    let mut note = stored.note();
                    note.body = show::shown(context, &note.body);
                    note
                });
                let mut json = ui::note_json(&hit.entry, note.as_ref());
                json["score"] = hit.score.into();
                json
            })
            .collect();
        ui.json(&json!({ "notes": notes, "capped": args.k > MAX_HITS }));
        return Ok(ExitCode::SUCCESS);
    }
    if hits.is_empty() {
        ui.print("no note has any of these words\n");
        return Ok(ExitCode::SUCCESS);
    }
    let now = context.environment.now;
    let mut text = String::new();
    for hit in &hits {
        text.push_str(&ui::note_line(
            &hit.entry,
            &Context::short(&index, hit.entry.id()),
            now,
        ));
        text.push('\n');
    }
    text.push_str("→ anamnesis show ID\n");
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}
