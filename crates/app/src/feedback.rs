//! Rates notes and confirms that they are still right.

use anamnesis_note::{
    note::State,
    usage_log::{Feedback, Usage},
};
use anamnesis_store::{
    index::{Entry, Index},
    journal::Journal,
};
use anamnesis_text::clean::one_line;

use crate::{
    context::{Context, PATIENCE},
    failure::Failure,
    learn,
    write::{is_a_persons, refuse_agent},
};

/// A note that was rated or verified.
pub struct RatedNote {
    /// The note.
    pub entry: Entry,
    /// The shortest unique id.
    pub short: String,
    /// The short ids of the notes that replace it.
    pub newer: Vec<String>,
    /// Whether other machines get it, too.
    pub is_told: bool,
}

/// Rates a note, in a session or in the last one that received it.
pub fn rate(
    context: &Context,
    typed: &str,
    said: Feedback,
    session: Option<&str>,
) -> Result<RatedNote, Failure> {
    let (index, entry, short) = find(context, typed)?;
    drop(index);
    let journal = Journal::open(&context.home, PATIENCE)?;
    let session = match session {
        Some(beginning) => Some(find_session(&journal, beginning)?),
        None => journal.last_session_given(entry.id())?,
    };
    // Praise from someone who may verify the note also verifies it.
    let may_verify = !(context.environment.is_agent && is_a_persons(&entry));
    let is_verified = said == Feedback::Good && may_verify;
    let usage = Usage {
        feedback: vec![(entry.id(), said)],
        verified: is_verified.then(|| entry.id()).into_iter().collect(),
        ..Usage::default()
    };
    let is_told = learn::tell(context, &journal, session.as_deref(), &usage, PATIENCE)?;
    context.index()?;
    Ok(RatedNote {
        entry,
        short,
        newer: Vec::new(),
        is_told,
    })
}

/// Confirms that a note is still right.
pub fn verify(context: &Context, typed: &str) -> Result<RatedNote, Failure> {
    let (index, entry, short) = find(context, typed)?;
    refuse_agent(context, &entry, "verify")?;
    let newer = if entry.superseded {
        index.superseded_by(entry.id())?
    } else {
        Vec::new()
    };
    let newer = newer.iter().map(|newer| Context::short(&index, newer.id()));
    let newer = newer.collect();
    drop(index);
    let journal = Journal::open(&context.home, PATIENCE)?;
    let usage = Usage {
        verified: vec![entry.id()],
        ..Usage::default()
    };
    let is_told = learn::tell(context, &journal, None, &usage, PATIENCE)?;
    context.index()?;
    Ok(RatedNote {
        entry,
        short,
        newer,
        is_told,
    })
}

/// Finds a note that is not forgotten.
fn find(context: &Context, typed: &str) -> Result<(Index, Entry, String), Failure> {
    let index = context.index()?;
    let entry = Context::resolve(&index, typed)?;
    let short = Context::short(&index, entry.id());
    if entry.state == State::Forgotten {
        return Err(Failure::failed(format!("#{short} is forgotten"))
            .hint(format!("anamnesis restore {short}")));
    }
    Ok((index, entry, short))
}

/// Finds the one session with this id prefix.
fn find_session(journal: &Journal, beginning: &str) -> Result<String, Failure> {
    let mut found = journal.sessions_named(beginning)?;
    let is_one = found.len() == 1 || found.first().is_some_and(|found| found.id == beginning);
    if is_one {
        return Ok(found.remove(0).id);
    }
    let failure = format!("session begins with \"{}\"", one_line(beginning));
    Err(if found.is_empty() {
        Failure::failed(format!("no {failure}"))
    } else {
        Failure::usage(format!("more than one {failure}"))
    }
    .hint("anamnesis sessions"))
}
