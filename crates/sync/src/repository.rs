//! The repository in `memory/`: opening it, its references, its objects.
//!
//! - The Python version uses the same repository: branch `main`, readable by any git.
//! - References, git's index and the configuration are written under the notes lock. A marker
//!   exists meanwhile. A process that finds a marker knows that the lock files beside it belong to
//!   a dead process, and removes them.
//! - Files are written before the branch moves, and a reference names the target commit. If a
//!   process is killed in between, the next one finishes its work.
//! - Notes are flushed first, then objects, then the reference that names them. After a power cut
//!   the branch is at the old commit or at the new one.

use std::{
    cell::RefCell,
    fs, io,
    path::{Path, PathBuf},
    slice,
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    note::{NoteType, Scope},
};
use anamnesis_store::fs::{
    file,
    home::Home,
    lock::{self, Lock, Subject},
};
use chrono::{DateTime, Utc};
use git2::{Commit, Oid, Sort};

use crate::{
    error::Error,
    git::{Git, INCOMING},
    git_folder, loose,
    tree::{entry, note_path},
};

/// The branch that holds the notes.
pub(crate) const BRANCH: &str = "refs/heads/main";

/// The tip of the remote's branch that was joined or pushed last.
///
/// We do not use `refs/remotes/origin/main` because every fetch or push by another git moves it.
pub(crate) const JOINED: &str = "refs/anamnesis/joined";

/// The remote's branch as another git saw it last, used by a store that has never synced.
pub(crate) const TRACKED: &str = "refs/remotes/origin/main";

/// The commit that the files are being changed to.
pub(crate) const APPLYING: &str = "refs/anamnesis/applying";

/// The marker in git's folder that exists while references are written.
const WRITING: &str = "anamnesis-writing";

/// The marker in git's folder that exists while git packs, and after a packing git was killed.
pub(crate) const PACKING: &str = "anamnesis-packing";

/// The lock files that a killed process of ours can leave.
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

/// A lock file older than this belongs to a dead process: no git holds a lock for an hour.
pub(crate) const STALE: Duration = Duration::from_secs(3_600);

/// An open repository.
pub struct Repository {
    pub(crate) git: git2::Repository,
    pub(crate) home: Home,
    pub(crate) machine: String,
    pub(crate) now: DateTime<Utc>,
    /// Objects that were written but not flushed yet.
    unflushed: RefCell<Vec<Oid>>,
}

