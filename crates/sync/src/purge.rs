//! Removes notes, or a text, from history, here and in the remote.
//!
//! Every commit from the first affected one on is rewritten; earlier commits keep their ids. The
//! new history is pushed with a lease on the joined tip before the local branch moves. A process
//! killed before the push has changed only files. After the push, the next sync accepts the
//! rewritten remote, as every other machine does. Then the old objects are removed from the disk; a
//! marker exists until that is done.
//!
//! Other machines recognise a purge by its marks, which have ids and no text ([`PurgeMarks`]).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
};

use anamnesis_note::{
    id::NoteId,
    note::NoteType,
    purge_pattern::PurgePattern,
    synced_lines::{PURGED as MARKS, PurgeMark},
};
use anamnesis_store::fs::file;
use anamnesis_text::clean::one_line;
use git2::{Commit, ObjectType, Oid, Sort, Tree};

use crate::{
    error::Error,
    git::{Git, INCOMING, Pushed},
    loose,
    remote::Remote,
    repository::{BRANCH, JOINED, Repository},
    tree::{Changes, FILE, entry, is_tombstone, note_id, note_path},
};

/// The rewritten history that is being pushed.
pub(crate) const PURGED: &str = "refs/anamnesis/purged";

/// The marker in git's folder that exists until the old objects are removed.
const PRUNING: &str = "anamnesis-pruning";

/// Files in git's folder that name old commits or quote them, or that a killed process left.
const TRACES: [&str; 7] = [
    "FETCH_HEAD",
    "ORIG_HEAD",
    "MERGE_HEAD",
    "MERGE_MSG",
    "COMMIT_EDITMSG",
    loose::BROKEN,
    "logs",
];

/// The deepest folder that is read.
const MAX_DEPTH: usize = 32;

/// The notes and the text to remove from history.
#[derive(Debug, Clone, Default)]
pub struct Purge {
    /// Notes to remove.
    pub ids: BTreeSet<NoteId>,
    /// A text to mask wherever it occurs.
    pub needle: Option<PurgePattern>,
}

/// The result of a purge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// The number of rewritten commits.
    pub commits: usize,
    /// The marks.
    pub what: PurgeMarks,
    /// Whether the remote has the new history.
    pub pushed: bool,
    /// Why the remote may still have the old objects, if so.
    pub remote_left: Option<String>,
    /// Deleted branches and tags of the old history.
    pub dropped: Vec<String>,
}

/// The marks of a purge: ids, no text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeMarks {
    /// Removed notes.
    pub gone: BTreeSet<NoteId>,
    /// Notes with masked text.
    pub masked: BTreeSet<NoteId>,
}

impl PurgeMarks {
    fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.masked.is_empty()
    }
}

/// Rewrites a history.
pub(crate) struct Rewriting<'a> {
    repository: &'a Repository,
    purge: &'a Purge,
    /// New ids of commits.
    commits: HashMap<Oid, Oid>,
    /// New ids of trees, by the meaning of their files.
    trees: HashMap<(Oid, TreeKind), Option<Oid>>,
    /// New ids of files, by the note whose file it is.
    files: HashMap<(Oid, Option<NoteId>), Oid>,
    /// Affected notes.
    pub(crate) found: BTreeSet<NoteId>,
    pub(crate) found_elsewhere: bool,
    /// The number of rewritten commits.
    pub(crate) rewritten: usize,
}

/// The meaning of a tree's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TreeKind {
    Root,
    Notes(NoteType),
    Elsewhere,
}

impl TreeKind {
    /// Returns the meaning of a subfolder.
    fn folder(self, name: &[u8]) -> Self {
        let name = std::str::from_utf8(name).unwrap_or_default();
        match (self, name.parse()) {
            (Self::Root, Ok(folder)) => Self::Notes(folder),
            _ => Self::Elsewhere,
        }
    }

    /// Returns the note whose file has this name in this folder.
    fn note(self, name: &[u8]) -> Option<NoteId> {
        let Self::Notes(folder) = self else {
            return None;
        };
        let name = std::str::from_utf8(name).ok()?;
        note_id(&format!("{folder}/{name}"))
    }
}

