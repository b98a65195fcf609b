//! The context of a command: the store, the settings, the project and who runs it.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anamnesis_note::{
    draft::{safe, safe_line},
    id::{IdPrefix, NoteId},
    note::{GLOBAL, Note, State},
};
use anamnesis_store::{
    fs::{home::Home, log},
    index::{self, ALWAYS_CHECKED, Entry, Index, Unresolvable},
    journal::{self, Journal, Session},
    notes::{Notes, Problem, Stored},
    project::{IdentifiedProject, Places, Project},
    settings::{config::Config, exclude::Exclusions},
};
use anamnesis_sync::Repository;
use anamnesis_text::{
    clean::{clean, one_line},
    redact::set_patterns,
};

use crate::{Error, environment::Environment, format, tool_caller::ToolCaller};

/// The lock timeout of a command. Waiting is better than asking a person to try again.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The largest store of which every file is checked for a summary.
const MAX_LISTED: usize = 2_000;

/// A store with its settings and the environment of this process.
#[derive(Debug, Clone)]
pub struct Context {
    /// The process's environment.
    pub environment: Environment,
    /// The store's folder.
    pub home: Home,
    /// The notes in the store.
    pub notes: Notes,
    /// The settings of this machine.
    pub config: Config,
    /// The model that calls tools, in a server.
    pub tool: Option<Arc<ToolCaller>>,
}

impl Context {
    /// Opens the store for a command and creates missing folders.
    pub fn open(environment: Environment) -> Result<Self, Error> {
        let context = Self::new(environment, TIMEOUT)?;
        context.home.create()?;
        Ok(context)
    }

    /// Refers to a store without creating anything. Fails if the path contains a broken link.
    pub fn new(environment: Environment, timeout: Duration) -> Result<Self, Error> {
        let context = Self::unchecked(environment, timeout)?;
        context.home.check_links().map_err(|error| {
            let hint = error.hint();
            Error::caused_by(error).hint(hint)
        })?;
        Ok(context)
    }

    /// Like [`Context::new`], but without the check for broken links, which `doctor` reports itself.
    pub fn unchecked(environment: Environment, timeout: Duration) -> Result<Self, Error> {
        let root = environment.store.clone().ok_or_else(|| {
            Error::failed("no home folder is known".to_owned()).hint("set HOME or ANAMNESIS_HOME")
        })?;
        let home = Home::new(root);
        Ok(Self {
            notes: Notes::new(home.clone(), timeout),
            config: Self::load_config(&home),
            home,
            environment,
            tool: None,
        })
    }

    /// Reads the settings. From then on, this process masks what the person's patterns match.
    pub(crate) fn load_config(home: &Home) -> Config {
        let config = Config::load(home);
        set_patterns(&config.redact.patterns);
        config
    }

    /// Sets a longer lock timeout for the notes.
    pub fn set_notes_timeout(&mut self, timeout: Duration) {
        self.notes = Notes::new(self.home.clone(), timeout);
    }

    /// Returns this machine's name as used in notes.
    pub fn machine_id(&self) -> String {
        let environment = &self.environment;
        let name = environment
            .machine_id
            .as_ref()
            .or(self.config.machine_id.as_ref())
            .or(environment.host_name.as_ref());
        let name = name
            .map(|name| one_line(name))
            .filter(|name| !name.is_empty());
        name.unwrap_or_else(|| "unknown".to_owned())
    }

