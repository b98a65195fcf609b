//! Hosts: the programs whose hooks we answer. Tells which one sent a payload, brings the payload into
//! Claude Code's form, and an answer into the host's form.
//!
//! The names that a host uses are data: a further host is a few rows of the tables. Payloads of Claude
//! Code are not translated. Sources: the hook references of Codex, Gemini CLI, Copilot CLI, VS Code and
//! Cursor, see `docs/decisions/0062-hosts.md`.

use std::path::Path;

use anamnesis_text::truncate::first_characters;
use serde_json::{Map, Value, json};

use super::HookOutput;
use crate::event::Host;

type Object = Map<String, Value>;

/// How many lines around an output may hold its exit code.
const STATUS_LINES: usize = 4;

/// The maximum length of the error of a failed call, in characters.
const MAX_ERROR: usize = 100_000;

/// Folders of hosts' logs. A transcript in such a folder names its host.
const FOLDERS: [(&str, Host); 5] = [
    (".codex", Host::Codex),
    (".gemini", Host::Gemini),
    (".cursor", Host::Cursor),
    (".copilot", Host::Copilot),
    ("projects", Host::ClaudeCode),
];

/// Fields that only payloads of a host have.
const MARKS: [(&str, Host); 6] = [
    ("cursor_version", Host::Cursor),
    ("conversation_id", Host::Cursor),
    ("turn_id", Host::Codex),
    ("timestamp", Host::Copilot),
    ("sessionId", Host::Copilot),
    ("hookEventName", Host::Copilot),
];

/// Names of events. Names that differ from ours in the case of the first letter need no row.
const EVENTS: [(&str, &str); 9] = [
    ("BeforeAgent", "UserPromptSubmit"),
    ("AfterAgent", "Stop"),
    ("BeforeTool", "PreToolUse"),
    ("AfterTool", "PostToolUse"),
    ("PreCompress", "PreCompact"),
    ("userPromptSubmitted", "UserPromptSubmit"),
    ("beforeSubmitPrompt", "UserPromptSubmit"),
    ("afterAgentResponse", "Stop"),
    ("agentStop", "Stop"),
];

/// The events that only Gemini CLI has.
const GEMINI_EVENTS: usize = 5;

/// Names of fields, ours first.
const FIELDS: [(&str, &[&str]); 12] = [
    ("session_id", &["sessionId", "conversation_id"]),
    ("hook_event_name", &["hookEventName"]),
    ("transcript_path", &["transcriptPath"]),
    ("prompt_id", &["turn_id", "generation_id"]),
    (
        "last_assistant_message",
        &["prompt_response", "lastAssistantMessage", "text"],
    ),
    ("tool_name", &["toolName"]),
    ("tool_input", &["toolInput", "toolArgs", "tool_args"]),
    (
        "tool_response",
        &["toolResult", "tool_result", "tool_output"],
    ),
    ("tool_use_id", &["toolUseId", "toolCallId", "tool_call_id"]),
    ("error", &["error_message", "errorMessage"]),
    ("is_interrupt", &["isInterrupt"]),
    ("duration_ms", &["duration", "durationMs"]),
];

/// Names of tools, ours first. Other tools keep their names.
const TOOLS: [(&str, &[&str]); 9] = [
    (
        "Bash",
        &[
            "run_shell_command",
            "exec_command",
            "shell",
            "local_shell",
            "bash",
            "Shell",
            "runInTerminal",
            "run_in_terminal",
        ],
    ),
    ("PowerShell", &["powershell"]),
    ("Read", &["read_file", "read", "view", "readFile"]),
    (
        "Write",
        &["write_file", "write", "create", "createFile", "create_file"],
    ),
    (
        "Edit",
        &[
            "replace",
            "edit",
            "edit_file",
            "editFiles",
            "replace_string_in_file",
            "apply_patch",
            "patch",
        ],
    ),
    ("Grep", &["grep_search", "search_file_content", "grep"]),
    ("Glob", &["glob"]),
    ("WebSearch", &["google_web_search", "web_search"]),
    ("WebFetch", &["web_fetch", "webfetch"]),
];

/// Names of the arguments of these tools, ours first.
const ARGUMENTS: [(&str, &[&str]); 6] = [
    ("command", &["cmd"]),
    (
        "file_path",
        &["filePath", "path", "absolute_path", "target_file"],
    ),
    ("file_paths", &["files"]),
    ("content", &["file_text", "contents"]),
    ("old_string", &["old_str", "oldString"]),
    ("new_string", &["new_str", "newString"]),
];

impl Host {
    /// Returns the host of a payload. `environment` is the host that set variables, if one did; what the
    /// payload says comes first, because a host can run in another's terminal.
    pub(super) fn from_payload(payload: &Object, environment: Option<Self>) -> Self {
        let text = |name: &str| payload.get(name).and_then(Value::as_str);
        let is_event_of_gemini = |event: &str| {
            let mut events = EVENTS[..GEMINI_EVENTS].iter();
            events.any(|(name, _)| *name == event)
        };
        let marks = || MARKS.iter().find(|(name, _)| payload.contains_key(*name));
        let transcript = text("transcript_path").or_else(|| text("transcriptPath"));
        let event = text("hook_event_name");
        text("host")
            .and_then(Self::parse)
            .or_else(|| Self::of_transcript(transcript?))
            .or_else(|| {
                event
                    .filter(|event| is_event_of_gemini(event))
                    .map(|_| Self::Gemini)
            })
            .or_else(|| environment.filter(|_| transcript.is_none()))
            .or_else(|| marks().map(|(_, host)| *host))
            .unwrap_or(Self::ClaudeCode)
    }

