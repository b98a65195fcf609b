//! A note as tools return it.

use anamnesis_note::{id::NoteId, note::parse_timestamp};
use anamnesis_recall::render::{inert, inert_line};
use anamnesis_store::{
    index::{self, Entry, Index},
    notes::{Notes, Stored},
};
use chrono::{DateTime, Utc};
use rmcp::schemars::JsonSchema;
use serde::Serialize;

/// The longest title that is shown, in characters.
const MAX_TITLE_LENGTH: usize = 200;

/// A note, without its text.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Note {
    id: String,
    r#type: &'static str,
    title: String,
    project: String,
    machine_id: String,
    scope: &'static str,
    user_id: String,
    workspace_id: String,
    tags: Vec<String>,
    created_at: String,
    updated_at: String,
    kind: &'static str,
    /// you (the person), agent, session, reflection or import
    author: &'static str,
    /// active, muted or proposed (not used until the person approves it)
    state: &'static str,
    /// 0 to 1
    confidence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_days: Option<i64>,
    pinned: bool,
    /// Replaced by another note
    superseded: bool,
}

impl Note {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn from_entry(entry: &Entry, now: DateTime<Utc>) -> Self {
        let tags = entry.tags.iter().map(|tag| inert_line(tag));
        Self {
            id: entry.id().to_string(),
            r#type: entry.note_type.as_str(),
            title: title(&entry.title),
            project: inert_line(&entry.project),
            machine_id: inert_line(&entry.machine_id),
            scope: entry.path.scope.as_str(),
            user_id: inert_line(&entry.user_id),
            workspace_id: inert_line(&entry.workspace_id),
            tags: tags.collect(),
            created_at: inert_line(&entry.created_at),
            updated_at: inert_line(&entry.updated_at),
            kind: entry.shown_kind(),
            author: entry.author(),
            state: entry.state.as_str(),
            confidence: entry.confidence,
            age_days: age(entry, now),
            pinned: entry.pinned,
            superseded: entry.superseded,
        }
    }
}

/// The id, kind and title of a note.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Named {
    id: String,
    kind: &'static str,
    title: String,
}

impl Named {
    pub(crate) fn from_entry(entry: &Entry) -> Self {
        Self {
            id: entry.id().to_string(),
            kind: entry.shown_kind(),
            title: title(&entry.title),
        }
    }

    /// Returns the names of the notes that exist.
    pub(crate) fn all(index: &Index, ids: &[NoteId]) -> Result<Vec<Self>, index::Error> {
        let mut named = Vec::with_capacity(ids.len());
        for id in ids {
            named.extend(index.get(*id)?.iter().map(Self::from_entry));
        }
        Ok(named)
    }
}

/// Makes a title safe to return.
pub(crate) fn title(text: &str) -> String {
    cut(&inert_line(text), MAX_TITLE_LENGTH)
}

/// Whole days since the content last changed; `None` if the file does not say.
pub(crate) fn age(entry: &Entry, now: DateTime<Utc>) -> Option<i64> {
    let changed = parse_timestamp(&entry.updated_at).or_else(|| parse_timestamp(&entry.created_at));
    changed.map(|changed| (now - changed).num_days().max(0))
}

/// The approximate size of a note in tokens.
pub(crate) fn tokens(entry: &Entry) -> i64 {
    entry.length.saturating_add(3) / 4
}

/// Reads a note's text from disk; `None` if the file is gone or invalid.
pub(crate) fn body(notes: &Notes, entry: &Entry) -> Option<String> {
    Some(shown(&notes.read(entry.path).ok()?))
}

/// Makes a note's text safe to return.
pub(crate) fn shown(stored: &Stored) -> String {
    let mut body = inert(&stored.note().body).trim_end().to_owned();
    if !stored.whole {
        body.push_str("\n… (cut: the file is larger)");
    }
    body
}

/// Cuts a text to a number of characters and marks the cut.
pub(crate) fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((at, _)) => format!("{} …", text[..at].trim_end()),
        None => text.to_owned(),
    }
}
