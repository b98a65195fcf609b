//! Runs many hooks at once: without a store, and against a process that reads the journal or holds
//! its write lock for ten seconds. Afterwards no process, socket or lock may be left.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::FileTypeExt as _},
    path::Path,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use anamnesis_store::{
    fs::lock::{self, Subject},
    spool::Spool,
};
use rusqlite::Connection;

use super::{
    Checks,
    hooks::{Client, hook},
    kills::milliseconds,
    records::Records,
    report,
    sandbox::Sandbox,
    script::{self, Step},
    stopped,
};
use crate::Result;

const ROUNDS: usize = 10;

/// Number of sessions that begin at once, and of events of each at once.
const SESSIONS: usize = 8;
const EVENTS: usize = 4;

/// Number of sessions that run while another process holds the journal.
const BESIDE: usize = 4;

/// How long the journal is held.
const KEPT: Duration = Duration::from_secs(10);

/// The maximum duration of a hook.
const DEADLINE: Duration = Duration::from_millis(1200);

/// The deferred process must have ended after this time.
const QUIET: Duration = Duration::from_secs(5);

/// Runs the scenario.
pub(super) fn run(folder: &Path, binary: &Path, checks: &mut Checks) -> Result {
    let mut schemas = Vec::new();
    for round in 0..ROUNDS {
        let sandbox = Sandbox::with_store(folder, binary, &folder.join(format!("store-{round}")))?;
        schemas.push(begin_together(&sandbox, checks)?);
    }
    schemas.dedup();
    checks.that(schemas.len() == 1, || {
        format!("{} schemas were created", schemas.len())
    });
    report(&format!(
        "{} hooks of {SESSIONS} sessions at once on no store: {ROUNDS} rounds",
        SESSIONS * EVENTS
    ));
    beside_a_reader(
        &Sandbox::with_store(folder, binary, &folder.join("read"))?,
        checks,
    )?;
    beside_a_writer(
        &Sandbox::with_store(folder, binary, &folder.join("written"))?,
        checks,
    )?;
    leaves_nothing(
        &Sandbox::with_store(folder, binary, &folder.join("quiet"))?,
        checks,
    )
}

