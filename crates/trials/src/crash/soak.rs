//! Runs sessions, servers and syncs on one store for a long time, kills some of them, and lets some
//! hooks meet a full disk. Then counts every record, note and file in the remote.
//!
//! A hook that was killed or could not write is run again, so each event of each session has to be in
//! the journal once. A full disk is a limit of the size of files, which works for every user: a write
//! beyond it fails like one to a full disk.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use anamnesis_lab::random::Random;
use anamnesis_note::{id::NoteId, note::NoteType};
use anamnesis_store::spool::Spool;

use super::{
    Checks,
    hooks::{Client, hook},
    records::Records,
    report,
    sandbox::{Sandbox, describe_run},
    script,
    servers::{Done, is_all_there, serve},
};
use crate::{
    Result, at,
    plugin::{self, Profile},
};

/// Sessions that run at the same time.
const WORKERS: usize = 3;

/// The session whose hooks are neither killed nor disturbed. The others have to have its rows.
const REFERENCE: &str = "soak-reference";

/// The largest files of a full disk, in blocks of 512 bytes: nothing, the write-ahead log, the journal.
const LIMITS: [u64; 4] = [0, 8, 64, 400];

/// Run sessions, servers and syncs for minutes, kill some, fill the disk, then count every record
#[derive(clap::Args)]
pub struct Arguments {
    /// How long to run
    #[arg(long, value_name = "MINUTES", default_value_t = 60)]
    minutes: u64,
    /// Seed of the random moments
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Test this program instead of a release build of the checkout
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// What was done, and what was found in the end.
#[derive(Default)]
struct Counts {
    sessions: Vec<String>,
    rows: BTreeMap<&'static str, usize>,
}

impl Counts {
    fn add(&mut self, what: &'static str, count: usize) {
        *self.rows.entry(what).or_default() += count;
    }
}

/// The fate of one process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Undisturbed,
    Killed,
    FullDisk,
}

/// Runs `cargo xtask soak`.
pub fn run(root: &Path, arguments: &Arguments) -> Result {
    let binary = plugin::given_or_built(root, arguments.binary.as_ref(), Profile::Release)?;
    let folder = tempfile::Builder::new()
        .prefix("anamnesis-soak-")
        .tempdir()?;
    let mut checks = Checks::default();
    let time = Duration::from_secs(arguments.minutes * 60);
    soak(folder.path(), &binary, time, arguments.seed, &mut checks)?;
    checks.finish(folder)
}

