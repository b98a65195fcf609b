//! Paths and modes of the store's folders and files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anamnesis_note::{
    note::{NoteType, Scope},
    synced_lines::{ALIASES, PURGED},
};

use super::file;

/// Returns the name of the tree with the notes of a scope.
pub(crate) const fn tree_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Portable => "memory",
        Scope::MachineLocal => "local",
    }
}

/// The scope and type of each folder of notes.
pub(crate) fn note_folder_places() -> impl Iterator<Item = (Scope, NoteType)> {
    let scopes = Scope::ALL.iter();
    scopes.flat_map(|scope| NoteType::ALL.iter().map(|folder| (*scope, *folder)))
}

/// The root of a store (`ANAMNESIS_HOME`) and the paths in it.
#[derive(Debug, Clone)]
pub struct Home {
    /// The root, as the caller passed it.
    named: PathBuf,
    /// The root without symbolic links: SQLITE_OPEN_NOFOLLOW refuses a link in any component.
    root: PathBuf,
}

/// The store's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder of the store is a link or a file. Following a link could write outside the store.
    #[error("{path} is not a folder of the store but {found}; move it away")]
    NotAFolder {
        /// The path.
        path: PathBuf,
        /// The type of the entry.
        found: &'static str,
    },
    /// A symbolic link in the path of the root is dangling, or is part of a loop.
    #[error(
        "cannot open the store {root}: {link} is a symbolic link to {target}, expected a folder there: {source}"
    )]
    BrokenLink {
        /// The root, as the caller passed it.
        root: PathBuf,
        /// The link.
        link: PathBuf,
        /// The link's target.
        target: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file system refused.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Error {
    /// Returns a hint for the person.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::BrokenLink { .. } => {
                "mount or create the folder that the link points to, or replace the link"
            }
            Self::NotAFolder { .. } | Self::Io { .. } => {
                "move away what is in its place, or make it writable for you"
            }
        }
    }
}

/// The version of the index, which is part of its file's name.
pub(crate) const INDEX_VERSION: i64 = 20;

/// The folders below the root with machine-local files other than notes.
const FOLDERS: [&str; 3] = ["derived", "trash", "log"];

