//! Claude Code's own memory, copied into notes: read only, never written to.
//!
//! The client keeps the memory of a project at `projects/<slug>/memory/*.md` in its folder. Each
//! file becomes one note, which follows it: changed when it changes, forgotten when it goes. From the
//! first change by a person on the note is theirs, and follows nothing. What a person forgot stays
//! away. The journal knows what became of each file, so a file that did not change costs one look at
//! the file system, and a transcript is read once to tell a project's folder.
//!
//! A machine changes only the notes that carry its own name. The file comes first, then its row: a
//! process that is killed in between has written a note that the next one knows by what it says.

mod place;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsString,
    fs::{self, DirEntry},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note, Scope, Source as Author, State, timestamp},
};
use anamnesis_session::claude_memory::{MAX_LENGTH, MemoryFile, note_id, own_note_id};
use anamnesis_text::{clean::one_line, hash::text_hash, redact::redact};
use chrono::{DateTime, Utc};

use crate::{
    fs::file::{self, Stamp},
    journal::{self, Fate, Journal, Place, Source},
    notes::{self, Notes, Problem, Stored},
    project::Project,
    settings::{config::Paused, exclude::Exclusions},
};

/// The client's own list of a project's memory. It names the other files and is none of them.
const LIST: &str = "MEMORY.md";

/// How many folders of projects, and how many files in one, are looked at.
const MAX_ENTRIES: usize = 10_000;

/// How much of a model's word a note has.
const CONFIDENCE: f64 = 0.9;

/// What is imported, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The client's folder.
    pub claude_folder: &'a Path,
    /// This machine.
    pub machine_id: &'a str,
    /// The user's home, where the search for a project's marker ends.
    pub user_home: Option<&'a Path>,
    /// Folders whose memory is left alone.
    pub exclusions: &'a Exclusions,
    /// Projects whose memory is left alone.
    pub paused: &'a Paused,
    /// Now.
    pub now: DateTime<Utc>,
}

/// What an import did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Notes that were made.
    pub imported: usize,
    /// Notes that were changed.
    pub updated: usize,
    /// Files that gave nothing to do.
    pub skipped: usize,
    /// Notes that were forgotten because their file is gone.
    pub forgotten: usize,
    /// Credentials that were masked in what was written, by the rule that found them.
    pub masked: BTreeMap<&'static str, usize>,
    /// What was not taken, and why. A file is told of once, a folder each time.
    pub problems: Vec<Problem>,
}

impl Imported {
    /// Tells whether any note changed.
    pub fn has_changes(&self) -> bool {
        self.imported + self.updated + self.forgotten > 0
    }
}

/// The import could not go on. What was done until then stands.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The notes cannot be changed.
    #[error(transparent)]
    Notes(#[from] notes::Error),
    /// The records cannot be used.
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

/// Brings the notes in step with Claude Code's own memory. The index is not touched.
///
/// # Errors
/// When the client's folder, the records or the notes cannot be used. A single file or note that
/// cannot be used is a problem, not an error.
pub fn import(notes: &Notes, journal: &Journal, request: &Request<'_>) -> Result<Imported, Error> {
    let claude = text_hash(&request.claude_folder.to_string_lossy());
    let mut import = Import {
        notes,
        journal,
        request,
        known: journal.native_sources(&claude)?,
        places: journal.native_places(&claude)?,
        claude,
        unjudged: HashSet::new(),
        texts: None,
        done: Imported::default(),
    };
    if request.paused.everywhere {
        return Ok(import.done);
    }
    if import.walk()? {
        import.let_go()?;
    }
    Ok(import.done)
}

/// An import under way.
struct Import<'a> {
    notes: &'a Notes,
    journal: &'a Journal,
    request: &'a Request<'a>,
    /// The hash of the client's folder.
    claude: String,
    /// What became of the files that were not seen yet.
    known: HashMap<NoteId, Source>,
    /// The folders that the client's names of projects stand for.
    places: HashMap<String, Place>,
    /// The projects whose files cannot or must not be looked at: nothing can be said of them.
    unjudged: HashSet<String>,
    /// The notes by project and text, once they were needed.
    texts: Option<HashMap<(String, String), NoteId>>,
    done: Imported,
}

