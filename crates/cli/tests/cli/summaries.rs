//! Session notes told by a model: in the background, once for each session, within a day's budget.

use anamnesis_testkit::{
    home::{TestHome, answered, asked},
    model_server::{ModelServer, Play, says},
    wait_for,
};
use serde_json::json;

use crate::{
    NO_OP, home,
    model::{KEY, name, name_with_short_timeout},
};

/// A valid answer.
fn answer() -> String {
    json!({ "skip": false, "title": "Login limited", "body": "The limiter sits in `limit.rs`." })
        .to_string()
}

/// Plays a session from its start to its end, and waits for what follows in the background.
fn play(home: &TestHome, session: &str, ask: &str) {
    let mut prompt = home.payload("UserPromptSubmit", session);
    prompt["prompt"] = json!(ask);
    let mut stop = home.payload("Stop", session);
    stop["last_assistant_message"] =
        json!("The rate limiter is in place, with four tests that pass, in middleware/limit.rs.");
    let mut end = home.payload("SessionEnd", session);
    end["reason"] = json!("other");
    for payload in [home.start(session, "startup"), prompt, stop] {
        home.hook(&payload).well();
    }
    home.hook(&end).well();
    home.settle();
}

/// The one note of a home.
fn note(home: &TestHome) -> String {
    let notes = home.notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
    home.read(&notes[0])
}

