//! Imports the memories of other programs as notes.
//!
//! A `Format` turns the files of a program into `SourceRecord`s. Everything else is here, once for all: a
//! record is made safe like any input for a note, gets its project, and is new, the same as a note, or
//! skipped for a reason. With `--apply`, the new notes are written as one change. The source is never
//! written.
//!
//! The id of a note is derived from the program, the project there and the text. A second import,
//! of a copy or an export too, finds it, whatever a person did to the note.

mod basic_memory;
mod chats;
mod claude_mem;
mod conversation;
mod engram;
mod folder;
mod gzip;
mod json;
mod known;
mod mem0;
mod memories;
mod own;
mod record;
mod rules;
mod server_memory;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

pub(crate) use anamnesis_note::note::UNREVIEWED_TAG;
use anamnesis_note::{
    id::NoteId,
    link::{self, Link, Relation},
    merge::without_conflict_markers,
    note::{Kind, Note, Source as NoteSource},
    project_key::is_shared,
};
use anamnesis_store::{
    foreign_database::{self, ForeignDatabase},
    fs::lock::{self, Subject},
    index::Index,
    journal::Journal,
    notes::NotePath,
    project::Step,
};
use anamnesis_text::clean::one_line;
use serde::Serialize;
use ulid::Ulid;

use self::{
    known::{Hints, KnownNotes, ProjectKeys},
    record::{SourceLink, SourceRecord},
};
use crate::{
    Error,
    context::{Context, TIMEOUT},
    interrupts::without_interrupts,
    sync,
};

/// How many examples a report has.
const EXAMPLES: usize = 5;

/// The reason for a record that another one of the source repeats.
const REPEATED: &str = "said before in the source";

/// The reason for a record whose note a person forgot.
const FORGOTTEN: &str = "forgotten by you";

/// A program whose memory can be imported.
struct Format {
    name: &'static str,
    /// Where its memory is below the user's home.
    places: &'static [&'static str],
    /// Returns whether it has a memory in a project's folder.
    detect: fn(&Path) -> bool,
    /// Reads every record.
    read: fn(&Input) -> Result<Memory, Error>,
}

impl Format {
    const fn new(
        name: &'static str,
        places: &'static [&'static str],
        read: fn(&Input) -> Result<Memory, Error>,
    ) -> Self {
        Self {
            name,
            places,
            detect: |_| false,
            read,
        }
    }
}

/// The contents of a source.
#[derive(Default)]
struct Memory {
    records: Vec<SourceRecord>,
    /// Its hints about its projects.
    hints: Hints,
}

impl From<Vec<SourceRecord>> for Memory {
    fn from(records: Vec<SourceRecord>) -> Self {
        Self {
            records,
            hints: Hints::default(),
        }
    }
}

/// The programs, in the order of the documentation.
const FORMATS: &[Format] = &[
    Format::new(
        "claude-mem",
        &[".claude-mem/claude-mem.db"],
        claude_mem::read,
    ),
    Format::new("server-memory", &[], server_memory::read),
    Format::new(
        "basic-memory",
        &[".basic-memory/config.json"],
        basic_memory::read,
    ),
    Format::new("memories", &[".memories/memories.db"], memories::read),
    Format {
        detect: engram::detect,
        ..Format::new("engram", &[".engram/engram.db"], engram::read)
    },
    Format::new("mem0", &[".mem0/history.db"], mem0::read),
    Format::new("openmemory", &[], mem0::read_openmemory),
    Format::new("claude-ai", &[], chats::read),
    Format::new("chatgpt", &[], chats::read),
    Format {
        detect: rules::detect,
        ..Format::new("rules", &[], rules::read)
    },
    Format::new("codex", &[".codex/memories_1.sqlite"], rules::read_codex),
    Format::new("anamnesis", &[], own::read),
];

/// Checks the name of a source: one of [`source_names`], `auto` or `claude`.
pub fn source_name(text: &str) -> Result<String, Error> {
    let mut names = vec!["claude", "auto"];
    names.extend(source_names());
    if names.contains(&text) {
        return Ok(text.to_owned());
    }
    let names = names.join(", ");
    Err(Error::usage(format!("expected one of {names}")))
}

