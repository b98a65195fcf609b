//! `sessions`: shows what is recorded of each session, and what was left out.

mod export;
mod show;

use anamnesis_app::{
    Error, backfill,
    context::{Context, TIMEOUT},
    format::width,
    ops::note::Note,
    session::{
        export::{SessionList, head_json, inert},
        note_label, prompts, short, state,
    },
};
use anamnesis_store::{
    index::Index,
    journal::{Journal, Session},
};
use anamnesis_text::clean::one_line;

use crate::ui::{self, LIST_LENGTH, Outcome, Ui};

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
    /// List the sessions of this project [default: that of this folder]
    #[arg(long, value_name = "KEY", conflicts_with = "everywhere")]
    project: Option<String>,
    /// List the sessions of every project
    #[arg(long)]
    everywhere: bool,
    /// The maximum number of sessions, up to 200
    #[arg(short = 'n', long, value_name = "N", alias = "k", short_alias = 'k', default_value_t = LIST_LENGTH, value_parser = ui::at_least_one)]
    limit: usize,
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
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let index = context.index()?;
    let project = (!args.everywhere).then(|| context.project(args.project.as_deref()).key);
    let limit = args.limit.min(MAX_LISTED);
    let total = journal.count_sessions(project.as_deref())?;
    let sessions = journal.sessions(project.as_deref(), limit)?;
    let backfilled = backfill::noted(context, &journal, &index, project.as_deref())?;
    if args.json {
        let mut list = SessionList {
            sessions: Vec::new(),
            total,
            backfilled: backfilled
                .into_iter()
                .map(|entry| Note::new(context, entry))
                .collect(),
        };
        for session in &sessions {
            let mut json = head_json(session, &index)?;
            json["prompts"] = session.prompts.into();
            json["tool_events"] = session.tool_events.into();
            json["first_prompt"] = session.first_prompt.clone().into();
            list.sessions.push(inert(context, json));
        }
        return ui.json(list);
    }
    if total == 0 && backfilled.is_empty() {
        let place = project.map_or_else(String::new, |key| format!(" of {}", one_line(&key)));
        let hint = if args.everywhere {
            "anamnesis doctor"
        } else {
            "anamnesis sessions --everywhere"
        };
        return ui.answer(&format!("0 sessions{place}\n→ {hint}\n"));
    }
    let mut text = String::new();
    for session in &sessions {
        text.push_str(&line(session, context, &journal, &index, args.everywhere)?);
    }
    let more = if limit < MAX_LISTED {
        format!(" · -n {}", total.min(MAX_LISTED))
    } else {
        String::new()
    };
    text.push_str(&ui::shown_of(sessions.len(), total, &more));
    if !backfilled.is_empty() {
        let noted = ui::count(backfilled.len(), "session");
        text.push_str(&format!("{noted} without records, noted by backfill:\n"));
    }
    for entry in backfilled.iter().take(limit) {
        text.push_str(&ui::listed(&index, entry, context.environment.now));
    }
    text.push_str(&ui::shown_of(limit, backfilled.len(), ""));
    ui.page(&text, "")
}

/// Formats a session on two lines.
fn line(
    session: &Session,
    context: &Context,
    journal: &Journal,
    index: &Index,
    everywhere: bool,
) -> Result<String, Error> {
    let id = short(journal, session)?;
    let ago = ui::ago(ui::time(session.seen_at), context.environment.now);
    let mut first = format!(
        "{id}  {ago} · {} · {}",
        ui::shorten(&state(session), 30),
        note_label(session, index)?
    );
    if everywhere {
        let room = width().saturating_sub(first.chars().count() + 3).max(8);
        first.push_str(&format!(
            " · {}",
            ui::shorten(&one_line(&session.project), room)
        ));
    }
    let mut second = format!(
        "          {}, {}",
        ui::counted(prompts(journal, session)?, "prompt"),
        ui::counted(session.tool_events, "tool event")
    );
    if let Some(prompt) = &session.first_prompt {
        let prompt = context.printable(prompt);
        let prompt = one_line(prompt.trim().lines().next().unwrap_or_default());
        let room = width().saturating_sub(second.chars().count() + 3).max(8);
        second.push_str(&format!(" · {}", ui::shorten(&prompt, room)));
    }
    Ok(format!("{first}\n{second}\n"))
}
