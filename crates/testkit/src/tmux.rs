//! The interactive client in a terminal: a tmux server of its own, keys in, screen out.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::client::{Permissions, SYSTEM_PATH, Sandbox};
use crate::process::{self, Failure, Result, wait_until};

/// How long tmux may take for one command.
const TMUX_LIMIT: Duration = Duration::from_secs(20);
/// How long something may take to show up on the screen, or the client to leave.
const SCREEN_LIMIT: Duration = Duration::from_secs(40);
/// How long the input box takes to settle after typing. Enter that comes sooner picks another
/// entry of the list of commands, and nothing on the screen tells when it would not.
const SETTLE: Duration = Duration::from_millis(800);

/// Tells whether tmux is where a [`Sandbox`] looks for it.
pub fn is_installed() -> bool {
    let mut command = Command::new("tmux");
    command.arg("-V").env("PATH", SYSTEM_PATH);
    process::run(&mut command, TMUX_LIMIT).is_ok_and(|finished| finished.code == Some(0))
}

/// A running interactive client; dropping it closes the terminal.
#[derive(Debug)]
pub struct Terminal<'a> {
    sandbox: &'a Sandbox<'a>,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    /// Starts the client in the default permission mode and waits for its prompt.
    ///
    /// # Errors
    /// If tmux fails, or the prompt does not come: a dialog in its place is such a case.
    pub fn start(sandbox: &'a Sandbox<'a>) -> Result<Self> {
        Self::start_with(sandbox, Permissions::Default)
    }

    /// Starts the client and waits for its prompt.
    ///
    /// # Errors
    /// As [`Terminal::start`].
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
    ///
    /// # Errors
    /// If tmux fails.
    pub fn send(&self, line: &str) -> Result<()> {
        self.run(&["send-keys", "-l", line])?;
        thread::sleep(SETTLE);
        self.run(&["send-keys", "Enter"])?;
        Ok(())
    }

    /// Presses one key, by the name that tmux has for it: `Down`, `Enter`, `Space`.
    ///
    /// # Errors
    /// If tmux fails.
    pub fn press(&self, key: &str) -> Result<()> {
        self.run(&["send-keys", key])?;
        thread::sleep(SETTLE);
        Ok(())
    }

    /// Presses Escape, which breaks off what the client is doing.
    ///
    /// # Errors
    /// If tmux fails.
    pub fn interrupt(&self) -> Result<()> {
        self.run(&["send-keys", "Escape"]).map(drop)
    }

    /// Returns the screen and what has scrolled off it.
    ///
    /// # Errors
    /// If tmux fails: the client has ended, for example.
    pub fn screen(&self) -> Result<String> {
        self.run(&["capture-pane", "-p", "-J", "-S", "-500"])
    }

    /// Waits until the screen shows a text, and returns the screen.
    ///
    /// # Errors
    /// If it is not there in time; the message shows the screen.
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
            Failure::new(format!("{failure}; the screen:\n{}", lines.join("\n")))
        })
    }

    /// Types `/exit` and waits until the client has gone.
    ///
    /// # Errors
    /// If it stays.
    pub fn exit(self) -> Result<()> {
        self.send("/exit")?;
        wait_until(SCREEN_LIMIT, "the client's end", || self.screen().err()).map(drop)
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let finished = process::run(self.tmux().args(arguments), TMUX_LIMIT)?;
        Ok(finished.successful("tmux")?.stdout)
    }

    /// Returns tmux on this terminal's own server, which takes its environment from the sandbox.
    fn tmux(&self) -> Command {
        let mut command = self.sandbox.command("tmux");
        command.arg("-S").arg(&self.socket);
        command
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        // After `exit` there is no server left, and the command fails.
        let _ = process::run(self.tmux().arg("kill-server"), TMUX_LIMIT);
    }
}

/// Tells the input box from a dialog, whose chosen answer has the same mark: `❯ 1. Yes`.
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
    fn a_dialog_is_no_prompt() {
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
