//! Rates notes and confirms that they are still right. Both are keys of the note.

use anamnesis_note::note::{Note, Rating, State, timestamp};
use anamnesis_text::clean::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    context::Context,
    edit::{self, MarkedNote},
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
    let index = context.index()?;
    let entry = Context::present(&index, &id)?;
    let may_verify = !(context.environment.is_agent && is_a_persons(&entry));
    let is_good = rating == Rating::Good;
    let path = entry.path;
    let marked = edit::apply(context, index, entry, "feedback", |lock| {
        context.notes.update(lock, path, |note| {
            note.rating = Some(rating);
            if is_good && may_verify {
                verify_now(context, note);
            }
        })
    })?;
    let MarkedNote { entry, short, .. } = marked;
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
    let index = context.index()?;
    let entry = Context::present(&index, typed)?;
    refuse_agent(context, &entry, "verify")?;
    let newer = index.superseded_by(&entry)?;
    let newer = newer.iter().map(|newer| Context::short(&index, newer.id()));
    let newer: Vec<String> = newer.collect();
    let path = entry.path;
    let marked = edit::apply(context, index, entry, "verify", |lock| {
        let change = |note: &mut Note| verify_now(context, note);
        context.notes.update(lock, path, change)
    })?;
    let MarkedNote { entry, short, .. } = marked;
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

/// Marks a note as right now. Its text and its time stay.
pub(crate) fn verify_now(context: &Context, note: &mut Note) {
    note.verified = Some(timestamp(context.environment.now));
}
