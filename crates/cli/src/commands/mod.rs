//! The commands. Each file has an `Args`, whose doc comments are the help text, and one function.

mod backfill;
mod backfill_provenance;
mod bulk;
mod capture;
mod completions;
mod config;
mod connect;
mod dedup;
mod demo;
mod diff;
mod doctor;
mod edit;
mod eval;
mod feedback;
pub(crate) mod forget;
mod help;
mod history;
mod import;
mod init;
mod inject;
mod list;
mod log;
mod machines;
mod maintain;
mod mark;
mod merge;
mod migrate;
mod normalise;
mod pathway;
mod pause;
mod project;
mod purge;
mod reatomise;
mod recall;
mod redact;
mod reflect;
mod reindex;
mod relink;
mod review;
mod search;
mod serve;
mod sessions;
mod show;
mod stale;
mod stats;
mod status;
mod sync;
pub(crate) mod task;
mod undo;
mod upkeep;
mod verify;
mod why;
mod work;
mod write;

use std::{process::ExitCode, time::Duration};

use anamnesis_app::{context::Context, environment::Environment, failure::Failure, spawn};
use clap::{Parser, Subcommand, error::ErrorKind};

use self::serve::Piped;
use crate::{
    hook,
    ui::{self, Outcome, Ui},
};

/// Memory for Claude Code that stays yours: markdown notes, one binary, no daemon
#[derive(Debug, Parser)]
#[command(name = "anamnesis", version, disable_help_subcommand = true, override_help = help::EVERYDAY, max_term_width = ui::WIDTH)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Status(status::Args),
    Search(search::Args),
    Recall(recall::Args),
    List(list::Args),
    Show(show::Args),
    Write(write::Args),
    Edit(edit::Args),
    Forget(forget::Args),
    Why(why::Args),
    Restore(forget::RestoreArgs),
    Sync(sync::Args),
    Machines(machines::Args),
    Log(log::Args),
    Diff(diff::Args),
    History(history::Args),
    Undo(undo::Args),
    Upkeep(upkeep::Args),
    Move(mark::MoveArgs),
    Pin(mark::PinArgs),
    Mute(mark::MuteArgs),
    Connect(connect::Args),
    Pathway(pathway::Args),
    Task(task::Args),
    Feedback(feedback::Args),
    Verify(verify::Args),
    Stale(stale::Args),
    Review(review::Args),
    Dedup(dedup::Args),
    Normalise(normalise::Args),
    Reatomise(reatomise::Args),
    Migrate(migrate::Args),
    Merge(merge::Args),
    BackfillProvenance(backfill_provenance::Args),
    Stats(stats::Args),
    Eval(eval::Args),
    Pause(pause::Args),
    Resume(pause::ResumeArgs),
    Project(project::Args),
    Purge(purge::Args),
    Inject(inject::Args),
    Capture(capture::Args),
    Reindex(reindex::Args),
    Relink(relink::Args),
    Reflect(reflect::Args),
    Redact(redact::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Help(help::Args),
    Sessions(sessions::Args),
    Backfill(backfill::Args),
    Import(import::Args),
    Maintain(maintain::Args),
    Init(init::Args),
    Config(config::Args),
    Serve(serve::Args),
    #[command(hide = true)]
    Work(work::Args),
}

/// Runs the command line.
pub(crate) fn main(environment: Environment) -> ExitCode {
    let ui = Ui::new(environment.is_utf8);
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let text = error.render().to_string();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                    ui.print(&text);
                    ExitCode::SUCCESS
                }
                _ => {
                    ui.note(&text);
                    ExitCode::from(2)
                }
            };
        }
    };
    let is_deferred = matches!(arguments.command, Some(Verb::Work(_)));
    let outcome = run(arguments, environment.clone(), &ui);
    // The deferred process repairs the journal itself. It must not start another one.
    if !is_deferred {
        spawn::repair_if_damaged(environment);
    }
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            ui.note(&failure.text());
            failure.exit_code()
        }
    }
}

