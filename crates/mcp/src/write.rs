//! Changes notes on behalf of tools: in the agent's name, within a session's limit, and only with
//! new content. For a note by the person or for all projects, a tool only proposes the change.

use anamnesis_app::{
    citation_check,
    context::{Context, TIMEOUT},
    spawn, write,
};
use anamnesis_note::{
    draft::{Draft, saved},
    id::NoteId,
    note,
};
use anamnesis_recall::render::inert_line;
use anamnesis_recall::{
    admission::{AdmissionError, NewNote},
    novelty::Novelty,
    similar::Similar,
};
use anamnesis_store::{
    index::{Entry, Index},
    journal::Journal,
    notes::Stored,
    project::Project,
};
use chrono::{DateTime, Utc};
use rmcp::schemars::JsonSchema;
use serde::Serialize;

use crate::{
    memory::{Memory, ToolError},
    note::{Named, Note},
};

/// The longest note file that a tool writes, in bytes. Everyone who opens a note pays for all of
/// it.
const MAX_LENGTH: usize = 64 * 1024;

/// How many similar notes an answer lists.
const MAX_SIMILAR: usize = 5;

/// The minimum similarity, from 0 to 1, of two notes that say nearly the same.
pub(crate) const NEARLY_THE_SAME: f64 = 0.5;

/// A written note and its similar notes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Written {
    /// Result, for the person
    pub(crate) said: String,
    #[serde(flatten)]
    pub(crate) note: Note,
    body: String,
    /// novel, extends or, with `force`, known
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    /// Similar notes; the one that led to `decision` is first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar: Vec<Like>,
}

/// A note similar to the written one
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Like {
    #[serde(flatten)]
    note: Named,
    /// Relations from the new note to consider for memory_connect
    consider: [&'static str; 2],
}

/// A change to notes by a tool.
pub(crate) struct Writing<'a> {
    memory: &'a Memory,
    pub(crate) context: Context,
    pub(crate) journal: Journal,
}

impl<'a> Writing<'a> {
    pub(crate) fn begin(memory: &'a Memory) -> Result<Self, ToolError> {
        Ok(Self {
            memory,
            context: memory.at_present(),
            // Without the journal, neither the limit nor forgotten texts could be checked.
            journal: Journal::open(memory.home(), TIMEOUT)?,
        })
    }

    /// Opens the index up to date, because existing and new notes must be found. After a long wait
    /// for other writers it is used as it is.
    pub(crate) fn index(&self) -> Result<Index, ToolError> {
        let context = &self.context;
        Ok(Index::in_step_or_as_is(
            &context.home,
            &context.notes,
            TIMEOUT,
        )?)
    }

    /// Writes a new note. `replaced` are the notes that it replaces.
    pub(crate) fn add(
        &self,
        index: Index,
        draft: Draft,
        replaced: &[Entry],
        is_forced: bool,
    ) -> Result<Written, ToolError> {
        let mut note = draft.note(self.context.machine_id(), self.now())?;
        refuse_long(&note, 0)?;
        let own = self.memory.project.as_ref().map(Project::all_keys);
        write::sign(&self.context, &mut note, replaced, &own.unwrap_or_default());
        let replaced: Vec<NoteId> = replaced.iter().map(Entry::id).collect();
        let novelty = self.judge(&index, &note, &replaced, is_forced)?;
        self.save(index, &note, Some(novelty))
    }

