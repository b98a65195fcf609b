//! Recall for hooks and commands: builds the question, chooses the notes, and returns the block and
//! the journal records. Nothing is recorded here.

use std::{collections::HashMap, time::Duration};

use anamnesis_note::id::NoteId;
use anamnesis_recall::render::{Block, Budget, Level, Recalled, pointer_block, recalled_block};
use anamnesis_recall::{
    knowledge::StoreKnowledge,
    note_set::{self, InjectedNote, Limits, Outcome, Request},
    prompt,
    rank::Query,
    threshold::Floor,
};
use anamnesis_session::prompt::SafePrompt;
use anamnesis_store::{
    index::{Error, Index},
    journal::{Journal, Ledger, Run, ShownNote, WITHOUT_MEANING},
    project::Project,
    settings::config,
};
use anamnesis_text::{clean::one_line, hash::text_hash};

use crate::{context::Context, embedding::PromptEncoder, format, pause::Off};

/// How many held-back notes the journal keeps per recall.
const MAX_HELD: usize = 10;

/// The maximum number of pointers at a prompt.
const MAX_POINTERS: usize = 2;

/// An occasion at which notes are injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// A prompt of the person.
    Prompt,
    /// The task of a subagent.
    Agent,
}

impl Lane {
    /// The name in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Agent => "agent",
        }
    }

    /// Returns the limits and the token budget. A subagent gets less, because it works on one task.
    pub fn limits(self, recall: &config::Recall) -> (Limits, Budget) {
        let number = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let limits = Limits {
            floor: if recall.wide {
                Floor::Wide
            } else {
                Floor::Usual
            },
            notes: number(recall.notes),
            linked: match self {
                Self::Prompt => 1,
                Self::Agent => 0,
            },
            pointers: match self {
                Self::Prompt if recall.pointers && recall.notes > 0 => MAX_POINTERS,
                _ => 0,
            },
        };
        let tokens = number(recall.tokens);
        let budget = match self {
            Self::Prompt => tokens,
            Self::Agent => tokens * 2 / 3,
        };
        (limits, Budget(budget))
    }
}

/// The context that notes are recalled for.
pub struct Asker<'a> {
    /// The store.
    pub context: &'a Context,
    /// The project to recall for.
    pub project: &'a Project,
    /// The journal, if there is one.
    pub journal: Option<&'a Journal>,
    /// The hook.
    pub lane: Lane,
    /// The notes that this context has already seen.
    pub ledger: Ledger,
    /// The note of the session that asks.
    pub own: Option<NoteId>,
    /// The subagent; empty for the session's own context.
    pub agent: String,
}

/// The result of a recall.
pub struct RecallResult {
    /// The block to inject.
    pub block: Block,
    /// The notes in the block, for the journal.
    pub shown: Vec<ShownNote>,
    /// The recall itself, for the journal.
    pub run: Run,
    /// Which notes were chosen and which were held back.
    pub outcome: Outcome,
    /// Whether only the newest notes were searched, see [`open_index`].
    pub is_partial: bool,
}

/// The text for the model if only the newest notes were read.
pub const PARTIAL: &str = "anamnesis: the index of the notes is being rebuilt; only this project's newest notes were read";

/// How long the files of the newest notes are read.
const NEWEST_TIME: Duration = Duration::from_millis(200);

/// Opens the index for a hook. Where it is missing or cannot be used, as after an update, the newest
/// notes of the project itself are read. Also returns whether that is so.
pub fn open_index(context: &Context, project: &Project) -> Result<(Index, bool), Error> {
    match Index::open(&context.home) {
        Ok(index) => Ok((index, false)),
        Err(error) => Index::of_newest(&context.notes, &project.all_keys(), NEWEST_TIME)
            .map(|index| (index, true))
            .map_err(|_| error),
    }
}

/// Why recall does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// The hooks are switched off.
    Off(Off),
    /// The settings disable it for this occasion.
    SwitchedOff,
    /// The text asks for something to be remembered.
    Remember,
    /// The text is a command, or no person typed it.
    NoQuestion,
}

impl Skipped {
    /// The reason, for a person.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Off(off) => off.reason(),
            Self::Remember => "it asks for something to be remembered",
            Self::SwitchedOff => "recall.prompt is off",
            Self::NoQuestion => "it is a command, or no person typed it",
        }
    }
}

