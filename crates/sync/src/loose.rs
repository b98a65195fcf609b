//! Removes damaged loose objects before libgit2 reads them.
//!
//! A power cut may leave an object's file empty or truncated. libgit2 loops forever on a truncated one:
//! `git_zstream_get_output` calls zlib again and again without input. And when the same object is
//! written again, libgit2 keeps the existing file unread. So such a file is moved away first: then the
//! object is missing, which is an error, and it can be written again.

use std::{
    fs::{self, File, Metadata},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anamnesis_store::fs::file;
use git2::{ObjectType, Oid};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use crate::error::Error;

/// The folder in `.git` that damaged files are moved to.
pub(crate) const BROKEN: &str = "anamnesis-broken";

/// A file in `.git` whose time is that of the last check. It holds the boot id of then.
const CHECKED: &str = "anamnesis-checked";

/// A random id that Linux makes at each boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The longest boot id.
const MAX_BOOT: usize = 64;

/// Without a boot id: after this time the system has written files to the disk.
const WRITTEN_BACK: Duration = Duration::from_secs(600);

/// How far the timestamp of a file may be behind the clock.
const TICK: Duration = Duration::from_secs(2);

/// The most bytes of an object. A fetch brings no more.
const MAX_LENGTH: usize = 1 << 30;

/// How many letters of a name are the folder's.
const FOLDER: usize = 2;

/// The file of a loose object.
pub(crate) fn path(git: &Path, oid: Oid) -> PathBuf {
    let name = oid.to_string();
    let (folder, rest) = name.split_at(FOLDER);
    git.join("objects").join(folder).join(rest)
}

/// Moves damaged loose objects away, among those that changed since the last check.
///
/// After a boot all of them are checked: a power cut may have damaged any.
///
/// # Errors
/// When a damaged file cannot be moved, or a file may not be read.
pub(crate) fn check_new(git: &Path) -> Result<(), Error> {
    let marker = git.join(CHECKED);
    let boot = fs::read_to_string(BOOT).unwrap_or_default();
    let since = last_look(&marker, &boot);
    let begun = SystemTime::now() - TICK;
    if check(git, since)? > 0 {
        // Without the marker the next run checks the same files again.
        let _ = File::create(&marker).and_then(|mut file| {
            file.write_all(boot.as_bytes())?;
            file.set_modified(begun)
        });
    }
    Ok(())
}

/// The time of the last check; `None` if the machine was booted since.
fn last_look(marker: &Path, boot: &str) -> Option<SystemTime> {
    let (seen, ..) = file::read_head(marker, MAX_BOOT).ok()?;
    let last = fs::symlink_metadata(marker).ok()?.modified().ok()?;
    if boot.is_empty() {
        last.checked_sub(WRITTEN_BACK)
    } else {
        (seen == boot.as_bytes()).then_some(last)
    }
}

/// Moves damaged loose objects away, among those that changed since a time, or all. Returns how many it
/// checked.
pub(crate) fn check(git: &Path, since: Option<SystemTime>) -> Result<usize, Error> {
    let mut seen = 0;
    for (folder, entry) in entries(&git.join("objects")) {
        if folder.len() != FOLDER || !entry.is_dir() {
            continue;
        }
        for (rest, path) in entries(&entry) {
            let Ok(oid) = Oid::from_str(&format!("{folder}{rest}")) else {
                continue;
            };
            let changed = fs::symlink_metadata(&path).map(|metadata| changed(&metadata));
            if since.is_some_and(|since| changed.is_ok_and(|changed| changed < since)) {
                continue;
            }
            seen += 1;
            match fs::read(&path) {
                Ok(bytes) if is_object(&bytes, oid) => {}
                // Packed or moved in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Other errors pass by themselves: no file handles left, a network drive that does
                // not answer.
                Err(error) if !is_damage(&error) => return Err(Error::io(&path)(error)),
                Ok(_) | Err(_) => {
                    let aside = git.join(BROKEN);
                    fs::create_dir_all(&aside).map_err(Error::io(&aside))?;
                    fs::rename(&path, aside.join(oid.to_string())).map_err(Error::io(&path))?;
                }
            }
        }
    }
    Ok(seen)
}

/// Returns whether a file is unreadable for good: a bad sector, or a folder in its place.
fn is_damage(error: &io::Error) -> bool {
    file::is_disk_failure(error) || error.kind() == io::ErrorKind::IsADirectory
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    file::entries(folder)
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}

/// The time of a file's last change, its renaming included.
fn changed(metadata: &Metadata) -> SystemTime {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let seconds = Duration::from_secs(metadata.ctime().try_into().unwrap_or(0));
        let rest = Duration::from_nanos(metadata.ctime_nsec().try_into().unwrap_or(0));
        SystemTime::UNIX_EPOCH + seconds + rest
    }
    #[cfg(not(unix))]
    metadata.modified().unwrap_or_else(|_| SystemTime::now())
}

