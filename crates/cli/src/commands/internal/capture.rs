//! `internal capture`: writes the note of a session, for a person or for the Python version's hooks.

use std::{
    io::{self, BufReader},
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
use anamnesis_sync::HeldDecision;
use anamnesis_text::clean::one_line;

use crate::{
    commands::sync::outcome,
    input::hook_input,
    ui::{Outcome, Ui},
};

/// Timeout for another sync that is running.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// Write the note of a session from its transcript
///
/// Takes the JSON of a SessionEnd or PreCompact hook on stdin, if there is one. One session has one
/// note: capturing it again updates the note and never touches what you changed. Claude captures
/// sessions of its own project only; the note is marked as written by Claude.
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
        Some(path) => read(path, context, ui)?,
        None => Transcript::default(),
    };
    let by_agent = context.environment.is_agent;
    let journal = context.journal();
    let machine_id = context.machine_id();
    let session = transcript
        .session_id
        .as_deref()
        .or(input.session_id.as_deref());
    let named = args.project.as_deref();
    let project = if by_agent {
        let began_in = transcript.cwd.as_deref().map(Path::new);
        capture::project_of_agent(context, journal.as_ref(), named, (session, began_in))?
    } else if let Some(key) = named {
        key.to_owned()
    } else {
        let folder = super::session_folder(transcript.cwd.clone(), input.cwd);
        context.project_of(&folder).key
    };
    if let (Some(journal), Some(session)) = (&journal, session)
        && journal.has_forgotten_prompt(session)?
    {
        return ui.answer("capture: skipped, a prompt of this session was forgotten\n");
    }
    let request = Request {
        session,
        project: &project,
        machine_id: &machine_id,
        source: Some(&source),
        change: None,
        host: None,
        now: context.environment.now,
    };
    let digest = SessionDigest::from(&transcript);
    let captured = if by_agent {
        capture::write_for_agent(context, journal.as_ref(), &digest, &request)?
    } else {
        capture::write(context, journal.as_ref(), &digest, &request)?
    };
    let is_skipped = matches!(captured, Captured::Written(_))
        && is_found_useless(context, journal.as_ref(), session, &transcript, ui);
    let (note, what) = match captured {
        Captured::Written(stored) if !is_skipped => {
            let id = stored.path.id;
            (Some(id), format!("wrote episodic note {id}"))
        }
        Captured::Unchanged(path) if by_agent => {
            (None, format!("left the note {} as it is", path.id))
        }
        Captured::Unchanged(path) => (Some(path.id), format!("wrote episodic note {}", path.id)),
        Captured::Forgotten(id) => (None, format!("skipped, the note {id} was forgotten")),
        Captured::Written(_) | Captured::Trivial => (None, "skipped trivial session".to_owned()),
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

/// Has the configured model summarise the session. Returns whether the model found nothing useful, which
/// removes the note.
fn is_found_useless(
    context: &Context,
    journal: Option<&Journal>,
    session: Option<&str>,
    transcript: &Transcript,
    ui: &Ui,
) -> bool {
    let (Some(journal), Some(session)) = (journal, session) else {
        return false;
    };
    let told = summary::tell_now(context, journal, session, transcript);
    told.unwrap_or_else(|error| {
        let reason = one_line(error.message());
        ui.note(&format!(
            "capture: the session stays as rules tell it: {reason}\n"
        ));
        false
    })
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
    match sync::run(context, journal, HeldDecision::None, SYNC_TIMEOUT) {
        Ok(synced) => ui.print(&format!("capture: synced ({})\n", outcome(&synced))),
        Err(failure) => ui.note(&failure.text()),
    }
}

/// Reads a transcript. A person may name any regular file, an agent what the client wrote.
fn read(path: &Path, context: &Context, ui: &Ui) -> Result<Transcript, Error> {
    if context.environment.is_agent {
        capture::check_agents_transcript(context, path)?;
    }
    let open = || {
        // A person may name a link, but its target must be a regular file.
        let real = dunce::canonicalize(path)?;
        file::open_regular(&real)
    };
    let opened = match open() {
        // The Python version takes a transcript that does not exist for an empty session.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            ui.note(&format!("capture: there is no {}\n", path.display()));
            return Ok(Transcript::default());
        }
        opened => opened,
    };
    let (file, _) = opened.map_err(|error| {
        let failure = format!("cannot read the transcript {}", path.display());
        Error::prefixed(failure)(error).hint("transcripts are below ~/.claude/projects")
    })?;
    let (transcript, error) = transcript::read(BufReader::with_capacity(256 * 1024, file));
    if let Some(error) = error {
        context.log(&format!(
            "transcript: {error}; what came before it was taken"
        ));
    }
    Ok(transcript)
}
