//! What happened to notes, on one machine and on two, and taking a batch of it back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeSet, fs, path::Path, process::Command, time::Duration};

use anamnesis_note::{
    id::{IdPrefix, NoteId},
    note::{Note, NoteFile, NoteType, Scope},
};
use anamnesis_store::{
    fs::home::Home,
    notes::{NotePath, Notes},
};
use anamnesis_sync::{
    Act, Committed, GitBackend, HeldDecision, Repository, Settings,
    history::{Fate, NoteCommit, Touched},
    remote::Remote,
};
use chrono::{DateTime, TimeDelta, Utc};
use tempfile::TempDir;

/// A machine with a store of its own. A test sets the clock.
struct Machine {
    name: String,
    home: Home,
    notes: Notes,
    remote: Option<Remote>,
    now: DateTime<Utc>,
    _folder: TempDir,
}

fn morning() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_323_045, 0).unwrap()
}

const EDIT: Act<'_> = Act {
    verb: "edit",
    actor: "person",
};

const UNDO: Act<'_> = Act {
    verb: "undo",
    actor: "person",
};

impl Machine {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        Self {
            name: name.to_owned(),
            notes: Notes::new(home.clone(), Duration::from_secs(5)),
            home,
            remote: None,
            now: morning(),
            _folder: folder,
        }
    }

    /// Two machines and the bare repository that joins them, which goes with the folder.
    fn pair() -> (Self, Self, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let made = Command::new("git")
            .args(["init", "--quiet", "--bare", "--initial-branch=main", path])
            .status();
        assert!(made.unwrap().success());
        let machine = |name| Self {
            remote: Some(Remote::parse(path, false).unwrap()),
            ..Self::new(name)
        };
        (machine("laptop"), machine("desktop"), folder)
    }

    fn after(&mut self, minutes: i64) -> &mut Self {
        self.now = morning() + TimeDelta::minutes(minutes);
        self
    }

    fn sync(&self) {
        let settings = Settings {
            machine_id: self.name.clone(),
            remote: self.remote.clone(),
            environment: anamnesis_sync::git::GitEnvironment::choose(std::env::vars_os()),
            now: self.now,
            timeout: Duration::from_secs(5),
            time_limit: Duration::from_secs(60),
            answer: HeldDecision::None,
        };
        let backend = GitBackend::new(&self.home, &self.notes, settings);
        assert!(backend.sync().unwrap().pushed);
    }

    fn repository(&self) -> Repository {
        let lock = self.notes.lock().unwrap();
        Repository::open_or_create(&self.home, &lock, &self.name, self.now).unwrap()
    }

    fn commit(&self, ids: &[NoteId], act: Act<'_>) -> Committed {
        let repository = self.repository();
        let lock = self.notes.lock().unwrap();
        let ids: BTreeSet<NoteId> = ids.iter().copied().collect();
        repository.commit_notes(&lock, &ids, act).unwrap().unwrap()
    }

    fn write(&self, title: &str, body: &str) -> NotePath {
        let note = Note {
            title: title.to_owned(),
            body: body.to_owned(),
            machine_id: self.name.clone(),
            ..Note::new(NoteId::generate(self.now), NoteType::Semantic, self.now)
        };
        let lock = self.notes.lock().unwrap();
        let path = self.notes.create(&lock, &note).unwrap().path;
        drop(lock);
        let act = Act {
            verb: "write",
            actor: "person",
        };
        self.commit(&[path.id], act);
        path
    }

    fn change(&self, id: NoteId, change: impl FnOnce(&mut Note)) {
        let lock = self.notes.lock().unwrap();
        let path = self.notes.find(id).unwrap();
        self.notes.update(&lock, path, change).unwrap();
    }

    fn edit(&self, id: NoteId, change: impl FnOnce(&mut Note)) -> Committed {
        self.change(id, change);
        self.commit(&[id], EDIT)
    }

    fn forget(&self, id: NoteId) -> Committed {
        let lock = self.notes.lock().unwrap();
        let path = self.notes.find(id).unwrap();
        self.notes.forget(&lock, path, self.now).unwrap();
        drop(lock);
        let act = Act {
            verb: "forget",
            actor: "person",
        };
        self.commit(&[id], act)
    }

    /// Returns a note's path and file.
    fn file(&self, id: NoteId) -> Option<(NotePath, String)> {
        let path = self.notes.find(id)?;
        let bytes = self.notes.bytes(path).unwrap();
        Some((path, String::from_utf8(bytes).unwrap()))
    }

    fn event(&self, committed: &Committed) -> NoteCommit {
        let mut found = self
            .repository()
            .find(&committed.batch.to_string())
            .unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// Undoes a change; returns the result for its only note, and the commit of the undo.
    fn undo(&self, committed: &Committed) -> (Fate, Option<Committed>) {
        let event = self.event(committed);
        let lock = self.notes.lock().unwrap();
        let repository =
            Repository::open_or_create(&self.home, &lock, &self.name, self.now).unwrap();
        let undone = repository.undo(&lock, &self.notes, &event, UNDO).unwrap();
        let mut fates = undone.notes.into_values();
        let fate = fates.next().unwrap();
        assert_eq!(fates.next(), None);
        (fate, undone.committed)
    }

    /// Returns a note's text some minutes after the start.
    fn text_at(&self, minutes: i64, id: NoteId) -> Option<String> {
        let repository = self.repository();
        let moment = repository
            .at(morning() + TimeDelta::minutes(minutes))
            .unwrap()?;
        let file = repository.note_at(&moment, id).unwrap()?;
        let file = NoteFile::parse(&file.bytes, id).unwrap();
        Some(file.note().body.trim().to_owned())
    }
}

