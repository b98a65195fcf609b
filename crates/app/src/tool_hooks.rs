//! Hooks around tool calls: injects warnings before a call, and a known fix after a failure.

use anamnesis_note::{
    id::NoteId,
    note::{NoteType, State, parse_timestamp},
    trigger::Call,
};
use anamnesis_recall::correction::remarks_on;
use anamnesis_recall::render::{KnownFix, denial, fix_block, warning_block};
use anamnesis_recall::warning::{WarningAction, WarningCandidate, fitting_by_text, warning};
use anamnesis_session::{
    hook::ToolCall,
    observe::{fix_in_note, signature, split_fix},
    session_note::fix_lines,
};
use anamnesis_store::{
    index::{Entry, Error, Index, Recent},
    journal::{Journal, Ledger, OBSERVATION, STOPPED, ShownNote},
    project::Project,
};
use anamnesis_text::hash::text_hash;
use serde_json::Value;

use crate::context::Context;
use crate::format;

/// How many session notes are searched for a command that failed before.
const MAX_SESSIONS: usize = 20;

/// The answer of a hook to a tool call.
pub struct AtTool {
    /// The context to inject; `None` if the call is denied.
    pub context: Option<String>,
    /// Why the call is denied.
    pub denial: Option<String>,
    /// The note, for the journal.
    pub shown: ShownNote,
}

/// Returns the warnings whose trigger or text matches a call, as if the session had seen none.
fn fitting(
    context: &Context,
    journal: &Journal,
    index: &Index,
    call: &Call,
    project: &Project,
) -> Result<Vec<WarningCandidate>, Error> {
    let projects = project.all_keys();
    let by_trigger = index.warnings_for(call, &projects)?.into_iter();
    let by_text = fitting_by_text(index, call, &projects)?.into_iter();
    let found = by_trigger
        .map(|entry| (entry, false))
        .chain(by_text.map(|entry| (entry, true)));
    let read = found.filter_map(|(entry, has_words)| {
        let stored = context.notes.read(entry.path).ok()?;
        let bytes = context.notes.bytes(entry.path).ok()?;
        // The author in the file is only a label. A note is the person's only if this machine
        // recorded that they wrote it.
        let is_persons = !entry.by_agent
            && journal
                .was_written_here(entry.id(), &bytes)
                .unwrap_or(false);
        Some(WarningCandidate {
            note: stored.note(),
            is_persons,
            has_words,
            was_given: false,
            has_stopped: false,
        })
    });
    Ok(read.collect())
}

/// Returns the warning for a call that is about to run.
pub fn warn<'a>(
    context: &Context,
    journal: &Journal,
    project: impl FnOnce() -> &'a Project,
    (session, agent): (&str, &str),
    call: &ToolCall,
) -> Result<Option<AtTool>, Error> {
    let call = Call::new(&call.tool, &call.input);
    let Some(index) = Index::open_with_warnings(&context.home)? else {
        return Ok(None);
    };
    let mut candidates = fitting(context, journal, &index, &call, project())?;
    if candidates.is_empty() {
        return Ok(None);
    }
    let Ok(warned) = journal.warned(session, agent) else {
        return Ok(None);
    };
    for candidate in &mut candidates {
        candidate.was_given = warned.given.contains(&candidate.note.id);
        candidate.has_stopped = warned.stopped.contains(&candidate.note.id);
    }
    let Some(found) = warning(&call, &candidates, warned.in_turn) else {
        return Ok(None);
    };
    let note = found.note;
    let now = context.environment.now;
    let short = Context::short(&index, note.id);
    let remarks = remarks_on(&index, note.id, now, NoteId::short)?;
    let (block, level) = warning_block(note, found.trigger.as_deref(), now, &short, &remarks);
    let hash = text_hash(&note.body);
    let shown = |reason| ShownNote::new(note.id, hash, level.as_str(), reason);
    Ok(Some(match (found.action, &found.trigger) {
        (WarningAction::Deny, Some(trigger)) => AtTool {
            context: None,
            denial: Some(denial(note, trigger, now, &short, &remarks)),
            shown: shown(STOPPED),
        },
        _ => AtTool {
            context: Some(block),
            denial: None,
            shown: shown(match found.trigger {
                Some(_) => "warns of the call",
                None => "has the words of the call",
            }),
        },
    }))
}

