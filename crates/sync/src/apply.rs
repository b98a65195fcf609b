//! Changes the files of the folder to those of a commit, and finishes what a killed process began.
//!
//! Files are written before the branch moves. The reference [`APPLYING`] names the target
//! meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anamnesis_note::{
    id::NoteId,
    merge::{self, Merged, Sibling},
    note::{NoteFile, NoteType, Scope},
    synced_lines::join_lines,
};
use anamnesis_store::{
    fs::{
        file::{self, Stamp},
        home,
        lock::Lock,
    },
    notes::{NotePath, Notes},
};
use git2::{Commit, ObjectType, Oid};

use crate::{
    error::Error,
    repository::{APPLYING, LOCKS, PACKING, Repository, STALE},
    tree::{self, Changes, MAX_FILE, Named, PathDiff, entry, note_path},
};

/// The smallest number of new notes that are written as a group.
const MIN_GROUP: usize = 32;

/// The largest group, in bytes.
const MAX_GROUP_BYTES: usize = 64 * 1024 * 1024;

/// How long another git's lock is waited for, and how often it is looked for.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_LOOK: Duration = Duration::from_millis(50);

/// Whether a lock file belongs to a reference that only a fetch or push changes.
fn is_fetched(lock: &str) -> bool {
    lock.starts_with("refs/anamnesis/") || lock.starts_with("refs/remotes/")
}

/// The result of applying a commit.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Notes whose file was written or removed.
    pub(crate) notes: BTreeSet<NoteId>,
    /// The number of new proposals with an edit of a note that is missing or deleted.
    pub(crate) proposals: usize,
    /// The folders' modification times before the first write.
    pub(crate) before: [i64; 6],
}

impl Applied {
    /// Starts before the first write.
    pub(crate) fn new(notes: &Notes) -> Self {
        Self {
            before: notes.folder_times(),
            ..Self::default()
        }
    }
}

impl Repository {
    /// Waits while another git holds a lock that a sync needs. What is left then belongs to a git that
    /// takes long, or to a dead one.
    fn wait_for_other_git(&self) -> Result<(), Error> {
        // git's index is a cache, and nobody reads the logs.
        let needed = LOCKS
            .iter()
            .filter(|lock| !lock.starts_with("logs/") && **lock != "index.lock");
        let needed: Vec<PathBuf> = needed.map(|lock| self.git_folder().join(lock)).collect();
        let until = Instant::now() + LOCK_WAIT;
        while let Some(held) = needed.iter().find(|lock| lock.exists()) {
            if Instant::now() < until {
                thread::sleep(LOCK_LOOK);
                continue;
            }
            let place = held.display();
            let what = format!(
                "is locked by another git; wait for it, or if none runs there: rm '{place}'"
            );
            return Err(Error::repository(held, what));
        }
        Ok(())
    }

    /// Finishes what a killed process began. The caller also holds the sync lock.
    ///
    /// If somebody has committed since, the branch must not go back. Files already written then
    /// count as local changes and are joined again.
    pub(crate) fn recover(&self, lock: &Lock, notes: &Notes) -> Result<Applied, Error> {
        if let Err(reason) = self.named_objects() {
            return Err(Error::damaged(self.git_folder(), reason));
        }
        // A power cut may have removed the marker, or another git left the lock file.
        for lock in LOCKS {
            let path = self.git_folder().join(lock);
            if file::age(&path).is_some_and(|age| age > STALE) {
                let _ = fs::remove_file(path);
            }
        }
        // We hold both locks, so no git of ours is running.
        let packing = self.git_folder().join(PACKING);
        if packing.exists() || self.is_pruning() {
            self.remove_locks();
            let _ = fs::remove_file(&packing);
        }
        // A fetch or push of ours that was killed leaves these, and none runs while we hold the locks.
        for lock in LOCKS.iter().filter(|lock| is_fetched(lock)) {
            let _ = fs::remove_file(self.git_folder().join(lock));
        }
        drop(self.writing()?);
        self.wait_for_other_git()?;
        // Rebuilds git's index if it is missing or damaged. Another git's lock may have prevented
        // an update.
        if let Some(head) = self.head()?
            && !(self.git_folder().join("index").exists() && self.git.index().is_ok())
        {
            self.update_git_index(head.tree_id(), &BTreeMap::new());
        }
        let nothing = Applied::new(notes);
        let Some(target) = self.tip(APPLYING)?.map(|commit| commit.id()) else {
            return Ok(nothing);
        };
        let goes_on = match self.head()? {
            Some(head) => self.git.graph_descendant_of(target, head.id())?,
            None => true,
        };
        if goes_on {
            return self.apply_commit(lock, notes, target);
        }
        let _writing = self.writing()?;
        self.git.find_reference(APPLYING)?.delete()?;
        Ok(nothing)
    }

