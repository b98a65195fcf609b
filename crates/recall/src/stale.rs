//! Which notes are worth a look, and why.
//!
//! Old and quiet is not wrong: a note is named for a reason that a person can check, and one act
//! clears it. Nothing else follows from it.

use anamnesis_core::{id::NoteId, note::parse_timestamp, receipt::NoteCounts};
use anamnesis_store::index::{ByMonth, Entry};
use chrono::{DateTime, NaiveDate, Utc};

use crate::freshness::STALE;

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

#[cfg(test)]
mod tests {
    use anamnesis_core::note::timestamp;

    use super::*;
    use crate::working_set::tests::Fixture;

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
