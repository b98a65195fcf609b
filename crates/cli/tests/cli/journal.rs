//! Every event of a session becomes a row, once, and nothing private does.

use std::{fs, path::PathBuf};

use anamnesis_testkit::{
    home::{TestHome, asked, edited, files_below, with_slashes},
    wait_for,
};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{NO_OP, SESSION, home, home_with_notes, outlast_hooks, snapshot};

/// What stands in private regions only.
const MARKER: &str = "heron-4821-lagoon";

/// A session that is played event by event.
pub(crate) struct Played<'a> {
    home: &'a TestHome,
    id: String,
    prompt: usize,
    tool: usize,
}

impl<'a> Played<'a> {
    pub(crate) fn new(home: &'a TestHome, id: &str) -> Self {
        Self {
            home,
            id: id.to_owned(),
            prompt: 0,
            tool: 0,
        }
    }

    fn payload(&self, event: &str, fields: &Value) -> Value {
        let mut payload = self.home.payload(event, &self.id);
        payload["prompt_id"] = format!("p-{}", self.prompt).into();
        for (name, value) in fields.as_object().unwrap() {
            payload[name] = value.clone();
        }
        payload
    }

    /// Runs a hook that has nothing to say.
    fn silent(&self, event: &str, fields: &Value) -> Value {
        let payload = self.payload(event, fields);
        let printed = self.home.hook(&payload).well();
        // It prints what the client's summary should contain.
        assert!(printed == NO_OP || event == "PreCompact", "{printed}");
        payload
    }

    pub(crate) fn start(&self) -> Value {
        let payload = self.home.start(&self.id, "startup");
        self.home.hook(&payload).well();
        payload
    }

    pub(crate) fn says(&mut self, prompt: &str) -> Value {
        self.prompt += 1;
        self.silent("UserPromptSubmit", &json!({ "prompt": prompt }))
    }

    fn call(&mut self, tool: &str, input: &Value) -> Value {
        self.tool += 1;
        json!({ "tool_name": tool, "tool_input": input, "tool_use_id": format!("t-{}", self.tool) })
    }

    pub(crate) fn uses(&mut self, tool: &str, input: &Value, response: &Value) -> Value {
        let mut call = self.call(tool, input);
        call["tool_response"] = response.clone();
        call["duration_ms"] = 12.into();
        self.silent("PostToolUse", &call)
    }

    pub(crate) fn fails(&mut self, tool: &str, input: &Value, error: &str) -> Value {
        let mut call = self.call(tool, input);
        call["error"] = error.into();
        self.silent("PostToolUseFailure", &call)
    }

    pub(crate) fn edits(&mut self, path: &str) -> Value {
        let path = self.home.project().join(path);
        self.uses(
            "Edit",
            &json!({ "file_path": path, "old_string": "a", "new_string": "b" }),
            &json!({ "filePath": path, "originalFile": "a\n", "structuredPatch": [] }),
        )
    }

    pub(crate) fn answers(&self, text: &str) -> Value {
        self.silent(
            "Stop",
            &json!({ "last_assistant_message": text, "stop_hook_active": false }),
        )
    }

    pub(crate) fn ends(&self) -> Value {
        let payload = self.payload("SessionEnd", &json!({ "reason": "other" }));
        assert_eq!(self.home.hook(&payload).well(), "");
        payload
    }
}

