//! Sends requests through Claude Code's command, `claude -p`, for people with a subscription and no
//! API key.
//!
//! The command runs without hooks, plugins, tools, servers, project settings or a resumable
//! session, and outside any project's folder. The texts are passed on standard input, where process
//! lists do not show them.

use std::{
    io::{self, Read, Write as _},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::{Error, MAX_ANSWER, clipped};

/// How long the program may take to exit after closing its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Claude Code's command.
#[derive(Debug, Clone)]
pub struct Program {
    /// The path of the command.
    pub path: PathBuf,
    /// The model's name.
    pub model: String,
    /// The working directory, outside any project.
    pub folder: PathBuf,
    /// Additional environment variables. They mark the process as ours, so that our hooks do
    /// nothing in it.
    pub variables: &'static [(&'static str, &'static str)],
    /// Environment variables that are removed.
    pub without: &'static [&'static str],
    /// The time limit of an answer.
    pub timeout: Duration,
}

impl Program {
    fn command(&self, system: &str) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(["--print", "--output-format", "text", "--safe-mode"])
            .args(["--no-session-persistence", "--disable-slash-commands"])
            .args(["--strict-mcp-config", "--setting-sources", ""])
            .args(["--settings", r#"{"disableAllHooks":true}"#])
            .args(["--tools", "", "--permission-mode", "dontAsk"])
            .args(["--model", &self.model, "--system-prompt", system])
            .envs(self.variables.iter().copied())
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        for name in self.without {
            command.env_remove(name);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }

    pub(super) fn ask(&self, system: &str, user: &str) -> Result<String, Error> {
        let deadline = Instant::now() + self.timeout;
        let failed = |says: &str| Error::Program {
            program: self.path.display().to_string(),
            says: clipped(says),
        };
        let cannot = |error: io::Error| failed(&error.to_string());
        let mut child = self.command(system).spawn().map_err(cannot)?;
        let output = exchange(&mut child, user.to_owned(), deadline);
        let status = if matches!(output, Ok(Some(_))) {
            wait_for_exit(child)
        } else {
            kill(&mut child);
            None
        };
        let answer = output
            .map_err(cannot)?
            .ok_or(Error::Timeout(self.timeout))?;
        if answer.len() > MAX_ANSWER {
            return Err(Error::TooLarge);
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if !status.is_some_and(|status| status.success()) {
            return Err(failed(&answer));
        }
        if answer.trim().is_empty() {
            return Err(Error::NoContent(self.path.display().to_string()));
        }
        Ok(answer)
    }
}

/// Sends a text to the program and reads its output. Returns `None` at the deadline.
fn exchange(child: &mut Child, text: String, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    thread::Builder::new().spawn(move || {
        // A program that stops reading may still answer.
        let _ = input.map(|mut input| input.write_all(text.as_bytes()));
    })?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let mut heard = Vec::new();
        let most = u64::try_from(MAX_ANSWER).unwrap_or(u64::MAX);
        let read = output.map_or(Ok(0), |output| {
            output.take(most + 1).read_to_end(&mut heard)
        });
        // The receiver is gone after a timeout.
        let _ = sender.send(read.map(|_| heard));
    })?;
    match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(heard) => heard.map(Some),
        Err(_) => Ok(None),
    }
}

/// Waits for a program that has closed its output, and kills it if it does not exit in time.
#[cfg(unix)]
fn wait_for_exit(mut child: Child) -> Option<ExitStatus> {
    use rustix::{
        io::retry_on_intr,
        process::{WaitId, WaitIdOptions, waitid},
    };
    let id = process_id(&child)?;
    let (sender, receiver) = mpsc::channel();
    let waiting = thread::Builder::new().spawn(move || {
        // NOWAIT leaves the process unreaped, so its id stays valid for `kill`.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        if retry_on_intr(|| waitid(WaitId::Pid(id), options)).is_ok() {
            let _ = sender.send(());
        }
    });
    if waiting.is_ok() && receiver.recv_timeout(EXIT_TIMEOUT).is_ok() {
        return child.wait().ok();
    }
    kill(&mut child);
    None
}

