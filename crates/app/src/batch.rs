//! A batch: what one command does to many notes, as one commit that one `undo` takes back.
//!
//! It is worked out first, from the notes as they were read, and shown. Where one of them has changed
//! when it is to be written, nothing is written. What hooks and editors left before is committed apart,
//! so that the undo gives back the bytes that were there.

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteFile, Scope},
};
use anamnesis_store::{
    fs::lock::Lock,
    journal::Journal,
    notes::{NotePath, Stored},
};
use ulid::Ulid;

use crate::{context::Context, failure::Failure, sync};

/// A file that is to have other bytes.
struct Edit {
    path: NotePath,
    before: Vec<u8>,
    after: String,
}

/// What a command is going to do.
pub struct Batch<'a> {
    /// The store that is changed.
    pub context: &'a Context,
    /// The command's name, for commits and messages.
    pub verb: &'static str,
    edits: Vec<Edit>,
    made: Vec<Note>,
}

impl<'a> Batch<'a> {
    /// A batch of a command, with nothing in it.
    pub fn new(context: &'a Context, verb: &'static str) -> Self {
        Self {
            context,
            verb,
            edits: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Takes up a note that is to say something else: the lines of keys that change, and no others.
    pub fn change(&mut self, stored: &Stored, after: &Note) -> Result<(), Failure> {
        let after = Note {
            // What the file says of its tree is not ours to mend.
            scope: stored.file.note().scope,
            ..after.clone()
        };
        let before = self.read(stored)?;
        let path = stored.path;
        let file = NoteFile::parse(&before, path.id);
        let file = file.map_err(|error| Failure::failed(format!("{path}: {error}")))?;
        let after = file.rewrite(&after);
        let after = after.map_err(|error| Failure::failed(format!("{path}: {error}")))?;
        self.edits.push(Edit {
            path,
            before,
            after,
        });
        Ok(())
    }

    /// Takes up a file that is to have another text.
    pub fn overwrite(&mut self, stored: &Stored, after: String) -> Result<(), Failure> {
        let before = self.read(stored)?;
        self.edits.push(Edit {
            path: stored.path,
            before,
            after,
        });
        Ok(())
    }

    /// Takes up a new note.
    pub fn make(&mut self, note: Note) {
        self.made.push(note);
    }

    /// The bytes of a note that was read as it is.
    fn read(&self, stored: &Stored) -> Result<Vec<u8>, Failure> {
        if self.context.notes.stamp(stored.path) == Some(stored.stamp) {
            return Ok(self.context.notes.bytes(stored.path)?);
        }
        Err(changed_meanwhile())
    }

    /// Does it.
    pub fn apply(self) -> Result<Done, Failure> {
        let context = self.context;
        let journal = context.journal();
        sync::commit_all(context, journal.as_ref())?;
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
        // What was written before something failed can be taken back as well.
        let edited = self.edits.iter().map(|edit| edit.path);
        let paths = edited.chain(self.made.iter().map(NotePath::of));
        let (travelling, local): (Vec<NotePath>, Vec<NotePath>) =
            paths.partition(|path| path.scope == Scope::Portable);
        let ids = travelling.iter().map(|path| path.id);
        let batch = sync::commit(context, self.verb, ids);
        context.index()?;
        written?;
        if batch.is_none() && !travelling.is_empty() {
            return Err(Failure::failed(
                "the notes were changed, but not committed: there is no batch to undo",
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

    fn write(&self, lock: &Lock, journal: Option<&Journal>) -> Result<(), Failure> {
        let notes = &self.context.notes;
        for edit in &self.edits {
            let after = edit.after.as_bytes();
            notes.overwrite(lock, edit.path, after)?;
            // A note that was a person's in this form is theirs in the new one: a person has done this.
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

/// What was done.
pub struct Done {
    /// The batch by which it can be undone, if something of it travels.
    pub batch: Option<Ulid>,
    /// New notes of this machine, which no batch has.
    pub local: Vec<NoteId>,
}

fn changed_meanwhile() -> Failure {
    Failure::failed("notes have changed while this was worked out; nothing was written")
        .hint("run it again")
}

/// Tells whether changes may be made: an agent may look at what could be done, and no more.
pub fn check_person(context: &Context, apply: bool) -> Result<(), Failure> {
    if apply && context.environment.is_agent {
        return Err(Failure::failed("only a person can apply this")
            .hint("without --apply it shows what would be done"));
    }
    Ok(())
}
