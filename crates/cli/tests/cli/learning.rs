//! What is learned from use: feedback, verified notes, counts of use, and what is told of them.

use std::fs;

use anamnesis_testkit::home::{NoteText, TestHome};
use serde_json::json;

use crate::{SESSION, home, home_with_notes, id, journal::rows, snapshot};

const NOTE: &str = "memory/procedural/01JZ00000000000000007Q4KZ9.md";

/// A home with an index, where a session has started and was given notes.
fn started() -> TestHome {
    let home = home_with_notes();
    home.run("reindex").well();
    home.hook(&home.start(SESSION, "startup")).well();
    home
}

/// A turn: the prompt, the answer, and a shell command between them.
fn turn(home: &TestHome, prompt: &str, command: &str, answer: &str) {
    let mut payload = home.payload("UserPromptSubmit", SESSION);
    payload["prompt"] = prompt.into();
    payload["prompt_id"] = prompt.into();
    home.hook(&payload).well();
    let mut payload = home.payload("PostToolUse", SESSION);
    payload["tool_name"] = "Bash".into();
    payload["tool_use_id"] = format!("toolu_{prompt}").into();
    payload["tool_input"] = json!({ "command": command });
    payload["tool_response"] = json!({ "stdout": "", "stderr": "" });
    payload["prompt_id"] = prompt.into();
    home.hook(&payload).well();
    let mut payload = home.payload("Stop", SESSION);
    payload["last_assistant_message"] = answer.into();
    payload["prompt_id"] = prompt.into();
    home.hook(&payload).well();
}

fn end(home: &TestHome) {
    let mut payload = home.payload("SessionEnd", SESSION);
    payload["reason"] = "other".into();
    home.hook(&payload).well();
    home.settle();
}

