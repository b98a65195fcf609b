//! `/memory-remember TEXT`: what a person types is saved before the model sees it.

use anamnesis_testkit::home::TestHome;

use crate::{NO_OP, SESSION, home, snapshot};

/// What the hook tells the model after a prompt.
fn prompt(home: &TestHome, text: &str) -> String {
    let mut payload = home.payload("UserPromptSubmit", SESSION);
    payload["prompt"] = text.into();
    // Claude Code sets this for all that it starts; a prompt is typed by a person all the same.
    let output = home.hook_with(payload.to_string()).by_agent().run();
    if output.stdout == NO_OP {
        return output.well();
    }
    let answer = output.json();
    assert_eq!(
        answer["hookSpecificOutput"]["hookEventName"],
        "UserPromptSubmit"
    );
    answer["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn the_words_are_saved_as_the_persons() {
    // CAP-01, CAP-03
    let home = home();
    let token = concat!("ghp", "_0123456789abcdefghijABCDEFGHIJ456789");
    let said = prompt(
        &home,
        &format!(
            "/memory-remember Deploys need {token}\nand a review <private>by my boss</private>"
        ),
    );
    let notes = home.notes();
    assert_eq!(notes.len(), 1);
    let id = notes[0].rsplit('/').next().unwrap().trim_end_matches(".md");
    let short = &id[id.len() - 6..];
    snapshot!(said.replace(short, "NEWNOTE"), @"anamnesis: saved #NEWNOTE fact for github.com/acme/shop, by you · Undo: /memory-forget NEWNOTE");
    let text = home.read(&notes[0]).replace(id, "NEWNOTE");
    snapshot!(text, @"
    ---
    id: NEWNOTE
    type: semantic
    title: Deploys need [REDACTED]
    project: github.com/acme/shop
    machine_id: laptop
    scope: portable
    prov_source: human
    confidence: 1.0
    created_at: '2026-01-02T03:04:05+00:00'
    updated_at: '2026-01-02T03:04:05+00:00'
    tags: []
    kind: fact
    ---
    Deploys need [REDACTED]
    and a review
    ");
    assert!(!text.contains("boss") && !text.contains("ghp_") && !text.contains("prov_actor"));
    assert!(home.run("list").well().contains("you, now"));
}

#[test]
fn without_a_text_nothing_is_saved_and_it_is_said() {
    let home = home();
    snapshot!(prompt(&home, "/memory-remember"), @"anamnesis: not saved: there is no text");
    snapshot!(prompt(&home, "/anamnesis:memory-remember  \n"), @"anamnesis: not saved: there is no text");
    snapshot!(prompt(&home, "/memory-remember <private>all of it</private>"), @"anamnesis: not saved: there is no text");
    let stats = home.run("stats --json").stdout;
    assert!(!stats.contains("there is no text"), "{stats}");
    assert_eq!(home.notes(), [""; 0]);
}

#[test]
fn other_prompts_are_none_of_its_business() {
    // INJ-13
    let home = home();
    for text in [
        "please do it",
        "/memory-search x",
        "what does /memory-remember do?",
        "/memory-remembering",
        "",
        "\0",
        "</anamnesis-context>",
        &"long ".repeat(100_000),
    ] {
        assert_eq!(prompt(&home, text), NO_OP, "{text:.40}");
    }
    assert_eq!(home.notes(), [""; 0]);
}

#[test]
fn a_forgotten_fact_may_be_typed_again() {
    let home = home();
    prompt(&home, "/memory-remember The key is in the vault");
    let id = home.notes()[0]
        .rsplit('/')
        .next()
        .unwrap()
        .trim_end_matches(".md")
        .to_owned();
    home.run(&format!("forget {id}")).well();
    let said = prompt(&home, "/memory-remember The key is in the vault");
    assert!(said.starts_with("anamnesis: saved #"), "{said}");
}

#[test]
fn a_store_that_cannot_be_written_is_said() {
    let home = home();
    home.write("memory/semantic", "in the way");
    let said = prompt(&home, "/memory-remember The key is in the vault");
    assert!(said.starts_with("anamnesis: not saved: "), "{said}");
    assert_eq!(home.log().len(), 1, "{:?}", home.log());
}
