//! A repository that a power cut, a disk or a hand has damaged: the next sync goes on without it.

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use anamnesis_note::{
    id::NoteId,
    note::{Scope, State},
};
use anamnesis_store::notes::NotePath;
use anamnesis_sync::{Act, Repository, set_aside_repositories};

use crate::fleet::{Fleet, Machine, now};

const THREADS: usize = 4;
const GARBAGE: &[u8] = b"\x00\xff not git's \x1b[31m\n";
const NOWHERE: &[u8] = b"0123456789abcdef0123456789abcdef01234567\n";

/// One shape of damage.
struct Shape {
    name: &'static str,
    /// Whether git has packed objects and references.
    is_packed: bool,
    /// Whether no merge base is left.
    is_alone: bool,
    damage: fn(&Damaged),
}

/// The repository that is damaged.
struct Damaged {
    git: PathBuf,
    /// Objects of the last commit.
    last: Vec<PathBuf>,
}

impl Damaged {
    fn new(machine: &Machine, last: Vec<PathBuf>) -> Self {
        let git = machine.folder().join(".git");
        Self { git, last }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.git.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        overwrite(&path, bytes);
    }

    fn remove(&self, name: &str) {
        let path = self.git.join(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    /// Makes a lock file look older than the power cut.
    fn lock(&self, name: &str) {
        self.write(name, b"");
        let file = fs::File::options().write(true).open(self.git.join(name));
        let old = SystemTime::now() - Duration::from_secs(48 * 3_600);
        file.unwrap().set_modified(old).unwrap();
    }

    /// Returns the loose file of a revision's object.
    fn object(&self, revision: &str) -> PathBuf {
        let repository = git2::Repository::open(&self.git).unwrap();
        let oid = repository
            .revparse_single(revision)
            .unwrap()
            .id()
            .to_string();
        self.git.join("objects").join(&oid[..2]).join(&oid[2..])
    }

    /// Returns the blob of the note that a commit changed.
    fn blob(&self, revision: &str) -> PathBuf {
        let repository = git2::Repository::open(&self.git).unwrap();
        let commit = repository.revparse_single(revision).unwrap();
        let commit = commit.peel_to_commit().unwrap();
        let old = commit.parent(0).unwrap().tree().unwrap();
        let diff = repository
            .diff_tree_to_tree(Some(&old), Some(&commit.tree().unwrap()), None)
            .unwrap();
        let oid = diff.deltas().next().unwrap().new_file().id().to_string();
        self.git.join("objects").join(&oid[..2]).join(&oid[2..])
    }

    /// Changes a byte of the commit that was joined last, in its pack; without a remote of the last one.
    /// A byte anywhere may be of an object that the join does not need.
    fn flip_joined(&self) {
        let repository = git2::Repository::open(&self.git).unwrap();
        let joined = repository.refname_to_id("refs/anamnesis/joined");
        let oid = joined.unwrap_or_else(|_| repository.refname_to_id("HEAD").unwrap());
        drop(repository);
        let mut flipped = 0;
        for pack in self.packs("pack") {
            let listed = std::process::Command::new("git")
                .args(["verify-pack", "-v"])
                .arg(pack.with_extension("idx"))
                .output()
                .unwrap();
            let listed = String::from_utf8(listed.stdout).unwrap();
            let line = listed
                .lines()
                .find(|line| line.starts_with(&oid.to_string()));
            let Some(line) = line else { continue };
            // The id, type, size, size in the pack and offset.
            let numbers = line.split_whitespace().skip(3);
            let numbers: Vec<usize> = numbers.map(|it| it.parse().unwrap()).take(2).collect();
            let mut bytes = fs::read(&pack).unwrap();
            bytes[numbers[1] + numbers[0] / 2] ^= 0x55;
            overwrite(&pack, &bytes);
            flipped += 1;
        }
        assert!(flipped > 0, "{oid} is in no pack");
    }

    fn packs(&self, ending: &str) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.git.join("objects/pack")).unwrap();
        let paths = folder.map(|entry| entry.unwrap().path());
        let packs: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|found| found == ending))
            .collect();
        assert!(!packs.is_empty());
        packs
    }
}

/// Replaces the content of a file, which git makes read-only.
fn overwrite(path: &Path, bytes: &[u8]) {
    if path.exists() {
        fs::remove_file(path).unwrap();
    }
    fs::write(path, bytes).unwrap();
}

