//! `eval mine`, `eval run`, `eval gate`: how well recall does on the notes that are there.

use anamnesis_testkit::home::{NoteText, TestHome};
use serde_json::{Value, json};

use crate::{SESSION, furnished, home, id, sessions, snapshot};

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
    let home = furnished();
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
fn titles_become_questions_once() {
    let home = answering();
    snapshot!(home.run("eval mine").shown(), @"
    exit 0
    added 3 questions to ~/.anamnesis/eval/eval.jsonl: 3 titles, 0 prompts
    → anamnesis eval run   |   anamnesis eval gate
    ");
    snapshot!(home.read(SET), @r#"
    {"query":"Integration tests need the stub server","relevant_ids":["01JZ00000000000000007Q4KZ9"],"note_titles":["Integration tests need the stub server"],"approved":true,"source":"title"}
    {"query":"Where prices of the cart are kept","relevant_ids":["01JZ0000000000000000AAAA01"],"note_titles":["Where prices of the cart are kept"],"approved":true,"source":"title"}
    {"query":"Icons come from one designer","relevant_ids":["01JZ0000000000000000AAAA02"],"note_titles":["Icons come from one designer"],"approved":true,"source":"title"}
    "#);
    snapshot!(home.run("eval mine").shown(), @"
    exit 0
    nothing to add to ~/.anamnesis/eval/eval.jsonl
    ");
    let before = home.read(SET);
    home.run("eval mine --n 99").well();
    assert_eq!(home.read(SET), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        for (path, mode) in [(SET, 0o600), ("eval", 0o700)] {
            let metadata = std::fs::metadata(home.store().join(path)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, mode, "{path}");
        }
    }
    // The same notes make the same file elsewhere.
    let other = home.root().join("other.jsonl");
    home.command(["eval", "mine", "--eval-set"])
        .arg(&other)
        .run()
        .well();
    assert_eq!(std::fs::read_to_string(other).unwrap(), before);
    assert_eq!(
        home.run("eval mine --project github.com/acme/cart --json")
            .json()["added"],
        0
    );
}

#[test]
fn a_secret_in_a_title_is_in_no_question() {
    let home = home();
    let secret = concat!("gh", "p_0123456789abcdefghijABCDEFGHIJ012345");
    let title = format!("Deploys of the cart need {secret}");
    home.add(&NoteText::new(&id("AAAA01"), &title).body("Jenkins has it."));
    home.run("eval mine").well();
    assert!(home.read(SET).contains("[REDACTED]"));
    assert!(!home.read(SET).contains(secret));
}

#[test]
fn a_title_is_asked_of_a_note_that_does_not_have_it() {
    let home = answering();
    home.run("eval mine").well();
    snapshot!(home.run("eval run").shown(), @"
    exit 0
    3 questions of ~/.anamnesis/eval/eval.jsonl, asked of 9 notes

    found among the first asked      1      3      5      8     MRR
    all                       3   67 %   67 %   67 %   67 %    0.67

    a session starts with ~176 tokens (median 176); all notes are ~139
    ");
    snapshot!(format!("{:#}", home.run("eval run --json -k 2").json()), @r#"
    {
      "recall": {
        "n_cases": 3,
        "recall_at": {
          "1": 0.6666666666666666,
          "2": 0.6666666666666666,
          "3": 0.6666666666666666,
          "5": 0.6666666666666666,
          "8": 0.6666666666666666
        },
        "mrr": 0.6666666666666666,
        "by_source": {
          "title": {
            "n_cases": 3,
            "recall_at": {
              "1": 0.6666666666666666,
              "2": 0.6666666666666666,
              "3": 0.6666666666666666,
              "5": 0.6666666666666666,
              "8": 0.6666666666666666
            },
            "mrr": 0.6666666666666666
          }
        },
        "unreviewed": 0
      },
      "working_set": {
        "per_project": {
          "github.com/acme/cart": 86,
          "github.com/acme/shop": 266
        },
        "mean_tokens": 176.0,
        "median_tokens": 176.0,
        "corpus_tokens": 139
      },
      "notes": 9,
      "unknown_ids": [],
      "bad_lines": []
    }
    "#);
    // Neither the notes nor the index are changed by it.
    assert!(
        home.run("search icons designer")
            .well()
            .contains("Icons come")
    );
}

#[test]
fn what_is_asked_by_hand_is_measured_when_it_is_approved() {
    let home = answering();
    snapshot!(home.run("eval run").shown(), @"
    exit 2
    on stderr:
    anamnesis: there are no questions: ~/.anamnesis/eval/eval.jsonl is not there
    → anamnesis eval mine   (makes some of your notes and prompts)
    ");
    assert_eq!(home.run("eval run -k 0").code, Some(2));
    home.write(SET, "");
    snapshot!(home.run("eval run").shown(), @"
    exit 0
    0 questions of ~/.anamnesis/eval/eval.jsonl, asked of 9 notes
    a session starts with ~176 tokens (median 176); all notes are ~139
    → anamnesis eval mine
    ");
    assert_eq!(
        home.run("eval run --json").json()["recall"],
        json!({ "n_cases": 0, "recall_at": { "1": null, "3": null, "5": null, "8": null },
                "mrr": null, "by_source": {}, "unreviewed": 0 })
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

    found among the first asked      1      3      5      8     MRR
    all                       2   50 %   50 %   50 %   50 %    0.50

    a session starts with ~176 tokens (median 176); all notes are ~139
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
fn a_run_over_hundreds_of_notes_says_the_same_twice() {
    let home = home();
    let things = [
        "cart", "login", "search", "invoice", "footer", "mail", "photo",
    ];
    let verbs = ["rounds", "caches", "retries", "drops", "splits"];
    for number in 0..200_usize {
        let (thing, verb) = (things[number % 7], verbs[number % 5]);
        let title = format!("How the {thing} {verb} batch {number}");
        let body = format!(
            "When step {number} comes, the {thing} {verb} what is left of {}.",
            number / 3
        );
        let project = format!("github.com/acme/{thing}");
        let note = NoteText::new(&id(&format!("A{number:05}")), &title);
        home.add(&note.with("project", &project).body(body));
    }
    home.run("eval mine --n 14").well();
    assert_eq!(set(&home).len(), 14);
    let first = home.run("eval run --json").well();
    assert_eq!(home.run("eval run --json").well(), first);
    let report: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(report["recall"]["n_cases"], 14);
    assert!(report["recall"]["recall_at"]["8"].as_f64().unwrap() > 0.5);
    assert_eq!(
        report["working_set"]["per_project"]
            .as_object()
            .unwrap()
            .len(),
        7
    );
    let gate = home.run("eval gate --json").well();
    assert_eq!(home.run("eval run --gate --json").well(), gate);
}

/// A session of a folder: prompts, each with a command that its turn ran, if any. It begins with a
/// prompt: a start would give it the notes.
fn session(home: &TestHome, session: &str, folder: &str, prompts: &[(&str, &str)]) {
    let cwd = home.root().join(folder);
    std::fs::create_dir_all(&cwd).unwrap();
    let cwd = cwd.to_string_lossy().into_owned();
    let event = |time: &str, name: &str, mut fields: Value| {
        fields["cwd"] = cwd.clone().into();
        let payload = sessions::event(home, name, session, fields);
        let hook = home.hook_with(payload.to_string());
        hook.env("ANAMNESIS_NOW", format!("2026-01-02T{time}Z"))
            .env("CLAUDE_PROJECT_DIR", &cwd)
            .run()
            .well();
        home.settle();
    };
    for (number, (prompt, command)) in prompts.iter().enumerate() {
        let time = |second: u32| format!("03:{:02}:{second:02}", number + 1);
        let prompt_id = format!("p-{number}");
        event(
            &time(1),
            "UserPromptSubmit",
            json!({ "prompt_id": prompt_id, "prompt": prompt }),
        );
        if !command.is_empty() {
            let tool = json!({ "prompt_id": prompt_id, "tool_name": "Bash", "duration_ms": 5,
                "tool_use_id": format!("toolu_{number}"), "tool_input": { "command": command },
                "tool_response": { "stdout": "" } });
            event(&time(2), "PostToolUse", tool);
        }
        let stop = json!({ "prompt_id": prompt_id, "stop_hook_active": false, "last_assistant_message": "Done." });
        event(&time(3), "Stop", stop);
    }
}

const PROMPTS: [(&str, &str); 4] = [
    // The note comes with the prompt.
    (
        "Why do the integration tests hang without the stub server?",
        "anamnesis show 7Q4KZ9",
    ),
    (
        "Nothing answers on my laptop when I sign in with the suite running",
        "anamnesis show 7Q4KZ9 && anamnesis show 01JZ0000",
    ),
    ("ok, go on", "anamnesis show B2M6RD"),
    ("How many attempts does a person have per minute?", "ls"),
];

#[test]
fn a_prompt_whose_turn_opened_a_note_that_had_not_come_is_a_question() {
    let home = answering();
    home.run("reindex").well();
    session(&home, SESSION, "shop", &PROMPTS);
    let mined = home.run("eval mine --json").json();
    assert_eq!(mined["by_source"]["prompt"], 1);
    assert_eq!(mined["unreviewed"], 1);
    let prompt = set(&home).pop().unwrap();
    snapshot!(format!("{prompt:#}"), @r#"
    {
      "query": "Nothing answers on my laptop when I sign in with the suite running",
      "relevant_ids": [
        "01JZ00000000000000007Q4KZ9"
      ],
      "note_titles": [
        "Integration tests need the stub server"
      ],
      "approved": false,
      "source": "prompt:5b0c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d20#2"
    }
    "#);
    // Nobody approved it.
    let run = home.run("eval run --json").json();
    assert_eq!(run["recall"]["unreviewed"], 1);
    assert_eq!(run["recall"]["by_source"].get("prompt"), None);
    snapshot!(home.run("eval run --include-unreviewed").shown(), @"
    exit 0
    4 questions of ~/.anamnesis/eval/eval.jsonl, asked of 10 notes

    found among the first asked      1      3      5      8     MRR
    all                       4   25 %   50 %   50 %   50 %    0.38
    prompt                    1    0 %    0 %    0 %    0 %    0.00
    title                     3   33 %   67 %   67 %   67 %    0.50

    a session starts with ~202 tokens (median 202); all notes are ~180
    ");
}

#[test]
fn what_is_forgotten_is_asked_no_more() {
    let home = answering();
    home.run("reindex").well();
    session(&home, SESSION, "shop", &PROMPTS);
    home.run("eval mine").well();
    let count = set(&home).len();
    home.run("forget AAAA01").well();
    assert!(!home.read(SET).contains("prices"));
    assert_eq!(set(&home).len(), count - 1);
    home.command(["purge", "--find", "--yes"])
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .input("laptop")
        .run()
        .well();
    assert!(home.read(SET).contains("on my [REDACTED] when"));
    home.run(&format!("forget --session {SESSION} --prompt 2 --yes"))
        .well();
    assert!(!home.read(SET).contains("suite"));
    home.run("eval mine").well();
    assert!(!home.read(SET).contains("prompt:"));
    // What another machine or an undo forgot goes with the day's upkeep.
    home.write(SET, line("which price", &[&id("AAAA01")], true));
    home.run("maintain").well();
    assert_eq!(home.read(SET), "");
}

#[test]
fn the_gate_is_measured_by_prompts_of_other_projects() {
    let home = answering();
    home.run("reindex").well();
    snapshot!(home.run("eval gate").shown(), @"
    exit 2
    on stderr:
    anamnesis: there are no questions: ~/.anamnesis/eval/eval.jsonl is not there
    → anamnesis eval mine   (makes some of your notes and prompts)
    ");
    let of_cart = [
        ("Which colour has the sea at night in winter?", ""),
        (
            "Does the stub server bind port 9090 in the integration tests?",
            "",
        ),
        ("go on", ""),
    ];
    session(
        &home,
        "9d3e6a1c-0000-4f0a-9d3e-6a1c7e4b9d20",
        "cart",
        &of_cart,
    );
    home.run("eval mine").well();
    snapshot!(home.run("eval gate").shown(), @r#"
    exit 0
    2 prompts asked of a project they are not of;
    3 questions, 2 with the note within reach

    floor   unrelated and given   useful and kept   notes a time
    0.16                 50.0 %            50.0 %            1.0
    0.20                 50.0 %            50.0 %            1.0
    0.24                 50.0 %            50.0 %            1.0  recall.wide on
    0.28                 50.0 %            50.0 %            1.0
    0.32                 50.0 %            50.0 %            1.0  now
    0.36                 50.0 %            50.0 %            1.0
    0.40                 50.0 %            50.0 %            1.0
    0.50                 50.0 %            50.0 %            1.0

    the worst that came now, with the words that they share
    6.07  "Does the stub server bind port 9090 in the integration tests?"
          #7Q4KZ9 Integration tests need the stub server
          stub, server, bind, port, 9090, integration, tests
    → anamnesis config set recall.wide on   (more comes, less sure)
    → anamnesis mute ID   (a note that never comes unasked)
    "#);
    let report = home.run("eval gate --json").json();
    assert_eq!(report["gate"]["unrelated"], 2);
    assert_eq!(report["gate"]["worst"][0]["id"], id("7Q4KZ9"));
    home.run("config set recall.wide on").well();
    let wide = home.run("eval run --gate --json").json();
    assert_eq!(wide["gate"]["floor"], 0.24);
    assert_eq!(wide["gate"]["curve"], {
        let mut curve = report["gate"]["curve"].clone();
        curve[2]["now"] = true.into();
        curve[4]["now"] = false.into();
        curve
    });
}
