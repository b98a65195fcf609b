//! Converts a hook event into a sanitised record.
//!
//! Every text passes through [`anamnesis_text::sanitize`]. What depends on stored data, such as
//! whether the event's prompt is private, is decided by the journal.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    declared,
    event::{
        Agent, FileAction, FileUse, MAX_TEXT, Outcome, PrivateTokenHash, RecordedEvent,
        SessionEvent, Speaker, Surroundings, ToolEvent, ToolInput, ToolOutput,
    },
    hook::{HookEvent, Payload, ToolCall},
    prompt::SafePrompt,
    transcript::scheduled,
};
use anamnesis_text::prompt_text;
use anamnesis_text::{
    clean::one_line,
    hash::text_hash,
    privacy::{self, PrivateTexts},
    private_tokens::{self, Key, PrivateTokens},
    sanitize::{self, Sanitized},
};

/// The maximum length of a session's name, in characters.
const MAX_TITLE: usize = 200;

/// The maximum length of an error, in characters.
const MAX_ERROR: usize = 4_000;

/// The maximum length of a tool's arguments, in characters.
const MAX_INPUT: usize = 7_000;

/// The maximum number of files per tool event.
const MAX_FILES: usize = 100;

/// The maximum length of a path, in bytes.
const MAX_PATH: usize = 4096;

/// The client's markers around the error of a call that it rejected before running the tool.
const REJECTION_TAGS: (&str, &str) = ("<tool_use_error>", "</tool_use_error>");

/// The context for making a record.
#[derive(Debug)]
pub struct Intake<'a> {
    /// The session's known private tokens.
    pub private_tokens: &'a PrivateTokens,
    /// A random key for hashing this event's private tokens, stored with the hashes.
    pub key: Key,
    /// The project's folder.
    pub folder: &'a Path,
    /// The facts about its session.
    pub surroundings: Surroundings,
    /// The time in milliseconds since 1970.
    pub at: i64,
    /// Whether the event's prompt may be private. If so, no content is stored.
    pub is_unsure: bool,
    /// Whether that content is kept apart until the private tokens are known.
    pub may_hold: bool,
}

