//! Runs programs with a time limit after which their process group is killed.
//!
//! Output goes to unnamed files instead of pipes, so that a leftover process that holds the
//! output open cannot block a test.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::wait::poll;

/// The interval between two checks of a condition.
const POLL: Duration = Duration::from_millis(30);
/// How much of a program's output an error shows, in characters.
const SHOWN: usize = 2_000;

/// The reason why a test failed or could not go on.
#[derive(Debug)]
pub struct TestFailure(String);

impl TestFailure {
    /// Returns a failure with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl Display for TestFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TestFailure {}

/// The result type of the test drivers.
pub type Result<T> = std::result::Result<T, TestFailure>;

/// Adds what was attempted to an error.
pub trait Context<T> {
    /// Prepends `what` to the cause.
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|cause| TestFailure(format!("{what}: {cause}")))
    }
}

/// Output and exit code of a program that ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit code, or `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Stdout, with invalid UTF-8 replaced.
    pub stdout: String,
    /// Stderr, with invalid UTF-8 replaced.
    pub stderr: String,
}

impl Finished {
    /// Returns this run if it exited with 0.
    ///
    /// # Errors
    /// Returns the end of its output otherwise.
    pub fn successful(self, what: impl Display) -> Result<Self> {
        match self.code {
            Some(0) => Ok(self),
            _ => Err(TestFailure(format!("{what}: {self}"))),
        }
    }
}

impl Display for Finished {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(formatter, "exit {code}")?,
            None => formatter.write_str("ended by a signal")?,
        }
        for text in [&self.stdout, &self.stderr] {
            let length = text.chars().count();
            let end: String = text.chars().skip(length.saturating_sub(SHOWN)).collect();
            if !end.trim().is_empty() {
                write!(formatter, "\n{}", end.trim())?;
            }
        }
        Ok(())
    }
}

/// A program in its own process group, which is killed on drop.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: File,
    stderr: File,
    what: String,
}

/// Starts a program with empty stdin.
pub fn start(command: &mut Command) -> Result<Running> {
    let what = command.get_program().to_string_lossy().into_owned();
    let open = || tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
    let (stdout, stdout_end) = open().context("temporary file")?;
    let (stderr, stderr_end) = open().context("temporary file")?;
    let child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(stdout_end)
        .stderr(stderr_end)
        .spawn()
        .context(format_args!("cannot start {what}"))?;
    Ok(Running {
        child,
        stdout,
        stderr,
        what,
    })
}

/// Runs a program to its end.
///
/// # Errors
/// Returns an error if it cannot be started or exceeds the time limit.
pub fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    start(command)?.wait(limit)
}

impl Running {
    /// Waits for the program's end.
    ///
    /// # Errors
    /// Kills the process group and returns an error if the time limit is exceeded.
    pub fn wait(mut self, limit: Duration) -> Result<Finished> {
        let ended = wait_until(limit, "its end", || self.child.try_wait().ok().flatten());
        if ended.is_err() {
            self.kill();
        }
        let status = self.child.wait().context(&self.what)?;
        let finished = Finished {
            code: status.code(),
            stdout: contents(&mut self.stdout).context("output")?,
            stderr: contents(&mut self.stderr).context("output")?,
        };
        match ended {
            Ok(_) => Ok(finished),
            Err(_) => Err(TestFailure(format!(
                "{} did not end in {} s, {finished}",
                self.what,
                limit.as_secs()
            ))),
        }
    }

    /// Sends SIGTERM to the program, but not to its group.
    pub fn terminate(&self) {
        // A child that has ended but was not waited for still accepts the signal.
        let signal = format!("kill -s TERM {}", self.child.id());
        let _ = Command::new("sh").args(["-c", &signal]).status();
    }

    /// Kills the program and its group with SIGKILL, unless the program has ended.
    pub fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // std cannot signal a process group; every shell can.
        let signal = format!("kill -s KILL -- -{}", self.child.id());
        let _ = Command::new("sh").args(["-c", &signal]).status();
        // An error means that the child has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn contents(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Polls until `look` returns a value.
///
/// # Errors
/// Returns an error that names `what` if the time limit is exceeded.
pub fn wait_until<T>(
    limit: Duration,
    what: impl Display,
    look: impl FnMut() -> Option<T>,
) -> Result<T> {
    poll(limit, POLL, look).ok_or_else(|| {
        let seconds = limit.as_secs();
        TestFailure(format!("{what} did not come in {seconds} s"))
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_exit_code_are_kept() {
        let finished = run(&mut shell("echo out; echo err >&2; exit 3"), LONG).unwrap();
        assert_eq!(finished.code, Some(3));
        assert_eq!(finished.stdout, "out\n");
        assert_eq!(finished.stderr, "err\n");
        let failure = finished.successful("git fetch").unwrap_err();
        assert_eq!(failure.to_string(), "git fetch: exit 3\nout\nerr");
    }

    #[test]
    fn a_timeout_kills_the_program_and_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = run(Command::new("mkfifo").arg(&pipe), LONG).unwrap();
        made.successful("mkfifo").unwrap();
        let script = r#"(echo started; sleep 60; echo survived) >"$1" & wait"#;
        let running = start(shell(script).arg("sh").arg(&pipe)).unwrap();
        // Reading ends when no process has the pipe open for writing.
        let mut reader = BufReader::new(File::open(&pipe).unwrap());
        let mut said = String::new();
        reader.read_line(&mut said).unwrap();
        let failure = running.wait(Duration::ZERO).unwrap_err().to_string();
        assert!(failure.starts_with("sh did not end in 0 s"), "{failure}");
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "started\n");
    }

    #[test]
    fn terminate_lets_a_program_clean_up() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let script = r#"trap 'echo tidy; exit 3' TERM; touch "$1"; while :; do sleep 0.01; done"#;
        let running = start(shell(script).arg("sh").arg(&ready)).unwrap();
        wait_until(LONG, "the trap", || ready.exists().then_some(())).unwrap();
        running.terminate();
        let finished = running.wait(LONG).unwrap();
        assert_eq!(
            (finished.code, finished.stdout.as_str()),
            (Some(3), "tidy\n")
        );
    }

    #[test]
    fn a_child_with_open_output_does_not_block() {
        let finished = run(&mut shell("sleep 600 & echo $!"), LONG).unwrap();
        let child = finished.stdout.trim();
        let killed = run(&mut shell(&format!("kill {child}")), LONG).unwrap();
        assert_eq!(killed.code, Some(0), "the child had ended: {killed}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = run(&mut Command::new("no-such-program"), LONG).unwrap_err();
        let text = failure.to_string();
        assert!(text.starts_with("cannot start no-such-program: "), "{text}");
    }
}
