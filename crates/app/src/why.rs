//! Which notes a session received or not, with the reasons recorded at that time.

use std::path::{Path, PathBuf};

use anamnesis_note::id::NoteId;
use anamnesis_store::{
    fs::file,
    index::{Entry, Index},
    journal::{COMMIT, Evidence, Given, Held, InjectedText, Journal, POINTER, Run, Session},
};
use anamnesis_text::{clean::one_line, hash::text_hash};
use serde::Serialize;

use crate::{
    Error,
    context::{Context, TIMEOUT},
    format::iso,
    history, project_history, session,
};

/// How many bytes of an instructions file are searched.
const MAX_INSTRUCTIONS: usize = 1024 * 1024;

/// The word that means the last session with injected notes.
pub const LAST: &str = "last";

/// How many places outside the store are named.
const MAX_PLACES: usize = 5;

/// The notes that a session received.
pub struct ReceivedNotes<'a> {
    context: &'a Context,
    /// The index of the current notes.
    pub index: Index,
    /// The session.
    pub session: Session,
    /// The shortest unique prefix of the session's id.
    pub short: String,
    /// The numbers and times of its prompts.
    prompts: Vec<(i64, i64)>,
    given: Vec<Given>,
    runs: Vec<Run>,
}

/// All injections and held-back notes at one moment of one context.
pub struct InjectionMoment<'a> {
    /// The time, milliseconds since 1970.
    pub at: i64,
    /// The occasion.
    pub lane: &'a str,
    /// The subagent; empty for the session itself.
    pub agent: &'a str,
    /// The injected notes.
    pub given: Vec<&'a Given>,
    /// The search, if there was one.
    pub run: Option<&'a Run>,
}

/// Loads what a session received; `None` if `last` is meant and no session has received notes.
pub fn load<'a>(context: &'a Context, typed: &str) -> Result<Option<ReceivedNotes<'a>>, Error> {
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let session = match typed {
        LAST => match journal.last_recalling_session()? {
            Some(id) => journal.session(&id)?,
            None => None,
        },
        typed => Some(session::find(&journal, typed)?),
    };
    let Some(session) = session else {
        return Ok(None);
    };
    let index = context.index()?;
    ReceivedNotes::load(context, &journal, index, session).map(Some)
}

/// Loads the texts that a session received, byte for byte, each with what the hook printed: all of them,
/// or those of the last moment at or before `date`. Without a session, a date means the session of that
/// moment. `None` if nothing is recorded.
pub fn exact(
    context: &Context,
    typed: Option<&str>,
    date: Option<&str>,
) -> Result<Option<(Session, Vec<InjectedText>)>, Error> {
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let now = context.environment.now;
    let before = date.map(|date| history::time_of(date, now)).transpose()?;
    let session = match (typed, before) {
        (None, Some(_)) => None,
        (None | Some(LAST), _) => journal
            .last_injections(1)?
            .pop()
            .map(|(session, ..)| session),
        (Some(typed), _) => Some(session::find(&journal, typed)?.id),
    };
    let (id, at) = match before {
        None => (session, None),
        Some(before) => {
            // A typed time has no part of a second.
            let end = before.timestamp_millis() + 999;
            let found = journal.injection_before(session.as_deref(), end)?;
            found.map_or((None, None), |(session, at)| (Some(session), Some(at)))
        }
    };
    let Some(session) = id.map(|id| journal.session(&id)).transpose()?.flatten() else {
        return Ok(None);
    };
    let mut texts = journal.injected_texts(&session.id)?;
    texts.retain(|text| at.is_none_or(|at| text.at == at));
    Ok(Some((session, texts)))
}

impl<'a> ReceivedNotes<'a> {
    /// Loads what a session received.
    pub fn load(
        context: &'a Context,
        journal: &Journal,
        index: Index,
        session: Session,
    ) -> Result<Self, Error> {
        let prompts = journal.prompts(&session.id)?.into_iter();
        Ok(Self {
            context,
            index,
            prompts: prompts.map(|prompt| (prompt.number, prompt.at)).collect(),
            given: journal.given(&session.id)?,
            runs: journal.recalls(&session.id)?,
            short: session::short(journal, &session)?,
            session,
        })
    }

