//! Decides whether a refresh has to check the files. See `docs/decisions/0006-index.md`.

use std::time::{Duration, SystemTime};

use rusqlite::Connection;

use super::Error;
use crate::sqlite::Queries;

/// The largest store of which a refresh always checks every file, which shows edits in place.
pub const ALWAYS_CHECKED: usize = 20_000;

/// How long a check of a larger store is good for, in seconds.
const INTERVAL: u64 = 24 * 60 * 60;

/// Files are checked again if a folder changed this short a time before they were listed: a later change
/// may have the same time, because file systems use the time of the last timer interrupt.
const TICK: Duration = Duration::from_millis(20);

/// The keys in `meta` of the folder times, and of the time of the check in seconds since 1970; 0 if
/// the files have to be checked again.
pub(super) const FOLDER_TIMES: &str = "folder_times";
const CHECKED_AT: &str = "checked_at";

/// Returns whether the files were checked a short time ago, and no folder changed since.
pub(super) fn is_recent(
    connection: &Connection,
    times: &str,
    now: SystemTime,
) -> Result<bool, Error> {
    let known = connection.meta(FOLDER_TIMES)?;
    let age = checked_at(connection)?.map(|at| since_1970(now).as_secs().abs_diff(at));
    Ok(known.as_deref() == Some(times) && age.is_some_and(|age| age < INTERVAL))
}

/// Records a check of the files that began at `now`. For a store that is always checked, it is recorded
/// seldom, so that a command that finds nothing new does not change the index.
pub(super) fn record_check(
    connection: &Connection,
    times: [i64; 6],
    is_always: bool,
    now: SystemTime,
) -> Result<(), Error> {
    let settled = since_1970(now).saturating_sub(TICK).as_nanos();
    let is_settled = |time: &i64| u128::try_from(*time).is_ok_and(|time| time <= settled);
    let at = if times.iter().all(is_settled) {
        since_1970(now).as_secs()
    } else {
        0
    };
    let is_news = match checked_at(connection)? {
        None => true,
        Some(0) => !is_always,
        Some(before) => before.abs_diff(at) > 600,
    };
    if is_news {
        connection.set_meta(CHECKED_AT, &at.to_string())?;
    }
    Ok(())
}

fn checked_at(connection: &Connection) -> Result<Option<u64>, Error> {
    let text = connection.meta(CHECKED_AT)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{fs, io, path::Path};

    use anamnesis_note::note::{GLOBAL, NoteType};

    use super::*;
    use crate::{
        index::{Filter, Index, Refreshed, tests::Fixture},
        notes::{NotePath, Stored},
    };

    const FEW: usize = 2;

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
            for (folder, hours) in self.home.note_folders().zip(1..) {
                let past = SystemTime::now() - Duration::from_secs(3600 * hours);
                if folder.is_dir() {
                    open_folder(&folder).unwrap().set_modified(past).unwrap();
                }
            }
        }

        fn look(&self, always: usize) -> Refreshed {
            let mut index = self.writer();
            index.refresh_if_near(&self.notes, always).unwrap().unwrap()
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
    fn a_new_replaced_or_removed_file_is_seen_by_its_folder() {
        let (fixture, notes) = Fixture::large();
        let added = fixture.add("added", |_| {});
        let seen = fixture.look(0);
        assert_eq!((seen.read, seen.total), (1, 7));
        fixture.settle();
        fixture.look(FEW);
        let lock = fixture.notes.lock().unwrap();
        let renamed = |note: &mut anamnesis_note::note::Note| note.title = "renamed".to_owned();
        fixture.notes.update(&lock, notes[0].path, renamed).unwrap();
        fs::remove_file(added.path.absolute(&fixture.home)).unwrap();
        let seen = fixture.look(0);
        assert_eq!((seen.read, seen.removed, seen.total), (1, 1, 6));
        assert!(fixture.titles().contains(&"renamed".to_owned()));
    }

    #[test]
    fn an_edit_in_place_is_seen_by_the_next_look_at_every_file() {
        let (fixture, notes) = Fixture::large();
        fixture.edit_in_place(&notes[4], "edited in place");
        assert_eq!(fixture.look(FEW).read, 0);
        assert_eq!(fixture.look(ALWAYS_CHECKED).read, 1);
        assert!(fixture.titles().contains(&"edited in place".to_owned()));
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
        fixture.look(FEW);
        fixture.edit_in_place(&notes[4], "edited in place");
        assert_eq!(fixture.look(FEW).read, 1);
        fixture.settle();
        fixture.look(FEW);
        fixture.edit_in_place(&notes[3], "edited later");
        assert_eq!(fixture.look(FEW).read, 0);
    }

    #[test]
    fn every_file_is_checked_once_a_day() {
        let (fixture, _) = Fixture::large();
        fixture.look(FEW);
        let connection = fixture.writer().connection;
        let times = connection.meta(FOLDER_TIMES).unwrap().unwrap();
        let is_recent = |now| is_recent(&connection, &times, now).unwrap();
        let now = SystemTime::now();
        let day = Duration::from_secs(INTERVAL);
        assert!(is_recent(now));
        assert!(!is_recent(now + day));
        // A clock that was wrong does not put it off.
        assert!(!is_recent(now - 2 * day));
    }

    #[test]
    fn of_two_files_with_one_id_the_other_is_indexed_when_the_first_is_gone() {
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
