//! Scenarios of the server: tools that the model calls, and commands of a person that call one.

use std::{fs, path::PathBuf, thread, time::Duration};

use anamnesis_testkit::client::{Ask, ClientRun, Permissions, Sandbox};
use anamnesis_testkit::messages_api::{Block, Kind, Request, Script, text, tool};
use anamnesis_testkit::process::{Context as _, Result, TestFailure};
use anamnesis_testkit::tmux::Terminal;
use serde_json::{Value, json};

use super::machines::{anamnesis, anamnesis_with};
use super::recalling;
use super::scenarios::{Stage, check, clean, last_request, tool_result, untroubled};
use super::store::{Note, Store};

/// The client's name for the server, and its prefix for the server's tools.
const SERVER: &str = "plugin:anamnesis:memory";
const PREFIX: &str = "mcp__plugin_anamnesis_memory__";

const STUB: &str = "Integration tests need the stub server";
const BODY: &str = "`make stub` binds port 9090; without it the login tests hang.";
const PORTS: &str = "Port 9090 belongs to the stub";

/// How long a dialog ignores keys after it appears.
pub(super) const DIALOGUE: Duration = Duration::from_secs(2);

/// A text that would do harm in a shell.
const HOSTILE: &str = "it's the stub; $(touch a) `touch b` \"c' && touch d | tee e";

/// Returns a call of one of the server's tools.
pub(super) fn ours(name: &str, input: Value) -> Block {
    tool(format!("{PREFIX}{name}"), input)
}

/// The model reads the memory with every read-only tool and with resources.
pub(super) fn looking(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let stub = write(&machine, &store, STUB, BODY)?;
    let ports = write(
        &machine,
        &store,
        PORTS,
        "See [[Integration tests need the stub server]].",
    )?;
    let uri = format!("memory://{}", stub.short_id());
    let here = json!({ "project": "." });
    let calls = [
        (
            ours(
                "memory_search",
                json!({ "query": "stub", "detail": "index" }),
            ),
            vec![stub.short_id(), STUB, PORTS],
        ),
        (
            ours("memory_search", json!({ "query": "login tests hang" })),
            vec![BODY, STUB],
        ),
        (
            ours(
                "memory_get",
                json!({ "ids": [stub.short_id(), ports.short_id()] }),
            ),
            vec![BODY, PORTS],
        ),
        (ours("memory_list", here.clone()), vec![STUB, PORTS]),
        (
            ours("memory_timeline", json!({ "around": stub.short_id() })),
            vec![PORTS],
        ),
        (
            ours(
                "memory_pathway",
                json!({ "from": stub.short_id(), "to": ports.short_id() }),
            ),
            vec![STUB, PORTS],
        ),
        (ours("memory_review", here), vec!["stale", "proposals"]),
        (
            ours("memory_status", json!({})),
            vec!["by_project", "github.com/acme/shop"],
        ),
        (
            tool("ListMcpResourcesTool", json!({ "server": SERVER })),
            vec![STUB, "[how-to]"],
        ),
        (
            tool(
                "ReadMcpResourceTool",
                json!({ "server": SERVER, "uri": uri }),
            ),
            vec!["login tests hang"],
        ),
    ];
    let before = store.note_files();
    let (calls, wanted): (Vec<Block>, Vec<_>) = calls.into_iter().unzip();
    let first = machine.api().requests_of(Kind::Main).len();
    let (_, results) = calling(&machine, "Look around in the memory", None, &calls)?;
    let requests = machine.api().requests_of(Kind::Main);
    let first = requests.get(first).map(Request::text).unwrap_or_default();
    for told in [
        SERVER,
        "memory_search",
        "Anamnesis stores this person's notes",
    ] {
        check(first.contains(told), || {
            format!("the model is not told {told:?}")
        })?;
    }
    for ((call, wanted), (result, failed)) in calls.iter().zip(wanted).zip(&results) {
        for part in wanted {
            check(!failed && result.contains(part), || {
                format!("{part:?} is not in what {call:?} gave: {result}")
            })?;
        }
    }
    // The session's own note was written meanwhile.
    let after = store.note_files();
    let is_kept = |(path, bytes)| after.get(path) == Some(bytes);
    check(before.iter().all(is_kept), || {
        "looking changed a note".to_owned()
    })
}

