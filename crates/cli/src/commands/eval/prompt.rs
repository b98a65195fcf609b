//! `eval prompt`: prints what a hook would inject for a text, and writes nothing.

use std::{process::ExitCode, time::Duration};

use anamnesis_app::{
    Error, context::Context, dry_run::Trial, environment::Environment, recall::Lane,
};

use super::super::why;
use crate::{
    input::read_text,
    ui::{Outcome, Ui},
};

/// Show exactly what a prompt would inject
///
/// Prints the text that the hook would add to the context, or nothing if the hook would be silent.
/// Records nothing, and reads the index as it is.
#[derive(Debug, clap::Args)]
pub(crate) struct PromptArgs {
    /// The prompt
    #[arg(required_unless_present = "stdin")]
    text: Option<String>,
    /// Read the prompt from stdin
    #[arg(long, conflicts_with = "text")]
    stdin: bool,
    /// Run the prompt in this project [default: that of this folder, or of the session]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// The lane: `prompt`, or `agent` for the task of a subagent
    // Only the guide explains lanes; people do not need the option.
    #[arg(long, value_parser = lane, default_value = "prompt", hide = true)]
    lane: Lane,
    /// Run the prompt in this session, with what was injected there: six or more characters of the
    /// start of its id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print to stderr why each note is injected or held back
    #[arg(long, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON, with all details
    #[arg(long)]
    json: bool,
}

fn lane(word: &str) -> Result<Lane, Error> {
    [Lane::Prompt, Lane::Agent]
        .into_iter()
        .find(|lane| lane.as_str() == word)
        .ok_or_else(|| Error::usage("neither prompt nor agent"))
}

pub(super) fn run(args: &PromptArgs, environment: Environment, ui: &Ui) -> Outcome {
    let text = match &args.text {
        Some(text) => text.clone(),
        None if args.stdin => read_text()?,
        None => return Err(Error::usage("there is no prompt").hint("anamnesis eval \"PROMPT\"")),
    };
    // `open` would create the folders of the store.
    let context = Context::new(environment, Duration::ZERO)?;
    let trial = Trial {
        text: &text,
        lane: args.lane,
        project: args.project.as_deref(),
        session: args.session.as_deref(),
    };
    let tried = trial.run(&context)?;
    if args.json {
        return ui.json(tried.json());
    }
    ui.raw(&tried.block());
    if args.verbose {
        ui.note(&why::tried(&tried, &context, true)?);
    }
    Ok(ExitCode::SUCCESS)
}
