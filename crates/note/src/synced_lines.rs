//! The two small files that sync beside the notes: the aliases of projects, and the marks of purges.
//!
//! Each is a set of lines, `TIME WORD …` with the time in milliseconds since 1970, separated by tabs.
//! A line never changes, so two versions are joined by uniting their lines. Lines may come from other
//! machines: what is not understood is ignored.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::{
    id::NoteId,
    note::GLOBAL,
    project_key::{self, group_name},
};

/// The name of the file of aliases.
pub const ALIASES: &str = ".aliases";

/// The name of the file of purge marks.
pub const PURGED: &str = ".purged";

const SAME: &str = "same";
const SPLIT: &str = "split";
const GONE: &str = "gone";
const MASKED: &str = "masked";

/// Joins two versions of a file; their order does not matter.
pub fn join_lines(one: &[u8], other: &[u8]) -> Vec<u8> {
    let lines = [one, other]
        .into_iter()
        .flat_map(|bytes| bytes.split(|byte| *byte == b'\n'))
        .filter(|line| !line.is_empty());
    let lines: BTreeSet<&[u8]> = lines.collect();
    lines
        .into_iter()
        .flat_map(|line| [line, b"\n"])
        .flatten()
        .copied()
        .collect()
}

/// Returns a line, with its end. Thirteen digits sort as text until the year 2286.
fn line(at: i64, words: &[&str]) -> String {
    format!("{:013}\t{}\n", at.max(0), words.join("\t"))
}

/// Two project keys that are one project, or a project that is in a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alias {
    key: String,
    same_as: String,
}

impl Alias {
    /// Creates an alias that makes `key` the same project as `same_as`, or puts it into the group
    /// whose key is `same_as`; `None` if they are equal, one is not a valid key, or `key` is shared.
    pub fn new(key: &str, same_as: &str) -> Option<Self> {
        let is_target = same_as != GLOBAL && project_key::is_key(same_as);
        let is_project = !project_key::is_shared(key) && project_key::is_key(key);
        let is_alias = key != same_as && is_project && is_target;
        is_alias.then(|| Self {
            key: key.to_owned(),
            same_as: same_as.to_owned(),
        })
    }

    /// Returns the key that may still be in use.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns whether it puts a project into a group.
    pub fn is_membership(&self) -> bool {
        group_name(&self.same_as).is_some()
    }

    /// Returns the project's current key, or the group's key.
    pub fn same_as(&self) -> &str {
        &self.same_as
    }
}

/// The lines of [`ALIASES`]: of two on one alias, the later one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AliasLog {
    verdicts: BTreeMap<Alias, (i64, bool)>,
}

impl AliasLog {
    /// Reads the lines of a file.
    pub fn parse(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [at, word @ (SAME | SPLIT), key, same_as] = words.as_slice() else {
                continue;
            };
            if let (Ok(at), Some(alias)) = (at.parse(), Alias::new(key, same_as)) {
                let verdict = (at, *word == SAME);
                let known = log.verdicts.entry(alias).or_insert(verdict);
                *known = verdict.max(*known);
            }
        }
        log
    }

    /// Returns the line that makes an alias valid or invalid, whatever the machines' clocks say.
    pub fn line(&self, alias: &Alias, holds: bool, now: DateTime<Utc>) -> String {
        let later = self.verdicts.get(alias).map(|(at, _)| at.saturating_add(1));
        let at = later.unwrap_or_default().max(now.timestamp_millis());
        let word = if holds { SAME } else { SPLIT };
        line(at, &[word, &alias.key, &alias.same_as])
    }

    /// Returns whether an alias is valid; `None` if nothing was said about it.
    pub fn holds(&self, alias: &Alias) -> Option<bool> {
        self.verdicts.get(alias).map(|(_, holds)| *holds)
    }

    /// Returns the valid aliases with their times.
    pub fn valid(&self) -> impl Iterator<Item = (&Alias, i64)> {
        let verdicts = self.verdicts.iter();
        verdicts.filter_map(|(alias, (at, holds))| holds.then_some((alias, *at)))
    }
}

