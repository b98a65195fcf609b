//! `--apply` and `--no-sync` for commands that change many notes, and their output.

use std::process::ExitCode;

use anamnesis_app::{
    batch::{Batch, Done, check_person},
    context::Context,
    failure::Failure,
    sync,
};
use anamnesis_sync::Answer;

use super::{sync::PATIENCE as SYNC_PATIENCE, sync::outcome as sync_outcome};
use crate::ui::{Outcome, Ui};

/// Syncs unless `--no-sync` is set, prints the result in the Python version's form, and prints how
/// to undo the change.
pub(crate) fn send(context: &Context, verb: &str, done: &Done, no_sync: bool, ui: &Ui) {
    if no_sync {
        ui.print(&format!("{verb}: committed locally; reindexed (no sync)\n"));
    } else {
        let journal = context.journal();
        match sync::run(context, journal.as_ref(), Answer::None, SYNC_PATIENCE) {
            Ok(synced) => ui.print(&format!("{verb}: synced ({})\n", sync_outcome(&synced))),
            // The change is saved, so a failed sync is not an error.
            Err(failure) => ui.note(&failure.text()),
        }
    }
    if let Some(batch) = done.batch {
        let batch = sync::short_batch(batch);
        ui.print(&format!("Undo: anamnesis undo {batch}\n"));
    }
    if !done.local.is_empty() {
        let local: Vec<String> = done.local.iter().map(|id| id.short()).collect();
        let local = local.join(" ");
        ui.print(&format!(
            "Undo what was proposed: anamnesis forget {local}\n"
        ));
    }
}

/// Like [`send`], for commands that have already printed everything.
pub(crate) fn sync_silently(context: &Context, ui: &Ui) {
    let journal = context.journal();
    if let Err(failure) = sync::run(context, journal.as_ref(), Answer::None, SYNC_PATIENCE) {
        ui.note(&failure.text());
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Apply {
    /// Make the changes; without this option they are only shown
    #[arg(long)]
    apply: bool,
    /// Do not sync afterwards
    #[arg(long)]
    no_sync: bool,
}

impl Apply {
    /// Tells whether `--apply` is set.
    pub(crate) fn is_meant(&self) -> bool {
        self.apply
    }

    /// Refuses the change if the caller is an agent.
    pub(crate) fn check(&self, context: &Context) -> Result<(), Failure> {
        check_person(context, self.apply)
    }

    /// Prints how many changes there are, and makes them if `--apply` is set.
    pub(crate) fn finish(
        &self,
        batch: Batch<'_>,
        (count, things, done): (usize, &str, &str),
        ui: &Ui,
    ) -> Outcome {
        let (verb, context) = (batch.verb, batch.context);
        if !self.apply {
            let hint = if count > 0 {
                " (dry-run; pass --apply)"
            } else {
                ""
            };
            ui.print(&format!("{verb}: {count} {things}{hint}\n"));
            return Ok(ExitCode::SUCCESS);
        }
        if count == 0 {
            ui.print(&format!("{verb}: 0 {things}\n"));
            return Ok(ExitCode::SUCCESS);
        }
        let did = batch.apply()?;
        ui.print(&format!("{verb}: {count} {things} {done}\n"));
        send(context, verb, &did, self.no_sync, ui);
        Ok(ExitCode::SUCCESS)
    }
}
