//! Writes, changes and proposes notes, in the name of the person or the agent who asks.
//!
//! An agent writes within a session's limit and only new content. Its change of a note by the person or
//! for all projects becomes a proposal.

use anamnesis_note::{
    agent_policy,
    draft::{Draft, saved},
    id::NoteId,
    note::{self, State},
};
use anamnesis_recall::{novelty::Novelty, similar::Similar};
use anamnesis_store::{
    index::{Entry, Index},
    notes::Stored,
};
use anamnesis_text::clean::one_line;
use schemars::JsonSchema;
use serde::Serialize;
use ulid::Ulid;

use super::note::{Named, Note, inert_body};
use crate::{
    Error, citation_check,
    context::Context,
    edit, format, project,
    sync::{self, short_change},
    write,
};

/// The longest note file that an agent writes, in bytes. Everyone who opens a note pays for all of it.
const MAX_LENGTH: usize = 64 * 1024;

/// How many similar notes an agent is shown.
const MAX_SIMILAR: usize = 5;

/// The minimum similarity, from 0 to 1, of two notes that say nearly the same.
pub const NEARLY_THE_SAME: f64 = 0.5;

/// A note that was written, changed or proposed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WrittenNote {
    /// Result, for the person
    pub said: String,
    /// The note as it is on disk.
    #[serde(flatten)]
    pub note: Note,
    body: String,
    /// novel, extends or, with `force`, known
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    /// Similar notes; the one that led to `decision` is first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar: Vec<SimilarNote>,
    /// The shortest unique id.
    #[serde(skip)]
    pub short: String,
    /// Whether anything changed, or would if the proposal is approved.
    #[serde(skip)]
    pub is_changed: bool,
    /// Whether it is a new note, which proposes the change of another one.
    #[serde(skip)]
    pub is_proposed: bool,
    /// The change that `undo` reverts; `None` if no syncing note was touched.
    #[serde(skip)]
    pub batch: Option<Ulid>,
    /// Why the index could not be updated. The note is on disk, so this is not a failure.
    #[serde(skip)]
    pub index_failure: Option<Error>,
}

