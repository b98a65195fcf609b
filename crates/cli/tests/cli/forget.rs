//! `forget --session`: a session, or a prompt of it, for good.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use anamnesis_testkit::home::{
    NoteText, TestHome, answered, asked, edited, files_below, with_slashes,
};
use rusqlite::Connection;
use serde_json::json;

use crate::{
    SESSION, home, id,
    journal::Played,
    sessions::{end, event, hook_at, play},
    snapshot,
};

/// Words that only the played session has.
const WORDS: [&str; 4] = ["rate limits", "limit.rs", "panicked", "the cart"];

#[test]
fn a_change_that_took_effect_is_no_failure_where_the_journal_refuses() {
    let home = home();
    let note = NoteText::new(&id("AAAAA1"), "Deploys need the stub server");
    home.add(&note.body("Run make stub."));
    home.run("sync").well();
    home.hook(&home.start(SESSION, "startup")).well();
    home.settle();
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    for table in ["written_here", "forgotten"] {
        let refuse = format!(
            "CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table}
             BEGIN SELECT raise(ABORT, 'refused'); END"
        );
        connection.execute_batch(&refuse).unwrap();
    }
    drop(connection);
    let changed = home.run("edit AAAAA1 --title Stub");
    assert_eq!(changed.code, Some(0), "{changed:?}");
    let forgotten = home.run("forget AAAAA1");
    assert_eq!(forgotten.code, Some(0), "{forgotten:?}");
    assert!(home.read(&home.notes()[0]).contains("state: forgotten"));
    assert!(home.log().iter().any(|line| line.contains("refused")));
}

/// The files of the store that hold one of these texts, any letter case, with the text.
fn holding(home: &TestHome, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in files_below(&home.store()) {
        let bytes = fs::read(&path).unwrap_or_default().to_ascii_lowercase();
        for text in texts {
            if bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
            {
                let name = path.strip_prefix(home.store()).unwrap();
                found.push(format!("{}: {text}", with_slashes(name)));
            }
        }
    }
    found.sort();
    found
}

fn is_there(home: &TestHome, file: &str) -> bool {
    let held = holding(home, &WORDS);
    held.iter().any(|line| line.starts_with(file))
}