/// The rows of a query, columns joined by `|`.
pub(crate) fn rows(home: &TestHome, query: &str) -> Vec<String> {
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    let mut statement = connection.prepare(query).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let column = |index| match row.get_ref(index)? {
            rusqlite::types::ValueRef::Null => Ok("-".to_owned()),
            rusqlite::types::ValueRef::Integer(number) => Ok(number.to_string()),
            other => Ok(other.as_str().unwrap().to_owned()),
        };
        let columns: rusqlite::Result<Vec<String>> = (0..columns).map(column).collect();
        Ok(columns?.join("|"))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// The text of the one note that there is.
fn note(home: &TestHome) -> String {
    let notes = home.notes();
    assert_eq!(notes.len(), 1, "{notes:?} {:?}", home.log());
    home.read(&notes[0])
}

/// The paths of all files below the store that hold these bytes.
pub(crate) fn files_with(home: &TestHome, bytes: &[u8]) -> Vec<String> {
    let holds = |path: &PathBuf| {
        let text = fs::read(path).unwrap_or_default();
        text.windows(bytes.len()).any(|window| window == bytes)
    };
    let found = files_below(&home.store()).into_iter().filter(holds);
    found.map(|path| with_slashes(&path)).collect()
}

/// A prompt, three tools, an answer: the payloads in their order.
fn play(home: &TestHome) -> Vec<Value> {
    let mut session = Played::new(home, SESSION);
    vec![
        session.start(),
        session.says("Add limits to the login"),
        session.fails(
            "Bash",
            &json!({ "command": "cargo test login" }),
            "Exit code 101\nerror[E0308]: mismatched types",
        ),
        session.edits("src/limit.rs"),
        session.uses(
            "Bash",
            &json!({ "command": "cargo test login" }),
            &json!({ "stdout": "test result: ok. 3 passed", "stderr": "", "interrupted": false }),
        ),
        session.answers("Limits are in, tests pass. Next: the cart."),
        session.ends(),
    ]
}

#[test]
fn a_session_becomes_rows_and_a_note() {
    let home = home();
    play(&home);
    home.settle();
    assert_eq!(
        rows(
            &home,
            "SELECT state, end_reason, project, branch, prompts, tool_events, first_prompt FROM session"
        ),
        ["completed|other|github.com/acme/shop|main|1|3|Add limits to the login"]
    );
    assert_eq!(
        rows(&home, "SELECT number, kind, privacy, text FROM prompt"),
        ["1|person|none|Add limits to the login"]
    );
    assert_eq!(
        rows(
            &home,
            "SELECT prompt, tool, outcome, duration_ms, error FROM tool_event ORDER BY number"
        ),
        [
            "1|Bash|failed|-|Exit code 101\nerror[E0308]: mismatched types",
            "1|Edit|ok|12|-",
            "1|Bash|ok|12|-",
        ]
    );
    assert_eq!(
        rows(&home, "SELECT path, action FROM file_use"),
        ["src/limit.rs|edited"]
    );
    assert_eq!(
        rows(&home, "SELECT speaker, text FROM turn_end"),
        ["main|Limits are in, tests pass. Next: the cart."]
    );
    assert_eq!(
        rows(&home, "SELECT count(*) FROM summary WHERE maker = 'rule'"),
        ["1"]
    );
    assert_eq!(rows(&home, "SELECT kind FROM observation"), ["bugfix"]);
    assert_eq!(
        rows(&home, "SELECT DISTINCT kind, state FROM job"),
        ["note|done"]
    );
    let text = note(&home).replace(&*home.project().to_string_lossy(), "[PROJECT]");
    snapshot!(text, @"
    ---
    id: 6A336AEW8SZ5FDNQWA8DJ8QYZW
    type: episodic
    title: Add limits to the login
    project: github.com/acme/shop
    machine_id: laptop
    scope: portable
    prov_source: session-end
    confidence: 0.6
    prov_session: 5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20
    created_at: '2026-01-02T03:04:05+00:00'
    updated_at: '2026-01-02T03:04:05+00:00'
    tags:
    - session
    - session-end
    asked:
    - cargo test login
    ---
    **Failed and fixed:**
    - `cargo test login`: error[E0308]: mismatched types → changed before it passed: src/limit.rs

    **Next steps:**
    - the cart.

    **Outcome:** Limits are in, tests pass.

    **Files:** src/limit.rs

    **Passed:** `cargo test login`
    ");
    let summary: Value = serde_json::from_str(&rows(&home, "SELECT body FROM summary")[0]).unwrap();
    assert_eq!(summary["request"], "Add limits to the login");
    assert_eq!(summary["learned"], json!([]));
    assert_eq!(summary["next_steps"], json!(["the cart."]));
}

/// Returns the folder of a home as it is inside of a JSON string.
fn root_in_json(home: &TestHome) -> String {
    let quoted = json!(home.root()).to_string();
    quoted.trim_matches('"').to_owned()
}

#[test]
fn the_same_events_again_and_in_another_order_give_the_same_rows() {
    const ALL: [&str; 6] = [
        "SELECT state, end_reason, prompts, tool_events, first_prompt FROM session",
        "SELECT id, number, kind, text FROM prompt",
        "SELECT id, prompt, tool, outcome, input, response, error FROM tool_event ORDER BY id",
        "SELECT path, action FROM file_use ORDER BY path",
        "SELECT prompt_id, speaker, text FROM turn_end",
        "SELECT body FROM summary",
    ];
    let all = |home: &TestHome| {
        let root = root_in_json(home);
        ALL.map(|query| rows(home, query).join("\n").replace(&root, "[ROOT]"))
    };
    let home_in_order = home();
    let payloads = play(&home_in_order);
    home_in_order.settle();
    let expected = all(&home_in_order);
    let expected_note = note(&home_in_order);
    for payload in &payloads {
        home_in_order.hook(payload).well();
    }
    home_in_order.settle();
    assert_eq!(all(&home_in_order), expected);
    assert_eq!(note(&home_in_order), expected_note);

    for order in [
        [0, 3, 1, 5, 2, 4, 6],
        [0, 1, 4, 2, 5, 6, 3],
        [2, 0, 1, 3, 4, 5, 6],
    ] {
        let shuffled = home();
        for index in order {
            let payload = payloads[index].to_string();
            let own = payload.replace(&root_in_json(&home_in_order), &root_in_json(&shuffled));
            shuffled.hook_with(own).run().well();
        }
        shuffled.settle();
        // What comes after the end is recorded by the next session's start.
        shuffled.work();
        let own_note = note(&shuffled);
        assert!(own_note.contains("**Files:** src/limit.rs"), "{own_note}");
        assert_eq!(all(&shuffled), expected, "{order:?}");
    }
}

#[test]
fn a_private_prompt_and_what_happened_under_it() {
    // CAP-03
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says(&format!("<private>the key is {MARKER}</private>"));
    session.uses(
        "Bash",
        &json!({ "command": format!("use {MARKER}") }),
        &json!({ "stdout": MARKER }),
    );
    session.answers(&format!("I used {MARKER}."));
    session.says("Now in the open");
    session.uses(
        "Bash",
        &json!({ "command": "make" }),
        &json!({ "stdout": "made" }),
    );
    session.answers("Made it, and all of the tests are passing.");
    session.ends();
    home.settle();
    assert_eq!(
        rows(
            &home,
            "SELECT number, kind, privacy, text, suppressed FROM prompt ORDER BY number"
        ),
        ["1|person|full|-|2", "2|person|none|Now in the open|0"]
    );
    assert_eq!(
        rows(&home, "SELECT prompt, tool FROM tool_event"),
        ["2|Bash"]
    );
    assert_eq!(
        rows(&home, "SELECT first_prompt FROM session"),
        ["Now in the open"]
    );
    assert_eq!(files_with(&home, MARKER.as_bytes()), [""; 0]);
    assert!(note(&home).contains("title: Now in the open"));
}

#[test]
fn every_tag_case_as_prompt_and_as_json() {
    // Regions in a prompt and in the JSON of a tool are removed by the same rules.
    let cases: Value = serde_json::from_str(include_str!(
        "../../../text/tests/fixtures/tag_stripping.json"
    ))
    .unwrap();
    let cases = cases
        .as_array()
        .or_else(|| cases["cases"].as_array())
        .unwrap();
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    let mut expected_prompts = Vec::new();
    let mut expected_inputs = Vec::new();
    for case in cases {
        let input = case["input"].as_str().unwrap();
        let output = case["output"].as_str().unwrap();
        session.says(input);
        expected_prompts.push((case["id"].clone(), input.to_owned(), output.to_owned()));
        // Under a prompt of its own, which nothing of the case is in.
        session.says(&format!("case {}", case["id"]));
        session.uses(
            "Bash",
            &json!({ "command": input }),
            &json!({ "stdout": input }),
        );
        expected_inputs.push((case["id"].clone(), output.to_owned()));
    }
    let prompts = rows(
        &home,
        "SELECT privacy, text FROM prompt WHERE number % 2 = 1 ORDER BY number",
    );
    assert_eq!(prompts.len(), expected_prompts.len());
    for (row, (id, input, output)) in prompts.iter().zip(expected_prompts) {
        if id == "spelling/zero-width-in-name" {
            continue;
        }
        if output.is_empty() && !input.trim().is_empty() {
            assert_eq!(row, "full|-", "{id}");
        } else if serde_json::from_str::<Value>(&input).is_err() && !input.starts_with('<') {
            // As a prompt, JSON is a text like any other.
            let (_, text) = row.split_once('|').unwrap();
            let shown = if output.is_empty() { "-" } else { &output };
            // Line ends are cleaned, like all that moves a cursor.
            assert_eq!(text.trim(), shown.replace("\r\n", "\n").trim(), "{id}");
        }
    }
    let inputs = rows(&home, "SELECT input FROM tool_event ORDER BY number");
    for (row, (id, output)) in inputs.iter().zip(expected_inputs) {
        if id == "spelling/zero-width-in-name" {
            // Invisible characters are removed from all that is stored; then it is a tag.
            assert_eq!(row, r#"{"command":"a  b"}"#);
            continue;
        }
        let stored: Value = serde_json::from_str(row).unwrap();
        let command = stored["command"].as_str().unwrap();
        if serde_json::from_str::<Value>(&output).is_err() {
            assert_eq!(command.trim(), output.replace("\r\n", "\n").trim(), "{id}");
        }
    }
}

#[test]
fn private_regions_in_the_values_of_json() {
    // A region may begin and end in different values, and in a key.
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.says("Read it");
    let lines = ["a", "<private>", MARKER, "</private>", "b"];
    session.fails("Task", &json!({ "lines": lines }), "no");
    session.fails(
        "Task",
        &json!({ format!("<private>{MARKER}</private>k"): 1 }),
        "no",
    );
    session.fails(
        "Task",
        &json!({ "cmd": format!("echo \u{3c}private\u{3e}{MARKER}\u{3c}/private\u{3e}") }),
        "no",
    );
    assert_eq!(
        rows(&home, "SELECT input FROM tool_event ORDER BY number"),
        [
            r#"{"lines":"a\n\n\n\nb"}"#,
            r#"{"k":"1"}"#,
            r#"{"cmd":"echo "}"#,
        ]
    );
    assert_eq!(files_with(&home, MARKER.as_bytes()), [""; 0]);
}

#[test]
fn what_was_private_is_in_no_name_of_a_branch() {
    // CAP-03
    let home = home();
    let head = home.project().join(".git/HEAD");
    fs::write(head, format!("ref: refs/heads/fix/{MARKER}\n")).unwrap();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says(&format!("Deploy <private>with {MARKER}</private> today"));
    session.edits("src/a.rs");
    session.answers("It is deployed, because the key is new.");
    session.ends();
    home.settle();
    assert!(!note(&home).contains(MARKER), "{}", note(&home));
}

#[test]
fn what_was_private_stays_private_when_a_tool_repeats_it() {
    // The private texts of a session are known until its note is written, and then deleted.
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says(&format!("Deploy <private>with {MARKER}</private> today"));
    session.fails(
        "Bash",
        &json!({ "command": format!("deploy --key={MARKER}") }),
        &format!("denied for {MARKER}"),
    );
    session.answers(&format!("The key {MARKER} was denied."));
    session.edits(&format!("{MARKER}/a.rs"));
    assert_eq!(
        rows(
            &home,
            "SELECT input, error FROM tool_event WHERE tool = 'Bash'"
        ),
        [r#"{"command":"deploy --key=[private]"}|denied for [private]"#]
    );
    assert_eq!(
        rows(&home, "SELECT text FROM turn_end"),
        ["The key [private] was denied."]
    );
    assert_eq!(files_with(&home, MARKER.as_bytes()), [""; 0]);
    session.ends();
    home.settle();
    assert_eq!(rows(&home, "SELECT count(*) FROM private_token"), ["0"]);
    assert_eq!(files_with(&home, MARKER.as_bytes()), [""; 0]);
    assert!(note(&home).contains("[private]"));
}

#[test]
fn tools_that_are_not_recorded() {
    // CAP-05
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.says("Go");
    for tool in [
        "ListMcpResourcesTool",
        "SlashCommand",
        "Skill",
        "ToolSearch",
        "mcp__plugin_anamnesis_memory__memory_search",
        "mcp__anamnesis__memory_write",
    ] {
        session.uses(tool, &json!({ "x": 1 }), &json!("done"));
    }
    let read = |path: std::path::PathBuf| json!({ "file_path": path });
    session.uses(
        "Read",
        &read(home.store().join("memory/semantic/x.md")),
        &json!("x"),
    );
    session.uses("Read", &read(home.transcript_path("other")), &json!("x"));
    session.uses(
        "Grep",
        &json!({ "pattern": "x", "path": home.store() }),
        &json!("x"),
    );
    assert_eq!(rows(&home, "SELECT count(*) FROM tool_event"), ["0"]);
    home.write("config.json", r#"{"skip_tools": ["mcp__*", "Task"]}"#);
    session.uses("mcp__github__list", &json!({}), &json!("x"));
    session.uses("Agent", &json!({}), &json!("x"));
    session.uses("TodoWrite", &json!({}), &json!("x"));
    assert_eq!(rows(&home, "SELECT tool FROM tool_event"), ["TodoWrite"]);
}

#[test]
fn an_event_of_an_unknown_session() {
    // The first event of a session creates its row, whatever the event is.
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.edits("a.rs");
    assert_eq!(
        rows(&home, "SELECT state, prompts, tool_events FROM session"),
        ["active|0|1"]
    );
    assert_eq!(
        rows(&home, "SELECT prompt, prompt_id FROM tool_event"),
        ["-|p-0"]
    );
}

#[test]
fn a_journal_of_a_newer_version_is_not_touched() {
    // Records wait in the spool until a program of that version runs.
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    home.settle();
    let path = home.store().join("journal.db");
    let connection = Connection::open(&path).unwrap();
    let version: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    connection
        .execute_batch("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE);")
        .unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    session.says("Add limits");
    session.edits("a.rs");
    home.settle();
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(home.store().join("spool")).unwrap().count(), 2);
    // The update is through.
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", version)
        .unwrap();
    session.answers("Limits are in.");
    assert_eq!(fs::read_dir(home.store().join("spool")).unwrap().count(), 0);
    assert_eq!(
        rows(&home, "SELECT prompts, tool_events FROM session"),
        ["1|1"]
    );
}

#[test]
fn a_journal_that_is_locked_is_not_waited_for() {
    // HOOK-08
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    home.settle();
    // The deferred process would wait for the journal.
    let _work = home.hold_background();
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The lock is held until all three have ended.
    for number in 0..3 {
        session.says(&format!("Prompt {number}"));
    }
    home.settle();
    assert_eq!(fs::read_dir(home.store().join("spool")).unwrap().count(), 3);
    drop(connection);
    session.says("Prompt 3");
    assert_eq!(
        rows(&home, "SELECT number, text FROM prompt ORDER BY number"),
        ["1|Prompt 0", "2|Prompt 1", "3|Prompt 2", "4|Prompt 3"]
    );
    assert_eq!(fs::read_dir(home.store().join("spool")).unwrap().count(), 0);
}

#[test]
fn an_event_whose_private_tokens_cannot_be_read_keeps_its_text() {
    // CAP-03
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says(&format!("Log in with <private>{MARKER}</private>"));
    home.settle();
    let _work = home.hold_background();
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE")
        .unwrap();
    session.says(&format!("Deploy with {MARKER}, never on Fridays"));
    session.fails(
        "Bash",
        &json!({ "command": format!("deploy --key={MARKER} Saturday") }),
        &format!("denied for {MARKER} on Saturday"),
    );
    session.answers(&format!("The key {MARKER} was denied on Sunday."));
    // Their files are sealed.
    for text in ["Fridays", "Saturday", "Sunday"] {
        assert_eq!(files_with(&home, text.as_bytes()), [""; 0]);
    }
    assert_eq!(fs::read_dir(home.store().join("spool")).unwrap().count(), 3);
    drop(connection);
    session.says("And the cart");
    assert_eq!(
        rows(&home, "SELECT text FROM prompt ORDER BY number"),
        [
            "Log in with",
            "Deploy with [private], never on Fridays",
            "And the cart"
        ]
    );
    assert_eq!(
        rows(&home, "SELECT input, error FROM tool_event"),
        [r#"{"command":"deploy --key=[private] Saturday"}|denied for [private] on Saturday"#]
    );
    assert_eq!(
        rows(&home, "SELECT text FROM turn_end"),
        ["The key [private] was denied on Sunday."]
    );
    assert_eq!(files_with(&home, MARKER.as_bytes()), [""; 0]);
}

#[test]
fn a_client_that_reads_a_hooks_output_to_its_end_does_not_wait_for_the_deferred_process() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says("Add limits to the login");
    home.settle();
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    session.ends();
    // It waits for the journal, which nobody releases before it was seen.
    wait_for("the deferred process", || home.is_busy());
    drop(connection);
    home.settle();
}

#[test]
fn the_note_of_a_session_that_ended_while_the_journal_was_held_is_written_soon() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says("Add limits to the login");
    session.edits("src/login.rs");
    home.settle();
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    session.answers("The login has limits now, because the tests asked for them.");
    session.ends();
    // The deferred process waits for the journal, because nothing may start another one for days.
    outlast_hooks(&home, 3);
    assert!(home.is_busy());
    drop(connection);
    home.settle();
    assert!(note(&home).contains("has limits now"), "{}", note(&home));
}

#[test]
fn details_of_an_event_are_kept_while_many_records_wait() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says("Add limits");
    home.settle();
    let _work = home.hold_background();
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    session.edits("a.rs");
    drop(connection);
    let files = files_below(&home.store().join("spool"));
    let record = fs::read_to_string(&files[0]).unwrap();
    for number in 10..70 {
        let record = record.replace(SESSION, &format!("other-{number}"));
        home.write(
            &format!("spool/01JZ00000000000000000000{number}.json"),
            record,
        );
    }
    session.uses("Bash", &json!({ "command": "make test" }), &json!({}));
    let input = rows(&home, "SELECT input FROM tool_event WHERE tool = 'Bash'");
    assert!(input[0].contains("make test"), "{input:?}");
}

#[test]
fn a_record_that_cannot_be_read_is_moved_aside_once() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    home.write("spool/01JZ0000000000000000000000.json", "{");
    session.says("Add limits");
    assert_eq!(fs::read_dir(home.store().join("spool")).unwrap().count(), 0);
    let kept: Vec<_> = fs::read_dir(home.store().join("quarantine"))
        .unwrap()
        .collect();
    assert_eq!(kept.len(), 1);
    let log = home.log();
    assert!(
        log.iter().any(|line| line.contains("quarantine/")),
        "{log:?}"
    );
    assert_eq!(rows(&home, "SELECT count(*) FROM prompt"), ["1"]);
}

#[test]
fn a_turn_that_is_sent_on_again_and_again() {
    // A turn end with the same text as the one before it is dropped.
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.says("Go");
    for number in 0..8 {
        let text = if number < 4 { "first" } else { "second" };
        session.silent(
            "Stop",
            &json!({ "last_assistant_message": text, "stop_hook_active": number > 0 }),
        );
    }
    assert_eq!(
        rows(&home, "SELECT text FROM turn_end ORDER BY number"),
        ["first", "second"]
    );
}

#[test]
fn subagents() {
    // CAP-11
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.says("Go");
    let agent = json!({ "agent_id": "a1", "agent_type": "Explore" });
    session.silent("SubagentStart", &agent);
    let mut call = session.call("Bash", &json!({ "command": "make" }));
    for (name, value) in agent.as_object().unwrap() {
        call[name] = value.clone();
    }
    call["tool_response"] = json!({ "stdout": "made" });
    session.silent("PostToolUse", &call);
    let stop = |kind: &str, text: &str| json!({ "agent_id": "a1", "agent_type": kind, "last_assistant_message": text });
    session.silent("SubagentStop", &stop("Explore", "found it"));
    session.silent("Stop", &stop("Explore", "found more"));
    // The client's own helper sums the session up.
    session.silent("SubagentStop", &stop("", "the whole session"));
    assert_eq!(
        rows(&home, "SELECT prompt, agent_id, agent_type FROM tool_event"),
        ["1|a1|Explore"]
    );
    assert_eq!(
        rows(
            &home,
            "SELECT speaker, agent_type, text FROM turn_end ORDER BY number"
        ),
        ["subagent|Explore|found it", "subagent|Explore|found more"]
    );
    assert_eq!(rows(&home, "SELECT count(*) FROM summary"), ["0"]);
}

#[test]
fn the_clients_summary_is_kept_unless_something_was_private() {
    for (prompt, kept) in [
        ("Add all limits", 1),
        ("Add <private>secret</private> all limits", 0),
    ] {
        let home = home();
        let mut session = Played::new(&home, SESSION);
        session.says(prompt);
        let answer = "The login checks all limits now.";
        session.silent("Stop", &json!({ "last_assistant_message": answer }));
        session.silent("PreCompact", &json!({ "trigger": "auto" }));
        session.silent(
            "PostCompact",
            &json!({ "compact_summary": "Limits were added." }),
        );
        assert_eq!(
            rows(
                &home,
                "SELECT count(*) FROM turn_end WHERE speaker = 'compact'"
            ),
            [kept.to_string()],
            "{prompt}"
        );
        home.settle();
        assert!(note(&home).contains("- precompact"), "{prompt}");
    }
}

#[test]
fn the_clients_summary_tells_what_was_found_and_is_open() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.says("Let vouchers of the shop expire");
    session.silent("PreCompact", &json!({ "trigger": "auto" }));
    let summary = "<analysis>Long.</analysis><summary>\n4. Errors and fixes:\n   - `make vouchers` refused an \
        empty date:\n      - The parser in `voucher.rs` now takes it.\n6. All user messages:\n   - \"Let vouchers \
        of the shop expire\"\n   - \"Never delete vouchers of test customers\"\n7. Pending Tasks:\n   - Describe \
        the field in docs/voucher.md\n8. Current Work:\n   Old vouchers were being migrated.\n</summary>";
    session.silent("PostCompact", &json!({ "compact_summary": summary }));
    session.ends();
    home.settle();
    let open = note(&home);
    for told in [
        "**Asked:**\n- Never delete vouchers of test customers\n",
        "**Found:**\n- `make vouchers` refused an empty date: The parser in `voucher.rs` now takes it.\n",
        "**Next steps:**\n- Describe the field in docs/voucher.md\n",
        "Old vouchers were being migrated.",
    ] {
        assert!(open.contains(told), "{told:?} {open}");
    }
    // It is Claude's text.
    assert!(
        !open.contains("**Said:**") && !open.contains("**Rules:**"),
        "{open}"
    );
    // An answer behind it tells what is open then.
    session.silent(
        "Stop",
        &json!({ "last_assistant_message": "All old vouchers are migrated, and docs/voucher.md has the field." }),
    );
    session.ends();
    home.settle();
    let done = note(&home);
    assert!(
        !done.contains("**Next steps:**") && !done.contains("being migrated"),
        "{done}"
    );
}

