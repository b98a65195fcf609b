use super::*;
use crate::{
    hook::{HookEvent, Payload, StartSource, ToolCall},
    prompt::RawPrompt,
};

/// A payload that a host's program sent.
macro_rules! recorded {
    ($host:literal, $event:literal) => {
        include_str!(concat!(
            "../../../tests/fixtures/hosts/",
            $host,
            "/",
            $event,
            ".json"
        ))
    };
}

fn parse(text: &str) -> Payload {
    Payload::parse(text.as_bytes()).unwrap()
}

const QUESTION: &str =
    "The login tests hang on a fresh checkout, is it the stub server on port 9090?";
const ANSWER: &str =
    "The login tests waited for the stub server on port 9090. Fixed in the Makefile.";

fn answered() -> HookEvent {
    HookEvent::Stop(Some(ANSWER.to_owned()))
}

fn asked() -> HookEvent {
    HookEvent::UserPromptSubmit {
        prompt: RawPrompt::new(QUESTION),
    }
}

#[test]
fn recorded_payloads_of_codex_are_its_events() {
    let start = parse(recorded!("codex", "SessionStart"));
    assert_eq!(
        (start.host, start.event_name.as_str()),
        (Host::Codex, "SessionStart")
    );
    assert_eq!(
        start.event,
        HookEvent::SessionStart {
            source: StartSource::Startup,
            model: Some("gpt-5".to_owned()),
            idle_seconds: None,
        }
    );
    let prompt = parse(recorded!("codex", "UserPromptSubmit"));
    assert_eq!((prompt.host, prompt.event), (Host::Codex, asked()));
    let stop = parse(recorded!("codex", "Stop"));
    assert_eq!((stop.host, stop.event), (Host::Codex, answered()));
    // The turn joins a prompt with its tools and its answer.
    assert!(prompt.prompt_id.is_some());
    assert_eq!(stop.prompt_id, prompt.prompt_id);
    let HookEvent::PostToolUse(call) = parse(recorded!("codex", "PostToolUse")).event else {
        panic!("no tool");
    };
    assert_eq!(call.tool, "Bash");
    assert_eq!(call.input["command"], "echo hello from codex; false");
    assert_eq!(call.response, json!("hello from codex\n"));
}

#[test]
fn recorded_payloads_of_gemini_become_our_events() {
    let start = parse(recorded!("gemini", "SessionStart"));
    assert_eq!(start.host, Host::Gemini);
    assert!(matches!(
        start.event,
        HookEvent::SessionStart {
            source: StartSource::Startup,
            ..
        }
    ));
    let prompt = parse(recorded!("gemini", "BeforeAgent"));
    assert_eq!(
        (prompt.host, prompt.event_name.as_str()),
        (Host::Gemini, "BeforeAgent")
    );
    assert_eq!(prompt.event, asked());
    assert_eq!(parse(recorded!("gemini", "AfterAgent")).event, answered());
    assert_eq!(
        parse(recorded!("gemini", "PreCompress")).event,
        HookEvent::PreCompact
    );
    assert!(matches!(
        parse(recorded!("gemini", "SessionEnd")).event,
        HookEvent::SessionEnd { reason } if reason == "exit"
    ));
    let HookEvent::PreToolUse(call) = parse(recorded!("gemini", "BeforeTool")).event else {
        panic!("no tool");
    };
    assert_eq!(
        (call.tool.as_str(), &call.input["command"]),
        ("Bash", &json!("echo hello from gemini"))
    );
    let HookEvent::PostToolUse(call) = parse(recorded!("gemini", "AfterTool")).event else {
        panic!("no tool");
    };
    assert_eq!(call.response, json!("hello from gemini"));
}

#[test]
fn a_failed_command_of_gemini_is_a_failure() {
    let mut payload: Value = serde_json::from_str(recorded!("gemini", "AfterTool")).unwrap();
    payload["tool_response"]["llmContent"] = json!(
        "<untrusted_context>\nOutput: error: no stub\nExit Code: 2\nProcess Group PGID: 9\n</untrusted_context>"
    );
    payload["tool_response"]["returnDisplay"] = json!("error: no stub");
    let HookEvent::PostToolUseFailure(call) = parse(&payload.to_string()).event else {
        panic!("no failure");
    };
    assert_eq!(call.error.as_deref(), Some("Exit code 2\nerror: no stub"));
    payload["tool_response"] = json!({ "error": { "message": "denied", "type": "x" } });
    let HookEvent::PostToolUseFailure(call) = parse(&payload.to_string()).event else {
        panic!("no failure");
    };
    assert_eq!(call.error.as_deref(), Some("denied"));
}

