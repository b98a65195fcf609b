//! A watchdog that answers with the no-op object when a hook takes too long.

use std::{
    io::{self, Read, Write},
    mem,
    process::{self, ExitCode},
    sync::{
        Arc, Condvar, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use anamnesis_app::{
    context::Context,
    environment::{Caller, Environment},
    pause, spawn,
};
use anamnesis_session::{
    event::SessionEvent,
    hook::{HookOutput, MAX_PAYLOAD_LENGTH},
};
use anamnesis_store::{fs::home::Home, spool::Spool};
use chrono::{DateTime, Utc};

use super::{answer, typed::RunTyped};

/// After this time the hook answers with the no-op object, whatever it is doing.
const DEADLINE: Duration = Duration::from_millis(1100);

/// The deadline when nobody waits: the hook is measured, or the end of a session is asynchronous, and
/// writing the note may take longer.
pub(super) const UNAWAITED_DEADLINE: Duration = Duration::from_secs(60);

/// The deadline for a command that the person typed and waits for. The client allows 5 seconds.
pub(super) const TYPED_DEADLINE: Duration = Duration::from_secs(4);

/// How long a payload that was not read at the deadline is waited for after the answer.
const PAYLOAD_TIMEOUT: Duration = Duration::from_millis(90);

/// Timeout for logging a missed deadline.
const LOG_TIMEOUT: Duration = Duration::from_millis(50);

/// Timeout for storing the record of an event that was given up. A machine under heavy load needs
/// most of it. With the deadline and the other timeouts it is below the client's 5 seconds.
const RECORD_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout for handing the payload to another process.
const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(400);

/// The state of the event's record.
enum RecordState {
    /// The payload was not read yet: stdin may never close.
    Unread,
    /// The main thread has not made it yet.
    Expected,
    /// It is made, for this store, but not stored.
    Unstored(Home, Arc<SessionEvent>),
    /// It is stored, or the event has none.
    Settled,
}

/// The state of the record, which the main thread changes and the watchdog waits for.
struct RecordProgress {
    state: Mutex<RecordState>,
    changed: Condvar,
    /// The bytes from stdin, and the time of the event.
    payload: OnceLock<(io::Result<Vec<u8>>, DateTime<Utc>)>,
}

impl RecordProgress {
    fn new() -> Self {
        Self {
            state: Mutex::new(RecordState::Unread),
            changed: Condvar::new(),
            payload: OnceLock::new(),
        }
    }

    fn set(&self, state: RecordState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_all();
    }

    /// Waits a moment for the payload, and if it was read, until the record is made; then writes it to
    /// the spool unless it is stored. That it may also reach the journal does no harm: the same record
    /// twice gives the same rows.
    fn keep(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let read = self
            .changed
            .wait_timeout_while(state, PAYLOAD_TIMEOUT, |state| {
                matches!(state, RecordState::Unread)
            });
        let (state, _) = read.unwrap_or_else(PoisonError::into_inner);
        let made = self
            .changed
            .wait_while(state, |state| matches!(state, RecordState::Expected));
        let mut state = made.unwrap_or_else(PoisonError::into_inner);
        if let RecordState::Unstored(home, record) = mem::replace(&mut *state, RecordState::Settled)
        {
            drop(state);
            let _ = Spool::new(&home).keep(&record);
        }
    }
}

/// The main thread's side of the watchdog.
pub(super) struct Watchdog {
    sender: Sender<Duration>,
    record: Arc<RecordProgress>,
}

impl Watchdog {
    /// Sets another deadline.
    pub(super) fn extend(&self, deadline: Duration) {
        let _ = self.sender.send(deadline);
    }

    /// Has the record written to the spool at the deadline, unless [`Watchdog::release`] is called
    /// before.
    pub(super) fn hold(&self, home: &Home, record: &Arc<SessionEvent>) {
        let (home, record) = (home.clone(), Arc::clone(record));
        self.record.set(RecordState::Unstored(home, record));
    }

    /// Says that the record is stored.
    pub(super) fn release(&self) {
        self.record.set(RecordState::Settled);
    }
}

/// Handles the payload from `input` and answers in time. Without `run_typed`, another run of this event
/// ended before it had a record, and this one only records it.
///
/// The main thread does the work, because another thread would cost a memory arena and a wake-up.
pub(super) fn watched(
    run_typed: Option<RunTyped>,
    input: impl FnOnce() -> (Environment, io::Result<Vec<u8>>),
) -> ExitCode {
    let started = Instant::now();
    let answered = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let watchdog = Watchdog {
        sender,
        record: Arc::new(RecordProgress::new()),
    };
    let watch = thread::Builder::new().spawn({
        let (answered, record) = (Arc::clone(&answered), Arc::clone(&watchdog.record));
        move || watch(started, &receiver, &answered, record)
    });
    if watch.is_err() {
        // Without a watchdog, nothing that could hang may start.
        print(&HookOutput::default().to_json(""));
        return ExitCode::SUCCESS;
    }
    let (environment, payload) = input();
    if environment.has_slow_hooks || run_typed.is_none() {
        watchdog.extend(UNAWAITED_DEADLINE);
    }
    let record = Arc::clone(&watchdog.record);
    let (payload, _) = record.payload.get_or_init(|| (payload, environment.now));
    record.set(RecordState::Expected);
    let reply = answer(run_typed, environment, payload, started, &watchdog);
    // An event without a record did not say so.
    watchdog.release();
    if answered.swap(true, Ordering::AcqRel) {
        // The watchdog has just answered, and ends the process.
        loop {
            thread::park();
        }
    }
    print(&reply.output);
    if reply.start_work {
        let environment = Environment::read(Caller::Client);
        if let Err(error) = spawn::start_work(&environment, reply.check_index)
            && let Ok(context) = Context::new(environment, Duration::ZERO)
        {
            context.log(&format!("hook: cannot start the deferred process: {error}"));
        }
    }
    ExitCode::SUCCESS
}

/// Waits for the deadline, then prints the no-op object, keeps the record and ends the process.
#[expect(
    clippy::exit,
    reason = "the main thread hangs, so nobody else can end the process"
)]
fn watch(
    started: Instant,
    receiver: &Receiver<Duration>,
    answered: &AtomicBool,
    record: Arc<RecordProgress>,
) {
    let mut deadline = DEADLINE;
    loop {
        match receiver.recv_timeout(deadline.saturating_sub(started.elapsed())) {
            Ok(other) => deadline = other,
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
    if answered.swap(true, Ordering::AcqRel) {
        return;
    }
    print(&HookOutput::default().to_json(""));
    // The disk itself may hang, so each step has a timeout.
    let kept = Arc::clone(&record);
    if !in_time(RECORD_TIMEOUT, move || kept.keep()) {
        in_time(HAND_OVER_TIMEOUT, move || {
            if let Some((Ok(payload), now)) = record.payload.get() {
                // With the same time, what both record is recorded once.
                let mut environment = Environment::read(Caller::Client);
                environment.now = *now;
                // A process that cannot be started is like a disk that cannot be written.
                let _ = spawn::record_late(&environment, payload);
            }
        });
    }
    let elapsed = started.elapsed();
    in_time(LOG_TIMEOUT, move || log_late(elapsed));
    process::exit(0)
}

/// Runs `work` in a thread of its own, and waits for it for at most this time. Returns whether it ended.
fn in_time(timeout: Duration, work: impl FnOnce() + Send + 'static) -> bool {
    let (done, waiting) = mpsc::channel();
    let _ = thread::Builder::new().spawn(move || {
        work();
        let _ = done.send(());
    });
    waiting.recv_timeout(timeout).is_ok()
}

/// Logs a missed deadline.
fn log_late(elapsed: Duration) {
    if let Ok(context) = Context::new(Environment::read(Caller::Client), Duration::ZERO)
        && !context.environment.is_internal
        && pause::here(&context).is_none()
    {
        // This may be the first hook on this machine, before the log's folder exists.
        let _ = context.home.create();
        context.log(&format!("hook: gave up after {} ms", elapsed.as_millis()));
    }
}

/// Prints the answer. A closed pipe is no error, because the client may be gone.
fn print(output: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(output.as_bytes());
    let _ = stdout.flush();
}

/// Reads the payload. The rest after the limit is drained, so that the client can finish writing.
pub(super) fn read_stdin() -> io::Result<Vec<u8>> {
    let mut stdin = io::stdin().lock();
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_PAYLOAD_LENGTH).unwrap_or(u64::MAX);
    stdin.by_ref().take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_PAYLOAD_LENGTH {
        io::copy(&mut stdin, &mut io::sink())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_record_is_waited_for_if_the_payload_was_not_read() {
        // HOOK-06
        let progress = RecordProgress::new();
        // It would wait forever.
        progress.keep();
        assert!(matches!(
            *progress.state.lock().unwrap(),
            RecordState::Settled
        ));
    }
}