impl Intake<'_> {
    /// Makes the record of an event.
    ///
    /// `safe` is its prompt. Without it, the text of a prompt is not stored.
    pub fn record(&self, payload: &Payload, safe: Option<Sanitized<SafePrompt>>) -> SessionEvent {
        let mut marks = Marks::default();
        let agent = payload.agent.as_ref();
        let agent = agent.filter(|agent| !agent.kind.is_empty());
        let prompt_id = payload.prompt_id.as_deref();
        let what = self.event(&payload.event, safe, prompt_id, agent, &mut marks);
        let unmasked = if self.is_unsure && self.may_hold {
            self.unmasked(payload, agent, &what)
        } else {
            Vec::new()
        };
        SessionEvent {
            session: payload.session_id.clone(),
            at: self.at,
            prompt_id: payload.prompt_id.clone(),
            agent: agent.cloned(),
            surroundings: Surroundings {
                title: self.title(payload),
                ..self.surroundings.clone()
            },
            private: marks.private,
            echoes: marks
                .texts
                .iter()
                .flat_map(|texts| private_tokens::hashes(&self.key, texts))
                .map(|hash| PrivateTokenHash {
                    key: self.key,
                    hash,
                })
                .collect(),
            what,
            unmasked,
        }
    }

    /// The event with the texts that `what` lacks; empty if it lacks none. A prompt holds its own.
    fn unmasked(&self, payload: &Payload, agent: Option<&Agent>, what: &RecordedEvent) -> Vec<u8> {
        if matches!(what, RecordedEvent::Prompted(_)) {
            return Vec::new();
        }
        let sure = Self {
            is_unsure: false,
            surroundings: Surroundings::default(),
            ..*self
        };
        let (id, marks) = (payload.prompt_id.as_deref(), &mut Marks::default());
        let whole = sure.event(&payload.event, None, id, agent, marks);
        if whole == *what {
            return Vec::new();
        }
        serde_json::to_vec(&whole).unwrap_or_default()
    }

    /// Sanitises the session's name.
    fn title(&self, payload: &Payload) -> Option<String> {
        let title = payload.session_title.as_deref()?;
        let title = sanitize::text(title, self.private_tokens, MAX_TITLE).value;
        let title = one_line(&title);
        Some(title).filter(|title| !title.is_empty() && !self.is_unsure)
    }

    fn event(
        &self,
        event: &HookEvent,
        safe: Option<Sanitized<SafePrompt>>,
        prompt_id: Option<&str>,
        agent: Option<&Agent>,
        marks: &mut Marks,
    ) -> RecordedEvent {
        match event {
            HookEvent::SessionStart { source, model, .. } => RecordedEvent::Started {
                source: source.as_str().to_owned(),
                model: model.clone(),
            },
            HookEvent::UserPromptSubmit { prompt } => {
                let safe = safe.unwrap_or_else(|| SafePrompt::new(prompt, None));
                RecordedEvent::Prompted(marks.add(safe))
            }
            HookEvent::PreToolUse(call) => self.delegation(call, marks),
            HookEvent::PostToolUse(call) => {
                RecordedEvent::Used(vec![self.used(call, Outcome::Ok, prompt_id, agent, marks)])
            }
            HookEvent::PostToolUseFailure(call) => {
                let outcome = if call.is_interrupt {
                    Outcome::Interrupted
                } else {
                    Outcome::Failed
                };
                RecordedEvent::Used(vec![self.used(call, outcome, prompt_id, agent, marks)])
            }
            HookEvent::PostToolBatch(calls) => self.rejected(calls, prompt_id, agent, marks),
            // The client compacts with a subagent of its own, which has no type.
            HookEvent::SubagentStop(_) if agent.is_none() => RecordedEvent::Seen,
            HookEvent::Stop(text) | HookEvent::SubagentStop(text) => RecordedEvent::Spoke {
                speaker: if agent.is_some() {
                    Speaker::Subagent
                } else {
                    Speaker::Main
                },
                text: (text.as_deref()).and_then(|text| self.said(text, marks)),
            },
            HookEvent::PreCompact => RecordedEvent::Compacting,
            HookEvent::PostCompact { summary } => match self.said(summary_in(summary), marks) {
                Some(text) if !marks.private => RecordedEvent::Spoke {
                    speaker: Speaker::Compact,
                    text: Some(text),
                },
                _ => RecordedEvent::Seen,
            },
            HookEvent::SessionEnd { reason } => RecordedEvent::Ended {
                reason: reason.clone(),
            },
            HookEvent::SubagentStart | HookEvent::Other => RecordedEvent::Seen,
        }
    }

    /// Records the task of a subagent that is about to start.
    fn delegation(&self, call: &ToolCall, marks: &mut Marks) -> RecordedEvent {
        let field = |name: &str| call.input.get(name).and_then(Value::as_str);
        let (Some(id), Some(prompt)) = (&call.id, field("prompt")) else {
            return RecordedEvent::Seen;
        };
        if !is_delegation(&call.tool) {
            return RecordedEvent::Seen;
        }
        let prompt = marks.add(sanitize::text(prompt, self.private_tokens, MAX_TEXT));
        if self.is_unsure {
            return RecordedEvent::Seen;
        }
        RecordedEvent::Delegated {
            id: id.clone(),
            kind: field("subagent_type")
                .map(sanitised_line)
                .unwrap_or_default(),
            prompt,
        }
    }

    /// Sanitises the last message of a turn.
    fn said(&self, text: &str, marks: &mut Marks) -> Option<String> {
        let text = marks.add(sanitize::text(text, self.private_tokens, MAX_TEXT));
        Some(text).filter(|text| !text.is_empty() && !self.is_unsure)
    }

    /// Records the calls of a batch that the client rejected.
    fn rejected(
        &self,
        calls: &[ToolCall],
        prompt_id: Option<&str>,
        agent: Option<&Agent>,
        marks: &mut Marks,
    ) -> RecordedEvent {
        let rejected = calls.iter().filter_map(rejected_call);
        let events: Vec<ToolEvent> = rejected
            .map(|call| ToolEvent {
                is_from_batch: true,
                ..self.used(&call, Outcome::Failed, prompt_id, agent, marks)
            })
            .collect();
        if events.is_empty() {
            RecordedEvent::Seen
        } else {
            RecordedEvent::Used(events)
        }
    }

    /// Makes the event of a finished tool call that belongs to no prompt, and returns its private
    /// texts.
    pub(crate) fn tool_event(
        &self,
        call: &ToolCall,
        outcome: Outcome,
        agent: Option<&Agent>,
    ) -> (ToolEvent, Vec<PrivateTexts>) {
        let mut marks = Marks::default();
        let event = self.used(call, outcome, None, agent, &mut marks);
        (event, marks.texts)
    }

    /// Records a finished tool call.
    fn used(
        &self,
        call: &ToolCall,
        outcome: Outcome,
        prompt_id: Option<&str>,
        agent: Option<&Agent>,
        marks: &mut Marks,
    ) -> ToolEvent {
        let files = self.files(call, outcome);
        let mut own = Marks::default();
        let input = declared::arguments(call).unwrap_or_else(|| call.input.clone());
        let input = self.input(&call.tool, input, &mut own);
        let is_stored = outcome == Outcome::Ok || !call.response.is_null();
        let response = is_stored.then(|| self.output(&call.tool, call.response.clone(), &mut own));
        let error = (call.error.as_deref())
            .map(|error| own.add(sanitize::text(error, self.private_tokens, MAX_ERROR)));
        let id = call.id.clone().unwrap_or_else(|| {
            // The id is made of sanitised parts only: a hash of private text could reveal it.
            let parts = [
                prompt_id.unwrap_or_default(),
                &call.tool,
                &json!(input).to_string(),
                &json!(response).to_string(),
            ];
            format!("hash-{}", text_hash(&parts.join("\n")))
        });
        let is_kept = !self.is_unsure;
        let mut input = input.filter(|_| is_kept);
        scheduled::keep_hash(call, &mut input, self.key);
        let event = ToolEvent {
            id,
            tool: call.tool.clone(),
            input,
            response: response.filter(|_| is_kept),
            outcome,
            error: error.filter(|error| is_kept && !error.is_empty()),
            duration_ms: call.duration_ms,
            files,
            agent: agent.cloned(),
            is_from_batch: false,
            many_tags: own.many,
        };
        marks.join(own);
        event
    }

    /// Sanitises the arguments of a call.
    fn input(&self, tool: &str, raw: Value, marks: &mut Marks) -> Option<ToolInput> {
        if raw.is_null() {
            return None;
        }
        let run_in_background = ToolInput::is_in_background(&raw);
        let texts = sanitize::tool_input(tool, raw, self.private_tokens, MAX_INPUT);
        Some(ToolInput::new(marks.add(texts), run_in_background))
    }

    /// Sanitises the response to a call.
    fn output(&self, tool: &str, raw: Value, marks: &mut Marks) -> ToolOutput {
        let end = if is_shell(tool) {
            ToolOutput::end_of_command(&raw)
        } else {
            ToolOutput::default()
        };
        let (bytes, tail) = marks.add(sanitize::tool_output(tool, raw, self.private_tokens));
        ToolOutput { bytes, tail, ..end }
    }

    /// Returns the files named in a tool's input and patch.
    fn files(&self, call: &ToolCall, outcome: Outcome) -> Vec<FileUse> {
        let action = match call.tool.as_str() {
            "Read" | "NotebookRead" => FileAction::Read,
            "Write" if outcome == Outcome::Ok && is_creation(&call.response) => FileAction::Created,
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => FileAction::Edited,
            _ => return Vec::new(),
        };
        let mut files: Vec<FileUse> = Vec::new();
        let named = ["file_path", "notebook_path"]
            .into_iter()
            .filter_map(|name| call.input.get(name))
            .chain(call.response.get("filePath"))
            .chain(list(call.input.get("file_paths")));
        for path in named.filter_map(Value::as_str) {
            let path = self.project_path(path);
            if !path.is_empty()
                && files.len() < MAX_FILES
                && files.iter().all(|file| file.path != path)
            {
                files.push(FileUse { path, action });
            }
        }
        files
    }

    /// Makes a path relative to the project if it is inside.
    fn project_path(&self, path: &str) -> String {
        if path.len() > MAX_PATH {
            return String::new();
        }
        let path = PathBuf::from(path);
        let inside = path.strip_prefix(self.folder).ok();
        let shown = inside.unwrap_or(&path).to_string_lossy();
        let masked = self.private_tokens.mask(&shown);
        sanitised_line(&masked)
    }
}

