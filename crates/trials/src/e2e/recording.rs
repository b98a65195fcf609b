//! Scenarios of recording: the journal contains what the client reported, however the session ends.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anamnesis_testkit::client::{Ask, Permissions, Sandbox};
use anamnesis_testkit::messages_api::{Kind, Reply, Script, text, tool};
use anamnesis_testkit::process::{Context, Result, Running, TestFailure, wait_until};
use anamnesis_testkit::tmux::Terminal;
use serde_json::{Value, json};

use super::scenarios::{REQUEST_LIMIT, Stage, check, clean, shell, untroubled};
use super::serving::DIALOGUE;
use super::store::{Note, Store};

/// Time limit for the client's end.
const END_LIMIT: Duration = Duration::from_secs(30);

const UNASKED: Ask<'static> = Ask {
    permissions: Permissions::Skipped,
    resume: None,
    fork: false,
};

/// A prompt that runs again and again, such as a scheduled one, has one note.
pub(super) fn repeated(stage: &Stage) -> Result<()> {
    const PROMPT: &str = "Look whether a dependency has a new major version";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    for _ in 0..3 {
        let answer = "No dependency of the shop has a newer major version today.";
        machine.api().play(Script::turns([text(answer)]));
        clean(&machine.ask(PROMPT, &UNASKED)?)?;
    }
    // The third run's own note is removed after the note of all three is written.
    wait_until(END_LIMIT, "one note of three runs", || {
        let notes = store.notes();
        let is_one = notes.len() == 1 && notes[0].body.contains("**Repeated:** × 3, last ");
        is_one.then_some(())
    })
}

/// The name that a person gives a session becomes the title of its note.
pub(super) fn renamed(stage: &Stage) -> Result<()> {
    const NAME: &str = "Vouchers for the spring sale";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let answer = "The vouchers expire at midnight, because the sale ends then.";
    machine.api().play(Script::turns([text(answer)]));
    let terminal = Terminal::start(&machine)?;
    terminal.send("Let the vouchers of the shop expire")?;
    terminal.wait_for(answer)?;
    terminal.send(&format!("/rename {NAME}"))?;
    terminal.wait_for("enamed to")?;
    untroubled(&terminal.screen()?)?;
    terminal.exit()?;
    store.wait_for("the note with that title", |note| note.title() == NAME)?;
    Ok(())
}

/// A plan that the person approves titles the note, and its steps are decided.
pub(super) fn planned(stage: &Stage) -> Result<()> {
    const PLAN: &str =
        "# Keep the prices in cents\n\n1. Read the cart in cents\n2. Round at the end\n";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    machine
        .api()
        .play(Script::turns([text("Prices may be cents.")]));
    let terminal = Terminal::start(&machine)?;
    // Shift+Tab goes from the default mode over accepting edits to the plan mode.
    terminal.press("BTab")?;
    terminal.press("BTab")?;
    terminal.wait_for("plan mode on")?;
    terminal.send("How could the cart round less?")?;
    terminal.wait_for("Prices may be cents.")?;
    // The client names the file of the plan, and reads the plan from there.
    let requests = machine.api().requests();
    let file = requests.iter().rev().find_map(|request| {
        let text = request.text();
        let mut words = text.split(|c: char| c.is_whitespace() || "`\"'()".contains(c));
        let is_plan = |word: &&str| word.contains("/plans/") && word.contains(".md");
        let file = words.find(is_plan)?;
        Some(file[..file.find(".md")? + 3].to_owned())
    });
    let file = file.ok_or_else(|| TestFailure::new("the client names no file for the plan"))?;
    machine.api().play(Script::turns([
        tool("Write", json!({ "file_path": file, "content": PLAN })),
        tool("ExitPlanMode", json!({})),
        text("The prices are kept in cents now."),
    ]));
    terminal.send("Plan it")?;
    terminal.wait_for("Would you like to proceed?")?;
    // The dialog ignores keys in its first moments.
    std::thread::sleep(DIALOGUE);
    terminal.press("Enter")?;
    terminal.wait_for("The prices are kept in cents now.")?;
    untroubled(&terminal.screen()?)?;
    terminal.exit()?;
    let note = store.wait_for("the note of the plan", |note| {
        note.title() == "Keep the prices in cents"
    })?;
    check(note.body.contains("Round at the end"), || note.body.clone())
}

