//! Remotes that are something else, other remotes than before, and clocks.

use std::fs;

use anamnesis_note::note::{NoteType, parse_timestamp};
use anamnesis_sync::{Held, HeldDecision, remote::Remote};
use chrono::{DateTime, TimeDelta};
use git2::{ObjectType, Signature, Time};

use crate::fleet::{Fleet, Machine, now, run};

/// A remote with these files, and a machine with a note that has not been there.
fn before(files: &[(&str, &str)]) -> (Fleet, Machine) {
    let fleet = Fleet::new();
    let stranger = fleet.stranger();
    let mut tree = stranger.tree();
    for (path, text) in files {
        tree = stranger.put_file(tree, path, text);
    }
    stranger.push(tree);
    let machine = fleet.machine("laptop");
    machine.write("own");
    (fleet, machine)
}

/// Neither side has anything of the other.
fn assert_refused(fleet: &Fleet, machine: &Machine, reason: &str) {
    let tip = fleet.tip();
    for refused in [
        machine.init().unwrap_err().to_string(),
        machine.refusal(),
        machine.refusal(),
    ] {
        assert_eq!(refused, reason);
    }
    assert_eq!(fleet.tip(), tip);
    assert_eq!(machine.titles(), ["own"]);
    assert_eq!(
        machine.git(&["ls-tree", "--name-only", "main"]),
        "semantic\n"
    );
}

#[test]
fn a_code_repository_is_refused() {
    // GIT-17
    let files = [
        ("src/main.rs", "fn main() {}"),
        ("Cargo.toml", "[package]"),
        ("README.md", "x"),
    ];
    let (fleet, machine) = before(&files);
    let reason = "the remote holds no notes of anamnesis but Cargo.toml and 1 more files; nothing was joined";
    assert_refused(&fleet, &machine, reason);
}

#[test]
fn a_name_in_a_refusal_is_one_line() {
    // GIT-17, GIT-18
    let (fleet, machine) = before(&[]);
    let stranger = fleet.stranger();
    let name = b"a\x1b]0;title\x07\nb".as_slice();
    stranger.push(stranger.put(stranger.tree(), &[name], 0o100_644, stranger.blob("x")));
    let refused = machine.refusal();
    assert!(!refused.contains(char::is_control), "{refused:?}");
}

#[test]
fn a_link_for_a_marker_marks_nothing() {
    // GIT-17
    let (fleet, machine) = before(&[("main.c", "int main;")]);
    let stranger = fleet.stranger();
    let target = stranger.blob("{\"format\": 1}");
    stranger.push(stranger.put(stranger.tree(), &[b".layout"], 0o120_000, target));
    let reason =
        "the remote holds no notes of anamnesis but main.c and 1 more files; nothing was joined";
    assert_refused(&fleet, &machine, reason);
}

#[test]
fn a_remote_without_main_is_refused() {
    // GIT-17
    let fleet = Fleet::new();
    let stranger = fleet.stranger();
    let tree = stranger.put_note(stranger.tree(), "there");
    stranger.commit(tree, None, "refs/heads/master");
    let machine = fleet.machine("laptop");
    machine.write("own");
    let reason = "the remote holds no notes of anamnesis but no branch \"main\" but master; nothing was joined";
    assert_eq!(machine.refusal(), reason);
    assert_eq!(
        run(&["-C", &fleet.remote(), "branch", "--list"]).trim(),
        "master"
    );
}

#[test]
fn a_newer_format_is_not_written_to() {
    // GIT-17
    let (fleet, machine) = before(&[(".layout", "{\"format\": 2}\n")]);
    let reason = "the notes have format 2 of a newer anamnesis; update anamnesis here, until then nothing is written";
    assert_refused(&fleet, &machine, reason);
}

#[test]
fn a_format_that_became_newer_is_not_written_to() {
    // GIT-17
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    let stranger = fleet.stranger();
    stranger.push(stranger.put_file(stranger.tree(), ".layout", "{\"format\": 7, \"more\": []}"));
    let tip = fleet.tip();
    let own = laptop.write("own");
    for machine in [&laptop, &desktop] {
        assert!(machine.refusal().starts_with("the notes have format 7 "));
    }
    assert_eq!(fleet.tip(), tip);
    assert!(laptop.notes.find(own.id).is_some());
}

