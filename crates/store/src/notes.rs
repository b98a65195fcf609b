//! The two trees of markdown files: reading and changing notes.
//!
//! A note's file is `memory/<type>/<ULID>.md` or `local/<type>/<ULID>.md`; the tree decides the
//! scope. Files with other names are reported and not changed. A change holds the notes lock: read,
//! change, write a new file, rename. An unreadable file is never overwritten.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    merge::{has_conflict_markers, without_conflict_markers},
    note::{CannotRewrite, MAX_FILE_LENGTH, Note, NoteFile, NoteType, Scope, State, Unreadable},
};
use chrono::{DateTime, Utc};

use crate::{
    fs::{
        file::{self, Stamp},
        home::{self, Home, note_folder_places},
        lock::{self, Lock, Subject},
    },
    journal,
};

/// The maximum size of a note that can be changed, in bytes. Larger ones can only be edited by hand.
const MAX_CHANGED_LENGTH: usize = 64 * 1024 * 1024;

/// The path of a note's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotePath {
    /// The scope, which is the tree.
    pub scope: Scope,
    /// The type, which is the folder in the tree.
    pub folder: NoteType,
    /// The id, which is the file's name without the extension.
    pub id: NoteId,
}

impl NotePath {
    /// Returns the path of a note.
    pub fn from_note(note: &Note) -> Self {
        Self {
            scope: note.scope,
            folder: note.note_type,
            id: note.id,
        }
    }

    /// Returns the path of a note that syncs.
    pub fn portable(folder: NoteType, id: NoteId) -> Self {
        Self {
            scope: Scope::Portable,
            folder,
            id,
        }
    }

    /// Returns the place of its folder among all folders of notes.
    pub fn folder_place(self) -> usize {
        let place = note_folder_places().position(|it| it == (self.scope, self.folder));
        place.unwrap_or_default()
    }

    /// Returns the path of a note in the folder with this place, if there is one.
    pub fn in_folder(place: usize, id: NoteId) -> Option<Self> {
        let (scope, folder) = note_folder_places().nth(place)?;
        Some(Self { scope, folder, id })
    }

    /// Returns the file's absolute path.
    pub fn absolute(self, home: &Home) -> PathBuf {
        home.tree(self.scope)
            .join(self.folder.as_str())
            .join(format!("{}.md", self.id))
    }
}

impl fmt::Display for NotePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tree = home::tree_name(self.scope);
        write!(formatter, "{tree}/{}/{}.md", self.folder, self.id)
    }
}

/// A text that is not the path of a note.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not <tree>/<type>/<ULID>.md")]
pub struct InvalidPath(String);

impl FromStr for NotePath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let parse = || {
            let mut parts = text.split('/');
            let tree = parts.next()?;
            let scope = *Scope::ALL.iter().find(|it| home::tree_name(**it) == tree)?;
            let folder = parts.next()?.parse().ok()?;
            let id = parts.next()?.strip_suffix(".md")?.parse().ok()?;
            parts.next().is_none().then_some(Self { scope, folder, id })
        };
        parse().ok_or_else(|| InvalidPath(text.to_owned()))
    }
}

/// A file or folder in a tree that is not indexed, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The path below the store's root.
    pub path: String,
    /// The reason, without the path.
    pub reason: String,
}

/// The contents of the trees.
#[derive(Debug, Default)]
pub struct Listing {
    /// Every file with a note's name, sorted by path.
    pub notes: Vec<(NotePath, Stamp)>,
    /// All other files and folders, sorted by path.
    pub problems: Vec<Problem>,
}

/// A note on disk.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The path.
    pub path: NotePath,
    /// The stamp of the file.
    pub stamp: Stamp,
    /// Its file.
    pub file: NoteFile,
    /// Whether the file was read completely; only the head of an oversized file is.
    pub whole: bool,
}

impl Stored {
    /// Returns the note with the scope of its tree.
    pub fn note(&self) -> Note {
        Note {
            scope: self.path.scope,
            ..self.file.note().clone()
        }
    }
}

