//! What the store has before an import: notes, texts and projects.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note, State},
};
use anamnesis_store::{journal::Journal, notes::NotePath, scratch::Scratch};

use super::Request;
use crate::{Error, backfill, context::Context};

/// The journal key for the projects that a person named for a program's projects, as JSON.
const NAMED: &str = "import_projects";

/// Hashes of the notes of the store and of the source, as far as an import compares them.
///
/// A source may have millions of records, so they are in a temporary file.
pub(super) struct KnownNotes {
    scratch: Scratch,
    /// The keys of all projects.
    projects: BTreeSet<String>,
}

/// What each note is, see [`NoteFlags`].
const NOTES: &str = "note";

/// The notes in use by project and text.
const TEXTS: &str = "text";

/// The notes of this program by their id there, the latest one each.
const VERSIONS: &str = "version";

/// The sessions that have a note of another origin.
const SESSIONS: &str = "session";

/// The notes of the source by the ids of their records, of those that links name.
const RECORDS: &str = "record";

/// The notes that new ones replace.
const REPLACED: &str = "replaced";

/// What is known of a note.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a bit of the table's value"
)]
pub(super) struct NoteFlags {
    /// Whether the store has it.
    pub(super) is_stored: bool,
    /// Whether it is forgotten.
    pub(super) is_forgotten: bool,
    /// Whether the source has it.
    pub(super) is_in_source: bool,
    /// Whether it is to be written.
    pub(super) is_new: bool,
}

impl KnownNotes {
    /// Reads the notes of the store.
    pub(super) fn load(context: &Context, tool: &str) -> Result<Self, Error> {
        let tables = [NOTES, TEXTS, VERSIONS, SESSIONS, RECORDS, REPLACED];
        let mut known = Self {
            scratch: Scratch::new(&tables)?,
            projects: BTreeSet::new(),
        };
        let mut failed = Ok(());
        context.notes.each(&mut |path| {
            if failed.is_ok() {
                failed = known.add(context, path, tool);
            }
        });
        failed.map(|()| known)
    }

    /// Adds a note of the store.
    fn add(&mut self, context: &Context, path: NotePath, tool: &str) -> Result<(), Error> {
        let note = context.notes.read(path).map(|it| it.file.into_note()).ok();
        let flags = NoteFlags {
            is_stored: true,
            is_forgotten: note
                .as_ref()
                .is_some_and(|note| note.state == State::Forgotten),
            ..NoteFlags::default()
        };
        self.set_flags(path.id, flags)?;
        let Some(note) = note.filter(|_| !flags.is_forgotten) else {
            return Ok(());
        };
        self.projects.insert(note.project.clone());
        self.set_text(&note)?;
        if note.tool.as_deref() != Some(tool) {
            return match &note.session {
                Some(session) => self.set(SESSIONS, NoteId::made_of(session), note.id),
                None => Ok(()),
            };
        }
        let latest = self.version(&note)?;
        let latest = latest.and_then(|id| context.notes.read(context.notes.find(id)?).ok());
        let is_later = |other: &Note| (&other.updated_at, other.id) < (&note.updated_at, note.id);
        if latest.is_none_or(|latest| is_later(latest.file.note())) {
            self.set_version(&note)?;
        }
        Ok(())
    }

    fn set(&self, table: &str, key: NoteId, value: NoteId) -> Result<(), Error> {
        Ok(self
            .scratch
            .set(table, &key.to_bytes(), &value.to_bytes())?)
    }

    fn get(&self, table: &str, key: NoteId) -> Result<Option<NoteId>, Error> {
        let value = self.scratch.get(table, &key.to_bytes())?;
        let value = value.and_then(|value| value.try_into().ok());
        Ok(value.map(NoteId::from_bytes))
    }

