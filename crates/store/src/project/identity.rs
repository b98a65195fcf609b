//! This machine's records of projects: the key of each folder, and the keys that mean the same
//! project.
//!
//! A folder's key changes when its remote is added or moved, or when a marker is added. The journal
//! therefore stores the key of each folder by its path. If a folder's key changes, the old key becomes
//! an alias, which is synced. A renamed folder is a hint for a person.
//!
//! Recognising a folder reads a few rows and writes none. It returns the rows to store, so that a
//! hook can write them in its one transaction.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_note::synced_lines::{Alias, Aliases};
use anamnesis_text::{clean::one_line, hash::text_hash, redact::redact};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{Project, Repository, Step};
use crate::{
    fs::{
        home::Home,
        lock::{self, Subject},
    },
    journal::{self, Journal},
    synced_lines::{self, alias_log},
};

/// The key prefixes in `meta`: the state of a place, the remote of a key, the other keys of a
/// project with the keys of its groups.
const PLACE: &str = "place ";
const BOUND: &str = "bound ";
const SAME: &str = "same ";

/// The key prefix in `meta` of the last place of a repository, by the time at which git made it.
const MADE: &str = "made ";

/// How many folders above one without git are looked up.
const MAX_ABOVE: usize = 8;

/// The number of digits that distinguish repositories with the same name.
const SUFFIX_LENGTH: usize = 4;

/// A folder's project, and new facts about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifiedProject {
    /// The project.
    pub project: Project,
    /// Rows to write with [`Journal::set_meta`].
    pub rows: Vec<(String, String)>,
}

/// Doubts about the folders of this machine, for a person to settle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doubts {
    /// Names of several folders without git, which therefore share a project, with the folders.
    pub shared: Vec<(String, Vec<PathBuf>)>,
    /// Keys in ignored markers, with the folder of the marker.
    pub untrusted: Vec<(String, PathBuf)>,
}

/// Read access to the records of projects.
#[derive(Debug)]
pub struct Places<'a> {
    journal: Option<&'a Journal>,
}

impl<'a> Places<'a> {
    /// Uses this journal. Without one, a folder's key depends only on the folder.
    pub fn new(journal: Option<&'a Journal>) -> Self {
        Self { journal }
    }

    /// Finds the project of a folder as [`Project::find`] does, with the records.
    pub fn recognize(
        &self,
        folder: &Path,
        user_home: Option<&Path>,
    ) -> Result<IdentifiedProject, journal::Error> {
        let mut project = Project::find(folder, user_home);
        let mut rows = Vec::new();
        let Some(place) = IdentifiedFolder::from_step(&project.step, folder) else {
            return Ok(IdentifiedProject { project, rows });
        };
        let around = self.around(&place, &project.step, user_home)?;
        let given = project.key.clone();
        let (place_name, bound_name) = (place.row_name(), format!("{BOUND}{given}"));
        let same_name = format!("{SAME}{given}");
        let made_name = format!("{MADE}{}", place.made_at.as_deref().unwrap_or_default());
        let kept = self.rows(&[&place_name, &bound_name, &same_name, &made_name])?;
        let bound = kept.get(&bound_name).and_then(|text| parse::<Bound>(text));
        let before = kept.get(&place_name).and_then(|text| parse::<Row>(text));
        let made = kept.get(&made_name);
        let before = match (before, made) {
            (None, Some(id)) => self.moved_from(id)?,
            (before, _) => before,
        };
        let is_same_repository = made.is_some();
        let row = match &before {
            Some(row) if row.given == given => Row {
                folder: place.written(),
                ..row.clone()
            },
            _ => {
                let key = match &project.step {
                    Step::Marker(_) if place.needs_trust(&given, bound.as_ref()) => {
                        Project::without_marker(folder).key
                    }
                    Step::Repository(_) if self.is_taken(&place, bound.as_ref())? => {
                        place.key_beside(&given)
                    }
                    _ => given.clone(),
                };
                Row::after(before.as_ref(), is_same_repository, &place, &project, key)
            }
        };
        if kept.get(&place_name) != Some(&stored(&row)) {
            rows.push((place_name, stored(&row)));
        }
        if place.made_at.is_some() && made != Some(&place.id) && !self.is_in_place(made)? {
            rows.push((made_name, place.id.clone()));
        }
        // Any folder outside git may have the same name.
        let is_free = bound.is_none_or(|bound| {
            matches!(project.step, Step::Repository(_)) && bound.place != place.id
        });
        if is_free && row.key == given && project.step != Step::Folder {
            rows.push((bound_name, stored(&Bound::from_place(&place))));
        }
        let mut same = kept.get(&same_name).map(|text| read_keys(text));
        if row.key != given {
            same = Some(self.others(&row.key)?);
            if matches!(project.step, Step::Marker(_)) {
                project = Project::without_marker(folder);
                project.untrusted = Some(given);
            }
        }
        project.key = row.key;
        project.also = same.unwrap_or_default();
        project.also.extend(row.was);
        project.around = around;
        project
            .around
            .retain(|key| *key != project.key && !project.also.contains(key));
        project.also.extend(project.around.iter().cloned());
        project.also.sort();
        project.also.dedup();
        Ok(IdentifiedProject { project, rows })
    }

