//! When it is looked whether what notes cite is still there: by the deferred process once an hour, for
//! the project of the session that was last heard of, and by commands that tell of it.

use std::{path::Path, time::Duration};

use anamnesis_store::{
    citation::{self, Limits, Looked, Request},
    index::Index,
    journal::Journal,
    project::Project,
};

use crate::{context::Context, failure::Failure, pause};

/// How long a look is good for.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// How the name of the time of a project's last look begins.
const LOOKED: &str = "cited ";

/// Looks, if it is time to. A fault is a line in the log: nothing fails for it.
pub fn follow(context: &Context, journal: &Journal) {
    let sessions = journal.sessions(None, 1).unwrap_or_default();
    let Some(folder) = sessions.into_iter().find_map(|session| session.folder) else {
        return;
    };
    let folder = Path::new(&folder);
    if !folder.is_absolute() || !folder.is_dir() {
        return;
    }
    let project = context.known(Some(journal), folder).project;
    let now = context.environment.current_time().timestamp_millis();
    let last = journal.meta(&name_of(&project)).ok().flatten();
    let last: Option<i64> = last.and_then(|time| time.parse().ok());
    let is_recent = last.is_some_and(|last| {
        // A clock that was set back is no reason to wait for it.
        (0..i64::try_from(INTERVAL.as_millis()).unwrap_or(i64::MAX)).contains(&(now - last))
    });
    if is_recent || pause::why(context, &[folder], || project.clone()).is_some() {
        return;
    }
    if let Err(failure) = look(context, journal, &project, folder) {
        context.log(&format!("work: {}", failure.text()));
    }
}

/// Looks now, for the project of the folder that a command stands in. A fault is a line in the log: what
/// was found before is told all the same.
pub fn look_here(context: &Context) {
    let (Some(folder), Some(journal)) = (Context::current_folder(), context.journal()) else {
        return;
    };
    let project = context.known(Some(&journal), &folder).project;
    if let Err(failure) = look(context, &journal, &project, &folder) {
        context.log(failure.text().trim_end());
    }
}

fn look(
    context: &Context,
    journal: &Journal,
    project: &Project,
    folder: &Path,
) -> Result<Looked, Failure> {
    let now = context.environment.current_time();
    let request = Request {
        projects: &project.all_keys(),
        folder,
        now,
        limits: Limits::default(),
    };
    // Before the look: one that is killed each time would come again and again.
    journal.set_meta(&name_of(project), &now.timestamp_millis().to_string())?;
    let index = Index::open(&context.home)?;
    citation::look(journal, &index, &context.notes, &request)
        .map_err(|error| Failure::failed(error.to_string()))
}

fn name_of(project: &Project) -> String {
    format!("{LOOKED}{}", project.key)
}
