//! Reading and writing single files so that nothing is followed, half written or lost.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::Path,
};

/// What tells that a file changed: its size, its time of change in nanoseconds, its inode.
///
/// An atomic write always makes a new inode; an editor that writes in place moves the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Size in bytes.
    pub size: i64,
    /// Time of the last change, nanoseconds since 1970.
    pub modified: i64,
    /// The inode, 0 where there are none.
    pub inode: i64,
}

impl Stamp {
    /// Reads the stamp of what `metadata` describes.
    pub fn of(metadata: &Metadata) -> Self {
        let modified = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        Self {
            size: i64::try_from(metadata.len()).unwrap_or(i64::MAX),
            modified: modified.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)),
            inode: inode(metadata),
        }
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> i64 {
    std::os::unix::fs::MetadataExt::ino(metadata).cast_signed()
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> i64 {
    0
}

/// Opens a regular file for reading. A link is not followed, a pipe or a device is not waited for.
///
/// # Errors
/// When it is not there, or is no regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }
}

/// Reads at most `limit` bytes of a regular file. The flag tells whether that was all of it.
///
/// # Errors
/// As [`open_regular`], and when reading fails.
pub fn read_head(path: &Path, limit: usize) -> io::Result<(Vec<u8>, Stamp, bool)> {
    let (file, metadata) = open_regular(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(limit).min(limit));
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    file.take(limit).read_to_end(&mut bytes)?;
    let whole = metadata.len() <= limit;
    Ok((bytes, Stamp::of(&metadata), whole))
}

/// Writes a file so that it is either the old one or the new one, never a part of it.
///
/// A new temporary file in the same folder is written, flushed and renamed; a link at `path` is
/// replaced, not followed. The temporary name does not end in `.md`. Mode 0600.
///
/// # Errors
/// When any step fails; what was at `path` is then still there, and the temporary file is gone.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<Stamp> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.tmp", ulid::Ulid::generate()));
    let result = (|| {
        let mut file = private_options().create_new(true).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        let stamp = Stamp::of(&file.metadata()?);
        fs::rename(&temporary, path)?;
        sync_folder(folder);
        Ok(stamp)
    })();
    if result.is_err() {
        // The cause is what matters; a leftover is swept by the deferred process.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Options that make a file for the owner alone and follow no link.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    options
}

/// Makes a rename survive a power cut. Not every file system can; the rename stands either way.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_link_is_replaced_and_not_written_through() {
        // PATH-04
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::write(&outside, "theirs").unwrap();
        let path = folder.path().join("note.md");
        symlink(&outside, &path).unwrap();
        write_atomic(&path, b"ours").unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
        assert_eq!(
            fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn links_and_special_files_are_not_read() {
        // PATH-02, PATH-05
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), "private").unwrap();
        symlink(folder.path().join("secret"), folder.path().join("link")).unwrap();
        assert!(read_head(&folder.path().join("link"), 100).is_err());
        assert!(read_head(folder.path(), 100).is_err());
        let pipe = folder.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        assert!(read_head(&pipe, 100).is_err());
        assert!(read_head(&folder.path().join("none"), 100).is_err());
    }

    #[test]
    fn a_head_says_whether_it_is_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "12345").unwrap();
        assert_eq!(
            read_head(&path, 5)
                .map(|(bytes, _, whole)| (bytes.len(), whole))
                .unwrap(),
            (5, true)
        );
        assert_eq!(
            read_head(&path, 4)
                .map(|(bytes, _, whole)| (bytes.len(), whole))
                .unwrap(),
            (4, false)
        );
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), "").unwrap();
        assert!(write_atomic(&path, b"new").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
