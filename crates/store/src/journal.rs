//! This machine's records: sessions, what hooks did, what was shown. Never rebuilt, never synced.
//!
//! WAL, `synchronous = NORMAL`: a hook pays one short transaction and no flush to the disk; the
//! deferred process checkpoints. A file of a newer version is left alone. Every write is small and
//! stands for itself, so a process may be killed between any two.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_core::{id::NoteId, note::text_hash};
use chrono::{DateTime, Utc};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use ulid::Ulid;

use crate::{
    home::Home,
    lock::{self, Subject},
    sqlite,
};

/// The version of the tables below. Changes only add.
const VERSION: i64 = 1;

/// The length of the write-ahead log from which on it slows hooks down, in bytes: some forty hooks.
const LONG_LOG: u64 = 512 * 1024;

/// How many runs of each hook are kept for `doctor`.
const KEPT_RUNS: i64 = 100;

const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE session (
  id TEXT PRIMARY KEY, project TEXT NOT NULL, folder TEXT, transcript TEXT, source TEXT, client_process TEXT,
  started_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, ended_at INTEGER, end_reason TEXT
) STRICT;
CREATE TABLE session_body (session TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (session, hash)) STRICT;
CREATE TABLE shown (
  session TEXT NOT NULL, at INTEGER NOT NULL, position INTEGER NOT NULL, note TEXT NOT NULL,
  hash TEXT NOT NULL, lane TEXT NOT NULL, level TEXT NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (session, at, position)
) STRICT;
CREATE TABLE hook_run (
  number INTEGER PRIMARY KEY, event TEXT NOT NULL, at INTEGER NOT NULL, microseconds INTEGER NOT NULL, error TEXT
) STRICT;
CREATE INDEX hook_run_event ON hook_run (event, number);
CREATE TABLE forgotten (text_key TEXT PRIMARY KEY, note TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
CREATE TABLE written_here (note TEXT NOT NULL, hash TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (note, hash)) STRICT;
";

/// The records cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A newer program made the file; this one touches nothing in it.
    #[error("journal.db is of version {0}, this program knows {VERSION}; update anamnesis")]
    Newer(i64),
    /// Somebody else makes the tables for longer than this caller can wait.
    #[error("journal.db is being made by another anamnesis process")]
    Locked,
    /// The file system refused.
    #[error("journal.db: {0}")]
    Io(#[from] std::io::Error),
    /// SQLite refused.
    #[error("journal.db: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl Error {
    /// Tells whether the file itself is damaged: waiting or making room does not help.
    pub fn is_damage(&self) -> bool {
        let Self::Sqlite(error) = self else {
            return false;
        };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
        )
    }
}

/// A session as a hook meets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<'a> {
    /// The client's id.
    pub id: &'a str,
    /// The project's key; not needed for a session that is known.
    pub project: Option<&'a str>,
    /// The project's folder.
    pub folder: Option<&'a str>,
    /// Its transcript.
    pub transcript: Option<&'a str>,
    /// What started it, if this is its start.
    pub source: Option<&'a str>,
    /// The client's process id.
    pub client_process: Option<&'a str>,
}

/// A note that was given to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The note.
    pub note: NoteId,
    /// SHA-256 of its body.
    pub hash: String,
    /// How much of it: `body`, `part`, `heading` or `name`.
    pub level: &'static str,
    /// Why it was chosen.
    pub reason: &'static str,
}

/// How the runs of one hook went, of those that are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRuns {
    /// The event.
    pub event: String,
    /// How many.
    pub count: usize,
    /// When the last one was, milliseconds since 1970.
    pub last_at: i64,
    /// The median time, microseconds.
    pub median: i64,
    /// The worst time, microseconds.
    pub worst: i64,
    /// The last error and its time, if there was one.
    pub last_error: Option<(String, i64)>,
    /// Whether the last run had an error: one that a later run did not have is over.
    pub is_failing: bool,
}

/// A session of the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The client's id.
    pub id: String,
    /// The project's key.
    pub project: String,
    /// When it began, milliseconds since 1970.
    pub started_at: i64,
    /// When it was last heard of.
    pub seen_at: i64,
    /// When it ended, if that was heard.
    pub ended_at: Option<i64>,
}

/// The records of this machine.
#[derive(Debug)]
pub struct Journal {
    connection: Connection,
}

