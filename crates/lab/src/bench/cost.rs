//! Counts what each hook costs: instructions, statements, system calls, opened files, pages read and
//! written.
//!
//! Times depend on the machine's load, counts do not. Each count is compared with a bound in
//! `data/cost.txt`: a change that costs more raises the bound in its own commit, with the reason, and
//! one that costs less lowers it. valgrind's callgrind counts instructions and, by the names of the
//! functions, prepared statements; strace counts system calls. Each has stores of its own. The
//! deferred process is locked out, and the watchdog's thread only waits, for longer than usual:
//! a hook under valgrind takes a second.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Days};
use serde_json::{Value, json};

use super::corpus::{self, Words};
use super::measure::Run;
use super::{Stage, Store, on_path};
use crate::eval::{rows, text};
use crate::plugin::{self, Profile};
use crate::{Result, at, random::Random, root, say};

/// The counts that a program may not exceed, relative to the checkout.
const BOUNDS: &str = "crates/lab/data/cost.txt";

/// Where the stores are made. A hook asks for each folder above its project, so their number counts.
const FOLDER: &str = "/tmp";

/// The number of notes whose words overlap.
const OVERLAPPING: u64 = 2_000;

/// A folder that no note is about.
const ELSEWHERE: &str = "elsewhere";

/// What the output of a hook contains that injects notes.
const INJECTED: &str = "anamnesis-context";

/// The functions that prepare a statement of SQL, as SQLite names them.
const PREPARE: [&str; 2] = ["sqlite3_prepare_v2", "sqlite3_prepare_v3"];

/// What a run of a hook costs, and how many percent above its bound that may be. Hash seeds vary, and
/// with them the pages that a merge of the index for search writes and later statements read. SQLite
/// takes locks for each statement outside a transaction.
const COUNTS: [(&str, u64); 7] = [
    ("instructions", 2),
    ("statements", 0),
    ("calls", 2),
    ("opened", 2),
    ("reads", 1),
    ("writes", 0),
    ("locks", 0),
];

/// How many of [`COUNTS`] are the same in each run, but for a percent.
const EXACT: usize = 2;

/// Counts in the order of [`COUNTS`].
type Counts = [u64; COUNTS.len()];

/// The counts of each case.
type Table = BTreeMap<String, Counts>;

/// Count instructions and system calls of each hook and compare them with the bounds
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Count this program, built in release mode
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Write the counts as the new bounds
    #[arg(long)]
    write: bool,
}

/// Returns whether the programs that count are installed.
pub fn is_available() -> bool {
    ["valgrind", "strace"]
        .iter()
        .all(|tool| on_path(tool).is_ok())
}

/// Runs `cargo xtask cost`.
///
/// # Errors
/// Returns an error if a program is missing or fails, or a count is above its bound.
pub fn run(arguments: &Arguments) -> Result {
    let program = plugin::given_or_built(&root(), arguments.binary.as_ref(), Profile::Release)?;
    let path = root().join(BOUNDS);
    let mut counted = count_once(&program)?;
    if arguments.write {
        return fs::write(&path, format(&counted)).map_err(at(&path));
    }
    let bounds = parse(&fs::read_to_string(&path).map_err(at(&path))?)?;
    // What only the load of the machine caused is not counted twice.
    if !exceeded(&counted, &bounds, COUNTS.len()).is_empty() {
        say(&format(&counted));
        say("some counts are above their bounds; counting again");
        counted = lower(counted, &count_once(&program)?);
    }
    say(&format(&counted));
    let over = exceeded(&counted, &bounds, COUNTS.len());
    if !over.is_empty() {
        return Err(format!(
            "{BOUNDS} allows less:\n{}\nMake it cheaper, or run `cargo xtask cost --write` and give \
             the reason in the commit",
            over.join("\n")
        )
        .into());
    }
    // What is cheaper now may not become dear again unseen. Other counts may be lower by chance.
    let slack = exceeded(&bounds, &counted, EXACT);
    if slack.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{BOUNDS} allows more than is needed:\n{}\nRun `cargo xtask cost --write`",
        slack.join("\n")
    )
    .into())
}

