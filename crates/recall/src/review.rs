//! Finds the notes that are pending review: proposals, merge conflicts, notes by agents or of
//! unknown origin, copies whose source is gone, notes forgotten by agents, and notes that may be
//! outdated.
//!
//! A proposal is not used until it is approved. All others are in use. Approving one of those
//! records on this machine that its current content was seen.

use std::collections::{BTreeMap, HashSet};

use anamnesis_note::{
    id::NoteId,
    merge::CONFLICT_TAG,
    note::{Kind, State, UNREVIEWED_TAG},
    project_key::is_shared,
};
use anamnesis_session::claude_memory::GONE_TAG;
use anamnesis_store::{
    index::{Entry, Error, Filter, Index},
    journal::{ForgetRequest, Journal, Reflection},
    notes::Notes,
};
use chrono::{DateTime, Utc};

use crate::stale::{self, StaleReason};

/// Why a note is pending review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PendingReason {
    /// It is a proposal, not used until it is approved.
    Proposal,
    /// It was imported from another program, and is not injected until it is approved.
    Imported,
    /// It is the other version of a note that two machines changed.
    Conflict,
    /// An agent on this machine wrote it, and it is in use.
    ByAgent,
    /// It applies to all projects, is in use, and came neither from our commands nor by sync.
    Foreign,
    /// It is a copy of a file of Claude Code's own memory, and the file is gone.
    Orphaned,
    /// An agent had it forgotten.
    Forgotten,
    /// It may be outdated.
    Stale,
}

/// A note pending review.
#[derive(Debug, Clone)]
pub struct PendingNote {
    /// The note.
    pub entry: Entry,
    /// Why it is pending.
    pub reason: PendingReason,
    /// Why it may be outdated, if it may.
    pub stale_reasons: Vec<StaleReason>,
    /// Whether the person typed the command by which an agent forgot it.
    pub is_forgotten_by_person: bool,
}

/// Pending notes that came from one operation.
#[derive(Debug, Clone)]
pub struct PendingGroup {
    /// The reflection that created them, if it ran on this machine.
    pub reflection: Option<Reflection>,
    /// The session that created them, if known.
    pub session: Option<String>,
    /// The notes, newest first.
    pub notes: Vec<PendingNote>,
}

/// Finds the pending notes of the projects of a search for outdated ones, which it includes.
///
/// `machine` is this machine's id. If the journal cannot be read, notes that only it would reveal
/// are left out.
pub fn pending(
    index: &Index,
    notes: &Notes,
    journal: Option<&Journal>,
    machine: &str,
    projects: &[String],
    now: DateTime<Utc>,
) -> Result<Vec<PendingGroup>, Error> {
    let filter = Filter {
        projects: projects.to_vec(),
        // A proposal counts even if another note supersedes it.
        with_superseded: true,
        ..Filter::default()
    };
    let mut waiting = Vec::new();
    for entry in index.unreviewed(&filter, &[CONFLICT_TAG, GONE_TAG], machine)? {
        let reason = pending_reason(&entry, notes, journal, machine);
        waiting.extend(reason.map(|reason| PendingNote {
            entry,
            reason,
            stale_reasons: Vec::new(),
            is_forgotten_by_person: false,
        }));
    }
    let unseen: HashSet<NoteId> = waiting.iter().map(|note| note.entry.id()).collect();
    let forgotten = journal.and_then(|journal| journal.forgotten_by_agents().ok());
    for (id, request) in forgotten.unwrap_or_default() {
        let entry = index.get(id)?.filter(|entry| {
            entry.state == State::Forgotten
                && (projects.is_empty() || projects.contains(&entry.project))
        });
        waiting.extend(entry.map(|entry| PendingNote {
            entry,
            reason: PendingReason::Forgotten,
            stale_reasons: Vec::new(),
            is_forgotten_by_person: request == ForgetRequest::Person,
        }));
    }
    let stale = stale::find(index, journal, projects, now)?.into_iter();
    let stale = stale.filter(|(entry, _)| !unseen.contains(&entry.id()));
    waiting.extend(stale.map(|(entry, reasons)| PendingNote {
        entry,
        reason: PendingReason::Stale,
        stale_reasons: reasons,
        is_forgotten_by_person: false,
    }));
    let reflections = journal.and_then(|journal| journal.proposed_reflections().ok());
    Ok(groups(waiting, &reflections.unwrap_or_default()))
}

