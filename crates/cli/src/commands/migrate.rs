//! `migrate`: changes the project keys of notes.

use std::{fs, path::PathBuf};

use anamnesis_app::{batch::Batch, context::Context, failure::Failure};
use anamnesis_distill::upkeep::chores::KeyMap;
use anamnesis_note::note::{Note, Scope, State};
use anamnesis_text::clean::one_line;

use super::upkeep::shelf::Loaded;
use crate::{
    commands::bulk::Apply,
    ui::{Outcome, Ui},
};

/// Move notes to other projects, by a list of keys
///
/// The list is JSON: {"projects": {"OLD": "NEW"}, "notes": {"ID": "NEW"}}; an entry for a note
/// overrides that for its project. If only the key of a project changed, `project merge` is enough
/// and changes no note.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file with the list
    #[arg(long, value_name = "FILE")]
    map: PathBuf,
    #[command(flatten)]
    apply: Apply,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    args.apply.check(context)?;
    let path = one_line(&args.map.display().to_string());
    let text = fs::read_to_string(&args.map)
        .map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?;
    let map = KeyMap::parse(&text)
        .map_err(|error| Failure::usage(one_line(&format!("{path}: {error}"))))?;
    let loaded = Loaded::of(context, &context.index()?)?;
    let mut batch = Batch::new(context, "migrate");
    let mut text = String::new();
    let mut count = 0;
    for stored in loaded.all() {
        let note = stored.note();
        if note.scope != Scope::Portable || note.state == State::Forgotten {
            continue;
        }
        let Some(new) = map.project_of(&note) else {
            continue;
        };
        let (id, old) = (note.id, one_line(&note.project));
        if loaded.shelf.fixed.contains(&id) {
            ui.note(&format!(
                "migrate: {id} cannot be changed key by key; left as it is\n"
            ));
            continue;
        }
        text.push_str(&format!("migrate: {id} {old} -> {new}\n"));
        count += 1;
        let moved = Note {
            project: new.to_owned(),
            ..note.clone()
        };
        batch.change(stored, &moved)?;
    }
    ui.print(&text);
    let is_there = |id: &str| id.parse().is_ok_and(|id| loaded.stored(id).is_some());
    for id in map.ids().filter(|id| !is_there(id)) {
        ui.note(&format!("migrate: there is no note {id}\n"));
    }
    args.apply.finish(batch, (count, "note(s)", "changed"), ui)
}