#[test]
fn a_prompt_that_runs_sixty_times_has_one_note() {
    let home = home();
    let run = |number: i64, file: Option<&str>| {
        let id = format!("run-{number}");
        let mut session = Played::new(&home, &id);
        let prompt = json!({ "prompt": "Look whether a dependency has a new major version" });
        // It may bring the note of the runs before.
        home.hook(&session.payload("UserPromptSubmit", &prompt))
            .well();
        if let Some(file) = file {
            session.edits(file);
        }
        let answer = format!(
            "Nothing new: the newest of the {number} releases is in use, since serde waits."
        );
        session.silent("Stop", &json!({ "last_assistant_message": answer }));
        session.ends();
    };
    for number in 1..=60 {
        run(number, None);
    }
    home.settle();
    let text = note(&home);
    assert!(
        text.contains("**Repeated:** × 60, last 2 Jan 2026\n"),
        "{text}"
    );
    assert!(text.contains("prov_session: run-1\n"), "{text}");
    assert!(text.contains("the 60 releases"), "{text}");
    let next = home.hook(&home.start("next", "startup")).well();
    assert_eq!(next.matches("a new major version").count(), 1, "{next}");
    // A run that changes something has a note of its own.
    run(61, Some("src/lib.rs"));
    home.settle();
    assert_eq!(home.notes().len(), 2);
}

