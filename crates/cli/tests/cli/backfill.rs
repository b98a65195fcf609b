//! Sessions from before the install become notes: listed first, written once, none that should not be.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anamnesis_testkit::{
    home::{TestHome, answered, asked, edited},
    wait_for,
};
use serde_json::json;

use crate::{home, snapshot, untouched_home};

/// A day after the recorded sessions.
const LATER: &str = "2026-11-24T03:04:05Z";

/// Puts the recorded sessions where the client keeps them.
fn samples(home: &TestHome) {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../session/tests/fixtures/transcripts");
    let target = home.claude().join("projects/-home-dev-project");
    fs::create_dir_all(&target).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
    }
}

/// Writes the transcript of a session of the home's project.
fn past(home: &TestHome, session: &str, time: &str, ask: &str) -> PathBuf {
    let mut turns = [
        asked(ask),
        edited("/srv/shop/src/limit.rs"),
        answered("Done, and all of the tests pass."),
    ];
    for turn in &mut turns {
        turn["timestamp"] = time.into();
    }
    let path = home.write_transcript(session, &turns);
    let time = chrono::DateTime::parse_from_rfc3339(time).unwrap();
    changed_at(&path, time.into());
    path
}

/// Sets when a file was last written to.
fn changed_at(path: &Path, time: SystemTime) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

/// A few sessions of December.
fn december(home: &TestHome) {
    for (session, day, ask) in [
        ("a", 3, "Add rate limits to the login"),
        ("b", 5, "Let the cart have limits, too"),
        ("c", 9, "Why is the build slow?"),
    ] {
        past(home, session, &format!("2025-12-0{day}T10:00:00Z"), ask);
    }
}

