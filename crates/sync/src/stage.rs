//! Finds what changed in the folder since the branch's tip, and commits it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use anamnesis_note::{
    id::NoteId,
    note::{NoteFile, NoteType, Scope, State},
};
use anamnesis_store::{
    fs::{
        file::{self, Stamp},
        lock::Lock,
    },
    notes::{NotePath, Notes, Problem},
};
use anamnesis_text::sanitize::is_sensitive;
use git2::{Commit, ObjectType, Oid};
use ulid::Ulid;

use crate::{
    commit::{Act, Committed, FileChanges},
    error::Error,
    git_index::{IndexStamp, same},
    join::mass_deletion,
    repository::{BRANCH, Repository, SyncLock},
    tree::{self, MAX_FILE, entry, is_tombstone, note_path, subtree},
};

/// Changes in the folder since the branch's tip.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    /// Changed files by path.
    pub(crate) changes: FileChanges,
    /// Files that are too large to sync.
    problems: Vec<Problem>,
}

impl Staged {
    /// Returns the paths of deleted notes. A moved note is not deleted.
    fn gone(&self) -> Vec<String> {
        let is_elsewhere = |id| {
            NoteType::ALL.iter().any(|folder| {
                let there = self.changes.get(&note_path(*folder, id));
                there.is_some_and(Option::is_some)
            })
        };
        let gone = self.changes.iter().filter(|(path, new)| {
            new.is_none() && tree::note_id(path).is_some_and(|id| !is_elsewhere(id))
        });
        gone.map(|(path, _)| path.clone()).collect()
    }
}

/// The result of committing the folder.
#[derive(Debug, Default)]
pub(crate) struct FolderCommits {
    /// The number of new commits.
    pub(crate) commits: usize,
    /// Files that cannot sync.
    pub(crate) problems: Vec<Problem>,
    /// Deleted notes that stay in the branch until the person confirms, and the number of all
    /// notes.
    pub(crate) held_back: Option<(usize, usize)>,
}

/// Why a note that somebody edited or committed by hand is not pushed.
pub const WITHHELD: &str =
    "has a credential or a <private> part; it stays on this machine until you remove that";

/// Returns whether a file in `memory/` is a note that must not leave this machine. Our commands mask what
/// they write, an editor does not.
pub fn is_withheld(name: &str, bytes: &[u8]) -> bool {
    let Some(id) = tree::note_id(name) else {
        return false;
    };
    // The whole file leaves: its tags, keys and comments, too. A title may be escaped there.
    is_sensitive(&String::from_utf8_lossy(bytes))
        || NoteFile::parse(bytes, id).is_ok_and(|file| is_sensitive(&file.note().title))
}

/// Changed files by what a change is: whether a person made it, then the session and the actor. A
/// person's are last, so that they are the newest, and each new note of theirs is a change of its own.
type Groups = BTreeMap<(bool, String, String), FileChanges>;

/// A path where a note's file can be.
struct NotePresence {
    name: String,
    is_committed: bool,
    is_there: bool,
}

impl Repository {
    /// Commits the changes of some notes as one change; `None` if there are none.
    pub fn commit_notes(
        &self,
        lock: &Lock,
        ids: &BTreeSet<NoteId>,
        act: Act<'_>,
    ) -> Result<Option<Committed>, Error> {
        let head = self.head()?;
        let changes = self.stage_notes(head.as_ref(), ids)?;
        let Some(made) = self.make_commit(head.as_ref(), &changes, act)? else {
            return Ok(None);
        };
        self.move_branch(lock, made.commit, &changes)?;
        Ok(Some(committed(made.batch, &changes)))
    }

    /// Like [`Repository::commit_notes`], but takes the notes lock only to move the branch: hooks do
    /// not wait while objects are flushed.
    pub fn commit_notes_beside(
        &self,
        notes: &Notes,
        ids: &BTreeSet<NoteId>,
        act: Act<'_>,
    ) -> Result<Option<Committed>, Error> {
        let head = self.head()?;
        let changes = self.stage_notes(head.as_ref(), ids)?;
        let Some(made) = self.make_commit(head.as_ref(), &changes, act)? else {
            return Ok(None);
        };
        self.flush_commit()?;
        let lock = notes.lock()?;
        let now = self.head()?;
        let is_same = now.as_ref().map(Commit::id) == head.as_ref().map(Commit::id)
            && self.stage_notes(now.as_ref(), ids)? == changes;
        if !is_same {
            // Another process was faster; what it changed is small.
            return self.commit_notes(&lock, ids, act);
        }
        self.move_branch_flushed(&lock, made.commit, &changes)?;
        Ok(Some(committed(made.batch, &changes)))
    }

