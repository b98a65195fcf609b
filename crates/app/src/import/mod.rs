//! Imports the memories of other programs as notes.
//!
//! A source turns its files into `Record`s, one at a time. Everything else is here, once for all:
//! a record is made safe like any input for a note, gets its project, and is new, the same as a note,
//! or skipped for a reason. The first reading only counts. The second one, with `--apply`, writes
//! what was new as one change. The source is never written.
//!
//! The id of a note is derived from the program, the project there and the text. A second import,
//! of a copy or an export too, finds it, whatever a person did to the note.

mod basic_memory;
mod chats;
mod claude_mem;
mod engram;
mod folder;
mod json;
mod known;
mod mem0;
mod memories;
mod own;
mod record;
mod rules;
mod server_memory;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

pub(crate) use anamnesis_note::note::UNREVIEWED_TAG;
use anamnesis_note::{
    id::NoteId,
    link::{self, Link, Relation},
    merge::without_conflict_markers,
    note::{Kind, Note},
};
use anamnesis_store::{
    foreign_database::{self, ForeignDatabase, UNUSABLE},
    index::Index,
    journal::Journal,
    notes::NotePath,
    scratch,
};
use anamnesis_sync::NewNotes;
use anamnesis_text::clean::one_line;
use serde_json::Value;
use ulid::Ulid;

use self::{
    known::{Hints, KnownNotes, NoteFlags, ProjectKeys},
    record::Record,
};
use crate::{
    Error,
    batch::check_person,
    context::{Context, PATIENCE},
    interrupts::without_interrupts,
    pause::Off,
    sync,
};

/// How many notes are recorded in the journal at once.
const CHUNK: usize = 10_000;

/// How many examples a report has.
const EXAMPLES: usize = 5;

/// The reason for a record that another one of the source repeats.
const REPEATED: &str = "said before in the source";

/// A record is handed over.
type Take<'a> = dyn FnMut(Record) -> Result<(), Error> + 'a;

/// A row of a source is handed over, or why it cannot be used.
type TakeRow<'a> = dyn FnMut(&str, Result<Value, &'static str>) -> Result<(), Error> + 'a;

/// The hints of a source that knows no project.
const NO_HINTS: fn(&Input) -> Result<Hints, Error> = |_| Ok(Hints::default());

/// A program whose memory can be imported.
struct Format {
    name: &'static str,
    /// Where its memory is, below the user's home.
    places: &'static [&'static str],
    /// Whether it has a memory in a project's folder.
    is_in: fn(&Path) -> bool,
    /// Returns what it knows of its projects.
    hints: fn(&Input) -> Result<Hints, Error>,
    /// Hands over every record.
    read: fn(&Input, &mut Take<'_>) -> Result<(), Error>,
}

/// The programs, in the order of the documentation.
const FORMATS: &[Format] = &[
    claude_mem::FORMAT,
    server_memory::FORMAT,
    basic_memory::FORMAT,
    memories::FORMAT,
    engram::FORMAT,
    mem0::MEM0,
    mem0::OPENMEMORY,
    chats::CLAUDE_AI,
    chats::CHATGPT,
    rules::RULES,
    rules::CODEX,
    own::FORMAT,
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

/// What to import, and how.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Where it is; the known places of the program if `None`.
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

impl Source {
    /// The program's name.
    pub fn tool(&self) -> &'static str {
        self.format.name
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.input.path
    }

    /// Calls `take` with every record.
    fn each(&self, take: &mut Take<'_>) -> Result<(), Error> {
        (self.format.read)(&self.input, take)?;
        match &self.input.database {
            Some(database) => Ok(database.check()?),
            None => Ok(()),
        }
    }
}

impl From<scratch::Error> for Error {
    fn from(error: scratch::Error) -> Self {
        Self::caused_by(error)
    }
}

impl From<foreign_database::Error> for Error {
    fn from(error: foreign_database::Error) -> Self {
        Self::caused_by(error)
    }
}

/// Opens a source: the one at the path, else every one in a known place. `name` may be `auto`.
pub fn open(context: &Context, name: &str, request: &Request) -> Result<Vec<Source>, Error> {
    let formats: Vec<&'static Format> = match name {
        "auto" => FORMATS.iter().collect(),
        name => FORMATS
            .iter()
            .filter(|format| format.name == name)
            .collect(),
    };
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
        let here = here.clone().filter(|folder| (format.is_in)(folder));
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
#[derive(Debug, Clone)]
pub struct Example {
    /// Its kind.
    pub kind: Kind,
    /// Its project.
    pub project: String,
    /// Its title.
    pub title: String,
}

/// The result of an import: `found` is the sum of `new`, `same` and all skipped.
#[derive(Debug, Default)]
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
    pub unknown: BTreeMap<String, usize>,
    /// Some of the new notes.
    pub examples: Vec<Example>,
    /// Whether the new notes wait for approval before they are injected.
    pub is_held: bool,
    /// The change that `undo` reverts.
    pub change: Option<Ulid>,
}

