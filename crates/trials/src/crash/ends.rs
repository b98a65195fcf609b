//! Interrupts the end of sessions: kills the client, or the SessionEnd hook between its steps.
//!
//! The next session's start must finish what was left. The session's one note must equal that of an
//! undisturbed session, except for the tag that says how it ended.

use std::{
    fs,
    path::Path,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use anamnesis_note::id::NoteId;
use anamnesis_store::fs::lock::{self, Lock, Subject};
use anamnesis_testkit::process::wait_until;

use super::{
    Checks,
    hooks::{Client, hook},
    records::Records,
    report,
    sandbox::Sandbox,
    script::{self, Step},
};
use crate::Result;

const TIMEOUT: Duration = Duration::from_secs(20);

/// The fixed clock of every process, so that notes do not differ by their times.
const NOW: &str = "2026-01-02T03:04:05Z";

/// Attempts to hit a moment that lasts milliseconds.
const TRIES: usize = 10;

const SESSION: &str = "halfway";

/// Runs the scenario.
pub(super) fn run(folder: &Path, binary: &Path, checks: &mut Checks) -> Result {
    // One user and one project with a store per case, so that the paths in the notes are equal.
    let store = |name: &str| Sandbox::with_store(folder, binary, &folder.join(name));

    let ended = Case::begin(store("ended")?)?;
    ended.end()?.wait()?;
    let whole = ended.note_after_the_next_start(checks)?;
    checks.that(whole.contains("- session-end\n"), || {
        format!("no tag says that it ended:\n{whole}")
    });

    // Another client replaces the one that was killed.
    let mut killed = Case::begin(store("killed")?)?;
    killed.client = Client::start()?;
    let lost = killed.note_after_the_next_start(checks)?;
    let expected = whole.replace("- session-end\n", "- lost\n");
    checks.that(lost == expected, || {
        format!("the note of a client that was killed is\n{lost}\nand not\n{expected}")
    });

    // The locked notes stop the hook after its state is stored and before a note is written.
    let case = Case::begin(store("no-note")?)?;
    let no_notes = case.lock(Subject::Notes)?;
    let mut hook = case.end()?;
    wait_until(TIMEOUT, "the stored end", || case.is_ended())?;
    hook.kill()?;
    hook.wait()?;
    checks.that(case.notes().is_empty(), || {
        "a note was written without the lock".to_owned()
    });
    drop(no_notes);
    let note = case.note_after_the_next_start(checks)?;
    checks.that(note == whole, || {
        format!("killed before the note was written, it became\n{note}")
    });

    let mut was_hit = false;
    for attempt in 0..TRIES {
        // The locked index stops the hook for a moment after its note is written.
        let case = Case::begin(store(&format!("not-told-{attempt}"))?)?;
        let no_index = case.lock(Subject::Index)?;
        let mut hook = case.end()?;
        let began = Instant::now();
        while case.notes().is_empty() && began.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(1));
        }
        hook.kill()?;
        hook.wait()?;
        was_hit = !case.records()?.is_noted(SESSION)?;
        drop(no_index);
        let note = case.note_after_the_next_start(checks)?;
        checks.that(note == whole, || {
            format!("killed after the note was written, it became\n{note}")
        });
        if was_hit {
            break;
        }
    }
    checks.that(was_hit, || {
        "no hook was killed between its note and the records".to_owned()
    });
    report(
        "sessions that ended half-way: a client killed after its second tool, a hook of the end killed before its note and after it",
    );
    Ok(())
}

/// A store in which a session has used its second tool.
struct Case {
    sandbox: Sandbox,
    client: Client,
    end: Step,
}

impl Case {
    fn begin(sandbox: Sandbox) -> Result<Self> {
        sandbox.transcript(SESSION, 2)?;
        let (begun, end) = script::short_session(&sandbox, SESSION);
        let case = Self {
            sandbox,
            client: Client::start()?,
            end,
        };
        for step in &begun {
            case.hook(step, &case.client)?.wait()?;
        }
        case.sandbox.wait_for_work()?;
        Ok(case)
    }

    /// Starts the session's SessionEnd hook.
    fn end(&self) -> Result<Child> {
        self.hook(&self.end, &self.client)
    }

    fn hook(&self, step: &Step, client: &Client) -> Result<Child> {
        let mut command = hook(&self.sandbox, step, client)?;
        Ok(command.env("ANAMNESIS_NOW", NOW).spawn()?)
    }

    fn lock(&self, subject: Subject) -> Result<Lock> {
        lock::acquire(self.sandbox.home(), subject, TIMEOUT)?
            .ok_or_else(|| "a lock of nobody's is not to be had".into())
    }

    fn records(&self) -> Result<Records> {
        Records::open(self.sandbox.home())?.ok_or_else(|| "there are no records".into())
    }

    fn is_ended(&self) -> Option<()> {
        let (state, _) = self.records().ok()?.end_of(SESSION).ok()??;
        (state == "completed").then_some(())
    }

    /// Returns the paths of the notes.
    fn notes(&self) -> Vec<String> {
        let notes = self.sandbox.notes();
        let found = notes.list().notes;
        found
            .iter()
            .filter_map(|(path, _)| notes.bytes(*path).ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    }

    /// Starts another session, waits for the work that this triggers, and returns the one note.
    fn note_after_the_next_start(&self, checks: &mut Checks) -> Result<String> {
        let client = Client::start()?;
        let next = script::session(&self.sandbox, "the next one").remove(0);
        let answer = self.hook(&next, &client)?.wait_with_output()?;
        checks.that(answer.status.success(), || {
            format!("the next start: {}", answer.status)
        });
        wait_until(TIMEOUT, "the note of the session", || {
            self.records().ok()?.is_noted(SESSION).ok()?.then_some(())
        })?;
        self.sandbox.wait_for_work()?;
        let log = fs::read_to_string(self.sandbox.home().log()).unwrap_or_default();
        checks.that(!log.contains("error"), || format!("the log says {log}"));
        let notes = self.notes();
        let [note] = notes.as_slice() else {
            return Err(format!("one session has {} notes", notes.len()).into());
        };
        checks.that(
            note.contains(&NoteId::of_session(SESSION).to_string()),
            || format!("this is no note of the session:\n{note}"),
        );
        Ok(note.clone())
    }
}
