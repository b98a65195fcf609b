//! Which notes are worth a look, and why.
//!
//! Old and quiet is not wrong: a note is named for a reason that a person can check, and one act
//! clears it. Nothing else follows from it.

use std::collections::HashMap;

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note, parse_timestamp},
    usage_log::NoteCounts,
};
use anamnesis_store::{
    index::{ByMonth, Entry, Error, Index},
    journal::Journal,
    notes::Notes,
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, NaiveDate, Utc};

use crate::{
    freshness::{STALE, freshness},
    usefulness::Faded,
};

/// What a task says of itself once there is nothing more to do.
const FINISHED: [&str; 2] = ["done", "archived"];

/// Relations by which a note belongs to a task, whichever of the two says so.
const BELONGS: [&str; 2] = ["about", "part-of"];

/// Why a note is worth a look.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A task that it belongs to was finished since.
    TaskDone {
        /// The task.
        task: NoteId,
        /// When it was finished.
        at: DateTime<Utc>,
    },
    /// It said itself that it should be looked at from this day on.
    ReviewDue(NaiveDate),
    /// Something that it names is no longer there.
    Gone(String),
    /// Another note says otherwise.
    Disputed(NoteId),
    /// It is old, and nobody ever used it.
    Faded,
}

impl Reason {
    /// The word for it in the output for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::TaskDone { .. } => "task done",
            Self::ReviewDue(_) => "review due",
            Self::Gone(_) => "gone",
            Self::Disputed(_) => "disputed",
            Self::Faded => "old",
        }
    }

    /// The reason in words; `short` names a note.
    pub fn text(&self, short: impl Fn(NoteId) -> String) -> String {
        match self {
            Self::TaskDone { task, at } => {
                format!(
                    "its task #{} was finished on {}",
                    short(*task),
                    at.date_naive()
                )
            }
            Self::ReviewDue(day) => format!("it was to be looked at from {day} on"),
            Self::Gone(what) => one_line(what),
            Self::Disputed(note) => format!("#{} says otherwise", short(*note)),
            Self::Faded => "old, and never used".to_owned(),
        }
    }
}

/// What is known of a note that may be worth a look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// When somebody last changed it, or found it right.
    pub looked_at: Option<DateTime<Utc>>,
    /// Finished tasks that it belongs to, each with the time at which it was finished.
    pub tasks: Vec<(NoteId, DateTime<Utc>)>,
    /// The day from which on it should be looked at.
    pub review_after: Option<NaiveDate>,
    /// What it names that is no longer there, and when that was found out.
    pub gone: Option<(String, DateTime<Utc>)>,
    /// Notes in use that say otherwise, each with the time of its last change.
    pub disputed_by: Vec<(NoteId, DateTime<Utc>)>,
    /// How fresh it is.
    pub freshness: f64,
    /// Whether it was ever used.
    pub was_used: bool,
}

/// When somebody last changed a note, or found it right; none where nothing tells.
pub fn looked_at(entry: &Entry, months: &ByMonth<NoteCounts>) -> Option<DateTime<Utc>> {
    let verified = months.iter().filter_map(|(_, counts)| counts.verified);
    verified.max().max(parse_timestamp(&entry.updated_at))
}

/// Tells whether what happened to a note is news: nobody has looked at the note since.
pub fn is_news(since: DateTime<Utc>, looked_at: Option<DateTime<Utc>>) -> bool {
    looked_at.is_none_or(|looked| looked < since)
}

/// Returns the reasons that nobody has looked at since, in a fixed order.
pub fn reasons(facts: &Facts, now: DateTime<Utc>) -> Vec<Reason> {
    let is_open = |since| is_news(since, facts.looked_at);
    let mut reasons: Vec<Reason> = Vec::new();
    let tasks = facts.tasks.iter().filter(|(_, at)| is_open(*at));
    reasons.extend(tasks.map(|(task, at)| Reason::TaskDone {
        task: *task,
        at: *at,
    }));
    let due = facts.review_after.filter(|day| now.date_naive() >= *day);
    let due = due.filter(|day| {
        facts
            .looked_at
            .is_none_or(|looked| looked.date_naive() < *day)
    });
    reasons.extend(due.map(Reason::ReviewDue));
    let gone = facts.gone.iter().filter(|(_, at)| is_open(*at));
    reasons.extend(gone.map(|(what, _)| Reason::Gone(what.clone())));
    let disputes = facts.disputed_by.iter().filter(|(_, at)| is_open(*at));
    reasons.extend(disputes.map(|(note, _)| Reason::Disputed(*note)));
    if facts.freshness < STALE && !facts.was_used {
        reasons.push(Reason::Faded);
    }
    reasons.sort();
    reasons
}

