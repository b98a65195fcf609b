//! Copies Claude Code's own memory into notes. The memory is never written.
//!
//! The client stores a project's memory below `projects/<slug>/memory` in its folder, or in one folder
//! that the person named, and that of subagents below `agent-memory`. Each file becomes one note, by
//! the hash of its path, which is updated with the file. When the file is removed, the note stays and is
//! marked until a person decides: the client's clean-up removes files, too. After an edit by a person
//! the note is no longer updated, and a note that a person forgot is not copied again. The journal has
//! the state of each file, so an unchanged file costs one `stat` call. A transcript is read once to find
//! a project's folder; without one, nothing is copied, because the folder may be excluded.
//!
//! A note that others may have written, a team or a project's repository, is only found by search until
//! a person approves it.
//!
//! A machine changes only notes with its own name. The note is written before its row: after a kill
//! in between, the next process finds the note by its text.

mod files;
mod place;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashSet},
    fs::DirEntry,
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note, Source as Author, State, UNREVIEWED_TAG, timestamp},
};
use anamnesis_session::claude_memory::{GONE_TAG, MemoryFile, is_list, note_id, own_note_id};
use anamnesis_text::{clean::one_line, hash::text_hash, redact::redact};
use chrono::{DateTime, Utc};

use crate::{
    fs::{file::Stamp, lock::Lock},
    journal::{self, CopyState, Journal, NativeMemory, Source},
    notes::{self, Notes, Problem, Stored},
    project::Project,
    settings::{config::Paused, exclude::Exclusions},
};

/// The confidence of a note written by a model.
const CONFIDENCE: f64 = 0.9;

/// The parameters of an import.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The client's folder.
    pub claude_folder: &'a Path,
    /// The folder that the person named for the memory of all projects.
    pub memory_folder: Option<&'a Path>,
    /// The name of this machine.
    pub machine_id: &'a str,
    /// The user's home, which ends the search for a project's marker.
    pub user_home: Option<&'a Path>,
    /// Excluded folders.
    pub exclusions: &'a Exclusions,
    /// Paused projects.
    pub paused: &'a Paused,
    /// The current time.
    pub now: DateTime<Utc>,
}

/// The result of an import.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The number of new notes.
    pub imported: usize,
    /// The number of changed notes.
    pub updated: usize,
    /// The number of skipped files, unchanged ones included.
    pub skipped: usize,
    /// The number of notes that were marked because their file is gone.
    pub orphaned: usize,
    /// The ids of the new and changed notes.
    pub changed: Vec<NoteId>,
    /// The masked credentials, by rule.
    pub masked: BTreeMap<&'static str, usize>,
    /// The files and folders that cannot be used, with the reason.
    pub problems: Vec<Problem>,
}

impl Imported {
    /// Returns whether any note changed.
    pub fn has_changes(&self) -> bool {
        self.imported + self.updated + self.orphaned > 0
    }
}

/// Folders of subagents' memory: both in a project's `.claude`, the first one also in the client's folder.
const AGENT_MEMORY: [&str; 2] = ["agent-memory", "agent-memory-local"];

/// The import failed. Earlier changes stay.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The notes cannot be changed.
    #[error(transparent)]
    Notes(#[from] notes::Error),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The client's folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Updates the notes from Claude Code's own memory. The index is not changed.
///
/// # Errors
/// If the client's folder, the journal or the notes cannot be used. A single unusable file is a
/// problem in the result, not an error.
pub fn import(notes: &Notes, journal: &Journal, request: &Request<'_>) -> Result<Imported, Error> {
    let mut import = Import {
        notes,
        journal,
        request,
        before: NativeMemory::default(),
        after: NativeMemory::default(),
        unjudged: HashSet::new(),
        done: Imported::default(),
    };
    if request.paused.everywhere {
        return Ok(import.done);
    }
    import.within(request.claude_folder, Import::walk)?;
    if let Some(folder) = request.memory_folder {
        // A state of its own: if the person names another folder, these notes keep their files.
        import.within(folder, |import| {
            let place = Folder::new(folder.to_string_lossy(), folder);
            import.walk_folder(place, &[(folder, "")])?;
            Ok(folder.exists())
        })?;
    }
    Ok(import.done)
}

/// A running import.
struct Import<'a> {
    notes: &'a Notes,
    journal: &'a Journal,
    request: &'a Request<'a>,
    /// The state of the last import, without the files that were visited.
    before: NativeMemory,
    /// The state of this one.
    after: NativeMemory,
    /// Projects whose files were not read, so their notes stay.
    unjudged: HashSet<String>,
    done: Imported,
}

