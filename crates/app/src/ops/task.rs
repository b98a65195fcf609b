//! Tasks: adds, lists and changes them, and parses `/memory-task` in a prompt.
//!
//! A task is a note. Completing it does not change other notes, but lists those that may be outdated
//! now.

use anamnesis_note::{
    draft::{Draft, NoteChange, saved},
    link::{Link, Relation},
    note::{Kind, State, Status},
};
use anamnesis_recall::{search::MAX_HITS, stale};
use anamnesis_session::prompt::RawPrompt;
use anamnesis_store::{
    index::{Entry, Index},
    journal::Journal,
    notes::Stored,
};
use anamnesis_text::clean::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    note::{Named, Note},
    written::{self, WrittenNote},
};
use crate::{
    Error,
    context::Context,
    format::LIST_LENGTH,
    write::{self, INDEX_TIMEOUT},
};

/// The parameters of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum TaskRequest {
    /// Adds a task.
    Create(AddTask),
    /// Changes a task.
    Update(ChangeTask),
    /// Lists tasks.
    List(ListTasks),
}

/// A new task.
#[derive(Debug, Default, Deserialize, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct AddTask {
    /// create: what to do; the first line is the default title
    #[arg(skip)]
    pub text: Option<String>,
    /// A one-line title
    #[arg(long)]
    title: Option<String>,
    /// A tag; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    #[serde(default)]
    tags: Vec<String>,
    /// The id of a note that the task is about; repeatable
    #[arg(long, value_name = "ID")]
    #[serde(default)]
    about: Vec<String>,
    /// Project key; "." = yours. Default: yours; list: every project
    #[arg(
        long,
        value_name = "KEY",
        help = "Project key [default: this folder's]"
    )]
    pub project: Option<String>,
    /// Its status. Default: pending; list: open tasks
    #[arg(long, value_parser = str::parse::<Status>, help = "Its status [default: pending]")]
    status: Option<Status>,
}

/// Which tasks are listed.
#[derive(Debug, Default, Deserialize, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
    /// List the tasks of this project
    #[arg(long, value_name = "KEY", conflicts_with = "everywhere")]
    pub project: Option<String>,
    /// Only tasks in this state: pending, active, done or archived
    #[arg(long, value_parser = str::parse::<Status>)]
    pub status: Option<Status>,
    /// Include finished and archived tasks, however many there are
    #[arg(long, conflicts_with = "status")]
    #[serde(skip)]
    pub all: bool,
    /// The maximum number of tasks
    #[arg(skip)]
    #[serde(skip)]
    pub limit: Option<usize>,
}

/// A change of a task.
#[derive(Debug, Default, Deserialize, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ChangeTask {
    /// The task's id: six or more characters of its start or end
    pub id: String,
    /// Its new status
    #[arg(skip)]
    pub status: Option<Status>,
    /// Its new title
    #[arg(skip)]
    pub title: Option<String>,
    /// update: a sentence to append
    #[arg(skip)]
    pub note: Option<String>,
}

/// Tasks that were listed, added or changed.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TaskOutcome {
    /// Result, for the person
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The task, or the list with open tasks first
    pub tasks: Vec<Task>,
    /// Number of tasks not returned
    pub left: usize,
    /// Notes that may be outdated now that the task is done
    pub review: Vec<Named>,
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Task {
    /// Its note.
    #[serde(flatten)]
    pub note: Note,
    /// Whether it is done.
    #[schemars(with = "String")]
    pub status: Status,
    /// Ids of related notes
    about: Vec<String>,
}

impl Task {
    fn new(note: Note, status: Status, index: &Index) -> Result<Self, Error> {
        let id = note.id();
        let edges = index.links_of(&[id])?.into_iter();
        let about = edges.filter(|edge| edge.from == id && edge.relation == Relation::About);
        Ok(Self {
            about: about.map(|edge| edge.to.to_string()).collect(),
            note,
            status,
        })
    }
}

/// Carries out what a tool asks for.
pub fn run(context: &Context, request: TaskRequest) -> Result<TaskOutcome, Error> {
    match request {
        TaskRequest::Create(request) => add(context, request),
        TaskRequest::Update(request) => change(context, request),
        TaskRequest::List(request) => list(context, &request),
    }
}