/// Changes a byte in the middle of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    overwrite(path, &bytes);
}

fn cut(path: &Path) {
    let bytes = fs::read(path).unwrap();
    overwrite(path, &bytes[..bytes.len() / 2]);
}

/// Every shape that is tried.
fn shapes() -> Vec<Shape> {
    let loose = |name, damage| Shape {
        name,
        is_packed: false,
        is_alone: false,
        damage,
    };
    let packed = |name, damage| Shape {
        is_packed: true,
        ..loose(name, damage)
    };
    let alone = |name, damage| Shape {
        is_alone: true,
        ..loose(name, damage)
    };
    let packed_alone = |name, damage| Shape {
        is_alone: true,
        ..packed(name, damage)
    };
    vec![
        loose("HEAD is missing", |at| at.remove("HEAD")),
        loose("HEAD is empty", |at| at.write("HEAD", b"")),
        loose("HEAD is garbage", |at| at.write("HEAD", GARBAGE)),
        loose("main is missing", |at| at.remove("refs/heads/main")),
        loose("main is empty", |at| at.write("refs/heads/main", b"")),
        loose("main is garbage", |at| at.write("refs/heads/main", GARBAGE)),
        loose("main is zeros", |at| at.write("refs/heads/main", &[0; 41])),
        loose("main names no object", |at| {
            at.write("refs/heads/main", NOWHERE);
        }),
        loose("main names a file", |at| {
            let blob = at.blob("main");
            let name = blob.file_name().unwrap().to_str().unwrap();
            let folder = blob.parent().unwrap().file_name().unwrap();
            let oid = format!("{}{name}\n", folder.to_str().unwrap());
            at.write("refs/heads/main", oid.as_bytes());
        }),
        loose("main and its log are missing", |at| {
            at.remove("refs/heads/main");
            at.remove("logs");
        }),
        loose("main is a folder", |at| {
            at.remove("refs/heads/main");
            at.write("refs/heads/main/x", b"");
        }),
        loose("the commit is missing", |at| {
            fs::remove_file(at.object("main")).unwrap();
        }),
        loose("the commit is empty", |at| {
            overwrite(&at.object("main"), b"")
        }),
        loose("the commit is garbage", |at| {
            overwrite(&at.object("main"), GARBAGE);
        }),
        loose("the commit is cut", |at| cut(&at.object("main"))),
        loose("the tree is missing", |at| {
            fs::remove_file(at.object("main^{tree}")).unwrap();
        }),
        loose("the tree is empty", |at| {
            overwrite(&at.object("main^{tree}"), b"");
        }),
        loose("the folder is empty", |at| {
            overwrite(&at.object("main:semantic"), b"");
        }),
        loose("the folder is another object", |at| {
            let other = fs::read(at.object("main")).unwrap();
            overwrite(&at.object("main:semantic"), &other);
        }),
        loose("a file is missing", |at| {
            fs::remove_file(at.blob("main")).unwrap();
        }),
        loose("a file is empty", |at| overwrite(&at.blob("main"), b"")),
        loose("a file has one wrong byte", |at| flip(&at.blob("main"))),
        loose("an old commit is empty", |at| {
            overwrite(&at.object("main~1"), b"");
        }),
        loose("an old file is missing", |at| {
            fs::remove_file(at.blob("main~1")).unwrap();
        }),
        loose("nothing of the last commit reached the disk", |at| {
            for path in &at.last {
                overwrite(path, b"");
            }
        }),
        alone("the last commit and all references are empty", |at| {
            for path in &at.last {
                overwrite(path, b"");
            }
            for name in [
                "refs/heads/main",
                "refs/anamnesis/joined",
                "refs/anamnesis/incoming",
                "refs/remotes/origin/main",
            ] {
                if at.git.join(name).exists() {
                    at.write(name, b"");
                }
            }
        }),
        packed_alone("a pack has a wrong byte", Damaged::flip_joined),
        packed_alone("a pack is cut", |at| {
            at.packs("pack").iter().for_each(|path| cut(path));
        }),
        packed_alone("a pack is missing", |at| {
            for path in at.packs("pack") {
                fs::remove_file(path).unwrap();
            }
        }),
        packed_alone("a pack's index is missing", |at| {
            for path in at.packs("idx") {
                fs::remove_file(path).unwrap();
            }
        }),
        packed_alone("a pack's index is garbage", |at| {
            for path in at.packs("idx") {
                overwrite(&path, GARBAGE);
            }
        }),
        packed_alone("all packs are gone", |at| at.remove("objects/pack")),
        packed_alone("packed-refs is missing", |at| at.remove("packed-refs")),
        packed_alone("packed-refs is empty", |at| at.write("packed-refs", b"")),
        packed_alone("packed-refs is garbage", |at| {
            at.write("packed-refs", GARBAGE);
        }),
        packed_alone("packed-refs is cut", |at| cut(&at.git.join("packed-refs"))),
        loose("git's index is empty", |at| at.write("index", b"")),
        loose("git's index is garbage", |at| at.write("index", GARBAGE)),
        loose("git's index is cut", |at| cut(&at.git.join("index"))),
        loose("config is missing", |at| at.remove("config")),
        loose("config is empty", |at| at.write("config", b"")),
        loose("config is garbage", |at| at.write("config", GARBAGE)),
        loose("config is zeros", |at| at.write("config", &[0; 200])),
        alone("objects is missing", |at| at.remove("objects")),
        packed("refs is missing", |at| at.remove("refs")),
        alone("refs and logs are missing", |at| {
            at.remove("refs");
            at.remove("logs");
        }),
        loose("logs is missing", |at| at.remove("logs")),
        loose("the logs are garbage", |at| {
            at.write("logs/HEAD", GARBAGE);
            at.write("logs/refs/heads/main", GARBAGE);
        }),
        loose("locks of before the power cut", |at| {
            for name in [
                "index.lock",
                "HEAD.lock",
                "config.lock",
                "packed-refs.lock",
                "refs/heads/main.lock",
                "refs/anamnesis/joined.lock",
                "refs/anamnesis/incoming.lock",
            ] {
                at.lock(name);
            }
        }),
        alone("git's folder is empty", |at| {
            fs::remove_dir_all(&at.git).unwrap();
            fs::create_dir(&at.git).unwrap();
        }),
        alone("git's folder is an empty file", |at| {
            fs::remove_dir_all(&at.git).unwrap();
            fs::write(&at.git, b"").unwrap();
        }),
        alone("git's folder has no HEAD and no references", |at| {
            at.remove("HEAD");
            at.remove("refs");
        }),
        alone("git's folder is gone", |at| {
            fs::remove_dir_all(&at.git).unwrap();
        }),
        loose("shallow is garbage", |at| at.write("shallow", GARBAGE)),
        loose("shallow names no object", |at| at.write("shallow", NOWHERE)),
        loose("an alternate is nowhere", |at| {
            at.write("objects/info/alternates", b"/nowhere/objects\n");
        }),
        loose("what was in an alternate is nowhere", |at| {
            fs::remove_file(at.object("main~1")).unwrap();
            at.write("objects/info/alternates", b"/nowhere/objects\n");
        }),
        loose("FETCH_HEAD is garbage", |at| {
            at.write("FETCH_HEAD", GARBAGE)
        }),
        loose("ORIG_HEAD is garbage", |at| at.write("ORIG_HEAD", GARBAGE)),
        loose("joined is garbage", |at| {
            at.write("refs/anamnesis/joined", GARBAGE);
        }),
        loose("joined is empty", |at| {
            at.write("refs/anamnesis/joined", b"")
        }),
        loose("joined names no object", |at| {
            at.write("refs/anamnesis/joined", NOWHERE);
        }),
        loose("incoming is garbage", |at| {
            at.write("refs/anamnesis/incoming", GARBAGE);
        }),
        loose("incoming names no object", |at| {
            at.write("refs/anamnesis/incoming", NOWHERE);
        }),
        loose("applying is garbage", |at| {
            at.write("refs/anamnesis/applying", GARBAGE);
        }),
        loose("applying names no object", |at| {
            at.write("refs/anamnesis/applying", NOWHERE);
        }),
        loose("the tracked branch is garbage", |at| {
            at.write("refs/remotes/origin/main", GARBAGE);
        }),
        loose("a tag is garbage", |at| at.write("refs/tags/mine", GARBAGE)),
        loose("a merge was never finished", |at| {
            at.write("MERGE_HEAD", NOWHERE);
            at.write("MERGE_MSG", GARBAGE);
        }),
        loose("commondir is garbage", |at| at.write("commondir", GARBAGE)),
    ]
}

