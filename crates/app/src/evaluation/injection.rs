//! Measures which notes are injected with prompts, at several thresholds.

use std::collections::{BTreeMap, HashMap};

use anamnesis_note::{id::NoteId, project_key::is_shared};
use anamnesis_recall::{
    evaluation::{GatePoint, GateResult, share},
    mining::is_question,
    note_set::{self, InjectedNote, Limits, Request},
    prompt::sentences,
    rank::{Mask, Query, rank},
    threshold::Floor,
};
use anamnesis_store::{
    index::{self, Filter, Index},
    journal::{Journal, Ledger},
    project::Project,
};

use super::{library::Library, mine::question};
use crate::{
    Error,
    context::Context,
    embedding::PromptEncoder,
    evaluation_set::Case,
    recall::{Lane, known},
};

/// The thresholds of the curve, including the defaults.
const FLOORS: [f32; 8] = [0.20, 0.26, 0.31, 0.36, 0.40, 0.45, 0.50, 0.60];

/// How many of the latest prompts are tried in other projects.
const MAX_PROMPTS: usize = 300;

/// How many false injections are kept.
const WORST: usize = 10;

/// A note that was injected by mistake.
pub struct FalseInjection {
    /// Its match score.
    pub score: f64,
    /// The prompt.
    pub prompt: String,
    /// The words that prompt and note share.
    pub matched: Vec<String>,
    /// The note.
    pub note: NoteId,
    /// Its short id.
    pub short: String,
    /// Its title.
    pub title: String,
    /// Its project.
    pub project: String,
}

/// The injection rates with the current settings.
#[derive(Debug, Clone, Copy)]
pub struct InjectionRates {
    /// The share of questions for which a relevant note is injected.
    pub given: Option<f64>,
    /// The share of foreign prompts for which a note of this project is injected.
    pub unrelated: Option<f64>,
}

impl InjectionRates {
    /// Runs every question, and the latest prompts in other projects.
    pub fn new(
        context: &Context,
        journal: &Journal,
        index: &Index,
        cases: &[(usize, &Case)],
    ) -> Result<Self, Error> {
        let (limits, _) = Lane::Prompt.limits(&context.config.recall);
        let gate = Gate {
            context,
            journal: Some(journal),
            index,
            limits,
        };
        let now = FLOORS
            .iter()
            .position(|floor| is_same(*floor, limits.floor))
            .unwrap_or(0);
        let answered = gate.answered(cases)?;
        let unrelated = strays(context, journal, index)?
            .iter()
            .map(|stray| gate.unrelated(stray, &mut Vec::new()))
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(Self {
            given: share(answered.iter().map(|floors| floors[now].is_right)),
            unrelated: share(unrelated.iter().map(|counts| counts[now] > 0)),
        })
    }
}

/// The injection rates at each threshold.
pub struct InjectionReport {
    /// The threshold of the current settings.
    pub now: Floor,
    /// The rates at each threshold.
    pub curve: Vec<(f32, GatePoint)>,
    /// How many foreign prompts were run.
    pub unrelated: usize,
    /// How many questions were run.
    pub questions: usize,
    /// For how many questions a relevant note would be injected without a threshold.
    pub reachable: usize,
    /// The false injections with the highest scores, at the current threshold.
    pub worst: Vec<FalseInjection>,
}

/// A prompt, and the foreign project in which it is run.
pub struct Stray {
    prompt: String,
    of: Project,
}

/// Runs prompts and questions without recording anything.
struct Gate<'a> {
    context: &'a Context,
    journal: Option<&'a Journal>,
    /// The store's own index.
    index: &'a Index,
    limits: Limits,
}

/// The latest prompts that ask something. Each is paired with the project that has the most notes
/// besides its own.
pub fn strays(context: &Context, journal: &Journal, index: &Index) -> Result<Vec<Stray>, Error> {
    let mut notes: BTreeMap<String, usize> = BTreeMap::new();
    for entry in index.list(&Filter::default(), usize::MAX)? {
        if !is_shared(&entry.project) {
            *notes.entry(entry.project).or_default() += 1;
        }
    }
    let mut largest: Vec<(String, usize)> = notes.into_iter().collect();
    largest.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
    let mut others: HashMap<String, Option<Project>> = HashMap::new();
    let mut strays = Vec::new();
    for session in journal.sessions(None, usize::MAX)? {
        let own = &session.project;
        let other = others.entry(own.clone()).or_insert_with(|| {
            let own = context.project(Some(own)).all_keys();
            let other = largest.iter().find(|(key, _)| !own.contains(key));
            other.map(|(key, _)| context.project(Some(key)))
        });
        let Some(other) = other else {
            continue;
        };
        for prompt in journal.prompts(&session.id)?.iter().rev() {
            if let Some(text) = question(prompt).filter(|text| is_question(text)) {
                strays.push(Stray {
                    prompt: text.to_owned(),
                    of: other.clone(),
                });
            }
            if strays.len() == MAX_PROMPTS {
                return Ok(strays);
            }
        }
    }
    Ok(strays)
}

/// A question as the hook asks it.
struct Prompt {
    query: Query,
    /// Its meaning, where the hook compares it.
    vector: Option<Vec<f32>>,
}

impl Prompt {
    fn new(context: &Context, index: &Index, question: &str) -> Self {
        let query = Query::from_segments(&sentences(question));
        let encoder = PromptEncoder::start(context, &query);
        let vector = encoder.and_then(|encoder| encoder.vector(context, index));
        Self { query, vector }
    }
}

