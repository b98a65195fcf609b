//! Measures sync, compared with git and, if available, with the Python version.
//!
//! Two machines share a bare repository in a folder. In the same round, two plain clones of another
//! repository run `git fetch` and `git push` only. The result is the time beyond git's. A round is:
//! nothing new, ten changed notes pushed, the same ten pulled elsewhere.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::corpus::{self, Words};
use super::measure::{Run, Spread};
use super::{Budget, aligned, budget_text, grouped, micros, milliseconds, on_path, ratio, verdict};
use crate::{Result, at, cargo, python_version, random::Random, say};

/// Number of notes that change between two syncs.
const CHANGED: usize = 10;

/// The durations of syncs, and their time beyond git's.
pub(super) struct Report {
    cases: Vec<Case>,
    /// The duration of one merge of two notes.
    merge: Duration,
    /// The reason why the Python version has no figures.
    no_python: Option<String>,
}

/// The maximum duration of a merge of two notes.
const MERGE_BUDGET: Duration = Duration::from_millis(1);

/// Number of rounds with the Python version, whose sync takes most of a minute.
const PYTHON_ROUNDS: usize = 3;

/// A kind of sync with its times in all rounds.
struct Case {
    name: String,
    /// The maximum time beyond git's.
    budget: Option<Duration>,
    ours: Vec<Duration>,
    git: Vec<Duration>,
    python: Vec<Duration>,
}

impl Case {
    fn new(name: &str, notes: usize, budget: Option<u64>) -> Self {
        Self {
            name: format!("{name}, {} notes", grouped(notes)),
            budget: budget.map(Duration::from_millis),
            ours: Vec::new(),
            git: Vec::new(),
            python: Vec::new(),
        }
    }

    fn beyond_git(&self) -> Duration {
        let median = |times: &[Duration]| Spread::from_times(times.iter().copied()).median;
        median(&self.ours).saturating_sub(median(&self.git))
    }

    fn is_over(&self) -> Option<bool> {
        self.budget.map(|most| self.beyond_git() > most)
    }
}

/// Measures sync in all rounds.
pub(super) fn measure(
    root: &Path,
    folder: &Path,
    program: &Path,
    is_quick: bool,
) -> Result<Report> {
    let notes = if is_quick { 1_000 } else { 10_000 };
    let rounds = if is_quick { 6 } else { 30 };
    let python = python_version::install(root);
    let no_python = python.as_ref().err().cloned();
    let fleet = Fleet::new(folder, program, python.ok(), notes)?;
    let mut cases = [
        Case::new("sync, nothing new", notes, Some(60)),
        Case::new("sync, 10 changed here", notes, Some(150)),
        Case::new("sync, 10 changed elsewhere", notes, Some(150)),
    ];
    let mut random = Random::new(11);
    for round in 0..rounds {
        fleet.round(&mut cases, &mut random, round < PYTHON_ROUNDS)?;
        say(&format!("sync: round {} of {rounds}", round + 1));
    }
    Ok(Report {
        cases: cases.into(),
        merge: merge(root)?,
        no_python,
    })
}

/// Measures a merge in a release build of the library, because this program may be a debug build.
fn merge(root: &Path) -> Result<Duration> {
    let mut bench = cargo(root);
    bench.args([
        "bench",
        "--quiet",
        "--package",
        "anamnesis-note",
        "--bench",
        "merge",
    ]);
    let output = bench.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("cargo bench: {}", output.status).into());
    }
    let nanoseconds = String::from_utf8_lossy(&output.stdout).trim().parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// The machines of one user and the clones for comparison.
struct Fleet {
    folder: PathBuf,
    program: PathBuf,
    python: Option<PathBuf>,
    git: PathBuf,
    /// The notes of the machine, the clone and the Python version that make changes.
    laptop_notes: Vec<PathBuf>,
    plain_notes: Vec<PathBuf>,
    python_notes: Vec<PathBuf>,
}

