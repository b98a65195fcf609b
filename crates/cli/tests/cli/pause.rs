//! What switches recording off: `pause`, excluded folders, settings that cannot be understood.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anamnesis_testkit::home::{Invocation, TestHome, answered, asked, edited, files_below};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{NO_OP, SESSION, home, home_with_notes, journal::Played, snapshot};

/// Words that only the session of these tests holds.
const MARKER: &str = "heron";

/// A home with notes and an index, and a session with something to note.
fn with_session() -> TestHome {
    let home = home_with_notes();
    home.run("reindex").well();
    home.write_transcript(
        SESSION,
        &[
            asked(&format!("Add {MARKER} limits to the login")),
            edited("/srv/shop/src/heron.rs"),
        ],
    );
    home
}

/// The payload of every event that is acted on, with this folder as the shell's.
fn payloads(home: &TestHome, cwd: &Path) -> Vec<Value> {
    [
        "SessionStart",
        "UserPromptSubmit",
        "PreCompact",
        "SessionEnd",
    ]
    .iter()
    .map(|event| {
        let mut payload = home.payload(event, SESSION);
        if *event == "SessionStart" {
            payload["source"] = "startup".into();
        }
        payload["cwd"] = json!(cwd);
        payload["prompt"] = format!("/memory-remember the {MARKER} is in the login").into();
        payload
    })
    .collect()
}

/// Runs all hooks of a session whose shell stands in `cwd`, as `set` changes them, and checks that
/// they give nothing and leave nothing: not a byte of the store changes.
fn check_off<'a>(
    home: &'a TestHome,
    cwd: &Path,
    set: impl Fn(Invocation<'a>) -> Invocation<'a>,
    case: &str,
) {
    let before = files(home);
    for payload in payloads(home, cwd) {
        let output = set(home.hook_with(payload.to_string())).run();
        assert_eq!(output.well(), NO_OP, "{case}: {payload}");
    }
    // What is no payload is not even complained about.
    if cwd.is_dir() {
        assert_eq!(set(home.hook_with("{")).within(cwd).run().well(), NO_OP);
    }
    home.settle();
    let after = files(home);
    let names = |files: &[(PathBuf, Vec<u8>)]| {
        let names = files.iter().map(|(path, _)| path.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&after), names(&before), "{case}");
    for ((path, after), (_, before)) in after.iter().zip(&before) {
        assert!(after == before, "{case}: {} changed", path.display());
        let text = String::from_utf8_lossy(after);
        assert!(
            !text.contains(MARKER) && !text.contains(SESSION),
            "{case}: {}",
            path.display()
        );
    }
}

/// Runs the same hooks and checks that they do give and keep something.
fn check_on(home: &TestHome, cwd: &Path, case: &str) {
    let outputs: Vec<String> = payloads(home, cwd)
        .iter()
        .map(|payload| home.hook(payload).well())
        .collect();
    assert!(outputs[0].contains("<anamnesis-context>"), "{case}");
    assert!(outputs[1].contains("saved #"), "{case}");
    home.settle();
    let notes = home
        .notes()
        .iter()
        .map(|path| home.read(path))
        .collect::<String>();
    assert!(notes.contains("Add heron limits"), "{case}");
}

/// Every file of the store with its bytes, by path. Lock files hold none.
fn files(home: &TestHome) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    files_below(&home.store()).into_iter().map(read).collect()
}

