//! Measures the duration and memory of whole processes, compared with an empty program and git.
//!
//! All inputs are created for the run: the release build, the plugin's tree, stores of several
//! sizes, transcripts. The cases take turns, so that a busy period of the machine affects all of
//! them. Budgets are printed beside the figures and never asserted, because a machine may be slow.
//! See `docs/performance.md` for results.

pub(crate) mod corpus;
pub mod cost;
mod measure;
pub mod scale;
mod server;
mod sync;
mod viewer;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    Result, at,
    plugin::{self, Binary, Options, Profile},
    random::Random,
    root, run as run_command, say, target_folder,
};

use self::corpus::Words;
use self::measure::{Run, Sample, Spread};

const MIB: u64 = 1024 * 1024;

/// The maximum size of the stripped binary, in bytes.
const BINARY_BUDGET: u64 = 12 * MIB;

/// How much more memory a long transcript may take than a short one.
const MEMORY_SLACK: u64 = 2 * MIB;

/// Time for the deferred process to end before the next run.
const PAUSE: Duration = Duration::from_millis(40);

/// Number of rounds between two runs of the deferred process.
///
/// The write-ahead log must stay below the size at which a hook starts that process itself. The
/// process is locked out, so every later hook would try to start it.
const ROUNDS_PER_WORK: usize = 4;

/// The program that the client runs, relative to the plugin's folder.
const LAUNCHER: &str = "bin/anamnesis";

/// The sign of a hook that injects nothing.
const NOTHING: &str = "{}";

/// Number of sessions before the installation.
const PAST: usize = 1_000;

/// The number of realistic notes.
const REALISTIC: usize = 236;

/// The number of generated notes in the store whose rarer cases are measured, too.
const MAIN: usize = 10_000;

/// The session whose events are recorded. Every store contains it.
const SESSION: &str = "one-session";

/// Measure time and memory of the release build against the budgets
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Use small stores and few runs
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Measure this program instead of the release build
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Measure session starts and prompts only
    #[arg(long, group = "part")]
    recall: bool,
    /// Also measure this program, in stores of its own, and print both side by side. Can be repeated
    #[arg(long, value_name = "PATH", requires = "recall")]
    baseline: Vec<PathBuf>,
    /// Measure sync only
    #[arg(long, group = "part")]
    sync: bool,
    /// Measure the MCP server only
    #[arg(long, group = "part")]
    server: bool,
}

/// The limits of a case.
#[derive(Debug, Clone, Copy, Default)]
struct Budget {
    /// Limit of the median.
    wall: Option<Duration>,
    p95: Option<Duration>,
    /// Processor time as a multiple of `git --version`.
    cpu_to_git: Option<u32>,
    peak: Option<u64>,
}

impl Budget {
    const NONE: Self = Self {
        wall: None,
        p95: None,
        cpu_to_git: None,
        peak: None,
    };

    const fn wall(milliseconds: u64) -> Self {
        Self {
            wall: Some(Duration::from_millis(milliseconds)),
            ..Self::NONE
        }
    }
}

/// Preparation of a run, which is not measured.
#[derive(Clone)]
enum Before {
    Nothing,
    /// Wait for the previous run's deferred process.
    Pause,
    /// Change ten of these notes.
    ChangeNotes(Vec<PathBuf>),
    /// Delete this store.
    Forget(PathBuf),
}

/// A case with its samples.
#[derive(Clone)]
struct Case {
    name: String,
    run: Run,
    budget: Budget,
    before: Before,
    /// Runs in every `every`th round.
    every: usize,
    /// A text that the output contains if the program did what is measured.
    sign: &'static str,
    samples: Vec<Sample>,
}

impl Case {
    fn new(name: impl Into<String>, run: Run, sign: &'static str) -> Self {
        Self {
            name: name.into(),
            run,
            budget: Budget::default(),
            before: Before::Nothing,
            every: 1,
            sign,
            samples: Vec::new(),
        }
    }

    /// Runs the case once. Each `number` makes a new session.
    fn once(&self, number: usize, random: &mut Random) -> Result<Sample> {
        match &self.before {
            Before::Pause => thread::sleep(PAUSE),
            Before::ChangeNotes(notes) => corpus::change_notes(notes, 10, random)?,
            Before::Forget(store) if store.exists() => {
                fs::remove_dir_all(store).map_err(at(store))?;
            }
            Before::Nothing | Before::Forget(_) => {}
        }
        let mut run = self.run.clone();
        run.stdin = run.stdin.replace("SESSION", &format!("bench-{number}"));
        let (sample, output) = run.once()?;
        let is_done = match self.sign {
            // Version 0.1 answers with other fields when it injects nothing.
            NOTHING => !output.contains("additionalContext"),
            sign => output.contains(sign),
        };
        if is_done {
            Ok(sample)
        } else {
            Err(format!("{}: unexpected output: {output}", self.name).into())
        }
    }
}