#[test]
fn sessions_without_a_person_are_recorded_as_the_setting_says() {
    for (value, prompts, tools) in [("on", 1, 1), ("summary", 1, 0), ("off", 0, 0)] {
        let home = home();
        home.write(
            "config.json",
            json!({ "recording": { "headless": value } }).to_string(),
        );
        let session = Played::new(&home, SESSION);
        let prompt = session.payload(
            "UserPromptSubmit",
            &json!({ "prompt": "List open orders of today" }),
        );
        let tool = json!({ "tool_name": "Bash", "tool_use_id": "t", "tool_input": { "command": "make orders" },
                           "tool_response": { "stdout": "3" } });
        let tool = session.payload("PostToolUse", &tool);
        home.hook(&home.start("by a person", "startup")).well();
        for payload in [&prompt, &tool] {
            let hook = home.hook_with(payload.to_string());
            assert_eq!(
                hook.env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli").run().well(),
                NO_OP
            );
        }
        let count = |table: &str| {
            rows(
                &home,
                &format!("SELECT count(*) FROM {table} WHERE session = '{SESSION}'"),
            )
        };
        assert_eq!(count("prompt"), [prompts.to_string()], "{value}");
        assert_eq!(count("tool_event"), [tools.to_string()], "{value}");
    }
}

