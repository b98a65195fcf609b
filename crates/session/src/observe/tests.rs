use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::turn::Turn;
use crate::{
    event::{Agent, FileUse},
    session_note::{NoteText, SessionDigest, fix_lines, note_text},
    summary::{next_steps, summarize},
};
use anamnesis_testkit::assert_linear;

fn event(tool: &str, input: Value, outcome: Outcome) -> ToolEvent {
    ToolEvent {
        id: String::new(),
        tool: tool.to_owned(),
        input: Some(input.into()),
        response: None,
        outcome,
        error: None,
        duration_ms: None,
        files: Vec::new(),
        agent: None,
        is_from_batch: false,
        many_tags: false,
    }
}

#[test]
fn a_refused_call_and_the_status_of_a_filter_are_no_failure() {
    let refused = "The user doesn't want to proceed with this tool use. The tool use was rejected.";
    let events = [
        ToolEvent {
            error: Some(refused.to_owned()),
            ..fail("cargo test", "")
        },
        fail("cargo test | grep -c warning", "0"),
    ];
    assert_eq!(checks(&events, &[], ""), Checks::default());
    let found = fail(
        "cargo test | grep -c warning",
        "test result: FAILED. 1 failed",
    );
    assert_eq!(checks(&[found], &[], "").failing.len(), 1);
}

fn pass(command: &str) -> ToolEvent {
    event("Bash", json!({ "command": command }), Outcome::Ok)
}

fn fail(command: &str, error: &str) -> ToolEvent {
    ToolEvent {
        error: Some(format!("Exit code 1\n{error}")),
        ..event("Bash", json!({ "command": command }), Outcome::Failed)
    }
}

fn touch(path: &str, action: FileAction) -> ToolEvent {
    let tool = match action {
        FileAction::Read => "Read",
        FileAction::Edited => "Edit",
        FileAction::Created => "Write",
    };
    let path = path.to_owned();
    ToolEvent {
        files: vec![FileUse { path, action }],
        ..event(tool, json!({}), Outcome::Ok)
    }
}

fn edit(path: &str) -> ToolEvent {
    touch(path, FileAction::Edited)
}

fn by(agent: &str, event: ToolEvent) -> ToolEvent {
    let (id, kind) = (agent.to_owned(), "general-purpose".to_owned());
    ToolEvent {
        agent: Some(Agent { id, kind }),
        ..event
    }
}

fn printed(response: Value, event: ToolEvent) -> ToolEvent {
    let response = Some(response.into());
    ToolEvent { response, ..event }
}

/// Numbers the events.
fn session(events: impl IntoIterator<Item = ToolEvent>) -> Vec<ToolEvent> {
    let events = events.into_iter().enumerate();
    events
        .map(|(index, event)| ToolEvent {
            id: format!("t{index}"),
            ..event
        })
        .collect()
}

