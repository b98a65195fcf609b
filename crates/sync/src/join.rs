//! Joins two histories in memory: a note that both sides have is merged field by field.
//!
//! The result is a pure function of the three commits. It does not depend on which side is ours, so
//! two machines that join the same commits make the same tree.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    id::NoteId,
    merge::{self, Merged, Sibling},
    note::{NoteFile, NoteType, State},
    synced_lines::join_lines,
};
use anamnesis_store::notes::Problem;
use chrono::DateTime;
use git2::{Commit, Oid, Sort, Tree};

use crate::{
    commit::ACTOR,
    error::Error,
    folder::{Folders, NoteBlob, NoteChanges},
    purge::PurgeMarks,
    repository::Repository,
    tree::{self, Changes, FILE, LAYOUT, Named, PathDiff, entry, is_tombstone, named, note_path},
};

/// Deleting more notes than this needs the person's confirmation.
const MAX_GONE: usize = 5;

/// Deleting all notes of a project needs it, too, if the project had at least this many.
const MIN_PROJECT: usize = 2;

/// One side of a join.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    /// The tree of the merge base; without one everything is new.
    pub(crate) base: Option<&'a Tree<'a>>,
    /// The commit of the merge base.
    pub(crate) since: Option<Oid>,
    /// The side's commit, if it has one.
    pub(crate) commit: Option<&'a Commit<'a>>,
}

impl Side<'_> {
    fn tree(&self) -> Result<Option<Tree<'_>>, Error> {
        Ok(self.commit.map(Commit::tree).transpose()?)
    }
}

/// The result of a join besides the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Joined {
    /// The number of new conflict siblings.
    pub(crate) siblings: usize,
    /// Edited texts of notes that the other side deleted; they go to `local/`.
    pub(crate) proposals: Vec<Sibling>,
    /// Bytes of unreadable versions; they go to `quarantine/`.
    pub(crate) unreadable: Vec<(NoteId, Vec<u8>)>,
    /// Refused files of the other side.
    pub(crate) problems: Vec<Problem>,
}

/// Returns the notes that a side deleted, forgot or emptied.
pub(crate) fn deletions(
    repository: &Repository,
    changes: &NoteChanges,
) -> Result<BTreeMap<NoteId, Oid>, Error> {
    let mut gone = BTreeMap::new();
    for (id, change) in changes {
        let Some((_, old)) = change.old else { continue };
        if repository.takes_away(*id, *change)? && !is_tombstone(&repository.read(old)?, *id) {
            gone.insert(*id, old);
        }
    }
    Ok(gone)
}

/// Returns how many notes of how many are deleted, if that needs the person's confirmation: many
/// notes, or all of a project. `came` are the notes that the same change adds or edits.
pub(crate) fn mass_deletion(
    repository: &Repository,
    base: Option<&Tree<'_>>,
    gone: &BTreeMap<NoteId, Oid>,
    came: impl Iterator<Item = (NoteId, Oid)>,
) -> Result<Option<(usize, usize)>, Error> {
    if gone.len() < MIN_PROJECT {
        return Ok(None);
    }
    let notes = tree::own_files(&repository.git, base)?.notes;
    let stayed = notes.iter().map(|((_, id), oid)| (*id, *oid));
    let left = stayed.chain(came).filter(|(id, _)| !gone.contains_key(id));
    let is_mass = gone.len() > MAX_GONE || empties_a_project(repository, gone, left)?;
    Ok(is_mass.then_some((gone.len(), notes.len())))
}

/// Removes from a mass deletion the notes that a person forgot one by one, unless the rest is no
/// mass deletion.
pub(crate) fn without_single_ones(
    repository: &Repository,
    gone: BTreeMap<NoteId, Oid>,
    came: impl Iterator<Item = (NoteId, Oid)>,
    side: Side<'_>,
) -> Result<BTreeSet<NoteId>, Error> {
    let Some(tip) = side.commit else {
        return Ok(gone.into_keys().collect());
    };
    let mut folders = Folders::new(&repository.git)?;
    let mut rest = gone.clone();
    for commit in repository.revwalk(Sort::NONE, Some(tip.id()), side.since)? {
        let commit = repository.git.find_commit(commit?)?;
        if commit.parent_count() != 1 || !is_ours(&commit) {
            continue;
        }
        let parent = commit.parent(0)?.tree()?;
        let changes = folders.changes(Some(&parent), &commit.tree()?)?;
        let taken = deletions(repository, &changes)?;
        if let (Some((id, _)), 1) = (taken.first_key_value(), taken.len())
            && changes.get(id).is_some_and(|change| change.new.is_some())
        {
            rest.remove(id);
        }
    }
    let is_mass = mass_deletion(repository, side.base, &rest, came)?.is_some();
    Ok(if is_mass { rest } else { gone }.into_keys().collect())
}

