//! The contents of the journal after events in any order.

use std::{cell::Cell, thread};

use anamnesis_session::event::{
    ClientProcess, FileAction, FileUse, Outcome, Privacy, RecordedEvent, SessionEvent, Speaker,
    Surroundings, ToolEvent,
};
use anamnesis_session::{
    prompt::{RawPrompt, SafePrompt},
    transcript::scheduled::TOOLS,
};
use proptest::prelude::*;
use serde_json::json;

use crate::{settings::config::Retention, spool::Spool};

use super::*;

const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn fresh() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path().join("store"));
    home.create().unwrap();
    (folder, home)
}

pub(super) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_323_045, 0).unwrap()
}

#[test]
fn a_journal_without_a_write_ahead_log_gets_one_when_it_is_opened() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    assert_eq!(journal.log_mode().unwrap(), "wal");
    let copy = home.root().join("copy.db");
    journal.copy_to(&copy).unwrap();
    drop(journal);
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(home.root().join(format!("journal.db{suffix}")));
    }
    fs::rename(&copy, home.journal()).unwrap();
    let reader = Journal::open_to_read(&home, TIMEOUT).unwrap().unwrap();
    assert_eq!(reader.log_mode().unwrap(), "delete");
    drop(reader);
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    assert_eq!(journal.log_mode().unwrap(), "wal");
}

#[test]
fn thirty_two_at_once_on_no_journal_lose_nothing() {
    // SQL-06
    let (_folder, home) = fresh();
    thread::scope(|scope| {
        for number in 0..32 {
            let home = &home;
            scope.spawn(move || {
                let journal = Journal::open(home, TIMEOUT).unwrap();
                let record = started(&format!("s{number}"), "startup");
                journal
                    .in_transaction(|journal| {
                        journal.take(&record)?;
                        journal.hook_ran("SessionStart", Duration::from_millis(number), None, now())
                    })
                    .unwrap();
            });
        }
    });
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    let runs = journal.hook_runs(now()).unwrap();
    assert_eq!((runs[0].count, runs[0].today), (32, 32));
    assert_eq!((runs[0].median, runs[0].worst), (16_000, 31_000));
    assert_eq!(journal.sessions(Some("p"), 100).unwrap().len(), 32);
    assert_eq!(journal.log_mode().unwrap(), "wal");
    assert!(home.open_to_others().is_empty());
}

#[test]
fn a_newer_file_is_left_alone() {
    let (_folder, home) = fresh();
    drop(Journal::open(&home, TIMEOUT).unwrap());
    Connection::open(home.journal())
        .unwrap()
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    let newer = Journal::open(&home, TIMEOUT).unwrap_err();
    assert!(matches!(newer, Error::Newer(99)) && !newer.is_damage());
}

#[test]
fn a_file_that_another_process_locks_is_busy_and_not_damaged() {
    let (_folder, home) = fresh();
    let other = Connection::open(home.journal()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = Journal::open(&home, Duration::ZERO).unwrap_err();
    assert!(error.is_busy() && !error.is_damage(), "{error}");
}

#[test]
fn a_long_log_is_folded_in() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    assert!(!journal.has_long_log());
    for number in 0..300 {
        journal.set_meta("text", &number.to_string()).unwrap();
    }
    assert!(journal.has_long_log());
    journal.checkpoint().unwrap();
    assert!(!journal.has_long_log());
}

#[test]
fn a_failed_group_of_writes_leaves_nothing() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    let result: Result<(), Error> = journal.in_transaction(|journal| {
        journal.set_meta("a", "1")?;
        Err(Error::Locked)
    });
    assert!(result.is_err());
    assert_eq!(journal.meta("a").unwrap(), None);
    journal
        .in_transaction(|journal| journal.set_meta("a", "2"))
        .unwrap();
    assert_eq!(journal.meta("a").unwrap().as_deref(), Some("2"));
}

#[test]
fn forgotten_texts_are_known_by_a_hash_of_this_machine() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    let note = NoteId::of_session("x");
    journal
        .forgot(note, "Deploys go\nthrough Jenkins", now())
        .unwrap();
    assert_eq!(
        journal
            .forgotten_at(" deploys go through  jenkins ")
            .unwrap(),
        Some(now().timestamp_millis())
    );
    assert_eq!(journal.forgotten_at("other").unwrap(), None);
    assert_eq!(journal.forgotten_at(" ").unwrap(), None);
    journal.remembered(note).unwrap();
    assert_eq!(
        journal.forgotten_at("deploys go through jenkins").unwrap(),
        None
    );
}

#[test]
fn bodies_of_capture_are_known() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    journal.session_body_written("s", "one").unwrap();
    journal.session_body_written("s", "two").unwrap();
    assert!(journal.is_session_body("s", "one").unwrap());
    assert!(journal.is_session_body("s", "two").unwrap());
    assert!(!journal.is_session_body("s", "edited").unwrap());
    assert!(!journal.is_session_body("t", "one").unwrap());
}

