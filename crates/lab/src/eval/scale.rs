//! Measures how search and refresh times grow with the store.
//!
//! Notes are generated with realistic word frequencies. Each question opens the index, searches
//! once and closes it, as a hook does.

use std::{
    fs,
    io::{self, Write as _},
    time::{Duration, Instant},
};

use anamnesis_recall::rank::{Mask, Query, rank};
use anamnesis_store::{fs::home::Home, index::Index, notes::Notes};
use rusqlite::Connection;

use crate::{
    Result,
    bench::corpus::{Words, change_notes, note_files, write_notes},
    random::Random,
};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// Number of questions of each kind.
const QUESTIONS: usize = 25;

/// Number of notes that change before a refresh.
const CHANGED: usize = 10;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Lengths of questions in characters: a few words, a paragraph, a pasted file.
const LENGTHS: [usize; 3] = [60, 240, 1_000_000];

pub(super) fn run(largest: usize) -> Result {
    let mut out = io::stdout().lock();
    let words = Words::new();
    writeln!(
        out,
        "   notes  build s  refresh ms    MiB  of it lists |  short ms |   long ms |   1 MB ms"
    )?;
    for size in SIZES.into_iter().filter(|size| *size <= largest) {
        let folder = tempfile::tempdir()?;
        let home = Home::new(folder.path());
        home.create()?;
        write_notes(folder.path(), size, &words)?;
        let notes = Notes::new(home.clone(), TIMEOUT);
        let begun = Instant::now();
        let mut index = Index::rebuild(&home, &notes, TIMEOUT)?;
        let build = begun.elapsed();
        let mut random = Random::new(5);
        change_notes(&note_files(folder.path())?, CHANGED, &mut random)?;
        let begun = Instant::now();
        index.refresh(&notes)?;
        let refresh = begun.elapsed();
        drop(index);
        let lists: i64 = Connection::open(home.index())?.query_row(
            "SELECT sum(length(term) + length(notes)) FROM dictionary JOIN posting ON number = posting",
            [],
            |row| row.get(0),
        )?;
        write!(
            out,
            "{size:8} {:8.2} {:11.1} {:6.1} {:12.1}",
            build.as_secs_f64(),
            1e3 * refresh.as_secs_f64(),
            mebibytes(fs::metadata(home.index())?.len()),
            mebibytes(lists.unsigned_abs()),
        )?;
        for length in LENGTHS {
            let mut own = Vec::new();
            for _ in 0..QUESTIONS {
                let question = words.text(&mut random, length);
                own.push(timed(|| ask(&home, &question))?);
            }
            write!(out, " | {:9.2}", median(own))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn timed(ask: impl FnOnce() -> Result) -> Result<Duration> {
    let begun = Instant::now();
    ask()?;
    Ok(begun.elapsed())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    1e3 * times
        .get(times.len() / 2)
        .map_or(0.0, Duration::as_secs_f64)
}

fn ask(home: &Home, question: &str) -> Result {
    let mask = Mask {
        with_global: true,
        with_others: true,
        only_surfacing: true,
        ..Mask::default()
    };
    rank(&Index::open(home)?, &Query::parse(question), &mask, 3)?;
    Ok(())
}