impl Home {
    /// Returns the paths of the store at `root`, which need not exist yet. Nothing is changed.
    ///
    /// Symbolic links in the path of the root are resolved here, once. Below it no link is followed.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let named = root.into();
        // On Windows SQLite follows links, and git refuses the prefix of canonical paths.
        let root = if cfg!(windows) {
            named.clone()
        } else {
            resolve(&named)
        };
        Self { named, root }
    }

    /// Returns the root without symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a path of the store below the root as given, for display.
    pub fn as_named(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.root) {
            Ok(rest) => self.named.components().chain(rest.components()).collect(),
            Err(_) => path.to_owned(),
        }
    }

    /// Returns whether a path is in the store, with or without symbolic links.
    pub fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.named) || {
            // On Windows the root is the named path.
            let root = if cfg!(windows) {
                &resolve(&self.root)
            } else {
                &self.root
            };
            resolve(path).starts_with(root)
        }
    }

    /// Checks that no symbolic link in the path of the root is dangling.
    ///
    /// # Errors
    /// [`Error::BrokenLink`].
    pub fn check_links(&self) -> Result<(), Error> {
        if self.root.is_dir() {
            return Ok(());
        }
        // Links to existing folders are already resolved.
        let broken = self.root.ancestors().find_map(|link| {
            let target = fs::read_link(link).ok()?;
            let source = fs::metadata(link).err()?;
            Some(Error::BrokenLink {
                root: self.named.clone(),
                link: link.to_owned(),
                target: link.with_file_name(target),
                source,
            })
        });
        broken.map_or(Ok(()), Err)
    }

    /// Returns the tree of a scope.
    pub fn tree(&self, scope: Scope) -> PathBuf {
        self.root.join(tree_name(scope))
    }

    /// Returns the folders of notes, in the order of [`note_folder_places`].
    pub(crate) fn note_folders(&self) -> impl Iterator<Item = PathBuf> {
        note_folder_places().map(|(scope, folder)| self.tree(scope).join(folder.as_str()))
    }

    /// Returns the file of the aliases of projects, which syncs.
    pub fn aliases(&self) -> PathBuf {
        self.tree(Scope::Portable).join(ALIASES)
    }

    /// Returns the file of the purge marks, which syncs.
    pub fn purged(&self) -> PathBuf {
        self.tree(Scope::Portable).join(PURGED)
    }

    /// Returns the file of the index. Its name has the version, because sessions of an older program may
    /// use their own beside it.
    pub fn index(&self) -> PathBuf {
        self.derived().join(format!("index-{INDEX_VERSION}.db"))
    }

    /// Returns the file of the indexed commits of projects, with the version of its tables in its name.
    pub fn commits(&self) -> PathBuf {
        self.derived().join("commits-1.db")
    }

    /// Returns the folder of files that can be deleted at any time: the index and the lock files.
    pub fn derived(&self) -> PathBuf {
        self.root.join("derived")
    }

    /// Returns the file of the journal.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.db")
    }

    /// Returns the folder with the old bytes of forgotten notes.
    pub fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// Returns the folder of records that the journal could not take.
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// Returns the folder of unreadable files.
    pub fn quarantine(&self) -> PathBuf {
        self.root.join("quarantine")
    }

    /// Returns the folder of the terminal command.
    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// Returns the log file.
    pub fn log(&self) -> PathBuf {
        self.root.join("log").join("anamnesis.log")
    }

    /// Returns the file of the questions that measure recall on this machine.
    pub fn evaluation(&self) -> PathBuf {
        self.root.join("eval").join("eval.jsonl")
    }

    /// Returns the folder of the embedding model.
    pub fn embedding(&self) -> PathBuf {
        self.root.join("embedding")
    }

    /// Returns the settings file.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.json")
    }

    /// Returns a path relative to the root for people, with `/` between its parts.
    pub fn relative(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        relative.to_string_lossy().replace('\\', "/")
    }

    /// Creates the missing folders of the store with mode 0700.
    pub fn create(&self) -> Result<(), Error> {
        if !self.root.is_dir() {
            self.check_links()?;
            if let Some(parent) = self.root.parent() {
                fs::create_dir_all(parent).map_err(|source| Error::Io {
                    path: parent.to_owned(),
                    source,
                })?;
            }
            ensure_folder(&self.root)?;
        }
        let trees = Scope::ALL.iter().map(|scope| tree_name(*scope));
        for name in trees.chain(FOLDERS) {
            ensure_folder(&self.root.join(name))?;
        }
        Ok(())
    }

    /// Returns whether others may enter the store's folder. If they may not, they reach nothing in it.
    pub fn is_open_to_others(&self) -> bool {
        let mut found = Vec::new();
        check_mode(&self.root, &mut found);
        !found.is_empty()
    }

    /// Returns the folders and files of the store that others may access, with their modes.
    ///
    /// Covers notes, the index, records, settings and logs, but no foreign files.
    pub fn open_to_others(&self) -> Vec<(PathBuf, u32)> {
        let mut found = Vec::new();
        let mut pending = vec![self.root.clone()];
        while let Some(folder) = pending.pop() {
            check_mode(&folder, &mut found);
            for entry in file::entries(&folder) {
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() && entry.file_name() != ".git" {
                    pending.push(entry.path());
                } else if kind.is_file() {
                    check_mode(&entry.path(), &mut found);
                }
            }
        }
        found.sort();
        found
    }
}

/// Creates the folder `path` with mode 0700 if it is missing.
pub fn ensure_folder(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(metadata) => {
            let found = if metadata.is_symlink() {
                "a link"
            } else {
                "a file"
            };
            return Err(Error::NotAFolder {
                path: path.to_owned(),
                found,
            });
        }
        Err(_) => {}
    }
    match make_private_folder(path) {
        // Another process created it.
        Err(source) if source.kind() == io::ErrorKind::AlreadyExists && is_real_folder(path) => {
            Ok(())
        }
        Err(source) => Err(Error::Io {
            path: path.to_owned(),
            source,
        }),
        Ok(()) => Ok(()),
    }
}

/// Resolves the symbolic links of a path. Components that do not exist are kept as they are.
pub fn resolve(path: &Path) -> PathBuf {
    let resolved = path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        let mut resolved = dunce::canonicalize(ancestor).ok()?;
        resolved.extend(rest);
        Some(resolved)
    });
    resolved.unwrap_or_else(|| path.to_owned())
}

/// Returns whether `path` is `folder` or below it, as written or with links resolved.
pub fn is_below(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) || resolve(path).starts_with(resolve(folder))
}

/// Returns whether `path` is a folder and not a link to one.
pub fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

#[cfg(unix)]
fn make_private_folder(path: &Path) -> io::Result<()> {
    std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700).create(path)
}

