//! Scenarios of recall: which notes are injected in the client's requests.

use std::fs;

use anamnesis_testkit::client::{Ask, ClientRun, Permissions, Sandbox};
use anamnesis_testkit::messages_api::{Request, Script, text, tool};
use anamnesis_testkit::process::{Context as _, Result};
use serde_json::json;

use super::guarded::client_folder;
use super::machines::anamnesis;
use super::scenarios::{Stage, check, clean, last_request, shell};
use super::store::{Store, context_blocks};

/// Number of newer notes, so that no session starts with the wanted note.
const OTHERS: usize = 40;
/// Number of repetitions of the same prompt.
const TIMES: usize = 10;

pub(super) const TITLE: &str = "Integration tests need the stub server";
pub(super) const BODY: &str = "`make stub` binds port 9090; without it the login tests hang.";
pub(super) const FITTING: &str = "Why do the integration tests hang without the stub server?";
/// A prompt that shares less with the note.
const MODERATE: &str = "The login hangs on my laptop since yesterday";
const UNFIT: &str = "Please draw a green bicycle on the front page";

/// A matching prompt injects its note once per context, and again after a compaction. Other prompts
/// inject nothing. `why` gives the reasons.
pub(super) fn recall(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    write(&machine, TITLE, BODY)?;
    let note = store.wait_for("the note", |note| note.title() == TITLE)?;
    write_newer(&machine)?;

    let first = say(&machine, FITTING, None)?;
    let session = Some(first.session.as_str());
    let brought = recalled(&last_request(&machine)?);
    check(brought.len() == 1 && brought[0].contains(TITLE), || {
        format!("the prompt that fits brought {brought:#?}")
    })?;
    let why = anamnesis(&machine, &["why", "last"])?;
    for part in [note.short_id(), "stub", "server"] {
        check(why.contains(part), || {
            format!("{part:?} is not explained in\n{why}")
        })?;
    }
    for _ in 1..TIMES {
        say(&machine, FITTING, session)?;
    }
    say(&machine, UNFIT, session)?;
    let request = last_request(&machine)?;
    let asked = request.text().matches(FITTING).count();
    check(asked >= TIMES, || {
        format!("the request holds {asked} of {TIMES} prompts")
    })?;
    let brought = recalled(&request);
    check(brought.len() == 1, || {
        format!(
            "{TIMES} identical prompts and one about nothing brought {} blocks: {brought:#?}",
            brought.len()
        )
    })?;

    say(&machine, "/compact", session)?;
    say(&machine, FITTING, session)?;
    let request = last_request(&machine)?;
    let brought = recalled(&request);
    check(
        brought.iter().filter(|block| block.contains(TITLE)).count() == 1,
        || {
            format!(
                "after a compaction came {brought:#?} in\n{}",
                request.text()
            )
        },
    )?;
    Ok(())
}

/// Writes newer notes, so that the session start does not bring the older ones.
pub(super) fn write_newer(machine: &Sandbox) -> Result<()> {
    for number in 0..OTHERS {
        let title = format!("Release {number} was cut by the calendar");
        write(machine, &title, "The changes are in the list of changes.")?;
    }
    Ok(())
}