/// Counts all cases in stores that are new.
fn count_once(program: &Path) -> Result<Table> {
    let folder = tempfile::Builder::new()
        .prefix("anamnesis-cost-")
        .tempdir_in(FOLDER)?;
    count(&Stage::build(folder.path(), program)?)
}

/// Returns the lower of two counts of each kind.
fn lower(mut first: Table, second: &Table) -> Table {
    for (name, counts) in &mut first {
        for (count, other) in counts
            .iter_mut()
            .zip(second.get(name).into_iter().flatten())
        {
            *count = (*count).min(*other);
        }
    }
    first
}

/// Counts all cases.
fn count(stage: &Stage<'_>) -> Result<Table> {
    let mut table = Table::new();
    fs::create_dir(stage.project.with_file_name(ELSEWHERE))?;
    // The stores of both tools have names of one length, so that their paths cost the same.
    for (store, prompt, sign, events) in [
        (
            "realistic",
            "how do I deploy to staging?",
            INJECTED,
            usize::MAX,
        ),
        (
            "overlapping",
            "the parser test of the login request fails in the build",
            "{}",
            3,
        ),
        ("generated", "", INJECTED, 6),
    ] {
        let counting = make_store(stage, store, "i")?;
        let calling = make_store(stage, store, "c")?;
        let title = format!("what do we know about {}?", counting.title);
        let prompt = if prompt.is_empty() { &title } else { prompt };
        for (event, payload, sign) in events_of(&stage.project, prompt, sign)
            .into_iter()
            .take(events)
        {
            let name = format!("{store} {event}");
            let run = |store: &Store| hook(stage, &store.name, &payload);
            let [instructions, statements] = executed(&run(&counting), sign, stage.folder)?;
            let [calls, opened, reads, writes, locks] = calls(&run(&calling), sign, stage.folder)?;
            let counts = [
                instructions,
                statements,
                calls,
                opened,
                reads,
                writes,
                locks,
            ];
            table.insert(name, counts);
        }
    }
    Ok(table)
}

/// Creates a store with its index, and its journal by a session that began earlier.
fn make_store(stage: &Stage<'_>, name: &str, lane: &str) -> Result<Store> {
    let full = format!("{name}-{lane}");
    let folder = stage.store_folder(&full);
    let store = match name {
        "realistic" => stage.indexed(&full, write_realistic(&folder)?)?,
        "overlapping" => stage.indexed(&full, write_overlapping(&folder)?)?,
        _ => stage.store(&full, 10_000)?,
    };
    let earlier = json!({
        "session_id": "earlier", "hook_event_name": "SessionStart", "source": "startup",
        "cwd": stage.project,
    });
    hook(stage, &full, &earlier).once()?;
    Ok(store)
}

/// Returns a hook without the launcher.
fn hook(stage: &Stage<'_>, store: &str, payload: &Value) -> Run {
    let mut run = stage.direct(store, &["hook"]);
    run.stdin = payload.to_string();
    let folder = payload["cwd"].as_str().unwrap_or_default();
    run.environment.push(("CLAUDE_PROJECT_DIR", folder.into()));
    run.environment.push(("ANAMNESIS_SLOW_HOOKS", "1".into()));
    run
}

/// An event's name, its payload, and a text that the output must contain.
type Event = (&'static str, Value, &'static str);

