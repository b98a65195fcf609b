//! A note and its markdown file.
//!
//! A file is `---`, a block mapping, `---`, the body, one line end. [`Note`] is its content.
//! [`NoteFile`] also has its bytes, so that a rewrite changes only the lines of changed keys:
//! unknown keys, comments, order and line ends of other programs are kept.

use std::{borrow::Cow, collections::BTreeMap, fmt, fmt::Write as _, ops::Range, str::FromStr};

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};

use crate::{
    front_matter::{self, Shape, Value},
    id::NoteId,
};

/// The project of a global note.
pub const GLOBAL: &str = "global";

/// The largest file that is read completely, in bytes; of a larger one only the head is read.
pub const MAX_FILE_LENGTH: usize = 1024 * 1024;

/// Defines an enum whose values are words in the front matter.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
                        /// All values, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

                        /// Returns the word in the front matter.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord { word: text.to_owned(), known: &[$($word,)+] }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}

/// A word that is not one of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {}, got \"{word}\"", known.join(", "))]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// The known words.
    pub known: &'static [&'static str],
}

words! {
    /// The type of a note: a method, a fact or an event.
    NoteType {
        /// How to do something. Durable.
        Procedural = "procedural",
        /// A fact. Durable.
        Semantic = "semantic",
        /// What a session did.
        Episodic = "episodic",
    }
}

words! {
    /// Whether a note is synchronized.
    Scope {
        /// In `memory/`, which is synchronized.
        Portable = "portable",
        /// In `local/`, which is not.
        MachineLocal = "machine-local",
    }
}

words! {
    /// The origin of a note. A file with another word is unreadable, as for the Python version's
    /// index.
    Source {
        /// A person, or an agent on request (see [`Note::is_by_agent`]).
        Human = "human",
        /// The end of a session.
        SessionEnd = "session-end",
        /// Distilled from session notes.
        Reflection = "reflection",
        /// Imported from another memory.
        Import = "import",
        /// Written by the Python version's merge; we write `reflection` instead.
        Merge = "merge",
    }
}

words! {
    /// The kind of a note, finer than its type; each kind belongs to one type.
    Kind {
        /// A fact.
        Fact = "fact",
        /// A preference of the person.
        Preference = "preference",
        /// A conclusion from several facts.
        Insight = "insight",
        /// How to do something; shown as `how-to`.
        Skill = "skill",
        /// What to avoid; shown as `warning`.
        Antipattern = "antipattern",
        /// What a session did; shown as `session`.
        Experience = "experience",
        /// Something to do.
        Task = "task",
    }
}

impl Kind {
    /// Returns the default kind of a type.
    pub const fn of_type(note_type: NoteType) -> Self {
        match note_type {
            NoteType::Procedural => Self::Skill,
            NoteType::Semantic => Self::Fact,
            NoteType::Episodic => Self::Experience,
        }
    }

    /// Returns the type of the kind.
    pub const fn note_type(self) -> NoteType {
        match self {
            Self::Skill | Self::Antipattern => NoteType::Procedural,
            Self::Fact | Self::Preference | Self::Insight | Self::Task => NoteType::Semantic,
            Self::Experience => NoteType::Episodic,
        }
    }

    /// Returns the word that people are shown.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Skill => "how-to",
            Self::Antipattern => "warning",
            Self::Experience => "session",
            other => other.as_str(),
        }
    }

    /// Parses a kind from the shown or the stored word.
    pub fn from_word(word: &str) -> Result<Self, UnknownWord> {
        let shown = Self::ALL.iter().find(|kind| kind.shown() == word);
        shown.copied().map_or_else(|| word.parse(), Ok)
    }
}

words! {
    /// Whether a note is in use.
    State {
        /// In use; not written to the file.
        Active = "active",
        /// Pending approval by a person; unused until then.
        Proposed = "proposed",
        /// Never injected automatically.
        Muted = "muted",
        /// A tombstone.
        Forgotten = "forgotten",
    }
}

words! {
    /// How severe the problem is that a warning is about.
    Severity {
        /// An inconvenience.
        Low = "low",
        /// Costs time.
        Medium = "medium",
        /// Costs work.
        High = "high",
        /// Costs data or safety.
        Critical = "critical",
    }
}

words! {
    /// Whether a warning may block a tool call.
    Enforce {
        /// Never; not written to the file.
        Never = "never",
        /// Once per session, if a person wrote it and it is severe enough.
        Once = "once",
    }
}

words! {
    /// The status of a task. Any transition is allowed.
    Status {
        /// Not begun.
        Pending = "pending",
        /// In progress.
        Active = "active",
        /// Finished.
        Done = "done",
        /// Put away, finished or not.
        Archived = "archived",
    }
}

impl Status {
    /// Returns whether there is still something to do.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Active)
    }
}

