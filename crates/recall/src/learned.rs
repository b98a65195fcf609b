//! Links between notes that are used joint.
//!
//! A link's weight is the probability of using one note given the other, less the base rate, so a
//! note that is used everywhere is linked to nothing. No weight is stored: the result depends
//! neither on order nor on when it was last computed, and old use decays.

use anamnesis_note::id::NoteId;
use anamnesis_store::{
    index::{ByMonth, Error, Index},
    journal::NoteCounts,
};
use chrono::{DateTime, Utc};

use crate::usefulness::{DecayedCounts, amount, decay_factor};

/// The minimum number of sessions that used both notes.
const MIN_SESSIONS: u64 = 2;

/// The bounds of a link's weight. A link below the minimum is dropped.
const MAX_WEIGHT: f64 = 0.8;
const MIN_WEIGHT: f64 = 0.01;

/// The maximum number of learned links of a note.
const MAX_LINKS: usize = 8;

/// Decayed counts of two notes' use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairCounts {
    /// Sessions that used the first note.
    pub one: f64,
    /// Sessions that used the other note.
    pub other: f64,
    /// Sessions that used both, within two turns of each other.
    pub both: f64,
    /// All sessions.
    pub all: f64,
}

impl PairCounts {
    /// Returns the weight of the link from the first note to the other.
    pub fn weight(&self) -> f64 {
        let joint = self.both / (self.one + 2.0);
        let base_rate = self.other / (self.all + 2.0);
        (joint - base_rate).clamp(0.0, MAX_WEIGHT)
    }
}

/// Returns a note's links to notes that it was used joint with, strongest first, ties by id.
pub fn learned_links(
    index: &Index,
    note: NoteId,
    now: DateTime<Utc>,
) -> Result<Vec<(NoteId, f64)>, Error> {
    let joint: Vec<_> = index
        .used_together(note)?
        .into_iter()
        .filter(|(_, months)| {
            let sessions = months.iter().map(|(_, sessions)| *sessions);
            sessions.fold(0, u64::saturating_add) >= MIN_SESSIONS
        })
        .collect();
    if joint.is_empty() {
        return Ok(Vec::new());
    }
    let all = decayed(&index.sessions_by_month()?, now);
    let others = joint.iter().map(|(other, _)| *other);
    let usage = index.usage_of(others.chain([note]))?;
    let sessions = |note: &NoteId| {
        let months: Option<&ByMonth<NoteCounts>> = usage.get(note);
        months.map_or(0.0, |months| DecayedCounts::new(months, now).sessions)
    };
    let one = sessions(&note);
    let mut links: Vec<(NoteId, f64)> = joint
        .iter()
        .map(|(other, months)| {
            let counts = PairCounts {
                one,
                other: sessions(other),
                both: decayed(months, now),
                all,
            };
            (*other, counts.weight())
        })
        .filter(|(_, weight)| *weight >= MIN_WEIGHT)
        .collect();
    links.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    links.truncate(MAX_LINKS);
    Ok(links)
}

fn decayed(months: &ByMonth<u64>, now: DateTime<Utc>) -> f64 {
    let left = |(month, count): &(DateTime<Utc>, u64)| decay_factor(*month, now) * amount(*count);
    months.iter().map(left).sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anamnesis_session::event::{Record, RecordedEvent, Surroundings};
    use anamnesis_store::{
        fs::home::Home,
        journal::{Journal, Weight},
        notes::Notes,
    };

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    fn note(number: u32) -> NoteId {
        NoteId::of_session(&number.to_string())
    }

    /// Builds an index of sessions, each of which used these notes.
    fn index(sessions: &[&[u32]]) -> (tempfile::TempDir, Index) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let journal = Journal::open(&home, TIMEOUT).unwrap();
        for (number, notes) in sessions.iter().enumerate() {
            let session = number.to_string();
            let record = Record {
                session: session.clone(),
                at: 1,
                prompt_id: None,
                agent: None,
                surroundings: Surroundings::default(),
                private: false,
                echoes: Vec::new(),
                what: RecordedEvent::Seen,
            };
            journal.take(&record).unwrap();
            let uses: Vec<_> = notes
                .iter()
                .map(|number| (note(*number), Weight::Explicit))
                .collect();
            journal.used(&session, "", 1, &uses, now()).unwrap();
        }
        let notes = Notes::new(home.clone(), TIMEOUT);
        let index = Index::in_step(&home, &notes, TIMEOUT).unwrap();
        (folder, index)
    }

    fn links(sessions: &[&[u32]], of: u32) -> Vec<(NoteId, f64)> {
        let (_folder, index) = index(sessions);
        learned_links(&index, note(of), now()).unwrap()
    }

    #[test]
    fn notes_that_are_used_together_are_linked() {
        let sessions: [&[u32]; 6] = [&[1, 2], &[1, 2], &[1, 2], &[3], &[4], &[5]];
        let found = links(&sessions, 1);
        assert_eq!(found.len(), 1);
        // 3 / (3 + 2) − 3 / (6 + 2). The middle of the current month is in the future, so nothing
        // decays.
        assert_eq!(
            (found[0].0, (found[0].1 * 1000.0).round()),
            (note(2), 225.0)
        );
    }

    #[test]
    fn one_common_session_makes_no_link() {
        assert_eq!(links(&[&[1, 2], &[3], &[4], &[5]], 1), []);
    }

    #[test]
    fn a_note_that_is_used_everywhere_is_linked_to_nothing() {
        let sessions: [&[u32]; 5] = [&[1, 9], &[2, 9], &[1, 9], &[4, 9], &[5, 9]];
        assert_eq!(links(&sessions, 1), []);
    }

    #[test]
    fn links_are_limited_and_sorted() {
        let many: Vec<u32> = (1..=11).collect();
        let mut sessions: Vec<&[u32]> = vec![&many, &many];
        sessions.extend(std::iter::repeat_n::<&[u32]>(&[99], 10));
        let found = links(&sessions, 1);
        assert_eq!(found.len(), MAX_LINKS);
        assert!(found.windows(2).all(|pair| {
            pair[0].1 > pair[1].1 || (pair[0].1 <= pair[1].1 && pair[0].0 < pair[1].0)
        }));
    }

    #[test]
    fn the_weight_is_within_bounds() {
        let counts = |one, other, both, all| {
            PairCounts {
                one,
                other,
                both,
                all,
            }
            .weight()
        };
        assert!(counts(1e6, 1e6, 1e6, 1e9) <= MAX_WEIGHT);
        assert!(counts(0.0, 1e6, 0.0, 0.0) >= 0.0);
        assert!(counts(4.0, 2.0, 2.0, 20.0) > counts(4.0, 4.0, 2.0, 20.0));
        assert!(counts(4.0, 2.0, 2.0, 20.0) > counts(4.0, 2.0, 1.0, 20.0));
    }
}