    /// Returns what is known of a note.
    pub(super) fn flags(&self, id: NoteId) -> Result<NoteFlags, Error> {
        let value = self.scratch.get(NOTES, &id.to_bytes())?;
        let bits = value.and_then(|value| value.first().copied()).unwrap_or(0);
        let is_set = |place: u8| bits & (1 << place) != 0;
        Ok(NoteFlags {
            is_stored: is_set(0),
            is_forgotten: is_set(1),
            is_in_source: is_set(2),
            is_new: is_set(3),
        })
    }

    /// Sets what is known of a note.
    pub(super) fn set_flags(&self, id: NoteId, flags: NoteFlags) -> Result<(), Error> {
        let bits = u8::from(flags.is_stored)
            | u8::from(flags.is_forgotten) << 1
            | u8::from(flags.is_in_source) << 2
            | u8::from(flags.is_new) << 3;
        Ok(self.scratch.set(NOTES, &id.to_bytes(), &[bits])?)
    }

    fn set_text(&self, note: &Note) -> Result<(), Error> {
        self.set(TEXTS, text_key(note), note.id)
    }

    fn set_version(&self, note: &Note) -> Result<(), Error> {
        match &note.tool_id {
            Some(id) => self.set(VERSIONS, NoteId::made_of(id), note.id),
            None => Ok(()),
        }
    }

    /// Adds a new note of the source that later ones may replace, and records which one it replaces.
    pub(super) fn add_version(&self, note: &Note) -> Result<(), Error> {
        if let Some(earlier) = self.version(note)? {
            self.set(REPLACED, note.id, earlier)?;
        }
        self.set_text(note)?;
        self.set_version(note)
    }

    /// Returns the note of the same project with the same text.
    pub(super) fn same_text(&self, note: &Note) -> Result<Option<NoteId>, Error> {
        self.get(TEXTS, text_key(note))
    }

    /// Returns the latest note that was imported for this id.
    fn version(&self, note: &Note) -> Result<Option<NoteId>, Error> {
        match &note.tool_id {
            Some(id) => self.get(VERSIONS, NoteId::made_of(id)),
            None => Ok(None),
        }
    }

    /// Returns the note that a new one replaces.
    pub(super) fn replaced(&self, id: NoteId) -> Result<Option<NoteId>, Error> {
        self.get(REPLACED, id)
    }

    /// Records the note of a record that links may name.
    pub(super) fn set_record(&self, id: &str, note: NoteId) -> Result<(), Error> {
        self.set(RECORDS, NoteId::made_of(id), note)
    }

    /// Returns the note of a record.
    pub(super) fn of_record(&self, id: &str) -> Result<Option<NoteId>, Error> {
        self.get(RECORDS, NoteId::made_of(id))
    }

    /// Returns whether a session has a note that this program did not write.
    pub(super) fn has_session(&self, session: &str) -> Result<bool, Error> {
        let note = self.get(SESSIONS, NoteId::made_of(session))?;
        Ok(note.is_some())
    }
}

