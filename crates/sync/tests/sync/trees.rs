//! Trees that no program of ours makes: what could harm a machine is dropped and reported, and the
//! notes beside it arrive.

use std::{collections::BTreeMap, fs};

use anamnesis_note::note::{NoteType, Scope};
use anamnesis_sync::Repository;
use git2::Oid;

use crate::fleet::{
    EXECUTABLE, FILE, FOLDER, Fleet, LINK, Machine, SUBMODULE, Stranger, note, now,
};

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// A remote whose tip has a hostile tree, and two machines that had joined before.
struct Siege {
    fleet: Fleet,
    laptop: Machine,
    desktop: Machine,
    /// The reasons for refused entries, by path.
    problems: BTreeMap<String, String>,
}

impl Siege {
    /// Lets a stranger change the tree, and checks what must hold for any change: the ordinary
    /// notes of the same commit arrive, nothing is written elsewhere, git stays usable on every
    /// machine, and all machines agree. The first machine that fetches the tree had joined before,
    /// or is new.
    fn lay(is_new: bool, change: impl Fn(&Stranger, Oid) -> Oid) -> Self {
        let fleet = Fleet::new();
        let (laptop, desktop, before) = fleet.pair(&["before"]);
        let stranger = fleet.stranger();
        let tree = stranger.put_note(stranger.tree(), "beside");
        stranger.push(change(&stranger, tree));
        fs::write(fleet.path("private.txt"), "private").unwrap();
        let fresh = is_new.then(|| fleet.machine("fresh"));
        let own = desktop.write("own");
        let machines: Vec<&Machine> = fresh.iter().chain([&laptop, &desktop]).collect();
        let settings = laptop.git_settings();
        let outside = fleet.outside();
        let mut problems = BTreeMap::new();
        for round in 0..2 {
            for machine in &machines {
                let synced = machine.sync();
                assert_eq!(synced.held, None, "{}", machine.name);
                assert!(synced.pushed, "{}, {round}: {synced:?}", machine.name);
                let found = synced.problems.into_iter();
                problems.extend(found.map(|problem| (problem.path, problem.reason)));
            }
        }
        for machine in &machines {
            assert_eq!(machine.tree(), laptop.tree(), "{}", machine.name);
            let tip = fleet.tip();
            assert_eq!(machine.git(&["rev-parse", "main"]), tip);
            let again = machine.sync();
            assert_eq!((again.pulled, again.changed.len()), (0, 0));
            assert_eq!(again.problems, [], "reported again, though it is gone");
            assert_eq!(fleet.tip(), tip, "a sync of nothing makes a commit");
            assert_eq!(machine.title(before[0].id).as_deref(), Some("before"));
            assert!(machine.titles().contains(&"beside".to_owned()));
            assert!(machine.notes.find(own.id).is_some());
            assert_eq!(machine.git_settings(), settings, "{}", machine.name);
            for path in machine.tree().keys() {
                let names: Vec<&str> = path.iter().map(|name| name.to_str().unwrap()).collect();
                let is_note =
                    matches!(names[..], [folder, _] if folder.parse::<NoteType>().is_ok());
                assert!(
                    is_note || path.ends_with(".layout"),
                    "written: {}",
                    path.display()
                );
            }
            let lock = machine.notes.lock().unwrap();
            let repository =
                Repository::open_or_create(&machine.home, &lock, machine.name, now()).unwrap();
            assert!(!repository.log(None, 100).unwrap().is_empty());
        }
        // Any git can check out our commits.
        for line in laptop.git(&["ls-tree", "-r", "-t", "main"]).lines() {
            assert!(
                line.starts_with("100644 blob") || line.starts_with("040000 tree"),
                "{line}"
            );
        }
        assert_eq!(fleet.outside(), outside);
        Self {
            fleet,
            laptop,
            desktop,
            problems,
        }
    }

