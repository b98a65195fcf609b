//! `connect`: adds or removes a link between two notes.

use anamnesis_app::{
    context::Context,
    ops::connect::{self, ConnectNotes},
};

use crate::ui::{Outcome, Ui};

/// Link a note to another one
///
/// The link is stored as a line of the first note. Linked notes are recalled together. An existing
/// link stays; a new weight replaces the old one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    request: ConnectNotes,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, context: &Context, ui: &Ui) -> Outcome {
    let connected = connect::connect(context, args.request)?;
    ui.done(args.json, &connected, &connected.said)
}
