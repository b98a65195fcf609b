//! Reads the files of a commit, and compares two commits.
//!
//! A tree may come from a stranger. It is read within limits, and entries that could harm a machine
//! (links, submodules, names that mean `.git`, huge files) are refused. Unknown files are kept.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::Path,
};

use anamnesis_note::{
    id::NoteId,
    note::{NoteFile, NoteType, State},
    synced_lines::{ALIASES, PURGED},
};
use anamnesis_store::notes::Problem;
use git2::{ObjectType, Oid, Repository, Tree};

use crate::error::Error;

/// The largest file that is accepted from a remote, in bytes.
pub(crate) const MAX_FILE: usize = 16 * 1024 * 1024;

/// The largest number of files and folders in a tree, without those in the folders of notes.
pub(crate) const MAX_ENTRIES: usize = 200_000;

/// The largest number of entries in a folder of notes.
const MAX_NOTES: usize = 4_000_000;

/// The deepest folder that is read. Ours have three levels.
const MAX_DEPTH: usize = 16;

/// The name of the marker that identifies a repository of notes.
pub(crate) const LAYOUT: &str = ".layout";

/// Our files that are no notes.
pub(crate) const OTHER_FILES: [&str; 3] = [ALIASES, LAYOUT, PURGED];

/// The meaning of a path in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// `<type>/<ULID>.md`.
    Note(NoteType, NoteId),
    /// The aliases of projects or the purge marks, whose lines are united.
    Lines,
    /// `.layout`.
    Layout,
    /// Any other file: kept in commits, never read.
    Other,
}

/// Returns the meaning of a path.
pub(crate) fn named(path: &str) -> Named {
    let note = || {
        let (folder, name) = path.split_once('/')?;
        Some(Named::Note(folder.parse().ok()?, note_name(name)?))
    };
    match path {
        LAYOUT => Named::Layout,
        ALIASES | PURGED => Named::Lines,
        _ => note().unwrap_or(Named::Other),
    }
}

/// Returns the id of a note by its path.
pub(crate) fn note_id(path: &str) -> Option<NoteId> {
    match named(path) {
        Named::Note(_, id) => Some(id),
        _ => None,
    }
}

/// Returns the path of a note in the repository.
pub(crate) fn note_path(folder: NoteType, id: NoteId) -> String {
    format!("{folder}/{id}.md")
}

/// Our files in a tree of our own branch.
#[derive(Debug, Default)]
pub(crate) struct OwnFiles {
    /// The notes. A store has tens of thousands, so their paths are not stored.
    pub(crate) notes: HashMap<(NoteType, NoteId), Oid>,
    /// The marker and the files of lines, by path.
    pub(crate) others: HashMap<String, Oid>,
}

/// Finds our files in a tree of our own branch and ignores all others.
pub(crate) fn own_files(
    repository: &Repository,
    tree: Option<&Tree<'_>>,
) -> Result<OwnFiles, Error> {
    let mut files = OwnFiles::default();
    let Some(tree) = tree else { return Ok(files) };
    for name in OTHER_FILES {
        if let Some(entry) = tree.get_name(name)
            && is_file(entry.filemode_raw())
        {
            files.others.insert(name.to_owned(), entry.id());
        }
    }
    for folder in NoteType::ALL {
        for entry in subtree(repository, tree, folder.as_str())?
            .iter()
            .flat_map(Tree::iter)
            .filter(|entry| is_file(entry.filemode_raw()))
        {
            let id = entry.name().ok().and_then(note_name);
            files.notes.extend(id.map(|id| ((*folder, id), entry.id())));
        }
    }
    Ok(files)
}

/// Returns the note with this file name.
pub(crate) fn note_name(name: &str) -> Option<NoteId> {
    name.strip_suffix(".md")?.parse().ok()
}

/// Returns the folder at a path in a tree.
pub(crate) fn subtree<'a>(
    repository: &'a Repository,
    tree: &Tree<'_>,
    path: &str,
) -> Result<Option<Tree<'a>>, Error> {
    let entry = tree.get_path(Path::new(path)).ok();
    let entry = entry.filter(|entry| entry.filemode_raw() == TREE);
    Ok(entry
        .map(|entry| repository.find_tree(entry.id()))
        .transpose()?)
}

