//! Kills hooks of sessions of a hundred events with SIGKILL at random moments.
//!
//! The event of every hook that exited with 0 must be in the journal once and complete. A killed
//! hook's event must be complete or absent. The expected rows come from the same session without
//! kills. Some killed hooks are run again and must not store their event twice.
//!
//! The killer and the hooks share one processor, so that a process that waits for a moment runs as
//! soon as it comes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::Read as _,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anamnesis_lab::random::Random;
use anamnesis_note::id::NoteId;
use anamnesis_store::spool::Spool;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::{
    Checks,
    kills::milliseconds,
    records::Records,
    report,
    sandbox::Sandbox,
    script::{self, Step},
    stopped::{self, Look},
};
use crate::Result;

/// The kills needed for each moment.
const WANTED: usize = 20;

/// The moment of a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// `journal.db` was not open.
    BeforeOpen,
    /// `journal.db` was open and nothing was being written.
    BeforeTransaction,
    Inside,
    AfterCommit,
    AfterPrint,
}

const MOMENTS: [Moment; 5] = [
    Moment::BeforeOpen,
    Moment::BeforeTransaction,
    Moment::Inside,
    Moment::AfterCommit,
    Moment::AfterPrint,
];

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::BeforeOpen => "before open",
            Self::BeforeTransaction => "open, before the transaction",
            Self::Inside => "inside the transaction",
            Self::AfterCommit => "after commit",
            Self::AfterPrint => "after print",
        })
    }
}

/// How a hook ended.
enum Ended {
    Well,
    Killed,
}

/// A process that stands for Claude Code. Its sessions are lost when it is dropped.
pub(super) struct Client(Child);

impl Client {
    pub(super) fn start() -> Result<Self> {
        let child = Command::new("sleep")
            .arg("3600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self(child))
    }

    /// Returns the process id as hooks receive it.
    pub(super) fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It cannot have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Run<'a> {
    sandbox: &'a Sandbox,
    random: Random,
    /// The running time of each killed process, by the moment that was hit.
    observed: BTreeMap<Moment, Vec<Duration>>,
    /// The duration of an undisturbed hook.
    usual: Duration,
    kills: BTreeMap<Moment, usize>,
    sent: usize,
    again: usize,
    stored: usize,
    doubled: usize,
    lost: usize,
    /// Number of hooks that stored their event, including those killed after it.
    runs: i64,
}

/// Runs the scenario.
pub(super) fn run(
    folder: &Path,
    binary: &Path,
    kills: usize,
    seed: u64,
    checks: &mut Checks,
) -> Result {
    share_a_processor()?;
    let sandbox = Sandbox::new(folder, binary)?;
    let mut run = Run {
        sandbox: &sandbox,
        random: Random::new(seed),
        observed: BTreeMap::new(),
        usual: Duration::ZERO,
        kills: BTreeMap::new(),
        sent: 0,
        again: 0,
        stored: 0,
        doubled: 0,
        lost: 0,
        runs: 0,
    };
    let mut sessions = Vec::new();
    while run.killed() < kills || (run.rarest().1 < WANTED && run.killed() < 5 * kills) {
        let session = format!("session-{}", sessions.len());
        // The same folders with another store, so that the stored bytes are equal.
        let undisturbed = tempfile::tempdir()?;
        let reference =
            Sandbox::with_store(sandbox.root(), binary, &undisturbed.path().join("store"))?;
        let whole = run.play_undisturbed(&reference, &session, checks)?;
        run.play(&session, &whole, checks)?;
        sessions.push(session);
    }
    run.check_all_sessions(&sessions, checks)?;
    run.summary(sessions.len(), checks);
    Ok(())
}

/// Pins this process and its children to one processor.
fn share_a_processor() -> Result {
    let mut one = CpuSet::new();
    one.set(0);
    sched_setaffinity(None, &one)?;
    Ok(())
}

impl Run<'_> {
    /// Plays a session without kills and returns its rows by mark.
    fn play_undisturbed(
        &mut self,
        sandbox: &Sandbox,
        session: &str,
        checks: &mut Checks,
    ) -> Result<BTreeMap<String, Vec<String>>> {
        let client = Client::start()?;
        let mut times = Vec::new();
        for step in script::session(sandbox, session) {
            let began = Instant::now();
            hook(sandbox, &step, &client)?.output()?;
            times.push(began.elapsed());
        }
        sandbox.wait_for_work()?;
        times.sort_unstable();
        self.usual = times[times.len() / 2];
        let records =
            Records::open(sandbox.home())?.ok_or("an undisturbed session left nothing")?;
        let whole = records.events_of(session)?;
        checks.that(whole.values().all(|rows| rows.len() == 1), || {
            "an undisturbed session has rows of the same event".to_owned()
        });
        Ok(whole)
    }

