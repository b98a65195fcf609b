//! Which notes give up a value that an earlier note states, found when either is added.
//!
//! A note that gives a value up is listed under a term of the value, so that an earlier note that
//! arrives later finds it. The pairs are stored whatever their dates: a reader knows the time, and a
//! date ahead of it counts as now.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Kind, Note, NoteType, State, parse_timestamp, timestamp},
};
use anamnesis_text::{
    correction::{GivenUp, NoteText, Statements},
    terms::terms,
};
use chrono::{DateTime, Utc};
use rusqlite::{Connection, params};

use super::{
    Error, Index, Postings, Tables,
    entry::{Parsed, in_force},
};
use crate::sqlite::{Compressed, Queries};

const SCHEMA: &str = "
CREATE TABLE given_up (
  number INTEGER NOT NULL, term TEXT NOT NULL, PRIMARY KEY (number, term)
) STRICT, WITHOUT ROWID;
CREATE TABLE correction (
  earlier INTEGER NOT NULL, later INTEGER NOT NULL,
  was TEXT NOT NULL, old TEXT NOT NULL, new TEXT, says TEXT NOT NULL,
  PRIMARY KEY (earlier, later)
) STRICT, WITHOUT ROWID;
CREATE INDEX correction_later ON correction (later);
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert,
    remove: &[
        "DELETE FROM given_up WHERE number = ?",
        "DELETE FROM correction WHERE earlier = ?",
        "DELETE FROM correction WHERE later = ?",
    ],
};

/// With how many of the newest notes that have its term a given up value is compared, and how many
/// are looked at for that.
const MAX_COMPARED: usize = 200;
const MAX_LOOKED_AT: usize = 2_000;

/// How many later notes are compared with an earlier one at once, which bounds the memory.
const MAX_AT_ONCE: usize = 64;

/// The maximum number of corrections of a note that are returned, and the length of a chain.
const MAX_RETURNED: usize = 2;
const MAX_STEPS: usize = 4;

macro_rules! pairs {
    ($condition:literal) => {
        concat!(
            "SELECT note.id AS later, older.id AS earlier, was, old, new, says,
               note.updated_at AS until, older.updated_at AS since
             FROM correction JOIN note ON note.number = correction.later
               JOIN note AS older ON older.number = correction.earlier
             WHERE ",
            $condition,
            " AND ",
            in_force!(),
            " ORDER BY note.updated_at DESC, note.id DESC"
        )
    };
}

/// A later note that gives up a value that an earlier note states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteCorrection {
    /// The later note; of a chain, the last one.
    pub later: NoteId,
    /// The earlier note.
    pub earlier: NoteId,
    /// The value that the earlier note states.
    pub was: String,
    /// The sentence of the later note.
    pub says: String,
    /// Until when the value held: when the later note was written.
    pub until: DateTime<Utc>,
    old: String,
    new: Option<String>,
}

/// How a note is read for corrections; `None` if it gives nothing up.
fn correcting(note_type: NoteType, kind: Kind, is_by_agent: bool) -> Option<NoteText> {
    match kind {
        Kind::Fact | Kind::Preference | Kind::Skill if note_type != NoteType::Episodic => {
            Some(NoteText::Written)
        }
        // An agent may not speak for the person.
        _ if note_type == NoteType::Episodic && !is_by_agent => Some(NoteText::Session),
        _ => None,
    }
}

fn insert(connection: &Connection, number: i64, note: &Note) -> rusqlite::Result<()> {
    let text = correcting(note.note_type, note.kind(), note.is_by_agent());
    let Some(text) = text.filter(|_| note.state != State::Forgotten) else {
        return Ok(());
    };
    let given_up = Statements::parse(&note.title, &note.body, text).given_up();
    for value in given_up {
        connection.run(
            "INSERT OR IGNORE INTO given_up VALUES (?, ?)",
            params![number, value.term],
        )?;
    }
    Ok(())
}

const COMPARED_NOTE: &str = "SELECT project, title, body, type, kind
  FROM note JOIN note_text USING (number) WHERE number = ?";

/// A note's text as it is compared.
struct ComparedNote {
    project: String,
    title: String,
    body: String,
    note_type: NoteType,
    kind: Kind,
}