#[test]
fn the_last_hundred_runs_of_a_hook_are_told_of() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    for run in 0..350 {
        let error = (run == 300).then_some("broke");
        let took = Duration::from_micros(run);
        journal.hook_ran("Stop", took, error, now()).unwrap();
    }
    let runs = journal.hook_runs(now()).unwrap();
    assert_eq!((runs[0].count, runs[0].today), (100, 350));
    assert_eq!((runs[0].median, runs[0].worst), (300, 349));
    let (error, _) = runs[0].last_error.clone().unwrap();
    assert_eq!((error.as_str(), runs[0].is_failing), ("broke", false));
    let tomorrow = now() + Duration::from_secs(24 * 60 * 60);
    assert_eq!(journal.hook_runs(tomorrow).unwrap()[0].today, 0);
}

/// An event of a session in the project `p`.
fn record(session: &str, what: RecordedEvent) -> SessionEvent {
    SessionEvent {
        session: session.to_owned(),
        at: now().timestamp_millis(),
        prompt_id: Some("p-1".to_owned()),
        agent: None,
        surroundings: Surroundings {
            project: Some("p".to_owned()),
            folder: Some("/w".to_owned()),
            ..Surroundings::default()
        },
        private: false,
        echoes: Vec::new(),
        what,
        unmasked: Vec::new(),
    }
}

pub(crate) fn started(session: &str, source: &str) -> SessionEvent {
    record(
        session,
        RecordedEvent::Started {
            source: source.to_owned(),
            model: None,
        },
    )
}

pub(super) fn prompted(session: &str, text: &str) -> SessionEvent {
    // Without a text, all of it is private.
    let text = Some(text).filter(|text| !text.is_empty());
    let raw = RawPrompt::new(text.unwrap_or("<private>x"));
    let prompt = SafePrompt::new(&raw, Some(&PrivateTokens::default()));
    record(session, RecordedEvent::Prompted(prompt.value))
}

pub(super) fn event(id: &str, tool: &str, path: &str) -> ToolEvent {
    ToolEvent {
        id: id.to_owned(),
        tool: tool.to_owned(),
        input: Some(json!({"file_path": path}).into()),
        response: Some(json!({"type": "update"}).into()),
        outcome: Outcome::Ok,
        error: None,
        duration_ms: Some(3),
        files: vec![FileUse {
            path: path.to_owned(),
            action: FileAction::Edited,
        }],
        agent: None,
        is_from_batch: false,
        many_tags: false,
    }
}

pub(super) fn used(session: &str, event: ToolEvent) -> SessionEvent {
    record(session, RecordedEvent::Used(vec![event]))
}

fn spoke(session: &str, text: &str) -> SessionEvent {
    record(
        session,
        RecordedEvent::Spoke {
            speaker: Speaker::Main,
            text: Some(text.to_owned()).filter(|text| !text.is_empty()),
        },
    )
}

pub(super) fn ended(session: &str, reason: &str) -> SessionEvent {
    record(
        session,
        RecordedEvent::Ended {
            reason: reason.to_owned(),
        },
    )
}

pub(super) fn under(prompt: &str, record: SessionEvent) -> SessionEvent {
    SessionEvent {
        prompt_id: Some(prompt.to_owned()),
        ..record
    }
}

pub(super) fn journal_with_session(session: &str) -> (tempfile::TempDir, Journal) {
    let (folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    journal.take(&started(session, "startup")).unwrap();
    (folder, journal)
}

pub(super) fn take(journal: &Journal, records: &[SessionEvent]) {
    for record in records {
        journal
            .in_transaction(|journal| journal.take(record))
            .unwrap();
    }
}

pub(super) fn count(journal: &Journal, query: &str) -> i64 {
    journal
        .connection
        .query_row(&format!("SELECT count(*) FROM {query}"), [], |row| {
            row.get(0)
        })
        .unwrap()
}

/// All rows of a session, without times and numbers that depend on arrival.
fn rows(journal: &Journal) -> Vec<String> {
    let tables = [
        "SELECT id || project || state || coalesce(end_reason, '') || prompts || tool_events || coalesce(first_prompt, '') FROM session",
        "SELECT session || id || number || kind || privacy || coalesce(text, '') || suppressed FROM prompt",
        "SELECT session || id || coalesce(prompt, '-') || tool || outcome || input || response FROM tool_event",
        "SELECT t.id || path || action FROM file_use JOIN tool_event t ON t.number = event",
        "SELECT session || prompt_id || speaker || text FROM turn_end",
        "SELECT session || maker || up_to || body FROM summary",
        "SELECT session || hash FROM observation",
    ];
    let mut rows = Vec::new();
    for table in tables {
        let mut statement = journal.connection.prepare(table).unwrap();
        let mut found: Vec<String> = statement
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        found.sort();
        rows.push(table.split_whitespace().last().unwrap().to_owned());
        rows.extend(found);
    }
    rows
}

/// A session with a prompt, three tool calls and an answer.
pub(super) fn session_of(id: &str) -> Vec<SessionEvent> {
    vec![
        started(id, "startup"),
        prompted(id, "Add limits to the login"),
        used(id, event("t1", "Edit", "src/a.rs")),
        used(id, event("t2", "Edit", "src/a.rs")),
        used(id, event("t3", "Read", "src/a.rs")),
        spoke(id, "Limits are in. Next: the cart."),
        ended(id, "other"),
    ]
}

#[test]
fn a_session_has_each_row_once() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    take(&journal, &session_of("s"));
    let session = journal.session("s").unwrap().unwrap();
    assert!(session.is_completed());
    assert_eq!((session.prompts, session.tool_events), (1, 3));
    assert_eq!(session.end_reason.as_deref(), Some("other"));
    let summary = journal.summary("s").unwrap().unwrap();
    assert_eq!(summary.request, "Add limits to the login");
    assert_eq!(summary.next_steps, ["the cart."]);
    let digest = journal.session_digest("s").unwrap().unwrap();
    assert_eq!(digest.files, ["src/a.rs"]);
    assert_eq!(digest.outcome(), Some("Limits are in. Next: the cart."));
}

