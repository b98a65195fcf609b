//! Detects a damaged repository and replaces it with a new one.
//!
//! The notes are files; the repository holds their history and carries them to other machines. A
//! damaged repository is moved to `quarantine/` unchanged, and a new one takes its place, with a copy of
//! the old history if the branch, or the tip that was joined last, can be read completely. The files in
//! the folder are committed on top, and the remote is joined as in any sync.
//!
//! An error alone is no proof. [`find`] reads everything that a reference needs; only a missing or
//! unreadable object or reference counts as damage. A sound repository that we cannot use (another
//! branch, a newer format, untrusted settings, a link) is refused and stays.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anamnesis_note::note::Scope;
use anamnesis_store::{
    fs::{
        file,
        home::{self, Home},
    },
    notes::Notes,
};
use chrono::{DateTime, Utc};
use git2::Oid;

use crate::{
    error::Error,
    git::INCOMING,
    git_folder::{READY, make_beside, take_ready},
    loose,
    repository::{APPLYING, BRANCH, JOINED, Repository, TRACKED},
    tree::MAX_FILE,
};

/// The prefix of a repository's folder in `quarantine/`. The time follows.
const SET_ASIDE: &str = "git-";

/// An empty file in the new repository: the tip that was joined last is lost.
const LOST_JOINED: &str = "anamnesis-former";

/// A repository that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The folder it was moved to.
    pub folder: PathBuf,
    /// The damage.
    pub reason: String,
    /// Whether the new repository has the old history, as far as it was readable.
    pub keeps_history: bool,
}

impl SetAside {
    /// Describes what happened in one line; `folder` is the path to show.
    pub fn text(&self, folder: &str) -> String {
        let history = if self.keeps_history {
            "the new repository continues its history"
        } else {
            "a new history starts with the notes as they are"
        };
        let reason = &self.reason;
        format!("was damaged ({reason}) and is kept in {folder}; {history}")
    }
}

/// Returns the damaged repositories that were set aside and still exist.
pub fn set_aside_repositories(home: &Home) -> Vec<PathBuf> {
    let beside = format!(".{SET_ASIDE}");
    let places = [
        (home.quarantine(), SET_ASIDE),
        (home.tree(Scope::Portable), beside.as_str()),
    ];
    let mut found = Vec::new();
    for (folder, prefix) in places {
        let entries = file::entries(&folder);
        let is_one = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
        found.extend(entries.filter(is_one).map(|entry| entry.path()));
    }
    found.sort();
    found
}

/// Checks the repository of a store; returns what is damaged, if anything.
///
/// Reads every object that a reference needs, so the time grows with the history.
/// # Errors
/// If the repository is refused for another reason than damage, or a file has no read permission.
pub(crate) fn find(
    home: &Home,
    machine: &str,
    now: DateTime<Utc>,
) -> Result<Option<String>, Error> {
    let git = home.tree(Scope::Portable).join(".git");
    if home::is_real_folder(&git) {
        check_access(&git)?;
        loose::check(&git, None)?;
    }
    match Repository::open(home, machine, now) {
        Ok(Some(repository)) => Ok(repository.unreadable()),
        Ok(None) => Ok(None),
        Err(Error::Damaged { reason, .. }) => Ok(Some(reason)),
        Err(error) => Err(error),
    }
}

