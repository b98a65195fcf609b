//! `memory_get`: returns full notes by id.

use anamnesis_app::{
    context::Context,
    ops::note::{self, Note},
};
use anamnesis_recall::branch::branch_remark;
use anamnesis_store::index::{Entry, Index};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{error::ToolError, tool::Tool};

/// How many notes one call returns.
const MAX_IDS: usize = 20;

/// The maximum text of one answer, in characters. Clients cut longer answers.
const MAX_LENGTH: usize = 40_000;

pub(super) fn tool() -> Tool {
    Tool::reading(
        "memory_get",
        "Get notes",
        "Return full notes by id. 6 or more characters of an id's beginning or end are enough.",
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// 1 to 20
    ids: Vec<String>,
    /// Offset into the text, in characters
    #[serde(default)]
    from: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Opened {
    result: Vec<Whole>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Whole {
    #[serde(flatten)]
    note: Note,
    body: String,
    /// The text continues; pass this as `from`
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// Ids of the notes that replace it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    superseded_by: Vec<String>,
    /// The branch of its session, until that is merged
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

fn run(context: &Context, asked: Parameters) -> Result<Opened, ToolError> {
    let Parameters { ids, from } = asked;
    if ids.is_empty() || ids.len() > MAX_IDS {
        let message = format!("got {} ids", ids.len());
        let hint = format!("pass 1 to {MAX_IDS} ids");
        return Err(ToolError::new("bad_argument", message, hint));
    }
    let index = context.index_to_read()?;
    let mut room = MAX_LENGTH;
    let mut result = Vec::with_capacity(ids.len());
    for typed in &ids {
        let entry = Context::present(&index, typed)?;
        let whole = open(context, &index, &entry, from, room)?;
        room = room.saturating_sub(whole.body.chars().count());
        result.push(whole);
    }
    Ok(Opened { result })
}

/// Returns a note with its text, up to the maximum of one answer.
pub(crate) fn whole(context: &Context, index: &Index, entry: &Entry) -> Result<Whole, ToolError> {
    open(context, index, entry, 0, MAX_LENGTH)
}

/// Returns a note with at most `room` characters of its text, starting at `from`.
fn open(
    context: &Context,
    index: &Index,
    entry: &Entry,
    from: usize,
    room: usize,
) -> Result<Whole, ToolError> {
    let Ok(stored) = context.notes.read(entry.path) else {
        return Err(ToolError::new(
            "no_such_note",
            format!("the file of note {} is missing", entry.id()),
            "memory_search and memory_list return ids",
        ));
    };
    let body = note::inert_body(&stored);
    let mut rest = body.chars().skip(from);
    let shown: String = rest.by_ref().take(room).collect();
    let is_cut = rest.next().is_some();
    let newer = index.superseded_by(entry)?;
    Ok(Whole {
        note: Note::new(context, entry.clone()),
        next: is_cut.then_some(from.saturating_add(room)),
        body: shown,
        superseded_by: newer.iter().map(|newer| newer.id().to_string()).collect(),
        branch: branch_remark(index, &stored.note())?,
    })
}
