//! What comes in on a hook's stdin: whatever it is, exit 0, silence on stderr, and the no-op.

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::Child,
};

use anamnesis_testkit::{
    home::{Invocation, TestHome, asked, edited, printed},
    wait_for,
};
use serde_json::Value;

use crate::{NO_OP, SESSION, home, home_with_notes};

/// The recorded payloads, by file name.
fn fixtures() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let payload = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                payload,
            )
        })
        .collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert!(found.len() > 50);
    found
}

/// Waits until a running hook answers with the no-op.
fn answers_no_op(hook: &mut Child) {
    let mut answer = vec![0; NO_OP.len()];
    let stdout = hook.stdout.as_mut().unwrap();
    stdout.read_exact(&mut answer).unwrap();
    assert_eq!(answer, NO_OP.as_bytes());
}

#[test]
fn every_recorded_payload_is_answered() {
    // INJ-14, HOOK-08, HOOK-13
    let home = home_with_notes();
    home.run("reindex").well();
    for (name, payload) in fixtures() {
        let output = home.hook(&payload);
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{name}"
        );
        let event = payload["hook_event_name"].as_str().unwrap();
        match event {
            "SessionEnd" => assert_eq!(output.stdout, "", "{name}"),
            "SessionStart" => {
                let answer = output.json();
                // A session that goes on was given them before.
                if payload["source"] != "resume" && payload["source"] != "fork" {
                    assert_eq!(
                        answer["hookSpecificOutput"]["hookEventName"], event,
                        "{name}"
                    );
                }
                assert_eq!(output.stdout.matches('\n').count(), 1, "{name}");
            }
            // What it prints is read as instructions for the summary.
            "PreCompact" => assert!(output.stdout.starts_with("In \""), "{name}"),
            _ => assert_eq!(output.stdout, NO_OP, "{name}"),
        }
    }
    // Each of the sessions has its note, though the recorded transcripts are not on this machine.
    home.settle();
    let sessions = home.notes().len() - 5;
    assert!((1..=4).contains(&sessions), "{:?}", home.notes());
    // Where the deferred process has the index, it takes the note up in place of the hook.
    let mut log = home.log();
    log.retain(|line| !line.contains("is not in the index yet"));
    assert_eq!(log, [""; 0]);
}