/// A note.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The id, which is also the file name.
    pub id: NoteId,
    /// The type.
    pub note_type: NoteType,
    /// The title. It may be empty, and may have line breaks if another program wrote it.
    pub title: String,
    /// The project key, or [`GLOBAL`].
    pub project: String,
    /// The machine that wrote it.
    pub machine_id: String,
    /// Whether it is synchronized, according to the file; the tree that it is in decides.
    pub scope: Scope,
    /// The Python version's user, if given.
    pub user_id: Option<String>,
    /// The Python version's workspace, if given.
    pub workspace_id: Option<String>,
    /// Its origin.
    pub source: Source,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The model that wrote it, as `provider/model`.
    pub model: Option<String>,
    /// The client's id of the session that it comes from.
    pub session: Option<String>,
    /// The ids of notes that it replaces, as written.
    pub supersedes: Vec<String>,
    /// When it was created, as written.
    pub created_at: String,
    /// When its content last changed, as written.
    pub updated_at: String,
    /// Tags, as written.
    pub tags: Vec<String>,
    /// The kind, if the file has one (as a key or as a tag).
    pub kind: Option<Kind>,
    /// Whether it is in use.
    pub state: State,
    /// Declared links, each `RELATION ID [WEIGHT]`.
    pub links: Vec<String>,
    /// The triggers of a warning.
    pub when: Vec<String>,
    /// What to do instead of what a warning is about.
    pub instead: Option<String>,
    /// The severity of a warning.
    pub severity: Option<Severity>,
    /// Whether a warning may block a tool call.
    pub enforce: Enforce,
    /// The status of a task, as written; other programs use this key with their own words.
    pub status: Option<String>,
    /// Whether it is kept at the top and never ages.
    pub pinned: bool,
    /// `agent` if a model wrote it through a tool.
    pub actor: Option<String>,
    /// The text with `\n` line ends, without the file's final line end.
    pub body: String,
}

impl Note {
    /// Returns a note with the defaults of the format.
    pub fn new(id: NoteId, note_type: NoteType, now: DateTime<Utc>) -> Self {
        Self {
            id,
            note_type,
            title: String::new(),
            project: GLOBAL.to_owned(),
            machine_id: "unknown".to_owned(),
            scope: Scope::Portable,
            user_id: None,
            workspace_id: None,
            source: Source::Human,
            confidence: 1.0,
            model: None,
            session: None,
            supersedes: Vec::new(),
            created_at: timestamp(now),
            updated_at: timestamp(now),
            tags: Vec::new(),
            kind: None,
            state: State::Active,
            links: Vec::new(),
            when: Vec::new(),
            instead: None,
            severity: None,
            enforce: Enforce::Never,
            status: None,
            pinned: false,
            actor: None,
            body: String::new(),
        }
    }

    /// Returns the kind: the given one, else the default of the type.
    pub fn kind(&self) -> Kind {
        self.kind.unwrap_or(Kind::of_type(self.note_type))
    }

    /// Returns the status of a task; pending if missing or unknown.
    pub fn status(&self) -> Status {
        let status = self.status.as_deref().map(str::parse);
        status.and_then(Result::ok).unwrap_or(Status::Pending)
    }

    /// Returns whether the file says that a model wrote it through a tool.
    pub fn is_by_agent(&self) -> bool {
        self.actor.as_deref() == Some("agent")
    }

    /// Returns the word for the author that people and models are shown.
    pub fn author(&self) -> &'static str {
        match self.source {
            Source::Human if self.is_by_agent() => "agent",
            Source::Human => "you",
            Source::SessionEnd => "session",
            Source::Reflection | Source::Merge => "reflection",
            Source::Import => "import",
        }
    }

    /// Returns whether it applies to all projects.
    pub fn is_global(&self) -> bool {
        self.project == GLOBAL
    }

    /// Returns whether it has a tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    /// Appends tags that it does not have yet.
    pub fn add_tags<'a>(&mut self, tags: impl IntoIterator<Item = &'a str>) {
        for tag in tags {
            if !self.has_tag(tag) {
                self.tags.push(tag.to_owned());
            }
        }
    }

    /// Turns the note into its tombstone: keeps identity and origin, drops the content.
    ///
    /// The title is kept as an empty key, because the Python version requires one.
    pub fn forget(&mut self, now: DateTime<Utc>) {
        let blank = Self::new(self.id, self.note_type, now);
        *self = Self {
            project: std::mem::take(&mut self.project),
            machine_id: std::mem::take(&mut self.machine_id),
            scope: self.scope,
            source: self.source,
            session: self.session.take(),
            created_at: std::mem::take(&mut self.created_at),
            state: State::Forgotten,
            ..blank
        };
    }

    /// Returns the file of a new note.
    pub fn render(&self) -> String {
        let mut out = String::from("---\n");
        for key in KEYS {
            self.write_key(key, &mut out);
        }
        out.push_str("---\n");
        out.push_str(&self.body);
        out.push('\n');
        out
    }

    /// Writes the lines of one key; nothing for an empty optional key.
    fn write_key(&self, key: &str, out: &mut String) {
        let mut optional = |value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                front_matter::write_scalar(out, key, value);
            }
        };
        match key {
            "user_id" => optional(self.user_id.as_deref()),
            "workspace_id" => optional(self.workspace_id.as_deref()),
            "prov_model" => optional(self.model.as_deref()),
            "prov_session" => optional(self.session.as_deref()),
            "kind" => optional(self.kind.map(Kind::as_str)),
            "state" => optional((self.state != State::Active).then_some(self.state.as_str())),
            "instead" => optional(self.instead.as_deref()),
            "severity" => optional(self.severity.map(Severity::as_str)),
            "enforce" => {
                optional((self.enforce != Enforce::Never).then_some(self.enforce.as_str()))
            }
            "status" => optional(self.status.as_deref()),
            "prov_actor" => optional(self.actor.as_deref()),
            "id" => front_matter::write_scalar(out, key, &self.id.to_string()),
            "type" => front_matter::write_scalar(out, key, self.note_type.as_str()),
            "title" => front_matter::write_scalar(out, key, &self.title),
            "project" => front_matter::write_scalar(out, key, &self.project),
            "machine_id" => front_matter::write_scalar(out, key, &self.machine_id),
            "scope" => front_matter::write_scalar(out, key, self.scope.as_str()),
            "prov_source" => front_matter::write_scalar(out, key, self.source.as_str()),
            // `{:?}` always has a decimal point; without it YAML reads an integer.
            "confidence" => drop(writeln!(out, "{key}: {:?}", self.confidence)),
            "created_at" => front_matter::write_scalar(out, key, &self.created_at),
            "updated_at" => front_matter::write_scalar(out, key, &self.updated_at),
            "tags" => front_matter::write_list(out, key, &self.tags),
            "supersedes" if !self.supersedes.is_empty() => {
                front_matter::write_list(out, key, &self.supersedes);
            }
            "links" if !self.links.is_empty() => front_matter::write_list(out, key, &self.links),
            "when" if !self.when.is_empty() => front_matter::write_list(out, key, &self.when),
            "pinned" if self.pinned => out.push_str("pinned: true\n"),
            _ => {}
        }
    }

    fn key_text(&self, key: &str) -> String {
        let mut text = String::new();
        self.write_key(key, &mut text);
        text
    }
}