/// The model writes, amends, links, forgets and manages a task. Each change is recorded as an
/// agent's.
pub(super) fn writing(stage: &Stage) -> Result<()> {
    const FACT: &str = "The broker keeps ten minutes of messages";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let stub = write(&machine, &store, STUB, BODY)?;
    let before = store.note_files();

    let fact = json!({ "title": FACT, "body": "Then it drops the oldest.", "kind": "fact" });
    let mut claimed = fact.clone();
    claimed["prov_source"] = "human".into();
    let calls = [
        ours(
            "memory_search",
            json!({ "query": "broker", "detail": "index" }),
        ),
        ours("memory_get", json!({ "ids": [stub.short_id()] })),
        ours("memory_write", fact.clone()),
        ours("memory_write", claimed),
        ours("memory_write", fact),
        ours(
            "memory_amend",
            json!({ "id": stub.short_id(), "body": "Nothing listens there." }),
        ),
    ];
    let (answer, results) = calling(&machine, "Keep what we learned", None, &calls)?;
    let failed: Vec<bool> = results.iter().map(|(_, failed)| *failed).collect();
    check(failed == [false, false, false, true, true, false], || {
        format!("what failed is {failed:?} of {results:#?}")
    })?;
    let session = answer.session.as_str();
    let note = store.wait_for("the note of the model", |note| note.title() == FACT)?;
    for (key, value) in [
        ("type", "semantic"),
        ("kind", "fact"),
        ("project", "github.com/acme/shop"),
        ("scope", "portable"),
        ("prov_source", "human"),
        ("prov_actor", "agent"),
        ("prov_session", session),
        ("confidence", "0.9"),
    ] {
        note.expect(key, Some(value))?;
    }
    let copies = store.notes();
    let copies = copies.iter().filter(|note| note.title() == FACT).count();
    check(copies == 1, || format!("the fact is there {copies} times"))?;
    // A person's note stays unchanged, and the model's change to it is pending.
    let after = store.note_files();
    let is_kept = |(path, bytes)| after.get(path) == Some(bytes);
    check(before.iter().all(is_kept), || {
        "the model changed a note of the person's".to_owned()
    })?;
    match store.notes_of_this_machine().as_slice() {
        [proposal] => proposal.expect("state", Some("proposed"))?,
        other => return Err(TestFailure::new(format!("not one proposal: {other:#?}"))),
    }

    let calls = [
        ours(
            "memory_amend",
            json!({ "id": note.short_id(), "addition": "Ask the broker's log." }),
        ),
        ours(
            "memory_connect",
            json!({ "from": note.short_id(), "to": stub.short_id(), "relation": "elaborates" }),
        ),
        ours(
            "memory_task",
            json!({ "action": "create", "text": "Measure the broker", "about": [note.short_id()] }),
        ),
        ours(
            "memory_feedback",
            json!({ "id": stub.short_id(), "rating": "good" }),
        ),
    ];
    let (_, results) = calling(&machine, "And go on with it", Some(session), &calls)?;
    all_worked(&results)?;
    let amended = store.wait_for("the note with more text", |found| {
        found.id() == note.id() && found.body.contains("Ask the broker's log.")
    })?;
    let link = format!("- elaborates {}", stub.id());
    check(amended.lasting().contains(&link), || {
        format!("{link:?} is not in {amended:?}")
    })?;
    let task = store.wait_for("the task", |note| note.title() == "Measure the broker")?;
    for (key, value) in [
        ("kind", "task"),
        ("status", "pending"),
        ("prov_actor", "agent"),
    ] {
        task.expect(key, Some(value))?;
    }

    let calls = [
        ours(
            "memory_task",
            json!({ "action": "update", "id": task.short_id(), "status": "done" }),
        ),
        ours("memory_forget", json!({ "id": note.short_id() })),
    ];
    let (_, results) = calling(&machine, "It is measured", Some(session), &calls)?;
    all_worked(&results)?;
    store.wait_for("the task that is done", |found| {
        found.id() == task.id() && found.value("status") == Some("done")
    })?;
    store.wait_for("the tombstone", |found| {
        found.id() == note.id() && found.value("state") == Some("forgotten")
    })?;
    anamnesis(&machine, &["restore", note.short_id()])?;
    let restored = store.wait_for("the note that came back", |found| found.title() == FACT)?;
    check(restored.lasting() == amended.lasting(), || {
        format!("{restored:?} is not {amended:?}")
    })
}

