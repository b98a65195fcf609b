//! A memory of another program, in the form that all sources share.

use anamnesis_note::{
    draft::{Draft, safe_line},
    id::NoteId,
    note::{Kind, Note, Severity, Source as Origin, State, Status, parse_timestamp, timestamp},
    trigger::Trigger,
};
use anamnesis_store::foreign_database::Row;
use anamnesis_text::truncate;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::UNREVIEWED_TAG;

/// The tag of every imported note.
const TAG: &str = "import";

/// The confidence of a note that a model may have written.
const CONFIDENCE: f64 = 0.9;

/// The longest text that becomes a note, in bytes.
const MAX_TEXT: usize = 256 * 1024;

/// The longest id, name or tag that is kept, in characters.
const MAX_NAME: usize = 128;

/// A link of a record: a relation, the id of the other record, and a weight.
pub(super) type SourceLink = (String, String, Option<f64>);

/// A memory of another program. Its texts are as they were found.
#[derive(Debug, Clone, Default)]
pub(super) struct SourceRecord {
    /// Its id there.
    pub(super) id: String,
    /// Its kind; a fact if missing.
    pub(super) kind: Option<Kind>,
    /// Its title; the first line of its text if empty.
    pub(super) title: String,
    /// Its text.
    pub(super) body: String,
    /// The name of its project there.
    pub(super) project: Option<String>,
    /// When it was created.
    pub(super) created: Option<DateTime<Utc>>,
    /// When it last changed.
    pub(super) updated: Option<DateTime<Utc>>,
    /// Its tags.
    pub(super) tags: Vec<String>,
    /// The session that it comes from.
    pub(super) session: Option<String>,
    /// Its links.
    pub(super) links: Vec<SourceLink>,
    /// The patterns of paths that it applies to.
    pub(super) paths: Vec<String>,
    /// The alternative that a warning recommends.
    pub(super) instead: Option<String>,
    /// The severity of a warning.
    pub(super) severity: Option<Severity>,
    /// The status of a task.
    pub(super) status: Option<Status>,
    /// Whether it is never injected, because the host reads it already.
    pub(super) is_archived: bool,
    /// Whether a later record with this id is a new version of it.
    pub(super) is_versioned: bool,
    /// The note and its file, if it is one of ours.
    pub(super) exact: Option<Box<(Note, String)>>,
    /// Why it is skipped, if it is.
    pub(super) skip: Option<&'static str>,
}

impl SourceRecord {
    /// Returns a record with a text.
    pub(super) fn new(id: String, kind: Kind, title: String, body: String) -> Self {
        Self {
            id,
            kind: Some(kind),
            title,
            body,
            ..Self::default()
        }
    }

    /// Returns a record that is counted and skipped for this reason.
    pub(super) fn skipped(reason: &'static str) -> Self {
        Self {
            skip: Some(reason),
            ..Self::default()
        }
    }

    /// Returns the records of rows; one for each that cannot be used, too.
    pub(super) fn from_rows(rows: Vec<Row>, mut record: impl FnMut(&Value) -> Self) -> Vec<Self> {
        let rows = rows.into_iter();
        rows.map(|row| row.map_or_else(Self::skipped, |row| record(&row)))
            .collect()
    }

    /// Sets both times. One in the future counts as now, or its note would stay first.
    pub(super) fn at(self, created: Option<DateTime<Utc>>, updated: Option<DateTime<Utc>>) -> Self {
        Self {
            created: created.or(updated),
            updated: updated.or(created),
            ..self
        }
    }