/// The names that `--from` accepts, except `auto` and `claude`.
pub fn source_names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

/// The request for an import.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The path of the source; the known places of the program if `None`.
    pub path: Option<PathBuf>,
    /// The project of records without a known one. If `None`, those without any go to the current
    /// folder's, and those of an unknown one are skipped.
    pub project: Option<String>,
    /// The project keys for names of the source.
    pub named_projects: BTreeMap<String, String>,
    /// Whether conversations are imported, too.
    pub with_conversations: bool,
    /// Whether the notes are written.
    pub apply: bool,
}

/// A source that was opened.
pub struct Source {
    format: &'static Format,
    input: Input,
}

/// The files of a source.
struct Input {
    path: PathBuf,
    /// The file, if it is a database.
    database: Option<ForeignDatabase>,
    with_conversations: bool,
}

impl Input {
    /// Returns the database of a program, which has this table.
    fn table(&self, tool: &str, table: &str) -> Result<&ForeignDatabase, Error> {
        let path = one_line(&self.path.to_string_lossy());
        let no_one =
            |why: &str| Error::failed(format!("{path} is not a database of {tool}: {why}"));
        let database = self.database.as_ref();
        let database = database.ok_or_else(|| no_one("it is no SQLite file"))?;
        if database.columns(table)?.is_empty() {
            return Err(no_one(&format!("it has no table `{table}`")));
        }
        Ok(database)
    }
}

/// Refuses a database of a later version than the latest known one.
fn known_version(tool: &str, version: i64, latest: i64) -> Result<(), Error> {
    if version <= latest {
        return Ok(());
    }
    Err(Error::failed(format!(
        "the database has schema {version} of {tool}, but only schemas up to {latest} are known; \
         nothing was imported"
    ))
    .hint("update anamnesis, or import an export of the program"))
}

impl Source {
    /// The program's name.
    pub fn tool(&self) -> &'static str {
        self.format.name
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.input.path
    }

    fn read(&self) -> Result<Memory, Error> {
        let memory = (self.format.read)(&self.input)?;
        if let Some(database) = &self.input.database {
            database.check()?;
        }
        Ok(memory)
    }
}

impl From<foreign_database::Error> for Error {
    fn from(error: foreign_database::Error) -> Self {
        Self::caused_by(error)
    }
}

/// Opens a source: the one at the path, else every one in a known place. `name` may be `auto`.
pub fn open(context: &Context, name: &str, request: &Request) -> Result<Vec<Source>, Error> {
    let formats: Vec<&Format> = FORMATS
        .iter()
        .filter(|format| name == "auto" || format.name == name)
        .collect();
    if let Some(path) = &request.path {
        let [format] = formats[..] else {
            return Err(
                Error::usage("a PATH needs the name of its program").hint(format!(
                    "anamnesis import --from NAME PATH   (NAME: {})",
                    names()
                )),
            );
        };
        return Ok(vec![open_one(context, format, path, request)?]);
    }
    let home = context.environment.user_home.as_deref();
    let mut sources = Vec::new();
    let here = Context::current_folder().filter(|folder| Some(folder.as_path()) != home);
    for format in &formats {
        let places = format.places.iter();
        let places = places.filter_map(|place| context.environment.below_home(place));
        let here = here.clone().filter(|folder| (format.detect)(folder));
        for path in places.filter(|path| path.exists()).chain(here) {
            sources.push(open_one(context, format, &path, request)?);
        }
    }
    if sources.is_empty() && name != "auto" {
        let places = formats.iter().flat_map(|format| format.places);
        let places = places.filter_map(|place| context.environment.below_home(place));
        let places: Vec<String> = places.map(|place| context.shown(&place)).collect();
        let message = match places.join(", ") {
            places if places.is_empty() => format!("{name} has no usual place"),
            places => format!("nothing of {name} in {places}"),
        };
        return Err(Error::failed(message).hint(format!("anamnesis import --from {name} PATH")));
    }
    Ok(sources)
}

/// Returns the program's database in its own folder, such as `~/.codex`.
fn database_in(format: &Format, folder: &Path) -> Option<PathBuf> {
    let names = (format.places.iter()).filter_map(|place| Path::new(place).file_name());
    names
        .map(|name| folder.join(name))
        .find(|path| ForeignDatabase::is_one(path))
}

