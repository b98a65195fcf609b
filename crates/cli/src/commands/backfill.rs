//! `backfill`: notes of the sessions from before the install.

use super::Outcome;
use crate::{context::Context, failure::Failure, ui::Ui};

/// Remember the sessions from before the install
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, _: &Context, _: &Ui) -> Outcome {
    Err(Failure::failed("not there yet"))
}
