//! git's index as a cache of file stamps.
//!
//! It is kept up to date for the person who runs `git status`. Nothing depends on it.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
};

use anamnesis_note::{id::NoteId, note::NoteType};
use anamnesis_store::fs::file::Stamp;
use git2::{IndexEntry, IndexEntryExtendedFlag, IndexTime, Oid};

use crate::{
    repository::Repository,
    tree::{self, Named},
};

/// The files in git's index, with their stamps.
#[derive(Debug, Default)]
pub(crate) struct IndexCache {
    pub(crate) notes: HashMap<(NoteType, NoteId), (Oid, IndexStamp)>,
    /// Other files by path.
    pub(crate) others: HashMap<String, (Oid, IndexStamp)>,
}

/// A file's stamp as git's index stores it: less than a full stamp.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexStamp {
    /// Nanoseconds since 1970.
    modified: i64,
    inode: u32,
    size: u32,
}

impl IndexStamp {
    fn new(entry: &IndexEntry) -> Self {
        let seconds = i64::from(entry.mtime.seconds());
        Self {
            modified: seconds * 1_000_000_000 + i64::from(entry.mtime.nanoseconds()),
            inode: entry.ino,
            size: entry.file_size,
        }
    }
}

impl Repository {
    /// Reads git's index. Skips entries as recent as the index itself: their file may have changed
    /// within the same clock tick.
    pub(crate) fn cache(&self) -> IndexCache {
        let mut cache = IndexCache::default();
        let Ok(metadata) = fs::symlink_metadata(self.git_folder().join("index")) else {
            return cache;
        };
        let written = Stamp::from_metadata(&metadata).modified;
        // An unreadable index is the same as none.
        let Ok(index) = self.git.index() else {
            return cache;
        };
        for entry in index.iter() {
            let known = IndexStamp::new(&entry);
            if known.modified >= written {
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

    /// Updates git's index to a tree, with the stamps of the files. If another git holds it, it
    /// stays behind.
    pub(crate) fn update_git_index(&self, tree: Oid, stamps: &BTreeMap<String, (Oid, Stamp)>) {
        let update = || -> Result<(), git2::Error> {
            let tree = self.git.find_tree(tree)?;
            let mut index = self.git.index()?;
            index.read_tree(&tree)?;
            for (path, (oid, stamp)) in stamps {
                index.add(&index_entry(path, *oid, *stamp))?;
            }
            let mut entries: Vec<IndexEntry> = index.iter().collect();
            entries.retain_mut(mark_carried);
            for entry in entries {
                index.add(&entry)?;
            }
            index.write()
        };
        if update().is_err() {
            self.drop_git_index();
        }
    }

    /// Removes git's index, because a stale one is useless; the next run rebuilds it.
    pub(crate) fn drop_git_index(&self) {
        let _ = fs::remove_file(self.git_folder().join("index"));
    }
}

/// Marks the entry of an unknown file, which is never in the folder; git would show it as deleted.
/// Returns whether it is one.
fn mark_carried(entry: &mut IndexEntry) -> bool {
    let is_carried = tree::named(&String::from_utf8_lossy(&entry.path)) == Named::Other;
    if is_carried {
        entry.flags_extended |= IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
    }
    is_carried
}

/// Returns whether a file matches its entry in git's index. An entry without a stamp never matches.
pub(crate) fn same(known: IndexStamp, stamp: Stamp) -> bool {
    known.modified != 0
        && known.modified == stamp.modified
        && known.inode == low_half(stamp.inode)
        && known.size == low_half(stamp.size)
}

/// git keeps the lower 32 bits of sizes and inodes.
fn low_half(number: i64) -> u32 {
    u32::try_from(number & 0xffff_ffff).unwrap_or(0)
}

/// Returns the entry of a file.
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
