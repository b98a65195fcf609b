//! A store as one file: a tar archive (POSIX ustar) of regular files, with a SHA-256 at its end.
//!
//! `tar xf` unpacks it without Anamnesis. Reading is strict, because the file may come from anywhere:
//! every path is relative and normal, no entry is a link, and nothing is unpacked before the SHA-256
//! of the whole file was checked.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Component, Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{file::private_options, home::ensure_folder};
use anamnesis_text::hash::hex;

/// The unit of a tar archive, in bytes.
const BLOCK: usize = 512;

/// The last entry: the SHA-256 of all bytes before it.
const SEAL: &str = "anamnesis-backup.sha256";

/// The length of a SHA-256 in hexadecimal digits.
const SEAL_LENGTH: usize = 64;

/// Writes an archive.
pub struct ArchiveWriter<W: Write> {
    out: W,
    hash: Sha256,
    files: usize,
}

impl<W: Write> ArchiveWriter<W> {
    /// Starts an archive.
    pub fn new(out: W) -> Self {
        Self {
            out,
            hash: Sha256::new(),
            files: 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }

    /// Adds a file under a path relative to the store. Bytes that are appended meanwhile are left out.
    pub fn add(&mut self, name: &str, file: &mut File) -> io::Result<()> {
        let length = file.metadata()?.len();
        self.put(&header(name, length)?)?;
        let mut buffer = [0; 16 * BLOCK];
        let mut left = length;
        while left > 0 {
            let most = buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = file.read(&mut buffer[..most])?;
            if read == 0 {
                return Err(io::Error::other(format!("{name} became shorter")));
            }
            self.put(&buffer[..read])?;
            left -= read as u64;
        }
        self.put(&vec![0; padding(length)])?;
        self.files += 1;
        Ok(())
    }

    /// Writes the seal and the end. Returns how many files were added.
    pub fn finish(mut self) -> io::Result<usize> {
        let seal = hex(&self.hash.clone().finalize());
        self.put(&header(SEAL, SEAL_LENGTH as u64)?)?;
        self.put(seal.as_bytes())?;
        self.put(&vec![0; padding(SEAL_LENGTH as u64)])?;
        self.put(&[0; 2 * BLOCK])?;
        self.out.flush()?;
        Ok(self.files)
    }
}

/// How many bytes fill the last block.
fn padding(length: u64) -> usize {
    let over = usize::try_from(length % BLOCK as u64).unwrap_or(0);
    (BLOCK - over) % BLOCK
}

fn header(name: &str, length: u64) -> io::Result<[u8; BLOCK]> {
    let too_long = || io::Error::other(format!("the path is too long for an archive: {name}"));
    let (prefix, rest) = if name.len() <= 100 {
        ("", name)
    } else {
        let cut = name.char_indices().filter(|(_, c)| *c == '/');
        let cut = cut.map(|(place, _)| place);
        let mut cuts = cut.filter(|place| *place <= 155 && name.len() - place <= 101);
        let cut = cuts.next().ok_or_else(too_long)?;
        (&name[..cut], &name[cut + 1..])
    };
    let mut header = [0; BLOCK];
    let mut put = |place: usize, bytes: &[u8]| {
        header[place..place + bytes.len()].copy_from_slice(bytes);
    };
    put(0, rest.as_bytes());
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{length:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // The checksum counts itself as blanks.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Why an archive cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It cannot be read, or a file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no backup, or not a whole one.
    #[error("incomplete backup: {0}")]
    Broken(&'static str),
    /// It has an entry that no backup has.
    #[error("unexpected entry \"{0}\": not a backup of anamnesis")]
    Foreign(String),
}

/// Checks a whole archive and returns how many files it has. `is_known` tells which paths may be in it.
pub fn check(file: &mut File, is_known: impl Fn(&Path) -> bool) -> Result<usize, ArchiveError> {
    walk(file, &is_known, |_, length, reader| {
        let copied = io::copy(&mut reader.take(length), &mut io::sink())?;
        Ok(copied == length)
    })
}

/// Unpacks an archive into a new folder. The caller has [checked](check) the same open file.
pub fn unpack(
    file: &mut File,
    folder: &Path,
    is_known: impl Fn(&Path) -> bool,
) -> Result<usize, ArchiveError> {
    ensure_folder(folder).map_err(io::Error::other)?;
    walk(file, &is_known, |name, length, reader| {
        let path = folder.join(name);
        for parent in name.ancestors().skip(1).collect::<Vec<_>>().iter().rev() {
            ensure_folder(&folder.join(parent)).map_err(io::Error::other)?;
        }
        let mut out = private_options().create_new(true).open(&path)?;
        let copied = io::copy(&mut reader.take(length), &mut out)?;
        Ok(copied == length)
    })
}

/// A reader that hashes what it reads.
struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

/// Calls `take` with the path, the length and the bytes of each file, then checks the seal.
fn walk(
    file: &mut File,
    is_known: &impl Fn(&Path) -> bool,
    mut take: impl FnMut(&Path, u64, &mut dyn Read) -> io::Result<bool>,
) -> Result<usize, ArchiveError> {
    io::Seek::rewind(file)?;
    let mut reader = Hashing {
        inner: io::BufReader::new(file),
        hash: Sha256::new(),
    };
    let mut files = 0;
    loop {
        let seal = hex(&reader.hash.clone().finalize());
        let mut header = [0; BLOCK];
        let read = reader.read_exact(&mut header);
        read.map_err(|_| ArchiveError::Broken("its end is missing"))?;
        let (name, length) = entry(&header)?;
        if name == Path::new(SEAL) {
            let mut said = [0; SEAL_LENGTH];
            let read = reader.read_exact(&mut said);
            read.map_err(|_| ArchiveError::Broken("its end is missing"))?;
            if said == *seal.as_bytes() {
                return Ok(files);
            }
            return Err(ArchiveError::Broken("its bytes were changed"));
        }
        if !is_known(&name) {
            return Err(ArchiveError::Foreign(name.display().to_string()));
        }
        let mut rest = [0; BLOCK];
        if !take(&name, length, &mut reader)?
            || reader.read_exact(&mut rest[..padding(length)]).is_err()
        {
            return Err(ArchiveError::Broken("its end is missing"));
        }
        files += 1;
    }
}

/// Parses a header: the path and the length of a regular file.
fn entry(header: &[u8; BLOCK]) -> Result<(PathBuf, u64), ArchiveError> {
    let text = |range: std::ops::Range<usize>| {
        let bytes = &header[range];
        let end = bytes.iter().position(|byte| *byte == 0);
        std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())])
    };
    let number = |range| {
        let text: &str = text(range).ok()?;
        u64::from_str_radix(text.trim(), 8).ok()
    };
    let mut sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    sum -= header[148..156]
        .iter()
        .map(|byte| u64::from(*byte))
        .sum::<u64>();
    sum += 8 * u64::from(b' ');
    if &header[257..262] != b"ustar" || number(148..156) != Some(sum) {
        return Err(ArchiveError::Broken("a header is invalid"));
    }
    let (Ok(name), Ok(prefix), Some(length)) = (text(0..100), text(345..500), number(124..136))
    else {
        return Err(ArchiveError::Broken("a header is invalid"));
    };
    let path = Path::new(prefix).join(name);
    let is_normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    if header[156] != b'0' || name.is_empty() || !path.components().all(is_normal) {
        return Err(ArchiveError::Foreign(path.display().to_string()));
    }
    Ok((path, length))
}

