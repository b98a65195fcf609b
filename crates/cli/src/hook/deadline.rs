//! A watchdog that answers with the no-op object when a hook takes too long.

use std::{
    io::{self, Read, Write},
    process::{self, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use anamnesis_app::{
    context::Context,
    environment::{Caller, Environment},
    pause, spawn,
};
use anamnesis_session::hook::{HookOutput, MAX_PAYLOAD_LENGTH};

use super::{answer, typed::RunTyped};

/// After this time the hook answers with the no-op object, whatever it is doing.
const DEADLINE: Duration = Duration::from_millis(1100);

/// The deadline for the end of a session. That hook is asynchronous, and writing the note may take
/// longer.
const PATIENT_DEADLINE: Duration = Duration::from_secs(60);

/// The deadline for a command that the person typed and waits for. The client allows 5 seconds.
const TYPED_DEADLINE: Duration = Duration::from_secs(4);

/// Timeout for logging a missed deadline.
const LOG_PATIENCE: Duration = Duration::from_millis(50);

/// Tells the watchdog why this event may take longer.
pub(super) enum Patient {
    /// Nobody waits for the end of a session.
    SessionEnd,
    /// The person waits for the command that they typed.
    Typed,
}

/// Handles the payload from `input` and answers in time.
///
/// The main thread does the work, because another thread would cost a memory arena and a wake-up.
pub(super) fn watched(
    run_typed: RunTyped,
    input: impl FnOnce() -> (Environment, io::Result<Vec<u8>>),
) -> ExitCode {
    let started = Instant::now();
    let answered = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let watch = thread::Builder::new().spawn({
        let answered = Arc::clone(&answered);
        move || watch(started, &receiver, &answered)
    });
    if watch.is_err() {
        // Without a watchdog, nothing that could hang may start.
        print(&HookOutput::default().to_json(""));
        return ExitCode::SUCCESS;
    }
    let (environment, payload) = input();
    let reply = answer(run_typed, environment, payload, started, &sender);
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

/// Waits for the deadline, then prints the no-op object and ends the process.
#[expect(
    clippy::exit,
    reason = "the main thread hangs, so nobody else can end the process"
)]
fn watch(started: Instant, receiver: &Receiver<Patient>, answered: &AtomicBool) {
    let mut deadline = DEADLINE;
    loop {
        match receiver.recv_timeout(deadline.saturating_sub(started.elapsed())) {
            Ok(Patient::SessionEnd) => deadline = PATIENT_DEADLINE,
            Ok(Patient::Typed) => deadline = TYPED_DEADLINE,
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
    if answered.swap(true, Ordering::AcqRel) {
        return;
    }
    print(&HookOutput::default().to_json(""));
    // The disk itself may hang, so the log has a timeout, too.
    let (done, logged) = mpsc::channel();
    let elapsed = started.elapsed();
    let _ = thread::Builder::new().spawn(move || {
        log_late(elapsed);
        let _ = done.send(());
    });
    let _ = logged.recv_timeout(LOG_PATIENCE);
    process::exit(0)
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
