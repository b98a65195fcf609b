//! One row of the table `note`.

use std::str::FromStr;

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note, NoteType, Severity, Source, State, Visibility},
};
use chrono::DateTime;
use rusqlite::{
    Row,
    types::{FromSql, FromSqlError, FromSqlResult, ValueRef},
};

use crate::{fs::file::Stamp, notes::NotePath};

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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a column of its own, true of a note or not"
)]
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
}

impl Entry {
    /// Returns the id.
    pub fn id(&self) -> NoteId {
        self.path.id
    }

    /// Returns the author, as shown to people and models.
    pub fn author(&self) -> &'static str {
        Note {
            source: self.source,
            actor: self.by_agent.then(|| "agent".to_owned()),
            ..blank()
        }
        .author()
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

    /// Returns the kind, as shown to people and models.
    pub fn shown_kind(&self) -> &'static str {
        match self.source {
            Source::SessionEnd => Kind::Experience.shown(),
            _ => self.kind.shown(),
        }
    }

    /// Reads a row that begins with all columns of `note` in order. Columns are read by position,
    /// because lookups by name are slower than the read.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
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
        let Tags(tags) = row.get(21)?;
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
            tags,
            reflected: row.get(22)?,
            pinned: row.get(23)?,
            severity: severity.and_then(|severity| severity.parse().ok()),
            superseded: row.get(25)?,
            length: row.get(26)?,
        })
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

/// The tags of a note, a column with a JSON list. Anything else counts as none.
pub(super) struct Tags(pub(super) Vec<String>);

impl FromSql for Tags {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let tags = serde_json::from_str(value.as_str()?);
        Ok(Self(tags.unwrap_or_default()))
    }
}

fn blank() -> Note {
    Note::new(
        NoteId::of_session(""),
        NoteType::Semantic,
        DateTime::UNIX_EPOCH,
    )
}

pub(super) fn stamp_of(row: &Row<'_>, first: usize) -> rusqlite::Result<Stamp> {
    Ok(Stamp {
        size: row.get(first)?,
        modified: row.get(first + 1)?,
        inode: row.get(first + 2)?,
    })
}
