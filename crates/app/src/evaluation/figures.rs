//! Measures how well searches find the notes that answer questions.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{id::NoteId, note::State, project_key::is_shared};
use anamnesis_recall::{
    evaluation::{RelevantRanks, mean, share},
    search,
};
use anamnesis_store::{
    index::{Entry, Filter, Index},
    project::Project,
};
use serde::Serialize;

use crate::{
    Error, context::Context, embedding::QueryEncoder, evaluation_set::Case, status::at_start,
};

/// The depths at which recall is reported.
const DEPTHS: [usize; 4] = [1, 3, 5, 8];

/// The cut-off rank for the mean reciprocal rank.
const RANKED: usize = 8;

/// The figures of one measurement.
#[derive(Serialize)]
pub struct Figures {
    /// How well searches find the right notes.
    pub recall: RecallFigures,
    /// The sizes of working sets.
    pub working_set: WorkingSetFigures,
    /// How many notes can be found.
    pub notes: usize,
}

/// How well searches find the right notes.
#[derive(Serialize)]
pub struct RecallFigures {
    /// The number of questions.
    #[serde(rename = "n_cases")]
    pub asked: usize,
    /// Recall at each depth.
    #[serde(rename = "recall_at")]
    pub within: BTreeMap<usize, Option<f64>>,
    /// The mean reciprocal rank.
    #[serde(rename = "mrr")]
    pub reciprocal: Option<f64>,
    /// The number of questions that were left out because nobody approved them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreviewed: Option<usize>,
}

/// The sizes of working sets.
#[derive(Serialize)]
pub struct WorkingSetFigures {
    /// The mean number of tokens in the working set of a project.
    pub mean_tokens: Option<f64>,
    /// The number of tokens in all titles and texts, at four characters each.
    pub corpus_tokens: usize,
}

impl Figures {
    /// Runs every question as a search. A note that replaces the right one counts, too. Recall is
    /// also reported at `depth`.
    pub fn new(
        context: &Context,
        index: &Index,
        cases: &[(usize, &Case)],
        depth: Option<usize>,
    ) -> Result<Self, Error> {
        let depths: BTreeSet<usize> = DEPTHS.into_iter().chain(depth).collect();
        let most = depths.last().copied().unwrap_or(RANKED).max(RANKED);
        let encoder = QueryEncoder::default();
        let mut places = Vec::with_capacity(cases.len());
        for (_, case) in cases {
            let mut right: Vec<NoteId> = case.notes().collect();
            for id in case.notes() {
                right.extend(index.successors(id)?);
            }
            let vector = encoder.vector(context, index, &case.query);
            let (filter, vector) = (Filter::default(), vector.as_deref());
            let hits = search::search_with_meaning(index, &case.query, vector, &filter, most)?;
            let found: Vec<_> = hits.iter().map(|hit| hit.entry.id()).collect();
            places.push(RelevantRanks::new(&found, &right));
        }
        let within = |depth: usize| share(places.iter().map(|places| places.is_within(depth)));
        let entries = index.list(&Filter::default(), usize::MAX)?;
        let lengths = entries.iter().map(|entry| usize::try_from(entry.length));
        let recall = RecallFigures {
            asked: cases.len(),
            within: depths.into_iter().map(|it| (it, within(it))).collect(),
            reciprocal: mean(places.iter().map(|places| places.reciprocal_rank(RANKED))),
            unreviewed: None,
        };
        let working_set = WorkingSetFigures {
            mean_tokens: mean_tokens(context, index, &entries)?,
            corpus_tokens: lengths.flatten().sum::<usize>().div_ceil(4),
        };
        Ok(Self {
            recall,
            working_set,
            notes: entries.len(),
        })
    }
}

/// The ids in the measured questions that belong to no note, with their line numbers.
pub fn unknown_ids(index: &Index, cases: &[(usize, &Case)]) -> Result<Vec<(usize, String)>, Error> {
    let mut unknown = Vec::new();
    for (line, case) in cases {
        for id in &case.relevant_ids {
            let entry = match id.parse() {
                Ok(id) => index.get(id)?,
                Err(_) => None,
            };
            if entry.is_none_or(|entry| entry.state == State::Forgotten) {
                unknown.push((*line, id.clone()));
            }
        }
    }
    Ok(unknown)
}

/// The mean number of tokens that a session of a project starts with.
fn mean_tokens(context: &Context, index: &Index, entries: &[Entry]) -> Result<Option<f64>, Error> {
    let projects: BTreeSet<&str> = entries.iter().map(|entry| entry.project.as_str()).collect();
    let mut tokens = Vec::new();
    for project in projects.into_iter().filter(|project| !is_shared(project)) {
        let project = Project::named(project);
        let (_, block) = at_start(context, index, None, &project, None)?;
        tokens.push(block.tokens() as f64);
    }
    Ok(mean(tokens))
}
