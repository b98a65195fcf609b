//! `serve`: the MCP server.

use std::{
    io::{self, BufRead as _, Read as _},
    process::ExitCode,
};

use anamnesis_app::{context::Context, environment::Environment};
use anamnesis_session::hook::{MAX_PAYLOAD_LENGTH, Payload};
use serde_json::error::Category;

use crate::ui::Outcome;

/// Serve the memory to a model (MCP), over stdin and stdout
///
/// Clients start this command, and close stdin when they are done.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The project that "." means [default: that of CLAUDE_PROJECT_DIR]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
}

/// Serves a client. `read_before` are the bytes that were already read from stdin.
pub(crate) fn run(args: &Args, environment: Environment, read_before: Vec<u8>) -> Outcome {
    let context = Context::open(environment)?;
    let project = match (&args.project, &context.environment.project_folder) {
        (Some(key), _) => Some(context.project(Some(key))),
        (None, Some(folder)) => Some(context.project_of(folder)),
        (None, None) => None,
    };
    // While anybody has the journal open, a hook need not read its whole write-ahead log. On Windows an
    // open file cannot be moved, as a repair does.
    #[cfg(unix)]
    let _open_journal = context.records();
    anamnesis_mcp::serve(context.for_tools(project), read_before)?;
    Ok(ExitCode::SUCCESS)
}

/// The content of stdin if no command is named.
pub(super) enum Piped {
    /// A complete hook payload.
    Hook(Vec<u8>),
    /// The first bytes of an MCP client, or nothing.
    Client(Vec<u8>),
}

impl Piped {
    /// Reads just enough of stdin to tell the two apart. A client sends one message per line and
    /// waits for the answer.
    pub(super) fn read() -> io::Result<Self> {
        let most = u64::try_from(MAX_PAYLOAD_LENGTH).unwrap_or(u64::MAX);
        let mut input = io::stdin().lock().take(most);
        let mut bytes = Vec::new();
        input.read_until(b'\n', &mut bytes)?;
        let is_hook = match serde_json::from_slice::<serde::de::IgnoredAny>(&bytes) {
            Ok(_) => Payload::parse(&bytes).is_ok(),
            // A client's message is never longer than a line, so this is a hook's payload.
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
