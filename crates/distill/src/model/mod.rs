//! Asks a model that the person named, once, within limits.
//!
//! A model is reached over HTTP, in the form that OpenAI and many others understand, or through Claude
//! Code's own command. Both are given two texts and give one back. What is in the texts, and what is made
//! of the answer, is not decided here.
//!
//! Invariants:
//! - A request ends within its time, however slowly an answer drips, and no more than [`MAX_ANSWER`] of
//!   an answer is kept.
//! - No redirect is followed: the key goes to the host that was named, and to no other.
//! - No error and no debug output holds the key; of an answer errors hold one short line that cannot do
//!   harm.

mod chat;
mod program;
mod proxy;
mod url;

use std::time::Duration;

use anamnesis_text::{clean::one_line, redact::redact};

pub use self::{
    chat::{Endpoint, Key},
    program::Program,
    proxy::Proxies,
    url::{BaseUrl, InvalidUrl},
};

/// The most of an answer that is read, in bytes.
pub const MAX_ANSWER: usize = 1024 * 1024;

/// How many characters of a refusal an error repeats.
const MAX_SAYS: usize = 160;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Nobody: texts are made by rule.
    Heuristic,
    /// OpenAI, or a service that speaks as it does.
    OpenAi,
    /// DeepSeek.
    DeepSeek,
    /// A server of the person's own.
    Local,
    /// Claude Code's own command, and with it the person's subscription.
    Claude,
}

impl Provider {
    /// Every provider, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::Heuristic,
        Self::OpenAi,
        Self::DeepSeek,
        Self::Local,
        Self::Claude,
    ];

    /// The word for it in settings and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Heuristic => "heuristic",
            Self::OpenAi => "openai",
            Self::DeepSeek => "deepseek",
            Self::Local => "local",
            Self::Claude => "claude",
        }
    }

    /// The provider of that name, whatever its letter case.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(word))
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It took too long.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// Nobody could be reached.
    #[error("cannot reach {host}: {reason}")]
    Unreachable {
        /// Who.
        host: String,
        /// Why.
        reason: String,
    },
    /// The server refused.
    #[error("{host} answered {status}{}", said(.says))]
    Status {
        /// Who.
        host: String,
        /// The status of HTTP.
        status: u16,
        /// What it says, on one short line; empty if it says nothing.
        says: String,
    },
    /// The server wants the request to go elsewhere.
    #[error("{0} sends requests elsewhere, which is not followed; is the base URL right?")]
    Redirect(String),
    /// The answer has no end, or is far too long.
    #[error("the answer is over {} KiB", MAX_ANSWER / 1024)]
    TooLarge,
    /// The answer is not what such a server says.
    #[error("the answer of {0} is no JSON of a chat")]
    NotJson(String),
    /// The answer has no text.
    #[error("the answer of {0} is empty")]
    NoContent(String),
    /// The program failed.
    #[error("{program} failed{}", said(.says))]
    Program {
        /// Its name.
        program: String,
        /// What it says, on one short line; empty if it says nothing.
        says: String,
    },
}

/// What a refusal says, fit to follow a sentence.
fn said(says: &str) -> String {
    if says.is_empty() {
        String::new()
    } else {
        format!(": {says}")
    }
}

/// One short line of a text that somebody else wrote, without a secret.
fn clipped(text: &str) -> String {
    let line = one_line(&redact(text).text);
    match line.char_indices().nth(MAX_SAYS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// A model that was named, with all that is needed to ask it.
#[derive(Debug, Clone)]
pub enum Model {
    /// Over HTTP.
    Endpoint(Endpoint),
    /// Through a program.
    Program(Program),
}

impl Model {
    /// Asks once. `system` says what to do, `user` with what.
    ///
    /// # Errors
    /// When there is no answer with a text in it.
    pub fn ask(&self, system: &str, user: &str) -> Result<String, Error> {
        match self {
            Self::Endpoint(endpoint) => endpoint.ask(system, user),
            Self::Program(program) => program.ask(system, user),
        }
    }

    /// How the model is recorded in notes: `provider/model`.
    pub fn label(&self) -> String {
        match self {
            Self::Endpoint(endpoint) => {
                format!("{}/{}", endpoint.provider.as_str(), endpoint.model)
            }
            Self::Program(program) => format!("{}/{}", Provider::Claude.as_str(), program.model),
        }
    }

    /// Who sees what is asked, for people.
    pub fn receiver(&self) -> String {
        match self {
            Self::Endpoint(endpoint) => endpoint.base_url.host().to_owned(),
            Self::Program(_) => "Claude Code".to_owned(),
        }
    }

    /// The same, with less time for an answer.
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
