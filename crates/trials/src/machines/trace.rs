//! Runs a program up to a chosen step: a system call that changes something.
//!
//! Steps are counted, not timed, so that the same number means the same place in every run. A
//! program that is killed there has done all earlier steps and not this one, such as a write to a
//! note or the index, or the start of git.

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

/// Waits for a line, so that the tracer can attach, and then becomes the program.
const WAITS: &str = "read -r _ && exec \"$0\" \"$@\" </dev/null";

/// The system calls that change something. `openat` is handled apart, because it may create a file.
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

/// The programs that git starts on the remote's side. They and their children belong to another
/// machine and survive a kill.
const SERVER: [&str; 2] = ["git-upload-pack", "git-receive-pack"];

/// Which processes are counted and killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The program only; its children continue.
    Program,
    /// Everything on this machine, as in a power cut.
    Machine,
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The exit code, or `None` if it was killed.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A program that runs from step to step.
pub(super) struct Traced {
    program: Pid,
    reach: Reach,
    /// Every traced thread.
    threads: BTreeSet<Pid>,
    /// The thread that is stopped before a step.
    waiting: Option<Pid>,
    steps: usize,
    code: Option<i32>,
    stdout: File,
    stderr: File,
    // `waitpid` waits for it, together with its children.
    _child: Child,
}

impl Traced {
    /// Starts a program with the environment and folder of `template`.
    ///
    /// Only the calling thread can continue the program, and that thread must have no other child.
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

    /// Runs until the program is stopped before this step, counted from 1. Returns false if it has
    /// ended.
    pub(super) fn run_to(&mut self, step: usize) -> Result<bool> {
        let mut steps = self.steps;
        let is_stopped = self.run(|_, call| {
            steps += usize::from(call.is_change());
            Ok(call.is_change() && steps == step)
        });
        self.steps = steps;
        is_stopped
    }

    /// Lets the program run to its end, and shows each system call before it is made, with its thread.
    pub(super) fn watch(mut self, mut see: impl FnMut(Pid, &Call) -> Result) -> Result<Ended> {
        self.run(|thread, call| see(thread, call).map(|()| false))?;
        self.finish()
    }

    /// Runs until the program is stopped before a system call. Returns false if it has ended.
    fn run(&mut self, mut is_stop: impl FnMut(Pid, &Call) -> Result<bool>) -> Result<bool> {
        if let Some(waiting) = self.waiting.take() {
            resume(waiting, None)?;
        }
        while let Some(status) = next_stop()? {
            match status {
                WaitStatus::PtraceSyscall(thread) => {
                    if is_entered(thread)?
                        && let Some(call) = Call::entered_by(thread)?
                        && is_stop(thread, &call)?
                    {
                        self.waiting = Some(thread);
                        return Ok(true);
                    }
                    resume(thread, None)?;
                }
                WaitStatus::Stopped(thread, signal) => resume(thread, Some(signal))?,
                other => self.add_to_index(other)?,
            }
        }
        Ok(false)
    }

    /// Kills the program where it is stopped. The step is not executed.
    pub(super) fn kill(mut self) -> Result {
        match self.reach {
            Reach::Program => kill_it(self.program)?,
            Reach::Machine => self.threads.clone().into_iter().try_for_each(end)?,
        }
        while let Some(status) = next_stop()? {
            match status {
                // A thread that was started at this moment.
                WaitStatus::PtraceEvent(thread, ..)
                | WaitStatus::PtraceSyscall(thread)
                | WaitStatus::Stopped(thread, _) => end(thread)?,
                other => self.add_to_index(other)?,
            }
        }
        Ok(())
    }

    /// Lets the program run to its end.
    pub(super) fn finish(mut self) -> Result<Ended> {
        self.run_to(usize::MAX)?;
        Ok(Ended {
            code: self.code,
            stdout: contents(&mut self.stdout)?,
            stderr: contents(&mut self.stderr)?,
        })
    }

    /// Tracks threads that start and end.
    fn add_to_index(&mut self, status: WaitStatus) -> Result {
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

/// Waits for the next event of a traced thread. Returns `None` when all have ended.
fn next_stop() -> Result<Option<WaitStatus>> {
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    match waitpid(None, Some(flags)) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::ECHILD) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Resumes a thread until its next stop. Ignores one that was killed; its end is reported
/// separately.
fn resume(thread: Pid, signal: Option<Signal>) -> Result {
    unless_gone(ptrace::syscall(thread, signal))
}

fn kill_it(process: Pid) -> Result {
    unless_gone(kill(process, Signal::SIGKILL))
}

/// Kills a process of this machine, or detaches from one of the remote's.
fn end(process: Pid) -> Result {
    if is_server(process) {
        // Only a stopped process can be detached; the others stop soon.
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

/// Returns whether a thread is entering a system call, not leaving it.
fn is_entered(thread: Pid) -> Result<bool> {
    match ptrace::syscall_info(thread) {
        Ok(info) => Ok(info.op == libc::PTRACE_SYSCALL_INFO_ENTRY),
        Err(Errno::ESRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A system call.
pub(super) struct Call {
    pub(super) number: libc::c_long,
    pub(super) arguments: [u64; 6],
}

impl Call {
    /// Returns the system call that a thread enters.
    fn entered_by(thread: Pid) -> Result<Option<Self>> {
        // The call's number and arguments: `257 0xffffff9c 0x7ffd… 0x80241 …`.
        let line = fs::read_to_string(format!("/proc/{thread}/syscall"))?;
        let mut words = line.split_whitespace();
        let Some(number) = words.next().and_then(|word| word.parse().ok()) else {
            return Ok(None);
        };
        let mut arguments = [0; 6];
        for (argument, word) in arguments.iter_mut().zip(words) {
            let digits = word.trim_start_matches("0x");
            *argument = u64::from_str_radix(digits, 16)?;
        }
        Ok(Some(Self { number, arguments }))
    }

    /// Returns whether it changes something.
    fn is_change(&self) -> bool {
        match self.number {
            libc::SYS_openat => self.arguments[2] & libc::O_CREAT as u64 != 0,
            number => CHANGES.contains(&number),
        }
    }
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
    fn kill_before_a_step_keeps_earlier_steps_only() {
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
    fn children_survive_a_kill_of_the_program_but_not_of_the_machine() {
        // The child writes its id, then the program executes its last step.
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
            // A process that has ended and was not waited for has no arguments.
            let arguments = fs::read(format!("/proc/{child}/cmdline"));
            let is_running = arguments.is_ok_and(|arguments| !arguments.is_empty());
            if is_running {
                kill_it(Pid::from_raw(child.parse().unwrap())).unwrap();
            }
            assert_eq!(is_running, lives, "{reach:?}");
        }
    }

    #[test]
    fn an_undisturbed_program_ends_normally() {
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
