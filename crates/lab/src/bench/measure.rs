//! Runs a program and takes its time, its processor time and its peak memory; sums runs up.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4 as _;

use crate::Result;

/// A program with all that it is given; nothing else of this process's environment reaches it.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(&'static str, OsString)>,
    pub(super) folder: PathBuf,
    pub(super) stdin: String,
    /// What is piped into stdin in place of `stdin`: this process must stay smaller than what it
    /// measures.
    pub(super) stdin_file: Option<PathBuf>,
}

/// What one run took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// From the start to the end of the process.
    pub(super) wall: Duration,
    /// User and system time of all its threads.
    pub(super) cpu: Duration,
    /// The most memory it held, in bytes. Not less than what this process holds: the kernel counts
    /// the moment between fork and exec, too.
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

    /// Runs it to its end.
    ///
    /// Its output is taken through a pipe, as the client does.
    pub(super) fn once(&self) -> Result<(Sample, String)> {
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
            // A program that reads nothing may be gone already.
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
        if !end.status.success() {
            return Err(format!(
                "{} {:?}: {}",
                self.program.display(),
                self.arguments,
                end.status
            )
            .into());
        }
        let sample = Sample {
            wall,
            cpu: end.rusage.utime + end.rusage.stime,
            peak: end.rusage.maxrss,
        };
        Ok((sample, output))
    }
}

/// The least, the middle and the nearly worst of several times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) least: Duration,
    pub(super) median: Duration,
    /// The one that 95 of 100 runs do not exceed.
    pub(super) p95: Duration,
}

impl Spread {
    /// Sums times up; all zero when there are none.
    pub(super) fn of(times: impl Iterator<Item = Duration>) -> Self {
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
    fn a_spread_is_taken_by_rank() {
        let spread = |times: &[u64]| {
            let spread = Spread::of(times.iter().map(|&it| Duration::from_millis(it)));
            [spread.least, spread.median, spread.p95].map(|it| it.as_millis())
        };
        assert_eq!(spread(&[]), [0, 0, 0]);
        assert_eq!(spread(&[7]), [7, 7, 7]);
        assert_eq!(spread(&[9, 1, 5]), [1, 5, 9]);
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(spread(&hundred), [1, 50, 95]);
    }

    #[test]
    fn a_run_gives_its_output_and_fails_with_its_program() {
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
