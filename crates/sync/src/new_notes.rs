//! Writes many new notes and commits them at once, in the same memory however many they are.
//!
//! Notes are written in slices, and the blobs of a slice become one pack. Paths, ids and stamps are in
//! a temporary file, sorted as git sorts them, from which the trees and git's index are written. The
//! packs are moved into the repository just before the commit, so that nothing is left of an import
//! that fails.

use std::{
    fs,
    io::{BufWriter, Write},
    iter::Peekable,
    path::PathBuf,
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    note::{NoteType, Scope},
};
use anamnesis_store::{
    fs::{
        file::{self, Stamp},
        home::Home,
        lock::Lock,
    },
    notes::{NotePath, Notes},
    scratch::{self, Scratch},
};
use chrono::{DateTime, Utc};
use git2::{Commit, IndexEntry, ObjectType, Odb, Oid, Tree};
use ulid::Ulid;

use crate::{
    commit::Act,
    error::Error,
    git_index::{index_entry, mark_carried, write_entry, write_header},
    layout,
    repository::{BRANCH, Repository, SyncLock},
    tree::{self, FILE, note_path},
};

/// The folder in `.git` with the packs of an import that is not committed yet.
pub(crate) const PACKS: &str = "anamnesis-packs";

/// How many bytes of notes are written at once. More of them need fewer flushes and fewer packs.
const SLICE: usize = 8 * 1024 * 1024;

/// The length of an object's id, in bytes.
const OID_LENGTH: usize = 20;

/// The mode of packs, which nobody changes.
const PACK_MODE: u32 = 0o400;

/// The note types in the order in which git sorts their folders.
const SORTED: [NoteType; 3] = [NoteType::Episodic, NoteType::Procedural, NoteType::Semantic];

/// The table of the notes that sync, and that of those that do not.
const TABLES: [&str; 2] = ["portable", "machine_local"];

/// An entry of a tree is handed over, and whether it is new.
type TakeEntry<'a> = dyn FnMut(&[u8], bool) -> Result<(), Error> + 'a;

/// New notes of one change.
pub struct NewNotes<'a> {
    notes: &'a Notes,
    repository: Repository,
    /// The notes that are not written yet.
    slice: Vec<(NotePath, Vec<u8>)>,
    slice_length: usize,
    written: WrittenNotes,
    // Dropped in this order.
    lock: Lock,
    _held: SyncLock,
}

/// Notes that were written, and when their folders changed.
pub struct WrittenNotes {
    files: Scratch,
    /// The number of notes.
    pub count: usize,
    /// The folder times before the notes were written, and since then.
    pub folder_times: [[i64; 6]; 2],
}

/// A note's file whose blob is in a pack.
struct NewFile {
    path: NotePath,
    blob: Oid,
    stamp: Stamp,
}

impl NewFile {
    fn key(&self) -> [u8; 17] {
        let mut key = [place(self.path.folder); 17];
        key[1..].copy_from_slice(&self.path.id.to_bytes());
        key
    }

    fn value(&self) -> Vec<u8> {
        let Stamp {
            size,
            modified,
            inode,
        } = self.stamp;
        let numbers = [size, modified, inode].map(i64::to_be_bytes);
        [self.blob.as_bytes(), numbers.as_flattened()].concat()
    }

    fn parse(scope: Scope, key: &[u8], value: &[u8]) -> Option<Self> {
        let (place, id) = key.split_first()?;
        let (blob, numbers) = value.split_at_checked(OID_LENGTH)?;
        let mut numbers = numbers
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(i64::from_be_bytes);
        Some(Self {
            path: NotePath {
                scope,
                folder: *SORTED.get(usize::from(*place))?,
                id: NoteId::from_bytes(id.try_into().ok()?),
            },
            blob: Oid::from_bytes(blob).ok()?,
            stamp: Stamp {
                size: numbers.next()?,
                modified: numbers.next()?,
                inode: numbers.next()?,
            },
        })
    }
}

/// Returns the place of a folder in [`SORTED`].
fn place(folder: NoteType) -> u8 {
    let place = SORTED.iter().position(|it| *it == folder);
    place
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(u8::MAX)
}