impl Journal {
    /// Opens the records, and makes them if there are none.
    ///
    /// # Errors
    /// When a newer program made them, or the file cannot be used within `patience`.
    pub fn open(home: &Home, patience: Duration) -> Result<Self, Error> {
        let path = home.journal();
        if path.exists() {
            let connection = sqlite::open_write(&path, patience)?;
            match sqlite::version(&connection)? {
                VERSION => return Ok(Self { connection }.configured()?),
                newer if newer > VERSION => return Err(Error::Newer(newer)),
                _ => {}
            }
        }
        // One process makes the tables; SQLite alone would let two switch the journal mode at once.
        let _lock = lock::acquire(home, Subject::Journal, patience)?.ok_or(Error::Locked)?;
        let connection = sqlite::open_write(&path, patience)?;
        if sqlite::version(&connection)? == 0 {
            connection.execute_batch(&format!(
                "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;"
            ))?;
        }
        Ok(Self { connection }.configured()?)
    }

    /// Moves a file that is no database, or a damaged one, out of the way, and says where it is.
    ///
    /// What it held cannot be rebuilt, so it is kept; the next process makes a new one.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn set_aside(home: &Home, now: DateTime<Utc>) -> std::io::Result<PathBuf> {
        let folder = home.root().join("quarantine");
        if let Err(error) = crate::home::ensure_folder(&folder) {
            return Err(std::io::Error::other(error));
        }
        let name = format!("journal-{}.db", now.format("%Y%m%dT%H%M%SZ"));
        let target = folder.join(&name);
        fs::rename(home.journal(), &target)?;
        // The log of a database belongs to it; a new one would take it for its own.
        for suffix in ["-wal", "-shm"] {
            let beside = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
            match fs::rename(beside(&home.journal()), beside(&target)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(target)
    }

    fn configured(self) -> rusqlite::Result<Self> {
        self.connection.execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON; \
             PRAGMA secure_delete = ON;",
        )?;
        Ok(self)
    }

    /// Runs several writes as one.
    ///
    /// # Errors
    /// When one of them fails; then none was made.
    pub fn together<T>(&self, writes: impl FnOnce(&Self) -> Result<T, Error>) -> Result<T, Error> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let result = writes(self).and_then(|value| {
            self.connection.execute_batch("COMMIT")?;
            Ok(value)
        });
        if result.is_err() {
            // The cause is what the caller needs; without a commit nothing was written either way.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        result
    }

