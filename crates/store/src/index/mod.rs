//! The derived index: SQLite with FTS5 over the notes. Delete it and nothing is lost.
//!
//! - One writer at a time, under the index lock; readers open the file read-only and never wait.
//! - A file that is missing, corrupt, foreign or of another version is built anew beside the old one
//!   and swapped in under that lock. The old write-ahead log goes first, since SQLite would take it
//!   for the new file's own.
//! - Nothing that is shown depends on the order in which notes were indexed: ties are broken by id,
//!   so an index that was kept in step and one that was built anew give the same answers.

mod cited;
mod links;
mod postings;
mod reference;
mod supersession;
mod tasks;
mod triggers;
mod usage;

pub use self::usage::ByMonth;

pub use self::links::{LinkCounts, Nowhere, Unresolved};
pub use self::reference::Unresolvable;
pub use self::triggers::Worded;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_note::{
    id::{IdPrefix, NoteId, SHORT_ID_LENGTH},
    note::{Kind, Note, NoteType, Scope, Severity, Source, State, parse_timestamp, timestamp},
};
use anamnesis_text::{
    clean::{clean, one_line},
    redact::redact,
};
use chrono::{DateTime, Utc};
pub use postings::{BLOCK_LENGTH, Block, Document, Documents, Postings};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Row, params, params_from_iter, types::Value,
};

use self::postings::Changes;
use crate::{
    fs::{
        file::Stamp,
        home::Home,
        lock::{self, Lock, Subject},
    },
    notes::{Listing, NotePath, Notes, Problem, Stored},
    sqlite,
};

/// The version of the tables below. A file with another one is built anew.
const VERSION: i64 = 6;

/// How many rounds a refresh makes at most while others go on writing notes.
const MAX_ROUNDS: usize = 8;

/// How many outdated notes are worth building the index anew for.
const MANY_OUTDATED: usize = 200;

/// The stamp of a problem that is looked at again each time: it does not lie in one file alone.
const NO_STAMP: Stamp = Stamp {
    size: 0,
    modified: 0,
    inode: 0,
};

const SCHEMA: &str = "
CREATE TABLE note (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  path TEXT NOT NULL UNIQUE,
  size INTEGER NOT NULL, modified INTEGER NOT NULL, inode INTEGER NOT NULL,
  scope TEXT NOT NULL, type TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
  title TEXT NOT NULL, project TEXT NOT NULL, machine_id TEXT NOT NULL,
  user_id TEXT NOT NULL, workspace_id TEXT NOT NULL,
  source TEXT NOT NULL, by_agent INTEGER NOT NULL, confidence REAL NOT NULL, session TEXT,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  tags TEXT NOT NULL, reflected INTEGER NOT NULL, pinned INTEGER NOT NULL, severity TEXT,
  superseded INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL,
  tail TEXT NOT NULL AS (substr(id, -6))
) STRICT;
CREATE INDEX note_tail ON note (tail);
CREATE INDEX note_recent ON note (project, type, updated_at DESC, confidence DESC, id DESC);
CREATE INDEX note_pinned ON note (project, type) WHERE pinned = 1;
CREATE INDEX note_session ON note (session) WHERE session IS NOT NULL;
CREATE INDEX note_superseded ON note (superseded) WHERE superseded = 1;
CREATE TABLE problem (
  path TEXT PRIMARY KEY, reason TEXT NOT NULL,
  size INTEGER NOT NULL, modified INTEGER NOT NULL, inode INTEGER NOT NULL
) STRICT;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE VIRTUAL TABLE note_text USING fts5(title, tags, body, tokenize = 'porter unicode61');
";

/// The largest index in memory, in pages of 4 KiB.
const MAX_PAGES_IN_MEMORY: u32 = 128 * 1024;

/// The notes whose id begins or ends with a text of six characters or more.
const BY_REFERENCE: &str = "SELECT * FROM note
  WHERE id BETWEEN ? AND ? OR (tail = ? AND id GLOB ?) ORDER BY id";

/// The other notes with the same last six characters of their id.
const SHARING_A_TAIL: &str = "SELECT id FROM note WHERE tail = ? AND id <> ?";

/// Everything that belongs in the file beside the parts: a view, a trigger or a table more is not ours.
const OBJECTS: &[&str] = &[
    "meta",
    "note",
    "note_pinned",
    "note_recent",
    "note_session",
    "note_superseded",
    "note_tail",
    "note_text",
    "note_text_config",
    "note_text_content",
    "note_text_data",
    "note_text_docsize",
    "note_text_idx",
    "problem",
    "sqlite_autoindex_meta_1",
    "sqlite_autoindex_note_1",
    "sqlite_autoindex_note_2",
    "sqlite_autoindex_problem_1",
];

/// Tables of one matter, kept by a module of its own: filled as a note is taken up, emptied as it is
/// taken out.
struct Part {
    schema: &'static str,
    objects: &'static [&'static str],
    insert: fn(&Connection, i64, &Note) -> rusqlite::Result<()>,
    remove: fn(&Connection, i64) -> rusqlite::Result<()>,
}

