//! Whether an agent's note is taken: not what a person had forgotten, what is known, or what only repeats
//! what its session was given. A person's note always is; what it is to others is told.

use std::collections::BTreeSet;

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_store::{
    index::{Error, Index},
    journal::Journal,
    notes::Notes,
};

use crate::novelty::{Among, Novelty, novelty};

/// A note that somebody wants to write.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The note.
    pub note: &'a Note,
    /// The keys of its project.
    pub projects: &'a [String],
    /// Notes that it replaces.
    pub replaced: &'a [NoteId],
    /// The session that it comes from, if an agent writes it and its session is known.
    pub session: Option<&'a str>,
    /// Whether it is to be written although a note says it.
    pub is_forced: bool,
}

/// Why an agent's note is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A person had this text forgotten, then (milliseconds since 1970).
    Forgotten(i64),
    /// This note says it.
    Known(NoteId),
    /// It repeats what its session was given, this note before others.
    Echo(NoteId),
}

/// Tells what a note is to the notes that there are, or why it is not taken. Records that cannot be read
/// refuse nothing.
///
/// # Errors
/// When the index cannot be read.
pub fn admit(
    index: &Index,
    notes: &Notes,
    journal: Option<&Journal>,
    wanted: &Wanted<'_>,
) -> Result<Result<Novelty, Refusal>, Error> {
    let note = wanted.note;
    let is_by_agent = note.is_by_agent();
    if is_by_agent
        && let Some(journal) = journal
        && let Ok(Some(at)) = journal.forgotten_at(&note.body)
    {
        return Ok(Err(Refusal::Forgotten(at)));
    }
    let among = Among {
        projects: wanted.projects,
        replaced: wanted.replaced,
        given: given(journal, wanted.session.filter(|_| is_by_agent)),
    };
    let read = |id| Some(notes.read(index.get(id).ok()??.path).ok()?.note());
    let found = novelty(index, note, &among, read)?;
    Ok(match found {
        Novelty::Known(id) if is_by_agent && !wanted.is_forced => Err(Refusal::Known(id)),
        Novelty::Echo(id) if is_by_agent => Err(Refusal::Echo(id)),
        _ => Ok(found),
    })
}

/// The notes whose text a session's context has seen.
fn given(journal: Option<&Journal>, session: Option<&str>) -> BTreeSet<NoteId> {
    let ledger = journal
        .zip(session)
        .and_then(|(journal, session)| journal.ledger(session, "").ok());
    let seen = ledger.into_iter().flatten();
    seen.filter(|(_, seen)| seen.with_text)
        .map(|(id, _)| id)
        .collect()
}
