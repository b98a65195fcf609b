//! Turns a session into the text of its note.
//!
//! The text is made by rule, without a model: what was asked, which files were touched, what came
//! of it. Its shape is shared with other programs that write to the same store and must not
//! change by a byte. Where the note goes, and what it is called on disk, is not decided here.

use std::fmt::Write as _;

use crate::clean::one_line;
use crate::transcript::Transcript;

/// How many characters of the ask and of the outcome a note shows.
const MAX_CLIP: usize = 600;

/// How many characters a title has.
const MAX_TITLE: usize = 80;

/// An outcome shorter than this many characters says nothing by itself.
const MIN_OUTCOME: usize = 40;

/// What is worth keeping of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Summary {
    /// Nothing happened that a later session could use.
    Trivial,
    /// The text of a note.
    Note {
        /// One line of at most 80 characters.
        title: String,
        /// Markdown, without a line feed at its end.
        body: String,
    },
}

/// Sums a session up.
pub fn summarize(transcript: &Transcript) -> Summary {
    if is_trivial(transcript) {
        return Summary::Trivial;
    }
    Summary::Note {
        title: title(transcript),
        body: body(transcript),
    }
}

/// Tells whether nothing was done and next to nothing said.
fn is_trivial(transcript: &Transcript) -> bool {
    let has_ask = transcript
        .ask
        .as_deref()
        .is_some_and(|ask| !is_slash_word(ask));
    let outcome = transcript.outcome.as_deref().unwrap_or_default().trim();
    transcript.files.is_empty()
        && transcript.failures == 0
        && !has_ask
        && outcome.chars().count() < MIN_OUTCOME
}

/// Tells whether an ask is a command and nothing else, or is blank.
fn is_slash_word(ask: &str) -> bool {
    let mut words = ask.split_whitespace();
    let first = words.next();
    first.is_none_or(|word| word.len() > 1 && word.starts_with('/')) && words.next().is_none()
}

/// Takes the first line of the first prompt that says something, else of the first prompt.
fn title(transcript: &Transcript) -> String {
    let ask = transcript.title_ask.as_ref().or(transcript.ask.as_ref());
    let line = ask
        .and_then(|ask| ask.trim().lines().next())
        .map(one_line)
        .filter(|line| !line.is_empty());
    match line {
        Some(line) => first_characters(&line, MAX_TITLE).trim_end().to_owned(),
        None => "Session summary".to_owned(),
    }
}

fn body(transcript: &Transcript) -> String {
    let ask = clip(transcript.ask.as_deref(), "(no user prompt captured)");
    let outcome = clip(
        transcript.outcome.as_deref(),
        "(no assistant output captured)",
    );
    let mut body = format!("**Ask:** {ask}\n\n");
    // Writing to a string cannot fail.
    if let Some(branch) = &transcript.git_branch {
        let _ = writeln!(body, "**Branch:** {branch}");
    }
    if !transcript.files.is_empty() {
        let _ = writeln!(body, "**Files touched ({}):**", transcript.files.len());
        for file in &transcript.files {
            let _ = writeln!(body, "- {file}");
        }
        if transcript.edits_left_out > 0 {
            let edits = transcript.edits_left_out;
            let _ = writeln!(body, "- (other files, in {edits} edits)");
        }
    }
    let _ = write!(body, "\n**Outcome:** {outcome}");
    body
}

/// Shortens a text, or says that there is none.
fn clip(text: Option<&str>, missing: &str) -> String {
    let text = text.unwrap_or_default().trim();
    let head = first_characters(text, MAX_CLIP);
    if text.is_empty() {
        missing.to_owned()
    } else if head.len() == text.len() {
        text.to_owned()
    } else {
        format!("{} ...", head.trim_end())
    }
}