#[test]
fn only_the_context_before_a_prompt_of_gemini_is_removed() {
    for (prompt, expected) in [
        ("<hook_context>&lt;a&gt;</hook_context>\n\nWhy?", "Why?"),
        (
            "Why <hook_context>x</hook_context>?",
            "Why <hook_context>x</hook_context>?",
        ),
        ("<hook_context>no end", "<hook_context>no end"),
        ("Why?", "Why?"),
    ] {
        assert_eq!(without_context(prompt), expected);
    }
    let other = json!({ "session_id": "s", "hook_event_name": "UserPromptSubmit",
        "prompt": "<hook_context>x</hook_context>y" });
    let kept = RawPrompt::new("<hook_context>x</hook_context>y");
    assert_eq!(
        parse(&other.to_string()).event,
        HookEvent::UserPromptSubmit { prompt: kept }
    );
}

/// The payloads are written after each host's reference.
#[test]
fn camel_case_and_snake_case_are_understood() {
    let call = |tool: &str, input: Value, response: Value| ToolCall {
        tool: tool.to_owned(),
        input,
        response,
        ..ToolCall::default()
    };
    for (payload, host, event) in [
        // Copilot CLI with `sessionStart` and with `SessionStart` in its configuration.
        (
            json!({ "hookEventName": "sessionStart", "sessionId": "s", "timestamp": 1_704_614_400_000_i64,
                "cwd": "/w", "source": "new", "initialPrompt": "hi" }),
            Host::Copilot,
            HookEvent::SessionStart {
                source: StartSource::Startup,
                model: None,
                idle_seconds: None,
            },
        ),
        (
            json!({ "hookEventName": "userPromptSubmitted", "sessionId": "s", "timestamp": 1, "prompt": QUESTION }),
            Host::Copilot,
            asked(),
        ),
        (
            json!({ "hookEventName": "postToolUse", "sessionId": "s", "timestamp": 1, "toolName": "bash",
                "toolArgs": "{\"command\":\"ls\"}",
                "toolResult": { "resultType": "success", "textResultForLlm": "a.rs" } }),
            Host::Copilot,
            HookEvent::PostToolUse(call("Bash", json!({ "command": "ls" }), json!("a.rs"))),
        ),
        (
            json!({ "hook_event_name": "PostToolUse", "session_id": "s", "timestamp": "2026-11-23T06:31:31Z",
                "tool_name": "view", "tool_input": { "path": "/w/a.rs" },
                "tool_result": { "result_type": "success", "text_result_for_llm": "text" } }),
            Host::Copilot,
            HookEvent::PostToolUse(call(
                "Read",
                json!({ "file_path": "/w/a.rs" }),
                json!("text"),
            )),
        ),
        // VS Code.
        (
            json!({ "hookEventName": "PreToolUse", "sessionId": "s", "timestamp": "2026-02-09T10:30:00.000Z",
                "tool_name": "editFiles", "tool_input": { "files": ["src/main.ts"] } }),
            Host::Copilot,
            HookEvent::PreToolUse(call(
                "Edit",
                json!({ "file_paths": ["src/main.ts"] }),
                Value::Null,
            )),
        ),
        // Cursor.
        (
            json!({ "hook_event_name": "beforeSubmitPrompt", "conversation_id": "s", "generation_id": "g",
                "workspace_roots": ["/w"], "cursor_version": "2.4", "prompt": QUESTION }),
            Host::Cursor,
            asked(),
        ),
        (
            json!({ "hook_event_name": "afterAgentResponse", "conversation_id": "s", "generation_id": "g",
                "cursor_version": "2.4", "text": ANSWER }),
            Host::Cursor,
            answered(),
        ),
        (
            json!({ "hook_event_name": "postToolUseFailure", "conversation_id": "s", "session_id": "s",
                "cursor_version": "2.4", "tool_name": "Shell", "tool_input": { "command": "make" },
                "error_message": "no rule", "is_interrupt": false, "duration": 7 }),
            Host::Cursor,
            HookEvent::PostToolUseFailure(ToolCall {
                error: Some("no rule".to_owned()),
                duration_ms: Some(7),
                ..call("Bash", json!({ "command": "make" }), Value::Null)
            }),
        ),
        // The shims name their host.
        (
            json!({ "host": "opencode", "hook_event_name": "SessionEnd", "session_id": "s", "reason": "deleted" }),
            Host::OpenCode,
            HookEvent::SessionEnd {
                reason: "deleted".to_owned(),
            },
        ),
    ] {
        let parsed = parse(&payload.to_string());
        assert_eq!(
            (parsed.host, parsed.session_id.as_str()),
            (host, "s"),
            "{payload}"
        );
        assert_eq!(parsed.event, event, "{payload}");
    }
    let cursor = json!({ "hook_event_name": "sessionStart", "conversation_id": "s", "workspace_roots": ["/w"] });
    assert_eq!(parse(&cursor.to_string()).cwd.as_deref(), Some("/w"));
}

