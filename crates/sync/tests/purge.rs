//! Taking notes, or a text, out of the history of several machines.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "sync/after_push.rs"]
mod after_push;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, Scope, State},
    purge_pattern::PurgePattern,
};
use anamnesis_store::{
    fs::home::Home,
    index::Index,
    journal::Journal,
    notes::{NotePath, Notes},
    synced_lines::mark_purged,
};
use anamnesis_sync::{
    Error, GitBackend, Held, HeldDecision, Repository, Settings, Synced,
    git::GitEnvironment,
    purge::{Purge, Purged},
    remote::Remote,
    set_aside_repositories,
};
use anamnesis_text::redact::MASK;
use chrono::{DateTime, Utc};
use tempfile::TempDir;

#[cfg(unix)]
use after_push::after_push;
use after_push::variables;

const SECRET: &str = "gr33n-T7-apple";
const TIMEOUT: Duration = Duration::from_secs(20);

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_323_045, 0).unwrap()
}

fn needle() -> PurgePattern {
    PurgePattern::new(SECRET).unwrap()
}

fn text() -> Purge {
    Purge {
        needle: Some(needle()),
        ..Purge::default()
    }
}

fn notes(ids: &[NoteId]) -> Purge {
    Purge {
        ids: ids.iter().copied().collect(),
        ..Purge::default()
    }
}

fn run(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git").args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// A remote and the machines that use it.
struct Fleet {
    folder: TempDir,
}

struct Machine {
    name: &'static str,
    home: Home,
    notes: Notes,
    remote: Option<Remote>,
}

impl Fleet {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fleet = Self { folder };
        let remote = fleet.remote();
        let remote = remote.to_str().unwrap();
        run(&["init", "--quiet", "--bare", "--initial-branch=main", remote]);
        fleet
    }

    fn remote(&self) -> PathBuf {
        self.folder.path().join("remote.git")
    }

    fn machine(&self, name: &'static str) -> Machine {
        let home = Home::new(self.folder.path().join(name));
        home.create().unwrap();
        Machine {
            name,
            notes: Notes::new(home.clone(), TIMEOUT),
            home,
            remote: Some(Remote::parse(self.remote().to_str().unwrap(), false).unwrap()),
        }
    }

    fn three(&self) -> [Machine; 3] {
        ["laptop", "desktop", "server"].map(|name| self.machine(name))
    }

    fn assert_clean(&self) {
        assert_no_object_holds(&self.remote());
        assert_no_file_holds(&self.remote());
    }
}

/// Looks into every object of a repository, whatever names it.
fn object_holds(git_dir: &Path) -> bool {
    let dir = format!("--git-dir={}", git_dir.display());
    let objects = run(&[
        &dir,
        "cat-file",
        "--batch-all-objects",
        "--batch",
        "--unordered",
    ]);
    needle().is_in(&objects)
}

fn assert_no_object_holds(git_dir: &Path) {
    assert!(!object_holds(git_dir), "{} has it", git_dir.display());
}

fn assert_no_file_holds(folder: &Path) {
    let holding = holding(folder);
    assert!(holding.is_empty(), "{holding:?}");
}

/// The files below a folder that hold the text.
fn holding(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if needle().is_in(&fs::read(&path).unwrap()) {
                found.push(path);
            }
        }
    }
    found
}