    /// Returns the host whose log a file is.
    pub fn of_transcript(path: &str) -> Option<Self> {
        let path = Path::new(path);
        let name = path.file_name()?.to_str()?;
        if name.starts_with("rollout-") {
            return Some(Self::Codex);
        }
        let has = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
        let found = FOLDERS.iter().find(|(folder, _)| has(folder));
        found.map(|(_, host)| *host)
    }

    /// Brings a payload into Claude Code's form.
    pub(super) fn translate(self, payload: &mut Object) {
        rename(payload, &FIELDS);
        if !payload.contains_key("cwd")
            && let Some(root) = payload
                .get("workspace_roots")
                .and_then(|roots| roots.get(0))
        {
            payload.insert("cwd".to_owned(), root.clone());
        }
        if let Some(Value::String(prompt)) = payload.get_mut("prompt")
            && self == Self::Gemini
        {
            *prompt = without_context(prompt).to_owned();
        }
        if payload.get("source").and_then(Value::as_str) == Some("new") {
            payload.insert("source".to_owned(), "startup".into());
        }
        if let Some(Value::String(tool)) = payload.get("tool_name") {
            let call = Call::new(tool, payload.get("tool_input").cloned().unwrap_or_default());
            payload.insert("tool_name".to_owned(), call.tool.into());
            payload.insert("tool_input".to_owned(), call.input);
        }
        let event = payload.get("hook_event_name").and_then(Value::as_str);
        let mut event = our_event(event.unwrap_or_default());
        if let Some(raw) = payload.remove("tool_response") {
            let (response, failure) = result(raw);
            if event == "PostToolUse"
                && let Some(error) = failure
            {
                "PostToolUseFailure".clone_into(&mut event);
                payload.insert("error".to_owned(), error.into());
            } else {
                payload.insert("tool_response".to_owned(), response);
            }
        }
        payload.insert("hook_event_name".to_owned(), event.into());
    }

    /// Formats the answer to an event as the host reads it. `event_name` is the host's name of it.
    pub fn answer(self, output: &HookOutput, event_name: &str) -> String {
        let json = output.to_json(event_name);
        let Ok(Value::Object(mut answer)) = serde_json::from_str(&json) else {
            return json;
        };
        if self == Self::ClaudeCode || answer.is_empty() {
            return json;
        }
        let Some(Value::Object(mut specific)) = answer.remove("hookSpecificOutput") else {
            return format!("{}\n", Value::Object(answer));
        };
        let context = specific.get("additionalContext").cloned();
        let denial = specific.get("permissionDecisionReason").cloned();
        match (self, context, denial) {
            (Self::Cursor, context, denial) => {
                if let Some(message) = answer.remove("systemMessage") {
                    answer.insert("user_message".to_owned(), message);
                }
                if let Some(context) = context {
                    answer.insert("additional_context".to_owned(), context);
                }
                if let Some(reason) = denial {
                    answer.insert("permission".to_owned(), "deny".into());
                    answer.insert("agent_message".to_owned(), reason);
                }
            }
            (Self::Gemini, _, Some(reason)) => {
                answer.insert("decision".to_owned(), "deny".into());
                answer.insert("reason".to_owned(), reason);
            }
            (_, None, None) => {}
            (_, context, denial) => {
                // Copilot CLI reads the same fields one level up.
                if self == Self::Copilot {
                    specific.remove("hookEventName");
                    answer.extend(specific.clone());
                }
                // Codex refuses an answer with any other field.
                let known = [
                    ("hookEventName", Some(event_name.into())),
                    ("additionalContext", context),
                    ("permissionDecision", denial.as_ref().map(|_| "deny".into())),
                    ("permissionDecisionReason", denial),
                ];
                let known = known
                    .into_iter()
                    .filter_map(|(name, value)| Some((name.to_owned(), value?)));
                let specific = known.collect::<Object>();
                answer.insert("hookSpecificOutput".to_owned(), specific.into());
            }
        }
        format!("{}\n", Value::Object(answer))
    }
}

/// Gives fields our names. A field that has our name already is kept.
fn rename(fields: &mut Object, names: &[(&str, &[&str])]) {
    for (ours, theirs) in names {
        if fields.get(*ours).is_none_or(Value::is_null)
            && let Some(value) = theirs.iter().find_map(|name| fields.remove(*name))
        {
            fields.insert((*ours).to_owned(), value);
        }
    }
}

