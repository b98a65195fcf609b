//! Machines of one person, and the bare repository between them.
//!
//! A machine is a home of its own. What a command of the program does in one go, an edit and its
//! commit, is done here in this process; a sync is always the program itself.

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

/// The machines.
pub(super) const NAMES: [&str; 3] = ["laptop", "desktop", "server"];

/// How long a change waits for whoever has the notes.
const PATIENCE: Duration = Duration::from_secs(30);

/// When everything begins, in seconds since 1970.
const START: i64 = 1_767_323_045;

/// Everything that the index is asked.
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
    /// Makes an empty remote and machines that know it.
    pub(super) fn new(root: &Path, program: &Path, names: &[&'static str]) -> Result<Self> {
        let root = root.canonicalize().map_err(at(root))?;
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
        let now = DateTime::from_timestamp(START, 0).ok_or("1970 is long ago")?;
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

    /// Lets a few minutes pass on all machines.
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
    /// By how much its clock is wrong.
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
            notes: Notes::new(home.clone(), PATIENCE),
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

    /// Makes an empty store that knows its remote.
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

    /// Takes the way to the remote away, or gives it back.
    pub(super) fn set_offline(&mut self, is_offline: bool) -> Result {
        self.plug(is_offline)?;
        self.is_offline = is_offline;
        Ok(())
    }

    /// Throws the store away and makes a new one.
    pub(super) fn replace(&mut self) -> Result {
        // A git that outlived its killed sync has to be gone.
        drop(lock::acquire(&self.home, Subject::Sync, PATIENCE)?);
        let root = self.home.root();
        fs::remove_dir_all(root).map_err(at(root))?;
        self.begin()
    }

    /// The program on this machine.
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

    /// A sync that says in JSON how it went.
    pub(super) fn sync(&self) -> Command {
        self.command(&["sync", "--json"])
    }

    /// Commits what was done to a note, as a command does before it ends.
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

    /// The text of a note.
    pub(super) fn body(&self, path: NotePath) -> Result<String> {
        let file = NoteFile::parse(&self.notes.bytes(path)?, path.id)?;
        Ok(file.into_note().body)
    }

    /// Every file in `memory/` that is not git's, by path.
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

    /// Everything that the index is asked, in one text.
    pub(super) fn answers(&self) -> Result<String> {
        let mut text = String::new();
        for question in QUESTIONS {
            text.push_str(&succeeded(&mut self.command(question))?);
        }
        Ok(text)
    }
}

/// What a sync said, if it went well and nothing waits for a person.
pub(super) fn synced(ended: &Ended) -> Result<Value> {
    let told = || format!("{} {}{}", code(ended.code), ended.stdout, ended.stderr);
    if ended.code != Some(0) {
        return Err(told().into());
    }
    let says: Value = serde_json::from_str(&ended.stdout)?;
    // A machine without notes has nothing to push to an empty remote.
    let is_done = says["pushed"] == true || says["head"].is_null();
    let is_done = is_done && says["held"].is_null();
    let is_clean = says["problems"].as_array().is_some_and(Vec::is_empty);
    if is_done && is_clean && ended.stderr.is_empty() {
        Ok(says)
    } else {
        Err(told().into())
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

/// Runs git in a folder, apart from the user's configuration.
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

/// Runs a program that has to exit with 0; what it printed.
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

/// Every file below a folder, sorted.
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
