//! Whether what notes cite of their project is still there, so that a note that is out of date says so.
//!
//! The deferred process looks now and then, for the project of the session that started it; a hook only
//! reads what was found ([`Journal::stale`]). A note about a session is not looked at: what was done
//! stays so, whatever becomes of the files.
//!
//! A reference counts as gone only where there is evidence that it was there when the note was written,
//! or later: the history, or our own record of having seen it. A first look that finds neither is final
//! until it is seen, since whoever wrote the note knew the project as it was.

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
    note::{GLOBAL, Kind as NoteKind, State as NoteState, parse_timestamp},
};
use anamnesis_text::{clean::one_line, hash::text_hash, redact::redact};
use chrono::{DateTime, Utc};

use self::checkout::{Claim, Verdict};
use crate::{
    index::{self, Entry, Filter, Index},
    journal::{self, Journal, Known, State},
    notes::Notes,
    project,
};

/// The most notes of a project that are kept an eye on: the ones that changed last.
const MAX_NOTES: usize = 10_000;

/// The longest path that is told as what something is called now, in bytes.
const MAX_HINT: usize = 120;

/// How much is done in one run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many notes are looked at, those first that were not for the longest time.
    pub notes: usize,
    /// How many bytes are read of the folder and of the history together.
    pub bytes: usize,
    /// After this nothing more is read.
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

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The keys of the project.
    pub projects: &'a [String],
    /// The project's folder, which is absolute.
    pub folder: &'a Path,
    /// The time.
    pub now: DateTime<Utc>,
    /// How much is done.
    pub limits: Limits,
}

/// What a look found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// How many notes were looked at.
    pub notes: usize,
    /// How many of them cite something that is gone.
    pub stale: usize,
}

/// The look was broken off.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The index cannot say which notes there are.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// The records cannot be read or written.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

/// A note with what it cites.
struct Citing {
    id: NoteId,
    project: String,
    /// When its text last changed, seconds since 1970.
    written_at: i64,
    references: Vec<Citation>,
    known: HashMap<(CitationKind, String), Known>,
}

/// Looks whether what notes of a project cite is there, and keeps what it finds.
///
/// # Errors
/// When the index or the records cannot be used; what was kept before stays.
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
            // What the records keep is to be as safe as what the index does.
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

/// Tells whether a note says something that the project can make untrue.
fn is_looked_at(entry: &Entry) -> bool {
    entry.kind != NoteKind::Experience
        && matches!(entry.state, NoteState::Active | NoteState::Muted)
        && entry.project != GLOBAL
}

impl Citing {
    fn known(&self, reference: &Citation) -> Option<&Known> {
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

    /// What is kept of a reference; nothing where nobody ever looked.
    fn outcome(
        &self,
        reference: &Citation,
        verdict: Verdict,
        place: &str,
        now: i64,
    ) -> Option<Known> {
        let before = self.known(reference);
        let seen_at = before.and_then(|known| known.seen_at);
        let mut known = Known {
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
        // When it was first missed, unless the note was written again since.
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
            // Of these the history tells nothing.
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

/// What a file is called now, fit to be told: the name is the repository's, and could say anything.
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
