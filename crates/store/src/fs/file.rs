//! Atomic reads and writes of single files, without following links.

#![expect(
    clippy::disallowed_methods,
    reason = "the one place that flushes: what it opened for writing, or a folder where that works"
)]

use std::{
    collections::BTreeSet,
    fs::{self, DirEntry, File, Metadata, OpenOptions},
    io::{self, BufRead as _, BufReader, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_text::hash::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A file's size, modification time and inode, which show whether it changed.
///
/// An atomic write always makes a new inode; an editor that writes in place changes the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Size in bytes.
    pub size: i64,
    /// The modification time, nanoseconds since 1970.
    pub modified: i64,
    /// The inode, or 0 where there are none.
    pub inode: i64,
}

impl Stamp {
    /// Returns the stamp in `metadata`.
    pub fn from_metadata(metadata: &Metadata) -> Self {
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

/// Opens a regular file for reading. It does not follow a link or wait for a pipe or device.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let irregular = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    // Windows has no flag that refuses a link only, and denies access to a folder.
    if cfg!(windows) && fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(irregular());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(irregular())
    }
}

/// Opens a regular file of another program. A link is not followed, and a file with several names is
/// refused: another name may be outside of the folder that a person meant.
pub fn open_single(path: &Path) -> io::Result<(File, Metadata)> {
    let (file, metadata) = open_regular(path).map_err(|error| match error.raw_os_error() {
        // The system's message for a link that is not followed is not helpful.
        Some(_) if path.is_symlink() => io::Error::other("a link; not followed"),
        _ => error,
    })?;
    if has_other_names(&file, &metadata) {
        let reason = "a hard link to a file with other names; not followed";
        return Err(io::Error::other(reason));
    }
    Ok((file, metadata))
}

#[cfg(unix)]
fn has_other_names(_: &File, metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
fn has_other_names(file: &File, _: &Metadata) -> bool {
    winapi_util::file::information(file).is_ok_and(|found| found.number_of_links() > 1)
}

/// Reads at most `limit` bytes of a regular file. The flag tells whether that is the whole file.
pub fn read_head(path: &Path, limit: usize) -> io::Result<(Vec<u8>, Stamp, bool)> {
    let (file, metadata) = open_regular(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(limit).min(limit));
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    file.take(limit).read_to_end(&mut bytes)?;
    let whole = metadata.len() <= limit;
    Ok((bytes, Stamp::from_metadata(&metadata), whole))
}

/// Returns the SHA-256 of a file in lower-case hexadecimal, without reading the file at once.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut file = BufReader::new(File::open(path)?);
    let mut hash = Sha256::new();
    loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(part);
        let length = part.len();
        file.consume(length);
    }
}

/// Returns at most `limit` bytes of a regular file as text; empty if it cannot be read.
pub fn read_text(path: &Path, limit: usize) -> String {
    let bytes = read_head(path, limit).map(|(bytes, ..)| bytes);
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// Writes a file atomically: it has either the old or the new content.
///
/// A temporary file in the same folder is written, flushed and renamed. A link at `path` is replaced,
/// not followed. The temporary name does not end in `.md`. The mode is 0600.
///
/// # Errors
/// The old file is still at `path`, and the temporary file is gone.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<Stamp> {
    let (folder, temporary) = beside(path)?;
    let result = (|| {
        let mut file = private_options().create_new(true).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        let stamp = Stamp::from_metadata(&file.metadata()?);
        rename(&temporary, path)?;
        sync_folder(folder);
        Ok(stamp)
    })();
    if result.is_err() {
        // The caller needs the first error. The deferred process removes leftovers.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Returns whether a device cannot read or write: `EIO`; on Windows `ERROR_CRC` or `ERROR_IO_DEVICE`,
/// because 5 is denied access there.
pub fn is_disk_failure(error: &io::Error) -> bool {
    let codes: &[i32] = if cfg!(windows) { &[23, 1117] } else { &[5] };
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

/// Moves a file, also onto another one. On Windows, a process that reads one of the two can refuse it, a
/// virus scanner too, but only for a moment.
///
/// # Errors
/// As [`fs::rename`]; on Windows after 0.2 s at most.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let mut result = fs::rename(from, to);
    if cfg!(windows) {
        // Error 32 is a sharing violation.
        let is_refused = |error: &io::Error| {
            error.kind() == io::ErrorKind::PermissionDenied || error.raw_os_error() == Some(32)
        };
        for _ in 0..20 {
            if !result.as_ref().is_err_and(is_refused) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            result = fs::rename(from, to);
        }
    }
    result
}

/// Appends a suffix to the name of a file.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the entries of a folder, in no order; none if it cannot be read.
pub fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Returns how far a file's time is from now; none if it is unknown. A time far ahead is from a wrong clock,
/// and as old.
pub fn age(path: &Path) -> Option<Duration> {
    let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
    Some(modified.elapsed().unwrap_or_else(|ahead| ahead.duration()))
}

/// Removes a file, if it exists.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the folder of a file and a name for a temporary file in it.
fn beside(path: &Path) -> io::Result<(&Path, PathBuf)> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = name.to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.tmp", ulid::Ulid::generate()));
    Ok((folder, temporary))
}

/// Writes new files as [`write_atomic`] does, but flushes once: thousands of flushes take a minute.
/// The folders exist on one file system. An existing file stays and gets no stamp.
///
/// # Errors
/// Each file is either complete or missing.
pub fn write_new(files: &[(PathBuf, Vec<u8>)]) -> io::Result<Vec<Option<Stamp>>> {
    let mut written = Vec::with_capacity(files.len());
    let result = put_in_place(files, &mut written);
    // Files that were not needed; after an error, all that are not in place.
    for (temporary, _) in written.into_iter().filter(|(_, stamp)| stamp.is_none()) {
        let _ = fs::remove_file(temporary);
    }
    result
}

/// Records each temporary file in `written`, with its stamp once it is in place.
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
        stamps.push(Stamp::from_metadata(&file.metadata()?));
    }
    #[cfg(target_os = "linux")]
    if let Some(folder) = folders.first() {
        rustix::fs::syncfs(File::open(folder)?)?;
    }
    for (((path, _), stamp), (temporary, placed)) in files.iter().zip(stamps).zip(&mut *written) {
        if fs::symlink_metadata(path).is_err() {
            rename(temporary, path)?;
            *placed = Some(stamp);
        }
    }
    folders.into_iter().for_each(sync_folder);
    Ok(written.iter().map(|(_, placed)| *placed).collect())
}

