//! Reads the usage logs of earlier versions, once: `memory/.usage/<machine>/<YYYY-MM>.jsonl`, and
//! `.fold.json` with the sums of a month.
//!
//! Aliases and purge marks go into the synced files, ratings and verifications into the notes, counts
//! into the journal. The logs are then moved to the quarantine.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use anamnesis_note::{
    id::NoteId,
    note::{Rating, Scope, State, timestamp},
    synced_lines::{Alias, AliasLog, PurgeMark},
};
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;
use ulid::Ulid;

use crate::{
    fs::{
        file,
        home::{self, Home},
    },
    journal::{FORMER_USAGE, Journal, NoteCounts},
    notes::Notes,
    synced_lines::{self, Error},
};

/// The maximum size of a file, in bytes.
const MAX_LENGTH: usize = 16 * 1024 * 1024;

/// Reads the usage logs, if there are any. An error leaves them where they are.
pub fn adopt(home: &Home, notes: &Notes, journal: &Journal) -> Result<(), Error> {
    let folder = home.tree(Scope::Portable).join(".usage");
    if !home::is_real_folder(&folder) {
        return Ok(());
    }
    let mut former = FormerUsage::default();
    let refused = |source| Error::Io {
        path: home.relative(&folder),
        source,
    };
    let (_, files) = file::below(&folder).unwrap_or_default();
    for path in files {
        let text = |path: &Path| {
            let (bytes, ..) = file::read_head(path, MAX_LENGTH).ok()?;
            String::from_utf8(bytes).ok()
        };
        let sums = path.with_extension("fold.json");
        if path.extension().is_some_and(|ending| ending == "json") || !sums.exists() {
            former.lines(&text(&path).unwrap_or_default());
        }
    }
    former.write(home, notes, journal)?;
    home::ensure_folder(&home.quarantine())?;
    let name = format!("usage-{}", Ulid::generate());
    fs::rename(&folder, home.quarantine().join(name)).map_err(refused)
}

/// The use of a note in a session: whether it was injected, and its turns with their certainty.
type SessionUse = (bool, BTreeMap<u64, bool>);

/// The contents of the usage logs.
#[derive(Default)]
struct FormerUsage {
    aliases: String,
    marks: BTreeSet<PurgeMark>,
    verified: BTreeMap<NoteId, DateTime<Utc>>,
    ratings: BTreeMap<NoteId, (DateTime<Utc>, Rating)>,
    /// By month, session and note.
    sessions: BTreeMap<(i64, String, NoteId), SessionUse>,
    counts: BTreeMap<(String, i64), NoteCounts>,
}

impl FormerUsage {
    fn lines(&mut self, text: &str) {
        let values = text.lines().map(serde_json::from_str::<Value>);
        for value in values.flatten() {
            // A line without a valid time or month says nothing.
            let _ = self.line(&value);
        }
    }

    fn line(&mut self, value: &Value) -> Option<()> {
        let at = match value["month"].as_str() {
            Some(month) => middle(month)?,
            None => time(value["t"].as_str()?)?,
        };
        let month = middle(&at.format("%Y-%m").to_string())?.timestamp_millis();
        self.said(value, at);
        self.session(value, month);
        self.sums(value, at, month);
        Some(())
    }

    /// Reads what a person said about projects and notes.
    fn said(&mut self, value: &Value, at: DateTime<Utc>) {
        for (name, holds) in [("alias", true), ("unalias", false)] {
            for item in list(value, name) {
                let key = item[2].as_str().or(value["k"].as_str());
                let said = key
                    .and_then(|key| Ulid::from_string(key).ok())
                    .and_then(|key| i64::try_from(key.timestamp_ms()).ok())
                    .and_then(DateTime::from_timestamp_millis);
                let alias = item[0].as_str().zip(item[1].as_str());
                let alias = alias.and_then(|(key, of)| Alias::new(key, of));
                if let (Some(alias), Some(said)) = (alias, said) {
                    self.aliases += &AliasLog::default().line(&alias, holds, said);
                }
            }
        }
        for (name, is_gone) in [("gone", true), ("masked", false)] {
            let at = at.timestamp_millis();
            let marks = list(value, name).filter_map(id);
            self.marks
                .extend(marks.map(|note| PurgeMark { note, at, is_gone }));
        }
        for note in list(value, "ok").filter_map(id) {
            self.verify(note, at);
        }
        for item in list(value, "fb") {
            let rating = item[1].as_str().and_then(|rating| rating.parse().ok());
            if let (Some(note), Some(rating)) = (id(&item[0]), rating) {
                self.rate(note, at, rating);
            }
        }
    }

