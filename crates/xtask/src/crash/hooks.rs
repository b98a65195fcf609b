//! SIGKILL at random moments of the hooks of sessions of a hundred events.
//!
//! Every hook that exited with 0 has its event in the records, once and whole; one that was killed
//! has it whole or not at all. What whole is, the same session says where nobody was killed. A part
//! of the killed hooks is run again, so that what was stored before must not be stored twice.
//!
//! The program that kills and the ones that are killed share one processor, so that whoever waits
//! for a moment runs as soon as it has come: the last byte of an answer leaves a process little to do.

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

/// How many kills have to fall into each moment.
const WANTED: usize = 20;

/// Where a kill fell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// `journal.db` was not open yet.
    BeforeOpen,
    /// It was open, and nothing was being written.
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

/// How one run of a hook ended.
enum Ended {
    Well,
    Killed,
}

/// A process that stands for Claude Code; when it is dropped, its sessions are lost.
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

    /// Its number, as hooks are given it.
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
    /// How long each killed process had run, by where that was.
    observed: BTreeMap<Moment, Vec<Duration>>,
    /// How long a hook takes when it is left alone.
    usual: Duration,
    kills: BTreeMap<Moment, usize>,
    sent: usize,
    again: usize,
    stored: usize,
    doubled: usize,
    lost: usize,
    /// Hooks that stored what they had to, those that were killed after it included.
    runs: i64,
}

/// The task.
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
        // The same folders and another store: what is stored is the same, byte for byte.
        let undisturbed = tempfile::tempdir()?;
        let reference =
            Sandbox::with_store(sandbox.root(), binary, &undisturbed.path().join("store"))?;
        let whole = run.play_undisturbed(&reference, &session, checks)?;
        run.play(&session, &whole, checks)?;
        sessions.push(session);
    }
    run.look_at_the_end(&sessions, checks)?;
    run.summary(sessions.len(), checks);
    Ok(())
}

/// Keeps this process and what it starts on one processor.
fn share_a_processor() -> Result {
    let mut one = CpuSet::new();
    one.set(0);
    sched_setaffinity(None, &one)?;
    Ok(())
}

impl Run<'_> {
    /// Plays a session to its end and returns what it leaves, by mark.
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
        let whole = records.of(session)?;
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
        // What a hook said to be well about.
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
        // One that runs already may have looked for lost sessions before this one was.
        self.sandbox.wait_for_work()?;
        self.sandbox.succeeds(&["work"], b"", checks)?;
        self.look_at_a_session(session, whole, &told, is_ended, checks)
    }

    /// Runs the hook of an event, to its end or to a kill.
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
                // The answer is one write, and nothing comes after it.
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
        let look = seen.ok_or("a process was killed that had ended")?;
        checks.that(look.sockets == 0, || {
            format!("{} has a socket open", step.name)
        });
        checks.that(has_stored || printed.is_empty(), || {
            format!("{} {} answered before it had stored", step.name, step.mark)
        });
        self.look_for_damage(checks)?;
        let moment = moment(look, has_stored, !printed.is_empty());
        *self.kills.entry(moment).or_default() += 1;
        self.observed.entry(moment).or_default().push(ran);
        Ok(Ended::Killed)
    }

    /// Draws how long a process may run: anywhere, or where the rarest moment is to be expected.
    fn draw_delay(&mut self) -> Duration {
        let (rarest, _) = self.rarest();
        let middle = |moment| {
            let mut seen = self.observed.get(&moment).cloned().unwrap_or_default();
            seen.sort_unstable();
            seen.get(seen.len() / 2).copied()
        };
        let span = match rarest {
            // A short one, between two that are easier to meet.
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

    /// Compares what a session left with what it leaves undisturbed.
    fn look_at_a_session(
        &mut self,
        session: &str,
        whole: &BTreeMap<String, Vec<String>>,
        told: &BTreeSet<String>,
        is_ended: bool,
        checks: &mut Checks,
    ) -> Result {
        let records = Records::open(self.sandbox.home())?.ok_or("there are no records")?;
        let halves = records.halves(session)?;
        checks.that(halves.is_none(), || halves.unwrap_or_default());
        let found = records.of(session)?;
        for (mark, rows) in &found {
            self.stored += 1;
            let copies = rows.len().saturating_sub(1);
            self.doubled += copies;
            checks.that(copies == 0, || {
                format!("{session} {mark} is there twice: {rows:?}")
            });
            checks.that(
                whole
                    .get(mark)
                    .is_some_and(|whole| rows.iter().all(|row| whole.contains(row))),
                || format!("{session} {mark} is not whole: {rows:?}"),
            );
        }
        for mark in told.iter().filter(|mark| whole.contains_key(*mark)) {
            let is_there = found.contains_key(mark);
            self.lost += usize::from(!is_there);
            checks.that(is_there, || {
                format!("{session} {mark} was stored, and is lost")
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
            format!("{session} is not closed as it should be: {end:?}")
        });
        let is_noted = records.is_noted(session)?;
        checks.that(is_noted, || {
            format!("the note of {session} is not of its last state")
        });
        let notes = self.sandbox.notes();
        let note = notes.find(NoteId::of_session(session));
        checks.that(note.is_some_and(|path| notes.read(path).is_ok()), || {
            format!("{session} has no note that can be read")
        });
        Ok(())
    }

    /// Looks at what all sessions left together.
    fn look_at_the_end(&mut self, sessions: &[String], checks: &mut Checks) -> Result {
        self.sandbox.heals(checks)?;
        self.look_for_damage(checks)?;
        let home = self.sandbox.home();
        let spooled = self.spooled();
        checks.that(spooled == 0, || format!("{spooled} records wait in spool/"));
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
        checks.that(faults.is_empty(), || format!("the log says {faults:?}"));
        let private = self.sandbox.files_with(script::PRIVATE.as_bytes());
        checks.that(private.is_empty(), || {
            format!("what is private is in {private:?}")
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
            format!("{rarest}: hit {count} times only")
        });
    }
}

/// The hook of an event, as the client starts it.
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