/// Finds the notes that are worth a look among these, with the reasons: those with most reasons first,
/// then the oldest, then by id. Without records nothing is known to be gone.
///
/// # Errors
/// When the index cannot be read.
pub fn find(
    index: &Index,
    notes: &Notes,
    journal: Option<&Journal>,
    entries: Vec<Entry>,
    now: DateTime<Utc>,
) -> Result<Vec<(Entry, Vec<Reason>)>, Error> {
    let files = Files::of(notes, &entries);
    let usage = index.usage_of(entries.iter().map(Entry::id))?;
    let nothing = ByMonth::new();
    let changed_at: HashMap<NoteId, DateTime<Utc>> = entries
        .iter()
        .filter_map(|entry| Some((entry.id(), changed(entry)?)))
        .collect();
    let mut facts: HashMap<NoteId, Facts> = entries
        .iter()
        .map(|entry| {
            let known = usage.get(&entry.id()).unwrap_or(&nothing);
            let mut facts = worth(entry, known, now);
            facts.review_after = files.review_after.get(&entry.id()).copied();
            (entry.id(), facts)
        })
        .collect();
    for (note, task) in &files.belongs {
        if let (Some(facts), Some(at)) = (facts.get_mut(note), files.finished.get(task)) {
            facts.tasks.push((*task, *at));
        }
    }
    for (note, other) in &files.disputes {
        if let (Some(facts), Some(at)) = (facts.get_mut(note), changed_at.get(other)) {
            facts.disputed_by.push((*other, *at));
        }
    }
    let ids: Vec<NoteId> = entries.iter().map(Entry::id).collect();
    let gone = journal.and_then(|journal| journal.stale(&ids).ok());
    for (note, stale) in gone.unwrap_or_default() {
        if let Some(facts) = facts.get_mut(&note) {
            facts.gone = Some((stale.reason, time(stale.gone_at)));
        }
    }
    let mut found: Vec<(Entry, Vec<Reason>)> = entries
        .into_iter()
        .filter_map(|entry| {
            let mut found = reasons(facts.get(&entry.id())?, now);
            // Both notes may say the same of each other.
            found.dedup();
            (!found.is_empty()).then_some((entry, found))
        })
        .collect();
    found.sort_by(|(a, of_a), (b, of_b)| {
        let by_number = of_b.len().cmp(&of_a.len());
        let by_age = a.updated_at.cmp(&b.updated_at);
        by_number.then(by_age).then(a.id().cmp(&b.id()))
    });
    Ok(found)
}

/// What the files say of notes and of each other.
#[derive(Default)]
struct Files {
    review_after: HashMap<NoteId, NaiveDate>,
    /// Finished tasks.
    finished: HashMap<NoteId, DateTime<Utc>>,
    /// Pairs of a note and one that it belongs to, or that belongs to it.
    belongs: Vec<(NoteId, NoteId)>,
    /// Pairs of notes of which only one can be right.
    disputes: Vec<(NoteId, NoteId)>,
}

impl Files {
    fn of(notes: &Notes, entries: &[Entry]) -> Self {
        let mut files = Self::default();
        for entry in entries {
            // One that cannot be read is `doctor`'s to name.
            let Ok(stored) = notes.read(entry.path) else {
                continue;
            };
            let (id, text_of) = (entry.id(), |key| stored.file.text_of(key));
            let day = text_of("review_after").and_then(|day| day.trim().parse().ok());
            files.review_after.extend(day.map(|day| (id, day)));
            let status = text_of("status").unwrap_or_default();
            if entry.kind == Kind::Task && FINISHED.contains(&status.trim()) {
                files
                    .finished
                    .extend(changed(entry).map(|finished| (id, finished)));
            }
            files.take_links(stored.file.note());
        }
        files
    }

