//! `memory_review`: what is worth a look, without a change.

use anamnesis_core::{
    id::NoteId,
    note::{GLOBAL, Kind, State},
};
use anamnesis_recall::{
    search::MAX_HITS,
    similar::Similar,
    stale::{self, Reason},
};
use anamnesis_store::index::{Entry, Filter, Index};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{Memory, Refusal},
    note::{Named, Note},
    tool::Tool,
};

const DEFAULT_K: u64 = 20;

/// How many of the newest notes are compared with all others: each costs ten searches by all its words,
/// which is a second or more for all of them where there are 10,000 notes.
const MAX_COMPARED: usize = 10;

/// What two notes have in common at least that say nearly the same.
const NEARLY_THE_SAME: f64 = 0.5;

pub(super) fn tool() -> Tool {
    Tool::reading(
        "memory_review",
        "See what is worth a look",
        "Show notes that may be out of date, with the reason; proposals that wait for the person; and, \
         if asked for, pairs of notes that say nearly the same. Changes nothing.",
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    /// A project's key, with what applies to all projects; "." is this session's. Left out: everywhere
    project: Option<String>,
    /// Of each list, up to 200
    #[serde(default = "default_k")]
    k: u64,
    /// Compare the newest notes with all others; takes seconds in a large store
    #[serde(default)]
    duplicates: bool,
}

fn default_k() -> u64 {
    DEFAULT_K
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Shown {
    /// Those with most reasons first. `anamnesis verify ID` clears them, and so does a change
    stale: Vec<Stale>,
    /// Not used until the person approves them
    proposals: Vec<Note>,
    duplicates: Vec<Pair>,
    left: Left,
}

/// How many more there are of each
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Left {
    stale: usize,
    proposals: usize,
    duplicates: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Stale {
    #[serde(flatten)]
    note: Note,
    reasons: Vec<Why>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Why {
    reason: &'static str,
    text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Pair {
    notes: Vec<Named>,
    /// What they have in common, from 0 to 1
    likeness: f64,
}

fn run(memory: &Memory, asked: Parameters) -> Result<Shown, Refusal> {
    let Parameters {
        project,
        k,
        duplicates: is_comparing,
    } = asked;
    let k = usize::try_from(k).unwrap_or(MAX_HITS).min(MAX_HITS);
    let mut projects = memory.keys(project.as_deref())?;
    if !projects.is_empty() {
        projects.push(GLOBAL.to_owned());
    }
    let filter = Filter {
        projects,
        ..Filter::default()
    };
    let (index, notes, now) = (memory.index()?, memory.notes(), memory.now());
    let entries = index.list(&filter, usize::MAX)?;
    let (proposals, entries): (Vec<Entry>, Vec<Entry>) = entries
        .into_iter()
        .filter(|entry| matches!(entry.state, State::Active | State::Proposed))
        .partition(|entry| entry.state == State::Proposed);
    let mut duplicates = if is_comparing {
        pairs(&index, &Similar::new(&index, &notes), &entries)?
    } else {
        Vec::new()
    };
    let records = memory.records()?;
    let mut stale = stale::find(&index, &notes, records.as_ref(), entries, now)?;
    let left = Left {
        stale: stale.len().saturating_sub(k),
        proposals: proposals.len().saturating_sub(k),
        duplicates: duplicates.len().saturating_sub(k),
    };
    stale.truncate(k);
    duplicates.truncate(k);
    let short = |id: NoteId| index.short_id(id).unwrap_or_else(|_| id.to_string());
    let why = |reason: &Reason| Why {
        reason: reason.word(),
        text: reason.text(short),
    };
    let shown = stale.iter().map(|(entry, reasons)| Stale {
        note: Note::of(entry, now),
        reasons: reasons.iter().map(why).collect(),
    });
    Ok(Shown {
        stale: shown.collect(),
        proposals: proposals
            .iter()
            .take(k)
            .map(|entry| Note::of(entry, now))
            .collect(),
        duplicates,
        left,
    })
}

/// The pairs of which one is among the newest; those most alike first. Session notes are like each
/// other by their form.
fn pairs(index: &Index, similar: &Similar<'_>, entries: &[Entry]) -> Result<Vec<Pair>, Refusal> {
    let durable = entries
        .iter()
        .filter(|entry| entry.kind != Kind::Experience);
    let newest: Vec<NoteId> = durable.take(MAX_COMPARED).map(Entry::id).collect();
    let mut pairs: Vec<(f64, [NoteId; 2])> = (similar.links(&newest)?.iter())
        .filter_map(|edge| Some((edge.weight?, [edge.from, edge.to])))
        .filter(|(likeness, _)| *likeness >= NEARLY_THE_SAME)
        .collect();
    pairs.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.cmp(other)));
    // Both may be among the newest.
    pairs.dedup_by_key(|(_, ids)| *ids);
    let pair = |(likeness, ids): (f64, [NoteId; 2])| {
        Ok(Pair {
            notes: Named::all(index, &ids)?,
            likeness,
        })
    };
    pairs.into_iter().map(pair).collect()
}
