//! Imports Claude Code's own memory into notes, in the deferred process and in `import`. Sessions
//! that already have that memory do not get the copies injected.

use std::path::{Path, PathBuf};

use anamnesis_note::id::NoteId;
use anamnesis_store::{
    claude_memory::{self, Imported, Request},
    fs::file::{self, Stamp},
    journal::Journal,
};
use serde_json::Value;

use crate::{Error, context::Context};

/// The journal key for the last problem that was logged.
const PROBLEM: &str = "native_problem";

/// How many bytes of Claude Code's settings are read.
const MAX_SETTINGS: usize = 4 * 1024 * 1024;

/// The setting of Claude Code that names one folder for the memory of all projects.
const MEMORY_FOLDER: &str = "autoMemoryDirectory";

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
            let problem = imported.problems.first();
            let problem = problem.map_or_else(String::new, |problem| {
                format!(
                    "import: {}: {} ({} in all)",
                    problem.path,
                    problem.reason,
                    imported.problems.len()
                )
            });
            // Each import finds the same files, but the log needs them once.
            let known = journal.meta(PROBLEM).ok().flatten().unwrap_or_default();
            if known != problem
                && journal.set_meta(PROBLEM, &problem).is_ok()
                && !problem.is_empty()
            {
                context.log(&problem);
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
    let is_own = context.environment.claude_folder.as_deref() == Some(claude_folder);
    let memory_folder = is_own.then(|| memory_folder(context)).flatten();
    let request = Request {
        claude_folder,
        memory_folder: memory_folder.as_deref(),
        machine_id: &context.machine_id(),
        user_home: context.environment.user_home.as_deref(),
        exclusions: &context.exclusions(),
        paused: &context.config.paused,
        now: context.environment.now,
    };
    Ok(claude_memory::import(&context.notes, journal, &request)?)
}

/// Returns the folder that the person, or the policy of their machine, named for Claude Code's memory.
fn memory_folder(context: &Context) -> Option<PathBuf> {
    let policy = if cfg!(target_os = "macos") {
        "/Library/Application Support/ClaudeCode"
    } else if cfg!(windows) {
        r"C:\Program Files\ClaudeCode"
    } else {
        "/etc/claude-code"
    };
    let policy = Path::new(policy).join("managed-settings.json");
    let own = context.environment.own_claude_folder();
    let settings = [Some(policy), own.map(|folder| folder.join("settings.json"))];
    named_folder(
        settings.into_iter().flatten(),
        context.environment.user_home.as_deref(),
    )
}

/// Returns the folder of the first settings that name one. Settings of a project must not be among
/// them: a repository could have any folder copied.
fn named_folder(
    mut settings: impl Iterator<Item = PathBuf>,
    user_home: Option<&Path>,
) -> Option<PathBuf> {
    let named = settings.find_map(|path| {
        // People keep their settings elsewhere, behind a link.
        let (bytes, ..) = file::read_head(&dunce::canonicalize(path).ok()?, MAX_SETTINGS).ok()?;
        let settings: Value = serde_json::from_slice(&bytes).ok()?;
        Some(settings.get(MEMORY_FOLDER)?.as_str()?.to_owned())
    })?;
    let folder = match named.strip_prefix("~/") {
        Some(rest) => user_home?.join(rest),
        None => PathBuf::from(named),
    };
    // Claude Code ignores a relative path, too.
    let is_usable = folder.is_absolute() && folder.parent().is_some();
    is_usable.then(|| dunce::canonicalize(&folder).unwrap_or(folder))
}

/// Returns the imported notes of a project, which sessions on this machine have from the memory
/// itself.
pub fn copies(journal: Option<&Journal>, project: &str) -> Vec<(NoteId, Stamp)> {
    journal
        .and_then(|journal| journal.native_copies(project).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_memory_folder_is_that_of_the_first_settings_that_name_a_usable_one() {
        let root = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(root.path()).unwrap();
        let file = |name: &str, text: &str| {
            fs::write(root.join(name), text).unwrap();
            root.join(name)
        };
        let policy = file("policy.json", r#"{"autoMemoryDirectory": "~/policy"}"#);
        let elsewhere = if cfg!(windows) { "C:/srv" } else { "/srv" };
        let named_by_user = format!(r#"{{"autoMemoryDirectory": "{elsewhere}/memory"}}"#);
        let user = file("user.json", &named_by_user);
        let none = file("none.json", "{}");
        let named = |files: &[&PathBuf]| {
            let files = files.iter().map(|path| (*path).clone());
            named_folder(files, Some(&root))
        };
        let (missing, of_policy) = (root.join("missing.json"), root.join("policy"));
        assert_eq!(named(&[&policy, &user]), Some(of_policy));
        let of_user = Path::new(elsewhere).join("memory");
        assert_eq!(named(&[&missing, &none, &user]), Some(of_user));
        assert_eq!(named(&[&none, &missing]), None);
        for text in [
            r#"{"autoMemoryDirectory": "memory"}"#,
            r#"{"autoMemoryDirectory": "/"}"#,
            r#"{"autoMemoryDirectory": 1}"#,
            "{",
        ] {
            assert_eq!(named(&[&file("bad.json", text)]), None, "{text}");
        }
    }
}
