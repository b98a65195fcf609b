//! Session events as the journal stores them.
//!
//! A record contains only sanitised text (see [`anamnesis_text::sanitize`]), so it may be written
//! to the journal or the spool. It describes the event alone. The journal decides what depends on
//! stored data: whether a prompt of the same id is private, and whether the event is a duplicate.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::prompt::SafePrompt;
use anamnesis_text::{
    clean::one_line,
    private_tokens::{Hash, Key, PrivateTokens},
    sanitize::entries,
    truncate::first_characters,
};

/// The maximum length of a prompt, task or answer, in characters.
pub const MAX_TEXT: usize = 8_000;

/// Defines an enum with the strings under which the journal stores its variants.
#[macro_export]
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Returns the stored string.
            pub const fn as_str(self) -> &'static str {
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
    /// The program whose session it is.
    Host {
        /// Claude Code.
        ClaudeCode = "claude-code",
        /// Codex CLI.
        Codex = "codex",
        /// Gemini CLI.
        Gemini = "gemini",
        /// Copilot CLI, or Copilot in VS Code.
        Copilot = "copilot",
        /// Cursor.
        Cursor = "cursor",
        /// OpenCode.
        OpenCode = "opencode",
        /// Amp.
        Amp = "amp",
    }
}

impl Host {
    /// Returns the host as records and notes name it: they do not name Claude Code.
    pub fn other(self) -> Option<Self> {
        Some(self).filter(|host| *host != Self::ClaudeCode)
    }
}

words! {
    /// The kind of a prompt.
    PromptKind {
        /// Typed by a person.
        Person = "person",
        /// Sent by a program through `claude -p` or the SDK. Nobody knows who wrote it.
        Script = "script",
        /// A slash command.
        Command = "command",
        /// A message from a program.
        Notification = "notification",
        /// No text: an image, or nothing.
        Media = "media",
    }
}

impl PromptKind {
    /// Returns whether a session is asked by it: typed by a person, or sent by a program for one.
    pub fn is_request(self) -> bool {
        matches!(self, Self::Person | Self::Script)
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
    /// The action of a tool on a file.
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
    /// The tool's action on it.
    pub action: FileAction,
}

/// A finished tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolEvent {
    /// The client's id of the call (`tool_use_id`), or a hash of the event if there is none.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// Its arguments, if they are stored.
    pub input: Option<ToolInput>,
    /// Its response, if it is stored.
    pub response: Option<ToolOutput>,
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

impl ToolEvent {
    /// Returns its texts, to mask them.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let input = self.input.iter_mut();
        let input =
            input.flat_map(|input| input.command.iter_mut().chain(input.others.values_mut()));
        let response = self.response.iter_mut().map(|response| &mut response.tail);
        let files = self.files.iter_mut().map(|file| &mut file.path);
        input.chain(response).chain(&mut self.error).chain(files)
    }
}

/// The arguments of a tool call, sanitised. Arguments with file contents are not kept.
///
/// As JSON they are an object of texts. Any other JSON can be read, too: earlier versions stored
/// the arguments as the client sent them, without secrets and file contents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value")]
pub struct ToolInput {
    /// The command of a tool that runs commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether the command runs in the background.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub run_in_background: bool,
    /// The other arguments by name, such as paths and patterns.
    #[serde(flatten)]
    pub others: BTreeMap<String, String>,
}

impl ToolInput {
    /// Makes the arguments of sanitised texts with their names.
    pub fn new(texts: Vec<(String, String)>, run_in_background: bool) -> Self {
        let mut input = Self {
            run_in_background,
            ..Self::default()
        };
        for (name, text) in texts {
            match name.as_str() {
                "command" => input.command = input.command.or(Some(text)),
                "run_in_background" => {}
                _ => {
                    input.others.entry(name).or_insert(text);
                }
            }
        }
        input
    }

    /// Returns whether raw arguments start a command in the background.
    pub fn is_in_background(raw: &Value) -> bool {
        is_set(raw, "run_in_background")
    }

    /// Returns the texts of all arguments.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = self.command.iter().chain(self.others.values());
        texts.map(String::as_str)
    }
}

impl From<Value> for ToolInput {
    fn from(stored: Value) -> Self {
        let run_in_background = Self::is_in_background(&stored);
        Self::new(entries(stored), run_in_background)
    }
}

/// The stored part of a tool's response, sanitised.
///
/// Any JSON can be read: earlier versions stored the full response of a failed call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value")]
pub struct ToolOutput {
    /// The length of all its texts, in bytes.
    pub bytes: usize,
    /// The end of its texts, joined by line feeds.
    pub tail: String,
    /// The exit code of a command, if the client sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Whether a command was interrupted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Whether a command still runs in the background.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub run_in_background: bool,
}

impl ToolOutput {
    /// Reads how a command ended from its response; takes no text.
    pub fn end_of_command(response: &Value) -> Self {
        const CODES: [&str; 5] = ["code", "exitCode", "exit_code", "returnCode", "return_code"];
        let codes = CODES.iter().filter_map(|name| response.get(name)?.as_i64());
        Self {
            // One code that says that it failed is enough.
            exit_code: codes.max_by_key(|code| *code != 0),
            interrupted: is_set(response, "interrupted"),
            run_in_background: is_set(response, "backgroundTaskId")
                || is_set(response, "run_in_background"),
            ..Self::default()
        }
    }
}

