//! `task`: what is to be done, and its line at a session's start.

use serde_json::Value;

use crate::{SESSION, home, home_with_notes, id, snapshot};
use anamnesis_testkit::home::{NoteText, TestHome};

fn task(short: &str, title: &str) -> NoteText {
    NoteText::new(&id(short), title).with("kind", "task")
}

fn with_tasks() -> TestHome {
    let home = home_with_notes();
    for task in [
        task("9HKD3T", "Remove the legacy limiter flag").at("2025-12-01T03:04:05+00:00"),
        task("2ND2ND", "Second")
            .with("status", "active")
            .with("prov_actor", "agent")
            .at("2025-10-01T03:04:05+00:00"),
        task("D0NED0", "Finished").with("status", "done"),
        task("E1SEWH", "Elsewhere").with("project", "github.com/acme/cart"),
    ] {
        home.add(&task);
    }
    home
}

#[test]
fn add_and_list() {
    let home = home();
    snapshot!(home.run("task").shown(), @"
    exit 0
    0 open tasks of github.com/acme/shop
    → anamnesis task add TEXT
    ");
    let added = home.run("task add Remove the legacy flag");
    snapshot!(added.shown().replace(&added.new_id(), "NEWNOTE"), @"
    exit 0
    saved #NEWNOTE task for github.com/acme/shop, by you
    Undo: anamnesis forget NEWNOTE
    ");
    let note = home.read(&home.notes()[0]);
    assert!(
        note.contains("tags:\n- task\nkind: task\nstatus: pending\n---\n\n"),
        "{note}"
    );
    let secret = concat!("ghp", "_0123456789abcdefghijABCDEFGHIJ456789");
    let long = home
        .command(["task", "add", "--stdin", "--tag", "ops"])
        .input(format!(
            "Rotate the key\n\nIt is {secret}. <private>x</private>"
        ))
        .run();
    long.well();
    let all: String = home.notes().iter().map(|path| home.read(path)).collect();
    assert!(all.contains("It is [REDACTED]") && !all.contains(secret) && !all.contains("private"));
    assert_eq!(home.run("task list").well().lines().count(), 2);
    assert_eq!(home.command(["task", "add"]).input(" ").run().code, Some(2));
}

#[test]
fn open_ones_come_first() {
    let home = with_tasks();
    snapshot!(home.run("task list").shown(), @"
    exit 0
    2ND2ND  active    Second                                             agent, 93 d
    9HKD3T  pending   Remove the legacy limiter flag                       you, 32 d
    ");
    snapshot!(home.run("task list --all").shown(), @"
    exit 0
    2ND2ND  active    Second                                             agent, 93 d
    9HKD3T  pending   Remove the legacy limiter flag                       you, 32 d
    D0NED0  done      Finished                                             you, 10 d
    ");
    assert!(
        home.run("task list --status done")
            .well()
            .starts_with("D0NED0")
    );
    assert_eq!(home.run("task list --everywhere").well().lines().count(), 3);
    let json = home
        .run("task list --json --project github.com/acme/cart")
        .json();
    assert_eq!(json["tasks"][0]["status"], "pending");
    assert_eq!(json["tasks"][0]["title"], "Elsewhere");
}

#[test]
fn done_names_what_is_worth_a_look_and_changes_nothing_else() {
    let home = with_tasks();
    home.run("connect 9HKD3T B2M6RD -r about").well();
    home.run("connect 7Q4KZ9 9HKD3T -r part-of").well();
    home.run("connect 9HKD3T ZD81QV -r related-to").well();
    let others = |home: &TestHome| -> Vec<String> {
        let paths = home.notes().into_iter();
        paths
            .filter(|path| !path.contains("9HKD3T"))
            .map(|path| home.read(&path))
            .collect()
    };
    let before = others(&home);
    snapshot!(home.run("task done 9HKD3T").shown(), @r#"
    exit 0
    done #9HKD3T "Remove the legacy limiter flag"
    May be outdated, now that it is done:
    7Q4KZ9  how-to      Integration tests need the stub server             you, 41 d
    B2M6RD  fact        Rate limits live in middleware/limit.rs          agent, 12 d
    Undo: anamnesis task reopen 9HKD3T
    "#);
    assert_eq!(others(&home), before);
    snapshot!(home.run("task done 9HKD3T").shown(), @"
    exit 0
    #9HKD3T is done already
    ");
    snapshot!(home.run("task archive 9HKD3T").shown(), @r#"
    exit 0
    archived #9HKD3T "Remove the legacy limiter flag"
    Undo: anamnesis task done 9HKD3T
    "#);
    snapshot!(home.run("task reopen 9HKD3T").well(), @r#"
    pending #9HKD3T "Remove the legacy limiter flag"
    Undo: anamnesis task archive 9HKD3T
    "#);
    home.run("task start 9HKD3T").well();
    let json = home.run("task done 9HKD3T --json").json();
    assert_eq!(json["tasks"][0]["status"], "done");
    let review = [&json["review"][0]["id"], &json["review"][1]["id"]];
    assert_eq!(review, [&id("7Q4KZ9"), &id("B2M6RD")]);
    snapshot!(home.run("task done 7Q4KZ9").shown(), @"
    exit 1
    on stderr:
    anamnesis: #7Q4KZ9 is no task
    → anamnesis task list
    ");
}

/// Returns the context that the hook adds after a prompt.
fn typed(home: &TestHome, text: &str) -> String {
    let recorded =
        include_str!("../fixtures/hooks/UserPromptSubmit-slash-command.interactive.json");
    let mut payload: Value = serde_json::from_str(recorded).unwrap();
    payload["prompt"] = text.into();
    // Claude Code sets this for all that it starts; a prompt is typed by a person all the same.
    let answer = home.hook_with(payload.to_string()).by_agent().run().json();
    let said = answer["hookSpecificOutput"]["additionalContext"].as_str();
    said.unwrap_or_default().to_owned()
}

#[test]
fn what_a_person_types_of_tasks_is_the_persons_act() {
    let home = with_tasks();
    home.run("connect 9HKD3T B2M6RD -r about").well();
    home.run("reindex").well();
    // A person's task, which an agent may not finish.
    snapshot!(typed(&home, "/memory-task done 9HKD3T"), @r#"anamnesis: done #9HKD3T "Remove the legacy limiter flag" · may be outdated now: #B2M6RD · Undo: /memory-task reopen 9HKD3T"#);
    snapshot!(typed(&home, "/anamnesis:memory-task done #9hkd3t"), @"anamnesis: #9HKD3T is done already");
    assert_eq!(home.run("task list").well().lines().count(), 1);
    snapshot!(typed(&home, "/memory-task reopen 9HKD3T"), @r#"anamnesis: pending #9HKD3T "Remove the legacy limiter flag" · Undo: /memory-task done 9HKD3T"#);
    snapshot!(typed(&home, "/memory-task done 7Q4KZ9"), @"anamnesis: not done: #7Q4KZ9 is no task · /memory-task");
    snapshot!(typed(&home, "/memory-task done ZZZZZZ"), @"anamnesis: not done: no note #ZZZZZZ · /memory-task");
    // It created a task of this name.
    snapshot!(typed(&home, "/memory-task start"), @"anamnesis: not done: `start` needs the id of a task · /memory-task");
    snapshot!(typed(&home, "/memory-task <private>x</private>"), @"anamnesis: not done: there is no text · /memory-task");
    // To list them is left to the command.
    assert_eq!(typed(&home, "/memory-task"), "");
    let token = concat!("ghp", "_0123456789abcdefghijABCDEFGHIJ456789");
    let said = typed(&home, &format!("/memory-task Rotate {token}\nsoon"));
    assert!(
        said.starts_with("anamnesis: saved #") && said.contains(" task for "),
        "{said}"
    );
    let notes = home.notes();
    let mut added = notes.iter().map(|path| home.read(path));
    let added = added
        .find(|note| note.contains("Rotate [REDACTED]"))
        .unwrap();
    assert!(
        added.contains("status: pending") && added.contains("soon"),
        "{added}"
    );
    assert!(
        !added.contains("prov_actor") && !added.contains("ghp_"),
        "{added}"
    );
}

#[test]
fn an_agent_finishes_its_own_tasks_only() {
    // INJ-07
    let home = with_tasks();
    let agent = |words: &str| home.command(words.split(' ')).by_agent().run();
    assert!(agent("task done 9HKD3T").well().starts_with("proposed"));
    let persons = home.run("task list").well();
    assert!(persons.contains("9HKD3T  pending"), "{persons}");
    agent("task done 2ND2ND").well();
    let added = agent("task add Write the changelog");
    assert!(added.well().contains("by agent"));
    assert!(
        agent("task add --project global Everywhere")
            .well()
            .starts_with("proposed")
    );
    assert!(
        !home
            .run("task list --project global")
            .well()
            .contains("active")
    );
}

#[test]
fn open_tasks_are_named_when_a_session_starts() {
    let home = with_tasks();
    home.run("reindex").well();
    let start = |home: &TestHome| -> Value { home.hook(&home.start(SESSION, "startup")).json() };
    let answer = start(&home);
    let context = answer["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    assert!(
        context.contains(
            "\n\nOpen tasks: Second (#2ND2ND), Remove the legacy limiter flag (#9HKD3T)\n"
        ),
        "{context}"
    );
    for short in ["9HKD3T", "2ND2ND"] {
        home.run(&format!("task done {short}")).well();
    }
    assert!(!start(&home).to_string().contains("Open tasks"));
}

#[test]
fn any_status_follows_any_other() {
    let verbs = [
        ("reopen", "pending"),
        ("start", "active"),
        ("done", "done"),
        ("archive", "archived"),
    ];
    let home = with_tasks();
    for (before, _) in verbs {
        for (verb, status) in verbs {
            home.run(&format!("task {before} 9HKD3T")).well();
            let changed = home.run(&format!("task {verb} 9HKD3T --json")).json();
            assert_eq!(changed["tasks"][0]["status"], status, "{before}, {verb}");
        }
    }
}

#[test]
fn a_session_starts_with_three_open_tasks_the_active_first() {
    let home = home();
    for (number, status) in ["pending", "pending", "active", "pending"]
        .iter()
        .enumerate()
    {
        let title = format!("Number {number}");
        let time = format!("2025-12-0{}T03:04:05+00:00", number + 1);
        let task = task(&format!("TASK0{number}"), &title).with("status", status);
        home.add(&task.at(&time));
    }
    home.run("reindex").well();
    let started = home.hook(&home.start(SESSION, "startup")).well();
    let (_, named) = started.split_once("Open tasks: ").unwrap();
    let named: Vec<&str> = named.split("Number ").skip(1).map(|it| &it[..1]).collect();
    assert_eq!(named, ["2", "3", "1"], "{started}");
}
