//! Writes a session's note and indexes it, for hooks, the deferred process and commands.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufReader, Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_note::{agent_policy, draft::safe_line};
use anamnesis_session::{
    session_note::SessionDigest,
    summary,
    transcript::{self, Transcript, TranscriptPart},
    turn,
};
use anamnesis_store::{
    fs::file,
    journal::{Job, Journal, LOST, NOTE, Runs, Session, is_over},
    project::{Step, branch_of},
    session_note::{self, Outcome, Request},
};
use anamnesis_text::{
    clean::one_line,
    private_tokens::{MASK, PrivateTokens},
};
use chrono::{DateTime, Utc};

use crate::{Error, context::Context, write};

/// How long after its last event a session's folder still has the branch on which it worked, milliseconds.
const STILL_THERE: i64 = 60 * 1000;

/// The timeout for the index lock. It is short because a session may be waiting.
const INDEX_TIMEOUT: Duration = Duration::from_millis(20);

/// How many bytes from the end of a transcript are searched for the last answer.
const TRANSCRIPT_END: u64 = 4 * 1024 * 1024;

/// How many bytes from the end of a transcript are searched for the session's name, which the client
/// repeats there.
const NAME_END: u64 = 256 * 1024;

/// Writes or updates the note of a session.
pub fn write(
    context: &Context,
    journal: Option<&Journal>,
    digest: &SessionDigest,
    request: &Request<'_>,
) -> Result<Outcome, anamnesis_store::notes::Error> {
    let outcome = session_note::capture(&context.notes, journal, digest, request)?;
    if let Outcome::Written(stored) = &outcome {
        context.add_to_index(stored, INDEX_TIMEOUT);
    }
    Ok(outcome)
}

/// Writes the note of a session for an agent: it is marked and counted like the agent's other notes. An
/// existing note stays as it is.
pub fn write_for_agent(
    context: &Context,
    journal: Option<&Journal>,
    digest: &SessionDigest,
    request: &Request<'_>,
) -> Result<Outcome, Error> {
    let Some(mut note) = session_note::draft(digest, request) else {
        return Ok(Outcome::Trivial);
    };
    if let Some(path) = context.notes.find(note.id) {
        return Ok(if context.notes.is_forgotten(path) {
            Outcome::Forgotten(note.id)
        } else {
            Outcome::Unchanged(path)
        });
    }
    let is_held = context.config.review.holds(note.state);
    agent_policy::sign(&mut note, request.session, is_held);
    if let Some(journal) = journal {
        if journal.forgotten_at(&note.body)?.is_some() {
            return Ok(Outcome::Forgotten(note.id));
        }
        if let Some(session) = request.session {
            // The session's hooks replace this text, and no other text of an agent.
            session_note::keep_own(journal, session, &note)?;
        }
    }
    let stored = write::save(context, journal, &note)?;
    Ok(Outcome::Written(Box::new(stored)))
}

/// Returns the project of an agent's own session. Refuses a key, or a session, of another project.
pub fn project_of_agent(
    context: &Context,
    journal: Option<&Journal>,
    named: Option<&str>,
    (session, began_in): (Option<&str>, Option<&Path>),
) -> Result<String, Error> {
    let known = match (journal, session) {
        (Some(journal), Some(session)) => journal.session(session)?,
        _ => None,
    };
    let began_in = began_in.map(|folder| context.project_of(folder).key);
    let captured = known.map(|session| session.project).or(began_in);
    let own = context.project_to_write();
    let keys = own.all_keys();
    let mut asked = captured.iter().map(String::as_str).chain(named);
    match asked.find(|key| !keys.iter().any(|own| own == key)) {
        None => Ok(own.key),
        Some(other) => Err(Error::failed(format!(
            "cannot capture a session for the project {}: an agent captures sessions of its own \
             project, {}",
            one_line(other),
            one_line(&own.key)
        ))
        .hint("a person can, in a terminal: anamnesis capture --transcript FILE --project KEY")),
    }
}