/// The sanitiser's findings in an event.
#[derive(Default)]
struct Marks {
    private: bool,
    many: bool,
    texts: Vec<PrivateTexts>,
}

impl Marks {
    fn add<T>(&mut self, sanitized: Sanitized<T>) -> T {
        self.private |= sanitized.private;
        self.many |= sanitized.many_tags;
        if !sanitized.private_texts.is_empty() {
            self.texts.push(sanitized.private_texts);
        }
        sanitized.value
    }

    fn join(&mut self, other: Self) {
        self.private |= other.private;
        self.many |= other.many;
        self.texts.extend(other.texts);
    }
}

/// Sanitises a name or path to one line.
fn sanitised_line(text: &str) -> String {
    one_line(&prompt_text::words(text).text)
}

/// Returns the summary in the client's compaction text, without the reasoning before it.
///
/// If the text has a private region, it is returned whole: cutting could split the region.
fn summary_in(text: &str) -> &str {
    let inner = text
        .split_once("<summary>")
        .and_then(|(_, rest)| rest.rsplit_once("</summary>"));
    match inner {
        Some((summary, _)) if !privacy::strip(text).private => summary,
        _ => text,
    }
}

/// Returns whether a tool starts a subagent. Its older name `Task` is still in use.
fn is_delegation(tool: &str) -> bool {
    matches!(tool, "Agent" | "Task")
}

