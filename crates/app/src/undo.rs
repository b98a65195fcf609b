//! Reverts a change.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{id::NoteId, note::NoteFile};
use anamnesis_store::journal::Journal;
use anamnesis_sync::{
    Act,
    history::{Fate, NoteCommit},
};
use anamnesis_text::clean::one_line;
use serde::Serialize;
use serde_json::Value;
use ulid::Ulid;

use crate::{
    Error, context::Context, forget::records::leave_records, format::quoted, history::Past, sync,
};

/// The result of an undo.
pub struct UndoOutcome<'a> {
    /// The change that was to be undone.
    pub event: NoteCommit,
    /// The fate of each note.
    pub notes: BTreeMap<NoteId, Fate>,
    /// The titles before the undo.
    titles: BTreeMap<NoteId, String>,
    /// The change that the undo is; `None` if nothing was committed.
    pub batch: Option<Ulid>,
    /// The history, with the undo.
    pub past: Past<'a>,
}

impl UndoOutcome<'_> {
    /// Returns whether any note was changed.
    pub fn has_effect(&self) -> bool {
        let mut fates = self.notes.values();
        self.batch.is_some() || fates.any(|fate| !matches!(fate, Fate::Left(_)))
    }

    /// The outcome for scripts.
    pub fn report(&self) -> UndoReport {
        let notes = self.notes.iter().map(|(id, fate)| {
            let (did, why) = words_of(*fate);
            UndoneNote { id: *id, did, why }
        });
        UndoReport {
            undone: self.past.json(&self.event),
            notes: notes.collect(),
            change: self.batch,
        }
    }

    /// A note's title, now or before; empty if unknown or withheld.
    pub fn title_of(&self, id: NoteId) -> String {
        let title = self.past.title_of(id);
        if title.is_empty() && !self.past.is_withheld(id) {
            return self.titles.get(&id).cloned().unwrap_or_default();
        }
        title
    }
}

/// The outcome of an undo for scripts.
#[derive(Serialize)]
pub struct UndoReport {
    undone: Value,
    notes: Vec<UndoneNote>,
    change: Option<Ulid>,
}

#[derive(Serialize)]
struct UndoneNote {
    id: NoteId,
    did: &'static str,
    why: Option<&'static str>,
}

/// Returns what happened to a note, in one word, and why.
pub fn words_of(fate: Fate) -> (&'static str, Option<&'static str>) {
    match fate {
        Fate::Restored | Fate::Remembered => ("restored", None),
        Fate::Forgotten => ("forgotten", None),
        Fate::Merged => ("merged", Some("what came later stays")),
        Fate::Removed => ("removed", None),
        Fate::Proposed => (
            "proposed",
            Some("its original text is no longer in the trash"),
        ),
        Fate::Local => ("kept here", Some("on this machine only")),
        Fate::Left(why) => ("left", Some(why)),
    }
}

/// Reverts the change that a person or an agent typed.
pub fn undo<'a>(context: &'a Context, typed: &str) -> Result<UndoOutcome<'a>, Error> {
    // Commit pending edits of hooks and editors first, so that they are not part of the undo.
    let journal = context.journal();
    sync::commit_pending(context);
    let past = Past::open(context)?;
    let event = past.find_change(typed)?;
    if event.verb() == sync::FORGET_SESSION {
        return Err(Error::failed(format!(
            "cannot undo {}: it forgot a session, which is permanent",
            one_line(typed)
        )));
    }
    if context.environment.is_in_prompt && event.notes.len() > 1 {
        let count = event.notes.len();
        return Err(Error::failed(format!(
            "this change has {count} notes; a prompt undoes changes of one note only"
        ))
        .hint(format!(
            "anamnesis undo {}   (in a terminal)",
            quoted(typed)
        )));
    }
    let ids = event.notes.keys();
    let titles = ids.map(|id| (*id, past.title_of(*id))).collect();
    let act = Act {
        verb: "undo",
        actor: context.actor(),
    };
    let lock = context.notes.lock()?;
    let undone = past.repository.undo(&lock, &context.notes, &event, act)?;
    drop(lock);
    update_journal(context, journal.as_ref(), &undone.notes)?;
    let gone = undone.notes.iter();
    let gone = gone.filter(|(_, fate)| matches!(fate, Fate::Forgotten | Fate::Removed));
    let gone: BTreeSet<NoteId> = gone.map(|(id, _)| *id).collect();
    if !gone.is_empty() {
        context.log_error("undo", leave_records(context, journal.as_ref(), &gone));
    }
    Ok(UndoOutcome {
        event,
        notes: undone.notes,
        titles,
        batch: undone.committed.map(|committed| committed.batch),
        past: Past::open(context)?,
    })
}

/// Updates this machine's journal: restored notes, removed notes, and notes that a person wrote.
fn update_journal(
    context: &Context,
    journal: Option<&Journal>,
    notes: &BTreeMap<NoteId, Fate>,
) -> Result<(), Error> {
    let now = context.environment.now;
    for (id, fate) in notes {
        match fate {
            Fate::Remembered => {
                context.notes.drop_trashed(*id)?;
                if let Some(journal) = journal {
                    journal.remembered(*id)?;
                }
            }
            Fate::Forgotten => {
                let text = context.notes.trashed(*id);
                let file = text.and_then(|bytes| NoteFile::parse(&bytes, *id).ok());
                if let (Some(journal), Some(file)) = (journal, file) {
                    journal.forgot(*id, &file.note().body, now)?;
                }
            }
            Fate::Merged if !context.environment.is_agent => {
                if let (Some(journal), Some(path)) = (journal, context.notes.find(*id)) {
                    journal.written_here(*id, &context.notes.bytes(path)?, now)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}