impl ComparedNote {
    fn read(connection: &Connection, number: i64) -> rusqlite::Result<Option<Self>> {
        connection.one(COMPARED_NOTE, [number], |row| {
            Ok(Self {
                project: row.get("project")?,
                title: row.get("title")?,
                body: row.get::<_, Compressed<_>>("body")?.0,
                note_type: row.get::<_, Parsed<_>>("type")?.0,
                kind: row.get::<_, Parsed<_>>("kind")?.0,
            })
        })
    }

    fn statements(&self) -> Statements<'_> {
        let text = match self.note_type {
            NoteType::Episodic => NoteText::Session,
            _ => NoteText::Written,
        };
        Statements::parse(&self.title, &self.body, text)
    }

    /// Returns whether this note may correct an earlier one. A session's note only corrects those of
    /// sessions.
    fn may_correct(&self, earlier: &Self) -> bool {
        let is_session = |note: &Self| note.note_type == NoteType::Episodic;
        earlier.kind != Kind::Task
            && (!is_session(self) || is_session(earlier))
            && (self.project == earlier.project || self.project == GLOBAL)
    }
}

/// Finds the corrections by and of notes that were just added, whose postings are written.
pub(super) fn relate(connection: &Connection, added: &[i64]) -> Result<(), Error> {
    let added: BTreeSet<i64> = added.iter().copied().collect();
    let given_up: Vec<(i64, String)> =
        connection.tuples("SELECT number, term FROM given_up", [])?;
    let mut pairs: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    let mut known: HashMap<&str, Vec<i64>> = HashMap::new();
    for (later, term) in &given_up {
        if added.contains(later) {
            let numbers = Postings::of_term(connection, term)?.numbers()?;
            let newest = numbers.into_iter().rev().take(MAX_LOOKED_AT).map(i64::from);
            pairs.entry(*later).or_default().extend(newest);
        } else {
            known.entry(term).or_default().push(*later);
        }
    }
    for number in added.iter().filter(|_| !known.is_empty()) {
        let Some(note) = ComparedNote::read(connection, *number)? else {
            continue;
        };
        let words = terms(&note.title).into_iter().chain(terms(&note.body));
        for later in words.filter_map(|term| known.get(term.as_str())).flatten() {
            pairs.entry(*later).or_default().insert(*number);
        }
    }
    // Copies of a text give up the same, and are compared with the same notes.
    let mut groups: BTreeMap<BTreeSet<i64>, Vec<i64>> = BTreeMap::new();
    for (later, earlier) in pairs {
        groups.entry(earlier).or_default().push(later);
    }
    for (earlier, laters) in groups {
        for laters in laters.chunks(MAX_AT_ONCE) {
            relate_notes(connection, laters, &earlier)?;
        }
    }
    Ok(())
}

/// A later note that is compared with earlier ones.
struct LaterNote<'a> {
    number: i64,
    note: &'a ComparedNote,
    statements: Statements<'a>,
    given_up: Vec<GivenUp>,
    compared: usize,
}

/// Stores the corrections of these notes by later ones. Each is read once for all of them.
fn relate_notes(
    connection: &Connection,
    laters: &[i64],
    earlier: &BTreeSet<i64>,
) -> Result<(), Error> {
    let mut notes = Vec::new();
    for number in laters {
        notes.extend(ComparedNote::read(connection, *number)?.map(|note| (*number, note)));
    }
    let laters = notes.iter().map(|(number, note)| {
        let statements = note.statements();
        LaterNote {
            number: *number,
            note,
            given_up: statements.given_up(),
            statements,
            compared: 0,
        }
    });
    let mut laters: Vec<LaterNote<'_>> = laters.collect();
    for number in earlier.iter().rev() {
        laters.retain(|later| later.compared < MAX_COMPARED);
        if laters.is_empty() {
            break;
        }
        let Some(note) = ComparedNote::read(connection, *number)? else {
            continue;
        };
        let own = note.statements();
        let laters = laters.iter_mut().filter(|later| later.number != *number);
        for later in laters.filter(|later| later.note.may_correct(&note)) {
            later.compared += 1;
            let mut found = later.given_up.iter();
            let found = found.find_map(|value| own.corrected_by(&later.statements, value));
            if let Some(it) = found {
                connection.run(
                    "INSERT OR REPLACE INTO correction VALUES (?, ?, ?, ?, ?, ?)",
                    params![number, later.number, it.was, it.old, it.new, it.says],
                )?;
            }
        }
    }
    Ok(())
}

