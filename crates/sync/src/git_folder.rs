//! The folder `.git` as files: creating, checking and replacing it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anamnesis_store::fs::{file, home::is_real_folder};
use git2::{ErrorClass, ErrorCode, Oid};
use ulid::Ulid;

use crate::{error::Error, tree::MAX_FILE};

/// The number of loose objects from which git packs.
pub(crate) const LOOSE_OBJECTS: usize = 500;

/// A complete new repository that only has to be renamed to `.git`.
pub(crate) const READY: &str = ".git.new";

/// Creates an empty repository under a temporary name, so that a kill leaves no incomplete `.git`.
/// The caller holds the lock for creating repositories.
pub(crate) fn make_beside(folder: &Path) -> Result<PathBuf, Error> {
    for entry in file::entries(folder) {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(b".git.") && name.ends_with(b".tmp") {
            let half_made = entry.path();
            fs::remove_dir_all(&half_made).map_err(Error::io(&half_made))?;
        }
    }
    let fresh = folder.join(format!(".git.{}.tmp", Ulid::generate()));
    let mut options = git2::RepositoryInitOptions::new();
    options
        .bare(true)
        .initial_head("main")
        .external_template(false);
    let made = git2::Repository::init_opts(&fresh, &options)?;
    let mut config = made.config()?;
    config.set_bool("core.bare", false)?;
    // Each commit creates several small objects.
    config.set_i32("gc.auto", i32::try_from(LOOSE_OBJECTS).unwrap_or(500))?;
    // libgit2 creates sample hooks.
    let _ = fs::remove_dir_all(fresh.join("hooks"));
    let info = fresh.join("info");
    fs::create_dir_all(&info).map_err(Error::io(&info))?;
    fs::write(info.join("exclude"), "*.tmp\n").map_err(Error::io(&info))?;
    Ok(fresh)
}

/// Returns whether a file named `.git` refers to a repository, as in a work tree of git's.
pub(crate) fn is_git_link(path: &Path) -> bool {
    file::read_text(path, MAX_FILE).starts_with("gitdir:")
}

/// Checks that the repository's configuration can be read.
///
/// libgit2 stops reading at a NUL byte without an error, and fails only when it writes the file.
pub(crate) fn check_config(folder: &Path) -> Result<(), Error> {
    let path = folder.join("config");
    let has_nul = file::read_head(&path, MAX_FILE).is_ok_and(|(bytes, ..)| bytes.contains(&0));
    // Reads this file only: an error in the user's own configuration is no damage of the
    // repository.
    let config = git2::Config::open(&path).and_then(|mut config| config.snapshot());
    match config {
        _ if has_nul => Err(Error::damaged(
            folder,
            "config holds bytes that are no text",
        )),
        Err(error) if error.class() == ErrorClass::Config => {
            Err(Error::damaged(folder, error.message()))
        }
        _ => Ok(()),
    }
}

/// Converts an error of opening a repository: damage, or a kind that libgit2 does not support.
pub(crate) fn cannot_open(folder: &Path, error: &git2::Error) -> Error {
    let is_missing = error.code() == ErrorCode::NotFound;
    match error.class() {
        _ if error.code() == ErrorCode::Owner => {}
        // A version or an extension that libgit2 does not know.
        ErrorClass::Repository | ErrorClass::Os if !is_missing => {}
        ErrorClass::Repository => {
            return Error::damaged(folder, "HEAD, objects or refs is missing");
        }
        _ => return Error::damaged(folder, error.message()),
    }
    let hint = if error.message().contains("refstorage") {
        "; convert it with: git refs migrate --ref-format=files"
    } else {
        ""
    };
    Error::repository(
        folder,
        format!("cannot be opened: {}{hint}", error.message()),
    )
}

/// Moves a complete new repository into place; `false` if there is none.
pub(crate) fn take_ready(tree: &Path) -> Result<bool, Error> {
    let ready = tree.join(READY);
    if !is_real_folder(&ready) {
        return Ok(false);
    }
    let git = tree.join(".git");
    fs::rename(&ready, &git).map_err(Error::io(&git))?;
    file::sync_folder(tree);
    Ok(true)
}

/// Returns whether the log of a reference shows that it existed: a line that begins with a commit.
pub(crate) fn has_moved(git: &Path, reference: &str) -> bool {
    let log = file::read_text(&git.join("logs").join(reference), MAX_FILE);
    let mut before = log.lines().filter_map(|line| line.split(' ').next());
    before.any(|before| before.parse().is_ok_and(|oid: Oid| !oid.is_zero()))
}