/// Opens the store. A dry run creates neither folders nor the journal. Only a person may write.
pub fn open_store(context: &Context, apply: bool) -> Result<Option<Journal>, Error> {
    check_person(context, apply)?;
    if context.config.is_unclear {
        return Err(Error::failed(Off::Settings.reason()).hint(Off::Settings.hint()));
    }
    if apply {
        return Ok(Some(Journal::open(&context.home, PATIENCE)?));
    }
    context.records()
}

/// Reads a source, and writes its new notes if that is asked for. `progress` is called with the
/// number of records that were read.
pub fn run(
    context: &Context,
    journal: Option<&Journal>,
    source: &Source,
    request: &Request,
    mut progress: impl FnMut(usize),
) -> Result<ImportReport, Error> {
    let tool = source.tool();
    let mut import = Import {
        context,
        journal,
        tool,
        known: KnownNotes::load(context, tool)?,
        keys: ProjectKeys::load(context, journal, request),
        hints: (source.format.hints)(&source.input)?,
        report: ImportReport {
            is_held: context
                .config
                .review
                .holds(anamnesis_note::note::State::Active),
            ..ImportReport::default()
        },
    };
    source.each(&mut |record| {
        progress(import.report.found);
        import.count(record)
    })?;
    if let Some(journal) = journal.filter(|_| request.apply) {
        import.keys.keep(journal)?;
        if import.report.new > 0 {
            import.report.change = import.write(journal, source, progress)?;
        }
    }
    Ok(import.report)
}

/// A running import.
struct Import<'a> {
    context: &'a Context,
    journal: Option<&'a Journal>,
    tool: &'static str,
    known: KnownNotes,
    keys: ProjectKeys,
    hints: Hints,
    report: ImportReport,
}

