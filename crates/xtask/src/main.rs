//! The project's own tasks, run as `cargo xtask TASK`.
//!
//! Continuous integration and releases only call these tasks, so that they can be run and tested on
//! any machine. No task requires a network.

mod ci;
mod demo;
#[cfg(unix)]
mod inspect;
mod manifest;
#[cfg(unix)]
mod pages;
#[cfg(unix)]
mod platforms;
#[cfg(unix)]
mod release;
mod site;
mod size;
mod source;

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use anamnesis_lab::python_version;
use anamnesis_lab::{
    Result, at, cargo, eval, frequencies, masks, novelty, plugin, root, run, say, target_folder,
};
#[cfg(unix)]
use anamnesis_lab::{bench, retention};
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use anamnesis_trials::{adversary, machines};
#[cfg(unix)]
use anamnesis_trials::{crash, e2e};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks for developers")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Plugin(plugin::Arguments),
    PublishAs(manifest::PublishArguments),
    #[cfg(unix)]
    E2e(e2e::Arguments),
    #[cfg(unix)]
    Inspect(inspect::Arguments),
    #[cfg(unix)]
    Pages(pages::Arguments),
    Eval(eval::Arguments),
    Card(eval::card::Arguments),
    Frequencies(frequencies::Arguments),
    Novelty(novelty::Arguments),
    Masks(masks::Arguments),
    #[cfg(unix)]
    Platforms(platforms::Arguments),
    #[cfg(unix)]
    Release(release::Arguments),
    #[cfg(unix)]
    Bench(bench::Arguments),
    #[cfg(unix)]
    Scale(bench::scale::Arguments),
    #[cfg(unix)]
    Cost(bench::cost::Arguments),
    #[cfg(unix)]
    Crash(crash::Arguments),
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    Machines(machines::Arguments),
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    Adversary(adversary::Arguments),
    #[cfg(target_os = "linux")]
    Soak(crash::soak::Arguments),
    #[cfg(unix)]
    Retention(retention::Arguments),
    #[cfg(unix)]
    /// Run every command in every situation and compare exit codes and first lines with the contract
    CliContract,
    /// Write man pages and completions to target/manual, for the archives of a release
    Manual,
    /// Count lines of code per crate and list files and functions over the limits
    Size(size::Arguments),
    Demo(demo::Arguments),
    Site(site::Arguments),
    Ci(ci::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let root = root();
    let outcome = match &arguments.task {
        Task::Plugin(arguments) => plugin::run(&root, arguments),
        Task::PublishAs(arguments) => manifest::publish_as(&root, arguments),
        Task::Eval(arguments) => eval::run(arguments),
        Task::Card(arguments) => eval::card::run(arguments),
        Task::Frequencies(arguments) => frequencies::run(&root, arguments),
        Task::Novelty(arguments) => novelty::run(arguments),
        Task::Masks(arguments) => masks::run(arguments),
        #[cfg(unix)]
        Task::E2e(arguments) => e2e::run(&root, arguments),
        #[cfg(unix)]
        Task::Inspect(arguments) => inspect::run(&root, arguments),
        #[cfg(unix)]
        Task::Pages(arguments) => pages::run(&root, arguments),
        #[cfg(unix)]
        Task::Platforms(arguments) => platforms::run(&root, arguments),
        #[cfg(unix)]
        Task::Release(arguments) => release::run(&root, arguments),
        #[cfg(unix)]
        Task::Bench(arguments) => bench::run(&root, arguments),
        #[cfg(unix)]
        Task::Scale(arguments) => bench::scale::run(arguments),
        #[cfg(unix)]
        Task::Cost(arguments) => bench::cost::run(arguments),
        #[cfg(unix)]
        Task::Crash(arguments) => crash::run(&root, arguments),
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        Task::Machines(arguments) => machines::run(&root, arguments),
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        Task::Adversary(arguments) => adversary::run(&root, arguments),
        #[cfg(target_os = "linux")]
        Task::Soak(arguments) => crash::soak::run(&root, arguments),
        #[cfg(unix)]
        Task::Retention(arguments) => retention::run(&root, arguments),
        #[cfg(unix)]
        // The contract is a test, because it needs the built binary and its snapshots.
        Task::CliContract => run(cargo(&root).args([
            "test",
            "--package=anamnesis-cli",
            "--test=cli",
            "contract::",
        ])),
        Task::Manual => manual(&root),
        Task::Size(arguments) => size::run(&root, arguments),
        Task::Site(arguments) => site::run(&root, arguments),
        Task::Demo(arguments) => demo::run(&root, arguments),
        Task::Ci(arguments) => ci::run(&root, arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("xtask: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The folder of man pages and completions in the checkout, which `dist-workspace.toml` names, too.
const MANUAL: &str = "target/manual";

/// Writes man pages and completions. A feature keeps their generator out of the released program.
fn manual(root: &std::path::Path) -> Result {
    run(cargo(root)
        .args(["run", "--quiet", "--package=anamnesis-cli"])
        .args(["--features=manual", "--", "manual", MANUAL]))
}
