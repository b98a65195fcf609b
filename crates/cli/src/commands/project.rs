//! `project`: shows a folder's project key and its source, and joins keys of one project.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_app::{
    Error,
    context::Context,
    environment::Environment,
    project::{self, ListedGroup, ListedProject, PossibleMerge, ProjectOfFolder},
    upkeep::steps,
};
use anamnesis_distill::upkeep::chores::KeyMap;
use anamnesis_note::project_key;
use anamnesis_store::project::{Project, Step};
use anamnesis_text::clean::one_line;

use super::bulk::{self, Apply};
use crate::ui::{self, ListLength, Outcome, Ui};

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
    #[arg(long, global = true, display_order = 100)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the projects with notes, the groups, and keys that may be one project
    List {
        #[command(flatten)]
        length: ListLength,
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
    /// Show or change a group of projects that share notes
    ///
    /// A note of a group applies to each of its projects. Write one with `write --project group:NAME`,
    /// or move one with `move ID --project group:NAME`.
    Group {
        /// The name of the group
        name: String,
        /// The keys of projects to add; . is this folder's
        keys: Vec<String>,
        /// Take a project out of the group (may be repeated)
        #[arg(long, value_name = "KEY")]
        remove: Vec<String>,
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
    let json = args.json;
    match &args.verb {
        None => show(args, &Context::new(environment, Duration::ZERO)?, ui),
        Some(Verb::List { length }) => list(length.limit(), json, &Context::open(environment)?, ui),
        Some(Verb::Merge { key, same_as }) => ui.saying(json, |ui| {
            merge(key, same_as, &project::open_for_person(environment)?, ui)
        }),
        Some(Verb::Split { key }) => ui.saying(json, |ui| {
            split(key, &project::open_for_person(environment)?, ui)
        }),
        Some(Verb::Group { name, keys, remove }) => {
            group(name, keys, remove, json, environment, ui)
        }
        Some(Verb::Migrate { map, apply }) => ui.saying(json, |ui| {
            migrate(map, apply, &Context::open(environment)?, ui)
        }),
        Some(Verb::Trust { folder }) => ui.saying(json, |ui| {
            let context = project::open_for_person(environment)?;
            trust(folder.as_deref(), &context, ui)
        }),
    }
}

fn absolute(folder: Option<&Path>) -> Result<PathBuf, Error> {
    match folder {
        Some(folder) => std::path::absolute(folder).map_err(|error| {
            Error::usage(format!("{} is no folder: {error}", folder.display())).because(error)
        }),
        None => Ok(Context::current_folder().unwrap_or_default()),
    }
}

fn show(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let folder = absolute(args.folder.as_deref())?;
    let project = context.project_of(&folder);
    let (word, step, place) = explain(&project);
    let shown = ProjectOfFolder {
        key: &project.key,
        step: word,
        from: place.map(PathBuf::as_path),
        folder: &folder,
        also: project::other_keys(&project),
        groups: (project.also.iter())
            .filter_map(|key| project_key::group_name(key))
            .collect(),
        inside: &project.around,
        untrusted: project.untrusted.as_deref(),
    };
    if args.json {
        return ui.json(&shown);
    }
    let place = place.map_or_else(String::new, |place| format!(" {}", context.shown(place)));
    let mut text = format!(
        "{}\nfrom {step}{place}\nfolder {}\n",
        project.key,
        context.shown(&folder)
    );
    for name in &shown.groups {
        text.push_str(&format!("in group {name}\n"));
    }
    for key in &project.around {
        text.push_str(&format!("inside {key}: sessions here get its notes, too\n"));
    }
    for key in &shown.also {
        text.push_str(&format!("also {key}\n"));
    }
    if let Some(key) = &project.untrusted {
        text.push_str(&format!(
            "the marker says {key}, which is another project's: not followed\n\
             → anamnesis project trust   (gives this folder the notes of {key})\n"
        ));
    }
    ui.answer(&text)
}

fn list(limit: usize, json: bool, context: &Context, ui: &Ui) -> Outcome {
    let mut list = project::list(context)?;
    list.projects.truncate(limit);
    if json {
        return ui.json(&list);
    }
    let mut text = String::new();
    for ListedProject { key, also, notes } in &list.projects {
        let also = match also.join(", ") {
            none if none.is_empty() => none,
            also => format!(" · also {also}"),
        };
        text.push_str(&format!("{key}  {}{also}\n", ui::count(*notes, "note")));
    }
    if list.projects.is_empty() {
        text.push_str("0 projects\n");
    }
    for listed in &list.groups {
        text.push_str(&group_line(listed));
    }
    if let Some(PossibleMerge { keys, because }) = &list.may_be_one {
        let [here, other] = keys;
        text.push_str(&format!(
            "{here} and {other} may be one: {because}\n→ anamnesis project merge {other} {here}\n"
        ));
    }
    ui.answer(&text)
}

fn merge(key: &str, same_as: &str, context: &Context, ui: &Ui) -> Outcome {
    ui.answer(&match project::merge(context, key, same_as)? {
        None => format!("{key} and {same_as} are one project already\n"),
        Some(notes) => format!(
            "{key} is now the same project as {same_as}: {} · Undo: anamnesis project split {key}\n",
            ui::count(notes, "note")
        ),
    })
}

fn split(key: &str, context: &Context, ui: &Ui) -> Outcome {
    let others = project::split(context, key)?.join(", ");
    ui.answer(&format!(
        "{key} is no longer the same project as {others}\n"
    ))
}

/// Shows a group, after changing it if projects are named.
fn group(
    name: &str,
    keys: &[String],
    remove: &[String],
    json: bool,
    environment: Environment,
    ui: &Ui,
) -> Outcome {
    let context = match (keys, remove) {
        ([], []) => Context::open(environment)?,
        _ => project::open_for_person(environment)?,
    };
    let changed = project::change_group(&context, name, keys, remove)?;
    if json {
        return ui.json(&changed.group);
    }
    let mut text = group_line(&changed.group);
    let (added, removed) = (changed.added, changed.removed);
    if !added.is_empty() || !removed.is_empty() {
        let back = removed.iter().map(|key| format!(" {key}"));
        let away = added.iter().map(|key| format!(" --remove {key}"));
        let back: String = back.chain(away).collect();
        text.push_str(&format!("Undo: anamnesis project group {name}{back}\n"));
    }
    ui.answer(&text)
}

fn group_line(group: &ListedGroup) -> String {
    let projects = match group.projects.join(", ") {
        none if none.is_empty() => "no projects".to_owned(),
        projects => projects,
    };
    let notes = ui::count(group.notes, "note");
    format!("{}  {notes} · {projects}\n", group.key)
}

fn migrate(path: &Path, apply: &Apply, context: &Context, ui: &Ui) -> Outcome {
    apply.check(context)?;
    let shown = one_line(&path.display().to_string());
    let text = fs::read_to_string(path)
        .map_err(|error| Error::usage(format!("cannot read {shown}: {error}")).because(error))?;
    let map = KeyMap::parse(&text)
        .map_err(|error| Error::usage(one_line(&format!("{shown}: {error}"))))?;
    bulk::carry_out(
        steps::migrate(context, &map)?,
        ("note", "changed"),
        apply,
        ui,
    )
}

fn trust(folder: Option<&Path>, context: &Context, ui: &Ui) -> Outcome {
    ui.answer(&match project::trust(context, &absolute(folder)?)? {
        Some(key) => format!("this folder has the notes of {key} from now on\n"),
        None => "nothing to trust: the key of this folder is its own\n".to_owned(),
    })
}

/// The source of the key in a word for scripts and in words for people, and the file it was read from.
pub(super) fn explain(project: &Project) -> (&'static str, &'static str, Option<&PathBuf>) {
    match &project.step {
        Step::Marker(path) => ("marker", "the marker", Some(path)),
        Step::Remote(root) => ("remote", "the git remote of", Some(root)),
        Step::Repository(root) => ("repository", "the name of the repository", Some(root)),
        Step::Folder => ("folder", "the name of the folder", None),
        Step::Nothing => ("nothing", "nothing: there is no name to go by", None),
        Step::Named => ("named", "the command line", None),
    }
}
