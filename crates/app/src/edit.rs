//! Changes notes: their text, by a person in an editor or by a command, and their fields.

use std::{borrow::Cow, io, path::PathBuf};

use anamnesis_note::{
    id::NoteId,
    merge::{self, without_conflict_markers},
    note::{Note, NoteFile, Scope, State, timestamp},
};
use anamnesis_store::{
    fs::{file, home, lock::Lock},
    index::{Entry, Index},
    notes::{self, NotePath, Stored},
};
use anamnesis_text::{privacy, redact::redact};
use serde::Serialize;
use ulid::Ulid;

use crate::{
    Error, bulk_change::BulkChange, context::Context, project::check_key, sync, write::refuse_agent,
};

/// The name of the change that moves notes to another project.
pub const MOVE: &str = "move";

/// Finds the note to edit, and checks that the caller may. `is_raw`: a file that cannot be parsed is
/// found, too.
pub fn target(
    context: &Context,
    index: &Index,
    typed: &str,
    is_raw: bool,
) -> Result<NotePath, Error> {
    let path = match Context::resolve(index, typed) {
        Ok(_) => {
            let entry = Context::present(index, typed)?;
            refuse_agent(context, &entry, "change")?;
            entry.path
        }
        // A file that cannot be parsed is not in the index, but its name contains the id.
        Err(error) => {
            let id = typed.trim_start_matches('#').to_ascii_uppercase();
            let id: Option<NoteId> = id.parse().ok().filter(|_| is_raw);
            id.and_then(|id| context.notes.find(id)).ok_or(error)?
        }
    };
    if is_raw {
        context.check_person("edit a file without checks")?;
    }
    Ok(path)
}

/// A note's file while a person edits it.
pub struct EditedFile {
    path: NotePath,
    before: Vec<u8>,
    /// The parsed file; `None` if it is saved unchecked.
    note: Option<NoteFile>,
}

impl EditedFile {
    /// Reads a note's file. With `is_raw`, it is neither parsed now nor when it is saved.
    pub fn open(context: &Context, path: NotePath, is_raw: bool) -> Result<Self, Error> {
        Ok(Self {
            path,
            before: context.notes.bytes(path)?,
            note: if is_raw {
                None
            } else {
                Some(context.notes.read(path)?.file)
            },
        })
    }

    /// The text to edit.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.before)
    }

    /// Saves the edited text, without secrets and private parts. A change of the file since it was
    /// read is merged. Returns `None` if nothing changed.
    pub fn save(&self, context: &Context, text: &str) -> Result<Option<Stored>, Error> {
        let mut text = redact(text).text.into_owned();
        if let Some(old) = &self.note {
            text = checked(context, self.path, text, old.note())?;
        }
        if text.as_bytes() == self.before {
            return Ok(None);
        }
        sync::commit_earlier(context, [self.path.id]);
        let lock = context.notes.lock()?;
        // A sync may have moved the note.
        let path = match context.notes.stamp(self.path) {
            Some(_) => self.path,
            None => context.notes.find(self.path.id).unwrap_or(self.path),
        };
        let current = context.notes.bytes(path)?;
        let bytes = self.merged(path, text.into_bytes(), &current)?;
        if bytes == current {
            return Ok(None);
        }
        Ok(Some(context.notes.overwrite(&lock, path, &bytes)?))
    }

    /// Merges the edited text with the current file, if that has changed.
    fn merged(&self, path: NotePath, text: Vec<u8>, current: &[u8]) -> Result<Vec<u8>, Error> {
        if current == self.before {
            return Ok(text);
        }
        let merged = merge::merge(path.id, Some(&self.before), &text, current);
        let is_forgotten = NoteFile::parse(&merged.bytes, path.id)
            .is_ok_and(|file| file.note().state == State::Forgotten);
        if is_forgotten || merged.conflict.is_some() || merged.unreadable.is_some() {
            return Err(Error::failed(format!(
                "{path} was changed in the same place meanwhile; nothing was written"
            ))
            .hint("edit it again"));
        }
        Ok(merged.bytes)
    }
}

/// Keeps a text that a person typed and that could not be saved, without secrets and private parts.
/// Returns its file.
pub fn keep_typed(context: &Context, text: &str) -> io::Result<PathBuf> {
    let folder = context.home.quarantine();
    home::ensure_folder(&folder).map_err(io::Error::other)?;
    let name = NoteId::generate(context.environment.now);
    let path = folder.join(format!("edit-{name}.md"));
    let text = redact(&privacy::strip(text).text).text.into_owned();
    file::write_atomic(&path, text.as_bytes())?;
    Ok(path)
}

/// Parses an edited file, and returns it without private parts and with its new time.
fn checked(context: &Context, path: NotePath, text: String, old: &Note) -> Result<String, Error> {
    let file = NoteFile::parse(text.as_bytes(), path.id).map_err(|error| {
        Error::failed(format!("{path} was not changed: {error}"))
            .because(error)
            .hint("edit it again; --raw writes it unchecked")
    })?;
    let mut note = file.note().clone();
    note.body = privacy::strip(&note.body).text.into_owned();
    let changed = note.title != old.title || note.body != old.body;
    if changed && note.updated_at == old.updated_at {
        note.updated_at = timestamp(context.environment.now);
    }
    let text = file.rewrite(&note).unwrap_or(text);
    Ok(without_conflict_markers(&text).into_owned())
}

