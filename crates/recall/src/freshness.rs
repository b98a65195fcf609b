//! Freshness of a note: a curve over the time since it was last used, verified or changed.
//!
//! Freshness is computed on demand. It ranks older notes slightly lower; it never changes or removes a
//! note.

use anamnesis_note::note::Kind;
use chrono::{DateTime, Utc};

use crate::usefulness::days_between;

/// Chosen so that freshness is 0.9 after the number of days of [`days_fresh`].
const CURVE: f64 = 19.0 / 81.0;

/// Returns how many days notes of a kind stay fresh, or `None` for kinds that never age.
fn days_fresh(kind: Kind) -> Option<f64> {
    match kind {
        Kind::Fact | Kind::Preference | Kind::Skill | Kind::Task => Some(365.0),
        Kind::Insight => Some(180.0),
        Kind::Experience => Some(30.0),
        Kind::Antipattern => None,
    }
}

/// Returns a note's freshness, from 0 to 1.
///
/// `since` is when it was last used, verified or changed. `uses` is the decayed number of sessions
/// that used it. `never_fades` is set for pinned notes and open tasks.
pub fn freshness(
    kind: Kind,
    never_fades: bool,
    since: DateTime<Utc>,
    uses: f64,
    now: DateTime<Utc>,
) -> f64 {
    match days_fresh(kind).filter(|_| !never_fades) {
        None => 1.0,
        Some(days) => {
            let days = days * (1.0 + 0.5 * uses.max(0.0).ln_1p());
            (1.0 + CURVE * days_between(since, now) / days).powf(-0.5)
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::Duration;
    use proptest::prelude::*;

    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    fn after(kind: Kind, days: i64, uses: f64) -> f64 {
        freshness(kind, false, now() - Duration::days(days), uses, now())
    }

    #[test]
    fn each_kind_has_nine_tenths_left_after_its_time() {
        for (kind, days) in [
            (Kind::Fact, 365),
            (Kind::Skill, 365),
            (Kind::Insight, 180),
            (Kind::Experience, 30),
        ] {
            assert!((after(kind, days, 0.0) - 0.9).abs() < 1e-9, "{kind}");
            assert!((after(kind, 0, 0.0) - 1.0).abs() < 1e-9, "{kind}");
        }
    }

    #[test]
    fn some_notes_never_age() {
        assert!((after(Kind::Antipattern, 10_000, 0.0) - 1.0).abs() < 1e-9);
        let long_ago = now() - Duration::days(10_000);
        assert!((freshness(Kind::Fact, true, long_ago, 0.0, now()) - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn freshness_falls_with_time_and_slower_with_use(days in 0_i64..10_000, uses in 0.0..100.0_f64) {
            let fresh = after(Kind::Insight, days, uses);
            prop_assert!((0.0..=1.0).contains(&fresh));
            prop_assert!(after(Kind::Insight, days + 1, uses) < fresh);
            prop_assert!(after(Kind::Insight, days, uses + 1.0) >= fresh);
            // Another machine's clock that is ahead makes nothing older.
            prop_assert!(after(Kind::Insight, -days, uses) >= fresh);
        }
    }
}
