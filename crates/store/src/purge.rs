//! Removes a text from the store's files: notes, trash, spool, quarantine and logs.
//!
//! Databases are handled elsewhere ([`crate::journal`]; the index is rebuilt), and so is git's
//! folder. Settings and foreign files are reported and not changed.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use anamnesis_note::{id::NoteId, purge_pattern::PurgePattern};
use chrono::{DateTime, Utc};

use crate::{
    fs::{file, home::Home, lock::Lock},
    notes::{self, NotePath, Notes},
    sqlite,
};

/// The maximum size of a file, in bytes.
const MAX_LENGTH: usize = 256 * 1024 * 1024;

/// The text cannot be removed from a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is a part of an id or a front-matter key of an active note.
    #[error(
        "cannot purge this text: it is part of the id or of a front-matter key of {0}; nothing was changed"
    )]
    Structural(String),
    /// The file system refused.
    #[error("cannot take it out of {path}: {source}")]
    Io {
        /// The file, relative to the store.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A note could not be changed.
    #[error(transparent)]
    Notes(#[from] notes::Error),
}

/// The places of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Notes.
    pub notes: BTreeSet<NotePath>,
    /// Other files of the store, by relative path.
    pub files: BTreeSet<String>,
    /// Files that are not changed, by relative path.
    pub left: BTreeSet<String>,
}

impl Places {
    /// Returns the number of places that can be changed.
    pub fn count(&self) -> usize {
        self.notes.len() + self.files.len()
    }
}

/// How a file is handled.
#[derive(Clone, Copy)]
enum Kind {
    Note(NotePath),
    /// The old bytes of a note.
    Trashed(NoteId),
    Text,
    /// A damaged database in the quarantine, whose parts are found by their offsets.
    Binary,
    /// A leftover of a killed process.
    Leftover,
    NotOurs,
}

/// The files that a purge masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskedFiles {
    /// All files of ours.
    All,
    /// All but notes: the text of purged notes, which others may have, too.
    WithoutNotes,
}

/// Finds a text. Nothing is changed.
///
/// # Errors
/// [`Error::Structural`] if a file that would be masked is no note afterwards.
pub fn find(home: &Home, needle: &PurgePattern, masked: MaskedFiles) -> Result<Places, Error> {
    walk(home, needle, masked, |_, _| Ok(()))
}

/// Masks a text in files. Returns where it was.
///
/// The lock keeps others from writing notes. After a kill, the next run masks the rest.
pub fn mask(
    home: &Home,
    _lock: &Lock,
    needle: &PurgePattern,
    masked: MaskedFiles,
) -> Result<Places, Error> {
    // Checked first, so that either everything or nothing is changed.
    find(home, needle, masked)?;
    walk(home, needle, masked, |path, bytes| match bytes {
        Some(bytes) => file::write_atomic(path, &bytes).map(drop),
        None => fs::remove_file(path),
    })
}

/// Calls `replace` with each file of ours that contains the text, and its new bytes; none if the file
/// is to be removed.
fn walk(
    home: &Home,
    needle: &PurgePattern,
    masked: MaskedFiles,
    mut replace: impl FnMut(&Path, Option<Vec<u8>>) -> io::Result<()>,
) -> Result<Places, Error> {
    let mut places = Places::default();
    let mut pending = vec![home.root().to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in file::entries(&folder) {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                let is_git = entry.file_name() == ".git";
                let is_program = folder == home.root() && entry.file_name() == "bin";
                if !is_git && !is_program {
                    pending.push(path);
                }
                continue;
            }
            let Some(kind) = kind_of(home, &path) else {
                continue;
            };
            let Ok((bytes, ..)) = file::read_head(&path, MAX_LENGTH) else {
                continue;
            };
            if !needle.is_in(&bytes) {
                continue;
            }
            let name = home.relative(&path);
            let masked_note = |id| {
                let masked = needle.mask_note(id, &bytes);
                masked.map_err(|_| Error::Structural(name.clone()))
            };
            let new = match kind {
                Kind::NotOurs => {
                    places.left.insert(name);
                    continue;
                }
                Kind::Note(note) if masked == MaskedFiles::WithoutNotes => {
                    places.notes.insert(note);
                    continue;
                }
                Kind::Note(note) => masked_note(note.id)?,
                Kind::Trashed(id) => masked_note(id)?,
                Kind::Text => needle.mask(&bytes),
                Kind::Binary => needle.mask_in_place(&bytes),
                Kind::Leftover => None,
            };
            replace(&path, new).map_err(|source| Error::Io {
                path: name.clone(),
                source,
            })?;
            match kind {
                Kind::Note(note) => drop(places.notes.insert(note)),
                _ => drop(places.files.insert(name)),
            }
        }
    }
    Ok(places)
}

