//! Hook payloads: what Claude Code sends on stdin, reduced to what is acted on.
//!
//! The wire type mirrors the client's JSON and tolerates what it does not know: missing fields,
//! fields of a newer client, wrong types in fields that nobody reads. An event that is not acted on
//! is [`Event::Other`], not an error. Source: <https://code.claude.com/docs/en/hooks>.

use serde::Deserialize;
use serde_json::{Value, error::Category, json};

use crate::redact::redact;

/// The largest payload that is read, in bytes.
pub const MAX_PAYLOAD_LENGTH: usize = 64 * 1024 * 1024;

/// The largest `additionalContext`, in UTF-16 code units. The client cuts at 10,000.
pub const MAX_CONTEXT_LENGTH: usize = 9_500;

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
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A session starts or goes on.
    SessionStart {
        /// Why.
        source: StartSource,
    },
    /// A prompt was sent, as typed.
    UserPromptSubmit {
        /// The prompt.
        prompt: String,
    },
    /// The context is about to be compacted.
    PreCompact,
    /// A session ended.
    SessionEnd {
        /// Why, in the client's word.
        reason: String,
    },
    /// An event that is not acted on.
    Other,
}

/// A hook's payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The event's name in the client's spelling; at most 64 characters of it.
    pub event_name: String,
    /// The event.
    pub event: Event,
    /// The client's id of the session; at most 200 characters.
    pub session_id: String,
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
    source: Option<Value>,
    #[serde(default)]
    reason: Option<Value>,
    #[serde(default)]
    prompt: Option<Value>,
}

impl Payload {
    /// Reads a payload. A byte order mark and bytes that are no UTF-8 (replaced) are taken.
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
            .map_err(|error| InvalidPayload::Malformed(without_values(&error)))?;
        let present = |field: Option<String>| field.filter(|text| !text.trim().is_empty());
        let name =
            present(wire.hook_event_name).ok_or(InvalidPayload::Missing("hook_event_name"))?;
        let session_id = present(wire.session_id).ok_or(InvalidPayload::Missing("session_id"))?;
        let word = |field: Option<Value>| match field {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let event = match name.as_str() {
            "SessionStart" => Event::SessionStart {
                source: StartSource::of(&word(wire.source)),
            },
            "UserPromptSubmit" => Event::UserPromptSubmit {
                prompt: word(wire.prompt),
            },
            "PreCompact" => Event::PreCompact,
            "SessionEnd" => Event::SessionEnd {
                reason: masked(&word(wire.reason)),
            },
            _ => Event::Other,
        };
        Ok(Self {
            event_name: masked(&name).chars().take(64).collect(),
            event,
            session_id: session_id.chars().take(200).collect(),
            transcript_path: present(wire.transcript_path),
            cwd: present(wire.cwd),
        })
    }
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
                },
            ),
            (
                r#""SessionStart", "source": "new""#,
                Event::SessionStart {
                    source: StartSource::Other,
                },
            ),
            (
                r#""SessionStart", "source": 7"#,
                Event::SessionStart {
                    source: StartSource::Other,
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
                r#""PostToolUse", "tool_response": {"a": [1]}"#,
                Event::Other,
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
        };
        assert_eq!(
            answer.to_json("SessionStart"),
            "{\"continue\":true,\"suppressOutput\":true,\"systemMessage\":\"m\",\"hookSpecificOutput\":\
             {\"hookEventName\":\"SessionStart\",\"additionalContext\":\"c\"}}\n"
        );
    }
}