/// A client folder of one project.
struct Folder {
    /// Its name.
    slug: String,
    /// The hash of its name.
    hash: String,
    /// The project's folder.
    place: PathBuf,
    project: OnceCell<String>,
}

impl Folder {
    fn new(slug: impl Into<String>, place: &Path) -> Self {
        let slug = slug.into();
        Self {
            hash: text_hash(&slug),
            slug,
            place: place.to_owned(),
            project: OnceCell::new(),
        }
    }
}

/// A memory file.
struct File<'a> {
    folder: &'a Folder,
    /// Its path in the memory, without the ending.
    stem: String,
    path: PathBuf,
    stamp: Stamp,
}

impl File<'_> {
    fn name(&self) -> &str {
        self.stem.rsplit('/').next().unwrap_or_default()
    }

    /// Returns whether others may have written it.
    fn is_foreign(&self) -> bool {
        self.stem.starts_with("team/") || self.stem.starts_with(AGENT_MEMORY[0])
    }
}

impl Import<'_> {
    /// Imports a folder with its state. `walk` returns whether it saw all files, so that the others are
    /// gone.
    fn within(
        &mut self,
        folder: &Path,
        walk: impl FnOnce(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let name = text_hash(&folder.to_string_lossy());
        let known = self.journal.native_memory(&name)?;
        self.before = known.clone();
        self.after = NativeMemory {
            places: known.places.clone(),
            ..NativeMemory::default()
        };
        if walk(self)? {
            self.mark_orphans()?;
        }
        let mut after = std::mem::take(&mut self.after);
        after.sources.append(&mut self.before.sources);
        if after != known {
            self.journal.keep_native_memory(&name, &after)?;
        }
        Ok(self.journal.know(self.done.changed.iter().copied())?)
    }

    /// Visits all files. Returns whether it was complete, so that files not seen are gone.
    fn walk(&mut self) -> Result<bool, Error> {
        let projects = self.request.claude_folder.join("projects");
        let entries = match files::entries(&projects) {
            Ok(entries) => entries,
            // Claude Code has not run here, or its folder is elsewhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => {
                return Err(Error::Io {
                    path: projects,
                    source,
                });
            }
        };
        let Some(entries) = entries else {
            self.problem(&projects, "too many folders; none was looked at");
            return Ok(false);
        };
        for entry in entries {
            let path = entry.path();
            let slug = entry.file_name().to_string_lossy().into_owned();
            let hash = text_hash(&slug);
            let memory = path.join("memory");
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let place = is_folder.then(|| self.place(&hash, &path)).flatten();
            let Some(place) = place else {
                if is_folder {
                    self.done.skipped += files::memory_files(&memory).map_or(0, |it| it.len());
                }
                self.unjudged.insert(hash);
                continue;
            };
            let folder = Folder::new(slug, Path::new(&place));
            let agents = AGENT_MEMORY.map(|name| folder.place.join(".claude").join(name));
            let mut parts = vec![(memory, "")];
            parts.extend(agents.into_iter().zip(AGENT_MEMORY));
            let parts: Vec<_> = parts.iter().map(|(path, name)| (&**path, *name)).collect();
            self.walk_folder(folder, &parts)?;
        }
        let path = self.request.claude_folder.join(AGENT_MEMORY[0]);
        let folder = Folder::new(AGENT_MEMORY[0], &path);
        let _ = folder.project.set(GLOBAL.to_owned());
        self.walk_folder(folder, &[(&path, AGENT_MEMORY[0])])?;
        Ok(true)
    }

    /// Visits the files below paths that belong to one project; their stems begin with the given name.
    fn walk_folder(&mut self, folder: Folder, parts: &[(&Path, &str)]) -> Result<(), Error> {
        let mut files = Vec::new();
        for (path, name) in parts {
            match files::memory_files(path) {
                Ok(found) => files.extend(found.into_iter().map(|(stem, entry)| {
                    let separator = if name.is_empty() { "" } else { "/" };
                    (format!("{name}{separator}{stem}"), entry)
                })),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.unjudged.insert(folder.hash.clone());
                    self.problem(path, &error.to_string());
                }
            }
        }
        if files.is_empty() {
            return Ok(());
        }
        self.look_at_folder(folder, files)
    }

    fn look_at_folder(
        &mut self,
        folder: Folder,
        files: Vec<(String, DirEntry)>,
    ) -> Result<(), Error> {
        let Request {
            exclusions, paused, ..
        } = self.request;
        let is_paused = || !paused.projects.is_empty() && paused.names(self.project(&folder));
        if exclusions.excludes(&folder.place) || is_paused() {
            self.done.skipped += files.len();
            self.unjudged.insert(folder.hash);
            return Ok(());
        }
        for (stem, entry) in files {
            let id = note_id(&folder.slug, &stem);
            let known = self.before.sources.remove(&id);
            // Otherwise it was removed just now, which the next import handles.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let file = File {
                folder: &folder,
                stem,
                path: entry.path(),
                stamp: Stamp::from_metadata(&metadata),
            };
            let mut source = known.unwrap_or_else(|| Source {
                id,
                slug: folder.hash.clone(),
                stamp: Stamp::default(),
                state: CopyState::Uncopied,
                note: id,
                hash: String::new(),
                project: String::new(),
                note_stamp: Stamp::default(),
            });
            if source.state != CopyState::Orphaned && source.stamp == file.stamp {
                self.skip(&file, source.state);
            } else {
                match self.take(&file, &mut source) {
                    Ok(true) => {}
                    // The list has no text of its own any more, so its note has no source.
                    Ok(false) => {
                        self.before.sources.insert(id, source);
                        continue;
                    }
                    Err(Error::Notes(error)) if !matches!(error, notes::Error::Locked) => {
                        self.problem_with(&file, &error.to_string());
                    }
                    Err(error) => return Err(error),
                }
            }
            self.after.sources.insert(id, source);
        }
        Ok(())
    }

    /// Imports a new or changed file. Returns false if a list has no text for its note any more.
    fn take(&mut self, file: &File<'_>, source: &mut Source) -> Result<bool, Error> {
        let memory = match files::read(&file.path, file.name()) {
            Ok((memory, stamp)) => {
                source.stamp = stamp;
                memory
            }
            Err(error) => {
                // The stamp stays, so each import reports it.
                self.problem_with(file, &error.to_string());
                return Ok(true);
            }
        };
        let Some(memory) = memory else {
            // A file may be invalid while it is written, so its note stays.
            self.skip(file, CopyState::Uncopied);
            return Ok(source.state == CopyState::Uncopied || !is_list(file.name()));
        };
        self.copy(file, &memory, source)?;
        Ok(true)
    }

    /// Updates a note's text from a file, if it differs.
    fn bring_in_step(
        &mut self,
        file: &File<'_>,
        memory: &MemoryFile,
        source: &mut Source,
        stored: Stored,
        lock: &Lock,
    ) -> Result<(), Error> {
        let mut stored = stored;
        let tags = tags(file, memory);
        if says(&stored.note(), file, memory) {
            self.skip(file, CopyState::Copied);
        } else if self.journal.forgotten_at(&memory.body)?.is_some() {
            self.skip(file, CopyState::Uncopied);
        } else {
            let time = self.time_of(file);
            stored = self.notes.update(lock, stored.path, |note| {
                note.title.clone_from(&memory.title);
                note.body.clone_from(&memory.body);
                note.tags = tags;
                note.note_type = memory.note_type;
                note.updated_at = timestamp(time);
            })?;
            self.done.updated += 1;
            self.done.changed.push(stored.path.id);
            self.count_masked(memory);
        }
        copied(source, &stored);
        Ok(())
    }

    /// Updates the note of a file, or creates it.
    fn copy(
        &mut self,
        file: &File<'_>,
        memory: &MemoryFile,
        source: &mut Source,
    ) -> Result<(), Error> {
        let lock = self.notes.lock()?;
        let machine_id = self.request.machine_id;
        let own = own_note_id(machine_id, &file.folder.slug, &file.stem);
        for id in [source.id, own] {
            source.note = id;
            let Some(path) = self.notes.find(id) else {
                return self.create(id, file, memory, source, &lock);
            };
            let stored = self.notes.read(path)?;
            let note = stored.note();
            let is_own = note.machine_id == machine_id;
            if is_own && note.state != State::Forgotten {
                // A killed process may have written the note but not its row. The Python version,
                // which sets a workspace, overwrites its copies at every sync.
                let fingerprint = fingerprint(&note);
                let is_copy = fingerprint == source.hash
                    || fingerprint == fingerprint_of(file, memory, &note.project)
                    || (note.source == Author::Import && note.workspace_id.is_some());
                if is_copy {
                    return self.bring_in_step(file, memory, source, stored, &lock);
                }
            }
            // A note of another machine with other words leaves the second id to this file.
            if is_own
                || note.state == State::Forgotten
                || words_hash(&note.body) == words_hash(&memory.body)
            {
                source.state = CopyState::Uncopied;
                self.skip(file, source.state);
                return Ok(());
            }
        }
        source.state = CopyState::Uncopied;
        source.stamp = Stamp::default();
        self.problem_with(file, "the ids of its note are taken");
        Ok(())
    }

    fn create(
        &mut self,
        id: NoteId,
        file: &File<'_>,
        memory: &MemoryFile,
        source: &mut Source,
        lock: &Lock,
    ) -> Result<(), Error> {
        source.state = CopyState::Uncopied;
        if self.journal.forgotten_at(&memory.body)?.is_some() {
            self.skip(file, source.state);
            return Ok(());
        }
        let project = self.project(file.folder).to_owned();
        // Only a person may make Claude's own memory apply to all projects.
        if project == GLOBAL && !file.is_foreign() {
            source.stamp = Stamp::default();
            self.problem_with(file, "belongs to no project");
            return Ok(());
        }
        let time = timestamp(self.time_of(file));
        let note = Note {
            title: memory.title.clone(),
            body: memory.body.clone(),
            project,
            machine_id: self.request.machine_id.to_owned(),
            source: Author::Import,
            confidence: CONFIDENCE,
            created_at: time.clone(),
            updated_at: time,
            tags: tags(file, memory),
            state: if file.is_foreign() {
                State::Muted
            } else {
                State::Active
            },
            ..Note::new(id, memory.note_type, self.request.now)
        };
        let stored = self.notes.create(lock, &note)?;
        copied(source, &stored);
        self.done.imported += 1;
        self.done.changed.push(id);
        self.count_masked(memory);
        Ok(())
    }

    /// Marks the notes of removed files, for a person to decide about.
    fn mark_orphans(&mut self) -> Result<(), Error> {
        for mut source in std::mem::take(&mut self.before.sources).into_values() {
            if source.state != CopyState::Orphaned && !self.unjudged.contains(&source.slug) {
                let marked = match source.state {
                    CopyState::Copied => self.mark_orphan(&source)?,
                    _ => None,
                };
                let Some(stored) = marked else { continue };
                self.done.orphaned += 1;
                self.done.changed.push(stored.path.id);
                copied(&mut source, &stored);
                source.state = CopyState::Orphaned;
            }
            self.after.sources.insert(source.id, source);
        }
        Ok(())
    }

    /// Marks a note if it still has the imported text.
    fn mark_orphan(&mut self, source: &Source) -> Result<Option<Stored>, Error> {
        let lock = self.notes.lock()?;
        let stored = self
            .notes
            .find(source.note)
            .map(|path| self.notes.read(path));
        let Some(Ok(stored)) = stored else {
            return Ok(None);
        };
        let note = stored.note();
        let is_as_imported = note.state != State::Forgotten
            && note.machine_id == self.request.machine_id
            && fingerprint(&note) == source.hash;
        if !is_as_imported {
            return Ok(None);
        }
        // The text did not change, so its time of change stays.
        let mark = |note: &mut Note| note.add_tags([GONE_TAG]);
        Ok(Some(self.notes.update(&lock, stored.path, mark)?))
    }

    fn project<'f>(&self, folder: &'f Folder) -> &'f str {
        let find = || Project::find(&folder.place, self.request.user_home).key;
        folder.project.get_or_init(find)
    }

    /// Returns the folder of a project of the client, in which its first known session began.
    fn place(&mut self, hash: &str, path: &Path) -> Option<String> {
        if let Some(known) = self.after.places.get(hash) {
            return Some(known.clone());
        }
        let place = place::began_in(path)?;
        // A folder's name may contain a credential. Then it is not stored and is searched each time.
        if redact(&place).findings.is_empty() {
            self.after.places.insert(hash.to_owned(), place.clone());
        }
        Some(place)
    }

    /// Returns when a file last changed, now at the latest: a time in the future would keep its note
    /// first for ever.
    fn time_of(&self, file: &File<'_>) -> DateTime<Utc> {
        let nanoseconds = u64::try_from(file.stamp.modified).unwrap_or(0);
        let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
        DateTime::from(time).min(self.request.now)
    }

    fn count_masked(&mut self, memory: &MemoryFile) {
        for (rule, count) in &memory.masked {
            *self.done.masked.entry(rule).or_default() += count;
        }
    }

    /// Counts a skipped file. A list without text of its own is not a memory file.
    fn skip(&mut self, file: &File<'_>, state: CopyState) {
        if state != CopyState::Uncopied || !is_list(file.name()) {
            self.done.skipped += 1;
        }
    }

    /// Counts and reports a file that cannot be used.
    fn problem_with(&mut self, file: &File<'_>, reason: &str) {
        self.done.skipped += 1;
        self.problem(&file.path, reason);
    }

    fn problem(&mut self, path: &Path, reason: &str) {
        let text = |text: &str| redact(&one_line(text)).text.into_owned();
        self.done.problems.push(Problem {
            path: text(&path.to_string_lossy()),
            reason: text(reason),
        });
    }
}

