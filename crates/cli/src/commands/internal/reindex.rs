//! `internal reindex`: rebuilds the index.

use std::time::Duration;

use anamnesis_app::context::Context;
use anamnesis_store::index::Index;

use crate::ui::{self, Outcome, Ui};

pub(crate) fn run(context: &Context, ui: &Ui) -> Outcome {
    let progress = ui::Progress::new("reading all notes …");
    let mut index = Index::rebuild(&context.home, &context.notes, Duration::from_secs(60))?;
    // Adds notes that were written during the rebuild.
    let refreshed = index.refresh(&context.notes)?;
    let problems = index.problems()?;
    drop(progress);
    let mut text = format!("reindex: indexed {} note(s)\n", refreshed.total);
    if !problems.is_empty() {
        text.push_str(&format!(
            "{} not taken as notes\n→ anamnesis doctor\n",
            ui::count(problems.len(), "file")
        ));
    }
    ui.answer(&text)
}
