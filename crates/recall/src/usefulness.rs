//! Scores how useful a note has been, from its usage counts.
//!
//! Uses and the rating count; being shown without use counts only against a note. All counts decay
//! with a half-life of 180 days. Nothing is stored, so the same counts and time give the same score. The score only reorders notes of similar relevance.

use anamnesis_note::note::{Kind, Rating, Severity};
use anamnesis_store::{
    index::{ByMonth, Entry},
    journal::NoteCounts,
};
use chrono::{DateTime, Utc};

/// The half-life of a count, in days.
const HALF_LIFE_DAYS: f64 = 180.0;

/// After being shown in this many sessions without a use, a note needs a better match.
const BENCH_AFTER: u64 = 8;

/// Before this many injections, in this many sessions, nothing is concluded from a note that nobody used.
const MIN_INJECTIONS: u64 = 10;
const MIN_SESSIONS: u64 = 5;

/// Returns whether a note without a use was injected often enough to suggest muting it.
pub fn may_suggest_muting(injections: u64, sessions: u64) -> bool {
    injections >= MIN_INJECTIONS && sessions >= MIN_SESSIONS
}

/// Returns the decay factor of counts of a month. A month in the future, by another machine's
/// clock, does not decay.
pub fn decay_factor(month: DateTime<Utc>, now: DateTime<Utc>) -> f64 {
    let days = days_between(month, now);
    (-days / HALF_LIFE_DAYS).exp2()
}

/// Returns the days from one time to another, 0 if it is in the future.
pub(crate) fn days_between(then: DateTime<Utc>, now: DateTime<Utc>) -> f64 {
    // Exact for any two times of the calendar.
    let seconds = (now - then).num_seconds().max(0) as f64;
    seconds / 86_400.0
}

/// Usage counts with decay applied.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DecayedCounts {
    /// Certain uses.
    pub used: f64,
    /// Probable uses.
    pub hinted: f64,
    /// Sessions with a certain or probable use.
    pub sessions: f64,
    /// Sessions that were shown the note and did not use it.
    pub unused: f64,
}

impl DecayedCounts {
    /// Sums the months, decayed to `now`.
    pub fn new(months: &ByMonth<NoteCounts>, now: DateTime<Utc>) -> Self {
        let mut sum = Self::default();
        for (month, counts) in months {
            let left = decay_factor(*month, now);
            sum.used += left * counts.used as f64;
            sum.hinted += left * counts.hinted as f64;
            sum.sessions += left * counts.sessions as f64;
            sum.unused += left * counts.unused as f64;
        }
        sum
    }
}

/// Returns when a note was last used.
pub fn last_used(months: &ByMonth<NoteCounts>) -> Option<DateTime<Utc>> {
    let last = months.iter().filter_map(|(_, counts)| counts.last).max();
    last.and_then(DateTime::from_timestamp_millis)
}

/// Returns a note's usefulness, from 0 to 1; ½ if nothing is known.
pub fn usefulness(faded: &DecayedCounts, rating: Option<Rating>) -> f64 {
    let of = |said| f64::from(u8::from(rating == Some(said)));
    let gained = faded.used + 0.5 * faded.hinted + 2.0 * of(Rating::Good);
    (2.0 + gained) / (4.0 + gained + 0.15 * faded.unused + 3.0 * of(Rating::Bad))
}

/// Returns whether a note never needs a better match: pinned notes, and severe warnings, which are
/// rarely needed but then important.
pub fn is_exempt(entry: &Entry) -> bool {
    let is_severe = entry.severity >= Some(Severity::High);
    entry.pinned || is_severe && entry.kind == Kind::Antipattern
}

