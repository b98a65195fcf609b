//! Finds the sessions that have a transcript, and decides which can be remembered.
//!
//! This module writes nothing. Each transcript is judged on its own, so an interrupted run needs no
//! saved position: a session that it finished has a note.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    ops::Range,
    path::{Path, PathBuf},
};

use anamnesis_note::{
    id::NoteId,
    note::timestamp,
    note::{GLOBAL, NoteType, State},
};
use anamnesis_session::{
    event::Host,
    session_note::{NoteText, SessionDigest, note_text},
    transcript::{self, Transcript, TranscriptPart},
};
use anamnesis_store::{fs::file, journal::Journal, settings::exclude::Exclusions};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Serialize, Serializer};

use crate::{Error, capture::ALWAYS, context::Context};

/// A transcript that was written to within this time belongs to a running session.
const SILENCE: TimeDelta = TimeDelta::minutes(30);

/// The length of a session id in the name of a transcript.
const UUID_LENGTH: usize = 36;

/// How many bytes at the start of a transcript are searched for its folder.
const HEAD: u64 = 64 * 1024;

/// The hosts whose transcripts are read: the name to type, and the name to show.
pub const HOSTS: [(&str, &str, Host); 3] = [
    ("claude", "Claude Code", Host::ClaudeCode),
    ("codex", "Codex", Host::Codex),
    ("gemini", "Gemini CLI", Host::Gemini),
];

/// Returns the host of [`HOSTS`] with this typed name.
pub fn host_named(name: &str) -> Option<Host> {
    let found = HOSTS.iter().find(|(typed, ..)| *typed == name);
    found.map(|(.., host)| *host)
}

/// Which sessions to include.
#[derive(Debug, Clone)]
pub struct SessionFilter {
    /// Only sessions of this host.
    pub host: Host,
    /// Only sessions of this project; all projects if `None`.
    pub project: Option<String>,
    /// Only sessions that ended on or after this day.
    pub since: Option<NaiveDate>,
    /// Also sessions that could have been recorded and were not.
    pub unrecorded: bool,
    /// At most this many sessions.
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    modified: Option<DateTime<Utc>>,
    pub(super) path: PathBuf,
}

/// A session that can be remembered.
#[derive(Debug, Clone, Serialize)]
pub struct Session {
    /// The client's id of the session.
    #[serde(rename = "session")]
    pub id: String,
    /// The id of its note.
    pub note: NoteId,
    /// The key of its project.
    pub project: String,
    /// The title of its note.
    pub title: String,
    /// When it began.
    #[serde(serialize_with = "as_timestamp")]
    pub began: DateTime<Utc>,
    /// When it ended.
    #[serde(serialize_with = "as_timestamp")]
    pub ended: DateTime<Utc>,
}

fn as_timestamp<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&timestamp(*time))
}

/// Why a session is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// It has a note.
    Noted,
    /// Hooks recorded it.
    Recorded,
    /// It is running.
    Open,
    /// Its transcript changed a moment ago, so it may be running.
    Recent,
    /// It has nothing to keep.
    Trivial,
    /// A person had it forgotten.
    Forgotten,
    /// It began in an excluded folder.
    Excluded,
    /// Its project is paused.
    Paused,
    /// Hooks could have recorded it.
    Unrecorded,
    /// It ended before the requested day.
    Earlier,
    /// It is a session of this program.
    Own,
    /// Its transcript names no session.
    Nameless,
    /// Its transcript cannot be read.
    Unreadable,
}

impl Skip {
    /// The reason for scripts, and in a few words that are valid for one session and for many.
    pub fn reason(self) -> (&'static str, &'static str) {
        match self {
            Self::Noted => ("noted", "a note exists"),
            Self::Recorded => ("recorded", "recorded by hooks: noted without this command"),
            Self::Open => ("open", "still open: noted when it ends"),
            Self::Recent => (
                "recent",
                "used within the last 30 minutes, perhaps still open: try again later",
            ),
            Self::Trivial => ("trivial", "nothing worth a note"),
            Self::Forgotten => ("forgotten", "forgotten by you: not noted again"),
            Self::Excluded => ("excluded", "in an excluded folder"),
            Self::Paused => ("paused", "in a paused project"),
            Self::Unrecorded => (
                "unrecorded",
                "not recorded although Anamnesis was installed (--unrecorded)",
            ),
            Self::Earlier => ("earlier", "ended before the day of --since"),
            Self::Own => ("own", "started by Anamnesis itself"),
            Self::Nameless => ("no-session-id", "no session id in the transcript"),
            Self::Unreadable => ("unreadable", "the transcript cannot be read"),
        }
    }
}

