//! Inspects a stopped process: its open files and locks.
//!
//! It reads `/proc`, which exists on Linux only. SIGSTOP stops the process, and a following SIGKILL
//! prevents any further instruction: the state that is seen is the state at the kill.

use std::{fs, path::Path, process::Child};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::Result;

/// The byte of `journal.db-shm` that the writer locks: `WAL_WRITE_LOCK` of
/// <https://www.sqlite.org/walformat.html>.
const WRITER: u64 = 120;

/// The open files of a process.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Look {
    /// Whether `journal.db` is open.
    pub(super) has_journal: bool,
    /// Whether it is in a write transaction.
    pub(super) is_writing: bool,
    /// Number of sockets.
    pub(super) sockets: usize,
}

/// Stops a child and inspects it. Returns `None` if it had ended.
pub(super) fn stop(child: &Child) -> Result<Option<Look>> {
    let id = Pid::from_child(child);
    // A child that was not waited for can be signalled, even if it has ended.
    kill_process(id, Signal::STOP)?;
    let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(id), options)?;
    if !status.is_some_and(|status| status.stopped()) {
        return Ok(None);
    }
    Ok(Some(look(child.id())?))
}

/// Inspects the open files of a process.
pub(super) fn look(id: u32) -> Result<Look> {
    let folder = Path::new("/proc").join(id.to_string());
    let mut look = Look::default();
    for entry in fs::read_dir(folder.join("fd"))?.flatten() {
        let Ok(target) = fs::read_link(entry.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        look.sockets += usize::from(target.starts_with("socket:"));
        let is_journal = target.ends_with("/journal.db");
        look.has_journal |= is_journal;
        if is_journal || target.ends_with("/journal.db-shm") {
            let held = fs::read_to_string(folder.join("fdinfo").join(entry.file_name()))?;
            look.is_writing |= held.lines().any(|line| {
                // Without a write-ahead log the database file itself is locked.
                writes(line).is_some_and(|(from, to)| is_journal || (from..=to).contains(&WRITER))
            });
        }
    }
    Ok(look)
}

/// Parses the write-locked bytes of a line of `fdinfo`:
/// `lock: 1: POSIX  ADVISORY  WRITE 4711 08:01:12345 120 120`.
fn writes(line: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = line.strip_prefix("lock:")?.split_whitespace().collect();
    let [.., "WRITE", _process, _file, from, to] = words.as_slice() else {
        return None;
    };
    let to = if *to == "EOF" {
        u64::MAX
    } else {
        to.parse().ok()?
    };
    Some((from.parse().ok()?, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_write_locks_are_parsed() {
        for (line, bytes) in [
            (
                "lock:\t1: POSIX  ADVISORY  WRITE 4711 08:01:12345 120 120",
                Some((120, 120)),
            ),
            (
                "lock:\t2: POSIX  ADVISORY  WRITE 4711 08:01:12345 0 EOF",
                Some((0, u64::MAX)),
            ),
            (
                "lock:\t1: POSIX  ADVISORY  READ 4711 08:01:12345 128 128",
                None,
            ),
            ("pos:\t0", None),
        ] {
            assert_eq!(writes(line), bytes, "{line}");
        }
    }
}
