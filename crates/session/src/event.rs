//! Session events as the journal stores them.
//!
//! A record contains only sanitised text (see [`anamnesis_text::sanitize`]), so it may be written
//! to the journal or the spool. It describes the event alone. The journal decides what depends on
//! stored data: whether a prompt of the same id is private, and whether the event is a duplicate.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::prompt::SafePrompt;
use anamnesis_text::{
    clean::one_line,
    private_tokens::{Hash, Key},
};

/// Defines an enum with the strings under which the journal stores its variants.
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Returns the stored string.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Parses a stored string.
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// The kind of a prompt.
    PromptKind {
        /// Typed by a person.
        Person = "person",
        /// A slash command.
        Command = "command",
        /// A message from a program.
        Notification = "notification",
        /// No text: an image, or nothing.
        Media = "media",
    }
}

words! {
    /// How much of a prompt is private.
    Privacy {
        /// Nothing.
        None = "none",
        /// Part of it.
        Part = "part",
        /// All of it. Everything until the next prompt is private, too.
        Full = "full",
    }
}

words! {
    /// The outcome of a tool call.
    Outcome {
        /// It succeeded.
        Ok = "ok",
        /// It failed.
        Failed = "failed",
        /// It was interrupted.
        Interrupted = "interrupted",
    }
}

words! {
    /// What a tool did to a file.
    FileAction {
        /// It read the file.
        Read = "read",
        /// It changed the file.
        Edited = "edited",
        /// It created the file.
        Created = "created",
    }
}

words! {
    /// The author of a turn's last message.
    Speaker {
        /// The model, at the end of its turn.
        Main = "main",
        /// A subagent, at the end of its run.
        Subagent = "subagent",
        /// The client, when it compacted the context.
        Compact = "compact",
    }
}

/// A subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// The client's id of the subagent.
    pub id: String,
    /// Its type, such as `Explore`.
    pub kind: String,
}

/// A file touched by a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileUse {
    /// The path, relative to the project's folder if it is inside.
    pub path: String,
    /// What the tool did to it.
    pub action: FileAction,
}

/// A finished tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolEvent {
    /// The client's id of the call (`tool_use_id`), or a hash of the event if there is none.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
    /// The tool's response.
    pub response: Value,
    /// The outcome.
    pub outcome: Outcome,
    /// The error message, if it failed.
    pub error: Option<String>,
    /// The duration in milliseconds.
    pub duration_ms: Option<i64>,
    /// The files touched by the tool.
    pub files: Vec<FileUse>,
    /// The subagent that called it, if any.
    pub agent: Option<Agent>,
    /// Whether it comes from a `PostToolBatch` event, which has less detail than the tool's own
    /// event.
    pub is_from_batch: bool,
    /// Whether it has more private regions than a person would write.
    pub many_tags: bool,
}

/// How a command ended, from the response of its tool.
///
/// Of a response, only the end of its text is stored, so these fields are stored beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandEnd {
    /// The exit code, if the client sends it.
    pub exit_code: Option<i64>,
    /// Whether it was interrupted.
    pub is_interrupted: bool,
    /// Whether it still runs in the background.
    pub is_in_background: bool,
}

impl From<&Value> for CommandEnd {
    fn from(response: &Value) -> Self {
        const CODES: [&str; 5] = ["code", "exitCode", "exit_code", "returnCode", "return_code"];
        let is_set = |name: &str| {
            response
                .get(name)
                .is_some_and(|value| *value != Value::Null && *value != Value::Bool(false))
        };
        let codes = CODES.iter().filter_map(|name| response.get(name)?.as_i64());
        Self {
            // One code that says that it failed is enough.
            exit_code: codes.max_by_key(|code| *code != 0),
            is_interrupted: is_set("interrupted"),
            is_in_background: is_set("backgroundTaskId") || is_set("run_in_background"),
        }
    }
}

impl CommandEnd {
    /// Adds the fields to a stored response, except for those that say nothing.
    pub fn add_to(self, response: &mut Value) {
        let Value::Object(fields) = response else {
            return;
        };
        if let Some(code) = self.exit_code {
            fields.insert("exit_code".to_owned(), code.into());
        }
        for (name, is_set) in [
            ("interrupted", self.is_interrupted),
            ("run_in_background", self.is_in_background),
        ] {
            if is_set {
                fields.insert(name.to_owned(), true.into());
            }
        }
    }
}

/// The maximum length of a search, in characters.
const MAX_SEARCH: usize = 300;

impl ToolEvent {
    /// Returns what a search tool searched for, on one line.
    pub fn search(&self) -> Option<String> {
        let field = match self.tool.as_str() {
            "Grep" | "Glob" => "pattern",
            "WebSearch" => "query",
            "WebFetch" => "url",
            _ => return None,
        };
        let search = one_line(self.input.get(field)?.as_str()?);
        let search: String = search.chars().take(MAX_SEARCH).collect();
        Some(search).filter(|search| !search.is_empty())
    }
}

/// A keyed hash of a token that a person marked as private; see [`anamnesis_text::private_tokens`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateTokenHash {
    /// The key.
    pub key: Key,
    /// The token's length and hash.
    pub hash: Hash,
}

/// What any event says about its session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The project's key, if it was determined.
    pub project: Option<String>,
    /// The project's folder.
    pub folder: Option<String>,
    /// The path of the session's transcript.
    pub transcript: Option<String>,
    /// The checked out branch, if it was determined.
    pub branch: Option<String>,
    /// The client's process.
    pub client: Option<ClientProcess>,
}

/// A Claude Code process, distinguished from later processes with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientProcess {
    /// The process id.
    pub id: i64,
    /// The start time in the system's own unit, if known.
    pub started: Option<i64>,
}

/// A sanitised session event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The client's id of the session.
    pub session: String,
    /// The time in milliseconds since 1970.
    pub at: i64,
    /// The client's id of the prompt that caused it.
    pub prompt_id: Option<String>,
    /// The subagent that caused it.
    pub agent: Option<Agent>,
    /// What the event says about its session.
    pub surroundings: Surroundings,
    /// Whether it had a private region.
    pub private: bool,
    /// Hashes of the private tokens that later texts must not repeat.
    pub echoes: Vec<PrivateTokenHash>,
    /// The event itself.
    pub what: RecordedEvent,
}

/// The content of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RecordedEvent {
    /// The session started or was resumed.
    Started {
        /// The client's reason.
        source: String,
        /// The model, if the client names it.
        model: Option<String>,
    },
    /// A prompt.
    Prompted(SafePrompt),
    /// A subagent is about to start.
    Delegated {
        /// The client's id of the tool call.
        id: String,
        /// The subagent's type.
        kind: String,
        /// The task.
        prompt: String,
    },
    /// Tools have finished.
    Used(Vec<ToolEvent>),
    /// The last message of the model, of a subagent, or of the client's compaction.
    Spoke {
        /// The author.
        speaker: Speaker,
        /// The text, if there is any.
        text: Option<String>,
    },
    /// The client is about to compact the context.
    Compacting,
    /// The session ended.
    Ended {
        /// The client's reason.
        reason: String,
    },
    /// An event whose content is not stored.
    Seen,
}

impl RecordedEvent {
    /// Returns whether a new session starts, not one that is resumed or compacted.
    pub fn begins_session(&self) -> bool {
        matches!(self, Self::Started { source, .. } if matches!(source.as_str(), "startup" | "clear"))
    }
}
