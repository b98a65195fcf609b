//! A note and the markdown file it is written in.
//!
//! A file is `---`, a block mapping, `---`, the body, one line end. [`Note`] is what the file says;
//! [`NoteFile`] is its bytes, so that a rewrite changes the lines of changed keys and nothing else:
//! unknown keys, comments, order and line ends of other programs stay as they are.

use std::{borrow::Cow, collections::BTreeMap, fmt, fmt::Write as _, ops::Range, str::FromStr};

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};

use crate::{
    front_matter::{self, Shape, Value},
    id::NoteId,
};

/// The project of a note that applies to all projects.
pub const GLOBAL: &str = "global";

/// The largest file that is read whole, in bytes; of a larger one only the head is read.
pub const MAX_FILE_LENGTH: usize = 1024 * 1024;

/// A word that stands for one value in the front matter.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every value, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word in the front matter.
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
#[error("\"{word}\" is none of {}", known.join(", "))]
pub struct UnknownWord {
    /// What was written.
    pub word: String,
    /// What could have been.
    pub known: &'static [&'static str],
}

words! {
    /// What a note is: how to do something, what is so, or what happened.
    NoteType {
        /// How to do something. Durable.
        Procedural = "procedural",
        /// What is so. Durable.
        Semantic = "semantic",
        /// What a session did.
        Episodic = "episodic",
    }
}

words! {
    /// Whether a note travels.
    Scope {
        /// In `memory/`, which sync carries.
        Portable = "portable",
        /// In `local/`, which nothing carries.
        MachineLocal = "machine-local",
    }
}

words! {
    /// How a note came to be. Anything else in a file is unreadable: the Python version's index
    /// refuses it, too.
    Source {
        /// A person, or an agent on request (see [`Note::is_by_agent`]).
        Human = "human",
        /// The end of a session.
        SessionEnd = "session-end",
        /// Distilled from session notes.
        Reflection = "reflection",
        /// Taken over from another memory.
        Import = "import",
        /// Written by the Python version's merge; we write `reflection` instead.
        Merge = "merge",
    }
}

words! {
    /// The finer kind of a note; each belongs to one type.
    Kind {
        /// What is so.
        Fact = "fact",
        /// What the person likes.
        Preference = "preference",
        /// What follows from several things.
        Insight = "insight",
        /// How to do something; shown as `how-to`.
        Skill = "skill",
        /// What not to do; shown as `warning`.
        Antipattern = "antipattern",
        /// What a session did; shown as `session`.
        Experience = "experience",
        /// What is to be done.
        Task = "task",
    }
}

impl Kind {
    /// The kind of a note that names none.
    pub const fn of_type(note_type: NoteType) -> Self {
        match note_type {
            NoteType::Procedural => Self::Skill,
            NoteType::Semantic => Self::Fact,
            NoteType::Episodic => Self::Experience,
        }
    }

    /// The type that notes of this kind have.
    pub const fn note_type(self) -> NoteType {
        match self {
            Self::Skill | Self::Antipattern => NoteType::Procedural,
            Self::Fact | Self::Preference | Self::Insight | Self::Task => NoteType::Semantic,
            Self::Experience => NoteType::Episodic,
        }
    }

    /// The one word that a person is shown.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Skill => "how-to",
            Self::Antipattern => "warning",
            Self::Experience => "session",
            other => other.as_str(),
        }
    }

    /// Reads a kind from the shown or the stored word.
    ///
    /// # Errors
    /// When it is neither.
    pub fn from_word(word: &str) -> Result<Self, UnknownWord> {
        let shown = Self::ALL.iter().find(|kind| kind.shown() == word);
        shown.copied().map_or_else(|| word.parse(), Ok)
    }
}

words! {
    /// Whether a note is in use.
    State {
        /// In use; not written.
        Active = "active",
        /// Waits for a person, inert until then.
        Proposed = "proposed",
        /// Never comes up by itself.
        Muted = "muted",
        /// A tombstone.
        Forgotten = "forgotten",
    }
}

words! {
    /// How bad it is to run into a warning.
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
    /// Whether a warning may stop a call.
    Enforce {
        /// It may not; not written.
        Never = "never",
        /// Once in a session, if a person wrote it and it is severe enough.
        Once = "once",
    }
}

words! {
    /// How far a task is. Every change between them is allowed.
    Status {
        /// Not begun.
        Pending = "pending",
        /// Being worked on.
        Active = "active",
        /// Finished.
        Done = "done",
        /// Put away, finished or not.
        Archived = "archived",
    }
}

