//! What can go wrong between here and the remote, and what a person can do about it.

use std::{fmt, io, path::PathBuf, time::Duration};

/// Why git could not do what it was asked.
///
/// No message and no field holds a credential or anything that a terminal obeys.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no git.
    #[error("git was not found in any folder of PATH")]
    Missing,
    /// Git is too old for what is asked of it.
    #[error("{} is git {version}, and sync needs 2.30 or later", path.display())]
    TooOld {
        /// The program.
        path: PathBuf,
        /// What it says it is.
        version: String,
    },
    /// Git cannot be started, or its end is not told.
    #[error("cannot run {}: {source}", path.display())]
    Run {
        /// The program.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What git wrote cannot be brought to the disk.
    #[error("cannot flush {}: {source}", path.display())]
    Flush {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The repository's own configuration sets something that sync does not trust.
    #[error("the setting `{key}` in {} is none that sync trusts", file.display())]
    Config {
        /// The setting.
        key: String,
        /// The file that has it.
        file: PathBuf,
    },
    /// The repository's configuration names another remote, or more than one.
    #[error("`remote.origin.url` in {} is not the remote of the settings", file.display())]
    OtherRemote {
        /// The file that has it.
        file: PathBuf,
    },
    /// It took longer than it may.
    #[error("{task} took longer than {} s", limit.as_secs_f32())]
    TimedOut {
        /// What took so long.
        task: Task,
        /// How long it may take.
        limit: Duration,
    },
    /// The remote sends more than is taken.
    #[error("{remote} sends more than {limit} bytes; nothing of it was kept")]
    TooLarge {
        /// The remote.
        remote: String,
        /// How much is taken.
        limit: u64,
    },
    /// The remote is not there now.
    #[error("{remote} cannot be reached: {words}")]
    Offline {
        /// The remote.
        remote: String,
        /// The words of git or ssh.
        words: String,
    },
    /// The key of the host is in no file of known hosts.
    #[error(
        "the host {host} is not known to ssh; it shows the key {}",
        fingerprint.as_deref().unwrap_or("(none told)")
    )]
    UnknownHost {
        /// The host, as ssh is given it.
        host: String,
        /// The kind of the key and its fingerprint.
        fingerprint: Option<String>,
        /// What a person runs once to look at the key and take it.
        command: String,
    },
    /// The host shows another key than before.
    #[error(
        "THE KEY OF {host} HAS CHANGED: somebody else may be answering in its place; it shows {}",
        fingerprint.as_deref().unwrap_or("a key that was not told")
    )]
    ChangedHost {
        /// The host, as ssh is given it.
        host: String,
        /// The fingerprint of the new key.
        fingerprint: Option<String>,
    },
    /// The remote wants other credentials, or credentials at all.
    #[error("{remote} did not let us in: {words}")]
    Credentials {
        /// The remote.
        remote: String,
        /// The words of git, ssh or the server.
        words: String,
    },
    /// The remote has no such repository.
    #[error("{remote} is no git repository: {words}")]
    NoRepository {
        /// The remote.
        remote: String,
        /// The words of git or the server.
        words: String,
    },
    /// The remote does not take what was sent, and would not take it again.
    #[error("{remote} refused what was sent: {words}")]
    Refused {
        /// The remote.
        remote: String,
        /// The server's own words.
        words: String,
    },
    /// Anything else.
    #[error("{task} failed: {words}")]
    Failed {
        /// What failed.
        task: Task,
        /// The words of git.
        words: String,
    },
}

/// What git was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Fetching from a remote, named without credentials.
    Fetch(String),
    /// Sending to a remote, named without credentials.
    Push(String),
    /// Reading the configuration.
    Configuration,
    /// Packing a repository or dropping what nothing names in it.
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
    /// Tells whether the remote was out of reach, so that trying later may be all that is needed.
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

    /// Returns what a person can do about it, in one sentence or one command.
    pub fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Missing => "install git; everything but the remote works without it".to_owned(),
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
            Self::Run { .. } | Self::Flush { .. } | Self::Failed { .. } => return None,
        };
        Some(advice)
    }
}

/// Servers say in many ways what they want; these wishes are common.
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