/// Adds a task.
pub fn add(context: &Context, request: AddTask) -> Result<TaskOutcome, Error> {
    let text = request.text.or_else(|| request.title.clone());
    let text = text.ok_or_else(|| Error::usage("there is no text"))?;
    let index = context.index()?;
    let about = request.about.iter().map(|typed| {
        Ok(Link {
            relation: Relation::About,
            target: Context::present(&index, typed)?.id(),
            weight: None,
        })
    });
    let status = request.status.unwrap_or(Status::Pending);
    let draft = Draft {
        title: request.title,
        tags: request.tags,
        status: Some(status),
        links: about.collect::<Result<_, Error>>()?,
        ..Draft::task(text, context.key_to_write(request.project.as_deref())?)
    };
    let written = written::write(context, index, draft, "task", &[], false)?;
    one(context, written, status)
}

/// Lists tasks, open ones first.
pub fn list(context: &Context, request: &ListTasks) -> Result<TaskOutcome, Error> {
    let keys = context.keys(request.project.as_deref())?;
    let one = request.status.map(|status| [status]);
    let with: &[Status] = match &one {
        Some(one) => one,
        None if request.all => Status::ALL,
        None => &[Status::Active, Status::Pending],
    };
    let limit = if request.all {
        usize::MAX
    } else {
        request.limit.unwrap_or(MAX_HITS)
    };
    let index = context.index_to_read()?;
    let found = index.tasks(&keys, with)?;
    let left = found.len().saturating_sub(limit);
    let tasks = found.into_iter().take(limit);
    let tasks = tasks.map(|(entry, status)| Task::new(Note::new(context, entry), status, &index));
    Ok(TaskOutcome {
        tasks: tasks.collect::<Result<_, Error>>()?,
        left,
        ..TaskOutcome::default()
    })
}

/// Changes a task.
pub fn change(context: &Context, request: ChangeTask) -> Result<TaskOutcome, Error> {
    let change = NoteChange {
        title: request.title,
        addition: request.note,
        status: request.status,
        ..NoteChange::default()
    };
    let change = change.fit()?;
    let index = context.index()?;
    let entry = Context::present(&index, &request.id)?;
    let short = Context::short(&index, entry.id());
    if !is_task(&entry) {
        return Err(no_task(&short));
    }
    let before = context.notes.read(entry.path)?.note().status();
    let now = context.environment.now;
    let apply = |note: &mut anamnesis_note::note::Note| change.apply(note, now);
    let written = written::change(context, index, &entry, "task", false, apply)?;
    let status = request.status.unwrap_or(before);
    let is_set = status != before && !written.is_proposed;
    let mut outcome = one(context, written, status)?;
    if is_set {
        let undo = format!("Undo: anamnesis task {} {short}", word_of(before));
        let title = one_line(&outcome.tasks[0].note.entry.title);
        outcome.said = Some(format!("{status} #{short} \"{title}\"\n{undo}"));
        if status == Status::Done {
            let due = stale::outdated_by_task(&context.index()?, entry.id(), now)?;
            outcome.review = due.into_iter().map(Named::from).collect();
        }
    } else if request.status == Some(before) {
        outcome.said = Some(format!("#{short} is {status} already"));
    }
    Ok(outcome)
}

/// Returns the outcome about one task.
fn one(context: &Context, written: WrittenNote, status: Status) -> Result<TaskOutcome, Error> {
    Ok(TaskOutcome {
        tasks: vec![Task::new(written.note, status, &context.index()?)?],
        said: Some(written.said),
        ..TaskOutcome::default()
    })
}

/// The error for a note that is not a task.
pub fn no_task(short: &str) -> Error {
    Error::failed(format!("#{short} is no task"))
        .code("no_task")
        .hint("anamnesis task list")
}

/// Returns whether a note is a task and not forgotten.
fn is_task(entry: &Entry) -> bool {
    entry.kind == Kind::Task && entry.state != State::Forgotten
}

/// Sets the status of a task in a hook and returns the previous one.
fn set_status(context: &Context, entry: &Entry, status: Status) -> Result<(Status, Stored), Error> {
    let mut before = status;
    let change = NoteChange {
        status: Some(status),
        ..NoteChange::default()
    };
    let lock = context.notes.lock()?;
    let stored = context.notes.update(&lock, entry.path, |note| {
        before = note.status();
        change.apply(note, context.environment.now);
    })?;
    Ok((before, stored))
}

/// Returns the subcommand that sets a status.
pub fn word_of(status: Status) -> &'static str {
    match status {
        Status::Pending => "reopen",
        Status::Active => "start",
        Status::Done => "done",
        Status::Archived => "archive",
    }
}

