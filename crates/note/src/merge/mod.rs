//! The three-way merge of a note.
//!
//! Merges two versions of a note by field and by line; a version that conflicts is kept as a
//! separate note. The merge is a pure function of the bytes: it uses no clock, and the order of the
//! sides does not matter. So every machine that merges the same two files gets the same result,
//! including the ids of new notes. In a conflict, the file with the smaller SHA-256 keeps its
//! value.
//!
//! The caller decides which files are merged and where results go. A result never has conflict
//! markers that neither side had, and is a valid note if both sides are.

mod fields;

mod body;

mod diff;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use self::fields::NoteContent;
use crate::{
    id::NoteId,
    note::{CannotRewrite, Note, NoteFile, Scope, State, Unreadable, parse_timestamp, timestamp},
};
use anamnesis_text::hash::bytes_hash;

/// The tag of a note that was created by a conflict.
pub const CONFLICT_TAG: &str = "merge-conflict";

/// Appended to the proposal that keeps an edit of a purged note.
const PURGED: &str = "(Kept on this machine only: another machine purged this note, or a text in it, while it was edited here.)";

/// A note created by a merge beside the merged note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// Its id, derived from the merged files.
    pub id: NoteId,
    /// Its file.
    pub bytes: Vec<u8>,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The note's file.
    pub bytes: Vec<u8>,
    /// The other of two conflicting versions, complete; it has the scope of the note.
    pub conflict: Option<Sibling>,
    /// A proposal with the text of a note that was forgotten on one side and edited on the other.
    /// It is machine-local.
    pub proposal: Option<Sibling>,
    /// The side that is not a note or has conflict markers, for the caller to set aside.
    pub unreadable: Option<Vec<u8>>,
}

impl Merged {
    fn just(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            conflict: None,
            proposal: None,
            unreadable: None,
        }
    }
}

/// Merges two versions of the note `id`. `base` is their common ancestor, if there is one.
///
/// If one side equals the base, the result is the other side, even if that is not a note.
pub fn merge(id: NoteId, base: Option<&[u8]>, a: &[u8], b: &[u8]) -> Merged {
    if a == b || base == Some(b) {
        return Merged::just(a);
    }
    if base == Some(a) {
        return Merged::just(b);
    }
    // From here on the sides are ordered by content, so that their order does not matter.
    let mut sides = [Side::read(id, a), Side::read(id, b)];
    sides.sort_by(|one, other| one.rank().cmp(&other.rank()));
    let [winner, loser] = &sides;
    match (&winner.file, &loser.file) {
        (Some(file), Some(of_loser)) if winner.marked == loser.marked => {
            let base = base.and_then(|bytes| NoteFile::parse(bytes, id).ok());
            merge_notes(base, &winner.note(file), &loser.note(of_loser))
        }
        _ => Merged {
            unreadable: Some(loser.bytes.to_vec()),
            ..Merged::just(winner.bytes)
        },
    }
}

/// Returns the proposal for a note that was deleted on one side and edited on the other: the edited
/// text, if it adds text to `base`.
pub fn edited_after_deletion(
    id: NoteId,
    base: Option<&[u8]>,
    edited: &[u8],
) -> Result<Option<Sibling>, Unreadable> {
    let file = NoteFile::parse(edited, id)?;
    let base = base.and_then(|bytes| NoteFile::parse(bytes, id).ok());
    let edited = Version {
        bytes: edited,
        hash: &bytes_hash(edited),
        file: &file,
    };
    Ok(proposal(base.as_ref(), &edited))
}

/// Restores the keys that `base` has, `side` lacks and the Python version does not know, because it
/// drops them when it rewrites a note. `None` if nothing is missing, or one of the two is not a
/// note.
pub fn with_dropped_keys(id: NoteId, base: &[u8], side: &[u8]) -> Option<Vec<u8>> {
    let base = NoteFile::parse(base, id).ok()?;
    let side = NoteFile::parse(side, id).ok()?;
    fields::with_dropped_keys(&base, &side).map(String::into_bytes)
}

