//! Recorded sessions: finding one by what a person typed, and its rows as JSON.

pub mod export;

use anamnesis_note::{id::NoteId, note::State};
use anamnesis_store::{
    index::Index,
    journal::{Journal, LOST, Session},
};
use anamnesis_text::clean::one_line;

use crate::{Error, context::Context, format::shorten};

/// The minimum length of a typed session id, in characters.
const MIN_ID: usize = 6;

/// Finds the session that matches what a person typed.
pub fn find(journal: &Journal, typed: &str) -> Result<Session, Error> {
    let mut found = journal.sessions_named(typed.trim())?;
    if found
        .first()
        .is_some_and(|session| session.id == typed.trim())
    {
        found.truncate(1);
    } else if typed.trim().chars().count() < MIN_ID {
        return Err(Error::usage(format!(
            "\"{}\" is too short for a session's id",
            one_line(typed)
        ))
        .hint("six or more characters of its beginning, as `sessions` shows them"));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(
            Error::failed(format!("no session {}", shorten(&one_line(typed), 50)))
                .hint("anamnesis sessions --everywhere"),
        ),
        _ => {
            let candidates: Vec<String> = found
                .iter()
                .map(|session| {
                    format!(
                        "  {}  {}",
                        one_line(&session.id),
                        one_line(&session.project)
                    )
                })
                .collect();
            Err(Error::usage(format!(
                "{} matches more than one session:\n{}",
                one_line(typed),
                candidates.join("\n")
            ))
            .hint("type more of the id"))
        }
    }
}

/// The shortest unique prefix of a session's id.
pub fn short(journal: &Journal, session: &Session) -> Result<String, Error> {
    Ok(one_line(&journal.short_session_id(&session.id)?))
}

/// Counts the prompts of a session, without commands and notifications.
pub fn prompts(journal: &Journal, session: &Session) -> Result<i64, Error> {
    Ok(session.prompts - journal.count_commands(&session.id)?)
}

/// Whether a session is running, and how it ended.
pub fn state(session: &Session) -> String {
    match session.end_reason.as_deref() {
        _ if !session.is_completed() => "open".to_owned(),
        Some(LOST) => LOST.to_owned(),
        // The client's own words.
        Some("prompt_input_exit") => "ended by you".to_owned(),
        Some("clear") => "ended by /clear".to_owned(),
        Some("logout") => "ended by a logout".to_owned(),
        Some("other") | None => "ended".to_owned(),
        Some(reason) => format!("ended ({})", one_line(reason)),
    }
}

/// The session's note, or that there is none.
pub fn note_label(session: &Session, index: &Index) -> Result<String, Error> {
    Ok(match index.get(NoteId::of_session(&session.id))? {
        Some(entry) if entry.state == State::Forgotten => "note forgotten".to_owned(),
        Some(entry) => format!("note #{}", Context::short(index, entry.id())),
        None if session.is_completed() => "no note".to_owned(),
        None => "no note yet".to_owned(),
    })
}
