//! Saves what a person asks to remember, by command or typed in a session.

use anamnesis_note::draft::{Draft, saved};
use anamnesis_session::prompt::RawPrompt;
use anamnesis_store::{index::Index, journal::Journal};

use crate::{
    Error,
    context::Context,
    write::{admit, remark_of, save},
};

/// Returns the text to remember, if the prompt is `/memory-remember`.
pub fn asked_for(prompt: &RawPrompt) -> Option<&str> {
    prompt.command("memory-remember")
}

/// Saves a person's words as a fact and returns the reply.
pub fn save_words(
    context: &Context,
    journal: Option<&Journal>,
    text: &str,
    project: &str,
) -> Result<String, Error> {
    let draft = Draft::new(text.to_owned(), project.to_owned());
    let note = draft.note(context.machine_id(), context.environment.now)?;
    let index = Index::open(&context.home).ok();
    let novelty = index.and_then(|index| admit(context, journal, &index, &note, &[], false).ok());
    let stored = save(context, journal, &note)?;
    let index = Index::open(&context.home).ok();
    let id = index
        .as_ref()
        .map_or_else(|| note.id.short(), |index| Context::short(index, note.id));
    let remark = index.zip(novelty);
    let remark = remark.and_then(|(index, novelty)| remark_of(&index, &id, novelty));
    Ok(format!(
        "{}{} · Undo: /memory-forget {id}",
        saved(&stored.note(), &id),
        remark.map_or_else(String::new, |remark| format!("; {remark}"))
    ))
}