#[test]
fn a_payload_of_claude_code_stays_as_it_is() {
    let transcript = "/home/dev/.claude/projects/-w/s.jsonl";
    let payload = json!({ "session_id": "s", "hook_event_name": "PostToolUse", "transcript_path": transcript,
        "timestamp": "2026", "turn_id": "t", "tool_name": "replace", "tool_input": { "path": "a" } });
    for environment in [None, Some(Host::Gemini)] {
        let parsed = Payload::parse_from(payload.to_string().as_bytes(), environment).unwrap();
        assert_eq!((parsed.host, parsed.prompt_id), (Host::ClaudeCode, None));
        let HookEvent::PostToolUse(call) = parsed.event else {
            panic!("no tool");
        };
        assert_eq!(
            (call.tool.as_str(), call.input),
            ("replace", json!({ "path": "a" }))
        );
    }
}

#[test]
fn the_environment_tells_the_host_if_the_payload_does_not() {
    let bare =
        br#"{"session_id": "s", "hook_event_name": "SessionStart", "transcript_path": null}"#;
    let host = |environment| Payload::parse_from(bare, environment).unwrap().host;
    assert_eq!(host(None), Host::ClaudeCode);
    assert_eq!(host(Some(Host::Codex)), Host::Codex);
    // Codex was started in a terminal of Gemini CLI.
    let codex = recorded!("codex", "Stop").as_bytes();
    let parsed = Payload::parse_from(codex, Some(Host::Gemini)).unwrap();
    assert_eq!(parsed.host, Host::Codex);
}

#[test]
fn a_patch_of_codex_names_its_files() {
    let text = "*** Begin Patch\n*** Update File: src/cart.rs\n@@\n-old\n+new total\n*** Add File: notes.txt\n+x\n*** End Patch";
    for input in [
        json!({ "command": text }),
        json!({ "input": text }),
        json!(text),
    ] {
        let call = Call::new("apply_patch", input);
        assert_eq!(call.tool, "Edit");
        assert_eq!(
            call.input,
            json!({ "file_path": "src/cart.rs", "file_paths": ["src/cart.rs", "notes.txt"],
                "new_string": "new total\nx" })
        );
    }
}

fn answer(host: Host, event: &str, output: &HookOutput) -> Value {
    serde_json::from_str(&host.answer(output, event)).unwrap()
}

#[test]
fn each_host_gets_an_answer_in_its_form() {
    let context = HookOutput {
        context: Some("c".to_owned()),
        system_message: Some("m".to_owned()),
        ..HookOutput::default()
    };
    let own = |event: &str| {
        json!({ "systemMessage": "m",
        "hookSpecificOutput": { "hookEventName": event, "additionalContext": "c" } })
    };
    assert_eq!(
        answer(Host::Codex, "SessionStart", &context),
        own("SessionStart")
    );
    assert_eq!(
        answer(Host::Gemini, "BeforeAgent", &context),
        own("BeforeAgent")
    );
    let mut copilot = own("SessionStart");
    copilot["additionalContext"] = json!("c");
    assert_eq!(answer(Host::Copilot, "SessionStart", &context), copilot);
    assert_eq!(
        answer(Host::Cursor, "sessionStart", &context),
        json!({ "user_message": "m", "additional_context": "c" })
    );

    let denial = HookOutput {
        denial: Some("why".to_owned()),
        ..HookOutput::default()
    };
    let own = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "why" } });
    assert_eq!(answer(Host::Codex, "PreToolUse", &denial), own);
    assert_eq!(
        answer(Host::Gemini, "BeforeTool", &denial),
        json!({ "decision": "deny", "reason": "why" })
    );
    assert_eq!(
        answer(Host::Cursor, "preToolUse", &denial),
        json!({ "permission": "deny", "agent_message": "why" })
    );
    let mut copilot = own;
    copilot["permissionDecision"] = json!("deny");
    copilot["permissionDecisionReason"] = json!("why");
    assert_eq!(answer(Host::Copilot, "PreToolUse", &denial), copilot);
}

/// Codex marks a hook as failed if its answer has an unknown field.
#[test]
fn nothing_to_say_is_an_empty_object_for_every_host() {
    for host in [
        Host::ClaudeCode,
        Host::Codex,
        Host::Gemini,
        Host::Copilot,
        Host::Cursor,
        Host::OpenCode,
    ] {
        assert_eq!(host.answer(&HookOutput::default(), "PostToolUse"), "{}\n");
    }
}
