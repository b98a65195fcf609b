//! `eval gate`: measures false and missing injections at prompts.

use std::process::ExitCode;

use anamnesis_app::{
    context::{Context, PATIENCE},
    evaluation::{
        figures::unknown_ids,
        injection::{InjectionReport, is_same, strays},
    },
};
use anamnesis_recall::threshold::Floor;
use anamnesis_store::journal::Journal;
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use super::{
    SetArgs,
    run::{ended, missing, warn},
};
use crate::ui::{self, Outcome, Ui};

/// How many characters of a prompt and of a title are shown.
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
    let report = InjectionReport::new(context, journal.as_ref(), &index, &strays, &cases)?;
    if let Some(set) = &set {
        warn(set, &unknown_ids(&index, &cases)?, ui);
    }
    if json {
        ui.json(&report_json(&report));
    } else {
        ui.print(&report_text(&report));
    }
    Ok(set.as_ref().map_or(ExitCode::SUCCESS, ended))
}

fn report_text(report: &InjectionReport) -> String {
    let mut text = format!(
        "{} asked of a project they are not of;\n{}, {} with the note within reach\n",
        ui::count(report.unrelated, "prompt"),
        ui::count(report.questions, "question"),
        report.reachable,
    );
    text.push_str("\nfloor   unrelated, injected   useful and kept   notes a time\n");
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
    };
    for (floor, point) in &report.curve {
        let mark = if is_same(*floor, report.now) {
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
    if !report.worst.is_empty() {
        text.push_str(
            "\nthe worst matches that are injected now, with the words that they share\n",
        );
    }
    for worst in &report.worst {
        text.push_str(&format!(
            "{:.2}  \"{}\"\n      #{} {}\n      {}\n",
            worst.score,
            ui::shorten(&one_line(&worst.prompt), SHORTENED),
            worst.short,
            ui::shorten(&one_line(&worst.title), SHORTENED),
            ui::shorten(&one_line(&worst.matched.join(", ")), SHORTENED),
        ));
    }
    text.push_str(if is_same(report.now.threshold(1), Floor::Wide) {
        "→ anamnesis config set recall.wide off   (fewer notes, better matches)\n"
    } else {
        "→ anamnesis config set recall.wide on   (more notes, weaker matches)\n"
    });
    if !report.worst.is_empty() {
        text.push_str("→ anamnesis mute ID   (the note is not injected any more)\n");
    }
    text
}

fn report_json(report: &InjectionReport) -> Value {
    let curve = report.curve.iter().map(|(floor, point)| {
        json!({
            "floor": rounded(*floor),
            "false": point.false_share,
            "kept": point.kept,
            "notes": point.notes,
            "now": is_same(*floor, report.now),
        })
    });
    let worst = report.worst.iter().map(|worst| {
        json!({
            "fit": worst.score,
            "prompt": ui::shorten(&one_line(&worst.prompt), SHORTENED),
            "matched": worst.matched,
            "id": worst.note.to_string(),
            "title": worst.title,
            "project": worst.project,
        })
    });
    json!({
        "gate": {
            "unrelated": report.unrelated,
            "questions": report.questions,
            "reachable": report.reachable,
            "floor": rounded(report.now.threshold(1)),
            "recall.wide": report.now == Floor::Wide,
            "curve": curve.collect::<Vec<_>>(),
            "worst": worst.collect::<Vec<_>>(),
        }
    })
}

/// Rounds a threshold for output.
fn rounded(floor: f32) -> f64 {
    (f64::from(floor) * 100.0).round() / 100.0
}
