//! The index of commits: `derived/commits-1.db`, with postings by term. It is made from the repositories, and
//! never synced. A file that cannot be used is made again.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    time::Duration,
};

use anamnesis_note::purge_pattern::PurgePattern;
use anamnesis_text::terms::words;
use rusqlite::{Connection, params};

use crate::{
    fs::home::Home,
    sqlite::{self, Compressed, Queries},
};

const VERSION: i64 = 1;

/// `entries` of a term are [`Posting`]s of [`POSTING_LENGTH`] bytes. The numbers of removed commits stay in
/// them. `text` is the subject in the first line, the body, and the files.
const SCHEMA: &str = "
CREATE TABLE project (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, tips TEXT NOT NULL DEFAULT '',
  commits INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE entry (
  number INTEGER PRIMARY KEY, project INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, text BLOB NOT NULL,
  reverts TEXT, UNIQUE (project, id)
) STRICT;
CREATE INDEX entry_reverts ON entry (project, reverts) WHERE reverts IS NOT NULL;
CREATE TABLE posting (
  project INTEGER NOT NULL, term TEXT NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (project, term)
) STRICT, WITHOUT ROWID;
";

/// The length of a stored posting: four bytes of the number, one of the count, one of the length.
const POSTING_LENGTH: usize = 6;

/// How many reverts of reverts are followed.
const MAX_REVERTS: usize = 8;

/// How often a word of the subject counts.
const SUBJECT_WEIGHT: u8 = 2;

/// The index of commits cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite refused.
    #[error("commits: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file system refused.
    #[error("commits: {0}")]
    Io(#[from] io::Error),
}

/// A commit of a project. One that says nothing about it has no subject and no time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectCommit {
    /// Its id, in hexadecimal.
    pub id: String,
    /// Its time, in seconds since 1970.
    pub at: i64,
    /// The first line of its message.
    pub subject: String,
    /// The other lines, shortened.
    pub body: String,
    /// The changed files.
    pub files: Vec<String>,
    /// The id of the commit that it reverts, as written.
    pub reverts: Option<String>,
}

impl ProjectCommit {
    fn text(&self) -> String {
        format!("{}\n{}\n{}", self.subject, self.body, self.files.join("\n"))
    }

    /// Returns how often it has each term. Of a file's path, its name and its folder count.
    fn terms(&self) -> BTreeMap<String, u8> {
        let mut terms: BTreeMap<String, u8> = BTreeMap::new();
        let mut add = |text: &str, weight: u8| {
            words(text, |word| {
                if !word.is_stop_word() {
                    let count = terms.entry(word.term.to_owned()).or_default();
                    *count = count.saturating_add(weight);
                }
            });
        };
        add(&self.subject, SUBJECT_WEIGHT);
        add(&self.body, 1);
        for file in &self.files {
            let parts: Vec<&str> = file.rsplitn(3, '/').take(2).collect();
            add(&parts.join(" "), 1);
        }
        terms
    }
}

/// A commit that has a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// The commit's number.
    pub number: u32,
    /// How often it has the term; a word of the subject counts twice.
    pub count: u8,
    /// The number of its distinct terms, at most 255.
    pub length: u8,
}

/// A commit as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedCommit {
    /// Its id.
    pub id: String,
    /// Its time, in seconds since 1970.
    pub at: i64,
    /// The first line of its message.
    pub subject: String,
    /// The commit that reverts it, unless that is reverted, too.
    pub reverted_by: Option<String>,
}

/// The open index of commits.
#[derive(Debug)]
pub struct Commits(Connection);

impl Commits {
    /// Opens the index to read; `None` if there is none that can be used.
    pub fn open(home: &Home) -> Option<Self> {
        let path = home.commits();
        if !path.exists() {
            return None;
        }
        let connection = sqlite::open_read(&path, Duration::from_millis(50)).ok()?;
        (sqlite::version(&connection).ok()? == VERSION).then_some(Self(connection))
    }

    /// Opens the index to write, and makes it if it is missing or cannot be used.
    pub fn open_to_write(home: &Home, timeout: Duration) -> Result<Self, Error> {
        let open = || -> rusqlite::Result<Self> {
            let connection = sqlite::open_write(&home.commits(), timeout)?;
            let mode = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";
            connection.execute_batch(mode)?;
            if sqlite::version(&connection)? != VERSION {
                let transaction = connection.unchecked_transaction()?;
                transaction.execute_batch(SCHEMA)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
                transaction.commit()?;
            }
            Ok(Self(connection))
        };
        match open() {
            Err(error) if sqlite::shows_damage(&error) => {
                Self::remove(home)?;
                Ok(open()?)
            }
            opened => Ok(opened?),
        }
    }

    /// Removes the index.
    pub fn remove(home: &Home) -> io::Result<()> {
        sqlite::remove(&home.commits())
    }

    /// Returns a project's number and the tips that were read last, separated by spaces.
    fn project(&self, key: &str) -> rusqlite::Result<Option<(i64, String)>> {
        let sql = "SELECT number, tips FROM project WHERE key = ?";
        self.0.first_tuple(sql, [key])
    }

    /// Returns whether the history from these tips was read completely.
    pub fn has_read(&self, project: &str, tips: &[String]) -> Result<bool, Error> {
        let known = self.project(project)?;
        Ok(known.is_some_and(|(_, known)| known == tips.join(" ")))
    }

    /// Returns the ids of a project's commits.
    pub fn ids(&self, project: &str) -> Result<HashSet<String>, Error> {
        let sql =
            "SELECT id FROM entry JOIN project ON project.number = entry.project WHERE key = ?";
        Ok(self.0.column(sql, [project])?)
    }

