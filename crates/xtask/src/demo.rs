//! Records the block that a session starts with as an SVG for the README.

use std::{fs, path::Path};

use anamnesis_testkit::home::TestHome;
use anamnesis_trials::screen;

use crate::{Result, at, cargo, run as run_command, say, target_folder};

/// Write what `anamnesis demo` injects into the next session to docs/images/start.svg
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Runs `cargo xtask demo`.
pub(crate) fn run(root: &Path, _: &Arguments) -> Result {
    run_command(cargo(root).args(["build", "--package=anamnesis-cli"]))?;
    let program = target_folder(root).join("debug/anamnesis");
    let path = root.join("docs/images/start.svg");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    let output = TestHome::new(program).run("demo");
    let (_, block) = output
        .stdout
        .split_once("Injected:\n   <")
        .ok_or("`anamnesis demo` printed no block")?;
    let lines = block
        .lines()
        .map(|line| line.strip_prefix("   ").unwrap_or(line));
    let lines: Vec<&str> = lines.collect();
    let text = format!("<{}\n", lines.join("\n"));
    fs::write(
        &path,
        screen::svg(&text, "The block at the start of the next session"),
    )
    .map_err(at(&path))?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}