/// Sends the first events of eight sessions at once, before there is a store. Returns the schema.
fn begin_together(sandbox: &Sandbox, checks: &mut Checks) -> Result<String> {
    let client = Client::start()?;
    let mut started = Vec::new();
    for session in 0..SESSIONS {
        for step in script::session(sandbox, &name(session)).iter().take(EVENTS) {
            started.push((step.name, hook(sandbox, step, &client)?.spawn()?));
        }
    }
    for (name, child) in started {
        let output = child.wait_with_output()?;
        checks.that(output.status.success() && output.stderr.is_empty(), || {
            format!(
                "{name}: {}, {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )
        });
    }
    let spooled = Spool::new(sandbox.home()).len();
    checks.that(spooled == 0, || {
        format!("{spooled} hooks had to use the spool")
    });
    sandbox.wait_for_work()?;
    let records = Records::open(sandbox.home())?.ok_or("no journal was created")?;
    let damage = records.damage()?;
    checks.that(damage.is_none(), || damage.unwrap_or_default());
    let runs = Records::hook_runs(sandbox.home())?;
    checks.that(usize::try_from(runs) == Ok(SESSIONS * EVENTS), || {
        format!("{runs} of {} hooks stored something", SESSIONS * EVENTS)
    });
    for session in 0..SESSIONS {
        let halves = records.halves(&name(session))?;
        checks.that(halves.is_none(), || halves.unwrap_or_default());
        let found = records.events_of(&name(session))?;
        // The start leaves no row with a mark.
        let all_once = found.len() == EVENTS - 1 && found.values().all(|rows| rows.len() == 1);
        checks.that(all_once, || format!("{} has {found:?}", name(session)));
    }
    has_no_fault(sandbox, checks);
    Ok(records
        .texts(
            "SELECT coalesce(sql, name) FROM sqlite_schema WHERE ?1 <> '' ORDER BY type, name",
            "all",
        )?
        .join(";"))
}

fn beside_a_reader(sandbox: &Sandbox, checks: &mut Checks) -> Result {
    let clients = Clients::begin(sandbox)?;
    let reader = Connection::open(sandbox.home().journal())?;
    reader.execute_batch("BEGIN")?;
    let () = reader.query_row("SELECT count(*) FROM tool_event", [], |_| Ok(()))?;
    let went = clients.go_on(sandbox, KEPT)?;
    let spooled = Spool::new(sandbox.home()).len();
    reader.execute_batch("ROLLBACK")?;
    drop(reader);
    went.tell("beside a reader", spooled, checks);
    checks.that(spooled == 0, || {
        format!("{spooled} hooks had to wait for a reader")
    });
    went.is_all_there(sandbox, checks)?;
    has_no_fault(sandbox, checks);
    Ok(())
}

fn beside_a_writer(sandbox: &Sandbox, checks: &mut Checks) -> Result {
    let clients = Clients::begin(sandbox)?;
    let writer = Connection::open(sandbox.home().journal())?;
    writer.execute_batch("BEGIN IMMEDIATE")?;
    let went = clients.go_on(sandbox, KEPT)?;
    let waiting = Spool::new(sandbox.home()).len();
    writer.execute_batch("ROLLBACK")?;
    drop(writer);
    went.tell("beside a writer", waiting, checks);
    checks.that(waiting == went.times.len(), || {
        format!(
            "{} hooks left {waiting} records in spool/",
            went.times.len()
        )
    });
    // Each of the next hooks stores fifty records from the spool.
    let rounds = waiting.div_ceil(50);
    let client = Client::start()?;
    for step in script::session(sandbox, "later").iter().take(rounds) {
        hook(sandbox, step, &client)?.output()?;
    }
    let left = Spool::new(sandbox.home()).len();
    checks.that(left == 0, || {
        format!("{left} records are pending after {rounds} more hooks")
    });
    went.is_all_there(sandbox, checks)
}

/// The clients of some sessions.
struct Clients(Vec<Client>);

/// The results of some sessions' hooks.
struct Went {
    times: Vec<Duration>,
    /// Each session's marks, in the order in which they were sent.
    sent: BTreeMap<String, Vec<String>>,
    failed: usize,
}

impl Clients {
    /// Starts the sessions, which creates the store.
    fn begin(sandbox: &Sandbox) -> Result<Self> {
        let clients: Vec<Client> = (0..BESIDE)
            .map(|_| Client::start())
            .collect::<Result<_>>()?;
        for (session, client) in clients.iter().enumerate() {
            for step in script::session(sandbox, &name(session)).iter().take(2) {
                hook(sandbox, step, client)?.output()?;
            }
        }
        sandbox.wait_for_work()?;
        Ok(Self(clients))
    }

    /// Continues all sessions at once for some time. Each session sends one event after the other.
    fn go_on(&self, sandbox: &Sandbox, time: Duration) -> Result<Went> {
        let went = Mutex::new(Went {
            times: Vec::new(),
            sent: BTreeMap::new(),
            failed: 0,
        });
        let began = Instant::now();
        thread::scope(|scope| -> Result {
            let sessions: Vec<_> = self
                .0
                .iter()
                .enumerate()
                .map(|(session, client)| {
                    let went = &went;
                    scope.spawn(move || -> Result {
                        let steps = script::session(sandbox, &name(session));
                        // The last step is the session's end.
                        for step in &steps[2..script::EVENTS - 1] {
                            if began.elapsed() >= time {
                                break;
                            }
                            let (took, is_well) = timed(sandbox, step, client)?;
                            let mut went = went.lock().map_err(|_| "a session panicked")?;
                            went.times.push(took);
                            went.failed += usize::from(!is_well);
                            went.sent
                                .entry(name(session))
                                .or_default()
                                .push(step.mark.clone());
                        }
                        Ok(())
                    })
                })
                .collect();
            for session in sessions {
                session.join().map_err(|_| "a session panicked")??;
            }
            Ok(())
        })?;
        // Waits if the sessions' events took less than the time.
        thread::sleep(time.saturating_sub(began.elapsed()));
        went.into_inner().map_err(|_| "a session panicked".into())
    }
}

fn timed(sandbox: &Sandbox, step: &Step, client: &Client) -> Result<(Duration, bool)> {
    let mut command = hook(sandbox, step, client)?;
    let began = Instant::now();
    let output = command.output()?;
    Ok((
        began.elapsed(),
        output.status.success() && output.stderr.is_empty(),
    ))
}

impl Went {
    fn tell(&self, when: &str, spooled: usize, checks: &mut Checks) {
        let mut times = self.times.clone();
        times.sort_unstable();
        let worst = times.last().copied().unwrap_or_default();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        report(&format!(
            "{when}: {} hooks, {spooled} spooled, median {:.1} ms, worst {:.1} ms",
            times.len(),
            milliseconds(median),
            milliseconds(worst)
        ));
        checks.that(self.failed == 0, || {
            format!("{when}: {} hooks failed", self.failed)
        });
        checks.that(worst < DEADLINE, || {
            format!("{when}: a hook took {} ms", worst.as_millis())
        });
    }

    /// Checks that every event with a row is there once, in the order of sending.
    fn is_all_there(&self, sandbox: &Sandbox, checks: &mut Checks) -> Result {
        sandbox.wait_for_work()?;
        let records = Records::open(sandbox.home())?.ok_or("there is no journal")?;
        for (session, sent) in &self.sent {
            let left = script::leaving(sandbox, session);
            let found = records.events_of(session)?;
            for mark in sent.iter().filter(|mark| left.contains(*mark)) {
                let count = found.get(mark).map_or(0, Vec::len);
                checks.that(count == 1, || {
                    format!("{session} {mark} is stored {count} times")
                });
            }
            let tools = records.texts(
                "SELECT substr(coalesce(input, ''), instr(coalesce(input, ''), 'mark-'), 8)
                 FROM tool_event WHERE session = ? ORDER BY number",
                session,
            )?;
            checks.that(tools.is_sorted(), || {
                format!("{session}: the tools' order is {tools:?}")
            });
        }
        Ok(())
    }
}

/// Checks that five seconds after the deferred process has ended no process, socket or lock is
/// left.
fn leaves_nothing(sandbox: &Sandbox, checks: &mut Checks) -> Result {
    let client = Client::start()?;
    sandbox.plant(2000)?;
    for step in script::session(sandbox, &name(0)) {
        hook(sandbox, &step, &client)?.output()?;
    }
    drop(client);
    sandbox.wait_for_work()?;
    // Starts the deferred process once more, to watch it.
    let mut work = sandbox.command(&["work"], b"")?.spawn()?;
    let (mut looks, mut sockets) = (0, 0);
    while work.try_wait()?.is_none() {
        // It may end at this moment.
        if let Ok(look) = stopped::look(work.id()) {
            looks += 1;
            sockets += look.sockets;
        }
        thread::sleep(Duration::from_millis(1));
    }
    checks.that(looks > 0 && sockets == 0, || {
        format!("the deferred process had {sockets} sockets open in {looks} looks")
    });
    thread::sleep(QUIET);
    let running = processes_of(sandbox.home().root());
    checks.that(running.is_empty(), || {
        format!("processes still running: {running:?}")
    });
    for subject in [
        Subject::Notes,
        Subject::Index,
        Subject::Journal,
        Subject::Work,
        Subject::Config,
    ] {
        let is_free = lock::acquire(sandbox.home(), subject, Duration::ZERO)?.is_some();
        checks.that(is_free, || format!("{subject:?} is locked"));
    }
    for database in [sandbox.home().journal(), sandbox.home().index()] {
        let connection = Connection::open(&database)?;
        connection.busy_timeout(Duration::ZERO)?;
        let locked = connection.execute_batch("BEGIN EXCLUSIVE; ROLLBACK;").err();
        checks.that(locked.is_none(), || {
            format!("{}: {locked:?}", database.display())
        });
    }
    let records = Records::open(sandbox.home())?.ok_or("there is no journal")?;
    let open = records.number("SELECT count(*) FROM job WHERE state <> 'done'")?;
    checks.that(open == 0, || format!("{open} jobs are open"));
    let sockets = sandbox
        .files()
        .iter()
        .filter(|path| fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket()))
        .count();
    checks.that(sockets == 0, || {
        format!("the store contains {sockets} sockets")
    });
    report(&format!(
        "{} s after the deferred process: {} processes, {sockets} sockets, {open} jobs, no lock; \
         looked at {looks} times while it ran",
        QUIET.as_secs(),
        running.len()
    ));
    Ok(())
}

/// Returns the processes whose environment names a folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.as_os_str().as_bytes();
    let named = |name: &OsStr| {
        fs::read(Path::new("/proc").join(name).join("environ"))
            .is_ok_and(|environment| environment.windows(folder.len()).any(|part| part == folder))
    };
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| named(name))
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// Checks that the log reports no failure.
fn has_no_fault(sandbox: &Sandbox, checks: &mut Checks) {
    let faults = sandbox.faults();
    checks.that(faults.is_empty(), || format!("the log reports {faults:?}"));
}

fn name(session: usize) -> String {
    format!("session-{session}")
}
