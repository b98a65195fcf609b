//! Upkeep: what can be tidied among the notes, and the changes that tidy it.
//!
//! [`find`] looks for everything by careful rules. A function of [`steps`] does one thing to all
//! notes.

pub mod links;
pub mod loaded;
pub mod steps;

use std::{collections::BTreeMap, iter};

use anamnesis_distill::upkeep::{self, Action, Plan};
use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_store::{index::Index, journal::Journal};
use anamnesis_text::clean::one_line;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use self::loaded::Loaded;
use crate::{
    Error,
    bulk_change::{BulkChange, Done},
    context::Context,
};

/// The journal's key for the counts of the last check after a sync.
const FOUND: &str = "upkeep_found";

/// The possible clean-ups, with the notes that they name.
pub struct Findings {
    /// The changes that [`Findings::apply`] makes, and the pairs for a person to check.
    pub plan: Plan,
    /// How many files are skipped because they cannot be changed.
    pub unchangeable: usize,
    /// Every note that is named: its current version, or the one to create.
    pub notes: BTreeMap<NoteId, Note>,
    /// The short ids of these notes.
    pub shorts: BTreeMap<NoteId, String>,
    loaded: Loaded,
}

/// Looks for what can be tidied in a project and in the notes for all projects; without a project,
/// in all notes. Changes nothing.
pub fn find(context: &Context, project: Option<&str>) -> Result<Findings, Error> {
    let index = context.index()?;
    let mut loaded = Loaded::read(context, &index)?;
    loaded.note_set.projects = context.keys(project)?;
    let plan = upkeep::plan(&loaded.note_set);
    Ok(Findings::new(&index, loaded, plan))
}

impl Findings {
    fn new(index: &Index, loaded: Loaded, plan: Plan) -> Self {
        let mut named: Vec<NoteId> = plan.actions.iter().flat_map(named).collect();
        named.extend(plan.alike.iter().flat_map(|(one, other)| [*one, *other]));
        let made = plan.made.iter().map(|note| (note.id, note.clone()));
        let notes: BTreeMap<NoteId, Note> = named
            .iter()
            .filter_map(|id| Some((*id, loaded.stored(*id)?.note())))
            .chain(made)
            .collect();
        let shorts = named.iter().map(|id| (*id, Context::short(index, *id)));
        Self {
            shorts: shorts.collect(),
            unchangeable: loaded.note_set.fixed.len(),
            plan,
            notes,
            loaded,
        }
    }

    /// The findings for scripts, with the change that applied them.
    pub fn report(&self, applied: bool, change: Option<Ulid>) -> UpkeepReport {
        let note = |id: &NoteId| NamedNote {
            id: *id,
            title: self.notes.get(id).map(|note| one_line(&note.title)),
        };
        let notes = |ids: &[NoteId]| ids.iter().map(note).collect();
        let actions = self.plan.actions.iter().map(|action| match action {
            Action::Replace {
                keeper,
                replaced,
                is_exact,
            } => ReportedAction::Replace {
                note: note(keeper),
                replaced: notes(replaced),
                exact: *is_exact,
            },
            Action::Unlink { note: of, lines } => ReportedAction::Unlink {
                note: note(of),
                lines: lines
                    .iter()
                    .map(|(line, because)| UselessLine {
                        line: line.clone(),
                        because,
                    })
                    .collect(),
            },
            Action::Split { note: of, parts } => ReportedAction::Split {
                note: note(of),
                parts: notes(parts),
            },
        });
        let alike = self.plan.alike.iter();
        UpkeepReport {
            applied,
            change,
            actions: actions.collect(),
            alike: alike.map(|(one, other)| [one, other].map(note)).collect(),
            left_alone: self.unchangeable,
        }
    }

    /// Makes the planned changes.
    pub fn apply(&self, context: &Context) -> Result<Done, Error> {
        let mut batch = BulkChange::new(context, "upkeep");
        for note in &self.plan.changed {
            if let Some(stored) = self.loaded.stored(note.id) {
                batch.change(stored, note)?;
            }
        }
        for note in &self.plan.made {
            batch.make(note.clone());
        }
        let done = batch.apply()?;
        if let Some(journal) = context.journal() {
            // The stored counts are outdated now.
            journal.set_meta(FOUND, "")?;
        }
        Ok(done)
    }
}

/// Findings for scripts.
#[derive(Serialize)]
pub struct UpkeepReport {
    applied: bool,
    change: Option<Ulid>,
    actions: Vec<ReportedAction>,
    alike: Vec<[NamedNote; 2]>,
    left_alone: usize,
}

#[derive(Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
enum ReportedAction {
    Replace {
        note: NamedNote,
        replaced: Vec<NamedNote>,
        exact: bool,
    },
    Unlink {
        note: NamedNote,
        lines: Vec<UselessLine>,
    },
    Split {
        note: NamedNote,
        parts: Vec<NamedNote>,
    },
}

#[derive(Serialize)]
struct NamedNote {
    id: NoteId,
    title: Option<String>,
}

#[derive(Serialize)]
struct UselessLine {
    line: String,
    because: &'static str,
}

/// The notes of an action.
fn named(action: &Action) -> Vec<NoteId> {
    let (note, others): (_, &[NoteId]) = match action {
        Action::Replace {
            keeper, replaced, ..
        } => (keeper, replaced),
        Action::Unlink { note, .. } => (note, &[]),
        Action::Split { note, parts } => (note, parts),
    };
    iter::once(note).chain(others).copied().collect()
}

/// How much the last check after a sync found.
#[derive(Debug, Serialize, Deserialize)]
pub struct FindingCounts {
    /// The day of the check.
    day: String,
    /// How many changes can be made.
    pub actions: usize,
    /// How many findings need a person's decision.
    pub decisions: usize,
}

impl FindingCounts {
    /// Loads the last counts, if there are any.
    pub fn load(journal: &Journal) -> Option<Self> {
        journal.json(FOUND).ok()?
    }
}

/// Counts the findings after notes arrived from other machines, at most once a day.
pub fn count_after_sync(context: &Context, journal: &Journal) -> Result<(), Error> {
    let day = context.environment.now.date_naive().to_string();
    if FindingCounts::load(journal).is_some_and(|found| found.day == day) {
        return Ok(());
    }
    let found = find(context, None)?;
    let plan = &found.plan;
    let counts = FindingCounts {
        day,
        actions: plan.actions.len(),
        decisions: plan.alike.len(),
    };
    Ok(journal.set_json(FOUND, &counts)?)
}