/// The difference at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathDiff<T> {
    /// The old entry.
    pub(crate) old: Option<T>,
    /// The new entry.
    pub(crate) new: Option<T>,
}

impl<T> Default for PathDiff<T> {
    fn default() -> Self {
        Self {
            old: None,
            new: None,
        }
    }
}

/// The difference between two trees. A note that moved is one change.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Notes, by id.
    pub(crate) notes: BTreeMap<NoteId, PathDiff<(NoteType, Oid)>>,
    /// Files of lines, the marker and unknown files, by path, with their git mode.
    pub(crate) others: BTreeMap<String, PathDiff<(Oid, i32)>>,
    /// Refused entries of the new tree.
    pub(crate) problems: Vec<Problem>,
    /// The number of entries read in the new tree, without those in the folders of notes.
    seen: usize,
}

impl Changes {
    /// Returns the new versions of notes.
    pub(crate) fn came(&self) -> impl Iterator<Item = (NoteId, Oid)> {
        let notes = self.notes.iter();
        notes.filter_map(|(id, change)| Some((*id, change.new?.1)))
    }

    /// Compares two trees.
    ///
    /// # Errors
    /// [`Error::TooManyFiles`] if the new tree is over the limits.
    pub(crate) fn between(
        repository: &Repository,
        old: Option<&Tree<'_>>,
        new: Option<&Tree<'_>>,
    ) -> Result<Self, Error> {
        let mut changes = Self::default();
        changes.compare(repository, old, new, "", 0)?;
        changes.refuse_second_files(repository, old)?;
        changes.problems.sort();
        Ok(changes)
    }

    fn compare(
        &mut self,
        repository: &Repository,
        old: Option<&Tree<'_>>,
        new: Option<&Tree<'_>>,
        folder: &str,
        depth: usize,
    ) -> Result<(), Error> {
        if let (Some(old), Some(new)) = (old, new)
            && old.id() == new.id()
        {
            return Ok(());
        }
        let entries_here = new.map_or(0, Tree::len);
        let limit = if folder.parse::<NoteType>().is_ok() {
            MAX_NOTES
        } else {
            self.seen += entries_here;
            MAX_ENTRIES
        };
        if self.seen > MAX_ENTRIES || entries_here > limit {
            return Err(Error::TooManyFiles(limit));
        }
        let names = differing(old, new);
        let before = entries(old, &names);
        let after = entries(new, &names);
        // A refused entry replaces nothing: the old entry stays.
        let mut refused = BTreeSet::new();
        for (name, (oid, mode)) in &after {
            if before.get(name) != Some(&(*oid, *mode))
                && let Some(reason) = danger(repository, name, *oid, *mode, depth)?
            {
                self.refuse(&join(folder, name), reason);
                refused.insert(name);
            }
        }
        for (name, (oid, mode)) in &before {
            if after.get(name) == Some(&(*oid, *mode)) || refused.contains(name) {
                continue;
            }
            let path = join(folder, name);
            if *mode == TREE {
                let stays = after.get(name).is_some_and(|(_, mode)| *mode == TREE);
                if !stays && depth < MAX_DEPTH {
                    let old = repository.find_tree(*oid)?;
                    self.compare(repository, Some(&old), None, &path, depth + 1)?;
                }
            } else {
                self.add_old(&path, *oid, *mode);
            }
        }
        for (name, (oid, mode)) in &after {
            let was = before.get(name);
            if was == Some(&(*oid, *mode)) || refused.contains(name) {
                continue;
            }
            let path = join(folder, name);
            if *mode == TREE {
                let new = repository.find_tree(*oid)?;
                let old = was
                    .filter(|(_, mode)| *mode == TREE)
                    .map(|(oid, _)| repository.find_tree(*oid))
                    .transpose()?;
                self.compare(repository, old.as_ref(), Some(&new), &path, depth + 1)?;
            } else {
                self.add_new(&path, *oid, *mode);
            }
        }
        Ok(())
    }

    fn add_old(&mut self, path: &str, oid: Oid, mode: i32) {
        match named(path) {
            Named::Note(folder, id) if is_file(mode) => {
                let old = &mut self.notes.entry(id).or_default().old;
                *old = old.or(Some((folder, oid)));
            }
            _ => self.others.entry(path.to_owned()).or_default().old = Some((oid, mode)),
        }
    }

