//! The commands. Each file has an `Args`, whose doc comments are the help text, and one function.

mod backfill;
mod backup;
mod bulk;
mod completions;
mod config;
mod connect;
mod demo;
mod diff;
mod doctor;
mod edit;
mod eval;
mod export;
mod feedback;
pub(crate) mod forget;
mod help;
mod import;
mod init;
mod internal;
mod list;
mod log;
#[cfg(feature = "manual")]
mod manual;
mod mark;
mod merge;
mod model;
mod open;
mod pause;
mod project;
mod prove;
mod purge;
mod recall;
mod redact;
mod reflect;
mod review;
mod search;
mod serve;
mod sessions;
mod show;
mod stale;
mod stats;
mod status;
mod statusline;
mod sync;
pub(crate) mod task;
mod undo;
mod upkeep;
mod verify;
mod why;
mod write;

use std::{collections::BTreeMap, env, ffi::OsString, process::ExitCode, time::Duration};

use anamnesis_app::{
    Error,
    context::Context,
    environment::{Caller, Environment},
    spawn,
};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, error::ErrorKind};

use self::serve::Piped;
use crate::{
    hook,
    ui::{self, Colour, Outcome, Ui},
};

/// Memory for Claude Code that stays yours: markdown notes, one binary, no daemon
#[derive(Debug, Parser)]
#[command(name = "anamnesis", bin_name = "anamnesis", version, disable_help_subcommand = true, override_help = help::EVERYDAY, max_term_width = ui::WIDTH)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Verb>,
    /// When to use colours: auto, always or never
    #[arg(long, value_enum, global = true, hide = true, default_value = "auto")]
    color: Colour,
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
    Open(open::Args),
    Sync(sync::Args),
    Log(log::Args),
    Undo(undo::Args),
    Upkeep(upkeep::Args),
    Move(mark::MoveArgs),
    Pin(mark::PinArgs),
    Mute(mark::MuteArgs),
    Connect(connect::Args),
    Task(task::Args),
    Feedback(feedback::Args),
    Verify(verify::Args),
    Stale(stale::Args),
    Review(review::Args),
    Merge(merge::Args),
    Stats(stats::Args),
    Eval(eval::Args),
    Prove(prove::Args),
    /// Stop recording a project and injecting notes into it
    ///
    /// Also pauses running sessions. Notes stay, and commands still work.
    Off(pause::Args),
    /// Resume recording a project
    On(pause::Args),
    Project(project::Args),
    Purge(purge::Args),
    Reflect(reflect::Args),
    Redact(redact::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    Help(help::Args),
    Sessions(sessions::Args),
    Backfill(backfill::Args),
    Backup(backup::Args),
    Import(import::Args),
    Export(export::Args),
    Init(init::Args),
    Config(config::Args),
    Serve(serve::Args),
    Internal(internal::Args),
}

impl Verb {
    /// Returns whether the command changes nothing and prints only at its end.
    const fn is_query(&self) -> bool {
        matches!(
            self,
            Self::Status(_)
                | Self::Search(_)
                | Self::Recall(_)
                | Self::List(_)
                | Self::Show(_)
                | Self::Why(_)
                | Self::Stale(_)
                | Self::Stats(_)
        )
    }
}

/// Former names of commands, which scripts call, and other names that people know. No help shows them.
const FORMER_NAMES: [(&str, &[&str]); 19] = [
    ("backfill-provenance", &["upkeep", "--only", "provenance"]),
    ("capture", &["internal", "capture"]),
    ("completions", &["internal", "completions"]),
    ("dedup", &["upkeep", "--only", "duplicates"]),
    ("diff", &["log", "--diff"]),
    ("history", &["log", "--note"]),
    ("inject", &["internal", "inject"]),
    ("maintain", &["internal", "maintain"]),
    ("migrate", &["project", "migrate"]),
    ("model", &["config", "model"]),
    ("normalise", &["upkeep", "--only", "format"]),
    ("pause", &["off"]),
    ("reatomise", &["upkeep", "--only", "split"]),
    ("reindex", &["internal", "reindex"]),
    ("relink", &["upkeep", "--only", "links"]),
    ("restore", &["forget", "--undo"]),
    ("resume", &["on"]),
    ("statusline", &["internal", "statusline"]),
    ("work", &["internal", "work"]),
];