    /// Reads what a session was shown and used.
    fn session(&mut self, value: &Value, month: i64) {
        let session = value["s"].as_str().or(value["k"].as_str());
        let key = |note| (month, session.unwrap_or_default().to_owned(), note);
        for note in list(value, "shown").filter_map(id) {
            self.sessions.entry(key(note)).or_default().0 = true;
        }
        for item in list(value, "used") {
            if let Some(note) = id(&item[0]) {
                let turn = item[2].as_u64().unwrap_or(0);
                let uses = &mut self.sessions.entry(key(note)).or_default().1;
                *uses.entry(turn).or_default() |= item[1].as_f64() >= Some(1.0);
            }
        }
    }

    /// Reads the sums of a month.
    fn sums(&mut self, value: &Value, at: DateTime<Utc>, month: i64) {
        for (note, sums) in value["notes"].as_object().into_iter().flatten() {
            let Ok(id) = note.parse::<NoteId>() else {
                continue;
            };
            let number = |name: &str| sums[name].as_u64().unwrap_or(0);
            let said = |name: &str| sums[name].as_str().and_then(time);
            if let Some(at) = said("ok") {
                self.verify(id, at);
            }
            match (number("good"), number("bad")) {
                (0, 0) => {}
                (good, bad) if good >= bad => self.rate(id, at, Rating::Good),
                _ => self.rate(id, at, Rating::Bad),
            }
            let counts = self.counts.entry((id.to_string(), month)).or_default();
            counts.add(&NoteCounts {
                used: number("used"),
                hinted: number("hinted"),
                sessions: number("sessions"),
                shown: number("shown"),
                unused: number("unused"),
                last: said("last").map(|at| at.timestamp_millis()),
            });
        }
    }

    fn verify(&mut self, note: NoteId, at: DateTime<Utc>) {
        let known = self.verified.entry(note).or_insert(at);
        *known = at.max(*known);
    }

    fn rate(&mut self, note: NoteId, at: DateTime<Utc>, rating: Rating) {
        let known = self.ratings.entry(note).or_insert((at, rating));
        *known = (at, rating).max(*known);
    }

    fn write(mut self, home: &Home, notes: &Notes, journal: &Journal) -> Result<(), Error> {
        for ((month, _, note), (is_shown, turns)) in std::mem::take(&mut self.sessions) {
            let used = turns.values().filter(|is_certain| **is_certain).count();
            let is_used = u64::from(!turns.is_empty());
            self.counts
                .entry((note.to_string(), month))
                .or_default()
                .add(&NoteCounts {
                    used: u64::try_from(used).unwrap_or(0),
                    hinted: u64::try_from(turns.len() - used).unwrap_or(0),
                    sessions: is_used,
                    shown: u64::from(is_shown),
                    unused: u64::from(is_shown).saturating_sub(is_used),
                    last: (is_used > 0).then_some(month),
                });
        }
        // The journal has its own rows from its first month on.
        let first = journal.first_month_of_use()?;
        let counts = self.counts.into_iter();
        let counts = counts.filter(|((_, month), _)| first.is_none_or(|first| *month < first));
        let counts: Vec<_> = counts
            .map(|((note, month), counts)| (note, month, counts))
            .collect();
        journal.set_json(FORMER_USAGE, &counts)?;
        let refused = |error: crate::notes::Error| Error::Io {
            path: "memory".to_owned(),
            source: io::Error::other(error),
        };
        let lock = notes.lock().map_err(refused)?;
        synced_lines::append(home, &lock, &home.aliases(), &self.aliases)?;
        let marks: String = self.marks.iter().map(PurgeMark::line).collect();
        synced_lines::append(home, &lock, &home.purged(), &marks)?;
        let said: BTreeSet<NoteId> = self
            .verified
            .keys()
            .chain(self.ratings.keys())
            .copied()
            .collect();
        for id in said {
            let Some(path) = notes.find(id) else { continue };
            let changed = notes.update(&lock, path, |note| {
                if note.state != State::Forgotten {
                    let verified = self.verified.get(&id).map(|at| timestamp(*at));
                    note.verified = note.verified.take().max(verified);
                    note.rating = note
                        .rating
                        .or(self.ratings.get(&id).map(|(_, rating)| *rating));
                }
            });
            // A note that cannot be read stays as it is.
            drop(changed);
        }
        Ok(())
    }
}

