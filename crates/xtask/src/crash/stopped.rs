//! A look at a process that is stopped: which files it has open, and which locks it holds.
//!
//! It reads `/proc`, so it is for Linux only. SIGSTOP holds the process where it is, and SIGKILL
//! after it lets it not run another instruction: what is seen is where the kill falls.

use std::{fs, path::Path, process::Child};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::Result;

/// The byte of `journal.db-shm` that is locked by whoever writes: `WAL_WRITE_LOCK` of
/// <https://www.sqlite.org/walformat.html>.
const WRITER: u64 = 120;

/// What a process has open.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Look {
    /// Whether `journal.db` is open.
    pub(super) has_journal: bool,
    /// Whether it is within a transaction that writes.
    pub(super) is_writing: bool,
    /// How many sockets.
    pub(super) sockets: usize,
}

/// Stops a child and looks at it; none when it had ended before.
pub(super) fn stop(child: &Child) -> Result<Option<Look>> {
    let id = Pid::from_child(child);
    // A child that nobody has waited for is there to be signalled, even if it has ended.
    kill_process(id, Signal::STOP)?;
    let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(id), options)?;
    if !status.is_some_and(|status| status.stopped()) {
        return Ok(None);
    }
    Ok(Some(look(child.id())?))
}

/// Looks at what a process has open.
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
                // Without a write-ahead log it is the database itself that is locked.
                writes(line).is_some_and(|(from, to)| is_journal || (from..=to).contains(&WRITER))
            });
        }
    }
    Ok(look)
}

/// The bytes that a line of `fdinfo` says are locked for writing:
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
    fn a_lock_for_writing_is_told_from_one_for_reading() {
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
