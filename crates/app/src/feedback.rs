//! Rates notes and confirms that they are still right. Both are keys of the note.

use anamnesis_note::note::{Rating, State, timestamp};
use anamnesis_store::index::{Entry, Index};

use crate::{
    Error,
    context::Context,
    sync,
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
}

/// Rates a note. Praise from someone who may verify the note also verifies it.
pub fn rate(context: &Context, typed: &str, rating: Rating) -> Result<RatedNote, Error> {
    let (index, entry, short) = find(context, typed)?;
    drop(index);
    let may_verify = !(context.environment.is_agent && is_a_persons(&entry));
    let is_verified = rating == Rating::Good && may_verify;
    mark(context, &entry, "feedback", Some(rating), is_verified)?;
    Ok(RatedNote {
        entry,
        short,
        newer: Vec::new(),
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
    mark(context, &entry, "verify", None, true)?;
    Ok(RatedNote {
        entry,
        short,
        newer,
    })
}

/// Writes the keys of a note, commits the change and brings the index up to date.
fn mark(
    context: &Context,
    entry: &Entry,
    verb: &str,
    rating: Option<Rating>,
    is_verified: bool,
) -> Result<(), Error> {
    sync::commit_earlier(context, [entry.id()]);
    write(context, entry, rating, is_verified)?;
    sync::commit(context, verb, [entry.id()]);
    context.index()?;
    Ok(())
}

/// Writes the keys of a note. Its text and its time stay.
pub(crate) fn write(
    context: &Context,
    entry: &Entry,
    rating: Option<Rating>,
    is_verified: bool,
) -> Result<(), Error> {
    let lock = context.notes.lock()?;
    context.notes.update(&lock, entry.path, |note| {
        note.rating = rating.or(note.rating);
        if is_verified {
            note.verified = Some(timestamp(context.environment.now));
        }
    })?;
    Ok(())
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
