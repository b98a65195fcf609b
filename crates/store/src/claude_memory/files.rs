//! Reads the files of a memory folder, without following links.

use std::{
    ffi::OsString,
    fs::{self, DirEntry},
    io::{self, Read},
    path::Path,
};

use anamnesis_session::claude_memory::{MAX_LENGTH, MemoryFile};

use crate::fs::file::{self, Stamp};

/// The maximum number of project folders, and of files in one.
const MAX_ENTRIES: usize = 10_000;

/// The deepest folder of a memory.
const MAX_DEPTH: usize = 8;

/// Returns the memory files below a folder by their paths without the ending, sorted by name.
pub(super) fn memory_files(memory: &Path) -> io::Result<Vec<(String, DirEntry)>> {
    if !fs::symlink_metadata(memory)?.is_dir() {
        return Err(io::Error::other(
            "a link or a file in place of a folder; not followed",
        ));
    }
    let mut found = Vec::new();
    add_files(memory, "", MAX_DEPTH, &mut found)?;
    Ok(found)
}

fn add_files(
    folder: &Path,
    below: &str,
    depth: usize,
    found: &mut Vec<(String, DirEntry)>,
) -> io::Result<()> {
    let entries = entries(folder)?.filter(|_| found.len() <= MAX_ENTRIES);
    for entry in entries.ok_or_else(|| io::Error::other("too many files"))? {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // Dot files are temporary files of editors.
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            if depth > 0 {
                let below = format!("{below}{name}/");
                add_files(&entry.path(), &below, depth - 1, found)?;
            }
        } else if let Some(stem) = name.strip_suffix(".md") {
            found.push((format!("{below}{stem}"), entry));
        }
    }
    Ok(())
}

/// Returns the entries of a folder, sorted by name; none if there are too many.
pub(super) fn entries(folder: &Path) -> io::Result<Option<Vec<DirEntry>>> {
    let entries: Vec<DirEntry> = fs::read_dir(folder)?
        .take(MAX_ENTRIES + 1)
        .collect::<io::Result<_>>()?;
    if entries.len() > MAX_ENTRIES {
        return Ok(None);
    }
    let mut named: Vec<(OsString, DirEntry)> = entries
        .into_iter()
        .map(|entry| (entry.file_name(), entry))
        .collect();
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Some(named.into_iter().map(|(_, entry)| entry).collect()))
}

/// Reads a file; none if it has no text to copy.
pub(super) fn read(path: &Path, stem: &str) -> io::Result<(Option<MemoryFile>, Stamp)> {
    let (open, metadata) = file::open_single(path)?;
    let limit = u64::try_from(MAX_LENGTH).unwrap_or(u64::MAX);
    if metadata.len() > limit {
        return Err(io::Error::other(format!("over {} KiB", MAX_LENGTH / 1024)));
    }
    let mut bytes = Vec::new();
    open.take(limit).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok((
        MemoryFile::parse(&text, stem),
        Stamp::from_metadata(&metadata),
    ))
}
