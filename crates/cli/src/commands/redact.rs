//! `redact`: copies stdin to stdout and masks secrets.

use std::process::ExitCode;

use anamnesis_text::redact::redact;

use crate::{
    input::read_text,
    ui::{Outcome, Ui},
};

/// Mask the secrets in a text
///
/// Reads stdin and prints it with every secret of a known form masked. Mark other private parts
/// yourself.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the rule and the byte range of each secret instead
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let text = read_text()?;
    let redacted = redact(&text);
    if args.json {
        return ui.json(&redacted);
    }
    ui.raw(&redacted.text);
    Ok(ExitCode::SUCCESS)
}