    /// Returns who runs this command, for commits: `agent` or `person`.
    pub fn actor(&self) -> &'static str {
        if self.environment.is_agent {
            "agent"
        } else {
            "person"
        }
    }

    /// Refuses an agent an action that only a person may take: "change settings".
    pub fn check_person(&self, action: &str) -> Result<(), Error> {
        self.environment.check_person(action)
    }

    /// The current folder of this process.
    pub fn current_folder() -> Option<PathBuf> {
        std::env::current_dir().ok()
    }

    /// Formats a path for people: as they spelled it, with `~` for their home.
    pub fn shown(&self, path: &Path) -> String {
        let user_home = self.environment.user_home.as_deref();
        format::home_path(&self.home.as_named(path), user_home)
    }

    /// Makes a text safe to print: no terminal sequences; for an agent, nothing private and no
    /// secrets.
    pub fn printable(&self, text: &str) -> String {
        if self.environment.is_agent {
            safe(text)
        } else {
            clean(text).into_owned()
        }
    }

    /// The excluded folders.
    pub fn exclusions(&self) -> Exclusions {
        let user_home = self.environment.user_home.as_deref();
        Exclusions::new(&self.config.exclude, user_home)
            .except_only(&self.config.recording.only, user_home)
    }

    /// Returns the project of a folder.
    pub fn project_of(&self, folder: &Path) -> Project {
        self.known(self.journal_to_read().as_ref(), folder).project
    }

    /// Recognises the project of a folder with the help of the journal. Also returns what the
    /// journal does not know of it yet.
    pub fn known(&self, journal: Option<&Journal>, folder: &Path) -> IdentifiedProject {
        let user_home = self.environment.user_home.as_deref();
        let known = Places::new(journal).recognize(folder, user_home);
        known.unwrap_or_else(|error| {
            self.log(&error.to_string());
            IdentifiedProject {
                project: Project::find(folder, user_home),
                rows: Vec::new(),
            }
        })
    }

    /// Opens the repository of the notes, if there is one.
    pub fn repository(&self) -> Result<Option<Repository>, Error> {
        let now = self.environment.now;
        Ok(Repository::open(&self.home, &self.machine_id(), now)?)
    }

    /// Opens the journal read-only; `None` if there is none yet.
    pub fn records(&self) -> Result<Option<Journal>, Error> {
        Ok(Journal::open_to_read(&self.home, TIMEOUT)?)
    }

    /// Opens the journal read-only, if it is not locked.
    fn journal_to_read(&self) -> Option<Journal> {
        let journal = Journal::open_to_read(&self.home, Duration::from_millis(100));
        journal.ok().flatten()
    }

    /// Returns the project named on the command line, or else the current folder's.
    pub fn project(&self, named: Option<&str>) -> Project {
        match named {
            Some(key) => {
                let mut project = Project::named(key);
                let others = Places::new(self.journal_to_read().as_ref()).others(key);
                project.also = others.unwrap_or_default();
                project
            }
            None => self.project_of(&Self::current_folder().unwrap_or_default()),
        }
    }

    /// Returns the project for a new note: the current folder's, or for an agent that of its session,
    /// because its shell may be in any folder.
    pub fn project_to_write(&self) -> Project {
        let of_session = || {
            let journal = self.journal_to_read()?;
            Some(self.known_session(&journal).ok()??.project)
        };
        match &self.tool {
            Some(tool) => {
                let own = tool.project.clone();
                own.unwrap_or_else(|| Project::named(GLOBAL))
            }
            None => self.project(of_session().as_deref()),
        }
    }

    /// Returns the key for a new note of the named project, where `.` is the caller's, or else of its
    /// own.
    pub fn key_to_write(&self, named: Option<&str>) -> Result<String, Error> {
        let key = match named {
            None => self.project_to_write().key,
            Some(".") => self.own_project()?.key,
            Some(key) => safe_line(key),
        };
        if key.is_empty() {
            return Err(Error::usage("the project is empty"));
        }
        Ok(key)
    }

    /// The session that the agent names which runs this command.
    pub fn agent_session(&self) -> Option<&str> {
        let environment = &self.environment;
        environment
            .session
            .as_deref()
            .filter(|_| environment.is_agent)
    }

    /// Returns the agent's session from the journal. An agent can set any id for a command, so an id that
    /// the journal lacks does not count. The id of an ended session counts only for a server, which a client
    /// keeps when it clears a session.
    pub fn known_session(&self, journal: &Journal) -> Result<Option<Session>, journal::Error> {
        let Some(session) = self.agent_session() else {
            return Ok(None);
        };
        let known = journal.session(session)?;
        Ok(known.filter(|session| self.tool.is_some() || !session.is_completed()))
    }

    /// Opens the index and brings it up to date with the notes. In a store that can only be read, it is
    /// built in memory.
    pub fn index(&self) -> Result<Index, Error> {
        if self.tool.is_some() {
            // After a long wait for other writers it is used as it is.
            let opened = Index::in_step_or_as_is(&self.home, &self.notes, TIMEOUT);
            return Ok(self.or_in_memory(opened)?);
        }
        self.index_with(ALWAYS_CHECKED)
    }

    /// Like [`Context::index`], but in a large store an edit in place is seen later.
    pub fn index_as_listed(&self) -> Result<Index, Error> {
        self.index_with(MAX_LISTED)
    }

    /// Like [`Context::index`], for a person who searches for what they may have edited just now.
    pub fn index_to_search(&self) -> Result<Index, Error> {
        self.index_with(usize::MAX)
    }

    /// Like [`Context::index`]. Up to how many notes an edit in place is seen at once is given.
    pub fn index_with(&self, always: usize) -> Result<Index, Error> {
        let opened = Index::in_step_with(&self.home, &self.notes, always, TIMEOUT);
        Ok(self.or_in_memory(opened)?)
    }

    /// Builds the index in memory if it cannot be written, as in a store on a read-only disk.
    pub fn or_in_memory(&self, opened: Result<Index, index::Error>) -> Result<Index, index::Error> {
        match opened {
            Err(error) if error.is_read_only() => {
                let paths = self.notes.list().notes.into_iter().map(|(path, _)| path);
                Index::in_memory(paths.filter_map(|path| self.notes.read(path).ok()))
            }
            opened => opened,
        }
    }

    /// Opens the index within a time: up to date, or as it is while another process writes.
    pub fn index_within(&self, timeout: Duration) -> Result<Index, Error> {
        match Index::in_step_or_as_is(&self.home, &self.notes, timeout) {
            Err(index::Error::Locked) => self.index(),
            opened => Ok(self.or_in_memory(opened)?),
        }
    }

    /// Rebuilds the index if this failure shows that it is damaged. Returns whether there is a new one.
    pub fn rebuild_if_damaged(environment: &Environment, failure: &Error) -> bool {
        failure.is_index_damage()
            && Self::new(environment.clone(), TIMEOUT)
                .is_ok_and(|it| Index::rebuild(&it.home, &it.notes, TIMEOUT).is_ok())
    }

    /// Reads a note that the index knows; `None` if it cannot be read.
    pub fn indexed_note(&self, index: &Index, id: NoteId) -> Option<Note> {
        let path = index.get(id).ok()??.path;
        Some(self.notes.read(path).ok()?.note())
    }

    /// Indexes a note that was just written, if the index lock is free within `timeout`.
    pub fn add_to_index(&self, stored: &Stored, timeout: Duration) {
        let opened = Index::open_if_usable(&self.home, timeout);
        let recorded = opened.and_then(|mut index| index.record(stored));
        // Without an index, the next command builds one with this note.
        if !matches!(recorded, Err(index::Error::Missing)) {
            let what = format!("{} is not in the index yet", stored.path);
            self.log_error(&what, recorded);
        }
    }

    /// Opens the journal. On failure the error is logged and the command continues without it.
    pub fn journal(&self) -> Option<Journal> {
        self.journal_within(TIMEOUT)
    }

    /// Like [`Context::journal`], with a timeout.
    pub fn journal_within(&self, timeout: Duration) -> Option<Journal> {
        Journal::open(&self.home, timeout)
            .inspect_err(|error| self.log(&error.to_string()))
            .ok()
    }

    /// Writes a line to the log.
    pub fn log(&self, text: &str) {
        log::append(&self.home, self.environment.now, text);
    }

    /// Logs a failure that keeps nothing else from being done.
    pub fn log_error<T>(&self, what: &str, result: Result<T, impl fmt::Display>) {
        if let Err(error) = result {
            self.log(&format!("{what}: {error}"));
        }
    }

    /// Finds the one note that matches what was typed.
    ///
    /// # Errors
    /// The source is the [`Unresolvable`], unless the index cannot be read.
    pub fn resolve(index: &Index, typed: &str) -> Result<Entry, Error> {
        let explain = |cause: &Unresolvable| match cause {
            Unresolvable::NotAnId => not_an_id(typed),
            Unresolvable::Nothing(reference) => no_note(reference),
            Unresolvable::Unreadable(problem) => unreadable(problem),
            Unresolvable::Several(reference, found) => {
                let candidates = found
                    .iter()
                    .map(|entry| format!("  {}  {}", entry.id(), one_line(&entry.title)));
                several_notes(reference, &candidates.collect::<Vec<_>>())
            }
            Unresolvable::Index(error) => Error::failed(error.to_string()),
        };
        index.resolve(typed).map_err(|cause| match cause {
            Unresolvable::Index(error) => error.into(),
            cause => explain(&cause).because(cause),
        })
    }

    /// Resolves typed text to exactly one note that is not forgotten.
    pub fn present(index: &Index, typed: &str) -> Result<Entry, Error> {
        let entry = Self::resolve(index, typed)?;
        if entry.state != State::Forgotten {
            return Ok(entry);
        }
        let short = Self::short(index, entry.id());
        Err(Error::failed(format!("#{short} is forgotten"))
            .code("forgotten")
            .hint(format!("anamnesis forget --undo {short}")))
    }

    /// Returns the shortest unique id of a note.
    pub fn short(index: &Index, id: NoteId) -> String {
        index.short_id(id).unwrap_or_else(|_| id.to_string())
    }
}

