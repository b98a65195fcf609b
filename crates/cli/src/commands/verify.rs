//! `verify`: confirms that a note is still right.

use anamnesis_app::{context::Context, feedback};

use crate::ui::{self, Outcome, Ui};

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
    ui.done(args.json, &verified, &verified.said)?;
    Ok(ui::attention(!verified.in_use))
}
