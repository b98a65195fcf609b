//! The person's decisions about pending notes, in a terminal or in a dialog of the client.
//!
//! Each decision is one commit, so that `undo` can revert it. No tool or agent can call this.

use std::collections::BTreeSet;

use anamnesis_distill::reflection;
use anamnesis_note::{
    id::NoteId,
    merge::CONFLICT_TAG,
    note::{Note, Scope, State, UNREVIEWED_TAG, timestamp},
};
use anamnesis_recall::review::{self, PendingGroup, PendingNote, PendingReason};
use anamnesis_session::claude_memory::GONE_TAG;
use anamnesis_store::{
    fs::lock::Lock,
    index::Index,
    journal::{Journal, Reflection},
    notes::{NotePath, Stored},
};
use anamnesis_sync::history::APPROVAL;
use ulid::Ulid;

use crate::{Error, context::Context, forget, learn, sync};

/// A decision about pending notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Accept: a proposal becomes active, both texts of a conflict stay, other notes count as seen.
    Approve,
    /// Accept, and replace this other note.
    Replace(NoteId),
    /// Reject: forget the note, or restore it if an agent forgot it.
    Reject,
}

/// Applies a decision about pending notes. Returns the change that `undo` reverts, if anything was
/// committed.
pub fn decide(
    context: &Context,
    journal: &Journal,
    waiting: &[&PendingNote],
    decision: Decision,
) -> Result<Option<Ulid>, Error> {
    let reflections = journal.proposed_reflections()?;
    // Commits earlier edits separately, so that undoing the decision does not revert them.
    sync::commit_all(context, Some(journal))?;
    let mut touched = BTreeSet::new();
    for waiting in waiting {
        match decision {
            Decision::Reject => reject(context, journal, waiting)?,
            Decision::Approve => approve(context, journal, waiting, None)?,
            Decision::Replace(other) => approve(context, journal, waiting, Some(other))?,
        }
        touched.insert(waiting.entry.id());
    }
    for reflection in reflections {
        let is_of_it = |waiting: &&PendingNote| reflection.notes.contains(&waiting.entry.id());
        if !waiting.iter().any(is_of_it) {
            continue;
        }
        if decision != Decision::Reject {
            touched.extend(mark_sources(context, &reflection)?);
        }
        let is_waiting = |id: &NoteId| {
            let path = context.notes.find(*id);
            let stored = path.and_then(|path| context.notes.read(path).ok());
            stored.is_some_and(|stored| stored.file.note().state == State::Proposed)
        };
        if !reflection.notes.iter().any(is_waiting) {
            journal.end_reflection(&reflection.key)?;
        }
    }
    let batch = sync::commit(context, APPROVAL, touched);
    context.index()?;
    Ok(batch)
}

/// Activates a note, or marks it as seen or verified.
fn approve(
    context: &Context,
    journal: &Journal,
    waiting: &PendingNote,
    replaced: Option<NoteId>,
) -> Result<(), Error> {
    let path = waiting.entry.path;
    if waiting.reason == PendingReason::Forgotten {
        return Ok(journal.forgetting_seen(path.id)?);
    }
    if waiting.reason == PendingReason::Stale && replaced.is_none() {
        learn::verify(context, journal, &waiting.entry)?;
        return Ok(());
    }
    let now = context.environment.now;
    let lock = context.notes.lock()?;
    let change = |note: &mut Note| {
        let before = note.clone();
        if matches!(
            waiting.reason,
            PendingReason::Proposal | PendingReason::Imported
        ) {
            note.state = State::Active;
        }
        note.tags
            .retain(|tag| ![CONFLICT_TAG, GONE_TAG, UNREVIEWED_TAG].contains(&tag.as_str()));
        let replaced = replaced.map(|id| id.to_string());
        if let Some(replaced) = replaced.filter(|id| !note.supersedes.contains(id)) {
            note.supersedes.push(replaced);
        }
        if *note != before {
            note.updated_at = timestamp(now);
        }
    };
    let scope = match waiting.reason {
        PendingReason::Proposal if !replaces_local(context, path)? => Scope::Portable,
        _ => path.scope,
    };
    if waiting.reason == PendingReason::Proposal && path.scope != scope {
        context.notes.keep_proposal(&lock, path)?;
    }
    let stored = context.notes.move_changed(&lock, path, scope, change)?;
    seen(context, journal, &lock, &stored)
}

