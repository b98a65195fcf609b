//! What the journal keeps of a session: one record an event.
//!
//! A record holds text that is fit to be stored (see [`anamnesis_text::sanitize`]) and nothing else, so it may
//! be written to the journal or, while that cannot be had, to a file of its own. It says what came in,
//! not what follows from it: whether a prompt of the same id is private, or whether the event is known
//! already, is decided by whoever takes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use anamnesis_text::{
    clean::one_line,
    private_tokens::{Hash, Key},
};

/// Makes an enum of words that are kept in the journal as they are written here.
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The word that stands for it in the journal.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// What a word of the journal stands for.
            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// What a prompt is.
    PromptKind {
        /// A person's words.
        Person = "person",
        /// A slash command.
        Command = "command",
        /// A message of a program.
        Notification = "notification",
        /// No words: an image, or nothing.
        Media = "media",
    }
}

words! {
    /// How much of a prompt was marked as private.
    Privacy {
        /// Nothing.
        None = "none",
        /// A part.
        Part = "part",
        /// All of it, and with it all that happens until the next one.
        Full = "full",
    }
}

words! {
    /// How a tool's run ended.
    Outcome {
        /// As it should.
        Ok = "ok",
        /// With an error.
        Failed = "failed",
        /// It was stopped.
        Interrupted = "interrupted",
    }
}

words! {
    /// What a tool did to a file.
    FileAction {
        /// It read it.
        Read = "read",
        /// It changed it.
        Edited = "edited",
        /// It made it.
        Created = "created",
    }
}

words! {
    /// Whose words a turn end holds.
    Speaker {
        /// The model, at the end of its turn.
        Main = "main",
        /// A subagent, at its end.
        Subagent = "subagent",
        /// The client, which summed the session up to make room.
        Compact = "compact",
    }
}

/// A subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// The client's id of it.
    pub id: String,
    /// Its type, such as `Explore`.
    pub kind: String,
}

/// A file that a tool touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileUse {
    /// The path; relative to the project's folder where it lies in it.
    pub path: String,
    /// What was done to it.
    pub action: FileAction,
}

/// A tool's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolEvent {
    /// The client's id of the run (`tool_use_id`); a hash of the event where there is none.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// What it was given.
    pub input: Value,
    /// What it gave.
    pub response: Value,
    /// How it ended.
    pub outcome: Outcome,
    /// What it said when it failed.
    pub error: Option<String>,
    /// How long it took.
    pub duration_ms: Option<i64>,
    /// The files it touched.
    pub files: Vec<FileUse>,
    /// The subagent that ran it, if one did.
    pub agent: Option<Agent>,
    /// Whether it was learned from the list of a whole batch, which tells less than the tool's own event.
    pub is_from_batch: bool,
    /// Whether it held more private regions than anybody writes by hand.
    pub many_tags: bool,
}

/// The longest search, in characters.
const MAX_SEARCH: usize = 300;

impl ToolEvent {
    /// What was looked for, on one line, by a tool that looks for something.
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

/// A token that a person marked as private, as a keyed hash; see [`anamnesis_text::private_tokens`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// The key.
    pub key: Key,
    /// The token's length and hash.
    pub hash: Hash,
}

/// What an event tells of its session, whatever else it tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The project's key, where it was looked for.
    pub project: Option<String>,
    /// The project's folder.
    pub folder: Option<String>,
    /// The session's transcript.
    pub transcript: Option<String>,
    /// The branch that is checked out in the folder, where it was looked for.
    pub branch: Option<String>,
    /// The client's process.
    pub client: Option<ClientProcess>,
}

/// A process of Claude Code, told from a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientProcess {
    /// Its number.
    pub id: i64,
    /// When it began, in the system's own unit; none where that cannot be known.
    pub started: Option<i64>,
}

/// One event of a session, fit to be stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The client's id of the session.
    pub session: String,
    /// When it was, milliseconds since 1970.
    pub at: i64,
    /// The client's id of the prompt that it belongs to.
    pub prompt_id: Option<String>,
    /// The subagent that it happened in.
    pub agent: Option<Agent>,
    /// What it tells of the session.
    pub surroundings: Surroundings,
    /// Whether it held a region that was marked as private.
    pub private: bool,
    /// The private tokens that later texts must not repeat.
    pub echoes: Vec<Echo>,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// The session starts or goes on.
    Started {
        /// The client's word for why.
        source: String,
        /// The model, where the client says it.
        model: Option<String>,
    },
    /// A prompt.
    Prompted {
        /// What it is.
        kind: PromptKind,
        /// How much of it is private.
        privacy: Privacy,
        /// Its text; none for a private one and where nobody typed one.
        text: Option<String>,
        /// Whether it held more private regions than anybody writes by hand.
        many_tags: bool,
    },
    /// A task is about to be given to a subagent.
    Delegated {
        /// The client's id of the tool's run.
        id: String,
        /// The subagent's type.
        kind: String,
        /// The task.
        prompt: String,
    },
    /// Tools have run.
    Used(Vec<ToolEvent>),
    /// The model, a subagent or the client had the last word.
    Spoke {
        /// Who.
        speaker: Speaker,
        /// The words; none when there were no words.
        text: Option<String>,
    },
    /// The client is about to make room; what was said so far is summed up.
    Compacting,
    /// The session ended.
    Ended {
        /// The client's word for why.
        reason: String,
    },
    /// Something that is not kept.
    Seen,
}
