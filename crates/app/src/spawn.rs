//! Starts `anamnesis internal work` so that it outlives the hook.
//!
//! When the client cancels a hook, it kills all of its descendants, even those in a session of
//! their own (`setsid`). It cannot find a process whose parent has exited. So the hook starts a
//! process that starts the real one and exits at once.

use std::{
    env,
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anamnesis_store::journal;

use crate::{
    Error,
    context::Context,
    environment::{CLAUDE_CODE, Environment, NOW},
};

/// The option of `internal work` that starts the real process and exits.
pub const DETACH: &str = "--detach";

/// The option of `internal work` that checks the index for damage.
pub const CHECK: &str = "--check";

/// The option of `hook` that only records the event.
pub const LATE: &str = "--late";

/// The journal key with which a hook reports damage in the index.
pub const INDEX_DAMAGED: &str = "index_damaged";

/// `CREATE_NO_WINDOW` and `CREATE_NEW_PROCESS_GROUP`: neither a window that opens nor Ctrl-C in the
/// client's console reaches the process. git, which it starts, shares its hidden console.
#[cfg(windows)]
const WITHOUT_CONSOLE: u32 = 0x0800_0000 | 0x0200;

/// The message for a record that cannot be read.
pub const UNREADABLE: &str = "a record in spool/ cannot be read; it is in quarantine/ now";

/// Keeps this process's standard streams from the processes that it starts. Called before any thread.
///
/// Windows hands every inheritable handle to every child, whatever its standard streams are. A client
/// that reads a hook's output to its end would wait for the deferred process.
#[cfg(windows)]
pub fn keep_streams_from_children() {
    use filedescriptor::{FileDescriptor, StdioDescriptor};

    // Each stream becomes a copy, which is not inheritable. The originals are closed together at the
    // end, because two streams may share one handle.
    let originals = [
        FileDescriptor::redirect_stdio(&io::stdin(), StdioDescriptor::Stdin),
        FileDescriptor::redirect_stdio(&io::stdout(), StdioDescriptor::Stdout),
        FileDescriptor::redirect_stdio(&io::stderr(), StdioDescriptor::Stderr),
    ];
    // A stream that is not open stays so.
    drop(originals);
}

/// Starts the deferred process and does not wait for it.
pub fn start_work(environment: &Environment, check: bool) -> io::Result<()> {
    spawn_work(environment, &[DETACH], check)
}

/// Starts the deferred process for a tool's changes. If it cannot be started, the next hook does it.
pub fn work_soon(context: &Context) {
    let started = start_work(&context.environment, false);
    context.log_error("cannot start the deferred process", started);
}

/// Starts a process that records the event of this payload with the environment's time, and does not
/// wait for it.
pub fn record_late(environment: &Environment, payload: &[u8]) -> io::Result<()> {
    let mut command = Command::new(program(environment)?);
    command
        .args(["hook", LATE])
        .env(NOW, environment.now.to_rfc3339())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    leave_console(&mut command);
    let mut child = command.spawn()?;
    child
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(payload))
}

/// Starts the viewer so that it outlives this process, with the rights of the caller. Returns what it
/// prints first, the address.
pub fn start_viewer(environment: &Environment, arguments: &[&str]) -> io::Result<String> {
    let mut command = detached(environment, arguments)?;
    if environment.is_agent {
        command.env(CLAUDE_CODE, "1");
    }
    // The viewer shows the project of its folder.
    if let Ok(folder) = std::env::current_dir() {
        command.current_dir(folder);
    }
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.is_empty() {
        return Err(io::Error::other("the viewer ended at once"));
    }
    Ok(line)
}

/// Starts a repair in the background if this process met damage in the journal.
pub fn repair_if_damaged(environment: &Environment) {
    if !journal::damage_was_seen() {
        return;
    }
    if let Ok(context) = Context::new(environment.clone(), Duration::ZERO) {
        journal::request_repair(&context.home);
        work_soon(&context);
    }
}

/// Starts the process that does the work; the caller exits right after.
pub fn start_detached(environment: &Environment, check: bool) -> io::Result<()> {
    spawn_work(environment, &[], check)
}

/// Runs one of our commands on behalf of the person, who approved it. Returns its output.
pub fn run_for_person(environment: &Environment, arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new(program(environment).map_err(Error::caused_by)?)
        .args(arguments)
        .env_clear()
        .envs(environment.for_person())
        .stdin(Stdio::null())
        .output()
        .map_err(Error::caused_by)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(Error::failed(text(&output.stderr)))
    }
}

fn program(environment: &Environment) -> io::Result<&Path> {
    let program = environment.program.as_deref();
    program
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the program's path is not known"))
}

fn spawn_work(environment: &Environment, options: &[&str], check: bool) -> io::Result<()> {
    let mut command = detached(environment, &["internal", "work"])?;
    command.args(options).args(check.then_some(CHECK));
    command.spawn().map(drop)
}

/// Prepares one of our commands that outlives this process.
fn detached(environment: &Environment, arguments: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(program(environment)?);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.inherited())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Not in the project's folder, which could not be removed or unmounted meanwhile.
    if let Some(folder) = env::temp_dir()
        .ancestors()
        .last()
        .filter(|root| root.is_dir())
    {
        command.current_dir(folder);
    }
    leave_console(&mut command);
    Ok(command)
}

/// Keeps signals of the client's terminal from a process.
fn leave_console(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(windows)]
    std::os::windows::process::CommandExt::creation_flags(command, WITHOUT_CONSOLE);
}
