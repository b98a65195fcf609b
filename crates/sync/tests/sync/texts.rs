//! Notes that no program of ours writes, from a hand or from a stranger.

use std::fs;

use anamnesis_note::{id::NoteId, note::Scope};
use anamnesis_store::notes::NotePath;
use anamnesis_sync::WITHHELD;

use crate::fleet::{Fleet, Machine, note, run};

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// A note's file with another body.
fn with_body(body: &str) -> String {
    let mut text = note("sound", "elsewhere").render();
    text.truncate(text.rfind("---\n").unwrap() + 4);
    format!("{text}\n{body}\n")
}

const MARKED: &str = "<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> theirs";

/// Files that are no notes, or not such as they say.
fn unreadable() -> Vec<(&'static str, Vec<u8>)> {
    let sound = note("sound", "elsewhere").render();
    let mut bomb = "---\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = level - 1;
        let inner = vec![format!("*a{before}"); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
    }
    bomb.push_str("---\nbody\n");
    vec![
        ("an alias bomb", bomb.into_bytes()),
        (
            "keys twice",
            sound
                .replacen("title:", "title: one\ntitle:", 1)
                .into_bytes(),
        ),
        (
            "broken bytes",
            [sound.as_bytes(), b"\xff\xfe\x00broken"].concat(),
        ),
        ("no front matter", b"just text\n".to_vec()),
        ("nothing", Vec::new()),
        ("no end", b"---\ntitle: x\n".to_vec()),
        (
            "nested",
            [b"---\na: ".as_slice(), &[b'['; 50_000], b"\n---\n"].concat(),
        ),
        ("zeros", vec![0; 10_000]),
    ]
}

fn assert_in_step(fleet: &Fleet, machines: [&Machine; 2]) {
    for _ in 0..2 {
        for machine in machines {
            assert!(machine.sync().pushed);
        }
    }
    let tip = fleet.tip();
    for machine in machines {
        assert_eq!(machine.sync().pulled, 0);
        assert_eq!(machine.git(&["rev-parse", "main"]), tip);
        assert_eq!(machine.git(&["status", "--porcelain"]), "");
    }
    assert_eq!(fleet.tip(), tip);
    assert_eq!(machines[0].tree(), machines[1].tree());
}

#[test]
fn files_that_are_no_notes_arrive_and_stop_nothing() {
    // YAML-01, YAML-04, YAML-11
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    let stranger = fleet.stranger();
    let mut tree = stranger.put_note(stranger.tree(), "beside");
    let mut files = Vec::new();
    for (name, bytes) in unreadable() {
        let id = NoteId::of_session(name);
        tree = stranger.put_file(tree, &format!("semantic/{id}.md"), &bytes);
        files.push((id, bytes));
    }
    stranger.push(tree);
    desktop.write("own");
    assert_in_step(&fleet, [&desktop, &laptop]);
    for machine in [&laptop, &desktop, &fleet.machine("fresh")] {
        machine.sync();
        assert_eq!(machine.titles(), ["before", "beside", "own"]);
        for (id, bytes) in &files {
            let path = machine.notes.find(*id).unwrap();
            assert_eq!(&machine.notes.bytes(path).unwrap(), bytes);
        }
    }
}

#[test]
fn a_note_that_a_stranger_made_unreadable_is_kept_as_it_was() {
    // YAML-01, YAML-04, YAML-11, GIT-09
    let mut broken = unreadable();
    broken.push(("conflict markers", with_body(MARKED).into_bytes()));
    let titles: Vec<&str> = broken.iter().map(|(name, _)| *name).collect();
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = fleet.pair(&titles);
    let stranger = fleet.stranger();
    let mut tree = stranger.put_note(stranger.tree(), "beside");
    for (path, (_, bytes)) in paths.iter().zip(&broken) {
        tree = stranger.put_file(tree, &format!("semantic/{}.md", path.id), bytes);
    }
    stranger.push(tree);
    // One of them is edited here as well.
    desktop.edit(paths[0], |note| "edited".clone_into(&mut note.title));
    let synced = desktop.sync();
    assert_eq!(synced.problems.len(), broken.len(), "{:?}", synced.problems);
    assert_in_step(&fleet, [&desktop, &laptop]);
    for (path, name) in paths.iter().zip(&titles).skip(1) {
        assert_eq!(laptop.title(path.id).as_deref(), Some(*name));
    }
    assert_eq!(laptop.title(paths[0].id).as_deref(), Some("edited"));
    assert!(laptop.titles().contains(&"beside".to_owned()));
    // The bytes are kept on the machine that saw them.
    let kept: Vec<Vec<u8>> = fs::read_dir(desktop.home.quarantine())
        .unwrap()
        .map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    for (name, bytes) in &broken {
        assert!(kept.contains(bytes), "{name}");
    }
}

/// Writes a note's file as an editor does, outside of our locks.
fn by_hand(machine: &Machine, path: NotePath, bytes: impl AsRef<[u8]>) {
    fs::write(path.absolute(&machine.home), bytes).unwrap();
}

