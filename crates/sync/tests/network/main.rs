//! Fetch and push for real: the user's git against folders, an sshd and a web server of the tests'
//! own, and against remotes, repositories and environments that mean harm.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod folder;
mod hostile;
mod http;
mod ssh;

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anamnesis_sync::{
    git::{Fetched, Git, GitEnvironment, INCOMING, Pushed},
    remote::Remote,
};
use git2::{Oid, Repository, RepositoryInitOptions, Signature, Time};

/// Never reached by a test that passes, but by those that wait for it.
const LONG: Duration = Duration::from_secs(60);

/// A person's machine: a home with git's configuration, and a repository of notes.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    fn in_folder(folder: tempfile::TempDir) -> Self {
        fs::create_dir(folder.path().join("home")).unwrap();
        let machine = Self { folder };
        initialize(&machine.git_dir(), true);
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn git_dir(&self) -> PathBuf {
        self.path("store/.git")
    }

    fn repository(&self) -> Repository {
        Repository::open(self.git_dir()).unwrap()
    }

    /// Writes the user's own configuration.
    fn write_config(&self, text: &str) {
        fs::write(self.path("home/.gitconfig"), text).unwrap();
    }

    /// Returns the environment variables that git may inherit.
    fn variables(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("HOME".into(), self.path("home").into()),
            ("PATH".into(), env::var_os("PATH").unwrap()),
        ]
    }

    fn git(&self) -> Git {
        self.git_in(self.variables(), LONG)
    }

    fn git_in(&self, variables: Vec<(OsString, OsString)>, time: Duration) -> Git {
        Git::new(GitEnvironment::choose(variables), &self.git_dir(), time).unwrap()
    }

    /// Sets the remote as `init` does.
    fn join(&self, address: &str) -> Remote {
        let remote = Remote::parse(address, false).unwrap();
        let mut config = self.repository().config().unwrap();
        config
            .set_str("remote.origin.url", remote.as_str())
            .unwrap();
        remote
    }

    fn commit(&self, name: &str, content: &[u8]) -> Oid {
        commit(&self.repository(), "refs/heads/main", name, content)
    }

    /// Returns the commit of the last fetch.
    fn incoming(&self) -> Option<Oid> {
        self.repository().refname_to_id(INCOMING).ok()
    }

    /// Pushes a new commit and fetches it again.
    fn send_and_bring(&self, remote: &Remote) {
        let sent = self.commit("note.md", b"text\n");
        assert_eq!(self.git().push(remote, None).unwrap(), Pushed::Done);
        assert_eq!(self.git().fetch(remote).unwrap(), Fetched::Main);
        assert_eq!(self.incoming(), Some(sent));
    }

    /// Returns the leftovers of a killed fetch.
    fn leftovers(&self) -> Vec<PathBuf> {
        let pack = fs::read_dir(self.git_dir().join("objects/pack")).unwrap();
        pack.map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with("tmp_")
            })
            .collect()
    }
}

/// Makes a repository whose first branch is `main`, and nothing else.
fn initialize(git_dir: &Path, is_store: bool) -> Repository {
    let mut options = RepositoryInitOptions::new();
    options
        .bare(!is_store)
        .no_dotgit_dir(true)
        .mkpath(true)
        .external_template(false)
        .initial_head("main");
    if is_store {
        options.workdir_path(git_dir.parent().unwrap());
    }
    let repository = Repository::init_opts(git_dir, &options).unwrap();
    // The work tree is the enclosing folder by default.
    let _ = repository.config().unwrap().remove("core.worktree");
    repository
}

fn commit(repository: &Repository, branch: &str, name: &str, content: &[u8]) -> Oid {
    let parent = repository
        .refname_to_id(branch)
        .ok()
        .map(|parent| repository.find_commit(parent).unwrap());
    let base = parent.as_ref().map(|parent| parent.tree().unwrap());
    let mut tree = repository.treebuilder(base.as_ref()).unwrap();
    let blob = repository.blob(content).unwrap();
    tree.insert(name, blob, 0o100_644).unwrap();
    let tree = repository.find_tree(tree.write().unwrap()).unwrap();
    let author = Signature::new("dev", "dev@example.com", &Time::new(1, 0)).unwrap();
    let parents: Vec<_> = parent.iter().collect();
    repository
        .commit(Some(branch), &author, &author, name, &tree, &parents)
        .unwrap()
}

/// A file that a program makes, if it is run.
struct Trap {
    path: PathBuf,
}

impl Trap {
    /// Writes a program that must not be run.
    fn program(marker: &Path, program: &Path) -> Self {
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        write_program(program, &format!("echo \"$0\" >>'{}'", marker.display()));
        Self {
            path: marker.to_owned(),
        }
    }

    fn was_sprung(&self) -> bool {
        self.path.exists()
    }
}

fn write_program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;

    // Another process writes the file. A file that is open for writing cannot be run, and a child
    // that another test starts now inherits our open files for a moment.
    let text = path.with_extension("text");
    fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    run(Command::new("cp").arg(&text).arg(path));
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
}

/// Runs a program that has to succeed, and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