/// On Windows the access rights of the person's home apply to what is in it.
#[cfg(not(unix))]
fn make_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Returns the host name.
#[cfg(unix)]
pub fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(unix)]
fn check_mode(path: &Path, found: &mut Vec<(PathBuf, u32)>) {
    use std::os::unix::fs::PermissionsExt;
    if let Ok(metadata) = fs::symlink_metadata(path) {
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            found.push((path.to_owned(), mode));
        }
    }
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &mut Vec<(PathBuf, u32)>) {}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        os::unix::fs::{PermissionsExt, symlink},
        time::Duration,
    };

    use rustix::io::Errno;

    use super::*;
    use crate::journal::Journal;

    #[test]
    fn folders_are_for_the_owner_alone() {
        // PATH-07
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("a/store"));
        home.create().unwrap();
        home.create().unwrap();
        assert!(home.open_to_others().is_empty());
        fs::write(home.config(), "{}").unwrap();
        fs::set_permissions(home.config(), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(home.open_to_others(), [(home.config(), 0o644)]);
    }

    /// A folder with `real/sub`, links to it, and links that are dangling or form a loop.
    fn linked() -> io::Result<(tempfile::TempDir, PathBuf)> {
        let folder = tempfile::tempdir()?;
        let at = dunce::canonicalize(folder.path())?;
        fs::create_dir_all(at.join("real/sub"))?;
        let links = [
            ("link", at.join("real")),
            ("chain", PathBuf::from("link")),
            ("sub", PathBuf::from("chain/sub")),
            ("gone", at.join("unmounted")),
            ("through", PathBuf::from("gone/sub")),
            ("loop", PathBuf::from("pool")),
            ("pool", PathBuf::from("loop")),
        ];
        for (name, target) in links {
            symlink(target, at.join(name))?;
        }
        Ok((folder, at))
    }

    #[test]
    fn sqlite_opens_the_journal_of_a_store_behind_links() {
        // PATH-03
        for (named, real) in [
            ("link/sub", "real/sub"),
            ("sub", "real/sub"),
            ("chain", "real"),
            ("chain/store", "real/store"),
            ("link/not/there", "real/not/there"),
            ("sub/../store", "real/store"),
            ("real/store/", "real/store"),
        ] {
            let (_folder, at) = linked().unwrap();
            let home = Home::new(at.join(named));
            assert_eq!(home.root(), at.join(real), "{named}");
            home.check_links().unwrap();
            home.create().unwrap();
            assert!(at.join(real).join("memory").is_dir(), "{named}");
            // The path does not change once the root exists.
            assert_eq!(Home::new(at.join(named)).root(), home.root(), "{named}");
            Journal::open(&home, Duration::ZERO).unwrap();
        }
    }

    #[test]
    fn paths_are_shown_below_the_root_as_it_was_given() {
        let (_folder, at) = linked().unwrap();
        let home = Home::new(at.join("chain"));
        let root = home.as_named(home.root());
        assert_eq!(root.as_os_str(), at.join("chain").as_os_str());
        assert_eq!(
            home.as_named(&home.index()),
            at.join("chain/derived")
                .join(home.index().file_name().unwrap())
        );
        assert_eq!(
            home.as_named(Path::new("/elsewhere")),
            Path::new("/elsewhere")
        );
    }

    #[test]
    fn paths_in_the_store_are_recognised_with_and_without_links() {
        let (_folder, at) = linked().unwrap();
        let home = Home::new(at.join("chain"));
        for inside in [
            "chain",
            "link/new.md",
            "real/memory",
            "sub",
            "sub/not/there",
        ] {
            assert!(home.contains(&at.join(inside)), "{inside}");
        }
        for outside in ["", "gone", "realm", "real/../other", "loop/real"] {
            assert!(!home.contains(&at.join(outside)), "{outside}");
        }
    }

    #[test]
    fn a_broken_link_in_the_path_of_the_store_is_named() {
        let (_folder, at) = linked().unwrap();
        let shown = |path: &str| at.join(path).display().to_string();
        for (named, link, target, cause) in [
            ("gone", "gone", "unmounted", Errno::NOENT),
            ("gone/a/store", "gone", "unmounted", Errno::NOENT),
            ("through", "through", "gone/sub", Errno::NOENT),
            ("loop", "loop", "pool", Errno::LOOP),
        ] {
            let cause = io::Error::from(cause).to_string();
            let home = Home::new(at.join(named));
            let error = home.create().unwrap_err().to_string();
            assert_eq!(home.check_links().unwrap_err().to_string(), error);
            let expected = format!(
                "cannot open the store {}: {} is a symbolic link to {}, expected a folder there: ",
                shown(named),
                shown(link),
                shown(target)
            );
            assert!(error.starts_with(&expected), "{named}: {error}");
            assert!(error.contains(&cause), "{named}: {error}");
        }
        assert!(!at.join("unmounted").exists());
    }

    #[test]
    fn a_link_in_place_of_a_folder_is_refused() {
        // PATH-03
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        symlink(outside.path(), folder.path().join("memory")).unwrap();
        let error = home.create().unwrap_err().to_string();
        assert!(
            error.contains("memory is not a folder of the store but a link"),
            "{error}"
        );
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
