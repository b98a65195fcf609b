//! Runs the user's own git, for the network and for packing.
//!
//! Fetch and push use it so that ssh's configuration, agents, jump hosts, proxies and credential
//! helpers work as in the user's shell. Everything else is done with libgit2, in memory.
//!
//! Invariants: git is run from an absolute path and in a chosen environment. No hook and no setting
//! of the repository runs a program. Nothing prompts. Every run has a limit of time, of output and,
//! for a fetch, of bytes written to the disk. The arguments contain no address, and the output no
//! credential.
//!
//! One git at a time works on a repository: the caller holds a kernel lock and passes its file to
//! [`Git::hold`], so that a git that outlives its caller still holds the lock.

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
    answer::{PushRefusal, Setting},
    process::{Finished, Limits},
};
pub use self::{
    environment::{GitEnvironment, NETWORK_VARIABLES, is_named},
    error::{Error, Task},
};
use crate::remote::Remote;

/// The default limit of bytes that a fetch may write.
pub const MAX_FETCH: u64 = 1 << 30;
/// The reference that a fetch writes.
pub const INCOMING: &str = "refs/anamnesis/incoming";

const OLDEST: (u32, u32) = (2, 30);
/// Bytes kept of git's output.
const MAX_OUTPUT: usize = 64 * 1024;
/// Bytes allowed for the whole configuration: a user's own can be long.
const MAX_SETTINGS: usize = 4 * 1024 * 1024;
/// The time limit for packing, which is rare and needs no network.
const GC_TIMEOUT: Duration = Duration::from_secs(600);

/// git flushes what a commit needs before it names the commit. A git before 2.36 does so for packs
/// only.
const FLUSHING: &str = "core.fsync=committed";

/// Settings for a git that talks to a remote. They override every file.
const NETWORK: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    FLUSHING,
    "credential.interactive=false",
    "fetch.recurseSubmodules=false",
    // All objects arrive as one pack, so the limit of a file's size applies.
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
    // git stays in the foreground, so that the lock is held while it works.
    "gc.autoDetach=false",
];

/// The receiving git of a push to a folder runs on this machine. Our settings do not reach it.
const RECEIVE_IN_FOLDER: &str = "--receive-pack=git -c core.hooksPath=/dev/null receive-pack";

/// Lock files that a killed git leaves behind.
const LOCKS: &[&str] = &[
    "refs/anamnesis/incoming.lock",
    "refs/remotes/origin/main.lock",
    "packed-refs.lock",
    "shallow.lock",
];

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The remote's `main` is at [`INCOMING`].
    Main,
    /// The remote has no branch.
    Empty,
    /// The remote has branches, but no `main`.
    NoMain {
        /// Some of its branches.
        branches: Vec<String>,
    },
}

/// The result of a push that the remote answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// The remote's `main` is our commit.
    Done,
    /// Another machine pushed first or is pushing now: fetch and try again.
    Rejected {
        /// git's message, for when more tries fail too.
        reason: String,
    },
}

/// A branch or tag of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherReference {
    /// The full name.
    pub(crate) name: String,
    /// The object that it names.
    pub(crate) object: Oid,
    /// The commit of that object.
    pub(crate) commit: Oid,
}

