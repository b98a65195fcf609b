use proptest::prelude::*;

use super::*;
use crate::turn::Turn;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn a_session_with_everything() {
    let outcome = "Limits are in, tests pass. Next: the cart.";
    let digest = SessionDigest {
        turns: vec![Turn {
            prompt: Some("\nadd rate limits to the login\nand test them".to_owned()),
            answer: Some(outcome.to_owned()),
            ..Turn::default()
        }],
        files: texts(&["src/login.rs"]),
        files_read: texts(&["src/login.rs", "src/main.rs"]),
        searches: texts(&["fn login"]),
        commands_passed: texts(&["cargo test login"]),
        next_steps: next_steps(outcome),
        ..SessionDigest::default()
    };
    assert_eq!(
        summarize(&digest),
        Summary {
            request: "add rate limits to the login".to_owned(),
            investigated: texts(&[
                "Read `src/login.rs`",
                "Read `src/main.rs`",
                "Looked up `fn login`"
            ]),
            learned: Vec::new(),
            completed: texts(&[
                "Edited `src/login.rs`",
                "Passed: `cargo test login`",
                "Limits are in, tests pass."
            ]),
            next_steps: texts(&["the cart."]),
            files_read: texts(&["src/login.rs", "src/main.rs"]),
            files_edited: texts(&["src/login.rs"]),
        }
    );
}

#[test]
fn a_session_without_anything() {
    assert_eq!(summarize(&SessionDigest::default()), Summary::default());
}

#[test]
fn the_latest_are_named_and_the_others_counted() {
    let digest = SessionDigest {
        files: (0..500).map(|n| format!("src/{n}.rs")).collect(),
        ..SessionDigest::default()
    };
    let summary = summarize(&digest);
    assert_eq!(summary.completed.len(), 11);
    assert_eq!(summary.completed.first().unwrap(), "Edited `src/490.rs`");
    assert_eq!(summary.completed.last().unwrap(), "Edited 490 other files");
    assert_eq!(summary.files_edited.len(), 40);
    assert_eq!(summary.files_edited.last().unwrap(), "src/499.rs");
}

#[test]
fn first_sentences() {
    for (outcome, expected) in [
        ("All done.", Some("All done.")),
        ("All done. And more.", Some("All done.")),
        ("## **Done**\n\nThe limits are in.", Some("Done")),
        ("src/a.rs is in 1.2 now", Some("src/a.rs is in 1.2 now")),
        ("\n\n", None),
        ("#", None),
    ] {
        assert_eq!(first_sentence(outcome).as_deref(), expected, "{outcome:?}");
    }
}

#[test]
fn a_stored_summary_reads_back_and_an_older_one_too() {
    let summary = Summary {
        request: "fix it".to_owned(),
        ..Summary::default()
    };
    let stored = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&stored).unwrap(), summary);
    let older = r#"{"request":"fix it","notes":"of a field that is gone"}"#;
    assert_eq!(serde_json::from_str::<Summary>(older).unwrap(), summary);
}

proptest! {
    #[test]
    fn a_summary_is_bounded_and_inert(
        ask in any::<Option<String>>(),
        outcome in any::<Option<String>>(),
        file in any::<String>(),
        repeat in 1_usize..12,
        count in 0_usize..60,
    ) {
        let files: Vec<String> = (0..count).map(|n| format!("{n}{}", file.repeat(repeat))).collect();
        let digest = SessionDigest {
            turns: vec![Turn {
                prompt: ask,
                answer: outcome,
                ..Turn::default()
            }],
            files: files.clone(),
            files_read: files.clone(),
            searches: files.clone(),
            commands_passed: files.clone(),
            next_steps: files,
            ..SessionDigest::default()
        };
        let summary = summarize(&digest);
        prop_assert_eq!(&summarize(&digest), &summary);
        let mut size = 0;
        let lists = [
            &summary.investigated,
            &summary.completed,
            &summary.next_steps,
            &summary.files_read,
            &summary.files_edited,
        ];
        for text in lists.into_iter().flatten().chain([&summary.request]) {
            size += text.chars().count();
            prop_assert!(text.chars().count() <= MAX_LINE);
            prop_assert_eq!(&anamnesis_text::clean::one_line(text), text);
        }
        prop_assert!(size < 32_000, "{size}");
    }
}
