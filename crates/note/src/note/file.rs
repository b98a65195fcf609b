//! A note's file: parsing it, and rewriting only what changed.

use std::{borrow::Cow, collections::BTreeMap, ops::Range, str::FromStr};

use super::{Enforce, GLOBAL, KEYS, Kind, Note, Scope, Source, State, UnknownWord, is_own_key};
use crate::{
    front_matter::{self, Shape, Value},
    id::NoteId,
};

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
pub(crate) struct KeyLines<'a> {
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
    pub(crate) fn parts(&self) -> Result<Vec<KeyLines<'_>>, CannotRewrite> {
        let block = &self.text[self.front.clone()];
        let entries = self.entries()?;
        let mut parts = Vec::with_capacity(2 * entries.len() + 1);
        let mut position = 0;
        for entry in entries {
            parts.push(KeyLines {
                key: None,
                text: Cow::Borrowed(&block[position..entry.range.start]),
            });
            parts.push(KeyLines {
                key: Some(entry.key),
                text: Cow::Borrowed(&block[entry.range.clone()]),
            });
            position = entry.range.end;
        }
        parts.push(KeyLines {
            key: None,
            text: Cow::Borrowed(&block[position..]),
        });
        Ok(parts)
    }

    /// Returns the file with other front matter. Fails if the result is not a valid note.
    pub(crate) fn with_parts(&self, parts: &[KeyLines<'_>]) -> Result<Self, Unreadable> {
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

fn shape(key: &str) -> Shape {
    match key {
        "tags" | "asked" | "supersedes" | "links" | "when" => Shape::List,
        _ if is_own_key(key) => Shape::Text,
        _ => Shape::Any,
    }
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
        host: optional("prov_host"),
        branch: optional("branch"),
        supersedes: list("supersedes"),
        created_at: text("created_at").unwrap_or_default(),
        updated_at: text("updated_at").unwrap_or_default(),
        tags,
        asked: list("asked"),
        kind,
        state: word("state", text("state"))?.unwrap_or(State::Active),
        links: list("links"),
        when: list("when"),
        instead: optional("instead"),
        severity: word("severity", text("severity"))?,
        enforce: word("enforce", text("enforce"))?.unwrap_or(Enforce::Never),
        status: optional("status"),
        pinned: text("pinned").is_some_and(|word| word == "true"),
        rating: text("rating").and_then(|word| word.parse().ok()),
        verified: optional("verified"),
        actor: optional("prov_actor"),
        tool: optional("prov_tool"),
        tool_id: optional("prov_id"),
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