fn names() -> String {
    source_names().collect::<Vec<_>>().join(", ")
}

fn open_one(
    context: &Context,
    format: &'static Format,
    path: &Path,
    request: &Request,
) -> Result<Source, Error> {
    let path = std::path::absolute(path).map_err(|error| json::unreadable(path, &error))?;
    if !path.exists() {
        return Err(json::unreadable(&path, &"no such file or folder"));
    }
    // Every file in it would be a memory.
    let user_home = context.environment.user_home.as_deref();
    let user_home = user_home.and_then(|home| dunce::canonicalize(home).ok());
    let real = dunce::canonicalize(&path).ok();
    if path.is_dir() && (real == user_home || real.is_some_and(|real| real.parent().is_none())) {
        return Err(Error::failed("your home folder is no memory of a program")
            .hint("name the folder that has the memory"));
    }
    let path = database_in(format, &path).unwrap_or(path);
    let database = ForeignDatabase::is_one(&path).then(|| ForeignDatabase::open(&path));
    Ok(Source {
        format,
        input: Input {
            database: database.transpose()?,
            path,
            with_conversations: request.with_conversations,
        },
    })
}

/// A note that an import adds.
#[derive(Debug, Clone, Serialize)]
pub struct Example {
    /// Its kind.
    pub kind: Kind,
    /// Its project.
    pub project: String,
    /// Its title.
    pub title: String,
}

/// The results of an import by source.
#[derive(Debug, Serialize)]
pub struct ImportedSources {
    /// The sources.
    pub sources: Vec<ImportedSource>,
}

/// The result of an import from one source.
#[derive(Debug, Serialize)]
pub struct ImportedSource {
    source: &'static str,
    path: String,
    #[serde(flatten)]
    report: ImportReport,
}

impl ImportedSource {
    /// Names the source of a report.
    pub fn new(source: &Source, report: ImportReport) -> Self {
        Self {
            source: source.tool(),
            path: source.path().to_string_lossy().into_owned(),
            report,
        }
    }
}

/// The result of an import: `found` is the sum of `new`, `same` and all skipped.
#[derive(Debug, Default, Serialize)]
pub struct ImportReport {
    /// How many records the source has.
    pub found: usize,
    /// How many notes are new.
    pub new: usize,
    /// How many are in the store already.
    pub same: usize,
    /// How many are skipped, by reason.
    pub skipped: BTreeMap<&'static str, usize>,
    /// How many notes are new, by project.
    pub projects: BTreeMap<String, usize>,
    /// The source's projects without a key, with the number of records.
    #[serde(rename = "unknown_projects")]
    pub unknown: BTreeMap<String, usize>,
    /// Some of the new notes.
    pub examples: Vec<Example>,
    /// Whether the new notes wait for approval before they are injected.
    #[serde(rename = "held")]
    pub is_held: bool,
    /// The change that `undo` reverts.
    pub change: Option<Ulid>,
}

/// Reads a source, and writes its new notes if that is asked for. `progress` is called with the
/// number of records that were judged.
pub fn run(
    context: &Context,
    journal: Option<&Journal>,
    source: &Source,
    request: &Request,
    mut progress: impl FnMut(usize),
) -> Result<ImportReport, Error> {
    let memory = source.read()?;
    let within = project_around(context, source.path());
    let mut import = Import {
        context,
        journal,
        tool: source.tool(),
        known: KnownNotes::load(context, source.tool()),
        hints: memory.hints,
        new: Vec::new(),
        report: ImportReport {
            is_held: within.is_some()
                || context
                    .config
                    .review
                    .holds(anamnesis_note::note::State::Active),
            ..ImportReport::default()
        },
        keys: ProjectKeys::load(context, journal, request, within),
    };
    for record in memory.records {
        progress(import.report.found);
        import.take(record);
    }
    if let Some(journal) = journal.filter(|_| request.apply) {
        import.keys.keep(journal)?;
        if import.report.new > 0 {
            import.report.change = import.write(journal)?;
        }
    }
    Ok(import.report)
}

