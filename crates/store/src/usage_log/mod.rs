//! The usage logs of all machines: `memory/.usage/<machine>/<YYYY-MM>.jsonl`, one receipt per line.
//!
//! Each installation writes to its own folder, so git never merges two versions of a file. The
//! folder's name ends in the installation's random id, which its `owner` file has in full, so two
//! machines with the same name use different folders. The id depends on `journal.db`, so a copied
//! home gets a new one.
//!
//! Lines are only appended. The owner compacts an old month: it writes the counts to
//! `<YYYY-MM>.fold.json` and removes the lines. If both exist, the counts are read. All files are
//! untrusted: reads are limited, links are not followed, and invalid lines are counted and skipped.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    usage_log::{Aliases, Fold, FoldFile, Month, PortableId, Receipt, ReceiptSource, SessionMark},
};
use anamnesis_text::hash::hex;
use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};

use crate::{
    fs::{
        file::{self, Stamp},
        home::{self, Home},
        lock::{self, Lock, Subject},
    },
    journal::{self, Journal},
};

/// The file that names the owner of a folder.
const OWNER: &str = "owner";

/// The file endings of a month's lines and of its counts.
const LINES: &str = ".jsonl";
const COUNTS: &str = ".fold.json";

/// The maximum length of a machine's folder name, in bytes.
const MAX_NAME_LENGTH: usize = 64;

/// The number of hexadecimal digits of an installation's id in its folder's name. More are used if
/// another installation has the shorter name.
const ID_LENGTHS: [usize; 3] = [8, 16, 32];

/// The maximum size of a file, in bytes. A busy machine's month has some hundred thousand.
const MAX_FILE_LENGTH: usize = 16 * 1024 * 1024;

/// The maximum number of files.
const MAX_FILES: usize = 10_000;

/// The maximum number of bytes that are read of all files.
const MAX_TOTAL_LENGTH: usize = 256 * 1024 * 1024;

/// The usage log cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process holds the lock for longer than the caller's timeout.
    #[error("the receipts are being written by another anamnesis process")]
    Locked,
    /// Every possible folder name of this installation belongs to another one.
    #[error("{0} belongs to another installation")]
    Taken(String),
    /// A folder cannot be used.
    #[error(transparent)]
    Folder(#[from] home::Error),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The file system refused.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file, relative to the store.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// A file that could not be read, or not completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, relative to the store.
    pub path: String,
    /// The fault.
    pub trouble: Trouble,
}

/// The fault of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The number of invalid lines.
    Undecodable(u64),
    /// It is not a valid compacted month.
    NoCounts,
    /// It exceeds the limit, alone or with the other files.
    TooLong,
    /// The file cannot be read, or it is not a regular file.
    Unreadable(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.trouble {
            Trouble::Undecodable(1) => write!(formatter, "{path}: a line is no receipt"),
            Trouble::Undecodable(lines) => {
                write!(formatter, "{path}: {lines} lines are no receipts")
            }
            Trouble::NoCounts => write!(formatter, "{path}: not a compacted month"),
            Trouble::TooLong => write!(formatter, "{path}: too long, not all of it is read"),
            Trouble::Unreadable(reason) => write!(formatter, "{path}: {reason}"),
        }
    }
}

/// The position up to which a file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The number of bytes, up to a line end.
    pub length: usize,
    /// SHA-256 of these bytes, which shows whether the file was only appended to.
    pub hash: [u8; 32],
    /// The number of invalid lines among them.
    pub undecodable: u64,
    /// The stamp of the file. While it is unchanged, the file is not opened.
    pub stamp: Stamp,
}

/// The position in each file, by its path in the folder of the usage logs.
pub type Progress = BTreeMap<String, Position>;

/// A file changed other than by appended lines.
struct Rewritten;

/// The usage logs of a store.
#[derive(Debug, Clone)]
pub struct Receipts {
    home: Home,
}

impl Receipts {
    /// Returns the usage logs of a store. Nothing is read.
    pub fn new(home: Home) -> Self {
        Self { home }
    }

    /// Returns the id of this installation: 128 random bits, created at the first call.
    pub fn installation(&self, journal: &Journal) -> Result<String, Error> {
        Ok(journal.get_or_create_random(&journal::installation_key(&self.home.journal()))?)
    }