impl<'a> Rewriting<'a> {
    pub(crate) fn new(repository: &'a Repository, purge: &'a Purge) -> Self {
        Self {
            repository,
            purge,
            commits: HashMap::new(),
            trees: HashMap::new(),
            files: HashMap::new(),
            found: BTreeSet::new(),
            found_elsewhere: false,
            rewritten: 0,
        }
    }

    /// Rewrites a commit and its ancestors and returns the new id. No reference names it yet.
    pub(crate) fn rewrite(&mut self, tip: Oid) -> Result<Oid, Error> {
        let order = Sort::TOPOLOGICAL | Sort::REVERSE;
        for oid in self.repository.revwalk(order, Some(tip), None)? {
            let oid = oid?;
            if !self.commits.contains_key(&oid) {
                let new = self.commit(oid)?;
                self.rewritten += usize::from(new != oid);
                self.commits.insert(oid, new);
            }
        }
        Ok(self.commits.get(&tip).copied().unwrap_or(tip))
    }

    /// Rewrites one commit with new parents, tree and message, and nothing else. Its signature is
    /// no longer valid and is left out.
    fn commit(&mut self, oid: Oid) -> Result<Oid, Error> {
        let commit = self.repository.git.find_commit(oid)?;
        let old_tree = commit.tree_id();
        let tree = match self.tree(old_tree, TreeKind::Root, 0)? {
            Some(tree) => tree,
            None => self.repository.git.treebuilder(None)?.write()?,
        };
        let odb = self.repository.git.odb()?;
        let object = odb.read(oid)?;
        let bytes = object.data();
        let end = bytes.windows(2).position(|pair| pair == b"\n\n");
        let (head, message) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        let masked = self.purge.needle.as_ref();
        let masked = masked.and_then(|needle| needle.mask(message));
        self.found_elsewhere |= masked.is_some();
        let moved = |parent: Oid| self.commits.get(&parent).copied().unwrap_or(parent);
        let is_moved = commit.parent_ids().any(|parent| moved(parent) != parent);
        if tree == old_tree && masked.is_none() && !is_moved {
            return Ok(oid);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut is_signature = false;
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            is_signature = match line.first() {
                Some(b' ') => is_signature,
                _ => line.starts_with(b"gpgsig") || line.starts_with(b"mergetag"),
            };
            if is_signature {
                continue;
            }
            let text = std::str::from_utf8(line).unwrap_or_default().trim_end();
            match text.split_once(' ') {
                Some(("tree", _)) => out.extend(format!("tree {tree}\n").bytes()),
                Some(("parent", parent)) => {
                    let parent = moved(Oid::from_str(parent)?);
                    out.extend(format!("parent {parent}\n").bytes());
                }
                _ => out.extend(line),
            }
        }
        out.extend(masked.as_deref().unwrap_or(message));
        Ok(self
            .repository
            .record_written(odb.write(ObjectType::Commit, &out)?))
    }

    /// Rewrites a tree; `None` if it becomes empty.
    fn tree(&mut self, oid: Oid, place: TreeKind, depth: usize) -> Result<Option<Oid>, Error> {
        if depth > MAX_DEPTH {
            return Ok(Some(oid));
        }
        if let Some(known) = self.trees.get(&(oid, place)) {
            return Ok(*known);
        }
        let tree = self.repository.git.find_tree(oid)?;
        let mut changes: Vec<(Vec<u8>, Option<Oid>, i32)> = Vec::new();
        for item in &tree {
            let name = item.name_bytes();
            let new = match item.kind() {
                Some(ObjectType::Tree) => self.tree(item.id(), place.folder(name), depth + 1)?,
                Some(ObjectType::Blob) => match place.note(name) {
                    Some(id) if self.purge.ids.contains(&id) => {
                        self.found.insert(id);
                        None
                    }
                    note => Some(self.file(item.id(), note)?),
                },
                _ => Some(item.id()),
            };
            if new != Some(item.id()) {
                changes.push((name.to_vec(), new, item.filemode()));
            }
        }
        let new = if changes.is_empty() {
            Some(oid)
        } else {
            let mut builder = self.repository.git.treebuilder(Some(&tree))?;
            for (name, new, mode) in changes {
                match new {
                    Some(new) => drop(builder.insert(&name, new, mode)?),
                    None => builder.remove(&name)?,
                }
            }
            (!builder.is_empty())
                .then(|| builder.write())
                .transpose()?
                .map(|oid| self.repository.record_written(oid))
        };
        self.trees.insert((oid, place), new);
        Ok(new)
    }