impl Status {
    /// Tells whether there is still something to do.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Active)
    }
}

/// A note: one thing remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The id, which is also the file name.
    pub id: NoteId,
    /// The type.
    pub note_type: NoteType,
    /// The title; may be empty, may hold line breaks if another program wrote it.
    pub title: String,
    /// The project key, or [`GLOBAL`].
    pub project: String,
    /// The machine that wrote it.
    pub machine_id: String,
    /// Whether it travels. What the file says; the tree it lies in decides.
    pub scope: Scope,
    /// The Python version's user, if the file names one.
    pub user_id: Option<String>,
    /// The Python version's workspace, if the file names one.
    pub workspace_id: Option<String>,
    /// How it came to be.
    pub source: Source,
    /// From 0 to 1.
    pub confidence: f64,
    /// The model that wrote it, as `provider/model`.
    pub model: Option<String>,
    /// The client's id of the session it came from.
    pub session: Option<String>,
    /// Ids of notes that this one replaces, as written.
    pub supersedes: Vec<String>,
    /// When it was made, as written.
    pub created_at: String,
    /// When its content last changed, as written.
    pub updated_at: String,
    /// Tags, as written.
    pub tags: Vec<String>,
    /// The finer kind, if the file names one (by key or by tag).
    pub kind: Option<Kind>,
    /// Whether it is in use.
    pub state: State,
    /// Declared links, `RELATION ID [WEIGHT]` each.
    pub links: Vec<String>,
    /// Where a warning fires.
    pub when: Vec<String>,
    /// What to do instead of what a warning is about.
    pub instead: Option<String>,
    /// How bad it is to run into a warning.
    pub severity: Option<Severity>,
    /// Whether a warning may stop a call.
    pub enforce: Enforce,
    /// How far a task is, as written: many programs have a key of this name, with words of their own.
    pub status: Option<String>,
    /// Kept at the top and never faded.
    pub pinned: bool,
    /// `agent` when a model wrote it through a tool.
    pub actor: Option<String>,
    /// The text, without the file's final line end, lines ended by `\n`.
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

    /// The finer kind: the one named, else the one of the type.
    pub fn kind(&self) -> Kind {
        self.kind.unwrap_or(Kind::of_type(self.note_type))
    }

    /// How far a task is: pending, unless it says otherwise.
    pub fn status(&self) -> Status {
        let status = self.status.as_deref().map(str::parse);
        status.and_then(Result::ok).unwrap_or(Status::Pending)
    }

    /// Tells whether the note says of itself that a model wrote it through a tool.
    pub fn is_by_agent(&self) -> bool {
        self.actor.as_deref() == Some("agent")
    }

    /// The word for who wrote it, as people and models are shown it.
    pub fn author(&self) -> &'static str {
        match self.source {
            Source::Human if self.is_by_agent() => "agent",
            Source::Human => "you",
            Source::SessionEnd => "session",
            Source::Reflection | Source::Merge => "reflection",
            Source::Import => "import",
        }
    }

    /// Tells whether it applies to all projects.
    pub fn is_global(&self) -> bool {
        self.project == GLOBAL
    }

    /// Tells whether the note carries the tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    /// Adds tags that are not there yet, at the end.
    pub fn add_tags<'a>(&mut self, tags: impl IntoIterator<Item = &'a str>) {
        for tag in tags {
            if !self.has_tag(tag) {
                self.tags.push(tag.to_owned());
            }
        }
    }

    /// Turns the note into its tombstone: what it was is gone, that it was stays.
    ///
    /// The title stays as an empty key, since the Python version reads no note without one.
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

    /// Writes the lines of one key; none for an optional key that is empty.
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
            // A float always shows its point, or YAML would read an integer.
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

/// The keys we write, in the order of the file: the Python version's, then ours.
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

/// How many of [`KEYS`] the Python version knows, from the first one on.
const KEYS_OF_PYTHON: usize = 16;

/// Tells whether a key is one that [`Note`] has a field for.
pub(crate) fn is_own_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// Tells whether the Python version knows a key. Others it drops whenever it rewrites a note.
pub(crate) fn is_key_of_python(key: &str) -> bool {
    KEYS[..KEYS_OF_PYTHON].contains(&key)
}

fn shape(key: &str) -> Shape {
    match key {
        "tags" | "supersedes" | "links" | "when" => Shape::List,
        _ if is_own_key(key) => Shape::Text,
        _ => Shape::Any,
    }
}

