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

pub(crate) fn run(args: &Args, ui: &Ui) -> ExitCode {
    ui.raw(&script(args.shell));
    ExitCode::SUCCESS
}

/// The script of a shell.
pub(super) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::command(), "anamnesis", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
