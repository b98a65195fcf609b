//! `recall`: what memory says to a question.

use anamnesis_testkit::home::{NoteText, TestHome};
use serde_json::Value;

use crate::{id, recall::filled, snapshot, trial::contents};

fn titles(json: &Value, list: &str) -> Vec<String> {
    let notes = json[list].as_array().unwrap();
    let title = |note: &Value| note["title"].as_str().unwrap_or_default().to_owned();
    notes.iter().map(title).collect()
}

/// A store in which the note about tests has a cause that shares no word with it, and that one again.
fn linked() -> TestHome {
    let home = filled();
    home.run(&format!("connect 7Q4KZ9 {} -r caused-by", id("AAAA05")))
        .well();
    home.run(&format!(
        "connect {} {} -r elaborates",
        id("AAAA05"),
        id("AAAA02")
    ))
    .well();
    home
}

#[test]
fn a_question_is_answered_with_what_links_bring() {
    let home = linked();
    snapshot!(home.run("recall why do integration tests need the stub server").well(), @"
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
      `make stub` binds port 9090; without it the login tests hang.
    AAAA05  fact        Photos are cut to squares                          you, 10 d
              caused-by #7Q4KZ9
    1 more matches weakly · --weak
    → anamnesis show ID
    ");
    snapshot!(home.run("recall stub server tests --explain --depth 2").well(), @"
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
      `make stub` binds port 9090; without it the login tests hang.
              matches the question · matched stub, server, tests · has 100 % of
              what is asked
    AAAA05  fact        Photos are cut to squares                          you, 10 d
              caused-by #7Q4KZ9 · linked to a matching note · has 0 % of what is
              asked
    AAAA02  fact        Mails go out through a queue                       you, 10 d
              elaborates #AAAA05 · linked to a matching note · has 0 % of what is
              asked
    links
      #7Q4KZ9 caused-by #AAAA05
      #AAAA05 elaborates #AAAA02
    1 more matches weakly · --weak
    → anamnesis show ID
    ");
    snapshot!(home.run("recall zebra crossing").well(), @"no note matches");
    for (words, code) in [
        ("recall", 2),
        ("recall x --depth 3", 2),
        ("recall x --kind odd", 2),
    ] {
        assert_eq!(home.run(words).code, Some(code), "{words}");
    }
}

#[test]
fn depth_says_how_far_links_are_followed() {
    let home = linked();
    let found = |depth: &str| {
        let json = home
            .run(&format!(
                "recall integration stub server --json --depth {depth}"
            ))
            .json();
        titles(&json, "notes")
    };
    assert_eq!(
        found("1"),
        [
            "Integration tests need the stub server",
            "Photos are cut to squares"
        ]
    );
    assert_eq!(
        found("2"),
        [
            "Integration tests need the stub server",
            "Photos are cut to squares",
            "Mails go out through a queue"
        ]
    );
}

#[test]
fn what_fits_too_little_is_counted_and_shown_when_it_is_wanted() {
    let home = filled();
    let json = |more: &str| {
        home.run(&format!(
            "recall build server of the shop and its integration tests {more} --json"
        ))
        .json()
    };
    let plain = json("");
    assert_eq!(plain["below_floor"], 2, "{plain:#}");
    let all = json("--weak");
    assert_eq!(all["below_floor"], 0);
    let weak: Vec<&Value> = all["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| &note["weak"])
        .collect();
    assert_eq!(weak, [false, true, true]);
    let one = json("--weak -k 2");
    assert_eq!(
        (titles(&one, "notes").len(), &one["below_floor"]),
        (2, &1.into())
    );
}

#[test]
fn the_budget_decides_how_much_of_each_note_is_shown() {
    let home = filled();
    for number in 0..5 {
        let body = format!(
            "The stub server answers on port {number}. {}",
            "It is slow. ".repeat(60)
        );
        home.add(
            &NoteText::new(
                &id(&format!("BBBB0{number}")),
                &format!("Port {number}{number}{number}"),
            )
            .body(body),
        );
    }
    let used = |budget: u32| {
        let json = home
            .run(&format!("recall stub server port --json --budget {budget}"))
            .json();
        let used = json["budget_used"].as_u64().unwrap();
        assert!(used <= u64::from(budget), "{used} of {budget}");
        let texts = json["notes"].as_array().unwrap().iter();
        let lengths: Vec<usize> = texts
            .map(|note| note["text"].as_str().unwrap().len())
            .collect();
        lengths
    };
    let mut before = used(0);
    assert!(before.iter().all(|length| *length == 0), "{before:?}");
    for budget in [200, 400, 800, 1600, 3200] {
        let now = used(budget);
        assert!(
            now.iter().zip(&before).all(|(now, before)| now >= before),
            "{before:?} {now:?}"
        );
        before = now;
    }
    assert!(before.iter().sum::<usize>() > 3000, "{before:?}");
}

#[test]
fn warnings_are_told_apart() {
    let home = filled();
    home.add(
        &NoteText::new(&id("WARN01"), "Never start the stub server twice")
            .with("type", "procedural")
            .with("kind", "antipattern"),
    );
    home.add(
        &NoteText::new(&id("WARN02"), "No zebras")
            .with("type", "procedural")
            .with("kind", "antipattern")
            .with("links", &format!("\n- warns-against {}", id("7Q4KZ9"))),
    );
    let json = home.run("recall integration stub server --json").json();
    assert_eq!(
        titles(&json, "notes"),
        ["Integration tests need the stub server"]
    );
    assert_eq!(
        titles(&json, "warnings"),
        ["Never start the stub server twice", "No zebras"]
    );
    // Asked for by their kind they are the answer.
    let json = home
        .run("recall integration stub server --kind antipattern --json")
        .json();
    assert_eq!(
        titles(&json, "notes"),
        ["Never start the stub server twice"]
    );
    assert_eq!(titles(&json, "warnings"), [""; 0]);
}

#[test]
fn notes_of_other_projects_come_last_or_not_at_all() {
    let home = filled();
    home.add(
        &NoteText::new(
            &id("0THER1"),
            "Integration tests need the stub server there, too",
        )
        .with("project", "github.com/acme/cart"),
    );
    let found = |more: &str| {
        titles(
            &home
                .run(&format!("recall integration stub server {more} --json"))
                .json(),
            "notes",
        )
    };
    assert_eq!(
        found(""),
        [
            "Integration tests need the stub server",
            "Integration tests need the stub server there, too"
        ]
    );
    assert_eq!(
        found("--project github.com/acme/shop"),
        ["Integration tests need the stub server"]
    );
}

#[test]
fn what_must_stay_hidden_is_not_told() {
    // INJ-02, INJ-16
    for state in ["proposed", "forgotten"] {
        let home = linked();
        let path = format!("memory/procedural/{}.md", id("7Q4KZ9"));
        let text = home.read(&path);
        home.write(
            &path,
            text.replacen("tags:", &format!("state: {state}\ntags:"), 1),
        );
        let said = home
            .run("recall integration tests stub server --weak --explain --depth 2")
            .well();
        assert!(!said.contains("7Q4KZ9"), "{state}: {said}");
    }
}

#[test]
fn a_replaced_note_is_told_in_no_way() {
    let home = linked();
    let newer = NoteText::new(&id("NEWER0"), "Logins are tested against a container now")
        .with("supersedes", &format!("\n- {}", id("7Q4KZ9")))
        .with("links", &format!("\n- related-to {}", id("7Q4KZ9")));
    home.add(&newer);
    let question = "why do the integration tests hang without the stub server";
    let options = "--weak --depth 2";
    for (words, brings) in [
        (format!("recall {question} {options} --json"), true),
        (format!("recall {question} {options} --explain"), true),
        (format!("recall {} --weak --json", id("7Q4KZ9")), true),
        (format!("recall \"stub server\" {options} --json"), true),
        (format!("recall photos squares {options} --json"), false),
        (format!("search {question} --json"), true),
        ("inject".to_owned(), true),
    ] {
        let said = home.run(&words).well();
        assert!(!said.contains("Integration tests need"), "{words}: {said}");
        assert!(
            !said.contains("\"id\": \"01JZ00000000000000007Q4KZ9\""),
            "{words}: {said}"
        );
        assert_eq!(
            said.contains("tested against a container"),
            brings,
            "{words}: {said}"
        );
    }
    home.run("reindex").well();
    for lane in ["prompt", "agent"] {
        let given = home
            .command(["eval", question, "--lane", lane])
            .run()
            .well();
        assert!(
            given.contains("#NEWER0") && !given.contains("7Q4KZ9"),
            "{lane}: {given}"
        );
    }
}

#[test]
fn asking_records_nothing() {
    let home = linked();
    home.run("recall stub server").well();
    home.settle();
    let before = contents(&home.store());
    home.run("recall stub server tests --weak --depth 2 --explain")
        .well();
    assert_eq!(contents(&home.store()), before);
}

#[test]
fn a_deleted_index_changes_no_answer() {
    let home = linked();
    for (short, title) in [
        ("F11E01", "The limiter counts per address"),
        ("F11E02", "Tokens are refilled"),
    ] {
        let body = "See `src/limit.rs` and [[Deploys go through Jenkins]].";
        home.add(
            &NoteText::new(&id(short), title)
                .with("prov_session", crate::SESSION)
                .body(body),
        );
    }
    home.run("feedback F11E01 good").well();
    home.run("feedback 7Q4KZ9 bad").well();
    let answers = || -> Vec<String> {
        [
            "recall limiter tokens address --depth 2 --explain --weak",
            "recall integration tests stub server --json --weak",
            "search limiter tests --json",
            "stats --json",
            "eval stub",
        ]
        .map(|words| home.run(words).well())
        .into()
    };
    let before = answers();
    std::fs::remove_dir_all(home.store().join("derived")).unwrap();
    assert_eq!(answers(), before);
    home.run("reindex").well();
    assert_eq!(answers(), before);
    home.run("relink").well();
    assert_eq!(answers(), before);
}

#[test]
fn no_note_and_one_note_are_no_special_case() {
    let home = crate::home();
    snapshot!(home.run("recall anything at all --weak --explain").well(), @"no note matches");
    home.add(&NoteText::new(
        &id("7Q4KZ9"),
        "Integration tests need the stub server",
    ));
    snapshot!(home.run("recall anything at all").well(), @"no note matches");
    assert!(home.run("recall stub").well().contains("7Q4KZ9"));
}
