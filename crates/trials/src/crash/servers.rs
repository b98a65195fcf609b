//! Runs eight servers that write, search, change, link and sync, together with the hooks of 32
//! sessions, on one store.
//!
//! Everything that a tool reported as done must be in the notes, the index and the remote. No tool
//! or hook may report a failure or a lock.

use std::{
    collections::HashSet,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Checks,
    hooks::{Client, hook},
    kills::milliseconds,
    report,
    sandbox::Sandbox,
    script,
};
use crate::{Result, at};

const SERVERS: usize = 8;

const HOOKS: usize = 32;

/// The maximum number of notes that a session may write.
const NOTES: usize = 10;

/// A note that a tool reported as written, and the note that it links to.
pub(super) struct Kept {
    id: String,
    linked: Option<String>,
}

/// The work of servers and hooks.
#[derive(Default)]
pub(super) struct Done {
    pub(super) notes: Vec<Kept>,
    calls: Vec<Duration>,
    hooks: Vec<Duration>,
    /// Descriptions of failures.
    pub(super) faults: Vec<String>,
}

/// Runs the scenario.
pub(super) fn run(folder: &Path, binary: &Path, time: Duration, checks: &mut Checks) -> Result {
    let sandbox = Sandbox::new(folder, binary)?;
    let remote = folder.join("remote.git");
    let made = Command::new("git")
        .args(["init", "--quiet", "--bare"])
        .arg(&remote)
        .status()?;
    checks.that(made.success(), || "git cannot make a remote".to_owned());
    let address = remote.to_str().ok_or("the folder's name is not UTF-8")?;
    sandbox.succeeds(&["config", "set", "remote", address], b"", checks)?;
    sandbox.plant(1000)?;
    sandbox.succeeds(&["reindex"], b"", checks)?;
    let done = Mutex::new(Done::default());
    let began = Instant::now();
    thread::scope(|scope| -> Result {
        let (sandbox, done) = (&sandbox, &done);
        let goes_on = move || began.elapsed() < time;
        let servers = (0..SERVERS).map(|server| {
            scope.spawn(move || -> Result {
                for round in 0.. {
                    if !goes_on() {
                        break;
                    }
                    serve(sandbox, server, round, done)?;
                }
                Ok(())
            })
        });
        let hooks = (0..HOOKS).map(|session| {
            scope.spawn(move || -> Result {
                let client = Client::start()?;
                for step in script::session(sandbox, &format!("hooked-{session}")) {
                    if !goes_on() {
                        break;
                    }
                    let mut command = hook(sandbox, &step, &client)?;
                    // The deferred process also syncs and needs git on PATH.
                    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
                    let began = Instant::now();
                    let output = command.output()?;
                    let took = began.elapsed();
                    let mut done = done.lock().map_err(|_| "a hook's thread panicked")?;
                    done.hooks.push(took);
                    if !output.status.success() || !output.stderr.is_empty() {
                        let stderr = String::from_utf8_lossy(&output.stderr);
                        done.faults
                            .push(format!("{}: {}, {stderr}", step.name, output.status));
                    }
                }
                Ok(())
            })
        });
        let all: Vec<_> = servers.chain(hooks).collect();
        for one in all {
            one.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })?;
    let done = done.into_inner().map_err(|_| "a thread panicked")?;
    tell("tools", &done.calls);
    tell("hooks", &done.hooks);
    checks.that(done.faults.is_empty(), || format!("{:?}", done.faults));
    is_all_there(&sandbox, &done.notes, &remote, checks)?;
    // A hook that waits too long leaves its event to a later hook and logs that.
    let (late, faults): (Vec<String>, Vec<String>) = sandbox
        .faults()
        .into_iter()
        .partition(|line| line.contains("Z hook"));
    report(&format!("{} lines of hooks in the log", late.len()));
    checks.that(faults.is_empty(), || format!("the log reports {faults:?}"));
    Ok(())
}

/// Starts a server, initialises it and writes ten notes.
pub(super) fn serve(sandbox: &Sandbox, server: usize, round: usize, done: &Mutex<Done>) -> Result {
    let mut talk = Talk::begin(sandbox, &format!("served-{server}-{round}"))?;
    let mut before: Option<String> = None;
    for number in 0..NOTES {
        let name = format!("s{server}r{round}n{number}");
        let body = format!("thing{name} belongs to place{name}, says keeper{name}.");
        let written = talk.call("memory_write", &json!({ "body": body }))?;
        let Some(id) = written["id"].as_str().map(str::to_owned) else {
            continue;
        };
        let search = json!({ "query": format!("thing{name}"), "detail": "index" });
        let found = talk.call("memory_search", &search)?;
        if found["result"][0]["id"] != id {
            talk.faults.push(format!("{id} is not found: {found}"));
        }
        talk.call("memory_amend", &json!({ "id": id, "pinned": true }))?;
        if let Some(before) = &before {
            let link = json!({ "from": id, "to": before, "relation": "related-to" });
            talk.call("memory_connect", &link)?;
        }
        let linked = before.replace(id.clone());
        talk.notes.push(Kept { id, linked });
    }
    talk.call("memory_sync", &json!({}))?;
    let Talk {
        mut process,
        stdin,
        notes,
        calls,
        mut faults,
        ..
    } = talk;
    drop(stdin);
    let status = process.wait()?;
    if !status.success() {
        faults.push(format!("a server ended with {status}"));
    }
    let mut done = done.lock().map_err(|_| "a server's thread panicked")?;
    done.notes.extend(notes);
    done.calls.extend(calls);
    done.faults.extend(faults);
    Ok(())
}

/// A server and the requests sent to it.
struct Talk {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    notes: Vec<Kept>,
    calls: Vec<Duration>,
    faults: Vec<String>,
}

impl Talk {
    fn begin(sandbox: &Sandbox, session: &str) -> Result<Self> {
        let mut process = sandbox
            .command(&["serve"], b"")?
            .env("CLAUDE_CODE_SESSION_ID", session)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let mut talk = Self {
            stdin: process.stdin.take().ok_or("the server has no stdin")?,
            stdout: BufReader::new(process.stdout.take().ok_or("the server has no stdout")?),
            process,
            notes: Vec::new(),
            calls: Vec::new(),
            faults: Vec::new(),
        };
        let who = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                          "clientInfo": { "name": "xtask", "version": "1" } });
        talk.ask("initialize", &who)?;
        let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(talk.stdin, "{begun}")?;
        Ok(talk)
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parameters });
        writeln!(self.stdin, "{asked}")?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Returns a tool's result, or null if it refuses, which counts as a failure.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let began = Instant::now();
        let call = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask("tools/call", &call)?;
        self.calls.push(began.elapsed());
        // Others sync all the time here, and a tool waits for them only so long.
        let is_sync_busy = || answer.to_string().contains("another sync is running");
        if answer["result"]["isError"] != false && !is_sync_busy() {
            self.faults.push(format!("{tool} {arguments}: {answer}"));
        }
        Ok(answer["result"]["structuredContent"].clone())
    }
}

