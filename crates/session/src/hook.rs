//! Parses hook payloads and formats the output, in Claude Code's form; [`host`] translates those of
//! other hosts.
//!
//! The wire type tolerates missing fields, fields of newer clients, and wrong types in fields that
//! are not essential. An event that is not handled is [`HookEvent::Other`], not an error. Source:
//! <https://code.claude.com/docs/en/hooks>.

pub mod host;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, error::Category, json};

use crate::{
    event::{Agent, Host},
    prompt::RawPrompt,
    words,
};
use anamnesis_text::{redact::redact, surrogates};

/// The maximum size of a payload, in bytes.
pub const MAX_PAYLOAD_LENGTH: usize = 64 * 1024 * 1024;

/// The maximum length of `additionalContext`, in UTF-16 code units. The client cuts at 10,000.
pub const MAX_CONTEXT_LENGTH: usize = 9_500;

/// The maximum length of a name or id from the client, in characters.
const MAX_NAME_LENGTH: usize = 128;

/// The name for a tool without a valid name.
const UNKNOWN_TOOL: &str = "unknown";

words! {
    /// Why a session started.
    StartSource {
        /// A new session.
        Startup = "startup",
        /// An old session was resumed.
        Resume = "resume",
        /// `/clear`.
        Clear = "clear",
        /// The context was compacted.
        Compact = "compact",
        /// A copy of an old session was started.
        Fork = "fork",
        /// Unknown to this version.
        Other = "other",
    }
}

/// A hook event.
#[derive(Debug, Clone, PartialEq)]
pub enum HookEvent {
    /// A session started or was resumed.
    SessionStart {
        /// The reason.
        source: StartSource,
        /// The model, if the client names it.
        model: Option<String>,
        /// The seconds since the last answer in the history, of a resumed or forked session.
        idle_seconds: Option<i64>,
    },
    /// A prompt was sent, as typed.
    UserPromptSubmit {
        /// The prompt.
        prompt: RawPrompt,
    },
    /// A tool is about to run.
    PreToolUse(ToolCall),
    /// A tool failed or was interrupted.
    PostToolUse(ToolCall),
    /// A tool has failed, or was stopped.
    PostToolUseFailure(ToolCall),
    /// All tools of one answer have finished.
    PostToolBatch(Vec<ToolCall>),
    /// A subagent starts.
    SubagentStart,
    /// A subagent has ended, with its last message if the client sends it.
    SubagentStop(Option<String>),
    /// The model's turn ended, with its last message if the client sends it.
    Stop(Option<String>),
    /// The context is about to be compacted.
    PreCompact,
    /// The context was compacted.
    PostCompact {
        /// The client's own summary of the session.
        summary: String,
    },
    /// A session ended.
    SessionEnd {
        /// The client's reason.
        reason: String,
    },
    /// An event that is not handled.
    Other,
}

/// A tool call as reported by the client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// The client's id of the call.
    pub id: Option<String>,
    /// The tool's name, `unknown` if the client sends no valid one.
    pub tool: String,
    /// The input, any JSON value; null if missing.
    pub input: Value,
    /// The response, any JSON value; null if missing.
    pub response: Value,
    /// The error message, if it failed.
    pub error: Option<String>,
    /// Whether it was interrupted.
    pub is_interrupt: bool,
    /// The duration in milliseconds.
    pub duration_ms: Option<i64>,
}

/// Returns whether a text is the client's own message about a refused request, not an answer.
fn is_refusal(text: &str) -> bool {
    const REFUSALS: [&str; 10] = [
        "API Error",
        "Credit balance is too low",
        "Invalid API key",
        "Prompt is too long",
        "You're out of ",
        "You've hit your ",
        "You've reached your ",
        "Your org is out of usage",
        "Your seat type ",
        "Your usage allocation ",
    ];
    REFUSALS.iter().any(|refusal| text.starts_with(refusal))
}

/// A hook payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// The program that sent it.
    pub host: Host,
    /// The client's event name, cut to 64 characters.
    pub event_name: String,
    /// The event.
    pub event: HookEvent,
    /// The client's session id, cut to 200 characters.
    pub session_id: String,
    /// The client's id of the prompt that caused the event.
    pub prompt_id: Option<String>,
    /// The session's name, by the person or the client, not sanitised.
    pub session_title: Option<String>,
    /// The subagent that caused the event.
    pub agent: Option<Agent>,
    /// The session's transcript.
    pub transcript_path: Option<String>,
    /// The working directory of the client's shell, which follows `cd`.
    pub cwd: Option<String>,
}

