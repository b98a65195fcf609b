//! `history`: lists the versions of a note.

use std::process::ExitCode;

use anamnesis_app::{
    context::Context,
    history::{self, Past},
};
use anamnesis_note::draft::safe;
use anamnesis_sync::history::File;
use serde_json::json;

use crate::ui::{self, ListLength, Outcome, Ui};

/// List the versions of a note
///
/// Newest first: time, machine, author, change, and what was changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The note's id: six or more characters of its start or end; the note may be deleted
    id: String,
    #[command(flatten)]
    length: ListLength,
    /// Print JSON, with the texts
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let past = Past::open(context)?;
    let id = past.resolve(&args.id)?;
    past.refuse_withheld(id)?;
    let limit = args.length.limit();
    // The extra version is compared with the last one shown.
    let versions = past.repository.versions(id, limit.saturating_add(1))?;
    if versions.is_empty() {
        return Err(past.without_history(id));
    }
    let has_more = versions.len() > limit;
    let shown = versions.iter().take(limit).enumerate();
    let changes = shown.map(|(place, version)| {
        let older = versions.get(place + 1);
        (version, history::changes(id, version, older))
    });
    if args.json {
        let versions = changes.map(|(version, changes)| {
            let mut json = past.json(&version.event);
            json["changed"] = changes.into();
            let file = version.file.as_ref();
            json["file"] = file.map(text).into();
            json
        });
        let versions: Vec<_> = versions.collect();
        return ui.json(json!({ "id": id.to_string(), "versions": versions, "more": has_more }));
    }
    let short = past.short(id);
    let mut out = match past.index.get(id)? {
        Some(entry) => ui::note_line(&entry, &short, context.environment.now),
        None => format!("#{short} is gone"),
    };
    out.push('\n');
    for (version, changes) in changes {
        let what = format!("{} {changes}", history::shown_verb(&version.event));
        let beginning = past.beginning(&version.event);
        out.push_str(&format!("{beginning} {}\n", history::cut(&what)));
    }
    if has_more {
        out.push_str(&format!("the newest {limit} shown · --all\n"));
    }
    out.push_str(&format!(
        "→ anamnesis show {short} --at DATE   |   anamnesis diff CHANGE\n"
    ));
    ui.page(&out, "");
    Ok(ExitCode::SUCCESS)
}

fn text(file: &File) -> String {
    safe(&String::from_utf8_lossy(&file.bytes))
}
