//! `doctor`: each fault is told apart from every other one, and from health.

use std::{fs, path::Path};

#[cfg(unix)]
use anamnesis_testkit::home::script;
use anamnesis_testkit::home::{NoteText, Output, TestHome, git_repository};
use anamnesis_text::hash::bytes_hash;
use serde_json::{Value, json};

use crate::{
    SESSION, home, home_with_notes, id,
    sessions::{end, hook_at, play},
    snapshot,
};

/// The name and level of each check.
fn levels(home: &TestHome) -> Vec<(String, String)> {
    let checks = home.run("doctor --json").json();
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let list = checks["checks"].as_array().unwrap();
    list.iter()
        .map(|check| (text(check, "name"), text(check, "level")))
        .collect()
}

/// The lines and the hint of one check, as `doctor` prints them.
fn check(home: &TestHome, name: &str) -> String {
    let printed = home.run("doctor").stdout;
    let mut lines = printed.lines();
    let first = lines.find(|line| line.split_whitespace().nth(1) == Some(name));
    let mut text = first
        .unwrap_or_else(|| panic!("no {name} in {printed}"))
        .to_owned();
    for line in lines.take_while(|line| line.starts_with("      ")) {
        text.push('\n');
        text.push_str(line.trim_start());
    }
    text
}

fn enable_plugin(home: &TestHome) {
    let settings = json!({ "enabledPlugins": { "anamnesis@anamnesis": true } });
    fs::write(home.claude().join("settings.json"), settings.to_string()).unwrap();
}

/// A home in which everything has run once and nothing is wrong.
pub(crate) fn sound() -> TestHome {
    let home = home_with_notes();
    enable_plugin(&home);
    home.run("reindex").well();
    for event in [
        "SessionStart",
        "UserPromptSubmit",
        "PreCompact",
        "SessionEnd",
    ] {
        let _ = home.hook(&home.payload(event, SESSION)).well();
    }
    home.settle();
    home
}

/// What a doctor prints, without the address of the plugin's repository.
pub(crate) fn checked(output: &Output) -> String {
    let address = env!("CARGO_PKG_REPOSITORY").trim_start_matches("https://github.com/");
    output.shown().replace(address, "[PLUGIN]")
}

