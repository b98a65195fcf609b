//! Copies Claude Code's own memory into notes. The memory is never written.
//!
//! The client stores a project's memory in `projects/<slug>/memory/*.md` in its folder, or in one
//! folder that the person named. Each file becomes one note, which is updated with the file. When the
//! file is removed, the note stays and is marked until a person decides: the client's clean-up removes
//! files, too. After an edit by a person the note is no longer updated, and a note that a person
//! forgot is not copied again. The journal has the state of each file, so an unchanged file costs
//! one `stat` call. A transcript is read once to find a project's folder.
//!
//! A machine changes only notes with its own name. The note is written before its row: after a kill
//! in between, the next process finds the note by its text.

mod files;
mod place;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap, HashSet},
    fs::{self, DirEntry},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note, Scope, Source as Author, State, timestamp},
};
use anamnesis_session::claude_memory::{GONE_TAG, MemoryFile, is_list, note_id, own_note_id};
use anamnesis_text::{clean::one_line, hash::text_hash, redact::redact};
use chrono::{DateTime, Utc};

use crate::{
    fs::file::Stamp,
    journal::{self, Fate, Journal, ProjectFolder, Source},
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
    /// The reasons for skipping files, with their number. Files in [`Imported::problems`] are not
    /// counted here, and files in excluded or paused folders only here.
    pub skips: BTreeMap<&'static str, usize>,
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

    /// Returns why files were skipped, except unchanged ones, with the number of files or folders.
    pub fn skip_reasons(&self) -> BTreeMap<String, usize> {
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for problem in &self.problems {
            *reasons.entry(problem.reason.clone()).or_default() += 1;
        }
        let others = self.skips_of_changed();
        reasons.extend(others.map(|(reason, count)| (reason.to_owned(), count)));
        reasons
    }

    /// Returns [`Imported::skips`] without the unchanged files.
    pub fn skips_of_changed(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let skips = self.skips.iter().map(|(reason, count)| (*reason, *count));
        skips.filter(|(reason, _)| *reason != UNCHANGED)
    }
}

/// The reason for skipping a file that did not change.
const UNCHANGED: &str = "unchanged";

/// The reason for skipping a file that has no text, or whose front matter has no end yet.
const NO_TEXT: &str = "without text to copy";

/// The reason for skipping a file whose text another note has.
const ELSEWHERE: &str = "already in another note";

/// Returns why a file with this state is skipped.
const fn skip_reason(fate: Fate) -> &'static str {
    match fate {
        Fate::Copied | Fate::Orphaned | Fate::Gone => UNCHANGED,
        Fate::Elsewhere => ELSEWHERE,
        Fate::Left => "changed by you in the note",
        Fate::Forgotten => "forgotten by you",
        Fate::Nothing => NO_TEXT,
    }
}

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
    let claude = text_hash(&request.claude_folder.to_string_lossy());
    let mut import = Import {
        notes,
        journal,
        request,
        known: journal.native_sources(&claude)?,
        places: journal.native_places(&claude)?,
        claude,
        unjudged: HashSet::new(),
        elsewhere: HashMap::new(),
        texts: None,
        done: Imported::default(),
    };
    if request.paused.everywhere {
        return Ok(import.done);
    }
    if import.walk()? {
        import.mark_orphans()?;
    }
    if let Some(folder) = request.memory_folder {
        // A state of its own: if the person names another folder, these notes keep their files.
        import.claude = text_hash(&folder.to_string_lossy());
        import.known = journal.native_sources(&import.claude)?;
        if import.walk_memory_folder(folder)? {
            import.mark_orphans()?;
        }
    }
    Ok(import.done)
}

/// A running import.
struct Import<'a> {
    notes: &'a Notes,
    journal: &'a Journal,
    request: &'a Request<'a>,
    /// The hash of the client's folder.
    claude: String,
    /// The states of files that were not visited yet.
    known: HashMap<NoteId, Source>,
    /// The folders of the client's project names.
    places: HashMap<String, ProjectFolder>,
    /// Projects whose files were not read, so their notes stay.
    unjudged: HashSet<String>,
    /// The visited files whose text another note has, by that note.
    elsewhere: HashMap<NoteId, Source>,
    /// The notes by project and text, built at the first use.
    texts: Option<HashMap<(String, String), NoteId>>,
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
    /// Whether that folder is certain.
    is_certain: bool,
    project: OnceCell<String>,
}

