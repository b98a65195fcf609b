//! Whether Anamnesis is switched off, and by what.
//!
//! Off means that hooks keep nothing and give nothing: no record, no note, no line in the log. What a
//! person or an agent asks for by a command is done all the same.

use std::path::Path;

use anamnesis_store::project::Project;

use crate::context::Context;

/// What switches it off: the first that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// The environment.
    Variable,
    /// Settings that may say so, but cannot be understood.
    Settings,
    /// `pause --all`.
    Everywhere,
    /// A pattern of excluded folders.
    Folder,
    /// `pause`.
    Project,
}

impl Off {
    /// Why it is off, in a few words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Variable => "ANAMNESIS_OFF is set",
            Self::Settings => "config.json cannot be understood",
            Self::Everywhere => "paused everywhere",
            Self::Folder => "this folder is excluded",
            Self::Project => "paused here",
        }
    }

    /// How to go on.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Variable => "unset ANAMNESIS_OFF",
            Self::Settings => "mend config.json",
            Self::Everywhere => "anamnesis resume --all",
            Self::Folder => "take its pattern out of `exclude` in config.json",
            Self::Project => "anamnesis resume",
        }
    }
}

/// Tells what switches it off for a session in any of these folders, if something does.
///
/// The project is asked for only where some project is paused: finding it takes reading files.
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
    let exclusions = context.exclusions();
    if folders.iter().any(|folder| exclusions.excludes(folder)) {
        return Some(Off::Folder);
    }
    let is_paused = !config.paused.projects.is_empty()
        && (project().all_keys().iter()).any(|key| config.paused.names(key));
    is_paused.then_some(Off::Project)
}

/// Tells what switches it off where this process stands.
pub fn here(context: &Context) -> Option<Off> {
    let session = context.environment.project_folder.clone();
    let current = Context::current_folder();
    let folders: Vec<&Path> = session.iter().chain(&current).map(AsRef::as_ref).collect();
    why(context, &folders, || match folders.first() {
        Some(folder) => context.project_of(folder),
        None => context.project(None),
    })
}