    /// Plays a session and kills about every other hook.
    fn play(
        &mut self,
        session: &str,
        whole: &BTreeMap<String, Vec<String>>,
        checks: &mut Checks,
    ) -> Result {
        let client = Client::start()?;
        // The events whose hooks exited with 0.
        let mut told: BTreeSet<String> = BTreeSet::new();
        let mut is_ended = false;
        for step in script::session(self.sandbox, session) {
            self.sent += 1;
            let strikes = self.random.below(2) == 0;
            let mut ended = self.send(&step, &client, strikes, checks)?;
            if matches!(ended, Ended::Killed) && self.random.below(2) == 0 {
                self.again += 1;
                ended = self.send(&step, &client, false, checks)?;
            }
            if matches!(ended, Ended::Well) {
                is_ended |= step.name == "SessionEnd";
                told.insert(step.mark);
            }
        }
        drop(client);
        // A process that is running may have looked for lost sessions before this one was lost.
        self.sandbox.wait_for_work()?;
        self.sandbox.succeeds(&["work"], b"", checks)?;
        self.check_session(session, whole, &told, is_ended, checks)
    }

    /// Runs the hook of an event to its end or until it is killed.
    fn send(
        &mut self,
        step: &Step,
        client: &Client,
        strikes: bool,
        checks: &mut Checks,
    ) -> Result<Ended> {
        let before = Records::hook_runs(self.sandbox.home())?;
        let waiting = self.spooled();
        let mut child = hook(self.sandbox, step, client)?.spawn()?;
        let mut printed = Vec::new();
        let mut seen = None;
        let mut ran = Duration::ZERO;
        if strikes {
            let began = Instant::now();
            if self.rarest().0 == Moment::AfterPrint
                && let Some(stdout) = &mut child.stdout
            {
                // The answer is one write, and the hook does nothing after it.
                let mut first = [0; 1];
                let length = stdout.read(&mut first)?;
                printed.extend_from_slice(&first[..length]);
            } else {
                thread::sleep(self.draw_delay());
            }
            ran = began.elapsed();
            seen = stopped::stop(&child)?;
            child.kill()?;
        }
        let output = child.wait_with_output()?;
        printed.extend_from_slice(&output.stdout);
        checks.that(output.stderr.is_empty(), || {
            format!("{}: {}", step.name, String::from_utf8_lossy(&output.stderr))
        });
        let runs = Records::hook_runs(self.sandbox.home())? - before;
        let has_stored = runs > 0 || self.spooled() > waiting;
        self.runs += runs;
        if output.status.signal().is_none() {
            checks.that(output.status.success(), || {
                format!("{} exited with {}", step.name, output.status)
            });
            checks.that(has_stored, || {
                format!("{} {} exited and stored nothing", step.name, step.mark)
            });
            return Ok(Ended::Well);
        }
        let look = seen.ok_or("the killed process had already ended")?;
        checks.that(look.sockets == 0, || {
            format!("{} has a socket open", step.name)
        });
        checks.that(has_stored || printed.is_empty(), || {
            format!(
                "{} {} answered before it had stored its event",
                step.name, step.mark
            )
        });
        self.look_for_damage(checks)?;
        let moment = moment(look, has_stored, !printed.is_empty());
        *self.kills.entry(moment).or_default() += 1;
        self.observed.entry(moment).or_default().push(ran);
        Ok(Ended::Killed)
    }

    /// Draws a running time: anywhere, or near the rarest moment.
    fn draw_delay(&mut self) -> Duration {
        let (rarest, _) = self.rarest();
        let middle = |moment| {
            let mut seen = self.observed.get(&moment).cloned().unwrap_or_default();
            seen.sort_unstable();
            seen.get(seen.len() / 2).copied()
        };
        let span = match rarest {
            // A short moment between two that are hit more often.
            Moment::AfterCommit => middle(Moment::Inside).zip(middle(Moment::AfterPrint)),
            _ => middle(rarest).map(|middle| (middle.mul_f64(0.95), middle.mul_f64(1.05))),
        };
        match span {
            Some((from, to)) if self.random.below(3) > 0 => {
                from + to.saturating_sub(from).mul_f64(self.random.fraction())
            }
            _ => self.usual.mul_f64(1.2 * self.random.fraction()),
        }
    }

    fn look_for_damage(&self, checks: &mut Checks) -> Result {
        if let Some(records) = Records::open(self.sandbox.home())? {
            let damage = records.damage()?;
            checks.that(damage.is_none(), || {
                format!("journal.db: {}", damage.unwrap_or_default())
            });
        }
        Ok(())
    }

