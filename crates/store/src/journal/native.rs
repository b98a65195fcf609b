//! What became of the files of Claude Code's own memory, so that one that did not change costs a
//! look at the file system and no more.
//!
//! Names of files and folders may hold anything, so they are kept as hashes.

use std::collections::HashMap;

use anamnesis_note::id::NoteId;
use rusqlite::{OptionalExtension, Row, params};

use super::{Error, Journal};
use crate::fs::file::Stamp;

/// What became of a file of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The note is its copy, and follows it.
    Copied,
    /// Another note says the same.
    Elsewhere,
    /// Somebody changed the note, which follows it no more.
    Left,
    /// A person forgot what it says.
    Forgotten,
    /// There is nothing in it to be copied.
    Nothing,
    /// It went, and the note with it.
    Gone,
}

impl Fate {
    const ALL: [Self; 6] = [
        Self::Copied,
        Self::Elsewhere,
        Self::Left,
        Self::Forgotten,
        Self::Nothing,
        Self::Gone,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Copied => "copied",
            Self::Elsewhere => "elsewhere",
            Self::Left => "left",
            Self::Forgotten => "forgotten",
            Self::Nothing => "nothing",
            Self::Gone => "gone",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| fate.as_str() == word)
    }
}

/// A file of the memory as it was when it was last looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// The id that a note of it has on every machine: it stands for the file's name.
    pub(crate) id: NoteId,
    /// The hash of the name of the folder of its project.
    pub(crate) slug: String,
    /// What tells that it changed.
    pub(crate) stamp: Stamp,
    /// What became of it.
    pub(crate) fate: Fate,
    /// The note that has what it says; its own id where there is none.
    pub(crate) note: NoteId,
    /// The hash of what that note said then; empty where there is none.
    pub(crate) hash: String,
    /// That note's project.
    pub(crate) project: String,
    /// What tells that the note changed.
    pub(crate) note_stamp: Stamp,
    /// How often it went and came back.
    pub(crate) returns: u32,
}

/// The folder that the client's name for a project stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The folder, which is absolute.
    pub(crate) folder: String,
    /// Whether that is known; else it is the best guess.
    pub(crate) is_certain: bool,
    /// When the client's folder had last changed when this was found.
    pub(crate) seen: i64,
}

impl Journal {
    /// The files of the memory in one of the client's folders, by id.
    pub(crate) fn native_sources(&self, claude: &str) -> Result<HashMap<NoteId, Source>, Error> {
        let sources = self
            .connection
            .prepare("SELECT * FROM native_source WHERE claude = ?")?
            .query_map([claude], source_of)?
            .collect::<Result<Vec<_>, _>>()?;
        // A row that cannot be read is that of a file that has to be looked at.
        Ok(sources
            .into_iter()
            .flatten()
            .map(|source| (source.id, source))
            .collect())
    }

    /// Keeps what became of a file of the memory.
    pub(crate) fn keep_native_source(&self, claude: &str, source: &Source) -> Result<(), Error> {
        let Source {
            stamp, note_stamp, ..
        } = source;
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO native_source VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                claude,
                source.id.to_string(),
                source.slug,
                stamp.size,
                stamp.modified,
                stamp.inode,
                source.fate.as_str(),
                source.note.to_string(),
                source.hash,
                source.project,
                note_stamp.size,
                note_stamp.modified,
                note_stamp.inode,
                source.returns,
            ])?;
        Ok(())
    }

    /// Lets go what is known of a file of the memory.
    pub(crate) fn drop_native_source(&self, claude: &str, source: NoteId) -> Result<(), Error> {
        self.connection.execute(
            "DELETE FROM native_source WHERE claude = ? AND source = ?",
            [claude, &source.to_string()],
        )?;
        Ok(())
    }

    /// Tells whether a note is the copy of a file in another one of the client's folders.
    pub(crate) fn is_native_copy_elsewhere(
        &self,
        claude: &str,
        note: NoteId,
    ) -> Result<bool, Error> {
        let found = self
            .connection
            .query_row(
                "SELECT 1 FROM native_source WHERE claude <> ? AND note = ? AND fate = ?",
                [claude, &note.to_string(), Fate::Copied.as_str()],
                |_| Ok(()),
            )
            .optional()?;
        Ok(found.is_some())
    }

    /// The notes of a project that are copies of Claude Code's own memory on this machine, each with
    /// the stamp of its file: while that is the same, so is what the note says.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn native_copies(&self, project: &str) -> Result<Vec<(NoteId, Stamp)>, Error> {
        let rows = self
            .connection
            .prepare_cached(
                "SELECT note, note_size, note_modified, note_inode FROM native_source
                 WHERE project = ? AND fate = ?",
            )?
            .query_map([project, Fate::Copied.as_str()], |row| {
                let note: String = row.get(0)?;
                let stamp = Stamp {
                    size: row.get(1)?,
                    modified: row.get(2)?,
                    inode: row.get(3)?,
                };
                Ok(note.parse().ok().map(|note| (note, stamp)))
            })?
            .collect::<Result<Vec<_>, _>>()?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// The folders that the client's names of projects stand for, by the hash of the name.
    pub(crate) fn native_places(&self, claude: &str) -> Result<HashMap<String, Place>, Error> {
        let places = self
            .connection
            .prepare("SELECT slug, folder, is_certain, seen FROM native_place WHERE claude = ?")?
            .query_map([claude], |row| {
                let place = Place {
                    folder: row.get(1)?,
                    is_certain: row.get(2)?,
                    seen: row.get(3)?,
                };
                Ok((row.get(0)?, place))
            })?
            .collect::<Result<_, _>>()?;
        Ok(places)
    }

    /// Keeps the folder that a name of the client's stands for.
    pub(crate) fn keep_native_place(
        &self,
        claude: &str,
        slug: &str,
        place: &Place,
    ) -> Result<(), Error> {
        self.connection.execute(
            "INSERT OR REPLACE INTO native_place VALUES (?, ?, ?, ?, ?)",
            params![claude, slug, place.folder, place.is_certain, place.seen],
        )?;
        Ok(())
    }
}

fn source_of(row: &Row<'_>) -> rusqlite::Result<Option<Source>> {
    let id = |column: &str| -> rusqlite::Result<Option<NoteId>> {
        let text: String = row.get(column)?;
        Ok(text.parse().ok())
    };
    let fate: String = row.get("fate")?;
    let (Some(source), Some(note), Some(fate)) = (id("source")?, id("note")?, Fate::of(&fate))
    else {
        return Ok(None);
    };
    Ok(Some(Source {
        id: source,
        slug: row.get("slug")?,
        stamp: Stamp {
            size: row.get("size")?,
            modified: row.get("modified")?,
            inode: row.get("inode")?,
        },
        fate,
        note,
        hash: row.get("hash")?,
        project: row.get("project")?,
        note_stamp: Stamp {
            size: row.get("note_size")?,
            modified: row.get("note_modified")?,
            inode: row.get("note_inode")?,
        },
        returns: row.get("returns")?,
    }))
}