/// Returns how the same failure was fixed in another session of the project.
pub fn known_fix(
    context: &Context,
    journal: &Journal,
    project: &Project,
    session: &str,
    ledger: &Ledger,
    call: &ToolCall,
) -> Option<AtTool> {
    let error = call.error.as_deref()?;
    let (mut known_fix, id, reason) = observed(context, journal, project, session, error)
        .or_else(|| noted(context, project, session, call))?;
    let hash = text_hash(&known_fix.title);
    if ledger.get(&id).is_some_and(|seen| seen.hash == hash) {
        return None;
    }
    let now = context.environment.now;
    let index = Index::open(&context.home).ok();
    let remarks = index.and_then(|index| remarks_on(&index, id, now, NoteId::short).ok());
    known_fix.remarks = remarks.unwrap_or_default();
    Some(AtTool {
        context: Some(fix_block(&known_fix, now)),
        denial: None,
        shown: ShownNote::new(id, hash, OBSERVATION, reason),
    })
}

/// Looks for the same failure in this machine's journal.
fn observed(
    context: &Context,
    journal: &Journal,
    project: &Project,
    session: &str,
    error: &str,
) -> Option<(KnownFix, NoteId, &'static str)> {
    let signature = signature(error)?;
    let resolved = journal
        .resolved(&signature, &project.all_keys(), session, 1)
        .ok()?
        .pop()?;
    // Refers to the session's note for details, if it was written.
    let id = NoteId::of_session(&resolved.session);
    let index = Index::open(&context.home).ok();
    let note = index.and_then(|index| {
        let entry = index.get(id).ok()??;
        let is_there = entry.state == State::Active;
        is_there.then(|| Context::short(&index, id))
    });
    let at = format::time(resolved.at);
    let observation = resolved.observation;
    let line = fix_lines(std::slice::from_ref(&observation), &resolved.turns).pop();
    let (title, remedy) = line
        .as_deref()
        .and_then(split_fix)
        .unwrap_or((&observation.title, &observation.narrative));
    let known_fix = KnownFix {
        title: title.to_owned(),
        remedy: remedy.to_owned(),
        at,
        session: resolved.session,
        note,
        remarks: Vec::new(),
    };
    Some((known_fix, id, "fixed the same failure"))
}

/// Looks for the same command in the latest session notes. They include other machines, whose
/// failures are not in this journal, and contain commands but no error texts.
fn noted(
    context: &Context,
    project: &Project,
    session: &str,
    call: &ToolCall,
) -> Option<(KnownFix, NoteId, &'static str)> {
    let command = call.input.get("command").and_then(Value::as_str)?;
    let index = Index::open(&context.home).ok()?;
    let mut entries: Vec<Entry> = Vec::new();
    for key in project.all_keys() {
        let query = Recent {
            project: &key,
            note_type: NoteType::Episodic,
            now: context.environment.now,
            only_pinned: false,
            with_reflected: false,
            limit: MAX_SESSIONS,
        };
        entries.extend(index.recent(query).ok()?);
    }
    entries.sort_by(|a, b| (&b.updated_at, b.id()).cmp(&(&a.updated_at, a.id())));
    let own = NoteId::of_session(session);
    let others = entries.iter().filter(|entry| entry.id() != own);
    others.take(MAX_SESSIONS).find_map(|entry| {
        let note = context.notes.read(entry.path).ok()?.note();
        let (title, remedy) = fix_in_note(&note.body, command)?;
        let known_fix = KnownFix {
            title: title.to_owned(),
            remedy: remedy.to_owned(),
            at: parse_timestamp(&entry.updated_at)?,
            session: note.session.unwrap_or_default(),
            note: Some(Context::short(&index, entry.id())),
            remarks: Vec::new(),
        };
        Some((known_fix, entry.id(), "fixed the same command"))
    })
}
