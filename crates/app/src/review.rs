//! The person's decisions about pending notes, in a terminal or in a dialog of the client.
//!
//! Each decision is one commit, so that `undo` can revert it. No tool or agent can call this.

use std::collections::BTreeSet;

use anamnesis_distill::reflection;
use anamnesis_note::{
    id::NoteId,
    merge::CONFLICT_TAG,
    note::{Note, NoteFile, Scope, State, UNREVIEWED_TAG, parse_timestamp, timestamp},
    project_key,
};
use anamnesis_recall::{
    novelty::{Novelty, NoveltyScope, novelty},
    review::{self, PendingGroup, PendingNote, PendingReason},
};
use anamnesis_session::claude_memory::GONE_TAG;
use anamnesis_store::{
    index::{Entry, Filter, Index},
    journal::{Journal, Reflection},
    notes::NotePath,
};
use anamnesis_sync::history::APPROVAL;
use serde::Serialize;
use ulid::Ulid;

use crate::{
    Error,
    context::Context,
    feedback, forget,
    format::{ago, count, number, time},
    ops::note,
    sync,
};

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
    sync::commit_all(context)?;
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
    let now = context.environment.now;
    let lock = context.notes.lock()?;
    if waiting.reason == PendingReason::Stale && replaced.is_none() {
        let verify = |note: &mut Note| feedback::verify_now(context, note);
        context.notes.update(&lock, path, verify)?;
        return Ok(());
    }
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
    // The person has seen the note in this form.
    let bytes = context.notes.bytes(stored.path)?;
    Ok(journal.written_here(path.id, &bytes, now)?)
}