    /// Changes a note. Proposes the change instead if the note is not an agent's, or if
    /// `is_reaching` says that it would hide one that is not. Returns whether anything changed or
    /// would change.
    pub(crate) fn change(
        &self,
        index: Index,
        entry: &Entry,
        is_reaching: bool,
        change: impl Fn(&mut note::Note),
    ) -> Result<(Written, bool), ToolError> {
        // Checks the file, because the index may be out of date.
        let notes = &self.context.notes;
        let is_proposed = |note: &note::Note| write::is_note_out_of_reach(&self.context, note);
        if is_reaching || is_proposed(&notes.read(entry.path)?.note()) {
            return Ok((self.propose(index, entry, change)?, true));
        }
        // This index holds the write lock until it is dropped.
        drop(index);
        let lock = notes.lock()?;
        let before = notes.read(entry.path)?.note();
        if is_proposed(&before) || before.state == note::State::Forgotten {
            return Err(ToolError::new(
                "busy",
                format!("note {} was changed by another process", entry.id()),
                "retry",
            ));
        }
        let mut wanted = before.clone();
        change(&mut wanted);
        refuse_long(&wanted, before.render().len())?;
        if before.body != wanted.body {
            self.refuse_forgotten(&wanted.body)?;
        }
        let stored = notes.update(&lock, entry.path, change)?;
        drop(lock);
        let is_changed = stored.note() != before;
        if is_changed {
            spawn::work_soon(&self.context);
        }
        let mut written = self.written(&stored, None)?;
        written.said = inert_line(&if is_changed {
            format!("changed #{} \"{}\"", self.short(entry.id()), wanted.title)
        } else {
            format!("#{} is unchanged", self.short(entry.id()))
        });
        Ok((written, is_changed))
    }

    /// Proposes a change as a new note that replaces the current one once a person approves it.
    /// Nothing else changes.
    fn propose(
        &self,
        index: Index,
        entry: &Entry,
        change: impl Fn(&mut note::Note),
    ) -> Result<Written, ToolError> {
        let before = self.context.notes.read(entry.path)?.note();
        if before.state == note::State::Forgotten {
            return Err(ToolError::forgotten(entry.id()));
        }
        let mut changed = before.clone();
        change(&mut changed);
        refuse_long(&changed, before.render().len())?;
        // A proposal cannot pin itself.
        changed.pinned = before.pinned;
        if changed == before {
            return Err(ToolError::new(
                "persons",
                "only the person can pin this note; the call changes nothing else",
                format!("the person can: anamnesis pin {}", entry.id()),
            ));
        }
        let is_new_text = (&changed.title, &changed.body) != (&before.title, &before.body);
        let proposal = write::proposal(&self.context, changed);
        let novelty = if is_new_text {
            Some(self.judge(&index, &proposal, &[entry.id()], false)?)
        } else {
            None
        };
        self.save(index, &proposal, novelty)
    }

    /// Compares a note with the existing ones.
    fn judge(
        &self,
        index: &Index,
        note: &note::Note,
        replaced: &[NoteId],
        is_forced: bool,
    ) -> Result<Novelty, ToolError> {
        let wanted = NewNote {
            note,
            projects: &self.memory.keys(Some(&note.project))?,
            replaced,
            session: self.context.agent_session(),
            is_forced,
        };
        let admitted = write::admit(&self.context, Some(&self.journal), index, &wanted);
        admitted.map_err(|error| match error.cause() {
            Some(AdmissionError::Forgotten(at)) => forgotten(*at),
            Some(AdmissionError::Known(id)) => ToolError::new(
                "known",
                format!("{} already says this", name(index, *id)),
                "add what is new with memory_amend, or write only that; `force` writes the note anyway",
            ),
            Some(AdmissionError::Echo(id)) => ToolError::new(
                "echo",
                format!(
                    "most of this was injected into the session, mainly from {}",
                    name(index, *id)
                ),
                "write only what is new, or add it with memory_amend",
            ),
            Some(refusal @ AdmissionError::Type(_)) => ToolError::new(
                "bad_argument",
                refusal.to_string(),
                "omit the type, or pass semantic or procedural",
            ),
            Some(AdmissionError::Index(_)) | None => error.into(),
        })
    }

    /// Refuses a text that a person had forgotten.
    fn refuse_forgotten(&self, body: &str) -> Result<(), ToolError> {
        match self.journal.forgotten_at(body)? {
            Some(at) => Err(forgotten(at)),
            None => Ok(()),
        }
    }

    fn save(
        &self,
        index: Index,
        note: &note::Note,
        novelty: Option<Novelty>,
    ) -> Result<Written, ToolError> {
        // This index holds the write lock until it is dropped, and saving needs the lock.
        drop(index);
        let counted_to = Some(self.memory.counted_to.as_str());
        let stored = write::save(&self.context, Some(&self.journal), note, counted_to)?;
        spawn::work_soon(&self.context);
        let mut written = self.written(&stored, novelty)?;
        citation_check::look_at_new(&self.context, &self.journal);
        let short = self.short(note.id);
        let saved = inert_line(&saved(&stored.note(), &short));
        written.said = format!("{saved} · Undo: memory_forget {short}");
        Ok(written)
    }