/// A memory file.
struct File<'a> {
    folder: &'a Folder,
    stem: String,
    path: PathBuf,
    stamp: Stamp,
}

impl Import<'_> {
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
            let name = entry.file_name();
            let hash = text_hash(&name.to_string_lossy());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let memory = path.join("memory");
            let files = if is_folder {
                files::memory_files(&memory)
            } else {
                Err(io::Error::other("not a folder"))
            };
            match files {
                Ok(files) if files.is_empty() => {}
                Ok(files) => {
                    let slug = name.to_string_lossy().into_owned();
                    let place = self.place(&slug, &hash, &path)?;
                    let folder = Folder {
                        place: PathBuf::from(&place.folder),
                        is_certain: place.is_certain,
                        slug,
                        hash,
                        project: OnceCell::new(),
                    };
                    self.look_at_folder(folder, files)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.unjudged.insert(hash);
                    if is_folder {
                        self.problem(&memory, &error.to_string());
                    }
                }
            }
        }
        Ok(true)
    }

    /// Visits the files of the folder that the person named. Returns whether it was complete.
    fn walk_memory_folder(&mut self, memory: &Path) -> Result<bool, Error> {
        let files = match files::memory_files(memory) {
            Ok(files) => files,
            Err(error) => {
                // Claude Code creates it with the first file.
                if error.kind() != io::ErrorKind::NotFound {
                    self.problem(memory, &error.to_string());
                }
                return Ok(false);
            }
        };
        let slug = memory.to_string_lossy().into_owned();
        let folder = Folder {
            hash: text_hash(&slug),
            slug,
            place: memory.to_owned(),
            is_certain: true,
            project: OnceCell::new(),
        };
        self.look_at_folder(folder, files)?;
        Ok(true)
    }

    fn look_at_folder(
        &mut self,
        folder: Folder,
        files: Vec<(String, DirEntry)>,
    ) -> Result<(), Error> {
        let Request {
            exclusions, paused, ..
        } = self.request;
        // With exclusions, an unknown folder may be excluded.
        let is_excluded =
            exclusions.excludes(&folder.place) || (!folder.is_certain && !exclusions.is_empty());
        let is_paused = || !paused.projects.is_empty() && paused.names(self.project(&folder));
        let left_out = if is_excluded {
            Some("in excluded folders")
        } else {
            is_paused().then_some("of paused projects")
        };
        if let Some(reason) = left_out {
            *self.done.skips.entry(reason).or_default() += files.len();
            self.unjudged.insert(folder.hash);
            return Ok(());
        }
        for (stem, entry) in files {
            let id = note_id(&folder.slug, &stem);
            let known = self.known.remove(&id);
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
                fate: Fate::Nothing,
                note: id,
                hash: String::new(),
                project: String::new(),
                note_stamp: Stamp::default(),
                returns: 0,
            });
            let is_settled = match source.fate {
                Fate::Gone | Fate::Orphaned => false,
                Fate::Elsewhere => self.says_the_same(&source),
                _ => true,
            };
            if is_settled && source.stamp == file.stamp {
                self.skip(&file, source.fate);
            } else {
                match self.take(&file, &mut source) {
                    Ok(true) => self.journal.keep_native_source(&self.claude, &source)?,
                    // The list has no text of its own any more, so its note has no source.
                    Ok(false) => {
                        self.known.insert(id, source);
                        continue;
                    }
                    Err(Error::Notes(error)) if !matches!(error, notes::Error::Locked) => {
                        self.problem_with(&file, &error.to_string());
                    }
                    Err(error) => return Err(error),
                }
            }
            if source.fate == Fate::Elsewhere {
                self.elsewhere.insert(source.note, source);
            }
        }
        Ok(())
    }

    /// Imports a new or changed file. Returns false if a list has no text for its note any more.
    fn take(&mut self, file: &File<'_>, source: &mut Source) -> Result<bool, Error> {
        let memory = match files::read(&file.path, &file.stem) {
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
        let has_copy = matches!(source.fate, Fate::Copied | Fate::Orphaned);
        let Some(memory) = memory else {
            // A file may be invalid while it is written, so its note stays.
            self.skip(file, Fate::Nothing);
            return Ok(!(has_copy && is_list(&file.stem)));
        };
        let lock = self.notes.lock()?;
        if has_copy && self.follow(file, &memory, source, &lock)? {
            return Ok(true);
        }
        if source.fate == Fate::Left {
            self.skip(file, Fate::Left);
            return Ok(true);
        }
        if source.fate == Fate::Gone {
            source.returns += 1;
        }
        self.copy(file, &memory, source, &lock)?;
        Ok(true)
    }

    /// Updates the note of a file. Returns false if the file has no note any more.
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
            self.skip(file, source.fate);
            return Ok(true);
        }
        if note.machine_id != self.request.machine_id {
            return Ok(false);
        }
        // A killed process may have written the note but not its row.
        let written = fingerprint_of(memory, &source.project);
        if ![&source.hash, &written].contains(&&fingerprint(&note)) {
            source.fate = Fate::Left;
            self.skip(file, source.fate);
            return Ok(true);
        }
        self.bring_in_step(file, memory, source, stored, lock)?;
        Ok(true)
    }

    /// Updates a note's text from a file, if it differs.
    fn bring_in_step(
        &mut self,
        file: &File<'_>,
        memory: &MemoryFile,
        source: &mut Source,
        stored: Stored,
        lock: &crate::fs::lock::Lock,
    ) -> Result<(), Error> {
        let mut stored = stored;
        if says(&stored.note(), memory) {
            self.skip(file, Fate::Copied);
        } else if self.journal.forgotten_at(&memory.body)?.is_some() {
            self.skip(file, Fate::Forgotten);
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
            self.done.changed.push(stored.path.id);
            self.count_masked(memory);
        }
        copied(source, &stored);
        Ok(())
    }

    /// Finds or creates the note of a file without one.
    fn copy(
        &mut self,
        file: &File<'_>,
        memory: &MemoryFile,
        source: &mut Source,
        lock: &crate::fs::lock::Lock,
    ) -> Result<(), Error> {
        let machine_id = self.request.machine_id;
        let own = own_note_id(machine_id, &file.folder.slug, &file.stem, source.returns);
        // A file that came back gets a new note.
        let ids = [(source.returns == 0).then_some(source.id), Some(own)];
        source.fate = Fate::Forgotten;
        source.note = source.id;
        if self.journal.forgotten_at(&memory.body)?.is_some() {
            self.skip(file, source.fate);
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
                self.skip(file, source.fate);
                return Ok(());
            }
            let is_of_this_machine = note.machine_id == machine_id;
            if !is_of_this_machine && words_hash(&note.body) == words_hash(&memory.body) {
                elsewhere(source, id, memory);
                self.skip(file, source.fate);
                return Ok(());
            }
            if !is_of_this_machine || self.journal.is_native_copy_elsewhere(&self.claude, id)? {
                continue;
            }
            // The Python version, which sets a workspace, overwrites its copies at every sync, so
            // they are left alone.
            let is_copy = note.source == Author::Import && note.workspace_id.is_some();
            if says(&note, memory) || is_copy {
                return self.bring_in_step(file, memory, source, stored, lock);
            }
            source.fate = Fate::Left;
            self.skip(file, source.fate);
            return Ok(());
        }
        source.fate = Fate::Nothing;
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
        lock: &crate::fs::lock::Lock,
    ) -> Result<(), Error> {
        let project = self.project(file.folder).to_owned();
        // Only a person may make Claude's own memory apply to all projects.
        if project == GLOBAL {
            source.fate = Fate::Nothing;
            source.stamp = Stamp::default();
            self.problem_with(file, "belongs to no project");
            return Ok(());
        }
        if let Some(other) = self.note_with(&project, memory) {
            elsewhere(source, other, memory);
            self.skip(file, source.fate);
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
        self.done.changed.push(id);
        self.count_masked(memory);
        Ok(())
    }

    /// Marks the notes of removed files, for a person to decide about.
    fn mark_orphans(&mut self) -> Result<(), Error> {
        let mut elsewhere = std::mem::take(&mut self.elsewhere);
        for source in std::mem::take(&mut self.known).into_values() {
            let is_decided = matches!(source.fate, Fate::Gone | Fate::Orphaned);
            if is_decided || self.unjudged.contains(&source.slug) {
                continue;
            }
            let other = elsewhere.remove(&source.note);
            if source.fate == Fate::Copied
                && let Some(other) = other
            {
                // The file was renamed, so its note follows the other one.
                let renamed = Source {
                    id: other.id,
                    slug: other.slug,
                    stamp: other.stamp,
                    returns: other.returns,
                    ..source.clone()
                };
                self.journal.keep_native_source(&self.claude, &renamed)?;
            } else if source.fate == Fate::Copied
                && let Some(stored) = self.mark_orphan(&source)?
            {
                self.done.orphaned += 1;
                self.done.changed.push(stored.path.id);
                let mut orphan = source;
                copied(&mut orphan, &stored);
                orphan.fate = Fate::Orphaned;
                self.journal.keep_native_source(&self.claude, &orphan)?;
                continue;
            }
            self.journal.drop_native_source(&self.claude, source.id)?;
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
        // The text is as old as it was, so the time of change stays.
        let mark = |note: &mut Note| note.add_tags([GONE_TAG]);
        Ok(Some(self.notes.update(&lock, stored.path, mark)?))
    }

    /// Returns whether the other note with a file's text still has it.
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

    /// Returns the portable note of a project with the same text.
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
        let find = || Project::find(&folder.place, self.request.user_home).key;
        folder.project.get_or_init(find)
    }

    /// Returns the folder of a project name of the client: where the first known session began,
    /// otherwise the one existing folder with such a name.
    fn place(&mut self, slug: &str, hash: &str, path: &Path) -> Result<ProjectFolder, Error> {
        let seen = fs::symlink_metadata(path)
            .map_or(0, |metadata| Stamp::from_metadata(&metadata).modified);
        if let Some(known) = self.places.remove(hash)
            // A guess is repeated when there may be a new transcript.
            && (known.is_certain || known.seen == seen)
        {
            return Ok(known);
        }
        let (folder, is_certain) = place::find(slug, path);
        let place = ProjectFolder {
            folder,
            is_certain,
            seen,
        };
        // A folder's name may contain a credential. Then it is not stored and is searched each time.
        if redact(&place.folder).findings.is_empty() {
            self.journal.keep_native_place(&self.claude, hash, &place)?;
        }
        Ok(place)
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
    fn skip(&mut self, file: &File<'_>, fate: Fate) {
        if !(fate == Fate::Nothing && is_list(&file.stem)) {
            self.done.skipped += 1;
            *self.done.skips.entry(skip_reason(fate)).or_default() += 1;
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
    source.fate = Fate::Copied;
    source.note = note.id;
    source.hash = fingerprint(&note);
    source.project = note.project;
    source.note_stamp = stored.stamp;
}

/// Records that another note has the text of a file.
fn elsewhere(source: &mut Source, note: NoteId, memory: &MemoryFile) {
    source.fate = Fate::Elsewhere;
    source.note = note;
    source.hash = words_hash(&memory.body);
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
fn fingerprint_of(memory: &MemoryFile, project: &str) -> String {
    fingerprint(&Note {
        title: memory.title.clone(),
        body: memory.body.clone(),
        tags: memory.tags.clone(),
        project: project.to_owned(),
        ..Note::new(note_id("", ""), memory.note_type, DateTime::UNIX_EPOCH)
    })
}

/// Returns whether a note has exactly the text of a file.
fn says(note: &Note, memory: &MemoryFile) -> bool {
    fingerprint(note) == fingerprint_of(memory, &note.project)
}

/// Hashes the words of a text, ignoring white space.
fn words_hash(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    text_hash(&words.join(" "))
}

/// Returns the portable notes, by project and text.
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
