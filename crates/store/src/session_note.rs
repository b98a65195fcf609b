//! The note of a session. It is updated as the session continues, and never overwrites a person's
//! edits.
//!
//! The note's id is derived from the session's id, so the end of a session, a compaction and a second
//! end after a resume write the same file. The text is replaced only while it is what capture wrote.
//! After an edit by a person, only tags are added.

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, Source, State, timestamp},
};
use anamnesis_session::session_note::{NoteText, SessionDigest, note_text};
use chrono::{DateTime, Utc};

use crate::{
    journal::{self, Journal, LOST},
    notes::{Error, NotePath, Notes, Stored},
};

/// The confidence of a session note: rules chose its words.
const CONFIDENCE: f64 = 0.6;

/// The tag of every session note.
const TAG: &str = "session";

/// The tags for the end of a session, of which a note has only the last one: a lost session may
/// continue, and a client may be gone before its end hook runs.
const ENDS: [&str; 2] = ["session-end", LOST];

/// The tag of a session note that a reflection has used.
const REFLECTED: &str = "reflected";

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

/// Writes or updates the note of a session.
///
/// Without the journal, a note can be created. An existing text is kept, because a person may have
/// changed it.
///
/// # Errors
/// The note on disk is unchanged.
pub fn capture(
    notes: &Notes,
    journal: Option<&Journal>,
    account: &SessionDigest,
    request: &Request<'_>,
) -> Result<Outcome, Error> {
    let NoteText::Note { title, body } = note_text(account) else {
        if account.is_undone {
            remove_own(notes, journal, request)?;
        }
        return Ok(Outcome::Trivial);
    };
    let id = request
        .session
        .map_or_else(|| NoteId::generate(request.now), NoteId::of_session);
    let text = own_text(&title, &body);
    let forgotten = match journal.map(|journal| journal.forgotten_at(&body)) {
        Some(Ok(at)) => at.is_some(),
        // If the journal cannot be read, the text may have been forgotten.
        Some(Err(_)) => return Err(Error::Locked),
        None => false,
    };
    // A time in the future would keep the note first for ever.
    let changed_at = account
        .last_at
        .map_or(request.now, |time| time.min(request.now));
    let lock = notes.lock()?;
    let keep_text = |session: &str| {
        // Before the file: see `Journal::session_body_written`.
        journal.is_some_and(|journal| journal.session_body_written(session, &text).is_ok())
    };
    let Some(path) = notes.find(id) else {
        if forgotten {
            return Ok(Outcome::Forgotten(id));
        }
        let created_at = account
            .first_at
            .map_or(changed_at, |time| time.min(changed_at));
        let mut note = Note {
            title,
            body,
            project: request.project.to_owned(),
            machine_id: request.machine_id.to_owned(),
            source: Source::SessionEnd,
            confidence: CONFIDENCE,
            session: request.session.map(str::to_owned),
            created_at: timestamp(created_at),
            updated_at: timestamp(changed_at),
            ..Note::new(id, NoteType::Episodic, request.now)
        };
        note.add_tags(std::iter::once(TAG).chain(request.source));
        // An unrecorded text would count as a person's from then on.
        if journal.is_some() && !request.session.is_none_or(keep_text) {
            return Err(Error::Locked);
        }
        return Ok(Outcome::Written(Box::new(notes.create(&lock, &note)?)));
    };
    let before = notes.read(path)?;
    if before.file.note().state == State::Forgotten {
        return Ok(Outcome::Forgotten(id));
    }
    let is_ours =
        |session| journal.is_some_and(|journal| is_own(journal, session, before.file.note()));
    let replace = request.session.is_some_and(is_ours) && request.session.is_some_and(keep_text);
    let after = notes.update(&lock, path, |note| {
        if replace && (note.title != title || note.body != body) {
            note.title = title;
            note.body = body;
            note.model = None;
            note.updated_at = timestamp(changed_at);
            // The reflection used an earlier text.
            note.tags.retain(|tag| tag != REFLECTED);
        }
        if let Some(end) = request.source.filter(|source| ENDS.contains(source)) {
            note.tags
                .retain(|tag| tag == end || !ENDS.contains(&tag.as_str()));
        }
        note.add_tags(std::iter::once(TAG).chain(request.source));
    })?;
    Ok(if after.stamp == before.stamp {
        Outcome::Unchanged(path)
    } else {
        Outcome::Written(Box::new(after))
    })
}

/// Removes the note of a session in which all that was made was removed again. A note that a person
/// changed, or that was distilled, is kept.
fn remove_own(
    notes: &Notes,
    journal: Option<&Journal>,
    request: &Request<'_>,
) -> Result<(), Error> {
    let (Some(session), Some(journal)) = (request.session, journal) else {
        return Ok(());
    };
    let lock = notes.lock()?;
    let Some(path) = notes.find(NoteId::of_session(session)) else {
        return Ok(());
    };
    let note = notes.read(path)?.note();
    if note.state == State::Active && !note.has_tag(REFLECTED) && is_own(journal, session, &note) {
        notes.remove(&lock, path)?;
    }
    Ok(())
}

/// Replaces a rule-made text with a model's. Returns whether it did. A note that a person changed, or
/// that was forgotten or distilled meanwhile, is kept.
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
        || before.has_tag(REFLECTED)
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

/// Tells whether a session's note has the text that capture wrote. Otherwise a person changed it.
pub fn is_own(journal: &Journal, session: &str, note: &Note) -> bool {
    journal
        .is_session_body(session, &own_text(&note.title, &note.body))
        .unwrap_or(false)
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

    use anamnesis_session::turn::Turn;

    use super::*;
    use crate::fs::home::Home;

    const PATIENCE: Duration = Duration::from_secs(5);

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
            let journal = Journal::open(&home, PATIENCE).unwrap();
            Self {
                folder,
                notes: Notes::new(home, PATIENCE),
                journal,
            }
        }

        fn capture(&self, account: &SessionDigest, source: &str) -> Outcome {
            capture(&self.notes, Some(&self.journal), account, &request(source)).unwrap()
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
            now: now(),
        }
    }

    fn session(ask: &str, outcome: &str) -> SessionDigest {
        SessionDigest {
            turns: vec![Turn {
                prompt: Some(ask.to_owned()),
                answer: Some(outcome.to_owned()),
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
        let account = session(
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
            fixture.capture(&account, source);
            assert_eq!(fixture.note().tags, tags, "{source}");
        }
    }

    #[test]
    fn a_session_that_undid_its_work_loses_its_note() {
        let fixture = Fixture::new();
        let made = session("write a file about geese", "Written.");
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
        let account = SessionDigest {
            first_at: Some(future),
            last_at: Some(future),
            ..session("fix the parser", "x")
        };
        fixture.capture(&account, "session-end");
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
                &session("fix the parser", "x"),
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
                    let journal = Journal::open(&Home::new(home), PATIENCE).unwrap();
                    let account = session("fix the parser", source);
                    capture(notes, Some(&journal), &account, &request(source)).unwrap();
                });
            }
        });
        let note = fixture.note();
        assert!(note.has_tag("precompact") && note.has_tag("session-end"));
        assert_eq!(fixture.notes.list().notes.len(), 1);
    }
}
