//! The user's own git, for what needs the network, and for packing.
//!
//! Fetch and push are left to it so that ssh's configuration, agents, jumps, proxies and credential
//! helpers work as in the user's shell. Everything else is done elsewhere with libgit2, in memory.
//!
//! Invariants: git is run from an absolute path and with an environment that was chosen for it; no
//! hook and no setting of the repository runs anything; nobody is asked anything; every run has a
//! limit of time, of output and, for a fetch, of what is written to the disk; no address stands in
//! the arguments of what is started here, and no credential in what comes back.
//!
//! One git at a time works on a repository: the caller holds a kernel lock, and gives its file to
//! [`Git::hold`] so that a git which outlives its caller holds it too.

mod answer;
mod environment;
mod error;
mod process;
mod settings;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    slice,
    time::Duration,
};

use anamnesis_store::fs::file;
use anamnesis_text::clean::one_line;
use git2::Oid;

use self::{
    answer::{Setting, Verdict},
    process::{Finished, Limits},
};
pub use self::{
    environment::{GitEnvironment, NETWORK_VARIABLES},
    error::{Error, Task},
};
use crate::remote::Remote;

/// Bytes that a fetch may write, unless told otherwise.
pub const MAX_FETCH: u64 = 1 << 30;
/// What a fetch brings, for the one who looks at it.
pub const INCOMING: &str = "refs/anamnesis/incoming";

const OLDEST: (u32, u32) = (2, 30);
/// Bytes kept of what git says.
const MAX_OUTPUT: usize = 64 * 1024;
/// Bytes that all of the configuration may have: a user's own can be long.
const MAX_SETTINGS: usize = 4 * 1024 * 1024;
/// How long packing may take. It is started rarely, and needs no network.
const TIDYING: Duration = Duration::from_secs(600);

/// What a commit needs is on the disk before it is named. A git before 2.36 does so for packs only.
const FLUSHING: &str = "core.fsync=committed";

/// Settings for a git that talks to a remote. They win over every file.
const NETWORK: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    FLUSHING,
    "credential.interactive=false",
    "fetch.recurseSubmodules=false",
    // Everything comes as one pack, to which the limit of a file's size applies.
    "fetch.unpackLimit=1",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
];

/// Settings for a git that packs.
const LOCAL: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    FLUSHING,
    // It is waited for, so that the lock is held for as long as it works.
    "gc.autoDetach=false",
];

/// Locks of git's own that a killed one leaves behind.
const LOCKS: &[&str] = &[
    "refs/anamnesis/incoming.lock",
    "refs/remotes/origin/main.lock",
    "packed-refs.lock",
    "shallow.lock",
];

/// What a fetch found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The remote's `main` is at [`INCOMING`].
    Main,
    /// The remote has no branch at all.
    Empty,
    /// The remote has branches, but no `main`.
    NoMain {
        /// Some of those it has.
        branches: Vec<String>,
    },
}

/// What became of a push that the remote understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// The remote's `main` is ours.
    Done,
    /// Somebody was faster, or is just now at it: fetch and try again.
    Rejected {
        /// Git's words, for when trying again does not help either.
        reason: String,
    },
}

/// The user's git, at work on one repository.
#[derive(Debug)]
pub struct Git {
    program: PathBuf,
    environment: GitEnvironment,
    directory: PathBuf,
    time: Duration,
    max_fetch: u64,
    held: Option<File>,
}

impl Git {
    /// Finds git and looks whether it is new enough.
    ///
    /// The repository in `git_dir` need not be there yet. A fetch or a push may take as long as
    /// `time`.
    ///
    /// # Errors
    /// When there is no git, it is older than 2.30, or it cannot be run.
    pub fn new(environment: GitEnvironment, git_dir: &Path, time: Duration) -> Result<Self, Error> {
        let git = Self {
            program: environment.find("git").ok_or(Error::Missing)?,
            environment,
            directory: git_dir.to_owned(),
            time,
            max_fetch: MAX_FETCH,
            held: None,
        };
        let mut command = git.bare_command();
        // The repository may not be there, but the program's folder is.
        command.current_dir(git.program.parent().unwrap_or(Path::new("/")));
        command.arg("version");
        let answer = git.run(command, git.limits())?;
        let answer = String::from_utf8_lossy(&answer.stdout);
        match answer::version(&answer) {
            Some(version) if version >= OLDEST => Ok(git),
            _ => Err(Error::TooOld {
                path: git.program,
                version: one_line(answer.strip_prefix("git version ").unwrap_or(&answer)),
            }),
        }
    }

    /// Gives git the open file of a kernel lock, which it holds for as long as it lives.
    ///
    /// The file is git's standard input, so it has to be empty.
    #[must_use]
    pub fn hold(mut self, lock: File) -> Self {
        self.held = Some(lock);
        self
    }

