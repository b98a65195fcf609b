//! A remote, the machines that use it, and a stranger who may write to it.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, Scope},
};
use anamnesis_store::{
    fs::home::Home,
    notes::{NotePath, Notes},
};
use anamnesis_sync::{
    Act, Error, GitBackend, HeldDecision, Reached, Repository, Settings, State, Synced,
    git::GitEnvironment, remote::Remote,
};
use chrono::{DateTime, Utc};
use git2::{ObjectType, Oid, Signature, Time};
use tempfile::TempDir;

use crate::after_push::variables;

/// git's modes of what a tree holds.
pub(crate) const FILE: u32 = 0o100_644;
pub(crate) const EXECUTABLE: u32 = 0o100_755;
pub(crate) const LINK: u32 = 0o120_000;
pub(crate) const SUBMODULE: u32 = 0o160_000;
pub(crate) const FOLDER: u32 = 0o040_000;

/// A remote and the machines that use it.
pub(crate) struct Fleet {
    folder: TempDir,
}

pub(crate) struct Machine {
    pub(crate) name: &'static str,
    pub(crate) home: Home,
    pub(crate) notes: Notes,
    pub(crate) remote: Option<Remote>,
    pub(crate) answer: HeldDecision,
    pub(crate) now: DateTime<Utc>,
}

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_323_045, 0).unwrap()
}

pub(crate) fn note(title: &str, machine: &str) -> Note {
    Note {
        title: title.to_owned(),
        body: format!("About {title}."),
        machine_id: machine.to_owned(),
        ..Note::new(NoteId::generate(now()), NoteType::Semantic, now())
    }
}

impl Fleet {
    pub(crate) fn new() -> Self {
        let fleet = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fleet.bare("remote.git");
        fleet
    }

    /// Creates another remote and returns its path.
    pub(crate) fn bare(&self, name: &str) -> String {
        let path = self.path(name);
        let path = path.to_str().unwrap();
        run(&["init", "--quiet", "--bare", "--initial-branch=main", path]);
        path.to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn remote(&self) -> String {
        self.path("remote.git").to_str().unwrap().to_owned()
    }

    pub(crate) fn machine(&self, name: &'static str) -> Machine {
        self.machine_at(name, &self.path(name))
    }

    /// Creates a machine with its store in this folder.
    pub(crate) fn machine_at(&self, name: &'static str, store: &Path) -> Machine {
        let home = Home::new(store);
        home.create().unwrap();
        Machine {
            name,
            notes: Notes::new(home.clone(), Duration::from_secs(5)),
            home,
            remote: Some(Remote::parse(&self.remote(), false).unwrap()),
            answer: HeldDecision::None,
            now: now(),
        }
    }

    /// Creates two machines with the same notes.
    pub(crate) fn pair(&self, titles: &[&str]) -> (Machine, Machine, Vec<NotePath>) {
        let (laptop, desktop) = (self.machine("laptop"), self.machine("desktop"));
        let paths = titles.iter().map(|title| laptop.write(title)).collect();
        laptop.sync();
        desktop.sync();
        (laptop, desktop, paths)
    }

    pub(crate) fn stranger(&self) -> Stranger {
        Stranger {
            git: git2::Repository::open_bare(self.path("remote.git")).unwrap(),
        }
    }

    /// Returns the tip of the remote's branch.
    pub(crate) fn tip(&self) -> String {
        run(&["-C", &self.remote(), "rev-parse", "main"])
    }

    /// Returns everything in the fleet's folder that no sync may change, with its content.
    pub(crate) fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let is_ours = |path: &Path| {
            ["memory", "derived", "quarantine", "local", "remote.git"]
                .iter()
                .any(|name| path.ends_with(name))
        };
        files(self.folder.path(), &is_ours)
    }
}

/// Every file below a folder by its path in it; a link counts as a file that says where it leads.
fn files(root: &Path, is_left_out: &dyn Fn(&Path) -> bool) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if is_left_out(&path) {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                pending.push(path);
                continue;
            }
            let content = if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                format!("-> {}", target.display()).into_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            files.insert(path.strip_prefix(root).unwrap().to_owned(), content);
        }
    }
    files
}