impl Serialize for Skip {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reason().0)
    }
}

/// The result of reading a transcript.
#[derive(Debug)]
pub(super) enum Finding {
    /// The session can be remembered, with this digest.
    Session(Session, Box<SessionDigest>),
    /// The session is skipped; with the error, if the file caused it.
    Skipped(Skip, Option<String>),
    /// The session belongs to a project that was not requested; with whether it can be remembered.
    Elsewhere(bool),
}

impl From<Skip> for Finding {
    fn from(skip: Skip) -> Self {
        Self::Skipped(skip, None)
    }
}

/// Returns the transcripts of a host, most recently written first.
///
/// Links are not followed. Transcripts of subagents are not sessions.
pub(super) fn candidates(context: &Context, host: Host) -> Vec<Candidate> {
    let Some(root) = context.environment.log_folder(host) else {
        return Vec::new();
    };
    let folders = match host {
        // A folder per project.
        Host::ClaudeCode => folders_in(projects_folder(context).as_slice()),
        // A folder per year, month and day.
        Host::Codex => folders_in(&folders_in(&folders_in(&[root]))),
        _ => folders_in(&[root])
            .into_iter()
            .map(|project| project.join("chats"))
            .collect(),
    };
    let mut found: Vec<Candidate> = (folders.iter())
        .flat_map(|folder| candidates_in(folder))
        .filter(|candidate| host == Host::ClaudeCode || is_log_of_host(&candidate.path))
        .collect();
    found.sort_unstable_by(|a, b| b.modified.cmp(&a.modified).then(a.path.cmp(&b.path)));
    found
}

/// Returns whether a file has the name of a log of Codex or Gemini CLI.
fn is_log_of_host(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("rollout-") || name.starts_with("session-")
}

/// Returns the folders in these folders.
fn folders_in(folders: &[PathBuf]) -> Vec<PathBuf> {
    let entries = folders.iter().flat_map(|folder| entries(folder));
    entries
        .filter(|(_, metadata)| metadata.is_dir())
        .map(|(folder, _)| folder)
        .collect()
}

/// Counts the earlier sessions of the project at `folder` that have a transcript, by file name
/// only.
pub fn countable(context: &Context, folder: &Path) -> usize {
    let Some(projects) = projects_folder(context) else {
        return 0;
    };
    let now = context.environment.now;
    candidates_in(&projects.join(folder_name(folder)))
        .filter(|candidate| !candidate.modified.is_some_and(|at| is_recent(at, now)))
        .count()
}

/// Returns the folder in which a session of the client began, from its transcript.
pub fn session_folder(context: &Context, session: &str) -> Option<String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if session.is_empty() || !session.bytes().all(is_name) {
        return None;
    }
    let folders = entries(&projects_folder(context)?);
    let mut heads = folders.filter_map(|(folder, _)| {
        let path = folder.join(format!("{session}.jsonl"));
        let limit = usize::try_from(HEAD).unwrap_or(usize::MAX);
        Some(file::read_head(&path, limit).ok()?.0)
    });
    heads.find_map(|head| folder_of(&io::Cursor::new(head)))
}

/// The name that the client gives to the folder of a project's transcripts.
fn folder_name(folder: &Path) -> String {
    let letter = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    folder.to_string_lossy().chars().map(letter).collect()
}

fn projects_folder(context: &Context) -> Option<PathBuf> {
    let folder = context.environment.claude_folder.as_ref()?;
    Some(folder.join("projects"))
}

fn candidates_in(folder: &Path) -> impl Iterator<Item = Candidate> + use<> {
    entries(folder).filter_map(|(path, metadata)| {
        let is_transcript = path.extension().is_some_and(|ending| ending == "jsonl");
        let name = path.file_name()?.to_string_lossy();
        // Older clients kept the transcripts of subagents in this folder.
        (is_transcript && !name.starts_with("agent-")).then(|| Candidate {
            modified: metadata.modified().ok().map(DateTime::from),
            path,
        })
    })
}

/// Lists a folder without following links.
fn entries(folder: &Path) -> impl Iterator<Item = (PathBuf, fs::Metadata)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}