/// Which project keys are one project, and which projects are in which group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {
    // For each key with aliases: the project's current key, and all of its keys.
    projects: BTreeMap<String, (String, BTreeSet<String>)>,
    // For each group's key: the keys that were added to it.
    groups: BTreeMap<String, BTreeSet<String>>,
}

impl Aliases {
    /// Reads them from the valid aliases; cycles and contradictions are allowed. An alias for a
    /// group's key puts a project into the group.
    pub fn from_log(log: &AliasLog) -> Self {
        let mut groups: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let (members, valid): (Vec<_>, Vec<_>) =
            log.valid().partition(|(alias, _)| alias.is_membership());
        for (alias, _) in members {
            let group = groups.entry(alias.same_as().to_owned()).or_default();
            group.insert(alias.key().to_owned());
        }
        let mut near: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (alias, _) in &valid {
            near.entry(alias.key()).or_default().push(alias.same_as());
            near.entry(alias.same_as()).or_default().push(alias.key());
        }
        // The project's current key is the target of its newest alias.
        let newest = |keys: &BTreeSet<String>| {
            let of_project = valid.iter().filter(|(alias, _)| keys.contains(alias.key()));
            of_project
                .max_by_key(|(alias, at)| (*at, *alias))
                .map(|(alias, _)| alias.same_as().to_owned())
        };
        let mut projects = BTreeMap::new();
        for key in near.keys() {
            if projects.contains_key(*key) {
                continue;
            }
            let mut keys = BTreeSet::new();
            let mut pending = vec![*key];
            while let Some(key) = pending.pop() {
                if keys.insert(key.to_owned()) {
                    pending.extend(near.get(key).into_iter().flatten());
                }
            }
            let now = newest(&keys).unwrap_or_else(|| (*key).to_owned());
            for key in &keys {
                projects.insert(key.clone(), (now.clone(), keys.clone()));
            }
        }
        Self { projects, groups }
    }

    /// Returns the current key of a key's project.
    pub fn current<'a>(&'a self, key: &'a str) -> &'a str {
        self.projects.get(key).map_or(key, |(now, _)| now)
    }

    /// Returns every key that has aliases, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.projects.keys().map(String::as_str)
    }

    /// Returns the other keys of a key's project, in order.
    pub fn others<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let keys = self.projects.get(key).map(|(_, keys)| keys);
        let others = keys.into_iter().flatten().map(String::as_str);
        others.filter(move |other| *other != key)
    }

    /// Returns the keys of all groups, each with the keys that were added to it.
    pub fn groups(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.groups
    }

    /// Returns the keys of the groups that a key's project is in, in order.
    pub fn groups_of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let is_in = move |keys: &BTreeSet<String>| {
            keys.contains(key) || self.others(key).any(|other| keys.contains(other))
        };
        let groups = self.groups.iter().filter(move |(_, keys)| is_in(keys));
        groups.map(|(group, _)| group.as_str())
    }

    /// Returns each outdated key with the current key of its project.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.projects.iter();
        let pairs = pairs.map(|(key, (now, _))| (key.as_str(), now.as_str()));
        pairs.filter(|(key, now)| key != now)
    }
}

/// A line of [`PURGED`]: a note that was purged, here or on another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PurgeMark {
    /// The note.
    pub note: NoteId,
    /// When it was purged, milliseconds since 1970.
    pub at: i64,
    /// Whether the note is gone, or only a text in it was masked.
    pub is_gone: bool,
}

