//! What somebody wants to be a note, or changed in one, made fit to be kept.
//!
//! Commands of people and tools of models come through here: nothing private, nothing that cannot be
//! seen and no credential gets into a note, and what is one line stays one.

use chrono::{DateTime, Utc};

use crate::{
    id::NoteId,
    link::Link,
    note::{Enforce, Kind, Note, NoteType, Scope, Severity, State, Status, timestamp},
    trigger::Trigger,
};
use anamnesis_text::{clean::one_line, prompt_text::words, redact::redact};

/// The longest title that is made of a text, in characters.
const MAX_TITLE_LENGTH: usize = 120;

/// Makes a text safe to be kept: nothing private, nothing invisible, no secret. In this order.
pub fn safe(text: &str) -> String {
    words(text).text
}

/// Makes a text safe to be kept, on one line.
pub fn safe_line(text: &str) -> String {
    one_line(&safe(text))
}

/// The title of a text: its first line, cut to a length.
pub fn title_of(text: &str) -> String {
    let line = one_line(
        text.lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default(),
    );
    let title: String = line.chars().take(MAX_TITLE_LENGTH).collect();
    title.trim_end().to_owned()
}

/// Why a draft is no note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It says nothing, or nothing that may be kept.
    #[error("there is no text")]
    NoText,
    /// A title without a word.
    #[error("the title is empty")]
    NoTitle,
    /// A project without a name.
    #[error("the project is empty")]
    NoProject,
    /// The kind is not one of the type.
    #[error("a {} is {}, not {}", .0.shown(), .0.note_type(), .1)]
    AnotherType(Kind, NoteType),
}

/// What somebody wants to be a note.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The type; the kind decides without it.
    pub note_type: Option<NoteType>,
    /// The kind; the type decides without it, and a fact is what has neither.
    pub kind: Option<Kind>,
    /// One line that says it all; the text's first line without it.
    pub title: Option<String>,
    /// The text.
    pub text: String,
    /// The project's key.
    pub project: String,
    /// Whether it travels.
    pub scope: Scope,
    /// The Python version's user.
    pub user_id: Option<String>,
    /// The Python version's workspace.
    pub workspace_id: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Where a warning comes up.
    pub when: Vec<Trigger>,
    /// What to do instead of what a warning is about.
    pub instead: Option<String>,
    /// How bad it is.
    pub severity: Option<Severity>,
    /// Whether a warning may stop a call.
    pub enforce: Enforce,
    /// Kept at the top.
    pub pinned: bool,
    /// How far a task is.
    pub status: Option<Status>,
    /// Links to other notes.
    pub links: Vec<Link>,
    /// Notes that it replaces.
    pub supersedes: Vec<NoteId>,
}

impl Draft {
    /// A text that is a note of a project.
    pub fn new(text: String, project: String) -> Self {
        Self {
            note_type: None,
            kind: None,
            title: None,
            text,
            project,
            scope: Scope::Portable,
            user_id: None,
            workspace_id: None,
            tags: Vec::new(),
            when: Vec::new(),
            instead: None,
            severity: None,
            enforce: Enforce::Never,
            pinned: false,
            status: None,
            links: Vec::new(),
            supersedes: Vec::new(),
        }
    }

    /// A text that is something to do.
    pub fn task(text: String, project: String) -> Self {
        Self {
            kind: Some(Kind::Task),
            status: Some(Status::Pending),
            ..Self::new(text, project)
        }
    }

    /// The note, written by a person on a machine.
    ///
    /// # Errors
    /// When it would say nothing, or contradicts itself.
    pub fn note(self, machine: String, now: DateTime<Utc>) -> Result<Note, Unfit> {
        let of_type = || self.note_type.map_or(Kind::Fact, Kind::of_type);
        let kind = self.kind.unwrap_or_else(of_type);
        if let Some(note_type) = self.note_type
            && note_type != kind.note_type()
        {
            return Err(Unfit::AnotherType(kind, note_type));
        }
        let body = safe(&self.text);
        let title = match &self.title {
            Some(title) => safe_line(title),
            None => title_of(&body),
        };
        if title.is_empty() {
            return Err(Unfit::NoText);
        }
        if self.project.is_empty() {
            return Err(Unfit::NoProject);
        }
        // A task's title alone is no text: one line says it all.
        let is_all = self.status.is_some() && body.trim() == title;
        let mut note = Note {
            title,
            project: self.project,
            machine_id: machine,
            scope: self.scope,
            user_id: line(self.user_id.as_deref()),
            workspace_id: line(self.workspace_id.as_deref()),
            supersedes: self.supersedes.iter().map(NoteId::to_string).collect(),
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
        // The kind is a tag as well, for tools that know only tags.
        note.add_tags(self.kind.map(Kind::as_str));
        tag(&mut note, &self.tags);
        Ok(note)
    }
}

/// What somebody wants changed of a note. What is none stays as it is.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Its title.
    pub title: Option<String>,
    /// Its text.
    pub body: Option<String>,
    /// What follows its text from now on, as a paragraph of its own.
    pub addition: Option<String>,
    /// Its kind, and with it its type.
    pub kind: Option<Kind>,
    /// All of its tags.
    pub tags: Option<Vec<String>>,
    /// How sure it is, from 0 to 1.
    pub confidence: Option<f64>,
    /// Where a warning comes up.
    pub when: Option<Vec<Trigger>>,
    /// What to do instead of what a warning is about; nothing if it is empty.
    pub instead: Option<String>,
    /// How bad it is.
    pub severity: Option<Severity>,
    /// How far a task is.
    pub status: Option<Status>,
    /// Whether it is kept at the top.
    pub pinned: Option<bool>,
}