/// Every hook of a session without a compaction or an API error has run and left its rows: for successful, failed
/// and refused tools and for a subagent.
pub(super) fn every_hook(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let cart = machine.project().join("cart.py");
    machine.api().play(Script {
        subagent_turns: vec![shell("echo from the subagent").into()],
        ..Script::turns([
            tool(
                "Write",
                json!({ "file_path": cart, "content": "TOTAL = 0\n" }),
            ),
            tool(
                "Edit",
                json!({ "file_path": cart, "old_string": "no such line", "new_string": "x" }),
            ),
            shell("echo it fails >&2; exit 3"),
            tool(
                "Agent",
                json!({ "description": "Look around", "prompt": "Look at the cart",
                "subagent_type": "general-purpose" }),
            ),
            text("The cart has a total."),
        ])
    });
    let answer = machine.ask("Add a total to the cart", &UNASKED)?;
    clean(&answer)?;
    store.wait_for_session(&answer.session)?;

    let hooks = fs::read_to_string(stage.plugin.join("hooks/hooks.json")).context("hooks.json")?;
    let hooks: Value = serde_json::from_str(&hooks).context("hooks.json")?;
    let registered: BTreeSet<&str> = hooks["hooks"]
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .map(String::as_str)
        .filter(|event| !matches!(*event, "PreCompact" | "PostCompact" | "StopFailure"))
        .collect();
    let registered: Vec<&str> = registered.into_iter().collect();
    store.expect_rows("SELECT event FROM hook ORDER BY event", &registered)?;
    store.expect_rows(
        "SELECT event, error FROM hook WHERE error IS NOT NULL",
        &[""; 0],
    )?;
    store.expect_rows(
        "SELECT state, end_reason, prompts, is_partial FROM session",
        &["completed|other|2|0"],
    )?;
    // The subagent runs beside the main loop, which is notified at its end.
    store.expect_rows(
        "SELECT number, kind, text FROM prompt ORDER BY number",
        &["1|script|Add a total to the cart", "2|notification|-"],
    )?;
    store.expect_rows(
        "SELECT tool, outcome, is_from_batch, coalesce(agent_type, ''), prompt FROM tool_event ORDER BY 1, 2",
        &[
            "Agent|ok|0||1",
            "Bash|failed|0||1",
            "Bash|ok|0|general-purpose|1",
            "Edit|failed|1||1",
            "Write|ok|0||1",
        ],
    )?;
    let errors =
        store.rows("SELECT error FROM tool_event WHERE error IS NOT NULL ORDER BY tool")?;
    let are_told = matches!(errors.as_slice(), [bash, edit]
        if edit.contains("String to replace not found") && bash.contains("it fails"));
    check(are_told, || format!("the errors are {errors:?}"))?;
    store.expect_rows("SELECT DISTINCT path FROM file_use", &["cart.py"])?;
    store.expect_rows(
        "SELECT speaker, agent_type, text FROM turn_end ORDER BY 1, 3",
        &[
            "main||Done.",
            "main||The cart has a total.",
            "subagent|general-purpose|The subagent is done.",
        ],
    )?;
    store.expect_rows(
        "SELECT kind, prompt FROM delegation",
        &["general-purpose|Look at the cart"],
    )
}