/// The figures of a case.
struct Row {
    name: String,
    runs: usize,
    wall: Spread,
    cpu: Spread,
    peak: u64,
    budget: Budget,
}

/// Runs `cargo xtask bench`.
pub fn run(root: &Path, arguments: &Arguments) -> Result {
    let absolute = |path: &PathBuf| dunce::canonicalize(path).map_err(at(path));
    let program = plugin::given_or_built(root, arguments.binary.as_ref(), Profile::Release)?;
    let binary_length = fs::metadata(&program).map_err(at(&program))?.len();
    let target = target_folder(root).join("bench");
    fs::create_dir_all(&target).map_err(at(&target))?;
    // Outside the checkout: a hook does not trust a home folder inside its project's repository.
    let folder = tempfile::Builder::new()
        .prefix("anamnesis-bench-")
        .tempdir()?;
    let machine = machine();
    let mut text = String::new();
    let mut report = json!({ "machine": machine });
    let is_all = !arguments.recall && !arguments.sync && !arguments.server;
    if is_all || arguments.recall {
        let stage = Stage::build(folder.path(), &program)?;
        let (mut cases, stores) = if is_all {
            stage.cases(arguments.quick)?
        } else {
            stage.recall_cases(arguments.quick)?
        };
        let mut stages = vec![(&stage, stores)];
        let mut others = Vec::new();
        for program in &arguments.baseline {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            let folder = folder.path().join(format!("baseline-{}", others.len()));
            others.push((name, folder, absolute(program)?));
        }
        let others = (others.iter().rev())
            .map(|(name, folder, program)| Ok((name, Stage::build(folder, program)?)))
            .collect::<Result<Vec<_>>>()?;
        for (name, stage) in &others {
            let (theirs, stores) = stage.recall_cases(arguments.quick)?;
            cases = beside(cases, theirs, name);
            stages.push((stage, stores));
        }
        let rounds = if arguments.quick { 12 } else { 60 };
        take_turns(&stages, &mut cases, rounds)?;
        let rows: Vec<Row> = cases.iter().map(sum_up).collect();
        text.push_str(&table(&rows, binary_length));
        text.push('\n');
        report["binary"] = json!(binary_length);
        report["rows"] = as_json(&rows);
    }
    let path = target.join("report.txt");
    // The rest takes long, so the first part of the report is written now.
    fs::write(&path, &text).map_err(at(&path))?;
    // Server and sync are measured last, because they make this process larger, and no child's peak
    // is below its parent's size.
    if is_all || arguments.server {
        let server = server::measure(root, folder.path(), &program, arguments.quick)?;
        text.push_str(&server.table());
        report["server"] = server.as_json();
        text.push('\n');
        fs::write(&path, &text).map_err(at(&path))?;
    }
    if is_all || arguments.sync {
        let sync = sync::measure(root, folder.path(), &program, arguments.quick)?;
        text.push_str(&sync.table());
        report["sync"] = sync.as_json();
    }
    let _ = writeln!(text, "\n{machine}");
    fs::write(&path, &text).map_err(at(&path))?;
    let printed = if arguments.json {
        format!("{report:#}\n")
    } else {
        text
    };
    // A closed pipe is not an error, because the report is in its file.
    let _ = io::stdout().write_all(printed.as_bytes());
    Ok(())
}

/// Runs the cases in turn, after one run of each that fills the file cache.
fn take_turns(stages: &[(&Stage, Vec<Store>)], cases: &mut [Case], rounds: usize) -> Result {
    let mut random = Random::new(5);
    for (number, case) in cases.iter().enumerate() {
        case.once(1_000_000 + number, &mut random)?;
    }
    for round in 0..rounds {
        if round % ROUNDS_PER_WORK == 0 {
            for (stage, stores) in stages {
                for store in stores {
                    stage.fold_in(store)?;
                }
            }
        }
        for step in 0..cases.len() {
            // Every other round backwards: of two programs, the second finds warmer caches.
            let last = cases.len() - 1;
            let number = if round % 2 == 0 { step } else { last - step };
            let case = &mut cases[number];
            if round % case.every == 0 {
                let sample = case.once(round * 1_000 + number, &mut random)?;
                case.samples.push(sample);
            }
        }
        say(&format!("round {} of {rounds}", round + 1));
    }
    Ok(())
}

