//! `sessions`: the list, a session row by row, and its export.

use std::fs;

use anamnesis_testkit::home::{Output, TestHome};
use serde_json::{Value, json};

use crate::{SESSION, home, snapshot};

/// A word that stands in private regions only.
const PRIVATE: &str = "T7-bluebird";

/// Runs a hook at a minute of the day of the tests.
pub(crate) fn hook_at(home: &TestHome, time: &str, payload: &Value) -> Output {
    home.hook_with(payload.to_string())
        .env("ANAMNESIS_NOW", format!("2026-01-02T{time}Z"))
        .run()
}

/// The payload of an event of a prompt, with these fields besides.
pub(crate) fn event(home: &TestHome, name: &str, session: &str, fields: Value) -> Value {
    let mut payload = home.payload(name, session);
    if let Value::Object(fields) = fields {
        for (key, value) in fields {
            payload[key] = value;
        }
    }
    payload
}

/// Plays a session: two prompts, the second of them private, and what tools did.
pub(crate) fn play(home: &TestHome, session: &str) {
    let shop = home.project();
    let events = [
        (
            "03:00:00",
            "SessionStart",
            json!({ "source": "startup", "model": "claude-test" }),
        ),
        (
            "03:00:05",
            "UserPromptSubmit",
            json!({ "prompt_id": "p-1", "prompt": format!(
                "Add rate limits to the login\nand tell me <private>{PRIVATE}</private> nothing of it"
            ) }),
        ),
        (
            "03:00:07",
            "PostToolUse",
            json!({ "prompt_id": "p-1", "tool_name": "Edit", "tool_use_id": "toolu_1", "duration_ms": 12,
                    "tool_input": { "file_path": shop.join("src/limit.rs"), "old_string": "a", "new_string": "b" },
                    "tool_response": { "filePath": shop.join("src/limit.rs") } }),
        ),
        (
            "03:00:09",
            "PostToolUseFailure",
            json!({ "prompt_id": "p-1", "tool_name": "Bash", "tool_use_id": "toolu_2", "duration_ms": 2044,
                    "tool_input": { "command": format!("cargo test {PRIVATE}") },
                    "error": "Exit code 101\nthread 'main' panicked", "is_interrupt": false }),
        ),
        (
            "03:00:30",
            "Stop",
            json!({ "prompt_id": "p-1", "stop_hook_active": false,
                    "last_assistant_message": "Limits are in, one test fails. Next: the cart." }),
        ),
        (
            "03:01:00",
            "UserPromptSubmit",
            json!({ "prompt_id": "p-2", "prompt": format!("<private>use {PRIVATE} now</private>") }),
        ),
        (
            "03:01:02",
            "PostToolUse",
            json!({ "prompt_id": "p-2", "tool_name": "Bash", "tool_use_id": "toolu_3",
                    "tool_input": { "command": PRIVATE }, "tool_response": { "stdout": PRIVATE } }),
        ),
    ];
    for (time, name, fields) in events {
        let output = hook_at(home, time, &event(home, name, session, fields));
        assert_eq!(output.stderr, "", "{name}");
        // What it left to be done is done at its time.
        home.settle();
    }
}

/// Ends a session.
pub(crate) fn end(home: &TestHome, session: &str, reason: &str) {
    let payload = event(home, "SessionEnd", session, json!({ "reason": reason }));
    assert_eq!(hook_at(home, "03:02:00", &payload).well(), "");
    home.settle();
}

