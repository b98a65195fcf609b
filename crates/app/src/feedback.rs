//! Rates notes and confirms that they are still right. Both are keys of the note.

use anamnesis_note::note::{Rating, State, timestamp};
use anamnesis_store::index::{Entry, Index};
use anamnesis_text::clean::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    context::Context,
    sync,
    write::{is_a_persons, refuse_agent},
};

/// A rating of a note.
#[derive(Debug, Deserialize, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct RateNote {
    /// The note's id: six or more characters of its start or end
    #[schemars(description = "")]
    id: String,
    /// `good`: it helped; `bad`: it was wrong or in the way
    #[arg(value_parser = str::parse::<Rating>)]
    #[schemars(description = "")]
    rating: Rating,
}

/// A note that was rated.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RatedNote {
    /// Result, for the person
    pub said: String,
    id: String,
    rating: Rating,
}

/// Rates a note. Praise from someone who may verify the note also verifies it.
pub fn rate(context: &Context, request: RateNote) -> Result<RatedNote, Error> {
    let RateNote { id, rating } = request;
    let (index, entry, short) = find(context, &id)?;
    drop(index);
    let may_verify = !(context.environment.is_agent && is_a_persons(&entry));
    let is_good = rating == Rating::Good;
    let verb = "feedback";
    mark(context, &entry, verb, Some(rating), is_good && may_verify)?;
    let title = one_line(&entry.title);
    Ok(RatedNote {
        said: if is_good {
            format!("noted: #{short} \"{title}\" helped")
        } else {
            format!(
                "noted: #{short} \"{title}\" was wrong or in the way\n\
                 → anamnesis edit {short}   |   anamnesis mute {short}"
            )
        },
        id: entry.id().to_string(),
        rating,
    })
}

/// A note that was verified.
#[derive(Debug, Serialize)]
pub struct VerifiedNote {
    /// Result, for the person
    pub said: String,
    id: String,
    /// Whether the note is in use.
    pub in_use: bool,
}

/// Confirms that a note is still right.
pub fn verify(context: &Context, typed: &str) -> Result<VerifiedNote, Error> {
    let (index, entry, short) = find(context, typed)?;
    refuse_agent(context, &entry, "verify")?;
    let newer = index.superseded_by(&entry)?;
    let newer = newer.iter().map(|newer| Context::short(&index, newer.id()));
    let newer: Vec<String> = newer.collect();
    drop(index);
    mark(context, &entry, "verify", None, true)?;
    let unused = match entry.state {
        _ if !newer.is_empty() => format!(
            "\nnot in use: #{} replaces it\n→ anamnesis show {}",
            newer.join(", #"),
            newer[0]
        ),
        State::Muted => format!("\nnot in use: it is muted\n→ anamnesis mute {short} --off"),
        State::Proposed => {
            "\nnot in use: it is a proposal\n→ anamnesis list --everywhere".to_owned()
        }
        State::Active | State::Forgotten => String::new(),
    };
    let title = one_line(&entry.title);
    Ok(VerifiedNote {
        said: format!("noted: #{short} \"{title}\" is right{unused}"),
        id: entry.id().to_string(),
        in_use: unused.is_empty(),
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
    let entry = Context::present(&index, typed)?;
    let short = Context::short(&index, entry.id());
    Ok((index, entry, short))
}