/// A folder of the client's for one project.
struct Folder {
    /// Its name.
    slug: String,
    /// The hash of its name.
    hash: String,
    /// The project's folder.
    place: PathBuf,
    project: OnceCell<String>,
}

/// A file of the memory.
struct File<'a> {
    folder: &'a Folder,
    stem: String,
    path: PathBuf,
    stamp: Stamp,
}

impl Import<'_> {
    /// Looks at all there is; tells whether that was all, so that what was not seen is gone.
    fn walk(&mut self) -> Result<bool, Error> {
        let projects = self.request.claude_folder.join("projects");
        let entries = match entries(&projects) {
            Ok(entries) => entries,
            // Claude Code was never run here, or its folder is elsewhere for now.
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
            let name = entry.file_name();
            let hash = text_hash(&name.to_string_lossy());
            match files(&entry, &path.join("memory")) {
                Ok(files) if files.is_empty() => {}
                Ok(files) => {
                    let slug = name.to_string_lossy().into_owned();
                    self.look_at_folder(slug, hash, &path, files)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.unjudged.insert(hash);
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        self.problem(&path.join("memory"), &error.to_string());
                    }
                }
            }
        }
        Ok(true)
    }

    fn look_at_folder(
        &mut self,
        slug: String,
        hash: String,
        path: &Path,
        files: Vec<(String, DirEntry)>,
    ) -> Result<(), Error> {
        let place = self.place(&slug, &hash, path)?;
        let folder = Folder {
            place: PathBuf::from(&place.folder),
            slug,
            hash,
            project: OnceCell::new(),
        };
        let Request {
            exclusions, paused, ..
        } = self.request;
        // Where folders are excluded, one that nobody knows may be one of them.
        let is_excluded =
            exclusions.excludes(&folder.place) || (!place.is_certain && !exclusions.is_empty());
        if is_excluded || (!paused.projects.is_empty() && paused.names(self.project(&folder))) {
            self.unjudged.insert(folder.hash);
            return Ok(());
        }
        for (stem, entry) in files {
            let id = note_id(&folder.slug, &stem);
            let known = self.known.remove(&id);
            // Else it went in this moment, and the next import knows.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let file = File {
                folder: &folder,
                stem,
                path: entry.path(),
                stamp: Stamp::of(&metadata),
            };
            let mut source = known.unwrap_or_else(|| Source {
                id,
                slug: folder.hash.clone(),
                stamp: Stamp::default(),
                fate: Fate::Nothing,
                note: id,
                hash: String::new(),
                project: String::new(),
                note_stamp: Stamp::default(),
                returns: 0,
            });
            let is_settled = match source.fate {
                Fate::Gone => false,
                Fate::Elsewhere => self.says_the_same(&source),
                _ => true,
            };
            if is_settled && source.stamp == file.stamp {
                self.done.skipped += 1;
                continue;
            }
            match self.take(&file, &mut source) {
                Ok(()) => self.journal.keep_native_source(&self.claude, &source)?,
                Err(Error::Notes(error)) if !matches!(error, notes::Error::Locked) => {
                    self.done.skipped += 1;
                    self.problem(&file.path, &error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes up a file that is new or has changed.
    fn take(&mut self, file: &File<'_>, source: &mut Source) -> Result<(), Error> {
        source.stamp = file.stamp;
        let memory = match read(file) {
            Ok((memory, stamp)) => {
                source.stamp = stamp;
                memory
            }
            Err(error) => {
                self.problem(&file.path, &error.to_string());
                None
            }
        };
        let Some(memory) = memory else {
            // A file that is being written may be no memory for a moment, so its note stays.
            self.done.skipped += 1;
            return Ok(());
        };
        let lock = self.notes.lock()?;
        if source.fate == Fate::Copied && self.follow(file, &memory, source, &lock)? {
            return Ok(());
        }
        if source.fate == Fate::Left {
            self.done.skipped += 1;
            return Ok(());
        }
        if source.fate == Fate::Gone {
            source.returns += 1;
        }
        self.copy(file, &memory, source, &lock)
    }

    /// Brings the note of a file in step with it; false if the file has no note any more.
    fn follow(
        &mut self,
        file: &File<'_>,
        memory: &MemoryFile,
        source: &mut Source,
        lock: &crate::fs::lock::Lock,
    ) -> Result<bool, Error> {
        let Some(path) = self.notes.find(source.note) else {
            return Ok(false);
        };
        let stored = self.notes.read(path)?;
        let note = stored.note();
        if note.state == State::Forgotten {
            source.fate = Fate::Forgotten;
            self.done.skipped += 1;
            return Ok(true);
        }
        if note.machine_id != self.request.machine_id {
            return Ok(false);
        }
        // A process that was killed may have written the note and not its row.
        let written = fingerprint_of(memory, &source.project);
        if ![&source.hash, &written].contains(&&fingerprint(&note)) {
            source.fate = Fate::Left;
            self.done.skipped += 1;
            return Ok(true);
        }
        self.bring_in_step(file, memory, source, stored, lock)?;
        Ok(true)
    }

    /// Writes into a note what a file says, if it does not say so yet.
    fn bring_in_step(
        &mut self,
        file: &File<'_>,
        memory: &MemoryFile,
        source: &mut Source,
        stored: Stored,
        lock: &crate::fs::lock::Lock,
    ) -> Result<(), Error> {
        let mut stored = stored;
        if says(&stored.note(), memory) || self.journal.forgotten_at(&memory.body)?.is_some() {
            self.done.skipped += 1;
        } else {
            let time = self.time_of(file);
            stored = self.notes.update(lock, stored.path, |note| {
                note.title.clone_from(&memory.title);
                note.body.clone_from(&memory.body);
                note.tags.clone_from(&memory.tags);
                note.note_type = memory.note_type;
                note.updated_at = timestamp(time);
            })?;
            self.done.updated += 1;
            self.count_masked(memory);
        }
        copied(source, &stored);
        Ok(())
    }

    /// Finds the note of a file that has none, or makes it.
    fn copy(
        &mut self,
        file: &File<'_>,
        memory: &MemoryFile,
        source: &mut Source,
        lock: &crate::fs::lock::Lock,
    ) -> Result<(), Error> {
        let machine_id = self.request.machine_id;
        let own = own_note_id(machine_id, &file.folder.slug, &file.stem, source.returns);
        // The note of a file that is there again is another one than that of the one that went.
        let ids = [(source.returns == 0).then_some(source.id), Some(own)];
        source.fate = Fate::Forgotten;
        source.note = source.id;
        if self.journal.forgotten_at(&memory.body)?.is_some() {
            self.done.skipped += 1;
            return Ok(());
        }
        for id in ids.into_iter().flatten() {
            let Some(path) = self.notes.find(id) else {
                return self.create(id, file, memory, source, lock);
            };
            let stored = self.notes.read(path)?;
            let note = stored.note();
            source.note = id;
            if note.state == State::Forgotten {
                self.done.skipped += 1;
                return Ok(());
            }
            let is_of_this_machine = note.machine_id == machine_id;
            if !is_of_this_machine && words_hash(&note.body) == words_hash(&memory.body) {
                elsewhere(source, id, memory);
                self.done.skipped += 1;
                return Ok(());
            }
            if !is_of_this_machine || self.journal.is_native_copy_elsewhere(&self.claude, id)? {
                continue;
            }
            // The Python version, which names a workspace, writes over its copies at every sync: what
            // stands there is nobody's but its own.
            let is_copy = note.source == Author::Import && note.workspace_id.is_some();
            if says(&note, memory) || is_copy {
                return self.bring_in_step(file, memory, source, stored, lock);
            }
            source.fate = Fate::Left;
            self.done.skipped += 1;
            return Ok(());
        }
        source.fate = Fate::Nothing;
        self.done.skipped += 1;
        self.problem(&file.path, "the ids of its note are taken");
        Ok(())
    }

    fn create(
        &mut self,
        id: NoteId,
        file: &File<'_>,
        memory: &MemoryFile,
        source: &mut Source,
        lock: &crate::fs::lock::Lock,
    ) -> Result<(), Error> {
        let project = self.project(file.folder).to_owned();
        // What Claude wrote for itself reaches all projects by a person's word only.
        if project == GLOBAL {
            source.fate = Fate::Nothing;
            self.done.skipped += 1;
            return Ok(());
        }
        if let Some(other) = self.note_with(&project, memory) {
            elsewhere(source, other, memory);
            self.done.skipped += 1;
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
            tags: memory.tags.clone(),
            ..Note::new(id, memory.note_type, self.request.now)
        };
        let stored = self.notes.create(lock, &note)?;
        if let Some(texts) = &mut self.texts {
            texts.insert((note.project, words_hash(&note.body)), id);
        }
        copied(source, &stored);
        self.done.imported += 1;
        self.count_masked(memory);
        Ok(())
    }

    /// Forgets the notes whose files are gone.
    fn let_go(&mut self) -> Result<(), Error> {
        for source in std::mem::take(&mut self.known).into_values() {
            if source.fate == Fate::Gone || self.unjudged.contains(&source.slug) {
                continue;
            }
            if source.fate == Fate::Copied && self.forget(&source)? {
                self.done.forgotten += 1;
                let gone = Source {
                    fate: Fate::Gone,
                    ..source
                };
                self.journal.keep_native_source(&self.claude, &gone)?;
            } else {
                self.journal.drop_native_source(&self.claude, source.id)?;
            }
        }
        Ok(())
    }

    /// Forgets a note if it still is what was imported here.
    fn forget(&mut self, source: &Source) -> Result<bool, Error> {
        let lock = self.notes.lock()?;
        let stored = self
            .notes
            .find(source.note)
            .map(|path| self.notes.read(path));
        let Some(Ok(stored)) = stored else {
            return Ok(false);
        };
        let note = stored.note();
        let is_as_imported = note.state != State::Forgotten
            && note.machine_id == self.request.machine_id
            && fingerprint(&note) == source.hash;
        if is_as_imported {
            self.notes.forget(&lock, stored.path, self.request.now)?;
        }
        Ok(is_as_imported)
    }

    /// Tells whether the other note that a file was found in still says the same.
    fn says_the_same(&self, source: &Source) -> bool {
        let stored = self
            .notes
            .find(source.note)
            .map(|path| self.notes.read(path));
        stored.is_some_and(|stored| {
            stored.is_ok_and(|stored| {
                let note = stored.file.note();
                note.state != State::Forgotten && words_hash(&note.body) == source.hash
            })
        })
    }

    /// The note of a project that travels and has the same text.
    fn note_with(&mut self, project: &str, memory: &MemoryFile) -> Option<NoteId> {
        if memory.body.is_empty() {
            return None;
        }
        let notes = self.notes;
        let texts = self.texts.get_or_insert_with(|| texts(notes));
        let key = (project.to_owned(), words_hash(&memory.body));
        texts.get(&key).copied()
    }

    fn project<'f>(&self, folder: &'f Folder) -> &'f str {
        let find = || Project::of(&folder.place, self.request.user_home).key;
        folder.project.get_or_init(find)
    }

    /// The folder that a name of the client's stands for: where the first session of which that is
    /// known began, else the one that is there and has such a name.
    fn place(&mut self, slug: &str, hash: &str, path: &Path) -> Result<Place, Error> {
        let seen = fs::symlink_metadata(path).map_or(0, |metadata| Stamp::of(&metadata).modified);
        if let Some(known) = self.places.remove(hash)
            // A guess is made again when there may be a new transcript.
            && (known.is_certain || known.seen == seen)
        {
            return Ok(known);
        }
        let (folder, is_certain) = place::find(slug, path);
        let place = Place {
            folder,
            is_certain,
            seen,
        };
        // A folder's name can hold a secret like any other text; then it is found anew each time.
        if redact(&place.folder).findings.is_empty() {
            self.journal.keep_native_place(&self.claude, hash, &place)?;
        }
        Ok(place)
    }

    /// When a file last changed; a time of the future would put its note before all others for ever.
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

    fn problem(&mut self, path: &Path, reason: &str) {
        let text = |text: &str| redact(&one_line(text)).text.into_owned();
        self.done.problems.push(Problem {
            path: text(&path.to_string_lossy()),
            reason: text(reason),
        });
    }
}

/// The files of a project's memory, sorted by name.
fn files(folder: &DirEntry, memory: &Path) -> io::Result<Vec<(String, DirEntry)>> {
    if !folder.file_type()?.is_dir() {
        return Err(io::Error::other("not a folder"));
    }
    if !fs::symlink_metadata(memory)?.is_dir() {
        return Err(io::Error::other(
            "a link or a file in place of a folder; not followed",
        ));
    }
    let entries = entries(memory)?.ok_or_else(|| io::Error::other("too many files"))?;
    let named = entries.into_iter().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let stem = name.strip_suffix(".md")?;
        // What begins with a dot is what an editor keeps beside a file.
        let is_memory = !name.eq_ignore_ascii_case(LIST) && !name.starts_with('.');
        is_memory.then(|| (stem.to_owned(), entry))
    });
    Ok(named.collect())
}

