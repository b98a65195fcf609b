//! `verify`: confirms that a note is still right.

use std::process::ExitCode;

use anamnesis_app::{
    context::{Context, PATIENCE},
    failure::NEEDS_ATTENTION,
    learn,
};
use anamnesis_note::{note::State, usage_log::Usage};
use anamnesis_store::journal::Journal;
use anamnesis_text::clean::one_line;

use super::{
    edit::refuse_agent,
    feedback::{place, refuse_forgotten},
};
use crate::ui::{Outcome, Ui};

/// Confirm that a note is still right
///
/// Removes it from `anamnesis stale` until there is a new reason. The
/// note itself does not change. Exit code 3: it is confirmed but not in use; the output says why.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The note's id: six or more characters of its start or end
    id: String,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let index = context.index()?;
    let entry = Context::resolve(&index, &args.id)?;
    let short = Context::short(&index, entry.id());
    refuse_forgotten(&entry, &short)?;
    refuse_agent(context, &entry, "verify")?;
    let newer = if entry.superseded {
        index.superseded_by(entry.id())?
    } else {
        Vec::new()
    };
    let newer: Vec<String> = newer
        .iter()
        .map(|newer| Context::short(&index, newer.id()))
        .collect();
    drop(index);
    let journal = Journal::open(&context.home, PATIENCE)?;
    let usage = Usage {
        verified: vec![entry.id()],
        ..Usage::default()
    };
    let is_told = learn::tell(context, &journal, None, &usage, PATIENCE)?;
    context.index()?;
    let title = one_line(&entry.title);
    let mut text = format!("noted{}: #{short} \"{title}\" is right\n", place(is_told));
    let unused = match entry.state {
        _ if !newer.is_empty() => Some(format!(
            "not in use: #{} replaces it\n→ anamnesis show {}\n",
            newer.join(", #"),
            newer[0]
        )),
        State::Muted => Some(format!(
            "not in use: it is muted\n→ anamnesis mute {short} --off\n"
        )),
        State::Proposed => {
            Some("not in use: it is a proposal\n→ anamnesis list --everywhere\n".to_owned())
        }
        State::Active | State::Forgotten => None,
    };
    text.push_str(unused.as_deref().unwrap_or_default());
    ui.print(&text);
    Ok(unused.map_or(ExitCode::SUCCESS, |_| ExitCode::from(NEEDS_ATTENTION)))
}
