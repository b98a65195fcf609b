//! Finds purged notes, or a text, in everything that a repository contains.
//!
//! The branch is walked to say which notes are affected. Then every other object is read, whatever
//! names it: tags, branches, stashes, reflogs, or nothing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::Path,
};

use anamnesis_note::id::NoteId;
use anamnesis_store::fs::file;
use anamnesis_text::private_tokens::PrivateTokens;
use chrono::{DateTime, Utc};
use git2::{Commit, ObjectType, Oid, Sort};

use crate::{
    error::Error,
    purge::Purge,
    repository::{BRANCH, Repository},
    tree::{Changes, MAX_FILE, is_tombstone},
};

/// The name of objects that only reflogs or nothing refers to.
const UNNAMED: &str = "objects that no branch or tag names";

/// The occurrences of a purge's notes and text in a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// The notes in the branch, each with the commits that wrote it.
    pub notes: BTreeMap<NoteId, Written>,
    /// Other files in the branch, and files of git itself.
    pub others: BTreeSet<String>,
    /// The number of commits of the branch with the text in their message.
    pub messages: usize,
    /// Other references to them: tags, branches, stashes, or objects that nothing names.
    pub references: BTreeSet<String>,
}

impl Occurrences {
    /// Returns whether the repository does not contain it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Commits that wrote a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The number of commits.
    pub commits: usize,
    /// The time of the first pushed commit, which may have been pushed later; `None` if none was pushed.
    pub pushed_at: Option<DateTime<Utc>>,
}

/// A search for a purge's notes and text.
struct Search<'a> {
    repository: &'a Repository,
    purge: &'a Purge,
    /// Whether a blob or tag has the text.
    objects: HashMap<Oid, bool>,
}

/// The occurrences that one commit added.
#[derive(Default)]
struct Brought {
    notes: BTreeSet<NoteId>,
    others: BTreeSet<String>,
    is_in_message: bool,
}

impl Brought {
    fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.others.is_empty() && !self.is_in_message
    }
}

impl Search<'_> {
    /// Finds what a commit changed in its first parent's files.
    fn in_commit(&mut self, commit: &Commit<'_>) -> Result<Brought, Error> {
        let repository = self.repository;
        let needle = self.purge.needle.as_ref();
        let mut brought = Brought {
            is_in_message: needle.is_some_and(|needle| needle.is_in(commit.message_raw_bytes())),
            ..Brought::default()
        };
        let before = match commit.parent(0) {
            Ok(parent) => Some(parent.tree()?),
            Err(_) => None,
        };
        let changes = Changes::between(&repository.git, before.as_ref(), Some(&commit.tree()?))?;
        for (id, change) in changes.notes {
            let Some((_, oid)) = change.new else { continue };
            let has_text = self.is_in_object(oid)?;
            // The tombstone of a purged note stays.
            let is_purged =
                self.purge.ids.contains(&id) && !is_tombstone(&repository.read(oid)?, id);
            if has_text || is_purged {
                brought.notes.insert(id);
            }
        }
        for (path, change) in changes.others {
            let Some((oid, _)) = change.new else { continue };
            if repository.is_blob(oid)? && self.is_in_object(oid)? {
                brought.others.insert(path);
            }
        }
        Ok(brought)
    }

    fn is_in_object(&mut self, oid: Oid) -> Result<bool, Error> {
        let Some(needle) = &self.purge.needle else {
            return Ok(false);
        };
        if let Some(known) = self.objects.get(&oid) {
            return Ok(*known);
        }
        let odb = self.repository.git.odb()?;
        let holds = needle.is_in(odb.read(oid)?.data());
        self.objects.insert(oid, holds);
        Ok(holds)
    }
}

impl Repository {
    /// Finds a purge's notes and text in the whole repository. Changes nothing.
    pub fn occurrences(&self, purge: &Purge) -> Result<Occurrences, Error> {
        let mut found = Occurrences::default();
        let mut search = Search {
            repository: self,
            purge,
            objects: HashMap::new(),
        };
        let head = self.head()?.map(|head| head.id());
        let mut of_branch = HashSet::new();
        if let Some(head) = head {
            self.search_branch(head, &mut search, &mut found, &mut of_branch)?;
        }
        self.search_others(head, &mut search, &mut found, &of_branch)?;
        if let Some(needle) = &purge.needle {
            let git = self.git_folder();
            let objects = git.join("objects");
            let (_, files) = file::below(git).map_err(Error::io(git))?;
            for path in files.iter().filter(|path| !path.starts_with(&objects)) {
                let bytes = file::read_head(path, MAX_FILE).map(|(bytes, ..)| bytes);
                if needle.is_in(&bytes.unwrap_or_default()) {
                    found.others.insert(git_path(git, path));
                }
            }
        }
        Ok(found)
    }

