//! Finds notes that may be outdated, and why.
//!
//! Age alone is no reason: each reason is one that a person can check and clear with one command.
//! Nothing is changed automatically.

use std::collections::{HashMap, hash_map};

use anamnesis_note::{
    id::NoteId,
    link::Relation,
    note::{Kind, State, Status, parse_timestamp},
};
use anamnesis_store::{
    index::{ByMonth, Entry, Error, Filter, Index},
    journal::{self, Journal, NoteCounts},
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use crate::{
    freshness::{STALE, freshness, stale_after},
    usefulness::{DecayedCounts, last_used},
};

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
    /// Another note contradicts it.
    Disputed(NoteId),
    /// It is old and was never used.
    Old,
}

impl StaleReason {
    /// Returns the machine-readable name.
    pub fn word(&self) -> &'static str {
        match self {
            Self::TaskDone { .. } => "task done",
            Self::ReviewDue(_) => "review due",
            Self::Gone(_) => "gone",
            Self::Disputed(_) => "disputed",
            Self::Old => "old",
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
            Self::Disputed(note) => format!("#{} may contradict it", short(*note)),
            Self::Old => "old, and never used".to_owned(),
        }
    }
}

/// The facts about a note that may make it outdated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// When somebody last changed or verified it.
    pub looked_at: Option<DateTime<Utc>>,
    /// Finished tasks that it is linked to, with the time of finishing.
    pub tasks: Vec<(NoteId, DateTime<Utc>)>,
    /// Its review date.
    pub review_after: Option<NaiveDate>,
    /// The citation whose target is gone, and when that was noticed.
    pub gone: Option<(String, DateTime<Utc>)>,
    /// Notes in use that contradict it, with the time of their last change.
    pub disputed_by: Vec<(NoteId, DateTime<Utc>)>,
    /// Its freshness.
    pub freshness: f64,
    /// Whether a session ever used it.
    pub was_used: bool,
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

/// Returns the reasons that arose since the note was last changed or verified, in a fixed order.
pub fn reasons(facts: &Facts, now: DateTime<Utc>) -> Vec<StaleReason> {
    let is_open = |since| is_news(since, facts.looked_at);
    let mut reasons: Vec<StaleReason> = Vec::new();
    let tasks = facts.tasks.iter().filter(|(_, at)| is_open(*at));
    reasons.extend(tasks.map(|(task, at)| StaleReason::TaskDone {
        task: *task,
        at: *at,
    }));
    let due = facts.review_after.filter(|day| now.date_naive() >= *day);
    let due = due.filter(|day| {
        facts
            .looked_at
            .is_none_or(|looked| looked.date_naive() < *day)
    });
    reasons.extend(due.map(StaleReason::ReviewDue));
    let gone = facts.gone.iter().filter(|(_, at)| is_open(*at));
    reasons.extend(gone.map(|(what, _)| StaleReason::Gone(what.clone())));
    let disputes = facts.disputed_by.iter().filter(|(_, at)| is_open(*at));
    reasons.extend(disputes.map(|(note, _)| StaleReason::Disputed(*note)));
    if facts.freshness < STALE && !facts.was_used {
        reasons.push(StaleReason::Old);
    }
    reasons.sort();
    reasons
}

/// Which notes that may be outdated are looked for.
#[derive(Debug, Clone, Copy)]
pub struct StaleSearch<'a> {
    /// The keys of their projects; all projects if there is none.
    pub projects: &'a [String],
    /// How many of the notes that are only old are found, the oldest first. In a large store that
    /// is most notes.
    pub max_old: usize,
}

