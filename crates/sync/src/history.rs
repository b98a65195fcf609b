//! The history of notes: commits, versions of a note, the notes at a time, undo.
//!
//! Everything is read from git's objects; no program of git's runs. Commits may contain text of
//! strangers, which the caller must make safe for a terminal. Commits that changed no note (usage
//! logs, joins without conflicts) are left out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anamnesis_note::{
    id::{IdPrefix, NoteId},
    merge,
    note::{NoteFile, NoteType, Scope},
};
use anamnesis_store::{
    fs::lock::Lock,
    notes::{NotePath, Notes},
};
use chrono::{DateTime, Utc};
use git2::{Commit, Oid, Sort, Tree};
use ulid::Ulid;

use crate::{
    commit::{ACTOR, Act, BATCH, Committed},
    error::Error,
    folder::{Folders, NoteBlob, NoteChanges, folder_in},
    join::{folder_of, is_sound},
    repository::Repository,
    tree::{Changes, MAX_FILE, is_tombstone},
};

/// The shortest prefix or suffix that finds a change or commit.
pub const SHORTEST_NAME: usize = 4;

/// The verb of the commits that move notes between machine-local and portable.
const MOVE: &str = "move";

/// The verb of the commits that approve proposals, which move from machine-local to portable.
pub const APPROVAL: &str = "review";

/// The largest number of parallel lines of history that are considered.
const MAX_HEADS: usize = 16;

/// A commit that changed notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteCommit {
    /// The commit id.
    pub commit: String,
    /// The commit time, by the clock of its machine.
    pub at: DateTime<Utc>,
    /// The machine that made it, if known.
    pub machine: Option<String>,
    /// The actor: `person`, `agent`, `session`, `machine` or another; `None` if unknown.
    pub actor: Option<String>,
    /// The id of the change, if it can be undone.
    pub batch: Option<Ulid>,
    /// The subject.
    pub subject: String,
    /// The changed notes.
    pub notes: BTreeMap<NoteId, Touched>,
    /// The title at that time, of the requested note or of the first one that has a title.
    pub title: Option<String>,
}

impl NoteCommit {
    /// Returns the command or `sync`; for another program's commit, its subject.
    pub fn verb(&self) -> &str {
        let ours = self.subject.strip_prefix("anamnesis: ");
        let verb = ours.and_then(|rest| Some(rest.split_once(" from ")?.0));
        verb.unwrap_or(&self.subject)
    }
}

/// The effect of a commit on a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// It is new.
    Added,
    /// Its text or folder changed.
    Changed,
    /// It was removed.
    Removed,
}

/// A note's file in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The note's folder.
    pub folder: NoteType,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A note's file before and after a commit; `None` if it did not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The note.
    pub id: NoteId,
    /// The file before.
    pub before: Option<File>,
    /// The file after.
    pub after: Option<File>,
}

/// A version of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The commit that created it.
    pub event: NoteCommit,
    /// The file; `None` if the commit removed it.
    pub file: Option<File>,
}

/// The notes of all machines at a time.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    places: Places,
}

impl Moment {
    /// Returns the ids of the notes.
    pub fn ids(&self) -> impl Iterator<Item = NoteId> {
        self.places.keys().copied()
    }
}

/// Folder and blob of each note.
type Places = BTreeMap<NoteId, NoteBlob>;

/// The result of an undo for one note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is as before, byte for byte.
    Restored,
    /// It was forgotten and is restored, byte for byte.
    Remembered,
    /// It is forgotten again; its text is in the trash.
    Forgotten,
    /// It had changed since: the undone change is gone, later changes stay.
    Merged,
    /// The undone change had created it, so it was removed.
    Removed,
    /// The undone change had made it portable; it is on this machine only again.
    Local,
    /// The undone change had approved it, so it is a proposal again.
    Proposed,
    /// It was left unchanged, for this reason.
    Left(&'static str),
}

/// The result of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The result for each note.
    pub notes: BTreeMap<NoteId, Fate>,
    /// The commit of the undo; `None` if nothing changed.
    pub committed: Option<Committed>,
}

/// Turns off hashing of each object that is read, as git itself does; zlib's checksums still detect
/// damage. Hashing takes most of the time in a long history.
pub fn read_without_hashing() {
    git2::opts::strict_hash_verification(false);
}

