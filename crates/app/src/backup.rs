//! A backup of the whole store as one file, and its restoration.

use std::{
    fs::{self, File},
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

use anamnesis_store::{
    fs::{
        archive::{self, ArchiveWriter},
        file::{private_options, sync_file, sync_folder},
        home::{Home, ensure_folder},
        lock::{self, Subject},
    },
    journal::Journal,
};
use serde::Serialize;

use crate::{
    Error,
    context::{Context, TIMEOUT},
    purge::left::{self, KnownBackup},
};

/// The folders of the store that a backup has. `derived/`, `bin/`, `log/` and `quarantine/` can be
/// made again or are of no use elsewhere.
const FOLDERS: [&str; 5] = ["memory", "local", "trash", "spool", "eval"];

/// The files of the store that a backup has.
const FILES: [&str; 2] = ["config.json", JOURNAL];

const JOURNAL: &str = "journal.db";

/// The words in the names of a store that is being restored, and of the former one.
const RESTORING: &str = "restoring";
const BEFORE: &str = "before-restore";

/// A backup that was written.
#[derive(Debug, Serialize)]
pub struct Backup {
    /// How many files it has.
    pub files: usize,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A backup that is whole.
#[derive(Debug, Serialize)]
pub struct CheckedBackup {
    /// How many files it has.
    pub files: usize,
}

/// A store that was restored.
#[derive(Debug, Serialize)]
pub struct Restored {
    /// How many files were restored.
    pub files: usize,
    /// The new path of the previous store.
    pub before: Option<PathBuf>,
}

/// Writes the whole store to a new file with mode 0600, and checks the file. `progress` gets how many
/// files of how many are written.
pub fn back_up(
    context: &Context,
    path: &Path,
    mut progress: impl FnMut(usize, usize),
) -> Result<Backup, Error> {
    context.check_person("back up or restore the store")?;
    let home = &context.home;
    if context.home.contains(path) {
        return Err(Error::usage("a backup cannot be in the store itself"));
    }
    // In this order everywhere. Without them, files could change while they are read.
    let mut held = Vec::new();
    for subject in [Subject::Sync, Subject::Notes] {
        let lock = lock::acquire(home, subject, TIMEOUT).map_err(failed)?;
        held.push(lock.ok_or_else(|| {
            Error::failed("another process is changing notes").hint("try again in a moment")
        })?);
    }
    let mut sources = Vec::new();
    for folder in FOLDERS.map(|name| home.root().join(name)) {
        if folder.is_dir() {
            sources.extend(archive::files_below(home.root(), &folder).map_err(failed)?);
        }
    }
    if home.config().is_file() {
        sources.push(("config.json".to_owned(), home.config()));
    }
    // A database in use is not one file, so a copy of it is packed.
    let copy = home.derived().join("backup.db");
    let _ = fs::remove_file(&copy);
    if let Some(journal) = Journal::open_to_read(home, TIMEOUT)? {
        journal.copy_to(&copy)?;
        sources.push((JOURNAL.to_owned(), copy.clone()));
    }
    let written = write(path, &sources, &mut progress);
    let _ = fs::remove_file(&copy);
    let files = written?;
    drop(held);
    let mut file = File::open(path).map_err(failed)?;
    archive::check(&mut file, is_known)
        .map_err(|error| Error::failed(format!("the backup cannot be read back: {error}")))?;
    if let Some(journal) = context.journal() {
        left::add_backups(&journal, [known(context, path)])?;
    }
    Ok(Backup {
        files,
        bytes: file.metadata().map_err(failed)?.len(),
    })
}

fn known(context: &Context, path: &Path) -> KnownBackup {
    KnownBackup {
        path: path.to_owned(),
        at: context.environment.now.timestamp_millis(),
    }
}

fn write(
    path: &Path,
    sources: &[(String, PathBuf)],
    progress: &mut impl FnMut(usize, usize),
) -> Result<usize, Error> {
    let out = private_options().create_new(true).open(path);
    let out = out.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Error::usage(format!("{} exists already", path.display())).hint("choose another name")
        }
        _ => Error::failed(format!("cannot write {}: {error}", path.display())),
    })?;
    let mut fill = || {
        let mut writer = ArchiveWriter::new(BufWriter::new(&out));
        for (number, (name, source)) in sources.iter().enumerate() {
            progress(number, sources.len());
            writer.add(name, &mut File::open(source)?)?;
        }
        let files = writer.finish()?;
        sync_file(path)?;
        Ok(files)
    };
    // Half a backup is none. An older file of this name was never opened.
    fill().map_err(|error| {
        let _ = fs::remove_file(path);
        failed(error)
    })
}

