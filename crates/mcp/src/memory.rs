//! The context of the tools: the store, the session's project and the clock. Also the errors that
//! tools return.

use std::{
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anamnesis_app::{
    Error,
    context::{self, Context},
    embedding::QueryEncoder,
    error::Kind,
};
use anamnesis_distill::reflection;
use anamnesis_note::{draft::InvalidDraft, id::NoteId};
use anamnesis_recall::render::inert_line;
use anamnesis_store::{
    fs::home::Home,
    index::{self, Entry, Index, Unresolvable},
    journal::{self, Journal},
    notes::{self, Notes},
    project::{Places, Project},
    settings::config::Config,
};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use crate::tool::Tool;

/// The lock timeout of a tool that reads.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(250);

/// How long an in-place edit may go unnoticed. Such an edit does not change the folder's time, and
/// checking every note takes longer than a search.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// How many matching notes an error lists.
const MAX_NAMED: usize = 10;

/// How many characters of an input an error quotes.
const MAX_QUOTED: usize = 300;

/// The store and the session that uses it.
pub struct Memory {
    /// The context of the server's start. Tools use [`Memory::at_present`].
    pub(crate) context: Context,
    /// The session's project, if the client names one.
    pub(crate) project: Option<Project>,
    /// The key under which a model's notes are counted against the limit per session.
    pub(crate) counted_to: String,
    /// When all notes were last checked for changes.
    last_look: LastLook,
    /// The embedding model, once a search has loaded it.
    encoder: QueryEncoder,
}

/// When all notes were last checked; initially never.
#[derive(Debug, Default)]
struct LastLook(Mutex<Option<Instant>>);

impl LastLook {
    fn is_recent(&self) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last.elapsed() < LOOK_INTERVAL)
    }

    fn is_now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Memory {
    /// `project` is the session's, if the client names one.
    pub fn new(mut context: Context, project: Option<Project>) -> Self {
        // Tools are called by a model.
        context.environment.is_agent = true;
        // A client that names no session starts one server per session.
        let counted_to = context.environment.session.clone().unwrap_or_else(|| {
            let begun = NoteId::generate(context.environment.now);
            format!("server {begun}")
        });
        Self {
            context,
            project,
            counted_to,
            last_look: LastLook::default(),
            encoder: QueryEncoder::default(),
        }
    }

    /// Returns the context with the current time and settings, because a server outlives both.
    pub(crate) fn at_present(&self) -> Context {
        Context {
            environment: self.context.environment.at_present(),
            config: Config::load(&self.context.home),
            ..self.context.clone()
        }
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.context.environment.current_time()
    }

    pub(crate) fn home(&self) -> &Home {
        &self.context.home
    }

    pub(crate) fn notes(&self) -> Notes {
        Notes::new(self.home().clone(), TIMEOUT)
    }

    /// Opens the index, up to date except for in-place edits of the last seconds. While another
    /// process writes, or if the refresh takes longer than a short time, it is used as it is. If it
    /// cannot even be read, this waits.
    pub(crate) fn index(&self) -> Result<Index, ToolError> {
        let notes = self.notes();
        if self.last_look.is_recent()
            && let Ok(index) = Index::open(self.home())
            && !index.is_behind(&notes)
        {
            return Ok(index);
        }
        if let Some(index) = self.refreshed_beside(&notes, TIMEOUT) {
            return Ok(index);
        }
        let open = |timeout| Index::in_step_or_as_is(self.home(), &notes, timeout);
        let index = match open(TIMEOUT) {
            Err(index::Error::Locked) => open(context::TIMEOUT)?,
            opened => opened?,
        };
        self.last_look.is_now();
        Ok(index)
    }

    /// Refreshes a usable index in a thread. Returns the index after this wait at the latest, even if
    /// the refresh of a large store goes on.
    pub(crate) fn refreshed_beside(&self, notes: &Notes, wait: Duration) -> Option<Index> {
        Index::open(self.home()).ok()?;
        let (home, notes) = (self.home().clone(), notes.clone());
        let (done, is_done) = mpsc::channel();
        let refresh = move || {
            let _ = done.send(Index::in_step(&home, &notes, TIMEOUT).is_ok());
        };
        thread::Builder::new().spawn(refresh).ok()?;
        let waited = is_done.recv_timeout(wait);
        self.last_look.is_now();
        // After a failed refresh the caller tries again and reports the error.
        if waited == Ok(false) {
            return None;
        }
        Index::open(self.home()).ok()
    }

    /// Rebuilds the index, which is damaged. Returns whether there is a new one.
    pub(crate) fn rebuild_index(&self) -> bool {
        Index::rebuild(self.home(), &self.notes(), context::TIMEOUT).is_ok()
    }

    /// Returns the vector of a query, if there is an embedding model.
    pub(crate) fn vector(&self, index: &Index, query: &str) -> Option<Vec<f32>> {
        self.encoder.vector(&self.context, index, query)
    }

    /// Opens the journal read-only; `None` if nothing was recorded yet.
    pub(crate) fn records(&self) -> Result<Option<Journal>, ToolError> {
        Ok(Journal::open_to_read(self.home(), TIMEOUT)?)
    }

    /// Returns the keys of a named project, where `.` is the session's. An empty list means all
    /// projects.
    pub(crate) fn keys(&self, named: Option<&str>) -> Result<Vec<String>, ToolError> {
        let project = match named {
            None => return Ok(Vec::new()),
            Some(".") => self.own_project()?.clone(),
            Some(key) => {
                let mut project = Project::named(key);
                let others = Places::new(self.records()?.as_ref()).others(key)?;
                project.also = others;
                project
            }
        };
        Ok(project.all_keys())
    }

    /// Returns the session's project.
    pub(crate) fn own_project(&self) -> Result<&Project, ToolError> {
        self.project.as_ref().ok_or_else(|| {
            ToolError::new(
                "no_project",
                "this session's project is unknown",
                "pass a project key; memory_list and memory_search return them",
            )
        })
    }

    /// Finds the one note with an id or a part of one.
    pub(crate) fn resolve(index: &Index, typed: &str) -> Result<Entry, ToolError> {
        Context::resolve(index, typed).map_err(|error| match error.cause() {
            Some(cause) => ToolError::unresolvable(typed, cause),
            None => error.into(),
        })
    }
}

