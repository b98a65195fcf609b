use std::fmt::Write as _;
use std::io::{BufReader, Read};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::session_note::{NoteText, SessionDigest, note_text};
use anamnesis_testkit::assert_linear;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!(
            "../../tests/fixtures/transcripts/",
            $name,
            ".jsonl"
        ))
    };
}

const FIXTURES: [&str; 8] = [
    fixture!("after-clear"),
    fixture!("auto-compacted"),
    fixture!("interactive-compacted"),
    fixture!("interrupted"),
    fixture!("resumed-then-compacted"),
    fixture!("tools"),
    fixture!("with-subagent"),
    fixture!("with-subagent.child"),
];

fn transcript(text: impl AsRef<[u8]>) -> Transcript {
    let (transcript, error) = read(text.as_ref());
    assert!(error.is_none());
    transcript
}

/// Returns everything that a transcript and its summary say.
fn all_text(text: &str) -> String {
    let session = transcript(text);
    let time = |time: Option<DateTime<Utc>>| time.map(|time| time.to_rfc3339());
    let mut all_text = format!(
        "session {:?} in {:?} on {:?}\n\
         from {:?} to {:?}\n\
         turns {:?}, outcome {:?}\n\
         files {:?} and {} edits, failures {}, prompts {}, private {}\n\
         lines {}, skipped {}\n\n",
        session.session_id,
        session.cwd,
        session.git_branch,
        time(session.first_at),
        time(session.last_at),
        session.turns,
        session.outcome,
        session.files,
        session.edits_left_out,
        session.failures,
        session.prompts,
        session.private,
        session.lines,
        session.skipped_lines,
    );
    match note_text(&SessionDigest::from(&session)) {
        None => all_text.push_str("trivial"),
        Some(NoteText { title, body }) => {
            let _ = write!(all_text, "# {title}\n{body}");
        }
    }
    all_text
}

