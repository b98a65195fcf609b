//! `task`: manages tasks and their states.
//!
//! A task is a note. Completing it does not change other notes, but lists those that may be
//! outdated now.

use std::process::ExitCode;

use anamnesis_app::{
    Error,
    context::Context,
    new_note,
    task::{self, ChangedTask, word_of},
};
use anamnesis_note::{
    draft::Draft,
    link::{Link, Relation},
    note::{State, Status},
};
use anamnesis_store::index::Entry;
use anamnesis_text::clean::one_line;
use serde_json::json;

use super::write;
use crate::{
    input::read_text,
    ui::{self, LIST_LENGTH, Outcome, Ui},
};

/// Manage tasks
///
/// A task is a note of this project. Open tasks are listed when a session starts.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    act: Option<Act>,
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    Add(AddArgs),
    List(ListArgs),
    /// Mark as in progress
    Start(ChangeArgs),
    /// Mark as finished
    Done(ChangeArgs),
    /// Archive it, finished or not
    Archive(ChangeArgs),
    /// Reopen it
    Reopen(ChangeArgs),
}

/// Add a task
///
/// The first line is its title. Secrets are masked, parts in `<private>` tags are left out.
#[derive(Debug, clap::Args)]
struct AddArgs {
    /// The text of the task [default: read from stdin]
    text: Vec<String>,
    /// Read the text from stdin
    #[arg(long, conflicts_with = "text")]
    stdin: bool,
    /// The id of a note that the task is about; repeatable
    #[arg(long, value_name = "ID")]
    about: Vec<String>,
    /// A tag; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// The project [default: that of this folder]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List the open tasks
#[derive(Debug, Default, clap::Args)]
struct ListArgs {
    /// Include finished and archived tasks, however many there are
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// The maximum number of tasks
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "all", value_parser = ui::at_least_one)]
    limit: Option<usize>,
    /// Only tasks in this state: pending, active, done or archived
    #[arg(long, value_parser = str::parse::<Status>)]
    status: Option<Status>,
    /// List the tasks of this project [default: that of this folder]
    #[arg(long, value_name = "KEY", conflicts_with = "everywhere")]
    project: Option<String>,
    /// List the tasks of every project
    #[arg(long)]
    everywhere: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ChangeArgs {
    /// The task's id: six or more characters of its start or end
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
            return Err(Error::usage("there is no text").hint("anamnesis task add TEXT"));
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
        links: about.collect::<Result<_, Error>>()?,
        ..Draft::task(text, write::project_of(args.project.as_deref(), context)?)
    };
    let note = draft
        .note(context.machine_id(), context.environment.now)
        .map_err(|error| Error::from(error).hint("anamnesis task add TEXT"))?;
    let saved = new_note::write(context, index, note, "task", &[], false)?;
    let json: write::Json = |entry, note| task_json(entry, note.status());
    Ok(write::print(ui, &saved, args.json.then_some(json)))
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
    let limit = args.limit.unwrap_or(LIST_LENGTH);
    let shown = if args.all { tasks.len() } else { limit };
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
    ui.page(&text, "");
    Ok(ExitCode::SUCCESS)
}

/// Formats a task on one line: `9HKD3T  active    Remove the flag   you, 12 d`.
fn line(entry: &Entry, status: Status, short: &str, context: &Context) -> String {
    let head = format!("{short}  {:<8}  ", status.as_str());
    let mut tail = format!(
        "{}, {}",
        entry.author(),
        ui::age_of(&entry.created_at, context.environment.now)
    );
    if entry.state != State::Active {
        tail = format!("{tail}, {}", entry.state);
    }
    let used = head.chars().count() + tail.chars().count() + 2;
    let room = ui::WIDTH.saturating_sub(used).max(16);
    let title = ui::shorten(&one_line(&entry.title), room);
    format!("{head}{title:<room$}  {tail}\n")
}

fn task_json(entry: &Entry, status: Status) -> serde_json::Value {
    let mut json = ui::note_json(entry, None);
    json["status"] = status.as_str().into();
    json
}

fn change(args: &ChangeArgs, status: Status, context: &Context, ui: &Ui) -> Outcome {
    let changed = task::change(context, &args.id, status)?;
    let ChangedTask {
        entry, short, due, ..
    } = &changed;
    if args.json {
        let mut json = task_json(entry, status);
        let due: Vec<String> = due.iter().map(|entry| entry.id().to_string()).collect();
        json["review"] = due.into();
        ui.json(&json);
        return Ok(ExitCode::SUCCESS);
    }
    if changed.before == status {
        ui.print(&format!("#{short} is {status} already\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{status} #{short} \"{}\"\n", one_line(&entry.title));
    if !due.is_empty() {
        text.push_str("May be outdated, now that it is done:\n");
    }
    for entry in due.iter().take(LIST_LENGTH) {
        let short = Context::short(&changed.index, entry.id());
        let line = ui::note_line(entry, &short, context.environment.now);
        text.push_str(&format!("{line}\n"));
    }
    let back = word_of(changed.before);
    text.push_str(&format!("Undo: anamnesis task {back} {short}\n"));
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}
