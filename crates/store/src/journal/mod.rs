//! This machine's records: all events of all sessions, hook runs and injected notes. They are neither
//! rebuilt nor synced.
//!
//! WAL with `synchronous = NORMAL`: a hook pays one short transaction and no `fsync`; the deferred
//! process checkpoints. A hook writes everything in one transaction, so a kill at any instruction is
//! safe. A file of a newer version is left alone.

/// [`PromptKind::is_request`] as an SQL condition on a row of `prompt`.
macro_rules! is_request {
    () => {
        "kind IN ('person', 'script')"
    };
}

mod agent;
mod budget;
mod damage;
mod forget;
mod injected;
mod job;
mod known;
mod listing;
mod native;
mod purge;
mod recall;
mod reference;
mod reflection;
mod repair;
mod resolved;
mod retention;
mod schema;
mod session;
mod take;
mod timeline;
mod usage;

pub(crate) use self::usage::FORMER_USAGE;
pub use self::{
    budget::{Budget, REFLECTION, SUMMARY, Spending},
    damage::{damage_was_seen, examine, is_repair_delayed, is_repair_requested, request_repair},
    forget::ForgottenPrompt,
    injected::InjectedText,
    job::{Job, NOTE, Queue},
    listing::{
        Contents, FailedTool, StoredDelegation, StoredJob, StoredPrompt, StoredSummary,
        StoredTurnEnd,
    },
    purge::Mentions,
    recall::{
        COMMIT, Evidence, FILE, Given, Held, INHERITED, Ledger, OBSERVATION, POINTER, Run, STOPPED,
        SUGGESTION, Seen, WARNING, WITHOUT_MEANING, Warned,
    },
    reference::Stale,
    reflection::{ForgetRequest, Reflection},
    repair::{Repair, drop_old_quarantine, kept_files, repair},
    resolved::Resolved,
    retention::{DAMAGED_DAYS, Pruned},
    session::{Extent, Runs, Session, StoredEvent},
    take::LOST,
    timeline::{Moment, MomentKind},
    usage::{LastTurn, NoteCounts, NoteReport, Report, TurnEvent, Weight},
};
pub(crate) use self::{
    native::{CopyState, NativeMemory, Source},
    reference::SeenCitation,
};

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

use anamnesis_note::id::NoteId;
use anamnesis_session::event::{Host, PromptKind};
use anamnesis_text::{
    hash::text_hash,
    private_tokens::{Hash, Key, PrivateTokens},
};
use chrono::{DateTime, Utc};
use rusqlite::{Connection, ErrorCode, config::DbConfig, params};
use serde::{Serialize, de::DeserializeOwned};
use ulid::Ulid;

use self::schema::VERSION;
use crate::{
    fs::{
        file::Stamp,
        home::Home,
        lock::{self, Subject},
    },
    sqlite::{self, Json, Queries},
};

/// The length of the write-ahead log that slows hooks down, in bytes: about forty hooks.
const LONG_LOG: u64 = 1024 * 1024;

/// The `meta` key of the time of the first session.
const SINCE: &str = "since";

/// The number of runs of each hook whose times are kept.
const TIMED_RUNS: usize = 100;

/// The size of a stored time: microseconds, little-endian.
const TIME_LENGTH: usize = size_of::<u32>();

/// The journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A newer version wrote the file; nothing in it is changed.
    #[error("journal.db is of version {0}, this program knows {VERSION}; update anamnesis")]
    Newer(i64),
    /// Another process holds the journal lock for longer than this caller can wait.
    #[error("journal.db is being made or repaired by another anamnesis process")]
    Locked,
    /// A repair replaced the file while this process had it open; nothing was written.
    #[error("journal.db was replaced by another anamnesis process")]
    Replaced,
    /// The file is damaged, though SQLite can open it.
    #[error("journal.db is damaged: {0}")]
    Damaged(String),
    /// The file system refused.
    #[error("journal.db: {0}")]
    Io(#[from] std::io::Error),
    /// SQLite refused.
    #[error("journal.db: {0}")]
    Sqlite(#[source] rusqlite::Error),
}

impl Error {
    /// Returns whether another process holds a lock on it; it may be free in a moment.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Locked => true,
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            ),
            Self::Newer(_) | Self::Io(_) | Self::Replaced | Self::Damaged(_) => false,
        }
    }

    /// Returns whether the written values caused the error, not the file or a lock.
    fn is_refusal(&self) -> bool {
        let Self::Sqlite(error) = self else {
            return false;
        };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        )
    }
}

