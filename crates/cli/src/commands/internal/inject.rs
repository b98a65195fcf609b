//! `internal inject`: prints the block of a session start.

use std::{fs::File, io::BufReader, process::ExitCode, time::Duration};

use anamnesis_app::context::Context;
use anamnesis_recall::render::{self, Chosen};
use anamnesis_recall::session_start::{self, Request};
use anamnesis_session::transcript::{self, TranscriptPart};
use serde_json::Value;

use super::session_folder;
use crate::{
    input::hook_input,
    ui::{Outcome, Ui},
};

/// Print the working set of this project
///
/// The working set is injected when a session starts. Takes the JSON of a SessionStart hook on
/// stdin, if there is one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project [default: that of the hook's folder, else of this folder]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// The maximum number of project notes; negative means none
    #[arg(long, default_value_t = 8, allow_negative_numbers = true)]
    k: i64,
    /// Print the chosen notes as JSON, with the reason for each
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let input = hook_input();
    let begun = input.transcript_path.as_deref().and_then(begun_in);
    let folder = session_folder(begun, input.cwd);
    let project = match &args.project {
        Some(key) => context.project(Some(key)),
        None => context.project_of(&folder),
    };
    let journal = context.journal();
    // The session start blocks on this command, so it hardly waits for another writer of the
    // index.
    let index = context.index_within(Duration::from_millis(20))?;
    let request = Request {
        project: &project.key,
        also: &project.also,
        k: usize::try_from(args.k).unwrap_or(0),
        session: None,
        resumed: None,
        folder: Some(&folder),
        now: context.environment.now,
        had: &[],
        journal: journal.as_ref(),
    };
    let set = session_start::working_set(&index, &context.notes, &request)?;
    if args.json {
        let notes = set.with_texts().map(|Chosen { note, reason, .. }| {
            Value::from_iter([
                ("id", note.id.to_string().as_str()),
                ("title", &note.title),
                ("type", note.note_type.as_str()),
                ("project", &note.project),
                ("reason", reason.as_str()),
            ])
        });
        let key = Value::from(project.key);
        ui.json(Value::from_iter([
            ("project", key),
            ("notes", notes.collect()),
        ]))?;
    } else {
        let block = render::start_block(&set.chosen, &set.said, &set.failing, request.now, |id| {
            Context::short(&index, id)
        });
        if !block.text.is_empty() {
            ui.print(&format!("{}\n", block.text));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder in which a transcript began.
fn begun_in(transcript: &str) -> Option<String> {
    let file = File::open(transcript).ok()?;
    // Only the folder is needed, so the tool calls are not read.
    let part = TranscriptPart::default();
    transcript::read_part(BufReader::new(file), part).0.cwd
}