fn log(machine: &Machine) -> Vec<(String, Option<String>, String)> {
    let events = machine.repository().log(None, usize::MAX).unwrap();
    let line = |event: NoteCommit| {
        let verb = event.verb().to_owned();
        (verb, event.machine, event.title.unwrap_or_default())
    };
    events.into_iter().map(line).collect()
}

fn line(verb: &str, machine: &str, title: &str) -> (String, Option<String>, String) {
    (verb.to_owned(), Some(machine.to_owned()), title.to_owned())
}

#[test]
fn a_commit_waits_for_the_disk_before_it_takes_the_notes_lock() {
    let machine = Machine::new("laptop");
    machine.write("First", "One");
    let repository = machine.repository();
    let lock = machine.notes.lock().unwrap();
    let note = Note {
        title: "Second".to_owned(),
        ..Note::new(
            NoteId::generate(machine.now),
            NoteType::Semantic,
            machine.now,
        )
    };
    let id = machine.notes.create(&lock, &note).unwrap().path.id;
    let act = Act {
        verb: "write",
        actor: "person",
    };
    let commit = || {
        let impatient = Notes::new(machine.home.clone(), Duration::ZERO);
        repository.commit_notes_beside(&impatient, &BTreeSet::from([id]), act)
    };
    let objects = || {
        let folders = fs::read_dir(machine.home.root().join("memory/.git/objects")).unwrap();
        let folders = folders.map(|folder| fs::read_dir(folder.unwrap().path()).unwrap().count());
        folders.sum::<usize>()
    };
    let before = objects();
    // Another process holds the lock, such as a hook that writes a session's note.
    assert!(commit().is_err());
    assert!(objects() > before);
    drop(lock);
    assert_eq!(commit().unwrap().unwrap().notes, BTreeSet::from([id]));
    assert!(commit().unwrap().is_none());
}

#[test]
fn log_lists_changes_newest_first() {
    let mut laptop = Machine::new("laptop");
    let path = laptop.write("first", "One.");
    laptop
        .after(1)
        .edit(path.id, |note| note.title = "second".to_owned());
    laptop.after(2).forget(path.id);
    assert_eq!(
        log(&laptop),
        [
            line("forget", "laptop", "second"),
            line("edit", "laptop", "second"),
            line("write", "laptop", "first"),
        ]
    );
    let events = laptop.repository().log(Some(path.id), 2).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(events[1].notes[&path.id], Touched::Changed);
    assert_eq!(events[1].actor.as_deref(), Some("person"));
    assert_eq!(events[1].at, morning() + TimeDelta::minutes(1));
}

