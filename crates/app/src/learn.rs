//! Learning from use: detects what a turn used, and writes receipts for the usage log.
//!
//! This never delays a session. A receipt that cannot be written now stays in the journal until the
//! deferred process writes it.

use std::{cell::OnceCell, collections::HashMap, time::Duration};

use anamnesis_note::{
    id::NoteId,
    note::Scope,
    usage_log::{Feedback, SessionMark, Usage, Weight},
};
use anamnesis_recall::{
    rank,
    usage_detection::{self, GivenNote, ToolCall, Turn},
};
use anamnesis_store::{
    index::{Entry, Filter, Index},
    journal::{self, Journal},
    usage_log::{self, Receipts},
};
use anamnesis_text::hash::text_hash;
use chrono::{DateTime, Utc};

use crate::{
    Error,
    context::{self, Context},
    write::is_a_persons,
};

/// How long a hook waits for the lock of the usage log.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// The injected notes that one turn used.
#[derive(Debug)]
pub struct TurnUses {
    /// The subagent; empty for the session's own context.
    agent: String,
    turn: u32,
    notes: Vec<(NoteId, Weight)>,
}

impl TurnUses {
    /// Stores the uses in the journal, within the caller's transaction.
    pub fn keep(
        &self,
        journal: &Journal,
        session: &str,
        now: DateTime<Utc>,
    ) -> Result<(), journal::Error> {
        journal.used(session, &self.agent, self.turn, &self.notes, now)
    }
}

/// Detects what the last turn used of the injected notes; `None` if nothing. `agent` is empty for
/// the session's own context.
pub fn uses(
    context: &Context,
    journal: &Journal,
    session: &str,
    agent: &str,
    answer: &str,
) -> Result<Option<TurnUses>, journal::Error> {
    let mut shown = journal.given(session)?;
    shown.retain(|shown| shown.agent == agent);
    if shown.is_empty() {
        return Ok(None);
    }
    let Some(turn) = journal.last_turn(session, agent)? else {
        return Ok(None);
    };
    let mut notes = HashMap::new();
    let given: Vec<GivenNote> = shown
        .iter()
        .filter_map(|shown| {
            let id: NoteId = shown.note.parse().ok()?;
            let note = notes
                .entry(id)
                .or_insert_with(|| {
                    let stored = context.notes.read(context.notes.find(id)?).ok()?;
                    Some(stored.note())
                })
                .as_ref()?;
            // The note has changed, so the injected text is no longer known.
            if text_hash(&note.body) != shown.hash {
                return None;
            }
            let with_text = matches!(shown.level.as_str(), "body" | "part");
            let body = if with_text { note.body.as_str() } else { "" };
            Some(GivenNote {
                note: id,
                text: format!("{}\n{body}", note.title),
                instead: note.instead.clone(),
                at: shown.at,
            })
        })
        .collect();
    let calls: Vec<ToolCall<'_>> = turn
        .events
        .iter()
        .map(|event| ToolCall {
            tool: &event.tool,
            input: event.input.as_ref(),
            at: event.at,
        })
        .collect();
    let happened = Turn {
        prompt: turn.prompt.as_deref().unwrap_or_default(),
        answer,
        calls: &calls,
    };
    // The index is opened only if a word has to be weighed. Without it, all weights are equal.
    let index = OnceCell::new();
    let rarity = |term: &str| {
        let known = index.get_or_init(|| {
            let index = Index::open(&context.home).ok()?;
            let count = index.count(&Filter::default()).ok()?;
            Some((index, count))
        });
        let known = known.as_ref();
        let rarity = known.and_then(|(index, count)| rank::term_idf(index, *count, term).ok());
        rarity.unwrap_or(1.0)
    };
    let notes = usage_detection::detect(&given, &happened, rarity);
    Ok((!notes.is_empty()).then(|| TurnUses {
        agent: agent.to_owned(),
        turn: turn.number,
        notes,
    }))
}

/// Writes a receipt for what a session was shown and used since its last one.
pub fn count(
    context: &Context,
    journal: &Journal,
    session: &str,
    patience: Duration,
) -> Result<(), usage_log::Error> {
    let mark = mark(context, journal, session)?;
    let project = journal.session(session)?.map(|session| session.project);
    let now = context.environment.now;
    journal.count_usage(session, |usage| {
        usage.part(Some(mark), project.as_deref(), now, |id| scope(context, id))
    })?;
    settle(context, journal, patience)
}

/// Writes receipts for ended sessions that have none, and all pending ones.
pub fn count_finished(
    context: &Context,
    journal: &Journal,
    patience: Duration,
) -> Result<(), usage_log::Error> {
    for session in journal.uncounted_sessions()? {
        count(context, journal, &session, patience)?;
    }
    settle(context, journal, patience)
}

/// Records whether a note helped, for a session or for the last one with this note injected. Praise
/// from someone who may verify the note also verifies it. Returns whether all machines get it.
pub fn rate(
    context: &Context,
    journal: &Journal,
    entry: &Entry,
    feedback: Feedback,
    session: Option<String>,
) -> Result<bool, Error> {
    let session = match session {
        Some(session) => Some(session),
        None => journal.last_session_given(entry.id())?,
    };
    let may_verify = !(context.environment.is_agent && is_a_persons(entry));
    let is_verified = feedback == Feedback::Good && may_verify;
    let usage = Usage {
        feedback: vec![(entry.id(), feedback)],
        verified: is_verified.then(|| entry.id()).into_iter().collect(),
        ..Usage::default()
    };
    let is_told = tell(context, journal, session.as_deref(), &usage)?;
    context.index()?;
    Ok(is_told)
}

/// Records that a note is still right. Returns whether all machines get it. The index is not updated.
pub fn verify(
    context: &Context,
    journal: &Journal,
    entry: &Entry,
) -> Result<bool, usage_log::Error> {
    let usage = Usage {
        verified: vec![entry.id()],
        ..Usage::default()
    };
    tell(context, journal, None, &usage)
}

/// Writes a receipt for a statement about notes.
fn tell(
    context: &Context,
    journal: &Journal,
    session: Option<&str>,
    usage: &Usage,
) -> Result<bool, usage_log::Error> {
    let mark = session.map(|session| mark(context, journal, session));
    let project = session
        .map(|session| journal.session(session))
        .transpose()?;
    let project = project.flatten().map(|session| session.project);
    let (told, kept) = usage.part(
        mark.transpose()?,
        project.as_deref(),
        context.environment.now,
        |id| scope(context, id),
    );
    journal.keep_receipts(session, &told, &kept)?;
    settle(context, journal, context::PATIENCE)?;
    Ok(kept.is_empty())
}

/// Writes the pending receipts. If sharing them is switched off, they stay on this machine.
fn settle(
    context: &Context,
    journal: &Journal,
    patience: Duration,
) -> Result<(), usage_log::Error> {
    if context.config.learn.sync {
        let receipts = Receipts::new(context.home.clone());
        return receipts.settle(journal, &context.machine_id(), patience);
    }
    for (key, _) in journal.waiting_receipts()? {
        journal.receipt_settled(&key, false)?;
    }
    Ok(())
}

fn mark(
    context: &Context,
    journal: &Journal,
    session: &str,
) -> Result<SessionMark, usage_log::Error> {
    Receipts::new(context.home.clone()).session_mark(journal, session)
}

/// Returns a note's scope; `None` if receipts are not shared with other machines.
fn scope(context: &Context, id: NoteId) -> Option<Scope> {
    let path = context.config.learn.sync.then(|| context.notes.find(id))?;
    path.map(|path| path.scope)
}
