//! The failure of a command: message, hint and exit code.

use std::process::ExitCode;

use anamnesis_note::draft::InvalidDraft;
use anamnesis_store::{claude_memory, index, journal, notes, settings::config, usage_log, writing};

/// The exit code of a command that succeeded and found a problem that needs the user.
pub const NEEDS_ATTENTION: u8 = 3;

/// The kind of a failure, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The command failed.
    Failed,
    /// The command line is invalid, or an input is missing.
    Usage,
}

/// Why a command failed, and what to do.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// The command failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Failed,
            message: message.into(),
            hint: None,
        }
    }

    /// The command line is invalid.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Usage,
            message: message.into(),
            hint: None,
        }
    }

    /// The machine does not meet a requirement of the command.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::failed(message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a line to the message.
    #[must_use]
    pub fn also(mut self, line: &str) -> Self {
        self.message.push('\n');
        self.message.push_str(line);
        self
    }

    /// What happened.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, if anything.
    pub fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The text for stderr.
    pub fn text(&self) -> String {
        let mut text = format!("anamnesis: {}\n", self.message);
        if let Some(hint) = &self.hint {
            text.push_str("→ ");
            text.push_str(hint);
            text.push('\n');
        }
        text
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::Failed => 1,
            Kind::Usage => 2,
        })
    }
}

impl From<index::Error> for Failure {
    fn from(error: index::Error) -> Self {
        let failure = Self::failed(error.to_string());
        match error {
            index::Error::Locked => failure.hint("try again in a moment"),
            _ => failure.hint(
                "anamnesis internal reindex   (builds it anew from the notes; nothing is lost)",
            ),
        }
    }
}

impl From<notes::Error> for Failure {
    fn from(error: notes::Error) -> Self {
        let failure = Self::failed(error.to_string());
        match error {
            notes::Error::Unreadable { path, .. } => {
                failure.hint(format!("anamnesis edit {} --raw", path.id))
            }
            notes::Error::Io { .. } | notes::Error::Home(_) => failure.hint("anamnesis doctor"),
            _ => failure,
        }
    }
}

impl From<writing::Error> for Failure {
    fn from(error: writing::Error) -> Self {
        match error {
            writing::Error::Notes(error) => error.into(),
            writing::Error::Journal(error) => error.into(),
            writing::Error::Full(_) => Self::failed(error.to_string())
                .hint("edit one of them, or ask the user to type /memory-remember TEXT"),
        }
    }
}

impl From<InvalidDraft> for Failure {
    fn from(unfit: InvalidDraft) -> Self {
        Self::usage(unfit.to_string())
    }
}

impl From<usage_log::Error> for Failure {
    fn from(error: usage_log::Error) -> Self {
        let failure = Self::failed(error.to_string());
        match error {
            usage_log::Error::Locked => failure.hint("try again in a moment"),
            _ => failure.hint("anamnesis doctor"),
        }
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        let failure = Self::failed(error.to_string());
        match error {
            config::Error::Locked => failure.hint("try again in a moment"),
            _ => failure.hint("anamnesis doctor"),
        }
    }
}

impl From<claude_memory::Error> for Failure {
    fn from(error: claude_memory::Error) -> Self {
        match error {
            claude_memory::Error::Notes(error) => error.into(),
            claude_memory::Error::Journal(error) => error.into(),
            error @ claude_memory::Error::Io { .. } => {
                Self::environment(error.to_string()).hint("anamnesis import --claude-home DIR")
            }
        }
    }
}

impl From<journal::Error> for Failure {
    fn from(error: journal::Error) -> Self {
        let failure = Self::failed(error.to_string());
        if error.is_damage() {
            failure.hint("it is repaired in the background; try again in a moment")
        } else {
            failure.hint("anamnesis doctor")
        }
    }
}
