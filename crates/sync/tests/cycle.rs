//! Machines of one person, joined through a bare repository, by the user's own git.

use std::{collections::BTreeSet, path::PathBuf, process::Command, time::Duration};

use anamnesis_core::{
    id::NoteId,
    note::{Note, NoteType, Scope},
};
use anamnesis_store::{
    home::Home,
    notes::{NotePath, Notes},
};
use anamnesis_sync::{
    Act, Answer, GitBackend, Repository, Settings, SyncBackend, Synced, remote::Remote,
};
use chrono::{DateTime, Utc};
use tempfile::TempDir;

/// A remote and the machines that use it.
struct Fleet {
    folder: TempDir,
}

struct Machine {
    name: &'static str,
    home: Home,
    notes: Notes,
    remote: Option<Remote>,
    answer: Answer,
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_323_045, 0).unwrap()
}

impl Fleet {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fleet = Self { folder };
        run(&[
            "init",
            "--quiet",
            "--bare",
            "--initial-branch=main",
            fleet.remote(),
        ]);
        fleet
    }

    fn remote(&self) -> &'static str {
        Box::leak(
            self.folder
                .path()
                .join("remote.git")
                .to_str()
                .unwrap()
                .to_owned()
                .into_boxed_str(),
        )
    }

    fn machine(&self, name: &'static str) -> Machine {
        let home = Home::new(self.folder.path().join(name));
        home.create().unwrap();
        Machine {
            name,
            notes: Notes::new(home.clone(), Duration::from_secs(5)),
            home,
            remote: Some(Remote::parse(self.remote(), false).unwrap()),
            answer: Answer::None,
        }
    }
}

fn run(arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

impl Machine {
    fn sync(&self) -> Synced {
        let settings = Settings {
            machine_id: self.name.to_owned(),
            remote: self.remote.clone(),
            environment: anamnesis_sync::git::GitEnvironment::choose(std::env::vars_os()),
            now: now(),
            patience: Duration::from_secs(5),
            time_limit: Duration::from_secs(60),
            answer: self.answer,
            receipts: Vec::new(),
        };
        GitBackend::new(&self.home, &self.notes, settings)
            .sync()
            .unwrap()
    }

    fn write(&self, title: &str) -> NotePath {
        let note = Note {
            title: title.to_owned(),
            body: format!("About {title}."),
            machine_id: self.name.to_owned(),
            ..Note::new(NoteId::generate(now()), NoteType::Semantic, now())
        };
        let lock = self.notes.lock().unwrap();
        self.notes.create(&lock, &note).unwrap().path
    }

    /// Writes a note and commits it, as a command does.
    fn command(&self, title: &str) -> NotePath {
        let path = self.write(title);
        let lock = self.notes.lock().unwrap();
        let repository = Repository::open_or_create(&self.home, &lock, self.name, now()).unwrap();
        let act = Act {
            verb: "write",
            actor: "person",
        };
        let ids = BTreeSet::from([path.id]);
        repository.commit_notes(&lock, &ids, act).unwrap();
        path
    }

    fn edit(&self, path: NotePath, change: impl FnOnce(&mut Note)) -> NotePath {
        let lock = self.notes.lock().unwrap();
        self.notes.update(&lock, path, change).unwrap().path
    }

    fn title(&self, id: NoteId) -> Option<String> {
        let path = self.notes.find(id)?;
        Some(self.notes.read(path).unwrap().note().title)
    }

    /// Every file of the portable tree that is not git's, with its bytes.
    fn tree(&self) -> Vec<(PathBuf, String)> {
        let root = self.home.tree(Scope::Portable);
        let mut files = Vec::new();
        let mut pending = vec![root.clone()];
        while let Some(folder) = pending.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with(".git") {
                    continue;
                }
                if path.is_dir() {
                    pending.push(path);
                } else {
                    let text = std::fs::read_to_string(&path).unwrap();
                    files.push((path.strip_prefix(&root).unwrap().to_owned(), text));
                }
            }
        }
        files.sort();
        files
    }

    fn git(&self, arguments: &[&str]) -> String {
        let folder = self.home.tree(Scope::Portable);
        let mut all = vec!["-C", folder.to_str().unwrap()];
        all.extend(arguments);
        run(&all)
    }
}

