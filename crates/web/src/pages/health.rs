//! The checks with their fixes, the times of the hooks, and how much is injected.

use anamnesis_app::{
    Error,
    doctor::{self, Depth, Health, NamedResult},
    format::{count, counted, milliseconds, number, share},
    status,
};
use anamnesis_store::{index::Index, journal::Journal};
use anamnesis_text::clean::{clean, one_line};
use maud::{Markup, html};

use crate::{
    chart::{self, Bar},
    layout::{self, ago_ms, line},
    visit::{Answered, Visit},
};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// The parameter with which all checks are made.
const ALL: &str = "all";

/// How many days the report looks back.
const DAYS: i64 = 30;

pub(crate) fn show(visit: &Visit) -> Answered {
    let context = &visit.context;
    let depth = match visit.query.get(ALL) {
        Some(_) => Depth::Thorough,
        None => Depth::Quick,
    };
    let mut checks = doctor::examine(context, depth);
    let index = visit.index()?;
    checks.sort_by_key(|(_, check)| std::cmp::Reverse(check.health));
    let is_fault = |health| matches!(health, Health::Look | Health::Broken);
    let faults = checks.iter().filter(|(_, check)| is_fault(check.health));
    let faults = faults.count();
    let main = html! {
        h1 { "Health" }
        @match faults {
            0 => { p.hint { "No fault is known." } }
            _ => { p.message { (count(faults, "check")) " to look at." } }
        }
        section {
            h2 { "Checks" }
            ul.checks { @for check in &checks { (item(check)) } }
            @if depth == Depth::Quick {
                p.hint { a href={ "/health?" (ALL) "=yes" } { "Check the databases, too" }
                    ", byte by byte: up to two seconds." }
            }
            @if faults > 0 {
                p.hint {
                    code { "anamnesis doctor --fix" } " in a terminal fixes what needs no decision."
                }
            }
        }
        section { h2 { "Hooks" } (hooks(visit)) }
        section id="recall" data-live="journal" {
            h2 { "Recall" }
            @match context.records()? {
                Some(journal) => { (recall(visit, &journal)?) }
                None => { p { "No session was recorded yet." } }
            }
        }
        section { h2 { "Tokens per session" } (tokens(visit, &index)?) }
        section { h2 { "Model" } (model(visit)?) }
    };
    Ok(layout::page(visit, "Health", &main))
}

fn item((name, check): &NamedResult) -> Markup {
    let (class, word) = match check.health {
        Health::Well => ("chip ok", "well"),
        Health::Unknown => ("chip", "unknown"),
        Health::Look => ("chip warn", "look"),
        Health::Broken => ("chip bad", "broken"),
    };
    html! {
        li {
            div.line { span class=(class) { (word) } strong { (name) } }
            @for line in &check.lines { p { bdi { (one_line(line)) } } }
            @if let Some(hint) = &check.hint { p.hint { "Fix: " code { (clean(hint)) } } }
        }
    }
}

fn hooks(visit: &Visit) -> Markup {
    let runs = doctor::hook_runs(&visit.context);
    let rows = runs.iter().map(|run| Bar {
        label: line(&run.event),
        href: None,
        value: run.p95,
        part: run.median,
        text: format!(
            "median {}, 95th percentile {}",
            milliseconds(run.median),
            milliseconds(run.p95)
        ),
    });
    let rows: Vec<Bar> = rows.collect();
    let now = visit.context.environment.now;
    html! {
        @if rows.is_empty() { p { "No hook ran yet." } } @else {
            (chart::bars("Time per run: median (dark) and 95th percentile", &rows))
        }
        @for run in &runs {
            @if let Some((error, at)) = &run.last_error {
                p.hint { (line(&run.event)) " failed " (ago_ms(*at, now)) ": " (one_line(error)) }
            }
        }
    }
}

/// How often something was injected. A prompt without a matching note gets none.
fn recall(visit: &Visit, journal: &Journal) -> Result<Markup, Error> {
    let today = visit.context.environment.now.timestamp_millis() / DAY;
    let report = journal.usage_report((today - DAYS + 1) * DAY, &[])?;
    let sessions = |of: fn(&anamnesis_store::journal::NoteReport) -> usize| {
        report.notes.values().map(of).sum::<usize>()
    };
    let (shown, used) = (sessions(|note| note.sessions), sessions(|note| note.used));
    if report.asked == 0 {
        return Ok(html! {
            p { (format!("No notes were searched for a prompt in the last {DAYS} days.")) }
        });
    }
    Ok(html! {
        dl {
            dt { "Prompts searched" } dd {
                (number(report.asked)) " of " (number(report.prompts))
                " in " (DAYS) " days"
            }
            dt { "Silent" } dd {
                (number(report.silent)) (share(report.silent, report.asked))
                " of the searches injected nothing"
            }
            dt { "Injected at prompts" } dd { (count(report.given, "note")) }
            dt { "Used" } dd {
                (number(used)) " of " (number(shown)) (share(used, shown))
                ", each note once per session"
            }
        }
    })
}

fn tokens(visit: &Visit, index: &Index) -> Result<Markup, Error> {
    let context = &visit.context;
    let folder = status::folder(context);
    let project = context.project_of(&folder);
    let journal = context.records()?;
    let (injected, block) =
        status::at_start(context, index, journal.as_ref(), &project, Some(&folder))?;
    let recall = &context.config.recall;
    Ok(html! {
        dl {
            dt { "At the start" } dd {
                (count(injected, "note")) ", about " (number(block.tokens())) " tokens, in "
                bdi { (line(&project.key)) }
            }
            dt { "Per prompt" } dd {
                @if recall.prompt {
                    "At most " (recall.notes) " notes and " (recall.tokens) " tokens; most prompts get none. "
                } @else { "None: that is switched off. " }
                a href="/settings" { "Settings" }
            }
        }
    })
}

/// The calls to a model today.
fn model(visit: &Visit) -> Result<Markup, Error> {
    let today = visit.context.environment.now.format("%Y-%m-%d").to_string();
    let (calls, tokens) = match visit.context.records()? {
        Some(journal) => journal.spent_on(&today)?,
        None => (0, 0),
    };
    Ok(html! {
        p {
            @if calls == 0 { "No model was called in the background today." }
            @else { (counted(calls, "call")) " today, " (counted(tokens, "token")) "." }
        }
    })
}
