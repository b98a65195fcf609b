//! Measures how the times of commands, hooks and pages and the size of the index grow with the store.
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

use anamnesis_store::fs::home::Home;
use serde_json::json;

use super::{
    MIB, Stage,
    corpus::{self, change_notes, note_files},
    grouped,
    measure::{Run, Spread},
    server, viewer,
};
use crate::{
    Result, at,
    plugin::{self, Profile},
    random::Random,
    root, say,
};

/// The size that the large store is compared with.
const SMALL: usize = 10_000;

/// How often each process runs.
const RUNS: usize = 7;

/// Measure commands, hooks, the index and the viewer's pages at 10,000 notes and at a larger number
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of notes in the large store
    #[arg(long, default_value_t = 100_000)]
    notes: usize,
    /// Measure this program instead of the release build
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Measure the viewer's pages only: the first answer, later ones, and those after an edit
    #[arg(long)]
    pages: bool,
    /// Keep the stores in this folder, and use those that it has
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Also measure the pages of this program, and print both side by side
    #[arg(long, value_name = "PATH", requires = "pages")]
    baseline: Option<PathBuf>,
}

/// The figures of a store: what was measured, and the value with its unit.
pub(super) type Column = Vec<(String, String)>;

/// Runs `cargo xtask scale`.
pub fn run(arguments: &Arguments) -> Result {
    let absolute = |path: &PathBuf| dunce::canonicalize(path).map_err(at(path));
    let program = plugin::given_or_built(&root(), arguments.binary.as_ref(), Profile::Release)?;
    let baseline = arguments.baseline.as_ref().map(absolute).transpose()?;
    // As in `bench`.
    let folder = tempfile::Builder::new()
        .prefix("anamnesis-scale-")
        .tempdir()?;
    let mut stage = Stage::build(folder.path(), &program)?;
    if let Some(kept) = &arguments.keep {
        fs::create_dir_all(kept).map_err(at(kept))?;
        stage.homes = absolute(kept)?;
    }
    let mut columns = Vec::new();
    let mut sizes = vec![SMALL, arguments.notes];
    sizes.dedup();
    for notes in sizes {
        let name = format!("scale-{notes}");
        let title = store(&stage, &name, notes)?;
        let mut column = if arguments.pages {
            Column::new()
        } else {
            column(&stage, &name, &title)?
        };
        say("pages");
        column.extend(viewer::column(&stage, &name, &title, &program)?);
        columns.push((grouped(notes), column));
        if let Some(program) = &baseline {
            let column = viewer::column(&stage, &name, &title, program)?;
            columns.push((format!("{}, baseline", grouped(notes)), column));
        }
    }
    let _ = io::stdout().write_all(table(&columns).as_bytes());
    Ok(())
}

/// Makes a store of notes, sessions and commits, unless it is there from an earlier run. Returns the
/// title of one of its notes.
fn store(stage: &Stage<'_>, name: &str, notes: usize) -> Result<String> {
    let finished = stage.home(name).join("title");
    if let Ok(title) = fs::read_to_string(&finished) {
        return Ok(title);
    }
    say(&format!("making {} notes", grouped(notes)));
    let title = corpus::write_notes(&stage.store_folder(name), notes, &stage.words)?;
    viewer::prepare(stage, name)?;
    fs::write(&finished, &title).map_err(at(&finished))?;
    Ok(title)
}

/// Puts the columns side by side. All have the same rows.
fn table(columns: &[(String, Column)]) -> String {
    let mut lines = vec![String::new(); columns.first().map_or(0, |(_, rows)| rows.len()) + 1];
    for (place, line) in lines.iter_mut().enumerate() {
        let name = |rows: &Column| rows.get(place.checked_sub(1)?).map(|row| row.0.clone());
        let name = columns.first().and_then(|(_, rows)| name(rows));
        let _ = write!(line, "{:44.44}", name.unwrap_or_default());
        for (title, rows) in columns {
            let value = match place.checked_sub(1) {
                Some(place) => rows.get(place).map_or("", |row| row.1.as_str()),
                None => title,
            };
            let _ = write!(line, " {value:>36}");
        }
    }
    lines.join("\n") + "\n"
}

fn column(stage: &Stage<'_>, name: &str, title: &str) -> Result<Column> {
    let folder = stage.store_folder(name);
    let files = note_files(&folder)?;
    let mut text = 0;
    for file in &files {
        text += fs::metadata(file).map_err(at(file))?.len();
    }
    say("reindex");
    let (reindexed, _) = stage.direct(name, &["reindex"]).once()?;
    let index = fs::metadata(Home::new(&folder).index())?.len();
    let mut column: Vec<(&str, String)> = vec![
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
    let search = stage.direct(name, &["search", title]);
    let mut random = Random::new(7);
    let nothing: fn(&[PathBuf], &mut Random) -> Result = |_, _| Ok(());
    let edit: fn(&[PathBuf], &mut Random) -> Result =
        |files, random| change_notes(files, 10, random);
    for (measured, run, before) in [
        ("status", stage.direct(name, &["status"]), nothing),
        ("list", stage.direct(name, &["list"]), nothing),
        ("search", search.clone(), nothing),
        ("search after 10 edits in place", search, edit),
        (
            "deferred process after 10 edits in place",
            stage.direct(name, &["work"]),
            edit,
        ),
        ("session start", stage.hook(name, &start), nothing),
        ("prompt", stage.hook(name, &prompt), nothing),
    ] {
        let mut times = Vec::new();
        for number in 0..RUNS {
            before(&files, &mut random)?;
            times.push(once(&run, number)?);
        }
        column.push((measured, milliseconds(times)));
    }
    let doctor = stage.direct(name, &["doctor"]);
    // It exits with 3, because the plugin is not installed here.
    let (sample, ..) = doctor.to_end()?;
    column.push(("doctor", seconds(sample.wall)));
    let first = server::first_search(&stage.home(name), &folder, &stage.binary)?;
    column.push(("first search of a server", milliseconds(vec![first])));
    let rows = column.into_iter();
    Ok(rows.map(|(name, value)| (name.to_owned(), value)).collect())
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

pub(super) fn milliseconds(times: Vec<Duration>) -> String {
    let median = Spread::from_times(times.into_iter()).median;
    format!("{:.1} ms", 1e3 * median.as_secs_f64())
}