/// Returns whether a note was shown often and never used or rated good. An [exempt](is_exempt) note
/// never is.
pub fn is_benched(months: &ByMonth<NoteCounts>, entry: &Entry) -> bool {
    let sum = |count: fn(&NoteCounts) -> u64| {
        let counts = months.iter().map(|(_, counts)| count(counts));
        counts.fold(0, u64::saturating_add)
    };
    !is_exempt(entry)
        && sum(|counts| counts.shown) >= BENCH_AFTER
        && sum(|counts| counts.sessions) == 0
        && entry.rating != Some(Rating::Good)
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::{Note, NoteType};
    use chrono::Duration;
    use proptest::prelude::*;

    use super::*;
    use crate::{knowledge::NoteStanding, session_start::tests::Fixture};

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    fn is_about(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn an_unknown_note_scores_one_half() {
        assert!(is_about(usefulness(&DecayedCounts::default(), None), 0.5));
    }

    #[test]
    fn muting_is_not_suggested_before_ten_injections_in_five_sessions() {
        for (injections, sessions, expected) in [
            (10, 5, true),
            (9, 9, false),
            (100, 4, false),
            (10, 10, true),
        ] {
            assert_eq!(may_suggest_muting(injections, sessions), expected);
        }
    }

    #[test]
    fn counts_have_a_half_life_of_180_days() {
        for (days, left) in [(0, 1.0), (180, 0.5), (360, 0.25), (-30, 1.0)] {
            let month = now() - Duration::days(days);
            assert!(is_about(decay_factor(month, now()), left), "{days}");
        }
    }

    #[test]
    fn one_use_or_good_rating_ends_benching() {
        let fixture = Fixture::new();
        let stored = fixture.add("A note", |_| {});
        let mut entry = fixture.refreshed().get(stored.path.id).unwrap().unwrap();
        let counts = NoteCounts {
            shown: 5,
            unused: 5,
            ..NoteCounts::default()
        };
        let mut months = vec![(now(), counts.clone()), (now(), counts.clone())];
        assert!(is_benched(&months, &entry));
        assert!(!is_benched(&months[..1].to_vec(), &entry));
        entry.rating = Some(Rating::Good);
        assert!(!is_benched(&months, &entry));
        entry.rating = Some(Rating::Bad);
        assert!(is_benched(&months, &entry));
        months[0].1 = NoteCounts {
            hinted: 1,
            sessions: 1,
            ..counts
        };
        assert!(!is_benched(&months, &entry));
    }

    #[test]
    fn a_good_rating_raises_the_score_and_a_bad_one_lowers_it() {
        let score = |rating| usefulness(&DecayedCounts::default(), rating);
        assert!(score(Some(Rating::Good)) > score(None));
        assert!(score(Some(Rating::Bad)) < score(None));
    }

    #[test]
    fn pinned_notes_and_severe_warnings_are_never_benched() {
        let fixture = Fixture::new();
        let months = vec![(
            now(),
            NoteCounts {
                shown: 50,
                unused: 50,
                ..NoteCounts::default()
            },
        )];
        let warning = |severity| {
            move |note: &mut Note| {
                note.note_type = NoteType::Procedural;
                note.kind = Some(Kind::Antipattern);
                note.severity = severity;
            }
        };
        let high = Some(Severity::High);
        let is_benched = |change: &dyn Fn(&mut Note)| {
            let stored = fixture.add("A note", change);
            let entry = fixture.refreshed().get(stored.path.id).unwrap().unwrap();
            NoteStanding::from_usage(&entry, &months, now()).is_benched
        };
        assert!(is_benched(&|_| {}));
        assert!(is_benched(&warning(None)));
        assert!(is_benched(&warning(Some(Severity::Medium))));
        // Severity has a meaning only in a warning.
        assert!(is_benched(&|note| note.severity = high));
        assert!(!is_benched(&warning(high)));
        assert!(!is_benched(&warning(Some(Severity::Critical))));
        assert!(!is_benched(&|note| note.pinned = true));
    }

    fn counts() -> impl Strategy<Value = [u64; 4]> {
        prop::array::uniform4(0_u64..50)
    }

    fn months(all: &[([u64; 4], i64)]) -> ByMonth<NoteCounts> {
        let month = |(counts, days): &([u64; 4], i64)| {
            let [used, hinted, sessions, unused] = *counts;
            let counts = NoteCounts {
                used,
                hinted,
                sessions,
                unused,
                ..NoteCounts::default()
            };
            (now() - Duration::days(*days), counts)
        };
        all.iter().map(month).collect()
    }

    proptest! {
        /// Positive counts raise the score, negative counts lower it, and it stays within 0 and 1.
        #[test]
        fn usefulness_is_monotone_in_each_count(
            all in prop::collection::vec((counts(), 0_i64..2000), 1..6), which in 0_usize..4,
        ) {
            let before = usefulness(&DecayedCounts::new(&months(&all), now()), None);
            prop_assert!((0.0..=1.0).contains(&before));
            let mut more = all.clone();
            more[0].0[which] += 1;
            let after = usefulness(&DecayedCounts::new(&months(&more), now()), None);
            match which {
                0 | 1 => prop_assert!(after >= before),
                2 => prop_assert!(is_about(after, before)),
                _ => prop_assert!(after <= before),
            }
        }

        /// Decaying in steps equals decaying at once, so it does not matter when anything was
        /// counted.
        #[test]
        fn decay_composes(then in 0_i64..2000, later in 0_i64..2000) {
            let month = now() - Duration::days(then);
            let once = decay_factor(month, now() + Duration::days(later));
            let steps = decay_factor(month, now()) * decay_factor(now(), now() + Duration::days(later));
            prop_assert!((once - steps).abs() < 1e-9);
        }
    }
}
