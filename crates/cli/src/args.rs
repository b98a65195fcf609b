//! Value parsers that several commands use.

use std::{fmt, str::FromStr};

use anamnesis_note::note::{Kind, NoteType, Scope};

/// Parses a value of any type that implements `FromStr`.
pub(crate) fn word<T>(text: &str) -> Result<T, String>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

pub(crate) fn note_type(text: &str) -> Result<NoteType, String> {
    word(text)
}

pub(crate) fn scope(text: &str) -> Result<Scope, String> {
    word(text)
}

pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    Kind::from_word(text).map_err(|error| error.to_string())
}