#[test]
fn what_one_machine_wrote_the_other_has() {
    let fleet = Fleet::new();
    let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
    let first = laptop.write("first");
    let second = desktop.write("second");
    let sent = laptop.sync();
    assert!(sent.pushed, "{sent:?}");
    let joined = desktop.sync();
    assert!(joined.pushed && joined.pulled > 0, "{joined:?}");
    assert_eq!(joined.changed, [first]);
    laptop.sync();
    assert_eq!(laptop.title(second.id).as_deref(), Some("second"));
    assert_eq!(laptop.tree(), desktop.tree());
    // git agrees that nothing is left to do.
    for machine in [&laptop, &desktop] {
        assert_eq!(machine.git(&["status", "--porcelain"]), "");
        machine.git(&["fsck", "--strict"]);
    }
    let again = laptop.sync();
    assert_eq!((again.pulled, again.detail.as_str()), (0, "synced"));
    assert_eq!(
        laptop.git(&["log", "-1", "--format=%an <%ae>|%cn"]),
        "anamnesis <anamnesis@desktop>|anamnesis\n"
    );
}

#[test]
fn a_new_machine_has_everything_and_adds_nothing() {
    let fleet = Fleet::new();
    let laptop = fleet.machine("laptop");
    laptop.write("first");
    laptop.sync();
    let head = laptop.git(&["rev-parse", "HEAD"]);
    let fresh = fleet.machine("fresh");
    let joined = fresh.sync();
    assert!(joined.pushed);
    assert_eq!(fresh.tree(), laptop.tree());
    assert_eq!(fresh.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn a_note_deleted_or_moved_on_one_machine_follows_on_the_other() {
    let fleet = Fleet::new();
    let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
    let goes = laptop.write("goes");
    let moves = laptop.write("moves");
    let hides = laptop.write("hides");
    laptop.sync();
    desktop.sync();
    let lock = desktop.notes.lock().unwrap();
    desktop.notes.remove(&lock, goes).unwrap();
    desktop
        .notes
        .set_scope(&lock, hides, Scope::MachineLocal)
        .unwrap();
    drop(lock);
    let moved = desktop.edit(moves, |note| note.note_type = NoteType::Procedural);
    desktop.sync();
    laptop.sync();
    assert_eq!(laptop.notes.find(goes.id), None);
    assert_eq!(laptop.notes.find(hides.id), None);
    assert_eq!(laptop.notes.find(moves.id), Some(moved));
    assert_eq!(laptop.tree(), desktop.tree());
    assert_eq!(laptop.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_is_committed_after_a_killed_sync_stays() {
    // Killed when it had begun to bring files to a commit, and when it had all but ended.
    for applying in ["FETCH_HEAD", "HEAD"] {
        let fleet = Fleet::new();
        let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
        laptop.write("first");
        laptop.sync();
        desktop.sync();
        let second = laptop.write("second");
        laptop.sync();
        desktop.git(&["fetch", "--quiet", fleet.remote(), "main"]);
        desktop.git(&["update-ref", "refs/anamnesis/applying", applying]);
        let third = desktop.command("third");
        desktop.sync();
        laptop.sync();
        for machine in [&laptop, &desktop] {
            assert_eq!(machine.title(second.id).as_deref(), Some("second"));
            assert_eq!(
                machine.title(third.id).as_deref(),
                Some("third"),
                "{applying}"
            );
        }
        assert_eq!(laptop.tree(), desktop.tree());
    }
}

#[cfg(unix)]
#[test]
fn a_commit_during_a_push_is_no_rewritten_history() {
    use std::os::unix::fs::PermissionsExt;

    let fleet = Fleet::new();
    let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
    laptop.write("first");
    laptop.sync();
    desktop.sync();
    // The remote has taken the branch, and laptop's push has not ended yet.
    let hook = format!("{}/hooks/post-receive", fleet.remote());
    let own = laptop.home.tree(Scope::Portable);
    let own = own.join(".git").display().to_string();
    let script = format!(
        "#!/bin/sh\nunset GIT_DIR GIT_QUARANTINE_PATH\nexport GIT_DIR='{own}'\n\
         git -c user.name=a -c user.email=b update-ref refs/heads/main \\\n\
         $(git -c user.name=a -c user.email=b commit-tree -p main -m later main^{{tree}})\n"
    );
    std::fs::write(&hook, script).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    laptop.write("second");
    laptop.sync();
    assert_eq!(laptop.git(&["log", "-1", "--format=%s"]), "later\n");
    std::fs::remove_file(&hook).unwrap();
    let third = desktop.write("third");
    desktop.sync();
    let synced = laptop.sync();
    assert_eq!(synced.held, None);
    assert_eq!(laptop.title(third.id).as_deref(), Some("third"));
}

#[test]
fn a_half_made_repository_is_gone_when_there_is_one() {
    let fleet = Fleet::new();
    let laptop = fleet.machine("laptop");
    let half_made = laptop.home.tree(Scope::Portable);
    let half_made = half_made.join(".git.01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp");
    std::fs::create_dir_all(half_made.join("refs")).unwrap();
    laptop.write("first");
    laptop.sync();
    assert!(!half_made.exists());
}
