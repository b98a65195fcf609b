//! `move`, `pin`, `mute`: change a note's project or scope, and whether it is injected.

use anamnesis_app::{
    Error,
    context::Context,
    edit::{self, ChangedNote, MovedNote},
    format::quoted,
    project::check_known,
};
use anamnesis_note::{
    draft::safe_line,
    note::{Note, Scope, State},
    project_key,
};
use anamnesis_text::clean::one_line;

use crate::ui::{Outcome, Ui};

/// Move a note to another project, or keep it on this machine
#[derive(Debug, clap::Args)]
#[command(name = "move")]
pub(crate) struct MoveArgs {
    /// The note's id: six or more characters of its start or end
    id: String,
    /// The new project (`global` for all projects)
    #[arg(long, value_name = "KEY", required_unless_present = "scope")]
    project: Option<String>,
    /// `machine-local` keeps it on this machine, `portable` lets it sync
    #[arg(long, value_parser = str::parse::<Scope>)]
    scope: Option<Scope>,
    /// Move it to a project that has no note and no session yet
    #[arg(long, requires = "project")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Keep a note at the top
#[derive(Debug, clap::Args)]
pub(crate) struct PinArgs {
    /// The note's id: six or more characters of its start or end
    id: String,
    /// Remove the pin
    #[arg(long)]
    off: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Keep a note from being injected
///
/// A search still finds it.
#[derive(Debug, clap::Args)]
pub(crate) struct MuteArgs {
    /// The note's id: six or more characters of its start or end
    id: String,
    /// Allow it to be injected again
    #[arg(long)]
    off: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn move_note(args: &MoveArgs, context: &Context, ui: &Ui) -> Outcome {
    let project = args.project.as_deref().map(safe_line);
    if project.as_deref() == Some("") {
        return Err(Error::usage("--project is empty"));
    }
    if let Some(key) = project.as_deref().filter(|_| !args.force) {
        check_known(context, &context.index()?, key)?;
    }
    let moved = edit::move_note(context, &args.id, project.as_deref(), args.scope)?;
    let (entry, short) = (&moved.entry, &moved.short);
    let note = moved.stored.note();
    let place = project_key::shown(&note.project);
    let local = if note.scope == Scope::MachineLocal {
        ", this machine only"
    } else {
        ""
    };
    // It may have been the last one of its project.
    let force = match check_known(context, &context.index()?, &entry.project) {
        Ok(()) => "",
        Err(_) => " --force",
    };
    let text = format!(
        "#{short} applies to {place}{local}\nUndo: {}{force}\n",
        undo(short, &entry.project, entry.path.scope)
    );
    ui.done(args.json, MovedNote::from(&note), &text)
}

/// Returns the command that reverts the move.
fn undo(short: &str, project: &str, scope: Scope) -> String {
    let project = quoted(project);
    format!("anamnesis move {short} --project {project} --scope {scope}")
}

pub(crate) fn pin(args: &PinArgs, context: &Context, ui: &Ui) -> Outcome {
    let pinned = !args.off;
    let said = if pinned { "pinned" } else { "no longer pinned" };
    let back = if pinned { " --off" } else { "" };
    let undo = format!("pin {{}}{back}");
    mark((&args.id, args.json), context, ui, [said, &undo], |note| {
        note.pinned = pinned;
    })
}

pub(crate) fn mute(args: &MuteArgs, context: &Context, ui: &Ui) -> Outcome {
    let (from, to) = if args.off {
        (State::Muted, State::Active)
    } else {
        (State::Active, State::Muted)
    };
    let said = if args.off { "no longer muted" } else { "muted" };
    let back = if args.off { "" } else { " --off" };
    let undo = format!("mute {{}}{back}");
    mark((&args.id, args.json), context, ui, [said, &undo], |note| {
        // A proposal or a tombstone keeps its state.
        if note.state == from {
            note.state = to;
        }
    })
}

fn mark(
    (typed, json): (&str, bool),
    context: &Context,
    ui: &Ui,
    [said, undo]: [&str; 2],
    change: impl FnOnce(&mut Note),
) -> Outcome {
    let marked = edit::mark(context, typed, change)?;
    let short = &marked.short;
    let text = if marked.is_changed() {
        format!(
            "{said} #{short} \"{}\"\nUndo: anamnesis {}\n",
            one_line(&marked.entry.title),
            undo.replace("{}", short)
        )
    } else {
        format!("#{short} is unchanged\n")
    };
    let changed = ChangedNote {
        id: marked.entry.id().to_string(),
        changed: marked.is_changed(),
    };
    ui.done(json, &changed, &text)
}
