//! The scenarios: what a person does in the client, and the expected results.
//!
//! Each runs on its own machine, so that scenarios can run alone and in any order. They check what
//! a user relies on, and wording only where the guide promises it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anamnesis_testkit::client::{Ask, Client, ClientRun, Marketplace, Permissions, Sandbox};
use anamnesis_testkit::messages_api::{Block, Kind, Reply, Request, Script, text, tool};
use anamnesis_testkit::process::{Context as _, Result, TestFailure, wait_until};
use anamnesis_testkit::tmux::Terminal;
use serde_json::json;

use crate::screen;

use super::store::{Note, Store, context_blocks};
use super::{
    guarded, hosts, machines, recalling, recording, released, scheduled, serving, viewing,
};

/// Time limit for a request of the client.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(40);
/// The maximum number of tokens that descriptions of commands and skills add to every session.
const ALWAYS_ON_LIMIT: u32 = 600;

/// The inputs of a scenario.
pub(super) struct Stage<'a> {
    /// The client to run.
    pub(super) client: &'a Client,
    /// The folder of the clients installed from npm.
    pub(super) cache: &'a Path,
    /// The plugin's assembled tree.
    pub(super) plugin: &'a Path,
    /// The marketplace that contains the same tree.
    pub(super) marketplace: &'a Marketplace,
    /// The Python version's program, for scenarios that need it.
    pub(super) python: Option<&'a Path>,
    /// An empty folder.
    pub(super) folder: &'a Path,
    /// Where screens are written, if they are wanted.
    pub(super) screens: Option<&'a Path>,
}

/// A scenario and the name that `--only` takes.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) place: RunMode,
    pub(super) play: fn(&Stage) -> Result<()>,
}

/// How a scenario runs the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RunMode {
    /// Without a terminal, as `claude -p`.
    Headless,
    /// In a terminal; needs tmux.
    Terminal,
    /// Without a terminal, with the Python version on another machine.
    BesidePython,
}

/// All scenarios in the order in which they are played, the fastest first.
pub(super) const SCENARIOS: &[Scenario] = &[
    headless("validate", validate),
    headless("remembers", remembers),
    headless("compact", compact),
    headless("every-hook", recording::every_hook),
    headless("killed", recording::killed),
    headless("repeated", recording::repeated),
    headless("recall", recalling::recall),
    headless("pointer", recalling::pointer),
    headless("prompt-pointer", recalling::prompt_pointer),
    headless("history", recalling::history),
    headless("branch", recalling::branch),
    headless("failure", recalling::failure),
    headless("fixed-failure", recalling::fixed_failure),
    headless("lasting-words", recalling::lasting_words),
    headless("resumed", recalling::resumed),
    headless("forked", recalling::forked),
    headless("deleted-memory", recalling::deleted_memory),
    headless("carried-memory", guarded::carried_memory),
    headless("older-index", guarded::older_index),
    headless("limit", guarded::limit),
    headless("two-machines", machines::two_machines),
    headless("hostile-project", machines::hostile_project),
    Scenario {
        name: "from-python",
        place: RunMode::BesidePython,
        play: machines::from_python,
    },
    headless("commands", commands),
    headless("server", serving::looking),
    headless("server-writes", serving::writing),
    headless("typed", serving::typed),
    headless("live", viewing::live),
    headless("released", released::released),
    headless("uninstall", uninstall),
    headless("codex", hosts::codex),
    headless("gemini", hosts::gemini),
    in_terminal("reflect", serving::reflecting),
    in_terminal("compact-typed", compact_typed),
    in_terminal("clear", clear),
    in_terminal("interrupted", recording::interrupted),
    in_terminal("renamed", recording::renamed),
    in_terminal("planned", recording::planned),
    in_terminal("first-session", first_session),
    in_terminal("mentioned", serving::mentioned),
    in_terminal("answered", serving::answered),
    in_terminal("tasks", serving::tasks),
    in_terminal("prompt-line", serving::prompt_line),
    in_terminal("arrives", machines::arrives),
    in_terminal("pasted", guarded::pasted),
    in_terminal("scheduled-by-project", scheduled::by_project),
    in_terminal("scheduled-by-model", scheduled::by_model),
];

const fn headless(name: &'static str, play: fn(&Stage) -> Result<()>) -> Scenario {
    Scenario {
        name,
        place: RunMode::Headless,
        play,
    }
}

const fn in_terminal(name: &'static str, play: fn(&Stage) -> Result<()>) -> Scenario {
    Scenario {
        name,
        place: RunMode::Terminal,
        play,
    }
}

