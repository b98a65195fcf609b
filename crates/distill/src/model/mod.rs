//! Sends one request to the model that the person configured, within limits.
//!
//! A model is reached over HTTP, in the form of OpenAI's API, or through Claude Code's command.
//! Both take two texts and return one. Callers decide what is sent and how the answer is used.
//!
//! Invariants:
//! - A request ends within its timeout, however slowly an answer arrives, and at most
//!   [`MAX_ANSWER`] bytes of the answer are kept.
//! - Redirects are not followed: the key is sent only to the configured host.
//! - No error and no debug output contains the key. Errors contain at most one short sanitised line
//!   of an answer.

mod chat;
mod program;
mod url;

use std::time::Duration;

use anamnesis_text::{redact::redact, truncate};

pub use self::{
    chat::{Endpoint, Key},
    program::Program,
    url::{BaseUrl, InvalidUrl},
};

/// The maximum size of an answer, in bytes.
pub const MAX_ANSWER: usize = 1024 * 1024;

/// How many characters of an error message are repeated.
const MAX_SAYS: usize = 160;

/// The provider of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// No model: texts are made by rule.
    Heuristic,
    /// OpenAI, or a service with the same API.
    OpenAi,
    /// DeepSeek.
    DeepSeek,
    /// A server run by the person.
    Local,
    /// Claude Code's command, paid by the person's subscription.
    Claude,
}

impl Provider {
    /// Every provider, in display order.
    pub const ALL: [Self; 5] = [
        Self::Heuristic,
        Self::OpenAi,
        Self::DeepSeek,
        Self::Local,
        Self::Claude,
    ];

    /// Returns the name used in settings and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Heuristic => "heuristic",
            Self::OpenAi => "openai",
            Self::DeepSeek => "deepseek",
            Self::Local => "local",
            Self::Claude => "claude",
        }
    }

    /// Parses a name, ignoring case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(word))
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The timeout has passed.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection failed.
    #[error("cannot reach {host}: {reason}")]
    Unreachable {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The server returned an error status.
    #[error("{host} answered {status}{}", suffix(.says))]
    Status {
        /// The host.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The server's message in one short line, possibly empty.
        says: String,
    },
    /// The server redirects the request.
    #[error("{0} redirects the request, and redirects are not followed; check the base URL")]
    Redirect(String),
    /// The answer is too large.
    #[error("the answer is over {} KiB", MAX_ANSWER / 1024)]
    TooLarge,
    /// The answer is not a chat completion.
    #[error("{0} did not answer with a chat completion")]
    NotJson(String),
    /// The answer has no text.
    #[error("the answer of {0} is empty")]
    NoContent(String),
    /// The program failed.
    #[error("{program} failed{}", suffix(.says))]
    Program {
        /// The program's path.
        program: String,
        /// The program's output in one short line, possibly empty.
        says: String,
    },
}

/// Formats a message to follow a sentence.
fn suffix(says: &str) -> String {
    if says.is_empty() {
        String::new()
    } else {
        format!(": {says}")
    }
}

/// Returns one short sanitised line of a foreign text.
fn clipped(text: &str) -> String {
    truncate::line(&redact(text).text, MAX_SAYS)
}

/// A configured model, with all that a request needs.
#[derive(Debug, Clone)]
pub enum Model {
    /// A model reached over HTTP.
    Endpoint(Endpoint),
    /// A model reached through a program.
    Program(Program),
}

impl Model {
    /// Sends one request. `system` is the instruction, `user` the material.
    pub fn ask(&self, system: &str, user: &str) -> Result<String, Error> {
        match self {
            Self::Endpoint(endpoint) => endpoint.ask(system, user),
            Self::Program(program) => program.ask(system, user),
        }
    }

    /// Returns the label recorded in notes: `provider/model`.
    pub fn label(&self) -> String {
        match self {
            Self::Endpoint(endpoint) => {
                format!("{}/{}", endpoint.provider.as_str(), endpoint.model)
            }
            Self::Program(program) => format!("{}/{}", Provider::Claude.as_str(), program.model),
        }
    }

    /// Returns who receives the request, for people.
    pub fn receiver(&self) -> String {
        match self {
            Self::Endpoint(endpoint) => endpoint.base_url.host().to_owned(),
            Self::Program(_) => "Claude Code".to_owned(),
        }
    }

    /// Limits the timeout to `most`.
    #[must_use]
    pub fn within(mut self, most: Duration) -> Self {
        let timeout = match &mut self {
            Self::Endpoint(endpoint) => &mut endpoint.timeout,
            Self::Program(program) => &mut program.timeout,
        };
        *timeout = most.min(*timeout);
        self
    }
}
