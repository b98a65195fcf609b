//! Note ids: ULIDs, their short form, and ids derived from a text.
//!
//! An id is also a file name, so the grammar is strict: exactly 26 upper-case Crockford characters.
//! Text that is not an id never becomes a path.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest, Sha256};
use ulid::Ulid;

/// The number of characters of an id that people are shown, unless two notes share them.
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
    /// Generates a new id for a note created at `now`.
    pub fn generate(now: DateTime<Utc>) -> Self {
        let milliseconds = u64::try_from(now.timestamp_millis()).unwrap_or(0);
        Self(Ulid::from_parts(milliseconds, Ulid::generate().random()))
    }

    /// Returns the id of a session's note, which is the same on every machine.
    ///
    /// It is derived from `session:` and the client's session id.
    pub fn of_session(session_id: &str) -> Self {
        Self::made_of(&format!("session:{session_id}"))
    }

    /// Derives an id from a text: the first 16 bytes of its SHA-256. It is the same on every
    /// machine.
    pub fn made_of(text: &str) -> Self {
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
        Self(Ulid::from_bytes(bytes))
    }

    /// Returns the 16 bytes of the id, which sort as its text does.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_bytes()
    }

    /// Returns the id with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Ulid::from_bytes(bytes))
    }

    /// Returns the short form that people are shown: the last characters of the id.
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

impl Serialize for NoteId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NoteId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

crate::schema_as!(NoteId, String);

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
        // `Ulid` also accepts lower case and values over 128 bits. An id has one spelling,
        // so that two files cannot be one note on a file system that ignores case.
        if id.0.array_to_str(&mut [0; ID_LENGTH]) == text {
            Ok(id)
        } else {
            Err(invalid())
        }
    }
}

/// A note reference as typed by a person: an id, or at least six characters of its start or end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdPrefix(String);

impl IdPrefix {
    /// Parses a reference, with or without a leading `#`, in any letter case.
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

    /// Returns whether the id begins or ends with the reference.
    pub fn matches(&self, id: &str) -> bool {
        id.starts_with(&self.0) || id.ends_with(&self.0)
    }

    /// Returns the reference in upper case.
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
        // The first bytes of SHA-256("session:abc") were computed with an independent tool.
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
    fn a_reference_is_a_prefix_or_suffix() {
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
