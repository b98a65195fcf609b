//! `eval`: what recall does, and how well.

mod prompt;

pub(crate) use self::prompt::json as tried_json;

use super::Outcome;
use crate::{environment::Environment, ui::Ui};

/// Show what a prompt would bring, to the byte
///
/// Without a command: `eval prompt`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    prompt: prompt::PromptArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Prompt(prompt::PromptArgs),
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    match &args.verb {
        None => prompt::run(&args.prompt, environment, ui),
        Some(Verb::Prompt(args)) => prompt::run(args, environment, ui),
    }
}
