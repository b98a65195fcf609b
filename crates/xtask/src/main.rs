//! The project's own tasks, run as `cargo xtask TASK`.
//!
//! Everything that continuous integration or a release does is a task here, so that it can be run
//! and tested on any machine; the workflow files only call it. No task needs a network by itself.

#[cfg(unix)]
mod bench;
mod ci;
#[cfg(unix)]
mod crash;
#[cfg(unix)]
mod e2e;
mod eval;
mod icon;
#[cfg(unix)]
mod inspect;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod machines;
mod manifest;
mod novelty;
mod plugin;
#[cfg(unix)]
mod random;
#[cfg(unix)]
mod references;
#[cfg(unix)]
mod retention;
mod size;
mod source;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

/// A task fails with a sentence for the developer who ran it.
type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own tasks")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Assemble the installable plugin tree
    Plugin(plugin::Arguments),
    /// Set the repository's address in every place it stands
    PublishAs(manifest::PublishArguments),
    /// Draw the plugin's icon
    Icon,
    /// Play sessions in the real client, offline, with the plugin installed
    #[cfg(unix)]
    E2e(e2e::Arguments),
    /// Ask the server through the MCP inspector
    #[cfg(unix)]
    Inspect(inspect::Arguments),
    /// Measure what recall finds, and what it brings up in vain, on sets of questions
    Eval(eval::Arguments),
    /// Measure how well what is said already is told from what is not, on notes
    Novelty(novelty::Arguments),
    /// Measure the release build beside an empty program and git, against the budgets
    #[cfg(unix)]
    Bench(bench::Arguments),
    /// Try to lose a note: kills, races, full and read-only disks
    #[cfg(unix)]
    Crash(crash::Arguments),
    /// Try to lose a note on three machines that sync: random histories, kills at every step
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    Machines(machines::Arguments),
    /// Play months of sessions into a journal and watch its size
    #[cfg(unix)]
    Retention(retention::Arguments),
    /// Measure whether notes about what is gone from a repository are told to be out of date
    #[cfg(unix)]
    References(references::Arguments),
    /// Count the product's lines, per crate, and list files and functions over the limits
    Size(size::Arguments),
    /// Run every check that a change has to pass
    Ci(ci::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let root = root();
    let outcome = match &arguments.task {
        Task::Plugin(arguments) => plugin::run(&root, arguments),
        Task::PublishAs(arguments) => manifest::publish_as(&root, arguments),
        Task::Icon => icon::write(&root),
        Task::Eval(arguments) => eval::run(arguments),
        Task::Novelty(arguments) => novelty::run(arguments),
        #[cfg(unix)]
        Task::E2e(arguments) => e2e::run(&root, arguments),
        #[cfg(unix)]
        Task::Inspect(arguments) => inspect::run(&root, arguments),
        #[cfg(unix)]
        Task::Bench(arguments) => bench::run(&root, arguments),
        #[cfg(unix)]
        Task::Crash(arguments) => crash::run(&root, arguments),
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        Task::Machines(arguments) => machines::run(&root, arguments),
        #[cfg(unix)]
        Task::Retention(arguments) => retention::run(&root, arguments),
        #[cfg(unix)]
        Task::References(arguments) => references::run(&root, arguments),
        Task::Size(arguments) => size::run(&root, arguments),
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

/// Returns the root of the checkout that this program was built from.
fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder
        .ancestors()
        .nth(2)
        .unwrap_or(crate_folder)
        .to_path_buf()
}

/// Returns the build's output folder: the one that this program stands in.
#[cfg(unix)]
fn target_folder(root: &Path) -> PathBuf {
    let own = std::env::current_exe().ok();
    let target = own.as_deref().and_then(|path| path.ancestors().nth(2));
    target.map_or_else(|| root.join("target"), Path::to_path_buf)
}

/// Prints a line for the developer, on stderr as cargo does. A closed pipe is no failure.
fn say(line: &str) {
    use io::Write as _;
    let _ = writeln!(io::stderr(), "{line}");
}

/// Names the file in an I/O error, for `map_err`.
fn at(path: &Path) -> impl FnOnce(io::Error) -> Box<dyn std::error::Error + Send + Sync> + '_ {
    move |error| format!("{}: {error}", path.display()).into()
}

/// Runs a program in the checkout and fails unless it succeeds.
fn run(command: &mut Command) -> Result {
    let status = command
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?}: {status}").into())
    }
}

/// Returns the cargo that started this task, so that one toolchain does everything.
fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}
