//! The note of a session. It is updated as the session continues, and never overwrites a person's
//! edits.
//!
//! The note's id is derived from the session's id, so the end of a session, a compaction and a second
//! end after a resume write the same file. The text is replaced only while it is what capture wrote.
//! After an edit by a person, only tags are added.

use std::path::Path;

use anamnesis_note::{
    draft::asked as asked_phrases,
    id::NoteId,
    note::{Note, NoteType, REFLECTED_TAG, Source, State, timestamp},
};
use anamnesis_session::session_note::{NoteText, SessionDigest, asked, note_text};
use anamnesis_text::{private_tokens::PrivateTokens, redact::redact};
use chrono::{DateTime, Utc};

use crate::{
    fs::lock::Lock,
    journal::{self, Journal, LOST, Session},
    notes::{Error, NotePath, Notes, Stored},
    project::is_default_branch,
};

/// The confidence of a session note: rules chose its words.
const CONFIDENCE: f64 = 0.6;

/// The tag of every session note.
const TAG: &str = "session";

/// The tags for the end of a session, of which a note has only the last one: a lost session may
/// continue, and a client may be gone before its end hook runs.
const ENDS: [&str; 2] = ["session-end", LOST];

/// The session to capture.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The client's id of the session. Without one, each capture creates a new note.
    pub session: Option<&'a str>,
    /// The project's key.
    pub project: &'a str,
    /// The name of this machine.
    pub machine_id: &'a str,
    /// The trigger of the capture, stored as a tag: `session-end`, `precompact`, `lost`, …; none for
    /// an open session.
    pub source: Option<&'a str>,
    /// The session's `change` in the journal that the digest was read at; none if it was not read there.
    pub change: Option<i64>,
    /// The program of the session, if it was not Claude Code.
    pub host: Option<&'a str>,
    /// The current time.
    pub now: DateTime<Utc>,
}

/// The result of a capture.
#[derive(Debug)]
pub enum Outcome {
    /// The session has nothing that is useful later.
    Trivial,
    /// The note was written.
    Written(Box<Stored>),
    /// The note is up to date.
    Unchanged(NotePath),
    /// The note was forgotten by a person and stays so.
    Forgotten(NoteId),
}

/// Returns the new note of a session; `None` if the session has nothing that is useful later.
pub fn draft(digest: &SessionDigest, request: &Request<'_>) -> Option<Note> {
    let NoteText { title, body } = note_text(digest)?;
    let id = request
        .session
        .map_or_else(|| NoteId::generate(request.now), NoteId::of_session);
    // A time in the future would keep the note first for ever.
    let changed_at = digest
        .last_at
        .map_or(request.now, |time| time.min(request.now));
    let created_at = digest
        .first_at
        .map_or(changed_at, |time| time.min(changed_at));
    Some(Note {
        title,
        body,
        asked: asked(digest),
        branch: branch(digest),
        created_at: timestamp(created_at),
        updated_at: timestamp(changed_at),
        ..new_note(id, request)
    })
}

/// Returns the branch on which a session worked, unless it is the repository's default branch.
fn branch(digest: &SessionDigest) -> Option<String> {
    let branch = digest.git_branch.as_ref()?;
    let folder = Path::new(digest.folder.as_deref().unwrap_or_default());
    (!is_default_branch(folder, branch)).then(|| branch.clone())
}

