//! `log`, `diff`, `show --at`, `search --at`, `undo`.

use anamnesis_testkit::home::{Invocation, Output, TestHome};

use crate::{home, home_with_notes, id, purge, snapshot};

/// A command some minutes after the clock of the tests.
fn after_minutes<'a>(home: &'a TestHome, minutes: u32, words: &str) -> Invocation<'a> {
    let now = format!("2026-01-02T03:{:02}:05Z", 4 + minutes);
    home.command(words.split_whitespace())
        .env("ANAMNESIS_NOW", now)
}

/// A home whose notes are committed: three batches, of a person, an agent and a session.
fn committed() -> TestHome {
    let home = home_with_notes();
    home.run("sync").well();
    home
}

/// Puts the place in the log for the names of batches and commits, which are drawn.
fn with_placeholders(home: &TestHome, output: &Output) -> String {
    let log = home.run("log --all --json").json();
    let mut text = output.shown();
    for (place, commit) in log["commits"].as_array().unwrap().iter().rev().enumerate() {
        if let Some(batch) = commit["change"].as_str() {
            text = text.replace(batch, &format!("[BATCH {place}]"));
            text = text.replace(&batch[20..], &format!("BATCH{place}"));
        }
        let name = commit["commit"].as_str().unwrap();
        text = text.replace(name, &format!("[COMMIT {place}]"));
        text = text.replace(&name[..7], &format!("COMMIT{place}"));
    }
    text
}

/// The newest batch, as people are shown it.
fn newest_batch(home: &TestHome) -> String {
    let log = home.run("log -n 1 --json").json();
    let batch = log["commits"][0]["change"].as_str().unwrap();
    batch[20..].to_owned()
}

/// Edits the note about tests, then forgets the one about deploys.
fn changed() -> TestHome {
    let home = committed();
    let edit = "edit 7Q4KZ9 --stdin --title Integration_tests_need_a_stub";
    after_minutes(&home, 10, edit)
        .input("`make stub` binds port 9191; without it the login tests hang.\n")
        .run()
        .well();
    after_minutes(&home, 20, "forget ZD81QV").run().well();
    home
}

#[test]
fn before_the_first_commit_there_is_no_history() {
    let home = home();
    let log = home.run("log");
    assert_eq!(log.code, Some(0), "{log:?}");
    assert!(log.stdout.starts_with("0 changes"), "{log:?}");
    for command in ["diff 7Q4KZ9", "show 7Q4KZ9 --at 2026-01-01"] {
        let output = home.run(command);
        assert_eq!(output.code, Some(1), "{command}");
        assert!(
            output.stderr.contains("there is no history yet"),
            "{output:?}"
        );
    }
}

