//! Makes a note of what somebody wants remembered: by command, or typed in a session.

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
use anamnesis_store::{index::Index, journal::Journal, notes::Stored, writing::Writer};
use anamnesis_text::clean::one_line;

use crate::{context::Context, failure::Failure, format};

/// How long the index is waited for: the reply is better with the id that it knows to be short enough.
pub const INDEX_PATIENCE: Duration = Duration::from_millis(150);

/// The text that a prompt asks to be remembered, if that is what the prompt is.
pub fn asked_for(prompt: &str) -> Option<&str> {
    typed(prompt, "memory-remember")
}

/// What a person typed behind a command of ours, if that is what the prompt is. The client gives it to
/// the hook as it was typed, before any model has seen it.
pub fn typed<'a>(prompt: &'a str, command: &str) -> Option<&'a str> {
    let name = prompt.trim_start().strip_prefix('/')?;
    let name = name.strip_prefix("anamnesis:").unwrap_or(name);
    let rest = name.strip_prefix(command)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

/// Saves the words of a person as a fact of a project, and says so.
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

/// Tells what a note that is to be written is to those that there are.
///
/// # Errors
/// Why an agent may not write it.
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

/// What is said of a note that was written and is not new; none where it is.
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

/// A note's short id, and how it is named in a sentence.
fn named(index: &Index, id: NoteId) -> (String, String) {
    let short = Context::short(index, id);
    let title = index.get(id).ok().flatten().map(|entry| entry.title);
    let title = one_line(&title.unwrap_or_default());
    let note = format!("#{short} \"{title}\"");
    (short, note)
}

/// Writes a new note and takes it up in the records and the index.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_asks() {
        for (prompt, text) in [
            (
                "/memory-remember The key is in vault",
                Some("The key is in vault"),
            ),
            ("  /anamnesis:memory-remember a\nb ", Some("a\nb")),
            ("/memory-remember", Some("")),
            ("/memory-remembering x", None),
            ("please /memory-remember x", None),
            ("/memory-search x", None),
        ] {
            assert_eq!(asked_for(prompt), text, "{prompt}");
        }
    }
}