/// Why a payload was rejected. Nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPayload {
    /// The input was empty.
    #[error("stdin was empty")]
    Empty,
    /// It is larger than [`MAX_PAYLOAD_LENGTH`].
    #[error("the payload is over 64 MiB")]
    TooLong,
    /// It is not a JSON object, or an essential field has a wrong type.
    #[error("the payload is not what the client sends: {0}")]
    Malformed(String),
    /// An essential field is missing.
    #[error("the payload has no {0}")]
    Missing(&'static str),
}

/// The client's JSON. A field with an unexpected type counts as missing, except for essential
/// fields.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    hook_event_name: Option<String>,
    session_id: Option<String>,
    transcript_path: Option<String>,
    cwd: Option<String>,
    prompt_id: Value,
    session_title: Value,
    agent_id: Value,
    agent_type: Value,
    source: Value,
    seconds_since_last_response: Value,
    model: Value,
    reason: Value,
    prompt: Value,
    last_assistant_message: Value,
    compact_summary: Value,
    tool_calls: Value,
    tool_use_id: Value,
    tool_name: Value,
    tool_input: Value,
    tool_response: Value,
    error: Value,
    is_interrupt: Value,
    duration_ms: Value,
}

fn text(field: Value) -> Option<String> {
    match field {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Returns a name or id from the client. Returns `None` if it is not text, is too long, or looks
/// like a credential.
fn id(field: Value) -> Option<String> {
    text(field)
        .filter(|id| !id.trim().is_empty() && id.chars().count() <= MAX_NAME_LENGTH)
        // Masking could make two ids equal, so such an id is dropped.
        .filter(|id| mask_credentials(id) == *id)
}

impl Wire {
    /// Reads a payload and translates it if it is another host's. Also returns the host and, if its name
    /// of the event is not ours, that name.
    fn read(
        text: &str,
        environment: Option<Host>,
    ) -> serde_json::Result<(Host, Option<String>, Self)> {
        let wire: Self = serde_json::from_str(text)?;
        let transcript = wire.transcript_path.as_deref();
        if transcript.and_then(Host::of_transcript) == Some(Host::ClaudeCode) {
            return Ok((Host::ClaudeCode, None, wire));
        }
        let Ok(mut payload) = serde_json::from_str::<Map<String, Value>>(text) else {
            return Ok((Host::ClaudeCode, None, wire));
        };
        let host = Host::from_payload(&payload, environment);
        if host == Host::ClaudeCode {
            return Ok((host, None, wire));
        }
        let name = ["hook_event_name", "hookEventName"]
            .iter()
            .find_map(|name| payload.get(*name)?.as_str().map(str::to_owned));
        host.translate(&mut payload);
        Ok((host, name, serde_json::from_value(payload.into())?))
    }
}

impl Payload {
    /// Parses a payload. A byte order mark, invalid UTF-8 and invalid escapes are accepted; the
    /// latter two are replaced.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidPayload> {
        Self::parse_from(bytes, None)
    }

    /// Parses a payload. If it does not tell its host, `environment` counts: the host that set variables
    /// for this process.
    pub fn parse_from(bytes: &[u8], environment: Option<Host>) -> Result<Self, InvalidPayload> {
        if bytes.len() > MAX_PAYLOAD_LENGTH {
            return Err(InvalidPayload::TooLong);
        }
        // `from_utf8` checks ASCII by words, `from_utf8_lossy` by bytes.
        let text =
            str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(InvalidPayload::Empty);
        }
        let (host, own_name, wire) = Wire::read(text, environment)
            .or_else(|error| {
                // A tool's output may be cut inside a character.
                surrogates::repair(text)
                    .ok_or(error)
                    .and_then(|text| Wire::read(&text, environment))
            })
            .map_err(|error| InvalidPayload::Malformed(without_values(&error)))?;
        let present = |field: Option<String>| field.filter(|text| !text.trim().is_empty());
        let name =
            present(wire.hook_event_name).ok_or(InvalidPayload::Missing("hook_event_name"))?;
        let session_id = present(wire.session_id).ok_or(InvalidPayload::Missing("session_id"))?;
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
            "SessionStart" => HookEvent::SessionStart {
                source: (wire.source.as_str().and_then(StartSource::parse))
                    .unwrap_or(StartSource::Other),
                model: id(wire.model),
                idle_seconds: wire.seconds_since_last_response.as_i64(),
            },
            "UserPromptSubmit" => HookEvent::UserPromptSubmit {
                prompt: submitted(self::text(wire.prompt), &wire.source),
            },
            "PreToolUse" => HookEvent::PreToolUse(call),
            "PostToolUse" => HookEvent::PostToolUse(call),
            "PostToolUseFailure" => HookEvent::PostToolUseFailure(call),
            "PostToolBatch" => HookEvent::PostToolBatch(batch(wire.tool_calls)),
            "SubagentStart" => HookEvent::SubagentStart,
            "SubagentStop" => HookEvent::SubagentStop(self::text(wire.last_assistant_message)),
            "Stop" => HookEvent::Stop(self::text(wire.last_assistant_message)),
            // A turn that ends at a limit has its last answer here only. An error is no answer.
            "StopFailure" => {
                let text = self::text(wire.last_assistant_message);
                HookEvent::Stop(text.filter(|text| !is_refusal(text)))
            }
            "PreCompact" => HookEvent::PreCompact,
            "PostCompact" => HookEvent::PostCompact {
                summary: self::text(wire.compact_summary).unwrap_or_default(),
            },
            "SessionEnd" => HookEvent::SessionEnd {
                reason: mask_credentials(wire.reason.as_str().unwrap_or_default()),
            },
            _ => HookEvent::Other,
        };
        let agent = id(wire.agent_id).map(|agent| Agent {
            id: agent,
            kind: id(wire.agent_type).unwrap_or_default(),
        });
        let own_name = own_name.as_deref().unwrap_or(&name);
        Ok(Self {
            host,
            event_name: mask_credentials(own_name).chars().take(64).collect(),
            event,
            session_id: session_id.chars().take(200).collect(),
            prompt_id: id(wire.prompt_id),
            session_title: present(self::text(wire.session_title)),
            agent,
            transcript_path: present(wire.transcript_path),
            cwd: present(wire.cwd),
        })
    }
}

