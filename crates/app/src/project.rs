//! Which project a folder belongs to, joining the keys of one project, and groups of projects.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    path::Path,
};

use anamnesis_note::{
    project_key::{group_name, is_shared, of_group, shown},
    synced_lines::{Alias, Aliases},
};
use anamnesis_store::{
    index::Index,
    journal::Journal,
    project::{Identities, Places, Project, Step},
    synced_lines,
};
use anamnesis_text::clean::one_line;
use serde::Serialize;

use crate::{
    Error,
    context::{Context, TIMEOUT},
    environment::Environment,
};

/// A project with notes.
#[derive(Debug, Serialize)]
pub struct ListedProject {
    /// Its current key.
    pub key: String,
    /// Its other keys.
    pub also: Vec<String>,
    /// The number of its notes.
    pub notes: usize,
}

/// A group of projects.
#[derive(Debug, Serialize)]
pub struct ListedGroup {
    /// Its key: `group:` and its name.
    pub key: String,
    /// The current keys of its projects, in order.
    pub projects: Vec<String>,
    /// The number of its notes.
    pub notes: usize,
}

/// Two keys that may be one project.
#[derive(Debug, Serialize)]
pub struct PossibleMerge {
    /// The key of the current folder, and the other one.
    pub keys: [String; 2],
    /// Why.
    pub because: &'static str,
}

/// The project of a folder.
#[derive(Debug, Serialize)]
pub struct ProjectOfFolder<'a> {
    /// Its key.
    pub key: &'a str,
    /// How the key was found.
    pub step: &'static str,
    /// The path where it was found.
    pub from: Option<&'a Path>,
    /// The folder.
    pub folder: &'a Path,
    /// Its other keys, without those of its groups.
    pub also: Vec<&'a String>,
    /// The names of its groups.
    pub groups: Vec<&'a str>,
    /// The projects that the folder is in; its sessions get their notes, too.
    pub inside: &'a [String],
    /// The key of a marker that is not followed.
    pub untrusted: Option<&'a str>,
}

/// The projects with notes.
#[derive(Debug, Serialize)]
pub struct ProjectList {
    /// The projects, by key.
    pub projects: Vec<ListedProject>,
    /// The groups that have projects or notes, by key.
    pub groups: Vec<ListedGroup>,
    /// The key of the current folder and one that may be the same project.
    pub may_be_one: Option<PossibleMerge>,
}

/// Opens the store for a person only. A repository could tell Claude to get another project's notes
/// for it.
pub fn open_for_person(environment: Environment) -> Result<Context, Error> {
    // HOOK-03
    environment.check_person("say which project's notes a folder has")?;
    Context::open(environment)
}

/// The declarations of projects' keys.
fn identities<'a>(context: &'a Context, journal: &'a Journal) -> Identities<'a> {
    Identities::new(journal, &context.home, context.environment.now, TIMEOUT)
}

/// The other keys of a project, without those of its groups and of what it is in.
pub fn other_keys(project: &Project) -> Vec<&String> {
    let is_own = |key: &&String| !is_shared(key) && !project.around.contains(key);
    project.also.iter().filter(is_own).collect()
}

/// Lists the projects with notes, the groups, and a key that may be the current folder's earlier one.
pub fn list(context: &Context) -> Result<ProjectList, Error> {
    let KnownKeys {
        notes,
        aliases,
        here,
    } = KnownKeys::load(context)?;
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let current = notes
        .keys()
        .map(String::as_str)
        .chain(aliases.keys())
        .map(|key| aliases.current(key))
        .filter(|key| !is_shared(key));
    let projects = current.collect::<BTreeSet<_>>().into_iter();
    let projects = projects.map(|key| ListedProject {
        key: key.to_owned(),
        also: aliases.others(key).map(str::to_owned).collect(),
        notes: amount(&notes, &aliases, key),
    });
    let folder = Context::current_folder();
    let looks_like = folder.and_then(|folder| looks_like(&journal, &here, &folder, notes.keys()));
    Ok(ProjectList {
        projects: projects.collect(),
        groups: groups(&notes, &aliases),
        may_be_one: looks_like.map(|(other, because)| PossibleMerge {
            keys: [here.key, other],
            because,
        }),
    })
}

/// Returns those of some projects in which no session was seen here, so that no session gets their notes.
pub fn unseen<'a>(context: &Context, keys: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let journal = context.records().ok().flatten();
    let seen = Places::new(journal.as_ref()).keys().unwrap_or_default();
    let aliases = synced_lines::aliases(&context.home);
    let is_unseen = |key: &&String| {
        let mut keys = iter::once(key.as_str()).chain(aliases.others(key));
        !is_shared(key) && !keys.any(|key| seen.contains(key))
    };
    // On a new machine, no project was seen yet.
    let keys = keys.filter(|_| !seen.is_empty());
    keys.filter(is_unseen).map(String::as_str).collect()
}