    /// Rewrites a file, which is a note if it has an id.
    fn file(&mut self, oid: Oid, note: Option<NoteId>) -> Result<Oid, Error> {
        let Some(needle) = &self.purge.needle else {
            return Ok(oid);
        };
        if let Some(known) = self.files.get(&(oid, note)) {
            return Ok(*known);
        }
        let bytes = self.repository.read(oid)?;
        // An old version that is no valid note is masked as plain text.
        let masked = match note.map(|id| needle.mask_note(id, &bytes)) {
            Some(Ok(masked)) => masked,
            _ => needle.mask(&bytes),
        };
        let new = match masked {
            Some(masked) => {
                self.found.extend(note);
                self.found_elsewhere |= note.is_none();
                self.repository.blob(&masked)?
            }
            None => oid,
        };
        self.files.insert((oid, note), new);
        Ok(new)
    }
}

impl Repository {
    /// Copies a tree's tombstones of these notes into another tree.
    pub(crate) fn with_tombstones(
        &self,
        tree: &Tree<'_>,
        of: &Tree<'_>,
        ids: &BTreeSet<NoteId>,
    ) -> Result<Oid, Error> {
        let mut updates = BTreeMap::new();
        for id in ids {
            for folder in NoteType::ALL {
                let path = note_path(*folder, *id);
                if let Some(oid) = entry(of, &path)
                    && is_tombstone(&self.read(oid)?, *id)
                {
                    updates.insert(path, Some((oid, FILE)));
                }
            }
        }
        self.tree_with(Some(tree), &updates)
    }

    /// Returns what was purged between two commits of a rewritten history, by its marks; `None`
    /// if there are none, or a note is missing that they do not name.
    pub(crate) fn purged_between(
        &self,
        old: &Commit<'_>,
        new: &Commit<'_>,
    ) -> Result<Option<PurgeMarks>, Error> {
        let (old_tree, new_tree) = (old.tree()?, new.tree()?);
        let changes = Changes::between(&self.git, Some(&old_tree), Some(&new_tree))?;
        let Some(record) = self.record(&changes)? else {
            return Ok(None);
        };
        let missing = changes
            .notes
            .iter()
            .filter(|(id, change)| change.new.is_none() && !record.gone.contains(id))
            .map(|(id, _)| *id);
        let missing: BTreeSet<NoteId> = missing.collect();
        let is_all = missing.is_empty() || self.were_all_there(&missing, old, new)?;
        Ok(is_all.then_some(record))
    }

    /// Returns what was purged since a tree, by its marks; `None` if there are none.
    pub(crate) fn purged_since(
        &self,
        old: Option<&Tree<'_>>,
        new: &Tree<'_>,
    ) -> Result<Option<PurgeMarks>, Error> {
        self.record(&Changes::between(&self.git, old, Some(new))?)
    }

    fn record(&self, changes: &Changes) -> Result<Option<PurgeMarks>, Error> {
        let Some(change) = changes.others.get(MARKS) else {
            return Ok(None);
        };
        let marks = |side: Option<(Oid, i32)>| -> Result<BTreeSet<PurgeMark>, Error> {
            let bytes = side.map(|(oid, _)| self.read(oid)).transpose()?;
            let text = bytes.unwrap_or_default();
            Ok(PurgeMark::parse(&String::from_utf8_lossy(&text)))
        };
        let (old, new) = (marks(change.old)?, marks(change.new)?);
        let mut record = PurgeMarks::default();
        for mark in new.difference(&old) {
            let notes = if mark.is_gone {
                &mut record.gone
            } else {
                &mut record.masked
            };
            notes.insert(mark.note);
        }
        Ok((!record.is_empty()).then_some(record))
    }