#[test]
fn nothing_of_a_forgotten_session_is_left() {
    // DEL-01
    let home = home();
    play(&home, SESSION);
    end(&home, SESSION, "clear");
    // A record of it waits, and a broken one was set aside.
    let waiting = home.write(
        "spool/01JZ0000000000000000000000.json",
        format!(r#"{{"session":"{SESSION}","words":"rate limits"#),
    );
    let aside = home.write(
        "quarantine/spool-01JZ0000000000000000000001.json",
        format!(r#"{{"session":"{SESSION}","words":"rate limits"#),
    );
    // A process was killed while it wrote the note.
    let note = home.notes()[0].replace("episodic/", "episodic/.") + ".01JZ.tmp";
    let half = home.write(&note, "rate limits");
    for file in ["memory/episodic/", "journal.db", "derived/index-"] {
        assert!(is_there(&home, file), "{file}: the test looks for nothing");
    }
    snapshot!(home.run("forget --session 5b0c8f1e --yes").shown(), @"
    exit 0
    forgot session 5b0c8f1e (2 prompts, 2 tool events), 2 pending records; its note, too
    Hooks, capture and backfill make no note of it again
    The history still has its note: anamnesis purge J8QYZW
    ");
    assert!(!waiting.exists() && !aside.exists() && !half.exists());
    assert_eq!(holding(&home, &WORDS), [""; 0]);
    home.run("maintain").well();
    assert_eq!(holding(&home, &WORDS), [""; 0]);
    assert!(home.run("sessions").well().starts_with("0 sessions"));
    assert_eq!(home.run("search rate limits").code, Some(0));
    // What is left says that there was one, and nothing else.
    let notes = home.notes();
    assert_eq!(notes.len(), 1);
    let tombstone = home.read(&notes[0]);
    assert!(tombstone.contains("state: forgotten"), "{tombstone}");
    assert!(tombstone.contains(SESSION), "{tombstone}");
    assert_eq!(home.run("doctor").stdout.matches('✗').count(), 0);
}

#[test]
fn a_forgotten_session_is_not_brought_back() {
    // DEL-01
    let home = home();
    play(&home, SESSION);
    end(&home, SESSION, "clear");
    home.run("sync").well();
    let said = home.run("forget --session 5b0c8f1e --yes").well();
    assert!(
        said.contains("The history still has its note: anamnesis purge "),
        "{said}"
    );
    let log = home.run("log --json").json();
    let act = &log["commits"][0];
    assert_eq!(
        (&act["did"], &act["title"]),
        (&json!("forget"), &json!(null))
    );
    let undone = home.run(&format!("undo {}", act["change"].as_str().unwrap()));
    assert_eq!(undone.code, Some(1));
    assert!(
        undone
            .stderr
            .contains("it forgot a session, which is permanent"),
        "{undone:?}"
    );
    assert!(home.read(&home.notes()[0]).contains("state: forgotten"));
}

#[test]
fn phrases_of_what_was_forgotten_or_is_private_now_leave_the_note() {
    // DEL-01
    const VAULT: &str = "zebrafinch77lagoon";
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says("Fix the totals of the cart, they are rounded twice");
    session.edits("src/cart.rs");
    session.answers("The totals are rounded once, because two callers did it.");
    session.says(&format!("use {VAULT} to open the vault door in the shop"));
    session.edits("src/door.rs");
    session.answers("The door opens.");
    session.ends();
    home.settle();
    assert!(note(&home).contains(VAULT), "{}", note(&home));
    home.run("forget --yes --session 5b0c8f1e --prompt 2")
        .well();
    assert_eq!(holding(&home, &[VAULT]), [""; 0]);

    let mut other = Played::new(&home, "7f3e2b1a-0000-4000-8000-000000000002");
    other.start();
    other.says(&format!("open {VAULT} with the new key of the shop"));
    other.edits("src/key.rs");
    other.answers("The key is new.");
    other.ends();
    home.settle();
    let has_phrase = |home: &TestHome| {
        let notes = home.notes();
        let mut texts = notes.iter().map(|path| home.read(path));
        texts.any(|text| text.contains(VAULT))
    };
    assert!(has_phrase(&home));
    other.says(&format!(
        "<private>{VAULT}</private> is the name of the door"
    ));
    other.edits("src/door.rs");
    other.answers("Its name is in the settings.");
    other.ends();
    home.settle();
    assert!(!has_phrase(&home));
}

#[test]
fn a_forgotten_session_gets_no_note_again() {
    // DEL-01
    let home = home();
    play(&home, SESSION);
    home.write_transcript(
        SESSION,
        &[
            asked("Add rate limits to the login"),
            edited("/srv/shop/src/limit.rs"),
            answered("Limits are in; what is left is the cart"),
        ],
    );
    home.run("forget --yes --session 5b0c8f1e").well();
    // It goes on: records, but no note.
    play(&home, SESSION);
    end(&home, SESSION, "clear");
    let path = home.transcript_path(SESSION);
    let captured = home.command(["capture", "--transcript"]).arg(&path).run();
    assert!(captured.well().contains("was forgotten"));
    home.run("maintain").well();
    let listed = home.run("sessions").well();
    assert!(listed.contains("note forgotten"), "{listed}");
    for note in home.notes() {
        assert!(home.read(&note).contains("state: forgotten"));
    }
    // And once more.
    home.run("forget --yes --session 5b0c8f1e").well();
    assert_eq!(holding(&home, &WORDS), [""; 0]);
}

#[test]
fn a_session_without_a_note_is_forgotten_too() {
    let home = home();
    // Nothing was done in it, so it has no note yet.
    let prompt = event(
        &home,
        "UserPromptSubmit",
        SESSION,
        json!({ "prompt_id": "p-1", "prompt": "rate limits, please" }),
    );
    hook_at(&home, "03:00:00", &prompt).well();
    home.settle();
    assert!(home.notes().is_empty());
    snapshot!(home.run("forget --yes --session 5b0c8f1e").shown(), @"
    exit 0
    forgot session 5b0c8f1e (1 prompt, 0 tool events); it had no note
    Nothing of it is kept; hooks, capture and backfill make no note of it again
    ");
    assert_eq!(holding(&home, &WORDS), [""; 0]);
    play(&home, SESSION);
    end(&home, SESSION, "clear");
    let notes = home.notes();
    assert_eq!(notes.len(), 1);
    assert!(home.read(&notes[0]).contains("state: forgotten"));
}

#[test]
fn records_that_still_have_the_text_of_a_forgotten_note_are_named() {
    let home = home();
    home.hook(&home.start(SESSION, "startup")).well();
    let rule = "Deploys go through the pipeline and never by hand";
    let mut prompt = home.payload("UserPromptSubmit", SESSION);
    prompt["prompt"] = format!("/memory-remember {rule}").into();
    home.hook(&prompt).well();
    let write = |text: &str| home.command(["write"]).input(text).run().new_id();
    let forget = |id: &str| home.command(["forget", id]).run().well();
    let local = home.command(["write", "--scope", "machine-local"]);
    let local = local
        .input(format!("{rule}, says the person"))
        .run()
        .new_id();
    let other = write("Photos are squares of two hundred pixels");
    let remembered = home.run("search deploys --json").json();
    let ids = remembered["notes"].as_array().unwrap().iter();
    let ids: Vec<&str> = ids.filter_map(|note| note["id"].as_str()).collect();
    let remembered = ids.into_iter().find(|id| *id != local).unwrap();
    for (id, part) in [
        (
            remembered,
            " · out of history and the records of sessions too: anamnesis purge ",
        ),
        (&other, " · out of history too: anamnesis purge "),
    ] {
        let said = forget(id);
        assert!(said.contains(part), "{said}");
    }
    let said = forget(&local);
    assert!(!said.contains("purge"), "{said}");
}

#[test]
fn nothing_to_forget_is_no_success() {
    // DEL-02
    let home = home();
    snapshot!(home.run("forget --yes --session 5b0c8f1e").shown(), @"
    exit 1
    on stderr:
    anamnesis: nothing was forgotten: no session 5b0c8f1e
    → anamnesis sessions --everywhere
    ");
    play(&home, SESSION);
    home.run(&format!("forget --yes --session {SESSION}"))
        .well();
    snapshot!(home.run(&format!("forget --yes --session {SESSION}")).shown(), @"
    exit 1
    on stderr:
    anamnesis: nothing was forgotten: no session 5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20
    → anamnesis sessions --everywhere
    ");
    play(&home, SESSION);
    snapshot!(home.run("forget --yes --session 5b0c8f1e --prompt 7").shown(), @"
    exit 1
    on stderr:
    anamnesis: nothing was forgotten: session 5b0c8f1e has no prompt 7
    → anamnesis sessions show 5b0c8f1e
    ");
    snapshot!(home.run("forget --yes --session 5b0c8f1e --prompt 2").shown(), @"
    exit 1
    on stderr:
    anamnesis: nothing was forgotten: nothing is kept of prompt 2 of session 5b0c8f1e
    ");
    for arguments in [
        "forget",
        "forget --yes",
        "forget --prompt 1",
        "forget 5b0c8f1e --session 5b0c8f1e",
    ] {
        assert_eq!(home.run(arguments).code, Some(2), "{arguments}");
    }
}

#[test]
fn an_agent_forgets_no_session() {
    let home = home();
    play(&home, SESSION);
    let before = holding(&home, &WORDS);
    let forget = |more: &[&str]| {
        home.command(["forget", "--yes", "--session", "5b0c8f1e"])
            .args(more)
            .by_agent()
            .run()
    };
    snapshot!(forget(&[]).shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can forget a session, which cannot be undone
    → run this command in a terminal of your own
    ");
    assert_eq!(forget(&["--prompt", "1"]), forget(&[]));
    assert_eq!(holding(&home, &WORDS), before);
}

#[cfg(unix)]
#[test]
fn a_person_is_asked_once() {
    let home = home();
    play(&home, SESSION);
    snapshot!(home.run("forget --session 5b0c8f1e").shown(), @"
    exit 2
    on stderr:
    anamnesis: cannot ask for confirmation (no terminal); pass --yes
    → anamnesis forget --session 5b0c8f1e --yes
    ");
    let forget = ["forget", "--session", "5b0c8f1e"];
    let answered = |text: &str| home.command(forget).input(text).run_on_a_terminal();
    snapshot!(answered("n\n").shown(), @"
    exit 1
    on stderr:
    Forget session 5b0c8f1e (2 prompts, 2 tool events) and its note, for good? [y/N] anamnesis: nothing was forgotten
    ");
    for text in ["\n", "perhaps\n"] {
        assert_eq!(answered(text), answered("n\n"));
    }
    assert!(is_there(&home, "journal.db"));
    snapshot!(answered("y\n").shown(), @"
    exit 0
    forgot session 5b0c8f1e (2 prompts, 2 tool events); its note, too
    Hooks, capture and backfill make no note of it again
    The history still has its note: anamnesis purge J8QYZW
    on stderr:
    Forget session 5b0c8f1e (2 prompts, 2 tool events) and its note, for good? [y/N]
    ");
    assert_eq!(holding(&home, &WORDS), [""; 0]);
}

/// A third prompt with work of its own, after those that `play` plays.
fn go_on(home: &TestHome) {
    for (time, name, fields) in [
        (
            "03:01:10",
            "UserPromptSubmit",
            json!({ "prompt_id": "p-3", "prompt": "Write the heron page, please" }),
        ),
        (
            "03:01:11",
            "PostToolUse",
            json!({ "prompt_id": "p-3", "tool_name": "Write", "tool_use_id": "toolu_9",
                    "tool_input": { "file_path": home.project().join("heron.md"), "content": "x" },
                    "tool_response": { "type": "create" } }),
        ),
        (
            "03:01:20",
            "Stop",
            json!({ "prompt_id": "p-3", "last_assistant_message": "The heron page is written and linked." }),
        ),
    ] {
        let output = hook_at(home, time, &event(home, name, SESSION, fields));
        assert_eq!(output.stderr, "");
        home.settle();
    }
}

fn note(home: &TestHome) -> String {
    let notes = home.notes();
    assert_eq!(notes.len(), 1);
    home.read(&notes[0])
}

#[test]
fn a_prompt_is_forgotten_with_all_under_it() {
    let home = home();
    play(&home, SESSION);
    go_on(&home);
    end(&home, SESSION, "clear");
    assert!(note(&home).contains("limit.rs"), "{}", note(&home));
    snapshot!(home.run("forget --yes --session 5b0c8f1e --prompt 1").shown(), @"
    exit 0
    forgot prompt 1 of session 5b0c8f1e: 2 tool events, 1 turn end
    its note #J8QYZW is made from the rest
    ");
    assert_eq!(holding(&home, &WORDS), [""; 0]);
    snapshot!(home.run("sessions show 5b0c8f1e").shown(), @"
    exit 0
    session 5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20
    github.com/acme/shop · branch main · model claude-test
    began 2026-01-02 03:00 (startup) · ended by /clear 2026-01-02 03:02 · UTC
    note #J8QYZW  Write the heron page, please
    kept: 3 prompts, 1 tool event, 1 turn end, 1 observation
    removed: 2 private or forgotten prompts with 4 events under it

    prompt 1 · 03:00:05 · private or forgotten; 3 events under it not kept

    prompt 2 · 03:01:00 · private or forgotten; 1 event under it not kept

    prompt 3 · 03:01:10 · person
      Write the heron page, please
      03:01:11  ok          Write
        created heron.md
      03:01:20  answer
        The heron page is written and linked.

    observed
      feature  New file heron.md

    summary by rule, up to prompt 3
      asked      Write the heron page, please
      done       Edited `heron.md`
      done       The heron page is written and linked.

    jobs
      03:00:30  note done
      03:02:00  note done
      03:04:05  note done

    → anamnesis sessions export 5b0c8f1e   |   anamnesis forget --session 5b0c8f1e
    ");
    let after = note(&home);
    assert!(
        after.contains("heron.md") && after.contains("linked"),
        "{after}"
    );
    // What comes late, or twice, does not bring it back.
    play(&home, SESSION);
    end(&home, SESSION, "clear");
    home.run("maintain").well();
    assert_eq!(holding(&home, &WORDS), [""; 0]);
    assert!(note(&home).contains("heron.md"));
}

#[test]
fn a_note_of_which_nothing_is_left_goes_with_its_prompt() {
    let home = home();
    play(&home, SESSION);
    // The transcript has it all, too; it is not read instead.
    home.write_transcript(
        SESSION,
        &[
            asked("Add rate limits to the login"),
            edited("/srv/shop/src/limit.rs"),
            answered("Limits are in; what is left is the cart"),
        ],
    );
    assert!(note(&home).contains("limit.rs"));
    snapshot!(home.run("forget --yes --session 5b0c8f1e --prompt 1").shown(), @"
    exit 0
    forgot prompt 1 of session 5b0c8f1e: 2 tool events, 1 turn end
    nothing is left to note: its note is forgotten, too
    Claude's own transcript is not ours, and stays:
      ~/.claude/projects/-shop/5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20.jsonl
    ");
    end(&home, SESSION, "clear");
    home.run("maintain").well();
    assert!(note(&home).contains("state: forgotten"));
    assert_eq!(holding(&home, &WORDS), [""; 0]);
}

#[test]
fn a_note_that_a_person_changed_is_left_as_it_is() {
    let home = home();
    play(&home, SESSION);
    go_on(&home);
    end(&home, SESSION, "clear");
    let path = home.notes()[0].clone();
    let name = Path::new(&path).file_stem().unwrap().to_string_lossy();
    home.command(["edit", &name, "--title", "My own words"])
        .run()
        .well();
    let before = note(&home);
    snapshot!(home.run("forget --yes --session 5b0c8f1e --prompt 1").shown(), @"
    exit 0
    forgot prompt 1 of session 5b0c8f1e: 2 tool events, 1 turn end
    its note #J8QYZW was changed by hand and is left as it is
    → anamnesis show J8QYZW
    ");
    assert_eq!(note(&home), before);
    let held = holding(&home, &WORDS);
    assert!(
        held.iter().all(|line| !line.starts_with("journal.db")),
        "{held:?}"
    );
}

/// Runs retention with a clock that has run for more than a day.
fn let_go(home: &TestHome) {
    home.run("maintain").well();
    let later = home.command(["maintain"]);
    let later = later.env("ANAMNESIS_NOW", "2026-01-04T03:04:05Z");
    later.run().well();
}

#[test]
fn a_forgotten_note_can_be_restored_for_thirty_days() {
    let age = |home: &TestHome, days: u64| {
        let text = home.store().join(format!("trash/{}.md", id("10CA11")));
        let time = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        let text = fs::File::options().write(true).open(text).unwrap();
        text.set_modified(time).unwrap();
    };
    let forgotten = || {
        let home = home();
        home.add(&NoteText::new(&id("10CA11"), "Only here").with("scope", "machine-local"));
        home.run("forget 10CA11").well();
        home
    };
    let home = forgotten();
    age(&home, 29);
    let_go(&home);
    home.run("forget --undo 10CA11").well();
    assert!(home.run("inject").well().contains("Only here"));
    home.run("forget 10CA11").well();
    age(&home, 31);
    let_go(&home);
    assert_eq!(home.run("forget --undo 10CA11").code, Some(1));
    // Zero days are for ever.
    let home = forgotten();
    home.run("config set retention.trash_days 0").well();
    age(&home, 31);
    let_go(&home);
    home.run("forget --undo 10CA11").well();
}