    /// Adds and removes commits of a project, and stores the tips from which all of them were read; empty if
    /// some are still missing.
    pub fn update(
        &mut self,
        project: &str,
        tips: &[String],
        gone: &[&String],
        new: &[ProjectCommit],
    ) -> Result<(), Error> {
        let transaction = self.0.transaction()?;
        let sql = "INSERT OR IGNORE INTO project (key) VALUES (?)";
        transaction.run(sql, [project])?;
        let sql = "SELECT number FROM project WHERE key = ?";
        let project: i64 = transaction.query_row(sql, [project], |row| row.get(0))?;
        for id in gone {
            let sql = "DELETE FROM entry WHERE project = ? AND id = ?";
            transaction.run(sql, params![project, id])?;
        }
        let mut postings: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut length = 0;
        for commit in new {
            let terms = commit.terms();
            let text = commit.text();
            let text = Compressed(text.trim_end());
            let sql = "INSERT INTO entry (project, id, at, text, reverts) VALUES (?, ?, ?, ?, ?)";
            let values = params![project, commit.id, commit.at, text, commit.reverts];
            transaction.run(sql, values)?;
            let number = u32::try_from(transaction.last_insert_rowid()).unwrap_or(u32::MAX);
            let distinct = u8::try_from(terms.len()).unwrap_or(u8::MAX);
            length += i64::from(distinct);
            for (term, count) in terms {
                let entries = postings.entry(term).or_default();
                entries.extend(number.to_le_bytes());
                entries.extend([count, distinct]);
            }
        }
        for (term, entries) in postings {
            let known = entries_of(&transaction, project, &term)?;
            let sql = "INSERT OR REPLACE INTO posting VALUES (?, ?, ?)";
            transaction.run(sql, params![project, term, [known, entries].concat()])?;
        }
        let sql = "UPDATE project SET tips = ?2, length = length + ?3,
             commits = (SELECT count(*) FROM entry WHERE project = ?1 AND at <> 0) WHERE number = ?1";
        transaction.run(sql, params![project, tips.join(" "), length])?;
        transaction.commit()?;
        Ok(sqlite::checkpoint(&self.0)?)
    }

    /// Returns the number of a project's commits, and their average number of distinct terms.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    pub fn totals(&self, project: &str) -> Result<(usize, f32), Error> {
        let sql = "SELECT commits, length FROM project WHERE key = ?";
        let totals = self.0.first_tuple(sql, [project])?;
        let (commits, length): (i64, i64) = totals.unwrap_or_default();
        let count = usize::try_from(commits).unwrap_or(0);
        Ok((count, length as f32 / count.max(1) as f32))
    }

    /// Returns the commits of a project that have a term, and some that are gone.
    pub fn postings(&self, project: &str, term: &str) -> Result<Vec<Posting>, Error> {
        let Some((project, _)) = self.project(project)? else {
            return Ok(Vec::new());
        };
        let entries = entries_of(&self.0, project, term)?;
        let (entries, _) = entries.as_chunks::<POSTING_LENGTH>();
        let read = entries.iter().map(|[a, b, c, d, count, length]| Posting {
            number: u32::from_le_bytes([*a, *b, *c, *d]),
            count: *count,
            length: *length,
        });
        Ok(read.collect())
    }

    /// Returns a commit by its number; `None` if it is gone.
    pub fn get(&self, number: u32) -> Result<Option<IndexedCommit>, Error> {
        self.one("number = ?", number)
    }

    /// Returns a commit by its id; `None` if no project has it.
    pub fn find(&self, id: &str) -> Result<Option<IndexedCommit>, Error> {
        self.one("id = ?", id)
    }

    fn one(
        &self,
        condition: &str,
        value: impl rusqlite::ToSql,
    ) -> Result<Option<IndexedCommit>, Error> {
        let sql = format!("SELECT project, id, at, text FROM entry WHERE {condition}");
        let found: Option<(i64, String, _, Compressed<String>)> =
            self.0.first_tuple(&sql, [value])?;
        let Some((project, id, at, Compressed(text))) = found else {
            return Ok(None);
        };
        Ok(Some(IndexedCommit {
            reverted_by: self.reverter(project, &id, MAX_REVERTS)?,
            id,
            at,
            subject: text.lines().next().unwrap_or_default().to_owned(),
        }))
    }

    /// Returns the newest commit that reverts another one and is not reverted itself.
    fn reverter(&self, project: i64, id: &str, depth: usize) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT id FROM entry WHERE project = ?1 AND reverts IS NOT NULL
             AND ?2 GLOB reverts || '*' ORDER BY at DESC";
        let reverts: Vec<String> = self.0.column(sql, params![project, id])?;
        for by in reverts {
            if depth == 0 || self.reverter(project, &by, depth - 1)?.is_none() {
                return Ok(Some(by));
            }
        }
        Ok(None)
    }

    /// Returns the ids of the commits whose text is found.
    pub fn with_text(&self, text: &PurgePattern) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        let sql = "SELECT id, text FROM entry ORDER BY at DESC, id";
        self.0.each(sql, [], |row| {
            let Compressed::<String>(own) = row.get(1)?;
            if text.is_in(own.as_bytes()) {
                found.push(row.get(0)?);
            }
            Ok(())
        })?;
        Ok(found)
    }
}

fn entries_of(connection: &Connection, project: i64, term: &str) -> rusqlite::Result<Vec<u8>> {
    let sql = "SELECT entries FROM posting WHERE project = ? AND term = ?";
    let known = connection.one(sql, params![project, term], |row| row.get(0))?;
    Ok(known.unwrap_or_default())
}