/// Refuses a transcript outside the client's own folder of transcripts: an agent may have written it.
pub fn check_agents_transcript(context: &Context, path: &Path) -> Result<(), Error> {
    let folder = context.environment.own_claude_folder();
    let folder = folder.and_then(|folder| dunce::canonicalize(folder.join("projects")).ok());
    let real = dunce::canonicalize(path).ok();
    match (real, folder) {
        (Some(real), Some(folder)) if real.starts_with(&folder) => Ok(()),
        // A missing file has nothing to capture.
        (None, _) => Ok(()),
        _ => Err(Error::failed(format!(
            "cannot capture {}: an agent captures transcripts of Claude Code only",
            one_line(&path.display().to_string())
        ))
        .hint("transcripts are below ~/.claude/projects")),
    }
}

/// Writes or updates the note of a session in the journal, and marks it as noted there. Returns the
/// outcome, with a warning if the transcript was needed and could not be read; `None` for an unknown or
/// excluded session.
///
/// `source` is what triggered the capture; without it, how the session ended counts, if it has.
pub fn write_session(
    context: &Context,
    journal: &Journal,
    id: &str,
    source: Option<&str>,
) -> Result<Option<(Outcome, Option<String>)>, Error> {
    let now = context.environment.now.timestamp_millis();
    let Some(session) = journal.session(id)? else {
        return Ok(None);
    };
    let job = Job {
        kind: NOTE.to_owned(),
        session: id.to_owned(),
        up_to: session.change,
        tries: 0,
    };
    let settle = || {
        journal.in_transaction(|journal| {
            journal.noted(id, session.change, now)?;
            journal.done(&job, now)
        })
    };
    let exclusions = context.exclusions();
    let folder = session.folder.as_deref().map(Path::new);
    if folder.is_some_and(|folder| exclusions.excludes(folder)) {
        // The folder was excluded after the session had been recorded.
        settle()?;
        return Ok(None);
    }
    let mut runs = journal.runs(&session)?;
    let (mut outcome, mut warning) = loop {
        let Some(written) = write_runs(context, journal, &session, runs.as_ref(), source)? else {
            return Ok(None);
        };
        // Another one may have ended, and its process may have written the note, before this one did.
        let current = journal.runs(&session)?;
        if current == runs {
            break written;
        }
        runs = current;
    };
    if runs.as_ref().is_some_and(|runs| runs.first != id) {
        // Another process may have written the note of this one while it was open.
        session_note::drop_repeated(&context.notes, journal, &session, now)?;
    }
    // The client may exit before its `SessionEnd` hook runs. An end recorded meanwhile counts.
    let heard = journal.session(id)?;
    let heard = heard.as_ref().and_then(source_of);
    if source.is_none()
        && heard.is_some()
        && heard != source_of(&session)
        && let Some(written) = write_runs(context, journal, &session, runs.as_ref(), heard)?
    {
        (outcome, warning) = written;
    }
    settle()?;
    Ok(Some((outcome, warning)))
}

/// Writes the note of a session. Sessions that repeat one another have one note, that of the first,
/// which tells the last one.
fn write_runs(
    context: &Context,
    journal: &Journal,
    session: &Session,
    runs: Option<&Runs>,
    source: Option<&str>,
) -> Result<Option<(Outcome, Option<String>)>, Error> {
    let told = match runs {
        Some(runs) if runs.last != session.id => journal.session(&runs.last)?,
        _ => None,
    };
    let told = told.as_ref().unwrap_or(session);
    let Some(mut digest) = journal.session_digest(&told.id)? else {
        return Ok(None);
    };
    let tokens = journal.echoes(&told.id)?;
    let completed = complete(context, journal, told, &tokens, &mut digest);
    digest.name = name(context, journal, told, digest.name.take())?;
    digest.runs = runs.map(|runs| {
        let last = digest.last_at.unwrap_or(context.environment.now);
        (runs.count, last.date_naive())
    });
    let machine_id = context.machine_id();
    let worked_in = worked_in(context, journal, session, &digest);
    follow_branch(context, journal, told, &tokens, &mut digest)?;
    let request = Request {
        session: Some(runs.map_or(&session.id, |runs| &runs.first)),
        project: worked_in.as_deref().unwrap_or(&session.project),
        machine_id: &machine_id,
        source: source.or_else(|| source_of(session)),
        // Each of them may write the note.
        change: runs.is_none().then_some(session.change),
        host: session.host.as_deref(),
        now: context.environment.now,
    };
    let outcome = write(context, Some(journal), &digest, &request)?;
    Ok(Some((
        outcome,
        completed.err().map(|error| error.to_string()),
    )))
}

