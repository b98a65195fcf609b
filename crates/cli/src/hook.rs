//! The hook path: one event on stdin, one JSON object on stdout, exit 0 whatever happens.
//!
//! A second thread watches the clock while the event is handled: a lock, a disk or a pipe that hangs
//! ends in the no-op object, not in a client that waits. Every fault is a line in the log and a mark
//! in the records, for `doctor`; none is ever in the user's way.

use std::{
    cell::OnceCell,
    io::{self, BufReader, Read, Write},
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

use anamnesis_core::{
    clean::one_line,
    hook::{Answer, Event, MAX_PAYLOAD_LENGTH, Payload, StartSource},
    note::{Note, Source, parse_timestamp, text_hash},
    redact::redact,
    render::{self, Block, Chosen},
    transcript,
};
use anamnesis_recall::working_set::{self, DEFAULT_K, Request};
use anamnesis_store::{
    config::SessionLine,
    file,
    index::Index,
    journal::{Journal, Seen, Shown},
    project::Project,
    session_note,
};

use crate::{capture, context::Context, detach, environment::Environment, remember, ui};

/// After this the hook answers with nothing, whatever it is doing.
const DEADLINE: Duration = Duration::from_millis(1100);

/// The end of a session is asynchronous: nobody waits for it, and its note is worth the time.
const PATIENT_DEADLINE: Duration = Duration::from_secs(60);
const PATIENT_NOTES: Duration = Duration::from_secs(30);

/// How long a hook waits for the notes, the index and the records. Together under the deadline.
const NOTES_PATIENCE: Duration = Duration::from_millis(400);
const JOURNAL_PATIENCE: Duration = Duration::from_millis(300);

/// How long the line about a hook that was given up may take to be written.
const LOG_PATIENCE: Duration = Duration::from_millis(50);

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
    watched(|| (Environment::read(), read_stdin()))
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
        print(&Answer::default().to_json(""));
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
    if reply.start_work
        && let Err(error) = detach::start_work(reply.check_index)
        && let Ok(context) = Context::of(Environment::read(), Duration::ZERO)
    {
        context.log(&format!("hook: cannot start the deferred process: {error}"));
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
    print(&Answer::default().to_json(""));
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
    if let Ok(context) = Context::of(Environment::read(), Duration::ZERO)
        && !context.environment.is_off
        && !context.environment.is_internal
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
        output: Answer::default().to_json(""),
        ..Reply::default()
    };
    if environment.is_off || environment.is_internal {
        return no_op();
    }
    let Ok(mut context) = Context::of(environment, NOTES_PATIENCE) else {
        return no_op();
    };
    if let Err(error) = context.home.create() {
        // There is no place for a log, either; `doctor` finds the same fault.
        context.log(&format!("hook: {error}"));
        return no_op();
    }
    let payload = match input
        .map_err(|error| error.to_string())
        .and_then(|bytes| Payload::parse(&bytes).map_err(|error| error.to_string()))
    {
        Ok(payload) => payload,
        Err(error) => {
            context.log(&format!("hook: {error}"));
            if let Some(journal) = context.journal_within(JOURNAL_PATIENCE) {
                let _ = journal.hook_ran(
                    "unknown",
                    started.elapsed(),
                    Some(&error),
                    context.environment.now,
                );
            }
            return no_op();
        }
    };
    let is_end = matches!(payload.event, Event::SessionEnd { .. });
    if is_end {
        let _ = sender.send(Patient);
        context.be_patient(PATIENT_NOTES);
    }
    let folder = project_folder(&context, &payload);
    if folder.starts_with(context.home.root()) {
        return no_op();
    }
    let journal = context.journal_within(JOURNAL_PATIENCE);
    let hook = Hook {
        context,
        payload,
        folder,
        project: OnceCell::new(),
        journal,
    };
    let mut handled = hook.handle();
    if let Err(error) = hook.record(&handled, started) {
        hook.context.log(&format!("hook: {error}"));
    }
    for error in &handled.errors {
        hook.context
            .log(&format!("hook {}: {error}", hook.payload.event_name));
    }
    let output = if is_end {
        String::new()
    } else {
        std::mem::take(&mut handled.answer).to_json(&hook.payload.event_name)
    };
    let has_long_log = || hook.journal.as_ref().is_some_and(Journal::has_long_log);
    Reply {
        output,
        start_work: handled.start_work || has_long_log(),
        check_index: handled.check_index,
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

/// The session's project folder. The payload's `cwd` follows the shell's `cd`, so it comes second.
fn project_folder(context: &Context, payload: &Payload) -> PathBuf {
    let cwd = || {
        payload
            .cwd
            .as_ref()
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
    };
    context
        .environment
        .project_folder
        .clone()
        .or_else(cwd)
        .or_else(Context::current_folder)
        .unwrap_or_default()
}

/// An event and everything it is handled with.
struct Hook {
    context: Context,
    payload: Payload,
    folder: PathBuf,
    project: OnceCell<Project>,
    journal: Option<Journal>,
}

/// What handling an event came to.
#[derive(Default)]
struct Handled {
    answer: Answer,
    shown: Vec<Shown>,
    errors: Vec<String>,
    start_work: bool,
    check_index: bool,
    /// A name and a value that the records keep from now on.
    meta: Vec<(&'static str, String)>,
}

impl Hook {
    fn handle(&self) -> Handled {
        match &self.payload.event {
            Event::SessionStart { source } => self.session_start(*source),
            Event::UserPromptSubmit { prompt } => self.prompt(prompt),
            Event::PreCompact => self.capture("precompact"),
            Event::SessionEnd { .. } => Handled {
                start_work: true,
                ..self.capture("session-end")
            },
            Event::Other => Handled::default(),
        }
    }

    /// The session's project, found once.
    fn project(&self) -> &Project {
        self.project
            .get_or_init(|| self.context.project_of(&self.folder))
    }

    /// Gives the working set, and the person one line.
    fn session_start(&self, source: StartSource) -> Handled {
        let mut handled = Handled::default();
        let project = self.project();
        let (chosen, block) = if let Ok(index) = Index::open(&self.context.home) {
            handled.start_work = index.is_behind(&self.context.notes);
            self.working_set(&index, project, source, &mut handled)
        } else {
            // No index yet, or one that has to be built anew: the deferred process does that.
            handled.start_work = true;
            (Vec::new(), Block::default())
        };
        if matches!(source, StartSource::Startup | StartSource::Clear)
            && self.context.environment.is_interactive
        {
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
        let request = Request {
            project: &project.key,
            k: DEFAULT_K,
            session: (source == StartSource::Compact).then_some(self.payload.session_id.as_str()),
            now: self.context.environment.now,
        };
        let chosen = match working_set::select(index, &self.context.notes, &request) {
            Ok(chosen) => chosen,
            Err(error) => {
                handled.check_index = error.is_damage();
                handled.errors.push(error.to_string());
                handled.start_work = true;
                Vec::new()
            }
        };
        let block = render::hook_block(&chosen, request.now, |id| Context::short(index, id));
        handled.shown = chosen
            .iter()
            .zip(&block.levels)
            .map(|(chosen, (id, level))| Shown {
                note: *id,
                hash: text_hash(&chosen.note.body),
                level: level.as_str(),
                reason: chosen.reason.as_str(),
            })
            .collect();
        (chosen, block)
    }

    /// The one line for the person: the first of what applies.
    fn session_line(
        &self,
        chosen: &[Chosen],
        block: &Block,
        handled: &mut Handled,
    ) -> Option<String> {
        let journal = self.journal.as_ref()?;
        let now = self.context.environment.now;
        let setting = self.context.config.session_line;
        if setting == SessionLine::Off {
            return None;
        }
        let today = now.date_naive().to_string();
        if let Some(problem) = problem_line(journal)
            && journal.meta("problem_told").ok().flatten().as_deref() != Some(&today)
        {
            handled.meta.push(("problem_told", today));
            return Some(line(&problem));
        }
        if setting == SessionLine::Problems {
            return None;
        }
        if journal.meta("greeted").ok()?.is_none() {
            handled.meta.push(("greeted", today));
            let store = ui::home_path(
                self.context.home.root(),
                self.context.environment.user_home.as_deref(),
            );
            return Some(line(&format!(
                "sessions are noted in {store} from now on · /memory-status"
            )));
        }
        if block.text.is_empty() {
            return None;
        }
        let count = ui::count(chosen.len(), "note");
        let last = last_session(chosen, &self.context, now);
        Some(line(&format!(
            "{count} (~{} tokens){last} · /memory-status",
            ui::number(block.tokens())
        )))
    }

    /// Saves what a person asks to be remembered; the command then only reports it.
    fn prompt(&self, prompt: &str) -> Handled {
        let mut handled = Handled::default();
        let Some(text) = remember::asked_for(prompt) else {
            return handled;
        };
        let report = match remember::save_words(
            &self.context,
            self.journal.as_ref(),
            &text,
            &self.project().key,
        ) {
            Ok(report) => report,
            Err(error) => {
                handled.errors.push(error.clone());
                format!("not saved: {error} · /memory-status")
            }
        };
        handled.answer.context = Some(format!("anamnesis: {report}"));
        handled
    }

    /// Writes or updates the session's note.
    fn capture(&self, source: &'static str) -> Handled {
        let mut handled = Handled::default();
        let transcript = match self.transcript() {
            Ok(Some(transcript)) => transcript,
            Ok(None) => return handled,
            Err(error) => {
                handled.errors.push(error);
                return handled;
            }
        };
        let project = self.project();
        let machine_id = self.context.machine_id();
        let request = session_note::Request {
            session: Some(&self.payload.session_id),
            project: &project.key,
            machine_id: &machine_id,
            source,
            now: self.context.environment.now,
        };
        if let Err(error) =
            capture::write(&self.context, self.journal.as_ref(), &transcript, &request)
        {
            handled.errors.push(error.to_string());
        }
        handled.meta.extend(
            transcript
                .client_version
                .map(|version| ("client_version", version)),
        );
        handled
    }

    /// Reads the transcript; `None` when the client has not written one yet.
    ///
    /// A path that lies elsewhere than in Claude Code's folder is somebody's attempt to have a file
    /// read that is none of ours.
    fn transcript(&self) -> Result<Option<transcript::Transcript>, String> {
        let Some(path) = &self.payload.transcript_path else {
            return Ok(None);
        };
        let path = Path::new(path);
        if !path.exists() {
            return Ok(None);
        }
        let folder = self
            .context
            .environment
            .claude_folder
            .as_ref()
            .and_then(|folder| folder.canonicalize().ok());
        let real = path
            .canonicalize()
            .map_err(|error| format!("transcript: {error}"))?;
        if !folder.is_some_and(|folder| real.starts_with(folder)) {
            return Err("transcript: not in Claude Code's folder, so it was not read".to_owned());
        }
        let (file, _) =
            file::open_regular(&real).map_err(|error| format!("transcript: {error}"))?;
        let (transcript, error) = transcript::read(BufReader::with_capacity(256 * 1024, file));
        if let Some(error) = error {
            self.context.log(&format!(
                "transcript: {error}; what came before it was taken"
            ));
        }
        Ok(Some(transcript))
    }

    /// Keeps what this run did, in one transaction.
    fn record(
        &self,
        handled: &Handled,
        started: Instant,
    ) -> Result<(), anamnesis_store::journal::Error> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        let now = self.context.environment.now;
        let payload = &self.payload;
        // A folder's name can hold a secret like any other text.
        let folder = kept(&self.folder.to_string_lossy());
        let transcript = payload.transcript_path.as_deref().map(kept);
        let error = handled.errors.first().map(|error| kept(error));
        // Told before the others are locked out, and only where the records do not have it.
        let project = match &payload.event {
            Event::SessionStart { .. } => Some(self.project()),
            Event::UserPromptSubmit { .. } if !journal.knows_session(&payload.session_id)? => {
                Some(self.project())
            }
            _ => None,
        };
        journal.together(|journal| {
            match &payload.event {
                Event::SessionStart { .. } | Event::UserPromptSubmit { .. } => {
                    let source = match &payload.event {
                        Event::SessionStart { source } => Some(source_word(*source)),
                        _ => None,
                    };
                    journal.session_seen(
                        &Seen {
                            id: &payload.session_id,
                            project: project.map(|project| project.key.as_str()),
                            folder: Some(&folder),
                            transcript: transcript.as_deref(),
                            source,
                            client_process: self.context.environment.client_process.as_deref(),
                        },
                        now,
                    )?;
                }
                Event::SessionEnd { reason } => {
                    journal.session_ended(&payload.session_id, reason, now)?
                }
                Event::PreCompact | Event::Other => {}
            }
            if !handled.shown.is_empty() {
                journal.was_shown(&payload.session_id, "start", &handled.shown, now)?;
            }
            for (name, value) in &handled.meta {
                journal.set_meta(name, value)?;
            }
            journal.hook_ran(
                &payload.event_name,
                started.elapsed(),
                error.as_deref(),
                now,
            )
        })
    }
}

/// A text as it may stand in the records.
fn kept(text: &str) -> String {
    redact(&one_line(text)).text.into_owned()
}

fn source_word(source: StartSource) -> &'static str {
    match source {
        StartSource::Startup => "startup",
        StartSource::Resume => "resume",
        StartSource::Clear => "clear",
        StartSource::Compact => "compact",
        StartSource::Fork => "fork",
        StartSource::Other => "other",
    }
}

/// What went wrong lately, for the person; nothing when nothing did.
fn problem_line(journal: &Journal) -> Option<String> {
    let runs = journal.hook_runs().ok()?;
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