impl Index {
    /// Returns the later notes that give up what a note states, the newest first; of a chain, its
    /// last note. Nothing is returned if somebody verified the note since.
    pub fn corrections_of(
        &self,
        id: NoteId,
        now: DateTime<Utc>,
    ) -> Result<Vec<NoteCorrection>, Error> {
        let mut found: Vec<NoteCorrection> = Vec::new();
        for first in self.pairs(pairs!("older.id = ?"), id, now)? {
            let mut last = first.clone();
            for _ in 0..MAX_STEPS {
                let next = self.pairs(pairs!("older.id = ?"), last.later, now)?;
                let is_next = |next: &NoteCorrection| Some(&next.old) == last.new.as_ref();
                let Some(next) = next.into_iter().find(is_next) else {
                    break;
                };
                last = NoteCorrection {
                    earlier: id,
                    was: first.was.clone(),
                    until: first.until,
                    old: first.old.clone(),
                    ..next
                };
            }
            // "Back to 8080" leaves an earlier 8080 right.
            let is_back = last.new.as_ref() == Some(&first.old);
            if !is_back && last.later != id && found.iter().all(|it| it.later != last.later) {
                found.push(last);
            }
        }
        found.truncate(MAX_RETURNED);
        if !found.is_empty() {
            let verified = self.get(id)?.and_then(|entry| entry.verified);
            found.retain(|correction| verified.is_none_or(|at| at <= correction.until));
        }
        Ok(found)
    }

    /// Returns what a note gives up of earlier notes, the newest first.
    pub fn corrected_by(
        &self,
        id: NoteId,
        now: DateTime<Utc>,
    ) -> Result<Vec<NoteCorrection>, Error> {
        self.pairs(pairs!("note.id = ?"), id, now)
    }