/// Returns another key that may be this project's, and why: that of a folder without a remote before it
/// was renamed, or the only one with notes and the same last two parts of its address, as a mirror or an
/// alias in ssh's settings has. `keys` are those with notes.
pub fn looks_like<'a>(
    journal: &Journal,
    project: &Project,
    folder: &Path,
    keys: impl Iterator<Item = &'a String>,
) -> Option<(String, &'static str)> {
    let places = Places::new(Some(journal));
    if let Some(renamed) = places.renamed_from(project, folder).ok().flatten() {
        let why = "the folder of the other one is gone from beside this one";
        return Some((renamed, why));
    }
    let name = owner_and_name(&project.key).filter(|_| matches!(project.step, Step::Remote(_)))?;
    let is_own = |key: &String| *key == project.key || project.also.contains(key);
    let mut twins = keys.filter(|key| owner_and_name(key) == Some(name) && !is_own(key));
    let twin = twins.next().filter(|_| twins.next().is_none())?;
    let why = "both are called the same on their hosts";
    Some((twin.clone(), why))
}

/// Returns the owner and the name in a remote's key, its last two parts.
fn owner_and_name(key: &str) -> Option<(&str, &str)> {
    let (owner, name) = key.rsplit_once('/')?;
    let (_host, owner) = owner
        .rsplit_once('/')
        .filter(|(host, _)| !host.is_empty())?;
    Some((owner, name))
}

/// Returns the keys that a note can be moved to, each with the number of its notes: those of projects
/// with notes, and those of all groups.
pub fn keys_with_counts(
    context: &Context,
    index: &Index,
) -> Result<BTreeMap<String, usize>, Error> {
    let mut keys = index.counts()?.by_project;
    let aliases = synced_lines::aliases(&context.home);
    for group in aliases.groups().keys() {
        keys.entry(group.clone()).or_default();
    }
    Ok(keys)
}

/// Lists the groups that have projects or notes.
fn groups(notes: &BTreeMap<String, usize>, aliases: &Aliases) -> Vec<ListedGroup> {
    let with_notes = notes.keys().filter(|key| group_name(key).is_some());
    let keys: BTreeSet<&String> = aliases.groups().keys().chain(with_notes).collect();
    keys.into_iter()
        .map(|key| listed_group(key, notes, aliases))
        .collect()
}

fn listed_group(key: &str, notes: &BTreeMap<String, usize>, aliases: &Aliases) -> ListedGroup {
    let members = aliases.groups().get(key).into_iter().flatten();
    let projects: BTreeSet<&str> = members.map(|key| aliases.current(key)).collect();
    ListedGroup {
        key: key.to_owned(),
        projects: projects.into_iter().map(str::to_owned).collect(),
        notes: notes.get(key).copied().unwrap_or(0),
    }
}

/// The result of a change of a group.
pub struct ChangedGroup {
    /// The group as it is now.
    pub group: ListedGroup,
    /// The keys that were added; empty if their projects were in the group before.
    pub added: Vec<String>,
    /// The keys that were removed.
    pub removed: Vec<String>,
}

/// Adds projects to a group and removes others. `.` is the current folder's project. Without keys,
/// finds the group.
pub fn change_group(
    context: &Context,
    name: &str,
    added: &[String],
    removed: &[String],
) -> Result<ChangedGroup, Error> {
    let Some(group) = of_group(name) else {
        return Err(Error::usage(format!("invalid name of a group \"{name}\""))
            .hint("a name has letters, digits and . _ - only, at most 50 of them"));
    };
    let known = KnownKeys::load(context)?;
    let KnownKeys {
        notes,
        aliases,
        here,
    } = &known;
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let named = |keys: &[String]| -> BTreeSet<String> {
        let here = |key: &String| if key == "." { &here.key } else { key }.clone();
        keys.iter().map(here).collect()
    };
    let mut added: Vec<String> = named(added).into_iter().collect();
    added.iter().try_for_each(|key| known.check(key))?;
    added.retain(|key| !aliases.groups_of(key).any(|of| of == group));
    let mut left = Vec::new();
    for key in named(removed) {
        // It may have been added by another key of the same project.
        let members = aliases.groups().get(&group).into_iter().flatten();
        let own = members.filter(|member| aliases.current(member) == aliases.current(&key));
        let before = left.len();
        left.extend(own.cloned());
        if left.len() == before {
            return Err(Error::failed(format!("{key} is not in {}", shown(&group)))
                .hint("anamnesis project list"));
        }
    }
    if added.is_empty() && left.is_empty() {
        if !aliases.groups().contains_key(&group) && !notes.contains_key(&group) {
            return Err(no_group(name));
        }
    } else {
        identities(context, &journal).change_group(&group, &added, &left)?;
    }
    Ok(ChangedGroup {
        group: listed_group(&group, notes, &synced_lines::aliases(&context.home)),
        added,
        removed: left,
    })
}

fn no_group(name: &str) -> Error {
    Error::usage(format!("no group {name} exists")).hint(format!(
        "anamnesis project group {name} KEY   (to create it)"
    ))
}

/// Counts the notes of a project.
fn amount(notes: &BTreeMap<String, usize>, aliases: &Aliases, key: &str) -> usize {
    let keys = iter::once(key).chain(aliases.others(key));
    keys.filter_map(|key| notes.get(key)).sum()
}

