//! `help`: shows the everyday commands, or all of them with `--all`.

use std::ffi::OsString;

use anamnesis_app::Error;
use clap::error::ErrorKind;

use super::{command, parse};
use crate::ui::{Outcome, Ui};

/// The text of `--help`.
pub(crate) const EVERYDAY: &str = "\
Memory for Claude Code that stays yours: markdown notes, one binary, no daemon

Usage: anamnesis [COMMAND]

Everyday   status  search  list  show  write  edit  forget  why
           open
Machines   init  sync
Upkeep     review  undo  backfill  task
Privacy    off  on  purge  redact  sessions
Trouble    doctor  config

Every command: anamnesis help --all      One of them: anamnesis help COMMAND
";

/// The groups of `help --all`.
pub(crate) const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Everyday",
        &[
            "status", "search", "recall", "list", "show", "write", "edit", "forget", "why", "open",
            "move", "pin", "mute", "connect", "task",
        ],
    ),
    ("Machines", &["init", "sync", "project", "backup"]),
    ("Privacy", &["off", "on", "purge", "redact", "sessions"]),
    ("History", &["log", "undo", "review"]),
    (
        "Upkeep",
        &[
            "upkeep", "merge", "reflect", "stale", "verify", "feedback", "stats", "eval", "prove",
            "backfill", "import", "export",
        ],
    ),
    ("Trouble", &["doctor", "config"]),
    ("Besides", &["serve", "demo", "internal", "help"]),
];

/// Examples for the help pages of commands. Of any other command, its name is the example.
pub(crate) const EXAMPLES: [(&str, &str); 60] = [
    ("status", "status --json"),
    ("search", "search login tests --kind how-to"),
    ("recall", "recall 'how do I run the login tests' --explain"),
    ("list", "list --everywhere -n 50"),
    ("show", "show 7Q4KZ9"),
    (
        "write",
        "write --title 'Staging has its own database' --kind fact",
    ),
    ("edit", "edit 7Q4KZ9"),
    ("forget", "forget 7Q4KZ9"),
    ("why", "why last --exact"),
    ("open", "open live"),
    ("move", "move 7Q4KZ9 --project global"),
    ("pin", "pin 7Q4KZ9"),
    ("mute", "mute 7Q4KZ9"),
    ("connect", "connect 7Q4KZ9 B2M6RD --relation elaborates"),
    ("task", "task add 'Rotate the staging key'"),
    ("init", "init --remote git@git.home:me/memory.git"),
    ("project", "project list"),
    ("backup", "backup ~/anamnesis-2026-01-31.tar"),
    ("off", "off --all"),
    ("on", "on --all"),
    ("purge", "purge --find"),
    ("redact", "redact < session.log"),
    ("sessions", "sessions -n 5"),
    ("log", "log --diff 5K2MQT"),
    ("undo", "undo 5K2MQT"),
    ("review", "review --list"),
    ("upkeep", "upkeep --apply"),
    ("merge", "merge --project github.com/acme/shop"),
    ("reflect", "reflect --apply"),
    ("verify", "verify 7Q4KZ9"),
    ("feedback", "feedback 7Q4KZ9 good"),
    ("eval", "eval run"),
    ("prove", "prove --html proof.html"),
    ("backfill", "backfill --apply"),
    ("import", "import --from claude-mem"),
    ("export", "export --json > notes.json"),
    ("doctor", "doctor --fix"),
    ("config", "config set session_line problems"),
    (
        "internal completions",
        "internal completions bash > ~/.local/share/bash-completion/completions/anamnesis",
    ),
    ("internal", "internal reindex"),
    ("help", "help task add"),
    ("task add", "task add 'Rotate the staging key'"),
    ("task start", "task start 7Q4KZ9"),
    ("task done", "task done 7Q4KZ9"),
    ("task archive", "task archive 7Q4KZ9"),
    ("task reopen", "task reopen 7Q4KZ9"),
    ("config get", "config get recall.notes"),
    ("config set", "config set session_line problems"),
    ("config unset", "config unset session_line"),
    ("eval prompt", "eval prompt 'why are the login tests flaky'"),
    ("config model add", "config model add e5-small-q4.bin"),
    ("sessions show", "sessions show 0b0c8f1e"),
    (
        "sessions export",
        "sessions export --all --output sessions.json",
    ),
    ("project merge", "project merge shop github.com/acme/shop"),
    ("project split", "project split shop"),
    ("project group", "project group web github.com/acme/shop ."),
    ("project migrate", "project migrate --map projects.json"),
    (
        "internal capture",
        "internal capture --transcript session.jsonl",
    ),
    ("internal inject", "internal inject --json"),
    ("internal work", "internal work --check"),
];

/// Returns the example of a command.
pub(crate) fn example(name: &str) -> &str {
    let example = EXAMPLES.iter().find(|(other, _)| *other == name);
    example.map_or(name, |(_, example)| example)
}

/// The text of `help --all`: every command with the first line of its help.
fn all() -> String {
    let command = command();
    let about = |name: &str| {
        command
            .find_subcommand(name)
            .and_then(|found| found.get_about())
    };
    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("{group}\n"));
        for name in names {
            let about = about(name).map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:14}{about}\n"));
        }
        text.push('\n');
    }
    text + "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done, but something needs you.\n"
}

/// Show help
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show every command
    #[arg(long)]
    all: bool,
    /// Show the help of this command
    #[arg(conflicts_with = "all")]
    command: Vec<String>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    if args.command.is_empty() {
        return if args.all {
            ui.page(&all(), "")
        } else {
            ui.answer(EVERYDAY)
        };
    }
    // Parsing `--help` lets clap choose the short or long form.
    let words = ["anamnesis"]
        .into_iter()
        .chain(args.command.iter().map(String::as_str));
    match parse(words.chain(["--help"]).map(OsString::from)) {
        Err(page) if page.kind() == ErrorKind::DisplayHelp => {
            ui.page(&page.render().to_string(), "")
        }
        _ => Err(Error::usage(format!(
            "there is no command \"{}\"",
            args.command.join(" ")
        ))
        .hint("anamnesis help --all")),
    }
}