#[test]
fn the_task_of_a_subagent_is_kept() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.says("Go");
    let input =
        json!({ "prompt": "Look <private>at x</private> here", "subagent_type": "Explore" });
    for tool in ["Agent", "Bash"] {
        let call = session.call(tool, &input);
        session.silent("PreToolUse", &call);
    }
    assert_eq!(
        rows(&home, "SELECT kind, prompt FROM delegation"),
        ["Explore|Look  here"]
    );
}

#[test]
fn a_batch_tells_of_failures_that_no_other_event_tells() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.says("Go");
    session.edits("a.rs");
    let call = |id: &str, response: &str| {
        json!({ "tool_name": "Edit", "tool_use_id": id, "tool_input": { "file_path": "/x/b.rs" },
                "tool_response": response })
    };
    session.silent(
        "PostToolBatch",
        &json!({ "tool_calls": [
            call("t-1", "The file was updated."),
            call("t-2", "<tool_use_error>String to replace not found in file.</tool_use_error>"),
        ] }),
    );
    assert_eq!(
        rows(
            &home,
            "SELECT id, outcome, error FROM tool_event ORDER BY number"
        ),
        [
            "t-1|ok|-",
            "t-2|failed|String to replace not found in file."
        ]
    );
}

#[test]
fn a_session_whose_client_is_gone_is_closed_and_noted() {
    let ended = home();
    play(&ended);
    ended.settle();
    let lost = home();
    let gone = "999999999";
    let by = |payload: &Value| {
        lost.hook_with(payload.to_string())
            .env("CLAUDE_PID", gone)
            .run()
            .well();
    };
    // The same events, all but the last.
    let template = home();
    for payload in &play(&template)[..6] {
        let text = payload.to_string();
        let text = text.replace(&root_in_json(&template), &root_in_json(&lost));
        by(&serde_json::from_str(&text).unwrap());
    }
    lost.settle();
    // Nobody can tell whether a process without a start is there: its silence does.
    let later = lost.hook_with(lost.start("another", "startup").to_string());
    later
        .env("ANAMNESIS_NOW", "2026-01-02T03:34:06Z")
        .run()
        .well();
    lost.settle();
    assert_eq!(
        rows(
            &lost,
            &format!("SELECT state, end_reason FROM session WHERE id = '{SESSION}'")
        ),
        ["completed|lost"]
    );
    let own = |home: &TestHome| note(home).replace(&*home.root().to_string_lossy(), "[ROOT]");
    assert_eq!(
        own(&lost),
        own(&ended).replace("- session-end\n", "- lost\n")
    );
}

