//! Input for a new note or a change, sanitized.
//!
//! Commands and tools use this: no private text, invisible character or credential gets into a
//! note, and single-line fields stay on one line.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    id::NoteId,
    link::Link,
    note::{Enforce, Kind, Note, NoteType, Scope, Severity, State, Status, timestamp},
    project_key,
    trigger::Trigger,
};
use anamnesis_text::{
    clean::one_line, prompt_text::words, redact::redact, truncate::first_characters,
};

/// The longest title derived from a text, in characters.
const MAX_TITLE_LENGTH: usize = 120;

/// Makes a text safe to store: removes private and invisible text, then masks secrets.
pub fn safe(text: &str) -> String {
    words(text).text
}

/// Makes a text safe to store, on one line.
pub fn safe_line(text: &str) -> String {
    one_line(&safe(text))
}

/// Returns the title of a text: its first non-empty line, truncated.
pub fn title_of(text: &str) -> String {
    let line = one_line(
        text.lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default(),
    );
    let title: String = line.chars().take(MAX_TITLE_LENGTH).collect();
    title.trim_end().to_owned()
}

/// Why a draft is not a valid note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDraft {
    /// It has no text, or none that may be stored.
    #[error("there is no text")]
    NoText,
    /// The title is empty.
    #[error("the title is empty")]
    NoTitle,
    /// The project is empty.
    #[error("the project is empty")]
    NoProject,
    /// The kind belongs to another type.
    #[error("a {} is {}, not {}", .0.shown(), .0.note_type(), .1)]
    AnotherType(Kind, NoteType),
}

/// How many phrases a note may be asked for with, and the maximum length of one in characters.
pub const MAX_ASKED: usize = 10;
const MAX_ASKED_LENGTH: usize = 80;

/// Input for a new note.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The type; derived from the kind if missing.
    pub note_type: Option<NoteType>,
    /// The kind; derived from the type if missing, else a fact.
    pub kind: Option<Kind>,
    /// A one-line summary; the text's first line if missing.
    pub title: Option<String>,
    /// The text.
    pub text: String,
    /// The project's key.
    pub project: String,
    /// Whether it is synchronized.
    pub scope: Scope,
    /// The Python version's user.
    pub user_id: Option<String>,
    /// The Python version's workspace.
    pub workspace_id: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Words and short questions that it may be asked for with; at most [`MAX_ASKED`] count.
    pub asked: Vec<String>,
    /// The triggers of a warning.
    pub when: Vec<Trigger>,
    /// The alternative that a warning recommends.
    pub instead: Option<String>,
    /// How severe it is.
    pub severity: Option<Severity>,
    /// Whether a warning may block a tool call.
    pub enforce: Enforce,
    /// Whether it is always kept at the top.
    pub pinned: bool,
    /// The status of a task.
    pub status: Option<Status>,
    /// Links to other notes.
    pub links: Vec<Link>,
    /// Notes that it replaces.
    pub supersedes: Vec<NoteId>,
}

impl Draft {
    /// Returns a draft with a text for a project.
    pub fn new(text: String, project: String) -> Self {
        Self {
            text,
            project,
            ..Self::default()
        }
    }

    /// Returns a draft of a task.
    pub fn task(text: String, project: String) -> Self {
        Self {
            kind: Some(Kind::Task),
            status: Some(Status::Pending),
            ..Self::new(text, project)
        }
    }

    /// Returns the note, written by a person on this machine.
    pub fn note(self, machine: String, now: DateTime<Utc>) -> Result<Note, InvalidDraft> {
        let of_type = || self.note_type.map_or(Kind::Fact, Kind::of_type);
        let kind = self.kind.unwrap_or_else(of_type);
        if let Some(note_type) = self.note_type
            && note_type != kind.note_type()
        {
            return Err(InvalidDraft::AnotherType(kind, note_type));
        }
        let body = safe(&self.text);
        let title = match &self.title {
            Some(title) => safe_line(title),
            None => title_of(&body),
        };
        if title.is_empty() {
            return Err(InvalidDraft::NoText);
        }
        if self.project.is_empty() {
            return Err(InvalidDraft::NoProject);
        }
        // A task whose text is only its title has no body.
        let is_all = self.status.is_some() && body.trim() == title;
        let mut note = Note {
            title,
            project: self.project,
            machine_id: machine,
            scope: self.scope,
            user_id: line(self.user_id.as_deref()),
            workspace_id: line(self.workspace_id.as_deref()),
            supersedes: self.supersedes.iter().map(NoteId::to_string).collect(),
            asked: asked(&self.asked),
            kind: Some(kind),
            links: self.links.iter().map(Link::to_string).collect(),
            when: lines_of(&self.when),
            instead: line(self.instead.as_deref()),
            severity: self.severity,
            enforce: self.enforce,
            status: self.status.map(|status| status.to_string()),
            pinned: self.pinned,
            body: if is_all { String::new() } else { body },
            ..Note::new(NoteId::generate(now), kind.note_type(), now)
        };
        // The kind is also a tag, for tools that read only tags.
        note.add_tags(self.kind.map(Kind::as_str));
        tag(&mut note, &self.tags);
        Ok(note)
    }
}