const PARTS: &[Part] = &[
    postings::PART,
    supersession::PART,
    triggers::PART,
    links::PART,
    tasks::PART,
    usage::PART,
    cited::PART,
];

/// The index cannot be used as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none.
    #[error("no index yet")]
    Missing,
    /// It is not one of ours, or of another version.
    #[error("the index is {0}")]
    Foreign(String),
    /// SQLite refused.
    #[error("index: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file system refused.
    #[error("index: {0}")]
    Io(#[from] io::Error),
    /// Somebody else writes it for longer than this caller can wait.
    #[error("the index is being written by another anamnesis process")]
    Locked,
}

impl Error {
    /// Tells whether somebody else was at it for longer than this caller can wait, by our lock or by
    /// SQLite's own.
    fn is_busy(&self) -> bool {
        match self {
            Self::Locked => true,
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            ),
            Self::Missing | Self::Foreign(_) | Self::Io(_) => false,
        }
    }

    /// Tells whether the file itself is damaged: it has to be built anew.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
            ),
            Self::Missing | Self::Foreign(_) => true,
            Self::Io(_) | Self::Locked => false,
        }
    }
}

/// What the index knows of a note.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a column of its own, true of a note or not"
)]
pub struct Entry {
    /// Where its file lies.
    pub path: NotePath,
    /// What its file looked like when it was indexed.
    pub stamp: Stamp,
    /// The type.
    pub note_type: NoteType,
    /// The finer kind.
    pub kind: Kind,
    /// Whether it is in use.
    pub state: State,
    /// The title, as written.
    pub title: String,
    /// The project key.
    pub project: String,
    /// The machine that wrote it.
    pub machine_id: String,
    /// The Python version's user.
    pub user_id: String,
    /// The Python version's workspace.
    pub workspace_id: String,
    /// How it came to be.
    pub source: Source,
    /// Whether it says that a model wrote it through a tool.
    pub by_agent: bool,
    /// From 0 to 1.
    pub confidence: f64,
    /// The client's id of the session it came from.
    pub session: Option<String>,
    /// When it was made; empty when the file does not say.
    pub created_at: String,
    /// When its content last changed, UTC in the form of notes, so that text order is time order.
    pub updated_at: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Whether a reflection has taken it up.
    pub reflected: bool,
    /// Kept at the top.
    pub pinned: bool,
    /// How bad it is to run into a warning.
    pub severity: Option<Severity>,
    /// Whether a note in use replaces it.
    pub superseded: bool,
    /// Characters of title and body.
    pub length: i64,
}

impl Entry {
    /// The id.
    pub fn id(&self) -> NoteId {
        self.path.id
    }

    /// Who wrote it, as people and models are shown it.
    pub fn author(&self) -> &'static str {
        Note {
            source: self.source,
            actor: self.by_agent.then(|| "agent".to_owned()),
            ..blank()
        }
        .author()
    }

    /// The one word for what it is, as people and models are shown it.
    pub fn shown_kind(&self) -> &'static str {
        match self.source {
            Source::SessionEnd => Kind::Experience.shown(),
            _ => self.kind.shown(),
        }
    }

    /// Reads a row that begins with all columns of `note`, in the order of the table: looking each up by
    /// its name takes longer than to read it.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        fn word<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
            let text: String = row.get(column)?;
            text.parse().map_err(|_| {
                rusqlite::Error::FromSqlConversionFailure(
                    column,
                    rusqlite::types::Type::Text,
                    text.into(),
                )
            })
        }
        let tags: String = row.get(21)?;
        let severity: Option<String> = row.get(24)?;
        Ok(Self {
            path: word(row, 2)?,
            stamp: stamp_of(row, 3)?,
            note_type: word(row, 7)?,
            kind: word(row, 8)?,
            state: word(row, 9)?,
            title: row.get(10)?,
            project: row.get(11)?,
            machine_id: row.get(12)?,
            user_id: row.get(13)?,
            workspace_id: row.get(14)?,
            source: word(row, 15)?,
            by_agent: row.get(16)?,
            confidence: row.get(17)?,
            session: row.get(18)?,
            created_at: row.get(19)?,
            updated_at: row.get(20)?,
            tags: serde_json::from_str(&tags).unwrap_or_default(),
            reflected: row.get(22)?,
            pinned: row.get(23)?,
            severity: severity.and_then(|severity| severity.parse().ok()),
            superseded: row.get(25)?,
            length: row.get(26)?,
        })
    }
}

fn blank() -> Note {
    Note::new(
        NoteId::of_session(""),
        NoteType::Semantic,
        DateTime::UNIX_EPOCH,
    )
}

/// Which notes a question is about. Every value is bound, never pasted into SQL.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Exactly the projects of these keys; of none: all.
    pub projects: Vec<String>,
    /// Exactly this type.
    pub note_type: Option<NoteType>,
    /// Exactly this kind.
    pub kind: Option<Kind>,
    /// Exactly this scope.
    pub scope: Option<Scope>,
    /// With this tag.
    pub tag: Option<String>,
    /// Exactly this user of the Python version.
    pub user_id: Option<String>,
    /// Exactly this workspace of the Python version.
    pub workspace_id: Option<String>,
    /// Superseded notes, too.
    pub with_superseded: bool,
    /// Tombstones, too.
    pub with_forgotten: bool,
}