    /// Runs it with machines that had joined before and with a new one.
    fn lay_both(change: impl Fn(&Stranger, Oid) -> Oid) -> [Self; 2] {
        [Self::lay(false, &change), Self::lay(true, &change)]
    }

    /// Returns the reports as `path: reason`, without the common suffix.
    fn report(&self) -> Vec<String> {
        let lines = self.problems.iter().map(|(path, reason)| {
            let path = path.strip_prefix("memory/").unwrap();
            let reason = reason.strip_suffix("; not taken from the remote").unwrap();
            format!("{path}: {reason}")
        });
        lines.collect()
    }
}

#[test]
fn links_are_not_taken() {
    // PATH-02, PATH-03, GIT-01
    for siege in Siege::lay_both(|stranger, tree| {
        let private = stranger.blob("../../../private.txt");
        let mut tree = tree;
        for path in [
            format!("semantic/{ID}.md"),
            ".layout".to_owned(),
            "episodic".to_owned(),
            ".usage/laptop/2026-11.jsonl".to_owned(),
            ".usage/other".to_owned(),
            "hooks".to_owned(),
            "deep/er/link".to_owned(),
        ] {
            let path: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
            tree = stranger.put(tree, &path, LINK, private);
        }
        tree
    }) {
        assert_eq!(
            siege.report(),
            [
                ".layout: a link",
                ".usage/laptop/2026-11.jsonl: a link",
                ".usage/other: a link",
                "deep/er/link: a link",
                "episodic: a link",
                "hooks: a link",
                &format!("semantic/{ID}.md: a link"),
            ]
        );
        assert!(siege.laptop.folder().join(".layout").is_file());
    }
}

#[test]
fn a_note_that_something_else_took_the_place_of_stays() {
    // PATH-02: it was not deleted.
    let siege = Siege::lay(false, |stranger, tree| {
        let found = stranger.git.find_tree(tree).unwrap();
        let folder = found.get_name("semantic").unwrap().id();
        let folder = stranger.git.find_tree(folder).unwrap();
        let mut changed = tree;
        for entry in &folder {
            let bytes = stranger
                .git
                .find_blob(entry.id())
                .unwrap()
                .content()
                .to_vec();
            if String::from_utf8(bytes).unwrap().contains("before") {
                let target = stranger.blob("/etc/passwd");
                changed = stranger.put(tree, &[b"semantic", entry.name_bytes()], LINK, target);
            }
        }
        assert_ne!(changed, tree);
        changed
    });
    let report = siege.report();
    assert!(report[0].ends_with(".md: a link"), "{report:?}");
}

#[test]
fn a_folder_that_a_link_took_the_place_of_stays() {
    // PATH-03, GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["one", "two"]);
    let stranger = fleet.stranger();
    let target = stranger.blob("/tmp");
    stranger.push(stranger.put(stranger.tree(), &[b"semantic"], LINK, target));
    for machine in [&laptop, &desktop, &laptop] {
        let synced = machine.sync();
        assert!(synced.pushed);
        assert_eq!(machine.titles(), ["one", "two"]);
    }
    assert_eq!(laptop.tree(), desktop.tree());
    assert!(!laptop.git(&["ls-tree", "main"]).contains("120000"));
}

#[test]
fn submodules_are_not_taken() {
    // GIT-02
    for siege in Siege::lay_both(|stranger, tree| {
        let commit = stranger.git.refname_to_id("refs/heads/main").unwrap();
        let tree = stranger.put(tree, &[b"sub"], SUBMODULE, commit);
        let name = format!("{ID}.md");
        let tree = stranger.put(tree, &[b"semantic", name.as_bytes()], SUBMODULE, commit);
        let modules =
            "[submodule \"sub\"]\n\tpath = sub\n\turl = ./.\n\tupdate = !touch /tmp/ran\n";
        stranger.put_file(tree, ".gitmodules", modules)
    }) {
        assert_eq!(
            siege.report(),
            [
                format!("semantic/{ID}.md: a submodule"),
                "sub: a submodule".to_owned()
            ]
        );
        // The file is kept in commits and never written to the folder.
        assert!(
            siege
                .desktop
                .git(&["ls-tree", "main"])
                .contains(".gitmodules")
        );
    }
}