impl Repository {
    /// Returns the commits that changed notes, newest first; with an id, those that changed that
    /// note.
    pub fn log(&self, note: Option<NoteId>, limit: usize) -> Result<Vec<NoteCommit>, Error> {
        let mut lookup = note.map(|id| Lookup::new(self, id)).transpose()?;
        let is_asked_for = |commit: &Commit<'_>| match &mut lookup {
            Some(lookup) => lookup.is_touched_by(commit),
            None => Ok(true),
        };
        self.events(note, limit, is_asked_for, |_| true)
    }

    /// Returns the commits that changed any of these notes, newest first.
    pub fn log_of(&self, notes: &BTreeSet<NoteId>, limit: usize) -> Result<Vec<NoteCommit>, Error> {
        let is_of_one = |event: &NoteCommit| event.notes.keys().any(|id| notes.contains(id));
        self.events(None, limit, |_| Ok(true), is_of_one)
    }

    /// Returns the changes that can be undone, newest first; with an actor, its changes only.
    pub fn batches(&self, actor: Option<&str>, limit: usize) -> Result<Vec<NoteCommit>, Error> {
        let is_asked_for = |commit: &Commit<'_>| {
            let is_by = actor.is_none_or(|actor| trailer(commit, ACTOR).as_deref() == Some(actor));
            Ok(is_by && batch_of(commit).is_some())
        };
        self.events(None, limit, is_asked_for, |_| true)
    }

    /// Returns the ids of the commits that changed folders of notes, newest first, without the first
    /// `skip`. Reads no folder, so that the cost does not depend on the number of notes.
    pub fn commits(&self, skip: usize, limit: usize) -> Result<Vec<String>, Error> {
        let mut commits = Vec::new();
        let mut skipped = 0;
        // libgit2 reads the whole history for any order but this, which is that of `git log`. If the
        // clock of a machine was wrong, a commit may come before one that was built on it.
        for oid in self.walk_sorted(Sort::NONE)? {
            if commits.len() == limit {
                break;
            }
            let commit = self.git.find_commit(oid?)?;
            let all = |tree: &Tree<'_>| Ok(folders(tree).collect::<Vec<_>>());
            if !differs_from_parents(&commit, all)? {
                continue;
            }
            if skipped < skip {
                skipped += 1;
            } else {
                commits.push(commit.id().to_string());
            }
        }
        Ok(commits)
    }

    /// Describes commits by their ids. Those that changed no note, such as most joins, are left out.
    pub fn events_of(&self, commits: &[String]) -> Result<Vec<NoteCommit>, Error> {
        let mut folders = Folders::new(&self.git)?;
        let mut events = Vec::new();
        for id in commits {
            let commit = self.git.find_commit(Oid::from_str(id)?)?;
            events.push(self.event(&mut folders, &commit, None)?);
        }
        events.retain(|event| !event.notes.is_empty());
        Ok(events)
    }

    fn events(
        &self,
        about: Option<NoteId>,
        limit: usize,
        mut is_asked_for: impl FnMut(&Commit<'_>) -> Result<bool, Error>,
        is_listed: impl Fn(&NoteCommit) -> bool,
    ) -> Result<Vec<NoteCommit>, Error> {
        let mut events = Vec::new();
        let mut folders = Folders::new(&self.git)?;
        for oid in self.walk()? {
            if events.len() == limit {
                break;
            }
            let commit = self.git.find_commit(oid?)?;
            if is_asked_for(&commit)? {
                let event = self.event(&mut folders, &commit, about)?;
                if !event.notes.is_empty() && is_listed(&event) {
                    events.push(event);
                }
            }
        }
        Ok(events)
    }

    /// Returns the versions of a note, newest first.
    pub fn versions(&self, id: NoteId, limit: usize) -> Result<Vec<Version>, Error> {
        let mut lookup = Lookup::new(self, id)?;
        let mut versions = Vec::new();
        for oid in self.walk()? {
            if versions.len() == limit {
                break;
            }
            let commit = self.git.find_commit(oid?)?;
            if lookup.is_touched_by(&commit)? {
                let place = lookup.place_in(&commit.tree()?)?;
                versions.push(Version {
                    event: self.event(&mut lookup.folders, &commit, Some(id))?,
                    file: self.file(place)?,
                });
            }
        }
        Ok(versions)
    }

    /// Returns the notes at a time; `None` before the first commit.
    ///
    /// Machines work in parallel. If two lines of history had not been joined yet, the notes of
    /// both are returned. For a note that both changed, the newer commit wins.
    pub fn at(&self, time: DateTime<Utc>) -> Result<Option<Moment>, Error> {
        // The last commits at that time, newest first: those without a child at that time.
        let mut heads = Vec::new();
        let mut built_on = HashSet::new();
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            let is_built_on = built_on.remove(&commit.id());
            if is_built_on || commit.time().seconds() <= time.timestamp() {
                built_on.extend(commit.parent_ids());
                if !is_built_on {
                    heads.push(commit.id());
                }
            }
        }
        heads.truncate(MAX_HEADS);
        let base = match heads.as_slice() {
            [] => return Ok(None),
            [one] => {
                let places = self.places(*one)?;
                return Ok(Some(Moment { places }));
            }
            several => self.git.merge_base_many(several).ok(),
        };
        let base = base.map(|oid| self.places(oid)).transpose()?;
        let base = base.unwrap_or_default();
        let mut places = base.clone();
        for head in heads.iter().rev() {
            let head = self.places(*head)?;
            for id in base.keys().filter(|id| !head.contains_key(id)) {
                places.remove(id);
            }
            let changed = head
                .iter()
                .filter(|(id, place)| base.get(id) != Some(place));
            places.extend(changed.map(|(id, place)| (*id, *place)));
        }
        Ok(Some(Moment { places }))
    }

    /// Returns a note at a moment; `None` if it did not exist.
    pub fn note_at(&self, moment: &Moment, id: NoteId) -> Result<Option<File>, Error> {
        self.file(moment.places.get(&id).copied())
    }

    /// Returns all notes in history whose id begins or ends with the typed text.
    pub fn ids_matching(&self, typed: &IdPrefix) -> Result<BTreeSet<NoteId>, Error> {
        let mut found = BTreeSet::new();
        let mut seen = HashSet::new();
        for oid in self.walk()? {
            let tree = self.git.find_commit(oid?)?.tree()?;
            for (_, folder) in folders(&tree) {
                if !seen.insert(folder) {
                    continue;
                }
                for entry in &self.git.find_tree(folder)? {
                    let stem = entry.name().ok().and_then(|name| name.strip_suffix(".md"));
                    let stem = stem.filter(|stem| typed.matches(stem));
                    found.extend(stem.and_then(|stem| stem.parse::<NoteId>().ok()));
                }
            }
        }
        Ok(found)
    }

    /// Returns a commit's changes to notes, file by file.
    pub fn differences(&self, commit: &str) -> Result<Vec<Difference>, Error> {
        let commit = self.git.find_commit(Oid::from_str(commit)?)?;
        let mut differences = Vec::new();
        let mut folders = Folders::new(&self.git)?;
        for (id, change) in own_changes(&mut folders, &commit)? {
            differences.push(Difference {
                id,
                before: self.file(change.old)?,
                after: self.file(change.new)?,
            });
        }
        Ok(differences)
    }

    /// Finds commits by at least four characters: the start or end of the change's id, or the start
    /// of the commit's id.
    pub fn find(&self, typed: &str) -> Result<Vec<NoteCommit>, Error> {
        let typed = typed.trim().trim_start_matches('#');
        let (upper, lower) = (typed.to_ascii_uppercase(), typed.to_ascii_lowercase());
        let mut found = Vec::new();
        if typed.len() < SHORTEST_NAME {
            return Ok(found);
        }
        let mut folders = Folders::new(&self.git)?;
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            let batch = batch_of(&commit).map(|batch| batch.to_string());
            let is_meant =
                batch.is_some_and(|name| name.starts_with(&upper) || name.ends_with(&upper));
            if is_meant || commit.id().to_string().starts_with(&lower) {
                found.push(self.event(&mut folders, &commit, None)?);
            }
        }
        Ok(found)
    }

    /// Returns each machine's last commit time, by its name in commits.
    pub fn last_seen(&self) -> Result<BTreeMap<String, DateTime<Utc>>, Error> {
        let mut seen = BTreeMap::new();
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            if let Some(machine) = machine_of(&commit) {
                let at = seen.entry(machine).or_insert(DateTime::UNIX_EPOCH);
                *at = time_of(&commit).max(*at);
            }
        }
        Ok(seen)
    }

    /// Returns the names of the machines that made the branch's commits.
    pub fn machines_in_history(&self) -> Result<Vec<String>, Error> {
        self.machines(self.head()?.map(|head| head.id()))
    }

    /// Returns the names of the machines that made a commit's history.
    pub(crate) fn machines(&self, tip: Option<Oid>) -> Result<Vec<String>, Error> {
        let mut machines = BTreeSet::new();
        for oid in self.revwalk(Sort::NONE, tip, None)? {
            let commit = self.git.find_commit(oid?)?;
            machines.extend(machine_of(&commit).filter(|name| is_machine(name)));
        }
        Ok(machines.into_iter().collect())
    }

    /// Undoes a commit's changes to notes, in the folder and as a commit of its own.
    ///
    /// A note that has not changed since becomes as before, byte for byte. A note that has changed
    /// is merged: the commit's change is removed, later changes stay. If the two conflict, the note
    /// is left unchanged.
    pub fn undo(
        &self,
        lock: &Lock,
        notes: &Notes,
        event: &NoteCommit,
        act: Act<'_>,
    ) -> Result<Undone, Error> {
        let mut fates = BTreeMap::new();
        for difference in self.differences(&event.commit)? {
            let undo = Undo {
                lock,
                notes,
                id: difference.id,
                lies: notes.find(difference.id),
            };
            let fate = undo.run(difference, event.verb(), self.now)?;
            fates.insert(undo.id, fate);
        }
        let committed = self.commit_notes(lock, &fates.keys().copied().collect(), act)?;
        Ok(Undone {
            notes: fates,
            committed,
        })
    }

    /// Returns the branch's commits, newest first, and each after those that were built on it.
    fn walk(&self) -> Result<git2::Revwalk<'_>, Error> {
        self.walk_sorted(Sort::TOPOLOGICAL | Sort::TIME)
    }

    fn walk_sorted(&self, order: Sort) -> Result<git2::Revwalk<'_>, Error> {
        let head = self.head()?.map(|head| head.id());
        Ok(self.revwalk(order, head, None)?)
    }

    /// Returns folder and blob of each note in a commit.
    fn places(&self, commit: Oid) -> Result<Places, Error> {
        let tree = self.git.find_commit(commit)?.tree()?;
        let contents = Changes::between(&self.git, None, Some(&tree))?;
        let places = contents.notes.into_iter();
        Ok(places
            .filter_map(|(id, change)| Some((id, change.new?)))
            .collect())
    }

    /// Reads a file within the size limit: a stranger's commit may have any size.
    fn file(&self, place: Option<NoteBlob>) -> Result<Option<File>, Error> {
        let Some((folder, oid)) = place else {
            return Ok(None);
        };
        let (size, _) = self.git.odb()?.read_header(oid)?;
        if size > MAX_FILE {
            return Err(Error::TooLarge(oid.to_string()));
        }
        let bytes = self.read(oid)?;
        Ok(Some(File { folder, bytes }))
    }

    /// Describes a commit. The title is that of the requested note, if there is one.
    fn event(
        &self,
        folders: &mut Folders<'_>,
        commit: &Commit<'_>,
        about: Option<NoteId>,
    ) -> Result<NoteCommit, Error> {
        let changes = own_changes(folders, commit)?;
        let in_question = about.and_then(|id| changes.get_key_value(&id));
        let title = in_question
            .into_iter()
            .chain(&changes)
            .find_map(|(id, change)| {
                // A tombstone has no title; the person knows the note by its last one.
                [change.new, change.old].into_iter().find_map(|place| {
                    let file = self.file(place).ok().flatten()?;
                    let title = NoteFile::parse(&file.bytes, *id).ok()?.into_note().title;
                    (!title.trim().is_empty()).then_some(title)
                })
            });
        let message = commit.message().unwrap_or_default();
        let mut event = NoteCommit {
            commit: commit.id().to_string(),
            at: time_of(commit),
            machine: machine_of(commit),
            actor: trailer(commit, ACTOR),
            batch: batch_of(commit),
            subject: message.lines().next().unwrap_or_default().to_owned(),
            notes: BTreeMap::new(),
            title,
        };
        // The rewritten history does not have a purged note, so its tombstone is new there.
        let is_purge = event.verb() == "purge";
        event.notes = (changes.into_iter())
            .map(|(id, change)| match (change.old, change.new) {
                (None, _) if !is_purge => (id, Touched::Added),
                (None, _) | (_, None) => (id, Touched::Removed),
                _ => (id, Touched::Changed),
            })
            .collect();
        Ok(event)
    }
}