/// Returns the query for a prompt or for the task of a subagent, or why recall does not run.
pub fn question(prompt: &SafePrompt, settings: &config::Recall) -> Result<Query, Skipped> {
    if !settings.prompt {
        return Err(Skipped::SwitchedOff);
    }
    prompt::query(prompt).ok_or(Skipped::NoQuestion)
}

/// Returns the line that tells the person what was recalled; `None` if nothing was.
pub fn line(outcome: &Outcome) -> Option<String> {
    let first = outcome.given.first()?;
    let title = format::shorten(&one_line(&first.recalled.note.title), 50);
    Some(match outcome.given.len() {
        1 => format!("recalled \"{title}\" · /memory-why"),
        count => format!("recalled \"{title}\" and {} more · /memory-why", count - 1),
    })
}

impl Asker<'_> {
    /// Chooses and renders the notes for a query.
    pub fn recall(&self, query: &Query) -> Result<RecallResult, Error> {
        let (outcome, block, is_partial, is_late) = match note_set::small_talk(query) {
            Some(outcome) => (outcome, Block::default(), false, false),
            None => self.search(query)?,
        };
        let silence = outcome.silence.iter().map(|silence| silence.as_str());
        let reasons: Vec<&str> = silence.chain(is_late.then_some(WITHOUT_MEANING)).collect();
        let shown = shown(&outcome, &block);
        let run = Run {
            lane: self.lane.as_str().to_owned(),
            agent: self.agent.clone(),
            at: self.context.environment.now.timestamp_millis(),
            terms: outcome.terms,
            searched: outcome.searched,
            floor: outcome.floor,
            given: outcome.given.len().min(shown.len()),
            reason: reasons.join(" · "),
            held: outcome.held.iter().take(MAX_HELD).cloned().collect(),
        };
        Ok(RecallResult {
            block,
            shown,
            run,
            outcome,
            is_partial,
        })
    }

    /// Also returns whether only the newest notes were searched, and whether their meaning took too long.
    fn search(&self, query: &Query) -> Result<(Outcome, Block, bool, bool), Error> {
        let encoder = PromptEncoder::start(self.context, query);
        let (index, is_partial) = open_index(self.context, self.project)?;
        let (limits, budget) = self.lane.limits(&self.context.config.recall);
        let request = Request {
            query,
            project: &self.project.key,
            also: &self.project.also,
            limits,
            ledger: &self.ledger,
            own: self.own,
            now: self.context.environment.now,
            knowledge: &known(self.context, &index, self.journal),
            vector: &|| encoder.as_ref()?.vector(self.context, &index),
        };
        let outcome = note_set::recall(&index, &self.context.notes, &request)?;
        let short = |id| Context::short(&index, id);
        // There are pointers only if no note is injected.
        let block = if outcome.pointers.is_empty() {
            let now = self.context.environment.now;
            recalled_block(&recalled(&outcome.given, self.project), budget, now, short)
        } else {
            pointer_block(&recalled(&outcome.pointers, self.project), short)
        };
        let is_late = encoder.is_some_and(|encoder| encoder.is_late());
        Ok((outcome, block, is_partial, is_late))
    }
}

fn recalled(notes: &[InjectedNote], project: &Project) -> Vec<Recalled> {
    let recalled = notes.iter().map(|note| {
        let mut recalled = note.recalled.clone();
        let remark = project.remark_on(&recalled.note.project);
        recalled.remarks.extend(remark);
        recalled
    });
    recalled.collect()
}

/// Returns how much of each note the block contains, for the journal.
fn shown(outcome: &Outcome, block: &Block) -> Vec<ShownNote> {
    let levels: HashMap<NoteId, Level> = block.levels.iter().copied().collect();
    outcome
        .given
        .iter()
        .chain(&outcome.pointers)
        .filter_map(|given| {
            let note = &given.recalled.note;
            Some(ShownNote {
                note: note.id,
                hash: text_hash(&note.body),
                level: levels.get(&note.id)?.as_str(),
                reason: given.reason.as_str(),
                evidence: Some(given.evidence.clone()),
            })
        })
        .collect()
}

/// Combines index and journal as the source of links and usage.
pub fn known<'a>(
    context: &Context,
    index: &'a Index,
    journal: Option<&'a Journal>,
) -> StoreKnowledge<'a> {
    StoreKnowledge {
        index,
        journal,
        now: context.environment.now,
    }
}
