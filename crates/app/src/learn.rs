//! Learning from use: what a turn used, and the receipts that come of it.
//!
//! Nothing here is in a session's way: a receipt that cannot be written now waits in the records, and
//! the deferred process writes it.

use std::{cell::OnceCell, collections::HashMap, time::Duration};

use anamnesis_note::{
    id::NoteId,
    note::Scope,
    usage_log::{SessionMark, Usage, Weight},
};
use anamnesis_recall::{
    rank,
    usage_detection::{self, GivenNote, ToolCall, Turn},
};
use anamnesis_store::{
    index::{Filter, Index},
    journal::{self, Journal},
    usage_log::{self, Receipts},
};
use anamnesis_text::hash::text_hash;
use chrono::{DateTime, Utc};

use crate::context::Context;

/// How long a hook waits for the receipts.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// What a context used in a turn of the notes that it was given.
#[derive(Debug)]
pub struct TurnUses {
    /// The subagent whose context it is; empty for the session's own.
    agent: String,
    /// The number of the turn.
    turn: u32,
    notes: Vec<(NoteId, Weight)>,
}

impl TurnUses {
    /// Keeps it, within the transaction of whoever calls.
    pub fn keep(
        &self,
        journal: &Journal,
        session: &str,
        now: DateTime<Utc>,
    ) -> Result<(), journal::Error> {
        journal.used(session, &self.agent, self.turn, &self.notes, now)
    }
}

/// What a context has used by the end of a turn; nothing where it was given nothing. `agent` is empty
/// for the session's own context.
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
            // What it said when it was given is not known any more.
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
            input: &event.input,
            at: event.at,
        })
        .collect();
    let happened = Turn {
        prompt: turn.prompt.as_deref().unwrap_or_default(),
        answer,
        calls: &calls,
    };
    // Opened once a word has to be weighed; without an index all weigh the same.
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

/// Makes the receipt of what a session was shown and used since the last one, and writes it.
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

/// Makes the receipts of sessions that are over and have none, and writes what waits.
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

/// Makes and writes the receipt of what somebody said of notes. Tells whether all of it is told to other
/// machines.
pub fn tell(
    context: &Context,
    journal: &Journal,
    session: Option<&str>,
    usage: &Usage,
    patience: Duration,
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
    settle(context, journal, patience)?;
    Ok(kept.is_empty())
}

/// Writes the receipts that wait. Where nothing is to be told to other machines any more, they stay.
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

/// Whether a note travels; nothing where no other machine is to be told of it.
fn scope(context: &Context, id: NoteId) -> Option<Scope> {
    let path = context.config.learn.sync.then(|| context.notes.find(id))?;
    path.map(|path| path.scope)
}
