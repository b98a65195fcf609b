//! Writes a session's note and takes it up in the index, for the hook and the command alike.

use std::time::Duration;

use anamnesis_core::transcript::Transcript;
use anamnesis_store::{
    journal::Journal,
    notes::Error,
    session_note::{self, Outcome, Request},
};

use crate::context::Context;

/// How long the index is waited for: a session may be waiting for this.
const INDEX_PATIENCE: Duration = Duration::from_millis(20);

/// Writes or updates the note of a session.
pub(crate) fn write(
    context: &Context,
    journal: Option<&Journal>,
    transcript: &Transcript,
    request: &Request<'_>,
) -> Result<Outcome, Error> {
    let outcome = session_note::capture(&context.notes, journal, transcript, request)?;
    if let Outcome::Written(stored) = &outcome {
        context.take_up(stored, INDEX_PATIENCE);
    }
    Ok(outcome)
}