    /// Returns a note as it is on disk.
    fn written(&self, stored: &Stored, novelty: Option<Novelty>) -> Result<Written, ToolError> {
        let id = stored.path.id;
        // The note is on disk, so an outdated index is not an error.
        let index = self.index().ok();
        let known = index
            .as_ref()
            .and_then(|index| index.get(id).ok().flatten());
        let entry = match known.filter(|entry| entry.stamp == stored.stamp) {
            Some(entry) => entry,
            None => entry_of(stored)?,
        };
        let similar = novelty.zip(index.as_ref());
        let similar = similar.map(|(novelty, index)| self.like(index, &entry, novelty));
        let similar = similar.and_then(Result::ok).unwrap_or_default();
        Ok(Written {
            said: String::new(),
            note: Note::from_entry(&entry, self.now()),
            body: crate::note::shown(stored),
            decision: novelty.map(Novelty::as_str),
            similar,
        })
    }

    /// Returns the notes similar to a new one, of its project and for all projects.
    fn like(&self, index: &Index, entry: &Entry, novelty: Novelty) -> Result<Vec<Like>, ToolError> {
        let mut projects = self.memory.keys(Some(&entry.project))?;
        projects.push(note::GLOBAL.to_owned());
        let mut ids: Vec<NoteId> = novelty.note().into_iter().collect();
        for other in Similar::new(index, &self.context.notes).like(entry.id(), NEARLY_THE_SAME)? {
            let is_near = index
                .get(other)?
                .is_some_and(|other| projects.contains(&other.project));
            if is_near && !ids.contains(&other) {
                ids.push(other);
            }
        }
        ids.truncate(MAX_SIMILAR);
        let likes = Named::all(index, &ids)?.into_iter();
        Ok(likes
            .map(|note| Like {
                note,
                consider: ["supersedes", "elaborates"],
            })
            .collect())
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.context.environment.now
    }

    pub(crate) fn short(&self, id: NoteId) -> String {
        let index = Index::open(self.memory.home()).ok();
        let short = index.and_then(|index| index.short_id(id).ok());
        short.unwrap_or_else(|| id.to_string())
    }
}

/// Finds the one note with this id that is not forgotten.
pub(crate) fn present(index: &Index, typed: &str) -> Result<Entry, ToolError> {
    let entry = Memory::resolve(index, typed)?;
    if entry.state == note::State::Forgotten {
        return Err(ToolError::forgotten(entry.id()));
    }
    Ok(entry)
}

/// Refuses a note that is too long, unless it was longer before.
fn refuse_long(note: &note::Note, before: usize) -> Result<(), ToolError> {
    let length = note.render().len();
    if length <= MAX_LENGTH.max(before) {
        return Ok(());
    }
    Err(ToolError::new(
        "too_long",
        format!("the note would be {length} bytes long"),
        format!("at most {MAX_LENGTH} bytes: shorten it, or write several notes"),
    ))
}

/// Returns the index entry for a note that is not indexed yet.
fn entry_of(stored: &Stored) -> Result<Entry, ToolError> {
    let entry = Index::in_memory([stored.clone()])?.get(stored.path.id)?;
    entry.ok_or_else(|| ToolError::internal("the note cannot be read back"))
}

/// Returns a note's id and title, for use in a sentence.
fn name(index: &Index, id: NoteId) -> String {
    let title = index.get(id).ok().flatten().map(|entry| entry.title);
    let title = crate::note::title(&title.unwrap_or_default());
    format!("{id} \"{title}\"")
}

fn forgotten(at: i64) -> ToolError {
    let day = DateTime::from_timestamp_millis(at).unwrap_or_default();
    ToolError::new(
        "forgotten",
        format!("the person forgot this text on {}", day.date_naive()),
        "do not write it; the person can: /memory-remember TEXT",
    )
}
