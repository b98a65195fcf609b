//! Runs a program with limits of time, output and file size.
//!
//! Knows nothing of git. The program has its own process group, so that its children are killed
//! with it. Nothing polls: threads wait for its output and its end, and send events to the thread
//! that watches the clock.

use std::{
    io::{self, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    thread,
    time::{Duration, Instant},
};

/// How long output is read after the program's end. A background process, such as a shared ssh
/// connection, keeps the pipe open without writing. A closed pipe ends the wait at once. On an
/// overloaded machine 200 ms were too short: output was lost.
const AFTERWARDS: Duration = Duration::from_secs(2);
/// How long a program may take to clean up after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(1);

/// The limits of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The time limit.
    pub(super) time: Duration,
    /// Bytes kept of each output; the rest is read and dropped.
    pub(super) output: usize,
    /// The largest file that it may write, if the system supports a limit.
    pub(super) file: Option<u64>,
}

/// The result of a program.
#[derive(Debug, Default)]
pub(super) struct Finished {
    /// Its exit status; `None` if it exceeded the time limit.
    pub(super) status: Option<ExitStatus>,
    /// The start of its standard output.
    pub(super) stdout: Vec<u8>,
    /// The start of its standard error.
    pub(super) stderr: Vec<u8>,
    /// Whether a part of the output was dropped.
    pub(super) is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Messages,
}

enum Event {
    Piece(Stream, Vec<u8>),
    Closed,
    #[cfg_attr(not(unix), expect(dead_code, reason = "no thread tells of the end"))]
    Exited,
}

/// Runs a program until it ends or reaches the time limit.
///
/// # Errors
/// If it cannot be started, or its exit status is unknown.
pub(super) fn run(mut command: Command, limits: Limits) -> io::Result<Finished> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let deadline = Instant::now() + limits.time;
    let mut child = system::start(&mut command, limits.file)?;
    // Bounds the memory to the kept output and a few pieces.
    let (sender, receiver) = mpsc::sync_channel(4);
    let open = match attend(&mut child, &sender) {
        Ok(open) => open,
        Err(error) => {
            system::kill(&mut child);
            child.wait()?;
            return Err(error);
        }
    };
    drop(sender);

    let mut finished = Finished::default();
    let is_late = !listen(&receiver, &mut finished, open, deadline, limits.output);
    if is_late {
        end(&mut child, &receiver)?;
    } else {
        finished.status = Some(child.wait()?);
    }
    Ok(finished)
}

/// Starts the threads that wait for the program; returns the number of outputs.
fn attend(child: &mut Child, sender: &SyncSender<Event>) -> io::Result<usize> {
    let mut open = 0;
    if let Some(output) = child.stdout.take() {
        forward(output, Stream::Output, sender.clone())?;
        open += 1;
    }
    if let Some(messages) = child.stderr.take() {
        forward(messages, Stream::Messages, sender.clone())?;
        open += 1;
    }
    system::tell_of_end(child, sender.clone())?;
    Ok(open)
}

/// Reads until the program has ended and its outputs are closed; `false` at the time limit.
fn listen(
    receiver: &Receiver<Event>,
    finished: &mut Finished,
    mut open: usize,
    mut deadline: Instant,
    most: usize,
) -> bool {
    // Without a thread that waits for the end, closed outputs count as the end.
    let mut has_ended = !system::TELLS_OF_END;
    while open > 0 || !has_ended {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Piece(stream, piece)) => {
                let kept = match stream {
                    Stream::Output => &mut finished.stdout,
                    Stream::Messages => &mut finished.stderr,
                };
                let room = most.saturating_sub(kept.len());
                kept.extend(piece.iter().take(room));
                finished.is_cut |= stream == Stream::Output && piece.len() > room;
            }
            Ok(Event::Closed) => open -= 1,
            Ok(Event::Exited) => {
                has_ended = true;
                deadline = deadline.min(Instant::now() + AFTERWARDS);
            }
            Err(RecvTimeoutError::Disconnected) => return has_ended,
            Err(RecvTimeoutError::Timeout) => return has_ended && system::TELLS_OF_END,
        }
    }
    true
}

/// Kills the program's process group, first with SIGTERM so that it removes its locks.
fn end(child: &mut Child, receiver: &Receiver<Event>) -> io::Result<()> {
    system::ask_to_end(child);
    let has_ended = wait_for_end(receiver);
    // Kills the rest of the group too. The process is not reaped yet, so its id is not reused.
    system::kill(child);
    // A process that hangs in the kernel cannot be waited for.
    if has_ended || wait_for_end(receiver) {
        child.wait()?;
    }
    Ok(())
}

fn wait_for_end(receiver: &Receiver<Event>) -> bool {
    let deadline = Instant::now() + FAREWELL;
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Exited) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

fn forward(
    mut stream: impl Read + Send + 'static,
    name: Stream,
    sender: SyncSender<Event>,
) -> io::Result<()> {
    thread::Builder::new().spawn(move || {
        let mut buffer = [0; 8_192];
        loop {
            match stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(length) => {
                    let piece = buffer.iter().take(length).copied().collect();
                    if sender.send(Event::Piece(name, piece)).is_err() {
                        return;
                    }
                }
            }
        }
        // The receiver is gone after the time limit.
        let _ = sender.send(Event::Closed);
    })?;
    Ok(())
}

#[cfg(unix)]
mod system {
    use std::{
        os::unix::process::CommandExt as _,
        sync::{Mutex, PoisonError},
    };

    use rustix::{
        io::retry_on_intr,
        process::{
            Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process_group,
            setrlimit, waitid,
        },
    };

    use super::{Child, Command, Event, SyncSender, io, thread};

    pub(super) const TELLS_OF_END: bool = true;

