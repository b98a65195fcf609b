//! `status`: shows what the memory contains for this folder, and whether it is healthy.

use std::{collections::BTreeMap, process::ExitCode};

use anamnesis_app::{
    claude_memory,
    context::Context,
    doctor,
    failure::Failure,
    pause::{self, Off},
    sync::Standing,
};
use anamnesis_note::{
    merge::CONFLICT_TAG,
    note::{GLOBAL, Kind},
};
use anamnesis_recall::render;
use anamnesis_recall::session_start::{self, DEFAULT_K, Request};
use anamnesis_store::{
    index::{Filter, Index},
    journal::Journal,
    project::Project,
    settings::config::Retention,
};
use serde_json::json;

use super::{backfill, project::explain, upkeep::Found};
use crate::ui::{self, Outcome, Ui};

/// How many characters of a fault fit on the line.
const STATE_LENGTH: usize = ui::WIDTH - "state:  · anamnesis doctor".len() + 1;

/// Show what the memory holds here and whether it is healthy
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

struct Status {
    here: usize,
    by_kind: BTreeMap<&'static str, usize>,
    given: usize,
    tokens: usize,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let index = context.index()?;
    let folder = context
        .environment
        .project_folder
        .clone()
        .or_else(Context::current_folder)
        .unwrap_or_default();
    let project = context.project_of(&folder);
    let counts = index.counts()?;
    let conflicts = index.count(&Filter {
        tag: Some(CONFLICT_TAG.to_owned()),
        ..Filter::default()
    })?;
    let status = status(context, &index, &project)?;
    let verdict = doctor::verdict(context, &index);
    let store = context.shown(context.home.root());
    let off = pause::here(context);
    let journal = context.journal();
    let kept = journal.as_ref().and_then(Kept::of);
    let standing = Standing::load(context, journal.as_ref());
    let found = journal.as_ref().and_then(Found::load);
    let found = found.filter(|found| found.actions + found.decisions > 0);
    if args.json {
        ui.json(&json!({
            "store": context.home.as_named(context.home.root()).display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "machine_id": context.machine_id(),
            "off": off.is_some(),
            "off_because": off.map(Off::reason),
            "project": { "key": project.key, "notes": status.here, "by_kind": status.by_kind,
                         "given_at_start": status.given, "tokens_at_start": status.tokens },
            "total": counts.total,
            "by_type": counts.by_type,
            "by_project": counts.by_project,
            "by_scope": counts.by_scope,
            "by_workspace": counts.by_workspace,
            "by_state": counts.by_state,
            "sync": standing.json(),
            "kept": kept.as_ref().map(|kept| json!({ "sessions": kept.sessions, "bytes": kept.bytes })),
            "upkeep": found,
            "state": { "ok": verdict.is_well, "text": verdict.text },
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let on = off.map_or_else(|| "on".to_owned(), |off| format!("off ({})", off.reason()));
    let mut text = String::new();
    if counts.total == 0 {
        text.push_str(&format!("store: {store} · {on} · this machine only\n"));
        text.push_str(if off.is_some() {
            "notes: 0\n"
        } else {
            "notes: 0; this session is noted when it ends\n"
        });
        let past = backfill::countable(context, &folder);
        if past > 0 {
            text.push_str(&format!(
                "past:  {} of this project can be remembered: anamnesis backfill\n",
                ui::count(past, "earlier session")
            ));
        }
    } else {
        text.push_str(&format!(
            "store: {store} · {on} · machine {} · {}\n",
            context.machine_id(),
            env!("CARGO_PKG_VERSION")
        ));
        let (step, _) = explain(&project);
        text.push_str(&format!(
            "here:  {} (from {})\n",
            ui::shorten(&project.key, 50),
            step.trim_end_matches(" of")
        ));
        let kinds: Vec<String> = status
            .by_kind
            .iter()
            .map(|(kind, amount)| format!("{amount} {kind}"))
            .collect();
        let kinds = if kinds.is_empty() {
            String::new()
        } else {
            format!(": {}", kinds.join(", "))
        };
        text.push_str(&format!(
            "       {}{kinds}\n",
            ui::count(status.here, "note")
        ));
        let starts = ui::count(status.given, "note");
        text.push_str(&format!(
            "       a session starts with {starts}, ~{} tokens\n",
            ui::number(status.tokens)
        ));
        let everywhere = counts.by_project.get(GLOBAL).copied().unwrap_or(0);
        let local = counts.by_scope.get("machine-local").copied().unwrap_or(0);
        text.push_str(&format!(
            "notes: {} in {}, {} for all projects, {} on this machine only\n",
            ui::number(counts.total),
            ui::count(
                counts
                    .by_project
                    .keys()
                    .filter(|key| *key != GLOBAL)
                    .count(),
                "project"
            ),
            ui::number(everywhere),
            ui::number(local),
        ));
    }
    text.push_str(&standing.line(context.environment.now));
    if let Some(kept) = kept.as_ref().filter(|kept| kept.sessions > 0) {
        text.push_str(&kept.line(&context.config.retention));
    }
    let proposals = counts.by_state.get("proposed").copied().unwrap_or(0);
    let waiting: Vec<String> = [(proposals, "proposal"), (conflicts, "conflict")]
        .into_iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, thing)| ui::count(amount, thing))
        .collect();
    if !waiting.is_empty() {
        text.push_str(&format!(
            "waits: {} · anamnesis review\n",
            waiting.join(", ")
        ));
    }
    if let Some(found) = &found {
        text.push_str(&format!(
            "tidy:  {} to put in order, {} for you to decide · anamnesis upkeep\n",
            ui::number(found.actions),
            ui::number(found.decisions)
        ));
    }
    text.push_str(&format!(
        "state: {} · anamnesis doctor\n",
        ui::shorten(&verdict.text, STATE_LENGTH)
    ));
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

/// What the journal contains.
struct Kept {
    sessions: usize,
    bytes: u64,
}

impl Kept {
    /// Queries the journal; `None` if it cannot be read.
    fn of(journal: &Journal) -> Option<Self> {
        Some(Self {
            sessions: journal.count_kept().ok()?,
            bytes: journal.used_bytes().ok()?,
        })
    }

    fn line(&self, retention: &Retention) -> String {
        let term = |days: u32| match days {
            0 => "for ever".to_owned(),
            days => format!("{days} d"),
        };
        let sessions = match self.sessions {
            1 => "1 session's".to_owned(),
            several => format!("{} sessions'", ui::number(several)),
        };
        format!(
            "kept:  {sessions} raw records, {}, here only: prompts {}, tools {}\n",
            ui::size(self.bytes),
            term(retention.prompts_days),
            term(retention.events_days),
        )
    }
}

fn status(context: &Context, index: &Index, project: &Project) -> Result<Status, Failure> {
    let mut by_kind = BTreeMap::new();
    for kind in Kind::ALL {
        let filter = Filter {
            projects: project.all_keys(),
            kind: Some(*kind),
            with_superseded: true,
            ..Filter::default()
        };
        let amount = index.count(&filter)?;
        if amount > 0 {
            by_kind.insert(kind.shown(), amount);
        }
    }
    let now = context.environment.now;
    let journal = context.journal();
    let request = Request {
        project: &project.key,
        also: &project.also,
        k: DEFAULT_K,
        session: None,
        now,
        had: &claude_memory::copies(journal.as_ref(), &project.key),
    };
    let mut chosen = session_start::select(index, &context.notes, &request)?;
    let given = chosen.len();
    chosen.extend(session_start::open_tasks(index, &context.notes, &request)?);
    let block = render::hook_block(&chosen, now, |id| Context::short(index, id));
    Ok(Status {
        here: by_kind.values().sum(),
        by_kind,
        given,
        tokens: block.tokens(),
    })
}
