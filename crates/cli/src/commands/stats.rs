//! `stats`: shows how injected notes were used.

use std::{collections::BTreeMap, process::ExitCode};

use anamnesis_app::{
    Error,
    context::{Context, TIMEOUT},
    format::milliseconds,
};
use anamnesis_note::{
    id::NoteId,
    note::{Rating, State},
};
use anamnesis_recall::{reason::WithholdingReason, usefulness::may_suggest_muting};
use anamnesis_store::{
    index::{Entry, Filter, Index},
    journal::{HookRuns, Journal, NoteReport, Report},
};
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use crate::ui::{self, Outcome, ProjectFilter, Ui};

/// How many notes a list names.
const NAMED: usize = 5;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Show how injected notes were used
///
/// Counted on this machine, as far back as its records go (`retention.events_days`). Ratings are
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

struct Stats {
    report: Report,
    /// The key of the only project.
    project: Option<String>,
    hooks: Vec<HookRuns>,
    good: u64,
    bad: u64,
    /// Notes that were used, with the sessions that received and that used them, most used first.
    used: Vec<(Entry, usize, usize)>,
    /// Notes that were never used, with the same counts, most injected first.
    ignored: Vec<(Entry, usize, usize)>,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let index = context.index()?;
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let now = context.environment.now;
    let since = now.timestamp_millis() - i64::from(args.days) * DAY;
    let projects = match args.projects.key() {
        Some(key) => context.project(Some(key)).all_keys(),
        None => Vec::new(),
    };
    let report = journal.usage_report(since, &projects)?;
    let (good, bad) = feedback(&index, &projects)?;
    let (used, ignored) = ranked(&index, &report.notes, args.limit)?;
    let stats = Stats {
        // A hook's time does not depend on the project.
        hooks: if projects.is_empty() {
            journal.hook_runs(now)?
        } else {
            Vec::new()
        },
        project: args.projects.key().map(one_line),
        report,
        good,
        bad,
        used,
        ignored,
    };
    if args.json {
        ui.json(&stats.json(args.days));
    } else {
        ui.print(&stats.text(args.days, &index));
    }
    Ok(ExitCode::SUCCESS)
}

/// The numbers of notes rated good and bad, of notes of these projects or of all.
fn feedback(index: &Index, projects: &[String]) -> Result<(u64, u64), Error> {
    let filter = Filter {
        projects: projects.to_vec(),
        with_superseded: true,
        ..Filter::default()
    };
    let entries = index.list(&filter, usize::MAX)?;
    let count = |rating| {
        let rated = entries.iter().filter(|entry| entry.rating == Some(rating));
        u64::try_from(rated.count()).unwrap_or(u64::MAX)
    };
    Ok((count(Rating::Good), count(Rating::Bad)))
}

type Ranked = Vec<(Entry, usize, usize)>;

/// The most used notes, and the unused notes that were injected most; ties by id.
fn ranked(
    index: &Index,
    notes: &BTreeMap<NoteId, NoteReport>,
    limit: usize,
) -> Result<(Ranked, Ranked), Error> {
    let pick = |mut chosen: Vec<(NoteId, usize, usize)>| -> Result<Ranked, Error> {
        chosen.sort_by_key(|(id, given, used)| (std::cmp::Reverse((*used, *given)), *id));
        let mut entries = Vec::new();
        for (id, given, used) in chosen {
            if entries.len() == limit {
                break;
            }
            // Notes that were forgotten since are not listed.
            let entry = index.get(id)?;
            let entry = entry.filter(|e| e.state != State::Forgotten);
            entries.extend(entry.map(|entry| (entry, given, used)));
        }
        Ok(entries)
    };
    let chosen = |is_chosen: fn(&NoteReport) -> bool| {
        let chosen = notes.iter().filter(|(_, note)| is_chosen(note));
        pick(
            chosen
                .map(|(id, note)| (*id, note.sessions, note.used))
                .collect(),
        )
    };
    let is_ignored = |note: &NoteReport| {
        let count = |count| u64::try_from(count).unwrap_or(u64::MAX);
        note.used == 0 && may_suggest_muting(count(note.injections), count(note.sessions))
    };
    Ok((chosen(|note| note.used > 0)?, chosen(is_ignored)?))
}

