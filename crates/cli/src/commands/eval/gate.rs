//! `eval gate`: measures false and missing injections at prompts.

use std::{
    collections::{BTreeMap, HashMap},
    process::ExitCode,
};

use anamnesis_app::{
    context::{Context, PATIENCE},
    evaluation_set::Case,
    failure::Failure,
    recall::{Lane, known},
};
use anamnesis_note::{id::NoteId, note::GLOBAL};
use anamnesis_recall::{
    evaluation::{GatePoint, GateResult, share},
    mining::is_question,
    note_set::{self, InjectedNote, Limits, Request},
    prompt::sentences,
    rank::{Mask, Query, rank},
    threshold::Floor,
};
use anamnesis_store::{
    index::{Error, Filter, Index},
    journal::{Journal, Ledger},
    project::Project,
};
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use super::{
    SetArgs,
    library::Library,
    mine::question,
    run::{ended, missing, unknown, warn},
};
use crate::ui::{self, Outcome, Ui};

/// The thresholds of the curve, including the defaults.
const FLOORS: [f32; 8] = [0.16, 0.20, 0.24, 0.28, 0.32, 0.36, 0.40, 0.50];

/// How many of the latest prompts are tried in other projects.
const MAX_PROMPTS: usize = 300;

/// How many false injections are shown, and how many characters of each.
const WORST: usize = 10;
const SHORTENED: usize = 70;

/// Measure which notes are injected with prompts
///
/// Runs recent prompts in the project that has the most notes besides their own, where nothing
/// should be injected. Runs the questions of the set in their own projects, where their notes
/// should be. Repeats both at several thresholds of the match score.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    set: SetArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    measure(&args.set, args.json, context, ui)
}

/// A note that was injected by mistake.
struct False {
    fit: f64,
    prompt: String,
    matched: Vec<String>,
    id: String,
    short: String,
    title: String,
    project: String,
}

/// The injection rates with the current settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unasked {
    /// The share of questions for which a relevant note is injected.
    pub(super) given: Option<f64>,
    /// The share of foreign prompts for which a note of this project is injected.
    pub(super) unrelated: Option<f64>,
}

impl Unasked {
    /// Runs every question, and the latest prompts in other projects.
    pub(super) fn of(
        context: &Context,
        journal: &Journal,
        index: &Index,
        cases: &[(usize, &Case)],
    ) -> Result<Self, Failure> {
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
            .collect::<Result<Vec<_>, Failure>>()?;
        Ok(Self {
            given: share(answered.iter().map(|floors| floors[now].is_right)),
            unrelated: share(unrelated.iter().map(|counts| counts[now] > 0)),
        })
    }
}

struct Report {
    now: Floor,
    curve: Vec<(f32, GatePoint)>,
    unrelated: usize,
    questions: usize,
    reachable: usize,
    worst: Vec<False>,
}

