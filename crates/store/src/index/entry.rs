//! One row of the table `note`.

use std::str::FromStr;

use anamnesis_note::{
    id::NoteId,
    note::{Kind, NoteType, Rating, Severity, Source, State, Visibility, parse_timestamp},
};
use chrono::{DateTime, Utc};
use rusqlite::{
    Row,
    types::{FromSql, FromSqlError, FromSqlResult, ValueRef},
};

use crate::{fs::file::Stamp, notes::NotePath, sqlite::Json};

/// [`State::is_in_use`] as an SQL condition on a row of `note` with this name.
macro_rules! in_use {
    ($note:literal) => {
        concat!($note, ".state IN ('active', 'muted')")
    };
}

/// [`Visibility::is_in_force`] as an SQL condition on a row of `note`.
macro_rules! in_force {
    () => {
        "note.state = 'active' AND note.superseded = 0"
    };
}

/// [`Visibility::may_surface`] as an SQL condition on a row of `note`.
macro_rules! may_surface {
    () => {
        concat!(
            crate::index::entry::in_force!(),
            " AND note.kind <> 'task' AND (note.type <> 'episodic' OR note.reflected = 0)"
        )
    };
}

pub(super) use {in_force, in_use, may_surface};

/// A note as the index has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The path of its file.
    pub path: NotePath,
    /// The stamp of its file when it was indexed.
    pub stamp: Stamp,
    /// The type.
    pub note_type: NoteType,
    /// The finer kind.
    pub kind: Kind,
    /// The state.
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
    /// Its origin.
    pub source: Source,
    /// Whether its file says that a model wrote it through a tool.
    pub by_agent: bool,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The client's id of its session.
    pub session: Option<String>,
    /// When it was created; empty if the file does not say.
    pub created_at: String,
    /// When its content last changed: UTC in the format of notes, so that text order is time order.
    pub updated_at: String,
    /// The tags.
    pub tags: Vec<String>,
    /// Whether a reflection has used it.
    pub reflected: bool,
    /// Whether it is pinned.
    pub pinned: bool,
    /// The severity of a warning.
    pub severity: Option<Severity>,
    /// Whether an active note supersedes it.
    pub superseded: bool,
    /// The number of characters of title and body.
    pub length: i64,
    /// Whether it helped, if somebody said so.
    pub rating: Option<Rating>,
    /// When somebody last confirmed that it is still right.
    pub verified: Option<DateTime<Utc>>,
}

impl Entry {
    /// Returns the id.
    pub fn id(&self) -> NoteId {
        self.path.id
    }

    /// Returns the author, as shown to people and models.
    pub fn author(&self) -> &'static str {
        self.source.author(self.by_agent)
    }

    /// Returns what decides whether it may be shown.
    pub fn visibility(&self) -> Visibility {
        Visibility {
            state: self.state,
            kind: self.kind,
            note_type: self.note_type,
            is_reflected: self.reflected,
            is_superseded: self.superseded,
        }
    }

    /// Returns when it was last written.
    pub fn written_at(&self) -> &str {
        if self.updated_at.is_empty() {
            &self.created_at
        } else {
            &self.updated_at
        }
    }

    /// Returns the kind, as shown to people and models.
    pub fn shown_kind(&self) -> &'static str {
        match self.source {
            Source::SessionEnd => Kind::Experience.shown(),
            _ => self.kind.shown(),
        }
    }

    /// Reads a row that begins with all columns of `note` in order.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let mut columns = Columns { row, next: 7 };
        Ok(Self {
            path: path_of(row, 1)?,
            stamp: stamp_of(row, 3)?,
            note_type: columns.word()?,
            kind: columns.word()?,
            state: columns.word()?,
            title: columns.value()?,
            project: columns.value()?,
            machine_id: columns.value()?,
            user_id: columns.value()?,
            workspace_id: columns.value()?,
            source: columns.word()?,
            by_agent: columns.value()?,
            confidence: columns.value()?,
            session: columns.value()?,
            created_at: columns.value()?,
            updated_at: columns.value()?,
            tags: columns.value::<Json<_>>()?.0,
            reflected: columns.value()?,
            pinned: columns.value()?,
            severity: columns.value::<Option<Parsed<_>>>()?.map(|it| it.0),
            superseded: columns.value()?,
            length: columns.value()?,
            rating: columns.value::<Option<Parsed<_>>>()?.map(|it| it.0),
            verified: columns
                .value::<Option<String>>()?
                .as_deref()
                .and_then(parse_timestamp),
        })
    }
}

