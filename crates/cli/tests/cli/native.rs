//! Claude Code's own memory: copied into notes that follow it, never touched, never given twice.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anamnesis_testkit::home::{NoteText, TestHome, answered, asked, files_below};

use crate::{SESSION, home, id, snapshot};

/// A credential, put together so that no scanner takes it for one.
const TOKEN: &str = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");

/// Claude writes a file of its memory of the project, on a day of December 2025.
fn remember(home: &TestHome, name: &str, day: u64, text: &str) -> PathBuf {
    let path = home.claude().join("projects/-shop/memory").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    // 2025-12-01, 12:00 UTC.
    let noon = Duration::from_secs(1_764_590_400 + (day - 1) * 24 * 60 * 60);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + noon).unwrap();
    path
}

fn memory(description: &str, body: &str) -> String {
    format!(
        "---\nname: x\ndescription: {description}\nmetadata:\n  type: feedback\n---\n\n{body}\n"
    )
}

/// A home with a session's transcript, which tells the project, and one file of the memory.
fn home_with_notes() -> TestHome {
    let home = home();
    home.write_transcript(
        SESSION,
        &[asked("Which package manager?"), answered("pnpm")],
    );
    remember(
        &home,
        "MEMORY.md",
        1,
        "- [Package manager](package_manager.md)\n",
    );
    remember(
        &home,
        "package_manager.md",
        1,
        &memory("The package manager is pnpm", "Use `pnpm`."),
    );
    home
}

/// What the next session is given.
fn given(home: &TestHome) -> String {
    home.hook(&home.start("next", "startup")).well()
}

/// Every file below a folder, with its bytes and its time of change.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let files = files_below(folder).into_iter().map(|path| {
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        (path.clone(), fs::read(&path).unwrap(), modified)
    });
    files.collect()
}

