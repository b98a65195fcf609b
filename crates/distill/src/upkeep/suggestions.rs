//! Notes that a person might do something about: nothing here is ever done by itself.

use anamnesis_recall::{
    stale::{self, Reason},
    usefulness::{is_benched, is_exempt},
};
use anamnesis_store::{
    index::{ByMonth, Entry, Error, Index},
    journal::Journal,
    notes::Notes,
};
use chrono::{DateTime, Utc};

/// A note that was used in so many sessions is worth a place of its own.
const OFTEN: u64 = 5;

/// What to think about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suggestion {
    /// It is used so often that it could stand at the top, or in the project's instructions.
    Promote {
        /// The sessions that used it.
        sessions: u64,
    },
    /// It was given often, and never used.
    Mute {
        /// The sessions that were given it.
        shown: u64,
    },
    /// It is worth a look.
    Look(Vec<Reason>),
}

/// What there is to think about these notes, in their order; what is most used comes first of a note.
///
/// # Errors
/// When the index cannot be read.
pub fn suggestions(
    index: &Index,
    notes: &Notes,
    journal: Option<&Journal>,
    entries: Vec<Entry>,
    now: DateTime<Utc>,
) -> Result<Vec<(Entry, Suggestion)>, Error> {
    let usage = index.usage_of(entries.iter().map(Entry::id))?;
    let mut found = Vec::new();
    for entry in &entries {
        let Some(months) = usage.get(&entry.id()) else {
            continue;
        };
        let sum = |count: fn(&_) -> u64| total(months, count);
        let sessions = sum(|counts| counts.sessions);
        if sessions >= OFTEN && !entry.pinned {
            found.push((entry.clone(), Suggestion::Promote { sessions }));
        } else if is_benched(months, is_exempt(entry)) {
            let shown = sum(|counts| counts.shown);
            found.push((entry.clone(), Suggestion::Mute { shown }));
        }
    }
    let stale = stale::find(index, notes, journal, entries, now)?;
    let stale = stale.into_iter();
    found.extend(stale.map(|(entry, reasons)| (entry, Suggestion::Look(reasons))));
    Ok(found)
}

fn total<T>(months: &ByMonth<T>, count: fn(&T) -> u64) -> u64 {
    let counts = months.iter().map(|(_, counts)| count(counts));
    counts.fold(0, u64::saturating_add)
}