/// Returns a prompt. Clients that send `source` say whether a person typed it: `user` in the client, or
/// `sdk` through an editor or another front end.
fn submitted(text: Option<String>, source: &Value) -> RawPrompt {
    let mut prompt = RawPrompt::new(text.unwrap_or_default());
    if !source.is_null() && !matches!(source.as_str(), Some("user" | "sdk")) {
        prompt.mark_untyped();
    }
    prompt
}

/// Parses the calls of a batch and skips anything else.
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

/// Describes a JSON error without values. The library's own message quotes values, and the
/// description is stored.
fn without_values(error: &serde_json::Error) -> String {
    let reason = match error.classify() {
        Category::Io | Category::Eof => "it breaks off",
        Category::Syntax => "no JSON",
        Category::Data => "a value of another type than expected",
    };
    format!("{reason}, line {} column {}", error.line(), error.column())
}

/// Masks credentials in a short text from the client, because it is stored.
fn mask_credentials(text: &str) -> String {
    let head: String = text.chars().take(200).collect();
    redact(&head).text.into_owned()
}

/// The output of a hook, one JSON object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookOutput {
    /// Context for the model, at most [`MAX_CONTEXT_LENGTH`].
    pub context: Option<String>,
    /// The reason for denying a tool call, shown to the model. Only for `PreToolUse`.
    pub denial: Option<String>,
    /// One line for the person.
    pub system_message: Option<String>,
    /// The whole answer to a prompt, shown to the person. The model gets no turn and does not see
    /// the prompt. Only for `UserPromptSubmit`.
    pub reply: Option<String>,
    /// Instructions for Claude Code's summary of the session. Only for `PreCompact`, where the client
    /// takes plain text instead of JSON.
    pub instructions: Option<&'static str>,
}

