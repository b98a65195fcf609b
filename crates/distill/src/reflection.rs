//! Distils session notes into a few durable notes.
//!
//! This module selects the notes, prepares the material for a model and makes the new notes. The
//! caller asks, writes and commits.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    draft::{safe, safe_line},
    id::NoteId,
    note::{Note, NoteType, REFLECTED_TAG, Scope, Source, State},
};
use anamnesis_store::{
    journal::{self, Journal, Reflection},
    notes::{self, NotePath, Notes, Stored},
};
use anamnesis_text::{hash::bytes_hash, privacy};
use chrono::{DateTime, Utc};

use crate::reply::Distilled;

/// The tag of every note made by a reflection.
pub const TAG: &str = "reflection";

/// The confidence of a note made by a reflection.
const CONFIDENCE: f64 = 0.6;

/// Returns whether a note is pending reflection: a portable session note in use.
pub fn is_pending(note: &Note) -> bool {
    note.note_type == NoteType::Episodic
        && note.scope == Scope::Portable
        && note.state == State::Active
        && !note.has_tag(REFLECTED_TAG)
}

/// Returns whether a note has a private region.
fn is_private(note: &Note) -> bool {
    let texts = [&note.title, &note.body];
    texts.into_iter().any(|text| privacy::strip(text).private)
}

/// Returns whether a part of a note, or of its session, is private.
pub fn has_private_part(journal: &Journal, note: &Note) -> Result<bool, journal::Error> {
    let of_session = match &note.session {
        Some(session) => journal.has_private_part(session)?,
        None => false,
    };
    Ok(of_session || is_private(note))
}

/// Session notes pending reflection.
#[derive(Debug, Default)]
pub struct PendingNotes {
    /// The notes by project.
    pub by_project: BTreeMap<String, Vec<Stored>>,
    /// The number of notes left out because their sessions have private regions.
    pub private: usize,
}

/// Finds the notes pending reflection, of these projects or of all if none is given. Notes whose
/// reflection is a pending proposal are left out.
///
/// # Errors
/// Fails if the journal cannot be read, because only the journal knows which sessions have private
/// regions.
pub fn pending(
    notes: &Notes,
    journal: &Journal,
    projects: &[String],
) -> Result<PendingNotes, journal::Error> {
    let mut pending = PendingNotes::default();
    let proposed = journal.proposed_reflections()?;
    let proposed: BTreeSet<NotePath> = proposed
        .iter()
        .flat_map(|reflection| unchanged(notes, reflection))
        .collect();
    for (path, _) in notes.list_scope(Scope::Portable).notes {
        // `doctor` reports unreadable notes. An oversized note was read only in part.
        let Some(stored) = notes.read(path).ok().filter(|stored| stored.whole) else {
            continue;
        };
        let note = stored.note();
        let is_wanted = projects.is_empty() || projects.contains(&note.project);
        if !is_pending(&note) || !is_wanted || proposed.contains(&path) {
            continue;
        }
        if has_private_part(journal, &note)? {
            pending.private += 1;
        } else {
            let of_project = pending.by_project.entry(note.project).or_default();
            of_project.push(stored);
        }
    }
    Ok(pending)
}

/// Returns the paths of a reflection's notes that are unchanged since.
pub fn unchanged(notes: &Notes, reflection: &Reflection) -> Vec<NotePath> {
    let path = |id: &NoteId| NotePath::portable(NoteType::Episodic, *id);
    let sources = reflection.sources.iter();
    let is_as_it_was = |(id, hash): &(&NoteId, &String)| {
        let bytes = notes.bytes(path(id));
        bytes.is_ok_and(|bytes| bytes_hash(&bytes) == **hash)
    };
    sources
        .filter(is_as_it_was)
        .map(|(id, _)| path(id))
        .collect()
}

/// Returns the hashes of the notes' files, to detect later changes.
pub fn hashes(notes: &Notes, sources: &[Stored]) -> Result<BTreeMap<NoteId, String>, notes::Error> {
    let hash = |stored: &Stored| {
        let bytes = notes.bytes(stored.path)?;
        Ok((stored.path.id, bytes_hash(&bytes)))
    };
    sources.iter().map(hash).collect()
}

/// The author of a reflection.
#[derive(Debug, Clone, Copy)]
pub struct ReflectionAuthor<'a> {
    /// The machine.
    pub machine_id: &'a str,
    /// The model.
    pub model: &'a str,
    /// The session whose model it was, if any.
    pub session: Option<&'a str>,
}

/// Makes a project's notes from distilled texts. Returns them with the number of texts left out
/// because a person had them forgotten.
pub fn notes(
    distilled: Vec<Distilled>,
    journal: &Journal,
    project: &str,
    by: ReflectionAuthor<'_>,
    now: DateTime<Utc>,
) -> Result<(Vec<Note>, usize), journal::Error> {
    let (mut made, mut forgotten) = (Vec::new(), 0);
    for one in distilled {
        if journal.forgotten_at(&one.body)?.is_some() {
            forgotten += 1;
        } else {
            made.push(note(one, project, by, now));
        }
    }
    Ok((made, forgotten))
}

