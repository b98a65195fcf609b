//! Records commands of a real run as an SVG for the README.

use std::{fs, path::Path};

use anamnesis_testkit::home::TestHome;

use crate::{Result, at, cargo, run as run_command, say, screen, target_folder};

/// Play commands in a temporary home and write docs/images/terminal.svg
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// The commands of the recording: what is typed, and stdin.
const COMMANDS: [(&[&str], &str); 4] = [
    (
        &[
            "write",
            "--kind",
            "how-to",
            "--title",
            "Integration tests need the stub server",
        ],
        "`make stub` binds port 9090; without it the login tests hang.\n",
    ),
    (&["search", "login", "tests"], ""),
    (&["why", "--try", "the login tests hang, why?"], ""),
    (&["log"], ""),
];

/// Runs `cargo xtask demo`.
pub(crate) fn run(root: &Path, _: &Arguments) -> Result {
    run_command(cargo(root).args(["build", "--package=anamnesis-cli"]))?;
    let program = target_folder(root).join("debug/anamnesis");
    let path = root.join("docs/images/terminal.svg");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    let text = played(&TestHome::new(program));
    fs::write(&path, screen::svg(&text, "Anamnesis in a terminal")).map_err(at(&path))?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}

/// Returns what a person sees: each command with its output.
fn played(home: &TestHome) -> String {
    let mut text = String::new();
    for (words, input) in COMMANDS {
        let quoted: Vec<String> = words
            .iter()
            .map(|word| {
                if word.contains(' ') {
                    format!("\"{word}\"")
                } else {
                    (*word).to_owned()
                }
            })
            .collect();
        text.push_str(&format!(
            "\u{1b}[1m$ anamnesis {}\u{1b}[0m\n",
            quoted.join(" ")
        ));
        let words = words.iter().chain(&["--color", "always"]);
        let output = home.command(words).input(input).run();
        text.push_str(&format!("{}{}\n", output.stdout, output.stderr));
    }
    text
}