    /// Returns whether the new part of a history contains each of some notes. If so, they were
    /// deleted there by ordinary commits.
    fn were_all_there(
        &self,
        ids: &BTreeSet<NoteId>,
        old: &Commit<'_>,
        new: &Commit<'_>,
    ) -> Result<bool, Error> {
        let mut unseen = ids.clone();
        for oid in self.revwalk(Sort::NONE, Some(new.id()), Some(old.id()))? {
            let commit = self.git.find_commit(oid?)?;
            let tree = commit.tree()?;
            let parent = commit.parent(0).and_then(|parent| parent.tree()).ok();
            let changes = Changes::between(&self.git, parent.as_ref(), Some(&tree))?;
            for id in changes.notes.keys() {
                unseen.remove(id);
            }
            if unseen.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sets the marker that unreferenced objects have to be removed from the disk.
    pub(crate) fn begin_pruning(&self) -> Result<(), Error> {
        let marker = self.git_folder().join(PRUNING);
        fs::write(&marker, "").map_err(Error::io(&marker))
    }

    /// Returns whether objects still have to be removed.
    pub(crate) fn is_pruning(&self) -> bool {
        self.git_folder().join(PRUNING).exists()
    }

    /// Deletes the references to the old history, and all objects from the disk that no reference
    /// needs. Returns the names of the references that a person made.
    pub(crate) fn prune(&mut self, git: &Git) -> Result<Vec<String>, Error> {
        let dropped = self.drop_references()?;
        // Closes the packs: Windows lets nobody replace a file that is mapped.
        self.git = git2::Repository::open(self.git_folder())?;
        for name in TRACES {
            let path = self.git_folder().join(name);
            // The file may not exist. If it cannot be removed, git's pruning reports it.
            let _ = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
        }
        git.prune_now()?;
        let marker = self.git_folder().join(PRUNING);
        file::remove(&marker).map_err(Error::io(&marker))?;
        Ok(dropped)
    }

    /// Deletes the remote's branches and tags that name the old history. Returns their names, and a
    /// remark on each one that is left although it may name it.
    pub(crate) fn drop_remote_references(
        &self,
        git: &Git,
        remote: &Remote,
    ) -> Result<(Vec<String>, Vec<String>), Error> {
        let head = self.head()?.map(|head| head.id());
        let (mut dropped, mut left) = (Vec::new(), Vec::new());
        for reference in git.other_references(remote)? {
            let name = one_line(&reference.name);
            if self.git.find_commit(reference.commit).is_err() {
                left.push(format!(
                    "{name} has commits that this machine does not know"
                ));
            } else if !self.is_in_history(reference.commit, head)? {
                match git.delete_reference(remote, &reference) {
                    Ok(Pushed::Done) => dropped.push(format!("{name} of the remote")),
                    Ok(Pushed::Rejected { reason }) => left.push(format!("{name}: {reason}")),
                    Err(error) => left.push(format!("{name}: {error}")),
                }
            }
        }
        Ok((dropped, left))
    }

    /// Deletes the references that name an old history. Those of a person and the remote's tip stay if
    /// they are in the branch's history. Our others, such as [`PURGED`], are no longer needed, and would
    /// keep what a later purge removes. Returns the names of a person's references.
    fn drop_references(&self) -> Result<Vec<String>, Error> {
        let head = self.head()?.map(|head| head.id());
        let mut dropped = Vec::new();
        for reference in self.git.references()? {
            let mut reference = reference?;
            let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
            let is_symbolic = reference.symbolic_target_bytes().is_some();
            if name == BRANCH || name == "HEAD" || is_symbolic {
                continue;
            }
            let is_ours = name.starts_with("refs/anamnesis/");
            let is_needed = !is_ours || [JOINED, INCOMING].contains(&name.as_str());
            let commit = reference.peel_to_commit().ok().map(|commit| commit.id());
            let is_in_branch = match commit {
                Some(commit) => self.is_in_history(commit, head)?,
                None => false,
            };
            if is_needed && is_in_branch {
                continue;
            }
            reference.delete()?;
            if !is_ours && !name.starts_with("refs/remotes/origin/") {
                dropped.push(name);
            }
        }
        Ok(dropped)
    }
}