/// A change of a note. `None` leaves a field unchanged.
// The comments of the fields are what the model reads.
#[expect(
    missing_docs,
    reason = "the names of the other fields say what they are"
)]
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct NoteChange {
    pub title: Option<String>,
    /// Replaces the text
    pub body: Option<String>,
    /// Appended to the text
    pub addition: Option<String>,
    pub kind: Option<Kind>,
    /// Replaces all tags
    pub tags: Option<Vec<String>>,
    /// Replaces all search terms and questions
    pub asked: Option<Vec<String>>,
    /// 0 to 0.9
    pub confidence: Option<f64>,
    pub severity: Option<Severity>,
    pub instead: Option<String>,
    pub when: Option<Vec<Trigger>>,
    pub status: Option<Status>,
    /// Show it first at session start
    pub pinned: Option<bool>,
}

impl NoteChange {
    /// Returns the change with sanitized texts.
    pub fn fit(self) -> Result<Self, InvalidDraft> {
        let title = self.title.as_deref().map(safe_line);
        if title.as_deref() == Some("") {
            return Err(InvalidDraft::NoTitle);
        }
        Ok(Self {
            title,
            body: self.body.as_deref().map(safe),
            addition: self.addition.as_deref().map(safe),
            instead: self.instead.as_deref().map(safe_line),
            ..self
        })
    }

    /// Applies the change. Sets the note's time if its content changed.
    pub fn apply(&self, note: &mut Note, now: DateTime<Utc>) {
        let (before, was_pinned) = (note.clone(), note.pinned);
        if let Some(title) = &self.title {
            note.title.clone_from(title);
        }
        if let Some(body) = &self.body {
            note.body.clone_from(body);
        }
        if let Some(addition) = self.addition.as_deref().filter(|text| !text.is_empty()) {
            let gap = if note.body.is_empty() { "" } else { "\n\n" };
            note.body = format!("{}{gap}{addition}", note.body.trim_end());
        }
        if let Some(kind) = self.kind {
            let old = note.kind();
            note.tags.retain(|tag| tag != old.as_str());
            note.add_tags([kind.as_str()]);
            note.kind = Some(kind);
            note.note_type = kind.note_type();
        }
        if let Some(tags) = &self.tags {
            let kind = note.kind.filter(|kind| note.has_tag(kind.as_str()));
            note.tags.clear();
            note.add_tags(kind.map(Kind::as_str));
            tag(note, tags);
        }
        if let Some(phrases) = &self.asked {
            note.asked = asked(phrases);
        }
        if let Some(when) = &self.when {
            note.when = lines_of(when);
        }
        if let Some(instead) = &self.instead {
            note.instead = Some(instead.clone()).filter(|text| !text.is_empty());
        }
        note.confidence = self.confidence.unwrap_or(note.confidence);
        note.severity = self.severity.or(note.severity);
        if let Some(status) = self.status.filter(|status| *status != note.status()) {
            note.status = Some(status.to_string());
        }
        note.pinned = self.pinned.unwrap_or(note.pinned);
        let is_other = Note {
            pinned: was_pinned,
            ..note.clone()
        } != before;
        if is_other {
            note.updated_at = timestamp(now);
        }
    }
}

/// Returns the reply to a saved note, which all commands and tools use.
pub fn saved(note: &Note, short: &str) -> String {
    let place = project_key::shown(&note.project);
    let local = if note.scope == Scope::MachineLocal {
        ", this machine only"
    } else {
        ""
    };
    let kind = note.kind().shown();
    if note.state == State::Proposed {
        format!(
            "proposed #{short} {kind} for {place}, by {}: not used until a person approves it",
            note.author()
        )
    } else {
        format!(
            "saved #{short} {kind} for {place}, by {}{local}",
            note.author()
        )
    }
}

/// Returns a sanitized line; `None` if it is empty.
fn line(text: Option<&str>) -> Option<String> {
    text.map(safe_line).filter(|text| !text.is_empty())
}

fn lines_of(when: &[Trigger]) -> Vec<String> {
    let lines = when.iter().map(Trigger::to_string);
    lines.map(|line| redact(&line).text.into_owned()).collect()
}

/// Returns phrases that a note may be asked for with, sanitized: each once, short, and not too many, so
/// that no note answers to everything.
pub fn asked(phrases: &[String]) -> Vec<String> {
    let phrases = phrases.iter().filter_map(|phrase| line(Some(phrase)));
    let mut asked: Vec<String> = Vec::new();
    for phrase in phrases.map(|phrase| first_characters(&phrase, MAX_ASKED_LENGTH).to_owned()) {
        if asked.len() < MAX_ASKED && !asked.contains(&phrase) {
            asked.push(phrase);
        }
    }
    asked
}

