//! Progress on stderr, on a terminal only.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use super::{count, number, stderr_is_terminal};

/// Overwrites the current line of the terminal.
pub(crate) fn progress(text: &str) {
    let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
}

/// A progress bar on a terminal; elsewhere it prints nothing.
pub(crate) struct ProgressBar {
    is_shown: bool,
    last: Option<Instant>,
}

impl ProgressBar {
    /// The shortest time between two updates.
    const PAUSE: Duration = Duration::from_millis(100);

    /// The width of the bar in characters.
    const LENGTH: usize = 30;

    pub(crate) fn new() -> Self {
        Self {
            is_shown: stderr_is_terminal(),
            last: None,
        }
    }

    /// Shows how many are done, at most once per `PAUSE`. Without a known total, there is no bar.
    pub(crate) fn show(&mut self, done: usize, total: usize, thing: &str) {
        if !self.is_shown || self.last.is_some_and(|last| last.elapsed() < Self::PAUSE) {
            return;
        }
        self.last = Some(Instant::now());
        progress(&Self::line(done, total, thing));
    }

    fn line(done: usize, total: usize, thing: &str) -> String {
        if total == 0 {
            return count(done, thing);
        }
        let filled = done * Self::LENGTH / total;
        format!(
            "[{:<length$}] {} of {}",
            "#".repeat(filled),
            number(done),
            count(total, thing),
            length = Self::LENGTH
        )
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.last.is_some() {
            progress("");
        }
    }
}

/// A progress line. It is printed only on a terminal, and erased afterwards.
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(text: &str) -> Self {
        let is_shown = stderr_is_terminal();
        if is_shown {
            progress(text);
        }
        Self { is_shown }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            progress("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills() {
        let line = |done, total| ProgressBar::line(done, total, "transcript");
        assert_eq!(
            line(0, 3),
            "[                              ] 0 of 3 transcripts"
        );
        assert_eq!(
            line(1_500, 2_000),
            "[######################        ] 1,500 of 2,000 transcripts"
        );
        assert_eq!(line(1_500, 0), "1,500 transcripts");
    }
}
