//! `connect`, `relink`: links between notes.

use anamnesis_testkit::home::{NoteText, TestHome};

use crate::{home_with_notes, id, snapshot};

const STUB: &str = "memory/procedural/01JZ00000000000000007Q4KZ9.md";
const LIMITS: &str = "memory/semantic/01JZ0000000000000000B2M6RD.md";

#[test]
fn connect_and_take_it_back() {
    let home = home_with_notes();
    let before = home.read(STUB);
    snapshot!(home.run("connect 7Q4KZ9 B2M6RD --relation caused-by").shown(), @r#"
    exit 0
    #7Q4KZ9 "Integration tests need the stub server"
      now caused-by #B2M6RD "Rate limits live in middleware/limit.rs"
    Undo: anamnesis connect 7Q4KZ9 B2M6RD --relation caused-by --remove
    "#);
    let line = format!("links:\n- caused-by {}\n", id("B2M6RD"));
    assert_eq!(
        home.read(STUB),
        before.replacen("---\n`make", &format!("{line}---\n`make"), 1)
    );
    let again = home.run("connect 7Q4KZ9 B2M6RD -r caused-by");
    snapshot!(again.shown(), @"
    exit 0
    #7Q4KZ9 is unchanged
    ");
    // Another weight is the same link.
    home.run("connect 7Q4KZ9 B2M6RD -r caused-by --weight 0.5")
        .well();
    assert!(
        home.read(STUB)
            .contains(&format!("links:\n- caused-by {} 0.5\n---", id("B2M6RD")))
    );
    snapshot!(home.run("connect 7Q4KZ9 B2M6RD -r caused-by --remove").shown(), @r#"
    exit 0
    #7Q4KZ9 "Integration tests need the stub server"
      no longer caused-by #B2M6RD "Rate limits live in middleware/limit.rs"
    Undo: anamnesis connect 7Q4KZ9 B2M6RD --relation caused-by
    "#);
    assert_eq!(home.read(STUB), before);
    home.run("connect 7Q4KZ9 B2M6RD -r supersedes").well();
    assert!(
        home.read(STUB)
            .contains(&format!("supersedes:\n- {}\n", id("B2M6RD")))
    );
    assert!(home.run("list").well().contains("replaced"));
    home.run("connect 7Q4KZ9 B2M6RD -r supersedes --remove")
        .well();
    assert_eq!(home.read(STUB), before);
    let json = home.run("connect 7Q4KZ9 B2M6RD --json").json();
    snapshot!(format!("{json:#}"), @r##"
    {
      "said": "#7Q4KZ9 \"Integration tests need the stub server\"\n  now related-to #B2M6RD \"Rate limits live in middleware/limit.rs\"\nUndo: anamnesis connect 7Q4KZ9 B2M6RD --relation related-to --remove",
      "from": "01JZ00000000000000007Q4KZ9",
      "relation": "related-to",
      "to": "01JZ0000000000000000B2M6RD",
      "changed": true
    }
    "##);
}

#[test]
fn what_cannot_be_linked() {
    let home = home_with_notes();
    for words in [
        "connect 7Q4KZ9 7Q4KZ9",
        "connect 7Q4KZ9 B2M6RD -r loves",
        "connect 7Q4KZ9 B2M6RD -r mentions",
        "connect 7Q4KZ9 B2M6RD --weight 2",
        "connect 7Q4KZ9 B2M6RD -r supersedes --weight 0.5",
    ] {
        assert_eq!(home.run(words).code, Some(2), "{words}");
    }
    home.run("forget ZD81QV").well();
    snapshot!(home.run("connect 7Q4KZ9 ZD81QV").shown(), @"
    exit 1
    on stderr:
    anamnesis: #ZD81QV is forgotten
    → anamnesis forget --undo ZD81QV
    ");
    // A line that nobody can read stays, and so does one that says the same in other words.
    let odd = NoteText::new(&id("0DD0DD"), "Odd").with(
        "links",
        &format!("\n- depends-on x\n- related-to   {}", id("B2M6RD")),
    );
    home.add(&odd);
    home.run("connect 0DD0DD B2M6RD").well();
    home.run("connect 0DD0DD 7Q4KZ9").well();
    let text = home.read(&odd.path());
    assert!(text.contains("- depends-on x\n"), "{text}");
    assert_eq!(text.matches("related-to").count(), 2, "{text}");
}

#[test]
fn an_agent_links_its_own_notes_only() {
    // INJ-07
    let home = home_with_notes();
    let before = home.read(STUB);
    let agent = |words: &str| home.command(words.split(' ')).by_agent().run();
    let proposed = agent("connect 7Q4KZ9 B2M6RD").well();
    assert!(proposed.starts_with("proposed #"), "{proposed}");
    assert_eq!(home.read(STUB), before);
    agent("connect B2M6RD 7Q4KZ9 -r elaborates").well();
    assert!(home.read(LIMITS).contains("- elaborates"));
}

fn linked() -> TestHome {
    let home = home_with_notes();
    home.run("connect 7Q4KZ9 B2M6RD -r caused-by").well();
    home.run("connect B2M6RD ZD81QV -r part-of").well();
    home.run("connect 7Q4KZ9 ZD81QV -r about").well();
    home
}

#[test]
fn relink_twice_is_once() {
    let home = linked();
    home.add(
        &NoteText::new(&id("M0C4YB"), "Release steps")
            .with("links", &format!("\n- about {}\n- loves x", id("N0T0NE")))
            .body("See [[package manager is PNPM]] and [[nobody's title]]."),
    );
    let first = home.run("relink").shown();
    snapshot!(first, @r#"
    exit 0
    links: 3 declared, 1 by [[…]], 0 of sessions, 0 of files
    3 lead nowhere:
    #M0C4YB 01JZ0000000000000000N0T0NE: no such note here
    #M0C4YB loves x: expected one of caused-by, elaborates, part-of, related-to, ab…
    #M0C4YB nobody's title: no such note here
    → anamnesis edit ID   |   anamnesis connect ID ID --relation related-to
    "#);
    assert_eq!(home.run("relink").shown(), first);
    let json = home.run("relink --json").json();
    assert_eq!(
        (
            &json["declared"],
            json["unresolved"].as_array().unwrap().len()
        ),
        (&3.into(), 3)
    );
}

#[test]
fn files_are_links_and_likeness_is_none() {
    let home = home_with_notes();
    for (short, title, body) in [
        (
            "F11E01",
            "The limiter counts per address",
            "See `src/limit.rs`.",
        ),
        (
            "F11E02",
            "Tokens are refilled once a second",
            "In `src/limit.rs`.",
        ),
        (
            "S1M001",
            "The stub server is needed by integration tests",
            "",
        ),
    ] {
        home.add(&NoteText::new(&id(short), title).body(body));
    }
    let once = home.run("relink --json").json();
    assert_eq!(once["file"], 1, "{once:#}");
    assert_eq!(home.run("relink --json").json(), once);
    // Recall follows no likeness.
    let given = home
        .run("recall integration tests stub --json --depth 2")
        .json();
    let notes = given["notes"].as_array().unwrap();
    assert!(
        notes.iter().all(|note| note["evidence"]["via"].is_null()),
        "{given:#}"
    );
}
