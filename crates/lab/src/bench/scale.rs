//! Measures how the times of commands and hooks and the size of the index grow with the store.
//!
//! Each size has a store of its own, whose notes are about 1 KiB long. The disk needs about 6 KiB per
//! note meanwhile. Every figure is the median of several whole processes.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use serde_json::json;

use super::{
    MIB, Stage, Tools,
    corpus::{self, change_notes, note_files},
    grouped,
    measure::{Run, Spread},
    server,
};
use crate::{Result, at, random::Random, say};

/// The size that the large store is compared with.
const SMALL: usize = 10_000;

/// How often each process runs.
const RUNS: usize = 7;

/// Measure commands, hooks and the index at 10,000 notes and at a larger number
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of notes in the large store
    #[arg(long, default_value_t = 100_000)]
    notes: usize,
    /// Measure this program instead of the release build
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// The figures of a store: what was measured, and the value with its unit.
type Column = Vec<(&'static str, String)>;

/// Runs `cargo xtask scale`.
pub fn run(arguments: &Arguments, tools: &dyn Tools) -> Result {
    let program = match &arguments.binary {
        Some(path) => path.canonicalize().map_err(at(path))?,
        None => tools.release_build()?,
    };
    // As in `bench`.
    let folder = tempfile::Builder::new()
        .prefix("anamnesis-scale-")
        .tempdir()?;
    let stage = Stage::build(tools, folder.path(), &program)?;
    let small = column(&stage, SMALL)?;
    let large = column(&stage, arguments.notes)?;
    let mut text = format!(
        "{:44} {:>12} {:>12}\n",
        "",
        grouped(SMALL),
        grouped(arguments.notes)
    );
    for ((name, small), (_, large)) in small.iter().zip(&large) {
        let _ = writeln!(text, "{name:44} {small:>12} {large:>12}");
    }
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn column(stage: &Stage<'_>, notes: usize) -> Result<Column> {
    let name = format!("scale-{notes}");
    let folder = stage.store_folder(&name);
    say(&format!("making {} notes", grouped(notes)));
    let title = corpus::write_notes(&folder, notes, &stage.words)?;
    let files = note_files(&folder)?;
    let mut text = 0;
    for file in &files {
        text += fs::metadata(file).map_err(at(file))?.len();
    }
    say("reindex");
    let (reindexed, _) = stage.direct(&name, &["reindex"]).once()?;
    let index = fs::metadata(folder.join("derived/index.db"))?.len();
    let mut column = vec![
        ("text", mebibytes(text)),
        ("index", mebibytes(index)),
        (
            "index, hundredths of the text",
            (100 * index / text).to_string(),
        ),
        ("reindex", seconds(reindexed.wall)),
    ];
    say("commands and hooks");
    let start = json!({
        "session_id": "SESSION", "hook_event_name": "SessionStart", "source": "startup",
        "cwd": stage.project,
    });
    let prompt = json!({
        "session_id": "SESSION", "hook_event_name": "UserPromptSubmit", "cwd": stage.project,
        "prompt": format!("what do we know about {title}?"),
    });
    let search = stage.direct(&name, &["search", &title]);
    let mut random = Random::new(7);
    let nothing: fn(&[PathBuf], &mut Random) -> Result = |_, _| Ok(());
    let edit: fn(&[PathBuf], &mut Random) -> Result =
        |files, random| change_notes(files, 10, random);
    for (name, run, before) in [
        ("status", stage.direct(&name, &["status"]), nothing),
        ("list", stage.direct(&name, &["list"]), nothing),
        ("search", search.clone(), nothing),
        ("search after 10 edits in place", search, edit),
        (
            "deferred process after 10 edits in place",
            stage.direct(&name, &["work"]),
            edit,
        ),
        ("session start", stage.hook(&name, &start), nothing),
        ("prompt", stage.hook(&name, &prompt), nothing),
    ] {
        let mut times = Vec::new();
        for number in 0..RUNS {
            before(&files, &mut random)?;
            times.push(once(&run, number)?);
        }
        column.push((name, milliseconds(times)));
    }
    let doctor = stage.direct(&name, &["doctor"]);
    // It exits with 3, because the plugin is not installed here.
    let (sample, ..) = doctor.to_end()?;
    column.push(("doctor", seconds(sample.wall)));
    let first = server::first_search(&stage.home(&name), &folder, &stage.binary)?;
    column.push(("first search of a server", milliseconds(vec![first])));
    Ok(column)
}

/// Runs a process for a session of its own.
fn once(run: &Run, number: usize) -> Result<Duration> {
    let mut run = run.clone();
    run.stdin = run.stdin.replace("SESSION", &format!("scale-{number}"));
    Ok(run.once()?.0.wall)
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes / MIB)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn milliseconds(times: Vec<Duration>) -> String {
    let median = Spread::from_times(times.into_iter()).median;
    format!("{:.1} ms", 1e3 * median.as_secs_f64())
}