#[test]
fn names_that_could_lead_elsewhere_are_not_taken() {
    // GIT-01, PATH-06
    const NAMES: [&[u8]; 22] = [
        b".git",
        b".GIT",
        b".Git ",
        b".git.",
        b"git~1",
        b"GIT~2",
        ".g\u{200c}it".as_bytes(),
        ".git\u{200d}".as_bytes(),
        "\u{feff}.git".as_bytes(),
        b".git::$INDEX_ALLOCATION",
        b".git:config",
        b"..",
        b".",
        b"..\\..\\private.txt",
        b"C:\\private.txt",
        b".git\\config",
        b"escape\x1b[2J",
        b"line\nbreak",
        b"tab\t",
        b"\xff\xfe",
        b"caf\xe9.md",
        "delete\u{7f}".as_bytes(),
    ];
    for siege in Siege::lay_both(|stranger, tree| {
        let mut tree = tree;
        let config = stranger.blob("[core]\n\tfsmonitor = touch /tmp/ran\n");
        let folder = stranger.folder(&[(FILE, b"config".to_vec(), config)]);
        for name in NAMES {
            tree = stranger.put(tree, &[name], FOLDER, folder);
            tree = stranger.put(tree, &[b"semantic", name], FILE, config);
            tree = stranger.put(tree, &[b"kept", b"below", name], FOLDER, folder);
        }
        tree
    }) {
        let report = siege.report();
        for (number, name) in NAMES.iter().enumerate() {
            let name = String::from_utf8_lossy(name);
            for folder in ["", "semantic/", "kept/below/"] {
                let line = format!("{folder}{name}: a name that ");
                assert!(
                    report.iter().any(|found| found.starts_with(&line)),
                    "{number}: {line:?}"
                );
            }
        }
        // Each entry is reported once, on one line.
        assert!(report.len() >= 3 * NAMES.len() - 2, "{}", report.len());
        let listed = siege.laptop.git(&["ls-tree", "-r", "main"]);
        assert!(
            !listed.contains("kept") && !listed.contains("config"),
            "{listed}"
        );
    }
}

#[test]
fn a_long_name_and_a_deep_folder_do_no_harm() {
    for siege in Siege::lay_both(|stranger, tree| {
        let long = [b'n'; 300];
        let longer = [b'm'; 5_000];
        let tree = stranger.put(tree, &[&long], FILE, stranger.blob("x"));
        let tree = stranger.put(tree, &[b"semantic", &longer], FILE, stranger.blob("x"));
        let deep = [b"d".as_slice(); 100];
        stranger.put(tree, &deep, FILE, stranger.blob("x"))
    }) {
        let report = siege.report();
        assert_eq!(report.len(), 1, "{report:?}");
        assert!(report[0].starts_with("d/d/") && report[0].ends_with(": too deep a folder"));
    }
}

#[test]
fn an_exponential_tree_is_left_in_time() {
    // GIT-10
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    let stranger = fleet.stranger();
    let mut bomb = stranger.folder(&[(FILE, b"leaf".to_vec(), stranger.blob("x"))]);
    for _ in 0..10 {
        let entries: Vec<_> = (b'0'..=b'9')
            .map(|name| (FOLDER, vec![name], bomb))
            .collect();
        bomb = stranger.folder(&entries);
    }
    let before = stranger.git.refname_to_id("refs/heads/main").unwrap();
    stranger.push(stranger.put(stranger.tree(), &[b"bomb"], FOLDER, bomb));
    let own = laptop.write("own");
    let refused = laptop.refusal();
    assert_eq!(
        refused,
        "the remote has more than 200000 files; nothing was joined"
    );
    assert_eq!(fleet.machine("fresh").refusal(), refused);
    // Local notes are safe, and the remote can be repaired.
    assert!(
        laptop
            .git(&["ls-tree", "-r", "main"])
            .contains(&own.id.to_string())
    );
    stranger
        .git
        .reference("refs/heads/main", before, true, "")
        .unwrap();
    assert!(laptop.sync().pushed);
    desktop.sync();
    assert_eq!(desktop.titles(), ["before", "own"]);
}

