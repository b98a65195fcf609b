//! Measures on a copy of the notes how a reflection or a merge would change recall.

use std::collections::BTreeMap;

use anamnesis_distill::{
    merge::{self, Author, MergeOutcome},
    model::Model,
    reflection,
    window::tokens,
};
use anamnesis_note::note::Note;
use anamnesis_store::{journal::Journal, notes::Stored};
use serde::Serialize;

use super::{figures::Figures, sandbox::Sandbox};
use crate::{
    Error,
    context::{Context, TIMEOUT},
    evaluation_set::Case,
    reflect::Question,
    upkeep::loaded::Loaded,
};

/// An experiment on a copy of the notes, which is deleted with it.
pub struct Experiment<'a> {
    context: &'a Context,
    sandbox: Sandbox,
    journal: Journal,
    model: &'a Model,
}

/// The result for all projects.
#[derive(Default)]
pub struct Tried {
    /// The projects that the model was asked about.
    pub projects: Vec<TriedProject>,
    /// How many projects have too few notes.
    pub skipped: usize,
}

/// The result for a project.
pub struct TriedProject {
    /// The project's key.
    pub project: String,
    /// How many notes the model got.
    pub notes: usize,
    /// How many notes were distilled or groups merged, or why the attempt failed.
    pub result: Result<usize, Error>,
}

/// The result of an experiment.
#[derive(Serialize)]
pub struct ExperimentReport {
    /// The figures of the notes as they are.
    pub before: Figures,
    /// The figures after the model's changes.
    pub after: Figures,
    /// How many projects were distilled or merged.
    pub reflected: usize,
    /// How many projects have too few notes.
    pub skipped: usize,
    /// In how many projects it failed.
    pub failed: usize,
}

/// Called with a project and the size of the request in tokens before the model is asked. The
/// result is dropped after the answer.
pub type Announce<'a, G> = &'a dyn Fn(&str, usize) -> G;

impl<'a> Experiment<'a> {
    /// Copies the notes.
    pub fn new(context: &'a Context, model: &'a Model) -> Result<Self, Error> {
        Ok(Self {
            context,
            journal: Journal::open(&context.home, TIMEOUT)?,
            sandbox: Sandbox::new(context)?,
            model,
        })
    }

    /// Runs the questions on the copy.
    pub fn measure(&self, cases: &[(usize, &Case)]) -> Result<Figures, Error> {
        let copy = &self.sandbox.context;
        Figures::new(copy, &copy.index()?, cases, None)
    }

    /// Reflects on each project that has enough sessions.
    pub fn reflect<G>(&self, announce: Announce<'_, G>) -> Result<Tried, Error> {
        let mut tried = Tried::default();
        let copy = &self.sandbox.context;
        let pending = reflection::pending(&copy.notes, &self.journal, &[])?;
        let least = self.context.environment.min_episodics;
        let (enough, few): (BTreeMap<_, _>, BTreeMap<_, _>) = pending
            .by_project
            .into_iter()
            .partition(|(_, sources)| sources.len() >= least);
        tried.skipped = few.len();
        for (project, sources) in enough {
            tried.projects.push(TriedProject {
                notes: sources.len(),
                result: self.distil(&project, &sources, announce),
                project,
            });
        }
        Ok(tried)
    }

    fn distil<G>(
        &self,
        project: &str,
        sources: &[Stored],
        announce: Announce<'_, G>,
    ) -> Result<usize, Error> {
        let question = Question::new(self.context, project, sources);
        let _asking = announce(project, question.cost());
        let (notes, _) = question.distilled(self.context, &self.journal, self.model)?;
        question.write(&self.sandbox.context, &notes)?;
        Ok(notes.len())
    }

    /// Merges in each project that has enough notes. Groups are not tested first, because the
    /// experiment should show what the test would reject.
    pub fn merge<G>(&self, announce: Announce<'_, G>) -> Result<Tried, Error> {
        let mut tried = Tried::default();
        let copy = &self.sandbox.context;
        let loaded = Loaded::read(copy, &copy.index()?)?;
        let author = Author {
            machine: self.context.machine_id(),
            model: self.model.label(),
            now: self.context.environment.now,
        };
        for project in loaded.projects() {
            let notes = merge::candidates(&loaded.note_set, &project);
            if notes.len() < self.context.environment.merge_min {
                tried.skipped += 1;
                continue;
            }
            let groups = merge::ask(&notes, &|system, user| {
                let _asking = announce(&project, tokens(system) + tokens(user));
                self.model.ask(system, user)
            });
            let result = match groups {
                Ok(groups) => {
                    let by_id = notes.iter().map(|note| (note.id, *note)).collect();
                    let merged = groups
                        .iter()
                        .filter_map(|group| group.applied(&by_id, &author));
                    Ok(self.keep(&loaded, merged)?)
                }
                Err(error) => Err(Error::caused_by(error)),
            };
            tried.projects.push(TriedProject {
                notes: notes.len(),
                result,
                project,
            });
        }
        Ok(tried)
    }

    /// Writes the result of a merge into the copy.
    fn keep(
        &self,
        loaded: &Loaded,
        merged: impl Iterator<Item = MergeOutcome>,
    ) -> Result<usize, Error> {
        let notes = &self.sandbox.context.notes;
        let lock = notes.lock()?;
        let mut kept = 0;
        for merged in merged {
            match merged {
                MergeOutcome::Changed(note) => {
                    if let Some(stored) = loaded.stored(note.id) {
                        let change = |old: &mut Note| old.clone_from(&note);
                        notes.update(&lock, stored.path, change)?;
                        kept += 1;
                    }
                }
                MergeOutcome::Made(note) => {
                    notes.create(&lock, &note)?;
                    kept += 1;
                }
                // A pending note is never injected, so it does not change the figures.
                MergeOutcome::Proposed(_) | MergeOutcome::Left => {}
            }
        }
        Ok(kept)
    }
}