#[test]
fn feedback() {
    let home = started();
    snapshot!(home.run("feedback 7Q4KZ9 good").shown(), @r#"
    exit 0
    noted: #7Q4KZ9 "Integration tests need the stub server" helped
    "#);
    snapshot!(home.run("feedback 7Q4KZ9 bad").shown(), @r#"
    exit 0
    noted: #7Q4KZ9 "Integration tests need the stub server" was wrong or in the way
    → anamnesis edit 7Q4KZ9   |   anamnesis mute 7Q4KZ9
    "#);
    assert_eq!(home.run("feedback 7Q4KZ9 fine").code, Some(2));
    assert_eq!(home.run("feedback ZZZZZZ good").code, Some(1));
    let stats = home.run("stats --json").json();
    assert_eq!(stats["feedback"], json!({ "good": 0, "bad": 1 }));
    // The rating is a key of the note; its text and its time are as they were.
    let file = home.read(NOTE);
    assert!(
        file.contains("\nrating: bad\n") && file.contains("2025-11-22"),
        "{file}"
    );
}

#[test]
fn an_agent_may_say_what_helped_and_not_that_a_persons_note_is_right() {
    let home = started();
    home.command(["feedback", "7Q4KZ9", "good"])
        .by_agent()
        .run()
        .well();
    let file = home.read(NOTE);
    assert!(
        file.contains("\nrating: good\n") && !file.contains("\nverified:"),
        "{file}"
    );
    snapshot!(home.command(["verify", "7Q4KZ9"]).by_agent().run().shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can verify this note: a person wrote it, or it applies to all projects
    → write a note of your own that supersedes it; a person approves it
    ");
    home.command(["verify", "B2M6RD"]).by_agent().run().well();
    let own = home.read(&format!("memory/semantic/{}.md", id("B2M6RD")));
    assert!(own.contains("\nverified: "), "{own}");
}

#[test]
fn counts_of_use_outlive_the_index() {
    let home = started();
    turn(
        &home,
        "the login is slow",
        "anamnesis show B2M6RD",
        "See #7Q4KZ9: the stub has to run.",
    );
    turn(&home, "go on", "ls", "done");
    end(&home);
    assert_eq!(rows(&home, "SELECT count(*) FROM shown_note"), ["4"]);
    assert_eq!(rows(&home, "SELECT count(*) FROM use"), ["2"]);
    let before = home.run("stats --json").json();
    fs::remove_dir_all(home.store().join("derived")).unwrap();
    assert_eq!(home.run("stats --json").json(), before);
}

#[test]
fn a_private_prompt_leaves_no_use() {
    let home = started();
    turn(
        &home,
        "<private>the login</private>",
        "anamnesis show B2M6RD",
        "See #7Q4KZ9.",
    );
    end(&home);
    assert_eq!(rows(&home, "SELECT count(*) FROM use"), ["0"]);
}

#[test]
fn verify() {
    let home = started();
    home.add(
        &NoteText::new(&id("NEWER1"), "Integration tests need nothing")
            .with("supersedes", "[01JZ00000000000000007Q4KZ9]"),
    );
    snapshot!(home.run("verify B2M6RD").shown(), @r#"
    exit 0
    noted: #B2M6RD "Rate limits live in middleware/limit.rs" is right
    "#);
    snapshot!(home.run("verify 7Q4KZ9").shown(), @r#"
    exit 3
    noted: #7Q4KZ9 "Integration tests need the stub server" is right
    not in use: #NEWER1 replaces it
    → anamnesis show NEWER1
    "#);
    home.run("forget B2M6RD").well();
    snapshot!(home.run("verify B2M6RD").shown(), @"
    exit 1
    on stderr:
    anamnesis: #B2M6RD is forgotten
    → anamnesis forget --undo B2M6RD
    ");
}

#[test]
fn stats() {
    let home = home();
    snapshot!(home.run("stats").shown(), @"
    exit 0
    the last 30 d on this machine
    sessions:             0 with 0 prompts
    prompts searched:     0, 0 of them with a match
    notes injected:       0, 0 of them at prompts; 0 repeats held back
    notes used:           0 of 0, counting each note once per session
    notes pointed at:     0, 0 of them opened with memory_get
    commits injected:     0, of the project's history
    texts injected:       0, about 0 tokens
    notes muted:          0
    ratings:              0 good, 0 bad
    ");
    let home = started();
    turn(
        &home,
        "the login is slow",
        "ls",
        "See #7Q4KZ9: the stub has to run.",
    );
    home.run("feedback 7Q4KZ9 good").well();
    let text = home.run("stats").well();
    let kept: String = text
        .lines()
        .filter(|line| !line.starts_with("hook:"))
        .fold(String::new(), |text, line| text + line + "\n");
    snapshot!(kept, @"
    the last 30 d on this machine
    sessions:             1 with 1 prompt
    prompts searched:     1, 0 of them with a match (0 %)
    notes injected:       4, 0 of them at prompts; 0 repeats held back
    notes used:           1 of 4 (25 %), counting each note once per session
    notes pointed at:     1, 0 of them opened with memory_get
    commits injected:     0, of the project's history
    texts injected:       2, about 199 tokens
    notes muted:          0
    ratings:              1 good, 0 bad

    most used
    7Q4KZ9  how-to      Integration tests need the stub server        1 of 1 session
    ");
    assert!(text.contains("hook:    SessionStart "));
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert_eq!(home.run("stats --days 0").code, Some(2));
    let of = |key: &str| home.run(&format!("stats --project {key}")).well();
    let here = kept.replace("machine\n", "machine, in github.com/acme/shop\n");
    assert_eq!(of("github.com/acme/shop"), here);
    let elsewhere = of("elsewhere");
    assert!(elsewhere.contains("0 of 0") && elsewhere.contains("0 good"));
}

#[test]
fn a_note_that_is_injected_often_and_never_used_is_listed() {
    let home = home_with_notes();
    home.run("reindex").well();
    for number in 0..12 {
        home.hook(&home.start(&format!("session-{number}"), "startup"))
            .well();
    }
    home.settle();
    let stats = home.run("stats").well();
    let (_, listed) = stats.split_once("injected often, never used\n").unwrap();
    assert!(listed.contains("7Q4KZ9"), "{stats}");
}

#[test]
fn stale() {
    let home = home_with_notes();
    snapshot!(home.run("stale").shown(), @"
    exit 0
    no note seems outdated
    ");
    for note in [
        NoteText::new(&id("REVW10"), "Prices of the provider")
            .with("review_after", "2026-01-01")
            .at("2025-11-01T00:00:00+00:00"),
        NoteText::new(&id("TASK10"), "Move to the other queue")
            .with("kind", "task")
            .with("status", "done")
            .with("links", "[about 01JZ00000000000000007Q4KZ9]")
            .at("2025-12-30T00:00:00+00:00"),
    ] {
        home.add(&note);
    }
    snapshot!(home.run("stale").shown(), @"
    exit 0
    REVW10  fact        Prices of the provider                             you, 62 d
      its review was due on 2026-01-01
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
      its task #TASK10 was finished on 2025-12-30
    → anamnesis verify ID   |   anamnesis edit ID   |   anamnesis forget ID
    ");
    let json = home.run("stale --json").json();
    assert_eq!(json["total"], 2);
    assert_eq!(json["notes"][0]["reasons"][0]["reason"], "review due");
    for note in ["REVW10", "7Q4KZ9"] {
        home.run(&format!("verify {note}")).well();
    }
    assert_eq!(home.run("stale").well(), "no note seems outdated\n");
}

#[test]
fn a_changed_note_is_shown_as_changed_until_it_is_verified() {
    let home = home_with_notes();
    for (note, text, time) in [
        (
            "KEEP10",
            "The payment gateway listens on port 8080.",
            "2025-12-01",
        ),
        (
            "KEEP11",
            "The payment gateway no longer listens on port 8080.",
            "2025-12-20",
        ),
        (
            "KEEP12",
            "The mail gateway listens on port 7070.",
            "2025-12-21",
        ),
    ] {
        let note = NoteText::new(&id(note), text).body(text);
        home.add(&note.at(&format!("{time}T00:00:00+00:00")));
    }
    let old = home.run("show KEEP10").well();
    assert!(old.contains("changed since by #KEEP11"), "{old}");
    let new = home.run("show KEEP11").well();
    assert!(new.contains("changes #KEEP10"), "{new}");
    assert!(new.contains("(was: 8080, until 20 Dec 2025)"), "{new}");
    let other = home.run("show KEEP12").well();
    assert!(!other.contains("changes #"), "{other}");
    home.run("verify KEEP10").well();
    assert!(!home.run("show KEEP10").well().contains("changed since"));
}

/// Runs git in the project.
fn git(home: &TestHome, arguments: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=dev", "-c", "user.email=dev@example.com"])
        .args(arguments)
        .current_dir(home.project())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {done:?}");
}

#[test]
fn what_was_there_when_a_note_was_written_is_gone_at_the_next_look() {
    let home = home();
    let project = home.project();
    git(&home, &["init", "--quiet"]);
    fs::create_dir(project.join("middleware")).unwrap();
    fs::write(project.join("middleware/limit.rs"), "fn limit() {}\n").unwrap();
    fs::write(project.join("Makefile"), "stub:\n\t./stub\n").unwrap();
    git(&home, &["add", "--all"]);
    for text in [
        "The limits of the login are in limit.rs.",
        "The paths of the limits are in `middleware/limit.rs` too.",
        "Every caller of the login asks `limit()` first.",
        "Start the broker by `make stub` before the tests.",
        "The spelling of words is in `nowhere.rs`.",
    ] {
        home.command(["write"]).input(text).run().well();
    }
    fs::remove_file(project.join("middleware/limit.rs")).unwrap();
    fs::write(project.join("Makefile"), "all:\n\ttrue\n").unwrap();
    git(&home, &["add", "--all"]);
    let later = home.command(["stale", "--json"]);
    let stale = later
        .env("ANAMNESIS_NOW", "2026-01-02T03:24:05Z")
        .run()
        .json();
    assert_eq!(stale["total"], 4, "{stale}");
}

#[test]
fn a_pointer_says_what_its_note_cites_and_is_gone() {
    let home = home_with_notes();
    let project = home.project();
    git(&home, &["init", "--quiet"]);
    fs::write(project.join("Makefile"), "seed-walrus:\n\ttrue\n").unwrap();
    fs::write(project.join("walrus.rs"), "fn walrus() {}\n").unwrap();
    git(&home, &["add", "--all"]);
    let write = ["write", "--title", "Seeds", "--stdin"];
    home.command(write)
        .env("ANAMNESIS_NOW", "2026-01-01T03:04:05Z")
        .input("Run `make seed-walrus` before the tests of `walrus.rs`.")
        .run()
        .well();
    assert_eq!(home.run("stale").well(), "no note seems outdated\n");
    fs::write(project.join("Makefile"), "all:\n\ttrue\n").unwrap();
    home.run("stale").well();
    let mut prompt = home.payload("UserPromptSubmit", "5b0c8f1e-prompt");
    prompt["prompt"] = "What do I run before the walrus tests?".into();
    let mut read = home.payload("PostToolUse", "5b0c8f1e-file");
    read["tool_name"] = "Read".into();
    read["tool_input"] = json!({ "file_path": project.join("walrus.rs") });
    for payload in [prompt, read] {
        let shown = home.hook(&payload).stdout;
        assert!(shown.contains("→ memory_get"), "{shown}");
        assert!(
            shown.contains("(stale: make seed-walrus is gone)"),
            "{shown}"
        );
    }
    // The score does not reach the threshold, which is that of a text.
    let why = home.run("why").well();
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains(" needed for its text · a pointer"), "{why}");
}

#[test]
fn what_a_note_cites_is_gone() {
    // INJ-11
    let home = home_with_notes();
    let project = home.project();
    git(&home, &["init", "--quiet"]);
    fs::create_dir(project.join("middleware")).unwrap();
    fs::write(project.join("middleware/limit.rs"), "fn limit() {}\n").unwrap();
    fs::write(project.join("Makefile"), "stub:\n\t./stub\n").unwrap();
    git(&home, &["add", "--all"]);
    // What was never seen is not gone.
    assert_eq!(home.run("stale").well(), "no note seems outdated\n");
    fs::create_dir(project.join("src")).unwrap();
    git(&home, &["mv", "middleware/limit.rs", "src/limit.rs"]);
    // Of a named project only what is known is told.
    let known = format!("stale --project {}", anamnesis_testkit::home::PROJECT);
    assert_eq!(home.run(&known).well(), "no note seems outdated\n");
    for command in ["stale", known.as_str()] {
        let shown = home.run(command).well();
        let reason = "  middleware/limit.rs is gone";
        assert_eq!(shown.lines().nth(1), Some(reason), "{shown}");
        assert_eq!(shown.lines().count(), 3, "{shown}");
    }
    // It comes with that remark, until somebody finds it right.
    let recalled = |session: &str| {
        let mut payload = home.payload("UserPromptSubmit", session);
        payload["prompt"] = "Where do the rate limits of the middleware live?".into();
        home.hook(&payload).stdout
    };
    let remarked = recalled("5b0c8f1e-before");
    assert!(
        remarked.contains("stale: middleware/limit.rs is gone"),
        "{remarked}"
    );
    let started = home.hook(&home.start("5b0c8f1e-start", "startup")).stdout;
    assert!(
        started.contains("stale: middleware/limit.rs is gone"),
        "{started}"
    );
    home.run("verify B2M6RD").well();
    assert_eq!(home.run("stale").well(), "no note seems outdated\n");
    let recalled = recalled("5b0c8f1e-after");
    assert!(
        recalled.contains("#B2M6RD") && !recalled.contains("stale"),
        "{recalled}"
    );
}