/// Why a file is not a note. It is left as it is, and listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The bytes are no UTF-8.
    #[error("not UTF-8 (byte {offset})")]
    NotUtf8 {
        /// The first bad byte.
        offset: usize,
    },
    /// The file does not begin with `---`.
    #[error("line 1: no front matter")]
    NoFrontMatter,
    /// No second `---` line.
    #[error("front matter without an end")]
    UnclosedFrontMatter,
    /// The YAML was refused.
    #[error("{0}")]
    Yaml(#[from] front_matter::Error),
    /// A key that every note has is missing.
    #[error("key \"{0}\" missing")]
    MissingKey(&'static str),
    /// A key has a value that it cannot have.
    #[error("key \"{key}\": {reason}")]
    InvalidValue {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The id in the file is not the id in its name.
    #[error("key \"id\" is {found}, the file name says {expected}")]
    IdMismatch {
        /// The id in the file.
        found: String,
        /// The id in the name.
        expected: NoteId,
    },
    /// A git that could not merge has written both sides into it. [`NoteFile::parse`] does not look for
    /// that, since a merge has to read such a file.
    #[error("holds the conflict markers of a git merge")]
    ConflictMarkers,
}

/// A rewrite that cannot be done without touching what is not ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the front matter is written in a form that cannot be changed key by key; edit it by hand")]
pub struct CannotRewrite;

/// The lines of one key, or those between two keys.
#[derive(Debug, Clone)]
pub(crate) struct Part<'a> {
    /// The key; none for comments and blank lines.
    pub(crate) key: Option<String>,
    /// The lines, with their ends.
    pub(crate) text: Cow<'a, str>,
}

/// A note's file: its text and what it says.
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
    /// Reads the bytes of a note's file; `name` is the id in its file name.
    ///
    /// A byte order mark and CRLF line ends are taken.
    ///
    /// # Errors
    /// See [`Unreadable`].
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
        // A carriage return is white space to YAML only at the end of a line, as here.
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

    /// What the file says.
    pub fn note(&self) -> &Note {
        &self.note
    }

    /// What the file says, without its bytes.
    pub fn into_note(self) -> Note {
        self.note
    }

    /// The text of a key that no field stands for; none where it is missing or no text.
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

    /// The keys of the front matter, sorted.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Takes the front matter apart; together the parts are all of it.
    ///
    /// # Errors
    /// When it is valid YAML but no block mapping, one key a line.
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

    /// Returns the file with other front matter.
    ///
    /// # Errors
    /// When the result would not be a note.
    pub(crate) fn with_parts(&self, parts: &[Part<'_>]) -> Result<Self, Unreadable> {
        let front: String = parts.iter().map(|part| part.text.as_ref()).collect();
        let (before, after) = (&self.text[..self.front.start], &self.text[self.front.end..]);
        Self::parse(format!("{before}{front}{after}").as_bytes(), self.note.id)
    }

    /// Tells whether these are the file's bytes.
    pub fn is_text(&self, text: &str) -> bool {
        self.text == text
    }

    /// The file's bytes.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the file with `note` in place of what it says now.
    ///
    /// Only the lines of keys whose value differs are replaced, removed or put in; the body only
    /// when it differs.
    ///
    /// # Errors
    /// When the front matter is valid YAML but no block mapping, one key a line.
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
        // YAML has more corners than a change of lines can know of, so the result is read again.
        let read = Self::parse(text.as_bytes(), note.id).map_err(|_| CannotRewrite)?;
        let says_it = Note {
            // A tag may be read as the kind.
            kind: note.kind,
            ..read.into_note()
        } == *note;
        if says_it {
            Ok(text)
        } else {
            Err(CannotRewrite)
        }
    }

    /// Returns the file with its front matter as a new note has it: what `note` says in our order, each
    /// comment before its key, keys of others behind ours as they are. The body stays byte for byte.
    ///
    /// # Errors
    /// When the front matter is no block mapping and holds what is not ours.
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
                // What stands behind the last key.
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

    /// The keys and where their lines are, if the front matter is one key a line.
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

/// Where a new key goes: before the first key that comes after it in the order of the file.
fn insertion_point(entries: &[front_matter::Entry], key: &str, end: usize) -> usize {
    let rank = |key: &str| KEYS.iter().position(|known| *known == key);
    let own = rank(key);
    entries
        .iter()
        .find(|entry| rank(&entry.key).is_some_and(|other| Some(other) > own))
        .map_or(end, |entry| entry.range.start)
}

/// Reads an optional word; an empty one counts as none.
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

/// Reduces the values of a file to a note.
fn note_of(values: &BTreeMap<String, Value>, body: String) -> Result<Note, Unreadable> {
    let text = |key: &str| match values.get(key) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    // An optional key that is empty is one that is not there, which is how it is written.
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
    // The kind may stand as a tag alone, for tools that know only tags.
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

/// Reads a confidence and holds it between 0 and 1: no number in a file may win for ever.
fn confidence(text: Option<&str>) -> Result<f64, Unreadable> {
    let Some(text) = text else { return Ok(1.0) };
    let number = match text {
        ".inf" | "+.inf" => f64::INFINITY,
        "-.inf" => f64::NEG_INFINITY,
        _ => text.parse::<f64>().map_err(|_| Unreadable::InvalidValue {
            key: "confidence",
            reason: format!("\"{text}\" is no number"),
        })?,
    };
    Ok(if number.is_nan() {
        0.0
    } else {
        number.clamp(0.0, 1.0)
    })
}

/// Writes a time as notes have it: UTC, seconds, `+00:00`.
pub fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, false)
}