#[test]
fn remotes_that_hold_nothing_else_are_ours() {
    // GIT-17
    let cases: [&[(&str, &str)]; 5] = [
        &[],
        &[
            ("README.md", "# notes"),
            ("LICENSE", "x"),
            (".gitignore", "*~"),
        ],
        &[(".layout", "{\"format\": 1}\n")],
        &[(".layout", "no format at all")],
        // A repository of the Python version with a file of the user.
        &[
            (
                "semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md",
                "---\ntitle: there\n---\nx\n",
            ),
            ("x.txt", "x"),
        ],
    ];
    for files in cases {
        let (fleet, machine) = before(files);
        assert!(machine.init().unwrap().has_remote);
        assert!(machine.sync().pushed, "{files:?}");
        let fresh = fleet.machine("fresh");
        fresh.sync();
        assert!(fresh.titles().contains(&"own".to_owned()));
        assert_eq!(fresh.tree(), machine.tree());
        let kept = run(&[
            "-C",
            &fleet.remote(),
            "ls-tree",
            "-r",
            "--name-only",
            "main",
        ]);
        for (path, _) in files {
            assert!(kept.lines().any(|line| line == *path), "{path}");
        }
    }
}

#[test]
fn a_marker_that_is_no_text_is_not_read_whole() {
    // GIT-10
    let (fleet, machine) = before(&[("README.md", "x")]);
    let stranger = fleet.stranger();
    let large = stranger.blob(
        [
            b"{\"format\": 2, \"x\": \"".as_slice(),
            &vec![b'x'; 20_000_000],
            b"\"}",
        ]
        .concat(),
    );
    stranger.push(stranger.put(stranger.tree(), &[b".layout"], 0o100_644, large));
    let synced = machine.sync();
    assert_eq!(
        synced.problems[0].reason,
        "over 16 MiB; not taken from the remote"
    );
    assert!(synced.pushed);
    let marker = machine.git(&["show", "main:.layout"]);
    assert_eq!(marker, "{\"format\": 1}\n");
}

#[test]
fn a_remote_that_became_a_code_repository_is_refused() {
    // GIT-17, GIT-06
    let fleet = Fleet::new();
    let (laptop, _, _) = fleet.pair(&["before"]);
    let stranger = fleet.stranger();
    let empty = stranger.folder(&[]);
    stranger.rewrite(stranger.put_file(empty, "main.c", "int main;"));
    let tip = fleet.tip();
    laptop.write("own");
    let refused = laptop.refusal();
    assert!(
        refused.contains("no notes of anamnesis but main.c;"),
        "{refused}"
    );
    assert_eq!(laptop.titles(), ["before", "own"]);
    assert_eq!(fleet.tip(), tip);
}

#[test]
fn another_remote_is_joined_and_not_taken_for_the_old_one() {
    // GIT-06
    let fleet = Fleet::new();
    let (mut laptop, _, _) = fleet.pair(&["mine"]);
    let other = fleet.bare("other.git");
    let mut third = fleet.machine("third");
    third.remote = Some(Remote::parse(&other, false).unwrap());
    third.write("there");
    third.sync();
    laptop.remote.clone_from(&third.remote);
    let synced = laptop.sync();
    assert_eq!(synced.held, None);
    assert!(synced.pushed);
    third.sync();
    for machine in [&laptop, &third] {
        assert_eq!(machine.titles(), ["mine", "there"]);
    }
    assert_eq!(laptop.tree(), third.tree());
}

#[test]
fn the_same_remote_under_another_address_has_everything() {
    let fleet = Fleet::new();
    let (mut laptop, _, _) = fleet.pair(&["mine"]);
    let address = format!("file://{}", fleet.remote());
    laptop.remote = Some(Remote::parse(&address, false).unwrap());
    let synced = laptop.sync();
    assert_eq!((synced.pulled, synced.pushed), (0, true));
    let state = laptop.state();
    assert_eq!((state.ahead, state.waiting, state.dirty), (0, 0, false));
}

#[test]
fn what_was_made_replaced_or_removed_since_the_last_commit_is_seen() {
    let fleet = Fleet::new();
    let (laptop, _, paths) = fleet.pair(&["mine", "other"]);
    let is_dirty = || laptop.state().dirty;
    assert!(!is_dirty());
    laptop.edit(paths[0], |note| note.title = "changed".to_owned());
    assert!(is_dirty());
    laptop.sync();
    assert!(!is_dirty());
    laptop.write("new");
    assert!(is_dirty());
    laptop.sync();
    laptop.remove(&paths[1..2]);
    assert!(is_dirty());
}

