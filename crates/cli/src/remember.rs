//! Makes a note of what somebody wants remembered: by command, or typed in a session.

use std::time::Duration;

use anamnesis_core::{
    agent,
    clean::one_line,
    id::NoteId,
    note::{Kind, Note, NoteType, Scope, State},
    transcript,
};
use anamnesis_recall::{
    admission::{self, Refusal, Wanted},
    novelty::Novelty,
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
    let novelty = Index::open(&context.home).ok().and_then(|index| {
        let wanted = Wanted {
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

/// Tells what a note that is to be written is to those that there are.
///
/// # Errors
/// Why an agent may not write it.
pub(crate) fn admit(
    context: &Context,
    journal: Option<&Journal>,
    index: &Index,
    wanted: &Wanted<'_>,
) -> Result<Novelty, Failure> {
    let refusal = match admission::admit(index, &context.notes, journal, wanted)? {
        Ok(novelty) => return Ok(novelty),
        Err(refusal) => refusal,
    };
    Err(match refusal {
        Refusal::Forgotten(at) => Failure::failed(format!("you forgot this on {}", ui::date(at))),
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
pub(crate) fn remark_of(index: &Index, short: &str, novelty: Novelty) -> Option<String> {
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
pub(crate) fn save(
    context: &Context,
    journal: Option<&Journal>,
    note: &Note,
) -> Result<Stored, Failure> {
    let counted = journal.filter(|_| note.is_by_agent());
    if let Some(journal) = counted {
        take_place(context, journal, note)?;
    }
    let created = context
        .notes
        .lock()
        .and_then(|lock| context.notes.create(&lock, note));
    if let (Err(_), Some(journal)) = (&created, counted) {
        journal.give_place_back(note.id)?;
    }
    let stored = created?;
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

/// Counts a note of an agent's to its session; where that is not known, to the day.
fn take_place(context: &Context, journal: &Journal, note: &Note) -> Result<(), Failure> {
    let now = context.environment.now;
    let session = match &note.session {
        Some(session) => session.clone(),
        None => now.date_naive().to_string(),
    };
    if journal.take_place(&session, note.id, agent::MAX_NOTES, now)? {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "agents have written {} notes in this session; no more are taken",
        agent::MAX_NOTES
    ))
    .hint("edit one of them, or ask the user to type /memory-remember TEXT"))
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
