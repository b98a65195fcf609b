//! The scenarios about the server: what the model does by its tools, and what a person types that
//! ends in one.

use std::fs;

use anamnesis_testkit::client::{Answer, Ask, Permissions, Sandbox};
use anamnesis_testkit::messages_api::{Block, Kind, Request, Script, text, tool};
use anamnesis_testkit::process::{Context as _, Failure, Result};
use anamnesis_testkit::tmux::Terminal;
use serde_json::{Value, json};

use super::machines::anamnesis;
use super::scenarios::{Stage, check, clean, last_request, tool_result, untroubled};
use super::store::{Note, Store};

/// How the client names our server, and what it puts before the names of its tools.
const SERVER: &str = "plugin:anamnesis:memory";
const PREFIX: &str = "mcp__plugin_anamnesis_memory__";

const STUB: &str = "Integration tests need the stub server";
const BODY: &str = "`make stub` binds port 9090; without it the login tests hang.";
const PORTS: &str = "Port 9090 belongs to the stub";

/// What nobody should be able to do harm with, wherever it is pasted.
const HOSTILE: &str = "it's the stub; $(touch a) `touch b` \"c' && touch d | tee e";

/// Returns a call of a tool of ours.
pub(super) fn ours(name: &str, input: Value) -> Block {
    tool(format!("{PREFIX}{name}"), input)
}

/// The model looks around in the memory by every tool that only looks, and by resources.
pub(super) fn looking(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::of(&machine.home());
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
    let turns = calls.iter().map(|(call, _)| call.clone());
    machine
        .api()
        .play(Script::turns(turns.chain([text("That is what there is.")])));
    skipping(&machine, "Look around in the memory")?;

    let requests = machine.api().requests_of(Kind::Main);
    let first = requests.first().map(Request::text).unwrap_or_default();
    for told in [SERVER, "memory_search", "Anamnesis is this person's memory"] {
        check(first.contains(told), || {
            format!("the model is not told {told:?}")
        })?;
    }
    check(requests.len() == calls.len() + 1, || {
        format!("{} requests for {} calls", requests.len(), calls.len())
    })?;
    for ((call, wanted), request) in calls.iter().zip(requests.iter().skip(1)) {
        let result = last_result(request)?;
        for part in wanted {
            check(result.contains(part), || {
                format!("{part:?} is not in what {call:?} gave: {result}")
            })?;
        }
    }
    // The session's own note has come meanwhile.
    let after = store.note_files();
    let is_kept = |(path, bytes)| after.get(path) == Some(bytes);
    check(before.iter().all(is_kept), || {
        "looking changed a note".to_owned()
    })
}

/// A slash command takes any text, by its short name and by its long one, and no shell sees it.
pub(super) fn typed(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::of(&machine.home());
    let stub = write(&machine, &store, STUB, BODY)?;
    let before = files(&machine)?;

    for prefix in ["/", "/anamnesis:"] {
        let search = ours(
            "memory_search",
            json!({ "query": HOSTILE, "detail": "index", "k": 10 }),
        );
        let prompt = format!("{prefix}memory-search {HOSTILE}");
        let found = told(&machine, &prompt, search)?;
        check(found.contains(stub.short_id()), || {
            format!("{prompt} did not find the note: {found}")
        })?;
        check(last_request(&machine)?.text().contains(HOSTILE), || {
            format!("the text of {prompt} did not reach the model as it was typed")
        })?;

        let review = ours("memory_review", json!({ "project": ".", "k": 5 }));
        told(&machine, &format!("{prefix}memory-review"), review)?;

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

    // The short name is one of the client's own.
    plain(&machine, "/anamnesis:memory-pause")?;
    let prompt = last_request(&machine)?.prompt();
    check(prompt.contains("paused github.com/acme/shop"), || {
        format!("not paused:\n{prompt}")
    })?;
    anamnesis(&machine, &["resume"])?;
    check(files(&machine)? == before, || {
        "what was typed was run".to_owned()
    })
}

/// A person mentions a note by `@`, and the model is given it.
pub(super) fn mentioned(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::of(&machine.home());
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

/// Types a command for which the model calls one tool, which nobody is asked for, and returns what the
/// tool gave.
fn told(machine: &Sandbox, prompt: &str, call: Block) -> Result<String> {
    machine.api().play(Script::turns([call]));
    clean(&machine.ask(prompt, &Ask::default())?)?;
    tool_result(machine)
}

/// Types a command for which the model needs no tool.
fn plain(machine: &Sandbox, prompt: &str) -> Result<Answer> {
    machine.api().play(Script::default());
    let answer = machine.ask(prompt, &Ask::default())?;
    clean(&answer)?;
    Ok(answer)
}

/// Asks with every tool allowed.
fn skipping(machine: &Sandbox, prompt: &str) -> Result<Answer> {
    let how = Ask {
        permissions: Permissions::Skipped,
        resume: None,
    };
    let answer = machine.ask(prompt, &how)?;
    clean(&answer)?;
    Ok(answer)
}

/// Returns the result of the last call before a request. The client puts the results of one prompt into
/// one message.
fn last_result(request: &Request) -> Result<String> {
    match request.tool_results().pop() {
        Some((result, false)) => Ok(result),
        other => Err(Failure::new(format!("no tool call that worked: {other:?}"))),
    }
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

/// The names of what lies in the project's folder.
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