#[test]
fn the_list_says_what_became_of_each_session() {
    let home = home();
    snapshot!(home.run("sessions").shown(), @"
    exit 0
    0 sessions of github.com/acme/shop
    → anamnesis sessions --everywhere
    ");
    play(&home, SESSION);
    snapshot!(home.run("sessions").shown(), @"
    exit 0
    5b0c8f1e  3 min ago · open · note #J8QYZW
              2 prompts, 2 tool events · Add rate limits to the login
    ");
    end(&home, SESSION, "prompt_input_exit");
    // Another project's, with a long name, open and without a word.
    let other = home.root().join("cart");
    anamnesis_testkit::home::git_repository(
        &other,
        Some("git@gitlab.example.com:a-long-group/another-group/the-cart-of-the-shop.git"),
    );
    let start = home.start("5b0c8f1e-other", "startup").to_string();
    home.hook_with(start)
        .env("CLAUDE_PROJECT_DIR", &other)
        .run()
        .well();
    home.settle();
    snapshot!(home.run("sessions").shown(), @"
    exit 0
    5b0c8f1e-2  2 min ago · ended by you · note #J8QYZW
              2 prompts, 2 tool events · Add rate limits to the login
    ");
    snapshot!(home.run("sessions --everywhere").shown(), @"
    exit 0
    5b0c8f1e-o  just now · open · no note yet · gitlab.example.com/a-long-group/ano…
              0 prompts, 0 tool events
    5b0c8f1e-2  2 min ago · ended by you · note #J8QYZW · github.com/acme/shop
              2 prompts, 2 tool events · Add rate limits to the login
    ");
    snapshot!(home.run("sessions --everywhere -k 1").shown(), @"
    exit 0
    5b0c8f1e-o  just now · open · no note yet · gitlab.example.com/a-long-group/ano…
              0 prompts, 0 tool events
    1 of 2 shown · -n 2
    ");
    snapshot!(home.run("sessions --json").shown(), @r#"
    exit 0
    {
      "sessions": [
        {
          "id": "5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20",
          "project": "github.com/acme/shop",
          "folder": "[ROOT]/shop",
          "state": "ended",
          "end_reason": "prompt_input_exit",
          "started_at": "2026-01-02T03:00:00.000Z",
          "seen_at": "2026-01-02T03:02:00.000Z",
          "ended_at": "2026-01-02T03:02:00.000Z",
          "note": {
            "id": "6A336AEW8SZ5FDNQWA8DJ8QYZW",
            "state": "active"
          },
          "prompts": 2,
          "tool_events": 2,
          "first_prompt": "Add rate limits to the login\nand tell me  nothing of it"
        }
      ],
      "total": 1,
      "backfilled": []
    }
    "#);
    for line in home.run("sessions --everywhere").well().lines() {
        assert!(line.chars().count() <= 80, "over 80 columns: {line}");
    }
}

#[test]
fn a_slash_command_is_no_prompt_of_the_list() {
    let home = home();
    play(&home, SESSION);
    for (time, prompt) in [("03:01:30", "/memory-status"), ("03:01:40", "/compact")] {
        let prompt = event(
            &home,
            "UserPromptSubmit",
            SESSION,
            json!({ "prompt": prompt }),
        );
        hook_at(&home, time, &prompt).well();
    }
    let list = home.run("sessions").well();
    assert!(list.contains(" 2 prompts, 2 tool events"), "{list}");
}

#[test]
fn a_session_row_by_row() {
    let home = home();
    play(&home, SESSION);
    end(&home, SESSION, "clear");
    snapshot!(home.run("sessions show 5b0c8f").shown(), @"
    exit 0
    session 5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20
    github.com/acme/shop · branch main · model claude-test
    began 2026-01-02 03:00 (startup) · ended by /clear 2026-01-02 03:02 · UTC
    note #J8QYZW  Add rate limits to the login
    kept: 2 prompts, 2 tool events, 1 turn end, 0 observations
    removed: 1 private or forgotten prompt with 1 event under it, 1 repeated privat…

    prompt 1 · 03:00:05 · person · a part was private
      Add rate limits to the login
      and tell me  nothing of it
      03:00:07  ok          Edit  [TIME]
        edited src/limit.rs
      03:00:09  failed      Bash  2.0 s
        Exit code 101
      03:00:30  answer
        Limits are in, one test fails. Next: the cart.

    prompt 2 · 03:01:00 · private; 1 event under it not kept

    summary by rule, up to prompt 2
      asked      Add rate limits to the login
      done       Edited `src/limit.rs`
      done       Limits are in, one test fails.
      next       the cart.

    jobs
      03:00:30  note done
      03:02:00  note done

    → anamnesis sessions export 5b0c8f1e   |   anamnesis forget --session 5b0c8f1e
    ");
    let full = home.run("sessions show 5b0c8f1e --full").well();
    snapshot!(full, @r#"
    session 5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20
    github.com/acme/shop · branch main · model claude-test
    began 2026-01-02 03:00 (startup) · ended by /clear 2026-01-02 03:02 · UTC
    note #J8QYZW  Add rate limits to the login
    kept: 2 prompts, 2 tool events, 1 turn end, 0 observations
    removed: 1 private or forgotten prompt with 1 event under it, 1 repeated privat…

    prompt 1 · 03:00:05 · person · a part was private
      Add rate limits to the login
      and tell me  nothing of it
      03:00:07  ok          Edit  [TIME]
        edited src/limit.rs
        given
          {
            "file_path": "[ROOT]/shop/src/limit.rs"
          }
        gave
          {
            "bytes": 33,
            "tail": "[ROOT]/shop/src/limit.rs"
          }
      03:00:09  failed      Bash  2.0 s
        Exit code 101
        thread 'main' panicked
        given
          {
            "command": "cargo test [private]"
          }
      03:00:30  answer
        Limits are in, one test fails. Next: the cart.

    prompt 2 · 03:01:00 · private; 1 event under it not kept

    summary by rule, up to prompt 2
      asked      Add rate limits to the login
      done       Edited `src/limit.rs`
      done       Limits are in, one test fails.
      next       the cart.

    jobs
      03:00:30  note done
      03:02:00  note done

    → anamnesis sessions export 5b0c8f1e   |   anamnesis forget --session 5b0c8f1e
    "#);
}

#[test]
fn an_export_is_one_object() {
    let home = home();
    play(&home, SESSION);
    end(&home, SESSION, "clear");
    snapshot!(home.run("sessions export 5b0c8f1e").shown(), "an_export");
    let shown = home.run("sessions show 5b0c8f1e --json").json();
    let exported = home.run("sessions export 5b0c8f1e").json();
    assert_eq!(exported["sessions"], json!([shown]));
    assert_eq!(home.run("sessions export --all").json(), exported);
    // Into a file, for the owner alone, which no other export replaces.
    let file = home.root().join("out.json");
    let output = |home: &TestHome| {
        home.command(["sessions", "export", "--all", "--output"])
            .arg(&file)
            .run()
    };
    snapshot!(output(&home).shown(), @"
    exit 0
    exported 1 session to [ROOT]/out.json
    ");
    let written = fs::read_to_string(&file).unwrap();
    let root = home.root().to_string_lossy();
    assert_eq!(
        written.replace(&*root, "[ROOT]"),
        home.run("sessions export --all").well()
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    snapshot!(output(&home).shown(), @"
    exit 1
    on stderr:
    anamnesis: cannot write [ROOT]/out.json: File exists (os error 17)
    → name a file that is not there yet
    ");
    // No session is an object, too.
    let empty = crate::home();
    assert_eq!(
        empty.run("sessions export --all").json()["sessions"],
        json!([])
    );
}

#[test]
fn a_session_is_named_by_the_beginning_of_its_id() {
    let home = home();
    for session in ["one", "5b0c8f1e-a", "5b0c8f1e-b", "one-more-and-longer"] {
        home.hook(&home.start(session, "startup")).well();
    }
    home.settle();
    for command in ["sessions show", "sessions export", "forget --yes --session"] {
        let missing = home.run(&format!("{command} 00000000"));
        assert_eq!(missing.code, Some(1), "{missing:?}");
        let ambiguous = home.run(&format!("{command} 5b0c8f"));
        assert_ne!(ambiguous.code, Some(0), "{ambiguous:?}");
        assert_eq!(ambiguous.stdout, "");
    }
    snapshot!(home.run("sessions show 00000000").shown(), @"
    exit 1
    on stderr:
    anamnesis: no session 00000000
    → anamnesis sessions --everywhere
    ");
    snapshot!(home.run("sessions show 5b0c8f").shown(), @"
    exit 2
    on stderr:
    anamnesis: 5b0c8f matches more than one session:
      5b0c8f1e-a  github.com/acme/shop
      5b0c8f1e-b  github.com/acme/shop
    → type more of the id
    ");
    snapshot!(home.run("sessions show on").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: "on" is too short for a session's id
    → six or more characters of its beginning, as `sessions` shows them
    "#);
    // A whole id is never ambiguous.
    assert!(
        home.run("sessions show one")
            .well()
            .starts_with("session one\n")
    );
    assert_eq!(home.run("sessions export").code, Some(2));
    assert_eq!(home.run("sessions export one --all").code, Some(2));
    assert_eq!(home.run("sessions show").code, Some(2));
}

#[test]
fn what_is_hostile_or_private_is_inert_and_absent_in_every_form() {
    let home = home();
    let session = "5b0c8f1e-\u{1b}[31m\u{202e}x";
    let hostile = format!(
        "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}evil\u{9b}31m {} <private>{PRIVATE}</private>",
        "long".repeat(2000)
    );
    for (name, fields) in [
        (
            "SessionStart",
            json!({ "source": "\u{1b}[31mstartup", "model": "\u{1b}[5mm" }),
        ),
        (
            "UserPromptSubmit",
            json!({ "prompt_id": "p-1", "prompt": hostile }),
        ),
        (
            "PostToolUseFailure",
            json!({ "prompt_id": "p-1", "tool_name": format!("To\u{1b}[1mol\u{202e}"), "tool_use_id": "t-1",
                    "tool_input": { (hostile.clone()): hostile.clone(), "file_path": hostile.clone() },
                    "error": hostile.clone() }),
        ),
        (
            "Stop",
            json!({ "prompt_id": "p-1", "last_assistant_message": hostile.clone() }),
        ),
        (
            "SessionEnd",
            json!({ "reason": format!("\u{1b}[31m{}", "reason".repeat(30)) }),
        ),
    ] {
        let output = home.hook(&event(&home, name, session, fields));
        assert_eq!(output.stderr, "", "{name}");
    }
    home.settle();
    for arguments in [
        "sessions",
        "sessions --everywhere",
        "sessions --json",
        "sessions show 5b0c8f1e",
        "sessions show 5b0c8f1e --full",
        "sessions show 5b0c8f1e --json",
        "sessions export --all",
        "doctor",
        "doctor --verbose",
        "doctor --report",
        "status",
    ] {
        let output = home.run(arguments);
        let text = output.stdout + &output.stderr;
        assert!(!text.contains(PRIVATE), "{arguments}");
        let bad = text
            .chars()
            .find(|&c| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c));
        assert_eq!(bad, None, "{arguments}");
        let is_json = text.starts_with('{');
        for line in text
            .lines()
            .filter(|_| !is_json && !arguments.starts_with("doctor --v"))
        {
            assert!(line.chars().count() <= 80, "{arguments}: {line}");
        }
    }
}
