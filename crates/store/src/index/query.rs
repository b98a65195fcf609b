//! Queries on the table `note`.

use std::collections::BTreeMap;

use anamnesis_note::{
    id::{IdPrefix, NoteId, SHORT_ID_LENGTH},
    note::{Kind, NoteType, Scope, State, parse_timestamp, timestamp},
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use rusqlite::{params_from_iter, types::Value};
use serde::Serialize;

use super::{
    Entry, Error, Index,
    entry::{Parsed, in_force, may_surface},
};
use crate::{
    notes::Problem,
    sqlite::{self, Compressed, Queries},
};

/// Notes whose id begins or ends with a text of at least six characters.
pub(super) const BY_REFERENCE: &str = "SELECT * FROM note
  WHERE id BETWEEN ? AND ? OR (tail = ? AND id GLOB ?) ORDER BY id";

/// Other notes whose id has the same last six characters.
pub(super) const SHARING_A_TAIL: &str = "SELECT id FROM note WHERE tail = ? AND id <> ?";

/// The condition that a note has an author, as [`Entry::author`] names it.
const AUTHOR_IS: &str = "? = CASE note.source WHEN 'human' THEN iif(note.by_agent, 'agent', 'you')
  WHEN 'session-end' THEN 'session' WHEN 'import' THEN 'import' ELSE 'reflection' END";

/// A filter on notes. Every value is bound as a parameter.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only projects with these keys; all if empty.
    pub projects: Vec<String>,
    /// Only this type.
    pub note_type: Option<NoteType>,
    /// Only this kind.
    pub kind: Option<Kind>,
    /// Only this scope.
    pub scope: Option<Scope>,
    /// Only notes with this tag.
    pub tag: Option<String>,
    /// Only notes in this state.
    pub state: Option<State>,
    /// Only notes of this machine.
    pub machine: Option<String>,
    /// Only notes of this session.
    pub session: Option<String>,
    /// Only this user of the Python version.
    pub user_id: Option<String>,
    /// Only this workspace of the Python version.
    pub workspace_id: Option<String>,
    /// Only this author, as [`Entry::author`] names it.
    pub author: Option<String>,
    /// Only notes written on or after this day, as `2026-01-31`, or a time of it.
    pub since: Option<String>,
    /// Only notes written on or before this day.
    pub until: Option<String>,
    /// Includes superseded notes.
    pub with_superseded: bool,
    /// Includes tombstones.
    pub with_forgotten: bool,
}

impl Filter {
    fn conditions(&self) -> (String, Vec<Value>) {
        let mut values: Vec<_> = self.projects.iter().cloned().map(Value::Text).collect();
        let keys = format!("note.project IN ({})", vec!["?"; values.len()].join(", "));
        let mut conditions = vec![if values.is_empty() { "1" } else { &keys }];
        let mut add = |condition, value: &str| {
            conditions.push(condition);
            values.push(Value::Text(value.to_owned()));
        };
        if let Some(note_type) = self.note_type {
            add("note.type = ?", note_type.as_str());
        }
        if let Some(kind) = self.kind {
            add("note.kind = ?", kind.as_str());
        }
        if let Some(scope) = self.scope {
            add("note.scope = ?", scope.as_str());
        }
        if let Some(tag) = &self.tag {
            add("? IN (SELECT value FROM json_each(note.tags))", tag);
        }
        if let Some(state) = self.state {
            add("note.state = ?", state.as_str());
        }
        if let Some(machine) = &self.machine {
            add("note.machine_id = ?", machine);
        }
        if let Some(session) = &self.session {
            add("note.session = ?", session);
        }
        if let Some(user) = &self.user_id {
            add("note.user_id = ?", user);
        }
        if let Some(workspace) = &self.workspace_id {
            add("note.workspace_id = ?", workspace);
        }
        if let Some(author) = &self.author {
            add(AUTHOR_IS, author);
        }
        if let Some(day) = &self.since {
            add("note.updated_at >= ?", day);
        }
        if let Some(day) = &self.until {
            add("substr(note.updated_at, 1, 10) <= ?", day);
        }
        if !self.with_superseded {
            conditions.push("note.superseded = 0");
        }
        if !self.with_forgotten {
            conditions.push("note.state <> 'forgotten'");
        }
        (conditions.join(" AND "), values)
    }
}