/// A note similar to the written one
#[derive(Debug, Serialize, JsonSchema)]
struct SimilarNote {
    #[serde(flatten)]
    note: Named,
    /// Relations from the new note to consider for memory_connect
    consider: [&'static str; 2],
}

/// Writes a new note, which replaces these notes. `is_forced`: even if another one says the same.
pub fn write(
    context: &Context,
    index: Index,
    draft: Draft,
    act: &str,
    replaced: &[Entry],
    is_forced: bool,
) -> Result<WrittenNote, Error> {
    let mut note = draft.note(context.machine_id(), context.environment.now)?;
    refuse_long(context, &note, 0)?;
    if context.tool.is_none() {
        project::check_key(context, &index, &note.project)?;
    }
    let own = context.project_to_write().all_keys();
    write::sign(context, &mut note, replaced, &own);
    let replaced: Vec<NoteId> = replaced.iter().map(Entry::id).collect();
    let journal = context.journal_to_write()?;
    let journal = journal.as_ref();
    let novelty = write::admit(context, journal, &index, &note, &replaced, is_forced)?;
    save(context, index, &note, act, Some(novelty))
}

/// Changes a note, or proposes the change if the caller may not make it. `is_reaching`: the change
/// hides a note that is not the caller's.
pub fn change(
    context: &Context,
    index: Index,
    entry: &Entry,
    act: &str,
    is_reaching: bool,
    change: impl Fn(&mut note::Note),
) -> Result<WrittenNote, Error> {
    // Checks the file, because the index may be out of date.
    let before = context.notes.read(entry.path)?.note();
    let short = Context::short(&index, entry.id());
    let mut changed = before.clone();
    change(&mut changed);
    refuse_long(context, &changed, before.render().len())?;
    let is_agent = context.environment.is_agent;
    let relinked = note::Note {
        links: changed.links.clone(),
        ..before.clone()
    };
    if relinked != changed && agent_policy::is_record(before.note_type, before.is_by_agent()) {
        write::refuse_agent(context, entry, "change")?;
    }
    if is_agent && (is_reaching || write::is_note_out_of_reach(context, &before)) {
        // A proposal cannot pin itself.
        let is_pin = changed.pinned != before.pinned;
        changed.pinned = before.pinned;
        if changed == before && is_pin {
            let refused = "only the person can pin this note; the call changes nothing else";
            return Err(Error::failed(refused)
                .code("persons")
                .hint(format!("anamnesis pin {short}")));
        }
        if changed == before {
            return Err(Error::failed(format!("#{short} is like that already")));
        }
        return propose(context, index, &before, changed, act);
    }
    if is_agent && before.body != changed.body {
        let forgotten = context.journal_to_write()?;
        let forgotten = forgotten.map(|journal| journal.forgotten_at(&changed.body));
        if let Some(at) = forgotten.transpose()?.flatten() {
            return Err(write::forgotten_text(at));
        }
    }
    // The open index holds the write lock, which comes after that of the notes.
    drop(index);
    sync::commit_earlier(context, [entry.id()]);
    let lock = context.notes.lock()?;
    let current = context.notes.read(entry.path)?;
    let now = current.note();
    if now.state == State::Forgotten || is_agent && write::is_note_out_of_reach(context, &now) {
        let busy = format!("#{short} was changed by another process");
        return Err(Error::failed(busy).code("busy").hint("retry"));
    }
    let stored = context.notes.update(&lock, entry.path, change)?;
    drop(lock);
    let is_changed = stored.stamp != current.stamp;
    let is_edited = is_changed && (&before.title, &before.body) != (&changed.title, &changed.body);
    let batch = if is_edited {
        Some(edit::commit(context, &stored, act))
    } else {
        is_changed.then(|| sync::commit(context, act, [entry.id()]))
    };
    let mut written = written(context, &stored, None)?;
    written.is_changed = is_changed;
    written.batch = batch.flatten();
    let undo = written.batch.map_or_else(String::new, |batch| {
        format!("\nUndo: anamnesis undo {}", short_change(batch))
    });
    written.said = if is_changed {
        let title = one_line(&stored.note().title);
        format!("changed #{} \"{title}\"{undo}", written.short)
    } else {
        format!("#{} is unchanged", written.short)
    };
    Ok(written)
}

/// Proposes a change as a new note that replaces the current one once a person approves it. Nothing
/// else changes.
fn propose(
    context: &Context,
    index: Index,
    before: &note::Note,
    changed: note::Note,
    act: &str,
) -> Result<WrittenNote, Error> {
    let is_new_text = (&changed.title, &changed.body) != (&before.title, &before.body);
    let (machine, now) = (context.machine_id(), context.environment.now);
    let (id, session) = (NoteId::generate(now), context.agent_session());
    let proposal = agent_policy::proposal(changed, id, machine, session, now);
    let novelty = if is_new_text {
        let journal = context.journal_to_write()?;
        let (journal, replaced) = (journal.as_ref(), [before.id]);
        Some(write::admit(
            context, journal, &index, &proposal, &replaced, false,
        )?)
    } else {
        None
    };
    let mut written = save(context, index, &proposal, act, novelty)?;
    written.is_proposed = true;
    Ok(written)
}

/// Saves and commits a new note.
fn save(
    context: &Context,
    index: Index,
    note: &note::Note,
    act: &str,
    novelty: Option<Novelty>,
) -> Result<WrittenNote, Error> {
    // The open index holds the write lock, which saving needs.
    drop(index);
    let journal = context.journal_to_write()?;
    let stored = write::save(context, journal.as_ref(), note)?;
    let batch = sync::commit(context, act, [note.id]);
    let mut written = written(context, &stored, novelty)?;
    written.batch = batch;
    if let Some(journal) = &journal {
        citation_check::look_at_new(context, journal);
    }
    let short = &written.short;
    let said = saved(&stored.note(), short);
    let remark = Index::open(&context.home).ok().zip(novelty);
    let remark = remark.and_then(|(index, novelty)| write::remark_of(&index, short, novelty));
    let remark = remark.map_or_else(String::new, |remark| format!("\n{remark}"));
    written.said = format!("{said}{remark}\nUndo: anamnesis forget {short}");
    Ok(written)
}

/// Returns a note as it is on disk.
fn written(
    context: &Context,
    stored: &Stored,
    novelty: Option<Novelty>,
) -> Result<WrittenNote, Error> {
    let id = stored.path.id;
    let (index, index_failure) = match context.index() {
        Ok(index) => (Some(index), None),
        Err(failure) => (None, Some(failure)),
    };
    let indexed = index.as_ref().and_then(|index| index.get(id).ok()?);
    let alone = || Ok(Index::in_memory([stored.clone()])?.get(id)?);
    let entry = indexed.filter(|entry| entry.stamp == stored.stamp);
    let entry = entry.map_or_else(alone, |entry| Ok::<_, Error>(Some(entry)))?;
    let entry = entry.ok_or_else(|| Error::failed("the note cannot be read back"))?;
    let similar = novelty.zip(index.as_ref());
    let similar = similar.filter(|_| context.environment.is_agent);
    let similar = similar.and_then(|(novelty, index)| like(context, index, &entry, novelty).ok());
    let short = index.as_ref();
    Ok(WrittenNote {
        said: String::new(),
        short: short.map_or_else(|| id.short(), |index| Context::short(index, id)),
        note: Note::new(context, entry),
        body: if context.environment.is_agent {
            inert_body(stored)
        } else {
            stored.note().body
        },
        decision: novelty.map(Novelty::as_str),
        similar: similar.unwrap_or_default(),
        is_changed: true,
        is_proposed: false,
        batch: None,
        index_failure,
    })
}

/// Returns the notes similar to a new one, of its project and for all projects.
fn like(
    context: &Context,
    index: &Index,
    entry: &Entry,
    novelty: Novelty,
) -> Result<Vec<SimilarNote>, Error> {
    let mut projects = context.keys(Some(&entry.project))?;
    projects.push(note::GLOBAL.to_owned());
    let mut ids: Vec<NoteId> = novelty.note().into_iter().collect();
    for other in Similar::new(index, &context.notes).like(entry.id(), NEARLY_THE_SAME)? {
        let other = index.get(other)?;
        let other = other.filter(|other| projects.contains(&other.project));
        ids.extend(other.map(|other| other.id()).filter(|id| !ids.contains(id)));
    }
    ids.truncate(MAX_SIMILAR);
    let named = Named::all(index, &ids)?.into_iter();
    let similar = named.map(|note| SimilarNote {
        note,
        consider: ["supersedes", "elaborates"],
    });
    Ok(similar.collect())
}

/// Refuses an agent's note that is too long, unless it was longer before.
fn refuse_long(context: &Context, note: &note::Note, before: usize) -> Result<(), Error> {
    let length = note.render().len();
    if !context.environment.is_agent || length <= MAX_LENGTH.max(before) {
        return Ok(());
    }
    let long = format!("the note would be {} bytes long", format::number(length));
    Err(Error::failed(long).code("too_long").hint(format!(
        "at most {MAX_LENGTH} bytes: shorten it, or write several notes"
    )))
}