/// Returns the project in whose folder a source is, as whatever its repository has is.
fn project_around(context: &Context, source: &Path) -> Option<String> {
    let folder = if source.is_dir() {
        source
    } else {
        source.parent()?
    };
    let project = context.project_of(folder);
    let root = match &project.step {
        Step::Marker(marker) => marker.parent()?.parent()?,
        Step::Remote(root) | Step::Repository(root) => root,
        Step::Folder | Step::Nothing | Step::Named => return None,
    };
    let home = context.environment.user_home.as_deref()?;
    let home = dunce::canonicalize(home).ok()?;
    // The settings of a home may be in git, too.
    (!home.starts_with(root)).then_some(project.key)
}

/// A running import.
struct Import<'a> {
    context: &'a Context,
    journal: Option<&'a Journal>,
    tool: &'static str,
    known: KnownNotes,
    keys: ProjectKeys,
    hints: Hints,
    new: Vec<NewNote>,
    report: ImportReport,
}

/// A note to write.
struct NewNote {
    note: Note,
    links: Vec<SourceLink>,
    /// Its file, if it is one of ours.
    file: Option<String>,
}

/// The verdict on a record.
enum Verdict {
    New,
    Same,
    Skipped(&'static str),
}

impl Import<'_> {
    /// Judges and counts a record.
    fn take(&mut self, mut record: SourceRecord) {
        self.report.found += 1;
        let links = std::mem::take(&mut record.links);
        let (id, is_versioned) = (record.id.clone(), record.is_versioned);
        let project = record.project.clone();
        let exact = record.exact.clone();
        let mut note = match self.note(record) {
            Ok(note) => note,
            Err(reason) => {
                if reason == known::UNKNOWN_PROJECT {
                    let name = one_line(&project.unwrap_or_default());
                    *self.report.unknown.entry(name).or_default() += 1;
                }
                return self.skip(reason);
            }
        };
        let same = self.known.same_text(&note);
        self.known.records.insert(id, same.unwrap_or(note.id));
        if self.known.in_source.contains(&note.id) {
            return self.skip(REPEATED);
        }
        let verdict = self.judge(&note, same);
        self.known.in_source.insert(note.id);
        let report = &mut self.report;
        match verdict {
            Verdict::Skipped(reason) => self.skip(reason),
            Verdict::Same => report.same += 1,
            Verdict::New => {
                report.new += 1;
                *report.projects.entry(note.project.clone()).or_default() += 1;
                if report.examples.len() < EXAMPLES {
                    report.examples.push(Example {
                        kind: note.kind(),
                        project: note.project.clone(),
                        title: note.title.clone(),
                    });
                }
                if is_versioned {
                    let replaced = self.known.add_version(&note);
                    note.supersedes.extend(replaced.map(|id| id.to_string()));
                }
                let exact = exact.filter(|exact| exact.0 == note);
                let file = exact.map(|exact| exact.1);
                self.new.push(NewNote { note, links, file });
            }
        }
    }

    fn skip(&mut self, reason: &'static str) {
        *self.report.skipped.entry(reason).or_default() += 1;
    }

