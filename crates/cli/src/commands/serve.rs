//! `serve`: the MCP server.

use std::{
    io::{self, BufRead as _, Read as _},
    process::ExitCode,
};

use anamnesis_app::{
    context::{Context, PATIENCE},
    environment::Environment,
    failure::Failure,
    forget, learn, spawn,
    sync::{self, held_text},
};
use anamnesis_mcp::{Host, LastLook, Memory, Standing, Synced, Unable};
use anamnesis_note::{agent_policy::Review, draft::safe_line, id::NoteId, usage_log::Usage};
use anamnesis_session::hook::{MAX_PAYLOAD_LENGTH, Payload};
use anamnesis_store::{
    journal::{self, Journal},
    notes::NotePath,
    settings::config::Config,
};
use anamnesis_sync::Answer;
use chrono::{DateTime, Utc};
use serde_json::error::Category;

use super::sync::PATIENCE as SYNC_PATIENCE;
use crate::ui::Outcome;

/// How many characters of a reason are logged.
const MAX_REASON_LENGTH: usize = 200;

/// Serve the memory to a model (MCP), over stdin and stdout
///
/// Clients start this command, and close stdin when they are done.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The project that "." means [default: that of CLAUDE_PROJECT_DIR]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
}

pub(crate) fn run(args: &Args, environment: Environment) -> Outcome {
    serve(args.project.as_deref(), environment, Vec::new())
}

/// Serves a client whose first bytes were already read.
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
    let session = context.environment.session.clone();
    // A client that names no session starts one server per session.
    let counted_to = session.clone().unwrap_or_else(|| {
        let begun = NoteId::generate(context.environment.now);
        format!("server {begun}")
    });
    let memory = Memory {
        home: context.home.clone(),
        project,
        version: env!("CARGO_PKG_VERSION"),
        with_learned: context.config.learn.links,
        machine_id: context.machine_id(),
        session,
        counted_to,
        min_reflected: context.environment.min_episodics.max(1),
        host: Box::new(Program::new(context)),
        last_look: LastLook::default(),
    };
    anamnesis_mcp::serve(memory, read_before)
        .map_err(|error| Failure::failed(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// Gives the server access to this program.
struct Program(Context);

impl Program {
    fn new(mut context: Context) -> Self {
        // MCP tools are called by a model.
        context.environment.is_agent = true;
        Self(context)
    }

    /// Reads the settings again, because a server outlives them.
    fn context(&self) -> Context {
        Context {
            environment: self.0.environment.at_present(),
            config: Config::load(&self.0.home),
            ..self.0.clone()
        }
    }
}

impl Host for Program {
    fn now(&self) -> DateTime<Utc> {
        self.0.environment.current_time()
    }

    fn review(&self) -> Review {
        Config::load(&self.0.home).review
    }

    fn standing(&self) -> Standing {
        let context = self.context();
        let standing = sync::Standing::load(&context, context.journal().as_ref());
        Standing {
            detail: standing.text(context.environment.current_time()),
            initialized: standing.state.initialized,
            remote: standing.remote,
            head: standing.state.head,
            dirty: standing.state.dirty,
        }
    }

    fn changed(&self) {
        if let Err(error) = spawn::start_work(&self.0.environment, false) {
            // The next hook starts it.
            self.0.log(&format!("serve: the deferred process: {error}"));
        }
    }

    fn met_damage(&self) {
        journal::request_repair(&self.0.home);
        self.changed();
    }

    fn approve(&self, reflection: &str) -> Result<String, Unable> {
        // The client has asked the person, so the command runs for the person. The server itself
        // never runs git.
        spawn::run_for_person(&self.0.environment, &["review", "--approve", reflection])
            .map_err(|problem| Failure::failed(problem).hint("anamnesis review").into())
    }

    fn forget(&self, note: NotePath, reason: Option<&str>) -> Result<(), Unable> {
        let context = self.context();
        forget::forget_notes(&context, &[note])?;
        self.changed();
        let reason = reason.map(safe_line).unwrap_or_default();
        let reason: String = reason.chars().take(MAX_REASON_LENGTH).collect();
        context.log(&format!("{} was forgotten by a tool: {reason}", note.id));
        Ok(())
    }

    fn tell(&self, session: Option<&str>, usage: &Usage) -> Result<bool, Unable> {
        let context = self.context();
        let journal = Journal::open(&context.home, PATIENCE).map_err(Failure::from)?;
        let is_told =
            learn::tell(&context, &journal, session, usage, PATIENCE).map_err(Failure::from)?;
        context.index()?;
        Ok(is_told)
    }

    fn sync(&self) -> Result<Synced, Unable> {
        let context = self.context();
        let synced = sync::run(
            &context,
            context.journal().as_ref(),
            Answer::None,
            SYNC_PATIENCE,
        )?;
        let problems = synced.problems.iter();
        Ok(Synced {
            pushed: synced.pushed,
            pulled: synced.pulled,
            conflicts: synced.conflicts,
            head: synced.head,
            detail: synced.detail,
            problems: problems
                .map(|problem| format!("{}: {}", problem.path, problem.reason))
                .collect(),
            held: synced.held.as_ref().map(held_text),
        })
    }
}

/// What stdin contains if no command is named.
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