/// Limits a note's `updated_at` to `latest`, so that a fast clock does not win every merge. `None`
/// if it is not later, or the note cannot be changed.
pub fn clamped(id: NoteId, bytes: &[u8], latest: DateTime<Utc>) -> Option<Vec<u8>> {
    let file = NoteFile::parse(bytes, id).ok()?;
    if parse_timestamp(&file.note().updated_at)? <= latest {
        return None;
    }
    let note = Note {
        updated_at: timestamp(latest),
        ..file.note().clone()
    };
    file.rewrite(&note).ok().map(String::into_bytes)
}

/// Returns whether a file has git conflict markers: all three, each at the start of a line, in
/// order. Markers in a code block do not count.
pub fn has_conflict_markers(bytes: &[u8]) -> bool {
    let mut in_code = false;
    let mut seen = 0;
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match seen {
            0 if line.starts_with(b"```") || line.starts_with(b"~~~") => in_code = !in_code,
            0 if line.starts_with(b"<<<<<<< ") && !in_code => seen = 1,
            1 if line == b"=======" => seen = 2,
            2 if line.starts_with(b">>>>>>> ") => return true,
            _ => {}
        }
    }
    false
}

/// Returns our own text with git conflict markers indented by a space, so that a note about a
/// conflict is not taken for one.
pub fn without_conflict_markers(text: &str) -> Cow<'_, str> {
    if !has_conflict_markers(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let moved = text.split_inclusive('\n').flat_map(|line| {
        let is_marker = line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
        [if is_marker { " " } else { "" }, line]
    });
    Cow::Owned(moved.collect())
}

/// One of the two files.
struct Side<'a> {
    bytes: &'a [u8],
    hash: String,
    file: Option<NoteFile>,
    /// Whether it is a note with conflict markers.
    marked: bool,
}

impl<'a> Side<'a> {
    fn read(id: NoteId, bytes: &'a [u8]) -> Self {
        let file = NoteFile::parse(bytes, id).ok();
        Self {
            bytes,
            hash: bytes_hash(bytes),
            marked: file.is_some() && has_conflict_markers(bytes),
            file,
        }
    }

    /// Orders notes before other files, then those without conflict markers first, then by hash.
    fn rank(&self) -> (bool, bool, &str) {
        (self.file.is_none(), self.marked, &self.hash)
    }

    fn note<'b>(&'b self, file: &'b NoteFile) -> Version<'b> {
        Version {
            bytes: self.bytes,
            hash: &self.hash,
            file,
        }
    }
}

/// One of the two files, if it is a note.
struct Version<'a> {
    bytes: &'a [u8],
    hash: &'a str,
    file: &'a NoteFile,
}

impl Version<'_> {
    fn is_forgotten(&self) -> bool {
        self.file.note().state == State::Forgotten
    }
}

fn merge_notes(mut base: Option<NoteFile>, winner: &Version<'_>, loser: &Version<'_>) -> Merged {
    let base_is_forgotten = base
        .as_ref()
        .is_some_and(|base| base.note().state == State::Forgotten);
    let forgotten = |tombstone: &Version<'_>, edited: &Version<'_>| Merged {
        proposal: proposal(base.as_ref(), edited),
        ..Merged::just(tombstone.bytes)
    };
    match (winner.is_forgotten(), loser.is_forgotten()) {
        (true, false) if !base_is_forgotten => return forgotten(winner, loser),
        (false, true) if !base_is_forgotten => return forgotten(loser, winner),
        // Two restored notes have nothing in common with their tombstone.
        (false, false) if base_is_forgotten => base = None,
        _ => {}
    }
    // If they cannot be merged, one is kept unchanged and the other becomes a conflict note.
    let (bytes, left_out) = join(base.as_ref(), winner, loser)
        .unwrap_or_else(|CannotRewrite| (winner.bytes.to_vec(), Some(loser)));
    let conflict = left_out
        // A tombstone has no content to lose.
        .filter(|version| !version.is_forgotten())
        .map(|version| sibling(version.file, &[winner.hash, loser.hash], |_| {}));
    Merged {
        bytes,
        conflict,
        proposal: None,
        unreadable: None,
    }
}

