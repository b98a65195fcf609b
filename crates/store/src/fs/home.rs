//! Where things are: the store's folders and files, and their modes.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anamnesis_note::note::Scope;

/// The root of a store (`ANAMNESIS_HOME`) and the names of everything in it.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

/// The store's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder of ours is a link or a file. Following a link could write outside the store.
    #[error("{path} is not a folder of the store but {found}; move it away")]
    NotAFolder {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
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

/// The folders below the root that hold machine-local files which are no notes.
const FOLDERS: [&str; 3] = ["derived", "trash", "log"];

impl Home {
    /// Names the store at `root`; nothing is touched.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The tree of a scope, which decides whether its notes travel.
    pub fn tree(&self, scope: Scope) -> PathBuf {
        self.root.join(match scope {
            Scope::Portable => "memory",
            Scope::MachineLocal => "local",
        })
    }

    /// The receipts of all machines, a folder each.
    pub fn receipts(&self) -> PathBuf {
        self.tree(Scope::Portable).join(".usage")
    }

    /// The derived index.
    pub fn index(&self) -> PathBuf {
        self.derived().join("index.db")
    }

    /// The folder of what can be deleted at any time: the index and the lock files.
    pub fn derived(&self) -> PathBuf {
        self.root.join("derived")
    }

    /// This machine's records.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.db")
    }

    /// Old bytes of forgotten notes.
    pub fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// Records that the journal could not take.
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// Files that cannot be read, kept as they are.
    pub fn quarantine(&self) -> PathBuf {
        self.root.join("quarantine")
    }

    /// The folder of the command for a terminal, where one is wanted.
    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// The log.
    pub fn log(&self) -> PathBuf {
        self.root.join("log").join("anamnesis.log")
    }

    /// The questions that recall is measured by on this machine.
    pub fn evaluation(&self) -> PathBuf {
        self.root.join("eval").join("eval.jsonl")
    }

    /// The settings of this machine.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.json")
    }

    /// Returns a path relative to the root for people, with `/` between its parts.
    pub fn relative(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        relative.to_string_lossy().replace('\\', "/")
    }

    /// Makes the store's folders that are missing, for the owner alone.
    ///
    /// # Errors
    /// When one cannot be made, or is something else than a folder.
    pub fn create(&self) -> Result<(), Error> {
        if !self.root.is_dir() {
            if let Some(parent) = self.root.parent() {
                fs::create_dir_all(parent).map_err(|source| Error::Io {
                    path: parent.to_owned(),
                    source,
                })?;
            }
            // The root itself may be a link of the user's own.
            match make_private_folder(&self.root) {
                Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::Io {
                        path: self.root.clone(),
                        source,
                    });
                }
                _ => {}
            }
        }
        for scope in [Scope::Portable, Scope::MachineLocal] {
            ensure_folder(&self.tree(scope))?;
        }
        for name in FOLDERS {
            ensure_folder(&self.root.join(name))?;
        }
        Ok(())
    }

    /// Every folder and file of the store whose mode lets others in, with the mode.
    ///
    /// Notes, the index, records, settings and logs; what is not ours is not looked at.
    pub fn open_to_others(&self) -> Vec<(PathBuf, u32)> {
        let mut found = Vec::new();
        let mut pending = vec![self.root.clone()];
        while let Some(folder) = pending.pop() {
            check_mode(&folder, &mut found);
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
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

/// Makes `path` a folder for the owner alone, unless it is one already.
///
/// # Errors
/// When it cannot be made, or is a link or a file.
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
        // Another process was faster.
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

/// Tells whether `path` is a folder and not a link to one.
pub fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// The name of this machine, as the kernel has it.
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
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

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
