//! `verify`: confirms that a note is still right.

use std::process::ExitCode;

use anamnesis_app::{context::Context, error::NEEDS_ATTENTION, feedback};
use anamnesis_note::note::State;
use anamnesis_text::clean::one_line;
use serde_json::json;

use crate::ui::{Outcome, Ui};

/// Confirm that a note is still right
///
/// Removes it from `anamnesis stale` until there is a new reason. The time becomes the key `verified`
/// of the note; its text stays. Exit code 3: it is confirmed but not in use; the output says why.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The note's id: six or more characters of its start or end
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let verified = feedback::verify(context, &args.id)?;
    let (entry, short, newer) = (&verified.entry, &verified.short, &verified.newer);
    let title = one_line(&entry.title);
    let mut text = format!("noted: #{short} \"{title}\" is right\n");
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
    let fields = json!({ "id": entry.id().to_string(), "in_use": unused.is_none() });
    ui.done(args.json, fields, &text);
    Ok(unused.map_or(ExitCode::SUCCESS, |_| ExitCode::from(NEEDS_ATTENTION)))
}