    /// Returns the mark of a session in receipts.
    pub fn session_mark(&self, journal: &Journal, session: &str) -> Result<SessionMark, Error> {
        Ok(SessionMark::new(
            &journal.get_or_create_random("session_salt")?,
            session,
        ))
    }

    /// Appends a receipt to this installation's folder; `machine` is the name of the machine.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process holds the lock for longer than `patience`. A retry is safe,
    /// because a repeated receipt counts once.
    pub fn append(
        &self,
        journal: &Journal,
        machine: &str,
        receipt: &Receipt,
        patience: Duration,
    ) -> Result<(), Error> {
        let lock = self.lock(patience)?;
        self.append_locked(&lock, journal, machine, receipt)
    }

    /// Writes the pending receipts of the journal, each once, even if several processes do so.
    ///
    /// # Errors
    /// As [`Receipts::append`]. Unwritten receipts stay pending.
    pub fn settle(
        &self,
        journal: &Journal,
        machine: &str,
        patience: Duration,
    ) -> Result<(), Error> {
        if journal.waiting_receipts()?.is_empty() {
            return Ok(());
        }
        let lock = self.lock(patience)?;
        // Queried again, because the previous holder of the lock may have written them.
        for (key, waiting) in journal.waiting_receipts()? {
            for receipt in &waiting {
                self.append_locked(&lock, journal, machine, receipt)?;
            }
            journal.receipt_settled(&key, true)?;
        }
        Ok(())
    }

    fn append_locked(
        &self,
        _lock: &Lock,
        journal: &Journal,
        machine: &str,
        receipt: &Receipt,
    ) -> Result<(), Error> {
        let folder = self.folder(journal, machine)?;
        let mut month = Month::from_time(receipt.at());
        // After a wrong clock, the month may be one whose lines are no longer read.
        while folder.join(format!("{month}{COUNTS}")).exists() {
            month = month.next();
        }
        let path = folder.join(format!("{month}{LINES}"));
        append_lines(&path, &receipt.to_lines()).map_err(|source| self.refused(&path, source))
    }

    /// Compacts the old months of this installation. Returns their paths.
    pub fn compact(
        &self,
        journal: &Journal,
        now: DateTime<Utc>,
        patience: Duration,
    ) -> Result<Vec<String>, Error> {
        let _lock = self.lock(patience)?;
        let mut compacted = Vec::new();
        for machine in self.own_folders(journal)? {
            let folder = self.home.receipts().join(&machine);
            for (name, month) in months_in(&folder, LINES) {
                if !month.is_to_be_compacted(now) {
                    continue;
                }
                let lines = folder.join(name);
                let counts = folder.join(format!("{month}{COUNTS}"));
                let source = ReceiptSource {
                    machine: machine.clone(),
                    month,
                };
                let is_done = compact_file(&source, &lines, &counts)
                    .map_err(|source| self.refused(&lines, source))?;
                if is_done {
                    compacted.push(self.home.relative(&counts));
                }
            }
        }
        Ok(compacted)
    }

    /// Reads the receipts of all machines.
    pub fn read_all(&self) -> (Fold, Vec<Problem>) {
        let mut fold = Fold::default();
        let problems = self.read(&mut Progress::new(), &mut fold);
        (fold, problems)
    }

    /// Reads the lines appended since `progress` and adds them to the fold that belongs to it. If
    /// anything else changed, everything is read again.
    ///
    /// Returns the problems of all files, not only of those that changed.
    pub fn read(&self, progress: &mut Progress, fold: &mut Fold) -> Vec<Problem> {
        if let Ok(problems) = self.read_on(progress, fold) {
            return problems;
        }
        progress.clear();
        *fold = Fold::default();
        // A read from the start cannot meet a rewritten file.
        self.read_on(progress, fold).unwrap_or_default()
    }

