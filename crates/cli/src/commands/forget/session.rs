//! `forget --session`: permanently deletes a session, or one prompt of it.

use anamnesis_app::{
    context::{Context, TIMEOUT},
    forget::session::{self, NoteFate},
};
use anamnesis_note::id::NoteId;
use anamnesis_store::journal::{self, Journal, Session};
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Ui};

pub(super) fn run(
    typed: &str,
    prompt: Option<i64>,
    yes: bool,
    context: &Context,
    ui: &Ui,
) -> Outcome {
    context.check_person("forget a session, which cannot be undone")?;
    let journal = Journal::open(&context.home, TIMEOUT)?;
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
    let target = session::find(context, journal, typed)?;
    let (short, session) = (&target.short, target.session.as_ref());
    let counts = session.map_or_else(String::new, |session| {
        format!(
            " ({}, {})",
            ui::counted(session.prompts, "prompt"),
            ui::counted(session.tool_events, "tool event")
        )
    });
    let question = format!("Forget session {short}{counts} and its note, for good?");
    let again = format!("anamnesis forget --session {short} --yes");
    ui.confirm(&question, yes, &again, ["", "nothing was forgotten"])?;
    let forgotten = session::forget(context, journal, &target)?;
    let pending = match forgotten.pending {
        0 => String::new(),
        pending => format!(", {}", ui::count(pending, "pending record")),
    };
    let note = if forgotten.had_note {
        "its note, too"
    } else {
        "it had no note"
    };
    let kept = if forgotten.is_in_history {
        let id = NoteId::of_session(&target.id).short();
        format!(
            "Hooks, capture and backfill make no note of it again\n\
             The history still has its note: anamnesis purge {id}"
        )
    } else {
        "Nothing of it is kept; hooks, capture and backfill make no note of it again".to_owned()
    };
    ui.answer(&format!(
        "forgot session {short}{counts}{pending}; {note}\n\
         {kept}\n{}",
        left_elsewhere(context, session)
    ))
}

fn forget_prompt(
    typed: &str,
    number: i64,
    yes: bool,
    context: &Context,
    journal: &Journal,
    ui: &Ui,
) -> Outcome {
    let (session, short) = session::find_prompt(context, journal, typed, number)?;
    let question = format!("Forget prompt {number} of session {short} and all under it, for good?");
    let again = format!("anamnesis forget --session {short} --prompt {number} --yes");
    ui.confirm(&question, yes, &again, ["", "nothing was forgotten"])?;
    let (forgotten, note) = session::forget_prompt(context, journal, &session, number)?;
    let id = NoteId::of_session(&session.id).short();
    let note = match note {
        NoteFate::None => String::new(),
        NoteFate::ByHand => format!(
            "its note #{id} was changed by hand and is left as it is\n→ anamnesis show {id}\n"
        ),
        NoteFate::Renewed => format!("its note #{id} is made from the rest\n"),
        NoteFate::Forgotten => "nothing is left to note: its note is forgotten, too\n".to_owned(),
        NoteFate::Excluded => format!(
            "its note #{id} is left as it is: its folder is excluded now\n→ anamnesis forget {id}\n"
        ),
    };
    ui.answer(&format!(
        "forgot prompt {number} of session {short}: {}, {}\n{note}{}",
        ui::count(forgotten.tool_events, "tool event"),
        ui::count(forgotten.turn_ends, "turn end"),
        left_elsewhere(context, Some(&session))
    ))
}

/// Lists other places that may still contain words of the session.
fn left_elsewhere(context: &Context, session: Option<&Session>) -> String {
    let mut text = String::new();
    let transcript = session.and_then(|session| session.transcript.as_ref());
    if let Some(path) = transcript.map(std::path::Path::new)
        && path.exists()
    {
        text.push_str(&format!(
            "Claude's own transcript is not ours, and stays:\n  {}\n",
            one_line(&context.shown(path))
        ));
    }
    if !journal::kept_files(&context.home).is_empty() {
        text.push_str(&format!(
            "Damaged records that were set aside may have it, too; delete them:\n  {}/journal-*\n",
            context.shown(&context.home.quarantine())
        ));
    }
    text
}
