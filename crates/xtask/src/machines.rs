//! Three machines and the remote between them: random histories, and syncs that are killed at every
//! step.
//!
//! Everything is judged from the outside: by what lies on the disks once all machines have synced
//! twice, and by what the program says meanwhile. A seed that has failed once stands in [`SEEDS`] and
//! is played again by every run of `cargo xtask ci`.

mod accounts;
mod fleet;
mod history;
mod kills;
mod look;
pub(crate) mod mixed;
mod step;
mod trace;

use std::{
    io::{self, Write as _},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    Result, at,
    plugin::{self, Profile},
    target_folder,
};

use self::{
    fleet::{Fleet, NAMES},
    history::History,
};

/// Histories that have found a fault: the seed, and how many steps it takes.
///
/// - 1: a killed sync that was finished dropped what a command had committed since.
/// - 6: a commit during a push was taken for a history that somebody else had rewritten.
/// - 1045: a kill left the lock of git's reflog.
/// - 1051, 1094: an answer of git's that stood in its pipe for longer was taken for none.
/// - 1082: a note that moved to another folder while it was looked at was committed in both.
/// - 1144, 1314: a note was moved back from the machine's own tree to where another machine's version of
///   it lay.
///
/// Those from 1045 to 1094 failed on a busy machine only, where other things fell together.
///
/// Whoever changes what is drawn looks for seeds that find the same again.
const SEEDS: [(u64, usize); 9] = [
    (1, 400),
    (6, 82),
    (1045, 1000),
    (1051, 299),
    (1082, 409),
    (1094, 802),
    (1144, 755),
    (1154, 420),
    (1314, 221),
];

/// Try to lose notes on three machines that sync: random histories and killed syncs
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Play the history of this seed first
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Play the histories of this many seeds
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    seeds: u64,
    /// Play this many steps of each
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    steps: usize,
    /// Play the histories before them that have found a fault once
    #[arg(long)]
    known: bool,
    /// Kill a sync before each of its steps instead, or before every so many
    #[arg(long, value_name = "STRIDE", num_args = 0..=1, default_missing_value = "1")]
    kills: Option<NonZeroUsize>,
    /// Let one of the machines have the Python version instead
    #[arg(long, conflicts_with = "kills")]
    python: bool,
    /// Try this program instead of a build of the checkout
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// The task: `cargo xtask machines`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    let binary = match &arguments.binary {
        Some(given) => given.canonicalize().map_err(at(given))?,
        // What is looked for is lost notes, not time: the checks of a debug build help.
        None => plugin::own_build(root, Profile::Debug)?.path,
    };
    if let Some(stride) = arguments.kills {
        let folder = tempfile::tempdir()?;
        return match kills::run(folder.path(), &binary, stride.get())? {
            0 => Ok(()),
            failed => Err(format!("{failed} faults").into()),
        };
    }
    if arguments.python {
        return beside_python(root, &binary);
    }
    let known = SEEDS.iter().copied().filter(|_| arguments.known);
    let last = arguments.seed.saturating_add(arguments.seeds);
    let drawn = (arguments.seed..last).map(|seed| (seed, arguments.steps));
    let plays: Vec<(u64, usize)> = known.chain(drawn).collect();
    let began = Instant::now();
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((seed, steps)) = plays.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let is_well = play(*seed, *steps, &binary).unwrap_or_else(|error| {
                        report(&format!("seed {seed}: {error}"));
                        false
                    });
                    if !is_well && let Ok(mut failed) = failed.lock() {
                        failed.push(*seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().map_err(|_| "a worker panicked")?;
    report(&format!(
        "{} histories in {:.0} s, {} failed",
        plays.len(),
        began.elapsed().as_secs_f64(),
        failed.len()
    ));
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("these seeds failed: {failed:?}").into())
}

/// Installs the Python version, unless it is there; its program, or the reason why it cannot be had.
pub(crate) fn python_version(root: &Path) -> std::result::Result<PathBuf, String> {
    mixed::install(&target_folder(root))
}

/// Lets one machine have the Python version, where that can be had.
fn beside_python(root: &Path, binary: &Path) -> Result {
    let python = match python_version(root) {
        Ok(python) => python,
        Err(reason) => {
            report(&format!("skipped: {reason}"));
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let faults = mixed::run(folder.path(), binary, &python)?;
    for fault in &faults {
        report(&format!("FAILED: {fault}"));
    }
    match faults.len() {
        0 => Ok(()),
        failed => Err(format!("{failed} faults").into()),
    }
}

/// Plays one history; tells whether everything held.
fn play(seed: u64, steps: usize, binary: &Path) -> Result<bool> {
    let began = Instant::now();
    let folder = tempfile::Builder::new()
        .prefix(&format!("anamnesis-machines-{seed}-"))
        .tempdir()?;
    let mut history = History::new(Fleet::new(folder.path(), binary, &NAMES)?, seed);
    let mut played = history.play(steps);
    if played.is_ok() && history.faults.is_empty() {
        played = history.settle();
    }
    let mut faults = std::mem::take(&mut history.faults);
    match played {
        Err(error) => faults.push(error.to_string()),
        Ok(()) if faults.is_empty() => {
            faults = look::look(&history.fleet, &history.accounts)?;
        }
        Ok(()) => {}
    }
    report(&told(seed, steps, &history, &faults, began.elapsed()));
    if faults.is_empty() {
        return Ok(true);
    }
    let kept = folder.keep();
    let steps = kept.join("steps.txt");
    std::fs::write(&steps, history.told.join("\n")).map_err(at(&steps))?;
    report(&format!(
        "  everything is left in {}\n  again: cargo xtask machines --seed {seed} --steps {}",
        kept.display(),
        history.steps()
    ));
    Ok(false)
}

/// What a history was, and what did not hold.
fn told(seed: u64, steps: usize, history: &History, faults: &[String], took: Duration) -> String {
    const COUNTED: [&str; 6] = [
        "sync",
        "kill",
        "power cut",
        "edit during a sync",
        "clash",
        "new machine",
    ];
    let counts: Vec<String> = COUNTED
        .iter()
        .map(|what| format!("{what} {}", history.count(what)))
        .collect();
    let mut text = format!(
        "seed {seed}: {steps} steps, {}; {} texts; {:.1} s",
        counts.join(", "),
        history.accounts.count(),
        took.as_secs_f64()
    );
    for fault in faults {
        text.push_str("\n  FAILED: ");
        text.push_str(fault);
    }
    text
}

/// Prints a line of the report. A closed pipe ends the report, not the run.
fn report(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
