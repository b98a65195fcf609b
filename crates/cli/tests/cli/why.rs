//! `why`: what a session was given, and why.

use std::fs;

use anamnesis_testkit::home::TestHome;

use crate::{SESSION, home_with_notes, snapshot};

fn started() -> TestHome {
    let home = home_with_notes();
    home.run("reindex").well();
    home.hook(&home.start(SESSION, "startup")).well();
    home
}

#[test]
fn what_a_session_began_with_and_why() {
    let home = started();
    snapshot!(home.run("why").well(), @"
    session 5b0c8f1e of github.com/acme/shop, just now

    at its start · just now
      4T8WQX  preference  Package manager is pnpm                           you, 210 d
              applies to all projects
      B2M6RD  fact        Rate limits live in middleware/limit.rs          agent, 12 d
              among the newest of the project
      7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
              among the newest of the project
      F5XJ2P  session     Add rate limits to the login                             1 d
              one of the last sessions
    → anamnesis edit 4T8WQX   |   anamnesis forget 4T8WQX
    ");
    let json = home.run("why last --json").json();
    assert_eq!(json["session"], SESSION);
    assert_eq!(json["moments"][0]["given"][0]["level"], "body");
    assert_eq!(json["moments"][0]["given"][0]["changed"], false);
    assert_eq!(
        json["moments"][0]["given"][0]["body_sha256"]
            .as_str()
            .unwrap()
            .len(),
        64
    );
}

#[test]
fn what_says_something_in_the_store_and_beside_it() {
    let home = started();
    fs::write(
        home.project().join("CLAUDE.md"),
        "# Shop\n\nUse the Stub Server.\n",
    )
    .unwrap();
    snapshot!(home.run("why --text stub").well(), @"
    at its start · just now
      7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
              among the newest of the project
    also in the session, but not injected by anamnesis:
      [ROOT]/shop/CLAUDE.md:3
    → anamnesis edit 7Q4KZ9   |   anamnesis forget 7Q4KZ9
    ");
    snapshot!(home.run("why --text nowhere").well(), @"no note that was injected into session 5b0c8f1e contains that now");
}

#[test]
fn a_note_that_changed_or_is_gone_is_told() {
    let home = started();
    let path = home
        .store()
        .join("memory/procedural/01JZ00000000000000007Q4KZ9.md");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("9090", "9191")).unwrap();
    assert!(home.run("why").well().contains("changed since"));
    fs::remove_file(&path).unwrap();
    let gone = home.run("why").well();
    assert!(
        gone.contains("  01JZ00000000000000007Q4KZ9  no longer there"),
        "{gone}"
    );
}

#[test]
fn without_a_session_there_is_nothing_to_explain() {
    let home = home_with_notes();
    snapshot!(home.run("why").well(), @"
    no notes were injected yet
    → anamnesis status
    ");
    let unknown = home.run("why 01234567");
    assert_eq!(unknown.code, Some(1));
}
