//! `internal work`: the deferred process, here or in the background.

use std::process::ExitCode;

use anamnesis_app::{Error, deferred, environment::Environment, spawn};

use crate::ui::Outcome;

/// Do the work that hooks deferred
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Start in the background and return
    #[arg(long)]
    detach: bool,
    /// Check journal.db and the index for damage that a hook reported
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args, environment: Environment) -> Outcome {
    if args.detach {
        spawn::start_detached(&environment, args.check)
            .map_err(Error::prefixed("cannot start in the background"))?;
    } else {
        deferred::run(environment, args.check)?;
    }
    Ok(ExitCode::SUCCESS)
}
