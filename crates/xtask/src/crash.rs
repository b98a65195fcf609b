//! Tries to lose a note: processes are killed, race each other and meet full and read-only disks.
//!
//! Everything is judged from the outside, by what lies on the disk and by what the next plain run
//! says. The program is the release build, as users have it. The one deadline that is asserted is the
//! one that a hook promises; other times are printed for a person to compare.

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
mod sandbox;
#[cfg(target_os = "linux")]
mod script;
#[cfg(target_os = "linux")]
mod servers;
#[cfg(target_os = "linux")]
mod stopped;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    Result, at,
    plugin::{self, Profile},
};

use self::sandbox::Sandbox;

/// Try to lose notes: kill processes, race them, fill disks
#[derive(clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a run of its own and excludes the others"
)]
pub(crate) struct Arguments {
    /// Kill this many processes, more where a moment was hit too rarely
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    kills: usize,
    /// Draw the moments from this seed
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Try this program instead of a release build of the checkout
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Kill the hooks of whole sessions instead of what writes notes; for Linux only
    #[arg(long, group = "instead")]
    journal: bool,
    /// Run many hooks at once instead, and beside those who keep the records; for Linux only
    #[arg(long, group = "instead")]
    crowd: bool,
    /// Let 8 servers and 32 hooks work at once for so long instead; for Linux only
    #[arg(long, group = "instead", value_name = "SECONDS")]
    servers: Option<u64>,
    /// Measure captures and injects while the index is built anew, instead of killing
    #[arg(long, group = "instead")]
    race: bool,
    /// Fill the disk and make it read-only, instead of killing; needs the right to mount
    #[arg(long, group = "instead")]
    full_disk: bool,
}

/// The task: `cargo xtask crash`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    let binary = match &arguments.binary {
        Some(given) => given.canonicalize().map_err(at(given))?,
        None => plugin::own_build(root, Profile::Release)?.path,
    };
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
    report(&format!(
        "{} passed, {} failed",
        checks.passed, checks.failed
    ));
    if checks.failed == 0 {
        return Ok(());
    }
    let kept = folder.keep();
    Err(format!("what was left is in {}", kept.display()).into())
}

/// The tasks that look at processes.
#[cfg(target_os = "linux")]
fn watch(folder: &Path, binary: &Path, arguments: &Arguments, checks: &mut Checks) -> Result {
    let folder = &folder.canonicalize().map_err(at(folder))?;
    if arguments.crowd {
        return crowd::run(folder, binary, checks);
    }
    if let Some(seconds) = arguments.servers {
        return servers::run(folder, binary, Duration::from_secs(seconds), checks);
    }
    let ends = tempfile::tempdir()?;
    ends::run(ends.path(), binary, checks)?;
    hooks::run(folder, binary, arguments.kills, arguments.seed, checks)
}

#[cfg(not(target_os = "linux"))]
fn watch(_: &Path, _: &Path, _: &Arguments, _: &mut Checks) -> Result {
    Err("where a process is can only be seen on Linux".into())
}

/// What was looked at so far. A violation is told at once, and the run goes on.
#[derive(Default)]
struct Checks {
    passed: usize,
    failed: usize,
}

impl Checks {
    /// Counts one look; `what` says what is wrong when it does not hold.
    fn that(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if holds {
            self.passed += 1;
        } else {
            self.failed += 1;
            report(&format!("FAILED: {}", what()));
        }
    }
}

/// Prints a line of the report. A closed pipe ends the report, not the run.
fn report(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
