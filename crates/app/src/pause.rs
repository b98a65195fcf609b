//! Whether recording and recall are switched off, and by what.
//!
//! While off, hooks record and inject nothing and write no log line. Commands and tools still work.

use std::path::Path;

use anamnesis_store::{
    project::Project,
    settings::config::{Config, Headless, Paused},
};
use serde::Serialize;

use crate::{Error, context::Context};

/// The reason why the hooks are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// The environment variable.
    Variable,
    /// Settings that cannot be parsed, and might say so.
    Settings,
    /// `pause --all`.
    Everywhere,
    /// A pattern of excluded folders.
    Folder,
    /// The setting for sessions of `claude -p`.
    Headless,
    /// `pause`.
    Project,
}

impl Off {
    /// The reason in a few words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Variable => "ANAMNESIS_OFF is set",
            Self::Settings => "config.json cannot be understood",
            Self::Everywhere => "paused everywhere",
            Self::Folder => "this folder is excluded",
            Self::Headless => "recording.headless is off",
            Self::Project => "paused here",
        }
    }

    /// How to switch it on again.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Variable => "unset ANAMNESIS_OFF",
            Self::Settings => "fix config.json",
            Self::Everywhere => "anamnesis on --all",
            Self::Folder => "see `exclude` and `recording.only`: anamnesis config list",
            Self::Headless => "anamnesis config unset recording.headless",
            Self::Project => "anamnesis on",
        }
    }
}

/// The state after `off` or `on`.
#[derive(Serialize)]
pub struct PauseOutcome<'a> {
    /// The project; none for all.
    pub project: Option<&'a str>,
    /// Whether something switches the hooks off.
    pub off: bool,
}

/// Returns what switches the hooks off for a session in any of these folders.
///
/// `project` is called only if some project is paused, because recognising a project reads files.
pub fn why(context: &Context, folders: &[&Path], project: impl FnOnce() -> Project) -> Option<Off> {
    let config = &context.config;
    if context.environment.is_off {
        return Some(Off::Variable);
    }
    if config.is_unclear {
        return Some(Off::Settings);
    }
    if config.paused.everywhere {
        return Some(Off::Everywhere);
    }
    if context.environment.is_headless && config.recording.headless == Headless::Off {
        return Some(Off::Headless);
    }
    let exclusions = context.exclusions();
    if folders.iter().any(|folder| exclusions.excludes(folder)) {
        return Some(Off::Folder);
    }
    let is_paused = !config.paused.projects.is_empty()
        && (project().all_keys().iter()).any(|key| config.paused.names(key));
    is_paused.then_some(Off::Project)
}

/// Returns what switches the hooks off in the current folder or the session's project.
pub fn here(context: &Context) -> Option<Off> {
    let session = context.environment.project_folder.clone();
    let current = Context::current_folder();
    let folders: Vec<&Path> = session.iter().chain(&current).map(AsRef::as_ref).collect();
    why(context, &folders, || match folders.first() {
        Some(folder) => context.project_of(folder),
        None => context.project(None),
    })
}

/// Pauses a project, or everything. Returns what was paused before.
pub fn pause(context: &Context, project: Option<&str>) -> Result<Paused, Error> {
    Ok(Config::change_paused(
        &context.home,
        |paused| match project {
            None => paused.everywhere = true,
            Some(project) if !paused.names(project) => paused.projects.push(project.to_owned()),
            Some(_) => {}
        },
    )?)
}

/// Resumes a project, or everything but the projects paused by key. Returns what was paused before.
pub fn resume(context: &Context, project: Option<&str>) -> Result<Paused, Error> {
    context.check_person("resume recording")?;
    let before = Config::change_paused(&context.home, |paused| match project {
        None => paused.everywhere = false,
        Some(project) => paused.forget(project),
    })?;
    if let Some(journal) = context.journal() {
        // Text that a transcript has from before this time stays unread.
        journal.resumed(project, context.environment.now.timestamp_millis())?;
    }
    Ok(before)
}
