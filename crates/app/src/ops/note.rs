//! A note as outcomes contain it.

use anamnesis_note::{
    id::NoteId,
    note::{self, Severity, parse_timestamp},
};
use anamnesis_recall::{
    render::{inert, inert_line},
    stale::StaleReason,
};
use anamnesis_store::{
    index::{self, Entry, Index},
    notes::Stored,
};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;

/// The longest title that is shown, in characters.
const MAX_TITLE_LENGTH: usize = 200;

/// A note, without its text
// The Python version's keys come first, then ours.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Note {
    /// The note in the index.
    #[serde(skip)]
    pub entry: Entry,
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
    /// Where its file is in the store
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    path: Option<String>,
    /// Its text, for a command
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    body: Option<String>,
    /// Words and questions that it may be asked for with
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    asked: Vec<String>,
    /// The tool calls that a warning comes before
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    when: Vec<String>,
    /// The severity of a warning
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    severity: Option<&'static str>,
}

impl Note {
    /// Returns a note for who asks.
    pub fn new(context: &Context, entry: Entry) -> Self {
        Self {
            id: entry.id().to_string(),
            r#type: entry.note_type.as_str(),
            title: title(&entry.title),
            project: entry.project.clone(),
            machine_id: entry.machine_id.clone(),
            scope: entry.path.scope.as_str(),
            user_id: entry.user_id.clone(),
            workspace_id: entry.workspace_id.clone(),
            tags: entry.kind.other_tags(&entry.tags),
            created_at: entry.created_at.clone(),
            updated_at: entry.updated_at.clone(),
            kind: entry.shown_kind(),
            author: entry.author(),
            state: entry.state.as_str(),
            confidence: entry.confidence,
            age_days: age(&entry, context.environment.now),
            pinned: entry.pinned,
            superseded: entry.superseded,
            // Tools name notes by their ids.
            path: context.tool.is_none().then(|| entry.path.to_string()),
            body: None,
            asked: Vec::new(),
            when: Vec::new(),
            severity: None,
            entry,
        }
    }

    /// Adds the text of the note's file.
    #[must_use]
    pub fn with_text(mut self, note: &note::Note) -> Self {
        self.body = Some(note.body.clone());
        self.asked.clone_from(&note.asked);
        self.when.clone_from(&note.when);
        self.severity = self.entry.severity.map(Severity::as_str);
        self
    }

    /// Returns the id.
    pub fn id(&self) -> NoteId {
        self.entry.id()
    }
}

/// A list of notes.
#[derive(Debug, Serialize)]
pub struct ListedNotes {
    /// The notes.
    pub notes: Vec<Note>,
    /// How many there are.
    pub total: usize,
}

/// Notes that a search found.
#[derive(Debug, Serialize)]
pub struct FoundNotes {
    /// The notes, best match first.
    pub notes: Vec<FoundNote>,
    /// The lines of the project's commits that match, best match first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// Whether there may be more than a search returns.
    pub capped: bool,
    /// The time that the search is about, if it is not now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// A note that a search found.
#[derive(Debug, Serialize)]
pub struct FoundNote {
    /// The note.
    #[serde(flatten)]
    pub note: Note,
    /// How well it matches.
    pub score: f64,
    /// With an embedding model: the words that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<Vec<String>>,
    /// With an embedding model: how similar its meaning is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f32>,
}

/// A past version of a note.
#[derive(Debug, Serialize)]
pub struct PastNote {
    /// The note.
    #[serde(flatten)]
    pub note: Note,
    /// The time of the version.
    pub at: String,
}

/// Notes that may be outdated.
#[derive(Debug, Serialize)]
pub struct StaleNotes {
    /// The notes, most reasons first.
    pub notes: Vec<StaleNote>,
    /// How many there are.
    pub total: usize,
}

/// A note that may be outdated.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StaleNote {
    /// The note.
    #[serde(flatten)]
    pub note: Note,
    /// Why.
    #[schemars(description = "")]
    pub reasons: Vec<StaleCause>,
}

/// Why a note may be outdated.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StaleCause {
    reason: &'static str,
    text: String,
}

impl StaleCause {
    /// Puts a reason into words.
    pub fn new(reason: &StaleReason, index: &Index) -> Self {
        Self {
            reason: reason.word(),
            text: reason.text(|id| Context::short(index, id)),
        }
    }
}

/// A note by its id, kind and title.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Named {
    /// The note in the index.
    #[serde(skip)]
    pub entry: Entry,
    id: String,
    kind: &'static str,
    title: String,
}

impl Named {
    /// Returns the names of the notes that exist.
    pub fn all(index: &Index, ids: &[NoteId]) -> Result<Vec<Self>, index::Error> {
        let found = ids.iter().filter_map(|id| index.get(*id).transpose());
        found.map(|entry| entry.map(Self::from)).collect()
    }
}

impl From<Entry> for Named {
    fn from(entry: Entry) -> Self {
        Self {
            id: entry.id().to_string(),
            kind: entry.shown_kind(),
            title: title(&entry.title),
            entry,
        }
    }
}

/// Makes a title safe to return.
pub fn title(text: &str) -> String {
    cut(&inert_line(text), MAX_TITLE_LENGTH)
}

/// Whole days since the content last changed; `None` if the file does not say.
pub fn age(entry: &Entry, now: DateTime<Utc>) -> Option<i64> {
    let changed = parse_timestamp(&entry.updated_at).or_else(|| parse_timestamp(&entry.created_at));
    changed.map(|changed| (now - changed).num_days().max(0))
}

/// Makes a note's text safe to return to a model.
pub fn inert_body(stored: &Stored) -> String {
    let mut body = inert(&stored.note().body).trim_end().to_owned();
    if !stored.whole {
        body.push_str("\n… (cut: the file is larger)");
    }
    body
}

/// Cuts a text to a number of characters and marks the cut.
pub fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((at, _)) => format!("{} …", text[..at].trim_end()),
        None => text.to_owned(),
    }
}
