//! What an agent may write, and what it may only propose.

use anamnesis_note::agent_policy;
use anamnesis_store::index::Entry;

use crate::{context::Context, failure::Failure};

/// Tells whether a note is a person's or for all projects.
pub fn is_a_persons(entry: &Entry) -> bool {
    agent_policy::is_out_of_reach(&entry.project, entry.source, entry.by_agent)
}

/// Tells whether an agent can change a note only through a proposal: a person's note, one for all
/// projects, and any active note if the person approves everything.
pub fn is_out_of_reach(context: &Context, entry: &Entry) -> bool {
    is_a_persons(entry) || context.config.review.holds(entry.state)
}

/// Refuses an agent that wants to change a person's note or one that applies to all projects.
pub fn refuse_agent(context: &Context, entry: &Entry, act: &str) -> Result<(), Failure> {
    if !context.environment.is_agent || !is_out_of_reach(context, entry) {
        return Ok(());
    }
    let why = if is_a_persons(entry) {
        "a person wrote it, or it applies to all projects"
    } else {
        "it is in use, and the person approves every change"
    };
    Err(
        Failure::failed(format!("only a person can {act} this note: {why}"))
            .hint("write a note of your own that supersedes it; it waits for approval"),
    )
}
