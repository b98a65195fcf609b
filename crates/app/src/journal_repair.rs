//! Repairs a damaged `journal.db` and reports what was saved.

use std::time::Duration;

use anamnesis_store::journal::{self, Error, Repair};
use anamnesis_text::clean::one_line;

use crate::{context::Context, format::count};

/// Checks the journal and repairs it if it is damaged.
pub fn repair(context: &Context, timeout: Duration) -> Result<Option<Repair>, Error> {
    let repair = journal::repair(&context.home, timeout, context.environment.now)?;
    if let Some(repair) = &repair {
        let reason = one_line(&repair.reason);
        context.log(&format!("{} ({reason})", sentence(context, repair)));
    }
    Ok(repair)
}

/// Formats the result of a repair as a sentence.
pub fn sentence(context: &Context, repair: &Repair) -> String {
    let kept = context.home.quarantine().join(&repair.kept);
    format!(
        "journal.db was damaged: {}; it is kept as {}",
        rows_saved(repair),
        context.home.relative(&kept)
    )
}

/// Formats how many rows a repair saved.
pub fn rows_saved(repair: &Repair) -> String {
    let rows = count(repair.rows, "row");
    match repair.incomplete.is_empty() {
        true => format!("all {rows} saved"),
        false if repair.rows == 0 => "no row could be read".to_owned(),
        false => format!("{rows} saved, some lost"),
    }
}