    /// Returns the keys of what a folder is in: of the folders above one without git in which sessions
    /// were seen, or of the repository of a submodule.
    fn around(
        &self,
        place: &IdentifiedFolder,
        step: &Step,
        user_home: Option<&Path>,
    ) -> Result<Vec<String>, journal::Error> {
        if let Some(repository) = &place.repository {
            let outer = repository.superproject();
            let outer = outer
                .map(|root| self.recognize(&root, user_home))
                .transpose()?;
            return Ok(outer
                .map(|outer| outer.project.all_keys())
                .unwrap_or_default());
        }
        if *step != Step::Folder {
            return Ok(Vec::new());
        }
        let user_home = user_home.and_then(|home| dunce::canonicalize(home).ok());
        let above = place.folder.ancestors().skip(1).take(MAX_ABOVE);
        let above = above.take_while(|folder| {
            Some(*folder) != user_home.as_deref() && folder.parent().is_some()
        });
        let names = above.map(|folder| format!("{PLACE}{}", id_of(folder, Path::new(""))));
        let names: Vec<String> = names.collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let rows = self.rows(&names)?;
        let rows = rows.values().filter_map(|text| parse::<Row>(text));
        Ok(rows.map(|row| row.key).collect())
    }

    /// Returns the state of a repository's last place, if it is gone from there.
    fn moved_from(&self, id: &str) -> Result<Option<Row>, journal::Error> {
        Ok(self.row(id)?.filter(|row| row.place(id).is_none()))
    }

    /// Returns whether the repository with this id is where it was.
    fn is_in_place(&self, id: Option<&String>) -> Result<bool, journal::Error> {
        let Some(id) = id else { return Ok(false) };
        Ok(self.row(id)?.is_some_and(|row| row.place(id).is_some()))
    }

    /// Returns the other keys of a project, and those of its groups.
    pub fn others(&self, key: &str) -> Result<Vec<String>, journal::Error> {
        let same = self.rows(&[&format!("{SAME}{key}")])?;
        Ok(same.values().flat_map(|text| read_keys(text)).collect())
    }

    /// Returns the keys of all folders in which sessions were seen.
    pub fn keys(&self) -> Result<BTreeSet<String>, journal::Error> {
        let Some(journal) = self.journal else {
            return Ok(BTreeSet::new());
        };
        let rows = journal.metas_under(PLACE)?;
        let rows = rows.values().filter_map(|text| parse::<Row>(text));
        let keys = rows.flat_map(|row| row.was.into_iter().chain([row.key]));
        Ok(keys.collect())
    }

    /// Finds doubts about folders that are still in their last place.
    pub fn doubts(&self) -> Result<Doubts, journal::Error> {
        let mut doubts = Doubts::default();
        let Some(journal) = self.journal else {
            return Ok(doubts);
        };
        let mut by_name: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for (name, text) in journal.metas_under(PLACE)? {
            let id = name.strip_prefix(PLACE).unwrap_or_default();
            let Some(row) = parse::<Row>(&text) else {
                continue;
            };
            let Some(place) = row.place(id) else {
                continue;
            };
            if row.step == "marker" && row.key != row.given {
                doubts.untrusted.push((row.given, place.folder));
            } else if row.step == "name" && place.repository.is_none() {
                by_name.entry(row.key).or_default().push(place.folder);
            }
        }
        by_name.retain(|_, folders| folders.len() > 1);
        doubts.shared.extend(by_name);
        for (_, folders) in &mut doubts.shared {
            folders.sort();
        }
        doubts.untrusted.sort();
        Ok(doubts)
    }