/// A command that passed.
fn ran(id: &str, command: &str, output: &str) -> ToolEvent {
    ToolEvent {
        input: Some(json!({ "command": command }).into()),
        response: Some(json!({ "stdout": output }).into()),
        files: Vec::new(),
        ..event(id, "Bash", "")
    }
}

#[test]
fn commits_that_were_taken_back_are_not_told() {
    let commits = |taken_back: &[(&str, &str)]| {
        let (_folder, journal) = journal_with_session("s");
        let committed = [
            ("git commit -m x", "[main 1a2b3c4] Read the port"),
            ("git commit -m y", "[main 2b3c4d5] Cache the report"),
        ];
        for (number, (command, output)) in committed.iter().chain(taken_back).enumerate() {
            take(
                &journal,
                &[used("s", ran(&format!("t{number}"), command, output))],
            );
        }
        take(
            &journal,
            &[prompted("s", "Cache the report"), ended("s", "other")],
        );
        let digest = journal.session_digest("s").unwrap().unwrap();
        digest.declared.commits.len()
    };
    assert_eq!(commits(&[]), 2);
    assert_eq!(
        commits(&[("git reset --hard HEAD~1", "HEAD is now at 1a2b3c4")]),
        1
    );
    let deleted = ("git branch -D x", "Deleted branch x (was 2b3c4d5).");
    assert_eq!(commits(&[deleted]), 1);
    assert_eq!(commits(&[("git merge x", "Fast-forward"), deleted]), 2);
    let reverted = (
        "git revert --no-edit HEAD~1",
        "[main 3c4d5e6] Revert \"Read the port\"",
    );
    assert_eq!(commits(&[reverted, ("git reset --hard HEAD~2", "")]), 0);
}

#[test]
fn a_prompt_after_a_failure_says_that_it_is_over() {
    let failing = |first: &str, second: &str| {
        let (_folder, journal) = journal_with_session("s");
        let fails = ToolEvent {
            outcome: Outcome::Failed,
            error: Some("Exit code 1\nerror: total is 0".to_owned()),
            ..ran("t1", "npm test", "")
        };
        let records = [
            prompted("s", first),
            used("s", fails),
            prompted("s", second),
        ];
        for (record, seconds) in records.into_iter().zip(0..) {
            let at = record.at + seconds * 1000;
            let prompt_id = Some(format!("p-{}", seconds / 2));
            let record = SessionEvent {
                at,
                prompt_id,
                ..record
            };
            take(&journal, &[record]);
        }
        take(&journal, &[ended("s", "other")]);
        journal.session_digest("s").unwrap().unwrap().failing.len()
    };
    assert_eq!(failing("fix the cart", "all tests pass now"), 0);
    assert_eq!(failing("all tests pass now", "fix the cart"), 1);
}

#[test]
fn a_session_that_removed_all_it_made_is_undone() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    let mut made = event("t1", "Write", "docs/geese.md");
    made.files[0].action = FileAction::Created;
    let removal = ToolEvent {
        input: Some(json!({"command": "rm docs/geese.md"}).into()),
        files: Vec::new(),
        ..event("t2", "Bash", "")
    };
    let made = [
        started("s", "startup"),
        prompted("s", "write a file about geese"),
        used("s", made),
    ];
    take(&journal, &made);
    let digest = || journal.session_digest("s").unwrap().unwrap();
    assert_eq!(
        (digest().files, digest().is_undone),
        (vec!["docs/geese.md".to_owned()], false)
    );
    take(&journal, &[used("s", removal)]);
    assert_eq!((digest().files, digest().is_undone), (Vec::new(), true));
}

