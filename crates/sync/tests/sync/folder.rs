//! The folder of the notes on one machine: another git's work in it, links, locks, and two at once.

use std::{fs, thread};

use anamnesis_note::note::{NoteType, Scope, State};
use anamnesis_store::{fs::home::Home, notes::NotePath};

use crate::fleet::{Fleet, Machine, run};

const PERSON: [&str; 4] = ["-c", "user.name=p", "-c", "user.email=p@example.com"];

#[test]
fn another_branch_is_not_worked_on() {
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    let place = laptop.home.relative(&laptop.folder());
    let hint = format!("is not on its branch main; run: git -C {place} switch main");
    for away in [
        ["switch", "--quiet", "--create=other"],
        ["switch", "--quiet", "--detach"],
    ] {
        laptop.git(&away);
        let head = laptop.git(&["for-each-ref"]);
        let refused = laptop.refusal();
        assert!(refused.contains(&hint), "{refused}");
        assert_eq!(laptop.git(&["for-each-ref"]), head);
        laptop.git(&["switch", "--quiet", "main"]);
    }
    laptop.write("own");
    laptop.sync();
    desktop.sync();
    assert_eq!(desktop.titles(), ["before", "own"]);
}

#[test]
fn a_rebase_in_progress_is_not_worked_on() {
    let fleet = Fleet::new();
    let (laptop, _, paths) = fleet.pair(&["before"]);
    let note = format!("semantic/{}.md", paths[0].id);
    // Two conflicting commits.
    for (branch, text) in [("other", "one"), ("main", "two")] {
        if branch == "other" {
            laptop.git(&["switch", "--quiet", "--create=other"]);
        } else {
            laptop.git(&["switch", "--quiet", "main"]);
        }
        fs::write(laptop.folder().join(&note), text).unwrap();
        laptop.git(&[&PERSON[..], &["commit", "--quiet", "-a", "-m", text]].concat());
    }
    let folder = laptop.folder();
    let rebase = [
        &["-C", folder.to_str().unwrap()],
        &PERSON[..],
        &["rebase", "other"],
    ]
    .concat();
    let output = std::process::Command::new("git")
        .args(rebase)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let refused = laptop.refusal();
    assert!(
        refused.contains("in the middle of another git's work; run: git -C "),
        "{refused}"
    );
    assert!(refused.ends_with(" rebase --abort"), "{refused}");
    laptop.git(&["rebase", "--abort"]);
    assert!(laptop.sync().pushed);
}