    /// Returns the key of a folder without a remote that is gone from beside this one, which has no
    /// remote either: this one may be that folder with another name.
    pub fn renamed_from(
        &self,
        project: &Project,
        folder: &Path,
    ) -> Result<Option<String>, journal::Error> {
        let place = match project.step {
            Step::Repository(_) | Step::Folder => {
                IdentifiedFolder::from_step(&project.step, folder)
            }
            _ => None,
        };
        let (Some(journal), Some(place)) = (self.journal, place) else {
            return Ok(None);
        };
        let rows = journal.metas_under(PLACE)?;
        let gone = rows
            .values()
            .filter_map(|text| parse::<Row>(text))
            .filter(|row| {
                let folder = Path::new(&row.folder);
                row.step == "name" && folder.parent() == place.folder.parent() && !folder.exists()
            });
        let mut keys: Vec<String> = gone.map(|row| row.key).collect();
        keys.sort();
        keys.dedup();
        keys.retain(|key| *key != project.key && !project.also.contains(key));
        Ok(keys.pop().filter(|_| keys.is_empty()))
    }

    /// Returns whether another repository, which is still in its place, has a key.
    fn is_taken(
        &self,
        place: &IdentifiedFolder,
        bound: Option<&Bound>,
    ) -> Result<bool, journal::Error> {
        let Some(bound) = bound.filter(|bound| bound.place != place.id) else {
            return Ok(false);
        };
        self.is_in_place(Some(&bound.place))
    }

    /// Returns the row of a place.
    fn row(&self, id: &str) -> Result<Option<Row>, journal::Error> {
        let kept = self.rows(&[&format!("{PLACE}{id}")])?;
        Ok(kept.values().find_map(|text| parse::<Row>(text)))
    }

    fn rows(&self, names: &[&str]) -> Result<BTreeMap<String, String>, journal::Error> {
        match self.journal {
            Some(journal) => journal.metas(names),
            None => Ok(BTreeMap::new()),
        }
    }
}

/// Write access to the records of projects.
#[derive(Debug)]
pub struct Identities<'a> {
    journal: &'a Journal,
    home: &'a Home,
    now: DateTime<Utc>,
    timeout: Duration,
}

impl<'a> Identities<'a> {
    /// Uses this journal and the store's file of aliases.
    pub fn new(
        journal: &'a Journal,
        home: &'a Home,
        now: DateTime<Utc>,
        timeout: Duration,
    ) -> Self {
        Self {
            journal,
            home,
            now,
            timeout,
        }
    }

    /// Follows the marker of a folder from now on. Returns its key; none if it is followed already.
    pub fn trust(
        &self,
        folder: &Path,
        user_home: Option<&Path>,
    ) -> Result<Option<String>, journal::Error> {
        let known = Places::new(Some(self.journal)).recognize(folder, user_home)?;
        let Some(key) = known.project.untrusted else {
            return Ok(None);
        };
        let given = Project::find(folder, user_home);
        if let Some(place) = IdentifiedFolder::from_step(&given.step, folder) {
            let row = Row::after(None, false, &place, &given, key.clone());
            self.journal.set_meta(&place.row_name(), &stored(&row))?;
        }
        Ok(Some(key))
    }

    /// Makes `key` an alias of `same_as`. Returns whether that is new.
    pub fn merge(&self, key: &str, same_as: &str) -> Result<bool, synced_lines::Error> {
        let known = synced_lines::aliases(self.home);
        let Some(alias) = Alias::new(key, same_as) else {
            return Ok(false);
        };
        if known.others(key).any(|other| other == same_as) {
            return Ok(false);
        }
        self.say(vec![alias], Vec::new())?;
        Ok(true)
    }

    /// Puts projects into a group and takes others out of it.
    pub fn change_group(
        &self,
        group: &str,
        added: &[String],
        removed: &[String],
    ) -> Result<(), synced_lines::Error> {
        let aliases = |keys: &[String]| {
            let aliases = keys.iter().filter_map(|key| Alias::new(key, group));
            aliases.collect()
        };
        self.say(aliases(added), aliases(removed))
    }

