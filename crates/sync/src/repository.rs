//! The repository in `memory/`: opening it, committing what changed, bringing files to a commit.
//!
//! - The same repository as the Python version's: branch `main`, any git can read it.
//! - References, the index and the configuration are written under the notes lock only, and a marker
//!   stands while that happens: whoever finds it there knows that the lock files beside it are a dead
//!   process's, and removes them.
//! - git's index is a cache of file stamps to us. It is kept in step for the person who runs
//!   `git status`, and nothing depends on it.
//! - Files are brought to a commit before the branch is, and a reference remembers which commit: a
//!   process that was killed in between has its work finished by the next one.
//! - Notes, then objects, then the reference that names them are flushed to the disk in this order: a
//!   power cut leaves the old commit or the new one.

use std::{
    cell::RefCell,
    fs, io,
    path::{Path, PathBuf},
    slice,
    time::Duration,
};

use anamnesis_note::note::{NoteType, Scope};
use anamnesis_store::fs::{file, home::Home, lock::Lock};
use chrono::{DateTime, Utc};
use git2::{Commit, Oid};

use crate::{
    error::Error,
    git::{Git, INCOMING},
    git_folder, loose,
};

/// The branch that the notes are on.
pub(crate) const BRANCH: &str = "refs/heads/main";

/// The tip of the remote's branch that was joined or pushed last.
///
/// Not `refs/remotes/origin/main`: any git that fetches or pushes moves that one.
pub(crate) const JOINED: &str = "refs/anamnesis/joined";

/// What another git last saw of the remote's branch, for a store that we have not synced yet.
pub(crate) const TRACKED: &str = "refs/remotes/origin/main";

/// The commit that files are being brought to.
pub(crate) const APPLYING: &str = "refs/anamnesis/applying";

/// Stands in git's folder while references are written.
const WRITING: &str = "anamnesis-writing";

/// Stands in git's folder while git packs it, or when one that did so was ended.
pub(crate) const PACKING: &str = "anamnesis-packing";

/// The lock files that a process of ours may leave when it is killed while it writes.
pub(crate) const LOCKS: [&str; 12] = [
    "index.lock",
    "HEAD.lock",
    "config.lock",
    "packed-refs.lock",
    "refs/heads/main.lock",
    "refs/remotes/origin/main.lock",
    "refs/anamnesis/applying.lock",
    "refs/anamnesis/joined.lock",
    "refs/anamnesis/incoming.lock",
    "refs/anamnesis/purged.lock",
    "logs/HEAD.lock",
    "logs/refs/heads/main.lock",
];

/// A lock file older than this belongs to a dead process: no git holds one for an hour.
pub(crate) const STALE: Duration = Duration::from_secs(3_600);

/// An open repository.
pub struct Repository {
    pub(crate) git: git2::Repository,
    pub(crate) home: Home,
    pub(crate) machine: String,
    pub(crate) now: DateTime<Utc>,
    /// Objects that were written and may not be on the disk yet.
    unflushed: RefCell<Vec<Oid>>,
}