#[test]
fn a_session_whose_folder_was_excluded_meanwhile_leaves_no_note() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says("Add limits to the login");
    session.edits("a.rs");
    let exclude = json!({ "exclude": [home.project()] });
    home.write("config.json", exclude.to_string());
    session.silent("SessionEnd", &json!({ "reason": "other" }));
    let later = home.hook_with(home.start("another", "startup").to_string());
    let later = later.env("ANAMNESIS_NOW", "2026-01-02T09:00:00Z");
    later
        .env("CLAUDE_PROJECT_DIR", home.root().join("elsewhere"))
        .run()
        .well();
    home.settle();
    home.command(["work"])
        .env("ANAMNESIS_NOW", "2026-01-02T09:00:00Z")
        .run()
        .well();
    home.settle();
    assert_eq!(home.notes(), [""; 0]);
    let state = format!("SELECT state, end_reason FROM session WHERE id = '{SESSION}'");
    assert_eq!(rows(&home, &state), ["completed|lost"]);
}

/// Plays a session with one prompt, one edit and one answer, to its end.
fn play_whole_session(home: &TestHome) {
    let mut session = Played::new(home, SESSION);
    session.start();
    session.says("Add limits to the login");
    session.edits("src/login.rs");
    session.answers("The login has limits now, because the tests asked for them.");
    session.ends();
    home.settle();
}

