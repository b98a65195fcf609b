//! Where warnings come up: the triggers of notes, filed so that a tool call asks for few of them.

use anamnesis_core::{
    note::{GLOBAL, Kind, Note},
    trigger::{Call, TEXT_KEY, Trigger},
};
use rusqlite::{Connection, params};

use super::{Entry, Error, Index, Part, inert};

const SCHEMA: &str = "
CREATE TABLE warning_trigger (
  number INTEGER NOT NULL, project TEXT NOT NULL, key TEXT NOT NULL, line TEXT NOT NULL
) STRICT;
CREATE INDEX warning_trigger_key ON warning_trigger (project, key);
CREATE INDEX warning_trigger_number ON warning_trigger (number);
";

pub(super) const PART: Part = Part {
    schema: SCHEMA,
    objects: &[
        "warning_trigger",
        "warning_trigger_key",
        "warning_trigger_number",
    ],
    insert,
    remove,
};

/// How many triggers of one note are filed. Nobody writes as many.
const MAX_TRIGGERS: usize = 64;

/// The keys of triggers of texts in some projects: what begins with `text` and a blank.
pub(super) const TEXT_KEYS: &str = "SELECT DISTINCT warning_trigger.key
  FROM json_each(?1) AS own CROSS JOIN warning_trigger
  WHERE project = own.value AND warning_trigger.key >= ?2 AND warning_trigger.key < 'text!'";

/// The notes in use of some projects that have a trigger under one of some keys.
pub(super) const BY_KEYS: &str = "SELECT note.*, warning_trigger.line
  FROM json_each(?1) AS own
  CROSS JOIN json_each(?2) AS wanted
  CROSS JOIN warning_trigger
    ON warning_trigger.project = own.value AND warning_trigger.key = wanted.value
  CROSS JOIN note ON note.number = warning_trigger.number
  WHERE note.state = 'active' AND note.superseded = 0
  ORDER BY note.id";

/// Files the triggers of a warning. A line that is none is left out.
fn insert(connection: &Connection, number: i64, note: &Note) -> rusqlite::Result<()> {
    if note.kind() != Kind::Antipattern {
        return Ok(());
    }
    let lines = note.when.iter().take(MAX_TRIGGERS).map(|line| inert(line));
    let mut triggers: Vec<Trigger> = lines.filter_map(|line| line.parse().ok()).collect();
    triggers.dedup();
    let mut statement =
        connection.prepare_cached("INSERT INTO warning_trigger VALUES (?, ?, ?, ?)")?;
    for trigger in triggers {
        statement.execute(params![
            number,
            note.project,
            trigger.key(),
            trigger.as_str()
        ])?;
    }
    Ok(())
}

fn remove(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM warning_trigger WHERE number = ?")?
        .execute([number])?;
    Ok(())
}

impl Index {
    /// The warnings in use of these projects, and of all projects, with a trigger that fits a call; by
    /// id.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn warnings_for(&self, call: &Call, projects: &[String]) -> Result<Vec<Entry>, Error> {
        let mut projects = projects.to_vec();
        projects.push(GLOBAL.to_owned());
        projects.sort();
        projects.dedup();
        let projects = serde_json::json!(projects).to_string();
        let keys = call.keys(|| self.text_keys(&projects))?;
        let keys = serde_json::json!(keys).to_string();
        let mut statement = self.connection.prepare_cached(BY_KEYS)?;
        let mut rows = statement.query([projects, keys])?;
        let mut found: Vec<Entry> = Vec::new();
        while let Some(row) = rows.next()? {
            let line: String = row.get("line")?;
            if !line
                .parse::<Trigger>()
                .is_ok_and(|trigger| trigger.fits(call))
            {
                continue;
            }
            let entry = Entry::read(row)?;
            if found.last().is_none_or(|last| last.id() != entry.id()) {
                found.push(entry);
            }
        }
        Ok(found)
    }

    /// `projects` is a list in JSON.
    fn text_keys(&self, projects: &str) -> Result<Vec<String>, Error> {
        let mut statement = self.connection.prepare_cached(TEXT_KEYS)?;
        let keys = statement.query_map([projects, TEXT_KEY], |row| row.get(0))?;
        Ok(keys.collect::<Result<_, _>>()?)
    }
}