impl PurgeMark {
    /// Reads the marks of a file.
    pub fn parse(text: &str) -> BTreeSet<Self> {
        let marks = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split('\t').collect();
            let [at, word @ (GONE | MASKED), note] = words.as_slice() else {
                return None;
            };
            Some(Self {
                note: note.parse().ok()?,
                at: at.parse().ok()?,
                is_gone: *word == GONE,
            })
        });
        marks.collect()
    }

    /// Returns its line.
    pub fn line(&self) -> String {
        let word = if self.is_gone { GONE } else { MASKED };
        line(self.at, &[word, &self.note.to_string()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    fn log(pairs: &[(&str, &str, bool)]) -> AliasLog {
        let mut text = String::new();
        for (key, same_as, holds) in pairs {
            let alias = Alias::new(key, same_as).unwrap();
            text.push_str(&AliasLog::parse(&text).line(&alias, *holds, now()));
        }
        AliasLog::parse(&text)
    }

    fn keys(pairs: &[(&str, &str, bool)], key: &str) -> (String, Vec<String>) {
        let aliases = Aliases::from_log(&log(pairs));
        let others = aliases.others(key).map(str::to_owned).collect();
        (aliases.current(key).to_owned(), others)
    }

    #[test]
    fn aliases_are_resolved_in_every_shape() {
        let is = |now: &str, others: &[&str]| {
            let others: Vec<String> = others.iter().map(|key| (*key).to_owned()).collect();
            (now.to_owned(), others)
        };
        let chain = [("a", "b", true), ("b", "c", true)];
        assert_eq!(keys(&chain, "a").1, ["b", "c"]);
        assert_eq!(keys(&[("a", "b", true), ("b", "a", true)], "a").1, ["b"]);
        let split = [("a", "b", true), ("a", "b", false)];
        assert_eq!(keys(&split, "a"), is("a", &[]));
        let again = [("a", "b", true), ("a", "b", false), ("a", "b", true)];
        assert_eq!(keys(&again, "a"), is("b", &["b"]));
        let group = log(&[("a", "group:web", true), ("a", "b", true)]);
        let aliases = Aliases::from_log(&group);
        assert_eq!(aliases.groups_of("b").collect::<Vec<_>>(), ["group:web"]);
        assert_eq!(aliases.pairs().collect::<Vec<_>>(), [("a", "b")]);
    }

    #[test]
    fn an_alias_wins_although_the_clock_is_behind() {
        let alias = Alias::new("a", "b").unwrap();
        let ahead = AliasLog::default().line(&alias, true, now() + chrono::TimeDelta::days(9));
        let behind = AliasLog::parse(&ahead).line(&alias, false, now());
        assert_eq!(
            AliasLog::parse(&format!("{ahead}{behind}")).holds(&alias),
            Some(false)
        );
    }

    #[test]
    fn versions_are_joined_in_any_order_and_repetition() {
        let (one, other) = (b"1\ta\n3\tc\n".as_slice(), b"2\tb\n3\tc\n4".as_slice());
        let joined = join_lines(one, other);
        assert_eq!(joined, b"1\ta\n2\tb\n3\tc\n4\n");
        assert_eq!(join_lines(other, one), joined);
        assert_eq!(join_lines(&joined, one), joined);
    }

    #[test]
    fn marks_and_aliases_survive_their_file_and_unknown_lines_do_not() {
        let mark = |at, is_gone| PurgeMark {
            note: NoteId::of_session("1"),
            at,
            is_gone,
        };
        let marks: BTreeSet<_> = [mark(5, true), mark(7, false)].into();
        let text: String = marks.iter().map(PurgeMark::line).collect();
        assert_eq!(PurgeMark::parse(&text), marks);
        let wrong =
            "x\tsame\ta\tb\n1\tsame\ta\ta\n1\tsame\tglobal\ta\n1\tother\ta\tb\n1\tsame\ta\n";
        assert_eq!(AliasLog::parse(wrong), AliasLog::default());
        assert!(PurgeMark::parse(&format!("{wrong}1\tgone\tid\n\n1")).is_empty());
    }
}