/// A note that was injected.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownNote {
    /// The note.
    pub note: NoteId,
    /// SHA-256 of its body.
    pub hash: String,
    /// How much of it: `body`, `part`, `heading`, `name` or `pointer`.
    pub level: &'static str,
    /// Why it was chosen.
    pub reason: &'static str,
    /// Why it matched, if it was searched for.
    pub evidence: Option<Evidence>,
}

impl ShownNote {
    /// A note that was shown without evidence.
    pub fn new(note: NoteId, hash: String, level: &'static str, reason: &'static str) -> Self {
        Self {
            note,
            hash,
            level,
            reason,
            evidence: None,
        }
    }
}

/// The context and the occasion of an injection.
#[derive(Debug, Clone, Copy)]
pub struct Audience<'a> {
    /// The session.
    pub session: &'a str,
    /// The subagent; empty for the session's own context.
    pub agent: &'a str,
    /// The occasion.
    pub lane: &'a str,
}

/// Statistics of the stored runs of one hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookRuns {
    /// The event.
    pub event: String,
    /// The number of runs.
    #[serde(rename = "runs")]
    pub count: usize,
    /// The time of the last run, milliseconds since 1970.
    #[serde(skip)]
    pub last_at: i64,
    /// The median time, microseconds.
    #[serde(rename = "median_us")]
    pub median: i64,
    /// The 95th percentile, microseconds.
    #[serde(rename = "p95_us")]
    pub p95: i64,
    /// The longest time, microseconds.
    #[serde(rename = "worst_us")]
    pub worst: i64,
    /// The number of runs today, including those without a stored time.
    #[serde(skip)]
    pub today: i64,
    /// The last error and its time, if there was one.
    #[serde(skip)]
    pub last_error: Option<(String, i64)>,
    /// Whether the last run failed.
    #[serde(skip)]
    pub is_failing: bool,
}

/// This machine's journal, open.
#[derive(Debug)]
pub struct Journal {
    connection: Connection,
}

impl Queries for Journal {
    type Error = Error;

    fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Journal {
    /// Opens the journal; creates it if it does not exist.
    ///
    /// # Errors
    /// [`Error::Newer`] if a newer version wrote the file; a busy error if it is locked for longer
    /// than `timeout`.
    pub fn open(home: &Home, timeout: Duration) -> Result<Self, Error> {
        let path = home.journal();
        match connect(&path, timeout, sqlite::open_existing) {
            Ok((connection, VERSION)) => {
                use_log(&connection, timeout)?;
                return Ok(Self { connection }.configured()?);
            }
            Ok((_, newer)) if newer > VERSION => return Err(Error::Newer(newer)),
            Ok(_) => {}
            // A repair may be moving the file. It is only created under the lock.
            Err(_) if !path.exists() => {}
            Err(error) => return Err(error),
        }
        // Only one process may create the tables: SQLite's own locks would let two switch the journal
        // mode at once.
        let _lock = lock::acquire(home, Subject::Journal, timeout)?.ok_or(Error::Locked)?;
        repair::finish(home)?;
        let (mut connection, version) = connect(&path, timeout, sqlite::open_write)?;
        if version == 0 {
            connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
        }
        use_log(&connection, timeout)?;
        schema::migrate(&mut connection)?;
        let journal = Self { connection }.configured()?;
        if version == 0 && !known::has_notes(home) {
            // Whatever appears from now on came by us, or is foreign.
            journal.know_at_first(|| [])?;
        }
        Ok(journal)
    }

    /// Opens the journal read-only; none if it does not exist or is older than this version.
    pub fn open_to_read(home: &Home, timeout: Duration) -> Result<Option<Self>, Error> {
        let path = home.journal();
        if !path.exists() {
            return Ok(None);
        }
        let connection = sqlite::open_read(&path, timeout)?;
        let version = sqlite::version(&connection)?;
        match version {
            VERSION => Ok(Some(Self { connection })),
            newer if newer > VERSION => Err(Error::Newer(newer)),
            _ => Ok(None),
        }
    }

    fn configured(self) -> rusqlite::Result<Self> {
        self.connection.execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON;",
        )?;
        self.connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
        Ok(self)
    }

