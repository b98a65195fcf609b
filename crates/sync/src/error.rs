//! Errors of the repository of the notes.

use std::path::PathBuf;

use anamnesis_store::{fs::home, index, notes};

/// A step of a sync failed. No note is lost, and the next run continues.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The repository's folder cannot be used.
    #[error("{path} {reason}")]
    Repository {
        /// The folder.
        path: PathBuf,
        /// The fault, and how to fix it.
        reason: String,
    },
    /// The repository is damaged. The next sync sets it aside and starts a new one.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// The damage.
        reason: String,
    },
    /// libgit2 failed.
    #[error("{}", .0.message())]
    Git(#[from] git2::Error),
    /// A purge would push notes that must stay on this machine.
    #[error("nothing was sent: {0} has a credential or a <private> part; remove that first")]
    Withheld(String),
    /// The notes could not be read or written.
    #[error(transparent)]
    Notes(#[from] notes::Error),
    /// The store's folders cannot be used.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The index could not be updated; a later refresh does that.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// The file system refused.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The remote has too many files.
    #[error("the remote has more than {0} files; nothing was joined")]
    TooManyFiles(usize),
    /// A file in the history is over the size limit.
    #[error("the file {0} of the history is over 16 MiB; it is not read")]
    TooLarge(String),
    /// The repository is of a newer version of Anamnesis.
    #[error(
        "the notes have format {0} of a newer anamnesis; update anamnesis here, until then nothing is written"
    )]
    NewerFormat(u64),
    /// The remote has other content.
    #[error("the remote holds no notes of anamnesis but {0}; nothing was joined")]
    NotOurs(String),
    /// The person has to decide about a sync before history is rewritten.
    #[error("a sync is held back until you decide (see status); nothing was rewritten")]
    Held,
    /// The store's files could not be purged.
    #[error(transparent)]
    Purge(#[from] anamnesis_store::purge::Error),
    /// The record of a purge could not be written, so nothing was rewritten.
    #[error("{0}; nothing was rewritten")]
    NoRecord(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another sync is running.
    #[error("another sync is running")]
    Busy,
    /// Other machines pushed first at every try.
    #[error(
        "other machines pushed first {tries} times ({reason}); the notes are committed here, sync again later"
    )]
    TooBusy {
        /// The number of tries.
        tries: usize,
        /// git's message for the last try.
        reason: String,
    },
    /// The network or the user's git failed.
    #[error(transparent)]
    Network(#[from] crate::git::Error),
}

impl Error {
    /// Returns whether a damaged repository can be the cause: libgit2 or git failed for another
    /// reason than a lock, the network, the remote or the settings. [`GitBackend::repair`] checks.
    ///
    /// [`GitBackend::repair`]: crate::GitBackend::repair
    pub fn may_be_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Git(error) => error.code() != git2::ErrorCode::Locked,
            // git has many messages for an object that it cannot read, and `Refused` may quote one.
            Self::Network(error) => {
                use crate::git::Error::{Failed, Refused};
                matches!(error, Failed { .. } | Refused { .. })
            }
            _ => false,
        }
    }

    pub(crate) fn damaged(path: &std::path::Path, reason: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn repository(path: &std::path::Path, reason: impl Into<String>) -> Self {
        Self::Repository {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}
