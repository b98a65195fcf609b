//! Learning from use: detects what a turn used.

use std::{cell::OnceCell, collections::HashMap};

use anamnesis_note::id::NoteId;
use anamnesis_recall::{
    rank,
    usage_detection::{self, GivenNote},
};
use anamnesis_store::{
    index::{Filter, Index},
    journal::{self, Journal, Weight},
};
use anamnesis_text::hash::text_hash;
use chrono::{DateTime, Utc};

use crate::context::Context;

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
    let notes = usage_detection::detect(&given, &turn, answer, rarity);
    Ok((!notes.is_empty()).then(|| TurnUses {
        agent: agent.to_owned(),
        turn: turn.number,
        notes,
    }))
}