    /// Sets how many bytes a fetch may write.
    #[must_use]
    pub fn max_fetch(mut self, bytes: u64) -> Self {
        self.max_fetch = bytes;
        self
    }

    /// Checks that the repository's own configuration sets nothing that is not trusted.
    ///
    /// Every run that touches the repository begins with this check.
    ///
    /// # Errors
    /// When it does, naming the first such setting, or cannot be read.
    pub fn check_config(&self) -> Result<(), Error> {
        self.trusted_settings().map(drop)
    }

    /// Fetches the remote's `main` to [`INCOMING`], whatever its history.
    ///
    /// The address comes from the repository's `remote.origin.url`, which has to be `remote`.
    ///
    /// # Errors
    /// When the remote cannot be reached or read, or sends too much. What was there before is kept.
    pub fn fetch(&self, remote: &Remote) -> Result<Fetched, Error> {
        let connection = self.connect(remote)?;
        self.remove_leftovers();
        let task = || Task::Fetch(remote.to_string());
        let mut command = self.network_command(remote, &connection.ssh);
        command.args([
            "fetch",
            "--quiet",
            "--refmap=",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "origin",
        ]);
        command.arg(format!("+refs/heads/main:{INCOMING}"));
        let limits = Limits {
            file: Some(self.max_fetch),
            ..self.limits()
        };
        let finished = self.run(command, limits)?;
        if succeeded(&finished) {
            self.flush(INCOMING)?;
            return Ok(Fetched::Main);
        }
        let largest = self.remove_leftovers();
        let said = String::from_utf8_lossy(&finished.stderr);
        if finished.status.is_none() {
            Err(self.timed_out(task()))
        } else if largest >= self.max_fetch || answer::grew_too_large(&said) {
            Err(Error::TooLarge {
                remote: remote.to_string(),
                limit: self.max_fetch,
            })
        } else if answer::lacks_main(&said) {
            self.look_around(remote, &connection)
        } else {
            Err(self.explain(task(), remote, &connection, &said))
        }
    }

    /// Pushes `main`; with `replacing`, over any history if the remote is still at that commit.
    ///
    /// # Errors
    /// When the remote cannot be reached, or does not take it for another reason than that somebody
    /// was faster.
    pub fn push(&self, remote: &Remote, replacing: Option<Oid>) -> Result<Pushed, Error> {
        self.push_from("refs/heads/main", remote, replacing)
    }

    /// As [`Git::push`], from another reference than `main`.
    ///
    /// # Errors
    /// As [`Git::push`].
    pub fn push_from(
        &self,
        reference: &str,
        remote: &Remote,
        replacing: Option<Oid>,
    ) -> Result<Pushed, Error> {
        let connection = self.connect(remote)?;
        self.remove_leftovers();
        let mut command = self.network_command(remote, &connection.ssh);
        command.args([
            "push",
            "--porcelain",
            "--no-progress",
            "--no-verify",
            "--no-follow-tags",
            // Signing would ask for a passphrase.
            "--no-signed",
            "--recurse-submodules=no",
        ]);
        if let Some(expected) = replacing {
            command.arg(format!("--force-with-lease=refs/heads/main:{expected}"));
        }
        command.arg("origin");
        command.arg(format!("{reference}:refs/heads/main"));
        let finished = self.run(command, self.limits())?;
        if succeeded(&finished) {
            return Ok(Pushed::Done);
        }
        let task = Task::Push(remote.to_string());
        if finished.status.is_none() {
            return Err(self.timed_out(task));
        }
        let stdout = String::from_utf8_lossy(&finished.stdout);
        let said = String::from_utf8_lossy(&finished.stderr);
        match answer::verdict(&stdout, &said) {
            Some(Verdict::TooLate(reason)) => Ok(Pushed::Rejected { reason }),
            Some(Verdict::Refused(words)) => Err(Error::Refused {
                remote: remote.to_string(),
                words,
            }),
            None => Err(self.explain(task, remote, &connection, &said)),
        }
    }

    /// Packs the repository, if git thinks that it is time.
    ///
    /// # Errors
    /// When git fails; the repository is as good as before.
    pub fn gc(&self) -> Result<(), Error> {
        self.trusted_settings()?;
        self.tidy(&self.directory, &["gc", "--auto", "--quiet"])?;
        self.flush("packed-refs")
    }

    /// Drops everything from the repository that no reference names, and the log of what did.
    ///
    /// # Errors
    /// When git fails; then something may be left.
    pub fn prune_now(&self) -> Result<(), Error> {
        self.trusted_settings()?;
        self.remove_leftovers();
        self.prune(&self.directory)?;
        self.flush("packed-refs")
    }