    /// Restores notes that the branch has and the folder does not.
    pub(crate) fn restore_missing(&self, lock: &Lock, notes: &Notes) -> Result<Applied, Error> {
        let mut applied = Applied::new(notes);
        let Some(tree) = self.head()?.as_ref().map(Commit::tree).transpose()? else {
            return Ok(applied);
        };
        let staged = self.stage_all(notes)?;
        for path in staged.changes.iter().filter(|(_, new)| new.is_none()) {
            if let (Named::Note(folder, id), Some(oid)) =
                (tree::named(path.0), entry(&tree, path.0))
                && notes.find(id).is_none()
            {
                let blob = self.git.find_blob(oid)?;
                notes.place(lock, NotePath::portable(folder, id), blob.content())?;
                applied.notes.insert(id);
                let withdrawn = withdraw(lock, notes, id, blob.content())?;
                applied.notes.extend(withdrawn);
            }
        }
        Ok(applied)
    }

    /// Changes the files, then the branch, to a commit.
    ///
    /// A file that differs from the branch's tip is merged, not overwritten. The next run commits
    /// the difference.
    pub(crate) fn apply_commit(
        &self,
        lock: &Lock,
        notes: &Notes,
        target: Oid,
    ) -> Result<Applied, Error> {
        let _writing = self.writing()?;
        let mut applied = Applied::new(notes);
        self.set(APPLYING, target)?;
        let commit = self.git.find_commit(target)?;
        let new_tree = commit.tree()?;
        let old_tree = self.head()?.as_ref().map(Commit::tree).transpose()?;
        let changes = Changes::between(&self.git, old_tree.as_ref(), Some(&new_tree))?;
        let mut stamps = self.place_new(lock, notes, &changes)?;
        for (id, change) in &changes.notes {
            self.apply_note(lock, notes, *id, *change, &mut applied, &mut stamps)?;
        }
        for (path, change) in &changes.others {
            if matches!(tree::named(path), Named::Lines | Named::Layout) {
                self.apply_file(path, *change)?;
            }
        }
        self.set_branch(target)?;
        self.update_git_index(new_tree.id(), &stamps);
        self.git.find_reference(APPLYING)?.delete()?;
        Ok(applied)
    }

