//! `completions`: prints shell completions.
//!
//! The script of clap completes commands and options. In bash, zsh and fish a function around it
//! completes values: it asks `internal complete` for ids of notes, projects and tags first.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::ui::Ui;

/// Print completions for a shell
///
/// In bash, zsh and fish they also complete ids of notes (with their titles), projects and tags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell: bash, elvish, fish, powershell or zsh
    shell: Shell,
}

const BASH: &str = r#"
_anamnesis_values() {
    local IFS=$'\n'
    COMPREPLY=($(anamnesis internal complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
    if [ ${#COMPREPLY[@]} -eq 0 ]; then
        unset IFS
        _anamnesis "$@"
    fi
}
complete -F _anamnesis_values -o bashdefault -o default anamnesis
"#;

const ZSH: &str = r#"
_anamnesis_values() {
    local -a found
    found=("${(@f)$(anamnesis internal complete -- "${(@)words[2,CURRENT]}" 2>/dev/null | sed 's/:/\\:/g; s/\t/:/')}")
    if [ -n "$found[1]" ]; then
        _describe value found
    else
        _anamnesis "$@"
    fi
}
compdef _anamnesis_values anamnesis
"#;

const FISH: &str = "
complete -c anamnesis -k -a '(anamnesis internal complete -- (commandline -xpc)[2..] (commandline -ct) 2>/dev/null)'
";

pub(crate) fn run(args: &Args, ui: &Ui) -> ExitCode {
    ui.raw(&script(args.shell));
    ExitCode::SUCCESS
}

/// The script of a shell.
pub(super) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::command(), "anamnesis", &mut script);
    let values = match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        _ => "",
    };
    String::from_utf8_lossy(&script).into_owned() + values
}