/// Returns whether a time is recent enough for the session to be running. A time in the future does
/// not count.
fn is_recent(time: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    (now - time).abs() < SILENCE
}

/// Reads transcripts one after the other.
pub(super) struct Past<'a> {
    context: &'a Context,
    journal: Option<&'a Journal>,
    wanted: &'a SessionFilter,
    exclusions: Exclusions,
    /// The canonical path of the host's folder. Nothing outside of it is read.
    host_folder: Option<PathBuf>,
    /// The sessions that notes name, and whether the note is a tombstone. Other programs give the
    /// note of a session a different id.
    noted: HashMap<String, bool>,
    /// The ids of session notes that this run already accepted.
    found: HashSet<NoteId>,
    /// The project of each folder, cached.
    projects: HashMap<String, String>,
    /// When the host's first session was recorded in this store.
    recorded_since: Option<DateTime<Utc>>,
}

impl<'a> Past<'a> {
    pub(super) fn new(
        context: &'a Context,
        journal: Option<&'a Journal>,
        wanted: &'a SessionFilter,
    ) -> Result<Self, Error> {
        let since = |journal: &Journal| match wanted.host {
            Host::ClaudeCode => journal.since(),
            host => journal.host_since(host),
        };
        let since = journal.map(since).transpose()?.flatten();
        let host_folder = context.environment.log_folder(wanted.host);
        Ok(Self {
            context,
            journal,
            wanted,
            exclusions: context.exclusions(),
            host_folder: host_folder.and_then(|folder| dunce::canonicalize(folder).ok()),
            noted: sessions_of_notes(context),
            found: HashSet::new(),
            projects: HashMap::new(),
            recorded_since: since.and_then(DateTime::from_timestamp_millis),
        })
    }

    /// Reads a transcript and decides what to do with it. Fails only if the journal cannot be read.
    pub(super) fn look(&mut self, candidate: &Candidate) -> Result<Finding, Error> {
        let mut project = None;
        let finding = match self.look_into(candidate, &mut project) {
            Ok(finding) => finding,
            Err(Fault::Transcript(cause)) => {
                Finding::Skipped(Skip::Unreadable, Some(cause.to_string()))
            }
            Err(Fault::Journal(failure)) => return Err(failure),
        };
        Ok(match (&self.wanted.project, project) {
            (Some(wanted), Some(project)) if *wanted != project => {
                Finding::Elsewhere(matches!(finding, Finding::Session(..)))
            }
            _ => finding,
        })
    }

    /// Decides about a transcript of any project. `of` becomes the key of the project, once known.
    fn look_into(
        &mut self,
        candidate: &Candidate,
        of: &mut Option<String>,
    ) -> Result<Finding, Fault> {
        let (file, head) = self.open(&candidate.path)?;
        *of = folder_of(&head).map(|folder| self.project(Some(&folder)));
        // The file name ends with the session's id, so most known sessions are skipped without reading
        // the file.
        let name = candidate.path.file_stem().unwrap_or_default();
        let name = name.to_string_lossy();
        let id = (name.len().checked_sub(UUID_LENGTH)).and_then(|start| name.get(start..));
        if let Some(skip) = self.known(id.unwrap_or(&name))? {
            return Ok(skip.into());
        }
        let reader = head.chain(BufReader::with_capacity(256 * 1024, file));
        let (mut transcript, is_excluded) = self.read(reader, ALWAYS)?;
        let project = self.project(transcript.cwd.as_ref());
        if !is_excluded {
            *of = Some(project.clone());
        }
        if let Some(skip) = self.unwanted(candidate, &transcript, &project, is_excluded)? {
            return Ok(skip.into());
        }
        let Some(id) = transcript.session_id.clone() else {
            return Ok(Skip::Nameless.into());
        };
        let span = self.span(&project)?;
        let fits = |time: Option<DateTime<Utc>>| time.is_none_or(|time| span.contains(&time));
        if !fits(transcript.first_at) || !fits(transcript.last_at) {
            let (file, head) = self.open(&candidate.path)?;
            let reader = head.chain(BufReader::with_capacity(256 * 1024, file));
            (transcript, _) = self.read(reader, span)?;
            if transcript.first_at.is_none() {
                return Ok(Skip::Unrecorded.into());
            }
        }
        let now = self.context.environment.now;
        let mut digest = SessionDigest::from(&transcript);
        // A transcript without timestamps gets the time of its file.
        let ended = transcript.last_at.or(candidate.modified).unwrap_or(now);
        let ended = ended.min(now);
        let began = transcript.first_at.unwrap_or(ended).min(ended);
        (digest.first_at, digest.last_at) = (Some(began), Some(ended));
        let Some(NoteText { title, body }) = note_text(&digest) else {
            return Ok(Skip::Trivial.into());
        };
        // Without a forget key, nothing was forgotten yet. A dry run does not create the key.
        let forgotten = self.journal.map(|journal| journal.forgotten_at(&body));
        if matches!(forgotten, Some(Ok(Some(_)))) {
            return Ok(Skip::Forgotten.into());
        }
        let note = NoteId::of_session(&id);
        self.found.insert(note);
        let session = Session {
            id,
            note,
            project,
            title,
            began,
            ended,
        };
        Ok(Finding::Session(session, Box::new(digest)))
    }

