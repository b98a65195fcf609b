//! The history of projects as memory: when the deferred process reads a repository, and where commits are
//! searched.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use anamnesis_note::{id::NoteId, purge_pattern::PurgePattern};
use anamnesis_recall::{
    project_history::{FoundCommit, at_prompt, line, search},
    rank::Query,
};
use anamnesis_store::{
    index::Index,
    journal::{COMMIT, Evidence, Journal, ShownNote},
    project::Project,
    project_history::{Commits, ProjectRepository},
};

use crate::{Error, citation_check, context::Context};

/// Timeout for other processes that write the index or the commits.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long commits are read at once. The next process continues.
const READ_TIME: Duration = Duration::from_secs(20);

/// The prefix of the journal key for a project whose history was looked for.
const LOOKED: &str = "history ";

/// The journal key of the ids of commits that are not indexed, because a purge removed their text.
const LEFT_OUT: &str = "commits_left_out";

/// Returns whether no process has looked for the history of a project yet.
pub fn is_unread(journal: &Journal, project: &Project) -> bool {
    let looked = journal.meta(&name_of(project));
    looked.is_ok_and(|looked| looked.is_none())
}

fn name_of(project: &Project) -> String {
    format!("{LOOKED}{}", project.key)
}

/// Reads what is new in the repository of the latest session: its commits, and what became of the branches
/// that notes name. Errors are only logged.
pub fn follow(context: &Context, journal: &Journal) {
    let has_history = context.config.recall.history;
    if !has_history {
        context.log_error("work", Commits::remove(&context.home));
    }
    let Some((project, folder)) = citation_check::latest_project(context, journal) else {
        return;
    };
    if is_unread(journal, &project) {
        let now = context.environment.current_time().timestamp_millis();
        let _ = journal.set_meta(&name_of(&project), &now.to_string());
    }
    let Some(repository) = ProjectRepository::around(&folder) else {
        return;
    };
    if has_history {
        let read = read_commits(context, journal, &project, &repository);
        context.log_error("work", read);
    }
    context.log_error("work", read_branches(context, &project, &repository));
}

fn read_commits(
    context: &Context,
    journal: &Journal,
    project: &Project,
    repository: &ProjectRepository,
) -> Result<(), Error> {
    let tips = repository.tips();
    let mut commits = Commits::open_to_write(&context.home, TIMEOUT).map_err(Error::caused_by)?;
    if commits
        .has_read(&project.key, &tips)
        .map_err(Error::caused_by)?
    {
        return Ok(());
    }
    let current = repository.commits(&tips).map_err(Error::caused_by)?;
    let known = commits.ids(&project.key).map_err(Error::caused_by)?;
    let left_out = left_out(journal)?;
    let is_new = |id: &&String| !known.contains(*id) && !left_out.contains(*id);
    let new: Vec<String> = current.iter().filter(is_new).cloned().collect();
    let current: HashSet<String> = current.into_iter().collect();
    let gone: Vec<&String> = known.difference(&current).collect();
    let read = repository.read(&new, Instant::now() + READ_TIME);
    let tips = if read.len() == new.len() {
        tips
    } else {
        Vec::new()
    };
    let updated = commits.update(&project.key, &tips, &gone, &read);
    updated.map_err(Error::caused_by)
}

fn left_out(journal: &Journal) -> Result<Vec<String>, Error> {
    let ids = journal.meta(LEFT_OUT)?.unwrap_or_default();
    Ok(ids.split_whitespace().map(str::to_owned).collect())
}

/// Stores what became of the branches that notes name, if it is new.
fn read_branches(
    context: &Context,
    project: &Project,
    repository: &ProjectRepository,
) -> Result<(), Error> {
    let machine = context.machine_id();
    for key in project.own_keys() {
        let named = Index::open(&context.home)?.branches(&key, &machine)?;
        let found = repository.states_of(&named).into_iter();
        let changed: Vec<_> = found.filter(|found| !named.contains(found)).collect();
        if !changed.is_empty() {
            Index::open_if_usable(&context.home, TIMEOUT)?.set_branches(&key, &changed)?;
        }
    }
    Ok(())
}

/// Finds the commits of a project that answer a prompt, which the session was not shown yet, with their
/// records. A record names the session's own note, because a commit has no note of its own.
pub fn for_prompt(
    context: &Context,
    journal: Option<&Journal>,
    project: &Project,
    session: &str,
    prompt: &Query,
) -> Result<(Vec<FoundCommit>, Vec<ShownNote>), Error> {
    let question = prompt.about_the_past();
    if question.text().is_empty() || !context.config.recall.history {
        return Ok((Vec::new(), Vec::new()));
    }
    let Some(commits) = Commits::open(&context.home) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let shown = journal.map(|journal| journal.commits_shown(session));
    let shown = shown.transpose()?.unwrap_or_default();
    let found = at_prompt(&commits, &project.all_keys(), &question, &shown);
    let found = found.map_err(Error::caused_by)?;
    let records = found.iter().map(|found| ShownNote {
        note: NoteId::of_session(session),
        hash: found.commit.id.clone(),
        level: COMMIT,
        reason: "the project's history",
        evidence: Some(Evidence {
            matched: found.matched.clone(),
            coverage: f64::from(found.coverage),
            ..Evidence::default()
        }),
    });
    let records = records.collect();
    Ok((found, records))
}

/// Returns the lines of the commits of a project that answer a search; none if they cannot be searched.
pub fn for_search(context: &Context, project: &Project, text: &str) -> Vec<String> {
    let commits = Commits::open(&context.home).filter(|_| context.config.recall.history);
    let found = commits.map(|commits| search(&commits, &project.all_keys(), text));
    match found.transpose() {
        Ok(found) => found
            .unwrap_or_default()
            .iter()
            .map(FoundCommit::line)
            .collect(),
        Err(error) => {
            context.log(&error.to_string());
            Vec::new()
        }
    }
}

/// Returns the line of a commit, or its id if it is no longer indexed.
pub fn line_of(context: &Context, id: &str) -> String {
    let commits = Commits::open(&context.home);
    let commit = commits.and_then(|commits| commits.find(id).ok().flatten());
    commit.map_or_else(|| id.to_owned(), |commit| line(&commit))
}

/// Returns the ids of the indexed commits that have a text.
pub(crate) fn commits_with(context: &Context, text: &PurgePattern) -> Vec<String> {
    let commits = Commits::open(&context.home);
    let found = commits.and_then(|commits| commits.with_text(text).ok());
    found.unwrap_or_default()
}

/// Removes the index of commits, and leaves these out of it from now on. The caller holds the lock of the
/// deferred process.
pub(crate) fn leave_out(context: &Context, journal: &Journal, ids: &[String]) -> Result<(), Error> {
    let mut all = left_out(journal)?;
    all.extend_from_slice(ids);
    journal.set_meta(LEFT_OUT, &all.join(" "))?;
    Commits::remove(&context.home).map_err(Error::caused_by)
}