    /// Does the same in a remote that is a folder.
    ///
    /// # Errors
    /// When there is no repository, its configuration sets more than such a one needs, or git fails.
    pub fn prune_remote(&self, folder: &Path) -> Result<(), Error> {
        let git_dir = remote_git_dir(folder).ok_or_else(|| Error::NoRepository {
            remote: folder.display().to_string(),
            words: "there is no repository in this folder".to_owned(),
        })?;
        let settings = self.settings(&git_dir)?;
        if let Some(setting) = settings::untrusted_of_remote(&settings) {
            return Err(untrusted(setting, &git_dir));
        }
        self.prune(&git_dir)
    }

    fn prune(&self, git_dir: &Path) -> Result<(), Error> {
        self.tidy(
            git_dir,
            &[
                "reflog",
                "expire",
                "--expire=now",
                "--expire-unreachable=now",
                "--all",
            ],
        )?;
        self.tidy(
            git_dir,
            // Packs that the user calls big would be left as they are.
            &[
                "-c",
                "gc.bigPackThreshold=0",
                "gc",
                "--prune=now",
                "--quiet",
                "--force",
            ],
        )
    }

    /// Flushes the names of packs, which no git does, and a file of references, which an old one does
    /// not.
    fn flush(&self, references: &str) -> Result<(), Error> {
        file::sync_folder(&self.directory.join("objects/pack"));
        let path = self.directory.join(references);
        file::flush(slice::from_ref(&path)).map_err(|source| Error::Flush { path, source })
    }

    fn tidy(&self, git_dir: &Path, arguments: &[&str]) -> Result<(), Error> {
        let task = || Task::Tidy(git_dir.to_owned());
        let mut command = self.command(git_dir, LOCAL);
        command.args(arguments);
        let limits = Limits {
            time: TIDYING,
            ..self.limits()
        };
        let finished = self.run(command, limits)?;
        match finished.status {
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(Error::Failed {
                task: task(),
                words: answer::words(&String::from_utf8_lossy(&finished.stderr)),
            }),
            None => Err(Error::TimedOut {
                task: task(),
                limit: TIDYING,
            }),
        }
    }

    /// Looks what the remote has in place of `main`.
    fn look_around(&self, remote: &Remote, connection: &Connection) -> Result<Fetched, Error> {
        let finished = self.list_heads(remote, &connection.ssh)?;
        let task = Task::Fetch(remote.to_string());
        if finished.status.is_none() {
            return Err(self.timed_out(task));
        }
        if !succeeded(&finished) {
            let said = String::from_utf8_lossy(&finished.stderr);
            return Err(self.explain(task, remote, connection, &said));
        }
        let branches = answer::other_branches(&finished.stdout);
        Ok(if branches.is_empty() {
            Fetched::Empty
        } else {
            Fetched::NoMain { branches }
        })
    }

    fn list_heads(&self, remote: &Remote, ssh: &str) -> Result<Finished, Error> {
        let mut command = self.network_command(remote, ssh);
        command.args(["ls-remote", "--quiet", "--heads", "origin"]);
        self.run(command, self.limits())
    }

    fn explain(&self, task: Task, remote: &Remote, connection: &Connection, said: &str) -> Error {
        if !answer::is_host_refused(said) {
            return answer::explain(task, remote, said);
        }
        let (host, place) = match remote.ssh() {
            Some(ssh) => {
                let port = ssh
                    .port
                    .map(|port| format!("-p {port} "))
                    .unwrap_or_default();
                (
                    ssh.destination.clone(),
                    format!("{port}{}", ssh.destination),
                )
            }
            // The user's git was told to use ssh for this address.
            None => (remote.to_string(), remote.to_string()),
        };
        if answer::is_host_changed(said) {
            return Error::ChangedHost {
                host,
                fingerprint: answer::fingerprint(said),
            };
        }
        // ssh names the key that it refuses only when it tells everything.
        let again = self.list_heads(remote, &format!("{} -v", connection.ssh));
        Error::UnknownHost {
            host,
            fingerprint: again
                .ok()
                .and_then(|again| answer::fingerprint(&String::from_utf8_lossy(&again.stderr))),
            command: format!("{} {place}", one_line(&connection.user_ssh)),
        }
    }

    /// Checks what a run with the network depends on.
    fn connect(&self, remote: &Remote) -> Result<Connection, Error> {
        let settings = self.trusted_settings()?;
        if !settings::addresses(&settings).eq([remote.as_str()]) {
            return Err(Error::OtherRemote {
                file: self.directory.join("config"),
            });
        }
        // A stick that is not plugged in is no mistake in the address.
        if let Some(folder) = remote.folder()
            && !folder.exists()
        {
            return Err(Error::Offline {
                remote: remote.to_string(),
                words: "there is no such folder now".to_owned(),
            });
        }
        Ok(Connection {
            ssh: settings::ssh_command(&settings),
            user_ssh: settings::user_ssh(&settings).to_owned(),
        })
    }

