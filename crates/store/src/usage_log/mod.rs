//! The receipts of all machines: `memory/.usage/<machine>/<YYYY-MM>.jsonl`, one receipt a line.
//!
//! One installation writes to one folder, so git never has two versions of a file to merge. The
//! folder's name ends in the installation's random id, which its `owner` file holds in full: two
//! machines of one name that never met write to two folders. The id belongs to the place where
//! `journal.db` was made, so a copied home draws one of its own.
//!
//! Lines are only appended. Of a month that is long over the owner writes down the counts in
//! `<YYYY-MM>.fold.json` and removes the lines; who sees both reads the counts. Everything is read as
//! a stranger's: within limits, links not followed, what is not understood counted and passed over.

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

/// The file that says whose a folder is.
const OWNER: &str = "owner";

/// How the file of a month's lines ends, and the one of its counts.
const LINES: &str = ".jsonl";
const COUNTS: &str = ".fold.json";

/// The longest name of a machine's folder, in bytes.
const MAX_NAME_LENGTH: usize = 64;

/// How much of an installation's id stands in its folder's name, in hexadecimal digits: more where
/// another installation has the shorter name already.
const ID_LENGTHS: [usize; 3] = [8, 16, 32];

/// The largest file that is read whole, in bytes. A busy machine's month has some hundred thousand.
const MAX_FILE_LENGTH: usize = 16 * 1024 * 1024;

/// How many files are looked at.
const MAX_FILES: usize = 10_000;

/// How much is read of all files together, in bytes.
const MAX_TOTAL_LENGTH: usize = 256 * 1024 * 1024;

/// Receipts cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process wrote to them for longer than this caller can wait.
    #[error("the receipts are being written by another anamnesis process")]
    Locked,
    /// A folder is in the way of another installation's, under every name this one could have.
    #[error("{0} belongs to another installation")]
    Taken(String),
    /// A folder cannot be used.
    #[error(transparent)]
    Folder(#[from] home::Error),
    /// This machine's records cannot be used.
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

/// What could not be read, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, relative to the store.
    pub path: String,
    /// What is wrong with it.
    pub trouble: Trouble,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// So many of its lines are no receipts.
    Undecodable(u64),
    /// It is no compacted month.
    NoCounts,
    /// It, or all files together, are longer than what is read.
    TooLong,
    /// The file system refused, or it is no regular file.
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

/// How far a file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// How many bytes, up to a line end.
    pub length: usize,
    /// SHA-256 of them: whether the file was only appended to.
    pub hash: [u8; 32],
    /// How many of its lines were no receipts.
    pub undecodable: u64,
    /// What the file was then: as long as it stays that, it is not opened.
    pub stamp: Stamp,
}

/// How far each file was read, by its path below the folder of all receipts.
pub type Progress = BTreeMap<String, Position>;

/// A file that was read changed otherwise than by more lines at its end.
struct Rewritten;

/// The receipts of a store.
#[derive(Debug, Clone)]
pub struct Receipts {
    home: Home,
}

impl Receipts {
    /// Names the receipts of a store; nothing is touched.
    pub fn new(home: Home) -> Self {
        Self { home }
    }

    /// The id of this installation: 128 random bits, drawn when they are first asked for.
    ///
    /// # Errors
    /// When this machine's records cannot be used.
    pub fn installation(&self, journal: &Journal) -> Result<String, Error> {
        Ok(journal.get_or_create_random(&journal::installation_key(&self.home.journal()))?)
    }

    /// The mark of a session in receipts.
    ///
    /// # Errors
    /// When this machine's records cannot be used.
    pub fn session_mark(&self, journal: &Journal, session: &str) -> Result<SessionMark, Error> {
        Ok(SessionMark::new(
            &journal.get_or_create_random("session_salt")?,
            session,
        ))
    }

    /// Appends a receipt to this installation's folder; `machine` is the name of the machine.
    ///
    /// # Errors
    /// When another process keeps the receipts for longer than `patience`, or they cannot be written.
    /// The same receipt may be appended again: it counts once.
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