#[test]
fn log_shows_only_a_joins_own_changes() {
    let (mut laptop, mut desktop, _remote) = Machine::pair();
    let path = laptop.write("shared", "One.\n\nTwo.\n\nThree.");
    laptop.sync();
    desktop.sync();
    let body = |text: &'static str| move |note: &mut Note| note.body = text.to_owned();
    desktop
        .after(1)
        .edit(path.id, body("One.\n\nTwo.\n\nThree, changed."));
    desktop.write("other", "Of the desktop.");
    desktop.sync();
    laptop
        .after(2)
        .edit(path.id, body("One, changed.\n\nTwo.\n\nThree."));
    laptop.after(3).sync();
    let told = log(&laptop);
    assert_eq!(told[0], line("sync", "laptop", "shared"));
    assert_eq!(
        told[1..].iter().cloned().collect::<BTreeSet<_>>(),
        BTreeSet::from([
            line("edit", "laptop", "shared"),
            line("write", "desktop", "other"),
            line("edit", "desktop", "shared"),
            line("write", "laptop", "shared"),
        ])
    );
    let join = laptop.repository().log(None, 1).unwrap().remove(0);
    // The desktop's commits belong to the desktop, and a join cannot be undone.
    assert_eq!(join.notes.keys().collect::<Vec<_>>(), [&path.id]);
    assert_eq!(join.batch, None);
    let versions = laptop.repository().versions(path.id, usize::MAX).unwrap();
    assert_eq!(versions.len(), 4);
    let newest = String::from_utf8(versions[0].file.clone().unwrap().bytes).unwrap();
    assert!(newest.contains("One, changed.\n\nTwo.\n\nThree, changed."));
    // Both machines have the same log.
    desktop.after(4).sync();
    assert_eq!(log(&desktop), told);
}

#[test]
fn log_omits_joins_without_conflicts() {
    let (laptop, mut desktop, _remote) = Machine::pair();
    laptop.write("one", "One.");
    laptop.sync();
    desktop.after(1).write("two", "Two.");
    desktop.after(2).sync();
    assert_eq!(
        log(&desktop),
        [
            line("write", "desktop", "two"),
            line("write", "laptop", "one")
        ]
    );
    assert_eq!(
        desktop
            .repository()
            .last_seen()
            .unwrap()
            .into_iter()
            .collect::<Vec<_>>(),
        [
            ("desktop".to_owned(), morning() + TimeDelta::minutes(2)),
            ("laptop".to_owned(), morning()),
        ]
    );
}

#[test]
fn returns_the_notes_at_a_time() {
    let mut laptop = Machine::new("laptop");
    assert!(laptop.repository().at(morning()).unwrap().is_none());
    let path = laptop.write("note", "Old.");
    laptop
        .after(10)
        .edit(path.id, |note| note.body = "New.".to_owned());
    laptop.after(20).forget(path.id);
    let lock = laptop.notes.lock().unwrap();
    laptop.notes.remove(&lock, path).unwrap();
    drop(lock);
    laptop.after(30).commit(&[path.id], EDIT);
    assert_eq!(laptop.text_at(-1, path.id), None);
    assert_eq!(laptop.text_at(0, path.id).as_deref(), Some("Old."));
    assert_eq!(laptop.text_at(9, path.id).as_deref(), Some("Old."));
    assert_eq!(laptop.text_at(10, path.id).as_deref(), Some("New."));
    assert_eq!(laptop.text_at(30, path.id), None);
    // A removed note is found by part of its id.
    let typed = IdPrefix::parse(&path.id.short()).unwrap();
    let found = laptop.repository().ids_matching(&typed).unwrap();
    assert_eq!(found, BTreeSet::from([path.id]));
}

#[test]
fn notes_of_parallel_machines_are_both_present() {
    let (mut laptop, mut desktop, _remote) = Machine::pair();
    let shared = laptop.write("shared", "Old.");
    let doomed = laptop.write("doomed", "Short-lived.");
    laptop.sync();
    desktop.sync();
    let of_laptop = laptop.after(10).write("laptop's", "Of the laptop.");
    desktop
        .after(11)
        .edit(shared.id, |note| note.body = "New.".to_owned());
    let lock = desktop.notes.lock().unwrap();
    desktop.notes.remove(&lock, doomed).unwrap();
    drop(lock);
    desktop.after(12).commit(&[doomed.id], EDIT);
    desktop.after(20).sync();
    laptop.after(30).sync();
    for (minutes, text, is_doomed_there) in
        [(10, "Old.", true), (11, "New.", true), (12, "New.", false)]
    {
        assert_eq!(laptop.text_at(minutes, shared.id).as_deref(), Some(text));
        assert!(laptop.text_at(minutes, of_laptop.id).is_some(), "{minutes}");
        let is_there = laptop.text_at(minutes, doomed.id).is_some();
        assert_eq!(is_there, is_doomed_there, "{minutes}");
    }
}