/// Puts the cases of another program right after the same cases of this one.
fn beside(cases: Vec<Case>, mut others: Vec<Case>, program: &str) -> Vec<Case> {
    let both = cases.into_iter().flat_map(|case| {
        let is_same = |other: &Case| other.name == case.name;
        let is_hook = case.run.program.ends_with(LAUNCHER);
        let place = others.iter().position(is_same).filter(|_| is_hook);
        let other = place.map(|place| {
            let other = others.remove(place);
            Case {
                name: format!("{}, {program}", other.name),
                budget: Budget::NONE,
                ..other
            }
        });
        iter::once(case).chain(other).collect::<Vec<_>>()
    });
    both.collect()
}

fn sum_up(case: &Case) -> Row {
    Row {
        name: case.name.clone(),
        runs: case.samples.len(),
        wall: Spread::from_times(case.samples.iter().map(|sample| sample.wall)),
        cpu: Spread::from_times(case.samples.iter().map(|sample| sample.cpu)),
        peak: case
            .samples
            .iter()
            .map(|sample| sample.peak)
            .max()
            .unwrap_or(0),
        budget: case.budget,
    }
}

/// A store for hooks. Holding the lock keeps the deferred process from running during a
/// measurement.
struct Store {
    name: String,
    /// The title of one of the project's notes.
    title: String,
    lock: File,
}

/// The environment of all cases: a home, the installed plugin, a project, transcripts.
struct Stage<'a> {
    folder: &'a Path,
    /// The folder of the stores, each in a home folder.
    homes: PathBuf,
    binary: PathBuf,
    launcher: PathBuf,
    empty: PathBuf,
    project: PathBuf,
    words: Words,
}

impl<'a> Stage<'a> {
    fn build(folder: &'a Path, program: &Path) -> Result<Self> {
        let tree = folder.join("plugin");
        plugin::assemble(&Options {
            root: root(),
            binaries: vec![Binary {
                target: plugin::host_target()?,
                path: program.to_path_buf(),
            }],
            out: tree.clone(),
        })?;
        fs::create_dir_all(folder.join("plugin-data"))?;
        let stage = Self {
            folder,
            homes: folder.join("homes"),
            binary: program.to_path_buf(),
            launcher: tree.join(LAUNCHER),
            empty: empty_program(folder)?,
            project: folder.join("project"),
            words: Words::new(),
        };
        fs::create_dir(&stage.project)?;
        let address = format!("https://{}.git", corpus::project_key(corpus::PROJECT));
        stage.git(&["init", "--quiet"])?;
        stage.git(&["remote", "add", "origin", &address])?;
        Ok(stage)
    }

    fn git(&self, arguments: &[&str]) -> Result {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(&self.project);
        git.env_clear().envs(self.environment("none"));
        run_command(&mut git)
    }

    /// Returns the home folder of the person who has this store.
    fn home(&self, store: &str) -> PathBuf {
        self.homes.join(store)
    }

    /// Returns the folder of a store, which is where a person has it by default.
    fn store_folder(&self, store: &str) -> PathBuf {
        self.home(store).join(".anamnesis")
    }

    /// Returns the environment that the client gives to hooks.
    fn environment(&self, store: &str) -> Vec<(&'static str, std::ffi::OsString)> {
        vec![
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("LANG", "C.UTF-8".into()),
            ("HOME", self.home(store).into()),
            ("ANAMNESIS_MACHINE_ID", "bench".into()),
            ("ANAMNESIS_NOW", corpus::NOW.into()),
            ("CLAUDE_PROJECT_DIR", self.project.clone().into()),
            ("CLAUDE_PLUGIN_DATA", self.folder.join("plugin-data").into()),
            ("CLAUDE_CODE_ENTRYPOINT", "cli".into()),
            ("CLAUDE_PID", std::process::id().to_string().into()),
        ]
    }

    /// Returns a run of the binary without the launcher.
    fn direct(&self, store: &str, arguments: &[&str]) -> Run {
        Run {
            environment: self.environment(store),
            ..Run::new(&self.binary, &self.project, arguments)
        }
    }

    /// Returns a hook as the client runs it, through the launcher, whose choice is already cached.
    fn hook(&self, store: &str, payload: &Value) -> Run {
        Run {
            program: self.launcher.clone(),
            stdin: payload.to_string(),
            ..self.direct(store, &["hook"])
        }
    }

    /// Creates a store of `count` notes with its index.
    fn store(&self, name: &str, count: usize) -> Result<Store> {
        say(&format!("making a store of {count} notes"));
        let title = corpus::write_notes(&self.store_folder(name), count, &self.words)?;
        self.indexed(name, title)
    }

