//! The model that a person names: where it is set, what is missing, what it is told and by whom.

use anamnesis_testkit::{
    home::TestHome,
    model_server::{ModelServer, Play, says},
};

use crate::{SESSION, home};

/// A key of nobody, in two parts so that no scanner of this tree takes it for one.
pub(crate) const KEY: &str = concat!("key-of-", "nobody-0815-abc");

/// Names the model of a server in the settings.
pub(crate) fn name(home: &TestHome, server: &ModelServer) {
    name_within(home, server, 30);
}

/// The same, with a setting.
pub(crate) fn name_with(home: &TestHome, server: &ModelServer, setting: &str, value: &str) {
    name(home, server);
    home.run(&format!("config set {setting} {value}")).well();
}

/// The same, for a server that does not answer.
pub(crate) fn name_with_short_timeout(home: &TestHome, server: &ModelServer) {
    name_within(home, server, 2);
}

fn name_within(home: &TestHome, server: &ModelServer, seconds: u32) {
    home.write(
        "config.json",
        format!(
            r#"{{"reflection": {{"provider": "openai", "model": "gpt-test", "base_url": "{}",
                "api_key": "{KEY}", "timeout": {seconds}}}}}"#,
            server.base_url()
        ),
    );
}

#[test]
fn a_model_is_named_tried_and_its_key_shown_in_part_only() {
    let home = home();
    let server = ModelServer::start([says("ready")]);
    for (words, said) in [
        (
            "reflection.provider openai",
            "reflection.provider = openai (was heuristic, the default)",
        ),
        (
            "reflection.model gpt-test",
            "reflection.model = gpt-test (was none, the default)",
        ),
        (
            &format!("reflection.base_url {}", server.base_url()),
            "reflection.base_url = http://127.0.0.1:",
        ),
        (
            &format!("reflection.api_key {KEY}"),
            "reflection.api_key = key…bc (was none, the default)\nUndo: anamnesis config unset reflection.api_key",
        ),
    ] {
        let shown = home.run(&format!("config set {words}")).shown();
        assert!(shown.contains(said), "{shown}");
    }
    assert_eq!(
        home.run("config test").shown(),
        "exit 0\nopenai/gpt-test answers\n"
    );
    assert_eq!(server.requests().len(), 1);
    let doctor = home.run("doctor").shown();
    assert!(doctor.contains("openai/gpt-test, at 127.0.0.1"), "{doctor}");
    for words in [
        "config list",
        "config list --json",
        "config get reflection.api_key",
        "doctor --verbose",
        "doctor --json",
        "config set reflection.api_key another-key-of-nobody",
        "config unset reflection.api_key",
    ] {
        let shown = home.run(words).shown();
        assert!(
            !shown.contains("nobody-0815") && !shown.contains("another-key"),
            "{words}: {shown}"
        );
    }
    assert_eq!(home.log(), Vec::<String>::new());
}

#[test]
fn what_is_missing_of_a_model_is_said() {
    for (settings, problem, hint) in [
        ("{}", "no model is set", "reflection.provider"),
        (
            r#"{"model": "m", "base_url": "https://h/v1", "api_key": "k"}"#,
            "a model is set, but not whose it is",
            "reflection.provider",
        ),
        (
            r#"{"provider": "openai"}"#,
            "the provider openai is set, but no model",
            "reflection.model",
        ),
        (
            r#"{"provider": "openai", "model": "m"}"#,
            "the provider openai is set, but not where its model is",
            "reflection.base_url",
        ),
        (
            r#"{"provider": "openai", "model": "m", "base_url": "https://h/v1"}"#,
            "the provider openai is set, but no key",
            "reflection.api_key",
        ),
        (
            r#"{"provider": "openai", "model": "m", "base_url": "http://h/v1", "api_key": "k"}"#,
            "reflection.base_url is not encrypted: notes and the key could be read on the way",
            "https://",
        ),
        (
            r#"{"provider": "local", "model": "m", "base_url": "http://me:pw@h/v1"}"#,
            "reflection.base_url cannot be used: it contains a user name or a password",
            "reflection.base_url",
        ),
        (
            r#"{"provider": "claude", "model": "haiku"}"#,
            "the provider claude is set, but there is no program `claude` on the path",
            "install Claude Code",
        ),
        (
            r#"{"auto": true}"#,
            "no model is set",
            "reflection.provider",
        ),
    ] {
        let home = home();
        home.write("config.json", format!(r#"{{"reflection": {settings}}}"#));
        let output = home.run("config test");
        let shown = output.shown();
        assert!(shown.starts_with("exit 1\n"), "{shown}");
        assert!(
            shown.contains(problem) && shown.contains(hint),
            "{settings}: {shown}"
        );
        let doctor = home.run("doctor").shown();
        let status = &home.run("status --json").json()["state"]["text"];
        for told in [&doctor, status.as_str().unwrap()] {
            assert_eq!(
                told.contains(problem),
                settings != "{}",
                "{settings}: {told}"
            );
        }
        assert!(
            !doctor.contains("pw@") && !shown.contains("pw@"),
            "{doctor}"
        );
    }
}

#[test]
fn a_key_that_lies_about_is_read_only_for_its_own_provider_and_when_all_else_is_set() {
    let home = home();
    let server = ModelServer::start([says("ready")]);
    let run = |settings: &[(&str, &str)]| {
        let command = home.command(["config", "test"]).env("OPENAI_API_KEY", KEY);
        let command = settings
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value));
        command.run().shown()
    };
    let url = server.base_url();
    let (provider, model, base_url) = (
        "ANAMNESIS_REFLECTION_PROVIDER",
        "ANAMNESIS_REFLECTION_MODEL",
        "ANAMNESIS_REFLECTION_BASE_URL",
    );
    for settings in [
        &[][..],
        &[(provider, "openai")],
        &[(provider, "openai"), (model, "m")],
        &[(model, "m"), (base_url, &url)],
        &[(provider, "deepseek"), (model, "m"), (base_url, &url)],
    ] {
        assert!(run(settings).starts_with("exit 1\n"), "{settings:?}");
    }
    assert_eq!(server.requests(), []);
    let all = [(provider, "OpenAI"), (model, "m"), (base_url, &url)];
    assert_eq!(run(&all), "exit 0\nopenai/m answers\n");
    let requests = server.requests();
    let authorization = requests[0].header("authorization");
    assert_eq!(authorization, Some(format!("Bearer {KEY}").as_str()));
}

