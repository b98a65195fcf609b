//! `eval run`: measures whether a search finds the notes that answer.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anamnesis_app::{
    Error,
    context::Context,
    error::NEEDS_ATTENTION,
    evaluation::{
        figures::{Figures, Recall, unknown_ids},
        runs::EvaluationRun,
    },
    evaluation_set::Set,
};
use anamnesis_recall::search::MAX_HITS;
use anamnesis_text::clean::one_line;
use serde_json::{Map, Value, json};

use super::gate;
use crate::ui::{self, Outcome, Ui};

/// How many warnings of a kind are listed.
const WARNED: usize = 10;

/// Measure whether searches find the notes that answer
///
/// Runs every approved question of the set as `search` would, and reports recall and the mean
/// reciprocal rank. A note that replaces the right one counts, too. Also compares the size of the
/// working sets with that of all notes. If there is no set, create one with `eval mine`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    set: super::SetArgs,
    /// Also report recall at this depth
    #[arg(short, long, value_name = "DEPTH", value_parser = depth)]
    k: Option<usize>,
    /// Measure injected notes instead, like `eval gate`
    #[arg(long, conflicts_with = "k")]
    gate: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn depth(text: &str) -> Result<usize, Error> {
    let depth = text.parse().ok();
    depth
        .filter(|depth| (1..=MAX_HITS).contains(depth))
        .ok_or_else(|| Error::usage(format!("a number from 1 to {MAX_HITS}")))
}

/// The figures, and the set that they were measured with.
struct Report {
    path: PathBuf,
    /// How many questions are not approved.
    waiting: usize,
    figures: Figures,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if args.gate {
        return gate::measure(&args.set, args.json, context, ui);
    }
    let (set, path) = args.set.read(context)?;
    let set = set.ok_or_else(|| missing(context, &path))?;
    let cases = args.set.measured(&set);
    let index = context.index()?;
    let report = Report {
        path,
        waiting: set.cases.len() - cases.len(),
        figures: Figures::new(context, &index, &cases, args.k)?,
    };
    let unknown = unknown_ids(&index, &cases)?;
    warn(&set, &unknown, ui);
    // Only figures with the same kind of questions can be compared.
    if report.path == context.home.evaluation() && !args.set.include_unreviewed {
        let run = EvaluationRun::new(context.environment.now, &report.figures);
        if let Some(Err(failure)) = run.map(|run| run.keep(context)) {
            context.log(failure.message());
        }
    }
    if args.json {
        ui.json(&report.json(&set, &unknown));
    } else {
        ui.print(&report.text(context));
    }
    Ok(ended(&set))
}

/// All figures, for scripts.
pub(super) fn figures_json(measured: &Figures) -> Value {
    let figures = |recall: &Recall| {
        let within = measured.depths.iter().zip(&recall.within);
        let within: Map<String, Value> = within
            .map(|(depth, share)| (depth.to_string(), json!(share)))
            .collect();
        json!({ "n_cases": recall.asked, "recall_at": within, "mrr": recall.reciprocal })
    };
    let mut sources = measured.recall.iter();
    let all = sources.next().map(|(_, recall)| figures(recall));
    let mut all = all.unwrap_or_default();
    all["by_source"] = sources
        .map(|(source, recall)| (source.clone(), figures(recall)))
        .collect::<Map<_, _>>()
        .into();
    json!({
        "recall": all,
        "working_set": {
            "per_project": measured.working_sets,
            "mean_tokens": measured.mean_tokens(),
            "median_tokens": measured.median_tokens(),
            "corpus_tokens": measured.corpus,
        },
        "notes": measured.notes,
    })
}

/// The exit code: a failure if some lines of the set cannot be parsed.
pub(super) fn ended(set: &Set) -> ExitCode {
    if set.bad.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NEEDS_ATTENTION)
    }
}

pub(super) fn missing(context: &Context, path: &Path) -> Error {
    let path = one_line(&context.shown(path));
    Error::usage(format!("there are no questions: {path} is not there"))
        .hint("anamnesis eval mine   (makes some of your notes and prompts)")
}

/// Warns about parts of the set that cannot be used.
pub(super) fn warn(set: &Set, unknown: &[(usize, String)], ui: &Ui) {
    let bad = set.bad.iter().map(|(line, reason)| {
        let reason = one_line(reason);
        format!("! line {line} is left out: {reason}\n")
    });
    let unknown = unknown.iter().map(|(line, id)| {
        let id = ui::shorten(&one_line(id), 40);
        format!("! line {line}: there is no note {id}\n")
    });
    for mut warnings in [bad.collect::<Vec<_>>(), unknown.collect()] {
        let more = warnings.len().saturating_sub(WARNED);
        warnings.truncate(WARNED);
        if more > 0 {
            warnings.push(format!("! and {more} more\n"));
        }
        ui.note(&warnings.concat());
    }
}

impl Report {
    fn text(&self, context: &Context) -> String {
        let figures = &self.figures;
        let asked = figures.asked();
        let mut text = format!(
            "{} of {}, asked of {}\n",
            ui::count(asked, "question"),
            one_line(&context.shown(&self.path)),
            ui::count(figures.notes, "note"),
        );
        if asked > 0 {
            text.push_str(&format!("\n{:20}{:>6}", "found among the first", "asked"));
            for depth in &figures.depths {
                text.push_str(&format!("{depth:>7}"));
            }
            text.push_str("     MRR\n");
            // With one source, its row would repeat the total.
            let rows = if figures.recall.len() > 2 {
                figures.recall.len()
            } else {
                1
            };
            for (source, recall) in figures.recall.iter().take(rows) {
                let source = ui::shorten(&one_line(source), 20);
                text.push_str(&format!("{source:21}{:>6}", recall.asked));
                for within in &recall.within {
                    let percent = 100.0 * within.unwrap_or_default();
                    text.push_str(&format!("{percent:>5.0} %"));
                }
                let _ = writeln!(text, "{:>8.2}", recall.reciprocal.unwrap_or_default());
            }
            text.push('\n');
        }
        if let (Some(mean), Some(median)) = (figures.mean_tokens(), figures.median_tokens()) {
            text.push_str(&format!(
                "a session starts with ~{mean:.0} tokens (median {median:.0}); all notes are ~{}\n",
                ui::number(figures.corpus)
            ));
        }
        if self.waiting > 0 {
            text.push_str(&format!(
                "{} not measured: nobody approved {} yet (\"approved\": true in the file)\n\
                 → anamnesis eval run --include-unreviewed\n",
                ui::count(self.waiting, "question"),
                if self.waiting == 1 { "it" } else { "them" },
            ));
        } else if asked == 0 {
            text.push_str("→ anamnesis eval mine\n");
        }
        text
    }

    fn json(&self, set: &Set, unknown: &[(usize, String)]) -> Value {
        let mut json = figures_json(&self.figures);
        json["recall"]["unreviewed"] = self.waiting.into();
        let unknown = unknown.iter();
        json["unknown_ids"] = unknown
            .map(|(line, id)| json!({ "line": line, "id": id }))
            .collect();
        let bad = set.bad.iter();
        json["bad_lines"] = bad
            .map(|(line, reason)| json!({ "line": line, "reason": reason }))
            .collect();
        json
    }
}