/// Returns whether bytes are the loose object of this id.
fn is_object(bytes: &[u8], oid: Oid) -> bool {
    let Ok(object) = decompress_to_vec_zlib_with_limit(bytes, MAX_LENGTH) else {
        return false;
    };
    let Some(end) = object.iter().position(|byte| *byte == 0) else {
        return false;
    };
    let (head, body) = (&object[..end], &object[end + 1..]);
    let kind = str::from_utf8(head).ok().and_then(|head| {
        let (kind, length) = head.split_once(' ')?;
        (length == body.len().to_string()).then(|| ObjectType::from_str(kind))?
    });
    kind.is_some_and(|kind| Oid::hash_object(kind, body).is_ok_and(|found| found == oid))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a repository with an object of each kind; returns the objects' files.
    fn repository() -> (tempfile::TempDir, PathBuf, Vec<(Oid, PathBuf)>) {
        let folder = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init_bare(folder.path()).unwrap();
        let git = repository.path().to_owned();
        let blob = repository.blob(&b"text\n".repeat(1_000)).unwrap();
        let mut builder = repository.treebuilder(None).unwrap();
        builder.insert("file", blob, 0o100_644).unwrap();
        let tree = builder.write().unwrap();
        let author = git2::Signature::new("a", "b", &git2::Time::new(0, 0)).unwrap();
        let commit = {
            let tree = repository.find_tree(tree).unwrap();
            repository.commit(None, &author, &author, "x", &tree, &[])
        };
        let files = [blob, tree, commit.unwrap()].map(|oid| (oid, path(&git, oid)));
        (folder, git, files.to_vec())
    }

    fn overwrite(path: &Path, bytes: &[u8]) {
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn whatever_is_left_of_an_object_is_no_object() {
        let (_folder, _, files) = repository();
        for (oid, path) in files {
            let bytes = fs::read(path).unwrap();
            assert!(is_object(&bytes, oid));
            for length in 0..bytes.len() {
                assert!(!is_object(&bytes[..length], oid), "{length}");
                let mut zeros = bytes.clone();
                zeros[length..].fill(0);
                assert!(!is_object(&zeros, oid), "{length}");
            }
            assert!(!is_object(&bytes, Oid::ZERO_SHA1));
        }
    }

    #[test]
    fn an_object_that_is_cut_short_is_missing_and_can_be_written_again() {
        let (_folder, git, files) = repository();
        check_new(&git).unwrap();
        let (oid, path) = &files[0];
        let bytes = fs::read(path).unwrap();
        overwrite(path, &bytes[..bytes.len() / 2]);
        check_new(&git).unwrap();
        assert!(!path.exists());
        assert_eq!(
            fs::read(git.join(BROKEN).join(oid.to_string()))
                .unwrap()
                .len(),
            bytes.len() / 2
        );
        let repository = git2::Repository::open(&git).unwrap();
        assert!(repository.find_blob(*oid).is_err());
        assert_eq!(repository.blob(&b"text\n".repeat(1_000)).unwrap(), *oid);
        assert!(repository.find_blob(*oid).is_ok());
        for (_, path) in &files {
            assert!(path.exists());
        }
    }

    #[test]
    fn what_was_looked_at_is_not_read_again() {
        let (_folder, git, files) = repository();
        // git may touch an older object when it writes one that names it.
        let times = files.iter().map(|(_, path)| fs::symlink_metadata(path));
        let times = times.map(|metadata| changed(&metadata.unwrap()));
        let (first, last) = (times.clone().min().unwrap(), times.max().unwrap());
        assert_eq!(check(&git, None).unwrap(), 3);
        assert_eq!(check(&git, Some(last + WRITTEN_BACK)).unwrap(), 0);
        assert_eq!(check(&git, Some(first)).unwrap(), 3);
    }

    #[test]
    fn after_a_boot_all_is_looked_at() {
        let (_folder, git, _) = repository();
        let marker = git.join(CHECKED);
        assert_eq!(last_look(&marker, "one"), None);
        fs::write(&marker, "one").unwrap();
        let last = fs::metadata(&marker).unwrap().modified().unwrap();
        assert_eq!(last_look(&marker, "one"), Some(last));
        assert_eq!(last_look(&marker, "two"), None);
        assert_eq!(last_look(&marker, ""), Some(last - WRITTEN_BACK));
    }
}
