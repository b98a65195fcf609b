//! `sessions`: shows what is recorded of each session, and what was left out.

mod export;
mod show;

use std::{process::ExitCode, time::Duration};

use anamnesis_app::{context::Context, failure::Failure, format::WIDTH};
use anamnesis_note::{id::NoteId, note::State};
use anamnesis_store::{
    index::{Entry, Index},
    journal::{Journal, LOST, Session},
};
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use super::show::shown;
use crate::ui::{self, LIST_LENGTH, Outcome, Ui};

/// Timeout for another process that writes the journal.
const PATIENCE: Duration = Duration::from_secs(10);

/// The length limit of a list.
const MAX_LISTED: usize = 200;

/// Show what is recorded of each session
///
/// Without a command: lists the sessions of this project, newest first.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Show(show::Args),
    Export(export::Args),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// List the sessions of every project
    #[arg(long)]
    everywhere: bool,
    /// The maximum number of sessions, up to 200
    #[arg(short, long, alias = "limit", default_value_t = LIST_LENGTH)]
    k: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    match &args.verb {
        None => list(&args.list, context, ui),
        Some(Verb::Show(args)) => show::run(args, context, ui),
        Some(Verb::Export(args)) => export::run(args, context, ui),
    }
}

fn list(args: &ListArgs, context: &Context, ui: &Ui) -> Outcome {
    let journal = open(context)?;
    let index = context.index()?;
    let project = (!args.everywhere).then(|| context.project(None).key);
    let limit = args.k.min(MAX_LISTED);
    let total = journal.count_sessions(project.as_deref())?;
    let sessions = journal.sessions(project.as_deref(), limit)?;
    if args.json {
        let mut list = Vec::new();
        for session in &sessions {
            let mut json = head_json(session, &index)?;
            json["prompts"] = session.prompts.into();
            json["tool_events"] = session.tool_events.into();
            json["first_prompt"] = json!(session.first_prompt);
            list.push(inert(context, json));
        }
        ui.json(&json!({ "sessions": list, "total": total }));
        return Ok(ExitCode::SUCCESS);
    }
    if total == 0 {
        let place = project.map_or_else(String::new, |key| format!(" of {}", one_line(&key)));
        let hint = if args.everywhere {
            "anamnesis doctor"
        } else {
            "anamnesis sessions --everywhere"
        };
        ui.print(&format!("0 sessions{place}\n→ {hint}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for session in &sessions {
        text.push_str(&line(session, context, &journal, &index, args.everywhere)?);
    }
    if sessions.len() < total {
        let more = if limit < MAX_LISTED {
            format!(" · -k {}", total.min(MAX_LISTED))
        } else {
            String::new()
        };
        text.push_str(&format!(
            "{} of {} shown{more}\n",
            sessions.len(),
            ui::number(total)
        ));
    }
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

/// Formats a session on two lines.
fn line(
    session: &Session,
    context: &Context,
    journal: &Journal,
    index: &Index,
    everywhere: bool,
) -> Result<String, Failure> {
    let id = short(journal, session)?;
    let ago = ui::ago(ui::time(session.seen_at), context.environment.now);
    let mut first = format!(
        "{id}  {ago} · {} · {}",
        ui::shorten(&state(session), 30),
        note_label(session, index)?
    );
    if everywhere {
        let room = WIDTH.saturating_sub(first.chars().count() + 3).max(8);
        first.push_str(&format!(
            " · {}",
            ui::shorten(&one_line(&session.project), room)
        ));
    }
    let mut second = format!(
        "          {}, {}",
        counted(session.prompts, "prompt"),
        counted(session.tool_events, "tool event")
    );
    if let Some(prompt) = &session.first_prompt {
        let prompt = shown(context, prompt);
        let prompt = one_line(prompt.trim().lines().next().unwrap_or_default());
        let room = WIDTH.saturating_sub(second.chars().count() + 3).max(8);
        second.push_str(&format!(" · {}", ui::shorten(&prompt, room)));
    }
    Ok(format!("{first}\n{second}\n"))
}

/// Opens the journal, or explains why it cannot be opened.
pub(super) fn open(context: &Context) -> Result<Journal, Failure> {
    Ok(Journal::open(&context.home, PATIENCE)?)
}

/// The shortest unique prefix of a session's id.
pub(super) fn short(journal: &Journal, session: &Session) -> Result<String, Failure> {
    Ok(one_line(&journal.short_session_id(&session.id)?))
}

/// Whether a session is running, and how it ended.
fn state(session: &Session) -> String {
    match session.end_reason.as_deref() {
        _ if !session.is_completed() => "open".to_owned(),
        Some(LOST) => LOST.to_owned(),
        Some(reason) => format!("ended {}", one_line(reason)),
        None => "ended".to_owned(),
    }
}

/// The session's note, or that there is none.
fn note_label(session: &Session, index: &Index) -> Result<String, Failure> {
    Ok(match index.get(NoteId::of_session(&session.id))? {
        Some(entry) if entry.state == State::Forgotten => "note forgotten".to_owned(),
        Some(entry) => format!("note #{}", Context::short(index, entry.id())),
        None if session.is_completed() => "no note".to_owned(),
        None => "no note yet".to_owned(),
    })
}

/// The JSON keys that a list and a full session share.
fn head_json(session: &Session, index: &Index) -> Result<Value, Failure> {
    let note = index.get(NoteId::of_session(&session.id))?;
    let note = note
        .map(|entry: Entry| json!({ "id": entry.id().to_string(), "state": entry.state.as_str() }));
    let state = match session.end_reason.as_deref() {
        _ if !session.is_completed() => "open",
        Some(LOST) => "lost",
        _ => "ended",
    };
    Ok(json!({
        "id": session.id,
        "project": session.project,
        "folder": session.folder,
        "state": state,
        "end_reason": session.end_reason,
        "started_at": ui::iso(session.started_at),
        "seen_at": ui::iso(session.seen_at),
        "ended_at": session.ended_at.map(ui::iso),
        "note": note,
    }))
}

/// Removes terminal sequences from all texts of a value.
fn inert(context: &Context, value: Value) -> Value {
    match value {
        Value::String(text) => shown(context, &text).into(),
        Value::Array(values) => values
            .into_iter()
            .map(|value| inert(context, value))
            .collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (shown(context, &name), inert(context, value)))
            .collect(),
        other => other,
    }
}

/// Formats a number of rows.
fn counted(amount: i64, thing: &str) -> String {
    ui::count(usize::try_from(amount).unwrap_or(0), thing)
}
