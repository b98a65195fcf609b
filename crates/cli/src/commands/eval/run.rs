//! `eval run`: measures whether a search finds the notes that answer.

use std::path::Path;

use anamnesis_app::{
    Error,
    context::Context,
    evaluation::figures::{Figures, unknown_ids},
    evaluation_set::Set,
};
use anamnesis_recall::search::MAX_HITS;
use anamnesis_text::clean::one_line;
use serde_json::Value;

use crate::ui::{self, Outcome, Ui};

/// How many warnings of a kind are listed.
const WARNED: usize = 10;

/// Measure whether searches find the notes that answer
///
/// Runs every approved question of the set as `search` would, and reports recall and the mean
/// reciprocal rank. A note that replaces the right one counts, too. Also compares the size of the
/// working sets with the size of all notes. If there is no set, create one with `eval build`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    set: super::SetArgs,
    /// Also report recall at this depth
    #[arg(short, long, value_name = "DEPTH", value_parser = depth)]
    k: Option<usize>,
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

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let (set, path) = args.set.read(context)?;
    let cases = args.set.measured(&set);
    let index = context.index()?;
    let mut figures = Figures::new(context, &index, &cases, args.k)?;
    let waiting = set.cases.len() - cases.len();
    figures.recall.unreviewed = Some(waiting);
    let unknown = unknown_ids(&index, &cases)?;
    warn(&set, &unknown, ui);
    if args.json {
        let mut json = serde_json::to_value(&figures).map_err(Error::caused_by)?;
        let named = |lines: &[(usize, String)], name: &str| -> Value {
            let lines = lines.iter();
            let json = |(line, text): &(usize, String)| {
                Value::from_iter([("line", Value::from(*line)), (name, text.as_str().into())])
            };
            lines.map(json).collect()
        };
        json["unknown_ids"] = named(&unknown, "id");
        json["bad_lines"] = named(&set.bad, "reason");
        ui.json(&json)?;
    } else {
        ui.print(&text(context, &figures, &path, waiting));
    }
    Ok(ui::attention(!set.bad.is_empty()))
}

/// Warns about parts of the set that cannot be used.
fn warn(set: &Set, unknown: &[(usize, String)], ui: &Ui) {
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

fn text(context: &Context, figures: &Figures, path: &Path, waiting: usize) -> String {
    let recall = &figures.recall;
    let mut text = format!(
        "{} of {}, asked of {}\n",
        ui::count(recall.asked, "question"),
        one_line(&context.shown(path)),
        ui::count(figures.notes, "note"),
    );
    if recall.asked > 0 {
        text.push_str("\nfound among the first");
        for depth in recall.within.keys() {
            text.push_str(&format!("{depth:>7}"));
        }
        text.push_str(&format!("     MRR\n{:21}", ""));
        for within in recall.within.values() {
            text.push_str(&format!("{:>5.0} %", 100.0 * within.unwrap_or_default()));
        }
        let reciprocal = recall.reciprocal.unwrap_or_default();
        text.push_str(&format!("{reciprocal:>8.2}\n\n"));
    }
    if let Some(tokens) = figures.working_set.mean_tokens {
        text.push_str(&format!(
            "a session starts with ~{tokens:.0} tokens; all notes are ~{}\n",
            ui::number(figures.working_set.corpus_tokens)
        ));
    }
    if waiting > 0 {
        text.push_str(&format!(
            "{} not measured: nobody approved {} yet (\"approved\": true in the file)\n\
             → anamnesis eval run --include-unreviewed\n",
            ui::count(waiting, "question"),
            ui::one_or_many(waiting, "it", "them"),
        ));
    } else if recall.asked == 0 {
        text.push_str("→ anamnesis eval build\n");
    }
    text
}
