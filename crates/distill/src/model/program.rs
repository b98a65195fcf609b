//! Asks through Claude Code's own command, `claude -p`: who has no key, has a subscription.
//!
//! The command is run as bare as it can be: no hooks, no plugins, no tools, no servers, no settings of a
//! project, and no session that could be resumed. It stands in no project's folder. What it is told comes
//! on its standard input, where no list of processes shows it.

use std::{
    ffi::OsString,
    io::{self, Read, Write as _},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::{Error, MAX_ANSWER, clipped};

/// How long the program has to end once it has said everything.
const FAREWELL: Duration = Duration::from_secs(2);

/// How often its end is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// Claude Code's command.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program.
    pub path: PathBuf,
    /// The model it is to use.
    pub model: String,
    /// The folder it runs in; no project's.
    pub folder: PathBuf,
    /// What is set in its environment beside what this process has: that it is ours, so that hooks in it
    /// do nothing.
    pub variables: Vec<(OsString, OsString)>,
    /// What of the environment of this process it does not get.
    pub without: Vec<OsString>,
    /// How long an answer may take.
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
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        for name in &self.without {
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
        let spoken = converse(&mut child, user.to_owned(), deadline);
        let status = if matches!(spoken, Ok(Some(_))) {
            farewell(&mut child)
        } else {
            end(&mut child);
            None
        };
        let answer = spoken
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

/// Tells the program a text and hears what it says; none when the time is over first.
fn converse(child: &mut Child, text: String, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    thread::Builder::new().spawn(move || {
        // A program that does not listen to the end may still answer.
        let _ = input.map(|mut input| input.write_all(text.as_bytes()));
    })?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let mut heard = Vec::new();
        let most = u64::try_from(MAX_ANSWER).unwrap_or(u64::MAX);
        let read = output.map_or(Ok(0), |output| {
            output.take(most + 1).read_to_end(&mut heard)
        });
        // Nobody listens any more when the time is over.
        let _ = sender.send(read.map(|_| heard));
    })?;
    match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(heard) => heard.map(Some),
        Err(_) => Ok(None),
    }
}

/// Waits a little for a program that has closed its output; one that stays is ended.
fn farewell(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + FAREWELL;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => thread::sleep(LOOK),
            ended => return ended.ok().flatten(),
        }
    }
    end(child);
    None
}

/// Ends the program with all that it started.
fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        // It is not reaped yet, so nobody else has its number.
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    // It may be gone already.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use anamnesis_testkit::home::script;

    use super::*;

    /// What a program of these lines answers.
    fn answer(lines: &str, timeout: Duration) -> (tempfile::TempDir, Result<String, Error>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("claude");
        script(&path, lines);
        let program = Program {
            path,
            model: "haiku".to_owned(),
            folder: folder.path().to_owned(),
            variables: vec![("ANAMNESIS_INTERNAL".into(), "1".into())],
            without: vec!["PATH".into()],
            timeout,
        };
        let answer = program.ask("the task", "the text");
        (folder, answer)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn the_command_is_bare_and_marked() {
        // DP-9
        let (_folder, answer) = answer(
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
    fn it_is_told_on_its_input() {
        let (_folder, answer) = answer("read -r line; echo \"heard $line\"", LONG);
        // The text has no line feed at its end.
        assert_eq!(answer.unwrap(), "heard the text\n");
    }

    #[test]
    fn what_goes_wrong_is_told() {
        for (lines, expected) in [
            ("echo 'please log in'; exit 1", " failed: please log in"),
            ("exit 3", " failed"),
            ("exit 0", " is empty"),
        ] {
            let (_folder, answer) = answer(lines, LONG);
            let error = answer.unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn it_ends_with_all_that_it_started() {
        let (folder, answer) = answer(
            "/bin/sh -c 'echo $$ > \"$0\"/child; exec /bin/sleep 600' \"$PWD\" & wait",
            Duration::from_secs(2),
        );
        assert!(matches!(answer, Err(Error::Timeout(_))), "{answer:?}");
        let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
        let is_there = || {
            std::path::Path::new("/proc")
                .join(child.trim())
                .join("exe")
                .exists()
        };
        let deadline = Instant::now() + LONG;
        while cfg!(target_os = "linux") && is_there() {
            assert!(Instant::now() < deadline, "it still runs");
            thread::sleep(LOOK);
        }
    }

    #[test]
    fn it_may_talk_without_end() {
        let (_folder, answer) = answer(
            "while :; do echo yes yes yes yes yes yes yes yes; done",
            LONG,
        );
        assert!(matches!(answer, Err(Error::TooLarge)), "{answer:?}");
    }
}