#[test]
fn an_undo_is_byte_for_byte_and_can_be_undone() {
    // DEL-03
    let laptop = Machine::new("laptop");
    let path = laptop.write("note", "Old.");
    // The file has an editor's formatting, not ours.
    let odd = laptop
        .file(path.id)
        .unwrap()
        .1
        .replace("Old.", "Old.  \r\n\r\n# Odd\n\n");
    std::fs::write(path.absolute(&laptop.home), &odd).unwrap();
    laptop.commit(&[path.id], EDIT);
    let before = laptop.file(path.id).unwrap();
    let edit = laptop.edit(path.id, |note| {
        note.body = "New.".to_owned();
        note.note_type = NoteType::Procedural;
    });
    let after = laptop.file(path.id).unwrap();
    assert_ne!(before.0, after.0, "it moved to another folder");
    let (fate, undo) = laptop.undo(&edit);
    assert_eq!(fate, Fate::Restored);
    assert_eq!(laptop.file(path.id).unwrap(), before);
    let (fate, redo) = laptop.undo(&undo.unwrap());
    assert_eq!(fate, Fate::Restored);
    assert_eq!(laptop.file(path.id).unwrap(), after);
    laptop.undo(&redo.unwrap());
    assert_eq!(laptop.file(path.id).unwrap(), before);
    // A second undo changes nothing.
    let (fate, undo) = laptop.undo(&edit);
    assert_eq!((fate, undo), (Fate::Left("nothing to undo"), None));
}

#[test]
fn undo_keeps_later_changes() {
    let laptop = Machine::new("laptop");
    let path = laptop.write("note", "One.\n\nTwo.\n\nThree.");
    let edit = laptop.edit(path.id, |note| {
        note.body = "One, wrong.\n\nTwo.\n\nThree.".to_owned();
        note.tags = vec!["wrong".to_owned()];
    });
    laptop.edit(path.id, |note| {
        note.body = "One, wrong.\n\nTwo.\n\nThree, better.".to_owned();
        note.title = "better".to_owned();
    });
    let (fate, undo) = laptop.undo(&edit);
    assert_eq!(fate, Fate::Merged);
    assert!(undo.is_some());
    let note = laptop.notes.read(path).unwrap().note();
    assert_eq!(note.body.trim(), "One.\n\nTwo.\n\nThree, better.");
    assert_eq!((note.title.as_str(), note.tags.len()), ("better", 0));
}

#[test]
fn undo_skips_a_note_with_conflicting_later_changes() {
    let laptop = Machine::new("laptop");
    let text = |text: &'static str| move |note: &mut Note| note.body = text.to_owned();
    let cases: [(&str, &dyn Fn(NoteId)); 4] = [
        ("the same lines were changed since", &|id| {
            laptop.edit(id, text("Third."));
        }),
        ("it was forgotten since", &|id| {
            laptop.forget(id);
        }),
        ("it was deleted since", &|id| {
            let lock = laptop.notes.lock().unwrap();
            let path = laptop.notes.find(id).unwrap();
            laptop.notes.remove(&lock, path).unwrap();
        }),
        ("it is on this machine only by now", &|id| {
            let lock = laptop.notes.lock().unwrap();
            let path = laptop.notes.find(id).unwrap();
            let local = Scope::MachineLocal;
            laptop.notes.set_scope(&lock, path, local).unwrap();
        }),
    ];
    for (reason, later) in cases {
        let path = laptop.write("note", "First.");
        let edit = laptop.edit(path.id, text("Second."));
        later(path.id);
        let before = laptop.file(path.id);
        let (fate, _) = laptop.undo(&edit);
        assert_eq!(fate, Fate::Left(reason));
        assert_eq!(laptop.file(path.id), before, "{reason}");
    }
    // There is neither a sibling nor a proposal.
    assert_eq!(laptop.notes.list().notes.len(), 3);
}