    /// Finds what changed of some notes since a commit.
    fn stage_notes(
        &self,
        head: Option<&Commit<'_>>,
        ids: &BTreeSet<NoteId>,
    ) -> Result<FileChanges, Error> {
        let tree = head.map(Commit::tree).transpose()?;
        // A lookup by path unpacks the folder, which takes long in a large store.
        let mut folders = Vec::with_capacity(NoteType::ALL.len());
        for folder in NoteType::ALL {
            let tree = tree.as_ref();
            let tree = tree.map(|tree| subtree(&self.git, tree, folder.as_str()));
            folders.push((*folder, tree.transpose()?.flatten()));
        }
        let mut staged = Staged::default();
        for id in ids {
            let mut places = Vec::with_capacity(folders.len());
            for (folder, tree) in &folders {
                let path = NotePath::portable(*folder, *id).absolute(&self.home);
                let name = note_path(*folder, *id);
                let old = tree
                    .as_ref()
                    .and_then(|tree| entry(tree, &format!("{id}.md")));
                self.stage(&name, &path, old, None, &mut staged)?;
                places.push(NotePresence {
                    name,
                    is_committed: old.is_some(),
                    is_there: path.exists(),
                });
            }
            settle(&mut staged.changes, &places);
        }
        Ok(staged.changes)
    }

