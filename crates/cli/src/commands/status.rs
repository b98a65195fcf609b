//! `status`: shows what the memory contains for this folder, and whether it is healthy.

use anamnesis_app::{
    backfill,
    context::Context,
    reflect,
    status::{Kept, Overview},
};
use anamnesis_note::{note::GLOBAL, project_key::is_shared};
use anamnesis_store::settings::config::Retention;
use anamnesis_text::clean::one_line;

use super::project::explain;
use crate::ui::{self, Outcome, Ui};

/// Show what the memory holds here and whether it is healthy
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Show this project in place of that of this folder
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let status = Overview::of_project(context, args.project.as_deref())?;
    ui.shown(args.json, status.report(context), &text(context, &status))
}

fn text(context: &Context, status: &Overview) -> String {
    let mut text = if status.counts.total == 0 {
        empty(context, status)
    } else {
        filled(context, status)
    };
    text.push_str(&status.sync.line(context.environment.now));
    if let Some(Kept {
        sessions: sessions @ 1..,
        bytes,
    }) = status.kept
    {
        text.push_str(&kept_line(sessions, bytes, &context.config.retention));
    }
    let amount = |state: &str| status.counts.by_state.get(state).copied().unwrap_or(0);
    let pending = [
        (amount("proposed"), "proposal"),
        (status.conflicts, "conflict"),
    ];
    let pending = pending.into_iter().filter(|(amount, _)| *amount > 0);
    let pending: Vec<String> = pending
        .map(|(amount, thing)| ui::count(amount, thing))
        .collect();
    if !pending.is_empty() {
        text.push_str(&format!(
            "to do: {} · anamnesis review\n",
            pending.join(", ")
        ));
    }
    if let Some(sessions) = status.undistilled {
        text.push_str(&format!("learn: {}\n", reflect::reminder(sessions)));
    }
    if let Some(found) = &status.upkeep {
        text.push_str(&format!(
            "tidy:  {} to put in order, {} for you to decide · anamnesis upkeep\n",
            ui::number(found.actions),
            ui::number(found.decisions)
        ));
    }
    for line in &status.withheld {
        text.push_str(&format!("held:  {line}\n"));
    }
    for place in &status.purge_left {
        let line = one_line(&place.text);
        text.push_str(&format!("purge: {line}\n"));
    }
    if let Some(vectors) = status.vectors {
        text.push_str(&format!(
            "search: words and meaning, {} of {} have a vector · anamnesis config model\n",
            ui::number(vectors.done),
            ui::count(vectors.total, "note")
        ));
    }
    let state = ui::width() + 1 - "state:  · anamnesis doctor".len();
    let state = ui::shorten(&status.verdict.text, state);
    text + &format!("state: {state} · anamnesis doctor\n")
}

fn on(status: &Overview) -> String {
    let off = status.off;
    off.map_or_else(|| "on".to_owned(), |off| format!("off ({})", off.reason()))
}

/// The lines for a store without notes.
fn empty(context: &Context, status: &Overview) -> String {
    let store = context.shown(context.home.root());
    let mut text = format!("store: {store} · {} · this machine only\n", on(status));
    text.push_str(match status.off {
        Some(_) => "notes: 0\n",
        None => "notes: 0; a session is noted when it ends\n",
    });
    let past = backfill::countable(context, &status.folder);
    if past > 0 {
        let sessions = ui::count(past, "earlier session");
        text.push_str(&format!(
            "past:  {sessions} of this project can get a note: anamnesis backfill\n"
        ));
    }
    text
}

/// The lines about the notes of this project and of all.
fn filled(context: &Context, status: &Overview) -> String {
    let (_, step, _) = explain(&status.project);
    let kinds = status.by_kind.iter();
    let kinds: Vec<String> = kinds
        .map(|(kind, amount)| ui::count(*amount, kind))
        .collect();
    let kinds = match kinds.join(", ") {
        none if none.is_empty() => none,
        kinds => format!(": {kinds}"),
    };
    let counts = &status.counts;
    let projects = counts
        .by_project
        .keys()
        .filter(|key| !is_shared(key))
        .count();
    let amount = |amount: Option<&usize>| ui::number(amount.copied().unwrap_or(0));
    let start = if status.off.is_some() {
        String::new()
    } else {
        format!(
            "       a session starts with {}, ~{} tokens\n",
            ui::count(status.injected, "note"),
            ui::number(status.tokens),
        )
    };
    format!(
        "store: {} · {} · machine {} · {}\n\
         here:  {} (from {})\n       \
         {}{kinds}\n\
         {start}notes: {} in {}, {} for all projects, {} on this machine only\n",
        context.shown(context.home.root()),
        on(status),
        context.machine_id(),
        env!("CARGO_PKG_VERSION"),
        ui::shorten(&status.project.key, 50),
        step.trim_end_matches(" of"),
        ui::count(status.here(), "note"),
        ui::number(counts.total),
        ui::count(projects, "project"),
        amount(counts.by_project.get(GLOBAL)),
        amount(counts.by_scope.get("machine-local")),
    )
}

/// The line about the journal.
fn kept_line(sessions: usize, bytes: u64, retention: &Retention) -> String {
    let term = |days: u32| match days {
        0 => "for ever".to_owned(),
        days => format!("{days} d"),
    };
    let sessions = match sessions {
        1 => "1 session's".to_owned(),
        several => format!("{} sessions'", ui::number(several)),
    };
    format!(
        "kept:  {sessions} raw records, {}, here only: {}\n",
        ui::size(bytes),
        term(retention.records_days),
    )
}
