//! The hook path: one event on stdin, one JSON object on stdout, exit 0 whatever happens.
//!
//! A second thread watches the clock while the event is handled: a lock, a disk or a pipe that hangs
//! ends in the no-op object, not in a client that waits. Every fault is a line in the log and a mark
//! in the records, for `doctor`; none is ever in the user's way.

use std::{
    cell::OnceCell,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{self, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use anamnesis_app::{
    capture, claude_memory, client,
    context::Context,
    environment::{Caller, Environment},
    event_filter, journal_repair,
    learn::{self, TurnUses},
    pause::{self, Off},
    python_version,
    recall::{self, Asker, Lane},
    remember, remote,
    spawn::{self, INDEX_DAMAGED, UNREADABLE},
    sync::{self, History},
    task,
    tool_hooks::{self, AtTool},
};
use anamnesis_note::note::{Note, Source, parse_timestamp};
use anamnesis_recall::render::{self, Block, Chosen, Reason};
use anamnesis_recall::session_start::{self, DEFAULT_K, Request};
use anamnesis_session::{
    event::{Agent, Privacy, Record, RecordedEvent, Surroundings},
    hook::{Event, HookOutput, MAX_PAYLOAD_LENGTH, Payload, StartSource, ToolCall},
    intake::Intake,
    session_note::SessionDigest,
};
use anamnesis_store::{
    index::{self, Index},
    journal::{self, Audience, Journal, Ledger, Shown, Taken, WARNING},
    project::{self, Known, Project},
    session_note,
    settings::config::SessionLine,
    spool::{Spool, Waiting},
};
use anamnesis_text::{clean::one_line, hash::text_hash, private_tokens::Key, redact::redact};
use chrono::DateTime;
use ulid::Ulid;

use crate::ui;

/// After this the hook answers with nothing, whatever it is doing.
const DEADLINE: Duration = Duration::from_millis(1100);

/// The end of a session is asynchronous: nobody waits for it, and its note is worth the time.
const PATIENT_DEADLINE: Duration = Duration::from_secs(60);
const PATIENT_NOTES: Duration = Duration::from_secs(30);

/// How long a hook waits for the notes and for the journal. One that has waited for the journal in
/// vain puts its record into the spool, and does not wait for the notes, too.
const NOTES_PATIENCE: Duration = Duration::from_millis(400);
const JOURNAL_PATIENCE: Duration = Duration::from_millis(700);

/// How many records of the spool a hook takes up beside its own.
const MAX_DRAINED: usize = 50;

/// How much of the end of a transcript is read for the last answer, in bytes.
const TRANSCRIPT_END: u64 = 256 * 1024;

/// How long the line about a hook that was given up may take to be written.
const LOG_PATIENCE: Duration = Duration::from_millis(50);

/// How many notes that came from other machines are named at a prompt.
const MAX_ARRIVALS: usize = 3;

/// The key in `meta` of the repair that the person was told of.
const REPAIR_TOLD: &str = "repair_told";

/// The longest line for the person, in characters.
const MAX_LINE_LENGTH: usize = 100;

/// What the watch is told while an event is handled: this one may take longer.
struct Patient;

/// What is printed, and what is done afterwards.
#[derive(Default)]
struct Reply {
    /// The text for stdout; nothing for the end of a session.
    output: String,
    /// Whether the deferred process is to be started.
    start_work: bool,
    /// Whether it is to look for damage in the index.
    check_index: bool,
}

/// Runs the hook whose payload is on stdin. The exit code is always 0.
pub(crate) fn main() -> ExitCode {
    watched(|| (Environment::read(Caller::Client), read_stdin()))
}

/// Runs the hook whose payload was read already.
pub(crate) fn answer_payload(environment: Environment, payload: Vec<u8>) -> ExitCode {
    watched(|| (environment, Ok(payload)))
}

/// Handles what `input` gives, and answers in time.
///
/// The main thread does the work: another one would pay for a memory arena of its own and for being
/// woken up.
fn watched(input: impl FnOnce() -> (Environment, io::Result<Vec<u8>>)) -> ExitCode {
    let started = Instant::now();
    let answered = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let watch = thread::Builder::new().spawn({
        let answered = Arc::clone(&answered);
        move || watch(started, &receiver, &answered)
    });
    if watch.is_err() {
        // Without a watch nothing is begun that could hang.
        print(&HookOutput::default().to_json(""));
        return ExitCode::SUCCESS;
    }
    let (environment, payload) = input();
    let reply = answer(environment, payload, started, &sender);
    if answered.swap(true, Ordering::AcqRel) {
        // The watch has answered in this moment, and ends the process.
        loop {
            thread::park();
        }
    }
    print(&reply.output);
    if reply.start_work {
        let environment = Environment::read(Caller::Client);
        if let Err(error) = spawn::start_work(&environment, reply.check_index)
            && let Ok(context) = Context::of(environment, Duration::ZERO)
        {
            context.log(&format!("hook: cannot start the deferred process: {error}"));
        }
    }
    ExitCode::SUCCESS
}

/// Waits for the deadline; then answers with nothing and ends the process, whatever it is doing.
#[expect(
    clippy::exit,
    reason = "the main thread hangs, so nobody else can end the process"
)]
fn watch(started: Instant, receiver: &Receiver<Patient>, answered: &AtomicBool) {
    let mut deadline = DEADLINE;
    loop {
        match receiver.recv_timeout(deadline.saturating_sub(started.elapsed())) {
            Ok(Patient) => deadline = PATIENT_DEADLINE,
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
    if answered.swap(true, Ordering::AcqRel) {
        return;
    }
    print(&HookOutput::default().to_json(""));
    // The disk may be what hangs, so the log is not waited for, either.
    let (done, logged) = mpsc::channel();
    let elapsed = started.elapsed();
    let _ = thread::Builder::new().spawn(move || {
        log_late(elapsed);
        let _ = done.send(());
    });
    let _ = logged.recv_timeout(LOG_PATIENCE);
    process::exit(0)
}

/// Leaves a line about a hook that was given up.
fn log_late(elapsed: Duration) {
    if let Ok(context) = Context::of(Environment::read(Caller::Client), Duration::ZERO)
        && !context.environment.is_internal
        && pause::here(&context).is_none()
    {
        // It may be the first hook of this machine, with no place for a log yet.
        let _ = context.home.create();
        context.log(&format!("hook: gave up after {} ms", elapsed.as_millis()));
    }
}

/// Prints the answer. The client may be gone: a closed pipe is no error.
fn print(output: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(output.as_bytes());
    let _ = stdout.flush();
}

/// Handles one event.
fn answer(
    environment: Environment,
    input: io::Result<Vec<u8>>,
    started: Instant,
    sender: &Sender<Patient>,
) -> Reply {
    let no_op = || Reply {
        output: HookOutput::default().to_json(""),
        ..Reply::default()
    };
    if environment.is_off || environment.is_internal {
        return no_op();
    }
    let Ok(mut context) = Context::of(environment, NOTES_PATIENCE) else {
        return no_op();
    };
    let payload = input
        .map_err(|error| error.to_string())
        .and_then(|bytes| Payload::parse(&bytes).map_err(|error| error.to_string()));
    // Before anything is written: nobody is to see that there was a session.
    let folders = folders(&context, payload.as_ref().ok());
    let folder = folders.first().cloned().unwrap_or_default();
    let all: Vec<&Path> = folders.iter().map(AsRef::as_ref).collect();
    if let Some(off) = pause::why(&context, &all, || context.project_of(&folder)) {
        return switched_off(off, &context, payload.as_ref().ok());
    }
    if let Err(error) = context.home.create() {
        // There is no place for a log, either; `doctor` finds the same fault.
        context.log(&format!("hook: {error}"));
        return no_op();
    }
    let mut payload = match payload {
        Ok(payload) => payload,
        Err(error) => {
            context.log(&format!("hook: {error}"));
            if let Ok(journal) = Journal::open(&context.home, journal_patience(&context)) {
                let now = context.environment.now;
                let _ = journal.hook_ran("unknown", started.elapsed(), Some(&error), now);
            }
            return no_op();
        }
    };
    let is_end = matches!(payload.event, Event::SessionEnd { .. });
    if is_end {
        let _ = sender.send(Patient);
        context.be_patient(PATIENT_NOTES);
    }
    if context.home.contains(&folder) {
        return no_op();
    }
    event_filter::unrecorded(&context, &mut payload.event);
    let hook = Hook {
        journal: Journal::open(&context.home, journal_patience(&context)),
        event_name: payload.event_name.clone(),
        session_id: payload.session_id.clone(),
        agent: payload
            .agent
            .as_ref()
            .map_or_else(String::new, |agent| agent.id.clone()),
        context,
        folder,
        known: OnceCell::new(),
    };
    let mut handled = hook.handle(&payload);
    let tag = match &payload.event {
        Event::PreCompact => Some("precompact"),
        Event::SessionEnd { .. } => Some("session-end"),
        _ => None,
    };
    let transcript = payload.transcript_path.clone().map(PathBuf::from);
    let is_recorded = hook.record(payload, &mut handled, started);
    if !is_recorded {
        // Nobody would know that the call was stopped already, and it would be stopped again.
        handled.answer.denial = None;
    }
    if let Some(tag) = tag {
        hook.write_note(tag, is_recorded, transcript.as_deref(), &mut handled);
    }
    for error in &handled.errors {
        hook.context
            .log(&format!("hook {}: {error}", hook.event_name));
    }
    let output = if is_end {
        String::new()
    } else {
        std::mem::take(&mut handled.answer).to_json(&hook.event_name)
    };
    // A hook has no time to repair: the deferred process does, started by the first one that met damage.
    let is_first_request =
        journal::damage_was_seen() && journal::request_repair(&hook.context.home);
    let has_long_log = || hook.journal.as_ref().is_ok_and(Journal::has_long_log);
    Reply {
        output,
        start_work: match handled.may_start {
            _ if is_first_request => true,
            MayStart::Nothing => false,
            MayStart::Checkpoint => has_long_log(),
            MayStart::Work => handled.start_work || has_long_log(),
        },
        check_index: handled.check_index,
    }
}

/// Says nothing; but that nothing is recorded because of a slip in a file has to be said to somebody.
fn switched_off(off: Off, context: &Context, payload: Option<&Payload>) -> Reply {
    let is_start = payload.is_some_and(|payload| {
        matches!(payload.event, Event::SessionStart { source, .. } if is_beginning(source))
    });
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
    Reply {
        output: answer.to_json(name),
        ..Reply::default()
    }
}

/// Reads the payload; what goes on after the limit is drained, so that the client can finish writing.
fn read_stdin() -> io::Result<Vec<u8>> {
    let mut stdin = io::stdin().lock();
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_PAYLOAD_LENGTH).unwrap_or(u64::MAX);
    stdin.by_ref().take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_PAYLOAD_LENGTH {
        io::copy(&mut stdin, &mut io::sink())?;
    }
    Ok(bytes)
}

/// The folders of a session, its project's first. The payload's `cwd` follows the shell's `cd`, so it
/// comes second; where neither is known, there is still the folder that this process stands in.
fn folders(context: &Context, payload: Option<&Payload>) -> Vec<PathBuf> {
    let cwd = payload
        .and_then(|payload| payload.cwd.as_ref())
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let project = context.environment.project_folder.clone();
    let current = Context::current_folder();
    project.into_iter().chain(cwd).chain(current).collect()
}

/// What an event is handled with.
struct Hook {
    context: Context,
    event_name: String,
    session_id: String,
    /// The subagent that this happens in; empty for the session itself.
    agent: String,
    folder: PathBuf,
    known: OnceCell<Known>,
    journal: Result<Journal, journal::Error>,
}

/// What an event may start the deferred process for. A tool's own event is never burdened with it.
#[derive(Debug, Clone, Copy, Default)]
enum MayStart {
    #[default]
    Nothing,
    /// To fold a long log of the journal in: each hook reads it.
    Checkpoint,
    /// For whatever there is to do.
    Work,
}

/// What handling an event came to.
#[derive(Default)]
struct Handled {
    answer: HookOutput,
    /// What was given, by lane.
    given: Vec<(&'static str, Vec<Shown>)>,
    /// Whether the session's context is empty now.
    empties_context: bool,
    /// How recall went.
    run: Option<journal::Run>,
    /// The task that the subagent begins with.
    taken: Option<String>,
    /// What the turn used of the notes that were given.
    used: Option<TurnUses>,
    errors: Vec<String>,
    /// What the event may start the deferred process for.
    may_start: MayStart,
    start_work: bool,
    check_index: bool,
    /// A name and a value that the records keep from now on.
    meta: Vec<(&'static str, String)>,
}

impl Handled {
    /// Takes what comes at a tool.
    fn take(&mut self, lane: &'static str, found: AtTool) {
        self.answer.context = found.context;
        self.answer.denial = found.denial;
        self.given.push((lane, vec![found.shown]));
    }
}

impl Hook {
    /// Finds what is answered.
    fn handle(&self, payload: &Payload) -> Handled {
        let mut handled = match &payload.event {
            Event::SessionStart { source, .. } => self.session_start(*source),
            Event::UserPromptSubmit { prompt } => self.prompt(prompt),
            Event::SubagentStart => self.subagent_start(payload.agent.as_ref()),
            Event::PreToolUse(call) => self.before_tool(call),
            Event::PostToolUseFailure(call) => self.after_failure(std::slice::from_ref(call)),
            Event::PostToolBatch(calls) => self.after_failure(calls),
            Event::Stop(answered) => self.turn_end("", answered.text.as_deref()),
            Event::SubagentStop(answered) => match &payload.agent {
                Some(agent) => self.turn_end(&agent.id, answered.text.as_deref()),
                None => Handled::default(),
            },
            _ => Handled::default(),
        };
        handled.may_start = match &payload.event {
            Event::SessionStart { .. }
            | Event::UserPromptSubmit { .. }
            | Event::Stop(_)
            | Event::PreCompact
            | Event::SessionEnd { .. } => MayStart::Work,
            // A turn of many tools has a batch now and then.
            Event::PostToolBatch(_) => MayStart::Checkpoint,
            _ => MayStart::Nothing,
        };
        handled.start_work |= matches!(payload.event, Event::SessionEnd { .. });
        let is_edge = matches!(
            payload.event,
            Event::SessionStart { .. } | Event::SessionEnd { .. }
        );
        if is_edge && remote::address(&self.context).is_some() && self.context.config.sync.auto {
            let now = self.context.environment.now.timestamp_millis();
            handled.meta.push((sync::WANTED, now.to_string()));
            handled.start_work = true;
        }
        // After an interactive install there is no start of a session, so any event will do.
        if let Ok(journal) = &self.journal {
            let (meta, fault) = remote::adopt(&self.context, journal);
            handled.meta.extend(meta);
            if let Some(fault) = fault {
                // Nothing went wrong with the event: it stands in the log, and `doctor` names it.
                self.context.log(&fault);
            }
        }
        handled
    }

    /// The session's project, found once.
    fn project(&self) -> &Project {
        let journal = self.journal.as_ref().ok();
        let known = self
            .known
            .get_or_init(|| self.context.known(journal, &self.folder));
        &known.project
    }

    /// Gives the working set, and the person one line.
    fn session_start(&self, source: StartSource) -> Handled {
        let mut handled = Handled {
            empties_context: matches!(
                source,
                StartSource::Startup | StartSource::Clear | StartSource::Compact
            ),
            ..Handled::default()
        };
        let project = self.project();
        let (chosen, block) = if let Ok(index) = Index::open(&self.context.home) {
            handled.start_work = index.is_behind(&self.context.notes);
            self.working_set(&index, project, source, &mut handled)
        } else {
            // No index yet, or one that has to be built anew: the deferred process does that.
            handled.start_work = true;
            (Vec::new(), Block::default())
        };
        if is_beginning(source) && self.context.environment.is_interactive {
            let line = self.session_line(&chosen, &block, &mut handled);
            handled.answer.system_message = line;
        }
        if !block.text.is_empty() {
            handled.answer.context = Some(block.text);
        }
        handled
    }

    fn working_set(
        &self,
        index: &Index,
        project: &Project,
        source: StartSource,
        handled: &mut Handled,
    ) -> (Vec<Chosen>, Block) {
        let journal = self.journal.as_ref().ok();
        let request = Request {
            project: &project.key,
            also: &project.also,
            k: DEFAULT_K,
            session: (source == StartSource::Compact).then_some(self.session_id.as_str()),
            now: self.context.environment.now,
            had: &claude_memory::copies(journal, &project.key),
        };
        let notes = &self.context.notes;
        let selected = session_start::select(index, notes, &request).and_then(|mut chosen| {
            chosen.extend(session_start::open_tasks(index, notes, &request)?);
            Ok(chosen)
        });
        let mut chosen = match selected {
            Ok(chosen) => chosen,
            Err(error) => {
                handled.check_index = error.is_damage();
                if handled.check_index {
                    // Another deferred process may be at it, and would not hear of it otherwise.
                    handled.meta.push((INDEX_DAMAGED, "1".to_owned()));
                }
                handled.errors.push(error.to_string());
                handled.start_work = true;
                Vec::new()
            }
        };
        if matches!(source, StartSource::Resume | StartSource::Fork) {
            // What the session was given before still stands in its history.
            let ledger = self.ledger("");
            chosen.retain(|chosen| {
                let seen = ledger.get(&chosen.note.id);
                !seen
                    .is_some_and(|seen| seen.with_text && seen.hash == text_hash(&chosen.note.body))
            });
        }
        let block = render::hook_block(&chosen, request.now, |id| Context::short(index, id));
        handled.given.push(("start", shown(&chosen, &block)));
        (chosen, block)
    }

    /// The one line for the person: the first of what applies.
    fn session_line(
        &self,
        chosen: &[Chosen],
        block: &Block,
        handled: &mut Handled,
    ) -> Option<String> {
        let journal = self.journal.as_ref().ok()?;
        let now = self.context.environment.now;
        let setting = self.context.config.session_line;
        if setting == SessionLine::Off {
            return None;
        }
        let today = now.date_naive().to_string();
        // A task is named, not given.
        let is_given = |chosen: &&Chosen| chosen.reason != Reason::OpenTask;
        let notes_given = chosen.iter().filter(is_given).count();
        let ignored = self.context.environment.ignored_in_sessions();
        let ignored = ignored.first();
        let repair = repair_line(journal);
        let told = repair.as_ref().map(|(of, _)| of.clone());
        let problem = repair.map(|(_, line)| line);
        let problem = problem.or_else(|| problem_line(journal, now));
        let problem =
            problem.or_else(|| ignored.map(|name| format!("{name} is ignored · anamnesis doctor")));
        let problem = problem.or_else(|| {
            sync_line(journal, now).map(|problem| match notes_given {
                0 => problem,
                count => format!("{} · {problem}", ui::count(count, "note")),
            })
        });
        if let Some(problem) = problem
            && journal.meta("problem_told").ok().flatten().as_deref() != Some(&today)
        {
            handled.meta.push(("problem_told", today));
            handled.meta.extend(told.map(|of| (REPAIR_TOLD, of)));
            return Some(line(&problem));
        }
        // Told apart, so that it keeps no fault from being told.
        if python_version::is_noting(journal)
            && journal.meta("noted_twice_told").ok().flatten().as_deref() != Some(&today)
        {
            handled.meta.push(("noted_twice_told", today));
            return Some(line(&format!(
                "{} · sessions are noted twice, the Python version is on too · /memory-setup",
                ui::count(notes_given, "note")
            )));
        }
        if setting == SessionLine::Problems {
            return None;
        }
        if journal.meta("greeted").ok()?.is_none() {
            handled.meta.push(("greeted", today));
            let store = self.context.shown(self.context.home.root());
            return Some(line(&format!(
                "sessions are noted in {store} from now on · /memory-status"
            )));
        }
        if block.text.is_empty() {
            return None;
        }
        let count = match notes_given {
            0 => ui::count(chosen.len(), "open task"),
            notes => ui::count(notes, "note"),
        };
        let last = last_session(chosen, &self.context, now);
        Some(line(&format!(
            "{count} (~{} tokens){last} · /memory-why",
            ui::number(block.tokens())
        )))
    }

    /// What a context of the session has seen.
    fn ledger(&self, agent: &str) -> Ledger {
        let journal = self.journal.as_ref().ok();
        journal
            .and_then(|journal| journal.ledger(&self.session_id, agent).ok())
            .unwrap_or_default()
    }

    /// Warns of a call that is about to run. Without the records nothing is known of what was said
    /// before, and the call goes its way.
    fn before_tool(&self, call: &ToolCall) -> Handled {
        let mut handled = Handled::default();
        let Ok(journal) = &self.journal else {
            return handled;
        };
        if !self.context.config.recall.tool {
            return handled;
        }
        let whom = (self.session_id.as_str(), self.agent.as_str());
        match tool_hooks::warn(&self.context, journal, self.project(), whom, call) {
            Ok(Some(found)) => handled.take(WARNING, found),
            // The next event that may start the deferred process finds the index as it is.
            Ok(None) | Err(index::Error::Missing | index::Error::Foreign(_)) => {}
            Err(error) => handled.errors.push(error.to_string()),
        }
        handled
    }

    /// Says what mended a failure before, the first of these of which that is known.
    fn after_failure(&self, calls: &[ToolCall]) -> Handled {
        let mut handled = Handled::default();
        let Ok(journal) = &self.journal else {
            return handled;
        };
        let failed = |call: &&ToolCall| call.error.is_some() && !call.is_interrupt;
        let mut failed = calls.iter().filter(failed).peekable();
        if failed.peek().is_none() || !self.context.config.recall.failure {
            return handled;
        }
        let ledger = self.ledger(&self.agent);
        let known = failed.find_map(|call| {
            let (context, session) = (&self.context, &self.session_id);
            tool_hooks::mended(context, journal, self.project(), session, &ledger, call)
        });
        if let Some(found) = known {
            handled.take("failure", found);
        }
        handled
    }

    /// Names what came from other machines since the session began, once.
    ///
    /// The sync that a start sets off ends after the working set was given. So the first prompt after
    /// it is told what the working set would now hold besides.
    fn arrivals(&self) -> Option<(Block, Vec<Shown>)> {
        let journal = self.journal.as_ref().ok()?;
        let arrived: i64 = journal.meta(sync::ARRIVED).ok()??.parse().ok()?;
        let session = journal.session(&self.session_id).ok()??;
        let told = journal.last_prompt_at(&self.session_id).ok()?;
        if arrived < told.unwrap_or(session.started_at) {
            return None;
        }
        let index = Index::open(&self.context.home).ok()?;
        let request = Request {
            project: &self.project().key,
            also: &self.project().also,
            k: DEFAULT_K,
            session: None,
            now: self.context.environment.now,
            had: &claude_memory::copies(Some(journal), &self.project().key),
        };
        let mut chosen = session_start::select(&index, &self.context.notes, &request).ok()?;
        let known = journal.notes_shown_in(&self.session_id).ok()?;
        let machine = self.context.machine_id();
        chosen
            .retain(|chosen| chosen.note.machine_id != machine && !known.contains(&chosen.note.id));
        chosen.truncate(MAX_ARRIVALS);
        let block = render::arrivals(&chosen, request.now, |id| Context::short(&index, id));
        let shown = shown(&chosen, &block);
        (!block.text.is_empty()).then_some((block, shown))
    }

    /// Gives what memory has for a prompt, or for the task of a subagent.
    fn recall(&self, lane: Lane, text: &str, handled: &mut Handled) {
        // Without the records nothing is known of what the context has seen, and it would be given
        // the same again and again.
        let Ok(journal) = &self.journal else {
            return;
        };
        let Ok(echoes) = journal.echoes(&self.session_id) else {
            return;
        };
        let settings = &self.context.config.recall;
        let Ok(sentences) = recall::question(text, &echoes, lane, settings) else {
            return;
        };
        let asker = Asker {
            context: &self.context,
            project: self.project(),
            journal: Some(journal),
            lane,
            ledger: self.ledger(&self.agent),
            agent: self.agent.clone(),
        };
        match asker.recall(&sentences) {
            Ok(answer) => {
                if lane == Lane::Prompt && self.context.config.recall.prompt_line {
                    handled.answer.system_message =
                        recall::line(&answer.outcome).map(|text| line(&text));
                }
                if !answer.block.text.is_empty() {
                    let context = handled.answer.context.get_or_insert_default();
                    if !context.is_empty() {
                        context.push('\n');
                    }
                    context.push_str(&answer.block.text);
                }
                handled.given.push((lane.as_str(), answer.shown));
                handled.run = Some(answer.run);
            }
            Err(error) => {
                handled.check_index = error.is_damage();
                handled.start_work = true;
                if !matches!(error, index::Error::Missing | index::Error::Foreign(_)) {
                    handled.errors.push(error.to_string());
                }
            }
        }
    }

    /// Gives what memory has for the task that a subagent begins with.
    fn subagent_start(&self, agent: Option<&Agent>) -> Handled {
        let mut handled = Handled::default();
        let (Ok(journal), Some(agent)) = (&self.journal, agent) else {
            return handled;
        };
        if let Ok(Some((id, task))) = journal.open_delegation(&self.session_id, &agent.kind) {
            self.recall(Lane::Agent, &task, &mut handled);
            handled.taken = Some(id);
        }
        handled
    }

    /// Finds what a context used in its turn of the notes that it was given.
    fn turn_end(&self, agent: &str, answer: Option<&str>) -> Handled {
        let mut handled = Handled::default();
        let Ok(journal) = &self.journal else {
            return handled;
        };
        let answer = answer.unwrap_or_default();
        match learn::uses(&self.context, journal, &self.session_id, agent, answer) {
            Ok(used) => handled.used = used,
            Err(error) => handled.errors.push(error.to_string()),
        }
        handled
    }

    /// Does what a person asks of us by a command, which then only reports it; else gives what memory has.
    fn prompt(&self, prompt: &str) -> Handled {
        let mut handled = Handled::default();
        let (context, journal) = (&self.context, self.journal.as_ref().ok());
        let (done, failed) = if let Some(text) = remember::asked_for(prompt) {
            let project = &self.project().key;
            let saved = remember::save_words(context, journal, text, project);
            (saved, "not saved")
        } else if let Some(asked) = task::asked_for(prompt) {
            let project = &self.project().key;
            (task::act(context, journal, &asked, project), "not done")
        } else {
            if let Some((block, shown)) = self.arrivals() {
                handled.answer.context = Some(block.text);
                handled.given.push(("arrivals", shown));
            }
            self.recall(Lane::Prompt, prompt, &mut handled);
            return handled;
        };
        let report = done.unwrap_or_else(|error| {
            handled.errors.push(error.clone());
            format!("{failed}: {error} · /memory-status")
        });
        handled.answer.context = Some(format!("anamnesis: {report}"));
        handled
    }

    /// Stores what happened: in one transaction, or, where the journal cannot be had, in the spool.
    /// Tells whether the journal has it.
    fn record(&self, payload: Payload, handled: &mut Handled, started: Instant) -> bool {
        let spool = Spool::new(&self.context.home);
        let mut waiting = spool.waiting(MAX_DRAINED);
        let is_start = matches!(payload.event, Event::SessionStart { .. });
        let record = self.record_of(payload, &waiting);
        let stored = match &self.journal {
            Ok(journal) => journal
                .together(|journal| {
                    let mut taken = journal.take_waiting(&mut waiting)?;
                    taken.has_job |= journal.take(&record)?.has_job;
                    self.keep_run(journal, handled, started)?;
                    Ok(taken)
                })
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match stored {
            Ok(Taken { has_job }) => {
                handled.start_work |= has_job || (is_start && self.has_unfinished_sessions());
                for waiting in &waiting {
                    if waiting.record.is_none() {
                        handled.errors.push(UNREADABLE.to_owned());
                    }
                    if let Err(error) = spool.put_away(waiting) {
                        handled.errors.push(format!("spool: {error}"));
                    }
                }
                true
            }
            Err(error) => {
                handled.errors.push(error);
                // A damaged file is repaired by the deferred process.
                handled.start_work = true;
                if let Err(error) = spool.keep(&record) {
                    handled.errors.push(format!("spool: {error}"));
                }
                false
            }
        }
    }

    /// Tells whether there are sessions that nobody closed, or notes that nobody wrote.
    fn has_unfinished_sessions(&self) -> bool {
        let now = self.context.environment.now.timestamp_millis();
        self.journal.as_ref().is_ok_and(|journal| {
            journal.has_jobs(now).unwrap_or(false)
                || journal
                    .has_lost_sessions(now, client::is_running)
                    .unwrap_or(false)
        })
    }

    /// Makes the record of an event. The records in the spool come before it.
    fn record_of(&self, mut payload: Payload, waiting: &[Waiting]) -> Record {
        let environment = &self.context.environment;
        // A newer program's file is not written to, but what is private in it stays so.
        let newer = match &self.journal {
            Err(journal::Error::Newer(_)) => {
                Journal::open_newer_to_read(&self.context.home, JOURNAL_PATIENCE).ok()
            }
            _ => None,
        };
        let journal = self.journal.as_ref().ok().or(newer.as_ref());
        let known = journal.and_then(|journal| journal.session(&self.session_id).ok().flatten());
        // If the private tokens cannot be read, the event may repeat them.
        let echoes = journal.and_then(|journal| journal.echoes(&self.session_id).ok());
        let is_private = echoes.is_none()
            || journal.is_none_or(|journal| {
                journal
                    .is_private(&self.session_id, payload.prompt_id.as_deref())
                    .unwrap_or(true)
            })
            || self.is_private_in_spool(waiting, payload.prompt_id.as_deref());
        let is_start = matches!(payload.event, Event::SessionStart { .. });
        // The row of a session that was restored after damage has no folder.
        let looks = is_start || known.is_none_or(|known| known.folder.is_none());
        if let Event::Stop(answered) = &mut payload.event
            && answered.text.is_none()
            && let Some(journal) = journal
            && let Ok(Some(since)) = journal.unanswered_since(&self.session_id)
            && let Some(since) = DateTime::from_timestamp_millis(since)
        {
            let path = payload.transcript_path.as_deref().map(Path::new);
            let span = since..capture::ALWAYS.end;
            let end = capture::read(&self.context, path, Some(TRANSCRIPT_END), span);
            answered.text = end.ok().flatten().and_then(|transcript| transcript.outcome);
        }
        let mut echoes = echoes.unwrap_or_default();
        let marked = (waiting.iter()).filter_map(|waiting| waiting.record.as_ref());
        let marked = marked.filter(|record| record.session == self.session_id);
        echoes.extend(
            marked
                .flat_map(|record| &record.echoes)
                .map(|echo| (echo.key, echo.hash)),
        );
        let intake = Intake {
            echoes: &echoes,
            key: random_key(),
            folder: &self.folder,
            surroundings: Surroundings {
                project: looks.then(|| self.project().key.clone()),
                // A folder's name can hold a secret like any other text.
                folder: looks.then(|| kept(&self.folder.to_string_lossy())),
                transcript: payload.transcript_path.as_deref().map(kept),
                branch: looks
                    .then(|| project::branch_of(&self.folder).map(|branch| kept(&branch)))
                    .flatten(),
                client: client::process(environment.client_process.as_deref()),
            },
            at: environment.now.timestamp_millis(),
            is_unsure: is_private && !matches!(payload.event, Event::UserPromptSubmit { .. }),
        };
        intake.record(payload)
    }

    /// Tells whether an event's prompt is in the spool and private. If not all of the spool was read, it may
    /// be.
    fn is_private_in_spool(&self, waiting: &[Waiting], prompt_id: Option<&str>) -> bool {
        let records = waiting
            .iter()
            .rev()
            .filter_map(|waiting| waiting.record.as_ref());
        let mut prompts = records
            .filter(|record| record.session == self.session_id)
            .filter(|record| prompt_id.is_none_or(|id| record.prompt_id.as_deref() == Some(id)))
            .filter_map(|record| match &record.what {
                RecordedEvent::Prompted { privacy, .. } => Some(*privacy),
                _ => None,
            });
        prompts.next() == Some(Privacy::Full) || waiting.len() >= MAX_DRAINED
    }

    /// Keeps what else this run did, within the transaction of its record.
    fn keep_run(
        &self,
        journal: &Journal,
        handled: &Handled,
        started: Instant,
    ) -> Result<(), journal::Error> {
        let now = self.context.environment.now;
        if handled.empties_context {
            journal.context_emptied(&self.session_id)?;
        }
        if let Some(run) = &handled.run {
            journal.recalled(&self.session_id, run)?;
        }
        if let Some(task) = &handled.taken {
            journal.delegation_taken(&self.session_id, task, &self.agent)?;
        }
        for (lane, shown) in &handled.given {
            let to = Audience {
                session: &self.session_id,
                agent: &self.agent,
                lane,
            };
            journal.was_shown(to, shown, now)?;
        }
        if let Some(used) = &handled.used {
            used.keep(journal, &self.session_id, now)?;
        }
        for (name, value) in &handled.meta {
            journal.set_meta(name, value)?;
        }
        for (name, value) in self.known.get().map_or(&[][..], |known| &known.rows) {
            journal.set_meta(name, value)?;
        }
        let error = handled.errors.first().map(|error| kept(error));
        journal.hook_ran(&self.event_name, started.elapsed(), error.as_deref(), now)
    }

    /// Writes or updates the session's note, from the journal, or without one from the transcript.
    fn write_note(
        &self,
        tag: &'static str,
        is_recorded: bool,
        transcript: Option<&Path>,
        handled: &mut Handled,
    ) {
        let written = match &self.journal {
            Ok(journal) if is_recorded => {
                capture::write_known(&self.context, journal, &self.session_id, Some(tag))
            }
            // The journal has the note in its queue as soon as it takes the record from the spool.
            Ok(_) => Ok(None),
            Err(_) => self.write_from_transcript(tag, transcript).map(|()| None),
        };
        // Whether the note was written without the transcript or not at all.
        match written {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => {
                self.note_failed(&error);
                handled.errors.push(error);
            }
        }
    }

    /// Keeps the error beside the run that has been recorded already, so that `doctor` tells of it.
    fn note_failed(&self, error: &str) {
        if let Ok(journal) = &self.journal {
            let _ = journal.run_failed(&self.event_name, &kept(error));
        }
    }

    fn write_from_transcript(&self, tag: &str, path: Option<&Path>) -> Result<(), String> {
        let Some(transcript) = capture::read(&self.context, path, None, capture::ALWAYS)? else {
            return Ok(());
        };
        let machine_id = self.context.machine_id();
        let request = session_note::Request {
            session: Some(&self.session_id),
            project: &self.project().key,
            machine_id: &machine_id,
            source: Some(tag),
            now: self.context.environment.now,
        };
        capture::write(
            &self.context,
            None,
            &SessionDigest::from(&transcript),
            &request,
        )
        .map(drop)
        .map_err(|error| error.to_string())
    }
}

/// What a block holds of notes, for the records.
fn shown(chosen: &[Chosen], block: &Block) -> Vec<Shown> {
    chosen
        .iter()
        .zip(&block.levels)
        .map(|(chosen, (id, level))| Shown {
            note: *id,
            hash: text_hash(&chosen.note.body),
            level: level.as_str(),
            reason: chosen.reason.as_str(),
            evidence: None,
        })
        .collect()
}

/// Tells whether a session begins with an empty context.
fn is_beginning(source: StartSource) -> bool {
    matches!(source, StartSource::Startup | StartSource::Clear)
}

/// A key for what this run marks as private.
fn random_key() -> Key {
    let halves = [Ulid::generate().random(), Ulid::generate().random()];
    let mut key = [0; 16];
    for (bytes, half) in key.chunks_mut(8).zip(halves) {
        // The last eight of ten random bytes.
        bytes.copy_from_slice(&half.to_le_bytes()[..8]);
    }
    Key::new(key)
}

/// A text as it may stand in the records.
fn kept(text: &str) -> String {
    redact(&one_line(text)).text.into_owned()
}

/// How long this hook waits for the journal: a repair takes longer than any hook can wait.
fn journal_patience(context: &Context) -> Duration {
    if journal::is_repair_requested(&context.home) {
        Duration::ZERO
    } else {
        JOURNAL_PATIENCE
    }
}

/// The name of the last repair and its line for the person; none if there was no repair, or the person was
/// told.
fn repair_line(journal: &Journal) -> Option<(String, String)> {
    let repair = journal.last_repair().ok()??;
    if journal.meta(REPAIR_TOLD).ok()?.as_ref() == Some(&repair.kept) {
        return None;
    }
    let line = format!(
        "journal.db was damaged: {} · anamnesis doctor",
        journal_repair::rows_saved(&repair)
    );
    Some((repair.kept, line))
}

/// What went wrong lately, for the person; nothing when nothing did.
fn problem_line(journal: &Journal, now: chrono::DateTime<chrono::Utc>) -> Option<String> {
    let runs = journal.hook_runs(now).ok()?;
    let failing: Vec<&str> = runs
        .iter()
        .filter(|run| run.is_failing)
        .map(|run| run.event.as_str())
        .collect();
    (!failing.is_empty()).then(|| {
        format!(
            "recording failed at {} · anamnesis doctor",
            failing.join(", ")
        )
    })
}

/// What keeps notes from travelling; nothing while they travel, or did within a day.
fn sync_line(journal: &Journal, now: chrono::DateTime<chrono::Utc>) -> Option<String> {
    let history = History::load(journal);
    if let Some(held) = &history.held {
        return Some(format!("sync waits: {held} · anamnesis sync"));
    }
    let since = ui::time(history.failing_since?);
    let days = (now - since).num_days();
    (days >= 1).then(|| {
        let error = history.error.unwrap_or_default();
        let days = ui::count(usize::try_from(days).unwrap_or(0), "day");
        format!("not synced for {days}: {error} · anamnesis doctor")
    })
}

/// When and where the last session of the project was, if the working set knows one.
fn last_session(
    chosen: &[Chosen],
    context: &Context,
    now: chrono::DateTime<chrono::Utc>,
) -> String {
    let newest = chosen
        .iter()
        .map(|chosen| &chosen.note)
        .filter(|note| note.source == Source::SessionEnd)
        .filter_map(|note: &Note| Some((parse_timestamp(&note.updated_at)?, note)))
        .max_by_key(|(time, _)| *time);
    let Some((time, note)) = newest else {
        return String::new();
    };
    let place = if note.machine_id == context.machine_id() {
        String::new()
    } else {
        format!(" on {}", note.machine_id)
    };
    format!(" · last session {}{place}", ui::ago(time, now))
}

fn line(text: &str) -> String {
    let text = one_line(&format!("anamnesis: {text}"));
    text.chars().take(MAX_LINE_LENGTH).collect()
}
