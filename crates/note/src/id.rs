//! Note ids: ULIDs, their short form, and the ids that are derived instead of drawn.
//!
//! An id is also a file name, so the grammar is strict: 26 upper-case Crockford characters and
//! nothing else. Text that is not an id never becomes a path.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use ulid::Ulid;

/// How many characters of an id a person is shown, unless two notes share them.
pub const SHORT_ID_LENGTH: usize = 6;

/// The length of an id in characters.
const ID_LENGTH: usize = 26;

/// A note's id: a [ULID](https://github.com/ulid/spec), written in upper case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoteId(Ulid);

/// The text is not an id: not 26 upper-case Crockford base-32 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a note id (26 characters of 0-9 and A-Z without I, L, O, U)")]
pub struct InvalidId(pub String);

impl NoteId {
    /// Draws a new id for a note made at `now`.
    pub fn generate(now: DateTime<Utc>) -> Self {
        let milliseconds = u64::try_from(now.timestamp_millis()).unwrap_or(0);
        Self(Ulid::from_parts(milliseconds, Ulid::generate().random()))
    }

    /// Returns the id of the note of a session: the same session has the same id on every machine.
    ///
    /// It is made of `session:` and the client's session id.
    pub fn of_session(session_id: &str) -> Self {
        Self::made_of(&format!("session:{session_id}"))
    }

    /// Returns the id that is made of a text: the same on every machine, and no other's.
    ///
    /// The first 16 bytes of SHA-256 over the text.
    pub fn made_of(text: &str) -> Self {
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
        Self(Ulid::from_bytes(bytes))
    }

    /// Returns the last characters of the id, as people are shown it.
    pub fn short(self) -> String {
        self.tail(SHORT_ID_LENGTH)
    }

    /// Returns the last `length` characters of the id.
    pub fn tail(self, length: usize) -> String {
        let text = self.to_string();
        text[ID_LENGTH - length.min(ID_LENGTH)..].to_owned()
    }
}

impl fmt::Display for NoteId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

impl fmt::Debug for NoteId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NoteId({self})")
    }
}

impl FromStr for NoteId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId(text.to_owned());
        let id = Self(Ulid::from_string(text).map_err(|_| invalid())?);
        // The ULID reader also takes lower case and values that do not fit 128 bits; an id has one
        // spelling, or two files could stand for one note on a file system that folds case.
        if id.to_string() == text {
            Ok(id)
        } else {
            Err(invalid())
        }
    }
}

/// What a person may type for a note: a whole id, or six or more characters of its beginning or end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdPrefix(String);

impl IdPrefix {
    /// Reads a reference, with or without a leading `#`, in any letter case.
    ///
    /// # Errors
    /// When it is shorter than six characters, longer than an id, or has other characters.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let bare = text.trim().trim_start_matches('#').to_ascii_uppercase();
        let is_crockford =
            |c: char| c.is_ascii_alphanumeric() && !matches!(c, 'I' | 'L' | 'O' | 'U');
        if (SHORT_ID_LENGTH..=ID_LENGTH).contains(&bare.len()) && bare.chars().all(is_crockford) {
            Ok(Self(bare))
        } else {
            Err(InvalidId(text.to_owned()))
        }
    }

    /// Tells whether the id begins or ends with what was typed.
    pub fn matches(&self, id: &str) -> bool {
        id.starts_with(&self.0) || id.ends_with(&self.0)
    }

    /// The characters that were typed, in upper case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let text = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        assert_eq!(text.parse::<NoteId>().unwrap().to_string(), text);
        for bad in [
            "",
            "01arz3ndektsv4rrffq69g5fav",
            "01ARZ3NDEKTSV4RRFFQ69G5FA",
            "81ARZ3NDEKTSV4RRFFQ69G5FAV",
            "01ARZ3NDEKTSV4RRFFQ69G5FAI",
            "../../../../etc/passwd.....",
            "01ARZ3NDEKTSV4RRFFQ69G5FA/",
        ] {
            assert!(bad.parse::<NoteId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_session_has_one_id() {
        // SHA-256("session:abc") begins with these bytes, worked out with an independent tool.
        let id = NoteId::of_session("abc");
        assert_eq!(id, NoteId::of_session("abc"));
        assert_ne!(id, NoteId::of_session("abd"));
        assert_eq!(id.to_string().parse::<NoteId>().unwrap(), id);
    }

    #[test]
    fn a_new_id_carries_its_time() {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let later = DateTime::from_timestamp(1_700_000_001, 0).unwrap();
        assert!(NoteId::generate(now) < NoteId::generate(later));
        assert_ne!(NoteId::generate(now), NoteId::generate(now));
    }

    #[test]
    fn a_reference_is_a_beginning_or_an_end() {
        let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        for good in ["9G5FAV", "#9g5fav", "01ARZ3", id] {
            assert!(IdPrefix::parse(good).unwrap().matches(id), "{good}");
        }
        assert!(!IdPrefix::parse("3NDEKT").unwrap().matches(id));
        for bad in [
            "",
            "5FAV",
            "9G5FA!",
            "../../x",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV0",
        ] {
            assert!(IdPrefix::parse(bad).is_err(), "{bad}");
        }
    }
}