    /// Indexes the notes that were written to a store, and holds its lock.
    fn indexed(&self, name: &str, title: String) -> Result<Store> {
        self.direct(name, &["reindex"]).once()?;
        let path = self.store_folder(name).join("derived/work.lock");
        let lock = File::create(&path).map_err(at(&path))?;
        lock.lock().map_err(at(&path))?;
        Ok(Store {
            name: name.to_owned(),
            title,
            lock,
        })
    }

    /// Runs the deferred process once to its end.
    fn fold_in(&self, store: &Store) -> Result {
        store.lock.unlock()?;
        self.direct(&store.name, &["work"]).once()?;
        Ok(store.lock.lock()?)
    }

    /// Returns all cases and the stores that hooks use.
    fn cases(&self, quick: bool) -> Result<(Vec<Case>, Vec<Store>)> {
        let sizes: &[usize] = if quick {
            &[100, 1_000]
        } else {
            &[100, 1_000, 10_000, 100_000]
        };
        let large = if quick { 1_000 } else { 10_000 };
        let mut stores = Vec::new();
        for &size in sizes {
            stores.push(self.store(&format!("store-{size}"), size)?);
        }
        stores.push(self.store("captures", large)?);
        // The lock is dropped, because this store's deferred process is measured.
        drop(self.store("changes", large)?);
        let main = format!("store-{large}");

        let mut cases = self.yardsticks()?;
        // Not the session's first prompt, which also creates the session.
        let prompt = json!({
            "session_id": "one-session", "hook_event_name": "UserPromptSubmit", "cwd": self.project,
            "prompt": "ok, go on",
        });
        let nothing = self.hook(&main, &prompt);
        cases.push(Case::new(
            "hook with nothing to say, direct",
            Run {
                program: self.binary.clone(),
                ..nothing.clone()
            },
            NOTHING,
        ));
        cases.push(Case {
            budget: Budget {
                cpu_to_git: Some(3),
                ..Budget::wall(5)
            },
            ..Case::new("hook with nothing to say", nothing, NOTHING)
        });
        for (store, &size) in stores.iter().zip(sizes) {
            cases.push(self.session_start(store, size));
            cases.extend(self.recalls(store, size, size == large));
        }
        for (name, length, budget, every) in [
            ("capture of 200 KB", 200_000, Budget::NONE, 2),
            ("capture of 20 MB", 20_000_000, Budget::wall(150), 4),
        ] {
            let projects = self.home("captures").join(".claude/projects");
            fs::create_dir_all(&projects)?;
            let transcript = projects.join(format!("{length}.jsonl"));
            corpus::write_transcript(&transcript, &self.project, length, &self.words)?;
            let payload = json!({
                "session_id": "SESSION", "hook_event_name": "SessionEnd", "reason": "other",
                "transcript_path": transcript, "cwd": self.project,
            });
            cases.push(Case {
                budget,
                before: Before::Pause,
                every,
                ..Case::new(name, self.hook("captures", &payload), "")
            });
        }
        let changed = corpus::note_files(&self.store_folder("changes"))?;
        cases.push(Case {
            budget: Budget::wall(30),
            before: Before::ChangeNotes(changed),
            every: 4,
            ..Case::new(
                format!("refresh after 10 changes, {} notes", grouped(large)),
                self.direct("changes", &["work"]),
                "",
            )
        });
        cases.push(Case {
            budget: Budget::wall(2_000),
            before: Before::Pause,
            every: 6,
            ..Case::new(
                format!("reindex of {} notes", grouped(large)),
                self.direct("changes", &["reindex"]),
                "reindex: indexed",
            )
        });
        let sizes: &[usize] = if quick {
            &[100, 1_000]
        } else {
            &[100, 10_000, 100_000]
        };
        for &size in sizes {
            stores.push(self.recorded(&format!("events-{size}"), size)?);
            cases.extend(self.events(size));
        }
        if let Ok(sqlite) = on_path("sqlite3") {
            let rows = self.folder.join("rows.db");
            let make =
                "PRAGMA journal_mode = WAL; CREATE TABLE event (id TEXT PRIMARY KEY, body TEXT)";
            let insert = "INSERT INTO event VALUES (hex(randomblob(16)), hex(randomblob(500)))";
            let shell = |statement: &str| Run {
                environment: self.environment("none"),
                ..Run::new(&sqlite, self.folder, &[&*rows.to_string_lossy(), statement])
            };
            shell(make).once()?;
            cases.push(Case::new("sqlite3 INSERT of 1 KB", shell(insert), ""));
        }
        let response = self.folder.join("response.json");
        self.write_response(&response)?;
        cases.push(Case {
            budget: Budget {
                peak: Some(200 * MIB),
                ..Budget::wall(250)
            },
            every: 12,
            ..Case::new(
                "tool response of 50 MiB",
                Run {
                    stdin_file: Some(response),
                    ..self.hook(&format!("events-{}", sizes[0]), &Value::Null)
                },
                NOTHING,
            )
        });
        cases.extend(self.backfill()?);
        let words = ["search", "parser", "timeout", "flaky", "fixture"];
        cases.push(Case {
            every: 2,
            ..Case::new(
                format!("search, {} notes", grouped(large)),
                self.direct(&main, &words),
                "anamnesis show ID",
            )
        });
        Ok((cases, stores))
    }