/// Reports a file without read permission: that is no damage.
fn check_access(git: &Path) -> Result<(), Error> {
    let (_, files) = file::below(git).map_err(Error::io(git))?;
    for path in files {
        match file::open_regular(&path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::io(&path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Moves the repository of a store to `quarantine/` and puts a new one in its place.
///
/// The caller holds the sync lock. A kill leaves the old repository in place, or none and the new one
/// as [`READY`].
pub(crate) fn set_aside(
    home: &Home,
    notes: &Notes,
    now: DateTime<Utc>,
    reason: String,
) -> Result<SetAside, Error> {
    let tree = home.tree(Scope::Portable);
    let git = tree.join(".git");
    let fresh = make_beside(&tree)?;
    let keeps_history = take_over(&git, &fresh)?;
    file::flush_tree(&fresh).map_err(Error::io(&fresh))?;
    home::ensure_folder(&home.quarantine())?;
    let _lock = notes.lock()?;
    let ready = tree.join(READY);
    if ready.exists() {
        fs::remove_dir_all(&ready).map_err(Error::io(&ready))?;
    }
    fs::rename(&fresh, &ready).map_err(Error::io(&ready))?;
    file::sync_folder(&tree);
    let folder = move_aside(home, &git, now).map_err(Error::io(&git))?;
    take_ready(&tree)?;
    Ok(SetAside {
        folder,
        reason,
        keeps_history,
    })
}

/// Moves `.git` into a new folder of its own, so that `git -C FOLDER log` works there.
fn move_aside(home: &Home, git: &Path, now: DateTime<Utc>) -> io::Result<PathBuf> {
    let name = format!("{SET_ASIDE}{}", now.format("%Y%m%dT%H%M%SZ"));
    let mut places = (1..).map(|number| match number {
        1 => name.clone(),
        number => format!("{name}-{number}"),
    });
    let folder = loop {
        let place = places.next().unwrap_or_default();
        let folder = home.quarantine().join(place);
        match fs::create_dir(&folder) {
            Ok(()) => break folder,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    };
    match fs::rename(git, folder.join(".git")) {
        // `memory/` is a mount point: the repository stays on that disk.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            fs::remove_dir(&folder)?;
            let beside = folder.file_name().unwrap_or_default().to_string_lossy();
            let beside = git.with_file_name(format!(".{beside}"));
            fs::rename(git, &beside)?;
            Ok(beside)
        }
        moved => {
            moved?;
            file::sync_folder(&folder);
            file::sync_folder(&home.quarantine());
            Ok(folder)
        }
    }
}

/// Copies the history of a damaged repository into a new one; `false` if it cannot be read.
fn take_over(old: &Path, fresh: &Path) -> Result<bool, Error> {
    let joined = [named_by(old, JOINED), named_by(old, TRACKED)].concat();
    // The joined tip is older than the local commits.
    let heads = [named_by(old, BRANCH), joined.clone()].concat();
    let objects = old.join("objects");
    let head = heads
        .iter()
        .find(|head| copy(&objects, fresh, **head).is_ok());
    let repository = git2::Repository::open(fresh)?;
    if let Some(head) = head {
        repository.reference(BRANCH, *head, true, "anamnesis")?;
    }
    let is_there = |oid: &&Oid| repository.find_commit(**oid).is_ok();
    if let Some(joined) = joined.iter().find(is_there) {
        for reference in [JOINED, TRACKED] {
            repository.reference(reference, *joined, true, "anamnesis")?;
        }
    } else {
        let path = fresh.join(LOST_JOINED);
        fs::write(&path, "").map_err(Error::io(&path))?;
    }
    Ok(head.is_some())
}

/// Copies a commit with everything that it needs, as one pack. Fails at the first unreadable object.
fn copy(objects: &Path, fresh: &Path, head: Oid) -> Result<(), git2::Error> {
    let repository = git2::Repository::open(fresh)?;
    let path = objects.to_str().unwrap_or_default();
    repository.odb()?.add_disk_alternate(path)?;
    let mut walk = repository.revwalk()?;
    walk.push(head)?;
    let mut pack = repository.packbuilder()?;
    pack.insert_walk(&mut walk)?;
    pack.write(&fresh.join("objects/pack"), 0)
}

/// Returns the commits that a reference names, in its own file and in `packed-refs`.
fn named_by(git: &Path, reference: &str) -> Vec<Oid> {
    let own = file::read_text(&git.join(reference), MAX_FILE);
    let packed = file::read_text(&git.join("packed-refs"), MAX_FILE);
    let packed = packed
        .lines()
        .filter_map(|line| line.strip_suffix(reference)?.strip_suffix(' '));
    [own.trim()]
        .into_iter()
        .chain(packed)
        .filter_map(oid)
        .collect()
}

fn oid(text: &str) -> Option<Oid> {
    let oid = Oid::from_str(text).ok().filter(|_| text.len() == 40);
    oid.filter(|oid| !oid.is_zero())
}

impl Repository {
    /// Returns whether this repository replaced a damaged one in which the joined tip was lost.
    pub(crate) fn has_lost_joined(&self) -> bool {
        self.git_folder().join(LOST_JOINED).exists()
    }

    /// Finds what a reference needs and cannot be read.
    fn unreadable(&self) -> Option<String> {
        let named = match self.named_objects() {
            Ok(named) => named,
            Err(reason) => return Some(reason),
        };
        let read = || -> Result<(), git2::Error> {
            let mut pack = self.git.packbuilder()?;
            let mut walk = self.git.revwalk()?;
            for oid in named {
                let object = self.git.find_object(oid, None)?;
                match object.peel_to_commit() {
                    Ok(commit) => walk.push(commit.id())?,
                    Err(_) => pack.insert_recursive(oid, None)?,
                }
            }
            pack.insert_walk(&mut walk)?;
            // Packing reads every object.
            pack.foreach(|_| true)
        };
        let error = read().err()?;
        Some(format!("an object cannot be read: {}", error.message()))
    }

    /// Returns the objects that references name, or the damaged reference. libgit2's iterator skips
    /// unreadable references, but git refuses to fetch because of them.
    pub(crate) fn named_objects(&self) -> Result<Vec<Oid>, String> {
        let cannot = |what: &str| format!("{what} cannot be read");
        let git = self.git_folder();
        let mut named = Vec::new();
        let references = self.git.references().map_err(|_| cannot("packed-refs"))?;
        for reference in references {
            let reference = reference.map_err(|_| cannot("packed-refs"))?;
            named.extend(reference.target());
        }
        let (_, files) = file::below(&git.join("refs")).map_err(|_| cannot("refs"))?;
        for path in files {
            let name = path.strip_prefix(git).unwrap_or(&path).to_string_lossy();
            let name = name.replace('\\', "/");
            // git ignores files that begin with a dot: those of file managers, editors and NFS.
            let is_hidden = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if is_hidden || path.extension().is_some_and(|ending| ending == "lock") {
                continue;
            }
            match self.git.find_reference(&name) {
                Ok(reference) => named.extend(reference.target()),
                // Another git has packed or deleted it in the meantime.
                Err(_) if !path.exists() => {}
                Err(_) => return Err(cannot(&name)),
            }
        }
        for reference in [BRANCH, JOINED, TRACKED, APPLYING, INCOMING] {
            self.tip(reference).map_err(|_| cannot(reference))?;
        }
        Ok(named)
    }
}