    fn take_links(&mut self, note: &Note) {
        for line in &note.links {
            let mut words = line.split_whitespace();
            let relation = words.next().unwrap_or_default();
            let Some(Ok(other)) = words.next().map(str::parse) else {
                continue;
            };
            if BELONGS.contains(&relation) {
                self.belongs.extend([(note.id, other), (other, note.id)]);
            } else if relation == "contradicts" {
                self.disputes.extend([(note.id, other), (other, note.id)]);
            }
        }
    }
}

fn changed(entry: &Entry) -> Option<DateTime<Utc>> {
    parse_timestamp(&entry.updated_at)
}

/// What the index and the receipts say of a note.
fn worth(entry: &Entry, usage: &ByMonth<NoteCounts>, now: DateTime<Utc>) -> Facts {
    let counts = || usage.iter().map(|(_, counts)| counts);
    let last_used = counts().filter_map(|counts| counts.last).max();
    let looked_at = looked_at(entry, usage);
    let sessions = Faded::of(usage, now).sessions;
    let never_fades = entry.pinned || entry.kind == Kind::Task;
    // A note without any time says nothing of its age.
    let since = looked_at.max(last_used).unwrap_or(now);
    Facts {
        looked_at,
        freshness: freshness(entry.kind, never_fades, since, sessions, now),
        was_used: counts().any(|counts| counts.sessions > 0),
        ..Facts::default()
    }
}

/// A time of the records.
pub(crate) fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

/// The notes that a finished task may have made untrue: linked with it by `about` or `part-of`, from
/// either side, and written before `now`.
///
/// # Errors
/// When the index cannot be read.
pub fn due_after(index: &Index, task: NoteId, now: DateTime<Utc>) -> Result<Vec<Entry>, Error> {
    let mut due: Vec<Entry> = Vec::new();
    for edge in index.links_of(&[task])? {
        if !BELONGS.contains(&edge.relation.as_str()) {
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
    fn each_reason_has_an_act_that_clears_it() {
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
                Reason::TaskDone {
                    task: note,
                    at: day(10),
                },
            ),
            (
                Facts {
                    review_after: Some(date),
                    ..fresh.clone()
                },
                Reason::ReviewDue(date),
            ),
            (
                Facts {
                    gone: Some(("a.rs is gone".to_owned(), day(10))),
                    ..fresh.clone()
                },
                Reason::Gone("a.rs is gone".to_owned()),
            ),
            (
                Facts {
                    disputed_by: vec![(note, day(10))],
                    ..fresh.clone()
                },
                Reason::Disputed(note),
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
    fn a_note_was_looked_at_when_it_was_changed_or_found_right() {
        let fixture = Fixture::new();
        let stored = fixture.add("A note", |note| note.updated_at = timestamp(day(5)));
        let entry = fixture.refreshed().get(stored.path.id).unwrap().unwrap();
        let verified = |number| {
            let verified = Some(day(number));
            let counts = NoteCounts {
                verified,
                ..NoteCounts::default()
            };
            (day(1), counts)
        };
        let months = vec![verified(3), verified(9), verified(7)];
        assert_eq!(looked_at(&entry, &ByMonth::new()), Some(day(5)));
        assert_eq!(looked_at(&entry, &months[..1].to_vec()), Some(day(5)));
        assert_eq!(looked_at(&entry, &months), Some(day(9)));
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
    fn an_old_note_is_named_if_nobody_used_it() {
        let mut facts = Facts {
            freshness: 0.4,
            ..Facts::default()
        };
        assert_eq!(reasons(&facts, day(1)), [Reason::Faded]);
        facts.was_used = true;
        assert_eq!(reasons(&facts, day(1)), []);
        facts.was_used = false;
        facts.freshness = STALE;
        assert_eq!(reasons(&facts, day(1)), []);
    }
}