fn tell(what: &str, times: &[Duration]) {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied();
    report(&format!(
        "{} {what}: median {:.1} ms, 95 % {:.1} ms, worst {:.1} ms",
        times.len(),
        milliseconds(at(50).unwrap_or_default()),
        milliseconds(at(95).unwrap_or_default()),
        milliseconds(times.last().copied().unwrap_or_default())
    ));
}

/// Checks that every note is unchanged in all places.
pub(super) fn is_all_there(
    sandbox: &Sandbox,
    notes: &[Kept],
    remote: &Path,
    checks: &mut Checks,
) -> Result {
    sandbox.wait_for_work()?;
    let mut sync = sandbox.command(&["sync", "--json"], b"")?;
    sync.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let synced: Value = serde_json::from_slice(&sync.output()?.stdout)?;
    checks.that(synced["pushed"] == true && synced["conflicts"] == 0, || {
        format!("the last sync: {synced}")
    });
    let tree = Command::new("git")
        .arg("-C")
        .arg(remote)
        .args(["ls-tree", "-r", "--name-only", "main"])
        .output()?;
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    let lines: HashSet<&str> = tree.lines().collect();
    let listing = ["list", "--everywhere", "--all", "--json"];
    let listed = sandbox.succeeds(&listing, b"", checks)?;
    for Kept { id, linked } in notes {
        let path = format!("semantic/{id}.md");
        let file = sandbox.home().root().join("memory").join(&path);
        let text = fs::read_to_string(&file).map_err(at(&file))?;
        let is_linked = linked
            .as_ref()
            .is_none_or(|other| text.contains(&format!("- related-to {other}")));
        checks.that(text.contains("pinned: true") && is_linked, || {
            format!("{path} lacks a change: {text}")
        });
        checks.that(lines.contains(path.as_str()), || {
            format!("{path} is not in the remote")
        });
        checks.that(listed.contains(id.as_str()), || {
            format!("{id} is not listed")
        });
    }
    report(&format!(
        "{} notes, all there and in the remote",
        notes.len()
    ));
    let before = sandbox.answers(checks)?;
    sandbox.succeeds(&["reindex"], b"", checks)?;
    let after = sandbox.answers(checks)?;
    checks.that(before == after, || {
        "a new index answers otherwise".to_owned()
    });
    Ok(())
}
