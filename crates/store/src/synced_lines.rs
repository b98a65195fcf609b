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
    let failed = |source| Error::Io {
        path: home.relative(path),
        source,
    };
    // What cannot be read is not overwritten.
    let before = match file::read_head(path, MAX_LENGTH) {
        Ok((bytes, _, true)) => bytes,
        Ok(_) => return Err(failed(io::ErrorKind::FileTooLarge.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    let after = join_lines(&before, lines.as_bytes());
    if after == before {
        return Ok(());
    }
    home::ensure_folder(path.parent().unwrap_or(path))?;
    file::write_atomic(path, &after).map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;
    use crate::notes::Notes;

    #[test]
    fn a_file_that_cannot_be_read_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let lock = Notes::new(home.clone(), Duration::ZERO).lock().unwrap();
        let path = home.aliases();
        append(&home, &lock, &path, "a b\n").unwrap();
        append(&home, &lock, &path, "c d\n").unwrap();
        let lines = fs::read(&path).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(MAX_LENGTH as u64 + 1)
            .unwrap();
        let refused = append(&home, &lock, &path, "e f\n").unwrap_err();
        let text = refused.to_string();
        assert!(text.starts_with("cannot write memory/.aliases: "), "{text}");
        assert_eq!(fs::read(&path).unwrap()[..lines.len()], lines);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(append(&home, &lock, &path, "e f\n").is_err());
    }
}
