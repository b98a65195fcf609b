//! Tries to lose notes: kills processes, races them, fills disks and makes them read-only.
//!
//! Results are checked from outside, by the files and by the output of the next undisturbed run.
//! The program is the release build. Only the hooks' time limit is asserted; other times are
//! printed.

#[cfg(target_os = "linux")]
mod crowd;
mod disk;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod hooks;
mod kills;
mod race;
#[cfg(target_os = "linux")]
mod records;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "most runs need Linux to see where a process is")
)]
mod sandbox;
#[cfg(target_os = "linux")]
mod script;
#[cfg(target_os = "linux")]
mod servers;
#[cfg(target_os = "linux")]
pub mod soak;
#[cfg(target_os = "linux")]
mod stopped;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::{
    Result,
    plugin::{self, Profile},
};

use self::sandbox::Sandbox;
use tempfile::TempDir;

/// Try to lose notes: kill processes, race them, fill disks
#[derive(clap::Args)]
pub struct Arguments {
    /// Number of processes to kill; more if a moment was hit too rarely
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    kills: usize,
    /// Seed of the random moments
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Test this program instead of a release build of the checkout
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Kill the hooks of whole sessions instead (Linux only)
    #[arg(long, group = "instead")]
    journal: bool,
    /// Run many hooks at once instead, some against a locked journal (Linux only)
    #[arg(long, group = "instead")]
    crowd: bool,
    /// Run 8 servers and 32 hooks at once for this many seconds instead (Linux only)
    #[arg(long, group = "instead", value_name = "SECONDS")]
    servers: Option<u64>,
    /// Measure capture and injection during a reindex instead
    #[arg(long, group = "instead")]
    race: bool,
    /// Fill the disk and make it read-only instead; needs permission to mount
    #[arg(long, group = "instead")]
    full_disk: bool,
}

/// Runs `cargo xtask crash`.
pub fn run(root: &Path, arguments: &Arguments) -> Result {
    let binary = plugin::given_or_built(root, arguments.binary.as_ref(), Profile::Release)?;
    let folder = tempfile::Builder::new()
        .prefix("anamnesis-crash-")
        .tempdir()?;
    let mut checks = Checks::default();
    if arguments.journal || arguments.crowd || arguments.servers.is_some() {
        watch(folder.path(), &binary, arguments, &mut checks)?;
    } else if arguments.race {
        race::run(&Sandbox::new(folder.path(), &binary)?, &mut checks)?;
    } else if arguments.full_disk {
        disk::run(folder.path(), &binary, &mut checks)?;
    } else {
        let sandbox = Sandbox::new(folder.path(), &binary)?;
        kills::run(&sandbox, arguments.kills, arguments.seed, &mut checks)?;
    }
    checks.finish(folder)
}

/// Runs the tasks that inspect processes.
#[cfg(target_os = "linux")]
fn watch(folder: &Path, binary: &Path, arguments: &Arguments, checks: &mut Checks) -> Result {
    let folder = &dunce::canonicalize(folder).map_err(crate::at(folder))?;
    if arguments.crowd {
        return crowd::run(folder, binary, checks);
    }
    if let Some(seconds) = arguments.servers {
        return servers::run(
            folder,
            binary,
            std::time::Duration::from_secs(seconds),
            checks,
        );
    }
    let ends = tempfile::tempdir()?;
    ends::run(ends.path(), binary, checks)?;
    hooks::run(folder, binary, arguments.kills, arguments.seed, checks)
}

#[cfg(not(target_os = "linux"))]
fn watch(_: &Path, _: &Path, _: &Arguments, _: &mut Checks) -> Result {
    Err("where a process is can only be seen on Linux".into())
}

/// Counts checks and violations. A violation is printed at once, and the run continues.
#[derive(Default)]
struct Checks {
    passed: usize,
    failed: usize,
}

impl Checks {
    /// Counts one check. `what` describes the violation if it does not hold.
    fn that(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if holds {
            self.passed += 1;
        } else {
            self.failed += 1;
            report(&format!("FAILED: {}", what()));
        }
    }

    /// Reports the counts. Keeps the folder if a check failed.
    fn finish(&self, folder: TempDir) -> Result {
        report(&format!("{} passed, {} failed", self.passed, self.failed));
        if self.failed == 0 {
            return Ok(());
        }
        let kept = folder.keep();
        Err(format!("what was left is in {}", kept.display()).into())
    }
}

/// Prints a line of the report. Ignores a closed pipe.
fn report(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
