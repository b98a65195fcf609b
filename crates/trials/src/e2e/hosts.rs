//! Real sessions of Codex and Gemini CLI beside Claude Code: what was decided in one host is injected
//! into the next session of any.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anamnesis_testkit::client::{Ask, Sandbox};
use anamnesis_testkit::messages_api::{Kind, Request, Script, text, tool};
use anamnesis_testkit::npm;
use anamnesis_testkit::process::{self, Context as _, Finished, Result};
use serde_json::json;

use super::scenarios::{Stage, check, clean};
use super::store::Store;

/// Time limit for one session of a host.
const SESSION_LIMIT: Duration = Duration::from_secs(60);

/// A program on npm, its version and the name of its command. The versions are defined here only.
struct Program {
    package: &'static str,
    version: &'static str,
    command: &'static str,
}

const CODEX: Program = Program {
    package: "@openai/codex",
    version: "0.171.0",
    command: "codex",
};

const GEMINI: Program = Program {
    package: "@google/gemini-cli",
    version: "0.61.0",
    command: "gemini",
};

impl Program {
    /// Installs the program unless it is there, and returns its path.
    fn install(&self, stage: &Stage) -> Result<PathBuf> {
        let folder = stage
            .cache
            .join(format!("{}-{}", self.command, self.version));
        npm::install(&folder, self.package, self.version)?;
        Ok(folder.join("node_modules/.bin").join(self.command))
    }
}

/// Codex with the plugin from its own marketplace.
pub(super) fn codex(stage: &Stage) -> Result<()> {
    let program = CODEX.install(stage)?;
    let machine = stage.machine()?;
    let folder = machine.home().join(".codex");
    fs::create_dir_all(&folder).context(folder.display())?;
    let settings = format!(
        "model = \"gpt-5\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\n\
         base_url = \"{}/v1\"\nwire_api = \"responses\"\n",
        machine.api().url()
    );
    fs::write(folder.join("config.toml"), settings).context("config.toml")?;
    let run = |arguments: &[&str]| {
        let mut command = machine.command(&program);
        process::run(command.args(arguments), SESSION_LIMIT)
    };
    let tree = stage.plugin.to_string_lossy();
    run(&["plugin", "marketplace", "add", &tree])?.successful("codex plugin marketplace add")?;
    run(&["plugin", "add", "anamnesis@anamnesis"])?.successful("codex plugin add")?;
    decisions_are_shared(&machine, "codex", "exec_command", "cmd", |prompt| {
        let flags = [
            "--dangerously-bypass-hook-trust",
            "--dangerously-bypass-approvals-and-sandbox",
        ];
        let finished = run(&["exec", flags[0], flags[1], prompt])?.successful("codex exec")?;
        // Codex names each hook with its end.
        let ran =
            |event: &str, end: &str| finished.stderr.contains(&format!("hook: {event} {end}"));
        for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
            check(ran(event, "Completed"), || {
                format!("{event} did not run: {finished}")
            })?;
        }
        check(!finished.stderr.contains(" Failed"), || {
            format!("a hook failed: {finished}")
        })?;
        Ok(finished)
    })
}

/// Gemini CLI with the extension and the terminal command.
pub(super) fn gemini(stage: &Stage) -> Result<()> {
    let program = GEMINI.install(stage)?;
    let machine = stage.machine()?;
    let own = machine.plugin_root()?.join("bin/anamnesis");
    process::run(
        machine.command(own).args(["init", "--link", "--yes"]),
        SESSION_LIMIT,
    )?
    .successful("anamnesis init --link")?;
    let settings = json!({
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "privacy": { "usageStatisticsEnabled": false },
        "general": { "disableAutoUpdate": true },
    });
    let folder = machine.home().join(".gemini");
    fs::create_dir_all(&folder).context(folder.display())?;
    fs::write(folder.join("settings.json"), settings.to_string()).context("settings.json")?;
    let run = |arguments: &[&str]| {
        let mut command = machine.command(&program);
        without_proxy(&mut command)
            .env("GEMINI_API_KEY", "offline")
            .env("GOOGLE_GEMINI_BASE_URL", machine.api().url())
            .env("GEMINI_CLI_TRUST_WORKSPACE", "true");
        process::run(command.args(arguments), SESSION_LIMIT)
    };
    let extension = stage.plugin.join("hosts/gemini");
    run(&[
        "extensions",
        "install",
        &extension.to_string_lossy(),
        "--consent",
    ])?
    .successful("gemini extensions install")?;
    decisions_are_shared(
        &machine,
        "gemini",
        "run_shell_command",
        "command",
        |prompt| {
            run(&["--yolo", "--model", "gemini-2.5-pro", "-p", prompt])?.successful("gemini -p")
        },
    )
}

/// Gemini CLI ignores `NO_PROXY` for the model.
fn without_proxy(command: &mut Command) -> &mut Command {
    command.env_remove("HTTP_PROXY").env_remove("HTTPS_PROXY")
}

/// Plays two sessions of a host, one of Claude Code, and one of the host again. Each is told about the
/// decision of an earlier one.
fn decisions_are_shared(
    machine: &Sandbox,
    host: &str,
    shell: &str,
    argument: &str,
    ask: impl Fn(&str) -> Result<Finished>,
) -> Result<()> {
    const DECISION: &str = "Store all prices as integer cents from now on";
    const OTHER: &str = "Always keep the currency code beside the amount of an order";
    let (store, api) = (Store::new(&machine.home()), machine.api());

    api.play(Script::turns([
        tool(
            shell,
            json!({ argument: "echo checked the prices", "description": "x" }),
        ),
        text("All prices are integer cents now, because floats lose money."),
    ]));
    ask(&format!("{DECISION}, because floats lose money."))?;
    let note = store.wait_for("the note of the first session", |note| {
        note.value("prov_host") == Some(host) && note.has_tag("session-end")
    })?;
    note.expect("title", Some(DECISION)).or_else(|_| {
        check(note.title().starts_with(DECISION), || {
            format!("title: {}", note.title())
        })
    })?;
    note.expect("prov_source", Some("session-end"))?;
    // The process that wrote the note may still be building the first index.
    let program = machine.plugin_root()?.join("bin/anamnesis");
    process::run(machine.command(program).arg("reindex"), SESSION_LIMIT)?
        .successful("anamnesis reindex")?;

    api.play(Script::default());
    let before = api.requests_of(Kind::Main).len();
    ask("What did we do last?")?;
    check_injected(&api.requests_of(Kind::Main), before, DECISION)?;

    api.play(Script::turns([text("Each order keeps its currency code.")]));
    let before = api.requests_of(Kind::Main).len();
    let answer = machine.ask(&format!("{OTHER}, for the invoices."), &Ask::default())?;
    clean(&answer)?;
    check_injected(&api.requests_of(Kind::Main), before, DECISION)?;
    let note = store.wait_for_session(&answer.session)?;
    note.expect("prov_host", None)?;

    api.play(Script::default());
    let before = api.requests_of(Kind::Main).len();
    ask("And what else did we decide?")?;
    check_injected(&api.requests_of(Kind::Main), before, OTHER)
}

/// Checks that the first request after `before` has notes with this text. Gemini CLI escapes our tags.
fn check_injected(requests: &[Request], before: usize, wanted: &str) -> Result<()> {
    let sent = requests.get(before).map(Request::text).unwrap_or_default();
    let notes = sent.split("anamnesis-context").nth(1).unwrap_or_default();
    check(notes.contains(wanted), || {
        format!("{wanted:?} is not in the notes: {notes}")
    })
}