/// Why a tool call failed, in a form that a model can act on.
#[derive(Debug, Serialize)]
pub(crate) struct ToolError {
    code: &'static str,
    message: String,
    hint: String,
    /// Whether a new index helps.
    #[serde(skip)]
    pub(crate) is_index_damage: bool,
}

impl ToolError {
    pub(crate) fn new(
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
            is_index_damage: false,
        }
    }

    /// The text does not name exactly one note.
    fn unresolvable(typed: &str, cause: &Unresolvable) -> Self {
        match cause {
            Unresolvable::NotAnId => Self::new(
                "bad_id",
                format!("invalid id \"{}\"", quoted(typed)),
                "expected 6 or more characters of the beginning or the end of a note id",
            ),
            Unresolvable::Nothing(reference) => Self::new(
                "no_such_note",
                format!("no note has the id {}", reference.as_str()),
                "memory_search and memory_list return ids",
            ),
            Unresolvable::Unreadable(problem) => Self::new(
                "unreadable",
                format!("{}: {}", problem.path, quoted(&problem.reason)),
                "a person can repair it: anamnesis doctor",
            ),
            Unresolvable::Several(reference, found) => {
                let named = found.iter().take(MAX_NAMED).map(|entry| {
                    let title: String = inert_line(&entry.title).chars().take(80).collect();
                    format!("{} {title}", entry.id())
                });
                Self::new(
                    "ambiguous_id",
                    format!(
                        "{} matches {} notes: {}",
                        reference.as_str(),
                        found.len(),
                        named.collect::<Vec<_>>().join("; ")
                    ),
                    "pass the full id",
                )
            }
            Unresolvable::Index(error) => Self::internal(&error.to_string()),
        }
    }

    /// An argument is missing, unknown or of the wrong type.
    pub(crate) fn argument(message: &str, parameters: &str) -> Self {
        let hint = if parameters.is_empty() {
            "this tool takes no parameters".to_owned()
        } else {
            format!("parameters: {parameters}")
        };
        Self::new("bad_argument", quoted(message), hint)
    }

    /// An argument that tools must not set.
    pub(crate) fn not_for_tools(name: &str, parameters: &str) -> Self {
        Self::new(
            "not_for_tools",
            format!("a tool cannot set `{name}`"),
            format!("omit it; parameters: {parameters}"),
        )
    }

    /// The note was forgotten.
    pub(crate) fn forgotten(id: NoteId) -> Self {
        Self::new(
            "forgotten",
            format!("note {id} was forgotten"),
            format!("a person can restore it: anamnesis restore {id}"),
        )
    }

    /// The note is not a task.
    pub(crate) fn no_task(id: NoteId) -> Self {
        Self::new(
            "no_task",
            format!("note {id} is not a task"),
            "memory_task with action create makes one",
        )
    }

    /// The tool does not exist.
    pub(crate) fn unknown_tool(name: &str, tools: &[Tool]) -> Self {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
        let message = format!("unknown tool \"{}\"", quoted(name));
        Self::new(
            "unknown_tool",
            message,
            format!("expected one of {}", names.join(", ")),
        )
    }

    /// The store or the program has an error.
    pub(crate) fn internal(message: &str) -> Self {
        let hint = "a person can diagnose it: anamnesis doctor";
        Self::new("failed", quoted(message), hint)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn value(&self) -> Value {
        // A struct of three strings always serialises.
        serde_json::to_value(self).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let message = quoted(error.message());
        let is_index_damage = error.is_index_damage();
        let told = match error.kind() {
            Kind::Busy => Self::new("busy", message, "retry"),
            Kind::Damaged => {
                let hint = "a repair runs in the background; retry in a few seconds";
                Self::new("busy", message, hint)
            }
            Kind::Full => {
                let hint =
                    "memory_amend changes a note; the person can write more: /memory-remember TEXT";
                Self::new("too_many", message, hint)
            }
            Kind::Store => Self::internal(error.message()),
            Kind::Failed | Kind::Usage => {
                let step = error.next_step().unwrap_or("anamnesis doctor");
                Self::new("failed", message, quoted(&format!("a person can: {step}")))
            }
        };
        Self {
            is_index_damage,
            ..told
        }
    }
}

/// Renders the errors of libraries as those of `app` are rendered.
macro_rules! from_libraries {
    ($($library:ident),*) => {$(
        impl From<$library::Error> for ToolError {
            fn from(error: $library::Error) -> Self {
                Error::from(error).into()
            }
        }
    )*};
}

from_libraries!(index, journal, notes, reflection);

impl From<InvalidDraft> for ToolError {
    fn from(error: InvalidDraft) -> Self {
        let hint = "text in <private> tags is removed; pass the text outside them";
        Self::new("bad_argument", error.to_string(), hint)
    }
}

/// Shortens an input and makes it inert, for quoting in an error.
fn quoted(text: &str) -> String {
    let head: String = text.chars().take(MAX_QUOTED).collect();
    inert_line(&head)
}