/// Records and commits an edit. Returns the change that `undo` reverts. The note is already changed,
/// so errors are logged.
pub fn commit(context: &Context, stored: &Stored, act: &str) -> Option<Ulid> {
    let id = stored.path.id;
    if let Some(journal) = context.journal().filter(|_| !context.environment.is_agent) {
        let now = context.environment.now;
        let bytes = context.notes.bytes(stored.path).map_err(Error::from);
        let recorded = bytes.and_then(|bytes| Ok(journal.written_here(id, &bytes, now)?));
        context.log_error(act, recorded);
    }
    sync::commit(context, act, [id])
}

/// The output of a change of a note's fields.
#[derive(Debug, Serialize)]
pub struct ChangedNote {
    /// The note's id.
    pub id: String,
    /// Whether anything changed.
    pub changed: bool,
}

/// The place of a note after a move.
#[derive(Debug, Serialize)]
pub struct MovedNote {
    id: String,
    project: String,
    scope: Scope,
}

impl From<&Note> for MovedNote {
    fn from(note: &Note) -> Self {
        Self {
            id: note.id.to_string(),
            project: note.project.clone(),
            scope: note.scope,
        }
    }
}

/// A note whose fields were changed.
pub struct MarkedNote {
    /// The note before the change.
    pub entry: Entry,
    /// The shortest unique id.
    pub short: String,
    /// The note now.
    pub stored: Stored,
    /// The change that `undo` reverts; `None` if no syncing note was touched.
    pub batch: Option<Ulid>,
}

impl MarkedNote {
    /// Returns whether the note changed at all.
    pub fn is_changed(&self) -> bool {
        self.stored.stamp != self.entry.stamp
    }
}

/// Changes a note, commits the change and brings the index up to date.
pub(crate) fn apply(
    context: &Context,
    index: Index,
    entry: Entry,
    act: &str,
    change: impl FnOnce(&Lock) -> Result<Stored, notes::Error>,
) -> Result<MarkedNote, Error> {
    let short = Context::short(&index, entry.id());
    // The open index holds the write lock, which comes after that of the notes.
    drop(index);
    sync::commit_earlier(context, [entry.id()]);
    let lock = context.notes.lock()?;
    let stored = change(&lock)?;
    drop(lock);
    let batch = sync::commit(context, act, [entry.id()]);
    context.index()?;
    Ok(MarkedNote {
        entry,
        short,
        stored,
        batch,
    })
}

/// Changes fields of a note, such as pinned or muted.
pub fn mark(
    context: &Context,
    typed: &str,
    change: impl FnOnce(&mut Note),
) -> Result<MarkedNote, Error> {
    let index = context.index()?;
    let entry = Context::resolve(&index, typed)?;
    refuse_agent(context, &entry, "mark")?;
    if matches!(entry.state, State::Forgotten | State::Proposed) {
        let short = Context::short(&index, entry.id());
        return Err(Error::failed(format!("#{short} is {}", entry.state)));
    }
    let path = entry.path;
    apply(context, index, entry, "mark", |lock| {
        context.notes.update(lock, path, change)
    })
}

/// Changes fields of several notes as one change. Forgotten notes and proposals are left out. Returns
/// how many notes changed, and the change that `undo` reverts.
pub fn mark_many(
    context: &Context,
    ids: &[NoteId],
    verb: &'static str,
    change: impl Fn(&mut Note),
) -> Result<(usize, Option<Ulid>), Error> {
    let index = context.index()?;
    let mut batch = BulkChange::new(context, verb);
    let mut changed = 0;
    for id in ids {
        let Some(entry) = index.get(*id)? else {
            continue;
        };
        if matches!(entry.state, State::Forgotten | State::Proposed) {
            continue;
        }
        refuse_agent(context, &entry, verb)?;
        let stored = context.notes.read(entry.path)?;
        let mut note = stored.note();
        change(&mut note);
        if note != stored.note() {
            batch.change(&stored, &note)?;
            changed += 1;
        }
    }
    // The open index holds the write lock, which comes after that of the notes.
    drop(index);
    if changed == 0 {
        return Ok((0, None));
    }
    let done = batch.apply()?;
    if verb == MOVE
        && let Some(journal) = context.journal()
    {
        journal.know(ids.iter().copied())?;
    }
    Ok((changed, done.batch))
}

/// Moves a note to another project or scope.
pub fn move_note(
    context: &Context,
    typed: &str,
    project: Option<&str>,
    scope: Option<Scope>,
) -> Result<MarkedNote, Error> {
    let is_elsewhere = |key: &str| {
        let own = context.project_to_write().all_keys();
        !own.iter().any(|own| own == key)
    };
    if context.environment.is_agent && project.is_some_and(is_elsewhere) {
        return Err(Error::failed(
            "only a person can move a note to another project",
        ));
    }
    let index = context.index()?;
    if let Some(key) = project {
        check_key(context, &index, key)?;
    }
    let entry = Context::resolve(&index, typed)?;
    refuse_agent(context, &entry, "move")?;
    let (id, path) = (entry.id(), entry.path);
    let moved = apply(context, index, entry, MOVE, |lock| {
        let stored = context.notes.update(lock, path, |note| {
            if let Some(project) = project {
                project.clone_into(&mut note.project);
            }
        })?;
        match scope {
            Some(scope) => context.notes.set_scope(lock, stored.path, scope),
            None => Ok(stored),
        }
    })?;
    if let Some(journal) = context.journal() {
        journal.know([id])?;
    }
    Ok(moved)
}