/// Reads the columns of `note` in order. Lookups by name are slower than reading the row.
struct Columns<'r> {
    row: &'r Row<'r>,
    next: usize,
}

impl Columns<'_> {
    fn value<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        self.next += 1;
        self.row.get(self.next - 1)
    }

    fn word<T>(&mut self) -> rusqlite::Result<T>
    where
        Parsed<T>: FromSql,
    {
        Ok(self.value::<Parsed<T>>()?.0)
    }
}

/// A column with the text form of a value.
pub(super) struct Parsed<T>(pub(super) T);

impl<T> FromSql for Parsed<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let parsed = value.as_str()?.parse();
        parsed.map(Self).map_err(FromSqlError::other)
    }
}

/// Reads a path from the column of its id and that of its folder, which follows.
pub(super) fn path_of(row: &Row<'_>, first: usize) -> rusqlite::Result<NotePath> {
    let Parsed(id) = row.get(first)?;
    let folder: u8 = row.get(first + 1)?;
    NotePath::in_folder(folder.into(), id).ok_or(rusqlite::Error::IntegralValueOutOfRange(
        first + 1,
        folder.into(),
    ))
}

pub(super) fn stamp_of(row: &Row<'_>, first: usize) -> rusqlite::Result<Stamp> {
    Ok(Stamp {
        size: row.get(first)?,
        modified: row.get(first + 1)?,
        inode: row.get(first + 2)?,
    })
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::{Note, timestamp};

    use super::*;
    use crate::{index::tests::Fixture, sqlite::Queries};

    #[test]
    fn columns_are_read_in_the_order_of_the_table() {
        let fixture = Fixture::new();
        let later = |days| DateTime::UNIX_EPOCH + chrono::TimeDelta::days(days);
        let stored = fixture.add("a title", |note| {
            *note = Note {
                title: "a title".to_owned(),
                project: "a project".to_owned(),
                machine_id: "a machine".to_owned(),
                user_id: Some("a user".to_owned()),
                workspace_id: Some("a workspace".to_owned()),
                session: Some("a session".to_owned()),
                tags: vec!["a tag".to_owned()],
                severity: Some(Severity::High),
                rating: Some(Rating::Good),
                verified: Some(timestamp(later(3))),
                created_at: timestamp(later(1)),
                updated_at: timestamp(later(2)),
                confidence: 0.5,
                pinned: true,
                ..note.clone()
            };
        });
        let index = fixture.refreshed();
        let sql = "SELECT * FROM note";
        let by_name: Vec<String> = index
            .row(sql, [], |row| {
                let names = [
                    "id",
                    "type",
                    "kind",
                    "state",
                    "title",
                    "project",
                    "machine_id",
                    "user_id",
                    "workspace_id",
                    "source",
                    "session",
                    "created_at",
                    "updated_at",
                    "severity",
                    "rating",
                    "verified",
                ];
                names.into_iter().map(|name| row.get(name)).collect()
            })
            .unwrap();
        let entry = index.row(sql, [], Entry::read).unwrap();
        let read = [
            entry.id().to_string(),
            entry.note_type.to_string(),
            entry.kind.to_string(),
            entry.state.to_string(),
            entry.title,
            entry.project,
            entry.machine_id,
            entry.user_id,
            entry.workspace_id,
            entry.source.to_string(),
            entry.session.unwrap(),
            entry.created_at,
            entry.updated_at,
            entry.severity.unwrap().to_string(),
            entry.rating.unwrap().to_string(),
            timestamp(entry.verified.unwrap()),
        ];
        assert_eq!(read.as_slice(), by_name);
        assert_eq!((entry.path, entry.stamp), (stored.path, stored.stamp));
        assert_eq!(entry.tags, ["a tag"]);
        assert_eq!((entry.confidence, entry.pinned), (0.5, true));
        assert_eq!(
            (entry.by_agent, entry.reflected, entry.superseded),
            (false, false, false)
        );
    }
}
