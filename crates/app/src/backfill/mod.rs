//! Writes notes for sessions from before the install, from the transcripts of a host.
//!
//! Each note is written right after its transcript was read, newest session first, so an interrupted
//! run can be continued. The index is refreshed once, at the end. An existing note is never touched.

mod transcripts;

use std::path::PathBuf;

use anamnesis_session::{event::Host, session_note::SessionDigest};
use anamnesis_store::{
    index::{Entry, Filter, Index},
    journal::Journal,
    session_note::{self, Outcome, Request},
};
use anamnesis_text::clean::one_line;
use serde::Serialize;
use ulid::Ulid;

use self::transcripts::{Finding, Past, candidates};
pub use self::transcripts::{
    HOSTS, Session, SessionFilter, Skip, countable, host_named, session_folder,
};
use crate::{
    Error, bulk_change,
    context::{Context, TIMEOUT},
    environment::Environment,
    sync,
};

/// The tag that these notes have in addition to `session`.
const SOURCE: &str = "backfill";

/// A transcript that is skipped.
#[derive(Debug, Serialize)]
pub struct SkippedTranscript {
    /// The transcript, for people.
    #[serde(rename = "transcript")]
    pub path: String,
    /// Why it is skipped.
    #[serde(rename = "reason")]
    pub skip: Skip,
    /// The error, if the file caused it.
    pub cause: Option<String>,
}

/// The result of a scan.
#[derive(Debug, Default, Serialize)]
pub struct BackfillReport {
    /// The sessions that can be remembered, newest first.
    pub sessions: Vec<Session>,
    /// The transcripts that are skipped, by path.
    pub skipped: Vec<SkippedTranscript>,
    /// How many sessions of other projects can be remembered.
    pub elsewhere: usize,
    /// How many transcripts were not read because the limit was reached or the scan failed.
    #[serde(rename = "not_looked_at")]
    pub left: usize,
    /// The error that ended the scan early.
    #[serde(skip)]
    pub failure: Option<Error>,
    /// The change that `undo` reverts; `None` if no syncing note was written.
    pub change: Option<Ulid>,
}

/// Opens the store. A dry run creates neither folders nor the journal. Only a person may write.
pub fn open(environment: Environment, apply: bool) -> Result<(Context, Option<Journal>), Error> {
    if apply {
        environment.check_person("write notes of earlier sessions")?;
    }
    let context = if apply {
        Context::open(environment)?
    } else {
        Context::new(environment, TIMEOUT)?
    };
    let journal = bulk_change::open_store(&context, apply)?;
    Ok((context, journal))
}

/// A session that has a transcript.
#[derive(Debug)]
pub struct PastSession {
    /// The session.
    pub session: Session,
    /// The digest that its note is made of.
    pub digest: Box<SessionDigest>,
    /// Its transcript.
    pub path: PathBuf,
}

/// Returns the notes of this machine that a backfill wrote and whose sessions have no records here,
/// newest first.
pub fn noted(
    context: &Context,
    journal: &Journal,
    index: &Index,
    project: Option<&str>,
) -> Result<Vec<Entry>, Error> {
    let filter = Filter {
        projects: project.map(str::to_owned).into_iter().collect(),
        tag: Some(SOURCE.to_owned()),
        machine: Some(context.machine_id()),
        ..Filter::default()
    };
    let mut noted = Vec::new();
    for entry in index.list(&filter, usize::MAX)? {
        let session = entry.session.as_deref().map(|id| journal.session(id));
        if session.transpose()?.flatten().is_none() {
            noted.push(entry);
        }
    }
    Ok(noted)
}

/// Returns the sessions that can be remembered, in the order in which they began, and how many
/// transcripts are skipped. `progress` as in [`run`].
pub fn past_sessions(
    context: &Context,
    wanted: &SessionFilter,
    mut progress: impl FnMut(usize, usize),
) -> Result<(Vec<PastSession>, usize), Error> {
    let candidates = candidates(context, wanted.host);
    let mut past = Past::new(context, None, wanted)?;
    let mut sessions = Vec::new();
    let mut skipped = 0;
    for (number, candidate) in candidates.iter().enumerate() {
        progress(number, candidates.len());
        match past.look(candidate)? {
            Finding::Session(session, digest) => sessions.push(PastSession {
                session,
                digest,
                path: candidate.path.clone(),
            }),
            Finding::Skipped(..) => skipped += 1,
            Finding::Elsewhere(_) => {}
        }
    }
    sessions.sort_by_key(|past| (past.session.began, past.session.note));
    Ok((sessions, skipped))
}

/// Writes the note of a session, without looking at the index.
pub fn write_note(
    context: &Context,
    journal: Option<&Journal>,
    host: Host,
    session: &Session,
    digest: &SessionDigest,
) -> Result<Outcome, Error> {
    let request = Request {
        session: Some(&session.id),
        project: &session.project,
        machine_id: &context.machine_id(),
        source: Some(SOURCE),
        change: None,
        host: host.other().map(Host::as_str),
        now: context.environment.now,
    };
    let outcome = session_note::capture(&context.notes, journal, digest, &request)?;
    Ok(outcome)
}

/// Scans the transcripts and writes the notes if `apply` is set. `progress` is called with how many
/// transcripts were read, and of how many.
pub fn run(
    context: &Context,
    journal: Option<&Journal>,
    wanted: &SessionFilter,
    apply: bool,
    mut progress: impl FnMut(usize, usize),
) -> Result<BackfillReport, Error> {
    let candidates = candidates(context, wanted.host);
    let mut past = Past::new(context, journal, wanted)?;
    let mut findings = BackfillReport::default();
    for (number, candidate) in candidates.iter().enumerate() {
        let is_full = |limit| findings.sessions.len() >= limit;
        if wanted.limit.is_some_and(is_full) {
            findings.left = candidates.len() - number;
            break;
        }
        progress(number, candidates.len());
        let finding = past.look(candidate).and_then(|finding| match finding {
            Finding::Session(session, digest) if apply => {
                // The index is refreshed once, after the scan.
                Ok(
                    match write_note(context, journal, wanted.host, &session, &digest)? {
                        Outcome::Written(_) => Finding::Session(session, digest),
                        Outcome::Trivial => Skip::Trivial.into(),
                        Outcome::Forgotten(_) => Skip::Forgotten.into(),
                        // Another process wrote the note while the transcript was read.
                        Outcome::Unchanged(_) => Skip::Noted.into(),
                    },
                )
            }
            finding => Ok(finding),
        });
        match finding {
            Ok(Finding::Session(session, _)) => findings.sessions.push(session),
            Ok(Finding::Elsewhere(is_notable)) => findings.elsewhere += usize::from(is_notable),
            Ok(Finding::Skipped(skip, cause)) => findings.skipped.push(SkippedTranscript {
                path: one_line(&context.shown(&candidate.path)),
                skip,
                cause,
            }),
            Err(failure) => {
                findings.left = candidates.len() - number;
                findings.failure = Some(failure);
                break;
            }
        }
    }
    let sessions = &mut findings.sessions;
    sessions.sort_by(|a, b| b.ended.cmp(&a.ended).then(a.note.cmp(&b.note)));
    findings.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    if let Some(journal) = journal
        && apply
        && !findings.sessions.is_empty()
    {
        let notes = findings.sessions.iter().map(|session| session.note);
        findings.change = sync::commit(context, "backfill", notes);
        context.index()?.checkpoint()?;
        journal.checkpoint()?;
    }
    Ok(findings)
}
