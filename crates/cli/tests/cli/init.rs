//! `init`: how a machine is set up, and the Python version's entries in Claude Code's files.
//!
//! What is said to a remote is tested beside the dialogue, with a remote of the test's own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anamnesis_testkit::home::{NoteText, TestHome, git_repository};
use serde_json::{Value, json};

#[cfg(unix)]
use crate::purge::git;
use crate::{SESSION, home_with_notes, id, program, snapshot, untouched_home};

/// Settings as the Python version leaves them, with hooks and habits of somebody else.
const SETTINGS: &str = r#"{
    "model" : "opus",	"budget": 1.50e3,
    "hooks": {
        "SessionStart": [
            {
                "matcher": "startup|resume|clear",
                "hooks": [
                    { "type": "command", "command": "ANAMNESIS_MACHINE_ID=laptop /home/me/.local/bin/anamnesis inject", "timeout": 15 },
                    { "type": "command", "command": "echo hello \u2013 you" }
                ]
            },
            {
                "matcher": "startup|resume",
                "hooks": [
                    { "type": "command", "command": "ANAMNESIS_MACHINE_ID=laptop /home/me/.local/bin/anamnesis sync", "async": true }
                ]
            }
        ],
        "SessionEnd": [{"hooks": [{"type": "command", "command": "ANAMNESIS_MACHINE_ID=laptop /home/me/.local/bin/anamnesis capture", "timeout": 180}]}],
        "Stop": []
    },
    "permissions": {}
}"#;

/// What is left of them.
const SETTINGS_LEFT: &str = r#"{
    "model" : "opus",	"budget": 1.50e3,
    "hooks": {
        "SessionStart": [
            {
                "matcher": "startup|resume|clear",
                "hooks": [
                    { "type": "command", "command": "echo hello \u2013 you" }
                ]
            }
        ],
        "Stop": []
    },
    "permissions": {}
}"#;

const STATE: &str = r#"{"numStartups":12,"mcpServers":{"github":{"type":"stdio","command":"gh"},"anamnesis":{"type":"stdio","command":"/home/me/.local/bin/anamnesis","args":["serve"],"env":{"ANAMNESIS_MACHINE_ID":"laptop"}}},"projects":{}}"#;

const STATE_LEFT: &str =
    r#"{"numStartups":12,"mcpServers":{"github":{"type":"stdio","command":"gh"}},"projects":{}}"#;

fn settings(home: &TestHome) -> PathBuf {
    home.claude().join("settings.json")
}

fn state(home: &TestHome) -> PathBuf {
    home.claude().join(".claude.json")
}

/// A home in which the Python version is set up.
fn with_python() -> TestHome {
    let home = untouched_home();
    fs::write(settings(&home), SETTINGS).unwrap();
    fs::write(state(&home), STATE).unwrap();
    home
}

