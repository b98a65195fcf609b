//! Selects the files that a refresh checks. See `docs/decisions/0006-index.md`.

use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use super::{
    Error,
    refresh::{Difference, KnownProblems, NO_STAMP, SAME_ID},
};
use crate::{
    notes::{FOLDERS, NotePath, Notes},
    sqlite,
};

/// The largest store of which each refresh checks every file.
const CHECKED: usize = 20_000;

/// How long a look at every file is good for.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder that changed this short a time before it was listed is listed again: a later change may
/// have the same time, because file systems use the time of the last timer interrupt.
const TICK: Duration = Duration::from_millis(20);

/// The key in `meta`.
const KEY: &str = "look";

/// The files that a refresh checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Every file.
    Everything,
    /// Every file once a day, otherwise as [`Look::default`].
    Daily,
    /// Every file of a store with at most so many notes, which shows edits in place; of a larger one,
    /// the files of folders that changed.
    Changed {
        /// The number of notes.
        up_to: usize,
    },
}

impl Default for Look {
    fn default() -> Self {
        Self::Changed { up_to: CHECKED }
    }
}

/// What the earlier refreshes looked at, a row of `meta`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LookState {
    /// The folder times, another row of `meta`; empty if they are not known.
    #[serde(skip)]
    times: String,
    /// Folders that have to be listed again although their time is known.
    unsettled: [bool; 6],
    /// When everything was looked at, seconds since 1970.
    everything_at: u64,
    #[serde(skip)]
    stored: String,
}

/// What a refresh looks at.
pub(super) struct LookPlan {
    pub(super) is_everything: bool,
    /// The folders to list, in the order of [`FOLDERS`].
    pub(super) folders: [bool; 6],
}