/// The user's git for one repository.
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
    /// Finds git and checks its version.
    ///
    /// The repository in `git_dir` need not exist yet. `time` limits a fetch or a push.
    ///
    /// # Errors
    /// If there is no git, it is older than 2.30, or it cannot be run.
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
        // The repository may not exist, but the program's folder does.
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

    /// Passes the open file of a kernel lock to git, which holds it while it runs.
    ///
    /// The file becomes git's standard input, so it has to be empty.
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

    /// Checks that the repository's own configuration has no untrusted setting.
    ///
    /// Every run on the repository starts with this check.
    ///
    /// # Errors
    /// Names the first untrusted setting.
    pub fn check_config(&self) -> Result<(), Error> {
        self.trusted_settings().map(drop)
    }

    /// Fetches the remote's `main` to [`INCOMING`], whatever its history.
    ///
    /// The address is the repository's `remote.origin.url`, which has to be `remote`.
    ///
    /// # Errors
    /// If the remote cannot be reached or sends too much. [`INCOMING`] is unchanged.
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
        let said = String::from_utf8_lossy(&finished.stderr);
        if succeeded(&finished) {
            // git fetches nothing then, and calls it a warning.
            if answer::is_shallow(&said) {
                return Err(Error::Shallow {
                    remote: remote.to_string(),
                });
            }
            self.flush(INCOMING)?;
            return Ok(Fetched::Main);
        }
        let largest = self.remove_leftovers();
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

    /// Pushes `main`. With `replacing`, replaces any history if the remote is still at that commit.
    ///
    /// # Errors
    /// If the remote cannot be reached, or refuses for another reason than a lost race.
    pub fn push(&self, remote: &Remote, replacing: Option<Oid>) -> Result<Pushed, Error> {
        self.push_from("refs/heads/main", remote, replacing)
    }

    /// Pushes like [`Git::push`], from another reference than `main`.
    pub fn push_from(
        &self,
        reference: &str,
        remote: &Remote,
        replacing: Option<Oid>,
    ) -> Result<Pushed, Error> {
        let lease = replacing.map(|expected| format!("refs/heads/main:{expected}"));
        self.push_refspec(&format!("{reference}:refs/heads/main"), remote, lease)
    }

    fn push_refspec(
        &self,
        refspec: &str,
        remote: &Remote,
        lease: Option<String>,
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
        if remote.folder().is_some() {
            command.arg(RECEIVE_IN_FOLDER);
        }
        command.args(lease.map(|lease| format!("--force-with-lease={lease}")));
        command.args(["origin", refspec]);
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
            Some(PushRefusal::TooLate(reason)) => Ok(Pushed::Rejected { reason }),
            Some(PushRefusal::Refused(words)) => Err(Error::Refused {
                remote: remote.to_string(),
                words,
            }),
            None => Err(self.explain(task, remote, &connection, &said)),
        }
    }

    /// Packs the repository if git considers it due.
    pub fn gc(&self) -> Result<(), Error> {
        self.trusted_settings()?;
        self.tidy(&self.directory, &["gc", "--auto", "--quiet"])?;
        self.flush("packed-refs")
    }

    /// Removes all unreferenced objects and the reflogs.
    ///
    /// # Errors
    /// If git fails; objects may be left then.
    pub fn prune_now(&self) -> Result<(), Error> {
        self.trusted_settings()?;
        self.remove_leftovers();
        self.prune(&self.directory)?;
        self.flush("packed-refs")
    }

    /// Does the same as [`Git::prune_now`] in a remote that is a folder.
    ///
    /// # Errors
    /// If there is no repository, its configuration has an untrusted setting, or git fails.
    pub fn prune_remote(&self, folder: &Path) -> Result<(), Error> {
        self.prune(&self.check_folder(folder)?)
    }

    /// Returns the repository in a remote that is a folder. git reads its configuration on this
    /// machine, so it must not have an untrusted setting.
    fn check_folder(&self, folder: &Path) -> Result<PathBuf, Error> {
        let git_dir = remote_git_dir(folder).ok_or_else(|| Error::NoRepository {
            remote: folder.display().to_string(),
            words: "there is no repository in this folder".to_owned(),
        })?;
        let settings = self.settings(&git_dir)?;
        match settings::untrusted_of_remote(&settings) {
            Some(setting) => Err(untrusted(setting, &git_dir)),
            None => Ok(git_dir),
        }
    }

    /// Returns the branches and tags of the remote except `main`, each with its object and its commit.
    pub(crate) fn other_references(&self, remote: &Remote) -> Result<Vec<OtherReference>, Error> {
        let connection = self.connect(remote)?;
        let listed = self.list(remote, &connection, &["--heads", "--tags"])?;
        Ok(answer::other_references(&listed))
    }

    /// Deletes a branch or tag of the remote, if it is still at its object.
    pub(crate) fn delete_reference(
        &self,
        remote: &Remote,
        reference: &OtherReference,
    ) -> Result<Pushed, Error> {
        let OtherReference { name, object, .. } = reference;
        let lease = Some(format!("{name}:{object}"));
        self.push_refspec(&format!(":{name}"), remote, lease)
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
            // Otherwise git skips packs above the user's threshold.
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

    /// Flushes the names of packs, which git does not do, and a reference file, which an old git
    /// does not do.
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
            time: GC_TIMEOUT,
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
                limit: GC_TIMEOUT,
            }),
        }
    }

    /// Lists the branches of a remote without `main`.
    fn look_around(&self, remote: &Remote, connection: &Connection) -> Result<Fetched, Error> {
        let branches = answer::other_branches(&self.list(remote, connection, &["--heads"])?);
        Ok(if branches.is_empty() {
            Fetched::Empty
        } else {
            Fetched::NoMain { branches }
        })
    }

    /// Returns git's list of the remote's references of these kinds.
    fn list(
        &self,
        remote: &Remote,
        connection: &Connection,
        kinds: &[&str],
    ) -> Result<Vec<u8>, Error> {
        let finished = self.ls_remote(remote, &connection.ssh, kinds)?;
        let task = Task::Fetch(remote.to_string());
        if finished.status.is_none() {
            return Err(self.timed_out(task));
        }
        if !succeeded(&finished) {
            let said = String::from_utf8_lossy(&finished.stderr);
            return Err(self.explain(task, remote, connection, &said));
        }
        Ok(finished.stdout)
    }

    fn ls_remote(&self, remote: &Remote, ssh: &str, kinds: &[&str]) -> Result<Finished, Error> {
        let mut command = self.network_command(remote, ssh);
        command
            .args(["ls-remote", "--quiet"])
            .args(kinds)
            .arg("origin");
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
            // The user's git is configured to use ssh for this address.
            None => (remote.to_string(), remote.to_string()),
        };
        if answer::is_host_changed(said) {
            return Error::ChangedHost {
                host,
                fingerprint: answer::fingerprint(said),
            };
        }
        // ssh prints the fingerprint of a refused key only in verbose mode.
        let again = self.ls_remote(remote, &format!("{} -v", connection.ssh), &["--heads"]);
        Error::UnknownHost {
            host,
            fingerprint: again
                .ok()
                .and_then(|again| answer::fingerprint(&String::from_utf8_lossy(&again.stderr))),
            command: format!("{} {place}", one_line(&connection.user_ssh)),
        }
    }

    /// Checks the preconditions of a run with the network.
    fn connect(&self, remote: &Remote) -> Result<Connection, Error> {
        let settings = self.trusted_settings()?;
        if !settings::addresses(&settings).eq([remote.as_str()]) {
            return Err(Error::OtherRemote {
                file: self.directory.join("config"),
            });
        }
        // A removable disk that is not connected is no mistake in the address.
        if let Some(folder) = remote.folder()
            && !folder.exists()
        {
            return Err(Error::Offline {
                remote: remote.to_string(),
                words: "there is no such folder now".to_owned(),
            });
        }
        if let Some(folder) = remote.folder() {
            self.check_folder(folder)?;
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

    /// Reads the whole configuration through git itself, so that both interpret the files alike.
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
        // The user's configuration may rewrite these addresses, but only once.
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

    /// Removes the leftovers of a killed git; returns the size of the largest partial pack.
    ///
    /// The caller holds the lock.
    fn remove_leftovers(&self) -> u64 {
        for lock in LOCKS {
            // The file may not exist. If it cannot be removed, git reports it.
            let _ = fs::remove_file(self.directory.join(lock));
        }
        let mut largest = 0;
        let packs = self.directory.join("objects/pack");
        for entry in file::entries(&packs) {
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

/// A checked connection to a remote.
struct Connection {
    /// The ssh command that git runs.
    ssh: String,
    /// The user's own ssh command.
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
    let places = [folder.join(".git"), folder.to_owned(), with_suffix.into()];
    // A file `.git` leads git to another repository.
    if places[0].is_file() {
        return None;
    }
    let is_repository =
        |git_dir: &PathBuf| git_dir.join("HEAD").is_file() && git_dir.join("objects").is_dir();
    places.into_iter().find(is_repository)
}
