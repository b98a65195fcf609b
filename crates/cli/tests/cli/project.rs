//! Which project a folder belongs to, while its remote, its name or its marker change.

use std::{fs, path::Path};

use anamnesis_testkit::home::{TestHome, git_repository};

use super::{SESSION, home, home_with_notes, journal::Played, purge, snapshot, untouched_home};

/// A store of a few notes with its index.
fn indexed() -> TestHome {
    let home = home_with_notes();
    home.run("reindex").well();
    home
}

/// What a session that starts in a folder is given.
fn given(home: &TestHome, folder: &Path) -> String {
    let payload = home.start(SESSION, "startup").to_string();
    let hook = home.hook_with(payload).env("CLAUDE_PROJECT_DIR", folder);
    hook.run().well()
}

/// Gives the project of the home another remote.
fn move_remote(home: &TestHome, address: &str) {
    let config = home.project().join(".git/config");
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace("git@github.com:acme/shop.git", address);
    fs::write(config, text).unwrap();
}

fn mark(folder: &Path, key: &str) {
    fs::create_dir_all(folder.join(".anamnesis")).unwrap();
    fs::write(folder.join(".anamnesis/project"), key).unwrap();
}

#[test]
fn a_remote_that_moved_keeps_the_notes() {
    // INJ-15
    let home = indexed();
    let folder = home.project();
    assert!(given(&home, &folder).contains("stub server"));
    move_remote(&home, "https://git.example.com/team/shop");
    assert!(given(&home, &folder).contains("stub server"));
    home.work();
    assert!(given(&home, &folder).contains("stub server"));
    snapshot!(home.run("project").shown(), @r#"
    exit 0
    git.example.com/team/shop
    from the git remote of [ROOT]/shop
    folder [ROOT]/shop
    also github.com/acme/shop
    "#);
    snapshot!(home.run("project list").shown(), @r#"
    exit 0
    git.example.com/team/shop  3 notes · also github.com/acme/shop
    github.com/acme/cart  1 note
    "#);
    snapshot!(home.run("project list --json").shown(), @r#"
    exit 0
    {
      "projects": [
        {
          "key": "git.example.com/team/shop",
          "also": [
            "github.com/acme/shop"
          ],
          "notes": 3
        },
        {
          "key": "github.com/acme/cart",
          "also": [],
          "notes": 1
        }
      ],
      "groups": [],
      "may_be_one": null
    }
    "#);
    for (words, title) in [
        ("list", "stub server"),
        ("search stub --here", "stub server"),
        ("inject", "stub server"),
        ("list --project github.com/acme/shop", "stub server"),
        ("status", "3 notes"),
    ] {
        let text = home.command(words.split(' ')).within(&folder).run().well();
        assert!(text.contains(title), "{words}: {text}");
    }
    // What is paused under the old name stays so.
    home.run("pause --project github.com/acme/shop").well();
    assert!(!given(&home, &folder).contains("stub server"));
    home.run("resume --project github.com/acme/shop").well();
    snapshot!(home.run("project split github.com/acme/shop").shown(), @r#"
    exit 0
    github.com/acme/shop is no longer the same project as git.example.com/team/shop
    "#);
    assert!(!given(&home, &folder).contains("stub server"));
    snapshot!(home.run("project split github.com/acme/shop").shown(), @r#"
    exit 1
    on stderr:
    anamnesis: github.com/acme/shop is the same as no other key
    → anamnesis project list
    "#);
}

#[test]
fn a_cloned_repository_does_not_choose_whose_notes_it_reads() {
    // HOOK-03
    let home = indexed();
    assert!(given(&home, &home.project()).contains("stub server"));
    let cloned = home.root().join("cloned");
    git_repository(&cloned, Some("https://github.com/stranger/tool"));
    mark(&cloned, "github.com/acme/shop");
    let start = given(&home, &cloned);
    assert!(
        start.contains("pnpm") && !start.contains("stub server"),
        "{start}"
    );
    let shown = home.command(["project"]).within(&cloned).run().shown();
    snapshot!(shown, @r#"
    exit 0
    github.com/stranger/tool
    from the git remote of [ROOT]/cloned
    folder [ROOT]/cloned
    the marker says github.com/acme/shop, which is another project's: not followed
    → anamnesis project trust   (gives this folder the notes of github.com/acme/shop)
    "#);
    let trust = || home.command(["project", "trust"]).within(&cloned);
    snapshot!(trust().by_agent().run().shown(), @r#"
    exit 1
    on stderr:
    anamnesis: only a person can say which project's notes a folder has
    → run this command in a terminal of your own
    "#);
    assert!(!given(&home, &cloned).contains("stub server"));
    snapshot!(trust().run().shown(), @r#"
    exit 0
    this folder has the notes of github.com/acme/shop from now on
    "#);
    assert!(given(&home, &cloned).contains("stub server"));
    snapshot!(trust().run().shown(), @r#"
    exit 0
    nothing to trust: the key of this folder is its own
    "#);
}

#[test]
fn a_person_says_which_keys_are_one() {
    let home = indexed();
    snapshot!(home.run("project merge github.com/acme/cart github.com/acme/shop").shown(), @r#"
    exit 0
    github.com/acme/cart is now the same project as github.com/acme/shop: 4 notes · Undo: anamnesis project split github.com/acme/cart
    "#);
    assert!(given(&home, &home.project()).contains("Jenkins"));
    snapshot!(home.run("project merge github.com/acme/shop github.com/acme/cart").shown(), @r#"
    exit 0
    github.com/acme/shop and github.com/acme/cart are one project already
    "#);
    snapshot!(home.run("project").shown(), @r#"
    exit 0
    github.com/acme/shop
    from the git remote of [ROOT]/shop
    folder [ROOT]/shop
    also github.com/acme/cart
    "#);
    snapshot!(home.run("project merge shop global").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: "shop" and "global" are not the keys of two projects
    "#);
    let by_agent = home
        .command(["project", "split", "github.com/acme/cart"])
        .by_agent();
    assert_eq!(by_agent.run().code, Some(1));
    home.run("project split github.com/acme/cart").well();
    assert!(!given(&home, &home.project()).contains("Jenkins"));
}

#[test]
fn a_renamed_folder_without_a_remote_is_hinted_at_the_start() {
    // INJ-15
    let home = crate::home();
    let (shop, store) = (home.root().join("wares"), home.root().join("web-wares"));
    git_repository(&shop, None);
    let write = home.command(["write", "--title", "Cents"]).within(&shop);
    write.input("Prices are in cents").run().well();
    let message = |folder: &Path| {
        let hook = home.hook_with(home.start(SESSION, "startup").to_string());
        let hook = hook.env("CLAUDE_PROJECT_DIR", folder);
        let answer = hook.env("CLAUDE_CODE_ENTRYPOINT", "cli").run().json();
        answer["systemMessage"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    message(&shop);
    fs::rename(&shop, &store).unwrap();
    let hint = message(&store);
    assert!(
        hint.contains("looks like wares, which has notes · anamnesis project list"),
        "{hint}"
    );
    let listed = home
        .command(["project", "list"])
        .within(&store)
        .run()
        .well();
    assert!(
        listed.contains("→ anamnesis project merge wares web-wares\n"),
        "{listed}"
    );
    home.command(["project", "merge", "wares", "web-wares"])
        .within(&store)
        .run()
        .well();
    assert!(!message(&store).contains("looks like"));
    assert!(given(&home, &store).contains("Prices are in cents"));
}

#[test]
fn a_remote_of_the_same_name_on_another_host_is_hinted_at_the_start() {
    // INJ-15
    let home = crate::home();
    let (shop, clone) = (home.root().join("shop"), home.root().join("clone"));
    git_repository(&shop, Some("https://github.com/acme/shop.git"));
    // A mirror, then a host of ssh's settings.
    git_repository(&clone, Some("https://mirror.example/github/acme/shop.git"));
    let write = home.command(["write", "--title", "Cents"]).within(&shop);
    write.input("Prices are in cents").run().well();
    let message = || {
        let hook = home.hook_with(home.start(SESSION, "startup").to_string());
        let hook = hook.env("CLAUDE_PROJECT_DIR", &clone);
        let answer = hook.env("CLAUDE_CODE_ENTRYPOINT", "cli").run().json();
        answer["systemMessage"].to_string()
    };
    message();
    let hint = "looks like github.com/acme/shop, which has notes · anamnesis project list";
    assert!(message().contains(hint), "{}", message());
    git_repository(&clone, Some("work:acme/shop.git"));
    message();
    assert!(message().contains(hint), "{}", message());
    home.command(["project", "merge", "github.com/acme/shop", "work/acme/shop"])
        .within(&clone)
        .run()
        .well();
    assert!(!message().contains("looks like"));
}

#[test]
fn a_home_without_a_store_has_projects() {
    let home = untouched_home();
    assert!(
        home.run("project")
            .well()
            .starts_with("github.com/acme/shop\n")
    );
    assert!(!home.store().exists());
    assert_eq!(home.run("project list").well(), "0 projects\n");
}

#[test]
fn a_folder_named_global_is_a_project_of_its_own() {
    let home = crate::home();
    let folder = home.root().join("Global");
    std::fs::create_dir_all(&folder).unwrap();
    let command = home.command(["write"]).within(&folder);
    let said = command.input("Only here").run().well();
    assert!(said.contains("fact for folder/global"), "{said}");
}

#[cfg(unix)]
#[test]
fn the_name_of_a_folder_does_not_reach_the_terminal_as_a_sequence() {
    let home = home_with_notes();
    let folder = home
        .project()
        .join("\u{1b}]0;evil\u{7}\u{1b}[2Jsrc\u{202e}");
    fs::create_dir_all(&folder).unwrap();
    let shown = home.command(["project"]).within(&folder).run();
    let printed = shown.stdout.clone() + &shown.stderr;
    assert!(printed.contains("/shop/src\n"), "{printed:?}");
    let is_active = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!printed.contains(is_active), "{printed:?}");
}

#[test]
fn a_note_of_a_group_applies_to_the_projects_of_the_group() {
    let home = indexed();
    snapshot!(home.run("project group Web github.com/acme/cart .").shown(), @r#"
    exit 0
    group:web  0 notes · github.com/acme/cart, github.com/acme/shop
    Undo: anamnesis project group Web --remove github.com/acme/cart --remove github.com/acme/shop
    "#);
    let write = ["write", "--project", "group:web", "--title", "Cents"];
    let said = home.command(write).input("Prices are in cents").run();
    assert!(said.well().contains("fact for group web"));
    let cart = home.root().join("cart");
    git_repository(&cart, Some("https://github.com/acme/cart"));
    let other = home.root().join("other");
    git_repository(&other, Some("https://github.com/acme/other"));
    let is_given = || [&home.project(), &cart, &other].map(|it| given(&home, it).contains("cents"));
    assert_eq!(is_given(), [true, true, false]);
    let start = given(&home, &cart);
    assert!(start.contains("group web · by you"), "{start}");
    assert!(!start.contains("stub server"), "{start}");
    snapshot!(home.run("project list").shown(), @r#"
    exit 0
    github.com/acme/cart  1 note
    github.com/acme/shop  3 notes
    group:web  1 note · github.com/acme/cart, github.com/acme/shop
    "#);
    snapshot!(home.run("project").shown(), @r#"
    exit 0
    github.com/acme/shop
    from the git remote of [ROOT]/shop
    folder [ROOT]/shop
    in group web
    "#);
    for words in ["list", "search cents --here", "list --project group:web"] {
        let text = home.command(words.split(' ')).within(&cart).run().well();
        assert!(text.contains("Cents"), "{words}: {text}");
    }
    let listed = home.command(["list"]).within(&other).run().well();
    assert!(!listed.contains("Cents"), "{listed}");

    // The projects are still two, and what is done to one leaves the group alone.
    assert_eq!(home.run("project split github.com/acme/cart").code, Some(1));
    snapshot!(home.run("project group web --remove github.com/acme/cart --json").shown(), @r#"
    exit 0
    {
      "key": "group:web",
      "projects": [
        "github.com/acme/shop"
      ],
      "notes": 1
    }
    "#);
    assert_eq!(is_given(), [true, false, false]);
    home.run("project group web --remove .").well();
    assert_eq!(is_given(), [false, false, false]);
    // It still has a note.
    snapshot!(home.run("project group web").shown(), @r#"
    exit 0
    group:web  1 note · no projects
    "#);
}

#[test]
fn a_group_is_changed_by_a_person_and_with_known_projects() {
    let home = indexed();
    for called in [
        "project group web",
        "project group a/b .",
        "project group web nowhere",
        "project group web group:other",
        "project group web --remove .",
        "project merge github.com/acme/cart group:web",
        "write --project group:web --title Cents",
        "move F5XJ2P --project group:web",
    ] {
        let output = home.run(called);
        assert!(matches!(output.code, Some(1 | 2)), "{called}: {output:?}");
        assert!(!output.stderr.is_empty(), "{called}");
    }
    snapshot!(home.run("project group web").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: no group web exists
    → anamnesis project group web KEY   (to create it)
    "#);
    let by_agent = |words: &str| home.command(words.split(' ')).by_agent();
    assert_eq!(by_agent("project group web .").run().code, Some(1));
    home.run("project group web .").well();
    snapshot!(home.run("project group web --remove .").shown(), @r#"
    exit 0
    group:web  0 notes · no projects
    Undo: anamnesis project group web github.com/acme/shop
    "#);
    home.run("project group web .").well();
    let shown = by_agent("project group web").run().well();
    assert_eq!(shown, "group:web  0 notes · github.com/acme/shop\n");
    // What an agent writes for several projects is a proposal.
    let said = by_agent("write --project group:web --title Cents")
        .input("Prices are in cents")
        .run()
        .well();
    assert!(said.contains("proposed"), "{said}");
    assert!(!given(&home, &home.project()).contains("cents"));
}

#[test]
fn a_group_reaches_the_other_machines() {
    let (laptop, remote) = purge::with_remote();
    let desktop = home();
    purge::join(&desktop, &remote);
    let on = |home: &TestHome, words: &str| {
        let git = std::env::var("PATH").unwrap_or_default();
        let command = home.command(words.split(' ')).env("PATH", git);
        command.run().well()
    };
    on(&laptop, "project group web .");
    on(&laptop, "sync");
    on(&desktop, "sync");
    let shown = on(&desktop, "project group web");
    assert_eq!(shown, "group:web  0 notes · github.com/acme/shop\n");
    on(&desktop, "write --project group:web --title Cents --stdin");
    on(&desktop, "sync");
    on(&laptop, "sync");
    assert!(given(&laptop, &laptop.project()).contains("Cents"));
}

/// Plays a session in the home's folder, whose repository is in its folder `code`, and returns the
/// project of its note.
fn project_of_session(home: &TestHome, id: &str, files: &[&str]) -> String {
    let mut session = Played::new(home, id);
    session.start();
    session.says("Add the price table to the shop");
    for file in files {
        session.edits(file);
    }
    session.answers("The price table is in place.");
    session.ends();
    home.settle();
    let notes = home.run("list --everywhere --json").json();
    let newest = notes["notes"].as_array().unwrap().first().cloned().unwrap();
    let project = newest["project"].as_str().unwrap().to_owned();
    home.run(&format!("forget {}", newest["id"].as_str().unwrap()))
        .well();
    project
}

#[test]
fn a_session_that_worked_in_one_repository_below_its_folder_belongs_to_that_one() {
    let home = home();
    let code = home.project().join("code");
    for folder in ["code/src", "notes"] {
        fs::create_dir_all(home.project().join(folder)).unwrap();
    }
    fs::rename(home.project().join(".git"), code.join(".git")).unwrap();
    let project = |id, files: &[&str]| project_of_session(&home, id, files);
    assert_eq!(
        project("a", &["code/src/a.rs", "code/b.rs"]),
        "github.com/acme/shop"
    );
    assert_eq!(project("b", &["code/src/a.rs", "notes/b.md"]), "shop");
    assert_eq!(project("c", &["notes/b.md"]), "shop");
}

#[test]
fn notes_of_the_folder_above_are_named_as_such() {
    let home = home();
    let folder = home.project().join("chapters");
    fs::create_dir_all(&folder).unwrap();
    fs::remove_dir_all(home.project().join(".git")).unwrap();
    home.command(["write", "--title", "- Fonts", "--stdin"])
        .input("The thesis is built with LuaLaTeX.")
        .run()
        .well();
    given(&home, &home.project());
    assert!(given(&home, &folder).contains("from shop, which this folder is in"));
    let shown = home.command(["project"]).arg(&folder).run();
    assert!(shown.stdout.contains("inside shop: "), "{shown:?}");
}