/// Returns whether a proposal replaces a machine-local note. The proposal then stays local, too.
fn replaces_local(context: &Context, path: NotePath) -> Result<bool, Error> {
    let note = context.notes.read(path)?.note();
    let ids = note.supersedes.iter().filter_map(|id| id.parse().ok());
    let mut places = ids.filter_map(|id| context.notes.find(id));
    Ok(places.any(|place| place.scope == Scope::MachineLocal))
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
    let now = context.environment.now;
    let pending = review::pending(index, &context.notes, journal, &machine, projects, now)?;
    Ok(pending)
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
            return Err(
                Error::failed(format!("#{} is not pending", Context::short(index, id)))
                    .hint("anamnesis review --list"),
            );
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

/// The details that a person needs to decide about a pending note.
pub struct PendingDetails {
    /// The note in the index, with its title even if it is forgotten.
    pub entry: Entry,
    /// The note; `None` if its text is no longer kept.
    pub note: Option<Note>,
    /// The note that it changes, if it changes one.
    pub before: Option<Note>,
    /// The notes that it replaces.
    pub replaced: Vec<NoteId>,
    /// The other versions of a conflict.
    pub beside: Vec<NoteId>,
    /// The notes that it was made from.
    pub sources: Vec<NoteId>,
    /// A similar note, and in words how it is similar.
    pub similar: Option<(&'static str, NoteId)>,
    /// The note that an approval may replace.
    pub replaceable: Option<NoteId>,
}

impl PendingDetails {
    /// Collects the details of a pending note of a group.
    pub fn load(
        context: &Context,
        index: &Index,
        waiting: &PendingNote,
        group: &PendingGroup,
    ) -> Result<Self, Error> {
        let read = |id: NoteId| context.indexed_note(index, id);
        let entry = shown_entry(context, waiting);
        let is_forgotten = waiting.reason == PendingReason::Forgotten;
        let note = if is_forgotten {
            trashed(context, entry.id())
        } else {
            Some(context.notes.read(entry.path)?.note())
        };
        let mut details = Self {
            entry,
            note: None,
            before: None,
            replaced: Vec::new(),
            beside: Vec::new(),
            sources: Vec::new(),
            similar: None,
            replaceable: None,
        };
        let Some(note) = note else {
            return Ok(details);
        };
        details.replaced = ids(note.supersedes.iter().map(String::as_str));
        if waiting.reason == PendingReason::Conflict {
            details.beside = originals(&note);
        }
        let mut before = details.replaced.iter().chain(&details.beside);
        details.before = before.find_map(|id| read(*id));
        details.sources = if let Some(reflection) = &group.reflection {
            reflection.sources.keys().copied().collect()
        } else {
            let session = note.session.as_deref().map(NoteId::of_session);
            session.filter(|id| *id != note.id).into_iter().collect()
        };
        let mut like = details.beside.first().copied();
        if details.replaced.is_empty() && like.is_none() && !is_forgotten {
            let among = NoveltyScope {
                projects: std::slice::from_ref(&note.project),
                replaced: &[],
                given: BTreeSet::new(),
            };
            details.similar = match novelty(index, &note, &among, read)? {
                Novelty::Known(id) => Some(("says what", id)),
                Novelty::Extends(id) => Some(("adds to", id)),
                Novelty::Novel | Novelty::Echo(_) => None,
            };
            like = details.similar.map(|(_, id)| id);
        }
        details.replaceable = like.filter(|id| {
            let entry = index.get(*id).ok().flatten();
            entry.is_some_and(|entry| entry.state == State::Active)
        });
        details.note = Some(note);
        Ok(details)
    }
}

fn ids<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<NoteId> {
    texts.filter_map(|id| id.parse().ok()).collect()
}

/// A tombstone has no title, so the title is read from the trash.
pub fn shown_entry(context: &Context, waiting: &PendingNote) -> Entry {
    let mut entry = waiting.entry.clone();
    if waiting.reason == PendingReason::Forgotten
        && let Some(before) = trashed(context, entry.id())
    {
        entry.title = before.title;
    }
    entry
}

/// Returns a forgotten note as it is in the trash.
fn trashed(context: &Context, id: NoteId) -> Option<Note> {
    let bytes = context.notes.trashed(id)?;
    let file = NoteFile::parse(&bytes, id).ok()?;
    Some(file.into_note())
}

/// The heading of a group.
pub fn heading(context: &Context, batch: &PendingGroup) -> String {
    let now = context.environment.now;
    let notes = batch.notes.len();
    if let Some(reflection) = &batch.reflection {
        return format!(
            "reflection, {}, {}: {} from {} · {}",
            ago(time(reflection.at), now),
            reflection.project,
            count(notes, "note"),
            count(reflection.sources.len(), "session"),
            reflection.short_key()
        );
    }
    let Some(first) = batch.notes.first() else {
        return String::new();
    };
    let place = project_key::shown(&first.entry.project);
    let of = match first.reason {
        PendingReason::Proposal | PendingReason::ByAgent if batch.session.is_some() => {
            let times = batch.notes.iter();
            let newest = times
                .filter_map(|waiting| parse_timestamp(&waiting.entry.created_at))
                .max();
            let age = newest.map_or_else(String::new, |at| format!(" {}", ago(at, now)));
            let projects = batch.notes.iter().map(|waiting| &waiting.entry.project);
            let projects: BTreeSet<&String> = projects.collect();
            match projects.len() {
                1 => format!("from a session{age}, {place}"),
                many => format!("from a session{age}, {many} projects"),
            }
        }
        PendingReason::Proposal | PendingReason::ByAgent => format!("for {place}"),
        PendingReason::Imported => format!("imported, for {place}"),
        PendingReason::Conflict => "two machines changed one note".to_owned(),
        PendingReason::Foreign => {
            "for all projects, by no command, sync or import of yours".to_owned()
        }
        PendingReason::Orphaned => {
            "Claude Code deleted the memory file; the copy is in use".to_owned()
        }
        PendingReason::Forgotten if first.is_forgotten_by_person => "forgotten by you".to_owned(),
        PendingReason::Forgotten => "forgotten by Claude".to_owned(),
        PendingReason::Stale => format!("may be outdated, {place}"),
    };
    if notes == 1 {
        of
    } else {
        format!("{of}: {}", count(notes, "note"))
    }
}

/// Returns the labels for approving and rejecting a note, for buttons and keys.
pub fn choices(reason: PendingReason) -> [&'static str; 2] {
    match reason {
        PendingReason::Proposal | PendingReason::Imported => ["Approve", "Reject"],
        PendingReason::Conflict => ["Keep both texts", "Forget this text"],
        PendingReason::ByAgent | PendingReason::Foreign | PendingReason::Orphaned => {
            ["Mark as seen", "Forget"]
        }
        PendingReason::Forgotten => ["Leave it forgotten", "Bring it back"],
        PendingReason::Stale => ["Still right", "Forget"],
    }
}

/// The reason in one word.
pub fn word(wait: PendingReason) -> &'static str {
    match wait {
        PendingReason::Proposal => "proposal",
        PendingReason::Imported => "imported",
        PendingReason::Conflict => "conflict",
        PendingReason::ByAgent => "in use",
        PendingReason::Foreign => "foreign",
        PendingReason::Orphaned => "file gone",
        PendingReason::Forgotten => "forgotten",
        PendingReason::Stale => "stale",
    }
}

/// Counts the pending notes of each kind.
pub fn counts(batches: &[PendingGroup]) -> String {
    let notes = || batches.iter().flat_map(|batch| &batch.notes);
    let of = |wait| notes().filter(|waiting| waiting.reason == wait).count();
    let by_person = notes()
        .filter(|waiting| waiting.is_forgotten_by_person)
        .count();
    let parts = [
        (of(PendingReason::Proposal), "proposal"),
        (of(PendingReason::Imported), "note imported"),
        (of(PendingReason::Conflict), "conflict"),
        (of(PendingReason::ByAgent), "note by Claude"),
        (of(PendingReason::Foreign), "note from elsewhere"),
        (of(PendingReason::Orphaned), "copy of a deleted memory file"),
        (
            of(PendingReason::Forgotten) - by_person,
            "note that Claude forgot",
        ),
        (by_person, "note that you forgot in a session"),
        (of(PendingReason::Stale), "note that may be outdated"),
    ];
    let plural = |amount: usize, thing: &str| match thing.split_once(' ') {
        Some(("copy", rest)) if amount != 1 => format!("{} copies {rest}", number(amount)),
        Some((noun, rest)) => format!("{} {rest}", count(amount, noun)),
        None => count(amount, thing),
    };
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, thing)| plural(amount, thing))
        .collect();
    parts.join(", ")
}
/// Returns the notes that the copy of a conflict was split from.
fn originals(copy: &Note) -> Vec<NoteId> {
    let targets = copy.links.iter();
    ids(targets.filter_map(|link| link.strip_prefix("related-to ")))
}