/// The tree passes the client's own validation and costs few tokens.
fn validate(stage: &Stage) -> Result<()> {
    let machine = Sandbox::new(stage.client, stage.folder)?;
    let tree = stage.plugin.to_string_lossy();
    for checks in [&["--strict"][..], &["--strict", "--profile", "directory"]] {
        let arguments = ["plugin", "validate"].iter().chain(checks);
        let finished = machine.claude(arguments.copied().chain([&*tree]))?;
        finished.successful(format_args!("claude plugin validate {}", checks.join(" ")))?;
    }
    machine.install_plugin(stage.marketplace)?;
    let details = machine
        .claude(["plugin", "details", "anamnesis"])?
        .successful("plugin details")?;
    let cost = always_on_tokens(&details.stdout)
        .ok_or_else(|| TestFailure::new(format!("no always-on cost in\n{}", details.stdout)))?;
    check(cost <= ALWAYS_ON_LIMIT, || {
        format!("the plugin adds {cost} tokens to every session, over {ALWAYS_ON_LIMIT}")
    })
}

/// A session becomes a note without its secrets, which the next session's start injects.
fn remembers(stage: &Stage) -> Result<()> {
    const TITLE: &str = "Split the cart total into net and tax";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let secret = fake_token();

    let prompt = format!("{TITLE}\nThe staging token is {secret}, if you need it.");
    let cart = machine.project().join("cart.py");
    machine.api().play(Script::turns([
        Reply::from([
            text("I will add the cart."),
            tool("Write", json!({ "file_path": cart, "content": "def total(items):\n    return sum(items)\n" })),
        ]),
        tool("Edit", json!({ "file_path": cart, "old_string": "sum(items)", "new_string": "sum(items), tax(items)" })).into(),
        shell(&format!("echo 'STAGING={secret}' > .env && cat .env")).into(),
        text("The total is split: net first, then the tax.").into(),
    ]));
    let first = machine.ask(
        prompt.as_str(),
        &Ask {
            permissions: Permissions::Skipped,
            resume: None,
            fork: false,
        },
    )?;
    clean(&first)?;
    let failed = machine
        .api()
        .requests_of(Kind::Main)
        .iter()
        .flat_map(Request::tool_results)
        .find(|(_, failed)| *failed);
    if let Some((result, _)) = failed {
        return Err(TestFailure::new(format!(
            "a scripted tool call failed: {result}"
        )));
    }

    let note = store.wait_for_session(&first.session)?;
    note.expect("type", Some("episodic"))?;
    note.expect("title", Some(TITLE))?;
    note.expect("project", Some("github.com/acme/shop"))?;
    note.expect("prov_source", Some("session-end"))?;
    for part in ["cart.py", "The total is split"] {
        check(note.body.contains(part), || {
            format!("{part:?} is not in the note:\n{}", note.body)
        })?;
    }

    machine.api().play(Script::default());
    let before = machine.api().requests_of(Kind::Main).len();
    let second = machine.ask("What did we do last?", &Ask::default())?;
    clean(&second)?;
    let requests = machine.api().requests_of(Kind::Main);
    given(requests.get(before), TITLE)?;

    // A session that only asks what is remembered leaves no note.
    store.expect_free_of(&secret)?;
    Ok(())
}

/// `/compact` injects the notes again, and the session still has one note.
fn compact(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let earlier = remember_session(&machine, &store, "Add a discount to the cart")?;
    let session = remember_session(&machine, &store, "Round the prices to cents")?;
    let id = session.value("prov_session").unwrap_or_default();
    let how = Ask {
        resume: Some(id),
        fork: false,
        ..Ask::default()
    };

    let compacted = machine.ask("/compact", &how)?;
    clean(&compacted)?;
    // The next request cannot show that, because it comes from a new process whose start injects
    // notes, too. `compact-typed` checks the request.
    let hook = compacted
        .hooks
        .iter()
        .find(|hook| hook.name == "SessionStart:compact");
    let printed = hook.map(|hook| hook.stdout.as_str()).unwrap_or_default();
    check(printed.contains(earlier.title()), || {
        format!("after the compaction the hook printed {printed:?}")
    })?;
    let summaries = machine.api().requests_of(Kind::Compaction);
    let is_instructed = |request: &Request| request.text().contains("quote word for word");
    check(summaries.iter().any(is_instructed), || {
        "the request for a summary has no instructions of ours".to_owned()
    })?;
    machine.api().play(Script::default());
    clean(&machine.ask("And the tests?", &how)?)?;

    store.wait_for("the note with both tags", |note| {
        note.value("prov_session") == Some(id)
            && note.has_tag("precompact")
            && note.has_tag("session-end")
    })?;
    let notes = store.notes();
    check(notes.len() == 2, || {
        format!("two sessions left {} notes: {notes:#?}", notes.len())
    })?;
    // The client's own helper also ended and must not be recorded as a subagent.
    let helped = "SELECT 1 FROM hook WHERE event = 'SubagentStop' LIMIT 1";
    store.expect_rows(helped, &["1"])?;
    let ends = format!("SELECT speaker FROM turn_end WHERE session = '{id}' ORDER BY number");
    store.expect_rows(&ends, &["main", "compact", "main"])
}