impl Machine {
    fn backend(&self, answer: HeldDecision) -> GitBackend<'_> {
        let settings = Settings {
            machine_id: self.name.to_owned(),
            remote: self.remote.clone(),
            environment: GitEnvironment::choose(variables(self.home.root().parent().unwrap())),
            now: now(),
            timeout: TIMEOUT,
            time_limit: Duration::from_secs(60),
            answer,
        };
        GitBackend::new(&self.home, &self.notes, settings)
    }

    fn sync(&self) -> Synced {
        let synced = self.backend(HeldDecision::None).sync().unwrap();
        assert_eq!(synced.held, None, "{synced:?}");
        synced
    }

    fn try_purge(&self, purge: &Purge) -> Result<Purged, Error> {
        self.backend(HeldDecision::None).purge(purge, &mut |what| {
            self.mark_purged(&what.gone, &what.masked);
            Ok(())
        })
    }

    fn mark_purged(&self, gone: &BTreeSet<NoteId>, masked: &BTreeSet<NoteId>) {
        let lock = self.notes.lock().unwrap();
        mark_purged(&self.home, &lock, gone, masked, now()).unwrap();
    }

    fn purge(&self, purge: &Purge) -> Purged {
        let purged = self.try_purge(purge).unwrap();
        assert_eq!(purged.remote_left, None);
        purged
    }

    fn write(&self, title: &str, body: &str) -> NotePath {
        let note = Note {
            title: title.to_owned(),
            body: body.to_owned(),
            machine_id: self.name.to_owned(),
            ..Note::new(NoteId::generate(now()), NoteType::Semantic, now())
        };
        let lock = self.notes.lock().unwrap();
        self.notes.create(&lock, &note).unwrap().path
    }

    fn edit(&self, path: NotePath, change: impl FnOnce(&mut Note)) {
        let lock = self.notes.lock().unwrap();
        self.notes.update(&lock, path, change).unwrap();
    }

    fn note(&self, path: NotePath) -> Note {
        self.notes.read(path).unwrap().note()
    }

    fn proposals(&self) -> Vec<Note> {
        let local = self.notes.list_scope(Scope::MachineLocal).notes;
        local.into_iter().map(|(path, _)| self.note(path)).collect()
    }

    fn git_dir(&self) -> PathBuf {
        self.home.tree(Scope::Portable).join(".git")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let folder = self.home.tree(Scope::Portable);
        let mut all = vec![
            "-C",
            folder.to_str().unwrap(),
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@y",
        ];
        all.extend(arguments);
        String::from_utf8(run(&all)).unwrap()
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// The derived files are rebuilt by the next process that needs them.
    fn assert_clean(&self) {
        drop(Index::in_step(&self.home, &self.notes, TIMEOUT).unwrap());
        assert_no_object_holds(&self.git_dir());
        assert_no_file_holds(self.home.root());
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        self.git(&["fsck", "--strict"]);
    }
}

/// All three machines have the same notes, and none has the text.
fn assert_in_step(fleet: &Fleet, machines: &[Machine]) {
    for _ in 0..2 {
        for machine in machines {
            assert!(machine.sync().pushed);
        }
    }
    let heads: BTreeSet<String> = machines.iter().map(Machine::head).collect();
    assert_eq!(heads.len(), 1);
    fleet.assert_clean();
}

#[test]
fn a_text_is_in_no_byte_of_any_machine_after_a_purge_on_one() {
    // DEL-01
    let fleet = Fleet::new();
    let machines = fleet.three();
    let [laptop, desktop, server] = &machines;
    let before = laptop.write("before", "nothing to hide");
    laptop.sync();
    let first = laptop.head();
    let leaked = laptop.write(SECRET, &format!("the value is {SECRET}, really"));
    laptop.sync();
    laptop.edit(leaked, |note| note.body.push_str("\nmore"));
    for machine in [laptop, desktop, server] {
        machine.sync();
    }
    desktop.write("other", "of another machine");
    desktop.sync();
    laptop.git(&["tag", "old"]);
    assert!(object_holds(&laptop.git_dir()) && object_holds(&fleet.remote()));

    let purged = laptop.purge(&text());
    assert_eq!(purged.what.masked, BTreeSet::from([leaked.id]));
    assert!(purged.what.gone.is_empty() && purged.pushed, "{purged:?}");
    assert_eq!(purged.dropped, ["refs/tags/old"]);
    laptop.assert_clean();
    fleet.assert_clean();
    assert_eq!(laptop.note(leaked).title, MASK);
    // Earlier commits are unchanged.
    laptop.git(&["merge-base", "--is-ancestor", first.trim(), "HEAD"]);

    assert_in_step(&fleet, &machines);
    for machine in &machines {
        machine.assert_clean();
        assert_eq!(
            machine.note(leaked).body,
            format!("the value is {MASK}, really\nmore")
        );
        assert_eq!(machine.note(before).title, "before");
    }
}

