//! `eval experiment`: measures how a reflection or a merge changes recall, on a copy of the notes.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anamnesis_app::{
    context::{Context, PATIENCE},
    evaluation_set::Case,
    failure::Failure,
    reflect::Question,
    upkeep::loaded::Loaded,
};
use anamnesis_distill::{
    merge::{self, Author, MergeOutcome},
    model::Model,
    reflection,
    window::tokens,
};
use anamnesis_note::note::Note;
use anamnesis_recall::evaluation::RelevantRanks;
use anamnesis_store::{fs::file, journal::Journal, notes::Stored};
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use super::{
    gate::Unasked,
    picture::{self, Bar},
    run::{Figures, missing},
    sandbox::Sandbox,
};
use crate::ui::{self, Outcome, Ui};

/// A relevant note counts as found if its rank is at most this.
const DEPTH: usize = 8;

/// How many moved questions are listed.
const MOVED: usize = 10;

/// How many characters of a question are shown.
const SHORTENED: usize = 60;

/// Measure on a copy how a reflection would change recall
///
/// Measures a copy of your notes, lets the configured model reflect on it (or merge, with
/// `--merge`), and measures again: search results, notes injected with prompts, and the size of the
/// working set. The model costs money; your notes do not change, and the copy is deleted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    set: super::SetArgs,
    /// Merge instead of reflecting
    #[arg(long)]
    merge: bool,
    /// Draw the figures before and after into this file (SVG)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result for all projects.
#[derive(Default)]
struct Tried {
    /// One line per project.
    lines: Vec<String>,
    done: usize,
    skipped: usize,
    failed: usize,
}

/// The figures of one measurement.
struct Measured {
    figures: Figures,
    unasked: Unasked,
}

/// A figure before and after.
struct Row {
    name: String,
    before: Option<f64>,
    after: Option<f64>,
    unit: Unit,
    /// Whether a higher or a lower figure is better.
    aim: Aim,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Share,
    Rank,
    Tokens,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    More,
    Less,
    /// The size of the working set is reported, not judged.
    Neither,
}