#[test]
fn a_valid_answer_takes_the_place_of_the_text_that_rules_made() {
    let home = home();
    let server = ModelServer::start([says(answer())]);
    name(&home, &server);
    play(&home, "s1", "limit the login");
    let text = note(&home);
    assert!(
        text.contains("title: Login limited") && text.contains("sits in `limit.rs`"),
        "{text}"
    );
    assert!(
        text.contains("prov_source: session-end") && text.contains("prov_model: openai/gpt-test"),
        "{text}"
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert!(
        requests[0].text.contains("limit the login"),
        "{}",
        requests[0].text
    );
    // Nothing is asked again, and the note stays.
    home.work();
    assert_eq!((note(&home), server.requests().len()), (text, 1));
    assert!(
        home.run("log").shown().contains("1 changed")
            || home.run("log").shown().contains("Login limited")
    );
}

#[test]
fn without_a_model_nothing_is_asked() {
    let home = home();
    let server = ModelServer::start([says(answer())]);
    home.write(
        "config.json",
        format!(
            r#"{{"reflection": {{"model": "m", "base_url": "{}", "api_key": "{KEY}"}}}}"#,
            server.base_url()
        ),
    );
    play(&home, "s1", "limit the login");
    assert!(note(&home).contains("title: limit the login"));
    assert_eq!(server.requests(), []);
}

#[test]
fn a_model_that_is_down_slow_or_wrong_loses_no_note() {
    // LLM-01, LLM-03
    // One case of each layer that refuses; `distill` has all of them.
    for play_of_server in [
        says(r#"{"skip": false, "title": "", "body": "b"}"#),
        Play::Refuses(500, String::new()),
        Play::Silence,
    ] {
        let home = home();
        let server = ModelServer::start([play_of_server.clone()]);
        name_with_short_timeout(&home, &server);
        play(&home, "s1", "limit the login");
        let text = note(&home);
        assert!(
            text.contains("title: limit the login"),
            "{play_of_server:?}: {text}"
        );
        home.work();
        assert_eq!(server.requests().len(), 1, "{play_of_server:?}");
    }
}

#[test]
fn while_a_model_is_waited_for_hooks_answer_and_notes_are_written() {
    let home = home();
    let server = ModelServer::start([Play::Silence]);
    name_with_short_timeout(&home, &server);
    home.run("config set reflection.timeout 600").well();
    let mut end = home.payload("SessionEnd", "s1");
    end["reason"] = json!("other");
    let mut prompt = home.payload("UserPromptSubmit", "s1");
    prompt["prompt"] = json!("limit the login");
    let mut stop = home.payload("Stop", "s1");
    stop["last_assistant_message"] =
        json!("The rate limiter is in place, with four tests that pass.");
    for payload in [home.start("s1", "startup"), prompt, stop, end] {
        home.hook(&payload).well();
    }
    wait_for("the request", || !server.requests().is_empty());
    // The deferred process hangs in its request: everybody else goes on.
    let mut prompt = home.payload("UserPromptSubmit", "s2");
    prompt["prompt"] = json!("and now the search");
    let mut stop = home.payload("Stop", "s2");
    stop["last_assistant_message"] =
        json!("The search finds words in titles and texts, with six tests.");
    let mut end = home.payload("SessionEnd", "s2");
    end["reason"] = json!("other");
    home.hook(&home.start("s2", "startup")).well();
    assert_eq!(home.hook(&prompt).well(), NO_OP);
    home.hook(&stop).well();
    home.hook(&end).well();
    let texts: Vec<String> = home.notes().iter().map(|path| home.read(path)).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(
        texts.iter().any(|text| text.contains("and now the search")),
        "{texts:?}"
    );
    server.answer(says(answer()));
    home.settle();
}

#[test]
fn a_day_has_a_budget_and_what_is_over_waits_for_the_next() {
    let home = home();
    let server = ModelServer::start([says(answer())]);
    name(&home, &server);
    home.run("config set reflection.tokens_per_day 5500").well();
    for number in 0..4 {
        play(
            &home,
            &format!("s{number}"),
            &format!("limit the login of {number}"),
        );
    }
    assert_eq!(server.requests().len(), 2);
    assert_eq!(home.notes().len(), 4);
    let doctor = home.run("doctor").shown();
    assert!(
        doctor.contains("the budget of today is used up; 2 session(s) are pending"),
        "{doctor}"
    );
    let tomorrow = "2026-01-03T00:00:01Z";
    for _ in 0..2 {
        home.command(["work"])
            .env("ANAMNESIS_NOW", tomorrow)
            .run()
            .well();
    }
    assert_eq!(server.requests().len(), 4);
}

#[cfg(unix)]
#[test]
fn who_is_killed_after_it_was_counted_is_not_paid_for_twice() {
    let home = home();
    play(&home, "s1", "limit the login");
    let server = ModelServer::start([Play::Silence]);
    name_with_short_timeout(&home, &server);
    let mut work = home.command(["work"]).start();
    wait_for("the request", || !server.requests().is_empty());
    work.kill().unwrap();
    work.wait().unwrap();
    // Its lease has run out, and another process takes the job.
    let later = "2026-01-02T03:30:00Z";
    home.command(["work"])
        .env("ANAMNESIS_NOW", later)
        .run()
        .well();
    assert_eq!(server.requests().len(), 1);
    assert!(note(&home).contains("title: limit the login"));
}

#[test]
fn what_is_private_or_a_projects_is_no_matter_for_a_model() {
    // LLM-04, LLM-05
    let home = home();
    let (own, other) = (
        ModelServer::start([says(answer())]),
        ModelServer::start([says(answer())]),
    );
    name(&home, &own);
    play(
        &home,
        "s1",
        "limit the login <private>of my-own-word</private> please",
    );
    assert_eq!(own.requests(), []);
    // A project's settings say where a model is: what a hook has in its environment does not count.
    let settings = home.project().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let variable = "ANAMNESIS_REFLECTION_BASE_URL";
    let text = json!({ "env": { variable: other.base_url() } }).to_string();
    std::fs::write(settings, text).unwrap();
    let mut prompt = home.payload("UserPromptSubmit", "s2");
    prompt["prompt"] = json!("limit the search");
    let mut stop = home.payload("Stop", "s2");
    stop["last_assistant_message"] =
        json!("The limiter of the search is in place, with four tests.");
    let mut end = home.payload("SessionEnd", "s2");
    end["reason"] = json!("other");
    for payload in [home.start("s2", "startup"), prompt, stop, end] {
        home.hook_with(payload.to_string())
            .env(variable, other.base_url())
            .run()
            .well();
    }
    home.settle();
    assert_eq!((own.requests().len(), other.requests().len()), (1, 0));
}

#[test]
fn capture_has_a_model_tell_the_session_at_once() {
    for (play_of_server, title, said) in [
        (says(answer()), "title: Login limited", ""),
        (
            says("Sure!"),
            "title: add a rate limiter",
            "capture: the session stays as rules tell it: the answer is not JSON alone",
        ),
        (
            Play::Refuses(500, String::new()),
            "title: add a rate limiter",
            "capture: the session stays as rules tell it: ",
        ),
    ] {
        let home = home();
        let server = ModelServer::start([play_of_server.clone()]);
        name_with_short_timeout(&home, &server);
        let transcript = home.write_transcript(
            crate::SESSION,
            &[
                asked("add a rate limiter to the login"),
                answered("It is in middleware/limit.rs, with four tests."),
            ],
        );
        let capture = || {
            let command = home.command(["capture", "--no-sync", "--transcript"]);
            command.arg(&transcript).run().shown()
        };
        let shown = capture();
        assert!(
            shown.starts_with("exit 0\ncapture: wrote episodic note "),
            "{shown}"
        );
        assert!(shown.contains(said), "{shown}");
        assert!(
            note(&home).contains(title),
            "{play_of_server:?}: {}",
            note(&home)
        );
        assert_eq!(server.requests().len(), 1, "{play_of_server:?}");
    }
}

#[test]
fn capture_asks_nobody_about_a_private_session() {
    // LLM-04
    let home = home();
    let server = ModelServer::start([says(answer())]);
    name(&home, &server);
    let transcript = home.write_transcript(
        crate::SESSION,
        &[
            asked("add a limiter <private>for the merger</private>"),
            answered("It is in middleware/limit.rs."),
        ],
    );
    let command = home.command(["capture", "--no-sync", "--transcript"]);
    command.arg(&transcript).run().well();
    assert_eq!(server.requests(), []);
}

#[test]
fn a_session_that_a_model_skips_has_no_note() {
    let skips = || ModelServer::start([says(r#"{"skip": true, "title": "", "body": ""}"#)]);
    let (home, server) = (home(), skips());
    name(&home, &server);
    play(&home, "s1", "limit the login");
    assert_eq!(home.notes(), [""; 0]);
    home.work();
    assert_eq!((home.notes().len(), server.requests().len()), (0, 1));
    let transcript = home.write_transcript(
        crate::SESSION,
        &[
            asked("add a rate limiter to the login"),
            answered("It is in middleware/limit.rs, with four tests."),
        ],
    );
    let command = home.command(["capture", "--no-sync", "--transcript"]);
    let shown = command.arg(&transcript).run().shown();
    assert!(
        shown.starts_with("exit 0\ncapture: skipped trivial session "),
        "{shown}"
    );
    assert_eq!(home.notes(), [""; 0]);
}