    fn add_new(&mut self, path: &str, oid: Oid, mode: i32) {
        match named(path) {
            Named::Note(folder, id) => {
                let change = self.notes.entry(id).or_default();
                let Some((first, _)) = change.new else {
                    change.new = Some((folder, oid));
                    return;
                };
                // Prefers the file in the note's old folder.
                let stays = change.old.is_some_and(|(old, _)| old == folder);
                if stays {
                    change.new = Some((folder, oid));
                }
                self.refuse(
                    &note_path(if stays { first } else { folder }, id),
                    DUPLICATE_ID,
                );
            }
            _ => self.others.entry(path.to_owned()).or_default().new = Some((oid, mode)),
        }
    }

    /// Refuses a new file of a note that is still in another folder.
    fn refuse_second_files(
        &mut self,
        repository: &Repository,
        old: Option<&Tree<'_>>,
    ) -> Result<(), Error> {
        let Some(old) = old else { return Ok(()) };
        let mut folders = Vec::new();
        for folder in NoteType::ALL {
            folders.extend(subtree(repository, old, folder.as_str())?);
        }
        let is_there = |id: NoteId| {
            let name = format!("{id}.md");
            let mut entries = folders.iter().filter_map(|folder| folder.get_name(&name));
            entries.any(|entry| is_file(entry.filemode_raw()))
        };
        let new = self
            .notes
            .iter()
            .filter(|(_, change)| change.old.is_none())
            .filter_map(|(id, change)| Some((*id, change.new?.0)));
        let second: Vec<(NoteId, NoteType)> = new.filter(|(id, _)| is_there(*id)).collect();
        for (id, folder) in second {
            self.notes.remove(&id);
            self.refuse(&note_path(folder, id), DUPLICATE_ID);
        }
        Ok(())
    }

    fn refuse(&mut self, path: &str, reason: &str) {
        self.problems.push(Problem {
            path: format!("memory/{path}"),
            reason: format!("{reason}; not taken from the remote"),
        });
    }
}

/// git's modes of regular files.
pub(crate) const FILE: i32 = 0o100_644;
pub(crate) const EXECUTABLE: i32 = 0o100_755;

/// git's modes of other entries.
pub(crate) const TREE: i32 = 0o040_000;
const LINK: i32 = 0o120_000;
const GITLINK: i32 = 0o160_000;

/// The reason for refusing a second file of a note.
const DUPLICATE_ID: &str = "the same id as another file";

/// Returns whether a mode is that of a regular file.
pub(crate) fn is_file(mode: i32) -> bool {
    !matches!(mode, TREE | LINK | GITLINK)
}

/// Returns the file at a path in a tree.
pub(crate) fn entry(tree: &Tree<'_>, path: &str) -> Option<Oid> {
    let entry = tree.get_path(Path::new(path)).ok()?;
    is_file(entry.filemode_raw()).then(|| entry.id())
}

/// Returns whether a file is a tombstone.
pub(crate) fn is_tombstone(bytes: &[u8], id: NoteId) -> bool {
    NoteFile::parse(bytes, id).is_ok_and(|file| file.note().state == State::Forgotten)
}

/// Returns the names of the entries in which two folders differ. libgit2 looks up a name faster
/// than any map of all entries could be built.
///
/// In an unsorted tree a lookup may fail. Both folders are looked up in each other, so such a name
/// counts as differing.
fn differing(old: Option<&Tree<'_>>, new: Option<&Tree<'_>>) -> HashSet<Vec<u8>> {
    let mut names = HashSet::new();
    for (one, other) in [(old, new), (new, old)] {
        for entry in one.iter().flat_map(|tree| tree.iter()) {
            let is_same = other
                .and_then(|tree| tree.get_name_bytes(entry.name_bytes()))
                .is_some_and(|found| {
                    (found.id(), found.filemode_raw()) == (entry.id(), entry.filemode_raw())
                });
            if !is_same {
                names.insert(entry.name_bytes().to_owned());
            }
        }
    }
    names
}