impl WrittenNotes {
    fn record(&mut self, new: &NewFile) -> Result<(), Error> {
        let [portable, local] = TABLES;
        let table = match new.path.scope {
            Scope::Portable => portable,
            Scope::MachineLocal => local,
        };
        self.files.set(table, &new.key(), &new.value())?;
        self.count += 1;
        Ok(())
    }

    /// Calls `take` with each portable file in a folder, sorted by path.
    fn each_file(
        &self,
        folder: NoteType,
        mut take: impl FnMut(NewFile) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.files.each(TABLES[0], &[place(folder)], |key, value| {
            NewFile::parse(Scope::Portable, key, value).map_or(Ok(()), &mut take)
        })
    }

    /// Calls `take` with the path of each note.
    pub fn each<E: From<scratch::Error>>(
        &self,
        mut take: impl FnMut(NotePath) -> Result<(), E>,
    ) -> Result<(), E> {
        let scopes = [Scope::Portable, Scope::MachineLocal];
        for (table, scope) in TABLES.into_iter().zip(scopes) {
            self.files.each(table, &[], |key, value| {
                NewFile::parse(scope, key, value).map_or(Ok(()), |new| take(new.path))
            })?;
        }
        Ok(())
    }
}

impl<'a> NewNotes<'a> {
    /// Begins a change under the locks of sync and of the notes: nobody else commits the folder.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process syncs for longer than `timeout`.
    pub fn begin(
        home: &Home,
        notes: &'a Notes,
        machine: &str,
        now: DateTime<Utc>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let held = SyncLock::acquire(home, timeout)?;
        let lock = notes.lock()?;
        let new = Self {
            notes,
            repository: Repository::open_or_create(home, &lock, machine, now)?,
            slice: Vec::new(),
            slice_length: 0,
            written: WrittenNotes {
                files: Scratch::new(&TABLES)?,
                count: 0,
                folder_times: [notes.folder_times(); 2],
            },
            lock,
            _held: held,
        };
        new.discard_packs()?;
        Ok(new)
    }

    fn packs(&self) -> PathBuf {
        self.repository.git_folder().join(PACKS)
    }

    /// Removes packs that are not part of the repository, those of a killed import too.
    fn discard_packs(&self) -> Result<(), Error> {
        let packs = self.packs();
        if packs.exists() {
            fs::remove_dir_all(&packs).map_err(Error::io(&packs))?;
        }
        Ok(())
    }

    /// The number of notes that have been written.
    pub fn count(&self) -> usize {
        self.written.count
    }

    /// Adds a note, and writes the notes so far if they are many.
    ///
    /// # Errors
    /// [`Error::Taken`] if a note with this path exists.
    pub fn add(&mut self, path: NotePath, bytes: Vec<u8>) -> Result<(), Error> {
        self.slice_length += bytes.len();
        self.slice.push((path, bytes));
        if self.slice_length < SLICE {
            return Ok(());
        }
        self.write()
    }

    /// Writes the notes that have been added.
    ///
    /// # Errors
    /// [`Error::Taken`] if a note with the path of one of them exists.
    pub fn write(&mut self) -> Result<(), Error> {
        let slice = std::mem::take(&mut self.slice);
        self.slice_length = 0;
        let portable = slice
            .iter()
            .filter(|(path, _)| path.scope == Scope::Portable);
        let portable: Vec<&[u8]> = portable.map(|(_, bytes)| bytes.as_slice()).collect();
        self.write_pack(&portable)?;
        let mut blobs = Vec::with_capacity(slice.len());
        for (path, bytes) in &slice {
            blobs.push((*path, Oid::hash_object(ObjectType::Blob, bytes)?));
        }
        let placed = self.notes.place_new(&self.lock, slice)?;
        let recorded = self.record(&blobs, &placed);
        if recorded.is_err() {
            for (path, _) in placed {
                self.notes.remove(&self.lock, path)?;
            }
        }
        recorded
    }

