//! `eval experiment`: measures how a reflection or a merge changes recall, on a copy of the notes.

use std::process::ExitCode;

use anamnesis_app::{
    context::Context,
    evaluation::experiment::{Experiment, Measured, Tried},
    evaluation_set::Case,
};
use anamnesis_recall::evaluation::RelevantRanks;
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use super::run::{figures_json, missing};
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
    /// Print JSON
    #[arg(long)]
    json: bool,
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
    let model = super::paid_model(context)?;
    let cases = args.set.measured(&set);
    let experiment = Experiment::new(context, &model)?;
    let measure = || {
        let _progress = ui::Progress::new("measuring …");
        experiment.measure(&cases)
    };
    let label = one_line(&model.label());
    let announce = |project: &str, cost: usize| {
        ui.note(&format!(
            "{}: about {} tokens to {}\n",
            one_line(project),
            ui::number(cost),
            one_line(&model.receiver())
        ));
        ui::Progress::new(&format!("asking {label} …"))
    };
    let before = measure()?;
    let tried = if args.merge {
        experiment.merge(&announce)?
    } else {
        experiment.reflect(&announce)?
    };
    let after = measure()?;
    drop(experiment);
    let rows = rows(&before, &after);
    let moved = moved(&cases, &before.figures.places, &after.figures.places);
    let tried = Attempts::new(&tried, args.merge);
    if args.json {
        ui.json(&json!({
            "before": measured_json(&before),
            "after": measured_json(&after),
            "reflected": tried.done,
            "skipped": tried.skipped,
            "failed": tried.failed,
            "regressions": rows.iter().filter(|row| row.is_regression()).map(|row| &row.name).collect::<Vec<_>>(),
            "moved": moved.iter().map(Moved::json).collect::<Vec<_>>(),
        }));
    } else {
        ui.print(&text(&label, &tried, &rows, &moved, cases.len()));
    }
    Ok(ExitCode::SUCCESS)
}

/// What was tried, for output.
struct Attempts {
    /// One line per project.
    lines: Vec<String>,
    done: usize,
    skipped: usize,
    failed: usize,
}

impl Attempts {
    fn new(tried: &Tried, is_merge: bool) -> Self {
        let lines = tried.projects.iter().map(|tried| {
            let project = one_line(&tried.project);
            match &tried.result {
                Ok(groups) if is_merge => format!(
                    "{project}: {} of {}",
                    ui::count(*groups, "group"),
                    ui::count(tried.notes, "note")
                ),
                Ok(made) => format!(
                    "{project}: {} -> {}",
                    ui::count(tried.notes, "session"),
                    ui::count(*made, "note")
                ),
                Err(error) => {
                    format!("{project}: failed ({}); skipped", one_line(error.message()))
                }
            }
        });
        let done = tried.projects.iter().filter(|tried| tried.result.is_ok());
        let done = done.count();
        Self {
            lines: lines.collect(),
            done,
            skipped: tried.skipped,
            failed: tried.projects.len() - done,
        }
    }
}

fn measured_json(measured: &Measured) -> Value {
    let mut json = figures_json(&measured.figures);
    json["unasked"] = json!({
        "given": measured.rates.given,
        "unrelated": measured.rates.unrelated,
    });
    json
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
            "injected",
            both(|measured| measured.rates.given),
            Unit::Share,
            Aim::More,
        ),
        (
            "unrelated and injected",
            both(|measured| measured.rates.unrelated),
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
    /// Returns whether the figure got worse.
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
                    "artifact: the note that replaced it is found"
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

fn text(model: &str, tried: &Attempts, rows: &[Row], moved: &[Moved<'_>], asked: usize) -> String {
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
                Some("artifact: the note that replaced it is found"),
            ),
            (places(&[other], &[note]), Some("real loss")),
            (before.clone(), None),
        ] {
            let moved = moved(&cases, &before, &after);
            assert_eq!(moved.first().map(|moved| moved.verdict), expected);
        }
    }
}