/// Returns the notes that differ from all parents, compared with the first parent.
pub(crate) fn own_changes(
    folders: &mut Folders<'_>,
    commit: &Commit<'_>,
) -> Result<NoteChanges, Error> {
    let tree = commit.tree()?;
    let mut parents = commit.parents();
    let first = parents.next().map(|parent| parent.tree()).transpose()?;
    let mut changes = folders.changes(first.as_ref(), &tree)?;
    for parent in parents {
        if changes.is_empty() {
            break;
        }
        let other = folders.changes(Some(&parent.tree()?), &tree)?;
        changes.retain(|id, _| other.contains_key(id));
    }
    Ok(changes)
}

/// Undoes a commit's change to one note.
struct Undo<'a> {
    lock: &'a Lock,
    notes: &'a Notes,
    id: NoteId,
    lies: Option<NotePath>,
}

impl Undo<'_> {
    fn run(&self, difference: Difference, verb: &str, now: DateTime<Utc>) -> Result<Fate, Error> {
        let Difference { before, after, .. } = difference;
        let Some(lies) = self.lies else {
            return match (before, after) {
                (Some(before), None) => self.restore(&before),
                (None, None) => Ok(Fate::Left("nothing to undo")),
                _ => Ok(Fate::Left("it was deleted since")),
            };
        };
        let bytes = self.notes.bytes(lies)?;
        if lies.scope == Scope::MachineLocal {
            return match before {
                Some(before) if after.is_none() && self.travels_as(&bytes, &before.bytes) => {
                    self.restore(&before)
                }
                _ => Ok(Fate::Left("it is on this machine only by now")),
            };
        }
        let is = |file: &File| file.folder == lies.folder && file.bytes == bytes;
        match (before, after) {
            (before, Some(after)) if is(&after) => match before {
                Some(before) if self.is_forgotten(&before.bytes) => {
                    // The removed text must be kept in the trash, as when a note is forgotten.
                    self.notes.forget(self.lock, lies, now)?;
                    self.place(&before)?;
                    Ok(Fate::Forgotten)
                }
                Some(before) if self.is_forgotten(&bytes) => {
                    self.place(&before)?;
                    Ok(Fate::Remembered)
                }
                Some(before) => self.restore(&before),
                None if verb == APPROVAL => {
                    let is_as_before = self.notes.propose_again(self.lock, lies)?;
                    Ok(if is_as_before {
                        Fate::Restored
                    } else {
                        Fate::Proposed
                    })
                }
                None if verb == MOVE => {
                    self.notes.set_scope(self.lock, lies, Scope::MachineLocal)?;
                    Ok(Fate::Local)
                }
                None => {
                    self.notes.remove(self.lock, lies)?;
                    Ok(Fate::Removed)
                }
            },
            (Some(before), _) if is(&before) => Ok(Fate::Left("nothing to undo")),
            (Some(before), Some(after)) => self.merge(&before, &after, lies.folder, &bytes),
            (None, _) => Ok(Fate::Left("it was changed since")),
            (Some(_), None) => Ok(Fate::Left("it was written again since")),
        }
    }

    /// Removes the change from `before` to `after` from the note's current version.
    fn merge(
        &self,
        before: &File,
        after: &File,
        folder: NoteType,
        bytes: &[u8],
    ) -> Result<Fate, Error> {
        match (self.is_forgotten(&after.bytes), self.is_forgotten(bytes)) {
            (true, true) => {
                self.place(before)?;
                return Ok(Fate::Remembered);
            }
            (true, false) => return Ok(Fate::Left("it was written again since")),
            (false, true) => return Ok(Fate::Left("it was forgotten since")),
            (false, false) if self.is_forgotten(&before.bytes) => {
                return Ok(Fate::Left("it was changed since"));
            }
            (false, false) => {}
        }
        if !is_sound(bytes, self.id) || !is_sound(&before.bytes, self.id) {
            return Ok(Fate::Left("it cannot be read as a note"));
        }
        let merged = merge::merge(self.id, Some(&after.bytes), bytes, &before.bytes);
        if merged.conflict.is_some() || merged.proposal.is_some() || merged.unreadable.is_some() {
            return Ok(Fate::Left("the same lines were changed since"));
        }
        let folder = folder_of(self.id, Some(after.folder), folder, before.folder, &merged);
        let bytes = merged.bytes;
        self.place(&File { folder, bytes })?;
        Ok(Fate::Merged)
    }

    fn restore(&self, before: &File) -> Result<Fate, Error> {
        self.place(before)?;
        Ok(Fate::Restored)
    }

    /// Writes the note's file to its folder, and removes the old one.
    fn place(&self, file: &File) -> Result<(), Error> {
        let path = NotePath::portable(file.folder, self.id);
        self.notes.place(self.lock, path, &file.bytes)?;
        if let Some(old) = self.lies.filter(|old| *old != path) {
            self.notes.remove(self.lock, old)?;
        }
        Ok(())
    }

    fn is_forgotten(&self, bytes: &[u8]) -> bool {
        is_tombstone(bytes, self.id)
    }

    /// Returns whether a machine-local note equals a portable one except for its scope.
    fn travels_as(&self, local: &[u8], portable: &[u8]) -> bool {
        let rewritten = || {
            let file = NoteFile::parse(local, self.id).ok()?;
            let mut note = file.note().clone();
            note.scope = Scope::Portable;
            file.rewrite(&note).ok()
        };
        rewritten().is_some_and(|text| text.as_bytes() == portable)
    }
}

