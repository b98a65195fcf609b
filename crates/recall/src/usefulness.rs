//! How useful a note has been, by what was made of it.
//!
//! Uses and words about a note count, impressions only against it; all of it fades by half in a
//! hundred and eighty days. Nothing is stored: the same receipts and the same time give the same
//! answer. It reorders notes that fit about as well, and lets none in.

use anamnesis_note::{
    note::{Kind, Severity},
    usage_log::NoteCounts,
};
use anamnesis_store::index::{ByMonth, Entry};
use chrono::{DateTime, Utc};

/// After how many days what happened counts half.
const HALF_LIFE_DAYS: f64 = 180.0;

/// In how many sessions a note is shown without any use before it has to fit better.
const SHOWN_IN_VAIN: u64 = 8;

/// How much of what happened in a month counts now. A month that lies ahead, by another machine's
/// clock, counts as this one.
pub fn fading(month: DateTime<Utc>, now: DateTime<Utc>) -> f64 {
    let days = days_between(month, now);
    (-days / HALF_LIFE_DAYS).exp2()
}

/// The days from one time to another, none if it lies ahead.
pub(crate) fn days_between(then: DateTime<Utc>, now: DateTime<Utc>) -> f64 {
    // Exact for any two times of the calendar.
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 seconds")]
    let seconds = (now - then).num_seconds().max(0) as f64;
    seconds / 86_400.0
}

/// A count as a number that fades.
#[expect(
    clippy::cast_precision_loss,
    reason = "a count that is large is not exact"
)]
pub(crate) fn amount(count: u64) -> f64 {
    count as f64
}

/// What was made of a note, each count by how much of it is left.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Faded {
    /// Certain uses.
    pub used: f64,
    /// Probable uses.
    pub hinted: f64,
    /// Sessions in which it was used either way.
    pub sessions: f64,
    /// Sessions that were given it and did not use it.
    pub unused: f64,
    /// Sessions in which it was said to be good.
    pub good: f64,
    /// Sessions in which it was said to be bad.
    pub bad: f64,
}

impl Faded {
    /// Adds the months up as of now.
    pub fn of(months: &ByMonth<NoteCounts>, now: DateTime<Utc>) -> Self {
        let mut sum = Self::default();
        for (month, counts) in months {
            let left = fading(*month, now);
            sum.used += left * amount(counts.used);
            sum.hinted += left * amount(counts.hinted);
            sum.sessions += left * amount(counts.sessions);
            sum.unused += left * amount(counts.unused);
            sum.good += left * amount(counts.good);
            sum.bad += left * amount(counts.bad);
        }
        sum
    }
}

/// How useful a note has been, from 0 to 1; ½ of one of which nothing is known.
pub fn usefulness(faded: &Faded) -> f64 {
    let gained = faded.used + 0.5 * faded.hinted + 2.0 * faded.good;
    (2.0 + gained) / (4.0 + gained + 0.15 * faded.unused + 3.0 * faded.bad)
}

/// Tells whether a note is never benched: one that is pinned, and a grave warning, which is rarely needed
/// and then sorely.
pub fn is_exempt(entry: &Entry) -> bool {
    let is_grave = entry.severity >= Some(Severity::High);
    entry.pinned || is_grave && entry.kind == Kind::Antipattern
}

/// Tells whether a note was given often, and never used or praised; one that [`is_exempt`] never is.
pub fn is_benched(months: &ByMonth<NoteCounts>, is_exempt: bool) -> bool {
    let sum = |count: fn(&NoteCounts) -> u64| {
        let counts = months.iter().map(|(_, counts)| count(counts));
        counts.fold(0, u64::saturating_add)
    };
    !is_exempt
        && sum(|counts| counts.shown) >= SHOWN_IN_VAIN
        && sum(|counts| counts.sessions) == 0
        && sum(|counts| counts.good) == 0
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::{Note, NoteType};
    use chrono::Duration;
    use proptest::prelude::*;

    use super::*;
    use crate::{note_set::Standing, session_start::tests::Fixture};

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    fn is_about(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_note_of_which_nothing_is_known_is_in_the_middle() {
        assert!(is_about(usefulness(&Faded::default()), 0.5));
    }

    #[test]
    fn what_happened_counts_half_after_half_a_year() {
        for (days, left) in [(0, 1.0), (180, 0.5), (360, 0.25), (-30, 1.0)] {
            let month = now() - Duration::days(days);
            assert!(is_about(fading(month, now()), left), "{days}");
        }
    }

    #[test]
    fn one_use_or_good_word_takes_a_note_off_the_bench() {
        let counts = NoteCounts {
            shown: 5,
            unused: 5,
            ..NoteCounts::default()
        };
        let months = vec![(now(), counts.clone()), (now(), counts.clone())];
        assert!(is_benched(&months, false));
        assert!(!is_benched(&months, true));
        assert!(!is_benched(&months[..1].to_vec(), false));
        for other in [
            NoteCounts {
                hinted: 1,
                sessions: 1,
                ..counts.clone()
            },
            NoteCounts {
                good: 1,
                ..counts.clone()
            },
        ] {
            let mut months = months.clone();
            months[0].1 = other;
            assert!(!is_benched(&months, false));
        }
    }

    #[test]
    fn pinned_notes_and_grave_warnings_are_never_benched() {
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
            Standing::of(&entry, &months, now()).is_benched
        };
        assert!(is_benched(&|_| {}));
        assert!(is_benched(&warning(None)));
        assert!(is_benched(&warning(Some(Severity::Medium))));
        // A word that only means something in a warning.
        assert!(is_benched(&|note| note.severity = high));
        assert!(!is_benched(&warning(high)));
        assert!(!is_benched(&warning(Some(Severity::Critical))));
        assert!(!is_benched(&|note| note.pinned = true));
    }

    fn counts() -> impl Strategy<Value = [u64; 6]> {
        prop::array::uniform6(0_u64..50)
    }

    fn months(all: &[([u64; 6], i64)]) -> ByMonth<NoteCounts> {
        let month = |(counts, days): &([u64; 6], i64)| {
            let [used, hinted, sessions, unused, good, bad] = *counts;
            let counts = NoteCounts {
                used,
                hinted,
                sessions,
                unused,
                good,
                bad,
                ..NoteCounts::default()
            };
            (now() - Duration::days(*days), counts)
        };
        all.iter().map(month).collect()
    }

    proptest! {
        /// More good brings it up, more bad down, and it stays within bounds.
        #[test]
        fn it_is_monotone_in_each_count(
            all in prop::collection::vec((counts(), 0_i64..2000), 1..6), which in 0_usize..6,
        ) {
            let before = usefulness(&Faded::of(&months(&all), now()));
            prop_assert!((0.0..=1.0).contains(&before));
            let mut more = all.clone();
            more[0].0[which] += 1;
            let after = usefulness(&Faded::of(&months(&more), now()));
            match which {
                0 | 1 | 4 => prop_assert!(after >= before),
                2 => prop_assert!(is_about(after, before)),
                _ => prop_assert!(after <= before),
            }
        }

        /// Fading by steps is fading at once, so it does not matter when anything was counted.
        #[test]
        fn fading_composes(then in 0_i64..2000, later in 0_i64..2000) {
            let month = now() - Duration::days(then);
            let once = fading(month, now() + Duration::days(later));
            let steps = fading(month, now()) * fading(now(), now() + Duration::days(later));
            prop_assert!((once - steps).abs() < 1e-9);
        }
    }
}
