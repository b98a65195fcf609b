//! `serve`: the memory as tools of a model.

use std::{
    io::{self, BufRead as _, Read as _},
    process::ExitCode,
};

use anamnesis_core::hook::{MAX_PAYLOAD_LENGTH, Payload};
use anamnesis_mcp::Memory;
use serde_json::error::Category;

use super::Outcome;
use crate::{context::Context, environment::Environment, failure::Failure, sync};

/// Serve the memory to a model (MCP), over stdin and stdout
///
/// Started by clients, which close stdin when they are done.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The project that "." stands for; without it the one of CLAUDE_PROJECT_DIR
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
}

pub(crate) fn run(args: &Args, environment: Environment) -> Outcome {
    serve(args.project.as_deref(), environment, Vec::new())
}

/// Serves a client of which this was read already.
pub(super) fn serve(
    project: Option<&str>,
    environment: Environment,
    read_before: Vec<u8>,
) -> Outcome {
    let context = Context::open(environment)?;
    let project = match (project, &context.environment.project_folder) {
        (Some(key), _) => Some(context.project(Some(key))),
        (None, Some(folder)) => Some(context.project_of(folder)),
        (None, None) => None,
    };
    let environment = context.environment.clone();
    let memory = Memory {
        home: context.home.clone(),
        project,
        version: env!("CARGO_PKG_VERSION"),
        with_learned: context.config.learn.links,
        clock: Box::new(move || environment.current_time()),
        sync: Box::new(move || {
            sync::Standing::load(&context, context.journal().as_ref()).told(&context)
        }),
    };
    anamnesis_mcp::serve(memory, read_before)
        .map_err(|error| Failure::failed(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// What somebody who names no command pipes in.
pub(super) enum Piped {
    /// A hook's payload, whole.
    Hook(Vec<u8>),
    /// The first words of a client that wants to be served, or nothing at all.
    Client(Vec<u8>),
}

impl Piped {
    /// Reads as much of stdin as tells which it is. A client waits for its answer before it says more;
    /// each of its messages is a line.
    pub(super) fn read() -> io::Result<Self> {
        let most = u64::try_from(MAX_PAYLOAD_LENGTH).unwrap_or(u64::MAX);
        let mut input = io::stdin().lock().take(most);
        let mut bytes = Vec::new();
        input.read_until(b'\n', &mut bytes)?;
        let is_hook = match serde_json::from_slice::<serde::de::IgnoredAny>(&bytes) {
            Ok(_) => Payload::parse(&bytes).is_ok(),
            // A document over several lines is no message of a client's.
            Err(error) => !bytes.is_empty() && error.classify() == Category::Eof,
        };
        if is_hook {
            input.read_to_end(&mut bytes)?;
        }
        Ok(if is_hook && Payload::parse(&bytes).is_ok() {
            Self::Hook(bytes)
        } else {
            Self::Client(bytes)
        })
    }
}