/// Classifies a file by its path.
fn kind_of(home: &Home, path: &Path) -> Option<Kind> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let relative = home.relative(path);
    let is_in = |folder: PathBuf| path.starts_with(folder);
    if name.starts_with('.') && Path::new(&*name).extension() == Some(OsStr::new("tmp")) {
        return Some(Kind::Leftover);
    }
    if let Ok(note) = relative.parse::<NotePath>() {
        return Some(Kind::Note(note));
    }
    if is_database(home, path) {
        return None;
    }
    if is_in(home.trash()) {
        let id = name.strip_suffix(".md").and_then(|id| id.parse().ok());
        return Some(id.map_or(Kind::Text, Kind::Trashed));
    }
    if is_in(home.quarantine()) && name.starts_with("journal-") {
        return Some(Kind::Binary);
    }
    let log = home.log();
    let is_log = log.parent().is_some_and(|logs| path.starts_with(logs));
    let texts = [home.evaluation(), home.aliases(), home.purged()];
    let is_text = is_log || is_in(home.quarantine()) || is_in(home.spool());
    // The others are settings and foreign files.
    Some(if is_text || texts.iter().any(|text| text == path) {
        Kind::Text
    } else {
        Kind::NotOurs
    })
}

/// Returns whether a file is a database of ours, or one of SQLite's files beside it. Only exact names
/// count: a copy that a person made is searched like any foreign file.
fn is_database(home: &Home, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let without = |endings: &[&str], name: &str| {
        let name = endings.iter().find_map(|ending| name.strip_suffix(ending));
        name.map(str::to_owned)
    };
    let main = without(&sqlite::BESIDE, &name).unwrap_or_else(|| name.into_owned());
    let file = path.with_file_name(&main);
    // A rebuild writes a new index beside the old one.
    let index = without(&[".new", ".old"], &main).unwrap_or(main);
    let version = index
        .strip_prefix("index-")
        .and_then(|rest| rest.strip_suffix(".db"));
    let is_index = path.parent() == Some(&*home.derived())
        && version.is_some_and(|version| version.parse::<u32>().is_ok());
    is_index || file == home.journal() || file == home.commits()
}

/// Deletes copies of notes: the trash, the quarantine, leftovers of killed processes.
pub fn drop_copies(
    home: &Home,
    lock: &Lock,
    notes: &Notes,
    ids: &BTreeSet<NoteId>,
) -> Result<(), Error> {
    for id in ids {
        notes.drop_trashed(*id)?;
        notes.drop_leftovers(lock, *id)?;
        let beginning = format!("{id}-");
        for entry in file::entries(&home.quarantine()) {
            if entry.file_name().to_string_lossy().starts_with(&beginning) {
                fs::remove_file(entry.path()).map_err(|source| Error::Io {
                    path: home.relative(&entry.path()),
                    source,
                })?;
            }
        }
    }
    Ok(())
}

