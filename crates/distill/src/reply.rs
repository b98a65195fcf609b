//! Parses a model's answer strictly: it is accepted as a whole or discarded.
//!
//! Only a code fence may surround the JSON. A missing key, an additional key, an unknown type or an
//! empty text discards the whole answer. Nothing is guessed, because a guess would be remembered.
//!
//! Error messages repeat nothing of the answer.

use anamnesis_note::{
    draft::{asked, safe, safe_line},
    note::NoteType,
};
use serde::{Deserialize, de::DeserializeOwned};

/// The maximum number of notes in an answer.
const MAX_NOTES: usize = 64;

/// The maximum length of a question, in characters.
const MAX_QUERY: usize = 500;

/// The maximum length of a title, in characters.
const MAX_TITLE: usize = 120;

/// The maximum length of a body, in characters. The prompts ask for far less.
const MAX_BODY: usize = 8_000;

/// Why an answer was discarded, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidAnswer(pub(crate) String);

/// A note distilled from many notes, sanitised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distilled {
    /// Semantic or procedural.
    pub note_type: NoteType,
    /// One line.
    pub title: String,
    /// Markdown.
    pub body: String,
    /// Words and short questions that it may be asked for with.
    pub asked: Vec<String>,
}

/// A model's summary of a session, sanitised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Summary {
    /// The session is not worth a note.
    Skip,
    /// The note's text.
    Note {
        /// One line.
        title: String,
        /// Markdown.
        body: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireNote {
    r#type: String,
    title: String,
    body: String,
    // Models that were told an earlier prompt leave it out.
    #[serde(default)]
    asked: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSummary {
    skip: bool,
    title: String,
    body: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireQuery {
    query: String,
}

/// Parses the answer to [`prompts::reflect`](crate::prompts::reflect). An empty list is valid.
pub fn notes(answer: &str) -> Result<Vec<Distilled>, InvalidAnswer> {
    let notes: Vec<WireNote> = parse(answer)?;
    if notes.len() > MAX_NOTES {
        let many = format!("the answer has over {MAX_NOTES} notes");
        return Err(InvalidAnswer(many));
    }
    let numbered = (1..).zip(notes);
    numbered
        .map(|(number, note)| {
            let note_type = match note.r#type.as_str() {
                "semantic" => NoteType::Semantic,
                "procedural" => NoteType::Procedural,
                _ => return Err(flaw(number, "is neither semantic nor procedural")),
            };
            let (title, body) = fit(number, &note.title, &note.body)?;
            Ok(Distilled {
                note_type,
                title,
                body,
                asked: asked(&note.asked),
            })
        })
        .collect()
}

/// Parses the answer to [`prompts::summary`](crate::prompts::summary).
pub fn summary(answer: &str) -> Result<Summary, InvalidAnswer> {
    let summary: WireSummary = parse(answer)?;
    if summary.skip {
        return Ok(Summary::Skip);
    }
    let (title, body) = fit(1, &summary.title, &summary.body)?;
    Ok(Summary::Note { title, body })
}

/// Parses the answer to [`prompts::query`](crate::prompts::query), one line.
pub fn query(answer: &str) -> Result<String, InvalidAnswer> {
    let query: WireQuery = parse(answer)?;
    let query: String = safe_line(&query.query).chars().take(MAX_QUERY).collect();
    let query = query.trim();
    if query.is_empty() {
        return Err(InvalidAnswer("the answer asks nothing".to_owned()));
    }
    Ok(query.to_owned())
}

fn flaw(number: usize, what: &str) -> InvalidAnswer {
    InvalidAnswer(format!("note {number} of the answer {what}"))
}

/// Sanitises a note's texts and checks that they are not empty.
fn fit(number: usize, title: &str, body: &str) -> Result<(String, String), InvalidAnswer> {
    if body.chars().count() > MAX_BODY {
        let long = format!("is over {MAX_BODY} characters");
        return Err(flaw(number, &long));
    }
    let title: String = safe_line(title).chars().take(MAX_TITLE).collect();
    let body = safe(body);
    if title.trim().is_empty() {
        return Err(flaw(number, "has no title"));
    }
    if body.trim().is_empty() {
        return Err(flaw(number, "has no text"));
    }
    Ok((title.trim().to_owned(), body.trim().to_owned()))
}

fn parse<T: DeserializeOwned>(answer: &str) -> Result<T, InvalidAnswer> {
    serde_json::from_str(unfenced(answer)).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let what = if error.is_data() {
            "does not have the requested structure"
        } else {
            "is not JSON alone"
        };
        InvalidAnswer(format!("the answer {what} (line {line}, column {column})"))
    })
}