/// A note cannot be read or changed. The file on disk is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store's folders cannot be used.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The file system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a note.
    #[error("{path}: {source}")]
    Unreadable {
        /// The path below the root.
        path: NotePath,
        /// The reason.
        source: Unreadable,
    },
    /// The front matter cannot be changed key by key.
    #[error("{path}: {source}")]
    CannotRewrite {
        /// The path below the root.
        path: NotePath,
        /// The reason.
        source: CannotRewrite,
    },
    /// A note with this id exists.
    #[error("{0} is there already")]
    Exists(NotePath),
    /// The note is too large to change.
    #[error("{0} is over 64 MiB; edit it by hand")]
    TooLong(NotePath),
    /// Another process holds the notes lock for longer than the caller's timeout.
    #[error("the notes are locked by another anamnesis process; try again")]
    Locked,
    /// The journal, which a session note or a proposal depends on, refused.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

impl Error {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// The notes of a store.
#[derive(Debug, Clone)]
pub struct Notes {
    home: Home,
    timeout: Duration,
}

impl Notes {
    /// Returns the notes of a store. A change waits at most `timeout` for the notes lock.
    pub fn new(home: Home, timeout: Duration) -> Self {
        Self { home, timeout }
    }

    /// Lists both trees. Missing folders count as empty; links are not followed.
    pub fn list(&self) -> Listing {
        self.list_scopes(Scope::ALL)
    }

    /// Lists one tree, as [`Notes::list`] lists both.
    pub fn list_scope(&self, scope: Scope) -> Listing {
        self.list_scopes(&[scope])
    }

    fn list_scopes(&self, scopes: &[Scope]) -> Listing {
        let mut listing = Listing::default();
        for scope in scopes {
            self.list_tree(*scope, &mut listing);
        }
        listing.notes.sort_by_key(|(path, _)| *path);
        listing.problems.sort();
        listing
    }

    fn list_tree(&self, scope: Scope, listing: &mut Listing) {
        let tree = self.home.tree(scope);
        if !self.is_folder(&tree, listing) {
            return;
        }
        for folder in NoteType::ALL {
            let path = tree.join(folder.as_str());
            if self.is_folder(&path, listing) {
                self.list_folder(scope, *folder, &path, listing);
            }
        }
        for entry in file::entries(&tree) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Git's folder and the files beside the notes belong to sync.
            if name.starts_with('.') || NoteType::ALL.iter().any(|known| known.as_str() == name) {
                continue;
            }
            self.report(&entry.path(), "not a folder of notes; left alone", listing);
        }
    }

