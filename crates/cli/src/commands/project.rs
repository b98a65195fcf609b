//! `project`: shows a folder's project key and its source, and joins keys of one project.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anamnesis_app::{context::Context, environment::Environment, failure::Failure, upkeep::steps};
use anamnesis_distill::upkeep::chores::KeyMap;
use anamnesis_note::{
    note::GLOBAL,
    usage_log::{Alias, Aliases},
};
use anamnesis_store::{
    journal::Journal,
    project::{Identities, Project, Step},
    usage_log::Receipts,
};
use anamnesis_text::clean::one_line;
use serde_json::json;

use super::bulk::{self, Apply};
use crate::ui::{self, Outcome, Ui};

/// Timeout for the journal and the usage log.
const PATIENCE: Duration = Duration::from_secs(10);

/// Show the project of a folder and how its key was found
///
/// Notes are kept by project. The key comes from the first of: the file .anamnesis/project here or
/// in a parent folder, the git remote `origin`, the repository's folder, the folder itself. If the
/// remote, the folder's name or the file changes, older notes still belong to the project.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The folder [default: this one]
    folder: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the projects with notes, and keys that may be one project
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Declare that a key is the same project as another
    Merge {
        /// The key to merge
        key: String,
        /// The current key of the project
        same_as: String,
    },
    /// Undo a merge of project keys
    Split {
        /// The key to separate
        key: String,
    },
    /// Move notes to other projects, by a list of keys
    ///
    /// The list is JSON: {"projects": {"OLD": "NEW"}, "notes": {"ID": "NEW"}}; an entry for a note
    /// overrides that for its project. If only the key of a project changed, `project merge` is
    /// enough and changes no note.
    Migrate {
        /// The file with the list
        #[arg(long, value_name = "FILE")]
        map: PathBuf,
        #[command(flatten)]
        apply: Apply,
    },
    /// Follow a .anamnesis/project file that names another project's key
    Trust {
        /// The folder [default: this one]
        folder: Option<PathBuf>,
    },
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    match &args.verb {
        None => show(args, &Context::of(environment, Duration::ZERO)?, ui),
        Some(Verb::List { json }) => list(*json, &Context::open(environment)?, ui),
        Some(Verb::Merge { key, same_as }) => merge(key, same_as, &for_a_person(environment)?, ui),
        Some(Verb::Split { key }) => split(key, &for_a_person(environment)?, ui),
        Some(Verb::Migrate { map, apply }) => migrate(map, apply, &Context::open(environment)?, ui),
        Some(Verb::Trust { folder }) => trust(folder.as_deref(), &for_a_person(environment)?, ui),
    }
}

/// Opens the store for a person only. A repository could tell Claude to get another project's notes
/// for it.
fn for_a_person(environment: Environment) -> Result<Context, Failure> {
    // HOOK-03
    if environment.is_agent {
        let refusal = "only a person can say which project's notes a folder has";
        return Err(Failure::failed(refusal));
    }
    Context::open(environment)
}

fn absolute(folder: Option<&Path>) -> Result<PathBuf, Failure> {
    match folder {
        Some(folder) => std::path::absolute(folder)
            .map_err(|error| Failure::usage(format!("{} is no folder: {error}", folder.display()))),
        None => Ok(Context::current_folder().unwrap_or_default()),
    }
}

