//! How fresh a note is: what is left of its worth since somebody last used, verified or changed it.
//!
//! A curve over the time that has passed, computed when it is asked for. It puts older notes a little
//! behind and names those worth a look; it changes no note, and removes none.

use anamnesis_note::note::Kind;
use chrono::{DateTime, Utc};

use crate::usefulness::days_between;

/// Below this a note that was never used is worth a look.
pub const STALE: f64 = 0.5;

/// The curve falls to nine tenths in the time that a kind of note stays fresh.
const CURVE: f64 = 19.0 / 81.0;

/// How many days notes of a kind stay fresh; without an end where there is none.
fn days_fresh(kind: Kind) -> Option<f64> {
    match kind {
        Kind::Fact | Kind::Preference | Kind::Skill | Kind::Task => Some(365.0),
        Kind::Insight => Some(180.0),
        Kind::Experience => Some(30.0),
        Kind::Antipattern => None,
    }
}

/// How fresh a note is, from 0 to 1.
///
/// `since` is when it was last used, verified or changed, `uses` in how many sessions it was used,
/// faded. `never_fades` is a note that is pinned, or a task that is open.
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
    fn each_kind_keeps_nine_tenths_for_its_time() {
        for (kind, days) in [
            (Kind::Fact, 365),
            (Kind::Skill, 365),
            (Kind::Insight, 180),
            (Kind::Experience, 30),
        ] {
            assert!((after(kind, days, 0.0) - 0.9).abs() < 1e-9, "{kind}");
            assert!((after(kind, 0, 0.0) - 1.0).abs() < 1e-9, "{kind}");
        }
        // A session's note is worth a look after a bit more than a year, a fact never in a life.
        assert!(after(Kind::Experience, 383, 0.0) > STALE);
        assert!(after(Kind::Experience, 385, 0.0) < STALE);
        assert!(after(Kind::Fact, 10 * 365, 0.0) > STALE);
    }

    #[test]
    fn some_never_fade() {
        assert!((after(Kind::Antipattern, 10_000, 0.0) - 1.0).abs() < 1e-9);
        let long_ago = now() - Duration::days(10_000);
        assert!((freshness(Kind::Fact, true, long_ago, 0.0, now()) - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn it_falls_with_time_and_slower_with_use(days in 0_i64..10_000, uses in 0.0..100.0_f64) {
            let fresh = after(Kind::Insight, days, uses);
            prop_assert!((0.0..=1.0).contains(&fresh));
            prop_assert!(after(Kind::Insight, days + 1, uses) < fresh);
            prop_assert!(after(Kind::Insight, days, uses + 1.0) >= fresh);
            // A clock that is behind another machine's makes nothing older.
            prop_assert!(after(Kind::Insight, -days, uses) >= fresh);
        }
    }
}