/// Finds the notes in force that may be outdated, with reasons: those with most reasons first, then
/// the oldest, then by id. Without a journal, missing citations are not reported.
pub fn find(
    index: &Index,
    journal: Option<&Journal>,
    search: &StaleSearch<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<(Entry, Vec<StaleReason>)>, Error> {
    let projects = search.projects;
    let filter = in_force(projects);
    let mut suspects = Suspects {
        index,
        projects,
        notes: HashMap::new(),
    };
    let aged = Kind::ALL.iter().filter_map(|kind| {
        let days = TimeDelta::try_seconds(stale_after(*kind)?)?;
        Some((*kind, now - days))
    });
    let aged: Vec<_> = aged.collect();
    let found = index.due_or_unused(&filter, now.date_naive(), &aged, search.max_old)?;
    for (entry, review_after) in found {
        let facts = Facts {
            review_after,
            ..Facts::default()
        };
        suspects.notes.insert(entry.id(), Some((entry, facts)));
    }
    suspects.take_links(&filter)?;
    let gone = journal.and_then(|journal| journal.stale(&journal.citing_gone().ok()?).ok());
    for (note, stale) in gone.unwrap_or_default() {
        if let Some((_, facts)) = suspects.note(note)? {
            facts.gone = Some((stale.reason, time(stale.gone_at)));
        }
    }
    suspects.with_reasons(now)
}

/// The notes that may be outdated, with the facts about each.
struct Suspects<'a> {
    index: &'a Index,
    projects: &'a [String],
    /// `None` for notes that are not in force or of other projects.
    notes: HashMap<NoteId, Option<(Entry, Facts)>>,
}

impl Suspects<'_> {
    /// Returns a note, unless it is not in force or of another project.
    fn note(&mut self, id: NoteId) -> Result<Option<&mut (Entry, Facts)>, Error> {
        let note = match self.notes.entry(id) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(place) => {
                let entry = self.index.get(id)?.filter(|entry| {
                    entry.visibility().is_in_force()
                        && (self.projects.is_empty() || self.projects.contains(&entry.project))
                });
                place.insert(entry.map(|entry| (entry, Facts::default())))
            }
        };
        Ok(note.as_mut())
    }

    /// Takes the finished tasks and the contradictions that notes are linked to.
    fn take_links(&mut self, filter: &Filter) -> Result<(), Error> {
        let finished = self.index.tasks(&filter.projects, FINISHED)?.into_iter();
        let finished: HashMap<NoteId, DateTime<Utc>> = finished
            .filter(|(task, _)| task.visibility().is_in_force())
            .filter_map(|(task, _)| Some((task.id(), changed(&task)?)))
            .collect();
        for edge in self.index.links_for_review()? {
            for (note, other) in [(edge.from, edge.to), (edge.to, edge.from)] {
                if edge.relation == Relation::Contradicts {
                    let at = self.note(other)?.and_then(|(entry, _)| changed(entry));
                    if let (Some(at), Some((_, facts))) = (at, self.note(note)?) {
                        facts.disputed_by.push((other, at));
                    }
                } else if let Some(at) = finished.get(&other)
                    && let Some((_, facts)) = self.note(note)?
                {
                    facts.tasks.push((other, *at));
                }
            }
        }
        Ok(())
    }

    /// Returns the notes that have reasons.
    fn with_reasons(self, now: DateTime<Utc>) -> Result<Vec<(Entry, Vec<StaleReason>)>, Error> {
        let notes: Vec<(Entry, Facts)> = self.notes.into_values().flatten().collect();
        let usage = self
            .index
            .usage_of(notes.iter().map(|(entry, _)| entry.id()))?;
        let nothing = ByMonth::new();
        let notes = notes.into_iter().filter_map(|(entry, facts)| {
            let facts = with_usage(
                facts,
                &entry,
                usage.get(&entry.id()).unwrap_or(&nothing),
                now,
            );
            let mut reasons = reasons(&facts, now);
            // Two notes may declare the same contradiction.
            reasons.dedup();
            (!reasons.is_empty()).then_some((entry, reasons))
        });
        let mut found: Vec<_> = notes.collect();
        found.sort_by(|(a, of_a), (b, of_b)| {
            let by_number = of_b.len().cmp(&of_a.len());
            let by_age = a.updated_at.cmp(&b.updated_at);
            by_number.then(by_age).then(a.id().cmp(&b.id()))
        });
        Ok(found)
    }
}