impl Filter {
    fn conditions(&self) -> (String, Vec<Value>) {
        let mut values: Vec<_> = self.projects.iter().cloned().map(Value::Text).collect();
        let keys = format!("note.project IN ({})", vec!["?"; values.len()].join(", "));
        let mut conditions = vec![if values.is_empty() { "1" } else { &keys }];
        let mut add = |condition, value: &str| {
            conditions.push(condition);
            values.push(Value::Text(value.to_owned()));
        };
        if let Some(note_type) = self.note_type {
            add("note.type = ?", note_type.as_str());
        }
        if let Some(kind) = self.kind {
            add("note.kind = ?", kind.as_str());
        }
        if let Some(scope) = self.scope {
            add("note.scope = ?", scope.as_str());
        }
        if let Some(tag) = &self.tag {
            add("? IN (SELECT value FROM json_each(note.tags))", tag);
        }
        if let Some(user) = &self.user_id {
            add("note.user_id = ?", user);
        }
        if let Some(workspace) = &self.workspace_id {
            add("note.workspace_id = ?", workspace);
        }
        if !self.with_superseded {
            conditions.push("note.superseded = 0");
        }
        if !self.with_forgotten {
            conditions.push("note.state <> 'forgotten'");
        }
        (conditions.join(" AND "), values)
    }
}

/// How much each column of the text weighs in the score.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    /// The title.
    pub title: f64,
    /// The tags.
    pub tags: f64,
    /// The body.
    pub body: f64,
}

/// What a refresh did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Notes in the index now.
    pub total: usize,
    /// Files read because they were new or had changed.
    pub read: usize,
    /// Notes taken out because their file is gone.
    pub removed: usize,
}

/// Counts for `status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Notes that are not forgotten, superseded ones included.
    pub total: usize,
    /// By project.
    pub by_project: BTreeMap<String, usize>,
    /// By type.
    pub by_type: BTreeMap<String, usize>,
    /// By scope.
    pub by_scope: BTreeMap<String, usize>,
    /// By workspace, for the Python version's status.
    pub by_workspace: BTreeMap<String, usize>,
    /// By state.
    pub by_state: BTreeMap<String, usize>,
    /// By the machine that wrote them.
    pub by_machine: BTreeMap<String, usize>,
}

/// An open index.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    // Held by writers; dropped last.
    lock: Option<Lock>,
}

/// Notes of one project that may come back at the start of a session.
#[derive(Debug, Clone, Copy)]
pub struct Recent<'a> {
    /// The project.
    pub project: &'a str,
    /// The type.
    pub note_type: NoteType,
    /// What counts as now: a later time in a file counts as this one.
    pub now: DateTime<Utc>,
    /// Only notes that are kept at the top.
    pub only_pinned: bool,
    /// How many at most.
    pub limit: usize,
}

impl Index {
    /// Opens the index for reading. Nothing is built and nothing is written.
    ///
    /// # Errors
    /// When there is none, or it is not one that this version can read.
    pub fn open(home: &Home) -> Result<Self, Error> {
        let path = home.index();
        if !path.exists() {
            return Err(Error::Missing);
        }
        let connection = sqlite::open_read(&path, Duration::from_millis(100))?;
        // One look at the index: its questions see the same notes, and the file is locked once, not
        // at each of them.
        connection.execute_batch("BEGIN")?;
        check(&connection)?;
        Ok(Self {
            connection,
            lock: None,
        })
    }

    /// An index in memory of notes that need not lie on the disk, such as those of another time. It is
    /// gone when it is dropped, whatever happens to the process.
    ///
    /// # Errors
    /// When SQLite refuses, or it would be larger than 512 MiB.
    pub fn of(notes: impl IntoIterator<Item = Stored>) -> Result<Self, Error> {
        let connection = sqlite::open_in_memory()?;
        connection.execute_batch(&format!(
            "PRAGMA temp_store = MEMORY; PRAGMA max_page_count = {MAX_PAGES_IN_MEMORY};"
        ))?;
        create(&connection)?;
        let transaction = connection.unchecked_transaction()?;
        let mut changes = Changes::default();
        for stored in notes {
            insert(&transaction, &stored, &mut changes)?;
        }
        settle(&transaction, changes)?;
        transaction.commit()?;
        Ok(Self {
            connection,
            lock: None,
        })
    }

    /// Opens the index for writing; one that cannot be used is built anew from the notes.
    ///
    /// # Errors
    /// [`Error::Locked`] when somebody else writes for longer than `patience`.
    pub fn open_to_write(home: &Home, notes: &Notes, patience: Duration) -> Result<Self, Error> {
        let lock = lock::acquire(home, Subject::Index, patience)?.ok_or(Error::Locked)?;
        match Self::open_existing(&home.index(), patience) {
            Ok(connection) => Ok(Self {
                connection,
                lock: Some(lock),
            }),
            Err(_) => Self::build(home, notes, lock, patience),
        }
    }

