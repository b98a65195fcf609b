//! `prove`: past sessions, played against the notes of those before them.

use std::{fs, path::Path};

use anamnesis_testkit::home::TestHome;
use serde_json::{Value, json};

use crate::home_with_notes;

/// Sessions of an invented project.
fn transcripts() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/prove");
    folder.to_str().unwrap().to_owned()
}

fn prove(home: &TestHome, options: &[&str]) -> String {
    let folder = transcripts();
    let command = ["prove", "--from", &folder];
    home.command(command.iter().chain(options)).run().well()
}

#[test]
fn what_a_later_session_searched_for_again_is_told() {
    let home = home_with_notes();
    let before = home.notes();
    let proof: Value = serde_json::from_str(&prove(&home, &["--json"])).unwrap();
    let totals = &proof["totals"];
    let figures = json!([
        proof["sessions"],
        proof["prompts"],
        proof["given"],
        totals["found_again"],
        totals["said"],
        totals["nothing"],
        totals["searches"],
        totals["files"],
        totals["tokens"],
        totals["tokens_for_nothing"],
    ]);
    // The same figures are in the document.
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evaluation.md");
    let document = fs::read_to_string(document).unwrap();
    let cells: Vec<String> = figures
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    let row = format!("| {} |", cells.join(" | "));
    assert!(document.contains(&row), "{row}");
    let examples = proof["examples"].as_array().unwrap();
    let again = examples.iter().find(|it| it["verdict"] == "found_again");
    let again = again.unwrap();
    assert_eq!(
        again["prompt"],
        "Why does the nightly export time out again?"
    );
    let words: Vec<&str> = again["notes"][0]["words"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(words.contains(&"replica"), "{words:?}");
    let text = prove(&home, &[]);
    assert!(text.contains("found again at a cost:  1 prompt"), "{text}");
    assert!(text.contains("what this cannot know"), "{text}");
    // Neither the store nor the person's notes are touched.
    assert_eq!(home.notes(), before);
    assert!(!home.store().join("journal.db").exists());
}

#[test]
fn a_turn_that_was_cut_off_is_no_example() {
    let home = home_with_notes();
    let folder = home.root().join("past");
    let sessions = folder.join("projects/-home-dev-pier");
    fs::create_dir_all(&sessions).unwrap();
    for file in fs::read_dir(Path::new(&transcripts()).join("projects/-home-dev-pier")).unwrap() {
        let file = file.unwrap();
        let mut text = fs::read_to_string(file.path()).unwrap();
        if text.contains("Why does the nightly export time out again?") {
            text.truncate(text.find('\n').unwrap() + 1);
        }
        fs::write(sessions.join(file.file_name()), text).unwrap();
    }
    let proved = home.command(["prove", "--json", "--from", folder.to_str().unwrap()]);
    let proof = proved.run().json();
    let totals = &proof["totals"];
    assert_eq!(
        (&totals["found_again"], &proof["given"]),
        (&json!(0), &json!(2))
    );
}

#[test]
fn the_page_loads_and_runs_nothing() {
    let home = home_with_notes();
    let page = home.root().join("proof.html");
    prove(&home, &["--html", page.to_str().unwrap()]);
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("default-src 'none'") && !page.contains("<script"),
        "{page}"
    );
    assert!(page.contains("Why does the nightly export time out again?"));
    assert!(page.contains("What this cannot know"));
}

#[test]
fn a_folder_without_transcripts_is_refused() {
    let home = home_with_notes();
    let folder = home.root().to_str().unwrap().to_owned();
    let refused = home.command(["prove", "--from", &folder]).run();
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("has no folder projects"),
        "{}",
        refused.stderr
    );
}