    /// Returns a value that changes with every file, without opening one.
    pub fn stamp(&self) -> String {
        let mut hash = Sha256::new();
        for machine in self.machines() {
            let folder = self.home.receipts().join(&machine);
            for (name, _) in months_in(&folder, COUNTS)
                .into_iter()
                .chain(months_in(&folder, LINES))
            {
                let stamp = fs::symlink_metadata(folder.join(&name));
                let stamp = stamp.map(|metadata| Stamp::from_metadata(&metadata)).ok();
                hash.update(format!("{machine}/{name} {stamp:?}\n"));
            }
        }
        hex(&hash.finalize())
    }

    /// Returns the notes that were purged on any machine.
    pub fn gone(&self) -> BTreeSet<NoteId> {
        let gone = self.read_all().0.total().gone;
        gone.into_iter().map(PortableId::id).collect()
    }

    /// Returns the aliases of project keys.
    pub fn aliases(&self) -> Aliases {
        Aliases::from_counts(&self.read_all().0.total())
    }

    fn read_on(&self, progress: &mut Progress, fold: &mut Fold) -> Result<Vec<Problem>, Rewritten> {
        let mut reading = Reading {
            receipts: self,
            known: std::mem::take(progress),
            read: Progress::new(),
            fold,
            problems: Vec::new(),
            files: MAX_FILES,
            length: MAX_TOTAL_LENGTH,
        };
        for machine in self.machines() {
            let folder = self.home.receipts().join(&machine);
            let source = |month| ReceiptSource {
                machine: machine.clone(),
                month,
            };
            let mut compacted = BTreeSet::new();
            for (name, month) in months_in(&folder, COUNTS) {
                if reading.counts(&source(month), &name)? {
                    compacted.insert(month);
                }
            }
            for (name, month) in months_in(&folder, LINES) {
                if !compacted.contains(&month) {
                    reading.lines(&source(month), &name)?;
                }
            }
        }
        // A file that was removed must not count.
        if !reading.known.is_empty() {
            return Err(Rewritten);
        }
        *progress = reading.read;
        Ok(reading.problems)
    }

    /// Returns the names of this installation's folders. There are several after a rename of the
    /// machine.
    ///
    /// This installation does not sync changes in other folders. A copied home has a folder of the
    /// original installation, which may have changed it since.
    pub fn own_folders(&self, journal: &Journal) -> Result<Vec<String>, Error> {
        Ok(self.folders_of(&self.installation(journal)?))
    }

    /// Returns the folders of an installation, by its id.
    pub fn folders_of(&self, installation: &str) -> Vec<String> {
        let mut machines = self.machines();
        machines.retain(|machine| {
            let owner = owner_of(&self.home.receipts().join(machine));
            owner.as_deref() == Some(installation)
        });
        machines
    }

    /// Returns the folders of all machines, in order.
    fn machines(&self) -> Vec<String> {
        let folder = self.home.receipts();
        if !home::is_real_folder(&folder) {
            return Vec::new();
        }
        let mut machines: Vec<_> = names_in(&folder)
            .filter(|name| is_machine_folder(name) && home::is_real_folder(&folder.join(name)))
            .collect();
        machines.sort();
        machines
    }

    /// Returns the folder of this installation; creates it if it is missing.
    fn folder(&self, journal: &Journal, machine: &str) -> Result<PathBuf, Error> {
        let installation = self.installation(journal)?;
        let root = self.home.receipts();
        home::ensure_folder(&root)?;
        let name = folder_name(machine);
        for length in ID_LENGTHS {
            let id = installation.get(..length).unwrap_or(&installation);
            let folder = root.join(format!("{name}-{id}"));
            home::ensure_folder(&folder)?;
            match owner_of(&folder) {
                Some(owner) if owner == installation => return Ok(folder),
                // A folder with files but without an owner is foreign.
                None if is_unused(&folder) => {
                    let path = folder.join(OWNER);
                    file::write_atomic(&path, format!("{installation}\n").as_bytes())
                        .map_err(|source| self.refused(&path, source))?;
                    return Ok(folder);
                }
                _ => {}
            }
        }
        Err(Error::Taken(self.home.relative(&root.join(name))))
    }

    fn lock(&self, patience: Duration) -> Result<Lock, Error> {
        let lock = lock::acquire(&self.home, Subject::Receipts, patience);
        let lock = lock.map_err(|source| self.refused(&self.home.derived(), source))?;
        lock.ok_or(Error::Locked)
    }