impl LookPlan {
    /// Returns whether the refresh lists the folder of a file.
    fn lists(&self, path: &str) -> bool {
        let folder = FOLDERS.iter().zip(self.folders);
        folder.into_iter().any(|(folder, is_listed)| {
            is_listed
                && path
                    .strip_prefix(folder)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

impl LookState {
    pub(super) fn read(connection: &Connection) -> Result<Self, Error> {
        let stored = sqlite::meta(connection, KEY)?.unwrap_or_default();
        Ok(Self {
            times: sqlite::meta(connection, "folder_times")?.unwrap_or_default(),
            stored: stored.clone(),
            ..serde_json::from_str(&stored).unwrap_or_default()
        })
    }

    pub(super) fn write(&self, connection: &Connection) -> Result<(), Error> {
        let text = serde_json::to_string(self).unwrap_or_default();
        if text != self.stored {
            connection.execute(
                "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
                [KEY, &text],
            )?;
        }
        Ok(())
    }

    /// Decides what to look at.
    pub(super) fn plan(
        &self,
        look: Look,
        times: [i64; 6],
        notes: usize,
        now: SystemTime,
    ) -> LookPlan {
        let is_everything = match look {
            Look::Everything => true,
            Look::Daily => notes <= CHECKED || self.is_due(now),
            Look::Changed { up_to } => notes <= up_to,
        };
        let known: Option<[i64; 6]> = serde_json::from_str(&self.times).ok();
        let mut folders = [true; 6];
        if let Some(known) = known.filter(|_| !is_everything) {
            for (place, is_listed) in folders.iter_mut().enumerate() {
                *is_listed = known[place] != times[place] || self.unsettled[place];
            }
        }
        LookPlan {
            is_everything,
            folders,
        }
    }

    fn is_due(&self, now: SystemTime) -> bool {
        seconds(now).abs_diff(self.everything_at) >= INTERVAL.as_secs()
    }

    /// Remembers a look that began at `now`.
    pub(super) fn looked(&mut self, plan: &LookPlan, times: [i64; 6], now: SystemTime) {
        let settled = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let settled = settled.saturating_sub(TICK).as_nanos();
        for (place, time) in times.iter().enumerate() {
            let is_unsettled = u128::try_from(*time).is_ok_and(|time| time > settled);
            if plan.is_everything {
                // A small store is always looked at completely, so a write that only clears this is
                // left out: a command that finds nothing new does not change the index.
                self.unsettled[place] |= is_unsettled;
            } else if plan.folders[place] {
                self.unsettled[place] = is_unsettled;
            }
        }
        // A small store is looked at by each command, which need not write this each time.
        if plan.is_everything && self.everything_at.abs_diff(seconds(now)) > 600 {
            self.everything_at = seconds(now);
        }
    }
}

impl Difference {
    /// Returns whether the listed folders do not show which of several files with one id is indexed.
    pub(super) fn needs_everything(
        &self,
        connection: &Connection,
        plan: &LookPlan,
        known_problems: &KnownProblems,
    ) -> Result<bool, Error> {
        if known_problems
            .values()
            .any(|(reason, _)| reason.starts_with(SAME_ID))
        {
            return Ok(true);
        }
        let mut indexed = connection.prepare_cached("SELECT folder FROM note WHERE id = ?")?;
        for path in &self.unread {
            let other: Option<u8> = indexed
                .query_row([path.id.to_string()], |row| row.get(0))
                .optional()?;
            if other.is_some_and(|other| plan.folders.get(usize::from(other)) != Some(&true)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds files of the other folders that could not be read and were edited since. Of the known
    /// problems, only those that are checked again are kept. Returns the number of files.
    pub(super) fn add_repaired(
        &mut self,
        notes: &Notes,
        plan: &LookPlan,
        known_problems: &mut KnownProblems,
    ) -> usize {
        let mut checked = 0;
        known_problems.retain(|path, (_, known)| {
            if plan.lists(path) {
                return true;
            }
            let Ok(path) = path.parse::<NotePath>() else {
                return false;
            };
            checked += 1;
            let stamp = notes.stamp(path);
            let is_same = *known == NO_STAMP || stamp == Some(*known);
            if !is_same && stamp.is_some() {
                self.unread.push(path);
            }
            !is_same
        });
        checked
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::{fs, io, path::Path};

    use anamnesis_note::note::{GLOBAL, NoteType};

    use super::*;
    use crate::{
        index::{Filter, Index, Refreshed, tests::Fixture},
        notes::Stored,
    };

    const FEW: Look = Look::Changed { up_to: 2 };

    /// Opens a folder, to set its time.
    #[cfg(unix)]
    fn open_folder(folder: &Path) -> io::Result<fs::File> {
        fs::File::open(folder)
    }

    /// Windows opens a folder only with `FILE_FLAG_BACKUP_SEMANTICS`, and sets its time only with
    /// `FILE_WRITE_ATTRIBUTES`.
    #[cfg(windows)]
    fn open_folder(folder: &Path) -> io::Result<fs::File> {
        use std::os::windows::fs::OpenOptionsExt;

        fs::OpenOptions::new()
            .access_mode(0x0100)
            .custom_flags(0x0200_0000)
            .open(folder)
    }

    impl Fixture {
        /// A store that is larger than [`FEW`], with folders that changed long ago.
        fn large() -> (Self, Vec<Stored>) {
            let fixture = Self::new();
            let notes = (0..6).map(|number| {
                fixture.add(&format!("note {number}"), |note| {
                    note.note_type = NoteType::ALL[number % 3];
                })
            });
            let notes = notes.collect();
            fixture.settle();
            drop(fixture.refreshed());
            (fixture, notes)
        }

        /// Sets the times of all folders to distinct ones in the past.
        fn settle(&self) {
            for (folder, hours) in FOLDERS.iter().zip(1..) {
                let past = SystemTime::now() - Duration::from_secs(3600 * hours);
                let folder = self.home.root().join(folder);
                if folder.is_dir() {
                    open_folder(&folder).unwrap().set_modified(past).unwrap();
                }
            }
        }

        fn look(&self, look: Look) -> Refreshed {
            let mut index = self.writer();
            index.refresh_if_near(&self.notes, look).unwrap().unwrap()
        }

        fn titles(&self) -> Vec<String> {
            let index = Index::open(&self.home).unwrap();
            let mut entries = index.list(&Filter::default(), usize::MAX).unwrap();
            entries.sort_by_key(|entry| entry.path.id);
            entries.into_iter().map(|entry| entry.title).collect()
        }

        /// Replaces a title as an editor does that writes in place, which changes no folder.
        fn edit_in_place(&self, stored: &Stored, title: &str) {
            let path = stored.path.absolute(&self.home);
            let text = fs::read_to_string(&path).unwrap();
            let old = stored.note().title;
            fs::write(&path, text.replace(&old, title)).unwrap();
        }
    }

    #[test]
    fn a_large_store_is_not_looked_at_completely_by_each_refresh() {
        let (fixture, _) = Fixture::large();
        assert_eq!(fixture.look(FEW).checked, 0);
        assert_eq!(fixture.look(Look::default()).checked, 6);
        assert_eq!(fixture.look(Look::Everything).checked, 6);
    }

    #[test]
    fn a_new_replaced_or_removed_file_is_seen_by_its_folder() {
        let (fixture, notes) = Fixture::large();
        let added = fixture.add("added", |_| {});
        // The folder has two notes and the new one.
        let seen = fixture.look(Look::Changed { up_to: 0 });
        assert_eq!((seen.checked, seen.read, seen.total), (3, 1, 7));
        fixture.settle();
        fixture.look(FEW);
        let lock = fixture.notes.lock().unwrap();
        let renamed = |note: &mut anamnesis_note::note::Note| note.title = "renamed".to_owned();
        fixture.notes.update(&lock, notes[0].path, renamed).unwrap();
        fs::remove_file(added.path.absolute(&fixture.home)).unwrap();
        let seen = fixture.look(Look::Changed { up_to: 0 });
        assert_eq!((seen.read, seen.removed, seen.total), (1, 1, 6));
        assert!(fixture.titles().contains(&"renamed".to_owned()));
    }

    #[test]
    fn an_edit_in_place_is_seen_by_the_next_look_at_every_file() {
        let (fixture, notes) = Fixture::large();
        fixture.edit_in_place(&notes[4], "edited in place");
        assert_eq!(fixture.look(FEW).read, 0);
        assert_eq!(fixture.look(Look::default()).read, 1);
        assert!(fixture.titles().contains(&"edited in place".to_owned()));
    }

    #[test]
    fn a_note_that_is_shown_is_read_again_if_it_was_edited_in_place() {
        let (fixture, notes) = Fixture::large();
        fixture.edit_in_place(&notes[3], "edited in place");
        let mut index = fixture.writer();
        let entries = index.list(&Filter::default(), 10).unwrap();
        assert!(index.record_edited(&fixture.notes, &entries).unwrap());
        let entries = index.list(&Filter::default(), 10).unwrap();
        assert!(entries.iter().any(|entry| entry.title == "edited in place"));
        assert!(!index.record_edited(&fixture.notes, &entries).unwrap());
        // A file that is no note any more is reported by the next refresh.
        fs::write(notes[4].path.absolute(&fixture.home), "no note").unwrap();
        assert!(index.record_edited(&fixture.notes, &entries).unwrap());
        drop(index);
        fixture.look(Look::Changed { up_to: 0 });
        let problems = Index::open(&fixture.home).unwrap().problems().unwrap();
        assert_eq!(problems[0].path, notes[4].path.to_string());
        // Repaired in place, it is a note again.
        let text = notes[4].note().render();
        fs::write(notes[4].path.absolute(&fixture.home), text).unwrap();
        fixture.settle();
        fixture.look(Look::Changed { up_to: 0 });
        fixture.look(Look::Changed { up_to: 0 });
        assert_eq!(fixture.titles().len(), 6);
        assert!(
            Index::open(&fixture.home)
                .unwrap()
                .problems()
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_folder_that_changed_just_before_it_was_listed_is_listed_again() {
        let (fixture, notes) = Fixture::large();
        let folder = notes[1].path.absolute(&fixture.home);
        let folder = open_folder(folder.parent().unwrap()).unwrap();
        // Later than the look, as the time of a file server may be.
        folder
            .set_modified(SystemTime::now() + Duration::from_secs(60))
            .unwrap();
        for _ in 0..3 {
            assert_eq!(fixture.look(FEW).checked, 2);
        }
        fixture.settle();
        fixture.look(Look::Changed { up_to: 0 });
        assert_eq!(fixture.look(Look::Changed { up_to: 0 }).checked, 0);
    }

    #[test]
    fn a_second_file_with_an_id_makes_a_refresh_look_at_everything() {
        let (fixture, notes) = Fixture::large();
        let other = NotePath {
            folder: NoteType::ALL[1],
            ..notes[0].path
        };
        let (first, second) = (
            notes[0].path.absolute(&fixture.home),
            other.absolute(&fixture.home),
        );
        fs::copy(&first, &second).unwrap();
        fixture.look(FEW);
        let problems = || Index::open(&fixture.home).unwrap().problems().unwrap();
        assert_eq!(problems().len(), 1);
        fs::remove_file(&first).unwrap();
        assert_eq!(fixture.look(FEW).total, 6);
        assert_eq!(problems(), []);
        assert_eq!(fixture.titles().len(), 6);
    }

    #[test]
    fn everything_is_looked_at_once_a_day() {
        let (fixture, _) = Fixture::large();
        let state = LookState::read(&fixture.writer().connection).unwrap();
        let now = SystemTime::now();
        let plan = |now| {
            state
                .plan(Look::Daily, [0; 6], 1_000_000, now)
                .is_everything
        };
        assert!(!plan(now));
        assert!(plan(now + INTERVAL));
        // A clock that was wrong does not put it off.
        assert!(plan(now - 2 * INTERVAL));
    }

    #[test]
    fn the_counts_are_those_of_the_notes_after_any_change() {
        let (fixture, notes) = Fixture::large();
        let lock = fixture.notes.lock().unwrap();
        let change = |note: &mut anamnesis_note::note::Note| note.project = GLOBAL.to_owned();
        fixture.notes.update(&lock, notes[0].path, change).unwrap();
        let now = chrono::DateTime::UNIX_EPOCH;
        fixture.notes.forget(&lock, notes[1].path, now).unwrap();
        fs::remove_file(notes[2].path.absolute(&fixture.home)).unwrap();
        fixture.look(FEW);
        let index = Index::open(&fixture.home).unwrap();
        let counts = index.counts().unwrap();
        let kinds = index.count_kinds(&[GLOBAL.to_owned()]).unwrap();
        assert_eq!((counts.total, index.note_count().unwrap()), (4, 5));
        assert_eq!(counts.by_type.values().sum::<usize>(), 4);
        drop((index, lock));
        let rebuilt =
            Index::rebuild(&fixture.home, &fixture.notes, Duration::from_secs(5)).unwrap();
        assert_eq!(rebuilt.counts().unwrap(), counts);
        assert_eq!(rebuilt.count_kinds(&[GLOBAL.to_owned()]).unwrap(), kinds);
    }
}
