//! Which project a folder belongs to, and joining the keys of one project.

use std::{
    collections::BTreeMap,
    iter,
    path::{Path, PathBuf},
};

use anamnesis_note::{
    note::GLOBAL,
    usage_log::{Alias, Aliases},
};
use anamnesis_store::{
    index::Index,
    journal::Journal,
    project::{Hint, Identities, Project},
    usage_log::Receipts,
};

use crate::{
    Error,
    context::{Context, PATIENCE},
    environment::Environment,
};

/// A project with notes.
pub struct ListedProject {
    /// Its current key.
    pub key: String,
    /// Its other keys.
    pub also: Vec<String>,
    /// The number of its notes.
    pub notes: usize,
}

/// Opens the store for a person only. A repository could tell Claude to get another project's notes
/// for it.
pub fn open_for_person(environment: Environment) -> Result<Context, Error> {
    // HOOK-03
    if environment.is_agent {
        let refusal = "only a person can say which project's notes a folder has";
        return Err(Error::failed(refusal));
    }
    Context::open(environment)
}

/// Where the keys of projects are declared.
struct ProjectKeys<'a> {
    context: &'a Context,
    receipts: Receipts,
    machine: String,
    journal: Journal,
}

impl<'a> ProjectKeys<'a> {
    fn open(context: &'a Context) -> Result<Self, Error> {
        Ok(Self {
            context,
            receipts: Receipts::new(context.home.clone()),
            machine: context.machine_id(),
            journal: Journal::open(&context.home, PATIENCE)?,
        })
    }

    fn identities(&self) -> Identities<'_> {
        let now = self.context.environment.now;
        Identities::new(&self.journal, &self.receipts, &self.machine, now, PATIENCE)
    }
}

/// The other keys of a project, each with its source and the folder where it was found.
pub fn other_keys<'a>(
    context: &Context,
    project: &'a Project,
) -> Vec<(&'a str, String, Option<PathBuf>)> {
    if project.also.is_empty() {
        return Vec::new();
    }
    let keys = ProjectKeys::open(context).inspect_err(|failure| context.log(failure.message()));
    let reason = |other: &str| {
        let identities = keys.as_ref().ok()?.identities();
        identities.reason(&project.key, other).ok().flatten()
    };
    let others = project.also.iter().map(|other| match reason(other) {
        Some((reason, folder)) => (other.as_str(), reason, Some(folder)),
        None => (other.as_str(), "merged, or seen elsewhere".to_owned(), None),
    });
    others.collect()
}

/// Lists the projects with notes, and keys that may be one project.
pub fn list(context: &Context) -> Result<(Vec<ListedProject>, Vec<Hint>), Error> {
    let notes = context.index()?.counts()?.by_project;
    let keys = ProjectKeys::open(context)?;
    let aliases = keys.receipts.aliases();
    let mut projects: Vec<&str> = notes
        .keys()
        .map(String::as_str)
        .chain(aliases.keys())
        .map(|key| aliases.current(key))
        .filter(|key| *key != GLOBAL)
        .collect();
    projects.sort_unstable();
    projects.dedup();
    let listed = projects.into_iter().map(|key| ListedProject {
        key: key.to_owned(),
        also: aliases.others(key).map(str::to_owned).collect(),
        notes: amount(&notes, &aliases, key),
    });
    Ok((listed.collect(), keys.identities().hints()?))
}

/// Counts the notes of a project.
fn amount(notes: &BTreeMap<String, usize>, aliases: &Aliases, key: &str) -> usize {
    let keys = iter::once(key).chain(aliases.others(key));
    keys.filter_map(|key| notes.get(key)).sum()
}

/// Refuses a key for a new note that is most likely a mistake: no note has it, it is not this
/// folder's, and it has characters that only the name of a folder may bring into a key.
pub fn check_key(context: &Context, index: &Index, key: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/~+:@".contains(c);
    let is_known = || -> Result<bool, Error> {
        Ok(index.counts()?.by_project.contains_key(key) || context.project(None).key == key)
    };
    if !key.chars().all(is_plain) && !is_known()? {
        return Err(Error::usage(format!("no project has the key \"{key}\""))
            .hint("anamnesis project list   (a new key has letters, digits and . _ - / only)"));
    }
    Ok(())
}

/// Declares that a key is the same project as another. Returns the number of the project's notes;
/// `None` if the keys were one project already.
pub fn merge(context: &Context, key: &str, same_as: &str) -> Result<Option<usize>, Error> {
    if Alias::new(key, same_as).is_none() {
        return Err(Error::usage(format!(
            "\"{key}\" and \"{same_as}\" are not the keys of two projects"
        )));
    }
    let notes = context.index()?.counts()?.by_project;
    let keys = ProjectKeys::open(context)?;
    let aliases = keys.receipts.aliases();
    let here = context.project(None);
    let is_known = |key: &str| {
        amount(&notes, &aliases, key) > 0
            || aliases.others(key).next().is_some()
            || here.all_keys().iter().any(|own| own == key)
    };
    if let Some(unknown) = [key, same_as].into_iter().find(|key| !is_known(key)) {
        return Err(
            Error::failed(format!("no note belongs to a project \"{unknown}\""))
                .hint("anamnesis project list"),
        );
    }
    if !keys.identities().merge(key, same_as)? {
        return Ok(None);
    }
    Ok(Some(amount(&notes, &keys.receipts.aliases(), same_as)))
}

/// Reverts the merges of a key. Returns the keys that it was merged with.
pub fn split(context: &Context, key: &str) -> Result<Vec<String>, Error> {
    let others = ProjectKeys::open(context)?.identities().split(key)?;
    if others.is_empty() {
        return Err(Error::failed(format!("{key} is the same as no other key"))
            .hint("anamnesis project list"));
    }
    Ok(others)
}

/// Follows a marker file that names another project's key. Returns that key, if there is one.
pub fn trust(context: &Context, folder: &Path) -> Result<Option<String>, Error> {
    let user_home = context.environment.user_home.as_deref();
    Ok(ProjectKeys::open(context)?
        .identities()
        .trust(folder, user_home)?)
}