fn run(arguments: Arguments, environment: Environment, ui: &Ui) -> Outcome {
    let Some(verb) = arguments.command else {
        return without_a_command(environment, ui);
    };
    match verb {
        // These commands need no store.
        Verb::Redact(args) => redact::run(&args, ui),
        Verb::Completions(args) => Ok(completions::run(&args, ui)),
        Verb::Help(args) => help::run(&args, ui),
        Verb::Demo(args) => demo::run(&args, &environment, ui),
        Verb::Init(args) => init::run(&args, environment, ui),
        Verb::Config(args) => config::run(&args, &Context::of(environment, Duration::ZERO)?, ui),
        Verb::Serve(args) => serve::run(&args, environment),
        Verb::Work(args) => work::run(&args, environment),
        Verb::Eval(args) => eval::run(&args, environment, ui),
        Verb::Why(args) => why::run(&args, environment, ui),
        // These commands must work when the store does not.
        Verb::Doctor(args) => doctor::run(&args, environment, ui),
        Verb::Project(args) => project::run(&args, environment, ui),
        Verb::Status(args) => status::run(&args, &Context::open(environment)?, ui),
        Verb::Search(args) => search::run(&args, &Context::open(environment)?, ui),
        Verb::Recall(args) => recall::run(&args, &Context::open(environment)?, ui),
        Verb::List(args) => list::run(&args, &Context::open(environment)?, ui),
        Verb::Show(args) => show::run(&args, &Context::open(environment)?, ui),
        Verb::Write(args) => write::run(&args, &Context::open(environment)?, ui),
        Verb::Edit(args) => edit::run(&args, &Context::open(environment)?, ui),
        Verb::Forget(args) => forget::run(&args, &Context::open(environment)?, ui),
        Verb::Restore(args) => forget::restore(&args, &Context::open(environment)?, ui),
        Verb::Sync(args) => sync::run(&args, &Context::open(environment)?, ui),
        Verb::Machines(args) => machines::run(&args, &Context::open(environment)?, ui),
        Verb::Log(args) => log::run(&args, &Context::open(environment)?, ui),
        Verb::Diff(args) => diff::run(&args, &Context::open(environment)?, ui),
        Verb::History(args) => history::run(&args, &Context::open(environment)?, ui),
        Verb::Undo(args) => undo::run(&args, &Context::open(environment)?, ui),
        Verb::Upkeep(args) => upkeep::run(&args, &Context::open(environment)?, ui),
        Verb::Move(args) => mark::move_note(&args, &Context::open(environment)?, ui),
        Verb::Pin(args) => mark::pin(&args, &Context::open(environment)?, ui),
        Verb::Mute(args) => mark::mute(&args, &Context::open(environment)?, ui),
        Verb::Connect(args) => connect::run(&args, &Context::open(environment)?, ui),
        Verb::Pathway(args) => pathway::run(&args, &Context::open(environment)?, ui),
        Verb::Task(args) => task::run(&args, &Context::open(environment)?, ui),
        Verb::Feedback(args) => feedback::run(&args, &Context::open(environment)?, ui),
        Verb::Verify(args) => verify::run(&args, &Context::open(environment)?, ui),
        Verb::Review(args) => review::run(&args, &Context::open(environment)?, ui),
        Verb::Stale(args) => stale::run(&args, &Context::open(environment)?, ui),
        Verb::Dedup(args) => dedup::run(&args, &Context::open(environment)?, ui),
        Verb::Normalise(args) => normalise::run(&args, &Context::open(environment)?, ui),
        Verb::Reatomise(args) => reatomise::run(&args, &Context::open(environment)?, ui),
        Verb::Merge(args) => merge::run(&args, &Context::open(environment)?, ui),
        Verb::Migrate(args) => migrate::run(&args, &Context::open(environment)?, ui),
        Verb::BackfillProvenance(args) => {
            backfill_provenance::run(&args, &Context::open(environment)?, ui)
        }
        Verb::Stats(args) => stats::run(&args, &Context::open(environment)?, ui),
        Verb::Pause(args) => pause::pause(&args, &Context::open(environment)?, ui),
        Verb::Resume(args) => pause::resume(&args, Context::open(environment)?, ui),
        Verb::Purge(args) => purge::run(&args, &Context::open(environment)?, ui),
        Verb::Inject(args) => inject::run(&args, &Context::open(environment)?, ui),
        Verb::Capture(args) => capture::run(&args, &Context::open(environment)?, ui),
        Verb::Reindex(args) => reindex::run(&args, &Context::open(environment)?, ui),
        Verb::Reflect(args) => reflect::run(&args, &Context::open(environment)?, ui),
        Verb::Relink(args) => relink::run(&args, &Context::open(environment)?, ui),
        Verb::Sessions(args) => sessions::run(&args, &Context::open(environment)?, ui),
        Verb::Import(args) => import::run(&args, &Context::open(environment)?, ui),
        Verb::Backfill(args) => backfill::run(&args, environment, ui),
        Verb::Maintain(args) => maintain::run(&args, &Context::open(environment)?, ui),
    }
}

/// A terminal gets `status`. A hook's payload on stdin runs that hook, for settings without a verb.
/// Any other stdin is an MCP client, as in the Python version.
fn without_a_command(environment: Environment, ui: &Ui) -> Outcome {
    if ui::stdin_is_terminal() {
        return status::run(&status::Args::default(), &Context::open(environment)?, ui);
    }
    let piped =
        Piped::read().map_err(|error| Failure::failed(format!("cannot read stdin: {error}")))?;
    match piped {
        Piped::Hook(bytes) => Ok(hook::answer_payload(environment, bytes)),
        Piped::Client(bytes) => serve::serve(None, environment, bytes),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_names_every_command() {
        for command in Arguments::command()
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let name = command.get_name();
            assert!(
                help::ALL.contains(&format!("\n  {name} ")),
                "{name} is not in `help --all`"
            );
        }
        assert!(help::EVERYDAY.split_whitespace().count() < 120);
    }
}