/// What lies in a folder, sorted by name; none if that is too much.
fn entries(folder: &Path) -> io::Result<Option<Vec<DirEntry>>> {
    let entries: Vec<DirEntry> = fs::read_dir(folder)?
        .take(MAX_ENTRIES + 1)
        .collect::<io::Result<_>>()?;
    if entries.len() > MAX_ENTRIES {
        return Ok(None);
    }
    let mut named: Vec<(OsString, DirEntry)> = entries
        .into_iter()
        .map(|entry| (entry.file_name(), entry))
        .collect();
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Some(named.into_iter().map(|(_, entry)| entry).collect()))
}

/// Reads a file; none if it is no memory.
fn read(file: &File<'_>) -> io::Result<(Option<MemoryFile>, Stamp)> {
    let too_long = || io::Error::other(format!("over {} KiB", MAX_LENGTH / 1024));
    if usize::try_from(file.stamp.size).is_ok_and(|size| size > MAX_LENGTH) {
        return Err(too_long());
    }
    let (bytes, stamp, is_whole) =
        file::read_head(&file.path, MAX_LENGTH).map_err(|error| match error.raw_os_error() {
            // What the system says of a link that it was told not to follow helps nobody.
            Some(_) if file.path.is_symlink() => io::Error::other("a link; not followed"),
            _ => error,
        })?;
    if !is_whole {
        return Err(too_long());
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok((MemoryFile::parse(&text, &file.stem), stamp))
}

/// Keeps that a note is the copy of a file.
fn copied(source: &mut Source, stored: &Stored) {
    let note = stored.note();
    source.fate = Fate::Copied;
    source.note = note.id;
    source.hash = fingerprint(&note);
    source.project = note.project;
    source.note_stamp = stored.stamp;
}

/// Keeps that another note says the same as a file.
fn elsewhere(source: &mut Source, note: NoteId, memory: &MemoryFile) {
    source.fate = Fate::Elsewhere;
    source.note = note;
    source.hash = words_hash(&memory.body);
}

/// The hash of what a person could change in a note to make it theirs.
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

/// The fingerprint of the copy of a file.
fn fingerprint_of(memory: &MemoryFile, project: &str) -> String {
    fingerprint(&Note {
        title: memory.title.clone(),
        body: memory.body.clone(),
        tags: memory.tags.clone(),
        project: project.to_owned(),
        ..Note::new(note_id("", ""), memory.note_type, DateTime::UNIX_EPOCH)
    })
}

/// Tells whether a note says what a file says, and nothing else.
fn says(note: &Note, memory: &MemoryFile) -> bool {
    fingerprint(note) == fingerprint_of(memory, &note.project)
}

/// The hash of the words of a text, whatever stands between them.
fn words_hash(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    text_hash(&words.join(" "))
}

/// The notes that travel, by project and text.
fn texts(notes: &Notes) -> HashMap<(String, String), NoteId> {
    let listing = notes.list();
    let portable = listing.notes.into_iter().map(|(path, _)| path);
    portable
        .filter(|path| path.scope == Scope::Portable)
        .filter_map(|path| {
            let note = notes.read(path).ok()?.file.into_note();
            let is_in_use = note.state != State::Forgotten;
            is_in_use.then(|| ((note.project, words_hash(&note.body)), path.id))
        })
        .collect()
}

#[cfg(test)]
mod tests;
