//! The questions when a machine joins a remote.

use anamnesis_app::{
    Error,
    context::Context,
    setup::{NOTHING_CHANGED, TIMEOUT},
    sync::{self, Carrier},
};
use anamnesis_sync::HeldDecision;
use anamnesis_text::clean::one_line;

use crate::{
    commands::sync::{remarks, sentence},
    ui::{self, Ui},
};

/// The default answer: for Enter, and without a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsaid {
    /// Yes in both cases.
    Yes,
    /// Yes for Enter; no without a terminal.
    YesWhenAsked,
    /// No in both cases.
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// A person at a terminal.
    Person,
    /// `--yes`: yes to every question.
    Yes,
    /// No terminal: the safe default of each question.
    Nobody,
}

/// The terminal, or the defaults that replace it.
#[derive(Debug)]
pub(super) struct Talk<'a> {
    pub(super) ui: &'a Ui,
    pub(super) answers: Answers,
}

impl Talk<'_> {
    /// Prints whole lines.
    pub(super) fn say(&self, text: &str) {
        self.ui.print(text);
    }

    /// Asks a question and returns whether the answer is yes.
    pub(super) fn asks(&self, question: &str, unsaid: Unsaid) -> bool {
        let (answer, who) = match (self.answers, unsaid) {
            (Answers::Person, Unsaid::No) => return self.ui.asks(question),
            (Answers::Person, _) => return self.ui.asks_with_yes(question),
            (Answers::Yes, _) => (true, "--yes"),
            (Answers::Nobody, unsaid) => (unsaid == Unsaid::Yes, "cannot ask; see --yes"),
        };
        let word = if answer { "yes" } else { "no" };
        self.say(&format!("{question} {word} ({who})\n"));
        answer
    }
}

/// Asks before notes are sent to a remote whose readers are unknown.
pub(super) fn is_private(talk: &Talk<'_>) -> bool {
    let question = "  Everyone who can read this repository can read your notes, session notes\n  \
                    included. Private?";
    talk.asks(question, Unsaid::No)
}

/// Shows what a remote contains, and asks whether to join it and what becomes of notes that it deleted.
/// Returns `None` if it is not joined. An error means that nothing has changed.
pub(super) fn meet(context: &Context, talk: &Talk<'_>) -> Result<Option<HeldDecision>, Error> {
    let remote = sync::remote(context)?;
    let journal = context.journal();
    let carrier = Carrier::new(
        context,
        journal.as_ref(),
        remote,
        HeldDecision::None,
        TIMEOUT,
    );
    let reached = carrier.init().map_err(|error| {
        let is_offline = matches!(&error, anamnesis_sync::Error::Network(it) if it.is_offline());
        let error = Error::from(error).also(NOTHING_CHANGED);
        if is_offline {
            // The remote is not set, so no later sync reaches it, either.
            error.hint("check the address and the connection, then: anamnesis init --remote URL")
        } else {
            error
        }
    })?;
    let is_empty = reached.notes_there == 0 && reached.machines.is_empty();
    let machines = one_line(&reached.machines.join(", "));
    talk.say(&if is_empty {
        "✓ reached: it is empty\n".to_owned()
    } else {
        let notes = ui::count(reached.notes_there, "note");
        let from = match &*machines {
            "" => String::new(),
            machines => format!(", from {}", ui::shorten(machines, 40)),
        };
        format!("✓ reached: {notes}{from}\n")
    });
    let agreed = if is_empty {
        is_private(talk)
    } else {
        let question = format!(
            "  here: {}. Together {}{}. Join?",
            ui::count(reached.notes_here, "note"),
            ui::number(reached.together),
            if reached.deleted_there == 0 {
                "; nothing is overwritten"
            } else {
                ""
            },
        );
        talk.asks(&question, Unsaid::Yes)
    };
    if !agreed || reached.deleted_there == 0 {
        return Ok(agreed.then_some(HeldDecision::None));
    }
    // Every default keeps the notes, `--yes` included.
    let question = format!(
        "  The remote deleted {} of these. Keep them, here and there?",
        ui::number(reached.deleted_there)
    );
    Ok(Some(if talk.asks(&question, Unsaid::Yes) {
        HeldDecision::KeepAll
    } else {
        HeldDecision::Accept
    }))
}

/// Syncs, prints the result and returns whether it was done. A failure loses nothing, because a later sync
/// continues.
pub(super) fn sync(context: &Context, answer: HeldDecision, talk: &Talk<'_>) -> bool {
    let synced = sync::run_now(context, answer);
    match &synced {
        Ok(synced) => {
            talk.say(&format!("✓ {}\n", sentence(synced)));
            talk.ui.note(&remarks(synced));
        }
        Err(failure) => talk.say(&format!(
            "✗ not synced: {}\n  Your notes are safe; they go with the next sync.\n→ {}\n",
            failure.message().replace('\n', "\n  "),
            failure.next_step().unwrap_or("anamnesis sync")
        )),
    }
    synced.is_ok()
}
