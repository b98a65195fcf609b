//! Plays scripted sessions in the real Claude Code client with the plugin installed, offline.
//!
//! It tests that the client runs the hooks, shows their output and sends the injected text. The
//! logic of hooks is tested without the client, which is a thousand times faster. Needs `git`, and
//! `npm` for the client's first install. Scenarios in a terminal need `tmux` and are skipped
//! without it. See `docs/client-tests.md`.

mod exact;
mod guarded;
mod hosts;
mod machines;
mod proved;
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
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anamnesis_testkit::client::{CLIENT_VERSION, Client, Marketplace};
use anamnesis_testkit::process::TestFailure;
use anamnesis_testkit::tmux;

use crate::plugin::{self, Options, Profile};
use crate::{Result, at, python_version, target_folder};

use self::scenarios::{RunMode, SCENARIOS, Scenario, Stage};

/// The variable that names the folder of the installed client.
const CACHE_VARIABLE: &str = "ANAMNESIS_E2E_CACHE";

/// How many scenarios are played at once.
const PLAYERS: usize = 2;

/// Play sessions offline in the real client with the plugin installed
#[derive(clap::Args)]
pub struct Arguments {
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
pub fn run(root: &Path, arguments: &Arguments) -> Result {
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
    let python = chosen
        .iter()
        .any(|scenario| scenario.place == RunMode::BesidePython)
        .then(|| python_version::install(root));
    let players = Players {
        client: &client,
        cache: &cache,
        plugin: &tree,
        marketplace: &marketplace,
        python: python.as_ref().map(std::result::Result::as_ref),
        folder: run_folder.path(),
        arguments,
        waiting: Mutex::new(chosen.into_iter()),
    };
    // A client mostly waits: for its model, a hook or a screen.
    let counts: Vec<Counts> = thread::scope(|scope| {
        let play = || scope.spawn(|| players.play());
        let threads: Vec<_> = (0..PLAYERS).map(|_| play()).collect();
        let counts = threads.into_iter().map(thread::ScopedJoinHandle::join);
        counts.collect::<std::result::Result<_, _>>()
    })
    .map_err(|_| "a scenario panicked")?;
    let sum = |count: fn(&Counts) -> usize| counts.iter().map(count).sum::<usize>();
    if sum(|counts| counts.kept) > 0 {
        let _ = run_folder.keep();
    }
    let (passed, failed) = (sum(|counts| counts.passed), sum(|counts| counts.failed));
    let skipped = sum(|counts| counts.skipped);
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

/// What the threads that play scenarios share.
struct Players<'a> {
    client: &'a Client,
    cache: &'a Path,
    plugin: &'a Path,
    marketplace: &'a Marketplace,
    python: Option<std::result::Result<&'a PathBuf, &'a String>>,
    folder: &'a Path,
    arguments: &'a Arguments,
    waiting: Mutex<std::vec::IntoIter<&'static Scenario>>,
}

/// How the scenarios of a thread ended.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
    kept: usize,
}

impl Players<'_> {
    /// Plays scenarios until none is left.
    fn play(&self) -> Counts {
        let mut counts = Counts::default();
        while let Some(scenario) = self.next() {
            if let Some(reason) = self.missing(scenario) {
                counts.skipped += 1;
                report(format_args!("skipped {}: {reason}", scenario.name));
                continue;
            }
            let begun = Instant::now();
            let folder = self.folder.join(scenario.name);
            let outcome = self.play_one(scenario, &folder);
            let seconds = begun.elapsed().as_secs_f32();
            let name = scenario.name;
            let is_kept = self.arguments.keep || outcome.is_err();
            let mut line = match outcome {
                Ok((compared, played)) => {
                    counts.passed += 1;
                    let exact = format!("{compared} injected texts as `why --exact` prints them");
                    format!("ok      {name} ({seconds:.1} s; {exact}; {played} sessions proved)")
                }
                Err(failure) => {
                    counts.failed += 1;
                    format!("FAILED  {name} ({seconds:.1} s): {failure}")
                }
            };
            if is_kept {
                counts.kept += 1;
                line = format!("{line}\n        kept: {}", folder.display());
            } else {
                // A running hook may still write there. The run's folder is removed at the end.
                let _ = fs::remove_dir_all(&folder);
            }
            report(line);
        }
        counts
    }

    fn next(&self) -> Option<&'static Scenario> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.next()
    }

    /// Returns why a scenario cannot be played here.
    fn missing(&self, scenario: &Scenario) -> Option<String> {
        match (&scenario.place, &self.python) {
            (RunMode::Terminal, _) if !tmux::is_installed() => {
                Some("tmux is not installed".to_owned())
            }
            (RunMode::BesidePython, Some(Err(reason))) => Some((*reason).clone()),
            _ => None,
        }
    }

    /// Plays a scenario. Returns how many injected texts were compared with the journal, and how many
    /// sessions `prove` played.
    fn play_one(&self, scenario: &Scenario, folder: &Path) -> Result<(usize, u64)> {
        fs::create_dir(folder)?;
        let python = self.python.as_ref().and_then(|python| python.as_ref().ok());
        (scenario.play)(&Stage {
            client: self.client,
            cache: self.cache,
            plugin: self.plugin,
            marketplace: self.marketplace,
            python: python.map(|python| python.as_path()),
            folder,
            screens: self.arguments.screens.as_deref(),
        })?;
        let compared = exact::check(folder, self.plugin)?;
        Ok((compared, proved::check(folder, self.plugin)?))
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