#[test]
fn a_purged_note_stays_away_whatever_the_others_have() {
    // DEL-01
    let fleet = Fleet::new();
    let machines = fleet.three();
    let [laptop, desktop, server] = &machines;
    let purged = laptop.write("goes", SECRET);
    let stays = laptop.write("stays", "one");
    for machine in &machines {
        machine.sync();
    }
    // One machine has unpushed edits, one is behind, one pushes in between.
    desktop.edit(purged, |note| note.body = "words of the desktop".to_owned());
    desktop.edit(stays, |note| note.title = "stays there".to_owned());
    desktop.backend(HeldDecision::None).commit().unwrap();
    let own = desktop.write("own", "of the desktop");
    let between = server.write("between", "of the server");
    server.sync();

    let done = laptop.purge(&notes(&[purged.id]));
    assert_eq!(done.what.gone, BTreeSet::from([purged.id]));
    fleet.assert_clean();
    laptop.assert_clean();
    assert_in_step(&fleet, &machines);
    for machine in &machines {
        assert_eq!(machine.note(purged).state, State::Forgotten);
        assert_eq!(machine.note(stays).title, "stays there");
        assert_eq!(machine.note(own).title, "own");
        assert_eq!(machine.note(between).title, "between");
        machine.assert_clean();
    }
    // The desktop keeps its own text locally and reports why.
    let [kept] = &desktop.proposals()[..] else {
        panic!("{:?}", desktop.proposals());
    };
    assert!(
        kept.body.starts_with("words of the desktop"),
        "{}",
        kept.body
    );
    assert!(kept.body.contains("purged"), "{}", kept.body);
    assert_eq!((laptop.proposals().len(), server.proposals().len()), (0, 0));
}

#[test]
fn a_forgotten_note_is_out_of_history_and_its_trash_is_empty_everywhere() {
    let fleet = Fleet::new();
    let machines = fleet.three();
    let [laptop, desktop, _] = &machines;
    let forgotten = laptop.write("x", SECRET);
    laptop.sync();
    desktop.sync();
    let lock = desktop.notes.lock().unwrap();
    desktop.notes.forget(&lock, forgotten, now()).unwrap();
    drop(lock);
    desktop.sync();
    laptop.sync();
    laptop.purge(&notes(&[forgotten.id]));
    assert_in_step(&fleet, &machines);
    for machine in &machines {
        machine.assert_clean();
    }
}

#[test]
fn edits_of_a_masked_note_travel_without_the_text_or_not_at_all() {
    let body = format!("first paragraph\n\nthe value is {SECRET}\n\nlast paragraph");
    // The other machine's edits of the body, and whether they can sync.
    let edits = [
        (body.replace("first", "a better first"), true),
        (body.replace("the value", "our value"), false),
        (format!("{body}\n\nagain: {SECRET}"), false),
        (
            format!(
                "value: {SECRET}\n\n{}",
                body.replace(&format!("the value is {SECRET}\n\n"), "")
            ),
            false,
        ),
    ];
    for (edited, travels) in edits {
        let fleet = Fleet::new();
        let machines = fleet.three();
        let [laptop, desktop, _] = &machines;
        let leaked = laptop.write("x", &body);
        for machine in &machines {
            machine.sync();
        }
        desktop.edit(leaked, |note| note.body.clone_from(&edited));
        laptop.purge(&text());
        assert_in_step(&fleet, &machines);
        let now = laptop.note(leaked).body;
        if travels {
            assert_eq!(now, edited.replace(SECRET, MASK));
            desktop.assert_clean();
        } else {
            assert_eq!(now, body.replace(SECRET, MASK), "{edited}");
            // The text is on the machine that wrote it, and in no git object.
            assert_eq!(desktop.proposals().len(), 1, "{edited}");
            assert_no_object_holds(&desktop.git_dir());
            desktop.purge(&text());
            desktop.assert_clean();
        }
    }
}

#[test]
fn a_machine_with_a_damaged_repository_does_not_bring_a_purged_text_back() {
    // DEL-01
    let damages: [fn(&Path); 2] = [
        |git| {
            for name in ["refs/anamnesis/joined", "refs/remotes/origin/main"] {
                fs::write(git.join(name), "garbage").unwrap();
            }
        },
        |git| fs::remove_dir_all(git.join("objects")).unwrap(),
    ];
    for damage in damages {
        let fleet = Fleet::new();
        let machines = fleet.three();
        let [laptop, desktop, _] = &machines;
        let leaked = laptop.write("x", SECRET);
        for machine in &machines {
            machine.sync();
        }
        laptop.purge(&text());
        damage(&desktop.git_dir());
        assert_in_step(&fleet, &machines);
        assert_eq!(desktop.note(leaked).body, MASK);
        assert_eq!(set_aside_repositories(&desktop.home).len(), 1);
    }
}

