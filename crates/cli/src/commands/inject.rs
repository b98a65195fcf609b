//! `inject`: what a session starts with, as the Python version prints it.

use std::{fs::File, io::BufReader, path::PathBuf, process::ExitCode};

use anamnesis_app::context::Context;
use anamnesis_recall::render;
use anamnesis_recall::session_start::{self, Request};
use anamnesis_session::transcript;
use serde_json::json;

use crate::{
    input::hook_input,
    ui::{Outcome, Ui},
};

/// Print what a session of this project starts with
///
/// Takes the JSON of a SessionStart hook on stdin, if there is one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project [default: the one of the hook's folder, else of this one]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// How many notes of the project; less than none is none
    #[arg(long, default_value_t = 8, allow_negative_numbers = true)]
    k: i64,
    /// Print the chosen notes as JSON, with the reason of each
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let input = hook_input();
    let project = match &args.project {
        Some(key) => context.project(Some(key)),
        None => context.project_of(&folder(input.transcript_path.as_deref(), input.cwd)),
    };
    // A session waits for this, so another process that writes the index is not waited for.
    let index = context.index_without_waiting()?;
    let request = Request {
        project: &project.key,
        also: &project.also,
        k: usize::try_from(args.k).unwrap_or(0),
        session: None,
        now: context.environment.now,
        had: &[],
    };
    let chosen = session_start::select(&index, &context.notes, &request)?;
    if args.json {
        let notes: Vec<serde_json::Value> = chosen
            .iter()
            .map(|chosen| {
                json!({
                    "id": chosen.note.id.to_string(),
                    "title": chosen.note.title,
                    "type": chosen.note.note_type.as_str(),
                    "project": chosen.note.project,
                    "reason": chosen.reason.as_str(),
                })
            })
            .collect();
        ui.json(&json!({ "project": project.key, "notes": notes }));
    } else {
        ui.print(&render::inject_block(&chosen, |id| {
            Context::short(&index, id)
        }));
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of a session: where its transcript began, else where the hook stands, else here.
pub(super) fn folder(transcript: Option<&str>, cwd: Option<String>) -> PathBuf {
    let begun = transcript
        .and_then(|path| File::open(path).ok())
        .and_then(|file| transcript::read(BufReader::new(file)).0.cwd);
    let absolute =
        |folder: String| Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
    begun
        .and_then(absolute)
        .or_else(|| cwd.and_then(absolute))
        .or_else(Context::current_folder)
        .unwrap_or_default()
}
