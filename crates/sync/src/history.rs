//! What happened to notes: commits, versions of a note, the notes of a day, and taking a batch back.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_core::{
    id::NoteId,
    merge,
    note::{NoteFile, NoteType, Scope, State},
};
use anamnesis_store::{
    lock::Lock,
    notes::{NotePath, Notes},
};
use chrono::{DateTime, Utc};
use git2::{Commit, Oid, Sort};
use ulid::Ulid;

use crate::{
    error::Error,
    repository::{ACTOR, Act, BATCH, Committed, Repository, entry},
    tree::{Change, Changes, note_path},
};

/// The shortest text by which a batch is looked up.
pub const SHORTEST_BATCH: usize = 4;

/// A commit, as far as it is about notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The commit.
    pub commit: String,
    /// When it was made, by the clock of its machine.
    pub at: DateTime<Utc>,
    /// The machine that made it, if it is one of ours.
    pub machine: Option<String>,
    /// Who acted: `person`, `agent`, `session`, `machine`, and so on; none where the commit does not say.
    pub actor: Option<String>,
    /// The batch, if it is one that can be undone.
    pub batch: Option<Ulid>,
    /// Its first line.
    pub subject: String,
    /// What it did to notes.
    pub notes: BTreeMap<NoteId, Touched>,
}

/// What a commit did to a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// It is new.
    Added,
    /// It says something else, or lies elsewhere.
    Changed,
    /// It is gone.
    Removed,
}

/// A note's file before and after a commit; none where it did not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The note.
    pub id: NoteId,
    /// The file before.
    pub before: Option<Vec<u8>>,
    /// The file after.
    pub after: Option<Vec<u8>>,
}

/// A note as it was from a commit on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The commit that made it so.
    pub event: Event,
    /// The file; none when the commit removed it.
    pub bytes: Option<Vec<u8>>,
}

/// What taking a batch back came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Notes that are byte for byte as before.
    pub restored: BTreeSet<NoteId>,
    /// Notes that had changed since: what the batch did was taken out, the rest stays.
    pub merged: BTreeSet<NoteId>,
    /// Notes that the batch had made and that are gone now.
    pub removed: BTreeSet<NoteId>,
    /// Notes that were left as they are, and why.
    pub left: BTreeMap<NoteId, &'static str>,
}

/// A batch that was asked for by a part of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBatch {
    /// The one.
    One(Ulid),
    /// There is none.
    None,
    /// These all fit.
    Many(Vec<Ulid>),
}

