//! Reading and writing single files so that nothing is followed, half written or lost.

use std::{
    collections::BTreeSet,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
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
    let (folder, temporary) = beside(path)?;
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

/// The folder of a file, and a name for a temporary file in it.
fn beside(path: &Path) -> io::Result<(&Path, PathBuf)> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = name.to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.tmp", ulid::Ulid::generate()));
    Ok((folder, temporary))
}

/// Writes files that are not there yet, each as [`write_atomic`] would, but waits for the disk once: one
/// wait for each of thousands takes a minute. The folders are there, on one file system. Where something
/// lies by now, that stays, and there is no stamp.
///
/// # Errors
/// When any step fails; each file is then either there as a whole or not at all.
pub fn write_new(files: &[(PathBuf, Vec<u8>)]) -> io::Result<Vec<Option<Stamp>>> {
    let mut written = Vec::with_capacity(files.len());
    let result = put_in_place(files, &mut written);
    // Those that gave way, and after a failure all that are not in place.
    for (temporary, _) in written.into_iter().filter(|(_, stamp)| stamp.is_none()) {
        let _ = fs::remove_file(temporary);
    }
    result
}

/// Notes in `written` each temporary file, and its stamp once it is in place.
fn put_in_place(
    files: &[(PathBuf, Vec<u8>)],
    written: &mut Vec<(PathBuf, Option<Stamp>)>,
) -> io::Result<Vec<Option<Stamp>>> {
    let mut folders = BTreeSet::new();
    let mut stamps = Vec::with_capacity(files.len());
    for (path, bytes) in files {
        let (folder, temporary) = beside(path)?;
        folders.insert(folder);
        let mut file = private_options().create_new(true).open(&temporary)?;
        written.push((temporary, None));
        file.write_all(bytes)?;
        if cfg!(not(target_os = "linux")) {
            file.sync_all()?;
        }
        stamps.push(Stamp::of(&file.metadata()?));
    }
    #[cfg(target_os = "linux")]
    if let Some(folder) = folders.first() {
        rustix::fs::syncfs(File::open(folder)?)?;
    }
    for (((path, _), stamp), (temporary, placed)) in files.iter().zip(stamps).zip(&mut *written) {
        if fs::symlink_metadata(path).is_err() {
            fs::rename(temporary, path)?;
            *placed = Some(stamp);
        }
    }
    folders.into_iter().for_each(sync_folder);
    Ok(written.iter().map(|(_, placed)| *placed).collect())
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

/// From this many files on, one `syncfs` is faster than an `fsync` of each file.
#[cfg(target_os = "linux")]
const MANY: usize = 32;

/// Flushes files that another writer has closed, and their folders. A missing file is skipped.
///
/// # Errors
/// When the disk fails.
#[cfg(unix)]
pub fn flush(paths: &[PathBuf]) -> io::Result<()> {
    let folders: BTreeSet<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
    #[cfg(target_os = "linux")]
    if paths.len() >= MANY {
        // A folder may be gone with its files.
        let folder = folders.iter().find_map(|folder| File::open(folder).ok());
        return folder.map_or(Ok(()), |folder| Ok(rustix::fs::syncfs(folder)?));
    }
    for path in paths {
        match File::open(path) {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    folders.into_iter().for_each(sync_folder);
    Ok(())
}

/// Does nothing: Windows flushes only a handle that is open for writing, and git's objects are read-only.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn flush(_: &[PathBuf]) -> io::Result<()> {
    Ok(())
}

/// Flushes everything below a folder.
///
/// # Errors
/// When the folder cannot be read, or the disk fails.
pub fn flush_tree(folder: &Path) -> io::Result<()> {
    let (folders, files) = below(folder)?;
    flush(&files)?;
    for folder in &folders {
        sync_folder(folder);
    }
    Ok(())
}

/// Lists a folder with all folders below it, and all files in them. No link is followed.
///
/// # Errors
/// When a folder cannot be read.
pub fn below(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
        folders.push(folder);
    }
    Ok((folders, files))
}

/// Flushes the entries of a folder: what was created, renamed or removed in it. Errors are ignored: not
/// every file system can do it.
pub fn sync_folder(folder: &Path) {
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
    fn new_files_are_put_in_place_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("taken"), "theirs").unwrap();
        symlink(path("nowhere"), path("link")).unwrap();
        let names = ["one", "taken", "link", "two"];
        let files = names.map(|name| (path(name), format!("our {name}").into_bytes()));
        let stamps = write_new(&files).unwrap();
        let free: Vec<bool> = stamps.iter().map(Option::is_some).collect();
        assert_eq!(free, [true, false, false, true]);
        for (name, stamp) in [("one", stamps[0]), ("two", stamps[3])] {
            let (bytes, found, _) = read_head(&path(name), 100).unwrap();
            assert_eq!(
                (bytes, Some(found)),
                (format!("our {name}").into_bytes(), stamp)
            );
            let mode = fs::metadata(path(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(fs::read_to_string(path("taken")).unwrap(), "theirs");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
        assert_eq!(write_new(&[]).unwrap(), []);
    }

    #[test]
    fn new_files_that_fail_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            (folder.path().join("one"), b"x".to_vec()),
            (folder.path().join("missing/two"), b"x".to_vec()),
        ];
        assert!(write_new(&files).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_flushed_may_be_gone_and_may_be_many_files() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..100)
            .map(|number| folder.path().join(number.to_string()))
            .collect();
        for path in &paths[1..] {
            fs::write(path, "x").unwrap();
        }
        flush(&paths[..2]).unwrap();
        flush(&paths).unwrap();
        let gone = folder.path().join("a/b");
        flush(&[&paths[..], std::slice::from_ref(&gone)].concat()).unwrap();
        flush(&vec![gone; 100]).unwrap();
        flush(&[]).unwrap();
        flush_tree(folder.path()).unwrap();
        assert!(flush_tree(&paths[0]).is_err());
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
