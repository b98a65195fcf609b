//! Triggers of warnings, indexed by the beginning of a tool call. A warning without triggers is
//! indexed by the words that its text begins with.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    note::{GLOBAL, Kind, Note, State},
    trigger::{Call, TEXT_KEY, Trigger, options},
};
use anamnesis_text::{sanitize::head, terms::words};
use rusqlite::{Connection, params};

use super::{Entry, Error, Index, Tables, entry::in_force, inert};
use crate::sqlite::{Json, Queries};

const SCHEMA: &str = "
CREATE TABLE warning_trigger (
  number INTEGER NOT NULL, project TEXT NOT NULL, key TEXT NOT NULL, line TEXT NOT NULL
) STRICT;
CREATE INDEX warning_trigger_key ON warning_trigger (project, key);
CREATE INDEX warning_trigger_number ON warning_trigger (number);
CREATE TABLE warning_word (
  project TEXT NOT NULL, term TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (project, term, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX warning_word_number ON warning_word (number);
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert,
    remove: &[
        "DELETE FROM warning_trigger WHERE number = ?",
        "DELETE FROM warning_word WHERE number = ?",
    ],
};

/// The maximum number of indexed triggers of one note.
const MAX_TRIGGERS: usize = 64;

/// The size of the indexed beginning of a text, in bytes. A warning names its subject there.
const MAX_TEXT: usize = 600;

/// Marks a note that names options. It equals no word and no option.
const NAMES_OPTIONS: &str = "-";

/// The maximum number of words per call that are read.
const MAX_HITS: i64 = 4096;

/// Returns whether projects have a warning that is indexed by words.
pub(super) const HAVE_WORDS: &str = "SELECT EXISTS (SELECT 1
  FROM json_each(?1) AS own CROSS JOIN warning_word ON warning_word.project = own.value)";

/// The warnings of projects that contain some words.
pub(super) const BY_WORDS: &str = "SELECT warning_word.number, warning_word.term
  FROM json_each(?1) AS own
  CROSS JOIN json_each(?2) AS wanted
  CROSS JOIN warning_word ON warning_word.project = own.value AND warning_word.term = wanted.value
  LIMIT ?3";

/// The keys of text triggers in projects that begin with `text` and a space.
pub(super) const TEXT_KEYS: &str = "SELECT DISTINCT warning_trigger.key
  FROM json_each(?1) AS own CROSS JOIN warning_trigger
  WHERE project = own.value AND warning_trigger.key >= ?2 AND warning_trigger.key < 'text!'";

/// The active notes of projects with a trigger under one of these keys.
pub(super) const BY_KEYS: &str = concat!(
    "SELECT note.*, warning_trigger.line
  FROM json_each(?1) AS own
  CROSS JOIN json_each(?2) AS wanted
  CROSS JOIN warning_trigger
    ON warning_trigger.project = own.value AND warning_trigger.key = wanted.value
  CROSS JOIN note ON note.number = warning_trigger.number
  WHERE ",
    in_force!(),
    " ORDER BY note.id"
);

/// Indexes the triggers of a warning, or its words if it has none. Invalid triggers are left out.
fn insert(connection: &Connection, number: i64, note: &Note) -> rusqlite::Result<()> {
    if note.kind() != Kind::Antipattern {
        return Ok(());
    }
    let lines = note.when.iter().take(MAX_TRIGGERS).map(|line| inert(line));
    let mut triggers: Vec<Trigger> = lines.filter_map(|line| line.parse().ok()).collect();
    triggers.dedup();
    for trigger in &triggers {
        let sql = "INSERT INTO warning_trigger VALUES (?, ?, ?, ?)";
        let (key, line) = (trigger.key(), trigger.as_str());
        connection.run(sql, params![number, note.project, key, line])?;
    }
    if triggers.is_empty() && note.state == State::Active {
        for term in first_terms(note) {
            let sql = "INSERT INTO warning_word VALUES (?, ?, ?)";
            connection.run(sql, params![note.project, term, number])?;
        }
    }
    Ok(())
}

/// A warning that matched by words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordMatch {
    /// The note's number, see [`Index::warning`].
    pub number: i64,
    /// The words of the query that it has.
    pub words: BTreeSet<String>,
    /// Whether it names command options.
    pub names_options: bool,
}