pub(crate) fn run(arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

impl Machine {
    fn settings(&self) -> Settings {
        Settings {
            machine_id: self.name.to_owned(),
            remote: self.remote.clone(),
            environment: GitEnvironment::choose(variables(self.home.root().parent().unwrap())),
            now: self.now,
            timeout: Duration::from_secs(30),
            time_limit: Duration::from_secs(120),
            answer: self.answer,
        }
    }

    pub(crate) fn try_sync(&self) -> Result<Synced, Error> {
        GitBackend::new(&self.home, &self.notes, self.settings()).sync()
    }

    /// Syncs, and returns the steps that were told.
    pub(crate) fn steps(&self) -> Vec<&'static str> {
        let steps = RefCell::new(Vec::new());
        GitBackend::new(&self.home, &self.notes, self.settings())
            .on_step(|step| steps.borrow_mut().push(step))
            .sync()
            .unwrap();
        steps.into_inner()
    }

    pub(crate) fn sync(&self) -> Synced {
        self.try_sync().unwrap()
    }

    /// Checks the repository for damage, as a command does after an error in the history.
    pub(crate) fn repair(&self) -> Result<bool, Error> {
        GitBackend::new(&self.home, &self.notes, self.settings()).repair()
    }

    /// Syncs with a decision of the person.
    pub(crate) fn answer(&self, answer: HeldDecision) -> Synced {
        let settings = Settings {
            answer,
            ..self.settings()
        };
        GitBackend::new(&self.home, &self.notes, settings)
            .sync()
            .unwrap()
    }

    /// Joins for the first time, as `init` does.
    pub(crate) fn init(&self) -> Result<Reached, Error> {
        GitBackend::new(&self.home, &self.notes, self.settings()).init()
    }

    pub(crate) fn state(&self) -> State {
        GitBackend::new(&self.home, &self.notes, self.settings())
            .state()
            .unwrap()
    }

    /// Returns the reason why a sync is refused.
    pub(crate) fn refusal(&self) -> String {
        self.try_sync().unwrap_err().to_string()
    }

    pub(crate) fn write(&self, title: &str) -> NotePath {
        let lock = self.notes.lock().unwrap();
        let note = note(title, self.name);
        self.notes.create(&lock, &note).unwrap().path
    }

    /// Writes a note and commits it, as a command does.
    pub(crate) fn command(&self, title: &str) -> NotePath {
        let path = self.write(title);
        self.commit(path, "write");
        path
    }

    /// Forgets a note and commits that, as a command does.
    pub(crate) fn forget(&self, path: NotePath) {
        let lock = self.notes.lock().unwrap();
        self.notes.forget(&lock, path, self.now).unwrap();
        drop(lock);
        self.commit(path, "forget");
    }

    fn commit(&self, path: NotePath, verb: &str) {
        let lock = self.notes.lock().unwrap();
        let repository = Repository::open_or_create(&self.home, &lock, self.name, now()).unwrap();
        let actor = "person";
        let ids = BTreeSet::from([path.id]);
        repository
            .commit_notes(&lock, &ids, Act { verb, actor })
            .unwrap();
    }

    /// Syncs while a program runs between the commit of the folder and the join: in place of the
    /// pack that the remote sends.
    #[cfg(unix)]
    pub(crate) fn sync_during(&self, script: &str) -> Synced {
        use std::os::unix::fs::PermissionsExt;

        let remote = self.remote.as_ref().unwrap().as_str().to_owned();
        let folder = Path::new(&remote).with_extension("bin");
        fs::create_dir_all(&folder).unwrap();
        let git = folder.join("git");
        let real = run(&["--exec-path"]);
        let real = Path::new(real.trim()).join("git");
        let text = format!(
            "#!/bin/sh\ncase \" $* \" in *\" fetch \"*) {script} ;; esac\nexec {} \"$@\"\n",
            real.display()
        );
        fs::write(&git, text).unwrap();
        fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
        let mut path = folder.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let variables = std::env::vars_os().map(|(name, value)| {
            if name == "PATH" {
                (name, path.clone())
            } else {
                (name, value)
            }
        });
        let settings = Settings {
            environment: GitEnvironment::choose(variables),
            ..self.settings()
        };
        GitBackend::new(&self.home, &self.notes, settings)
            .sync()
            .unwrap()
    }

    pub(crate) fn edit(&self, path: NotePath, change: impl FnOnce(&mut Note)) -> NotePath {
        let lock = self.notes.lock().unwrap();
        self.notes.update(&lock, path, change).unwrap().path
    }

    pub(crate) fn remove(&self, paths: &[NotePath]) {
        let lock = self.notes.lock().unwrap();
        for path in paths {
            self.notes.remove(&lock, *path).unwrap();
        }
    }

    pub(crate) fn title(&self, id: NoteId) -> Option<String> {
        let path = self.notes.find(id)?;
        Some(self.notes.read(path).unwrap().note().title)
    }

    /// Returns the titles of all readable portable notes, sorted.
    pub(crate) fn titles(&self) -> Vec<String> {
        let notes = self.notes.list_scope(Scope::Portable).notes;
        let read = notes
            .iter()
            .filter_map(|(path, _)| self.notes.read(*path).ok());
        let mut titles: Vec<String> = read.map(|stored| stored.note().title).collect();
        titles.sort();
        titles
    }

    /// Returns the folder of the portable notes.
    pub(crate) fn folder(&self) -> PathBuf {
        self.home.tree(Scope::Portable)
    }

    /// Returns every file of the portable tree except git's, with its bytes.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files(&self.folder(), &|path| path.ends_with(".git"))
    }

    /// Returns the parts of `.git` that could make git run a program.
    pub(crate) fn git_settings(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = files(&self.folder().join(".git"), &|path| {
            path.ends_with("objects")
        });
        files.retain(|path, _| {
            path.starts_with("config") || path.starts_with("hooks") || path.starts_with("info")
        });
        files
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let folder = self.folder();
        let mut all = vec!["-C", folder.to_str().unwrap()];
        all.extend(arguments);
        run(&all)
    }
}