    /// Returns whether the path is a folder. A link or a file instead of it is reported.
    fn is_folder(&self, path: &Path, listing: &mut Listing) -> bool {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => true,
            Ok(metadata) => {
                let target = fs::read_link(path)
                    .map(|to| format!(" to {}", to.display()))
                    .unwrap_or_default();
                let what = if metadata.is_symlink() {
                    "a link"
                } else {
                    "a file"
                };
                self.report(
                    path,
                    &format!("{what}{target} in place of a folder; not followed"),
                    listing,
                );
                false
            }
            Err(_) => false,
        }
    }

    fn list_folder(&self, scope: Scope, folder: NoteType, path: &Path, listing: &mut Listing) {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => return self.report(path, &error.to_string(), listing),
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                // Temporary files of this program and of editors.
                continue;
            }
            let Some(id) = name
                .strip_suffix(".md")
                .and_then(|stem| stem.parse::<NoteId>().ok())
            else {
                self.report(&entry.path(), "not named <ULID>.md; left alone", listing);
                continue;
            };
            match entry.metadata() {
                Ok(metadata) if metadata.is_file() => {
                    let path = NotePath { scope, folder, id };
                    listing.notes.push((path, Stamp::from_metadata(&metadata)));
                }
                Ok(metadata) if metadata.is_symlink() => {
                    let target = fs::read_link(entry.path())
                        .map(|to| to.display().to_string())
                        .unwrap_or_default();
                    self.report(
                        &entry.path(),
                        &format!("a link to {target}; not followed"),
                        listing,
                    );
                }
                Ok(_) => self.report(&entry.path(), "not a regular file", listing),
                Err(error) => self.report(&entry.path(), &error.to_string(), listing),
            }
        }
    }

    fn report(&self, path: &Path, reason: &str, listing: &mut Listing) {
        listing.problems.push(Problem {
            path: self.home.relative(path),
            reason: reason.to_owned(),
        });
    }

    /// Reads a note, or the head of an oversized one.
    ///
    /// # Errors
    /// If the file is missing, a link, not a note, or has git's conflict markers.
    pub fn read(&self, path: NotePath) -> Result<Stored, Error> {
        self.read_up_to(path, MAX_FILE_LENGTH)
    }

    fn read_up_to(&self, path: NotePath, limit: usize) -> Result<Stored, Error> {
        let absolute = path.absolute(&self.home);
        let (mut bytes, stamp, whole) =
            file::read_head(&absolute, limit).map_err(Error::io("read", &absolute))?;
        if !whole {
            // The head may end within a UTF-8 character.
            let valid =
                std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
            if bytes.len() - valid < 4 {
                bytes.truncate(valid);
            }
        }
        let file = parse(path, &bytes)?;
        Ok(Stored {
            path,
            stamp,
            file,
            whole,
        })
    }

    /// Returns the current stamp of a note's file, `None` if it is missing.
    pub fn stamp(&self, path: NotePath) -> Option<Stamp> {
        let metadata = fs::symlink_metadata(path.absolute(&self.home)).ok()?;
        metadata.is_file().then(|| Stamp::from_metadata(&metadata))
    }

    /// Finds the path of a note by its id, in any folder.
    pub fn find(&self, id: NoteId) -> Option<NotePath> {
        note_folder_places()
            .map(|(scope, folder)| NotePath { scope, folder, id })
            .find(|path| self.stamp(*path).is_some())
    }

    /// Takes the notes lock. Others can change notes after it is dropped.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process keeps it for too long.
    pub fn lock(&self) -> Result<Lock, Error> {
        self.home.create()?;
        lock::acquire(&self.home, Subject::Notes, self.timeout)
            .map_err(Error::io("lock", &self.home.derived()))?
            .ok_or(Error::Locked)
    }

    /// Writes a new note.
    ///
    /// # Errors
    /// [`Error::Exists`] if a note has this id.
    pub fn create(&self, _lock: &Lock, note: &Note) -> Result<Stored, Error> {
        if let Some(taken) = self.find(note.id) {
            return Err(Error::Exists(taken));
        }
        self.write(NotePath::from_note(note), &note.render())
    }

    /// Changes a note in place. Nothing is written if `change` changes nothing.
    ///
    /// # Errors
    /// If it cannot be read completely, or its front matter cannot be changed key by key. The file is
    /// unchanged.
    pub fn update(
        &self,
        _lock: &Lock,
        path: NotePath,
        change: impl FnOnce(&mut Note),
    ) -> Result<Stored, Error> {
        let stored = self.read_up_to(path, MAX_CHANGED_LENGTH)?;
        if !stored.whole {
            return Err(Error::TooLong(path));
        }
        let mut note = stored.file.note().clone();
        change(&mut note);
        if note == *stored.file.note() {
            return Ok(stored);
        }
        let text = stored
            .file
            .rewrite(&note)
            .map_err(|source| Error::CannotRewrite { path, source })?;
        let target = NotePath {
            folder: note.note_type,
            ..path
        };
        let text = without_conflict_markers(&text);
        self.replace_bytes(path, target, text.as_bytes())
    }

    /// Moves a note to the tree of another scope.
    pub fn set_scope(&self, lock: &Lock, path: NotePath, scope: Scope) -> Result<Stored, Error> {
        self.move_changed(lock, path, scope, |_| ())
    }

    /// Changes a note and moves it to the tree of a scope.
    ///
    /// # Errors
    /// As [`Notes::update`]. Nothing changes if that tree has a file with this id, for example
    /// because another machine changed a note that was moved to this machine's tree.
    pub fn move_changed(
        &self,
        lock: &Lock,
        path: NotePath,
        scope: Scope,
        change: impl FnOnce(&mut Note),
    ) -> Result<Stored, Error> {
        self.check_free(path, NotePath { scope, ..path })?;
        let stored = self.update(lock, path, |note| {
            change(note);
            note.scope = scope;
        })?;
        if stored.path.scope == scope {
            return Ok(stored);
        }
        let from = stored.path;
        let text = self.bytes(from)?;
        self.replace_bytes(from, NotePath { scope, ..from }, &text)
    }

    /// Replaces a note with a tombstone and keeps the old bytes in the trash. For a tombstone, the
    /// trash is unchanged.
    pub fn forget(
        &self,
        _lock: &Lock,
        path: NotePath,
        now: DateTime<Utc>,
    ) -> Result<Stored, Error> {
        if self.is_forgotten(path) {
            return self.read(path);
        }
        let old = self.copy_to_trash(path)?;
        // An unreadable note can be forgotten too: its path is enough for the tombstone.
        let mut tombstone = match NoteFile::parse(&old, path.id) {
            Ok(file) => file.into_note(),
            Err(_) => Note::new(path.id, path.folder, now),
        };
        tombstone.forget(now);
        self.write(path, &tombstone.render())
    }

    /// Keeps a proposal's bytes in the trash, from where the undo of its approval brings them back. A
    /// machine-local note is in no history.
    pub fn keep_proposal(&self, _lock: &Lock, path: NotePath) -> Result<(), Error> {
        self.copy_to_trash(path).map(drop)
    }

    /// Moves an approved proposal back to this machine: byte for byte if the trash has it, otherwise as
    /// a proposal with its current text. Returns whether its text is unchanged.
    pub fn propose_again(&self, lock: &Lock, path: NotePath) -> Result<bool, Error> {
        let kept = self.trashed(path.id).and_then(|bytes| {
            let file = NoteFile::parse(&bytes, path.id).ok()?;
            let is_proposal = file.note().state == State::Proposed;
            is_proposal.then(|| (file.note().note_type, bytes))
        });
        let Some((folder, bytes)) = kept else {
            let propose = |note: &mut Note| note.state = State::Proposed;
            self.move_changed(lock, path, Scope::MachineLocal, propose)?;
            return Ok(false);
        };
        let place = NotePath {
            scope: Scope::MachineLocal,
            folder,
            id: path.id,
        };
        self.place(lock, place, &bytes)?;
        if place != path {
            self.remove(lock, path)?;
        }
        self.drop_trashed(path.id)?;
        Ok(true)
    }

    fn copy_to_trash(&self, path: NotePath) -> Result<Vec<u8>, Error> {
        let bytes = self.bytes(path)?;
        let trash = self.trash_path(path.id);
        file::write_atomic(&trash, &bytes).map_err(Error::io("write", &trash))?;
        Ok(bytes)
    }

    /// Restores a forgotten note from the trash, byte for byte.
    pub fn restore(&self, _lock: &Lock, path: NotePath) -> Result<Stored, Error> {
        let trash = self.trash_path(path.id);
        let (bytes, _, _) =
            file::read_head(&trash, MAX_CHANGED_LENGTH).map_err(Error::io("read", &trash))?;
        let stored = self.write_bytes(path, &bytes)?;
        fs::remove_file(&trash).map_err(Error::io("remove", &trash))?;
        Ok(stored)
    }

    /// Returns the old bytes of a forgotten note, if the trash has them.
    pub fn trashed(&self, id: NoteId) -> Option<Vec<u8>> {
        file::read_head(&self.trash_path(id), MAX_CHANGED_LENGTH)
            .ok()
            .map(|(bytes, ..)| bytes)
    }

    /// Deletes a note from the trash, so that it cannot be restored.
    pub fn drop_trashed(&self, id: NoteId) -> Result<(), Error> {
        let path = self.trash_path(id);
        file::remove(&path).map_err(Error::io("remove", &path))
    }

    /// Deletes temporary files of a note that a killed process left. Under the lock no other process
    /// writes one.
    pub fn drop_leftovers(&self, _lock: &Lock, id: NoteId) -> Result<(), Error> {
        let beginning = format!(".{id}.md.");
        for folder in self.home.note_folders().chain([self.home.trash()]) {
            for entry in file::entries(&folder) {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if name.starts_with(&beginning) && name.ends_with(".tmp") {
                    fs::remove_file(entry.path()).map_err(Error::io("remove", &entry.path()))?;
                }
            }
        }
        Ok(())
    }

    /// Deletes notes that have been in the trash for longer than this. Returns how many.
    pub fn empty_trash(&self, age: Duration) -> usize {
        file::entries(&self.home.trash())
            .map(|entry| entry.path())
            .filter(|path| file::age(path).is_some_and(|it| it > age))
            .filter(|path| fs::remove_file(path).is_ok())
            .count()
    }

    fn trash_path(&self, id: NoteId) -> PathBuf {
        self.home.trash().join(format!("{id}.md"))
    }

    /// Returns the bytes of a note's file.
    pub fn bytes(&self, path: NotePath) -> Result<Vec<u8>, Error> {
        let absolute = path.absolute(&self.home);
        let (bytes, _, whole) =
            file::read_head(&absolute, MAX_CHANGED_LENGTH).map_err(Error::io("read", &absolute))?;
        if whole {
            Ok(bytes)
        } else {
            Err(Error::TooLong(path))
        }
    }

    /// Replaces a note's file, as an editor would. The caller has validated the bytes.
    pub fn overwrite(&self, _lock: &Lock, path: NotePath, bytes: &[u8]) -> Result<Stored, Error> {
        let file = parse(path, bytes)?;
        let target = NotePath {
            folder: file.note().note_type,
            ..path
        };
        self.replace_bytes(path, target, bytes)
    }

    /// Writes a note's file from another machine, even if it is not readable as a note.
    pub fn place(&self, _lock: &Lock, path: NotePath, bytes: &[u8]) -> Result<Stamp, Error> {
        self.write_file(path, bytes)
    }

    /// Returns the absolute path of a note's file, in a folder that exists.
    fn writable(&self, path: NotePath) -> Result<PathBuf, Error> {
        let absolute = path.absolute(&self.home);
        home::ensure_folder(absolute.parent().unwrap_or(&absolute))?;
        Ok(absolute)
    }

    fn write_file(&self, path: NotePath, bytes: &[u8]) -> Result<Stamp, Error> {
        let absolute = self.writable(path)?;
        file::write_atomic(&absolute, bytes).map_err(Error::io("write", &absolute))
    }

    /// Writes new files from another machine, like [`Notes::place`] but faster. An existing file
    /// stays and gets no stamp.
    ///
    /// # Errors
    /// Other files may have been written.
    pub fn place_new(
        &self,
        _lock: &Lock,
        files: Vec<(NotePath, Vec<u8>)>,
    ) -> Result<Vec<(NotePath, Stamp)>, Error> {
        let tree = self.home.tree(Scope::Portable);
        let mut paths = Vec::with_capacity(files.len());
        let mut written = Vec::with_capacity(files.len());
        for (path, bytes) in files {
            paths.push(path);
            written.push((self.writable(path)?, bytes));
        }
        let stamps = file::write_new(&written).map_err(Error::io("write to", &tree))?;
        let placed = paths.into_iter().zip(stamps);
        Ok(placed
            .filter_map(|(path, stamp)| Some((path, stamp?)))
            .collect())
    }

    /// Removes a note's file. A missing file is not an error.
    pub fn remove(&self, _lock: &Lock, path: NotePath) -> Result<(), Error> {
        let absolute = path.absolute(&self.home);
        file::remove(&absolute).map_err(Error::io("remove", &absolute))
    }

    /// Writes the file in place, then moves it. After a kill in between, the note is complete and in
    /// one place, and the next change moves it.
    fn replace_bytes(&self, from: NotePath, to: NotePath, bytes: &[u8]) -> Result<Stored, Error> {
        self.check_free(from, to)?;
        let stored = self.write_bytes(from, bytes)?;
        if from == to {
            return Ok(stored);
        }
        let (old, new) = (from.absolute(&self.home), self.writable(to)?);
        match fs::rename(&old, &new) {
            Ok(()) => Ok(Stored { path: to, ..stored }),
            // The trees are on different disks. A duplicate is better than a loss.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let stored = self.write_bytes(to, bytes)?;
                fs::remove_file(&old).map_err(Error::io("remove", &old))?;
                Ok(stored)
            }
            Err(error) => Err(Error::io("write", &new)(error)),
        }
    }

    /// Refuses to move a note into a tree that has another file with its id. The move would overwrite
    /// that file or leave two candidates.
    fn check_free(&self, from: NotePath, to: NotePath) -> Result<(), Error> {
        // Most changes do not move the note.
        if from == to {
            return Ok(());
        }
        let places = NoteType::ALL.iter().map(|folder| NotePath {
            folder: *folder,
            ..to
        });
        let mut others = places.filter(|place| *place != from && self.stamp(*place).is_some());
        others
            .next()
            .map_or(Ok(()), |other| Err(Error::Exists(other)))
    }

    fn write(&self, path: NotePath, text: &str) -> Result<Stored, Error> {
        let text = without_conflict_markers(text);
        self.write_bytes(path, text.as_bytes())
    }

    fn write_bytes(&self, path: NotePath, bytes: &[u8]) -> Result<Stored, Error> {
        let stamp = self.write_file(path, bytes)?;
        let file = parse(path, bytes)?;
        Ok(Stored {
            path,
            stamp,
            file,
            whole: true,
        })
    }

    /// Removes temporary files older than `age`, which killed processes left.
    pub fn sweep(&self, age: Duration) -> usize {
        let folders = self.home.note_folders().chain([
            self.home.root().to_owned(),
            self.home.tree(Scope::Portable),
            self.home.trash(),
            self.home.quarantine(),
            self.home.derived(),
            self.home.spool(),
        ]);
        let files = folders.flat_map(|folder| file::entries(&folder));
        let temporary = files.filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with('.') && name.ends_with(".tmp")
        });
        // Only temporary files need a `stat` call.
        temporary
            .map(|entry| entry.path())
            .filter(|path| file::age(path).is_some_and(|it| it >= age))
            .filter(|path| fs::remove_file(path).is_ok())
            .count()
    }

    /// Returns whether a note is a tombstone.
    pub fn is_forgotten(&self, path: NotePath) -> bool {
        self.read(path)
            .is_ok_and(|stored| stored.file.note().state == State::Forgotten)
    }

    /// Returns the modification time of each type folder, nanoseconds since 1970; 0 for a missing one.
    pub fn folder_times(&self) -> [i64; 6] {
        let mut times = [0; 6];
        for (time, path) in times.iter_mut().zip(self.home.note_folders()) {
            *time = fs::symlink_metadata(path)
                .map_or(0, |metadata| Stamp::from_metadata(&metadata).modified);
        }
        times
    }
}