/// Returns why a note is pending, if it is.
fn pending_reason(
    entry: &Entry,
    notes: &Notes,
    journal: Option<&Journal>,
    machine: &str,
) -> Option<PendingReason> {
    if entry.state == State::Proposed {
        return Some(PendingReason::Proposal);
    }
    if entry.state == State::Muted && entry.tags.iter().any(|tag| tag == UNREVIEWED_TAG) {
        return Some(PendingReason::Imported);
    }
    if !entry.visibility().is_in_force() {
        return None;
    }
    if entry.tags.iter().any(|tag| tag == CONFLICT_TAG) {
        return Some(PendingReason::Conflict);
    }
    if entry.tags.iter().any(|tag| tag == GONE_TAG) {
        return Some(PendingReason::Orphaned);
    }
    if is_shared(&entry.project)
        && let Some(journal) = journal
        && !journal.knows(entry.id()).unwrap_or(true)
    {
        return Some(PendingReason::Foreign);
    }
    // Notes by agents of other machines are reviewed there. Tasks are shown anyway, and end.
    if !entry.by_agent || entry.machine_id != machine || entry.kind == Kind::Task {
        return None;
    }
    let bytes = notes.bytes(entry.path).ok()?;
    let is_seen = journal?.was_written_here(entry.id(), &bytes).ok()?;
    (!is_seen).then_some(PendingReason::ByAgent)
}

/// Returns whether the notes are grouped by session.
fn has_session(notes: &[PendingNote]) -> bool {
    let mut reasons_of_notes = notes.iter().map(|waiting| waiting.reason);
    reasons_of_notes
        .all(|reason| matches!(reason, PendingReason::Proposal | PendingReason::ByAgent))
}

/// Groups notes by the reflection or session they came from. Groups with proposals come first, then
/// the newest.
fn groups(waiting: Vec<PendingNote>, reflections: &[Reflection]) -> Vec<PendingGroup> {
    let notes_of: Vec<HashSet<NoteId>> = reflections
        .iter()
        .map(|reflection| reflection.notes.iter().copied().collect())
        .collect();
    let session = |entry: &Entry| entry.session.clone().unwrap_or_default();
    let mut grouped: BTreeMap<(usize, String, String), Vec<PendingNote>> = BTreeMap::new();
    for waiting in waiting {
        let place = notes_of
            .iter()
            .position(|notes| notes.contains(&waiting.entry.id()));
        let key = match (place, waiting.reason) {
            (Some(place), PendingReason::Proposal) => (place, String::new(), String::new()),
            // A conflict does not come from an operation, so each note is its own group.
            (_, PendingReason::Conflict | PendingReason::Forgotten) => {
                (usize::MAX, waiting.entry.id().to_string(), String::new())
            }
            // Notes of one source are one group, whatever their projects.
            (_, PendingReason::Foreign) => {
                let source = format!("foreign {}", waiting.entry.machine_id);
                (usize::MAX, source, session(&waiting.entry))
            }
            (_, PendingReason::Proposal | PendingReason::ByAgent) => {
                match session(&waiting.entry) {
                    session if session.is_empty() => {
                        let project = format!("project {}", waiting.entry.project);
                        (usize::MAX, project, session)
                    }
                    session => (usize::MAX, "session".to_owned(), session),
                }
            }
            // A clean-up may remove all files of all projects, which is one decision.
            (_, PendingReason::Orphaned) => (usize::MAX, "\0orphaned".to_owned(), String::new()),
            (_, PendingReason::Imported) => {
                let project = format!("imported {}", waiting.entry.project);
                (usize::MAX, project, String::new())
            }
            (_, PendingReason::Stale) => {
                let project = waiting.entry.project.clone();
                (usize::MAX, "stale".to_owned(), project)
            }
        };
        grouped.entry(key).or_default().push(waiting);
    }
    let mut groups: Vec<PendingGroup> = grouped
        .into_iter()
        .map(|((place, _, session), notes)| PendingGroup {
            reflection: reflections.get(place).cloned(),
            session: Some(session)
                .filter(|_| has_session(&notes))
                .filter(|session| !session.is_empty()),
            notes,
        })
        .collect();
    groups.sort_by(|one, other| {
        let rank = |group: &PendingGroup| {
            let first = group.notes.iter().map(|waiting| waiting.reason).min();
            let newest = group
                .notes
                .iter()
                .map(|waiting| &waiting.entry.updated_at)
                .max();
            (first, std::cmp::Reverse(newest.cloned()))
        };
        rank(one).cmp(&rank(other))
    });
    groups
}
