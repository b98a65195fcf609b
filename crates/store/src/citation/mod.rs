//! Checks whether the things that notes cite in their project still exist, so that outdated notes are
//! marked.
//!
//! The deferred process checks the project of the session that started it from time to time. A hook
//! only reads the result ([`Journal::stale`]). Session notes are not checked, because they describe
//! the past.
//!
//! A citation counts as gone only with evidence that it existed when the note was written or later:
//! the git history, or our own record. A first check without either is final until the thing appears,
//! because whoever wrote the note knew the project.

mod checkout;
mod scan;

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
    time::Duration,
};

use anamnesis_note::{
    citation::{Citation, CitationKind, citations},
    id::NoteId,
    note::{Kind as NoteKind, parse_timestamp},
    project_key::is_shared,
};
use anamnesis_text::{clean::one_line, hash::text_hash, redact::redact};
use chrono::{DateTime, Utc};

use self::checkout::{Claim, Verdict};
use crate::{
    index::{self, Entry, Filter, Index},
    journal::{self, CitationState, Journal, State},
    notes::Notes,
    project,
};

/// The maximum number of notes per project that are checked, the latest first.
const MAX_NOTES: usize = 10_000;

/// The maximum length of a new path that is shown, in bytes.
const MAX_HINT: usize = 120;

/// The limits of one run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of notes, those with the oldest check first.
    pub notes: usize,
    /// The maximum number of bytes read from the folder and the history.
    pub bytes: usize,
    /// The time limit.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            notes: 200,
            bytes: 64 * 1024 * 1024,
            time: Duration::from_secs(2),
        }
    }
}

/// The project to check.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The keys of the project.
    pub projects: &'a [String],
    /// The project's folder, which is absolute.
    pub folder: &'a Path,
    /// The current time.
    pub now: DateTime<Utc>,
    /// The limits.
    pub limits: Limits,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// The number of checked notes.
    pub notes: usize,
    /// The number of them that cite something that is gone.
    pub stale: usize,
}

/// The check failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

/// A note with its citations.
struct Citing {
    id: NoteId,
    project: String,
    /// When its text last changed, seconds since 1970.
    written_at: i64,
    references: Vec<Citation>,
    known: HashMap<(CitationKind, String), CitationState>,
}

/// Checks the citations of a project's notes and stores the result.
///
/// # Errors
/// The previous results stay.
pub fn look(
    journal: &Journal,
    index: &Index,
    notes: &Notes,
    request: &Request<'_>,
) -> Result<Looked, Error> {
    let filter = Filter {
        projects: request.projects.to_vec(),
        ..Filter::default()
    };
    let mut entries = index.list(&filter, MAX_NOTES)?;
    entries.retain(is_looked_at);
    let looks = journal.reference_looks(request.projects)?;
    let ids: BTreeSet<NoteId> = entries.iter().map(Entry::id).collect();
    let dropped: BTreeSet<NoteId> = looks
        .keys()
        .copied()
        .filter(|id| !ids.contains(id))
        .collect();
    entries.sort_by_key(|entry| (looks.get(&entry.id()).copied(), entry.id()));
    entries.truncate(request.limits.notes);
    let place = match project::repository_around(request.folder) {
        Some(_) => String::new(),
        None => text_hash(&request.folder.to_string_lossy()),
    };
    let mut citing = Vec::new();
    for entry in &entries {
        if let Ok(stored) = notes.read(entry.path) {
            let note = stored.note();
            // Redacted like the texts of the index.
            let text = format!("{}\n\n{}", note.title, note.body);
            let root = request.folder.to_str();
            let mut known = journal.references_of(entry.id())?;
            known.retain(|known| known.place == place);
            citing.push(Citing {
                id: entry.id(),
                project: entry.project.clone(),
                written_at: parse_timestamp(&entry.updated_at).map_or(0, |time| time.timestamp()),
                references: citations(&redact(&text).text, root),
                known: known
                    .into_iter()
                    .map(|known| ((known.kind, known.text.clone()), known))
                    .collect(),
            });
        }
    }
    let claims: Vec<Claim<'_>> = citing
        .iter()
        .flat_map(|note| {
            note.references
                .iter()
                .map(|reference| note.claim(reference))
        })
        .collect();
    let mut verdicts = checkout::look(&claims, request.folder, &request.limits).into_iter();
    let now = request.now.timestamp_millis();
    let mut looked = Looked::default();
    journal.in_transaction(|journal| {
        journal.drop_references(&dropped)?;
        for note in &citing {
            let mut kept = Vec::new();
            for (reference, verdict) in note.references.iter().zip(&mut verdicts) {
                kept.extend(note.outcome(reference, verdict, &place, now));
            }
            looked.notes += 1;
            looked.stale += usize::from(kept.iter().any(|known| known.state == State::Gone));
            journal.keep_references(note.id, &note.project, &kept, now)?;
        }
        Ok(())
    })?;
    Ok(looked)
}

