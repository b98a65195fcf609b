//! `sessions`: what is recorded of each session, and what was left out.

use super::Outcome;
use crate::{context::Context, failure::Failure, ui::Ui};

/// Show what is recorded of each session
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, _: &Context, _: &Ui) -> Outcome {
    Err(Failure::failed("not there yet"))
}