/// Hashes a project and the words of a text.
fn text_key(note: &Note) -> NoteId {
    let text = if note.body.trim().is_empty() {
        &note.title
    } else {
        &note.body
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    NoteId::made_of(&format!("{}\n{}", note.project, words.join(" ")))
}

/// The reason for a record whose project a person has to name.
pub(super) const UNKNOWN_PROJECT: &str = "of an unknown project";

/// Finds the project key for a program's name of a project.
pub(super) struct ProjectKeys {
    /// The key for records without a project; `None` if only a person can name it.
    default: Option<String>,
    /// The key that a person named for all records whose project is unknown.
    for_unknown: Option<String>,
    /// The keys that a person named, now or in an earlier import.
    named: BTreeMap<String, String>,
    /// The answers so far.
    found: HashMap<Option<String>, Result<String, &'static str>>,
}

impl ProjectKeys {
    /// Loads the answers of earlier imports, and adds those of this one.
    pub(super) fn load(context: &Context, journal: Option<&Journal>, request: &Request) -> Self {
        let kept = journal.and_then(|journal| journal.meta(NAMED).ok().flatten());
        let mut named: BTreeMap<String, String> =
            serde_json::from_str(&kept.unwrap_or_default()).unwrap_or_default();
        named.extend(request.named_projects.clone());
        let here = || Some(context.project(None).key).filter(|key| key != GLOBAL);
        Self {
            default: request.project.clone().or_else(here),
            for_unknown: request.project.clone(),
            named,
            found: HashMap::new(),
        }
    }

    /// Keeps the answers for later imports.
    pub(super) fn keep(&self, journal: &Journal) -> Result<(), Error> {
        let text = serde_json::to_string(&self.named).unwrap_or_default();
        Ok(journal.set_meta(NAMED, &text)?)
    }

    /// Returns the key of a project.
    ///
    /// # Errors
    /// Why its records are skipped.
    pub(super) fn key(
        &mut self,
        context: &Context,
        known: &KnownNotes,
        hints: &Hints,
        name: Option<&str>,
    ) -> Result<String, &'static str> {
        let name = name.map(str::to_owned);
        if let Some(found) = self.found.get(&name) {
            return found.clone();
        }
        let key = match &name {
            Some(name) => self.key_of(context, known, hints, name),
            None => self
                .default
                .clone()
                .ok_or("without a project (--project KEY)"),
        };
        let paused = &context.config.paused;
        let key = match key {
            Ok(key) if paused.everywhere || paused.names(&key) => Err("of a paused project"),
            key => key,
        };
        self.found.insert(name, key.clone());
        key
    }

    /// In this order: what a person named for it, the folder that the source knows, the one project of
    /// the store whose key ends with the name, what a person named for all unknown ones.
    fn key_of(
        &self,
        context: &Context,
        known: &KnownNotes,
        hints: &Hints,
        name: &str,
    ) -> Result<String, &'static str> {
        if let Some(key) = self.named.get(name) {
            return Ok(key.clone());
        }
        let folder = hints.folder(context, name).map(PathBuf::from);
        // On Windows a folder of another machine may have no drive.
        if let Some(folder) = folder.filter(|folder| folder.has_root()) {
            if context.exclusions().excludes(&folder) {
                return Err("in an excluded folder");
            }
            let key = context.project_of(&folder).key;
            // Only a person may make an imported note apply to all projects.
            if key != GLOBAL {
                return Ok(key);
            }
        }
        let is_named = |key: &&String| *key == name || key.rsplit('/').next() == Some(name);
        let here = context.project(None).key;
        let mut keys = known
            .projects
            .iter()
            .filter(|key| *key != GLOBAL)
            .filter(is_named);
        match (keys.next(), keys.next()) {
            (Some(key), None) => Ok(key.clone()),
            (None, _) if is_named(&&here) && here != GLOBAL => Ok(here),
            _ => self.for_unknown.clone().ok_or(UNKNOWN_PROJECT),
        }
    }
}

/// What a source knows of the folders of its projects.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// The folders by project.
    pub(super) folders: BTreeMap<String, String>,
    /// The client's session ids by project.
    pub(super) sessions: BTreeMap<String, Vec<String>>,
    /// Whether its records have links.
    pub(super) has_links: bool,
}

impl Hints {
    /// How many sessions of a project are looked up in the client's transcripts.
    const MAX_SESSIONS: usize = 100;

    /// Adds a session of the client to a project.
    pub(super) fn add_session(&mut self, project: &str, session: &str) {
        let sessions = self.sessions.entry(project.to_owned()).or_default();
        if sessions.len() < Self::MAX_SESSIONS {
            sessions.push(session.to_owned());
        }
    }

    /// Returns the folder of a project: where one of its sessions began, else as the source has it.
    pub(super) fn folder(&self, context: &Context, project: &str) -> Option<String> {
        let sessions = self.sessions.get(project).into_iter().flatten();
        let mut folders = sessions.filter_map(|id| backfill::session_folder(context, id));
        folders
            .next()
            .or_else(|| self.folders.get(project).cloned())
    }
}
