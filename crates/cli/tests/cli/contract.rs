//! The contract of the command line: exit code and first line of every command in every situation.

use std::fmt::Write as _;

use anamnesis_testkit::home::{Output, TestHome};

use crate::{home, home_with_notes, snapshot};

/// Commands that need an argument, with one. The others run as they are.
const ARGUMENTS: [(&str, &str); 15] = [
    ("search", "search stub"),
    ("recall", "recall stub"),
    ("show", "show 7Q4KZ9"),
    ("edit", "edit 7Q4KZ9 --title Changed"),
    ("write", "write --title New --kind fact"),
    ("forget", "forget 7Q4KZ9"),
    ("move", "move 7Q4KZ9 --project global"),
    ("pin", "pin 7Q4KZ9"),
    ("mute", "mute 7Q4KZ9"),
    ("connect", "connect 7Q4KZ9 B2M6RD"),
    ("task", "task list"),
    ("verify", "verify B2M6RD"),
    ("feedback", "feedback 7Q4KZ9 good"),
    ("redact", "redact"),
    ("backup", "backup store.tar"),
];

fn commands(home: &TestHome) -> Vec<String> {
    let help = home.run("help --all").well();
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// The exit code and the first line. Fails if it panicked, or said nothing.
fn line(called: &str, output: &Output) -> String {
    let text = format!("{}{}", output.stdout, output.stderr);
    assert!(!text.contains("panicked"), "{called}: {text}");
    assert!(matches!(output.code, Some(0..=3)), "{called}: {output:?}");
    let first = text.lines().find(|line| !line.trim().is_empty());
    let mut first = first.unwrap_or_default().to_owned();
    // Ids and times differ from run to run.
    if let Some((before, after)) = first.split_once('#') {
        first = format!("{before}#…{}", after.get(6..).unwrap_or_default());
    }
    let first: String = first.chars().take(76).collect();
    format!("{} {first}", output.code.unwrap_or(-1))
}

#[test]
fn every_command_says_something_and_ends_as_documented() {
    let mut text = String::new();
    let mut faults = Vec::new();
    for name in commands(&home()) {
        // These wait for a client, play a session, or are run by hooks.
        if ["serve", "open", "demo", "internal", "help"].contains(&name.as_str()) {
            continue;
        }
        let sample = ARGUMENTS.iter().find(|(command, _)| *command == name);
        let sample = sample.map_or(name.as_str(), |(_, sample)| sample);
        let _ = writeln!(text, "{name}");
        let (empty, store, other) = (home(), home_with_notes(), home_with_notes());
        for (situation, home, called) in [
            ("bare, empty store", &empty, name.clone()),
            ("wrong option", &empty, format!("{name} --no-such-option")),
            ("empty store", &empty, sample.to_owned()),
            ("store", &store, sample.to_owned()),
            ("store, JSON", &other, format!("{sample} --json")),
        ] {
            let output = home.run(&called);
            let _ = writeln!(text, "  {situation:<18} {}", line(&called, &output));
            let is_json = serde_json::from_str::<serde_json::Value>(&output.stdout).is_ok();
            if situation == "store, JSON" && output.code == Some(0) && !is_json {
                faults.push(format!("{called} prints no JSON"));
            }
            // `redact` is a filter, and its input is empty.
            if output.stdout.is_empty() && output.stderr.is_empty() && name != "redact" {
                faults.push(format!("{called} says nothing ({situation})"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    snapshot!(text, "every_command");
}

#[cfg(unix)]
#[test]
fn every_command_says_something_on_a_terminal() {
    let mut text = String::new();
    for name in commands(&home()) {
        if ["serve", "open", "demo", "internal", "help"].contains(&name.as_str()) {
            continue;
        }
        let sample = ARGUMENTS.iter().find(|(command, _)| *command == name);
        let sample = sample.map_or(name.as_str(), |(_, sample)| sample);
        let home = home_with_notes();
        // Ctrl-D ends every question.
        let command = home.command(sample.split(' ')).input("\u{4}".repeat(8));
        let output = command.env("EDITOR", "true").run_on_a_terminal();
        let said = !output.stdout.is_empty() || !output.stderr.is_empty();
        assert!(said || name == "redact", "{sample} says nothing");
        let _ = writeln!(text, "{name:<12} {}", line(sample, &output));
    }
    snapshot!(text, "every_command_on_a_terminal");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let home = home_with_notes();
    for (called, said) in [
        ("search -n 0 stub", "expected an integer of 1 or more"),
        ("recall --limit 0 stub", "expected an integer of 1 or more"),
        (
            "config set recall.notes 9999",
            "expected an integer from 0 to 20",
        ),
        (
            "project merge nowhere github.com/acme/shop",
            "no note belongs to a project \"nowhere\"",
        ),
    ] {
        let output = home.run(called);
        assert_ne!(output.code, Some(0), "{called}");
        assert!(output.stderr.contains(said), "{called}: {}", output.stderr);
    }
    let write = |key: &str| {
        let words = ["write", "--title", "A note", "--project", key];
        home.command(words).run()
    };
    assert_eq!(write("bad key!!").code, Some(2));
    assert_eq!(write("good/key").code, Some(0));
}

#[test]
fn what_a_command_did_is_said_in_its_json() {
    let home = home_with_notes();
    for called in [
        "review --approve B2M6RD",
        "edit 7Q4KZ9 --title Changed",
        "move 7Q4KZ9 --project global",
        "pin 7Q4KZ9",
        "mute 7Q4KZ9",
        "connect 7Q4KZ9 B2M6RD",
        "verify B2M6RD",
        "feedback 7Q4KZ9 good",
        "write --title New",
        "task add Rotate the key",
        "forget 7Q4KZ9",
        "forget --undo 7Q4KZ9",
        "off",
        "on",
        "config unset session_line",
        "init --yes",
        "import",
        "backup store.tar",
    ] {
        let output = home.run(&format!("{called} --json"));
        let said = output.json()["said"].clone();
        assert_eq!(output.code, Some(0), "{called}: {output:?}");
        assert!(
            said.as_str().is_some_and(|said| !said.is_empty()),
            "{called}: {output:?}"
        );
    }
}