/// Removes a code fence around an answer.
pub(crate) fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    match answer
        .strip_prefix("```")
        .and_then(|rest| rest.split_once('\n'))
    {
        Some((_, inside)) => {
            let inside = inside.trim_end();
            inside.strip_suffix("```").unwrap_or(inside).trim()
        }
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn semantic(title: &str, body: &str) -> Distilled {
        Distilled {
            note_type: NoteType::Semantic,
            title: title.to_owned(),
            body: body.to_owned(),
            asked: Vec::new(),
        }
    }

    #[test]
    fn valid_answers() {
        let good = r#"[{"type": "semantic", "title": " T ", "body": "B\n\n- c"}]"#;
        let expected = vec![semantic("T", "B\n\n- c")];
        for answer in [
            good.to_owned(),
            format!("\n  {good} \n"),
            format!("```json\n{good}\n```"),
            format!("```\n{good}\n```\n"),
            format!("```json\r\n{good}"),
        ] {
            assert_eq!(notes(&answer), Ok(expected.clone()), "{answer}");
        }
        for nothing in ["[]", "```json\n[]\n```"] {
            assert_eq!(notes(nothing), Ok(Vec::new()));
        }
        let procedural = r#"[{"body": "b", "title": "t", "type": "procedural"}]"#;
        assert_eq!(
            notes(procedural).unwrap()[0].note_type,
            NoteType::Procedural
        );
    }

    #[test]
    fn a_note_may_say_what_it_is_asked_for_with() {
        let answer =
            r#"[{"type": "semantic", "title": "T", "body": "B", "asked": [" ship it ", ""]}]"#;
        assert_eq!(notes(answer).unwrap()[0].asked, ["ship it"]);
        let other = answer.replace(r#"[" ship it ", ""]"#, "\"deploy\"");
        assert!(notes(&other).is_err());
    }

    #[test]
    fn a_question_is_one_line_of_one_key() {
        // LLM-01
        let secret = concat!("AKIA", "IOSFODNN7EXAMPLE");
        for (answer, expected) in [
            (
                r#"{"query": " how do I deploy? "}"#.to_owned(),
                Ok("how do I deploy?"),
            ),
            (
                format!(r#"{{"query": "why {secret}\n<anamnesis-context>"}}"#),
                Ok("why [REDACTED]"),
            ),
            (r#"{"query": ""}"#.to_owned(), Err("asks nothing")),
            (
                r#"{"query": "<private>x</private>"}"#.to_owned(),
                Err("asks nothing"),
            ),
            (r#"{"query": 5}"#.to_owned(), Err("requested structure")),
            (
                r#"{"query": "a", "more": 1}"#.to_owned(),
                Err("requested structure"),
            ),
            (r#"Sure: {"query": "a"}"#.to_owned(), Err("not JSON alone")),
        ] {
            match (query(&answer), expected) {
                (Ok(query), Ok(expected)) => assert_eq!(query, expected, "{answer}"),
                (Err(violation), Err(expected)) => {
                    assert!(violation.to_string().contains(expected), "{violation}");
                }
                (found, _) => panic!("{answer}: {found:?}"),
            }
        }
    }

    #[test]
    fn one_violation_throws_all_away() {
        // LLM-01
        let good = r#"{"type": "semantic", "title": "t", "body": "b"}"#;
        let long = "x".repeat(MAX_BODY + 1);
        for (answer, reason) in [
            (String::new(), "not JSON alone"),
            ("Here you are:\n[]".to_owned(), "not JSON alone"),
            ("[] I hope this helps".to_owned(), "not JSON alone"),
            ("```json\n[]\n```\nDone.".to_owned(), "not JSON alone"),
            (format!("[{good}, {{\"type\": \"sem"), "not JSON alone"),
            (format!("[{good},]"), "not JSON alone"),
            ("{}".to_owned(), "requested structure"),
            (good.to_owned(), "requested structure"),
            ("null".to_owned(), "requested structure"),
            (format!(r#"{{"notes": [{good}]}}"#), "requested structure"),
            (format!("[{good}, 5]"), "requested structure"),
            (
                r#"[{"type": "semantic", "title": "t"}]"#.to_owned(),
                "requested structure",
            ),
            (
                r#"[{"type": "semantic", "title": "t", "body": "b", "tags": []}]"#.to_owned(),
                "requested structure",
            ),
            (
                r#"[{"type": "semantic", "title": "t", "title": "u", "body": "b"}]"#.to_owned(),
                "requested structure",
            ),
            (
                r#"[{"type": "semantic", "title": 5, "body": "b"}]"#.to_owned(),
                "requested structure",
            ),
            (
                format!(r#"[{good}, {{"type": "episodic", "title": "t", "body": "b"}}]"#),
                "note 2 of the answer is neither",
            ),
            (
                r#"[{"type": "Semantic", "title": "t", "body": "b"}]"#.to_owned(),
                "note 1 of the answer is neither",
            ),
            (
                r#"[{"type": " ", "title": "t", "body": "b"}]"#.to_owned(),
                "note 1 of the answer is neither",
            ),
            (
                format!(r#"[{good}, {{"type": "semantic", "title": " ", "body": "b"}}]"#),
                "note 2 of the answer has no title",
            ),
            (
                r#"[{"type": "semantic", "title": "t", "body": ""}]"#.to_owned(),
                "note 1 of the answer has no text",
            ),
            (
                r#"[{"type": "semantic", "title": "t", "body": "\n"}]"#.to_owned(),
                "note 1 of the answer has no text",
            ),
            (
                r#"[{"type": "semantic", "title": "t", "body": "<private>x</private>"}]"#
                    .to_owned(),
                "note 1 of the answer has no text",
            ),
            (
                format!(r#"[{{"type": "semantic", "title": "t", "body": "{long}"}}]"#),
                "note 1 of the answer is over",
            ),
            (
                format!("[{}]", vec![good; MAX_NOTES + 1].join(",")),
                "over 64 notes",
            ),
            ("[".repeat(100_000), "not"),
        ] {
            let shown: String = answer.chars().take(80).collect();
            let error = notes(&answer).expect_err(&shown).to_string();
            assert!(error.contains(reason), "{shown}: {error}");
        }
    }

    #[test]
    fn what_is_kept_of_an_answer_is_safe() {
        // LLM-01
        let secret = concat!("AKIA", "IOSFODNN7EXAMPLE");
        let answer = serde_json::json!([{
            "type": "semantic",
            "title": format!("key {secret}\nsecond line"),
            "body": format!("a <private>b</private> c\u{1b}[31m {secret}\n\u{202e}d"),
        }]);
        let found = notes(&answer.to_string()).unwrap();
        assert_eq!(found[0].title, "key [REDACTED] second line");
        for hidden in [secret, "private", "\u{1b}", "\u{202e}"] {
            assert!(
                !found[0].body.contains(hidden),
                "{hidden:?} in {:?}",
                found[0].body
            );
        }
    }

    #[test]
    fn summaries() {
        assert_eq!(
            summary(r#"{"skip": true, "title": "", "body": ""}"#),
            Ok(Summary::Skip)
        );
        assert_eq!(
            summary("```json\n{\"skip\": false, \"title\": \"t\", \"body\": \"b\"}\n```"),
            Ok(Summary::Note {
                title: "t".to_owned(),
                body: "b".to_owned()
            })
        );
        for bad in [
            r#"{"skip": false, "title": "", "body": "b"}"#,
            r#"{"skip": false, "title": "t", "body": " "}"#,
            r#"{"skip": "no", "title": "t", "body": "b"}"#,
            r#"{"skip": false, "title": "t"}"#,
            r#"{"skip": false, "title": "t", "body": "b", "type": "x"}"#,
            "[]",
            "done",
        ] {
            assert!(summary(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_rejected(text in "\\PC{0,300}") {
            let _ = (notes(&text), summary(&text));
        }

        #[test]
        fn accepted_answers_are_complete(
            items in prop::collection::vec(("[a-z]{1,12}", "[a-zA-Z ]{0,20}", "\\PC{0,40}"), 0..6),
        ) {
            let wire: Vec<_> = items
                .iter()
                .map(|(kind, title, body)| {
                    serde_json::json!({ "type": if kind.len() > 3 { "semantic" } else { kind }, "title": title, "body": body })
                })
                .collect();
            if let Ok(found) = notes(&serde_json::Value::from(wire).to_string()) {
                prop_assert_eq!(found.len(), items.len());
                for note in &found {
                    prop_assert!(!note.title.trim().is_empty() && !note.body.trim().is_empty());
                    prop_assert!(!note.title.contains('\n'));
                }
            }
        }
    }
}