proptest! {
    // Each case creates two databases.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_order_and_any_repetition_give_the_same_rows(
        order in Just((1..7_usize).collect::<Vec<_>>()).prop_shuffle(),
        again in prop::collection::vec(0..7_usize, 0..6),
    ) {
        let (_folder, home) = fresh();
        let journal = Journal::open(&home, TIMEOUT).unwrap();
        let records = session_of("s");
        take(&journal, &records);
        let expected = rows(&journal);
        let (_folder, home) = fresh();
        let journal = Journal::open(&home, TIMEOUT).unwrap();
        take(&journal, &records[..1]);
        for index in order {
            take(&journal, &records[index..=index]);
        }
        for index in again {
            take(&journal, &records[index..=index]);
        }
        // A prompt reopens a session; a record cannot undo its end.
        take(&journal, &records[6..]);
        prop_assert_eq!(rows(&journal), expected);
    }
}

#[test]
fn a_prompt_that_is_taken_twice_does_not_open_its_ended_session() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    let records = session_of("s");
    take(&journal, &records);
    let before = rows(&journal);
    assert!(journal.session("s").unwrap().unwrap().is_completed());
    // As a hook and the deferred process store the same spool record at once.
    for record in &records[1..] {
        take(&journal, std::slice::from_ref(record));
        assert_eq!(rows(&journal), before);
    }
}

#[test]
fn parallel_prompts_are_numbered_without_a_gap() {
    let (_folder, home) = fresh();
    drop(Journal::open(&home, TIMEOUT).unwrap());
    thread::scope(|scope| {
        for number in 0..16 {
            let home = &home;
            scope.spawn(move || {
                let journal = Journal::open(home, TIMEOUT).unwrap();
                let text = if number % 3 == 0 { "" } else { "text" };
                let prompt = under(&format!("p-{number}"), prompted("s", text));
                journal
                    .in_transaction(|journal| journal.take(&prompt))
                    .unwrap();
            });
        }
    });
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    let numbers: Vec<i64> = journal
        .connection
        .prepare("SELECT number FROM prompt ORDER BY number")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(numbers, (1..=16).collect::<Vec<i64>>());
}

#[test]
fn prompts_without_an_id_are_told_by_text_and_time() {
    let (_folder, journal) = journal_with_session("s");
    let prompt = |text: &str, at: i64| SessionEvent {
        prompt_id: None,
        at,
        ..prompted("s", text)
    };
    take(
        &journal,
        &[
            prompt("one", 0),
            prompt("one", 9_999),
            prompt("one", 20_000),
            prompt("two", 20_001),
        ],
    );
    assert_eq!(count(&journal, "prompt"), 3);
}

#[test]
fn what_happens_under_a_private_prompt_is_counted_and_not_stored() {
    let (_folder, journal) = journal_with_session("s");
    let private = [
        under("p-1", prompted("s", "")),
        under("p-1", used("s", event("t1", "Edit", "secret"))),
        under("p-1", spoke("s", "done with the secret")),
    ];
    take(&journal, &private);
    take(&journal, &private);
    take(
        &journal,
        &[
            under("p-2", prompted("s", "in the open")),
            under("p-2", used("s", event("t2", "Edit", "open.rs"))),
        ],
    );
    assert_eq!(
        count(
            &journal,
            "prompt WHERE number = 1 AND privacy = 'full' AND text IS NULL AND suppressed = 2"
        ),
        1
    );
    assert_eq!(count(&journal, "tool_event"), 1);
    assert_eq!(count(&journal, "tool_event WHERE prompt = 2"), 1);
    assert_eq!(count(&journal, "turn_end"), 0);
    let session = journal.session("s").unwrap().unwrap();
    assert_eq!(session.first_prompt.as_deref(), Some("in the open"));
}

#[test]
fn events_that_came_before_their_private_prompt_are_taken_back() {
    let (_folder, journal) = journal_with_session("s");
    take(
        &journal,
        &[
            used("s", event("t1", "Edit", "secret")),
            spoke("s", "the secret is in"),
        ],
    );
    assert_eq!(
        journal.session_digest("s").unwrap().unwrap().files,
        Vec::<String>::new()
    );
    take(&journal, &[prompted("s", "")]);
    assert_eq!(count(&journal, "tool_event"), 0);
    assert_eq!(count(&journal, "file_use"), 0);
    assert_eq!(count(&journal, "turn_end"), 0);
    assert_eq!(count(&journal, "prompt WHERE suppressed = 2"), 1);
}

#[test]
fn events_of_an_unknown_prompt_count_once_it_is_known_or_over() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    take(&journal, &[used("s", event("t1", "Edit", "a.rs"))]);
    assert_eq!(journal.session("s").unwrap().unwrap().state, "active");
    assert_eq!(count(&journal, "tool_event WHERE prompt IS NULL"), 1);
    assert!(
        journal
            .session_digest("s")
            .unwrap()
            .unwrap()
            .files
            .is_empty()
    );
    take(&journal, &[prompted("s", "Edit a")]);
    assert_eq!(count(&journal, "tool_event WHERE prompt = 1"), 1);
    assert_eq!(
        journal.session_digest("s").unwrap().unwrap().files,
        ["a.rs"]
    );

    take(
        &journal,
        &[used("t", event("t1", "Edit", "b.rs")), ended("t", "other")],
    );
    assert_eq!(
        journal.session_digest("t").unwrap().unwrap().files,
        ["b.rs"]
    );
}

