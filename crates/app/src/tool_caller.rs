//! The model that calls the tools of a server: its session, and how fresh its index has to be.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anamnesis_note::id::NoteId;
use anamnesis_store::{index::Index, journal::Journal, project::Project};

use crate::{
    Error,
    context::{Context, TIMEOUT},
    embedding::QueryEncoder,
};

/// How long a tool that reads waits for a lock or a refresh.
pub const READ_TIMEOUT: Duration = Duration::from_millis(250);

/// How long an in-place edit may go unnoticed. Such an edit does not change the folder's time, and
/// checking every note takes longer than a search.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The model that calls tools.
#[derive(Debug)]
pub struct ToolCaller {
    /// The session's project, if the client names one.
    pub project: Option<Project>,
    /// The key under which notes are counted if the journal has no such session; `None` if an agent started
    /// the server.
    pub counted_to: Option<String>,
    /// When all notes were last checked for changes; initially never.
    last_look: Mutex<Option<Instant>>,
    encoder: QueryEncoder,
}

impl ToolCaller {
    /// `counted_to` is the key under which notes are counted if the journal has no such session.
    pub fn new(project: Option<Project>, counted_to: Option<String>) -> Self {
        Self {
            project,
            counted_to,
            last_look: Mutex::default(),
            encoder: QueryEncoder::default(),
        }
    }

    fn has_looked_lately(&self) -> bool {
        self.last_look()
            .is_some_and(|last| last.elapsed() < LOOK_INTERVAL)
    }

    fn looked(&self) {
        *self.last_look() = Some(Instant::now());
    }

    fn last_look(&self) -> MutexGuard<'_, Option<Instant>> {
        let last_look = self.last_look.lock();
        last_look.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    /// Returns the context of a server whose tools a model calls. `project` is the session's, if the
    /// client names one.
    #[must_use]
    pub fn for_tools(mut self, project: Option<Project>) -> Self {
        // A client starts one server per session. An agent can start any number in its shell.
        let begun = NoteId::generate(self.environment.now);
        let counted_to = (!self.environment.is_agent).then(|| format!("server {begun}"));
        self.environment.is_agent = true;
        self.tool = Some(Arc::new(ToolCaller::new(project, counted_to)));
        self
    }

    /// Returns the context with the current time and settings, because a server outlives both.
    #[must_use]
    pub fn at_present(&self) -> Self {
        Self {
            environment: self.environment.at_present(),
            config: Self::load_config(&self.home),
            ..self.clone()
        }
    }

    /// Opens the index to read. A command gets it up to date. For a tool, it may lack in-place edits of
    /// the last seconds, and is used as it is while another process writes.
    pub fn index_to_read(&self) -> Result<Index, Error> {
        let Some(tool) = &self.tool else {
            return self.index();
        };
        if tool.has_looked_lately()
            && let Ok(index) = Index::open(&self.home)
            && !index.is_behind(&self.notes)
        {
            return Ok(index);
        }
        if let Some(index) = self.refreshed_beside(READ_TIMEOUT) {
            return Ok(index);
        }
        let index = self.index_within(READ_TIMEOUT)?;
        tool.looked();
        Ok(index)
    }

    /// Refreshes a usable index in a thread. Returns the index after this wait at the latest, even if
    /// the refresh of a large store goes on.
    pub fn refreshed_beside(&self, wait: Duration) -> Option<Index> {
        Index::open(&self.home).ok()?;
        let (home, notes) = (self.home.clone(), self.notes.clone());
        let (done, is_done) = mpsc::channel();
        let refresh = move || {
            let _ = done.send(Index::in_step(&home, &notes, READ_TIMEOUT).is_ok());
        };
        thread::Builder::new().spawn(refresh).ok()?;
        let waited = is_done.recv_timeout(wait);
        if let Some(tool) = &self.tool {
            tool.looked();
        }
        // After a failed refresh the caller tries again and reports the error.
        if waited == Ok(false) {
            return None;
        }
        Index::open(&self.home).ok()
    }

    /// Returns the vector of a tool's query, if there is an embedding model.
    pub fn vector(&self, index: &Index, query: &str) -> Option<Vec<f32>> {
        self.tool.as_ref()?.encoder.vector(self, index, query)
    }

    /// Opens the journal for a new text. A command goes on without it. A tool does not, because neither
    /// its limit nor forgotten texts could be checked.
    pub fn journal_to_write(&self) -> Result<Option<Journal>, Error> {
        match &self.tool {
            Some(_) => Ok(Some(Journal::open(&self.home, TIMEOUT)?)),
            None => Ok(self.journal()),
        }
    }

    /// Returns the keys of a project, where `.` is the caller's. Without a project, the list is empty, which
    /// means all of them.
    pub fn keys(&self, named: Option<&str>) -> Result<Vec<String>, Error> {
        Ok(match named {
            None => Vec::new(),
            Some(".") => self.own_project()?.all_keys(),
            Some(key) => self.project(Some(key)).all_keys(),
        })
    }

    /// Returns the caller's project: the current folder's, or that of a tool's session.
    pub fn own_project(&self) -> Result<Project, Error> {
        match &self.tool {
            None => Ok(self.project(None)),
            Some(tool) => tool.project.clone().ok_or_else(|| {
                Error::failed("this session's project is unknown")
                    .code("no_project")
                    .hint("pass a project key; memory_list and memory_search return them")
            }),
        }
    }
}
