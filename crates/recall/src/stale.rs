//! Finds notes that may be outdated, and why.
//!
//! Age alone is no reason: each reason is one that a person can check and clear with one command.
//! Nothing is changed automatically.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{
    id::NoteId,
    link::Relation,
    note::{Kind, Status, parse_timestamp},
};
use anamnesis_store::{
    index::{Entry, Error, Index},
    journal::{self, Journal},
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

/// The final states of a task.
const FINISHED: &[Status] = &[Status::Done, Status::Archived];

/// Why a note may be outdated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum StaleReason {
    /// A task that it is linked to was finished later.
    TaskDone {
        /// The task.
        task: NoteId,
        /// When it was finished.
        at: DateTime<Utc>,
    },
    /// Its own review date has come.
    ReviewDue(NaiveDate),
    /// Something that it cites no longer exists.
    Gone(String),
}

impl StaleReason {
    /// Returns the machine-readable name.
    pub fn word(&self) -> &'static str {
        match self {
            Self::TaskDone { .. } => "task done",
            Self::ReviewDue(_) => "review due",
            Self::Gone(_) => "gone",
        }
    }

    /// Returns the reason in words. `short` returns a note's short id.
    pub fn text(&self, short: impl Fn(NoteId) -> String) -> String {
        match self {
            Self::TaskDone { task, at } => {
                format!(
                    "its task #{} was finished on {}",
                    short(*task),
                    at.date_naive()
                )
            }
            Self::ReviewDue(day) => format!("its review was due on {day}"),
            Self::Gone(what) => one_line(what),
        }
    }
}

/// Returns when somebody last changed or verified a note, if known. A time ahead of now was written by
/// a clock that was wrong and says nothing.
pub fn looked_at(entry: &Entry, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let times = [entry.verified, parse_timestamp(&entry.updated_at)];
    let times = times.into_iter().flatten();
    times.filter(|at| !journal::is_ahead(*at, now)).max()
}

/// Returns whether an event at `since` came after the note was last changed or verified. The times of
/// a note are whole seconds.
pub fn is_news(since: DateTime<Utc>, looked_at: Option<DateTime<Utc>>) -> bool {
    looked_at.is_none_or(|looked| looked.timestamp() < since.timestamp())
}

/// Finds the notes in force of these projects, or of all if there is none, that may be outdated, with the
/// reasons that arose since they were last changed or verified: those with most reasons first, then the
/// oldest, then by id. Without a journal, missing citations are not reported.
pub fn find(
    index: &Index,
    journal: Option<&Journal>,
    projects: &[String],
    now: DateTime<Utc>,
) -> Result<Vec<(Entry, Vec<StaleReason>)>, Error> {
    let mut events: BTreeMap<NoteId, Vec<(DateTime<Utc>, StaleReason)>> = BTreeMap::new();
    let mut add = |note, at, reason| events.entry(note).or_default().push((at, reason));
    for (note, day) in index.due(now.date_naive())? {
        add(
            note,
            day.and_time(NaiveTime::MIN).and_utc(),
            StaleReason::ReviewDue(day),
        );
    }
    let tasks = index.tasks(projects, FINISHED)?.into_iter();
    let tasks = tasks.filter(|(task, _)| task.visibility().is_in_force());
    let finished: HashMap<NoteId, DateTime<Utc>> = tasks
        .filter_map(|(task, _)| Some((task.id(), parse_timestamp(&task.updated_at)?)))
        .collect();
    for edge in index.links_for_review()? {
        for (note, task) in [(edge.from, edge.to), (edge.to, edge.from)] {
            if let Some(at) = finished.get(&task).copied() {
                add(note, at, StaleReason::TaskDone { task, at });
            }
        }
    }
    let gone = journal.and_then(|journal| journal.stale(&journal.citing_gone().ok()?).ok());
    for (note, stale) in gone.unwrap_or_default() {
        add(note, time(stale.gone_at), StaleReason::Gone(stale.reason));
    }
    let mut found = Vec::new();
    for (note, events) in events {
        let entry = index.get(note)?.filter(|entry| {
            entry.visibility().is_in_force()
                && (projects.is_empty() || projects.contains(&entry.project))
        });
        let Some(entry) = entry else { continue };
        let looked_at = looked_at(&entry, now);
        let news = events.into_iter().filter(|(at, _)| is_news(*at, looked_at));
        // Both notes may declare a link.
        let reasons: BTreeSet<StaleReason> = news.map(|(_, reason)| reason).collect();
        if !reasons.is_empty() {
            found.push((entry, Vec::from_iter(reasons)));
        }
    }
    found.sort_by(|(a, of_a), (b, of_b)| {
        let by_number = of_b.len().cmp(&of_a.len());
        let by_age = a.updated_at.cmp(&b.updated_at);
        by_number.then(by_age).then(a.id().cmp(&b.id()))
    });
    Ok(found)
}

/// Converts a journal timestamp.
pub(crate) fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

/// Returns the notes that a finished task may have made outdated: linked to it by `about` or
/// `part-of` in either direction, and created before `now`.
pub fn outdated_by_task(
    index: &Index,
    task: NoteId,
    now: DateTime<Utc>,
) -> Result<Vec<Entry>, Error> {
    let mut due: Vec<Entry> = Vec::new();
    for edge in index.links_of(&[task])? {
        if !matches!(edge.relation, Relation::About | Relation::PartOf) {
            continue;
        }
        let other = index.get(edge.other(task))?;
        due.extend(other.filter(|other| {
            let is_older = parse_timestamp(&other.created_at).is_none_or(|made| made < now);
            is_older && other.kind != Kind::Task && !other.superseded
        }));
    }
    due.sort_by_key(Entry::id);
    due.dedup_by_key(|entry| entry.id());
    Ok(due)
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::timestamp;

    use super::*;
    use crate::session_start::tests::Fixture;

    fn day(number: u32) -> DateTime<Utc> {
        let day = NaiveDate::from_ymd_opt(2026, 3, number).unwrap();
        day.and_hms_opt(12, 0, 0).unwrap().and_utc()
    }

    #[test]
    fn changing_or_verifying_a_note_counts_as_a_look() {
        let fixture = Fixture::new();
        let stored = fixture.add("A note", |note| note.updated_at = timestamp(day(5)));
        let mut entry = fixture.refreshed().get(stored.path.id).unwrap().unwrap();
        assert_eq!(looked_at(&entry, day(20)), Some(day(5)));
        entry.verified = Some(day(3));
        assert_eq!(looked_at(&entry, day(20)), Some(day(5)));
        entry.verified = Some(day(9));
        assert_eq!(looked_at(&entry, day(20)), Some(day(9)));
        // A clock that was ahead wrote the later one.
        assert_eq!(looked_at(&entry, day(6)), Some(day(5)));
        assert!(is_news(day(10), Some(day(9))) && is_news(day(1), None));
        assert!(!is_news(day(9), Some(day(9))) && !is_news(day(8), Some(day(9))));
    }
}
