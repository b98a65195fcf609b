//! Collects what the store has before an import: notes, texts and projects.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::PathBuf,
};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note, State},
};
use anamnesis_store::{journal::Journal, project::Step};

use super::Request;
use crate::{Error, backfill, context::Context};

/// The journal key for the projects that a person named for a program's projects, as JSON.
const NAMED: &str = "import_projects";

/// The notes of the store and of the source, as far as an import compares them.
#[derive(Default)]
pub(super) struct KnownNotes {
    /// The notes of the store, and whether each is forgotten.
    pub(super) stored: HashMap<NoteId, bool>,
    /// The notes of the source.
    pub(super) in_source: HashSet<NoteId>,
    /// The notes of the source by the ids of their records, which links name.
    pub(super) records: HashMap<String, NoteId>,
    /// The sessions that have a note of another origin.
    pub(super) sessions: HashSet<String>,
    /// The notes in use by project and text.
    texts: HashMap<NoteId, NoteId>,
    /// The latest note of this program by its id there, with the time of its last change.
    versions: HashMap<String, (String, NoteId)>,
    /// The keys of all projects.
    projects: BTreeSet<String>,
    /// The machines that wrote notes, and this one.
    pub(super) machines: BTreeSet<String>,
}

impl KnownNotes {
    /// Reads the notes of the store.
    pub(super) fn load(context: &Context, tool: &str) -> Self {
        let mut known = Self::default();
        known.machines.insert(context.machine_id());
        for (path, _) in context.notes.list().notes {
            let note = context.notes.read(path).map(|it| it.file.into_note()).ok();
            let is_forgotten = (note.as_ref()).is_some_and(|note| note.state == State::Forgotten);
            known.stored.insert(path.id, is_forgotten);
            if let Some(note) = note.filter(|_| !is_forgotten) {
                known.add(note, tool);
            }
        }
        known
    }

    /// Adds a note of the store.
    fn add(&mut self, note: Note, tool: &str) {
        self.projects.insert(note.project.clone());
        self.machines.insert(note.machine_id.clone());
        self.texts.insert(text_key(&note), note.id);
        if note.tool.as_deref() != Some(tool) {
            self.sessions.extend(note.session);
        } else if let Some(id) = note.tool_id {
            let version = (note.updated_at, note.id);
            let latest = self.versions.entry(id).or_insert_with(|| version.clone());
            if *latest < version {
                *latest = version;
            }
        }
    }

    /// Adds a new note of the source that later ones may replace. Returns which one it replaces.
    pub(super) fn add_version(&mut self, note: &Note) -> Option<NoteId> {
        self.texts.insert(text_key(note), note.id);
        let version = (note.updated_at.clone(), note.id);
        let earlier = self.versions.insert(note.tool_id.clone()?, version);
        earlier.map(|(_, id)| id)
    }

    /// Returns the note of the same project with the same text.
    pub(super) fn same_text(&self, note: &Note) -> Option<NoteId> {
        self.texts.get(&text_key(note)).copied()
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

/// The reason for a record that a source in a project's folder has of another one.
pub(super) const ELSEWHERE: &str = "of another project than the folder it is in";

/// Finds the project key for a program's name of a project.
pub(super) struct ProjectKeys {
    /// The key for records without a project; `None` if only a person can name it.
    default: Option<String>,
    /// The key that a person named for all records whose project is unknown.
    for_unknown: Option<String>,
    /// The keys that a person named, now or in an earlier import.
    named: BTreeMap<String, String>,
    /// The project of the folder that the source is in, the only one that it writes to unless a person
    /// names another.
    within: Option<String>,
    /// The answers so far.
    found: HashMap<Option<String>, Result<String, &'static str>>,
}

impl ProjectKeys {
    /// Loads the answers of earlier imports, and adds those of this one.
    ///
    /// `within` is the project of the folder that the source is in.
    pub(super) fn load(
        context: &Context,
        journal: Option<&Journal>,
        request: &Request,
        within: Option<String>,
    ) -> Self {
        let kept = journal.and_then(|journal| journal.json(NAMED).ok().flatten());
        let mut named: BTreeMap<String, String> = kept.unwrap_or_default();
        named.extend(request.named_projects.clone());
        let here = || Some(context.project(None).key).filter(|key| key != GLOBAL);
        Self {
            default: request.project.clone().or(within.clone()).or_else(here),
            for_unknown: request.project.clone().or(within.clone()),
            named,
            within,
            found: HashMap::new(),
        }
    }

    /// Keeps the answers for later imports.
    pub(super) fn keep(&self, journal: &Journal) -> Result<(), Error> {
        Ok(journal.set_json(NAMED, &self.named)?)
    }

    /// Returns whether the source is in a project's folder.
    pub(super) fn is_within(&self) -> bool {
        self.within.is_some()
    }

    /// Returns whether the source may write to a project.
    pub(super) fn allows(&self, key: &str) -> bool {
        let is_for_it = |allowed: &String| allowed == key;
        self.within.as_ref().is_none_or(is_for_it)
            || self.for_unknown.as_ref().is_some_and(is_for_it)
            || self.named.values().any(|named| named == key)
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
            Ok(key) if !self.allows(&key) => Err(ELSEWHERE),
            key => key,
        };
        self.found.insert(name, key.clone());
        key
    }

    /// In this order: what a person named for it, the folder that the source knows, the one project of
    /// the store whose key ends with the name, the name of a folder that is not here, what a person
    /// named for all unknown ones.
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
        let mut by_folder = None;
        let folder = hints.folder(context, name).map(PathBuf::from);
        // On Windows a folder of another machine may have no drive.
        if let Some(folder) = folder.filter(|folder| folder.has_root()) {
            if context.exclusions().excludes(&folder) {
                return Err("in an excluded folder");
            }
            let project = context.project_of(&folder);
            // Only a person may make an imported note apply to all projects.
            by_folder = Some(project.key).filter(|key| key != GLOBAL);
            // All that is known of a folder of another machine is its name.
            let is_known = project.step != Step::Folder || folder.exists();
            if let Some(key) = by_folder.take_if(|_| is_known) {
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
            _ => by_folder
                .or_else(|| self.for_unknown.clone())
                .ok_or(UNKNOWN_PROJECT),
        }
    }
}

/// A source's hints about the folders of its projects.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// The folders by project.
    pub(super) folders: BTreeMap<String, String>,
    /// The client's session ids by project.
    pub(super) sessions: BTreeMap<String, Vec<String>>,
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
