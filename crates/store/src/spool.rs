//! Records that the journal could not take, one file per event, stored later in order.
//!
//! A file has one sanitised record. Its name is a ULID, so names sort by time. The file is deleted
//! after the commit with its record. A record that is stored twice changes nothing, so a kill in
//! between is safe.

use std::{
    fs, io,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use anamnesis_session::event::Record;
use ulid::Ulid;

use crate::fs::{
    file,
    home::{Home, ensure_folder},
};

/// The maximum size of a file, in bytes. A record is far smaller.
const MAX_LENGTH: usize = 4 * 1024 * 1024;

/// The extension of a record's file. Temporary and foreign files have another one.
const ENDING: &str = "json";

/// The pending files and the unreadable ones.
#[derive(Debug)]
pub struct Spool<'a> {
    home: &'a Home,
}

/// A pending record.
#[derive(Debug)]
pub struct Waiting {
    path: PathBuf,
    /// The record; none if the file cannot be read.
    pub record: Option<Record>,
}

impl<'a> Spool<'a> {
    /// Returns the spool of a store.
    pub fn new(home: &'a Home) -> Self {
        Self { home }
    }

    /// Stores a record until the journal can take it.
    pub fn keep(&self, record: &Record) -> io::Result<()> {
        let folder = self.home.spool();
        ensure_folder(&folder).map_err(io::Error::other)?;
        let bytes = serde_json::to_vec(record)?;
        // Uses the current time instead of the record's: the order is that of arrival.
        let path = folder.join(format!("{}.{ENDING}", Ulid::generate()));
        file::write_atomic(&path, &bytes).map(drop)
    }

    /// Returns the first pending files, in order.
    pub fn waiting(&self, limit: usize) -> Vec<Waiting> {
        let mut paths = self.paths();
        paths.truncate(limit);
        paths
            .into_iter()
            .map(|path| Waiting {
                record: file::read_head(&path, MAX_LENGTH)
                    .ok()
                    .and_then(|(bytes, ..)| serde_json::from_slice(&bytes).ok()),
                path,
            })
            .collect()
    }

    /// Returns the number of pending files.
    pub fn len(&self) -> usize {
        self.paths().len()
    }

    /// Tells whether no file is pending.
    pub fn is_empty(&self) -> bool {
        self.paths().is_empty()
    }

    /// Deletes a file whose record is in the journal, and moves an unreadable one to the quarantine.
    pub fn put_away(&self, waiting: &Waiting) -> io::Result<()> {
        let result = if waiting.record.is_some() {
            fs::remove_file(&waiting.path)
        } else {
            let folder = self.home.quarantine();
            ensure_folder(&folder).map_err(io::Error::other)?;
            let name = waiting.path.file_name().unwrap_or_default();
            fs::rename(
                &waiting.path,
                folder.join(format!("spool-{}", name.to_string_lossy())),
            )
        };
        match result {
            // Another process did it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Counts the files of a session; see [`Spool::forget_session`].
    pub fn count_of(&self, session: &str) -> usize {
        self.files_of(session).count()
    }

    /// Deletes the pending and the unreadable files that name a session. Returns how many.
    pub fn forget_session(&self, session: &str) -> io::Result<usize> {
        let mut deleted = 0;
        for path in self.files_of(session) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => deleted += 1,
            }
        }
        Ok(deleted)
    }

    fn files_of(&self, session: &str) -> impl Iterator<Item = PathBuf> {
        // Includes temporary files of killed processes.
        let waiting = fs::read_dir(self.home.spool()).into_iter().flatten();
        let waiting = waiting.flatten().map(|entry| entry.path());
        waiting.chain(self.unreadable()).filter(move |path| {
            let Ok((bytes, ..)) = file::read_head(path, MAX_LENGTH) else {
                return false;
            };
            // An unreadable record may still contain the session's text.
            serde_json::from_slice::<Record>(&bytes).map_or_else(
                |_| String::from_utf8_lossy(&bytes).contains(session),
                |record| record.session == session,
            )
        })
    }

    /// Returns the unreadable files, for `doctor`.
    pub fn unreadable(&self) -> Vec<PathBuf> {
        self.set_aside().map(|(path, _)| path).collect()
    }