#[test]
fn before_the_first_commit_there_is_nothing_to_undo() {
    let home = home();
    snapshot!(home.run("undo").shown(), @"
    exit 0
    nothing to undo
    ");
    assert_eq!(
        home.run("undo --json").json(),
        serde_json::json!({ "changes": [] })
    );
}

#[test]
fn the_undo_of_the_first_change_does_not_remove_the_note() {
    // Hooks and editors write notes that no commit has yet.
    for change in ["edit 7Q4KZ9 --stdin", "forget 7Q4KZ9", "pin 7Q4KZ9"] {
        let home = home_with_notes();
        let path = format!("memory/procedural/{}.md", id("7Q4KZ9"));
        let before = home.read(&path);
        let command = home.command(change.split(' '));
        command.input("Another text.").run().well();
        assert_ne!(home.read(&path), before);
        // The log commits the other notes, too, and lists them first.
        let log = home.run("log --note 7Q4KZ9 --json").json();
        let batch = log["commits"][0]["change"].as_str().unwrap();
        home.run(&format!("undo {batch}")).well();
        assert_eq!(home.read(&path), before, "{change}");
    }
}

#[test]
fn the_log_is_one_line_a_commit() {
    let home = changed();
    snapshot!(with_placeholders(&home, &after_minutes(&home, 30, "log").run()), @"
    exit 0
    10 min ago laptop     you        BATCH6 forget ~1 Deploys go through Jenkins
    20 min ago laptop     you        BATCH5 edit ~1 Integration_tests_need_a_stub
    30 min ago laptop     you        [BATCH] wrote +1 Deploys go through Jenkins
    30 min ago laptop     you        [BATCH] wrote +1 Integration tests need the stu…
    30 min ago laptop     you        [BATCH] wrote +1 Package manager is pnpm
    30 min ago laptop     session    [BATCH] noted +1 Add rate limits to the login
    30 min ago laptop     agent      BATCH0 sync +1 Rate limits live in middleware/…
    → anamnesis log --diff CHANGE   |   anamnesis undo [BATCH]
    ");
    snapshot!(with_placeholders(&home, &after_minutes(&home, 30, "log -n 1").run()), @"
    exit 0
    10 min ago laptop     you        BATCH6 forget ~1 Deploys go through Jenkins
    the newest 1 shown · --all
    ");
    snapshot!(with_placeholders(&home, &after_minutes(&home, 30, "log --note 7q4kz9 --json").run()), @r#"
    exit 0
    {
      "commits": [
        {
          "commit": "[COMMIT 5]",
          "at": "2026-01-02T03:14:05Z",
          "machine": "laptop",
          "actor": "person",
          "change": "[BATCH 5]",
          "did": "edit",
          "title": "Integration_tests_need_a_stub",
          "notes": [
            {
              "id": "01JZ00000000000000007Q4KZ9",
              "did": "changed"
            }
          ]
        },
        {
          "commit": "[COMMIT 3]",
          "at": "2026-01-02T03:04:05Z",
          "machine": "laptop",
          "actor": "person",
          "change": "[BATCH 3]",
          "did": "wrote",
          "title": "Integration tests need the stub server",
          "notes": [
            {
              "id": "01JZ00000000000000007Q4KZ9",
              "did": "new"
            }
          ]
        }
      ],
      "more": false
    }
    "#);
}

#[test]
fn the_log_of_a_project_has_its_changes_only() {
    let home = changed();
    let verbs = |words: &str| -> Vec<String> {
        let json = home.run(&format!("{words} --json")).json();
        let commits = json["commits"].as_array().or(json["changes"].as_array());
        let verbs = commits.unwrap().iter();
        verbs
            .map(|commit| commit["did"].as_str().unwrap().to_owned())
            .collect()
    };
    let of_cart = verbs("log --project github.com/acme/cart");
    assert_eq!(of_cart, ["forget", "wrote"]);
    assert_eq!(verbs("log --project github.com/acme/cart -n 1"), ["forget"]);
    assert_eq!(verbs("log --everywhere"), verbs("log"));
    assert_eq!(verbs("log --project no/such"), [""; 0]);
    assert_eq!(verbs("undo -n 1"), ["forget"]);
    assert_eq!(home.run("undo -n 0").code, Some(2));
}

#[test]
fn a_diff_is_told_note_by_note() {
    let home = changed();
    let edit = home.run("log --note 7Q4KZ9 --json").json();
    let edit = edit["commits"][0].clone();
    let batch = &edit["change"].as_str().unwrap()[20..];
    let of_batch = after_minutes(&home, 30, &format!("diff {batch}")).run();
    snapshot!(with_placeholders(&home, &of_batch), @r#"
    exit 0
    edit by you on laptop, 20 min ago · change BATCH5 · commit COMMIT5

    #7Q4KZ9 changed  Integration_tests_need_a_stub
    -title: "Integration tests need the stub server"
    +title: Integration_tests_need_a_stub
    @@ -1 +1 @@
    -`make stub` binds port 9090; without it the login tests hang.
    +`make stub` binds port 9191; without it the login tests hang.

    → anamnesis undo [BATCH]
    "#);
    // By the commit, and by the note, it is the same.
    let commit = &edit["commit"].as_str().unwrap()[..9];
    for name in [commit, "7Q4KZ9", "#7q4kz9"] {
        assert_eq!(
            after_minutes(&home, 30, &format!("diff {name}")).run(),
            of_batch,
            "{name}"
        );
    }
    snapshot!(with_placeholders(&home, &after_minutes(&home, 30, "diff ZD81QV").run()), @r#"
    exit 0
    forget by you on laptop, 10 min ago · change BATCH6 · commit COMMIT6

    #ZD81QV forgotten  Deploys go through Jenkins
    -title: "Deploys go through Jenkins"
    +title: ''
    +state: forgotten

    → anamnesis undo [BATCH]
    "#);
    snapshot!(with_placeholders(&home, &after_minutes(&home, 30, "diff ZZZZZZ").run()), @r#"
    exit 1
    on stderr:
    anamnesis: no change "ZZZZZZ"
    → four or more characters of its end: anamnesis log
    "#);
    let json = after_minutes(&home, 30, "diff 7Q4KZ9 --json").run().json();
    assert!(
        json["notes"][0]["before"]
            .as_str()
            .unwrap()
            .contains("port 9090")
    );
    assert!(
        json["notes"][0]["after"]
            .as_str()
            .unwrap()
            .contains("port 9191")
    );
    assert!(
        json["notes"][0]["diff"]
            .as_str()
            .unwrap()
            .contains("\n+`make stub` binds port 9191")
    );
}

#[test]
fn what_an_old_commit_holds_is_masked_and_no_command_to_a_terminal() {
    let home = committed();
    let path = "memory/procedural/01JZ00000000000000007Q4KZ9.md";
    let text = home.read(path);
    let token = "stork-4711";
    home.write(
        path,
        text.replace("port 9090", &format!("{token} \u{1b}[31mred\u{202e}")),
    );
    home.run("sync").well();
    home.run("config set redact.patterns stork-*").well();
    for command in ["diff 7Q4KZ9", "diff 7Q4KZ9 --json"] {
        let shown = home.run(command).well();
        assert!(shown.contains("red"), "{shown}");
        assert!(!shown.contains(token), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        assert!(!shown.contains("\\u001b"), "{shown}");
    }
}

#[test]
fn a_note_is_shown_as_it_was() {
    let home = changed();
    snapshot!(with_placeholders(&home, &after_minutes(&home, 30, "show 7Q4KZ9 --at 2026-01-02T03:05Z").run()), @"
    exit 0
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
    github.com/acme/shop · laptop · memory/procedural/01JZ00000000000000007Q4KZ9.md
    version of 2026-01-02 03:05:00 UTC

    `make stub` binds port 9090; without it the login tests hang.

    → anamnesis log --note 7Q4KZ9
    ");
    // What was forgotten since is there for a person who asks for it.
    let then = home.command(["show", "ZD81QV", "--at", "15 min ago"]);
    let then = then
        .env("ANAMNESIS_NOW", "2026-01-02T03:34:05Z")
        .run()
        .well();
    assert!(then.contains("Deploys go through Jenkins"), "{then}");
    let now = after_minutes(&home, 30, "show ZD81QV --at 2026-01-02")
        .run()
        .well();
    assert!(!now.contains("Jenkins"), "{now}");
    let raw = after_minutes(&home, 30, "show 7Q4KZ9 --raw --at 2026-01-02T03:05Z")
        .run()
        .well();
    assert!(
        raw.starts_with("---\nid: 01JZ00000000000000007Q4KZ9\n"),
        "{raw}"
    );
    let json = after_minutes(&home, 30, "show 7Q4KZ9 --json --at 2026-01-02T03:05Z")
        .run()
        .json();
    assert_eq!(json["at"], "2026-01-02T03:05:00Z");
    assert_eq!(json["title"], "Integration tests need the stub server");
    snapshot!(home.run("show 7Q4KZ9 --at 2026-01-01").shown(), @"
    exit 1
    on stderr:
    anamnesis: the history has nothing before 2026-01-01 23:59:59 UTC
    → anamnesis log --all   (its last line is the oldest)
    ");
    snapshot!(home.run("show ZZZZZZ --at 2026-01-02").shown(), @"
    exit 1
    on stderr:
    anamnesis: #ZZZZZZ was not there at 2026-01-02 23:59:59 UTC
    → anamnesis log --note ZZZZZZ
    ");
    snapshot!(home.run("show 7Q4KZ9 --at soon").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: "soon" is not a date
    → 2026-01-31, 2026-01-31T09:30Z, yesterday, or "3 d ago"
    "#);
}

#[test]
fn notes_are_found_as_they_were_and_nothing_is_left_behind() {
    let home = changed();
    let search = |words: &str| after_minutes(&home, 30, words).run();
    snapshot!(search("search stub jenkins --at 2026-01-02T03:05Z").shown(), @r#"
    exit 0
    ZD81QV  fact        Deploys go through Jenkins                         you, 10 d
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
                        `make stub` binds port 9090; without it the login tests han…
    → anamnesis show ID --at "2026-01-02T03:05Z"
    "#);
    assert!(search("search jenkins").well().contains("no note has"));
    let found = search("search 9090 --at 2026-01-02T03:05Z --json").json();
    assert!(
        found["notes"][0]["body"]
            .as_str()
            .unwrap()
            .contains("port 9090")
    );
    let not = search("search 9191 --at 2026-01-02T03:05Z").well();
    assert_eq!(
        not,
        "no note had any of these words at 2026-01-02 03:05:00 UTC\n"
    );
    assert_eq!(search("search stub --at 2025-01-01").code, Some(1));
    let mut left: Vec<_> = std::fs::read_dir(home.store().join("derived"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["lock", "index-"].iter().any(|own| name.contains(own)))
        .collect();
    left.sort();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_batch_is_taken_back_and_the_undo_too() {
    // DEL-03
    let home = committed();
    let path = "memory/procedural/01JZ00000000000000007Q4KZ9.md";
    let before = home.read(path);
    after_minutes(&home, 10, "edit 7Q4KZ9 --stdin")
        .input("Other text.\n")
        .run()
        .well();
    let after = home.read(path);
    let edit = newest_batch(&home);
    let undone = after_minutes(&home, 20, &format!("undo {edit}")).run();
    snapshot!(with_placeholders(&home, &undone), @r#"
    exit 0
    undid BATCH5: edit by you, 10 min ago
      restored  #7Q4KZ9 "Integration tests need the stub server"
    Undo: anamnesis undo [BATCH]
    "#);
    assert_eq!(home.read(path), before);
    assert!(home.run("search 9090").well().contains("7Q4KZ9"));
    let undo = newest_batch(&home);
    after_minutes(&home, 21, &format!("undo #{undo}"))
        .run()
        .well();
    assert_eq!(home.read(path), after);
    snapshot!(with_placeholders(&home, &after_minutes(&home, 30, "undo").run()), @"
    exit 0
    9 min ago  laptop     you        BATCH7 undo ~1 Integration tests need the stub…
    10 min ago laptop     you        BATCH6 undo ~1 Integration tests need the stub…
    20 min ago laptop     you        BATCH5 edit ~1 Integration tests need the stub…
    30 min ago laptop     you        [BATCH] wrote +1 Deploys go through Jenkins
    30 min ago laptop     you        [BATCH] wrote +1 Integration tests need the stu…
    30 min ago laptop     you        [BATCH] wrote +1 Package manager is pnpm
    30 min ago laptop     session    [BATCH] noted +1 Add rate limits to the login
    30 min ago laptop     agent      BATCH0 sync +1 Rate limits live in middleware/…
    → anamnesis undo [BATCH]   (the newest; any other by its six characters)
    ");
    // Twice is once.
    let undone = after_minutes(&home, 30, &format!("undo {undo}")).run();
    snapshot!(with_placeholders(&home, &undone), @r#"
    exit 1
    did not undo BATCH6: undo by you, 10 min ago
      left      #7Q4KZ9 "Integration tests need the stub server"  (nothing to undo)
    on stderr:
    anamnesis: nothing was undone
    "#);
}

#[test]
fn what_came_later_stays_and_is_told() {
    let home = committed();
    let edit = |minutes, text: &str| {
        let command = after_minutes(&home, minutes, "edit 7Q4KZ9 --stdin");
        command.input(text).run().well();
        newest_batch(&home)
    };
    edit(10, "One.\n\nTwo.\n");
    let wrong = edit(11, "One, wrong.\n\nTwo.\n");
    edit(12, "One, wrong.\n\nTwo, better.\n");
    let undone = after_minutes(&home, 20, &format!("undo {wrong}")).run();
    snapshot!(with_placeholders(&home, &undone), @r#"
    exit 0
    undid BATCH6: edit by you, 9 min ago
      merged    #7Q4KZ9 "Integration tests need the stub…"  (what came later stays)
    Undo: anamnesis undo [BATCH]
    "#);
    let text = home.read("memory/procedural/01JZ00000000000000007Q4KZ9.md");
    assert!(text.contains("One.\n\nTwo, better."), "{text}");
    let clash = edit(13, "Once more.\n");
    edit(14, "And again.\n");
    let left = after_minutes(&home, 20, &format!("undo {clash} --json")).run();
    assert_eq!(left.code, Some(1));
    let json = left.json();
    assert_eq!(json["change"], serde_json::Value::Null);
    assert_eq!(json["notes"][0]["did"], "left");
    assert_eq!(json["notes"][0]["why"], "the same lines were changed since");
}

#[test]
fn an_undone_forgetting_is_remembered() {
    let home = committed();
    let path = "memory/semantic/01JZ0000000000000000ZD81QV.md";
    let before = home.read(path);
    after_minutes(&home, 10, "forget ZD81QV").run().well();
    let trash = home.store().join("trash/01JZ0000000000000000ZD81QV.md");
    assert!(trash.exists());
    let forget = newest_batch(&home);
    after_minutes(&home, 20, &format!("undo {forget}"))
        .run()
        .well();
    assert_eq!(home.read(path), before);
    assert!(!trash.exists());
    // The same text may be written again: nothing remembers that it was forgotten.
    let undo = newest_batch(&home);
    let again = after_minutes(&home, 21, &format!("undo {undo}")).run();
    assert!(again.well().contains("forgotten #ZD81QV"));
    assert!(home.read(path).contains("state: forgotten"));
    assert!(trash.exists());
    after_minutes(&home, 22, "restore ZD81QV").run().well();
    assert_eq!(home.read(path), before);
}

#[test]
fn an_agent_takes_back_its_own_batches_only() {
    let home = changed();
    let by_agent = |words: &str| after_minutes(&home, 30, words).by_agent().run();
    let refused = by_agent(&format!("undo {}", newest_batch(&home)));
    snapshot!(refused.shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can undo this change: no agent made it
    ");
    assert!(
        home.read("memory/semantic/01JZ0000000000000000ZD81QV.md")
            .contains("forgotten")
    );
    let own = by_agent("edit B2M6RD --title Limits").well();
    assert!(own.contains("Undo: anamnesis undo "), "{own}");
    let listed = by_agent("undo").well();
    assert!(
        listed.contains("agent") && !listed.contains(" you "),
        "{listed}"
    );
    let undone = by_agent(&format!("undo {}", newest_batch(&home))).well();
    assert!(undone.contains("restored  #B2M6RD"), "{undone}");
    // Of what a person forgot it is shown nothing.
    for command in [
        "log",
        "log --json",
        "diff ZD81QV",
        "show ZD81QV --at 2026-01-02T03:05Z",
        "search jenkins --at 2026-01-02T03:05Z",
        "undo",
        "diff ZD81QV --json",
        "log --note ZD81QV",
    ] {
        let output = by_agent(command);
        assert!(!output.shown().contains("Jenkins"), "{command}: {output:?}");
    }
}

#[test]
fn a_name_that_stands_for_more_lists_what() {
    let home = committed();
    // All batches of a moment begin alike, since they begin with its time.
    let log = home.run("log --json").json();
    let batch = log["commits"][0]["change"].as_str().unwrap();
    let output = home.run(&format!("undo {}", &batch[..4]));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(
        output.stderr.contains("matches 5 changes and notes:\n"),
        "{output:?}"
    );
    let output = home.run("undo ZZZZZZ");
    snapshot!(output.shown(), @r#"
    exit 1
    on stderr:
    anamnesis: no change "ZZZZZZ"
    → four or more characters of its end: anamnesis log
    "#);
}

#[test]
fn what_a_prompt_saved_is_a_change_of_the_persons_that_is_listed_first() {
    let home = home_with_notes();
    for text in ["The shop listens on port 8080", "Prices are in cents"] {
        let mut payload = home.payload("UserPromptSubmit", crate::SESSION);
        payload["prompt"] = format!("/memory-remember {text}").into();
        home.hook(&payload).well();
    }
    let list = home.run("undo --json").json();
    let batches = list["changes"].as_array().unwrap();
    let of_person = batches
        .iter()
        .take_while(|batch| batch["actor"] == "person");
    let titles: Vec<&str> = of_person
        .filter_map(|batch| batch["title"].as_str())
        .collect();
    assert!(titles.contains(&"Prices are in cents"), "{list}");
    let saved = batches
        .iter()
        .find(|batch| batch["title"] == "Prices are in cents");
    let saved = saved.unwrap();
    assert_eq!(saved["notes"].as_array().unwrap().len(), 1, "{saved}");
    let batch = saved["change"].as_str().unwrap();
    home.run(&format!("undo {batch}")).well();
    assert!(!home.run("list").well().contains("Prices are in cents"));
    assert!(home.run("list").well().contains("port 8080"));
    // A session's note is listed once, however often it was written.
    let noted = batches
        .iter()
        .filter(|batch| batch["did"] == "noted")
        .count();
    assert!(noted <= 1, "{list}");
}

#[test]
fn a_forgotten_note_keeps_its_title_in_the_list_on_every_machine() {
    let home = committed();
    home.run("forget 7Q4KZ9").well();
    std::fs::remove_dir_all(home.store().join("trash")).unwrap();
    let list = home.run("list --forgotten").well();
    assert!(
        list.contains("Integration tests need the stub server"),
        "{list}"
    );
}

#[test]
fn an_undo_without_an_argument_lists_the_last_ten_changes() {
    let home = home();
    for number in 1..=11 {
        home.run(&format!("write --title Fact{number}")).well();
    }
    let listed = home.run("undo").well();
    assert_eq!(listed.lines().count(), 11, "{listed}");
    assert!(!listed.contains("Fact1\n") && listed.contains("Fact2\n"));
    // No list has changes of notes that stay on this machine.
    home.run("write --title Local --scope machine-local").well();
    for list in ["undo", "log --all"] {
        assert!(!home.run(list).well().contains("Local"), "{list}");
    }
}

#[test]
fn an_undo_removes_nothing_from_the_history() {
    let home = home();
    home.run("write --title Kestrel").well();
    // A command commits before it ends.
    let folder = home.store().join("memory/.git");
    let folder = format!("--git-dir={}", folder.display());
    purge::git(&[&folder, "rev-parse", "--verify", "HEAD"]);
    let write = newest_batch(&home);
    after_minutes(&home, 1, &format!("undo {write}"))
        .run()
        .well();
    assert!(!home.run("list").well().contains("Kestrel"));
    for shown in [
        format!("log --diff {write}"),
        "search kestrel --at 2026-01-02T03:04:30Z".to_owned(),
    ] {
        let shown = after_minutes(&home, 2, &shown).run().well();
        assert!(shown.contains("Kestrel"), "{shown}");
    }
}

#[test]
fn the_join_of_two_machines_is_no_change() {
    let (laptop, remote) = purge::with_remote();
    let desktop = home();
    purge::join(&desktop, &remote);
    for (home, title) in [(&laptop, "Kestrel"), (&desktop, "Heron")] {
        home.run(&format!("write --title {title}")).well();
        purge::run(home, "sync").well();
    }
    let folder = desktop.store().join("memory/.git");
    let folder = format!("--git-dir={}", folder.display());
    let join = purge::git(&[&folder, "log", "-1", "--merges", "--format=%H"]);
    let join = String::from_utf8(join).unwrap();
    let refused = desktop.run(&format!("undo {}", join.trim()));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("it joins machines"), "{refused:?}");
    assert_eq!(desktop.run("log").well().matches(" write +1 ").count(), 2);
}
