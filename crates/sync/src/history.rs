//! What happened to notes: commits, versions of a note, the notes of a day, and taking a batch back.
//!
//! Everything is read from git's objects, and no program of git's runs. What stands in a commit may be
//! a stranger's text: it is for the caller to make it fit for a terminal. Commits that changed no note
//! (receipts, joins in which nothing clashed) are left out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anamnesis_note::{
    id::{IdPrefix, NoteId},
    merge,
    note::{NoteFile, NoteType, Scope, State},
};
use anamnesis_store::{
    fs::lock::Lock,
    notes::{NotePath, Notes},
};
use chrono::{DateTime, Utc};
use git2::{Commit, Oid, Sort, Tree};
use ulid::Ulid;

use crate::{
    commit::{ACTOR, Act, BATCH, Committed},
    error::Error,
    folder::{Folders, NoteChanges, Place, folder_in},
    join::{folder_of, is_sound},
    repository::Repository,
    tree::{Changes, MAX_FILE, is_machine},
};

/// The shortest part of a batch's or a commit's name by which it is looked up.
pub const SHORTEST_NAME: usize = 4;

/// The verb of the commits that move notes between machine-local and portable.
const MOVE: &str = "move";

/// How many lines of work that went on side by side are taken into account at most.
const MAX_HEADS: usize = 16;

/// A commit, as far as it is about notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The commit.
    pub commit: String,
    /// When it was made, by the clock of its machine.
    pub at: DateTime<Utc>,
    /// The machine that made it, if it says so.
    pub machine: Option<String>,
    /// Who acted: `person`, `agent`, `session`, `machine`, and so on; none where the commit does not say.
    pub actor: Option<String>,
    /// The batch, if it is one that can be undone.
    pub batch: Option<Ulid>,
    /// Its first line.
    pub subject: String,
    /// What it did to notes.
    pub notes: BTreeMap<NoteId, Touched>,
    /// The title, as it was then, of the note that was asked for, else of the first that has one.
    pub title: Option<String>,
}

impl Event {
    /// What was done: the command, or `sync`. Of another program's commit its first line.
    pub fn verb(&self) -> &str {
        let ours = self.subject.strip_prefix("anamnesis: ");
        let verb = ours.and_then(|rest| Some(rest.split_once(" from ")?.0));
        verb.unwrap_or(&self.subject)
    }
}

/// What a commit did to a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// It is new.
    Added,
    /// It says something else, or lies elsewhere.
    Changed,
    /// It is gone.
    Removed,
}

/// A note's file in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The folder that it lies in.
    pub folder: NoteType,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A note's file before and after a commit; none where it did not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The note.
    pub id: NoteId,
    /// The file before.
    pub before: Option<File>,
    /// The file after.
    pub after: Option<File>,
}

/// A note as it was from a commit on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The commit that made it so.
    pub event: Event,
    /// The file; none when the commit removed it.
    pub file: Option<File>,
}

/// The notes as they were at some time, on all machines together.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    places: Places,
}

impl Moment {
    /// The notes, by id.
    pub fn ids(&self) -> impl Iterator<Item = NoteId> {
        self.places.keys().copied()
    }
}

/// Where each note is.
type Places = BTreeMap<NoteId, Place>;

/// What became of a note whose batch was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is as before, byte for byte.
    Restored,
    /// It was forgotten, and is as before, byte for byte.
    Remembered,
    /// It is forgotten, as before; its text is in the trash.
    Forgotten,
    /// It had changed since: what the batch did is gone, the rest stays.
    Merged,
    /// The batch had made it, and it is gone.
    Removed,
    /// The batch had let it travel, and it is on this machine only.
    Local,
    /// It was left as it is, for this reason.
    Left(&'static str),
}

/// What taking a batch back came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// What became of each note of the batch.
    pub notes: BTreeMap<NoteId, Fate>,
    /// The commit of it; none when nothing changed.
    pub committed: Option<Committed>,
}

/// Lets this process read objects without hashing each of them, as git itself does; zlib's sums still
/// tell of damage. It takes most of the time of a look at a long history, where each commit has folders
/// of hundreds of kilobytes.
pub fn read_without_hashing() {
    git2::opts::strict_hash_verification(false);
}