fn tag(note: &mut Note, tags: &[String]) {
    let tags: Vec<String> = tags.iter().filter_map(|tag| line(Some(tag))).collect();
    note.add_tags(tags.iter().map(String::as_str));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn next_day() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_400_000, 0).unwrap()
    }

    fn draft(text: &str) -> Draft {
        Draft::new(text.to_owned(), "p".to_owned())
    }

    fn note(draft: Draft) -> Note {
        draft.note("laptop".to_owned(), now()).unwrap()
    }

    #[test]
    fn phrases_to_ask_with_are_few_short_safe_and_different() {
        let long = "x".repeat(200);
        let secret = concat!("AKIA", "IOSFODNN7EXAMPLE");
        let given = [
            " deploy\n",
            "deploy",
            "",
            "<private>p</private>",
            secret,
            &long,
        ];
        let given: Vec<String> = given.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(asked(&given), ["deploy", "[REDACTED]", &long[..80]]);
        let many: Vec<String> = (0..20).map(|number| format!("word {number}")).collect();
        assert_eq!(asked(&many), many[..MAX_ASKED]);
    }

    #[test]
    fn a_title_is_the_first_line() {
        assert_eq!(title_of("\n  first\tline \nsecond"), "first line");
        assert_eq!(title_of(&"x".repeat(500)).len(), 120);
    }

    #[test]
    fn private_text_is_removed() {
        assert_eq!(safe("a <private>b</private> c\u{202e}"), "a  c");
        // Invisible characters may split a tag.
        assert_eq!(safe("a <pri\u{200b}vate>b</private> c"), "a  c");
    }

    #[test]
    fn every_text_of_a_draft_is_made_safe() {
        // CAP-01, CAP-03
        let secret = "a <private>hidden</private> key AKIAIOSFODNN7EXAMPLE\u{202e} b";
        let note = note(Draft {
            title: Some(secret.to_owned()),
            tags: vec![secret.to_owned()],
            instead: Some(secret.to_owned()),
            user_id: Some(secret.to_owned()),
            workspace_id: Some(secret.to_owned()),
            when: vec!["cmd: deploy AKIAIOSFODNN7EXAMPLE".parse().unwrap()],
            ..draft(secret)
        });
        let text = note.render();
        for hidden in ["hidden", "AKIAIOSFODNN7EXAMPLE", "\u{202e}"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }

    #[test]
    fn invalid_drafts_are_refused() {
        let invalid = |draft: Draft| draft.note("laptop".to_owned(), now()).unwrap_err();
        assert_eq!(
            invalid(draft(" <private>all of it</private> ")),
            InvalidDraft::NoText
        );
        let nowhere = Draft::new("text".to_owned(), String::new());
        assert_eq!(invalid(nowhere), InvalidDraft::NoProject);
        let both = Draft {
            note_type: Some(NoteType::Semantic),
            kind: Some(Kind::Skill),
            ..draft("text")
        };
        let error = invalid(both);
        assert_eq!(error.to_string(), "a how-to is procedural, not semantic");
    }

    #[test]
    fn a_task_of_one_line_has_no_text() {
        let task = |text: &str| note(Draft::task(text.to_owned(), "p".to_owned()));
        let one = task("Remove the flag\n");
        assert_eq!(
            (one.title.as_str(), one.body.as_str()),
            ("Remove the flag", "")
        );
        assert_eq!(
            (one.status(), one.tags.as_slice()),
            (Status::Pending, &["task".to_owned()][..])
        );
        assert_eq!(
            task("Remove the flag\nin June").body,
            "Remove the flag\nin June"
        );
    }

    #[test]
    fn a_change_leaves_other_fields() {
        let before = note(Draft {
            kind: Some(Kind::Fact),
            tags: vec!["one".to_owned()],
            ..draft("Old\n\ntext")
        });
        let changed = |change: NoteChange| {
            let mut note = before.clone();
            change.fit().unwrap().apply(&mut note, next_day());
            note
        };
        assert_eq!(changed(NoteChange::default()), before);
        let pinned = changed(NoteChange {
            pinned: Some(true),
            ..NoteChange::default()
        });
        assert!(pinned.pinned && pinned.updated_at == before.updated_at);
        let other = changed(NoteChange {
            title: Some("New <private>not</private>".to_owned()),
            addition: Some("more".to_owned()),
            kind: Some(Kind::Skill),
            tags: Some(vec!["two".to_owned(), " ".to_owned()]),
            confidence: Some(0.5),
            instead: Some("wait".to_owned()),
            severity: Some(Severity::High),
            status: Some(Status::Done),
            ..NoteChange::default()
        });
        assert_eq!(other.title, "New");
        assert_eq!(other.body, "Old\n\ntext\n\nmore");
        assert_eq!(other.tags, ["skill", "two"]);
        assert_eq!(other.note_type, NoteType::Procedural);
        assert_eq!(other.status(), Status::Done);
        assert_eq!(other.updated_at, timestamp(next_day()));
        let title = Some("\u{200b}".to_owned());
        let empty = NoteChange {
            title,
            ..NoteChange::default()
        }
        .fit();
        assert_eq!(empty.unwrap_err(), InvalidDraft::NoTitle);
    }
}