    /// Returns why a readable session is not wanted.
    fn unwanted(
        &self,
        candidate: &Candidate,
        transcript: &Transcript,
        project: &str,
        is_excluded: bool,
    ) -> Result<Option<Skip>, Fault> {
        if is_excluded {
            return Ok(Some(Skip::Excluded));
        }
        if transcript.lines == 0 {
            return Ok(Some(Skip::Trivial));
        }
        if transcript.lines == transcript.skipped_lines {
            let cause = io::Error::other("no line is a record of a session");
            return Err(Fault::Transcript(cause));
        }
        let Some(id) = &transcript.session_id else {
            return Ok(Some(Skip::Nameless));
        };
        if let Some(skip) = self.known(id)? {
            return Ok(Some(skip));
        }
        let context = self.context;
        let folder = transcript.cwd.as_deref().map(Path::new);
        if folder.is_some_and(|folder| context.home.contains(folder)) {
            return Ok(Some(Skip::Own));
        }
        let paused = &context.config.paused;
        if paused.everywhere || paused.names(project) {
            return Ok(Some(Skip::Paused));
        }
        let now = context.environment.now;
        // A copied transcript has a new file time, so both times are compared.
        let mut times = candidate.modified.iter().chain(&transcript.last_at);
        if times.all(|time| is_recent(*time, now)) {
            return Ok(Some(Skip::Recent));
        }
        let ended = transcript.last_at.or(candidate.modified);
        let is_earlier = |since| ended.is_some_and(|ended| ended.date_naive() < since);
        Ok(self
            .wanted
            .since
            .is_some_and(is_earlier)
            .then_some(Skip::Earlier))
    }

    /// Returns why the session of this id needs no reading.
    fn known(&self, session: &str) -> Result<Option<Skip>, Fault> {
        let notes = &self.context.notes;
        let note = NoteId::of_session(session);
        let is_forgotten = match notes.find(note) {
            Some(path) => Some(notes.is_forgotten(path)),
            None => self.noted.get(session).copied(),
        };
        match is_forgotten {
            Some(true) => return Ok(Some(Skip::Forgotten)),
            Some(false) => return Ok(Some(Skip::Noted)),
            None if self.found.contains(&note) => return Ok(Some(Skip::Noted)),
            None => {}
        }
        let recorded = self
            .journal
            .map(|journal| journal.session(session))
            .transpose()?
            .flatten();
        Ok(recorded.map(|session| {
            if session.is_completed() {
                Skip::Recorded
            } else {
                Skip::Open
            }
        }))
    }

    /// The span of time that may be read from a transcript. Anything said while recording was off
    /// stays unread.
    ///
    /// Recording could not be off before the install, except between the install and the first
    /// session.
    fn span(&self, project: &str) -> Result<Range<DateTime<Utc>>, Fault> {
        if self.wanted.unrecorded {
            return Ok(ALWAYS);
        }
        let end = self.recorded_since.unwrap_or(ALWAYS.end);
        let resumed = self
            .journal
            .map(|journal| journal.resumed_at(project))
            .transpose()?
            .flatten();
        let start = resumed
            .and_then(DateTime::from_timestamp_millis)
            .filter(|start| *start <= end);
        Ok(start.unwrap_or(ALWAYS.start)..end)
    }