    /// Opens the index for writing and brings it in step with the notes.
    ///
    /// Where most files are others than the index knows (a copied store, a restored backup), it is
    /// built anew: wiping each old text from a full-text index takes twenty times as long.
    ///
    /// # Errors
    /// As [`Index::open_to_write`] and [`Index::refresh`].
    pub fn in_step(home: &Home, notes: &Notes, patience: Duration) -> Result<Self, Error> {
        let mut index = Self::open_to_write(home, notes, patience)?;
        let refreshed = match index.is_far_behind(notes) {
            Ok(true) => None,
            Ok(false) => Some(index.refresh(notes).map(drop)),
            Err(error) => Some(Err(error)),
        };
        match refreshed.map(|done| done.and_then(|()| index.take_up_usage(home).map(drop))) {
            Some(Ok(())) => Ok(index),
            Some(Err(error)) if !error.is_damage() => Err(error),
            _ => index.build_again(home, notes, patience),
        }
    }

    /// The index for a caller in a hurry: in step with the notes, or as it is while another process
    /// writes it.
    ///
    /// # Errors
    /// As [`Index::in_step`], but [`Error::Locked`] only where there is none to be read, either.
    pub fn in_step_or_as_is(home: &Home, notes: &Notes, patience: Duration) -> Result<Self, Error> {
        match Self::in_step(home, notes, patience) {
            Err(error) if error.is_busy() => Self::open(home).map_err(|_| Error::Locked),
            opened => opened,
        }
    }

    /// Builds the index anew if SQLite's own check finds fault with it.
    ///
    /// # Errors
    /// As [`Index::rebuild`].
    pub fn checked(self, home: &Home, notes: &Notes, patience: Duration) -> Result<Self, Error> {
        match self.integrity() {
            Ok(()) => Ok(self),
            Err(_) => self.build_again(home, notes, patience),
        }
    }

    /// Builds an index in the place of this one, under the lock that this one holds.
    fn build_again(
        mut self,
        home: &Home,
        notes: &Notes,
        patience: Duration,
    ) -> Result<Self, Error> {
        let lock = self.lock.take().ok_or(Error::Locked)?;
        drop(self);
        Self::build(home, notes, lock, patience)
    }

    /// Tells whether more than half of the notes, and many, are others than the index knows.
    fn is_far_behind(&self, notes: &Notes) -> Result<bool, Error> {
        if !self.is_behind(notes) {
            return Ok(false);
        }
        let known = known_files(&self.connection)?;
        let listing = notes.list();
        let same = listing
            .notes
            .iter()
            .filter(|(path, stamp)| {
                known
                    .get(&path.to_string())
                    .is_some_and(|(_, old)| old == stamp)
            })
            .count();
        let outdated = known.len() - same.min(known.len());
        Ok(outdated >= MANY_OUTDATED && 2 * outdated > known.len())
    }

    /// Opens the index for writing without building one.
    ///
    /// # Errors
    /// When there is none that can be used, or somebody else writes for longer than `patience`.
    pub fn open_if_usable(home: &Home, patience: Duration) -> Result<Self, Error> {
        let lock = lock::acquire(home, Subject::Index, patience)?.ok_or(Error::Locked)?;
        let connection = Self::open_existing(&home.index(), patience)?;
        Ok(Self {
            connection,
            lock: Some(lock),
        })
    }

    fn open_existing(path: &Path, patience: Duration) -> Result<Connection, Error> {
        if !path.exists() {
            return Err(Error::Missing);
        }
        let connection = sqlite::open_write(path, patience)?;
        check(&connection)?;
        connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;")?;
        Ok(connection)
    }

    /// Builds the index anew from the notes and swaps it in. Readers of the old one go on with it.
    ///
    /// # Errors
    /// [`Error::Locked`] when somebody else writes for longer than `patience`; when the file cannot be
    /// written.
    pub fn rebuild(home: &Home, notes: &Notes, patience: Duration) -> Result<Self, Error> {
        let lock = lock::acquire(home, Subject::Index, patience)?.ok_or(Error::Locked)?;
        Self::build(home, notes, lock, patience)
    }