/// The keys we write, in the order of the file: the Python version's keys first.
const KEYS: [&str; 26] = [
    "id",
    "type",
    "title",
    "project",
    "machine_id",
    "scope",
    "user_id",
    "workspace_id",
    "prov_source",
    "confidence",
    "prov_model",
    "prov_session",
    "supersedes",
    "created_at",
    "updated_at",
    "tags",
    "kind",
    "state",
    "links",
    "when",
    "instead",
    "severity",
    "enforce",
    "status",
    "pinned",
    "prov_actor",
];

/// The number of leading [`KEYS`] that the Python version knows.
const PYTHON_KEYS: usize = 16;

/// Returns whether [`Note`] has a field for a key.
pub(crate) fn is_own_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// Returns whether the Python version knows a key. It drops others whenever it rewrites a note.
pub(crate) fn is_python_key(key: &str) -> bool {
    KEYS[..PYTHON_KEYS].contains(&key)
}

fn shape(key: &str) -> Shape {
    match key {
        "tags" | "supersedes" | "links" | "when" => Shape::List,
        _ if is_own_key(key) => Shape::Text,
        _ => Shape::Any,
    }
}

/// Why a file is not a valid note. Such a file is not changed, and reported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The bytes are not UTF-8.
    #[error("not UTF-8 (byte {offset})")]
    NotUtf8 {
        /// The first invalid byte.
        offset: usize,
    },
    /// The file does not begin with `---`.
    #[error("line 1: no front matter")]
    NoFrontMatter,
    /// There is no second `---` line.
    #[error("front matter is not closed by a line ---")]
    UnclosedFrontMatter,
    /// The YAML was rejected.
    #[error("{0}")]
    Yaml(#[from] front_matter::Error),
    /// A required key is missing.
    #[error("missing key \"{0}\"")]
    MissingKey(&'static str),
    /// A key has an invalid value.
    #[error("key \"{key}\": {reason}")]
    InvalidValue {
        /// The key.
        key: &'static str,
        /// The reason.
        reason: String,
    },
    /// The id in the file differs from the id in its name.
    #[error("key \"id\" is {found}, the file name says {expected}")]
    IdMismatch {
        /// The id in the file.
        found: String,
        /// The id in the name.
        expected: NoteId,
    },
    /// It has git conflict markers. [`NoteFile::parse`] does not check this, because a merge must
    /// be able to read such a file.
    #[error("holds the conflict markers of a git merge")]
    ConflictMarkers,
}

/// The front matter has a form in which single keys cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the front matter is written in a form that cannot be changed key by key; edit it by hand")]
pub struct CannotRewrite;

/// The lines of one key, or the lines between two keys.
#[derive(Debug, Clone)]
pub(crate) struct Part<'a> {
    /// The key; `None` for comments and blank lines.
    pub(crate) key: Option<String>,
    /// The lines with their line ends.
    pub(crate) text: Cow<'a, str>,
}

/// A note's file: its text and its content.
#[derive(Debug, Clone)]
pub struct NoteFile {
    text: String,
    front: Range<usize>,
    body: Range<usize>,
    crlf: bool,
    keys: Vec<String>,
    note: Note,
}

