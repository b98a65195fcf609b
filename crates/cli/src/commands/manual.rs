//! Writes the man pages and completions of a release.

use std::{fs, io, path::Path, process::ExitCode};

use clap::ValueEnum as _;
use clap_complete::Shell;

use super::{command, completions};
use crate::ui::Ui;

/// Writes `man` and `completions` into a folder.
pub(super) fn run(folder: &Path, ui: &Ui) -> ExitCode {
    match write(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui.note(&format!("cannot write to {}: {error}\n", folder.display()));
            ExitCode::FAILURE
        }
    }
}

/// Writes a page for each command and each of its subcommands, and a script for each shell.
fn write(folder: &Path) -> io::Result<()> {
    let (man, scripts) = (folder.join("man"), folder.join("completions"));
    for folder in [&man, &scripts] {
        // A page of a former command would stay.
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(folder)?,
        }
    }
    clap_mangen::generate_to(command(), &man)?;
    for shell in Shell::value_variants() {
        // The names under which the shells look for them.
        let name = match shell {
            Shell::Elvish => "anamnesis.elv",
            Shell::Fish => "anamnesis.fish",
            Shell::PowerShell => "_anamnesis.ps1",
            Shell::Zsh => "_anamnesis",
            _ => "anamnesis.bash",
        };
        fs::write(
            scripts.join(name),
            completions::script(*shell, super::command()),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::help;

    #[test]
    fn every_command_has_a_page_with_its_example() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        write(folder.path()).unwrap();
        for (name, _) in help::EXAMPLES {
            let name = name.replace(' ', "-");
            let page = folder.path().join(format!("man/anamnesis-{name}.1"));
            let page = fs::read_to_string(page).unwrap();
            assert!(page.contains(".TH"), "{name}: {page}");
            assert!(page.contains("Example: anamnesis"), "{name}: {page}");
        }
        assert!(folder.path().join("man/anamnesis.1").is_file());
        assert!(folder.path().join("man/anamnesis-task-add.1").is_file());
        let zsh = fs::read_to_string(folder.path().join("completions/_anamnesis")).unwrap();
        assert!(zsh.starts_with("#compdef anamnesis"));
    }
}
