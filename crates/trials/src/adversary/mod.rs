//! Plays hostile inputs against the program: a table with a row per attack and generated variants.
//!
//! Each variant has its own temporary home with three tripwires that no attack may reach: a remote,
//! a store and a model's address. Files beside them show whether a program of the attacker ran. A
//! variant depends on the seed, the row and its number only, so a failure can be repeated.

mod authority;
mod environment;
mod git;
mod mcp;
mod notes;
mod paths;
mod place;
mod settings;
mod text;

use std::{
    io::{self, Write as _},
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use anamnesis_lab::random::Random;

use self::place::TestSite;
use crate::{
    Result,
    plugin::{self, Profile},
};

/// Play hostile inputs against the program: settings of repositories, environment, paths, git, text
#[derive(clap::Args)]
pub struct Arguments {
    /// Seed of the variants
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Number of variants of each row
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    variants: u64,
    /// Play the rows of one family, or rows with this text in their name; may be repeated
    #[arg(long, value_name = "FAMILY")]
    only: Vec<String>,
    /// Test this program instead of a build of the checkout
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// An attack. `play` returns an error if the program did not hold.
#[derive(Clone, Copy)]
struct Row {
    family: &'static str,
    name: &'static str,
    play: fn(&mut TestSite) -> Result,
}

/// The families, in the order of the table.
const FAMILIES: [&[Row]; 8] = [
    settings::ROWS,
    environment::ROWS,
    paths::ROWS,
    git::ROWS,
    notes::ROWS,
    text::ROWS,
    mcp::ROWS,
    authority::ROWS,
];

/// The figures of one row.
#[derive(Default)]
struct Outcome {
    held: u64,
    failed: u64,
}

/// Runs `cargo xtask adversary`.
pub fn run(root: &Path, arguments: &Arguments) -> Result {
    let program = plugin::given_or_built(root, arguments.binary.as_ref(), Profile::Debug)?;
    let is_chosen = |row: &&Row| {
        let names = &arguments.only;
        names.is_empty()
            || names
                .iter()
                .any(|name| row.family == name || row.name.contains(name.as_str()))
    };
    let rows: Vec<Row> = FAMILIES
        .into_iter()
        .flatten()
        .filter(is_chosen)
        .copied()
        .collect();
    if rows.is_empty() || arguments.variants == 0 {
        return Err("no row is chosen; `cargo xtask adversary` without --only plays all".into());
    }
    let began = Instant::now();
    // A failure is in the report; the message of a panic would only repeat it.
    panic::set_hook(Box::new(|_| {}));
    controls(&program)?;
    let outcomes = play_all(&rows, &program, arguments);
    let _ = panic::take_hook();
    let failed: u64 = outcomes.iter().map(|outcome| outcome.failed).sum();
    report(&table(&rows, &outcomes));
    report(&format!(
        "{} rows, {} variants of seed {} in {:.0} s, {failed} failed",
        rows.len(),
        outcomes.iter().map(Outcome::played).sum::<u64>(),
        arguments.seed,
        began.elapsed().as_secs_f64(),
    ));
    match failed {
        0 => Ok(()),
        failed => Err(format!("{failed} variants did not hold").into()),
    }
}

impl Outcome {
    fn played(&self) -> u64 {
        self.held + self.failed
    }
}

/// Checks that the tripwires notice: what a project must not name, a person's own terminal may.
fn controls(program: &Path) -> Result {
    let control = |what: &str, play: fn(&mut TestSite) -> Result| -> Result {
        let mut place = TestSite::new(program, Random::new(1))?;
        play(&mut place)?;
        match place.check() {
            Ok(()) => Err(format!("the tripwire for {what} does not notice").into()),
            Err(_) => Ok(()),
        }
    };
    control("the remote", |place| {
        let remote = place.evil_remote().into_os_string();
        place.person_with(&["sync"], "ANAMNESIS_GIT_REMOTE", remote)
    })?;
    control("the store", |place| {
        let store = place.evil_store().into_os_string();
        place.person_with(&["list"], "ANAMNESIS_HOME", store)
    })?;
    control("programs", |place| {
        place.evil_program(&place.home.root().join("bin/git"))?;
        let bin = place.home.root().join("bin").into_os_string();
        place.person_with(&["sync"], "PATH", bin)
    })?;
    control("settings", |place| {
        place
            .person(&["config", "set", "machine_id", "other"])
            .map(drop)
    })
}

/// Plays all variants of all rows on all processors.
fn play_all(rows: &[Row], program: &Path, arguments: &Arguments) -> Vec<Outcome> {
    let plays: Vec<(usize, u64)> = (0..rows.len())
        .flat_map(|row| (0..arguments.variants).map(move |variant| (row, variant)))
        .collect();
    let outcomes: Vec<Mutex<Outcome>> = rows.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((row, variant)) = plays.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (Some(row), Some(outcome)) = (rows.get(*row), outcomes.get(*row)) else {
                        return;
                    };
                    let played = play(*row, program, arguments.seed, *variant);
                    let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                    match played {
                        Ok(()) => outcome.held += 1,
                        Err(error) => {
                            outcome.failed += 1;
                            let (family, name) = (row.family, row.name);
                            report(&format!(
                                "FAILED: {family} / {name}, variant {variant}: {error}"
                            ));
                        }
                    }
                }
            });
        }
    });
    let taken = outcomes
        .into_iter()
        .map(|outcome| outcome.into_inner().unwrap_or_else(PoisonError::into_inner));
    taken.collect()
}

/// Plays one variant and checks the tripwires.
fn play(row: Row, program: &Path, seed: u64, variant: u64) -> Result {
    let name = row.name.bytes().fold(seed, |hash, byte| {
        hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
    });
    let random = Random::new(name.wrapping_add(variant.wrapping_mul(0x9e37_79b9)));
    let played = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut place = TestSite::new(program, random)?;
        let held = (row.play)(&mut place).and_then(|()| place.check());
        held.map_err(|error| format!("{error}\n    with {}", place.choices()).into())
    }));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(text
            .unwrap_or_else(|| "the test panicked".to_owned())
            .into())
    })
}

fn table(rows: &[Row], outcomes: &[Outcome]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:<12}{:<width$}  variants  held  failed\n",
        "family", "attack"
    );
    for (row, outcome) in rows.iter().zip(outcomes) {
        text.push_str(&format!(
            "{:<12}{:<width$}  {:>8}  {:>4}  {:>6}\n",
            row.family,
            row.name,
            outcome.played(),
            outcome.held,
            outcome.failed
        ));
    }
    text
}

/// Prints lines of the report. Ignores a closed pipe.
fn report(text: &str) {
    let _ = writeln!(io::stdout(), "{}", text.trim_end());
}
