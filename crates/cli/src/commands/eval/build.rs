//! `eval build`: asks the configured model for one question per note.

use std::path::PathBuf;

use anamnesis_app::{
    Error,
    context::Context,
    evaluation::build::{self, AddedQuestions, Selection},
    evaluation_set::{Case, Set},
    model,
};
use anamnesis_distill::{model::Model, prompts::Prompt};
use anamnesis_note::note::{Note, NoteType};
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Ui};

/// Generate questions about your notes (uses a model)
///
/// The questions measure recall. The configured model (`anamnesis config set reflection.provider`)
/// writes one question per note, in words other than the note's. Notes are sent without secrets;
/// machine-local and private notes are not sent. If one answer is invalid, the run ends and adds
/// nothing. A question counts only after you approve it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The maximum number of questions
    #[arg(long, default_value_t = 30)]
    n: usize,
    /// Only notes of these types
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', default_values_t = [NoteType::Semantic, NoteType::Procedural], value_parser = str::parse::<NoteType>)]
    types: Vec<NoteType>,
    /// Only questions about this project
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// The file to which questions are added [default: eval/eval.jsonl in the store]
    #[arg(long, value_name = "PATH")]
    eval_set: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let model = model::required(context)?;
    let path = super::path(context, args.eval_set.as_ref());
    let selection = Selection {
        projects: &context.keys(args.project.as_deref())?,
        types: &args.types,
        most: args.n,
    };
    let notes = build::notes_to_ask_about(context, &path, &selection)?;
    let prompts: Vec<Prompt> = notes.iter().map(build::prompt).collect();
    let questions = ui::count(notes.len(), "question");
    let cost = ui::cost(prompts.iter().map(Prompt::tokens).sum(), &model);
    ui.note(&format!("{questions}, {cost}"));
    let cases = ask(&model, &notes, &prompts)?;
    let added = Set::append(context, &path, cases)?.len();
    if args.json {
        return ui.json(AddedQuestions {
            added,
            unreviewed: added,
            eval_set: &path,
        });
    }
    let file = one_line(&context.shown(&path));
    ui.answer(&if added == 0 {
        format!("nothing to add to {file}\n")
    } else {
        format!(
            "added {} to {file}\n\
             They are measured once you approve them: set \"approved\": true where the question is a\n\
             good one, and delete the lines where it is not.\n\
             → anamnesis eval run --include-unreviewed\n",
            ui::count(added, "question")
        )
    })
}

/// Asks for all questions. One invalid answer discards all of them.
fn ask(model: &Model, notes: &[Note], prompts: &[Prompt]) -> Result<Vec<Case>, Error> {
    let mut cases = Vec::with_capacity(notes.len());
    for (note, prompt) in notes.iter().zip(prompts) {
        let place = format!("question {} of {} …", cases.len() + 1, notes.len());
        let _progress = ui::Progress::new(&place);
        cases.push(build::ask(model, note, prompt)?);
    }
    Ok(cases)
}