#[test]
fn a_session_with_a_clock_of_the_year_2100_deletes_no_record() {
    let home = home();
    play_whole_session(&home);
    let count = || rows(&home, "SELECT count(*) FROM tool_event");
    for time in ["2100-01-02T03:04:05Z", "2100-01-02T23:04:05Z"] {
        let maintain = home.command(["maintain"]).env("ANAMNESIS_NOW", time);
        maintain.run().well();
        assert_eq!(count(), ["1"], "{time}");
    }
    // A clock that goes on for more than a day is right.
    let later = home.command(["maintain"]);
    let later = later.env("ANAMNESIS_NOW", "2100-01-03T03:04:05Z").run();
    later.well();
    assert_eq!(count(), ["0"]);
}

#[test]
fn records_are_kept_for_thirty_days_or_for_ever() {
    let home = home();
    play_whole_session(&home);
    let left_at = |day: &str| {
        let time = format!("2026-{day}T03:04:05Z");
        let maintain = home.command(["maintain"]).env("ANAMNESIS_NOW", time);
        maintain.run().well();
        let count = |table: &str| rows(&home, &format!("SELECT count(*) FROM {table}")).join("");
        ["prompt", "tool_event", "turn_end", "session"].map(count)
    };
    home.run("config set retention.records_days 0").well();
    for day in ["01-08", "01-14", "01-20", "01-26", "01-31", "02-02"] {
        assert_eq!(left_at(day), ["1", "1", "1", "1"], "{day}");
    }
    home.run("config set retention.records_days 32").well();
    assert_eq!(left_at("02-02"), ["1", "1", "1", "1"]);
    home.run("config unset retention.records_days").well();
    // The session's row stays.
    assert_eq!(left_at("02-02"), ["0", "0", "0", "1"]);
    assert!(note(&home).contains("has limits now"));
}

#[test]
fn a_session_installed_in_its_middle_has_its_beginning() {
    let home = home();
    let before = |mut turn: Value| {
        turn["timestamp"] = "2026-01-02T03:00:00Z".into();
        turn
    };
    home.write_transcript(
        SESSION,
        &[
            before(asked("Add limits to the login")),
            before(edited("/srv/shop/early.rs")),
        ],
    );
    let mut session = Played::new(&home, SESSION);
    session.says("and now the cart");
    session.edits("late.rs");
    session.answers("The cart has limits, too.");
    session.ends();
    home.settle();
    let text = note(&home);
    assert!(text.contains("title: Add limits to the login"), "{text}");
    assert!(text.contains("early.rs"), "{text}");
    assert!(text.contains("late.rs"), "{text}");
    assert!(
        text.contains("**Outcome:** The cart has limits, too."),
        "{text}"
    );
}

#[test]
fn a_turn_that_was_broken_off_has_what_was_said_until_then() {
    // Without a `Stop`, the last answer is read from the transcript.
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says("Add limits to the login");
    session.edits("a.rs");
    home.write_transcript(
        SESSION,
        &[
            asked("Add limits to the login"),
            anamnesis_testkit::home::answered("I begin with the limiter."),
        ],
    );
    session.ends();
    home.settle();
    assert!(note(&home).contains("**Outcome:** I begin with the limiter."));
}

