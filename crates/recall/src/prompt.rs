//! Splits a prompt into the sentences to search for, without pasted material.
//!
//! Each sentence is searched for by itself, because a question among other sentences is found by
//! its own words. Pasted code, stack traces and URLs are reduced to identifiers and the last line
//! that names an error.

use anamnesis_session::{prompt::SafePrompt, prose::is_stack_frame};
use anamnesis_text::sanitize::{head, tail};

use crate::rank::Query;

/// How many sentences are kept from the beginning and the end of a longer prompt.
const MAX_FIRST: usize = 3;
const MAX_LAST: usize = 5;

/// How many bytes are read from the beginning and the end of a long prompt.
const MAX_END: usize = 16 * 1024;

/// Code of up to so many lines is treated as prose.
const MAX_SHORT_CODE: usize = 3;

/// The maximum number of identifiers kept from pasted code.
const MAX_IDENTIFIERS: usize = 24;

/// Makes the query for a prompt, or for the task of a subagent. `None` if it asks nothing: it is a
/// command, or no person typed it.
pub fn query(prompt: &SafePrompt) -> Option<Query> {
    let question = prompt.question()?;
    Some(Query::from_segments(&sentences(&question)))
}

/// Returns the sentences to search for, in order, at most eight.
fn sentences(prompt: &str) -> Vec<String> {
    let ends;
    let text = if prompt.len() > 2 * MAX_END {
        ends = format!("{}\n{}", head(prompt, MAX_END), tail(prompt, MAX_END));
        &ends
    } else {
        prompt
    };
    let mut sentences = Vec::new();
    let mut code: Option<Vec<&str>> = None;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            match code.take() {
                Some(lines) => sentences.extend(reduce_code(&lines)),
                None => code = Some(Vec::new()),
            }
        } else if let Some(lines) = &mut code {
            lines.push(line);
        } else if !is_stack_frame(line) {
            sentences.extend(split_line(line));
        }
    }
    // An unclosed fence.
    sentences.extend(code.map(|lines| reduce_code(&lines)).unwrap_or_default());
    if sentences.len() > MAX_FIRST + MAX_LAST {
        sentences.drain(MAX_FIRST..sentences.len() - MAX_LAST);
    }
    sentences
}

/// Splits a line into sentences, with URLs shortened.
fn split_line(line: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut sentence = String::new();
    for word in line.split_whitespace() {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(&shorten_url(word));
        let ends = word
            .trim_end_matches(['"', '\'', ')', ']', '*', '`'])
            .ends_with(['.', '!', '?', '。', '！', '？']);
        if ends {
            sentences.push(std::mem::take(&mut sentence));
        }
    }
    sentences.push(sentence);
    sentences.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    sentences
}

/// Reduces a URL to its host and the last segment of its path. Returns any other word unchanged.
fn shorten_url(word: &str) -> String {
    let Some(at) = word.find("://") else {
        return word.to_owned();
    };
    let rest = &word[at + 3..];
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let mut parts = rest.split('/').filter(|part| !part.is_empty());
    let host = parts.next().unwrap_or_default();
    // Drop the user information.
    let host = host.rsplit('@').next().unwrap_or(host);
    match parts.next_back() {
        Some(last) => format!("{host} {last}"),
        None => host.to_owned(),
    }
}

