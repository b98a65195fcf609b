//! The `anamnesis` binary: hooks for Claude Code, commands for people.
//!
//! Composition only: what is stored, chosen and said is decided in the libraries. The first argument
//! decides everything: `hook` goes to the fast path, which knows nothing of the command line.

mod approval;
mod auto_reflect;
mod batch;
mod capture;
mod cited;
mod client;
mod commands;
mod context;
mod detach;
mod distil;
mod environment;
mod failure;
mod hook;
mod learn;
mod model;
mod native;
mod off;
mod past;
mod python_version;
mod recall;
mod remember;
mod remote;
mod skip;
mod summary;
mod sync;
mod terminal_command;
mod tool_lanes;
mod trial;
mod ui;

use std::{env, ffi::OsStr, process::ExitCode};

use crate::environment::{Caller, Environment};

fn main() -> ExitCode {
    // Whatever is made, by us or by git for us, is for its owner alone.
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let mut arguments = env::args_os().skip(1);
    // The event is taken from stdin; more arguments are a mistake in somebody's settings, and no
    // reason to show an error under every prompt.
    let first = arguments.next();
    if first.as_deref() == Some("hook".as_ref()) {
        return hook::main();
    }
    commands::main(Environment::read(caller(first.as_deref())))
}

/// Clients start the server, with `serve` or without a verb, and pipe into it.
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
