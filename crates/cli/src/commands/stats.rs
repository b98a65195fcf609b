//! `stats`: shows how injected notes were used.

use anamnesis_app::{
    context::Context,
    format::{milliseconds, share},
    ops::stats::{self, Stats},
};
use anamnesis_store::index::Index;
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, ProjectFilter, Ui};

/// How many notes a list names.
const NAMED: usize = 5;

/// Show how injected notes were used
///
/// Counted on this machine, as far back as its records go (`retention.records_days`). Ratings are
/// keys of the notes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of days to look back
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// The maximum number of notes in each list
    #[arg(short = 'n', long, value_name = "N", default_value_t = NAMED, value_parser = ui::at_least_one)]
    limit: usize,
    #[command(flatten)]
    projects: ProjectFilter,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let project = args.projects.key();
    let stats = stats::stats(context, args.days, project, args.limit)?;
    let index = context.index()?;
    ui.shown(args.json, &stats, &text(&stats, project, &index))
}

fn text(stats: &Stats, project: Option<&str>, index: &Index) -> String {
    let counts = &stats.counts;
    let of = project.map_or_else(String::new, |key| format!(", in {}", one_line(key)));
    let mut text = format!(
        "the last {} d on this machine{of}\n\
         sessions:             {} with {}\n\
         prompts searched:     {}, {} of them with a match{}\n\
         notes injected:       {}, {} of them at prompts; {} repeats held back\n\
         notes used:           {} of {}{}, counting each note once per session\n\
         notes pointed at:     {}, {} of them opened with memory_get\n\
         commits injected:     {}, of the project's history\n\
         texts injected:       {}, about {} tokens\n\
         notes muted:          {}\n\
         ratings:              {} good, {} bad\n",
        counts.days,
        ui::number(stats.sessions),
        ui::count(counts.prompts, "prompt"),
        ui::number(counts.searches),
        ui::number(stats.matched),
        share(stats.matched, counts.searches),
        ui::number(stats.injected),
        ui::number(counts.injected),
        ui::number(counts.repeats),
        ui::number(counts.used),
        ui::number(counts.shown),
        share(counts.used, counts.shown),
        ui::number(stats.pointers.given),
        ui::number(stats.pointers.opened),
        ui::number(stats.commits),
        ui::number(stats.texts),
        ui::number(stats.tokens),
        ui::number(stats.muted),
        stats.feedback.good,
        stats.feedback.bad,
    );
    if counts.without_meaning > 0 {
        text.push_str(&format!(
            "without meaning:      {}, for which the embedding model had no time\n",
            ui::count(counts.without_meaning, "search"),
        ));
    }
    for run in &stats.hooks {
        text.push_str(&format!(
            "hook:    {} {}, p95 {}\n",
            run.event,
            milliseconds(run.median),
            milliseconds(run.p95)
        ));
    }
    for (heading, notes) in [
        ("most used", &stats.most_used),
        ("injected often, never used", &stats.never_used),
    ] {
        if !notes.is_empty() {
            text.push_str(&format!("\n{heading}\n"));
        }
        for used in notes {
            let entry = &used.note.entry;
            let short = Context::short(index, entry.id());
            let tail = format!("{} of {}", used.used, ui::count(used.given, "session"));
            text.push_str(&ui::line_with(ui::width(), entry, &short, &tail));
            text.push('\n');
        }
    }
    for advice in &stats.advice {
        let text_of = ui::wrapped(advice.text, 0);
        text.push_str(&format!("\n{text_of}→ {}\n", advice.command));
    }
    text
}