/// Reduces pasted code. A short piece is treated as prose; of a long one the identifiers and the
/// last line that names an error are kept.
fn reduce_code(lines: &[&str]) -> Vec<String> {
    if lines.len() <= MAX_SHORT_CODE {
        return lines.iter().flat_map(|line| split_line(line)).collect();
    }
    let mut identifiers: Vec<&str> = Vec::new();
    for line in lines {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        for word in words.filter(|word| is_identifier(word)) {
            if identifiers.len() < MAX_IDENTIFIERS && !identifiers.contains(&word) {
                identifiers.push(word);
            }
        }
    }
    let error = lines
        .iter()
        .rev()
        .find(|line| names_error(line) && !is_stack_frame(line));
    let mut sentences: Vec<String> = error
        .map(|line| split_line(line).join(" "))
        .into_iter()
        .collect();
    sentences.push(identifiers.join(" "));
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Returns whether a word is a snake_case or camelCase name.
fn is_identifier(word: &str) -> bool {
    let has_letter = word.chars().any(char::is_alphabetic);
    let is_joined = word.trim_matches('_').contains('_');
    let is_camel = word
        .chars()
        .zip(word.chars().skip(1))
        .any(|(one, next)| one.is_lowercase() && next.is_uppercase());
    has_letter && (is_joined || is_camel)
}

fn names_error(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["error", "exception", "panicked", "failed", "fatal"]
        .iter()
        .any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use anamnesis_session::prompt::RawPrompt;
    use anamnesis_text::private_tokens::PrivateTokens;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_prompt_is_split_into_sentences() {
        for (prompt, expected) in [
            ("", &[][..]),
            ("go on", &["go on"]),
            (
                "The login hangs. Why does the stub server not start?\nPlease look.",
                &[
                    "The login hangs.",
                    "Why does the stub server not start?",
                    "Please look.",
                ],
            ),
            ("v1.2.3 of foo.rs fails", &["v1.2.3 of foo.rs fails"]),
            ("*done.* Next", &["*done.*", "Next"]),
            ("登录很慢。 为什么？", &["登录很慢。", "为什么？"]),
            (
                "see https://user:pw@git.home/acme/shop/issues/42?x=1#c",
                &["see git.home 42"],
            ),
            ("---\n***\n", &[]),
        ] {
            assert_eq!(sentences(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn a_long_prompt_keeps_its_first_and_last_sentences() {
        let prompt: String = (0..20)
            .map(|number| format!("sentence {number}. "))
            .collect();
        let found = sentences(&prompt);
        assert_eq!(found.len(), 8);
        assert_eq!(found[2], "sentence 2.");
        assert_eq!(found[3], "sentence 15.");
        let paste = "word ".repeat(300_000) + "\nWhy is that?";
        let found = sentences(&paste);
        assert_eq!(found.last().unwrap(), "Why is that?");
        assert!(found.iter().map(String::len).sum::<usize>() < 3 * MAX_END);
    }

    #[test]
    fn pasted_code_keeps_identifiers_and_the_error() {
        let prompt = "Why?\n```\nfn load_user(id: u32) {\n    userProfile.fetch(id)\n}\n\
            error[E0425]: cannot find value `id`\n```\nThanks.";
        assert_eq!(
            sentences(prompt),
            [
                "Why?",
                "error[E0425]: cannot find value `id`",
                "load_user userProfile",
                "Thanks."
            ]
        );
        assert_eq!(sentences("```\ncargo xtask ci\n```"), ["cargo xtask ci"]);
        let trace = "It broke:\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\n\
            ValueError: no such column\n    at run (app.js:3:5)\n#0 main () at main.c:3\n  12: 0x55d in core";
        assert_eq!(
            sentences(trace),
            ["It broke:", "ValueError: no such column"]
        );
    }

    #[test]
    fn a_safe_prompt_has_no_injected_blocks() {
        let prompt = "<anamnesis-context>\nDeploys go through Jenkins.\n</anamnesis-context>\nWhat now?\n\
            <system-reminder>be brief</system-reminder> a < b";
        let safe = SafePrompt::new(&RawPrompt::new(prompt), Some(&PrivateTokens::default())).value;
        assert_eq!(sentences(&safe.question().unwrap()), ["What now?", "a < b"]);
    }

    proptest! {
        #[test]
        fn any_prompt_is_at_most_eight_sentences(prompt in "(?s).{0,400}") {
            prop_assert!(sentences(&prompt).len() <= MAX_FIRST + MAX_LAST);
        }

        #[test]
        fn any_mixture_of_markup_is_accepted(parts in prop::collection::vec(
            prop::sample::select(vec!["```", "\n", "http://", "at x:1", "é.", " ", "#1 "]),
            0..60,
        )) {
            prop_assert!(sentences(&parts.concat()).len() <= MAX_FIRST + MAX_LAST);
        }
    }
}