/// A question whose note changed its rank.
struct Moved<'a> {
    query: &'a str,
    before: Option<usize>,
    after: Option<usize>,
    verdict: &'static str,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let (set, path) = args.set.read(context)?;
    let set = set.ok_or_else(|| missing(context, &path))?;
    let Some(model) = super::paid_model(context, ui)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let cases = args.set.measured(&set);
    let journal = Journal::open(&context.home, PATIENCE)?;
    let sandbox = Sandbox::of(context)?;
    let measure = || -> Result<Measured, Failure> {
        let _progress = ui::Progress::new("measuring …");
        let index = sandbox.context.index()?;
        Ok(Measured {
            unasked: Unasked::of(&sandbox.context, &journal, &index, &cases)?,
            figures: Figures::of(&sandbox.context, &index, &cases, None)?,
        })
    };
    let before = measure()?;
    let experiment = Experiment {
        context,
        copy: &sandbox.context,
        journal: &journal,
        model: &model,
        ui,
    };
    let tried = if args.merge {
        experiment.merge()?
    } else {
        experiment.reflect()?
    };
    let after = measure()?;
    drop(sandbox);
    let rows = rows(&before, &after);
    let moved = moved(&cases, &before.figures.places, &after.figures.places);
    if let Some(path) = &args.svg {
        let svg = picture::before_and_after(&bars(&rows));
        file::write_atomic(path, svg.as_bytes()).map_err(|error| {
            Failure::failed(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    if args.json {
        ui.json(&json!({
            "before": before.json(),
            "after": after.json(),
            "reflected": tried.done,
            "skipped": tried.skipped,
            "failed": tried.failed,
            "regressions": rows.iter().filter(|row| row.is_regression()).map(|row| &row.name).collect::<Vec<_>>(),
            "moved": moved.iter().map(Moved::json).collect::<Vec<_>>(),
        }));
    } else {
        let label = one_line(&model.label());
        ui.print(&text(&label, &tried, &rows, &moved, cases.len()));
    }
    Ok(ExitCode::SUCCESS)
}

/// What an experiment runs on.
struct Experiment<'a> {
    context: &'a Context,
    copy: &'a Context,
    journal: &'a Journal,
    model: &'a Model,
    ui: &'a Ui,
}

impl Experiment<'_> {
    /// Reflects on each project that has enough sessions.
    fn reflect(&self) -> Result<Tried, Failure> {
        let mut tried = Tried::default();
        let waiting = reflection::pending(&self.copy.notes, self.journal, &[])?;
        let least = self.context.environment.min_episodics.max(1);
        let (enough, few): (BTreeMap<_, _>, BTreeMap<_, _>) = waiting
            .by_project
            .into_iter()
            .partition(|(_, sources)| sources.len() >= least);
        tried.skipped = few.len();
        for (project, sources) in enough {
            let shown = one_line(&project);
            match self.distil(&project, &sources) {
                Ok(made) => {
                    tried.done += 1;
                    tried.lines.push(format!(
                        "{shown}: {} -> {}",
                        ui::count(sources.len(), "session"),
                        ui::count(made, "note")
                    ));
                }
                Err(cause) => {
                    tried.failed += 1;
                    let cause = one_line(&cause);
                    tried
                        .lines
                        .push(format!("{shown}: failed ({cause}); skipped"));
                }
            }
        }
        Ok(tried)
    }

    fn distil(&self, project: &str, sources: &[Stored]) -> Result<usize, String> {
        let question = Question::new(self.context, project, sources);
        self.tell_cost(project, question.cost());
        let _progress = self.progress();
        let (notes, _) = question.distilled(self.context, self.journal, self.model)?;
        question.write(self.copy, &notes)?;
        Ok(notes.len())
    }

    /// Merges in each project that has enough notes. The gate is off, because the experiment should
    /// show what it would reject.
    fn merge(&self) -> Result<Tried, Failure> {
        let mut tried = Tried::default();
        let loaded = Loaded::read(self.copy, &self.copy.index()?)?;
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
            let shown = one_line(&project);
            let groups = merge::ask(&notes, &|system, user| {
                self.tell_cost(&project, tokens(system) + tokens(user));
                let _progress = self.progress();
                self.model.ask(system, user)
            });
            match groups {
                Ok(groups) => {
                    let by_id = notes.iter().map(|note| (note.id, *note)).collect();
                    let merged = groups
                        .iter()
                        .filter_map(|group| group.applied(&by_id, &author));
                    let taken = self.keep(&loaded, merged)?;
                    tried.done += 1;
                    tried.lines.push(format!(
                        "{shown}: {} of {}",
                        ui::count(taken, "group"),
                        ui::count(notes.len(), "note")
                    ));
                }
                Err(error) => {
                    tried.failed += 1;
                    let cause = one_line(&error.to_string());
                    tried
                        .lines
                        .push(format!("{shown}: failed ({cause}); skipped"));
                }
            }
        }
        Ok(tried)
    }

    /// Writes the result of a merge into the copy.
    fn keep(
        &self,
        loaded: &Loaded,
        merged: impl Iterator<Item = MergeOutcome>,
    ) -> Result<usize, Failure> {
        let lock = self.copy.notes.lock()?;
        let mut taken = 0;
        for merged in merged {
            match merged {
                MergeOutcome::Changed(note) => {
                    if let Some(stored) = loaded.stored(note.id) {
                        let change = |old: &mut Note| old.clone_from(&note);
                        self.copy.notes.update(&lock, stored.path, change)?;
                        taken += 1;
                    }
                }
                MergeOutcome::Made(note) => {
                    self.copy.notes.create(&lock, &note)?;
                    taken += 1;
                }
                // A pending note is never injected, so it does not change the figures.
                MergeOutcome::Proposed(_) | MergeOutcome::Left => {}
            }
        }
        Ok(taken)
    }

    fn tell_cost(&self, project: &str, cost: usize) {
        self.ui.note(&format!(
            "{}: about {} tokens to {}\n",
            one_line(project),
            ui::number(cost),
            one_line(&self.model.receiver())
        ));
    }

    fn progress(&self) -> ui::Progress {
        ui::Progress::new(&format!("asking {} …", one_line(&self.model.label())))
    }
}