/// Keeps the marker in git's folder as long as it lives.
pub(crate) struct Writing(PathBuf);

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Repository {
    /// Opens the repository of a store's notes; `None` when there is none.
    ///
    /// # Errors
    /// When it is a link, belongs to a repository around it, or is of a kind that libgit2 cannot read;
    /// [`Error::Damaged`] when it is damaged.
    pub fn open(home: &Home, machine: &str, now: DateTime<Utc>) -> Result<Option<Self>, Error> {
        let folder = home.tree(Scope::Portable).join(".git");
        match fs::symlink_metadata(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&folder)(error)),
            Ok(metadata) if metadata.is_dir() => {}
            Ok(metadata) if metadata.is_file() && !git_folder::is_git_link(&folder) => {
                return Err(Error::damaged(
                    &folder,
                    "it is a file and names no repository",
                ));
            }
            Ok(_) => {
                return Err(Error::repository(
                    &folder,
                    "is a link or a file, not the folder of a repository; move it away",
                ));
            }
        }
        loose::check_new(&folder)?;
        let git = git2::Repository::open(&folder)
            .map_err(|error| git_folder::cannot_open(&folder, &error))?;
        git_folder::check_config(&folder)?;
        let repository = Self {
            git,
            home: home.clone(),
            machine: machine.to_owned(),
            now,
            unflushed: RefCell::default(),
        };
        repository.check_head()?;
        Ok(Some(repository))
    }

    /// Opens the repository, or makes one.
    ///
    /// # Errors
    /// As [`Repository::open`], and when it cannot be made.
    pub fn open_or_create(
        home: &Home,
        _lock: &Lock,
        machine: &str,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        if let Some(repository) = Self::open(home, machine, now)? {
            return Ok(repository);
        }
        home.create()?;
        let folder = home.tree(Scope::Portable);
        let git = folder.join(".git");
        if !git_folder::take_ready(&folder)? {
            let fresh = git_folder::make_beside(&folder)?;
            file::flush_tree(&fresh).map_err(Error::io(&fresh))?;
            fs::rename(&fresh, &git).map_err(Error::io(&git))?;
            file::sync_folder(&folder);
        }
        Self::open(home, machine, now)?
            .ok_or_else(|| Error::repository(&git, "vanished while it was made"))
    }

    /// Refuses to work on any other branch: the files in the folder would not be the notes.
    fn check_head(&self) -> Result<(), Error> {
        let git = self.git_folder();
        let Ok(head) = self.git.find_reference("HEAD") else {
            return Err(Error::damaged(git, "HEAD cannot be read"));
        };
        if head.symbolic_target().ok().flatten() == Some(BRANCH) {
            // libgit2 reports an unreadable packed-refs once, and from then on a missing reference.
            let is_missing = |reference| match self.git.find_reference(reference) {
                Ok(_) => Ok(false),
                Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(true),
                Err(error) => Err(Error::damaged(git, error.message())),
            };
            // Nothing deletes the branch once it has a commit.
            if is_missing(BRANCH)?
                && (!is_missing(JOINED)? || git.join("logs").join(BRANCH).exists())
            {
                return Err(Error::damaged(git, "the branch main is missing"));
            }
            return Ok(());
        }
        let folder = self.home.tree(Scope::Portable);
        let place = self.home.relative(&folder);
        let what = if self.git.state() == git2::RepositoryState::Clean {
            format!("is not on its branch main; run: git -C {place} switch main")
        } else {
            format!("is in the middle of another git's work; run: git -C {place} rebase --abort")
        };
        Err(Error::repository(&folder, what))
    }

    /// git's folder.
    pub(crate) fn git_folder(&self) -> &Path {
        self.git.path()
    }

    /// The notes' folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.home.tree(Scope::Portable)
    }

    pub(crate) fn remove_locks(&self) {
        for lock in LOCKS {
            let _ = fs::remove_file(self.git_folder().join(lock));
        }
    }

    /// Lets a git of ours pack the repository. It keeps the sync lock as long as it runs, and may leave
    /// lock files of its own when it is ended.
    pub(crate) fn pack(&self, git: &Git, _held: &SyncLock) -> Result<(), Error> {
        let marker = self.git_folder().join(PACKING);
        fs::write(&marker, "").map_err(Error::io(&marker))?;
        git.gc()?;
        fs::remove_file(&marker).map_err(Error::io(&marker))
    }

    /// Begins to write references. Lock files that stand beside an old marker are a dead process's.
    pub(crate) fn writing(&self) -> Result<Writing, Error> {
        let marker = self.git_folder().join(WRITING);
        if marker.exists() {
            self.remove_locks();
        }
        file::private_options()
            .create(true)
            .truncate(true)
            .open(&marker)
            .map_err(Error::io(&marker))?;
        Ok(Writing(marker))
    }

    /// The commit of a reference; `None` when there is no such reference.
    pub(crate) fn tip(&self, reference: &str) -> Result<Option<Commit<'_>>, Error> {
        match self.git.find_reference(reference) {
            Ok(found) => Ok(Some(found.peel_to_commit()?)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The branch's commit, if there is one yet.
    pub(crate) fn head(&self) -> Result<Option<Commit<'_>>, Error> {
        self.tip(BRANCH)
    }

    /// The tip of the remote's branch that was joined or pushed last, if any was.
    pub(crate) fn joined(&self) -> Result<Option<Commit<'_>>, Error> {
        match self.tip(JOINED)? {
            Some(joined) => Ok(Some(joined)),
            None => self.tip(TRACKED),
        }
    }

    /// Remembers which tip of the remote's branch was joined or pushed; other gits are told, too.
    pub(crate) fn set_joined(&self, lock: &Lock, commit: Oid) -> Result<(), Error> {
        self.point(lock, JOINED, commit)?;
        self.point(lock, TRACKED, commit)
    }

    /// The commit that two have in common; `None` when they have none.
    pub(crate) fn merge_base(&self, one: Oid, two: Oid) -> Result<Option<Oid>, Error> {
        match self.git.merge_base(one, two) {
            Ok(oid) => Ok(Some(oid)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How many commits one has that another has not.
    pub(crate) fn count_since(&self, commit: Oid, since: Option<Oid>) -> Result<usize, Error> {
        let mut walk = self.git.revwalk()?;
        walk.push(commit)?;
        if let Some(since) = since {
            walk.hide(since)?;
        }
        Ok(walk.count())
    }

    /// The branch's commit, abbreviated.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn short_head(&self) -> Result<Option<String>, Error> {
        let head = self.head()?;
        Ok(head.map(|commit| commit.id().to_string()[..7].to_owned()))
    }

    /// Writes a file's content.
    pub(crate) fn blob(&self, bytes: &[u8]) -> Result<Oid, Error> {
        Ok(self.wrote(self.git.blob(bytes)?))
    }

    /// Records an object to be flushed before the next reference is written.
    pub(crate) fn wrote(&self, oid: Oid) -> Oid {
        self.unflushed.borrow_mut().push(oid);
        oid
    }

    /// Flushes the objects written since the last call.
    ///
    /// libgit2's own switch (`GIT_OPT_ENABLE_FSYNC_GITDIR`) has no safe binding, waits for each object,
    /// and skips an object whose file a killed process had written already.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        let written = self.unflushed.take();
        if written.is_empty() {
            return Ok(());
        }
        let git = self.git_folder();
        let objects = git.join("objects");
        let files = written.into_iter().map(|oid| loose::path(git, oid));
        let files: Vec<PathBuf> = files.collect();
        file::flush(&files).map_err(Error::io(&objects))?;
        file::sync_folder(&objects);
        Ok(())
    }

    /// Flushes the objects, then points a reference at a commit and flushes the reference.
    pub(crate) fn set(&self, reference: &str, commit: Oid) -> Result<(), Error> {
        self.flush()?;
        self.git.reference(reference, commit, true, "anamnesis")?;
        let path = self.git_folder().join(reference);
        file::flush(slice::from_ref(&path)).map_err(Error::io(&path))
    }

    /// Points the branch at a commit of the files in the folder. The folders are flushed first: a removed
    /// note that a power cut brings back would count as a new one.
    pub(crate) fn set_branch(&self, commit: Oid) -> Result<(), Error> {
        for folder in NoteType::ALL {
            file::sync_folder(&self.folder().join(folder.as_str()));
        }
        self.set(BRANCH, commit)
    }

    /// Points a reference at a commit, with the marker that heals a kill.
    pub(crate) fn point(&self, _lock: &Lock, reference: &str, commit: Oid) -> Result<(), Error> {
        let _writing = self.writing()?;
        self.set(reference, commit)
    }

    /// Tells the repository where its remote is, as the Python version does at each run.
    pub(crate) fn set_remote(&self, _lock: &Lock, url: &str) -> Result<(), Error> {
        let current = self.git.find_remote("origin");
        let current = current.and_then(|remote| Ok(remote.url()?.to_owned())).ok();
        if current.as_deref() == Some(url) {
            return Ok(());
        }
        let _writing = self.writing()?;
        if current.is_some() {
            // What was joined of another remote says nothing about the history of this one.
            for reference in [JOINED, TRACKED, INCOMING] {
                if let Ok(mut old) = self.git.find_reference(reference) {
                    old.delete()?;
                }
            }
        }
        let mut config = self.git.config()?;
        config.set_str("remote.origin.url", url)?;
        config.set_str("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")?;
        let path = self.git_folder().join("config");
        file::flush(slice::from_ref(&path)).map_err(Error::io(&path))
    }
}

/// The place of the one process that syncs or commits all: what lies in the folder is being brought to a
/// commit by nobody else meanwhile.
#[derive(Debug)]
pub(crate) struct SyncLock(pub(crate) Lock);