/// Follows the session to the branch that its folder has now. While the session goes on and at its end, it
/// worked there; later something else may be checked out.
fn follow_branch(
    context: &Context,
    journal: &Journal,
    session: &Session,
    tokens: &PrivateTokens,
    digest: &mut SessionDigest,
) -> Result<(), Error> {
    let now = context.environment.now.timestamp_millis();
    let is_there = !is_over(session.seen_at, STILL_THERE, now);
    let folder = session.folder.as_deref().filter(|_| is_there);
    let branch = folder.and_then(|folder| branch_of(Path::new(folder)));
    let branch = branch.map(|branch| tokens.mask(&safe_line(&branch)).into_owned());
    // Later the private tokens are not known any more, so a masked name stays.
    let is_masked = digest
        .git_branch
        .as_ref()
        .is_some_and(|it| it.contains(MASK));
    let is_other = branch.is_some() && !is_masked && branch != digest.git_branch;
    if is_other {
        digest.git_branch = branch;
    }
    if is_other || is_masked {
        journal.set_branch(&session.id, digest.git_branch.as_deref())?;
    }
    Ok(())
}

/// Returns the project of the one repository in which a session worked that was started in a folder
/// above it without git.
fn worked_in(
    context: &Context,
    journal: &Journal,
    session: &Session,
    digest: &SessionDigest,
) -> Option<String> {
    let folder = Path::new(session.folder.as_deref()?);
    let project_of = |folder: &Path| context.known(Some(journal), folder).project;
    let started_in = project_of(folder);
    if started_in.step != Step::Folder || started_in.key != session.project {
        return None;
    }
    let files = digest.files.iter().chain(&digest.files_read);
    let folders = files.map(|file| folder.join(file).parent().map(Path::to_owned));
    let folders: BTreeSet<PathBuf> = folders.collect::<Option<_>>()?;
    if !folders.iter().all(|inside| inside.starts_with(folder)) {
        return None;
    }
    let keys = folders.iter().map(|folder| {
        let project = project_of(folder);
        let is_repository = matches!(project.step, Step::Remote(_) | Step::Repository(_));
        is_repository.then_some(project.key)
    });
    let keys: BTreeSet<String> = keys.collect::<Option<_>>()?;
    let mut keys = keys.into_iter();
    keys.next().filter(|_| keys.next().is_none())
}

/// Returns the tag for how a session ended.
fn source_of(session: &Session) -> Option<&'static str> {
    match session.end_reason.as_deref() {
        _ if !session.is_completed() => None,
        Some(LOST) => Some(LOST),
        _ => Some("session-end"),
    }
}

/// Adds to a session's digest what only its transcript contains.
///
/// That is everything if no event was recorded and no prompt was forgotten, the part from before
/// the installation, and the last answer of an interrupted turn. Text from a time when recording
/// was paused is left out.
fn complete(
    context: &Context,
    journal: &Journal,
    session: &Session,
    tokens: &PrivateTokens,
    digest: &mut SessionDigest,
) -> Result<(), Error> {
    let path = session.transcript.as_deref().map(Path::new);
    let extent = journal.extent(&session.id)?;
    let resumed = journal.resumed_at(&session.project)?;
    let since = journal.since()?;
    let unanswered = journal.unanswered_since(&session.id)?;
    let has_forgotten = journal.has_forgotten_prompt(&session.id)?;
    let is_unsure = journal.is_unsure(&session.id)?;
    // The private parts of this session are unknown, and the transcript may repeat them.
    if is_unsure && read(context, path, None, ALWAYS)?.is_some_and(|whole| whole.private) {
        return Ok(());
    }
    let time = |at: Option<i64>| at.and_then(DateTime::from_timestamp_millis);
    let start = time(resumed).unwrap_or(ALWAYS.start);
    if !extent.has_action && !has_forgotten {
        if let Some(transcript) = read(context, path, None, start..ALWAYS.end)? {
            let fixed = std::mem::take(&mut digest.fixed);
            *digest = SessionDigest::from(&transcript);
            if digest.fixed.is_empty() {
                digest.fixed = fixed;
            }
        }
    } else if session.is_partial {
        let end = time(extent.first_at.into_iter().chain(since).min()).unwrap_or(ALWAYS.end);
        if let Some(earlier) = read(context, path, None, start..end)? {
            digest.prepend(&SessionDigest::from(&earlier));
            digest.mask(&earlier.private_tokens);
        }
    }
    // Reads only what follows the prompt, because earlier text may be private.
    if extent.has_action
        && let Some(since) = time(unanswered)
        && let Some(end) = read(context, path, Some(TRANSCRIPT_END), since..ALWAYS.end)?
        && let Some(outcome) = end.outcome
    {
        digest.next_steps = summary::next_steps(&outcome);
        turn::add_answer(&mut digest.turns, outcome);
    }
    digest.mask(tokens);
    Ok(())
}

