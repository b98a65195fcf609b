//! Translates the session log of another host into records of Claude Code's transcript.
//!
//! The first readable line tells whose log it is. Codex writes events and items of the model's API to
//! `rollout-*.jsonl`. Gemini CLI writes messages to `session-*.jsonl`, each again when it changes, so a
//! message counts when the next one begins.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, json};

use crate::{
    hook::host::{Call, result, without_context},
    intake::text_of,
};

/// The state of a log that is read.
#[derive(Default)]
pub(super) struct HostLog {
    format: Format,
    /// Fields that each record of Claude Code's transcript has.
    surroundings: Map<String, Value>,
    /// The kind of Codex's events that prompts are taken from; some versions write two.
    prompts: Option<&'static str>,
    /// Gemini CLI's last message, which may be written again.
    message: Option<Value>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Format {
    #[default]
    Unknown,
    ClaudeCode,
    Codex,
    Gemini,
}

/// The fields that tell the format of a line.
#[derive(Deserialize)]
struct Probe {
    payload: Option<IgnoredAny>,
    #[serde(rename = "projectHash")]
    project_hash: Option<IgnoredAny>,
    #[serde(rename = "$set")]
    set: Option<IgnoredAny>,
    id: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
}

impl Format {
    fn from_line(line: &str) -> Self {
        let Ok(probe) = serde_json::from_str::<Probe>(line) else {
            return Self::Unknown;
        };
        let is_message = probe.id.is_some() && probe.message.is_none();
        if probe.payload.is_some() {
            Self::Codex
        } else if probe.project_hash.is_some() || probe.set.is_some() || is_message {
            Self::Gemini
        } else {
            Self::ClaudeCode
        }
    }
}

impl HostLog {
    /// Returns the records of a line; `None` if it is one of Claude Code's own.
    pub(super) fn take(&mut self, line: &str) -> Option<Vec<Value>> {
        if self.format == Format::Unknown {
            self.format = Format::from_line(line);
        }
        if !matches!(self.format, Format::Codex | Format::Gemini) {
            return None;
        }
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            return Some(Vec::new());
        };
        Some(if self.format == Format::Codex {
            self.codex(&line).into_iter().collect()
        } else {
            self.gemini(line)
        })
    }

    /// Returns the records that were held back, at the end of the log.
    pub(super) fn finish(&mut self) -> Vec<Value> {
        self.message
            .take()
            .map_or_else(Vec::new, |message| self.message(&message))
    }

    /// Makes a record.
    fn record(&self, kind: &str, at: &Value, message: Value) -> Value {
        let mut record = self.surroundings.clone();
        record.insert("type".to_owned(), kind.into());
        record.insert("timestamp".to_owned(), at.clone());
        record.insert("message".to_owned(), message);
        record.into()
    }

    fn remember(&mut self, name: &str, value: Option<&Value>) {
        if let Some(value @ Value::String(_)) = value {
            self.surroundings.insert(name.to_owned(), value.clone());
        }
    }

    fn codex(&mut self, line: &Value) -> Option<Value> {
        let (at, payload) = (&line["timestamp"], line.get("payload")?);
        let kind = payload["type"].as_str().unwrap_or_default();
        match (line["type"].as_str()?, kind) {
            ("session_meta", _) => {
                self.remember("sessionId", payload.get("id"));
                self.remember("cwd", payload.get("cwd"));
                self.remember("gitBranch", payload.pointer("/git/branch"));
                None
            }
            ("turn_context", _) => {
                self.remember("cwd", payload.get("cwd"));
                None
            }
            ("event_msg", "user_message") => self.prompt("user_message", at, payload),
            ("event_msg", "item_completed") if payload["item"]["type"] == "UserMessage" => {
                self.prompt("item_completed", at, payload)
            }
            ("response_item", "message") if payload["role"] == "assistant" => {
                let text = text_of(&payload["content"])?;
                let block = json!({ "type": "text", "text": text });
                let message = json!({ "id": payload["id"], "content": [block] });
                Some(self.record("assistant", at, message))
            }
            ("response_item", "function_call" | "custom_tool_call") => {
                let input = payload.get("arguments").or_else(|| payload.get("input"))?;
                let call = Call::new(payload["name"].as_str()?, input.clone());
                let block = tool_use(&payload["call_id"], &call);
                Some(self.record("assistant", at, json!({ "content": [block] })))
            }
            ("response_item", "function_call_output" | "custom_tool_call_output") => {
                let output = payload.get("output")?;
                let output = text_of(output).map_or_else(|| output.clone(), Value::from);
                let block = tool_result(&payload["call_id"], output);
                Some(self.record("user", at, json!({ "content": [block] })))
            }
            _ => None,
        }
    }

