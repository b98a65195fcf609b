//! `doctor`: checks everything, reports what is wrong and how to fix it.

use std::process::ExitCode;

use anamnesis_app::{
    context::{Context, TIMEOUT},
    doctor::{
        self, CheckResult, Depth, DoctorReport, EVENTS, Health, NamedResult, PROGRAM, ReportedCheck,
    },
    environment::{Environment, VARIABLES},
    format::milliseconds,
};
use anamnesis_store::journal;
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Ui};

/// Check everything and say how to fix it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fix what needs no decision: file modes, the index, damaged or pending records
    #[arg(long)]
    fix: bool,
    /// Print a text for a bug report, without notes, prompts or names
    #[arg(long, conflicts_with = "fix")]
    report: bool,
    /// Also print the program's checksum, the times of every hook, and every variable
    #[arg(long)]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    let context = Context::unchecked(environment, TIMEOUT)?;
    let fixed = if args.fix {
        doctor::repair(&context)
    } else {
        Vec::new()
    };
    let rows = doctor::examine(&context, Depth::Thorough);
    // Without --fix, doctor reports damage and starts no repair.
    journal::damage_was_seen();
    let amount = |health| rows.iter().filter(|(_, it)| it.health == health).count();
    let (broken, look) = (amount(Health::Broken), amount(Health::Look));
    if args.json {
        let checks = rows.iter();
        let checks = checks.map(|(name, result)| ReportedCheck { name, result });
        ui.json(DoctorReport {
            checks: checks.collect(),
            broken,
            look,
            fixed,
        })?;
    } else if args.report {
        ui.print(&report(&context, &rows));
    } else {
        let fixed = fixed.iter().map(|line| format!("fixed: {line}\n"));
        // The checksum requires nothing from the reader.
        let shown = rows
            .iter()
            .filter(|(name, _)| args.verbose || *name != PROGRAM);
        let mut text: String = fixed.chain(shown.map(row_text)).collect();
        if args.verbose {
            text.push_str(&verbose(&context));
        }
        text.push_str(&match (broken, look) {
            (0, 0) if rows.iter().all(|(_, it)| it.hint.is_none()) => "nothing to do\n".to_owned(),
            (0, 0) => "nothing is broken; → is what you may do\n".to_owned(),
            (0, look) => format!("{look} to look at\n"),
            (broken, 0) => format!("{broken} broken\n"),
            (broken, look) => format!("{broken} broken, {look} to look at\n"),
        });
        ui.print(&text);
    }
    Ok(
        match doctor::worst(rows.iter().map(|(_, finding)| finding)) {
            Health::Well | Health::Unknown => ExitCode::SUCCESS,
            Health::Look => ui::attention(true),
            Health::Broken => ExitCode::FAILURE,
        },
    )
}

/// The sign and the word of a state.
fn shown(health: Health) -> (char, &'static str) {
    match health {
        Health::Well => ('✓', "well"),
        Health::Unknown => ('?', "unknown"),
        Health::Look => ('!', "look"),
        Health::Broken => ('✗', "broken"),
    }
}

fn row_text((name, finding): &NamedResult) -> String {
    let CheckResult {
        health,
        lines,
        hint,
    } = finding;
    let (sign, _) = shown(*health);
    let mut head = format!("{sign} {name:<10}");
    let mut text = String::new();
    for line in lines {
        text.push_str(&format!("{head:<12} {line}\n"));
        head.clear();
    }
    if let Some(hint) = hint {
        text.push_str(&format!("             → {hint}\n"));
    }
    text
}

/// The times of every hook, and every variable that is read.
fn verbose(context: &Context) -> String {
    let mut text = String::new();
    let runs = doctor::hook_runs(context);
    let now = context.environment.now;
    for run in &runs {
        text.push_str(&format!(
            "  {:<18} last {}, {} today, median {}, worst {}\n",
            one_line(&run.event),
            ui::ago(ui::time(run.last_at), now),
            ui::number(usize::try_from(run.today).unwrap_or(0)),
            milliseconds(run.median),
            milliseconds(run.worst)
        ));
        if let Some((error, at)) = &run.last_error {
            let line = format!("error {}: {}", ui::ago(ui::time(*at), now), one_line(error));
            text.push_str(&ui::wrapped(&line, 21));
        }
    }
    for event in EVENTS {
        if runs.iter().all(|run| run.event != event) {
            text.push_str(&format!("  {event:<18} never ran\n"));
        }
    }
    for variable in VARIABLES {
        text.push_str(&format!("  {:<22} {}\n", variable.name, variable.meaning));
    }
    text
}

/// A text for a bug report: states and times, no user data.
fn report(context: &Context, rows: &[NamedResult]) -> String {
    let mut text = format!(
        "anamnesis {} on {} {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    for (name, finding) in rows {
        text.push_str(&format!("{name} {}\n", shown(finding.health).1));
    }
    for run in doctor::hook_runs(context) {
        if !EVENTS.contains(&run.event.as_str()) {
            continue;
        }
        text.push_str(&format!(
            "{} {} runs, median {}, worst {}{}\n",
            run.event,
            run.count,
            milliseconds(run.median),
            milliseconds(run.worst),
            run.last_error.map_or("", |_| ", an error")
        ));
    }
    text
}
