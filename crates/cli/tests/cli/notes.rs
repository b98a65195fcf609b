//! Finding and correcting notes: list, search, show, edit, move, pin, mute, forget, restore.

use std::fs;

#[cfg(unix)]
use anamnesis_testkit::home::script;
use anamnesis_testkit::home::{NoteText, Output, TestHome, files_below};
use serde_json::{Value, json};

use crate::{home, home_with_notes, id, snapshot};

/// The path of a note of the home_with_notes home.
const STUB: &str = "memory/procedural/01JZ00000000000000007Q4KZ9.md";

#[test]
fn list() {
    let home = home_with_notes();
    snapshot!(home.run("list").shown(), @"
    exit 0
    F5XJ2P  session     Add rate limits to the login                             1 d
    B2M6RD  fact        Rate limits live in middleware/limit.rs          agent, 12 d
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
    ");
    snapshot!(home.command(["list"]).env("LANG", "C").run().shown(), @"
    exit 0
    F5XJ2P  session     Add rate limits to the login                             1 d
    B2M6RD  fact        Rate limits live in middleware/limit.rs          agent, 12 d
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
    ");
    snapshot!(home.run("list --global").shown(), @"
    exit 0
    4T8WQX  preference  Package manager is pnpm                           you, 210 d
    ");
    snapshot!(home.run("list --everywhere --type semantic").shown(), @"
    exit 0
    ZD81QV  fact        Deploys go through Jenkins             you, 10 d · acme/cart
    B2M6RD  fact        Rate limits live in middleware/lim…  agent, 12 d · acme/shop
    4T8WQX  preference  Package manager is pnpm            you, 210 d · all projects
    ");
    snapshot!(home.run("list --kind how-to").shown(), @"
    exit 0
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
    ");
    snapshot!(home.run("list --kind skill").shown(), @"
    exit 0
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
    ");
    snapshot!(home.run("list --project github.com/acme/nothing").shown(), @"
    exit 0
    0 notes of github.com/acme/nothing
    → anamnesis list --everywhere
    ");
    snapshot!(home.run("list --kind how-to --json").shown(), @r#"
    exit 0
    {
      "notes": [
        {
          "id": "01JZ00000000000000007Q4KZ9",
          "type": "procedural",
          "title": "Integration tests need the stub server",
          "project": "github.com/acme/shop",
          "machine_id": "laptop",
          "scope": "portable",
          "user_id": "self",
          "workspace_id": "personal",
          "tags": [],
          "created_at": "2025-11-22T03:04:05+00:00",
          "updated_at": "2025-11-22T03:04:05+00:00",
          "kind": "how-to",
          "author": "you",
          "state": "active",
          "confidence": 1.0,
          "age_days": 41,
          "pinned": false,
          "superseded": false,
          "path": "memory/procedural/01JZ00000000000000007Q4KZ9.md"
        }
      ],
      "total": 1
    }
    "#);
}

#[test]
fn a_long_list_shows_twenty_and_says_how_many_there_are() {
    let home = home();
    for number in 10..33 {
        home.add(&NoteText::new(
            &id(&format!("0000{number}")),
            &format!("Fact {number}"),
        ));
    }
    let listed = home.run("list").well();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 21);
    assert_eq!(lines[20], "20 of 23 shown · --all");
    assert_eq!(home.run("list --all").well().lines().count(), 23);
    assert_eq!(
        home.run("list --json").json()["notes"]
            .as_array()
            .unwrap()
            .len(),
        23
    );
    let two = home.run("list --json -n 2").json();
    assert_eq!(
        (two["notes"].as_array().unwrap().len(), &two["total"]),
        (2, &json!(23))
    );
}

#[test]
fn lines_fit_into_eighty_columns_whatever_a_title_holds() {
    // CAP-12
    let home = home();
    home.add(&NoteText::new(&id("AAAAAA"), &"long title ".repeat(30)));
    home.add(&NoteText::new(
        &id("BBBBBB"),
        "red \u{1b}[31m and \u{202e}back\u{7}",
    ));
    let listed = home.run("list").well();
    for line in listed.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{line:?}");
    }
    assert!(listed.contains("red"));
}

#[test]
fn search() {
    let home = home_with_notes();
    snapshot!(home.run("search rate limits").shown(), @"
    exit 0
    F5XJ2P  session     Add rate limits to the login                             1 d
                        **Ask:** rate limits for the login
    B2M6RD  fact        Rate limits live in middleware/limit.rs          agent, 12 d
    → anamnesis show ID · anamnesis forget ID
    ");
    snapshot!(home.run("search stub").shown(), @"
    exit 0
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
                        `make stub` binds port 9090; without it the login tests han…
    → anamnesis show ID · anamnesis forget ID
    ");
    snapshot!(home.run("search stub --project global").shown(), @"
    exit 0
    no note has any of these words
    ");
    snapshot!(home.run("search zebra").shown(), @"
    exit 0
    no note has any of these words
    ");
    snapshot!(home.command(["search", "--stdin"]).input("what about pnpm?").run().shown(), @"
    exit 0
    4T8WQX  preference  Package manager is pnpm                           you, 210 d
    → anamnesis show ID · anamnesis forget ID
    ");
    snapshot!(home.command(["search", "--stdin"]).input(" \n").run().shown(), @"
    exit 2
    on stderr:
    anamnesis: no words to search for were typed
    → anamnesis search WORDS
    ");
    let mut found = home.run("search stub --json").json();
    assert!(found["notes"][0]["score"].as_f64().unwrap() > 0.0);
    found["notes"][0]["score"] = "[SCORE]".into();
    snapshot!(format!("{found:#}"), @r#"
    {
      "notes": [
        {
          "id": "01JZ00000000000000007Q4KZ9",
          "type": "procedural",
          "title": "Integration tests need the stub server",
          "project": "github.com/acme/shop",
          "machine_id": "laptop",
          "scope": "portable",
          "user_id": "self",
          "workspace_id": "personal",
          "tags": [],
          "created_at": "2025-11-22T03:04:05+00:00",
          "updated_at": "2025-11-22T03:04:05+00:00",
          "kind": "how-to",
          "author": "you",
          "state": "active",
          "confidence": 1.0,
          "age_days": 41,
          "pinned": false,
          "superseded": false,
          "path": "memory/procedural/01JZ00000000000000007Q4KZ9.md",
          "body": "`make stub` binds port 9090; without it the login tests hang.",
          "score": "[SCORE]"
        }
      ],
      "capped": false
    }
    "#);
}

#[test]
fn search_takes_operators_as_words() {
    // SQL-01, SQL-03
    let home = home_with_notes();
    for query in [
        "stub AND NOT server",
        "\"stub",
        "stub*",
        "title:stub",
        "NEAR(stub server)",
        "stub) OR (1=1",
        "'; DROP TABLE notes; --stub",
        "stub ^server {title} : -",
    ] {
        let output = home
            .command(["search", "--stdin", "--json"])
            .input(query)
            .run();
        let found = output.json();
        assert_eq!(found["notes"][0]["id"], id("7Q4KZ9"), "{query}: {output:?}");
    }
    for project in ["' OR '1'='1", "%", "*", "github.com/acme/shop' --"] {
        let output = home.command(["search", "stub", "--project", project]).run();
        assert_eq!(
            output.well(),
            "no note has any of these words\n",
            "{project}"
        );
    }
}

#[test]
fn show() {
    let home = home_with_notes();
    snapshot!(home.run("show 7Q4KZ9").shown(), @"
    exit 0
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
    github.com/acme/shop · laptop · memory/procedural/01JZ00000000000000007Q4KZ9.md

    `make stub` binds port 9090; without it the login tests hang.

    → anamnesis edit 7Q4KZ9   |   anamnesis forget 7Q4KZ9
    ");
    snapshot!(home.run("show #7q4kz9 --json").shown(), @r#"
    exit 0
    {
      "id": "01JZ00000000000000007Q4KZ9",
      "type": "procedural",
      "title": "Integration tests need the stub server",
      "project": "github.com/acme/shop",
      "machine_id": "laptop",
      "scope": "portable",
      "user_id": "self",
      "workspace_id": "personal",
      "tags": [],
      "created_at": "2025-11-22T03:04:05+00:00",
      "updated_at": "2025-11-22T03:04:05+00:00",
      "kind": "how-to",
      "author": "you",
      "state": "active",
      "confidence": 1.0,
      "age_days": 41,
      "pinned": false,
      "superseded": false,
      "path": "memory/procedural/01JZ00000000000000007Q4KZ9.md",
      "body": "`make stub` binds port 9090; without it the login tests hang."
    }
    "#);
    snapshot!(home.run("show F5XJ2P").shown(), @"
    exit 0
    F5XJ2P  session     Add rate limits to the login                             1 d
    github.com/acme/shop · desktop · memory/episodic/01JZ0000000000000000F5XJ2P.md
    tags: session, session-end

    **Ask:** rate limits for the login

    **Outcome:** limiter and 4 tests, passing

    → anamnesis edit F5XJ2P   |   anamnesis forget F5XJ2P
    ");
    assert_eq!(home.run("show 7Q4KZ9 --raw").well(), home.read(STUB));
    assert_eq!(
        home.run(&format!("show {}", id("7Q4KZ9"))),
        home.run("show 7Q4KZ9")
    );
}

#[test]
fn an_id_has_to_stand_for_one_note() {
    let home = home_with_notes();
    snapshot!(home.run("show 01JZ00").shown(), @"
    exit 2
    on stderr:
    anamnesis: #01JZ00 matches 5 notes:
      01JZ00000000000000004T8WQX  Package manager is pnpm
      01JZ00000000000000007Q4KZ9  Integration tests need the stub server
      01JZ0000000000000000B2M6RD  Rate limits live in middleware/limit.rs
      01JZ0000000000000000F5XJ2P  Add rate limits to the login
      01JZ0000000000000000ZD81QV  Deploys go through Jenkins
    → type more of the id
    ");
    snapshot!(home.run("show ZZZZZZ").shown(), @"
    exit 1
    on stderr:
    anamnesis: no note #ZZZZZZ
    → anamnesis list --everywhere
    ");
    snapshot!(home.run("forget 7Q4KZ9 ZZZZZZ").shown(), @"
    exit 1
    on stderr:
    anamnesis: nothing was forgotten: no note #ZZZZZZ
    → anamnesis list --everywhere
    ");
    for command in [
        "edit",
        "forget",
        "restore",
        "pin",
        "mute",
        "move --scope portable",
    ] {
        let output = home.run(&format!("{command} ZZZZZZ"));
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(1), ""),
            "{command}"
        );
        assert!(
            output.stderr.contains("no note #ZZZZZZ\n→ anamnesis list"),
            "{output:?}"
        );
        let output = home.run(&format!("{command} 01JZ00"));
        assert!(matches!(output.code, Some(1 | 2)), "{command}");
        assert!(output.stderr.contains("matches 5 notes"), "{output:?}");
    }
    assert_eq!(
        home.run("list --everywhere --all").well().lines().count(),
        5
    );
}

#[test]
fn an_id_cannot_be_a_path() {
    // PATH-01
    let home = home_with_notes();
    fs::write(home.user().join("secret.md"), "x").unwrap();
    for typed in [
        "../../secret",
        "/etc/passwd",
        "memory/procedural",
        "01JZ/../00",
        "--",
        "%00",
    ] {
        for command in ["show", "forget", "edit"] {
            let output = home.command([command, "--", typed]).run();
            assert!(
                matches!(output.code, Some(1 | 2)),
                "{command} {typed}: {output:?}"
            );
            assert_eq!(output.stdout, "");
        }
    }
    assert_eq!(home.notes().len(), 5);
}

#[cfg(unix)]
#[test]
fn edit_in_an_editor() {
    let home = home_with_notes();
    let before = home.read(STUB);
    let editor = home.root().join("bin/editor");
    let edit = || {
        home.command(["edit", "7Q4KZ9"])
            .env("EDITOR", editor.as_os_str())
            .run()
    };

    script(&editor, "exit 0");
    snapshot!(edit().shown(), @"
    exit 0
    #7Q4KZ9 is unchanged
    ");
    assert_eq!(home.read(STUB), before);

    script(&editor, "exit 3");
    snapshot!(edit().shown(), @"
    exit 1
    on stderr:
    anamnesis: [ROOT]/bin/editor ended with exit status: 3; nothing was changed
    ");
    script(&editor, "echo '---' > \"$1\"");
    snapshot!(edit().shown(), @"
    exit 1
    on stderr:
    anamnesis: memory/procedural/01JZ00000000000000007Q4KZ9.md was not changed: front matter is not closed by a line ---
    Your text is kept in ~/.anamnesis/quarantine/edit-[ID].md
    → edit it again; --raw writes it unchecked
    ");
    assert_eq!(home.read(STUB), before);

    // Text that the person did not edit stays byte for byte; the rest is sanitized.
    let line = concat!(
        "<private>not this</private>Token ghp",
        "_0123456789abcdefghijABCDEFGHIJ456789"
    );
    script(
        &editor,
        &format!("PATH=/usr/bin:/bin; echo '{line}' >> \"$1\""),
    );
    snapshot!(edit().shown(), @r#"
    exit 0
    changed #7Q4KZ9 "Integration tests need the stub server"
    Undo: anamnesis undo [BATCH]
    "#);
    let after = home.read(STUB);
    assert!(
        !after.contains("not this") && !after.contains("ghp_"),
        "{after}"
    );
    let kept = before.replace("updated_at: '2025-11-22", "updated_at: '2026-01-02");
    assert!(after.starts_with(&kept), "{after}");

    snapshot!(home.command(["edit", "7Q4KZ9"]).run().shown(), @"
    exit 2
    on stderr:
    anamnesis: no editor is set
    → set EDITOR, or give the text with --file or on stdin
    ");
    let missing = home
        .command(["edit", "7Q4KZ9"])
        .env("EDITOR", "no-such-editor --wait")
        .run();
    snapshot!(missing.shown(), @"
    exit 1
    on stderr:
    anamnesis: cannot start no-such-editor --wait: No such file or directory (os error 2)
    → set EDITOR
    ");
    // The editor's copy is gone.
    let left = fs::read_dir(home.store().join("derived"))
        .unwrap()
        .flatten();
    assert_eq!(
        left.filter(|entry| entry.file_name().to_string_lossy().contains("edit"))
            .count(),
        0
    );
}

/// Returns the texts that were kept because they could not be saved.
#[cfg(unix)]
fn kept(home: &TestHome) -> Vec<String> {
    let files = files_below(&home.store().join("quarantine"));
    let mut kept: Vec<String> = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    kept.sort();
    kept
}

/// Edits the stub note with an editor that runs these commands; `$1` is its text, `$note` the
/// note's file.
#[cfg(unix)]
fn edit_with(home: &TestHome, options: &[&str], commands: &str) -> Output {
    let editor = home.root().join("bin/editor");
    let note = home.store().join(STUB);
    script(
        &editor,
        &format!("PATH=/usr/bin:/bin; note={}; {commands}", note.display()),
    );
    home.command(["edit", &id("7Q4KZ9")])
        .args(options)
        .env("EDITOR", editor.as_os_str())
        .run()
}

#[cfg(unix)]
#[test]
fn what_was_typed_stays_where_the_front_matter_has_a_slip() {
    let home = home_with_notes();
    let before = home.read(STUB);
    let token = concat!("ghp", "_0123456789abcdefghijABCDEFGHIJ456789");
    let slip =
        format!("sed -i 's/^title: .*/title: [slip/' \"$1\"; echo 'Typed, {token}' >> \"$1\"");
    let output = edit_with(&home, &[], &slip);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stderr.contains("Your text is kept in "),
        "{output:?}"
    );
    assert_eq!(home.read(STUB), before);
    let kept = kept(&home);
    assert!(kept[0].contains("title: [slip\n") && kept[0].contains("\nTyped, "));
    assert!(!kept[0].contains(token), "{kept:?}");
}

#[cfg(unix)]
#[test]
fn what_was_typed_stays_when_the_editor_fails() {
    let home = home_with_notes();
    let output = edit_with(&home, &[], "echo Typed >> \"$1\"; exit 1");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(kept(&home)[0].ends_with("\nTyped"));
}

#[cfg(unix)]
#[test]
fn an_edit_is_merged_with_what_a_sync_brought_meanwhile() {
    for options in [&[][..], &["--raw"]] {
        let home = home_with_notes();
        let both = "echo Typed >> \"$1\"; sed -i 's/^title: .*/title: From a sync/' \"$note\"";
        let output = edit_with(&home, options, both);
        assert_eq!(output.code, Some(0), "{output:?}");
        let note = home.read(STUB);
        assert!(note.contains("title: From a sync\n"), "{options:?}: {note}");
        assert!(note.ends_with("\nTyped\n"), "{options:?}: {note}");
        assert!(!home.store().join("quarantine").exists());
    }
}

#[cfg(unix)]
#[test]
fn an_edit_of_what_a_sync_changed_meanwhile_is_kept_beside_it() {
    for options in [&[][..], &["--raw"]] {
        let home = home_with_notes();
        let both = "sed -i 's/^title: .*/title: Typed/' \"$1\"; \
                    sed -i 's/^title: .*/title: From a sync/' \"$note\"";
        let output = edit_with(&home, options, both);
        assert_eq!(output.code, Some(1), "{options:?}: {output:?}");
        assert!(
            output.stderr.contains("Your text is kept in "),
            "{output:?}"
        );
        assert!(home.read(STUB).contains("title: From a sync\n"));
        assert!(kept(&home)[0].contains("title: Typed\n"));
        // A note that is gone is not written again.
        let gone = "echo Again >> \"$1\"; rm \"$note\"";
        assert_eq!(edit_with(&home, options, gone).code, Some(1));
        assert!(!home.store().join(STUB).exists());
        assert_eq!(kept(&home).len(), 2, "{options:?}");
    }
}

#[test]
fn edit_from_the_command_line() {
    let home = home_with_notes();
    snapshot!(home.command(["edit", "7Q4KZ9", "--title", "Start the stub first"]).run().shown(), @r#"
    exit 0
    changed #7Q4KZ9 "Start the stub first"
    Undo: anamnesis undo [BATCH]
    "#);
    snapshot!(home.command(["edit", "7Q4KZ9", "--stdin"]).input("New text\n").run().shown(), @r#"
    exit 0
    changed #7Q4KZ9 "Start the stub first"
    Undo: anamnesis undo [BATCH]
    "#);
    snapshot!(home.command(["edit", "7Q4KZ9", "--stdin"]).input("New text\n").run().shown(), @"
    exit 0
    #7Q4KZ9 is unchanged
    ");
    snapshot!(home.command(["edit", "7Q4KZ9", "--title", " "]).run().shown(), @"
    exit 2
    on stderr:
    anamnesis: --title is empty
    ");
    snapshot!(home.read(STUB), @"
    ---
    id: 01JZ00000000000000007Q4KZ9
    type: procedural
    title: Start the stub first
    project: github.com/acme/shop
    machine_id: laptop
    scope: portable
    prov_source: human
    confidence: 1.0
    created_at: '2025-11-22T03:04:05+00:00'
    updated_at: '2026-01-02T03:04:05+00:00'
    tags: []
    ---
    New text
    ");
}

#[cfg(unix)]
#[test]
fn an_unreadable_note_is_mended_raw() {
    let home = home_with_notes();
    let broken = home.read(STUB).replace("title: ", "title: x\ntitle: ");
    fs::write(home.store().join(STUB), &broken).unwrap();
    let whole_id = id("7Q4KZ9");
    snapshot!(home.run(&format!("show {whole_id}")).shown(), @r#"
    exit 1
    on stderr:
    anamnesis: memory/procedural/01JZ00000000000000007Q4KZ9.md: line 5: duplicate key "title"
    → anamnesis edit 01JZ00000000000000007Q4KZ9 --raw
    "#);
    snapshot!(home.run(&format!("edit {whole_id}")).shown(), @r#"
    exit 1
    on stderr:
    anamnesis: memory/procedural/01JZ00000000000000007Q4KZ9.md: line 5: duplicate key "title"
    → anamnesis edit 01JZ00000000000000007Q4KZ9 --raw
    "#);
    let editor = home.root().join("bin/editor");
    script(
        &editor,
        "PATH=/usr/bin:/bin; grep -v 'title: x' \"$1\" > \"$1.new\"; cat \"$1.new\" > \"$1\"; rm \"$1.new\"",
    );
    let raw = || {
        home.command(["edit", &whole_id, "--raw"])
            .env("EDITOR", editor.as_os_str())
    };
    let refused = raw().by_agent().run();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(home.read(STUB), broken);
    snapshot!(raw().run().shown(), @r#"
    exit 0
    changed #7Q4KZ9 "Integration tests need the stub server"
    Undo: anamnesis undo [BATCH]
    "#);
    assert_eq!(home.run("show 7Q4KZ9").code, Some(0));
}

#[test]
fn move_a_note_and_back() {
    let home = home_with_notes();
    let before = home.read(STUB);
    snapshot!(home.run("move 7Q4KZ9 --project global").shown(), @"
    exit 0
    #7Q4KZ9 applies to all projects
    Undo: anamnesis move 7Q4KZ9 --project github.com/acme/shop --scope portable
    ");
    snapshot!(home.run("move 7Q4KZ9 --scope machine-local").shown(), @"
    exit 0
    #7Q4KZ9 applies to all projects, this machine only
    Undo: anamnesis move 7Q4KZ9 --project global --scope portable
    ");
    assert!(home.notes().contains(&STUB.replace("memory/", "local/")));
    snapshot!(home.run("move 7Q4KZ9 --project github.com/acme/shop --scope portable").shown(), @"
    exit 0
    #7Q4KZ9 applies to github.com/acme/shop
    Undo: anamnesis move 7Q4KZ9 --project global --scope machine-local
    ");
    assert_eq!(home.read(STUB), before);
    snapshot!(home.run("move 7Q4KZ9").shown(), @"
    exit 2
    on stderr:
    error: the following required arguments were not provided:
      --project <KEY>

    Usage: anamnesis move --project <KEY> <ID>

    For more information, try '--help'.
    ");
    snapshot!(home.command(["move", "7Q4KZ9", "--project", " "]).run().shown(), @"
    exit 2
    on stderr:
    anamnesis: --project is empty
    ");
    let before = home.read(STUB);
    snapshot!(home.run("move 7Q4KZ9 --project nosuch").shown(), @r#"
    exit 1
    on stderr:
    anamnesis: no note and no session here is of a project "nosuch"; there are github.com/acme/cart, github.com/acme/shop
    → add --force if it is a new project; all: anamnesis project list
    "#);
    assert_eq!(home.read(STUB), before);
    let moved = home.run("move 7Q4KZ9 --project nosuch --force").well();
    assert!(moved.contains("applies to nosuch"), "{moved}");
}

#[test]
fn pin_and_mute() {
    let home = home_with_notes();
    let before = home.read(STUB);
    snapshot!(home.run("pin 7Q4KZ9").shown(), @r#"
    exit 0
    pinned #7Q4KZ9 "Integration tests need the stub server"
    Undo: anamnesis pin 7Q4KZ9 --off
    "#);
    snapshot!(home.run("pin 7Q4KZ9").shown(), @"
    exit 0
    #7Q4KZ9 is unchanged
    ");
    snapshot!(home.run("pin 7Q4KZ9 --off").shown(), @r#"
    exit 0
    no longer pinned #7Q4KZ9 "Integration tests need the stub server"
    Undo: anamnesis pin 7Q4KZ9
    "#);
    assert_eq!(home.read(STUB), before);
    snapshot!(home.run("mute 7Q4KZ9").shown(), @r#"
    exit 0
    muted #7Q4KZ9 "Integration tests need the stub server"
    Undo: anamnesis mute 7Q4KZ9 --off
    "#);
    assert!(!home.run("inject").well().contains("stub server"));
    assert!(home.run("search stub").well().contains("muted"));
    snapshot!(home.run("mute 7Q4KZ9 --off").shown(), @r#"
    exit 0
    no longer muted #7Q4KZ9 "Integration tests need the stub server"
    Undo: anamnesis mute 7Q4KZ9
    "#);
    assert_eq!(home.read(STUB), before);
}

#[test]
fn forget_and_restore_byte_for_byte() {
    // DEL-03
    let home = home_with_notes();
    let odd = home
        .read(STUB)
        .replace("tags: []", "tags: [] # none\nfuture_key: {a: 1}");
    fs::write(home.store().join(STUB), &odd).unwrap();
    snapshot!(home.run("forget 7Q4KZ9").shown(), @r#"
    exit 0
    forgot #7Q4KZ9 "Integration tests need the stub server"
    Undo: anamnesis undo [BATCH] · out of history too: anamnesis purge 7Q4KZ9
    "#);
    snapshot!(home.read(STUB), @"
    ---
    id: 01JZ00000000000000007Q4KZ9
    type: procedural
    title: ''
    project: github.com/acme/shop
    machine_id: laptop
    scope: portable
    prov_source: human
    confidence: 1.0
    created_at: '2025-11-22T03:04:05+00:00'
    updated_at: '2026-01-02T03:04:05+00:00'
    tags: []
    state: forgotten
    ---
    ");
    snapshot!(home.run("show 7Q4KZ9").shown(), @"
    exit 0
    7Q4KZ9  how-to      Integration tests need the stub server   you, now, forgotten
    github.com/acme/shop · laptop · memory/procedural/01JZ00000000000000007Q4KZ9.md
    → anamnesis forget --undo 7Q4KZ9
    ");
    snapshot!(home.run("forget 7Q4KZ9").shown(), @"
    exit 1
    on stderr:
    anamnesis: nothing was forgotten: #7Q4KZ9 is forgotten
    → anamnesis forget --undo 7Q4KZ9
    ");
    snapshot!(home.run("edit 7Q4KZ9 --title x").shown(), @"
    exit 1
    on stderr:
    anamnesis: #7Q4KZ9 is forgotten
    → anamnesis forget --undo 7Q4KZ9
    ");
    snapshot!(home.run("pin 7Q4KZ9").shown(), @"
    exit 1
    on stderr:
    anamnesis: #7Q4KZ9 is forgotten
    ");
    assert!(!home.run("list --all").well().contains("7Q4KZ9"));
    assert!(home.run("list --forgotten").well().contains("7Q4KZ9"));
    snapshot!(home.run("restore 7Q4KZ9").shown(), @r#"
    exit 0
    restored #7Q4KZ9 "Integration tests need the stub server"
    Undo: anamnesis forget 7Q4KZ9
    "#);
    assert_eq!(home.read(STUB), odd);
    snapshot!(home.run("restore 7Q4KZ9").shown(), @"
    exit 1
    on stderr:
    anamnesis: #7Q4KZ9 is not forgotten
    → anamnesis show 7Q4KZ9
    ");
}

#[test]
fn what_is_forgotten_is_in_no_file_but_the_trash() {
    // DEL-01, DEL-02
    let home = home_with_notes();
    let text = b"binds port 9090";
    assert_eq!(home.run("search binds").code, Some(0));
    assert_eq!(home.run("forget 7Q4KZ9").code, Some(0));
    for (path, bytes) in files(&home) {
        let holds = bytes.windows(text.len()).any(|window| window == text);
        assert_eq!(holds, path.starts_with("trash"), "{path}");
    }
    let nothing = home.run("forget ZZZZZZ");
    assert_eq!(nothing.code, Some(1));
    assert!(
        nothing
            .stderr
            .starts_with("anamnesis: nothing was forgotten: "),
        "{nothing:?}"
    );
}

/// Every file of the store with its bytes, by path.
fn files(home: &TestHome) -> Vec<(String, Vec<u8>)> {
    let found: Vec<_> = files_below(&home.store())
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(home.store()).unwrap();
            (
                name.to_string_lossy().into_owned(),
                fs::read(&path).unwrap(),
            )
        })
        .collect();
    assert!(found.len() > 5);
    found
}

#[test]
fn json_forms_have_the_keys_that_scripts_rely_on() {
    let home = home_with_notes();
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let note = home.run("show 7Q4KZ9 --json").json();
    let found = home.run("search stub --json").json();
    let listed = home.run("list --json").json();
    assert_eq!(keys(&found), ["notes", "capped"]);
    assert_eq!(keys(&listed), ["notes", "total"]);
    let mut expected = keys(&note);
    expected.retain(|key| key != "body");
    assert_eq!(keys(&listed["notes"][0]), expected);
}

#[test]
fn of_equal_results_the_newest_leads() {
    let home = home();
    for (short, day) in [("AAAA01", 1), ("CCCC02", 3), ("BBBB03", 2)] {
        home.add(
            &NoteText::new(&id(short), "The cache grows")
                .at(&format!("2025-12-0{day}T00:00:00+00:00")),
        );
    }
    let found = home.run("search cache --json").json();
    let hits = found["notes"].as_array().unwrap().iter();
    let hits: Vec<&str> = hits.map(|hit| hit["id"].as_str().unwrap()).collect();
    assert_eq!(hits, [id("CCCC02"), id("BBBB03"), id("AAAA01")]);
}
