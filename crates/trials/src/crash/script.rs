//! A session of a hundred events, as the client sends it to hooks.
//!
//! Every row of an event contains the event's mark, so that missing and duplicate rows are found.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::sandbox::Sandbox;

/// Number of events of a session.
pub(super) const EVENTS: usize = 100;

/// A text that occurs only in private regions.
pub(super) const PRIVATE: &str = "T7-blue-heron-93";

const TURNS: usize = 11;

/// The turn with a subagent, the turn before a compaction, and the turn with private text.
const DELEGATED: usize = 3;
const COMPACTED: usize = 6;
const CONFIDENTIAL: usize = 8;

/// One event.
pub(super) struct Step {
    /// The event's name.
    pub(super) name: &'static str,
    /// The mark in the event's rows. Some events leave no row.
    pub(super) mark: String,
    /// The bytes on the hook's stdin.
    pub(super) payload: Vec<u8>,
}

/// Returns the events of a session, in order.
pub(super) fn session(sandbox: &Sandbox, id: &str) -> Vec<Step> {
    let mut script = Script {
        sandbox,
        id,
        turn: 0,
        agent: false,
        steps: Vec::new(),
    };
    script.add("SessionStart", json!({ "source": "startup" }));
    for turn in 0..TURNS {
        script.turn = turn;
        if turn == COMPACTED {
            script.compaction();
        }
        script.work();
    }
    script.add("SessionEnd", json!({ "reason": "other" }));
    script.steps
}

/// Returns the first events of a `claude -p` session, up to its second tool, and its end.
pub(super) fn short_session(sandbox: &Sandbox, id: &str) -> (Vec<Step>, Step) {
    let mut steps = session(sandbox, id);
    let end = steps.remove(EVENTS - 1);
    // The start, the prompt, a read file and a changed file.
    steps.truncate(4);
    (steps, end)
}

/// Returns the marks of a session's events that leave a row.
pub(super) fn leaving(sandbox: &Sandbox, id: &str) -> BTreeSet<String> {
    let leaves_none = |step: &Step| {
        matches!(step.name, "SessionStart" | "SessionEnd" | "PreCompact" | "SubagentStart")
            // The client's own helper is not recorded.
            || !String::from_utf8_lossy(&step.payload).contains("mark-")
    };
    let steps = session(sandbox, id);
    steps
        .into_iter()
        .filter(|step| !leaves_none(step))
        .map(|step| step.mark)
        .collect()
}

struct Script<'a> {
    sandbox: &'a Sandbox,
    id: &'a str,
    turn: usize,
    /// Whether the subagent is working.
    agent: bool,
    steps: Vec<Step>,
}

