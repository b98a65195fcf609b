//! What waits for the person: proposals, texts that clashed, what agents wrote or had forgotten, and
//! notes that may be out of date.
//!
//! A proposal is unused until it is approved. All else is in use, and waits to be seen: approving it says
//! so on this machine, of this very content.

use std::collections::{BTreeMap, HashSet};

use anamnesis_note::{
    id::NoteId,
    merge::CONFLICT_TAG,
    note::{GLOBAL, Kind, State},
};
use anamnesis_store::{
    index::{Entry, Error, Filter, Index},
    journal::{Journal, Reflection},
    notes::Notes,
};
use chrono::{DateTime, Utc};

use crate::stale::{self, Reason};

/// Why a note waits for the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// It is unused until it is approved.
    Proposal,
    /// It is the other text of a note that two machines changed.
    Conflict,
    /// An agent wrote it on this machine, and it is in use.
    ByAgent,
    /// It is for all projects, in use, and was put there neither by us nor by sync.
    Foreign,
    /// An agent had it forgotten.
    Forgotten,
    /// It may be out of date.
    Stale,
}

/// A note that waits.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The note.
    pub entry: Entry,
    /// Why.
    pub wait: Wait,
    /// Why it may be out of date, if that is why.
    pub reasons: Vec<Reason>,
}

/// Notes that wait and came to be in one act.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The reflection that they came from, if it was one of this machine's.
    pub reflection: Option<Reflection>,
    /// The session that they came from, if it is known.
    pub session: Option<String>,
    /// The notes, newest first.
    pub notes: Vec<Waiting>,
}

/// Finds what waits: of projects, or of all if none is named. `machine` is this one. What only records
/// that cannot be read would tell is left out.
///
/// # Errors
/// When the index cannot be read.
pub fn waiting(
    index: &Index,
    notes: &Notes,
    journal: Option<&Journal>,
    projects: &[String],
    machine: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Batch>, Error> {
    let filter = Filter {
        projects: projects.to_vec(),
        // A proposal to replace a note is no longer one when the note is replaced already.
        with_superseded: true,
        ..Filter::default()
    };
    let (mut waiting, mut others) = (Vec::new(), Vec::new());
    for entry in index.list(&filter, usize::MAX)? {
        match wait_of(&entry, notes, journal, machine) {
            Some(wait) => waiting.push(Waiting {
                entry,
                wait,
                reasons: Vec::new(),
            }),
            None if entry.state == State::Active && !entry.superseded => others.push(entry),
            None => {}
        }
    }
    let forgotten = journal.and_then(|journal| journal.forgotten_by_agents().ok());
    for id in forgotten.unwrap_or_default() {
        let entry = index.get(id)?.filter(|entry| {
            entry.state == State::Forgotten
                && (projects.is_empty() || projects.contains(&entry.project))
        });
        waiting.extend(entry.map(|entry| Waiting {
            entry,
            wait: Wait::Forgotten,
            reasons: Vec::new(),
        }));
    }
    let stale = stale::find(index, notes, journal, others, now)?;
    waiting.extend(stale.into_iter().map(|(entry, reasons)| Waiting {
        entry,
        wait: Wait::Stale,
        reasons,
    }));
    let reflections = journal.and_then(|journal| journal.proposed_reflections().ok());
    Ok(batches(waiting, &reflections.unwrap_or_default()))
}

/// Why a note waits, if it does.
fn wait_of(entry: &Entry, notes: &Notes, journal: Option<&Journal>, machine: &str) -> Option<Wait> {
    if entry.state == State::Proposed {
        return Some(Wait::Proposal);
    }
    if entry.state != State::Active || entry.superseded {
        return None;
    }
    if entry.tags.iter().any(|tag| tag == CONFLICT_TAG) {
        return Some(Wait::Conflict);
    }
    if entry.project == GLOBAL
        && let Some(journal) = journal
        && !journal.knows(entry.id()).unwrap_or(true)
    {
        return Some(Wait::Foreign);
    }
    // What an agent wrote elsewhere is reviewed there. Tasks come up by themselves, and end.
    if !entry.by_agent || entry.machine_id != machine || entry.kind == Kind::Task {
        return None;
    }
    let bytes = notes.bytes(entry.path).ok()?;
    let is_seen = journal?.was_written_here(entry.id(), &bytes).ok()?;
    (!is_seen).then_some(Wait::ByAgent)
}

/// Tells whether the notes are told apart by their session.
fn has_session(notes: &[Waiting]) -> bool {
    let mut waits = notes.iter().map(|waiting| waiting.wait);
    waits.all(|wait| matches!(wait, Wait::Proposal | Wait::ByAgent))
}

/// Puts together what came of one act: a reflection, else a session. Those with proposals come first,
/// then the newest.
fn batches(waiting: Vec<Waiting>, reflections: &[Reflection]) -> Vec<Batch> {
    let notes_of: Vec<HashSet<NoteId>> = reflections
        .iter()
        .map(|reflection| reflection.notes.iter().copied().collect())
        .collect();
    let mut grouped: BTreeMap<(usize, String, String), Vec<Waiting>> = BTreeMap::new();
    for waiting in waiting {
        let place = notes_of
            .iter()
            .position(|notes| notes.contains(&waiting.entry.id()));
        let key = match (place, waiting.wait) {
            (Some(place), Wait::Proposal) => (place, String::new(), String::new()),
            // A clash is nobody's act.
            (_, Wait::Conflict | Wait::Foreign | Wait::Forgotten) => {
                (usize::MAX, waiting.entry.id().to_string(), String::new())
            }
            (_, Wait::Proposal | Wait::ByAgent) => {
                let session = waiting.entry.session.clone().unwrap_or_default();
                (usize::MAX, waiting.entry.project.clone(), session)
            }
            (_, Wait::Stale) => {
                let project = waiting.entry.project.clone();
                (usize::MAX, "stale".to_owned(), project)
            }
        };
        grouped.entry(key).or_default().push(waiting);
    }
    let mut batches: Vec<Batch> = grouped
        .into_iter()
        .map(|((place, _, session), notes)| Batch {
            reflection: reflections.get(place).cloned(),
            session: Some(session)
                .filter(|_| has_session(&notes))
                .filter(|session| !session.is_empty()),
            notes,
        })
        .collect();
    batches.sort_by(|one, other| {
        let rank = |batch: &Batch| {
            let first = batch.notes.iter().map(|waiting| waiting.wait).min();
            let newest = batch
                .notes
                .iter()
                .map(|waiting| &waiting.entry.updated_at)
                .max();
            (first, std::cmp::Reverse(newest.cloned()))
        };
        rank(one).cmp(&rank(other))
    });
    batches
}
