//! Finds the project of a folder: by a marker, the git remote, the repository's folder, or the
//! folder.
//!
//! libgit2 reads git's configuration without running anything. A repository can set only its own key.
//! A repository that libgit2 cannot open, for example because of its reference format, has a project
//! too.

mod identity;

pub use self::identity::{IdentifiedProject, Identities, Places};

use std::{
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use anamnesis_note::{note::GLOBAL, project_key};
pub(crate) use anamnesis_session::session_note::DEFAULT_BRANCHES;
use git2::{Config, ConfigLevel};

use crate::fs::file;

/// The path of the marker file in a project's folder.
const MARKER: &str = ".anamnesis/project";

/// The maximum size of a marker file, in bytes.
const MAX_MARKER_LENGTH: usize = 4096;

/// The source of a project's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A marker file.
    Marker(PathBuf),
    /// The remote `origin` of the repository at this folder.
    Remote(PathBuf),
    /// The name of the repository's folder.
    Repository(PathBuf),
    /// The name of the folder itself.
    Folder,
    /// There is no source.
    Nothing,
    /// The key was named explicitly.
    Named,
}

/// A project: its key and the key's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The key, or `global` without a source.
    pub key: String,
    /// The source.
    pub step: Step,
    /// The other keys whose notes its sessions get: its own, past and present, and its groups'.
    pub also: Vec<String>,
    /// Those of them that belong to what the folder is in: a folder above without git, or the repository
    /// of a submodule.
    pub around: Vec<String>,
    /// The key in a marker that is ignored because it belongs to another project.
    pub untrusted: Option<String>,
}

impl Project {
    /// Returns a project that was named explicitly.
    pub fn named(key: &str) -> Self {
        Self::new(key.to_owned(), Step::Named)
    }

    fn new(key: String, step: Step) -> Self {
        Self {
            key,
            step,
            also: Vec::new(),
            around: Vec::new(),
            untrusted: None,
        }
    }

    /// Returns all keys whose notes its sessions get, the project's current one first.
    pub fn all_keys(&self) -> Vec<String> {
        let mut keys = vec![self.key.clone()];
        keys.extend(self.also.iter().cloned());
        keys
    }

    /// Returns the folder of its repository, if its key is from there.
    pub fn repository(&self) -> Option<&Path> {
        match &self.step {
            Step::Remote(root) | Step::Repository(root) => Some(root),
            _ => None,
        }
    }

    /// Returns the keys of the project itself and of its groups.
    pub fn own_keys(&self) -> Vec<String> {
        let mut keys = self.all_keys();
        keys.retain(|key| !self.around.contains(key));
        keys
    }

    /// Returns the remark beside a note with this key if it comes from what the folder is in.
    pub fn remark_on(&self, key: &str) -> Option<String> {
        let is_around = self.around.iter().any(|around| around == key);
        is_around.then(|| format!("from {key}, which this folder is in"))
    }

    /// Finds the project of the absolute path `folder`; `user_home` ends the search for a marker.
    pub fn find(folder: &Path, user_home: Option<&Path>) -> Self {
        match marker(folder, user_home) {
            Some((key, path)) => Self::new(key, Step::Marker(path)),
            None => Self::without_marker(folder),
        }
    }

    /// Finds the project of `folder`, ignoring markers.
    fn without_marker(folder: &Path) -> Self {
        if let Some(repository) = Repository::around(folder) {
            if let Some(key) = repository.remote() {
                return Self::new(key, Step::Remote(repository.root));
            }
            if let Some(key) = repository
                .name()
                .and_then(|name| project_key::of_folder_name(&name))
            {
                return Self::new(key, Step::Repository(repository.root));
            }
        }
        let name = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        match name.as_deref().and_then(project_key::of_folder_name) {
            Some(key) => Self::new(key, Step::Folder),
            None => Self::new(GLOBAL.to_owned(), Step::Nothing),
        }
    }
}

/// Returns the checked-out branch; none outside git and on a detached head.
pub fn branch_of(folder: &Path) -> Option<String> {
    let head = Repository::around(folder)?.directory.join("HEAD");
    let text = file::read_text(&head, MAX_MARKER_LENGTH);
    let branch = text.trim().strip_prefix("ref: refs/heads/")?;
    Some(branch.to_owned())
}