impl Script<'_> {
    /// Returns the mark of the next event.
    fn mark(&self) -> String {
        format!("mark-{:03}", self.steps.len())
    }

    fn add(&mut self, name: &'static str, fields: Value) {
        let mut payload = json!({
            "hook_event_name": name,
            "session_id": self.id,
            "transcript_path": self.sandbox.transcript_path(self.id),
            "cwd": self.sandbox.project(),
            "prompt_id": format!("{}-prompt-{}", self.id, self.turn),
        });
        if self.agent {
            payload["agent_id"] = "agent-1".into();
            payload["agent_type"] = "Explore".into();
        }
        if let (Value::Object(payload), Value::Object(fields)) = (&mut payload, fields) {
            payload.extend(fields);
        }
        self.steps.push(Step {
            name,
            mark: self.mark(),
            payload: payload.to_string().into_bytes(),
        });
    }

    /// Returns the fields of a tool call.
    fn call(&self, tool: &str, input: &Value) -> Value {
        json!({
            "tool_name": tool,
            "tool_use_id": format!("toolu_{}_{}", self.id, self.steps.len()),
            "tool_input": input,
            "duration_ms": 12,
        })
    }

    fn uses(&mut self, tool: &str, input: &Value, response: Value) {
        let mut call = self.call(tool, input);
        call["tool_response"] = response;
        self.add("PostToolUse", call);
    }

    fn fails(&mut self, command: &str, error: &str) {
        let mut call = self.call("Bash", &json!({ "command": command }));
        call["error"] = error.into();
        self.add("PostToolUseFailure", call);
    }

    fn edits(&mut self) {
        let path = self.file();
        let input = json!({ "file_path": path, "old_string": "a", "new_string": "b" });
        self.uses("Edit", &input, json!({ "filePath": path }));
    }

    fn file(&self) -> Value {
        let file = self
            .sandbox
            .project()
            .join(format!("src/{}.rs", self.mark()));
        json!(file)
    }

    /// Adds one turn: eight events, and six more with a subagent.
    fn work(&mut self) {
        let private = if self.turn == CONFIDENTIAL {
            format!("<private>{PRIVATE}</private>")
        } else {
            String::new()
        };
        let mark = self.mark();
        let prompt = format!("make the parser name the lock, {mark} {private}");
        self.add("UserPromptSubmit", json!({ "prompt": prompt }));
        let path = self.file();
        let text = "line of a file\n".repeat(200);
        self.uses("Read", &json!({ "file_path": path }), json!(text));
        self.edits();
        let command = format!("cargo test {} {private}", self.mark());
        self.fails(&command, "Exit code 101\nerror[E0308]: mismatched types");
        let command = format!("cargo test {}", self.mark());
        let output = json!({ "stdout": format!("3 passed {private}"), "stderr": "" });
        self.uses("Bash", &json!({ "command": command }), output);
        let mut refused = self.call(
            "Edit",
            &json!({ "file_path": self.file(), "old_string": "x" }),
        );
        refused["tool_response"] =
            "<tool_use_error>String to replace not found in file.</tool_use_error>".into();
        self.add("PostToolBatch", json!({ "tool_calls": [refused] }));
        self.edits();
        if self.turn == DELEGATED {
            self.delegation();
        }
        let last = format!("The parser names it now, {}. {private}", self.mark());
        self.add("Stop", json!({ "last_assistant_message": last }));
    }

    fn delegation(&mut self) {
        let task =
            json!({ "prompt": format!("look into {}", self.mark()), "subagent_type": "Explore" });
        let call = self.call("Agent", &task);
        self.add("PreToolUse", call);
        self.agent = true;
        self.add("SubagentStart", json!({}));
        self.edits();
        let command = format!("cargo check {}", self.mark());
        self.fails(&command, "Exit code 1");
        let last = format!("It is locked, {}.", self.mark());
        self.add("SubagentStop", json!({ "last_assistant_message": last }));
        self.agent = false;
        let task =
            json!({ "prompt": format!("look into {}", self.mark()), "subagent_type": "Explore" });
        self.uses("Agent", &task, json!({ "content": "It is locked." }));
    }

    fn compaction(&mut self) {
        self.add("PreCompact", json!({ "trigger": "auto" }));
        self.add(
            "SubagentStop",
            json!({ "agent_id": "helper", "agent_type": "", "last_assistant_message": "A summary." }),
        );
        self.add("SessionStart", json!({ "source": "compact" }));
        let summary = format!("The parser was changed, {}.", self.mark());
        self.add("PostCompact", json!({ "compact_summary": summary }));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_session_has_a_hundred_events_of_twelve_kinds() {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::new(folder.path(), Path::new("anamnesis")).unwrap();
        let steps = session(&sandbox, "s");
        assert_eq!(steps.len(), EVENTS);
        let names: BTreeSet<&str> = steps.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), 12, "{names:?}");
        for step in &steps {
            let payload: Value = serde_json::from_slice(&step.payload).unwrap();
            assert_eq!(payload["hook_event_name"], step.name);
        }
        let (begun, end) = short_session(&sandbox, "s");
        let names: Vec<&str> = begun.iter().map(|step| step.name).collect();
        assert_eq!(
            names,
            [
                "SessionStart",
                "UserPromptSubmit",
                "PostToolUse",
                "PostToolUse"
            ]
        );
        assert_eq!(end.name, "SessionEnd");
    }
}