    /// The moments, in order.
    pub fn moments(&self) -> Vec<InjectionMoment<'_>> {
        let mut moments: Vec<InjectionMoment<'_>> = Vec::new();
        for given in &self.given {
            let moment = moment_at(&mut moments, given.at, &given.lane, &given.agent);
            moment.given.push(given);
        }
        for run in &self.runs {
            moment_at(&mut moments, run.at, &run.lane, &run.agent).run = Some(run);
        }
        moments.sort_by_key(|moment| moment.at);
        moments
    }

    /// The moments with only those injected notes that contain a text now.
    pub fn saying(&self, folded: &str) -> Vec<InjectionMoment<'_>> {
        let mut moments = self.moments();
        for moment in &mut moments {
            moment.given.retain(|given| self.says(given, folded));
        }
        moments.retain(|moment| !moment.given.is_empty());
        moments
    }

    fn says(&self, given: &Given, folded: &str) -> bool {
        let stored = self.entry(&given.note);
        let stored = stored.and_then(|entry| self.context.notes.read(entry.path).ok());
        stored.is_some_and(|stored| {
            let note = stored.note();
            let mut texts = [note.title, note.body].into_iter();
            texts.any(|text| text.to_lowercase().contains(folded))
        })
    }

    /// The number of the prompt at or before a moment.
    pub fn prompt_at(&self, moment: &InjectionMoment<'_>) -> Option<i64> {
        let mut prompts = self.prompts.iter().rev();
        let (number, _) = prompts.find(|(_, at)| *at <= moment.at)?;
        Some(*number)
    }

    /// The index entry of a note; `None` if it is gone.
    pub fn entry(&self, id: &str) -> Option<Entry> {
        entry(self.context, &self.index, id)
    }

    /// The line of an injected commit.
    pub fn commit(&self, given: &Given) -> String {
        project_history::line_of(self.context, &given.hash)
    }

    /// Returns what the session received, for scripts.
    pub fn report(&self) -> ReceivedReport<'_> {
        let moments = self.moments().into_iter().map(|moment| ReportedMoment {
            lane: moment.lane,
            agent: Some(moment.agent).filter(|agent| !agent.is_empty()),
            at: iso(moment.at),
            given: moment
                .given
                .into_iter()
                .map(|it| self.reported(it))
                .collect(),
            terms: moment.run.map(|run| run.terms),
            searched: moment.run.map(|run| run.searched),
            floor: moment.run.map(|run| run.floor),
            reason: moment
                .run
                .map(|run| run.reason.as_str())
                .filter(|reason| !reason.is_empty()),
            held: moment.run.map_or(&[], |run| &run.held),
        });
        ReceivedReport {
            session: &self.session.id,
            project: &self.session.project,
            moments: moments.collect(),
        }
    }

    fn reported<'b>(&self, given: &'b Given) -> ReportedNote<'b> {
        let is_commit = given.level == COMMIT;
        ReportedNote {
            id: (!is_commit).then_some(given.note.as_str()),
            commit: is_commit.then_some(given.hash.as_str()),
            // The hash of a forgotten text is removed, too.
            body_sha256: Some(given.hash.as_str())
                .filter(|hash| given.is_of_note() && !hash.is_empty()),
            level: &given.level,
            reason: &given.reason,
            evidence: given.evidence.as_ref(),
            title: self.entry(&given.note).map(|entry| entry.title),
            changed: self.has_changed(given),
        }
    }

    /// Returns whether the note changed since its text was injected.
    pub fn has_changed(&self, given: &Given) -> bool {
        if !given.is_of_note() {
            return false;
        }
        self.entry(&given.note)
            .and_then(|entry| self.context.notes.read(entry.path).ok())
            .is_some_and(|stored| text_hash(&stored.note().body) != given.hash)
    }

    /// Lines of the person's instructions and of Claude Code's own memory that contain a text.
    pub fn elsewhere(&self, folded: &str) -> Vec<String> {
        let user_home = self.context.environment.user_home.as_deref();
        let mut files: Vec<PathBuf> = Vec::new();
        if let Some(folder) = self.session.folder.as_deref().map(Path::new) {
            for name in ["CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"] {
                files.push(folder.join(name));
            }
        }
        if let Some(home) = user_home {
            files.push(home.join(".claude/CLAUDE.md"));
        }
        // The client stores a project's memory next to its transcripts.
        let transcript = self.session.transcript.as_deref().map(Path::new);
        if let Some(folder) = transcript.and_then(Path::parent) {
            files.push(folder.join("memory/MEMORY.md"));
        }
        let mut places = Vec::new();
        for file in files {
            let Some(text) = beginning(&file) else {
                continue;
            };
            for (number, line) in (1..).zip(text.lines()) {
                if places.len() < MAX_PLACES && line.to_lowercase().contains(folded) {
                    let name = self.context.shown(&file);
                    places.push(one_line(&format!("{name}:{number}")));
                }
            }
        }
        places
    }
}