/// Returns the name that a session has now: its transcript has those that were given after the last
/// prompt. A session with a private part has none, because the client may have made it of that part.
fn name(
    context: &Context,
    journal: &Journal,
    session: &Session,
    known: Option<String>,
) -> Result<Option<String>, Error> {
    if journal.has_private_part(&session.id)? {
        return Ok(None);
    }
    let path = session.transcript.as_deref().map(Path::new);
    let file = path.and_then(|path| open(context, path, Some(NAME_END)).ok().flatten());
    // Without the transcript, the name of the last prompt counts.
    let named = file.and_then(|file| transcript::name(BufReader::new(file)).ok().flatten());
    Ok(named.or(known))
}

/// Reads a time span of a session's transcript, or of its last `end` bytes. Returns `None` if the
/// client has not written a transcript yet.
pub fn read(
    context: &Context,
    path: Option<&Path>,
    end: Option<u64>,
    span: Range<DateTime<Utc>>,
) -> Result<Option<Transcript>, Error> {
    let Some(path) = path else {
        return Ok(None);
    };
    let opened = open(context, path, end).map_err(Error::prefixed("transcript"))?;
    let Some(file) = opened else {
        return Ok(None);
    };
    let exclusions = context.exclusions();
    let part = TranscriptPart {
        span: Some(span),
        is_excluded: Some(&|folder| exclusions.excludes(Path::new(folder))),
        has_tools: end.is_none(),
    };
    let reader = BufReader::with_capacity(256 * 1024, file);
    let (transcript, error) = transcript::read_part(reader, part);
    if let Some(error) = error {
        context.log(&format!(
            "transcript: {error}; what came before it was taken"
        ));
    }
    Ok(Some(transcript))
}

/// Returns the last `bytes` bytes of a session's transcript; `None` if it cannot be read.
pub fn transcript_end(context: &Context, path: &Path, bytes: u64) -> Option<Vec<u8>> {
    let mut end = Vec::new();
    let mut file = open(context, path, Some(bytes)).ok()??;
    file.read_to_end(&mut end).ok()?;
    Some(end)
}

/// A span that includes all times.
pub const ALWAYS: Range<DateTime<Utc>> = DateTime::<Utc>::MIN_UTC..DateTime::<Utc>::MAX_UTC;

/// Opens a transcript; `None` if the client has not written one yet.
///
/// A path outside the folders of the hosts is refused: a forged payload could name any file.
fn open(context: &Context, path: &Path, end: Option<u64>) -> io::Result<Option<File>> {
    if !path.exists() {
        return Ok(None);
    }
    let real = dunce::canonicalize(path)?;
    let mut folders = context.environment.log_folders();
    if !folders
        .any(|folder| dunce::canonicalize(folder).is_ok_and(|folder| real.starts_with(folder)))
    {
        return Err(io::Error::other(
            "not in Claude Code's folder, so it was not read",
        ));
    }
    let (mut file, metadata) = file::open_regular(&real)?;
    if let Some(end) = end
        && metadata.len() > end
    {
        // The first line is cut here. The parser skips it like any invalid line.
        file.seek(SeekFrom::Start(metadata.len() - end))?;
    }
    Ok(Some(file))
}
