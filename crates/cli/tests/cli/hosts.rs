//! Sessions of other hosts: the payloads of the real programs become notes, and the next session of any
//! host is told about them.

use std::fs;

use serde_json::{Value, json};

use crate::{NO_OP, home};

macro_rules! recorded {
    ($host:literal, $event:literal) => {
        include_str!(concat!(
            "../../../session/tests/fixtures/hosts/",
            $host,
            "/",
            $event,
            ".json"
        ))
    };
}

const CODEX: [&str; 5] = [
    recorded!("codex", "SessionStart"),
    recorded!("codex", "UserPromptSubmit"),
    recorded!("codex", "PreToolUse"),
    recorded!("codex", "PostToolUse"),
    recorded!("codex", "Stop"),
];

const GEMINI: [&str; 6] = [
    recorded!("gemini", "SessionStart"),
    recorded!("gemini", "BeforeAgent"),
    recorded!("gemini", "BeforeTool"),
    recorded!("gemini", "AfterTool"),
    recorded!("gemini", "AfterAgent"),
    recorded!("gemini", "SessionEnd"),
];

/// Plays a host's session and returns its note.
fn noted(host: &str, events: &[&str]) -> String {
    let home = home();
    let mut session = String::new();
    for event in events {
        let mut payload: Value = serde_json::from_str(event).unwrap();
        payload["cwd"] = json!(home.project());
        payload["session_id"]
            .as_str()
            .unwrap()
            .clone_into(&mut session);
        let output = home.hook(&payload);
        let printed = output.stdout;
        assert!(
            [NO_OP, ""].contains(&printed.as_str()),
            "{event}: {printed}"
        );
    }
    let end = json!({ "session_id": session, "hook_event_name": "SessionEnd", "reason": "other",
        "host": host, "cwd": home.project() });
    home.hook(&end).well();
    home.settle();
    let notes = home.notes();
    assert_eq!(notes.len(), 1, "{notes:?} {:?}", home.log());
    home.read(&notes[0])
}

#[test]
fn a_session_of_codex_is_noted_with_its_host() {
    let note = noted("codex", &CODEX);
    assert!(note.contains("\nprov_host: codex\n"), "{note}");
    assert!(
        note.contains("waited for the stub server on port 9090"),
        "{note}"
    );
}

#[test]
fn a_session_of_gemini_is_noted_without_its_own_context() {
    let note = noted("gemini", &GEMINI);
    assert!(note.contains("\nprov_host: gemini\n"), "{note}");
    assert!(
        note.contains("login tests hang on a fresh checkout"),
        "{note}"
    );
    assert!(
        !note.contains("hook_context") && !note.contains("Notes from earlier sessions"),
        "{note}"
    );
}

#[test]
fn a_session_of_claude_code_names_no_host() {
    let home = home();
    home.hook(&home.start("s1", "startup")).well();
    let mut prompt = home.payload("UserPromptSubmit", "s1");
    prompt["prompt"] = "Why do the login tests hang on a fresh checkout?".into();
    home.hook(&prompt).well();
    let mut stop = home.payload("Stop", "s1");
    stop["last_assistant_message"] =
        "They waited for the stub server; fixed in the Makefile.".into();
    home.hook(&stop).well();
    home.hook(&home.payload("SessionEnd", "s1")).well();
    home.settle();
    let note = home.read(&home.notes()[0]);
    assert!(!note.contains("prov_host"), "{note}");
}

/// The hooks of Codex were installed in the middle of the session, so its log has the beginning.
#[test]
fn the_log_of_codex_completes_a_session() {
    let home = home();
    let folder = home.user().join(".codex/sessions/2026/11/23");
    fs::create_dir_all(&folder).unwrap();
    let log = folder.join("rollout-2026-11-23T06-30-24-01a20719.jsonl");
    fs::write(
        &log,
        include_str!("../../../session/tests/fixtures/hosts/codex/rollout.jsonl"),
    )
    .unwrap();
    let end = json!({ "session_id": "01a20719-3cad-7f01-bf5d-079f6b791fed", "cwd": home.project(),
        "transcript_path": log, "hook_event_name": "SessionEnd", "reason": "other" });
    home.hook(&end).well();
    home.settle();
    let notes = home.notes();
    assert_eq!(notes.len(), 1, "{:?}", home.log());
    let note = home.read(&notes[0]);
    assert!(
        note.contains("prov_host: codex") && note.contains("Fixed in the Makefile"),
        "{note}"
    );
}

/// A file that the person had before, and one that did not exist.
#[test]
fn hooks_of_a_host_are_added_once_and_removed_byte_for_byte() {
    let mine = r#"{ "version": 1,  "hooks": { "stop": [{ "command": "mine" }] } }"#;
    for (host, path, before) in [
        ("codex", ".codex/hooks.json", None),
        ("codex", ".codex/hooks.json", Some(mine)),
        (
            "gemini",
            ".gemini/extensions/anamnesis/hooks/hooks.json",
            None,
        ),
    ] {
        let home = home();
        let file = home.user().join(path);
        if let Some(before) = before {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, before).unwrap();
        }
        let read = || fs::read_to_string(&file).ok();
        let asked = home.run(&format!("init --host {host}"));
        assert_eq!((asked.code, read().as_deref()), (Some(2), before), "{host}");
        let shown = home.run(&format!("init --host {host} --print")).well();
        assert!(
            shown.contains(path) && shown.contains("anamnesis"),
            "{shown}"
        );
        assert_eq!(read().as_deref(), before, "{host}");

        home.run(&format!("init --host {host} --yes")).well();
        let added = read().unwrap();
        assert!(
            added.contains("anamnesis") && added.contains("mine") == before.is_some(),
            "{added}"
        );
        let program = format!(".anamnesis/bin/anamnesis{}", std::env::consts::EXE_SUFFIX);
        assert!(home.user().join(program).is_file());
        let again = home.run(&format!("init --host {host} --yes")).well();
        assert_eq!(again, format!("init: nothing to change for {host}\n"));

        home.run(&format!("init --host {host} --undo --yes")).well();
        assert_eq!(read().as_deref(), before, "{host}");
        if host == "gemini" {
            assert!(!home.user().join(".gemini/extensions/anamnesis").exists());
        }
    }
}

/// The person added a hook after ours.
#[test]
fn an_undo_keeps_what_was_added_to_a_hosts_file_meanwhile() {
    let home = home();
    home.run("init --host codex --yes").well();
    let file = home.user().join(".codex/hooks.json");
    let mut hooks: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    hooks["hooks"]["Other"] = json!([{ "command": "mine" }]);
    fs::write(&file, hooks.to_string()).unwrap();
    home.run("init --host codex --undo --yes").well();
    let left: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        left,
        json!({ "hooks": { "Other": [{ "command": "mine" }] } })
    );
}

#[test]
fn an_agent_sets_up_no_host() {
    let home = home();
    let output = home
        .command(["init", "--host", "codex", "--yes"])
        .by_agent()
        .run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(!home.user().join(".codex").exists());
}