#[test]
fn the_later_payload_of_a_tools_run_wins() {
    let (_folder, journal) = journal_with_session("s");
    let failed = ToolEvent {
        outcome: Outcome::Failed,
        error: Some("Exit code 1".to_owned()),
        ..event("t1", "Bash", "a")
    };
    take(
        &journal,
        &[
            used("s", failed.clone()),
            used("s", event("t1", "Bash", "a")),
        ],
    );
    assert_eq!(
        count(
            &journal,
            "tool_event WHERE outcome = 'ok' AND error IS NULL"
        ),
        1
    );
    take(&journal, &[used("s", failed)]);
    assert_eq!(count(&journal, "tool_event WHERE outcome = 'failed'"), 1);
    assert_eq!(count(&journal, "tool_event"), 1);
}

#[test]
fn a_batch_tells_only_what_no_other_event_told() {
    // In either order.
    let from_batch = ToolEvent {
        is_from_batch: true,
        outcome: Outcome::Failed,
        ..event("t1", "Edit", "a.rs")
    };
    for order in [[0, 1], [1, 0]] {
        let (_folder, journal) = journal_with_session("s");
        let events = [event("t1", "Edit", "a.rs"), from_batch.clone()];
        for index in order {
            take(&journal, &[used("s", events[index].clone())]);
        }
        assert_eq!(
            count(
                &journal,
                "tool_event WHERE outcome = 'ok' AND is_from_batch = 0"
            ),
            1
        );
        assert_eq!(count(&journal, "tool_event"), 1);
    }
}

#[test]
fn a_long_session_keeps_less_of_each_event() {
    let (_folder, journal) = journal_with_session("s");
    journal
        .connection
        .execute_batch("UPDATE session SET tool_events = 4999")
        .unwrap();
    take(
        &journal,
        &[
            prompted("s", "Go"),
            used("s", event("t1", "Edit", "a.rs")),
            used("s", event("t2", "Edit", "b.rs")),
        ],
    );
    assert_eq!(count(&journal, "tool_event WHERE input IS NOT NULL"), 1);
    assert_eq!(
        count(&journal, "tool_event WHERE id = 't2' AND input IS NULL"),
        1
    );
    let digest = journal.session_digest("s").unwrap().unwrap();
    assert_eq!(digest.files, ["a.rs", "b.rs"]);
}

#[test]
fn a_turn_has_one_end_for_each_text() {
    let (_folder, journal) = journal_with_session("s");
    take(&journal, &[prompted("s", "Go"), spoke("s", "")]);
    assert_eq!(count(&journal, "turn_end"), 0);
    take(
        &journal,
        &[spoke("s", "one"), spoke("s", "one"), spoke("s", "two")],
    );
    assert_eq!(count(&journal, "turn_end"), 2);
    take(
        &journal,
        &[
            used("s", event("t1", "Edit", "a")),
            spoke("s", ""),
            spoke("s", ""),
        ],
    );
    assert_eq!(count(&journal, "turn_end"), 3);
}

#[test]
fn what_is_answered_to_our_own_command_is_no_outcome() {
    let (_folder, journal) = journal_with_session("s");
    let of_turn = |turn: i64, record: SessionEvent| SessionEvent {
        prompt_id: Some(format!("p-{turn}")),
        at: record.at + turn,
        ..record
    };
    let records = [
        of_turn(1, prompted("s", "Fix the price")),
        of_turn(1, spoke("s", "The price is in cents now.")),
        of_turn(2, prompted("s", "/anamnesis:memory-open")),
        of_turn(2, spoke("s", "The page is open.")),
    ];
    take(&journal, &records);
    let digest = journal.session_digest("s").unwrap().unwrap();
    assert_eq!(digest.outcome(), Some("The price is in cents now."));
    assert_eq!(journal.unanswered_since("s").unwrap(), None);
}

#[test]
fn states_follow_the_events() {
    let (_folder, journal) = journal_with_session("s");
    let state = || journal.session("s").unwrap().unwrap().state;
    assert_eq!(state(), "initialized");
    take(&journal, &[prompted("s", "Go")]);
    assert_eq!(state(), "active");
    take(&journal, &[spoke("s", "Done."), ended("s", "other")]);
    assert_eq!(state(), "completed");
    take(
        &journal,
        &[
            used("s", event("late", "Edit", "a")),
            started("s", "startup"),
        ],
    );
    assert_eq!(state(), "completed");
    take(&journal, &[started("s", "resume")]);
    assert_eq!(state(), "active");
    take(
        &journal,
        &[ended("s", "other"), under("p-2", prompted("s", "More"))],
    );
    assert_eq!(state(), "active");
    let session = journal.session("s").unwrap().unwrap();
    assert_eq!(
        (session.ended_at, session.end_reason, session.prompts),
        (None, None, 2)
    );
}