#[test]
fn limits_of_what_is_stored() {
    // Every stored text has a limit; of a written file only the size and the hash are kept.
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.says(&format!("{}{}", "a".repeat(7_000), "é".repeat(7_000)));
    let long = "line of output\n".repeat(20_000);
    session.uses(
        "Bash",
        &json!({ "command": long }),
        &json!({ "stdout": long }),
    );
    session.fails("Bash", &json!({ "command": "x", "deep": [[long]] }), &long);
    session.uses(
        "Write",
        &json!({ "file_path": "/x/a.rs", "content": long }),
        &json!({ "type": "create", "filePath": "/x/a.rs", "content": long }),
    );
    session.answers(&long);
    let lengths = |query: &str| -> Vec<usize> {
        rows(&home, query)
            .iter()
            .map(|row| row.parse().unwrap())
            .collect()
    };
    assert!(lengths("SELECT length(text) FROM prompt")[0] < 8_100);
    assert!(lengths("SELECT length(text) FROM turn_end")[0] < 8_100);
    for length in lengths("SELECT length(CAST(input AS BLOB)) FROM tool_event") {
        assert!(length <= 8 * 1024, "{length}");
    }
    for length in
        lengths("SELECT length(CAST(response AS BLOB)) FROM tool_event WHERE response IS NOT NULL")
    {
        assert!(length <= 2 * 1024, "{length}");
    }
    assert!(lengths("SELECT length(error) FROM tool_event WHERE error IS NOT NULL")[0] < 4_100);
    for row in rows(&home, "SELECT input FROM tool_event") {
        serde_json::from_str::<Value>(&row).unwrap();
    }
    let written = &rows(&home, "SELECT input FROM tool_event WHERE tool = 'Write'")[0];
    assert_eq!(written, r#"{"file_path":"/x/a.rs"}"#);
    assert_eq!(rows(&home, "SELECT action FROM file_use"), ["created"]);
}

#[test]
fn no_byte_of_what_is_private_is_under_the_store() {
    // CAP-03: every writer has a marker of its own.
    let home = home_with_notes();
    let mut session = Played::new(&home, SESSION);
    let private = |writer: &str| format!("<private>{writer}-{MARKER}</private>");
    session.start();
    session.says(&format!("Count the geese {}", private("prompt")));
    session.uses(
        "Bash",
        &json!({ "command": private("input") }),
        &json!({ "stdout": private("response") }),
    );
    session.fails("Bash", &json!({ "command": "x" }), &private("error"));
    let task = json!({ "prompt": private("task"), "subagent_type": private("type") });
    let call = session.call("Agent", &task);
    session.silent("PreToolUse", &call);
    session.edits(&private("path"));
    // With the journal locked the same goes to the spool.
    let lock = Connection::open(home.store().join("journal.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    session.says(&format!("And the cart {}", private("spool")));
    assert_eq!(files_with(&home, MARKER.as_bytes()), [""; 0]);
    drop(lock);
    home.write_transcript(
        SESSION,
        &[asked(&private("transcript")), edited(&private("file"))],
    );
    session.silent(
        "PreCompact",
        &json!({ "custom_instructions": private("instructions") }),
    );
    session.silent(
        "PostCompact",
        &json!({ "compact_summary": private("compact") }),
    );
    session.answers(&format!("Done {}.", private("answer")));
    let remember = format!("/memory-remember it {}", private("remember"));
    let remember = json!({ "prompt": remember, "prompt_id": "p-9" });
    let remember = session.payload("UserPromptSubmit", &remember);
    assert!(home.hook(&remember).well().contains("saved #"));
    session.ends();
    home.settle();
    assert_eq!(files_with(&home, MARKER.as_bytes()), [""; 0]);
    let mut printed = home.run("doctor --verbose").stdout;
    printed.push_str(&home.run("status").stdout);
    printed.push_str(&home.run("list --everywhere").stdout);
    assert!(!printed.contains(MARKER));
}

#[test]
fn no_secret_of_an_event_reaches_the_disk() {
    // CAP-01, CAP-02
    let token = concat!("gh", "p_0123456789abcdefghijABCDEFGHIJ456789");
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says(&format!("Deploy with {token}"));
    session.uses(
        "Bash",
        &json!({ "command": format!("curl -H 'Authorization: Bearer {token}'"), "env": { "TOKEN": token } }),
        &json!({ "stdout": format!("{}{token}", "x\n".repeat(30_000)), "stderr": token }),
    );
    session.fails(
        "Bash",
        &json!({ token: token }),
        &format!("denied: {token}"),
    );
    session.edits(&format!("{token}.rs"));
    let lock = Connection::open(home.store().join("journal.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    session.says(&format!("And again {token}"));
    drop(lock);
    session.silent("PostCompact", &json!({ "compact_summary": token }));
    session.answers(&format!("Deployed with {token}."));
    session.ends();
    home.settle();
    assert_eq!(files_with(&home, token.as_bytes()), [""; 0]);
    assert!(note(&home).contains("[REDACTED]"));
}

#[test]
fn what_own_patterns_match_reaches_no_disk() {
    let home = home();
    home.command(["config", "set", "redact.patterns"])
        .args(["cust-????", "*@acme.example", "müller gmbh"])
        .run()
        .well();
    let mut session = Played::new(&home, SESSION);
    session.start();
    session.says("Send the invoice of CUST-0042 to Jane@ACME.example at MÜLLER GmbH");
    session.uses(
        "Bash",
        &json!({ "command": "mail -s CUST-0042 Jane@ACME.example" }),
        &json!({ "stdout": "sent to MÜLLER GmbH", "stderr": "", "interrupted": false }),
    );
    session.answers("The invoice of CUST-0042 is sent.");
    session.ends();
    home.settle();
    let note = note(&home);
    assert!(
        note.contains("Send the invoice of [REDACTED] to [REDACTED] at [REDACTED]"),
        "{note}"
    );
    home.command(["write", "--title", "Terms of MÜLLER GmbH"])
        .input("CUST-0042 pays late.")
        .run()
        .well();
    for text in ["CUST-0042", "Jane@ACME.example", "MÜLLER GmbH"] {
        assert_eq!(files_with(&home, text.as_bytes()), [""; 0]);
    }
}

#[test]
fn nothing_is_left_running() {
    let home = home();
    play(&home);
    // Fails when a process of this home does not end.
    home.settle();
    let before = home.log();
    home.work();
    assert_eq!(home.log(), before);
}

#[test]
fn a_note_has_the_name_of_the_session_and_what_its_tools_declare() {
    let home = home();
    let mut session = Played::new(&home, SESSION);
    session.start();
    let named = json!({ "prompt": "add limits to the login", "session_title": "login limits" });
    session.silent("UserPromptSubmit", &named);
    let question = json!([{ "question": "Which store?", "options": [{ "label": "SQLite" }] }]);
    session.uses(
        "AskUserQuestion",
        &json!({ "questions": question }),
        &json!({ "questions": question, "answers": { "Which store?": "SQLite" } }),
    );
    session.uses(
        "TodoWrite",
        &json!({ "todos": [{ "content": "test the limits", "status": "pending" }] }),
        &json!({}),
    );
    session.uses(
        "Bash",
        &json!({ "command": "git commit -m x" }),
        &json!({ "stdout": "[main 1a2b3c4] Add limits\n 1 file changed" }),
    );
    session.answers("The limits are in, but nothing tests them yet.");
    session.ends();
    let text = note(&home);
    assert!(text.contains("\ntitle: login limits\n"), "{text}");
    for part in [
        "**Decided:**\n- Which store? → SQLite\n",
        "**Committed:**\n- 1a2b3c4 Add limits\n",
        "**Next steps:**\n- test the limits\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // `/rename` is not a prompt. Only the transcript has the new name.
    let renamed = json!({ "type": "custom-title", "customTitle": "limits of the login" });
    home.write_transcript(SESSION, &[renamed]);
    session.says("thanks");
    session.ends();
    assert!(note(&home).contains("\ntitle: limits of the login\n"));
}
