//! What comes at a tool: a warning when it is about to run, and what mended its failure before.

use anamnesis_core::{
    hook::ToolCall,
    id::NoteId,
    note::{Note, State, text_hash},
    observe::signature,
    render::{Mended, denial, mended_block, warning_block},
    trigger::Call,
};
use anamnesis_recall::warning::{Action, Candidate, Relevance, fitting_by_text, warning};
use anamnesis_store::{
    index::{Error, Index},
    journal::{Journal, Ledger, STOPPED, Shown},
    project::Project,
};

use crate::{context::Context, ui};

/// What comes.
pub(crate) struct AtTool {
    /// What the model is told beside the result; none where the call is stopped.
    pub(crate) context: Option<String>,
    /// Why the call is stopped.
    pub(crate) denial: Option<String>,
    pub(crate) shown: Shown,
}

/// A warning that may fit a call, as its file is now.
struct Fitting {
    note: Note,
    is_persons: bool,
    relevance: Option<Relevance>,
}

/// The warning for a call that is about to run.
///
/// # Errors
/// When the index cannot be read.
pub(crate) fn warn(
    context: &Context,
    journal: &Journal,
    project: &Project,
    (session, agent): (&str, &str),
    call: &ToolCall,
) -> Result<Option<AtTool>, Error> {
    let call = Call::of(&call.tool, &call.input);
    let index = Index::open(&context.home)?;
    let projects = project.all_keys();
    let by_trigger = index.warnings_for(&call, &projects)?.into_iter();
    let by_text = fitting_by_text(&index, &call, &projects)?.into_iter();
    let found = by_trigger
        .map(|entry| (entry, None))
        .chain(by_text.map(|(entry, relevance)| (entry, Some(relevance))));
    let mut notes: Vec<Fitting> = Vec::new();
    for (entry, relevance) in found {
        let (Ok(stored), Ok(bytes)) = (
            context.notes.read(entry.path),
            context.notes.bytes(entry.path),
        ) else {
            continue;
        };
        // What a file says of its author is a label; only what was written here is known to be a
        // person's.
        let is_persons = !entry.by_agent
            && journal
                .was_written_here(entry.id(), &bytes)
                .unwrap_or(false);
        notes.push(Fitting {
            note: stored.note(),
            is_persons,
            relevance,
        });
    }
    if notes.is_empty() {
        return Ok(None);
    }
    let Ok(warned) = journal.warned(session, agent) else {
        return Ok(None);
    };
    let candidates: Vec<Candidate<'_>> = notes
        .iter()
        .map(|fitting| Candidate {
            note: &fitting.note,
            is_persons: fitting.is_persons,
            relevance: fitting.relevance,
            was_given: warned.given.contains(&fitting.note.id),
            has_stopped: warned.stopped.contains(&fitting.note.id),
        })
        .collect();
    let Some(found) = warning(&call, &candidates, warned.in_turn) else {
        return Ok(None);
    };
    let mut notes = notes.iter().map(|fitting| &fitting.note);
    let Some(note) = notes.find(|note| note.id == found.note) else {
        return Ok(None);
    };
    let now = context.environment.now;
    let short = Context::short(&index, note.id);
    let block = warning_block(note, found.trigger.as_deref(), now, &short);
    let level = block
        .levels
        .first()
        .map_or("body", |(_, level)| level.as_str());
    let shown = |reason| Shown {
        note: note.id,
        hash: text_hash(&note.body),
        level,
        reason,
        evidence: None,
    };
    Ok(Some(match (found.action, &found.trigger) {
        (Action::Deny, Some(trigger)) => AtTool {
            context: None,
            denial: Some(denial(note, trigger, now, &short)),
            shown: shown(STOPPED),
        },
        _ => AtTool {
            context: Some(block.text),
            denial: None,
            shown: shown(match found.trigger {
                Some(_) => "warns of the call",
                None => "has the words of the call",
            }),
        },
    }))
}

/// In the records, in place of how much of a note came: what was seen in its session did, and `hash`
/// is of that.
pub(crate) const OBSERVATION: &str = "observation";

/// How a failure was mended before, in another session of the project.
pub(crate) fn mended(
    context: &Context,
    journal: &Journal,
    project: &Project,
    session: &str,
    ledger: &Ledger,
    error: &str,
) -> Option<AtTool> {
    let signature = signature(error)?;
    let resolved = journal
        .resolved(&signature, &project.all_keys(), session, 1)
        .ok()?
        .pop()?;
    // The session's note tells it whole, if it was written.
    let id = NoteId::of_session(&resolved.session);
    let hash = text_hash(&resolved.observation.title);
    if ledger.get(&id).is_some_and(|seen| seen.hash == hash) {
        return None;
    }
    let index = Index::open(&context.home).ok();
    let note = index.and_then(|index| {
        let entry = index.get(id).ok()??;
        let is_there = entry.state == State::Active;
        is_there.then(|| (id, Context::short(&index, id)))
    });
    let mended = Mended::observed(
        resolved.observation,
        ui::time(resolved.at),
        resolved.session,
        note,
    );
    let block = mended_block(&[mended], context.environment.now);
    Some(AtTool {
        context: Some(block.text),
        denial: None,
        shown: Shown {
            note: id,
            hash,
            level: OBSERVATION,
            reason: "mended the same failure",
            evidence: None,
        },
    })
}
