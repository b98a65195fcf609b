//! Removes the text of notes that are gone from this machine's records and derived files.

use std::{collections::BTreeSet, time::Duration};

use anamnesis_note::{id::NoteId, synced_lines::PurgeMark};
use anamnesis_recall::render;
use anamnesis_store::{
    index,
    journal::{self, Journal},
    synced_lines::purge_marks,
};

use crate::{Error, context::Context};

/// The journal key of the purge marks whose notes were removed from the records.
const MARKS: &str = "purge_marks";

/// Removes notes from what this machine derived from them: injected texts, the indexes, free pages and
/// write-ahead logs. Their files are changed already.
pub(crate) fn leave_records(
    context: &Context,
    journal: Option<&Journal>,
    notes: &BTreeSet<NoteId>,
) -> Result<(), Error> {
    let records = journal.map(|journal| {
        journal.forget_injected(notes, render::without)?;
        journal.checkpoint()
    });
    let index = context.index().and_then(|index| Ok(index.checkpoint()?));
    // An index of another version has the text, too.
    let others = index::remove_others(&context.home, Duration::ZERO);
    records.transpose()?;
    index?;
    others.map_err(Error::caused_by)
}

/// Does so for notes that another machine forgot, deleted or purged. `changed` are the notes that a sync
/// changed. What an earlier sync brought before it was killed is found by what was injected.
pub(crate) fn leave_records_of_gone(
    context: &Context,
    journal: Option<&Journal>,
    changed: BTreeSet<NoteId>,
) -> Result<(), Error> {
    let mut notes = changed;
    if let Some(journal) = journal {
        notes.extend(journal.injected_notes()?);
    }
    let repository = context.repository()?;
    let is_gone = |id: NoteId| match context.notes.find(id) {
        Some(path) => context.notes.is_forgotten(path),
        // A file that is missing without a commit of it may come back.
        None => !repository
            .as_ref()
            .is_some_and(|it| it.has_note(id).unwrap_or(true)),
    };
    notes.retain(|id| is_gone(*id));
    let marks = purge_marks(&context.home);
    if let Some(journal) = journal {
        let seen = seen_marks(journal)?;
        notes.extend(marks.difference(&seen).map(|mark| mark.note));
    }
    if notes.is_empty() {
        return Ok(());
    }
    leave_records(context, journal, &notes)?;
    match journal {
        Some(journal) => Ok(marks_seen(journal, &marks)?),
        None => Ok(()),
    }
}

/// Records that the notes of these purge marks, or the purged texts, were removed from the records.
pub(crate) fn marks_seen(
    journal: &Journal,
    marks: &BTreeSet<PurgeMark>,
) -> Result<(), journal::Error> {
    let seen = seen_marks(journal)?;
    let lines: String = seen.union(marks).map(PurgeMark::line).collect();
    journal.set_meta(MARKS, &lines)
}

fn seen_marks(journal: &Journal) -> Result<BTreeSet<PurgeMark>, journal::Error> {
    Ok(PurgeMark::parse(&journal.meta(MARKS)?.unwrap_or_default()))
}
