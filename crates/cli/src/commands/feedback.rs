//! `feedback`: records whether a note helped.

use std::process::ExitCode;

use anamnesis_app::{
    context::{Context, PATIENCE},
    failure::Failure,
    learn,
};
use anamnesis_note::{
    note::State,
    usage_log::{Feedback, Usage},
};
use anamnesis_store::{index::Entry, journal::Journal};
use anamnesis_text::clean::one_line;

use super::write;
use crate::ui::{Outcome, Ui};

/// Rate a note
///
/// A rating counts once per session. It changes how readily the note is injected, on all your
/// machines, but not the note itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The note's id: six or more characters of its start or end
    id: String,
    /// `good`: it helped; `bad`: it was wrong or in the way
    #[arg(value_parser = ["good", "bad"])]
    said: String,
    /// The session that is rated [default: the last one with this note injected]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let index = context.index()?;
    let entry = Context::resolve(&index, &args.id)?;
    let short = Context::short(&index, entry.id());
    refuse_forgotten(&entry, &short)?;
    drop(index);
    let journal = Journal::open(&context.home, PATIENCE)?;
    let session = match &args.session {
        Some(beginning) => Some(session(&journal, beginning)?),
        None => journal.last_session_given(entry.id())?,
    };
    let is_good = args.said == "good";
    let said = if is_good {
        Feedback::Good
    } else {
        Feedback::Bad
    };
    // Praise from someone who may verify the note also verifies it.
    let is_verified = is_good && !(context.environment.is_agent && write::is_a_persons(&entry));
    let usage = Usage {
        feedback: vec![(entry.id(), said)],
        verified: is_verified.then(|| entry.id()).into_iter().collect(),
        ..Usage::default()
    };
    let is_told = learn::tell(context, &journal, session.as_deref(), &usage, PATIENCE)?;
    context.index()?;
    let title = one_line(&entry.title);
    let place = place(is_told);
    ui.print(&if is_good {
        format!("noted{place}: #{short} \"{title}\" helped\n")
    } else {
        format!(
            "noted{place}: #{short} \"{title}\" was wrong or in the way\n\
             → anamnesis edit {short}   |   anamnesis mute {short}\n"
        )
    });
    Ok(ExitCode::SUCCESS)
}

/// Refuses a tombstone.
pub(super) fn refuse_forgotten(entry: &Entry, short: &str) -> Result<(), Failure> {
    if entry.state == State::Forgotten {
        return Err(Failure::failed(format!("#{short} is forgotten"))
            .hint(format!("anamnesis restore {short}")));
    }
    Ok(())
}

/// Says where the rating is recorded, if not on all machines.
pub(super) fn place(is_told: bool) -> &'static str {
    if is_told { "" } else { " on this machine" }
}

/// Finds the one session with this id prefix.
fn session(journal: &Journal, beginning: &str) -> Result<String, Failure> {
    let mut found = journal.sessions_named(beginning)?;
    let is_one = found.len() == 1 || found.first().is_some_and(|found| found.id == beginning);
    if is_one {
        return Ok(found.remove(0).id);
    }
    let number = if found.is_empty() {
        "no"
    } else {
        "more than one"
    };
    let failure = format!("{number} session begins with \"{}\"", one_line(beginning));
    Err(if found.is_empty() {
        Failure::failed(failure)
    } else {
        Failure::usage(failure)
    }
    .hint("anamnesis sessions"))
}