/// Writes or updates the note of a session. A note that an agent's capture wrote becomes the session's.
///
/// Without the journal, a note can be created. An existing text is kept, because a person may have
/// changed it. Two processes may capture a session at once: a note of a later state is kept, and so is
/// a model's summary of this one.
///
/// # Errors
/// The note on disk is unchanged.
pub fn capture(
    notes: &Notes,
    journal: Option<&Journal>,
    digest: &SessionDigest,
    request: &Request<'_>,
) -> Result<Outcome, Error> {
    let Some(draft) = draft(digest, request) else {
        if digest.is_undone
            && let (Some(session), Some(journal)) = (request.session, journal)
        {
            remove_own(notes, journal, session, request)?;
        }
        return Ok(Outcome::Trivial);
    };
    let text = own_text(&draft.title, &draft.body);
    // If the journal cannot be read, the text may have been forgotten.
    let forgotten = journal.map_or(Ok(None), |journal| journal.forgotten_at(&draft.body))?;
    let lock = notes.lock()?;
    let written_at = written_at(journal, request)?;
    if written_at > request.change {
        let path = notes.find(draft.id);
        return Ok(path.map_or(Outcome::Trivial, Outcome::Unchanged));
    }
    // Before the file: see `Journal::session_body_written`.
    let keep_text = || match (journal, request.session) {
        (Some(journal), Some(session)) => journal.session_body_written(session, &text),
        _ => Ok(()),
    };
    let Some(path) = notes.find(draft.id) else {
        if forgotten.is_some() {
            return Ok(Outcome::Forgotten(draft.id));
        }
        // An unrecorded text would count as a person's from then on.
        keep_text()?;
        let stored = notes.create(&lock, &draft)?;
        mark_noted(journal, request);
        return Ok(Outcome::Written(Box::new(stored)));
    };
    let before = notes.read(path)?;
    let old = before.file.note();
    if old.state == State::Forgotten {
        return Ok(Outcome::Forgotten(draft.id));
    }
    let is_ours = |session| journal.is_some_and(|journal| is_own(journal, session, old));
    let is_same_state = written_at.is_some() && written_at == request.change;
    let replace = !(is_same_state && old.model.is_some()) && request.session.is_some_and(is_ours);
    if replace {
        keep_text()?;
    }
    let private = private_tokens(journal, request)?;
    let is_taken_over = replace && old.is_by_agent();
    let scope = match old.state {
        State::Proposed if is_taken_over => draft.scope,
        _ => path.scope,
    };
    // It was written before it was known where the session would work.
    let launched_in = match (journal, request.session) {
        (Some(journal), Some(session)) if replace && old.project != draft.project => {
            journal.session(session)?.map(|session| session.project)
        }
        _ => None,
    };
    let after = notes.move_changed(&lock, path, scope, |note| {
        if launched_in.as_ref() == Some(&note.project) {
            note.project.clone_from(&draft.project);
        }
        if is_taken_over {
            note.source = draft.source;
            note.actor = None;
            note.state = State::Active;
        }
        if replace {
            replace_text(note, draft, &private);
        }
        tag(note, request.source);
    })?;
    mark_noted(journal, request);
    Ok(if after.stamp == before.stamp {
        Outcome::Unchanged(path)
    } else {
        Outcome::Written(Box::new(after))
    })
}

/// Returns the private tokens of the session.
fn private_tokens(
    journal: Option<&Journal>,
    request: &Request<'_>,
) -> Result<PrivateTokens, Error> {
    match (journal, request.session) {
        (Some(journal), Some(session)) => Ok(journal.echoes(session)?),
        _ => Ok(PrivateTokens::default()),
    }
}

/// Replaces the text of a session's note, and the branch.
fn replace_text(note: &mut Note, draft: Note, private: &PrivateTokens) {
    note.branch = draft.branch;
    // A person may have added phrases. Those with a word that is private by now go.
    let is_kept = |phrase: &String| redact(&private.mask(phrase)).text == *phrase;
    let mut kept = std::mem::take(&mut note.asked);
    kept.retain(is_kept);
    note.asked = asked_phrases(&[draft.asked, kept].concat());
    if note.title == draft.title && note.body == draft.body {
        return;
    }
    note.title = draft.title;
    note.body = draft.body;
    note.model = None;
    note.updated_at = draft.updated_at;
    // The reflection used an earlier text.
    note.tags.retain(|tag| tag != REFLECTED_TAG);
}

/// Returns the note of a session, without its text and times.
fn new_note(id: NoteId, request: &Request<'_>) -> Note {
    let mut note = Note {
        project: request.project.to_owned(),
        machine_id: request.machine_id.to_owned(),
        source: Source::SessionEnd,
        confidence: CONFIDENCE,
        session: request.session.map(str::to_owned),
        host: request.host.map(str::to_owned),
        ..Note::new(id, NoteType::Episodic, request.now)
    };
    tag(&mut note, request.source);
    note
}

