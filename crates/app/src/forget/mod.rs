//! Forgets notes: moves their text to the trash and removes it from everything derived from it.

pub mod session;

use std::time::Duration;

use anamnesis_note::{
    id::{IdPrefix, NoteId},
    note::State,
};
use anamnesis_session::prompt::RawPrompt;
use anamnesis_store::{
    index::{self, Entry, Index},
    journal::{self, ForgetRequest, Journal},
    notes::{NotePath, Stored},
    writing,
};
use ulid::Ulid;

use crate::{Error, context::Context, evaluation_set, sync};

/// The notes that a person or an agent forgot.
pub struct ForgottenNotes {
    /// The notes before, each with its shortest unique id.
    pub notes: Vec<(Entry, String)>,
    /// The change that `undo` reverts; `None` if no syncing note was touched.
    pub batch: Option<Ulid>,
}

/// Forgets the notes with these ids, all or none.
pub fn forget(context: &Context, ids: &[String]) -> Result<ForgottenNotes, Error> {
    let index = context.index()?;
    let mut entries = Vec::new();
    for typed in ids {
        let entry = Context::resolve(&index, typed).map_err(|failure| nothing(&failure))?;
        if entry.state == State::Forgotten {
            let short = Context::short(&index, entry.id());
            let failure = format!("0 forgotten: #{short} is forgotten already");
            return Err(Error::failed(failure).hint(format!("anamnesis restore {}", entry.id())));
        }
        entries.push(entry);
    }
    drop(index);
    let paths: Vec<NotePath> = entries.iter().map(|entry| entry.path).collect();
    sync::commit_earlier(context, paths.iter().map(|path| path.id));
    forget_notes(context, &paths, context.agent_session())?;
    let batch = sync::commit(context, "forget", paths.iter().map(|path| path.id));
    // The notes are forgotten. Ids can be shown without the index.
    let index = context.index().ok();
    let notes = entries.into_iter().map(|entry| {
        let id = entry.id();
        let short = index
            .as_ref()
            .map_or_else(|| id.short(), |index| Context::short(index, id));
        (entry, short)
    });
    Ok(ForgottenNotes {
        notes: notes.collect(),
        batch,
    })
}

/// A note that a person restored.
pub struct RestoredNote {
    /// The note now.
    pub stored: Stored,
    /// The shortest unique id.
    pub short: String,
    /// The change that `undo` reverts; `None` if no syncing note was touched.
    pub batch: Option<Ulid>,
}

/// Restores a forgotten note from the trash. Only a person may.
pub fn restore(context: &Context, typed: &str) -> Result<RestoredNote, Error> {
    if context.environment.is_agent {
        return Err(Error::failed(
            "what was forgotten is brought back by a person only",
        ));
    }
    let index = context.index()?;
    let entry = Context::resolve(&index, typed)?;
    let short = Context::short(&index, entry.id());
    if entry.state != State::Forgotten {
        return Err(Error::failed(format!("#{short} is not forgotten"))
            .hint(format!("anamnesis show {short}")));
    }
    if context.notes.trashed(entry.id()).is_none() {
        return Err(Error::failed(format!(
            "the text of #{short} is not in this machine's trash: it was forgotten on another \
             machine, or more than {} days ago",
            context.config.retention.trash_days
        ))
        .hint("anamnesis log, then: anamnesis undo CHANGE   (restores it from the history)"));
    }
    drop::<Index>(index);
    let lock = context.notes.lock()?;
    let stored = context.notes.restore(&lock, entry.path)?;
    drop(lock);
    let batch = sync::commit(context, "restore", [entry.id()]);
    if let Some(journal) = context.journal() {
        journal.remembered(entry.id())?;
    }
    context.index()?;
    Ok(RestoredNote {
        stored,
        short,
        batch,
    })
}

/// The failure if nothing was forgotten.
fn nothing(failure: &Error) -> Error {
    let text = failure.text();
    let text = text.trim_start_matches("anamnesis: ").trim_end();
    Error::failed(format!("0 forgotten: {text}"))
}

/// Forgets notes: moves their text to the trash and removes it from everything derived from it. The
/// caller commits.
///
/// What an agent forgets without a request of the person counts to the limit of the session `counted_to`.
pub fn forget_notes(
    context: &Context,
    notes: &[NotePath],
    counted_to: Option<&str>,
) -> Result<(), Error> {
    let journal = context.journal();
    let now = context.environment.now;
    for path in notes {
        let request = match &journal {
            Some(journal) if context.environment.is_agent => {
                Some(request(context, journal, path.id)?)
            }
            _ => None,
        };
        if let (Some(journal), Some(ForgetRequest::Agent)) = (&journal, &request) {
            writing::take_place(journal, counted_to, path.id, now)?;
        }
        let lock = context.notes.lock()?;
        let text = context
            .notes
            .read(*path)
            .map(|stored| stored.file.note().body.clone());
        evaluation_set::forget_notes(&context.home, |id| id == path.id)?;
        context.notes.forget(&lock, *path, now)?;
        drop(lock);
        let record = |journal: &Journal, text: &str| -> Result<(), journal::Error> {
            journal.forget_injected(path.id)?;
            journal.forgot(path.id, text, now)?;
            if let Some(request) = request {
                journal.agent_forgot(path.id, request, now)?;
            }
            Ok(())
        };
        if let (Some(journal), Ok(text)) = (&journal, text)
            && let Err(error) = record(journal, &text)
        {
            context.log(&format!("forget: {error}"));
        }
    }
    // An index of another version has the text, too.
    let others = index::remove_others(&context.home, Duration::ZERO);
    let index = context.index().and_then(|index| Ok(index.checkpoint()?));
    let journal = journal.map_or(Ok(()), |journal| journal.checkpoint());
    // The next process folds the logs in.
    let others = others.err().map(|error| Error::failed(error.to_string()));
    for error in [index.err(), journal.err().map(Error::from), others]
        .into_iter()
        .flatten()
    {
        context.log(&format!("forget: {error}"));
    }
    Ok(())
}

/// Returns whether the person named a note in `/memory-forget`, or after it, if the command had
/// only words to search for.
fn request(
    context: &Context,
    journal: &Journal,
    note: NoteId,
) -> Result<ForgetRequest, journal::Error> {
    let Some(session) = context.agent_session() else {
        return Ok(ForgetRequest::Agent);
    };
    let prompts = journal.last_prompts(session, 2)?;
    let names = |text: &str| {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
        let mut words = words.filter_map(|word| IdPrefix::parse(word).ok());
        words.any(|word| word.matches(&note.to_string()))
    };
    let command = |text: &String| {
        let typed = RawPrompt::new(text.as_str());
        typed.command("memory-forget").map(str::to_owned)
    };
    let is_by_person = match (prompts.first(), prompts.get(1)) {
        (Some(last), _) if command(last).is_some_and(|words| names(&words)) => true,
        (Some(last), Some(before)) => command(before).is_some() && names(last),
        _ => false,
    };
    Ok(if is_by_person {
        ForgetRequest::Person
    } else {
        ForgetRequest::Agent
    })
}