/// Reading a file that a note names brings a pointer to the note, once. The model reads the note with it.
pub(super) fn pointer(stage: &Stage) -> Result<()> {
    const FILE: &str = "limits.py";
    const LINE: &str = "limits.py counts each client by its proxy header";
    const MORE: &str = "Forty requests a minute are allowed.";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    write(&machine, "Rate limits", &format!("{LINE}\n\n{MORE}"))?;
    let note = store.wait_for("the note", |note| note.title() == "Rate limits")?;
    write_newer(&machine)?;
    let file = machine.project().join(FILE);
    fs::write(&file, "LIMIT = 40\n").context(file.display())?;
    let read = || tool("Read", json!({ "file_path": file }));
    let get = tool(
        "mcp__plugin_anamnesis_memory__memory_get",
        json!({ "ids": [note.short_id()] }),
    );
    machine
        .api()
        .play(Script::turns([read(), get, read(), text("It is 40.")]));
    ask(&machine, "Look at the file", None)?;
    let sent = last_request(&machine)?.text();
    let call = format!("memory_get {}", note.short_id());
    let pointers = context_blocks(&sent).into_iter();
    let pointers: Vec<_> = pointers.filter(|block| block.contains(&call)).collect();
    check(pointers.len() == 1 && pointers[0].contains(LINE), || {
        format!("the pointers at the file are {pointers:#?}")
    })?;
    check(!pointers[0].contains(MORE) && sent.contains(MORE), || {
        format!("the note did not come with memory_get:\n{sent}")
    })?;
    let why = anamnesis(&machine, &["why", "last"])?;
    check(why.contains("names the file"), || {
        format!("the pointer is not explained in\n{why}")
    })
}

/// A prompt that a note may answer brings a pointer. The model reads the note with it.
pub(super) fn prompt_pointer(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    write(&machine, TITLE, BODY)?;
    let note = store.wait_for("the note", |note| note.title() == TITLE)?;
    write_newer(&machine)?;
    let get = tool(
        "mcp__plugin_anamnesis_memory__memory_get",
        json!({ "ids": [note.short_id()] }),
    );
    let answer = text("Start the stub.");
    machine.api().play(Script::turns([get, answer]));
    ask(&machine, MODERATE, None)?;
    let sent = last_request(&machine)?.text();
    let call = format!("memory_get {}", note.short_id());
    let blocks = context_blocks(&sent).into_iter();
    let pointers: Vec<_> = blocks.filter(|block| block.contains(&call)).collect();
    let words = "binds port 9090";
    check(pointers.len() == 1 && !recalled_text(&pointers), || {
        format!("the pointers of the prompt are {pointers:#?} in\n{sent}")
    })?;
    check(sent.contains(words), || {
        format!("the note did not come with memory_get:\n{sent}")
    })
}

/// Returns whether a block has a note in full.
fn recalled_text(blocks: &[&str]) -> bool {
    blocks.iter().any(|block| block.contains("Recalled notes"))
}

/// Runs git in the project.
fn commit(machine: &Sandbox, file: &str, message: &str) -> Result<()> {
    let path = machine.project().join(file);
    fs::write(&path, message).context(path.display())?;
    machine.git(["add", file])?;
    machine.git(["commit", "--quiet", "-m", message])
}

/// A question why is answered from the project's commits, before there is a note of it; an order is not.
pub(super) fn history(stage: &Stage) -> Result<()> {
    const SUBJECT: &str = "Raise the upload timeout to 90 s";
    let machine = stage.machine()?;
    for (number, file) in ["cart.py", "mail.py", "search.py", "login.py"]
        .iter()
        .enumerate()
    {
        commit(&machine, file, &format!("Add part {number} of the shop"))?;
    }
    let reason = format!("{SUBJECT}\n\nThe proxy of the office needs 70 s to scan a file.");
    commit(&machine, "upload.py", &reason)?;
    say(&machine, "hi", None)?;
    anamnesis(&machine, &["work"])?;
    let commits_for = |prompt: &str| -> Result<usize> {
        say(&machine, prompt, None)?;
        let sent = last_request(&machine)?.text();
        let blocks = context_blocks(&sent).into_iter();
        Ok(blocks.filter(|block| block.contains(SUBJECT)).count())
    };
    let count = commits_for("Raise the upload timeout to 120 s")?;
    check(count == 0, || format!("an order brought {count} commits"))?;
    let count = commits_for("Why did we raise the timeout of the upload?")?;
    check(count == 1, || format!("a question brought {count} commits"))?;
    let why = anamnesis(&machine, &["why", "last"])?;
    check(
        why.contains("the project's history") && why.contains(SUBJECT),
        || format!("the commit is not explained in\n{why}"),
    )
}

