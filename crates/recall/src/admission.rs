//! Decides whether an agent's new note is accepted.
//!
//! An agent's note is refused if it claims to be a session's, if a person forgot that text, if a note
//! already says it, or if it only repeats notes that its session was shown. A person's note is always accepted; the caller
//! gets its [`Novelty`].

use std::collections::BTreeSet;

use anamnesis_note::{
    agent_policy,
    id::NoteId,
    note::{Note, NoteType},
};
use anamnesis_store::{
    index::{self, Index},
    journal::Journal,
    notes::Notes,
};

use crate::novelty::{Novelty, NoveltyScope, novelty};

/// A note about to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewNote<'a> {
    /// The note.
    pub note: &'a Note,
    /// The keys of the note's project.
    pub projects: &'a [String],
    /// The notes it replaces.
    pub replaced: &'a [NoteId],
    /// The session that writes it, if an agent writes it and the session is known.
    pub session: Option<&'a str>,
    /// Whether to write it even if another note says the same.
    pub is_forced: bool,
}

/// Why a note is not admitted.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// Only the program writes notes of this type.
    #[error("an agent cannot write notes of type {0}")]
    Type(NoteType),
    /// A person had this text forgotten at this time (milliseconds since 1970).
    #[error("the person had this text forgotten")]
    Forgotten(i64),
    /// This note already says it.
    #[error("the note {0} says this already")]
    Known(NoteId),
    /// The text repeats notes that the session was shown, this one most of all.
    #[error("the text repeats notes that the session was shown, {0} before others")]
    Echo(NoteId),
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] index::Error),
}

/// Compares a new note with the store and returns its novelty. Only an agent's note is refused.
///
/// A journal that cannot be read refuses nothing.
pub fn admit(
    index: &Index,
    notes: &Notes,
    journal: Option<&Journal>,
    wanted: &NewNote<'_>,
) -> Result<Novelty, AdmissionError> {
    let note = wanted.note;
    let is_by_agent = note.is_by_agent();
    if is_by_agent && !agent_policy::may_write(note.note_type) {
        return Err(AdmissionError::Type(note.note_type));
    }
    if is_by_agent
        && let Some(journal) = journal
        && let Ok(Some(at)) = journal.forgotten_at(&note.body)
    {
        return Err(AdmissionError::Forgotten(at));
    }
    let among = NoveltyScope {
        projects: wanted.projects,
        replaced: wanted.replaced,
        given: given(journal, wanted.session.filter(|_| is_by_agent)),
    };
    let read = |id| Some(notes.read(index.get(id).ok()??.path).ok()?.note());
    let found = novelty(index, note, &among, read)?;
    match found {
        Novelty::Known(id) if is_by_agent && !wanted.is_forced => Err(AdmissionError::Known(id)),
        Novelty::Echo(id) if is_by_agent => Err(AdmissionError::Echo(id)),
        _ => Ok(found),
    }
}

/// Returns the notes whose text the session's context has seen.
fn given(journal: Option<&Journal>, session: Option<&str>) -> BTreeSet<NoteId> {
    let ledger = journal
        .zip(session)
        .and_then(|(journal, session)| journal.ledger(session, "").ok());
    let seen = ledger.into_iter().flatten();
    seen.filter(|(_, seen)| seen.with_text)
        .map(|(id, _)| id)
        .collect()
}