    /// Returns its note without links.
    ///
    /// # Errors
    /// Why it is skipped.
    pub(super) fn note(
        self,
        tool: &str,
        project: &str,
        machine: String,
        now: DateTime<Utc>,
    ) -> Result<Note, &'static str> {
        if self.title.len() + self.body.len() > MAX_TEXT {
            return Err("over 256 KiB");
        }
        let short = |text: &str| truncate::line(&safe_line(text), MAX_NAME);
        let title = safe_line(&self.title);
        let has_body = !self.body.trim().is_empty();
        let paths = self.paths.iter().map(|path| format!("path: {path}"));
        let draft = Draft {
            kind: self.kind,
            title: Some(truncate::line(&title, 300)).filter(|title| !title.is_empty()),
            tags: self.tags.iter().map(|tag| short(tag)).collect(),
            when: paths
                .filter_map(|path| path.parse::<Trigger>().ok())
                .collect(),
            instead: self.instead,
            severity: self.severity,
            status: self.status,
            ..Draft::new(if has_body { self.body } else { title }, project.to_owned())
        };
        let mut note = draft
            .note(machine, now)
            .map_err(|_| "without text to keep")?;
        let time = |at: Option<DateTime<Utc>>| timestamp(at.map_or(now, |at| at.min(now)));
        note.created_at = time(self.created);
        note.updated_at = time(self.updated);
        note.source = Origin::Import;
        note.confidence = CONFIDENCE;
        note.session = self.session.map(|id| short(&id));
        note.tool = Some(tool.to_owned());
        note.tool_id = Some(short(&self.id)).filter(|id| !id.is_empty());
        note.add_tags([TAG]);
        if self.is_archived {
            note.state = State::Muted;
        }
        // The text decides, so that a copy of the source, or its export, has the same notes.
        let source_project = self.project.as_deref().unwrap_or_default();
        note.id = NoteId::made_of(&format!(
            "import/{tool}/{source_project}/{}/{}\n{}",
            note.kind(),
            note.title,
            note.body
        ));
        Ok(note)
    }
}

/// Keeps an imported note from being injected until a person approves it.
pub(super) fn hold(note: &mut Note) {
    if note.state == State::Active {
        note.state = State::Muted;
        note.add_tags([UNREVIEWED_TAG]);
    }
}

/// Returns a text of an object; `None` if it is missing or blank.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    let text = object.get(key)?.as_str()?;
    Some(text).filter(|text| !text.trim().is_empty())
}

/// Returns a text or number of an object, as text.
pub(super) fn id_of(object: &Value, key: &str) -> String {
    match object.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Returns the texts of a list, or of a list in JSON, as other programs put one in a column.
pub(super) fn texts(object: &Value, key: &str) -> Vec<String> {
    let parsed;
    let list = match object.get(key) {
        Some(Value::String(json)) => {
            parsed = serde_json::from_str(json).unwrap_or(Value::Null);
            &parsed
        }
        Some(list) => list,
        None => return Vec::new(),
    };
    let items = list.as_array().into_iter().flatten();
    let texts = items.filter_map(Value::as_str).map(str::to_owned);
    texts.filter(|text| !text.trim().is_empty()).collect()
}

/// Returns a time: a text, or the seconds or milliseconds since 1970.
pub(super) fn time(object: &Value, key: &str) -> Option<DateTime<Utc>> {
    /// More seconds than any date has.
    const MILLISECONDS: f64 = 1e11;
    match object.get(key)? {
        Value::String(text) => parse_timestamp(text),
        Value::Number(number) => {
            let number = number.as_f64()?;
            let seconds = if number < MILLISECONDS {
                number
            } else {
                number / 1e3
            };
            #[expect(clippy::cast_possible_truncation, reason = "whole seconds are kept")]
            DateTime::from_timestamp(seconds as i64, 0)
        }
        _ => None,
    }
}

/// Joins the parts of a text that are not blank as paragraphs.
pub(super) fn paragraphs<'a>(parts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let parts: Vec<&str> = parts.into_iter().flatten().map(str::trim).collect();
    parts.join("\n\n")
}

/// Formats items as a list, with a heading.
pub(super) fn bullets(heading: &str, items: &[String]) -> Option<String> {
    let lines = items.iter().map(|item| format!("- {}", item.trim()));
    let lines: Vec<String> = lines.collect();
    let list = lines.join("\n");
    (!items.is_empty()).then(|| match heading {
        "" => list,
        heading => format!("**{heading}**\n{list}"),
    })
}
