//! `import --from` and `export`, as a person sees them.

use std::fs;

use serde_json::json;

use crate::{home, purge, untouched_home};

const MEMORY: &str = concat!(
    "{\"type\":\"entity\",\"name\":\"Stub\",\"observations\":[\"Listens on 9090\"]}\n",
    "{\"type\":\"entity\",\"name\":\"Stub\",\"observations\":[\"Listens on 9090\"]}\n",
    "{broken\n",
);

#[test]
fn a_memory_is_listed_then_imported_and_found() {
    let home = untouched_home();
    let source = home.root().join("memory.jsonl");
    fs::write(&source, MEMORY).unwrap();
    let run = |options: &[&str]| {
        let command = home.command(["import", "--from", "server-memory"]);
        command
            .arg(&source)
            .args(["--project", "shop"])
            .args(options.iter().copied())
            .run()
    };
    let said = run(&[]).well();
    assert!(
        said.contains(": 1 new, 0 already here, 2 skipped"),
        "{said}"
    );
    assert!(
        said.contains("[fact] Stub") && said.contains("--apply"),
        "{said}"
    );
    assert!(!home.store().exists(), "a dry run makes no store");
    let said = run(&["--apply", "--json"]).json();
    let source = &said["sources"][0];
    assert_eq!(
        (&source["new"], &source["projects"]),
        (&json!(1), &json!({"shop": 1}))
    );
    assert!(
        home.run("search stub --project shop")
            .well()
            .contains("Stub")
    );
    let said = run(&["--apply"]).well();
    assert!(said.contains("0 imported, 1 already here"), "{said}");
    let change = source["change"].as_str().unwrap();
    home.run(&format!("undo {change}")).well();
    assert_eq!(home.notes(), Vec::<String>::new());
}

#[test]
fn an_import_in_json_is_one_document_with_a_remote_too() {
    let (home, _) = purge::with_remote();
    let source = home.root().join("memory.jsonl");
    fs::write(&source, MEMORY).unwrap();
    let source = source.display();
    let words = format!("import --from server-memory {source} --project shop --apply --json");
    let output = purge::run(&home, &words);
    assert!(output.stderr.contains("synced"), "{output:?}");
    assert_eq!(output.json()["sources"][0]["new"], 1);
}

#[test]
fn an_import_says_what_is_wrong_with_its_options() {
    let home = home();
    for (words, expected) in [
        (
            "import --from nothing",
            "expected one of claude, auto, claude-mem",
        ),
        (
            "import --from auto x",
            "a PATH needs the name of its program",
        ),
        ("import --apply", "--apply needs --from SOURCE"),
        (
            "import --from engram",
            "nothing of engram in ~/.engram/engram.db",
        ),
        ("import --from mem0 missing.db", "missing.db"),
        ("export", "--json"),
    ] {
        let output = home.run(words);
        assert!(output.code != Some(0), "{words}");
        assert!(
            output.shown().contains(expected),
            "{words}: {}",
            output.shown()
        );
    }
    let said = home.run("import --from auto").well();
    assert!(said.contains("no memory of another program"), "{said}");
    let agent = home.command(["export", "--json"]).by_agent().run();
    assert!(agent.shown().contains("only a person"), "{}", agent.shown());
}