    /// Records the files that were written.
    ///
    /// # Errors
    /// [`Error::Taken`] if some were not.
    fn record(
        &mut self,
        blobs: &[(NotePath, Oid)],
        placed: &[(NotePath, Stamp)],
    ) -> Result<(), Error> {
        if blobs.len() != placed.len() {
            return Err(Error::Taken);
        }
        for ((path, blob), (_, stamp)) in blobs.iter().zip(placed) {
            self.written.record(&NewFile {
                path: *path,
                blob: *blob,
                stamp: *stamp,
            })?;
        }
        Ok(())
    }

    /// Writes blobs into a pack, which is flushed.
    fn write_pack(&self, blobs: &[&[u8]]) -> Result<(), Error> {
        if blobs.is_empty() {
            return Ok(());
        }
        let folder = self.packs();
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let odb = Odb::new()?;
        odb.add_new_mempack_backend(1)?;
        let memory = git2::Repository::from_odb(odb)?;
        let mut pack = memory.packbuilder()?;
        pack.set_threads(1);
        for bytes in blobs {
            pack.insert_object(memory.blob(bytes)?, None)?;
        }
        pack.write(&folder, PACK_MODE)?;
        let name = pack.name()?.unwrap_or_default();
        let files = ["pack", "idx"].map(|kind| folder.join(format!("pack-{name}.{kind}")));
        file::flush(&files).map_err(Error::io(&folder))
    }

    /// Removes the notes that have been written.
    pub fn discard(self) -> Result<(), Error> {
        self.discard_packs()?;
        let remove = |path| Ok::<_, Error>(self.notes.remove(&self.lock, path)?);
        self.written.each(remove)
    }

    /// Commits the written notes and releases the locks. Returns the id by which `undo` finds the
    /// change; `None` if no note syncs.
    pub fn commit(mut self, act: Act<'_>) -> (WrittenNotes, Result<Option<Ulid>, Error>) {
        self.written.folder_times[1] = self.notes.folder_times();
        let committed = self.try_commit(act);
        (self.written, committed)
    }

    fn try_commit(&self, act: Act<'_>) -> Result<Option<Ulid>, Error> {
        let repository = &self.repository;
        self.move_packs()?;
        let head = repository.head()?;
        let base = head.as_ref().map(Commit::tree).transpose()?;
        layout::check_own(&repository.git, base.as_ref())?;
        let Some(tree) = self.write_tree(base.as_ref())? else {
            return Ok(None);
        };
        let batch = Ulid::generate();
        let parents: Vec<&Commit<'_>> = head.iter().collect();
        let commit = repository.write_commit(tree, &parents, act, Some(batch))?;
        repository.flush_commit()?;
        let _writing = repository.writing()?;
        repository.set(BRANCH, commit)?;
        if self.write_git_index(base.as_ref()).is_err() {
            repository.drop_git_index();
        }
        Ok(Some(batch))
    }

    /// Moves the packs into the repository. A pack counts from the moment that its index is there.
    fn move_packs(&self) -> Result<(), Error> {
        let from = self.packs();
        if !from.exists() {
            return Ok(());
        }
        let to = self.repository.git_folder().join("objects/pack");
        fs::create_dir_all(&to).map_err(Error::io(&to))?;
        for kind in ["pack", "idx"] {
            for entry in fs::read_dir(&from).map_err(Error::io(&from))? {
                let path = entry.map_err(Error::io(&from))?.path();
                if path.extension().is_some_and(|extension| extension == kind) {
                    let target = to.join(path.file_name().unwrap_or_default());
                    fs::rename(&path, target).map_err(Error::io(&path))?;
                }
            }
        }
        file::sync_folder(&to);
        self.discard_packs()?;
        Ok(self.repository.git.odb()?.refresh()?)
    }