fn show(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let folder = absolute(args.folder.as_deref())?;
    let project = context.project_of(&folder);
    let (step, place) = explain(&project);
    let also = reasons(context, &project);
    if args.json {
        let also: Vec<_> = also
            .iter()
            .map(|(key, reason, _)| json!({ "key": key, "because": reason }))
            .collect();
        ui.json(&json!({
            "key": project.key,
            "step": step_word(&project.step),
            "from": place.map(|place| place.display().to_string()),
            "folder": folder.display().to_string(),
            "also": also,
            "untrusted": project.untrusted,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let home = context.environment.user_home.as_deref();
    let place = place.map_or_else(String::new, |place| {
        format!(" {}", ui::home_path(place, home))
    });
    let mut text = format!(
        "{}\nfrom {step}{place}\nfolder {}\n",
        project.key,
        ui::home_path(&folder, home)
    );
    for (key, reason, folder) in &also {
        let folder = folder.as_deref().map(|folder| ui::home_path(folder, home));
        let folder = folder.map_or_else(String::new, |folder| format!(" in {folder}"));
        text.push_str(&format!("also {key}: {reason}{folder}\n"));
    }
    if let Some(key) = &project.untrusted {
        text.push_str(&format!(
            "the marker says {key}, which is another project's: not followed\n\
             → anamnesis project trust   (gives this folder the notes of {key})\n"
        ));
    }
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

/// The other keys of a project, each with its source and the folder where it was found.
fn reasons<'a>(context: &Context, project: &'a Project) -> Vec<(&'a str, String, Option<PathBuf>)> {
    if project.also.is_empty() {
        return Vec::new();
    }
    let receipts = Receipts::new(context.home.clone());
    let journal = context.journal();
    let reason = |other: &str| {
        let identities = identities(context, journal.as_ref()?, &receipts, "");
        identities.reason(&project.key, other).ok().flatten()
    };
    project
        .also
        .iter()
        .map(|other| match reason(other) {
            Some((reason, folder)) => (other.as_str(), reason, Some(folder)),
            None => (other.as_str(), "merged, or seen elsewhere".to_owned(), None),
        })
        .collect()
}

fn identities<'a>(
    context: &Context,
    journal: &'a Journal,
    receipts: &'a Receipts,
    machine: &'a str,
) -> Identities<'a> {
    Identities::new(
        journal,
        receipts,
        machine,
        context.environment.now,
        PATIENCE,
    )
}

fn list(json: bool, context: &Context, ui: &Ui) -> Outcome {
    let notes = context.index()?.counts()?.by_project;
    let receipts = Receipts::new(context.home.clone());
    let aliases = receipts.aliases();
    let journal = Journal::open(&context.home, PATIENCE)?;
    let hints = identities(context, &journal, &receipts, "").hints()?;
    let mut projects: Vec<&str> = notes
        .keys()
        .map(String::as_str)
        .chain(aliases.keys())
        .map(|key| aliases.current(key))
        .filter(|key| *key != GLOBAL)
        .collect();
    projects.sort_unstable();
    projects.dedup();
    let amount = |key: &str| amount(&notes, &aliases, key);
    if json {
        let projects: Vec<_> = projects
            .iter()
            .map(|key| {
                let also: Vec<_> = aliases.others(key).collect();
                json!({ "key": key, "notes": amount(key), "also": also })
            })
            .collect();
        let hints: Vec<_> = hints
            .iter()
            .map(|hint| json!({ "keys": [hint.one, hint.other], "because": hint.reason }))
            .collect();
        ui.json(&json!({ "projects": projects, "may_be_one": hints }));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for key in &projects {
        let also: Vec<_> = aliases.others(key).collect();
        let also = if also.is_empty() {
            String::new()
        } else {
            format!(" · also {}", also.join(", "))
        };
        text.push_str(&format!(
            "{key}  {}{also}\n",
            ui::count(amount(key), "note")
        ));
    }
    if projects.is_empty() {
        text.push_str("0 projects\n");
    }
    for hint in &hints {
        let (one, other) = (&hint.one, &hint.other);
        text.push_str(&format!(
            "{one} and {other} may be one: {}\n→ anamnesis project merge {other} {one}\n",
            hint.reason
        ));
    }
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

/// Formats the number of notes of a project.
fn amount(
    notes: &std::collections::BTreeMap<String, usize>,
    aliases: &Aliases,
    key: &str,
) -> usize {
    let keys = std::iter::once(key).chain(aliases.others(key));
    keys.filter_map(|key| notes.get(key)).sum()
}

fn merge(key: &str, same_as: &str, context: &Context, ui: &Ui) -> Outcome {
    if Alias::new(key, same_as).is_none() {
        return Err(Failure::usage(format!(
            "\"{key}\" and \"{same_as}\" are not the keys of two projects"
        )));
    }
    let notes = context.index()?.counts()?.by_project;
    let (machine, receipts) = (context.machine_id(), Receipts::new(context.home.clone()));
    let journal = Journal::open(&context.home, PATIENCE)?;
    if !identities(context, &journal, &receipts, &machine).merge(key, same_as)? {
        ui.print(&format!("{key} and {same_as} are one project already\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let amount = amount(&notes, &receipts.aliases(), same_as);
    ui.print(&format!(
        "{key} is now the same project as {same_as}: {} · Undo: anamnesis project split {key}\n",
        ui::count(amount, "note")
    ));
    Ok(ExitCode::SUCCESS)
}

fn split(key: &str, context: &Context, ui: &Ui) -> Outcome {
    let (machine, receipts) = (context.machine_id(), Receipts::new(context.home.clone()));
    let journal = Journal::open(&context.home, PATIENCE)?;
    let others = identities(context, &journal, &receipts, &machine).split(key)?;
    if others.is_empty() {
        return Err(
            Failure::failed(format!("{key} is the same as no other key"))
                .hint("anamnesis project list"),
        );
    }
    ui.print(&format!(
        "{key} is no longer the same project as {}\n",
        others.join(", ")
    ));
    Ok(ExitCode::SUCCESS)
}

fn migrate(path: &Path, apply: &Apply, context: &Context, ui: &Ui) -> Outcome {
    apply.check(context)?;
    let shown = one_line(&path.display().to_string());
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {shown}: {error}")))?;
    let map = KeyMap::parse(&text)
        .map_err(|error| Failure::usage(one_line(&format!("{shown}: {error}"))))?;
    bulk::carry_out(
        steps::migrate(context, &map)?,
        ("note(s)", "changed"),
        apply,
        ui,
    )
}

fn trust(folder: Option<&Path>, context: &Context, ui: &Ui) -> Outcome {
    let folder = absolute(folder)?;
    let receipts = Receipts::new(context.home.clone());
    let journal = Journal::open(&context.home, PATIENCE)?;
    let user_home = context.environment.user_home.as_deref();
    match identities(context, &journal, &receipts, "").trust(&folder, user_home)? {
        Some(key) => ui.print(&format!("this folder has the notes of {key} from now on\n")),
        None => ui.print("nothing to trust: the key of this folder is its own\n"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The source of the key, for scripts.
fn step_word(step: &Step) -> &'static str {
    match step {
        Step::Marker(_) => "marker",
        Step::Remote(_) => "remote",
        Step::Repository(_) => "repository",
        Step::Folder => "folder",
        Step::Nothing => "nothing",
        Step::Named => "named",
    }
}

/// The source of the key in words, and the file it was read from.
pub(super) fn explain(project: &Project) -> (&'static str, Option<&PathBuf>) {
    match &project.step {
        Step::Marker(path) => ("the marker", Some(path)),
        Step::Remote(root) => ("the git remote of", Some(root)),
        Step::Repository(root) => ("the name of the repository", Some(root)),
        Step::Folder => ("the name of the folder", None),
        Step::Nothing => ("nothing: there is no name to go by", None),
        Step::Named => ("the command line", None),
    }
}