/// Returns the distinct terms and options of the title and of the text's beginning.
fn first_terms(note: &Note) -> BTreeSet<String> {
    let mut terms = BTreeSet::new();
    for text in [&note.title, &note.body] {
        words(head(text, MAX_TEXT), |word| {
            if !word.is_stop_word() {
                terms.insert(word.term.to_owned());
            }
        });
        let options = options(head(text, MAX_TEXT));
        terms.extend((!options.is_empty()).then(|| NAMES_OPTIONS.to_owned()));
        terms.extend(options);
    }
    terms
}

/// Returns project keys, and that of all projects, as a JSON list.
fn with_global(projects: &[String]) -> String {
    let mut projects = projects.to_vec();
    projects.push(GLOBAL.to_owned());
    projects.sort();
    projects.dedup();
    serde_json::json!(projects).to_string()
}

/// The application id in the file's header if no note is a warning. A hook reads it without the schema.
const NO_WARNINGS: i64 = 0x6e6f_6e65;

/// Returns whether the header says that no note is a warning.
pub(super) fn has_none(connection: &Connection) -> rusqlite::Result<bool> {
    let number: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    Ok(number == NO_WARNINGS)
}

/// Writes into the header whether a note is a warning.
pub(super) fn mark(connection: &Connection) -> rusqlite::Result<()> {
    let has_some: bool = connection.value(
        "SELECT EXISTS (SELECT 1 FROM warning_trigger) OR EXISTS (SELECT 1 FROM warning_word)",
        [],
    )?;
    if has_some == has_none(connection)? {
        let number = if has_some { 0 } else { NO_WARNINGS };
        connection.pragma_update(None, "application_id", number)?;
    }
    Ok(())
}

impl Index {
    /// Returns the active warnings of these projects, and of all projects, with a trigger that
    /// matches a call; by id.
    pub fn warnings_for(&self, call: &Call, projects: &[String]) -> Result<Vec<Entry>, Error> {
        let projects = with_global(projects);
        let keys = call.keys(|| self.text_keys(&projects))?;
        let mut found: Vec<Entry> = Vec::new();
        self.each(BY_KEYS, params![projects, Json(keys)], |row| {
            let trigger = row.get::<_, String>("line")?.parse::<Trigger>();
            if trigger.is_ok_and(|trigger| trigger.matches(call)) {
                found.push(Entry::read(row)?);
            }
            Ok(())
        })?;
        found.dedup_by_key(|entry| entry.id());
        Ok(found)
    }

    /// Returns the warnings of these projects, and of all projects, that have no trigger and begin
    /// with at least this many of the words: terms, and options as returned by [`options`]. The order
    /// is unspecified.
    ///
    /// `words` is called only if there is such a warning, because most stores have none.
    pub fn warnings_having(
        &self,
        least: usize,
        words: impl FnOnce() -> BTreeSet<String>,
        projects: &[String],
    ) -> Result<Vec<WordMatch>, Error> {
        let projects = with_global(projects);
        if !self.value::<bool>(HAVE_WORDS, [&projects])? {
            return Ok(Vec::new());
        }
        let mut words = words();
        words.insert(NAMES_OPTIONS.to_owned());
        let mut having: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
        self.each(BY_WORDS, params![projects, Json(words), MAX_HITS], |row| {
            let words = having.entry(row.get("number")?).or_default();
            words.insert(row.get("term")?);
            Ok(())
        })?;
        let worded = having.into_iter().map(|(number, mut words)| WordMatch {
            number,
            names_options: words.remove(NAMES_OPTIONS),
            words,
        });
        Ok(worded
            .filter(|worded| worded.words.len() >= least)
            .collect())
    }

    /// Returns the note with a number, if it is active.
    pub fn warning(&self, number: i64) -> Result<Option<Entry>, Error> {
        self.one(
            concat!("SELECT * FROM note WHERE number = ? AND ", in_force!()),
            [number],
            Entry::read,
        )
    }

    /// `projects` is a JSON list.
    fn text_keys(&self, projects: &str) -> Result<Vec<String>, Error> {
        self.column(TEXT_KEYS, [projects, TEXT_KEY])
    }
}
