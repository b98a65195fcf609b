//! The pages, one per file. A page is a function of a `Visit`; `routes` gives it its address.

pub(crate) mod edit;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod link;
pub(crate) mod live;
pub(crate) mod machines;
pub(crate) mod map;
mod moment;
pub(crate) mod note;
pub(crate) mod notes;
pub(crate) mod privacy;
pub(crate) mod review;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod why;

use anamnesis_app::{Error, format::count, history::Past, undo as operation};

use crate::{
    layout,
    visit::{Answered, Visit},
};

/// Reverts the change that a toast or a list names.
pub(crate) fn undo(visit: &Visit) -> Answered {
    let change = visit.change();
    let change = change.ok_or_else(|| Error::usage("the change's id is missing"))?;
    let notes = Past::open(&visit.context)?.find_change(&change.to_string())?;
    let notes = notes.notes.len();
    if notes > 1 && !visit.is_confirmed() {
        let question = format!("Undo a change of {}?", count(notes, "note"));
        return Ok(layout::ask(visit, &question, "Undo it"));
    }
    let undone = operation::undo(&visit.context, &change.to_string())?;
    let word = if undone.has_effect() {
        "undone"
    } else {
        "left"
    };
    Ok(layout::done(&visit.back("/notes"), word, undone.batch))
}