/// Counts of notes for `status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NoteTotals {
    /// All notes, including superseded ones, without tombstones.
    pub total: usize,
    /// By type.
    pub by_type: BTreeMap<String, usize>,
    /// By project.
    pub by_project: BTreeMap<String, usize>,
    /// By scope.
    pub by_scope: BTreeMap<String, usize>,
    /// By workspace, for the Python version's status.
    pub by_workspace: BTreeMap<String, usize>,
    /// By state.
    pub by_state: BTreeMap<String, usize>,
    /// By the machine that wrote them.
    #[serde(skip)]
    pub by_machine: BTreeMap<String, usize>,
}

/// A query for recent notes of one project, for the start of a session.
#[derive(Debug, Clone, Copy)]
pub struct Recent<'a> {
    /// The project.
    pub project: &'a str,
    /// The type.
    pub note_type: NoteType,
    /// The current time. A later time in a note counts as this one.
    pub now: DateTime<Utc>,
    /// Only pinned notes.
    pub only_pinned: bool,
    /// Also session notes that a reflection has used.
    pub with_reflected: bool,
    /// The maximum number of notes.
    pub limit: usize,
}

impl Index {
    /// Lists notes, newest first; ties by id, descending.
    pub fn list(&self, filter: &Filter, limit: usize) -> Result<Vec<Entry>, Error> {
        self.list_from(filter, 0, limit)
    }

    /// Returns the time at which the local day of a time began, as notes have it. SQLite knows the time
    /// zone.
    pub fn start_of_day(&self, time: DateTime<Utc>) -> Result<String, Error> {
        let sql = "SELECT strftime('%Y-%m-%dT%H:%M:%S', ?, 'unixepoch', 'localtime', 'start of day', 'utc')";
        self.value(sql, [time.timestamp()])
    }

    /// Like [`Index::list`], without the first `offset` notes.
    pub fn list_from(
        &self,
        filter: &Filter,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        let (conditions, mut values) = filter.conditions();
        values.extend([bound(limit), bound(offset)]);
        self.entries(
            &format!(
                "SELECT * FROM note WHERE {conditions} ORDER BY updated_at DESC, id DESC \
                 LIMIT ? OFFSET ?"
            ),
            values,
        )
    }