/// Adds the tags of a session note, and removes that of an earlier end.
fn tag(note: &mut Note, source: Option<&str>) {
    if let Some(end) = source.filter(|source| ENDS.contains(source)) {
        note.tags
            .retain(|tag| tag == end || !ENDS.contains(&tag.as_str()));
    }
    note.add_tags(std::iter::once(TAG).chain(source));
}

/// Returns the state of the session that its note was written from; none if it is not asked for.
fn written_at(journal: Option<&Journal>, request: &Request<'_>) -> Result<Option<i64>, Error> {
    let (Some(journal), Some(session), Some(_)) = (journal, request.session, request.change) else {
        return Ok(None);
    };
    // Without the answer, a later text might be replaced.
    Ok(journal.session(session)?.map(|session| session.noted))
}

/// Records what the note was written from, under the notes lock: the next process compares with it.
/// After an error the note counts as outdated, and is written again.
fn mark_noted(journal: Option<&Journal>, request: &Request<'_>) {
    if let (Some(journal), Some(session), Some(change)) = (journal, request.session, request.change)
    {
        let _ = journal.noted(session, change, request.now.timestamp_millis());
    }
}

/// Removes the note of a session in which all that was made was removed again.
fn remove_own(
    notes: &Notes,
    journal: &Journal,
    session: &str,
    request: &Request<'_>,
) -> Result<(), Error> {
    let lock = notes.lock()?;
    if written_at(Some(journal), request)? <= request.change {
        remove_useless(notes, &lock, journal, session)?;
    }
    Ok(())
}

/// Removes the note of a session in which a model found nothing useful. Returns whether it did.
///
/// # Errors
/// The note on disk is unchanged.
pub fn skip(notes: &Notes, journal: &Journal, session: &str) -> Result<bool, Error> {
    remove_useless(notes, &notes.lock()?, journal, session)
}

/// Removes the note of a session that the note of another one tells. A process that still has an earlier
/// state of the session writes no note after that.
///
/// # Errors
/// The note on disk is unchanged.
pub fn drop_repeated(
    notes: &Notes,
    journal: &Journal,
    session: &Session,
    now: i64,
) -> Result<bool, Error> {
    let lock = notes.lock()?;
    journal.noted(&session.id, session.change, now)?;
    remove_useless(notes, &lock, journal, &session.id)
}

/// Removes the note of a session. A note that a person changed, or that was distilled, is kept.
fn remove_useless(
    notes: &Notes,
    lock: &Lock,
    journal: &Journal,
    session: &str,
) -> Result<bool, Error> {
    let Some(path) = notes.find(NoteId::of_session(session)) else {
        return Ok(false);
    };
    let note = notes.read(path)?.note();
    let is_removed = note.state == State::Active
        && !note.has_tag(REFLECTED_TAG)
        && is_own(journal, session, &note);
    if is_removed {
        notes.remove(lock, path)?;
    }
    Ok(is_removed)
}

/// Replaces a rule-made text with a model's. Returns whether it did. A note that a person changed, or
/// that was forgotten meanwhile, is kept. A note that a reflection has used is replaced, too: the answer
/// is paid for.
///
/// # Errors
/// The note on disk is unchanged.
pub fn retell(
    notes: &Notes,
    journal: &Journal,
    session: &str,
    text: (&str, &str),
    model: &str,
    now: DateTime<Utc>,
) -> Result<Option<Stored>, Error> {
    let lock = notes.lock()?;
    let Some(path) = notes.find(NoteId::of_session(session)) else {
        return Ok(None);
    };
    let before = notes.read(path)?.note();
    let (title, body) = text;
    if before.state != State::Active
        || !is_own(journal, session, &before)
        // Before the file: see `Journal::session_body_written`.
        || journal.session_body_written(session, &own_text(title, body)).is_err()
    {
        return Ok(None);
    }
    let after = notes.update(&lock, path, |note| {
        title.clone_into(&mut note.title);
        body.clone_into(&mut note.body);
        note.model = Some(model.to_owned());
        note.updated_at = timestamp(now);
    })?;
    Ok(Some(after))
}

