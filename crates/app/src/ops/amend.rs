//! Changes a note's title, text or fields.

use anamnesis_note::{
    agent_policy::MAX_CONFIDENCE,
    draft::NoteChange,
    note::{Kind, Note},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    task::no_task,
    written::{self, WrittenNote},
};
use crate::{Error, context::Context};

/// The change of a note.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AmendNote {
    /// The note's id.
    #[schemars(description = "")]
    pub id: String,
    /// What changes.
    #[serde(flatten)]
    pub change: NoteChange,
}

/// Changes a note.
pub fn amend(context: &Context, request: AmendNote) -> Result<WrittenNote, Error> {
    let change = request.change.fit()?;
    if let Some(confidence) = change.confidence
        && !(0.0..=MAX_CONFIDENCE).contains(&confidence)
    {
        let hint = format!("expected 0 to {MAX_CONFIDENCE}; only a person can set more");
        return Err(Error::usage(format!("invalid confidence {confidence}")).hint(hint));
    }
    let index = context.index()?;
    let entry = Context::present(&index, &request.id)?;
    if change.status.is_some() && change.kind.unwrap_or(entry.kind) != Kind::Task {
        return Err(no_task(&Context::short(&index, entry.id())));
    }
    let now = context.environment.now;
    let apply = |note: &mut Note| change.apply(note, now);
    written::change(context, index, &entry, "edit", false, apply)
}
