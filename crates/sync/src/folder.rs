//! Reads the folders of notes from git's objects.
//!
//! A long history has thousands of versions of a folder, each of hundreds of kilobytes and nearly
//! equal to the next. They are read as bytes and compared entry by entry; equal entries are not
//! parsed. An unsorted folder of a stranger costs time but gives the same result.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use anamnesis_note::{id::NoteId, note::NoteType};
use git2::{ObjectType, Odb, Oid, Tree};

use crate::{
    error::Error,
    tree::{PathDiff, note_name},
};

/// How many folders are cached: those of two commits, and of a merge's second parent.
const CACHED_FOLDERS: usize = 9;

/// Folder and blob of a note.
pub(crate) type NoteBlob = (NoteType, Oid);

/// Changed notes by id. A note that moved is one change.
pub(crate) type NoteChanges = BTreeMap<NoteId, PathDiff<NoteBlob>>;

/// Reads folders and caches the last ones.
pub(crate) struct Folders<'a> {
    objects: Odb<'a>,
    kept: VecDeque<(Oid, Rc<[u8]>)>,
}

impl<'a> Folders<'a> {
    pub(crate) fn new(repository: &'a git2::Repository) -> Result<Self, Error> {
        Ok(Self {
            objects: repository.odb()?,
            kept: VecDeque::new(),
        })
    }

    /// Returns the notes in which two trees differ.
    pub(crate) fn changes(
        &mut self,
        old: Option<&Tree<'_>>,
        new: &Tree<'_>,
    ) -> Result<NoteChanges, Error> {
        let mut changes = NoteChanges::new();
        for folder in NoteType::ALL {
            let before = old.and_then(|tree| folder_in(tree, *folder));
            let after = folder_in(new, *folder);
            if before == after {
                continue;
            }
            let (before, after) = (self.read(before)?, self.read(after)?);
            compare(&before, &after, |entry, side| {
                let Some((id, oid)) = entry.note() else {
                    return;
                };
                let change = changes.entry(id).or_default();
                let place = match side {
                    Side::Old => &mut change.old,
                    Side::New => &mut change.new,
                };
                *place = place.or(Some((*folder, oid)));
            });
        }
        changes.retain(|_, change| change.old != change.new);
        Ok(changes)
    }

    /// Finds a file by its name in a folder.
    pub(crate) fn find(&mut self, folder: Oid, name: &str) -> Result<Option<Oid>, Error> {
        let bytes = self.read(Some(folder))?;
        let found = Entries(&bytes).find(|entry| entry.name == name.as_bytes());
        Ok(found.filter(Entry::is_file).and_then(|entry| entry.oid()))
    }

    /// Returns the bytes of a folder; empty without one.
    fn read(&mut self, folder: Option<Oid>) -> Result<Rc<[u8]>, Error> {
        let Some(oid) = folder else {
            return Ok(Rc::default());
        };
        if let Some((_, bytes)) = self.kept.iter().find(|(kept, _)| *kept == oid) {
            return Ok(Rc::clone(bytes));
        }
        let bytes: Rc<[u8]> = self.objects.read(oid)?.data().into();
        if self.kept.len() == CACHED_FOLDERS {
            self.kept.pop_front();
        }
        self.kept.push_back((oid, Rc::clone(&bytes)));
        Ok(bytes)
    }
}

/// Returns the folder of a note type in a tree.
pub(crate) fn folder_in(tree: &Tree<'_>, folder: NoteType) -> Option<Oid> {
    let entry = tree.get_name(folder.as_str())?;
    (entry.kind() == Some(ObjectType::Tree)).then(|| entry.id())
}

/// The folder that has an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

/// Calls `differs` for each entry in which the folders differ.
fn compare<'a>(old: &'a [u8], new: &'a [u8], mut differs: impl FnMut(Entry<'a>, Side)) {
    let (mut before, mut after) = (Entries(old).peekable(), Entries(new).peekable());
    loop {
        let (is_old, is_new) = match (before.peek(), after.peek()) {
            (None, None) => return,
            (Some(_), None) => (true, false),
            (None, Some(_)) => (false, true),
            (Some(one), Some(other)) => (one.name <= other.name, one.name >= other.name),
        };
        let old = before.next_if(|_| is_old);
        let new = after.next_if(|_| is_new);
        if old != new {
            if let Some(entry) = old {
                differs(entry, Side::Old);
            }
            if let Some(entry) = new {
                differs(entry, Side::New);
            }
        }
    }
}

