//! Records that the journal could not take, one file per event, stored later in order.
//!
//! A file has one sanitised record. Its name is a ULID, so names sort by time. The file is deleted
//! after the commit with its record. A record that is stored twice changes nothing, so a kill in
//! between is safe. A process that was killed before the rename left a temporary file; if its record
//! is complete, it is stored, too.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_session::event::{RecordedEvent, SessionEvent};
use anamnesis_text::hash::seal;
use ulid::Ulid;

use crate::fs::{
    file,
    home::{Home, ensure_folder},
};

/// The maximum size of a file, in bytes. A record is far smaller.
const MAX_LENGTH: usize = 4 * 1024 * 1024;

/// The extension of a record's file. Foreign files have another one.
const ENDING: &str = "json";

/// The extension of a temporary file.
const TEMPORARY: &str = "tmp";

/// The age at which a temporary file is a leftover. No hook runs longer.
const LEFTOVER_AGE: Duration = Duration::from_secs(120);

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
    pub record: Option<SessionEvent>,
}

impl<'a> Spool<'a> {
    /// Returns the spool of a store.
    pub fn new(home: &'a Home) -> Self {
        Self { home }
    }

    /// Stores a record until the journal can take it.
    pub fn keep(&self, record: &SessionEvent) -> io::Result<Waiting> {
        let folder = self.home.spool();
        ensure_folder(&folder).map_err(io::Error::other)?;
        // Uses the current time instead of the record's: the order is that of arrival.
        let path = folder.join(format!("{}.{ENDING}", Ulid::generate()));
        let sealed = with_seal(self.home, &path, record.clone())?;
        file::write_atomic(&path, &serde_json::to_vec(&sealed)?)?;
        Ok(Waiting {
            path,
            record: Some(record.clone()),
        })
    }

    /// Stores a record with `store`, and keeps it if that fails. If the journal is busy, `store` is called
    /// again after the record was kept, because this process may be ended while it waits.
    pub fn keep_unless_stored<T, E>(
        &self,
        record: &SessionEvent,
        is_busy: impl FnOnce(&E) -> bool,
        mut store: impl FnMut() -> Result<T, E>,
    ) -> (Result<T, E>, io::Result<()>) {
        let first = store();
        let is_busy = match &first {
            Ok(_) => return (first, Ok(())),
            Err(error) => is_busy(error),
        };
        let kept = self.keep(record);
        if !is_busy {
            return (first, kept.map(drop));
        }
        let second = store();
        let kept = match kept {
            Ok(kept) if second.is_ok() => self.put_away(&kept).map(drop),
            Err(_) if second.is_ok() => Ok(()),
            kept => kept.map(drop),
        };
        (second, kept)
    }