/// Returns the events of a session. Those of all stores come first. `sign` is what the output for the
/// question contains.
fn events_of(project: &Path, question: &str, sign: &'static str) -> Vec<Event> {
    let event = |name: &str, fields: Value| {
        let mut payload = json!({
            "session_id": "5c1f8a52-0000-4000-8000-000000000001", "prompt_id": "p-1",
            "hook_event_name": name, "cwd": project,
        });
        for (key, value) in fields.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload
    };
    let prompt = |id: &str, text: &str| {
        event(
            "UserPromptSubmit",
            json!({ "prompt_id": id, "prompt": text }),
        )
    };
    let call = |name: &str, id: &str, result: &str, value: Value| {
        let mut fields = json!({
            "tool_name": "Bash", "tool_use_id": id,
            "tool_input": { "command": "cargo test login" },
        });
        fields[result] = value;
        event(name, fields)
    };
    let agent = |mut fields: Value| {
        fields["agent_id"] = "a1b2c3".into();
        fields["agent_type"] = "Explore".into();
        fields
    };
    let passed = json!({ "stdout": "3 passed\n".repeat(40), "stderr": "" });
    let failed = json!("Exit code 1\nerror: 2 of 3 tests failed");
    let answer = json!({ "last_assistant_message": "Fixed by a new fixture. Next: the cart." });
    vec![
        (
            "SessionStart",
            event("SessionStart", json!({ "source": "startup" })),
            INJECTED,
        ),
        (
            "SessionStart, no notes",
            event(
                "SessionStart",
                json!({
                    "source": "startup", "session_id": ELSEWHERE,
                    "cwd": project.with_file_name(ELSEWHERE),
                }),
            ),
            "",
        ),
        ("UserPromptSubmit", prompt("p-1", question), sign),
        (
            "UserPromptSubmit, no match",
            prompt(
                "p-2",
                "which bread does the baker of my grandmother's village sell on Sundays?",
            ),
            "{}",
        ),
        (
            "PreToolUse",
            call("PreToolUse", "t-1", "permission_mode", json!("default")),
            "{}",
        ),
        (
            "PostToolUse",
            call("PostToolUse", "t-1", "tool_response", passed),
            "{}",
        ),
        (
            "PostToolUseFailure",
            call("PostToolUseFailure", "t-2", "error", failed),
            "",
        ),
        (
            "SubagentStart",
            event("SubagentStart", agent(json!({ "prompt": question }))),
            "",
        ),
        (
            "SubagentStop",
            event("SubagentStop", agent(answer.clone())),
            "",
        ),
        (
            "PreCompact",
            event("PreCompact", json!({ "trigger": "auto" })),
            "",
        ),
        (
            "StopFailure",
            event("StopFailure", json!({ "error": "rate_limit" })),
            "",
        ),
        ("Stop", event("Stop", answer), "{}"),
        (
            "SessionEnd",
            event("SessionEnd", json!({ "reason": "other" })),
            "",
        ),
    ]
}

/// The days by which the realistic notes are older in a store, so that all are older than [`corpus::NOW`].
const OLDER: u64 = 173;

/// Writes the realistic notes of the tree as notes of the measured project.
pub(super) fn write_realistic(store: &Path) -> Result<String> {
    let mut title = String::new();
    for row in rows(&root().join("crates/lab/data/realistic/dev/notes.jsonl"))? {
        let [note_type, created, body] = ["type", "created_at", "body"].map(|key| text(&row, key));
        title = text(&row, "title");
        let created = DateTime::parse_from_rfc3339(&created)? - Days::new(OLDER);
        corpus::write_note(store, &note_type, &created.to_rfc3339(), &title, &body)?;
    }
    Ok(title)
}

/// Writes notes of few different words: nearly every word of a prompt is in nearly every note.
fn write_overlapping(store: &Path) -> Result<String> {
    let words = Words::common();
    let mut random = Random::new(2);
    let mut title = String::new();
    for number in 0..OVERLAPPING {
        let kind = if number % 3 == 0 {
            "episodic"
        } else {
            "semantic"
        };
        let created = corpus::time_before_now(number * 3_600_000);
        title = words.text(&mut random, 30).replace('\n', " ");
        let body = words.text(&mut random, 600);
        corpus::write_note(store, kind, &created, &title, &body)?;
    }
    Ok(title)
}