/// Returns how many files a backup has, if all of it is valid.
pub fn check(context: &Context, path: &Path) -> Result<usize, Error> {
    context.check_person("back up or restore the store")?;
    let mut file = open(path)?;
    archive::check(&mut file, is_known).map_err(|error| invalid(path, &error))
}

/// Replaces the store by a backup. The store that is there is renamed, not deleted.
pub fn restore(context: &Context, path: &Path) -> Result<Restored, Error> {
    context.check_person("back up or restore the store")?;
    let root = context.home.root();
    let mut file = open(path)?;
    archive::check(&mut file, is_known).map_err(|error| invalid(path, &error))?;
    // Beside the store, so that renaming needs no copy.
    let new = beside(root, RESTORING);
    archive::unpack(&mut file, &new, is_known).map_err(|error| {
        let _ = fs::remove_dir_all(&new);
        invalid(path, &error)
    })?;
    // A folder without files is in no archive, and git needs these.
    let git = new.join("memory/.git");
    for folder in ["objects/pack", "refs"].iter().filter(|_| git.is_dir()) {
        ensure_folder(&git.join(folder)).map_err(|error| Error::failed(error.to_string()))?;
    }
    let unpacked = Home::new(&new);
    unpacked
        .create()
        .map_err(|error| Error::failed(error.to_string()))?;
    // The journal of the backup does not know this backup, nor those that were written since.
    let mut backups = vec![known(context, path)];
    backups.extend(context.journal().iter().flat_map(left::backups));
    if unpacked.journal().exists() {
        let journal = Journal::open(&unpacked, TIMEOUT)?;
        left::add_backups(&journal, backups)?;
        journal.checkpoint()?;
    }
    anamnesis_store::fs::file::flush_tree(&new).map_err(failed)?;
    let before = root.exists().then(|| beside(root, BEFORE));
    if let Some(before) = &before {
        fs::rename(root, before).map_err(failed)?;
    }
    if let Err(error) = fs::rename(&new, root) {
        // The old store goes back, so that nothing was changed.
        if let Some(before) = &before {
            let _ = fs::rename(before, root);
        }
        return Err(failed(error));
    }
    if let Some(parent) = root.parent() {
        sync_folder(parent);
    }
    let (_, files) = anamnesis_store::fs::file::below(root).map_err(failed)?;
    Ok(Restored {
        files: files.len(),
        before,
    })
}

/// Returns whether a restore made a folder of this name beside the store.
pub(crate) fn is_beside(root: &Path, name: &str) -> bool {
    let store = root.file_name().unwrap_or_default().to_string_lossy();
    let word = name
        .strip_prefix(&*store)
        .and_then(|rest| rest.strip_prefix('.'));
    let word = word.and_then(|rest| rest.rsplit_once('-'));
    word.is_some_and(|(word, number)| {
        [RESTORING, BEFORE].contains(&word) && number.parse::<u32>().is_ok()
    })
}

/// Returns a free path beside the store.
fn beside(root: &Path, word: &str) -> PathBuf {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let path = |number: u32| root.with_file_name(format!("{name}.{word}-{number}"));
    let mut free = (1..).map(path).filter(|path| !path.exists());
    free.next().unwrap_or_else(|| path(0))
}

/// Returns whether a backup may have this path.
fn is_known(path: &Path) -> bool {
    let mut parts = path.components();
    let first = parts.next().map(|part| part.as_os_str().to_owned());
    let Some(first) = first.as_ref().and_then(|part| part.to_str()) else {
        return false;
    };
    match parts.next() {
        Some(_) => FOLDERS.contains(&first),
        None => FILES.contains(&first),
    }
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path)
        .map_err(|error| Error::failed(format!("cannot read {}: {error}", path.display())))
}

fn failed(error: io::Error) -> Error {
    Error::failed(format!("the backup failed: {error}")).because(error)
}

fn invalid(path: &Path, error: &archive::ArchiveError) -> Error {
    Error::failed(format!("cannot use {}: {error}", path.display()))
        .hint("nothing was changed; name a file that `anamnesis backup FILE` wrote")
}