    fn search_branch(
        &self,
        head: Oid,
        search: &mut Search<'_>,
        found: &mut Occurrences,
        of_branch: &mut HashSet<Oid>,
    ) -> Result<(), Error> {
        let pushed = self.joined()?.map(|tip| tip.id());
        let order = Sort::TOPOLOGICAL | Sort::REVERSE;
        for oid in self.revwalk(order, Some(head), None)? {
            let commit = self.git.find_commit(oid?)?;
            of_branch.insert(commit.id());
            let brought = search.in_commit(&commit)?;
            found.messages += usize::from(brought.is_in_message);
            found.others.extend(brought.others);
            for id in brought.notes {
                let written = found.notes.entry(id).or_default();
                // A merge commit repeats what other commits wrote.
                if commit.parent_count() < 2 || written.commits == 0 {
                    written.commits += 1;
                }
                if written.pushed_at.is_none() && self.is_in_history(commit.id(), pushed)? {
                    written.pushed_at = DateTime::from_timestamp(commit.time().seconds(), 0);
                }
            }
        }
        Ok(())
    }

    /// Searches the objects that the branch does not have.
    fn search_others(
        &self,
        head: Option<Oid>,
        search: &mut Search<'_>,
        found: &mut Occurrences,
        of_branch: &HashSet<Oid>,
    ) -> Result<(), Error> {
        let odb = self.git.odb()?;
        let mut objects = Vec::new();
        odb.foreach(|oid| {
            objects.push(*oid);
            true
        })?;
        // Commits and annotated tags.
        let mut named = HashSet::new();
        let mut is_found = false;
        for oid in objects {
            let is_known = of_branch.contains(&oid) || search.objects.contains_key(&oid);
            match odb.read_header(oid)?.1 {
                _ if is_known => {}
                ObjectType::Commit => {
                    // The parent of an object that nothing names may be gone.
                    let brought = search.in_commit(&self.git.find_commit(oid)?);
                    if brought.is_ok_and(|brought| !brought.is_empty()) {
                        named.insert(oid);
                    }
                }
                ObjectType::Blob => is_found |= search.is_in_object(oid)?,
                ObjectType::Tag if search.is_in_object(oid)? => {
                    named.insert(oid);
                }
                _ => {}
            }
        }
        if !is_found && named.is_empty() {
            return Ok(());
        }
        for reference in self.git.references()? {
            let reference = reference?;
            let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
            let Ok(tip) = reference.peel_to_commit() else {
                continue;
            };
            if name == BRANCH || name == "HEAD" {
                continue;
            }
            let mut walk = self.revwalk(Sort::NONE, Some(tip.id()), head)?;
            let is_tag = reference.target().is_some_and(|tag| named.contains(&tag));
            if is_tag || walk.any(|oid| oid.is_ok_and(|oid| named.contains(&oid))) {
                found.references.insert(name);
            }
        }
        if found.references.is_empty() {
            found.references.insert(UNNAMED.to_owned());
        }
        Ok(())
    }

    /// Returns the notes with which fetched commits bring back what was purged here: purged notes, or
    /// notes with a token of a purged text. `head` is the branch before the join.
    pub(crate) fn returned(
        &self,
        incoming: Oid,
        head: Option<Oid>,
        purged: &PrivateTokens,
    ) -> Result<BTreeSet<NoteId>, Error> {
        let tree = head.map(|head| self.git.find_commit(head)?.tree());
        let gone = match tree.transpose()? {
            Some(tree) => self.purged_since(None, &tree)?.unwrap_or_default().gone,
            None => BTreeSet::new(),
        };
        let mut returned = BTreeSet::new();
        if purged.is_empty() && gone.is_empty() {
            return Ok(returned);
        }
        for oid in self.revwalk(Sort::NONE, Some(incoming), head)? {
            let commit = self.git.find_commit(oid?)?;
            let before = commit.parent(0).and_then(|parent| parent.tree()).ok();
            let changes = Changes::between(&self.git, before.as_ref(), Some(&commit.tree()?))?;
            for (id, change) in changes.notes {
                let Some((_, oid)) = change.new else { continue };
                let bytes = self.read(oid)?;
                let text = String::from_utf8_lossy(&bytes);
                if gone.contains(&id) && !is_tombstone(&bytes, id) || purged.mask(&text) != text {
                    returned.insert(id);
                }
            }
        }
        Ok(returned)
    }

    fn is_blob(&self, oid: Oid) -> Result<bool, Error> {
        // A submodule's commit is not in this repository.
        match self.git.odb()?.read_header(oid) {
            Ok((_, kind)) => Ok(kind == ObjectType::Blob),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the path of a file of git's, as people see it.
fn git_path(git: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(git).unwrap_or(path);
    format!(
        "memory/.git/{}",
        relative.to_string_lossy().replace('\\', "/")
    )
}