    /// Returns the reference cases: an empty program and git.
    fn yardsticks(&self) -> Result<Vec<Case>> {
        let git = Run {
            environment: self.environment("none"),
            ..Run::new(on_path("git")?, &self.project, &["--version"])
        };
        Ok(vec![
            Case::new("empty program", Run::new(&self.empty, self.folder, &[]), ""),
            Case::new("git --version", git, "git version"),
        ])
    }

    /// Returns the cases of recall and their stores.
    fn recall_cases(&self, quick: bool) -> Result<(Vec<Case>, Vec<Store>)> {
        let sizes: &[usize] = if quick {
            &[1_000, 10_000]
        } else {
            &[1_000, 10_000, 100_000]
        };
        let mut cases = self.yardsticks()?;
        let realistic = cost::write_realistic(&self.store_folder("realistic"))?;
        let realistic = self.indexed("realistic", realistic)?;
        cases.push(self.session_start(&realistic, REALISTIC));
        cases.extend(self.recalls(&realistic, REALISTIC, false));
        let mut stores = vec![realistic];
        for &size in sizes {
            let store = self.store(&format!("store-{size}"), size)?;
            cases.push(self.session_start(&store, size));
            cases.extend(self.recalls(&store, size, size == MAIN));
            stores.push(store);
        }
        Ok((cases, stores))
    }

    fn session_start(&self, store: &Store, size: usize) -> Case {
        let payload = json!({
            "session_id": "SESSION", "hook_event_name": "SessionStart", "source": "startup",
            "cwd": self.project,
        });
        Case {
            budget: Budget {
                peak: Some(24 * MIB),
                ..Budget::wall(if size > 10_000 { 20 } else { 10 })
            },
            ..Case::new(
                format!("session start, {} notes", grouped(size)),
                self.hook(&store.name, &payload),
                "anamnesis-context",
            )
        }
    }

    /// Returns the cases of recall with results: a short prompt, a pasted prompt, a tool call.
    fn recalls(&self, store: &Store, size: usize, is_main: bool) -> Vec<Case> {
        let name = |what: &str| format!("{what}, {} notes", grouped(size));
        let budget = Budget {
            p95: (size <= 10_000).then(|| Duration::from_millis(20)),
            peak: Some(24 * MIB),
            ..Budget::wall(if size > 10_000 { 20 } else { 10 })
        };
        let question = format!("what do we know about {}?", store.title);
        let prompt = |text: &str| {
            json!({
                "session_id": "SESSION", "hook_event_name": "UserPromptSubmit", "cwd": self.project,
                "prompt_id": "p-1", "prompt": text,
            })
        };
        let nothing = "why does the zebra sleep on the mountain of cheese?";
        let mut cases = Vec::new();
        let common = "the parser test of the login request fails in the build";
        for (what, text, sign) in [
            ("prompt with notes", &*question, "Recalled notes"),
            ("prompt of common words", common, ""),
            ("prompt that nothing fits", nothing, NOTHING),
        ] {
            cases.push(Case {
                budget,
                ..Case::new(name(what), self.hook(&store.name, &prompt(text)), sign)
            });
        }
        if is_main {
            let mut pasted = self.words.text(&mut Random::new(9), 1_000_000);
            let _ = write!(pasted, "\n\n{question}");
            cases.push(Case {
                budget: Budget {
                    p95: None,
                    ..Budget::wall(30)
                },
                every: 2,
                ..Case::new(
                    name("prompt of 1 MB"),
                    self.hook(&store.name, &prompt(&pasted)),
                    "",
                )
            });
        }
        let call = |command: &str| {
            json!({
                "session_id": "SESSION", "hook_event_name": "PreToolUse", "cwd": self.project,
                "tool_name": "Bash", "tool_use_id": "SESSION",
                "tool_input": { "command": command },
            })
        };
        let forbidden = corpus::forbidden(corpus::WARNINGS / 2);
        let calls = [
            ("call of a tool", "cargo test login", ""),
            ("call with a warning", &*forbidden, "anamnesis-context"),
        ];
        for (what, command, sign) in calls.into_iter().take(if is_main { 2 } else { 1 }) {
            cases.push(Case {
                budget: Budget {
                    p95: Some(Duration::from_millis(15)),
                    ..budget
                },
                ..Case::new(name(what), self.hook(&store.name, &call(command)), sign)
            });
        }
        cases
    }

