//! Progress on stderr, on a terminal only.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use super::{count, number};

/// Overwrites the current line of the terminal.
fn overwrite(text: &str) {
    let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
}

/// A progress line or bar. It is printed only on a terminal, and erased afterwards.
pub(crate) struct Progress {
    is_shown: bool,
    /// When it was printed last.
    last: Option<Instant>,
}

impl Progress {
    /// The shortest time between two updates of a bar.
    const PAUSE: Duration = Duration::from_millis(100);

    /// The width of the bar in characters.
    const LENGTH: usize = 30;

    /// Shows a text.
    pub(crate) fn new(text: &str) -> Self {
        let mut progress = Self::bar();
        progress.print(text);
        progress
    }

    /// Shows nothing until [`Progress::show`].
    pub(crate) fn bar() -> Self {
        Self {
            is_shown: io::stderr().is_terminal(),
            last: None,
        }
    }

    /// Shows how many are done, at most once per `PAUSE`. Without a known total, there is no bar.
    pub(crate) fn show(&mut self, done: usize, total: usize, thing: &str) {
        if self.last.is_none_or(|last| last.elapsed() >= Self::PAUSE) {
            self.print(&Self::line(done, total, thing));
        }
    }

    fn print(&mut self, text: &str) {
        if self.is_shown {
            self.last = Some(Instant::now());
            overwrite(text);
        }
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

impl Drop for Progress {
    fn drop(&mut self) {
        if self.last.is_some() {
            overwrite("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills() {
        let line = |done, total| Progress::line(done, total, "transcript");
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