#[test]
fn who_was_faster_is_joined_and_purged_too() {
    let fleet = Fleet::new();
    let machines = fleet.three();
    let [laptop, desktop, server] = &machines;
    let leaked = laptop.write("x", SECRET);
    for machine in &machines {
        machine.sync();
    }
    // The laptop has not fetched this.
    let second = desktop.write("second", &format!("also {SECRET}"));
    desktop.edit(leaked, |note| note.title = "renamed".to_owned());
    desktop.sync();
    let purged = laptop.purge(&text());
    assert_eq!(purged.what.masked, BTreeSet::from([leaked.id, second.id]));
    assert_eq!(laptop.note(leaked).title, "renamed");
    let _ = server;
    assert_in_step(&fleet, &machines);
    for machine in &machines {
        machine.assert_clean();
    }
}

#[cfg(unix)]
#[test]
fn who_pushes_or_writes_in_that_moment_is_joined() {
    let fleet = Fleet::new();
    let machines = fleet.three();
    let [laptop, desktop, _] = &machines;
    let leaked = laptop.write("x", SECRET);
    for machine in &machines {
        machine.sync();
    }
    // After the laptop's push, the user commits with git on the laptop.
    let is_due = fleet.folder.path().join("due");
    let script = format!(
        "[ -e {} ] || exit\ncd {}\necho own >> semantic/{}.md\n\
         git -c user.name=x -c user.email=x@y commit --quiet --all -m own",
        is_due.display(),
        laptop.home.tree(Scope::Portable).display(),
        leaked.id
    );
    after_push(fleet.folder.path(), &script);
    // The desktop pushes between the laptop's fetch and its push.
    let mut said = Vec::new();
    let between = desktop.write("between", &format!("with {SECRET}"));
    let backend = laptop.backend(HeldDecision::None);
    let purged = backend.purge(&text(), &mut |what| {
        let masked = &what.masked;
        if said.is_empty() {
            desktop.sync();
            fs::write(&is_due, "").unwrap();
        }
        said.push(masked.clone());
        laptop.mark_purged(&what.gone, masked);
        Ok(())
    });
    fs::remove_file(fleet.folder.path().join("bin/git")).unwrap();
    assert_eq!(purged.unwrap().remote_left, None);
    let both = BTreeSet::from([leaked.id, between.id]);
    assert_eq!(said, [BTreeSet::from([leaked.id]), both]);
    assert_in_step(&fleet, &machines);
    for machine in &machines {
        machine.assert_clean();
        assert_eq!(machine.note(leaked).body, format!("{MASK}\nown"));
    }
}

#[test]
fn two_purges_are_both_done() {
    let fleet = Fleet::new();
    let machines = fleet.three();
    let [laptop, desktop, server] = &machines;
    let leaked = laptop.write("x", &format!("{SECRET} and more"));
    let other = laptop.write("y", "other words");
    for machine in &machines {
        machine.sync();
    }
    laptop.purge(&text());
    // This machine has not joined the first purge yet.
    desktop.purge(&notes(&[other.id]));
    server.purge(&text());
    assert_in_step(&fleet, &machines);
    for machine in &machines {
        machine.assert_clean();
        assert_eq!(machine.note(leaked).body, format!("{MASK} and more"));
        assert_eq!(machine.note(other).state, State::Forgotten);
    }
}

#[test]
fn nothing_that_a_machine_kept_of_an_earlier_purge_has_what_another_purges() {
    // DEL-01
    let fleet = Fleet::new();
    let machines = [fleet.machine("laptop"), fleet.machine("desktop")];
    let [laptop, desktop] = &machines;
    laptop.write("x", "another-v4lue");
    laptop.write("y", SECRET);
    laptop.sync();
    desktop.sync();
    laptop.purge(&Purge {
        needle: Some(PurgePattern::new("another-v4lue").unwrap()),
        ..Purge::default()
    });
    desktop.sync();
    desktop.purge(&text());
    assert_in_step(&fleet, &machines);
    for machine in &machines {
        machine.assert_clean();
    }
}