impl Fleet {
    fn new(folder: &Path, program: &Path, python: Option<PathBuf>, notes: usize) -> Result<Self> {
        let folder = folder.join("sync");
        fs::create_dir_all(folder.join("home")).map_err(at(&folder))?;
        // git's automatic gc would distort single runs.
        let wishes = "[user]\n\tname = bench\n\temail = bench@example.com\n[gc]\n\tauto = 0\n";
        fs::write(folder.join("home/.gitconfig"), wishes).map_err(at(&folder))?;
        let mut fleet = Self {
            git: on_path("git")?,
            program: program.to_path_buf(),
            folder,
            python,
            laptop_notes: Vec::new(),
            plain_notes: Vec::new(),
            python_notes: Vec::new(),
        };
        say(&format!("making machines with {} notes", grouped(notes)));
        let words = Words::new();
        fleet.machine("laptop", "shared.git")?;
        fleet.laptop_notes = fleet.notes("laptop", notes, &words)?;
        fleet.ours("laptop", &["reindex"])?;
        fleet.ours("laptop", &["sync"])?;
        fleet.machine("desktop", "shared.git")?;
        fleet.ours("desktop", &["sync"])?;
        fleet.git(
            "",
            &["clone", "--quiet", "--bare", "shared.git", "plain.git"],
        )?;
        for clone in ["pushing", "fetching"] {
            fleet.git("", &["clone", "--quiet", "plain.git", clone])?;
        }
        let pushing = fleet.folder.join("pushing");
        fleet.plain_notes = corpus::note_files_in(&pushing)?;
        if let Some(python) = &fleet.python {
            fleet.machine("python", "python.git")?;
            fleet.python_notes = fleet.notes("python", notes, &words)?;
            fleet.run(python, "python", &["sync"])?;
        }
        Ok(fleet)
    }

    /// Creates an empty store with a remote.
    fn machine(&self, name: &str, remote: &str) -> Result {
        let path = self.folder.join(remote);
        if !path.exists() {
            self.git(
                "",
                &["init", "--quiet", "--bare", "--initial-branch=main", remote],
            )?;
        }
        let config = json!({ "machine_id": name, "remote": path });
        let store = self.folder.join(name);
        fs::create_dir_all(&store).map_err(at(&store))?;
        fs::write(store.join("config.json"), config.to_string()).map_err(at(&store))
    }

    fn notes(&self, name: &str, count: usize, words: &Words) -> Result<Vec<PathBuf>> {
        let store = self.folder.join(name);
        corpus::write_notes(&store, count, words)?;
        corpus::note_files(&store)
    }

    fn round(&self, cases: &mut [Case; 3], random: &mut Random, with_python: bool) -> Result {
        let python = self.python.as_deref().filter(|_| with_python);
        let [nothing, here, elsewhere] = cases;
        nothing.ours.push(self.ours("laptop", &["sync"])?);
        let fetch = ["fetch", "--quiet", "origin", "main"];
        let fetched_nothing = self.git("pushing", &fetch)?;
        nothing.git.push(fetched_nothing);
        if let Some(python) = python {
            nothing.python.push(self.run(python, "python", &["sync"])?);
        }

        corpus::change_notes(&self.laptop_notes, CHANGED, random)?;
        here.ours.push(self.ours("laptop", &["sync"])?);
        corpus::change_notes(&self.plain_notes, CHANGED, random)?;
        self.git(
            "pushing",
            &["commit", "--quiet", "--all", "--message=bench"],
        )?;
        let pushed = self.git("pushing", &["push", "--quiet", "origin", "main"])?;
        here.git.push(fetched_nothing + pushed);
        if let Some(python) = python {
            corpus::change_notes(&self.python_notes, CHANGED, random)?;
            here.python.push(self.run(python, "python", &["sync"])?);
        }

        elsewhere.ours.push(self.ours("desktop", &["sync"])?);
        elsewhere.git.push(self.git("fetching", &fetch)?);
        Ok(())
    }

