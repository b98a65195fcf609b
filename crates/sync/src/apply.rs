//! Changes the files of the folder to those of a commit, and finishes what a killed process began.
//!
//! Files are written before the branch moves. The reference [`APPLYING`] names the target
//! meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
};

use anamnesis_note::{
    id::NoteId,
    merge::{self, Sibling},
    note::{NoteFile, NoteType, Scope},
    usage_log::join_lines,
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
    tree::{self, Change, Changes, MAX_FILE, Named, entry, note_path},
};

/// The smallest number of new notes that are written as a group.
const MIN_GROUP: usize = 32;

/// The largest group, in bytes.
const MAX_GROUP_BYTES: usize = 64 * 1024 * 1024;

/// The result of applying a commit.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Notes whose file was written or removed.
    pub(crate) notes: BTreeSet<NoteId>,
    /// The folders' modification times before the first write.
    pub(crate) before: [i64; 6],
}

impl Repository {
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
            let modified = fs::symlink_metadata(&path).and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|modified| modified.elapsed().ok());
            if age.is_some_and(|age| age > STALE) {
                let _ = fs::remove_file(path);
            }
        }
        // We hold both locks, so no git of ours is running.
        let packing = self.git_folder().join(PACKING);
        if packing.exists() || self.is_pruning() {
            self.remove_locks();
            let _ = fs::remove_file(&packing);
        }
        drop(self.writing()?);
        // Rebuilds git's index if it is missing or damaged. Another git's lock may have prevented
        // an update.
        if let Some(head) = self.head()?
            && !(self.git_folder().join("index").exists() && self.git.index().is_ok())
        {
            self.update_git_index(head.tree_id(), &BTreeMap::new());
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
            return self.apply_commit(lock, notes, target);
        }
        let _writing = self.writing()?;
        self.git.find_reference(APPLYING)?.delete()?;
        Ok(nothing)
    }

    /// Restores notes that the branch has and the folder does not.
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
            self.apply_note(lock, notes, *id, *change, &mut applied, &mut stamps)?;
        }
        for (path, change) in &changes.others {
            if matches!(tree::named(path), Named::Receipt | Named::Layout) {
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
                let (scope, id) = (Scope::Portable, *id);
                Some((NotePath { scope, folder, id }, oid))
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
                    // Edited just now, deleted elsewhere: the deletion wins, the text is kept as a
                    // proposal.
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
            // Already written.
            (_, Some((found, _))) if *found == oid => {
                if let (true, Some((old, ..))) = (is_moving, &lies) {
                    notes.remove(lock, place(*old))?;
                }
                return Ok(());
            }
            // The file is unchanged since the branch's tip.
            (Some((_, true, _)), None) => blob.content().to_vec(),
            (Some((old, true, _)), Some(_)) if *old == folder => blob.content().to_vec(),
            // A new note.
            (None, None) if change.old.is_none() => blob.content().to_vec(),
            // Deleted just now; the next run commits that.
            (None, None) => return Ok(()),
            // Edited just now.
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

    /// Stores a text as a proposal on this machine.
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

    /// Keeps the bytes of an unreadable version in `quarantine/`.
    pub(crate) fn quarantine(&self, id: NoteId, bytes: &[u8]) -> Result<(), Error> {
        let folder = self.home.quarantine();
        home::ensure_folder(&folder)?;
        let oid = Oid::hash_object(ObjectType::Blob, bytes)?;
        let path = folder.join(format!("{id}-{}.txt", &oid.to_string()[..12]));
        file::write_atomic(&path, bytes).map_err(Error::io(&path))?;
        Ok(())
    }

    /// Changes a usage log or the marker to the version in a commit.
    fn apply_file(&self, name: &str, change: Change<(Oid, i32)>) -> Result<(), Error> {
        let path = self.folder().join(name);
        let found = file::read_head(&path, MAX_FILE).ok();
        let found = found.filter(|(.., whole)| *whole).map(|(bytes, ..)| bytes);
        let Some((oid, _)) = change.new else {
            let oid = found
                .map(|bytes| Oid::hash_object(ObjectType::Blob, &bytes))
                .transpose()?;
            // A log that has grown belongs to this machine and stays.
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
