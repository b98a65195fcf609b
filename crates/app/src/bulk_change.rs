//! A change: the edits that one command makes, as one commit that one `undo` reverts.
//!
//! The edits are computed from the notes as they were read, and can be shown first. If a note has
//! changed by the time of writing, nothing is written. Earlier uncommitted edits get their own
//! commit, so that the undo restores the exact bytes.

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteFile, Scope},
};
use anamnesis_store::{
    fs::lock::Lock,
    journal::Journal,
    notes::{NotePath, Stored},
};
use serde::Serialize;
use ulid::Ulid;

use crate::{
    Error,
    context::{Context, TIMEOUT},
    pause::Off,
    sync,
};

/// A file and its new contents.
struct Edit {
    path: NotePath,
    before: Vec<u8>,
    after: String,
}

/// The edits that a command is going to make.
pub struct BulkChange<'a> {
    /// The store to change.
    pub context: &'a Context,
    /// The command's name, for commits and messages.
    pub verb: &'static str,
    edits: Vec<Edit>,
    made: Vec<Note>,
}

impl<'a> BulkChange<'a> {
    /// Creates an empty change for a command.
    pub fn new(context: &'a Context, verb: &'static str) -> Self {
        Self {
            context,
            verb,
            edits: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Adds an edit of a note. Only the lines of changed keys are rewritten.
    pub fn change(&mut self, stored: &Stored, after: &Note) -> Result<(), Error> {
        let after = Note {
            // The folder decides the scope, so the scope in the file is left alone.
            scope: stored.file.note().scope,
            ..after.clone()
        };
        let before = self.read(stored)?;
        let path = stored.path;
        let file = NoteFile::parse(&before, path.id).map_err(Error::prefixed(path))?;
        let after = file.rewrite(&after).map_err(Error::prefixed(path))?;
        self.edits.push(Edit {
            path,
            before,
            after,
        });
        Ok(())
    }

    /// Adds a replacement of a file's full text.
    pub fn overwrite(&mut self, stored: &Stored, after: String) -> Result<(), Error> {
        let before = self.read(stored)?;
        self.edits.push(Edit {
            path: stored.path,
            before,
            after,
        });
        Ok(())
    }

    /// Adds a new note.
    pub fn make(&mut self, note: Note) {
        self.made.push(note);
    }

    /// Returns the bytes of a note, if it has not changed since it was read.
    fn read(&self, stored: &Stored) -> Result<Vec<u8>, Error> {
        if self.context.notes.stamp(stored.path) == Some(stored.stamp) {
            return Ok(self.context.notes.bytes(stored.path)?);
        }
        Err(changed_meanwhile())
    }

    /// Writes and commits all edits.
    pub fn apply(self) -> Result<Done, Error> {
        let context = self.context;
        let journal = context.journal();
        sync::commit_all(context)?;
        let lock = context.notes.lock()?;
        for edit in &self.edits {
            if context.notes.bytes(edit.path)? != edit.before {
                return Err(changed_meanwhile());
            }
        }
        if self
            .made
            .iter()
            .any(|note| context.notes.find(note.id).is_some())
        {
            return Err(changed_meanwhile());
        }
        let written = self.write(&lock, journal.as_ref());
        drop(lock);
        // Commits even after a partial write, so that `undo` can revert it.
        let edited = self.edits.iter().map(|edit| edit.path);
        let paths = edited.chain(self.made.iter().map(NotePath::from_note));
        let (travelling, local): (Vec<NotePath>, Vec<NotePath>) =
            paths.partition(|path| path.scope == Scope::Portable);
        let ids = travelling.iter().map(|path| path.id);
        let batch = sync::commit(context, self.verb, ids);
        context.index()?;
        written?;
        if batch.is_none() && !travelling.is_empty() {
            return Err(Error::failed(
                "the notes were changed, but not committed: there is no change to undo",
            )
            .hint("anamnesis doctor"));
        }
        let is_new = |path: &NotePath| self.made.iter().any(|note| note.id == path.id);
        let local = local.into_iter().filter(is_new).map(|path| path.id);
        Ok(Done {
            batch,
            local: local.collect(),
        })
    }

    fn write(&self, lock: &Lock, journal: Option<&Journal>) -> Result<(), Error> {
        let notes = &self.context.notes;
        for edit in &self.edits {
            let after = edit.after.as_bytes();
            notes.overwrite(lock, edit.path, after)?;
            // The person ran this command. A note they wrote or approved here stays theirs.
            if let Some(journal) = journal
                && journal.was_written_here(edit.path.id, &edit.before)?
            {
                journal.written_here(edit.path.id, after, self.context.environment.now)?;
            }
        }
        for note in &self.made {
            notes.create(lock, note)?;
        }
        if let Some(journal) = journal {
            journal.know(self.made.iter().map(|note| note.id))?;
        }
        Ok(())
    }
}

/// The result of [`BulkChange::apply`].
pub struct Done {
    /// The change that `undo` reverts; `None` if no syncing note was touched.
    pub batch: Option<Ulid>,
    /// New machine-local notes, which are not in git and which `undo` does not revert.
    pub local: Vec<NoteId>,
}

fn changed_meanwhile() -> Error {
    Error::failed("notes have changed while this was worked out; nothing was written")
        .hint("run it again")
}

/// A report of a command that only shows what it would do without `--apply`.
#[derive(Debug, Serialize)]
pub struct Applied<T> {
    /// Whether it was done.
    pub applied: bool,
    /// The report.
    #[serde(flatten)]
    pub report: T,
}

/// Refuses `--apply` for an agent, which may only look at what would be done.
pub fn check_person(context: &Context, apply: bool) -> Result<(), Error> {
    if apply && context.environment.is_agent {
        return Err(Error::failed("only a person can apply this")
            .hint("without --apply it shows what would be done"));
    }
    Ok(())
}

/// Opens the store. A dry run creates neither folders nor the journal. Only a person may write.
pub fn open_store(context: &Context, apply: bool) -> Result<Option<Journal>, Error> {
    check_person(context, apply)?;
    if context.config.is_unclear {
        return Err(Error::failed(Off::Settings.reason()).hint(Off::Settings.hint()));
    }
    if apply {
        return Ok(Some(Journal::open(&context.home, TIMEOUT)?));
    }
    context.records()
}