    fn ours(&self, machine: &str, arguments: &[&str]) -> Result<Duration> {
        self.run(&self.program, machine, arguments)
    }

    fn run(&self, program: &Path, machine: &str, arguments: &[&str]) -> Result<Duration> {
        let (sample, said) = Run {
            environment: self.environment(machine),
            ..Run::new(program, &self.folder, arguments)
        }
        .once()?;
        // Only `sync` prints this.
        if arguments == ["sync"] && !said.contains("(synced)") {
            return Err(format!("{machine}: not synced: {said}").into());
        }
        Ok(sample.wall)
    }

    fn git(&self, folder: &str, arguments: &[&str]) -> Result<Duration> {
        let run = Run {
            environment: self.environment("none"),
            ..Run::new(&self.git, &self.folder.join(folder), arguments)
        };
        Ok(run.once()?.0.wall)
    }

    fn environment(&self, machine: &str) -> Vec<(&'static str, OsString)> {
        vec![
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("LANG", "C.UTF-8".into()),
            ("HOME", self.folder.join("home").into()),
            ("ANAMNESIS_HOME", self.folder.join(machine).into()),
            ("ANAMNESIS_MACHINE_ID", machine.into()),
        ]
    }
}

impl Report {
    /// Formats the report for people.
    pub(super) fn table(&self) -> String {
        let titles = [
            "",
            "runs",
            "min",
            "median",
            "p95",
            "git",
            "ours − git",
            "Python",
            "÷ ours",
            "budget",
            "",
        ];
        let mut lines = vec![titles.map(str::to_owned)];
        for case in &self.cases {
            let ours = Spread::from_times(case.ours.iter().copied());
            let git = Spread::from_times(case.git.iter().copied());
            let python = Spread::from_times(case.python.iter().copied()).median;
            let budget = Budget {
                wall: case.budget,
                ..Budget::NONE
            };
            let (python, times) = if case.python.is_empty() {
                (String::new(), String::new())
            } else {
                (milliseconds(python), ratio(python, Some(ours.median)))
            };
            let over = case
                .is_over()
                .map(|is_over| if is_over { vec!["time"] } else { vec![] });
            lines.push([
                case.name.clone(),
                case.ours.len().to_string(),
                milliseconds(ours.least),
                milliseconds(ours.median),
                milliseconds(ours.p95),
                milliseconds(git.median),
                milliseconds(case.beyond_git()),
                python,
                times,
                format!("git + {}", budget_text(budget)),
                verdict(over.as_deref()),
            ]);
        }
        let mut text = String::from(
            "Sync, whole processes, in milliseconds. git is `git fetch` and `git push` of the same \
             changes. Python is the Python version on the same notes.\n\n",
        );
        text.push_str(&aligned(&lines));
        if let Some(reason) = &self.no_python {
            let _ = writeln!(text, "no figures for the Python version: {reason}");
        }
        let merge = self.merge;
        let verdict = if merge > MERGE_BUDGET { "over" } else { "ok" };
        let _ = writeln!(
            text,
            "merge of two notes of 3.5 kB: {} ns, budget {} ns: {verdict}",
            merge.as_nanos(),
            MERGE_BUDGET.as_nanos(),
        );
        text
    }

    /// Formats the report for scripts. Times are microseconds.
    pub(super) fn as_json(&self) -> Value {
        let median = |times: &[Duration]| {
            let spread = Spread::from_times(times.iter().copied());
            (!times.is_empty()).then(|| micros(spread.median))
        };
        let cases: Vec<Value> = self
            .cases
            .iter()
            .map(|case| {
                json!({
                    "name": case.name, "runs": case.ours.len(), "median": median(&case.ours),
                    "git": median(&case.git), "beyond_git": micros(case.beyond_git()),
                    "python": median(&case.python), "budget": case.budget.map(micros),
                    "over": case.is_over(),
                })
            })
            .collect();
        json!({ "cases": cases, "merge_nanoseconds": self.merge.as_nanos().to_string() })
    }
}