/// Every file and link below a folder, by path.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                pending.push(path);
            } else {
                let path = path.strip_prefix(folder).unwrap();
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn json_in(path: &Path) -> Value {
    json_of(&read(path))
}

#[test]
fn one_machine_needs_nothing() {
    let home = untouched_home();
    snapshot!(home.run("init").shown(), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   none: notes stay on this machine · anamnesis init --remote URL
    init: done
    ");
    assert_eq!(
        home.read("config.json"),
        "{\n  \"machine_id\": \"laptop\"\n}\n"
    );
    // A second time changes nothing.
    home.run("init").well();
    assert_eq!(
        home.read("config.json"),
        "{\n  \"machine_id\": \"laptop\"\n}\n"
    );
    assert_eq!(files(&home.claude()), [""; 0]);
    let json = home.run("init --json").json();
    for (key, value) in [
        ("machine_id", json!("laptop")),
        ("remote", Value::Null),
        ("python_version", json!(false)),
        ("command", Value::Null),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
    let said = json["said"].as_str().unwrap();
    assert!(said.ends_with("init: done"), "{said}");
}

#[test]
fn a_plan_changes_nothing() {
    let home = with_python();
    let before = files(&home.user());
    let plan = home.command(["init", "--print", "--remote", "git@git.home:me/memory.git"]);
    let plan = plan.args(["--machine-id", "laptop"]).by_agent().run();
    // A shell knows the program by its whole path only.
    let shown = |text: String| text.replace(&program(), "[PROGRAM]");
    snapshot!(shown(plan.shown()), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   git@git.home:me/memory.git: would be reached and joined
    hooks    the plugin's own; nothing is added to Claude Code's settings
    python   the Python release's 3 hooks in ~/.claude/settings.json
    python   the Python release's 1 server in ~/.claude/.claude.json
    command  not on your PATH · anamnesis init --link
    Nothing was changed. To set this machine up, type in a terminal:
      [PROGRAM] init
    ");
    assert!(plan.stdout.lines().count() <= 12);
    let local = home.run("init --print --local-only --machine-id desk");
    snapshot!(shown(local.shown()), @"
    exit 0
    store    ~/.anamnesis
    machine  desk
    remote   none: notes stay on this machine · anamnesis init --remote URL
    hooks    the plugin's own; nothing is added to Claude Code's settings
    python   the Python release's 3 hooks in ~/.claude/settings.json
    python   the Python release's 1 server in ~/.claude/.claude.json
    command  not on your PATH · anamnesis init --link
    Nothing was changed. To set this machine up, type in a terminal:
      [PROGRAM] init
    ");
    assert_eq!(files(&home.user()), before);
    assert_eq!(read(&settings(&home)), SETTINGS);
    for line in shown(plan.stdout).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_name_of_the_machine() {
    let home = untouched_home();
    // GIT-18
    snapshot!(home.run("init --machine-id ../../etc").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: "../../etc" cannot be the name of a machine
    → 1 to 64 letters, digits, `.`, `_` or `-`
    "#);
    assert!(!home.store().exists());
    home.write("config.json", r#"{"theirs":   1}"#);
    snapshot!(home.command(["init", "--machine-id", "desk.local"]).without("ANAMNESIS_MACHINE_ID").run().shown(), @"
    exit 0
    store    ~/.anamnesis
    machine  desk.local
    remote   none: notes stay on this machine · anamnesis init --remote URL
    init: done
    ");
    snapshot!(home.read("config.json"), @r#"
    {
      "theirs": 1,
      "machine_id": "desk.local"
    }
    "#);
    // A name from before is not changed behind anybody's back, nor written down.
    let odd = home
        .command(["init", "--print"])
        .env("ANAMNESIS_MACHINE_ID", "My desk");
    let odd = odd.run().shown().replace(&program(), "[PROGRAM]");
    snapshot!(odd, @"
    exit 0
    store    ~/.anamnesis
    machine  My desk
    remote   none: notes stay on this machine · anamnesis init --remote URL
    hooks    the plugin's own; nothing is added to Claude Code's settings
    command  not on your PATH · anamnesis init --link
    ! a name should be 1 to 64 letters, digits, `.`, `_` or `-`
    → anamnesis init --machine-id NAME
    Nothing was changed. To set this machine up, type in a terminal:
      [PROGRAM] init
    ");
}

#[test]
fn a_remote_that_deleted_notes_is_joined_without_a_loss() {
    let (laptop, desktop) = (home_with_notes(), untouched_home());
    let remote = laptop.root().join("remote.git");
    let path = remote.to_str().unwrap();
    let made = std::process::Command::new("git")
        .args(["init", "--quiet", "--bare", "--initial-branch=main", path])
        .status();
    assert!(made.unwrap().success());
    let run = |home: &TestHome, words: &[&str]| {
        let command = home.command(words);
        command
            .env("PATH", std::env::var_os("PATH").unwrap())
            .run()
            .well()
    };
    let join = |home: &TestHome| run(home, &["init", "--yes", "--remote", path]);
    join(&laptop);
    // All of these notes are of a machine of the same name.
    let joined = join(&desktop);
    let reached = joined.lines().find(|line| line.starts_with("✓ reached: "));
    assert!(
        reached.is_some_and(|line| line.ends_with(" notes")),
        "{joined}"
    );
    laptop.run("init --local-only").well();
    for note in ["7Q4KZ9", "B2M6RD"] {
        desktop.run(&format!("forget {note}")).well();
    }
    run(&desktop, &["sync"]);
    let before = laptop.notes();
    let joined = join(&laptop);
    assert!(!joined.contains("nothing is overwritten"), "{joined}");
    assert!(
        joined.contains("The remote deleted 2 of these. Keep them, here and there? yes (--yes)"),
        "{joined}"
    );
    assert_eq!(laptop.notes(), before);
    let found = laptop.run("search stub").well();
    assert!(
        found.contains("Integration tests need the stub server"),
        "{found}"
    );
}

#[cfg(unix)]
#[test]
fn a_remote_that_is_a_shallow_clone() {
    let (laptop, desktop) = (home_with_notes(), untouched_home());
    let [full, shallow] = ["full.git", "shallow.git"].map(|name| {
        let path = laptop.root().join(name);
        path.to_str().unwrap().to_owned()
    });
    git(&["init", "--quiet", "--bare", "--initial-branch=main", &full]);
    let run = |home: &TestHome, words: &[&str]| {
        let path = std::env::var_os("PATH").unwrap();
        home.command(words).env("PATH", path).run()
    };
    run(&laptop, &["init", "--yes", "--remote", &full]).well();
    laptop.run("forget 7Q4KZ9").well();
    run(&laptop, &["sync"]).well();
    let address = format!("file://{full}");
    git(&[
        "clone",
        "--quiet",
        "--bare",
        "--depth=1",
        &address,
        &shallow,
    ]);
    let head = || git(&["-C", &shallow, "rev-parse", "main"]);
    let before = head();
    let is_named = |words: &[&str]| {
        let said = run(&desktop, words);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.contains("is a shallow clone"), "{said:?}");
        assert!(said.stderr.contains("git fetch --unshallow"), "{said:?}");
        assert_eq!(head(), before);
    };
    is_named(&["init", "--yes", "--remote", &shallow]);
    assert!(!desktop.store().join("config.json").exists());
    run(&desktop, &["config", "set", "remote", &shallow]).well();
    is_named(&["sync"]);
}

#[test]
fn a_remote_that_does_not_exist() {
    let home = home_with_notes();
    let remote = home.root().join("nope.git");
    let init = home
        .command(["init", "--yes", "--remote", &remote.to_string_lossy()])
        .env("PATH", std::env::var_os("PATH").unwrap());
    snapshot!(init.run().shown(), @"
    exit 1
    store    ~/.anamnesis
    machine  laptop
    remote   [ROOT]/nope.git
    on stderr:
    anamnesis: sync: [ROOT]/nope.git cannot be reached: there is no such folder now
    Nothing was changed, and your notes are safe
    → check the address and the connection, then: anamnesis init --remote URL
    ");
    assert_eq!(
        json_in(&home.store().join("config.json"))["remote"],
        Value::Null
    );
    home.command(["config", "set", "remote", &remote.to_string_lossy()])
        .run()
        .well();
    let init = home
        .command(["init"])
        .env("PATH", std::env::var_os("PATH").unwrap())
        .run();
    assert_eq!(init.code, Some(1), "{init:?}");
    let last = init.stdout.lines().last();
    assert_eq!(last, Some("init: done, except for the sync"), "{init:?}");
}

#[test]
fn a_remote_that_is_not_reached() {
    let home = untouched_home();
    let init = |words: &str| home.run(&format!("init --no-sync {words}")).shown();
    snapshot!(init("--remote git@git.home:me/memory.git"), @"
    exit 1
    store    ~/.anamnesis
    machine  laptop
    remote   git@git.home:me/memory.git
      Everyone who can read this repository can read your notes, session notes
      included. Private? no (cannot ask; see --yes)
    on stderr:
    anamnesis: not joined: the remote is not set, nothing was sent and no note changed
    → anamnesis init --remote URL --yes
    ");
    snapshot!(init("--remote git@git.home:me/memory.git --yes"), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   git@git.home:me/memory.git
      Everyone who can read this repository can read your notes, session notes
      included. Private? yes (--yes)
      A remote is one person's. What a team should know belongs in its CLAUDE.md.
      Syncs automatically after sessions and at start. Stop: anamnesis init --local-only
    init: done
    ");
    snapshot!(init(""), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   git@git.home:me/memory.git
    init: done
    ");
    snapshot!(init("--local-only"), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   none: notes stay on this machine
    Undo: anamnesis init --remote git@git.home:me/memory.git
    init: done
    ");
    snapshot!(init("--local-only"), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   none: notes stay on this machine · anamnesis init --remote URL
    init: done
    ");
    let over = home.command(["init", "--no-sync", "--yes", "--remote", "/srv/memory.git"]);
    // GIT-11
    let over = over
        .env("ANAMNESIS_GIT_REMOTE", "https://me:hunter2@git.home/x")
        .run();
    snapshot!(over.shown(), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   /srv/memory.git
      Everyone who can read this repository can read your notes, session notes
      included. Private? yes (--yes)
      A remote is one person's. What a team should know belongs in its CLAUDE.md.
      Syncs automatically after sessions and at start. Stop: anamnesis init --local-only
    ! ANAMNESIS_GIT_REMOTE is set and overrides it: https://git.home/x
    init: done
    ");
}

#[test]
fn a_person_is_asked_at_a_terminal() {
    let home = untouched_home();
    let init = [
        "init",
        "--no-sync",
        "--remote",
        "git@git.home:me/memory.git",
    ];
    snapshot!(home.command(init).input("\n").run_on_a_terminal().shown(), @"
    exit 1
    store    ~/.anamnesis
    machine  laptop
    remote   git@git.home:me/memory.git
      Not joined: the remote is not set, nothing was sent and no note changed.
    init: done, except for the remote
    on stderr:
      Everyone who can read this repository can read your notes, session notes
      included. Private? [y/N]
    ");
    assert!(!home.read("config.json").contains("remote"));
    let output = home.command(init).input("y\n").run_on_a_terminal();
    assert!(output.stdout.ends_with("init: done\n"), "{output:?}");
    assert!(
        home.read("config.json")
            .contains("git@git.home:me/memory.git")
    );
}

#[test]
fn an_address_that_is_none() {
    let home = untouched_home();
    snapshot!(home.command(["init", "--remote", "ext::sh -c id"]).run().shown(), @"
    exit 2
    on stderr:
    anamnesis: `ext` addresses are refused: only ssh, https and absolute paths are taken
    Nothing was changed, and your notes are safe
    → git@HOST:PATH, ssh://HOST/PATH, https://HOST/PATH or a folder
    ");
    snapshot!(home.command(["init", "--remote", "https://me:hunter2@/x"]).run().shown(), @"
    exit 2
    on stderr:
    anamnesis: the address names no user, host or port that could exist
    Nothing was changed, and your notes are safe
    → git@HOST:PATH, ssh://HOST/PATH, https://HOST/PATH or a folder
    ");
    assert!(!home.store().exists());
    home.write("config.json", "{\"session_line\": 3");
    snapshot!(home.run("init").shown(), @"
    exit 1
    on stderr:
    anamnesis: config.json is not a JSON object: EOF while parsing an object at line 1 column 18; fix the file first
    Nothing was changed, and your notes are safe
    → anamnesis doctor
    ");
}

#[test]
fn the_python_version_is_taken_out() {
    // HOOK-07
    let home = with_python();
    snapshot!(home.run("init --yes").shown(), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   none: notes stay on this machine · anamnesis init --remote URL
    The Python release is set up, too: sessions are recorded twice.
      SessionStart: …_MACHINE_ID=laptop /home/me/.local/bin/anamnesis inject
      SessionStart: …IS_MACHINE_ID=laptop /home/me/.local/bin/anamnesis sync
      SessionEnd: …MACHINE_ID=laptop /home/me/.local/bin/anamnesis capture
      server anamnesis
    Remove these? A backup is made. yes (--yes)
    ✓ removed; sessions that run keep theirs until they end
      backup: ~/.claude/settings.json.anamnesis-backup
      backup: ~/.claude/.claude.json.anamnesis-backup
    init: done
    ");
    assert_eq!(json_in(&settings(&home)), json_of(SETTINGS_LEFT));
    assert_eq!(json_in(&state(&home)), json_of(STATE_LEFT));
    let doctor = home.run("doctor").stdout;
    assert!(doctor.contains("✓ others"), "{doctor}");
    // Nothing is left to remove.
    assert!(!home.run("init --yes").well().contains("Python"));
    // The backups have the files as they were.
    let backup = |path: PathBuf| {
        read(&PathBuf::from(format!(
            "{}.anamnesis-backup",
            path.display()
        )))
    };
    assert_eq!(backup(settings(&home)), SETTINGS);
    assert_eq!(backup(state(&home)), STATE);
}

/// A home in which the Python version is set up with a store of its own, which has one note.
fn with_python_elsewhere() -> (TestHome, PathBuf) {
    let home = untouched_home();
    let store = home.user().join("my notes");
    let note = NoteText::new(&id("7Q4KZ9"), "Written by the Python version");
    let path = store.join(note.path());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, note.text()).unwrap();
    let variable = format!("ANAMNESIS_HOME='{}' ANAMNESIS_MACHINE_ID", store.display());
    let text = SETTINGS.replace("ANAMNESIS_MACHINE_ID", &variable);
    fs::write(settings(&home), text).unwrap();
    (home, store)
}

#[test]
fn hooks_that_alone_name_the_python_versions_store_stay() {
    let (home, store) = with_python_elsewhere();
    let before = read(&settings(&home));
    snapshot!(home.run("init --yes").shown(), @"
    exit 3
    store    ~/.anamnesis
    machine  laptop
    remote   none: notes stay on this machine · anamnesis init --remote URL
    The Python release is set up, too: sessions are recorded twice.
      SessionStart: …_MACHINE_ID=laptop /home/me/.local/bin/anamnesis inject
      SessionStart: …IS_MACHINE_ID=laptop /home/me/.local/bin/anamnesis sync
      SessionEnd: …MACHINE_ID=laptop /home/me/.local/bin/anamnesis capture
    ! not removed: only they name the store ~/my notes, and the plugin uses ~/.anamnesis
    → move ~/.anamnesis away, make it a link to ~/my notes, then: anamnesis init
    init: done, except for the Python release, which is still set up
    ");
    assert_eq!(read(&settings(&home)), before);
    let plan = home.run("init --print").well();
    assert!(
        plan.contains("python   its store ~/my notes: not used"),
        "{plan}"
    );
    #[cfg(unix)]
    {
        fs::remove_dir_all(home.store()).unwrap();
        std::os::unix::fs::symlink(&store, home.store()).unwrap();
        home.run("init --yes").well();
        assert_eq!(json_in(&settings(&home)), json_of(SETTINGS_LEFT));
        let listed = home.run("list --everywhere").well();
        assert!(listed.contains("Written by the Python version"), "{listed}");
    }
}

#[test]
fn without_a_person_the_python_version_stays() {
    let home = with_python();
    let run = home.run("init");
    assert_eq!(run.code, Some(3), "{run:?}");
    let output = run.stdout;
    assert!(
        output.contains("Remove these? A backup is made. no (cannot ask; see --yes)\n"),
        "{output}"
    );
    assert_eq!(read(&settings(&home)), SETTINGS);
    assert_eq!(files(&home.claude()), [".claude.json", "settings.json"]);
}

#[test]
fn a_person_says_whether_the_python_version_goes() {
    let home = with_python();
    let init = || home.command(["init"]);
    let _ = init().input("n\n").run_on_a_terminal();
    assert_eq!(read(&settings(&home)), SETTINGS);
    // Enter is a yes here.
    snapshot!(init().input("\n").run_on_a_terminal().stderr, @"Remove these? A backup is made. [Y/n]");
    assert_eq!(json_in(&settings(&home)), json_of(SETTINGS_LEFT));
}

#[test]
fn a_file_of_claude_codes_keeps_its_place_and_mode() {
    use std::os::unix::fs::PermissionsExt;

    let home = with_python();
    // Kept with other files of its owner's, and reached by a link.
    let real = home.user().join("dotfiles/settings.json");
    fs::create_dir(home.user().join("dotfiles")).unwrap();
    fs::rename(settings(&home), &real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, settings(&home)).unwrap();
    home.run("init --yes").well();
    assert_eq!(json_in(&real), json_of(SETTINGS_LEFT));
    assert_eq!(fs::read_link(settings(&home)).unwrap(), real);
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[test]
fn settings_that_cannot_be_understood_are_not_touched() {
    // HOOK-07
    let home = with_python();
    for (path, text) in [
        (settings(&home), "{\"hooks\": {},}"),
        (settings(&home), "// mine\n{}"),
        (settings(&home), "[]"),
        (state(&home), ""),
    ] {
        let before = read(&path);
        fs::write(&path, text).unwrap();
        let output = home.run("init --yes --link --machine-id desk");
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(
            output
                .stderr
                .contains("your notes are safe\n→ fix ~/.claude/"),
            "{output:?}"
        );
        assert_eq!(read(&path), text);
        // Before any side effect.
        assert_eq!(
            files(&home.user()),
            [".claude/.claude.json", ".claude/settings.json"]
        );
        fs::write(&path, before).unwrap();
    }
    fs::write(settings(&home), "{\"hooks\": {},}").unwrap();
    snapshot!(home.run("init").shown(), @"
    exit 1
    on stderr:
    anamnesis: ~/.claude/settings.json cannot be understood:
      trailing comma at line 1 column 14
    Nothing was changed, there or here, and your notes are safe
    → fix ~/.claude/settings.json, then run it again
    ");
}

#[test]
fn the_agent_sets_nothing_up() {
    let home = with_python();
    for options in [
        "",
        "--yes",
        "--remote /srv/x.git --no-sync --yes",
        "--local-only",
    ] {
        let words = format!("init {options}");
        let output = home.command(words.split_whitespace()).by_agent().run();
        assert_eq!(output.code, Some(1), "{options}");
    }
    snapshot!(home.command(["init"]).by_agent().run().shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can set up a machine
    → run this command in a terminal of your own
    ");
    assert!(!home.store().exists());
    assert_eq!(read(&settings(&home)), SETTINGS);
}

#[test]
fn a_store_in_a_checkout_is_warned_of() {
    // PATH-10
    let home = untouched_home();
    git_repository(&home.user(), None);
    snapshot!(home.run("init").shown(), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    ! the store is in the git repository ~
    → move it out: your notes may be committed there (ANAMNESIS_HOME)
    remote   none: notes stay on this machine · anamnesis init --remote URL
    init: done
    ");
}

#[test]
fn another_store() {
    let home = untouched_home();
    let output = home.run("init --home ../elsewhere");
    snapshot!(output.shown(), @r#"
    exit 0
    store    [ROOT]/shop/../elsewhere
    machine  laptop
    ! hooks use ~/.anamnesis until ANAMNESIS_HOME names this store and counts in sessions
    → set it where claude is started, then: anamnesis config set trusted_variables ANAMNESIS_HOME
    remote   none: notes stay on this machine · anamnesis init --remote URL
    init: done
    "#);
    assert!(home.root().join("elsewhere/config.json").is_file());
    assert!(!home.store().exists());
    assert!(
        home.run(&format!("init --home {}", home.store().display()))
            .well()
            .lines()
            .count()
            < 5
    );
}

#[cfg(unix)]
#[test]
fn a_link_to_the_store_does_not_count_as_another_store() {
    let home = untouched_home();
    let folder = home.root().join("notes");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&folder, home.store()).unwrap();
    let output = home.run(&format!("init --home {}", folder.display()));
    assert!(output.stdout.contains("init: done"), "{output:?}");
    assert!(!output.stdout.contains("hooks use"), "{output:?}");
}

#[test]
fn the_command_for_a_terminal() {
    let home = untouched_home();
    let link = home.user().join(".local/bin/anamnesis");
    assert!(!home.run("init --yes").well().contains("PATH"));
    assert!(!link.exists());
    snapshot!(home.run("init --link").shown(), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   none: notes stay on this machine · anamnesis init --remote URL
    command  ~/.local/bin/anamnesis, kept at the newest version
    → add ~/.local/bin to your PATH
    init: done
    ");
    let copy = home.store().join("bin/anamnesis");
    assert_eq!(fs::read_link(&link).unwrap(), copy);
    assert_eq!(fs::read(&copy).unwrap(), fs::read(program()).unwrap());
    // A second time there is nothing to ask.
    let again = home.command(["init", "--link"]);
    let again = again.env("PATH", link.parent().unwrap()).run();
    snapshot!(again.shown(), @"
    exit 0
    store    ~/.anamnesis
    machine  laptop
    remote   none: notes stay on this machine · anamnesis init --remote URL
    command  ~/.local/bin/anamnesis, kept at the newest version
    init: done
    ");
    // It is neither open to others nor somebody else's.
    let doctor = home
        .command(["doctor"])
        .env("PATH", link.parent().unwrap())
        .run();
    assert!(
        doctor.stdout.contains("✓ privacy    for you alone"),
        "{}",
        doctor.stdout
    );
    assert!(doctor.stdout.contains("✓ others"), "{}", doctor.stdout);
    // It works from there.
    let version = std::process::Command::new(&link)
        .arg("--version")
        .output()
        .unwrap();
    assert!(version.stdout.starts_with(b"anamnesis "));
}

#[test]
fn another_command_of_that_name_is_left_alone() {
    let home = untouched_home();
    let link = home.user().join(".local/bin/anamnesis");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    fs::write(&link, "#!/opt/python/bin/python3\nprint()\n").unwrap();
    let init = home.command(["init", "--link"]);
    snapshot!(init.env("PATH", link.parent().unwrap()).run().shown(), @"
    exit 1
    store    ~/.anamnesis
    machine  laptop
    ! the Python release's anamnesis comes first on PATH: ~/.local/bin/anamnesis
    remote   none: notes stay on this machine · anamnesis init --remote URL
    ! ~/.local/bin/anamnesis is something else, and is left alone
    init: done, except for the command
    ");
    assert!(read(&link).contains("print()"));
    assert!(!home.store().join("bin").exists());
}

#[test]
fn nothing_is_left_after_the_two_paths_that_are_named() {
    // HOOK-09
    let home = home_with_notes();
    let before: Vec<String> = files(&home.user())
        .into_iter()
        .filter(|name| !name.starts_with(".anamnesis/"))
        .collect();
    home.run("init --yes --link").well();
    let _ = home.hook(&home.start(SESSION, "startup")).well();
    home.settle();
    fs::remove_dir_all(home.store()).unwrap();
    fs::remove_file(home.user().join(".local/bin/anamnesis")).unwrap();
    assert_eq!(files(&home.user()), before);
}
