//! Permanently deletes a session, or one prompt of it.
//!
//! The note is deleted first, because it is what people see. If the process is killed, the next run
//! deletes the rest.

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, Source, State},
};
use anamnesis_session::event::Privacy;
use anamnesis_store::{
    journal::{ForgottenPrompt, Journal, Session},
    session_note::{self, Outcome},
    spool::Spool,
};
use anamnesis_text::clean::one_line;

use super::records::leave_records;
use crate::{Error, capture, context::Context, evaluation_set, history::Past, session, sync};

/// A session to forget.
pub struct SessionToForget {
    /// The client's id of the session.
    pub id: String,
    /// The shortest unique prefix of the id.
    pub short: String,
    /// The session, if the journal has it.
    pub session: Option<Session>,
}

/// The fate of a session's note after one of its prompts was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteFate {
    /// There is no note.
    None,
    /// A person changed it, so it stays.
    ByHand,
    /// It was made from the rest of the session.
    Renewed,
    /// Nothing is left, so it is forgotten, too.
    Forgotten,
    /// Its folder is excluded now, so it stays.
    Excluded,
}

/// Finds a session by what a person typed. A session that the journal does not have, or no longer
/// has, is found by its full id.
pub fn find(context: &Context, journal: &Journal, typed: &str) -> Result<SessionToForget, Error> {
    match session::find(journal, typed) {
        Ok(session) => Ok(SessionToForget {
            id: session.id.clone(),
            short: session::short(journal, &session)?,
            session: Some(session),
        }),
        Err(failure) => {
            let id = typed.trim().to_owned();
            let note = context.notes.find(NoteId::of_session(&id));
            let has_note = note.is_some_and(|path| !context.notes.is_forgotten(path));
            if !has_note && Spool::new(&context.home).count_of(&id) == 0 {
                return Err(failure.after("nothing was forgotten: "));
            }
            Ok(SessionToForget {
                short: one_line(&id),
                id,
                session: None,
            })
        }
    }
}

/// What a forgotten session had.
pub struct ForgottenSession {
    /// Whether it had a note.
    pub had_note: bool,
    /// The number of its pending records.
    pub pending: usize,
    /// Whether the note is in the history of notes, from which only a purge removes it.
    pub is_in_history: bool,
}

/// Forgets a session.
pub fn forget(
    context: &Context,
    journal: &Journal,
    target: &SessionToForget,
) -> Result<ForgottenSession, Error> {
    let id = NoteId::of_session(&target.id);
    let is_in_history = match Past::open_if_any(context)? {
        Some(past) => !past.repository.log(Some(id), 1)?.is_empty(),
        None => false,
    };
    let had_note = forget_note(&target.id, target.session.as_ref(), context, journal)?;
    if is_in_history {
        sync::commit(context, sync::FORGET_SESSION, [id]);
    }
    journal.forget_session(&target.id)?;
    let pending = Spool::new(&context.home)
        .forget_session(&target.id)
        .map_err(|error| {
            Error::failed(format!("spool: {error}"))
                .because(error)
                .hint("anamnesis doctor")
        })?;
    leave_records(context, Some(journal), &[id].into())?;
    Ok(ForgottenSession {
        had_note,
        pending,
        is_in_history,
    })
}

/// Writes a tombstone for the session's note, even if there is no note, so that none is written
/// later. Returns whether there was a note.
fn forget_note(
    id: &str,
    session: Option<&Session>,
    context: &Context,
    journal: &Journal,
) -> Result<bool, Error> {
    let now = context.environment.now;
    let note = NoteId::of_session(id);
    let lock = context.notes.lock()?;
    evaluation_set::forget_notes(&context.home, |asked| asked == note)?;
    let had_note = match context.notes.find(note) {
        Some(path) if context.notes.is_forgotten(path) => false,
        Some(path) => {
            if let Ok(stored) = context.notes.read(path) {
                journal.forgot(note, &stored.file.note().body, now)?;
            }
            context.notes.forget(&lock, path, now)?;
            true
        }
        None => {
            let mut tombstone = Note {
                session: Some(id.to_owned()),
                machine_id: context.machine_id(),
                source: Source::SessionEnd,
                ..Note::new(note, NoteType::Episodic, now)
            };
            if let Some(session) = session {
                tombstone.project.clone_from(&session.project);
            }
            tombstone.forget(now);
            context.notes.create(&lock, &tombstone)?;
            false
        }
    };
    context.notes.drop_trashed(note)?;
    context.notes.drop_leftovers(&lock, note)?;
    Ok(had_note)
}

/// Finds the session of a prompt, and checks that something is kept of the prompt.
pub fn find_prompt(
    context: &Context,
    journal: &Journal,
    typed: &str,
    number: i64,
) -> Result<(Session, String), Error> {
    let session = session::find(journal, typed)
        .map_err(|failure| failure.after("nothing was forgotten: "))?;
    let short = session::short(journal, &session)?;
    let prompts = journal.prompts(&session.id)?;
    let Some(prompt) = prompts.iter().find(|prompt| prompt.number == number) else {
        return Err(Error::failed(format!(
            "nothing was forgotten: session {short} has no prompt {number}"
        ))
        .hint(format!("anamnesis sessions show {short}")));
    };
    if prompt.privacy == Privacy::Full {
        // If an earlier run was killed, the note may still contain the prompt.
        renew_note(&session, context, journal)?;
        return Err(Error::failed(format!(
            "nothing was forgotten: nothing is kept of prompt {number} of session {short}"
        )));
    }
    Ok((session, short))
}

/// Forgets a prompt and everything under it.
pub fn forget_prompt(
    context: &Context,
    journal: &Journal,
    session: &Session,
    number: i64,
) -> Result<(ForgottenPrompt, NoteFate), Error> {
    let now = context.environment.now.timestamp_millis();
    let forgotten = journal
        .forget_prompt(&session.id, number, now)?
        .ok_or_else(|| {
            Error::failed("nothing was forgotten: the session was forgotten meanwhile")
        })?;
    let note = renew_note(session, context, journal)?;
    // Other sessions may have got what the note said of the prompt.
    let ids = [NoteId::of_session(&session.id)].into();
    leave_records(context, Some(journal), &ids)?;
    Ok((forgotten, note))
}

/// Rewrites the note from the rest of its session.
fn renew_note(session: &Session, context: &Context, journal: &Journal) -> Result<NoteFate, Error> {
    let id = NoteId::of_session(&session.id);
    let Some(path) = context.notes.find(id) else {
        return Ok(NoteFate::None);
    };
    let before = context.notes.read(path)?;
    if before.file.note().state == State::Forgotten {
        return Ok(NoteFate::None);
    }
    if !session_note::is_own(journal, &session.id, before.file.note()) {
        return Ok(NoteFate::ByHand);
    }
    // They may be of the forgotten prompt.
    let lock = context.notes.lock()?;
    context
        .notes
        .update(&lock, path, |note| note.asked.clear())?;
    drop(lock);
    let written = capture::write_session(context, journal, &session.id, None)
        .map_err(|error| error.hint("anamnesis doctor"))?;
    let lock = context.notes.lock()?;
    context.notes.drop_leftovers(&lock, id)?;
    Ok(match written {
        Some((Outcome::Trivial, _)) => {
            context.notes.forget(&lock, path, context.environment.now)?;
            context.notes.drop_trashed(id)?;
            NoteFate::Forgotten
        }
        Some(_) => NoteFate::Renewed,
        None => NoteFate::Excluded,
    })
}