#[test]
fn fresh() {
    let home = home();
    snapshot!(checked(&home.run("doctor")), @"
    exit 0
    ? plugin     0.1.0; Claude Code lists no plugin of that name
                 → /plugin install anamnesis --marketplace [PLUGIN]
    ? hooks      no hook has run yet: the next prompt runs the first
    ? recording  no session recorded yet
    ✓ store      ~/.anamnesis, writable
    ✓ records    [SIZE], none pending
    ✓ notes      0 notes readable
    ✓ index      was missing, is built now
    ✓ privacy    for you alone
    ✓ sync       none; notes stay on this machine
    ✓ others     no other memory found
    nothing is broken; → is what you may do
    ");
}

#[test]
fn all_well() {
    let home = sound();
    snapshot!(home.run("doctor").shown(), @"
    exit 0
    ✓ plugin     0.1.0, enabled
    ✓ hooks      median [TIME], worst [TIME]
    ✓ recording  last session just now: 1 prompt, 0 tool events, nothing to note
    ✓ store      ~/.anamnesis, writable
    ✓ records    [SIZE], none pending
    ✓ notes      5 notes readable
    ✓ index      up to date with the notes
    ✓ privacy    for you alone
    ✓ sync       none; notes stay on this machine
    ✓ others     no other memory found
    nothing to do
    ");
    snapshot!(home.run("doctor --json").shown(), @r#"
    exit 0
    {
      "checks": [
        {
          "name": "plugin",
          "level": "well",
          "lines": [
            "0.1.0, enabled"
          ],
          "hint": null
        },
        {
          "name": "hooks",
          "level": "well",
          "lines": [
            "median [TIME], worst [TIME]"
          ],
          "hint": null
        },
        {
          "name": "recording",
          "level": "well",
          "lines": [
            "last session just now: 1 prompt, 0 tool events, nothing to note"
          ],
          "hint": null
        },
        {
          "name": "store",
          "level": "well",
          "lines": [
            "~/.anamnesis, writable"
          ],
          "hint": null
        },
        {
          "name": "records",
          "level": "well",
          "lines": [
            "[SIZE], none pending"
          ],
          "hint": null
        },
        {
          "name": "notes",
          "level": "well",
          "lines": [
            "5 notes readable"
          ],
          "hint": null
        },
        {
          "name": "index",
          "level": "well",
          "lines": [
            "up to date with the notes"
          ],
          "hint": null
        },
        {
          "name": "privacy",
          "level": "well",
          "lines": [
            "for you alone"
          ],
          "hint": null
        },
        {
          "name": "sync",
          "level": "well",
          "lines": [
            "none; notes stay on this machine"
          ],
          "hint": null
        },
        {
          "name": "others",
          "level": "well",
          "lines": [
            "no other memory found"
          ],
          "hint": null
        }
      ],
      "broken": 0,
      "look": 0,
      "fixed": []
    }
    "#);
}

#[test]
fn hooks_that_fail() {
    // HOOK-14
    let home = sound();
    let mut payload = home.payload("SessionEnd", SESSION);
    payload["transcript_path"] = "/etc/hostname".into();
    home.hook(&payload).well();
    snapshot!(check(&home, "hooks"), @"
    ✗ hooks      SessionEnd: transcript: not in Claude Code's folder, so it was not read
    median [TIME], worst [TIME]
    → tail ~/.anamnesis/log/anamnesis.log
    ");
    assert_eq!(home.run("doctor").code, Some(1));
    // The next run that goes well ends it.
    let next = home.hook_with(home.payload("SessionEnd", SESSION).to_string());
    next.env("ANAMNESIS_NOW", "2026-01-02T03:05:00Z")
        .run()
        .well();
    assert_eq!(home.run("doctor").code, Some(0));
}

#[test]
fn hooks_that_do_not_run() {
    let home = sound();
    // The client wrote a transcript long after the last hook, as far as the clock of the test goes.
    home.write_transcript("2c9f7a52-90a5-4a52-bd5c-5a8e55c9a3a1", &[]);
    snapshot!(check(&home, "hooks"), @"
    ✗ hooks      none ran since 2026-01-02, though Claude Code was used
    → claude --debug   (shows why hooks do not run)
    ");
    assert_eq!(home.run("doctor").code, Some(1));
}

#[test]
fn an_unreadable_note() {
    // YAML-04, PATH-06
    let home = sound();
    let broken = home.add(&NoteText::new(&id("BR0KEN"), "x").with("extra", "1\ntitle: again"));
    home.write("memory/semantic/notes.md", "a stray file");
    let bytes = fs::read(&broken).unwrap();
    snapshot!(check(&home, "notes"), @r#"
    ✗ notes      1 of 6 unreadable
    memory/semantic/01JZ0000000000000000BR0KEN.md: line 14: duplicate key "title"
    memory/semantic/notes.md: not named <ULID>.md; left alone
    → anamnesis edit 01JZ0000000000000000BR0KEN --raw   (left as it is, hides nothing else)
    "#);
    assert_eq!(home.run("doctor").code, Some(1));
    assert_eq!(fs::read(broken).unwrap(), bytes);
    assert_eq!(home.run("list --everywhere").well().lines().count(), 5);
}

#[test]
fn conflict_markers_in_local_do_not_keep_doctor_broken() {
    let home = sound();
    let marked = "<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> theirs";
    let note = NoteText::new(&id("MARKED"), "x").with("scope", "machine-local");
    let text = note.body(marked).text();
    let path = format!("local/semantic/{}.md", id("MARKED"));
    home.write(&path, &text);
    snapshot!(check(&home, "notes"), @"
    ✗ notes      1 of 6 unreadable
    local/semantic/01JZ0000000000000000MARKED.md: holds the conflict markers of a git merge
    → anamnesis edit 01JZ0000000000000000MARKED --raw, or anamnesis doctor --fix   (indents the markers)
    ");
    let fixed = home.run("doctor --fix").stdout;
    assert!(fixed.contains("✓ notes      6 notes readable"), "{fixed}");
    let after = text
        .replace("<<<<<<<", " <<<<<<<")
        .replace(">>>>>>>", " >>>>>>>");
    assert_eq!(home.read(&path), after);
}

#[cfg(unix)]
#[test]
fn a_link_in_the_tree() {
    // PATH-02
    let home = sound();
    let secret = home.user().join("secret.md");
    fs::write(
        &secret,
        NoteText::new(&id("SECRET"), "Secret outside").text(),
    )
    .unwrap();
    let link = home
        .store()
        .join(format!("memory/semantic/{}.md", id("SECRET")));
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    snapshot!(check(&home, "notes"), @"
    ✗ notes      1 of 6 unreadable
    memory/semantic/01JZ0000000000000000SECRET.md: a link to [ROOT]/home/secret.md; not followed
    → anamnesis edit 01JZ0000000000000000SECRET --raw   (left as it is, hides nothing else)
    ");
    assert!(!home.run("list --everywhere").well().contains("Secret"));
    assert!(!home.run("search secret").well().contains("outside"));
    assert!(!home.run("inject").well().contains("Secret"));
    assert!(
        !home
            .hook(&home.start(SESSION, "startup"))
            .well()
            .contains("Secret")
    );
}

#[cfg(unix)]
#[test]
fn modes_and_their_repair() {
    // PATH-07
    use std::os::unix::fs::PermissionsExt;

    let home = sound();
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let note = home.store().join(&home.notes()[0]);
    mode(&note, 0o644);
    mode(&home.store().join("log"), 0o755);
    snapshot!(check(&home, "privacy"), @"
    ! privacy    others can read log (mode 755) and 1 more
    → anamnesis doctor --fix
    ");
    assert_eq!(home.run("doctor").code, Some(3));
    snapshot!(home.run("doctor --fix").shown(), @"
    exit 0
    fixed: log was open to others (mode 755)
    fixed: memory/episodic/01JZ0000000000000000F5XJ2P.md was open to others (mode 644)
    ✓ plugin     0.1.0, enabled
    ✓ hooks      median [TIME], worst [TIME]
    ✓ recording  last session just now: 1 prompt, 0 tool events, nothing to note
    ✓ store      ~/.anamnesis, writable
    ✓ records    [SIZE], none pending
    ✓ notes      5 notes readable
    ✓ index      up to date with the notes
    ✓ privacy    for you alone
    ✓ sync       none; notes stay on this machine
    ✓ others     no other memory found
    nothing to do
    ");
    assert_eq!(
        fs::metadata(note).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(home.run("doctor --fix"), home.run("doctor"));
}

#[cfg(unix)]
#[test]
fn everything_that_is_made_is_for_the_owner_alone() {
    // PATH-07
    use std::os::unix::fs::PermissionsExt;

    let home = home();
    home.write_transcript(
        SESSION,
        &[anamnesis_testkit::home::asked(
            "Add rate limits to the login",
        )],
    );
    home.hook(&home.start(SESSION, "startup")).well();
    home.hook(&home.payload("SessionEnd", SESSION)).well();
    let note = home.command(["write"]).input("Text").run().new_id();
    home.run(&format!("forget {note}")).well();
    home.hook_with("garbage").run().well();
    home.settle();
    let mut pending = vec![home.store()];
    let mut seen = 0;
    while let Some(path) = pending.pop() {
        let metadata = fs::metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        let is_object = path.components().any(|part| part.as_os_str() == "objects");
        let expected = match (metadata.is_dir(), is_object) {
            (true, _) => 0o700,
            (false, false) => 0o600,
            // git never writes to an object again.
            (false, true) => 0o400,
        };
        assert_eq!(mode, expected, "{}", path.display());
        if metadata.is_dir() {
            pending.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        seen += 1;
    }
    assert!(seen > 12, "{seen}");
}

#[test]
fn projects_that_a_person_may_want_to_settle() {
    let home = sound();
    for folder in ["one/api", "other/api", "cloned"] {
        fs::create_dir_all(home.root().join(folder)).unwrap();
    }
    let begin = |folder: &str| {
        let folder = home.root().join(folder);
        let mut payload = home.start(SESSION, "startup");
        payload["cwd"] = json!(folder);
        let hook = home.hook_with(payload.to_string());
        hook.env("CLAUDE_PROJECT_DIR", &folder).run().well();
    };
    begin("one/api");
    assert!(!levels(&home).iter().any(|(name, _)| name == "projects"));
    git_repository(
        &home.root().join("cloned"),
        Some("https://github.com/stranger/tool"),
    );
    let marker = home.root().join("cloned/.anamnesis");
    fs::create_dir(&marker).unwrap();
    fs::write(marker.join("project"), "github.com/acme/shop").unwrap();
    begin("cloned");
    snapshot!(check(&home, "projects"), @"
    ! projects   [ROOT]/cloned asks for the notes of github.com/acme/shop
    → anamnesis project trust FOLDER   (gives them to it)
    ");
    begin("other/api");
    snapshot!(check(&home, "projects"), @r#"
    ! projects   [ROOT]/one/api and [ROOT]/other/api share the notes of "api"
    [ROOT]/cloned asks for the notes of github.com/acme/shop
    → name one apart: write another name into its .anamnesis/project
    "#);
}

#[cfg(unix)]
#[test]
fn a_second_binary_on_the_path() {
    let home = sound();
    script(&home.root().join("bin/anamnesis"), "exit 0");
    snapshot!(check(&home, "others"), @"
    ! others     another anamnesis comes first on PATH: [ROOT]/bin/anamnesis
    → remove it, or put this one first
    ");
    assert_eq!(home.run("doctor").code, Some(3));
    // A link to this one is this one.
    fs::remove_file(home.root().join("bin/anamnesis")).unwrap();
    std::os::unix::fs::symlink(crate::program(), home.root().join("bin/anamnesis")).unwrap();
    assert_eq!(home.run("doctor").code, Some(0));
}

#[test]
fn an_installed_program_is_named_with_its_hash() {
    assert!(!home().run("doctor --verbose").stdout.contains("SHA-256"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("bin/native/host/anamnesis");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::copy(crate::program(), &program).unwrap();
    let hash = bytes_hash(&fs::read(&program).unwrap());
    let home = TestHome::new(&program);
    assert!(!home.run("doctor").stdout.contains(&hash));
    let shown = home.run("doctor --verbose").stdout;
    assert!(shown.contains(&hash), "{shown}");
    let command = format!("gh attestation verify {}", program.display());
    assert!(shown.contains(&command), "{shown}");
}

#[test]
fn the_plugin_switched_off() {
    let home = sound();
    let settings = json!({ "enabledPlugins": { "anamnesis@anamnesis": false } });
    fs::write(home.claude().join("settings.json"), settings.to_string()).unwrap();
    snapshot!(check(&home, "plugin"), @"
    ! plugin     0.1.0, not enabled in Claude Code
    → /plugin   (in Claude Code; or: claude plugin enable anamnesis@anamnesis)
    ");
    for broken in ["", "{", "[]", "{\"enabledPlugins\": 4}"] {
        fs::write(home.claude().join("settings.json"), broken).unwrap();
        assert_eq!(levels(&home)[0].1, "unknown", "{broken}");
        // HOOK-07
        assert_eq!(
            fs::read_to_string(home.claude().join("settings.json")).unwrap(),
            broken
        );
    }
}

#[test]
fn switched_off() {
    let home = sound();
    let output = home.command(["doctor"]).env("ANAMNESIS_OFF", "1").run();
    assert_eq!(output.code, Some(3));
    assert!(
        output
            .stdout
            .contains("! recording  off: ANAMNESIS_OFF is set\n"),
        "{output:?}"
    );
}

#[test]
fn a_store_in_a_repository() {
    // PATH-10
    let home = sound();
    git_repository(&home.user(), None);
    snapshot!(check(&home, "store"), @"
    ! store      ~/.anamnesis is in the git repository ~
    → move it out, or your notes may be committed there: set ANAMNESIS_HOME
    ");
    assert_eq!(home.run("doctor").code, Some(3));
}

#[test]
fn a_file_in_the_place_of_the_store() {
    // SQL-08
    let home = home();
    fs::write(home.store(), "a file").unwrap();
    let doctor = home.command(["doctor"]).without("ANAMNESIS_MACHINE_ID");
    snapshot!(checked(&doctor.run()), @"
    exit 1
    ? plugin     0.1.0; Claude Code lists no plugin of that name
                 → /plugin install anamnesis --marketplace [PLUGIN]
    ? hooks      cannot be told without the store
    ✗ store      [ROOT]/home/.anamnesis is not a folder of the store but a file; move it away
                 → move away what is in its place, or make it writable for you
    ✓ others     no other memory found
    1 broken
    ");
    for command in ["status", "list", "write --title x", "inject", "capture"] {
        let output = home.run(command);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(1), ""),
            "{command}"
        );
    }
    snapshot!(home.run("status").shown(), @"
    exit 1
    on stderr:
    anamnesis: [ROOT]/home/.anamnesis is not a folder of the store but a file; move it away
    → anamnesis doctor
    ");
    assert_eq!(fs::read_to_string(home.store()).unwrap(), "a file");
}

#[test]
fn a_store_whose_journal_cannot_be_opened_is_not_well() {
    let home = sound();
    assert_eq!(check(&home, "store"), "✓ store      ~/.anamnesis, writable");
    for ending in ["db", "db-wal", "db-shm"] {
        fs::remove_file(home.store().join("journal").with_extension(ending)).ok();
    }
    fs::create_dir(home.store().join("journal.db")).unwrap();
    snapshot!(check(&home, "store"), @"
    ✗ store      journal.db is damaged: it is a folder
    → anamnesis doctor --fix
    ");
    fs::remove_dir(home.store().join("journal.db")).unwrap();
    home.write("journal.db", "these are no records");
    snapshot!(check(&home, "store"), @"
    ✗ store      journal.db: file is not a database
    → anamnesis doctor --fix
    ");
    fs::remove_file(home.store().join("journal.db")).unwrap();
    let journal = rusqlite::Connection::open(home.store().join("journal.db")).unwrap();
    journal.pragma_update(None, "user_version", 9_999).unwrap();
    for place in [check(&home, "hooks"), home.run("status").stdout] {
        assert!(place.contains("update anamnesis"), "{place}");
        assert!(!place.contains("doctor --fix"), "{place}");
    }
    let newer = check(&home, "store");
    assert!(
        newer.starts_with("✗ store      journal.db is of version 9999"),
        "{newer}"
    );
}

#[test]
fn broken_settings() {
    let home = sound();
    home.write("config.json", "{ broken");
    snapshot!(check(&home, "privacy"), @"
    ! privacy    config.json is not a JSON object: key must be a string at line 1 column 3
    off: config.json cannot be understood; nothing is recorded or injected
    → fix config.json
    ");
    assert_eq!(home.run("doctor").code, Some(3));
    home.write("config.json", r#"{"session_line": "loud"}"#);
    snapshot!(check(&home, "privacy"), @r#"
    ! privacy    config.json: invalid value "loud" for session_line: expected on, problems or off
    → fix config.json, or remove it
    "#);
    assert!(
        home.read("config.json")
            .starts_with(r#"{"session_line": "loud""#)
    );
}

#[test]
fn an_index_that_cannot_be_used_is_built_anew() {
    // SQL-04
    let home = sound();
    let before = home.run("list --everywhere --json").well();
    let index = crate::index(&home.store());
    fs::write(&index, [0; 8192]).unwrap();
    snapshot!(check(&home, "index"), @"✓ index      index: file is not a database; rebuilt from the notes");
    fs::remove_file(&index).unwrap();
    snapshot!(check(&home, "index"), @"✓ index      was missing, is built now");
    snapshot!(check(&home, "index"), @"✓ index      up to date with the notes");
    fs::write(&index, b"SQLite format 3\0 but no").unwrap();
    snapshot!(home.run("doctor --fix").shown(), @"
    exit 0
    fixed: the index was rebuilt
    ✓ plugin     0.1.0, enabled
    ✓ hooks      median [TIME], worst [TIME]
    ✓ recording  last session just now: 1 prompt, 0 tool events, nothing to note
    ✓ store      ~/.anamnesis, writable
    ✓ records    [SIZE], none pending
    ✓ notes      5 notes readable
    ✓ index      up to date with the notes
    ✓ privacy    for you alone
    ✓ sync       none; notes stay on this machine
    ✓ others     no other memory found
    nothing to do
    ");
    assert_eq!(home.run("list --everywhere --json").well(), before);
}

#[test]
fn the_states_are_told_apart() {
    // HOOK-14: an empty store and a broken one never look alike.
    let names = [
        "plugin",
        "hooks",
        "recording",
        "store",
        "records",
        "notes",
        "index",
        "privacy",
        "sync",
        "others",
    ];
    let fresh = levels(&home());
    let well = levels(&sound());
    assert_eq!(
        fresh
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        names
    );
    assert_eq!(
        well.iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        names
    );
    assert!(
        fresh[..3].iter().all(|(_, level)| level == "unknown"),
        "{fresh:?}"
    );
    assert!(well.iter().all(|(_, level)| level == "well"), "{well:?}");
    let broken = home();
    fs::write(broken.store(), "").unwrap();
    assert!(levels(&broken).contains(&("store".to_owned(), "broken".to_owned())));
}

#[test]
fn the_report_names_nobody() {
    let home = sound();
    let broken = NoteText::new(&id("BR0KEN"), "Private title").with("extra", "1\ntitle: again");
    home.add(&broken);
    let mut payload = home.payload("Unheard-Of-Secret-Event", SESSION);
    payload["cwd"] = "/srv/private-folder".into();
    home.hook(&payload).well();
    home.hook_with("{\"session_id\": \"private words\"")
        .run()
        .well();
    let report = home.run("doctor --report");
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    snapshot!(report.stdout.replace(&system, "[SYSTEM]"), @"
    anamnesis 0.1.0 on [SYSTEM]
    plugin well
    hooks broken
    recording well
    store well
    records well
    notes broken
    index well
    privacy well
    sync well
    others well
    PreCompact 1 runs, median [TIME], worst [TIME]
    SessionEnd 1 runs, median [TIME], worst [TIME]
    SessionStart 1 runs, median [TIME], worst [TIME]
    UserPromptSubmit 1 runs, median [TIME], worst [TIME]
    ");
    for name in [
        "ROOT", "home", "shop", "acme", "laptop", "rivate", "Secret", "BR0KEN", SESSION,
    ] {
        assert!(!report.stdout.contains(name), "{name}: {report:?}");
    }
}

#[test]
fn the_last_session_and_what_became_of_it() {
    let home = home();
    play(&home, SESSION);
    end(&home, SESSION, "clear");
    snapshot!(check(&home, "recording"), @"✓ recording  last session 2 min ago: 2 prompts, 2 tool events, note #J8QYZW");
    home.run("forget --yes --session 5b0c8f1e").well();
    play(&home, SESSION);
    snapshot!(check(&home, "recording"), @"✓ recording  last session 3 min ago: 2 prompts, 2 tool events, note forgotten");
}

#[test]
fn records_that_are_pending() {
    let home = sound();
    assert!(check(&home, "records").starts_with('✓'));
    home.write("spool/01JZ0000000000000000000000.json", "{}");
    snapshot!(home.run("doctor").shown(), @"
    exit 3
    ✓ plugin     0.1.0, enabled
    ✓ hooks      median [TIME], worst [TIME]
    ✓ recording  last session just now: 1 prompt, 0 tool events, nothing to note
    ✓ store      ~/.anamnesis, writable
    ! records    1 record pending in spool/
                 → anamnesis internal maintain
    ✓ notes      5 notes readable
    ✓ index      up to date with the notes
    ✓ privacy    for you alone
    ✓ sync       none; notes stay on this machine
    ✓ others     no other memory found
    1 to look at
    ");
    snapshot!(home.run("status").shown(), @"
    exit 0
    store: ~/.anamnesis · on · machine laptop · 0.1.0
    here:  github.com/acme/shop (from the git remote)
           3 notes: 1 fact, 1 how-to, 1 session
           a session starts with 4 notes, ~151 tokens
    notes: 5 in 2 projects, 1 for all projects, 0 on this machine only
    sync:  none; notes stay on this machine · anamnesis init --remote URL
    kept:  1 session's raw records, [SIZE], here only: 30 d
    state: 1 record pending in spool/ · anamnesis doctor
    ");
    for line in (home.run("doctor").stdout + &home.run("status").stdout).lines() {
        assert!(line.chars().count() <= 80, "over 80 columns: {line}");
    }
    home.run("maintain").well();
    assert!(check(&home, "records").starts_with('✓'));
}

#[test]
fn a_damaged_repository_is_replaced_and_named() {
    let home = home();
    home.run("write --title One").well();
    home.settle();
    let git = home.store().join("memory/.git");
    let old = fs::read_to_string(git.join("refs/heads/main")).unwrap();
    // No sync reads the oldest commit.
    home.run("write --title Two").well();
    home.settle();
    let (folder, rest) = old.trim().split_at(2);
    fs::remove_file(git.join("objects").join(folder).join(rest)).unwrap();
    let log = home.run("log");
    assert!(log.stderr.contains("anamnesis doctor --fix"), "{log:?}");
    let fixed = home.run("doctor --fix").stdout;
    let named = fixed
        .lines()
        .find(|line| line.starts_with("fixed: memory/.git was damaged"));
    assert!(
        named.is_some_and(|line| line.contains("quarantine/git-")),
        "{fixed}"
    );
    home.run("log").well();
    let shown = check(&home, "repository");
    let kept = fs::read_dir(home.store().join("quarantine"))
        .unwrap()
        .next();
    let kept = kept.unwrap().unwrap().path();
    assert!(
        shown.contains("→ rm -rf ~/.anamnesis/quarantine/git-"),
        "{shown}"
    );
    assert!(kept.join(".git/HEAD").is_file());
    fs::remove_dir_all(kept).unwrap();
    assert!(!home.run("doctor").stdout.contains("repository "));
}

#[test]
fn a_damaged_repository_is_replaced_by_the_next_sync() {
    let home = home();
    home.run("write --title One").well();
    home.settle();
    fs::write(home.store().join("memory/.git/HEAD"), "").unwrap();
    let synced = home.run("sync");
    let told = "memory/.git: was damaged (";
    assert!(synced.stderr.contains(told), "{synced:?}");
    assert!(!home.run("sync").stderr.contains(told));
    home.run("log").well();
}

#[test]
fn records_get_their_write_ahead_log_back() {
    let home = sound();
    let journal = rusqlite::Connection::open(home.store().join("journal.db")).unwrap();
    journal
        .pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
        .unwrap();
    drop(journal);
    snapshot!(check(&home, "records"), @"
    ✓ records    [SIZE], none pending
    ");
    let journal = rusqlite::Connection::open(home.store().join("journal.db")).unwrap();
    let mode = journal.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    assert_eq!(mode.unwrap(), "wal");
}

#[test]
fn a_note_that_could_not_be_written() {
    let home = home();
    play(&home, SESSION);
    // A folder in the place of the note's: it cannot be written.
    let episodic = home.store().join("memory/episodic");
    fs::remove_dir_all(&episodic).unwrap();
    fs::write(&episodic, "").unwrap();
    end(&home, SESSION, "clear");
    for day in 3..6 {
        let time = format!("2026-01-0{day}T03:00:00Z");
        let _ = home.command(["maintain"]).env("ANAMNESIS_NOW", time).run();
    }
    let printed = check(&home, "records");
    assert!(
        printed.contains("1 session note could not be written: "),
        "{printed}"
    );
    assert!(printed.contains("→ anamnesis doctor --fix"), "{printed}");
    fs::remove_file(&episodic).unwrap();
    let fixed = home.run("doctor --fix").stdout;
    assert!(
        fixed.contains("fixed: 1 job that had failed will be tried again"),
        "{fixed}"
    );
    let _ = home.run("maintain").well();
    assert!(check(&home, "records").starts_with('✓'));
    assert_eq!(home.notes().len(), 1);
}

#[test]
fn verbose_names_every_hook_and_variable() {
    let home = sound();
    let text = home.run("doctor --verbose").well();
    for part in [
        "SessionStart       last just now, 1 today, median ",
        "UserPromptSubmit   last just now, 1 today, median ",
        "SessionEnd         last just now, 1 today, median ",
        "PostToolUse        never ran\n",
        "ANAMNESIS_OFF",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // An error stays beside its hook when later runs go well.
    let mut payload = home.payload("SessionEnd", SESSION);
    payload["transcript_path"] = "/etc/hostname".into();
    hook_at(&home, "03:01:05", &payload).well();
    home.settle();
    let end = home.payload("SessionEnd", SESSION);
    hook_at(&home, "03:02:05", &end).well();
    let text = home.run("doctor --verbose").well();
    assert!(
        text.contains(
            "                     error 3 min ago: transcript: not in Claude Code's folder"
        ),
        "{text}"
    );
}