fn soak(folder: &Path, binary: &Path, time: Duration, seed: u64, checks: &mut Checks) -> Result {
    let sandbox = Sandbox::new(folder, binary)?;
    let remote = sandbox.root().join("remote.git");
    let mut init = Command::new("git");
    crate::run(
        init.args(["init", "--quiet", "--bare", "--initial-branch=main"])
            .arg(&remote),
    )?;
    let address = remote.to_str().ok_or("the folder's name is not UTF-8")?;
    sandbox.succeeds(&["config", "set", "remote", address], b"", checks)?;
    let counts = Mutex::new(Counts::default());
    let done = Mutex::new(Done::default());
    session(&sandbox, REFERENCE, None, &counts)?;
    let began = Instant::now();
    let goes_on = || began.elapsed() < time;
    thread::scope(|scope| -> Result {
        let (sandbox, counts, done, goes_on) = (&sandbox, &counts, &done, &goes_on);
        let mut all = Vec::new();
        for worker in 0..WORKERS {
            all.push(scope.spawn(move || -> Result {
                let mut random = Random::new(seed.wrapping_mul(31) ^ worker as u64);
                for number in (0..).take_while(|_| goes_on()) {
                    let id = format!("soak-{worker}-{number}");
                    session(sandbox, &id, Some(&mut random), counts)?;
                }
                Ok(())
            }));
        }
        all.push(scope.spawn(move || -> Result {
            for round in (0..).take_while(|_| goes_on()) {
                serve(sandbox, 0, round, done)?;
                count(counts, "servers", 1)?;
            }
            Ok(())
        }));
        all.push(scope.spawn(move || -> Result {
            let mut random = Random::new(seed ^ 0x5eed);
            while goes_on() {
                let mut sync = sandbox.command(&["sync"], b"")?;
                sync.env("PATH", std::env::var_os("PATH").unwrap_or_default());
                let is_killed = random.below(3) == 0;
                let limit = Duration::from_millis(random.below(400));
                end(&mut sync, is_killed.then_some(limit))?;
                count(counts, if is_killed { "killed syncs" } else { "syncs" }, 1)?;
            }
            Ok(())
        }));
        for one in all {
            one.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })?;
    let mut counts = counts.into_inner().map_err(|_| "a thread panicked")?;
    let done = done.into_inner().map_err(|_| "a thread panicked")?;
    checks.that(done.faults.is_empty(), || format!("{:?}", done.faults));
    counts.add("notes by servers", done.notes.len());
    let counted = look(&sandbox, &mut counts, checks);
    for (what, count) in &counts.rows {
        report(&format!("{what:<28} {count:>8}"));
    }
    counted?;
    is_all_there(&sandbox, &done.notes, &remote, checks)
}

fn count(counts: &Mutex<Counts>, what: &'static str, number: usize) -> Result {
    counts
        .lock()
        .map_err(|_| "a thread panicked")?
        .add(what, number);
    Ok(())
}

/// Plays a whole session. With random numbers, some hooks are disturbed and then run again.
fn session(
    sandbox: &Sandbox,
    id: &str,
    mut random: Option<&mut Random>,
    counts: &Mutex<Counts>,
) -> Result {
    let client = Client::start()?;
    for step in script::session(sandbox, id) {
        let fate = match random.as_mut().map_or(9, |random| random.below(10)) {
            0 => Fate::Killed,
            1 => Fate::FullDisk,
            _ => Fate::Undisturbed,
        };
        let what = match (fate, random.as_mut()) {
            (Fate::Killed, Some(random)) => {
                let limit = Duration::from_millis(random.below(60));
                end(&mut hook(sandbox, &step, &client)?, Some(limit))?;
                "killed hooks"
            }
            (Fate::FullDisk, Some(random)) => {
                let limit = LIMITS[random.index(LIMITS.len())];
                let mut limited = limited(sandbox, &step.payload, limit)?;
                limited.env("CLAUDE_PID", client.id());
                let output = end(&mut limited, None)?;
                if !output.status.success() {
                    return Err(format!(
                        "a hook on a full disk: {}",
                        describe_run(&["hook"], &output)
                    )
                    .into());
                }
                "hooks on a full disk"
            }
            _ => "hooks",
        };
        count(counts, what, 1)?;
        if what != "hooks" {
            count(counts, "hooks", 1)?;
        }
        let mut whole = hook(sandbox, &step, &client)?;
        whole.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let output = end(&mut whole, None)?;
        if !output.status.success() {
            return Err(describe_run(&["hook"], &output).into());
        }
    }
    let mut counts = counts.lock().map_err(|_| "a thread panicked")?;
    counts.sessions.push(id.to_owned());
    counts.add("sessions", 1);
    Ok(())
}

/// Returns a hook whose files cannot grow beyond so many blocks.
fn limited(sandbox: &Sandbox, payload: &[u8], blocks: u64) -> Result<Command> {
    let whole = sandbox.command(&["hook"], payload)?;
    let mut limited = Command::new("/bin/sh");
    // Without the trap the signal would end the process at its first write.
    let script = r#"trap "" XFSZ; ulimit -f "$1"; exec "$2" hook"#;
    limited.args(["-c", script, "sh", &blocks.to_string()]);
    limited.arg(whole.get_program()).env_clear();
    for (name, value) in whole.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    // A pipe holds the payload, and is not a file that the limit counts.
    let input = sandbox
        .root()
        .join(format!("payload-{:?}", thread::current().id()));
    std::fs::write(&input, payload).map_err(at(&input))?;
    limited
        .current_dir(sandbox.project())
        .stdin(std::fs::File::open(&input).map_err(at(&input))?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(limited)
}

/// Runs a process to its end, or kills it after a time.
fn end(command: &mut Command, limit: Option<Duration>) -> Result<Output> {
    let mut child = command.spawn()?;
    if let Some(limit) = limit {
        thread::sleep(limit);
        // It may have ended.
        let _ = child.kill();
    }
    Ok(child.wait_with_output()?)
}

/// Counts what there is: every event once, one note per session, nothing pending.
fn look(sandbox: &Sandbox, counts: &mut Counts, checks: &mut Checks) -> Result {
    sandbox.wait_for_work()?;
    sandbox.age_leftovers()?;
    for _ in 0..4 {
        // A sync may be due, which needs git.
        let mut work = sandbox.command(&["work"], b"")?;
        work.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let output = end(&mut work, None)?;
        checks.that(output.status.success(), || describe_run(&["work"], &output));
    }
    let spool = Spool::new(sandbox.home());
    checks.that(spool.is_empty(), || {
        format!("{} records are pending", spool.len())
    });
    checks.that(spool.unreadable().is_empty(), || {
        "a record is unreadable".to_owned()
    });
    let records = Records::open(sandbox.home())?.ok_or("there is no journal")?;
    let damage = records.damage()?;
    checks.that(damage.is_none(), || format!("the journal: {damage:?}"));
    let sizes = |session: &str| -> Result<BTreeMap<String, usize>> {
        let rows = records.events_of(session)?.into_iter();
        Ok(rows.map(|(mark, rows)| (mark, rows.len())).collect())
    };
    let expected = sizes(REFERENCE)?;
    let notes = sandbox.notes();
    for id in &counts.sessions.clone() {
        let found = sizes(id)?;
        counts.add("records", found.values().sum());
        for (mark, rows) in &expected {
            let there = found.get(mark).copied().unwrap_or(0);
            counts.add("lost records", rows.saturating_sub(there));
            counts.add("double records", there.saturating_sub(*rows));
            checks.that(there == *rows, || {
                format!("{id} {mark} has {there} of {rows} rows")
            });
        }
        let halves = records.halves(id)?;
        checks.that(halves.is_none(), || format!("{halves:?}"));
        let is_noted = records.is_noted(id)?;
        let note = notes.find(NoteId::of_session(id));
        let is_there = is_noted && note.is_some_and(|path| notes.read(path).is_ok());
        counts.add("notes of sessions", usize::from(is_there));
        checks.that(is_there, || {
            format!("the note of {id} is missing or behind")
        });
    }
    let listed = notes.list().notes.into_iter();
    let episodic = listed.filter(|(path, _)| path.folder == NoteType::Episodic);
    let (episodic, sessions) = (episodic.count(), counts.sessions.len());
    counts.add("double notes", episodic.saturating_sub(sessions));
    checks.that(episodic == sessions, || {
        format!("{sessions} sessions have {episodic} notes")
    });
    sandbox.heals(checks)
}
