//! A program that is stopped right before a chosen step: a system call that changes something.
//!
//! Steps are counted, not timed, so that the same number falls on the same place in every run. What
//! is killed there has done all steps before and not this one, whatever it is: a note's file, a
//! reference, a page of the index, the start of git or the wait for its end.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read as _, Seek as _, Write as _},
    process::{Child, Command, Stdio},
};

use nix::{
    errno::Errno,
    libc,
    sys::{
        ptrace::{self, Options},
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};

use crate::Result;

/// Waits for a line, so that whoever traces it is there in time, and becomes the program.
const WAITS: &str = "read -r _ && exec \"$0\" \"$@\" </dev/null";

/// The system calls that change something, but for `openat`, which does when it makes a file.
const CHANGES: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_ftruncate,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_exit_group,
];

/// The programs that git starts where the remote is. They are not this machine's and outlive it, and
/// so does what they start: it stands in the bare repository.
const SERVER: [&str; 2] = ["git-upload-pack", "git-receive-pack"];

/// Whose steps are counted, and who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The program alone: what it has started goes on without it.
    Program,
    /// Everything that runs on this machine, as when its power fails.
    Machine,
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The exit code; none when it was killed.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A program that runs from step to step.
pub(super) struct Traced {
    program: Pid,
    reach: Reach,
    /// Every thread that can be stopped.
    threads: BTreeSet<Pid>,
    /// Who stands before a step.
    waiting: Option<Pid>,
    steps: usize,
    code: Option<i32>,
    stdout: File,
    stderr: File,
    // Waited for by `waitpid`, together with all that it starts.
    _child: Child,
}