impl NoteFile {
    /// Parses a note's file; `name` is the id in its file name.
    ///
    /// A byte order mark and CRLF line ends are accepted.
    pub fn parse(bytes: &[u8], name: NoteId) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(bytes).map_err(|error| Unreadable::NotUtf8 {
            offset: error.valid_up_to(),
        })?;
        let start = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        let first_line = text[start..]
            .split_inclusive('\n')
            .next()
            .unwrap_or_default();
        if first_line.trim_end_matches(['\r', '\n']) != "---" || !first_line.ends_with('\n') {
            return Err(Unreadable::NoFrontMatter);
        }
        let crlf = first_line.ends_with("\r\n");
        let front_start = start + first_line.len();
        let mut line_start = front_start;
        let mut close = None;
        for line in text[front_start..].split_inclusive('\n') {
            if line.trim_end_matches(['\r', '\n']) == "---" {
                close = Some((line_start, line_start + line.len()));
                break;
            }
            line_start += line.len();
            if line_start - front_start > front_matter::MAX_LENGTH {
                return Err(front_matter::Error::TooLong(text.len() - front_start).into());
            }
        }
        let (front_end, body_start) = close.ok_or(Unreadable::UnclosedFrontMatter)?;
        let front = front_start..front_end;
        // YAML treats a carriage return as white space at the end of a line, as here.
        let values = front_matter::read_mapping(&text[front.clone()], shape)?;
        let raw_body = &text[body_start..];
        let body_length = if crlf {
            raw_body.strip_suffix("\r\n")
        } else {
            None
        }
        .or_else(|| raw_body.strip_suffix('\n'))
        .unwrap_or(raw_body)
        .len();
        let body = body_start..body_start + body_length;
        let body_text = if crlf {
            text[body.clone()].replace("\r\n", "\n")
        } else {
            text[body.clone()].to_owned()
        };
        let note = note_of(&values, body_text)?;
        if note.id != name {
            return Err(Unreadable::IdMismatch {
                found: note.id.to_string(),
                expected: name,
            });
        }
        Ok(Self {
            text: text.to_owned(),
            front,
            body,
            crlf,
            keys: values.into_keys().collect(),
            note,
        })
    }

    /// Returns the content.
    pub fn note(&self) -> &Note {
        &self.note
    }

    /// Returns the content, without the bytes.
    pub fn into_note(self) -> Note {
        self.note
    }

    /// Returns the text of a key without a field; `None` if it is missing or not a text.
    pub fn text_of(&self, key: &str) -> Option<String> {
        let block = &self.text[self.front.clone()];
        let entry = self.entries().ok()?.into_iter().find(|e| e.key == key)?;
        let lines = block.get(entry.range)?;
        match front_matter::read_mapping(lines, |_| Shape::Text)
            .ok()?
            .remove(key)?
        {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Null => None,
        }
    }

    /// Returns the keys of the front matter, sorted.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Splits the front matter into parts, which together are all of it. Fails if it is not a block
    /// mapping.
    pub(crate) fn parts(&self) -> Result<Vec<Part<'_>>, CannotRewrite> {
        let block = &self.text[self.front.clone()];
        let entries = self.entries()?;
        let mut parts = Vec::with_capacity(2 * entries.len() + 1);
        let mut position = 0;
        for entry in entries {
            parts.push(Part {
                key: None,
                text: Cow::Borrowed(&block[position..entry.range.start]),
            });
            parts.push(Part {
                key: Some(entry.key),
                text: Cow::Borrowed(&block[entry.range.clone()]),
            });
            position = entry.range.end;
        }
        parts.push(Part {
            key: None,
            text: Cow::Borrowed(&block[position..]),
        });
        Ok(parts)
    }

    /// Returns the file with other front matter. Fails if the result is not a valid note.
    pub(crate) fn with_parts(&self, parts: &[Part<'_>]) -> Result<Self, Unreadable> {
        let front: String = parts.iter().map(|part| part.text.as_ref()).collect();
        let (before, after) = (&self.text[..self.front.start], &self.text[self.front.end..]);
        Self::parse(format!("{before}{front}{after}").as_bytes(), self.note.id)
    }

    /// Returns whether the file has this text.
    pub fn is_text(&self, text: &str) -> bool {
        self.text == text
    }

    /// Returns the file's text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the file with `note` as its content.
    ///
    /// Only lines of changed keys are replaced, removed or inserted; the body only if it changed.
    /// Fails if the front matter is valid YAML but not a block mapping.
    pub fn rewrite(&self, note: &Note) -> Result<String, CannotRewrite> {
        let block = &self.text[self.front.clone()];
        let mut entries = self.entries()?;
        let changed: Vec<&str> = KEYS
            .into_iter()
            .filter(|key| self.note.key_text(key) != note.key_text(key))
            .collect();
        let mut front = String::with_capacity(block.len() + 64);
        let mut insertions: BTreeMap<usize, String> = BTreeMap::new();
        for key in &changed {
            if !entries.iter().any(|entry| entry.key == *key) {
                let at = insertion_point(&entries, key, block.len());
                insertions
                    .entry(at)
                    .or_default()
                    .push_str(&self.with_line_ends(note.key_text(key)));
            }
        }
        let mut position = 0;
        entries.sort_by_key(|entry| entry.range.start);
        for entry in &entries {
            front.push_str(&block[position..entry.range.start]);
            if let Some(text) = insertions.remove(&entry.range.start) {
                front.push_str(&text);
            }
            if changed.contains(&entry.key.as_str()) {
                front.push_str(&self.with_line_ends(note.key_text(&entry.key)));
            } else {
                front.push_str(&block[entry.range.clone()]);
            }
            position = entry.range.end;
        }
        front.push_str(&block[position..]);
        for text in insertions.into_values() {
            front.push_str(&text);
        }
        let body = if self.note.body == note.body {
            self.text[self.body.start..].to_owned()
        } else {
            self.with_line_ends(format!("{}\n", note.body))
        };
        let close = &self.text[self.front.end..self.body.start];
        let text = format!("{}{front}{close}{body}", &self.text[..self.front.start]);
        // Line-based changes cannot handle all of YAML, so the result is parsed and
        // compared.
        let read = Self::parse(text.as_bytes(), note.id).map_err(|_| CannotRewrite)?;
        let is_equal = Note {
            // A tag may be read as the kind.
            kind: note.kind,
            ..read.into_note()
        } == *note;
        if is_equal {
            Ok(text)
        } else {
            Err(CannotRewrite)
        }
    }

    /// Returns the file with its front matter in the current format: our keys in our order with the
    /// comments before them, then other keys unchanged. The body is kept byte for byte.
    ///
    /// Fails if the front matter is not a block mapping and has comments or other keys.
    pub fn normalised(&self, note: &Note) -> Result<String, CannotRewrite> {
        let mut leads: BTreeMap<String, Cow<'_, str>> = BTreeMap::new();
        let mut others = String::new();
        match self.parts() {
            Ok(parts) => {
                let mut lead = Cow::Borrowed("");
                for part in parts {
                    match part.key {
                        None => lead = part.text,
                        Some(key) if is_own_key(&key) => {
                            leads.insert(key, std::mem::take(&mut lead));
                        }
                        Some(_) => {
                            others.push_str(&lead);
                            others.push_str(&part.text);
                        }
                    }
                }
                // The lines after the last key.
                others.push_str(&lead);
            }
            Err(error) => {
                let block = &self.text[self.front.clone()];
                let is_ours = self.keys.iter().all(|key| is_own_key(key));
                if !is_ours || block.contains('#') {
                    return Err(error);
                }
            }
        }
        let mut front = String::new();
        for key in KEYS {
            front.push_str(leads.get(key).map_or("", |lead| lead));
            front.push_str(&self.with_line_ends(note.key_text(key)));
        }
        let (before, after) = (&self.text[..self.front.start], &self.text[self.front.end..]);
        let text = format!("{before}{front}{others}{after}");
        let read = Self::parse(text.as_bytes(), note.id).map_err(|_| CannotRewrite)?;
        if *read.note() == *note {
            Ok(text)
        } else {
            Err(CannotRewrite)
        }
    }

    /// Returns the keys and the ranges of their lines, if the front matter is a block mapping.
    fn entries(&self) -> Result<Vec<front_matter::Entry>, CannotRewrite> {
        let entries = front_matter::entries(&self.text[self.front.clone()]);
        let mut found: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        found.sort_unstable();
        if found == self.keys {
            Ok(entries)
        } else {
            Err(CannotRewrite)
        }
    }

    /// Returns a text with the file's line ends in place of `\n`.
    pub(crate) fn with_line_ends(&self, text: String) -> String {
        if self.crlf {
            text.replace('\n', "\r\n")
        } else {
            text
        }
    }
}