/// Waits for a program that has closed its output. The waiting thread owns the process, so one that
/// does not exit in time is left running.
#[cfg(not(unix))]
fn wait_for_exit(mut child: Child) -> Option<ExitStatus> {
    let (sender, receiver) = mpsc::channel();
    let waiting = thread::Builder::new().spawn(move || sender.send(child.wait()));
    waiting.ok()?;
    receiver.recv_timeout(EXIT_TIMEOUT).ok()?.ok()
}

/// Kills the program and all that it started.
fn kill(child: &mut Child) {
    // The process is not reaped yet, so its id cannot belong to another process.
    #[cfg(unix)]
    if let Some(group) = process_id(child) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    // It may have exited already.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(unix)]
fn process_id(child: &Child) -> Option<rustix::process::Pid> {
    let id = i32::try_from(child.id()).ok()?;
    rustix::process::Pid::from_raw(id)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::path::Path;

    use anamnesis_testkit::home::script;

    use super::*;

    /// Asks a program with these lines.
    fn answer(lines: &str, timeout: Duration) -> Result<String, Error> {
        let folder = tempfile::tempdir().unwrap();
        answer_in(folder.path(), lines, timeout)
    }

    fn answer_in(folder: &Path, lines: &str, timeout: Duration) -> Result<String, Error> {
        let path = folder.join("claude");
        script(&path, lines);
        let program = Program {
            path,
            model: "haiku".to_owned(),
            folder: folder.to_owned(),
            variables: &[("ANAMNESIS_INTERNAL", "1")],
            without: &["PATH"],
            timeout,
        };
        program.ask("the task", "the text")
    }

    /// Asks a program that writes to the named pipe `alive`. Returns what it wrote, once no process
    /// has the pipe open any more.
    fn answer_and_pipe(lines: &str, timeout: Duration) -> (Result<String, Error>, String) {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("alive");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(std::fs::read_to_string(pipe)));
        let answer = answer_in(folder.path(), lines, timeout);
        let written = receiver.recv_timeout(LONG);
        (answer, written.expect("it still runs").unwrap())
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn the_command_has_no_hooks_and_marks_its_environment() {
        let answer = answer(
            "printf '%s\\n' \"$ANAMNESIS_INTERNAL\" \"$@\"; while read -r line; do echo \"> $line\"; done; echo",
            LONG,
        );
        let answer = answer.unwrap();
        let lines: Vec<&str> = answer.lines().collect();
        assert_eq!(lines.first(), Some(&"1"));
        for option in [
            "--print",
            "--safe-mode",
            "--no-session-persistence",
            "--strict-mcp-config",
            "the task",
        ] {
            assert!(lines.contains(&option), "{option} in {answer}");
        }
        let tools = lines.iter().position(|line| *line == "--tools").unwrap();
        assert_eq!(lines[tools + 1], "");
        assert!(!lines.contains(&"the text"), "{answer}");
    }

    #[test]
    fn the_text_is_passed_on_standard_input() {
        let answer = answer("read -r line; echo \"heard $line\"", LONG);
        // The text has no final line feed.
        assert_eq!(answer.unwrap(), "heard the text\n");
    }

    #[test]
    fn failures_are_reported() {
        for (lines, expected) in [
            ("echo 'please log in'; exit 1", " failed: please log in"),
            ("exit 3", " failed"),
            ("exit 0", " is empty"),
        ] {
            let answer = answer(lines, LONG);
            let error = answer.unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn a_timeout_kills_all_that_the_program_started() {
        let (answer, written) = answer_and_pipe(
            "{ echo started; exec /bin/sleep 600; } > alive & wait",
            Duration::from_secs(2),
        );
        assert!(matches!(answer, Err(Error::Timeout(_))), "{answer:?}");
        assert_eq!(written, "started\n");
    }

    #[test]
    fn a_program_that_does_not_exit_after_its_answer_is_killed() {
        let (answer, written) = answer_and_pipe(
            "echo fine; exec >&-; { echo started; exec /bin/sleep 600; } > alive",
            LONG,
        );
        let error = answer.unwrap_err().to_string();
        assert!(error.ends_with(" failed: fine"), "{error}");
        assert_eq!(written, "started\n");
    }

    #[test]
    fn endless_output_is_too_large() {
        let answer = answer(
            "while :; do echo yes yes yes yes yes yes yes yes; done",
            LONG,
        );
        assert!(matches!(answer, Err(Error::TooLarge)), "{answer:?}");
    }
}