    fn refused(&self, path: &Path, source: io::Error) -> Error {
        let path = self.home.relative(path);
        Error::Io { path, source }
    }
}

/// One pass over all files.
struct Reading<'a> {
    receipts: &'a Receipts,
    /// The previous positions of files that were not visited yet.
    known: Progress,
    read: Progress,
    fold: &'a mut Fold,
    problems: Vec<Problem>,
    /// The number of files that may still be read.
    files: usize,
    /// The number of bytes that may still be read.
    length: usize,
}

/// A file found by a pass.
enum FileRead {
    /// Unchanged since the last read.
    Same,
    /// The content, as far as it was read.
    Bytes(Vec<u8>, Stamp),
    /// Not readable.
    Nothing,
}

impl Reading<'_> {
    /// Adds a compacted month. Returns whether it is valid.
    fn counts(&mut self, source: &ReceiptSource, name: &str) -> Result<bool, Rewritten> {
        let key = format!("{}/{name}", source.machine);
        let before = self.known.remove(&key);
        let (bytes, stamp) = match self.find(&key, before.as_ref()) {
            FileRead::Bytes(bytes, stamp) => (bytes, stamp),
            FileRead::Same => {
                self.read.extend(before.map(|position| (key, position)));
                return Ok(true);
            }
            FileRead::Nothing if before.is_some() => return Err(Rewritten),
            FileRead::Nothing => return Ok(false),
        };
        let lines = format!("{}/{}{LINES}", source.machine, source.month);
        if before.is_some() || self.known.contains_key(&lines) {
            return Err(Rewritten);
        }
        match FoldFile::parse(&bytes) {
            Ok(file) if file.month == source.month => {
                self.fold.merge(&source.machine, file);
                let position = Position {
                    length: bytes.len(),
                    hash: Sha256::digest(&bytes).into(),
                    undecodable: 0,
                    stamp,
                };
                self.read.insert(key, position);
                Ok(true)
            }
            _ => {
                self.problem(&key, Trouble::NoCounts);
                Ok(false)
            }
        }
    }

    /// Adds the lines that were appended to a month.
    fn lines(&mut self, source: &ReceiptSource, name: &str) -> Result<(), Rewritten> {
        let key = format!("{}/{name}", source.machine);
        let before = self.known.remove(&key);
        let position = match (self.find(&key, before.as_ref()), before) {
            (FileRead::Same, Some(before)) => before,
            (FileRead::Bytes(bytes, stamp), before) => {
                self.appended(source, &bytes, stamp, before)?
            }
            (_, Some(_)) => return Err(Rewritten),
            (_, None) => return Ok(()),
        };
        if position.undecodable > 0 {
            self.problem(&key, Trouble::Undecodable(position.undecodable));
        }
        self.read.insert(key, position);
        Ok(())
    }

    fn appended(
        &mut self,
        source: &ReceiptSource,
        bytes: &[u8],
        stamp: Stamp,
        before: Option<Position>,
    ) -> Result<Position, Rewritten> {
        let (read, mut undecodable) = match before {
            None => (0, 0),
            Some(before) => {
                let read = bytes.get(..before.length).ok_or(Rewritten)?;
                if Sha256::digest(read)[..] != before.hash {
                    return Err(Rewritten);
                }
                (before.length, before.undecodable)
            }
        };
        let whole = whole_lines(bytes);
        for line in whole
            .get(read..)
            .unwrap_or_default()
            .split_inclusive(|byte| *byte == b'\n')
        {
            match Receipt::parse_line(line) {
                Ok(receipt) => self.fold.apply(source.clone(), receipt),
                Err(_) => undecodable += 1,
            }
        }
        Ok(Position {
            length: whole.len(),
            hash: Sha256::digest(whole).into(),
            undecodable,
            stamp,
        })
    }

    fn find(&mut self, key: &str, before: Option<&Position>) -> FileRead {
        let path = self.receipts.home.receipts().join(key);
        let limit = MAX_FILE_LENGTH.min(self.length);
        if self.files == 0 || limit == 0 {
            self.problem(key, Trouble::TooLong);
            return FileRead::Nothing;
        }
        self.files -= 1;
        let stamp = fs::symlink_metadata(&path).map(|metadata| Stamp::from_metadata(&metadata));
        let (found, size) = match (before, stamp) {
            (Some(before), Ok(stamp)) if before.stamp == stamp => (FileRead::Same, stamp.size),
            _ => match file::read_head(&path, limit) {
                Ok((bytes, stamp, _)) => (FileRead::Bytes(bytes, stamp), stamp.size),
                Err(error) => {
                    self.problem(key, Trouble::Unreadable(error.to_string()));
                    return FileRead::Nothing;
                }
            },
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > limit {
            self.problem(key, Trouble::TooLong);
        }
        self.length -= size.min(limit);
        found
    }

    fn problem(&mut self, key: &str, trouble: Trouble) {
        let home = &self.receipts.home;
        let path = home.relative(&home.receipts().join(key));
        self.problems.push(Problem { path, trouble });
    }
}

