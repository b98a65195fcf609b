//! `status`, `project`, `redact`, `reindex` and `demo`.

use std::fs;

use anamnesis_testkit::home::git_repository;

use crate::{SESSION, home, home_with_notes, snapshot, untouched_home};

#[test]
fn status_before_the_first_note_and_after() {
    let home = home();
    snapshot!(home.run("status").shown(), @"
    exit 0
    store: ~/.anamnesis · on · this machine only
    notes: 0; a session is noted when it ends
    sync:  none; notes stay on this machine · anamnesis init --remote URL
    state: no hook has run yet: the next prompt runs the first · anamnesis doctor
    ");
    home.hook(&home.start(SESSION, "startup")).well();
    snapshot!(home.run("status").shown(), @"
    exit 0
    store: ~/.anamnesis · on · this machine only
    notes: 0; a session is noted when it ends
    sync:  none; notes stay on this machine · anamnesis init --remote URL
    state: all well · hooks median [TIME] · anamnesis doctor
    ");
    snapshot!(home.command(["status"]).env("ANAMNESIS_OFF", "1").run().shown(), @"
    exit 0
    store: ~/.anamnesis · off (ANAMNESIS_OFF is set) · this machine only
    notes: 0
    sync:  none; notes stay on this machine · anamnesis init --remote URL
    state: off: ANAMNESIS_OFF is set · anamnesis doctor
    ");

    let home = home_with_notes();
    home.hook(&home.start(SESSION, "startup")).well();
    snapshot!(home.run("status").shown(), @"
    exit 0
    store: ~/.anamnesis · on · machine laptop · 0.1.0
    here:  github.com/acme/shop (from the git remote)
           3 notes: 1 fact, 1 how-to, 1 session
           a session starts with 4 notes, ~151 tokens
    notes: 5 in 2 projects, 1 for all projects, 0 on this machine only
    sync:  none; notes stay on this machine · anamnesis init --remote URL
    state: all well · hooks median [TIME] · anamnesis doctor
    ");
    snapshot!(home.command(["status"]).env("LANG", "POSIX").run().shown(), @"
    exit 0
    store: ~/.anamnesis · on · machine laptop · 0.1.0
    here:  github.com/acme/shop (from the git remote)
           3 notes: 1 fact, 1 how-to, 1 session
           a session starts with 4 notes, ~151 tokens
    notes: 5 in 2 projects, 1 for all projects, 0 on this machine only
    sync:  none; notes stay on this machine · anamnesis init --remote URL
    state: all well · hooks median [TIME] · anamnesis doctor
    ");
    // The deferred process has committed what the hook wrote.
    home.settle();
    snapshot!(home.run("status --json").shown(), @r#"
    exit 0
    {
      "store": "[ROOT]/home/.anamnesis",
      "version": "0.1.0",
      "machine_id": "laptop",
      "off": false,
      "off_because": null,
      "project": {
        "key": "github.com/acme/shop",
        "notes": 3,
        "by_kind": {
          "fact": 1,
          "how-to": 1,
          "session": 1
        },
        "injected_at_start": 4,
        "tokens_at_start": 151
      },
      "total": 5,
      "by_type": {
        "episodic": 1,
        "procedural": 1,
        "semantic": 3
      },
      "by_project": {
        "github.com/acme/cart": 1,
        "github.com/acme/shop": 3,
        "global": 1
      },
      "by_scope": {
        "portable": 5
      },
      "by_workspace": {
        "personal": 5
      },
      "by_state": {
        "active": 5
      },
      "sync": {
        "initialized": true,
        "remote": null,
        "head": [COMMIT],
        "dirty": false,
        "ahead": 0,
        "waiting": 0,
        "synced_at": null,
        "failing_since": null,
        "offline": false,
        "error": null,
        "held": null,
        "problem": null
      },
      "kept": {
        "sessions": 0,
        "bytes": [SIZE]
      },
      "undistilled": null,
      "upkeep": null,
      "withheld": [],
      "purge_left": [],
      "state": {
        "ok": true,
        "text": "all well · hooks median [TIME]"
      }
    }
    "#);
}

#[test]
fn status_says_what_waits_and_what_is_wrong() {
    // HOOK-14
    let home = home_with_notes();
    home.command(["write", "--title", "For all", "--project", "global"])
        .by_agent()
        .run()
        .new_id();
    home.write(
        "memory/semantic/01JZ0000000000000000BR0KEN.md",
        "no front matter",
    );
    snapshot!(home.run("status").shown(), @"
    exit 0
    store: ~/.anamnesis · on · machine laptop · 0.1.0
    here:  github.com/acme/shop (from the git remote)
           3 notes: 1 fact, 1 how-to, 1 session
           a session starts with 4 notes, ~151 tokens
    notes: 6 in 2 projects, 2 for all projects, 1 on this machine only
    sync:  none; notes stay on this machine · anamnesis init --remote URL
    to do: 1 proposal · anamnesis review
    state: 1 file not taken as notes · anamnesis doctor
    ");
    assert_eq!(home.run("status --json").json()["state"]["ok"], false);
}

#[test]
fn the_project_and_the_step_that_gave_it() {
    let home = untouched_home();
    let project = |folder: &str| {
        let folder = home.root().join(folder);
        fs::create_dir_all(&folder).unwrap();
        home.command(["project"]).within(folder).run().shown()
    };
    snapshot!(project("shop"), @"
    exit 0
    github.com/acme/shop
    from the git remote of [ROOT]/shop
    folder [ROOT]/shop
    ");
    snapshot!(project("shop/src/deep"), @"
    exit 0
    github.com/acme/shop
    from the git remote of [ROOT]/shop
    folder [ROOT]/shop/src/deep
    ");
    git_repository(&home.root().join("Local Only"), None);
    snapshot!(project("Local Only/src"), @"
    exit 0
    local only
    from the name of the repository [ROOT]/Local Only
    folder [ROOT]/Local Only/src
    ");
    snapshot!(project("home/Plain Folder"), @"
    exit 0
    plain folder
    from the name of the folder
    folder ~/Plain Folder
    ");
    fs::create_dir_all(home.project().join("packages/cart/.anamnesis")).unwrap();
    fs::write(
        home.project().join("packages/cart/.anamnesis/project"),
        "\nAcme Cart\n",
    )
    .unwrap();
    snapshot!(project("shop/packages/cart/src"), @"
    exit 0
    Acme Cart
    from the marker [ROOT]/shop/packages/cart/.anamnesis/project
    folder [ROOT]/shop/packages/cart/src
    ");
    if cfg!(unix) {
        snapshot!(home.command(["project", "/"]).run().shown(), @"
        exit 0
        global
        from nothing: there is no name to go by
        folder /
        ");
    }
    snapshot!(home.run("project --json").shown(), @r#"
    exit 0
    {
      "key": "github.com/acme/shop",
      "step": "remote",
      "from": "[ROOT]/shop",
      "folder": "[ROOT]/shop",
      "also": [],
      "groups": [],
      "inside": [],
      "untrusted": null
    }
    "#);
    // It is a question about a folder; no store is made for it.
    assert!(!home.store().exists());
}

#[test]
fn a_repository_cannot_claim_all_projects() {
    // HOOK-03, INJ-05
    let home = home();
    fs::create_dir_all(home.project().join(".anamnesis")).unwrap();
    for marker in ["global", " global \n", "\u{feff}global", "glob\u{200b}al"] {
        fs::write(home.project().join(".anamnesis/project"), marker).unwrap();
        let key = home.run("project --json").json()["key"].clone();
        assert_ne!(key, "global", "{marker:?}");
    }
}

#[test]
fn status_and_lists_take_another_project_or_all() {
    let home = home_with_notes();
    let status = home.run("status --project github.com/acme/cart").well();
    assert!(
        status.contains(
            "here:  github.com/acme/cart (from the command line)\n       1 note: 1 fact\n"
        ),
        "{status}"
    );
    for verb in [
        "recall rate",
        "search rate",
        "stats",
        "review",
        "upkeep",
        "reflect",
        "export --json",
        "log",
    ] {
        home.run("sync").well();
        let [all, default] =
            ["--everywhere", ""].map(|option| home.run(&format!("{verb} {option}")));
        assert_eq!(all.shown(), default.shown(), "{verb}");
        let both = home.run(&format!("{verb} --everywhere --project x/y"));
        assert_eq!(both.code, Some(2), "{verb}");
    }
    assert_eq!(home.run("stats -n 0").code, Some(2));
}

#[test]
fn redact_masks_and_names_the_rule() {
    let home = untouched_home();
    let text = concat!(
        "export GITHUB_TOKEN=ghp",
        "_0123456789abcdefghijABCDEFGHIJ456789\ncommit 7889111\n"
    );
    snapshot!(home.command(["redact"]).input(text).run().shown(), @"
    exit 0
    export GITHUB_TOKEN=[REDACTED]
    commit 7889111
    ");
    snapshot!(home.command(["redact", "--json"]).input(text).run().shown(), @r#"
    exit 0
    {
      "findings": [
        {
          "rule": "assignment",
          "start": 20,
          "end": 60
        }
      ]
    }
    "#);
    let plain = "no secret, é, no line end";
    assert_eq!(
        home.command(["redact"])
            .env("LANG", "C")
            .input(plain)
            .run()
            .well(),
        plain
    );
    assert!(!home.store().exists());
    home.run("config set redact.patterns cust-???? *@acme.example")
        .well();
    let masked = home
        .command(["redact"])
        .input("CUST-0042, Jane@ACME.example")
        .run();
    assert_eq!(masked.well(), "[REDACTED], [REDACTED]");
    home.write(
        "config.json",
        r#"{"redact": {"patterns": ["cust-????", "*"]}}"#,
    );
    let masked = home.command(["redact"]).input("CUST-0042 *").run();
    assert_eq!(masked.stdout, "[REDACTED] *");
    assert!(masked.stderr.contains("redact.patterns"), "{masked:?}");
}

#[test]
fn reindex_counts_and_says_what_it_left() {
    let home = home_with_notes();
    snapshot!(home.run("reindex").shown(), @"
    exit 0
    reindex: indexed 5 note(s)
    ");
    let before = home.run("list --everywhere --json").well();
    home.write("memory/semantic/readme.txt", "x");
    home.write(
        "memory/semantic/01JZ0000000000000000BR0KEN.md",
        "no front matter",
    );
    snapshot!(home.run("reindex").shown(), @"
    exit 0
    reindex: indexed 5 note(s)
    2 files not taken as notes
    → anamnesis doctor
    ");
    assert_eq!(home.run("list --everywhere --json").well(), before);
}

#[test]
fn the_demo_shows_a_note_and_leaves_nothing() {
    let home = untouched_home();
    let shown = home.run("demo").well();
    for part in [
        "1. A session starts",
        "prov_source: session-end",
        "<anamnesis-context>",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!home.store().exists());
    let left = fs::read_dir(home.root()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains("demo")),
        "{left:?}"
    );
}