/// Returns the items of a list of a line.
fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

fn id(value: &Value) -> Option<NoteId> {
    value.as_str()?.parse().ok()
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc))
}

/// Returns the time that a month's counts have: its fifteenth day.
fn middle(month: &str) -> Option<DateTime<Utc>> {
    let day = NaiveDate::parse_from_str(&format!("{month}-15"), "%Y-%m-%d").ok()?;
    Some(day.and_hms_opt(0, 0, 0)?.and_utc())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anamnesis_note::note::{Note, NoteType};

    use super::*;

    #[test]
    fn usage_logs_of_an_earlier_version_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let notes = Notes::new(home.clone(), Duration::from_secs(10));
        let journal = Journal::open(&home, Duration::from_secs(10)).unwrap();
        let now = time("2026-03-04T10:00:00Z").unwrap();
        let id = NoteId::of_session("1");
        let note = Note::new(id, NoteType::Semantic, now);
        let path = notes.create(&notes.lock().unwrap(), &note).unwrap().path;
        let logs = home.tree(Scope::Portable).join(".usage/laptop-01234567");
        fs::create_dir_all(&logs).unwrap();
        let key = Ulid::from_parts(u64::try_from(now.timestamp_millis()).unwrap(), 1);
        let head = format!("{{\"v\":1,\"k\":\"{key}\",\"t\":\"2026-03-04T10:00:00Z\"");
        let lines = format!(
            "{head},\"s\":\"0123456789ab\",\"shown\":[\"{id}\"],\"used\":[[\"{id}\",1,3]]}}\n\
             {head},\"s\":\"0123456789ab\",\"fb\":[[\"{id}\",\"good\"]],\"ok\":[\"{id}\"]}}\nno line\n\
             {head},\"alias\":[[\"shop\",\"acme/shop\"]],\"gone\":[\"{id}\"]}}\n"
        );
        fs::write(logs.join("2026-03.jsonl"), &lines).unwrap();
        // Lines of a month with sums are in the sums already.
        fs::write(logs.join("2026-01.jsonl"), &lines).unwrap();
        let sums = format!(
            "{{\"v\":1,\"month\":\"2026-01\",\"notes\":{{\"{id}\":{{\"shown\":4,\"unused\":4,\"bad\":2}}}}}}"
        );
        fs::write(logs.join("2026-01.fold.json"), sums).unwrap();

        adopt(&home, &notes, &journal).unwrap();
        let counts = journal.usage_counts().unwrap().into_iter();
        let counts: Vec<_> = counts
            .map(|(_, _, it)| (it.shown, it.used, it.unused))
            .collect();
        assert_eq!(counts, [(4, 0, 4), (1, 1, 0)]);
        let note = notes.read(path).unwrap().note();
        assert_eq!(note.rating, Some(Rating::Good));
        assert_eq!(note.verified, Some(timestamp(now)));
        assert_eq!(synced_lines::aliases(&home).current("shop"), "acme/shop");
        let marks = fs::read_to_string(home.purged()).unwrap();
        assert_eq!(PurgeMark::parse(&marks).len(), 1);
        assert!(!home.tree(Scope::Portable).join(".usage").exists());
        adopt(&home, &notes, &journal).unwrap();
    }
}
