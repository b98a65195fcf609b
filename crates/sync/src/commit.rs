//! Writing trees and commits, and moving the branch to a commit of the folder.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{id::NoteId, note::timestamp};
use anamnesis_store::fs::{file::Stamp, lock::Lock};
use git2::{Commit, Oid, Signature, Time, Tree};
use ulid::Ulid;

use crate::{
    error::Error,
    layout,
    repository::{BRANCH, Repository},
    tree::{self, EXECUTABLE, FILE, Named},
};

/// The end of the year 9999. Later commit times are ignored.
const LATEST: i64 = 253_402_300_799;

/// The trailer with the id of the change.
pub(crate) const BATCH: &str = "Anamnesis-Batch";

/// The trailer with the actor.
pub(crate) const ACTOR: &str = "Anamnesis-Actor";

/// Verb and actor of a commit.
#[derive(Debug, Clone, Copy)]
pub struct Act<'a> {
    /// The verb in the subject: `sync`, or the command.
    pub verb: &'a str,
    /// The actor: `person`, `agent`, `session`, `reflection`, `import` or `machine`.
    pub actor: &'a str,
}

/// A commit of changes to notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The id by which `undo` finds it.
    pub batch: Ulid,
    /// The changed notes.
    pub notes: BTreeSet<NoteId>,
}

/// Changed files: the new blob with the stamp of its file, or `None` if the file is gone.
pub(crate) type FileChanges = BTreeMap<String, Option<(Oid, Stamp)>>;

/// A new commit that no reference names yet.
pub(crate) struct NewCommit {
    pub(crate) commit: Oid,
    pub(crate) batch: Ulid,
}

/// The new state of a path: a blob with its mode, or nothing.
type Update<'a> = (&'a str, Option<(Oid, i32)>);

impl Repository {
    /// Writes a commit of changes in the folder, which no reference names yet; `None` if the tree
    /// stays the same.
    pub(crate) fn make_commit(
        &self,
        parent: Option<&Commit<'_>>,
        changes: &FileChanges,
        act: Act<'_>,
    ) -> Result<Option<NewCommit>, Error> {
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
        Ok(Some(NewCommit { commit, batch }))
    }

    /// Moves the branch to a commit of the folder's files.
    pub(crate) fn move_branch(
        &self,
        lock: &Lock,
        commit: Oid,
        changes: &FileChanges,
    ) -> Result<(), Error> {
        self.flush_commit()?;
        self.move_branch_flushed(lock, commit, changes)
    }

    /// Like [`Repository::move_branch`], after [`Repository::flush_commit`].
    pub(crate) fn move_branch_flushed(
        &self,
        _lock: &Lock,
        commit: Oid,
        changes: &FileChanges,
    ) -> Result<(), Error> {
        let _writing = self.writing()?;
        self.set(BRANCH, commit)?;
        let stamps = changes
            .iter()
            .filter_map(|(path, new)| Some((path.clone(), (*new)?)))
            .collect();
        self.update_git_index(self.git.find_commit(commit)?.tree_id(), &stamps);
        Ok(())
    }

    /// Writes a tree with these paths changed.
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

    /// Writes the tree of one folder. If a file and a folder have the same name, our file wins,
    /// otherwise the folder.
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
            // A name that is not UTF-8 is refused in every remote, so it is only ever removed.
            if name.contains(char::REPLACEMENT_CHARACTER) {
                builder.filter(|entry| String::from_utf8_lossy(entry.name_bytes()) != name)?;
                continue;
            }
            let path = tree::join(folder, name);
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
        Ok(self.record_written(builder.write()?))
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
        // A wrong clock must not make a commit older than its parents.
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
        Ok(self.record_written(commit))
    }
}

/// Returns a machine's name for commits, as one word.
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