#[test]
fn a_client_of_many_sessions_is_asked_after_once() {
    let (_folder, journal) = journal_with_session("one");
    for id in ["one", "two", "three"] {
        let mut record = started(id, "startup");
        record.surroundings.client = Some(ClientProcess {
            id: 7,
            started: Some(3),
        });
        take(&journal, &[record]);
    }
    let asked = Cell::new(0);
    let is_running = |_| {
        asked.set(asked.get() + 1);
        Some(true)
    };
    let at = now().timestamp_millis();
    assert!(!journal.has_lost_sessions(at, is_running).unwrap());
    assert_eq!(asked.get(), 1);
}

#[test]
fn a_session_is_lost_with_its_client_or_by_its_silence() {
    let (_folder, journal) = journal_with_session("known");
    let client = ClientProcess {
        id: 7,
        started: Some(3),
    };
    let mut record = started("known", "startup");
    record.surroundings.client = Some(client);
    take(
        &journal,
        &[
            record,
            started("unknown", "startup"),
            prompted("known", "Go"),
        ],
    );
    let at = now().timestamp_millis();
    let lost = |now: i64, is_running: Option<bool>| -> Vec<String> {
        let lost = journal.lost_sessions(now, |process| {
            assert_eq!(process, client);
            is_running
        });
        let lost: Vec<String> = lost
            .unwrap()
            .into_iter()
            .map(|session| session.id)
            .collect();
        let any = journal.has_lost_sessions(now, |_| is_running);
        assert_eq!(any.unwrap(), !lost.is_empty());
        lost
    };
    assert_eq!(lost(at, Some(true)), Vec::<String>::new());
    assert_eq!(lost(at, Some(false)), ["known"]);
    let half_an_hour = 30 * 60 * 1000;
    assert_eq!(lost(at + half_an_hour - 1, None), Vec::<String>::new());
    assert_eq!(lost(at + half_an_hour, None).len(), 2);
    assert_eq!(lost(at + half_an_hour, Some(true)), ["unknown"]);

    let session = journal.session("known").unwrap().unwrap();
    journal.give_up(&session, at + 5).unwrap();
    let given_up = journal.session("known").unwrap().unwrap();
    assert_eq!(given_up.end_reason.as_deref(), Some(LOST));
    assert_eq!(given_up.ended_at, Some(at));
    assert_eq!(journal.lease(at + 5).unwrap().unwrap().session, "known");
    // A long tool call, not a lost session.
    take(&journal, &[used("known", event("t1", "Bash", "a"))]);
    assert!(!journal.session("known").unwrap().unwrap().is_completed());
}

#[test]
fn a_session_that_stays_open_gets_a_note_every_quarter_of_an_hour() {
    let (_folder, journal) = journal_with_session("s");
    let at = now().timestamp_millis();
    take(&journal, &[prompted("s", "Go")]);
    let stop = |text: &str, at: i64| {
        let record = SessionEvent {
            at,
            ..spoke("s", text)
        };
        journal
            .in_transaction(|journal| journal.take(&record))
            .unwrap()
    };
    assert!(stop("one", at));
    let change = journal.session("s").unwrap().unwrap().change;
    journal.noted("s", change, at).unwrap();
    assert!(!stop("two", at + 15 * 60 * 1000));
    assert!(stop("three", at + 15 * 60 * 1000 + 1));
}

#[test]
fn an_answer_that_arrives_after_the_end_gets_into_the_note() {
    let (_folder, journal) = journal_with_session("s");
    let at = now().timestamp_millis();
    take(&journal, &[prompted("s", "Go"), ended("s", "other")]);
    let change = journal.session("s").unwrap().unwrap().change;
    journal.noted("s", change, at).unwrap();
    let has_job = journal
        .in_transaction(|journal| journal.take(&spoke("s", "The limits are in.")))
        .unwrap();
    assert!(has_job);
}

#[test]
fn a_compacted_session_whose_beginning_only_its_transcript_has_gets_a_note() {
    let (_folder, journal) = journal_with_session("s");
    let compacted = SessionEvent {
        what: RecordedEvent::Compacting,
        ..spoke("late", "")
    };
    let taken = || {
        journal
            .in_transaction(|journal| journal.take(&compacted))
            .unwrap()
    };
    assert!(taken());
    let change = journal.session("late").unwrap().unwrap().change;
    journal.noted("late", change, compacted.at).unwrap();
    assert!(!taken());
}

#[test]
fn a_session_whose_note_is_behind_it_is_queued_again() {
    let (_folder, journal) = journal_with_session("s");
    let at = now().timestamp_millis();
    take(&journal, &[prompted("s", "Go"), ended("s", "other")]);
    let change = journal.session("s").unwrap().unwrap().change;
    journal.noted("s", change, at).unwrap();
    assert_eq!(journal.queue_due_notes(at).unwrap(), 0);
    // A slower process wrote an older state last, and the job of the newer one is done.
    let older = "UPDATE session SET noted = change - 1; DELETE FROM job;";
    journal.connection.execute_batch(older).unwrap();
    assert_eq!(journal.queue_due_notes(at).unwrap(), 1);
    assert_eq!(count(&journal, "job WHERE kind = 'note'"), 1);
}

