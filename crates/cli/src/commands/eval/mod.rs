//! `eval`: shows what recall does, and measures how well.

mod build;
mod experiment;
mod prompt;
mod run;

use std::path::PathBuf;

use anamnesis_app::{
    Error,
    context::Context,
    environment::Environment,
    evaluation_set::{Case, Set},
};
use anamnesis_text::clean::one_line;

use crate::ui::{Outcome, Ui};

/// Show what a prompt would inject, or measure recall
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
    Build(build::Args),
    Run(run::Args),
    Experiment(experiment::Args),
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// The file with the questions [default: eval/eval.jsonl in the store]
    #[arg(long, value_name = "PATH")]
    eval_set: Option<PathBuf>,
    /// Include questions that nobody has approved
    #[arg(long)]
    include_unreviewed: bool,
}

impl SetArgs {
    /// Reads the set, and returns the path, too.
    fn read(&self, context: &Context) -> Result<(Set, PathBuf), Error> {
        let path = path(context, self.eval_set.as_ref());
        let set = Set::read(&path)?.ok_or_else(|| {
            let path = one_line(&context.shown(&path));
            Error::usage(format!("there are no questions: {path} is not there"))
                .hint("anamnesis eval build   (lets a model write some about your notes)")
        })?;
        Ok((set, path))
    }

    /// The questions that count, with their line numbers.
    fn measured<'a>(&self, set: &'a Set) -> Vec<(usize, &'a Case)> {
        let cases = set.cases.iter().map(|(line, case)| (*line, case));
        cases
            .filter(|(_, case)| case.approved || self.include_unreviewed)
            .collect()
    }
}

fn path(context: &Context, named: Option<&PathBuf>) -> PathBuf {
    named.cloned().unwrap_or_else(|| context.home.evaluation())
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    match &args.verb {
        None => prompt::run(&args.prompt, environment, ui),
        Some(Verb::Prompt(args)) => prompt::run(args, environment, ui),
        Some(Verb::Build(args)) => build::run(args, &Context::open(environment)?, ui),
        Some(Verb::Experiment(args)) => experiment::run(args, &Context::open(environment)?, ui),
        Some(Verb::Run(args)) => run::run(args, &Context::open(environment)?, ui),
    }
}
