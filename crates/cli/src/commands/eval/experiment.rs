//! `eval experiment`: measures how a reflection or a merge changes recall, on a copy of the notes.

use anamnesis_app::{
    context::Context,
    evaluation::{
        experiment::{Experiment, ExperimentReport, TriedProject},
        figures::Figures,
    },
    model,
};
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Ui};

/// Measure on a copy how a reflection would change recall
///
/// Measures a copy of your notes, lets the configured model reflect on it (or merge, with
/// `--merge`), and measures again: search results and the size of the working set. The model costs
/// money; your notes do not change, and the copy is deleted.
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

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let (set, _) = args.set.read(context)?;
    let model = model::required(context)?;
    let cases = args.set.measured(&set);
    let experiment = Experiment::new(context, &model)?;
    let measure = || {
        let _progress = ui::Progress::new("measuring …");
        experiment.measure(&cases)
    };
    let label = one_line(&model.label());
    let announce = |project: &str, cost: usize| {
        ui.note(&format!(
            "{}: {}",
            one_line(project),
            ui::cost(cost, &model)
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
    let failed = tried.projects.iter().filter(|tried| tried.result.is_err());
    let failed = failed.count();
    if args.json {
        return ui.json(ExperimentReport {
            before,
            after,
            reflected: tried.projects.len() - failed,
            skipped: tried.skipped,
            failed,
        });
    }
    let mut text = format!(
        "on a copy, with {label}: {} tried, {} with too little, {failed} failed\n",
        ui::count(tried.projects.len(), "project"),
        tried.skipped,
    );
    for tried in &tried.projects {
        text.push_str(&format!("  {}\n", attempt(tried, args.merge)));
    }
    text.push_str(&table(&before, &after));
    text.push_str("\nyour notes are as they were\n");
    ui.answer(&text)
}

/// Describes the attempt in a project.
fn attempt(tried: &TriedProject, is_merge: bool) -> String {
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
        Err(error) => format!("{project}: failed ({}); skipped", one_line(error.message())),
    }
}

fn table(before: &Figures, after: &Figures) -> String {
    let questions = ui::count(before.recall.asked, "question");
    let mut text = format!("\n{questions:28} before    after\n");
    let mut row = |name: &str, [before, after]: [Option<f64>; 2], show: fn(f64) -> String| {
        let [before, after] = [before, after].map(|it| it.map_or("-".to_owned(), show));
        text.push_str(&format!("{name:24}{before:>11}{after:>9}\n"));
    };
    let [recall, recall_now] = [before, after].map(|it| &it.recall);
    for (depth, within) in &recall.within {
        let now = recall_now.within.get(depth).copied().flatten();
        let name = format!("found among the first {depth}");
        row(&name, [*within, now], |share| {
            format!("{:.0} %", 100.0 * share)
        });
    }
    let ranks = [recall, recall_now].map(|it| it.reciprocal);
    row("MRR", ranks, |rank| format!("{rank:.2}"));
    let tokens = |tokens: f64| format!("~{tokens:.0}");
    let sizes = [before, after].map(|it| &it.working_set);
    row(
        "a session starts with",
        sizes.map(|it| it.mean_tokens),
        tokens,
    );
    let corpus = sizes.map(|it| Some(it.corpus_tokens as f64));
    row("all notes", corpus, tokens);
    text
}