#[test]
fn a_record_that_the_tables_refuse_stands_in_nobodys_way() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    journal
        .connection
        .execute_batch(
            "CREATE TRIGGER refuse BEFORE INSERT ON prompt WHEN new.text = 'no'
             BEGIN SELECT raise(ABORT, 'refused'); END",
        )
        .unwrap();
    let spool = Spool::new(&home);
    for record in [
        under("p-1", prompted("s", "one")),
        under("p-2", prompted("s", "no")),
        under("p-3", prompted("s", "two")),
    ] {
        spool.keep(&record).unwrap();
    }
    let mut waiting = spool.waiting(50);
    journal
        .in_transaction(|journal| journal.take_waiting(&mut waiting))
        .unwrap();
    for waiting in &waiting {
        spool.put_away(waiting).unwrap();
    }
    assert_eq!(count(&journal, "prompt"), 2);
    assert_eq!(journal.session("s").unwrap().unwrap().prompts, 2);
    assert!(spool.is_empty());
    assert_eq!(spool.unreadable().len(), 1);
}

#[test]
fn what_a_client_scheduled_is_known_after_its_session_was_cleared() {
    // HOOK-15
    let (_folder, journal) = journal_with_session("z");
    let start = |session: &str, source: &str, id: i64| {
        let mut start = started(session, source);
        let started = Some(7).filter(|_| id < 3);
        start.surroundings.client = Some(ClientProcess { id, started });
        // Start times are unknown here, and the last session is of a day later.
        start.at += i64::from(session == "g") * 25 * 60 * 60 * 1000;
        journal.take(&start).unwrap();
    };
    start("a", "startup", 1);
    start("old", "startup", 3);
    let task = RecordedEvent::Delegated {
        id: "t".to_owned(),
        kind: TOOLS[0].to_owned(),
        prompt: "/memory-remember Push".to_owned(),
    };
    for session in ["a", "old"] {
        journal.take(&record(session, task.clone())).unwrap();
    }
    for (session, source, process, known) in [
        ("b", "clear", 1, 1),
        ("c", "fork", 1, 1),
        ("d", "startup", 1, 0),
        ("e", "clear", 2, 0),
        ("f", "clear", 3, 1),
        ("g", "clear", 3, 0),
    ] {
        start(session, source, process);
        let prompts = journal.scheduled_prompts(session).unwrap();
        assert_eq!(prompts.len(), known, "{session} {source}");
    }
}

#[test]
fn a_forgotten_session_leaves_no_row() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    take(&journal, &session_of("s"));
    take(&journal, &session_of("kept"));
    assert!(journal.forget_session("s").unwrap());
    assert!(!journal.forget_session("s").unwrap());
    for table in [
        "prompt",
        "tool_event",
        "file_use",
        "turn_end",
        "summary",
        "observation",
        "job",
        "suppressed",
    ] {
        assert_eq!(
            count(&journal, &format!("{table} WHERE session = 's'")),
            0,
            "{table}"
        );
    }
    assert_eq!(count(&journal, "tool_event"), 3);
}

#[test]
fn retention_lets_go_what_is_past_its_term() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    take(&journal, &session_of("s"));
    take(
        &journal,
        &[
            started("empty", "startup"),
            prompted("open", "Go"),
            used("open", event("t1", "Edit", "a")),
        ],
    );
    let at = now().timestamp_millis();
    let day = 24 * 60 * 60 * 1000;
    let retention = Retention::default();
    assert_eq!(journal.prune(&retention, at + day).unwrap().rows, 0);
    assert_eq!(journal.prune(&retention, at + 2 * day).unwrap().rows, 1);
    assert!(journal.session("empty").unwrap().is_none());
    let kept = Retention {
        records_days: 0,
        ..retention
    };
    assert_eq!(journal.prune(&kept, at + 400 * day).unwrap().rows, 0);
    assert!(journal.prune(&retention, at + 31 * day).unwrap().rows > 0);
    assert_eq!(count(&journal, "tool_event"), 1);
    assert_eq!(count(&journal, "prompt"), 1);
    let session = journal.session("s").unwrap().unwrap();
    assert!(session.is_pruned);
    // The rewritten note has the same content.
    let digest = journal.session_digest("s").unwrap().unwrap();
    assert_eq!(digest.ask(), Some("Add limits to the login"));
    assert_eq!(digest.files, ["src/a.rs"]);
}

