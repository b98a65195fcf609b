//! Links that follow from notes being used together.
//!
//! What one note's use says of the other's, less what is said of any note: a note that is used
//! everywhere is linked to nothing. There is no stored weight, so nothing depends on order or on how
//! often anything was computed, and what is no longer used together is forgotten.

use anamnesis_note::{id::NoteId, usage_log::NoteCounts};
use anamnesis_store::index::{ByMonth, Error, Index};
use chrono::{DateTime, Utc};

use crate::usefulness::{Faded, amount, fading};

/// In how many sessions two notes must have been used together.
const MIN_SESSIONS: u64 = 2;

/// What a link is worth at most, and below which it is worth nothing.
const MAX_WEIGHT: f64 = 0.8;
const MIN_WEIGHT: f64 = 0.01;

/// How many links of this kind a note has.
const MAX_LINKS: usize = 8;

/// Counted evidence of two notes, faded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Sessions that used the first note.
    pub one: f64,
    /// Sessions that used the other one.
    pub other: f64,
    /// Sessions that used both, within two turns of each other.
    pub both: f64,
    /// All sessions.
    pub all: f64,
}

impl Evidence {
    /// What the link from the first note to the other one is worth.
    pub fn weight(&self) -> f64 {
        let together = self.both / (self.one + 2.0);
        let anyway = self.other / (self.all + 2.0);
        (together - anyway).clamp(0.0, MAX_WEIGHT)
    }
}

/// The links of a note to those it was used together with, the strongest first, ties by id.
///
/// # Errors
/// When the index cannot be read.
pub fn learned_links(
    index: &Index,
    note: NoteId,
    now: DateTime<Utc>,
) -> Result<Vec<(NoteId, f64)>, Error> {
    let together: Vec<_> = index
        .used_together(note)?
        .into_iter()
        .filter(|(_, months)| {
            let sessions = months.iter().map(|(_, sessions)| *sessions);
            sessions.fold(0, u64::saturating_add) >= MIN_SESSIONS
        })
        .collect();
    if together.is_empty() {
        return Ok(Vec::new());
    }
    let all = faded(&index.sessions_by_month()?, now);
    let others = together.iter().map(|(other, _)| *other);
    let usage = index.usage_of(others.chain([note]))?;
    let sessions = |note: &NoteId| {
        let months: Option<&ByMonth<NoteCounts>> = usage.get(note);
        months.map_or(0.0, |months| Faded::of(months, now).sessions)
    };
    let one = sessions(&note);
    let mut links: Vec<(NoteId, f64)> = together
        .iter()
        .map(|(other, months)| {
            let evidence = Evidence {
                one,
                other: sessions(other),
                both: faded(months, now),
                all,
            };
            (*other, evidence.weight())
        })
        .filter(|(_, weight)| *weight >= MIN_WEIGHT)
        .collect();
    links.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    links.truncate(MAX_LINKS);
    Ok(links)
}

fn faded(months: &ByMonth<u64>, now: DateTime<Utc>) -> f64 {
    let left = |(month, count): &(DateTime<Utc>, u64)| fading(*month, now) * amount(*count);
    months.iter().map(left).sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anamnesis_note::{
        note::Scope,
        usage_log::{Usage, Weight},
    };
    use anamnesis_store::{fs::home::Home, journal::Journal, notes::Notes, usage_log::Receipts};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    fn note(number: u32) -> NoteId {
        NoteId::of_session(&number.to_string())
    }

    /// An index of sessions, each of which used these notes.
    fn index(sessions: &[&[u32]]) -> (tempfile::TempDir, Index) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let journal = Journal::open(&home, PATIENCE).unwrap();
        let receipts = Receipts::new(home.clone());
        for (number, notes) in sessions.iter().enumerate() {
            let usage = Usage {
                used: notes
                    .iter()
                    .map(|number| ((1, note(*number)), Weight::Explicit))
                    .collect(),
                ..Usage::default()
            };
            let mark = receipts
                .session_mark(&journal, &number.to_string())
                .unwrap();
            let (told, _) = usage.part(Some(mark), None, now(), |_| Some(Scope::Portable));
            receipts
                .append(&journal, "laptop", &told, PATIENCE)
                .unwrap();
        }
        let notes = Notes::new(home.clone(), PATIENCE);
        let index = Index::in_step(&home, &notes, PATIENCE).unwrap();
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
        // 3 / (3 + 2) − 3 / (6 + 2), the month's middle lying ahead.
        assert_eq!(
            (found[0].0, (found[0].1 * 1000.0).round()),
            (note(2), 225.0)
        );
    }

    #[test]
    fn one_session_proves_nothing() {
        assert_eq!(links(&[&[1, 2], &[3], &[4], &[5]], 1), []);
    }

    #[test]
    fn a_note_that_is_used_everywhere_is_linked_to_nothing() {
        let sessions: [&[u32]; 5] = [&[1, 9], &[2, 9], &[1, 9], &[4, 9], &[5, 9]];
        assert_eq!(links(&sessions, 1), []);
    }

    #[test]
    fn a_note_has_a_few_links_of_this_kind_in_a_fixed_order() {
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
        let evidence = |one, other, both, all| {
            Evidence {
                one,
                other,
                both,
                all,
            }
            .weight()
        };
        assert!(evidence(1e6, 1e6, 1e6, 1e9) <= MAX_WEIGHT);
        assert!(evidence(0.0, 1e6, 0.0, 0.0) >= 0.0);
        assert!(evidence(4.0, 2.0, 2.0, 20.0) > evidence(4.0, 4.0, 2.0, 20.0));
        assert!(evidence(4.0, 2.0, 2.0, 20.0) > evidence(4.0, 2.0, 1.0, 20.0));
    }
}