/// Returns the filter of the notes in force of these projects.
fn in_force(projects: &[String]) -> Filter {
    Filter {
        projects: projects.to_vec(),
        state: Some(State::Active),
        ..Filter::default()
    }
}

fn changed(entry: &Entry) -> Option<DateTime<Utc>> {
    parse_timestamp(&entry.updated_at)
}

/// Adds the facts that the entry and the counts of use know.
fn with_usage(
    facts: Facts,
    entry: &Entry,
    usage: &ByMonth<NoteCounts>,
    now: DateTime<Utc>,
) -> Facts {
    let looked_at = looked_at(entry, now);
    let sessions = DecayedCounts::new(usage, now).sessions;
    let never_fades = entry.pinned || entry.kind == Kind::Task;
    // A note without any timestamp has no known age.
    let since = looked_at.max(last_used(usage)).unwrap_or(now);
    Facts {
        looked_at,
        freshness: freshness(entry.kind, never_fades, since, sessions, now),
        was_used: usage.iter().any(|(_, counts)| counts.sessions > 0),
        ..facts
    }
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
    fn each_reason_can_be_cleared() {
        let note = NoteId::of_session("1");
        let fresh = Facts {
            freshness: 1.0,
            ..Facts::default()
        };
        let date = day(10).date_naive();
        for (facts, expected) in [
            (
                Facts {
                    tasks: vec![(note, day(10))],
                    ..fresh.clone()
                },
                StaleReason::TaskDone {
                    task: note,
                    at: day(10),
                },
            ),
            (
                Facts {
                    review_after: Some(date),
                    ..fresh.clone()
                },
                StaleReason::ReviewDue(date),
            ),
            (
                Facts {
                    gone: Some(("a.rs is gone".to_owned(), day(10))),
                    ..fresh.clone()
                },
                StaleReason::Gone("a.rs is gone".to_owned()),
            ),
            (
                Facts {
                    disputed_by: vec![(note, day(10))],
                    ..fresh.clone()
                },
                StaleReason::Disputed(note),
            ),
        ] {
            let at = |looked_at, now| {
                let facts = Facts {
                    looked_at,
                    ..facts.clone()
                };
                reasons(&facts, now)
            };
            assert_eq!(at(None, day(20)), std::slice::from_ref(&expected));
            assert_eq!(at(Some(day(9)), day(20)), [expected]);
            assert_eq!(at(Some(day(11)), day(20)), []);
        }
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

    #[test]
    fn a_review_that_is_not_due_is_no_reason() {
        let facts = Facts {
            review_after: Some(day(10).date_naive()),
            freshness: 1.0,
            ..Facts::default()
        };
        assert_eq!(reasons(&facts, day(9)), []);
        assert_eq!(reasons(&facts, day(10)).len(), 1);
    }

    #[test]
    fn only_the_oldest_of_many_old_notes_are_found_if_there_is_a_limit() {
        let fixture = Fixture::new();
        for (title, number) in [("Older", 1), ("Oldest", 0), ("Old", 2)] {
            let written = day(1) + TimeDelta::days(number);
            fixture.add(title, |note| note.updated_at = timestamp(written));
        }
        let index = fixture.refreshed();
        let now = day(1) + TimeDelta::days(10_000);
        let found = |max_old| {
            let search = StaleSearch {
                projects: &[],
                max_old,
            };
            let found = find(&index, None, &search, now).unwrap();
            let titles = found.into_iter().map(|(entry, _)| entry.title);
            titles.collect::<Vec<_>>()
        };
        assert_eq!(found(usize::MAX), ["Oldest", "Older", "Old"]);
        assert_eq!(found(2), ["Oldest", "Older"]);
    }

    #[test]
    fn an_old_unused_note_may_be_outdated() {
        let mut facts = Facts {
            freshness: 0.4,
            ..Facts::default()
        };
        assert_eq!(reasons(&facts, day(1)), [StaleReason::Old]);
        facts.was_used = true;
        assert_eq!(reasons(&facts, day(1)), []);
        facts.was_used = false;
        facts.freshness = STALE;
        assert_eq!(reasons(&facts, day(1)), []);
    }
}