/// Returns whether a note has no text. A mark such as `.` in its place is none.
fn is_empty(bytes: &[u8], id: NoteId) -> bool {
    let has_text = |body: &str| body.contains(char::is_alphanumeric);
    NoteFile::parse(bytes, id).is_ok_and(|file| !has_text(&file.note().body))
}

/// Returns whether a project with several notes has none left.
fn empties_a_project(
    repository: &Repository,
    gone: &BTreeMap<NoteId, Oid>,
    left: impl Iterator<Item = (NoteId, Oid)>,
) -> Result<bool, Error> {
    let mut projects: BTreeMap<String, usize> = BTreeMap::new();
    for (id, oid) in gone {
        if let Some(project) = repository.project_of(*id, *oid)? {
            *projects.entry(project).or_default() += 1;
        }
    }
    projects.retain(|_, notes| *notes >= MIN_PROJECT);
    for (id, oid) in left {
        if projects.is_empty() {
            break;
        }
        if let Some(project) = repository.project_of(id, oid)? {
            projects.remove(&project);
        }
    }
    Ok(!projects.is_empty())
}

impl Repository {
    /// Returns the bytes of a blob.
    pub(crate) fn read(&self, oid: Oid) -> Result<Vec<u8>, Error> {
        Ok(self.git.find_blob(oid)?.content().to_vec())
    }

    /// Returns whether a change takes a note's content away: it deletes, forgets or empties the note.
    fn takes_away(&self, id: NoteId, change: PathDiff<NoteBlob>) -> Result<bool, Error> {
        let (old, new) = match (change.old, change.new) {
            (None, _) => return Ok(false),
            (_, None) => return Ok(true),
            (Some((_, old)), Some((_, new))) => (old, new),
        };
        let new = self.read(new)?;
        Ok(is_tombstone(&new, id) || is_empty(&new, id) && !is_empty(&self.read(old)?, id))
    }