/// A prompt, and the foreign project in which it is run.
struct Stray {
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

pub(super) fn measure(args: &SetArgs, json: bool, context: &Context, ui: &Ui) -> Outcome {
    let (set, path) = args.read(context)?;
    let journal = Journal::open_to_read(&context.home, PATIENCE)?;
    let index = context.index()?;
    let strays = match &journal {
        Some(journal) => strays(context, journal, &index)?,
        None => Vec::new(),
    };
    if set.is_none() && strays.is_empty() {
        return Err(missing(context, &path));
    }
    let cases = set
        .as_ref()
        .map(|set| args.measured(set))
        .unwrap_or_default();
    let report = Report::of(context, journal.as_ref(), &index, &strays, &cases)?;
    if let Some(set) = &set {
        warn(set, &unknown(&index, &cases)?, ui);
    }
    if json {
        ui.json(&report.json());
    } else {
        ui.print(&report.text());
    }
    Ok(set.as_ref().map_or(ExitCode::SUCCESS, ended))
}

/// The latest prompts that ask something. Each is paired with the project that has the most notes
/// besides its own.
fn strays(context: &Context, journal: &Journal, index: &Index) -> Result<Vec<Stray>, Failure> {
    let mut notes: BTreeMap<String, usize> = BTreeMap::new();
    for entry in index.list(&Filter::default(), usize::MAX)? {
        if entry.project != GLOBAL {
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

impl Gate<'_> {
    /// The notes injected for a question in a project at one threshold.
    fn given(
        &self,
        index: &Index,
        question: &str,
        project: &Project,
        floor: f32,
    ) -> Result<Vec<InjectedNote>, Error> {
        let request = Request {
            sentences: &sentences(question),
            project: &project.key,
            also: &project.also,
            limits: Limits {
                floor: Floor::At(floor),
                ..self.limits
            },
            ledger: &Ledger::new(),
            knowledge: &known(self.context, self.index, self.journal),
        };
        Ok(note_set::recall(index, &self.context.notes, &request)?.given)
    }

    /// The result of each question at each threshold, run in the project of its note.
    fn answered(&self, cases: &[(usize, &Case)]) -> Result<Vec<Vec<GateResult>>, Failure> {
        let mut library = Library::of(self.context, self.index, cases)?;
        let mut answered = Vec::new();
        for (_, case) in cases {
            let right = library.right(case)?;
            let Some(entry) = right.iter().find_map(|id| self.index.get(*id).transpose()) else {
                continue;
            };
            let project = self.context.project(Some(&entry?.project));
            answered.push(library.ask(case, |index| {
                let is_reachable = self
                    .ungated(index, &case.query, &project)?
                    .iter()
                    .any(|id| right.contains(id));
                let gated = |floor| {
                    let given = self.given(index, &case.query, &project, floor)?;
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
    ) -> Result<Vec<NoteId>, Error> {
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
    /// setting to `told`.
    fn unrelated(&self, stray: &Stray, told: &mut Vec<False>) -> Result<Vec<usize>, Failure> {
        let mut counts = vec![0; FLOORS.len()];
        for (floor, count) in FLOORS.into_iter().zip(&mut counts) {
            let mut given = self.given(self.index, &stray.prompt, &stray.of, floor)?;
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
                told.push(False {
                    fit: best.evidence.score,
                    prompt: ui::shorten(&one_line(&stray.prompt), SHORTENED),
                    matched: best.evidence.matched,
                    short: Context::short(self.index, note.id),
                    id: note.id.to_string(),
                    title: note.title,
                    project: note.project,
                });
            }
        }
        Ok(counts)
    }
}

/// Tells whether a setting uses this threshold.
fn is_same(floor: f32, setting: Floor) -> bool {
    (floor - setting.threshold(1)).abs() < 0.001
}

impl Report {
    /// Runs every prompt and every question at every threshold.
    fn of(
        context: &Context,
        journal: Option<&Journal>,
        index: &Index,
        strays: &[Stray],
        cases: &[(usize, &Case)],
    ) -> Result<Self, Failure> {
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
            b.fit
                .total_cmp(&a.fit)
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

    fn text(&self) -> String {
        let mut text = format!(
            "{} asked of a project they are not of;\n{}, {} with the note within reach\n",
            ui::count(self.unrelated, "prompt"),
            ui::count(self.questions, "question"),
            self.reachable,
        );
        text.push_str("\nfloor   unrelated and given   useful and kept   notes a time\n");
        let percent = |share: Option<f64>| {
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
        };
        for (floor, point) in &self.curve {
            let mark = if is_same(*floor, self.now) {
                "  now"
            } else if is_same(*floor, Floor::Wide) {
                "  recall.wide on"
            } else if is_same(*floor, Floor::Usual) {
                "  recall.wide off"
            } else {
                ""
            };
            let notes = point
                .notes
                .map_or_else(|| "-".to_owned(), |notes| format!("{notes:.1}"));
            text.push_str(&format!(
                "{floor:<5.2}{:>22}{:>18}{notes:>15}{mark}\n",
                percent(point.false_share),
                percent(point.kept),
            ));
        }
        if !self.worst.is_empty() {
            text.push_str("\nthe worst that came now, with the words that they share\n");
        }
        for worst in &self.worst {
            text.push_str(&format!(
                "{:.2}  \"{}\"\n      #{} {}\n      {}\n",
                worst.fit,
                worst.prompt,
                worst.short,
                ui::shorten(&one_line(&worst.title), SHORTENED),
                ui::shorten(&one_line(&worst.matched.join(", ")), SHORTENED),
            ));
        }
        text.push_str(if is_same(self.now.threshold(1), Floor::Wide) {
            "→ anamnesis config set recall.wide off   (less comes, surer)\n"
        } else {
            "→ anamnesis config set recall.wide on   (more comes, less sure)\n"
        });
        if !self.worst.is_empty() {
            text.push_str("→ anamnesis mute ID   (a note that never comes unasked)\n");
        }
        text
    }

    fn json(&self) -> Value {
        let curve = self.curve.iter().map(|(floor, point)| {
            json!({
                "floor": rounded(*floor),
                "false": point.false_share,
                "kept": point.kept,
                "notes": point.notes,
                "now": is_same(*floor, self.now),
            })
        });
        let worst = self.worst.iter().map(|worst| {
            json!({
                "fit": worst.fit,
                "prompt": worst.prompt,
                "matched": worst.matched,
                "id": worst.id,
                "title": worst.title,
                "project": worst.project,
            })
        });
        json!({
            "gate": {
                "unrelated": self.unrelated,
                "questions": self.questions,
                "reachable": self.reachable,
                "floor": rounded(self.now.threshold(1)),
                "recall.wide": self.now == Floor::Wide,
                "curve": curve.collect::<Vec<_>>(),
                "worst": worst.collect::<Vec<_>>(),
            }
        })
    }
}

/// Rounds a threshold for output.
fn rounded(floor: f32) -> f64 {
    (f64::from(floor) * 100.0).round() / 100.0
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
