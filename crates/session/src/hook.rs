//! Hook payloads: what Claude Code sends on stdin, reduced to what is acted on.
//!
//! The wire type mirrors the client's JSON and tolerates what it does not know: missing fields,
//! fields of a newer client, wrong types in fields that nobody reads. An event that is not acted on
//! is [`Event::Other`], not an error. Source: <https://code.claude.com/docs/en/hooks>.

use serde::Deserialize;
use serde_json::{Value, error::Category, json};

use crate::{event::Agent, transcript::without_lone_surrogates};
use anamnesis_text::redact::redact;

/// The largest payload that is read, in bytes.
pub const MAX_PAYLOAD_LENGTH: usize = 64 * 1024 * 1024;

/// The largest `additionalContext`, in UTF-16 code units. The client cuts at 10,000.
pub const MAX_CONTEXT_LENGTH: usize = 9_500;

/// The longest name or id of the client's that is kept, in characters.
const MAX_NAME_LENGTH: usize = 128;

/// The name of a tool that has none.
const UNKNOWN_TOOL: &str = "unknown";

/// What started a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartSource {
    /// A new session.
    Startup,
    /// An old one goes on.
    Resume,
    /// `/clear`.
    Clear,
    /// The client made room in its context.
    Compact,
    /// A copy of an old one goes on.
    Fork,
    /// One that this version does not know.
    Other,
}

impl StartSource {
    fn of(word: &str) -> Self {
        match word {
            "startup" => Self::Startup,
            "resume" => Self::Resume,
            "clear" => Self::Clear,
            "compact" => Self::Compact,
            "fork" => Self::Fork,
            _ => Self::Other,
        }
    }

    /// The client's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Resume => "resume",
            Self::Clear => "clear",
            Self::Compact => "compact",
            Self::Fork => "fork",
            Self::Other => "other",
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A session starts or goes on.
    SessionStart {
        /// Why.
        source: StartSource,
        /// The model, where the client says it.
        model: Option<String>,
    },
    /// A prompt was sent, as typed.
    UserPromptSubmit {
        /// The prompt.
        prompt: String,
    },
    /// A tool is about to run.
    PreToolUse(ToolCall),
    /// A tool has run.
    PostToolUse(ToolCall),
    /// A tool has failed, or was stopped.
    PostToolUseFailure(ToolCall),
    /// All tools of one answer have run.
    PostToolBatch(Vec<ToolCall>),
    /// A subagent starts.
    SubagentStart,
    /// A subagent has ended.
    SubagentStop(Answered),
    /// The model's turn has ended.
    Stop(Answered),
    /// The context is about to be compacted.
    PreCompact,
    /// The context was compacted.
    PostCompact {
        /// The client's own summary of the session.
        summary: String,
    },
    /// A session ended.
    SessionEnd {
        /// Why, in the client's word.
        reason: String,
    },
    /// An event that is not acted on.
    Other,
}

/// A run of a tool, as the client tells it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// The client's id of it.
    pub id: Option<String>,
    /// The tool's name; `unknown` where the client gives none that can be kept.
    pub tool: String,
    /// What it is given; any JSON value, null where there is none.
    pub input: Value,
    /// What it gave; any JSON value, null where there is none.
    pub response: Value,
    /// What it said when it failed.
    pub error: Option<String>,
    /// Whether it was stopped.
    pub is_interrupt: bool,
    /// How long it took.
    pub duration_ms: Option<i64>,
}

/// The end of a turn of the model or of a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answered {
    /// The last words; none where the client does not say.
    pub text: Option<String>,
    /// Whether a hook had sent the model on before.
    pub is_again: bool,
}

/// A hook's payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// The event's name in the client's spelling; at most 64 characters of it.
    pub event_name: String,
    /// The event.
    pub event: Event,
    /// The client's id of the session; at most 200 characters.
    pub session_id: String,
    /// The client's id of the prompt that this happens under.
    pub prompt_id: Option<String>,
    /// The subagent that this happens in.
    pub agent: Option<Agent>,
    /// The session's transcript.
    pub transcript_path: Option<String>,
    /// The folder that the client's shell stands in, which follows `cd`.
    pub cwd: Option<String>,
}

/// Why a payload was not taken. Nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPayload {
    /// There was none.
    #[error("stdin was empty")]
    Empty,
    /// It went on after [`MAX_PAYLOAD_LENGTH`].
    #[error("the payload is over 64 MiB")]
    TooLong,
    /// It is no JSON object, or a field has a wrong type.
    #[error("the payload is not what the client sends: {0}")]
    Malformed(String),
    /// A field that everything hangs on is missing.
    #[error("the payload has no {0}")]
    Missing(&'static str),
}

