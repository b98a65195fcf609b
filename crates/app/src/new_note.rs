//! Writes a new note, in the name of the person or the agent who runs the command.

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_recall::{admission::NewNote, novelty::Novelty};
use anamnesis_store::{
    index::{Entry, Index},
    notes::Stored,
};

use crate::{Error, citation_check, context::Context, project, sync, write};

/// A note that was saved.
pub struct SavedNote {
    /// The note as it is on disk.
    pub stored: Stored,
    /// The shortest unique id.
    pub short: String,
    /// Its index entry; `None` if the index could not be updated.
    pub entry: Option<Entry>,
    /// What it is to the existing notes.
    pub novelty: Novelty,
    /// A note that says the same or part of it, in a sentence.
    pub remark: Option<String>,
    /// Why the index could not be updated. The note is on disk, so this is not a failure.
    pub index_failure: Option<Error>,
}

/// Writes a new note, which replaces these notes. `is_forced`: even if another one says the same.
pub fn write(
    context: &Context,
    index: Index,
    mut note: Note,
    act: &str,
    replaced: &[Entry],
    is_forced: bool,
) -> Result<SavedNote, Error> {
    project::check_key(context, &index, &note.project)?;
    let own = context.project_to_write(None).all_keys();
    write::sign(context, &mut note, replaced, &own);
    let replaced: Vec<NoteId> = replaced.iter().map(Entry::id).collect();
    let novelty = judge(context, &index, &note, &replaced, is_forced)?;
    save(context, index, &note, act, novelty)
}

/// Proposes a change that an agent may not make. The proposal replaces the original once a person
/// approves it; nothing else changes.
pub fn propose(
    context: &Context,
    index: Index,
    changed: Note,
    act: &str,
    has_new_text: bool,
) -> Result<SavedNote, Error> {
    let original = changed.id;
    let note = write::proposal(context, changed);
    let novelty = if has_new_text {
        judge(context, &index, &note, &[original], false)?
    } else {
        Novelty::Novel
    };
    save(context, index, &note, act, novelty)
}

/// Compares a new note with the existing ones.
fn judge(
    context: &Context,
    index: &Index,
    note: &Note,
    replaced: &[NoteId],
    is_forced: bool,
) -> Result<Novelty, Error> {
    let wanted = NewNote {
        note,
        projects: &context.project(Some(&note.project)).all_keys(),
        replaced,
        session: note.session.as_deref(),
        is_forced,
    };
    write::admit(context, context.journal().as_ref(), index, &wanted)
}

/// Saves and commits a new note.
fn save(
    context: &Context,
    index: Index,
    note: &Note,
    act: &str,
    novelty: Novelty,
) -> Result<SavedNote, Error> {
    // The open index holds the write lock, which saving needs.
    drop(index);
    let journal = context.journal();
    let stored = write::save(context, journal.as_ref(), note, None)?;
    sync::commit(context, act, [note.id]);
    let (index, index_failure) = match context.index() {
        Ok(index) => (Some(index), None),
        Err(failure) => (None, Some(failure)),
    };
    if let Some(journal) = &journal {
        citation_check::look_at_new(context, journal);
    }
    let short = index.as_ref();
    let short = short.map_or_else(|| note.id.short(), |index| Context::short(index, note.id));
    let entry = index.as_ref().map(|index| index.get(note.id));
    let remark = index.as_ref();
    let remark = remark.and_then(|index| write::remark_of(index, &short, novelty));
    Ok(SavedNote {
        stored,
        entry: entry.transpose()?.flatten(),
        novelty,
        remark,
        short,
        index_failure,
    })
}