fn titles(events: impl IntoIterator<Item = ToolEvent>) -> Vec<String> {
    let observed = observations(&session(events));
    let observations = observed.observations.into_iter();
    observations
        .map(|observation| format!("{}: {}", observation.kind.as_str(), observation.title))
        .collect()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

const NONE: [&str; 0] = [];

#[test]
fn what_failed_and_passes_after_an_edit_is_a_bugfix() {
    let events = session([
        fail(
            "cargo test cart",
            "error[E0425]: cannot find value `total` in this scope",
        ),
        touch("src/main.rs", FileAction::Read),
        edit("src/cart.rs"),
        fail("cd shop && cargo test cart", "error: mismatched sums"),
        edit("src/till.rs"),
        edit("src/cart.rs"),
        pass("cargo test cart 2>&1"),
    ]);
    let observed = observations(&events);
    insta::assert_snapshot!(json(&observed.observations), @r#"
    [
      {
        "kind": "bugfix",
        "title": "`cargo test cart` passes again after a change of src/cart.rs",
        "subtitle": "error[E0425]: cannot find value `total` in this scope",
        "narrative": "`cargo test cart` failed: error[E0425]: cannot find value `total` in this scope. It passed after a change of src/cart.rs.",
        "facts": [
          "error[E0425]: cannot find value `total` in this scope",
          "Changed src/cart.rs"
        ],
        "concepts": [
          "problem-solution"
        ],
        "files_read": [
          "src/main.rs"
        ],
        "files_modified": [
          "src/cart.rs"
        ],
        "events": [
          "t0",
          "t2",
          "t3"
        ],
        "error_signature": "error[e0425]: cannot find value 'total' in this scope"
      },
      {
        "kind": "bugfix",
        "title": "`cargo test cart` passes again after a change of src/till.rs and 1 more file",
        "subtitle": "error: mismatched sums",
        "narrative": "`cargo test cart` failed: error: mismatched sums. It passed after a change of src/till.rs and 1 more file.",
        "facts": [
          "error: mismatched sums",
          "Changed src/till.rs",
          "Changed src/cart.rs"
        ],
        "concepts": [
          "problem-solution"
        ],
        "files_read": [],
        "files_modified": [
          "src/till.rs",
          "src/cart.rs"
        ],
        "events": [
          "t3",
          "t4",
          "t5",
          "t6"
        ],
        "error_signature": "error: mismatched sums"
      }
    ]
    "#);
    assert_eq!(observed.settled, 7);
}

#[test]
fn no_bugfix() {
    let error = "error: no total";
    for events in [
        // Nothing was edited, before or after the last failure.
        vec![fail("cargo run", error), pass("cargo run")],
        vec![
            fail("cargo run", error),
            edit("src/a.rs"),
            fail("cargo run", error),
            pass("cargo run"),
        ],
        // Another command.
        vec![
            fail("cargo run", error),
            edit("src/a.rs"),
            pass("cargo build"),
        ],
        // It did not pass.
        vec![
            fail("cargo run", error),
            edit("src/a.rs"),
            event(
                "Bash",
                json!({ "command": "cargo run" }),
                Outcome::Interrupted,
            ),
        ],
        vec![
            fail("cargo run", error),
            edit("src/a.rs"),
            printed(json!({ "exit_code": 1 }), pass("cargo run")),
        ],
        vec![
            fail("cargo run", error),
            edit("src/a.rs"),
            printed(json!({ "backgroundTaskId": "b1" }), pass("cargo run")),
        ],
        vec![
            fail("cargo run", error),
            edit("src/a.rs"),
            pass("cargo run | tail"),
        ],
        // It did not fail.
        vec![
            event(
                "Bash",
                json!({ "command": "cargo run" }),
                Outcome::Interrupted,
            ),
            edit("src/a.rs"),
            pass("cargo run"),
        ],
        // The edit failed.
        vec![
            fail("cargo run", error),
            event("Edit", json!({}), Outcome::Failed),
            pass("cargo run"),
        ],
        // The command is not significant.
        vec![
            fail("grep total src", error),
            edit("src/a.rs"),
            pass("grep total src"),
        ],
        // Not a command.
        vec![
            event("Read", json!({ "command": "cargo run" }), Outcome::Failed),
            edit("src/a.rs"),
            event("Read", json!({ "command": "cargo run" }), Outcome::Ok),
        ],
    ] {
        assert_eq!(titles(events), NONE);
    }
}

#[test]
fn a_failure_is_seen_in_what_was_printed() {
    for (response, fixed) in [
        (
            json!({ "stdout": "test result: FAILED. 1 passed; 1 failed" }),
            true,
        ),
        (
            json!({ "stdout": "Tests:       1 failed, 2 passed, 3 total" }),
            true,
        ),
        (json!({ "bytes": 9, "tail": "FAILED (failures=1)" }), true),
        (json!("--- FAIL: TestCart"), true),
        (json!([{ "type": "text", "text": "error: no total" }]), true),
        (
            json!({ "stdout": "test result: ok. 3 passed; 0 failed" }),
            false,
        ),
        (json!({ "stdout": "" }), false),
    ] {
        let events = [
            printed(response.clone(), pass("cargo build | tail -n 20")),
            edit("src/a.rs"),
            pass("cargo build"),
        ];
        assert_eq!(titles(events).len(), usize::from(fixed), "{response}");
    }
}

#[test]
fn a_test_that_hides_its_end_passes_when_it_says_so() {
    for (output, passed) in [
        ("test result: ok. 3 passed; 0 failed; 0 ignored", true),
        ("===== 3 passed in 0.03s =====", true),
        ("Tests run: 3, Failures: 0, Errors: 0\nBUILD SUCCESS", true),
        ("ok  \texample.com/shop\t0.003s", true),
        ("  3 passing (12ms)", true),
        ("Tests run: 3, Failures: 1, Errors: 0", false),
        ("1 failing", false),
        ("", false),
    ] {
        let test = printed(json!({ "stdout": output }), pass("make test | tail"));
        let seen = titles([edit("src/a.rs"), test]);
        assert_eq!(seen.len(), usize::from(passed), "{output:?}: {seen:?}");
    }
}

#[test]
fn tests_that_pass_after_edits_are_a_change() {
    let seen = titles([
        pass("cargo test"),
        edit("src/a.rs"),
        edit("src/b.rs"),
        pass("cargo build"),
        pass("cargo test"),
        pass("cargo test"),
        edit("src/c.rs"),
        pass("cargo test"),
    ]);
    assert_eq!(
        seen,
        [
            "change: `cargo test` passes after a change of src/a.rs and 1 more file",
            "change: `cargo test` passes after a change of src/c.rs",
        ]
    );
}

#[test]
fn no_change_while_a_test_fails() {
    let seen = titles([
        fail("cargo test cart", "error: no total"),
        edit("src/a.rs"),
        pass("cargo test login"),
        edit("src/b.rs"),
        pass("cargo test"),
        pass("cargo test login"),
    ]);
    let title = "bugfix: `cargo test cart` passes again after a change of src/a.rs and 1 more file";
    assert_eq!(seen, [title]);
}

#[test]
fn files_that_are_made_are_features() {
    let made = |path: &str| touch(path, FileAction::Created);
    let failed = ToolEvent {
        outcome: Outcome::Failed,
        ..made("src/f.rs")
    };
    let seen = titles([
        made("src/a.rs"),
        made("src/b.rs"),
        made("/tmp/scratch.py"),
        made("../other/c.rs"),
        made("C:\\other\\d.rs"),
        edit("src/e.rs"),
        failed,
    ]);
    assert_eq!(
        seen,
        ["feature: New file src/a.rs", "feature: New file src/b.rs"]
    );
}

#[test]
fn a_workaround_is_a_discovery() {
    let events = session([
        fail("npm test", "npm error Missing script: \"test\""),
        pass("ls"),
        pass("pnpm test"),
        pass("pnpm test"),
    ]);
    let observed = observations(&events);
    insta::assert_snapshot!(json(&observed.observations), @r#"
    [
      {
        "kind": "discovery",
        "title": "`pnpm test` works where `npm test` failed: Missing script: \"test\"",
        "subtitle": "Missing script: \"test\"",
        "narrative": "`npm test` failed: Missing script: \"test\". Nothing was edited, and `pnpm test` passed.",
        "facts": [
          "Missing script: \"test\""
        ],
        "concepts": [
          "gotcha"
        ],
        "files_read": [],
        "files_modified": [],
        "events": [
          "t0",
          "t2"
        ],
        "error_signature": "missing script: 'test'"
      }
    ]
    "#);
}

#[test]
fn no_discovery() {
    let error = "error: no total";
    for events in [
        vec![fail("npm test", error), edit("a.js"), pass("pnpm run lint")],
        vec![
            fail("npm run lint", error),
            edit("a.js"),
            pass("pnpm run lint"),
        ],
        vec![fail("git push", error), pass("git status")],
        vec![by("a", fail("npm run lint", error)), pass("pnpm run lint")],
        vec![pass("pnpm run lint"), fail("npm run lint", error)],
    ] {
        assert_eq!(titles(events), NONE);
    }
}

#[test]
fn agents_mix_only_over_the_same_command() {
    let error = "error: no total";
    // A subagent fixes what failed in the main session.
    let seen = titles([
        fail("cargo build", error),
        by("a", edit("src/a.rs")),
        by("a", pass("cargo build")),
    ]);
    assert_eq!(
        seen,
        ["bugfix: `cargo build` passes again after a change of src/a.rs"]
    );
    // One agent's tests do not cover another agent's edits.
    assert_eq!(
        titles([by("a", edit("src/a.rs")), pass("cargo test")]),
        NONE
    );
    assert_eq!(
        titles([by("a", edit("src/a.rs")), by("b", pass("cargo test"))]),
        NONE
    );
    let seen = titles([
        by("a", edit("src/a.rs")),
        edit("src/b.rs"),
        pass("cargo test"),
        by("a", pass("cargo test")),
    ]);
    assert_eq!(
        seen,
        [
            "change: `cargo test` passes after a change of src/b.rs",
            "change: `cargo test` passes after a change of src/a.rs"
        ]
    );
}

#[test]
fn settled_events_are_counted() {
    let error = "error: no total";
    for (events, settled) in [
        (vec![], 0),
        (vec![pass("ls"), pass("cargo test")], 2),
        (vec![pass("ls"), fail("cargo run", error)], 1),
        (vec![pass("ls"), edit("a.rs"), pass("ls")], 1),
        (vec![edit("a.rs"), pass("cargo test"), pass("ls")], 3),
        (vec![edit("a.rs"), pass("cargo test"), edit("b.rs")], 2),
        (vec![edit("a.rs"), fail("cargo test", error), pass("ls")], 0),
        (vec![fail("grep x", error)], 1),
        // The failure of `build` is open, and the observed bugfix started before it.
        (
            vec![
                fail("cargo run", error),
                fail("cargo build", error),
                edit("a.rs"),
                pass("cargo run"),
                pass("cargo test"),
            ],
            0,
        ),
    ] {
        let events = session(events);
        assert_eq!(observations(&events).settled, settled, "{events:?}");
    }
}

#[test]
fn open_failures_expire() {
    let open = [fail("cargo run", "error: no total"), edit("src/a.rs")];
    let wait = |count: usize| (0..count).map(|_| pass("ls"));
    let near = session(
        open.clone()
            .into_iter()
            .chain(wait(98))
            .chain([pass("cargo run")]),
    );
    assert_eq!(observations(&near).observations.len(), 1);
    let far = session(open.into_iter().chain(wait(99)).chain([pass("cargo run")]));
    let observed = observations(&far);
    assert_eq!((observed.observations.len(), observed.settled), (0, 102));
    let work = (0..1_000).map(|n| edit(&format!("src/{n}.rs")));
    assert_eq!(observations(&session(work)).settled, 1_000 - WINDOW);
}

#[test]
fn texts_are_short() {
    let long = "é`\n".repeat(3_000);
    let word = "é`".repeat(3_000);
    let path = "src/".repeat(2_000);
    let events = session(
        (0..90)
            .map(|n| edit(&format!("{path}{n}")))
            .chain([fail(&format!("cargo {word}"), &format!("error: {long}"))])
            .chain([touch(&path, FileAction::Created), edit(&path)])
            .chain([
                pass(&format!("cargo {word}")),
                fail("cargo test", "error: x"),
            ])
            .chain([
                touch(&path, FileAction::Read),
                edit(&path),
                pass("cargo test"),
            ]),
    );
    let observed = observations(&events);
    assert_eq!(observed.observations.len(), 3);
    for observation in &observed.observations {
        check_bounds(observation).unwrap();
    }
}

fn check_bounds(observation: &Observation) -> Result<(), TestCaseError> {
    prop_assert!(observation.title.chars().count() <= MAX_TITLE);
    prop_assert!(!observation.title.is_empty() && !observation.events.is_empty());
    prop_assert!(observation.events.len() <= MAX_EVENTS);
    prop_assert!(observation.narrative.chars().count() <= 2 * MAX_LINE);
    let lists = [
        &observation.facts,
        &observation.files_read,
        &observation.files_modified,
    ];
    for text in lists.into_iter().flatten().chain([&observation.subtitle]) {
        prop_assert!(text.chars().count() <= MAX_LINE);
        prop_assert!(!text.contains('\n'));
    }
    let size = serde_json::to_string(observation).unwrap_or_default().len();
    prop_assert!(size < 64 << 10, "{size}");
    Ok(())
}

#[test]
fn the_work_is_linear() {
    let session = |size: usize| {
        let work = [
            edit("src/a.rs"),
            fail("cargo build", "error: no total"),
            by("a", fail("npm run lint", "error: no total")),
            edit("src/b.rs"),
            pass("cargo test"),
        ];
        session(work.into_iter().cycle().take(size))
    };
    let (small, large) = (session(200), session(3_200));
    assert_linear("events", || observations(&small), || observations(&large));
}

#[test]
fn the_hash_is_of_the_event_that_completes() {
    let events = session([
        fail("cargo build", "error: no total"),
        edit("src/a.rs"),
        pass("cargo build"),
        touch("src/b.rs", FileAction::Created),
    ]);
    let observed = observations(&events).observations;
    let [bugfix, feature] = observed.as_slice() else {
        panic!("{observed:?}");
    };
    assert_ne!(bugfix.hash(), feature.hash());
    assert_eq!(bugfix.hash().len(), 64);
    let mut other = bugfix.clone();
    other.events.swap(0, 1);
    other.title.push('!');
    assert_eq!(other.hash(), bugfix.hash());
}

#[test]
fn a_whole_session() {
    let mut outcome = "Both pages load and all tests pass.\n\n**Next steps**\n".to_owned();
    outcome.push_str("1. Limit the till, too\n2. [ ] Write the docs\n");
    let cart = json!({ "file_path": "/home/dev/shop/src/cart.rs" });
    let events = session([
        ToolEvent {
            input: Some(json!({ "pattern": "fn total" }).into()),
            ..event("Grep", Value::Null, Outcome::Ok)
        },
        touch("src/cart.rs", FileAction::Read),
        fail("npm run dev", "npm error Missing script: \"dev\""),
        pass("pnpm run dev"),
        ToolEvent {
            input: Some(cart.clone().into()),
            ..edit("src/cart.rs")
        },
        fail(
            "cargo test cart 2>&1",
            "thread 'cart::adds' (7) panicked at src/cart.rs:9:5:\n\
             assertion `left == right` failed\n  left: 1\n right: 2",
        ),
        ToolEvent {
            input: Some(cart.into()),
            ..edit("src/cart.rs")
        },
        pass("cargo test cart 2>&1"),
        by("a1", touch("src/till.rs", FileAction::Created)),
        by(
            "a1",
            printed(
                json!({ "stdout": "4 passed; 0 failed" }),
                pass("cargo test | tail"),
            ),
        ),
    ]);
    let mut digest = SessionDigest {
        turns: vec![Turn {
            prompt: Some("speed the shop up".to_owned()),
            answer: Some(outcome.clone()),
            ..Turn::default()
        }],
        git_branch: Some("main".to_owned()),
        next_steps: next_steps(&outcome),
        ..SessionDigest::default()
    };
    for event in &events {
        for file in &event.files {
            let files = match file.action {
                FileAction::Read => &mut digest.files_read,
                FileAction::Edited | FileAction::Created => &mut digest.files,
            };
            if !files.contains(&file.path) {
                files.push(file.path.clone());
            }
        }
        digest.searches.extend(event.search());
        digest.commands_passed.extend(passed_command(event));
    }
    let observed = observations(&events);
    digest.fixed = fix_lines(&observed.observations, &digest.turns);
    let NoteText { title, body } = note_text(&digest).unwrap();
    insta::assert_snapshot!(json(&observed.observations));
    insta::assert_snapshot!(json(&summarize(&digest)), @r#"
    {
      "request": "speed the shop up",
      "investigated": [
        "Read `src/cart.rs`",
        "Looked up `fn total`"
      ],
      "learned": [],
      "completed": [
        "Edited `src/cart.rs`",
        "Edited `src/till.rs`",
        "Passed: `pnpm run dev`",
        "Passed: `cargo test cart`",
        "Passed: `cargo test`",
        "Both pages load and all tests pass."
      ],
      "next_steps": [
        "Limit the till, too",
        "Write the docs"
      ],
      "files_read": [
        "src/cart.rs"
      ],
      "files_edited": [
        "src/cart.rs",
        "src/till.rs"
      ]
    }
    "#);
    insta::assert_snapshot!(format!("# {title}\n{body}"), @r#"
    # speed the shop up
    **Failed and fixed:**
    - `cargo test cart`: assertion `left == right` failed → changed before it passed: src/cart.rs

    **Next steps:**
    - Limit the till, too
    - Write the docs

    **Outcome:** Both pages load and all tests pass.

    **Files:** src/cart.rs, src/till.rs
    "#);
}

/// Generates sessions of events that the rules use.
fn sessions() -> impl Strategy<Value = Vec<ToolEvent>> {
    let commands = prop::sample::select(vec![
        "cargo test",
        "cargo test cart",
        "cargo build",
        "npm run dev",
        "pnpm run dev",
        "ls",
        "cargo test | tail",
    ]);
    let files = prop::sample::select(vec!["src/a.rs", "src/b.rs", "/tmp/c.rs"]);
    let one = prop_oneof![
        commands.clone().prop_map(pass),
        commands
            .clone()
            .prop_map(|command| fail(command, "error: no total")),
        commands.prop_map(|command| printed(json!("2 failed"), pass(command))),
        files.clone().prop_map(edit),
        files
            .clone()
            .prop_map(|file| touch(file, FileAction::Created)),
        files.prop_map(|file| touch(file, FileAction::Read)),
    ];
    let agent = prop::sample::select(vec![None, None, Some("a"), Some("b")]);
    let one = (one, agent).prop_map(|(event, agent)| match agent {
        Some(agent) => by(agent, event),
        None => event,
    });
    prop::collection::vec(one, 0..160).prop_map(session)
}

proptest! {
    /// A repeated call gives nothing new.
    #[test]
    fn a_longer_session_gives_the_same_and_more(events in sessions(), part in 0.0..1.0) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a short list")]
        let seen = (events.len() as f64 * part) as usize;
        let whole = observations(&events).observations;
        let first = observations(&events[..seen]);
        prop_assert_eq!(&whole[..first.observations.len()], &first.observations[..]);
        // A call without the settled events gives the same for the rest.
        prop_assert!(first.settled <= seen);
        let next = observations(&events[first.settled..]).observations;
        let rest = whole.len() - next.len();
        prop_assert!(rest <= first.observations.len());
        prop_assert_eq!(&whole[rest..], &next[..]);
    }

    #[test]
    fn an_event_completes_one_observation_at_most(events in sessions()) {
        let observed = observations(&events).observations;
        let mut hashes: Vec<String> = observed.iter().map(Observation::hash).collect();
        hashes.sort();
        hashes.dedup();
        prop_assert_eq!(hashes.len(), observed.len());
        for observation in &observed {
            check_bounds(observation)?;
            let ids = observation.events.iter();
            prop_assert!(ids.into_iter().all(|id| events.iter().any(|event| event.id == *id)));
        }
    }

    #[test]
    fn any_text_is_a_command(
        command in prop_oneof![any::<String>(), "[a-z é&|;'\"\\\\<>#=$\n-]{0,60}"],
        error in any::<String>(),
    ) {
        let events = session([fail(&command, &error), edit(&error), pass(&command)]);
        for observation in &observations(&events).observations {
            check_bounds(observation)?;
        }
    }
}

#[test]
fn a_session_note_names_the_fix_of_a_command() {
    let body = "**Ask:** x\n\n**Failed and fixed:**\n- `cargo test cart`: total is 0 → a.rs rounds up now\n\
                - `make all` → changed before it passed: b.rs\n\n**Next steps:**\n\
                - `npm test` → later";
    for (command, expected) in [
        (
            "cd shop && cargo test cart 2>&1 | tail",
            Some(("`cargo test cart`: total is 0", "a.rs rounds up now")),
        ),
        (
            "make all",
            Some(("`make all`", "changed before it passed: b.rs")),
        ),
        ("cargo test", None),
        ("npm test", None),
        ("ls", None),
        ("", None),
    ] {
        assert_eq!(fix_in_note(body, command), expected, "{command}");
    }
}

fn failing(events: impl IntoIterator<Item = ToolEvent>) -> Vec<String> {
    checks(&session(events), &[], "").failing
}

fn passed(events: impl IntoIterator<Item = ToolEvent>) -> Vec<String> {
    checks(&session(events), &[], "").passed
}

#[test]
fn only_checks_of_the_project_still_fail() {
    assert_eq!(
        failing([
            fail("git diff HEAD~9", "fatal: ambiguous argument 'HEAD~9'"),
            fail("cat a.txt", "cat: a.txt: No such file or directory"),
            fail("npx some-tool add --name=x", "Error: no key"),
            fail("python3 - <<'E'\nimport x\nE", "ModuleNotFoundError: x"),
            fail("npm run chekc", "npm error Missing script: \"chekc\""),
            event("mcp__x__y", json!({}), Outcome::Failed),
            fail(
                "make fmt && make lint",
                "a.c:3:1: error: unused variable 'x'"
            ),
        ]),
        ["`make lint`: a.c:3:1: error: unused variable 'x'"]
    );
}

#[test]
fn the_step_of_a_chain_that_failed_still_fails() {
    let lint = "> shop@1.0.0 lint\n> eslint .\n\nerror: x is unused";
    let chain = || fail("npm run lint && npm test", lint);
    let expected = ["`npm run lint`: error: x is unused"];
    assert_eq!(failing([chain()]), expected);
    assert_eq!(failing([chain(), pass("npm test")]), expected);
    assert_eq!(failing([chain(), pass("npm run lint")]), NONE);
    assert_eq!(
        passed([pass("npm run lint && npm test")]),
        ["npm run lint", "npm test"]
    );
}

#[test]
fn a_chain_that_ends_before_its_check_blames_the_other_tool() {
    let resolve = "npm error code ERESOLVE\nnpm error ERESOLVE could not resolve";
    let chain = || fail("npm ci && npm test", resolve);
    let made = |events: Vec<ToolEvent>| checks(&session(events), &[], "");
    let open = made(vec![pass("npm test"), chain()]);
    assert_eq!(open.failing, NONE);
    assert_eq!(open.passed, ["npm test"]);
    assert_eq!(
        open.failed_tool.as_deref(),
        Some("`npm ci`: ERESOLVE could not resolve")
    );
    let closed = made(vec![chain(), pass("npm ci")]);
    assert_eq!((closed.failing.len(), closed.failed_tool), (0, None));
    let pulled = "error: Your local changes to the following files would be overwritten by merge:";
    let pull = made(vec![fail("git pull && make test", pulled)]);
    assert_eq!(pull, Checks::default());
}

#[test]
fn a_server_that_was_stopped_has_not_failed() {
    let stopped = "Exit code 143\nCommand timed out after 2m 0s";
    for command in [
        "npm run dev",
        "pnpm dev:web",
        "npx vite preview",
        "npx tsc --watch",
    ] {
        assert_eq!(failing([fail(command, stopped)]), NONE, "{command}");
        assert_eq!(
            failing([fail(command, "error: port in use")]).len(),
            1,
            "{command}"
        );
    }
    assert_eq!(failing([fail("npm test", stopped)]).len(), 1);
}

#[test]
fn a_status_that_tells_a_difference_is_no_failure() {
    let plan = "terraform plan -detailed-exitcode";
    let differs = |command: &str| ToolEvent {
        error: Some("Exit code 2\nPlan: 1 to add, 0 to change, 0 to destroy.".to_owned()),
        ..fail(command, "")
    };
    assert_eq!(failing([differs(plan)]), NONE);
    assert_eq!(passed([differs(plan)]), NONE);
    assert_eq!(failing([differs("terraform plan")]).len(), 1);
    assert_eq!(failing([fail(plan, "Error: no provider")]).len(), 1);
}

#[test]
fn checks_of_another_project_are_not_told() {
    let failing = |command| {
        checks(
            &session([fail(command, "error: x is unused")]),
            &[],
            "/home/ann/shop",
        )
        .failing
    };
    assert_eq!(failing("cd /tmp/upstream && make build"), NONE);
    assert_eq!(
        failing("cd /home/ann/shop/web && make build"),
        ["`cd web && make build`: error: x is unused"]
    );
}

#[test]
fn the_last_failure_of_a_tool_that_is_no_check_is_kept_apart() {
    let tool = |events: Vec<ToolEvent>| checks(&session(events), &[], "").failed_tool;
    let add = || fail("npx some-tool add", "Error: the key API_KEY is not set");
    let expected = "`npx some-tool add`: Error: the key API_KEY is not set";
    assert_eq!(tool(vec![add(), pass("ls")]).as_deref(), Some(expected));
    assert_eq!(tool(vec![add(), pass("npx some-tool add")]), None);
    assert_eq!(tool(vec![fail("git diff x", "fatal: ambiguous")]), None);
    // What is missing outside of the project is missing still when another tool passes.
    let later = vec![add(), pass("npx some-tool list")];
    assert_eq!(tool(later).as_deref(), Some(expected));
    let mistake = fail("npx some-tool add", "Error: 'x' is no kind");
    assert_eq!(tool(vec![mistake, pass("npx some-tool list")]), None);
}

#[test]
fn a_check_is_over_when_it_passes_in_another_form() {
    for (failed, over) in [
        ("mise run fmt && mise run lint", "mise run lint"),
        ("mise run lint", "mise run fmt && mise run lint"),
        (
            "npx eslint src/a.ts --max-warnings=0",
            "npx eslint src/a.ts",
        ),
        ("cargo test -p store cart", "cargo test"),
        ("bun test src/", "bun run test"),
        ("cd web && npm test", "npm test"),
    ] {
        let events = [fail(failed, "error: x is wrong"), pass(over)];
        assert_eq!(failing(events.clone()), NONE, "{failed} {over}");
        assert_eq!(passed(events).len(), 1, "{failed} {over}");
    }
    for (failed, other) in [
        ("cargo test", "cargo test cart"),
        ("cd web && npm test", "cd api && npm test"),
        ("make lint", "make test"),
        ("make deploy", "make"),
    ] {
        let events = [fail(failed, "error: x is wrong"), pass(other)];
        assert_eq!(failing(events).len(), 1, "{failed} {other}");
    }
}

#[test]
fn a_failure_is_told_once_and_not_if_its_last_result_is_unknown() {
    let same = [
        fail("npm test", "error: total is 0"),
        fail("npx jest --ci", "error: total is 0"),
    ];
    assert_eq!(failing(same), ["`npx jest --ci`: error: total is 0"]);
    let part = [
        fail("npm test", "error: total is 0"),
        fail("npm test cart", "error: total of the cart is 0"),
    ];
    assert_eq!(failing(part), ["`npm test`: error: total is 0"]);
    let stdout = "error: the stub is down\n 12 pass\n 0 fail";
    let noisy = printed(
        json!({ "stdout": stdout }),
        pass("bun run test 2>&1 | tail -20"),
    );
    assert_eq!(passed([noisy]), ["bun run test"]);
    let unknown = printed(json!({ "stdout": "" }), pass("make lint 2>&1 | tail -3"));
    let events = [fail("make lint", "a.c:3:1: unused"), unknown.clone()];
    assert_eq!(failing(events), NONE);
    let stopped = printed(json!({ "interrupted": true }), pass("make lint"));
    assert_eq!(failing([fail("make lint", "x is wrong"), stopped]).len(), 1);
    assert_eq!(passed([pass("make lint"), fail("make lint", "x")]), NONE);
}

#[test]
fn of_several_failed_tests_the_first_of_the_last_run_is_named() {
    let pytest = "tests/a.py::t\nE   assert 1 == 2\n\
        FAILED tests/test_cart.py::test_sum - assert 1 == 2\nFAILED tests/test_till.py::test_open - KeyError: 'x'\n\
        FAILED tests/test_till.py::test_shut\n3 failed, 9 passed in 0.2s";
    let cargo = "test cart::sum ... FAILED\ntest cart::empty ... ok\ntest till::open ... FAILED\n\nfailures:\n    cart::sum\n\
        test result: FAILED. 1 passed; 2 failed; 0 ignored";
    let go = "--- FAIL: TestCart (0.00s)\n    --- FAIL: TestCart/sum (0.00s)\n        cart_test.go:9: got 1\n\
        --- FAIL: TestTill (0.00s)\nFAIL\tshop\t0.1s";
    let jest = "  ● Cart › sums\n\n    expected 1, got 2\n\n  ● Till › opens\n\n  ✕ sums (3 ms)\nTests: 4 failed, 9 total";
    let one = "FAILED tests/test_till.py::test_open - KeyError: 'x'\n1 failed in 0.1s";
    let some = fail("pytest", pytest);
    for (events, expected) in [
        (
            vec![some.clone()],
            "`pytest`: tests/test_cart.py::test_sum and 2 more: assert 1 == 2",
        ),
        (
            vec![fail("cargo test", cargo)],
            "`cargo test`: cart::sum and 1 more",
        ),
        (
            vec![fail("go test ./...", go)],
            "`go test ./...`: TestCart/sum and 1 more",
        ),
        (
            vec![fail("npm test", jest)],
            "`npm test`: Cart › sums and 3 more: expected 1, got 2",
        ),
        // Of the last run. A test that may be over is not named.
        (
            vec![some.clone(), fail("pytest -q", one)],
            "`pytest -q`: FAILED tests/test_till.py::test_open - KeyError: 'x'",
        ),
        (
            vec![some.clone(), pass("pytest tests/test_cart.py")],
            "`pytest` fails",
        ),
        (
            vec![some.clone(), fail("pytest tests/test_till.py", one)],
            "`pytest`: tests/test_cart.py::test_sum and 2 more: assert 1 == 2",
        ),
        (
            vec![some.clone(), pass("pytest -k test_login")],
            "`pytest`: tests/test_cart.py::test_sum and 2 more: assert 1 == 2",
        ),
    ] {
        assert_eq!(failing(events), [expected]);
    }
    let error = "cart::sum and 1 more: x is 0";
    assert!(!names_check(
        "`cart::sum` passes now",
        "cargo nextest run",
        error
    ));
}

#[test]
fn a_person_says_what_is_over() {
    let events = session([
        fail("make lint", "error: x is unused"),
        fail("npm test", "error: total is 0"),
        fail("npx some-tool add", "Error: 'x' is no kind"),
    ]);
    let left = |prompt: &str, after: &str| {
        let turn = Turn {
            prompt: Some(prompt.to_owned()),
            after: Some(after.to_owned()),
            ..Turn::default()
        };
        let checks = checks(&events, &[turn], "");
        checks.failing.len() + usize::from(checks.failed_tool.is_some())
    };
    for (prompt, count) in [
        ("all tests pass now", 2),
        ("Great, the tests are green again! Now commit.", 2),
        ("All tests passed, thanks", 2),
        ("now all the tests pass on my machine", 2),
        ("alle Tests sind jetzt grün", 2),
        ("tous les tests passent maintenant", 2),
        ("现在所有测试都通过了", 2),
        ("CI is green again", 1),
        ("everything passes now and I pushed it", 1),
        ("it works now", 2),
        ("ok, that fixed it. now write the docs", 2),
        ("thanks, it's working again", 2),
        ("jetzt funktioniert es", 2),
        // Something else, a condition, a demand, a question, a denial.
        ("all cart tests pass now", 3),
        ("all tests pass now except the one of the cart", 3),
        ("once all tests pass, commit", 3),
        ("make sure all tests pass again", 3),
        ("fix the parser, all tests are green again then", 3),
        ("Done means: all tests pass", 3),
        ("- all tests pass\n- the docs are updated", 3),
        ("do all tests pass now?", 3),
        ("all tests pass now, but the build fails", 3),
        ("all tests should pass now", 3),
        ("I think all tests pass now", 3),
        ("explain how it works now", 3),
        ("it works now in Firefox", 3),
        ("it still works", 3),
        ("it does not work now", 3),
        ("CI is green again if you revert", 3),
        ("get CI green again", 3),
    ] {
        assert_eq!(left(prompt, "t2"), count, "{prompt}");
    }
    // What fails later is not meant.
    assert_eq!(left("it works now", "t1"), 2);
    assert_eq!(left("all tests pass now", "t0"), 3);
    assert_eq!(left("all tests pass now", "unknown"), 3);
}

#[test]
fn a_fix_is_told_with_the_statement_that_names_what_was_changed() {
    let events = session([
        fail("make test", "AssertionError: total is 0"),
        edit("src/cart.py"),
        edit("Makefile"),
        pass("make test"),
    ]);
    let fix = observations(&events).observations.pop().unwrap();
    let line = |statements: &[&str]| {
        let statements: Vec<String> = statements.iter().map(|&it| it.to_owned()).collect();
        fix_line(&fix, statements.iter()).unwrap()
    };
    assert_eq!(
        line(&[
            "All tests pass.",
            "`src/cart.py` rounded before it summed, which was changed.",
            "Do you want me to change cart.py?"
        ]),
        "`make test`: AssertionError: total is 0 → `src/cart.py` rounded before it summed, which was changed."
    );
    assert_eq!(
        line(&["All tests pass."]),
        "`make test`: AssertionError: total is 0 → changed before it passed: src/cart.py, Makefile"
    );
}

#[test]
fn a_document_fixes_only_a_check_that_names_it() {
    let line = |error: &str, changed: &[&str]| {
        let failed = fail("npm install", error);
        let edits = changed.iter().map(|path| edit(path));
        let events = [failed]
            .into_iter()
            .chain(edits)
            .chain([pass("npm install")]);
        let fix = observations(&session(events)).observations.pop().unwrap();
        fix_line(&fix, [].iter())
    };
    assert_eq!(line("error: network timeout", &["README.md"]), None);
    assert_eq!(
        line("error: network timeout", &["README.md", "package.json"]).unwrap(),
        "`npm install`: error: network timeout → changed before it passed: package.json"
    );
    let named = line("error: README.md:3 has a dead link", &["README.md"]);
    assert!(
        named
            .unwrap()
            .ends_with("changed before it passed: README.md")
    );
}

#[test]
fn sentences_about_a_check() {
    let (check, error) = ("mise run lint", "a.go:3: unused variable fooBar");
    for sentence in [
        "`mise run lint` passes now.",
        "The lint is fixed.",
        "Lint and tests are green",
        "The unused fooBar was fixed",
    ] {
        assert!(says_it_passes(sentence, check, error), "{sentence}");
    }
    for sentence in [
        "The tests pass.",
        "Lint should pass after this.",
        "Lint does not pass",
        "All tests pass, but lint fails",
        "Is lint fixed?",
        "fix the lint",
    ] {
        assert!(!says_it_passes(sentence, check, error), "{sentence}");
    }
    assert!(says_it_is_expected(
        "The lint error is expected here.",
        check,
        error
    ));
    assert!(says_it_is_expected("It fails by design.", check, error));
    assert!(!says_it_is_expected(
        "`make test` fails as expected.",
        check,
        error
    ));
    assert!(!says_it_is_expected(
        "Lint works as expected.",
        check,
        error
    ));
}
