//! The sessions that Claude Code has transcripts of: which can be remembered, and why others cannot.
//!
//! Nothing is written here. A transcript is looked at by itself, so that it does not matter where an
//! earlier run was interrupted: what was written then is found as a note.

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
    note::{GLOBAL, NoteType, State},
};
use anamnesis_session::{
    session_note::{NoteText, SessionDigest, note_text},
    transcript::{self, Transcript, TranscriptPart},
};
use anamnesis_store::{fs::file, journal::Journal, settings::exclude::Exclusions};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use anamnesis_app::{capture::ALWAYS, context::Context, failure::Failure};

/// A transcript that somebody wrote to within this time is one of a session that goes on.
const SILENCE: TimeDelta = TimeDelta::minutes(30);

/// How much of the beginning of a transcript is looked at for its folder, in bytes.
const HEAD: u64 = 64 * 1024;

/// Which sessions are asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// Those of this project; of all without one.
    pub(super) project: Option<String>,
    /// Those that went on until this day or longer.
    pub(super) since: Option<NaiveDate>,
    /// Those, too, that could have been recorded and were not.
    pub(super) unrecorded: bool,
}

/// A file that may be a transcript.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    modified: Option<DateTime<Utc>>,
    pub(super) path: PathBuf,
}

/// A session that can be remembered.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) note: NoteId,
    pub(super) project: String,
    pub(super) title: String,
    pub(super) began: DateTime<Utc>,
    pub(super) ended: DateTime<Utc>,
}

/// Why a session is not remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skip {
    Noted,
    Recorded,
    Open,
    Trivial,
    Forgotten,
    Excluded,
    Paused,
    Unrecorded,
    Earlier,
    Own,
    Nameless,
    Unreadable,
}

impl Skip {
    /// The word for scripts.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Noted => "noted",
            Self::Recorded => "recorded",
            Self::Open => "open",
            Self::Trivial => "trivial",
            Self::Forgotten => "forgotten",
            Self::Excluded => "excluded",
            Self::Paused => "paused",
            Self::Unrecorded => "unrecorded",
            Self::Earlier => "earlier",
            Self::Own => "own",
            Self::Nameless => "no-session-id",
            Self::Unreadable => "unreadable",
        }
    }

    /// The reason, in a few words that fit one session and many.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Noted => "noted already",
            Self::Recorded => "recorded: the note is made without this",
            Self::Open => "still open: noted at the end",
            Self::Trivial => "nothing to keep",
            Self::Forgotten => "forgotten, and stays so",
            Self::Excluded => "in an excluded folder",
            Self::Paused => "of a paused project",
            Self::Unrecorded => "not recorded at the time, perhaps on purpose (--unrecorded)",
            Self::Earlier => "before the day of --since",
            Self::Own => "made by anamnesis itself",
            Self::Nameless => "without a session id",
            Self::Unreadable => "unreadable",
        }
    }
}

/// What came of looking at a transcript.
#[derive(Debug)]
pub(super) enum Finding {
    /// It can be remembered, and this is what there is to be said.
    Session(Session, Box<SessionDigest>),
    /// It is not remembered. With the cause, where it is one of the file.
    Skipped(Skip, Option<String>),
    /// It belongs to a project that was not asked for.
    Elsewhere,
}

impl From<Skip> for Finding {
    fn from(skip: Skip) -> Self {
        Self::Skipped(skip, None)
    }
}

/// The transcripts of all projects, the one that was written to last first.
///
/// Links are not followed, and the transcripts of subagents are no sessions.
pub(super) fn candidates(context: &Context) -> Vec<Candidate> {
    let Some(projects) = projects_folder(context) else {
        return Vec::new();
    };
    let mut found: Vec<Candidate> = entries(&projects)
        .filter(|(_, metadata)| metadata.is_dir())
        .flat_map(|(folder, _)| candidates_in(&folder))
        .collect();
    found.sort_unstable_by(|a, b| b.modified.cmp(&a.modified).then(a.path.cmp(&b.path)));
    found
}

/// How many earlier sessions of the project at `folder` have a transcript, going by names alone.
pub(in super::super) fn countable(context: &Context, folder: &Path) -> usize {
    let Some(projects) = projects_folder(context) else {
        return 0;
    };
    let now = context.environment.now;
    candidates_in(&projects.join(folder_name(folder)))
        .filter(|candidate| !candidate.modified.is_some_and(|at| is_recent(at, now)))
        .count()
}

/// The name that the client gives the folder of a project's transcripts.
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
        // Earlier clients kept those of subagents here.
        (is_transcript && !name.starts_with("agent-")).then(|| Candidate {
            modified: metadata.modified().ok().map(DateTime::from),
            path,
        })
    })
}

/// What lies in a folder; links as themselves.
fn entries(folder: &Path) -> impl Iterator<Item = (PathBuf, fs::Metadata)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}

/// Tells whether a time is so near that the session may go on. One in the future says nothing.
fn is_recent(time: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    (now - time).abs() < SILENCE
}

