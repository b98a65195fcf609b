//! Tells who sent a prompt: the person who typed it now, or a program.
//!
//! Claude can schedule a prompt (`CronCreate`), and so can a file of the project. The client submits it
//! like a typed one, so its text is compared with all prompts that may have been scheduled.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anamnesis_app::{capture, context::Context};
use anamnesis_session::{
    event::RecordedEvent,
    hook::{HookEvent, Payload},
    transcript::scheduled::{self, TASKS_FILE},
};
use anamnesis_store::{fs::file, journal::Journal, spool::Waiting};

/// How many bytes at the end of a transcript are read. The records of a task that is due are at the
/// end, unless other tasks were due at the same time.
const TRANSCRIPT_END: u64 = 256 << 10;

/// The maximum size of a project's file of tasks, in bytes.
const MAX_TASKS: u64 = 4 << 20;

/// Reads the end of the transcript of a prompt's session.
pub(super) fn transcript_end(payload: &Payload, context: &Context) -> Option<Vec<u8>> {
    let is_prompt = matches!(payload.event, HookEvent::UserPromptSubmit { .. });
    let path = payload.transcript_path.as_ref().filter(|_| is_prompt)?;
    capture::transcript_end(context, Path::new(path), TRANSCRIPT_END)
}

/// Marks the payload's prompt unless the person typed it now.
///
/// `folders` and `end` are the folders and the transcript's end of the session. `journal` and
/// `waiting` have its tool calls.
pub(super) fn mark(
    payload: &mut Payload,
    folders: &[PathBuf],
    end: Option<&[u8]>,
    journal: Option<&Journal>,
    waiting: &[Waiting],
) {
    let session = &payload.session_id;
    let is_agents = payload.agent.is_some();
    let HookEvent::UserPromptSubmit { prompt } = &mut payload.event else {
        return;
    };
    let mut scheduled = Vec::new();
    let mut is_unknown = false;
    for folder in folders {
        match tasks_of(folder) {
            Some(tasks) => scheduled.extend(tasks),
            None => is_unknown = true,
        }
    }
    scheduled.extend(end.map(scheduled::fired).unwrap_or_default());
    if let Some(Ok(prompts)) = journal.map(|journal| journal.scheduled_prompts(session)) {
        scheduled.extend(prompts);
    }
    let records = waiting.iter().filter_map(|waiting| waiting.record.as_ref());
    for record in records.filter(|record| record.session == *session) {
        if let RecordedEvent::Used(calls) = &record.what {
            let prompts = calls.iter().filter_map(scheduled::prompt_of);
            scheduled.extend(prompts.map(str::to_owned));
        }
    }
    if is_agents || is_unknown || scheduled.iter().any(|other| prompt.repeats(other)) {
        prompt.mark_untyped();
    }
}

/// Marks the payload's prompt if it comes from `claude -p` or the SDK.
pub(super) fn mark_script(event: &mut HookEvent, context: &Context) {
    if let HookEvent::UserPromptSubmit { prompt } = event
        && context.environment.is_scripted
    {
        prompt.mark_script();
    }
}

/// Returns the prompts that the folder's file schedules; `None` if it is too large.
fn tasks_of(folder: &Path) -> Option<Vec<String>> {
    let read = || -> io::Result<Vec<u8>> {
        // The client follows a link, too.
        let path = dunce::canonicalize(folder.join(TASKS_FILE))?;
        let mut bytes = Vec::new();
        let (file, _) = file::open_regular(&path)?;
        file.take(MAX_TASKS + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    (bytes.len() as u64 <= MAX_TASKS).then(|| scheduled::tasks(&bytes))
}