    /// Writes the tree with the new notes; `None` if there are none.
    fn write_tree(&self, base: Option<&Tree<'_>>) -> Result<Option<Oid>, Error> {
        let git = &self.repository.git;
        let mut builder = git.treebuilder(base)?;
        let mut has_new = false;
        for folder in SORTED {
            let old = match builder.get(folder.as_str())? {
                Some(entry) if entry.filemode_raw() == tree::TREE => {
                    Some(git.find_tree(entry.id())?)
                }
                _ => None,
            };
            if let Some(new) = self.write_folder(old.as_ref(), folder)? {
                builder.insert(folder.as_str(), new, tree::TREE)?;
                has_new = true;
            }
        }
        let tree = has_new.then(|| builder.write()).transpose()?;
        Ok(tree.map(|tree| self.repository.record_written(tree)))
    }

    /// Writes the tree of a folder; `None` if it has no new notes. It is written as it is read: a
    /// folder of a million notes has 57 MB.
    fn write_folder(&self, old: Option<&Tree<'_>>, folder: NoteType) -> Result<Option<Oid>, Error> {
        let git = &self.repository.git;
        let mut length = 0;
        let mut has_new = false;
        self.each_entry(old, folder, &mut |entry, is_new| {
            has_new |= is_new;
            length += entry.len();
            Ok(())
        })?;
        if !has_new {
            return Ok(None);
        }
        let odb = git.odb()?;
        let mut writer = odb.writer(length, ObjectType::Tree)?;
        self.each_entry(old, folder, &mut |entry, _| {
            let written = writer.write_all(entry);
            written.map_err(Error::io(self.repository.git_folder()))
        })?;
        Ok(Some(self.repository.record_written(writer.finalize()?)))
    }

    /// Calls `take` with each entry of a folder with the new notes, as a tree has it, and whether it is
    /// one of them.
    fn each_entry(
        &self,
        old: Option<&Tree<'_>>,
        folder: NoteType,
        take: &mut TakeEntry<'_>,
    ) -> Result<(), Error> {
        let old = old.into_iter().flat_map(Tree::iter).map(|entry| {
            let (name, mode) = (entry.name_bytes(), entry.filemode_raw());
            // git sorts a folder as if its name ended with a slash.
            let end: &[u8] = if mode == tree::TREE { b"/" } else { b"" };
            ([name, end].concat(), entry_bytes(name, mode, entry.id()))
        });
        let mut old = old.peekable();
        self.written.each_file(folder, |new| {
            let name = format!("{}.md", new.path.id).into_bytes();
            while let Some((_, entry)) = next_before(&mut old, &name) {
                take(&entry, false)?;
            }
            take(&entry_bytes(&name, FILE, new.blob), true)
        })?;
        old.try_for_each(|(_, entry)| take(&entry, false))
    }

    /// Writes git's index with the new notes, without having them in memory.
    fn write_git_index(&self, base: Option<&Tree<'_>>) -> Result<(), Error> {
        let repository = &self.repository;
        let mut known = repository.git.index()?;
        match base {
            Some(base) => known.read_tree(base)?,
            None => known.clear()?,
        }
        let (mut count, mut is_extended) = (0, false);
        self.each_index_entry(&known, &mut |entry| {
            count += 1;
            is_extended |= entry.flags_extended != 0;
            Ok(())
        })?;
        let path = repository.git_folder().join("index");
        let beside = path.with_extension("lock");
        let file = file::private_options().create_new(true).open(&beside);
        let mut file = BufWriter::new(file.map_err(Error::io(&beside))?);
        let written = write_header(&mut file, count, is_extended)
            .map_err(Error::io(&beside))
            .and_then(|()| {
                self.each_index_entry(&known, &mut |entry| {
                    write_entry(&mut file, entry).map_err(Error::io(&beside))
                })
            })
            .and_then(|()| {
                // No checksum, as git leaves it out with `index.skipHash`.
                file.write_all(&[0; OID_LENGTH]).map_err(Error::io(&beside))
            })
            .and_then(|()| file.flush().map_err(Error::io(&beside)))
            .and_then(|()| fs::rename(&beside, &path).map_err(Error::io(&path)));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }

    fn each_index_entry(
        &self,
        known: &git2::Index,
        take: &mut dyn FnMut(&IndexEntry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let known = known.iter().map(|mut entry| {
            mark_carried(&mut entry);
            (entry.path.clone(), entry)
        });
        let mut known = known.peekable();
        for folder in SORTED {
            self.written.each_file(folder, |new| {
                let path = note_path(folder, new.path.id);
                while let Some((_, entry)) = next_before(&mut known, path.as_bytes()) {
                    take(&entry)?;
                }
                take(&index_entry(&path, new.blob, new.stamp))
            })?;
        }
        known.try_for_each(|(_, entry)| take(&entry))
    }
}

/// Returns the next item that is sorted before a key, and drops the one with this key.
fn next_before<T>(
    items: &mut Peekable<impl Iterator<Item = (Vec<u8>, T)>>,
    key: &[u8],
) -> Option<(Vec<u8>, T)> {
    while items.next_if(|(old, _)| old == key).is_some() {}
    items.next_if(|(old, _)| old.as_slice() < key)
}

/// Returns an entry as a tree has it.
fn entry_bytes(name: &[u8], mode: i32, oid: Oid) -> Vec<u8> {
    [format!("{mode:o} ").as_bytes(), name, b"\0", oid.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use git2::{IndexEntryExtendedFlag, Status};

    use super::*;

    const ACT: Act<'_> = Act {
        verb: "import",
        actor: "import",
    };

    struct Store {
        home: Home,
        notes: Notes,
        _folder: tempfile::TempDir,
    }

    impl Store {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::new(folder.path().join("store"));
            let notes = Notes::new(home.clone(), Duration::from_secs(5));
            Self {
                home,
                notes,
                _folder: folder,
            }
        }

        fn begin(&self) -> NewNotes<'_> {
            let now = DateTime::UNIX_EPOCH;
            NewNotes::begin(&self.home, &self.notes, "m", now, Duration::ZERO).unwrap()
        }

        /// Adds notes whose texts are longer than a slice, and returns their paths.
        fn add(new: &mut NewNotes<'_>, texts: &[&str]) -> Vec<NotePath> {
            let mut paths = Vec::new();
            for (number, text) in texts.iter().enumerate() {
                let path = NotePath {
                    scope: Scope::Portable,
                    folder: NoteType::ALL[number % 3],
                    id: NoteId::made_of(text),
                };
                let text = text.repeat(SLICE / 4);
                new.add(path, text.into_bytes()).unwrap();
                paths.push(path);
            }
            new.write().unwrap();
            paths
        }

        fn repository(&self) -> Repository {
            let now = DateTime::UNIX_EPOCH;
            Repository::open(&self.home, "m", now).unwrap().unwrap()
        }

        fn head(&self) -> Option<Oid> {
            let repository = self.repository();
            repository.head().unwrap().map(|head| head.tree_id())
        }

        /// Commits files that are not ours.
        fn commit_others(&self) {
            let repository = self.repository();
            let blob = repository.blob(b"theirs").unwrap();
            let head = repository.head().unwrap();
            let paths = ["README.md", "semantic/A/x", "semantic/zz", "z/x"];
            let updates = paths.map(|path| (path.to_owned(), Some((blob, FILE))));
            let base = head.as_ref().map(|head| head.tree().unwrap());
            let tree = repository.tree_with(base.as_ref(), &updates.into());
            let parents: Vec<&Commit<'_>> = head.iter().collect();
            let commit = repository.write_commit(tree.unwrap(), &parents, ACT, None);
            repository.set(BRANCH, commit.unwrap()).unwrap();
        }