impl Repository {
    /// The commits that changed notes, newest first; with an id those that changed that note.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn log(&self, note: Option<NoteId>, limit: usize) -> Result<Vec<Event>, Error> {
        let mut lookup = note.map(|id| Lookup::new(self, id)).transpose()?;
        self.events(note, limit, |commit| match &mut lookup {
            Some(lookup) => lookup.is_touched_by(commit),
            None => Ok(true),
        })
    }

    /// The commits that can be undone, newest first; with an actor those that it made.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn batches(&self, actor: Option<&str>, limit: usize) -> Result<Vec<Event>, Error> {
        self.events(None, limit, |commit| {
            let is_by = actor.is_none_or(|actor| trailer(commit, ACTOR).as_deref() == Some(actor));
            Ok(is_by && batch_of(commit).is_some())
        })
    }

    fn events(
        &self,
        about: Option<NoteId>,
        limit: usize,
        mut is_asked_for: impl FnMut(&Commit<'_>) -> Result<bool, Error>,
    ) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        let mut folders = Folders::new(&self.git)?;
        for oid in self.walk()? {
            if events.len() == limit {
                break;
            }
            let commit = self.git.find_commit(oid?)?;
            if is_asked_for(&commit)? {
                let event = self.event(&mut folders, &commit, about)?;
                if !event.notes.is_empty() {
                    events.push(event);
                }
            }
        }
        Ok(events)
    }

    /// The versions of a note, newest first.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn versions(&self, id: NoteId, limit: usize) -> Result<Vec<Version>, Error> {
        let mut lookup = Lookup::new(self, id)?;
        let mut versions = Vec::new();
        for oid in self.walk()? {
            if versions.len() == limit {
                break;
            }
            let commit = self.git.find_commit(oid?)?;
            if lookup.is_touched_by(&commit)? {
                let place = lookup.place_in(&commit.tree()?)?;
                versions.push(Version {
                    event: self.event(&mut lookup.folders, &commit, Some(id))?,
                    file: self.file(place)?,
                });
            }
        }
        Ok(versions)
    }

    /// The notes as they were at a time; none when there was no commit yet.
    ///
    /// Machines work side by side: where one line of work had not reached the other yet, the notes of
    /// both are there. Of a note that both had changed it is what the newer commit says.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn at(&self, time: DateTime<Utc>) -> Result<Option<Moment>, Error> {
        // The last commits of then, newest first: those that no other one of then is built on.
        let mut heads = Vec::new();
        let mut built_on = HashSet::new();
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            let is_built_on = built_on.remove(&commit.id());
            if is_built_on || commit.time().seconds() <= time.timestamp() {
                built_on.extend(commit.parent_ids());
                if !is_built_on {
                    heads.push(commit.id());
                }
            }
        }
        heads.truncate(MAX_HEADS);
        let base = match heads.as_slice() {
            [] => return Ok(None),
            [one] => {
                let places = self.places(*one)?;
                return Ok(Some(Moment { places }));
            }
            several => self.git.merge_base_many(several).ok(),
        };
        let base = base.map(|oid| self.places(oid)).transpose()?;
        let base = base.unwrap_or_default();
        let mut places = base.clone();
        for head in heads.iter().rev() {
            let head = self.places(*head)?;
            for id in base.keys().filter(|id| !head.contains_key(id)) {
                places.remove(id);
            }
            let changed = head
                .iter()
                .filter(|(id, place)| base.get(id) != Some(place));
            places.extend(changed.map(|(id, place)| (*id, *place)));
        }
        Ok(Some(Moment { places }))
    }

    /// A note as it was at a moment; none when it was not there.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn note_at(&self, moment: &Moment, id: NoteId) -> Result<Option<File>, Error> {
        self.file(moment.places.get(&id).copied())
    }

    /// The notes of any time whose id begins or ends with what was typed.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn ids_matching(&self, typed: &IdPrefix) -> Result<BTreeSet<NoteId>, Error> {
        let mut found = BTreeSet::new();
        let mut seen = HashSet::new();
        for oid in self.walk()? {
            let tree = self.git.find_commit(oid?)?.tree()?;
            for (_, folder) in folders(&tree) {
                if !seen.insert(folder) {
                    continue;
                }
                for entry in &self.git.find_tree(folder)? {
                    let stem = entry.name().ok().and_then(|name| name.strip_suffix(".md"));
                    let stem = stem.filter(|stem| typed.matches(stem));
                    found.extend(stem.and_then(|stem| stem.parse::<NoteId>().ok()));
                }
            }
        }
        Ok(found)
    }

    /// What a commit did to notes, file by file.
    ///
    /// # Errors
    /// When there is no such commit, or an object cannot be read.
    pub fn differences(&self, commit: &str) -> Result<Vec<Difference>, Error> {
        let commit = self.git.find_commit(Oid::from_str(commit)?)?;
        let mut differences = Vec::new();
        let mut folders = Folders::new(&self.git)?;
        for (id, change) in own_changes(&mut folders, &commit)? {
            differences.push(Difference {
                id,
                before: self.file(change.old)?,
                after: self.file(change.new)?,
            });
        }
        Ok(differences)
    }

    /// Finds commits by four or more characters of the beginning or end of their batch's name, or of
    /// the beginning of their own.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn find(&self, typed: &str) -> Result<Vec<Event>, Error> {
        let typed = typed.trim().trim_start_matches('#');
        let (upper, lower) = (typed.to_ascii_uppercase(), typed.to_ascii_lowercase());
        let mut found = Vec::new();
        if typed.len() < SHORTEST_NAME {
            return Ok(found);
        }
        let mut folders = Folders::new(&self.git)?;
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            let batch = batch_of(&commit).map(|batch| batch.to_string());
            let is_meant =
                batch.is_some_and(|name| name.starts_with(&upper) || name.ends_with(&upper));
            if is_meant || commit.id().to_string().starts_with(&lower) {
                found.push(self.event(&mut folders, &commit, None)?);
            }
        }
        Ok(found)
    }

    /// When each machine last made a commit, by the name that it has in commits.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn last_seen(&self) -> Result<BTreeMap<String, DateTime<Utc>>, Error> {
        let mut seen = BTreeMap::new();
        for oid in self.walk()? {
            let commit = self.git.find_commit(oid?)?;
            if let Some(machine) = machine_of(&commit) {
                let at = seen.entry(machine).or_insert(DateTime::UNIX_EPOCH);
                *at = time_of(&commit).max(*at);
            }
        }
        Ok(seen)
    }

    /// The machines that made the commits of the branch, by name.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn machines_in_history(&self) -> Result<Vec<String>, Error> {
        match self.head()? {
            Some(head) => self.machines(&head),
            None => Ok(Vec::new()),
        }
    }

    /// The machines that made commits, by name.
    pub(crate) fn machines(&self, tip: &Commit<'_>) -> Result<Vec<String>, Error> {
        let mut walk = self.git.revwalk()?;
        walk.push(tip.id())?;
        let mut machines = BTreeSet::new();
        for oid in walk {
            let commit = self.git.find_commit(oid?)?;
            machines.extend(machine_of(&commit).filter(|machine| is_machine(machine)));
        }
        Ok(machines.into_iter().collect())
    }

    /// Takes a commit's changes to notes back, in the folder and in a commit of its own.
    ///
    /// A note that is as the commit left it is again what it was before, byte for byte. One that has
    /// changed since is merged: what the commit did goes, what came later stays. Where the two do not
    /// fit together it is left as it is.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn undo(
        &self,
        lock: &Lock,
        notes: &Notes,
        event: &Event,
        act: Act<'_>,
    ) -> Result<Undone, Error> {
        let mut fates = BTreeMap::new();
        for difference in self.differences(&event.commit)? {
            let undo = Undo {
                lock,
                notes,
                id: difference.id,
                lies: notes.find(difference.id),
            };
            let fate = undo.run(difference, event.verb() == MOVE, self.now)?;
            fates.insert(undo.id, fate);
        }
        let committed = self.commit_notes(lock, &fates.keys().copied().collect(), act)?;
        Ok(Undone {
            notes: fates,
            committed,
        })
    }

    /// The commits of the branch, newest first; none before the first one.
    fn walk(&self) -> Result<git2::Revwalk<'_>, Error> {
        let mut walk = self.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)?;
        if let Some(head) = self.head()? {
            walk.push(head.id())?;
        }
        Ok(walk)
    }

    /// Where the notes of a commit are.
    fn places(&self, commit: Oid) -> Result<Places, Error> {
        let tree = self.git.find_commit(commit)?.tree()?;
        let contents = Changes::between(&self.git, None, Some(&tree))?;
        let places = contents.notes.into_iter();
        Ok(places
            .filter_map(|(id, change)| Some((id, change.new?)))
            .collect())
    }

    /// Reads a file. What a commit of a stranger holds is as large as the stranger wants.
    fn file(&self, place: Option<Place>) -> Result<Option<File>, Error> {
        let Some((folder, oid)) = place else {
            return Ok(None);
        };
        let (size, _) = self.git.odb()?.read_header(oid)?;
        if size > MAX_FILE {
            return Err(Error::TooLarge(oid.to_string()));
        }
        let bytes = self.read(oid)?;
        Ok(Some(File { folder, bytes }))
    }

    /// What a commit did; its title is that of the note in question, if there is one.
    fn event(
        &self,
        folders: &mut Folders<'_>,
        commit: &Commit<'_>,
        about: Option<NoteId>,
    ) -> Result<Event, Error> {
        let changes = own_changes(folders, commit)?;
        let mut title = None;
        let in_question = about.and_then(|id| changes.get_key_value(&id));
        for (id, change) in in_question.into_iter().chain(&changes) {
            // A tombstone has none; what it was called before is what a person knows it by.
            for place in [change.new, change.old] {
                let file = self.file(place).ok().flatten();
                let file = file.and_then(|file| NoteFile::parse(&file.bytes, *id).ok());
                title = file.map(|file| file.into_note().title);
                title = title.filter(|title| !title.trim().is_empty());
                if title.is_some() {
                    break;
                }
            }
            if title.is_some() {
                break;
            }
        }
        let notes = changes.into_iter().map(|(id, change)| {
            let touched = match (change.old, change.new) {
                (None, _) => Touched::Added,
                (_, None) => Touched::Removed,
                _ => Touched::Changed,
            };
            (id, touched)
        });
        let message = commit.message().unwrap_or_default();
        Ok(Event {
            commit: commit.id().to_string(),
            at: time_of(commit),
            machine: machine_of(commit),
            actor: trailer(commit, ACTOR),
            batch: batch_of(commit),
            subject: message.lines().next().unwrap_or_default().to_owned(),
            notes: notes.collect(),
            title,
        })
    }
}

