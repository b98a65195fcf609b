//! A temporary store with the program's environment: a home, a project, transcripts.

use std::{
    fs::{self, File},
    io::{Seek as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, SystemTime},
};

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, Scope},
};
use anamnesis_store::{
    fs::{
        file::private_options,
        home::{self, Home},
        lock::{self, Subject},
    },
    notes::Notes,
};
use serde_json::{Value, json};

use anamnesis_testkit::home::trust_store;

use crate::{Result, at, crash::Checks};

/// Time limit for every lock.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Queries by which two indexes are compared.
const SEARCHES: [&str; 3] = ["parser", "index locked", "\"write ahead log\""];

/// The log's line about a note that the index will get later.
const BUSY_INDEX: &str = "the index is being written by another anamnesis process";

/// A folder that stands for a user's machine.
pub(super) struct Sandbox {
    root: PathBuf,
    binary: PathBuf,
    home: Home,
}

impl Sandbox {
    /// Creates the folders of a user, a project and Claude Code below `root`, without a store.
    pub(super) fn new(root: &Path, binary: &Path) -> Result<Self> {
        // The client names transcripts by their real path.
        let root = dunce::canonicalize(root).map_err(at(root))?;
        let store = root.join("store");
        Self::with_store(&root, binary, &store)
    }