    /// Returns the note of a record.
    fn note(&mut self, record: SourceRecord) -> Result<Note, &'static str> {
        if let Some(reason) = record.skip {
            return Err(reason);
        }
        if let Some(exact) = record.exact {
            return self.own_note(exact.0);
        }
        let name = record.project.as_deref();
        let key = self
            .keys
            .key(self.context, &self.known, &self.hints, name)?;
        let context = self.context;
        let now = context.environment.now;
        let mut note = record.note(self.tool, &key, context.machine_id(), now)?;
        if self.report.is_held {
            record::hold(&mut note);
        }
        Ok(note)
    }

    /// Returns a note of an export. It is its owner's only if a machine of this store wrote it, and for
    /// one project.
    fn own_note(&self, mut note: Note) -> Result<Note, &'static str> {
        if !self.keys.allows(&note.project) {
            return Err(known::ELSEWHERE);
        }
        let is_foreign = !self.known.machines.contains(&note.machine_id);
        if is_foreign || is_shared(&note.project) || self.keys.is_within() {
            note.source = NoteSource::Import;
            record::hold(&mut note);
        }
        Ok(note)
    }

    /// Judges a note that the source did not have so far. `same` is one with its text.
    fn judge(&self, note: &Note, same: Option<NoteId>) -> Verdict {
        match self.known.stored.get(&note.id) {
            Some(true) => return Verdict::Skipped(FORGOTTEN),
            Some(false) => return Verdict::Same,
            None => {}
        }
        if let Some(same) = same {
            return if self.known.in_source.contains(&same) {
                Verdict::Skipped(REPEATED)
            } else {
                Verdict::Same
            };
        }
        let forgotten = self.journal.map(|journal| journal.forgotten_at(&note.body));
        if forgotten.and_then(Result::ok).flatten().is_some() {
            return Verdict::Skipped(FORGOTTEN);
        }
        let has_note = |session: &String| self.known.sessions.contains(session);
        if note.kind() == Kind::Experience && note.session.as_ref().is_some_and(has_note) {
            return Verdict::Skipped("of a session that has a note");
        }
        Verdict::New
    }

    /// Writes the new notes as one change. If that fails, none of them stays.
    fn write(&mut self, journal: &Journal) -> Result<Option<Ulid>, Error> {
        let Context { home, notes, .. } = self.context;
        sync::commit_all(self.context)?;
        drop(self.context.index()?);
        let new = std::mem::take(&mut self.new);
        let files: Vec<(NotePath, Vec<u8>)> = new.into_iter().map(|it| self.file(it)).collect();
        let ids: BTreeSet<NoteId> = files.iter().map(|(path, _)| path.id).collect();
        let interrupts = without_interrupts();
        // Nobody else commits the folder meanwhile, so that one undo removes all of them.
        let held = lock::acquire(home, Subject::Sync, TIMEOUT)
            .map_err(Error::caused_by)?
            .ok_or(anamnesis_sync::Error::Busy)?;
        let lock = notes.lock()?;
        let before = notes.folder_times();
        let paths: Vec<NotePath> = files.iter().map(|(path, _)| *path).collect();
        let failed = match notes.place_new(&lock, files) {
            Ok(placed) if placed.len() == paths.len() => None,
            Ok(placed) => {
                let placed: Vec<NotePath> = placed.into_iter().map(|(path, _)| path).collect();
                let error = Error::failed(
                    "a note with the id of a new one was written meanwhile; nothing was imported",
                );
                Some((placed, error.hint("run it again")))
            }
            Err(error) => Some((paths, Error::from(error))),
        };
        if let Some((written, error)) = failed {
            for path in written {
                notes.remove(&lock, path)?;
            }
            return Err(error);
        }
        let indexed = self.index(&ids, before);
        drop(lock);
        let change = sync::commit(self.context, "import", ids.iter().copied());
        drop((held, interrupts));
        indexed?;
        journal.know(ids)?;
        journal.checkpoint()?;
        Ok(change)
    }

    fn index(&self, ids: &BTreeSet<NoteId>, before: [i64; 6]) -> Result<(), Error> {
        let Context { home, notes, .. } = self.context;
        let mut index = Index::open_to_write(home, notes, TIMEOUT)?;
        index.record_all(notes, ids, before)?;
        index.refresh_usage(home)?;
        Ok(index.checkpoint()?)
    }

    /// Returns the file of a new note.
    fn file(&self, new: NewNote) -> (NotePath, Vec<u8>) {
        let NewNote {
            mut note,
            links,
            file,
        } = new;
        self.link(&mut note, &links);
        let text = file.unwrap_or_else(|| note.render());
        let text = without_conflict_markers(&text).into_owned();
        (NotePath::from_note(&note), text.into_bytes())
    }

    fn link(&self, note: &mut Note, links: &[SourceLink]) {
        for (word, other, weight) in links {
            let target = self.known.records.get(other);
            let Some(target) = target.filter(|target| **target != note.id) else {
                continue;
            };
            let relation = match link::given(word) {
                // A note of somebody else that says the same must not be replaced.
                Ok(Relation::Supersedes) if !self.known.in_source.contains(target) => {
                    Relation::RelatedTo
                }
                relation => relation.unwrap_or(Relation::RelatedTo),
            };
            Link {
                relation,
                target: *target,
                weight: weight.filter(|weight| *weight > 0.0 && *weight <= 1.0),
            }
            .declare(note);
        }
    }
}

#[cfg(test)]
mod tests;
