//! `reindex`: the index, built anew.

use std::{process::ExitCode, time::Duration};

use anamnesis_app::context::Context;
use anamnesis_store::index::Index;

use crate::ui::{self, Outcome, Ui};

/// Build the index anew from the notes
///
/// The old one answers until the new one is there. Notes are only read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let mut index = Index::rebuild(&context.home, &context.notes, Duration::from_secs(60))?;
    // Notes that were written while it was built.
    let refreshed = index.refresh(&context.notes)?;
    let problems = index.problems()?;
    let mut text = format!("reindex: indexed {} note(s)\n", refreshed.total);
    if !problems.is_empty() {
        text.push_str(&format!(
            "{} not taken as notes\n→ anamnesis doctor\n",
            ui::count(problems.len(), "file")
        ));
    }
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}