#[test]
fn what_is_no_payload_leaves_one_line_in_the_log() {
    // HOOK-06, HOOK-08, INJ-14
    let nested = "[".repeat(100_000);
    let deep = format!("{{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"x\":{nested}");
    let cases: [(&str, &[u8]); 14] = [
        ("empty", b""),
        ("blanks", b" \n\t "),
        ("a byte order mark alone", b"\xef\xbb\xbf"),
        ("words", b"hello"),
        (
            "half an object",
            b"{\"session_id\":\"s\",\"hook_event_name\":\"Sess",
        ),
        ("a list", b"[]"),
        ("a number", b"7"),
        ("null", b"null"),
        ("no event", br#"{"session_id":"s"}"#),
        ("no session", br#"{"hook_event_name":"SessionStart"}"#),
        (
            "an event that is no text",
            br#"{"session_id":"s","hook_event_name":4}"#,
        ),
        (
            "a session that is no text",
            br#"{"session_id":{},"hook_event_name":"Stop"}"#,
        ),
        ("bytes that are no text", b"\xff\xfe\x00\x01"),
        ("brackets without end", deep.as_bytes()),
    ];
    for (name, bytes) in cases {
        let home = home();
        assert_eq!(home.hook_with(bytes).run().well(), NO_OP, "{name}");
        let log = home.log();
        assert_eq!(log.len(), 1, "{name}: {log:?}");
        assert!(
            log[0].starts_with("2026-01-02T03:04:05Z hook: "),
            "{name}: {log:?}"
        );
        assert_eq!(home.notes(), [""; 0], "{name}");
    }
}

#[test]
fn odd_but_honest_payloads_are_taken() {
    // HOOK-13
    let text =
        |own: &str| format!("{{\"session_id\":\"s\",\"hook_event_name\":{own}}}").into_bytes();
    let mut with_mark = b"\xef\xbb\xbf".to_vec();
    with_mark.extend(text("\"Stop\""));
    let mut broken = text("\"UserPromptSubmit\",\"prompt\":\"a?b\"");
    *broken.iter_mut().find(|byte| **byte == b'?').unwrap() = 0xff;
    let deep = format!("\"Stop\",\"x\":{}{}", "[".repeat(60), "]".repeat(60));
    for (name, bytes) in [
        ("a byte order mark", with_mark),
        ("broken UTF-8 in a text", broken),
        (
            "an event of tomorrow",
            text("\"SomethingNew\",\"a\":[null]"),
        ),
        (
            "a prompt that is no text",
            text("\"UserPromptSubmit\",\"prompt\":{\"a\":1}"),
        ),
        (
            "a source that is no text",
            text("\"SessionStart\",\"source\":[]"),
        ),
        (
            "a name of 10,000 characters",
            text(&format!("\"{}\"", "x".repeat(10_000))),
        ),
        ("nested values", text(&deep)),
    ] {
        let home = home();
        assert_eq!(home.hook_with(bytes).run().well(), NO_OP, "{name}");
        assert_eq!(home.log(), [""; 0], "{name}");
    }
}

#[test]
fn a_payload_without_end_is_drained() {
    // HOOK-06
    let home = home();
    let mut payload = b"{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"x\":\"".to_vec();
    payload.resize(64 * 1024 * 1024 + 1, b'x');
    assert_eq!(home.hook_with(payload).run().well(), NO_OP);
    assert_eq!(home.log().len(), 1, "{:?}", home.log());
}

#[test]
fn a_stdin_that_is_never_closed_is_not_waited_for() {
    // HOOK-06
    let home = home();
    let mut child = home.hook_with("").start();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"session_id\":").unwrap();
    assert_eq!(printed(&mut child), NO_OP);
    assert!(child.wait().unwrap().success());
    drop(stdin);
    let log = home.log();
    assert!(
        log.len() == 1 && log[0].contains("gave up after"),
        "{log:?}"
    );
}

#[test]
fn a_payload_that_comes_after_the_answer_is_recorded() {
    let home = home();
    home.hook(&home.start(SESSION, "startup")).well();
    let mut payload = home.payload("UserPromptSubmit", SESSION);
    payload["prompt"] = "Prices are in cents".into();
    let mut child = home.hook_with("").start();
    let mut stdin = child.stdin.take().unwrap();
    answers_no_op(&mut child);
    stdin.write_all(payload.to_string().as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    home.hook(&home.payload("Stop", SESSION)).well();
    let session = home.run(&format!("sessions show {SESSION}")).well();
    assert!(session.contains("Prices are in cents"), "{session}");
}

/// Makes reading the project's name hang: its `.git` is a file, and git's settings are a pipe. Returns the
/// pipe, and the settings beside it.
#[cfg(unix)]
fn with_hanging_config(home: &TestHome) -> (PathBuf, PathBuf) {
    let git = home.project().join(".git");
    let moved = home.project().join("moved.git");
    fs::rename(&git, &moved).unwrap();
    fs::write(&git, "gitdir: moved.git\n").unwrap();
    let config = moved.join("config");
    let put_by = config.with_extension("old");
    fs::rename(&config, &put_by).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&config).status();
    assert!(made.unwrap().success());
    (config, put_by)
}

#[cfg(unix)]
#[test]
fn a_prompt_whose_recall_hangs_is_recorded() {
    let home = home();
    home.hook(&home.start(SESSION, "startup")).well();
    home.settle();
    // The folder is no longer the root of a repository, so recall needs the project's name, and
    // reading it never ends.
    let (config, put_by) = with_hanging_config(&home);

    let mut payload = home.payload("UserPromptSubmit", SESSION);
    payload["prompt"] = "Prices are in cents".into();
    assert_eq!(home.hook(&payload).stdout, NO_OP);
    let log = home.log();
    assert!(log[0].contains("gave up after"), "{log:?}");

    fs::rename(&put_by, &config).unwrap();
    home.hook(&home.payload("Stop", SESSION)).well();
    let session = home.run(&format!("sessions show {SESSION}")).well();
    assert!(session.contains("Prices are in cents"), "{session}");
}

#[cfg(unix)]
#[test]
fn an_event_whose_record_hangs_is_recorded_by_another_process() {
    let home = home();
    home.settle();
    // Recording a prompt of an unknown session needs the project's name, and reading it never ends.
    let (config, put_by) = with_hanging_config(&home);

    let mut payload = home.payload("UserPromptSubmit", SESSION);
    payload["prompt"] = "Prices are in cents".into();
    assert_eq!(home.hook(&payload).stdout, NO_OP);

    let pipe = config.with_extension("pipe");
    fs::rename(&config, &pipe).unwrap();
    fs::rename(&put_by, &config).unwrap();
    // If the other process has opened the pipe, it reads an empty file. Opened for both, it waits for
    // nobody.
    let both = fs::File::options().read(true).write(true).open(&pipe);
    drop(both.unwrap());
    wait_for("the record", || {
        let session = home.run(&format!("sessions show {SESSION}"));
        session.stdout.contains("Prices are in cents")
    });
}

#[test]
fn a_stdout_that_nobody_reads_is_no_error() {
    // HOOK-08
    let home = home_with_notes();
    home.run("reindex").well();
    let payloads = [
        home.start(SESSION, "startup").to_string(),
        home.payload("UserPromptSubmit", SESSION).to_string(),
        "garbage".to_owned(),
    ];
    for payload in payloads {
        let output = home.hook_with(payload).run_into_a_closed_pipe();
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    }
    for command in ["status", "list", "inject", "redact", "help --all"] {
        let output = home.command(command.split(' ')).run_into_a_closed_pipe();
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{command}"
        );
    }
}