impl HookOutput {
    /// Formats the output as JSON with a line feed, or the instructions as text. Without content it is `{}`: every host accepts an
    /// empty object, and some refuse keys that they do not know.
    pub fn to_json(&self, event_name: &str) -> String {
        if let Some(instructions) = self.instructions {
            return format!("{instructions}\n");
        }
        let mut object = json!({});
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
        if let Some(reply) = &self.reply {
            object["decision"] = json!("block");
            object["reason"] = json!(reply);
            object["hookSpecificOutput"] =
                json!({"hookEventName": event_name, "suppressOriginalPrompt": true});
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
    fn events_are_parsed() {
        for (own, event) in [
            (
                r#""SessionStart", "source": "resume", "seconds_since_last_response": 3"#,
                HookEvent::SessionStart {
                    source: StartSource::Resume,
                    model: None,
                    idle_seconds: Some(3),
                },
            ),
            (
                r#""SessionStart", "source": "new""#,
                HookEvent::SessionStart {
                    source: StartSource::Other,
                    model: None,
                    idle_seconds: None,
                },
            ),
            (
                r#""SessionStart", "source": 7"#,
                HookEvent::SessionStart {
                    source: StartSource::Other,
                    model: None,
                    idle_seconds: None,
                },
            ),
            (
                r#""UserPromptSubmit", "prompt": "hi""#,
                HookEvent::UserPromptSubmit {
                    prompt: RawPrompt::new("hi"),
                },
            ),
            (r#""PreCompact", "trigger": "auto""#, HookEvent::PreCompact),
            (
                r#""SessionEnd", "reason": "clear""#,
                HookEvent::SessionEnd {
                    reason: "clear".to_owned(),
                },
            ),
            (
                r#""SessionStart", "source": "startup", "model": "m", "agent_id": 3"#,
                HookEvent::SessionStart {
                    source: StartSource::Startup,
                    model: Some("m".to_owned()),
                    idle_seconds: None,
                },
            ),
            (
                r#""PostToolUse", "tool_use_id": "t", "tool_name": "Bash", "tool_response": {"a": [1]}, "duration_ms": 7"#,
                HookEvent::PostToolUse(ToolCall {
                    id: Some("t".to_owned()),
                    tool: "Bash".to_owned(),
                    response: json!({"a": [1]}),
                    duration_ms: Some(7),
                    ..ToolCall::default()
                }),
            ),
            (
                r#""PostToolUseFailure", "tool_name": [], "error": "E", "is_interrupt": true, "duration_ms": -1"#,
                HookEvent::PostToolUseFailure(ToolCall {
                    tool: "unknown".to_owned(),
                    error: Some("E".to_owned()),
                    is_interrupt: true,
                    ..ToolCall::default()
                }),
            ),
            (
                r#""PostToolBatch", "tool_calls": [3, {"tool_name": "Edit", "tool_response": "no"}]"#,
                HookEvent::PostToolBatch(vec![ToolCall {
                    tool: "Edit".to_owned(),
                    response: json!("no"),
                    ..ToolCall::default()
                }]),
            ),
            (
                r#""Stop", "last_assistant_message": "Done.", "stop_hook_active": true"#,
                HookEvent::Stop(Some("Done.".to_owned())),
            ),
            (
                r#""StopFailure", "error": "rate_limit", "last_assistant_message": "Limits are in limit.rs.""#,
                HookEvent::Stop(Some("Limits are in limit.rs.".to_owned())),
            ),
            (
                r#""StopFailure", "error": "unknown", "last_assistant_message": "API Error: 400 no""#,
                HookEvent::Stop(None),
            ),
            (
                r#""StopFailure", "error": "rate_limit", "last_assistant_message": "You've hit your limit · resets 3pm""#,
                HookEvent::Stop(None),
            ),
            (r#""SubagentStop""#, HookEvent::SubagentStop(None)),
            (
                r#""PostCompact", "compact_summary": "S""#,
                HookEvent::PostCompact {
                    summary: "S".to_owned(),
                },
            ),
            (r#""SomethingNew", "x": null"#, HookEvent::Other),
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
        let HookEvent::PostToolUse(call) = payload.event else {
            panic!("{payload:?}");
        };
        assert_eq!((call.id, call.tool.as_str()), (None, "unknown"));
        assert_eq!(payload.prompt_id, None);
        let agent = payload.agent.unwrap();
        assert_eq!((agent.id.as_str(), agent.kind.as_str()), ("a", ""));
    }

    #[test]
    fn an_invalid_escape_loses_no_event() {
        let payload = parse(
            r#"{"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": "cut \ud83d"}"#,
        )
        .unwrap();
        let HookEvent::PostToolUse(call) = payload.event else {
            panic!("{payload:?}");
        };
        assert_eq!(call.response, json!("cut \u{fffd}"));
    }

    #[test]
    fn odd_bytes_are_taken() {
        // HOOK-13
        let text = "\u{feff} {\"session_id\":\"s\",\"hook_event_name\":\"PreCompact\",\"future\":{\"deep\":[[]]}} \n";
        assert_eq!(parse(text).unwrap().event, HookEvent::PreCompact);
        let broken = b"{\"session_id\":\"s\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"a\xffb\"}";
        assert_eq!(
            Payload::parse(broken).unwrap().event,
            HookEvent::UserPromptSubmit {
                prompt: RawPrompt::new("a\u{fffd}b")
            }
        );
    }

    #[test]
    fn invalid_payloads_say_why() {
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
    fn stored_words_contain_no_credential() {
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
    fn empty_output_is_the_no_op() {
        assert_eq!(HookOutput::default().to_json("SessionStart"), "{}\n");
        let answer = HookOutput {
            context: Some("c".to_owned()),
            system_message: Some("m".to_owned()),
            ..HookOutput::default()
        };
        assert_eq!(
            answer.to_json("SessionStart"),
            "{\"systemMessage\":\"m\",\"hookSpecificOutput\":\
             {\"hookEventName\":\"SessionStart\",\"additionalContext\":\"c\"}}\n"
        );
    }
}
