//! `upkeep` and the other commands that put notes in order: what they show, what they do, and that it
//! can be taken back.

use std::collections::BTreeMap;

use anamnesis_testkit::home::{NoteText, Output, TestHome};

use crate::{home, id, purge, snapshot};

/// Every file of a note, byte for byte.
pub(crate) fn tree(home: &TestHome) -> BTreeMap<String, Vec<u8>> {
    let files = home.notes().into_iter();
    files
        .map(|path| {
            let bytes = std::fs::read(home.store().join(&path)).unwrap();
            (path, bytes)
        })
        .collect()
}

/// The batch that a run offers to undo.
fn batch_of(output: &Output) -> String {
    let (_, rest) = output.stdout.split_once("anamnesis undo ").unwrap();
    rest.chars().take(6).collect()
}

/// Applies a command, checks that it can be taken back byte for byte and that the second time there is
/// nothing to do, and gives what it printed.
pub(crate) fn applied(home: &TestHome, command: &str) -> Output {
    home.run("sync").well();
    let before = tree(home);
    let output = home.run(&format!("{command} --apply --no-sync"));
    assert_eq!(output.code, Some(0), "{output:?}");
    let after = tree(home);
    assert_ne!(before, after, "{output:?}");
    // Every note that was there is there.
    for (path, bytes) in &before {
        assert!(after.contains_key(path), "{path}: {bytes:?}");
    }
    // Twice is once.
    home.run(&format!("{command} --apply --no-sync")).well();
    assert_eq!(tree(home), after);
    // An undo restores every byte, and can be undone itself.
    let undone = home.run(&format!("undo {}", batch_of(&output)));
    assert_eq!(tree(home), before, "{undone:?}");
    home.run(&format!("undo {}", batch_of(&undone))).well();
    assert_eq!(tree(home), after);
    output
}

fn note(short: &str, title: &str) -> NoteText {
    NoteText::new(&id(short), title)
}

/// A home in which there is something of everything.
fn untidy() -> TestHome {
    let home = home();
    let linter =
        "Run the linter before each push.\n\nIt takes a minute and finds what the editor does not.";
    let word = "word ".repeat(210);
    for note in [
        note("AAAAAA", "Run the linter before each push").body(linter).with("tags", "[ci]"),
        note("BBBBBB", "Run the linter before each push")
            .body(linter.replace(' ', "  "))
            .at("2025-12-24T03:04:05+00:00")
            .with("tags", "[push]")
            .with("own_key", "kept"),
        note("CCCCCC", "The stub server").body(
            "The stub server has to run before the integration tests of the login start, or they hang for ever.",
        ),
        note("DDDDDD", "The stub server")
            .with("prov_actor", "agent")
            .with("confidence", "0.9")
            .body(
                "Before the integration tests of the login start, the stub server has to run, or they hang for ever.",
            )
            .at("2025-12-25T03:04:05+00:00"),
        note("EEEEEE", "Timeout of the gateway")
            .body("The gateway closes idle connections of the payment service after 30 seconds."),
        note("FFFFFF", "Timeout of the gateway")
            .body("The gateway closes idle connections of the payment service after 90 seconds.")
            .at("2025-12-26T03:04:05+00:00"),
        note("GGGGGG", "Links")
            .with("links", &format!("[\"related-to {}\", \"about {}\"]", id("AAAAAA"), id("ZZZZZZ"))),
        note("HHHHHH", "Deploys").body(format!("## Staging\n\n{word}\n\n## Production\n\n{word}end")),
    ] {
        home.add(&note);
    }
    home
}

