//! Plays scripted sessions in the real Claude Code client with the plugin installed, offline.
//!
//! It tests that the client runs the hooks, shows their output and sends the injected text. The
//! logic of hooks is tested without the client, which is a thousand times faster. Needs `git`, and
//! `npm` for the client's first install. Scenarios in a terminal need `tmux` and are skipped
//! without it. See `docs/client-tests.md`.

mod hosts;
mod machines;
mod recalling;
mod recording;
mod released;
mod scenarios;
mod scheduled;
mod serving;
mod store;
mod viewing;

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anamnesis_testkit::client::{CLIENT_VERSION, Client, Marketplace};
use anamnesis_testkit::process::TestFailure;
use anamnesis_testkit::tmux;

use crate::plugin::{self, Options, Profile};
use crate::{Result, at, python_version, target_folder};

use self::scenarios::{RunMode, SCENARIOS, Scenario, Stage};

/// The variable that names the folder of the installed client.
const CACHE_VARIABLE: &str = "ANAMNESIS_E2E_CACHE";

/// Play sessions offline in the real client with the plugin installed
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run this client instead of the pinned one
    ///
    /// Without it, the pinned version is installed once from npm into `target/e2e`, or into the
    /// folder that `ANAMNESIS_E2E_CACHE` names.
    #[arg(long, value_name = "PATH")]
    client: Option<PathBuf>,
    /// Install this plugin tree instead of one assembled from the checkout
    #[arg(long, value_name = "DIR")]
    plugin: Option<PathBuf>,
    /// Keep the folders of passed scenarios, too
    #[arg(long)]
    keep: bool,
    /// Play only this scenario; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Write screens of the scenarios in a terminal into this folder, as SVG
    #[arg(long, value_name = "DIR")]
    screens: Option<PathBuf>,
}

/// Runs `cargo xtask e2e`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    let chosen = choose(&arguments.only)?;
    let folder = target_folder(root).join("e2e");
    let named = std::env::var_os(CACHE_VARIABLE).filter(|value| !value.is_empty());
    let cache = named.map_or_else(|| folder.clone(), PathBuf::from);
    let client = match &arguments.client {
        Some(binary) => Client::at(binary)?,
        None => Client::install(&cache)?,
    };
    let tree = match &arguments.plugin {
        Some(given) => dunce::canonicalize(given).map_err(at(given))?,
        None => assemble(root, folder.join("plugin"))?,
    };
    if client.version() == CLIENT_VERSION {
        report(format_args!("client {CLIENT_VERSION}"));
    } else {
        report(format_args!(
            "client {}; the pinned one is {CLIENT_VERSION}",
            client.version()
        ));
    }

    let run_folder = tempfile::Builder::new().prefix("anamnesis-").tempdir()?;
    let marketplace = Marketplace::publish(&tree, &run_folder.path().join("marketplace.git"))?;
    let has_terminal = tmux::is_installed();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut kept_any = false;
    let python = chosen
        .iter()
        .any(|scenario| scenario.place == RunMode::BesidePython)
        .then(|| python_version::install(root));
    for scenario in chosen {
        let name = scenario.name;
        if scenario.place == RunMode::Terminal && !has_terminal {
            skipped += 1;
            report(format_args!("skipped {name}: tmux is not installed"));
            continue;
        }
        if let (RunMode::BesidePython, Some(Err(reason))) = (&scenario.place, &python) {
            skipped += 1;
            report(format_args!("skipped {name}: {reason}"));
            continue;
        }
        let begun = Instant::now();
        let folder = run_folder.path().join(name);
        fs::create_dir(&folder)?;
        let stage = Stage {
            client: &client,
            cache: &cache,
            plugin: &tree,
            marketplace: &marketplace,
            python: python.iter().flatten().next().map(PathBuf::as_path),
            folder: &folder,
            screens: arguments.screens.as_deref(),
        };
        let outcome = (scenario.play)(&stage);
        let seconds = begun.elapsed().as_secs_f32();
        let keep = arguments.keep || outcome.is_err();
        match outcome {
            Ok(()) => {
                passed += 1;
                report(format_args!("ok      {name} ({seconds:.1} s)"));
            }
            Err(failure) => {
                failed += 1;
                report(format_args!("FAILED  {name} ({seconds:.1} s): {failure}"));
            }
        }
        if keep {
            kept_any = true;
            report(format_args!("        kept: {}", folder.display()));
        } else {
            // A running hook may still write there. The run's folder is removed at the end.
            let _ = fs::remove_dir_all(&folder);
        }
    }
    if kept_any {
        let _ = run_folder.keep();
    }
    if skipped > 0 {
        report(format_args!("{skipped} skipped"));
    }
    report(format_args!("{passed} passed, {failed} failed"));
    if failed == 0 {
        Ok(())
    } else {
        Err("a scenario failed".into())
    }
}

/// Returns the scenarios of these names in their usual order, or all without names.
fn choose(names: &[String]) -> std::result::Result<Vec<&'static Scenario>, TestFailure> {
    let known = |name: &String| SCENARIOS.iter().any(|scenario| scenario.name == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        let all = all.join(", ");
        return Err(TestFailure::new(format!(
            "no scenario `{unknown}`; there are {all}"
        )));
    }
    let wanted =
        |scenario: &&Scenario| names.is_empty() || names.iter().any(|name| name == scenario.name);
    Ok(SCENARIOS.iter().filter(wanted).collect())
}

/// Assembles the plugin around this checkout's own debug build.
fn assemble(root: &Path, out: PathBuf) -> Result<PathBuf> {
    let binaries = vec![plugin::own_build(root, Profile::Debug)?];
    let options = Options {
        root: root.to_path_buf(),
        binaries,
        out,
    };
    Ok(plugin::assemble(&options)?.out)
}

/// Prints a line of the report. Ignores a closed pipe.
fn report(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(chosen: &[&Scenario]) -> Vec<&'static str> {
        chosen.iter().map(|scenario| scenario.name).collect()
    }

    #[test]
    fn scenarios_are_chosen_by_name() {
        assert_eq!(choose(&[]).unwrap().len(), SCENARIOS.len());
        let two = ["validate".to_owned(), "compact".to_owned()];
        let chosen: BTreeSet<&str> = names(&choose(&two).unwrap()).into_iter().collect();
        assert_eq!(chosen, BTreeSet::from(["compact", "validate"]));
        let failure = choose(&["clar".to_owned()]).unwrap_err().to_string();
        assert!(
            failure.starts_with("no scenario `clar`; there are "),
            "{failure}"
        );
    }

    #[test]
    fn no_two_scenarios_share_a_name() {
        let all = names(&choose(&[]).unwrap());
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
