//! Tasks: adds one, sets its status, and parses `/memory-task` in a prompt.

use anamnesis_note::{
    draft::{Draft, NoteChange, saved},
    id::IdPrefix,
    note::{Kind, State, Status},
};
use anamnesis_recall::stale;
use anamnesis_session::prompt::RawPrompt;
use anamnesis_store::{
    index::{Entry, Index},
    journal::Journal,
    notes::Stored,
};
use anamnesis_text::clean::one_line;

use crate::{
    Error,
    context::Context,
    format::LIST_LENGTH,
    sync,
    write::{self, INDEX_TIMEOUT},
};

/// Returns whether a note is a task and not forgotten.
pub fn is_task(entry: &Entry) -> bool {
    entry.kind == Kind::Task && entry.state != State::Forgotten
}

/// Sets the status of a task and returns the previous one.
pub fn set_status(
    context: &Context,
    entry: &Entry,
    status: Status,
) -> Result<(Status, Stored), Error> {
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

/// A task whose status was set.
pub struct ChangedTask {
    /// The task.
    pub entry: Entry,
    /// The shortest unique id.
    pub short: String,
    /// The previous status.
    pub before: Status,
    /// The notes that may be outdated now that the task is done.
    pub due: Vec<Entry>,
    /// The index, with the change.
    pub index: Index,
}

/// Sets the status of the task that a person or an agent typed.
pub fn change(context: &Context, typed: &str, status: Status) -> Result<ChangedTask, Error> {
    let index = context.index()?;
    let entry = Context::resolve(&index, typed)?;
    let short = Context::short(&index, entry.id());
    if !is_task(&entry) {
        return Err(Error::failed(format!("#{short} is no task")).hint("anamnesis task list"));
    }
    write::refuse_agent(context, &entry, "change")?;
    drop(index);
    sync::commit_earlier(context, [entry.id()]);
    let (before, _) = set_status(context, &entry, status)?;
    if before != status {
        sync::commit(context, "task", [entry.id()]);
    }
    let index = context.index()?;
    let due = if status == Status::Done && before != status {
        stale::outdated_by_task(&index, entry.id(), context.environment.now)?
    } else {
        Vec::new()
    };
    Ok(ChangedTask {
        entry: index.get(entry.id())?.unwrap_or(entry),
        short,
        before,
        due,
        index,
    })
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
    // `done with it all` is a task.
    let change = change.filter(|_| id.is_empty() || IdPrefix::parse(id).is_ok());
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
    let stored = write::save(context, journal, &note, None)?;
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
    context.take_up(&stored, INDEX_TIMEOUT);
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