    /// Removes all aliases of `key`. Returns the keys that were the same project.
    pub fn split(&self, key: &str) -> Result<Vec<String>, synced_lines::Error> {
        let log = alias_log(self.home);
        let aliases = log.valid().map(|(alias, _)| alias.clone());
        let aliases: Vec<_> = aliases
            .filter(|alias| !alias.is_membership() && [alias.key(), alias.same_as()].contains(&key))
            .collect();
        let others = aliases.iter().map(|alias| {
            let other = if alias.key() == key {
                alias.same_as()
            } else {
                alias.key()
            };
            other.to_owned()
        });
        let others = others.collect();
        if !aliases.is_empty() {
            self.say(Vec::new(), aliases)?;
        }
        Ok(others)
    }

    /// Stores as aliases the keys that folders had before.
    pub fn settle(&self) -> Result<(), synced_lines::Error> {
        let same = self.journal.metas_under(SAME)?;
        let mut learned = Vec::new();
        for text in self.journal.metas_under(PLACE)?.values() {
            let Some(row) = parse::<Row>(text) else {
                continue;
            };
            let known = same.get(&format!("{SAME}{}", row.key));
            let known = known.map(|keys| read_keys(keys)).unwrap_or_default();
            // Earlier versions took a relative remote as a key, which unrelated folders share.
            let is_relative =
                |key: &str| [".", ".."].contains(&key.split('/').next().unwrap_or(key));
            let new = (row.was.iter()).filter(|key| !known.contains(key) && !is_relative(key));
            learned.extend(new.filter_map(|key| Alias::new(key, &row.key)));
        }
        if learned.is_empty() {
            return Ok(());
        }
        // An alias that a person removed is not added again.
        let log = alias_log(self.home);
        learned.retain(|alias| log.holds(alias).is_none());
        self.say(learned, Vec::new())
    }

    /// Stores the aliases and groups of all machines, after their file changed.
    pub fn refresh(&self) -> Result<(), journal::Error> {
        let log = alias_log(self.home);
        let aliases = Aliases::from_log(&log);
        let members = aliases.groups().values().flatten().map(String::as_str);
        let mut same: BTreeMap<_, _> = aliases
            .keys()
            .chain(members)
            .map(|key| {
                let others = aliases.others(key).chain(aliases.groups_of(key));
                let others: Vec<_> = others.collect();
                (format!("{SAME}{key}"), json!(others).to_string())
            })
            .collect();
        self.journal.in_transaction(|journal| {
            for (name, value) in journal.metas_under(SAME)? {
                match same.remove(&name) {
                    Some(new) if new != value => journal.set_meta(&name, &new)?,
                    Some(_) => {}
                    None => journal.remove_meta(&name)?,
                }
            }
            for (name, value) in &same {
                journal.set_meta(name, value)?;
            }
            for (name, text) in journal.metas_under(PLACE)? {
                let Some(mut row) = parse::<Row>(&text) else {
                    continue;
                };
                let now = row.key.clone();
                row.was.retain(|key| {
                    let alias = Alias::new(key, &now);
                    alias.and_then(|alias| log.holds(&alias)).unwrap_or(true)
                });
                if stored(&row) != text {
                    journal.set_meta(&name, &stored(&row))?;
                }
            }
            Ok(())
        })
    }

    fn say(&self, aliases: Vec<Alias>, unaliases: Vec<Alias>) -> Result<(), synced_lines::Error> {
        let lock = lock::acquire(self.home, Subject::Notes, self.timeout);
        let lock = lock.ok().flatten().ok_or(synced_lines::Error::Locked)?;
        let log = alias_log(self.home);
        let lines = |aliases: Vec<Alias>, holds| -> String {
            let aliases = aliases.iter();
            aliases
                .map(|alias| log.line(alias, holds, self.now))
                .collect()
        };
        let lines = lines(aliases, true) + &lines(unaliases, false);
        synced_lines::append(self.home, &lock, &self.home.aliases(), &lines)?;
        Ok(self.refresh()?)
    }
}

/// A folder that determines a key.
struct IdentifiedFolder {
    /// A hash of its path, for all worktrees that of their repository.
    id: String,
    /// The folder.
    folder: PathBuf,
    /// Its repository.
    repository: Option<Repository>,
    /// When git made the repository, if the folder is its root.
    made_at: Option<String>,
}

/// Returns the id of a folder below a lasting one.
fn id_of(lasting: &Path, below: &Path) -> String {
    text_hash(&format!("{} {}", lasting.display(), below.display()))
}