#[test]
fn too_many_files_are_refused() {
    // GIT-10
    let fleet = Fleet::new();
    let (laptop, ..) = fleet.pair(&["before"]);
    let stranger = fleet.stranger();
    let leaf = stranger.blob("x");
    let name = |number: u32| format!("{number:06}").into_bytes();
    let entries: Vec<_> = (0..200_001)
        .map(|number| (FILE, name(number), leaf))
        .collect();
    let wide = stranger.folder(&entries);
    stranger.push(stranger.put(stranger.tree(), &[b"wide"], FOLDER, wide));
    assert_eq!(
        laptop.refusal(),
        "the remote has more than 200000 files; nothing was joined"
    );
    assert_eq!(laptop.titles(), ["before"]);
}

#[test]
fn a_file_over_the_limit_is_not_taken() {
    // GIT-10
    for siege in Siege::lay_both(|stranger, tree| {
        let large = stranger.blob(vec![b'x'; 16 * 1024 * 1024 + 1]);
        let name = format!("{ID}.md");
        let tree = stranger.put(tree, &[b"semantic", name.as_bytes()], FILE, large);
        stranger.put(tree, &[b"other.bin"], FILE, large)
    }) {
        let expected = [
            "other.bin: over 16 MiB".to_owned(),
            format!("semantic/{ID}.md: over 16 MiB"),
        ];
        assert_eq!(siege.report(), expected);
    }
}

#[test]
fn one_id_in_two_folders_is_one_note() {
    // GIT-13, YAML-06
    for siege in Siege::lay_both(|stranger, tree| {
        let name = format!("{ID}.md");
        let mut tree = tree;
        for (folder, title) in [("semantic", "in semantic"), ("episodic", "in episodic")] {
            let text = note(title, "elsewhere").render();
            tree = stranger.put_file(tree, &format!("{folder}/{name}"), text);
        }
        tree
    }) {
        assert_eq!(
            siege.report(),
            [format!("semantic/{ID}.md: the same id as another file")]
        );
    }
}

#[test]
fn a_second_file_of_an_id_does_not_shadow_the_first() {
    // GIT-13, YAML-06
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = fleet.pair(&["first"]);
    let stranger = fleet.stranger();
    let mut tree = stranger.put_note(stranger.tree(), "beside");
    for folder in ["episodic", "procedural"] {
        let text = note("shadow", "elsewhere").render();
        tree = stranger.put_file(tree, &format!("{folder}/{}.md", paths[0].id), text);
    }
    stranger.push(tree);
    let synced = laptop.sync();
    assert_eq!(synced.problems.len(), 2, "{:?}", synced.problems);
    for machine in [&laptop, &desktop, &fleet.machine("fresh")] {
        machine.sync();
        assert_eq!(machine.notes.list_scope(Scope::Portable).notes.len(), 2);
        assert_eq!(machine.titles(), ["beside", "first"]);
        assert_eq!(machine.tree(), laptop.tree());
    }
}