/// An entry of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry<'a> {
    mode: &'a [u8],
    name: &'a [u8],
    oid: &'a [u8],
}

impl Entry<'_> {
    fn is_file(&self) -> bool {
        matches!(self.mode, b"100644" | b"100755")
    }

    fn oid(&self) -> Option<Oid> {
        Oid::from_bytes(self.oid).ok()
    }

    /// Returns the note of a regular file with a note's name.
    fn note(&self) -> Option<(NoteId, Oid)> {
        let name = std::str::from_utf8(self.name).ok()?;
        let id = note_name(name).filter(|_| self.is_file())?;
        Some((id, self.oid()?))
    }
}

/// The entries of a folder's bytes: mode, space, name, NUL, object id. Iteration stops at anything
/// else.
struct Entries<'a>(&'a [u8]);

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let space = self.0.iter().position(|byte| *byte == b' ')?;
        let (mode, rest) = self.0.split_at_checked(space)?;
        let rest = rest.get(1..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (name, rest) = rest.split_at_checked(end)?;
        let (oid, rest) = rest.get(1..)?.split_at_checked(HASH_LENGTH)?;
        self.0 = rest;
        Some(Entry { mode, name, oid })
    }
}

/// The length of an object id in bytes.
const HASH_LENGTH: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV.md";
    const TWO: &str = "01BRZ3NDEKTSV4RRFFQ69G5FAV.md";

    /// A folder of entries, each with an id of one repeated byte.
    fn folder(entries: &[(&str, &str, u8)]) -> Vec<u8> {
        let bytes = entries.iter().flat_map(|(mode, name, hash)| {
            let mut bytes = format!("{mode} {name}\0").into_bytes();
            bytes.extend([*hash; HASH_LENGTH]);
            bytes
        });
        bytes.collect()
    }

    fn differences(old: &[u8], new: &[u8]) -> Vec<(String, u8, Side)> {
        let mut found = Vec::new();
        compare(old, new, |entry, side| {
            let name = String::from_utf8_lossy(entry.name).into_owned();
            found.push((name, entry.oid[0], side));
        });
        found
    }

    #[test]
    fn compare_reports_only_differences() {
        let old = folder(&[("100644", ONE, 1), ("100644", TWO, 2), ("40000", "x", 0)]);
        assert_eq!(differences(&old, &old), []);
        let new = folder(&[("100644", TWO, 3), ("40000", "x", 0), ("100644", "y", 32)]);
        assert_eq!(
            differences(&old, &new),
            [
                (ONE.to_owned(), 1, Side::Old),
                (TWO.to_owned(), 2, Side::Old),
                (TWO.to_owned(), 3, Side::New),
                ("y".to_owned(), 32, Side::New),
            ]
        );
        assert_eq!(differences(&[], &old).len(), 3);
        // In an unsorted folder an equal entry may be reported on both sides; no difference is
        // missed.
        let unsorted = folder(&[("100644", TWO, 2), ("100644", ONE, 9)]);
        let found = differences(&old, &unsorted);
        assert!(found.contains(&(ONE.to_owned(), 9, Side::New)), "{found:?}");
        assert!(found.contains(&(ONE.to_owned(), 1, Side::Old)), "{found:?}");
    }

    #[test]
    fn only_regular_files_are_notes() {
        for (mode, name, is_note) in [
            ("100644", ONE, true),
            ("100755", ONE, true),
            ("120000", ONE, false),
            ("160000", ONE, false),
            ("40000", ONE, false),
            ("100644", "notes.md", false),
        ] {
            let bytes = folder(&[(mode, name, 7)]);
            let entry = Entries(&bytes).next().unwrap();
            assert_eq!(entry.note().is_some(), is_note, "{mode} {name}");
        }
        // Bytes that are cut short have no entry and cause no panic.
        let bytes = folder(&[("100644", ONE, 7)]);
        for length in 0..bytes.len() {
            assert_eq!(Entries(&bytes[..length]).count(), 0);
        }
    }
}