/// Parses the bytes of a note's file. A file with git's conflict markers is not a note.
fn parse(path: NotePath, bytes: &[u8]) -> Result<NoteFile, Error> {
    let file = NoteFile::parse(bytes, path.id);
    let file = file.and_then(|file| {
        if has_conflict_markers(bytes) {
            Err(Unreadable::ConflictMarkers)
        } else {
            Ok(file)
        }
    });
    file.map_err(|source| Error::Unreadable { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn fresh() -> (tempfile::TempDir, Home, Notes) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let notes = Notes::new(home.clone(), Duration::from_millis(50));
        (folder, home, notes)
    }

    fn note(title: &str) -> Note {
        Note {
            title: title.to_owned(),
            body: "body".to_owned(),
            ..Note::new(NoteId::generate(now()), NoteType::Semantic, now())
        }
    }

    #[test]
    fn a_note_is_made_read_changed_forgotten_and_restored() {
        let (_folder, home, notes) = fresh();
        let lock = notes.lock().unwrap();
        let first = note("first");
        let stored = notes.create(&lock, &first).unwrap();
        assert_eq!(notes.read(stored.path).unwrap().note(), first);
        assert!(matches!(notes.create(&lock, &first), Err(Error::Exists(_))));
        let changed = notes
            .update(&lock, stored.path, |note| note.title = "second".to_owned())
            .unwrap();
        assert_ne!(changed.stamp, stored.stamp);
        let before = notes.bytes(stored.path).unwrap();
        let tombstone = notes.forget(&lock, stored.path, now()).unwrap();
        assert_eq!(tombstone.note().state, State::Forgotten);
        assert!(
            !String::from_utf8(notes.bytes(stored.path).unwrap())
                .unwrap()
                .contains("second")
        );
        // Two concurrent calls lose nothing.
        let again = notes.forget(&lock, stored.path, now()).unwrap();
        assert_eq!(again.stamp, tombstone.stamp);
        assert_eq!(notes.trashed(first.id).as_ref(), Some(&before));
        notes.restore(&lock, stored.path).unwrap();
        // DEL-03
        assert_eq!(notes.bytes(stored.path).unwrap(), before);
        assert!(notes.trashed(first.id).is_none());
        assert!(home.open_to_others().is_empty());
    }

    #[test]
    fn an_update_that_changes_nothing_writes_nothing() {
        let (_folder, _home, notes) = fresh();
        let lock = notes.lock().unwrap();
        let stored = notes.create(&lock, &note("same")).unwrap();
        let again = notes.update(&lock, stored.path, |_| {}).unwrap();
        assert_eq!(again.stamp, stored.stamp);
    }

    #[test]
    fn type_and_scope_decide_the_folder() {
        let (_folder, _home, notes) = fresh();
        let lock = notes.lock().unwrap();
        let stored = notes.create(&lock, &note("moves")).unwrap();
        let moved = notes
            .update(&lock, stored.path, |note| {
                note.note_type = NoteType::Procedural;
            })
            .unwrap();
        assert!(moved.path.to_string().starts_with("memory/procedural/"));
        let local = notes
            .set_scope(&lock, moved.path, Scope::MachineLocal)
            .unwrap();
        assert!(local.path.to_string().starts_with("local/procedural/"));
        assert_eq!(notes.list().notes.len(), 1);
        assert_eq!(local.file.note().scope, Scope::MachineLocal);
        assert_eq!(notes.find(local.path.id), Some(local.path));
    }

    #[test]
    fn no_note_is_moved_to_where_another_file_has_its_id() {
        let (_folder, _home, notes) = fresh();
        let lock = notes.lock().unwrap();
        for folder in NoteType::ALL {
            let mut local = note("moves");
            local.scope = Scope::MachineLocal;
            let local = notes.create(&lock, &local).unwrap().path;
            let other = NotePath {
                scope: Scope::Portable,
                folder: *folder,
                ..local
            };
            // As a sync writes it.
            notes
                .place(&lock, other, b"what another machine says")
                .unwrap();
            let before = [local, other].map(|path| notes.bytes(path).unwrap());
            let refused = notes.set_scope(&lock, local, Scope::Portable);
            assert!(matches!(refused, Err(Error::Exists(path)) if path == other));
            let after = [local, other].map(|path| notes.bytes(path).unwrap());
            assert_eq!(after, before, "{folder}");
            for path in [local, other] {
                fs::remove_file(path.absolute(&notes.home)).unwrap();
            }
        }
    }

    #[test]
    fn the_tree_decides_the_scope() {
        // YAML-07
        let (_folder, home, notes) = fresh();
        let text = note("says portable").render();
        let id: NoteId = text[8..34].parse().unwrap();
        let path = NotePath {
            scope: Scope::MachineLocal,
            folder: NoteType::Semantic,
            id,
        };
        fs::create_dir_all(path.absolute(&home).parent().unwrap()).unwrap();
        fs::write(path.absolute(&home), text).unwrap();
        assert_eq!(notes.read(path).unwrap().note().scope, Scope::MachineLocal);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_note_is_left_alone_and_reported() {
        // PATH-02, PATH-03, PATH-05, PATH-06
        let (folder, home, notes) = fresh();
        let semantic = home.tree(Scope::Portable).join("semantic");
        fs::create_dir_all(semantic.join("01ARZ3NDEKTSV4RRFFQ69G5FAV.md")).unwrap();
        fs::write(semantic.join("README.md"), "x").unwrap();
        fs::write(semantic.join("01arz3ndektsv4rrffq69g5fav.md"), "x").unwrap();
        fs::write(semantic.join(".hidden.md"), "x").unwrap();
        std::os::unix::fs::symlink(
            "/etc/passwd",
            semantic.join("01ARZ3NDEKTSV4RRFFQ69G5FAW.md"),
        )
        .unwrap();
        std::os::unix::fs::symlink(folder.path(), home.tree(Scope::Portable).join("episodic"))
            .unwrap();
        fs::create_dir(home.tree(Scope::Portable).join("elsewhere")).unwrap();
        let listing = notes.list();
        assert!(listing.notes.is_empty());
        let reported: Vec<String> = listing
            .problems
            .iter()
            .map(|p| format!("{}: {}", p.path, p.reason))
            .collect();
        assert_eq!(reported.len(), 6, "{reported:#?}");
        assert!(
            reported
                .iter()
                .any(|line| line.contains("FAW.md: a link to /etc/passwd; not followed"))
        );
        assert!(
            reported
                .iter()
                .any(|line| line.starts_with("memory/episodic: a link to "))
        );
        assert!(
            reported
                .iter()
                .any(|line| line == "memory/elsewhere: not a folder of notes; left alone")
        );
    }

    #[test]
    fn names_are_the_grammar() {
        // PATH-01
        for good in [
            "memory/semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md",
            "local/episodic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md",
        ] {
            assert_eq!(good.parse::<NotePath>().unwrap().to_string(), good);
        }
        for bad in [
            "memory/semantic/../../x.md",
            "memory/../semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md",
            "/memory/semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md",
            "memory/semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md/x",
            "memory/semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ] {
            assert!(bad.parse::<NotePath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_oversized_note_is_read_by_its_head() {
        // PATH-08
        let (_folder, _home, notes) = fresh();
        let lock = notes.lock().unwrap();
        let large = Note {
            body: "ä".repeat(MAX_FILE_LENGTH),
            ..note("large")
        };
        let stored = notes.create(&lock, &large).unwrap();
        let head = notes.read(stored.path).unwrap();
        assert!(!head.whole);
        assert!(head.file.note().body.len() <= MAX_FILE_LENGTH);
        let renamed = notes
            .update(&lock, stored.path, |note| {
                note.title = "still whole".to_owned();
            })
            .unwrap();
        assert_eq!(renamed.file.note().body.len(), large.body.len());
    }

    #[test]
    fn leftovers_of_a_killed_process_are_swept() {
        let (_folder, home, notes) = fresh();
        let lock = notes.lock().unwrap();
        notes.create(&lock, &note("kept")).unwrap();
        let folders = [
            home.tree(Scope::Portable).join("semantic"),
            home.tree(Scope::Portable),
            home.trash(),
            home.quarantine(),
            home.derived(),
            home.root().to_owned(),
        ];
        for folder in &folders {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(".01ARZ3NDEKTSV4RRFFQ69G5FAV.md.X.tmp"), "half").unwrap();
        }
        assert_eq!(notes.sweep(Duration::from_secs(3600)), 0);
        assert_eq!(notes.sweep(Duration::ZERO), folders.len());
        assert_eq!(notes.list().notes.len(), 1);
    }

    #[test]
    fn leftovers_of_one_note_are_dropped() {
        let (_folder, home, notes) = fresh();
        let lock = notes.lock().unwrap();
        let kept = notes.create(&lock, &note("kept")).unwrap();
        let left = |id: NoteId| format!(".{id}.md.X.tmp");
        let other = NoteId::of_session("other");
        for folder in [home.tree(Scope::Portable).join("semantic"), home.trash()] {
            for id in [kept.path.id, other] {
                fs::write(folder.join(left(id)), "half").unwrap();
            }
        }
        notes.drop_leftovers(&lock, other).unwrap();
        assert_eq!(notes.sweep(Duration::ZERO), 2);
        assert_eq!(notes.list().notes.len(), 1);
    }

    #[test]
    fn a_note_whose_move_was_cut_short_is_moved_by_the_next_change() {
        let (_folder, home, notes) = fresh();
        let lock = notes.lock().unwrap();
        let stored = notes.create(&lock, &note("moves")).unwrap();
        // The state after a kill before the rename: the new text in the old place.
        let text = String::from_utf8(notes.bytes(stored.path).unwrap())
            .unwrap()
            .replace("type: semantic", "type: procedural")
            .replace("scope: portable", "scope: machine-local");
        fs::write(stored.path.absolute(&home), text).unwrap();
        let local = notes
            .set_scope(&lock, stored.path, Scope::MachineLocal)
            .unwrap();
        assert_eq!(local.path.scope, Scope::MachineLocal);
        let changed = notes
            .update(&lock, local.path, |note| note.title = "moved".to_owned())
            .unwrap();
        assert!(changed.path.to_string().starts_with("local/procedural/"));
        assert_eq!(notes.list().notes.len(), 1);
    }
}