    /// Takes note of a session. What is known of it stays; what was missing is filled in.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn session_seen(&self, seen: &Seen<'_>, now: DateTime<Utc>) -> Result<(), Error> {
        self.connection.execute(
            "INSERT INTO session (id, project, folder, transcript, source, client_process, started_at, seen_at)
             VALUES (?1, coalesce(?2, (SELECT project FROM session WHERE id = ?1)), ?3, ?4, ?5, ?6, ?7, ?7)
             ON CONFLICT (id) DO UPDATE SET
               seen_at = max(seen_at, excluded.seen_at),
               folder = coalesce(folder, excluded.folder),
               transcript = coalesce(transcript, excluded.transcript),
               source = coalesce(source, excluded.source),
               client_process = coalesce(excluded.client_process, client_process),
               ended_at = CASE WHEN excluded.source IS NULL THEN ended_at END,
               end_reason = CASE WHEN excluded.source IS NULL THEN end_reason END",
            params![
                seen.id,
                seen.project,
                seen.folder,
                seen.transcript,
                seen.source,
                seen.client_process,
                now.timestamp_millis()
            ],
        )?;
        Ok(())
    }

    /// Tells whether the session was seen before.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn knows_session(&self, id: &str) -> Result<bool, Error> {
        let found = self
            .connection
            .query_row("SELECT 1 FROM session WHERE id = ?", [id], |_| Ok(()))
            .optional()?;
        Ok(found.is_some())
    }

    /// Takes note of the end of a session.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn session_ended(&self, id: &str, reason: &str, now: DateTime<Utc>) -> Result<(), Error> {
        self.connection.execute(
            "UPDATE session SET ended_at = ?, end_reason = ? WHERE id = ?",
            params![now.timestamp_millis(), reason, id],
        )?;
        Ok(())
    }

    /// The session that was last heard of, of a project or of all.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn last_session(&self, project: Option<&str>) -> Result<Option<Session>, Error> {
        let session = self
            .connection
            .query_row(
                "SELECT id, project, started_at, seen_at, ended_at FROM session
                 WHERE ?1 IS NULL OR project = ?1 ORDER BY seen_at DESC, id LIMIT 1",
                [project],
                |row| {
                    Ok(Session {
                        id: row.get(0)?,
                        project: row.get(1)?,
                        started_at: row.get(2)?,
                        seen_at: row.get(3)?,
                        ended_at: row.get(4)?,
                    })
                },
            )
            .optional()?;
        Ok(session)
    }

    /// Takes note of a body that capture is about to write for a session.
    ///
    /// Said before the file is written: a process killed in between leaves a body that is known as
    /// ours whichever of the two it is.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn session_body_written(&self, session: &str, body: &str) -> Result<(), Error> {
        self.connection.execute(
            "INSERT OR IGNORE INTO session_body VALUES (?, ?)",
            params![session, text_hash(body)],
        )?;
        Ok(())
    }

    /// Tells whether capture wrote this body for the session; else a person changed it.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn is_session_body(&self, session: &str, body: &str) -> Result<bool, Error> {
        let found = self
            .connection
            .query_row(
                "SELECT 1 FROM session_body WHERE session = ? AND hash = ?",
                params![session, text_hash(body)],
                |_| Ok(()),
            )
            .optional()?;
        Ok(found.is_some())
    }

    /// Takes note of what the model was given.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn was_shown(
        &self,
        session: &str,
        lane: &str,
        notes: &[Shown],
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let mut statement = self
            .connection
            .prepare_cached("INSERT OR REPLACE INTO shown VALUES (?, ?, ?, ?, ?, ?, ?, ?)")?;
        for (position, shown) in notes.iter().enumerate() {
            statement.execute(params![
                session,
                now.timestamp_millis(),
                i64::try_from(position).unwrap_or(i64::MAX),
                shown.note.to_string(),
                shown.hash,
                lane,
                shown.level,
                shown.reason,
            ])?;
        }
        Ok(())
    }

    /// Takes note of a run of a hook and lets old ones go.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn hook_ran(
        &self,
        event: &str,
        took: Duration,
        error: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let microseconds = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
        self.connection
            .prepare_cached(
                "INSERT INTO hook_run (event, at, microseconds, error) VALUES (?, ?, ?, ?)",
            )?
            .execute(params![event, now.timestamp_millis(), microseconds, error])?;
        let number = self.connection.last_insert_rowid();
        // Not at each run: a hook has no time to spare.
        if number % KEPT_RUNS == 0 {
            self.connection.execute(
                "DELETE FROM hook_run AS old WHERE (SELECT count(*) FROM hook_run AS newer
                   WHERE newer.event = old.event AND newer.number > old.number) >= ?",
                [KEPT_RUNS],
            )?;
        }
        Ok(())
    }

    /// How the hooks ran, by event.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn hook_runs(&self) -> Result<Vec<HookRuns>, Error> {
        let mut statement = self.connection.prepare(
            "SELECT event, at, microseconds, error FROM hook_run ORDER BY event, number",
        )?;
        let rows = statement.query_map([], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, Option<String>>(3)?,
            ))
        })?;
        let mut runs: Vec<(HookRuns, Vec<i64>)> = Vec::new();
        for row in rows {
            let (event, at, microseconds, error) = row?;
            if runs.last().is_none_or(|(last, _)| last.event != event) {
                let fresh = HookRuns {
                    event,
                    count: 0,
                    last_at: 0,
                    median: 0,
                    worst: 0,
                    last_error: None,
                    is_failing: false,
                };
                runs.push((fresh, Vec::new()));
            }
            if let Some((run, times)) = runs.last_mut() {
                run.count += 1;
                run.last_at = at;
                run.is_failing = error.is_some();
                run.last_error = error.map(|error| (error, at)).or(run.last_error.take());
                times.push(microseconds);
            }
        }
        Ok(runs
            .into_iter()
            .map(|(mut run, mut times)| {
                times.sort_unstable();
                run.median = times[times.len() / 2];
                run.worst = times.last().copied().unwrap_or(0);
                run
            })
            .collect())
    }

    /// Tells whether the write-ahead log should be folded into the file.
    ///
    /// A hook that is alone with the records reads the whole log before anything else, so a session
    /// of many hooks would make each slower than the one before.
    pub fn has_long_log(&self) -> bool {
        let log = self.connection.path().map(|path| format!("{path}-wal"));
        log.and_then(|log| fs::metadata(log).ok())
            .is_some_and(|metadata| metadata.len() > LONG_LOG)
    }

    /// A value kept under a name.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn meta(&self, key: &str) -> Result<Option<String>, Error> {
        let value = self
            .connection
            .query_row("SELECT value FROM meta WHERE key = ?", [key], |row| {
                row.get(0)
            })
            .optional()?;
        Ok(value)
    }

    /// Keeps a value under a name.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn set_meta(&self, key: &str, value: &str) -> Result<(), Error> {
        self.connection.execute(
            "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
            [key, value],
        )?;
        Ok(())
    }

    /// Takes note that a person of this machine wrote this content of a note.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn written_here(&self, note: NoteId, file: &[u8], now: DateTime<Utc>) -> Result<(), Error> {
        self.connection.execute(
            "INSERT OR IGNORE INTO written_here VALUES (?, ?, ?)",
            params![
                note.to_string(),
                text_hash(&String::from_utf8_lossy(file)),
                now.timestamp_millis()
            ],
        )?;
        Ok(())
    }

    /// Takes note that a text was forgotten, as a hash that only this machine can make.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn forgot(&self, note: NoteId, body: &str, now: DateTime<Utc>) -> Result<(), Error> {
        let Some(key) = self.text_key(body)? else {
            return Ok(());
        };
        self.connection.execute(
            "INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?)",
            params![key, note.to_string(), now.timestamp_millis()],
        )?;
        Ok(())
    }

    /// Takes back that a note was forgotten.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn remembered(&self, note: NoteId) -> Result<(), Error> {
        self.connection
            .execute("DELETE FROM forgotten WHERE note = ?", [note.to_string()])?;
        Ok(())
    }

    /// When the same text was forgotten here, milliseconds since 1970.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn forgotten_at(&self, body: &str) -> Result<Option<i64>, Error> {
        let Some(key) = self.text_key(body)? else {
            return Ok(None);
        };
        let at = self
            .connection
            .query_row(
                "SELECT at FROM forgotten WHERE text_key = ?",
                [key],
                |row| row.get(0),
            )
            .optional()?;
        Ok(at)
    }

    /// A keyed hash of a text without regard to white space and letter case; none for an empty one.
    fn text_key(&self, body: &str) -> Result<Option<String>, Error> {
        let words: Vec<String> = body.split_whitespace().map(str::to_lowercase).collect();
        if words.is_empty() {
            return Ok(None);
        }
        let key = if let Some(key) = self.meta("text_key")? {
            key
        } else {
            let mut key = String::new();
            for _ in 0..4 {
                let _ = write!(key, "{:020x}", Ulid::generate().random());
            }
            self.set_meta("text_key", &key)?;
            key
        };
        // The key comes first and has a fixed length, the text is hashed before: no extension of the
        // text gives a related hash.
        Ok(Some(text_hash(&format!(
            "{key}{}",
            text_hash(&words.join(" "))
        ))))
    }

    /// Folds the write-ahead log into the file.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn checkpoint(&self) -> Result<(), Error> {
        Ok(sqlite::checkpoint(&self.connection)?)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn fresh() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        (folder, home)
    }

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    #[test]
    fn thirty_two_at_once_on_no_journal_lose_nothing() {
        // SQL-06
        let (_folder, home) = fresh();
        thread::scope(|scope| {
            for number in 0..32 {
                let home = &home;
                scope.spawn(move || {
                    let journal = Journal::open(home, PATIENCE).unwrap();
                    let id = format!("s{number}");
                    let seen = Seen {
                        id: &id,
                        project: Some("p"),
                        folder: None,
                        transcript: None,
                        source: Some("startup"),
                        client_process: None,
                    };
                    journal
                        .together(|journal| journal.session_seen(&seen, now()))
                        .unwrap();
                    journal
                        .hook_ran("SessionStart", Duration::from_millis(number), None, now())
                        .unwrap();
                });
            }
        });
        let journal = Journal::open(&home, PATIENCE).unwrap();
        let runs = journal.hook_runs().unwrap();
        assert_eq!(runs[0].count, 32);
        assert_eq!((runs[0].median, runs[0].worst), (16_000, 31_000));
        assert!(home.open_to_others().is_empty());
    }

    #[test]
    fn a_newer_file_is_left_alone() {
        let (_folder, home) = fresh();
        drop(Journal::open(&home, PATIENCE).unwrap());
        Connection::open(home.journal())
            .unwrap()
            .execute_batch("PRAGMA user_version = 99")
            .unwrap();
        let newer = Journal::open(&home, PATIENCE).unwrap_err();
        assert!(matches!(newer, Error::Newer(99)) && !newer.is_damage());
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_kept() {
        let (_folder, home) = fresh();
        std::fs::write(home.journal(), [0xff; 8192]).unwrap();
        assert!(Journal::open(&home, PATIENCE).unwrap_err().is_damage());
        let kept = Journal::set_aside(&home, now()).unwrap();
        assert_eq!(std::fs::read(kept).unwrap(), [0xff; 8192]);
        Journal::open(&home, PATIENCE)
            .unwrap()
            .set_meta("a", "1")
            .unwrap();
    }

    #[test]
    fn a_session_that_goes_on_is_open_again() {
        let (_folder, home) = fresh();
        let journal = Journal::open(&home, PATIENCE).unwrap();
        let start = Seen {
            id: "s",
            project: Some("p"),
            folder: None,
            transcript: None,
            source: Some("startup"),
            client_process: None,
        };
        journal.session_seen(&start, now()).unwrap();
        journal.session_ended("s", "other", now()).unwrap();
        assert!(
            journal
                .last_session(Some("p"))
                .unwrap()
                .unwrap()
                .ended_at
                .is_some()
        );
        journal
            .session_seen(
                &Seen {
                    project: None,
                    source: None,
                    ..start.clone()
                },
                now(),
            )
            .unwrap();
        assert!(
            journal
                .last_session(None)
                .unwrap()
                .unwrap()
                .ended_at
                .is_some()
        );
        journal
            .session_seen(
                &Seen {
                    source: Some("resume"),
                    ..start.clone()
                },
                now(),
            )
            .unwrap();
        assert!(
            journal
                .last_session(Some("p"))
                .unwrap()
                .unwrap()
                .ended_at
                .is_none()
        );
        assert_eq!(journal.last_session(Some("q")).unwrap(), None);
        assert!(journal.knows_session("s").unwrap());
        assert!(!journal.knows_session("t").unwrap());
        let stranger = Seen {
            id: "t",
            project: None,
            ..start
        };
        assert!(journal.session_seen(&stranger, now()).is_err());
    }

    #[test]
    fn a_long_log_is_folded_in() {
        let (_folder, home) = fresh();
        let journal = Journal::open(&home, PATIENCE).unwrap();
        assert!(!journal.has_long_log());
        for number in 0..200 {
            journal.set_meta("text", &number.to_string()).unwrap();
        }
        assert!(journal.has_long_log());
        journal.checkpoint().unwrap();
        assert!(!journal.has_long_log());
    }

    #[test]
    fn a_failed_group_of_writes_leaves_nothing() {
        let (_folder, home) = fresh();
        let journal = Journal::open(&home, PATIENCE).unwrap();
        let result: Result<(), Error> = journal.together(|journal| {
            journal.set_meta("a", "1")?;
            Err(Error::Locked)
        });
        assert!(result.is_err());
        assert_eq!(journal.meta("a").unwrap(), None);
        journal
            .together(|journal| journal.set_meta("a", "2"))
            .unwrap();
        assert_eq!(journal.meta("a").unwrap().as_deref(), Some("2"));
    }

    #[test]
    fn forgotten_texts_are_known_by_a_hash_of_this_machine() {
        let (_folder, home) = fresh();
        let journal = Journal::open(&home, PATIENCE).unwrap();
        let note = NoteId::of_session("x");
        journal
            .forgot(note, "Deploys go\nthrough Jenkins", now())
            .unwrap();
        assert_eq!(
            journal
                .forgotten_at(" deploys go through  jenkins ")
                .unwrap(),
            Some(now().timestamp_millis())
        );
        assert_eq!(journal.forgotten_at("other").unwrap(), None);
        assert_eq!(journal.forgotten_at(" ").unwrap(), None);
        journal.remembered(note).unwrap();
        assert_eq!(
            journal.forgotten_at("deploys go through jenkins").unwrap(),
            None
        );
    }

    #[test]
    fn bodies_of_capture_are_known() {
        let (_folder, home) = fresh();
        let journal = Journal::open(&home, PATIENCE).unwrap();
        journal.session_body_written("s", "one").unwrap();
        journal.session_body_written("s", "two").unwrap();
        assert!(journal.is_session_body("s", "one").unwrap());
        assert!(journal.is_session_body("s", "two").unwrap());
        assert!(!journal.is_session_body("s", "edited").unwrap());
        assert!(!journal.is_session_body("t", "one").unwrap());
    }

    #[test]
    fn old_runs_are_let_go() {
        let (_folder, home) = fresh();
        let journal = Journal::open(&home, PATIENCE).unwrap();
        journal
            .together(|journal| {
                (0..350).try_for_each(|run| {
                    journal.hook_ran(
                        "SessionStart",
                        Duration::ZERO,
                        (run == 300).then_some("broke"),
                        now(),
                    )
                })
            })
            .unwrap();
        let runs = journal.hook_runs().unwrap();
        assert!(runs[0].count <= 200);
        assert_eq!(
            runs[0].last_error.as_ref().map(|(error, _)| error.as_str()),
            Some("broke")
        );
    }
}