/// A person's request about tasks in a prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Add a task with this text.
    Add(&'a str),
    /// Set the status of the task with this id; the id may be missing.
    Set(Status, &'a str),
}

/// Parses a `/memory-task` prompt; `None` for the bare command, which only lists tasks.
pub fn asked_for(prompt: &RawPrompt) -> Option<Asked<'_>> {
    let text = prompt
        .command("memory-task")
        .filter(|text| !text.is_empty())?;
    let (word, id) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let id = id.trim_start();
    let mut all = Status::ALL.iter().copied();
    let change = all.find(|status| word_of(*status) == word);
    // `done with it all` is a task, `done nope12` has a wrong id.
    let change = change.filter(|_| !id.contains(char::is_whitespace));
    let change = change.map(|status| Asked::Set(status, id));
    Some(change.unwrap_or(Asked::Add(text)))
}

/// Carries out a request about tasks and returns the reply.
pub fn act(
    context: &Context,
    journal: Option<&Journal>,
    asked: &Asked<'_>,
    project: &str,
) -> Result<String, Error> {
    match asked {
        Asked::Add(text) => keep(context, journal, text, project),
        Asked::Set(status, id) => finish(context, *status, id),
    }
}

fn keep(
    context: &Context,
    journal: Option<&Journal>,
    text: &str,
    project: &str,
) -> Result<String, Error> {
    let draft = Draft::task(text.to_owned(), project.to_owned());
    let note = match draft.note(context.machine_id(), context.environment.now) {
        Ok(note) => note,
        Err(error) => return Ok(not_done(&error.to_string())),
    };
    let stored = write::save(context, journal, &note)?;
    let short = Index::open(&context.home)
        .map_or_else(|_| note.id.short(), |index| Context::short(&index, note.id));
    Ok(format!(
        "{} · Undo: /memory-forget {short}",
        saved(&stored.note(), &short)
    ))
}

/// The reply to a request that cannot be carried out.
fn not_done(why: &str) -> String {
    format!("not done: {} · /memory-task", one_line(why))
}

fn finish(context: &Context, status: Status, id: &str) -> Result<String, Error> {
    if id.is_empty() {
        let word = word_of(status);
        return Ok(not_done(&format!("`{word}` needs the id of a task")));
    }
    let index = Index::open(&context.home)?;
    let entry = match Context::resolve(&index, id) {
        Ok(entry) => entry,
        // A mistyped id is not an error of the hook.
        Err(error) => return Ok(not_done(error.message())),
    };
    let short = Context::short(&index, entry.id());
    if !is_task(&entry) {
        return Ok(not_done(&format!("#{short} is no task")));
    }
    let (before, stored) = set_status(context, &entry, status)?;
    if before == status {
        return Ok(format!("#{short} is {status} already"));
    }
    context.add_to_index(&stored, INDEX_TIMEOUT);
    let mut said = format!("{status} #{short} \"{}\"", one_line(&entry.title));
    if status == Status::Done {
        let due = stale::outdated_by_task(&index, entry.id(), context.environment.now)?;
        let due: Vec<String> = due
            .iter()
            .take(LIST_LENGTH)
            .map(|entry| format!("#{}", Context::short(&index, entry.id())))
            .collect();
        if !due.is_empty() {
            said.push_str(&format!(" · may be outdated now: {}", due.join(", ")));
        }
    }
    Ok(format!(
        "{said} · Undo: /memory-task {} {short}",
        word_of(before)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_task_or_a_change_of_one() {
        for (prompt, asked) in [
            (
                "/memory-task done 9HKD3T",
                Some(Asked::Set(Status::Done, "9HKD3T")),
            ),
            (
                " /anamnesis:memory-task reopen  #9hkd3t\n",
                Some(Asked::Set(Status::Pending, "#9hkd3t")),
            ),
            ("/memory-task done it all", Some(Asked::Add("done it all"))),
            (
                "/memory-task done nope12",
                Some(Asked::Set(Status::Done, "nope12")),
            ),
            ("/memory-task done", Some(Asked::Set(Status::Done, ""))),
            (
                "/memory-task finish 9HKD3T",
                Some(Asked::Add("finish 9HKD3T")),
            ),
            ("/memory-task", None),
            ("/memory-tasks done 9HKD3T", None),
            ("please /memory-task done 9HKD3T", None),
        ] {
            assert_eq!(asked_for(&RawPrompt::new(prompt)), asked, "{prompt}");
        }
    }
}