#[test]
fn a_project_is_paused_and_resumed() {
    let home = with_session();
    snapshot!(home.run("pause").shown(), @"
    exit 0
    paused github.com/acme/shop: its sessions are not recorded, and no notes are injected
    Resume: anamnesis on
    ");
    snapshot!(home.run("pause").shown(), @"
    exit 0
    github.com/acme/shop is paused already
    Resume: anamnesis on
    ");
    snapshot!(home.read("config.json"), @r#"
    {
      "trusted_variables": ["ANAMNESIS_MACHINE_ID","ANAMNESIS_NOW","ANAMNESIS_REFLECT_MIN_EPISODICS"],
      "paused": [
        "github.com/acme/shop"
      ]
    }
    "#);
    check_off(&home, &home.project(), |hook| hook, "paused");
    // What is asked for by a command is done.
    let written = home.run("write --title Kept --kind fact").well();
    assert!(written.contains("saved #"), "{written}");
    // Another project goes on.
    let other = home.root().join("cart");
    anamnesis_testkit::home::git_repository(&other, Some("git@github.com:acme/cart.git"));
    let start = home.start(SESSION, "startup").to_string();
    let output = home
        .hook_with(start)
        .env("CLAUDE_PROJECT_DIR", &other)
        .run();
    assert!(output.well().contains("Jenkins"));

    snapshot!(home.run("resume").shown(), @"
    exit 0
    resumed github.com/acme/shop
    ");
    snapshot!(home.run("resume").shown(), @"
    exit 0
    github.com/acme/shop was not paused
    ");
    assert!(!home.read("config.json").contains("paused"));
    check_on(&home, &home.project(), "resumed");
}

#[test]
fn a_project_is_paused_by_its_key() {
    let home = with_session();
    snapshot!(home.command(["pause", "--project", "My Shop"]).run().shown(), @"
    exit 0
    paused My Shop: its sessions are not recorded, and no notes are injected
    Resume: anamnesis on --project 'My Shop'
    ");
    snapshot!(home.run("pause --project GitHub.com/Acme/Shop").shown(), @"
    exit 0
    paused GitHub.com/Acme/Shop: its sessions are not recorded, and no notes are injected
    Resume: anamnesis on --project GitHub.com/Acme/Shop
    ");
    check_off(&home, &home.project(), |hook| hook, "by its key");
    snapshot!(home.run("resume --project github.com/acme/shop").shown(), @"
    exit 0
    resumed github.com/acme/shop
    ");
    check_on(&home, &home.project(), "another one is paused");
    snapshot!(home.command(["pause", "--project", " "]).run().shown(), @"
    exit 2
    on stderr:
    anamnesis: --project is empty
    ");
}

#[test]
fn everything_is_paused_and_resumed() {
    let home = with_session();
    home.run("pause --project cart").well();
    snapshot!(home.run("pause --all").shown(), @"
    exit 0
    paused everywhere: no session is recorded, and no notes are injected
    Resume: anamnesis on --all
    ");
    snapshot!(home.run("pause --all").shown(), @"
    exit 0
    paused everywhere already
    Resume: anamnesis on --all
    ");
    snapshot!(home.read("config.json"), @r#"
    {
      "trusted_variables": ["ANAMNESIS_MACHINE_ID","ANAMNESIS_NOW","ANAMNESIS_REFLECT_MIN_EPISODICS"],
      "paused": [
        true,
        "cart"
      ]
    }
    "#);
    check_off(&home, &home.project(), |hook| hook, "everywhere");
    check_off(
        &home,
        home.root(),
        |hook| hook.without("CLAUDE_PROJECT_DIR"),
        "everywhere",
    );
    snapshot!(home.run("resume").shown(), @"
    exit 3
    github.com/acme/shop was not paused
    Still off: paused everywhere
    → anamnesis on --all
    ");
    snapshot!(home.run("resume --project cart").shown(), @"
    exit 3
    resumed cart
    Still off: paused everywhere
    → anamnesis on --all
    ");
    home.run("pause --project cart").well();
    snapshot!(home.run("resume --all").shown(), @"
    exit 0
    resumed everywhere
    Still paused by project:
      cart · anamnesis on --project cart
    ");
    snapshot!(home.run("resume --all").shown(), @"
    exit 0
    not paused everywhere
    Still paused by project:
      cart · anamnesis on --project cart
    ");
    check_on(&home, &home.project(), "resumed");
}

#[test]
fn before_the_first_session_nothing_is_made() {
    let home = home();
    home.write("config.json", r#"{"paused": true}"#);
    check_off(&home, &home.project(), |hook| hook, "no store yet");
    assert_eq!(files(&home).len(), 1);
}

#[test]
fn an_agent_may_pause_and_not_resume() {
    let home = home();
    home.command(["pause"]).by_agent().run().well();
    snapshot!(home.command(["resume"]).by_agent().run().shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can resume recording
    → run this command in a terminal of your own
    ");
    let all = home.command(["resume", "--all"]).by_agent().run();
    assert_eq!((all.code, &*all.stdout), (Some(1), ""));
    assert!(home.read("config.json").contains("github.com/acme/shop"));
}

#[test]
fn what_others_wrote_into_the_settings_stays() {
    let home = home();
    let others = r#"{"b": {"y": 1e2,  "x": [ 2 ]}, "paused": ["cart"], "a": "\u00e9", "session_line": "on"}"#;
    home.write("config.json", others);
    home.run("pause").well();
    home.run("pause --all").well();
    snapshot!(home.read("config.json"), @r#"
    {
      "b": {"y": 1e2,  "x": [ 2 ]},
      "paused": [
        true,
        "cart",
        "github.com/acme/shop"
      ],
      "a": "\u00e9",
      "session_line": "on",
      "trusted_variables": ["ANAMNESIS_MACHINE_ID","ANAMNESIS_NOW","ANAMNESIS_REFLECT_MIN_EPISODICS"]
    }
    "#);
    home.run("resume").shown();
    home.run("resume --all").well();
    home.run("resume --project cart").well();
    snapshot!(home.read("config.json"), @r#"
    {
      "b": {"y": 1e2,  "x": [ 2 ]},
      "a": "\u00e9",
      "session_line": "on",
      "trusted_variables": ["ANAMNESIS_MACHINE_ID","ANAMNESIS_NOW","ANAMNESIS_REFLECT_MIN_EPISODICS"]
    }
    "#);
    // Nothing is written over what makes no sense.
    for broken in ["{ broken", r#"{"paused": {"shop": true}}"#] {
        home.write("config.json", broken);
        let written = home.read("config.json");
        for arguments in ["pause", "pause --all", "resume", "resume --all"] {
            let output = home.run(arguments);
            assert_eq!((output.code, &*output.stdout), (Some(1), ""), "{arguments}");
            assert!(
                output.stderr.contains("; fix the file first\n"),
                "{output:?}"
            );
        }
        assert_eq!(home.read("config.json"), written);
    }
}

#[test]
fn settings_that_may_say_that_it_is_off_and_make_no_sense_switch_it_off() {
    // CAP-14
    let home = with_session();
    for broken in [
        r#"{"exclude": ["~/secret",]}"#,
        r#"{"exclude": [3]}"#,
        r#"{"paused": "yes", "exclude": {}}"#,
        r#"{"paused": 1}"#,
        r#"{"recording": {"headless": "never"}}"#,
        "",
        "\0\0\0\0",
        r#"{"recording": {"#,
    ] {
        home.write("config.json", broken);
        check_off(&home, &home.project(), |hook| hook, broken);
        let doctor = home.run("doctor");
        assert_eq!(doctor.code, Some(3));
        assert!(doctor.stdout.contains("→ fix config.json\n"), "{doctor:?}");
    }
    home.write("config.json", r#"{"machine_id": 3}"#);
    check_on(&home, &home.project(), "another setting");
}

/// A home in which the folder `secret` beside the project is excluded.
#[cfg(unix)]
fn with_excluded() -> (TestHome, PathBuf) {
    use std::os::unix::fs::symlink;

    let home = with_session();
    let secret = home.root().join("secret");
    fs::create_dir_all(secret.join("deep/er")).unwrap();
    fs::create_dir_all(home.root().join("secret2")).unwrap();
    symlink(&secret, home.project().join("link")).unwrap();
    home.write(
        "config.json",
        json!({ "exclude": [secret.to_string_lossy()] }).to_string(),
    );
    (home, secret)
}

#[cfg(unix)]
#[test]
fn an_excluded_folder_leaves_no_trace() {
    let (home, secret) = with_excluded();
    let elsewhere = home.root().join("secret2");
    for folder in [
        secret.clone(),
        secret.join("deep/er"),
        secret.join("not/made/yet"),
        secret.join("../secret"),
        home.project().join("link"),
        home.project().join("link/deep"),
    ] {
        let case = folder.display().to_string();
        // The session's project is there.
        check_off(
            &home,
            &folder,
            |hook| hook.env("CLAUDE_PROJECT_DIR", &folder),
            &case,
        );
        // The shell went elsewhere since.
        check_off(
            &home,
            &elsewhere,
            |hook| hook.env("CLAUDE_PROJECT_DIR", &folder),
            &case,
        );
        // The session's project is elsewhere, and the shell went there.
        check_off(&home, &folder, |hook| hook, &case);
        // Nobody says where the project is.
        check_off(
            &home,
            &folder,
            |hook| hook.without("CLAUDE_PROJECT_DIR"),
            &case,
        );
    }
    check_on(&home, &elsewhere, "a name that begins like it");
}

#[cfg(unix)]
#[test]
fn an_excluded_folder_in_mid_session() {
    let (home, secret) = with_excluded();
    let payload = |event: &str, cwd: &Path| {
        let mut payload = home.payload(event, SESSION);
        payload["cwd"] = json!(cwd);
        payload["prompt"] = format!("/memory-remember the {MARKER}").into();
        home.hook(&payload).well()
    };
    assert!(payload("SessionStart", &home.project()).contains("<anamnesis-context>"));
    home.settle();
    let notes = home.notes();
    assert_eq!(payload("UserPromptSubmit", &secret), NO_OP);
    assert_eq!(payload("PreCompact", &secret.join("deep")), NO_OP);
    assert_eq!(home.notes(), notes);
    // Back again.
    assert!(payload("UserPromptSubmit", &home.project()).contains("saved #"));
    // The client ends while the shell stands there.
    let notes = home.notes();
    assert_eq!(payload("SessionEnd", &secret), NO_OP);
    assert_eq!(home.notes(), notes);
}

#[cfg(unix)]
#[test]
fn the_rest_of_a_turn_that_enters_an_excluded_folder_is_not_recorded() {
    // CAP-03
    let (home, secret) = with_excluded();
    let send = |event: &str, prompt_id: &str, cwd: &Path, fields: Value| {
        let mut payload = home.payload(event, "9c1f0a52-0000-4000-8000-000000000009");
        payload["cwd"] = json!(cwd);
        payload["prompt_id"] = json!(prompt_id);
        for (key, value) in fields.as_object().unwrap() {
            payload[key] = value.clone();
        }
        home.hook(&payload).well();
    };
    let call = |id: &str, command: &str| {
        json!({
            "tool_name": "Bash", "tool_use_id": id, "tool_input": { "command": command },
            "tool_response": { "stdout": "", "stderr": "" },
        })
    };
    let project = home.project();
    send("SessionStart", "", &project, json!({ "source": "startup" }));
    for (prompt_id, typed_in, is_locked) in [
        ("p-1", &project, false),
        ("p-2", &secret, false),
        ("p-3", &project, true),
    ] {
        let prompt = json!({ "prompt": "Look at what the client has" });
        send("UserPromptSubmit", prompt_id, typed_in, prompt);
        home.settle();
        let inside = call(&format!("{prompt_id}-a"), "ls");
        let lock = Connection::open(home.store().join("journal.db")).unwrap();
        if is_locked {
            lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        }
        send("PostToolUse", prompt_id, &secret, inside);
        drop(lock);
        let outside = call(&format!("{prompt_id}-b"), &format!("grep {MARKER} a"));
        send("PostToolUse", prompt_id, &project, outside);
        let answer = json!({ "last_assistant_message": format!("I found the {MARKER}.") });
        send("Stop", prompt_id, &project, answer);
        home.settle();
    }
    let prompt = json!({ "prompt": "Add limits to the login of the shop" });
    send("UserPromptSubmit", "p-4", &project, prompt);
    let edit = call("p-4-a", "cargo test");
    send("PostToolUse", "p-4", &project, edit);
    send("SessionEnd", "p-4", &project, json!({ "reason": "other" }));
    home.settle();
    let notes = home.notes();
    let mut texts = notes.iter().map(|path| home.read(path));
    assert!(texts.any(|text| text.contains("Add limits to the login")));
    for (path, bytes) in files(&home) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(MARKER), "{}", path.display());
    }
}

#[cfg(unix)]
#[test]
fn what_was_said_in_an_excluded_folder_is_in_no_note() {
    let (home, secret) = with_excluded();
    let within = |folder: &Path, mut turn: Value| {
        turn["cwd"] = json!(folder);
        turn
    };
    let link = home.project().join("link/deep");
    home.write_transcript(
        SESSION,
        &[
            asked("Add limits to the login"),
            answered("Limits added."),
            within(&secret, asked(MARKER)),
            within(&link, edited(&format!("/srv/{MARKER}"))),
            answered(&format!("The {MARKER} is done.")),
        ],
    );
    home.hook(&home.payload("SessionEnd", SESSION)).well();
    home.settle();
    let notes = home.notes();
    let note = notes
        .iter()
        .map(|path| home.read(path))
        .find(|text| text.contains("Add limits to the login"));
    assert!(note.is_some_and(|text| text.contains("Limits added.")));
    for (path, bytes) in files(&home) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(MARKER), "{}", path.display());
    }
}

#[cfg(unix)]
#[test]
fn patterns_of_excluded_folders() {
    let home = with_session();
    let work = home.user().join("work/keys");
    fs::create_dir_all(&work).unwrap();
    for pattern in [
        "~/work",
        "~/work/",
        "~/*/keys",
        "**/keys",
        "keys",
        "~/w?rk/**",
        "~",
    ] {
        home.write("config.json", json!({ "exclude": pattern }).to_string());
        check_off(&home, &work, |hook| hook, pattern);
    }
    home.write(
        "config.json",
        json!({ "exclude": ["~/wor", "~/work/keys2", ""] }).to_string(),
    );
    check_on(&home, &work, "no pattern matches");
}

#[cfg(unix)]
#[test]
fn status_and_doctor_say_what_is_off() {
    let (home, secret) = with_excluded();
    let off = |home: &TestHome, folder: &Path| {
        let status = home.command(["status"]).within(folder).run().well();
        let doctor = home.command(["doctor"]).within(folder).run();
        let mut rows = doctor
            .stdout
            .lines()
            .skip_while(|line| !line.contains(" privacy "));
        let first = rows.next().unwrap_or_default();
        let more = rows.take_while(|line| line.starts_with("      "));
        let lines: Vec<&str> = [status.lines().next().unwrap_or_default(), first]
            .into_iter()
            .chain(more)
            .collect();
        // It is off because somebody wanted so: no failure.
        assert_eq!(doctor.code, Some(0), "{doctor:?}");
        lines.join("\n")
    };
    snapshot!(off(&home, &home.project()), @"
    store: ~/.anamnesis · on · machine laptop · 0.1.0
    ✓ privacy    for you alone
    ");
    snapshot!(off(&home, &secret.join("deep")), @"
    store: ~/.anamnesis · off (this folder is excluded) · machine laptop · 0.1.0
    ✓ privacy    for you alone
                 off: this folder is excluded; nothing is recorded or injected
                 → see `exclude` and `recording.only`: anamnesis config list
    ");
    home.run("pause").well();
    snapshot!(off(&home, &home.project()), @"
    store: ~/.anamnesis · off (paused here) · machine laptop · 0.1.0
    ✓ privacy    for you alone
                 off: paused here; nothing is recorded or injected
                 → anamnesis on
    ");
    snapshot!(off(&home, &home.root().join("secret2")), @"
    store: ~/.anamnesis · on · machine laptop · 0.1.0
    ✓ privacy    for you alone
    ");
    home.run("pause --all").well();
    snapshot!(off(&home, &home.project()), @"
    store: ~/.anamnesis · off (paused everywhere) · machine laptop · 0.1.0
    ✓ privacy    for you alone
                 off: paused everywhere; nothing is recorded or injected
                 → anamnesis on --all
    ");
    let status = home.run("status --json").json();
    assert_eq!(status["off"], json!(true));
    assert_eq!(status["off_because"], json!("paused everywhere"));
}

#[test]
fn silence_is_no_fault_while_it_is_off_or_just_after() {
    let home = with_session();
    let settings = json!({ "enabledPlugins": { "anamnesis@anamnesis": true } });
    fs::write(home.claude().join("settings.json"), settings.to_string()).unwrap();
    // The hooks ran at the time that counts as now, the transcript is as young as this test.
    home.hook(&home.start(SESSION, "startup")).well();
    let is_silent = || {
        home.run("doctor")
            .stdout
            .contains("✗ hooks      none ran since")
    };
    assert!(is_silent());
    home.run("pause").well();
    assert!(!is_silent());
    home.run("resume").well();
    assert!(!is_silent());
    fs::remove_file(home.store().join("config.json")).unwrap();
    assert!(is_silent());
}

#[test]
fn only_listed_folders_are_recorded() {
    let home = with_session();
    home.command(["config", "set", "recording.only", "~/elsewhere"])
        .run()
        .well();
    check_off(&home, &home.project(), |hook| hook, "not listed");
    // An invalid list must not record everything.
    let only = home.read("config.json");
    home.write(
        "config.json",
        only.replace("[\n    \"~/elsewhere\"", "[\n    3"),
    );
    check_off(&home, &home.project(), |hook| hook, "invalid");
    home.write("config.json", &only);
    let project = home.project();
    let words = ["config", "set", "recording.only"].map(str::to_owned);
    let words = words.into_iter().chain([project.display().to_string()]);
    home.command(words).run().well();
    check_on(&home, &home.project(), "listed");
}

#[test]
fn a_note_covers_what_was_recorded_around_a_pause() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says("Add limits to the login");
    session.edits("src/login.rs");
    home.run("off").well();
    session.says(&format!("Rename the {MARKER}"));
    session.edits(&format!("src/{MARKER}.rs"));
    home.run("on").well();
    session.says("Leave addresses out of the log");
    session.edits("src/log.rs");
    session.answers("The log has no addresses now, because of the law.");
    session.ends();
    home.settle();
    let note = home.read(&home.notes()[0]);
    for part in ["Add limits to the login", "login.rs", "log.rs"] {
        assert!(note.contains(part), "{part}: {note}");
    }
    assert!(!note.contains(MARKER), "{note}");
}

#[test]
fn a_pause_covers_every_clone_and_earlier_key_of_the_project() {
    let home = home_with_notes();
    home.run("project merge github.com/acme/cart github.com/acme/shop")
        .well();
    home.run("off").well();
    for (folder, address) in [
        ("clone", "https://github.com/acme/shop"),
        ("cart", "git@github.com:acme/cart.git"),
        ("other", "git@github.com:acme/other.git"),
    ] {
        let clone = home.root().join(folder);
        anamnesis_testkit::home::git_repository(&clone, Some(address));
        let status = home.command(["status"]).within(&clone).run().well();
        assert_eq!(
            status.contains("off (paused here)"),
            folder != "other",
            "{status}"
        );
    }
}