/// Writes objects into the remote that no git would.
pub(crate) struct Stranger {
    pub(crate) git: git2::Repository,
}

impl Stranger {
    /// Returns the tree of the remote's branch; an empty one without a branch.
    pub(crate) fn tree(&self) -> Oid {
        match self.git.find_reference("refs/heads/main") {
            Ok(main) => main.peel_to_tree().unwrap().id(),
            Err(_) => self.folder(&[]),
        }
    }

    pub(crate) fn blob(&self, bytes: impl AsRef<[u8]>) -> Oid {
        self.git.blob(bytes.as_ref()).unwrap()
    }

    /// Writes a tree with these entries, whatever their names.
    pub(crate) fn folder(&self, entries: &[(u32, Vec<u8>, Oid)]) -> Oid {
        let mut entries = entries.to_vec();
        entries.sort_by_key(|(mode, name, _)| {
            let end: &[u8] = if *mode == FOLDER { b"/" } else { b"" };
            [name, end].concat()
        });
        let mut bytes = Vec::new();
        for (mode, name, oid) in entries {
            bytes.extend(format!("{mode:o} ").bytes());
            bytes.extend(name);
            bytes.push(0);
            bytes.extend(oid.as_bytes());
        }
        self.git
            .odb()
            .unwrap()
            .write(ObjectType::Tree, &bytes)
            .unwrap()
    }

    /// Writes a tree with one entry added or replaced, creating folders as needed.
    pub(crate) fn put(&self, tree: Oid, path: &[&[u8]], mode: u32, oid: Oid) -> Oid {
        let (name, below) = path.split_first().unwrap();
        let tree = self.git.find_tree(tree).unwrap();
        let old = tree.iter().find(|entry| entry.name_bytes() == *name);
        let new = if below.is_empty() {
            (mode, oid)
        } else {
            let inner = old.filter(|entry| entry.kind() == Some(ObjectType::Tree));
            let inner = inner.map_or_else(|| self.folder(&[]), |entry| entry.id());
            (FOLDER, self.put(inner, below, mode, oid))
        };
        let mut entries = self.entries(tree.id());
        entries.retain(|(_, old, _)| old != name);
        entries.push((new.0, name.to_vec(), new.1));
        self.folder(&entries)
    }

    /// Writes a tree with a file added at a path.
    pub(crate) fn put_file(&self, tree: Oid, path: &str, content: impl AsRef<[u8]>) -> Oid {
        let path: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        self.put(tree, &path, FILE, self.blob(content))
    }

    /// Writes a tree without one entry.
    pub(crate) fn without(&self, tree: Oid, path: &str) -> Oid {
        let (folder, name) = path.split_once('/').unwrap_or(("", path));
        let mut entries = self.entries(tree);
        if folder.is_empty() {
            entries.retain(|(_, old, _)| old != name.as_bytes());
        } else {
            for entry in &mut entries {
                if entry.1 == folder.as_bytes() {
                    entry.2 = self.without(entry.2, name);
                }
            }
        }
        self.folder(&entries)
    }

    fn entries(&self, tree: Oid) -> Vec<(u32, Vec<u8>, Oid)> {
        let tree = self.git.find_tree(tree).unwrap();
        tree.iter()
            .map(|entry| {
                let mode = u32::try_from(entry.filemode_raw()).unwrap();
                (mode, entry.name_bytes().to_vec(), entry.id())
            })
            .collect()
    }

    /// Writes a tree with an ordinary note added.
    pub(crate) fn put_note(&self, tree: Oid, title: &str) -> Oid {
        let note = note(title, "elsewhere");
        self.put_file(tree, &format!("semantic/{}.md", note.id), note.render())
    }

    /// Commits a tree on top of the remote's branch.
    pub(crate) fn push(&self, tree: Oid) {
        let parent = self.git.refname_to_id("refs/heads/main").ok();
        self.commit(tree, parent, "refs/heads/main");
    }

    /// Replaces the remote's branch with one commit of a tree.
    pub(crate) fn rewrite(&self, tree: Oid) {
        self.commit(tree, None, "refs/heads/main");
    }

    pub(crate) fn commit(&self, tree: Oid, parent: Option<Oid>, branch: &str) {
        let author = Signature::new("dev", "dev@example.com", &Time::new(1_767_323_000, 0));
        let author = author.unwrap();
        let parent = parent.map(|parent| self.git.find_commit(parent).unwrap());
        let tree = self.git.find_tree(tree).unwrap();
        let parents: Vec<_> = parent.iter().collect();
        let commit = self
            .git
            .commit(None, &author, &author, "work", &tree, &parents);
        self.git
            .reference(branch, commit.unwrap(), true, "")
            .unwrap();
    }
}
