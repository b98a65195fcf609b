//! Lists notes that may need attention, for a model. Read-only.

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Kind, State},
};
use anamnesis_recall::{
    review::{PendingNote, PendingReason},
    search::MAX_HITS,
    similar::Similar,
};
use anamnesis_store::index::{Entry, Filter, Index};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    note::{Named, Note, StaleCause, StaleNote},
    written::NEARLY_THE_SAME,
};
use crate::{Error, context::Context, review::waiting};

const DEFAULT_K: usize = 20;

/// How many of the newest notes are compared with all others. One comparison takes ten searches
/// with all words of a note, so all ten take a second or more with 10,000 notes.
const MAX_COMPARED: usize = 10;

/// Which notes, and how many.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    /// Project key; "." = this session's. Includes notes for all projects. Default: every project
    project: Option<String>,
    /// Maximum length of each list, up to 200
    #[serde(default = "super::default_of::<DEFAULT_K>")]
    k: usize,
    /// Compare the newest notes with all others; takes seconds in a large store
    #[serde(default)]
    duplicates: bool,
}

/// Notes that may need attention.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PendingNotes {
    /// May be outdated; most reasons first. `anamnesis verify ID` or a change removes a note from the list
    stale: Vec<StaleNote>,
    /// Not used until the person approves them
    proposals: Vec<Note>,
    /// Second version of a note that two machines changed; both are in use
    conflicts: Vec<Note>,
    /// Written by Claude, in use, not seen by the person
    unseen: Vec<Note>,
    /// For all projects, in use, added neither by a command nor by sync
    foreign: Vec<Note>,
    /// Copies of Claude Code's own memory whose file is gone; in use
    orphaned: Vec<Note>,
    /// Forgotten by Claude; the person can restore them
    forgotten: Vec<Note>,
    duplicates: Vec<SimilarPair>,
    left: Left,
}

/// Number of notes not returned, per list
#[derive(Debug, Serialize, JsonSchema)]
struct Left {
    stale: usize,
    proposals: usize,
    conflicts: usize,
    unseen: usize,
    foreign: usize,
    orphaned: usize,
    forgotten: usize,
    duplicates: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SimilarPair {
    notes: Vec<Named>,
    /// Similarity, 0 to 1
    likeness: f64,
}

/// Lists the notes that may need attention.
pub fn review(context: &Context, request: ReviewRequest) -> Result<PendingNotes, Error> {
    let k = request.k.min(MAX_HITS);
    let project = request.project;
    let mut projects = context.keys(project.as_deref())?;
    if !projects.is_empty() {
        projects.push(GLOBAL.to_owned());
    }
    let index = context.index_to_read()?;
    let mut duplicates = if request.duplicates {
        let filter = Filter {
            projects: projects.clone(),
            ..Filter::default()
        };
        let mut entries = index.list(&filter, usize::MAX)?;
        entries.retain(|entry| entry.state == State::Active);
        pairs(&index, &Similar::new(&index, &context.notes), &entries)?
    } else {
        Vec::new()
    };
    let records = context.records()?;
    let batches = waiting(context, &index, records.as_ref(), &projects)?;
    let notes = batches.iter().flat_map(|batch| &batch.notes);
    let waiting: Vec<&PendingNote> = notes.filter(|one| !one.is_forgotten_by_person).collect();
    let of = |wait| waiting.iter().filter(move |one| one.reason == wait);
    let left_of = |wait| of(wait).count().saturating_sub(k);
    let left = Left {
        stale: left_of(PendingReason::Stale),
        proposals: left_of(PendingReason::Proposal),
        conflicts: left_of(PendingReason::Conflict),
        unseen: left_of(PendingReason::ByAgent),
        foreign: left_of(PendingReason::Foreign),
        orphaned: left_of(PendingReason::Orphaned),
        forgotten: left_of(PendingReason::Forgotten),
        duplicates: duplicates.len().saturating_sub(k),
    };
    duplicates.truncate(k);
    let note = |one: &&PendingNote| Note::new(context, one.entry.clone());
    let shown = |wait| of(wait).take(k).map(note).collect();
    let stale = of(PendingReason::Stale).take(k).map(|one| StaleNote {
        note: note(one),
        reasons: (one.stale_reasons.iter())
            .map(|reason| StaleCause::new(reason, &index))
            .collect(),
    });
    Ok(PendingNotes {
        stale: stale.collect(),
        proposals: shown(PendingReason::Proposal),
        conflicts: shown(PendingReason::Conflict),
        unseen: shown(PendingReason::ByAgent),
        foreign: shown(PendingReason::Foreign),
        orphaned: shown(PendingReason::Orphaned),
        forgotten: shown(PendingReason::Forgotten),
        duplicates,
        left,
    })
}

/// Returns the similar pairs that include one of the newest notes, most similar first. Session
/// notes do not count as newest, because their form makes them all similar.
fn pairs(
    index: &Index,
    similar: &Similar<'_>,
    entries: &[Entry],
) -> Result<Vec<SimilarPair>, Error> {
    let durable = entries
        .iter()
        .filter(|entry| entry.kind != Kind::Experience);
    let newest: Vec<NoteId> = durable.take(MAX_COMPARED).map(Entry::id).collect();
    let mut pairs: Vec<(f64, [NoteId; 2])> = (similar.links(&newest)?.iter())
        .filter_map(|edge| Some((edge.weight?, [edge.from, edge.to])))
        .filter(|(likeness, _)| *likeness >= NEARLY_THE_SAME)
        .collect();
    pairs.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.cmp(other)));
    // A pair of two newest notes is found twice.
    pairs.dedup_by_key(|(_, ids)| *ids);
    let pair = |(likeness, ids): (f64, [NoteId; 2])| {
        Ok(SimilarPair {
            notes: Named::all(index, &ids)?,
            likeness,
        })
    };
    pairs.into_iter().map(pair).collect()
}