/// Parses a command line that may begin with a former name.
fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let former = FORMER_NAMES
        .iter()
        .find(|(name, _)| arguments.get(1).is_some_and(|first| first == name));
    if let Some((_, current)) = former {
        let asks_help = arguments
            .iter()
            .any(|word| word == "--help" || word == "-h");
        arguments.splice(1..2, current.iter().map(OsString::from));
        // An option at the end of the current name would take it for its value.
        let option = current.iter().position(|word| word.starts_with("--"));
        if let Some(option) = option.filter(|_| asks_help) {
            arguments.truncate(1 + option);
            arguments.push("--help".into());
        }
    }
    let mut command = command();
    if let Some(option) = without_value(&command, &arguments) {
        let text = format!("a value is required for '{option}' but none was supplied");
        return Err(command.error(ErrorKind::InvalidValue, text));
    }
    let matches = command.try_get_matches_from_mut(arguments)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The command line, with an example on each help page.
fn command() -> clap::Command {
    with_examples(with_any_values(Arguments::command()), "")
}

/// Lets the value of an option begin with a hyphen, as a title may. An option whose value may be left
/// out would take the next option for it.
fn with_any_values(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let is_option = !argument.is_positional() && argument.get_action().takes_values();
        let has_one = argument
            .get_num_args()
            .is_none_or(|count| count == 1.into());
        if is_option && has_one {
            argument.allow_hyphen_values(true)
        } else {
            argument
        }
    });
    command.mut_subcommands(with_any_values)
}

/// Returns an option with a value that is followed by another option of the program.
fn without_value<'a>(command: &clap::Command, arguments: &'a [OsString]) -> Option<&'a str> {
    let mut takes_value = BTreeMap::from([("--help".to_owned(), false)]);
    options(command, &mut takes_value);
    let words = arguments.iter().map_while(|word| word.to_str());
    let words: Vec<&str> = words.take_while(|word| *word != "--").collect();
    let pairs = words.iter().zip(words.iter().skip(1));
    let is_valued = |option: &str| takes_value.get(option).copied().unwrap_or(false);
    let found = pairs
        .into_iter()
        .find(|(option, next)| is_valued(option) && takes_value.contains_key(**next));
    found.map(|(option, _)| *option)
}

/// Adds the long options of a command and those below it, and whether each takes a value wherever it is.
fn options(command: &clap::Command, takes_value: &mut BTreeMap<String, bool>) {
    for argument in command.get_arguments() {
        if let Some(long) = argument.get_long() {
            let is_valued = argument.is_allow_hyphen_values_set();
            let known = takes_value.entry(format!("--{long}")).or_insert(is_valued);
            *known &= is_valued;
        }
    }
    for verb in command.get_subcommands() {
        options(verb, takes_value);
    }
}

/// Adds an example to the help page of each command within `parent`, whose name with a blank is `path`.
fn with_examples(parent: clap::Command, path: &str) -> clap::Command {
    parent.mut_subcommands(|verb| {
        let name = format!("{path}{}", verb.get_name());
        let before = verb.get_after_help().map(|text| format!("{text}\n"));
        let before = before.unwrap_or_default();
        let example = help::example(&name);
        let verb = with_examples(verb, &format!("{name} "));
        verb.after_help(format!("{before}Example: anamnesis {example}"))
    })
}

