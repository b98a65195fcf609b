//! Kernel locks between processes. An open file holds the lock, so it ends with the process.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use crate::fs::{file::private_options, home::Home};

/// The subject of a lock. Each has an empty file in `derived/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Read, change and write of a note.
    Notes,
    /// Writing or swapping the index.
    Index,
    /// Creating or repairing the journal.
    Journal,
    /// The deferred process, one per store.
    Work,
    /// Changing the settings.
    Config,
    /// A sync, one per store.
    Sync,
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
        }
    }
}

/// A held lock; dropping it releases the lock.
#[derive(Debug)]
pub struct Lock {
    // Closing the file releases the lock.
    file: File,
}

impl Lock {
    /// Returns another handle on the lock, which is released when both are closed. A child process
    /// that inherits it keeps the lock after a kill of this process. The file is empty.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Takes a lock within `timeout`; `None` if another process keeps it.
///
/// # Errors
/// If the folder of the locks is a symbolic link: all that is written there needs a lock.
pub fn acquire(home: &Home, subject: Subject, timeout: Duration) -> io::Result<Option<Lock>> {
    if home.derived().is_symlink() {
        return Err(io::Error::other(
            "a link in place of a folder; not followed",
        ));
    }
    acquire_file(&home.derived().join(subject.file_name()), timeout)
}

fn acquire_file(path: &Path, timeout: Duration) -> io::Result<Option<Lock>> {
    let file = private_options().create(true).open(path)?;
    match file.try_lock() {
        Ok(()) => return Ok(Some(Lock { file })),
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) if timeout.is_zero() => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
    }
    // `flock` has no timeout, so a thread waits. If it gets the lock too late, nobody takes the file
    // from it and the lock is released at once.
    let (sender, receiver) = mpsc::sync_channel(0);
    thread::Builder::new().spawn(move || {
        let locked = file.lock().map(|()| Lock { file });
        let _ = sender.send(locked);
    })?;
    match receiver.recv_timeout(timeout) {
        Ok(locked) => locked.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the lock's thread ended")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_the_folder_of_locks_is_not_followed() {
        // PATH-03
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        std::os::unix::fs::symlink(outside.path(), home.derived()).unwrap();
        assert!(acquire(&home, Subject::Work, Duration::ZERO).is_err());
        assert!(!crate::journal::request_repair(&home));
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

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