impl From<Value> for ToolOutput {
    fn from(stored: Value) -> Self {
        let end = Self::end_of_command(&stored);
        let bytes = stored.get("bytes").and_then(Value::as_u64);
        let tail = stored.get("tail").and_then(Value::as_str);
        let tail = tail.map(str::to_owned);
        let tail = tail.unwrap_or_else(|| {
            let texts = entries(stored).into_iter().map(|(_, text)| text);
            texts.collect::<Vec<_>>().join("\n")
        });
        Self {
            bytes: bytes.map_or(tail.len(), |bytes| bytes.try_into().unwrap_or(usize::MAX)),
            tail,
            ..end
        }
    }
}

/// Returns whether JSON has a field that is neither null nor false.
fn is_set(value: &Value, name: &str) -> bool {
    value
        .get(name)
        .is_some_and(|value| *value != Value::Null && *value != Value::Bool(false))
}

/// The maximum length of a search, in characters.
const MAX_SEARCH: usize = 300;

impl ToolEvent {
    /// Returns what a search tool searched for, on one line.
    pub fn search(&self) -> Option<String> {
        let name = match self.tool.as_str() {
            "Grep" | "Glob" => "pattern",
            "WebSearch" => "query",
            "WebFetch" => "url",
            _ => return None,
        };
        let search = one_line(self.input.as_ref()?.others.get(name)?);
        let search = first_characters(&search, MAX_SEARCH).to_owned();
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

/// The facts about its session that an event has.
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
    /// The session's name, by the person or the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The client's process.
    pub client: Option<ClientProcess>,
    /// The host, if it is not Claude Code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
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
pub struct SessionEvent {
    /// The client's id of the session.
    pub session: String,
    /// The time in milliseconds since 1970.
    pub at: i64,
    /// The client's id of the prompt that caused it.
    pub prompt_id: Option<String>,
    /// The subagent that caused it.
    pub agent: Option<Agent>,
    /// The facts about its session.
    pub surroundings: Surroundings,
    /// Whether it had a private region.
    pub private: bool,
    /// Hashes of the private tokens that later texts must not repeat.
    pub echoes: Vec<PrivateTokenHash>,
    /// The event itself.
    pub what: RecordedEvent,
    /// The JSON of the event with its texts, if they may repeat private tokens that could not be read; sealed
    /// in a file. `what` has none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmasked: Vec<u8>,
}

impl SessionEvent {
    /// Returns the event with the texts whose private tokens were not masked yet; `None` if it has none.
    pub fn settled(&self, private_tokens: &PrivateTokens) -> Option<RecordedEvent> {
        let mut event: Value = serde_json::from_slice(&self.unmasked).ok()?;
        mask(&mut event, private_tokens);
        serde_json::from_value(event).ok()
    }
}

fn mask(value: &mut Value, private_tokens: &PrivateTokens) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(masked) = private_tokens.mask(text) {
                *text = masked;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|it| mask(it, private_tokens)),
        Value::Object(fields) => fields.values_mut().for_each(|it| mask(it, private_tokens)),
        _ => {}
    }
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
    /// The turn goes on in an excluded folder, or `begins` there. Nothing of it is stored.
    Hidden {
        /// Whether it is the prompt.
        begins: bool,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The rows are of a journal of the version before.
    #[test]
    fn stored_tool_calls_of_an_earlier_version_can_be_read() {
        let input: ToolInput = serde_json::from_value(json!({
            "command": "cargo test", "description": "Run the tests", "timeout": 60_000,
            "run_in_background": true,
        }))
        .unwrap();
        assert_eq!(input.command.as_deref(), Some("cargo test"));
        assert!(input.run_in_background);
        assert_eq!(
            input.texts().collect::<Vec<_>>(),
            ["cargo test", "Run the tests", "60000"]
        );
        let body = json!({"bytes": 1, "lines": 1, "sha256": "ca978112ca1bbdca"});
        let edit = json!({"file_path": "/w/shop/a.rs", "old_string": body, "replace_all": false});
        let input: ToolInput = serde_json::from_value(edit).unwrap();
        assert_eq!(input.others["file_path"], "/w/shop/a.rs");
        let input: ToolInput = serde_json::from_value(json!({"lines": ["a", "", "b"]})).unwrap();
        assert_eq!(input.others["lines"], "a\n\nb");

        let read = |stored: Value| serde_json::from_value::<ToolOutput>(stored).unwrap();
        let stored = json!({"bytes": 90, "tail": "FAILED", "exit_code": 1, "interrupted": true});
        let expected = ToolOutput {
            bytes: 90,
            tail: "FAILED".to_owned(),
            exit_code: Some(1),
            interrupted: true,
            run_in_background: false,
        };
        assert_eq!(read(stored.clone()), expected);
        assert_eq!(json!(expected), stored);
        let failed = read(json!({"stdout": "1 failed", "stderr": "error: x", "code": 2}));
        assert_eq!(failed.tail, "1 failed\nerror: x\n2");
        assert_eq!(failed.exit_code, Some(2));
        assert_eq!(read(json!("text")).tail, "text");
    }
}