fn first_characters(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(ask: &str, outcome: &str) -> Transcript {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Transcript {
            ask: text(ask),
            outcome: text(outcome),
            ..Transcript::default()
        }
    }

    fn note(transcript: &Transcript) -> (String, String) {
        match summarize(transcript) {
            Summary::Note { title, body } => (title, body),
            Summary::Trivial => panic!("trivial: {transcript:?}"),
        }
    }

    #[test]
    fn what_is_trivial() {
        let short = "x".repeat(39);
        let long = "é".repeat(40);
        for (ask, outcome, trivial) in [
            ("", "", true),
            ("", short.as_str(), true),
            ("", long.as_str(), false),
            ("/clear", "", true),
            ("/clear", short.as_str(), true),
            ("/clear", long.as_str(), false),
            (" \n", "", true),
            ("/clear now", "", false),
            ("/", "", false),
            ("hi", "", false),
        ] {
            let is_trivial = summarize(&session(ask, outcome)) == Summary::Trivial;
            assert_eq!(is_trivial, trivial, "{ask:?} {outcome:?}");
        }
    }

    #[test]
    fn a_touched_file_or_a_failure_is_never_trivial() {
        let files = vec!["/home/dev/project/a.rs".to_owned()];
        let touched = Transcript {
            files,
            ..Transcript::default()
        };
        let failed = Transcript {
            failures: 1,
            ..Transcript::default()
        };
        for transcript in [touched, failed] {
            assert_eq!(note(&transcript).0, "Session summary");
        }
    }

    #[test]
    fn titles() {
        let long = format!("Fix {}", "é".repeat(100));
        for (ask, title_ask, expected) in [
            ("Fix the parser", "Fix the parser", "Fix the parser"),
            ("continue", "Fix it\nplease", "Fix it"),
            ("continue", "", "continue"),
            ("\n Fix\tthe \u{a0} parser \nnow", "", "Fix the parser"),
            (&long, "", &format!("Fix {}", "é".repeat(76))),
            (&format!("{} b", "a".repeat(79)), "", &"a".repeat(79)),
        ] {
            let mut transcript = session(ask, "");
            transcript.title_ask = session(title_ask, "").ask;
            assert_eq!(note(&transcript).0, expected);
        }
    }

    #[test]
    fn a_body_with_everything() {
        let mut transcript = session("Fix the parser\nand the lexer", " Both work. ");
        transcript.git_branch = Some("fix/parser".to_owned());
        transcript.files = vec!["src/parser.rs".to_owned(), "src/lexer.rs".to_owned()];
        assert_eq!(
            note(&transcript).1,
            "**Ask:** Fix the parser\nand the lexer\n\n**Branch:** fix/parser\n\
             **Files touched (2):**\n- src/parser.rs\n- src/lexer.rs\n\n**Outcome:** Both work."
        );
    }

    #[test]
    fn files_that_are_not_listed_are_counted() {
        let transcript = Transcript {
            files: vec!["/a".to_owned()],
            edits_left_out: 7,
            ..Transcript::default()
        };
        let listed = "**Files touched (1):**\n- /a\n- (other files, in 7 edits)\n\n";
        assert!(note(&transcript).1.contains(listed));
    }

    #[test]
    fn a_body_with_nothing() {
        let transcript = Transcript {
            failures: 1,
            ..Transcript::default()
        };
        assert_eq!(
            note(&transcript).1,
            "**Ask:** (no user prompt captured)\n\n\n\
             **Outcome:** (no assistant output captured)"
        );
    }

    #[test]
    fn long_texts_are_clipped() {
        let fits = "é".repeat(600);
        assert_eq!(clip(Some(&fits), ""), fits);
        let blank_at_the_cut = format!("{} {}", "é".repeat(598), "x".repeat(9));
        let clipped = clip(Some(&format!("  {blank_at_the_cut}")), "");
        assert_eq!(clipped, format!("{} x ...", "é".repeat(598)));
        let ends_blank = format!("{}  x", "é".repeat(599));
        assert_eq!(
            clip(Some(&ends_blank), ""),
            format!("{} ...", "é".repeat(599))
        );
    }
}
