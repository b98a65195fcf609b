//! The three-way merge of a note.
//!
//! Two machines changed one note; this makes one file of the two, field by field and line by line,
//! and keeps what does not fit together as a note of its own. It is a function of the bytes alone: no
//! clock, no names of sides. So every machine that merges the same two files gets the same result,
//! the ids of what is made beside it included. Where one of two values has to give way, the file
//! with the smaller SHA-256 keeps its own.
//!
//! Which files are merged, and where the results go, is the caller's. Never in a result: a conflict
//! marker, or bytes that are no note where both sides are notes.

mod fields;

mod body;

mod diff;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use self::fields::Content;
use crate::{
    id::NoteId,
    note::{CannotRewrite, Note, NoteFile, Scope, State, Unreadable, parse_timestamp, timestamp},
};
use anamnesis_text::hash::bytes_hash;

/// The tag of a note that was made because two others clash.
pub const CONFLICT_TAG: &str = "merge-conflict";

/// What a proposal says at its end when the note that it was is purged.
const PURGED: &str = "(Kept on this machine only: another machine purged this note, or a text in it, while it was edited here.)";

/// A note that a merge makes beside the note itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// Its id, made of the files that were merged.
    pub id: NoteId,
    /// Its file.
    pub bytes: Vec<u8>,
}

/// What a merge makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The note's file.
    pub bytes: Vec<u8>,
    /// The other of two notes that clash, complete; it travels as the note does.
    pub conflict: Option<Sibling>,
    /// A proposal with the text of a note that was forgotten on one side and edited on the other; it
    /// stays on this machine.
    pub proposal: Option<Sibling>,
    /// The side that is no note, or one with git's conflict markers, for the caller to put aside.
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

/// Joins what two sides made of the note `id`. `base` is the file that both were made of, if there is
/// one.
///
/// If one side is the base, the result is the other side, whatever that is.
pub fn merge(id: NoteId, base: Option<&[u8]>, a: &[u8], b: &[u8]) -> Merged {
    if a == b || base == Some(b) {
        return Merged::just(a);
    }
    if base == Some(a) {
        return Merged::just(b);
    }
    // From here on the sides are told apart by what they are, never by their order.
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

/// Returns what is to become of a note whose file is gone on one side and edited on the other: a
/// proposal with the edited text, if it says something that `base` did not.
///
/// # Errors
/// When `edited` is no note.
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

/// Puts back the keys that `side` lacks, `base` has and the Python version does not know: it drops
/// them whenever it rewrites a note. None when nothing is missing, or one of the two is no note.
pub fn with_dropped_keys(id: NoteId, base: &[u8], side: &[u8]) -> Option<Vec<u8>> {
    let base = NoteFile::parse(base, id).ok()?;
    let side = NoteFile::parse(side, id).ok()?;
    fields::with_dropped_keys(&base, &side).map(String::into_bytes)
}

/// Holds a note's `updated_at` back to `latest`: a clock that is fast wins no merge for ever. None
/// when it is not later, or the note cannot be changed.
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

/// Tells whether git wrote its conflict markers into a file: all three, each at the start of a line, in
/// their order. A block of code that shows them does not count.
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

/// Returns a text of ours with git's conflict markers, if it shows any, moved in by a space: a note that
/// tells of a conflict is none.
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
    /// A note with conflict markers.
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

    /// Notes go before what is none, whole ones before those with markers, then the smaller hash.
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

/// One of the two files, and a note.
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
        // Two notes that were restored have nothing in common with the tombstone they come from.
        (false, false) if base_is_forgotten => base = None,
        _ => {}
    }
    // Where the two cannot be joined, one stays as it is, and the other beside it.
    let (bytes, left_out) = join(base.as_ref(), winner, loser)
        .unwrap_or_else(|CannotRewrite| (winner.bytes.to_vec(), Some(loser)));
    let conflict = left_out
        // A tombstone has nothing that could be lost.
        .filter(|version| !version.is_forgotten())
        .map(|version| sibling(version.file, &[winner.hash, loser.hash], |_| {}));
    Merged {
        bytes,
        conflict,
        proposal: None,
        unreadable: None,
    }
}

/// Joins two notes into one file; also returns the side that did not fit in whole.
fn join<'a>(
    base: Option<&NoteFile>,
    winner: &'a Version<'a>,
    loser: &'a Version<'a>,
) -> Result<(Vec<u8>, Option<&'a Version<'a>>), CannotRewrite> {
    let of_winner = Content::of(winner.file)?;
    let of_loser = Content::of(loser.file)?;
    let (content, left_out) = match base.and_then(|base| Content::of(base).ok()) {
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
    // A side that says it all stays as it is written.
    let bytes = if content.says_what(&of_winner) {
        winner.bytes.to_vec()
    } else if content.says_what(&of_loser) {
        loser.bytes.to_vec()
    } else {
        fields::write(winner.file, loser.file, &content)
            .or_else(|CannotRewrite| fields::write(loser.file, winner.file, &content))?
            .into_bytes()
    };
    // Lines of both sides may make up what neither of them is.
    if has_conflict_markers(&bytes) && !has_conflict_markers(winner.bytes) {
        return Err(CannotRewrite);
    }
    Ok((bytes, left_out))
}

/// Returns the text of an edited note whose note is gone, as a proposal; none if it adds no text.
fn proposal(base: Option<&NoteFile>, edited: &Version<'_>) -> Option<Sibling> {
    let adds_text = fields::adds_text(base.map(NoteFile::note), edited.file.note());
    (adds_text && !edited.is_forgotten()).then(|| {
        sibling(edited.file, &[edited.hash], |note| {
            note.state = State::Proposed;
            note.scope = Scope::MachineLocal;
        })
    })
}

/// Returns the text of a note that was edited here while another machine purged it, as a proposal that
/// says so; it stays on this machine.
///
/// # Errors
/// When `edited` is no note.
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

/// Returns a note as one of its own, tagged and linked to the note that it was. `hashes` are those of
/// the files that were merged, sorted.
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
    // Front matter that cannot be changed key by key is written anew.
    let text = file
        .rewrite(&note)
        .unwrap_or_else(|CannotRewrite| note.render());
    Sibling {
        id,
        bytes: text.into_bytes(),
    }
}