#[test]
fn what_can_be_put_in_order_is_shown_and_nothing_is_done() {
    let home = untidy();
    home.run("sync").well();
    let before = tree(&home);
    let output = home.run("upkeep");
    assert_eq!(tree(&home), before);
    snapshot!(output.shown(), @r#"
    exit 0
    GGGGGG "Links"
      link "about 01JZ0000000000000000ZZZZZZ" leads nowhere and goes
    AAAAAA "Run the linter before each push"
      replaces BBBBBB "Run the linter before each push"
    CCCCCC "The stub server"
      says all of DDDDDD "The stub server"
    HHHHHH "Deploys"
      becomes KNDCA5 "Deploys: Staging"
      becomes KE2280 "Deploys: Production"

    4 changes could be made, none is yet
    → anamnesis upkeep --apply
    "#);
    let json = home.run("upkeep --json").json();
    assert_eq!(tree(&home), before);
    assert_eq!(json["applied"], false);
    // --apply does exactly what was shown.
    let done = home.run("upkeep --apply --no-sync --json").json();
    assert_eq!(done["actions"], json["actions"]);
    assert_eq!(done["applied"], true);
    assert_ne!(tree(&home), before);
}

#[test]
fn what_is_done_is_one_batch_that_is_undone_byte_for_byte() {
    // LLM-06
    let home = untidy();
    home.run("sync").well();
    let before = tree(&home);
    let output = applied(&home, "upkeep");
    snapshot!(output.shown(), @r#"
    exit 0
    GGGGGG "Links"
      link "about 01JZ0000000000000000ZZZZZZ" leads nowhere and goes
    AAAAAA "Run the linter before each push"
      replaces BBBBBB "Run the linter before each push"
    CCCCCC "The stub server"
      says all of DDDDDD "The stub server"
    HHHHHH "Deploys"
      becomes KNDCA5 "Deploys: Staging"
      becomes KE2280 "Deploys: Production"

    4 changes made
    committed on this machine (--no-sync)
    Undo: anamnesis undo [BATCH]
    "#);
    // Nothing is touched that is not named, and no text of a note.
    let after = tree(&home);
    for (path, bytes) in &after {
        let name = path.rsplit('/').next().unwrap().trim_end_matches(".md");
        let is_named = output.stdout.contains(&name[20..]);
        assert!(is_named || before.get(path) == Some(bytes), "{path}");
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.splitn(3, "---\n").nth(2).unwrap().to_owned()
        };
        if let Some(old) = before.get(path) {
            assert_eq!(text(old), text(bytes), "{path}");
        }
    }
    snapshot!(home.read(&format!("memory/semantic/{}.md", id("AAAAAA"))), @r#"
    ---
    id: 01JZ0000000000000000AAAAAA
    type: semantic
    title: "Run the linter before each push"
    project: github.com/acme/shop
    machine_id: laptop
    scope: portable
    prov_source: human
    confidence: 1.0
    supersedes:
    - 01JZ0000000000000000BBBBBB
    created_at: '2025-12-23T03:04:05+00:00'
    updated_at: '2025-12-23T03:04:05+00:00'
    tags:
    - ci
    - push
    ---
    Run the linter before each push.

    It takes a minute and finds what the editor does not.
    "#);
    let found = home.run("search linter").well();
    assert!(
        found.contains("AAAAAA") && !found.contains("BBBBBB"),
        "{found}"
    );
    for replaced in ["BBBBBB", "DDDDDD", "HHHHHH"] {
        home.run(&format!("show {replaced}")).well();
    }
}

#[test]
fn what_was_edited_by_hand_before_is_not_part_of_the_batch() {
    let home = untidy();
    home.run("sync").well();
    let path = format!("memory/semantic/{}.md", id("AAAAAA"));
    let edited = home.read(&path).replace("tags: [ci]", "tags: [ci, mine]");
    home.write(&path, &edited);
    let output = home.run("upkeep --apply --no-sync");
    assert!(home.read(&path).contains("supersedes:"), "{output:?}");
    home.run(&format!("undo {}", batch_of(&output))).well();
    assert_eq!(home.read(&path), edited);
}

#[test]
fn an_agent_may_look_and_no_more() {
    // LLM-06
    let home = untidy();
    let before = tree(&home);
    let looked = home.command(["upkeep"]).by_agent().run();
    assert_eq!(looked.code, Some(0), "{looked:?}");
    snapshot!(home.command(["upkeep", "--apply"]).by_agent().run().shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can apply this
    → without --apply it shows what would be done
    ");
    assert_eq!(tree(&home), before);
}

#[test]
fn a_file_that_cannot_be_changed_is_left_alone() {
    let home = home();
    let text = "Run the linter before each push, it takes a minute.";
    let flow = format!(
        "---\n{{id: {}, type: semantic, title: Linter, project: github.com/acme/shop, created_at: '2025-01-01'}}\n---\n{text}\n",
        id("AAAAAA")
    );
    home.write(&format!("memory/semantic/{}.md", id("AAAAAA")), flow);
    home.add(&note("BBBBBB", "Linter").body(text));
    snapshot!(home.run("upkeep").shown(), @"
    exit 0
    1 file left alone: unreadable, or not one key a line (anamnesis doctor)
    ");
}

#[test]
fn a_look_after_a_sync_is_told_by_status_and_changes_nothing() {
    let (laptop, remote) = purge::with_remote();
    for short in ["SAME01", "SAME02"] {
        laptop.add(&note(short, "Run the linter").body("Run the linter before each push."));
    }
    purge::run(&laptop, "sync").well();
    let desktop = home();
    purge::join(&desktop, &remote);
    assert!(!desktop.run("status").shown().contains("tidy:"));
    let session = desktop.start(crate::SESSION, "startup");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let hook = desktop.hook_with(session.to_string()).env("PATH", path);
    hook.run().well();
    desktop.settle();
    let before = tree(&desktop);
    assert!(
        before.keys().any(|path| path.contains("SAME02")),
        "{before:?}"
    );
    let status = desktop.run("status").shown();
    assert!(
        status.contains("tidy:  1 to put in order, 0 for you to decide · anamnesis upkeep"),
        "{status}"
    );
    assert_eq!(desktop.run("status --json").json()["upkeep"]["actions"], 1);
    assert_eq!(tree(&desktop), before);
    desktop.run("upkeep --apply --no-sync").shown();
    assert!(!desktop.run("status").shown().contains("tidy:"));
}

#[test]
fn two_notes_that_say_nearly_the_same_are_for_the_person_to_decide() {
    let home = home();
    for (short, kind) in [("AAAAAA", "slow"), ("BBBBBB", "fresh")] {
        home.add(&note(short, "The stub server").body(format!(
            "The stub server has to run before the integration tests of the login start, since they hang for ever otherwise on {kind} laptops."
        )));
    }
    let before = tree(&home);
    let shown = home.run("upkeep --apply").well();
    assert!(shown.starts_with("for you to decide\n"), "{shown}");
    for part in ["AAAAAA", "says much the same as", "BBBBBB"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(tree(&home), before);
}

#[test]
fn session_notes_copies_and_notes_of_this_machine_are_left_alone() {
    let twins = |change: fn(NoteText) -> NoteText| {
        let home = home();
        for short in ["AAAAAA", "BBBBBB"] {
            home.add(&change(
                note(short, "Linter").body("Run the linter before each push."),
            ));
        }
        home
    };
    for (change, of_texts) in [
        ((|note| note.session()) as fn(NoteText) -> NoteText, 1),
        (|note| note.with("prov_source", "import"), 1),
        (|note| note.with("scope", "machine-local"), 0),
    ] {
        let home = twins(change);
        let before = tree(&home);
        home.run("upkeep --apply").well();
        assert_eq!(tree(&home), before);
        // The step compares texts only.
        let copies = home.run("upkeep --only duplicates").well();
        assert_eq!(
            copies.matches("dedup: remove ").count(),
            of_texts,
            "{copies}"
        );
    }
    // The origin is the one thing that is recorded in a note of this machine, too.
    let home = twins(|note| note.with("scope", "machine-local").with("tags", "[import]"));
    home.run("upkeep --only provenance --apply --no-sync")
        .well();
    for (path, bytes) in tree(&home) {
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            path.starts_with("local/") && text.contains("prov_source: import"),
            "{text}"
        );
    }
}