/// A slash command takes any text by its short and its long name, without a shell.
pub(super) fn typed(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let stub = write(&machine, &store, STUB, BODY)?;
    let before = files(&machine)?;

    for prefix in ["/", "/anamnesis:"] {
        let search = ours(
            "memory_search",
            json!({ "query": HOSTILE, "detail": "index", "k": 10 }),
        );
        let prompt = format!("{prefix}memory-search {HOSTILE}");
        let found = tool_call_result(&machine, &prompt, search)?;
        check(found.contains(stub.short_id()), || {
            format!("{prompt} did not find the note: {found}")
        })?;
        check(last_request(&machine)?.text().contains(HOSTILE), || {
            format!("the text of {prompt} did not reach the model as it was typed")
        })?;

        let review = ours("memory_review", json!({ "project": ".", "k": 5 }));
        tool_call_result(&machine, &format!("{prefix}memory-review"), review)?;

        let kept = format!("{HOSTILE} {prefix}");
        plain(&machine, &format!("{prefix}memory-remember {kept}"))?;
        let note = store.wait_for("the note that was typed", |note| {
            note.body.trim_end() == kept.trim_end()
        })?;
        note.expect("prov_source", Some("human"))?;
        note.expect("prov_actor", None)?;

        for (command, part) in [
            ("memory-status", "store: "),
            ("memory-why", "anamnesis"),
            ("memory-doctor", "store"),
            ("memory-setup", ".anamnesis"),
        ] {
            plain(&machine, &format!("{prefix}{command}"))?;
            let prompt = last_request(&machine)?.prompt();
            check(prompt.contains(part), || {
                format!("{part:?} is not in what {prefix}{command} shows:\n{prompt}")
            })?;
        }
    }

    // A short name that the client has, too, is not ours. `memory-pause` is one, so it has another name.
    for name in command_names(stage)? {
        plain(&machine, &format!("/{name}"))?;
        let prompt = last_request(&machine)?.prompt();
        check(prompt.contains(&format!("anamnesis:{name}")), || {
            format!("/{name} is a command of the client:\n{prompt}")
        })?;
    }
    plain(&machine, "/memory-off")?;
    let prompt = last_request(&machine)?.prompt();
    check(prompt.contains("paused github.com/acme/shop"), || {
        format!("not paused:\n{prompt}")
    })?;
    anamnesis(&machine, &["on"])?;
    check(files(&machine)? == before, || {
        "what was typed was run".to_owned()
    })
}

