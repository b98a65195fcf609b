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
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    path::{Path, PathBuf},
    slice,
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    merge::{self, Sibling},
    note::{NoteFile, NoteType, Scope, State, timestamp},
    usage_log::join_lines,
};
use anamnesis_store::{
    fs::{
        file::{self, Stamp},
        home::{self, Home},
        lock::Lock,
    },
    notes::{NotePath, Notes, Problem},
    usage_log::Receipts,
};
use chrono::{DateTime, Utc};
use git2::{
    Commit, IndexEntry, IndexEntryExtendedFlag, IndexTime, ObjectType, Oid, Signature, Time, Tree,
};
use ulid::Ulid;

use crate::{
    damage,
    error::Error,
    git::{Git, INCOMING},
    layout, loose,
    tree::{self, Change, Changes, MAX_FILE, Named, note_path},
};

/// The branch that the notes are on.
pub(crate) const BRANCH: &str = "refs/heads/main";

/// The tip of the remote's branch that was joined or pushed last.
///
/// Not `refs/remotes/origin/main`: any git that fetches or pushes moves that one.
pub(crate) const JOINED: &str = "refs/anamnesis/joined";

/// What another git last saw of the remote's branch, for a store that we have not synced yet.
pub(crate) const TRACKED: &str = "refs/remotes/origin/main";

/// From how many objects on that are not packed git packs them.
pub(crate) const LOOSE_OBJECTS: usize = 500;

/// The commit that files are being brought to.
pub(crate) const APPLYING: &str = "refs/anamnesis/applying";

/// Stands in git's folder while references are written.
const WRITING: &str = "anamnesis-writing";

/// Stands in git's folder while git packs it, or when one that did so was ended.
const PACKING: &str = "anamnesis-packing";

/// The lock files that a process of ours may leave when it is killed while it writes.
const LOCKS: [&str; 12] = [
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
const STALE: Duration = Duration::from_secs(3_600);

/// More notes than this, and more than a fifth of all, are not deleted without a word of the person.
pub(crate) const MANY: usize = 20;

/// From how many new notes on they are written together.
const TOGETHER: usize = 32;

/// How many bytes of notes are written together.
const TOGETHER_BYTES: usize = 64 * 1024 * 1024;

/// The end of the year 9999: a commit that says that it is later is not believed.
const LATEST: i64 = 253_402_300_799;

/// The trailer that names a batch.
pub(crate) const BATCH: &str = "Anamnesis-Batch";

/// The trailer that names who made it.
pub(crate) const ACTOR: &str = "Anamnesis-Actor";

/// An open repository.
pub struct Repository {
    pub(crate) git: git2::Repository,
    pub(crate) home: Home,
    machine: String,
    pub(crate) now: DateTime<Utc>,
    /// Objects that were written and may not be on the disk yet.
    unflushed: RefCell<Vec<Oid>>,
}

/// What a commit is about.
#[derive(Debug, Clone, Copy)]
pub struct Act<'a> {
    /// The verb in its first line: `sync`, or the command.
    pub verb: &'a str,
    /// Who did it: `person`, `agent`, `session`, `reflection`, `import` or `machine`.
    pub actor: &'a str,
}

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its batch, by which it can be undone.
    pub batch: Ulid,
    /// The notes in it.
    pub notes: BTreeSet<NoteId>,
}

/// What changed in the folder since the branch's tip.
#[derive(Debug, Default)]
struct Staged {
    /// By path.
    changes: FileChanges,
    /// Files that are too large to travel.
    problems: Vec<Problem>,
    /// How many notes the branch's tip has.
    notes_before: usize,
}

impl Staged {
    /// The notes' files that are gone and lie nowhere else.
    fn gone(&self) -> Vec<String> {
        let is_elsewhere = |id| {
            NoteType::ALL.iter().any(|folder| {
                let there = self.changes.get(&note_path(*folder, id));
                there.is_some_and(Option::is_some)
            })
        };
        let gone = self
            .changes
            .iter()
            .filter(|(path, new)| match tree::named(path) {
                Named::Note(_, id) => new.is_none() && !is_elsewhere(id),
                _ => false,
            });
        gone.map(|(path, _)| path.clone()).collect()
    }
}

/// A commit that was written.
struct Made {
    commit: Oid,
    batch: Ulid,
}

/// What became of files: what is there now, with the stamp of the file it was read from.
type FileChanges = BTreeMap<String, Option<(Oid, Stamp)>>;

/// What bringing files to a commit did.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Notes whose file was written or removed.
    pub(crate) notes: BTreeSet<NoteId>,
    /// When the folders had changed last before.
    pub(crate) before: [i64; 6],
}