#[cfg(unix)]
#[test]
fn a_git_folder_that_is_a_link_or_a_file_is_not_used() {
    // GIT-01, PATH-03, PATH-10
    let fleet = Fleet::new();
    let foreign = fleet.path("foreign");
    run(&[
        "init",
        "--quiet",
        "--initial-branch=main",
        foreign.to_str().unwrap(),
    ]);
    let reason = "is a link or a file, not the folder of a repository; move it away";
    for name in ["link", "file"] {
        let machine = fleet.machine(name);
        machine.write("own");
        let place = machine.folder().join(".git");
        let target = foreign.join(".git");
        if name == "link" {
            std::os::unix::fs::symlink(&target, &place).unwrap();
        } else {
            fs::write(&place, format!("gitdir: {}\n", target.display())).unwrap();
        }
        let refused = machine.refusal();
        assert!(refused.ends_with(reason), "{refused}");
        assert_eq!(machine.titles(), ["own"]);
    }
    assert_eq!(run(&["-C", foreign.to_str().unwrap(), "for-each-ref"]), "");
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_a_folder_is_not_written_through() {
    // PATH-03
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["one", "two"]);
    let outside = fleet.path("outside");
    fs::create_dir(&outside).unwrap();
    let folder = laptop.folder().join("semantic");
    fs::rename(&folder, fleet.path("kept")).unwrap();
    std::os::unix::fs::symlink(&outside, &folder).unwrap();
    // A note behind a link is not deleted.
    assert!(laptop.sync().pushed);
    desktop.sync();
    assert_eq!(desktop.titles(), ["one", "two"]);
    desktop.write("three");
    desktop.sync();
    let refused = laptop.refusal();
    assert!(
        refused.contains("semantic") && refused.contains("a link"),
        "{refused}"
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    fs::remove_file(&folder).unwrap();
    fs::rename(fleet.path("kept"), &folder).unwrap();
    assert!(laptop.sync().pushed);
    assert_eq!(laptop.titles(), ["one", "three", "two"]);
    assert_eq!(laptop.tree(), desktop.tree());
}

#[cfg(unix)]
#[test]
fn an_entry_in_place_of_a_note_does_not_delete_it() {
    // PATH-02, PATH-05
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = fleet.pair(&["link", "folder", "pipe", "goes", "stays"]);
    let place = |number: usize| {
        laptop
            .folder()
            .join(format!("semantic/{}.md", paths[number].id))
    };
    for number in 0..4 {
        fs::remove_file(place(number)).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", place(0)).unwrap();
    fs::create_dir(place(1)).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(place(2))
        .status()
        .unwrap();
    assert!(made.success());
    laptop.write("own");
    for machine in [&laptop, &desktop, &laptop] {
        assert!(machine.sync().pushed);
    }
    assert_eq!(desktop.titles(), ["folder", "link", "own", "pipe", "stays"]);
    let listed = laptop.git(&["ls-tree", "-r", "main"]);
    assert!(!listed.contains("120000"));
}

#[test]
fn nothing_but_notes_the_marker_and_the_files_of_lines_is_tracked() {
    // GIT-15, YAML-07
    let fleet = Fleet::new();
    let (laptop, ..) = fleet.pair(&["before"]);
    let local = laptop.write("local");
    let lock = laptop.notes.lock().unwrap();
    let scope = Scope::MachineLocal;
    laptop.notes.set_scope(&lock, local, scope).unwrap();
    drop(lock);
    for path in [
        "config.json",
        "journal.db",
        "notes.txt",
        "semantic/x.md",
        ".env",
        "semantic/.x.md.tmp",
        ".usage/laptop/key",
    ] {
        let path = laptop.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "private").unwrap();
    }
    laptop.sync();
    let names = laptop.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(names.lines().count(), 2, "{names}");
    assert!(!names.contains(&local.id.to_string()));
    assert_eq!(laptop.notes.list_scope(Scope::MachineLocal).notes.len(), 1);
}

#[test]
fn locks_of_a_killed_run_are_removed_and_those_of_others_are_not() {
    // GIT-13, GIT-14
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    let git = laptop.folder().join(".git");
    let locks = [
        "index.lock",
        "HEAD.lock",
        "refs/heads/main.lock",
        "refs/anamnesis/incoming.lock",
    ];
    // Our own locks have a marker: that of a writer or that of a packing git.
    for (marker, title) in [
        ("anamnesis-writing", "own"),
        ("anamnesis-packing", "packed"),
    ] {
        for lock in locks {
            fs::create_dir_all(git.join(lock).parent().unwrap()).unwrap();
            fs::write(git.join(lock), "").unwrap();
        }
        fs::write(git.join(marker), "").unwrap();
        laptop.write(title);
        assert!(laptop.sync().pushed);
        for lock in locks {
            assert!(!git.join(lock).exists(), "{lock}");
        }
        assert!(!git.join(marker).exists());
    }
    // Only a fetch or push changes these references, and a killed one leaves no marker.
    for lock in [
        "refs/anamnesis/incoming.lock",
        "refs/remotes/origin/main.lock",
    ] {
        fs::write(git.join(lock), "").unwrap();
        laptop.write(lock);
        assert!(laptop.sync().pushed, "{lock}");
        assert!(!git.join(lock).exists(), "{lock}");
    }
    // Another git's lock: the branch does not move, and the lock stays.
    let second = laptop.write("second");
    fs::write(git.join("refs/heads/main.lock"), "").unwrap();
    let refused = laptop.refusal();
    assert!(
        refused.contains("another git") && refused.contains("main.lock"),
        "{refused}"
    );
    assert!(git.join("refs/heads/main.lock").exists());
    assert!(laptop.notes.find(second.id).is_some());
    // It is waited for.
    let lock = git.join("refs/heads/main.lock");
    let other = thread::spawn(move || fs::remove_file(lock).unwrap());
    assert!(laptop.sync().pushed);
    other.join().unwrap();
    laptop.write("third");
    // git's index is a cache, so its lock is not waited for.
    fs::write(git.join("index.lock"), "").unwrap();
    assert!(laptop.sync().pushed);
    assert!(git.join("index.lock").exists());
    fs::remove_file(git.join("index.lock")).unwrap();
    desktop.sync();
    assert_eq!(
        desktop.titles(),
        [
            "before",
            "own",
            "packed",
            "refs/anamnesis/incoming.lock",
            "refs/remotes/origin/main.lock",
            "second",
            "third"
        ]
    );
    laptop.sync();
    assert_eq!(laptop.git(&["status", "--porcelain"]), "");
}

#[test]
fn many_at_once_lose_nothing() {
    // GIT-13
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    let machines = [&laptop, &desktop];
    thread::scope(|scope| {
        for machine in machines {
            for number in 0..3 {
                scope.spawn(move || {
                    machine.command(&format!("{} {number}", machine.name));
                    machine.write(&format!("{} {number} later", machine.name));
                    machine.sync();
                });
            }
        }
    });
    for machine in [&laptop, &desktop, &laptop] {
        assert!(machine.sync().pushed);
    }
    let titles = laptop.titles();
    assert_eq!(titles.len(), 13, "{titles:?}");
    assert_eq!(laptop.tree(), desktop.tree());
    for machine in machines {
        let git = machine.folder().join(".git");
        assert!(!git.join("index.lock").exists() && !git.join("anamnesis-writing").exists());
        machine.git(&["fsck", "--strict"]);
        assert_eq!(machine.git(&["status", "--porcelain"]), "");
    }
}

#[test]
fn a_repository_with_reftables_is_told_how_to_convert() {
    let fleet = Fleet::new();
    let machine = fleet.machine("laptop");
    machine.write("own");
    let folder = machine.folder();
    let path = folder.to_str().unwrap();
    let made = std::process::Command::new("git")
        .args([
            "init",
            "--quiet",
            "--initial-branch=main",
            "--ref-format=reftable",
            path,
        ])
        .output()
        .unwrap();
    if !made.status.success() {
        // A git before 2.45 does not support reftables.
        assert!(String::from_utf8_lossy(&made.stderr).contains("ref-format"));
        return;
    }
    let refused = machine.refusal();
    assert!(
        refused.ends_with("; convert it with: git refs migrate --ref-format=files"),
        "{refused}"
    );
    machine.git(&["refs", "migrate", "--ref-format=files"]);
    assert!(machine.sync().pushed);
}

#[cfg(unix)]
#[test]
fn hooks_of_the_store_and_filters_of_the_remote_run_nothing() {
    // GIT-04, GIT-05
    use std::os::unix::fs::PermissionsExt;

    let fleet = Fleet::new();
    let (laptop, desktop, paths) = fleet.pair(&["before"]);
    let ran = fleet.path("ran");
    let hooks = laptop.folder().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "pre-push",
        "post-checkout",
        "post-merge",
        "post-index-change",
        "reference-transaction",
        "post-rewrite",
        "fsmonitor-watchman",
    ] {
        let path = hooks.join(hook);
        fs::write(
            &path,
            format!("#!/bin/sh\necho {hook} >>{}\n", ran.display()),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let stranger = fleet.stranger();
    let attributes =
        "* filter=evil diff=evil merge=evil text eol=crlf ident working-tree-encoding=UTF-16\n";
    let tree = stranger.put_file(stranger.tree(), ".gitattributes", attributes);
    let tree = stranger.put_file(tree, "semantic/.gitattributes", attributes);
    stranger.push(stranger.put_note(tree, "beside"));
    laptop.write("own");
    let before = laptop.notes.bytes(paths[0]).unwrap();
    for machine in [&laptop, &desktop, &laptop] {
        assert!(machine.sync().pushed);
    }
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    assert_eq!(laptop.titles(), ["before", "beside", "own"]);
    assert_eq!(desktop.notes.bytes(paths[0]).unwrap(), before);
    assert_eq!(laptop.tree(), desktop.tree());
}

#[test]
fn a_home_that_is_gone_and_made_anew_gets_everything_again() {
    // GIT-07: the folder is deleted with its repository.
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["one", "two"]);
    fs::remove_dir_all(laptop.folder()).unwrap();
    Home::new(laptop.home.root()).create().unwrap();
    assert!(laptop.sync().pushed);
    assert_eq!(laptop.titles(), ["one", "two"]);
    desktop.sync();
    assert_eq!(laptop.tree(), desktop.tree());
}

/// A laptop that syncs while a person runs a command in its folder; the desktop has sent an edit of
/// both notes. `{0}` and `{1}` in the command are the names of their files.
#[cfg(unix)]
fn changed_during_a_sync(command: &str) -> (Fleet, Machine, Machine, Vec<NotePath>) {
    let fleet = Fleet::new();
    let (laptop, desktop, mut paths) = fleet.pair(&["one", "two", "three"]);
    // Without the third note the project would be empty, which is held back.
    paths.truncate(2);
    for path in &paths {
        desktop.edit(*path, |note| "Edited elsewhere.".clone_into(&mut note.body));
    }
    desktop.sync();
    let files: Vec<String> = paths.iter().map(|path| format!("{}.md", path.id)).collect();
    let command = command.replace("{0}", &files[0]).replace("{1}", &files[1]);
    let folder = laptop.folder();
    laptop.sync_during(&format!("(cd {} && {command})", folder.display()));
    laptop.sync();
    desktop.sync();
    (fleet, laptop, desktop, paths)
}

/// Returns the bodies of the proposals on a machine.
#[cfg(unix)]
fn proposals(machine: &Machine) -> Vec<String> {
    let notes = machine.notes.list_scope(Scope::MachineLocal).notes;
    let notes = notes.into_iter().map(|(path, _)| {
        let note = machine.notes.read(path).unwrap().note();
        assert_eq!(note.state, State::Proposed);
        note.body
    });
    notes.collect()
}

#[cfg(unix)]
#[test]
fn a_file_removed_or_renamed_by_hand_during_a_fetch_keeps_the_other_machines_edit() {
    let command = "rm semantic/{0}; mv semantic/{1} semantic/renamed.md";
    let (_fleet, laptop, desktop, paths) = changed_during_a_sync(command);
    for path in &paths {
        assert_eq!(desktop.notes.find(path.id), None);
    }
    assert_eq!(
        proposals(&laptop),
        ["Edited elsewhere.", "Edited elsewhere."]
    );
}

#[cfg(unix)]
#[test]
fn a_file_moved_to_another_folder_by_hand_during_a_fetch_keeps_the_other_machines_edit() {
    let command = "mkdir -p procedural; mv semantic/{0} procedural/{0}";
    let (_fleet, laptop, desktop, paths) = changed_during_a_sync(command);
    for machine in [&laptop, &desktop] {
        let path = machine.notes.find(paths[0].id).unwrap();
        assert_eq!(path.folder, NoteType::Procedural);
        assert_eq!(
            machine.notes.read(path).unwrap().note().body,
            "Edited elsewhere."
        );
    }
    assert_eq!(proposals(&laptop), [""; 0]);
}