    /// Deletes unreadable files older than this. Returns how many.
    pub fn forget_unreadable(&self, age: Duration) -> usize {
        self.set_aside()
            .filter(|(_, modified)| modified.elapsed().is_ok_and(|elapsed| elapsed > age))
            .filter(|(path, _)| fs::remove_file(path).is_ok())
            .count()
    }

    fn set_aside(&self) -> impl Iterator<Item = (PathBuf, SystemTime)> {
        fs::read_dir(self.home.quarantine())
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("spool-"))
            .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.modified().ok()?)))
    }

    fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = fs::read_dir(self.home.spool())
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
            .collect();
        paths.sort();
        paths
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_session::event::{RecordedEvent, Surroundings};

    use super::*;

    fn record(session: &str) -> Record {
        Record {
            session: session.to_owned(),
            at: 1,
            prompt_id: None,
            agent: None,
            surroundings: Surroundings::default(),
            private: false,
            echoes: Vec::new(),
            what: RecordedEvent::Seen,
        }
    }

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        (folder, home)
    }

    #[test]
    fn records_wait_in_their_order() {
        let (_folder, home) = home();
        let spool = Spool::new(&home);
        assert!(spool.is_empty());
        let sessions = ["a", "b", "c"];
        for session in sessions {
            spool.keep(&record(session)).unwrap();
            // The order of names is by milliseconds.
            let kept = SystemTime::now();
            while SystemTime::now()
                .duration_since(kept)
                .unwrap_or_default()
                .as_millis()
                < 2
            {
                std::hint::spin_loop();
            }
        }
        assert_eq!(spool.len(), 3);
        assert!(home.open_to_others().is_empty());
        let first = spool.waiting(2);
        let names: Vec<String> = first
            .iter()
            .map(|waiting| waiting.record.clone().unwrap().session)
            .collect();
        assert_eq!(names, ["a", "b"]);
        for waiting in &first {
            spool.put_away(waiting).unwrap();
            // Another process may have been faster.
            spool.put_away(waiting).unwrap();
        }
        assert_eq!(spool.waiting(50)[0].record, Some(record("c")));
    }

    #[test]
    fn what_is_no_record_is_moved_aside_and_let_go_in_time() {
        let (_folder, home) = home();
        let spool = Spool::new(&home);
        spool.keep(&record("a")).unwrap();
        let broken = home.spool().join("01JZ0000000000000000000000.json");
        fs::write(&broken, "{\"session\": 7").unwrap();
        fs::write(home.spool().join(".left.json.01JZ.tmp"), "half").unwrap();
        for waiting in spool.waiting(50) {
            spool.put_away(&waiting).unwrap();
        }
        assert!(spool.is_empty());
        assert_eq!(spool.unreadable().len(), 1);
        assert_eq!(spool.forget_unreadable(Duration::from_secs(60)), 0);
        assert_eq!(spool.forget_unreadable(Duration::ZERO), 1);
    }

    #[test]
    fn all_files_of_a_session_are_forgotten_and_no_other() {
        let (_folder, home) = home();
        let spool = Spool::new(&home);
        for session in ["s-1", "other", "s-1"] {
            spool.keep(&record(session)).unwrap();
        }
        // Truncated files: one pending, one of a killed process, one in the quarantine.
        fs::write(home.spool().join("x.json"), r#"{"session":"s-1","wor"#).unwrap();
        fs::write(home.spool().join(".y.json.01JZ.tmp"), r#"{"session":"s-1"#).unwrap();
        ensure_folder(&home.quarantine()).unwrap();
        for (name, text) in [
            ("spool-x.json", r#"{"session":"s-1"#),
            ("spool-y.json", r#"{"session":"other"#),
            ("journal-x.db", "s-1"),
        ] {
            fs::write(home.quarantine().join(name), text).unwrap();
        }
        assert_eq!(spool.count_of("s-1"), 5);
        assert_eq!(spool.forget_session("s-1").unwrap(), 5);
        assert_eq!((spool.len(), spool.unreadable().len()), (1, 1));
        assert_eq!(spool.waiting(1)[0].record, Some(record("other")));
        assert_eq!(spool.forget_session("s-1").unwrap(), 0);
    }
}