#[test]
fn an_empty_remote_in_place_of_the_old_one_gets_everything() {
    // GIT-06: the same address with a new repository, and another address.
    let fleet = Fleet::new();
    let (mut laptop, desktop, _) = fleet.pair(&["mine"]);
    fs::remove_dir_all(fleet.remote()).unwrap();
    fleet.bare("remote.git");
    for machine in [&laptop, &desktop] {
        let synced = machine.sync();
        assert_eq!((synced.held, synced.pushed), (None, true));
    }
    laptop.remote = Some(Remote::parse(&fleet.bare("other.git"), false).unwrap());
    assert!(laptop.sync().pushed);
    assert_eq!(
        run(&[
            "-C",
            fleet.path("other.git").to_str().unwrap(),
            "rev-parse",
            "main"
        ]),
        fleet.tip()
    );
}

#[test]
fn a_store_in_a_checkout_does_not_push_through_it() {
    // PATH-10
    let fleet = Fleet::new();
    let project = fleet.path("project");
    let path = project.to_str().unwrap();
    let outer = fleet.bare("project.git");
    run(&["init", "--quiet", "--initial-branch=main", path]);
    run(&["-C", path, "remote", "add", "origin", &outer]);
    fs::write(project.join("main.c"), "int main;").unwrap();
    run(&["-C", path, "add", "main.c"]);
    run(&[
        "-C",
        path,
        "-c",
        "user.name=p",
        "-c",
        "user.email=p",
        "commit",
        "--quiet",
        "-m",
        "code",
    ]);
    run(&["-C", path, "push", "--quiet", "origin", "main"]);
    let refs = |path: &str| run(&["-C", path, "for-each-ref"]);
    let (ours, theirs) = (refs(path), refs(&outer));
    let inner = fleet.machine_at("laptop", &project.join("store"));
    inner.write("mine");
    assert!(inner.sync().pushed);
    assert_eq!((refs(path), refs(&outer)), (ours.clone(), theirs.clone()));
    assert_eq!(run(&["-C", path, "diff", "--cached", "--name-only"]), "");
    // Without its own remote the store has none.
    let mut alone = fleet.machine_at("alone", &project.join("alone"));
    alone.remote = None;
    alone.write("mine");
    assert!(!alone.sync().pushed);
    assert_eq!((refs(path), refs(&outer)), (ours, theirs));
    let mut other = fleet.machine("other");
    other.sync();
    assert_eq!(other.titles(), ["mine"]);
    // The checkout itself is not used as a remote.
    other.remote = Some(Remote::parse(path, false).unwrap());
    assert!(
        other
            .refusal()
            .contains("no notes of anamnesis but main.c;")
    );
}