/// The report of what a session received, for scripts.
#[derive(Serialize)]
pub struct ReceivedReport<'a> {
    session: &'a str,
    project: &'a str,
    moments: Vec<ReportedMoment<'a>>,
}

#[derive(Serialize)]
struct ReportedMoment<'a> {
    lane: &'a str,
    agent: Option<&'a str>,
    at: String,
    given: Vec<ReportedNote<'a>>,
    terms: Option<usize>,
    searched: Option<usize>,
    floor: Option<f64>,
    reason: Option<&'a str>,
    held: &'a [Held],
}

#[derive(Serialize)]
struct ReportedNote<'a> {
    id: Option<&'a str>,
    commit: Option<&'a str>,
    body_sha256: Option<&'a str>,
    level: &'a str,
    reason: &'a str,
    evidence: Option<&'a Evidence>,
    title: Option<String>,
    changed: bool,
}

/// The texts that a session received, byte for byte, for scripts.
#[derive(Serialize)]
pub struct ExactTexts<'a> {
    session: Option<&'a str>,
    texts: Vec<ExactText<'a>>,
}

#[derive(Serialize)]
struct ExactText<'a> {
    at: String,
    event: &'a str,
    agent: Option<&'a str>,
    sha256: &'a str,
    text: &'a str,
}

impl<'a> ExactTexts<'a> {
    /// Lists the texts of a session.
    pub fn new(session: Option<&'a Session>, texts: &'a [InjectedText]) -> Self {
        let texts = texts.iter().map(|text| ExactText {
            at: iso(text.at),
            event: &text.event,
            agent: Some(text.agent.as_str()).filter(|agent| !agent.is_empty()),
            sha256: &text.hash,
            text: &text.text,
        });
        Self {
            session: session.map(|session| session.id.as_str()),
            texts: texts.collect(),
        }
    }
}

/// Returns the moment with this time, occasion and context; adds it if there is none.
fn moment_at<'a, 'b>(
    moments: &'b mut Vec<InjectionMoment<'a>>,
    at: i64,
    lane: &'a str,
    agent: &'a str,
) -> &'b mut InjectionMoment<'a> {
    let is_same =
        |moment: &InjectionMoment<'_>| (moment.at, moment.lane, moment.agent) == (at, lane, agent);
    let place = moments.iter().position(is_same).unwrap_or_else(|| {
        moments.push(InjectionMoment {
            at,
            lane,
            agent,
            given: Vec::new(),
            run: None,
        });
        moments.len() - 1
    });
    &mut moments[place]
}

/// Returns the score of a note that was injected at a level, and the threshold, which a pointer does not
/// reach.
pub fn score(evidence: &Evidence, floor: f64, level: &str) -> String {
    let of_text = if level == POINTER {
        " for its text"
    } else {
        ""
    };
    format!("score {:.2}, {floor:.2} needed{of_text}", evidence.score)
}

/// The index entry of a note, from its full id; `None` if it is gone.
pub fn entry(context: &Context, index: &Index, id: &str) -> Option<Entry> {
    let id = id.parse::<NoteId>().ok()?;
    history::entry(context, index, id).ok().flatten()
}

/// The session for a dry run; `last` means the last one with injected notes.
pub fn session_to_try(context: &Context, typed: Option<&str>) -> Result<Option<String>, Error> {
    if typed != Some(LAST) {
        return Ok(typed.map(str::to_owned));
    }
    match context.records()? {
        Some(journal) => Ok(journal.last_recalling_session()?),
        None => Ok(None),
    }
}

/// The start of a regular file, up to the limit.
fn beginning(path: &Path) -> Option<String> {
    // People keep their instructions elsewhere, behind a link.
    let path = dunce::canonicalize(path).ok()?;
    let (bytes, ..) = file::read_head(&path, MAX_INSTRUCTIONS).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