/// A session of two prompts. The first has a subagent's task and a summary by the client.
fn session_of_two_prompts() -> Vec<SessionEvent> {
    let at = now().timestamp_millis();
    let later = |seconds: i64, prompt: &str, record: SessionEvent| SessionEvent {
        at: at + seconds * 1000,
        ..under(prompt, record)
    };
    let failed = ToolEvent {
        outcome: Outcome::Failed,
        error: Some("heron broke".to_owned()),
        ..event("t-1", "Bash", "heron.rs")
    };
    let task = RecordedEvent::Delegated {
        id: "t-2".to_owned(),
        kind: "Explore".to_owned(),
        prompt: "find the heron".to_owned(),
    };
    let summed_up = RecordedEvent::Spoke {
        speaker: Speaker::Compact,
        text: Some("the heron and the crane".to_owned()),
    };
    vec![
        started("s", "startup"),
        later(1, "p-1", prompted("s", "Feed the heron")),
        later(2, "p-1", used("s", failed)),
        later(3, "p-1", record("s", task)),
        later(4, "p-1", spoke("s", "The heron is fed.")),
        later(5, "p-2", prompted("s", "Feed the crane")),
        later(6, "p-2", used("s", event("t-3", "Edit", "crane.rs"))),
        later(7, "p-2", spoke("s", "The crane is fed.")),
        later(8, "p-2", record("s", summed_up)),
        later(9, "p-2", ended("s", "clear")),
    ]
}

#[test]
fn a_forgotten_prompt_leaves_no_word() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    take(&journal, &session_of_two_prompts());
    assert_eq!(journal.prompts("s").unwrap().len(), 2);
    assert_eq!(journal.forget_prompt("s", 7, 0).unwrap(), None);
    let forgotten = journal.forget_prompt("s", 1, 0).unwrap();
    let expected = ForgottenPrompt {
        tool_events: 1,
        // Its answer, and the client's summary after it.
        turn_ends: 2,
    };
    assert_eq!(forgotten, Some(expected));
    assert_eq!(journal.forget_prompt("s", 1, 0).unwrap(), None);
    // Late and repeated events do not restore it.
    take(&journal, &session_of_two_prompts());
    let contents = journal.contents("s").unwrap().unwrap();
    let text = format!("{contents:?}").to_lowercase();
    assert!(!text.contains("heron"), "{text}");
    let first = &contents.prompts[0];
    assert_eq!(
        (first.number, first.privacy, &first.text),
        (1, Privacy::Full, &None)
    );
    assert_eq!(contents.session.tool_events, 1);
    assert_eq!(
        contents.session.first_prompt.as_deref(),
        Some("Feed the crane")
    );
    assert_eq!(contents.events.len(), 1);
    assert_eq!(contents.turn_ends.len(), 1);
    let digest = journal.session_digest("s").unwrap().unwrap();
    assert_eq!(digest.files, ["crane.rs"]);
    assert_eq!(digest.failures, 0);
    assert!(journal.has_forgotten_prompt("s").unwrap());
    journal.forget_session("s").unwrap();
    assert!(!journal.has_forgotten_prompt("s").unwrap());
}

#[test]
fn a_prompt_without_an_id_is_forgotten_too() {
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    let records = session_of_two_prompts()
        .into_iter()
        .map(|record| SessionEvent {
            prompt_id: None,
            ..record
        });
    take(&journal, &records.collect::<Vec<_>>());
    journal.forget_prompt("s", 1, 0).unwrap().unwrap();
    let contents = journal.contents("s").unwrap().unwrap();
    let text = format!("{contents:?}").to_lowercase();
    assert!(!text.contains("heron"), "{text}");
    assert_eq!((contents.events.len(), contents.turn_ends.len()), (1, 1));
    assert_eq!(contents.turn_ends[0].prompt, Some(2));
}

#[test]
fn what_comes_after_a_forgotten_prompt_is_not_taken_for_what_is_gone() {
    // The numbers of deleted events are assigned again.
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    let mut records = session_of_two_prompts();
    records.truncate(8);
    take(&journal, &records);
    journal.forget_prompt("s", 2, 0).unwrap().unwrap();
    let created = |id: &str| {
        let mut event = event(id, "Write", &format!("{id}.rs"));
        event.files[0].action = FileAction::Created;
        under("p-3", used("s", event))
    };
    take(
        &journal,
        &[
            under("p-3", prompted("s", "Feed the stork")),
            created("t-7"),
            created("t-8"),
            under("p-3", spoke("s", "The stork is fed.")),
        ],
    );
    assert_eq!(journal.observations("s").unwrap().len(), 2);
    let contents = journal.contents("s").unwrap().unwrap();
    let last = contents.events.last().unwrap().number;
    let ends: Vec<i64> = contents
        .turn_ends
        .iter()
        .map(|end| end.after_event)
        .collect();
    assert_eq!(ends, [contents.events[0].number, last]);
}

#[test]
fn the_note_of_a_forgotten_prompt_is_made_again() {
    // If the process ends before it writes the note, the next one writes it.
    let (_folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    take(&journal, &session_of_two_prompts());
    let change = journal.session("s").unwrap().unwrap().change;
    journal.noted("s", change, 0).unwrap();
    while let Some(job) = journal.lease(i64::MAX / 2).unwrap() {
        journal.done(&job, 0).unwrap();
    }
    journal.forget_prompt("s", 1, 0).unwrap().unwrap();
    let job = journal.lease(i64::MAX / 2).unwrap().unwrap();
    assert_eq!((job.kind.as_str(), job.session.as_str()), (NOTE, "s"));
    assert!(job.up_to > change);
}