        fn index(&self) -> Vec<(String, Oid, u32, u32, bool)> {
            let index = self.repository().git.index().unwrap();
            let is_skipped = |flags| flags & IndexEntryExtendedFlag::SKIP_WORKTREE.bits() != 0;
            let entries = index.iter().map(|it| {
                let path = String::from_utf8(it.path).unwrap();
                let is_skipped = is_skipped(it.flags_extended);
                (path, it.id, it.ino, it.file_size, is_skipped)
            });
            entries.collect()
        }
    }

    #[test]
    fn the_commit_and_the_index_are_those_that_git_would_write() {
        let store = Store::new();
        let mut new = store.begin();
        Store::add(&mut new, &["old a", "old b", "old c", "old d"]);
        let (_, change) = new.commit(ACT);
        assert!(change.unwrap().is_some());
        store.commit_others();
        let base = store.head();
        let mut new = store.begin();
        let paths = Store::add(&mut new, &["a", "b", "c", "d", "e", "f", "g"]);
        let local = NotePath {
            scope: Scope::MachineLocal,
            ..paths[0]
        };
        let local = NotePath {
            id: NoteId::made_of("local"),
            ..local
        };
        new.add(local, b"local".to_vec()).unwrap();
        new.write().unwrap();
        let (written, change) = new.commit(ACT);
        assert!(change.unwrap().is_some());
        assert_eq!(written.count, 8);
        let mut told = Vec::new();
        let each = |path| {
            told.push(path);
            Ok::<_, scratch::Error>(())
        };
        written.each(each).unwrap();
        assert!(told.contains(&local) && paths.iter().all(|path| told.contains(path)));

        let repository = store.repository();
        let mut updates = BTreeMap::new();
        let mut stamps = BTreeMap::new();
        for path in &paths {
            let bytes = store.notes.bytes(*path).unwrap();
            let blob = Oid::hash_object(ObjectType::Blob, &bytes).unwrap();
            assert_eq!(repository.git.find_blob(blob).unwrap().content(), bytes);
            let name = note_path(path.folder, path.id);
            updates.insert(name.clone(), Some((blob, FILE)));
            stamps.insert(name, (blob, store.notes.stamp(*path).unwrap()));
        }
        let base = repository.git.find_tree(base.unwrap()).unwrap();
        let tree = repository.tree_with(Some(&base), &updates).unwrap();
        assert_eq!(store.head(), Some(tree));
        let staged = repository.stage_all(&store.notes).unwrap();
        assert_eq!(staged.changes, BTreeMap::new());
        let statuses = repository.git.statuses(None).unwrap();
        // libgit2 does not respect the flag of the files that are not ours.
        let is_ours = |it: &git2::StatusEntry<'_>| {
            it.path()
                .is_ok_and(|path| tree::named(path) != tree::Named::Other)
        };
        let ours = statuses.iter().filter(is_ours);
        let changed = ours.filter(|it| it.status() != Status::CURRENT);
        assert_eq!(changed.count(), 0);
        let index = store.index();
        repository.update_git_index(tree, &stamps);
        assert_eq!(index, store.index());
        // Only commits, trees and what others wrote are loose.
        let loose = repository.git_folder().join("objects");
        let (_, files) = file::below(&loose).unwrap();
        let is_pack = |path: &&PathBuf| path.starts_with(loose.join("pack"));
        let packs = files.iter().filter(is_pack).count();
        assert!(packs >= 6 && files.len() - packs < 16, "{files:?}");
        assert!(!repository.git_folder().join(PACKS).exists());
    }

    #[test]
    fn nothing_is_left_of_notes_that_are_discarded() {
        let store = Store::new();
        drop(store.begin());
        let objects = store.repository().git_folder().join("objects");
        let before = file::below(&objects).unwrap();
        let mut new = store.begin();
        let paths = Store::add(&mut new, &["a", "b", "c", "d", "e"]);
        // Another process wrote a note with this path.
        let taken = NotePath {
            id: NoteId::made_of("taken"),
            ..paths[0]
        };
        std::fs::write(taken.absolute(&store.home), "theirs").unwrap();
        new.add(taken, b"ours".to_vec()).unwrap();
        assert!(matches!(new.write(), Err(Error::Taken)));
        new.discard().unwrap();
        let mut left = Vec::new();
        store.notes.each(&mut |path| left.push(path));
        assert_eq!(left, [taken]);
        assert_eq!(store.notes.bytes(taken).unwrap(), b"theirs");
        assert_eq!(file::below(&objects).unwrap(), before);
        assert_eq!(store.head(), None);
        // The packs of a killed import are removed by the next one.
        let mut killed = store.begin();
        Store::add(&mut killed, &["f"]);
        let packs = killed.packs();
        drop(killed);
        assert!(packs.exists());
        drop(store.begin());
        assert!(!packs.exists());
    }
}
