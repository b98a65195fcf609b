//! Machines of one user and the bare repository between them.
//!
//! A machine is a home of its own. A command's edit and commit are done in this process; a sync is
//! always run by the program.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    note::{NoteFile, Scope, timestamp},
};
use anamnesis_store::{
    fs::{
        home::Home,
        lock::{self, Subject},
    },
    notes::{NotePath, Notes},
};
use anamnesis_sync::{Act, Repository};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::trace::Ended;
use crate::{Result, at};

/// The names of the machines.
pub(super) const NAMES: [&str; 3] = ["laptop", "desktop", "server"];

/// Time limit for a lock.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The start time, in seconds since 1970.
const START: i64 = 1_767_323_045;

/// Queries by which two indexes are compared.
const QUESTIONS: [&[&str]; 2] = [
    &["list", "--everywhere", "--forgotten", "--all", "--json"],
    &["search", "-k", "200", "--json", "paragraph"],
];

/// The machines and their remote.
pub(super) struct Fleet {
    root: PathBuf,
    pub(super) machines: Vec<Machine>,
    now: DateTime<Utc>,
}

impl Fleet {
    /// Creates an empty remote and machines that use it.
    pub(super) fn new(root: &Path, program: &Path, names: &[&'static str]) -> Result<Self> {
        let root = dunce::canonicalize(root).map_err(at(root))?;
        let remote = root.join("remote.git");
        git(
            &root,
            &[
                "init",
                "--quiet",
                "--bare",
                "--initial-branch=main",
                "remote.git",
            ],
        )?;
        let now = DateTime::from_timestamp(START, 0).ok_or("the start time is out of range")?;
        let machines = names
            .iter()
            .map(|name| Machine::new(name, &root.join(name), program, &remote, now))
            .collect::<Result<_>>()?;
        Ok(Self {
            root,
            machines,
            now,
        })
    }

    pub(super) fn remote(&self) -> PathBuf {
        self.root.join("remote.git")
    }

    /// Advances the clock of all machines by a few minutes.
    pub(super) fn pass_time(&mut self) {
        self.now += TimeDelta::minutes(7);
        for machine in &mut self.machines {
            machine.now = self.now + machine.clock_is_off;
        }
    }
}

/// One machine.
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) home: Home,
    pub(super) notes: Notes,
    pub(super) now: DateTime<Utc>,
    /// The error of its clock.
    pub(super) clock_is_off: TimeDelta,
    pub(super) is_offline: bool,
    pub(super) program: PathBuf,
    root: PathBuf,
    remote: PathBuf,
}

impl Machine {
    fn new(
        name: &'static str,
        root: &Path,
        program: &Path,
        remote: &Path,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let home = Home::new(root.join("store"));
        let machine = Self {
            name,
            notes: Notes::new(home.clone(), TIMEOUT),
            home,
            now,
            clock_is_off: TimeDelta::zero(),
            is_offline: false,
            root: root.to_owned(),
            program: program.to_owned(),
            remote: remote.to_owned(),
        };
        fs::create_dir_all(root.join("user")).map_err(at(root))?;
        machine.begin()?;
        Ok(machine)
    }

    /// Creates an empty store with the remote.
    fn begin(&self) -> Result {
        self.home.create()?;
        self.plug(self.is_offline)
    }

    fn plug(&self, is_offline: bool) -> Result {
        let remote = if is_offline {
            self.remote.with_file_name("unplugged.git")
        } else {
            self.remote.clone()
        };
        let config = json!({ "machine_id": self.name, "remote": remote });
        let path = self.home.config();
        fs::write(&path, config.to_string()).map_err(at(&path))
    }

    /// Disconnects the machine from the remote, or connects it again.
    pub(super) fn set_offline(&mut self, is_offline: bool) -> Result {
        self.plug(is_offline)?;
        self.is_offline = is_offline;
        Ok(())
    }

    /// Discards the store and creates a new one.
    pub(super) fn replace(&mut self) -> Result {
        // A git process that outlived a killed sync must have ended.
        drop(lock::acquire(&self.home, Subject::Sync, TIMEOUT)?);
        let root = self.home.root();
        fs::remove_dir_all(root).map_err(at(root))?;
        self.begin()
    }

    /// Returns the program on this machine.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.root.join("user"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("ANAMNESIS_HOME", self.home.root())
            .env("ANAMNESIS_MACHINE_ID", self.name)
            .env("ANAMNESIS_NOW", timestamp(self.now))
            .env("LANG", "C.UTF-8")
            .current_dir(self.root.join("user"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns a sync that reports in JSON.
    pub(super) fn sync(&self) -> Command {
        self.command(&["sync", "--json"])
    }

    /// Commits a change of a note, as a command does before it ends.
    pub(super) fn commit(&self, verb: &str, id: NoteId) -> Result {
        let act = Act {
            verb,
            actor: "person",
        };
        let lock = self.notes.lock()?;
        let repository = Repository::open_or_create(&self.home, &lock, self.name, self.now)?;
        repository.commit_notes(&lock, &BTreeSet::from([id]), act)?;
        Ok(())
    }

    /// Returns the body of a note.
    pub(super) fn body(&self, path: NotePath) -> Result<String> {
        let file = NoteFile::parse(&self.notes.bytes(path)?, path.id)?;
        Ok(file.into_note().body)
    }

    /// Returns every file in `memory/` outside of `.git`, by path.
    pub(super) fn tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let root = self.home.tree(Scope::Portable);
        let read = |path: PathBuf| {
            let name = path.strip_prefix(&root).ok()?;
            Some((name.to_owned(), fs::read(&path).ok()?))
        };
        let files = files_below(&root).into_iter();
        files
            .filter(|path| !path.starts_with(root.join(".git")))
            .filter_map(read)
            .collect()
    }

    /// Returns the index's answers to all queries as one text.
    pub(super) fn answers(&self) -> Result<String> {
        let mut text = String::new();
        for question in QUESTIONS {
            text.push_str(&succeeded(&mut self.command(question))?);
        }
        Ok(text)
    }
}

/// Returns the report of a sync that succeeded and left nothing pending.
pub(super) fn synced(ended: &Ended) -> Result<Value> {
    let output = || format!("{} {}{}", code(ended.code), ended.stdout, ended.stderr);
    if ended.code != Some(0) {
        return Err(output().into());
    }
    let says: Value = serde_json::from_str(&ended.stdout)?;
    // A machine without notes has nothing to push to an empty remote.
    let is_done = says["pushed"] == true || says["head"].is_null();
    let is_done = is_done && says["held"].is_null();
    let is_clean = says["problems"].as_array().is_some_and(Vec::is_empty);
    if is_done && is_clean && ended.stderr.is_empty() {
        Ok(says)
    } else {
        Err(output().into())
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs git in a folder without the user's configuration.
pub(super) fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("LC_ALL", "C");
    succeeded(&mut command)
}

/// Runs a program that must exit with 0, and returns its output.
pub(super) fn succeeded(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let ended: Ended = output
        .map_err(|error| format!("{command:?}: {error}"))?
        .into();
    if ended.code == Some(0) {
        return Ok(ended.stdout);
    }
    let Ended {
        code: exit,
        stdout,
        stderr,
    } = ended;
    Err(format!("{command:?}: {} {stdout}{stderr}", code(exit)).into())
}

fn code(code: Option<i32>) -> String {
    code.map_or_else(|| "killed".to_owned(), |code| format!("exit {code}"))
}

/// Returns every file below a folder, sorted.
pub(super) fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
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
