//! Imports Claude Code's own memory into notes, in the deferred process and in `import`. Sessions
//! that already have that memory do not get the copies injected.

use std::path::Path;

use anamnesis_note::id::NoteId;
use anamnesis_store::{
    claude_memory::{self, Imported, Request},
    fs::file::Stamp,
    journal::Journal,
};

use crate::{Error, context::Context};

/// Imports Claude Code's memory, unless that is switched off. Errors are only logged.
///
/// Runs before any other work on notes. The caller updates the index.
pub fn follow(context: &Context, journal: &Journal) {
    let is_off = context.environment.is_native_off
        || !context.config.import_native
        || context.config.is_unclear;
    let Some(claude_folder) = context
        .environment
        .claude_folder
        .as_ref()
        .filter(|_| !is_off)
    else {
        return;
    };
    match import(context, journal, claude_folder) {
        Ok(imported) => {
            if let Some(problem) = imported.problems.first() {
                let more = match imported.problems.len() - 1 {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                };
                context.log(&format!(
                    "import: {}: {}{more}",
                    problem.path, problem.reason
                ));
            }
        }
        Err(failure) => context.log(&format!("import: {}", failure.text())),
    }
}

/// Imports the memory in one of the client's folders.
pub fn import(
    context: &Context,
    journal: &Journal,
    claude_folder: &Path,
) -> Result<Imported, Error> {
    let request = Request {
        claude_folder,
        machine_id: &context.machine_id(),
        user_home: context.environment.user_home.as_deref(),
        exclusions: &context.exclusions(),
        paused: &context.config.paused,
        now: context.environment.now,
    };
    Ok(claude_memory::import(&context.notes, journal, &request)?)
}

/// Returns the imported notes of a project, which sessions on this machine have from the memory
/// itself.
pub fn copies(journal: Option<&Journal>, project: &str) -> Vec<(NoteId, Stamp)> {
    journal
        .and_then(|journal| journal.native_copies(project).ok())
        .unwrap_or_default()
}