    /// Returns the last version of a note in a history that is a valid note, if there is one.
    pub(crate) fn last_sound(
        &self,
        id: NoteId,
        tip: Option<Oid>,
    ) -> Result<Option<NoteBlob>, Error> {
        let mut seen = BTreeSet::new();
        for commit in self.revwalk(Sort::TOPOLOGICAL | Sort::TIME, tip, None)? {
            let tree = self.git.find_commit(commit?)?.tree()?;
            for folder in NoteType::ALL {
                if let Some(oid) = entry(&tree, &note_path(*folder, id))
                    && seen.insert(oid)
                    && is_sound(&self.read(oid)?, id)
                {
                    return Ok(Some((*folder, oid)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the version of a note that two sides are merged with. In place of an unreadable one,
    /// this is the last readable one before it: both sides have rewritten that one.
    pub(crate) fn merge_base_of(
        &self,
        id: NoteId,
        base: Option<NoteBlob>,
        since: Option<Oid>,
    ) -> Result<Option<NoteBlob>, Error> {
        match base {
            Some((_, oid)) if !is_sound(&self.read(oid)?, id) => {
                Ok(self.last_sound(id, since)?.or(base))
            }
            base => Ok(base),
        }
    }

    /// Returns the project of a note in use; none of a tombstone or an unreadable file.
    fn project_of(&self, id: NoteId, oid: Oid) -> Result<Option<String>, Error> {
        let file = NoteFile::parse(&self.read(oid)?, id).ok();
        let note = file.map(NoteFile::into_note);
        let note = note.filter(|note| note.state != State::Forgotten);
        Ok(note.map(|note| note.project))
    }

    /// Joins two sides. With `keeps`, the other side deletes no file, and these notes stay. Notes in
    /// `purged` become as the other side has them; our changes to them become proposals.
    pub(crate) fn join(
        &self,
        ours: Side<'_>,
        theirs: Side<'_>,
        keeps: Option<&BTreeSet<NoteId>>,
        purged: Option<&PurgeMarks>,
    ) -> Result<(Oid, Joined), Error> {
        let our_tree = ours.tree()?;
        let their_tree = theirs.tree()?;
        let mine = Changes::between(&self.git, ours.base, our_tree.as_ref())?;
        let other = Changes::between(&self.git, theirs.base, their_tree.as_ref())?;
        let mut join = Join {
            repository: self,
            ours,
            theirs,
            keeps,
            purged,
            joined: Joined {
                problems: other.problems,
                ..Joined::default()
            },
            updates: BTreeMap::new(),
        };
        let ids: BTreeSet<&NoteId> = mine.notes.keys().chain(other.notes.keys()).collect();
        for id in ids {
            join.note(*id, mine.notes.get(id), other.notes.get(id))?;
        }
        for (path, their) in &other.others {
            join.file(path, mine.others.get(path), *their)?;
        }
        let tree = self.tree_with(our_tree.as_ref(), &join.updates)?;
        Ok((tree, join.joined))
    }
}

/// State of a join.
struct Join<'a> {
    repository: &'a Repository,
    ours: Side<'a>,
    theirs: Side<'a>,
    keeps: Option<&'a BTreeSet<NoteId>>,
    purged: Option<&'a PurgeMarks>,
    joined: Joined,
    /// Changes to our tree.
    updates: BTreeMap<String, Option<(Oid, i32)>>,
}

impl Join<'_> {
    /// Joins one note.
    fn note(
        &mut self,
        id: NoteId,
        our: Option<&PathDiff<NoteBlob>>,
        their: Option<&PathDiff<NoteBlob>>,
    ) -> Result<(), Error> {
        let (ours, result) = match (our, their) {
            (None, None) => return Ok(()),
            (Some(our), None) => (our.new, self.one_sided(id, *our, self.ours)?),
            (None, Some(their)) => {
                let result = if self.is_kept(id) {
                    their.old
                } else {
                    self.one_sided(id, *their, self.theirs)?
                };
                (their.old, result)
            }
            (Some(our), Some(their)) => {
                let stays = self.is_kept(id)
                    && our.new.is_some()
                    && !self.repository.takes_away(id, *our)?;
                let result = if stays {
                    our.new
                } else {
                    self.both_changed(id, *our, *their)?
                };
                (our.new, result)
            }
        };
        for folder in NoteType::ALL {
            let is_there = ours.is_some_and(|(old, _)| old == *folder);
            let stays = result.is_some_and(|(new, _)| new == *folder);
            if is_there && !stays {
                self.updates.insert(note_path(*folder, id), None);
            }
        }
        if let Some((folder, oid)) = result
            && ours != result
        {
            let path = note_path(folder, id);
            self.updates.insert(path, Some((oid, FILE)));
        }
        Ok(())
    }

    /// Returns whether a note stays that the other side took away.
    fn is_kept(&self, id: NoteId) -> bool {
        self.keeps.is_some_and(|kept| kept.contains(&id))
    }

    /// Joins a note that one side changed: takes that side's version, if it is readable, and
    /// restores keys that the Python version dropped.
    fn one_sided(
        &mut self,
        id: NoteId,
        change: PathDiff<NoteBlob>,
        side: Side<'_>,
    ) -> Result<Option<NoteBlob>, Error> {
        let (Some((_, old)), Some((folder, new))) = (change.old, change.new) else {
            return Ok(change.new);
        };
        if old == new {
            return Ok(change.new);
        }
        let base = self.repository.read(old)?;
        let bytes = self.repository.read(new)?;
        if !is_sound(&bytes, id) && is_sound(&base, id) {
            self.put_aside(id, bytes);
            return Ok(change.old);
        }
        let whole = Self::with_dropped_keys(id, folder, Some(&base), bytes, side)?;
        Ok(Some((folder, self.repository.blob(&whole)?)))
    }

    /// Joins a note that both sides changed, considering a purge on the other side.
    fn both_changed(
        &mut self,
        id: NoteId,
        our: PathDiff<NoteBlob>,
        their: PathDiff<NoteBlob>,
    ) -> Result<Option<NoteBlob>, Error> {
        let is_gone = self.purged.is_some_and(|it| it.gone.contains(&id));
        let is_masked = self.purged.is_some_and(|it| it.masked.contains(&id));
        if our.new == their.new || !(is_gone || is_masked) {
            return self.two_sided(id, our, their);
        }
        if !is_gone {
            let is_deleted = match our.new {
                Some((_, oid)) => is_tombstone(&self.repository.read(oid)?, id),
                None => true,
            };
            // A deletion brings no text back, so it holds.
            if is_deleted {
                return Ok(our.new);
            }
            let before = (self.joined.clone(), self.updates.clone());
            let result = self.two_sided(id, our, their)?;
            let is_clean = self.joined == before.0;
            let revives = match (our.old, their.new, result) {
                (Some((_, old)), Some((_, new)), Some((_, result))) => {
                    let read = |oid| self.repository.read(oid);
                    brings_back(&read(old)?, &read(new)?, &read(result)?)
                }
                _ => false,
            };
            if is_clean && !revives {
                return Ok(result);
            }
            // Our version may contain the purged text, so all of it stays on this machine.
            (self.joined, self.updates) = before;
        }
        if let Some((_, oid)) = our.new {
            let edited = self.repository.read(oid)?;
            match merge::edited_after_purge(id, &edited) {
                Ok(proposal) => self.joined.proposals.extend(proposal),
                Err(_) => self.put_aside(id, edited),
            }
        }
        Ok(their.new)
    }

    /// Joins a note that both sides changed.
    fn two_sided(
        &mut self,
        id: NoteId,
        our: PathDiff<NoteBlob>,
        their: PathDiff<NoteBlob>,
    ) -> Result<Option<NoteBlob>, Error> {
        if our.new == their.new {
            return Ok(our.new);
        }
        let base = (self.repository).merge_base_of(id, our.old, self.ours.since)?;
        let base_bytes = base.map(|(_, oid)| self.repository.read(oid)).transpose()?;
        let base_bytes = base_bytes.as_deref();
        let a = self.side(id, our.new, base_bytes, self.ours)?;
        let b = self.side(id, their.new, base_bytes, self.theirs)?;
        let (folder, bytes) = match (a, b) {
            (None, None) => return Ok(None),
            (Some(file), None) | (None, Some(file)) if is_tombstone(&file.1, id) => file,
            (Some((_, edited)), None) | (None, Some((_, edited))) => {
                match merge::edited_after_deletion(id, base_bytes, &edited) {
                    Ok(text) if !merge::has_conflict_markers(&edited) => {
                        self.joined.proposals.extend(text)
                    }
                    _ => self.put_aside(id, edited),
                }
                return Ok(None);
            }
            (Some(a), Some(b)) => match (is_sound(&a.1, id), is_sound(&b.1, id)) {
                (true, false) => {
                    self.put_aside(id, b.1);
                    a
                }
                (false, true) => {
                    self.put_aside(id, a.1);
                    b
                }
                _ => {
                    let merged = merge::merge(id, base_bytes, &a.1, &b.1);
                    let base_folder = base.map(|(folder, _)| folder);
                    let folder = folder_of(id, base_folder, a.0, b.0, &merged);
                    self.keep_rest(id, &merged)?;
                    (folder, merged.bytes)
                }
            },
        };
        Ok(Some((folder, self.repository.blob(&bytes)?)))
    }

    /// Prepares one side of a note for the merge: clamps times in the future of its commit,
    /// restores keys that the Python version drops.
    fn side(
        &self,
        id: NoteId,
        place: Option<NoteBlob>,
        base: Option<&[u8]>,
        side: Side<'_>,
    ) -> Result<Option<(NoteType, Vec<u8>)>, Error> {
        let Some((folder, oid)) = place else {
            return Ok(None);
        };
        let bytes = self.repository.read(oid)?;
        let bytes = Self::with_dropped_keys(id, folder, base, bytes, side)?;
        let committed = side
            .commit
            .and_then(|commit| DateTime::from_timestamp(commit.time().seconds(), 0));
        let clamped = committed.and_then(|latest| merge::clamped(id, &bytes, latest));
        Ok(Some((folder, clamped.unwrap_or(bytes))))
    }

    /// Restores keys that another program dropped when it rewrote the file.
    fn with_dropped_keys(
        id: NoteId,
        folder: NoteType,
        base: Option<&[u8]>,
        bytes: Vec<u8>,
        side: Side<'_>,
    ) -> Result<Vec<u8>, Error> {
        let whole = base.and_then(|base| merge::with_dropped_keys(id, base, &bytes));
        match whole {
            Some(whole) if is_foreign(side, &note_path(folder, id))? => Ok(whole),
            _ => Ok(bytes),
        }
    }

    /// Keeps the parts of a merge that are not in the note itself.
    fn keep_rest(&mut self, id: NoteId, merged: &Merged) -> Result<(), Error> {
        if let Some(sibling) = &merged.conflict {
            let file = NoteFile::parse(&sibling.bytes, sibling.id);
            let folder = file.map_or(NoteType::Semantic, |file| file.note().note_type);
            let oid = self.repository.blob(&sibling.bytes)?;
            let path = note_path(folder, sibling.id);
            // A side that has the sibling has joined the same two texts before.
            let has_it = |side: Side<'_>| -> Result<bool, Error> {
                Ok(side
                    .tree()?
                    .is_some_and(|tree| entry(&tree, &path).is_some()))
            };
            if !has_it(self.ours)? && !has_it(self.theirs)? {
                self.updates.insert(path, Some((oid, FILE)));
                self.joined.siblings += 1;
            }
        }
        self.joined.proposals.extend(merged.proposal.clone());
        if let Some(bytes) = &merged.unreadable {
            self.put_aside(id, bytes.clone());
        }
        Ok(())
    }

    /// Keeps the bytes of an unreadable version.
    fn put_aside(&mut self, id: NoteId, bytes: Vec<u8>) {
        self.joined.unreadable.push((id, bytes));
        self.joined.problems.push(Problem {
            path: format!("memory/{id}"),
            reason: "one side could not be read; its bytes are in quarantine/".to_owned(),
        });
    }

    /// Joins a file of lines, the marker or an unknown file that the other side changed.
    fn file(
        &mut self,
        path: &str,
        our: Option<&PathDiff<(Oid, i32)>>,
        their: PathDiff<(Oid, i32)>,
    ) -> Result<(), Error> {
        if self.keeps.is_some() && their.new.is_none() {
            return Ok(());
        }
        let Some(our) = our else {
            // Unchanged here. If a note replaces another entry, its update exists already.
            self.updates.entry(path.to_owned()).or_insert(their.new);
            return Ok(());
        };
        let result = match (our.new, their.new) {
            (a, b) if a == b => return Ok(()),
            (Some((a, mode)), Some((b, _))) => {
                let merged = match named(path) {
                    Named::Lines => {
                        let log = join_lines(&self.repository.read(a)?, &self.repository.read(b)?);
                        self.repository.blob(&log)?
                    }
                    // A newer format has been refused before, so the higher format is right.
                    _ if path == LAYOUT => a,
                    _ => a.min(b),
                };
                Some((merged, mode))
            }
            // Changed on one side, deleted on the other.
            (Some(file), None) | (None, Some(file)) => Some(file),
            (None, None) => None,
        };
        if result != our.new {
            self.updates.insert(path.to_owned(), result);
        }
        Ok(())
    }
}

/// Returns whether a joined file contains a word that was masked.
fn brings_back(before: &[u8], masked: &[u8], joined: &[u8]) -> bool {
    fn words(bytes: &[u8]) -> BTreeSet<&[u8]> {
        bytes
            .split(|byte| !byte.is_ascii_alphanumeric() && byte.is_ascii())
            .filter(|word| !word.is_empty())
            .collect()
    }
    let (masked, joined) = (words(masked), words(joined));
    words(before)
        .into_iter()
        .any(|word| !masked.contains(word) && joined.contains(word))
}

/// Returns whether bytes are a valid note.
pub(crate) fn is_sound(bytes: &[u8], id: NoteId) -> bool {
    NoteFile::parse(bytes, id).is_ok() && !merge::has_conflict_markers(bytes)
}

/// Returns the folder of a merged note. The folder is merged like any other field.
pub(crate) fn folder_of(
    id: NoteId,
    base: Option<NoteType>,
    a: NoteType,
    b: NoteType,
    merged: &Merged,
) -> NoteType {
    if a == b || base == Some(b) {
        return a;
    }
    if base == Some(a) {
        return b;
    }
    let file = NoteFile::parse(&merged.bytes, id);
    file.map_or(a.min(b), |file| file.note().note_type)
}

/// Returns whether another program made the last commit that changed a path. The Python version
/// drops unknown keys when it rewrites a note.
fn is_foreign(side: Side<'_>, path: &str) -> Result<bool, Error> {
    let Some(mut commit) = side.commit.cloned() else {
        return Ok(false);
    };
    loop {
        if Some(commit.id()) == side.since {
            return Ok(false);
        }
        let own = entry(&commit.tree()?, path);
        // A parent has the same file, so that parent or an earlier commit changed it.
        let mut came_from = None;
        for parent in commit.parents() {
            if entry(&parent.tree()?, path) == own {
                came_from = Some(parent);
                break;
            }
        }
        match came_from {
            Some(parent) => commit = parent,
            None => return Ok(!is_ours(&commit)),
        }
    }
}

/// Returns whether a commit was made by this program.
pub(crate) fn is_ours(commit: &Commit<'_>) -> bool {
    let message = commit.message().unwrap_or_default();
    message
        .lines()
        .any(|line| line.starts_with(ACTOR) && line[ACTOR.len()..].starts_with(": "))
}
