//! Measures how well searches find the notes that answer questions.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{id::NoteId, note::State, project_key::is_shared};
use anamnesis_recall::{
    evaluation::{RelevantRanks, mean, share},
    render, search,
    session_start::{self, DEFAULT_K, Request},
};
use anamnesis_store::index::{Entry, Filter, Index};

use super::library::Library;
use crate::{Error, context::Context, embedding::QueryEncoder, evaluation_set::Case};

/// The depths at which recall is reported.
const DEPTHS: [usize; 4] = [1, 3, 5, 8];

/// The cut-off rank for the mean reciprocal rank.
pub(super) const RANKED: usize = 8;

/// The figures of one measurement.
pub struct Figures {
    /// The depths at which recall is measured.
    pub depths: BTreeSet<usize>,
    /// Recall of all questions, then by source.
    pub recall: Vec<(String, Recall)>,
    /// For each question: the ranks of the notes that it names, and the ranks of all notes that
    /// answer it, including replacements.
    pub places: Vec<(RelevantRanks, RelevantRanks)>,
    /// How many notes can be found.
    pub notes: usize,
    /// The number of tokens in the working set of each project.
    pub working_sets: BTreeMap<String, usize>,
    /// The number of tokens in all titles and texts.
    pub corpus: usize,
}

/// Recall at each depth, and the mean reciprocal rank.
pub struct Recall {
    /// The number of questions.
    pub asked: usize,
    /// Recall at each depth, in the order of `depths`.
    pub within: Vec<Option<f64>>,
    /// The mean reciprocal rank.
    pub reciprocal: Option<f64>,
}

impl Figures {
    /// Runs every question. Recall is also reported at `depth`.
    pub fn new(
        context: &Context,
        index: &Index,
        cases: &[(usize, &Case)],
        depth: Option<usize>,
    ) -> Result<Self, Error> {
        let depths: BTreeSet<usize> = DEPTHS.into_iter().chain(depth).collect();
        let most = depths.last().copied().unwrap_or(RANKED).max(RANKED);
        let mut library = Library::new(context, index, cases)?;
        let encoder = QueryEncoder::default();
        let mut places = Vec::with_capacity(cases.len());
        for (_, case) in cases {
            let named: Vec<NoteId> = case.notes().collect();
            let right = library.right(case)?;
            let hits = library.ask(case, |index| {
                let vector = encoder.vector(context, index, &case.query);
                let (filter, vector) = (Filter::default(), vector.as_deref());
                search::search_with_meaning(index, &case.query, vector, &filter, most)
            })?;
            let found: Vec<_> = hits.iter().map(|hit| hit.entry.id()).collect();
            places.push((
                RelevantRanks::new(&found, &named),
                RelevantRanks::new(&found, &right),
            ));
        }
        let answers: Vec<(&Case, &RelevantRanks)> = cases
            .iter()
            .zip(&places)
            .map(|((_, case), (_, places))| (*case, places))
            .collect();
        let entries = index.list(&Filter::default(), usize::MAX)?;
        Ok(Self {
            recall: by_source(&answers, &depths),
            depths,
            notes: entries.len(),
            working_sets: working_sets(context, index, &entries)?,
            corpus: corpus(&entries),
            places,
        })
    }

    /// The number of questions.
    pub fn asked(&self) -> usize {
        self.places.len()
    }

    /// Recall at each depth, for all questions.
    pub fn within(&self) -> impl Iterator<Item = (usize, Option<f64>)> {
        let all = self.recall.first().map(|(_, recall)| &recall.within);
        let depths = self.depths.iter().copied();
        depths.zip(all.into_iter().flatten().copied())
    }

    /// The mean reciprocal rank of all questions.
    pub fn reciprocal(&self) -> Option<f64> {
        let all = self.recall.first();
        all.and_then(|(_, recall)| recall.reciprocal)
    }

    /// The mean number of tokens in a working set.
    #[expect(clippy::cast_precision_loss, reason = "tokens of a block")]
    pub fn mean_tokens(&self) -> Option<f64> {
        mean(self.working_sets.values().map(|tokens| *tokens as f64))
    }

    /// The number of tokens in all titles and texts.
    #[expect(clippy::cast_precision_loss, reason = "tokens of all notes")]
    pub fn corpus_tokens(&self) -> f64 {
        self.corpus as f64
    }

    /// The median number of tokens in a working set.
    pub fn median_tokens(&self) -> Option<f64> {
        median(self.working_sets.values().copied().collect())
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

fn by_source(
    answers: &[(&Case, &RelevantRanks)],
    depths: &BTreeSet<usize>,
) -> Vec<(String, Recall)> {
    let recall = |places: Vec<&RelevantRanks>| Recall {
        asked: places.len(),
        within: depths
            .iter()
            .map(|depth| share(places.iter().map(|places| places.is_within(*depth))))
            .collect(),
        reciprocal: mean(places.iter().map(|places| places.reciprocal_rank(RANKED))),
    };
    let mut sources: BTreeMap<&str, Vec<&RelevantRanks>> = BTreeMap::new();
    for (case, places) in answers {
        sources.entry(case.kind()).or_default().push(places);
    }
    let all = answers.iter().map(|(_, places)| *places).collect();
    let sources = sources
        .into_iter()
        .map(|(source, places)| (source.to_owned(), recall(places)));
    std::iter::once(("all".to_owned(), recall(all)))
        .chain(sources)
        .collect()
}

/// The number of tokens in the working set of each project.
fn working_sets(
    context: &Context,
    index: &Index,
    entries: &[Entry],
) -> Result<BTreeMap<String, usize>, Error> {
    let projects: BTreeSet<&str> = entries.iter().map(|entry| entry.project.as_str()).collect();
    let now = context.environment.now;
    let mut tokens = BTreeMap::new();
    for project in projects.into_iter().filter(|project| !is_shared(project)) {
        let request = Request {
            project,
            also: &[],
            k: DEFAULT_K,
            session: None,
            resumed: None,
            folder: None,
            now,
            had: &[],
            journal: None,
        };
        let set = session_start::working_set(index, &context.notes, &request)?;
        let block = render::start_block(&set.chosen, &set.said, &set.failing, now, |id| {
            Context::short(index, id)
        });
        tokens.insert(project.to_owned(), block.tokens());
    }
    Ok(tokens)
}

/// The number of tokens in all titles and bodies, at four characters each.
fn corpus(entries: &[Entry]) -> usize {
    let lengths = entries.iter().map(|entry| usize::try_from(entry.length));
    lengths.flatten().sum::<usize>().div_ceil(4)
}

#[expect(clippy::cast_precision_loss, reason = "tokens of a block")]
fn median(mut numbers: Vec<usize>) -> Option<f64> {
    numbers.sort_unstable();
    let upper = *numbers.get(numbers.len() / 2)?;
    let lower = *numbers.get((numbers.len() - 1) / 2)?;
    Some((lower + upper) as f64 / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        for (numbers, expected) in [
            (vec![], None),
            (vec![7], Some(7.0)),
            (vec![9, 1], Some(5.0)),
            (vec![9, 1, 2], Some(2.0)),
        ] {
            assert_eq!(median(numbers), expected);
        }
    }
}