impl Stats {
    /// The number of injected notes, and how many of them were used.
    fn shown(&self) -> (usize, usize) {
        let notes = self.report.notes.values();
        notes.fold((0, 0), |sum, note| {
            (sum.0 + note.sessions, sum.1 + note.used)
        })
    }

    /// The number of searches that injected at least one note.
    fn matched(&self) -> usize {
        self.report.asked.saturating_sub(self.report.silent)
    }

    /// How often notes were injected, at starts and tools, too.
    fn injections(&self) -> usize {
        self.report.notes.values().map(|note| note.injections).sum()
    }

    /// How often a note was held back because the context already had it.
    fn repeats(&self) -> usize {
        self.report
            .held
            .get(WithholdingReason::GivenBefore.as_str())
            .copied()
            .unwrap_or(0)
    }

    fn text(&self, days: u32, index: &Index) -> String {
        let report = &self.report;
        let of = self.project.as_ref();
        let of = of.map_or_else(String::new, |key| format!(", in {key}"));
        let mut text = format!("the last {days} d on this machine{of}\n");
        text.push_str(&format!(
            "prompts searched:     {} of {}\n",
            ui::number(report.asked),
            ui::number(report.prompts),
        ));
        text.push_str(&format!(
            "prompts with a match: {}{}\n",
            ui::number(self.matched()),
            share(self.matched(), report.asked),
        ));
        let (shown, used) = self.shown();
        text.push_str(&format!(
            "notes injected:       {}, {} of them at prompts; {} repeats held back\n",
            ui::number(self.injections()),
            ui::number(report.given),
            ui::number(self.repeats()),
        ));
        text.push_str(&format!(
            "notes used:           {} of {}{}, counting each note once per session\n",
            ui::number(used),
            ui::number(shown),
            share(used, shown),
        ));
        text.push_str(&format!(
            "ratings:              {} good, {} bad\n",
            self.good, self.bad
        ));
        for run in &self.hooks {
            text.push_str(&format!(
                "hook:    {} {}, p95 {}\n",
                run.event,
                milliseconds(run.median),
                milliseconds(run.p95)
            ));
        }
        for (heading, notes) in [
            ("most used", &self.used),
            ("injected often, never used", &self.ignored),
        ] {
            if !notes.is_empty() {
                text.push_str(&format!("\n{heading}\n"));
            }
            for (entry, given, used) in notes {
                let short = Context::short(index, entry.id());
                let tail = format!("{used} of {}", ui::count(*given, "session"));
                text.push_str(&ui::line_with(entry, &short, &tail));
            }
        }
        if !self.ignored.is_empty() {
            text.push_str("→ anamnesis mute ID   |   anamnesis edit ID\n");
        }
        text
    }

    fn json(&self, days: u32) -> Value {
        let report = &self.report;
        let (shown, used) = self.shown();
        let notes = |notes: &[(Entry, usize, usize)]| -> Vec<Value> {
            notes
                .iter()
                .map(|(entry, given, used)| {
                    let id = entry.id().to_string();
                    json!({ "id": id, "title": entry.title, "given": given, "used": used })
                })
                .collect()
        };
        let hooks: Vec<Value> = self
            .hooks
            .iter()
            .map(|run| {
                json!({ "event": run.event, "runs": run.count, "median_us": run.median,
                        "p95_us": run.p95, "worst_us": run.worst })
            })
            .collect();
        json!({
            "days": days,
            "prompts": report.prompts,
            "looked_for": report.asked,
            "silent": report.silent,
            "matched": self.matched(),
            "injected": self.injections(),
            "share_silent": ratio(report.silent, report.asked),
            "given": report.given,
            "notes_per_prompt": ratio(report.given, report.asked),
            "shown": shown,
            "used": used,
            "share_used": ratio(used, shown),
            "repeats": self.repeats(),
            "held": report.held,
            "feedback": { "good": self.good, "bad": self.bad },
            "hooks": hooks,
            "most_used": notes(&self.used),
            "never_used": notes(&self.ignored),
        })
    }
}

/// The ratio of two counts; `None` if the second is zero.
fn ratio(part: usize, whole: usize) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn share(part: usize, whole: usize) -> String {
    ratio(part, whole).map_or_else(String::new, |share| format!(" ({:.0} %)", share * 100.0))
}