/// Merges two notes into one file; also returns the side that conflicts.
fn join<'a>(
    base: Option<&NoteFile>,
    winner: &'a Version<'a>,
    loser: &'a Version<'a>,
) -> Result<(Vec<u8>, Option<&'a Version<'a>>), CannotRewrite> {
    let of_winner = NoteContent::from_file(winner.file)?;
    let of_loser = NoteContent::from_file(loser.file)?;
    let (content, left_out) = match base.and_then(|base| NoteContent::from_file(base).ok()) {
        Some(base) => {
            let (content, clash) = fields::join(&base, &of_winner, &of_loser);
            (content, clash.then_some(loser))
        }
        None if fields::by_age(&of_winner.note, &of_loser.note).is_le() => {
            let (content, lost) = fields::unite(&of_winner, &of_loser);
            (content, lost.then_some(winner))
        }
        None => {
            let (content, lost) = fields::unite(&of_loser, &of_winner);
            (content, lost.then_some(loser))
        }
    };
    // A side with the same content is kept byte for byte.
    let bytes = if content.equals(&of_winner) {
        winner.bytes.to_vec()
    } else if content.equals(&of_loser) {
        loser.bytes.to_vec()
    } else {
        fields::write(winner.file, loser.file, &content)
            .or_else(|CannotRewrite| fields::write(loser.file, winner.file, &content))?
            .into_bytes()
    };
    // Lines of both sides may form conflict markers only together.
    if has_conflict_markers(&bytes) && !has_conflict_markers(winner.bytes) {
        return Err(CannotRewrite);
    }
    Ok((bytes, left_out))
}

/// Returns an edited version of a deleted note as a proposal; `None` if it adds no text.
fn proposal(base: Option<&NoteFile>, edited: &Version<'_>) -> Option<Sibling> {
    let adds_text = fields::adds_text(base.map(NoteFile::note), edited.file.note());
    (adds_text && !edited.is_forgotten()).then(|| {
        sibling(edited.file, &[edited.hash], |note| {
            note.state = State::Proposed;
            note.scope = Scope::MachineLocal;
        })
    })
}

/// Returns a note that was edited here while another machine purged it, as a machine-local proposal
/// that says so.
pub fn edited_after_purge(id: NoteId, edited: &[u8]) -> Result<Option<Sibling>, Unreadable> {
    let file = NoteFile::parse(edited, id)?;
    if file.note().state == State::Forgotten {
        return Ok(None);
    }
    let hash = bytes_hash(edited);
    Ok(Some(sibling(&file, &[&hash], |note| {
        note.state = State::Proposed;
        note.scope = Scope::MachineLocal;
        note.body = format!("{}\n\n{PURGED}", note.body.trim_end());
    })))
}

/// Returns a version as a separate note, tagged and linked to the original. `hashes` are the sorted
/// hashes of the merged files.
fn sibling(file: &NoteFile, hashes: &[&str], change: impl FnOnce(&mut Note)) -> Sibling {
    let id = NoteId::made_of(&format!("{CONFLICT_TAG}:{}", hashes.join(":")));
    let link = format!("related-to {}", file.note().id);
    let mut note = file.note().clone();
    note.id = id;
    note.add_tags([CONFLICT_TAG]);
    if !note.links.contains(&link) {
        note.links.push(link);
    }
    change(&mut note);
    // Front matter in which single keys cannot be changed is written from scratch.
    let text = file
        .rewrite(&note)
        .unwrap_or_else(|CannotRewrite| note.render());
    Sibling {
        id,
        bytes: text.into_bytes(),
    }
}