    /// Returns the notes that match a filter and may be pending review for another reason than their
    /// age: proposals, muted ones, those with one of these tags, those for all projects, and those
    /// that an agent wrote on this machine.
    pub fn unreviewed(
        &self,
        filter: &Filter,
        tags: &[&str],
        machine: &str,
    ) -> Result<Vec<Entry>, Error> {
        let (conditions, mut values) = filter.conditions();
        values.push(Value::Text(machine.to_owned()));
        values.extend(tags.iter().map(|tag| Value::Text(format!("\"{tag}\""))));
        let tagged: String = tags.iter().map(|_| " OR instr(note.tags, ?) > 0").collect();
        let sql = format!(
            "SELECT * FROM note WHERE {conditions} AND (note.state IN ('proposed', 'muted')
               OR note.by_agent = 1 AND note.machine_id = ? OR note.project = 'global'{tagged})
             ORDER BY updated_at DESC, id DESC"
        );
        self.entries(&sql, values)
    }

    /// Returns the notes that have a review date up to `today`, each with that date.
    pub fn due(&self, today: NaiveDate) -> Result<Vec<(NoteId, NaiveDate)>, Error> {
        let sql = "SELECT id, review_after FROM note WHERE review_after <= ?";
        let found: Vec<(Parsed<NoteId>, Parsed<NaiveDate>)> =
            self.tuples(sql, [today.to_string()])?;
        let found = found.into_iter();
        Ok(found
            .map(|(Parsed(note), Parsed(day))| (note, day))
            .collect())
    }

    /// Counts the notes that match a filter.
    pub fn count(&self, filter: &Filter) -> Result<usize, Error> {
        let (conditions, values) = filter.conditions();
        let sql = format!("SELECT count(*) FROM note WHERE {conditions}");
        self.value(&sql, params_from_iter(values))
    }

    /// Returns notes of a project and a type that may be injected automatically, newest first. See
    /// [`Visibility::may_surface`](anamnesis_note::note::Visibility::may_surface).
    pub fn recent(&self, query: Recent<'_>) -> Result<Vec<Entry>, Error> {
        const ORDER: &str = "ORDER BY updated_at DESC, confidence DESC, id DESC LIMIT ?4";
        let conditions = if query.with_reflected {
            concat!("project = ?1 AND type = ?2 AND ", in_force!())
        } else {
            concat!("project = ?1 AND type = ?2 AND ", may_surface!())
        };
        let now = timestamp(query.now);
        let of_time = |condition: &str| {
            // Few notes are pinned. The index by time would visit every note of the project.
            let (index, pinned) = if query.only_pinned {
                ("INDEXED BY note_pinned", "AND pinned = 1")
            } else {
                ("", "")
            };
            let values = vec![
                Value::Text(query.project.to_owned()),
                Value::Text(query.note_type.as_str().to_owned()),
                Value::Text(now.clone()),
                bound(query.limit),
            ];
            let sql = format!(
                "SELECT * FROM note {index} WHERE {conditions} {condition} {pinned} {ORDER}"
            );
            self.entries(&sql, values)
        };
        let newest = of_time("")?;
        if newest.first().is_none_or(|first| first.updated_at <= now) {
            return Ok(newest);
        }
        // A time in the future counts as now, but the SQL index has the written times.
        let mut entries = of_time("AND updated_at > ?3")?;
        let written = of_time("AND updated_at <= ?3")?;
        // A session of a day to come was written under a wrong clock. It would be the last one until then.
        let last = written
            .first()
            .filter(|_| query.note_type == NoteType::Episodic);
        let last = last.and_then(|last| parse_timestamp(&last.updated_at));
        let before = last.map(|last| timestamp(last - TimeDelta::seconds(1)));
        let tomorrow = timestamp(query.now + TimeDelta::days(1));
        for entry in &mut entries {
            let wrong = before.as_ref().filter(|_| entry.updated_at > tomorrow);
            entry.updated_at.clone_from(wrong.unwrap_or(&now));
        }
        entries.extend(written);
        entries.sort_by(|a, b| {
            (&b.updated_at, b.confidence, b.id())
                .partial_cmp(&(&a.updated_at, a.confidence, a.id()))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        entries.truncate(query.limit);
        Ok(entries)
    }

    /// Returns the note with an id, including tombstones.
    pub fn get(&self, id: NoteId) -> Result<Option<Entry>, Error> {
        let sql = "SELECT * FROM note WHERE id = ?";
        self.one(sql, [id.to_string()], Entry::read)
    }

    /// Returns a note's body as of when it was indexed.
    pub fn body(&self, id: NoteId) -> Result<Option<String>, Error> {
        let sql = "SELECT body FROM note_text JOIN note USING (number) WHERE id = ?";
        let body = self.first(sql, [id.to_string()])?;
        Ok(body.map(|Compressed(body)| body))
    }

    /// Returns the notes whose id begins or ends with the reference, sorted by id.
    pub fn matching(&self, reference: &IdPrefix) -> Result<Vec<Entry>, Error> {
        self.rows(BY_REFERENCE, reference_values(reference), Entry::read)
    }

    /// Returns the shortest suffix of an id that is unique, with at least six characters.
    pub fn short_id(&self, id: NoteId) -> Result<String, Error> {
        let whole = id.to_string();
        let sharing: Vec<String> = self.column(SHARING_A_TAIL, [&id.short(), &whole])?;
        let mut tails = (SHORT_ID_LENGTH..whole.len()).map(|length| id.tail(length));
        let alone = |tail: &String| !sharing.iter().any(|other| other.ends_with(tail));
        Ok(tails.find(alone).unwrap_or(whole))
    }

    /// Returns the notes that name this one in `supersedes`, if it is superseded.
    pub fn superseded_by(&self, entry: &Entry) -> Result<Vec<Entry>, Error> {
        if !entry.superseded {
            return Ok(Vec::new());
        }
        self.entries(
            "SELECT note.* FROM note JOIN supersedes USING (number) WHERE supersedes.id = ? ORDER BY note.id",
            vec![Value::Text(entry.id().to_string())],
        )
    }

    /// Returns the files that are not indexed and why, sorted by path.
    pub fn problems(&self) -> Result<Vec<Problem>, Error> {
        self.rows(
            "SELECT path, reason FROM problem ORDER BY path",
            [],
            |row| sqlite::read_row!(row, Problem: path, reason),
        )
    }

    pub(super) fn entries(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Entry>, Error> {
        self.rows(sql, params_from_iter(values), Entry::read)
    }
}

/// Returns the values of [`BY_REFERENCE`].
pub(super) fn reference_values(reference: &IdPrefix) -> [String; 4] {
    // A reference has at least six characters. `~` sorts after every character of an id, and none of
    // them is special to GLOB.
    let typed = reference.as_str();
    let tail = &typed[typed.len() - SHORT_ID_LENGTH..];
    let (end, pattern) = (format!("{typed}~"), format!("*{typed}"));
    [typed.to_owned(), end, tail.to_owned(), pattern]
}

pub(super) fn bound(limit: usize) -> Value {
    Value::Integer(sqlite::bound(limit))
}