/// Counts the executed instructions and the prepared statements of a hook's own process.
fn executed(run: &Run, sign: &str, folder: &Path) -> Result<[u64; 2]> {
    let profile = folder.join("callgrind.out");
    let options = [
        "--tool=callgrind",
        "--compress-strings=no",
        &format!("--callgrind-out-file={}", profile.display()),
        &format!("--log-file={}", folder.join("valgrind.log").display()),
    ];
    wrap("valgrind", &options, run, sign)?;
    let profile = fs::read_to_string(&profile).map_err(at(&profile))?;
    let counts = count_executed(&profile);
    if counts.contains(&0) {
        return Err(
            "no statement was counted: the program needs its symbols, so build it with \
             CARGO_PROFILE_RELEASE_STRIP=none"
                .into(),
        );
    }
    Ok(counts)
}

/// Counts instructions and prepared statements in a profile of callgrind.
/// <https://valgrind.org/docs/manual/cl-format.html>
fn count_executed(profile: &str) -> [u64; 2] {
    let [mut instructions, mut statements] = [0; 2];
    let mut called = "";
    for line in profile.lines() {
        let Some((key, value)) = line.split_once(['=', ':']) else {
            continue;
        };
        let number = || value.split_whitespace().next()?.parse::<u64>().ok();
        match key {
            "totals" => instructions += number().unwrap_or(0),
            "cfn" => called = value,
            "calls" if PREPARE.contains(&called) => statements += number().unwrap_or(0),
            _ => {}
        }
    }
    [instructions, statements]
}

/// Counts the system calls of a hook: all, opened files, pages of databases, and locks.
fn calls(run: &Run, sign: &str, folder: &Path) -> Result<[u64; 5]> {
    let log = folder.join("strace.log");
    wrap("strace", &["-f", "-o", &log.to_string_lossy()], run, sign)?;
    let report = fs::read_to_string(&log).map_err(at(&log))?;
    Ok(count_calls(&report))
}

/// Counts the calls of a hook's main thread in a report of strace. Waiting for the other thread does
/// not count, because it depends on the scheduler.
fn count_calls(report: &str) -> [u64; 5] {
    let calls = || report.lines().filter_map(|line| line.split_once(' '));
    let main = calls().next().map_or("", |(thread, _)| thread);
    let mut counts = [0; 5];
    for (_, call) in calls().filter(|(thread, _)| *thread == main) {
        let Some((name, _)) = call.trim_start().split_once('(') else {
            continue;
        };
        if name == "futex" || name.starts_with("<...") {
            continue;
        }
        counts[0] += 1;
        let place = match name {
            // musl calls the former.
            "open" | "openat" => 1,
            "pread64" => 2,
            "pwrite64" => 3,
            "fcntl" if call.contains(", F_SETLK") => 4,
            _ => continue,
        };
        counts[place] += 1;
    }
    counts
}

/// Runs a program under a tool, with its input and environment.
fn wrap(tool: &str, options: &[&str], run: &Run, sign: &str) -> Result {
    let program = run.program.to_string_lossy().into_owned();
    let options = options.iter().map(|&option| option.to_owned());
    let wrapped = Run {
        program: on_path(tool)?,
        arguments: options
            .chain([program])
            .chain(run.arguments.clone())
            .collect(),
        ..run.clone()
    };
    let (_, output) = wrapped.once()?;
    if output.contains(sign) {
        return Ok(());
    }
    Err(format!("{tool}: unexpected output for {}: {output}", run.stdin).into())
}

/// Formats counts, one case a line.
fn format(table: &Table) -> String {
    let mut text = format!("{:<40}", "# store and event");
    for (name, _) in COUNTS {
        let _ = write!(text, "{name:>13}");
    }
    for (name, counts) in table {
        let _ = write!(text, "\n{name:<40}");
        for count in counts {
            let _ = write!(text, "{count:>13}");
        }
    }
    text.push('\n');
    text
}