/// The files of git's folder.
fn files(git: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut pending = vec![git.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    found
}

/// Commits a note as a command does, and tells what that wrote in git's folder.
fn last_commit(machine: &Machine, title: &str) -> Vec<PathBuf> {
    let git = machine.folder().join(".git");
    let before = files(&git);
    machine.command(title);
    let mut written: Vec<_> = files(&git).difference(&before).cloned().collect();
    let changed = [
        "refs/heads/main",
        "logs/HEAD",
        "logs/refs/heads/main",
        "index",
    ];
    written.extend(changed.iter().map(|name| git.join(name)));
    written.sort();
    written.dedup();
    written.retain(|path| path.exists());
    written
}

/// Every note of a machine with its bytes.
fn bytes(machine: &Machine, titles: &[&str]) -> Vec<Vec<u8>> {
    let notes = machine.notes.list_scope(Scope::Portable).notes;
    let found = notes.iter().filter_map(|(path, _)| {
        let stored = machine.notes.read(*path).ok()?;
        titles
            .contains(&stored.note().title.as_str())
            .then(|| machine.notes.bytes(*path).unwrap())
    });
    let found: Vec<_> = found.collect();
    found
}

fn forget(machine: &Machine, path: NotePath) {
    let lock = machine.notes.lock().unwrap();
    machine.notes.forget(&lock, path, now()).unwrap();
}

fn is_forgotten(machine: &Machine, id: NoteId) -> bool {
    let path = machine.notes.find(id).unwrap();
    machine.notes.read(path).unwrap().note().state == State::Forgotten
}

/// Runs a check of each kind of damage and reports all failures together.
fn each(shapes: &[Shape], check: impl Fn(&Shape) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || {
        while let Some(shape) = shapes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let run = AssertUnwindSafe(|| check(shape));
            let told = catch_unwind(run).unwrap_or_else(|_| Err("panicked".to_owned()));
            if let Err(told) = told {
                failed
                    .lock()
                    .unwrap()
                    .push(format!("{}: {told}", shape.name));
            }
        }
    };
    // The test mostly waits for git.
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(
        failed.is_empty(),
        "{} of {} shapes:\n{}",
        failed.len(),
        shapes.len(),
        failed.join("\n")
    );
}

