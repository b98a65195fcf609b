//! `forget --session`: permanently deletes a session, or one prompt of it.
//!
//! The note is deleted first, because it is what people see. If the process is killed, the next run
//! deletes the rest.

use std::{fs, process::ExitCode};

use anamnesis_app::{capture, context::Context, evaluation_set, failure::Failure, session};
use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, State},
};
use anamnesis_session::event::Privacy;
use anamnesis_store::{
    journal::{Journal, Session},
    session_note::{self, Outcome as Captured},
    spool::Spool,
};
use anamnesis_text::clean::one_line;

use crate::{
    commands::sessions,
    ui::{self, Outcome, Ui},
};

pub(super) fn run(
    typed: &str,
    prompt: Option<i64>,
    yes: bool,
    context: &Context,
    ui: &Ui,
) -> Outcome {
    if context.environment.is_agent {
        return Err(Failure::failed(
            "a session is forgotten by a person only: that cannot be undone",
        )
        .hint("anamnesis forget ID   (one note, which can be brought back)"));
    }
    let journal = sessions::open(context)?;
    match prompt {
        Some(number) => forget_prompt(typed, number, yes, context, &journal, ui),
        None => forget_session(typed, yes, context, &journal, ui),
    }
}

fn forget_session(
    typed: &str,
    yes: bool,
    context: &Context,
    journal: &Journal,
    ui: &Ui,
) -> Outcome {
    let found = session::find(journal, typed);
    let (id, short, session) = match found {
        Ok(session) => (
            session.id.clone(),
            sessions::short(journal, &session)?,
            Some(session),
        ),
        // The full id of a session that the journal does not have, or no longer has.
        Err(failure) => {
            let id = typed.trim().to_owned();
            let has_note = context
                .notes
                .find(NoteId::of_session(&id))
                .is_some_and(|path| !context.notes.is_forgotten(path));
            if !has_note && Spool::new(&context.home).count_of(&id) == 0 {
                return Err(nothing(&failure));
            }
            (id.clone(), one_line(&id), None)
        }
    };
    let counts = session.as_ref().map_or_else(String::new, |session| {
        format!(
            " ({}, {})",
            counted(session.prompts, "prompt"),
            counted(session.tool_events, "tool event")
        )
    });
    confirm(
        &format!("Forget session {short}{counts} and its note, for good?"),
        &format!("--session {short}"),
        yes,
        ui,
    )?;
    let note = forget_note(&id, session.as_ref(), context, journal)?;
    journal.forget_session(&id)?;
    let waiting = Spool::new(&context.home)
        .forget_session(&id)
        .map_err(|error| Failure::failed(format!("spool: {error}")).hint("anamnesis doctor"))?;
    wipe(context, journal)?;
    let mut text = format!("forgot session {short}{counts}");
    if waiting > 0 {
        text.push_str(&format!(", {}", ui::count(waiting, "waiting record")));
    }
    text.push_str(if note {
        "; its note, too\n"
    } else {
        "; it had no note\n"
    });
    text.push_str("Nothing of it is kept; hooks, capture and backfill make no note of it again\n");
    text.push_str(&left_elsewhere(context, session.as_ref()));
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

/// Writes a tombstone for the session's note, even if there is no note, so that none is written
/// later. Tells whether there was a note.
fn forget_note(
    id: &str,
    session: Option<&Session>,
    context: &Context,
    journal: &Journal,
) -> Result<bool, Failure> {
    let now = context.environment.now;
    let note = NoteId::of_session(id);
    let lock = context.notes.lock()?;
    evaluation_set::forget_session(&context.home, id, None)?;
    evaluation_set::forget_notes(&context.home, |asked| asked == note)?;
    let had_note = match context.notes.find(note) {
        Some(path) if context.notes.is_forgotten(path) => false,
        Some(path) => {
            if let Ok(stored) = context.notes.read(path) {
                journal.forgot(note, &stored.file.note().body, now)?;
            }
            context.notes.forget(&lock, path, now)?;
            true
        }
        None => {
            let mut tombstone = Note {
                session: Some(id.to_owned()),
                machine_id: context.machine_id(),
                source: anamnesis_note::note::Source::SessionEnd,
                ..Note::new(note, NoteType::Episodic, now)
            };
            if let Some(session) = session {
                tombstone.project.clone_from(&session.project);
            }
            tombstone.forget(now);
            context.notes.create(&lock, &tombstone)?;
            false
        }
    };
    context.notes.drop_trashed(note)?;
    context.notes.drop_leftovers(&lock, note)?;
    Ok(had_note)
}

fn forget_prompt(
    typed: &str,
    number: i64,
    yes: bool,
    context: &Context,
    journal: &Journal,
    ui: &Ui,
) -> Outcome {
    let session = session::find(journal, typed).map_err(|failure| nothing(&failure))?;
    let short = sessions::short(journal, &session)?;
    let prompts = journal.prompts(&session.id)?;
    let Some(prompt) = prompts.iter().find(|prompt| prompt.number == number) else {
        return Err(Failure::failed(format!(
            "0 forgotten: session {short} has no prompt {number}"
        ))
        .hint(format!("anamnesis sessions show {short}")));
    };
    if prompt.privacy == Privacy::Full {
        // If an earlier run was killed, the note may still contain the prompt.
        renew_note(&session, context, journal)?;
        return Err(Failure::failed(format!(
            "0 forgotten: nothing is kept of prompt {number} of session {short}"
        )));
    }
    confirm(
        &format!("Forget prompt {number} of session {short} and all under it, for good?"),
        &format!("--session {short} --prompt {number}"),
        yes,
        ui,
    )?;
    let now = context.environment.now.timestamp_millis();
    let lock = context.notes.lock()?;
    evaluation_set::forget_session(&context.home, &session.id, Some(number))?;
    drop(lock);
    let Some(forgotten) = journal.forget_prompt(&session.id, number, now)? else {
        return Err(Failure::failed(
            "0 forgotten: the session was forgotten meanwhile",
        ));
    };
    let note = renew_note(&session, context, journal)?;
    wipe(context, journal)?;
    ui.print(&format!(
        "forgot prompt {number} of session {short}: {}, {}\n{note}{}",
        ui::count(forgotten.tool_events, "tool event"),
        ui::count(forgotten.turn_ends, "turn end"),
        left_elsewhere(context, Some(&session))
    ));
    Ok(ExitCode::SUCCESS)
}

/// Rewrites the note from the rest of its session, and describes the result.
fn renew_note(session: &Session, context: &Context, journal: &Journal) -> Result<String, Failure> {
    let id = NoteId::of_session(&session.id);
    let Some(path) = context.notes.find(id) else {
        return Ok(String::new());
    };
    let before = context.notes.read(path)?;
    if before.file.note().state == State::Forgotten {
        return Ok(String::new());
    }
    if !session_note::is_own(journal, &session.id, before.file.note()) {
        return Ok(format!(
            "its note #{} was changed by hand and is left as it is\n→ anamnesis show {}\n",
            id.short(),
            id.short()
        ));
    }
    let written = capture::write_session(context, journal, &session.id, None)
        .map_err(|error| Failure::failed(error).hint("anamnesis doctor"))?;
    let lock = context.notes.lock()?;
    context.notes.drop_leftovers(&lock, id)?;
    Ok(match written {
        Some((Captured::Trivial, _)) => {
            context.notes.forget(&lock, path, context.environment.now)?;
            context.notes.drop_trashed(id)?;
            "nothing is left to note: its note is forgotten, too\n".to_owned()
        }
        Some(_) => format!("its note #{} is made from the rest\n", id.short()),
        None => format!(
            "its note #{0} is left as it is: its folder is excluded now\n→ anamnesis forget {0}\n",
            id.short()
        ),
    })
}

/// Erases the deleted bytes from the disk: free pages are overwritten, and the write-ahead logs of
/// both databases are checkpointed.
fn wipe(context: &Context, journal: &Journal) -> Result<(), Failure> {
    context.index()?.checkpoint()?;
    Ok(journal.checkpoint()?)
}

/// Lists other places that may still contain words of the session.
fn left_elsewhere(context: &Context, session: Option<&Session>) -> String {
    let home = context.environment.user_home.as_deref();
    let mut text = String::new();
    let transcript = session.and_then(|session| session.transcript.as_ref());
    if let Some(path) = transcript.map(std::path::Path::new)
        && path.exists()
    {
        text.push_str(&format!(
            "Claude's own transcript is not ours, and stays:\n  {}\n",
            one_line(&ui::home_path(path, home))
        ));
    }
    let set_aside = fs::read_dir(context.home.quarantine())
        .into_iter()
        .flatten();
    let has_journal = set_aside
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("journal-"));
    if has_journal {
        text.push_str(&format!(
            "Damaged records that were set aside may have it, too; delete them:\n  {}/journal-*\n",
            context.shown(&context.home.quarantine())
        ));
    }
    text
}

/// Asks for confirmation. Without a terminal, `--yes` is required.
fn confirm(question: &str, options: &str, yes: bool, ui: &Ui) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !ui::stdin_is_terminal() {
        return Err(
            Failure::usage("nobody can be asked here, and it is for good")
                .hint(format!("anamnesis forget {options} --yes")),
        );
    }
    if ui.asks(question) {
        Ok(())
    } else {
        Err(Failure::failed("0 forgotten"))
    }
}

fn nothing(failure: &Failure) -> Failure {
    Failure::failed(format!(
        "0 forgotten: {}",
        failure.text().trim_start_matches("anamnesis: ").trim_end()
    ))
}

fn counted(amount: i64, thing: &str) -> String {
    ui::count(usize::try_from(amount).unwrap_or(0), thing)
}
