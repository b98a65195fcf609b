//! The import state of the files of Claude Code's own memory. An unchanged file costs one `stat`
//! call.
//!
//! File and folder names can contain private text, so they are stored as hashes.

use std::collections::HashMap;

use anamnesis_note::id::NoteId;
use rusqlite::{OptionalExtension as _, Row, params};

use super::{Error, Journal};
use crate::fs::file::Stamp;

/// The import state of a memory file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyState {
    /// The note is a copy and is updated with the file.
    Copied,
    /// The note was edited, or another machine wrote it, and it is not updated.
    Left,
    /// A person forgot its text.
    Forgotten,
    /// The file has nothing to copy.
    Nothing,
    /// The file was removed; the note stays and is marked.
    Orphaned,
}

impl CopyState {
    const ALL: [Self; 5] = [
        Self::Copied,
        Self::Left,
        Self::Forgotten,
        Self::Nothing,
        Self::Orphaned,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Copied => "copied",
            Self::Left => "left",
            Self::Forgotten => "forgotten",
            Self::Nothing => "nothing",
            Self::Orphaned => "orphaned",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// A memory file as of the last import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// The id of its note on every machine; identifies the file.
    pub(crate) id: NoteId,
    /// The hash of its project folder's name.
    pub(crate) slug: String,
    /// Its stamp, which shows whether it changed.
    pub(crate) stamp: Stamp,
    /// Its import state.
    pub(crate) state: CopyState,
    /// The note with its text; its own id if there is none.
    pub(crate) note: NoteId,
    /// The hash of that note's text at the time; empty if there is no note.
    pub(crate) hash: String,
    /// That note's project.
    pub(crate) project: String,
    /// The stamp of the note's file, which shows whether it changed.
    pub(crate) note_stamp: Stamp,
}

/// The folder of a project name of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectFolder {
    /// The absolute path.
    pub(crate) folder: String,
    /// Whether it is certain; otherwise it is the best guess.
    pub(crate) is_certain: bool,
    /// When the client's folder had last changed at that time.
    pub(crate) seen: i64,
}

impl Journal {
    /// Returns the memory files of one client folder, by id.
    pub(crate) fn native_sources(&self, claude: &str) -> Result<HashMap<NoteId, Source>, Error> {
        let sources = self
            .connection
            .prepare("SELECT * FROM native_source WHERE claude = ?")?
            .query_map([claude], source_of)?
            .collect::<Result<Vec<_>, _>>()?;
        // An invalid row is left out, so its file is imported again.
        Ok(sources
            .into_iter()
            .flatten()
            .map(|source| (source.id, source))
            .collect())
    }

    /// Stores the import state of a memory file.
    pub(crate) fn keep_native_source(&self, claude: &str, source: &Source) -> Result<(), Error> {
        let Source {
            stamp, note_stamp, ..
        } = source;
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO native_source VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            )?
            .execute(params![
                claude,
                source.id.to_string(),
                source.slug,
                stamp.size,
                stamp.modified,
                stamp.inode,
                source.state.as_str(),
                source.note.to_string(),
                source.hash,
                source.project,
                note_stamp.size,
                note_stamp.modified,
                note_stamp.inode,
            ])?;
        Ok(())
    }

    /// Deletes the import state of a memory file.
    pub(crate) fn drop_native_source(&self, claude: &str, source: NoteId) -> Result<(), Error> {
        self.connection.execute(
            "DELETE FROM native_source WHERE claude = ? AND source = ?",
            [claude, &source.to_string()],
        )?;
        Ok(())
    }

    /// Returns the notes of a project that are copies of Claude Code's memory on this machine, each
    /// with its file's stamp. The stamp shows whether the note changed.
    pub fn native_copies(&self, project: &str) -> Result<Vec<(NoteId, Stamp)>, Error> {
        let rows = self
            .connection
            .prepare_cached(
                "SELECT note, note_size, note_modified, note_inode FROM native_source
                 WHERE project = ? AND fate = ?",
            )?
            .query_map([project, CopyState::Copied.as_str()], |row| {
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

    /// Returns the note that is the copy of a memory file.
    pub fn native_copy(&self, file: &Stamp) -> Result<Option<NoteId>, Error> {
        let note: Option<String> = self
            .connection
            .prepare_cached(
                "SELECT note FROM native_source
                 WHERE size = ? AND modified = ? AND inode = ? AND fate = ?",
            )?
            .query_row(
                params![
                    file.size,
                    file.modified,
                    file.inode,
                    CopyState::Copied.as_str()
                ],
                |row| row.get(0),
            )
            .optional()?;
        Ok(note.and_then(|note| note.parse().ok()))
    }

    /// Returns the folders of the client's project names, by the hash of the name.
    pub(crate) fn native_places(
        &self,
        claude: &str,
    ) -> Result<HashMap<String, ProjectFolder>, Error> {
        let places = self
            .connection
            .prepare("SELECT slug, folder, is_certain, seen FROM native_place WHERE claude = ?")?
            .query_map([claude], |row| {
                let place = ProjectFolder {
                    folder: row.get(1)?,
                    is_certain: row.get(2)?,
                    seen: row.get(3)?,
                };
                Ok((row.get(0)?, place))
            })?
            .collect::<Result<_, _>>()?;
        Ok(places)
    }

    /// Stores the folder of a project name of the client.
    pub(crate) fn keep_native_place(
        &self,
        claude: &str,
        slug: &str,
        place: &ProjectFolder,
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
    let state: String = row.get("fate")?;
    let (Some(source), Some(note), Some(state)) =
        (id("source")?, id("note")?, CopyState::from_word(&state))
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
        state,
        note,
        hash: row.get("hash")?,
        project: row.get("project")?,
        note_stamp: Stamp {
            size: row.get("note_size")?,
            modified: row.get("note_modified")?,
            inode: row.get("note_inode")?,
        },
    }))
}