/// Options that create a file with mode 0600 and follow no link.
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

/// Flushes one of our files that another writer, such as SQLite, has closed.
///
/// Windows refuses to flush a handle that cannot write.
pub fn sync_file(path: &Path) -> io::Result<()> {
    private_options().open(path)?.sync_all()
}

/// From this many files on, one `syncfs` is faster than an `fsync` of each file.
#[cfg(target_os = "linux")]
const MANY: usize = 32;

/// Flushes files that another writer has closed, and their folders. A missing file is skipped.
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

/// Flushes files that another writer has closed. A missing file is skipped.
///
/// Windows flushes only a handle that is open for writing, and git's objects are read-only.
#[cfg(not(unix))]
#[expect(
    clippy::permissions_set_readonly_false,
    reason = "no rights of others are touched"
)]
pub fn flush(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        let permissions = match fs::metadata(path) {
            Ok(metadata) => metadata.permissions(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if permissions.readonly() {
            let mut writable = permissions.clone();
            writable.set_readonly(false);
            fs::set_permissions(path, writable)?;
        }
        let flushed = File::options()
            .write(true)
            .open(path)
            .and_then(|file| file.sync_all());
        fs::set_permissions(path, permissions)?;
        flushed?;
    }
    Ok(())
}

/// Flushes everything below a folder.
pub fn flush_tree(folder: &Path) -> io::Result<()> {
    let (folders, files) = below(folder)?;
    flush(&files)?;
    for folder in &folders {
        sync_folder(folder);
    }
    Ok(())
}

/// Lists a folder with everything below it. No link is followed.
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

/// Flushes a folder's entries: created, renamed and removed files. Errors are ignored, because not
/// every file system supports it.
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
    fn a_time_far_ahead_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note.md");
        let file = File::create(&path).unwrap();
        let hour = Duration::from_secs(3_600);
        let now = std::time::SystemTime::now();
        for (modified, is_old) in [
            (now, false),
            (now + hour / 2, false),
            (now - 2 * hour, true),
            (now + 2 * hour, true),
        ] {
            file.set_modified(modified).unwrap();
            assert_eq!(age(&path).unwrap() > hour, is_old, "{modified:?}");
        }
        assert_eq!(age(&folder.path().join("none")), None);
    }

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

#[cfg(test)]
mod flush_tests {
    use super::*;

    #[test]
    fn a_read_only_file_is_flushed_and_stays_read_only() {
        let folder = tempfile::tempdir().unwrap();
        let object = folder.path().join("object");
        fs::write(&object, "text").unwrap();
        let mut permissions = fs::metadata(&object).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&object, permissions).unwrap();
        flush(&[object.clone(), folder.path().join("missing")]).unwrap();
        assert!(fs::metadata(&object).unwrap().permissions().readonly());
        assert_eq!(fs::read(&object).unwrap(), b"text");
    }
}
