//! Records that the journal could not take: one file an event, taken up later in their order.
//!
//! A file holds a record, which is fit to be stored. Its name is a ULID, so names sort by time. It is
//! deleted after the commit that holds its record; a record that is taken twice changes nothing, so a
//! process may be killed in between.

use std::{
    fs, io,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use anamnesis_core::record::Record;
use ulid::Ulid;

use crate::{
    file,
    home::{Home, ensure_folder},
};

/// The largest file that is read, in bytes. A record is far smaller.
const MAX_LENGTH: usize = 4 * 1024 * 1024;

/// The end of a file's name. Temporary files and whatever else lies there have another one.
const ENDING: &str = "json";

/// The files that wait, and those that cannot be read.
#[derive(Debug)]
pub struct Spool<'a> {
    home: &'a Home,
}

/// A record that waits.
#[derive(Debug)]
pub struct Waiting {
    path: PathBuf,
    /// The record; none if the file cannot be read.
    pub record: Option<Record>,
}

impl<'a> Spool<'a> {
    /// The spool of a store.
    pub fn new(home: &'a Home) -> Self {
        Self { home }
    }

    /// Keeps a record until the journal can take it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep(&self, record: &Record) -> io::Result<()> {
        let folder = self.home.spool();
        ensure_folder(&folder).map_err(io::Error::other)?;
        let bytes = serde_json::to_vec(record)?;
        // The real time, whatever time the record has: the order is that of arrival.
        let path = folder.join(format!("{}.{ENDING}", Ulid::generate()));
        file::write_atomic(&path, &bytes).map(drop)
    }

    /// The first files in their order.
    pub fn waiting(&self, limit: usize) -> Vec<Waiting> {
        let mut paths = self.paths();
        paths.truncate(limit);
        paths
            .into_iter()
            .map(|path| Waiting {
                record: file::read_head(&path, MAX_LENGTH)
                    .ok()
                    .and_then(|(bytes, ..)| serde_json::from_slice(&bytes).ok()),
                path,
            })
            .collect()
    }

    /// How many files wait.
    pub fn len(&self) -> usize {
        self.paths().len()
    }

    /// Tells whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.paths().is_empty()
    }

    /// Puts a file away whose record the journal holds now, or that no record can be read from.
    ///
    /// # Errors
    /// When it can be neither deleted nor moved.
    pub fn put_away(&self, waiting: &Waiting) -> io::Result<()> {
        let result = if waiting.record.is_some() {
            fs::remove_file(&waiting.path)
        } else {
            let folder = self.home.quarantine();
            ensure_folder(&folder).map_err(io::Error::other)?;
            let name = waiting.path.file_name().unwrap_or_default();
            fs::rename(
                &waiting.path,
                folder.join(format!("spool-{}", name.to_string_lossy())),
            )
        };
        match result {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// The files that were moved aside, for `doctor`.
    pub fn unreadable(&self) -> Vec<PathBuf> {
        self.set_aside().map(|(path, _)| path).collect()
    }

    /// Deletes the files that were moved aside longer ago than this; tells how many.
    pub fn forget_unreadable(&self, age: Duration) -> usize {
        self.set_aside()
            .filter(|(_, modified)| modified.elapsed().is_ok_and(|elapsed| elapsed > age))
            .filter(|(path, _)| fs::remove_file(path).is_ok())
            .count()
    }

    fn set_aside(&self) -> impl Iterator<Item = (PathBuf, SystemTime)> {
        fs::read_dir(self.home.quarantine())
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("spool-"))
            .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.modified().ok()?)))
    }

    fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = fs::read_dir(self.home.spool())
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
            .collect();
        paths.sort();
        paths
    }
}