/// The notes that a commit made what no parent of it has, compared with the first parent.
fn own_changes(folders: &mut Folders<'_>, commit: &Commit<'_>) -> Result<NoteChanges, Error> {
    let tree = commit.tree()?;
    let mut parents = commit.parents();
    let first = parents.next().map(|parent| parent.tree()).transpose()?;
    let mut changes = folders.changes(first.as_ref(), &tree)?;
    for parent in parents {
        if changes.is_empty() {
            break;
        }
        let other = folders.changes(Some(&parent.tree()?), &tree)?;
        changes.retain(|id, _| other.contains_key(id));
    }
    Ok(changes)
}

/// Takes back what a commit did to one note.
struct Undo<'a> {
    lock: &'a Lock,
    notes: &'a Notes,
    id: NoteId,
    lies: Option<NotePath>,
}

impl Undo<'_> {
    fn run(
        &self,
        difference: Difference,
        is_move: bool,
        now: DateTime<Utc>,
    ) -> Result<Fate, Error> {
        let Difference { before, after, .. } = difference;
        let Some(lies) = self.lies else {
            return match (before, after) {
                (Some(before), None) => self.restore(&before),
                (None, None) => Ok(Fate::Left("it is as it was before")),
                _ => Ok(Fate::Left("it was deleted since")),
            };
        };
        let bytes = self.notes.bytes(lies)?;
        if lies.scope == Scope::MachineLocal {
            return match before {
                Some(before) if after.is_none() && self.travels_as(&bytes, &before.bytes) => {
                    self.restore(&before)
                }
                _ => Ok(Fate::Left("it is on this machine only by now")),
            };
        }
        let is = |file: &File| file.folder == lies.folder && file.bytes == bytes;
        match (before, after) {
            (before, Some(after)) if is(&after) => match before {
                Some(before) if self.is_forgotten(&before.bytes) => {
                    // The text that is put away must be kept somewhere, as by any other forgetting.
                    self.notes.forget(self.lock, lies, now)?;
                    self.place(&before)?;
                    Ok(Fate::Forgotten)
                }
                Some(before) if self.is_forgotten(&bytes) => {
                    self.place(&before)?;
                    Ok(Fate::Remembered)
                }
                Some(before) => self.restore(&before),
                None if is_move => {
                    self.notes.set_scope(self.lock, lies, Scope::MachineLocal)?;
                    Ok(Fate::Local)
                }
                None => {
                    self.notes.remove(self.lock, lies)?;
                    Ok(Fate::Removed)
                }
            },
            (Some(before), _) if is(&before) => Ok(Fate::Left("it is as it was before")),
            (Some(before), Some(after)) => self.merge(&before, &after, lies.folder, &bytes),
            (None, _) => Ok(Fate::Left("it was changed since")),
            (Some(_), None) => Ok(Fate::Left("it was written again since")),
        }
    }

    /// Takes the change from `before` to `after` out of what the note has become.
    fn merge(
        &self,
        before: &File,
        after: &File,
        folder: NoteType,
        bytes: &[u8],
    ) -> Result<Fate, Error> {
        match (self.is_forgotten(&after.bytes), self.is_forgotten(bytes)) {
            (true, true) => {
                self.place(before)?;
                return Ok(Fate::Remembered);
            }
            (true, false) => return Ok(Fate::Left("it was written again since")),
            (false, true) => return Ok(Fate::Left("it was forgotten since")),
            (false, false) if self.is_forgotten(&before.bytes) => {
                return Ok(Fate::Left("it was changed since"));
            }
            (false, false) => {}
        }
        if !is_sound(bytes, self.id) || !is_sound(&before.bytes, self.id) {
            return Ok(Fate::Left("it cannot be read as a note"));
        }
        let merged = merge::merge(self.id, Some(&after.bytes), bytes, &before.bytes);
        if merged.conflict.is_some() || merged.proposal.is_some() || merged.unreadable.is_some() {
            return Ok(Fate::Left("the same lines were changed since"));
        }
        let folder = folder_of(self.id, Some(after.folder), folder, before.folder, &merged);
        let bytes = merged.bytes;
        self.place(&File { folder, bytes })?;
        Ok(Fate::Merged)
    }

    fn restore(&self, before: &File) -> Result<Fate, Error> {
        self.place(before)?;
        Ok(Fate::Restored)
    }

    /// Writes the note's file where it belongs, and removes it where it was.
    fn place(&self, file: &File) -> Result<(), Error> {
        let path = NotePath {
            scope: Scope::Portable,
            folder: file.folder,
            id: self.id,
        };
        self.notes.place(self.lock, path, &file.bytes)?;
        if let Some(old) = self.lies.filter(|old| *old != path) {
            self.notes.remove(self.lock, old)?;
        }
        Ok(())
    }

    fn is_forgotten(&self, bytes: &[u8]) -> bool {
        let file = NoteFile::parse(bytes, self.id);
        file.is_ok_and(|file| file.note().state == State::Forgotten)
    }

    /// Tells whether a note of this machine only is the same as one that travelled, but for that.
    fn travels_as(&self, local: &[u8], portable: &[u8]) -> bool {
        let rewritten = || {
            let file = NoteFile::parse(local, self.id).ok()?;
            let mut note = file.note().clone();
            note.scope = Scope::Portable;
            file.rewrite(&note).ok()
        };
        rewritten().is_some_and(|text| text.as_bytes() == portable)
    }
}

