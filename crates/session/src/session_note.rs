//! Writes the text of a session's note from what is known of the session.
//!
//! The text is made by rule, without a model: what was asked, which files were edited, and the
//! outcome. Other programs write the same format to the same store, so it must stay byte-identical.
//! The store decides the note's path.
//!
//! The input comes from the client's transcript or the journal. Both produce a [`SessionDigest`],
//! and equal digests give identical bytes.

use std::{borrow::Cow, fmt::Write as _};

use chrono::{DateTime, Utc};

use crate::{observe::FIXED, transcript::Transcript};
use anamnesis_text::{
    clean::one_line,
    private_tokens::PrivateTokens,
    truncate::{first_characters, line},
};

/// The maximum length of the request and of the outcome, in characters.
const MAX_CLIP: usize = 600;

/// The maximum length of a title, in characters.
const MAX_TITLE: usize = 80;

/// An outcome with fewer characters is not informative by itself.
const MIN_OUTCOME: usize = 40;

/// The maximum number of lines of an optional block.
const MAX_BLOCK: usize = 10;

/// The maximum length of a line of an optional block, in characters.
const MAX_LINE: usize = 200;

/// What is known of a session, from the journal or a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionDigest {
    /// The first prompt of a person.
    pub ask: Option<String>,
    /// The first prompt of a person that is more than "go on", for the title.
    pub title_ask: Option<String>,
    /// The last answer.
    pub outcome: Option<String>,
    /// The first branch that was checked out.
    pub git_branch: Option<String>,
    /// The edited files in the order of their first edit, with the paths the tools used.
    pub files: Vec<String>,
    /// The number of edits of files beyond the limit of `files`.
    pub edits_left_out: usize,
    /// How many tools failed.
    pub failures: usize,
    /// When the first message was written.
    pub first_at: Option<DateTime<Utc>>,
    /// When the last message was written.
    pub last_at: Option<DateTime<Utc>>,
    /// What failed and was fixed, one line each.
    pub fixed: Vec<String>,
    /// Next steps named in the last answer, one line each: see [`crate::summary::next_steps`].
    pub next_steps: Vec<String>,
    /// The latest files read.
    pub files_read: Vec<String>,
    /// The latest search patterns, queries and URLs.
    pub searches: Vec<String>,
    /// The latest commands that passed.
    pub commands_passed: Vec<String>,
}

impl From<&Transcript> for SessionDigest {
    fn from(transcript: &Transcript) -> Self {
        Self {
            ask: transcript.ask.clone(),
            title_ask: transcript.title_ask.clone(),
            outcome: transcript.outcome.clone(),
            git_branch: transcript.git_branch.clone(),
            files: transcript.files.clone(),
            edits_left_out: transcript.edits_left_out,
            failures: transcript.failures,
            first_at: transcript.first_at,
            last_at: transcript.last_at,
            ..Self::default()
        }
    }
}

impl SessionDigest {
    /// Masks texts that were marked as private elsewhere in the session.
    pub fn mask(&mut self, echoes: &PrivateTokens) {
        let lists = [&mut self.files, &mut self.fixed, &mut self.next_steps];
        let texts = [&mut self.ask, &mut self.title_ask, &mut self.outcome];
        let all = lists
            .into_iter()
            .flatten()
            .chain(texts.into_iter().flatten());
        for text in all {
            if let Cow::Owned(masked) = echoes.mask(text) {
                *text = masked;
            }
        }
    }

    /// Merges the digest of an earlier part of the same session into this one.
    pub fn prepend(&mut self, earlier: &Self) {
        for (own, earlier) in [
            (&mut self.ask, &earlier.ask),
            (&mut self.title_ask, &earlier.title_ask),
            (&mut self.git_branch, &earlier.git_branch),
        ] {
            if earlier.is_some() {
                own.clone_from(earlier);
            }
        }
        if self.outcome.is_none() {
            self.outcome.clone_from(&earlier.outcome);
        }
        let own = std::mem::replace(&mut self.files, earlier.files.clone());
        for file in own {
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        }
        self.edits_left_out += earlier.edits_left_out;
        self.failures += earlier.failures;
        self.first_at = earlier.first_at.or(self.first_at);
        self.last_at = self.last_at.or(earlier.last_at);
    }
}

/// The text of a session's note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteText {
    /// The session has nothing that a later session could use.
    Trivial,
    /// The session is worth a note.
    Note {
        /// One line of at most 80 characters.
        title: String,
        /// Markdown without a final line feed.
        body: String,
    },
}

