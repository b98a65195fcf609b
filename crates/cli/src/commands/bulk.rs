//! `--apply` and `--no-sync` of the commands that change many notes, and what they print.

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

/// Sends what was done to the other machines, unless that is not wanted, and says so as the Python
/// version does; then how it is undone.
pub(crate) fn send(context: &Context, verb: &str, done: &Done, no_sync: bool, ui: &Ui) {
    if no_sync {
        ui.print(&format!("{verb}: committed locally; reindexed (no sync)\n"));
    } else {
        let journal = context.journal();
        match sync::run(context, journal.as_ref(), Answer::None, SYNC_PATIENCE) {
            Ok(synced) => ui.print(&format!("{verb}: synced ({})\n", sync_outcome(&synced))),
            // It is done here, whatever the network says.
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

/// As [`send`], for who has printed all there is to print.
pub(crate) fn sync_silently(context: &Context, ui: &Ui) {
    let journal = context.journal();
    if let Err(failure) = sync::run(context, journal.as_ref(), Answer::None, SYNC_PATIENCE) {
        ui.note(&failure.text());
    }
}

/// Whether what is shown is to be done.
#[derive(Debug, clap::Args)]
pub(crate) struct Apply {
    /// Do it; without this it is only shown
    #[arg(long)]
    apply: bool,
    /// Do not send the notes to other machines
    #[arg(long)]
    no_sync: bool,
}

impl Apply {
    /// Tells whether it was asked for.
    pub(crate) fn is_meant(&self) -> bool {
        self.apply
    }

    /// Refuses it to an agent.
    pub(crate) fn check(&self, context: &Context) -> Result<(), Failure> {
        check_person(context, self.apply)
    }

    /// Says how many of these there are, and does it if that was asked for.
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