/// What becomes of a record.
enum Verdict {
    New,
    Same,
    Skipped(&'static str),
}

impl Import<'_> {
    /// Returns the note of a record.
    fn note(&mut self, record: Record) -> Result<Note, &'static str> {
        if let Some(reason) = record.skip {
            return Err(reason);
        }
        if let Some(exact) = record.exact {
            return Ok(exact.0);
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

    /// Judges and counts a record.
    fn count(&mut self, record: Record) -> Result<(), Error> {
        self.report.found += 1;
        let project = record.project.clone();
        let (id, is_versioned) = (record.id.clone(), record.is_versioned);
        let note = self.note(record);
        let verdict = match &note {
            Ok(note) => self.judge(note, &id, is_versioned)?,
            Err(reason) => Verdict::Skipped(reason),
        };
        let report = &mut self.report;
        match (verdict, note) {
            (Verdict::New, Ok(note)) => {
                report.new += 1;
                *report.projects.entry(note.project.clone()).or_default() += 1;
                if report.examples.len() < EXAMPLES {
                    report.examples.push(Example {
                        kind: note.kind(),
                        project: note.project,
                        title: note.title,
                    });
                }
            }
            (Verdict::Skipped(reason), _) => {
                *report.skipped.entry(reason).or_default() += 1;
                if reason == known::UNKNOWN_PROJECT {
                    let name = one_line(&project.unwrap_or_default());
                    *report.unknown.entry(name).or_default() += 1;
                }
            }
            _ => report.same += 1,
        }
        Ok(())
    }

    fn judge(&self, note: &Note, id: &str, is_versioned: bool) -> Result<Verdict, Error> {
        let same = self.known.same_text(note)?;
        if self.hints.has_links {
            self.known.set_record(id, same.unwrap_or(note.id))?;
        }
        let flags = self.known.flags(note.id)?;
        if flags.is_in_source {
            return Ok(Verdict::Skipped(REPEATED));
        }
        let verdict = self.judge_first(note, flags, same)?;
        let is_new = matches!(verdict, Verdict::New);
        if is_new && is_versioned {
            self.known.add_version(note)?;
        }
        let flags = NoteFlags {
            is_in_source: true,
            is_new,
            ..flags
        };
        self.known.set_flags(note.id, flags)?;
        Ok(verdict)
    }

    /// Judges a note that the source did not have so far. `same` is one with its text.
    fn judge_first(
        &self,
        note: &Note,
        flags: NoteFlags,
        same: Option<NoteId>,
    ) -> Result<Verdict, Error> {
        if flags.is_forgotten {
            return Ok(Verdict::Skipped("forgotten by you"));
        }
        if flags.is_stored {
            return Ok(Verdict::Same);
        }
        if let Some(same) = same {
            let is_repeated = self.known.flags(same)?.is_in_source;
            return Ok(if is_repeated {
                Verdict::Skipped(REPEATED)
            } else {
                Verdict::Same
            });
        }
        let forgotten = self.journal.map(|journal| journal.forgotten_at(&note.body));
        if forgotten.and_then(Result::ok).flatten().is_some() {
            return Ok(Verdict::Skipped("forgotten by you"));
        }
        let session = note
            .session
            .as_deref()
            .filter(|_| note.kind() == Kind::Experience);
        match session {
            Some(session) if self.known.has_session(session)? => {
                Ok(Verdict::Skipped("of a session that has a note"))
            }
            _ => Ok(Verdict::New),
        }
    }

    /// Reads the source again and writes the new notes. If that fails, no note of it stays.
    fn write(
        &mut self,
        journal: &Journal,
        source: &Source,
        mut progress: impl FnMut(usize),
    ) -> Result<Option<Ulid>, Error> {
        let context = self.context;
        sync::commit_all(context)?;
        drop(context.index()?);
        let interrupts = without_interrupts();
        let mut new = sync::new_notes(context)?;
        if let Err(error) = self.write_notes(source, &mut new, &mut progress) {
            new.discard()?;
            return Err(error);
        }
        let (written, change) = sync::commit_new(context, "import", new);
        drop(interrupts);
        let mut index = Index::open_to_write(&context.home, &context.notes, PATIENCE)?;
        index.record_new::<Error>(&context.notes, written.folder_times, |take| {
            let mut slice = Vec::with_capacity(CHUNK);
            written.each(|path| {
                slice.push(path.id);
                if slice.len() == CHUNK {
                    journal.know(slice.drain(..))?;
                }
                take(path)
            })?;
            Ok(journal.know(slice)?)
        })?;
        index.take_up_usage(&context.home)?;
        index.checkpoint()?;
        journal.checkpoint()?;
        Ok(change)
    }

    fn write_notes(
        &mut self,
        source: &Source,
        new: &mut NewNotes<'_>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<(), Error> {
        source.each(&mut |record| {
            let links = record.links.clone();
            let exact = record.exact.as_ref().map(|exact| exact.1.clone());
            let Ok(mut note) = self.note(record) else {
                return Ok(());
            };
            let flags = self.known.flags(note.id)?;
            if !flags.is_new {
                return Ok(());
            }
            let flags = NoteFlags {
                is_new: false,
                ..flags
            };
            self.known.set_flags(note.id, flags)?;
            self.link(&mut note, &links)?;
            let text = exact.unwrap_or_else(|| note.render());
            let text = without_conflict_markers(&text).into_owned();
            let path = NotePath::from_note(&note);
            new.add(path, text.into_bytes()).map_err(not_imported)?;
            progress(new.count());
            Ok(())
        })?;
        new.write().map_err(not_imported)?;
        if new.count() == self.report.new {
            return Ok(());
        }
        Err(
            Error::failed("the source was changed while it was read; nothing was imported")
                .hint("run it again"),
        )
    }

    /// Adds the links of a record, and what it replaces.
    fn link(&self, note: &mut Note, links: &[(String, String, Option<f64>)]) -> Result<(), Error> {
        let replaced = self.known.replaced(note.id)?;
        note.supersedes.extend(replaced.map(|id| id.to_string()));
        for (word, other, weight) in links {
            let target = self.known.of_record(other)?;
            let Some(target) = target.filter(|target| *target != note.id) else {
                continue;
            };
            let relation = match link::given(word) {
                // A note of somebody else that says the same must not be replaced.
                Ok(Relation::Supersedes) if !self.known.flags(target)?.is_in_source => {
                    Relation::RelatedTo
                }
                relation => relation.unwrap_or(Relation::RelatedTo),
            };
            Link {
                relation,
                target,
                weight: weight.filter(|weight| *weight > 0.0 && *weight <= 1.0),
            }
            .declare(note);
        }
        Ok(())
    }
}

/// Returns the error of new notes that could not be written.
fn not_imported(error: anamnesis_sync::Error) -> Error {
    match error {
        anamnesis_sync::Error::Taken => Error::failed(format!("{error}; nothing was imported"))
            .because(error)
            .hint("run it again"),
        error => error.into(),
    }
}

/// Returns the row of a database as a value.
///
/// # Errors
/// Why one of its texts cannot be used.
fn row_value(row: foreign_database::Row) -> Result<Value, &'static str> {
    match row.get(UNUSABLE).and_then(Value::as_str) {
        Some(reason) if reason.starts_with("not") => Err("not UTF-8"),
        Some(_) => Err("with a text over 4 MiB"),
        None => Ok(Value::Object(row)),
    }
}

/// Returns the database of a source, which has this table.
fn sqlite_of<'a>(input: &'a Input, tool: &str, table: &str) -> Result<&'a ForeignDatabase, Error> {
    let path = one_line(&input.path.to_string_lossy());
    let no_one = |why: &str| Error::failed(format!("{path} is no database of {tool}: {why}"));
    let database = input.database.as_ref();
    let database = database.ok_or_else(|| no_one("it is no SQLite file"))?;
    if database.columns(table)?.is_empty() {
        return Err(no_one(&format!("it has no table `{table}`")));
    }
    Ok(database)
}

#[cfg(test)]
mod tests;