/// Replaces notes with tombstones and deletes every copy of them.
pub fn bury(
    home: &Home,
    lock: &Lock,
    notes: &Notes,
    ids: &BTreeSet<NoteId>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    for id in ids {
        if let Some(path) = notes.find(*id)
            && !notes.is_forgotten(path)
        {
            notes.forget(lock, path, now)?;
        }
    }
    drop_copies(home, lock, notes, ids)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anamnesis_note::note::{Note, NoteType, Scope};

    use super::*;

    const SECRET: &str = "s3cr-et-value";

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn store() -> (tempfile::TempDir, Home, Notes) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let notes = Notes::new(home.clone(), Duration::from_secs(5));
        (folder, home, notes)
    }

    fn note(title: &str, scope: Scope) -> Note {
        Note {
            title: title.to_owned(),
            scope,
            body: format!("the value is {SECRET}"),
            ..Note::new(NoteId::generate(now()), NoteType::Semantic, now())
        }
    }

    #[test]
    fn a_text_is_masked_in_every_file_of_ours_and_in_no_other() {
        // DEL-01
        let (_folder, home, notes) = store();
        let needle = PurgePattern::new(SECRET).unwrap();
        let lock = notes.lock().unwrap();
        let shared = notes.create(&lock, &note(SECRET, Scope::Portable)).unwrap();
        let local = note("x", Scope::MachineLocal);
        let local = notes.create(&lock, &local).unwrap();
        let forgotten = notes.create(&lock, &note("y", Scope::Portable)).unwrap();
        notes.forget(&lock, forgotten.path, now()).unwrap();
        let put = |path: PathBuf, bytes: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let text = format!("a {SECRET} b");
        put(home.log(), &text);
        put(
            home.spool().join("x.json"),
            &format!("{{\"a\":\"{SECRET}\"}}"),
        );
        put(home.quarantine().join("spool-x"), &text);
        put(home.quarantine().join("journal-1.db"), &text);
        put(home.tree(Scope::Portable).join(".x.md.1.tmp"), &text);
        let others = [
            home.config(),
            home.root().join("index.db"),
            home.tree(Scope::Portable).join("own.txt"),
        ];
        for path in &others {
            put(path.clone(), &text);
        }
        let before = find(&home, &needle, MaskedFiles::All).unwrap();
        let masked = mask(&home, &lock, &needle, MaskedFiles::All).unwrap();
        assert_eq!(before, masked);
        assert_eq!(masked.notes, BTreeSet::from([shared.path, local.path]));
        assert_eq!(masked.files.len(), 6, "{masked:?}");
        assert_eq!(masked.left.len(), others.len(), "{masked:?}");
        let after = find(&home, &needle, MaskedFiles::All).unwrap();
        assert_eq!((after.count(), after.left), (0, masked.left));
        let title = notes.read(shared.path).unwrap().note().title;
        assert_eq!(title, anamnesis_text::redact::MASK);
        let database = fs::read(home.quarantine().join("journal-1.db")).unwrap();
        assert_eq!(database.len(), text.len());
        assert_eq!(fs::read_to_string(home.config()).unwrap(), text);
    }

    #[test]
    fn copies_of_a_database_are_searched_and_databases_are_not() {
        // DEL-01
        let (_folder, home, _notes) = store();
        let needle = PurgePattern::new(SECRET).unwrap();
        fs::create_dir_all(home.derived()).unwrap();
        let write = |name: &str| fs::write(home.root().join(name), SECRET).unwrap();
        for name in [
            "journal.db",
            "journal.db-wal",
            "journal.db-journal",
            "derived/index-19.db",
            "derived/index-18.db-wal",
            "derived/index-19.db.new",
            "derived/index-19.db.old-wal",
            "derived/commits-1.db-shm",
        ] {
            write(name);
        }
        let copies = [
            "derived/commits-1.db.bak",
            "derived/index-19.db.bak",
            "derived/index-x.db",
            "derived/journal.db",
            "derived/notes.txt",
            "journal.db-2026",
            "journal.db.bak",
            "journal.db.old",
            "journal.db~",
        ];
        copies.iter().copied().for_each(write);
        let found = find(&home, &needle, MaskedFiles::All).unwrap();
        assert_eq!(found.count(), 0);
        assert_eq!(found.left, copies.map(str::to_owned).into());
    }

    #[test]
    fn nothing_is_changed_when_a_note_would_be_none_any_more() {
        let (_folder, home, notes) = store();
        let lock = notes.lock().unwrap();
        let stored = notes.create(&lock, &note("x", Scope::Portable)).unwrap();
        fs::write(home.log(), format!("{}", stored.path.id)).unwrap();
        let id = stored.path.id.to_string();
        let needle = PurgePattern::new(&id[10..]).unwrap();
        let refused = mask(&home, &lock, &needle, MaskedFiles::All);
        assert!(matches!(refused, Err(Error::Structural(_))), "{refused:?}");
        assert_eq!(fs::read_to_string(home.log()).unwrap(), id);
    }

    #[test]
    fn nothing_is_kept_of_a_note_that_is_buried() {
        let (_folder, home, notes) = store();
        let lock = notes.lock().unwrap();
        let stored = notes.create(&lock, &note("x", Scope::Portable)).unwrap();
        let id = stored.path.id;
        fs::create_dir_all(home.quarantine()).unwrap();
        fs::write(home.quarantine().join(format!("{id}-abc.txt")), SECRET).unwrap();
        bury(&home, &lock, &notes, &BTreeSet::from([id]), now()).unwrap();
        assert!(notes.is_forgotten(stored.path));
        let needle = PurgePattern::new(SECRET).unwrap();
        assert_eq!(
            find(&home, &needle, MaskedFiles::All).unwrap(),
            Places::default()
        );
    }
}