impl Measured {
    fn json(&self) -> Value {
        let mut json = self.figures.json();
        json["unasked"] = json!({
            "given": self.unasked.given,
            "unrelated": self.unasked.unrelated,
        });
        json
    }
}

fn rows(before: &Measured, after: &Measured) -> Vec<Row> {
    let row = |name: &str, figures: [Option<f64>; 2], unit, aim| Row {
        name: name.to_owned(),
        before: figures[0],
        after: figures[1],
        unit,
        aim,
    };
    let [was, is] = [&before.figures, &after.figures];
    let within = was.within().zip(is.within());
    let mut rows: Vec<Row> = within
        .map(|((depth, before), (_, after))| {
            let name = format!("found among the first {depth}");
            row(&name, [before, after], Unit::Share, Aim::More)
        })
        .collect();
    let both = |figure: fn(&Measured) -> Option<f64>| [figure(before), figure(after)];
    for (name, figures, unit, aim) in [
        (
            "MRR",
            both(|measured| measured.figures.reciprocal()),
            Unit::Rank,
            Aim::More,
        ),
        (
            "given unasked",
            both(|measured| measured.unasked.given),
            Unit::Share,
            Aim::More,
        ),
        (
            "unrelated and given",
            both(|measured| measured.unasked.unrelated),
            Unit::Share,
            Aim::Less,
        ),
        (
            "a session starts with",
            both(|measured| measured.figures.mean_tokens()),
            Unit::Tokens,
            Aim::Neither,
        ),
        (
            "all notes",
            both(|measured| Some(measured.figures.corpus_tokens())),
            Unit::Tokens,
            Aim::Neither,
        ),
    ] {
        rows.push(row(name, figures, unit, aim));
    }
    rows
}

impl Row {
    /// Tells whether the figure got worse.
    fn is_regression(&self) -> bool {
        let (Some(before), Some(after)) = (self.before, self.after) else {
            return false;
        };
        let loss = match self.aim {
            Aim::More => before - after,
            Aim::Less => after - before,
            Aim::Neither => 0.0,
        };
        loss > 1e-9
    }

    fn shown(&self, figure: Option<f64>) -> String {
        match (figure, self.unit) {
            (None, _) => "-".to_owned(),
            (Some(share), Unit::Share) => format!("{:.0} %", 100.0 * share),
            (Some(rank), Unit::Rank) => format!("{rank:.2}"),
            (Some(tokens), Unit::Tokens) => format!("~{tokens:.0}"),
        }
    }

    /// Formats the difference; empty if it means nothing.
    fn change(&self) -> String {
        match (self.before, self.after, self.unit) {
            (Some(before), Some(after), Unit::Tokens) if before > 0.0 => {
                format!("{:+.0} %", 100.0 * (after / before - 1.0))
            }
            _ => String::new(),
        }
    }
}

/// The questions whose notes changed their rank, lost ones first.
fn moved<'a>(
    cases: &[(usize, &'a Case)],
    before: &[(RelevantRanks, RelevantRanks)],
    after: &[(RelevantRanks, RelevantRanks)],
) -> Vec<Moved<'a>> {
    let place = |places: &RelevantRanks| places.first().filter(|place| *place < DEPTH);
    let mut moved: Vec<Moved<'a>> = cases
        .iter()
        .zip(before.iter().zip(after))
        .filter_map(|((_, case), ((_, before), (named, after)))| {
            let (was, is) = (place(before), place(after));
            let verdict = match (was, is) {
                (Some(was), Some(is)) if is > was => "later",
                (Some(_), Some(_)) if place(named).is_none() => {
                    "artifact: what stands for it is found"
                }
                (Some(was), Some(is)) if is < was => "earlier",
                (None, Some(_)) => "found now",
                (Some(_), None) => "real loss",
                _ => return None,
            };
            Some(Moved {
                query: &case.query,
                before: was,
                after: is,
                verdict,
            })
        })
        .collect();
    moved.sort_by_key(|moved| (moved.after.is_some(), moved.after <= moved.before));
    moved
}

impl Moved<'_> {
    fn json(&self) -> Value {
        let place = |place: Option<usize>| place.map(|place| place + 1);
        json!({
            "query": self.query,
            "before": place(self.before),
            "after": place(self.after),
            "verdict": self.verdict,
        })
    }
}

