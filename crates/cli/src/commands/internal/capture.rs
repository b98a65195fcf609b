//! `internal capture`: writes the note of a session, for a person or for the Python version's hooks.

use std::{
    io::BufReader,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anamnesis_app::{Error, capture, context::Context, summary, sync};
use anamnesis_note::{draft::safe_line, id::NoteId};
use anamnesis_session::{
    session_note::SessionDigest,
    transcript::{self, Transcript},
};
use anamnesis_store::{
    fs::file,
    journal::Journal,
    session_note::{Outcome as Captured, Request},
};
use anamnesis_sync::Answer;
use anamnesis_text::clean::one_line;

use crate::{
    commands::sync::outcome,
    input::hook_input,
    ui::{Outcome, Ui},
};

/// Timeout for another sync that is running.
const SYNC_PATIENCE: Duration = Duration::from_secs(10);

/// Write the note of a session from its transcript
///
/// Takes the JSON of a SessionEnd or PreCompact hook on stdin, if there is one. One session has one
/// note: capturing it again updates the note and never touches what you changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The transcript [default: the one that the hook names]
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// The project [default: the one in which the session began]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// The event that triggered the capture; kept as a tag
    #[arg(long, default_value = "session-end", value_name = "TEXT")]
    source: String,
    /// Do not sync afterwards
    #[arg(long)]
    no_sync: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let input = hook_input();
    let source = safe_line(&args.source);
    if source.is_empty() {
        return Err(Error::usage("--source is empty"));
    }
    let path = args
        .transcript
        .clone()
        .or_else(|| input.transcript_path.map(PathBuf::from));
    let transcript = match &path {
        Some(path) => read(path, context)?,
        None => Transcript::default(),
    };
    let project = args.project.clone().unwrap_or_else(|| {
        let folder = super::session_folder(transcript.cwd.clone(), input.cwd);
        context.project_of(&folder).key
    });
    let journal = context.journal();
    let machine_id = context.machine_id();
    let session = transcript
        .session_id
        .as_deref()
        .or(input.session_id.as_deref());
    if let (Some(journal), Some(session)) = (&journal, session)
        && journal.has_forgotten_prompt(session)?
    {
        ui.print("capture: skipped, a prompt of this session was forgotten\n");
        return Ok(ExitCode::SUCCESS);
    }
    let request = Request {
        session,
        project: &project,
        machine_id: &machine_id,
        source: Some(&source),
        change: None,
        now: context.environment.now,
    };
    let captured = capture::write(
        context,
        journal.as_ref(),
        &SessionDigest::from(&transcript),
        &request,
    )?;
    // The note is written. A model may write a better summary later.
    if let (Captured::Written(_), Some(journal), Some(session)) = (&captured, &journal, session)
        && let Err(error) = summary::tell_now(context, journal, session, &transcript)
    {
        ui.note(&format!(
            "capture: the session stays as rules tell it: {}\n",
            one_line(error.message())
        ));
    }
    let note = match &captured {
        Captured::Written(stored) => Some(stored.path.id),
        Captured::Unchanged(path) => Some(path.id),
        Captured::Trivial | Captured::Forgotten(_) => None,
    };
    let what = match (note, captured) {
        (Some(id), _) => format!("wrote episodic note {id}"),
        (None, Captured::Forgotten(id)) => format!("skipped, the note {id} was forgotten"),
        (None, _) => "skipped trivial session".to_owned(),
    };
    ui.print(&format!(
        "capture: {what} (project={project}, source={source})\n"
    ));
    if let Some(id) = note {
        send(id, args.no_sync, context, journal.as_ref(), ui);
    }
    if transcript.skipped_lines > 0 {
        ui.note(&format!(
            "capture: {} of {} lines could not be read\n",
            transcript.skipped_lines, transcript.lines
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Commits the note, and syncs unless `no_sync` is set. The note is already written, so errors are
/// only printed.
fn send(id: NoteId, no_sync: bool, context: &Context, journal: Option<&Journal>, ui: &Ui) {
    let batch = sync::commit(context, "capture", [id]);
    if no_sync {
        ui.print(match batch {
            Some(_) => "capture: committed locally (no sync)\n",
            None => "capture: nothing to commit (no sync)\n",
        });
        return;
    }
    match sync::run(context, journal, Answer::None, SYNC_PATIENCE) {
        Ok(synced) => ui.print(&format!("capture: synced ({})\n", outcome(&synced))),
        Err(failure) => ui.note(&failure.text()),
    }
}

/// Reads a transcript. A person may name any regular file.
fn read(path: &Path, context: &Context) -> Result<Transcript, Error> {
    let open = || {
        // A person may name a link, but its target must be a regular file.
        let real = path.canonicalize()?;
        file::open_regular(&real)
    };
    let (file, _) = open().map_err(|error| {
        Error::failed(format!(
            "cannot read the transcript {}: {error}",
            path.display()
        ))
        .hint("transcripts are below ~/.claude/projects")
    })?;
    let (transcript, error) = transcript::read(BufReader::with_capacity(256 * 1024, file));
    if let Some(error) = error {
        context.log(&format!(
            "transcript: {error}; what came before it was taken"
        ));
    }
    Ok(transcript)
}
