//! The error of an operation: kind, cause and hint.

use std::{error, fmt, process::ExitCode};

use anamnesis_note::draft::InvalidDraft;
use anamnesis_store::{
    claude_memory, fs::home, index, journal, notes, settings::config, synced_lines,
};

/// The exit code of a command that succeeded and found a problem that needs the user.
pub const NEEDS_ATTENTION: u8 = 3;

/// The kind of an error. It decides the exit code of a command and the code that a tool returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The operation failed.
    Failed,
    /// The command line is invalid, or an input is missing.
    Usage,
    /// A file of the store cannot be read or written.
    Store,
    /// Another process holds a lock. The same call may succeed in a moment.
    Busy,
    /// The journal is damaged and is repaired in the background.
    Damaged,
    /// Agents have written as many notes as a session may.
    Full,
}

/// Why an operation failed, and what to do.
///
/// The message contains that of the source. Callers use the source to tell causes apart.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    code: Option<&'static str>,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

impl Error {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            message: message.into(),
            hint: None,
            source: None,
        }
    }

    /// The operation failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// The command line is invalid.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn full(message: impl Into<String>) -> Self {
        Self::new(Kind::Full, message)
    }

    /// The operation failed with the message of its cause.
    pub fn caused_by(source: impl error::Error + Send + Sync + 'static) -> Self {
        Self::failed(source.to_string()).because(source)
    }

    /// For `map_err`: the operation failed, with these words before the message of its cause.
    pub fn prefixed<E>(words: impl fmt::Display) -> impl FnOnce(E) -> Self
    where
        E: error::Error + Send + Sync + 'static,
    {
        move |source| Self::failed(format!("{words}: {source}")).because(source)
    }

    /// Sets the kind.
    #[must_use]
    fn kind_of(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the code that a tool returns, if the kind says too little.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// Keeps the cause.
    #[must_use]
    pub fn because(mut self, source: impl error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts words before the message.
    #[must_use]
    pub fn after(mut self, words: &str) -> Self {
        self.message.insert_str(0, words);
        self
    }

    /// Adds a line to the message.
    #[must_use]
    pub fn also(mut self, line: &str) -> Self {
        self.message.push('\n');
        self.message.push_str(line);
        self
    }

    /// The cause, if it has this type.
    pub fn cause<E: error::Error + 'static>(&self) -> Option<&E> {
        self.source.as_deref()?.downcast_ref()
    }

    /// Returns whether the index is damaged, so that a new one helps.
    pub fn is_index_damage(&self) -> bool {
        let cause = self.cause::<index::Error>();
        cause.is_some_and(index::Error::is_damage)
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The code that a tool returns, if it is not the kind's.
    pub fn tool_code(&self) -> Option<&'static str> {
        self.code
    }

    /// Returns what happened.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to do about it, if anything.
    pub fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The text for stderr and the log.
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
            Kind::Usage => 2,
            Kind::Failed | Kind::Store | Kind::Busy | Kind::Damaged | Kind::Full => 1,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(self.source.as_deref()?)
    }
}

pub(crate) const TRY_AGAIN: &str = "try again in a moment";
const FREE_SPACE: &str = "free some space";

impl From<index::Error> for Error {
    fn from(error: index::Error) -> Self {
        let (kind, hint) = match error {
            index::Error::Locked => (Kind::Busy, TRY_AGAIN),
            ref full if full.is_full() => (Kind::Store, FREE_SPACE),
            _ => (
                Kind::Store,
                "anamnesis internal reindex   (rebuilds it from the notes; nothing is lost)",
            ),
        };
        Self::caused_by(error).kind_of(kind).hint(hint)
    }
}

impl From<notes::Error> for Error {
    fn from(error: notes::Error) -> Self {
        if let notes::Error::Journal(error) = error {
            return error.into();
        }
        let (kind, hint) = match &error {
            notes::Error::Unreadable { path, .. } => (
                Kind::Store,
                Some(format!("anamnesis edit {} --raw", path.id)),
            ),
            notes::Error::Io { .. } | notes::Error::Home(_) => {
                (Kind::Store, Some("anamnesis doctor".to_owned()))
            }
            notes::Error::Locked => (Kind::Busy, None),
            _ => (Kind::Store, None),
        };
        Self {
            hint,
            ..Self::caused_by(error).kind_of(kind)
        }
    }
}

impl From<home::Error> for Error {
    fn from(error: home::Error) -> Self {
        Self::caused_by(error).hint("anamnesis doctor")
    }
}

impl From<InvalidDraft> for Error {
    fn from(error: InvalidDraft) -> Self {
        Self::caused_by(error).kind_of(Kind::Usage)
    }
}

impl From<synced_lines::Error> for Error {
    fn from(error: synced_lines::Error) -> Self {
        let (kind, hint) = match error {
            synced_lines::Error::Locked => (Kind::Busy, TRY_AGAIN),
            _ => (Kind::Store, "anamnesis doctor"),
        };
        Self::caused_by(error).kind_of(kind).hint(hint)
    }
}

impl From<config::Error> for Error {
    fn from(error: config::Error) -> Self {
        let (kind, hint) = match error {
            config::Error::Locked => (Kind::Busy, TRY_AGAIN),
            _ => (Kind::Store, "anamnesis doctor"),
        };
        Self::caused_by(error).kind_of(kind).hint(hint)
    }
}

impl From<claude_memory::Error> for Error {
    fn from(error: claude_memory::Error) -> Self {
        match error {
            claude_memory::Error::Notes(error) => error.into(),
            claude_memory::Error::Journal(error) => error.into(),
            claude_memory::Error::Io { .. } => {
                Self::caused_by(error).hint("anamnesis import --claude-home DIR")
            }
        }
    }
}

impl From<journal::Error> for Error {
    fn from(error: journal::Error) -> Self {
        let (kind, hint) = if error.is_damage() {
            (
                Kind::Damaged,
                "it is repaired in the background; try again in a moment",
            )
        } else if error.is_busy() {
            (Kind::Busy, TRY_AGAIN)
        } else if error.is_full() {
            (Kind::Store, FREE_SPACE)
        } else {
            (Kind::Store, "anamnesis doctor")
        };
        Self::caused_by(error).kind_of(kind).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use std::{error::Error as _, io};

    use super::*;

    #[test]
    fn a_full_disk_is_not_helped_by_a_new_index() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = Error::from(index::Error::from(full));
        assert!(error.text().contains("free some space"), "{}", error.text());
        assert!(!error.text().contains("reindex"), "{}", error.text());
    }

    #[test]
    fn a_full_disk_is_not_called_a_locked_journal() {
        // SQLITE_FULL
        let full = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(13), None);
        let error = Error::from(journal::Error::Sqlite(full));
        assert!(error.text().contains("free some space"), "{}", error.text());
        assert!(!error.text().contains("lock"), "{}", error.text());
    }

    #[test]
    fn an_error_keeps_its_cause() {
        let error = Error::from(index::Error::Locked);
        assert!(matches!(error.cause(), Some(index::Error::Locked)));
        assert_eq!(
            error.source().map(ToString::to_string),
            Some(error.to_string())
        );
        assert_eq!(
            (error.kind(), error.next_step()),
            (Kind::Busy, Some(TRY_AGAIN))
        );
    }
}
