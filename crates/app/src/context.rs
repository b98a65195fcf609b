//! What every command works on: the store, the settings, the project, who asks.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_note::id::NoteId;
use anamnesis_store::{
    fs::{home::Home, log},
    index::{self, Entry, Index, Unresolvable},
    journal::Journal,
    notes::{Notes, Problem, Stored},
    project::{Known, Places, Project},
    settings::{config::Config, exclude::Exclusions},
    writing,
};
use anamnesis_text::clean::one_line;

use crate::{environment::Environment, failure::Failure, format};

/// How long a command waits for a lock. A person would rather wait than be told to try again.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The store and everything that goes with it.
#[derive(Debug, Clone)]
pub struct Context {
    /// The process's environment.
    pub environment: Environment,
    /// The folder of the store.
    pub home: Home,
    /// The notes in it.
    pub notes: Notes,
    /// The settings of this machine.
    pub config: Config,
}

impl Context {
    /// Opens the store of a command; its folders are made if they are missing.
    pub fn open(environment: Environment) -> Result<Self, Failure> {
        let context = Self::of(environment, PATIENCE)?;
        context
            .home
            .create()
            .map_err(|error| Failure::environment(error.to_string()).hint("anamnesis doctor"))?;
        Ok(context)
    }

    /// Names the store; nothing is touched.
    pub fn of(environment: Environment, patience: Duration) -> Result<Self, Failure> {
        let context = Self::unchecked(environment, patience)?;
        context
            .home
            .check_links()
            .map_err(|error| Failure::environment(error.to_string()).hint(error.hint()))?;
        Ok(context)
    }

    /// As [`Context::of`], but without the check for a broken link: `doctor` reports one itself.
    pub fn unchecked(environment: Environment, patience: Duration) -> Result<Self, Failure> {
        let root = environment.store.clone().ok_or_else(|| {
            Failure::environment("no home folder is known".to_owned())
                .hint("set HOME or ANAMNESIS_HOME")
        })?;
        let home = Home::new(root);
        let config = Config::load(&home);
        Ok(Self {
            notes: Notes::new(home.clone(), patience),
            config,
            home,
            environment,
        })
    }

    /// Waits longer for the notes from now on.
    pub fn be_patient(&mut self, patience: Duration) {
        self.notes = Notes::new(self.home.clone(), patience);
    }

    /// The name of this machine in notes.
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