    /// Opens the journal of a newer version read-only. This works because a version only adds tables
    /// and columns.
    ///
    /// # Errors
    /// When SQLite cannot open the file.
    pub fn open_newer_to_read(home: &Home, timeout: Duration) -> Result<Self, Error> {
        let connection = sqlite::open_read(&home.journal(), timeout)?;
        Ok(Self { connection })
    }

    /// Runs several writes in one transaction. On an error, none of them is stored.
    pub fn in_transaction<T>(
        &self,
        writes: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let result = writes(self).and_then(|value| {
            self.connection.execute_batch("COMMIT")?;
            Ok(value)
        });
        if result.is_err() {
            // The caller needs the first error. Without a commit nothing was written.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        result
    }

    /// Sets how long a transaction waits for another writer.
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), Error> {
        Ok(self.connection.busy_timeout(timeout)?)
    }

    /// Records a body that capture is about to write for a session.
    ///
    /// It is recorded before the file is written. If the process is killed in between, both the old
    /// and the new body count as ours.
    pub fn session_body_written(&self, session: &str, body: &str) -> Result<(), Error> {
        let sql = "INSERT OR IGNORE INTO session_body VALUES (?, ?)";
        self.run(sql, params![session, text_hash(body)])
    }

    /// Returns whether capture wrote this body for the session. Otherwise a person changed it.
    pub fn is_session_body(&self, session: &str, body: &str) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM session_body WHERE session = ? AND hash = ?";
        self.exists(sql, params![session, text_hash(body)])
    }

    /// Like [`Self::is_session_body`], for a session of which no program sent a prompt.
    pub fn is_body_of_person(&self, session: &str, body: &str) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM session_body WHERE session = ?1 AND hash = ?2
             AND NOT EXISTS (SELECT 1 FROM prompt WHERE session = ?1 AND kind = ?3)";
        let script = PromptKind::Script.as_str();
        self.exists(sql, params![session, text_hash(body), script])
    }

    /// Records injected notes.
    pub fn was_shown(
        &self,
        to: Audience<'_>,
        notes: &[ShownNote],
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let first = self.next_position(to.session, now)?;
        for (position, shown) in (first..).zip(notes) {
            let evidence = shown.evidence.as_ref();
            let sql = "INSERT INTO shown VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
               coalesce((SELECT epoch FROM session WHERE id = ?1), 0), ?10)";
            let values = params![
                to.session,
                now.timestamp_millis(),
                position,
                shown.note.to_string(),
                shown.hash,
                to.lane,
                shown.level,
                shown.reason,
                to.agent,
                evidence.map(Json),
            ];
            self.run(sql, values)?;
            if ![COMMIT, SUGGESTION, INHERITED].contains(&to.lane) && shown.level != POINTER {
                let note = shown.note.to_string();
                let sql = "INSERT OR IGNORE INTO shown_note VALUES (?, ?, ?)";
                self.run(sql, params![to.session, note, now.timestamp_millis()])?;
            }
        }
        Ok(())
    }

    /// Returns the notes that were shown in a session, including those with the title only.
    pub fn notes_shown_in(&self, session: &str) -> Result<BTreeSet<NoteId>, Error> {
        let sql = "SELECT DISTINCT note FROM shown WHERE session = ?";
        self.note_ids(sql, [session])
    }

    /// Records a run of a hook.
    pub fn hook_ran(
        &self,
        event: &str,
        took: Duration,
        error: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let microseconds = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        self.run("INSERT INTO hook VALUES (?1, ?2, ?3, 1, ?4, ?5, iif(?5 IS NULL, NULL, ?2), ?5 IS NOT NULL)
                 ON CONFLICT (event) DO UPDATE SET
                   last_at = excluded.last_at, day = excluded.day,
                   times = substr(CAST(times || excluded.times AS BLOB), -?6),
                   today = iif(day = excluded.day, today + 1, 1), error = coalesce(excluded.error, error),
                   error_at = coalesce(excluded.error_at, error_at), is_failing = excluded.is_failing", params![
                event,
                now.timestamp_millis(),
                day_of(now),
                microseconds.to_le_bytes(),
                error,
                i64::try_from(TIMED_RUNS * TIME_LENGTH).unwrap_or(0),
            ])
    }

    /// Records an error of a hook's last run after that run was recorded.
    pub fn run_failed(&self, event: &str, error: &str) -> Result<(), Error> {
        let sql = "UPDATE hook SET error = ?2, error_at = last_at, is_failing = 1 WHERE event = ?1";
        self.run(sql, [event, error])
    }

    /// Returns statistics of the hooks, by event.
    pub fn hook_runs(&self, now: DateTime<Utc>) -> Result<Vec<HookRuns>, Error> {
        let today = day_of(now);
        self.rows("SELECT event, last_at, iif(day = ?, today, 0), times, error, error_at, is_failing FROM hook", [today], |row| {
                let times: Vec<u8> = row.get(3)?;
                let mut times: Vec<u32> = times
                    .chunks_exact(TIME_LENGTH)
                    .filter_map(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)))
                    .collect();
                times.sort_unstable();
                let error: Option<String> = row.get(4)?;
                Ok(HookRuns {
                    event: row.get(0)?,
                    count: times.len(),
                    last_at: row.get(1)?,
                    median: times.get(times.len() / 2).copied().unwrap_or(0).into(),
                    p95: times
                        .get(times.len() * 19 / 20)
                        .copied()
                        .unwrap_or(0)
                        .into(),
                    worst: times.last().copied().unwrap_or(0).into(),
                    today: row.get(2)?,
                    last_error: error.zip(row.get(5)?),
                    is_failing: row.get(6)?,
                })
            })
    }

    /// Returns the private and purged tokens that texts of a session must not repeat.
    pub fn echoes(&self, session: &str) -> Result<PrivateTokens, Error> {
        let sql = "SELECT key, hash FROM private_token WHERE session = ?";
        let rows: Vec<(Vec<u8>, Vec<u8>)> = self.tuples(sql, [session])?;
        let private = rows.iter().filter_map(|(key, hash)| {
            Some((
                Key::new(key.as_slice().try_into().ok()?),
                Hash::from_bytes(hash)?,
            ))
        });
        Ok(private.chain(self.purged_hashes()?).collect())
    }

    /// Returns SQLite's journal mode: `wal`, or another one if the file system does not support it.
    pub fn log_mode(&self) -> Result<String, Error> {
        self.value("PRAGMA journal_mode", [])
    }

    /// Returns whether the write-ahead log should be checkpointed.
    ///
    /// A hook that is the only user of the journal reads the whole log first, so each hook would be
    /// slower than the one before.
    pub fn has_long_log(&self) -> bool {
        let log = self.connection.path().map(|path| format!("{path}-wal"));
        log.and_then(|log| fs::metadata(log).ok())
            .is_some_and(|metadata| metadata.len() > LONG_LOG)
    }

    /// Returns a value of the table `meta`.
    pub fn meta(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.connection.meta(key)?)
    }

    /// Returns the values of several keys of `meta`; missing keys are left out.
    pub fn metas(&self, names: &[&str]) -> Result<BTreeMap<String, String>, Error> {
        let sql = "SELECT key, value FROM meta WHERE key IN (SELECT value FROM json_each(?))";
        self.tuples(sql, [Json(names)])
    }

    /// Returns all values of `meta` whose key begins with `prefix`.
    pub fn metas_under(&self, prefix: &str) -> Result<BTreeMap<String, String>, Error> {
        let sql = "SELECT key, value FROM meta WHERE substr(key, 1, length(?1)) = ?1";
        self.tuples(sql, [prefix])
    }

    /// Deletes a value of `meta`.
    pub fn remove_meta(&self, key: &str) -> Result<(), Error> {
        self.run("DELETE FROM meta WHERE key = ?", [key])
    }

    /// Returns when the first session was seen, milliseconds since 1970. Anything older precedes the
    /// installation.
    pub fn since(&self) -> Result<Option<i64>, Error> {
        self.time(SINCE)
    }

    /// Returns when the first session of a host other than Claude Code began, milliseconds since 1970.
    pub fn host_since(&self, host: Host) -> Result<Option<i64>, Error> {
        let sql = "SELECT min(started_at) FROM session WHERE host = ?1";
        self.value(sql, [host.as_str()])
    }

    /// Records that recording was resumed, for a project or for all.
    pub fn resumed(&self, project: Option<&str>, now: i64) -> Result<(), Error> {
        self.set_meta(&resumed_key(project), &now.to_string())
    }

    /// Returns when recording was last resumed for a project, milliseconds since 1970.
    pub fn resumed_at(&self, project: &str) -> Result<Option<i64>, Error> {
        Ok(self
            .time(&resumed_key(Some(project)))?
            .max(self.time(&resumed_key(None))?))
    }

    fn time(&self, key: &str) -> Result<Option<i64>, Error> {
        Ok(self.meta(key)?.and_then(|time| time.parse().ok()))
    }

    /// Stores a value in `meta`.
    pub fn set_meta(&self, key: &str, value: &str) -> Result<(), Error> {
        Ok(self.connection.set_meta(key, value)?)
    }

    /// Returns a value that is stored in `meta` as JSON, if it can be read.
    pub fn json<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        let text = self.meta(key)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Stores a value in `meta` as JSON.
    pub fn set_json(&self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.set_meta(key, &serde_json::to_string(value).unwrap_or_default())
    }

    /// Returns a random value of `meta`: 128 bits in hexadecimal, created at the first call.
    pub fn get_or_create_random(&self, name: &str) -> Result<String, Error> {
        if let Some(value) = self.meta(name)? {
            return Ok(value);
        }
        let half = || Ulid::generate().random() & u128::from(u64::MAX);
        // If another process creates it at the same time, the first value wins.
        self.set_if_missing(name, &format!("{:016x}{:016x}", half(), half()))?;
        self.value("SELECT value FROM meta WHERE key = ?", [name])
    }

    /// Records that a person wrote this content of a note on this machine.
    pub fn written_here(&self, note: NoteId, file: &[u8], now: DateTime<Utc>) -> Result<(), Error> {
        let sql = "INSERT OR IGNORE INTO written_here VALUES (?, ?, ?)";
        let hash = text_hash(&String::from_utf8_lossy(file));
        self.run(sql, params![note.to_string(), hash, now.timestamp_millis()])
    }

    /// Records that a text was forgotten, as a hash with a key of this machine.
    pub fn forgot(&self, note: NoteId, body: &str, now: DateTime<Utc>) -> Result<(), Error> {
        let Some(key) = self.text_key(body)? else {
            return Ok(());
        };
        let sql = "INSERT OR REPLACE INTO forgotten (text_key, note, at) VALUES (?, ?, ?)";
        self.run(sql, params![key, note.to_string(), now.timestamp_millis()])
    }

    /// Returns whether a person wrote or approved exactly this file of a note on this machine.
    pub fn was_written_here(&self, note: NoteId, file: &[u8]) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM written_here WHERE note = ? AND hash = ?";
        let hash = text_hash(&String::from_utf8_lossy(file));
        self.exists(sql, params![note.to_string(), hash])
    }

    /// Returns a number that changes when another connection changes the journal.
    pub fn data_version(&self) -> Result<i64, Error> {
        self.value("PRAGMA data_version", [])
    }

    /// Deletes the record that a note was forgotten.
    pub fn remembered(&self, note: NoteId) -> Result<(), Error> {
        self.run("DELETE FROM forgotten WHERE note = ?", [note.to_string()])
    }

    /// Returns when the same text was forgotten here, milliseconds since 1970.
    pub fn forgotten_at(&self, body: &str) -> Result<Option<i64>, Error> {
        let Some(key) = self.text_key(body)? else {
            return Ok(None);
        };
        self.first("SELECT at FROM forgotten WHERE text_key = ?", [key])
    }

    /// Returns a keyed hash of a text, ignoring white space and letter case; none for an empty text.
    fn text_key(&self, body: &str) -> Result<Option<String>, Error> {
        let words: Vec<String> = body.split_whitespace().map(str::to_lowercase).collect();
        if words.is_empty() {
            return Ok(None);
        }
        let key = self.get_or_create_random("text_key")?;
        // The key has a fixed length and the text is hashed first, so a length extension gives no
        // related hash.
        let hash = text_hash(&words.join(" "));
        Ok(Some(text_hash(&format!("{key}{hash}"))))
    }

    /// Checkpoints the write-ahead log.
    pub fn checkpoint(&self) -> Result<(), Error> {
        Ok(sqlite::checkpoint(&self.connection)?)
    }

    /// Writes a copy to a new file, as of one moment.
    pub fn copy_to(&self, path: &Path) -> Result<(), Error> {
        let path = path.to_string_lossy();
        self.connection.execute("VACUUM INTO ?1", [&*path])?;
        Ok(())
    }
}

