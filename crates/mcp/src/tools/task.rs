//! `memory_task`: creates, lists and updates tasks.

use anamnesis_note::{
    draft::{Draft, NoteChange},
    link::{Link, Relation},
    note::{Kind, Status},
};
use anamnesis_recall::{search::MAX_HITS, stale};
use anamnesis_store::index::Entry;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::write::project;
use crate::{
    memory::{Memory, ToolError},
    note::{Named, Note},
    tool::{Effect, Tool, Word},
    write::{Writing, Written, present},
};

pub(super) fn tool() -> Tool {
    Tool::writing(
        "memory_task",
        "Manage tasks",
        "create (text), update (id; status, note) or list tasks that outlive this session. Open tasks are \
         shown at session start. When a task is done, `review` lists notes that may be outdated.",
        Effect::Adds,
        run,
    )
}

/// The operation
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(crate = "rmcp::schemars")]
enum Action {
    Create,
    Update,
    List,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    action: Action,
    /// create: what to do; the first line is the default title
    text: Option<String>,
    title: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    /// create: ids of related notes
    #[serde(default)]
    about: Vec<String>,
    /// create, list: as in memory_write and memory_search
    project: Option<String>,
    id: Option<String>,
    /// list: only tasks with this status. Default: open tasks
    status: Option<Word<Status>>,
    /// update: a sentence to append
    note: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct TaskOutput {
    /// Result, for the person
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    /// The task, or the list with open tasks first
    tasks: Vec<Task>,
    /// Number of tasks not returned
    left: usize,
    /// Notes that may be outdated now that the task is done
    review: Vec<Named>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Task {
    #[serde(flatten)]
    note: Note,
    status: &'static str,
    /// Ids of related notes
    about: Vec<String>,
}

fn run(memory: &Memory, asked: Parameters) -> Result<TaskOutput, ToolError> {
    match asked.action {
        Action::Create => create(memory, asked),
        Action::Update => update(memory, asked),
        Action::List => list(memory, &asked),
    }
}

fn create(memory: &Memory, asked: Parameters) -> Result<TaskOutput, ToolError> {
    let text = needed(asked.text.or_else(|| asked.title.clone()), "text")?;
    let writing = Writing::begin(memory)?;
    let index = writing.index()?;
    let about = asked.about.iter().map(|id| {
        Ok(Link {
            relation: Relation::About,
            target: present(&index, id)?.id(),
            weight: None,
        })
    });
    let status = asked.status.map_or(Status::Pending, |Word(status)| status);
    let draft = Draft {
        title: asked.title,
        tags: asked.tags,
        status: Some(status),
        links: about.collect::<Result<_, ToolError>>()?,
        ..Draft::task(text, project(memory, asked.project.as_deref())?)
    };
    let written = writing.add(index, draft, &[], false)?;
    one(memory, written, status, Vec::new())
}

fn update(memory: &Memory, asked: Parameters) -> Result<TaskOutput, ToolError> {
    let id = needed(asked.id, "id")?;
    let status = asked.status.map(|Word(status)| status);
    let change = NoteChange {
        title: asked.title,
        addition: asked.note,
        status,
        ..NoteChange::default()
    }
    .fit()?;
    let writing = Writing::begin(memory)?;
    let index = writing.index()?;
    let entry = present(&index, &id)?;
    if entry.kind != Kind::Task {
        return Err(ToolError::no_task(entry.id()));
    }
    let before = writing.context.notes.read(entry.path)?.note().status();
    let now = writing.now();
    let (written, _) = writing.change(index, &entry, false, |note| change.apply(note, now))?;
    let status = status.unwrap_or(before);
    let is_proposed = written.note.id() != entry.id().to_string();
    let is_finished = status == Status::Done && before != status && !is_proposed;
    let review = if is_finished {
        let due = stale::outdated_by_task(&writing.index()?, entry.id(), now)?;
        due.iter().map(Named::from_entry).collect()
    } else {
        Vec::new()
    };
    one(memory, written, status, review)
}

/// Builds the answer about one task.
fn one(
    memory: &Memory,
    written: Written,
    status: Status,
    review: Vec<Named>,
) -> Result<TaskOutput, ToolError> {
    let index = memory.index()?;
    let about = match index.resolve(written.note.id()) {
        Ok(entry) => about(&index, &entry)?,
        Err(_) => Vec::new(),
    };
    Ok(TaskOutput {
        said: Some(written.said),
        tasks: vec![Task {
            note: written.note,
            status: status.as_str(),
            about,
        }],
        left: 0,
        review,
    })
}

fn list(memory: &Memory, asked: &Parameters) -> Result<TaskOutput, ToolError> {
    let keys = memory.keys(asked.project.as_deref())?;
    let one = asked.status.map(|Word(status)| [status]);
    let with: &[Status] = match &one {
        Some(one) => one,
        None => &[Status::Active, Status::Pending],
    };
    let index = memory.index()?;
    let now = memory.now();
    let found = index.tasks(&keys, with)?;
    let tasks = found.iter().take(MAX_HITS).map(|(entry, status)| {
        Ok(Task {
            note: Note::from_entry(entry, now),
            status: status.as_str(),
            about: about(&index, entry)?,
        })
    });
    Ok(TaskOutput {
        said: None,
        tasks: tasks.collect::<Result<_, ToolError>>()?,
        left: found.len().saturating_sub(MAX_HITS),
        review: Vec::new(),
    })
}

/// Returns the notes that a task refers to.
fn about(index: &anamnesis_store::index::Index, task: &Entry) -> Result<Vec<String>, ToolError> {
    let edges = index.links_of(&[task.id()])?;
    let about = edges
        .iter()
        .filter(|edge| edge.from == task.id() && edge.relation == Relation::About);
    Ok(about.map(|edge| edge.to.to_string()).collect())
}

fn needed(value: Option<String>, name: &str) -> Result<String, ToolError> {
    value.ok_or_else(|| {
        let hint = "create requires text, update requires id";
        ToolError::new("bad_argument", format!("missing {name}"), hint)
    })
}
