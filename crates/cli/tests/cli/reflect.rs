//! `reflect`: what is sent, what becomes of each answer, and taking it back.

use std::{collections::BTreeMap, fs, path::Path};

use anamnesis_testkit::{
    home::{NoteText, PROJECT, TestHome, git_repository},
    model_server::{ModelServer, Play, says},
    wait_for,
};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    home, id,
    model::{KEY, name, name_with, name_with_short_timeout},
    snapshot,
};

/// The output if no project has enough sessions.
const NOTHING: &str =
    "exit 0\nnothing to distil: no project has 5 session notes that are not distilled yet\n";

/// A secret of nobody.
const SECRET: &str = concat!("AKIA", "IOSFODNN7EXAMPLE");

/// The ids of the session notes of a home, by their ends.
const EPISODES: [&str; 5] = ["AAAAA1", "AAAAA2", "AAAAA3", "AAAAA4", "AAAAA5"];

fn episode(short: &str) -> NoteText {
    NoteText::new(&id(short), &format!("Session {short}"))
        .session()
        .body(format!(
            "**Ask:** fix the deploy\n\n**Outcome:** ran {short}, worked"
        ))
}

/// A home with five session notes of a project, committed.
fn with_sessions() -> TestHome {
    let home = home();
    for short in EPISODES {
        home.add(&episode(short));
    }
    home.run("sync").well();
    home
}

/// Every note file of a home and its bytes.
fn files(home: &TestHome) -> BTreeMap<String, String> {
    let paths = home.notes();
    paths
        .into_iter()
        .map(|path| (path.clone(), home.read(&path)))
        .collect()
}

/// A good answer of one note.
fn good() -> String {
    json!([{
        "type": "procedural",
        "title": "Deploys need the stub server",
        "body": "Run `make stub` first; without it the deploy hangs.",
    }])
    .to_string()
}