impl Traced {
    /// Starts a program of which only the environment and the folder are taken from `template`.
    ///
    /// Only the thread that starts it can go on with it, and no other child of that thread must run.
    pub(super) fn start(template: &Command, reach: Reach) -> Result<Self> {
        let stdout = tempfile::tempfile()?;
        let stderr = tempfile::tempfile()?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WAITS]).arg(template.get_program());
        command.args(template.get_args()).env_clear();
        for (name, value) in template.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        if let Some(folder) = template.get_current_dir() {
            command.current_dir(folder);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .spawn()?;
        let program = Pid::from_raw(i32::try_from(child.id())?);
        let mut options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_EXITKILL;
        if reach == Reach::Machine {
            options |= Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK;
        }
        ptrace::seize(program, options)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(b"\n")?;
        }
        Ok(Self {
            program,
            reach,
            threads: BTreeSet::from([program]),
            waiting: None,
            steps: 0,
            code: None,
            stdout,
            stderr,
            _child: child,
        })
    }

    /// Lets it run until it stands before the step of this number, counted from 1; tells whether it
    /// does, or has ended before.
    pub(super) fn run_to(&mut self, step: usize) -> Result<bool> {
        if let Some(waiting) = self.waiting.take() {
            resume(waiting, None)?;
        }
        while let Some(status) = next_stop()? {
            match status {
                WaitStatus::PtraceSyscall(thread) => {
                    if is_entered(thread)? && is_step(thread)? {
                        self.steps += 1;
                        if self.steps == step {
                            self.waiting = Some(thread);
                            return Ok(true);
                        }
                    }
                    resume(thread, None)?;
                }
                WaitStatus::Stopped(thread, signal) => resume(thread, Some(signal))?,
                other => self.take_up(other)?,
            }
        }
        Ok(false)
    }

    /// Kills it where it stands. A step before which it stands is not done.
    pub(super) fn kill(mut self) -> Result {
        match self.reach {
            Reach::Program => kill_it(self.program)?,
            Reach::Machine => self.threads.clone().into_iter().try_for_each(end)?,
        }
        while let Some(status) = next_stop()? {
            match status {
                // One that was started in this moment.
                WaitStatus::PtraceEvent(thread, ..)
                | WaitStatus::PtraceSyscall(thread)
                | WaitStatus::Stopped(thread, _) => end(thread)?,
                other => self.take_up(other)?,
            }
        }
        Ok(())
    }

    /// Lets it run to its end.
    pub(super) fn finish(mut self) -> Result<Ended> {
        self.run_to(usize::MAX)?;
        Ok(Ended {
            code: self.code,
            stdout: contents(&mut self.stdout)?,
            stderr: contents(&mut self.stderr)?,
        })
    }

    /// Takes note of threads that come and go.
    fn take_up(&mut self, status: WaitStatus) -> Result {
        match status {
            WaitStatus::PtraceEvent(thread, ..) => {
                self.threads.insert(thread);
                resume(thread, None)?;
            }
            WaitStatus::Exited(thread, code) => {
                self.threads.remove(&thread);
                if thread == self.program {
                    self.code = Some(code);
                }
            }
            WaitStatus::Signaled(thread, ..) => {
                self.threads.remove(&thread);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Waits for whatever this thread traces; none when all of it has ended.
fn next_stop() -> Result<Option<WaitStatus>> {
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    match waitpid(None, Some(flags)) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::ECHILD) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Lets a thread run to its next stop. One that was killed meanwhile is gone, which its end tells.
fn resume(thread: Pid, signal: Option<Signal>) -> Result {
    unless_gone(ptrace::syscall(thread, signal))
}

fn kill_it(process: Pid) -> Result {
    unless_gone(kill(process, Signal::SIGKILL))
}

/// Ends a process of this machine; one of the remote's is let go.
fn end(process: Pid) -> Result {
    if is_server(process) {
        // Only one that stands can be let go; the others come to stand soon.
        return unless_gone(ptrace::detach(process, None));
    }
    kill_it(process)
}

fn is_server(process: Pid) -> bool {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace("git\0", "git-");
    let folder = fs::read_link(format!("/proc/{process}/cwd")).unwrap_or_default();
    SERVER.iter().any(|name| line.contains(name))
        || folder.extension().is_some_and(|ending| ending == "git")
}

fn unless_gone(result: nix::Result<()>) -> Result {
    match result {
        Err(Errno::ESRCH) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Tells whether a thread goes into a system call, and not out of it.
fn is_entered(thread: Pid) -> Result<bool> {
    match ptrace::syscall_info(thread) {
        Ok(info) => Ok(info.op == libc::PTRACE_SYSCALL_INFO_ENTRY),
        Err(Errno::ESRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Tells whether the system call that a thread goes into changes something.
fn is_step(thread: Pid) -> Result<bool> {
    // Its number and its arguments: `257 0xffffff9c 0x7ffd… 0x80241 …`.
    let line = fs::read_to_string(format!("/proc/{thread}/syscall"))?;
    let mut words = line.split_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse().ok()) else {
        return Ok(false);
    };
    if number == libc::SYS_openat {
        let flags = words.nth(2).and_then(|word| word.strip_prefix("0x"));
        let flags = flags.and_then(|digits| i64::from_str_radix(digits, 16).ok());
        return Ok(flags.is_some_and(|flags| flags & i64::from(libc::O_CREAT) != 0));
    }
    Ok(CHANGES.contains(&number))
}

fn contents(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, folder: &std::path::Path) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .env("PATH", "/usr/bin:/bin")
            .current_dir(folder);
        command
    }

    #[test]
    fn what_is_killed_before_a_step_has_done_all_before_and_nothing_after() {
        let folder = tempfile::tempdir().unwrap();
        let script = ": >one; : >two; : >three";
        let command = shell(script, folder.path());
        for (step, there) in [(1, 0), (2, 1), (3, 2)] {
            let mut traced = Traced::start(&command, Reach::Program).unwrap();
            assert!(traced.run_to(step).unwrap());
            traced.kill().unwrap();
            let files = fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(files, there, "step {step}");
            for entry in fs::read_dir(folder.path()).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }

    #[test]
    fn what_a_killed_program_has_started_goes_on_unless_the_machine_stops() {
        // The child says who it is, then the program takes its last step.
        let script = "sh -c 'echo $$ >child; while :; do :; done' &
            until [ -s child ]; do :; done; : >last";
        for (reach, last, lives) in [(Reach::Program, 2, true), (Reach::Machine, 4, false)] {
            let folder = tempfile::tempdir().unwrap();
            let mut traced = Traced::start(&shell(script, folder.path()), reach).unwrap();
            assert!(traced.run_to(last).unwrap());
            let child = fs::read_to_string(folder.path().join("child")).unwrap();
            let child = child.trim();
            traced.kill().unwrap();
            assert!(!folder.path().join("last").exists());
            // One that has ended and is not waited for has no arguments.
            let arguments = fs::read(format!("/proc/{child}/cmdline"));
            let is_running = arguments.is_ok_and(|arguments| !arguments.is_empty());
            if is_running {
                kill_it(Pid::from_raw(child.parse().unwrap())).unwrap();
            }
            assert_eq!(is_running, lives, "{reach:?}");
        }
    }

    #[test]
    fn what_is_left_alone_ends_as_it_would() {
        let folder = tempfile::tempdir().unwrap();
        let command = shell("echo out; echo err >&2; (exit 3)", folder.path());
        for reach in [Reach::Program, Reach::Machine] {
            let mut traced = Traced::start(&command, reach).unwrap();
            assert!(traced.run_to(1).unwrap());
            let ended = traced.finish().unwrap();
            assert_eq!(ended.code, Some(3));
            assert_eq!(
                (ended.stdout.as_str(), ended.stderr.as_str()),
                ("out\n", "err\n")
            );
        }
        let missing = Command::new("/no/such/program");
        let ended = Traced::start(&missing, Reach::Program)
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!(ended.code, Some(127));
    }
}
