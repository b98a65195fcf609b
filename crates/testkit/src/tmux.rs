//! Runs the interactive client in a terminal, through a tmux server of its own.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::client::{Permissions, SYSTEM_PATH, Sandbox};
use crate::process::{self, Result, TestFailure, wait_until};

/// Time limit for one tmux command.
const TMUX_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for a text to appear on the screen, or for the client to exit.
const SCREEN_LIMIT: Duration = Duration::from_secs(40);
/// How long to wait after typing. An earlier Enter selects another entry of the client's command
/// list, and the screen does not show when it would not.
const SETTLE: Duration = Duration::from_millis(800);

/// Returns whether tmux is on the PATH of a [`Sandbox`].
pub fn is_installed() -> bool {
    let mut command = Command::new("tmux");
    command.arg("-V").env("PATH", SYSTEM_PATH);
    process::run(&mut command, TMUX_LIMIT).is_ok_and(|finished| finished.code == Some(0))
}

/// A running interactive client. Dropping it closes the terminal.
#[derive(Debug)]
pub struct Terminal<'a> {
    sandbox: &'a Sandbox<'a>,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    /// Starts the client in the default permission mode and waits for its prompt.
    ///
    /// # Errors
    /// Returns an error if tmux fails or no prompt appears, for example because of a dialog.
    pub fn start(sandbox: &'a Sandbox<'a>) -> Result<Self> {
        Self::start_with(sandbox, Permissions::Default)
    }

    /// Starts the client and waits for its prompt.
    pub fn start_with(sandbox: &'a Sandbox<'a>, permissions: Permissions) -> Result<Self> {
        let terminal = Self {
            sandbox,
            socket: sandbox.socket(),
        };
        let mut command = terminal.tmux();
        command.args([
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "160",
            "-y",
            "50",
        ]);
        command
            .arg(sandbox.interactive())
            .args(permissions.arguments());
        process::run(&mut command, TMUX_LIMIT)?.successful("tmux new-session")?;
        terminal.wait("the prompt", |screen| screen.lines().any(is_prompt))?;
        Ok(terminal)
    }

    /// Types a line and presses Enter.
    pub fn send(&self, line: &str) -> Result<()> {
        self.run(&["send-keys", "-l", line])?;
        thread::sleep(SETTLE);
        self.run(&["send-keys", "Enter"])?;
        Ok(())
    }

    /// Pastes a text at the cursor, as a terminal does.
    pub fn paste(&self, text: &str) -> Result<()> {
        self.run(&["set-buffer", "--", text])?;
        self.run(&["paste-buffer", "-p"])?;
        thread::sleep(SETTLE);
        Ok(())
    }

    /// Presses one key by its tmux name: `Down`, `Enter`, `Space`.
    pub fn press(&self, key: &str) -> Result<()> {
        self.run(&["send-keys", key])?;
        thread::sleep(SETTLE);
        Ok(())
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, columns: u16, rows: u16) -> Result<()> {
        let [columns, rows] = [columns, rows].map(|size| size.to_string());
        self.run(&["resize-window", "-x", &columns, "-y", &rows])?;
        thread::sleep(SETTLE);
        Ok(())
    }

    /// Presses Escape, which interrupts the client.
    pub fn interrupt(&self) -> Result<()> {
        self.run(&["send-keys", "Escape"]).map(drop)
    }

    /// Returns the screen and its scrollback.
    ///
    /// # Errors
    /// Returns an error if tmux fails, for example because the client has ended.
    pub fn screen(&self) -> Result<String> {
        self.run(&["capture-pane", "-p", "-J", "-S", "-500"])
    }

    /// Returns the visible screen.
    pub fn visible(&self) -> Result<String> {
        self.run(&["capture-pane", "-p", "-J"])
    }

    /// Returns the visible screen with its colours.
    pub fn screen_in_colour(&self) -> Result<String> {
        self.run(&["capture-pane", "-p", "-e"])
    }

    /// Waits until the screen shows a text, and returns the screen.
    ///
    /// # Errors
    /// Returns the screen if the text does not appear in time.
    pub fn wait_for(&self, text: &str) -> Result<String> {
        self.wait(&format!("“{text}”"), |screen| screen.contains(text))
    }

    fn wait(&self, what: &str, mut holds: impl FnMut(&str) -> bool) -> Result<String> {
        let found = wait_until(SCREEN_LIMIT, what, || {
            self.screen().ok().filter(|screen| holds(screen))
        });
        found.map_err(|failure| {
            let screen = self
                .screen()
                .unwrap_or_else(|_| "the client has ended".to_owned());
            let lines: Vec<&str> = screen
                .lines()
                .filter(|line| !line.trim().is_empty())
                .collect();
            TestFailure::new(format!("{failure}; the screen:\n{}", lines.join("\n")))
        })
    }

    /// Types `/exit` and waits until the client has ended.
    pub fn exit(self) -> Result<()> {
        self.send("/exit")?;
        wait_until(SCREEN_LIMIT, "the client's end", || self.screen().err()).map(drop)
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let finished = process::run(self.tmux().args(arguments), TMUX_LIMIT)?;
        Ok(finished.successful("tmux")?.stdout)
    }

    /// Returns tmux for this terminal's own server, with the sandbox's environment.
    fn tmux(&self) -> Command {
        let mut command = self.sandbox.command("tmux");
        command.arg("-S").arg(&self.socket);
        command
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        // After `exit` there is no server, and the command fails.
        let _ = process::run(self.tmux().arg("kill-server"), TMUX_LIMIT);
    }
}

/// Returns whether a line is the input box. The selected answer of a dialog has the same mark:
/// `❯ 1. Yes`.
fn is_prompt(line: &str) -> bool {
    let line = line.trim_start_matches(['│', ' ']);
    line.strip_prefix('❯').is_some_and(|rest| {
        !rest
            .trim_start()
            .starts_with(|first: char| first.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialog_is_not_taken_for_the_prompt() {
        for (line, prompt) in [
            ("❯\u{a0}", true),
            ("│ ❯ Try \"fix the tests\" │", true),
            ("❯ 1. Yes, I trust this folder", false),
            ("  2. No, exit", false),
            ("> quoted", false),
        ] {
            assert_eq!(is_prompt(line), prompt, "{line}");
        }
    }
}
