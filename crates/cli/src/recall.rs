//! Recall as hooks and commands do it: what is asked, what is known, what comes of it as a block and
//! as a record. Nothing is recorded here.

use std::collections::HashMap;

use anamnesis_core::{
    clean::one_line,
    echo::Echoes,
    id::NoteId,
    intake::MAX_TEXT,
    link::{Edge, MAX_CITING, Relation, file_edges},
    note::text_hash,
    render::{Block, Budget, Level, recalled_block},
    sanitize,
    transcript::{Prompt, PromptKind},
};
use anamnesis_recall::{
    gate::Floor,
    learned::learned_links,
    prompt::sentences,
    selection::{self, Knowledge, Limits, Outcome, Request, Standing},
    stale::{is_news, looked_at},
};
use anamnesis_store::{
    config,
    index::{Error, Index},
    journal::{Journal, Ledger, Run, Shown},
    project::Project,
};

use crate::{context::Context, ui};

/// More files of one note are not looked at.
const MAX_PATHS: usize = 8;

/// How many held-back notes the records tell of.
const MAX_HELD: usize = 10;

/// At which occasion notes come unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// A prompt of the person's.
    Prompt,
    /// The task of a subagent.
    Agent,
}

impl Lane {
    /// The word in the records.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Agent => "agent",
        }
    }

    /// Whether the person wants it.
    fn is_on(self, recall: &config::Recall) -> bool {
        match self {
            Self::Prompt => recall.prompt,
            Self::Agent => recall.agent,
        }
    }

    /// How much may come. A subagent works on one task and has less to read it with.
    pub(crate) fn limits(self, recall: &config::Recall) -> (Limits, Budget) {
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
        };
        let tokens = number(recall.tokens);
        let budget = match self {
            Self::Prompt => tokens,
            Self::Agent => tokens * 2 / 3,
        };
        (limits, Budget(budget))
    }
}

/// The context that notes are wanted for.
pub(crate) struct Asker<'a> {
    pub(crate) context: &'a Context,
    pub(crate) project: &'a Project,
    /// This machine's records, where there are some.
    pub(crate) journal: Option<&'a Journal>,
    pub(crate) lane: Lane,
    /// What it has seen.
    pub(crate) ledger: Ledger,
    /// The subagent; empty for the session's own context.
    pub(crate) agent: String,
}

/// What came of it.
pub(crate) struct Answer {
    pub(crate) block: Block,
    pub(crate) shown: Vec<Shown>,
    pub(crate) run: Run,
    pub(crate) outcome: Outcome,
}

/// Why memory is not asked at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// The person wants nothing at such occasions.
    SwitchedOff(Lane),
    /// It is a command, or no person typed it.
    NoQuestion,
}

impl Unasked {
    /// The words that explain it to a person.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::SwitchedOff(Lane::Prompt) => "recall.prompt is off",
            Self::SwitchedOff(Lane::Agent) => "recall.agent is off",
            Self::NoQuestion => "it is a command, or no person typed it",
        }
    }
}

/// What of a text is asked: nothing that the records would not keep of it.
///
/// # Errors
/// Why it is not asked.
pub(crate) fn question(
    text: &str,
    echoes: &Echoes,
    lane: Lane,
    settings: &config::Recall,
) -> Result<Vec<String>, Unasked> {
    if !lane.is_on(settings) {
        return Err(Unasked::SwitchedOff(lane));
    }
    let prompt = Prompt::unmasked(text);
    if prompt.kind != PromptKind::Person {
        return Err(Unasked::NoQuestion);
    }
    Ok(sentences(
        &sanitize::ends(&prompt.text, echoes, MAX_TEXT).value,
    ))
}

/// What the person is told of it, in a line; nothing where nothing came.
pub(crate) fn line(outcome: &Outcome) -> Option<String> {
    let first = outcome.given.first()?;
    let title = ui::shorten(&one_line(&first.recalled.note.title), 50);
    Some(match outcome.given.len() {
        1 => format!("recalled \"{title}\" · /memory-why"),
        count => format!("recalled \"{title}\" and {} more · /memory-why", count - 1),
    })
}