/// The first request after a typed `/compact` contains the notes.
fn compact_typed(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let earlier = remember_session(&machine, &store, "Add a voucher to the cart")?;

    machine.api().play(Script::turns([
        text("Vouchers expire now."),
        text("Four tests are missing."),
    ]));
    let terminal = Terminal::start(&machine)?;
    terminal.send("Let vouchers expire")?;
    terminal.wait_for("Vouchers expire now.")?;
    terminal.send("/compact")?;
    wait_until(REQUEST_LIMIT, "the request for a summary", || {
        (!machine.api().requests_of(Kind::Compaction).is_empty()).then_some(())
    })?;
    terminal.send("And the tests?")?;
    terminal.wait_for("Four tests are missing.")?;
    let request = last_request(&machine)?;
    check(!request.answers().contains("Vouchers expire now."), || {
        "the session was not compacted".to_owned()
    })?;
    given(Some(&request), earlier.title())?;
    given(Some(&request), "Let vouchers expire")?;
    untroubled(&terminal.screen()?)?;
    terminal.exit()
}

/// The slash commands work without permission dialogs in the default mode, with any text.
fn commands(stage: &Stage) -> Result<()> {
    const FACT: &str =
        "The deploy key's path is vault/shop; $(rotate) it `monthly`, \"never\" by hand";
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());

    machine.api().play(Script::default());
    clean(&machine.ask("/memory-status", &Ask::default())?)?;
    let status = last_request(&machine)?.prompt();
    check(status.contains("notes: 0"), || {
        format!("no `notes: 0` in\n{status}")
    })?;

    clean(&machine.ask(&format!("/memory-remember {FACT}"), &Ask::default())?)?;
    let note = store.wait_for("the note that was typed", |note| note.body.contains(FACT))?;
    note.expect("prov_source", Some("human"))?;
    note.expect("prov_actor", None)?;
    let told = last_request(&machine)?;
    check(told.text().contains(note.short_id()), || {
        format!(
            "the model was not told of #{} with {}",
            note.short_id(),
            told.prompt()
        )
    })?;

    machine.api().play(Script::turns([searching("deploy key")]));
    clean(&machine.ask("/memory-search deploy key", &Ask::default())?)?;
    let found = tool_result(&machine)?;
    check(found.contains(note.short_id()), || {
        format!("the search did not find the note: {found}")
    })?;

    // Forgetting needs confirmation, which a headless session cannot give.
    let forgetting = serving::ours("memory_forget", json!({ "id": note.short_id() }));
    let forget = format!("/memory-forget {}", note.short_id());
    machine.api().play(Script::turns([forgetting.clone()]));
    let refused = machine.ask(&forget, &Ask::default())?.denied;
    check(refused.len() == 1, || {
        format!("a note was forgotten without a word: {refused:?}")
    })?;
    machine.api().play(Script::turns([forgetting]));
    let allowed = Ask {
        permissions: Permissions::Skipped,
        resume: None,
        fork: false,
    };
    clean(&machine.ask(&forget, &allowed)?)?;
    tool_result(&machine)?;
    let tombstone = store.wait_for("the tombstone", |found| found.short_id() == note.short_id())?;
    tombstone.expect("state", Some("forgotten"))?;
    // The Python version reads no note without the key.
    tombstone.expect("title", Some(""))?;
    check(tombstone.body.trim().is_empty(), || {
        format!("the forgotten text is still there: {tombstone:?}")
    })
}

/// Uninstalling the plugin leaves the notes unchanged.
fn uninstall(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    remember_session(&machine, &store, "Name the currencies")?;
    let before = store.note_files();
    machines::anamnesis(&machine, &["init", "--link", "--no-sync"])?;
    machine.uninstall_plugin()?;
    check(machine.plugin_root().is_err(), || {
        "the plugin is still installed".to_owned()
    })?;
    check(store.note_files() == before, || {
        "the notes changed".to_owned()
    })?;
    let status = machines::linked(&machine, &["status"])?;
    check(status.contains("uninstalled from Claude Code"), || status)
}