    fn build(home: &Home, notes: &Notes, lock: Lock, patience: Duration) -> Result<Self, Error> {
        let path = home.index();
        let fresh = beside(&path, "new");
        remove_database(&fresh)?;
        {
            let mut index = Self {
                connection: sqlite::open_write(&fresh, patience)?,
                lock: None,
            };
            // Nobody else sees this file, and a half-built one is thrown away.
            index
                .connection
                .execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;")?;
            create(&index.connection)?;
            index.refresh(notes)?;
            index.take_up_usage(home)?;
            index.connection.execute_batch(&format!(
                "INSERT INTO note_text (note_text, rank) VALUES ('secure-delete', 1);
                 PRAGMA user_version = {VERSION}; PRAGMA journal_mode = WAL;"
            ))?;
            index.checkpoint()?;
        }
        fs::File::open(&fresh)?.sync_all()?;
        let old = beside(&path, "old");
        match fs::rename(&path, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        remove_side_files(&path)?;
        fs::rename(&fresh, &path)?;
        remove_side_files(&fresh)?;
        remove_database(&old)?;
        let connection = Self::open_existing(&path, patience)?;
        Ok(Self {
            connection,
            lock: Some(lock),
        })
    }

    /// Brings the index in step with the trees: reads only files whose stamp changed.
    ///
    /// # Errors
    /// When SQLite refuses; the index is then as it was.
    pub fn refresh(&mut self, notes: &Notes) -> Result<Refreshed, Error> {
        let mut sum = Refreshed::default();
        for _ in 0..MAX_ROUNDS {
            let times = notes.folder_times();
            let round = self.refresh_once(notes, &notes.list(), times)?;
            sum = Refreshed {
                total: round.total,
                read: sum.read + round.read,
                removed: sum.removed + round.removed,
            };
            if notes.folder_times() == times {
                break;
            }
        }
        Ok(sum)
    }

    fn refresh_once(
        &mut self,
        notes: &Notes,
        listing: &Listing,
        times: [i64; 6],
    ) -> Result<Refreshed, Error> {
        let transaction = self.connection.unchecked_transaction()?;
        let mut known = known_files(&transaction)?;
        let mut known_problems = known_problems(&transaction)?;
        let mut refreshed = Refreshed {
            total: 0,
            read: 0,
            removed: 0,
        };
        let mut unread: Vec<NotePath> = Vec::new();
        let mut winners: HashMap<NoteId, NotePath> = HashMap::with_capacity(listing.notes.len());
        let mut problems: Vec<(Problem, Stamp)> = Vec::new();
        for (path, stamp) in &listing.notes {
            let text = path.to_string();
            // One id, one note: the first place in the order of the listing is the note's.
            if let Some(first) = winners.get(&path.id) {
                problems.push((
                    Problem {
                        path: text,
                        reason: format!("the same id as {first}"),
                    },
                    NO_STAMP,
                ));
                continue;
            }
            if let Some((_, old)) = known.get(&text)
                && old == stamp
            {
                known.remove(&text);
                winners.insert(path.id, *path);
            } else if let Some((reason, old)) = known_problems.get(&text)
                && old == stamp
            {
                problems.push((
                    Problem {
                        path: text,
                        reason: reason.clone(),
                    },
                    *stamp,
                ));
            } else {
                winners.insert(path.id, *path);
                unread.push(*path);
            }
        }
        let mut touched = !unread.is_empty() || !known.is_empty();
        let rewritten: HashSet<String> = unread.iter().map(NotePath::to_string).collect();
        let mut outdated: Vec<(i64, &String)> = known
            .iter()
            .map(|(text, (number, _))| (*number, text))
            .collect();
        // FTS5 writes out all it holds whenever a number is lower than the one before.
        outdated.sort_unstable();
        let mut changes = Changes::default();
        for (number, text) in outdated {
            remove(&transaction, number, &mut changes)?;
            if !rewritten.contains(text) {
                refreshed.removed += 1;
            }
        }
        for path in unread {
            refreshed.read += 1;
            match notes.read(path) {
                Ok(stored) => insert(&transaction, &stored, &mut changes)?,
                // Gone since it was listed: the next round sees it.
                Err(_) if notes.stamp(path).is_none() => {}
                Err(error) => {
                    let reason = match error {
                        crate::notes::Error::Unreadable { source, .. } => source.to_string(),
                        other => other.to_string(),
                    };
                    let stamp = notes.stamp(path).unwrap_or(NO_STAMP);
                    problems.push((
                        Problem {
                            path: path.to_string(),
                            reason,
                        },
                        stamp,
                    ));
                }
            }
        }
        problems.extend(listing.problems.iter().map(|p| (p.clone(), NO_STAMP)));
        for (problem, stamp) in problems {
            let same = known_problems
                .remove(&problem.path)
                .is_some_and(|old| old == (problem.reason.clone(), stamp));
            if !same {
                touched = true;
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO problem VALUES (?, ?, ?, ?, ?)")?
                    .execute(params![
                        problem.path,
                        problem.reason,
                        stamp.size,
                        stamp.modified,
                        stamp.inode
                    ])?;
            }
        }
        for path in known_problems.keys() {
            touched = true;
            transaction.execute("DELETE FROM problem WHERE path = ?", [path])?;
        }
        if touched {
            settle(&transaction, changes)?;
        }
        let times = folder_times_text(times);
        transaction.execute(
            "INSERT INTO meta VALUES ('folder_times', ?1)
             ON CONFLICT (key) DO UPDATE SET value = ?1 WHERE value <> ?1",
            [times],
        )?;
        refreshed.total = count(&transaction, "SELECT count(*) FROM note")?;
        transaction.commit()?;
        Ok(refreshed)
    }

    /// Takes up one note that was just written.
    ///
    /// # Errors
    /// When SQLite refuses; the next refresh takes it up then.
    pub fn record(&mut self, stored: &Stored) -> Result<(), Error> {
        let transaction = self.connection.unchecked_transaction()?;
        let mut changes = Changes::default();
        remove_id(&transaction, stored.path.id, &mut changes)?;
        insert(&transaction, stored, &mut changes)?;
        settle(&transaction, changes)?;
        transaction.commit()?;
        Ok(())
    }

    /// Takes up what became of these notes, without a walk: read where their file is, taken out where
    /// it is gone.
    ///
    /// `before` is when the folders had changed last before the files were written. An index that was
    /// in step then is in step now, and knows it.
    ///
    /// # Errors
    /// When SQLite refuses; the next refresh takes them up then.
    pub fn record_all(
        &mut self,
        notes: &Notes,
        ids: &BTreeSet<NoteId>,
        before: [i64; 6],
    ) -> Result<(), Error> {
        let after = folder_times_text(notes.folder_times());
        let transaction = self.connection.unchecked_transaction()?;
        let mut changes = Changes::default();
        for id in ids {
            remove_id(&transaction, *id, &mut changes)?;
        }
        let mut is_complete = true;
        for id in ids {
            if let Some(path) = notes.find(*id) {
                match notes.read(path) {
                    Ok(stored) => insert(&transaction, &stored, &mut changes)?,
                    // What cannot be read is for a refresh to list.
                    Err(_) => is_complete = false,
                }
            }
        }
        settle(&transaction, changes)?;
        if is_complete {
            transaction.execute(
                "UPDATE meta SET value = ? WHERE key = 'folder_times' AND value = ?",
                [after, folder_times_text(before)],
            )?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Folds the write-ahead log into the file, so that what was deleted is in no byte of it.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn checkpoint(&self) -> Result<(), Error> {
        Ok(sqlite::checkpoint(&self.connection)?)
    }

    /// Removes what a killed rebuild left beside this index, which was opened for writing: who holds
    /// it holds the lock, so nobody is building.
    ///
    /// # Errors
    /// When a leftover cannot be removed.
    pub fn sweep(&self, home: &Home) -> Result<(), Error> {
        for leftover in ["new", "old"] {
            remove_database(&beside(&home.index(), leftover))?;
        }
        Ok(())
    }

    /// Tells whether a folder of notes changed since the last refresh.
    pub fn is_behind(&self, notes: &Notes) -> bool {
        let recorded: rusqlite::Result<String> = self.connection.query_row(
            "SELECT value FROM meta WHERE key = 'folder_times'",
            [],
            |row| row.get(0),
        );
        let current = folder_times_text(notes.folder_times());
        recorded.map_or(true, |text| text != current)
    }

    /// Lists notes, newest first, then by id from the last.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn list(&self, filter: &Filter, limit: usize) -> Result<Vec<Entry>, Error> {
        let (conditions, mut values) = filter.conditions();
        values.push(bound(limit));
        self.entries(
            &format!(
                "SELECT * FROM note WHERE {conditions} ORDER BY updated_at DESC, id DESC LIMIT ?"
            ),
            values,
        )
    }

    /// Counts the notes that [`Index::list`] would give without a limit.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn count(&self, filter: &Filter) -> Result<usize, Error> {
        let (conditions, values) = filter.conditions();
        let sql = format!("SELECT count(*) FROM note WHERE {conditions}");
        let number: i64 = self
            .connection
            .query_row(&sql, params_from_iter(values), |row| row.get(0))?;
        Ok(usize::try_from(number).unwrap_or(0))
    }

    /// Notes of a project and a type that may be given unasked, newest first: not superseded, in
    /// use, no tasks, and session notes only until a reflection has taken them up.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn recent(&self, query: Recent<'_>) -> Result<Vec<Entry>, Error> {
        const CONDITIONS: &str = "project = ? AND type = ? AND superseded = 0 AND state = 'active' \
            AND kind <> 'task' AND (type <> 'episodic' OR reflected = 0)";
        const ORDER: &str = "ORDER BY updated_at DESC, confidence DESC, id DESC LIMIT ?";
        let now = timestamp(query.now);
        let values = |now: &str| {
            vec![
                Value::Text(query.project.to_owned()),
                Value::Text(query.note_type.as_str().to_owned()),
                Value::Text(now.to_owned()),
                bound(query.limit),
            ]
        };
        // Two questions, since a note from the future counts as one of now, and an index can only
        // be walked in the order of what is written.
        let sql = |comparison| {
            // Few are pinned; in the order of time every note of the project would be looked at.
            let (index, pinned) = if query.only_pinned {
                ("INDEXED BY note_pinned", "AND pinned = 1")
            } else {
                ("", "")
            };
            format!(
                "SELECT * FROM note {index} WHERE {CONDITIONS} AND updated_at {comparison} ? {pinned} {ORDER}"
            )
        };
        let mut entries = self.entries(&sql(">"), values(&now))?;
        for entry in &mut entries {
            entry.updated_at.clone_from(&now);
        }
        entries.extend(self.entries(&sql("<="), values(&now))?);
        entries.sort_by(|a, b| {
            (&b.updated_at, b.confidence, b.id())
                .partial_cmp(&(&a.updated_at, a.confidence, a.id()))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        entries.truncate(query.limit);
        Ok(entries)
    }

    /// Finds notes by an FTS5 expression, best first, with the score (higher is better).
    ///
    /// # Errors
    /// When SQLite refuses, for instance because the expression is none.
    pub fn find(
        &self,
        expression: &str,
        filter: &Filter,
        weights: Weights,
        limit: usize,
    ) -> Result<Vec<(Entry, f64)>, Error> {
        let (conditions, mut values) = filter.conditions();
        let mut bound_values = vec![
            Value::Real(weights.title),
            Value::Real(weights.tags),
            Value::Real(weights.body),
            Value::Text(expression.to_owned()),
        ];
        bound_values.append(&mut values);
        bound_values.push(bound(limit));
        let sql = format!(
            "SELECT note.*, bm25(note_text, ?, ?, ?) AS score
             FROM note_text JOIN note ON note.number = note_text.rowid
             WHERE note_text MATCH ? AND {conditions}
             ORDER BY score, note.updated_at DESC, note.id DESC LIMIT ?"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(bound_values), |row| {
            // FTS5 gives the better note the smaller number.
            Ok((Entry::read(row)?, -row.get::<_, f64>("score")?))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The note of an id, tombstones included.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn get(&self, id: NoteId) -> Result<Option<Entry>, Error> {
        let entry = self
            .connection
            .query_row(
                "SELECT * FROM note WHERE id = ?",
                [id.to_string()],
                Entry::read,
            )
            .optional()?;
        Ok(entry)
    }

    /// Every note whose id begins or ends with what was typed, sorted by id.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn matching(&self, reference: &IdPrefix) -> Result<Vec<Entry>, Error> {
        let typed = reference.as_str();
        let tail = &typed[typed.len() - SHORT_ID_LENGTH..];
        // A reference has six characters or more. All that an id can have come before `~`, and none
        // has a meaning to GLOB.
        let values = [typed, &format!("{typed}~"), tail, &format!("*{typed}")];
        let values = values.map(|value| Value::Text(value.to_owned()));
        self.entries(BY_REFERENCE, values.into())
    }

    /// Every id's last characters that stand for one note, as long as they have to be.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn short_id(&self, id: NoteId) -> Result<String, Error> {
        let whole = id.to_string();
        let sharing: Vec<String> = self
            .connection
            .prepare_cached(SHARING_A_TAIL)?
            .query_map([&id.short(), &whole], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut tails = (SHORT_ID_LENGTH..whole.len()).map(|length| id.tail(length));
        let alone = |tail: &String| !sharing.iter().any(|other| other.ends_with(tail));
        Ok(tails.find(alone).unwrap_or(whole))
    }

    /// Notes that replace the one of `id`.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn superseded_by(&self, id: NoteId) -> Result<Vec<Entry>, Error> {
        self.entries(
            "SELECT note.* FROM note JOIN supersedes USING (number) WHERE supersedes.id = ? ORDER BY note.id",
            vec![Value::Text(id.to_string())],
        )
    }

    /// Files that are not taken as notes, sorted by path.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn problems(&self) -> Result<Vec<Problem>, Error> {
        let mut statement = self
            .connection
            .prepare("SELECT path, reason FROM problem ORDER BY path")?;
        let rows = statement.query_map([], |row| {
            Ok(Problem {
                path: row.get(0)?,
                reason: row.get(1)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Counts for `status`.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn counts(&self) -> Result<Counts, Error> {
        let by = |column: &str| -> Result<BTreeMap<String, usize>, Error> {
            let sql = format!(
                "SELECT {column}, count(*) FROM note WHERE state <> 'forgotten' GROUP BY {column}"
            );
            let mut statement = self.connection.prepare(&sql)?;
            let rows = statement.query_map([], |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                ))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        Ok(Counts {
            total: count(
                &self.connection,
                "SELECT count(*) FROM note WHERE state <> 'forgotten'",
            )?,
            by_project: by("project")?,
            by_type: by("type")?,
            by_scope: by("scope")?,
            by_workspace: by("workspace_id")?,
            by_state: by("state")?,
            by_machine: by("machine_id")?,
        })
    }

    /// Runs SQLite's own check of the file, and reads every list of notes; `Ok` when nothing is found.
    ///
    /// # Errors
    /// What it found.
    pub fn integrity(&self) -> Result<(), Error> {
        let answer: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if answer == "ok" {
            self.read_postings()
        } else {
            Err(Error::Foreign(format!("damaged: {answer}")))
        }
    }

    fn entries(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Entry>, Error> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params_from_iter(values), Entry::read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn folder_times_text(times: [i64; 6]) -> String {
    serde_json::json!(times).to_string()
}

fn bound(limit: usize) -> Value {
    Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX))
}

/// Makes the tables in an empty file.
fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(SCHEMA)?;
    for part in PARTS {
        connection.execute_batch(part.schema)?;
    }
    Ok(())
}

/// Tells whether the file is an index of this version and nothing else.
fn check(connection: &Connection) -> Result<(), Error> {
    let version = sqlite::version(connection)?;
    if version != VERSION {
        return Err(Error::Foreign(format!(
            "of version {version}, this program reads {VERSION}"
        )));
    }
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema")?;
    let found: BTreeSet<String> = statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let parts = PARTS.iter().flat_map(|part| part.objects);
    let expected = OBJECTS
        .iter()
        .chain(parts)
        .map(|name| (*name).to_owned())
        .collect();
    if found == expected {
        Ok(())
    } else {
        Err(Error::Foreign("not of this program's making".to_owned()))
    }
}

fn count(connection: &Connection, sql: &str) -> rusqlite::Result<usize> {
    connection
        .query_row(sql, [], |row| row.get::<_, i64>(0))
        .map(|n| usize::try_from(n).unwrap_or(0))
}

fn stamp_of(row: &Row<'_>, first: usize) -> rusqlite::Result<Stamp> {
    Ok(Stamp {
        size: row.get(first)?,
        modified: row.get(first + 1)?,
        inode: row.get(first + 2)?,
    })
}

fn known_files(connection: &Connection) -> rusqlite::Result<HashMap<String, (i64, Stamp)>> {
    let mut statement =
        connection.prepare("SELECT path, number, size, modified, inode FROM note")?;
    statement
        .query_map([], |row| {
            Ok((row.get(0)?, (row.get(1)?, stamp_of(row, 2)?)))
        })?
        .collect()
}

fn known_problems(connection: &Connection) -> rusqlite::Result<BTreeMap<String, (String, Stamp)>> {
    let mut statement =
        connection.prepare("SELECT path, reason, size, modified, inode FROM problem")?;
    statement
        .query_map([], |row| {
            Ok((row.get(0)?, (row.get(1)?, stamp_of(row, 2)?)))
        })?
        .collect()
}

/// Takes out whatever is known under an id.
fn remove_id(connection: &Connection, id: NoteId, changes: &mut Changes) -> Result<(), Error> {
    let numbers: Vec<i64> = connection
        .prepare_cached("SELECT number FROM note WHERE id = ?")?
        .query_map([id.to_string()], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for number in numbers {
        remove(connection, number, changes)?;
    }
    Ok(())
}

fn remove(connection: &Connection, number: i64, changes: &mut Changes) -> Result<(), Error> {
    changes.remove(connection, number)?;
    for part in PARTS {
        (part.remove)(connection, number)?;
    }
    for sql in [
        "DELETE FROM note WHERE number = ?",
        "DELETE FROM note_text WHERE rowid = ?",
    ] {
        connection.prepare_cached(sql)?.execute([number])?;
    }
    Ok(())
}

/// The text as it may stand in the index: nothing invisible, no secret.
fn inert(text: &str) -> String {
    redact(&clean(text)).text.into_owned()
}

fn insert(connection: &Connection, stored: &Stored, changes: &mut Changes) -> Result<(), Error> {
    let mut note = stored.note();
    // A file that came by hand or by sync may hold what we would never write.
    note.title = inert(&note.title);
    note.body = inert(&note.body);
    let updated_at = parse_timestamp(&note.updated_at)
        .map(timestamp)
        .unwrap_or_default();
    let length = note.title.chars().count() + note.body.chars().count();
    connection
        .prepare_cached(
            "INSERT INTO note (number, id, path, size, modified, inode, scope, type, kind, state, title, project,
               machine_id, user_id, workspace_id, source, by_agent, confidence, session, created_at, updated_at,
               tags, reflected, pinned, severity, length)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            changes.free_number(note.id),
            note.id.to_string(),
            stored.path.to_string(),
            stored.stamp.size,
            stored.stamp.modified,
            stored.stamp.inode,
            note.scope.as_str(),
            note.note_type.as_str(),
            note.kind().as_str(),
            note.state.as_str(),
            note.title,
            note.project,
            note.machine_id,
            note.user_id.as_deref().unwrap_or("self"),
            note.workspace_id.as_deref().unwrap_or("personal"),
            note.source.as_str(),
            note.is_by_agent(),
            note.confidence,
            note.session.as_deref().filter(|session| !session.is_empty()),
            note.created_at,
            updated_at,
            serde_json::json!(note.tags).to_string(),
            note.has_tag("reflected"),
            note.pinned,
            note.severity.map(Severity::as_str),
            i64::try_from(length).unwrap_or(i64::MAX),
        ])?;
    let number = connection.last_insert_rowid();
    changes.insert(connection, number, &note)?;
    for part in PARTS {
        (part.insert)(connection, number, &note)?;
    }
    if note.state != State::Forgotten {
        connection
            .prepare_cached("INSERT INTO note_text (rowid, title, tags, body) VALUES (?, ?, ?, ?)")?
            .execute(params![number, note.title, note.tags.join(" "), note.body])?;
    }
    Ok(())
}

/// Ends a transaction that took notes up and out: what notes replace is marked, and what was gathered is
/// written.
fn settle(connection: &Connection, mut changes: Changes) -> Result<(), Error> {
    for (number, is_superseded) in supersession::mark(connection)? {
        changes.supersede(number, is_superseded)?;
    }
    changes.write(connection)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn remove_database(path: &Path) -> io::Result<()> {
    remove_file(path)?;
    remove_side_files(path)
}

/// Removes the files that SQLite keeps beside a database.
fn remove_side_files(path: &Path) -> io::Result<()> {
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        remove_file(Path::new(&name))?;
    }
    Ok(())
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
