//! Writes a new note, in the name of the person or the agent who runs the command.

use anamnesis_note::{agent_policy, id::NoteId, note::Note};
use anamnesis_recall::{admission::NewNote, novelty::Novelty};
use anamnesis_store::{
    index::{Entry, Index},
    notes::Stored,
};

use crate::{context::Context, failure::Failure, remember, sync, write::is_out_of_reach};

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
    /// A note that says the same, or may contradict it, in a sentence.
    pub remark: Option<String>,
    /// Why the index could not be updated. The note is on disk, so this is not a failure.
    pub index_failure: Option<Failure>,
}

/// Writes a new note, which replaces these notes. `is_forced`: even if another one says the same.
pub fn write(
    context: &Context,
    index: Index,
    mut note: Note,
    act: &str,
    replaced: &[Entry],
    is_forced: bool,
) -> Result<SavedNote, Failure> {
    if context.environment.is_agent {
        let is_reaching = replaced.iter().any(|entry| is_out_of_reach(context, entry));
        let is_held = context.config.review.holds(note.state);
        agent_policy::sign(&mut note, context.agent_session(), is_reaching || is_held);
    }
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
) -> Result<SavedNote, Failure> {
    let original = changed.id;
    let now = context.environment.now;
    let note = agent_policy::proposal(
        changed,
        NoteId::generate(now),
        context.machine_id(),
        context.agent_session(),
        now,
    );
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
) -> Result<Novelty, Failure> {
    let wanted = NewNote {
        note,
        projects: &context.project(Some(&note.project)).all_keys(),
        replaced,
        session: note.session.as_deref(),
        is_forced,
    };
    remember::admit(context, context.journal().as_ref(), index, &wanted)
}

/// Saves and commits a new note.
fn save(
    context: &Context,
    index: Index,
    note: &Note,
    act: &str,
    novelty: Novelty,
) -> Result<SavedNote, Failure> {
    // The open index holds the write lock, which saving needs.
    drop(index);
    let stored = remember::save(context, context.journal().as_ref(), note)?;
    sync::commit(context, act, [note.id]);
    let (index, index_failure) = match context.index() {
        Ok(index) => (Some(index), None),
        Err(failure) => (None, Some(failure)),
    };
    let short = index.as_ref();
    let short = short.map_or_else(|| note.id.short(), |index| Context::short(index, note.id));
    let entry = index.as_ref().map(|index| index.get(note.id));
    let remark = index.as_ref();
    let remark = remark.and_then(|index| remember::remark_of(index, &short, novelty));
    Ok(SavedNote {
        stored,
        entry: entry.transpose()?.flatten(),
        novelty,
        remark,
        short,
        index_failure,
    })
}