    /// Returns the first pending records, in order.
    pub fn waiting(&self, limit: usize) -> Vec<Waiting> {
        let mut paths: Vec<PathBuf> = files(&self.home.spool())
            .filter(|path| has_ending(path, ENDING) || is_leftover(path, LEFTOVER_AGE))
            .collect();
        // The name of a temporary file is that of the record, behind a dot.
        paths.sort_by_key(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.map(|name| name.trim_start_matches('.').to_owned())
        });
        let read = |path| read(self.home, path);
        paths.into_iter().filter_map(read).take(limit).collect()
    }

    /// Returns the number of pending files.
    pub fn len(&self) -> usize {
        files(&self.home.spool())
            .filter(|path| has_ending(path, ENDING))
            .count()
    }

    /// Returns whether no file is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Deletes a file whose record is in the journal, and moves an unreadable one to the quarantine.
    /// Returns whether it moved one.
    pub fn put_away(&self, waiting: &Waiting) -> io::Result<bool> {
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            other => other.map(|()| waiting.record.is_none()),
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
            file::remove(&path)?;
            deleted += 1;
        }
        Ok(deleted)
    }

    fn files_of(&self, session: &str) -> impl Iterator<Item = PathBuf> {
        // Includes temporary files of killed processes.
        let waiting = files(&self.home.spool());
        waiting.chain(self.unreadable()).filter(move |path| {
            let Ok((bytes, ..)) = file::read_head(path, MAX_LENGTH) else {
                return false;
            };
            // An unreadable record may still contain the session's text.
            serde_json::from_slice::<SessionEvent>(&bytes).map_or_else(
                |_| String::from_utf8_lossy(&bytes).contains(session),
                |record| record.session == session,
            )
        })
    }

    /// Returns the unreadable files.
    pub fn unreadable(&self) -> Vec<PathBuf> {
        file::entries(&self.home.quarantine())
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("spool-"))
            .map(|entry| entry.path())
            .collect()
    }

    /// Deletes unreadable files and half-written ones older than this. Returns how many.
    pub fn forget_unreadable(&self, age: Duration) -> usize {
        let half_age = age.max(LEFTOVER_AGE);
        let unreadable = self.unreadable().into_iter();
        unreadable
            .filter(|path| file::age(path).is_some_and(|it| it > age))
            .chain(files(&self.home.spool()).filter(|path| is_leftover(path, half_age)))
            .filter(|path| fs::remove_file(path).is_ok())
            .count()
    }
}

/// Reads a pending file; `None` if another process has stored it, or a temporary file is incomplete.
fn read(home: &Home, path: PathBuf) -> Option<Waiting> {
    let record = match file::read_head(&path, MAX_LENGTH) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => None,
        Ok((bytes, ..)) => serde_json::from_slice(&bytes)
            .ok()
            .and_then(|record| with_seal(home, &path, record).ok()),
    };
    let is_half = record.is_none() && has_ending(&path, TEMPORARY);
    (!is_half).then_some(Waiting { path, record })
}

/// Seals the texts whose private tokens are not masked yet, or opens them again. No backup has the key.
fn with_seal(home: &Home, path: &Path, mut record: SessionEvent) -> io::Result<SessionEvent> {
    let held = match &mut record.what {
        RecordedEvent::Prompted(prompt) if prompt.is_held() => Some(prompt),
        _ => None,
    };
    if held.is_some() || !record.unmasked.is_empty() {
        let file = home.derived().join("seal.key");
        let key = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let random = [Ulid::generate().random(), Ulid::generate().random()];
                let own = file.with_extension(Ulid::generate().to_string());
                file::write_atomic(&own, random.map(u128::to_le_bytes).as_flattened())?;
                // Another process may have made one meanwhile, which is used then.
                let _ = fs::hard_link(&own, &file);
                fs::remove_file(&own)?;
                fs::read(&file)?
            }
            key => key?,
        };
        // No two records have the same stream. A temporary file has a dot before the name.
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.trim_start_matches('.').split('.').next();
        let key = [&key, name.unwrap_or_default().as_bytes()].concat();
        match held {
            Some(prompt) => prompt.seal(&key),
            None => seal(&mut record.unmasked, &key),
        }
    }
    Ok(record)
}