    /// Returns the cases of `backfill`: list, apply, and list again.
    fn backfill(&self) -> Result<Vec<Case>> {
        say(&format!("making transcripts of {} sessions", grouped(PAST)));
        let folder = self.home("past").join(".claude/projects/-project");
        corpus::write_past(&folder, &self.project, PAST as u64, &self.words)?;
        let store = self.store_folder("past");
        let case = |name: &str, options: &[&str], before: Before, sign| {
            let mut run = self.direct("past", &["backfill"]);
            run.arguments
                .extend(options.iter().map(|&it| it.to_owned()));
            Case {
                before,
                every: 6,
                ..Case::new(format!("{name}, {} sessions", grouped(PAST)), run, sign)
            }
        };
        let sign = "1,000 sessions of";
        Ok(vec![
            case("backfill, list", &[], Before::Forget(store.clone()), sign),
            case("backfill, apply", &["--apply"], Before::Forget(store), sign),
            case(
                "backfill, done already",
                &[],
                Before::Nothing,
                "a note exists",
            ),
        ])
    }
}

impl Stage<'_> {
    /// Creates a store whose journal has `count` tool events, two hundred per session.
    fn recorded(&self, name: &str, count: usize) -> Result<Store> {
        let store = self.store(name, 100)?;
        say(&format!("recording {count} events"));
        corpus::record_events(&self.store_folder(name), SESSION, count)?;
        self.fold_in(&store)?;
        Ok(store)
    }

    fn event(&self, name: &str, fields: &Value) -> Value {
        let mut payload = json!({
            "session_id": SESSION, "prompt_id": "prompt", "hook_event_name": name, "cwd": self.project,
        });
        for (name, value) in fields.as_object().into_iter().flatten() {
            payload[name] = value.clone();
        }
        payload
    }

    /// Writes a payload with a tool response of 50 MiB, line by line.
    fn write_response(&self, path: &Path) -> Result {
        const LINE: &str = "a line of output";

        let payload = self.event(
            "PostToolUse",
            &json!({
                "tool_name": "Bash", "tool_use_id": "long", "tool_input": { "command": "cat log" },
                "tool_response": { "stdout": LINE },
            }),
        );
        let payload = payload.to_string();
        let (before, after) = payload
            .split_once(LINE)
            .ok_or("the payload does not contain the line")?;
        let mut file = BufWriter::new(File::create(path).map_err(at(path))?);
        file.write_all(before.as_bytes())?;
        for _ in 0..50 * 1024 * 1024 / (LINE.len() + 1) {
            write!(file, "{LINE}\\n")?;
        }
        file.write_all(after.as_bytes())?;
        Ok(file.flush()?)
    }

    /// Returns the cases of frequent events, with a journal of this size.
    fn events(&self, size: usize) -> Vec<Case> {
        let tool = json!({
            "tool_name": "Bash", "tool_use_id": "SESSION", "duration_ms": 812,
            "tool_input": { "command": "cargo test login" },
            "tool_response": { "stdout": "3 passed\n".repeat(40), "stderr": "", "interrupted": false },
        });
        let prompt = json!({ "prompt_id": "SESSION", "prompt": "why does the parser test fail?" });
        let answer = json!({ "last_assistant_message": "Fixed by SESSION. Next: the cart." });
        [
            ("PostToolUse", tool),
            ("UserPromptSubmit", prompt),
            ("Stop", answer),
        ]
        .into_iter()
        .map(|(event, fields)| Case {
            budget: Budget {
                peak: Some(24 * MIB),
                ..Budget::wall(5)
            },
            ..Case::new(
                format!("{event}, {} events", grouped(size)),
                self.hook(&format!("events-{size}"), &self.event(event, &fields)),
                NOTHING,
            )
        })
        .collect()
    }
}