/// Lists the files below a folder, with their paths relative to `root`, sorted. Links are left out.
pub fn files_below(root: &Path, folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let (_, files) = super::file::below(folder)?;
    let mut found = Vec::with_capacity(files.len());
    for path in files {
        if !fs::symlink_metadata(&path).is_ok_and(|file| file.is_file()) {
            continue;
        }
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let name = relative.to_str().map(|name| name.replace('\\', "/"));
        let name =
            name.ok_or_else(|| io::Error::other(format!("{} is not UTF-8", relative.display())))?;
        found.push((name, path));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let mut writer = ArchiveWriter::new(File::create(&path).unwrap());
        for (name, text) in files {
            let source = folder.path().join("source");
            fs::write(&source, text).unwrap();
            writer.add(name, &mut File::open(&source).unwrap()).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), files.len());
        (folder, path)
    }

    fn all(_: &Path) -> bool {
        true
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        let long = format!("memory/{}/{}.md", "a".repeat(90), "b".repeat(60));
        let (folder, path) = archive(&[
            ("memory/x.md", "one"),
            (&long, ""),
            ("c.json", &"z".repeat(600)),
        ]);
        let out = folder.path().join("out");
        let mut file = File::open(&path).unwrap();
        assert_eq!(check(&mut file, all).unwrap(), 3);
        assert_eq!(unpack(&mut file, &out, all).unwrap(), 3);
        assert_eq!(fs::read_to_string(out.join("memory/x.md")).unwrap(), "one");
        assert_eq!(fs::read_to_string(out.join(&long)).unwrap(), "");
        assert_eq!(fs::read(out.join("c.json")).unwrap().len(), 600);
    }

    #[test]
    fn a_cut_or_changed_archive_is_refused() {
        let (_folder, path) = archive(&[("memory/x.md", "one")]);
        let whole = fs::read(&path).unwrap();
        for length in [0, 100, 512, 600, 1024, 1100, 1536] {
            fs::write(&path, &whole[..length]).unwrap();
            let result = check(&mut File::open(&path).unwrap(), all);
            assert!(matches!(result, Err(ArchiveError::Broken(_))), "{length}");
        }
        for place in [0, 130, 513, 1599] {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            fs::write(&path, &bytes).unwrap();
            let result = check(&mut File::open(&path).unwrap(), all);
            assert!(result.is_err(), "{place}");
        }
    }

    #[test]
    fn no_entry_leaves_the_folder() {
        for name in ["../x", "/etc/x", "memory/../../x", "other/x"] {
            let (folder, path) = archive(&[(name, "one")]);
            let out = folder.path().join("out");
            let known = |path: &Path| path.starts_with("memory");
            let result = unpack(&mut File::open(&path).unwrap(), &out, known);
            assert!(matches!(result, Err(ArchiveError::Foreign(_))), "{name}");
            assert_eq!(fs::read_dir(&out).unwrap().count(), 0, "{name}");
        }
    }
}