/// Runs the command line.
pub(crate) fn main(environment: &Environment) -> ExitCode {
    // Not a command: it writes down the commands of the released program.
    #[cfg(feature = "manual")]
    if let [_, verb, folder] = &env::args_os().collect::<Vec<_>>()[..]
        && verb == "manual"
    {
        return manual::run(folder.as_ref(), &Ui::new(environment, Colour::Auto));
    }
    let words: Vec<OsString> = env::args_os().collect();
    let parsed = parse(words.clone());
    let colour = parsed.as_ref().map_or(Colour::Auto, |parsed| parsed.color);
    let ui = Ui::new(environment, colour);
    let arguments = match parsed {
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
    let is_deferred =
        matches!(&arguments.command, Some(Verb::Internal(args)) if args.is_deferred());
    let outcome = answer(arguments, words, environment.clone(), &ui);
    // The deferred process repairs the journal itself. It must not start another one.
    if !is_deferred {
        spawn::repair_if_damaged(environment);
    }
    match outcome.and_then(|code| ui.check_written().map(|()| code)) {
        Ok(code) => code,
        Err(failure) => {
            ui.note(&failure.text());
            failure.exit_code()
        }
    }
}

/// Runs a command line of a person in a session, and returns what it prints.
pub(crate) fn run_typed(words: &[String], environment: Environment) -> String {
    let ui = Ui::keeping();
    let program = std::iter::once("anamnesis");
    let words = program.chain(words.iter().map(String::as_str));
    let words: Vec<OsString> = words.map(OsString::from).collect();
    match parse(words.clone()) {
        Ok(arguments) => {
            if let Err(failure) = answer(arguments, words, environment, &ui) {
                ui.note(&failure.text());
            }
        }
        Err(error) => ui.note(&error.render().to_string()),
    }
    ui.into_text()
}

/// Runs a command. If it meets damage in the index, the index is rebuilt, and a command that changes
/// nothing answers again.
fn answer(
    arguments: Arguments,
    words: Vec<OsString>,
    environment: Environment,
    ui: &Ui,
) -> Outcome {
    let is_query = arguments.command.as_ref().is_some_and(Verb::is_query);
    let outcome = run(arguments, environment.clone(), ui);
    if let Err(failure) = &outcome
        && Context::rebuild_if_damaged(&environment, failure)
        && is_query
        && let Ok(again) = parse(words)
    {
        return run(again, environment, ui);
    }
    outcome
}

fn run(arguments: Arguments, environment: Environment, ui: &Ui) -> Outcome {
    let Some(verb) = arguments.command else {
        return without_a_command(environment, ui);
    };
    match verb {
        // These commands need no store.
        Verb::Redact(args) => redact::run(&args, environment, ui),
        Verb::Help(args) => help::run(&args, ui),
        Verb::Demo(args) => demo::run(&args, &environment, ui),
        Verb::Init(args) => init::run(&args, environment, ui),
        Verb::Config(args) => config::run(&args, environment, ui),
        Verb::Serve(args) => serve::run(&args, environment, Vec::new()),
        Verb::Internal(args) => internal::run(&args, command, environment, ui),
        Verb::Eval(args) => eval::run(&args, environment, ui),
        Verb::Why(args) => why::run(&args, environment, ui),
        Verb::Open(args) => open::run(&args, Context::open(environment)?, ui),
        // These commands must work when the store does not.
        Verb::Doctor(args) => doctor::run(&args, environment, ui),
        Verb::Project(args) => project::run(&args, environment, ui),
        Verb::Status(args) => status::run(&args, &Context::open(environment)?, ui),
        Verb::Search(args) => search::run(args, &Context::open(environment)?, ui),
        Verb::Recall(args) => recall::run(&args, &Context::open(environment)?, ui),
        Verb::List(args) => list::run(args, &Context::open(environment)?, ui),
        Verb::Show(args) => show::run(&args, &Context::open(environment)?, ui),
        Verb::Write(args) => write::run(args, &Context::open(environment)?, ui),
        Verb::Edit(args) => edit::run(&args, &Context::open(environment)?, ui),
        Verb::Forget(args) => forget::run(&args, &Context::open(environment)?, ui),
        Verb::Sync(args) => sync::run(&args, &Context::open(environment)?, ui),
        Verb::Log(args) => log::run(&args, &Context::open(environment)?, ui),
        Verb::Undo(args) => undo::run(&args, &Context::open(environment)?, ui),
        Verb::Upkeep(args) => upkeep::run(&args, &Context::open(environment)?, ui),
        Verb::Move(args) => mark::move_note(&args, &Context::open(environment)?, ui),
        Verb::Pin(args) => mark::pin(&args, &Context::open(environment)?, ui),
        Verb::Mute(args) => mark::mute(&args, &Context::open(environment)?, ui),
        Verb::Connect(args) => connect::run(args, &Context::open(environment)?, ui),
        Verb::Task(args) => task::run(args, &Context::open(environment)?, ui),
        Verb::Feedback(args) => feedback::run(args, &Context::open(environment)?, ui),
        Verb::Verify(args) => verify::run(&args, &Context::open(environment)?, ui),
        Verb::Review(args) => review::run(&args, &Context::open(environment)?, ui),
        Verb::Stale(args) => stale::run(&args, &Context::open(environment)?, ui),
        Verb::Merge(args) => merge::run(&args, &Context::open(environment)?, ui),
        Verb::Prove(args) => prove::run(&args, &Context::new(environment, Duration::ZERO)?, ui),
        Verb::Stats(args) => stats::run(&args, &Context::open(environment)?, ui),
        Verb::Off(args) => pause::pause(&args, &Context::open(environment)?, ui),
        Verb::On(args) => pause::resume(&args, Context::open(environment)?, ui),
        Verb::Purge(args) => purge::run(&args, &Context::open(environment)?, ui),
        Verb::Reflect(args) => reflect::run(&args, &Context::open(environment)?, ui),
        Verb::Sessions(args) => sessions::run(&args, &Context::open(environment)?, ui),
        Verb::Backup(args) => backup::run(&args, &Context::open(environment)?, ui),
        Verb::Import(args) => import::run(&args, environment, ui),
        Verb::Export(args) => export::run(&args, &Context::new(environment, Duration::ZERO)?, ui),
        Verb::Backfill(args) => backfill::run(&args, environment, ui),
    }
}

/// A terminal and an empty stdin get `status`. A hook's payload on stdin runs that hook, for settings
/// without a verb. Any other stdin is an MCP client, as in the Python version.
fn without_a_command(environment: Environment, ui: &Ui) -> Outcome {
    let overview =
        |environment| status::run(&status::Args::default(), &Context::open(environment)?, ui);
    if ui::stdin_is_terminal() {
        return overview(environment);
    }
    match Piped::read().map_err(Error::prefixed("cannot read stdin"))? {
        Piped::Hook(bytes) => Ok(hook::answer_payload(run_typed, environment, bytes)),
        Piped::Client(bytes) if bytes.is_empty() => {
            // No client: the variables that are ignored for one count.
            overview(Environment::read(Caller::Person))
        }
        Piped::Client(bytes) => serve::run(&serve::Args::default(), environment, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_names_every_command_and_no_other() {
        let command = Arguments::command();
        let mut commands: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let groups = help::GROUPS.iter();
        let mut named: Vec<&str> = groups
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        commands.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, commands);
        assert!(help::EVERYDAY.split_whitespace().count() < 120);
    }

    /// The names of all commands, with those of the commands around them.
    fn names(parent: &clap::Command, prefix: &str) -> Vec<String> {
        let names = parent.get_subcommands().flat_map(|verb| {
            let name = format!("{prefix}{}", verb.get_name());
            let within = names(verb, &format!("{name} "));
            [name].into_iter().chain(within)
        });
        names.collect()
    }

    /// Splits a command line. Every second part is between quotes.
    fn words(text: &str) -> Vec<&str> {
        text.split('\'')
            .enumerate()
            .flat_map(|(part, text)| match part % 2 {
                0 => text.split_whitespace().collect(),
                _ => vec![text],
            })
            .collect()
    }

    #[test]
    fn every_command_has_an_example_that_is_valid() {
        for name in names(&Arguments::command(), "") {
            let example = help::example(&name);
            let example = example.split(['<', '>']).next().unwrap();
            let line = ["anamnesis"].into_iter().chain(words(example));
            let parsed = parse(line.map(OsString::from));
            assert!(
                example.starts_with(&name) && parsed.is_ok(),
                "{example}: {parsed:?}"
            );
        }
    }

    #[test]
    fn a_former_name_is_no_command_of_its_own() {
        let command = Arguments::command();
        for (name, current) in FORMER_NAMES {
            assert!(command.find_subcommand(name).is_none(), "{name}");
            assert!(command.find_subcommand(current[0]).is_some(), "{name}");
        }
    }
}