#[test]
fn a_model_that_fails_says_how() {
    // LLM-03
    for (play, said) in [
        (
            Play::Refuses(401, r#"{"error": {"message": "bad key"}}"#.to_owned()),
            "127.0.0.1 answered 401: bad key",
        ),
        (
            Play::Redirects("https://elsewhere.example/".to_owned()),
            "redirects the request",
        ),
    ] {
        let home = home();
        let server = ModelServer::start([play]);
        name_with_short_timeout(&home, &server);
        let shown = home.run("config test").shown();
        assert!(
            shown.starts_with("exit 1\n") && shown.contains(said),
            "{shown}"
        );
        assert!(!shown.contains(KEY), "{shown}");
    }
}

#[test]
fn a_projects_address_of_a_model_does_not_count() {
    // LLM-05
    let home = home();
    let (own, other) = (
        ModelServer::start([says("ready")]),
        ModelServer::start([says("mine")]),
    );
    name(&home, &own);
    // An agent's environment may be the project's: it reads none of it, and tries no model.
    let refused = home
        .command(["config", "test"])
        .env("ANAMNESIS_REFLECTION_BASE_URL", other.base_url())
        .by_agent()
        .run()
        .shown();
    assert!(
        refused.contains("only a person can ask the model"),
        "{refused}"
    );
    let shown = home
        .command(["config", "get", "reflection.base_url"])
        .env("ANAMNESIS_REFLECTION_BASE_URL", other.base_url())
        .by_agent()
        .run();
    assert_eq!(shown.stdout, own.base_url() + "\n");
    // What a project has in a file of its own is no setting, either.
    std::fs::create_dir_all(home.project().join(".anamnesis")).unwrap();
    let settings = format!(
        r#"{{"reflection": {{"base_url": "{}"}}}}"#,
        other.base_url()
    );
    for path in [
        ".anamnesis/config.json",
        ".anamnesis/project",
        "config.json",
    ] {
        std::fs::write(home.project().join(path), &settings).unwrap();
    }
    home.hook(&home.start(SESSION, "startup")).well();
    assert!(home.run("config test").shown().starts_with("exit 0\n"));
    assert_eq!((own.requests().len(), other.requests().len()), (1, 0));
}

#[cfg(unix)]
#[test]
fn the_users_own_claude_is_asked_only_when_it_is_named() {
    let home = home();
    let program = home.root().join("bin").join("claude");
    anamnesis_testkit::home::script(
        &program,
        "printf '%s ' \"$@\" > \"$HOME/asked\"; echo \"$ANAMNESIS_INTERNAL$CLAUDECODE\" >> \"$HOME/asked\"; echo ready",
    );
    assert!(home.run("config test").shown().starts_with("exit 1\n"));
    assert!(!home.user().join("asked").exists());
    home.run("config set reflection.provider claude").well();
    assert_eq!(
        home.run("config test").shown(),
        "exit 0\nclaude/sonnet answers\n"
    );
    home.run("config set reflection.model haiku").well();
    assert_eq!(
        home.run("config test").shown(),
        "exit 0\nclaude/haiku answers\n"
    );
    let asked = std::fs::read_to_string(home.user().join("asked")).unwrap();
    assert!(
        asked.contains("--safe-mode") && asked.ends_with(" 1\n"),
        "{asked}"
    );
}

#[test]
fn a_proxy_is_used_for_other_machines_and_if_no_project_may_have_set_it() {
    let home = home();
    let proxy = ModelServer::start([Play::Refuses(403, String::new())]);
    let server = ModelServer::start([says("fine"), says("fine")]);
    let address = proxy.base_url().trim_end_matches("/v1").to_owned();
    name(&home, &server);
    for variable in ["HTTP_PROXY", "all_proxy"] {
        let tested = home.command(["config", "test"]).env(variable, &address);
        tested.run().well();
    }
    home.run("config set reflection.base_url https://model.invalid/v1")
        .well();
    let doctor = home.command(["doctor"]).env("https_proxy", &address);
    let shown = doctor.by_agent().run().shown();
    assert!(
        shown.contains("https_proxy is set, and its proxy must not"),
        "{shown}"
    );
    assert_eq!((proxy.requests().len(), server.requests().len()), (0, 2));
    let tested = home
        .command(["config", "test"])
        .env("https_proxy", &address);
    assert!(!tested.run().shown().contains("works"));
    assert_eq!(
        proxy.requests()[0].line,
        "CONNECT model.invalid:443 HTTP/1.1"
    );
}
