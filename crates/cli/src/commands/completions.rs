//! `completions`: prints shell completions.

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
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "anamnesis", &mut script);
    ui.raw(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}
