//! `internal`: commands that hooks, the plugin and scripts run.

mod capture;
mod inject;
mod maintain;
mod reindex;
pub(super) mod work;

use std::path::PathBuf;

use anamnesis_app::{context::Context, environment::Environment};

use super::{completions, statusline};
use crate::ui::{Outcome, Ui};

/// Run a command that hooks and scripts use
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Capture(capture::Args),
    Completions(completions::Args),
    Inject(inject::Args),
    /// Prune old records, empty the trash, erase deleted text
    Maintain,
    /// Rebuild the index from the notes
    ///
    /// The old index stays in use until the new one is complete. Notes are only read.
    Reindex,
    /// Print one line for Claude Code's status line
    ///
    /// Notes of this project, notes injected into this session, and pending decisions. Reads
    /// the JSON that Claude Code passes on stdin. To use it, add to ~/.claude/settings.json:
    /// "statusLine": {"type": "command", "command": "anamnesis internal statusline"}
    Statusline,
    Work(work::Args),
}

impl Args {
    /// Returns whether this is the deferred process.
    pub(crate) fn is_deferred(&self) -> bool {
        matches!(self.verb, Verb::Work(_))
    }
}

/// `command` returns the whole command line.
pub(crate) fn run(
    args: &Args,
    command: impl FnOnce() -> clap::Command,
    environment: Environment,
    ui: &Ui,
) -> Outcome {
    match &args.verb {
        Verb::Work(args) => work::run(args, environment),
        Verb::Completions(args) => Ok(completions::run(args, command(), ui)),
        Verb::Statusline => statusline::run(environment, ui),
        Verb::Capture(args) => capture::run(args, &Context::open(environment)?, ui),
        Verb::Inject(args) => inject::run(args, &Context::open(environment)?, ui),
        Verb::Maintain => maintain::run(&Context::open(environment)?, ui),
        Verb::Reindex => reindex::run(&Context::open(environment)?, ui),
    }
}

/// The folder of a session: the one in which its transcript began, else the hook's, else the
/// current one.
fn session_folder(begun: Option<String>, hook: Option<String>) -> PathBuf {
    let absolute =
        |folder: String| Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
    begun
        .and_then(absolute)
        .or_else(|| hook.and_then(absolute))
        .or_else(Context::current_folder)
        .unwrap_or_default()
}