impl Change {
    /// The same with texts that are safe to be kept.
    ///
    /// # Errors
    /// When the title would be empty.
    pub fn fit(self) -> Result<Self, Unfit> {
        let title = self.title.as_deref().map(safe_line);
        if title.as_deref() == Some("") {
            return Err(Unfit::NoTitle);
        }
        Ok(Self {
            title,
            body: self.body.as_deref().map(safe),
            addition: self.addition.as_deref().map(safe),
            instead: self.instead.as_deref().map(safe_line),
            ..self
        })
    }

    /// Makes the change, at a time that the note is told where its content is another one.
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

/// What becomes of a note that was saved, as every reply says it.
pub fn saved(note: &Note, short: &str) -> String {
    let place = if note.is_global() {
        "all projects"
    } else {
        &note.project
    };
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

/// A line that may be kept; none where nothing is left of it.
fn line(text: Option<&str>) -> Option<String> {
    text.map(safe_line).filter(|text| !text.is_empty())
}

fn lines_of(when: &[Trigger]) -> Vec<String> {
    let lines = when.iter().map(Trigger::to_string);
    lines.map(|line| redact(&line).text.into_owned()).collect()
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

    fn later() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_400_000, 0).unwrap()
    }

    fn draft(text: &str) -> Draft {
        Draft::new(text.to_owned(), "p".to_owned())
    }

    fn note(draft: Draft) -> Note {
        draft.note("laptop".to_owned(), now()).unwrap()
    }

    #[test]
    fn a_title_is_the_first_line() {
        assert_eq!(title_of("\n  first\tline \nsecond"), "first line");
        assert_eq!(title_of(&"x".repeat(500)).len(), 120);
    }

    #[test]
    fn what_is_private_is_gone() {
        assert_eq!(safe("a <private>b</private> c\u{202e}"), "a  c");
        // What cannot be seen may part a tag.
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
    fn what_is_no_note() {
        let unfit = |draft: Draft| draft.note("laptop".to_owned(), now()).unwrap_err();
        assert_eq!(
            unfit(draft(" <private>all of it</private> ")),
            Unfit::NoText
        );
        let nowhere = Draft::new("text".to_owned(), String::new());
        assert_eq!(unfit(nowhere), Unfit::NoProject);
        let both = Draft {
            note_type: Some(NoteType::Semantic),
            kind: Some(Kind::Skill),
            ..draft("text")
        };
        let error = unfit(both);
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
    fn a_change_changes_what_it_names() {
        let before = note(Draft {
            kind: Some(Kind::Fact),
            tags: vec!["one".to_owned()],
            ..draft("Old\n\ntext")
        });
        let changed = |change: Change| {
            let mut note = before.clone();
            change.fit().unwrap().apply(&mut note, later());
            note
        };
        assert_eq!(changed(Change::default()), before);
        let pinned = changed(Change {
            pinned: Some(true),
            ..Change::default()
        });
        assert!(pinned.pinned && pinned.updated_at == before.updated_at);
        let other = changed(Change {
            title: Some("New <private>not</private>".to_owned()),
            addition: Some("more".to_owned()),
            kind: Some(Kind::Skill),
            tags: Some(vec!["two".to_owned(), " ".to_owned()]),
            confidence: Some(0.5),
            instead: Some("wait".to_owned()),
            severity: Some(Severity::High),
            status: Some(Status::Done),
            ..Change::default()
        });
        assert_eq!(other.title, "New");
        assert_eq!(other.body, "Old\n\ntext\n\nmore");
        assert_eq!(other.tags, ["skill", "two"]);
        assert_eq!(other.note_type, NoteType::Procedural);
        assert_eq!(other.status(), Status::Done);
        assert_eq!(other.updated_at, timestamp(later()));
        let title = Some("\u{200b}".to_owned());
        let empty = Change {
            title,
            ..Change::default()
        }
        .fit();
        assert_eq!(empty.unwrap_err(), Unfit::NoTitle);
    }
}
