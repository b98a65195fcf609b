//! `completions`: prints shell completions of commands and options.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::ui::Ui;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell: bash, elvish, fish, powershell or zsh
    shell: Shell,
}

/// `command` is the whole command line.
pub(crate) fn run(args: &Args, command: clap::Command, ui: &Ui) -> ExitCode {
    ui.raw(&script(args.shell, command));
    ExitCode::SUCCESS
}

/// The script of a shell for a command line.
pub(super) fn script(shell: Shell, mut command: clap::Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "anamnesis", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