/// Returns whether a proposal replaces a machine-local note. The proposal then stays local, too.
fn replaces_local(context: &Context, path: NotePath) -> Result<bool, Error> {
    let note = context.notes.read(path)?.note();
    let ids = note.supersedes.iter().filter_map(|id| id.parse().ok());
    let mut places = ids.filter_map(|id| context.notes.find(id));
    Ok(places.any(|place| place.scope == Scope::MachineLocal))
}

/// Records that a person has seen a note in its current form.
fn seen(context: &Context, journal: &Journal, _lock: &Lock, stored: &Stored) -> Result<(), Error> {
    let bytes = context.notes.bytes(stored.path)?;
    journal.written_here(stored.path.id, &bytes, context.environment.now)?;
    Ok(())
}

/// Forgets a note, or restores one that an agent forgot.
fn reject(context: &Context, journal: &Journal, waiting: &PendingNote) -> Result<(), Error> {
    let path = waiting.entry.path;
    if waiting.reason != PendingReason::Forgotten {
        return forget::forget_notes(context, &[path]);
    }
    let lock = context.notes.lock()?;
    context.notes.restore(&lock, path)?;
    drop(lock);
    Ok(journal.remembered(path.id)?)
}

/// Marks the sources of a reflection, so that the next one skips them. Sources that have changed
/// since are not marked.
fn mark_sources(context: &Context, reflection: &Reflection) -> Result<Vec<NoteId>, Error> {
    let lock = context.notes.lock()?;
    let mut marked = Vec::new();
    for path in reflection::unchanged(&context.notes, reflection) {
        context.notes.update(&lock, path, reflection::take)?;
        marked.push(path.id);
    }
    Ok(marked)
}

/// Returns the pending notes of these projects, or of all if the list is empty.
pub fn waiting(
    context: &Context,
    index: &Index,
    journal: Option<&Journal>,
    projects: &[String],
) -> Result<Vec<PendingGroup>, Error> {
    let machine = context.machine_id();
    Ok(review::pending(
        index,
        &context.notes,
        journal,
        projects,
        &machine,
        context.environment.now,
    )?)
}

/// Returns only the pending notes that a person typed: by id, or by the name of a reflection.
pub fn named(
    index: &Index,
    batches: Vec<PendingGroup>,
    typed: &[String],
) -> Result<Vec<PendingGroup>, Error> {
    let mut named = Vec::new();
    for typed in typed {
        let wanted = typed.trim_start_matches('#').to_ascii_uppercase();
        let of_reflection = batches.iter().find(|batch| {
            let reflection = batch.reflection.as_ref();
            reflection.is_some_and(|reflection| reflection.is_meant_by(&wanted))
        });
        if let Some(batch) = of_reflection {
            named.extend(batch.notes.iter().map(|waiting| waiting.entry.id()));
            continue;
        }
        let id = Context::resolve(index, typed)?.id();
        let mut waiting = batches.iter().flat_map(|batch| &batch.notes);
        if !waiting.any(|waiting| waiting.entry.id() == id) {
            return Err(Error::failed(format!(
                "#{} does not wait for you",
                Context::short(index, id)
            ))
            .hint("anamnesis review --list"));
        }
        named.push(id);
    }
    let only = |mut batch: PendingGroup| {
        batch
            .notes
            .retain(|waiting| named.contains(&waiting.entry.id()));
        (!batch.notes.is_empty()).then_some(batch)
    };
    Ok(batches.into_iter().filter_map(only).collect())
}