/// Returns whether changes of the project can make a note false.
fn is_looked_at(entry: &Entry) -> bool {
    entry.kind != NoteKind::Experience && entry.state.is_in_use() && !is_shared(&entry.project)
}

impl Citing {
    fn known(&self, reference: &Citation) -> Option<&CitationState> {
        self.known.get(&(reference.kind, reference.text.clone()))
    }

    fn claim<'a>(&self, reference: &'a Citation) -> Claim<'a> {
        let known = self.known(reference);
        let seen_at = known
            .and_then(|known| known.seen_at)
            .map(|seen| seen / 1000);
        Claim {
            reference,
            since: self.written_at.max(seen_at.unwrap_or(i64::MIN)),
            is_asked: !reference.is_past
                && known
                    .is_none_or(|known| known.state != State::Unknown || known.seen_at.is_some()),
        }
    }

    /// Returns the stored state of a citation; none if it was not checked.
    fn outcome(
        &self,
        reference: &Citation,
        verdict: Verdict,
        place: &str,
        now: i64,
    ) -> Option<CitationState> {
        let before = self.known(reference);
        let seen_at = before.and_then(|known| known.seen_at);
        let mut known = CitationState {
            kind: reference.kind,
            text: reference.text.clone(),
            state: State::Unknown,
            seen_at,
            gone_at: None,
            reason: None,
            place: place.to_owned(),
        };
        let mut is_gone = |gone_at: i64, reason: String| {
            known.state = State::Gone;
            known.gone_at = Some(gone_at);
            known.reason = Some(reason);
        };
        let text = match reference.kind {
            CitationKind::Commit => format!("commit {}", reference.text),
            _ => reference.text.clone(),
        };
        // The time when it was first missing, unless the note changed since.
        let missed_at = before.and_then(|known| known.gone_at).unwrap_or(now);
        let was_seen =
            seen_at.is_some_and(|seen| seen / 1000 >= self.written_at) && !reference.is_past;
        match verdict {
            Verdict::NotLookedAt => return before.cloned(),
            Verdict::Present => {
                known.state = State::Present;
                known.seen_at = Some(now);
            }
            Verdict::Gone(gone) => {
                let hint = gone.now.as_deref().and_then(hint);
                is_gone(
                    gone.at * 1000,
                    format!(
                        "{text} is gone since {}{}",
                        gone.since,
                        hint.unwrap_or_default()
                    ),
                );
            }
            Verdict::Uncommitted if was_seen => {
                is_gone(missed_at, format!("{text} is gone, which is not committed"));
            }
            // The history has nothing on these.
            Verdict::Absent
                if was_seen && (reference.kind == CitationKind::Commit || !place.is_empty()) =>
            {
                is_gone(missed_at, format!("{text} is gone"));
            }
            Verdict::Untracked | Verdict::Uncommitted | Verdict::Absent => {}
        }
        Some(known)
    }
}

/// Returns a file's new path, sanitised, because the repository chose it.
fn hint(path: &str) -> Option<String> {
    let is_plain = path.len() <= MAX_HINT
        && path
            .chars()
            .all(|sign| sign.is_ascii_alphanumeric() || "/_-.+@".contains(sign));
    let path = one_line(&redact(path).text);
    is_plain.then(|| format!(", now {path}"))
}

#[cfg(test)]
mod tests;