/// Returns where a new key is inserted: before the first key that follows it in the order of the
/// file.
fn insertion_point(entries: &[front_matter::Entry], key: &str, end: usize) -> usize {
    let rank = |key: &str| KEYS.iter().position(|known| *known == key);
    let own = rank(key);
    entries
        .iter()
        .find(|entry| rank(&entry.key).is_some_and(|other| Some(other) > own))
        .map_or(end, |entry| entry.range.start)
}

/// Parses an optional word; an empty one is `None`.
fn word<T: FromStr<Err = UnknownWord>>(
    key: &'static str,
    text: Option<String>,
) -> Result<Option<T>, Unreadable> {
    let parsed = text
        .filter(|text| !text.is_empty())
        .map(|text| text.parse::<T>())
        .transpose();
    parsed.map_err(|error| Unreadable::InvalidValue {
        key,
        reason: error.to_string(),
    })
}

/// Converts the values of a file to a note.
fn note_of(values: &BTreeMap<String, Value>, body: String) -> Result<Note, Unreadable> {
    let text = |key: &str| match values.get(key) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    // An empty optional key equals a missing one, because it is not written.
    let optional = |key: &str| text(key).filter(|text| !text.is_empty());
    let list = |key: &str| match values.get(key) {
        Some(Value::List(items)) => items
            .iter()
            .filter(|item| !item.is_empty())
            .cloned()
            .collect(),
        Some(Value::Text(item)) if !item.is_empty() => vec![item.clone()],
        _ => Vec::new(),
    };
    let required = |key: &'static str| match values.get(key) {
        Some(Value::Text(text)) => Ok(text.clone()),
        Some(_) => Ok(String::new()),
        None => Err(Unreadable::MissingKey(key)),
    };
    let id = required("id")?;
    let id = id
        .parse::<NoteId>()
        .map_err(|error| Unreadable::InvalidValue {
            key: "id",
            reason: error.to_string(),
        })?;
    let note_type = word("type", Some(required("type")?))?.ok_or(Unreadable::InvalidValue {
        key: "type",
        reason: "empty".to_owned(),
    })?;
    let tags: Vec<String> = list("tags");
    // The kind may be given by a tag only, for tools that read only tags.
    let kind = match word("kind", text("kind"))? {
        Some(kind) => Some(kind),
        None => tags
            .iter()
            .find_map(|tag| tag.parse::<Kind>().ok())
            .filter(|kind| kind.note_type() == note_type),
    };
    Ok(Note {
        id,
        note_type,
        title: required("title")?,
        project: text("project").unwrap_or_else(|| GLOBAL.to_owned()),
        machine_id: text("machine_id").unwrap_or_else(|| "unknown".to_owned()),
        scope: word("scope", text("scope"))?.unwrap_or(Scope::Portable),
        user_id: optional("user_id"),
        workspace_id: optional("workspace_id"),
        source: word("prov_source", text("prov_source"))?.unwrap_or(Source::Human),
        confidence: confidence(text("confidence").as_deref())?,
        model: optional("prov_model"),
        session: optional("prov_session"),
        supersedes: list("supersedes"),
        created_at: text("created_at").unwrap_or_default(),
        updated_at: text("updated_at").unwrap_or_default(),
        tags,
        kind,
        state: word("state", text("state"))?.unwrap_or(State::Active),
        links: list("links"),
        when: list("when"),
        instead: optional("instead"),
        severity: word("severity", text("severity"))?,
        enforce: word("enforce", text("enforce"))?.unwrap_or(Enforce::Never),
        status: optional("status"),
        pinned: text("pinned").is_some_and(|word| word == "true"),
        actor: optional("prov_actor"),
        body,
    })
}

/// Parses a confidence and clamps it to 0 to 1, so that no value in a file outranks all others.
fn confidence(text: Option<&str>) -> Result<f64, Unreadable> {
    let Some(text) = text else { return Ok(1.0) };
    let number = match text {
        ".inf" | "+.inf" => f64::INFINITY,
        "-.inf" => f64::NEG_INFINITY,
        _ => text.parse::<f64>().map_err(|_| Unreadable::InvalidValue {
            key: "confidence",
            reason: format!("expected a number from 0 to 1, got \"{text}\""),
        })?,
    };
    Ok(if number.is_nan() {
        0.0
    } else {
        number.clamp(0.0, 1.0)
    })
}