/// `/clear` ends a session, whose note is written, and starts one with injected notes.
fn clear(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    let earlier = remember_session(&machine, &store, "Sort the cart by name")?;

    machine.api().play(Script::turns([
        text("Sorted by price."),
        text("Nothing is open."),
    ]));
    let terminal = Terminal::start(&machine)?;
    terminal.send("Sort the cart by price instead")?;
    terminal.wait_for("Sorted by price.")?;
    terminal.send("/clear")?;
    store.wait_for("the note of the session before /clear", |note| {
        note.value("title") == Some("Sort the cart by price instead") && note.has_tag("session-end")
    })?;
    terminal.send("What is open?")?;
    terminal.wait_for("Nothing is open.")?;
    let request = last_request(&machine)?;
    check(!request.answers().contains("Sorted by price."), || {
        "the session was not cleared".to_owned()
    })?;
    given(Some(&request), earlier.title())?;
    untroubled(&terminal.screen()?)?;
    terminal.exit()?;
    // A session that only asks what is open leaves no note.
    store.expect_rows(
        "SELECT source, end_reason, first_prompt FROM session ORDER BY rowid",
        &[
            "startup|other|Sort the cart by name",
            "startup|clear|Sort the cart by price instead",
            "clear|prompt_input_exit|What is open?",
        ],
    )?;
    let notes = store.notes();
    check(notes.len() == 2, || {
        format!(
            "two sessions left notes, and there are {}: {notes:#?}",
            notes.len()
        )
    })
}

/// The first day: no dialog, no error, one line at the start, `/memory-status` without notes.
fn first_session(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    machine.api().play(Script::turns([text(
        "The stock is checked before the sale.",
    )]));

    let terminal = Terminal::start(&machine)?;
    let screen = terminal.wait_for("/memory-status")?;
    check(our_lines(&screen).len() == 1, || {
        format!("not one line of ours:\n{screen}")
    })?;
    check(screen.contains(".anamnesis"), || {
        format!("the line does not say where:\n{screen}")
    })?;
    // The hook answers, and the model gets no turn.
    terminal.send("/memory-status")?;
    for part in ["store: ~/.anamnesis", "notes: 0", "noted when it ends"] {
        terminal.wait_for(part)?;
    }
    stage.keep_screen("first-session", &terminal)?;
    terminal.send("Check the stock before a sale")?;
    terminal.wait_for("The stock is checked before the sale.")?;
    untroubled(&terminal.screen()?)?;
    terminal.exit()?;
    store.wait_for("the first session's note", |note| {
        note.has_tag("session-end")
    })?;

    let terminal = Terminal::start(&machine)?;
    let screen = terminal.wait_for("anamnesis: 1 note (~")?;
    let lines = our_lines(&screen);
    check(lines.len() == 1, || {
        format!("not one line of ours:\n{screen}")
    })?;
    for part in [" tokens)", "last session"] {
        check(lines.iter().all(|line| line.contains(part)), || {
            format!("{part:?} is not in {lines:?}")
        })?;
    }
    machine.api().play(Script::turns([text("That is noted.")]));
    terminal.send("/memory-remember Prices are in cents")?;
    terminal.wait_for("That is noted.")?;
    store.wait_for("the note that was typed", |note| {
        note.value("prov_source") == Some("human") && note.body.contains("Prices are in cents")
    })?;
    terminal.send("/memory-search cents")?;
    terminal.wait_for("/memory-forget ID")?;
    untroubled(&terminal.screen()?)?;
    terminal.exit()
}

impl Stage<'_> {
    /// Writes what the terminal shows now, if screens are wanted.
    pub(super) fn keep_screen(&self, name: &str, terminal: &Terminal<'_>) -> Result<()> {
        let Some(folder) = self.screens else {
            return Ok(());
        };
        fs::create_dir_all(folder).context(folder.display())?;
        let path = folder.join(format!("{name}.svg"));
        let svg = screen::svg(&terminal.screen_in_colour()?, name);
        fs::write(&path, svg).context(path.display())
    }

    /// Returns a machine with the plugin installed.
    pub(super) fn machine(&self) -> Result<Sandbox<'_>> {
        let machine = Sandbox::new(self.client, self.folder)?;
        machine.install_plugin(self.marketplace)?;
        Ok(machine)
    }
}

/// Plays a short session and returns its note.
pub(super) fn remember_session(machine: &Sandbox, store: &Store, title: &str) -> Result<Note> {
    machine
        .api()
        .play(Script::turns([text("It is done, and the tests pass.")]));
    let answer = machine.ask(title, &Ask::default())?;
    clean(&answer)?;
    store.wait_for_session(&answer.session)
}