/// Compiles a program that does nothing, the minimum for any Rust program on this machine.
fn empty_program(folder: &Path) -> Result<PathBuf> {
    let source = folder.join("empty.rs");
    let program = folder.join("empty");
    fs::write(&source, "fn main() {}\n").map_err(at(&source))?;
    let mut rustc = Command::new(rustc());
    rustc.args(["-O", "-o"]).arg(&program).arg(&source);
    run_command(&mut rustc)?;
    Ok(program)
}

/// Returns a program's full path, so that searching PATH is not measured.
fn on_path(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .ok_or_else(|| format!("{name} is not installed").into())
}

fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Describes the machine in one line: cores, system, compiler.
fn machine() -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let system = first_line(Command::new("uname").args(["-srm"]));
    let rustc = first_line(Command::new(rustc()).arg("--version"));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().filter(|load| !load.is_empty());
    let load = load.map_or_else(String::new, |load| format!(", load {load}"));
    format!("{cores} cores, {system}, {rustc}{load}")
}

fn first_line(command: &mut Command) -> String {
    let output = command.output().ok();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text.as_deref().and_then(|text| text.lines().next());
    line.unwrap_or("unknown").to_owned()
}

/// Returns the limits that a row exceeds, or `None` if it has no limits.
fn exceeded(row: &Row, git: Option<&Row>) -> Option<Vec<&'static str>> {
    let budget = row.budget;
    let cpu = budget
        .cpu_to_git
        .zip(git)
        .map(|(times, git)| row.cpu.median > git.cpu.median * times);
    let checks = [
        ("time", budget.wall.map(|most| row.wall.median > most)),
        ("p95", budget.p95.map(|most| row.wall.p95 > most)),
        ("processor time", cpu),
        ("memory", budget.peak.map(|most| row.peak > most)),
    ];
    if checks.iter().all(|(_, over)| over.is_none()) {
        return None;
    }
    let over = checks.iter().filter(|(_, over)| *over == Some(true));
    Some(over.map(|(name, _)| *name).collect())
}

fn verdict(over: Option<&[&str]>) -> String {
    match over {
        None => String::new(),
        Some([]) => "ok".to_owned(),
        Some(over) => format!("over: {}", over.join(", ")),
    }
}

fn row_named<'a>(rows: &'a [Row], name: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.name == name)
}

fn ratio(a: Duration, b: Option<Duration>) -> String {
    b.filter(|b| !b.is_zero()).map_or_else(String::new, |b| {
        format!("{:.1}", a.as_secs_f64() / b.as_secs_f64())
    })
}

fn milliseconds(time: Duration) -> String {
    let value = time.as_secs_f64() * 1_000.0;
    if value < 100.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{}.{}", bytes / MIB, bytes % MIB * 10 / MIB)
}

/// Formats a number with a comma between thousands.
fn grouped(number: usize) -> String {
    match number / 1_000 {
        0 => number.to_string(),
        thousands => format!("{thousands},{:03}", number % 1_000),
    }
}

