//! The figures of `eval run` with this machine's own questions, kept so that they can be compared
//! over time. They hold numbers only.

use std::fs;

use anamnesis_note::note::timestamp;
use anamnesis_store::fs::home::Home;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::figures::{Figures, RANKED};
use crate::{Error, context::Context, evaluation_set::write_lines};

/// How many runs are kept.
const KEPT: usize = 500;

/// One run. The shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRun {
    /// When it ended, as in the front matter of notes.
    pub at: String,
    /// The version of the program.
    pub version: String,
    /// The number of questions.
    pub questions: usize,
    /// The share of questions whose note was the first result.
    pub first: f64,
    /// The share of questions whose note was among the results at the greatest standard depth.
    pub found: f64,
}

impl EvaluationRun {
    /// Returns the run with these figures; none without questions.
    pub fn new(now: DateTime<Utc>, figures: &Figures) -> Option<Self> {
        let (_, recall) = figures.recall.first()?;
        let within = |wanted| figures.within().find(|(depth, _)| *depth == wanted)?.1;
        Some(Self {
            at: timestamp(now),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            questions: recall.asked,
            first: within(1)?,
            found: within(RANKED)?,
        })
    }

    /// Adds the run to those of this machine, and drops the oldest ones above the limit.
    pub fn keep(self, context: &Context) -> Result<(), Error> {
        let mut runs = recorded(&context.home);
        runs.push(self);
        let kept = runs.iter().skip(runs.len().saturating_sub(KEPT));
        let lines = kept.filter_map(|run| serde_json::to_string(run).ok());
        write_lines(&context.home.evaluation_runs(), &lines.collect::<Vec<_>>())
    }
}

/// Returns the recorded runs, oldest first, without lines that cannot be read.
pub fn recorded(home: &Home) -> Vec<EvaluationRun> {
    let text = fs::read_to_string(home.evaluation_runs()).unwrap_or_default();
    let runs = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    runs.collect()
}
