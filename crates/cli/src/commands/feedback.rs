//! `feedback`: records whether a note helped.

use std::process::ExitCode;

use anamnesis_app::{context::Context, feedback};
use anamnesis_note::note::Rating;
use anamnesis_text::clean::one_line;
use serde_json::json;

use crate::ui::{Outcome, Ui};

/// Rate a note
///
/// The rating is the key `rating` of the note. It changes how readily the note is injected, on all
/// your machines; the text stays.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The note's id: six or more characters of its start or end
    id: String,
    /// `good`: it helped; `bad`: it was wrong or in the way
    #[arg(value_parser = ["good", "bad"])]
    said: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let is_good = args.said == "good";
    let said = if is_good { Rating::Good } else { Rating::Bad };
    let rated = feedback::rate(context, &args.id, said)?;
    let short = &rated.short;
    let title = one_line(&rated.entry.title);
    let text = if is_good {
        format!("noted: #{short} \"{title}\" helped\n")
    } else {
        format!(
            "noted: #{short} \"{title}\" was wrong or in the way\n\
             → anamnesis edit {short}   |   anamnesis mute {short}\n"
        )
    };
    let id = rated.entry.id().to_string();
    ui.done(args.json, json!({ "id": id, "rating": args.said }), &text);
    Ok(ExitCode::SUCCESS)
}
