//! Makes a note of what somebody wants remembered: by command, or typed in a session.

use std::time::Duration;

use anamnesis_core::{
    clean::one_line,
    id::NoteId,
    note::{Kind, Note, NoteType, Scope, State},
    transcript,
};
use anamnesis_store::{index::Index, journal::Journal, notes::Stored};

use crate::{context::Context, failure::Failure, ui};

/// How long the index is waited for: the reply is better with the id that it knows to be short enough.
pub(crate) const INDEX_PATIENCE: Duration = Duration::from_millis(150);

/// The longest title, in characters.
const MAX_TITLE_LENGTH: usize = 120;

/// The text that a prompt asks to be remembered, if that is what the prompt is.
pub(crate) fn asked_for(prompt: &str) -> Option<&str> {
    typed(prompt, "memory-remember")
}

/// What a person typed behind a command of ours, if that is what the prompt is. The client gives it to
/// the hook as it was typed, before any model has seen it.
pub(crate) fn typed<'a>(prompt: &'a str, command: &str) -> Option<&'a str> {
    let name = prompt.trim_start().strip_prefix('/')?;
    let name = name.strip_prefix("anamnesis:").unwrap_or(name);
    let rest = name.strip_prefix(command)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

/// Makes a text safe to be kept: nothing private, nothing invisible, no secret. In this order.
pub(crate) fn safe(text: &str) -> String {
    transcript::words(text).text
}

/// The title of a text: its first line, cut to a length.
pub(crate) fn title_of(text: &str) -> String {
    let line = one_line(
        text.lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default(),
    );
    let title: String = line.chars().take(MAX_TITLE_LENGTH).collect();
    title.trim_end().to_owned()
}

/// Saves the words of a person as a fact of a project, and says so.
///
/// # Errors
/// A sentence that says why nothing was saved.
pub(crate) fn save_words(
    context: &Context,
    journal: Option<&Journal>,
    text: &str,
    project: &str,
) -> Result<String, String> {
    let body = safe(text);
    if body.is_empty() {
        return Err("there is no text".to_owned());
    }
    let now = context.environment.now;
    let mut note = Note::new(NoteId::generate(now), NoteType::Semantic, now);
    note.title = title_of(&body);
    note.kind = Some(Kind::Fact);
    note.body = body;
    project.clone_into(&mut note.project);
    note.machine_id = context.machine_id();
    let stored = save(context, journal, &note).map_err(|failure| failure.text())?;
    let index = Index::open(&context.home).ok();
    let id = index.map_or_else(|| note.id.short(), |index| Context::short(&index, note.id));
    Ok(format!(
        "{} · Undo: /memory-forget {id}",
        saved(&stored.note(), &id)
    ))
}

/// Says what was saved, as every reply does.
pub(crate) fn saved(note: &Note, short: &str) -> String {
    let place = if note.is_global() {
        "all projects"
    } else {
        &note.project
    };
    let local = if note.scope == Scope::MachineLocal {
        ", this machine only"
    } else {
        ""
    };
    let kind = note.kind().shown();
    if note.state == State::Proposed {
        format!(
            "proposed #{short} {kind} for {place}, by {}: not used until a person approves it",
            note.author()
        )
    } else {
        format!(
            "saved #{short} {kind} for {place}, by {}{local}",
            note.author()
        )
    }
}

/// Writes a new note and takes it up in the records and the index.
pub(crate) fn save(
    context: &Context,
    journal: Option<&Journal>,
    note: &Note,
) -> Result<Stored, Failure> {
    // A machine may not bring back what a person had forgotten; the person may.
    if note.is_by_agent()
        && let Some(at) =
            journal.and_then(|journal| journal.forgotten_at(&note.body).ok().flatten())
    {
        return Err(Failure::failed(format!(
            "you forgot this on {}",
            ui::date(at)
        )));
    }
    let lock = context.notes.lock()?;
    let stored = context.notes.create(&lock, note)?;
    if let Some(journal) = journal {
        let known = if note.is_by_agent() {
            Ok(())
        } else {
            journal.remembered(note.id).and_then(|()| {
                journal.written_here(note.id, note.render().as_bytes(), context.environment.now)
            })
        };
        if let Err(error) = known {
            context.log(&error.to_string());
        }
    }
    context.take_up(&stored, INDEX_PATIENCE);
    Ok(stored)
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

    #[test]
    fn a_title_is_the_first_line() {
        assert_eq!(title_of("\n  first\tline \nsecond"), "first line");
        assert_eq!(title_of(&"x".repeat(500)).len(), 120);
    }

    #[test]
    fn what_is_private_is_gone() {
        assert_eq!(safe("a <private>b</private> c\u{202e}"), "a  c");
        // What cannot be seen may part a tag.
        assert_eq!(safe("a <pri\u{200b}vate>b</private> c"), "a  c");
    }
}
