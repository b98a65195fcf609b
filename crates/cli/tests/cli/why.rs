//! `why`: what a session was given, and why.

use std::fs;

use anamnesis_testkit::home::{NoteText, TestHome};
use anamnesis_text::hash::text_hash;
use serde_json::json;

use crate::{SESSION, home_with_notes, id, sessions, snapshot, tools};

fn started() -> TestHome {
    let home = home_with_notes();
    home.run("reindex").well();
    home.hook(&home.start(SESSION, "startup")).well();
    home
}

#[test]
fn what_a_session_began_with_and_why() {
    let home = started();
    snapshot!(home.run("why").well(), @"
    session 5b0c8f1e of github.com/acme/shop, just now

    at its start · just now
      4T8WQX  preference  Package manager is pnpm                         you, 210 d
              applies to all projects
      B2M6RD  fact        Rate limits live in middleware/limit.rs        agent, 12 d
              among the newest of the project
      7Q4KZ9  how-to      Integration tests need the stub server           you, 41 d
              among the newest of the project
      F5XJ2P  session     Add rate limits to the login                           1 d
              one of the last sessions
    → anamnesis edit 4T8WQX   |   anamnesis forget 4T8WQX
    ");
    let json = home.run("why last --json").json();
    assert_eq!(json["session"], SESSION);
    assert_eq!(json["moments"][0]["given"][0]["level"], "body");
    assert_eq!(json["moments"][0]["given"][0]["changed"], false);
    assert_eq!(
        json["moments"][0]["given"][0]["body_sha256"]
            .as_str()
            .unwrap()
            .len(),
        64
    );
}

#[test]
fn what_says_something_in_the_store_and_beside_it() {
    let home = started();
    fs::write(
        home.project().join("CLAUDE.md"),
        "# Shop\n\nUse the Stub Server.\n",
    )
    .unwrap();
    snapshot!(home.run("why --text stub").well(), @"
    at its start · just now
      7Q4KZ9  how-to      Integration tests need the stub server           you, 41 d
              among the newest of the project
    also in the session, but not injected by anamnesis:
      [ROOT]/shop/CLAUDE.md:3
    → anamnesis edit 7Q4KZ9   |   anamnesis forget 7Q4KZ9
    ");
    snapshot!(home.run("why --text nowhere").well(), @"no note that was injected into session 5b0c8f1e contains that now");
}

#[test]
fn a_note_that_changed_or_is_gone_is_told() {
    let home = started();
    let path = home
        .store()
        .join("memory/procedural/01JZ00000000000000007Q4KZ9.md");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("9090", "9191")).unwrap();
    assert!(home.run("why").well().contains("changed since"));
    fs::remove_file(&path).unwrap();
    let gone = home.run("why").well();
    assert!(
        gone.contains("  01JZ00000000000000007Q4KZ9  no longer there"),
        "{gone}"
    );
}

#[test]
fn without_a_session_there_is_nothing_to_explain() {
    let home = home_with_notes();
    snapshot!(home.run("why").well(), @"
    no notes were injected yet
    → anamnesis status
    ");
    let unknown = home.run("why 01234567");
    assert_eq!(unknown.code, Some(1));
}

/// The texts that hooks printed for the model, in order: the context, or the reason of a denial.
fn play_every_event(home: &TestHome) -> Vec<(String, String)> {
    let mut printed = Vec::new();
    let delegation = json!({
        "prompt_id": "p-1", "tool_name": "Agent", "tool_use_id": "toolu_1",
        "tool_input": { "subagent_type": "Explore", "prompt": "why does the stub server hang in the login tests", "description": "look" },
    });
    let call = |id: &str, command: &str| {
        json!({
            "prompt_id": "p-1", "tool_name": "Bash", "tool_use_id": id, "tool_input": { "command": command },
        })
    };
    let mut failure = call("toolu_4", "cargo test cart");
    failure["error"] =
        "Exit code 101\nerror: could not connect to the stub server on port 9090".into();
    failure["is_interrupt"] = false.into();
    for (second, (name, fields)) in [
        ("SessionStart", json!({ "source": "startup" })),
        (
            "UserPromptSubmit",
            json!({ "prompt_id": "p-1", "prompt": "the login tests hang, is it the stub server? From now on always use pnpm for installs." }),
        ),
        ("PreToolUse", delegation),
        ("SubagentStart", json!({ "agent_id": "agent-1", "agent_type": "Explore" })),
        ("PreToolUse", call("toolu_2", "git push --force")),
        ("PreToolUse", call("toolu_3", "rm -rf build")),
        ("PostToolUseFailure", failure),
        (
            "UserPromptSubmit",
            json!({ "prompt_id": "p-2", "prompt": "/anamnesis:memory-remember the port is 9090" }),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let payload = sessions::event(home, name, SESSION, fields);
        let answer = sessions::hook_at(home, &format!("03:00:{second:02}"), &payload).json();
        let specific = &answer["hookSpecificOutput"];
        for key in ["additionalContext", "permissionDecisionReason"] {
            if let Some(text) = specific[key].as_str() {
                printed.push((name.to_owned(), text.to_owned()));
            }
        }
    }
    printed
}

#[test]
fn what_every_hook_printed_is_kept_byte_for_byte_until_a_note_is_forgotten() {
    let home = home_with_notes();
    home.add(
        &NoteText::new(&id("7Q4KW2"), "It cost a day of work")
            .with("type", "procedural")
            .with("kind", "antipattern")
            .with("when", "\n- 'cmd: rm -rf build'"),
    );
    tools::forbid(&home);
    home.run("reindex").well();
    tools::mend(&home, "0b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d21");
    let printed = play_every_event(&home);
    let names: Vec<&str> = printed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "SessionStart",
            "UserPromptSubmit",
            "SubagentStart",
            "PreToolUse",
            "PreToolUse",
            "PostToolUseFailure",
            "UserPromptSubmit"
        ],
        "{printed:?}"
    );
    let kept = |arguments: &str| -> Vec<(String, String)> {
        let json = home.run(&format!("why {arguments} --json")).json();
        let texts = json["texts"].as_array().unwrap().iter();
        let field = |text: &serde_json::Value, name: &str| text[name].as_str().unwrap().to_owned();
        texts
            .map(|text| {
                assert_eq!(text_hash(text["text"].as_str().unwrap()), text["sha256"]);
                (field(text, "event"), field(text, "text"))
            })
            .collect()
    };
    assert_eq!(kept(&format!("{SESSION} --exact")), printed);
    // As text, they are what is printed.
    let text = home.run("why last --exact");
    let all: Vec<String> = printed
        .iter()
        .map(|(_, text)| format!("{text}\n"))
        .collect();
    assert_eq!(text.stdout, all.concat());
    for (event, printed) in &printed {
        let mut about = text.stderr.lines();
        let hash = text_hash(printed);
        let is_named = about.any(|line| line.starts_with(event) && line.contains(&hash));
        assert!(is_named, "{event}: {}", text.stderr);
    }
    let at = |date: &str| kept(&format!("--at {date}"));
    let day = "2026-01-02";
    assert_eq!(at(&format!("{day}T03:00:01Z")), printed[1..2]);
    assert_eq!(at(day), printed[6..]);
    assert_eq!(at("2020-01-01"), []);

    home.run("forget 7Q4KZ9").well();
    let left = kept("last --exact");
    assert_eq!(left.len(), printed.len());
    for ((_, left), (_, text)) in left.iter().zip(&printed) {
        assert!(
            !left.contains("7Q4KZ9") && !left.contains("binds port 9090"),
            "{left}"
        );
        assert_eq!(left == text, !text.contains("7Q4KZ9"));
    }
}