/// Where one note is in many trees. Most of them share their folders.
struct Lookup<'a> {
    folders: Folders<'a>,
    name: String,
    known: HashMap<Oid, Option<Oid>>,
}

impl<'a> Lookup<'a> {
    fn new(repository: &'a Repository, id: NoteId) -> Result<Self, Error> {
        Ok(Self {
            folders: Folders::new(&repository.git)?,
            name: format!("{id}.md"),
            known: HashMap::new(),
        })
    }

    fn place_in(&mut self, tree: &Tree<'_>) -> Result<Option<Place>, Error> {
        for (note_type, folder) in folders(tree) {
            let found = if let Some(known) = self.known.get(&folder) {
                *known
            } else {
                let file = self.folders.find(folder, &self.name)?;
                self.known.insert(folder, file);
                file
            };
            if let Some(file) = found {
                return Ok(Some((note_type, file)));
            }
        }
        Ok(None)
    }

    /// Tells whether a commit made the note what no parent of it has.
    fn is_touched_by(&mut self, commit: &Commit<'_>) -> Result<bool, Error> {
        let own = self.place_in(&commit.tree()?)?;
        for parent in commit.parents() {
            if self.place_in(&parent.tree()?)? == own {
                return Ok(false);
            }
        }
        Ok(commit.parent_count() > 0 || own.is_some())
    }
}

/// The folders of notes in a tree.
fn folders(tree: &Tree<'_>) -> impl Iterator<Item = (NoteType, Oid)> {
    let folders = NoteType::ALL.iter();
    folders.filter_map(|folder| Some((*folder, folder_in(tree, *folder)?)))
}

/// The machine that a commit says it is from.
pub(crate) fn machine_of(commit: &Commit<'_>) -> Option<String> {
    let author = commit.author();
    let machine = author.email().ok()?.strip_prefix("anamnesis@")?;
    Some(machine.to_owned())
}

/// When a commit was made.
fn time_of(commit: &Commit<'_>) -> DateTime<Utc> {
    DateTime::from_timestamp(commit.time().seconds(), 0).unwrap_or_default()
}

/// The batch that a commit says it is.
fn batch_of(commit: &Commit<'_>) -> Option<Ulid> {
    Ulid::from_string(&trailer(commit, BATCH)?).ok()
}

/// The value of a trailer: a line `NAME: value` after the first paragraph.
fn trailer(commit: &Commit<'_>, name: &str) -> Option<String> {
    let message = commit.message().ok()?;
    let (_, rest) = message.split_once("\n\n")?;
    let value = rest
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
    Some(value.trim().to_owned())
}