#[test]
fn tags_branches_and_stashes_of_a_person_are_searched_and_dropped_where_a_purge_arrives() {
    // DEL-01
    let fleet = Fleet::new();
    let machines = [fleet.machine("laptop"), fleet.machine("desktop")];
    let [laptop, desktop] = &machines;
    laptop.write("clean", "x");
    laptop.sync();
    desktop.sync();
    desktop.git(&["tag", "clean"]);
    let leaked = laptop.write("x", SECRET);
    laptop.sync();
    desktop.sync();
    desktop.git(&["tag", "plain"]);
    desktop.git(&["tag", "-a", "-m", SECRET, "signed"]);
    desktop.git(&["branch", "other"]);
    let path = desktop.home.tree(Scope::Portable).join("semantic");
    let path = path.join(format!("{}.md", leaked.id));
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, [&bytes[..], b"more\n"].concat()).unwrap();
    desktop.git(&["stash"]);
    laptop.purge(&text());
    let synced = desktop.sync();
    let said = format!("{:?}", synced.problems);
    for name in [
        "refs/tags/plain",
        "refs/tags/signed",
        "refs/heads/other",
        "refs/stash",
    ] {
        assert!(said.contains(name), "{name}: {said}");
    }
    assert_in_step(&fleet, &machines);
    desktop.assert_clean();
    assert_eq!(desktop.git(&["tag"]), "clean\n");
}

#[test]
fn a_text_is_found_in_what_only_a_tag_or_a_reflog_keeps() {
    let fleet = Fleet::new();
    let mut laptop = fleet.machine("laptop");
    laptop.remote = None;
    laptop.write("x", "nothing");
    laptop.sync();
    laptop.git(&["checkout", "--quiet", "-b", "side"]);
    let folder = laptop.home.tree(Scope::Portable);
    fs::write(folder.join("own.txt"), SECRET).unwrap();
    laptop.git(&["add", "own.txt"]);
    laptop.git(&["commit", "--quiet", "-m", "x"]);
    laptop.git(&["tag", "kept"]);
    laptop.git(&["switch", "--quiet", "main"]);
    laptop.git(&["branch", "--quiet", "-D", "side"]);
    let found = || {
        let repository = Repository::open(&laptop.home, "laptop", now()).unwrap();
        repository.unwrap().occurrences(&text()).unwrap()
    };
    assert_eq!(
        found().references,
        BTreeSet::from(["refs/tags/kept".to_owned()])
    );
    laptop.git(&["tag", "-d", "kept"]);
    assert!(!found().is_empty());
    laptop.purge(&text());
    assert!(found().is_empty(), "{:?}", found());
    laptop.assert_clean();
}