    /// Opens a transcript and reads its beginning.
    fn open(&self, path: &Path) -> Result<(File, Head), Fault> {
        let (mut file, _) =
            file::open_regular(path).map_err(|error| match error.raw_os_error() {
                // The system's error for a link that was not followed is hard to understand.
                Some(_) if path.is_symlink() => io::Error::other("a link; not followed"),
                _ => error,
            })?;
        let real = dunce::canonicalize(path)?;
        if !(self.host_folder.as_ref()).is_some_and(|folder| real.starts_with(folder)) {
            return Err(io::Error::other("not in the host's folder").into());
        }
        let mut head = Vec::new();
        file.by_ref().take(HEAD).read_to_end(&mut head)?;
        Ok((file, io::Cursor::new(head)))
    }

    /// Reads the records of a transcript within a span of time, and tells whether the session began
    /// in an excluded folder.
    fn read(
        &self,
        reader: impl BufRead,
        span: Range<DateTime<Utc>>,
    ) -> Result<(Transcript, bool), Fault> {
        let begin = Cell::new(None);
        let is_excluded = |folder: &str| {
            let is_excluded = self.exclusions.excludes(Path::new(folder));
            begin.set(begin.get().or(Some(is_excluded)));
            is_excluded
        };
        let part = TranscriptPart {
            span: Some(span),
            is_excluded: Some(&is_excluded),
            has_tools: true,
        };
        let (transcript, error) = transcript::read_part(reader, part);
        match error {
            Some(error) => Err(error.into()),
            None => Ok((transcript, begin.get().unwrap_or(false))),
        }
    }

    /// Returns the project of the folder in which a session began. The folder may be gone.
    fn project(&mut self, folder: Option<&String>) -> String {
        let Some(folder) = folder.filter(|folder| Path::new(folder).is_absolute()) else {
            return GLOBAL.to_owned();
        };
        if let Some(project) = self.projects.get(folder) {
            return project.clone();
        }
        let project = self.context.project_of(Path::new(folder)).key;
        self.projects.insert(folder.clone(), project.clone());
        project
    }
}

type Head = io::Cursor<Vec<u8>>;

/// Why a transcript could not be judged.
enum Fault {
    Transcript(io::Error),
    Journal(Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Transcript(error)
    }
}

impl From<anamnesis_store::journal::Error> for Fault {
    fn from(error: anamnesis_store::journal::Error) -> Self {
        Self::Journal(error.into())
    }
}

/// Returns the folder that the first records of a transcript name.
fn folder_of(head: &Head) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Record {
        cwd: String,
    }
    let lines = head.get_ref().split(|byte| *byte == b'\n');
    let record = lines.filter_map(|line| serde_json::from_slice::<Record>(line).ok());
    record.map(|record| record.cwd).next()
}

/// The sessions that notes name, and whether the note is a tombstone.
fn sessions_of_notes(context: &Context) -> HashMap<String, bool> {
    let mut sessions = HashMap::new();
    for (path, _) in context.notes.list().notes {
        if path.folder != NoteType::Episodic {
            continue;
        }
        let Ok(stored) = context.notes.read(path) else {
            continue;
        };
        let note = stored.file.into_note();
        if let Some(session) = note.session {
            *sessions.entry(session).or_default() |= note.state == State::Forgotten;
        }
    }
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projects_transcripts_lie_where_the_client_puts_them() {
        for (folder, name) in [
            ("/home/dev/project", "-home-dev-project"),
            ("/srv/my.shop_2/a b", "-srv-my-shop-2-a-b"),
            ("/", "-"),
        ] {
            assert_eq!(folder_name(Path::new(folder)), name);
        }
    }

    #[test]
    fn the_folder_is_that_of_the_first_record_that_names_one() {
        let head = |text: &str| folder_of(&io::Cursor::new(text.as_bytes().to_vec()));
        assert_eq!(head(""), None);
        assert_eq!(head("no JSON\n{\"cwd\":7}\n[]\n"), None);
        assert_eq!(
            head("{\"type\":\"mode\"}\n{\"cwd\":\"/a\"}\n{\"cwd\":\"/b\"}\n").as_deref(),
            Some("/a")
        );
        // Truncated JSON.
        assert_eq!(head("{\"cwd\":\"/a\""), None);
    }

    #[test]
    fn a_session_is_open_for_half_an_hour() {
        let now = DateTime::from_timestamp(1_767_323_045, 0).unwrap();
        for (minutes, expected) in [
            (0, true),
            (29, true),
            (31, false),
            (-29, true),
            (-31, false),
        ] {
            assert_eq!(
                is_recent(now - TimeDelta::minutes(minutes), now),
                expected,
                "{minutes}"
            );
        }
    }
}