/// A note's file with another title.
fn retitled(machine: &Machine, path: NotePath, bytes: &[u8], title: &str) -> String {
    let old = format!("title: {}\n", machine.title(path.id).unwrap());
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(text.contains(&old), "{text}");
    text.replacen(&old, &format!("title: {title}\n"), 1)
}

/// Two machines. The laptop emptied the files of notes and sent that; the desktop restored them, and
/// the laptop has not seen it yet.
fn emptied(fleet: &Fleet, titles: &[&str]) -> (Machine, Machine, Vec<(NotePath, Vec<u8>)>) {
    let (laptop, desktop, paths) = fleet.pair(titles);
    let before = paths
        .into_iter()
        .map(|path| (path, laptop.notes.bytes(path).unwrap()));
    let before: Vec<_> = before.collect();
    for (path, _) in &before {
        by_hand(&laptop, *path, "");
    }
    laptop.sync();
    desktop.sync();
    (laptop, desktop, before)
}

#[test]
fn two_values_on_top_of_an_unreadable_version_are_both_kept() {
    let fleet = Fleet::new();
    let (laptop, desktop, before) = emptied(&fleet, &["old"]);
    let (path, bytes) = &before[0];
    let by_laptop = retitled(&desktop, *path, bytes, "of the laptop");
    desktop.edit(*path, |note| "of the desktop".clone_into(&mut note.title));
    desktop.sync();
    by_hand(&laptop, *path, by_laptop);
    assert_in_step(&fleet, [&laptop, &desktop]);
    assert_eq!(laptop.titles(), ["of the desktop", "of the laptop"]);
}

#[test]
fn a_note_that_was_emptied_does_not_fall_back_to_its_old_title() {
    let fleet = Fleet::new();
    // Half of them would get the new title by chance.
    let titles = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (laptop, desktop, before) = emptied(&fleet, &titles);
    for (path, bytes) in &before {
        let text = retitled(&desktop, *path, bytes, "new");
        by_hand(&laptop, *path, text);
    }
    assert_in_step(&fleet, [&laptop, &desktop]);
    assert_eq!(desktop.titles(), ["new"; 8]);
}

#[test]
fn conflict_markers_are_never_of_our_making() {
    // GIT-08, GIT-09
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = fleet.pair(&["both edit", "fields"]);
    for (machine, body) in [(&laptop, "One text."), (&desktop, "Another text.")] {
        machine.edit(paths[0], |note| body.clone_into(&mut note.body));
    }
    laptop.edit(paths[1], |note| {
        "title of laptop".clone_into(&mut note.title)
    });
    desktop.edit(paths[1], |note| note.tags = vec!["desktop".to_owned()]);
    assert_in_step(&fleet, [&laptop, &desktop]);
    let bodies: Vec<String> = laptop
        .notes
        .list_scope(Scope::Portable)
        .notes
        .iter()
        .map(|(path, _)| laptop.notes.read(*path).unwrap().note().body)
        .collect();
    for text in ["One text.", "Another text."] {
        assert!(bodies.iter().any(|body| body.contains(text)), "{bodies:#?}");
    }
    assert!(bodies.iter().all(|body| !body.contains("<<<<<<<")));
    let merged = laptop.notes.read(paths[1]).unwrap().note();
    assert_eq!(merged.title, "title of laptop");
    assert_eq!(merged.tags, ["desktop"]);
}

#[test]
fn a_new_note_with_conflict_markers_is_not_written_again() {
    // GIT-09
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    let stranger = fleet.stranger();
    let marked = with_body(MARKED);
    let tree = stranger.put_file(stranger.tree(), &format!("semantic/{ID}.md"), &marked);
    stranger.push(tree);
    desktop.write("own");
    assert_in_step(&fleet, [&desktop, &laptop]);
    let id: NoteId = ID.parse().unwrap();
    let path = laptop.notes.find(id).unwrap();
    assert_eq!(laptop.notes.bytes(path).unwrap(), marked.as_bytes());
    let by_us = laptop.git(&["log", "--format=%an", "--", &format!("semantic/{ID}.md")]);
    assert_eq!(by_us, "dev\n");
    // The file exists, but is no note until somebody resolves the conflict.
    assert!(laptop.notes.read(path).is_err());
}

#[test]
fn the_name_of_the_file_is_the_id() {
    // YAML-06, YAML-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = fleet.pair(&["first"]);
    let stranger = fleet.stranger();
    let first = laptop.notes.bytes(paths[0]).unwrap();
    let shadow = String::from_utf8(first).unwrap();
    let shadow = shadow
        .replace("title: first", "title: shadow")
        .replace("scope: portable", "scope: machine-local");
    assert!(shadow.contains(&paths[0].id.to_string()) && shadow.contains("machine-local"));
    stranger.push(stranger.put_file(stranger.tree(), &format!("semantic/{ID}.md"), shadow));
    assert_in_step(&fleet, [&desktop, &laptop]);
    assert_eq!(laptop.title(paths[0].id).as_deref(), Some("first"));
    assert_eq!(laptop.notes.list_scope(Scope::Portable).notes.len(), 2);
    // Its scope field does not change its scope.
    assert_eq!(laptop.notes.list_scope(Scope::MachineLocal).notes.len(), 0);
}

