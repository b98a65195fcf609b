//! Kernel locks between processes: held by an open file, gone with the process however it ends.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use crate::fs::{file::private_options, home::Home};

/// What is locked. Each has a file of its own in `derived/`, which holds no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Reading a note's file, changing it and writing it back.
    Notes,
    /// Writing to the index, or swapping it for another one.
    Index,
    /// Making the journal's tables.
    Journal,
    /// The deferred process: one a store.
    Work,
    /// Changing the settings.
    Config,
    /// Carrying notes between machines: one run a store.
    Sync,
    /// Writing to this machine's receipts.
    Receipts,
}

impl Subject {
    fn file_name(self) -> &'static str {
        match self {
            Self::Notes => "notes.lock",
            Self::Index => "index.lock",
            Self::Journal => "journal.lock",
            Self::Work => "work.lock",
            Self::Config => "config.lock",
            Self::Sync => "sync.lock",
            Self::Receipts => "receipts.lock",
        }
    }
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    // Closing the file gives the lock back.
    file: File,
}

impl Lock {
    /// Another handle on the same lock, which is held until both are gone. A child process that is
    /// given it keeps the lock when we are killed. The file is empty.
    ///
    /// # Errors
    /// When the system has no more handles.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Takes a lock, waiting for it no longer than `patience`; `None` when somebody else kept it.
///
/// # Errors
/// When the lock's file cannot be made or the file system knows no locks.
pub fn acquire(home: &Home, subject: Subject, patience: Duration) -> io::Result<Option<Lock>> {
    acquire_file(&home.derived().join(subject.file_name()), patience)
}

fn acquire_file(path: &Path, patience: Duration) -> io::Result<Option<Lock>> {
    let file = private_options().create(true).open(path)?;
    match file.try_lock() {
        Ok(()) => return Ok(Some(Lock { file })),
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) if patience.is_zero() => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
    }
    // The kernel queues those who wait, but knows no time limit. A thread waits in its place; when it
    // gets the lock too late, nobody takes the file from it and the lock is given back at once.
    let (sender, receiver) = mpsc::sync_channel(0);
    thread::Builder::new().spawn(move || {
        let locked = file.lock().map(|()| Lock { file });
        let _ = sender.send(locked);
    })?;
    match receiver.recv_timeout(patience) {
        Ok(locked) => locked.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the lock's thread ended")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        home.create().unwrap();
        let held = acquire(&home, Subject::Notes, Duration::ZERO).unwrap();
        assert!(held.is_some());
        assert!(
            acquire(&home, Subject::Notes, Duration::from_millis(5))
                .unwrap()
                .is_none()
        );
        assert!(
            acquire(&home, Subject::Index, Duration::ZERO)
                .unwrap()
                .is_some()
        );
        drop(held);
        let again = acquire(&home, Subject::Notes, Duration::from_secs(10)).unwrap();
        assert!(again.is_some());
    }

    #[test]
    fn a_handle_keeps_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        home.create().unwrap();
        let is_free = || {
            let lock = acquire(&home, Subject::Sync, Duration::ZERO).unwrap();
            lock.is_some()
        };
        let lock = acquire(&home, Subject::Sync, Duration::ZERO).unwrap();
        let handle = lock.unwrap().handle().unwrap();
        assert!(!is_free());
        drop(handle);
        assert!(is_free());
    }

    #[test]
    fn those_who_wait_get_it_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        home.create().unwrap();
        let held = acquire(&home, Subject::Notes, Duration::ZERO).unwrap();
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let lock = acquire(&home, Subject::Notes, Duration::from_secs(60)).unwrap();
                        lock.is_some()
                    })
                })
                .collect();
            drop(held);
            for waiter in waiting {
                assert!(waiter.join().unwrap());
            }
        });
    }
}
