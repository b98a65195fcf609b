//! The files of aliases and purge marks, see [`anamnesis_note::synced_lines`].

use std::{collections::BTreeSet, io, path::Path};

use anamnesis_note::{
    id::NoteId,
    synced_lines::{AliasLog, Aliases, PurgeMark, join_lines},
};
use chrono::{DateTime, Utc};

use crate::{
    fs::{
        file,
        home::{self, Home},
        lock::Lock,
    },
    journal,
};

/// The maximum size of a file, in bytes.
const MAX_LENGTH: usize = 16 * 1024 * 1024;

/// A file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process is writing notes.
    #[error("another anamnesis process is writing notes")]
    Locked,
    /// A folder cannot be used.
    #[error(transparent)]
    Folder(#[from] home::Error),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The file system refused.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file, relative to the store.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// Returns what is declared about the keys of projects.
pub fn alias_log(home: &Home) -> AliasLog {
    AliasLog::parse(&file::read_text(&home.aliases(), MAX_LENGTH))
}

/// Returns which keys are one project, and which projects are in groups.
pub fn aliases(home: &Home) -> Aliases {
    Aliases::from_log(&alias_log(home))
}

/// Returns the marks of purged notes.
pub fn purge_marks(home: &Home) -> BTreeSet<PurgeMark> {
    PurgeMark::parse(&file::read_text(&home.purged(), MAX_LENGTH))
}

/// Marks notes as gone, and notes as masked; needs the lock of the notes.
pub fn mark_purged(
    home: &Home,
    lock: &Lock,
    gone: &BTreeSet<NoteId>,
    masked: &BTreeSet<NoteId>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    // A second purge of a note needs a line of its own.
    let last = purge_marks(home).into_iter().map(|mark| mark.at).max();
    let last = last.unwrap_or_default();
    let at = now.timestamp_millis().max(last.saturating_add(1));
    let lines = |notes: &BTreeSet<NoteId>, is_gone| -> String {
        let marks = notes.iter().map(|note| PurgeMark {
            note: *note,
            at,
            is_gone,
        });
        marks.map(|mark| mark.line()).collect()
    };
    let lines = lines(gone, true) + &lines(masked, false);
    append(home, lock, &home.purged(), &lines)
}

/// Adds lines to a file, each once; needs the lock of the notes, because a sync writes the file, too.
pub fn append(home: &Home, _lock: &Lock, path: &Path, lines: &str) -> Result<(), Error> {
    let before = file::read_text(path, MAX_LENGTH);
    let after = join_lines(before.as_bytes(), lines.as_bytes());
    if after == before.as_bytes() {
        return Ok(());
    }
    home::ensure_folder(path.parent().unwrap_or(path))?;
    file::write_atomic(path, &after).map_err(|source| Error::Io {
        path: home.relative(path),
        source,
    })?;
    Ok(())
}
