//! Suggestions for a person; none is ever applied automatically.

use anamnesis_note::note::State;
use anamnesis_recall::{
    stale::{self, StaleReason, StaleSearch},
    usefulness::{is_benched, may_suggest_muting},
};
use anamnesis_store::{
    index::{ByMonth, Entry, Error, Filter, Index},
    journal::Journal,
};
use chrono::{DateTime, Utc};

/// The minimum number of sessions that used a note to suggest promoting it.
const OFTEN: u64 = 5;

/// A suggestion about a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suggestion {
    /// It is used so often that it could be pinned or added to the project's instructions.
    Promote {
        /// The number of sessions that used it.
        sessions: u64,
    },
    /// It was injected often and never used.
    Mute {
        /// The number of sessions that were shown it.
        shown: u64,
    },
    /// It may be outdated.
    Look(Vec<StaleReason>),
}

/// Returns suggestions about the notes in force of these projects, of all if none is given: first those
/// about use, newest first, then notes that may be outdated.
pub fn suggestions(
    index: &Index,
    journal: Option<&Journal>,
    projects: &[String],
    now: DateTime<Utc>,
) -> Result<Vec<(Entry, Suggestion)>, Error> {
    let filter = Filter {
        projects: projects.to_vec(),
        state: Some(State::Active),
        ..Filter::default()
    };
    let entries = index.list(&filter, usize::MAX)?;
    let usage = index.usage_of(entries.iter().map(Entry::id))?;
    let mut found = Vec::new();
    for entry in &entries {
        let Some(months) = usage.get(&entry.id()) else {
            continue;
        };
        let sum = |count: fn(&_) -> u64| total(months, count);
        let sessions = sum(|counts| counts.sessions);
        if sessions >= OFTEN && !entry.pinned {
            found.push((entry.clone(), Suggestion::Promote { sessions }));
            continue;
        }
        // Each session had at least one injection.
        let shown = sum(|counts| counts.shown);
        if is_benched(months, entry) && may_suggest_muting(shown, shown) {
            found.push((entry.clone(), Suggestion::Mute { shown }));
        }
    }
    let search = StaleSearch {
        projects,
        max_old: usize::MAX,
    };
    let stale = stale::find(index, journal, &search, now)?.into_iter();
    found.extend(stale.map(|(entry, reasons)| (entry, Suggestion::Look(reasons))));
    Ok(found)
}

fn total<T>(months: &ByMonth<T>, count: fn(&T) -> u64) -> u64 {
    let counts = months.iter().map(|(_, counts)| count(counts));
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use anamnesis_note::{
        id::NoteId,
        note::{Note, NoteType, timestamp},
    };
    use anamnesis_session::event::{Record, RecordedEvent, Surroundings};
    use anamnesis_store::{
        fs::home::Home,
        journal::{Audience, ShownNote, Weight},
        notes::Notes,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    #[test]
    fn often_used_and_never_used_notes_are_suggested() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let notes = Notes::new(home.clone(), PATIENCE);
        let journal = Journal::open(&home, PATIENCE).unwrap();
        let id = |name: &str| NoteId::made_of(name);
        // How often each note was shown and used.
        let all = [
            ("often", 5, 5),
            ("seldom", 9, 4),
            ("pinned", 5, 5),
            ("in vain", 10, 0),
            ("hardly given", 9, 0),
            ("old", 0, 0),
        ];
        let lock = notes.lock().unwrap();
        for (name, ..) in all {
            let mut note = Note::new(id(name), NoteType::Semantic, now());
            note.title = name.to_owned();
            note.pinned = name == "pinned";
            if name == "old" {
                note.updated_at = timestamp(now() - chrono::TimeDelta::days(9000));
            }
            notes.create(&lock, &note).unwrap();
        }
        drop(lock);
        for session in 0..10 {
            let given = all.iter().filter(|(_, given, _)| *given > session);
            let used = all.iter().filter(|(.., used)| *used > session);
            let session = session.to_string();
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
            let shown = given.map(|(name, ..)| ShownNote {
                note: id(name),
                hash: String::new(),
                level: "body",
                reason: "recent",
                evidence: None,
            });
            let to = Audience {
                session: &session,
                agent: "",
                lane: "start",
            };
            let shown: Vec<ShownNote> = shown.collect();
            journal.was_shown(to, &shown, now()).unwrap();
            let used: Vec<_> = used
                .map(|(name, ..)| (id(name), Weight::Explicit))
                .collect();
            journal.used(&session, "", 1, &used, now()).unwrap();
        }
        let index = Index::in_step(&home, &notes, PATIENCE).unwrap();
        let found = suggestions(&index, Some(&journal), &[], now()).unwrap();
        let found: BTreeMap<String, Suggestion> = found
            .into_iter()
            .map(|(entry, suggestion)| (entry.title, suggestion))
            .collect();
        let expected = [
            ("in vain", Suggestion::Mute { shown: 10 }),
            ("often", Suggestion::Promote { sessions: 5 }),
            ("old", Suggestion::Look(vec![StaleReason::Old])),
        ];
        let expected = expected.map(|(name, suggestion)| (name.to_owned(), suggestion));
        assert_eq!(found, BTreeMap::from(expected));
    }
}