/// Appends lines, one `write` each. A partial line of a killed process is ended first, or the next
/// line would be lost with it.
fn append_lines(path: &Path, lines: &[String]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let mut file = file::private_options()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    let length = file.metadata()?.len();
    let mut start = "";
    if length > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
        start = if last == *b"\n" { "" } else { "\n" };
    }
    for line in lines {
        file.write_all(format!("{start}{line}").as_bytes())?;
        start = "";
    }
    Ok(())
}

/// Writes the counts of a month and removes its lines. Returns false if this version does not
/// understand all lines; they stay.
fn compact_file(source: &ReceiptSource, lines: &Path, counts: &Path) -> io::Result<bool> {
    let is_written = file::read_head(counts, MAX_FILE_LENGTH).is_ok_and(|(bytes, ..)| {
        FoldFile::parse(&bytes).is_ok_and(|file| file.month == source.month)
    });
    if !is_written {
        let (bytes, _, is_whole) = file::read_head(lines, MAX_FILE_LENGTH)?;
        let mut fold = Fold::default();
        for line in whole_lines(&bytes).split_inclusive(|byte| *byte == b'\n') {
            match Receipt::parse_line(line) {
                Ok(receipt) if receipt.is_newer() => return Ok(false),
                Ok(receipt) => fold.apply(source.clone(), receipt),
                Err(_) => {}
            }
        }
        if !is_whole {
            return Ok(false);
        }
        file::write_atomic(counts, fold.compact(source).to_json().as_bytes())?;
    }
    // A kill here leaves both; the counts take precedence.
    fs::remove_file(lines)?;
    Ok(true)
}

/// Returns the complete lines.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes
        .get(..end.map_or(0, |end| end + 1))
        .unwrap_or_default()
}

/// Returns the owner of a folder, according to its `owner` file.
fn owner_of(folder: &Path) -> Option<String> {
    let (bytes, ..) = file::read_head(&folder.join(OWNER), 256).ok()?;
    let owner = String::from_utf8(bytes).ok()?;
    Some(owner.trim().to_owned())
}

fn is_unused(folder: &Path) -> bool {
    months_in(folder, LINES).is_empty() && months_in(folder, COUNTS).is_empty()
}

/// Returns the files of a folder that are named by a month and end in `ending`, in order.
fn months_in(folder: &Path, ending: &str) -> Vec<(String, Month)> {
    let mut months: Vec<_> = names_in(folder)
        .filter_map(|name| {
            let month = name.strip_suffix(ending)?.parse().ok()?;
            Some((name, month))
        })
        .collect();
    months.sort();
    months
}

fn names_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Returns whether a character is allowed in a folder's name, which must be a valid path on every
/// system.
fn is_machine_folder(name: &str) -> bool {
    (1..=MAX_NAME_LENGTH).contains(&name.len())
        && !name.starts_with('.')
        && name.chars().all(is_name_character)
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}

/// Returns the beginning of a machine's folder name: the valid characters of its name, with space for
/// a full installation id.
fn folder_name(machine: &str) -> String {
    let most = MAX_NAME_LENGTH - "-".len() - ID_LENGTHS[2];
    let mapped = machine
        .chars()
        .map(|c| if is_name_character(c) { c } else { '-' });
    let name: String = mapped.take(most).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() {
        "machine".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests;
