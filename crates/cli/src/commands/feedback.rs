//! `feedback`: records whether a note helped.

use std::process::ExitCode;

use anamnesis_app::{context::Context, feedback};
use anamnesis_note::usage_log::Feedback;
use anamnesis_text::clean::one_line;
use serde_json::json;

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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let is_good = args.said == "good";
    let said = if is_good {
        Feedback::Good
    } else {
        Feedback::Bad
    };
    let rated = feedback::rate(context, &args.id, said, args.session.as_deref())?;
    let (short, place) = (&rated.short, place(rated.is_told));
    let title = one_line(&rated.entry.title);
    let text = if is_good {
        format!("noted{place}: #{short} \"{title}\" helped\n")
    } else {
        format!(
            "noted{place}: #{short} \"{title}\" was wrong or in the way\n\
             → anamnesis edit {short}   |   anamnesis mute {short}\n"
        )
    };
    let id = rated.entry.id().to_string();
    ui.done(args.json, json!({ "id": id, "rating": args.said }), &text);
    Ok(ExitCode::SUCCESS)
}

/// Says where the rating is recorded, if not on all machines.
pub(super) fn place(is_told: bool) -> &'static str {
    if is_told { "" } else { " on this machine" }
}
