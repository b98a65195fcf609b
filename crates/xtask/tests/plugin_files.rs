//! What the client reads of the plugin: hooks, commands and the skill. The rules here are ones that
//! its own validator does not know; breaking one shows up only in a session.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const LAUNCHER: &str = "${CLAUDE_PLUGIN_ROOT}/bin/anamnesis";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands, by file name without its ending.
fn commands() -> Vec<(String, String)> {
    let paths = fs::read_dir(root().join("commands"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let commands: Vec<_> = paths
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    assert!(!commands.is_empty());
    commands
}

/// The value of a key in the front matter, which holds one line a key.
fn front<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (front, _) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
    front
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

/// Each hook with its event.
fn hooks() -> Vec<(String, Value)> {
    let text = fs::read_to_string(root().join("hooks/hooks.json")).unwrap();
    let hooks: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    for (event, groups) in hooks["hooks"].as_object().unwrap() {
        for group in groups.as_array().unwrap() {
            for hook in group["hooks"].as_array().unwrap() {
                found.push((event.clone(), hook.clone()));
            }
        }
    }
    found
}

/// What is not registered is never seen: a failure without its event, a change that only the whole
/// batch tells of, a subagent's end.
#[test]
fn every_event_that_the_program_acts_on_is_registered_once() {
    let mut events: Vec<String> = hooks().into_iter().map(|(event, _)| event).collect();
    events.sort();
    let expected = [
        "PostCompact",
        "PostToolBatch",
        "PostToolUse",
        "PostToolUseFailure",
        "PreCompact",
        "PreToolUse",
        "SessionEnd",
        "SessionStart",
        "Stop",
        "SubagentStart",
        "SubagentStop",
        "UserPromptSubmit",
    ];
    assert_eq!(events, expected);
}

/// A shell would have to quote the path; and an option that is not set would stop the hook.
#[test]
fn every_hook_starts_the_launcher_without_a_shell() {
    for (event, hook) in hooks() {
        assert_eq!(hook["type"], "command", "{event}");
        assert_eq!(hook["command"], LAUNCHER, "{event}");
        assert_eq!(hook["args"], serde_json::json!(["hook"]), "{event}");
    }
}

/// A plugin's SessionEnd gets 1.5 s whatever its timeout says, unless it is asynchronous.
#[test]
fn only_the_end_of_a_session_is_not_waited_for() {
    for (event, hook) in hooks() {
        let waited_for = event != "SessionEnd";
        assert_eq!(hook["async"] == true, !waited_for, "{event}");
        assert_eq!(
            hook["timeout"].as_u64().is_some_and(|it| it <= 15),
            waited_for,
            "{event}"
        );
    }
}

/// Without `name` only the long form, `/anamnesis:memory-status`, exists.
#[test]
fn a_command_is_called_as_its_file_is() {
    for (name, text) in commands() {
        assert_eq!(front(&text, "name"), Some(name.as_str()));
        assert!(
            name.starts_with("memory-"),
            "{name}: too likely to be somebody else's"
        );
        assert!(
            front(&text, "description").is_some_and(|it| it.len() <= 80),
            "{name}"
        );
    }
}

/// The model's way in is the skill: a command's description in every session would be paid for
/// nothing, and forgetting is the person's.
#[test]
fn commands_are_typed_and_the_skill_is_not() {
    for (name, text) in commands() {
        assert_eq!(
            front(&text, "disable-model-invocation"),
            Some("true"),
            "{name}"
        );
    }
    let skill = fs::read_to_string(root().join("skills/memory-notes/SKILL.md")).unwrap();
    assert_eq!(front(&skill, "name"), Some("memory-notes"));
    assert_eq!(front(&skill, "user-invocable"), Some("false"));
    assert!(front(&skill, "description").is_some_and(|it| it.len() <= 240));
    assert!(skill.lines().count() <= 40);
}

/// What a person typed would be pasted into the shell as it stands.
#[test]
fn what_was_typed_stands_on_no_line_that_runs() {
    for (name, text) in commands() {
        for line in text.lines().filter(|line| line.contains("!`")) {
            assert!(
                line.starts_with(&format!("!`\"{LAUNCHER}\" ")),
                "{name}: {line}"
            );
            assert!(
                !line.contains("$ARGUMENTS") && !line.contains("$0"),
                "{name}: {line}"
            );
        }
    }
}

/// The plugin's folder comes last on PATH, where another program of this name may come first; and
/// a path with a blank in it has to be quoted, in the permission as in the call.
#[test]
fn the_launcher_is_always_named_by_its_quoted_path() {
    let skill = fs::read_to_string(root().join("skills/memory-notes/SKILL.md")).unwrap();
    for (name, text) in commands()
        .into_iter()
        .chain([("the skill".to_owned(), skill)])
    {
        let named = text.matches(LAUNCHER).count();
        let quoted = text.matches(&format!("\"{LAUNCHER}\"")).count();
        assert_eq!(named, quoted, "{name}");
        for allowed in front(&text, "allowed-tools")
            .unwrap_or_default()
            .split(", ")
        {
            let ours = allowed.is_empty() || allowed.starts_with(&format!("Bash(\"{LAUNCHER}\""));
            assert!(ours, "{name}: {allowed}");
        }
    }
}