    /// Writes the files of many new notes as groups. The caller checks each note again.
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
                Some((NotePath::portable(folder, *id), oid))
            })
            .filter(|(path, _)| notes.stamp(*path).is_none())
            .collect();
        if new.len() < MIN_GROUP {
            return Ok(stamps);
        }
        let oids: HashMap<NotePath, Oid> = new.iter().copied().collect();
        let mut new = new.into_iter().peekable();
        while new.peek().is_some() {
            let mut files = Vec::new();
            let mut length = 0;
            while length < MAX_GROUP_BYTES
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

    /// Changes one note's file to the version in a commit.
    fn apply_note(
        &self,
        lock: &Lock,
        notes: &Notes,
        id: NoteId,
        change: PathDiff<(NoteType, Oid)>,
        applied: &mut Applied,
        stamps: &mut BTreeMap<String, (Oid, Stamp)>,
    ) -> Result<(), Error> {
        let place = |folder| NotePath::portable(folder, id);
        let read = |folder| {
            let bytes = notes.bytes(place(folder)).ok()?;
            let oid = Oid::hash_object(ObjectType::Blob, &bytes).ok()?;
            Some((folder, oid, bytes))
        };
        applied.notes.insert(id);
        let there = change.new.and_then(|(folder, _)| read(folder));
        let old_folder = change.old.map(|(folder, _)| folder);
        let lies = old_folder.and_then(read);
        // A person may have moved the file to another folder just now.
        let lies = match (&lies, &there) {
            (None, None) => NoteType::ALL.iter().find_map(|folder| read(*folder)),
            _ => lies,
        };
        let is_old = |found: Oid| change.old.is_some_and(|(_, oid)| oid == found);
        let Some((new_folder, oid)) = change.new else {
            if let Some((folder, found, bytes)) = lies {
                // Edited just now, deleted elsewhere: the deletion wins, the text is kept as a
                // proposal.
                if !is_old(found) {
                    let base = self.old_bytes(id, change)?;
                    self.propose_edit(lock, notes, id, base.as_deref(), &bytes, applied)?;
                }
                notes.remove(lock, place(folder))?;
            }
            return Ok(());
        };
        let blob = self.git.find_blob(oid)?;
        let content = blob.content();
        let lies_in = lies.as_ref().map(|(folder, ..)| *folder);
        let is_moved_here = there.is_none() && lies_in != old_folder;
        let folder = match lies_in {
            Some(folder) if is_moved_here && old_folder == Some(new_folder) => folder,
            _ => new_folder,
        };
        let bytes = match (&lies, &there) {
            // Already written.
            (_, Some((_, found, _))) if *found == oid => {
                if let Some(old) = lies_in.filter(|old| *old != folder) {
                    notes.remove(lock, place(old))?;
                }
                return Ok(());
            }
            // The file is unchanged since the branch's tip.
            (Some((_, found, _)), None) if is_old(*found) => content.to_vec(),
            (Some((old, found, _)), Some(_)) if *old == folder && is_old(*found) => {
                content.to_vec()
            }
            // A new note.
            (None, None) if change.old.is_none() => content.to_vec(),
            // A missing file does not delete a tombstone.
            (None, None) if tree::is_tombstone(content, id) => content.to_vec(),
            // Deleted just now, or held back; the next run commits that. The edit would be lost.
            (None, None) => {
                return self.propose_change(lock, notes, id, change, content, applied);
            }
            // Edited just now.
            (Some((_, _, edited)), _) | (None, Some((_, _, edited))) => {
                let base = self.old_bytes(id, change)?;
                let merged = merge::merge(id, base.as_deref(), edited, content);
                self.keep_rest(lock, notes, id, &merged, applied)?;
                merged.bytes
            }
        };
        let stamp = notes.place(lock, place(folder), &bytes)?;
        if bytes == content && folder == new_folder {
            stamps.insert(note_path(folder, id), (oid, stamp));
        }
        if let Some(old) = lies_in.filter(|old| *old != folder) {
            notes.remove(lock, place(old))?;
        }
        Ok(())
    }

    /// Keeps the parts of a merge that are not in the note itself.
    fn keep_rest(
        &self,
        lock: &Lock,
        notes: &Notes,
        id: NoteId,
        merged: &Merged,
        applied: &mut Applied,
    ) -> Result<(), Error> {
        if let Some(sibling) = &merged.conflict {
            add(lock, notes, sibling, Scope::Portable)?;
            applied.notes.insert(sibling.id);
        }
        if let Some(proposal) = &merged.proposal {
            Self::propose(lock, notes, proposal)?;
            applied.notes.insert(proposal.id);
            applied.proposals += 1;
        }
        match &merged.unreadable {
            Some(bytes) => self.quarantine(id, bytes),
            None => Ok(()),
        }
    }

    /// Keeps an edit of a deleted note as a proposal, if it adds text.
    fn propose_edit(
        &self,
        lock: &Lock,
        notes: &Notes,
        id: NoteId,
        base: Option<&[u8]>,
        edited: &[u8],
        applied: &mut Applied,
    ) -> Result<(), Error> {
        match merge::edited_after_deletion(id, base, edited) {
            Ok(Some(proposal)) => {
                Self::propose(lock, notes, &proposal)?;
                applied.notes.insert(proposal.id);
                applied.proposals += 1;
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(_) => self.quarantine(id, edited),
        }
    }

    /// Keeps another machine's change of a note whose file is missing here as a proposal, in place
    /// of the proposal with the change before it.
    fn propose_change(
        &self,
        lock: &Lock,
        notes: &Notes,
        id: NoteId,
        change: PathDiff<(NoteType, Oid)>,
        changed: &[u8],
        applied: &mut Applied,
    ) -> Result<(), Error> {
        let base = self.old_bytes(id, change)?;
        let former = match &base {
            Some(base) => withdraw(lock, notes, id, base)?,
            None => None,
        };
        applied.notes.extend(former);
        let base = base.filter(|_| former.is_none());
        self.propose_edit(lock, notes, id, base.as_deref(), changed, applied)
    }

    /// Returns the version of a note that an edit just now is merged with.
    fn old_bytes(
        &self,
        id: NoteId,
        change: PathDiff<(NoteType, Oid)>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let head = self.head()?.map(|head| head.id());
        let base = self.merge_base_of(id, change.old, head)?;
        base.map(|(_, oid)| self.read(oid)).transpose()
    }

    /// Stores a text as a proposal on this machine.
    pub(crate) fn propose(lock: &Lock, notes: &Notes, proposal: &Sibling) -> Result<(), Error> {
        add(lock, notes, proposal, Scope::MachineLocal)
    }

    /// Keeps the bytes of an unreadable version in `quarantine/`.
    pub(crate) fn quarantine(&self, id: NoteId, bytes: &[u8]) -> Result<(), Error> {
        let folder = self.home.quarantine();
        home::ensure_folder(&folder)?;
        let oid = Oid::hash_object(ObjectType::Blob, bytes)?;
        let path = folder.join(format!("{id}-{}.txt", &oid.to_string()[..12]));
        file::write_atomic(&path, bytes).map_err(Error::io(&path))?;
        Ok(())
    }

    /// Changes a file of lines or the marker to the version in a commit.
    fn apply_file(&self, name: &str, change: PathDiff<(Oid, i32)>) -> Result<(), Error> {
        let path = self.folder().join(name);
        let found = file::read_head(&path, MAX_FILE).ok();
        let found = found.filter(|(.., whole)| *whole).map(|(bytes, ..)| bytes);
        let Some((oid, _)) = change.new else {
            let oid = found
                .map(|bytes| Oid::hash_object(ObjectType::Blob, &bytes))
                .transpose()?;
            // A file that changed here stays.
            if oid.is_some() && oid == change.old.map(|(oid, _)| oid) {
                fs::remove_file(&path).map_err(Error::io(&path))?;
            }
            return Ok(());
        };
        let blob = self.git.find_blob(oid)?;
        let bytes = match found {
            Some(found) if found == blob.content() => return Ok(()),
            Some(found) if tree::named(name) == Named::Lines => join_lines(&found, blob.content()),
            _ => blob.content().to_vec(),
        };
        file::write_atomic(&path, &bytes).map_err(Error::io(&path))?;
        Ok(())
    }
}

/// Writes a note that a merge created, unless it exists.
fn add(lock: &Lock, notes: &Notes, sibling: &Sibling, scope: Scope) -> Result<(), Error> {
    if notes.find(sibling.id).is_some() {
        return Ok(());
    }
    let file = NoteFile::parse(&sibling.bytes, sibling.id);
    let folder = file.map_or(NoteType::Semantic, |file| file.note().note_type);
    let id = sibling.id;
    notes.place(lock, NotePath { scope, folder, id }, &sibling.bytes)?;
    Ok(())
}

/// Removes the proposal that was made of this version of a note, unless a person changed it.
/// Returns its id.
fn withdraw(
    lock: &Lock,
    notes: &Notes,
    id: NoteId,
    version: &[u8],
) -> Result<Option<NoteId>, Error> {
    let Ok(Some(proposal)) = merge::edited_after_deletion(id, None, version) else {
        return Ok(None);
    };
    let Some(path) = notes.find(proposal.id) else {
        return Ok(None);
    };
    if path.scope != Scope::MachineLocal || notes.bytes(path)? != proposal.bytes {
        return Ok(None);
    }
    notes.remove(lock, path)?;
    Ok(Some(proposal.id))
}