/// After a client is killed, the next start closes its session. The note equals that of a session
/// that ended at the same point, except for the tag.
pub(super) fn killed(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let ended = stuck(&machine, "ended")?;
    ended.terminate();
    // The exit code does not matter: a signal counts as a failure.
    ended.wait(END_LIMIT)?;
    let ended = store.wait_for("the note of the run that ended", |note| {
        note.has_tag("session-end")
    })?;

    let mut killed = stuck(&machine, "killed")?;
    killed.kill();
    store.expect_rows(
        "SELECT tool, outcome FROM tool_event JOIN session ON session.id = session WHERE state <> 'completed'
         ORDER BY number",
        &["Write|ok", "Edit|ok"],
    )?;
    machine.api().play(Script::default());
    let next = machine.ask("Where did we stop?", &Ask::default())?;
    clean(&next)?;
    let lost = store.wait_for("the note of the run that was killed", |note| {
        note.title() == ended.title() && note.has_tag("lost")
    })?;
    check(!lost.has_tag("session-end"), || {
        "a lost session did not end".to_owned()
    })?;
    // A session that only asks where it stopped leaves no note.
    store.expect_rows(
        "SELECT end_reason FROM session ORDER BY started_at",
        &["other", "lost", "other"],
    )?;
    same(&ended, &lost)
}

/// Starts a run that hangs after its second tool, because the model does not answer.
fn stuck(machine: &Sandbox, session: &str) -> Result<Running> {
    let file = machine.project().join("tax.py");
    // Both runs need the same initial project.
    let _ = fs::remove_file(&file);
    let before = machine.api().requests_of(Kind::Main).len();
    machine.api().play(Script::turns([
        tool(
            "Write",
            json!({ "file_path": file, "content": "RATE = 19\n" }),
        )
        .into(),
        tool(
            "Edit",
            json!({ "file_path": file, "old_string": "19", "new_string": "20" }),
        )
        .into(),
        Reply::Silence,
    ]));
    let running = machine.begin("Add the tax rate", &UNASKED)?;
    wait_until(
        REQUEST_LIMIT,
        format_args!("the third request of the run that is {session}"),
        || (machine.api().requests_of(Kind::Main).len() >= before + 3).then_some(()),
    )?;
    Ok(running)
}

/// Fails unless two notes have the same content.
fn same(one: &Note, other: &Note) -> Result<()> {
    let (one, other) = (one.lasting(), other.lasting());
    check(one == other, || {
        format!("the notes differ:\n{one}\nand\n{other}")
    })
}

/// After Escape during a tool call, the events so far are recorded and the session continues.
pub(super) fn interrupted(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let file = machine.project().join("rates.py");
    let started = machine.project().join("started");
    machine.api().play(Script::turns([
        tool(
            "Write",
            json!({ "file_path": file, "content": "RATE = 19\n" }),
        ),
        shell("touch started; sleep 60"),
        text("The rest is tidied up."),
    ]));
    let terminal = Terminal::start_with(&machine, Permissions::Skipped)?;
    terminal.send("Add the rates")?;
    wait_until(REQUEST_LIMIT, "the command's start", || {
        started.exists().then_some(())
    })?;
    terminal.interrupt()?;
    terminal.wait_for("Interrupted")?;
    // The client sends no further request by itself.
    terminal.send("Tidy up")?;
    terminal.wait_for("The rest is tidied up.")?;
    untroubled(&terminal.screen()?)?;
    terminal.exit()?;
    let note = store.wait_for("the note", |note| note.has_tag("session-end"))?;
    note.expect("title", Some("Add the rates"))?;
    for part in ["rates.py", "The rest is tidied up."] {
        check(note.body.contains(part), || {
            format!("{part:?} is not in\n{}", note.body)
        })?;
    }
    store.expect_rows(
        "SELECT number, text FROM prompt ORDER BY number",
        &["1|Add the rates", "2|Tidy up"],
    )?;
    store.expect_rows(
        "SELECT tool, outcome, prompt FROM tool_event ORDER BY number",
        &["Write|ok|1"],
    )?;
    store.expect_rows("SELECT text FROM turn_end", &["The rest is tidied up."])?;
    store.expect_rows(
        "SELECT state, end_reason FROM session",
        &["completed|prompt_input_exit"],
    )
}
