//! What a prompt gets in full, as a pointer, or not at all, and how many tokens that takes.

use anamnesis_note::id::NoteId;
use anamnesis_recall::{
    evaluation::{mean, share},
    note_set::{InjectedNote, Outcome},
    render::{Block, Budget, Recalled, pointer_block, recalled_block},
};
use chrono::Utc;
use serde_json::{Value, json};

use super::{Question, count};

/// The token budget of the settings.
const BUDGET: Budget = Budget(600);

/// The category of prompts that ask nothing.
const CHIT_CHAT: &str = "none:vague";

/// What one prompt gets.
#[derive(Debug, Default)]
pub(super) struct Injected {
    full: Vec<NoteId>,
    pointers: Vec<NoteId>,
    tokens: usize,
}

impl Injected {
    pub(super) fn new(outcome: &Outcome) -> Self {
        let notes = |notes: &[InjectedNote]| -> Vec<Recalled> {
            notes.iter().map(|note| note.recalled.clone()).collect()
        };
        let (full, pointers) = (notes(&outcome.given), notes(&outcome.pointers));
        let blocks = [
            recalled_block(&full, BUDGET, Utc::now(), NoteId::short),
            pointer_block(&pointers, NoteId::short),
        ];
        let ids = |notes: &[Recalled]| notes.iter().map(|recalled| recalled.note.id).collect();
        Self {
            full: ids(&full),
            pointers: ids(&pointers),
            tokens: blocks.iter().map(Block::tokens).sum(),
        }
    }

    pub(super) fn pointers(&self) -> &[NoteId] {
        &self.pointers
    }
}

/// The measures of a set.
#[derive(Debug)]
pub(super) struct Tiers {
    /// The shares of answerable prompts with a right note in full, and in full or as a pointer.
    right: [Option<f64>; 2],
    /// The shares of other prompts with a note in full, and with anything.
    wrong: [Option<f64>; 2],
    /// The share of answerable prompts that get notes in full, but no right one.
    decoys: Option<f64>,
    /// The mean tokens of answerable, of other prompts, and of those that ask nothing.
    tokens: [Option<f64>; 3],
}

impl Tiers {
    /// Measures prompts with what they got.
    pub(super) fn new<'a>(prompts: impl Iterator<Item = (&'a Question, &'a Injected)>) -> Self {
        let (answerable, others): (Vec<_>, Vec<_>) =
            prompts.partition(|(question, _)| !question.right.is_empty());
        let has_right = |question: &Question, notes: &[NoteId]| {
            notes.iter().any(|id| question.right.contains(id))
        };
        let in_full = |(question, got): &(&Question, &Injected)| has_right(question, &got.full);
        let tokens = |prompts: &[(&Question, &Injected)], is_chit_chat: Option<bool>| {
            let wanted = prompts.iter().filter(|(question, _)| {
                is_chit_chat.is_none_or(|wanted| wanted == (question.category == CHIT_CHAT))
            });
            mean(wanted.map(|(_, got)| count(got.tokens)))
        };
        Self {
            right: [
                share(answerable.iter().map(in_full)),
                share(
                    answerable
                        .iter()
                        .map(|prompt| in_full(prompt) || has_right(prompt.0, &prompt.1.pointers)),
                ),
            ],
            wrong: [
                share(others.iter().map(|(_, got)| !got.full.is_empty())),
                share(others.iter().map(|(_, got)| got.tokens > 0)),
            ],
            decoys: share(
                (answerable.iter()).map(|prompt| !prompt.1.full.is_empty() && !in_full(prompt)),
            ),
            tokens: [
                tokens(&answerable, None),
                tokens(&others, Some(false)),
                tokens(&others, Some(true)),
            ],
        }
    }

    pub(super) fn text(&self) -> String {
        let percent = |share: Option<f64>| 100.0 * share.unwrap_or_default();
        let [full, any] = self.right.map(percent);
        let [false_full, false_any] = self.wrong.map(percent);
        let [answerable, others, chit_chat] = self.tokens.map(Option::unwrap_or_default);
        format!(
            "right in full {full:.1}, in full or as a pointer {any:.1}, only decoys in full {:.1}; \
             false in full {false_full:.1}, false at all {false_any:.1}; \
             tokens: answerable {answerable:.0}, others {others:.0}, chit-chat {chit_chat:.0}\n",
            percent(self.decoys)
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "right_full": self.right[0], "right_full_or_pointer": self.right[1],
            "decoys_full": self.decoys, "false_full": self.wrong[0], "false_any": self.wrong[1],
            "tokens": {
                "answerable": self.tokens[0], "others": self.tokens[1], "chit_chat": self.tokens[2],
            },
        })
    }
}
