//! `demo`: plays a recorded session through the real hooks, into a temporary store.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use anamnesis_app::{Error, environment::Environment};
use anamnesis_note::id::NoteId;
use anamnesis_store::{
    fs::{
        home::{self, Home},
        lock::{self, Subject},
    },
    notes::Notes,
};
use serde_json::Value;

use crate::ui::{Outcome, Ui};

/// A Claude Code session, recorded with a scripted model and trimmed.
const TRANSCRIPT: &str = include_str!("../../demo/session.jsonl");

/// The client's id of the recorded session.
const SESSION: &str = "5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20";

/// Play a recorded session and show what is remembered
///
/// Uses a temporary store. None of your notes are read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep the temporary store and print its path
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(args: &Args, environment: &Environment, ui: &Ui) -> Outcome {
    let folder = std::env::temp_dir().join(format!(
        "anamnesis-demo-{}",
        NoteId::generate(environment.now)
    ));
    let stage = Stage::set(&folder)?;
    // A deferred process would outlive the folder. Holding its lock keeps it from starting.
    let no_work = lock::acquire(&stage.home, Subject::Work, Duration::ZERO);
    let result = stage.play(ui);
    if args.keep {
        ui.print(&format!("\nkept in {}\n", folder.display()));
    } else {
        remove(&folder);
    }
    drop(no_work);
    result.map(|()| ExitCode::SUCCESS)
}

/// Removes a folder, with retries. A deferred process that was just started may create its lock
/// file before it sees that the lock is held. There are at most as many of them as hooks were
/// played.
fn remove(folder: &Path) {
    const MAX_TRIES: usize = 100;

    for _ in 0..MAX_TRIES {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ => break,
        }
    }
}

/// The folders of the demo.
struct Stage {
    home: Home,
    user_home: PathBuf,
    project: PathBuf,
    transcript: PathBuf,
}

impl Stage {
    fn set(root: &Path) -> Result<Self, Error> {
        let failure = format!("cannot set the demo up in {}", root.display());
        home::ensure_folder(root).map_err(Error::prefixed(&failure))?;
        // The client names transcripts by their canonical path.
        let root = dunce::canonicalize(root).map_err(Error::prefixed(&failure))?;
        let stage = Self {
            home: Home::new(root.join("home/.anamnesis")),
            user_home: root.join("home"),
            project: root.join("shop"),
            transcript: root.join(format!("home/.claude/projects/-shop/{SESSION}.jsonl")),
        };
        let write = || {
            fs::create_dir_all(&stage.project)?;
            fs::create_dir_all(stage.transcript.parent().unwrap_or(&root))?;
            fs::write(&stage.transcript, TRANSCRIPT)
        };
        write().map_err(Error::prefixed(&failure))?;
        stage.home.create().map_err(Error::prefixed(&failure))?;
        Ok(stage)
    }

    fn play(&self, ui: &Ui) -> Result<(), Error> {
        // The deferred process would build the index, but none runs here.
        self.command(&["internal", "reindex"], None)?;
        ui.print("1. A session starts. Injected:\n");
        let start = ["SessionStart", "source", "startup"];
        let first = self.hook(start, SESSION)?;
        ui.print(&indented(
            context_of(&first).unwrap_or("nothing: there are no notes yet"),
        ));
        ui.print("\n2. It works, and ends. Its note, in markdown:\n");
        self.hook(["SessionEnd", "reason", "prompt_input_exit"], SESSION)?;
        let notes = Notes::new(self.home.clone(), Duration::ZERO);
        let path = notes
            .find(NoteId::of_session(SESSION))
            .ok_or_else(|| Error::failed("the session left no note").hint("anamnesis doctor"))?;
        ui.print(&indented(&String::from_utf8_lossy(&notes.bytes(path)?)));
        ui.print("\n3. The next session starts. Injected:\n");
        let next = self.hook(start, "the next session")?;
        let context = context_of(&next)
            .ok_or_else(|| Error::failed("nothing was injected into the next session"))?;
        ui.print(&indented(context));
        Ok(())
    }

    /// Runs one hook as the client does, and parses its answer. The event has a field of its own.
    fn hook(&self, [event, field, value]: [&str; 3], session: &str) -> Result<Value, Error> {
        let mut payload = Value::from_iter([("hook_event_name", event), (field, value)]);
        payload["session_id"] = session.into();
        payload["cwd"] = self.project.to_string_lossy().into();
        payload["transcript_path"] = self.transcript.to_string_lossy().into();
        let output = self.command(&["hook"], Some(&payload.to_string()))?;
        if output.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&output).map_err(Error::prefixed("the hook printed no JSON"))
    }

    fn command(&self, arguments: &[&str], input: Option<&str>) -> Result<String, Error> {
        let failure = format!("cannot run anamnesis {}", arguments.join(" "));
        let program = std::env::current_exe().map_err(Error::prefixed(&failure))?;
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .env("HOME", &self.user_home)
            .env("ANAMNESIS_HOME", self.home.root())
            .env("ANAMNESIS_MACHINE_ID", "laptop")
            .env("CLAUDE_PROJECT_DIR", &self.project)
            .current_dir(&self.project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::prefixed(&failure))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin
                .write_all(input.unwrap_or_default().as_bytes())
                .map_err(Error::prefixed(&failure))?;
        }
        let output = child
            .wait_with_output()
            .map_err(Error::prefixed(&failure))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(Error::failed(format!(
                "anamnesis {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            )))
        }
    }
}

/// The text for the model in a hook's answer.
fn context_of(answer: &Value) -> Option<&str> {
    answer
        .pointer("/hookSpecificOutput/additionalContext")?
        .as_str()
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("   {line}").trim_end().to_owned() + "\n")
        .collect()
}