#[test]
fn a_clock_that_is_a_year_ahead_wins_nothing() {
    // GIT-16
    let fleet = Fleet::new();
    let (mut laptop, desktop, paths) = fleet.pair(&["first", "second", "third", "fourth"]);
    laptop.now += TimeDelta::days(365);
    // Edited there with the wrong clock, and here later.
    let future = anamnesis_note::note::timestamp(laptop.now);
    for path in &paths {
        laptop.edit(*path, |note| {
            note.title = format!("laptop's {}", note.title);
            note.updated_at.clone_from(&future);
        });
        desktop.edit(*path, |note| {
            note.title = format!("desktop's {}", note.title);
        });
    }
    laptop.sync();
    desktop.sync();
    laptop.sync();
    let titles = laptop.titles();
    assert_eq!(titles, desktop.titles());
    // Both titles of each note exist, one as a conflict sibling. The choice depends on the texts
    // only.
    for machine in ["laptop's", "desktop's"] {
        let count = titles
            .iter()
            .filter(|title| title.contains(machine))
            .count();
        assert!(count >= 4, "{titles:?}");
    }
    // A later edit on the other machine wins.
    for (number, path) in paths.iter().enumerate() {
        desktop.edit(*path, |note| note.title = format!("later {number}"));
    }
    desktop.sync();
    laptop.sync();
    for (number, path) in paths.iter().enumerate() {
        assert_eq!(laptop.title(path.id), Some(format!("later {number}")));
    }
    // No commit is older than its parents.
    let times = laptop.git(&["log", "--format=%ct", "--reverse", "--topo-order"]);
    let times: Vec<i64> = times.lines().map(|time| time.parse().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_time_in_the_future_is_held_back_to_the_commit() {
    // GIT-16
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = fleet.pair(&["first"]);
    laptop.edit(paths[0], |note| {
        "2099-01-01T00:00:00Z".clone_into(&mut note.updated_at)
    });
    desktop.edit(paths[0], |note| note.tags = vec!["tag".to_owned()]);
    laptop.sync();
    desktop.sync();
    laptop.sync();
    let merged = laptop.notes.read(paths[0]).unwrap().note();
    assert_eq!(merged.tags, ["tag"]);
    assert!(parse_timestamp(&merged.updated_at).unwrap() <= laptop.now);
}

#[test]
fn a_commit_from_the_end_of_time_breaks_nothing() {
    // GIT-16
    for seconds in [i64::MAX, 1 << 60, 1 << 40, -1] {
        let fleet = Fleet::new();
        let (laptop, desktop, _) = fleet.pair(&["before"]);
        let stranger = fleet.stranger();
        let tree = stranger.put_note(stranger.tree(), "beside");
        let parent = stranger.git.refname_to_id("refs/heads/main").unwrap();
        let raw = format!(
            "tree {tree}\nparent {parent}\nauthor d <d@e.f> {seconds} +0000\n\
             committer d <d@e.f> {seconds} +0000\n\nwork\n"
        );
        let commit = stranger
            .git
            .odb()
            .unwrap()
            .write(ObjectType::Commit, raw.as_bytes());
        stranger
            .git
            .reference("refs/heads/main", commit.unwrap(), true, "")
            .unwrap();
        desktop.write("own");
        for machine in [&desktop, &laptop, &desktop] {
            assert!(machine.sync().pushed, "{seconds}");
        }
        assert_eq!(laptop.titles(), ["before", "beside", "own"]);
        assert_eq!(laptop.tree(), desktop.tree());
        let git = git2::Repository::open(laptop.folder()).unwrap();
        let time = git
            .head()
            .unwrap()
            .peel_to_commit()
            .unwrap()
            .time()
            .seconds();
        let is_possible = DateTime::from_timestamp(time, 0).is_some();
        assert!(is_possible && time >= now().timestamp(), "{time}");
    }
}

#[test]
fn names_of_machines_are_words() {
    // GIT-18
    let (fleet, machine) = before(&[(
        "semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md",
        "---\ntitle: x\n---\n",
    )]);
    let stranger = fleet.stranger();
    let tree = stranger.git.find_tree(stranger.tree()).unwrap();
    for (number, email) in [
        "anamnesis@\u{1b}[2J",
        "anamnesis@desktop",
        "anamnesis@a b",
        "dev@example.com",
    ]
    .into_iter()
    .enumerate()
    {
        let time = Time::new(1_767_323_000 + i64::try_from(number).unwrap(), 0);
        let author = Signature::new("dev", email, &time).unwrap();
        let parent = stranger.git.find_reference("refs/heads/main").unwrap();
        let parent = parent.peel_to_commit().unwrap();
        stranger
            .git
            .commit(
                Some("refs/heads/main"),
                &author,
                &author,
                "x",
                &tree,
                &[&parent],
            )
            .unwrap();
    }
    assert_eq!(machine.init().unwrap().machines, ["desktop"]);
    // Our own name too.
    let mut odd = fleet.machine("odd");
    odd.name = "one\ntwo <x> \u{202e}";
    odd.write("odd");
    odd.sync();
    let by = odd.git(&["log", "-1", "--format=%ae|%s"]);
    assert!(
        by.starts_with("anamnesis@one-two--x---|anamnesis: sync from one-two"),
        "{by}"
    );
}

#[test]
fn a_held_remote_does_not_keep_another_from_being_joined() {
    // GIT-06
    let fleet = Fleet::new();
    let (mut laptop, _, _) = fleet.pair(&["mine"]);
    let stranger = fleet.stranger();
    stranger.rewrite(stranger.put_note(stranger.folder(&[]), "theirs"));
    assert_eq!(laptop.sync().held, Some(Held::Rewritten));
    laptop.remote = Some(Remote::parse(&fleet.bare("other.git"), false).unwrap());
    // A decision about the old remote does not apply to the new one.
    let synced = laptop.answer(HeldDecision::Accept);
    assert_eq!((synced.held, synced.pushed), (None, true));
    assert_eq!(laptop.titles(), ["mine"]);
    let moved = laptop.write("moves");
    laptop.sync();
    laptop.edit(moved, |note| note.note_type = NoteType::Episodic);
    assert!(laptop.sync().pushed);
}
