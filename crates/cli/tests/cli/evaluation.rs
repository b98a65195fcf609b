//! `eval build`, `eval run`, `eval experiment`: how well recall does on the notes that are there.

use anamnesis_testkit::{
    home::{NoteText, TestHome},
    model_server::{ModelServer, Play, says},
};
use serde_json::{Value, json};

use crate::{
    SESSION, home, home_with_notes, id,
    model::{KEY, name},
    snapshot,
};

const SET: &str = "eval/eval.jsonl";

/// The lines of the set, without what makes a line long.
fn set(home: &TestHome) -> Vec<Value> {
    let lines = home.read(SET);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A line of a set.
fn line(query: &str, relevant: &[&str], is_approved: bool) -> String {
    let case = json!({
        "query": query, "relevant_ids": relevant, "note_titles": [], "approved": is_approved,
        "source": "hand",
    });
    format!("{case}\n")
}

/// A store with notes whose texts answer their titles, or do not.
fn answering() -> TestHome {
    let home = home_with_notes();
    for (short, title, body) in [
        (
            "AAAA01",
            "Where prices of the cart are kept",
            "The cart has cents in an integer; a price is never a float.",
        ),
        (
            "AAAA02",
            "Icons come from one designer",
            "Ask Figma for anything that is drawn.",
        ),
        (
            "AAAA03",
            "Mails go out through a queue",
            "Mails go out through a queue, as everybody knows.",
        ),
        ("AAAA04", "Invoices are numbered by year", ""),
    ] {
        home.add(&NoteText::new(&id(short), title).body(body));
    }
    home
}

#[test]
fn what_is_asked_by_hand_is_measured_when_it_is_approved() {
    let home = answering();
    snapshot!(home.run("eval run").shown(), @"
    exit 2
    on stderr:
    anamnesis: there are no questions: ~/.anamnesis/eval/eval.jsonl is not there
    → anamnesis eval build   (lets a model write some about your notes)
    ");
    assert_eq!(home.run("eval run -k 0").code, Some(2));
    home.write(SET, "");
    snapshot!(home.run("eval run").shown(), @"
    exit 0
    0 questions of ~/.anamnesis/eval/eval.jsonl, asked of 9 notes
    a session starts with ~170 tokens; all notes are ~139
    → anamnesis eval build
    ");
    assert_eq!(
        home.run("eval run --json").json()["recall"],
        json!({ "n_cases": 0, "recall_at": { "1": null, "3": null, "5": null, "8": null },
                "mrr": null, "unreviewed": 0 })
    );
    let stub = id("7Q4KZ9");
    let text = [
        line("which port does the stub bind", &[&stub], true),
        line("pnpm or npm", &[&id("4T8WQX")], false),
        "{\"query\": 1}\n".to_owned(),
        line("jenkins", &[&id("0DD0DD"), "no id"], true),
    ];
    home.write(SET, text.concat());
    snapshot!(home.run("eval run").shown(), @r#"
    exit 3
    2 questions of ~/.anamnesis/eval/eval.jsonl, asked of 9 notes

    found among the first      1      3      5      8     MRR
                            50 %   50 %   50 %   50 %    0.50

    a session starts with ~170 tokens; all notes are ~139
    1 question not measured: nobody approved it yet ("approved": true in the file)
    → anamnesis eval run --include-unreviewed
    on stderr:
    ! line 3 is left out: invalid type: integer `1`, expected a string at line 1 column 11
    ! line 4: there is no note 01JZ00000000000000000DD0DD
    ! line 4: there is no note no id
    "#);
    let all = home.run("eval run --include-unreviewed --json");
    assert_eq!(all.code, Some(3));
    let report: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(report["recall"]["n_cases"], 3);
    assert_eq!(report["recall"]["unreviewed"], 0);
    // A note that replaces the right one is right.
    let newer = NoteText::new(&id("AAAA09"), "The stub binds port 9191")
        .with("supersedes", &format!("\n- {stub}"));
    home.add(&newer);
    home.write(SET, line("which port does the stub bind", &[&stub], true));
    let report = home.run("eval run --json").json();
    assert_eq!(report["recall"]["recall_at"]["1"], 1.0);
    assert_eq!(report["unknown_ids"], json!([]));
}

#[test]
fn what_is_forgotten_is_asked_no_more() {
    let home = answering();
    let lines = [
        line("which price", &[&id("AAAA01")], true),
        line("which laptop draws icons", &[&id("AAAA02")], true),
    ];
    home.write(SET, lines.concat());
    home.run("forget AAAA01").well();
    assert!(!home.read(SET).contains("price"));
    assert_eq!(set(&home).len(), 1);
    home.command(["purge", "--find", "--yes"])
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .input("laptop")
        .run()
        .well();
    assert!(home.read(SET).contains("which [REDACTED] draws"));
    // What another machine or an undo forgot goes with the day's upkeep.
    home.write(SET, line("which price", &[&id("AAAA01")], true));
    home.run("maintain").well();
    assert_eq!(home.read(SET), "");
}

/// What a model says that is asked for a question.
fn asks(query: &str) -> Play {
    says(json!({ "query": query }).to_string())
}

#[test]
fn a_model_asks_questions_that_wait_for_approval() {
    let home = answering();
    home.add(
        &NoteText::new(&id("AAAA05"), "Only here")
            .with("scope", "machine-local")
            .body("my-own-word"),
    );
    let mut prompt = home.payload("UserPromptSubmit", SESSION);
    prompt["prompt"] = json!("fix the deploy <private>for the merger</private> please");
    home.hook(&home.start(SESSION, "startup")).well();
    home.hook(&prompt).well();
    home.settle();
    home.add(
        &NoteText::new(&id("AAAA07"), "Of a private session")
            .with("prov_session", SESSION)
            .body("private-session-word"),
    );
    let secret = concat!("AKIA", "IOSFODNN7EXAMPLE");
    home.add(&NoteText::new(&id("AAAA06"), "A key").body(format!("the key is {secret}")));
    let server = ModelServer::start([
        asks("what do the tests want running?"),
        asks("how is money stored?"),
        asks("who draws?"),
    ]);
    name(&home, &server);
    let shown = home.run("eval build --n 3").shown();
    assert!(
        shown.contains("added 3 questions to ~/.anamnesis/eval/eval.jsonl")
            && shown.contains("3 questions, about "),
        "{shown}"
    );
    let set = set(&home);
    assert_eq!(set.len(), 3);
    for case in &set {
        assert_eq!(case["approved"], false);
        assert_eq!(case["source"], "llm:openai/gpt-test");
        assert_eq!(case["relevant_ids"].as_array().unwrap().len(), 1);
    }
    // Those that have a question are not asked about again.
    home.run("eval build").shown();
    let requests = server.requests();
    assert!(requests.len() > 3, "{}", requests.len());
    let bodies: String = requests
        .iter()
        .map(|request| request.text.as_str())
        .collect();
    for needle in [secret, KEY, "my-own-word", "private-session-word"] {
        assert!(!bodies.contains(needle), "{needle}");
    }
    assert_eq!(bodies.matches("# Icons come from one designer").count(), 1);
    let agent = home.command(["eval", "build"]).by_agent().run().shown();
    assert!(agent.contains("only a person can ask the model"), "{agent}");
}

#[test]
fn one_bad_answer_and_no_question_is_added() {
    // LLM-01
    let home = answering();
    let server = ModelServer::start([asks("what do the tests want?"), says("Sure: {}")]);
    name(&home, &server);
    let shown = home.run("eval build").shown();
    assert!(
        shown.starts_with("exit 1\n") && shown.contains("nothing was added: note 01JZ"),
        "{shown}"
    );
    assert!(!home.store().join(SET).exists());
    // Without a model it is said what is missing.
    home.write("config.json", "{}");
    let shown = home.run("eval build").shown();
    assert!(
        shown.starts_with("exit 1\n") && shown.contains("no model is set"),
        "{shown}"
    );
}

/// Thirty sessions of a project, about ten matters.
fn with_thirty_sessions() -> TestHome {
    let home = home();
    for number in 0..30 {
        let (title, ask, file, outcome) = MATTERS[number % MATTERS.len()];
        home.add(
            &NoteText::new(&format!("01JZ0000000000000000S{number:05}"), &format!("{title} again"))
                .session()
                .body(format!(
                    "**Ask:** {ask}\n\n**Files touched (1):**\n- src/{file}.rs\n\n**Outcome:** {outcome} That was run {number} of many, \
                     and it took a while until all of it was in place and the checks went through.")),
        );
    }
    for (short, title, body) in DURABLE {
        home.add(&NoteText::new(&id(short), title).body(body));
    }
    home.run("sync").well();
    home
}

/// What was known before.
const DURABLE: [(&str, &str, &str); 3] = [
    (
        "D00001",
        "Releases are cut on Tuesdays",
        "The release train leaves on Tuesday at ten; nothing is merged before noon.",
    ),
    (
        "D00002",
        "Secrets come from the vault",
        "`make env` fetches them; nobody keeps a copy in the tree.",
    ),
    (
        "D00003",
        "The staging database is wiped nightly",
        "Whatever is put there by hand is gone the next morning.",
    ),
];

/// What sessions were about: title, ask, file, outcome.
const MATTERS: [(&str, &str, &str, &str); 10] = [
    (
        "Login limiter",
        "limit the login",
        "limit",
        "The limiter counts per address in a sliding window of a minute.",
    ),
    (
        "Stub server",
        "make the integration tests pass",
        "stub",
        "They need the stub server on port 9191 before they start.",
    ),
    (
        "Prices",
        "fix the rounding of the cart",
        "cart",
        "Prices are cents in an integer, never a float.",
    ),
    (
        "Migrations",
        "add a column to orders",
        "orders",
        "Migrations run before the deploy, by hand, with the lock held.",
    ),
    (
        "Mail queue",
        "mails arrive twice",
        "mail",
        "The queue redelivers after thirty seconds unless it is acknowledged.",
    ),
    (
        "Search index",
        "search misses new products",
        "search",
        "The index is rebuilt by the nightly job and after an import.",
    ),
    (
        "Feature flags",
        "hide the new checkout",
        "flags",
        "Flags are read at startup; a restart is needed to see a change.",
    ),
    (
        "Image sizes",
        "images are too large",
        "images",
        "Images are scaled by the edge worker, not by the shop.",
    ),
    (
        "Time zones",
        "reports are off by an hour",
        "report",
        "Everything is stored in UTC; only the report converts.",
    ),
    (
        "Webhooks",
        "payments stay open",
        "hooks",
        "The provider signs webhooks; the signature is over the raw body.",
    ),
];

/// What the scripted model makes of them: it says nothing of the last four matters.
fn distilled() -> String {
    let notes: Vec<Value> = MATTERS
        .iter()
        .take(6)
        .map(
            |(title, _, _, outcome)| json!({ "type": "semantic", "title": title, "body": outcome }),
        )
        .collect();
    json!(notes).to_string()
}

#[test]
fn an_experiment_shows_what_a_reflection_would_do_and_changes_nothing() {
    let home = with_thirty_sessions();
    let questions = [
        ("where are login attempts counted", 0),
        ("integration tests stub port", 1),
        ("are prices floats", 2),
        ("mails redelivered twice", 4),
        // What the script says nothing of.
        ("images scaled by whom", 7),
        ("reports converted from UTC", 8),
        ("signature of webhooks raw body", 9),
    ];
    let durable = [
        ("when may I merge before a release", "D00001"),
        ("where do secrets of the environment come from", "D00002"),
        ("why is my data gone from staging", "D00003"),
    ];
    let durable = durable.map(|(query, short)| line(query, &[&id(short)], true));
    let lines: String = questions
        .iter()
        .map(|(query, matter)| {
            let ids: Vec<String> = (0..3)
                .map(|round| format!("01JZ0000000000000000S{:05}", matter + 10 * round))
                .collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            line(query, &ids, true)
        })
        .collect();
    home.write(SET, lines + &durable.concat());
    let before: Vec<(String, String)> = home
        .notes()
        .into_iter()
        .map(|path| (path.clone(), home.read(&path)))
        .collect();
    let server = ModelServer::start([says(distilled())]);
    name(&home, &server);
    snapshot!(home.run("eval experiment").shown(), @"
    exit 0
    on a copy, with openai/gpt-test: 1 project tried, 0 with too little, 0 failed
      github.com/acme/shop: 30 sessions -> 6 notes

    10 questions                 before    after
    found among the first 1       100 %     80 %
    found among the first 3       100 %    100 %
    found among the first 5       100 %    100 %
    found among the first 8       100 %    100 %
    MRR                            1.00     0.90
    a session starts with          ~297     ~287
    all notes                     ~2048    ~2153

    your notes are as they were
    on stderr:
    github.com/acme/shop: about 2,395 tokens to 127.0.0.1
    ");
    for (path, text) in &before {
        assert_eq!(&home.read(path), text, "{path}");
    }
    assert_eq!(home.notes().len(), before.len());
    let left: Vec<_> = std::fs::read_dir(home.store().join("derived"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().starts_with("experiment"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let json = home.run("eval experiment --json");
    let text = json.shown();
    let value: Value =
        serde_json::from_str(&text[text.find('{').unwrap()..=text.rfind('}').unwrap()]).unwrap();
    for key in ["before", "after"] {
        assert_eq!(value[key]["recall"]["n_cases"], 10);
        assert!(value[key]["working_set"]["mean_tokens"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(value["reflected"], 1);
}

#[test]
fn an_experiment_shows_what_a_merge_would_do() {
    let home = answering();
    for (short, title) in [
        ("AAAB01", "Carts hold cents"),
        ("AAAB02", "Carts are in cents"),
    ] {
        home.add(
            &NoteText::new(&id(short), title)
                .with("prov_source", "reflection")
                .body("The cart has cents in an integer."),
        );
    }
    home.write(SET, line("cents in an integer", &[&id("AAAB01")], true));
    let groups = json!([{
        "action": "synthesize", "type": "semantic", "title": "Carts hold cents",
        "body": "The cart has cents in an integer.", "superseded_ids": [id("AAAB01"), id("AAAB02")],
    }]);
    let server = ModelServer::start([says(groups.to_string())]);
    name(&home, &server);
    let before = home.notes();
    let shown = home.run("eval experiment --merge").shown();
    assert!(
        shown.contains("1 group of ") && shown.contains("your notes are as they were"),
        "{shown}"
    );
    assert_eq!(home.notes(), before);
}