    fn prompt(&mut self, kind: &'static str, at: &Value, payload: &Value) -> Option<Value> {
        if *self.prompts.get_or_insert(kind) != kind {
            return None;
        }
        let text = match payload.get("message") {
            Some(message) => text_of(message),
            None => text_of(&payload["item"]["content"]),
        };
        let mut record = self.record("user", at, json!({ "content": text? }));
        record["promptId"] = payload["turn_id"].clone();
        Some(record)
    }

    fn gemini(&mut self, line: Value) -> Vec<Value> {
        if line.get("projectHash").is_some() {
            self.remember("sessionId", line.get("sessionId"));
            return Vec::new();
        }
        if let Some(messages) = line.pointer("/$set/messages") {
            let first = text_of(&messages[0]["content"]).unwrap_or_default();
            self.remember("cwd", workspace(&first).map(Value::from).as_ref());
        }
        if line.get("id").is_none() {
            return Vec::new();
        }
        let is_again = |last: &Value| last["id"] == line["id"];
        let records = if self.message.as_ref().is_some_and(is_again) {
            Vec::new()
        } else {
            self.finish()
        };
        self.message = Some(line);
        records
    }

    /// Returns the records of a message of Gemini CLI.
    fn message(&self, message: &Value) -> Vec<Value> {
        let at = &message["timestamp"];
        let text = text_of(&message["content"]).unwrap_or_default();
        if message["type"] == "user" {
            let text = without_context(&text);
            let is_typed = !text.is_empty() && !text.starts_with("<session_context>");
            let record = is_typed.then(|| self.record("user", at, json!({ "content": text })));
            return record.into_iter().collect();
        }
        if message["type"] != "gemini" {
            return Vec::new();
        }
        let mut blocks = Vec::new();
        if !text.is_empty() {
            blocks.push(json!({ "type": "text", "text": text }));
        }
        let mut results = Vec::new();
        for call in message["toolCalls"].as_array().into_iter().flatten() {
            let name = call["name"].as_str().unwrap_or_default();
            blocks.push(tool_use(
                &call["id"],
                &Call::new(name, call["args"].clone()),
            ));
            let response = call.pointer("/result/0/functionResponse/response");
            let mut output = json!({ "returnDisplay": call["resultDisplay"] });
            for (ours, theirs) in [("llmContent", "output"), ("error", "error")] {
                if let Some(text) = response.and_then(|response| response.get(theirs)) {
                    output[ours] = text.clone();
                }
            }
            if call["status"] == "success" || call["status"] == "error" {
                results.push(tool_result(&call["id"], output));
            }
        }
        let mut records = vec![self.record(
            "assistant",
            at,
            json!({ "id": message["id"], "model": message["model"], "content": blocks }),
        )];
        if !results.is_empty() {
            records.push(self.record("user", at, json!({ "content": results })));
        }
        records
    }
}

/// Returns the first folder that Gemini CLI's first message names: it lists them after this heading.
fn workspace(text: &str) -> Option<&str> {
    let text = text.strip_prefix("<session_context>")?;
    let (_, list) = text.split_once("**Workspace Directories:**\n")?;
    list.lines().next()?.trim().strip_prefix("- ")
}

fn tool_use(id: &Value, call: &Call) -> Value {
    json!({ "type": "tool_use", "id": id, "name": call.tool, "input": call.input })
}

fn tool_result(id: &Value, output: Value) -> Value {
    let (response, error) = result(output);
    let content = match &response {
        _ if error.is_some() => error.clone().into(),
        Value::Object(fields) => fields.get("stdout").cloned().unwrap_or_default(),
        _ => response,
    };
    json!({ "type": "tool_result", "tool_use_id": id, "is_error": error.is_some(), "content": content })
}