impl Repository {
    /// The commits of the branch, newest first; with an id those that touched that note.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn log(&self, note: Option<NoteId>, limit: usize) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        for oid in self.walk()? {
            if events.len() == limit {
                break;
            }
            let commit = self.git.find_commit(oid?)?;
            if let Some(id) = note
                && !touches(&commit, id)?
            {
                continue;
            }
            events.push(self.event(&commit)?);
        }
        Ok(events)
    }

    /// Every version of a note, newest first.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn versions(&self, id: NoteId) -> Result<Vec<Version>, Error> {
        let mut versions = Vec::new();
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            if touches(&commit, id)? {
                let bytes = file_in(&commit, id)?;
                let bytes = bytes.map(|(_, oid)| self.read(oid)).transpose()?;
                versions.push(Version {
                    event: self.event(&commit)?,
                    bytes,
                });
            }
        }
        Ok(versions)
    }

    /// The newest commit that is not younger than a time.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn commit_at(&self, time: DateTime<Utc>) -> Result<Option<String>, Error> {
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            if commit.time().seconds() <= time.timestamp() {
                return Ok(Some(commit.id().to_string()));
            }
        }
        Ok(None)
    }

    /// The notes that a commit holds, with their bytes, by id.
    ///
    /// # Errors
    /// When there is no such commit, or an object cannot be read.
    pub fn notes_of(&self, commit: &str) -> Result<BTreeMap<NoteId, (NoteType, Vec<u8>)>, Error> {
        let tree = self.find(commit)?.tree()?;
        let contents = Changes::between(&self.git, None, Some(&tree))?;
        let mut notes = BTreeMap::new();
        for (id, change) in contents.notes {
            if let Some((folder, oid)) = change.new {
                notes.insert(id, (folder, self.read(oid)?));
            }
        }
        Ok(notes)
    }

    /// One note as a commit holds it.
    ///
    /// # Errors
    /// As [`Repository::notes_of`].
    pub fn note_of(&self, commit: &str, id: NoteId) -> Result<Option<Vec<u8>>, Error> {
        let found = file_in(&self.find(commit)?, id)?;
        found.map(|(_, oid)| self.read(oid)).transpose()
    }

    /// What a commit did to notes, file by file.
    ///
    /// # Errors
    /// As [`Repository::notes_of`].
    pub fn differences(&self, commit: &str) -> Result<Vec<Difference>, Error> {
        let commit = self.find(commit)?;
        let mut differences = Vec::new();
        for (id, change) in self.own_changes(&commit)? {
            differences.push(Difference {
                id,
                before: change.old.map(|(_, oid)| self.read(oid)).transpose()?,
                after: change.new.map(|(_, oid)| self.read(oid)).transpose()?,
            });
        }
        Ok(differences)
    }

    /// Finds a batch by its name, or four or more characters of its beginning or end.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn find_batch(&self, typed: &str) -> Result<FoundBatch, Error> {
        let typed = typed.trim_start_matches('#').to_ascii_uppercase();
        if typed.len() < SHORTEST_BATCH {
            return Ok(FoundBatch::None);
        }
        let mut found = BTreeSet::new();
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            if let Some(batch) = batch_of(&commit) {
                let name = batch.to_string();
                if name.starts_with(&typed) || name.ends_with(&typed) {
                    found.insert(batch);
                }
            }
        }
        let mut found = found.into_iter();
        Ok(match (found.next(), found.len()) {
            (None, _) => FoundBatch::None,
            (Some(one), 0) => FoundBatch::One(one),
            (Some(one), _) => FoundBatch::Many([one].into_iter().chain(found).collect()),
        })
    }

    /// The commit of a batch.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn event_of(&self, batch: Ulid) -> Result<Option<Event>, Error> {
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            if batch_of(&commit) == Some(batch) {
                return Ok(Some(self.event(&commit)?));
            }
        }
        Ok(None)
    }

    /// Takes a commit's changes to notes back, in the folder and in a commit of its own.
    ///
    /// A note that is as the commit left it is again what it was before, byte for byte. One that has
    /// changed since is merged: what the commit did goes, what came later stays.
    ///
    /// # Errors
    /// When there is no such commit, or a file cannot be written.
    pub fn undo(
        &self,
        lock: &Lock,
        notes: &Notes,
        commit: &str,
        act: Act<'_>,
    ) -> Result<(Undone, Option<Committed>), Error> {
        let mut undone = Undone::default();
        let mut touched = BTreeSet::new();
        for difference in self.differences(commit)? {
            touched.insert(difference.id);
            Self::undo_note(lock, notes, &difference, &mut undone, &mut touched)?;
        }
        let committed = self.commit_notes(lock, &touched, act)?;
        Ok((undone, committed))
    }

    fn undo_note(
        lock: &Lock,
        notes: &Notes,
        difference: &Difference,
        undone: &mut Undone,
        touched: &mut BTreeSet<NoteId>,
    ) -> Result<(), Error> {
        let id = difference.id;
        let lies = notes.find(id);
        if lies.is_some_and(|path| path.scope == Scope::MachineLocal) {
            undone.left.insert(id, "it is on this machine only by now");
            return Ok(());
        }
        let now = lies.map(|path| notes.bytes(path)).transpose()?;
        let put = |bytes: &[u8]| -> Result<(), Error> {
            let folder = NoteFile::parse(bytes, id).map(|file| file.note().note_type);
            let folder = folder.unwrap_or(lies.map_or(NoteType::Semantic, |path| path.folder));
            let scope = Scope::Portable;
            let path = NotePath { scope, folder, id };
            notes.place(lock, path, bytes)?;
            if let Some(old) = lies.filter(|old| *old != path) {
                notes.remove(lock, old)?;
            }
            Ok(())
        };
        match (&difference.before, &difference.after, &now, lies) {
            (before, after, now, _) if after == now => match (before, lies) {
                (Some(before), _) => {
                    put(before)?;
                    undone.restored.insert(id);
                }
                (None, Some(path)) => {
                    notes.remove(lock, path)?;
                    undone.removed.insert(id);
                }
                (None, None) => {}
            },
            (_, _, None, _) => {
                undone.left.insert(id, "it was deleted since");
            }
            (None, _, Some(_), _) => {
                undone.left.insert(id, "it was changed since");
            }
            (Some(before), None, Some(now), _) if before == now => {}
            (Some(_), None, Some(_), _) => {
                undone.left.insert(id, "it was written again since");
            }
            (Some(before), Some(after), Some(now), _) => {
                let is_forgotten = |bytes: &[u8]| {
                    NoteFile::parse(bytes, id)
                        .is_ok_and(|file| file.note().state == State::Forgotten)
                };
                if is_forgotten(now) && !is_forgotten(after) {
                    undone.left.insert(id, "it was forgotten since");
                    return Ok(());
                }
                let merged = merge::merge(id, Some(after), now, before);
                put(&merged.bytes)?;
                if let Some(sibling) = &merged.conflict {
                    crate::repository::add(lock, notes, sibling, Scope::Portable)?;
                    touched.insert(sibling.id);
                }
                undone.merged.insert(id);
            }
        }
        Ok(())
    }

    /// The commits of the branch, newest first; none before the first one.
    fn walk(&self) -> Result<git2::Revwalk<'_>, Error> {
        let mut walk = self.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)?;
        if let Some(head) = self.head()? {
            walk.push(head.id())?;
        }
        Ok(walk)
    }

    fn find(&self, commit: &str) -> Result<Commit<'_>, Error> {
        Ok(self.git.find_commit(Oid::from_str(commit)?)?)
    }

    /// The notes that a commit made what no parent of it has, compared with the first parent.
    fn own_changes(
        &self,
        commit: &Commit<'_>,
    ) -> Result<BTreeMap<NoteId, Change<(NoteType, Oid)>>, Error> {
        let tree = commit.tree()?;
        let mut parents = commit.parents();
        let first = parents.next().map(|parent| parent.tree()).transpose()?;
        let mut changes = Changes::between(&self.git, first.as_ref(), Some(&tree))?.notes;
        for parent in parents {
            let other = Changes::between(&self.git, Some(&parent.tree()?), Some(&tree))?.notes;
            changes.retain(|id, _| other.contains_key(id));
        }
        Ok(changes)
    }

    fn event(&self, commit: &Commit<'_>) -> Result<Event, Error> {
        let notes = self.own_changes(commit)?.into_iter().map(|(id, change)| {
            let touched = match (change.old, change.new) {
                (None, _) => Touched::Added,
                (_, None) => Touched::Removed,
                _ => Touched::Changed,
            };
            (id, touched)
        });
        let author = commit.author();
        let machine = author.email().ok();
        let machine = machine.and_then(|email| email.strip_prefix("anamnesis@"));
        let message = commit.message().unwrap_or_default();
        Ok(Event {
            commit: commit.id().to_string(),
            at: DateTime::from_timestamp(commit.time().seconds(), 0).unwrap_or_default(),
            machine: machine.map(str::to_owned),
            actor: trailer(commit, ACTOR),
            batch: batch_of(commit),
            subject: message.lines().next().unwrap_or_default().to_owned(),
            notes: notes.collect(),
        })
    }
}

/// Where a note is in a commit.
fn file_in(commit: &Commit<'_>, id: NoteId) -> Result<Option<(NoteType, Oid)>, Error> {
    let tree = commit.tree()?;
    let mut places = NoteType::ALL.iter();
    Ok(places.find_map(|folder| Some((*folder, entry(&tree, &note_path(*folder, id))?))))
}

/// Tells whether a commit made a note what no parent of it has.
fn touches(commit: &Commit<'_>, id: NoteId) -> Result<bool, Error> {
    let own = file_in(commit, id)?;
    if commit.parent_count() == 0 {
        return Ok(own.is_some());
    }
    for parent in commit.parents() {
        if file_in(&parent, id)? == own {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The batch that a commit says it is.
fn batch_of(commit: &Commit<'_>) -> Option<Ulid> {
    Ulid::from_string(&trailer(commit, BATCH)?).ok()
}

/// The value of a trailer: a line `NAME: value` after the first paragraph.
fn trailer(commit: &Commit<'_>, name: &str) -> Option<String> {
    let message = commit.message().ok()?;
    let (_, rest) = message.split_once("\n\n")?;
    let value = rest
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
    Some(value.trim().to_owned())
}