#[test]
fn the_name_of_the_person_comes_before_that_of_the_client() {
    let ai = r#"{"type":"ai-title","aiTitle":"Add limits","sessionId":"s"}"#;
    let own =
        |name: &str| format!(r#"{{"type":"custom-title","customTitle":"{name}","sessionId":"s"}}"#);
    let named = |lines: &[&str]| transcript(lines.join("\n")).name;
    assert_eq!(named(&[ai]).as_deref(), Some("Add limits"));
    let lines = [&own("one"), ai, &own("two<private>x</private>"), ai];
    assert_eq!(named(&lines).as_deref(), Some("two"));
    assert_eq!(
        name(lines.join("\n").as_bytes()).unwrap().as_deref(),
        Some("two")
    );
    assert_eq!(
        named(&[r#"{"type":"user","message":{"content":"ai-title"}}"#]),
        None
    );
}

#[test]
fn a_session_that_edits_files_outside_git() {
    insta::assert_snapshot!(all_text(fixture!("tools")), @r#"
    session Some("689c4091-5aca-4c0c-8501-7cf4f6db90d1") in Some("/home/dev/project") on None
    from Some("2026-11-21T20:26:55.852+00:00") to Some("2026-11-21T20:27:00.885+00:00")
    turns [Turn { prompt: Some("please do it"), answer: Some("All done."), edited: ["/home/dev/project/hello2.txt"], after: None }], outcome Some("All done.")
    files ["/home/dev/project/hello2.txt"] and 0 edits, failures 2, prompts 1, private false
    lines 32, skipped 0

    # Change of hello2.txt
    **Files:** hello2.txt
    "#);
}

#[test]
fn a_session_that_is_resumed_and_compacted() {
    insta::assert_snapshot!(all_text(fixture!("resumed-then-compacted")), @r#"
    session Some("4a10069e-75e4-41a3-985b-773e7d0bb7a8") in Some("/home/dev/project") on Some("master")
    from Some("2026-11-21T20:42:34.299+00:00") to Some("2026-11-21T20:42:57.810+00:00")
    turns [Turn { prompt: Some("one"), answer: Some("R-first"), edited: ["/home/dev/project/w.txt"], after: None }, Turn { prompt: Some("two"), answer: Some("R-resume"), edited: [], after: Some("toolu_5790ba88091443b2911cbda3") }, Turn { prompt: Some("three"), answer: Some("R-continue"), edited: [], after: Some("toolu_5790ba88091443b2911cbda3") }, Turn { prompt: Some("five"), answer: Some("R-aftercompact"), edited: [], after: Some("toolu_5790ba88091443b2911cbda3") }], outcome Some("R-aftercompact")
    files ["/home/dev/project/w.txt"] and 0 edits, failures 0, prompts 4, private false
    lines 21, skipped 0

    # Change of w.txt
    **Ask:** one

    **Outcome:** R-aftercompact

    **Files:** w.txt
    "#);
}

#[test]
fn an_interactive_session_with_a_command() {
    insta::assert_snapshot!(all_text(fixture!("interactive-compacted")), @r#"
    session Some("ac683900-8d0b-4d01-acaa-3d582848310f") in Some("/home/dev/project") on Some("master")
    from Some("2026-11-21T20:36:13.894+00:00") to Some("2026-11-21T20:36:24.393+00:00")
    turns [Turn { prompt: Some("hello tui"), answer: Some("Second answer after command."), edited: ["/home/dev/project/a.txt"], after: None }, Turn { prompt: Some("go on"), answer: Some("Third after compact."), edited: [], after: Some("toolu_f16f09c85a7b4c849f9d3c7e") }], outcome Some("Third after compact.")
    files ["/home/dev/project/a.txt"] and 0 edits, failures 0, prompts 3, private false
    lines 22, skipped 0

    # hello tui
    **Outcome:** Third after compact.

    **Files:** a.txt
    "#);
}

#[test]
fn a_session_compacted_in_mid_turn() {
    insta::assert_snapshot!(all_text(fixture!("auto-compacted")), @r#"
    session Some("dd3365aa-c451-4c94-bb80-ca7c6634b056") in Some("/home/dev/project") on Some("master")
    from Some("2026-11-21T20:43:00.579+00:00") to Some("2026-11-21T20:43:03.572+00:00")
    turns [Turn { prompt: Some("six"), answer: Some("R-auto"), edited: [], after: None }], outcome Some("R-auto")
    files [] and 0 edits, failures 0, prompts 1, private false
    lines 13, skipped 0

    trivial
    "#);
}

#[test]
fn an_interrupted_session() {
    insta::assert_snapshot!(all_text(fixture!("interrupted")), @r#"
    session Some("e2ade0f0-a79a-4e19-bb67-49d8c98888c5") in Some("/home/dev/project") on Some("master")
    from Some("2026-11-21T20:38:37.291+00:00") to Some("2026-11-21T20:38:41.238+00:00")
    turns [Turn { prompt: Some("long"), answer: None, edited: [], after: None }], outcome None
    files [] and 0 edits, failures 0, prompts 1, private false
    lines 8, skipped 0

    trivial
    "#);
}

#[test]
fn a_session_that_begins_with_clear() {
    insta::assert_snapshot!(all_text(fixture!("after-clear")), @r#"
    session Some("3361f0b7-a7e4-49cb-b1a8-97500b6d59b8") in Some("/home/dev/project") on Some("master")
    from Some("2026-11-21T20:43:10.981+00:00") to Some("2026-11-21T20:43:11.313+00:00")
    turns [], outcome None
    files [] and 0 edits, failures 0, prompts 0, private false
    lines 7, skipped 0

    trivial
    "#);
}

#[test]
fn a_session_with_a_subagent() {
    insta::assert_snapshot!(all_text(fixture!("with-subagent")), @r#"
    session Some("a2024d26-7f5d-42c9-8b49-fcd9ad42eff8") in Some("/home/dev/project") on Some("master")
    from Some("2026-11-21T20:43:25.539+00:00") to Some("2026-11-21T20:43:29.465+00:00")
    turns [Turn { prompt: Some("ten"), answer: Some("R-sub"), edited: [], after: None }], outcome Some("R-sub")
    files [] and 0 edits, failures 0, prompts 1, private false
    lines 10, skipped 0

    trivial
    "#);
}

/// CAP-11: only a subagent's actions count.
#[test]
fn a_subagent() {
    insta::assert_snapshot!(all_text(fixture!("with-subagent.child")), @r#"
    session None in None on None
    from None to None
    turns [], outcome None
    files ["/home/dev/project/sub.txt"] and 0 edits, failures 0, prompts 0, private false
    lines 5, skipped 0

    # Change of sub.txt
    **Files:** ~/project/sub.txt
    "#);
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn user(text: &str) -> String {
    let text = json(text);
    format!(r#"{{"type":"user","message":{{"role":"user","content":{text}}}}}"#) + "\n"
}

fn queued(text: &str) -> String {
    let text = json(text);
    format!(r#"{{"attachment":{{"type":"queued_command","prompt":{text}}},"type":"attachment"}}"#)
        + "\n"
}

fn assistant(id: &str, blocks: &str) -> String {
    let message = format!(r#"{{"id":"{id}","role":"assistant","content":[{blocks}]}}"#);
    format!(r#"{{"type":"assistant","message":{message}}}"#) + "\n"
}

fn says(id: &str, text: &str) -> String {
    assistant(id, &format!(r#"{{"type":"text","text":{}}}"#, json(text)))
}

fn edits(tool: &str, key: &str, path: &str) -> String {
    let input = format!(r#"{{"{key}":{}}}"#, json(path));
    assistant(
        "m",
        &format!(r#"{{"type":"tool_use","name":"{tool}","input":{input}}}"#),
    )
}

fn result(is_error: bool) -> String {
    let block = format!(r#"{{"type":"tool_result","content":"no","is_error":{is_error}}}"#);
    format!(r#"{{"type":"user","message":{{"content":[{block},{{"type":"text","text":"x"}}]}}}}"#)
        + "\n"
}

#[test]
fn an_empty_stream_is_an_empty_session() {
    assert_eq!(transcript(""), Transcript::default());
    assert_eq!(transcript("\n \n\r\n"), Transcript::default());
}

#[test]
fn the_ask_is_the_first_prompt_of_a_person() {
    let meta = |flag: &str| {
        format!(r#"{{"type":"user","{flag}":true,"message":{{"content":"not this"}}}}"#) + "\n"
    };
    let origin = r#"{"type":"user","origin":{"kind":"peer"},"message":{"content":"nor this"}}"#;
    let lines = [
        meta("isMeta"),
        meta("isSidechain"),
        meta("isCompactSummary"),
        format!("{origin}\n"),
        user("<local-command-stdout>x</local-command-stdout>"),
        user("<task-notification>x</task-notification>"),
        user("/model opus"),
        user(" \n"),
        result(false),
        user("Fix the parser"),
        user("And the lexer"),
    ];
    let transcript = transcript(lines.concat());
    assert_eq!(ask(&transcript), Some("Fix the parser"));
    assert_eq!(transcript.prompts, 3);
}

#[test]
fn each_prompt_has_its_last_answer() {
    let lines = [
        user("Fix the parser"),
        says("m1", "Looking."),
        says("m2", "Fixed."),
        user("And the lexer"),
        queued("only the lexer"),
        says("m3", "Done."),
    ];
    let turns = transcript(lines.concat()).turns;
    let texts: Vec<_> = turns
        .iter()
        .map(|turn| (turn.prompt.as_deref(), turn.answer.as_deref()))
        .collect();
    assert_eq!(
        texts,
        [
            (Some("Fix the parser"), Some("Fixed.")),
            (Some("And the lexer"), None),
            (Some("only the lexer"), Some("Done.")),
        ]
    );
}

#[test]
fn the_outcome_is_the_last_message_with_words() {
    let error = r#"{"type":"assistant","isApiErrorMessage":true,
        "message":{"content":[{"type":"text","text":"API Error"}]}}"#;
    let synthetic = r#"{"type":"assistant",
        "message":{"model":"<synthetic>","content":[{"type":"text","text":"No response"}]}}"#;
    let lines = [
        says("m1", "First."),
        says("m2", "One"),
        edits("Edit", "file_path", "/a"),
        result(false),
        says("m2", "two."),
        says("m3", " \n\u{200b}"),
        assistant("m4", r#"{"type":"thinking","thinking":"hm"}"#),
        error.replace('\n', "") + "\n",
        synthetic.replace('\n', "") + "\n",
    ];
    let transcript = transcript(lines.concat());
    assert_eq!(transcript.outcome.as_deref(), Some("One\ntwo."));
}

#[test]
fn messages_without_an_id_are_not_joined() {
    let line = r#"{"type":"assistant","message":{"content":"a"}}"#;
    let lines = [line, &line.replace("\"a\"", "\"b\"")].join("\n");
    assert_eq!(transcript(lines).outcome.as_deref(), Some("b"));
}

#[test]
fn files_are_those_that_tools_edited() {
    let lines = [
        edits("Read", "file_path", "/read"),
        edits("Write", "file_path", "/b"),
        edits("Edit", "file_path", "/a  b\n.rs"),
        edits("MultiEdit", "file_path", "/b"),
        edits("NotebookEdit", "notebook_path", "/n.ipynb"),
        edits("NotebookEdit", "file_path", "/old.ipynb"),
        edits("Edit", "file_path", &"/long".repeat(1000)),
        edits("Edit", "path", "/none"),
    ];
    let transcript = transcript(lines.concat());
    assert_eq!(
        transcript.files,
        ["/b", "/a  b .rs", "/n.ipynb", "/old.ipynb"]
    );
    assert_eq!(transcript.edits_left_out, 0);
}

#[test]
fn files_are_bounded() {
    let lines: String = (0..MAX_FILES + 7)
        .chain(0..3)
        .map(|n| edits("Edit", "file_path", &format!("/{n}")))
        .collect();
    let transcript = transcript(lines);
    assert_eq!(transcript.files.len(), MAX_FILES);
    assert_eq!(transcript.edits_left_out, 7);
}

#[test]
fn failures_are_tools_that_failed() {
    let denied = result(true).replacen('{', r#"{"toolDenialKind":"user-rejected","#, 1);
    let transcript = transcript([result(true), result(false), denied, result(true)].concat());
    assert_eq!(transcript.failures, 2);
    assert_eq!((ask(&transcript), transcript.prompts), (None, 0));
}

#[test]
fn a_prompt_in_several_records_counts_once() {
    let prompt = |id: &str| user("x").replacen('{', &format!(r#"{{"promptId":"{id}","#), 1);
    let image = r#"{"type":"user","message":{"content":[{"type":"image","source":{}}]}}"#;
    let lines = [
        prompt("a"),
        prompt("a"),
        prompt("b"),
        format!("{image}\n"),
        user("c"),
    ];
    assert_eq!(transcript(lines.concat()).prompts, 4);
}

#[test]
fn session_data_comes_from_the_main_session() {
    let line = |kind: &str, rest: &str| format!(r#"{{"type":"{kind}",{rest}}}"#) + "\n";
    let lines = [
        line("system", r#""cwd":"/system","about":"user""#),
        line(
            "user",
            r#""isSidechain":true,"cwd":"/side","sessionId":"side""#,
        ),
        line(
            "user",
            r#""cwd":"","gitBranch":"HEAD","timestamp":"2026-11-21T10:00:05Z""#,
        ),
        line(
            "assistant",
            r#""cwd":"/a","sessionId":"s\n","timestamp":"2026-11-21T11:00:00+02:00""#,
        ),
        line(
            "user",
            r#""cwd":"/b","sessionId":"s","gitBranch":"ma\u202ein""#,
        ),
        line("user", r#""timestamp":"yesterday""#),
    ];
    let transcript = transcript(lines.concat());
    assert_eq!(transcript.cwd.as_deref(), Some("/a"));
    assert_eq!(transcript.session_id.as_deref(), Some("s"));
    assert_eq!(transcript.git_branch.as_deref(), Some("main"));
    let times = [transcript.first_at, transcript.last_at].map(|time| time.unwrap().to_rfc3339());
    assert_eq!(
        times,
        ["2026-11-21T09:00:00+00:00", "2026-11-21T10:00:05+00:00"]
    );
}

/// Everything after a fully private prompt is skipped until a person sends another.
#[test]
fn a_private_prompt_hides_what_follows() {
    for private in [user("<private>use K9</private>"), queued("<private>use K9")] {
        let lines = [
            user("Fix the parser"),
            says("m1", "Fixed."),
            private,
            says("m2", "I used K9."),
            edits("Edit", "file_path", "/k9"),
            result(true),
            user("<command-name>/cost</command-name>"),
            says("m3", "K9 again."),
        ];
        let session = transcript(lines.concat());
        assert_eq!(session.outcome.as_deref(), Some("Fixed."));
        assert!(session.files.is_empty() && session.failures == 0 && session.private);
        assert_eq!(session.prompts, 2);

        let notice = "<task-notification>done</task-notification>";
        let in_turn = lines.concat() + &queued("Hurry") + &user(notice) + &says("m4", "K9!");
        assert_eq!(transcript(&in_turn).outcome.as_deref(), Some("Fixed."));

        for prompt in ["Go on", "/probe:hello"] {
            let next = in_turn.clone() + &user(prompt) + &says("m5", "Went on.");
            assert_eq!(transcript(next).outcome.as_deref(), Some("Went on."));
        }
    }
}

#[test]
fn what_is_answered_to_our_own_command_is_no_outcome() {
    let lines = [
        user("Fix the parser"),
        says("m1", "Fixed."),
        user("<command-message>open</command-message>\n<command-name>/memory-open</command-name>"),
        says("m2", "The page is open."),
    ];
    assert_eq!(
        transcript(lines.concat()).outcome.as_deref(),
        Some("Fixed.")
    );
}

/// CAP-03.
#[test]
fn an_excluded_folder_hides_the_rest_of_the_turn() {
    let within = |folder: &str, line: String| {
        let cwd = format!(r#"{{"cwd":"{folder}","#);
        cwd + line.strip_prefix('{').unwrap()
    };
    let lines = [
        within("/open", user("start")),
        within("/open", says("1", "started")),
        within("/secret", result(true)),
        within("/secret", edits("Edit", "file_path", "/secret/key")),
        within("/secret", says("2", "the key is 7")),
        // Back again in the same turn. What was seen there is still known.
        within("/open", result(true)),
        within("/open", says("3", "7 it was")),
        within("/secret", user("more of it")),
        within("/open", says("4", "8")),
    ];
    let is_excluded = |folder: &str| folder == "/secret";
    let read = |lines: &[String]| {
        let part = TranscriptPart {
            is_excluded: Some(&is_excluded),
            ..TranscriptPart::default()
        };
        read_part(lines.concat().as_bytes(), part).0
    };
    let session = read(&lines);
    assert_eq!(ask(&session), Some("start"));
    assert_eq!(session.outcome.as_deref(), Some("started"));
    assert_eq!(
        (session.files.len(), session.failures, session.prompts),
        (0, 0, 1)
    );
    let next = [
        within("/open", user("something else")),
        within("/open", says("5", "done")),
    ];
    let session = read(&[&lines[..], &next].concat());
    assert_eq!(session.outcome.as_deref(), Some("done"));
    assert_eq!(session.prompts, 2);
    // A session that began in the excluded folder starts where it left the folder.
    let session = read(&[&lines[2..], &next].concat());
    assert_eq!(ask(&session), Some("something else"));
    assert_eq!(session.cwd.as_deref(), Some("/open"));
    assert_eq!(transcript(lines.concat()).outcome.as_deref(), Some("8"));
}

#[test]
fn private_regions_are_left_out_wherever_they_stand() {
    let open = assistant(
        "m",
        r#"{"type":"text","text":"Done. <private>K9"},{"type":"text","text":"K9</private> Bye."}"#,
    );
    let lines = [
        user("a <private>K9</private> b"),
        edits("Edit", "file_path", "/a/<private>K9</private>/b"),
        user("c").replacen('{', r#"{"gitBranch":"<private>K9</private>x","#, 1),
        open,
    ];
    let session = transcript(lines.concat());
    assert!(session.private);
    assert_eq!(ask(&session), Some("a  b"));
    assert_eq!(session.outcome.as_deref(), Some("Done.  Bye."));
    assert_eq!(session.files, ["/a//b"]);
    assert_eq!(session.git_branch.as_deref(), Some("x"));
}

/// CAP-01, CAP-02: text is masked before it is cut, so that no part of a credential is left.
#[test]
fn credentials_are_masked_before_the_cut() {
    let token = format!("gh{}{}", "p_", "16C7e42F292c6912E7710c838347Ae178B4a");
    let text = format!("{} {token}", "x".repeat(585));
    let lines = [
        user(&text).replacen('{', &format!(r#"{{"gitBranch":"fix/{token}","#), 1),
        edits("Edit", "file_path", &format!("/a/{token}/b")),
        says("m", &text),
    ];
    let session = transcript(lines.concat());
    let all_text = format!(
        "{session:?} {:?}",
        note_text(&SessionDigest::from(&session))
    );
    assert!(!all_text.contains(&token[..12]), "{all_text}");
    // A prompt, two answers, a file, its turn's file and a branch; in the note a file and a branch.
    assert_eq!(all_text.matches("[REDACTED]").count(), 6 + 2);
}

/// CAP-12.
#[test]
fn terminal_sequences_are_removed() {
    let lines = [
        user("\u{1b}[31mFix\u{1b}[0m it\r\nnow\u{202e}"),
        edits("Edit", "file_path", "/a\u{1b}[31m.rs\u{e0041}"),
        says("m", "\u{9b}1mDone\u{7}"),
    ];
    let session = transcript(lines.concat());
    assert_eq!(ask(&session), Some("Fix it\nnow"));
    assert_eq!(session.files, ["/a.rs"]);
    assert_eq!(session.outcome.as_deref(), Some("Done"));
}

/// CAP-07.
#[test]
fn bad_lines_are_counted_and_passed_over() {
    let deep = format!(r#"{{"type":"user","x":{}}}"#, "[".repeat(100_000));
    for bad in [
        "x",
        "[1]",
        "7",
        "{\"type\":\"user\"",
        "{\"type\":\"user\",}",
        &deep,
    ] {
        let lines = format!("{}{bad}\n{}", user("Fix it"), says("m", "Done."));
        let session = transcript(lines);
        assert_eq!((session.lines, session.skipped_lines), (3, 1), "{bad:.20}");
        assert_eq!(ask(&session), Some("Fix it"));
        assert_eq!(session.outcome.as_deref(), Some("Done."));
    }
}

#[test]
fn odd_bytes_do_not_lose_a_line() {
    let lone = r#"{"type":"user","message":{"content":"a \ud83d b \ude00"}}"#;
    let invalid = [
        user("a ").trim_end_matches("\"}}\n").as_bytes(),
        b"\xff b\"}}",
    ]
    .concat();
    for (line, expected) in [
        (lone.as_bytes(), "a \u{fffd} b \u{fffd}"),
        (&invalid, "a \u{fffd} b"),
        (format!("\u{feff}{}", user("a")).as_bytes(), "a"),
        (user("a\u{2028}b\u{85}c").as_bytes(), "a\nb\nc"),
        (user("a").replace('\n', "\r\n").as_bytes(), "a"),
        (user("a").trim_end().as_bytes(), "a"),
    ] {
        let session = transcript(line);
        assert_eq!(ask(&session), Some(expected));
        assert_eq!((session.lines, session.skipped_lines), (1, 0));
    }
}

#[test]
fn a_line_over_the_limit_is_counted() {
    let long = format!(
        r#"{{"type":"user","message":{{"content":"{}"}}}}"#,
        "x".repeat(MAX_LINE)
    );
    let session = transcript(format!("{long}\n{}", user("Fix it")));
    assert_eq!((session.lines, session.skipped_lines), (2, 1));
    assert_eq!(ask(&session), Some("Fix it"));
}

#[test]
fn kept_texts_are_bounded() {
    let session = transcript(user(&"é ".repeat(MAX_TEXT)) + &says("m", &"x".repeat(MAX_TEXT * 2)));
    assert!(ask(&session).is_some_and(|ask| ask.len() <= MAX_TEXT));
    assert_eq!(session.outcome.map(|outcome| outcome.len()), Some(MAX_TEXT));
}

/// The private block does not fit after the first one, so the last block must not be kept either.
#[test]
fn an_answer_over_the_limit_ends_with_its_last_whole_block() {
    let lines = [
        says("m", &format!("Begun. {}", "x".repeat(MAX_LINE / 2))),
        says("m", &format!("<private>{}", "x".repeat(MAX_LINE / 2))),
        says("m", "K9"),
    ];
    let outcome = transcript(lines.concat()).outcome.unwrap();
    assert!(outcome.starts_with("Begun.") && !outcome.contains("K9"));
    assert_eq!(outcome.len(), MAX_TEXT);
}

#[test]
fn an_error_keeps_what_was_read() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let first = user("Fix it");
    let (session, error) = read(BufReader::new(first.as_bytes().chain(Broken)));
    assert_eq!(ask(&session), Some("Fix it"));
    assert_eq!(
        error.map(|error| error.to_string()).as_deref(),
        Some("the disk is gone")
    );
}

/// A message can have as many records as the file has lines.
#[test]
fn the_work_is_linear() {
    let small = says("m", "<private>word").repeat(500);
    let large = small.repeat(16);
    assert_linear("one answer", || transcript(&small), || transcript(&large));
}

/// Returns the first prompt.
fn ask(transcript: &Transcript) -> Option<&str> {
    let mut turns = transcript.turns.iter();
    turns.find_map(|turn| turn.prompt.as_deref())
}

/// Resets the line counts, which a truncated line changes.
fn without_counts(transcript: Transcript) -> Transcript {
    Transcript {
        lines: 0,
        skipped_lines: 0,
        ..transcript
    }
}

/// Checks the invariants for any input.
fn check_inert(session: &Transcript) -> Result<(), TestCaseError> {
    let turns = session.turns.iter();
    let turns = turns.flat_map(|turn| [&turn.prompt, &turn.answer]);
    let texts = turns.chain([&session.outcome, &session.git_branch]);
    let mut texts: Vec<&str> = texts.flatten().map(String::as_str).collect();
    texts.extend(session.files.iter().map(String::as_str));
    let summary = note_text(&SessionDigest::from(session));
    if let Some(NoteText { title, body }) = &summary {
        prop_assert!(!title.contains('\n') && title.chars().count() <= 80);
        texts.extend([title.as_str(), body.as_str()]);
        prop_assert!(body.chars().count() <= 4_000);
    }
    for text in texts {
        prop_assert_eq!(anamnesis_text::clean::clean(text), text);
    }
    Ok(())
}

/// Generates lines of every kind with texts that matter to some rule.
fn any_line() -> impl Strategy<Value = String> {
    let text = prop::collection::vec(
        prop::sample::select(vec![
            "word ",
            "\n",
            "<private>",
            "</private>",
            "<task-notification>",
            "<ide_selection>",
            "</ide_selection>",
            "/x",
            "\u{1b}[1m",
            "\u{202e}",
            "é",
            "continue",
            "\r",
            "\u{2028}",
        ]),
        0..60,
    )
    .prop_map(|parts| parts.concat());
    (0..7_u8, text).prop_map(|(kind, text)| match kind {
        0 | 1 => user(&text),
        2 => queued(&text),
        3 => edits("Edit", "file_path", &text),
        4 => result(text.len() % 2 == 0),
        5 => text + "\n",
        _ => says("m", &text),
    })
}

/// Returns the lines that are complete up to a position, including a line cut at its very end.
fn whole_lines(bytes: &[u8], end: usize) -> &[u8] {
    let line_feed = |&byte: &u8| byte == b'\n';
    let start = bytes[..end]
        .iter()
        .rposition(line_feed)
        .map_or(0, |last| last + 1);
    let next = bytes[start..]
        .iter()
        .position(line_feed)
        .map_or(bytes.len(), |next| start + next);
    if end == next {
        &bytes[..end]
    } else {
        &bytes[..start]
    }
}

fn check_cut(bytes: &[u8], end: usize) {
    let cut = transcript(&bytes[..end]);
    let whole = transcript(whole_lines(bytes, end));
    assert_eq!(without_counts(cut), without_counts(whole), "cut at {end}");
}

#[test]
fn a_transcript_may_end_at_any_byte() {
    let bytes = fixture!("interrupted").as_bytes();
    for end in 0..=bytes.len() {
        check_cut(bytes, end);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_inert(&transcript(bytes))?;
    }

    #[test]
    fn any_session_gives_an_inert_summary(lines in prop::collection::vec(any_line(), 0..12)) {
        check_inert(&transcript(lines.concat()))?;
    }

    /// A marker that is only in private regions appears in no output.
    #[test]
    fn a_private_marker_never_comes_out(
        lines in prop::collection::vec((any_line(), any::<bool>(), any::<bool>()), 0..8),
    ) {
        let marked: String = lines
            .into_iter()
            .flat_map(|(line, by_person, is_closed)| {
                let close = if is_closed { "</private>" } else { "" };
                let text = format!("word <private>MARKER{close}");
                [line, if by_person { user(&text) } else { says("n", &text) }]
            })
            .collect();
        let session = transcript(marked);
        let all_text = format!("{session:?} {:?}", note_text(&SessionDigest::from(&session)));
        prop_assert!(!all_text.contains("MARKER"), "{}", all_text);
    }

    #[test]
    fn every_transcript_may_end_at_any_byte(
        index in 0..FIXTURES.len(),
        position in any::<prop::sample::Index>(),
    ) {
        let bytes = FIXTURES[index].as_bytes();
        check_cut(bytes, position.index(bytes.len() + 1));
    }
}

/// A transcript of tool calls: the tool, its input, and its error or its output.
fn calls(prompt: &str, calls: &[(&str, Value, Result<&str, &str>)]) -> String {
    let mut lines =
        vec![json!({ "type": "user", "cwd": "/w/shop", "message": { "content": prompt } })];
    for (number, (tool, input, result)) in calls.iter().enumerate() {
        let id = format!("t{number}");
        let used = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        let (is_error, content) = match result {
            Ok(output) => (false, output),
            Err(error) => (true, error),
        };
        let result = json!({ "type": "tool_result", "tool_use_id": id, "is_error": is_error,
            "content": content });
        lines.push(json!({ "type": "assistant", "message": { "content": [used] } }));
        let mut line = json!({ "type": "user", "message": { "content": [result] } });
        if *tool == "Write" {
            line["toolUseResult"] = json!({ "type": "create", "filePath": input["file_path"] });
        }
        lines.push(line);
    }
    let lines = lines.iter().map(Value::to_string);
    lines.collect::<Vec<_>>().join("\n")
}

fn edit(path: &str) -> (&'static str, Value, Result<&'static str, &'static str>) {
    ("Edit", json!({ "file_path": path }), Ok("edited"))
}

#[test]
fn a_transcript_tells_what_was_fixed_and_what_still_fails() {
    let run = |result| ("Bash", json!({ "command": "cargo test" }), result);
    let text = calls(
        "make the cart tests pass",
        &[
            run(Err(
                "Exit code 101\nerror[E0425]: cannot find value `total` in this scope",
            )),
            edit("/w/shop/src/cart.rs"),
            run(Ok("test result: ok. 3 passed; 0 failed")),
            (
                "Bash",
                json!({ "command": "make deploy" }),
                Err("Exit code 2\nERROR: no such host staging-7"),
            ),
        ],
    );
    let digest = SessionDigest::from(&transcript(text));
    let (fixed, failing) = (digest.fixed.join("\n"), digest.failing.join("\n"));
    assert!(
        fixed.contains("cargo test") && fixed.contains("src/cart.rs"),
        "{fixed}"
    );
    assert!(
        failing.contains("make deploy") && failing.contains("staging-7"),
        "{failing}"
    );
    assert!(!failing.contains("cargo test"), "{failing}");
}

#[test]
fn what_a_transcript_made_and_removed_leaves_no_note() {
    let made = (
        "Write",
        json!({ "file_path": "/w/shop/geese.md" }),
        Ok("created"),
    );
    let removed = ("Bash", json!({ "command": "rm geese.md" }), Ok(""));
    let digest =
        |made: &[_]| SessionDigest::from(&transcript(calls("write a file about geese", made)));
    assert_eq!(digest(std::slice::from_ref(&made)).files, ["geese.md"]);
    let undone = digest(&[made, removed]);
    assert!(undone.is_undone && undone.files.is_empty(), "{undone:?}");
}

#[test]
fn the_most_edited_file_comes_first() {
    let text = calls(
        "tidy",
        &[
            edit("/w/shop/a.rs"),
            edit("/w/shop/b.rs"),
            edit("/w/shop/b.rs"),
        ],
    );
    assert_eq!(transcript(text).files, ["/w/shop/b.rs", "/w/shop/a.rs"]);
}

#[test]
fn secrets_and_private_turns_do_not_come_through_tool_calls() {
    let failed = |command: &str| {
        (
            "Bash",
            json!({ "command": command }),
            Err("Exit code 1\nerror: denied"),
        )
    };
    let text = calls(
        "deploy",
        &[failed(
            "make deploy TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345",
        )],
    );
    let events = transcript(&text).tool_events;
    assert_eq!(events.len(), 1);
    assert!(
        !format!("{events:?}").contains("ghp_0123456789"),
        "{events:?}"
    );
    let private = calls("<private>deploy</private>", &[failed("make deploy")]);
    assert!(transcript(private).tool_events.is_empty());
}

/// Private text that a transcript repeats is masked as in recorded events.
#[test]
fn repeated_private_text_is_masked() {
    const PRIVATE: &str = "walrus9heronquill";
    let failed = |command: &str| {
        (
            "Bash",
            json!({ "command": command }),
            Err("Exit code 101\nerror: walrus9heronquill is wrong"),
        )
    };
    let lines = [
        user(&format!("why does {PRIVATE} fail?")),
        calls(
            &format!("fix the cart with <private>密码是{PRIVATE}</private> now"),
            &[
                failed(&format!("cargo test {PRIVATE}")),
                edit(&format!("/w/shop/{PRIVATE}.rs")),
            ],
        ),
        user("go on").replacen('{', &format!(r#"{{"gitBranch":"fix/{PRIVATE}","#), 1),
        says(
            "m",
            &format!("Done with {PRIVATE} because the limit was wrong."),
        ),
        format!(r#"{{"type":"custom-title","customTitle":"Use {PRIVATE}"}}"#),
    ];
    let session = transcript(lines.join("\n"));
    assert_eq!(session.tool_events.len(), 2);
    let all = format!("{session:?}\n{}", all_text(&lines.join("\n")));
    assert!(!all.contains("walrus"), "{all}");
    assert!(all.contains("Done with [private] because"), "{all}");
    // The private text is outside the part that is read.
    let late = format!(
        r#"{{"type":"user","timestamp":"2026-01-01T00:00:00Z","message":{{"content":"<private>{PRIVATE}</private>"}}}}"#
    );
    let part = TranscriptPart {
        span: Some(DateTime::<Utc>::MIN_UTC..DateTime::UNIX_EPOCH),
        ..TranscriptPart::default()
    };
    let text = user(&format!("use {PRIVATE}")) + "\n" + &late;
    let (session, _) = read_part(text.as_bytes(), part);
    assert_eq!(ask(&session), Some("use [private]"));
}

/// The logs were written by the real programs.
#[test]
fn logs_of_other_hosts_are_read_like_a_transcript() {
    for (log, cwd, command) in [
        (
            include_str!("../../tests/fixtures/hosts/codex/rollout.jsonl"),
            Some("/home/dev/proj"),
            "echo hello from codex; false",
        ),
        (
            include_str!("../../tests/fixtures/hosts/gemini/session.jsonl"),
            Some("/home/dev/proj"),
            "echo hello from gemini",
        ),
    ] {
        let transcript = read(log.as_bytes()).0;
        assert_eq!(transcript.cwd.as_deref(), cwd);
        assert_eq!(transcript.session_id.as_deref().map(str::len), Some(36));
        let [turn] = transcript.turns.as_slice() else {
            panic!("{:?}", transcript.turns);
        };
        let question =
            "The login tests hang on a fresh checkout, is it the stub server on port 9090?";
        assert_eq!(turn.prompt.as_deref(), Some(question));
        let answer =
            "The login tests waited for the stub server on port 9090. Fixed in the Makefile.";
        assert_eq!(turn.answer.as_deref(), Some(answer));
        assert_eq!(transcript.prompts, 1);
        let [event] = transcript.tool_events.as_slice() else {
            panic!("{:?}", transcript.tool_events);
        };
        let input = event.input.as_ref().unwrap();
        assert_eq!(input.command.as_deref(), Some(command));
        let error = command
            .ends_with("false")
            .then_some("Exit code 1\nhello from codex");
        assert_eq!(event.error.as_deref().map(str::trim_end), error);
        assert_eq!(transcript.failures, usize::from(error.is_some()));
        assert!(transcript.first_at.is_some());
    }
}

#[test]
fn a_prompt_that_codex_wrote_twice_is_one_prompt() {
    let line = |kind: &str, payload: Value| {
        json!({ "timestamp": "2026-11-23T06:30:24Z", "type": kind, "payload": payload }).to_string()
    };
    let item = json!({ "type": "UserMessage", "content": [{ "type": "text", "text": "Why?" }] });
    let patch = "*** Begin Patch\n*** Update File: a.rs\n+x\n*** End Patch";
    let log = [
        line("session_meta", json!({ "id": "s", "cwd": "/w" })),
        line(
            "event_msg",
            json!({ "type": "user_message", "message": "Why?" }),
        ),
        line(
            "event_msg",
            json!({ "type": "item_completed", "item": item, "turn_id": "t" }),
        ),
        line(
            "response_item",
            json!({ "type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": patch }),
        ),
        line(
            "response_item",
            json!({ "type": "custom_tool_call_output", "call_id": "c", "output": "Done" }),
        ),
    ];
    let transcript = read(log.join("\n").as_bytes()).0;
    assert_eq!((transcript.prompts, transcript.turns.len()), (1, 1));
    assert_eq!(
        (transcript.files, transcript.failures),
        (vec!["a.rs".to_owned()], 0)
    );
}
