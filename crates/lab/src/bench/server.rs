//! Measures the MCP server: its first answer, a thousand searches, and its memory, compared with
//! the Python version's server on the same notes.

use std::{
    ffi::OsString,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::corpus::{self, Words};
use super::measure::{Run, Spread};
use super::{MIB, aligned, grouped, mebibytes, micros, milliseconds, verdict};
use anamnesis_testkit::home::trust_store;

use crate::{Result, at, mcp_client::Client, python_version, say};

/// Number of searches. The Python version is slower and gets fewer.
const SEARCHES: usize = 1_000;
const PYTHON_SEARCHES: usize = 50;

/// Number of searches before the first measurement of memory, when everything has been used once.
const EARLY: usize = 100;

/// The maximum growth of memory from a hundred searches to a thousand.
const GROWTH: u64 = MIB;

/// The limits of a server.
#[derive(Debug, Clone, Copy)]
struct Budget {
    first: Duration,
    search: Duration,
    idle: u64,
}

/// The figures of one server.
struct Served {
    name: String,
    /// The time from its start to the answer of its first search.
    first: Duration,
    searches: Vec<Duration>,
    /// Memory in bytes: before the first search, after [`EARLY`] searches, after all.
    idle: u64,
    early: u64,
    late: u64,
    budget: Option<Budget>,
}

impl Served {
    fn over(&self) -> Option<Vec<&'static str>> {
        let budget = self.budget?;
        let median = Spread::from_times(self.searches.iter().copied()).median;
        let checks = [
            ("first answer", self.first > budget.first),
            ("time", median > budget.search),
            ("memory", self.idle > budget.idle),
            ("growth", self.late > self.early + GROWTH),
        ];
        let over = checks.iter().filter(|(_, is_over)| *is_over);
        Some(over.map(|(name, _)| *name).collect())
    }
}

/// The figures of all servers.
pub(super) struct Report {
    served: Vec<Served>,
    /// The reason why the Python version has no figures.
    no_python: Option<String>,
}

/// Measures all servers.
pub(super) fn measure(
    root: &Path,
    folder: &Path,
    program: &Path,
    is_quick: bool,
) -> Result<Report> {
    let sizes: [(usize, u64); 2] = if is_quick {
        [(100, 10), (1_000, 10)]
    } else {
        [(10_000, 10), (100_000, 50)]
    };
    let words = Words::new();
    let mut served = Vec::new();
    for (size, search) in sizes {
        let stage = Stage::new(folder, &format!("served-{size}"), size, &words)?;
        stage.reindex(program)?;
        say(&format!("server: {} notes", grouped(size)));
        let budget = Budget {
            first: Duration::from_millis(100),
            search: Duration::from_millis(search),
            idle: 24 * MIB,
        };
        let name = format!("server, {} notes", grouped(size));
        served.push(stage.serve(program, name, SEARCHES, Some(budget))?);
    }
    let python = python_version::install(root);
    if let Ok(python) = &python {
        let (size, _) = sizes[0];
        let stage = Stage::new(folder, "served-python", size, &words)?;
        stage.reindex(python)?;
        say("server: the Python version");
        let name = format!("Python version, {} notes", grouped(size));
        served.push(stage.serve(python, name, PYTHON_SEARCHES, None)?);
    }
    Ok(Report {
        served,
        no_python: python.err(),
    })
}

/// Returns the time from the start of a server to the answer of its first search. The store has an
/// index.
pub(super) fn first_search(home: &Path, store: &Path, program: &Path) -> Result<Duration> {
    let stage = Stage {
        folder: home,
        store: store.to_path_buf(),
        questions: vec!["the request of the client".to_owned()],
    };
    Ok(stage.serve(program, String::new(), 1, None)?.first)
}

/// A store and the questions to ask.
struct Stage<'a> {
    folder: &'a Path,
    store: PathBuf,
    questions: Vec<String>,
}

impl<'a> Stage<'a> {
    fn new(folder: &'a Path, name: &str, notes: usize, words: &Words) -> Result<Self> {
        let store = folder.join(name);
        trust_store(folder).map_err(at(folder))?;
        corpus::write_notes(&store, notes, words)?;
        let mut questions = Vec::new();
        for path in corpus::note_files(&store)?.iter().take(SEARCHES) {
            let text = fs::read_to_string(path).map_err(at(path))?;
            let title = text.lines().find_map(|line| line.strip_prefix("title: "));
            questions.extend(title.map(|title| title.trim_matches('\'').to_owned()));
        }
        Ok(Self {
            folder,
            store,
            questions,
        })
    }

    fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("LANG", "C.UTF-8".into()),
            ("HOME", self.folder.into()),
            ("ANAMNESIS_HOME", self.store.clone().into()),
            ("ANAMNESIS_MACHINE_ID", "bench".into()),
        ]
    }

    fn reindex(&self, program: &Path) -> Result {
        let run = Run {
            environment: self.environment(),
            ..Run::new(program, self.folder, &["reindex"])
        };
        run.once().map(drop)
    }

    fn serve(
        &self,
        program: &Path,
        name: String,
        searches: usize,
        budget: Option<Budget>,
    ) -> Result<Served> {
        let began = Instant::now();
        let mut client = start(program, self)?;
        let idle = client.memory();
        let mut served = Served {
            name,
            first: Duration::ZERO,
            searches: Vec::new(),
            idle,
            early: 0,
            late: 0,
            budget,
        };
        for (number, question) in self.questions.iter().cycle().take(searches).enumerate() {
            let asked = Instant::now();
            search(&mut client, question)?;
            match number {
                0 => served.first = began.elapsed(),
                _ => served.searches.push(asked.elapsed()),
            }
            if number + 1 == EARLY.min(searches) {
                served.early = client.memory();
            }
        }
        served.late = client.memory();
        client.end()?;
        Ok(served)
    }
}

/// Starts our server.
fn start(program: &Path, stage: &Stage<'_>) -> Result<Client> {
    let mut command = Command::new(program);
    command
        .arg("serve")
        .env_clear()
        .envs(stage.environment())
        .current_dir(stage.folder);
    Client::start(&mut command)
}

fn search(client: &mut Client, question: &str) -> Result {
    let answer = client.call("memory_search", &json!({ "query": question }))?;
    let found = &answer["structuredContent"]["result"];
    if found.as_array().is_some_and(|found| !found.is_empty()) {
        Ok(())
    } else {
        Err(format!("{question}: nothing found: {answer}").into())
    }
}

impl Report {
    /// Formats the report for people.
    pub(super) fn table(&self) -> String {
        let titles = [
            "",
            "searches",
            "first",
            "median",
            "p95",
            "idle",
            "after 100",
            "after all",
            "budget",
            "",
        ];
        let mut lines = vec![titles.map(str::to_owned)];
        for served in &self.served {
            let spread = Spread::from_times(served.searches.iter().copied());
            let budget = served.budget.map_or_else(String::new, |budget| {
                let (first, search) = (budget.first.as_millis(), budget.search.as_millis());
                format!(
                    "first {first} ms, {search} ms, {} MiB idle",
                    budget.idle / MIB
                )
            });
            lines.push([
                served.name.clone(),
                (served.searches.len() + 1).to_string(),
                milliseconds(served.first),
                milliseconds(spread.median),
                milliseconds(spread.p95),
                mebibytes(served.idle),
                mebibytes(served.early),
                mebibytes(served.late),
                budget,
                verdict(served.over().as_deref()),
            ]);
        }
        let mut text = String::from(
            "The server: time from its start to its first answer, then per search, in milliseconds. \
             Memory is in MiB.\n\n",
        );
        text.push_str(&aligned(&lines));
        if let Some(reason) = &self.no_python {
            let _ = writeln!(text, "no figures for the Python version: {reason}");
        }
        text
    }

    /// Formats the report for scripts. Times are microseconds, sizes are bytes.
    pub(super) fn as_json(&self) -> Value {
        let served = self.served.iter().map(|served| {
            let spread = Spread::from_times(served.searches.iter().copied());
            json!({
                "name": served.name, "searches": served.searches.len() + 1,
                "first": micros(served.first), "median": micros(spread.median),
                "p95": micros(spread.p95), "idle": served.idle, "early": served.early,
                "late": served.late, "over": served.over(),
            })
        });
        served.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_limit_is_compared_with_its_own_figure() {
        let served = |first, search, idle: u64, late: u64| Served {
            name: String::new(),
            first: Duration::from_millis(first),
            searches: vec![Duration::from_millis(search)],
            idle: idle * MIB,
            early: 10 * MIB,
            late: late * MIB,
            budget: Some(Budget {
                first: Duration::from_millis(100),
                search: Duration::from_millis(10),
                idle: 24 * MIB,
            }),
        };
        assert_eq!(served(100, 10, 24, 11).over(), Some(vec![]));
        assert_eq!(served(101, 10, 24, 10).over(), Some(vec!["first answer"]));
        assert_eq!(
            served(1, 11, 25, 12).over(),
            Some(vec!["time", "memory", "growth"])
        );
    }
}
