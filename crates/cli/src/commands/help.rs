//! `help`: shows the everyday commands, or all of them with `--all`.

use std::process::ExitCode;

use anamnesis_app::failure::Failure;
use clap::{CommandFactory, Parser};

use super::Arguments;
use crate::ui::{Outcome, Ui};

/// The text of `--help`.
pub(crate) const EVERYDAY: &str = "\
Memory for Claude Code that stays yours: markdown notes, one binary, no daemon

Usage: anamnesis [COMMAND]

Everyday   status  search  list  show  write  edit  forget  why
Machines   init  sync  machines
Upkeep     review  undo  backfill  task
Privacy    pause  resume  purge  redact  sessions
Trouble    doctor  config

Every command: anamnesis help --all      One of them: anamnesis help COMMAND
";

/// The text of `help --all`.
pub(crate) const ALL: &str = "\
Everyday
  status        Show what the memory holds here and whether it is healthy
  search        Find notes by words
  recall        Ask the memory, with what links bring
  list          List the notes of this project
  show          Show one note
  write         Write a note
  edit          Change a note in your editor
  forget        Forget a note; its text goes to the trash
  why           Show what a session was given, and why
  restore       Bring a forgotten note back, byte for byte
  move          Give a note to another project, or keep it on this machine
  pin           Keep a note at the top
  mute          Keep a note from coming up by itself
  connect       Link a note to another one
  pathway       Show how two notes hang together, or what is around one

Machines
  init          Join your machines through a git repository of yours
  sync          Bring the notes of your machines together
  machines      Show which machine wrote what, and when it was last seen

Privacy
  pause         Stop recording a project, and giving it notes
  resume        Go on with a project that was paused
  purge         Take notes, or a text, out of everything, git history included
  redact        Mask the secrets in a text
  sessions      Show what is recorded of each session

Upkeep
  undo          Take a batch back; without one, list the last ten
  log           Show what was done to the notes, on all your machines
  diff          Show what a batch did, note by note
  history       Show the versions of a note
  review        Decide on what waits: proposals, conflicts, Claude's notes
  upkeep        Show what can be put in order among the notes, and do it
  dedup         Let one note stand for those with the very same text
  normalise     Bring the keys, tags and projects of notes into today's form
  merge         Let few notes stand for many that are one matter
  reatomise     Take long notes apart along their headings or lists
  stale         Show the notes that are worth a look, and why
  verify        Say that a note is still right
  feedback      Say whether a note helped
  stats         Show what came of the notes that were given
  eval          Show what a prompt would bring, or how well notes are found
  backfill      Remember the sessions from before the install
  import        Copy Claude Code's own memory into notes
  task          Keep a list of what is to be done
  reflect       Distil what many sessions taught into few notes, by a model
  maintain      Let old records go and empty the trash

Trouble
  doctor        Check everything and say what to do
  config        Show the settings of this machine, or change one
  reindex       Build the index anew from the notes
  relink        Read all links anew from the notes, and count them

What hooks and scripts use
  inject        Print what a session of this project starts with
  capture       Write the note of a session from its transcript
  migrate       Give notes to other projects, by a list of keys
  backfill-provenance  Tell by tags how old notes came to be
  project       Show the project of a folder and how it was told
  serve         Serve the memory to a model (MCP), over stdin and stdout

Besides
  demo          Play a recorded session and show what is remembered
  completions   Print completions for a shell
  help          Show this, or the help of one command

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done, but something needs you.
";

/// Show help
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show every command
    #[arg(long)]
    all: bool,
    /// Show the help of this command
    #[arg(conflicts_with = "all")]
    command: Option<String>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let text = match &args.command {
        None => if args.all { ALL } else { EVERYDAY }.to_owned(),
        Some(name) => {
            if Arguments::command().find_subcommand(name).is_none() {
                return Err(Failure::usage(format!("there is no command \"{name}\""))
                    .hint("anamnesis help --all"));
            }
            // Parsing `--help` lets clap choose the short or long form.
            match Arguments::try_parse_from(["anamnesis", name, "--help"]) {
                Err(page) => page.render().to_string(),
                Ok(_) => String::new(),
            }
        }
    };
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}