/// Returns the entries with these names. A name that is not UTF-8 is shown lossily; none of ours
/// is.
fn entries(tree: Option<&Tree<'_>>, names: &HashSet<Vec<u8>>) -> BTreeMap<String, (Oid, i32)> {
    tree.iter()
        .flat_map(|tree| tree.iter())
        .filter(|entry| names.contains(entry.name_bytes()))
        .map(|entry| {
            let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
            (name, (entry.id(), entry.filemode_raw()))
        })
        .collect()
}

pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// Returns the reason for refusing an entry, if there is one.
fn danger(
    repository: &Repository,
    name: &str,
    oid: Oid,
    mode: i32,
    depth: usize,
) -> Result<Option<&'static str>, Error> {
    Ok(match mode {
        LINK => Some("a link"),
        GITLINK => Some("a submodule"),
        _ if is_git_folder(name) => Some("a name that git takes for its own folder"),
        _ if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\']) => {
            Some("a name that is a path")
        }
        _ if name.contains(char::REPLACEMENT_CHARACTER) || name.contains(char::is_control) => {
            Some("a name that is no text")
        }
        TREE if depth >= MAX_DEPTH => Some("too deep a folder"),
        TREE => None,
        _ => {
            let (size, kind) = repository.odb()?.read_header(oid)?;
            if kind != ObjectType::Blob {
                Some("no file")
            } else if size > MAX_FILE {
                Some("over 16 MiB")
            } else {
                None
            }
        }
    })
}

/// Returns whether a file system could read a name as `.git`: other case, characters that HFS+
/// ignores, NTFS short names, streams and trailing dots.
fn is_git_folder(name: &str) -> bool {
    let ignored = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let seen: String = name.chars().filter(|c| !ignored(c)).collect();
    let seen = seen.split(':').next().unwrap_or_default();
    let seen = seen.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    let number = seen.strip_prefix("git~").unwrap_or_default();
    seen == ".git" || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    #[test]
    fn classifies_paths() {
        // PATH-06
        let id: NoteId = ID.parse().unwrap();
        let note = format!("semantic/{ID}.md");
        assert_eq!(named(&note), Named::Note(NoteType::Semantic, id));
        assert_eq!(note_path(NoteType::Semantic, id), note);
        assert_eq!(named(".layout"), Named::Layout);
        assert_eq!(named(".aliases"), Named::Lines);
        assert_eq!(named(".purged"), Named::Lines);
        let lower = format!("semantic/{}.md", ID.to_lowercase());
        let other = [
            lower.as_str(),
            "semantic/notes.md",
            "README.md",
            ".usage/laptop/notes.md",
            "semantic/.purged",
            "a/b/c/d",
            "",
        ];
        for path in other {
            assert_eq!(named(path), Named::Other, "{path}");
        }
    }

    #[test]
    fn a_folder_of_notes_may_have_more_entries_than_other_folders() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init(folder.path()).unwrap();
        let note = repository.blob(b"x").unwrap();
        let tree_of = |entries: &[(String, Oid, i32)]| {
            let mut builder = repository.treebuilder(None).unwrap();
            for (name, oid, mode) in entries {
                builder.insert(name, *oid, *mode).unwrap();
            }
            builder.write().unwrap()
        };
        let notes: Vec<_> = (0..=MAX_ENTRIES as u128)
            .map(|number| NoteId::from_bytes(number.to_be_bytes()))
            .map(|id| (format!("{id}.md"), note, FILE))
            .collect();
        let notes = tree_of(&notes);
        let compared = |name: &str| {
            let root = tree_of(&[(name.to_owned(), notes, TREE)]);
            let root = repository.find_tree(root).unwrap();
            Changes::between(&repository, None, Some(&root)).map(|changes| changes.notes.len())
        };
        assert_eq!(compared("semantic").unwrap(), MAX_ENTRIES + 1);
        assert!(matches!(compared("other"), Err(Error::TooManyFiles(_))));
    }

    #[test]
    fn names_that_stand_for_gits_folder_are_known() {
        // GIT-01
        for name in [
            ".git",
            ".GIT",
            ".Git.",
            ".git ",
            "git~1",
            "GIT~1",
            ".g\u{200c}it",
            ".git::$INDEX_ALLOCATION",
            "\u{feff}.git",
        ] {
            assert!(is_git_folder(name), "{name:?}");
        }
        for name in [".gitignore", ".gitmodules", "git", ".github", "git~2x"] {
            assert!(!is_git_folder(name), "{name:?}");
        }
    }
}
