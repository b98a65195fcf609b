//! Errors of git and the network, and what a person can do about them.

use std::{fmt, io, path::PathBuf, time::Duration};

/// The reason why git failed.
///
/// No message and no field contains a credential or a terminal control character.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// git is not installed.
    #[error("git was not found in any folder of PATH")]
    Missing,
    /// git is too old.
    #[error("{} is git {version}, and sync needs 2.30 or later", path.display())]
    TooOld {
        /// The program.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// git cannot be started, or its exit status is unknown.
    #[error("cannot run {}: {source}", path.display())]
    Run {
        /// The program.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// git's output cannot be flushed to the disk.
    #[error("cannot flush {}: {source}", path.display())]
    Flush {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The repository's own configuration has a setting that sync does not trust.
    #[error("the setting `{key}` in {} is not trusted by sync", file.display())]
    Config {
        /// The setting.
        key: String,
        /// The file that contains it.
        file: PathBuf,
    },
    /// The repository's configuration names another remote, or more than one.
    #[error("`remote.origin.url` in {} is not the remote of the settings", file.display())]
    OtherRemote {
        /// The file that contains it.
        file: PathBuf,
    },
    /// git exceeded its time limit.
    #[error("{task} took longer than {} s", limit.as_secs_f32())]
    TimedOut {
        /// The task.
        task: Task,
        /// The limit.
        limit: Duration,
    },
    /// The remote sends more than the limit.
    #[error("{remote} sends more than {limit} bytes; nothing of it was kept")]
    TooLarge {
        /// The remote.
        remote: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The remote cannot be reached.
    #[error("{remote} cannot be reached: {words}")]
    Offline {
        /// The remote.
        remote: String,
        /// The message of git or ssh.
        words: String,
    },
    /// The host's key is in no known_hosts file.
    #[error(
        "the host {host} is not known to ssh; it shows the key {}",
        fingerprint.as_deref().unwrap_or("(unknown)")
    )]
    UnknownHost {
        /// The host, as passed to ssh.
        host: String,
        /// Type and fingerprint of the key.
        fingerprint: Option<String>,
        /// The command that shows and accepts the key.
        command: String,
    },
    /// The host's key has changed.
    #[error(
        "THE KEY OF {host} HAS CHANGED: somebody else may be answering in its place; it shows {}",
        fingerprint.as_deref().unwrap_or("an unknown key")
    )]
    ChangedHost {
        /// The host, as passed to ssh.
        host: String,
        /// The fingerprint of the new key.
        fingerprint: Option<String>,
    },
    /// The remote needs credentials, or other ones.
    #[error("{remote} denied access: {words}")]
    Credentials {
        /// The remote.
        remote: String,
        /// The message of git, ssh or the server.
        words: String,
    },
    /// The repository does not exist in the remote.
    #[error("{remote} is no git repository: {words}")]
    NoRepository {
        /// The remote.
        remote: String,
        /// The message of git or the server.
        words: String,
    },
    /// The remote refuses the push permanently.
    #[error("{remote} refused the push: {words}")]
    Refused {
        /// The remote.
        remote: String,
        /// The server's own message.
        words: String,
    },
    /// The remote lacks the beginning of the history.
    #[error("{remote} is a shallow clone: the beginning of its history is missing")]
    Shallow {
        /// The remote.
        remote: String,
    },
    /// Another error.
    #[error("{task} failed: {words}")]
    Failed {
        /// The task.
        task: Task,
        /// git's message.
        words: String,
    },
}

/// A task of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Fetching from a remote, named without credentials.
    Fetch(String),
    /// Pushing to a remote, named without credentials.
    Push(String),
    /// Reading the configuration.
    Configuration,
    /// Packing a repository or removing unreferenced objects.
    Tidy(PathBuf),
}

impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetch(remote) => write!(formatter, "fetching from {remote}"),
            Self::Push(remote) => write!(formatter, "pushing to {remote}"),
            Self::Configuration => formatter.write_str("reading git's configuration"),
            Self::Tidy(path) => write!(formatter, "tidying {}", path.display()),
        }
    }
}

impl Error {
    /// Returns whether the remote was unreachable, so that a later try may succeed.
    pub fn is_offline(&self) -> bool {
        matches!(
            self,
            Self::Offline { .. }
                | Self::TimedOut {
                    task: Task::Fetch(_) | Task::Push(_),
                    ..
                }
        )
    }

    /// Returns the solution, as one sentence or one command.
    pub fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Missing => "install git; everything but the remote and `purge` works without it".to_owned(),
            Self::TooOld { .. } => "install a newer git".to_owned(),
            Self::Config { key, file } => {
                format!("git config --file {} --unset-all {}", quoted(&file.to_string_lossy()), quoted(key))
            }
            Self::OtherRemote { .. } => "set the remote again: anamnesis init --remote URL".to_owned(),
            Self::TimedOut { .. } | Self::Offline { .. } => {
                "the notes are safe here and go out with a later sync".to_owned()
            }
            Self::TooLarge { .. } => "look whether this is the repository of your notes".to_owned(),
            Self::UnknownHost { command, .. } => {
                format!("compare the key with the host's own, then take it once: {command}")
            }
            Self::ChangedHost { host, .. } => format!(
                "ask whoever runs {host} whether its key was changed; until then do not connect"
            ),
            Self::Credentials { .. } => {
                "make `git ls-remote` work for it in a terminal without a question: an ssh key in the agent, or a credential helper".to_owned()
            }
            Self::NoRepository { .. } => {
                "look at the address; on a host of yours: git init --bare PATH".to_owned()
            }
            Self::Refused { words, .. } => refusal_advice(words),
            Self::Shallow { .. } => {
                "in the remote: git fetch --unshallow; or make a new remote from a machine that has all notes: anamnesis init --remote URL".to_owned()
            }
            Self::Run { .. } | Self::Flush { .. } | Self::Failed { .. } => return None,
        };
        Some(advice)
    }
}

/// Servers report missing credentials in many ways; these are common.
fn refusal_advice(words: &str) -> String {
    let words = words.to_lowercase();
    let says = |any: &[&str]| any.iter().any(|word| words.contains(word));
    if says(&["checked out", "denycurrentbranch"]) {
        "the remote is a work tree; make a bare one: git init --bare PATH"
    } else if says(&["signed", "signature", "gpg"]) {
        "the server wants signed commits; switch that off for this repository. The notes are safe here"
    } else if says(&["author", "committer", "email", "e-mail"]) {
        "the server wants another author; allow any for this repository. The notes are safe here"
    } else if says(&["protected"]) {
        "the server protects the branch `main`; allow pushes to it. The notes are safe here"
    } else {
        "change what the server asks for; the notes are safe here"
    }
    .to_owned()
}

/// Quotes a word for a shell, if it needs it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@=+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_can_be_pasted() {
        let error = Error::Config {
            key: "url.a b'c.insteadof".to_owned(),
            file: "/home/me/.anamnesis/.git/config".into(),
        };
        assert_eq!(
            error.advice().unwrap(),
            "git config --file /home/me/.anamnesis/.git/config --unset-all 'url.a b'\\''c.insteadof'"
        );
    }

    #[test]
    fn a_refusal_says_what_the_server_wants() {
        for (words, expected) in [
            ("GH006: commits must have verified signatures", "signed"),
            ("committer email `x` is not verified", "another author"),
            ("protected branch hook declined", "protects"),
            ("branch is currently checked out", "--bare"),
            ("pre-receive hook declined", "what the server asks for"),
        ] {
            let error = Error::Refused {
                remote: "git@host:m".to_owned(),
                words: words.to_owned(),
            };
            let advice = error.advice().unwrap();
            assert!(advice.contains(expected), "{words}: {advice}");
        }
    }
}