/// A note of a session on a branch says so to later sessions, until the branch is merged.
pub(super) fn branch(stage: &Stage) -> Result<()> {
    const DECISION: &str = "We keep prices in whole cents on this branch, never in floats";
    const MARK: &str = "on branch feat/cents, not merged";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    commit(&machine, "README", "Begin the shop")?;
    machine.git(["switch", "--quiet", "-c", "feat/cents"])?;
    let first = say(&machine, DECISION, None)?;
    commit(&machine, "cart.py", "Keep prices in cents")?;
    store.wait_for_session(&first.session)?;
    machine.git(["switch", "--quiet", "main"])?;
    anamnesis(&machine, &["work"])?;
    let sent = |prompt: &str| -> Result<String> {
        say(&machine, prompt, None)?;
        Ok(last_request(&machine)?.text())
    };
    let before = sent("How are prices of the cart kept, in cents or in floats?")?;
    check(before.contains(MARK), || {
        format!("the branch is not in what the model is sent:\n{before}")
    })?;
    let merge = [
        "merge",
        "--quiet",
        "--no-ff",
        "-m",
        "Merge branch 'feat/cents'",
        "feat/cents",
    ];
    machine.git(merge)?;
    anamnesis(&machine, &["work"])?;
    let after = sent("Are prices of the cart kept in cents, or in floats?")?;
    let is_told = context_blocks(&after)
        .iter()
        .any(|block| block.contains("whole cents"));
    check(is_told && !after.contains("not merged"), || {
        format!("after the merge the model is sent\n{after}")
    })
}

/// A command that fails like an earlier one injects the note about its fix.
pub(super) fn failure(stage: &Stage) -> Result<()> {
    const COMMAND: &str = "sh check.sh";
    const ERROR: &str = "error: could not connect to the stub server on port 9090";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let script = machine.project().join("check.sh");
    let fails = format!("echo '{ERROR}' >&2; exit 3\n");
    fs::write(&script, &fails).context(script.display())?;
    machine.api().play(Script::turns([
        shell(COMMAND),
        tool("Read", json!({ "file_path": script })),
        tool(
            "Edit",
            json!({ "file_path": script, "old_string": "exit 3", "new_string": "exit 0" }),
        ),
        shell(COMMAND),
        text("The check passes."),
    ]));
    let mended = ask(&machine, "Make the check pass", None)?;
    store.wait_for_session(&mended.session)?;

    fs::write(&script, &fails).context(script.display())?;
    machine
        .api()
        .play(Script::turns([shell(COMMAND), text("It fails.")]));
    ask(&machine, "Run it", None)?;
    let request = last_request(&machine)?;
    let sent = request.text();
    let fix = context_blocks(&sent)
        .into_iter()
        .find(|block| block.contains("This failure was seen before"));
    check(fix.is_some_and(|block| block.contains("check.sh")), || {
        format!("no word of the earlier failure in\n{sent}")
    })?;
    let why = anamnesis(&machine, &["why", "last"])?;
    let is_explained = why.contains("fixed the same failure") && !why.contains("changed since");
    check(is_explained, || {
        format!("the fix is not explained in\n{why}")
    })
}

