//! Which project a folder belongs to, while its remote, its name or its marker change.

use std::{fs, path::Path};

use anamnesis_testkit::home::{TestHome, git_repository};

use super::{SESSION, furnished, snapshot, untouched_home};

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
    let home = furnished();
    home.run("reindex").well();
    let folder = home.project();
    assert!(given(&home, &folder).contains("stub server"));
    move_remote(&home, "https://git.example.com/team/shop");
    assert!(given(&home, &folder).contains("stub server"));
    home.run("work").well();
    assert!(given(&home, &folder).contains("stub server"));
    snapshot!(home.run("project").shown(), @r#"
    exit 0
    git.example.com/team/shop
    from the git remote of [ROOT]/shop
    folder [ROOT]/shop
    also github.com/acme/shop: the remote changed in [ROOT]/shop
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
          "notes": 3,
          "also": [
            "github.com/acme/shop"
          ]
        },
        {
          "key": "github.com/acme/cart",
          "notes": 1,
          "also": []
        }
      ],
      "may_be_one": []
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
    let home = furnished();
    home.run("reindex").well();
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
    let home = furnished();
    home.run("reindex").well();
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
    also github.com/acme/cart: merged, or seen elsewhere
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
    let home = furnished();
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
