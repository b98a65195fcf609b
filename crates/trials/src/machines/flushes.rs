//! Checks that a power cut cannot break a history: whenever a reference of git is written, every new
//! object is on the disk, and so is the reference at the end.
//!
//! A cut itself cannot be played here, so the system calls of a sync are read: what was written, and
//! what was flushed before a reference was renamed into its place.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use nix::{libc, unistd::Pid};

use super::{
    fleet::files_below,
    report,
    trace::{Call, Reach, Traced},
};
use crate::{Result, at};

/// The longest path that Linux takes.
const PATH_MAX: usize = 4096;

/// Runs a command to its end. Returns what was not flushed in time in the repository's folder `.git`.
pub(super) fn missing(command: &Command, git: &Path) -> Result<Vec<String>> {
    let mut seen = Seen::new(git);
    let ended =
        Traced::start(command, Reach::Machine)?.watch(|thread, call| seen.look(thread, call))?;
    if ended.code != Some(0) {
        return Err(format!("{command:?}: {}", ended.stderr).into());
    }
    let references = std::mem::take(&mut seen.references);
    report(&format!("  {} references written", references.len()));
    if references.is_empty() {
        seen.faults.push("no reference was written".to_owned());
    }
    for reference in references {
        if reference.exists() && !seen.flushed.contains(&reference) {
            let reference = reference.display();
            seen.faults.push(format!("{reference} was not flushed"));
        }
    }
    Ok(seen.faults)
}

/// What was seen of a program.
struct Seen {
    git: PathBuf,
    /// The objects and packs that are on the disk.
    kept: HashSet<PathBuf>,
    flushed: HashSet<PathBuf>,
    references: BTreeSet<PathBuf>,
    faults: Vec<String>,
}

impl Seen {
    fn new(git: &Path) -> Self {
        Self {
            git: git.to_owned(),
            kept: files_below(&git.join("objects")).into_iter().collect(),
            flushed: HashSet::new(),
            references: BTreeSet::new(),
            faults: Vec::new(),
        }
    }

    /// Takes in a system call that a thread is about to make.
    fn look(&mut self, thread: Pid, call: &Call) -> Result {
        match call.number {
            libc::SYS_fsync | libc::SYS_fdatasync => {
                let file = format!("/proc/{thread}/fd/{}", call.arguments[0]);
                if let Ok(path) = fs::read_link(file) {
                    self.flushed.insert(path);
                }
            }
            libc::SYS_syncfs | libc::SYS_sync => {
                self.flushed.extend(files_below(&self.git));
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename | libc::SYS_link => {
                self.renamed(thread, call.arguments[0], call.arguments[1])?
            }
            libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_linkat => {
                self.renamed(thread, call.arguments[1], call.arguments[3])?;
            }
            _ => {}
        }
        Ok(())
    }

    fn renamed(&mut self, thread: Pid, from: u64, to: u64) -> Result {
        let (from, to) = (path_at(thread, from)?, path_at(thread, to)?);
        if self.flushed.contains(&from) {
            self.flushed.insert(to.clone());
        }
        if !to.starts_with(self.git.join("refs")) {
            return Ok(());
        }
        for object in files_below(&self.git.join("objects")) {
            let name = object.file_name().unwrap_or_default().as_encoded_bytes();
            // What is not renamed yet, and git's marker of a pack that no reference needs yet.
            let is_temporary = name.starts_with(b"tmp_") || name.ends_with(b".keep");
            if !is_temporary && !self.kept.contains(&object) && !self.flushed.contains(&object) {
                self.faults.push(format!(
                    "{} was not flushed before {}",
                    object.display(),
                    to.display()
                ));
            }
            self.kept.insert(object);
        }
        self.references.insert(to);
        Ok(())
    }
}

/// Returns the path that a thread names by an address of its memory, below its folder if relative.
fn path_at(thread: Pid, address: u64) -> Result<PathBuf> {
    let memory = PathBuf::from(format!("/proc/{thread}/mem"));
    let mut bytes = vec![0; PATH_MAX];
    let file = fs::File::open(&memory).map_err(at(&memory))?;
    // The text may end just before memory that cannot be read.
    let read = file.read_at(&mut bytes, address).map_err(at(&memory))?;
    bytes.truncate(read);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(read);
    bytes.truncate(end);
    let path = PathBuf::from(String::from_utf8_lossy(&bytes).into_owned());
    let folder = fs::read_link(format!("/proc/{thread}/cwd")).unwrap_or_default();
    Ok(folder.join(path))
}