/// A check that fails in one session is told to the next one. After it passed there, the third is told
/// nothing of it.
pub(super) fn fixed_failure(stage: &Stage) -> Result<()> {
    const COMMAND: &str = "sh check.sh";
    const ERROR: &str = "error: the total of the cart is 0";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let script = machine.project().join("check.sh");
    // Runs of one prompt would share a note.
    let run = |prompt: &str, end: &str, answer: &str| -> Result<String> {
        fs::write(&script, end).context(script.display())?;
        machine
            .api()
            .play(Script::turns([shell(COMMAND), text(answer)]));
        let session = ask(&machine, prompt, None)?;
        store.wait_for_session(&session.session)?;
        Ok(last_request(&machine)?.text())
    };
    let failing = format!("echo '{ERROR}' >&2; exit 3\n");
    run("run the check of the cart", &failing, "I ran it.")?;
    let sent = run(
        "run the check of the cart a second time",
        "exit 0\n",
        "I ran it again.",
    )?;
    let start = context_blocks(&sent).join("\n");
    check(
        start.contains("Still failing") && start.contains(ERROR),
        || format!("the open failure is not in\n{sent}"),
    )?;
    let sent = run(
        "run the check of the cart a third time",
        "exit 0\n",
        "I ran it once more.",
    )?;
    check(
        !sent.contains("Still failing") && !sent.contains(ERROR),
        || format!("the failure that passed is still told in\n{sent}"),
    )
}

/// What a person says in any prompt of a session, and what still fails at its end, reaches the model
/// in a later session; thanks do not.
pub(super) fn lasting_words(stage: &Stage) -> Result<()> {
    const RULE: &str = "you must use `make deploy-staging`, deploy.sh is for production only!";
    const CONVENTION: &str = "We never add dependencies here";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let first = say(&machine, "deploy the app to staging", None)?;
    let session = Some(first.session.as_str());
    say(&machine, RULE, session)?;
    let version = machine.project().join("VERSION");
    let write = tool("Write", json!({ "file_path": version, "content": "2\n" }));
    machine
        .api()
        .play(Script::turns([write, text("Version is 2 now.")]));
    ask(&machine, "bump the version", session)?;

    let second = say(&machine, CONVENTION, None)?;
    say(&machine, "thanks!", Some(&second.session))?;

    let failing = shell("echo 'assertion failed: total is 0' >&2; python3 tests/cart.py");
    machine
        .api()
        .play(Script::turns([failing, text("The test fails.")]));
    let third = ask(&machine, "run the tests of the cart", None)?;
    for session in [&first.session, &second.session, &third.session] {
        store.wait_for_session(session)?;
    }

    let prompt = "deploy the app to staging again, and run the tests of the cart";
    say(&machine, prompt, None)?;
    let sent = last_request(&machine)?.text();
    for words in [
        RULE,
        CONVENTION,
        "Still failing",
        "assertion failed: total is 0",
    ] {
        check(sent.contains(words), || {
            format!("{words:?} is not in what the model is sent:\n{sent}")
        })?;
    }
    check(!sent.contains("thanks!"), || {
        format!("thanks are in what the model is sent:\n{sent}")
    })?;
    // A greeting leaves no note.
    anamnesis(&machine, &["work"])?;
    let count = store.notes().len();
    say(&machine, "hi", None)?;
    anamnesis(&machine, &["work"])?;
    check(store.notes().len() == count, || {
        format!("the notes are {:?}", store.notes())
    })
}

/// A resumed session goes on with its one note, and is not told its own words.
pub(super) fn resumed(stage: &Stage) -> Result<()> {
    const DECISION: &str = "We keep prices in whole cents, never in floats";
    const LATER: &str = "Always round totals of the cart half up";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let first = say(&machine, DECISION, None)?;
    let begun = store.wait_for_session(&first.session)?;
    say(&machine, LATER, Some(&first.session))?;
    let sent = last_request(&machine)?.text();
    let is_told = context_blocks(&sent)
        .iter()
        .any(|block| block.contains(begun.short_id()) || block.contains(DECISION));
    check(!is_told, || {
        format!("a resumed session is told its own note:\n{sent}")
    })?;
    let note = store.wait_for("the note with both prompts", |note| {
        note.body.contains(LATER) && format!("{} {}", note.title(), note.body).contains(DECISION)
    })?;
    check(note.id() == begun.id() && store.notes().len() == 1, || {
        format!("one session has {} notes", store.notes().len())
    })
}