    /// Writes the receipts that wait in the records, each once, however many processes do so at a time.
    ///
    /// # Errors
    /// As [`Receipts::append`]; what could not be written goes on waiting.
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
        // Asked again: whoever had the lock may have written them.
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
        // A clock that was wrong may lead into a month whose lines nobody reads any more.
        while folder.join(format!("{month}{COUNTS}")).exists() {
            month = month.next();
        }
        let path = folder.join(format!("{month}{LINES}"));
        append_lines(&path, &receipt.to_lines()).map_err(|source| self.refused(&path, source))
    }

    /// Compacts the months of this installation that ended long ago, and returns their paths.
    ///
    /// # Errors
    /// As [`Receipts::append`].
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

    /// Reads what was appended since `progress`, and takes it up into the fold that belongs to it. When
    /// something else changed, all is read again.
    ///
    /// What it returns is wrong with all files, not only with those that changed.
    pub fn read(&self, progress: &mut Progress, fold: &mut Fold) -> Vec<Problem> {
        if let Ok(problems) = self.read_on(progress, fold) {
            return problems;
        }
        progress.clear();
        *fold = Fold::default();
        // From the start nothing can have been rewritten.
        self.read_on(progress, fold).unwrap_or_default()
    }

    /// Changes whenever a file of receipts does, as far as that can be told without opening it.
    pub fn stamp(&self) -> String {
        let mut hash = Sha256::new();
        for machine in self.machines() {
            let folder = self.home.receipts().join(&machine);
            for (name, _) in months_in(&folder, COUNTS)
                .into_iter()
                .chain(months_in(&folder, LINES))
            {
                let stamp = fs::symlink_metadata(folder.join(&name));
                let stamp = stamp.map(|metadata| Stamp::of(&metadata)).ok();
                hash.update(format!("{machine}/{name} {stamp:?}\n"));
            }
        }
        let hash = hash.finalize();
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The notes that were purged on some machine.
    pub fn gone(&self) -> BTreeSet<NoteId> {
        let gone = self.read_all().0.total().gone;
        gone.into_iter().map(PortableId::id).collect()
    }

    /// Which project keys are one project.
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
        // What was read before and is there no longer must not count.
        if !reading.known.is_empty() {
            return Err(Rewritten);
        }
        *progress = reading.read;
        Ok(reading.problems)
    }

    /// The names of the folders that this installation writes to: several when the machine was renamed.
    ///
    /// Changes elsewhere are not this installation's to send. A copied home has lines of the one that
    /// it was copied from, which that one may have sent, added to or compacted since.
    ///
    /// # Errors
    /// When this machine's records cannot be used.
    pub fn own_folders(&self, journal: &Journal) -> Result<Vec<String>, Error> {
        Ok(self.folders_of(&self.installation(journal)?))
    }

    /// The folders of an installation, by its id.
    pub fn folders_of(&self, installation: &str) -> Vec<String> {
        let mut machines = self.machines();
        machines.retain(|machine| {
            let owner = owner_of(&self.home.receipts().join(machine));
            owner.as_deref() == Some(installation)
        });
        machines
    }

    /// The folders of machines, in order.
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

    /// Finds the folder of this installation, and makes it if there is none.
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
                // A folder that somebody wrote to and that says nothing of its owner is not ours.
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
    /// How far each file was read before, of those that did not come up yet.
    known: Progress,
    read: Progress,
    fold: &'a mut Fold,
    problems: Vec<Problem>,
    /// How many more files are looked at.
    files: usize,
    /// How much more is read.
    length: usize,
}

/// What a pass finds in the place of a file.
enum Found {
    /// What was there before.
    Same,
    /// What it holds now, as far as it is read.
    Bytes(Vec<u8>, Stamp),
    /// Nothing that can be read.
    Nothing,
}

impl Reading<'_> {
    /// Takes up a compacted month; tells whether it is one.
    fn counts(&mut self, source: &ReceiptSource, name: &str) -> Result<bool, Rewritten> {
        let key = format!("{}/{name}", source.machine);
        let before = self.known.remove(&key);
        let (bytes, stamp) = match self.find(&key, before.as_ref()) {
            Found::Bytes(bytes, stamp) => (bytes, stamp),
            Found::Same => {
                self.read.extend(before.map(|position| (key, position)));
                return Ok(true);
            }
            Found::Nothing if before.is_some() => return Err(Rewritten),
            Found::Nothing => return Ok(false),
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

    /// Takes up what was appended to the lines of a month.
    fn lines(&mut self, source: &ReceiptSource, name: &str) -> Result<(), Rewritten> {
        let key = format!("{}/{name}", source.machine);
        let before = self.known.remove(&key);
        let position = match (self.find(&key, before.as_ref()), before) {
            (Found::Same, Some(before)) => before,
            (Found::Bytes(bytes, stamp), before) => self.appended(source, &bytes, stamp, before)?,
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

    fn find(&mut self, key: &str, before: Option<&Position>) -> Found {
        let path = self.receipts.home.receipts().join(key);
        let limit = MAX_FILE_LENGTH.min(self.length);
        if self.files == 0 || limit == 0 {
            self.problem(key, Trouble::TooLong);
            return Found::Nothing;
        }
        self.files -= 1;
        let stamp = fs::symlink_metadata(&path).map(|metadata| Stamp::of(&metadata));
        let (found, size) = match (before, stamp) {
            (Some(before), Ok(stamp)) if before.stamp == stamp => (Found::Same, stamp.size),
            _ => match file::read_head(&path, limit) {
                Ok((bytes, stamp, _)) => (Found::Bytes(bytes, stamp), stamp.size),
                Err(error) => {
                    self.problem(key, Trouble::Unreadable(error.to_string()));
                    return Found::Nothing;
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

/// Appends lines, one `write` each. A torn line that a killed process left is ended first, or the
/// next one would be lost with it.
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

/// Writes the counts of a month and removes its lines. Tells whether it did: lines that this program
/// does not understand in full stay.
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
    // A process that was killed here left both; who reads takes the counts.
    fs::remove_file(lines)?;
    Ok(true)
}

/// The lines that have their line end.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes
        .get(..end.map_or(0, |end| end + 1))
        .unwrap_or_default()
}

/// The installation that writes to a folder, as it says itself.
fn owner_of(folder: &Path) -> Option<String> {
    let (bytes, ..) = file::read_head(&folder.join(OWNER), 256).ok()?;
    let owner = String::from_utf8(bytes).ok()?;
    Some(owner.trim().to_owned())
}

fn is_unused(folder: &Path) -> bool {
    months_in(folder, LINES).is_empty() && months_in(folder, COUNTS).is_empty()
}

/// The files of a folder that are named by a month and end in `ending`, in order.
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

/// What a folder's name may consist of: it is a path on every machine.
fn is_machine_folder(name: &str) -> bool {
    (1..=MAX_NAME_LENGTH).contains(&name.len())
        && !name.starts_with('.')
        && name.chars().all(is_name_character)
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}

/// The beginning of a machine's folder name: its name as far as a folder can have it, with room for
/// an installation's whole id behind it.
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