/// Writes the text of a session's note.
pub fn note_text(digest: &SessionDigest) -> NoteText {
    if is_trivial(digest) {
        return NoteText::Trivial;
    }
    NoteText::Note {
        title: title(digest),
        body: body(digest),
    }
}

/// Returns whether nothing was done and next to nothing was said.
fn is_trivial(digest: &SessionDigest) -> bool {
    let has_ask = digest.ask.as_deref().is_some_and(|ask| !is_slash_word(ask));
    let outcome = digest.outcome.as_deref().unwrap_or_default().trim();
    digest.files.is_empty()
        && digest.failures == 0
        && !has_ask
        && outcome.chars().count() < MIN_OUTCOME
}

/// Returns whether a prompt is only a slash command, or blank.
fn is_slash_word(ask: &str) -> bool {
    let mut words = ask.split_whitespace();
    let first = words.next();
    first.is_none_or(|word| word.len() > 1 && word.starts_with('/')) && words.next().is_none()
}

/// Returns the first line of the first meaningful prompt, else of the first prompt.
fn title(digest: &SessionDigest) -> String {
    let ask = digest.title_ask.as_ref().or(digest.ask.as_ref());
    let line = ask
        .and_then(|ask| ask.trim().lines().next())
        .map(one_line)
        .filter(|line| !line.is_empty());
    match line {
        Some(line) => first_characters(&line, MAX_TITLE).trim_end().to_owned(),
        None => "Session summary".to_owned(),
    }
}

fn body(digest: &SessionDigest) -> String {
    let ask = clip(digest.ask.as_deref(), "(no user prompt captured)");
    let outcome = clip(digest.outcome.as_deref(), "(no assistant output captured)");
    let mut body = format!("**Ask:** {ask}\n\n");
    // Writing to a string cannot fail.
    if let Some(branch) = &digest.git_branch {
        let _ = writeln!(body, "**Branch:** {branch}");
    }
    if !digest.files.is_empty() {
        let _ = writeln!(body, "**Files touched ({}):**", digest.files.len());
        for file in &digest.files {
            let _ = writeln!(body, "- {file}");
        }
        if digest.edits_left_out > 0 {
            let edits = digest.edits_left_out;
            let _ = writeln!(body, "- (other files, in {edits} edits)");
        }
    }
    block(&mut body, FIXED, &digest.fixed);
    block(&mut body, "Next steps", &digest.next_steps);
    let _ = write!(body, "\n**Outcome:** {outcome}");
    body
}

/// Appends a list after a blank line. An empty list adds nothing.
fn block(body: &mut String, name: &str, items: &[String]) {
    let lines: Vec<String> = items
        .iter()
        .map(|item| line(item, MAX_LINE))
        .filter(|item| !item.is_empty())
        .take(MAX_BLOCK)
        .collect();
    if lines.is_empty() {
        return;
    }
    if !body.ends_with("\n\n") {
        body.push('\n');
    }
    let _ = writeln!(body, "**{name}:**");
    for line in lines {
        let _ = writeln!(body, "- {line}");
    }
}

/// Shortens a text, or returns `missing` if there is none.
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

#[cfg(test)]
mod tests {
    use super::*;
    use anamnesis_text::private_tokens::{self, Key};

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    fn session(ask: &str, outcome: &str) -> SessionDigest {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        SessionDigest {
            ask: text(ask),
            outcome: text(outcome),
            ..SessionDigest::default()
        }
    }

    fn note(digest: &SessionDigest) -> (String, String) {
        match note_text(digest) {
            NoteText::Note { title, body } => (title, body),
            NoteText::Trivial => panic!("trivial: {digest:?}"),
        }
    }

