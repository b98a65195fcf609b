//! `stats`: shows how injected notes were used.

use std::{collections::BTreeMap, process::ExitCode};

use anamnesis_app::{
    Error,
    context::{Context, PATIENCE},
    format::milliseconds,
};
use anamnesis_note::{id::NoteId, note::State};
use anamnesis_recall::reason::WithholdingReason;
use anamnesis_store::{
    index::{Entry, Index},
    journal::{HookRuns, Journal, Report},
};
use serde_json::{Value, json};

use crate::ui::{self, Outcome, Ui};

/// How many notes a list names.
const NAMED: usize = 5;

/// In how many sessions a note must be injected before it is reported as unused.
const GIVEN_OFTEN: usize = 3;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Show how injected notes were used
///
/// Counted on this machine, as far back as its records go (`retention.events_days`). Ratings are
/// counted on all machines and never expire.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of days to look back
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

struct Stats {
    report: Report,
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
    let journal = Journal::open(&context.home, PATIENCE)?;
    let now = context.environment.now;
    let since = now.timestamp_millis() - i64::from(args.days) * DAY;
    let report = journal.usage_report(since)?;
    let (good, bad) = feedback(&index)?;
    let (used, ignored) = ranked(&index, &report.notes)?;
    let stats = Stats {
        hooks: journal.hook_runs(now)?,
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

/// The good and the bad ratings on all machines.
fn feedback(index: &Index) -> Result<(u64, u64), Error> {
    let usage = index.usage_of(index.notes_with_usage()?)?;
    let counts = usage.values().flatten().map(|(_, counts)| counts);
    Ok(counts.fold((0, 0), |(good, bad): (u64, u64), counts| {
        (
            good.saturating_add(counts.good),
            bad.saturating_add(counts.bad),
        )
    }))
}

type Ranked = Vec<(Entry, usize, usize)>;

/// The most used notes, and the unused notes that were injected most; ties by id.
fn ranked(
    index: &Index,
    notes: &BTreeMap<NoteId, (usize, usize)>,
) -> Result<(Ranked, Ranked), Error> {
    let pick = |mut chosen: Vec<(NoteId, usize, usize)>| -> Result<Ranked, Error> {
        chosen.sort_by_key(|(id, given, used)| (std::cmp::Reverse((*used, *given)), *id));
        let mut entries = Vec::new();
        for (id, given, used) in chosen {
            if entries.len() == NAMED {
                break;
            }
            // Notes that were forgotten since are not listed.
            let entry = index.get(id)?;
            let entry = entry.filter(|e| e.state != State::Forgotten);
            entries.extend(entry.map(|entry| (entry, given, used)));
        }
        Ok(entries)
    };
    let all = || notes.iter().map(|(id, (given, used))| (*id, *given, *used));
    let used = all().filter(|(_, _, used)| *used > 0).collect();
    let ignored = all().filter(|(_, given, used)| *used == 0 && *given >= GIVEN_OFTEN);
    Ok((pick(used)?, pick(ignored.collect())?))
}

impl Stats {
    /// The number of injected notes, and how many of them were used.
    fn shown(&self) -> (usize, usize) {
        let notes = self.report.notes.values();
        notes.fold((0, 0), |sum, (given, used)| (sum.0 + given, sum.1 + used))
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
        let mut text = format!("the last {days} d on this machine\n");
        text.push_str(&format!(
            "prompts: {}; notes looked for at {}, none given at {}{}\n",
            ui::number(report.prompts),
            ui::number(report.asked),
            ui::number(report.silent),
            share(report.silent, report.asked),
        ));
        let each = ratio(report.given, report.asked)
            .map_or_else(String::new, |each| format!(", {each:.1} a time"));
        text.push_str(&format!(
            "         {} given{each}\n",
            ui::count(report.given, "note")
        ));
        let (shown, used) = self.shown();
        text.push_str(&format!(
            "used:    {} of {} that sessions were given{}\n",
            ui::number(used),
            ui::count(shown, "note"),
            share(used, shown),
        ));
        text.push_str(&format!(
            "repeats: {} held back\n",
            ui::number(self.repeats())
        ));
        text.push_str(&format!(
            "said:    {} good, {} bad, on all machines\n",
            self.good, self.bad
        ));
        for run in &self.hooks {
            text.push_str(&format!(
                "hook:    {} {}, 19 of 20 within {}\n",
                run.event,
                milliseconds(run.median),
                milliseconds(run.p95)
            ));
        }
        for (heading, notes) in [
            ("most used", &self.used),
            ("given often, never used", &self.ignored),
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