/// Keeps the marker in git's folder until dropped.
pub(crate) struct Writing(PathBuf);

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Repository {
    /// Opens the repository of a store's notes; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the repository is damaged. [`Error::Repository`] if it is a link,
    /// belongs to an enclosing repository, or has a kind that libgit2 does not support.
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

    /// Opens the repository, or creates it.
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

    /// Refuses any other branch: its files would not be the notes.
    fn check_head(&self) -> Result<(), Error> {
        let git = self.git_folder();
        let Ok(head) = self.git.find_reference("HEAD") else {
            return Err(Error::damaged(git, "HEAD cannot be read"));
        };
        if head.symbolic_target().ok().flatten() == Some(BRANCH) {
            // libgit2 reports an unreadable packed-refs once, then reports a missing reference.
            let is_missing = |reference| match self.git.find_reference(reference) {
                Ok(_) => Ok(false),
                Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(true),
                Err(error) => Err(Error::damaged(git, error.message())),
            };
            // Nothing deletes the branch after its first commit. libgit2 writes the log first.
            if is_missing(BRANCH)? && (!is_missing(JOINED)? || git_folder::has_moved(git, BRANCH)) {
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

    /// Returns the path of `.git`.
    pub(crate) fn git_folder(&self) -> &Path {
        self.git.path()
    }

    /// Returns the notes' folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.home.tree(Scope::Portable)
    }

    pub(crate) fn remove_locks(&self) {
        for lock in LOCKS {
            let _ = fs::remove_file(self.git_folder().join(lock));
        }
    }

    /// Lets the user's git pack the repository. A killed git can leave lock files, so a marker
    /// exists meanwhile.
    pub(crate) fn pack(&self, git: &Git, _held: &SyncLock) -> Result<(), Error> {
        let marker = self.git_folder().join(PACKING);
        fs::write(&marker, "").map_err(Error::io(&marker))?;
        git.gc()?;
        fs::remove_file(&marker).map_err(Error::io(&marker))
    }

    /// Starts writing references. Lock files beside an old marker belong to a dead process.
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

    /// Returns the commit of a reference; `None` if the reference does not exist.
    pub(crate) fn tip(&self, reference: &str) -> Result<Option<Commit<'_>>, Error> {
        match self.git.find_reference(reference) {
            Ok(found) => Ok(Some(found.peel_to_commit()?)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the branch's commit, if there is one.
    pub(crate) fn head(&self) -> Result<Option<Commit<'_>>, Error> {
        self.tip(BRANCH)
    }

    /// Returns whether the branch has a note, or its tombstone.
    pub fn has_note(&self, id: NoteId) -> Result<bool, Error> {
        let Some(head) = self.head()? else {
            return Ok(false);
        };
        let tree = head.tree()?;
        let mut folders = NoteType::ALL.iter();
        Ok(folders.any(|folder| entry(&tree, &note_path(*folder, id)).is_some()))
    }

    /// Returns the tip of the remote's branch that was joined or pushed last, if any.
    pub(crate) fn joined(&self) -> Result<Option<Commit<'_>>, Error> {
        match self.tip(JOINED)? {
            Some(joined) => Ok(Some(joined)),
            None => self.tip(TRACKED),
        }
    }

    /// Records the tip that was joined or pushed, also for other gits.
    pub(crate) fn set_joined(&self, lock: &Lock, commit: Oid) -> Result<(), Error> {
        self.point(lock, JOINED, commit)?;
        self.point(lock, TRACKED, commit)
    }

    /// Returns the merge base of two commits, if there is one.
    pub(crate) fn merge_base(&self, one: Oid, two: Oid) -> Result<Option<Oid>, Error> {
        match self.git.merge_base(one, two) {
            Ok(oid) => Ok(Some(oid)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a commit is a tip or one of its ancestors.
    pub(crate) fn is_in_history(&self, commit: Oid, tip: Option<Oid>) -> Result<bool, Error> {
        let Some(tip) = tip else { return Ok(false) };
        Ok(tip == commit || self.git.graph_descendant_of(tip, commit)?)
    }

    /// Counts the commits that `commit` has and `since` does not have.
    pub(crate) fn count_since(&self, commit: Oid, since: Option<Oid>) -> Result<usize, Error> {
        Ok(self.revwalk(Sort::NONE, Some(commit), since)?.count())
    }

    /// Walks the history of a commit in an order, without the history of `since`.
    pub(crate) fn revwalk(
        &self,
        order: Sort,
        commit: Option<Oid>,
        since: Option<Oid>,
    ) -> Result<git2::Revwalk<'_>, git2::Error> {
        let mut walk = self.git.revwalk()?;
        walk.set_sorting(order)?;
        if let Some(commit) = commit {
            walk.push(commit)?;
        }
        if let Some(since) = since {
            walk.hide(since)?;
        }
        Ok(walk)
    }

    /// Returns the abbreviated id of the branch's commit.
    pub fn short_head(&self) -> Result<Option<String>, Error> {
        let head = self.head()?;
        Ok(head.map(|commit| commit.id().to_string()[..7].to_owned()))
    }

    /// Writes a blob.
    pub(crate) fn blob(&self, bytes: &[u8]) -> Result<Oid, Error> {
        Ok(self.record_written(self.git.blob(bytes)?))
    }

    /// Records an object to be flushed before the next reference is written.
    pub(crate) fn record_written(&self, oid: Oid) -> Oid {
        self.unflushed.borrow_mut().push(oid);
        oid
    }

    /// Flushes the objects written since the last call.
    ///
    /// libgit2's own option (`GIT_OPT_ENABLE_FSYNC_GITDIR`) has no safe binding, waits for each
    /// object, and skips objects that a killed process had already written.
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

    /// Points the branch at a commit, after a flush.
    pub(crate) fn set_branch(&self, commit: Oid) -> Result<(), Error> {
        self.flush_commit()?;
        self.set(BRANCH, commit)
    }

    /// Flushes what the branch needs before it moves to a new commit: the objects, and the folders. If
    /// a power cut brought back a removed note, it would count as a new one.
    pub(crate) fn flush_commit(&self) -> Result<(), Error> {
        for folder in NoteType::ALL {
            file::sync_folder(&self.folder().join(folder.as_str()));
        }
        self.flush()
    }

    /// Points a reference at a commit, under the marker.
    pub(crate) fn point(&self, _lock: &Lock, reference: &str, commit: Oid) -> Result<(), Error> {
        let _writing = self.writing()?;
        self.set(reference, commit)
    }

    /// Sets the address of the remote, as the Python version does at each run.
    pub(crate) fn set_remote(&self, _lock: &Lock, url: &str) -> Result<(), Error> {
        let current = self.git.find_remote("origin");
        let current = current.and_then(|remote| Ok(remote.url()?.to_owned())).ok();
        if current.as_deref() == Some(url) {
            return Ok(());
        }
        let _writing = self.writing()?;
        if current.is_some() {
            // The joined tip of another remote says nothing about this one's history.
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

/// Proof that this process holds the sync lock: no other process syncs or commits the whole folder.
#[derive(Debug)]
pub(crate) struct SyncLock(pub(crate) Lock);

impl SyncLock {
    /// Takes the lock of a store, which is created if need be.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process has the lock for longer than `timeout`.
    pub(crate) fn acquire(home: &Home, timeout: Duration) -> Result<Self, Error> {
        home.create()?;
        let lock = lock::acquire(home, Subject::Sync, timeout);
        let lock = lock.map_err(Error::io(&home.derived()))?;
        lock.map(Self).ok_or(Error::Busy)
    }
}