    /// A child inherits the limits of the process, so only one is started at a time.
    static STARTING: Mutex<()> = Mutex::new(());

    pub(super) fn start(command: &mut Command, file: Option<u64>) -> io::Result<Child> {
        command.process_group(0);
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file else {
            return command.spawn();
        };
        // A process that exceeds the file limit would leave a core file with notes.
        let limits = [(Resource::Fsize, file), (Resource::Core, 0)];
        let before = limits.map(|(resource, _)| (resource, getrlimit(resource)));
        let mut lowered = Ok(());
        for ((resource, wanted), (_, old)) in limits.into_iter().zip(&before) {
            let current = Some(old.current.map_or(wanted, |old| old.min(wanted)));
            let new = Rlimit {
                current,
                maximum: old.maximum,
            };
            lowered = lowered.and_then(|()| setrlimit(resource, new));
        }
        let started = lowered
            .map_err(io::Error::from)
            .and_then(|()| command.spawn());
        for (resource, old) in before {
            // Limits may be raised up to the maximum, which was not changed.
            let _ = setrlimit(resource, old);
        }
        started
    }

    /// Reports the end without reaping the process, so that its id is not reused.
    pub(super) fn tell_of_end(child: &Child, sender: SyncSender<Event>) -> io::Result<()> {
        let process = process_of(child);
        thread::Builder::new().spawn(move || {
            if let Some(process) = process {
                // An error means that the process is gone.
                let _ = retry_on_intr(|| {
                    waitid(
                        WaitId::Pid(process),
                        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
                    )
                });
            }
            // The receiver is gone after the time limit.
            let _ = sender.send(Event::Exited);
        })?;
        Ok(())
    }

    pub(super) fn ask_to_end(child: &mut Child) {
        signal(child, Signal::TERM);
    }

    pub(super) fn kill(child: &mut Child) {
        signal(child, Signal::KILL);
    }

    fn signal(child: &Child, signal: Signal) {
        if let Some(process) = process_of(child) {
            // This fails only if the group is empty.
            let _ = kill_process_group(process, signal);
        }
    }

    fn process_of(child: &Child) -> Option<Pid> {
        Pid::from_raw(i32::try_from(child.id()).ok()?)
    }
}

#[cfg(not(unix))]
mod system {
    use super::{Child, Command, Event, SyncSender, io};

    pub(super) const TELLS_OF_END: bool = false;

    pub(super) fn start(command: &mut Command, _file: Option<u64>) -> io::Result<Child> {
        command.spawn()
    }

    pub(super) fn tell_of_end(_child: &Child, _sender: SyncSender<Event>) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn ask_to_end(child: &mut Child) {
        kill(child);
    }

    pub(super) fn kill(child: &mut Child) {
        // This fails only if the process has ended.
        let _ = child.kill();
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        path::Path,
    };

    use super::*;

    const LIMITS: Limits = Limits {
        time: Duration::from_secs(60),
        output: 64 * 1024,
        file: None,
    };

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn returns_status_and_output() {
        let finished = run(shell("echo out; echo err >&2; exit 3"), LIMITS).unwrap();
        assert_eq!(finished.status.unwrap().code(), Some(3));
        assert_eq!(finished.stdout, b"out\n");
        assert_eq!(finished.stderr, b"err\n");
        assert!(!finished.is_cut);
    }

    #[test]
    fn keeps_the_beginning_of_much_output() {
        let limits = Limits {
            output: 100,
            ..LIMITS
        };
        let script = "i=0; while [ $i -lt 5000 ]; do echo 0123456789; i=$((i+1)); done";
        let finished = run(shell(script), limits).unwrap();
        assert!(finished.status.unwrap().success());
        assert_eq!(finished.stdout.len(), 100);
        assert!(finished.is_cut);
    }

    /// A background process that holds the pipes is not waited for.
    #[test]
    fn a_program_in_the_background_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            shell(&format!("mkfifo {}", pipe.display()))
                .status()
                .unwrap()
                .success()
        );
        let script = format!("cat {} & echo done", pipe.display());
        let finished = run(shell(&script), LIMITS).unwrap();
        assert!(finished.status.unwrap().success());
        assert_eq!(finished.stdout, b"done\n");
        // The background process still reads; otherwise opening the pipe would block forever.
        File::create(&pipe).unwrap();
    }

    #[test]
    fn the_whole_group_ends_at_the_limit_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let held = folder.path().join("held");
        let lock = File::create(&held).unwrap();
        lock.lock().unwrap();
        let limits = Limits {
            time: Duration::from_millis(100),
            ..LIMITS
        };
        // Both processes hold the lock's file and ignore SIGTERM.
        let mut command = shell("trap '' TERM; sleep 1000 <&0 & sleep 1000; wait");
        command.stdin(lock);
        let finished = run(command, limits).unwrap();
        assert!(finished.status.is_none());
        wait_for_lock(&held);
    }

    /// Blocks until the lock is free.
    fn wait_for_lock(path: &Path) {
        let file = File::open(path).unwrap();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(file.lock()));
        receiver.recv_timeout(LIMITS.time).unwrap().unwrap();
    }

    /// GIT-10.
    #[test]
    fn a_file_cannot_outgrow_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let limits = Limits {
            file: Some(8 * 1024 * 1024),
            ..LIMITS
        };
        let script = format!("head -c 9000000 /dev/zero >{}", path.display());
        let finished = run(shell(&script), limits).unwrap();
        assert!(!finished.status.unwrap().success());
        assert_eq!(fs::metadata(&path).unwrap().len(), 8 * 1024 * 1024);
        // The limit applied to the program, not to this process.
        let without = run(shell(&script), LIMITS).unwrap();
        assert!(without.status.unwrap().success());
        assert_eq!(fs::metadata(&path).unwrap().len(), 9_000_000);
    }
}
