//! The `anamnesis` binary: hooks for Claude Code, commands for people.
//!
//! Composition only: what is stored, chosen and said is decided in the libraries. The first argument
//! decides everything: `hook` goes to the fast path, which knows nothing of the command line.

mod args;
mod commands;
mod hook;
mod input;
mod ui;

use std::{env, ffi::OsStr, process::ExitCode};

use anamnesis_app::environment::{Caller, Environment};

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