/// Reads a time as notes and editors write it: ISO 8601 with an offset, without one (UTC), or a date.
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
    fn front_matter_is_brought_into_order_and_nothing_is_lost() {
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
        // What is not ours cannot be told apart there.
        assert_eq!(
            normalised(&flow.replace("title", "own: 1, title")),
            Err(CannotRewrite)
        );
        assert_eq!(
            normalised(&flow.replace('}', " # mine\n}")),
            Err(CannotRewrite)
        );
    }

    /// A note that holds every key, as the Python version lists them, then ours.
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
    fn a_status_of_another_program_is_kept_and_counts_as_none() {
        let text = "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: ''\nstatus: draft\n---\n\n";
        let note = parse(text).unwrap();
        assert_eq!(note.status(), Status::Pending);
        assert!(
            rewrite(text, |note| note.pinned = true).contains("\nstatus: draft\npinned: true\n")
        );
        let done = rewrite(text, |note| note.status = Some(Status::Done.to_string()));
        assert_eq!(parse(&done).unwrap().status(), Status::Done);
    }

    /// What the Python version's emitter writes: folded titles, escapes, lists at column 0.
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
            ("---\nid: x\n", "front matter without an end"),
            ("---\ntype: semantic\ntitle: t\n---\n", "key \"id\" missing"),
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
                "key \"type\": \"../evil\" is none of procedural, semantic, episodic",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: [a]\n---\n",
                "line 4: title: invalid type: sequence, expected a string",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\ntitle: u\n---\n",
                "line 5: key \"title\" twice",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: &a t\n---\n",
                "line 4: anchors, aliases and tags are not taken",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\nprov_source: magic\n---\n",
                "key \"prov_source\": \"magic\" is none of human, session-end, reflection, import, merge",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\nconfidence: lots\n---\n",
                "key \"confidence\": \"lots\" is no number",
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
    fn numbers_cannot_win_for_ever() {
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
    fn a_rewrite_can_take_a_key_out() {
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
    fn crlf_and_byte_order_marks_stay() {
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
    fn what_would_not_read_back_is_not_written() {
        // The end of a YAML document: keys behind it are not read.
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
    fn a_kind_may_stand_as_a_tag() {
        let text =
            format!("---\nid: {ID}\ntype: procedural\ntitle: t\ntags: [x, antipattern]\n---\n");
        assert_eq!(parse(&text).unwrap().kind(), Kind::Antipattern);
        assert_eq!(Kind::from_word("how-to").unwrap(), Kind::Skill);
        assert_eq!(Kind::from_word("skill").unwrap(), Kind::Skill);
        assert!(Kind::from_word("nothing").is_err());
    }

    #[test]
    fn times_of_editors_are_read() {
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
                    // A body is what stands between the last `---` and the final line end; CR has no place in it.
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
        fn a_new_note_is_in_order(note in any_note()) {
            let text = note.render();
            let file = NoteFile::parse(text.as_bytes(), note.id).unwrap();
            prop_assert_eq!(file.normalised(file.note()).unwrap(), text);
        }

        #[test]
        fn every_note_reads_back(note in any_note()) {
            let read = parse(&note.render()).unwrap();
            // A tag may be taken for the kind, which the file then says.
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
