//! Former names of commands: hidden, and the same as the current ones.

use std::fs;

use anamnesis_testkit::home::{NoteText, Output, TestHome};

use crate::{home, id};

/// The former names and the current ones, with the same arguments. MAP is a list of keys.
const NAMES: [(&str, &str); 28] = [
    ("dedup", "upkeep --only duplicates"),
    (
        "dedup --no-sync --apply",
        "upkeep --only duplicates --no-sync --apply",
    ),
    ("dedup --all", "upkeep --only duplicates --all"),
    ("normalise", "upkeep --only format"),
    (
        "normalise --apply --no-sync",
        "upkeep --only format --apply --no-sync",
    ),
    ("reatomise", "upkeep --only split"),
    ("reatomise JJJJJJ", "upkeep --only split JJJJJJ"),
    ("reatomise AAAAAA", "upkeep --only split AAAAAA"),
    ("reatomise --over 5", "upkeep --only split --over 5"),
    (
        "reatomise JJJJJJ --over 5",
        "upkeep --only split JJJJJJ --over 5",
    ),
    (
        "reatomise JJJJJJ --apply",
        "upkeep --only split JJJJJJ --apply",
    ),
    ("relink", "upkeep --only links"),
    ("relink --json", "upkeep --only links --json"),
    ("backfill-provenance", "upkeep --only provenance"),
    (
        "backfill-provenance --apply --no-sync",
        "upkeep --only provenance --apply --no-sync",
    ),
    ("migrate", "project migrate"),
    ("migrate --map MAP", "project migrate --map MAP"),
    (
        "migrate --map MAP --apply",
        "project migrate --map MAP --apply",
    ),
    ("capture --no-sync", "internal capture --no-sync"),
    ("inject --json", "internal inject --json"),
    ("inject --k -1", "internal inject --k -1"),
    ("maintain", "internal maintain"),
    ("reindex", "internal reindex"),
    ("work", "internal work"),
    ("completions bash", "internal completions bash"),
    ("statusline", "internal statusline"),
    ("model", "config model"),
    ("restore AAAAAA", "forget --undo AAAAAA"),
];

fn untidy() -> TestHome {
    let home = home();
    for note in [
        NoteText::new(&id("AAAAAA"), "Linter").body("Run the linter."),
        NoteText::new(&id("BBBBBB"), "It's the linter")
            .body("Run the linter.")
            .with("tags", "[import, CI]"),
        NoteText::new(&id("JJJJJJ"), "Deploys")
            .body("## Staging\n\nBy hand, see [[Nothing]].\n\n## Production\n\nBy CI.\n"),
    ] {
        home.add(&note);
    }
    fs::write(
        home.root().join("map.json"),
        "{\"projects\": {\"github.com/acme/shop\": \"global\"}}",
    )
    .unwrap();
    home
}

/// Former names whose help is on no page of their own.
const OPTIONS: [(&str, &str); 2] = [
    ("history ZZZZZZ", "log --note ZZZZZZ"),
    ("diff ZZZZZZ", "log --diff ZZZZZZ"),
];

/// Runs a command in a home of its own, and hides what differs between two homes.
fn run(command: &str) -> Output {
    let home = untidy();
    let map = home.root().join("map.json");
    let mut output = home.run(&command.replace("MAP", map.to_str().unwrap()));
    if let Some((before, _)) = output.stdout.split_once("anamnesis undo ") {
        output.stdout = before.to_owned();
    }
    output
}

#[test]
fn a_former_name_does_what_the_current_one_does() {
    for (former, current) in NAMES.into_iter().chain(OPTIONS) {
        let (former_output, output) = (run(former), run(current));
        assert_eq!(former_output.code, output.code, "{former}");
        assert_eq!(former_output.stdout, output.stdout, "{former}");
        assert_eq!(former_output.stderr, output.stderr, "{former}");
    }
}

#[test]
fn an_option_takes_no_other_option_for_its_value() {
    for (command, code) in [
        ("list --project --json", 2),
        ("write --title --help --stdin", 2),
        ("list --project=--json", 0),
        ("search --project shop -- --json", 0),
        ("diff --help", 0),
        ("history --help", 0),
        ("dedup --help", 0),
    ] {
        let output = run(command);
        assert_eq!(output.code, Some(code), "{command}: {output:?}");
    }
}

#[test]
fn a_former_name_keeps_its_exit_codes() {
    for (command, code) in [
        ("dedup --apply --no-sync", 0),
        ("dedup --all", 2),
        ("dedup extra", 2),
        ("normalise --json", 2),
        ("reatomise", 2),
        ("reatomise JJJJJJ --over 5", 2),
        ("reatomise AAAAAA", 1),
        ("migrate", 2),
        ("migrate --map missing.json", 2),
        ("capture --source", 2),
        ("capture --transcript missing.jsonl", 0),
        ("inject", 0),
        ("reindex", 0),
        ("reindex extra", 2),
    ] {
        assert_eq!(run(command).code, Some(code), "{command}");
    }
}

#[test]
fn no_help_lists_a_former_name() {
    let home = home();
    let texts = [
        home.run("--help").well(),
        home.run("help --all").well(),
        home.run("completions bash").well(),
    ];
    for (former, current) in NAMES {
        let name = former.split(' ').next().unwrap();
        let first = current.split(' ').next().unwrap();
        // `internal` lists some of them as its own commands.
        for text in &texts[..2] {
            assert!(!text.contains(&format!("  {name} ")), "{name}");
        }
        assert!(!texts[2].contains(&format!("anamnesis,{name})")), "{name}");
        assert!(texts[1].contains(&format!("\n  {first} ")), "{first}");
        // The help of a former name is that of the current one.
        let page = home.run(&format!("help {name}")).well();
        assert!(
            page.contains(&format!("Usage: anamnesis {first} ")),
            "{page}"
        );
        assert_eq!(home.run(&format!("{name} --help")).well(), page, "{name}");
    }
}

#[test]
fn an_unknown_step_is_an_error_that_lists_the_steps() {
    let output = home().run("upkeep --only duplicates,dedup");
    assert_eq!(output.code, Some(2), "{output:?}");
    for text in [
        "invalid value 'dedup' for '--only <STEP>'",
        "[possible values: duplicates, format, split, provenance, links]",
    ] {
        assert!(output.stderr.contains(text), "{output:?}");
    }
}

#[test]
fn steps_run_in_the_order_in_which_they_are_named() {
    let home = untidy();
    let output = home.run("upkeep --only duplicates,format,links --apply --no-sync");
    let text = output.well();
    let place = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line}: {text}"));
    let (first, second) = (
        place("dedup: 1 duplicate replaced"),
        place("normalise: 3 notes changed"),
    );
    assert!(first < second && second < place("links: "), "{text}");
    // Each step is a change of its own.
    assert_eq!(text.matches("Undo: anamnesis undo").count(), 2, "{text}");
    for wrong in [
        "upkeep JJJJJJ",
        "upkeep --over 5",
        "upkeep --only duplicates JJJJJJ",
        "upkeep --only split",
        "upkeep --only duplicates --json",
        "upkeep --only duplicates --project global",
    ] {
        assert_eq!(home.run(wrong).code, Some(2), "{wrong}");
    }
}