/// Syncs twice at most.
fn sync_again(machine: &Machine) -> Result<(), String> {
    let first = machine.try_sync();
    let second = match &first {
        Ok(synced) if synced.held.is_none() => return Ok(()),
        _ => machine.try_sync(),
    };
    match second {
        Ok(synced) if synced.held.is_none() => Ok(()),
        told => Err(format!("{first:?}; then {told:?}")),
    }
}

fn expect(what: &str, is_so: bool) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(what.to_owned()) }
}

/// Two machines have the same notes; both have news, then the laptop's repository is damaged.
fn with_a_remote(shape: &Shape) -> Result<(), String> {
    let fleet = Fleet::new();
    let titles = ["kept", "edited here", "edited there", "forgotten there"];
    let (laptop, desktop, paths) = fleet.pair(&[&titles[..], &["deleted there"]].concat());
    let edit = |machine: &Machine, path, body: &str| {
        machine.edit(path, |note| body.clone_into(&mut note.body));
    };
    forget(&desktop, paths[3]);
    desktop.remove(&paths[4..]);
    desktop.sync();
    laptop.sync();
    edit(&desktop, paths[2], "Of the desktop.");
    desktop.write("new there");
    desktop.sync();
    laptop.command("committed");
    edit(&laptop, paths[1], "Of the laptop.");
    if shape.is_packed {
        laptop.git(&["gc", "--quiet"]);
    }
    let last = last_commit(&laptop, "last");
    if shape.is_packed {
        laptop.git(&["gc", "--quiet"]);
    }
    laptop.write("new here");
    let unchanged = ["kept", "committed", "last", "new here"];
    let before = bytes(&laptop, &unchanged);
    (shape.damage)(&Damaged::new(&laptop, last));
    sync_again(&laptop)?;
    expect(
        "the notes are as before",
        bytes(&laptop, &unchanged) == before,
    )?;
    sync_again(&desktop)?;
    sync_again(&laptop)?;
    let mut expected = vec![
        "",
        "committed",
        "edited here",
        "edited there",
        "kept",
        "last",
        "new here",
        "new there",
    ];
    if shape.is_alone {
        // Two texts without a merge base: both stay.
        expected.extend(["edited here", "edited there"]);
        expected.sort_unstable();
    }
    for machine in [&laptop, &desktop] {
        let titles = machine.titles();
        if titles != expected {
            return Err(format!("{} has {titles:?}", machine.name));
        }
        let edited = bytes(machine, &["edited here", "edited there"]);
        for text in ["Of the laptop.", "Of the desktop."] {
            let has_it = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(text);
            expect(text, edited.iter().any(has_it))?;
        }
    }
    expect("both have the same", laptop.tree() == desktop.tree())?;
    expect(
        "the forgotten one stays so",
        is_forgotten(&laptop, paths[3].id),
    )?;
    let local = laptop.notes.list_scope(Scope::MachineLocal).notes;
    expect("nothing was proposed", local.is_empty())?;
    laptop.command("later");
    sync_again(&laptop)?;
    sync_again(&desktop)?;
    expect("later notes travel", laptop.tree() == desktop.tree())?;
    expect("all of them", desktop.titles().len() == expected.len() + 1)?;
    usable(&laptop)
}