#[test]
fn files_that_are_not_ours_are_carried_and_not_written() {
    // PATH-06, GIT-04
    let lower = format!("semantic/{}.md", ID.to_lowercase());
    let paths = [
        lower.as_str(),
        "semantic/notes.md",
        "semantic/sub/x.md",
        "unknown/01ARZ3NDEKTSV4RRFFQ69G5FAW.md",
        "README.md",
        ".gitattributes",
        ".gitignore",
        ".mailmap",
        "hooks/post-merge",
        "CON",
        ".usage/laptop/notes.txt",
    ];
    for siege in Siege::lay_both(|stranger, tree| {
        let text = "* filter=evil text eol=crlf\n";
        paths
            .iter()
            .fold(tree, |tree, path| stranger.put_file(tree, path, text))
    }) {
        assert_eq!(siege.report(), [""; 0]);
        siege.laptop.write("later");
        siege.laptop.sync();
        siege.desktop.sync();
        let names = siege.desktop.git(&["ls-tree", "-r", "--name-only", "main"]);
        for path in paths {
            assert!(names.lines().any(|name| name == path), "{path}: {names}");
        }
        // The user's git reports a clean work tree and deletes nothing.
        assert_eq!(siege.desktop.git(&["status", "--porcelain"]), "");
    }
}

#[test]
fn a_file_may_become_a_folder_and_a_folder_a_file() {
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    let stranger = fleet.stranger();
    let tree = stranger.put_file(stranger.tree(), "one", "file");
    let tree = stranger.put_file(tree, "two/below/it", "file");
    stranger.push(tree);
    laptop.sync();
    desktop.sync();
    // One machine has a commit of its own, so that a join is needed.
    desktop.write("own");
    let tree = stranger.put_file(stranger.tree(), "one/below/it", "file");
    let tree = stranger.put_file(stranger.without(tree, "two"), "two", "file");
    stranger.push(stranger.put_note(tree, "beside"));
    for machine in [&desktop, &laptop, &desktop] {
        assert!(machine.sync().pushed);
    }
    assert_eq!(laptop.titles(), ["before", "beside", "own"]);
    assert_eq!(laptop.tree(), desktop.tree());
    let names = laptop.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(
        names.contains("one/below/it\n") && names.ends_with("two\n"),
        "{names}"
    );
}

// Other systems have no such names.
#[cfg(target_os = "linux")]
#[test]
fn a_file_name_that_is_not_utf8_makes_no_machine_commit_again_and_again() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["before"]);
    let folder = laptop.folder();
    let below = folder.join(OsStr::from_bytes(b"fo\xfflder"));
    fs::create_dir(&below).unwrap();
    fs::write(below.join("file.txt"), "text").unwrap();
    fs::write(folder.join(OsStr::from_bytes(b"caf\xe9.txt")), "text").unwrap();
    laptop.git(&["add", "--all"]);
    let person = ["-c", "user.name=p", "-c", "user.email=p@example.com"];
    laptop.git(&[&person[..], &["commit", "--quiet", "-m", "by hand"]].concat());
    laptop.sync();
    assert_eq!(desktop.sync().problems.len(), 2);
    for machine in [&laptop, &desktop] {
        machine.sync();
    }
    let tip = fleet.tip();
    for machine in [&laptop, &desktop, &laptop, &desktop] {
        assert_eq!(machine.sync().problems, []);
        assert_eq!(fleet.tip(), tip, "{} commits again", machine.name);
    }
    // The person's files stay where they are.
    assert!(below.join("file.txt").exists());
    assert_eq!(desktop.titles(), ["before"]);
}

#[test]
fn a_run_bit_is_of_no_use() {
    // GIT-20
    for siege in Siege::lay_both(|stranger, tree| {
        let text = stranger.blob(note("can be run", "elsewhere").render());
        let name = format!("{ID}.md");
        stranger.put(tree, &[b"semantic", name.as_bytes()], EXECUTABLE, text)
    }) {
        assert_eq!(siege.report(), [""; 0]);
        let path = siege.laptop.folder().join(format!("semantic/{ID}.md"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        assert!(fs::read_to_string(&path).unwrap().contains("can be run"));
        drop(siege.fleet);
    }
}