/// Returns a call of the Bash tool.
pub(super) fn shell(command: &str) -> Block {
    tool(
        "Bash",
        json!({ "command": command, "description": "Run a command" }),
    )
}

/// Returns the search call that `/memory-search` asks of the model.
fn searching(query: &str) -> Block {
    let input = json!({ "query": query, "detail": "index", "k": 10 });
    serving::ours("memory_search", input)
}

/// Returns a dummy token in GitHub's format.
///
/// It is assembled at run time, so that secret scanners do not report this file.
fn fake_token() -> String {
    ["ghp", "_", "q7Zr2XkV9mNcL4tB8sWd", "Y1hJ6fPgA3uE0oRi"].concat()
}

/// Fails if a tool was refused, a hook failed, or a hook printed a message: nobody reads messages
/// under `claude -p`.
pub(super) fn clean(answer: &ClientRun) -> Result<()> {
    check(answer.denied.is_empty(), || {
        format!("refused for want of permission: {:?}", answer.denied)
    })?;
    for hook in &answer.hooks {
        let ended_well = hook.exit_code.unwrap_or(0) == 0 && hook.stderr.is_empty();
        check(ended_well, || format!("a hook failed: {hook:?}"))?;
        check(!hook.stdout.contains("systemMessage"), || {
            format!("a hook speaks to nobody: {hook:?}")
        })?;
    }
    let started = answer
        .hooks
        .iter()
        .any(|hook| hook.name.starts_with("SessionStart:"));
    check(started, || format!("no SessionStart hook ran: {answer:?}"))
}

/// Fails unless a request contains a title in an injected block.
pub(super) fn given(request: Option<&Request>, title: &str) -> Result<()> {
    let sent = request.map(Request::text).unwrap_or_default();
    let blocks = context_blocks(&sent);
    let found = blocks.iter().any(|block| block.contains(title));
    check(found, || {
        format!(
            "{title:?} is in none of {} blocks: {blocks:#?}",
            blocks.len()
        )
    })
    .map(drop)
}

/// Returns the last request of the main loop.
pub(super) fn last_request(machine: &Sandbox) -> Result<Request> {
    let mut requests = machine.api().requests_of(Kind::Main);
    requests
        .pop()
        .ok_or_else(|| TestFailure::new("the client sent no request"))
}

/// Returns the result of the last tool call, which must be the only one.
pub(super) fn tool_result(machine: &Sandbox) -> Result<String> {
    match last_request(machine)?.tool_results().as_slice() {
        [(result, false)] => Ok(result.clone()),
        other => Err(TestFailure::new(format!(
            "not one tool call that worked: {other:?}"
        ))),
    }
}

/// Returns the lines on the screen that the plugin prints for the person.
fn our_lines(screen: &str) -> Vec<&str> {
    screen
        .lines()
        .filter(|line| line.contains("anamnesis: "))
        .collect()
}

/// Fails if the screen shows a hook error or a permission dialog.
pub(super) fn untroubled(screen: &str) -> Result<()> {
    let low = screen.to_lowercase();
    for trouble in [
        "hook error",
        "hook failed",
        "hook timed out",
        "do you want to",
    ] {
        check(!low.contains(trouble), || {
            format!("the screen shows {trouble:?}:\n{screen}")
        })?;
    }
    Ok(())
}

/// Parses the number in the line `Always-on:   ~1,234 tok`.
fn always_on_tokens(details: &str) -> Option<u32> {
    let line = details
        .lines()
        .find_map(|line| line.trim().strip_prefix("Always-on:"))?;
    let word = line.split_whitespace().next()?;
    let digits: String = word.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Fails with the reason unless `holds`.
pub(super) fn check(holds: bool, reason: impl FnOnce() -> String) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(TestFailure::new(reason()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_on_tokens_are_parsed() {
        for (details, tokens) in [
            (
                "Projected token cost\n  Always-on:   ~29 tok   added to every session\n",
                Some(29),
            ),
            ("  Always-on:   ~1,234 tok   added", Some(1_234)),
            ("  Always-on:   none", None),
            ("  Hooks (4)", None),
        ] {
            assert_eq!(always_on_tokens(details), tokens, "{details}");
        }
    }

    #[test]
    fn hook_errors_on_the_screen_are_found() {
        untroubled("❯ \n  anamnesis: 1 note").unwrap();
        untroubled("⎿ SessionStart:startup hook error").unwrap_err();
        untroubled("Do you want to proceed?\n❯ 1. Yes").unwrap_err();
    }
}
