//! What a way of synchronizing offers, whatever carries the notes.

use std::time::Duration;

use anamnesis_store::notes::{NotePath, Problem};
use chrono::{DateTime, Utc};

use crate::{git::GitEnvironment, remote::Remote};

/// Carries the portable notes between the machines of one person.
pub trait SyncBackend {
    /// Why something could not be done.
    type Error: std::error::Error;

    /// Makes the repository of the notes if there is none, reaches the remote if one is set and looks
    /// at what it holds. Nothing is joined and no note is changed.
    ///
    /// # Errors
    /// When the remote cannot be reached, is no memory of notes, or is of a newer format.
    fn init(&self) -> Result<Reached, Self::Error>;

    /// Commits what changed here, joins what changed elsewhere, and sends the result.
    ///
    /// # Errors
    /// When a step fails. No note is lost; the next run goes on from where this one stopped.
    fn sync(&self) -> Result<Synced, Self::Error>;

    /// Tells how things stand, without the network.
    ///
    /// # Errors
    /// When the repository cannot be read.
    fn state(&self) -> Result<State, Self::Error>;
}

/// What a remote holds beside what is here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// Whether a remote is set at all.
    pub has_remote: bool,
    /// Notes in the remote, tombstones aside.
    pub notes_there: usize,
    /// Notes here, tombstones aside.
    pub notes_here: usize,
    /// Notes there will be when both are joined.
    pub together: usize,
    /// The machines that wrote to the remote, this one aside, sorted.
    pub machines: Vec<String>,
}

/// Something that is not done before the person has said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// The remote lacks many notes that it had.
    MassDeletion {
        /// How many are gone.
        gone: usize,
        /// Of how many.
        of: usize,
    },
    /// Many notes are gone from this machine's folder.
    LocalMassDeletion {
        /// How many are gone.
        gone: usize,
        /// Of how many.
        of: usize,
    },
    /// The history of the remote was rewritten, by no purge.
    Rewritten,
}

/// What one run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synced {
    /// Whether the remote has everything that is here.
    pub pushed: bool,
    /// Commits that came from the remote.
    pub pulled: usize,
    /// Conflict siblings that were made, and texts of deleted notes that became proposals.
    pub conflicts: usize,
    /// The commit that the notes are at, abbreviated; none without one.
    pub head: Option<String>,
    /// What became of it, in a few words.
    pub detail: String,
    /// Notes whose files were written or removed, sorted.
    pub changed: Vec<NotePath>,
    /// What was found in the remote and not taken, and why.
    pub problems: Vec<Problem>,
    /// What waits for the person.
    pub held: Option<Held>,
}

/// How things stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Whether there is a repository.
    pub initialized: bool,
    /// The remote, without credentials.
    pub remote: Option<String>,
    /// The commit that the notes are at, abbreviated.
    pub head: Option<String>,
    /// Whether notes changed since that commit.
    pub dirty: bool,
    /// Commits that the remote does not have yet, as far as is known.
    pub ahead: usize,
    /// Notes in those commits.
    pub waiting: usize,
}

/// What a person has said about what was held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answer {
    /// Nothing yet: it stays held back.
    #[default]
    None,
    /// It is meant: take it.
    Accept,
    /// It is not: bring everything back, here and in the remote.
    Restore,
}

/// What a backend works with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of this machine in commits.
    pub machine_id: String,
    /// The remote, if one is set.
    pub remote: Option<Remote>,
    /// What the user's git may see of the environment.
    pub environment: GitEnvironment,
    /// The time that counts as now.
    pub now: DateTime<Utc>,
    /// How long another sync is waited for.
    pub patience: Duration,
    /// How long one call of git may take.
    pub time_limit: Duration,
    /// What the person has said.
    pub answer: Answer,
    /// The id of this installation, whose receipts are sent; without one none are.
    pub installation: Option<String>,
}