fn budget_text(budget: Budget) -> String {
    let parts = [
        budget.wall.map(|most| format!("{} ms", most.as_millis())),
        budget
            .p95
            .map(|most| format!("p95 {} ms", most.as_millis())),
        budget.cpu_to_git.map(|times| format!("cpu {times} × git")),
        budget.peak.map(|most| format!("{} MiB", most / MIB)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the memory of a capture with a short and with a long transcript.
fn memory_growth(rows: &[Row]) -> Option<(u64, u64)> {
    let peak = |name| row_named(rows, name).map(|row| row.peak);
    Some((peak("capture of 200 KB")?, peak("capture of 20 MB")?))
}

/// Formats the report for people.
fn table(rows: &[Row], binary_length: u64) -> String {
    let empty = row_named(rows, "empty program").map(|row| row.wall.median);
    let git = row_named(rows, "git --version");
    let mut lines = vec![
        [
            "",
            "runs",
            "min",
            "median",
            "p95",
            "cpu",
            "cpu p95",
            "peak",
            "÷ empty",
            "÷ git",
            "cpu ÷ git",
            "budget",
            "",
        ]
        .map(str::to_owned),
    ];
    for row in rows {
        lines.push([
            row.name.clone(),
            row.runs.to_string(),
            milliseconds(row.wall.least),
            milliseconds(row.wall.median),
            milliseconds(row.wall.p95),
            milliseconds(row.cpu.median),
            milliseconds(row.cpu.p95),
            mebibytes(row.peak),
            ratio(row.wall.median, empty),
            ratio(row.wall.median, git.map(|git| git.wall.median)),
            ratio(row.cpu.median, git.map(|git| git.cpu.median)),
            budget_text(row.budget),
            verdict(exceeded(row, git).as_deref()),
        ]);
    }
    let mut text = String::from(
        "Whole processes, in milliseconds. cpu is user and system time. peak is in MiB and at least \
         that of the measuring process. Hooks run through bin/anamnesis unless marked \
         \"direct\".\n\n",
    );
    text.push_str(&aligned(&lines));
    let verdict_of = |is_ok| if is_ok { "ok" } else { "over" };
    let _ = write!(
        text,
        "\nbinary: {} MiB, budget {} MiB: {}\n",
        mebibytes(binary_length),
        BINARY_BUDGET / MIB,
        verdict_of(binary_length <= BINARY_BUDGET)
    );
    if let Some((short, long)) = memory_growth(rows) {
        let _ = writeln!(
            text,
            "memory of a capture: {} MiB for 200 KB, {} MiB for 20 MB, budget the same: {}",
            mebibytes(short),
            mebibytes(long),
            verdict_of(long <= short + MEMORY_SLACK)
        );
    }
    text
}

/// Aligns columns: the first and the last two to the left, others to the right.
fn aligned<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| {
        let lengths = lines.iter().map(|line| line[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for line in lines {
        let mut row = String::new();
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            if column == 0 || column + 2 >= N {
                let _ = write!(row, "{cell:<width$}  ");
            } else {
                let _ = write!(row, "{cell:>width$}  ");
            }
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// Formats the report for scripts. Times are microseconds, sizes are bytes.
fn as_json(rows: &[Row]) -> Value {
    let git = row_named(rows, "git --version");
    let spread = |spread: Spread| {
        json!({
            "min": micros(spread.least),
            "median": micros(spread.median),
            "p95": micros(spread.p95),
        })
    };
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name, "runs": row.runs, "wall": spread(row.wall),
                "cpu": spread(row.cpu), "peak": row.peak,
                "budget": {
                    "wall": row.budget.wall.map(micros),
                    "cpu_to_git": row.budget.cpu_to_git, "peak": row.budget.peak,
                },
                "over": exceeded(row, git),
            })
        })
        .collect();
    rows.into()
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, wall: u64, cpu: u64, peak: u64, budget: Budget) -> Row {
        let spread = |microseconds| {
            let time = Duration::from_micros(microseconds);
            Spread {
                least: time,
                median: time,
                p95: time,
            }
        };
        Row {
            name: name.to_owned(),
            runs: 3,
            wall: spread(wall),
            cpu: spread(cpu),
            peak: peak * MIB,
            budget,
        }
    }

    #[test]
    fn each_limit_is_compared_with_its_own_figure() {
        let git = row("git --version", 1_000, 1_000, 4, Budget::NONE);
        let budget = Budget {
            wall: Some(Duration::from_millis(5)),
            p95: None,
            cpu_to_git: Some(3),
            peak: Some(24 * MIB),
        };
        let over = |wall, cpu, peak| exceeded(&row("x", wall, cpu, peak, budget), Some(&git));
        assert_eq!(over(5_000, 3_000, 24), Some(vec![]));
        assert_eq!(over(5_001, 3_000, 24), Some(vec!["time"]));
        assert_eq!(over(1, 3_001, 25), Some(vec!["processor time", "memory"]));
        assert_eq!(exceeded(&git, Some(&git)), None);
    }

    #[test]
    fn the_report_shows_figures_and_budgets() {
        let rows = [
            row("empty program", 500, 400, 2, Budget::NONE),
            row("git --version", 1_000, 800, 4, Budget::NONE),
            row("capture of 200 KB", 6_000, 5_000, 9, Budget::NONE),
            row("capture of 20 MB", 151_000, 150_000, 10, Budget::wall(150)),
        ];
        let text = table(&rows, 5 * MIB + MIB / 2);
        let last = text
            .lines()
            .find(|line| line.starts_with("capture of 20 MB"));
        let cells: Vec<&str> = last.unwrap().split_whitespace().collect();
        assert_eq!(
            cells[4..],
            [
                "3", "151", "151", "151", "150", "150", "10.0", "302.0", "151.0", "187.5", "150",
                "ms", "over:", "time"
            ]
        );
        assert!(
            text.contains("binary: 5.5 MiB, budget 12 MiB: ok\n"),
            "{text}"
        );
        assert!(
            text.contains("10.0 MiB for 20 MB, budget the same: ok\n"),
            "{text}"
        );
        assert_eq!(as_json(&rows)[3]["over"], json!(["time"]));
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(100, "100"), (1_000, "1,000"), (100_020, "100,020")] {
            assert_eq!(grouped(number), text);
        }
    }
}