/// Returns the names of the plugin's commands, without the former ones.
fn command_names(stage: &Stage) -> Result<Vec<String>> {
    let folder = stage.plugin.join("commands");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).context(folder.display())? {
        let path = entry.context(folder.display())?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        // The switch is typed below.
        if !["memory-off", "memory-pause"].contains(&name.as_ref()) {
            names.push(name.into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A hook answers a person's slash commands on the screen, and no request reaches the model.
pub(super) fn answered(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let stub = write(&machine, &store, STUB, BODY)?;
    let forget = format!("/memory-forget {}", stub.short_id());
    let terminal = Terminal::start(&machine)?;
    let before = machine.api().requests_of(Kind::Main).len();
    for (typed, part) in [
        ("/memory-status", "store: ~/.anamnesis"),
        ("/memory-doctor", "no other memory found"),
        ("/memory-off", "paused github.com/acme/shop"),
        ("/memory-on", "→ anamnesis on"),
        ("/memory-setup link", "kept at the newest version"),
        (
            "/memory-config session_line problems",
            "→ anamnesis config set session_line problems",
        ),
        ("/memory-search stub", "make stub"),
        (&forget, "\"Integration tests need the stub server\""),
    ] {
        terminal.send(typed)?;
        terminal.wait_for(part)?;
        let name = typed.trim_start_matches('/').split_whitespace().next();
        stage.keep_screen(name.unwrap_or_default(), &terminal)?;
    }
    store.wait_for("the tombstone", |found| {
        found.id() == stub.id() && found.value("state") == Some("forgotten")
    })?;
    // The person forgot it, so nothing is left to review.
    let review = anamnesis(&machine, &["review", "--list"])?;
    check(!review.contains(stub.short_id()), || review.clone())?;
    let after = machine.api().requests_of(Kind::Main).len();
    check(after == before, || {
        format!("{} requests reached the model", after - before)
    })?;
    untroubled(&terminal.screen()?)?;
    terminal.exit()
}

/// A person adds, lists, starts and finishes a task. The hook does it before Claude sees the prompt.
pub(super) fn tasks(stage: &Stage) -> Result<()> {
    const TASK: &str = "Rotate the staging key";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    anamnesis(&machine, &["status"])?;
    let terminal = Terminal::start(&machine)?;
    let typed = |prompt: &str, answer: &str, told: &str| -> Result<()> {
        machine.api().play(Script::turns([text(answer)]));
        terminal.send(prompt)?;
        terminal.wait_for(answer)?;
        let sent = last_request(&machine)?.text();
        check(sent.contains(told), || {
            format!("{told:?} is not in what {prompt} sent:\n{sent}")
        })
    };
    let add = format!("/memory-task {TASK}");
    typed(&add, "It is on the list.", "anamnesis: saved #")?;
    let task = store.wait_for("the task", |note| note.title() == TASK)?;
    for (key, value) in [
        ("kind", Some("task")),
        ("status", Some("pending")),
        ("prov_actor", None),
    ] {
        task.expect(key, value)?;
    }
    let before = machine.api().requests_of(Kind::Main).len();
    terminal.send("/memory-task")?;
    terminal.wait_for(&format!("{}  pending", task.short_id()))?;
    stage.keep_screen("memory-task", &terminal)?;
    let after = machine.api().requests_of(Kind::Main).len();
    check(after == before, || "listing tasks took a turn".to_owned())?;
    typed(
        "/memory-task start",
        "Which task?",
        "needs the id of a task",
    )?;
    for (verb, status) in [("start", "active"), ("done", "done")] {
        let prompt = format!("/memory-task {verb} {}", task.short_id());
        typed(&prompt, &format!("Now it is {status}."), "anamnesis: ")?;
        store.wait_for(status, |found| {
            found.id() == task.id() && found.value("status") == Some(status)
        })?;
    }
    let tasks = store.notes();
    let tasks = tasks
        .iter()
        .filter(|note| note.value("kind") == Some("task"));
    check(tasks.count() == 1, || {
        "a command became a task of its own".to_owned()
    })?;
    untroubled(&terminal.screen()?)?;
    terminal.exit()
}

/// A line on the screen says what came with a prompt.
pub(super) fn prompt_line(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    write(&machine, &store, STUB, BODY)?;
    recalling::write_newer(&machine)?;
    let answer = "Start the stub first: make stub.";
    machine.api().play(Script::turns([text(answer)]));
    let terminal = Terminal::start(&machine)?;
    terminal.send("Why do the login tests hang without the stub server?")?;
    terminal.wait_for(answer)?;
    let screen = terminal.screen()?;
    check(screen.contains("recalled \"Integration"), || screen.clone())?;
    stage.keep_screen("prompt-line", &terminal)?;
    terminal.exit()
}

/// A person mentions a note with `@`, and the model receives it.
pub(super) fn mentioned(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    write(&machine, &store, PORTS, "It is bound by `make stub`.")?;
    let note = write(
        &machine,
        &store,
        "Kestrel is the build host",
        "Its disk is small.",
    )?;
    let answer = "Kestrel has a small disk.";
    machine.api().play(Script::turns([text(answer)]));
    let terminal = Terminal::start(&machine)?;
    terminal.send(&format!("@{SERVER}:memory://{} what of it?", note.id()))?;
    terminal.wait_for(answer)?;
    let sent = last_request(&machine)?.text();
    for part in ["resource", "Its disk is small."] {
        check(sent.contains(part), || {
            format!("{part:?} of the note that was mentioned is not in\n{sent}")
        })?;
    }
    untroubled(&terminal.screen()?)?;
    terminal.exit()
}

/// The lesson that the model distils in the scenario below.
const LESSON: &str = "Restart the broker before the tests";

/// Titles of other notes, as many as a reflection of a week has.
const OTHERS: [&str; 7] = [
    "The gateway listens on port 9090",
    "Deploys wait for the smoke test",
    "Fixtures live below tests/data",
    "Prices are stored in cents",
    "The nightly export reads the replica",
    "Only the release manager pushes tags",
    "Logs older than thirty days are deleted",
];

/// The session's model distils session notes, and the person decides in the client's dialog: use at
/// once, or leave, then edit and approve, or reject. An answer that is invalid, repeated, or older
/// than a change of a session note is refused.
pub(super) fn reflecting(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    anamnesis(&machine, &["status"])?;
    let used = || {
        store
            .notes()
            .into_iter()
            .find(|note| note.title() == LESSON)
    };
    let marked = || {
        let notes = store.notes();
        notes
            .iter()
            .filter(|note| note.has_tag("reflected"))
            .count()
    };

    // Left, edited, approved.
    add_sessions(&machine, 1)?;
    let left = proposed(stage, &machine, &store, (&["Escape", "Escape"], &[]))?;
    check(used().is_none() && marked() == 0, || {
        "what was left is used".to_owned()
    })?;
    let text = machine.home().join("edited.txt");
    fs::write(&text, "`make broker`, and wait for port 5672.").context(text.display())?;
    let edited = fs::File::open(&text).context(text.display())?;
    anamnesis_with(&machine, &["edit", left.id(), "--stdin"], edited)?;
    anamnesis(&machine, &["review", "--approve", left.id()])?;
    let note = used().ok_or_else(|| TestFailure::new("the approved note is not used"))?;
    check(note.lasting().contains("wait for port 5672"), || {
        format!("the edit is not in\n{}", note.lasting())
    })?;
    check(marked() >= 5, || format!("{} notes are marked", marked()))?;
    anamnesis(&machine, &["forget", note.id()])?;

    // Left and rejected.
    add_sessions(&machine, 2)?;
    let before = marked();
    let left = proposed(stage, &machine, &store, (&["Escape", "Escape"], &[]))?;
    anamnesis(&machine, &["review", "--reject", left.id()])?;
    check(used().is_none() && marked() == before, || {
        "what was rejected is used, or its sessions are marked".to_owned()
    })?;

    // Six of eight accepted in the dialog: not the second and the last one. The text of the lesson differs,
    // because a rejected text is not proposed again.
    let mut keys = vec!["Down", "Space"];
    keys.extend(["Down"; OTHERS.len() - 1]);
    keys.extend(["Space", "Down", "Enter"]);
    proposed(stage, &machine, &store, (&keys, &OTHERS))?;
    check(used().is_some() && marked() >= before + 5, || {
        format!("what was accepted is not used, or {} are marked", marked())
    })?;
    let left = store.notes_of_this_machine();
    let left: Vec<&Note> = left
        .iter()
        .filter(|note| OTHERS.contains(&note.title()))
        .collect();
    let mut titles: Vec<&str> = left.iter().map(|note| note.title()).collect();
    titles.sort_by_key(|title| OTHERS.iter().position(|other| other == title));
    check(titles == [OTHERS[0], OTHERS[6]], || {
        format!("{titles:?} were left")
    })?;
    for note in left {
        anamnesis(&machine, &["review", "--reject", note.id()])?;
    }

    // An invalid answer, and the same key again.
    add_sessions(&machine, 3)?;
    let key = asked(&machine)?["key"].clone();
    let good = answer("once more", &[]).to_string();
    let answers = ["Here they are: []", good.as_str()];
    let calls =
        answers.map(|answer| ours("memory_reflect", json!({ "key": key, "answer": answer })));
    let (_, results) = calling(&machine, "And what do they teach?", None, &calls)?;
    let reasons = results.iter().map(|(result, _)| result.as_str());
    let codes: Vec<bool> = reasons
        .zip(["not_as_asked", "bad_key"])
        .map(|(result, code)| result.contains(code))
        .collect();
    check(codes == [true, true], || format!("{results:#?}"))?;

    // Session notes that were changed meanwhile.
    let key = asked(&machine)?["key"].clone();
    let path = session_path(&machine, 3, 1);
    let mut text = fs::read_to_string(&path).context(path.display())?;
    text.push_str("Or were they?\n");
    fs::write(&path, text).context(path.display())?;
    let late = ours("memory_reflect", json!({ "key": key, "answer": good }));
    let (_, results) = calling(&machine, "And what do they teach?", None, &[late])?;
    check(results[0].1 && results[0].0.contains("changed"), || {
        format!("{results:#?}")
    })?;
    let waits = |note: &Note| note.value("state") == Some("proposed");
    check(!store.notes_of_this_machine().iter().any(waits), || {
        "something that was refused is proposed".to_owned()
    })
}

/// Returns a model's answer: the lesson, and notes with other titles.
fn answer(how: &str, others: &[&str]) -> Value {
    let note =
        |title: &str, body: String| json!({ "type": "procedural", "title": title, "body": body });
    let lesson = note(LESSON, format!("`make broker` {how}; else they hang."));
    let others = others.iter();
    let others = others.map(|title| note(title, format!("{title}, as the team agreed in May.")));
    std::iter::once(lesson).chain(others).collect()
}

/// Returns the path of one of a round's five session notes.
fn session_path(machine: &Sandbox, round: usize, number: usize) -> PathBuf {
    let folder = machine.home().join(".anamnesis/memory/episodic");
    folder.join(format!("01JZ00000000000000000000{round}{number}.md"))
}

/// Adds five session notes.
fn add_sessions(machine: &Sandbox, round: usize) -> Result<()> {
    for number in 1..=5 {
        let path = session_path(machine, round, number);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).context(folder.display())?;
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        let note = format!(
            "---\nid: {id}\ntype: episodic\ntitle: Session {round}.{number}\nproject: github.com/acme/shop\n\
             prov_source: session-end\ntags:\n- session\n---\nThe broker was restarted, and the tests passed.\n"
        );
        fs::write(&path, note).context(path.display())?;
    }
    Ok(())
}

/// Lets the model request session notes, and returns the tool's result.
fn asked(machine: &Sandbox) -> Result<Value> {
    let call = ours("memory_reflect", json!({}));
    let (_, results) = calling(machine, "/memory-reflect", None, &[call])?;
    serde_json::from_str(&results[0].0).context("what the tool gave")
}

/// Lets the model distil pending session notes to the lesson and others, presses keys in the dialog, which
/// shows all titles in 80 columns and 24 lines, and returns the lesson that was proposed before that.
fn proposed(
    stage: &Stage,
    machine: &Sandbox,
    store: &Store,
    (keys, others): (&[&str], &[&str]),
) -> Result<Note> {
    let terminal = Terminal::start_with(machine, Permissions::Skipped)?;
    terminal.resize(80, 24)?;
    machine.api().play(Script::turns([
        ours("memory_reflect", json!({})),
        text("These are the notes."),
    ]));
    terminal.send("/memory-reflect")?;
    terminal.wait_for("These are the notes.")?;
    let (given, _) = last_request(machine)?
        .tool_results()
        .pop()
        .unwrap_or_default();
    let given: Value = serde_json::from_str(&given).context("what the tool gave")?;
    let material = given["material"].as_str().unwrap_or_default();
    check(material.contains("The broker was restarted"), || {
        format!("the notes are not in {given}")
    })?;
    let answer = answer(&format!("first, said the keys {keys:?}"), others).to_string();
    machine.api().play(Script::turns([
        ours(
            "memory_reflect",
            json!({ "key": given["key"], "answer": answer }),
        ),
        text("That is decided."),
    ]));
    terminal.send("And what do they teach?")?;
    terminal.wait_for("Decline")?;
    // The dialog ignores keys in its first moments.
    thread::sleep(DIALOGUE);
    let waits = |note: &Note| note.title() == LESSON && note.value("state") == Some("proposed");
    let found = store.notes_of_this_machine().into_iter().find(waits);
    let found = found.ok_or_else(|| TestFailure::new("the note is not proposed"))?;
    // The client cuts a message of more than four lines, and opens the list of notes with a key.
    let asked = terminal.visible()?;
    terminal.press("Right")?;
    let screen = terminal.visible()?;
    let titles = others.iter().chain(&[LESSON]);
    let mut lines = titles.map(|title| format!("☒ how-to: {title}"));
    let is_whole = lines.all(|line| screen.contains(&line)) && !asked.contains("more lines");
    check(is_whole, || {
        format!("a title is not in the dialog, or its message is cut:\n{asked}\n{screen}")
    })?;
    stage.keep_screen("reflect", &terminal)?;
    for key in keys {
        terminal.press(key)?;
    }
    terminal.wait_for("That is decided.")?;
    terminal.exit()?;
    Ok(found)
}

/// Types a command for which the model calls one tool without a permission dialog, and returns the
/// tool's result.
fn tool_call_result(machine: &Sandbox, prompt: &str, call: Block) -> Result<String> {
    machine.api().play(Script::turns([call]));
    clean(&machine.ask(prompt, &Ask::default())?)?;
    tool_result(machine)
}

/// Types a command for which the model calls no tool.
fn plain(machine: &Sandbox, prompt: &str) -> Result<ClientRun> {
    machine.api().play(Script::default());
    let answer = machine.ask(prompt, &Ask::default())?;
    clean(&answer)?;
    Ok(answer)
}

/// Asks in a session in which the model makes these calls, all allowed. Returns each result with
/// "it failed".
fn calling(
    machine: &Sandbox,
    prompt: &str,
    session: Option<&str>,
    calls: &[Block],
) -> Result<(ClientRun, Vec<(String, bool)>)> {
    let turns = calls.iter().cloned();
    machine
        .api()
        .play(Script::turns(turns.chain([text("That is done.")])));
    let how = Ask {
        permissions: Permissions::Skipped,
        resume: session,
        fork: false,
    };
    let answer = machine.ask(prompt, &how)?;
    clean(&answer)?;
    // The client puts the results of one or several prompts into one message.
    let results = last_request(machine)?.tool_results();
    let new = results
        .len()
        .checked_sub(calls.len())
        .and_then(|earlier| results.get(earlier..))
        .ok_or_else(|| TestFailure::new(format!("{} calls gave {results:#?}", calls.len())))?;
    Ok((answer, new.to_vec()))
}

/// Fails unless every call succeeded.
fn all_worked(results: &[(String, bool)]) -> Result<()> {
    check(results.iter().all(|(_, failed)| !failed), || {
        format!("a call failed: {results:#?}")
    })
}

/// Writes a note as a person does in a terminal, and returns it.
fn write(machine: &Sandbox, store: &Store, title: &str, body: &str) -> Result<Note> {
    let file = machine.home().join("note.txt");
    fs::write(&file, body).context(file.display())?;
    let file = file.to_string_lossy();
    let arguments = [
        "write", "--kind", "how-to", "--title", title, "--file", &*file,
    ];
    anamnesis(machine, &arguments)?;
    store.wait_for("the note", |note| note.title() == title)
}

/// Returns the names of the project's files.
fn files(machine: &Sandbox) -> Result<Vec<String>> {
    let folder = machine.project();
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).context(folder.display())? {
        let entry = entry.context(folder.display())?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