#[test]
fn undo_keeps_uncommitted_changes() {
    let laptop = Machine::new("laptop");
    let path = laptop.write("note", "One.\n\nTwo.");
    let edit = laptop.edit(path.id, |note| note.title = "renamed".to_owned());
    laptop.change(path.id, |note| {
        note.body = "One.\n\nTwo, by hand.".to_owned()
    });
    let (fate, _) = laptop.undo(&edit);
    assert_eq!(fate, Fate::Merged);
    let note = laptop.notes.read(path).unwrap().note();
    assert_eq!(
        (note.title.as_str(), note.body.trim()),
        ("note", "One.\n\nTwo, by hand.")
    );
}

#[test]
fn a_forgotten_note_comes_back_and_goes_again() {
    // DEL-03
    let mut laptop = Machine::new("laptop");
    let path = laptop.write("note", "Kept.");
    let before = laptop.file(path.id);
    let forget = laptop.after(1).forget(path.id);
    let tombstone = laptop.file(path.id);
    let (fate, undo) = laptop.undo(&forget);
    assert_eq!(fate, Fate::Remembered);
    assert_eq!(laptop.file(path.id), before);
    laptop.notes.drop_trashed(path.id).unwrap();
    // The forgotten note is in the trash, as after `forget`.
    let (fate, _) = laptop.after(2).undo(&undo.unwrap());
    assert_eq!(fate, Fate::Forgotten);
    assert_eq!(laptop.file(path.id), tombstone);
    let trashed = laptop.notes.trashed(path.id).unwrap();
    assert_eq!(String::from_utf8(trashed).unwrap(), before.unwrap().1);
}

#[test]
fn undo_of_a_new_note_reaches_all_machines_and_can_be_undone() {
    let (laptop, desktop, _remote) = Machine::pair();
    laptop.write("stays", "Stays.");
    let path = laptop.write("goes", "Goes.");
    let made = laptop.repository().log(Some(path.id), 1).unwrap().remove(0);
    let made = Committed {
        batch: made.batch.unwrap(),
        notes: BTreeSet::from([path.id]),
    };
    laptop.sync();
    desktop.sync();
    let file = desktop.file(path.id);
    // Any machine can undo it.
    let (fate, undo) = desktop.undo(&made);
    assert_eq!(fate, Fate::Removed);
    desktop.sync();
    laptop.sync();
    assert_eq!(laptop.file(path.id), None);
    let (fate, _) = laptop.undo(&undo.unwrap());
    assert_eq!(fate, Fate::Restored);
    laptop.sync();
    desktop.sync();
    assert_eq!(desktop.file(path.id), file);
}

#[test]
fn undo_restores_the_scope() {
    let laptop = Machine::new("laptop");
    let act = Act {
        verb: "move",
        actor: "person",
    };
    let path = laptop.write("note", "Text.");
    let before = laptop.file(path.id);
    let set_scope = |scope| {
        let lock = laptop.notes.lock().unwrap();
        let path = laptop.notes.find(path.id).unwrap();
        laptop.notes.set_scope(&lock, path, scope).unwrap();
        drop(lock);
        laptop.commit(&[path.id], act)
    };
    let hidden = set_scope(Scope::MachineLocal);
    let local = laptop.file(path.id);
    let (fate, _) = laptop.undo(&hidden);
    assert_eq!(fate, Fate::Restored);
    assert_eq!(laptop.file(path.id), before);
    set_scope(Scope::MachineLocal);
    let shown = set_scope(Scope::Portable);
    let (fate, _) = laptop.undo(&shown);
    assert_eq!(fate, Fate::Local);
    assert_eq!(laptop.file(path.id), local);
}

#[test]
fn changes_are_found_by_part_of_their_id() {
    let mut laptop = Machine::new("laptop");
    let path = laptop.write("note", "One.");
    let edit = laptop
        .after(1)
        .edit(path.id, |note| note.body = "Two.".to_owned());
    let batch = edit.batch.to_string();
    let repository = laptop.repository();
    let commit = repository.log(None, 1).unwrap().remove(0).commit;
    let names = [
        &batch[20..],
        &batch[..25],
        &batch.to_lowercase()[20..],
        &commit[..12],
    ];
    for name in names {
        let found = repository.find(&format!("#{name}")).unwrap();
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].batch, Some(edit.batch), "{name}");
    }
    for name in ["", "#", &batch[23..], "ZZZZZZ", &batch[5..15]] {
        assert_eq!(repository.find(name).unwrap(), [], "{name}");
    }
    assert_eq!(repository.batches(Some("agent"), 10).unwrap(), []);
    assert_eq!(
        repository.batches(Some("person"), 1).unwrap()[0].batch,
        Some(edit.batch)
    );
}

