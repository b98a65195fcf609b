//! One row of the table `note`.

use std::str::FromStr;

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note, NoteType, Rating, Severity, Source, State, Visibility, parse_timestamp},
};
use chrono::{DateTime, Utc};
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

    /// Reads a row that begins with all columns of `note` in order.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        fn word<T>(row: &Row<'_>, column: Column) -> rusqlite::Result<T>
        where
            Parsed<T>: FromSql,
        {
            Ok(row.get::<_, Parsed<T>>(column as usize)?.0)
        }
        let severity: Option<String> = row.get(Column::Severity as usize)?;
        let rating: Option<String> = row.get(Column::Rating as usize)?;
        let verified: Option<String> = row.get(Column::Verified as usize)?;
        Ok(Self {
            path: path_of(row, Column::Id as usize)?,
            stamp: stamp_of(row, Column::Size as usize)?,
            note_type: word(row, Column::Type)?,
            kind: word(row, Column::Kind)?,
            state: word(row, Column::State)?,
            title: row.get(Column::Title as usize)?,
            project: row.get(Column::Project as usize)?,
            machine_id: row.get(Column::MachineId as usize)?,
            user_id: row.get(Column::UserId as usize)?,
            workspace_id: row.get(Column::WorkspaceId as usize)?,
            source: word(row, Column::Source)?,
            by_agent: row.get(Column::ByAgent as usize)?,
            confidence: row.get(Column::Confidence as usize)?,
            session: row.get(Column::Session as usize)?,
            created_at: row.get(Column::CreatedAt as usize)?,
            updated_at: row.get(Column::UpdatedAt as usize)?,
            tags: row.get::<_, Tags>(Column::Tags as usize)?.0,
            reflected: row.get(Column::Reflected as usize)?,
            pinned: row.get(Column::Pinned as usize)?,
            severity: severity.and_then(|severity| severity.parse().ok()),
            superseded: row.get(Column::Superseded as usize)?,
            length: row.get(Column::Length as usize)?,
            rating: rating.and_then(|rating| rating.parse().ok()),
            verified: verified.as_deref().and_then(parse_timestamp),
        })
    }
}

/// The columns of `note` in order. Lookups by name are slower than reading the row.
#[derive(Debug, Clone, Copy)]
enum Column {
    Id = 1,
    Size = 3,
    Type = 7,
    Kind,
    State,
    Title,
    Project,
    MachineId,
    UserId,
    WorkspaceId,
    Source,
    ByAgent,
    Confidence,
    Session,
    CreatedAt,
    UpdatedAt,
    Tags,
    Reflected,
    Pinned,
    Severity,
    Superseded,
    Length,
    Rating,
    Verified,
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
    use super::*;
    use crate::index::Index;

    #[test]
    fn columns_have_the_order_of_the_table() {
        let index = Index::in_memory([]).unwrap();
        let statement = index.connection.prepare("SELECT * FROM note").unwrap();
        let names: Vec<&str> = statement.column_names().collect();
        for (column, name) in [
            (Column::Id, "id"),
            (Column::Size, "size"),
            (Column::Type, "type"),
            (Column::Kind, "kind"),
            (Column::State, "state"),
            (Column::Title, "title"),
            (Column::Project, "project"),
            (Column::MachineId, "machine_id"),
            (Column::UserId, "user_id"),
            (Column::WorkspaceId, "workspace_id"),
            (Column::Source, "source"),
            (Column::ByAgent, "by_agent"),
            (Column::Confidence, "confidence"),
            (Column::Session, "session"),
            (Column::CreatedAt, "created_at"),
            (Column::UpdatedAt, "updated_at"),
            (Column::Tags, "tags"),
            (Column::Reflected, "reflected"),
            (Column::Pinned, "pinned"),
            (Column::Severity, "severity"),
            (Column::Superseded, "superseded"),
            (Column::Length, "length"),
            (Column::Rating, "rating"),
            (Column::Verified, "verified"),
        ] {
            assert_eq!(names[column as usize], name);
        }
        assert_eq!(names[1..6], ["id", "folder", "size", "modified", "inode"]);
    }
}
