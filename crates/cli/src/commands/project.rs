//! `project`: the key of a folder and how it was told.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anamnesis_store::project::{Project, Step};
use serde_json::json;

use super::Outcome;
use crate::{context::Context, environment::Environment, failure::Failure, ui, ui::Ui};

/// Show the project of a folder and how it was told
///
/// Notes are kept by project. Its key comes from the first of: the file .anamnesis/project here or
/// above, the git remote `origin`, the repository's folder, the folder itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder [default: this one]
    folder: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    let context = Context::of(environment, Duration::ZERO)?;
    let folder = match &args.folder {
        Some(folder) => std::path::absolute(folder).map_err(|error| {
            Failure::usage(format!("{} is no folder: {error}", folder.display()))
        })?,
        None => Context::current_folder().unwrap_or_default(),
    };
    let project = context.project_of(&folder);
    let (step, place) = explain(&project);
    if args.json {
        let place = place.map(|place| place.display().to_string());
        ui.json(&json!({ "key": project.key, "step": step_word(&project.step), "from": place, "folder": folder.display().to_string() }));
        return Ok(ExitCode::SUCCESS);
    }
    let home = context.environment.user_home.as_deref();
    let place = place.map_or_else(String::new, |place| {
        format!(" {}", ui::home_path(place, home))
    });
    ui.print(&format!(
        "{}\nfrom {step}{place}\nfolder {}\n",
        project.key,
        ui::home_path(&folder, home)
    ));
    Ok(ExitCode::SUCCESS)
}

/// Which step gave the key, as scripts are told it.
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

/// Which step gave the key, in words, and the place it was read from.
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
