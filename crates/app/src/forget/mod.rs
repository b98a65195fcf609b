//! Forgets notes: moves their text to the trash and removes it from everything derived from it.

pub(crate) mod records;
pub mod session;

use std::collections::BTreeSet;

use anamnesis_note::{
    draft::safe_line,
    id::{IdPrefix, NoteId},
    note::State,
    purge_pattern::PurgePattern,
};
use anamnesis_session::prompt::RawPrompt;
use anamnesis_store::{
    index::{Entry, Index},
    journal::{self, ForgetRequest, Journal},
    notes::NotePath,
};
use anamnesis_text::clean::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use self::records::leave_records;
use crate::{
    Error,
    context::Context,
    evaluation_set, remote,
    sync::{self, short_change},
    write::take_place,
};

/// How many characters of a reason are logged.
const MAX_REASON_LENGTH: usize = 200;

/// A note to forget.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetNote {
    id: String,
    /// Written to this machine's log
    reason: Option<String>,
}

/// Notes that were forgotten.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ForgottenNotes {
    /// Result, for the person
    pub said: String,
    ids: Vec<String>,
    /// Links of other notes that are broken now
    links: usize,
    /// The change that `undo` reverts; `None` if no syncing note was touched.
    #[serde(skip)]
    pub batch: Option<Ulid>,
}

/// Forgets one note, for a tool.
pub fn forget_one(context: &Context, request: ForgetNote) -> Result<ForgottenNotes, Error> {
    let forgotten = forget(context, &[request.id])?;
    let reason = request.reason.as_deref().map(safe_line).unwrap_or_default();
    let reason: String = reason.chars().take(MAX_REASON_LENGTH).collect();
    let id = &forgotten.ids[0];
    context.log(&format!("{id} was forgotten by a tool: {reason}"));
    Ok(forgotten)
}

/// Forgets the notes with these ids, all or none.
pub fn forget(context: &Context, typed: &[String]) -> Result<ForgottenNotes, Error> {
    if context.environment.is_agent && typed.len() > 1 {
        return Err(Error::usage("an agent forgets one note at a time"));
    }
    let index = context.index()?;
    let found = typed.iter().map(|typed| Context::present(&index, typed));
    let entries: Vec<Entry> = found
        .collect::<Result<_, _>>()
        .map_err(|failure| failure.after("nothing was forgotten: "))?;
    let ids: Vec<NoteId> = entries.iter().map(Entry::id).collect();
    let links = index.links_of(&ids)?;
    let links = links.iter().filter(|edge| ids.contains(&edge.to)).count();
    drop(index);
    let paths: Vec<NotePath> = entries.iter().map(|entry| entry.path).collect();
    sync::commit_earlier(context, ids.iter().copied());
    // Only a person is told that records have the text, and can purge it.
    let told = paths.iter().filter(|_| !context.environment.is_agent);
    let texts = told.filter_map(|path| {
        let stored = context.notes.read(*path).ok()?;
        PurgePattern::from_note(&stored.note())
    });
    let text = PurgePattern::any(texts);
    forget_notes(context, &paths)?;
    let batch = sync::commit(context, "forget", ids.iter().copied());
    let is_recorded = text.is_some_and(|text| is_recorded(context, &text));
    // The notes are forgotten. Ids can be shown without the index.
    let index = context.index().ok();
    let short = |id: NoteId| {
        let index = index.as_ref();
        index.map_or_else(|| id.short(), |index| Context::short(index, id))
    };
    let elsewhere = match remote::address(context) {
        Some(_) => "; elsewhere with the next sync",
        None => "",
    };
    let told = entries.iter().map(|entry| {
        let title = one_line(&entry.title);
        format!("forgot #{} \"{title}\"{elsewhere}\n", short(entry.id()))
    });
    let all: Vec<String> = ids.iter().map(|id| short(*id)).collect();
    let all = all.join(" ");
    let undo = match batch {
        Some(batch) => format!("anamnesis undo {}", short_change(batch)),
        None => format!("anamnesis forget --undo {all}"),
    };
    let left = match (batch, is_recorded) {
        (Some(_), true) => "history and the records of sessions",
        (Some(_), false) => "history",
        (None, true) => "the records of sessions",
        (None, false) => "",
    };
    let mut undo = format!("Undo: {undo}");
    if !left.is_empty() {
        undo += &format!(" · out of {left} too: anamnesis purge {all}");
    }
    Ok(ForgottenNotes {
        said: told.collect::<String>() + &undo,
        ids: ids.iter().map(NoteId::to_string).collect(),
        links,
        batch,
    })
}

/// Returns whether records, such as the prompt that had a note written, have its text.
fn is_recorded(context: &Context, text: &PurgePattern) -> bool {
    let journal = context.records().ok().flatten();
    journal.is_some_and(|journal| journal.mentions(text).is_ok_and(|found| found.count() > 0))
}

/// A note that a person restored.
#[derive(Debug, Serialize)]
pub struct RestoredNote {
    /// Result, for the person.
    pub said: String,
    id: NoteId,
    /// The change that `undo` reverts; `None` if no syncing note was touched.
    pub change: Option<Ulid>,
}

/// Restores a forgotten note from the trash. Only a person may.
pub fn restore(context: &Context, typed: &str) -> Result<RestoredNote, Error> {
    context.check_person("restore a forgotten note")?;
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
    let change = sync::commit(context, "restore", [entry.id()]);
    if let Some(journal) = context.journal() {
        journal.remembered(entry.id())?;
    }
    context.index()?;
    let title = one_line(&stored.note().title);
    Ok(RestoredNote {
        said: format!("restored #{short} \"{title}\"\nUndo: anamnesis forget {short}"),
        id: entry.id(),
        change,
    })
}

/// Forgets notes: moves their text to the trash and removes it from everything derived from it. The
/// caller commits.
///
/// Notes that an agent forgets without the person's request count to its limit.
pub fn forget_notes(context: &Context, notes: &[NotePath]) -> Result<(), Error> {
    let journal = context.journal();
    let mut gone = BTreeSet::new();
    let done: Result<(), Error> = notes.iter().try_for_each(|path| {
        forget_note(context, journal.as_ref(), *path)?;
        gone.insert(path.id);
        Ok(())
    });
    context.log_error("forget", leave_records(context, journal.as_ref(), &gone));
    done
}

/// Forgets one note, and records it.
fn forget_note(context: &Context, journal: Option<&Journal>, path: NotePath) -> Result<(), Error> {
    let now = context.environment.now;
    let request = match journal {
        Some(journal) if context.environment.is_agent => Some(request(context, journal, path.id)?),
        _ => None,
    };
    if let (Some(journal), Some(ForgetRequest::Agent)) = (journal, &request) {
        take_place(context, journal, path.id)?;
    }
    let lock = context.notes.lock()?;
    let text = context
        .notes
        .read(path)
        .map(|stored| stored.file.note().body.clone());
    evaluation_set::forget_notes(&context.home, |id| id == path.id)?;
    context.notes.forget(&lock, path, now)?;
    drop(lock);
    let record = |journal: &Journal, text: &str| -> Result<(), journal::Error> {
        journal.forgot(path.id, text, now)?;
        if let Some(request) = request {
            journal.agent_forgot(path.id, request, now)?;
        }
        Ok(())
    };
    if let (Some(journal), Ok(text)) = (journal, text) {
        context.log_error("forget", record(journal, &text));
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