/// Opens the file for writing, and reads its version. Once a repair has replaced the file, every commit to
/// the old one fails, because its rows would be lost. The repair holds the old file's write lock while it
/// replaces the file, and the commit hook runs under that lock.
fn connect(
    path: &Path,
    timeout: Duration,
    open: impl FnOnce(&Path, Duration) -> rusqlite::Result<Connection>,
) -> Result<(Connection, i64), Error> {
    if path.is_dir() {
        return Err(damage::seen(Error::Damaged(damage::A_FOLDER.to_owned())));
    }
    let before = inode(path);
    let mut connection = open(path, timeout)?;
    let version = sqlite::version(&connection)?;
    // The first read has opened the log by its name. If the file is still in its place now, it is its log,
    // because a repair moves the file before the log.
    let opened = inode(path);
    if before.is_some() && before != opened {
        return Err(Error::Replaced);
    }
    let path = path.to_owned();
    connection.commit_hook(Some(move || inode(&path) != opened))?;
    Ok((connection, version))
}

/// Returns whether a wait that began at `since` is over at `now`, all in milliseconds. A time far ahead of
/// now was stored by a clock that was wrong, and delays nothing.
pub fn is_over(since: i64, wait: i64, now: i64) -> bool {
    now.abs_diff(since) >= wait.unsigned_abs()
}

/// How far another machine's clock may be ahead, in minutes.
const CLOCK_TOLERANCE: i64 = 10;

/// Returns whether a stored time is ahead of now, so that a clock that was wrong wrote it.
pub fn is_ahead(at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    (at - now).num_minutes() > CLOCK_TOLERANCE
}

/// Turns on the write-ahead log if it is off, as in a copy of a database that SQLite or a backup made.
/// Without it a writer blocks readers.
fn use_log(connection: &Connection, timeout: Duration) -> rusqlite::Result<()> {
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    // The mode cannot change while others use the file, and a hook does not wait for that. Without
    // shared memory on the file system, SQLite keeps another mode.
    connection.busy_timeout(Duration::ZERO)?;
    let _ = connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
    connection.busy_timeout(timeout)
}

fn inode(path: &Path) -> Option<i64> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(Stamp::from_metadata(&metadata).inode)
}

/// Returns the `meta` key of the time when recording was resumed.
fn resumed_key(project: Option<&str>) -> String {
    format!("resumed {}", project.unwrap_or("*").to_lowercase())
}

fn day_of(now: DateTime<Utc>) -> i64 {
    now.timestamp().div_euclid(24 * 60 * 60)
}

#[cfg(test)]
pub(crate) mod tests;