/// Returns our name of an event; an unknown name stays as it is.
fn our_event(name: &str) -> String {
    if let Some((_, ours)) = EVENTS.iter().find(|(theirs, _)| *theirs == name) {
        return (*ours).to_owned();
    }
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A prompt without the context that Gemini CLI puts before it at the start of `gemini -p`. The context
/// has no tags of its own, because Gemini CLI escapes them.
pub(crate) fn without_context(prompt: &str) -> &str {
    let Some(context) = prompt.trim_start().strip_prefix("<hook_context>") else {
        return prompt;
    };
    let rest = context.split_once("</hook_context>");
    rest.map_or(prompt, |(_, rest)| rest.trim_start())
}

/// A tool call of another host in Claude Code's form.
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) input: Value,
}

impl Call {
    pub(crate) fn new(tool: &str, input: Value) -> Self {
        let known = TOOLS
            .iter()
            .find(|(ours, theirs)| *ours == tool || theirs.contains(&tool));
        let Some((ours, _)) = known else {
            return Self {
                tool: tool.to_owned(),
                input,
            };
        };
        // Some hosts send the arguments as the text that the model wrote.
        let input = match input {
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(Value::Object(fields)) => Value::Object(fields),
                _ if text.trim_start().starts_with(PATCH) => json!({ "command": text }),
                _ => Value::String(text),
            },
            other => other,
        };
        let Value::Object(mut fields) = input else {
            return Self {
                tool: (*ours).to_owned(),
                input,
            };
        };
        rename(&mut fields, &ARGUMENTS);
        if let Some(Value::Array(words)) = fields.get("command") {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            // Codex before 0.150 sent `["bash", "-lc", COMMAND]`.
            let command = match words.as_slice() {
                [_, "-lc" | "-c", command] => (*command).to_owned(),
                words => words.join(" "),
            };
            fields.insert("command".to_owned(), command.into());
        }
        let patch = ["command", "input", "patch", "patchText"]
            .iter()
            .find_map(|name| fields.get(*name)?.as_str().and_then(patch));
        Self {
            tool: (*ours).to_owned(),
            input: match patch {
                Some(patch) if *ours == "Edit" => patch,
                _ => fields.into(),
            },
        }
    }
}

/// The first line of a patch of Codex's tool `apply_patch`.
const PATCH: &str = "*** Begin Patch";

/// Returns the files and the new lines of a patch, as arguments of our `Edit`.
fn patch(text: &str) -> Option<Value> {
    text.trim_start().starts_with(PATCH).then_some(())?;
    let files: Vec<&str> = text
        .lines()
        .filter_map(|line| {
            let (action, file) = line.strip_prefix("*** ")?.split_once(": ")?;
            matches!(
                action,
                "Add File" | "Update File" | "Delete File" | "Move to"
            )
            .then_some(file)
        })
        .collect();
    let added: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix('+'))
        .collect();
    Some(json!({
        "file_path": files.first()?,
        "file_paths": files,
        "new_string": added.join("\n"),
    }))
}

/// Splits a result of a tool into the response, in Claude Code's form, and the error of a failed call.
pub(crate) fn result(raw: Value) -> (Value, Option<String>) {
    let raw = match &raw {
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Value::Object(fields),
            _ => raw,
        },
        _ => raw,
    };
    let field = |names: &[&str]| names.iter().find_map(|name| raw.get(*name));
    let text = |names: &[&str]| field(names).and_then(Value::as_str);
    let output = match &raw {
        Value::String(text) => text.as_str(),
        _ => text(&[
            "llmContent",
            "textResultForLlm",
            "text_result_for_llm",
            "output",
        ])
        .unwrap_or_default(),
    };
    let (code, printed) = status(output).unzip();
    let printed = printed.unwrap_or(output);
    let shown = text(&["returnDisplay"]).unwrap_or(printed);
    let error = match field(&["error"]) {
        Some(Value::String(error)) => Some(error.as_str()),
        Some(error) => error.get("message").and_then(Value::as_str),
        None => text(&["resultType", "result_type"])
            .filter(|kind| *kind == "failure")
            .map(|_| output),
    };
    let failure = match code {
        Some(code) if code != 0 => Some(format!("Exit code {code}\n{shown}")),
        _ => error.map(str::to_owned),
    };
    let failure = failure.map(|error| first_characters(&error, MAX_ERROR).to_owned());
    let response = match code {
        Some(code) => json!({ "stdout": shown, "exit_code": code }),
        None if shown.is_empty() => raw.clone(),
        None => shown.into(),
    };
    (response, failure)
}

/// Returns the exit code that Gemini CLI or Codex wrote around the output of a command, and the output.
fn status(output: &str) -> Option<(i64, &str)> {
    if output.starts_with("<untrusted_context>") {
        let mut last = output.lines().rev().take(STATUS_LINES);
        let code = last.find_map(|line| line.strip_prefix("Exit Code: "))?;
        return Some((code.trim().parse().ok()?, output));
    }
    let (head, printed) = output.split_once("\nOutput:\n")?;
    let mut head = head.lines().take(STATUS_LINES);
    let code = head.find_map(|line| line.strip_prefix("Process exited with code "))?;
    Some((code.trim().parse().ok()?, printed))
}

#[cfg(test)]
mod tests;