/// The keys that belong to a project.
struct KnownKeys {
    /// How many notes each key has.
    notes: BTreeMap<String, usize>,
    aliases: Aliases,
    /// The project of this folder.
    here: Project,
}

impl KnownKeys {
    fn load(context: &Context) -> Result<Self, Error> {
        Ok(Self {
            notes: context.index()?.counts()?.by_project,
            aliases: synced_lines::aliases(&context.home),
            here: context.project(None),
        })
    }

    /// Refuses a key that has no notes and no aliases and is not this folder's, or that is shared.
    fn check(&self, key: &str) -> Result<(), Error> {
        let is_known = amount(&self.notes, &self.aliases, key) > 0
            || self.aliases.others(key).next().is_some()
            || self.here.all_keys().iter().any(|own| own == key);
        if is_shared(key) || !is_known {
            return Err(
                Error::failed(format!("no note belongs to a project \"{key}\""))
                    .hint("anamnesis project list"),
            );
        }
        Ok(())
    }
}

/// How many projects an error names.
const MAX_KNOWN: usize = 5;

/// Refuses a project that no note and no session here has. Names those that have notes.
pub fn check_known(context: &Context, index: &Index, key: &str) -> Result<(), Error> {
    let notes = index.counts()?.by_project;
    let journal = context.records()?;
    let seen = Places::new(journal.as_ref()).keys().unwrap_or_default();
    let is_known = is_shared(key)
        || notes.contains_key(key)
        || seen.contains(key)
        || synced_lines::aliases(&context.home)
            .others(key)
            .next()
            .is_some()
        || context
            .project(None)
            .all_keys()
            .iter()
            .any(|own| own == key);
    if is_known {
        return Ok(());
    }
    let known = notes
        .keys()
        .filter(|key| !is_shared(key))
        .map(|key| one_line(key));
    let known: Vec<String> = known.take(MAX_KNOWN).collect();
    Err(Error::failed(format!(
        "no note and no session here is of a project \"{}\"; there are {}",
        one_line(key),
        known.join(", ")
    ))
    .hint("add --force if it is a new project; all: anamnesis project list"))
}

/// Returns the remark about a named project that a person's note makes known. A note of an agent for another
/// project is a proposal.
pub fn remark_on_new(context: &Context, named: Option<&str>) -> Option<String> {
    let key = named.filter(|key| *key != "." && !context.environment.is_agent)?;
    let key = context.key_to_write(Some(key)).ok()?;
    let known = check_known(context, &context.index().ok()?, &key);
    known
        .is_err()
        .then(|| format!("{key} is a new project: no other note and no session here is of it\n"))
}

/// Refuses a key for a note that is most likely a mistake: no note has it, it is not this folder's,
/// and it has characters that only the name of a folder may bring into a key, or is that of a group
/// without projects.
pub fn check_key(context: &Context, index: &Index, key: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/~+:@".contains(c);
    let is_known = || -> Result<bool, Error> {
        Ok(index.counts()?.by_project.contains_key(key) || context.project(None).key == key)
    };
    if let Some(name) = group_name(key) {
        let aliases = synced_lines::aliases(&context.home);
        if !aliases.groups().contains_key(key) && !is_known()? {
            return Err(no_group(name));
        }
    } else if !key.chars().all(is_plain) && !is_known()? {
        return Err(Error::usage(format!("no project has the key \"{key}\""))
            .hint("anamnesis project list   (a new key has letters, digits and . _ - / only)"));
    }
    Ok(())
}

/// Declares that a key is the same project as another. Returns the number of the project's notes;
/// `None` if the keys were one project already.
pub fn merge(context: &Context, key: &str, same_as: &str) -> Result<Option<usize>, Error> {
    if Alias::new(key, same_as).is_none_or(|alias| alias.is_membership()) {
        return Err(Error::usage(format!(
            "\"{key}\" and \"{same_as}\" are not the keys of two projects"
        )));
    }
    let known = KnownKeys::load(context)?;
    let journal = Journal::open(&context.home, TIMEOUT)?;
    [key, same_as]
        .into_iter()
        .try_for_each(|key| known.check(key))?;
    if !identities(context, &journal).merge(key, same_as)? {
        return Ok(None);
    }
    let aliases = synced_lines::aliases(&context.home);
    Ok(Some(amount(&known.notes, &aliases, same_as)))
}

/// Reverts the merges of a key. Returns the keys that it was merged with.
pub fn split(context: &Context, key: &str) -> Result<Vec<String>, Error> {
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let others = identities(context, &journal).split(key)?;
    if others.is_empty() {
        return Err(Error::failed(format!("{key} is the same as no other key"))
            .hint("anamnesis project list"));
    }
    Ok(others)
}

/// Follows a marker file that names another project's key. Returns that key, if there is one.
pub fn trust(context: &Context, folder: &Path) -> Result<Option<String>, Error> {
    let user_home = context.environment.user_home.as_deref();
    let journal = Journal::open(&context.home, TIMEOUT)?;
    Ok(identities(context, &journal).trust(folder, user_home)?)
}