/// Every file below a folder, with its bytes.
fn bytes_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(bytes_below(&path));
        } else if path.is_file() {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

/// The reasons for which sessions are left out, with their numbers.
fn reasons(home: &TestHome, words: &str) -> BTreeMap<String, usize> {
    let found = home.run(&format!("backfill --json {words}")).json();
    let mut reasons = BTreeMap::new();
    for skipped in found["skipped"].as_array().unwrap() {
        let reason = skipped["reason"].as_str().unwrap().to_owned();
        *reasons.entry(reason).or_default() += 1;
    }
    reasons
}

fn titles(home: &TestHome, words: &str) -> Vec<String> {
    let found = home.run(&format!("backfill --json {words}")).json();
    let sessions = found["sessions"].as_array().unwrap();
    sessions
        .iter()
        .map(|session| session["title"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_recorded_sessions() {
    let home = home();
    samples(&home);
    let run = |words: &str| {
        home.command(words.split_whitespace())
            .env("ANAMNESIS_NOW", LATER)
            .run()
            .shown()
    };
    snapshot!(run("backfill"), @"
    exit 0
    0 sessions of github.com/acme/shop can get a note.
    3 sessions of other projects can get one · --everywhere
    ");
    let before = bytes_below(home.root());
    snapshot!(run("backfill --everywhere"), @"
    exit 0
    3 sessions can get a note:
    project
      59M416  2026-11-21  Change of w.txt
      ZT159R  2026-11-21  hello tui
      DBP220  2026-11-21  Change of hello2.txt
    5 sessions skipped:
           4  nothing worth a note
           1  no session id in the transcript
    → anamnesis backfill --apply --everywhere
    ");
    assert!(before == bytes_below(home.root()), "a list changed a byte");
    snapshot!(run("backfill --everywhere --apply"), @"
    exit 0
    3 sessions got a note:
    project
      59M416  2026-11-21  Change of w.txt
      ZT159R  2026-11-21  hello tui
      DBP220  2026-11-21  Change of hello2.txt
    5 sessions skipped:
           4  nothing worth a note
           1  no session id in the transcript
    Undo: anamnesis undo [BATCH]
    Undo one: anamnesis forget 59M416
    ");
    assert_eq!(home.notes().len(), 3);
    snapshot!(home.read(&home.notes()[0]), @"
    ---
    id: 1JYH51XAM8DHQRVPHJ2NZT159R
    type: episodic
    title: hello tui
    project: project
    machine_id: laptop
    scope: portable
    prov_source: session-end
    confidence: 0.6
    prov_session: ac683900-8d0b-4d01-acaa-3d582848310f
    created_at: '2026-11-21T20:36:13+00:00'
    updated_at: '2026-11-21T20:36:24+00:00'
    tags:
    - session
    - backfill
    ---
    **Outcome:** Third after compact.

    **Files:** a.txt
    ");
    snapshot!(run("backfill --everywhere"), @"
    exit 0
    0 sessions can get a note.
    8 sessions skipped:
           3  a note exists
           4  nothing worth a note
           1  no session id in the transcript
    ");
    let before = bytes_below(&home.store().join("memory"));
    snapshot!(run("backfill --everywhere --apply"), @"
    exit 0
    0 sessions got a note.
    8 sessions skipped:
           3  a note exists
           4  nothing worth a note
           1  no session id in the transcript
    ");
    assert!(before == bytes_below(&home.store().join("memory")));
    assert!(run("search rename").starts_with("exit 0\n"));
    assert_eq!(home.log(), [""; 0]);
}

#[test]
fn a_list_and_its_notes() {
    let home = untouched_home();
    december(&home);
    snapshot!(home.run("backfill").shown(), @"
    exit 0
    3 sessions of github.com/acme/shop can get a note:
      1K57EC  2025-12-09  Why is the build slow?
      1498A7  2025-12-05  Let the cart have limits, too
      GTPRM2  2025-12-03  Add rate limits to the login
    → anamnesis backfill --apply
    ");
    // A list of a project that has no store makes none.
    assert!(!home.store().exists());
    snapshot!(home.run("backfill --limit 1 --since 2025-12-04").shown(), @"
    exit 0
    1 session of github.com/acme/shop can get a note:
      1K57EC  2025-12-09  Why is the build slow?
    2 transcripts not read
    → anamnesis backfill --apply --since 2025-12-04 --limit 1
    ");
    snapshot!(home.run("backfill --limit 1 --since 2025-12-04 --json").stdout, @r#"
    {
      "applied": false,
      "sessions": [
        {
          "session": "c",
          "note": "6EM9XM3WEQWRAYD8GP0W1K57EC",
          "project": "github.com/acme/shop",
          "title": "Why is the build slow?",
          "began": "2025-12-09T10:00:00+00:00",
          "ended": "2025-12-09T10:00:00+00:00"
        }
      ],
      "skipped": [],
      "elsewhere": 0,
      "not_looked_at": 2,
      "change": null
    }
    "#);
    snapshot!(home.run("backfill --apply").shown(), @"
    exit 0
    3 sessions of github.com/acme/shop got a note:
      1K57EC  2025-12-09  Why is the build slow?
      1498A7  2025-12-05  Let the cart have limits, too
      GTPRM2  2025-12-03  Add rate limits to the login
    Undo: anamnesis undo [BATCH]
    Undo one: anamnesis forget 1K57EC
    ");
    let note = home
        .notes()
        .into_iter()
        .map(|path| home.read(&path))
        .find(|note| note.contains("Add rate"))
        .unwrap();
    snapshot!(note, @"
    ---
    id: 5ZCH2H7WQ9WAA8HPXCY3GTPRM2
    type: episodic
    title: Add rate limits to the login
    project: github.com/acme/shop
    machine_id: laptop
    scope: portable
    prov_source: session-end
    confidence: 0.6
    prov_session: a
    created_at: '2025-12-03T10:00:00+00:00'
    updated_at: '2025-12-03T10:00:00+00:00'
    tags:
    - session
    - backfill
    ---
    **Outcome:** Done, and all of the tests pass.

    **Files:** /srv/shop/src/limit.rs
    ");
    snapshot!(home.run("sessions").shown(), @"
    exit 0
    3 sessions without records, noted by backfill:
    1K57EC  session     Why is the build slow?                                  23 d
    1498A7  session     Let the cart have limits, too                           27 d
    GTPRM2  session     Add rate limits to the login                            29 d
    ");
    let sessions = home.run("sessions --json").json();
    assert_eq!(sessions["total"], 0);
    assert_eq!(
        sessions["backfilled"][2]["title"],
        "Add rate limits to the login"
    );
    snapshot!(home.run("list").shown(), @"
    exit 0
    1K57EC  session     Why is the build slow?                                  23 d
    1498A7  session     Let the cart have limits, too                           27 d
    GTPRM2  session     Add rate limits to the login                            29 d
    ");
    snapshot!(home.run("backfill").shown(), @"
    exit 0
    0 sessions of github.com/acme/shop can get a note.
    3 sessions skipped:
           3  a note exists
    ");
}

#[test]
fn the_sessions_of_one_project() {
    let home = home();
    december(&home);
    // Its folder is gone: the name is what is left of it.
    let mut turns = [
        asked("Give the cart a limit"),
        edited("/gone/Cart/src/a.rs"),
    ];
    for turn in &mut turns {
        turn["cwd"] = "/gone/Cart".into();
        turn["timestamp"] = "2025-12-07T10:00:00Z".into();
    }
    home.write_transcript("cart", &turns);
    assert_eq!(titles(&home, "").len(), 3);
    assert_eq!(titles(&home, "--project cart"), ["Give the cart a limit"]);
    assert_eq!(titles(&home, "--everywhere").len(), 4);
    snapshot!(home.run("backfill --everywhere --all").shown(), @"
    exit 0
    4 sessions can get a note:
    github.com/acme/shop
      1K57EC  2025-12-09  Why is the build slow?
      1498A7  2025-12-05  Let the cart have limits, too
      GTPRM2  2025-12-03  Add rate limits to the login
    cart
      VWM08F  2025-12-07  Give the cart a limit
    → anamnesis backfill --apply --everywhere
    ");
    snapshot!(home.run("backfill --project shop").shown(), @"
    exit 0
    0 sessions of shop can get a note.
    4 sessions of other projects can get one · --everywhere
    ");
    assert_eq!(home.run("backfill --since yesterday").code, Some(2));
    assert_eq!(home.run("backfill --project a --everywhere").code, Some(2));
}

#[test]
fn a_long_list_is_a_screen() {
    let home = home();
    for number in 10..40 {
        past(
            &home,
            &format!("s{number}"),
            &format!("2025-11-01T10:{number}:00Z"),
            "Add rate limits to the login, which has none, and to the cart, and write tests for them",
        );
    }
    let shown = home.run("backfill").well();
    assert!(shown.contains("\n20 of 30 shown · --all\n"), "{shown}");
    assert!(shown.lines().count() <= 24);
    assert!(shown.lines().all(|line| line.chars().count() <= 80));
    assert_eq!(home.run("backfill --all").well().lines().count(), 32);
}

#[test]
fn an_interrupted_run_is_finished_by_the_next() {
    let home = home();
    let hours = |ago: u64| SystemTime::now() - Duration::from_secs(ago * 3600);
    for number in 0..10 {
        let path = past(
            &home,
            &format!("s{number}"),
            "2025-12-01T10:00:00Z",
            "Add rate limits to the login",
        );
        changed_at(&path, hours(1 + number));
    }
    // So long that the run is still at it when it is killed.
    let long = home.transcript_path("long");
    let file = File::create(&long).unwrap();
    file.set_len(1 << 40).unwrap();
    changed_at(&long, hours(5) - Duration::from_secs(60));
    let mut run = home.command(["backfill", "--apply"]).start();
    wait_for("the fifth note", || {
        assert!(run.try_wait().unwrap().is_none(), "it ended by itself");
        home.notes().len() == 5
    });
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(home.notes().len(), 5);
    fs::remove_file(long).unwrap();
    assert_eq!(titles(&home, "").len(), 5);
    assert!(
        home.run("backfill --apply")
            .well()
            .starts_with("5 sessions")
    );
    assert_eq!(home.notes().len(), 10);
    assert_eq!(
        reasons(&home, "--apply"),
        BTreeMap::from([("noted".to_owned(), 10)])
    );
    assert_eq!(home.notes().len(), 10);
    assert_eq!(home.run("list --json").json()["total"], 10);
}

#[test]
fn what_was_forgotten_or_changed_stays_so() {
    let home = home();
    december(&home);
    home.run("backfill --apply").well();
    let short = |title: &str| {
        let found = home.run("list --json").json();
        let notes = found["notes"].as_array().unwrap();
        let note = notes.iter().find(|note| note["title"] == title).unwrap();
        let id = note["id"].as_str().unwrap();
        (id.to_owned(), note["path"].as_str().unwrap().to_owned())
    };
    let (forgotten, _) = short("Add rate limits to the login");
    home.run(&format!("forget {forgotten}")).well();
    let (gone, path) = short("Let the cart have limits, too");
    home.run(&format!("forget {gone}")).well();
    // Even without its tombstone the text is known.
    fs::remove_file(home.store().join(path)).unwrap();
    let (_, path) = short("Why is the build slow?");
    let changed = home.read(&path).replace("pass.", "pass. My words.");
    home.write(&path, &changed);
    assert_eq!(
        reasons(&home, "--apply"),
        BTreeMap::from([("forgotten".to_owned(), 2), ("noted".to_owned(), 1)])
    );
    assert_eq!(home.read(&path), changed);
    assert_eq!(titles(&home, ""), [""; 0]);
}

#[test]
fn a_note_of_another_program_is_the_sessions_note() {
    let home = home();
    december(&home);
    home.add(
        &anamnesis_testkit::home::NoteText::new(&crate::id("F5XJ2P"), "Rate limits")
            .session()
            .with("prov_session", "a"),
    );
    assert_eq!(titles(&home, "").len(), 2);
    home.run("backfill --apply").well();
    assert_eq!(home.notes().len(), 3);
}

#[cfg(unix)]
#[test]
fn hostile_files() {
    // CAP-06, CAP-07, CAP-11
    use std::os::unix::fs::symlink;

    let home = home();
    let folder = home.claude().join("projects/-shop");
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    write("binary.jsonl", &[0xff, 0x00, 0xfe, b'\n', 0x80]);
    write("empty.jsonl", b"");
    write("lines.jsonl", b"\n\n  \n");
    write(
        "no-session.jsonl",
        b"{\"type\":\"user\",\"message\":{\"content\":\"Add limits\"}}\n",
    );
    write("agent-1.jsonl", b"{}\n");
    write("notes.txt", b"{}\n");
    symlink("/etc/passwd", folder.join("link.jsonl")).unwrap();
    symlink("/etc", home.claude().join("projects/-etc")).unwrap();
    fs::create_dir(folder.join("folder.jsonl")).unwrap();
    let pipe = std::process::Command::new("mkfifo")
        .arg(folder.join("pipe.jsonl"))
        .status()
        .unwrap();
    assert!(pipe.success());
    // The start of a record and a line without an end around good ones.
    let path = past(
        &home,
        "half",
        "2025-12-01T10:00:00Z",
        "Add limits \u{1b}[31m to the login",
    );
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{}\n{good}{}", &good[..40], &good[..90])).unwrap();
    let path = past(
        &home,
        "long",
        "2025-12-02T10:00:00Z",
        "Add limits to the cart",
    );
    let good = fs::read_to_string(&path).unwrap();
    // Longer than a line may be, which is 8 MiB.
    let long = " ".repeat(9 << 20);
    fs::write(&path, format!("{{{long}}}\n{good}")).unwrap();
    // A subagent's transcript lies deeper.
    fs::create_dir_all(folder.join("half/subagents")).unwrap();
    fs::copy(&path, folder.join("half/subagents/agent-2.jsonl")).unwrap();
    let before = bytes_below(&home.claude());
    snapshot!(home.run("backfill --everywhere --apply --all").shown(), @"
    exit 0
    2 sessions got a note:
    github.com/acme/shop
      4PV0RK  2025-12-02  Add limits to the cart
      3P9BX5  2025-12-01  Add limits to the login
    7 sessions skipped:
           2  nothing worth a note
              ~/.claude/projects/-shop/empty.jsonl
              ~/.claude/projects/-shop/lines.jsonl
           1  no session id in the transcript
              ~/.claude/projects/-shop/no-session.jsonl
           4  the transcript cannot be read
              ~/.claude/projects/-shop/binary.jsonl: no line is a record of a session
              ~/.claude/projects/-shop/folder.jsonl: not a regular file
              ~/.claude/projects/-shop/link.jsonl: a link; not followed
              ~/.claude/projects/-shop/pipe.jsonl: not a regular file
    Undo: anamnesis undo [BATCH]
    Undo one: anamnesis forget 4PV0RK
    ");
    assert!(before == bytes_below(&home.claude()));
    assert_eq!(home.notes().len(), 2);
    for note in home.notes() {
        assert!(!home.read(&note).contains("root:"));
    }
}

#[test]
fn what_is_switched_off_is_left_out() {
    let home = home();
    december(&home);
    let elsewhere = |session: &str, folders: &[&Path]| {
        let mut turns = Vec::new();
        for folder in folders {
            let mut turn = asked(&format!("Look at {}", folder.display()));
            turn["cwd"] = json!(folder);
            turn["timestamp"] = "2025-12-01T10:00:00Z".into();
            turns.push(turn);
        }
        home.write_transcript(session, &turns);
    };
    let secret = home.user().join("secret/plans");
    elsewhere("within", &[&secret]);
    // What began there is excluded as a whole, what went there in part.
    elsewhere("began", &[&secret, &home.project()]);
    elsewhere("went", &[&home.project(), &secret]);
    elsewhere("own", &[&home.store().join("memory")]);
    elsewhere("paused", &[Path::new("/gone/Cart")]);
    home.write(
        "config.json",
        json!({ "exclude": ["~/secret"], "paused": ["CART"] }).to_string(),
    );
    let expected = [("excluded", 2), ("own", 1), ("paused", 1)];
    assert_eq!(
        reasons(&home, "--everywhere"),
        expected
            .map(|(reason, count)| (reason.to_owned(), count))
            .into()
    );
    home.run("backfill --everywhere --apply").well();
    let notes: Vec<String> = home.notes().iter().map(|path| home.read(path)).collect();
    assert_eq!(notes.len(), 4);
    assert!(!notes.iter().any(|note| note.contains("secret")));
    home.write("config.json", json!({ "paused": true }).to_string());
    past(
        &home,
        "d",
        "2025-12-01T10:00:00Z",
        "Add rate limits to the login",
    );
    assert_eq!(reasons(&home, "")["paused"], 1);
    // Who knows what else is paused.
    home.write("config.json", "{\"paused\": [");
    snapshot!(home.run("backfill").shown(), @"
    exit 1
    on stderr:
    anamnesis: config.json cannot be understood
    → fix config.json
    ");
}

#[test]
fn what_the_records_know_is_theirs() {
    let home = home();
    december(&home);
    // Sessions that run now, and one that ended without a word.
    home.hook(&home.start("b", "resume")).well();
    home.hook(&home.start("c", "resume")).well();
    home.hook(&home.start("empty", "startup")).well();
    home.hook(&home.payload("SessionEnd", "empty")).well();
    home.settle();
    past(
        &home,
        "empty",
        "2025-12-01T10:00:00Z",
        "Add rate limits to the login",
    );
    // Anamnesis was there and did not record it: somebody had switched it off.
    past(
        &home,
        "off",
        "2026-01-03T10:00:00Z",
        "Nobody is to know this",
    );
    let late = |words: &str| {
        let mut found = home
            .command(format!("backfill --json {words}").split_whitespace())
            .env("ANAMNESIS_NOW", "2026-02-01T00:00:00Z")
            .run()
            .json();
        found["skipped"].take()
    };
    let reason = |skipped: &serde_json::Value, session: &str| {
        let name = format!("{session}.jsonl");
        let all = skipped.as_array().unwrap();
        let found = all
            .iter()
            .find(|skipped| Path::new(skipped["transcript"].as_str().unwrap()).ends_with(&name));
        found.map(|skipped| skipped["reason"].as_str().unwrap().to_owned())
    };
    let skipped = late("");
    assert_eq!(reason(&skipped, "a"), None);
    assert_eq!(reason(&skipped, "b").as_deref(), Some("open"));
    assert_eq!(reason(&skipped, "c").as_deref(), Some("open"));
    assert_eq!(reason(&skipped, "empty").as_deref(), Some("recorded"));
    assert_eq!(reason(&skipped, "off").as_deref(), Some("unrecorded"));
    assert_eq!(reason(&late("--unrecorded"), "off"), None);
}

#[test]
fn of_a_session_that_went_on_unrecorded_the_part_before_is_told() {
    let home = home();
    let mut turns = [
        asked("Add rate limits to the login"),
        answered("Done, and all of the tests pass."),
        asked("Nobody is to know this"),
        answered("This is what nobody is to know, and what nobody is told."),
    ];
    for (turn, time) in turns.iter_mut().zip(["01-01", "01-01", "01-05", "01-05"]) {
        turn["timestamp"] = format!("2026-{time}T10:00:00Z").into();
    }
    home.write_transcript("long", &turns);
    home.hook(&home.start("other", "startup")).well();
    let apply = |words: &str| {
        home.command(format!("backfill --apply {words}").split_whitespace())
            .env("ANAMNESIS_NOW", "2026-02-01T00:00:00Z")
            .run()
            .well()
    };
    assert!(apply("").starts_with("1 session "));
    let note = home.read(&home.notes()[0]);
    assert!(
        note.contains("tests pass") && !note.contains("nobody"),
        "{note}"
    );
}

#[test]
fn a_session_that_was_used_just_now_can_be_noted_later() {
    let home = home();
    let path = past(
        &home,
        "a",
        "2026-01-02T03:00:00Z",
        "Add rate limits to the login",
    );
    let now = chrono::DateTime::parse_from_rfc3339(anamnesis_testkit::home::NOW).unwrap();
    let at = |minutes: u64| {
        changed_at(
            &path,
            SystemTime::from(now) - Duration::from_secs(minutes * 60),
        );
    };
    at(3);
    assert_eq!(
        reasons(&home, ""),
        BTreeMap::from([("recent".to_owned(), 1)])
    );
    at(31);
    assert_eq!(reasons(&home, ""), BTreeMap::new());
}

#[test]
fn the_agent_may_look() {
    let home = untouched_home();
    december(&home);
    let list = home.command(["backfill"]).by_agent().run().well();
    assert_eq!(list, home.run("backfill").well());
    snapshot!(home.command(["backfill", "--apply"]).by_agent().run().shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can write notes of earlier sessions
    → run this command in a terminal of your own
    ");
    assert!(!home.store().exists());
}

#[test]
fn the_status_offers_the_past_until_there_is_a_note() {
    let home = home();
    let name: String = home
        .project()
        .to_string_lossy()
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect();
    let offer = |home: &TestHome| {
        let status = home.run("status").well();
        let line = status.lines().find(|line| line.starts_with("past:"));
        line.map(str::to_owned)
    };
    december(&home);
    assert_eq!(offer(&home), None);
    let folder = home.claude().join("projects");
    fs::rename(folder.join("-shop"), folder.join(name)).unwrap();
    assert_eq!(
        offer(&home).as_deref(),
        Some("past:  3 earlier sessions of this project can get a note: anamnesis backfill")
    );
    home.run("backfill --apply").well();
    assert_eq!(offer(&home), None);
}

#[test]
fn where_notes_cannot_be_written_it_says_so() {
    let home = home();
    december(&home);
    home.write("memory/semantic/x", "");
    fs::write(home.store().join("memory/episodic"), "").unwrap();
    let output = home.run("backfill --apply");
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.starts_with("0 sessions "), "{output:?}");
    assert!(
        output.stdout.contains("3 transcripts not read"),
        "{output:?}"
    );
    assert!(output.stderr.starts_with("anamnesis: "), "{output:?}");
}

/// The logs were written by the real programs.
#[test]
fn sessions_of_codex_and_gemini_are_listed_and_noted_once() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../session/tests/fixtures/hosts");
    for (host, log, folder, name) in [
        (
            "codex",
            "codex/rollout.jsonl",
            ".codex/sessions/2026/11/23",
            "rollout-2026-11-23T06-29-34-01a20718-7c74-7ba2-ac61-0a6e02f3640c.jsonl",
        ),
        (
            "gemini",
            "gemini/session.jsonl",
            ".gemini/tmp/proj/chats",
            "session-2026-11-23T06-31-df0608e5.jsonl",
        ),
    ] {
        let home = untouched_home();
        let target = home.user().join(folder);
        fs::create_dir_all(&target).unwrap();
        let path = target.join(name);
        fs::copy(fixtures.join(log), &path).unwrap();
        let time = chrono::DateTime::parse_from_rfc3339("2026-11-23T07:00:00Z").unwrap();
        changed_at(&path, time.into());
        let run = |options: &str| {
            let words = format!("backfill --from {host} --everywhere{options}");
            let command = home.command(words.split(' '));
            command.env("ANAMNESIS_NOW", LATER).run()
        };
        let listed = run("").well();
        assert!(listed.contains("1 session can get a note"), "{listed}");
        assert!(listed.contains(&format!("--from {host}")), "{listed}");
        assert_eq!(home.notes(), [""; 0]);
        let done = run(" --apply --json").json();
        assert_eq!(done["sessions"][0]["project"], "proj");
        let notes = home.notes();
        let note = fs::read_to_string(home.store().join(&notes[0])).unwrap();
        assert!(note.contains(&format!("prov_host: {host}")), "{note}");
        assert!(note.contains("Fixed in the Makefile."), "{note}");
        let again = run(" --apply").well();
        assert!(again.contains("a note exists"), "{again}");
    }
}

#[test]
fn codex_is_looked_for_in_codex_home_by_a_person_only() {
    let home = untouched_home();
    let folder = home.user().join("elsewhere");
    let logs = folder.join("sessions/2026/11/23");
    fs::create_dir_all(&logs).unwrap();
    let log = "../session/tests/fixtures/hosts/codex/rollout.jsonl";
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join(log);
    fs::copy(log, logs.join("rollout-a.jsonl")).unwrap();
    let run = |words: &str, agent: &str| {
        let command = home.command(words.split(' '));
        command
            .env("CODEX_HOME", &folder)
            .env("CLAUDECODE", agent)
            .run()
    };
    let found = |agent| {
        let listed = run("backfill --from codex --everywhere --json", agent).json();
        listed["skipped"].as_array().map_or(0, Vec::len)
            + listed["sessions"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((found(""), found("1")), (1, 0));
    let missing = run("import --from codex", "");
    let place = "~/elsewhere/memories_1.sqlite";
    assert!(missing.stderr.contains(place), "{missing:?}");
}

#[cfg(unix)]
#[test]
fn a_link_among_the_logs_of_codex_is_not_followed() {
    let home = untouched_home();
    let target = home.user().join(".codex/sessions/2026/11/23");
    fs::create_dir_all(&target).unwrap();
    let outside = home.write("elsewhere.jsonl", "{}");
    std::os::unix::fs::symlink(outside, target.join("rollout-a.jsonl")).unwrap();
    let said = home.run("backfill --from codex --everywhere").well();
    assert!(said.contains("a link; not followed"), "{said}");
}