    fn pairs(
        &self,
        sql: &str,
        id: NoteId,
        now: DateTime<Utc>,
    ) -> Result<Vec<NoteCorrection>, Error> {
        let ahead = timestamp(now);
        let pairs: Vec<Option<_>> = self.rows(sql, [id.to_string()], |row| {
            let (until, since): (String, String) = (row.get("until")?, row.get("since")?);
            let is_later = until >= since || since > ahead;
            Ok(is_later.then_some(NoteCorrection {
                later: row.get::<_, Parsed<_>>("later")?.0,
                earlier: row.get::<_, Parsed<_>>("earlier")?.0,
                was: row.get("was")?,
                says: row.get("says")?,
                until: parse_timestamp(&until).unwrap_or_default().min(now),
                old: row.get("old")?,
                new: row.get("new")?,
            }))
        })?;
        Ok(pairs.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::NoteType;
    use chrono::TimeDelta;
    use rusqlite::StatementStatus;

    use super::*;
    use crate::{
        index::tests::{Fixture, TIMEOUT},
        notes::Stored,
    };

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    /// Adds a fact, so many days ago.
    fn fact(fixture: &Fixture, title: &str, days: i64) -> Stored {
        fixture.add(title, |note| {
            note.project = "p".to_owned();
            note.body.clone_from(&note.title);
            note.updated_at = timestamp(now() - TimeDelta::days(days));
        })
    }

    fn session(fixture: &Fixture, body: &str, days: i64) -> Stored {
        fixture.add("Look at the gateway", |note| {
            note.note_type = NoteType::Episodic;
            note.project = "p".to_owned();
            note.session = Some(note.id.to_string());
            note.body = body.to_owned();
            note.updated_at = timestamp(now() - TimeDelta::days(days));
        })
    }

    fn corrected(index: &Index, note: &Stored) -> Vec<(NoteId, String)> {
        let found = index.corrections_of(note.path.id, now()).unwrap();
        found.into_iter().map(|it| (it.later, it.was)).collect()
    }

    #[test]
    fn corrections_are_stored_whichever_note_arrives_first() {
        let fixture = Fixture::new();
        let later = fact(&fixture, "The gateway no longer listens on 8080.", 2);
        let index = fixture.refreshed();
        drop(index);
        let old = fact(&fixture, "The gateway listens on port 8080.", 9);
        let outcome = "**Outcome:** The gateway listens on port 8080.";
        let told = session(&fixture, outcome, 8);
        fact(&fixture, "The admin listens on port 8080.", 9);
        let updated = fixture.refreshed();
        let expected = [(later.path.id, "8080".to_owned())];
        assert_eq!(corrected(&updated, &old), expected);
        assert_eq!(corrected(&updated, &told), expected);
        assert_eq!(updated.corrected_by(later.path.id, now()).unwrap().len(), 2);
        drop(updated);
        let rebuilt = Index::rebuild(&fixture.home, &fixture.notes, TIMEOUT).unwrap();
        assert_eq!(corrected(&rebuilt, &old), expected);
        drop(rebuilt);
        std::fs::remove_file(later.path.absolute(&fixture.home)).unwrap();
        assert_eq!(corrected(&fixture.refreshed(), &old), []);
    }

    #[test]
    fn copies_of_a_correction_read_each_earlier_note_once() {
        let fixture = Fixture::new();
        let mut index = fixture.writer();
        for number in 0..40 {
            let title = format!("The gateway no longer listens on 8080, host {number}.");
            fact(&fixture, &title, 2);
            fact(&fixture, "The gateway listens on port 8080.", 9);
        }
        index.refresh(&fixture.notes).unwrap();
        let pairs: u32 = index.value("SELECT count(*) FROM correction", []).unwrap();
        assert_eq!(pairs, 40 * 40);
        let statement = index.connection.prepare_cached(COMPARED_NOTE).unwrap();
        let read = statement.get_status(StatementStatus::Run);
        assert!((1..=200).contains(&read), "{read} reads of 80 notes");
    }

    #[test]
    fn a_sessions_note_corrects_only_sessions() {
        let fixture = Fixture::new();
        let fact = fact(&fixture, "The gateway listens on port 8080.", 9);
        let told = session(&fixture, "**Outcome:** The gateway listens on 8080.", 8);
        let outcome = "**Outcome:** The gateway no longer listens on 8080.";
        session(&fixture, outcome, 3);
        let index = fixture.refreshed();
        assert_eq!(corrected(&index, &told), []);
        drop(index);
        let said = session(&fixture, &outcome.replace("Outcome", "Said"), 2);
        let index = fixture.refreshed();
        assert_eq!(corrected(&index, &fact), []);
        assert_eq!(
            corrected(&index, &told),
            [(said.path.id, "8080".to_owned())]
        );
    }

    #[test]
    fn a_chain_leads_to_its_last_note_and_back_to_nothing() {
        let fixture = Fixture::new();
        let first = fact(&fixture, "The gateway listens on port 8080.", 9);
        let second = "The gateway no longer listens on 8080 but on 9090.";
        let second = fact(&fixture, second, 7);
        let third = "The gateway no longer listens on 9090 but on 7070.";
        let third = fact(&fixture, third, 5);
        let index = fixture.refreshed();
        assert_eq!(
            corrected(&index, &first),
            [(third.path.id, "8080".to_owned())]
        );
        assert_eq!(
            corrected(&index, &second),
            [(third.path.id, "9090".to_owned())]
        );
        drop(index);
        fact(
            &fixture,
            "The gateway no longer listens on 7070 but on 8080.",
            3,
        );
        assert_eq!(corrected(&fixture.refreshed(), &first), []);
    }

    #[test]
    fn a_note_dated_ahead_counts_as_now() {
        let fixture = Fixture::new();
        let ahead = fact(&fixture, "The gateway listens on port 8080.", -400);
        let later = fact(&fixture, "The gateway no longer listens on 8080.", 0);
        let after = fact(&fixture, "The gateway is on port 8080.", -1);
        let index = fixture.refreshed();
        assert_eq!(
            corrected(&index, &ahead),
            [(later.path.id, "8080".to_owned())]
        );
        let tomorrow = now() + TimeDelta::days(2);
        assert_eq!(index.corrections_of(after.path.id, tomorrow).unwrap(), []);
    }
}