    /// Compares a session's rows with those of the undisturbed session.
    fn check_session(
        &mut self,
        session: &str,
        whole: &BTreeMap<String, Vec<String>>,
        told: &BTreeSet<String>,
        is_ended: bool,
        checks: &mut Checks,
    ) -> Result {
        let records = Records::open(self.sandbox.home())?.ok_or("there is no journal")?;
        let halves = records.halves(session)?;
        checks.that(halves.is_none(), || halves.unwrap_or_default());
        let found = records.events_of(session)?;
        for (mark, rows) in &found {
            self.stored += 1;
            let copies = rows.len().saturating_sub(1);
            self.doubled += copies;
            checks.that(copies == 0, || {
                format!("{session} {mark} is stored twice: {rows:?}")
            });
            checks.that(
                whole
                    .get(mark)
                    .is_some_and(|whole| rows.iter().all(|row| whole.contains(row))),
                || format!("{session} {mark} is incomplete: {rows:?}"),
            );
        }
        for mark in told.iter().filter(|mark| whole.contains_key(*mark)) {
            let is_there = found.contains_key(mark);
            self.lost += usize::from(!is_there);
            checks.that(is_there, || {
                format!("{session} {mark} was stored and is lost")
            });
        }
        let end = records.end_of(session)?;
        let reason = end.as_ref().and_then(|(_, reason)| reason.as_deref());
        let is_closed = end.as_ref().is_some_and(|(state, _)| state == "completed")
            && matches!(
                (reason, is_ended),
                (Some("other"), _) | (Some("lost"), false)
            );
        checks.that(is_closed, || {
            format!("{session} was not closed correctly: {end:?}")
        });
        let is_noted = records.is_noted(session)?;
        checks.that(is_noted, || format!("the note of {session} is out of date"));
        let notes = self.sandbox.notes();
        let note = notes.find(NoteId::of_session(session));
        checks.that(note.is_some_and(|path| notes.read(path).is_ok()), || {
            format!("{session} has no readable note")
        });
        Ok(())
    }

    /// Checks the state that all sessions left together.
    fn check_all_sessions(&mut self, sessions: &[String], checks: &mut Checks) -> Result {
        self.sandbox.heals(checks)?;
        self.look_for_damage(checks)?;
        let home = self.sandbox.home();
        let spooled = self.spooled();
        checks.that(spooled == 0, || {
            format!("{spooled} records are pending in spool/")
        });
        let runs = Records::hook_runs(home)?;
        checks.that(runs == self.runs, || {
            format!(
                "{runs} runs of hooks are counted, and {} stored something",
                self.runs
            )
        });
        let notes = self.sandbox.notes().list().notes.len();
        checks.that(notes == sessions.len(), || {
            format!("{} sessions have {notes} notes", sessions.len())
        });
        let faults = self.sandbox.faults();
        checks.that(faults.is_empty(), || format!("the log reports {faults:?}"));
        let private = self.sandbox.files_with(script::PRIVATE.as_bytes());
        checks.that(private.is_empty(), || {
            format!("private text is in {private:?}")
        });
        Ok(())
    }

    fn spooled(&self) -> usize {
        Spool::new(self.sandbox.home()).len()
    }

    fn killed(&self) -> usize {
        self.kills.values().sum()
    }

    fn rarest(&self) -> (Moment, usize) {
        MOMENTS
            .map(|moment| (moment, self.kills.get(&moment).copied().unwrap_or(0)))
            .into_iter()
            .min_by_key(|(_, count)| *count)
            .unwrap_or((Moment::Inside, 0))
    }

    fn summary(&self, sessions: usize, checks: &mut Checks) {
        report(&format!(
            "{sessions} sessions of {} events; a hook takes {:.1} ms undisturbed",
            script::EVENTS,
            milliseconds(self.usual)
        ));
        report(&format!(
            "{} events sent, {} of them again after a kill; {} of the {sessions} sessions' rows stored, {} lost, {} doubled",
            self.sent, self.again, self.stored, self.lost, self.doubled
        ));
        let fell: Vec<String> = MOMENTS
            .iter()
            .map(|moment| format!("{} {moment}", self.kills.get(moment).copied().unwrap_or(0)))
            .collect();
        report(&format!("{} killed: {}", self.killed(), fell.join(", ")));
        let (rarest, count) = self.rarest();
        checks.that(count >= WANTED, || {
            format!("{rarest}: hit only {count} times")
        });
    }
}

/// Returns the hook of an event, as the client starts it.
pub(super) fn hook(sandbox: &Sandbox, step: &Step, client: &Client) -> Result<Command> {
    let mut command = sandbox.command(&["hook"], &step.payload)?;
    command.env("CLAUDE_PID", client.id());
    Ok(command)
}

fn moment(look: Look, has_stored: bool, has_printed: bool) -> Moment {
    if has_printed {
        Moment::AfterPrint
    } else if look.is_writing {
        Moment::Inside
    } else if has_stored {
        Moment::AfterCommit
    } else if look.has_journal {
        Moment::BeforeTransaction
    } else {
        Moment::BeforeOpen
    }
}