#[test]
fn a_hostile_name_of_a_machine_is_one_word_in_a_commit() {
    // GIT-18
    let laptop = Machine::new("lap\ntop> \u{1b}[31m\nAnamnesis-Actor: person");
    laptop.write("note", "One.");
    let event = laptop.repository().log(None, 1).unwrap().remove(0);
    let machine = event.machine.unwrap();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    assert!(machine.chars().all(is_plain), "{machine}");
    assert_eq!(event.actor.as_deref(), Some("person"));
    assert_eq!(event.subject.matches(&machine).count(), 1);
}

#[test]
fn reading_the_history_runs_nothing_that_its_configuration_names() {
    // GIT-04, GIT-05
    let laptop = Machine::new("laptop");
    let path = laptop.write("note", "One.");
    let edit = laptop.edit(path.id, |note| note.body = "Two.".to_owned());
    let git = laptop.home.tree(Scope::Portable).join(".git");
    let witness = git.parent().unwrap().parent().unwrap().join("witness");
    let trap = format!("touch {}", witness.display());
    let traps = [
        "core.pager",
        "core.fsmonitor",
        "core.sshCommand",
        "core.editor",
        "diff.external",
        "diff.trap.command",
        "diff.trap.textconv",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "merge.trap.driver",
        "log.showSignature",
        "gpg.program",
        "alias.log",
        "credential.helper",
    ];
    for key in traps {
        set(&git, key, &trap);
    }
    set(&git, "commit.gpgSign", "true");
    let attributes = "* diff=trap filter=trap merge=trap\n";
    std::fs::write(git.join("info/attributes"), attributes).unwrap();
    std::fs::create_dir_all(git.join("hooks")).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-index-change",
    ] {
        let file = git.join("hooks").join(hook);
        std::fs::write(&file, format!("#!/bin/sh\n{trap}\n")).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;

            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&file, executable).unwrap();
        }
    }
    let repository = laptop.repository();
    let event = repository.log(Some(path.id), 1).unwrap().remove(0);
    assert_eq!(repository.differences(&event.commit).unwrap().len(), 1);
    assert_eq!(repository.versions(path.id, 9).unwrap().len(), 2);
    assert!(repository.at(morning()).unwrap().is_some());
    assert_eq!(laptop.undo(&edit).0, Fate::Restored);
    assert!(!witness.exists());
    // The traps work: git itself runs one of them.
    let status = Command::new("git")
        .args(["-C", git.parent().unwrap().to_str().unwrap(), "status"])
        .output();
    assert!(status.is_ok());
    assert!(witness.exists());
}

fn set(git: &Path, key: &str, value: &str) {
    let file = git.join("config");
    let done = Command::new("git")
        .args(["config", "--file", file.to_str().unwrap(), key, value])
        .status();
    assert!(done.unwrap().success(), "{key}");
}

#[test]
fn commits_are_listed_page_by_page_and_described_apart() {
    let (mut laptop, mut desktop, _remote) = Machine::pair();
    let first = laptop.write("First", "One").id;
    laptop.sync();
    desktop.sync();
    desktop.after(5).write("Elsewhere", "Two");
    laptop
        .after(6)
        .edit(first, |note| note.body = "Three".to_owned());
    desktop.sync();
    laptop.after(7).sync();
    laptop
        .after(8)
        .edit(first, |note| note.body = "Four".to_owned());
    let repository = laptop.repository();
    let all = repository.commits(0, usize::MAX).unwrap();
    let pages = (0..all.len()).flat_map(|skip| repository.commits(skip, 1).unwrap());
    assert_eq!(pages.collect::<Vec<_>>(), all);
    // The join of both machines changed folders, but no note.
    let described = repository.events_of(&all).unwrap();
    assert_eq!(described.len() + 1, all.len());
    assert_eq!(described, repository.log(None, usize::MAX).unwrap());
}