#[test]
fn switched_off_means_that_nothing_is_recorded_or_given() {
    // CAP-09: what Anamnesis starts itself is off, too.
    let home = home_with_notes();
    home.run("reindex").well();
    home.write_transcript(SESSION, &[asked("Add limits"), edited("/x/limit.rs")]);
    let records = |home: &TestHome| home.store().join("journal.db").exists();
    let off: [fn(Invocation<'_>) -> Invocation<'_>; 3] = [
        |hook| hook.env("ANAMNESIS_OFF", "1"),
        |hook| hook.env("ANAMNESIS_OFF", "yes"),
        |hook| hook.env("ANAMNESIS_INTERNAL", "1"),
    ];
    for event in [
        "SessionStart",
        "UserPromptSubmit",
        "PreCompact",
        "SessionEnd",
    ] {
        let mut payload = home.payload(event, SESSION);
        payload["prompt"] = "/memory-remember this".into();
        for off in off {
            let output = off(home.hook_with(payload.to_string())).run();
            assert_eq!(output.well(), NO_OP, "{event}");
        }
    }
    assert_eq!(home.notes().len(), 5);
    assert!(!records(&home));
    // `0` and nothing are not off.
    for value in ["0", ""] {
        let payload = home.start(SESSION, "startup").to_string();
        let output = home.hook_with(payload).env("ANAMNESIS_OFF", value).run();
        assert!(output.well().contains("<anamnesis-context>"), "{value}");
    }
    assert!(records(&home));
}

#[test]
fn a_session_in_the_store_itself_is_left_alone() {
    // CAP-09
    let home = home_with_notes();
    home.run("reindex").well();
    let folder = home.store().join("memory");
    let mut payload = home.start(SESSION, "startup");
    payload["cwd"] = folder.to_string_lossy().into();
    let hook = || home.hook_with(payload.to_string()).within(&folder);
    let output = hook().without("CLAUDE_PROJECT_DIR").run();
    assert_eq!(output.well(), NO_OP);
    assert_eq!(
        hook().env("CLAUDE_PROJECT_DIR", &folder).run().well(),
        NO_OP
    );
    assert!(hook().run().well().contains("<anamnesis-context>"));
}

#[cfg(unix)]
#[test]
fn a_hook_whose_stdin_never_closes_ends_with_its_answer() {
    // HOOK-06
    let home = home();
    home.hook(&home.start(SESSION, "startup")).well();
    for sent in ["", r#"{"session_id": "x", "hook_ev"#] {
        let mut child = home.hook_with("").start();
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(sent.as_bytes())
            .unwrap();
        answers_no_op(&mut child);
        // Another one answers after 1.1 s. The first does not wait longer for a record that nobody makes.
        let mut another = home.hook_with("").start();
        answers_no_op(&mut another);
        let ended = child.try_wait().unwrap();
        assert!(ended.is_some_and(|status| status.success()));
        another.wait().unwrap();
    }
}

#[test]
fn words_after_hook_are_no_reason_to_fail() {
    let home = home();
    let payload = home.payload("Stop", SESSION).to_string();
    let output = home
        .command(["hook", "SessionStart", "--async"])
        .input(payload)
        .run();
    assert_eq!(output.well(), NO_OP);
}

#[test]
fn claude_codes_own_files_are_left_alone() {
    // HOOK-07, HOOK-10
    let home = home_with_notes();
    home.write_transcript(SESSION, &[asked("Add limits"), edited("/x/limit.rs")]);
    let own = [
        (
            home.claude().join("settings.json"),
            "{ \"hooks\": {}, // not even JSON",
        ),
        (home.claude().join("CLAUDE.md"), "# Mine"),
        (
            home.claude().join("projects/-shop/memory/MEMORY.md"),
            "- native",
        ),
        (home.project().join("CLAUDE.md"), "# Project"),
        (home.project().join(".claude/settings.json"), "{}"),
    ];
    for (path, text) in &own {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for event in [
        "SessionStart",
        "UserPromptSubmit",
        "PreCompact",
        "SessionEnd",
    ] {
        let _ = home.hook(&home.payload(event, SESSION)).well();
    }
    let _ = home.run("doctor --fix").shown();
    for (path, text) in &own {
        assert_eq!(
            fs::read_to_string(path).unwrap(),
            *text,
            "{}",
            path.display()
        );
    }
    assert_eq!(fs::read_dir(home.project()).unwrap().count(), 3);
}
