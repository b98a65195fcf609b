//! Tests of the plugin's files that the client reads: hooks, the server, commands and skills. The
//! client's own validator does not check these rules, so a violation would show only in a session.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const LAUNCHER: &str = "${CLAUDE_PLUGIN_ROOT}/bin/anamnesis";

/// The client's prefix for the server's tools, from the plugin's name and the server's key.
const TOOLS: &str = "mcp__plugin_anamnesis_memory__";

/// The read-only tools.
const LOOKING: [&str; 7] = [
    "memory_search",
    "memory_get",
    "memory_list",
    "memory_timeline",
    "memory_pathway",
    "memory_review",
    "memory_status",
];

/// The maximum total length of names and descriptions of all commands and skills, in characters.
/// The client counts about 330 tokens for 1,052 characters (`validate` of `cargo xtask e2e`).
const MAX_DESCRIPTIONS: usize = 1_300;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the commands by file name without extension.
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

/// Returns the skills by folder name.
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

/// Returns the server's tools from the snapshot.
fn tools() -> Vec<String> {
    let snapshots = root().join("crates/mcp/src/snapshots");
    let pinned = "anamnesis_mcp__server__tests__server_text_is_short_and_matches_the_snapshot.snap";
    let text = fs::read_to_string(snapshots.join(pinned)).unwrap();
    let tools: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    \"name\": \"")?.strip_suffix("\","))
        .map(str::to_owned)
        .collect();
    assert!(tools.len() >= 7, "{tools:?}");
    tools
}

/// Returns the tools that a command or a skill may use without permission.
fn allowed(text: &str) -> Vec<&str> {
    let tools = front(text, "allowed-tools");
    tools.map_or_else(Vec::new, |tools| tools.split(", ").collect())
}

/// Returns the value of a one-line key in the front matter.
fn front<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (front, _) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
    front
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

/// Returns each hook with its event.
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

/// Unregistered events are lost: tool failures, changes that only a batch event reports, the end of
/// subagents.
#[test]
fn every_handled_event_is_registered_once() {
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
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "UserPromptSubmit",
    ];
    assert_eq!(events, expected);
}

/// A shell would need a quoted path, and an unset option would stop the hook.
#[test]
fn every_hook_starts_the_launcher_without_a_shell() {
    for (event, hook) in hooks() {
        assert_eq!(hook["type"], "command", "{event}");
        assert_eq!(hook["command"], LAUNCHER, "{event}");
        assert_eq!(hook["args"], serde_json::json!(["hook"]), "{event}");
    }
}

/// The client limits a plugin's SessionEnd to 1.5 s unless it is asynchronous.
#[test]
fn only_session_end_is_asynchronous() {
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

/// The server needs no option at installation, and the client passes the project's folder.
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

/// Without `name`, only the long form `/anamnesis:memory-status` exists.
#[test]
fn commands_have_the_names_of_their_files() {
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

/// Models use skills. Descriptions of commands would cost tokens in every session, and only a person
/// may forget notes.
#[test]
fn commands_are_for_people_and_skills_for_models() {
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

/// The client sends the descriptions of skills to the model in every session, and shows those of
/// commands to the person.
#[test]
fn descriptions_are_short_in_total() {
    let lengths = commands_and_skills().into_iter().map(|(name, text)| {
        let description = front(&text, "description").unwrap_or_default();
        assert!(!description.is_empty(), "{name}");
        name.chars().count() + description.chars().count()
    });
    let length: usize = lengths.sum();
    assert!(length <= MAX_DESCRIPTIONS, "{length} characters");
}

/// The client pastes typed text into the shell unquoted.
#[test]
fn typed_arguments_are_not_on_executed_lines() {
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

/// A tool or a hook receives typed text, never a shell.
#[test]
fn typed_text_does_not_reach_a_shell() {
    for (name, text) in commands_and_skills() {
        for way in ["<<", "--stdin", "--file"] {
            assert!(!text.contains(way), "{name}: {way}");
        }
    }
}

/// The plugin's folder is last on PATH, so another program of this name may come first. A path with
/// a space must be quoted in the permission and in the call.
#[test]
fn the_launcher_is_called_by_its_quoted_path() {
    for (name, text) in commands_and_skills() {
        let named = text.matches(LAUNCHER).count();
        let quoted = text.matches(&format!("\"{LAUNCHER}\"")).count();
        assert_eq!(named, quoted, "{name}");
    }
}

/// Allowed calls run without permission: a verb of the launcher, or an existing read-only tool. A
/// tool that changes something asks the person by default.
#[test]
fn allowed_tools_are_ours_and_minimal() {
    let tools = tools();
    let plain = |byte: u8| byte.is_ascii_lowercase() || b" -".contains(&byte);
    for (name, text) in commands_and_skills() {
        for entry in allowed(&text) {
            if let Some(tool) = entry.strip_prefix(TOOLS) {
                assert!(tools.iter().any(|known| known == tool), "{name}: {tool}");
                // A reflection is a proposal, which is not used before the person approves it.
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

/// The directory of plugins shows a PNG of this size; its first chunk names both.
#[test]
fn the_icon_is_a_png_of_512_by_512_pixels() {
    let manifest = fs::read_to_string(root().join(".claude-plugin/plugin.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let icon = fs::read(root().join(manifest["icon"].as_str().unwrap())).unwrap();
    assert!(icon.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"));
    assert_eq!(
        icon[16..24],
        [512_u32.to_be_bytes(), 512_u32.to_be_bytes()].concat()
    );
    assert!(icon.ends_with(b"IEND\xae\x42\x60\x82"), "the file is cut");
}

/// The model would call an unknown tool and be refused.
#[test]
fn every_named_tool_exists() {
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

#[test]
fn the_readme_names_tools_skills_and_versions_that_exist() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let tools = tools();
    let named: Vec<&str> = readme.split(&format!("\"{TOOLS}")).skip(1).collect();
    assert_eq!(named.len(), 3);
    for tool in named.iter().filter_map(|text| text.split('"').next()) {
        assert!(tools.iter().any(|known| known == tool), "{tool}");
    }
    for skill in readme.split("\"Skill(anamnesis:").skip(1) {
        let name = skill.split(')').next().unwrap();
        assert!(skills().iter().any(|(known, _)| known == name), "{name}");
    }
    let plugin = fs::read_to_string(root().join(".claude-plugin/plugin.json")).unwrap();
    let plugin: Value = serde_json::from_str(&plugin).unwrap();
    let client = plugin["engines"]["claude-code"].as_str().unwrap();
    let client = client.trim_start_matches(">=");
    let first_day = fs::read_to_string(root().join("docs/first-day.md")).unwrap();
    for page in [&readme, &first_day] {
        let named = format!("Claude Code {client} or newer");
        assert!(page.contains(&named), "{named}");
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rust) = manifest.split_once("\nrust-version = \"").unwrap();
    let rust = rust.split('"').next().unwrap();
    assert!(readme.contains(&format!("Rust {rust} or newer")), "{rust}");
}
