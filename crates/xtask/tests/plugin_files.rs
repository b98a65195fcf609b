//! What the client reads of the plugin: hooks, the server, commands and skills. The rules here are
//! ones that its own validator does not know; breaking one shows up only in a session.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const LAUNCHER: &str = "${CLAUDE_PLUGIN_ROOT}/bin/anamnesis";

/// What the client puts before the name of a tool: the plugin's name and the server's key are in it.
const TOOLS: &str = "mcp__plugin_anamnesis_memory__";

/// The tools that change nothing.
const LOOKING: [&str; 7] = [
    "memory_search",
    "memory_get",
    "memory_list",
    "memory_timeline",
    "memory_pathway",
    "memory_review",
    "memory_status",
];

/// What the names and descriptions of all commands and skills may have together, in characters. For
/// 1,052 of them the client itself counts about 330 tokens; `validate` of `cargo xtask e2e` asks it.
const MAX_DESCRIPTIONS: usize = 1_300;

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

/// The skills, by the name of their folder.
fn skills() -> Vec<(String, String)> {
    let folders = fs::read_dir(root().join("skills"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let skills: Vec<_> = folders
        .map(|folder| {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(folder.join("SKILL.md")).unwrap())
        })
        .collect();
    assert!(!skills.is_empty());
    skills
}

fn commands_and_skills() -> Vec<(String, String)> {
    commands().into_iter().chain(skills()).collect()
}

/// The tools of the server, as they are pinned.
fn tools() -> Vec<String> {
    let snapshots = root().join("crates/mcp/src/snapshots");
    let pinned = "anamnesis_mcp__server__tests__the_words_of_the_server_are_few_and_pinned.snap";
    let text = fs::read_to_string(snapshots.join(pinned)).unwrap();
    let tools: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    \"name\": \"")?.strip_suffix("\","))
        .map(str::to_owned)
        .collect();
    assert!(tools.len() >= 7, "{tools:?}");
    tools
}

/// What a command or a skill may use unasked.
fn allowed(text: &str) -> Vec<&str> {
    let tools = front(text, "allowed-tools");
    tools.map_or_else(Vec::new, |tools| tools.split(", ").collect())
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

/// Nothing about the server is asked at the install, and the client gives it the project's folder.
#[test]
fn the_server_is_started_by_the_launcher() {
    let text = fs::read_to_string(root().join(".mcp.json")).unwrap();
    let servers: Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({
        "mcpServers": { "memory": { "command": LAUNCHER, "args": ["serve"] } }
    });
    assert_eq!(servers, expected);
    let plugin = fs::read_to_string(root().join(".claude-plugin/plugin.json")).unwrap();
    let plugin: Value = serde_json::from_str(&plugin).unwrap();
    let prefix = format!("mcp__plugin_{}_memory__", plugin["name"].as_str().unwrap());
    assert_eq!(prefix, TOOLS);
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

/// The model's way in are the skills: a command's description in every session would be paid for
/// nothing, and forgetting is the person's.
#[test]
fn commands_are_typed_and_skills_are_not() {
    for (name, text) in commands() {
        let typed_only = front(&text, "disable-model-invocation");
        assert_eq!(typed_only, Some("true"), "{name}");
    }
    for (name, text) in skills() {
        assert_eq!(front(&text, "name"), Some(name.as_str()));
        assert_eq!(front(&text, "user-invocable"), Some("false"), "{name}");
        assert!(text.lines().count() <= 40, "{name}");
    }
}

/// The client tells the model the skills' descriptions in every session, and shows the commands' to
/// the person.
#[test]
fn all_descriptions_together_are_short() {
    let lengths = commands_and_skills().into_iter().map(|(name, text)| {
        let description = front(&text, "description").unwrap_or_default();
        assert!(!description.is_empty(), "{name}");
        name.chars().count() + description.chars().count()
    });
    let length: usize = lengths.sum();
    assert!(length <= MAX_DESCRIPTIONS, "{length} characters");
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

/// No shell sees what a person typed: a tool takes it, or the hook did before the model was asked.
#[test]
fn no_text_goes_into_a_shell() {
    for (name, text) in commands_and_skills() {
        for way in ["<<", "--stdin", "--file"] {
            assert!(!text.contains(way), "{name}: {way}");
        }
    }
}

/// The plugin's folder comes last on PATH, where another program of this name may come first; and
/// a path with a blank in it has to be quoted, in the permission as in the call.
#[test]
fn the_launcher_is_always_named_by_its_quoted_path() {
    for (name, text) in commands_and_skills() {
        let named = text.matches(LAUNCHER).count();
        let quoted = text.matches(&format!("\"{LAUNCHER}\"")).count();
        assert_eq!(named, quoted, "{name}");
    }
}

/// What is allowed runs unasked: a verb of the launcher, or a tool that is there and only looks. A
/// tool that changes something asks the person, unless they said otherwise.
#[test]
fn what_is_allowed_is_ours_and_no_wider_than_what_is_done() {
    let tools = tools();
    let plain = |byte: u8| byte.is_ascii_lowercase() || b" -".contains(&byte);
    for (name, text) in commands_and_skills() {
        for entry in allowed(&text) {
            if let Some(tool) = entry.strip_prefix(TOOLS) {
                assert!(tools.iter().any(|known| known == tool), "{name}: {tool}");
                // A reflection is proposed, and nothing is in use before the person says so.
                let is_harmless = LOOKING.contains(&tool) || tool == "memory_reflect";
                assert!(is_harmless, "{name}: {tool} changes something");
            } else {
                let verb = entry
                    .strip_prefix(&format!("Bash(\"{LAUNCHER}\" "))
                    .and_then(|rest| rest.strip_suffix(":*)"));
                let is_verb = verb.is_some_and(|verb| !verb.is_empty() && verb.bytes().all(plain));
                assert!(is_verb, "{name}: {entry}");
            }
        }
    }
}

/// A name that is no tool's would make the model try it, and be refused.
#[test]
fn every_tool_that_is_named_is_there() {
    let tools = tools();
    for (name, text) in commands_and_skills() {
        let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
        for word in words.filter_map(|word| {
            let word = word.strip_prefix(TOOLS).unwrap_or(word);
            word.starts_with("memory_").then_some(word)
        }) {
            assert!(tools.iter().any(|known| known == word), "{name}: {word}");
        }
    }
}