/// The client's JSON. A field of another type than expected counts as missing, but for those that
/// everything hangs on.
#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    hook_event_name: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    transcript_path: Option<String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    prompt_id: Value,
    #[serde(default)]
    agent_id: Value,
    #[serde(default)]
    agent_type: Value,
    #[serde(default)]
    source: Value,
    #[serde(default)]
    model: Value,
    #[serde(default)]
    reason: Value,
    #[serde(default)]
    prompt: Value,
    #[serde(default)]
    last_assistant_message: Value,
    #[serde(default)]
    stop_hook_active: Value,
    #[serde(default)]
    compact_summary: Value,
    #[serde(default)]
    tool_calls: Value,
    #[serde(default)]
    tool_use_id: Value,
    #[serde(default)]
    tool_name: Value,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    tool_response: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    is_interrupt: Value,
    #[serde(default)]
    duration_ms: Value,
}

fn text(field: Value) -> Option<String> {
    match field {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// A name or an id of the client's; none where it is no text, is too long or could hold anything.
fn id(field: Value) -> Option<String> {
    text(field)
        .filter(|id| !id.trim().is_empty() && id.chars().count() <= MAX_NAME_LENGTH)
        // Masked, it would be equal to others.
        .filter(|id| masked(id) == *id)
}

impl Payload {
    /// Reads a payload. A byte order mark, bytes that are no UTF-8 and escapes that are no characters
    /// (both replaced) are taken.
    ///
    /// # Errors
    /// See [`InvalidPayload`].
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidPayload> {
        if bytes.len() > MAX_PAYLOAD_LENGTH {
            return Err(InvalidPayload::TooLong);
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(InvalidPayload::Empty);
        }
        let wire: Wire = serde_json::from_str(text)
            .or_else(|error| {
                // A tool's output that was cut inside a character.
                without_lone_surrogates(text)
                    .ok_or(error)
                    .and_then(|text| serde_json::from_str(&text))
            })
            .map_err(|error| InvalidPayload::Malformed(without_values(&error)))?;
        let present = |field: Option<String>| field.filter(|text| !text.trim().is_empty());
        let name =
            present(wire.hook_event_name).ok_or(InvalidPayload::Missing("hook_event_name"))?;
        let session_id = present(wire.session_id).ok_or(InvalidPayload::Missing("session_id"))?;
        let answered = |message, again| Answered {
            text: self::text(message),
            is_again: again == Value::Bool(true),
        };
        let call = ToolCall {
            id: id(wire.tool_use_id),
            tool: id(wire.tool_name).unwrap_or_else(|| UNKNOWN_TOOL.to_owned()),
            input: wire.tool_input,
            response: wire.tool_response,
            error: self::text(wire.error),
            is_interrupt: wire.is_interrupt == Value::Bool(true),
            duration_ms: wire.duration_ms.as_i64().filter(|time| *time >= 0),
        };
        let event = match name.as_str() {
            "SessionStart" => Event::SessionStart {
                source: StartSource::of(wire.source.as_str().unwrap_or_default()),
                model: id(wire.model),
            },
            "UserPromptSubmit" => Event::UserPromptSubmit {
                prompt: self::text(wire.prompt).unwrap_or_default(),
            },
            "PreToolUse" => Event::PreToolUse(call),
            "PostToolUse" => Event::PostToolUse(call),
            "PostToolUseFailure" => Event::PostToolUseFailure(call),
            "PostToolBatch" => Event::PostToolBatch(batch(wire.tool_calls)),
            "SubagentStart" => Event::SubagentStart,
            "SubagentStop" => {
                Event::SubagentStop(answered(wire.last_assistant_message, wire.stop_hook_active))
            }
            "Stop" => Event::Stop(answered(wire.last_assistant_message, wire.stop_hook_active)),
            "PreCompact" => Event::PreCompact,
            "PostCompact" => Event::PostCompact {
                summary: self::text(wire.compact_summary).unwrap_or_default(),
            },
            "SessionEnd" => Event::SessionEnd {
                reason: masked(wire.reason.as_str().unwrap_or_default()),
            },
            _ => Event::Other,
        };
        let agent = id(wire.agent_id).map(|agent| Agent {
            id: agent,
            kind: id(wire.agent_type).unwrap_or_default(),
        });
        Ok(Self {
            event_name: masked(&name).chars().take(64).collect(),
            event,
            session_id: session_id.chars().take(200).collect(),
            prompt_id: id(wire.prompt_id),
            agent,
            transcript_path: present(wire.transcript_path),
            cwd: present(wire.cwd),
        })
    }
}

/// The calls of a batch; what is no call is passed over.
fn batch(calls: Value) -> Vec<ToolCall> {
    let Value::Array(calls) = calls else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for call in calls {
        if let Value::Object(mut fields) = call {
            let mut field = |name| fields.get_mut(name).map(Value::take).unwrap_or_default();
            found.push(ToolCall {
                id: id(field("tool_use_id")),
                tool: id(field("tool_name")).unwrap_or_else(|| UNKNOWN_TOOL.to_owned()),
                input: field("tool_input"),
                response: field("tool_response"),
                ..ToolCall::default()
            });
        }
    }
    found
}

/// Says what is wrong with JSON and where. The library's own message quotes values, and reasons are
/// kept in the records.
fn without_values(error: &serde_json::Error) -> String {
    let reason = match error.classify() {
        Category::Io | Category::Eof => "it breaks off",
        Category::Syntax => "no JSON",
        Category::Data => "a value of another type than expected",
    };
    format!("{reason}, line {} column {}", error.line(), error.column())
}

/// A word that is kept in the records; whoever sent it may have put anything there.
fn masked(text: &str) -> String {
    let head: String = text.chars().take(200).collect();
    redact(&head).text.into_owned()
}

/// What a hook prints: one JSON object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Text for the model, at most [`MAX_CONTEXT_LENGTH`].
    pub context: Option<String>,
    /// Why the tool call is stopped, told to the model; only before a call.
    pub denial: Option<String>,
    /// One line for the person.
    pub system_message: Option<String>,
}

impl Answer {
    /// Returns the object with a line end. With nothing to say it is the no-op.
    pub fn to_json(&self, event_name: &str) -> String {
        let mut object = json!({"continue": true, "suppressOutput": true});
        if let Some(message) = &self.system_message {
            object["systemMessage"] = json!(message);
        }
        if let Some(context) = &self.context {
            object["hookSpecificOutput"] =
                json!({"hookEventName": event_name, "additionalContext": context});
        }
        if let Some(reason) = &self.denial {
            object["hookSpecificOutput"] = json!({
                "hookEventName": event_name,
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            });
        }
        format!("{object}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Payload, InvalidPayload> {
        Payload::parse(text.as_bytes())
    }

    #[test]
    fn events_are_told_apart() {
        for (own, event) in [
            (
                r#""SessionStart", "source": "resume""#,
                Event::SessionStart {
                    source: StartSource::Resume,
                    model: None,
                },
            ),
            (
                r#""SessionStart", "source": "new""#,
                Event::SessionStart {
                    source: StartSource::Other,
                    model: None,
                },
            ),
            (
                r#""SessionStart", "source": 7"#,
                Event::SessionStart {
                    source: StartSource::Other,
                    model: None,
                },
            ),
            (
                r#""UserPromptSubmit", "prompt": "hi""#,
                Event::UserPromptSubmit {
                    prompt: "hi".to_owned(),
                },
            ),
            (r#""PreCompact", "trigger": "auto""#, Event::PreCompact),
            (
                r#""SessionEnd", "reason": "clear""#,
                Event::SessionEnd {
                    reason: "clear".to_owned(),
                },
            ),
            (
                r#""SessionStart", "source": "startup", "model": "m", "agent_id": 3"#,
                Event::SessionStart {
                    source: StartSource::Startup,
                    model: Some("m".to_owned()),
                },
            ),
            (
                r#""PostToolUse", "tool_use_id": "t", "tool_name": "Bash", "tool_response": {"a": [1]}, "duration_ms": 7"#,
                Event::PostToolUse(ToolCall {
                    id: Some("t".to_owned()),
                    tool: "Bash".to_owned(),
                    response: json!({"a": [1]}),
                    duration_ms: Some(7),
                    ..ToolCall::default()
                }),
            ),
            (
                r#""PostToolUseFailure", "tool_name": [], "error": "E", "is_interrupt": true, "duration_ms": -1"#,
                Event::PostToolUseFailure(ToolCall {
                    tool: "unknown".to_owned(),
                    error: Some("E".to_owned()),
                    is_interrupt: true,
                    ..ToolCall::default()
                }),
            ),
            (
                r#""PostToolBatch", "tool_calls": [3, {"tool_name": "Edit", "tool_response": "no"}]"#,
                Event::PostToolBatch(vec![ToolCall {
                    tool: "Edit".to_owned(),
                    response: json!("no"),
                    ..ToolCall::default()
                }]),
            ),
            (
                r#""Stop", "last_assistant_message": "Done.", "stop_hook_active": true"#,
                Event::Stop(Answered {
                    text: Some("Done.".to_owned()),
                    is_again: true,
                }),
            ),
            (
                r#""SubagentStop""#,
                Event::SubagentStop(Answered::default()),
            ),
            (
                r#""PostCompact", "compact_summary": "S""#,
                Event::PostCompact {
                    summary: "S".to_owned(),
                },
            ),
            (r#""SomethingNew", "x": null"#, Event::Other),
        ] {
            let payload = parse(&format!(
                r#"{{"session_id": "s", "hook_event_name": {own}}}"#
            ))
            .unwrap();
            assert_eq!(payload.event, event, "{own}");
        }
    }

    #[test]
    fn names_and_ids_are_short_texts() {
        let long = "x".repeat(129);
        let payload = parse(&format!(
            r#"{{"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "{long}",
                "tool_use_id": " ", "prompt_id": 3, "agent_id": "a", "agent_type": "{long}"}}"#
        ))
        .unwrap();
        let Event::PostToolUse(call) = payload.event else {
            panic!("{payload:?}");
        };
        assert_eq!((call.id, call.tool.as_str()), (None, "unknown"));
        assert_eq!(payload.prompt_id, None);
        let agent = payload.agent.unwrap();
        assert_eq!((agent.id.as_str(), agent.kind.as_str()), ("a", ""));
    }

    #[test]
    fn an_escape_that_is_no_character_loses_no_event() {
        let payload = parse(
            r#"{"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": "cut \ud83d"}"#,
        )
        .unwrap();
        let Event::PostToolUse(call) = payload.event else {
            panic!("{payload:?}");
        };
        assert_eq!(call.response, json!("cut \u{fffd}"));
    }

    #[test]
    fn odd_bytes_are_taken() {
        // HOOK-13
        let text = "\u{feff} {\"session_id\":\"s\",\"hook_event_name\":\"PreCompact\",\"future\":{\"deep\":[[]]}} \n";
        assert_eq!(parse(text).unwrap().event, Event::PreCompact);
        let broken = b"{\"session_id\":\"s\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"a\xffb\"}";
        assert_eq!(
            Payload::parse(broken).unwrap().event,
            Event::UserPromptSubmit {
                prompt: "a\u{fffd}b".to_owned()
            }
        );
    }

    #[test]
    fn what_is_no_payload_says_why() {
        // HOOK-06
        for (text, reason) in [
            ("", "stdin was empty"),
            ("  \n", "stdin was empty"),
            ("[]", "the payload has no hook_event_name"),
            ("{", "the payload is not what the client sends"),
            ("null", "the payload is not what the client sends"),
            (
                r#"{"session_id": 4, "hook_event_name": "Stop"}"#,
                "the payload is not what the client sends",
            ),
            (
                r#"{"hook_event_name": "Stop"}"#,
                "the payload has no session_id",
            ),
            (
                r#"{"session_id": " ", "hook_event_name": "Stop"}"#,
                "the payload has no session_id",
            ),
            (
                r#"{"session_id": "s"}"#,
                "the payload has no hook_event_name",
            ),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_reason_quotes_nothing_of_the_payload() {
        for text in [
            "\"hunter2\"",
            r#"{"hook_event_name": "Stop", "session_id": ["hunter2"]}"#,
            r#"{"hook_event_name": {"hunter2": 1}}"#,
            "hunter2",
            "{\"hunter2",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{text}: {error}");
        }
        let error = parse("\"hunter2\"").unwrap_err().to_string();
        assert!(error.ends_with("than expected, line 1 column 9"), "{error}");
    }

    #[test]
    fn words_that_are_kept_hold_no_secret() {
        // CAP-01
        let token = concat!("gh", "p_0123456789abcdefghijABCDEFGHIJ456789");
        let payload = |event: &str| {
            parse(&format!(
                r#"{{"session_id": "s", "hook_event_name": "{event}", "reason": "{token}"}}"#
            ))
        };
        assert!(!payload(token).unwrap().event_name.contains("ghp_"));
        assert!(!format!("{:?}", payload("SessionEnd")).contains("ghp_"));
        let error = parse(&format!("\"{token}\"")).unwrap_err().to_string();
        assert!(!error.contains("ghp_"), "{error}");
    }

    #[test]
    fn nothing_to_say_is_the_no_op() {
        assert_eq!(
            Answer::default().to_json("SessionStart"),
            "{\"continue\":true,\"suppressOutput\":true}\n"
        );
        let answer = Answer {
            context: Some("c".to_owned()),
            system_message: Some("m".to_owned()),
            ..Answer::default()
        };
        assert_eq!(
            answer.to_json("SessionStart"),
            "{\"continue\":true,\"suppressOutput\":true,\"systemMessage\":\"m\",\"hookSpecificOutput\":\
             {\"hookEventName\":\"SessionStart\",\"additionalContext\":\"c\"}}\n"
        );
    }
}
