//! `internal maintain`: runs the deferred process in the foreground, to its end.

use std::{process::ExitCode, time::Duration};

use anamnesis_app::{Error, context::Context, deferred, journal_repair};
use anamnesis_store::journal::Journal;

use crate::ui::{self, Outcome, Ui};

/// Timeout for a deferred process that is running.
const TIMEOUT: Duration = Duration::from_secs(130);

pub(crate) fn run(context: &Context, ui: &Ui) -> Outcome {
    let Some(_held) = deferred::hold(context, TIMEOUT)? else {
        return Err(
            Error::failed("the deferred process does not end".to_owned())
                .hint("try again in a minute"),
        );
    };
    let done = deferred::pass(context, true, true)?;
    if let Some(repair) = &done.repair {
        ui.print(&format!("{}\n", journal_repair::sentence(context, repair)));
    }
    let journal = Journal::open(&context.home, Duration::from_secs(10))?;
    journal.checkpoint()?;
    let mut lines = vec![
        (done.drained, "record", "added from the spool"),
        (done.lost, "session", "marked as lost"),
        (done.notes, "session note", "written"),
        (done.pruned.rows, "old record", "deleted"),
        (done.trash, "forgotten note", "deleted from the trash"),
    ];
    lines.retain(|(count, ..)| *count > 0);
    for (count, what, done) in &lines {
        ui.print(&format!("{} {done}\n", ui::count(*count, what)));
    }
    if done.pruned.bytes > 0 {
        ui.print(&format!(
            "{} KiB freed\n",
            ui::number(usize::try_from(done.pruned.bytes / 1024).unwrap_or(0))
        ));
    }
    if done.pruned.is_full {
        ui.note("the records are over their ceiling, and all of them are of today: raise retention.ceiling_mib in config.json\n");
    }
    if lines.is_empty() && done.pruned.bytes == 0 && done.repair.is_none() {
        ui.print("nothing to do\n");
    }
    Ok(ExitCode::SUCCESS)
}
