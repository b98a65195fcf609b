//! Decides when to check whether the files that notes cite still exist. The deferred process checks
//! the project of the latest session once an hour. Commands that report the result check at once.

use std::path::{Path, PathBuf};

use anamnesis_store::{
    citation::{self, Limits, Looked, Request},
    index::Index,
    journal::{self, Journal},
    project::Project,
};

use crate::{Error, context::Context, pause};

/// How long a check is valid, milliseconds.
const INTERVAL: i64 = 60 * 60 * 1000;

/// How many notes are checked when one is written.
const NEW: usize = 4;

/// The prefix of the journal key for the time of a project's last check.
const LOOKED: &str = "cited ";

/// Returns the project and the folder of the latest session, unless nothing is recorded there.
pub(crate) fn latest_project(context: &Context, journal: &Journal) -> Option<(Project, PathBuf)> {
    let sessions = journal.sessions(None, 1).unwrap_or_default();
    let folder = PathBuf::from(sessions.into_iter().find_map(|session| session.folder)?);
    if !folder.is_absolute() || !folder.is_dir() {
        return None;
    }
    let project = context.known(Some(journal), &folder).project;
    let off = pause::why(context, &[&folder], || project.clone());
    off.is_none().then_some((project, folder))
}

/// Checks citations if the last check is too old. Errors are only logged.
pub fn follow(context: &Context, journal: &Journal) {
    let Some((project, folder)) = latest_project(context, journal) else {
        return;
    };
    let now = context.environment.current_time().timestamp_millis();
    let last = journal.meta(&name_of(&project)).ok().flatten();
    let last: Option<i64> = last.and_then(|time| time.parse().ok());
    let is_recent = last.is_some_and(|last| !journal::is_over(last, INTERVAL, now));
    if is_recent {
        return;
    }
    if let Err(failure) = look_and_keep_time(context, journal, &project, &folder) {
        context.log(&format!("work: {}", failure.text()));
    }
}

/// Checks the project of the current folder now. Errors are only logged, because earlier results
/// can still be reported.
pub fn look_here(context: &Context) {
    let (Some(folder), Some(journal)) = (Context::current_folder(), context.journal()) else {
        return;
    };
    let project = context.known(Some(&journal), &folder).project;
    if let Err(failure) = look_and_keep_time(context, &journal, &project, &folder) {
        context.log(failure.text().trim_end());
    }
}

/// Checks the notes of the current folder's project that were just written. What they cite has to be seen
/// once before it can be gone. Errors are only logged.
pub fn look_at_new(context: &Context, journal: &Journal) {
    let Some(folder) = Context::current_folder() else {
        return;
    };
    let project = context.known(Some(journal), &folder).project;
    // Notes that were never checked come first.
    let limits = Limits {
        notes: NEW,
        ..Limits::default()
    };
    if let Err(failure) = look(context, journal, &project, &folder, limits) {
        context.log(failure.text().trim_end());
    }
}

fn look_and_keep_time(
    context: &Context,
    journal: &Journal,
    project: &Project,
    folder: &Path,
) -> Result<Looked, Error> {
    // Stored before the check, so that a check that gets killed is not retried at once.
    let now = context.environment.current_time().timestamp_millis();
    journal.set_meta(&name_of(project), &now.to_string())?;
    look(context, journal, project, folder, Limits::default())
}

fn look(
    context: &Context,
    journal: &Journal,
    project: &Project,
    folder: &Path,
    limits: Limits,
) -> Result<Looked, Error> {
    let request = Request {
        // What the notes of the repository around cite is not in this folder.
        projects: &project.own_keys(),
        folder,
        now: context.environment.current_time(),
        limits,
    };
    let index = Index::open(&context.home)?;
    citation::look(journal, &index, &context.notes, &request).map_err(Error::caused_by)
}

fn name_of(project: &Project) -> String {
    format!("{LOOKED}{}", project.key)
}
