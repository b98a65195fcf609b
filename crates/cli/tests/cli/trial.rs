//! `eval prompt` and `why --try`: what a hook would give, without one.

use std::{collections::BTreeMap, fs, path::Path};

use anamnesis_testkit::home::{NoteText, Output, TestHome, files_below};
use serde_json::json;

use crate::{
    SESSION, home, id,
    recall::{FITTING, filled, prompt},
    sessions, snapshot,
};

/// What `eval` prints for a prompt at a minute of the day.
fn eval(home: &TestHome, time: &str, arguments: &[&str]) -> Output {
    home.command(["eval"])
        .args(arguments)
        .env("ANAMNESIS_NOW", format!("2026-01-02T{time}Z"))
        .run()
}

/// Every file of the store with its bytes. What SQLite shares between processes is no content.
pub(crate) fn contents(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in files_below(store) {
        let name = path.display().to_string();
        let bytes = fs::read(&path).unwrap();
        let is_log = name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty();
        if !is_log {
            found.insert(name, bytes);
        }
    }
    found
}

const PROMPTS: [(&str, &str); 9] = [
    ("03:10:01", FITTING),
    ("03:10:02", "Where do rate limits live, in the middleware?"),
    (
        "03:10:03",
        "What is the capital of France and how large is it?",
    ),
    ("03:10:04", "ok, go on"),
    (
        "03:10:05",
        "/compact the integration tests and the stub server",
    ),
    (
        "03:10:06",
        "<private>integration tests hang without the stub server</private>",
    ),
    (
        "03:10:07",
        "/memory-remember the stub server hangs the integration tests",
    ),
    (
        "03:10:08",
        "Please. I have a question. Why do the tests hang without the stub server? Thanks.",
    ),
    ("03:10:09", ""),
];

#[test]
fn what_eval_prints_is_what_the_hook_gives_byte_for_byte() {
    let home = filled();
    let uploads = id("AAAA10");
    home.add(&NoteText::new(&uploads, "Uploads have limits of their own"));
    home.run(&format!("connect B2M6RD {uploads} --relation caused-by"))
        .well();
    let mut given = Vec::new();
    for (time, text) in PROMPTS {
        let tried = eval(&home, time, &[text]);
        let named = eval(&home, time, &["prompt", text]);
        assert_eq!(tried, named, "{text}");
        let json = eval(&home, time, &[text, "--json"]).json();
        assert_eq!(json["block"], tried.stdout, "{text}");
        assert_eq!(json["reason"].is_null(), !tried.stdout.is_empty(), "{text}");
        // Each prompt in a session of its own, which has seen nothing.
        let payload = sessions::event(
            &home,
            "UserPromptSubmit",
            &format!("{time}-0000-session"),
            json!({ "prompt_id": "p-1", "prompt": text }),
        );
        let answer = sessions::hook_at(&home, time, &payload).json();
        let context = &answer["hookSpecificOutput"]["additionalContext"];
        let block = context.as_str().filter(|text| text.starts_with('<'));
        assert_eq!(tried.well(), block.unwrap_or_default(), "{text}");
        given.push(block.unwrap_or_default().matches("\n## ").count());
    }
    // One note, one with a linked one, and silence.
    assert_eq!(given, [1, 2, 0, 0, 0, 0, 0, 2, 0]);
}

#[test]
fn the_task_of_a_subagent_is_tried_in_its_lane() {
    let home = filled();
    let delegation = json!({
        "prompt_id": "p-1", "tool_name": "Agent", "tool_use_id": "toolu_1",
        "tool_input": { "subagent_type": "Explore", "prompt": FITTING, "description": "look" },
    });
    let started = json!({ "agent_id": "agent-1", "agent_type": "Explore" });
    let tried = eval(&home, "03:10:01", &[FITTING, "--lane", "agent"]).well();
    for (name, fields) in [("PreToolUse", delegation), ("SubagentStart", started)] {
        let payload = sessions::event(&home, name, SESSION, fields);
        let answer = sessions::hook_at(&home, "03:10:01", &payload).json();
        if name == "SubagentStart" {
            let context = &answer["hookSpecificOutput"]["additionalContext"];
            assert_eq!(context.as_str().unwrap(), tried);
        }
    }
    assert!(tried.contains("#7Q4KZ9"), "{tried}");
}

#[test]
fn a_trial_writes_nothing() {
    let home = filled();
    assert_ne!(prompt(&home, "03:00:01", FITTING), "");
    home.settle();
    let before = contents(&home.store());
    for (time, text) in PROMPTS {
        eval(&home, time, &[text]).well();
        let _ = eval(&home, time, &[text, "--verbose", "--session", SESSION]);
        let _ = home.command(["why", "--try", text, "--all"]).run();
    }
    assert_eq!(contents(&home.store()), before);
    // Where there is no store, none is made.
    let home = crate::untouched_home();
    assert_eq!(eval(&home, "03:00:01", &[FITTING]).code, Some(1));
    assert!(!home.store().exists());
}

