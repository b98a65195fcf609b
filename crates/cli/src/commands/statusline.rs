//! `internal statusline`: one line for the client's status line.

use std::{path::PathBuf, time::Duration};

use anamnesis_app::{context::Context, environment::Environment, pause};
use anamnesis_store::index::{Filter, Index};

use crate::{
    input::hook_input,
    ui::{self, Outcome, Ui},
};

pub(crate) fn run(environment: Environment, ui: &Ui) -> Outcome {
    let context = Context::new(environment, Duration::ZERO)?;
    let input = hook_input();
    let folder = context.environment.project_folder.clone();
    let folder = folder.or(input.cwd.map(PathBuf::from));
    let folder = folder.or_else(Context::current_folder).unwrap_or_default();
    let off = pause::why(&context, &[&folder], || context.project_of(&folder));
    if let Some(off) = off {
        return ui.answer(&format!("anamnesis: off ({})\n", off.reason()));
    }
    // The index is used as it is: this runs at every turn.
    let Ok(index) = Index::open(&context.home) else {
        return ui.answer("anamnesis: no notes yet\n");
    };
    let filter = Filter {
        projects: context.project_of(&folder).all_keys(),
        ..Filter::default()
    };
    let mut parts = vec![ui::count(index.count(&filter)?, "note")];
    let journal = context.records()?;
    let given = journal.zip(input.session_id);
    if let Some((journal, session)) = given {
        let given = journal.notes_shown_in(&session)?.len();
        parts.push(format!("{} injected", ui::number(given)));
    }
    let proposed = index.counts()?.by_state.get("proposed").copied();
    match proposed.unwrap_or(0) + index.count_conflicts()? {
        0 => {}
        pending => parts.push(format!("{} to review", ui::number(pending))),
    }
    ui.answer(&format!("anamnesis: {}\n", parts.join(" · ")))
}
