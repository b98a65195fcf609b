//! Saves what a person asks to remember, by command or typed in a session.

use std::time::Duration;

use anamnesis_note::{
    draft::{Draft, saved},
    id::NoteId,
    note::Note,
};
use anamnesis_recall::{
    admission::{self, NewNote, Refusal},
    novelty::Novelty,
};
use anamnesis_session::prompt::RawPrompt;
use anamnesis_store::{index::Index, journal::Journal, notes::Stored, writing::Writer};
use anamnesis_text::clean::one_line;

use crate::{context::Context, failure::Failure, format};

/// The timeout for the index lock. It is longer than a hook's because the reply shows the shortest
/// unique id.
pub const INDEX_PATIENCE: Duration = Duration::from_millis(150);

/// Returns the text to remember, if the prompt is `/memory-remember`.
pub fn asked_for(prompt: &RawPrompt) -> Option<&str> {
    prompt.command("memory-remember")
}

/// Saves a person's words as a fact and returns the reply.
///
/// # Errors
/// A sentence that says why nothing was saved.
pub fn save_words(
    context: &Context,
    journal: Option<&Journal>,
    text: &str,
    project: &str,
) -> Result<String, String> {
    let draft = Draft::new(text.to_owned(), project.to_owned());
    let note = draft
        .note(context.machine_id(), context.environment.now)
        .map_err(|unfit| unfit.to_string())?;
    let novelty = Index::open(&context.home).ok().and_then(|index| {
        let wanted = NewNote {
            note: &note,
            projects: &[project.to_owned()],
            replaced: &[],
            session: None,
            is_forced: false,
        };
        admit(context, journal, &index, &wanted).ok()
    });
    let stored = save(context, journal, &note).map_err(|failure| failure.text())?;
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

/// Compares a new note with the existing ones.
///
/// # Errors
/// The reason why an agent may not write it.
pub fn admit(
    context: &Context,
    journal: Option<&Journal>,
    index: &Index,
    wanted: &NewNote<'_>,
) -> Result<Novelty, Failure> {
    let refusal = match admission::admit(index, &context.notes, journal, wanted)? {
        Ok(novelty) => return Ok(novelty),
        Err(refusal) => refusal,
    };
    Err(match refusal {
        Refusal::Forgotten(at) => {
            Failure::failed(format!("you forgot this on {}", format::date(at)))
        }
        Refusal::Known(id) => {
            let (short, note) = named(index, id);
            Failure::failed(format!("{note} says this already")).hint(format!(
                "anamnesis edit {short} --stdin, for what is new; --force writes another note all the same"
            ))
        }
        Refusal::Echo(id) => {
            let (short, note) = named(index, id);
            Failure::failed(format!(
                "most of this is what the session was given, {note} before others"
            ))
            .hint(format!(
                "write only what is new, or add it by anamnesis edit {short} --stdin"
            ))
        }
    })
}

/// Returns a remark about a new note that repeats or may contradict another; `None` for a novel
/// one.
pub fn remark_of(index: &Index, short: &str, novelty: Novelty) -> Option<String> {
    let (other, note) = named(index, novelty.note()?);
    Some(match novelty {
        Novelty::Novel => return None,
        Novelty::Known(_) | Novelty::Echo(_) => format!("{note} says this, too"),
        Novelty::Extends(_) => format!(
            "{note} says part of this; to replace it: anamnesis connect {short} {other} --relation supersedes"
        ),
        Novelty::MayContradict(_) => format!(
            "{note} may say otherwise; to replace it: anamnesis connect {short} {other} --relation supersedes"
        ),
    })
}

/// Returns a note's short id, and its name for use in a sentence.
fn named(index: &Index, id: NoteId) -> (String, String) {
    let short = Context::short(index, id);
    let title = index.get(id).ok().flatten().map(|entry| entry.title);
    let title = one_line(&title.unwrap_or_default());
    let note = format!("#{short} \"{title}\"");
    (short, note)
}

/// Writes a new note and adds it to the journal and the index.
pub fn save(context: &Context, journal: Option<&Journal>, note: &Note) -> Result<Stored, Failure> {
    let writer = Writer {
        home: &context.home,
        notes: &context.notes,
        journal,
        counted_to: None,
        now: context.environment.now,
        index_patience: INDEX_PATIENCE,
    };
    Ok(writer.save(note)?)
}