    #[test]
    fn trivial_sessions() {
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
            let is_trivial = note_text(&session(ask, outcome)) == NoteText::Trivial;
            assert_eq!(is_trivial, trivial, "{ask:?} {outcome:?}");
        }
    }

    #[test]
    fn a_touched_file_or_a_failure_is_never_trivial() {
        let files = vec!["/home/dev/project/a.rs".to_owned()];
        let touched = SessionDigest {
            files,
            ..SessionDigest::default()
        };
        let failed = SessionDigest {
            failures: 1,
            ..SessionDigest::default()
        };
        for digest in [touched, failed] {
            assert_eq!(note(&digest).0, "Session summary");
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
            let mut digest = session(ask, "");
            digest.title_ask = session(title_ask, "").ask;
            assert_eq!(note(&digest).0, expected);
        }
    }

    #[test]
    fn a_body_with_everything() {
        let mut digest = session("Fix the parser\nand the lexer", " Both work. ");
        digest.git_branch = Some("fix/parser".to_owned());
        digest.files = vec!["src/parser.rs".to_owned(), "src/lexer.rs".to_owned()];
        assert_eq!(
            note(&digest).1,
            "**Ask:** Fix the parser\nand the lexer\n\n**Branch:** fix/parser\n\
             **Files touched (2):**\n- src/parser.rs\n- src/lexer.rs\n\n**Outcome:** Both work."
        );
    }

    /// The two blocks come before the outcome and are omitted if empty.
    #[test]
    fn fixes_and_next_steps_come_before_the_outcome() {
        let fixed = texts(&["`cargo test` passes again\nafter a change of src/a.rs", " "]);
        let next_steps = texts(&["the cart", "the till"]);
        let mut digest = session("Fix it", "Done.");
        digest.next_steps = next_steps;
        assert_eq!(
            note(&digest).1,
            "**Ask:** Fix it\n\n**Next steps:**\n- the cart\n- the till\n\n**Outcome:** Done."
        );
        digest.fixed = fixed;
        digest.files = texts(&["src/a.rs"]);
        assert_eq!(
            note(&digest).1,
            "**Ask:** Fix it\n\n**Files touched (1):**\n- src/a.rs\n\n\
             **Failed and fixed:**\n- `cargo test` passes again after a change of src/a.rs\n\n\
             **Next steps:**\n- the cart\n- the till\n\n**Outcome:** Done."
        );
        digest.fixed = texts(&["", "\u{200b}"]);
        digest.next_steps = Vec::new();
        digest.files = Vec::new();
        assert_eq!(note(&digest).1, "**Ask:** Fix it\n\n\n**Outcome:** Done.");
    }

    #[test]
    fn the_optional_blocks_are_bounded() {
        let mut digest = session("Fix it", "Done.");
        digest.fixed = vec!["x".repeat(1_000); 100];
        let body = note(&digest).1;
        assert_eq!(body.matches("\n- ").count(), MAX_BLOCK);
        assert!(body.len() < MAX_BLOCK * (MAX_LINE + 8) + 100);
    }

    #[test]
    fn an_earlier_part_comes_first() {
        let earlier = SessionDigest {
            ask: Some("Fix it".to_owned()),
            files: texts(&["/a", "/b"]),
            failures: 1,
            ..session("", "Half done.")
        };
        let mut digest = SessionDigest {
            files: texts(&["/b", "/c"]),
            failures: 2,
            ..session("go on", "Done.")
        };
        digest.prepend(&earlier);
        assert_eq!(digest.files, ["/a", "/b", "/c"]);
        assert_eq!(digest.failures, 3);
        assert_eq!(digest.outcome.as_deref(), Some("Done."));
        let mut silent = SessionDigest::default();
        silent.prepend(&earlier);
        assert_eq!(silent.outcome.as_deref(), Some("Half done."));
    }

    #[test]
    fn texts_private_elsewhere_are_masked() {
        let key = Key::new([7; 16]);
        let hashes = private_tokens::hashes(&key, &texts(&["token T7-blue-99"]));
        let echoes = hashes.into_iter().map(|hash| (key, hash)).collect();
        let mut digest = SessionDigest {
            files: texts(&["/tmp/T7-blue-99"]),
            ..session("use T7-blue-99", "T7-blue-99 works")
        };
        digest.mask(&echoes);
        assert_eq!(digest.files, ["/tmp/[private]"]);
        assert_eq!(note(&digest).0, "use [private]");
    }

    #[test]
    fn files_that_are_not_listed_are_counted() {
        let digest = SessionDigest {
            files: vec!["/a".to_owned()],
            edits_left_out: 7,
            ..SessionDigest::default()
        };
        let listed = "**Files touched (1):**\n- /a\n- (other files, in 7 edits)\n\n";
        assert!(note(&digest).1.contains(listed));
    }

    #[test]
    fn a_body_with_nothing() {
        let digest = SessionDigest {
            failures: 1,
            ..SessionDigest::default()
        };
        assert_eq!(
            note(&digest).1,
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
