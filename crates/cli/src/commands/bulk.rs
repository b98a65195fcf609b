//! `--apply` and `--no-sync` for commands that change many notes, and their output.

use std::process::ExitCode;

use anamnesis_app::{
    Error,
    bulk_change::{BulkChange, Done, check_person},
    context::Context,
    sync,
    upkeep::steps::StepPlan,
};
use anamnesis_sync::HeldDecision;

use super::sync::sync_afterwards;
use crate::ui::{self, Outcome, Ui};

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
    /// Returns whether `--apply` is set.
    pub(crate) fn is_meant(&self) -> bool {
        self.apply
    }

    /// Refuses the change if the caller is an agent.
    pub(crate) fn check(&self, context: &Context) -> Result<(), Error> {
        check_person(context, self.apply)
    }

    /// Syncs unless `--no-sync` is set, and prints the result and how to undo the change.
    pub(crate) fn send(&self, context: &Context, done: &Done, ui: &Ui) {
        if self.no_sync {
            ui.print("committed on this machine (--no-sync)\n");
        } else {
            sync_afterwards(context, context.journal().as_ref(), ui);
        }
        if let Some(batch) = done.batch {
            let batch = sync::short_change(batch);
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

    /// Like [`Apply::send`], for commands that have already printed everything.
    pub(crate) fn sync_silently(&self, context: &Context, ui: &Ui) {
        let journal = context.journal();
        if !self.no_sync
            && let Err(failure) =
                sync::run(context, journal.as_ref(), HeldDecision::None, sync::TIMEOUT)
        {
            ui.note(&failure.text());
        }
    }

    /// Prints how many changes there are, and makes them if `--apply` is set.
    pub(crate) fn finish(
        &self,
        batch: BulkChange<'_>,
        (count, thing, done): (usize, &str, &str),
        ui: &Ui,
    ) -> Outcome {
        let (verb, context) = (batch.verb, batch.context);
        if count == 0 {
            return ui.answer(&format!("{verb}: 0 {thing}s\n"));
        }
        if !self.apply {
            let things = ui::count(count, thing);
            return ui.answer(&format!(
                "{verb}: {things} would be {done}; nothing was changed\n→ again with --apply\n"
            ));
        }
        let did = batch.apply()?;
        ui.print(&format!("{verb}: {} {done}\n", ui::count(count, thing)));
        self.send(context, &did, ui);
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints what a step would change, and makes the change if `--apply` is set.
pub(crate) fn carry_out(
    plan: StepPlan<'_>,
    (thing, done): (&str, &str),
    apply: &Apply,
    ui: &Ui,
) -> Outcome {
    let verb = plan.batch.verb;
    for reason in &plan.skipped {
        ui.note(&format!("{verb}: {reason}\n"));
    }
    for line in plan.changes.iter().flat_map(|change| change.lines()) {
        ui.print(&format!("{verb}: {line}\n"));
    }
    apply.finish(plan.batch, (plan.changes.len(), thing, done), ui)
}
