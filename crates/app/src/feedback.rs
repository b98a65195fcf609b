//! Rates notes and confirms that they are still right.

use anamnesis_note::{note::State, usage_log::Feedback};
use anamnesis_store::{
    index::{Entry, Index},
    journal::Journal,
};
use anamnesis_text::clean::one_line;

use crate::{
    Error,
    context::{Context, PATIENCE},
    learn,
    write::refuse_agent,
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
) -> Result<RatedNote, Error> {
    let (index, entry, short) = find(context, typed)?;
    drop(index);
    let journal = Journal::open(&context.home, PATIENCE)?;
    let session = session.map(|beginning| find_session(&journal, beginning));
    let is_told = learn::rate(context, &journal, &entry, said, session.transpose()?)?;
    Ok(RatedNote {
        entry,
        short,
        newer: Vec::new(),
        is_told,
    })
}

/// Confirms that a note is still right.
pub fn verify(context: &Context, typed: &str) -> Result<RatedNote, Error> {
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
    let is_told = learn::verify(context, &journal, &entry)?;
    context.index()?;
    Ok(RatedNote {
        entry,
        short,
        newer,
        is_told,
    })
}

/// Finds a note that is not forgotten.
fn find(context: &Context, typed: &str) -> Result<(Index, Entry, String), Error> {
    let index = context.index()?;
    let entry = Context::resolve(&index, typed)?;
    let short = Context::short(&index, entry.id());
    if entry.state == State::Forgotten {
        return Err(Error::failed(format!("#{short} is forgotten"))
            .hint(format!("anamnesis restore {short}")));
    }
    Ok((index, entry, short))
}

/// Finds the one session with this id prefix.
fn find_session(journal: &Journal, beginning: &str) -> Result<String, Error> {
    let mut found = journal.sessions_named(beginning)?;
    let is_one = found.len() == 1 || found.first().is_some_and(|found| found.id == beginning);
    if is_one {
        return Ok(found.remove(0).id);
    }
    let failure = format!("session begins with \"{}\"", one_line(beginning));
    Err(if found.is_empty() {
        Error::failed(format!("no {failure}"))
    } else {
        Error::usage(format!("more than one {failure}"))
    }
    .hint("anamnesis sessions"))
}
