//! `eval mine`: makes questions with known answers from this store's notes and prompts.

use std::{collections::BTreeMap, process::ExitCode};

use anamnesis_app::{context::Context, evaluation::mine::mine, evaluation_set::Set};
use anamnesis_text::clean::one_line;
use serde_json::json;

use super::NewQuestions;
use crate::ui::{self, Outcome, Ui};

/// Make questions from your notes, to measure recall
///
/// Uses no model. The title of a note becomes a question that the rest of the note must answer. A
/// prompt becomes a question if its turn opened or named a note that was not injected. The same
/// notes and prompts make the same questions; questions that the file already has are not added
/// again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    questions: NewQuestions,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let args = &args.questions;
    let projects = args.projects(context);
    let cases = mine(context, &args.selection(&projects))?;
    let path = super::path(context, args.eval_set.as_ref());
    let added = Set::append(context, &path, cases)?;
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &added {
        *kinds.entry(case.kind()).or_default() += 1;
    }
    let waiting = added.iter().filter(|case| !case.approved).count();
    if args.json {
        ui.json(&json!({ "added": added.len(), "by_source": kinds, "unreviewed": waiting, "eval_set": path }));
        return Ok(ExitCode::SUCCESS);
    }
    let file = one_line(&context.shown(&path));
    if added.is_empty() {
        ui.print(&format!("nothing to add to {file}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let of = |kind: &str, what| ui::count(kinds.get(kind).copied().unwrap_or(0), what);
    let mut text = format!(
        "added {} to {file}: {}, {}\n",
        ui::count(added.len(), "question"),
        of("title", "title"),
        of("prompt", "prompt"),
    );
    if waiting > 0 {
        text.push_str(
            "The prompts are measured once you approve them: set \"approved\": true where the\n\
             notes are right, and delete the lines where they are not.\n",
        );
    }
    text.push_str("→ anamnesis eval run   |   anamnesis eval gate\n");
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}