    /// Creates a sandbox with the store elsewhere, for example on another disk.
    pub(super) fn with_store(root: &Path, binary: &Path, store: &Path) -> Result<Self> {
        for folder in ["project", "user/.claude/projects/project"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).map_err(at(&folder))?;
        }
        trust_store(&root.join("user")).map_err(at(root))?;
        Ok(Self {
            root: root.to_path_buf(),
            binary: binary.to_path_buf(),
            home: Home::new(store),
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub(super) fn binary(&self) -> &Path {
        &self.binary
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    pub(super) fn notes(&self) -> Notes {
        Notes::new(self.home.clone(), TIMEOUT)
    }

    /// Returns the program with `input` on stdin and the sandbox's environment only.
    pub(super) fn command(&self, arguments: &[&str], input: &[u8]) -> Result<Command> {
        // A file needs no process that stays to write it, unlike a pipe.
        let mut stdin = tempfile::tempfile_in(&self.root)?;
        stdin.write_all(input)?;
        stdin.rewind()?;
        let project = self.root.join("project");
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.root.join("user"))
            .env("ANAMNESIS_HOME", self.home.root())
            .env("ANAMNESIS_MACHINE_ID", "laptop")
            .env("CLAUDE_PROJECT_DIR", &project)
            .current_dir(&project)
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs the program to its end.
    pub(super) fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Output> {
        Ok(self.command(arguments, input)?.output()?)
    }

    /// Runs the program and counts a violation if it does not exit with 0.
    pub(super) fn succeeds(
        &self,
        arguments: &[&str],
        input: &[u8],
        checks: &mut Checks,
    ) -> Result<String> {
        let output = self.run(arguments, input)?;
        checks.that(output.status.success(), || describe_run(arguments, &output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Writes a session's transcript of `turns` turns of some kilobytes each.
    pub(super) fn transcript(&self, session: &str, turns: usize) -> Result<PathBuf> {
        let path = self.transcript_path(session);
        let mut file = File::create(&path).map_err(at(&path))?;
        let project = self.root.join("project");
        let mut line = |record: Value| -> Result {
            let mut record = record;
            record["sessionId"] = session.into();
            record["cwd"] = project.to_string_lossy().into();
            record["version"] = "2.1.330".into();
            record["timestamp"] = "2026-01-02T03:04:05.000Z".into();
            writeln!(file, "{record}").map_err(at(&path))
        };
        let ask = format!("make the parser of session {session} report the index that is locked");
        line(
            json!({"type": "user", "promptSource": "sdk", "message": {"role": "user", "content": ask}}),
        )?;
        for turn in 0..turns {
            let call = format!("toolu_{turn}");
            let edited = project.join(format!("src/part_{turn}.rs"));
            line(
                json!({"type": "assistant", "message": {"id": format!("msg_{turn}"), "role": "assistant", "content": [
                    {"type": "tool_use", "id": call, "name": "Edit",
                     "input": {"file_path": edited, "old_string": "a", "new_string": "b"}}]}}),
            )?;
            line(
                json!({"type": "user", "message": {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": call, "content": "the write ahead log grew\n".repeat(200)}]}}),
            )?;
        }
        let outcome =
            format!("The parser names the lock now, after {turns} edits of session {session}.");
        line(
            json!({"type": "assistant", "message": {"id": "msg_last", "role": "assistant", "content": [
                {"type": "text", "text": outcome}]}}),
        )?;
        Ok(path)
    }

    pub(super) fn transcript_path(&self, session: &str) -> PathBuf {
        self.root
            .join(format!("user/.claude/projects/project/{session}.jsonl"))
    }

    /// Returns the payload that Claude Code sends to a hook.
    pub(super) fn payload(&self, event: &str, session: &str) -> Vec<u8> {
        json!({
            "hook_event_name": event,
            "session_id": session,
            "transcript_path": self.transcript_path(session),
            "cwd": self.root.join("project"),
            "source": "startup",
            "reason": "prompt_input_exit",
            "trigger": "auto",
        })
        .to_string()
        .into_bytes()
    }

    /// Writes small notes as files, as a sync or an editor would.
    pub(super) fn plant(&self, count: usize) -> Result {
        self.home.create()?;
        let folder = self.home.tree(Scope::Portable).join("semantic");
        home::ensure_folder(&folder)?;
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        for number in 0..count {
            let id = NoteId::of_session(&format!("planted {number}"));
            let note = Note {
                title: format!("Planted fact {number} about the parser"),
                body: format!("Part {number} of the write ahead log is kept in block {number}."),
                project: format!("project-{}", number % 10),
                machine_id: "laptop".to_owned(),
                ..Note::new(id, NoteType::Semantic, now.into())
            };
            let path = folder.join(format!("{id}.md"));
            let file = private_options().create(true).open(&path);
            file.and_then(|mut file| file.write_all(note.render().as_bytes()))
                .map_err(at(&path))?;
        }
        Ok(())
    }

    /// Returns everything that a killed process left unfinished in the store.
    pub(super) fn leftovers(&self) -> Vec<PathBuf> {
        let mut found = self.files();
        found.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".tmp")
                || name.contains(".db.new")
                || name.contains(".db.old")
                || name.starts_with("probe-")
        });
        found
    }

    /// Makes leftovers old enough to count as abandoned.
    pub(super) fn age_leftovers(&self) -> Result {
        let long_ago = SystemTime::now() - Duration::from_secs(7200);
        for path in self.leftovers() {
            let file = File::options().write(true).open(&path).map_err(at(&path))?;
            file.set_modified(long_ago).map_err(at(&path))?;
        }
        Ok(())
    }

    /// Waits for the deferred process that hooks have started.
    pub(super) fn wait_for_work(&self) -> Result {
        lock::acquire(&self.home, Subject::Work, TIMEOUT)?
            .map(drop)
            .ok_or_else(|| "the deferred process does not end".into())
    }

    /// Returns the log's failures. A note left to the deferred process because the index was busy
    /// is not a failure.
    pub(super) fn faults(&self) -> Vec<String> {
        let log = fs::read_to_string(self.home.log()).unwrap_or_default();
        log.lines()
            .filter(|line| !line.contains(BUSY_INDEX))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the files of the store that contain these bytes.
    pub(super) fn files_with(&self, bytes: &[u8]) -> Vec<PathBuf> {
        self.files()
            .into_iter()
            .filter(|path| {
                fs::read(path)
                    .is_ok_and(|content| content.windows(bytes.len()).any(|part| part == bytes))
            })
            .collect()
    }

    /// Returns every file of the store.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut pending = vec![self.home.root().to_path_buf()];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(entry.path());
                } else {
                    found.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }

    /// Returns the index's answers to all queries as one text.
    pub(super) fn answers(&self, checks: &mut Checks) -> Result<String> {
        let list = [
            "list",
            "--everywhere",
            "--forgotten",
            "--all",
            "--scope",
            "portable",
            "--json",
        ];
        let local = [
            "list",
            "--everywhere",
            "--forgotten",
            "--all",
            "--scope",
            "machine-local",
            "--json",
        ];
        let mut text = self.succeeds(&list, b"", checks)?;
        text.push_str(&self.succeeds(&local, b"", checks)?);
        text.push_str(&self.succeeds(&["inject"], b"", checks)?);
        for words in SEARCHES {
            text.push_str(&self.succeeds(
                &["search", "-k", "200", "--json", words],
                b"",
                checks,
            )?);
        }
        Ok(text)
    }

    /// Checks that one undisturbed run repairs the store.
    pub(super) fn heals(&self, checks: &mut Checks) -> Result {
        self.age_leftovers()?;
        self.succeeds(&["work"], b"", checks)?;
        let leftovers = self.leftovers();
        checks.that(leftovers.is_empty(), || {
            format!("not swept: {}", listed(&leftovers))
        });
        let doctor = self.succeeds(&["doctor", "--json"], b"", checks)?;
        let healthy = doctor.contains("\"up to date with the notes\"")
            && doctor.contains("\"broken\": 0")
            && doctor.contains("\"look\": 0");
        checks.that(healthy, || {
            format!("the deferred process left something: {doctor}")
        });
        let before = self.answers(checks)?;
        self.succeeds(&["reindex"], b"", checks)?;
        let after = self.answers(checks)?;
        checks.that(before == after, || {
            "the index that healed answers otherwise than a new one".to_owned()
        });
        Ok(())
    }
}

/// Formats a run's output for a message.
pub(super) fn describe_run(arguments: &[&str], output: &Output) -> String {
    format!(
        "anamnesis {}: {} {}{}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn listed(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}
