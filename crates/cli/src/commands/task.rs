//! `task`: what is to be done, and how far it is.
//!
//! A task is a note. Completing one changes nothing about other notes: it names those that are worth a
//! look now.

use std::process::ExitCode;

use anamnesis_note::{
    draft::{Draft, NoteChange, saved},
    id::IdPrefix,
    link::{Link, Relation},
    note::{Kind, Note, State, Status},
};
use anamnesis_recall::stale;
use anamnesis_store::{
    index::{Entry, Index},
    journal::Journal,
    notes::Stored,
};
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use super::{Outcome, edit::refuse_agent, read_text, write};
use crate::{
    context::Context,
    failure::Failure,
    remember::{self, INDEX_PATIENCE},
    sync,
    ui::{self, LIST_LENGTH, Ui},
};

/// Keep a list of what is to be done
///
/// A task is a note of this project; open ones are named when a session starts.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    act: Option<Act>,
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    Add(AddArgs),
    List(ListArgs),
    /// Say that you are at it
    Start(ChangeArgs),
    /// Say that it is finished
    Done(ChangeArgs),
    /// Put it away, finished or not
    Archive(ChangeArgs),
    /// Open it again
    Reopen(ChangeArgs),
}

/// Add a task
///
/// The first line is its title. Secrets are masked, parts in `<private>` tags are left out.
#[derive(Debug, clap::Args)]
struct AddArgs {
    /// What is to be done; from stdin without it
    text: Vec<String>,
    /// Read the text from stdin
    #[arg(long, conflicts_with = "text")]
    stdin: bool,
    /// A note that it is about; may be given more than once
    #[arg(long, value_name = "ID")]
    about: Vec<String>,
    /// A tag; may be given more than once
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// The project [default: the one of this folder]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List the open tasks
#[derive(Debug, Default, clap::Args)]
struct ListArgs {
    /// Finished and archived ones, too
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// Only those that are pending, active, done or archived
    #[arg(long, value_parser = write::word::<Status>)]
    status: Option<Status>,
    /// The tasks of this project instead
    #[arg(long, value_name = "KEY", conflicts_with = "everywhere")]
    project: Option<String>,
    /// The tasks of every project
    #[arg(long)]
    everywhere: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ChangeArgs {
    /// Six or more characters of the beginning or end of its id
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    match &args.act {
        None => list(&ListArgs::default(), context, ui),
        Some(Act::Add(args)) => add(args, context, ui),
        Some(Act::List(args)) => list(args, context, ui),
        Some(Act::Start(args)) => change(args, Status::Active, context, ui),
        Some(Act::Done(args)) => change(args, Status::Done, context, ui),
        Some(Act::Archive(args)) => change(args, Status::Archived, context, ui),
        Some(Act::Reopen(args)) => change(args, Status::Pending, context, ui),
    }
}

fn add(args: &AddArgs, context: &Context, ui: &Ui) -> Outcome {
    let text = if args.text.is_empty() {
        if !args.stdin && ui::stdin_is_terminal() {
            return Err(Failure::usage("there is no text").hint("anamnesis task add TEXT"));
        }
        read_text()?
    } else {
        args.text.join(" ")
    };
    let index = context.index()?;
    let about = args.about.iter().map(|typed| {
        Ok(Link {
            relation: Relation::About,
            target: Context::resolve(&index, typed)?.id(),
            weight: None,
        })
    });
    let draft = Draft {
        tags: args.tags.clone(),
        links: about.collect::<Result<_, Failure>>()?,
        ..Draft::task(text, write::project_of(args.project.as_deref(), context)?)
    };
    let mut note = draft
        .note(context.machine_id(), context.environment.now)
        .map_err(|unfit| Failure::from(unfit).hint("anamnesis task add TEXT"))?;
    write::by_agent(context, &mut note, false);
    let json: fn(&Entry, &Note) -> Value = |entry, note| task_json(entry, note.status());
    let writing = write::Writing {
        note: &note,
        act: "task",
        is_judged: true,
        replaced: &[],
        is_forced: false,
        json: args.json.then_some(json),
    };
    write::save(context, ui, index, &writing)
}

fn list(args: &ListArgs, context: &Context, ui: &Ui) -> Outcome {
    let project = match &args.project {
        Some(key) => Some(context.project(Some(key))),
        None if args.everywhere => None,
        None => Some(context.project(None)),
    };
    let keys = project
        .as_ref()
        .map(anamnesis_store::project::Project::all_keys)
        .unwrap_or_default();
    let one = args.status.map(|status| [status]);
    let with: &[Status] = match &one {
        Some(one) => one,
        None if args.all => Status::ALL,
        None => &[Status::Active, Status::Pending],
    };
    let index = context.index()?;
    let tasks = index.tasks(&keys, with)?;
    if args.json {
        let tasks = tasks
            .iter()
            .map(|(entry, status)| task_json(entry, *status));
        ui.json(&json!({ "tasks": tasks.collect::<Vec<_>>() }));
        return Ok(ExitCode::SUCCESS);
    }
    if tasks.is_empty() {
        let place = project.map_or_else(String::new, |project| format!(" of {}", project.key));
        let open = if args.all || args.status.is_some() {
            ""
        } else {
            "open "
        };
        ui.print(&format!(
            "0 {open}tasks{place}\n→ anamnesis task add TEXT\n"
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    let shown = if args.all { tasks.len() } else { LIST_LENGTH };
    for (entry, status) in tasks.iter().take(shown) {
        let short = Context::short(&index, entry.id());
        text.push_str(&line(entry, *status, &short, context));
    }
    if tasks.len() > shown {
        text.push_str(&format!(
            "{shown} of {} shown · --all\n",
            ui::number(tasks.len())
        ));
    }
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

/// A task on one line: `#9HKD3T active   Remove the flag  you, 12 d`.
fn line(entry: &Entry, status: Status, short: &str, context: &Context) -> String {
    let head = format!("#{short} {:<8}  ", status.as_str());
    let mut tail = format!(
        "{}, {}",
        entry.author(),
        ui::age(&entry.created_at, context.environment.now)
    );
    if entry.state != State::Active {
        tail = format!("{tail}, {}", entry.state);
    }
    let used = head.chars().count() + tail.chars().count() + 2;
    let room = ui::WIDTH.saturating_sub(used).max(16);
    let title = ui::shorten(&one_line(&entry.title), room);
    format!("{head}{title}  {tail}\n")
}

fn task_json(entry: &Entry, status: Status) -> serde_json::Value {
    let mut json = ui::note_json(entry, None);
    json["status"] = status.as_str().into();
    json
}

fn is_task(entry: &Entry) -> bool {
    entry.kind == Kind::Task && entry.state != State::Forgotten
}

/// Sets the status of a task, and tells which one it had.
fn set(context: &Context, entry: &Entry, status: Status) -> Result<(Status, Stored), Failure> {
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

/// The word that brings a task to a status.
fn word_of(status: Status) -> &'static str {
    match status {
        Status::Pending => "reopen",
        Status::Active => "start",
        Status::Done => "done",
        Status::Archived => "archive",
    }
}

/// What a person asks of their tasks at a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked<'a> {
    /// To keep a task.
    Add(&'a str),
    /// To set the status of one.
    Set(Status, &'a str),
}

/// What a prompt asks of the tasks, if that is what it does. Alone the command only lists them.
pub(crate) fn asked_for(prompt: &str) -> Option<Asked<'_>> {
    let text = remember::typed(prompt, "memory-task").filter(|text| !text.is_empty())?;
    let change = text.split_once(char::is_whitespace).and_then(|(word, id)| {
        let mut all = Status::ALL.iter();
        let status = all.find(|status| word_of(**status) == word)?;
        let id = id.trim_start();
        IdPrefix::parse(id)
            .is_ok()
            .then_some(Asked::Set(*status, id))
    });
    Some(change.unwrap_or(Asked::Add(text)))
}

/// Does what a person asks of their tasks, and says so in a line.
///
/// # Errors
/// A sentence that says why nothing was done.
pub(crate) fn act(
    context: &Context,
    journal: Option<&Journal>,
    asked: &Asked<'_>,
    project: &str,
) -> Result<String, String> {
    let said = match asked {
        Asked::Add(text) => keep(context, journal, text, project),
        Asked::Set(status, id) => finish(context, *status, id),
    };
    said.map_err(|failure| one_line(failure.message()))
}

fn keep(
    context: &Context,
    journal: Option<&Journal>,
    text: &str,
    project: &str,
) -> Result<String, Failure> {
    let draft = Draft::task(text.to_owned(), project.to_owned());
    let note = match draft.note(context.machine_id(), context.environment.now) {
        Ok(note) => note,
        Err(unfit) => return Ok(not_done(&unfit.to_string())),
    };
    let stored = remember::save(context, journal, &note)?;
    let short = Index::open(&context.home)
        .map_or_else(|_| note.id.short(), |index| Context::short(&index, note.id));
    Ok(format!(
        "{} · Undo: /memory-forget {short}",
        saved(&stored.note(), &short)
    ))
}

/// The line for what a person asked and cannot be done.
fn not_done(why: &str) -> String {
    format!("not done: {} · /memory-task", one_line(why))
}

fn finish(context: &Context, status: Status, id: &str) -> Result<String, Failure> {
    let index = Index::open(&context.home)?;
    let entry = match Context::resolve(&index, id) {
        Ok(entry) => entry,
        // A slip of the person's is no fault of the hook.
        Err(failure) => return Ok(not_done(failure.message())),
    };
    let short = Context::short(&index, entry.id());
    if !is_task(&entry) {
        return Ok(not_done(&format!("#{short} is no task")));
    }
    let (before, stored) = set(context, &entry, status)?;
    if before == status {
        return Ok(format!("#{short} is {status} already"));
    }
    context.take_up(&stored, INDEX_PATIENCE);
    let mut said = format!("{status} #{short} \"{}\"", one_line(&entry.title));
    if status == Status::Done {
        let due = stale::outdated_by_task(&index, entry.id(), context.environment.now)?;
        let due: Vec<String> = due
            .iter()
            .take(LIST_LENGTH)
            .map(|entry| format!("#{}", Context::short(&index, entry.id())))
            .collect();
        if !due.is_empty() {
            said.push_str(&format!(" · worth a look now: {}", due.join(", ")));
        }
    }
    Ok(format!(
        "{said} · Undo: /memory-task {} {short}",
        word_of(before)
    ))
}

fn change(args: &ChangeArgs, status: Status, context: &Context, ui: &Ui) -> Outcome {
    let index = context.index()?;
    let entry = Context::resolve(&index, &args.id)?;
    let short = Context::short(&index, entry.id());
    if !is_task(&entry) {
        return Err(Failure::failed(format!("#{short} is no task")).hint("anamnesis task list"));
    }
    refuse_agent(context, &entry, "change")?;
    drop(index);
    let now = context.environment.now;
    let (before, _) = set(context, &entry, status)?;
    if before != status {
        sync::commit(context, "task", [entry.id()]);
    }
    let index = context.index()?;
    let due = if status == Status::Done && before != status {
        stale::outdated_by_task(&index, entry.id(), now)?
    } else {
        Vec::new()
    };
    if args.json {
        let entry = index.get(entry.id())?.unwrap_or(entry);
        let mut json = task_json(&entry, status);
        let due: Vec<String> = due.iter().map(|entry| entry.id().to_string()).collect();
        json["review"] = due.into();
        ui.json(&json);
        return Ok(ExitCode::SUCCESS);
    }
    if before == status {
        ui.print(&format!("#{short} is {status} already\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{status} #{short} \"{}\"\n", one_line(&entry.title));
    if !due.is_empty() {
        text.push_str("Worth a look, now that it is done:\n");
    }
    for entry in due.iter().take(LIST_LENGTH) {
        let short = Context::short(&index, entry.id());
        text.push_str(&format!("{}\n", ui::note_line(entry, &short, now)));
    }
    let back = word_of(before);
    text.push_str(&format!("Undo: anamnesis task {back} {short}\n"));
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
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
            ("/memory-task done", Some(Asked::Add("done"))),
            (
                "/memory-task finish 9HKD3T",
                Some(Asked::Add("finish 9HKD3T")),
            ),
            ("/memory-task", None),
            ("/memory-tasks done 9HKD3T", None),
            ("please /memory-task done 9HKD3T", None),
        ] {
            assert_eq!(asked_for(prompt), asked, "{prompt}");
        }
    }
}
