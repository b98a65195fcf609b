//! `task`: manages tasks and their states.

use anamnesis_app::{
    context::Context,
    ops::task::{self, AddTask, ChangeTask, ListTasks, Task},
    project,
};
use anamnesis_note::note::{State, Status};
use anamnesis_text::clean::one_line;

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
    #[command(flatten)]
    request: AddTask,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List the open tasks
#[derive(Debug, Default, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    request: ListTasks,
    /// The maximum number of tasks
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "all", value_parser = ui::at_least_one)]
    limit: Option<usize>,
    /// List the tasks of every project
    #[arg(long)]
    everywhere: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ChangeArgs {
    #[command(flatten)]
    request: ChangeTask,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, context: &Context, ui: &Ui) -> Outcome {
    match args.act {
        None => list(ListArgs::default(), context, ui),
        Some(Act::Add(args)) => add(args, context, ui),
        Some(Act::List(args)) => list(args, context, ui),
        Some(Act::Start(args)) => change(args, Status::Active, context, ui),
        Some(Act::Done(args)) => change(args, Status::Done, context, ui),
        Some(Act::Archive(args)) => change(args, Status::Archived, context, ui),
        Some(Act::Reopen(args)) => change(args, Status::Pending, context, ui),
    }
}

fn add(mut args: AddArgs, context: &Context, ui: &Ui) -> Outcome {
    let is_asked = args.stdin || !ui::stdin_is_terminal();
    args.request.text = match args.text[..] {
        [] if is_asked => Some(read_text()?),
        [] => None,
        _ => Some(args.text.join(" ")),
    };
    let remark = project::remark_on_new(context, args.request.project.as_deref());
    let added = task::add(context, args.request);
    let added = added.map_err(|error| match error.next_step() {
        None => error.hint("anamnesis task add TEXT"),
        Some(_) => error,
    })?;
    ui.note(&remark.unwrap_or_default());
    ui.done(args.json, &added, added.said.as_deref().unwrap_or_default())
}

fn list(mut args: ListArgs, context: &Context, ui: &Ui) -> Outcome {
    let request = &mut args.request;
    if request.project.is_none() && !args.everywhere {
        request.project = Some(".".to_owned());
    }
    let short_list = Some(LIST_LENGTH).filter(|_| !args.json);
    request.limit = args.limit.or(short_list).or(Some(usize::MAX));
    let listed = task::list(context, request)?;
    if args.json {
        return ui.json(&listed);
    }
    let index = context.index()?;
    let lines = listed.tasks.iter().map(|task| {
        let short = Context::short(&index, task.note.id());
        line(task, &short, context)
    });
    let mut text: String = lines.collect();
    if listed.tasks.is_empty() {
        let place = match &request.project {
            Some(key) if key == "." => format!(" of {}", context.own_project()?.key),
            Some(key) => format!(" of {key}"),
            None => String::new(),
        };
        let is_any = request.all || request.status.is_some();
        let open = if is_any { "" } else { "open " };
        text = format!("0 {open}tasks{place}\n→ anamnesis task add TEXT\n");
    }
    let shown = listed.tasks.len();
    text.push_str(&ui::shown_of(shown, shown + listed.left, " · --all"));
    ui.page(&text, "")
}

/// Formats a task on one line: `9HKD3T  active    Remove the flag   you, 12 d`.
fn line(task: &Task, short: &str, context: &Context) -> String {
    let entry = &task.note.entry;
    let head = format!("{short}  {:<8}  ", task.status.as_str());
    let mut tail = format!(
        "{}, {}",
        entry.author(),
        ui::age_of(&entry.created_at, context.environment.now)
    );
    if entry.state != State::Active {
        tail = format!("{tail}, {}", entry.state);
    }
    let used = head.chars().count() + tail.chars().count() + 2;
    let room = ui::width().saturating_sub(used).max(16);
    let title = ui::shorten(&one_line(&entry.title), room);
    format!("{head}{title:<room$}  {tail}\n")
}

fn change(mut args: ChangeArgs, status: Status, context: &Context, ui: &Ui) -> Outcome {
    args.request.status = Some(status);
    let changed = task::change(context, args.request)?;
    let said = changed.said.as_deref().unwrap_or_default();
    let (said, undo) = said.split_once('\n').unwrap_or((said, ""));
    let mut text = format!("{said}\n");
    if !changed.review.is_empty() {
        text.push_str("May be outdated, now that it is done:\n");
        let index = context.index()?;
        for due in changed.review.iter().take(LIST_LENGTH) {
            text.push_str(&ui::listed(&index, &due.entry, context.environment.now));
        }
    }
    text.push_str(undo);
    ui.done(args.json, &changed, &text)
}