#[test]
fn a_dry_run_says_what_would_be_done_and_asks_nobody() {
    let home = with_sessions();
    let before = files(&home);
    let line = format!(
        "exit 0\n{PROJECT}: 5 session notes would be distilled\n→ /memory-reflect in Claude Code: its own model distils them\n→ or a model of yours: anamnesis config set reflection.provider openai\n"
    );
    assert_eq!(home.run("reflect").shown(), line);
    let named = home.command(["reflect", "--project", PROJECT]).run();
    assert_eq!(named.shown(), line);
    assert_eq!(home.run("reflect --project other").shown(), NOTHING);
    for (least, expected) in [
        (
            "6",
            "exit 0\nnothing to distil: no project has 6 session notes that are not distilled yet\n",
        ),
        ("5", line.as_str()),
        ("many", line.as_str()),
    ] {
        let run = home
            .command(["reflect"])
            .env("ANAMNESIS_REFLECT_MIN_EPISODICS", least);
        assert_eq!(run.run().shown(), expected, "{least}");
    }
    snapshot!(home.run("reflect --apply").shown(), @"
    exit 1
    on stderr:
    anamnesis: no model is set
    → /memory-reflect in Claude Code: its own model distils them
    → or a model of yours: anamnesis config set reflection.provider openai
    ");
    assert_eq!(files(&home), before);
    let server = ModelServer::start([]);
    name(&home, &server);
    let with_model = home.run("reflect").well();
    assert!(
        with_model.contains("→ anamnesis reflect --apply   (sends"),
        "{with_model}"
    );
}

#[test]
fn sessions_become_notes_and_one_undo_takes_all_of_it_back() {
    // LLM-06
    let home = with_sessions();
    let before = files(&home);
    let server = ModelServer::start([says(good())]);
    name(&home, &server);
    let output = home.run("reflect --apply");
    let made: Vec<String> = home
        .notes()
        .into_iter()
        .filter(|path| !before.contains_key(path))
        .collect();
    let [path] = made.as_slice() else {
        panic!("{made:?}")
    };
    let new = path.rsplit('/').next().unwrap().trim_end_matches(".md");
    snapshot!(output.shown().replace(&new[new.len() - 6..], "NEWEST"), @r#"
    exit 0
    github.com/acme/shop: distilled 5 session notes into 1 note
      #NEWEST how-to "Deploys need the stub server"
    Undo: anamnesis undo [BATCH]
    wrote 1 note; committed on this machine; no remote is set
    on stderr:
    github.com/acme/shop: 5 notes, about 467 tokens to 127.0.0.1
    "#);
    let text = home.read(path).replace(new, "NEWNOTE");
    snapshot!(text, @"
    ---
    id: NEWNOTE
    type: procedural
    title: Deploys need the stub server
    project: github.com/acme/shop
    machine_id: laptop
    scope: portable
    prov_source: reflection
    confidence: 0.6
    prov_model: openai/gpt-test
    created_at: '2026-01-02T03:04:05+00:00'
    updated_at: '2026-01-02T03:04:05+00:00'
    tags:
    - reflection
    ---
    Run `make stub` first; without it the deploy hangs.
    ");
    for short in EPISODES {
        let path = format!("memory/episodic/{}.md", id(short));
        assert!(home.read(&path).contains("reflected"), "{short}");
    }
    // Nothing is left to do, and nothing more is spent.
    assert_eq!(home.run("reflect --apply").shown(), NOTHING);
    assert_eq!(server.requests().len(), 1);
    home.run(&format!("undo {}", batch(&output.shown()))).well();
    assert_eq!(files(&home), before);
}

#[test]
fn from_five_sessions_on_the_person_is_reminded_until_they_are_distilled() {
    const REMINDER: &str = "5 sessions to distil: /memory-reflect";
    let home = home();
    for short in &EPISODES[1..] {
        home.add(&episode(short));
    }
    home.run("reindex").well();
    let line = |session: &str| {
        let hook = home.hook_with(home.start(session, "startup").to_string());
        let started = hook.env("CLAUDE_CODE_ENTRYPOINT", "cli").run().stdout;
        home.settle();
        started
    };
    let viewed = || {
        let viewer = home.command(["open", "--print"]).viewer();
        viewer.visitor.read("/notes").unwrap()
    };
    line("greeted");
    assert!(!line("four").contains("to distil"));
    assert!(!home.run("status").well().contains("to distil"));
    home.add(&episode(EPISODES[0]));
    home.run("reindex").well();
    assert!(home.run("status").well().contains(REMINDER));
    assert!(line("five").contains(REMINDER));
    assert!(viewed().contains(REMINDER), "{}", viewed());
    let server = ModelServer::start([says(good())]);
    name(&home, &server);
    home.run("reflect --apply --no-sync").shown();
    assert!(!home.run("status").well().contains("to distil"));
    // The next session starts with the lasting note in place of theirs.
    let started = line("distilled");
    assert!(
        started.contains("Deploys need the stub server"),
        "{started}"
    );
    assert!(!started.contains("Session AAAAA"), "{started}");
}

#[test]
fn the_person_is_reminded_once_a_day_for_each_project() {
    let home = home();
    let cart = home.root().join("cart");
    git_repository(&cart, Some("git@github.com:acme/cart.git"));
    for (number, short) in EPISODES.iter().enumerate() {
        home.add(&episode(short));
        let other = episode(&format!("BBBBB{number}"));
        home.add(&other.with("project", "github.com/acme/cart"));
    }
    home.run("reindex").well();
    let line = |folder: &Path| {
        let hook = home.hook_with(home.start("one", "startup").to_string());
        let hook = hook.env("CLAUDE_PROJECT_DIR", folder);
        let answer = hook.env("CLAUDE_CODE_ENTRYPOINT", "cli").run().json();
        home.settle();
        answer["systemMessage"].as_str().unwrap().to_owned()
    };
    let shop = home.project();
    line(&shop);
    let is_reminder = |line: String| {
        // The command is whole, and no other part is in its place.
        line.ends_with(" tokens) · 5 sessions to distil: /memory-reflect")
    };
    let told = [&shop, &cart, &shop, &cart].map(|folder| is_reminder(line(folder)));
    assert_eq!(told, [true, true, false, false]);
}

/// The notes of a home that were not there before.
fn made(home: &TestHome, before: &BTreeMap<String, String>) -> Vec<String> {
    let notes = home.notes().into_iter();
    notes.filter(|path| !before.contains_key(path)).collect()
}

#[test]
fn where_the_person_approves_everything_a_reflection_is_proposed() {
    // LLM-02
    let home = with_sessions();
    let before = files(&home);
    let server = ModelServer::start([says(good())]);
    name_with(&home, &server, "review", "proposals");
    let output = home.run("reflect --apply");
    let made_notes = made(&home, &before);
    let [path] = made_notes.as_slice() else {
        panic!("{made_notes:?}")
    };
    assert!(path.starts_with("local/procedural/"), "{path}");
    assert!(home.read(path).contains("state: proposed"), "{path}");
    let new = path.rsplit('/').next().unwrap().trim_end_matches(".md");
    snapshot!(output.shown().replace(&new[new.len() - 6..], "NEWEST"), @r#"
    exit 0
    github.com/acme/shop: distilled 5 session notes into 1 note
      #NEWEST how-to "Deploys need the stub server"
    proposed 1 note: not used before you approve
    → anamnesis review
    on stderr:
    github.com/acme/shop: 5 notes, about 467 tokens to 127.0.0.1
    "#);
    // Nothing else changed, nobody is given it, and the sessions are not asked about again.
    for (path, text) in &before {
        assert_eq!(&home.read(path), text, "{path}");
    }
    let started = home.hook(&home.start(crate::SESSION, "startup")).shown();
    assert!(
        !started.contains("Deploys need the stub server"),
        "{started}"
    );
    assert_eq!(home.run("reflect --apply").shown(), NOTHING);
    assert_eq!(server.requests().len(), 1);
    let approved = home.run(&format!("review --approve {new}")).shown();
    let used = format!("memory/procedural/{new}.md");
    assert!(!home.read(&used).contains("state:"), "{approved}");
    for short in EPISODES {
        let path = format!("memory/episodic/{}.md", id(short));
        assert!(home.read(&path).contains("reflected"), "{short}");
    }
}

#[test]
fn the_name_of_a_reflection_means_all_its_pending_notes() {
    let home = with_sessions();
    let note = |title: &str| json!({ "type": "semantic", "title": title, "body": format!("{title}, always.") });
    let two = json!([note("Prices are in cents"), note("Photos are squares")]);
    let server = ModelServer::start([says(two.to_string())]);
    name_with(&home, &server, "review", "proposals");
    home.run("reflect --apply").shown();
    let pending = home.run("review --json").json();
    assert_eq!(pending["total"], 2);
    let name = pending["groups"][0]["reflection"].as_str().unwrap();
    #[cfg(unix)]
    {
        let asked = home.command(["review"]).input("q\n").run_on_a_terminal();
        assert!(asked.stdout.contains("  from AAAAA1  session"), "{asked:?}");
    }
    home.run(&format!("review {name} --approve")).well();
    let used = home.run("list").well();
    for title in ["Prices are in cents", "Photos are squares"] {
        assert!(used.contains(title), "{used}");
    }
}

#[test]
fn what_was_rejected_is_not_written_again() {
    let home = with_sessions();
    let before = files(&home);
    let server = ModelServer::start([says(good())]);
    name_with(&home, &server, "review", "proposals");
    home.run("reflect --apply").shown();
    let path = &made(&home, &before)[0];
    let new = path.rsplit('/').next().unwrap().trim_end_matches(".md");
    home.run(&format!("review --reject {new}")).well();
    home.run("config set review off").well();
    let shown = home.run("reflect --apply").shown();
    assert!(
        shown.contains("distilled 5 session notes into 0 notes")
            && shown.contains("1 left out that you had forgotten"),
        "{shown}"
    );
}

#[test]
fn what_cannot_be_written_leaves_everything_as_it_was() {
    let home = with_sessions();
    let before = files(&home);
    // A file where a folder has to be: the second of two notes cannot be written.
    home.write("memory/semantic", "in the way");
    let two = json!([
        { "type": "procedural", "title": "One", "body": "b" },
        { "type": "semantic", "title": "Two", "body": "b" },
    ]);
    let server = ModelServer::start([says(two.to_string())]);
    name(&home, &server);
    let shown = home.run("reflect --apply").shown();
    assert!(shown.contains("not distilled: "), "{shown}");
    assert_eq!(files(&home), before);
}

/// Plays a session of the project from its start to its end, and all that follows in the background.
fn play(home: &TestHome, session: &str) {
    for payload in events_of(home, session) {
        home.hook(&payload).well();
    }
    home.settle();
    home.work();
}

/// The events of a session of the project, from its start to its end. No session repeats another.
fn events_of(home: &TestHome, session: &str) -> Vec<Value> {
    let mut prompt = home.payload("UserPromptSubmit", session);
    prompt["prompt"] = json!(format!("limit the login of the {session} please"));
    let mut stop = home.payload("Stop", session);
    stop["last_assistant_message"] =
        json!("The rate limiter is in place, with four tests that pass, in middleware/limit.rs.");
    let mut end = home.payload("SessionEnd", session);
    end["reason"] = json!("other");
    vec![home.start(session, "startup"), prompt, stop, end]
}

/// What a model says of one session.
fn summary() -> String {
    json!({ "skip": false, "title": "Login limited", "body": "The limiter sits in `limit.rs`." })
        .to_string()
}

#[test]
fn a_project_is_reflected_on_by_itself_once_a_day() {
    let home = with_sessions();
    let before = files(&home);
    let server = ModelServer::start([says(summary()), says(good()), says(summary())]);
    name_with(&home, &server, "reflection.auto", "on");
    play(&home, "auto-1");
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    // The session's own note is among what is reflected on, as the model told it.
    assert!(
        requests[1].text.contains("## Login limited") && requests[1].text.contains("ran AAAAA5"),
        "{}",
        requests[1].text
    );
    let new: Vec<String> = made(&home, &before)
        .into_iter()
        .filter(|path| path.contains("procedural"))
        .collect();
    assert_eq!(new.len(), 1, "{new:?}");
    for short in EPISODES {
        let path = format!("memory/episodic/{}.md", id(short));
        assert!(home.read(&path).contains("reflected"), "{short}");
    }
    let log = home.run("log").shown();
    assert!(log.contains("machine"), "{log}");
    // As many again on the same day: it waits for tomorrow.
    for short in ["AAAAB1", "AAAAB2", "AAAAB3", "AAAAB4", "AAAAB5"] {
        home.add(&episode(short));
    }
    play(&home, "auto-2");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_reflection_waits_for_the_summary_of_the_latest_session() {
    let home = with_sessions();
    let server = ModelServer::start([says(summary()), says(summary()), says(good())]);
    name(&home, &server);
    play(&home, "s1");
    home.run("config set reflection.auto on").well();
    let work = home.hold_background();
    let mut events = events_of(&home, "s2");
    let end = events.pop().unwrap();
    for payload in events {
        home.hook(&payload).well();
    }
    // The deferred process, not the hook, writes the note.
    let journal = Connection::open(home.store().join("journal.db")).unwrap();
    journal.execute_batch("BEGIN IMMEDIATE").unwrap();
    home.hook(&end).well();
    home.settle();
    drop((journal, work));
    home.work();
    home.settle();
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "{requests:?}");
    assert_eq!(
        requests[2].text.matches("## Login limited").count(),
        2,
        "{}",
        requests[2].text
    );
}

#[test]
fn by_itself_nothing_is_reflected_on_unless_that_is_wanted() {
    let home = with_sessions();
    let server = ModelServer::start([says(summary())]);
    name(&home, &server);
    play(&home, "s1");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_reflection_that_fails_by_itself_is_told_and_not_repeated() {
    // LLM-01
    let home = with_sessions();
    let server = ModelServer::start([says(summary()), says("Sure!"), says(summary())]);
    name_with(&home, &server, "reflection.auto", "on");
    let before = files(&home);
    play(&home, "s1");
    play(&home, "s2");
    assert_eq!(server.requests().len(), 3);
    let new = made(&home, &before);
    assert!(new.iter().all(|path| path.contains("episodic")), "{new:?}");
    let doctor = home.run("doctor").shown();
    assert!(
        doctor.contains("the last reflection: github.com/acme/shop: the answer is not JSON alone"),
        "{doctor}"
    );
}

#[test]
fn what_is_reflected_on_by_itself_waits_where_everything_does() {
    // LLM-02
    let home = with_sessions();
    let before = files(&home);
    let server = ModelServer::start([says(summary()), says(good())]);
    name_with(&home, &server, "reflection.auto", "on");
    home.run("config set review proposals").well();
    play(&home, "s1");
    let new: Vec<String> = made(&home, &before)
        .into_iter()
        .filter(|path| path.contains("procedural"))
        .collect();
    assert_eq!(new.len(), 1, "{new:?}");
    assert!(new[0].starts_with("local/"), "{new:?}");
    let waits = home.run("review --list").shown();
    assert!(waits.contains("Deploys need the stub server"), "{waits}");
}

#[test]
fn a_days_budget_holds_for_reflections_too() {
    let home = with_sessions();
    let server = ModelServer::start([says(summary()), says(good())]);
    name_with(&home, &server, "reflection.auto", "on");
    home.run("config set reflection.tokens_per_day 4000").well();
    play(&home, "s1");
    assert_eq!(server.requests().len(), 1);
}

/// The batch that an output names.
fn batch(shown: &str) -> String {
    let (_, rest) = shown
        .split_once("Undo: anamnesis undo ")
        .expect("a batch is named");
    rest.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn nothing_private_leaves_this_machine() {
    // LLM-04
    let home = home();
    for short in EPISODES {
        home.add(&episode(short).body(format!("ran {short} with key {SECRET}")));
    }
    let hidden = [
        episode("AAAAA6").body("seen <private>my-own-word</private>"),
        episode("AAAAA7")
            .with("scope", "machine-local")
            .body("local-only-word"),
        episode("AAAAA8")
            .with("project", "other")
            .body("other-project-word"),
        episode("AAAAA9")
            .with("tags", "[session, reflected]")
            .body("taken-already-word"),
        NoteText::new(&id("AAAAAA"), "A fact").body("no-episode-word"),
    ];
    for note in &hidden {
        home.add(note);
    }
    let server = ModelServer::start([says("[]")]);
    name(&home, &server);
    let shown = home.run("reflect --apply").shown();
    assert!(shown.contains("1 session note left out"), "{shown}");
    assert!(
        shown.contains("distilled 5 session notes into 0 notes"),
        "{shown}"
    );
    let requests = server.requests();
    let [request] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    let body = request.body.as_object().unwrap();
    let keys: Vec<&String> = body.keys().collect();
    assert_eq!(keys, ["model", "messages", "temperature", "stream"]);
    assert_eq!(
        (&body["temperature"], &body["stream"]),
        (&json!(0.2), &json!(false))
    );
    assert!(
        request.text.contains("ran AAAAA1 with key [REDACTED]"),
        "{}",
        request.text
    );
    for needle in [
        SECRET,
        KEY,
        "my-own-word",
        "local-only-word",
        "other-project-word",
        "taken-already-word",
        "no-episode-word",
        "AAAAA6",
    ] {
        assert!(!request.text.contains(needle), "{needle}");
    }
}

#[test]
fn a_session_of_which_something_is_private_stays() {
    // LLM-04
    let home = home();
    let session = crate::SESSION;
    home.hook(&home.start(session, "startup")).well();
    let mut prompt = home.payload("UserPromptSubmit", session);
    prompt["prompt"] = json!("fix the deploy <private>for the merger</private> please");
    home.hook(&prompt).well();
    let mut answer = home.payload("Stop", session);
    answer["last_assistant_message"] = json!("The deploy waits for the database now.");
    home.hook(&answer).well();
    let mut end = home.payload("SessionEnd", session);
    end["reason"] = json!("other");
    home.hook(&end).well();
    home.settle();
    for short in EPISODES {
        home.add(&episode(short));
    }
    home.add(
        &episode("AAAAAB")
            .with("prov_session", session)
            .body("told-of-the-private-session"),
    );
    let server = ModelServer::start([says("[]")]);
    name(&home, &server);
    let shown = home.run("reflect --apply").shown();
    assert!(shown.contains("session notes left out"), "{shown}");
    assert!(
        !server.requests()[0]
            .text
            .contains("told-of-the-private-session")
    );
}

#[test]
fn an_empty_answer_marks_the_sessions_all_the_same() {
    let home = with_sessions();
    let before = files(&home);
    let server = ModelServer::start([says("```json\n[]\n```")]);
    name(&home, &server);
    let output = home.run("reflect --apply").shown();
    assert!(
        output.contains("distilled 5 session notes into 0 notes"),
        "{output}"
    );
    assert_ne!(files(&home), before);
    assert_eq!(home.run("reflect").shown(), NOTHING);
    home.run(&format!("undo {}", batch(&output))).well();
    assert_eq!(files(&home), before);
}

#[test]
fn a_bad_answer_writes_nothing() {
    // LLM-01, LLM-03
    let elsewhere = ModelServer::start([says(good())]);
    // One case of each layer that refuses; `distill` has all of them.
    for (play, said) in [
        (
            says(format!("Here are your notes:\n{}", good())),
            "not JSON alone",
        ),
        (
            Play::Body("{\"choices\":".to_owned()),
            "did not answer with a chat completion",
        ),
        (Play::Silence, "no answer within 2 s"),
        (
            Play::Redirects(elsewhere.base_url()),
            "redirects the request",
        ),
    ] {
        let home = with_sessions();
        let before = files(&home);
        let server = ModelServer::start([play.clone()]);
        name_with_short_timeout(&home, &server);
        let shown = home.run("reflect --apply").shown();
        assert!(
            shown.starts_with(&format!("exit 1\n{PROJECT}: not distilled: "))
                && shown.contains(said),
            "{play:?}: {shown}"
        );
        assert!(!shown.contains(KEY), "{shown}");
        assert_eq!(files(&home), before, "{play:?}");
        assert_eq!(
            home.run("reflect")
                .shown()
                .matches("5 session notes")
                .count(),
            1
        );
    }
    assert_eq!(elsewhere.requests(), []);
}

#[test]
fn an_answer_that_quotes_a_secret_or_our_marks_is_made_safe() {
    // LLM-01
    let home = with_sessions();
    let answer = json!([{
        "type": "semantic",
        "title": format!("The key is {SECRET}"),
        "body": format!("use {SECRET} <private>hush</private>\n\u{1b}[31mred"),
    }]);
    let server = ModelServer::start([says(answer.to_string())]);
    name(&home, &server);
    let shown = home.run("reflect --apply").shown();
    assert!(
        shown.contains("into 1 note") && !shown.contains(SECRET),
        "{shown}"
    );
    let new = files(&home)
        .into_iter()
        .find(|(path, _)| path.contains("semantic"))
        .unwrap()
        .1;
    assert!(
        new.contains("title: The key is [REDACTED]")
            || new.contains("title: 'The key is [REDACTED]'"),
        "{new}"
    );
    for needle in [SECRET, "hush", "<private>", "\u{1b}"] {
        assert!(!new.contains(needle), "{needle:?} in {new}");
    }
}

#[test]
fn one_project_that_fails_keeps_no_other() {
    let home = home();
    for (number, short) in EPISODES.iter().enumerate() {
        home.add(&episode(short).with("project", "a-first"));
        home.add(&episode(&format!("BBBBB{number}")).with("project", "b-second"));
    }
    let server = ModelServer::start([says("no"), says(good())]);
    name(&home, &server);
    let shown = home.run("reflect --apply --no-sync").shown();
    for line in [
        "a-first: not distilled: the answer is not JSON alone (line 1, column 2)\n",
        "b-second: distilled 5 session notes into 1 note\n",
        "wrote 1 note; committed on this machine (--no-sync)\n",
        "a-first: 5 notes, about ",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert!(shown.starts_with("exit 1\n"));
}

#[test]
fn new_notes_are_compared_with_those_that_were_there() {
    let home = with_sessions();
    home.add(
        &NoteText::new(&id("4T8WQX"), "Deploys need the stub server")
            .with("type", "procedural")
            .body("Run `make stub` first; without it the deploy hangs."),
    );
    let server = ModelServer::start([says(good())]);
    name(&home, &server);
    let shown = home.run("reflect --apply").shown();
    assert!(
        shown.contains("repeats #4T8WQX \"Deploys need the stub server\""),
        "{shown}"
    );
    assert!(shown.contains("→ if so: anamnesis forget "), "{shown}");
    // The command only reports it; the existing note is unchanged.
    let old = home.read(&format!("memory/procedural/{}.md", id("4T8WQX")));
    assert!(!old.contains("supersedes"), "{old}");
}

#[test]
fn what_is_missing_of_a_model_is_said_and_nothing_is_done() {
    let home = with_sessions();
    home.run("config set reflection.provider openai").well();
    snapshot!(home.run("reflect --apply").shown(), @"
    exit 1
    on stderr:
    anamnesis: the provider openai is set, but no model
    → anamnesis config set reflection.model NAME
    ");
}

#[cfg(unix)]
#[test]
fn who_ends_it_while_a_model_is_waited_for_finds_everything_as_it_was() {
    let home = with_sessions();
    let before = files(&home);
    let server = ModelServer::start([Play::Silence]);
    name_with_short_timeout(&home, &server);
    home.run("config set reflection.timeout 600").well();
    let mut run = home.command(["reflect", "--apply"]).start();
    wait_for("the request", || !server.requests().is_empty());
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(files(&home), before);
    server.answer(says(good()));
    let shown = home.run("reflect --apply").shown();
    assert!(
        shown.contains("distilled 5 session notes into 1 note"),
        "{shown}"
    );
}

#[test]
fn an_agent_spends_nothing() {
    let home = with_sessions();
    let server = ModelServer::start([says(good())]);
    name(&home, &server);
    let shown = home
        .command(["reflect", "--apply"])
        .by_agent()
        .run()
        .shown();
    assert!(
        shown.starts_with("exit 1\n") && shown.contains("only a person can ask the model"),
        "{shown}"
    );
    assert!(
        home.command(["reflect"])
            .by_agent()
            .run()
            .shown()
            .contains("would be distilled")
    );
    assert_eq!(server.requests(), []);
}

#[test]
fn a_session_note_that_changes_meanwhile_is_left_alone() {
    let home = with_sessions();
    let server = ModelServer::start([Play::Silence]);
    name_with_short_timeout(&home, &server);
    // The answer comes only after the change, from a server that waits for it.
    let path = home
        .store()
        .join(format!("memory/episodic/{}.md", id(EPISODES[0])));
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| home.run("reflect --apply").shown());
        wait_for("the request", || !server.requests().is_empty());
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("worked", "did not work")).unwrap();
        server.answer(says(good()));
        run.join().unwrap()
    });
    assert!(
        run.contains("not distilled: a session note was changed meanwhile; try again"),
        "{run}"
    );
    assert!(!home.notes().iter().any(|path| path.contains("procedural")));
    assert!(fs::read_to_string(&path).unwrap().contains("did not work"));
}