impl Gate<'_> {
    /// The notes injected for a question in a project at one threshold.
    fn given(
        &self,
        index: &Index,
        question: &Prompt,
        project: &Project,
        floor: f32,
    ) -> Result<Vec<InjectedNote>, index::Error> {
        let request = Request {
            query: &question.query,
            project: &project.key,
            also: &project.also,
            limits: Limits {
                floor: Floor::At(floor),
                ..self.limits
            },
            ledger: &Ledger::new(),
            own: None,
            now: self.context.environment.now,
            knowledge: &known(self.context, self.index, self.journal),
            vector: &|| question.vector.clone(),
        };
        Ok(note_set::recall(index, &self.context.notes, &request)?.given)
    }

    /// The result of each question at each threshold, run in the project of its note.
    fn answered(&self, cases: &[(usize, &Case)]) -> Result<Vec<Vec<GateResult>>, Error> {
        let mut library = Library::new(self.context, self.index, cases)?;
        let mut answered = Vec::new();
        for (_, case) in cases {
            let right = library.right(case)?;
            let Some(entry) = right.iter().find_map(|id| self.index.get(*id).transpose()) else {
                continue;
            };
            let project = self.context.project(Some(&entry?.project));
            answered.push(library.ask(case, |index| {
                let prompt = Prompt::new(self.context, index, &case.query);
                let is_reachable = self
                    .ungated(index, &case.query, &project)?
                    .iter()
                    .any(|id| right.contains(id));
                let gated = |floor| {
                    let given = self.given(index, &prompt, &project, floor)?;
                    let mut ids = given.iter().map(|given| given.recalled.note.id);
                    Ok(GateResult {
                        is_reachable,
                        given: given.len(),
                        is_right: ids.any(|id| right.contains(&id)),
                    })
                };
                FLOORS.into_iter().map(gated).collect()
            })?);
        }
        Ok(answered)
    }

    /// The notes that would be injected without a threshold.
    fn ungated(
        &self,
        index: &Index,
        question: &str,
        project: &Project,
    ) -> Result<Vec<NoteId>, index::Error> {
        let mask = Mask {
            own: project.all_keys(),
            with_global: true,
            only_surfacing: true,
            ..Mask::default()
        };
        let query = Query::parse(&sentences(question).join("\n"));
        let ranked = rank(index, &query, &mask, self.limits.notes)?;
        Ok(ranked.candidates.iter().map(|found| found.id).collect())
    }

    /// Counts the project's notes that are injected for a foreign prompt at each threshold. Notes
    /// for all projects do not count, because they may be relevant. Adds those of the current
    /// setting to `found`.
    fn unrelated(
        &self,
        stray: &Stray,
        found: &mut Vec<FalseInjection>,
    ) -> Result<Vec<usize>, Error> {
        let mut counts = vec![0; FLOORS.len()];
        let prompt = Prompt::new(self.context, self.index, &stray.prompt);
        for (floor, count) in FLOORS.into_iter().zip(&mut counts) {
            let mut given = self.given(self.index, &prompt, &stray.of, floor)?;
            // If nothing is injected at a threshold, nothing is at a higher one.
            if given.is_empty() {
                break;
            }
            given.retain(|given| !given.recalled.note.is_global());
            *count = given.len();
            if is_same(floor, self.limits.floor)
                && let Some(best) = given.into_iter().next()
            {
                let note = best.recalled.note;
                found.push(FalseInjection {
                    score: best.evidence.score,
                    prompt: stray.prompt.clone(),
                    matched: best.evidence.matched,
                    short: Context::short(self.index, note.id),
                    note: note.id,
                    title: note.title,
                    project: note.project,
                });
            }
        }
        Ok(counts)
    }
}

/// Returns whether a setting uses this threshold.
pub fn is_same(floor: f32, setting: Floor) -> bool {
    (floor - setting.threshold(1)).abs() < 0.001
}

impl InjectionReport {
    /// Runs every prompt and every question at every threshold.
    pub fn new(
        context: &Context,
        journal: Option<&Journal>,
        index: &Index,
        strays: &[Stray],
        cases: &[(usize, &Case)],
    ) -> Result<Self, Error> {
        let (limits, _) = Lane::Prompt.limits(&context.config.recall);
        let gate = Gate {
            context,
            journal,
            index,
            limits,
        };
        let answered = gate.answered(cases)?;
        let mut worst = Vec::new();
        let unrelated: Vec<Vec<usize>> = strays
            .iter()
            .map(|stray| gate.unrelated(stray, &mut worst))
            .collect::<Result<_, _>>()?;
        worst.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.prompt.cmp(&b.prompt))
        });
        worst.truncate(WORST);
        let at = |place: usize| {
            let unrelated = unrelated.iter().filter_map(|counts| counts.get(place));
            let answered = answered.iter().filter_map(|floors| floors.get(place));
            GatePoint::from_questions(unrelated.copied(), &answered.copied().collect::<Vec<_>>())
        };
        let reachable = answered.iter().filter_map(|floors| floors.first());
        Ok(Self {
            now: limits.floor,
            curve: FLOORS.into_iter().zip((0..).map(at)).collect(),
            unrelated: strays.len(),
            questions: cases.len(),
            reachable: reachable.filter(|gated| gated.is_reachable).count(),
            worst,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floors_of_the_settings_are_on_the_curve() {
        for setting in [Floor::Usual, Floor::Wide] {
            let found = FLOORS.iter().filter(|floor| is_same(**floor, setting));
            assert_eq!(found.count(), 1);
        }
        assert!(FLOORS.is_sorted());
    }
}
