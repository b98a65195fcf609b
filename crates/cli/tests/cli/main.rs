//! Black-box tests of the binary: what a person, a script and Claude Code see of it.
//!
//! One test program for all, so that it is linked once. Every test has a home of its own; see
//! `anamnesis_testkit::home`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asking;
mod backfill;
mod backup;
mod capture;
mod chores;
mod command_line;
mod config;
mod contract;
mod doctor;
mod documents;
mod embedding;
mod environment;
mod evaluation;
mod forget;
mod former_names;
mod history;
mod hook_input;
mod hosts;
mod import;
// Paths are shown as the system writes them, and there is a link.
#[cfg(unix)]
mod init;
mod inject;
mod journal;
mod journal_damage;
mod learning;
mod links;
mod model;
mod native;
mod notes;
mod open;
mod pause;
mod project;
mod project_history;
mod prove;
mod purge;
mod python_version;
mod recall;
mod reflect;
mod remember;
mod resources;
#[cfg(unix)]
mod review;
mod security_table;
mod serve;
mod session_start;
mod sessions;
mod status;
mod store_faults;
mod summaries;
mod tasks;
mod terminal;
mod tools;
mod trial;
mod typed;
mod upkeep;
mod why;
mod writing;

use std::path::{Path, PathBuf};

use anamnesis_store::fs::home::Home;
use anamnesis_testkit::home::{NoteText, TestHome, printed};

/// What a hook prints when it has nothing to say.
const NO_OP: &str = "{}\n";

/// A session's id in the form of the client's.
const SESSION: &str = "5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20";

/// Compares a text with the snapshot beside the call, or with the file of this name in `snapshots/`
/// if it is long; times and sizes differ from run to run.
macro_rules! snapshot {
    ($text:expr, $name:literal) => {
        snapshot!(filtered insta::assert_snapshot!($name, $text))
    };
    ($text:expr, @$expected:literal) => {
        snapshot!(filtered insta::assert_snapshot!($text, @$expected))
    };
    (filtered $assertion:expr) => {
        let filters = vec![
            (r"\b[0-9]+(\.[0-9])? ms\b", "[TIME]"),
            (r"\b[0-9,]+ (kB|MB)", "[SIZE]"),
            (r#""bytes": [0-9]{4,}"#, "\"bytes\": [SIZE]"),
            (r"anamnesis undo [0-9A-Z]{6}\b", "anamnesis undo [BATCH]"),
            (r"\bhead=[0-9a-f]{7}\b", "head=[COMMIT]"),
            (r"\b[0-9A-Z]{6} (edited|wrote|noted|write) ", "[BATCH] $1 "),
            (r#""head": "[0-9a-f]{7}""#, "\"head\": [COMMIT]"),
            (r"\bedit-[0-9A-Z]{26}\.md\b", "edit-[ID].md"),
        ];
        insta::with_settings!({ filters => filters }, {
            $assertion;
        })
    };
}
use snapshot;

/// The index of a store.
fn index(store: &Path) -> PathBuf {
    Home::new(store).index()
}

/// The program under test.
fn program() -> String {
    anamnesis_testkit::home::tested_program(env!("CARGO_BIN_EXE_anamnesis"))
}

/// An empty home.
fn home() -> TestHome {
    TestHome::new(program())
}

/// An empty home whose settings trust no variable.
fn untouched_home() -> TestHome {
    TestHome::untouched(program())
}

/// A note's id that ends in these six characters.
fn id(short: &str) -> String {
    format!("01JZ0000000000000000{short}")
}

/// Returns after so many hooks, one after the other, have reached their deadline.
fn outlast_hooks(home: &TestHome, count: usize) {
    for _ in 0..count {
        let mut stalled = home.hook_with("").start();
        let stdin = stalled.stdin.take();
        assert_eq!(printed(&mut stalled), NO_OP);
        drop(stdin);
        assert!(stalled.wait().unwrap().success());
    }
    let log = home.log();
    let missed = log.iter().filter(|line| line.contains("gave up after"));
    assert_eq!(missed.count(), count, "{log:?}");
}

/// A home with a note of every origin: a person's for all projects and for this one, an agent's, a
/// session's, and one of another project.
fn home_with_notes() -> TestHome {
    let home = home();
    let note = |short: &str, title: &str| NoteText::new(&id(short), title);
    for note in [
        note("4T8WQX", "Package manager is pnpm")
            .global()
            .with("kind", "preference")
            .at("2025-06-06T03:04:05+00:00"),
        note("7Q4KZ9", "Integration tests need the stub server")
            .with("type", "procedural")
            .at("2025-11-22T03:04:05+00:00")
            .body("`make stub` binds port 9090; without it the login tests hang."),
        note("B2M6RD", "Rate limits live in middleware/limit.rs")
            .with("prov_actor", "agent")
            .with("confidence", "0.9")
            .at("2025-12-21T03:04:05+00:00"),
        note("F5XJ2P", "Add rate limits to the login")
            .session()
            .with("machine_id", "desktop")
            .at("2026-01-01T03:04:05+00:00")
            .body(
                "**Ask:** rate limits for the login\n\n**Outcome:** limiter and 4 tests, passing",
            ),
        note("ZD81QV", "Deploys go through Jenkins").with("project", "github.com/acme/cart"),
    ] {
        home.add(&note);
    }
    home
}