/// Returns whether most work is done on a branch, which therefore says nothing.
pub fn is_default_branch(folder: &Path, branch: &str) -> bool {
    let of_origin = || {
        let repository = Repository::around(folder)?;
        let head = repository.common.join("refs/remotes/origin/HEAD");
        let text = file::read_text(&head, MAX_MARKER_LENGTH);
        let name = text.trim().strip_prefix("ref: refs/remotes/origin/")?;
        Some(name == branch)
    };
    DEFAULT_BRANCHES.contains(&branch) || of_origin().unwrap_or(false)
}

/// Returns the folder of the enclosing repository with links resolved; none outside git.
pub(crate) fn repository_around(folder: &Path) -> Option<PathBuf> {
    Repository::around(folder).map(|repository| repository.root)
}

/// Returns the nearest marker with text, from `folder` upward, below the user's home and the root.
fn marker(folder: &Path, user_home: Option<&Path>) -> Option<(String, PathBuf)> {
    folder
        .ancestors()
        .take_while(|folder| Some(*folder) != user_home && folder.parent().is_some())
        .find_map(|folder| {
            let path = folder.join(MARKER);
            let key = project_key::of_marker(&file::read_text(&path, MAX_MARKER_LENGTH))?;
            Some((key, path))
        })
}

/// A git repository on disk.
struct Repository {
    /// The worktree's folder.
    root: PathBuf,
    /// The git folder of this worktree.
    directory: PathBuf,
    /// The git folder with the configuration that all worktrees share.
    common: PathBuf,
}

impl Repository {
    /// Finds the repository of `folder` as git does: the nearest `.git` upward.
    fn around(folder: &Path) -> Option<Self> {
        // Git uses the resolved path of a repository.
        let folder = dunce::canonicalize(folder).ok()?;
        folder.ancestors().find_map(|root| {
            let git = root.join(".git");
            let directory = if git.is_dir() {
                git
            } else if git.is_file() {
                let text = file::read_text(&git, MAX_MARKER_LENGTH);
                root.join(text.lines().next()?.strip_prefix("gitdir:")?.trim())
            } else if is_git_directory(root) {
                root.to_owned()
            } else {
                return None;
            };
            is_git_directory(&directory).then(|| Self {
                root: root.to_owned(),
                common: common_of(&directory),
                directory,
            })
        })
    }

    /// Returns the folder of the repository that this one is a submodule of. Git keeps a submodule below
    /// its own folder; a file that names any other place is not followed.
    fn superproject(&self) -> Option<PathBuf> {
        let outer = Self::around(self.root.parent()?)?;
        let own = dunce::canonicalize(&self.directory).ok()?;
        let modules = dunce::canonicalize(outer.directory.join("modules")).ok()?;
        own.starts_with(modules).then_some(outer.root)
    }

    /// Returns what stays the same when the folder is moved or renamed, and differs in a clone: the time
    /// at which git made a file that nothing changes later.
    fn made_at(&self) -> Option<String> {
        let description = fs::symlink_metadata(self.common.join("description")).ok()?;
        let made = description
            .modified()
            .ok()?
            .duration_since(UNIX_EPOCH)
            .ok()?;
        // Whole seconds are those of an archive, or of a file system that cannot tell two clones apart.
        (made.subsec_nanos() != 0).then(|| made.as_nanos().to_string())
    }

    /// Returns the key from the remote `origin`.
    fn remote(&self) -> Option<String> {
        self.origin().as_deref().and_then(project_key::of_remote)
    }

    /// Returns the name of the repository's folder; for a linked worktree, that of the main worktree.
    fn name(&self) -> Option<String> {
        let is_linked = self.common != self.directory;
        let folder = match dunce::canonicalize(&self.common) {
            Ok(common) if is_linked && common.ends_with(".git") => common.parent()?.to_owned(),
            Ok(common) if is_linked => common,
            _ => self.root.clone(),
        };
        let name = folder.file_name()?.to_string_lossy().into_owned();
        // Bare repositories have this suffix.
        let is_bare = is_linked && name.len() > ".git".len();
        let bare = name.strip_suffix(".git").filter(|_| is_bare);
        Some(bare.map_or_else(|| name.clone(), str::to_owned))
    }

