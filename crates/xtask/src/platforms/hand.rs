//! Runs a session's hooks by hand, as the client does: a process per event, JSON on stdin, an answer on
//! stdout. Then the next session must be given the note.

use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anamnesis_store::fs::home::Home;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Platform, WINE, setup};
use crate::{Result, at};

/// A program of another platform, and the machine that it believes to be on.
pub(super) struct Guest<'a> {
    platform: &'a Platform,
    runner: Option<&'static str>,
    program: PathBuf,
    variables: Vec<(&'static str, PathBuf)>,
    folder: TempDir,
    /// The store, as a path of this machine.
    store: PathBuf,
}

/// How often and how long the note of the session is waited for.
const WAITS: usize = 100;
const WAIT: Duration = Duration::from_millis(200);

/// The prompt that the next session must be given.
const PROMPT: &str = "The login tests wait for the stub server on port 9090. Find out why.";

impl<'a> Guest<'a> {
    /// Returns a program that this kernel starts.
    pub(super) fn on_linux(platform: &'a Platform, program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let home = folder.path().join("home");
        std::fs::create_dir(&home).map_err(at(&home))?;
        Ok(Self {
            platform,
            runner: None,
            program: program.to_path_buf(),
            store: home.join(".anamnesis"),
            variables: vec![("HOME", home)],
            folder,
        })
    }

    /// Returns a program that Wine runs, with an empty store in Wine's own home.
    pub(super) fn in_wine(
        platform: &'a Platform,
        tools: &setup::Tools,
        program: &Path,
    ) -> Result<Self> {
        let prefix = setup::wine_prefix(tools)?;
        let users = prefix.join("drive_c/users");
        let mut user = None;
        for entry in std::fs::read_dir(&users).map_err(at(&users))? {
            let entry = entry.map_err(at(&users))?;
            user = (entry.file_name() != "Public")
                .then(|| entry.path())
                .or(user);
        }
        let store = user.ok_or("Wine has no user")?.join(".anamnesis");
        if store.exists() {
            std::fs::remove_dir_all(&store).map_err(at(&store))?;
        }
        Ok(Self {
            platform,
            runner: Some(WINE),
            program: program.to_path_buf(),
            variables: setup::wine_variables(&prefix)
                .map(|(name, value)| (name, value.into()))
                .to_vec(),
            folder: tempfile::tempdir()?,
            store,
        })
    }

    fn named(&self, path: &Path) -> String {
        self.platform.named(path)
    }

    fn project(&self) -> Result<PathBuf> {
        // Long, with a space and letters outside of ASCII.
        let project = self
            .folder
            .path()
            .join("a shop für 本")
            .join("x".repeat(200));
        std::fs::create_dir_all(&project).map_err(at(&project))?;
        Ok(project)
    }

    /// Runs the program and returns its output.
    fn run(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = match self.runner {
            Some(runner) => {
                let mut command = Command::new(runner);
                command.arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        let mut stdin = tempfile::tempfile()?;
        stdin.write_all(input.as_bytes())?;
        stdin.rewind()?;
        // A file: a background process that kept a pipe open would keep this from ending.
        let stdout = tempfile::NamedTempFile::new()?;
        let project = self.project()?;
        let status = command
            .args(arguments)
            .current_dir(&project)
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("PATH", "/usr/bin:/bin")
            .env("CLAUDE_PROJECT_DIR", self.named(&project))
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout.reopen()?))
            .status()?;
        let output = std::fs::read_to_string(stdout.path()).map_err(at(stdout.path()))?;
        if status.success() {
            Ok(output)
        } else {
            Err(format!(
                "{}: {arguments:?}: {status}: {output}",
                self.program.display()
            )
            .into())
        }
    }

    /// Runs a hook and returns its answer.
    fn hook(&self, session: &str, event: &str, more: &Value) -> Result<Value> {
        let mut payload = json!({
            "session_id": session,
            "transcript_path": self.named(&self.folder.path().join(format!("{session}.jsonl"))),
            "cwd": self.named(&self.project()?),
            "hook_event_name": event,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        let output = self.run(&["hook"], &payload.to_string())?;
        if output.trim().is_empty() {
            return Ok(Value::Null);
        }
        Ok(serde_json::from_str(&output).map_err(|error| format!("{event}: {error}: {output}"))?)
    }
}

/// Plays two sessions, and returns the number of runs.
pub(super) fn play(guest: &Guest<'_>) -> Result<usize> {
    let edited = guest.named(&guest.project()?.join("Makefile"));
    let edit = json!({
        "tool_name": "Edit",
        "tool_use_id": "one",
        "tool_input": { "file_path": edited, "old_string": "a", "new_string": "b" },
        "tool_response": { "filePath": edited },
    });
    let answer = json!({ "last_assistant_message": "`make login-tests` starts it first now." });
    let events = [
        ("SessionStart", json!({ "source": "startup" })),
        ("UserPromptSubmit", json!({ "prompt": PROMPT })),
        ("PreToolUse", edit.clone()),
        ("PostToolUse", edit),
        ("Stop", answer),
        ("SessionEnd", json!({ "reason": "other" })),
    ];
    for (event, more) in &events {
        guest.hook("first", event, more)?;
    }
    // A hook has started the process that writes the note.
    let mut found = String::new();
    for _ in 0..WAITS {
        found = guest.run(&["search", "stub server port"], "")?;
        if found.contains("login tests") {
            break;
        }
        thread::sleep(WAIT);
    }
    expect(
        Home::new(&guest.store).index().is_file(),
        "an index",
        "none",
    )?;
    expect(
        found.contains("login tests"),
        "the note of the session",
        &found,
    )?;
    guest.run(&["reindex"], "")?;
    let found = guest.run(&["search", "stub server port"], "")?;
    expect(
        found.contains("login tests"),
        "the note after a rebuild",
        &found,
    )?;
    let start = guest.hook("second", "SessionStart", &json!({ "source": "startup" }))?;
    let context = start.pointer("/hookSpecificOutput/additionalContext");
    let context = context.and_then(Value::as_str).unwrap_or_default();
    expect(
        context.contains("login tests"),
        "the note in the next session",
        &start.to_string(),
    )?;
    let log = guest.store.join("log/anamnesis.log");
    let log = std::fs::read_to_string(log).unwrap_or_default();
    // On a busy machine, the deferred process has the index when a note is written, and adds it later.
    let mut faults = log
        .lines()
        .filter(|line| !line.contains("is not in the index yet"));
    expect(faults.next().is_none(), "an empty log", &log)?;
    Ok(events.len() + 4)
}

fn expect(is_met: bool, what: &str, found: &str) -> Result {
    if is_met {
        Ok(())
    } else {
        Err(format!("hooks by hand: expected {what}, found: {found}").into())
    }
}