    /// Commits all changes in the folder, one commit per session and actor.
    ///
    /// The version that was read is committed; later changes belong to the next run. The notes lock
    /// is held while the branch moves, not while files are read. A mass deletion is not committed
    /// unless `may_delete` is set.
    pub(crate) fn commit_all(
        &self,
        _held: &SyncLock,
        notes: &Notes,
        may_delete: bool,
    ) -> Result<FolderCommits, Error> {
        loop {
            let head = self.head()?;
            let expected = head.as_ref().map(Commit::id);
            let mut staged = self.stage_all(notes)?;
            let mut gathered = FolderCommits {
                problems: std::mem::take(&mut staged.problems),
                ..FolderCommits::default()
            };
            Self::settle_moves(notes, head.as_ref(), &mut staged)?;
            if !may_delete {
                gathered.held_back = self.hold_deletions(head.as_ref(), &mut staged)?;
            }
            let mut tip = head;
            for ((_, _, actor), changes) in self.by_session(staged.changes.clone())? {
                let verb = match actor.as_str() {
                    "person" => "edited",
                    "session" => "noted",
                    _ => "sync",
                };
                let act = Act {
                    verb,
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
            // Many objects take long, so they are flushed before the lock is taken.
            self.flush_commit()?;
            let lock = notes.lock()?;
            // A command may have committed in the meantime.
            if self.head()?.map(|head| head.id()) == expected {
                self.move_branch_flushed(&lock, tip.id(), &staged.changes)?;
                return Ok(gathered);
            }
        }
    }

    /// Removes deletions from the changes if they need the person's confirmation. Returns how many of
    /// how many.
    fn hold_deletions(
        &self,
        head: Option<&Commit<'_>>,
        staged: &mut Staged,
    ) -> Result<Option<(usize, usize)>, Error> {
        let tree = head.map(Commit::tree).transpose()?;
        let paths = staged.gone();
        let mut gone = BTreeMap::new();
        for path in &paths {
            let old = tree.as_ref().and_then(|tree| entry(tree, path));
            if let (Some(id), Some(old)) = (tree::note_id(path), old)
                && !is_tombstone(&self.read(old)?, id)
            {
                gone.insert(id, old);
            }
        }
        let came = staged.changes.iter();
        let came = came.filter_map(|(path, new)| Some((tree::note_id(path)?, new.as_ref()?.0)));
        let mass = mass_deletion(self, tree.as_ref(), &gone, came)?;
        if mass.is_some() {
            for path in &paths {
                staged.changes.remove(path);
            }
        }
        Ok(mass)
    }

    /// Returns whether the folder differs from the branch's tip.
    ///
    /// If no folder changed since the branch was moved, no note was made, replaced or removed. Then
    /// nothing is listed, and an edit in place is not noticed.
    pub(crate) fn is_dirty(&self, notes: &Notes) -> Result<bool, Error> {
        if self.is_older_than_branch() {
            return Ok(false);
        }
        Ok(!self.stage_all(notes)?.changes.is_empty())
    }

    /// Returns whether all folders of notes and our other files are older than the branch's file.
    fn is_older_than_branch(&self) -> bool {
        let modified = |path: &Path| fs::symlink_metadata(path).and_then(|it| it.modified()).ok();
        let Some(moved) = modified(&self.git_folder().join(BRANCH)) else {
            return false;
        };
        let folders = NoteType::ALL.iter().map(|folder| folder.as_str());
        let names = folders.chain(tree::OTHER_FILES);
        let mut places = names.map(|name| self.folder().join(name));
        places.all(|place| match modified(&place) {
            Some(modified) => modified < moved,
            // Nothing is in a folder that does not exist; a removed one changed this one.
            None => !place.exists(),
        }) && modified(&self.folder()).is_some_and(|modified| modified < moved)
    }

    /// Corrects the state of notes that a command moved during the scan. Such a note may have been
    /// seen in neither folder, or in both.
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
        let moving = staged.changes.iter();
        let moving = moving.filter(|(name, new)| new.is_none() || !is_committed(name));
        let moving = moving.filter_map(|(name, _)| tree::note_id(name));
        let moving: BTreeSet<NoteId> = moving.collect();
        if moving.is_empty() {
            return Ok(());
        }
        let _lock = notes.lock()?;
        for id in moving {
            let places = NoteType::ALL.iter().map(|folder| {
                let name = note_path(*folder, id);
                NotePresence {
                    is_committed: is_committed(&name),
                    is_there: notes.stamp(NotePath::portable(*folder, id)).is_some(),
                    name,
                }
            });
            settle(&mut staged.changes, &places.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Stages one file of the folder.
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
            Ok((bytes, _, true)) if is_withheld(name, &bytes) => staged.problems.push(Problem {
                path: format!("memory/{name}"),
                reason: WITHHELD.to_owned(),
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

    /// Stages all our files in the folder; reads only files with a new stamp.
    pub(crate) fn stage_all(&self, notes: &Notes) -> Result<Staged, Error> {
        let head = self.head()?;
        let tree = head.as_ref().map(Commit::tree).transpose()?;
        let mut committed = tree::own_files(&self.git, tree.as_ref())?;
        let mut staged = Staged::default();
        let cache = self.cache();
        let unchanged = |known: Option<&(Oid, IndexStamp)>, stamp: Option<Stamp>| {
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
        for name in tree::OTHER_FILES {
            let path = self.folder().join(name);
            if !path.is_file() {
                continue;
            }
            let old = committed.others.remove(name);
            let stamp = fs::symlink_metadata(&path).map(|metadata| Stamp::from_metadata(&metadata));
            let cached = unchanged(cache.others.get(name), stamp.ok());
            self.stage(name, &path, old, cached, &mut staged)?;
        }
        let missing = committed.notes.into_keys();
        let missing = missing.map(|(folder, id)| note_path(folder, id));
        let missing = missing.chain(committed.others.into_keys());
        let is_sparse = self.is_sparse();
        let gone = missing.filter(|name| !is_sparse && self.is_gone(name));
        staged.changes.extend(gone.map(|name| (name, None)));
        Ok(staged)
    }

    /// Returns whether git leaves files of the history out of the folder: a sparse checkout deletes no note.
    fn is_sparse(&self) -> bool {
        ["config", "config.worktree"].iter().any(|name| {
            let text = fs::read_to_string(self.git_folder().join(name)).unwrap_or_default();
            let text = text.to_lowercase().replace([' ', '\t'], "");
            text.lines().any(|line| line == "sparsecheckout=true")
        })
    }

    /// Returns whether a path does not exist. A path behind a link or in an unreadable folder is
    /// not gone, nor is one where something else replaced the file.
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

    /// Groups changes by session and actor of the notes. Other files join the last
    /// group, so that the end of a session is one commit.
    fn by_session(&self, changes: FileChanges) -> Result<Groups, Error> {
        let tree = self.head()?.as_ref().map(Commit::tree).transpose()?;
        let mut groups = Groups::new();
        let mut others = FileChanges::new();
        for (path, change) in changes {
            let Some(id) = tree::note_id(&path) else {
                others.insert(path, change);
                continue;
            };
            let old = tree.as_ref().and_then(|tree| entry(tree, &path));
            let (mut session, actor) = match change.map(|(oid, _)| oid).or(old) {
                Some(oid) => {
                    let blob = self.git.find_blob(oid)?;
                    authorship(blob.content(), id)
                }
                None => (String::new(), "person".to_owned()),
            };
            let is_person = actor == "person";
            if is_person && old.is_none() {
                session = id.to_string();
            }
            let key = (is_person, session, actor);
            groups.entry(key).or_default().insert(path, change);
        }
        match groups.last_entry() {
            Some(mut last) => last.get_mut().extend(others),
            None if others.is_empty() => {}
            None => drop(groups.insert((false, String::new(), "machine".to_owned()), others)),
        }
        Ok(groups)
    }
}

/// Makes the staged changes of one note consistent. Folders are scanned one after the other, so a
/// note that moves may be seen twice or never; one that was not seen is left for the next run. If
/// several files have the same id, only the committed one, or else the first, is staged: other
/// machines refuse the rest.
fn settle(changes: &mut FileChanges, places: &[NotePresence]) {
    let mut there = places.iter().filter(|place| place.is_there);
    let first = there.clone().find(|place| place.is_committed);
    if let Some(first) = first.or_else(|| there.next()) {
        let there = places.iter().filter(|place| place.is_there);
        for place in there.filter(|place| !place.is_committed && place.name != first.name) {
            changes.remove(&place.name);
        }
    }
    let is_seen = |place: &NotePresence| match changes.get(&place.name) {
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

/// Describes a commit of changed files by the notes among them.
fn committed(batch: Ulid, changes: &FileChanges) -> Committed {
    let notes = changes.keys().filter_map(|path| tree::note_id(path));
    Committed {
        batch,
        notes: notes.collect(),
    }
}

/// Returns session and author of a note, for the trailers of its commit.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolves a note in two folders. Each has: whether it is committed, the scan's result (`+`
    /// new text, `-` gone), and whether the file exists now.
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
            places.push(NotePresence {
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
    fn a_note_that_moves_during_the_scan_is_staged_once_or_not_at_all() {
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