    /// Who acts in a command, for commits.
    pub fn actor(&self) -> &'static str {
        if self.environment.is_agent {
            "agent"
        } else {
            "person"
        }
    }

    /// The folder that this process stands in.
    pub fn current_folder() -> Option<PathBuf> {
        std::env::current_dir().ok()
    }

    /// A path for people: as they gave it, with `~` for their home.
    pub fn shown(&self, path: &Path) -> String {
        let user_home = self.environment.user_home.as_deref();
        format::home_path(&self.home.as_named(path), user_home)
    }

    /// The folders that are excluded.
    pub fn exclusions(&self) -> Exclusions {
        let user_home = self.environment.user_home.as_deref();
        Exclusions::new(&self.config.exclude, user_home)
    }

    /// The project of a folder.
    pub fn project_of(&self, folder: &Path) -> Project {
        self.known(self.journal_to_read().as_ref(), folder).project
    }

    /// The project of a folder as far as these records know it, and what they do not know yet.
    pub fn known(&self, journal: Option<&Journal>, folder: &Path) -> Known {
        let user_home = self.environment.user_home.as_deref();
        match Places::new(journal).recognize(folder, user_home) {
            Ok(known) => known,
            Err(error) => {
                self.log(&error.to_string());
                Known {
                    project: Project::of(folder, user_home),
                    rows: Vec::new(),
                }
            }
        }
    }

    /// This machine's records as they are, to be read only; none where there are none yet.
    pub fn records(&self) -> Result<Option<Journal>, Failure> {
        Ok(Journal::open_to_read(&self.home, PATIENCE)?)
    }

    /// This machine's records as they are, if they can be had at once.
    fn journal_to_read(&self) -> Option<Journal> {
        let journal = Journal::open_to_read(&self.home, Duration::from_millis(100));
        journal.ok().flatten()
    }

    /// The project of the command line, else of the folder this process stands in.
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

    /// The project of a note that is written: the named one, for an agent that of its session wherever
    /// its shell stands, else that of this folder.
    pub fn project_to_write(&self, named: Option<&str>) -> Project {
        let of_session = || {
            let session = self.agent_session()?;
            let journal = self.journal_to_read()?;
            Some(journal.session(session).ok()??.project)
        };
        match named {
            Some(key) => self.project(Some(key)),
            None => self.project(of_session().as_deref()),
        }
    }

    /// The session of the agent that runs this, if it is one and its session is known.
    pub fn agent_session(&self) -> Option<&str> {
        let environment = &self.environment;
        environment
            .session
            .as_deref()
            .filter(|_| environment.is_agent)
    }

    /// The index, in step with the notes as they are now.
    pub fn index(&self) -> Result<Index, Failure> {
        Ok(Index::in_step(&self.home, &self.notes, PATIENCE)?)
    }

    /// The index for a caller in a hurry: in step with the notes, or as it is while another process
    /// writes it.
    pub fn index_without_waiting(&self) -> Result<Index, Failure> {
        let opened = Index::in_step_or_as_is(&self.home, &self.notes, Duration::from_millis(20));
        match opened {
            Err(index::Error::Locked) => self.index(),
            opened => Ok(opened?),
        }
    }

    /// Takes up a note that was just written, if the index is free within `patience`.
    pub fn take_up(&self, stored: &Stored, patience: Duration) {
        writing::take_up(&self.home, stored, patience, self.environment.now);
    }

    /// This machine's records; without them a command goes on and says so in the log.
    pub fn journal(&self) -> Option<Journal> {
        self.journal_within(PATIENCE)
    }

    /// As [`Context::journal`], for callers that cannot wait for long.
    pub fn journal_within(&self, patience: Duration) -> Option<Journal> {
        match Journal::open(&self.home, patience) {
            Ok(journal) => Some(journal),
            Err(error) => {
                self.log(&error.to_string());
                None
            }
        }
    }

    /// Writes a line to the log.
    pub fn log(&self, text: &str) {
        log::append(&self.home, self.environment.now, text);
    }

    /// The one note that a person means by what they typed.
    pub fn resolve(index: &Index, typed: &str) -> Result<Entry, Failure> {
        index.resolve(typed).map_err(|error| match error {
            Unresolvable::NotAnId => Failure::usage(format!("\"{typed}\" is not an id"))
                .hint("six or more characters of its beginning or end, as `list` shows them"),
            Unresolvable::Nothing(reference) => {
                Failure::failed(format!("no note #{}", reference.as_str()))
                    .hint("anamnesis list --everywhere")
            }
            Unresolvable::Unreadable(problem) => unreadable(&problem),
            Unresolvable::Several(reference, found) => {
                let candidates: Vec<String> = found
                    .iter()
                    .map(|entry| format!("  {}  {}", entry.id(), one_line(&entry.title)))
                    .collect();
                Failure::usage(format!(
                    "#{} stands for {} notes:\n{}",
                    reference.as_str(),
                    found.len(),
                    candidates.join("\n")
                ))
                .hint("type more of the id")
            }
            Unresolvable::Index(error) => error.into(),
        })
    }

    /// The short id of a note, as long as it has to be.
    pub fn short(index: &Index, id: NoteId) -> String {
        index.short_id(id).unwrap_or_else(|_| id.to_string())
    }
}

/// A file is there and cannot be read.
fn unreadable(problem: &Problem) -> Failure {
    let name = problem.path.rsplit('/').next().unwrap_or_default();
    let id = name.strip_suffix(".md").unwrap_or(name);
    Failure::failed(format!("{}: {}", problem.path, one_line(&problem.reason)))
        .hint(format!("anamnesis edit {id} --raw"))
}
