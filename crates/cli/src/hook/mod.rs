//! The hook path: one event on stdin, one JSON object on stdout, always exit code 0.
//!
//! A watchdog thread enforces the deadline: if a lock, a disk or a pipe hangs, it prints the no-op
//! object. Faults are logged and recorded in the journal for `doctor`, and never shown as an error.

mod deadline;
mod plan;
mod prompt;
mod record;
mod start;
mod tool;
mod typed;
mod typed_by;

use std::{
    cell::OnceCell,
    ffi::OsStr,
    fs, io,
    mem::ManuallyDrop,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anamnesis_app::{
    context::Context,
    environment::{Caller, Environment},
    event_filter,
    learn::TurnUses,
    pause::{self, Off},
    remote,
    spawn::{INDEX_DAMAGED, LATE},
    sync,
    tool_hooks::AtTool,
};
use anamnesis_note::note::GLOBAL;
use anamnesis_recall::render::{Block, Chosen};
use anamnesis_session::{
    event::{Host, RecordedEvent, SessionEvent, Surroundings},
    hook::{HookEvent, HookOutput, Payload},
    prompt::SafePrompt,
    session_note::INSTRUCTIONS,
    transcript::memories,
};
use anamnesis_store::{
    fs::file::Stamp,
    index,
    journal::{self, Journal, Ledger, Seen, Session, ShownNote},
    project::{IdentifiedProject, Places, Project},
    spool::{Spool, Waiting},
};
use anamnesis_text::{hash::text_hash, private_tokens::PrivateTokens, sanitize::Sanitized};

use self::{
    deadline::{TYPED_DEADLINE, UNAWAITED_DEADLINE, Watchdog, read_stdin, watched},
    plan::{Action, Plan, Worker, plan},
    record::{FIRST_TIMEOUT, MAX_READ, kept},
    start::{is_beginning, line},
    typed::RunTyped,
};

/// Timeout for the lock on the notes at the end of a session.
const SESSION_END_NOTES_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for the lock on the notes. A hook that could not get the journal writes to the spool,
/// and does not wait for the notes.
const NOTES_TIMEOUT: Duration = Duration::from_millis(400);
const JOURNAL_TIMEOUT: Duration = Duration::from_millis(700);

/// The output, and what to do after it.
struct Reply {
    /// The text for stdout; empty for the end of a session.
    output: String,
    /// Whether to start the deferred process.
    start_work: bool,
    /// Whether the deferred process should check the index for damage.
    check_index: bool,
}

impl Reply {
    /// An answer after which nothing has to be done.
    fn only(answer: &HookOutput, event_name: &str) -> Self {
        Self {
            output: answer.to_json(event_name),
            start_work: false,
            check_index: false,
        }
    }

    fn no_op() -> Self {
        Self::only(&HookOutput::default(), "")
    }
}

/// Runs the hook whose payload is on stdin. The exit code is always 0.
pub(crate) fn main(run_typed: RunTyped, option: Option<&OsStr>) -> ExitCode {
    let run_typed = (option != Some(LATE.as_ref())).then_some(run_typed);
    watched(run_typed, || {
        (Environment::read(Caller::Client), read_stdin())
    })
}

/// Runs the hook whose payload was already read.
pub(crate) fn answer_payload(
    run_typed: RunTyped,
    environment: Environment,
    payload: Vec<u8>,
) -> ExitCode {
    watched(Some(run_typed), || (environment, Ok(payload)))
}

/// Reads one event and answers it.
fn answer(
    run_typed: Option<RunTyped>,
    environment: Environment,
    input: &io::Result<Vec<u8>>,
    started: Instant,
    watchdog: &Watchdog,
) -> Reply {
    if environment.is_off || environment.is_internal {
        return Reply::no_op();
    }
    let Ok(context) = Context::new(environment, NOTES_TIMEOUT) else {
        return Reply::no_op();
    };
    let input = input.as_ref().map_err(ToString::to_string);
    let mut payload = input.and_then(|bytes| {
        Payload::parse_from(bytes, context.environment.host).map_err(|error| error.to_string())
    });
    // This precedes every write: an excluded session must leave no trace.
    let folders = folders(&context, payload.as_ref().ok());
    let folder = folders.first().cloned().unwrap_or_default();
    let all: Vec<&Path> = folders.iter().map(AsRef::as_ref).collect();
    if let Some(off) = pause::why(&context, &all, || context.project_of(&folder)) {
        if let Ok(payload) = &mut payload {
            let end = typed_by::transcript_end(payload, &context);
            typed_by::mark(payload, &folders, end.as_deref(), None, &[]);
            if let (Some(run_typed), Some(typed)) = (run_typed, typed::typed(payload, &context)) {
                // The prompt itself is not recorded.
                watchdog.extend(TYPED_DEADLINE);
                let answer = typed.answer(run_typed, &context, &folder);
                return Reply::only(&answer, "UserPromptSubmit");
            }
        }
        if let Some(payload) = payload.as_ref().ok().filter(|_| off == Off::Folder) {
            hide_turn(&context, payload);
        }
        return switched_off(off, &context, payload.as_ref().ok());
    }
    if let Err(error) = context.home.create() {
        // The log cannot be written, either; `doctor` finds the same fault.
        context.log(&format!("hook: {error}"));
        return Reply::no_op();
    }
    match payload {
        Ok(_) if context.home.contains(&folder) => Reply::no_op(),
        Ok(payload) => answer_event(run_typed, context, &folders, payload, started, watchdog),
        Err(error) => {
            context.log(&format!("hook: {error}"));
            if let Ok(journal) = Journal::open(&context.home, journal_timeout(&context)) {
                let now = context.environment.now;
                let _ = journal.hook_ran("unknown", started.elapsed(), Some(&error), now);
            }
            Reply::no_op()
        }
    }
}

/// Handles an event, records it and writes the session's note, as its plan says. Without `run_typed`
/// nobody waits for an answer, and the event is only recorded.
fn answer_event(
    run_typed: Option<RunTyped>,
    mut context: Context,
    folders: &[PathBuf],
    mut payload: Payload,
    started: Instant,
    watchdog: &Watchdog,
) -> Reply {
    event_filter::unrecorded(&context, &mut payload.event);
    let is_awaited = plan(&payload).is_awaited;
    if !is_awaited {
        watchdog.extend(UNAWAITED_DEADLINE);
        context.set_notes_timeout(SESSION_END_NOTES_TIMEOUT);
    }
    let waiting = Spool::new(&context.home).waiting(MAX_READ);
    let folder = folders.first().cloned().unwrap_or_default();
    // The process ends: closing both databases is work that nobody needs.
    let hook = ManuallyDrop::new(Hook::new(context, folder, &payload, &waiting));
    let (end, journal) = (hook.transcript_end.as_deref(), hook.journal_to_read());
    typed_by::mark(&mut payload, folders, end, journal, &waiting);
    typed_by::mark_script(&mut payload.event, &hook.context);
    let typed = typed::typed(&payload, &hook.context);
    if typed.is_some() {
        watchdog.extend(TYPED_DEADLINE);
    }
    let plan = plan(&payload);
    let safe = hook.safe_prompt(plan.action);
    let prompt = safe.as_ref().map(|safe| safe.value.clone());
    let record = Arc::new(hook.record_of(&payload, safe, &waiting));
    watchdog.hold(&hook.context.home, &record);
    let mut handled = match (run_typed, typed) {
        (None, _) => Handled::default(),
        (Some(run_typed), Some(typed)) => Handled {
            answer: typed.answer(run_typed, &hook.context, &hook.folder),
            ..Handled::default()
        },
        (Some(_), None) => hook.handle(&plan, prompt.as_ref()),
    };
    let transcript = payload.transcript_path.as_ref().map(PathBuf::from);
    let is_recorded = hook.record(&record, waiting, &mut handled, started);
    watchdog.release();
    if let (false, Action::Start { .. }) = (is_recorded, plan.action)
        && hook.context.environment.is_interactive
    {
        handled.answer.system_message = lost_line(&handled).or(handled.answer.system_message);
    }
    if !is_recorded {
        // Without a record of the denial, the same call would be denied again and again.
        handled.answer.denial = None;
        // Nor would the summary that these ask for be read.
        handled.answer.instructions = None;
    }
    if let Some(tag) = plan.note {
        hook.write_note(tag, is_recorded, transcript.as_deref(), &mut handled);
    }
    for error in &handled.errors {
        hook.context
            .log(&format!("hook {}: {error}", hook.event_name));
    }
    // A hook has no time for a repair. The first hook that finds damage starts the deferred
    // process.
    let is_first_request =
        journal::damage_was_seen() && journal::request_repair(&hook.context.home);
    let has_long_log = || hook.journal.as_ref().is_ok_and(Journal::has_long_log);
    Reply {
        output: if is_awaited {
            hook.host.answer(&handled.answer, &hook.event_name)
        } else {
            String::new()
        },
        start_work: is_first_request
            || match plan.worker {
                Worker::Never => false,
                Worker::Checkpoint => has_long_log(),
                Worker::Pending => handled.start_work || has_long_log(),
                Worker::Always => true,
            },
        check_index: handled.check_index,
    }
}

/// Returns the line about a full or read-only disk, on which the record is neither in the journal nor in
/// the spool.
fn lost_line(handled: &Handled) -> Option<String> {
    let is_lost = |error: &&String| error.starts_with("spool: ");
    // The path before it would leave no room for the reason.
    let reason = handled.errors.iter().find(is_lost)?.rsplit(": ").next()?;
    let reason = reason.split(" (os error").next().unwrap_or_default();
    let text = format!("nothing can be written or recorded: {reason} · anamnesis doctor");
    Some(line(&text))
}

/// Answers nothing. Only a mistake in the settings that stops recording is reported.
fn switched_off(off: Off, context: &Context, payload: Option<&Payload>) -> Reply {
    let is_start = payload.is_some_and(
        |payload| matches!(plan(payload).action, Action::Start { source, .. } if is_beginning(source)),
    );
    let answer = if off == Off::Settings && is_start && context.environment.is_interactive {
        let text = format!("nothing is recorded: {} · anamnesis doctor", off.reason());
        HookOutput {
            system_message: Some(line(&text)),
            ..HookOutput::default()
        }
    } else {
        HookOutput::default()
    };
    let name = payload.map_or("", |payload| payload.event_name.as_str());
    Reply::only(&answer, name)
}

/// Keeps the rest of a turn out of the records of a session that enters an excluded folder. A session that
/// was never elsewhere has no records, and gets none in the spool either.
fn hide_turn(context: &Context, payload: &Payload) {
    let happens = matches!(
        payload.event,
        HookEvent::UserPromptSubmit { .. }
            | HookEvent::PostToolUse(_)
            | HookEvent::PostToolUseFailure(_)
            | HookEvent::PostToolBatch(_)
    );
    let path = context.home.journal();
    if !happens || !path.exists() {
        return;
    }
    let begins = matches!(payload.event, HookEvent::UserPromptSubmit { .. });
    let record = SessionEvent {
        session: payload.session_id.clone(),
        at: context.environment.now.timestamp_millis(),
        prompt_id: payload.prompt_id.clone(),
        agent: None,
        surroundings: Surroundings::default(),
        private: false,
        echoes: Vec::new(),
        what: RecordedEvent::Hidden { begins },
        unmasked: Vec::new(),
    };
    let hidden = Journal::open(&context.home, journal_timeout(context));
    let hidden = hidden.and_then(|journal| journal.in_transaction(|it| it.take(&record)));
    let Err(error) = hidden else { return };
    context.log(&format!("hook: {error}"));
    let spool = Spool::new(&context.home);
    let journal = Journal::open_to_read(&context.home, Duration::ZERO);
    let stored = journal.map(|it| it.map(|it| it.session(&record.session)));
    let is_known = matches!(stored, Ok(Some(Ok(Some(_)))));
    let is_of_session = |waiting: &Waiting| {
        let waiting = waiting.record.as_ref();
        waiting.is_some_and(|waiting| waiting.session == record.session)
    };
    if is_known || spool.waiting(MAX_READ).iter().any(is_of_session) {
        context.log_error("spool", spool.keep(&record));
    }
}

/// The folders of a session, its project's first. The payload's `cwd` follows the shell's `cd`, so
/// it comes second. If neither is known, the current folder is used.
fn folders(context: &Context, payload: Option<&Payload>) -> Vec<PathBuf> {
    let cwd = payload
        .and_then(|payload| payload.cwd.as_ref())
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let project = context.environment.project_folder.clone();
    let current = Context::current_folder();
    project.into_iter().chain(cwd).chain(current).collect()
}

/// The context in which an event is handled.
struct Hook {
    context: Context,
    host: Host,
    event_name: String,
    session_id: String,
    /// Whether a session starts or goes on.
    is_start: bool,
    /// The subagent of the event; empty for the session itself.
    agent: String,
    folder: PathBuf,
    /// The end of the transcript, at a prompt.
    transcript_end: Option<Vec<u8>>,
    known: OnceCell<IdentifiedProject>,
    /// The session's row in the journal, if the session has begun.
    session: OnceCell<Option<Session>>,
    journal: Result<Journal, journal::Error>,
    /// The journal of a newer version, or one that another process writes. It is not written to, but
    /// its private tokens still apply.
    read_only: Option<Journal>,
    /// The session's private tokens, as far as they are known.
    private_tokens: PrivateTokens,
    /// Whether the journal's private tokens could be read. If not, the event may repeat one.
    knows_private_tokens: bool,
}

/// The result of handling an event.
#[derive(Default)]
struct Handled {
    answer: HookOutput,
    /// The injected notes, by lane.
    given: Vec<(&'static str, Vec<ShownNote>)>,
    /// Whether the session's context is empty now.
    empties_context: bool,
    /// The recall run, for the journal.
    run: Option<journal::Run>,
    /// The task with which the subagent begins.
    taken: Option<String>,
    /// The injected notes that the turn used.
    used: Option<TurnUses>,
    errors: Vec<String>,
    /// Whether there is work for the deferred process.
    start_work: bool,
    check_index: bool,
    /// Keys and values for the journal's `meta` table.
    meta: Vec<(&'static str, String)>,
}

impl Handled {
    /// Adds a text to the context, on a line of its own.
    fn add_context(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let context = self.answer.context.get_or_insert_default();
        if !context.is_empty() && !context.ends_with('\n') {
            context.push('\n');
        }
        context.push_str(text);
    }

    /// Has the index refreshed, or rebuilt if it is damaged. A running deferred process notices it by
    /// `meta`.
    fn index_failed(&mut self, error: &index::Error) {
        self.start_work = true;
        self.check_index = error.is_damage();
        if self.check_index {
            self.meta.push((INDEX_DAMAGED, "1".to_owned()));
        }
    }

    /// Adds what was found for a tool call.
    fn take(&mut self, lane: &'static str, found: Result<Option<AtTool>, index::Error>) {
        match found {
            Ok(Some(found)) => {
                self.answer.context = found.context;
                self.answer.denial = found.denial;
                self.given.push((lane, vec![found.shown]));
            }
            // The next event that may start the deferred process will find the missing index.
            Ok(None) | Err(index::Error::Missing | index::Error::Foreign(_)) => {}
            Err(error) => self.errors.push(error.to_string()),
        }
    }
}

impl Hook {
    /// Opens the journal, and reads the private tokens once for recall and for the record. Tokens
    /// that still wait in the spool count, too.
    fn new(context: Context, folder: PathBuf, payload: &Payload, waiting: &[Waiting]) -> Self {
        // Opening waits only while another process creates or repairs the file. The record goes to the
        // spool then, before the deadline.
        let timeout = journal_timeout(&context).min(FIRST_TIMEOUT);
        let transcript_end = typed_by::transcript_end(payload, &context);
        let journal = Journal::open(&context.home, timeout);
        let read_only = match &journal {
            Err(journal::Error::Newer(_)) => {
                Journal::open_newer_to_read(&context.home, JOURNAL_TIMEOUT).ok()
            }
            Err(error) if error.is_busy() => Journal::open_to_read(&context.home, Duration::ZERO)
                .ok()
                .flatten(),
            _ => None,
        };
        let readable = journal.as_ref().ok().or(read_only.as_ref());
        let stored = readable.and_then(|journal| journal.echoes(&payload.session_id).ok());
        let own: Vec<&SessionEvent> = waiting
            .iter()
            .filter_map(|waiting| waiting.record.as_ref())
            .filter(|record| record.session == payload.session_id)
            .collect();
        // Of a session that began while the journal could not be used, all tokens are in the spool.
        let began_in_spool = || own.iter().any(|record| record.what.begins_session());
        let knows_private_tokens =
            waiting.len() < MAX_READ && (stored.is_some() || began_in_spool());
        let mut private_tokens = stored.unwrap_or_default();
        let hashes = own.iter().flat_map(|record| &record.echoes);
        private_tokens.extend(hashes.map(|echo| (echo.key, echo.hash)));
        Self {
            host: payload.host,
            event_name: payload.event_name.clone(),
            session_id: payload.session_id.clone(),
            is_start: matches!(payload.event, HookEvent::SessionStart { .. }),
            agent: payload
                .agent
                .as_ref()
                .map_or_else(String::new, |agent| agent.id.clone()),
            context,
            folder,
            transcript_end,
            known: OnceCell::new(),
            session: OnceCell::new(),
            journal,
            read_only,
            private_tokens,
            knows_private_tokens,
        }
    }

    /// Returns the journal, even if this version may not write to it.
    fn journal_to_read(&self) -> Option<&Journal> {
        self.journal.as_ref().ok().or(self.read_only.as_ref())
    }

    /// Returns the session's private tokens; `None` if some may be missing.
    fn all_private_tokens(&self) -> Option<&PrivateTokens> {
        self.knows_private_tokens.then_some(&self.private_tokens)
    }

    /// Makes the event's prompt safe, if it has one.
    fn safe_prompt(&self, action: Action<'_>) -> Option<Sanitized<SafePrompt>> {
        let Action::Prompt(raw) = action else {
            return None;
        };
        Some(match self.all_private_tokens() {
            Some(tokens) => SafePrompt::new(raw, Some(tokens)),
            None => SafePrompt::held(raw),
        })
    }

    /// Computes the answer to an event.
    fn handle(&self, plan: &Plan<'_>, prompt: Option<&SafePrompt>) -> Handled {
        let mut handled = Handled::default();
        match plan.action {
            Action::Nothing => {}
            Action::Start {
                source,
                idle_seconds,
            } => self.session_start(source, idle_seconds, &mut handled),
            Action::Prompt(raw) => self.prompt(raw, prompt, &mut handled),
            Action::Task(agent) => self.subagent_start(agent, &mut handled),
            Action::Warn(call) => self.before_tool(call, &mut handled),
            Action::Fix(calls) => self.after_failure(calls, &mut handled),
            Action::File(call) => self.at_file(call, &mut handled),
            Action::Instruct => {
                // Another host may take the text for a fault.
                let is_understood = self.host == Host::ClaudeCode;
                handled.answer.instructions = is_understood.then_some(INSTRUCTIONS);
            }
            Action::Learn { agent, text } => self.turn_end(agent, text, &mut handled),
        }
        if plan.syncs && self.context.config.sync.auto && remote::address(&self.context).is_some() {
            let now = self.context.environment.now.timestamp_millis();
            handled.meta.push((sync::WANTED, now.to_string()));
            handled.start_work = true;
        }
        // An interactive install is not followed by a session start, so any event will do.
        if let Ok(journal) = &self.journal {
            let (meta, fault) = remote::adopt(&self.context, journal);
            handled.meta.extend(meta);
            if let Some(fault) = fault {
                // The event itself succeeded. The fault is in the log, and `doctor` reports it.
                self.context.log(&fault);
            }
        }
        handled
    }

    /// The session's row in the journal, read once.
    fn session(&self) -> Option<&Session> {
        let read = || self.journal_to_read()?.session(&self.session_id).ok()?;
        self.session.get_or_init(read).as_ref()
    }

    /// The session's project, computed once. Git's settings are read when the session starts; later
    /// events take the key from the journal.
    fn project(&self) -> &Project {
        let journal = self.journal.as_ref().ok();
        let known = self.known.get_or_init(|| match self.project_of_session() {
            Some(project) => IdentifiedProject {
                project,
                rows: Vec::new(),
            },
            None => self.context.known(journal, &self.folder),
        });
        &known.project
    }

    /// The project that the journal has for the session in this folder. A folder that is not the root
    /// of a repository may be in another project.
    fn project_of_session(&self) -> Option<Project> {
        if !self.folder.join(".git").is_dir() {
            return None;
        }
        let session = self.session().filter(|_| !self.is_start)?;
        let is_here = session.folder.as_ref() == Some(&kept(&self.folder.to_string_lossy()));
        let key = &session.project;
        let mut project = (is_here && key != GLOBAL).then(|| Project::named(key))?;
        project.also = Places::new(self.journal.as_ref().ok()).others(key).ok()?;
        Some(project)
    }

    /// Returns the notes that a context of a session has received.
    fn ledger(&self, session: &str, agent: &str) -> Ledger {
        let journal = self.journal.as_ref().ok();
        journal
            .and_then(|journal| journal.ledger(session, agent).ok())
            .unwrap_or_default()
    }

    /// The copies of memory files that the client itself has added to the context.
    fn carried(&self) -> Ledger {
        let (Some(end), Ok(journal)) = (&self.transcript_end, &self.journal) else {
            return Ledger::new();
        };
        let paths = memories::carried(end);
        let copies = paths.iter().filter_map(|path| {
            let stamp = Stamp::from_metadata(&fs::symlink_metadata(path).ok()?);
            let note = journal.native_copy(&stamp).ok()??;
            let stored = self
                .context
                .notes
                .read(self.context.notes.find(note)?)
                .ok()?;
            let seen = Seen {
                hash: text_hash(&stored.note().body),
                with_text: true,
                is_excerpt_of_start: false,
            };
            Some((note, seen))
        });
        copies.collect()
    }
}

/// The notes of a block, for the journal.
fn shown(chosen: &[Chosen], block: &Block) -> Vec<ShownNote> {
    chosen
        .iter()
        .zip(&block.levels)
        .map(|(chosen, (id, level))| {
            let hash = text_hash(&chosen.note.body);
            ShownNote::new(*id, hash, level.as_str(), chosen.reason.as_str())
        })
        .collect()
}

/// The timeout for the journal. It is zero during a repair, which takes longer than a hook can
/// wait.
fn journal_timeout(context: &Context) -> Duration {
    if journal::is_repair_requested(&context.home) {
        Duration::ZERO
    } else {
        JOURNAL_TIMEOUT
    }
}