#[test]
fn histories_with_tags_stashes_and_two_purges_keep_neither_text() {
    // DEL-01
    const OTHER: &str = "another-v4lue";
    let other = Purge {
        needle: Some(PurgePattern::new(OTHER).unwrap()),
        ..Purge::default()
    };
    for seed in 1..=2_u64 {
        let fleet = Fleet::new();
        let machines = [fleet.machine("laptop"), fleet.machine("desktop")];
        let mut state = seed;
        let mut draw = |below: u64| {
            // A linear congruential generator (Knuth, MMIX).
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        machines[0].write("first", "x");
        for machine in &machines {
            machine.sync();
        }
        for step in 0..16 {
            let machine = &machines[usize::try_from(draw(2)).unwrap()];
            match draw(6) {
                0 => drop(machine.write("a", SECRET)),
                1 => drop(machine.write(OTHER, "b")),
                2 => drop(machine.git(&["tag", &format!("tag-{step}")])),
                3 => drop(machine.git(&["branch", &format!("branch-{step}")])),
                4 => {
                    let own = machine.home.tree(Scope::Portable).join("semantic/own.txt");
                    fs::write(own, format!("{SECRET} {OTHER}")).unwrap();
                    machine.git(&["stash", "--include-untracked"]);
                }
                _ => drop(machine.sync()),
            }
        }
        let first = usize::try_from(draw(2)).unwrap();
        machines[first].purge(&text());
        machines[1 - first].purge(&other);
        for machine in machines.iter().chain(&machines) {
            machine.sync();
        }
        // A text that was written beside the purge is purged by a second one.
        machines[first].purge(&text());
        machines[first].purge(&other);
        assert_in_step(&fleet, &machines);
        for machine in &machines {
            machine.assert_clean();
            let repository = Repository::open(&machine.home, machine.name, now()).unwrap();
            let found = repository.unwrap().occurrences(&other).unwrap();
            assert!(found.is_empty(), "seed {seed}: {found:?}");
        }
    }
}

#[test]
fn a_note_that_was_deleted_here_stays_deleted_where_another_machine_masked_it() {
    let fleet = Fleet::new();
    let [laptop, desktop, _] = fleet.three();
    let [forgotten, removed] = ["x", "y"].map(|title| laptop.write(title, SECRET));
    // Among so few notes, a sync that deletes two would wait for a decision.
    for _ in 0..20 {
        laptop.write("z", "other words");
    }
    laptop.sync();
    desktop.sync();
    let lock = desktop.notes.lock().unwrap();
    desktop.notes.forget(&lock, forgotten, now()).unwrap();
    desktop.notes.remove(&lock, removed).unwrap();
    drop(lock);
    laptop.purge(&text());
    desktop.sync();
    laptop.sync();
    for machine in [&laptop, &desktop] {
        assert_eq!(machine.note(forgotten).state, State::Forgotten);
        assert!(machine.notes.find(removed.id).is_none());
    }
    fleet.assert_clean();
}

#[test]
fn a_machine_that_was_offline_and_brings_a_purged_text_or_note_back_is_named() {
    let fleet = Fleet::new();
    let [laptop, desktop, _] = fleet.three();
    let leaked = laptop.write("x", SECRET);
    let other = laptop.write("y", "other words");
    laptop.sync();
    desktop.sync();
    laptop.purge(&text());
    laptop.purge(&notes(&[other.id]));
    let quoting = desktop.write("z", &format!("it was {SECRET}"));
    // Another git merges the old history.
    desktop.git(&["add", "."]);
    desktop.git(&["commit", "--quiet", "-m", "x"]);
    desktop.git(&["fetch", "--quiet", fleet.remote().to_str().unwrap(), "main"]);
    desktop.git(&[
        "merge",
        "--quiet",
        "-s",
        "ours",
        "--allow-unrelated-histories",
        "FETCH_HEAD",
    ]);
    let remote = fleet.remote();
    desktop.git(&["push", "--quiet", remote.to_str().unwrap(), "main"]);
    let journal = Journal::open(&laptop.home, TIMEOUT).unwrap();
    journal.purged(&needle()).unwrap();
    let backend = laptop.backend(HeldDecision::None);
    let backend = backend.recognising(journal.echoes("").unwrap());
    let returned = backend.sync().unwrap().returned;
    for note in [leaked, other, quoting] {
        assert!(returned.contains(&note.id), "{returned:?}");
    }
    let repository = Repository::open(&laptop.home, laptop.name, now()).unwrap();
    let found = repository.unwrap().occurrences(&text()).unwrap();
    assert!(found.notes.contains_key(&quoting.id), "{found:?}");
    laptop.purge(&text());
    laptop.purge(&notes(&[other.id]));
    laptop.assert_clean();
    fleet.assert_clean();
}

#[test]
fn a_store_without_a_remote_is_purged_too() {
    let fleet = Fleet::new();
    let laptop = Machine {
        remote: None,
        ..fleet.machine("laptop")
    };
    let leaked = laptop.write(SECRET, "x");
    laptop.sync();
    let gone = laptop.write("goes", SECRET);
    laptop.sync();
    // Files of git that name the old history.
    laptop.git(&["commit", "--quiet", "--amend", "-m", SECRET]);
    laptop.git(&["branch", "other"]);
    let purge = Purge {
        needle: Some(needle()),
        ids: BTreeSet::from([gone.id]),
    };
    let purged = laptop.purge(&purge);
    assert!(!purged.pushed);
    assert_eq!(purged.what.masked, BTreeSet::from([leaked.id]));
    laptop.assert_clean();
    assert_eq!(laptop.note(gone).state, State::Forgotten);
    let again = laptop.purge(&text());
    assert_eq!((again.commits, again.what.masked.len()), (0, 0));
}

#[test]
fn a_store_whose_remote_was_unset_keeps_no_reference_to_the_old_history() {
    let fleet = Fleet::new();
    let mut laptop = fleet.machine("laptop");
    laptop.write("x", SECRET);
    laptop.sync();
    laptop.remote = None;
    laptop.purge(&text());
    laptop.assert_clean();
}

#[test]
fn history_keeps_what_is_not_purged() {
    let fleet = Fleet::new();
    let [laptop, desktop, _] = fleet.three();
    laptop.write("one", "x");
    laptop.sync();
    let leaked = laptop.write("two", SECRET);
    laptop.sync();
    desktop.sync();
    desktop.write("three", "y");
    desktop.sync();
    let log = |machine: &Machine| machine.git(&["log", "--reverse", "--format=%an|%ae|%at|%ct|%B"]);
    laptop.sync();
    let (before, head) = (log(&laptop), laptop.head());
    laptop.purge(&text());
    assert_ne!(laptop.head(), head);
    let after = log(&laptop);
    assert!(after.starts_with(&before), "{before}\n{after}");
    let repository = Repository::open(&laptop.home, "laptop", now())
        .unwrap()
        .unwrap();
    assert!(repository.occurrences(&text()).unwrap().is_empty());
    let standing = repository.occurrences(&notes(&[leaked.id])).unwrap();
    assert_eq!(standing.notes[&leaked.id].commits, 1);
    assert!(standing.notes[&leaked.id].pushed_at.is_some());
}

#[test]
fn a_rewriting_that_says_more_or_less_than_it_does_is_held() {
    let fleet = Fleet::new();
    let [laptop, desktop, _] = fleet.three();
    let first = laptop.write("first", "x");
    laptop.write("second", "y");
    laptop.sync();
    desktop.sync();
    // The record names one note, but another one is missing too.
    laptop.mark_purged(&BTreeSet::from([first.id]), &BTreeSet::new());
    fs::remove_dir_all(laptop.home.tree(Scope::Portable).join("semantic")).unwrap();
    laptop.git(&["add", "--all"]);
    laptop.git(&["checkout", "--quiet", "--orphan", "other"]);
    laptop.git(&["commit", "--quiet", "-m", "all new"]);
    laptop.git(&["push", "--quiet", "--force", "origin", "other:main"]);
    let synced = desktop.backend(HeldDecision::None).sync().unwrap();
    assert_eq!(synced.held, Some(Held::Rewritten));
    assert_eq!(desktop.note(first).title, "first");
    let refused = desktop.try_purge(&text());
    assert!(matches!(refused, Err(Error::Held)), "{refused:?}");
}

#[test]
fn a_purge_that_is_killed_is_finished_or_begun_again() {
    // Killed after the remote was rewritten, before any local change.
    let fleet = Fleet::new();
    let machines = fleet.three();
    let [laptop, desktop, _] = &machines;
    let leaked = laptop.write("x", SECRET);
    for machine in &machines {
        machine.sync();
    }
    let stale = fleet.folder.path().join("copy");
    copy(laptop.home.root(), &stale);
    laptop.purge(&text());
    let new = laptop.head();
    fs::remove_dir_all(laptop.home.root()).unwrap();
    fs::rename(&stale, laptop.home.root()).unwrap();
    // git updates its tracking branch by itself.
    laptop.git(&["fetch", "--quiet", "origin"]);
    laptop.git(&["update-ref", "refs/anamnesis/purged", new.trim()]);
    laptop.git(&["rev-parse", "--verify", "--quiet", "origin/main"]);
    assert_in_step(&fleet, &machines);
    laptop.assert_clean();
    assert_eq!(laptop.note(leaked).body, MASK);
    desktop.assert_clean();

    // Killed after the files, before the history: the changed files are ordinary changes.
    let fleet = Fleet::new();
    let machines = fleet.three();
    let [laptop, ..] = &machines;
    let leaked = laptop.write("x", SECRET);
    laptop.sync();
    let refused = laptop
        .backend(HeldDecision::None)
        .purge(&text(), &mut |_| Err("killed".into()));
    assert!(matches!(refused, Err(Error::NoRecord(_))), "{refused:?}");
    assert_eq!(laptop.note(leaked).body, MASK);
    laptop.sync();
    laptop.purge(&text());
    assert_in_step(&fleet, &machines);

    // Killed before the old objects were removed.
    let fleet = Fleet::new();
    let machine = fleet.machine("laptop");
    machine.write("x", SECRET);
    machine.sync();
    let objects = machine.git_dir().join("objects");
    let kept = fleet.folder.path().join("objects");
    copy(&objects, &kept);
    machine.purge(&text());
    copy(&kept, &objects);
    fs::write(machine.git_dir().join("anamnesis-pruning"), "").unwrap();
    machine.sync();
    machine.assert_clean();
}

#[test]
fn a_remote_that_is_away_is_told_before_history_is_touched() {
    let fleet = Fleet::new();
    let laptop = fleet.machine("laptop");
    let leaked = laptop.write("x", SECRET);
    laptop.sync();
    let head = laptop.head();
    fs::rename(fleet.remote(), fleet.folder.path().join("away")).unwrap();
    assert!(matches!(laptop.try_purge(&text()), Err(Error::Network(_))));
    assert_eq!(laptop.head(), head);
    assert_eq!(laptop.note(leaked).body, SECRET);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if !target.exists() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_purged_text_is_in_no_branch_or_tag_of_the_remote() {
    // DEL-01
    let fleet = Fleet::new();
    let laptop = fleet.machine("laptop");
    laptop.write("before", "nothing to hide");
    laptop.sync();
    let remote = fleet.remote();
    let there = |arguments: &[&str]| {
        let mut all = vec![
            "-C",
            remote.to_str().unwrap(),
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@y",
        ];
        all.extend(arguments);
        String::from_utf8(run(&all)).unwrap()
    };
    there(&["branch", "clean", "main"]);
    laptop.write(SECRET, &format!("the value is {SECRET}"));
    laptop.sync();
    there(&["branch", "backup", "main"]);
    there(&["tag", "plain", "main"]);
    there(&["tag", "-a", "-m", "x", "signed", "main"]);
    laptop.write("later", "x");
    laptop.sync();
    let purged = laptop.purge(&text());
    fleet.assert_clean();
    let left = there(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(left, "refs/heads/clean\nrefs/heads/main\n");
    let dropped = [
        "backup of the remote",
        "plain of the remote",
        "signed of the remote",
    ];
    let dropped: Vec<String> = ["heads", "tags", "tags"]
        .iter()
        .zip(dropped)
        .map(|(folder, name)| format!("refs/{folder}/{name}"))
        .collect();
    assert_eq!(purged.dropped, dropped);
}

#[test]
fn a_branch_of_the_remote_that_cannot_be_looked_into_is_named() {
    // DEL-01
    let fleet = Fleet::new();
    let laptop = fleet.machine("laptop");
    laptop.write("x", SECRET);
    laptop.sync();
    let remote = fleet.remote();
    let commit = run(&[
        "-C",
        remote.to_str().unwrap(),
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@y",
        "commit-tree",
        "-p",
        "main",
        "-m",
        "of somebody",
        "main^{tree}",
    ]);
    let commit = String::from_utf8(commit).unwrap();
    run(&[
        "-C",
        remote.to_str().unwrap(),
        "branch",
        "theirs",
        commit.trim(),
    ]);
    let purged = laptop.try_purge(&text()).unwrap();
    let left = purged.remote_left.unwrap();
    assert!(left.contains("refs/heads/theirs"), "{left}");
    assert_eq!(purged.dropped, [""; 0]);
}

#[test]
fn a_joined_purge_leaves_no_text_in_the_index() {
    // DEL-01
    let fleet = Fleet::new();
    let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
    let note = laptop.write("x", &format!("the value is {SECRET}"));
    laptop.sync();
    desktop.sync();
    let index = Index::in_step(&desktop.home, &desktop.notes, TIMEOUT).unwrap();
    assert!(index.body(note.id).unwrap().unwrap().contains(SECRET));
    drop(index);
    laptop.purge(&text());
    desktop.sync();
    assert_no_file_holds(&desktop.home.derived());
    let index = Index::open(&desktop.home).unwrap();
    assert!(!index.body(note.id).unwrap().unwrap().contains(SECRET));
}