/// Keeps the marker in git's folder as long as it lives.
struct Writing(PathBuf);

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
            Ok(metadata) if metadata.is_file() && !damage::is_git_link(&folder) => {
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
            .map_err(|error| damage::cannot_open(&folder, &error))?;
        damage::check_config(&folder)?;
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
        if !damage::take_ready(&folder)? {
            let fresh = make_beside(&folder)?;
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
    fn folder(&self) -> PathBuf {
        self.home.tree(Scope::Portable)
    }

    fn remove_locks(&self) {
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
    fn writing(&self) -> Result<Writing, Error> {
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

    /// The branch's commit, abbreviated.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn short_head(&self) -> Result<Option<String>, Error> {
        let head = self.head()?;
        Ok(head.map(|commit| commit.id().to_string()[..7].to_owned()))
    }

    /// Finishes what a killed process had begun. The caller has the sync lock, too.
    ///
    /// Not where somebody has committed since: the branch must not go back. What was brought here
    /// already then counts as changed here, and is joined once more.
    pub(crate) fn heal(&self, lock: &Lock, notes: &Notes) -> Result<Applied, Error> {
        if let Err(reason) = self.named_objects() {
            return Err(Error::damaged(self.git_folder(), reason));
        }
        // A power cut may have removed the marker, or another git left the lock file.
        for lock in LOCKS {
            let path = self.git_folder().join(lock);
            let modified = fs::symlink_metadata(&path).and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|modified| modified.elapsed().ok());
            if age.is_some_and(|age| age > STALE) {
                let _ = fs::remove_file(path);
            }
        }
        // Under both locks no git of ours is at work any more.
        let packing = self.git_folder().join(PACKING);
        if packing.exists() || self.is_pruning() {
            self.remove_locks();
            let _ = fs::remove_file(&packing);
        }
        drop(self.writing()?);
        // Another git had it locked, and what it said was no longer so; or it is damaged.
        if let Some(head) = self.head()?
            && !(self.git_folder().join("index").exists() && self.git.index().is_ok())
        {
            self.keep_index_in_step(head.tree_id(), &BTreeMap::new());
        }
        let nothing = Applied {
            before: notes.folder_times(),
            ..Applied::default()
        };
        let Some(target) = self.tip(APPLYING)?.map(|commit| commit.id()) else {
            return Ok(nothing);
        };
        let goes_on = match self.head()? {
            Some(head) => self.git.graph_descendant_of(target, head.id())?,
            None => true,
        };
        if goes_on {
            return self.bring_to(lock, notes, target);
        }
        let _writing = self.writing()?;
        self.git.find_reference(APPLYING)?.delete()?;
        Ok(nothing)
    }

    /// Commits what became of some notes, in one batch; `None` when nothing did.
    ///
    /// # Errors
    /// When the repository or a file cannot be read or written.
    pub fn commit_notes(
        &self,
        lock: &Lock,
        ids: &BTreeSet<NoteId>,
        act: Act<'_>,
    ) -> Result<Option<Committed>, Error> {
        let head = self.head()?;
        let tree = head.as_ref().map(Commit::tree).transpose()?;
        let mut staged = Staged::default();
        for id in ids {
            let mut places = Vec::with_capacity(NoteType::ALL.len());
            for folder in NoteType::ALL {
                let path = NotePath {
                    scope: Scope::Portable,
                    folder: *folder,
                    id: *id,
                };
                let path = path.absolute(&self.home);
                let name = note_path(*folder, *id);
                let old = tree.as_ref().and_then(|tree| entry(tree, &name));
                self.stage(&name, &path, old, None, &mut staged)?;
                places.push(Place {
                    name,
                    is_committed: old.is_some(),
                    is_there: path.exists(),
                });
            }
            settle(&mut staged.changes, &places);
        }
        let Some(made) = self.make_commit(head.as_ref(), &staged.changes, act)? else {
            return Ok(None);
        };
        self.move_branch(lock, made.commit, &staged.changes)?;
        Ok(Some(Committed {
            batch: made.batch,
            notes: ids_of(&staged.changes),
        }))
    }

    /// Commits everything of ours that changed in the folder, one commit a session and actor.
    ///
    /// A file is committed as it was when it was looked at; what changes meanwhile is for the next
    /// time. So the notes are locked for as long as the branch takes to move, not while files are read.
    /// Files that are gone stay in the branch when they are many: how many, and of how many, is told.
    ///
    /// # Errors
    /// When the repository or a file cannot be read or written.
    pub(crate) fn commit_all(
        &self,
        _held: &SyncLock,
        notes: &Notes,
        installation: Option<&str>,
        may_delete: bool,
    ) -> Result<Gathered, Error> {
        loop {
            let head = self.head()?;
            let expected = head.as_ref().map(Commit::id);
            let mut staged = self.stage_all(notes, installation)?;
            let mut gathered = Gathered {
                problems: std::mem::take(&mut staged.problems),
                ..Gathered::default()
            };
            Self::settle_moves(notes, head.as_ref(), &mut staged)?;
            let gone = staged.gone();
            if !may_delete && is_mass(gone.len(), staged.notes_before) {
                gathered.held_back = Some((gone.len(), staged.notes_before));
                for path in &gone {
                    staged.changes.remove(path);
                }
            }
            let mut tip = head;
            for ((_, actor), changes) in self.by_session(staged.changes.clone())? {
                let act = Act {
                    verb: "sync",
                    actor: &actor,
                };
                if let Some(made) = self.make_commit(tip.as_ref(), &changes, act)? {
                    tip = Some(self.git.find_commit(made.commit)?);
                    gathered.commits += 1;
                }
            }
            let Some(tip) = tip.filter(|tip| Some(tip.id()) != expected) else {
                return Ok(gathered);
            };
            // Before the lock: many objects take long.
            self.flush()?;
            let lock = notes.lock()?;
            // A command may have committed meanwhile.
            if self.head()?.map(|head| head.id()) == expected {
                self.move_branch(&lock, tip.id(), &staged.changes)?;
                return Ok(gathered);
            }
        }
    }

    /// Tells whether something of ours changed since the branch's tip.
    pub(crate) fn is_dirty(
        &self,
        notes: &Notes,
        installation: Option<&str>,
    ) -> Result<bool, Error> {
        Ok(!self.stage_all(notes, installation)?.changes.is_empty())
    }

    /// Puts the files back that are gone from the folder and stand in the branch.
    pub(crate) fn restore_missing(&self, lock: &Lock, notes: &Notes) -> Result<Applied, Error> {
        let mut applied = Applied {
            before: notes.folder_times(),
            ..Applied::default()
        };
        let Some(tree) = self.head()?.as_ref().map(Commit::tree).transpose()? else {
            return Ok(applied);
        };
        let staged = self.stage_all(notes, None)?;
        for path in staged.changes.iter().filter(|(_, new)| new.is_none()) {
            if let (Named::Note(folder, id), Some(oid)) =
                (tree::named(path.0), entry(&tree, path.0))
                && notes.find(id).is_none()
            {
                let scope = Scope::Portable;
                let blob = self.git.find_blob(oid)?;
                notes.place(lock, NotePath { scope, folder, id }, blob.content())?;
                applied.notes.insert(id);
            }
        }
        Ok(applied)
    }

    /// Puts right what was seen of notes that a command was moving to another folder meanwhile: such a note
    /// may have been seen in neither folder, or in both.
    fn settle_moves(
        notes: &Notes,
        head: Option<&Commit<'_>>,
        staged: &mut Staged,
    ) -> Result<(), Error> {
        let tree = head.map(Commit::tree).transpose()?;
        let is_committed = |name: &str| {
            tree.as_ref()
                .is_some_and(|tree| entry(tree, name).is_some())
        };
        let moving = staged.changes.iter().filter_map(|(name, new)| {
            let Named::Note(_, id) = tree::named(name) else {
                return None;
            };
            (new.is_none() || !is_committed(name)).then_some(id)
        });
        let moving: BTreeSet<NoteId> = moving.collect();
        if moving.is_empty() {
            return Ok(());
        }
        let _lock = notes.lock()?;
        for id in moving {
            let places = NoteType::ALL.iter().map(|folder| {
                let path = NotePath {
                    scope: Scope::Portable,
                    folder: *folder,
                    id,
                };
                let name = note_path(*folder, id);
                Place {
                    is_committed: is_committed(&name),
                    is_there: notes.stamp(path).is_some(),
                    name,
                }
            });
            settle(&mut staged.changes, &places.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Looks at one file of the folder.
    fn stage(
        &self,
        name: &str,
        path: &Path,
        old: Option<Oid>,
        cached: Option<(Oid, Stamp)>,
        staged: &mut Staged,
    ) -> Result<(), Error> {
        if let Some((oid, stamp)) = cached {
            if old != Some(oid) {
                staged.changes.insert(name.to_owned(), Some((oid, stamp)));
            }
            return Ok(());
        }
        match file::read_head(path, MAX_FILE) {
            Ok((_, _, false)) => staged.problems.push(Problem {
                path: format!("memory/{name}"),
                reason: "over 16 MiB; it stays on this machine".to_owned(),
            }),
            Ok((bytes, stamp, true)) => {
                let oid = Oid::hash_object(ObjectType::Blob, &bytes)?;
                if old != Some(oid) {
                    self.blob(&bytes)?;
                    staged.changes.insert(name.to_owned(), Some((oid, stamp)));
                }
            }
            Err(_) if old.is_some() && self.is_gone(name) => {
                staged.changes.insert(name.to_owned(), None);
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Looks at every file of ours in the folder, reading those whose stamp is new. Of the receipts only
    /// this installation's folders are looked at: nobody else writes them, and what a copied store has
    /// of them is older than what their machine has.
    fn stage_all(&self, notes: &Notes, installation: Option<&str>) -> Result<Staged, Error> {
        let receipts = installation.map(|id| Receipts::new(self.home.clone()).folders_of(id));
        let receipts = receipts.unwrap_or_default();
        let head = self.head()?;
        let tree = head.as_ref().map(Commit::tree).transpose()?;
        let mut committed = tree::own_files(&self.git, tree.as_ref())?;
        committed.others.retain(|path, _| {
            let machine = path.strip_prefix(".usage/");
            let machine = machine.and_then(|rest| rest.split('/').next());
            machine.is_none_or(|machine| receipts.iter().any(|own| own == machine))
        });
        let mut staged = Staged {
            notes_before: committed.notes.len(),
            ..Staged::default()
        };
        let cache = self.cache();
        let unchanged = |known: Option<&(Oid, Known)>, stamp: Option<Stamp>| {
            let (oid, known) = known?;
            let stamp = stamp.filter(|stamp| same(*known, *stamp))?;
            Some((*oid, stamp))
        };
        for (path, stamp) in notes.list_scope(Scope::Portable).notes {
            let key = (path.folder, path.id);
            let old = committed.notes.remove(&key);
            let cached = unchanged(cache.notes.get(&key), Some(stamp));
            if cached.is_some_and(|(oid, _)| old == Some(oid)) {
                continue;
            }
            let name = note_path(path.folder, path.id);
            self.stage(&name, &path.absolute(&self.home), old, cached, &mut staged)?;
        }
        for name in self.own_other_files(&receipts) {
            let old = committed.others.remove(&name);
            let path = self.folder().join(&name);
            let stamp = fs::symlink_metadata(&path).map(|metadata| Stamp::of(&metadata));
            let cached = unchanged(cache.others.get(&name), stamp.ok());
            self.stage(&name, &path, old, cached, &mut staged)?;
        }
        let missing = committed.notes.into_keys();
        let missing = missing.map(|(folder, id)| note_path(folder, id));
        let missing = missing.chain(committed.others.into_keys());
        let gone = missing.filter(|name| self.is_gone(name));
        staged.changes.extend(gone.map(|name| (name, None)));
        Ok(staged)
    }

    /// Tells whether nothing lies at a path. Behind a link, and in a folder that cannot be looked into,
    /// that is not known; what lies in the place of a file does not delete it either.
    fn is_gone(&self, name: &str) -> bool {
        let mut place = self.folder();
        for part in Path::new(name) {
            place.push(part);
            match fs::symlink_metadata(&place) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return false,
                Err(error) => return error.kind() == io::ErrorKind::NotFound,
            }
        }
        false
    }

    /// Receipts and the marker, as they lie in the folder.
    fn own_other_files(&self, receipts: &[String]) -> Vec<String> {
        let mut names = Vec::new();
        if self.folder().join(tree::LAYOUT).is_file() {
            names.push(tree::LAYOUT.to_owned());
        }
        let usage = self.folder().join(tree::USAGE);
        if !home::is_real_folder(&usage) {
            return names;
        }
        for machine in receipts {
            let folder = usage.join(machine);
            if !tree::is_machine(machine) || !home::is_real_folder(&folder) {
                continue;
            }
            let files = folder_names(&folder).into_iter();
            let files = files.filter(|name| tree::is_receipt(name));
            names.extend(files.map(|name| format!("{}/{machine}/{name}", tree::USAGE)));
        }
        names
    }

    /// What git's index knows of files. An entry as young as the index itself tells nothing: the file
    /// may have changed within the same tick of the clock.
    fn cache(&self) -> Cache {
        let mut cache = Cache::default();
        let Ok(metadata) = fs::symlink_metadata(self.git_folder().join("index")) else {
            return cache;
        };
        let written = Stamp::of(&metadata).modified;
        // One that cannot be read is no cache.
        let Ok(index) = self.git.index() else {
            return cache;
        };
        for entry in index.iter() {
            let known = Known::of(&entry);
            if known.modified() >= written {
                continue;
            }
            let Ok(path) = String::from_utf8(entry.path) else {
                continue;
            };
            match tree::named(&path) {
                Named::Note(folder, id) => {
                    cache.notes.insert((folder, id), (entry.id, known));
                }
                _ => {
                    cache.others.insert(path, (entry.id, known));
                }
            }
        }
        cache
    }

    /// Puts changes apart by the session and the actor of the notes; what is no note goes with the
    /// machine's own.
    fn by_session(&self, changes: FileChanges) -> Result<Groups, Error> {
        let tree = self.head()?.as_ref().map(Commit::tree).transpose()?;
        let mut groups = Groups::new();
        for (path, change) in changes {
            let Named::Note(_, id) = tree::named(&path) else {
                let key = (String::new(), "machine".to_owned());
                groups.entry(key).or_default().insert(path, change);
                continue;
            };
            let oid = match &change {
                Some((oid, _)) => Some(*oid),
                None => tree.as_ref().and_then(|tree| entry(tree, &path)),
            };
            let key = match oid {
                Some(oid) => {
                    let blob = self.git.find_blob(oid)?;
                    authorship(blob.content(), id)
                }
                None => (String::new(), "person".to_owned()),
            };
            groups.entry(key).or_default().insert(path, change);
        }
        Ok(groups)
    }

    /// Writes a commit of changes to the folder, which no reference names yet; `None` when they change
    /// nothing.
    fn make_commit(
        &self,
        parent: Option<&Commit<'_>>,
        changes: &FileChanges,
        act: Act<'_>,
    ) -> Result<Option<Made>, Error> {
        let base = parent.map(Commit::tree).transpose()?;
        layout::check_own(&self.git, base.as_ref())?;
        let updates = changes
            .iter()
            .map(|(path, new)| (path.clone(), new.map(|(oid, _)| (oid, FILE))))
            .collect();
        let tree = self.tree_with(base.as_ref(), &updates)?;
        if base.is_some_and(|base| base.id() == tree) {
            return Ok(None);
        }
        let batch = Ulid::generate();
        let parents: Vec<&Commit<'_>> = parent.into_iter().collect();
        let commit = self.write_commit(tree, &parents, act, Some(batch))?;
        Ok(Some(Made { commit, batch }))
    }

    /// Moves the branch to a commit of what lies in the folder.
    fn move_branch(&self, _lock: &Lock, commit: Oid, changes: &FileChanges) -> Result<(), Error> {
        let _writing = self.writing()?;
        self.set_branch(commit)?;
        let stamps = changes
            .iter()
            .filter_map(|(path, new)| Some((path.clone(), (*new)?)))
            .collect();
        self.keep_index_in_step(self.git.find_commit(commit)?.tree_id(), &stamps);
        Ok(())
    }

    /// Writes the tree that has these paths changed.
    pub(crate) fn tree_with(
        &self,
        base: Option<&Tree<'_>>,
        updates: &BTreeMap<String, Option<(Oid, i32)>>,
    ) -> Result<Oid, Error> {
        let updates: Vec<Update<'_>> = updates
            .iter()
            .map(|(path, new)| (path.as_str(), *new))
            .collect();
        self.folder_with(base, "", &updates)
    }

    /// Writes the tree of one folder. Where a file and a folder of the same name come together, the one
    /// that is ours stays, else the folder.
    fn folder_with(
        &self,
        base: Option<&Tree<'_>>,
        folder: &str,
        updates: &[Update<'_>],
    ) -> Result<Oid, Error> {
        let mut files = BTreeMap::new();
        let mut folders: BTreeMap<&str, Vec<Update<'_>>> = BTreeMap::new();
        for (path, new) in updates {
            match path.split_once('/') {
                Some((name, below)) => folders.entry(name).or_default().push((below, *new)),
                None => {
                    files.insert(*path, *new);
                }
            }
        }
        let names: BTreeSet<&str> = files.keys().chain(folders.keys()).copied().collect();
        let mut builder = self.git.treebuilder(base)?;
        for name in names {
            let path = if folder.is_empty() {
                name.to_owned()
            } else {
                format!("{folder}/{name}")
            };
            let old = builder.get(name)?;
            let old = old.map(|entry| (entry.id(), entry.filemode_raw()));
            let (old_folder, old_file) = match old {
                Some((oid, tree::TREE)) => (Some(self.git.find_tree(oid)?), None),
                old => (None, old),
            };
            let file = files.get(name).copied().unwrap_or(old_file);
            let inner = match folders.get(name) {
                Some(below) => Some(self.folder_with(old_folder.as_ref(), &path, below)?),
                None => old_folder.map(|folder| folder.id()),
            };
            let inner = match inner {
                Some(oid) if self.git.find_tree(oid)?.is_empty() => None,
                inner => inner,
            };
            let new = match (file, inner) {
                (Some(file), None) => Some(file),
                (Some(file), Some(_)) if tree::named(&path) != Named::Other => Some(file),
                (_, Some(oid)) => Some((oid, tree::TREE)),
                (None, None) => None,
            };
            match new {
                new if new == old => {}
                Some((oid, mode)) => {
                    let mode = match mode {
                        tree::TREE | EXECUTABLE => mode,
                        _ => FILE,
                    };
                    builder.insert(name, oid, mode)?;
                }
                None => builder.remove(name)?,
            }
        }
        Ok(self.wrote(builder.write()?))
    }

    /// Writes a commit that no reference names yet.
    pub(crate) fn write_commit(
        &self,
        tree: Oid,
        parents: &[&Commit<'_>],
        act: Act<'_>,
        batch: Option<Ulid>,
    ) -> Result<Oid, Error> {
        let machine = name_in_commits(&self.machine);
        // A clock that goes wrong must not make a commit older than what it is built on.
        let latest = parents.iter().map(|parent| parent.time().seconds());
        let latest = latest.filter(|seconds| *seconds <= LATEST).max();
        let seconds = self.now.timestamp().max(latest.unwrap_or(i64::MIN));
        let signature = Signature::new(
            "anamnesis",
            &format!("anamnesis@{machine}"),
            &Time::new(seconds, 0),
        )?;
        let batch = batch.map_or_else(String::new, |batch| format!("{BATCH}: {batch}\n"));
        let message = format!(
            "anamnesis: {} from {machine} at {}\n\n{batch}{ACTOR}: {}\n",
            act.verb,
            timestamp(self.now),
            act.actor,
        );
        let tree = self.git.find_tree(tree)?;
        let commit = self
            .git
            .commit(None, &signature, &signature, &message, &tree, parents)?;
        Ok(self.wrote(commit))
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
    fn flush(&self) -> Result<(), Error> {
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
    fn set_branch(&self, commit: Oid) -> Result<(), Error> {
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

    /// Brings files, then the branch, to a commit.
    ///
    /// A file that was changed since the branch's tip is merged, not written over: the change is
    /// committed by the next run.
    pub(crate) fn bring_to(
        &self,
        lock: &Lock,
        notes: &Notes,
        target: Oid,
    ) -> Result<Applied, Error> {
        let _writing = self.writing()?;
        let before = notes.folder_times();
        self.set(APPLYING, target)?;
        let commit = self.git.find_commit(target)?;
        let new_tree = commit.tree()?;
        let old_tree = self.head()?.as_ref().map(Commit::tree).transpose()?;
        let changes = Changes::between(&self.git, old_tree.as_ref(), Some(&new_tree))?;
        let mut applied = Applied {
            before,
            ..Applied::default()
        };
        let mut stamps = self.place_new(lock, notes, &changes)?;
        for (id, change) in &changes.notes {
            self.bring_note(lock, notes, *id, *change, &mut applied, &mut stamps)?;
        }
        for (path, change) in &changes.others {
            if matches!(tree::named(path), Named::Receipt | Named::Layout) {
                self.bring_file(path, *change)?;
            }
        }
        self.set_branch(target)?;
        self.keep_index_in_step(new_tree.id(), &stamps);
        self.git.find_reference(APPLYING)?.delete()?;
        Ok(applied)
    }

    /// Writes the files of new notes, if they are many. Each is looked at again with the others.
    fn place_new(
        &self,
        lock: &Lock,
        notes: &Notes,
        changes: &Changes,
    ) -> Result<BTreeMap<String, (Oid, Stamp)>, Error> {
        let mut stamps = BTreeMap::new();
        let new: Vec<(NotePath, Oid)> = changes
            .notes
            .iter()
            .filter(|(_, change)| change.old.is_none())
            .filter_map(|(id, change)| {
                let (folder, oid) = change.new?;
                let (scope, id) = (Scope::Portable, *id);
                Some((NotePath { scope, folder, id }, oid))
            })
            .filter(|(path, _)| notes.stamp(*path).is_none())
            .collect();
        if new.len() < TOGETHER {
            return Ok(stamps);
        }
        let oids: HashMap<NotePath, Oid> = new.iter().copied().collect();
        let mut new = new.into_iter().peekable();
        while new.peek().is_some() {
            let mut files = Vec::new();
            let mut length = 0;
            while length < TOGETHER_BYTES
                && let Some((path, oid)) = new.next()
            {
                let bytes = self.read(oid)?;
                length += bytes.len();
                files.push((path, bytes));
            }
            for (path, stamp) in notes.place_new(lock, files)? {
                if let Some(oid) = oids.get(&path) {
                    stamps.insert(note_path(path.folder, path.id), (*oid, stamp));
                }
            }
        }
        Ok(stamps)
    }

    /// Brings one note's file to what a commit says.
    fn bring_note(
        &self,
        lock: &Lock,
        notes: &Notes,
        id: NoteId,
        change: Change<(NoteType, Oid)>,
        applied: &mut Applied,
        stamps: &mut BTreeMap<String, (Oid, Stamp)>,
    ) -> Result<(), Error> {
        let place = |folder| NotePath {
            scope: Scope::Portable,
            folder,
            id,
        };
        let read = |folder| {
            let bytes = notes.bytes(place(folder)).ok()?;
            let oid = Oid::hash_object(ObjectType::Blob, &bytes).ok()?;
            Some((oid, bytes))
        };
        let lies = change.old.and_then(|(folder, oid)| {
            let (found, bytes) = read(folder)?;
            Some((folder, oid == found, bytes))
        });
        applied.notes.insert(id);
        let Some((folder, oid)) = change.new else {
            if let Some((folder, is_old, bytes)) = lies {
                if !is_old {
                    // Edited in this moment, deleted elsewhere: it stays deleted, the text is kept.
                    let base = self.old_bytes(change)?;
                    match merge::edited_after_deletion(id, base.as_deref(), &bytes) {
                        Ok(edited) => Self::propose(lock, notes, edited.as_ref())?,
                        Err(_) => self.quarantine(id, &bytes)?,
                    }
                }
                notes.remove(lock, place(folder))?;
            }
            return Ok(());
        };
        let blob = self.git.find_blob(oid)?;
        let there = read(folder);
        let is_moving = lies.as_ref().is_some_and(|(old, ..)| *old != folder);
        let bytes = match (&lies, &there) {
            // Done already.
            (_, Some((found, _))) if *found == oid => {
                if let (true, Some((old, ..))) = (is_moving, &lies) {
                    notes.remove(lock, place(*old))?;
                }
                return Ok(());
            }
            // As the branch has it.
            (Some((_, true, _)), None) => blob.content().to_vec(),
            (Some((old, true, _)), Some(_)) if *old == folder => blob.content().to_vec(),
            // New here.
            (None, None) if change.old.is_none() => blob.content().to_vec(),
            // Deleted in this moment: the next commit says so.
            (None, None) => return Ok(()),
            // Edited in this moment.
            (Some((_, _, edited)), _) | (None, Some((_, edited))) => {
                let base = self.old_bytes(change)?;
                let merged = merge::merge(id, base.as_deref(), edited, blob.content());
                if let Some(sibling) = &merged.conflict {
                    add(lock, notes, sibling, Scope::Portable)?;
                    applied.notes.insert(sibling.id);
                }
                Self::propose(lock, notes, merged.proposal.as_ref())?;
                if let Some(bytes) = &merged.unreadable {
                    self.quarantine(id, bytes)?;
                }
                merged.bytes
            }
        };
        let stamp = notes.place(lock, place(folder), &bytes)?;
        if bytes == blob.content() {
            stamps.insert(note_path(folder, id), (oid, stamp));
        }
        if let (true, Some((old, ..))) = (is_moving, lies) {
            notes.remove(lock, place(old))?;
        }
        Ok(())
    }

    fn old_bytes(&self, change: Change<(NoteType, Oid)>) -> Result<Option<Vec<u8>>, Error> {
        let Some((_, oid)) = change.old else {
            return Ok(None);
        };
        Ok(Some(self.git.find_blob(oid)?.content().to_vec()))
    }

    /// Keeps a text as a proposal of this machine.
    pub(crate) fn propose(
        lock: &Lock,
        notes: &Notes,
        proposal: Option<&Sibling>,
    ) -> Result<(), Error> {
        match proposal {
            Some(proposal) => add(lock, notes, proposal, Scope::MachineLocal),
            None => Ok(()),
        }
    }

    /// Keeps bytes that are no note, of a side that had to give way.
    pub(crate) fn quarantine(&self, id: NoteId, bytes: &[u8]) -> Result<(), Error> {
        let folder = self.home.quarantine();
        home::ensure_folder(&folder)?;
        let oid = Oid::hash_object(ObjectType::Blob, bytes)?;
        let path = folder.join(format!("{id}-{}.txt", &oid.to_string()[..12]));
        file::write_atomic(&path, bytes).map_err(Error::io(&path))?;
        Ok(())
    }

    /// Brings a receipt or the marker to what a commit says.
    fn bring_file(&self, name: &str, change: Change<(Oid, i32)>) -> Result<(), Error> {
        let path = self.folder().join(name);
        let found = file::read_head(&path, MAX_FILE).ok();
        let found = found.filter(|(.., whole)| *whole).map(|(bytes, ..)| bytes);
        let Some((oid, _)) = change.new else {
            let oid = found
                .map(|bytes| Oid::hash_object(ObjectType::Blob, &bytes))
                .transpose()?;
            // One that grew since is its own machine's, and stays.
            if oid.is_some() && oid == change.old.map(|(oid, _)| oid) {
                fs::remove_file(&path).map_err(Error::io(&path))?;
            }
            return Ok(());
        };
        let blob = self.git.find_blob(oid)?;
        let bytes = match found {
            Some(found) if found == blob.content() => return Ok(()),
            Some(found) if tree::is_log(name) => join_lines(&found, blob.content()),
            _ => blob.content().to_vec(),
        };
        let mut folder = self.folder();
        for part in Path::new(name).parent().into_iter().flat_map(Path::iter) {
            folder.push(part);
            home::ensure_folder(&folder)?;
        }
        file::write_atomic(&path, &bytes).map_err(Error::io(&path))?;
        Ok(())
    }

    /// Makes git's index say what a tree says, with the stamps of the files. It is a cache: where it
    /// cannot be written, because another git holds it, it stays behind.
    fn keep_index_in_step(&self, tree: Oid, stamps: &BTreeMap<String, (Oid, Stamp)>) {
        let update = || -> Result<(), git2::Error> {
            let tree = self.git.find_tree(tree)?;
            let mut index = self.git.index()?;
            index.read_tree(&tree)?;
            for (path, (oid, stamp)) in stamps {
                index.add(&index_entry(path, *oid, *stamp))?;
            }
            // What is only carried is never in the folder, and not deleted for that.
            let is_carried =
                |path: &[u8]| tree::named(&String::from_utf8_lossy(path)) == Named::Other;
            let carried: Vec<IndexEntry> = index
                .iter()
                .filter(|entry| is_carried(&entry.path))
                .collect();
            for mut entry in carried {
                entry.flags_extended |= IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
                index.add(&entry)?;
            }
            index.write()
        };
        if update().is_err() {
            // Of no use as it is: the next run builds it anew.
            let _ = fs::remove_file(self.git_folder().join("index"));
        }
    }
}

/// Makes an empty repository under a temporary name, so that a kill leaves no half-made `.git`. The
/// caller holds the lock under which repositories are made.
pub(crate) fn make_beside(folder: &Path) -> Result<PathBuf, Error> {
    for name in folder_names(folder) {
        if name.starts_with(".git.") && name.strip_suffix(".tmp").is_some() {
            let half_made = folder.join(name);
            fs::remove_dir_all(&half_made).map_err(Error::io(&half_made))?;
        }
    }
    let fresh = folder.join(format!(".git.{}.tmp", Ulid::generate()));
    let mut options = git2::RepositoryInitOptions::new();
    options
        .bare(true)
        .initial_head("main")
        .external_template(false);
    let made = git2::Repository::init_opts(&fresh, &options)?;
    let mut config = made.config()?;
    config.set_bool("core.bare", false)?;
    // Receipts make many small objects.
    config.set_i32("gc.auto", i32::try_from(LOOSE_OBJECTS).unwrap_or(500))?;
    // Samples of libgit2's that nobody asked for.
    let _ = fs::remove_dir_all(fresh.join("hooks"));
    let info = fresh.join("info");
    fs::create_dir_all(&info).map_err(Error::io(&info))?;
    fs::write(info.join("exclude"), "*.tmp\n").map_err(Error::io(&info))?;
    Ok(fresh)
}

/// Writes a note that a merge made, unless it is there.
pub(crate) fn add(
    lock: &Lock,
    notes: &Notes,
    sibling: &Sibling,
    scope: Scope,
) -> Result<(), Error> {
    if notes.find(sibling.id).is_some() {
        return Ok(());
    }
    let file = NoteFile::parse(&sibling.bytes, sibling.id);
    let folder = file.map_or(NoteType::Semantic, |file| file.note().note_type);
    let id = sibling.id;
    notes.place(lock, NotePath { scope, folder, id }, &sibling.bytes)?;
    Ok(())
}

/// A machine's name as it stands in commits: one word, whatever the name is.
pub fn name_in_commits(machine: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name = machine.chars().take(64);
    let name: String = name.map(|c| if fits(c) { c } else { '-' }).collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

/// What was committed of what had changed.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// How many commits.
    pub(crate) commits: usize,
    /// What cannot travel.
    pub(crate) problems: Vec<Problem>,
    /// Notes that are gone from the folder and were not taken out of the branch, and of how many.
    pub(crate) held_back: Option<(usize, usize)>,
}

/// Changes by session and actor.
type Groups = BTreeMap<(String, String), FileChanges>;

/// What becomes of a path: a file with its mode, or nothing.
type Update<'a> = (&'a str, Option<(Oid, i32)>);

/// One of the places where a note's file can be.
struct Place {
    name: String,
    is_committed: bool,
    is_there: bool,
}

/// Makes what is staged of a note one view of it, where its file was looked for in one folder after
/// another: as it lies there now, or nothing until the next time. Of several files of one id none is
/// added to the one that is committed, or else to the first: no other machine would take it.
fn settle(changes: &mut FileChanges, places: &[Place]) {
    let mut there = places.iter().filter(|place| place.is_there);
    let first = there.clone().find(|place| place.is_committed);
    if let Some(first) = first.or_else(|| there.next()) {
        let there = places.iter().filter(|place| place.is_there);
        for place in there.filter(|place| !place.is_committed && place.name != first.name) {
            changes.remove(&place.name);
        }
    }
    let is_seen = |place: &Place| match changes.get(&place.name) {
        Some(seen) => seen.is_some(),
        None => place.is_committed,
    };
    let is_one = places.iter().filter(|place| place.is_there).count() < 2;
    let is_unseen = is_one && places.iter().any(|place| place.is_there && !is_seen(place));
    let is_somewhere = places.iter().any(|place| place.is_there);
    for place in places {
        if is_unseen || !place.is_there && !place.is_committed {
            changes.remove(&place.name);
        } else if !place.is_there && is_somewhere {
            changes.insert(place.name.clone(), None);
        }
    }
}

/// The modes of regular files.
pub(crate) const FILE: i32 = 0o100_644;
const EXECUTABLE: i32 = 0o100_755;

/// The notes among changed files.
fn ids_of(changes: &FileChanges) -> BTreeSet<NoteId> {
    let notes = changes.keys().filter_map(|path| match tree::named(path) {
        Named::Note(_, id) => Some(id),
        _ => None,
    });
    notes.collect()
}

/// The place of the one process that syncs or commits all: what lies in the folder is being brought to a
/// commit by nobody else meanwhile.
#[derive(Debug)]
pub(crate) struct SyncLock(pub(crate) Lock);

/// Tells whether deleting so many of so many notes needs a word of the person.
pub(crate) fn is_mass(gone: usize, of: usize) -> bool {
    gone > MANY && gone * 5 > of
}

/// The file that a tree has at a path.
pub(crate) fn entry(tree: &Tree<'_>, path: &str) -> Option<Oid> {
    let entry = tree.get_path(Path::new(path)).ok()?;
    tree::is_file(entry.filemode_raw()).then(|| entry.id())
}

/// The session of a note and who wrote it, for the trailers of a commit.
fn authorship(bytes: &[u8], id: NoteId) -> (String, String) {
    let Ok(file) = NoteFile::parse(bytes, id) else {
        return (String::new(), "person".to_owned());
    };
    let note = file.into_note();
    let actor = match note.author() {
        _ if note.state == State::Forgotten => "person",
        "you" => "person",
        other => other,
    };
    (note.session.unwrap_or_default(), actor.to_owned())
}

fn folder_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// What git's index knows of files: what they hold, if their stamp is still the same.
#[derive(Debug, Default)]
struct Cache {
    notes: HashMap<(NoteType, NoteId), (Oid, Known)>,
    /// By path.
    others: HashMap<String, (Oid, Known)>,
}

/// What git's index knows of a file: less than a whole stamp.
#[derive(Debug, Clone, Copy)]
struct Known {
    seconds: i32,
    nanoseconds: u32,
    inode: u32,
    size: u32,
}

impl Known {
    fn of(entry: &IndexEntry) -> Self {
        Self {
            seconds: entry.mtime.seconds(),
            nanoseconds: entry.mtime.nanoseconds(),
            inode: entry.ino,
            size: entry.file_size,
        }
    }

    /// Nanoseconds since 1970.
    fn modified(self) -> i64 {
        i64::from(self.seconds) * 1_000_000_000 + i64::from(self.nanoseconds)
    }
}

/// Tells whether a file is as git's index knows it. An entry without a stamp tells nothing.
fn same(known: Known, stamp: Stamp) -> bool {
    known.modified() != 0
        && known.modified() == stamp.modified
        && known.inode == low_half(stamp.inode)
        && known.size == low_half(stamp.size)
}

/// git keeps the lower 32 bits of sizes and inodes.
fn low_half(number: i64) -> u32 {
    u32::try_from(number & 0xffff_ffff).unwrap_or(0)
}

fn index_entry(path: &str, id: Oid, stamp: Stamp) -> IndexEntry {
    let seconds = stamp.modified.div_euclid(1_000_000_000);
    let nanoseconds = stamp.modified.rem_euclid(1_000_000_000);
    let time = IndexTime::new(
        i32::try_from(seconds).unwrap_or(0),
        u32::try_from(nanoseconds).unwrap_or(0),
    );
    IndexEntry {
        ctime: time,
        mtime: time,
        dev: 0,
        ino: low_half(stamp.inode),
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: low_half(stamp.size),
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is staged of a note in two folders; by folder whether it is committed, what was seen there
    /// (`+` a new text, `-` that it is gone), and whether it lies there.
    fn settled(folders: [(bool, &str, bool); 2]) -> [&'static str; 2] {
        let stamp = Stamp::default();
        let mut changes = FileChanges::new();
        let mut places = Vec::new();
        for ((is_committed, seen, is_there), name) in folders.into_iter().zip(["old", "new"]) {
            match seen {
                "+" => drop(changes.insert(name.to_owned(), Some((Oid::ZERO_SHA1, stamp)))),
                "-" => drop(changes.insert(name.to_owned(), None)),
                _ => {}
            }
            places.push(Place {
                name: name.to_owned(),
                is_committed,
                is_there,
            });
        }
        settle(&mut changes, &places);
        ["old", "new"].map(|name| match changes.get(name) {
            None => "",
            Some(None) => "-",
            Some(Some(_)) => "+",
        })
    }

    #[test]
    fn a_note_that_moves_while_it_is_looked_at_is_staged_in_one_folder_or_not_at_all() {
        for (what, folders, staged) in [
            (
                "moved before",
                [(true, "-", false), (false, "+", true)],
                ["-", "+"],
            ),
            (
                "seen in both",
                [(true, "", false), (false, "+", true)],
                ["-", "+"],
            ),
            (
                "changed, then moved",
                [(true, "+", false), (false, "+", true)],
                ["-", "+"],
            ),
            (
                "new, then moved",
                [(false, "+", false), (false, "+", true)],
                ["", "+"],
            ),
            (
                "seen in neither",
                [(true, "-", false), (false, "", true)],
                ["", ""],
            ),
            (
                "new, moved unseen",
                [(false, "+", false), (false, "", true)],
                ["", ""],
            ),
            (
                "came back",
                [(true, "-", true), (false, "", false)],
                ["", ""],
            ),
            (
                "deleted",
                [(true, "-", false), (false, "", false)],
                ["-", ""],
            ),
            (
                "new, then deleted",
                [(false, "+", false), (false, "", false)],
                ["", ""],
            ),
            ("new", [(false, "+", true), (false, "", false)], ["+", ""]),
            (
                "a second file of the id",
                [(false, "+", true), (true, "+", true)],
                ["", "+"],
            ),
            (
                "two new files of one id",
                [(false, "+", true), (false, "+", true)],
                ["+", ""],
            ),
        ] {
            assert_eq!(settled(folders), staged, "{what}");
        }
    }
}
