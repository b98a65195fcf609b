//! Defines the input and the result of a synchronization.

use std::{collections::BTreeSet, time::Duration};

use anamnesis_note::id::NoteId;
use anamnesis_store::notes::{NotePath, Problem};
use chrono::{DateTime, Utc};

use crate::{git::GitEnvironment, remote::Remote};

/// The content of a remote compared with this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// Whether a remote is set.
    pub has_remote: bool,
    /// Notes in the remote, without tombstones.
    pub notes_there: usize,
    /// Notes on this machine, without tombstones.
    pub notes_here: usize,
    /// Notes after a join, if none is deleted.
    pub together: usize,
    /// Notes on this machine that the remote deleted.
    pub deleted_there: usize,
    /// The other machines that wrote to the remote, sorted.
    pub machines: Vec<String>,
}

/// A change that is not applied until the person accepts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Many notes were deleted in the remote.
    MassDeletion {
        /// The number of deleted notes.
        gone: usize,
        /// The number of all notes.
        of: usize,
    },
    /// Many notes were deleted in this machine's folder.
    LocalMassDeletion {
        /// The number of deleted notes.
        gone: usize,
        /// The number of all notes.
        of: usize,
    },
    /// The history of the remote was rewritten, and not by a purge.
    Rewritten,
}

/// The result of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synced {
    /// Whether the remote has all local commits.
    pub pushed: bool,
    /// Whether this run sent some of them.
    pub sent: bool,
    /// The number of commits from the remote.
    pub pulled: usize,
    /// New conflict siblings, and texts of deleted notes that became proposals.
    pub conflicts: usize,
    /// The abbreviated id of the branch's commit, if there is one.
    pub head: Option<String>,
    /// The result in a few words.
    pub detail: String,
    /// Notes whose files were written or removed, sorted.
    pub changed: Vec<NotePath>,
    /// Notes with which other machines brought back what was purged here.
    pub returned: BTreeSet<NoteId>,
    /// Refused files of the remote, with reasons.
    pub problems: Vec<Problem>,
    /// The change that is held back, if any.
    pub held: Option<Held>,
}

/// The state of a synchronization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Whether there is a repository.
    pub initialized: bool,
    /// The remote, without credentials.
    pub remote: Option<String>,
    /// The abbreviated id of the branch's commit.
    pub head: Option<String>,
    /// Whether notes changed since that commit.
    pub dirty: bool,
    /// Commits that are not pushed, as far as known.
    pub ahead: usize,
    /// Notes in those commits.
    pub waiting: usize,
}

/// The person's decision about a change that is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeldDecision {
    /// No decision: it stays held back.
    #[default]
    None,
    /// Apply it.
    Accept,
    /// Reject it: restore what was held back, here and in the remote.
    Restore,
    /// Keep every note that the remote deleted, here and in the remote, also those that were
    /// forgotten one by one.
    KeepAll,
}

impl HeldDecision {
    /// Returns whether something that is gone comes back.
    pub(crate) fn restores(self) -> bool {
        matches!(self, Self::Restore | Self::KeepAll)
    }
}

/// The settings of a backend.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This machine's name in commits.
    pub machine_id: String,
    /// The remote, if one is set.
    pub remote: Option<Remote>,
    /// The environment of the user's git.
    pub environment: GitEnvironment,
    /// The current time.
    pub now: DateTime<Utc>,
    /// How long to wait for the sync lock.
    pub timeout: Duration,
    /// The time limit of one git command.
    pub time_limit: Duration,
    /// The person's decision.
    pub answer: HeldDecision,
}