    /// Returns the URL of the remote `origin`, with `url.*.insteadOf` applied as in git.
    fn origin(&self) -> Option<String> {
        // Conditional includes apply only if libgit2 can open the repository.
        let config = if let Ok(repository) = git2::Repository::open(&self.root) {
            repository.config().ok()?
        } else {
            let mut config = Config::open_default().or_else(|_| Config::new()).ok()?;
            config
                .add_file(&self.common.join("config"), ConfigLevel::Local, false)
                .ok()?;
            config
        };
        let address = config.get_string("remote.origin.url").ok()?;
        Some(instead_of(&config, address))
    }
}

/// Replaces the longest prefix that a `url.<base>.insteadOf` names with its base.
fn instead_of(config: &Config, address: String) -> String {
    let mut best: Option<(usize, String)> = None;
    let Ok(mut entries) = config.entries(Some("^url\\..*\\.insteadof$")) else {
        return address;
    };
    while let Some(Ok(entry)) = entries.next() {
        let (Ok(name), Ok(prefix)) = (entry.name(), entry.value()) else {
            continue;
        };
        let base = name
            .strip_prefix("url.")
            .and_then(|rest| rest.get(..rest.len().checked_sub(10)?));
        if let Some(base) = base
            && address.starts_with(prefix)
            && best
                .as_ref()
                .is_none_or(|(length, _)| prefix.len() > *length)
        {
            best = Some((prefix.len(), base.to_owned()));
        }
    }
    match best {
        Some((length, base)) => format!("{base}{}", &address[length..]),
        None => address,
    }
}

fn is_git_directory(path: &Path) -> bool {
    path.join("HEAD").is_file()
        && (path.join("objects").is_dir() || path.join("commondir").is_file())
}

