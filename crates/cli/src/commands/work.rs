//! `work`: the deferred process. One a store, bounded in time, gone when there is nothing to do.

use std::{process::ExitCode, time::Duration};

use anamnesis_store::{
    index::Index,
    lock::{self, Subject},
};

use super::Outcome;
use crate::{context::Context, detach, environment::Environment, failure::Failure};

/// How long it waits for others.
const PATIENCE: Duration = Duration::from_secs(30);

/// The age at which a temporary file belongs to no living process.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// Do what hooks left to be done
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Start it in the background and return
    #[arg(long)]
    detach: bool,
    /// Look for damage in the index, too: a hook met some
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args, environment: Environment) -> Outcome {
    if args.detach {
        detach::start_detached(args.check)
            .map_err(|error| Failure::failed(format!("cannot start in the background: {error}")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let context = Context::of(environment, PATIENCE)?;
    // A hook made the store. One that is gone since was thrown away, and stays so: nothing is made
    // before the lock is held.
    if !context.home.derived().is_dir() {
        return Ok(ExitCode::SUCCESS);
    }
    let held = lock::acquire(&context.home, Subject::Work, Duration::ZERO).map_err(|error| {
        Failure::failed(format!(
            "cannot lock {}: {error}",
            context.home.derived().display()
        ))
    })?;
    let Some(_held) = held else {
        // Another one is at it, and looks again before it ends.
        return Ok(ExitCode::SUCCESS);
    };
    // First: a file that goes is a change of its folder, which the index would be behind of again.
    context.notes.sweep(LEFTOVER_AGE);
    if let Err(failure) = refresh(&context, args.check) {
        context.log(&format!("work: {}", failure.text()));
        return Err(failure);
    }
    if let Some(journal) = context.journal() {
        journal.checkpoint()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Brings the index in step with the notes, or builds it when it cannot be used.
fn refresh(context: &Context, check: bool) -> Result<(), Failure> {
    let mut index = Index::in_step(&context.home, &context.notes, PATIENCE)?;
    if check {
        index = index.checked(&context.home, &context.notes, PATIENCE)?;
    }
    index.sweep(&context.home)?;
    index.checkpoint()?;
    Ok(())
}