/// Records that a note is a copy of a file.
fn copied(source: &mut Source, stored: &Stored) {
    let note = stored.note();
    source.state = CopyState::Copied;
    source.note = note.id;
    source.hash = fingerprint(&note);
    source.project = note.project;
    source.note_stamp = stored.stamp;
}

/// Returns the tags of a file's copy.
fn tags(file: &File<'_>, memory: &MemoryFile) -> Vec<String> {
    let held = file.is_foreign().then(|| UNREVIEWED_TAG.to_owned());
    memory.tags.iter().cloned().chain(held).collect()
}

/// Hashes the parts of a note whose change makes it a person's.
fn fingerprint(note: &Note) -> String {
    text_hash(&format!(
        "{}\n{}\n{}\n{}\n{}\n{}\n{}",
        note.note_type,
        note.scope,
        note.project,
        note.pinned,
        note.tags.join(","),
        note.title,
        note.body
    ))
}

/// Returns the fingerprint of a file's copy.
fn fingerprint_of(file: &File<'_>, memory: &MemoryFile, project: &str) -> String {
    fingerprint(&Note {
        title: memory.title.clone(),
        body: memory.body.clone(),
        tags: tags(file, memory),
        project: project.to_owned(),
        ..Note::new(note_id("", ""), memory.note_type, DateTime::UNIX_EPOCH)
    })
}

/// Returns whether a note has exactly the text of a file.
fn says(note: &Note, file: &File<'_>, memory: &MemoryFile) -> bool {
    fingerprint(note) == fingerprint_of(file, memory, &note.project)
}

/// Hashes the words of a text, ignoring white space.
fn words_hash(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    text_hash(&words.join(" "))
}

#[cfg(test)]
mod tests;
