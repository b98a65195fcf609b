//! What the store has before an import: notes, texts and projects.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note, State},
};
use anamnesis_store::journal::Journal;

use super::Request;
use crate::{Error, backfill, context::Context};

/// The journal key for the projects that a person named for a program's projects, as JSON.
const NAMED: &str = "import_projects";

/// The notes of the store, as far as an import compares with them.
pub(super) struct KnownNotes {
    /// Whether each note is forgotten.
    ids: HashMap<NoteId, bool>,
    /// The notes in use by project and text.
    texts: HashMap<NoteId, NoteId>,
    /// The notes of this program by a hash of their id there, the latest one each.
    versions: HashMap<NoteId, NoteId>,
    /// The sessions that have a note of another origin.
    sessions: BTreeSet<String>,
    /// The keys of all projects.
    projects: BTreeSet<String>,
}

impl KnownNotes {
    /// Reads the notes of the store.
    pub(super) fn load(context: &Context, tool: &str) -> Self {
        let mut known = Self {
            ids: HashMap::new(),
            texts: HashMap::new(),
            versions: HashMap::new(),
            sessions: BTreeSet::new(),
            projects: BTreeSet::new(),
        };
        for (path, _) in context.notes.list().notes {
            known.ids.insert(path.id, false);
            let Ok(stored) = context.notes.read(path) else {
                continue;
            };
            let note = stored.file.into_note();
            if note.state == State::Forgotten {
                known.ids.insert(path.id, true);
            } else {
                known.add(&note, tool);
            }
        }
        known
    }

    /// Adds a note of the store.
    fn add(&mut self, note: &Note, tool: &str) {
        self.projects.insert(note.project.clone());
        let is_own = note.tool.as_deref() == Some(tool);
        if is_own {
            self.add_version(note);
        } else {
            self.texts.insert(text_key(note), note.id);
        }
        if let Some(session) = note.session.clone().filter(|_| !is_own) {
            self.sessions.insert(session);
        }
    }

    /// Adds a note of this program that later ones may replace.
    pub(super) fn add_version(&mut self, note: &Note) {
        self.texts.insert(text_key(note), note.id);
        if let Some(id) = &note.tool_id {
            self.versions.insert(NoteId::made_of(id), note.id);
        }
    }

    /// Returns whether a note with this id is forgotten; `None` if there is none.
    pub(super) fn is_forgotten(&self, id: NoteId) -> Option<bool> {
        self.ids.get(&id).copied()
    }

    /// Returns the note of the same project with the same text.
    pub(super) fn same_text(&self, note: &Note) -> Option<NoteId> {
        self.texts.get(&text_key(note)).copied()
    }

    /// Returns the latest note that was imported for this id.
    pub(super) fn version(&self, note: &Note) -> Option<NoteId> {
        let id = NoteId::made_of(note.tool_id.as_ref()?);
        self.versions.get(&id).copied()
    }

    /// Returns whether a session has a note that this program did not write.
    pub(super) fn has_session(&self, session: &str) -> bool {
        self.sessions.contains(session)
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
        if let Some(folder) = folder.filter(|folder| folder.is_absolute()) {
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