fn text(model: &str, tried: &Tried, rows: &[Row], moved: &[Moved<'_>], asked: usize) -> String {
    let mut text = format!(
        "on a copy, with {model}: {} tried, {} with too little, {} failed\n",
        ui::count(tried.done, "project"),
        tried.skipped,
        tried.failed
    );
    for line in &tried.lines {
        text.push_str(&format!("  {line}\n"));
    }
    text.push_str(&format!(
        "\n{:26}{:>9}{:>9}\n",
        ui::count(asked, "question"),
        "before",
        "after"
    ));
    for row in rows {
        let regression = if row.is_regression() {
            "  REGRESSION"
        } else {
            ""
        };
        let line = format!(
            "{:26}{:>9}{:>9}{:>8}{regression}",
            row.name,
            row.shown(row.before),
            row.shown(row.after),
            row.change()
        );
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    if !moved.is_empty() {
        text.push_str("\nquestions whose notes moved\n");
    }
    let place = |place: Option<usize>| {
        place.map_or_else(|| "-".to_owned(), |place| (place + 1).to_string())
    };
    for moved in moved.iter().take(MOVED) {
        text.push_str(&format!(
            "  {:>2} -> {:2}  {}  ({})\n",
            place(moved.before),
            place(moved.after),
            ui::shorten(&one_line(moved.query), SHORTENED),
            moved.verdict
        ));
    }
    if moved.len() > MOVED {
        text.push_str(&format!("  and {} more\n", moved.len() - MOVED));
    }
    text.push_str("\nyour notes are as they were\n");
    text
}

/// The bars to draw: shares as they are, tokens relative to the larger value.
fn bars(rows: &[Row]) -> Vec<Bar> {
    rows.iter()
        .filter(|row| row.before.is_some() || row.after.is_some())
        .map(|row| {
            let most = match row.unit {
                Unit::Share | Unit::Rank => 1.0,
                Unit::Tokens => {
                    let [before, after] = [row.before, row.after].map(Option::unwrap_or_default);
                    before.max(after).max(1.0)
                }
            };
            let part = |figure: Option<f64>| figure.unwrap_or_default() / most;
            Bar {
                name: row.name.clone(),
                parts: [part(row.before), part(row.after)],
                labels: [row.shown(row.before), row.shown(row.after)],
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use anamnesis_note::id::NoteId;

    use super::*;

    #[test]
    fn what_got_worse_is_told() {
        let row = |before: f64, after: f64, aim| {
            Row {
                name: String::new(),
                before: Some(before),
                after: Some(after),
                unit: Unit::Share,
                aim,
            }
            .is_regression()
        };
        for (before, after, more, less) in [
            (0.5, 0.4, true, false),
            (0.4, 0.5, false, true),
            (0.5, 0.5, false, false),
        ] {
            assert_eq!(row(before, after, Aim::More), more);
            assert_eq!(row(before, after, Aim::Less), less);
            assert!(!row(before, after, Aim::Neither));
        }
    }

    #[test]
    fn a_note_that_is_found_by_what_stands_for_it_is_no_loss() {
        let [note, heir, other] = ["note", "heir", "other"].map(NoteId::made_of);
        let case = Case {
            query: "q".to_owned(),
            relevant_ids: vec![note.to_string()],
            note_titles: Vec::new(),
            approved: true,
            source: String::new(),
        };
        let cases = [(1, &case)];
        let places = |found: &[NoteId], right: &[NoteId]| {
            vec![(
                RelevantRanks::new(found, &[note]),
                RelevantRanks::new(found, right),
            )]
        };
        let before = places(&[note, other], &[note]);
        for (after, expected) in [
            (places(&[other, heir], &[note, heir]), Some("later")),
            (
                places(&[heir, other], &[note, heir]),
                Some("artifact: what stands for it is found"),
            ),
            (places(&[other], &[note]), Some("real loss")),
            (before.clone(), None),
        ] {
            let moved = moved(&cases, &before, &after);
            assert_eq!(moved.first().map(|moved| moved.verdict), expected);
        }
    }
}
