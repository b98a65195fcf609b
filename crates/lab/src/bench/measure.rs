//! Runs a program and measures its duration, processor time and peak memory.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4 as _;

use crate::Result;

/// A program with its complete input. It gets none of this process's environment.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(&'static str, OsString)>,
    pub(super) folder: PathBuf,
    pub(super) stdin: String,
    /// A file for stdin in place of `stdin`, which keeps this process smaller than the measured
    /// ones.
    pub(super) stdin_file: Option<PathBuf>,
}

/// The figures of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Time from the start to the end of the process.
    pub(super) wall: Duration,
    /// User and system time of all threads.
    pub(super) cpu: Duration,
    /// Peak memory in bytes. It is at least this process's size, because the kernel counts the time
    /// between fork and exec.
    pub(super) peak: u64,
}

impl Run {
    pub(super) fn new(program: impl Into<PathBuf>, folder: &Path, arguments: &[&str]) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.iter().map(|&it| it.to_owned()).collect(),
            environment: Vec::new(),
            folder: folder.to_path_buf(),
            stdin: String::new(),
            stdin_file: None,
        }
    }

    /// Returns the same run of another program.
    pub(super) fn with(self, program: &Path) -> Self {
        Self {
            program: program.to_path_buf(),
            ..self
        }
    }

    /// Runs the program to its end. Its output goes through a pipe, as with the client.
    pub(super) fn once(&self) -> Result<(Sample, String)> {
        let (sample, output, status) = self.to_end()?;
        if status.success() {
            return Ok((sample, output));
        }
        let (program, arguments) = (self.program.display(), &self.arguments);
        Err(format!("{program} {arguments:?}: {status}").into())
    }

    /// Like [`Run::once`], whatever the exit code.
    pub(super) fn to_end(&self) -> Result<(Sample, String, ExitStatus)> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let failed = |error: std::io::Error| format!("{}: {error}", self.program.display());
        let begun = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read stdin may have ended.
            let _ = match &self.stdin_file {
                None => stdin.write_all(self.stdin.as_bytes()),
                Some(path) => io::copy(&mut File::open(path)?, &mut stdin).map(drop),
            };
        }
        let mut output = String::new();
        if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_string(&mut output).map_err(failed)?;
        }
        let end = child.wait4().map_err(failed)?;
        let wall = begun.elapsed();
        let sample = Sample {
            wall,
            cpu: end.rusage.utime + end.rusage.stime,
            peak: end.rusage.maxrss,
        };
        Ok((sample, output, end.status))
    }
}

/// Minimum, median and 95th percentile of several times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) least: Duration,
    pub(super) median: Duration,
    /// The 95th percentile.
    pub(super) p95: Duration,
}

impl Spread {
    /// Sorts the times. All values are zero without times.
    pub(super) fn from_times(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.collect();
        times.sort_unstable();
        let at = |hundredths: usize| {
            let place = (times.len() * hundredths).div_ceil(100).max(1) - 1;
            times.get(place).copied().unwrap_or_default()
        };
        Self {
            least: at(0),
            median: at(50),
            p95: at(95),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_by_rank() {
        let spread = |times: &[u64]| {
            let spread = Spread::from_times(times.iter().map(|&it| Duration::from_millis(it)));
            [spread.least, spread.median, spread.p95].map(|it| it.as_millis())
        };
        assert_eq!(spread(&[]), [0, 0, 0]);
        assert_eq!(spread(&[7]), [7, 7, 7]);
        assert_eq!(spread(&[9, 1, 5]), [1, 5, 9]);
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(spread(&hundred), [1, 50, 95]);
    }

    #[test]
    fn a_run_returns_output_and_fails_with_its_program() {
        let folder = Path::new("/");
        let mut cat = Run::new("/bin/cat", folder, &[]);
        cat.stdin = "payload".to_owned();
        let (sample, output) = cat.once().unwrap();
        assert_eq!(output, "payload");
        assert!(sample.peak > 0);
        assert!(
            Run::new("/bin/sh", folder, &["-c", "exit 3"])
                .once()
                .is_err()
        );
        assert!(Run::new("/nowhere/program", folder, &[]).once().is_err());
    }
}