/// Writes notes as proposals. They stay on this machine and are not used until a person approves
/// them.
pub fn propose(
    notes: &Notes,
    journal: &Journal,
    key: &str,
    proposed: &mut [Note],
) -> Result<(), notes::Error> {
    let ids: Vec<NoteId> = proposed.iter().map(|note| note.id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    // Written first: a proposal without known sources must not exist.
    journal.propose_reflection(key, &ids)?;
    let lock = notes.lock()?;
    for note in proposed {
        note.state = State::Proposed;
        note.scope = Scope::MachineLocal;
        notes.create(&lock, note)?;
    }
    Ok(())
}

/// Returns the text to send to a model, newest notes first. It is sanitised again, because a note
/// may predate a redaction rule or come from a person.
pub fn material(mut notes: Vec<&Note>) -> String {
    notes.sort_by(|one, other| {
        let key = |note: &Note| (note.created_at.clone(), note.id);
        key(other).cmp(&key(one))
    });
    let texts: Vec<String> = notes
        .into_iter()
        .map(|note| format!("## {}\n{}", safe_line(&note.title), safe(&note.body)))
        .collect();
    texts.join("\n\n")
}

/// Makes a note from a distilled text.
fn note(distilled: Distilled, project: &str, by: ReflectionAuthor<'_>, now: DateTime<Utc>) -> Note {
    let mut note = Note {
        title: distilled.title,
        body: distilled.body,
        asked: distilled.asked,
        project: project.to_owned(),
        machine_id: by.machine_id.to_owned(),
        session: by.session.map(str::to_owned),
        source: Source::Reflection,
        confidence: CONFIDENCE,
        model: Some(by.model.to_owned()),
        ..Note::new(NoteId::generate(now), distilled.note_type, now)
    };
    note.add_tags([TAG]);
    note
}

/// Tags a note as used. Its tags are sorted, as in the Python version.
pub fn take(note: &mut Note) {
    note.add_tags([REFLECTED_TAG]);
    note.tags.sort();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn episode(title: &str, created_at: &str) -> Note {
        Note {
            title: title.to_owned(),
            body: format!("about {title}"),
            created_at: created_at.to_owned(),
            ..Note::new(NoteId::made_of(title), NoteType::Episodic, now())
        }
    }

    #[test]
    fn only_portable_session_notes_in_use_are_pending() {
        let change = |change: fn(&mut Note)| {
            let mut note = episode("a", "2026-01-01T00:00:00+00:00");
            change(&mut note);
            is_pending(&note)
        };
        assert!(change(|_| {}));
        assert!(!change(|note| note.scope = Scope::MachineLocal));
        assert!(!change(|note| note.note_type = NoteType::Semantic));
        assert!(!change(|note| note.state = State::Forgotten));
        assert!(!change(|note| note.state = State::Proposed));
        assert!(!change(|note| note.add_tags([REFLECTED_TAG])));
    }

    #[test]
    fn what_is_sent_is_safe_and_the_newest_comes_first() {
        // LLM-04
        let secret = concat!("AKIA", "IOSFODNN7EXAMPLE");
        let mut old = episode("old", "2025-01-01T00:00:00+00:00");
        old.body = format!("the key is {secret}");
        let new = episode("new", "2026-01-01T00:00:00+00:00");
        assert_eq!(
            material(vec![&old, &new]),
            "## new\nabout new\n\n## old\nthe key is [REDACTED]"
        );
        let mut private = episode("p", "2026-01-01T00:00:00+00:00");
        assert!(!is_private(&private));
        private.body = "a <private>b</private>".to_owned();
        assert!(is_private(&private));
    }

    #[test]
    fn a_distilled_note_states_its_origin() {
        let distilled = Distilled {
            note_type: NoteType::Procedural,
            title: "t".to_owned(),
            body: "b".to_owned(),
            asked: Vec::new(),
        };
        let by = ReflectionAuthor {
            machine_id: "m",
            model: "openai/x",
            session: None,
        };
        let note = note(distilled, "p", by, now());
        assert_eq!(
            (note.source, note.scope),
            (Source::Reflection, Scope::Portable)
        );
        assert_eq!(note.tags, [TAG]);
        assert_eq!(note.model.as_deref(), Some("openai/x"));
        assert!((note.confidence - 0.6).abs() < f64::EPSILON);
        let mut taken = episode("x", "2026-01-01T00:00:00+00:00");
        taken.add_tags(["session", "a"]);
        take(&mut taken);
        assert_eq!(taken.tags, ["a", REFLECTED_TAG, "session"]);
    }
}