    fn trusted_settings(&self) -> Result<Vec<Setting>, Error> {
        let settings = self.settings(&self.directory)?;
        match settings::untrusted(&settings) {
            Some(setting) => Err(untrusted(setting, &self.directory)),
            None => Ok(settings),
        }
    }

    /// Reads all of the configuration as git itself sees it, so that there is no second opinion on
    /// what a file says.
    fn settings(&self, git_dir: &Path) -> Result<Vec<Setting>, Error> {
        let mut command = self.command(git_dir, LOCAL);
        command.args(["config", "--list", "--show-scope", "--null"]);
        let limits = Limits {
            output: MAX_SETTINGS,
            ..self.limits()
        };
        let finished = self.run(command, limits)?;
        let failed = |words: String| Error::Failed {
            task: Task::Configuration,
            words,
        };
        if finished.status.is_none() {
            return Err(self.timed_out(Task::Configuration));
        }
        if !succeeded(&finished) {
            let said = String::from_utf8_lossy(&finished.stderr);
            return Err(failed(answer::words(&said)));
        }
        answer::settings(&finished.stdout)
            .filter(|_| !finished.is_cut)
            .ok_or_else(|| failed("it is too long to be checked".to_owned()))
    }

    fn network_command(&self, remote: &Remote, ssh: &str) -> Command {
        let mut command = self.command(&self.directory, NETWORK);
        // The user's configuration may turn one of these addresses into another, and no more.
        let protocols = if remote.is_plain_http() {
            "file:ssh:https:http"
        } else {
            "file:ssh:https"
        };
        command
            .env("GIT_ALLOW_PROTOCOL", protocols)
            .env("GIT_SSH_COMMAND", ssh);
        command
    }

    fn command(&self, git_dir: &Path, settings: &[&str]) -> Command {
        let mut command = self.bare_command();
        let mut argument = OsString::from("--git-dir=");
        argument.push(git_dir);
        command.arg(argument).current_dir(git_dir);
        for setting in settings {
            command.args([OsStr::new("-c"), OsStr::new(setting)]);
        }
        command
    }

    fn bare_command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(self.environment.variables());
        command
    }

    fn run(&self, mut command: Command, limits: Limits) -> Result<Finished, Error> {
        let failed = |source| Error::Run {
            path: self.program.clone(),
            source,
        };
        command.stdin(self.input().map_err(failed)?);
        process::run(command, limits).map_err(failed)
    }

    fn input(&self) -> io::Result<Stdio> {
        Ok(match &self.held {
            Some(lock) => lock.try_clone()?.into(),
            None => Stdio::null(),
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            time: self.time,
            output: MAX_OUTPUT,
            file: None,
        }
    }

    fn timed_out(&self, task: Task) -> Error {
        Error::TimedOut {
            task,
            limit: self.time,
        }
    }

    /// Removes what a git that was ended left behind; returns the size of the largest half pack.
    ///
    /// Nobody else is at work here.
    fn remove_leftovers(&self) -> u64 {
        for lock in LOCKS {
            // It fails when it is not there; what cannot be removed git will name.
            let _ = fs::remove_file(self.directory.join(lock));
        }
        let mut largest = 0;
        let packs = self.directory.join("objects/pack");
        for entry in fs::read_dir(packs).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            if name.starts_with(b"tmp_") || name.ends_with(b".temp") {
                let length = entry.metadata().map_or(0, |metadata| metadata.len());
                largest = largest.max(length);
                let _ = fs::remove_file(entry.path());
            }
        }
        largest
    }
}

/// How the remote is reached.
struct Connection {
    /// The command for ssh, as git runs it.
    ssh: String,
    /// The command for ssh, as the user runs it.
    user_ssh: String,
}

fn succeeded(finished: &Finished) -> bool {
    finished.status.is_some_and(|status| status.success())
}

fn untrusted(setting: &Setting, git_dir: &Path) -> Error {
    Error::Config {
        key: one_line(&setting.key),
        file: git_dir.join(match setting.scope.as_str() {
            "worktree" => "config.worktree",
            _ => "config",
        }),
    }
}

/// Finds the repository in a folder, as git does for a remote.
fn remote_git_dir(folder: &Path) -> Option<PathBuf> {
    let mut with_suffix = folder.as_os_str().to_owned();
    with_suffix.push(".git");
    [folder.join(".git"), folder.to_owned(), with_suffix.into()]
        .into_iter()
        .find(|git_dir| git_dir.join("HEAD").is_file() && git_dir.join("objects").is_dir())
}