/// A forked session has the history of the session it comes from, and is not told that one's note.
pub(super) fn forked(stage: &Stage) -> Result<()> {
    const DECISION: &str = "We keep prices in whole cents, never in floats";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let first = say(&machine, DECISION, None)?;
    let begun = store.wait_for_session(&first.session)?;
    let how = Ask {
        permissions: Permissions::Skipped,
        resume: Some(&first.session),
        fork: true,
    };
    machine.api().play(Script::default());
    let second = machine.ask("Where do prices in cents come from?", &how)?;
    clean(&second)?;
    check(second.session != first.session, || {
        "the client did not fork the session".to_owned()
    })?;
    let sent = last_request(&machine)?.text();
    let is_told = context_blocks(&sent)
        .iter()
        .any(|block| block.contains(begun.short_id()));
    check(!is_told, || {
        format!("a forked session is told the note of its history:\n{sent}")
    })
}

/// The copy of a memory that the client deleted stays, reaches the model and waits in `review`.
pub(super) fn deleted_memory(stage: &Stage) -> Result<()> {
    const FACT: &str = "Prices of the cart are whole cents, never floats.";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    say(&machine, "hi", None)?;
    let memory = client_folder(&machine)?.join("memory");
    fs::create_dir_all(&memory).context(memory.display())?;
    let index = "- [Prices](prices.md) - how prices are kept\n";
    for (name, text) in [("MEMORY.md", index), ("prices.md", FACT)] {
        let file = memory.join(name);
        fs::write(&file, text).context(file.display())?;
    }
    say(&machine, "hi", None)?;
    let copy = store.wait_for("the copy of the memory", |note| note.body.contains(FACT))?;

    fs::remove_dir_all(&memory).context(memory.display())?;
    say(&machine, "hi", None)?;
    anamnesis(&machine, &["work"])?;
    say(
        &machine,
        "Are prices of the cart floats or whole cents?",
        None,
    )?;
    let sent = last_request(&machine)?.text();
    check(sent.contains(FACT), || {
        format!("the copy of a deleted memory is not in what the model is sent:\n{sent}")
    })?;
    let kept = store.notes().into_iter().any(|note| note.id() == copy.id());
    check(kept, || "the copy went with the memory".to_owned())?;
    // Its exit code says that something is pending.
    let program = machine.plugin_root()?.join("bin/anamnesis");
    let mut review = machine.command(program);
    let review = review.args(["review", "--list"]).output();
    let review = review.context("review")?.stdout;
    let review = String::from_utf8_lossy(&review);
    check(
        review.contains("Claude Code deleted the memory file"),
        || format!("review does not name the deleted memory:\n{review}"),
    )
}

/// Writes a note as a person does in a terminal.
pub(super) fn write(machine: &Sandbox, title: &str, body: &str) -> Result<()> {
    let file = machine.home().join("note.txt");
    fs::write(&file, body).context(file.display())?;
    let file = file.to_string_lossy();
    let arguments = [
        "write", "--kind", "how-to", "--title", title, "--file", &*file,
    ];
    anamnesis(machine, &arguments).map(drop)
}

/// Asks in a session with a scripted answer of one line.
pub(super) fn say(machine: &Sandbox, prompt: &str, session: Option<&str>) -> Result<ClientRun> {
    machine.api().play(Script::default());
    ask(machine, prompt, session)
}

/// Asks in a session in which all tools are allowed.
fn ask(machine: &Sandbox, prompt: &str, session: Option<&str>) -> Result<ClientRun> {
    let how = Ask {
        permissions: Permissions::Skipped,
        resume: session,
        fork: false,
    };
    let answer = machine.ask(prompt, &how)?;
    clean(&answer)?;
    Ok(answer)
}

/// Returns the blocks that were injected with prompts.
pub(super) fn recalled(request: &Request) -> Vec<String> {
    let sent = request.text();
    let blocks = context_blocks(&sent).into_iter();
    blocks
        .filter(|block| block.contains("Recalled notes"))
        .map(str::to_owned)
        .collect()
}