impl Asker<'_> {
    /// Chooses and renders what comes with a question.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub(crate) fn recall(&self, sentences: &[String]) -> Result<Answer, Error> {
        let (outcome, block) = match selection::small_talk(sentences) {
            Some(outcome) => (outcome, Block::default()),
            None => self.search(sentences)?,
        };
        let shown = shown(&outcome, &block);
        let run = Run {
            lane: self.lane.as_str().to_owned(),
            agent: self.agent.clone(),
            at: self.context.environment.now.timestamp_millis(),
            terms: outcome.terms,
            searched: outcome.searched,
            floor: outcome.floor,
            given: shown.len(),
            reason: outcome
                .silence
                .map_or_else(String::new, |silence| silence.as_str().to_owned()),
            held: outcome.held.iter().take(MAX_HELD).cloned().collect(),
        };
        Ok(Answer {
            block,
            shown,
            run,
            outcome,
        })
    }

    fn search(&self, sentences: &[String]) -> Result<(Outcome, Block), Error> {
        let index = Index::open(&self.context.home)?;
        let (limits, budget) = self.lane.limits(&self.context.config.recall);
        let request = Request {
            sentences,
            project: &self.project.key,
            also: &self.project.also,
            limits,
            ledger: &self.ledger,
            knowledge: &Known {
                index: &index,
                journal: self.journal,
                context: self.context,
            },
        };
        let outcome = selection::recall(&index, &self.context.notes, &request)?;
        let notes: Vec<_> = outcome
            .given
            .iter()
            .map(|given| given.recalled.clone())
            .collect();
        let now = self.context.environment.now;
        let block = recalled_block(&notes, budget, now, |id| Context::short(&index, id));
        Ok((outcome, block))
    }
}

/// What the block holds of each note, for the records.
fn shown(outcome: &Outcome, block: &Block) -> Vec<Shown> {
    let levels: HashMap<NoteId, Level> = block.levels.iter().copied().collect();
    outcome
        .given
        .iter()
        .filter_map(|given| {
            let note = &given.recalled.note;
            Some(Shown {
                note: note.id,
                hash: text_hash(&note.body),
                level: levels.get(&note.id)?.as_str(),
                reason: given.reason,
                evidence: Some(given.evidence.clone()),
            })
        })
        .collect()
}

/// What index and records know of notes.
pub(crate) struct Known<'a> {
    pub(crate) index: &'a Index,
    /// This machine's records, where there are some.
    pub(crate) journal: Option<&'a Journal>,
    pub(crate) context: &'a Context,
}

impl Knowledge for Known<'_> {
    // A fault here leaves a note as good as any other: what its words say still holds.
    fn standings(&self, ids: &[NoteId]) -> HashMap<NoteId, Standing> {
        let usage = self.index.usage_of(ids.iter().copied()).unwrap_or_default();
        let nothing = Vec::new();
        let now = self.context.environment.now;
        ids.iter()
            .filter_map(|id| {
                let entry = self.index.get(*id).ok()??;
                let months = usage.get(id).unwrap_or(&nothing);
                Some((*id, Standing::of(&entry, months, now)))
            })
            .collect()
    }

    fn stale(&self, ids: &[NoteId]) -> HashMap<NoteId, String> {
        let stale = self.journal.and_then(|journal| journal.stale(ids).ok());
        let mut stale = stale.unwrap_or_default();
        let usage = self.index.usage_of(stale.keys().copied());
        let (usage, nothing) = (usage.unwrap_or_default(), Vec::new());
        stale.retain(|id, stale| {
            let entry = self.index.get(*id).ok().flatten();
            let months = usage.get(id).unwrap_or(&nothing);
            entry.is_some_and(|entry| is_news(ui::time(stale.gone_at), looked_at(&entry, months)))
        });
        let stale = stale.into_iter();
        stale.map(|(id, stale)| (id, stale.reason)).collect()
    }

    fn links(&self, ids: &[NoteId]) -> Vec<Edge> {
        let mut edges = Vec::new();
        let now = self.context.environment.now;
        if self.context.config.learn.links {
            for id in ids {
                let learned = learned_links(self.index, *id, now).unwrap_or_default();
                edges.extend(learned.into_iter().map(|(other, weight)| Edge {
                    from: *id,
                    to: other,
                    relation: Relation::Learned,
                    weight: Some(weight),
                }));
            }
        }
        for (id, paths) in self.index.cited_by(ids).unwrap_or_default() {
            let Ok(Some(entry)) = self.index.get(id) else {
                continue;
            };
            for path in paths.iter().take(MAX_PATHS) {
                edges.extend(self.of_file(id, &entry.project, path));
            }
        }
        edges
    }
}

impl Known<'_> {
    /// Links to the other notes of its project that cite a file.
    fn of_file(&self, id: NoteId, project: &str, path: &str) -> Vec<Edge> {
        let citing = self.index.notes_citing(project, path, MAX_CITING);
        let mut edges = file_edges(&citing.unwrap_or_default());
        edges.retain(|edge| edge.from == id || edge.to == id);
        edges
    }
}