/// git and the history work. What no sync reads may still be damaged: `repair` finds it.
fn usable(machine: &Machine) -> Result<(), String> {
    machine.repair().map_err(|error| error.to_string())?;
    machine.git(&["fsck", "--strict"]);
    let status = machine.git(&["status", "--porcelain"]);
    expect(&format!("git status: {status}"), status.is_empty())?;
    let repository = Repository::open(&machine.home, machine.name, now()).unwrap();
    let repository = repository.ok_or("no repository")?;
    let events = repository
        .log(None, 100)
        .map_err(|error| error.to_string())?;
    expect("there is a history", !events.is_empty())?;
    for event in &events {
        let read = repository.differences(&event.commit);
        read.map_err(|error| format!("{event:?}: {error}"))?;
    }
    expect("nothing is pending", !machine.state().dirty)
}

/// A machine of its own: no note is lost, and what is written later is committed.
fn without_a_remote(shape: &Shape) -> Result<(), String> {
    let fleet = Fleet::new();
    let laptop = Machine {
        remote: None,
        ..fleet.machine("laptop")
    };
    for title in ["one", "two", "three"] {
        laptop.command(title);
    }
    if shape.is_packed {
        laptop.git(&["gc", "--quiet"]);
    }
    let last = last_commit(&laptop, "last");
    if shape.is_packed {
        laptop.git(&["gc", "--quiet"]);
    }
    laptop.write("new here");
    let before = laptop.tree();
    (shape.damage)(&Damaged::new(&laptop, last));
    sync_again(&laptop)?;
    // A sync does not read old commits; `doctor --fix` does.
    laptop.repair().map_err(|error| error.to_string())?;
    expect("the notes are as before", laptop.tree() == before)?;
    let later = laptop.write("later");
    let repository = {
        let lock = laptop.notes.lock().unwrap();
        Repository::open_or_create(&laptop.home, &lock, laptop.name, now())
            .map_err(|error| error.to_string())?
    };
    let act = Act {
        verb: "write",
        actor: "person",
    };
    let committed = {
        let lock = laptop.notes.lock().unwrap();
        repository.commit_notes(&lock, &BTreeSet::from([later.id]), act)
    };
    let committed = committed
        .map_err(|error| error.to_string())?
        .ok_or("not committed")?;
    let found = repository.find(&committed.batch.to_string());
    expect(
        "it can be undone",
        found.is_ok_and(|found| found.len() == 1),
    )?;
    sync_again(&laptop)?;
    usable(&laptop)
}

#[test]
fn damage_to_a_repository_with_a_remote_heals_by_itself() {
    each(&shapes(), with_a_remote);
}

#[test]
fn damage_to_a_repository_without_a_remote_heals_by_itself() {
    each(&shapes(), without_a_remote);
}

/// A laptop and a desktop with the same notes, and the laptop's `.git`.
fn pair() -> (Fleet, Machine, Machine, PathBuf) {
    let fleet = Fleet::new();
    let (laptop, desktop, _) = fleet.pair(&["one", "two"]);
    let git = laptop.folder().join(".git");
    (fleet, laptop, desktop, git)
}