/// Returns whether a tool runs commands.
fn is_shell(tool: &str) -> bool {
    matches!(tool, "Bash" | "PowerShell")
}

fn is_creation(response: &Value) -> bool {
    response.get("type").and_then(Value::as_str) == Some("create")
}

/// Returns the items of a list; none of any other value.
fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the text of a result: a string, or the text blocks of the model's format.
pub(crate) fn text_of(result: &Value) -> Option<String> {
    match result {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str());
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

/// Returns a batch's call if the client rejected it. All other calls have their own events.
fn rejected_call(call: &ToolCall) -> Option<ToolCall> {
    let text = text_of(&call.response)?;
    let error = text.trim().strip_prefix(REJECTION_TAGS.0)?;
    let error = error
        .strip_suffix(REJECTION_TAGS.1)
        .unwrap_or(error)
        .to_owned();
    Some(ToolCall {
        error: Some(error),
        response: Value::Null,
        ..call.clone()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::observe::passed_command;

    const MARKER: &str = "heron-4821";

    fn record_with(payload: &Value, is_unsure: bool) -> SessionEvent {
        let payload = Payload::parse(payload.to_string().as_bytes()).unwrap();
        let intake = Intake {
            private_tokens: &PrivateTokens::default(),
            key: Key::new([7; 16]),
            folder: Path::new("/w/shop"),
            surroundings: Surroundings::default(),
            at: 1_000,
            is_unsure,
            may_hold: false,
        };
        let safe = match &payload.event {
            HookEvent::UserPromptSubmit { prompt } => {
                Some(SafePrompt::new(prompt, Some(intake.private_tokens)))
            }
            _ => None,
        };
        intake.record(&payload, safe)
    }

    fn record(event: &str, fields: &Value) -> SessionEvent {
        let mut payload = json!({ "session_id": "s", "prompt_id": "p", "hook_event_name": event });
        for (name, value) in fields.as_object().unwrap() {
            payload[name] = value.clone();
        }
        record_with(&payload, false)
    }

    fn what(event: &str, fields: &Value) -> RecordedEvent {
        record(event, fields).what
    }

    fn tool(event: &str, fields: &Value) -> ToolEvent {
        match what(event, fields) {
            RecordedEvent::Used(mut events) if events.len() == 1 => events.remove(0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_have_their_action() {
        for (name, input, response, path, action) in [
            (
                "Read",
                json!({ "file_path": "/w/shop/a.rs" }),
                json!("x"),
                "a.rs",
                FileAction::Read,
            ),
            (
                "Edit",
                json!({ "file_path": "/w/shop/src/a b.rs" }),
                json!({}),
                "src/a b.rs",
                FileAction::Edited,
            ),
            (
                "Edit",
                json!({ "file_path": "/etc/hosts" }),
                json!({}),
                "/etc/hosts",
                FileAction::Edited,
            ),
            (
                "Write",
                json!({ "file_path": "/w/shop/n.rs" }),
                json!({ "type": "create" }),
                "n.rs",
                FileAction::Created,
            ),
            (
                "Write",
                json!({ "file_path": "/w/shop/n.rs" }),
                json!({ "type": "update" }),
                "n.rs",
                FileAction::Edited,
            ),
            (
                "NotebookEdit",
                json!({ "notebook_path": "/w/shop/n.ipynb" }),
                json!({}),
                "n.ipynb",
                FileAction::Edited,
            ),
            (
                "Edit",
                json!({ "file_path": "/w/shopping/a.rs" }),
                json!({}),
                "/w/shopping/a.rs",
                FileAction::Edited,
            ),
        ] {
            let event = tool(
                "PostToolUse",
                &json!({ "tool_name": name, "tool_input": input, "tool_response": response }),
            );
            let expected = FileUse {
                path: path.to_owned(),
                action,
            };
            assert_eq!(event.files, [expected], "{name} {path}");
        }
        for (name, input) in [
            ("Bash", json!({ "file_path": "/w/shop/a.rs" })),
            ("Edit", json!({ "file_path": 7 })),
            ("Edit", json!("text")),
            ("Edit", Value::Null),
            (
                "Edit",
                json!({ "file_path": format!("<private>/w/{MARKER}</private>") }),
            ),
        ] {
            let event = tool(
                "PostToolUse",
                &json!({ "tool_name": name, "tool_input": input }),
            );
            assert_eq!(event.files, [], "{name} {input}");
        }
    }

    #[test]
    fn outcomes_and_sizes() {
        let long = "line\n".repeat(10_000);
        let ok = tool(
            "PostToolUse",
            &json!({ "tool_name": "Bash", "tool_use_id": "t", "tool_response": { "stdout": long } }),
        );
        assert_eq!((ok.id.as_str(), ok.outcome), ("t", Outcome::Ok));
        assert!(ok.response.unwrap().tail.len() < 2_000);
        let failed = json!({ "tool_name": "Bash", "error": long });
        let failed = tool("PostToolUseFailure", &failed);
        assert_eq!(failed.outcome, Outcome::Failed);
        assert!(failed.error.unwrap().chars().count() < 4_100);
        let stopped = json!({ "tool_name": "Bash", "error": "x", "is_interrupt": true });
        assert_eq!(
            tool("PostToolUseFailure", &stopped).outcome,
            Outcome::Interrupted
        );
    }

    #[test]
    fn a_response_keeps_how_the_command_ended() {
        for (response, expected) in [
            (
                json!({ "stdout": "", "interrupted": false }),
                ToolOutput::default(),
            ),
            (
                json!({ "stdout": "", "interrupted": true, "exitCode": 0 }),
                ToolOutput {
                    exit_code: Some(0),
                    interrupted: true,
                    ..ToolOutput::default()
                },
            ),
            (
                json!({ "stdout": "", "code": 0, "returnCode": 2 }),
                ToolOutput {
                    exit_code: Some(2),
                    ..ToolOutput::default()
                },
            ),
            (
                json!({ "stdout": "", "backgroundTaskId": "b1" }),
                ToolOutput {
                    run_in_background: true,
                    ..ToolOutput::default()
                },
            ),
        ] {
            let call = json!({ "tool_name": "Bash", "tool_response": response });
            let event = tool("PostToolUse", &call);
            let kept = ToolOutput {
                bytes: 0,
                tail: String::new(),
                ..event.response.unwrap()
            };
            assert_eq!(kept, expected, "{response}");
        }
    }

    #[test]
    fn a_command_that_was_stopped_has_not_passed() {
        for response in [
            json!({ "stdout": "12 tests", "interrupted": true }),
            json!({ "stdout": "12 tests", "backgroundTaskId": "b1" }),
            json!({ "stdout": "12 tests", "exitCode": 1 }),
        ] {
            let call = json!({ "tool_name": "Bash", "tool_input": { "command": "cargo test" },
                "tool_response": response });
            let event = tool("PostToolUse", &call);
            assert_eq!(passed_command(&event), None, "{response}");
        }
    }

    #[test]
    fn a_call_without_an_id_gets_a_hash() {
        let event = |command: &str| {
            let call = json!({ "tool_name": "Bash", "tool_input": { "command": command } });
            tool("PostToolUse", &call).id
        };
        assert_eq!(event("make"), event("make"));
        assert_ne!(event("make"), event("make test"));
    }

    #[test]
    fn turn_ends_have_their_author() {
        let said = |event: &str, agent: &Value| {
            let mut fields = json!({ "last_assistant_message": "Done." });
            for (name, value) in agent.as_object().unwrap() {
                fields[name] = value.clone();
            }
            what(event, &fields)
        };
        let spoke = |speaker| RecordedEvent::Spoke {
            speaker,
            text: Some("Done.".to_owned()),
        };
        let agent = json!({ "agent_id": "a", "agent_type": "Explore" });
        assert_eq!(said("Stop", &json!({})), spoke(Speaker::Main));
        assert_eq!(said("Stop", &agent), spoke(Speaker::Subagent));
        assert_eq!(said("SubagentStop", &agent), spoke(Speaker::Subagent));
        let helper = json!({ "agent_id": "a", "agent_type": "" });
        assert_eq!(said("SubagentStop", &helper), RecordedEvent::Seen);
    }

    #[test]
    fn the_compaction_summary_has_no_reasoning() {
        let compacted = |summary: &str| what("PostCompact", &json!({ "compact_summary": summary }));
        let spoke = |text: &str| RecordedEvent::Spoke {
            speaker: Speaker::Compact,
            text: Some(text.to_owned()),
        };
        let whole = "<analysis>hm</analysis>\n<summary>\nLimits.\n</summary>";
        assert_eq!(compacted(whole), spoke("Limits."));
        assert_eq!(compacted("Limits."), spoke("Limits."));
        let private = "<analysis><private>x</analysis><summary>y</private></summary>";
        assert_eq!(compacted(private), RecordedEvent::Seen);
    }

    #[test]
    fn text_that_may_be_private_is_dropped() {
        let payload = json!({
            "session_id": "s", "hook_event_name": "PostToolUseFailure", "tool_name": "Edit",
            "tool_input": { "file_path": "/w/shop/a.rs", "text": MARKER },
            "tool_response": MARKER, "error": MARKER,
        });
        let record = record_with(&payload, true);
        assert!(!serde_json::to_string(&record).unwrap().contains(MARKER));
        let RecordedEvent::Used(events) = record.what else {
            panic!("{record:?}");
        };
        assert_eq!(
            (events[0].outcome, events[0].files.len()),
            (Outcome::Failed, 1)
        );
        let payload = json!({ "session_id": "s", "hook_event_name": "Stop", "last_assistant_message": MARKER });
        let record = record_with(&payload, true);
        assert!(!serde_json::to_string(&record).unwrap().contains(MARKER));
    }

    #[test]
    fn private_tokens_are_stored_as_hashes() {
        let fields = json!({ "prompt": format!("use <private>{MARKER}</private> now") });
        let record = record("UserPromptSubmit", &fields);
        assert!(record.private && !record.echoes.is_empty());
        let text = serde_json::to_string(&record).unwrap();
        assert!(!text.contains(MARKER));
        let echoes: PrivateTokens = record
            .echoes
            .iter()
            .map(|echo| (echo.key, echo.hash))
            .collect();
        assert_eq!(echoes.mask(&format!("with {MARKER}.")), "with [private].");
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
            Just(Value::from(format!("<private>{MARKER}</private>"))),
            Just(Value::from(format!("a <private>{MARKER}"))),
        ];
        leaf.prop_recursive(4, 30, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec(("[a-z_]{1,12}", inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_payload_becomes_a_sanitised_record(
            event in prop::sample::select(vec![
                "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch",
                "SubagentStop", "Stop", "PostCompact", "SessionEnd", "SessionStart",
            ]),
            values in prop::collection::vec(json_value(), 8),
        ) {
            let names = [
                "prompt", "tool_input", "tool_response", "error", "last_assistant_message",
                "compact_summary", "tool_calls", "agent_type",
            ];
            let mut fields = json!({ "tool_name": "Bash" });
            for (name, value) in names.into_iter().zip(values) {
                fields[name] = value;
            }
            let record = record(event, &fields);
            let text = serde_json::to_string(&record).unwrap();
            prop_assert!(!text.contains(MARKER), "{}", text);
            let read: SessionEvent = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(read, record);
        }
    }
}
