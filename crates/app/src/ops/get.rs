//! Returns full notes by id, for a model.

use anamnesis_recall::branch::branch_remark;
use anamnesis_store::index::{Entry, Index};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::note::{self, Note};
use crate::{Error, context::Context};

/// How many notes one call returns.
const MAX_IDS: usize = 20;

/// The maximum text of one answer, in characters. Clients cut longer answers.
const MAX_LENGTH: usize = 40_000;

/// The ids of notes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetNotes {
    /// 1 to 20
    ids: Vec<String>,
    /// Offset into the text, in characters
    #[serde(default)]
    from: usize,
}

/// Full notes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FullNotes {
    result: Vec<FullNote>,
}

/// A note with its text.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct FullNote {
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

/// Returns notes with their texts, up to the maximum of one answer together.
pub fn get(context: &Context, request: GetNotes) -> Result<FullNotes, Error> {
    let GetNotes { ids, from } = request;
    if ids.is_empty() || ids.len() > MAX_IDS {
        let error = Error::usage(format!("got {} ids", ids.len()));
        return Err(error.hint(format!("pass 1 to {MAX_IDS} ids")));
    }
    let index = context.index_to_read()?;
    let mut room = MAX_LENGTH;
    let mut result = Vec::with_capacity(ids.len());
    for typed in &ids {
        let entry = Context::present(&index, typed)?;
        let note = open(context, &index, &entry, from, room)?;
        room = room.saturating_sub(note.body.chars().count());
        result.push(note);
    }
    Ok(FullNotes { result })
}

/// Returns a note with its text, up to the maximum of one answer.
pub fn full(context: &Context, index: &Index, entry: &Entry) -> Result<FullNote, Error> {
    open(context, index, entry, 0, MAX_LENGTH)
}

/// Returns a note with at most `room` characters of its text, starting at `from`.
fn open(
    context: &Context,
    index: &Index,
    entry: &Entry,
    from: usize,
    room: usize,
) -> Result<FullNote, Error> {
    let Ok(stored) = context.notes.read(entry.path) else {
        let error = Error::failed(format!("the file of note {} is missing", entry.id()));
        let error = error.code("no_such_note");
        return Err(error.hint("memory_search and memory_list return ids"));
    };
    let body = note::inert_body(&stored);
    let mut rest = body.chars().skip(from);
    let shown: String = rest.by_ref().take(room).collect();
    let is_cut = rest.next().is_some();
    let newer = index.superseded_by(entry)?;
    Ok(FullNote {
        note: Note::new(context, entry.clone()),
        next: is_cut.then_some(from.saturating_add(room)),
        body: shown,
        superseded_by: newer.iter().map(|newer| newer.id().to_string()).collect(),
        branch: branch_remark(index, &stored.note())?,
    })
}
