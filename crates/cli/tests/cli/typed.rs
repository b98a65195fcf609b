//! Slash commands that a hook answers in an interactive session, without a turn of the model.

use std::fs;

use anamnesis_testkit::home::TestHome;
use serde_json::Value;

use crate::{NO_OP, SESSION, furnished, home, snapshot};

/// The hook's answer to a prompt that is typed in the client.
fn answer(home: &TestHome, prompt: &str, entry: &str) -> Value {
    let mut payload = home.payload("UserPromptSubmit", SESSION);
    payload["prompt"] = prompt.into();
    let hook = home.hook_with(payload.to_string()).by_agent();
    hook.env("CLAUDE_CODE_ENTRYPOINT", entry).run().json()
}

/// What the person sees.
fn typed(home: &TestHome, prompt: &str) -> String {
    let answer = answer(home, prompt, "cli");
    assert_eq!(answer["decision"], "block", "{answer}");
    let output = &answer["hookSpecificOutput"];
    assert_eq!(output["suppressOriginalPrompt"], true);
    assert!(output["additionalContext"].is_null());
    answer["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_pause_has_a_way_out_in_the_session() {
    let home = furnished();
    home.run("reindex").well();
    home.run("pause").well();
    assert_eq!(home.hook(&home.start(SESSION, "startup")).well(), NO_OP);
    snapshot!(typed(&home, "/memory-pause"), @"
    github.com/acme/shop is paused already
    Resume: /memory-resume
    ");
    assert!(typed(&home, "/memory-status").contains("off (paused here)"));
    snapshot!(typed(&home, "/memory-resume"), @"resumed github.com/acme/shop");
    assert!(
        home.hook(&home.start(SESSION, "startup"))
            .well()
            .contains("stub server")
    );
    home.run("pause --all").well();
    snapshot!(typed(&home, "/anamnesis:memory-resume --all"), @"resumed everywhere");
}

#[test]
fn a_project_is_resumed_although_the_shell_has_left_it() {
    let home = home();
    home.run("pause").well();
    let elsewhere = home.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut payload = home.payload("UserPromptSubmit", SESSION);
    payload["prompt"] = "/memory-resume".into();
    let hook = home.hook_with(payload.to_string()).within(&elsewhere);
    let hook = hook.env("CLAUDE_PROJECT_DIR", home.project());
    let answer = hook.env("CLAUDE_CODE_ENTRYPOINT", "cli").run().json();
    assert_eq!(answer["reason"], "resumed github.com/acme/shop");
}

#[test]
fn a_typed_remote_is_set_and_shown_without_its_password() {
    let home = home();
    let said = typed(
        &home,
        "/memory-setup remote https://me:hunter2@git.home/memory.git",
    );
    snapshot!(said, @"
    remote = https://git.home/memory.git (was none, the default)
    Everyone who can read this repository can read your notes, session notes included.
    It is joined in the background · /memory-status
    Undo: /memory-setup remote none
    ");
    assert!(home.read("config.json").contains("hunter2"));
    snapshot!(typed(&home, "/memory-setup remote none"), @"
    remote = none, the default (was https://git.home/memory.git)
    Undo: /memory-config remote https://git.home/memory.git
    ");
    snapshot!(typed(&home, "/memory-setup remote ext::sh"), @"
    anamnesis: `ext` addresses are refused: only ssh, https and absolute paths are taken
    → git@HOST:PATH, ssh://HOST/PATH, https://HOST/PATH or a folder
    ");
    assert!(!home.read("config.json").contains("\"remote\""));
}

#[test]
fn a_typed_setting_is_changed_and_can_be_undone() {
    let home = home();
    snapshot!(typed(&home, "/memory-config session_line off"), @"
    session_line = off (was on, the default)
    Undo: /memory-config unset session_line
    ");
    snapshot!(typed(&home, "/memory-config session_line"), @"off");
    snapshot!(typed(&home, "/memory-config unset session_line"), @"
    session_line = on, the default (was off)
    Undo: /memory-config session_line off
    ");
    snapshot!(typed(&home, "/memory-config sesion_line off"), @r#"
    anamnesis: there is no setting "sesion_line"
    → session_line?   (all: /memory-config)
    "#);
}

#[test]
fn forgetting_by_a_slash_command_names_the_note_and_is_the_persons() {
    let home = furnished();
    home.run("reindex").well();
    let found = typed(&home, "/memory-forget stub server");
    assert!(
        found.contains("\n→ anamnesis show ID · /memory-forget ID\n"),
        "{found}"
    );
    let said = typed(&home, "/memory-forget #B2M6RD");
    assert!(
        said.starts_with(
            "forgot #B2M6RD \"Rate limits live in middleware/limit.rs\"\nUndo: /memory-undo "
        ),
        "{said}"
    );
    assert!(home.run("review").well().starts_with("nothing is pending"));
    let undo = said.lines().nth(1).unwrap();
    let undo = undo
        .trim_start_matches("Undo: ")
        .split(" · ")
        .next()
        .unwrap();
    assert!(typed(&home, undo).starts_with("undid "));
    assert!(home.run("list").well().contains("B2M6RD"));
}

#[test]
fn looking_costs_no_turn_of_the_model() {
    let home = furnished();
    home.run("reindex").well();
    for (prompt, part) in [
        ("/memory-status", "store: ~/.anamnesis"),
        ("/anamnesis:memory-doctor", "beside"),
        ("/memory-why", "session 5b0c8f1e"),
        ("/memory-search stub", "7Q4KZ9  how-to"),
        ("/memory-task", "→ /memory-task TEXT"),
        ("/memory-setup", "machine  laptop"),
    ] {
        let said = typed(&home, prompt);
        assert!(said.contains(part), "{prompt}: {said}");
    }
    // Headless, nobody would see the reason.
    for entry in ["sdk-cli", ""] {
        assert!(answer(&home, "/memory-status", entry)["decision"].is_null());
        answer(&home, "/memory-config session_line off", entry);
    }
    assert!(!home.read("config.json").contains("session_line"));
}

#[test]
fn the_launcher_of_the_plugin_is_not_another_anamnesis() {
    let home = crate::doctor::sound();
    let plugin = home.root().join("plugin");
    fs::create_dir_all(plugin.join(".claude-plugin")).unwrap();
    fs::create_dir_all(plugin.join("bin")).unwrap();
    let launcher = format!("bin/anamnesis{}", std::env::consts::EXE_SUFFIX);
    fs::write(plugin.join(launcher), "#!/bin/sh\n").unwrap();
    let doctor = || {
        home.command(["doctor"])
            .env("PATH", plugin.join("bin"))
            .run()
    };
    assert_eq!(doctor().code, Some(3));
    let manifest = plugin.join(".claude-plugin/plugin.json");
    fs::write(manifest, r#"{"name": "anamnesis"}"#).unwrap();
    assert_eq!(doctor().code, Some(0), "{:?}", doctor());
    // A terminal does not have it on PATH.
    let setup = home
        .command(["init", "--print"])
        .env("PATH", plugin.join("bin"));
    assert!(setup.run().well().contains("not on your PATH"));
}

#[test]
fn an_uninstalled_plugin_is_not_all_well() {
    let home = crate::doctor::sound();
    let plugins = home.claude().join("plugins");
    let program = plugins.join("cache/anamnesis/bin/native/anamnesis");
    let journal = rusqlite::Connection::open(home.store().join("journal.db")).unwrap();
    let set = "INSERT OR REPLACE INTO meta VALUES ('hook_program', ?1)";
    journal.execute(set, [program.to_str()]).unwrap();
    drop(journal);
    fs::create_dir_all(&plugins).unwrap();
    let listed = plugins.join("installed_plugins.json");
    fs::write(&listed, r#"{"plugins": {"anamnesis@anamnesis": []}}"#).unwrap();
    fs::write(home.claude().join("settings.json"), "{}").unwrap();
    assert_eq!(home.run("doctor").code, Some(0));
    fs::write(&listed, r#"{"plugins": {}}"#).unwrap();
    let doctor = home.run("doctor");
    assert_eq!(doctor.code, Some(3));
    assert!(
        doctor
            .stdout
            .contains("! plugin     uninstalled from Claude Code"),
        "{doctor:?}"
    );
    let status = home.run("status").well();
    assert!(
        status.contains("state: uninstalled from Claude Code"),
        "{status}"
    );
}

#[test]
fn the_status_line_says_what_was_given() {
    let home = furnished();
    home.run("reindex").well();
    home.hook(&home.start(SESSION, "startup")).well();
    let input = serde_json::json!({ "session_id": SESSION, "cwd": home.project() });
    let line = || {
        let line = home.command(["statusline"]).input(input.to_string());
        line.run().well()
    };
    assert_eq!(line(), "anamnesis: 3 notes · 4 injected\n");
    home.run("pause").well();
    assert_eq!(line(), "anamnesis: off (paused here)\n");
}