/// Returns whether a session's note has the text that capture wrote. Otherwise a person changed it.
pub fn is_own(journal: &Journal, session: &str, note: &Note) -> bool {
    journal
        .is_session_body(session, &own_text(&note.title, &note.body))
        .unwrap_or(false)
}

/// Returns whether a note is a session's, word for word as rules wrote it on this machine, and no program
/// sent a prompt of that session.
///
/// Only such a note quotes the person: a tool, an import, a remote or a model may write any text, and
/// a note's front matter is only a label.
pub fn quotes_person(journal: &Journal, note: &Note) -> bool {
    let session = note.session.as_deref();
    note.note_type == NoteType::Episodic
        && note.source == Source::SessionEnd
        && note.actor.is_none()
        && note.model.is_none()
        && session.is_some_and(|session| {
            let text = own_text(&note.title, &note.body);
            NoteId::of_session(session) == note.id
                && journal.is_body_of_person(session, &text).unwrap_or(false)
        })
}

/// Records the current text of a session's note as written by capture, after a text in it was masked.
pub fn keep_own(journal: &Journal, session: &str, note: &Note) -> Result<(), journal::Error> {
    journal.session_body_written(session, &own_text(&note.title, &note.body))
}

/// Returns the text whose change means an edit by a person, including the title.
fn own_text(title: &str, body: &str) -> String {
    format!("{title}\n{body}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anamnesis_session::{
        event::{RecordedEvent, SessionEvent, Surroundings},
        turn::Turn,
    };

    use super::*;
    use crate::fs::home::Home;

    const TIMEOUT: Duration = Duration::from_secs(5);

    struct Fixture {
        folder: tempfile::TempDir,
        notes: Notes,
        journal: Journal,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::new(folder.path().join("store"));
            home.create().unwrap();
            let journal = Journal::open(&home, TIMEOUT).unwrap();
            Self {
                folder,
                notes: Notes::new(home, TIMEOUT),
                journal,
            }
        }

        fn capture(&self, digest: &SessionDigest, source: &str) -> Outcome {
            capture(&self.notes, Some(&self.journal), digest, &request(source)).unwrap()
        }

        fn note(&self) -> Note {
            let path = self.notes.find(NoteId::of_session("s")).unwrap();
            self.notes.read(path).unwrap().note()
        }
    }

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn request(source: &str) -> Request<'_> {
        Request {
            session: Some("s"),
            project: "p",
            machine_id: "m",
            source: Some(source),
            change: None,
            host: None,
            now: now(),
        }
    }

    fn session(ask: &str, outcome: &str) -> SessionDigest {
        SessionDigest {
            turns: vec![Turn {
                prompt: Some(ask.to_owned()),
                answer: Some(outcome.to_owned()),
                ..Turn::default()
            }],
            // A reason to write a note.
            failures: 1,
            ..SessionDigest::default()
        }
    }

    #[test]
    fn one_session_one_note() {
        // CAP-10
        let fixture = Fixture::new();
        fixture.capture(
            &session(
                "fix the parser",
                "half of it is fixed, since the login was slow",
            ),
            "precompact",
        );
        let first = fixture.note();
        assert_eq!(first.tags, ["session", "precompact"]);
        assert_eq!(
            (first.source, first.session.as_deref()),
            (Source::SessionEnd, Some("s"))
        );
        fixture.capture(
            &session(
                "fix the parser",
                "all limits are in, because the login needs them",
            ),
            "session-end",
        );
        fixture.capture(
            &session(
                "fix the parser",
                "all limits are in, because the login needs them",
            ),
            "session-end",
        );
        let last = fixture.note();
        assert_eq!(last.tags, ["session", "precompact", "session-end"]);
        assert!(
            last.body
                .contains("**Outcome:** all limits are in, because the login needs them")
        );
        assert_eq!(last.created_at, first.created_at);
        assert_eq!(fixture.notes.list().notes.len(), 1);
        assert!(matches!(
            fixture.capture(
                &session(
                    "fix the parser",
                    "all limits are in, because the login needs them"
                ),
                "session-end"
            ),
            Outcome::Unchanged(_)
        ));
    }

    #[test]
    fn a_note_tells_how_its_session_ended_last() {
        let fixture = Fixture::new();
        let digest = session(
            "fix the parser",
            "half of it is fixed, since the login was slow",
        );
        for (source, tags) in [
            ("precompact", &["session", "precompact"][..]),
            (LOST, &["session", "precompact", "lost"]),
            ("session-end", &["session", "precompact", "session-end"]),
            ("session-end", &["session", "precompact", "session-end"]),
            (LOST, &["session", "precompact", "lost"]),
        ] {
            fixture.capture(&digest, source);
            assert_eq!(fixture.note().tags, tags, "{source}");
        }
    }

    #[test]
    fn a_session_that_undid_its_work_loses_its_note() {
        let fixture = Fixture::new();
        let made = session(
            "write a file about geese",
            "The file about geese is written.",
        );
        let undone = SessionDigest {
            is_undone: true,
            failures: 0,
            ..made.clone()
        };
        fixture.capture(&made, "precompact");
        assert!(matches!(
            fixture.capture(&undone, "session-end"),
            Outcome::Trivial
        ));
        assert_eq!(fixture.notes.find(NoteId::of_session("s")), None);
        // A person's edit stays.
        fixture.capture(&made, "precompact");
        let path = fixture.notes.find(NoteId::of_session("s")).unwrap();
        let lock = fixture.notes.lock().unwrap();
        fixture
            .notes
            .update(&lock, path, |note| note.body.push_str("\n\nMine."))
            .unwrap();
        drop(lock);
        fixture.capture(&undone, "session-end");
        assert!(fixture.note().body.ends_with("Mine."));
    }

    #[test]
    fn a_persons_words_stay() {
        let fixture = Fixture::new();
        fixture.capture(
            &session(
                "fix the parser",
                "half of it is fixed, since the login was slow",
            ),
            "precompact",
        );
        let path = fixture.notes.find(NoteId::of_session("s")).unwrap();
        fixture
            .notes
            .update(&fixture.notes.lock().unwrap(), path, |note| {
                note.title = "mine".to_owned()
            })
            .unwrap();
        fixture.capture(
            &session(
                "fix the parser",
                "all limits are in, because the login needs them",
            ),
            "session-end",
        );
        let note = fixture.note();
        assert_eq!(note.title, "mine");
        assert!(
            note.body
                .ends_with("half of it is fixed, since the login was slow")
        );
        assert_eq!(note.tags, ["session", "precompact", "session-end"]);
    }

    #[test]
    fn a_model_retells_what_capture_wrote_and_nothing_else() {
        let fixture = Fixture::new();
        let retell = || {
            let text = ("Parser fixed", "It was the comma.");
            retell(
                &fixture.notes,
                &fixture.journal,
                "s",
                text,
                "local/m",
                now(),
            )
            .unwrap()
        };
        assert!(retell().is_none());
        fixture.capture(
            &session(
                "fix the parser",
                "half of it is fixed, since the login was slow",
            ),
            "session-end",
        );
        assert!(retell().is_some());
        let note = fixture.note();
        assert_eq!(
            (note.title.as_str(), note.body.as_str()),
            ("Parser fixed", "It was the comma.")
        );
        assert_eq!(
            (note.model.as_deref(), note.source),
            (Some("local/m"), Source::SessionEnd)
        );
        assert_eq!(note.tags, ["session", "session-end"]);
        // The session continues, and the rule-made text is used again.
        fixture.capture(
            &session(
                "fix the parser",
                "all limits are in, because the login needs them",
            ),
            "session-end",
        );
        assert_eq!(fixture.note().model, None);
        assert!(
            fixture
                .note()
                .body
                .ends_with("all limits are in, because the login needs them")
        );
        let path = fixture.notes.find(NoteId::of_session("s")).unwrap();
        let lock = fixture.notes.lock().unwrap();
        let change = |note: &mut Note| note.body.push_str(" mine");
        fixture.notes.update(&lock, path, change).unwrap();
        drop(lock);
        assert!(retell().is_none());
        assert!(fixture.note().body.ends_with("mine"));
    }

    const EARLIER: &str = "half of it is fixed, since the login was slow";
    const LATER: &str = "all limits are in, because the login needs them";

    /// Captures the state of the session at a value of its `change`.
    fn capture_at(fixture: &Fixture, change: i64, outcome: &str, source: Option<&str>) {
        let request = Request {
            source,
            change: Some(change),
            ..request("")
        };
        let digest = session("fix the parser", outcome);
        capture(&fixture.notes, Some(&fixture.journal), &digest, &request).unwrap();
    }

    fn with_session() -> Fixture {
        let fixture = Fixture::new();
        let start = SessionEvent {
            session: "s".to_owned(),
            at: 1,
            prompt_id: None,
            agent: None,
            surroundings: Surroundings::default(),
            private: false,
            echoes: Vec::new(),
            unmasked: Vec::new(),
            what: RecordedEvent::Seen,
        };
        fixture.journal.take(&start).unwrap();
        fixture
    }

    #[test]
    fn a_slow_process_does_not_take_the_last_turn_out_of_a_note() {
        let fixture = with_session();
        capture_at(&fixture, 2, LATER, Some("session-end"));
        // The deferred process read the session before its last turn.
        capture_at(&fixture, 1, EARLIER, None);
        let note = fixture.note();
        assert!(note.body.ends_with(LATER), "{}", note.body);
        assert_eq!(note.tags, ["session", "session-end"]);
        capture_at(&fixture, 3, EARLIER, None);
        assert!(fixture.note().body.ends_with(EARLIER));
    }

    #[test]
    fn a_full_disk_is_not_reported_as_locked_notes() {
        let fixture = with_session();
        let records = fixture.folder.path().join("store/journal.db");
        let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON session_body
                      BEGIN SELECT raise(ABORT, 'refused'); END";
        let connection = rusqlite::Connection::open(records).unwrap();
        connection.execute_batch(refuse).unwrap();
        let digest = session("fix the parser", EARLIER);
        let refused = capture(
            &fixture.notes,
            Some(&fixture.journal),
            &digest,
            &request("session-end"),
        );
        assert!(matches!(refused, Err(Error::Journal(_))), "{refused:?}");
        assert_eq!(fixture.notes.find(NoteId::of_session("s")), None);
    }

    #[test]
    fn a_slow_process_does_not_drop_a_paid_summary() {
        let fixture = with_session();
        let retell = || {
            let text = ("Parser fixed", "It was the comma.");
            let (notes, journal) = (&fixture.notes, &fixture.journal);
            retell(notes, journal, "s", text, "local/m", now()).unwrap()
        };
        capture_at(&fixture, 1, EARLIER, Some(LOST));
        retell().unwrap();
        capture_at(&fixture, 1, EARLIER, Some("session-end"));
        let note = fixture.note();
        assert_eq!(note.body, "It was the comma.");
        assert_eq!(note.tags, ["session", "session-end"]);
        // The session goes on.
        capture_at(&fixture, 2, LATER, None);
        assert!(fixture.note().body.ends_with(LATER));
    }

    #[test]
    fn a_reflection_that_was_faster_does_not_drop_a_paid_summary() {
        let fixture = with_session();
        capture_at(&fixture, 1, EARLIER, None);
        let path = fixture.notes.find(NoteId::of_session("s")).unwrap();
        let lock = fixture.notes.lock().unwrap();
        let reflect = |note: &mut Note| note.add_tags([REFLECTED_TAG]);
        fixture.notes.update(&lock, path, reflect).unwrap();
        drop(lock);
        let text = ("Parser fixed", "It was the comma.");
        let (notes, journal) = (&fixture.notes, &fixture.journal);
        assert!(
            retell(notes, journal, "s", text, "local/m", now())
                .unwrap()
                .is_some()
        );
        let note = fixture.note();
        assert_eq!(note.body, "It was the comma.");
        assert!(note.has_tag(REFLECTED_TAG));
    }

    #[test]
    fn a_new_text_is_not_reflected_yet() {
        let fixture = Fixture::new();
        fixture.capture(
            &session(
                "fix the parser",
                "half of it is fixed, since the login was slow",
            ),
            "precompact",
        );
        let path = fixture.notes.find(NoteId::of_session("s")).unwrap();
        fixture
            .notes
            .update(&fixture.notes.lock().unwrap(), path, |note| {
                note.add_tags(["reflected"])
            })
            .unwrap();
        fixture.capture(
            &session(
                "fix the parser",
                "half of it is fixed, since the login was slow",
            ),
            "session-end",
        );
        assert!(fixture.note().has_tag("reflected"));
        fixture.capture(
            &session(
                "fix the parser",
                "all limits are in, because the login needs them",
            ),
            "session-end",
        );
        assert!(!fixture.note().has_tag("reflected"));
    }

    #[test]
    fn forgotten_stays_forgotten() {
        let fixture = Fixture::new();
        fixture.capture(
            &session(
                "fix the parser",
                "half of it is fixed, since the login was slow",
            ),
            "precompact",
        );
        let path = fixture.notes.find(NoteId::of_session("s")).unwrap();
        let lock = fixture.notes.lock().unwrap();
        fixture.notes.forget(&lock, path, now()).unwrap();
        drop(lock);
        assert!(matches!(
            fixture.capture(
                &session(
                    "fix the parser",
                    "all limits are in, because the login needs them"
                ),
                "session-end"
            ),
            Outcome::Forgotten(_)
        ));
        assert_eq!(fixture.note().state, State::Forgotten);
        assert_eq!(fixture.note().title, "");
    }

    #[test]
    fn a_trivial_session_leaves_nothing() {
        let fixture = Fixture::new();
        assert!(matches!(
            fixture.capture(&SessionDigest::default(), "session-end"),
            Outcome::Trivial
        ));
        assert!(fixture.notes.list().notes.is_empty());
    }

    #[test]
    fn a_wrong_clock_in_the_transcript_does_not_win() {
        // CAP-13
        let fixture = Fixture::new();
        let future = now() + chrono::TimeDelta::days(4000);
        let digest = SessionDigest {
            first_at: Some(future),
            last_at: Some(future),
            ..session("fix the parser", "The parser reads dates again.")
        };
        fixture.capture(&digest, "session-end");
        assert_eq!(fixture.note().updated_at, timestamp(now()));
        assert_eq!(fixture.note().created_at, timestamp(now()));
    }

    #[test]
    fn without_a_journal_a_note_is_made_and_not_rewritten() {
        let fixture = Fixture::new();
        for outcome in [
            "half of it is fixed, since the login was slow",
            "all limits are in, because the login needs them",
        ] {
            capture(
                &fixture.notes,
                None,
                &session("fix the parser", outcome),
                &request("session-end"),
            )
            .unwrap();
        }
        assert!(
            fixture
                .note()
                .body
                .ends_with("half of it is fixed, since the login was slow")
        );
    }

    #[test]
    fn without_a_session_each_capture_is_a_note() {
        let fixture = Fixture::new();
        for _ in 0..2 {
            let request = Request {
                session: None,
                ..request("session-end")
            };
            capture(
                &fixture.notes,
                Some(&fixture.journal),
                &session("fix the parser", "The parser reads dates again."),
                &request,
            )
            .unwrap();
        }
        assert_eq!(fixture.notes.list().notes.len(), 2);
    }

    #[test]
    fn two_captures_at_once_leave_one_whole_note() {
        let fixture = Fixture::new();
        std::thread::scope(|scope| {
            for source in ["precompact", "session-end", "precompact", "session-end"] {
                let (notes, home) = (&fixture.notes, fixture.folder.path().join("store"));
                scope.spawn(move || {
                    let journal = Journal::open(&Home::new(home), TIMEOUT).unwrap();
                    let digest = session(
                        "fix the parser",
                        &format!("The parser reads the {source} again."),
                    );
                    capture(notes, Some(&journal), &digest, &request(source)).unwrap();
                });
            }
        });
        let note = fixture.note();
        assert!(note.has_tag("precompact") && note.has_tag("session-end"));
        assert_eq!(fixture.notes.list().notes.len(), 1);
    }
}