#[test]
fn notes_follow_the_memory() {
    let home = home_with_notes();
    snapshot!(home.run("import").shown(), @"
    exit 0
    imported 1 note from [ROOT]/home/.claude, updated 0, skipped 0
    ");
    let notes = home.notes();
    snapshot!(home.read(&notes[0]), @"
    ---
    id: 3YSZ9QA37HQQYFP86PCPM5DNJV
    type: procedural
    title: The package manager is pnpm
    project: github.com/acme/shop
    machine_id: laptop
    scope: portable
    prov_source: import
    confidence: 0.9
    created_at: '2025-12-01T12:00:00+00:00'
    updated_at: '2025-12-01T12:00:00+00:00'
    tags:
    - import
    - kind:feedback
    ---
    Use `pnpm`.
    ");
    let before = home.read(&notes[0]);
    snapshot!(home.run("import").shown(), @"
    exit 0
    imported 0 notes from [ROOT]/home/.claude, updated 0, skipped 1
    ");
    assert_eq!(
        (home.notes(), home.read(&notes[0])),
        (notes.clone(), before)
    );
    let changed = memory("The package manager is pnpm 9", "Use `pnpm`, never `npm`.");
    remember(&home, "package_manager.md", 2, &changed);
    snapshot!(home.run("import").shown(), @"
    exit 0
    imported 0 notes from [ROOT]/home/.claude, updated 1, skipped 0
    ");
    snapshot!(home.run("list").shown(), @"
    exit 0
    M5DNJV  how-to      The package manager is pnpm 9                   import, 30 d
    ");
}

#[test]
fn a_memory_folder_that_is_deleted_is_one_card_in_review() {
    let home = home_with_notes();
    let elsewhere = home.claude().join("projects/-cart/memory");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("ports.md"), "The stub is on 9090.\n").unwrap();
    let session = serde_json::json!({ "cwd": home.root().join("cart") });
    let transcript = home.claude().join("projects/-cart/session.jsonl");
    fs::write(transcript, session.to_string()).unwrap();
    home.run("import").well();
    for memory in [home.claude().join("projects/-shop/memory"), elsewhere] {
        fs::remove_dir_all(memory).unwrap();
    }
    snapshot!(home.run("import").shown(), @"
    exit 0
    imported 0 notes from [ROOT]/home/.claude, updated 0, skipped 0
    2 notes kept although the file is gone: anamnesis review
    ");
    assert!(
        home.run("search pnpm")
            .well()
            .contains("The package manager is pnpm")
    );
    // Sessions do not have it from the memory itself any more.
    assert!(given(&home).contains("The package manager is pnpm"));
    home.settle();
    let json = home.run("review --json").json();
    assert_eq!(
        (&json["total"], json["groups"].as_array().unwrap().len()),
        (&2.into(), 1)
    );
    let shown = home.run("review --list").shown();
    assert!(
        shown.contains("2 copies of a deleted memory file"),
        "{shown}"
    );
    assert!(
        shown.contains("Claude Code deleted the memory file; the copy is in use: 2 notes"),
        "{shown}"
    );
    let path = home
        .notes()
        .into_iter()
        .find(|path| path.contains("procedural"))
        .unwrap();
    let kept = Path::new(&path)
        .file_stem()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    home.command(["review", "--approve", &kept]).run().well();
    assert!(!home.read(&path).contains("source-gone"));
    assert_eq!(home.run("review --json").json()["total"], 1);
}

#[test]
fn import_commits_and_sends() {
    let home = home_with_notes();
    let remote = home.root().join("remote.git");
    let by_path = |words: &str| {
        let command = home.command(words.split(' '));
        command
            .env("PATH", std::env::var_os("PATH").unwrap())
            .run()
            .well()
    };
    let git = |arguments: &[&str]| {
        let done = std::process::Command::new("git")
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "git {arguments:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let path = remote.to_str().unwrap();
    git(&["init", "--quiet", "--bare", "--initial-branch=main", path]);
    // Without a remote the notes are committed.
    home.run("import").well();
    let log = home.run("log").well();
    assert!(
        log.contains("import +1 The package manager is pnpm"),
        "{log}"
    );
    home.write("config.json", format!("{{\"remote\": {path:?}}}"));
    remember(
        &home,
        "ports.md",
        2,
        &memory("Ports", "The stub is on 9090."),
    );
    home.run("import --no-sync").well();
    assert_eq!(git(&["-C", path, "branch", "--list"]), "");
    let said = by_path("import");
    assert!(
        said.contains("synced: sent this machine's changes"),
        "{said}"
    );
    let sent = git(&["-C", path, "ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(sent.matches(".md").count(), 2, "{sent}");
}

#[test]
fn the_memory_folder_of_a_projects_settings_is_not_copied() {
    let home = home_with_notes();
    let named = home.root().join("agents");
    fs::create_dir(&named).unwrap();
    fs::write(named.join("ports.md"), "The stub is on 9090.\n").unwrap();
    let settings = format!("{{\"autoMemoryDirectory\": {:?}}}", named.to_str().unwrap());
    let of_project = home.project().join(".claude");
    fs::create_dir_all(&of_project).unwrap();
    for name in ["settings.json", "settings.local.json"] {
        fs::write(of_project.join(name), &settings).unwrap();
    }
    assert!(home.run("import").well().contains("imported 1 note "));
    fs::write(home.claude().join("settings.json"), &settings).unwrap();
    assert!(home.run("import").well().contains("imported 1 note "));
    assert_eq!(home.notes().len(), 2);
}

#[test]
fn skipped_memory_files_are_counted_and_unusable_ones_named() {
    let home = home_with_notes();
    let outside = home.root().join("outside.md");
    fs::write(&outside, memory("needle", "needle")).unwrap();
    let folder = home.claude().join("projects/-shop/memory");
    fs::hard_link(&outside, folder.join("hard.md")).unwrap();
    remember(&home, "empty.md", 1, "");
    let expected = home.run("import --no-sync").shown();
    let expected = expected.replace("imported 1 note ", "imported 0 notes ");
    let expected = expected.replace("skipped 2\n", "skipped 3\n");
    snapshot!(home.run("import --no-sync").shown(), @"
    exit 0
    imported 0 notes from [ROOT]/home/.claude, updated 0, skipped 3
    on stderr:
    import: [ROOT]/home/.claude/projects/-shop/memory/hard.md: a hard link to a file with other names; not followed
    ");
    assert_eq!(home.run("import --no-sync").shown(), expected);
}

#[test]
fn no_secret_of_the_memory_reaches_the_disk() {
    // IMP-02, HOOK-10
    let home = home_with_notes();
    remember(
        &home,
        &format!("{TOKEN}.md"),
        1,
        "---\n---\nA file that is named after a token.\n",
    );
    remember(
        &home,
        "deploy.md",
        1,
        &memory(
            &format!("Deploys need {TOKEN} <private>needle</private>"),
            &format!("export GITHUB_TOKEN={TOKEN}\n<private>needle\n\nand the rest"),
        ),
    );
    remember(
        &home,
        "bomb.md",
        1,
        &format!("---\na: &a [x, x]\nb: [*a, *a]\nname: Token {TOKEN}\n---\n{TOKEN}\n"),
    );
    let large = remember(&home, &format!("large-{TOKEN}.md"), 1, "");
    File::options()
        .write(true)
        .open(large)
        .unwrap()
        .set_len(50 * 1024 * 1024)
        .unwrap();
    let before = files(&home.claude());
    snapshot!(home.run("import").shown(), @"
    exit 0
    imported 4 notes from [ROOT]/home/.claude, updated 0, skipped 1
    5 secrets masked (assignment 2, github 3)
    on stderr:
    import: [ROOT]/home/.claude/projects/-shop/memory/large-[REDACTED].md: over 256 KiB
    ");
    home.work();
    given(&home);
    home.settle();
    assert!(files(&home.claude()) == before);
    assert_eq!(home.notes().len(), 4);
    for (path, bytes, _) in files(&home.store()) {
        for needle in ["needle", &TOKEN[4..]] {
            let is_there = bytes
                .windows(needle.len())
                .any(|part| part == needle.as_bytes());
            assert!(!is_there, "{needle} in {}", path.display());
        }
    }
}

#[test]
fn a_session_is_not_told_what_its_memory_says() {
    let home = home_with_notes();
    home.run("import").well();
    assert!(!given(&home).contains("package manager"));
    // The status counts what a session is given.
    let status = home.run("status --json").json();
    assert_eq!(status["project"]["injected_at_start"], 0, "{status}");
    for command in ["inject", "search pnpm", "list"] {
        assert!(
            home.run(command)
                .well()
                .contains("The package manager is pnpm"),
            "{command}"
        );
    }
    // On another machine, which has not imported it, it is news.
    let other = crate::home();
    for path in home.notes() {
        other.write(&path, home.read(&path));
    }
    other.run("list").well();
    assert!(given(&other).contains("The package manager is pnpm"));
    // A person's word is theirs here, too.
    let path = &home.notes()[0];
    home.write(
        path,
        home.read(path).replace("Use `pnpm`.", "Use `pnpm` 9."),
    );
    home.run("list").well();
    assert!(given(&home).contains("Use `pnpm` 9."));
}

#[test]
fn a_memory_that_the_client_added_is_not_injected_again() {
    let home = home_with_notes();
    home.run("import").well();
    let prompt = |session: &str| {
        home.hook(&home.start(session, "startup")).well();
        let mut payload = home.payload("UserPromptSubmit", session);
        payload["prompt"] = "Which package manager is it here, pnpm or npm?".into();
        home.hook(&payload).well()
    };
    let added = home.write_transcript("with", &[asked("Which package manager?")]);
    let memory = home
        .claude()
        .join("projects/-shop/memory/package_manager.md");
    let line = serde_json::json!({ "type": "attachment", "attachment": {
        "type": "relevant_memories", "memories": [{ "path": memory, "content": "Use `pnpm`." }],
    } });
    let before = fs::read_to_string(&added).unwrap();
    fs::write(&added, format!("{before}{line}\n")).unwrap();
    let without = prompt("without");
    assert!(without.contains("The package manager is pnpm"), "{without}");
    let with = prompt("with");
    assert!(!with.contains("The package manager is pnpm"), "{with}");
}

#[test]
fn copies_take_no_place_from_other_notes() {
    let home = home_with_notes();
    for number in 0..20 {
        let text = memory(&format!("Copied {number}"), &format!("Copied {number}."));
        remember(&home, &format!("n{number}.md"), 20, &text);
    }
    home.run("import").well();
    home.add(&NoteText::new(&id("M1NE00"), "Mine"));
    home.run("list").well();
    let given = given(&home);
    assert!(
        given.contains("Mine") && !given.contains("Copied"),
        "{given}"
    );
}

#[test]
fn the_deferred_process_imports_unless_that_is_off() {
    let copies = |home: &TestHome| home.notes().len();
    let home = home_with_notes();
    home.run("list").well();
    home.command(["work"])
        .env("ANAMNESIS_IMPORT_NATIVE", "0")
        .run()
        .well();
    for off in ["false", "\"off\""] {
        home.write("config.json", format!("{{\"import_native\": {off}}}"));
        home.work();
    }
    home.write("config.json", "{\"paused\": [\"github.com/acme/shop\"]}");
    home.work();
    home.write(
        "config.json",
        format!("{{\"exclude\": [{:?}]}}", home.project()),
    );
    home.work();
    home.write("config.json", "{\"exclude\": [1]}");
    home.work();
    assert_eq!(copies(&home), 0);
    assert_eq!(home.run("import").code, Some(1));
    // By hand it is done all the same.
    home.write("config.json", "{\"import_native\": \"off\"}");
    home.run("import").well();
    assert_eq!(copies(&home), 1);
    for on in ["true", "\"on\"", "null"] {
        let home = home_with_notes();
        home.run("list").well();
        home.write("config.json", format!("{{\"import_native\": {on}}}"));
        home.work();
        assert_eq!(copies(&home), 1, "{on}");
        assert!(home.log().is_empty());
    }
    // After a session, by itself.
    let home = home_with_notes();
    home.hook(&home.start(SESSION, "startup")).well();
    home.hook(&home.payload("SessionEnd", SESSION)).well();
    home.settle();
    assert!(home.notes().iter().any(|path| path.contains("procedural")));
}

#[test]
fn what_cannot_be_imported_is_one_line_in_the_log() {
    // IMP-02
    let home = home_with_notes();
    home.run("list").well();
    let large = remember(&home, "large.md", 1, "");
    File::options()
        .write(true)
        .open(large)
        .unwrap()
        .set_len(50 * 1024 * 1024)
        .unwrap();
    home.work();
    home.work();
    snapshot!(home.log().join("\n"), @"2026-01-02T03:04:05Z import: [ROOT]/home/.claude/projects/-shop/memory/large.md: over 256 KiB (1 in all)");
}

#[test]
fn what_a_person_forgot_stays_away() {
    let home = home_with_notes();
    home.run("import").well();
    let path = home.notes().remove(0);
    let id = Path::new(&path)
        .file_stem()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    home.command(["forget", &id]).run().well();
    home.work();
    remember(
        &home,
        "package_manager.md",
        3,
        &memory("The package manager is pnpm", "Use `pnpm` 9."),
    );
    remember(
        &home,
        "renamed.md",
        3,
        &memory("Package manager", "Use `pnpm`."),
    );
    snapshot!(home.run("import").shown(), @"
    exit 0
    imported 0 notes from [ROOT]/home/.claude, updated 0, skipped 2
    ");
    assert_eq!(home.notes(), std::slice::from_ref(&path));
    assert!(home.read(&path).contains("state: forgotten"));
    home.command(["restore", &id]).run().well();
    assert!(home.read(&path).contains("Use `pnpm`."));
}

#[test]
fn another_folder_of_the_client() {
    let home = home_with_notes();
    let elsewhere = home.root().join("backup");
    fs::rename(home.claude(), &elsewhere).unwrap();
    snapshot!(home.run("import").shown(), @"
    exit 0
    imported 0 notes from [ROOT]/home/.claude, updated 0, skipped 0
    ");
    let import = || home.command(["import", "--no-sync", "--claude-home"]);
    snapshot!(import().arg(home.root()).run().shown(), @"
    exit 1
    on stderr:
    anamnesis: [ROOT] is no folder of Claude Code: it has no `projects`
    ");
    snapshot!(import().arg(&elsewhere).by_agent().run().shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can choose where notes come from
    → run this command in a terminal of your own
    ");
    snapshot!(import().arg(&elsewhere).run().shown(), @"
    exit 0
    imported 1 note from [ROOT]/backup, updated 0, skipped 0
    ");
    // What is not there is not gone.
    snapshot!(home.run("import").shown(), @"
    exit 0
    imported 0 notes from [ROOT]/home/.claude, updated 0, skipped 0
    ");
    assert_eq!(home.notes().len(), 1);
}