/// Returns the other versions of a note that two machines changed.
pub fn other_versions(context: &Context, index: &Index, note: &Note) -> Result<Vec<NoteId>, Error> {
    if note.has_tag(CONFLICT_TAG) {
        return Ok(originals(note));
    }
    if index.count_conflicts()? == 0 {
        return Ok(Vec::new());
    }
    let filter = Filter {
        tag: Some(CONFLICT_TAG.to_owned()),
        ..Filter::default()
    };
    let is_copy = |copy: &Entry| {
        let stored = context.notes.read(copy.path);
        stored.is_ok_and(|stored| originals(&stored.note()).contains(&note.id))
    };
    let copies = index.list(&filter, usize::MAX)?;
    Ok(copies
        .iter()
        .filter(|copy| is_copy(copy))
        .map(Entry::id)
        .collect())
}
/// Pending notes, for scripts.
#[derive(Debug, Serialize)]
pub struct PendingList {
    groups: Vec<PendingNotes>,
    total: usize,
    held: Option<String>,
    withheld: Vec<String>,
}

#[derive(Debug, Serialize)]
struct PendingNotes {
    reflection: Option<String>,
    session: Option<String>,
    sources: Option<Vec<NoteId>>,
    notes: Vec<ListedNote>,
}

#[derive(Debug, Serialize)]
struct ListedNote {
    #[serde(flatten)]
    note: note::Note,
    reason: &'static str,
}

impl PendingList {
    /// Lists groups of pending notes, with what a sync holds back and what is not committed.
    pub fn new(
        context: &Context,
        groups: &[PendingGroup],
        total: usize,
        held: Option<String>,
        withheld: Vec<String>,
    ) -> Self {
        let listed = |pending: &PendingNote| ListedNote {
            note: note::Note::new(context, pending.entry.clone()),
            reason: word(pending.reason),
        };
        let groups = groups.iter().map(|group| {
            let reflection = group.reflection.as_ref();
            PendingNotes {
                reflection: reflection.map(|it| it.short_key().to_owned()),
                session: group.session.clone(),
                sources: reflection.map(|it| it.sources.keys().copied().collect()),
                notes: group.notes.iter().map(listed).collect(),
            }
        });
        Self {
            groups: groups.collect(),
            total,
            held,
            withheld,
        }
    }
}
