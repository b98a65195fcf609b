//! `redact`: copies stdin to stdout and masks secrets.

use std::process::ExitCode;

use anamnesis_app::{
    context::{Context, TIMEOUT},
    environment::Environment,
};
use anamnesis_text::{clean::one_line, redact::redact};

use crate::{
    input::read_text,
    ui::{Outcome, Ui},
};

/// Mask the secrets in a text
///
/// Reads stdin and prints it with every secret of a known form masked, and what `redact.patterns`
/// matches. Mark other private parts yourself.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the rule and the byte range of each secret instead
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    // The settings of a store have the person's own patterns. Without a store, there are none.
    if let Ok(context) = Context::unchecked(environment, TIMEOUT)
        && let Some(problem) = &context.config.problem
    {
        ui.note(&format!("! {}\n", one_line(problem)));
    }
    let text = read_text()?;
    let redacted = redact(&text);
    if args.json {
        return ui.json(&redacted);
    }
    ui.raw(&redacted.text);
    Ok(ExitCode::SUCCESS)
}
