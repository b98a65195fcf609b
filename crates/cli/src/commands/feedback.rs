//! `feedback`: records whether a note helped.

use anamnesis_app::{
    context::Context,
    feedback::{self, RateNote},
};

use crate::ui::{Outcome, Ui};

/// Rate a note
///
/// The rating is the key `rating` of the note. It changes how readily the note is injected, on all
/// your machines; the text stays.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    request: RateNote,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, context: &Context, ui: &Ui) -> Outcome {
    let rated = feedback::rate(context, args.request)?;
    ui.done(args.json, &rated, &rated.said)
}
