//! Places that a purge cannot reach: backups, damaged repositories, hosts, other machines.
//!
//! The outcome of the purge names them. The journal stores them, so that `status` repeats them.

use std::path::{Path, PathBuf};

use anamnesis_store::journal::{Journal, is_over};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The journal key of the places.
const LEFT: &str = "purge_left";

/// The journal key of the backups that were written or restored here.
const BACKUPS: &str = "backups";

/// How long `status` repeats a place that it cannot check, milliseconds.
const REPEATED: i64 = 30 * 24 * 60 * 60 * 1000;

/// The longest list of backups. The oldest are dropped.
const MAX_BACKUPS: usize = 1_000;

/// A place that may still have purged text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftPlace {
    /// Its description, and what to do about it.
    pub text: String,
    /// Its path, if it is on this machine.
    path: Option<PathBuf>,
    /// When the purge was, in milliseconds since 1970.
    at: i64,
}

impl LeftPlace {
    pub(crate) fn new(text: impl Into<String>, path: Option<&Path>, now: DateTime<Utc>) -> Self {
        Self {
            text: text.into(),
            path: path.map(Path::to_owned),
            at: now.timestamp_millis(),
        }
    }

    /// A path matters while it exists, another place for a time.
    fn is_current(&self, now: DateTime<Utc>) -> bool {
        match &self.path {
            Some(path) => path.symlink_metadata().is_ok(),
            None => !is_over(self.at, REPEATED, now.timestamp_millis()),
        }
    }
}

/// Returns the places that earlier purges could not reach.
pub(crate) fn load(journal: &Journal, now: DateTime<Utc>) -> Vec<LeftPlace> {
    let places = journal.json(LEFT).ok().flatten();
    let mut places: Vec<LeftPlace> = places.unwrap_or_default();
    places.retain(|place| place.is_current(now));
    places
}

/// Adds the places of a purge.
pub(crate) fn add(
    journal: &Journal,
    new: &[LeftPlace],
    now: DateTime<Utc>,
) -> Result<(), anamnesis_store::journal::Error> {
    let mut places = load(journal, now);
    places.retain(|old| new.iter().all(|new| new.text != old.text));
    places.extend_from_slice(new);
    journal.set_json(LEFT, &places)
}

/// A backup that was written or restored here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownBackup {
    /// Its path then.
    pub(crate) path: PathBuf,
    /// The time, in milliseconds since 1970.
    pub(crate) at: i64,
}

/// Returns the backups that were written or restored here.
pub(crate) fn backups(journal: &Journal) -> Vec<KnownBackup> {
    journal.json(BACKUPS).ok().flatten().unwrap_or_default()
}

/// Records backups, so that a purge can name them.
pub(crate) fn add_backups(
    journal: &Journal,
    new: impl IntoIterator<Item = KnownBackup>,
) -> Result<(), anamnesis_store::journal::Error> {
    let mut all = backups(journal);
    for backup in new {
        all.retain(|old| old.path != backup.path);
        all.push(backup);
    }
    let first = all.len().saturating_sub(MAX_BACKUPS);
    journal.set_json(BACKUPS, &all[first..])
}