/// The failure for a text that cannot be a note's id.
pub(crate) fn not_an_id(typed: &str) -> Error {
    let message = match &*one_line(typed) {
        "" => "no note's id was typed".to_owned(),
        typed => format!("\"{typed}\" is not a note's id"),
    };
    Error::usage(message)
        .hint("six or more characters of its beginning or end, as `list` shows them")
}

/// The failure for an id that no note has.
pub(crate) fn no_note(reference: &IdPrefix) -> Error {
    Error::failed(format!("no note #{}", reference.as_str())).hint("anamnesis list --everywhere")
}

/// The failure for an ambiguous id, with the candidates.
pub(crate) fn several_notes(reference: &IdPrefix, candidates: &[String]) -> Error {
    Error::usage(format!(
        "#{} matches {} notes:\n{}",
        reference.as_str(),
        candidates.len(),
        candidates.join("\n")
    ))
    .hint("type more of the id")
}

/// The failure for a note whose file exists but cannot be read.
fn unreadable(problem: &Problem) -> Error {
    let name = problem.path.rsplit('/').next().unwrap_or_default();
    let id = name.strip_suffix(".md").unwrap_or(name);
    Error::failed(format!("{}: {}", problem.path, one_line(&problem.reason)))
        .hint(format!("anamnesis edit {id} --raw"))
}
