//! `purge`: notes and texts out of everything, git history included.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anamnesis_note::purge_pattern::PurgePattern;
#[cfg(unix)]
use anamnesis_testkit::home::script;
use anamnesis_testkit::home::{Invocation, NoteText, Output, TestHome, asked};
use serde_json::json;

use crate::{
    SESSION, home, id,
    sessions::{event, hook_at},
    snapshot,
};

pub(crate) const SECRET: &str = "gr33n-T7-apple";

/// Runs a command with the user's git on the path.
fn command<'a>(home: &'a TestHome, words: &str) -> Invocation<'a> {
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    home.command(words.split_whitespace()).env("PATH", path)
}

pub(crate) fn run(home: &TestHome, words: &str) -> Output {
    command(home, words).run()
}

pub(crate) fn purge_text(home: &TestHome, text: &str) -> Output {
    command(home, "purge --find --yes").input(text).run()
}

pub(crate) fn git(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    output.stdout
}

/// The files below a folder that hold the text, objects of git inflated.
fn holding(folder: &Path) -> Vec<String> {
    let needle = PurgePattern::new(SECRET).unwrap();
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        if folder.join("objects").is_dir() && folder.join("HEAD").is_file() {
            let dir = format!("--git-dir={}", folder.display());
            let objects = git(&[
                &dir,
                "cat-file",
                "--batch-all-objects",
                "--batch",
                "--unordered",
            ]);
            if needle.is_in(&objects) {
                found.push("objects".to_owned());
            }
        }
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if needle.is_in(&fs::read(&path).unwrap()) {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// A store with a remote of its own, in the root of the home.
pub(crate) fn with_remote() -> (TestHome, PathBuf) {
    let home = home();
    let remote = home.root().join("remote.git");
    let path = remote.to_str().unwrap();
    git(&["init", "--quiet", "--bare", "--initial-branch=main", path]);
    join(&home, &remote);
    (home, remote)
}

pub(crate) fn join(home: &TestHome, remote: &Path) {
    home.write("config.json", json!({ "remote": remote }).to_string());
}

/// A session in which the text was typed, and the note of it.
fn leak(home: &TestHome) {
    let transcript = home.write_transcript(SESSION, &[asked(&format!("log in with {SECRET}"))]);
    for (time, name, fields) in [
        ("03:00:00", "SessionStart", json!({ "source": "startup" })),
        (
            "03:00:05",
            "UserPromptSubmit",
            json!({ "prompt_id": "p-1", "prompt": format!("log in with {SECRET}") }),
        ),
        (
            "03:00:06",
            "PostToolUse",
            json!({ "prompt_id": "p-1", "tool_use_id": "t-1", "tool_name": "Bash",
                "tool_input": { "command": format!("login \"{SECRET}\"") },
                "tool_response": { "stdout": "ok" } }),
        ),
    ] {
        let mut payload = event(home, name, SESSION, fields);
        payload["transcript_path"] = json!(transcript);
        hook_at(home, time, &payload).well();
    }
    // What hooks have started must not commit the note before the test does.
    home.settle();
    let note = NoteText::new(&id("C3N8TR"), "Set up staging")
        .at("2026-01-01T03:04:05+00:00")
        .body(format!("The guests of staging say {SECRET} for now."));
    home.add(&note);
    home.write(
        "log/anamnesis.log",
        format!("2026-01-01T00:00:00Z {SECRET}\n"),
    );
}

#[test]
fn a_text_is_masked_everywhere() {
    // DEL-01
    let (home, remote) = with_remote();
    leak(&home);
    run(&home, "sync").well();
    home.settle();
    for place in ["objects", "C3N8TR", "journal.db", "anamnesis.log"] {
        let holding = holding(&home.store());
        assert!(
            holding.iter().any(|name| name.contains(place)),
            "{place}: {holding:?}"
        );
    }
    let shown = purge_text(&home, &format!("{SECRET}\n"));
    snapshot!(shown.shown(), @r#"
    exit 0
    note     #C3N8TR fact "Set up staging" · 1 commit, the first just now, pushed
    file     log/anamnesis.log
    records  1 prompt, 1 tool event, 1 other record of one session
    Claude   ~/.claude/projects/-shop/5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20.jsonl
             its transcript: not ours, left alone
    done; 5 places masked, 0 left here.
    Now: 1. change the secret: it was on [ROOT]/remote.git for up to a moment
         2. remove Claude's transcript, or let it expire
    "#);
    assert_eq!(holding(&home.store()), [""; 0]);
    assert_eq!(holding(&remote), [""; 0]);
    assert!(
        home.read(&format!("memory/semantic/{}.md", id("C3N8TR")))
            .contains("say [REDACTED] for")
    );
    // Again there is nothing, and that is no success.
    snapshot!(purge_text(&home, SECRET).shown(), @"
    exit 1
    on stderr:
    anamnesis: nothing was purged: the text is in no file, record or commit of the store
    ");
    // When it is seen again it is masked.
    let payload = event(
        &home,
        "UserPromptSubmit",
        SESSION,
        json!({ "prompt_id": "p-2", "prompt": format!("again: {SECRET}, please") }),
    );
    hook_at(&home, "03:01:00", &payload).well();
    home.settle();
    assert_eq!(holding(&home.store()), [""; 0]);
    assert_eq!(run(&home, "doctor").stdout.matches('✗').count(), 0);
    run(&home, "sync").well();
}

/// Two machines with the leaked text, and their remote.
fn two_leaked() -> (TestHome, TestHome, PathBuf) {
    let (laptop, remote) = with_remote();
    leak(&laptop);
    run(&laptop, "sync").well();
    let desktop = home();
    join(&desktop, &remote);
    command_on_desktop(&desktop, "sync").run().well();
    (laptop, desktop, remote)
}

fn command_on_desktop<'a>(desktop: &'a TestHome, words: &str) -> Invocation<'a> {
    command(desktop, words).env("ANAMNESIS_MACHINE_ID", "desktop")
}

#[test]
fn another_machine_takes_it_over_and_brings_nothing_back() {
    // DEL-01
    let (laptop, desktop, remote) = two_leaked();
    let on_desktop = |words: &str| command_on_desktop(&desktop, words).run();
    on_desktop("write --stdin --title Own").well();
    on_desktop("sync").well();
    assert!(holding(&desktop.store()).contains(&"objects".to_owned()));
    let note = id("C3N8TR");
    let edited = home_note(&desktop, &note).replace("for now", "until May");
    desktop.write(&format!("memory/semantic/{note}.md"), edited);
    purge_text(&laptop, SECRET).well();
    on_desktop("sync").well();
    run(&laptop, "sync").well();
    on_desktop("sync").well();
    for home in [&laptop, &desktop] {
        home.settle();
        assert!(!home_note(home, &note).contains(SECRET));
        assert_eq!(
            home.notes()
                .iter()
                .filter(|path| path.starts_with("memory/"))
                .count(),
            2
        );
    }
    assert_eq!(holding(&remote), [""; 0]);
    // The one place left is what the person of that machine wrote over it meanwhile.
    on_desktop("list").well();
    let left = holding(&desktop.store());
    assert!(!left.contains(&"objects".to_owned()), "{left:?}");
    command_on_desktop(&desktop, "purge --find --yes")
        .input(SECRET)
        .run()
        .well();
    assert_eq!(holding(&desktop.store()), [""; 0]);
}

#[test]
fn purged_text_that_another_machine_brings_back_is_said_and_repeated() {
    // DEL-01
    let (laptop, desktop, _remote) = two_leaked();
    purge_text(&laptop, SECRET).well();
    let note = NoteText::new(&id("BR1NGS"), "Offline");
    desktop.add(&note.body(format!("The guests said {SECRET}.")));
    command_on_desktop(&desktop, "sync").run().well();
    let named = "another machine brought purged text back with #BR1NGS";
    let synced = run(&laptop, "sync").stderr;
    assert!(synced.contains(named), "{synced}");
    let status = run(&laptop, "status").well();
    assert!(status.contains(named), "{status}");
}

fn home_note(home: &TestHome, id: &str) -> String {
    home.read(&format!("memory/semantic/{id}.md"))
}

#[test]
fn a_note_is_purged_by_its_id() {
    // DEL-01, DEL-02
    let (home, remote) = with_remote();
    leak(&home);
    run(&home, "sync").well();
    snapshot!(run(&home, "purge C3N8TR").shown(), @r#"
    exit 2
    note     #C3N8TR fact "Set up staging" · 1 commit, the first just now, pushed
    on stderr:
    anamnesis: nothing was purged: cannot ask for confirmation (no terminal); pass --yes
    → anamnesis purge C3N8TR --yes
    "#);
    home.write("quarantine/git-20260101T020304Z/.git/HEAD", "");
    // A damaged journal has injected texts, compressed.
    home.write("quarantine/journal-20260101T020304Z.db", "");
    snapshot!(run(&home, "purge C3N8TR --yes").shown(), @r#"
    exit 0
    note     #C3N8TR fact "Set up staging" · 1 commit, the first just now, pushed
    purged #C3N8TR: a tombstone stays, the text is in no file and no commit here
    Now: 1. a damaged repository that was set aside may hold it: rm -rf ~/.anamnesis/quarantine/git-20260101T020304Z
         2. a damaged journal that was set aside may hold it: rm ~/.anamnesis/quarantine/journal-20260101T020304Z.db
    "#);
    let status = || run(&home, "status").well();
    let named = "rm ~/.anamnesis/quarantine/journal-";
    assert!(status().contains(named), "{}", status());
    let aside = home.store().join("quarantine/journal-20260101T020304Z.db");
    fs::remove_file(aside).unwrap();
    assert!(!status().contains(named), "{}", status());
    assert_eq!(holding(&remote), [""; 0]);
    let left = holding(&home.store());
    assert!(
        left.iter()
            .all(|name| name.starts_with("journal.db") || name == "anamnesis.log"),
        "{left:?}"
    );
    assert!(home_note(&home, &id("C3N8TR")).contains("state: forgotten"));
    let log = run(&home, "log").well();
    assert!(log.contains(" removed -1"), "{log}");
    let with_text = run(&home, "purge --find password").shown();
    assert!(
        with_text.contains("--find takes no text as an argument")
            && !with_text.contains("password"),
        "{with_text}"
    );
    snapshot!(run(&home, "purge ZZZZZZ --yes").shown(), @"
    exit 1
    on stderr:
    anamnesis: nothing was purged: no note #ZZZZZZ
    → anamnesis list --everywhere
    ");
    assert_eq!(run(&home, "restore C3N8TR").code, Some(1));
}

#[test]
fn an_injected_note_leaves_the_records_when_it_is_forgotten_or_purged() {
    // DEL-01
    let home = home();
    for (short, verb) in [
        ("F0RG0T", "forget F0RG0T"),
        ("PVRGE1", "purge PVRGE1 --yes"),
    ] {
        let body = format!("The staging greeting is {SECRET} until the autumn.");
        home.add(&NoteText::new(&id(short), "Staging").body(&body));
        run(&home, "sync").well();
        let session = SESSION.replace("5b0c", if short == "F0RG0T" { "5b0c" } else { "6b0c" });
        // Brings the index up to date.
        run(&home, "list").well();
        let started = event(
            &home,
            "SessionStart",
            &session,
            json!({ "source": "startup" }),
        );
        let injected = hook_at(&home, "03:00:00", &started).well();
        assert!(injected.contains(SECRET), "{injected:?}");
        home.settle();
        // The records have the text compressed.
        let recorded = || run(&home, &format!("why {session} --exact")).stdout;
        assert!(recorded().contains(SECRET));
        let done = run(&home, verb).well();
        assert!(!recorded().contains(SECRET), "{verb}: {done:?}");
    }
    // The first note is in the trash and in the history.
    let other = run(&home, "purge F0RG0T --yes").well();
    assert!(
        other.contains("the text is in no file and no commit here"),
        "{other:?}"
    );
    assert_eq!(holding(&home.store()), [""; 0]);
}

#[test]
fn an_injected_note_leaves_the_records_of_other_machines_with_their_next_sync() {
    // DEL-01
    let (laptop, remote) = with_remote();
    let desktop = home();
    join(&desktop, &remote);
    let on_desktop = |words: &str| command_on_desktop(&desktop, words).run();
    let body = |word: &str| format!("The {word} greeting is {SECRET} until the autumn.");
    for (short, word) in [
        ("F0RG0T", "first"),
        ("PVRGE1", "second"),
        ("KEPT01", "kept"),
    ] {
        let note = NoteText::new(&id(short), &format!("Staging {word}"));
        laptop.add(&note.body(body(word)));
    }
    let masked = NoteText::new(&id("MASKED"), "Staging masked");
    laptop.add(&masked.body("The masked greeting is p4le-Q8-plum until the autumn."));
    run(&laptop, "sync").well();
    command(&laptop, "write --stdin --title Undone")
        .input(body("undone"))
        .run()
        .well();
    let written = run(&laptop, "log --json").json()["commits"][0]["change"].clone();
    run(&laptop, "sync").well();
    on_desktop("sync").well();
    let payload = json!({ "source": "startup" });
    let started = event(&desktop, "SessionStart", SESSION, payload);
    hook_at(&desktop, "03:00:00", &started).well();
    desktop.settle();
    let recorded = || on_desktop(&format!("why {SESSION} --exact")).stdout;
    let words = ["first", "second", "undone", "kept", "masked"];
    for word in words {
        assert!(
            recorded().contains(&format!("The {word} greeting")),
            "{word}"
        );
    }
    let other = desktop.store().join("derived/index-1.db");
    fs::write(&other, SECRET).unwrap();
    run(&laptop, "forget F0RG0T").well();
    run(&laptop, "purge PVRGE1 --yes").well();
    purge_text(&laptop, "p4le-Q8-plum").well();
    run(&laptop, &format!("undo {}", written.as_str().unwrap())).well();
    run(&laptop, "sync").well();
    // The notes arrive, although their push fails.
    let lock = remote.join("refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    on_desktop("write --stdin --title Own").well();
    assert_eq!(on_desktop("sync").code, Some(1));
    for _ in 0..2 {
        let left = recorded();
        let is_left = |word: &&str| left.contains(&format!("The {word} greeting"));
        let left: Vec<_> = words.iter().copied().filter(is_left).collect();
        assert_eq!(left, ["kept"]);
        assert!(!other.exists());
        fs::remove_file(&lock).ok();
        on_desktop("sync").well();
    }
}

#[test]
fn a_text_that_stays_after_a_purge_of_a_note_is_named() {
    let home = home();
    let body = format!("The staging greeting is {SECRET} until the autumn.");
    home.add(&NoteText::new(&id("PVRGE1"), "Staging").body(&body));
    home.add(&NoteText::new(&id("PVRGE2"), "Also").body(&body));
    run(&home, "sync").well();
    home.write("own.txt", &body);
    let done = run(&home, "purge PVRGE1 --yes");
    assert_eq!(done.code, Some(1));
    for text in [
        "2 places here still have its text",
        "left     own.txt",
        "#PVRGE2 has the same text: anamnesis purge PVRGE2",
    ] {
        assert!(done.stdout.contains(text), "{text}: {done:?}");
    }
}

#[test]
fn former_stores_are_purged_and_backups_are_named_until_they_are_gone() {
    // DEL-01
    let (home, _remote) = with_remote();
    leak(&home);
    run(&home, "sync").well();
    let backup = home.root().join("b.tar");
    let path = backup.display().to_string();
    run(&home, &format!("backup {path}")).well();
    run(&home, &format!("backup --restore {path} --yes")).well();
    let former = PathBuf::from(format!("{}.before-restore-1", home.store().display()));
    assert!(holding(&former).contains(&"objects".to_owned()));
    let done = purge_text(&home, SECRET).well();
    assert!(
        done.contains("store    ~/.anamnesis.before-restore-1"),
        "{done:?}"
    );
    assert_eq!(holding(&former), [""; 0]);
    let named = "may hold it: rm ";
    assert!(done.contains(named), "{done:?}");
    assert!(run(&home, "status").well().contains(named));
    fs::remove_file(&backup).unwrap();
    assert!(!run(&home, "status").well().contains(named));
    let doctor = run(&home, "doctor");
    assert!(!doctor.stdout.contains("write-ahead log"), "{doctor:?}");
}

#[test]
fn a_linked_work_tree_is_searched_and_named_until_it_is_gone() {
    // DEL-01
    let (home, _remote) = with_remote();
    leak(&home);
    run(&home, "sync").well();
    let (memory, tree) = (home.store().join("memory"), home.root().join("beside"));
    let git = |words: &[&str]| git(&[&["-C", memory.to_str().unwrap()], words].concat());
    git(&[
        "worktree",
        "add",
        "--quiet",
        "--detach",
        tree.to_str().unwrap(),
    ]);
    // A folder that only the repository names is not one of its work trees.
    let foreign = home.root().join("foreign");
    fs::create_dir_all(&foreign).unwrap();
    fs::write(foreign.join("secret"), SECRET).unwrap();
    fs::write(foreign.join(".git"), "gitdir: /elsewhere\n").unwrap();
    let entry = memory.join(".git/worktrees/foreign");
    fs::create_dir_all(&entry).unwrap();
    fs::write(
        entry.join("gitdir"),
        foreign.join(".git").display().to_string(),
    )
    .unwrap();
    let done = purge_text(&home, SECRET);
    let said = format!("{}{}", done.stdout, done.stderr);
    let note = home.notes()[0].replace("memory/", "[ROOT]/beside/");
    let left = format!("left     {note}   not ours, left alone");
    let named = "memory worktree remove --force [ROOT]/beside";
    assert!(said.contains(&left) && said.contains(named), "{said}");
    assert!(!said.contains("foreign"), "{said}");
    assert!(run(&home, "status").well().contains(named));
    git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    assert!(!run(&home, "status").well().contains(named));
    purge_text(&home, SECRET).well();
    assert_eq!(holding(&home.store()), [""; 0]);
}

#[test]
fn what_cannot_be_purged_is_said() {
    // DEL-02
    let (home, remote) = with_remote();
    leak(&home);
    run(&home, "sync").well();
    let before = holding(&home.store());
    snapshot!(purge_text(&home, "abc").shown(), @"
    exit 2
    on stderr:
    anamnesis: the text is shorter than 4 characters
    → anamnesis purge --find   (type another part of the text)
    ");
    snapshot!(purge_text(&home, "updated_at").shown(), @"
    exit 1
    on stderr:
    anamnesis: cannot purge this text: it is part of the id or of a front-matter key of memory/semantic/01JZ0000000000000000C3N8TR.md; nothing was changed
    → ask for a longer part of the text
    ");
    snapshot!(purge_text(&home, "nowhere at all").shown(), @"
    exit 1
    on stderr:
    anamnesis: nothing was purged: the text is in no file, record or commit of the store
    ");
    snapshot!(command(&home, "purge --find").input(SECRET).run().shown(), @r#"
    exit 2
    note     #C3N8TR fact "Set up staging" · 1 commit, the first just now, pushed
    file     log/anamnesis.log
    records  1 prompt, 1 tool event, 1 other record of one session
    Claude   ~/.claude/projects/-shop/5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20.jsonl
             its transcript: not ours, left alone
    on stderr:
    anamnesis: nothing was purged: cannot ask for confirmation (no terminal); pass --yes
    → … | anamnesis purge --find --yes
    "#);
    snapshot!(command(&home, "purge --find --yes").by_agent().input(SECRET).run().shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can purge, which cannot be undone
    → run this command in a terminal of your own
    ");
    fs::rename(&remote, home.root().join("away")).unwrap();
    let after = holding(&home.store());
    assert!(before.iter().all(|name| after.contains(name)), "{after:?}");
    snapshot!(purge_text(&home, SECRET).shown(), @r#"
    exit 1
    note     #C3N8TR fact "Set up staging" · 1 commit, the first just now, pushed
    file     log/anamnesis.log
    records  1 prompt, 1 tool event, 1 other record of one session
    Claude   ~/.claude/projects/-shop/5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20.jsonl
             its transcript: not ours, left alone
    on stderr:
    anamnesis: files and records here are purged, git history and the remote are as before: [ROOT]/remote.git cannot be reached: there is no such folder now
    → the notes are safe here and go out with a later sync
      then: anamnesis purge --find
    "#);
    assert_eq!(holding(&home.store()), ["objects"]);
    let status = || run(&home, "status").well();
    let named = "git history and the remote are as before";
    assert!(status().contains(named), "{}", status());
    // Once more when the remote is back.
    fs::rename(home.root().join("away"), &remote).unwrap();
    purge_text(&home, SECRET).well();
    assert!(!status().contains(named), "{}", status());
    assert_eq!(holding(&home.store()), [""; 0]);
    assert_eq!(holding(&remote), [""; 0]);
}

#[test]
#[cfg(unix)]
fn the_text_is_asked_for_on_the_terminal() {
    let (home, remote) = with_remote();
    leak(&home);
    run(&home, "sync").well();
    let typed = |answer: &str| {
        let input = format!("{SECRET}\n{answer}\n");
        command(&home, "purge --find")
            .input(input)
            .run_on_a_terminal()
    };
    let refused = typed("n");
    assert_eq!(refused.code, Some(1));
    assert!(!refused.shown().contains(SECRET), "{}", refused.shown());
    assert!(holding(&home.store()).contains(&"objects".to_owned()));
    let done = typed("y");
    assert_eq!(done.code, Some(0));
    assert!(!done.shown().contains(SECRET), "{}", done.shown());
    assert_eq!(holding(&home.store()), [""; 0]);
    assert_eq!(holding(&remote), [""; 0]);
}

#[test]
#[cfg(unix)]
fn a_purge_that_is_killed_at_any_call_of_git_is_done_by_the_next() {
    let (home, remote) = with_remote();
    run(&home, "sync").well();
    home.settle();
    let real = String::from_utf8(which("git")).unwrap();
    let calls = home.root().join("calls");
    let end = home.root().join("end");
    // Kills its caller before or after the call of this number.
    script(
        &home.root().join("bin/git"),
        &format!(
            "#!/bin/sh\necho x >> {calls}\nread number when < {end}\n\
             is_last() {{ [ $(wc -l < {calls}) -eq $number ]; }}\n\
             if [ $when = before ] && is_last; then kill -9 $PPID; exit 1; fi\n\
             {real} \"$@\"\nstatus=$?\n\
             if [ $when = after ] && is_last; then kill -9 $PPID; fi\nexit $status\n",
            calls = calls.display(),
            end = end.display(),
            real = real.trim(),
        ),
    );
    let path = std::env::join_paths(
        std::iter::once(home.root().join("bin"))
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let mut kills = 0;
    for when in ["before", "after"] {
        for number in 1.. {
            let short = format!(
                "K{:0>2}{:0>3}",
                if when == "after" { "A" } else { "B" },
                number
            );
            home.add(&NoteText::new(&id(&short), "x").body(SECRET));
            run(&home, "sync").well();
            fs::write(&calls, "").unwrap();
            fs::write(&end, format!("{number} {when}\n")).unwrap();
            let killed = home
                .command(["purge", "--find", "--yes"])
                .env("PATH", &path)
                .input(SECRET)
                .run();
            let head = || git(&["--git-dir", remote.to_str().unwrap(), "rev-parse", "main"]);
            let rewritten = head();
            // Whatever runs first, a sync or the purge again, nothing comes back.
            if number % 2 == 0 {
                run(&home, "sync").well();
            }
            let again = purge_text(&home, SECRET);
            assert!(
                again.code == Some(0) || again.stderr.contains("nothing was purged"),
                "{when} {number}: {again:?}"
            );
            run(&home, "sync").well();
            assert_eq!(holding(&home.store()), [""; 0], "{when} {number}");
            assert_eq!(holding(&remote), [""; 0], "{when} {number}");
            if killed.code == Some(0) {
                assert_eq!(head(), rewritten);
                break;
            }
            kills += 1;
        }
    }
    assert!(kills > 10, "{kills}");
}

fn which(program: &str) -> Vec<u8> {
    let output = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    output.unwrap().stdout
}
