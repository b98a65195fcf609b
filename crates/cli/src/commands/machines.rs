//! `machines`: lists each machine's notes and when it was last seen.

use std::process::ExitCode;

use anamnesis_app::{
    context::Context,
    format::{ago, shorten},
    machines::{self, MachineList},
};

use crate::ui::{self, ListLength, Outcome, Ui};

/// Show which machine wrote what, and when it was last seen
///
/// A machine is seen when its commits arrive. A machine without changes looks the same as one that
/// does not sync.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    length: ListLength,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let machines = machines::machines(context, &context.index()?)?;
    let mut list = machines::in_order(context, machines);
    list.truncate(args.length.limit());
    let own = context.machine_id();
    let synced = machines::in_step_at(context);
    if args.json {
        return ui.json(MachineList::new(context, &list));
    }
    let now = context.environment.now;
    let width = list
        .iter()
        .map(|(name, _)| name.chars().count().min(24))
        .max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for (name, machine) in list {
        let seen = machine
            .seen
            .map_or_else(|| "no commit yet".to_owned(), |seen| ago(seen, now));
        let this = if name == own { "  this machine" } else { "" };
        text.push_str(&format!(
            "{:<width$}  {:>12}  {seen}{this}\n",
            shorten(&name, 24),
            ui::count(machine.notes, "note"),
        ));
    }
    text.push_str(&match (synced, context.config.remote.is_some()) {
        (_, false) => "sync: none; notes stay on this machine\n".to_owned(),
        (None, true) => "sync: not yet · anamnesis sync\n".to_owned(),
        (Some(time), true) => format!("sync: this machine last synced {}\n", ago(time, now)),
    });
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}