impl IdentifiedFolder {
    /// Returns the place that determined a key; none if no folder did.
    fn from_step(step: &Step, folder: &Path) -> Option<Self> {
        match step {
            // The marker is in its own folder.
            Step::Marker(path) => Self::at(path.parent()?.parent()?),
            Step::Remote(root) | Step::Repository(root) => Self::at(root),
            Step::Folder => Self::at(folder),
            Step::Nothing | Step::Named => None,
        }
    }

    fn at(folder: &Path) -> Option<Self> {
        let folder = dunce::canonicalize(folder).ok()?;
        let repository = Repository::around(&folder);
        let (lasting, below) = match &repository {
            // All worktrees share it.
            Some(repository) => {
                let below = folder.strip_prefix(&repository.root).unwrap_or(&folder);
                (repository.common.as_path(), below)
            }
            None => (folder.as_path(), Path::new("")),
        };
        let is_root = below == Path::new("");
        let made_at = repository.as_ref().filter(|_| is_root);
        Some(Self {
            id: id_of(&dunce::canonicalize(lasting).ok()?, below),
            made_at: made_at.and_then(Repository::made_at),
            folder,
            repository,
        })
    }

    fn row_name(&self) -> String {
        format!("{PLACE}{}", self.id)
    }

    /// Returns the folder's path for storage, redacted because its name may contain a credential.
    fn written(&self) -> String {
        redact(&one_line(&self.folder.to_string_lossy()))
            .text
            .into_owned()
    }

    fn remote(&self) -> Option<String> {
        self.repository.as_ref().and_then(Repository::remote)
    }

    /// Returns its key beside another repository of its name.
    fn key_beside(&self, key: &str) -> String {
        format!("{key}~{}", self.id.get(..SUFFIX_LENGTH).unwrap_or_default())
    }

    /// Returns whether a marker has another project's key: one that is bound to another remote
    /// here, or that looks like a remote's and is not its own.
    fn needs_trust(&self, key: &str, bound: Option<&Bound>) -> bool {
        // HOOK-03
        let remote = self.remote();
        let is_bound = bound.is_some_and(|bound| bound.remote != remote);
        let is_own = remote.as_deref().is_some_and(|remote| {
            let rest = key.strip_prefix(remote);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let has_host = key
            .split_once('/')
            .is_some_and(|(host, _)| host.contains('.'));
        (is_bound || has_host) && !is_own
    }
}

/// The stored state of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    /// Its last path.
    folder: String,
    /// The key that it determines.
    given: String,
    /// The source of that key.
    step: String,
    /// Its current key.
    key: String,
    /// Its earlier keys.
    was: Vec<String>,
}

impl Row {
    /// Returns the row of a place that is new or has another key than before.
    ///
    /// `is_same_repository` says that git made the repository of this place once, whatever its remote is.
    fn after(
        before: Option<&Self>,
        is_same_repository: bool,
        place: &IdentifiedFolder,
        given: &Project,
        key: String,
    ) -> Self {
        let step = match given.step {
            Step::Marker(_) => "marker",
            Step::Remote(_) => "remote",
            _ => "name",
        };
        let mut was = Vec::new();
        if let Some(before) =
            before.filter(|before| is_same_repository || before.is_continued_by(step, &key))
        {
            was.clone_from(&before.was);
            was.push(before.key.clone());
            was.retain(|was| *was != key);
        }
        Self {
            folder: place.written(),
            given: given.key.clone(),
            step: step.to_owned(),
            key,
            was,
        }
    }

    /// Returns whether the folder is the same project under its new key. With another remote whose
    /// repository has another name, it may be another repository in the same place.
    fn is_continued_by(&self, step: &str, key: &str) -> bool {
        let name = |key: &str| key.rsplit('/').next().map(str::to_owned);
        [self.step.as_str(), step] != ["remote", "remote"] || name(&self.key) == name(key)
    }

    /// Returns the place if it still has its last path.
    fn place(&self, id: &str) -> Option<IdentifiedFolder> {
        IdentifiedFolder::at(Path::new(&self.folder)).filter(|place| place.id == id)
    }
}

/// The first place with a key on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Bound {
    place: String,
    remote: Option<String>,
}

impl Bound {
    fn from_place(place: &IdentifiedFolder) -> Self {
        Self {
            place: place.id.clone(),
            remote: place.remote(),
        }
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// Returns a row as it is stored.
fn stored(row: &impl Serialize) -> String {
    serde_json::to_string(row).unwrap_or_default()
}

fn read_keys(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