/// Finds one note in many trees. Most trees share their folders.
struct Lookup<'a> {
    folders: Folders<'a>,
    name: String,
    known: HashMap<Oid, Option<Oid>>,
}

impl<'a> Lookup<'a> {
    fn new(repository: &'a Repository, id: NoteId) -> Result<Self, Error> {
        Ok(Self {
            folders: Folders::new(&repository.git)?,
            name: format!("{id}.md"),
            known: HashMap::new(),
        })
    }

    fn place_in(&mut self, tree: &Tree<'_>) -> Result<Option<NoteBlob>, Error> {
        for (note_type, folder) in folders(tree) {
            let found = if let Some(known) = self.known.get(&folder) {
                *known
            } else {
                let file = self.folders.find(folder, &self.name)?;
                self.known.insert(folder, file);
                file
            };
            if let Some(file) = found {
                return Ok(Some((note_type, file)));
            }
        }
        Ok(None)
    }

    /// Returns whether the note in a commit differs from that in all parents.
    fn is_touched_by(&mut self, commit: &Commit<'_>) -> Result<bool, Error> {
        differs_from_parents(commit, |tree| self.place_in(tree))
    }
}

/// Returns whether a part of a commit differs from that of every parent; without parents, whether there
/// is any.
fn differs_from_parents<T: Default + PartialEq>(
    commit: &Commit<'_>,
    mut part: impl FnMut(&Tree<'_>) -> Result<T, Error>,
) -> Result<bool, Error> {
    let own = part(&commit.tree()?)?;
    for parent in commit.parents() {
        if part(&parent.tree()?)? == own {
            return Ok(false);
        }
    }
    Ok(commit.parent_count() > 0 || own != T::default())
}

/// Returns the folders of notes in a tree.
fn folders(tree: &Tree<'_>) -> impl Iterator<Item = (NoteType, Oid)> {
    let folders = NoteType::ALL.iter();
    folders.filter_map(|folder| Some((*folder, folder_in(tree, *folder)?)))
}

/// Returns whether a text can be a machine's name.
fn is_machine(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.starts_with('.') && (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// Returns the machine of a commit.
pub(crate) fn machine_of(commit: &Commit<'_>) -> Option<String> {
    let author = commit.author();
    let machine = author.email().ok()?.strip_prefix("anamnesis@")?;
    Some(machine.to_owned())
}

/// Returns the time of a commit.
fn time_of(commit: &Commit<'_>) -> DateTime<Utc> {
    DateTime::from_timestamp(commit.time().seconds(), 0).unwrap_or_default()
}

/// Returns the id of a commit's change.
fn batch_of(commit: &Commit<'_>) -> Option<Ulid> {
    Ulid::from_string(&trailer(commit, BATCH)?).ok()
}

/// Returns the value of a trailer: a line `NAME: value` after the first paragraph.
fn trailer(commit: &Commit<'_>, name: &str) -> Option<String> {
    let message = commit.message().ok()?;
    let (_, rest) = message.split_once("\n\n")?;
    let value = rest
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
    Some(value.trim().to_owned())
}
