//! Why something could not be done with the repository of the notes.

use std::path::PathBuf;

use anamnesis_store::{fs::home, index, notes};

/// A step of a sync failed. No note is lost, and the next run goes on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The repository's folder is not one that we work in.
    #[error("{path} {reason}")]
    Repository {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// The repository is damaged. The next sync sets it aside and starts a new one.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// What is damaged.
        reason: String,
    },
    /// libgit2 refused.
    #[error("{}", .0.message())]
    Git(#[from] git2::Error),
    /// The notes could not be read or written.
    #[error(transparent)]
    Notes(#[from] notes::Error),
    /// The store's folders cannot be used.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The index could not take the notes up; a later refresh does.
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
    /// The remote holds more than can be meant.
    #[error("the remote holds over {0} files; nothing was taken")]
    TooManyFiles(usize),
    /// A file of the history is larger than any note that was taken.
    #[error("the file {0} of the history is over 16 MiB; it is not read")]
    TooLarge(String),
    /// The repository is of a newer version of Anamnesis.
    #[error(
        "the notes are in format {0}, which a newer anamnesis wrote; update it here, until then nothing is written"
    )]
    NewerFormat(u64),
    /// The remote is something else.
    #[error("the remote holds no notes of anamnesis but {0}; nothing was joined")]
    NotOurs(String),
    /// Something else has to be decided before history is rewritten.
    #[error("sync waits for you; nothing was rewritten")]
    Held,
    /// What is to be purged could not be taken out of the store's files.
    #[error(transparent)]
    Purge(#[from] anamnesis_store::purge::Error),
    /// The record of a purge could not be written, so nothing was rewritten.
    #[error("{0}; nothing was rewritten")]
    NoRecord(String),
    /// Another sync is at it.
    #[error("another sync is running")]
    Busy,
    /// Others were faster each time.
    #[error("others pushed faster {tries} times ({reason}); the notes are committed here")]
    TooBusy {
        /// How often it was tried.
        tries: usize,
        /// git's words for the last time.
        reason: String,
    },
    /// The network, or the user's git.
    #[error(transparent)]
    Network(#[from] crate::git::Error),
}

impl Error {
    /// Tells whether a damaged repository can be the cause: libgit2 or git failed, and not because of
    /// a lock, the network, the remote or the settings. [`GitBackend::repair`] finds out.
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