/// Reads what [`format()`] writes.
fn parse(text: &str) -> Result<Table> {
    let mut bounds = Table::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, counts) = words.split_at(words.len().saturating_sub(COUNTS.len()));
        let counts: Vec<u64> = counts.iter().flat_map(|count| count.parse()).collect();
        let counts = Counts::try_from(counts)
            .map_err(|_| format!("{BOUNDS}: \"{line}\": expected a case and its counts"))?;
        bounds.insert(name.join(" "), counts);
    }
    Ok(bounds)
}

/// Names the counts above their bounds, and cases without one. Compares the first of [`COUNTS`].
fn exceeded(counted: &Table, bounds: &Table, compared: usize) -> Vec<String> {
    let mut over = Vec::new();
    for (name, counts) in counted {
        let bound = bounds.get(name).unwrap_or(&[0; COUNTS.len()]);
        for (((what, percent), count), most) in COUNTS.iter().zip(counts).zip(bound).take(compared)
        {
            if count * 100 > most * (100 + percent) {
                over.push(format!("{name}: {count} {what} instead of {most}"));
            }
        }
    }
    over
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(instructions: u64, calls: u64) -> Table {
        Table::from([("s Stop".to_owned(), [instructions, 2, calls, 3, 4, 5, 6])])
    }

    #[test]
    fn a_table_is_read_back() {
        let counts = counted(1_000, 50);
        assert_eq!(parse(&format(&counts)).unwrap(), counts);
        assert!(parse("s Stop 1 2").is_err());
    }

    #[test]
    fn a_count_above_its_bound_or_without_one_fails() {
        let bounds = counted(1_000, 50);
        let of = |counted: &Table, compared| exceeded(counted, &bounds, compared);
        assert!(of(&counted(1_020, 51), COUNTS.len()).is_empty());
        let over = [
            "s Stop: 1021 instructions instead of 1000",
            "s Stop: 52 calls instead of 50",
        ];
        assert_eq!(of(&counted(1_021, 52), COUNTS.len()), over);
        assert_eq!(of(&counted(1_021, 52), EXACT), over[..1]);
        assert_eq!(exceeded(&bounds, &Table::new(), COUNTS.len()).len(), 7);
    }

    #[test]
    fn a_statement_counts_where_it_is_prepared() {
        let profile = "# callgrind format\nevents: Ir\nfn=main\ncfn=sqlite3_prepare_v3\n\
                       calls=2 0\n0 800\ncfn=sqlite3_step\ncalls=9 0\n0 90\nfn=sqlite3_exec\n\
                       cfn=sqlite3_prepare_v2\ncalls=1 0\n0 100\ntotals: 1234\n";
        assert_eq!(count_executed(profile), [1_234, 3]);
    }

    #[test]
    fn the_lower_of_two_counts_is_compared() {
        let (first, second) = (counted(900, 60), counted(1_000, 50));
        assert_eq!(lower(first, &second), counted(900, 50));
    }

    #[test]
    fn only_the_calls_of_the_main_thread_count() {
        let report = "1 execve(\"a\", ...) = 0\n1 openat(AT_FDCWD, \"b\") = 3\n\
                      1 pread64(3,  <unfinished ...>\n2 futex(0x1, FUTEX_WAIT) = 0\n\
                      1 <... pread64 resumed>\"x\", 1, 0) = 1\n1 pwrite64(3, \"x\", 1, 0) = 1\n\
                      1 fcntl(3, F_SETLK) = 0\n1 fcntl(3, F_SETFD) = 0\n1 open(\"x\") = 3\n\
                      3 close(3) = 0\n3 execve(\"worker\", ...) = 0\n3 openat(AT_FDCWD) = 3\n\
                      1 +++ exited with 0 +++\n";
        assert_eq!(count_calls(report), [7, 2, 1, 1, 1]);
    }
}