#[test]
fn a_session_is_asked_with_what_it_has_seen() {
    let home = filled();
    let tried = |arguments: &[&str]| eval(&home, "03:10:00", arguments);
    assert_ne!(prompt(&home, "03:00:01", FITTING), "");
    assert_ne!(tried(&[FITTING]).well(), "");
    snapshot!(tried(&[FITTING, "--session", "5b0c8f1e", "--verbose"]).shown(), @"
    exit 0
    on stderr:
    a prompt in github.com/acme/shop, now
      F5XJ2P  session     Add rate limits to the login                           1 d
              held back: too few words in common · matched tests · score 0.01, 0.55
              needed · has 5 % of what is asked
      7Q4KZ9  how-to      Integration tests need the stub server           you, 41 d
              held back: injected before · matched integration, tests, hang,
              without, stub, server · score 3.19, 0.55 needed · has 100 % of what
              is asked
    nothing is injected: all matching notes were injected before
    ");
    assert_eq!(tried(&[FITTING, "--session", "nobody"]).code, Some(1));
}

#[test]
fn every_candidate_is_explained() {
    let home = filled();
    snapshot!(eval(&home, "03:10:00", &[FITTING, "--verbose"]).stderr, @"
    a prompt in github.com/acme/shop, now
      7Q4KZ9  how-to      Integration tests need the stub server           you, 41 d
              matches the question · matched integration, tests, hang, without,
              stub, server · score 3.19, 0.55 needed · has 100 % of what is asked
      F5XJ2P  session     Add rate limits to the login                           1 d
              held back: too few words in common · matched tests · score 0.01, 0.55
              needed · has 5 % of what is asked
    ");
    let why = home
        .command(["why", "--all", "--try", FITTING])
        .run()
        .well();
    assert_eq!(why, eval(&home, "03:04:05", &[FITTING, "--verbose"]).stderr);
    snapshot!(home.command(["why", "--try", FITTING]).run().well(), @"
    a prompt in github.com/acme/shop, now
      7Q4KZ9  how-to      Integration tests need the stub server           you, 41 d
              matches the question · matched integration, tests, hang, without,
              stub, server · score 3.19, 0.55 needed · has 100 % of what is asked
      1 more note held back · --all
    ");
    let json = eval(&home, "03:10:00", &[FITTING, "--json"]).json();
    snapshot!(format!("{:#}", json["candidates"]), @r#"
    [
      {
        "id": "01JZ00000000000000007Q4KZ9",
        "given": true,
        "pointer": false,
        "level": "body",
        "reason": "matches the question",
        "evidence": {
          "matched": [
            "integration",
            "tests",
            "hang",
            "without",
            "stub",
            "server"
          ],
          "score": 3.192,
          "coverage": 1.0
        }
      },
      {
        "id": "01JZ0000000000000000F5XJ2P",
        "given": false,
        "pointer": false,
        "level": null,
        "reason": "too few words in common",
        "evidence": {
          "matched": [
            "tests"
          ],
          "score": 0.012,
          "coverage": 0.053
        }
      }
    ]
    "#);
}

#[test]
fn what_keeps_a_hook_silent_keeps_a_trial_silent() {
    let home = filled();
    let reason = |arguments: &[&str]| {
        let output = eval(&home, "03:10:00", arguments);
        assert_eq!((output.code, &*output.stdout), (Some(0), ""));
        let last = output.stderr.lines().last().unwrap_or_default().to_owned();
        last.trim_start_matches("nothing is injected: ").to_owned()
    };
    for (text, expected) in [
        ("ok", "the prompt has too few meaningful words"),
        (
            "What is the capital of France?",
            "no note contains these words",
        ),
        (
            "/compact the tests",
            "it is a command, or no person typed it",
        ),
        (
            "/memory-remember this",
            "it asks for something to be remembered",
        ),
    ] {
        assert_eq!(reason(&[text, "--verbose"]), expected, "{text}");
    }
    assert_eq!(
        reason(&[FITTING, "--verbose", "--project", "github.com/acme/other"]),
        "no note contains these words"
    );
    home.run("config set recall.prompt off").well();
    assert_eq!(reason(&[FITTING, "--verbose"]), "recall.prompt is off");
    home.run("config set recall.prompt on").well();
    home.run("pause").well();
    assert_eq!(reason(&[FITTING, "--verbose"]), "paused here");
}

#[cfg(unix)]
#[test]
fn what_the_index_does_not_know_yet_is_said() {
    let home = filled();
    let later = home.add(&NoteText::new(&id("LATER0"), "Later"));
    // The index recognizes a change by the time of the folder, which may be coarse.
    let folder = fs::File::open(later.parent().unwrap()).unwrap();
    let newer = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
    folder.set_modified(newer).unwrap();
    let output = eval(&home, "03:10:00", &[FITTING, "--verbose"]);
    assert!(output.stderr.contains("newer than the index"), "{output:?}");
}

#[test]
fn one_word_that_is_no_command_is_a_prompt() {
    let home = home();
    home.run("reindex").well();
    home.run("eval stub").well();
    home.run("eval prompt prompt").well();
    assert_eq!(home.run("eval").code, Some(2));
    assert_eq!(home.run("eval two words").code, Some(2));
    let piped = home.command(["eval", "--stdin"]).input("stub server").run();
    assert_eq!(piped.well(), "");
}