/// Returns the paths of a folder's entries; none if it cannot be read.
fn files(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    file::entries(folder).map(|entry| entry.path())
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

/// Returns whether a path is a temporary file that nobody writes any more.
fn is_leftover(path: &Path, age: Duration) -> bool {
    has_ending(path, TEMPORARY) && file::age(path).is_some_and(|it| it > age)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use anamnesis_session::{
        event::Surroundings,
        prompt::{RawPrompt, SafePrompt},
    };
    use anamnesis_testkit::wait_for;

    use super::*;

    fn record(session: &str) -> SessionEvent {
        SessionEvent {
            session: session.to_owned(),
            at: 1,
            prompt_id: None,
            agent: None,
            surroundings: Surroundings::default(),
            private: false,
            echoes: Vec::new(),
            unmasked: Vec::new(),
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
    fn a_held_prompt_is_sealed_in_its_file() {
        // CAP-03
        let (_folder, home) = home();
        let spool = Spool::new(&home);
        let mut record = record("s");
        record.what =
            RecordedEvent::Prompted(SafePrompt::held(&RawPrompt::new("Add limits")).value);
        spool.keep(&record).unwrap();
        spool.keep(&record).unwrap();
        let files: Vec<Vec<u8>> = files(&home.spool())
            .map(|path| fs::read(path).unwrap())
            .collect();
        assert_ne!(files[0], files[1]);
        let plain = serde_json::to_vec(&record).unwrap();
        assert!(files.iter().all(|file| *file != plain));
        let waiting = spool.waiting(9);
        assert!(
            waiting
                .iter()
                .all(|waiting| waiting.record.as_ref() == Some(&record))
        );
        assert_eq!(waiting.len(), 2);
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
            wait_for("a later millisecond", || {
                SystemTime::now() > kept + Duration::from_millis(1)
            });
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
    fn a_complete_record_that_was_not_renamed_is_stored_in_its_order() {
        let (_folder, home) = home();
        let spool = Spool::new(&home);
        spool.keep(&record("later")).unwrap();
        let old = SystemTime::now() - Duration::from_secs(600);
        let leftover = |number: u8, text: &[u8], modified| {
            let name = format!(".01JZ000000000000000000000{number}.json.01JZ.tmp");
            let mut file = fs::File::create(home.spool().join(name)).unwrap();
            io::Write::write_all(&mut file, text).unwrap();
            file.set_modified(modified).unwrap();
        };
        let whole = serde_json::to_vec(&record("first")).unwrap();
        leftover(1, &whole, old);
        leftover(2, &whole[..whole.len() / 2], old);
        // A hook is writing this one.
        leftover(3, &whole, SystemTime::now());
        let waiting = spool.waiting(50);
        let sessions: Vec<&str> = waiting
            .iter()
            .map(|waiting| waiting.record.as_ref().unwrap().session.as_str())
            .collect();
        assert_eq!(sessions, ["first", "later"]);
        for waiting in &waiting {
            assert!(!spool.put_away(waiting).unwrap());
        }
        assert_eq!((spool.waiting(50).len(), spool.unreadable().len()), (0, 0));
        assert_eq!(spool.forget_unreadable(Duration::from_secs(60)), 1);
    }

    #[test]
    fn a_record_is_kept_before_the_journal_is_waited_for() {
        let (_folder, home) = home();
        let spool = Spool::new(&home);
        let mut kept = Vec::new();
        let store = || {
            kept.push(spool.len());
            if kept.len() == 1 { Err("busy") } else { Ok(()) }
        };
        let (stored, put_away) = spool.keep_unless_stored(&record("a"), |_| true, store);
        assert!(stored.is_ok() && put_away.is_ok());
        assert_eq!((kept, spool.len()), (vec![0, 1], 0));
        // It stays there until the journal takes it.
        let store = || Err::<(), _>("busy");
        let (stored, _) = spool.keep_unless_stored(&record("b"), |_| true, store);
        assert!(stored.is_err());
        assert_eq!(spool.len(), 1);
    }

    #[test]
    fn a_record_that_another_hook_took_is_not_unreadable() {
        let (_folder, home) = home();
        let spool = Spool::new(&home);
        let kept = spool.keep(&record("a")).unwrap();
        let gone = home.spool().join("01JZ0000000000000000000000.json");
        fs::write(&gone, "{").unwrap();
        let waiting = spool.waiting(50);
        assert_eq!(waiting.len(), 2);
        fs::remove_file(&gone).unwrap();
        // It was broken, and another hook moved it.
        assert!(!spool.put_away(&waiting[0]).unwrap());
        spool.put_away(&kept).unwrap();
        assert!(read(&home, kept.path).is_none());
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