/// Looks at transcripts one after the other.
pub(super) struct Past<'a> {
    context: &'a Context,
    journal: Option<&'a Journal>,
    wanted: &'a Wanted,
    exclusions: Exclusions,
    /// Claude Code's folder by its real path: nothing outside is read.
    claude_folder: Option<PathBuf>,
    /// The sessions that notes name, and whether the note is a tombstone. Other programs give the
    /// note of a session another id than we do.
    noted: HashMap<String, bool>,
    /// The notes of sessions that were found to be worth one.
    found: HashSet<NoteId>,
    /// The projects of folders.
    projects: HashMap<String, String>,
    /// When the first session was recorded here, if one was.
    recorded_since: Option<DateTime<Utc>>,
}

impl<'a> Past<'a> {
    pub(super) fn new(
        context: &'a Context,
        journal: Option<&'a Journal>,
        wanted: &'a Wanted,
    ) -> Result<Self, Failure> {
        let since = journal.map(Journal::since).transpose()?.flatten();
        let environment = &context.environment;
        let claude_folder = environment.claude_folder.as_ref();
        Ok(Self {
            context,
            journal,
            wanted,
            exclusions: context.exclusions(),
            claude_folder: claude_folder.and_then(|folder| folder.canonicalize().ok()),
            noted: sessions_of_notes(context),
            found: HashSet::new(),
            projects: HashMap::new(),
            recorded_since: since.and_then(DateTime::from_timestamp_millis),
        })
    }

    /// Looks at a transcript.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub(super) fn look(&mut self, candidate: &Candidate) -> Result<Finding, Failure> {
        match self.look_into(candidate) {
            Ok(finding) => Ok(finding),
            Err(Fault::Transcript(cause)) => {
                Ok(Finding::Skipped(Skip::Unreadable, Some(cause.to_string())))
            }
            Err(Fault::Journal(failure)) => Err(failure),
        }
    }

    fn look_into(&mut self, candidate: &Candidate) -> Result<Finding, Fault> {
        let (file, head) = self.open(&candidate.path)?;
        let folder = folder_of(&head);
        if let (Some(wanted), Some(folder)) = (self.wanted.project.clone(), &folder)
            && self.project(Some(folder)) != wanted
        {
            return Ok(Finding::Elsewhere);
        }
        // A file has the name of its session, so most of those that are done with need not be read.
        let name = candidate.path.file_stem().unwrap_or_default();
        if let Some(skip) = self.known(&name.to_string_lossy())? {
            return Ok(skip.into());
        }
        let reader = head.chain(BufReader::with_capacity(256 * 1024, file));
        let (mut transcript, is_excluded) = self.read(reader, ALWAYS)?;
        let project = self.project(transcript.cwd.as_ref());
        if let Some(wanted) = &self.wanted.project
            && *wanted != project
            && !is_excluded
        {
            return Ok(Finding::Elsewhere);
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
        let mut account = SessionDigest::from(&transcript);
        // A transcript without times is as old as its file.
        let ended = transcript.last_at.or(candidate.modified).unwrap_or(now);
        let ended = ended.min(now);
        let began = transcript.first_at.unwrap_or(ended).min(ended);
        (account.first_at, account.last_at) = (Some(began), Some(ended));
        let NoteText::Note { title, body } = note_text(&account) else {
            return Ok(Skip::Trivial.into());
        };
        // Where nothing was forgotten yet, there is no key to tell it by, and none is made.
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
        Ok(Finding::Session(session, Box::new(account)))
    }

    /// Why a session that can be read is not wanted.
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
            let cause = io::Error::other("no line is a record of Claude Code");
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
        // A copy of an old transcript is a new file.
        let mut times = candidate.modified.iter().chain(&transcript.last_at);
        if times.all(|time| is_recent(*time, now)) {
            return Ok(Some(Skip::Open));
        }
        let ended = transcript.last_at.or(candidate.modified);
        let is_earlier = |since| ended.is_some_and(|ended| ended.date_naive() < since);
        Ok(self
            .wanted
            .since
            .is_some_and(is_earlier)
            .then_some(Skip::Earlier))
    }

    /// Why a session of this id needs no look.
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

    /// The time from which on, and until which, a transcript may be read: what was said while
    /// recording was switched off is not looked for.
    ///
    /// Nobody could switch it off before the install, except between the install and the first
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
                // What the system says of a link that it was told not to follow helps nobody.
                Some(_) if path.is_symlink() => io::Error::other("a link; not followed"),
                _ => error,
            })?;
        let real = path.canonicalize()?;
        if !(self.claude_folder.as_ref()).is_some_and(|folder| real.starts_with(folder)) {
            return Err(io::Error::other("not in Claude Code's folder").into());
        }
        let mut head = Vec::new();
        file.by_ref().take(HEAD).read_to_end(&mut head)?;
        Ok((file, io::Cursor::new(head)))
    }

    /// Reads what a transcript has from a span of time; tells, too, whether the session began in an
    /// excluded folder.
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
        };
        let (transcript, error) = transcript::read_part(reader, part);
        match error {
            Some(error) => Err(error.into()),
            None => Ok((transcript, begin.get().unwrap_or(false))),
        }
    }

    /// The project of a session that began in a folder, which may be gone.
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

/// The beginning of a transcript.
type Head = io::Cursor<Vec<u8>>;

/// Why a transcript could not be judged.
enum Fault {
    /// It cannot be read.
    Transcript(io::Error),
    /// The records cannot be read.
    Journal(Failure),
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

/// The folder that the first records of a transcript name.
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
        // Broken off.
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
