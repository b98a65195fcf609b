//! `reatomise`: splits long notes.

use std::collections::BTreeSet;

use anamnesis_app::{batch::Batch, context::Context, failure::Failure};
use anamnesis_distill::upkeep::{Action, chores, parts};
use anamnesis_note::{
    id::NoteId,
    note::{Note, Scope, State},
};
use anamnesis_store::index::Index;
use anamnesis_text::clean::one_line;

use super::upkeep::shelf::Loaded;
use crate::{
    commands::bulk::Apply,
    ui::{Outcome, Ui},
};

/// Split long notes at headings or lists
///
/// Each part becomes a note with its exact text. The original is superseded by its parts, and can
/// still be read by its id.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A note's id: six or more characters of its start or end; repeatable
    #[arg(required_unless_present = "over", conflicts_with = "over")]
    ids: Vec<String>,
    /// Split every note whose text has more characters than this
    #[arg(long, value_name = "N")]
    over: Option<usize>,
    #[command(flatten)]
    apply: Apply,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    args.apply.check(context)?;
    let index = context.index()?;
    let loaded = Loaded::of(context, &index)?;
    let ids = match args.over {
        Some(length) => {
            let is_long = |note: &&Note| note.body.chars().count() > length;
            let long = loaded.shelf.notes.iter().filter(is_long);
            long.map(|note| note.id).collect()
        }
        None => named(args, &index, &loaded)?,
    };
    // Applying the change opens the index for writing again.
    drop(index);
    let plan = chores::split(&loaded.shelf, &ids);
    let mut batch = Batch::new(context, "reatomise");
    let mut text = String::new();
    for action in &plan.actions {
        let Action::Split { note, parts } = action else {
            continue;
        };
        let title = loaded.stored(*note).map(|stored| stored.note().title);
        let title = one_line(&title.unwrap_or_default());
        text.push_str(&format!("reatomise: {note} '{title}'\n"));
        for part in parts {
            let made = plan.made.iter().find(|made| made.id == *part);
            let title = one_line(made.map_or("", |made| made.title.as_str()));
            text.push_str(&format!("reatomise:   {part} '{title}'\n"));
        }
    }
    ui.print(&text);
    let count = plan.actions.len();
    for part in plan.made {
        batch.make(part);
    }
    args.apply
        .finish(batch, (count, "note(s)", "taken apart"), ui)
}

/// The selected notes; fails if one cannot be split.
fn named(args: &Args, index: &Index, loaded: &Loaded) -> Result<BTreeSet<NoteId>, Failure> {
    let mut ids = BTreeSet::new();
    for typed in &args.ids {
        let entry = Context::resolve(index, typed)?;
        let short = Context::short(index, entry.id());
        let Some(stored) = loaded.stored(entry.id()) else {
            continue;
        };
        let refusal = if entry.state != State::Active {
            Some(format!("is {}", entry.state))
        } else if entry.superseded {
            Some("is replaced already".to_owned())
        } else if entry.path.scope != Scope::Portable {
            Some("is of this machine only: nothing could bring it back".to_owned())
        } else if loaded.shelf.fixed.contains(&entry.id()) {
            Some("is too long to be read as a whole, or not one key a line".to_owned())
        } else if parts::parts(&stored.note()).is_none() {
            Some("has no two headings or lists, or is one thing as it is".to_owned())
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let hint = format!("anamnesis edit {short}");
            return Err(Failure::failed(format!("#{short} {refusal}")).hint(hint));
        }
        ids.insert(entry.id());
    }
    Ok(ids)
}
