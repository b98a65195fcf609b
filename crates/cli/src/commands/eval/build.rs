//! `eval build`: asks the configured model for one question per note.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anamnesis_app::{
    Error,
    context::{Context, PATIENCE},
    evaluation::mine::notes_in_use,
    evaluation_set::{Case, Set},
};
use anamnesis_distill::{
    model::Model,
    prompts::{self, Prompt},
    reflection, reply,
};
use anamnesis_note::{
    draft::{safe, safe_line},
    note::{Note, NoteType, Scope},
};
use anamnesis_recall::mining;
use anamnesis_store::journal::Journal;
use anamnesis_text::{clean::one_line, private_tokens::PrivateTokens};
use serde_json::json;

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
    /// Only notes of this project
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
    let model = super::paid_model(context)?;
    let path = super::path(context, args.eval_set.as_ref());
    let notes = asked_about(args, context, &path)?;
    let prompts: Vec<Prompt> = notes.iter().map(prompt).collect();
    let cost = prompts.iter().map(Prompt::tokens);
    ui.note(&format!(
        "{}, about {} tokens to {}\n",
        ui::count(notes.len(), "question"),
        ui::number(cost.sum()),
        one_line(&model.receiver())
    ));
    let cases = ask(&model, &notes, &prompts)?;
    let added = Set::append(context, &path, cases)?.len();
    if args.json {
        ui.json(&json!({ "added": added, "unreviewed": added, "eval_set": path }));
        return Ok(ExitCode::SUCCESS);
    }
    let file = one_line(&context.shown(&path));
    ui.print(&if added == 0 {
        format!("nothing to add to {file}\n")
    } else {
        format!(
            "added {} to {file}\n\
             They are measured once you approve them: set \"approved\": true where the question is a\n\
             good one, and delete the lines where it is not.\n\
             → anamnesis eval run --include-unreviewed\n",
            ui::count(added, "question")
        )
    });
    Ok(ExitCode::SUCCESS)
}

/// The notes that may be sent and have no question by a model yet, a share from each project.
fn asked_about(args: &Args, context: &Context, path: &Path) -> Result<Vec<Note>, Error> {
    let projects = match &args.project {
        Some(key) => context.project(Some(key)).all_keys(),
        None => Vec::new(),
    };
    let known: BTreeSet<String> = Set::read(path)?
        .iter()
        .flat_map(|set| &set.cases)
        .filter(|(_, case)| case.is_by_model())
        .flat_map(|(_, case)| case.relevant_ids.clone())
        .collect();
    // Without the journal, private sessions cannot be recognised.
    let journal = Journal::open(&context.home, PATIENCE)?;
    let mut notes = Vec::new();
    for note in notes_in_use(context, &context.index()?, &projects)? {
        let is_of_private_session = match &note.session {
            Some(session) => journal.has_private_part(session)?,
            None => false,
        };
        if note.scope == Scope::Portable
            && !is_of_private_session
            && !reflection::is_private(&note)
            && !known.contains(&note.id.to_string())
        {
            notes.push(note);
        }
    }
    let sampled = mining::sample(&notes, &args.types, args.n);
    Ok(sampled.into_iter().cloned().collect())
}

fn prompt(note: &Note) -> Prompt {
    prompts::query(&format!(
        "# {}\n{}",
        safe_line(&note.title),
        safe(&note.body)
    ))
}

/// Asks for all questions. One invalid answer discards all of them.
fn ask(model: &Model, notes: &[Note], prompts: &[Prompt]) -> Result<Vec<Case>, Error> {
    let label = one_line(&model.label());
    let echoes = PrivateTokens::default();
    let mut cases = Vec::with_capacity(notes.len());
    for (note, prompt) in notes.iter().zip(prompts) {
        let answer = {
            let place = format!("question {} of {} …", cases.len() + 1, notes.len());
            let _progress = ui::Progress::new(&place);
            model.ask(prompt.system, &prompt.user)
        };
        let failed = |reason: String| {
            let reason = one_line(&reason);
            Error::failed(format!("nothing was added: note {}: {reason}", note.id))
                .hint("anamnesis config test")
        };
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let query = reply::query(&answer).map_err(|violation| failed(violation.to_string()))?;
        cases.push(Case::by_model(&query, note, &label, &echoes));
    }
    Ok(cases)
}