#[test]
fn commits_of_a_hand_are_read_and_merged() {
    // GIT-20, YAML-11, YAML-14
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = fleet.pair(&["one", "two"]);
    let file = laptop.folder().join(format!("semantic/{}.md", paths[0].id));
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replacen("title: one", "title: by hand\nx-later: 2 # kept", 1);
    fs::write(&file, text.replace('\n', "\r\n")).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    laptop.git(&["add", "--all"]);
    let person = ["-c", "user.name=p", "-c", "user.email=p@example.com"];
    laptop.git(&[&person[..], &["commit", "--quiet", "-m", "by hand"]].concat());
    desktop.edit(paths[0], |note| note.tags = vec!["tag".to_owned()]);
    desktop.write("own");
    assert_in_step(&fleet, [&laptop, &desktop]);
    assert_in_step(&fleet, [&desktop, &laptop]);
    let merged = desktop.notes.read(paths[0]).unwrap();
    assert_eq!(merged.note().title, "by hand");
    assert_eq!(merged.note().tags, ["tag"]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("x-later: 2"), "{text}");
    assert!(laptop.git(&["log", "--format=%s"]).contains("by hand"));
}

#[test]
fn a_credential_that_a_person_committed_is_in_no_push() {
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = fleet.pair(&["one", "two"]);
    let token = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
    let remote_has_token = || {
        let remote = fleet.remote();
        run(&["-C", &remote, "log", "--patch", "-m", "main"]).contains(token)
    };
    let by_hand = |body: &str| {
        laptop.edit(paths[0], |note| note.body = body.to_owned());
        laptop.git(&["add", "--all"]);
        let person = ["-c", "user.name=p", "-c", "user.email=p@example.com"];
        laptop.git(&[&person[..], &["commit", "--quiet", "-m", "by hand"]].concat());
    };
    for at in ["in the newest commit", "in an earlier commit only"] {
        let before = laptop.write("before");
        laptop.command("kept in the history");
        by_hand(token);
        let beside = laptop.write("beside");
        let theirs = desktop.write("theirs");
        desktop.sync();
        if at == "in the newest commit" {
            for _ in 0..2 {
                let synced = laptop.sync();
                assert_eq!(synced.problems.len(), 1, "{synced:?}");
                assert_eq!(synced.problems[0].reason, WITHHELD);
                let tip = fleet.tip();
                laptop.sync();
                assert_eq!(fleet.tip(), tip, "a sync of nothing makes a commit");
            }
            assert_eq!(laptop.state().waiting, 1);
            desktop.sync();
            for note in [before, beside] {
                assert!(desktop.title(note.id).is_some(), "{at}");
            }
            assert!(laptop.title(theirs.id).is_some(), "{at}");
        }
        assert!(!remote_has_token(), "{at}");
        by_hand(&format!("without it, {at}"));
        assert!(laptop.sync().problems.is_empty(), "{at}");
        assert_in_step(&fleet, [&laptop, &desktop]);
        let arrived = desktop.notes.read(paths[0]).unwrap().note().body;
        assert!(arrived.contains(at), "{arrived}");
        assert!(!remote_has_token(), "{at}");
    }
    // Commits before the first one with a withheld note are pushed unchanged.
    let log = ["-C", &fleet.remote(), "log", "--format=%s", "main"];
    assert!(run(&log).contains("anamnesis: write"), "{}", run(&log));
}

#[cfg(unix)]
#[test]
fn a_link_that_a_person_committed_leads_nowhere() {
    // PATH-02
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    fs::write(fleet.path("private.txt"), "private").unwrap();
    let link = laptop.folder().join(format!("semantic/{ID}.md"));
    std::os::unix::fs::symlink(fleet.path("private.txt"), &link).unwrap();
    laptop.git(&["add", "--all"]);
    let person = ["-c", "user.name=p", "-c", "user.email=p@example.com"];
    laptop.git(&[&person[..], &["commit", "--quiet", "-m", "by hand"]].concat());
    laptop.sync();
    assert_eq!(desktop.sync().problems.len(), 1);
    laptop.sync();
    let tip = fleet.tip();
    for machine in [&laptop, &desktop] {
        machine.sync();
        assert_eq!(machine.git(&["rev-parse", "main"]), tip);
        assert_eq!(machine.titles(), ["before"]);
    }
    assert!(!laptop.git(&["ls-tree", "-r", "main"]).contains("120000"));
    assert!(!desktop.folder().join(format!("semantic/{ID}.md")).exists());
}