/// Formats a time as in notes: UTC, whole seconds, `+00:00`.
pub fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, false)
}

/// Parses a time as notes and editors write it: ISO 8601 with an offset, without one (UTC), or a
/// date.
pub fn parse_timestamp(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.with_timezone(&Utc));
    }
    let naive = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ];
    if let Some(time) = naive
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
    {
        return Some(time.and_utc());
    }
    let midnight = NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .ok()?
        .and_hms_opt(0, 0, 0)?;
    Some(midnight.and_utc())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    fn id() -> NoteId {
        ID.parse().unwrap()
    }

    fn now() -> DateTime<Utc> {
        DateTime::parse_from_rfc3339("2026-01-02T03:04:05Z")
            .unwrap()
            .with_timezone(&Utc)
    }

    fn parse(text: &str) -> Result<Note, Unreadable> {
        NoteFile::parse(text.as_bytes(), id()).map(NoteFile::into_note)
    }

    fn rewrite(text: &str, change: impl FnOnce(&mut Note)) -> String {
        let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
        let mut note = file.note().clone();
        change(&mut note);
        file.rewrite(&note).unwrap()
    }

    fn normalised(text: &str) -> Result<String, CannotRewrite> {
        let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
        file.normalised(file.note())
    }

    #[test]
    fn normalising_front_matter_loses_nothing() {
        let odd = "\u{feff}---\r\n# mine\r\ntags: [b, a]\r\nown: {x: 1}\r\n\r\n# of the title\r\n\
                   title: \"A\"\r\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\r\ntype: semantic\r\n# end\r\n---\r\nText \n\r\n";
        let expected = "\u{feff}---\r\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\r\ntype: semantic\r\n\r\n# of the title\r\n\
                        title: A\r\nproject: global\r\nmachine_id: unknown\r\nscope: portable\r\n\
                        prov_source: human\r\nconfidence: 1.0\r\ncreated_at: ''\r\nupdated_at: ''\r\n\
                        # mine\r\ntags:\r\n- b\r\n- a\r\nown: {x: 1}\r\n# end\r\n---\r\nText \n\r\n";
        assert_eq!(normalised(odd).unwrap(), expected);
        assert_eq!(normalised(expected).unwrap(), expected);
        let flow = "---\n{id: 01ARZ3NDEKTSV4RRFFQ69G5FAV, type: semantic, title: A}\n---\nText";
        let text = normalised(flow).unwrap();
        assert!(
            text.starts_with("---\nid: 01ARZ") && text.ends_with("---\nText"),
            "{text}"
        );
        // Other keys and comments cannot be separated in a flow mapping.
        assert_eq!(
            normalised(&flow.replace("title", "own: 1, title")),
            Err(CannotRewrite)
        );
        assert_eq!(
            normalised(&flow.replace('}', " # mine\n}")),
            Err(CannotRewrite)
        );
    }

    /// The Python version's keys come first.
    #[test]
    fn a_new_note_has_the_keys_in_order() {
        let mut note = Note::new(id(), NoteType::Procedural, now());
        assert_eq!(
            note.render(),
            "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: procedural\ntitle: ''\nproject: global\n\
             machine_id: unknown\nscope: portable\nprov_source: human\nconfidence: 1.0\n\
             created_at: '2026-01-02T03:04:05+00:00'\nupdated_at: '2026-01-02T03:04:05+00:00'\n\
             tags: []\n---\n\n"
        );
        note.title = "Never: force-push".to_owned();
        note.confidence = 0.6;
        note.model = Some("local/m".to_owned());
        note.session = Some("s".to_owned());
        note.supersedes = vec![ID.to_owned()];
        note.tags = vec!["a".to_owned(), "yes".to_owned()];
        note.kind = Some(Kind::Antipattern);
        note.state = State::Muted;
        note.links = vec!["related-to X".to_owned()];
        note.when = vec!["cmd: git push --force".to_owned()];
        note.instead = Some("push a branch".to_owned());
        note.severity = Some(Severity::High);
        note.enforce = Enforce::Once;
        note.status = Some("active".to_owned());
        note.pinned = true;
        note.actor = Some("agent".to_owned());
        note.body = "text".to_owned();
        let text = note.render();
        assert_eq!(
            text,
            "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: procedural\ntitle: 'Never: force-push'\nproject: global\n\
             machine_id: unknown\nscope: portable\nprov_source: human\nconfidence: 0.6\nprov_model: local/m\n\
             prov_session: s\nsupersedes:\n- 01ARZ3NDEKTSV4RRFFQ69G5FAV\ncreated_at: '2026-01-02T03:04:05+00:00'\n\
             updated_at: '2026-01-02T03:04:05+00:00'\ntags:\n- a\n- 'yes'\nkind: antipattern\nstate: muted\nlinks:\n\
             - related-to X\nwhen:\n- 'cmd: git push --force'\ninstead: push a branch\nseverity: high\nenforce: once\n\
             status: active\npinned: true\nprov_actor: agent\n---\ntext\n"
        );
        assert_eq!(parse(&text).unwrap(), note);
    }

    #[test]
    fn an_unknown_status_is_kept_and_ignored() {
        let text = "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: ''\nstatus: draft\n---\n\n";
        let note = parse(text).unwrap();
        assert_eq!(note.status(), Status::Pending);
        assert!(
            rewrite(text, |note| note.pinned = true).contains("\nstatus: draft\npinned: true\n")
        );
        let done = rewrite(text, |note| note.status = Some(Status::Done.to_string()));
        assert_eq!(parse(&done).unwrap().status(), Status::Done);
    }

    /// The Python version's output: folded titles, escapes, lists at column 0.
    #[test]
    fn files_of_the_python_version_are_read() {
        let text = "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\n\
            title: A title that is so long that the emitter folds it over two lines of the\n  file *with* stars\n\
            project: github.com/a/b\nmachine_id: \"esc\\e \\U0001F9EA\"\nscope: portable\nuser_id: self\n\
            workspace_id: personal\nprov_source: human\nconfidence: 1.0\ncreated_at: '2026-01-01T00:00:00+00:00'\n\
            updated_at: '2026-01-01T00:00:00+00:00'\ntags:\n- 1e3\n- 'no'\n---\nbody\n---\nmore\n\n";
        let note = parse(text).unwrap();
        assert_eq!(
            note.title,
            "A title that is so long that the emitter folds it over two lines of the file *with* stars"
        );
        assert_eq!(note.machine_id, "esc\u{1b} 🧪");
        assert_eq!(note.tags, ["1e3", "no"]);
        assert_eq!(note.body, "body\n---\nmore\n");
        assert_eq!(note.user_id.as_deref(), Some("self"));
    }

    #[test]
    fn missing_optional_keys_have_defaults() {
        let note = parse("---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: episodic\ntitle: t\n---\nb\n")
            .unwrap();
        assert_eq!(note.project, GLOBAL);
        assert_eq!(note.machine_id, "unknown");
        assert_eq!((note.created_at.as_str(), note.source), ("", Source::Human));
        assert!((note.confidence - 1.0).abs() < f64::EPSILON);
        assert_eq!(note.kind(), Kind::Experience);
    }

    #[test]
    fn unreadable_files_say_why() {
        for (text, reason) in [
            ("", "line 1: no front matter"),
            ("no front matter\n", "line 1: no front matter"),
            ("---\nid: x\n", "front matter is not closed by a line ---"),
            ("---\ntype: semantic\ntitle: t\n---\n", "missing key \"id\""),
            (
                "---\nid: ../../x\ntype: semantic\ntitle: t\n---\n",
                "key \"id\": \"../../x\" is not a note id (26 characters of 0-9 and A-Z without I, L, O, U)",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAW\ntype: semantic\ntitle: t\n---\n",
                "key \"id\" is 01ARZ3NDEKTSV4RRFFQ69G5FAW, the file name says 01ARZ3NDEKTSV4RRFFQ69G5FAV",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: ../evil\ntitle: t\n---\n",
                "key \"type\": expected one of procedural, semantic, episodic, got \"../evil\"",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: [a]\n---\n",
                "line 4: title: invalid type: sequence, expected a string",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\ntitle: u\n---\n",
                "line 5: duplicate key \"title\"",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: &a t\n---\n",
                "line 4: anchors, aliases and tags are not supported",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\nprov_source: magic\n---\n",
                "key \"prov_source\": expected one of human, session-end, reflection, import, merge, got \"magic\"",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\nconfidence: lots\n---\n",
                "key \"confidence\": expected a number from 0 to 1, got \"lots\"",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), reason, "{text}");
        }
        // YAML-11
        assert_eq!(
            NoteFile::parse(b"---\nid: \xff\n", id()).unwrap_err(),
            Unreadable::NotUtf8 { offset: 8 }
        );
    }

    #[test]
    fn confidence_is_clamped() {
        // YAML-08
        for (written, read) in [
            ("999", 1.0),
            (".inf", 1.0),
            ("-5", 0.0),
            ("NaN", 0.0),
            ("0.25", 0.25),
        ] {
            let text =
                format!("---\nid: {ID}\ntype: semantic\ntitle: t\nconfidence: {written}\n---\n");
            assert!(
                (parse(&text).unwrap().confidence - read).abs() < f64::EPSILON,
                "{written}"
            );
        }
    }

    #[test]
    fn a_rewrite_touches_changed_lines_only() {
        // YAML-14
        let text = "---\n# by hand\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\nfuture: {keep: [me]}\ntype: semantic\n\
            title:   spaced\ntags: [a,  b]\nconfidence: .5\n---\nbody\n";
        assert_eq!(rewrite(text, |_| {}), text);
        assert_eq!(
            rewrite(text, |note| note.title = "new: title".to_owned()),
            text.replace("title:   spaced", "title: 'new: title'")
        );
        assert_eq!(
            rewrite(text, |note| note.tags.push("c".to_owned())),
            text.replace("tags: [a,  b]", "tags:\n- a\n- b\n- c")
        );
        assert_eq!(
            rewrite(text, |note| note.pinned = true),
            text.replace("confidence: .5\n", "confidence: .5\npinned: true\n")
        );
        assert_eq!(
            rewrite(text, |note| note.session = Some("s".to_owned())),
            text.replace("tags: [a,  b]", "prov_session: s\ntags: [a,  b]")
        );
        assert_eq!(
            rewrite(text, |note| note.body = "other".to_owned()),
            text.replace("body\n", "other\n")
        );
    }

    #[test]
    fn a_rewrite_can_remove_a_key() {
        let text =
            format!("---\nid: {ID}\ntype: semantic\ntitle: t\nstate: muted\npinned: true\n---\n");
        let changed = rewrite(&text, |note| {
            note.state = State::Active;
            note.pinned = false;
        });
        assert_eq!(
            changed,
            format!("---\nid: {ID}\ntype: semantic\ntitle: t\n---\n")
        );
    }

    #[test]
    fn crlf_and_byte_order_marks_are_kept() {
        let text = format!(
            "\u{feff}---\r\nid: {ID}\r\ntype: semantic\r\ntitle: t\r\n---\r\none\r\ntwo\r\n"
        );
        assert_eq!(parse(&text).unwrap().body, "one\ntwo");
        assert_eq!(rewrite(&text, |_| {}), text);
        assert_eq!(
            rewrite(&text, |note| note.title = "u".to_owned()),
            text.replace("title: t", "title: u")
        );
        assert!(
            rewrite(&text, |note| note.body = "a\nb".to_owned()).ends_with("---\r\na\r\nb\r\n")
        );
    }

    #[test]
    fn a_flow_mapping_is_read_and_not_rewritten() {
        let text = format!("---\n{{id: {ID}, type: semantic, title: t}}\n---\nb\n");
        let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
        assert_eq!(file.note().title, "t");
        assert_eq!(file.rewrite(file.note()), Err(CannotRewrite));
    }

    #[test]
    fn a_rewrite_that_would_not_read_back_is_refused() {
        // `...` ends the YAML document, so keys after it are not read.
        let text = format!("---\nid: {ID}\ntype: semantic\ntitle: t\n...\n---\nb\n");
        let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
        let mut note = file.note().clone();
        note.pinned = true;
        assert_eq!(file.rewrite(&note), Err(CannotRewrite));
        note = file.note().clone();
        note.title = "u".to_owned();
        assert!(file.rewrite(&note).is_ok());
    }

    #[test]
    fn a_tombstone_keeps_nothing_of_the_text() {
        let mut note = parse(&format!(
            "---\nid: {ID}\ntype: semantic\ntitle: needle\nproject: p\nprov_session: s\ntags: [needle]\nlinks: [needle]\n---\nneedle\n"
        ))
        .unwrap();
        note.forget(now());
        let text = note.render();
        assert!(!text.contains("needle"));
        assert!(
            text.contains("state: forgotten")
                && text.contains("prov_session: s")
                && text.contains("project: p")
        );
        assert_eq!(parse(&text).unwrap().state, State::Forgotten);
    }

    #[test]
    fn a_kind_may_be_given_as_a_tag() {
        let text =
            format!("---\nid: {ID}\ntype: procedural\ntitle: t\ntags: [x, antipattern]\n---\n");
        assert_eq!(parse(&text).unwrap().kind(), Kind::Antipattern);
        assert_eq!(Kind::from_word("how-to").unwrap(), Kind::Skill);
        assert_eq!(Kind::from_word("skill").unwrap(), Kind::Skill);
        assert!(Kind::from_word("nothing").is_err());
    }

    #[test]
    fn timestamps_are_parsed() {
        for text in [
            "2026-01-02T03:04:05+00:00",
            "2026-01-02T03:04:05Z",
            "2026-01-02 03:04:05",
            "2026-01-02T05:04:05+02:00",
        ] {
            assert_eq!(parse_timestamp(text), Some(now()), "{text}");
        }
        assert!(parse_timestamp("2026-01-02").is_some());
        assert_eq!(parse_timestamp("yesterday"), None);
        assert_eq!(timestamp(now()), "2026-01-02T03:04:05+00:00");
    }

    fn any_note() -> impl Strategy<Value = Note> {
        let texts = || prop::collection::vec("\\PC{1,20}", 0..4);
        (
            (
                any::<String>(),
                any::<String>(),
                any::<String>(),
                0.0..=1.0_f64,
            ),
            (texts(), texts(), texts(), prop::option::of("\\PC{1,20}")),
            (0..3_usize, 0..4_usize, any::<bool>(), any::<bool>()),
        )
            .prop_map(
                |(
                    (title, project, body, confidence),
                    (tags, links, supersedes, instead),
                    (kind, state, pinned, may_stop),
                )| {
                    let mut note = Note::new(id(), NoteType::ALL[kind], now());
                    note.title = title;
                    note.project = project;
                    // The body is the text between the last `---` and the final
                    // line end, with LF line ends.
                    note.body = body.replace('\r', "");
                    note.confidence = confidence;
                    note.tags = tags;
                    note.links = links;
                    note.supersedes = supersedes;
                    note.instead = instead;
                    note.state = State::ALL[state];
                    note.pinned = pinned;
                    note.enforce = Enforce::ALL[usize::from(may_stop)];
                    note
                },
            )
    }

    proptest! {
        #[test]
        fn a_new_note_is_normalised(note in any_note()) {
            let text = note.render();
            let file = NoteFile::parse(text.as_bytes(), note.id).unwrap();
            prop_assert_eq!(file.normalised(file.note()).unwrap(), text);
        }

        #[test]
        fn every_note_reads_back(note in any_note()) {
            let read = parse(&note.render()).unwrap();
                        // A tag may be read as the kind.
            prop_assert_eq!(Note { kind: note.kind, ..read }, note);
        }

        #[test]
        fn every_rewrite_reads_back(old in any_note(), new in any_note()) {
            let text = old.render();
            let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
            let rewritten = file.rewrite(&new).unwrap();
            let read = parse(&rewritten).unwrap();
            prop_assert_eq!(Note { kind: new.kind, ..read }, new);
            prop_assert_eq!(file.rewrite(file.note()).unwrap(), text);
        }

        #[test]
        fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = NoteFile::parse(&bytes, id());
            let mut framed = b"---\n".to_vec();
            framed.extend(&bytes);
            framed.extend(b"\n---\nbody\n");
            let _ = NoteFile::parse(&framed, id());
        }
    }
}
