//! A temporary copy of the notes, in `derived/`, for experiments.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anamnesis_note::note::Scope;
use anamnesis_store::fs::home::Home;
use ulid::Ulid;

use crate::{
    Error,
    context::{Context, TIMEOUT},
};

/// The prefix of a copy's folder name.
const NAME: &str = "experiment-";

/// A copy older than this is a leftover of a process that was killed.
const LEFTOVER_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The copy, with its own store.
pub struct Sandbox {
    folder: PathBuf,
    /// The copy's store, with the settings of the original.
    pub context: Context,
}

impl Sandbox {
    /// Copies the notes.
    pub fn new(context: &Context) -> Result<Self, Error> {
        sweep(&context.home);
        let folder = context
            .home
            .derived()
            .join(format!("{NAME}{}", Ulid::generate()));
        let failure = format!("cannot copy the notes to {}", folder.display());
        let copy = || -> Result<Context, Error> {
            let mut environment = context.environment.clone();
            environment.store = Some(folder.clone());
            let copied = Context::new(environment, TIMEOUT)?;
            copied.home.create().map_err(Error::prefixed(&failure))?;
            for scope in [Scope::Portable, Scope::MachineLocal] {
                copy_folder(&context.home.tree(scope), &copied.home.tree(scope))
                    .map_err(Error::prefixed(&failure))?;
            }
            Ok(Context {
                config: context.config.clone(),
                ..copied
            })
        };
        match copy() {
            Ok(context) => Ok(Self { folder, context }),
            Err(failure) => {
                let _ = fs::remove_dir_all(&folder);
                Err(failure)
            }
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            self.context
                .log(&format!("{}: {error}", self.folder.display()));
        }
    }
}

/// Copies regular files, but not git's folder.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let target = to.join(&name);
        if kind.is_file() {
            fs::copy(entry.path(), target)?;
        } else if kind.is_dir() && name != ".git" {
            fs::create_dir_all(&target)?;
            copy_folder(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Removes copies that were left by a process that was killed.
pub fn sweep(home: &Home) {
    let Ok(entries) = fs::read_dir(home.derived()) else {
        return;
    };
    for entry in entries.flatten() {
        let is_copy = entry.file_name().to_string_lossy().starts_with(NAME);
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        if is_copy && age.is_ok_and(|age| age > LEFTOVER_AGE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
