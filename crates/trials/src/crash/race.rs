//! Measures captures, injections and session starts while another process rebuilds the index.
//!
//! Times are printed for a comparison with the budgets and are not asserted.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anamnesis_note::id::NoteId;

use super::{Checks, report, sandbox::Sandbox};
use crate::Result;

const NOTES: usize = 10_000;

/// Processes of each kind, and how many of them run at a time.
const RUNS: usize = 100;
const AT_ONCE: usize = 8;

/// Runs the scenario.
pub(super) fn run(sandbox: &Sandbox, checks: &mut Checks) -> Result {
    sandbox.plant(NOTES)?;
    let began = Instant::now();
    sandbox.succeeds(&["reindex"], b"", checks)?;
    report(&format!(
        "reindex of {NOTES} notes alone: {:.0} ms",
        began.elapsed().as_secs_f64() * 1000.0
    ));
    // Transcripts of some hundred kilobytes are written before the measurement.
    for run in 0..2 * RUNS {
        sandbox.transcript(&session(run), 40)?;
    }
    measure(sandbox, "idle", 0, checks)?;
    let is_over = AtomicBool::new(false);
    let rounds = AtomicUsize::new(0);
    thread::scope(|scope| -> Result {
        let rebuilding = scope.spawn(|| -> Result<bool> {
            let mut well = true;
            while !is_over.load(Ordering::Relaxed) {
                well &= sandbox.run(&["reindex"], b"")?.status.success();
                rounds.fetch_add(1, Ordering::Relaxed);
            }
            Ok(well)
        });
        let measured = measure(sandbox, "while reindexing", RUNS, checks);
        is_over.store(true, Ordering::Relaxed);
        let well = rebuilding.join().map_err(|_| "a reindex panicked")??;
        checks.that(well, || "a reindex failed".to_owned());
        measured
    })?;
    report(&format!(
        "{} full reindexes meanwhile",
        rounds.load(Ordering::Relaxed)
    ));
    let listing = sandbox.notes().list();
    checks.that(listing.notes.len() == NOTES + 2 * RUNS, || {
        format!("{} notes exist", listing.notes.len())
    });
    sandbox.heals(checks)
}

fn session(run: usize) -> String {
    format!("race-{run}")
}

/// Measures each kind of process and prints its median and maximum.
fn measure(sandbox: &Sandbox, when: &str, first: usize, checks: &mut Checks) -> Result {
    let end: Vec<Vec<u8>> = (first..first + RUNS)
        .map(|run| sandbox.payload("SessionEnd", &session(run)))
        .collect();
    let start = sandbox.payload("SessionStart", "race");
    let transcripts: Vec<String> = (first..first + RUNS)
        .map(|run| sandbox.transcript_path(&session(run)).display().to_string())
        .collect();
    for at_once in [1, AT_ONCE] {
        timed(sandbox, when, "inject", at_once, checks, |_| {
            (vec!["inject", "--project", "project-3"], b"".as_slice())
        })?;
        timed(sandbox, when, "hook SessionStart", at_once, checks, |_| {
            (vec!["hook"], start.as_slice())
        })?;
        // The second run finds its notes and does not write them again.
        if at_once == 1 {
            timed(sandbox, when, "capture", AT_ONCE, checks, |run| {
                let transcript = transcripts[run].as_str();
                (vec!["capture", "--transcript", transcript], b"".as_slice())
            })?;
        } else {
            timed(sandbox, when, "hook SessionEnd", at_once, checks, |run| {
                (vec!["hook"], end[run].as_slice())
            })?;
        }
    }
    let notes = sandbox.notes();
    for run in first..first + RUNS {
        let id = NoteId::of_session(&session(run));
        checks.that(notes.find(id).is_some(), || {
            format!("the note of {} is lost", session(run))
        });
    }
    Ok(())
}

fn timed<'a>(
    sandbox: &Sandbox,
    when: &str,
    what: &str,
    at_once: usize,
    checks: &mut Checks,
    call: impl Fn(usize) -> (Vec<&'a str>, &'a [u8]) + Sync,
) -> Result {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(Duration, bool)>> = Mutex::new(Vec::new());
    thread::scope(|scope| -> Result {
        let workers: Vec<_> = (0..at_once)
            .map(|_| {
                scope.spawn(|| -> Result {
                    loop {
                        let run = next.fetch_add(1, Ordering::Relaxed);
                        if run >= RUNS {
                            return Ok(());
                        }
                        let (arguments, input) = call(run);
                        let mut command = sandbox.command(&arguments, input)?;
                        let began = Instant::now();
                        let output = command.output()?;
                        let took = began.elapsed();
                        let well = output.status.success() && output.stderr.is_empty();
                        results
                            .lock()
                            .map_err(|_| "another process's result was lost")?
                            .push((took, well));
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().map_err(|_| "a measuring thread panicked")??;
        }
        Ok(())
    })?;
    let results = results.into_inner().map_err(|_| "results were lost")?;
    for (_, well) in &results {
        checks.that(*well, || format!("{what} failed {when}"));
    }
    let mut times: Vec<Duration> = results.into_iter().map(|(time, _)| time).collect();
    times.sort_unstable();
    let milliseconds = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    report(&format!(
        "{when:<17} {what:<18} {at_once} at a time: median {:>6.1} ms, worst {:>6.1} ms",
        milliseconds(times.get(times.len() / 2)),
        milliseconds(times.last())
    ));
    Ok(())
}