#[test]
fn a_damaged_repository_is_kept_and_the_person_is_told() {
    let (_fleet, laptop, _, git) = pair();
    overwrite(&git.join("HEAD"), b"");
    let synced = laptop.sync();
    let kept = set_aside_repositories(&laptop.home);
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read(kept[0].join(".git/HEAD")).unwrap(), b"");
    assert!(kept[0].join(".git/objects").is_dir());
    let told: Vec<_> = synced
        .problems
        .iter()
        .filter(|told| told.path == "memory/.git")
        .collect();
    assert_eq!(told.len(), 1);
    assert!(
        told[0].reason.contains("quarantine/git-"),
        "{}",
        told[0].reason
    );
    assert!(laptop.sync().problems.is_empty());
    assert_eq!(set_aside_repositories(&laptop.home), kept);
}

#[test]
fn what_is_refused_or_out_of_reach_is_not_damaged() {
    let (fleet, laptop, _, git) = pair();
    let refused = |what: &str| {
        assert!(laptop.try_sync().is_err(), "{what}");
        assert!(set_aside_repositories(&laptop.home).is_empty(), "{what}");
    };
    laptop.git(&["switch", "--quiet", "-c", "mine"]);
    refused("another branch");
    laptop.git(&["switch", "--quiet", "main"]);
    laptop.git(&["config", "core.sshCommand", "evil"]);
    refused("an untrusted setting");
    laptop.git(&["config", "--unset", "core.sshCommand"]);
    let config = fs::read(git.join("config")).unwrap();
    laptop.git(&["config", "core.repositoryFormatVersion", "9"]);
    refused("a newer format");
    fs::write(git.join("config"), config).unwrap();
    let elsewhere = fleet.path("elsewhere");
    fs::rename(&git, &elsewhere).unwrap();
    fs::write(&git, format!("gitdir: {}\n", elsewhere.display())).unwrap();
    refused("a link to a repository");
    fs::remove_file(&git).unwrap();
    fs::rename(&elsewhere, &git).unwrap();
    laptop.write("three");
    overwrite(&git.join("refs/heads/main.lock"), b"");
    refused("a lock");
    fs::remove_file(git.join("refs/heads/main.lock")).unwrap();
    let remote = PathBuf::from(fleet.remote());
    fs::rename(&remote, &elsewhere).unwrap();
    refused("no remote");
    fs::rename(&elsewhere, &remote).unwrap();
    laptop.sync();
}

#[test]
fn hidden_files_beside_the_references_are_not_damage() {
    let (_fleet, laptop, _, git) = pair();
    for name in [".DS_Store", ".nfs000000000000a1b2", ".main.swp"] {
        overwrite(&git.join("refs/heads").join(name), b"not a reference");
    }
    laptop.write("three");
    laptop.sync();
    assert!(set_aside_repositories(&laptop.home).is_empty());
}

#[test]
fn a_power_cut_in_the_first_commit_is_not_damage() {
    // GIT-14
    let fleet = Fleet::new();
    let laptop = fleet.machine("laptop");
    laptop.write("one");
    laptop.sync();
    // libgit2 writes the log, then the reference; the tip that was joined follows the push.
    let git = laptop.folder().join(".git");
    let log = git.join("logs/refs/heads/main");
    let line = fs::read_to_string(&log).unwrap();
    let line = line.lines().next().unwrap();
    assert!(line.starts_with("0000000000000000000000000000000000000000 "));
    for reference in ["refs/heads/main", "refs/anamnesis", "refs/remotes"] {
        let path = git.join(reference);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    overwrite(&log, line.as_bytes());
    laptop.sync();
    assert!(set_aside_repositories(&laptop.home).is_empty());
}

#[test]
fn a_kill_while_a_repository_is_replaced_loses_no_history() {
    // GIT-14
    let (_fleet, laptop, _, git) = pair();
    let commits = || laptop.git(&["rev-list", "--count", "HEAD"]);
    let before = commits();
    let ready = git.with_file_name(".git.new");
    // Killed before the old repository was moved.
    fs::create_dir(&ready).unwrap();
    fs::write(ready.join("HEAD"), "half").unwrap();
    fs::create_dir(git.with_file_name(".git.01M845844CQWTQZKEBN5170X7E.tmp")).unwrap();
    overwrite(&git.join("HEAD"), b"");
    laptop.sync();
    assert_eq!(commits(), before);
    assert!(!ready.exists());
    // Killed after the old repository was moved.
    fs::rename(&git, &ready).unwrap();
    laptop.sync();
    assert_eq!(commits(), before);
    let is_left = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with(".git.");
    let left = fs::read_dir(laptop.folder())
        .unwrap()
        .map(Result::unwrap)
        .any(is_left);
    assert!(!left);
}
