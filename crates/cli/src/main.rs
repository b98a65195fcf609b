//! The `anamnesis` binary: hooks for Claude Code, commands for people.
//!
//! This crate only composes the libraries. The first argument selects the path: `hook` goes to the
//! fast path, which does not load the command line parser.

mod commands;
mod hook;
mod input;
mod ui;

use std::{env, ffi::OsStr, process::ExitCode};

use anamnesis_app::environment::{Caller, Environment};

// musl gives freed memory back to the kernel at once, which costs page faults. SQLite uses this
// allocator, too. See `docs/decisions/0064-platforms.md`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Files that we or git create are readable only by their owner.
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    #[cfg(windows)]
    anamnesis_app::spawn::keep_streams_from_children();
    let mut arguments = env::args_os().skip(1);
    // The event is on stdin. Extra arguments are a mistake in the settings, but must not cause an
    // error at every prompt.
    let first = arguments.next();
    if first.as_deref() == Some("hook".as_ref()) {
        return hook::main(commands::run_typed, arguments.next().as_deref());
    }
    commands::main(&Environment::read(caller(first.as_deref())))
}

/// MCP clients start the server with `serve` or without a verb, and use pipes.
fn caller(verb: Option<&OsStr>) -> Caller {
    let is_client = match verb {
        Some(verb) => verb == "serve",
        None => !ui::stdin_is_terminal(),
    };
    if is_client {
        Caller::Client
    } else {
        Caller::Person
    }
}