/// A linked worktree has a file that names the folder with the shared configuration.
fn common_of(directory: &Path) -> PathBuf {
    match file::read_head(&directory.join("commondir"), MAX_MARKER_LENGTH) {
        Ok((bytes, ..)) => directory.join(String::from_utf8_lossy(&bytes).trim()),
        Err(_) => directory.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    pub(super) struct Fixture {
        pub(super) folder: tempfile::TempDir,
    }

    impl Fixture {
        pub(super) fn new() -> Self {
            Self {
                folder: tempfile::tempdir().unwrap(),
            }
        }

        pub(super) fn path(&self, path: &str) -> PathBuf {
            let path = self.folder.path().join(path);
            fs::create_dir_all(&path).unwrap();
            path
        }

        /// Git with nothing of the user's.
        pub(super) fn git(folder: &Path, arguments: &[&str]) {
            let status = Command::new("git")
                .args(["-c", "user.name=dev", "-c", "user.email=dev@example.com"])
                .args(arguments)
                .current_dir(folder)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .output()
                .unwrap();
            assert!(
                status.status.success(),
                "git {arguments:?}: {}",
                String::from_utf8_lossy(&status.stderr)
            );
        }

        pub(super) fn repository(&self, path: &str) -> PathBuf {
            let folder = self.path(path);
            Self::git(&folder, &["init", "--quiet"]);
            folder
        }

        fn key(&self, folder: &Path) -> String {
            Project::find(folder, Some(self.folder.path())).key
        }
    }

    #[test]
    fn the_steps_in_order() {
        let fixture = Fixture::new();
        let repository = fixture.repository("Work/Shop");
        let inside = fixture.path("Work/Shop/deep/er");
        assert_eq!(fixture.key(&inside), "shop");
        Fixture::git(
            &repository,
            &["remote", "add", "origin", "git@github.com:Acme/Shop.git"],
        );
        assert_eq!(fixture.key(&inside), "github.com/acme/shop");
        fixture.path("Work/Shop/.anamnesis");
        fs::write(repository.join(MARKER), "\nMy Key\n").unwrap();
        let project = Project::find(&inside, Some(fixture.folder.path()));
        assert_eq!(
            project,
            Project::new("My Key".to_owned(), Step::Marker(repository.join(MARKER)))
        );
        assert_eq!(fixture.key(&fixture.path("Loose Folder")), "loose folder");
    }

    #[test]
    fn only_origin_counts() {
        let fixture = Fixture::new();
        let repository = fixture.repository("shop");
        Fixture::git(&repository, &["remote", "add", "upstream", "https://h/o/r"]);
        assert_eq!(fixture.key(&repository), "shop");
    }

    #[test]
    fn instead_of_is_applied() {
        let fixture = Fixture::new();
        let repository = fixture.repository("shop");
        Fixture::git(
            &repository,
            &["remote", "add", "origin", "work:acme/shop.git"],
        );
        Fixture::git(
            &repository,
            &["config", "url.git@git.example.com:.insteadOf", "work:"],
        );
        Fixture::git(
            &repository,
            &["config", "url.https://never/.insteadOf", "wor"],
        );
        assert_eq!(fixture.key(&repository), "git.example.com/acme/shop");
    }

    #[test]
    fn work_trees_share() {
        // INJ-15
        let fixture = Fixture::new();
        let repository = fixture.repository("main");
        Fixture::git(
            &repository,
            &["commit", "--quiet", "--allow-empty", "--message", "x"],
        );
        Fixture::git(&repository, &["worktree", "add", "--quiet", "../tree"]);
        let tree = fixture.path("tree");
        assert_eq!(fixture.key(&tree), "main");
        Fixture::git(&repository, &["remote", "add", "origin", "https://h/o/r"]);
        assert_eq!(fixture.key(&tree), "h/o/r");
    }

    #[test]
    fn a_repository_that_libgit2_cannot_open_has_its_remote() {
        let fixture = Fixture::new();
        let repository = fixture.repository("shop");
        Fixture::git(&repository, &["remote", "add", "origin", "https://h/o/r"]);
        Fixture::git(
            &repository,
            &["config", "core.repositoryformatversion", "1"],
        );
        Fixture::git(
            &repository,
            &["config", "extensions.refstorage", "reftable"],
        );
        assert_eq!(fixture.key(&repository), "h/o/r");
    }

    #[test]
    fn markers_end_below_the_users_home() {
        let fixture = Fixture::new();
        fixture.path(".anamnesis");
        fs::write(fixture.folder.path().join(MARKER), "everything").unwrap();
        let folder = fixture.path("a/b");
        assert_eq!(fixture.key(&folder), "b");
        assert_eq!(Project::find(&folder, None).key, "everything");
    }

    #[test]
    fn odd_markers_are_passed_over() {
        let fixture = Fixture::new();
        let folder = fixture.path("a/b");
        fixture.path("a/b/.anamnesis");
        fs::write(folder.join(MARKER), "  \n\n").unwrap();
        fixture.path("a/.anamnesis");
        fs::write(fixture.path("a").join(MARKER), "outer").unwrap();
        assert_eq!(fixture.key(&folder), "outer");
        fs::remove_file(folder.join(MARKER)).unwrap();
        fixture.path("a/b/.anamnesis/project");
        assert_eq!(fixture.key(&folder), "outer");
    }

    #[cfg(unix)]
    #[test]
    fn a_marker_that_is_a_link_is_not_read() {
        let fixture = Fixture::new();
        let folder = fixture.path("shop");
        fs::write(fixture.folder.path().join("secret"), "private text").unwrap();
        fixture.path("shop/.anamnesis");
        std::os::unix::fs::symlink(fixture.folder.path().join("secret"), folder.join(MARKER))
            .unwrap();
        assert_eq!(fixture.key(&folder), "shop");
    }

    #[test]
    fn folders_that_are_odd_or_missing() {
        // HOOK-01
        let fixture = Fixture::new();
        assert_eq!(fixture.key(Path::new("/no/such/Folder")), "folder");
        assert_eq!(
            Project::find(Path::new("/"), None),
            Project::new(GLOBAL.to_owned(), Step::Nothing)
        );
        let odd = fixture.repository("$(touch x); 'quoted'");
        assert_eq!(fixture.key(&odd), "$(touch x); 'quoted'");
        assert!(!odd.join("x").exists());
    }
}
