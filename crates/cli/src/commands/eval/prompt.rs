//! `eval prompt`: what a hook would give for a text, to the byte; nothing is written anywhere.

use std::{process::ExitCode, time::Duration};

use anamnesis_app::{
    context::Context, dry_run::Trial, environment::Environment, failure::Failure, recall::Lane,
};

use super::super::why;
use crate::{
    input::read_text,
    ui::{Outcome, Ui},
};

/// Show what a prompt would bring, to the byte
///
/// What is printed is what the hook would put into the context; where it would say nothing, nothing.
/// Nothing is recorded, and the index is read as it is.
#[derive(Debug, clap::Args)]
pub(crate) struct PromptArgs {
    /// The prompt
    #[arg(required_unless_present = "stdin")]
    text: Option<String>,
    /// Read the prompt from stdin
    #[arg(long, conflicts_with = "text")]
    stdin: bool,
    /// Asked in this project [default: the one of this folder, or of the session]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// `prompt`, or `agent` for the task of a subagent
    // Told by the guide alone: people need not know the word.
    #[arg(long, value_parser = lane, default_value = "prompt", hide = true)]
    lane: Lane,
    /// Asked in this session, with what it was given before: six or more characters of its beginning
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Say on stderr of each note why it comes or stays back
    #[arg(long, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON, with everything
    #[arg(long)]
    json: bool,
}

fn lane(word: &str) -> Result<Lane, String> {
    [Lane::Prompt, Lane::Agent]
        .into_iter()
        .find(|lane| lane.as_str() == word)
        .ok_or_else(|| "neither prompt nor agent".to_owned())
}

pub(super) fn run(args: &PromptArgs, environment: Environment, ui: &Ui) -> Outcome {
    let text = match &args.text {
        Some(text) => text.clone(),
        None if args.stdin => read_text()?,
        None => return Err(Failure::usage("there is no prompt").hint("anamnesis eval \"PROMPT\"")),
    };
    // Not even the folders of a store are made.
    let context = Context::of(environment, Duration::ZERO)?;
    let trial = Trial {
        text: &text,
        lane: args.lane,
        project: args.project.as_deref(),
        session: args.session.as_deref(),
    };
    let tried = trial.run(&context)?;
    if args.json {
        ui.json(&tried.json());
        return Ok(ExitCode::SUCCESS);
    }
    ui.raw(tried.block());
    if args.verbose {
        ui.note(&why::tried(&tried, &context, true)?);
    }
    Ok(ExitCode::SUCCESS)
}
